import { NodeServices } from "@effect/platform-node"
import { Effect, FileSystem } from "effect"
import { type CommandHook, newHooksWarning } from "../../../src/domain/hooks/HookSettings.ts"
import * as FileKnownHooks from "../../../src/layers/hooks/FileKnownHooks.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const hook = (fields: Partial<CommandHook> = {}): CommandHook => ({
  source: "workspace",
  event: "AfterTool",
  matcher: "edit",
  sequential: false,
  command: "node lint.js",
  name: "lint",
  description: undefined,
  timeout: undefined,
  env: { MODE: "secret" },
  ...fields
})

/** What is told of the last of these, seen one after the other in one folder. */
const toldOf = Effect.fnUntraced(function* (...seen: ReadonlyArray<ReadonlyArray<CommandHook>>) {
  const fs = yield* FileSystem.FileSystem
  const file = `${yield* fs.makeTempDirectoryScoped()}/known-hooks.json`
  let told: string | undefined
  for (const hooks of seen) told = newHooksWarning(yield* FileKnownHooks.noteHooks(file, "/work", hooks))
  return { file, told }
})

describe("a folder's hooks", () => {
  it.effect(
    "are reported once when new, with their commands, and stored only as hashes",
    NodeServices.layer,
    function* () {
      const fs = yield* FileSystem.FileSystem
      assert.match((yield* toldOf([hook()])).told ?? "", /AfterTool on "edit": "lint" runs "node lint\.js"/)
      const { file, told } = yield* toldOf([hook()], [hook()])
      assert.isUndefined(told)
      assert.notMatch(yield* fs.readFileString(file), /secret|lint/)
    }
  )

  it.effect("are distinct from the user's, which are never reported", NodeServices.layer, function* () {
    assert.isUndefined((yield* toldOf([hook({ source: "home" })])).told)
  })

  const changes: ReadonlyArray<readonly [rule: string, fields: Partial<CommandHook>, told: RegExp]> = [
    ["event", { event: "SessionStart" }, /SessionStart on "edit": "lint" runs/],
    ["matcher", { matcher: undefined }, /AfterTool: "lint" runs/],
    ["command", { command: "node lint.js; evil" }, /"node lint\.js; evil"/],
    ["variables", { env: { NODE_OPTIONS: "-r ./evil.js" } }, /with "NODE_OPTIONS=-r \.\/evil\.js"/]
  ]
  for (const [rule, fields, expected] of changes) {
    it.effect(`are new when a known command has another ${rule}`, NodeServices.layer, function* () {
      const { told = "" } = yield* toldOf([hook()], [hook(), hook(fields)])
      assert.match(told, expected)
      assert.match(told, /^This folder has a new hook,/)
    })
  }
})
