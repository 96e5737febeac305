import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import {
  type CommandHook,
  enabledHooks,
  hookKey,
  hookName,
  HooksConfigSettings,
  hooksOf,
  HooksSettings,
  newHooksWarning,
  newProjectHooks
} from "../../src/domain/HookSettings.ts"

const command = { type: "command", command: "lint.sh" } as const

const read = (value: unknown) => hooksOf(Schema.decodeUnknownSync(HooksSettings)(value), "home")

const hook = (fields: Partial<CommandHook>): CommandHook => ({
  source: "workspace",
  event: "BeforeTool",
  matcher: undefined,
  sequential: false,
  command: "lint.sh",
  name: undefined,
  description: undefined,
  timeout: undefined,
  env: {},
  ...fields
})

describe("hooksOf", () => {
  it("reads every field of a hook, with the source it comes from", () => {
    const { hooks, warnings } = read({
      AfterTool: [
        {
          matcher: "write_file|replace",
          sequential: true,
          hooks: [{ ...command, name: "lint", description: "checks", timeout: 500, env: { MODE: "strict" } }, command]
        }
      ]
    })
    assert.deepStrictEqual(warnings, [])
    const shared = { source: "home", event: "AfterTool", matcher: "write_file|replace", sequential: true } as const
    assert.deepStrictEqual(hooks, [
      hook({ ...shared, name: "lint", description: "checks", timeout: 500, env: { MODE: "strict" } }),
      hook(shared)
    ])
  })

  it.each([
    ["an event that there is none of", { BeforeTools: [] }, /no event BeforeTools; the events are BeforeTool, /],
    ["a key that older settings have beside the events", { enabled: true }, /belongs into hooksConfig/],
    ["no list of groups", { BeforeTool: { hooks: [command] } }, /^hooks\.BeforeTool was left out: it is no list$/],
    ["a group that is no object", { BeforeTool: ["x"] }, /^hooks\.BeforeTool\[0\] was left out: it is no object$/],
    ["a group without hooks", { BeforeTool: [{ matcher: "x" }] }, /BeforeTool\[0\]\.hooks was left out: it is no list/],
    ["a matcher that is no text", { BeforeTool: [{ matcher: 7, hooks: [command] }] }, /its matcher is no text/],
    ["a hook that is no object", { BeforeTool: [{ hooks: ["lint.sh"] }] }, /hooks\[0\] was left out: it is no object/],
    ["a hook without a type", { BeforeTool: [{ hooks: [{ command: "x" }] }] }, /has no type/],
    ["an unknown type", { BeforeTool: [{ hooks: [{ type: "http", url: "x" }] }] }, /has the unknown type http/],
    ["no command", { BeforeTool: [{ hooks: [{ type: "command" }] }] }, /has no command/],
    ["a blank command", { BeforeTool: [{ hooks: [{ ...command, command: " " }] }] }, /has no command/]
  ])("%s is left out with one warning, and nothing else with it", (_rule, wrong, expected) => {
    const { hooks, warnings } = read({ ...wrong, SessionEnd: [{ hooks: [command] }] })
    assert.deepStrictEqual(
      hooks.map(({ event }) => event),
      ["SessionEnd"]
    )
    assert.strictEqual(warnings.length, 1)
    assert.match(warnings[0] ?? "", expected)
    assert.notInclude(warnings[0] ?? "", "\n")
  })

  it("optional fields of the wrong kind are left out with a warning each, the hook stays", () => {
    const { hooks, warnings } = read({
      BeforeAgent: [{ sequential: "yes", hooks: [{ ...command, name: 1, timeout: 0, env: { A: 1 } }, command] }]
    })
    assert.deepStrictEqual(hooks, [
      hook({ source: "home", event: "BeforeAgent" }),
      hook({ source: "home", event: "BeforeAgent" })
    ])
    assert.deepStrictEqual(
      warnings.map((line) => line.split(" ")[0]),
      [
        "hooks.BeforeAgent[0].sequential",
        "hooks.BeforeAgent[0].hooks[0].name",
        "hooks.BeforeAgent[0].hooks[0].timeout",
        "hooks.BeforeAgent[0].hooks[0].env"
      ]
    )
  })

  it("keys of hooksConfig that mean nothing here are dropped", () => {
    const decoded = Schema.decodeUnknownSync(HooksConfigSettings)({ enabled: false, notifications: true })
    assert.deepStrictEqual(decoded, { enabled: false })
  })
})

describe("enabledHooks", () => {
  const hooks = [hook({ name: "lint" }), hook({}), hook({ name: "audit", command: "audit.sh" })]

  it.each([
    ["nothing is set", {}, ["lint", "lint.sh", "audit"]],
    ["a name", { disabled: ["lint"] }, ["lint.sh", "audit"]],
    ["a command switches off who has no name", { disabled: ["lint.sh", "audit.sh"] }, ["lint", "audit"]],
    ["all of them", { enabled: false }, []]
  ])("%s", (_rule, config, expected) => {
    assert.deepStrictEqual(enabledHooks(hooks, config).map(hookName), expected)
  })
})

describe("newProjectHooks", () => {
  it("only hooks of the workspace that were not told of before, each once, are new", () => {
    const [known, fresh, own] = [
      hook({ name: "known" }),
      hook({ name: "fresh" }),
      hook({ name: "mine", source: "home" })
    ]
    assert.deepStrictEqual(newProjectHooks([known, fresh, own, fresh], [hookKey(known)]), [fresh])
    // The same name with another command is another hook.
    assert.strictEqual(newProjectHooks([hook({ name: "known", command: "evil.sh" })], [hookKey(known)]).length, 1)
  })

  it("the warning is one line that names each, whatever their names hold", () => {
    assert.isUndefined(newHooksWarning([]))
    const line = newHooksWarning([hook({ command: "a\nb" }), hook({ name: "x", event: "SessionEnd" })]) ?? ""
    assert.match(line, /2 new hooks.*BeforeTool: "a\\nb", SessionEnd: x$/)
    assert.notInclude(line, "\n")
  })
})
