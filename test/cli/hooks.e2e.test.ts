import { Effect } from "effect"
import { cpSync, existsSync, readFileSync } from "node:fs"
import path from "node:path"
import type { FakeRequest } from "../../src/layers/testing/FakeGemini.ts"
import { assert, describe, it } from "../support/vitest.ts"
import * as Workflow from "../support/workflow.ts"
import {
  type Args,
  bodyOf,
  calls,
  jsonLines,
  place,
  results,
  runs,
  says,
  serve,
  textsOf,
  turnsOf,
  write
} from "./scene.ts"

/** Hooks that are commands, through the built program: what they are told, and what comes of what they say. */

const fixture = path.join(import.meta.dirname, "..", "fixtures", "hooks")

const events = [
  "SessionStart",
  "BeforeAgent",
  "PreCompress",
  "PostCompress",
  "BeforeToolSelection",
  "BeforeModel",
  "AfterModel",
  "Notification",
  "BeforeTool",
  "AfterTool",
  "AfterAgent",
  "SessionEnd"
] as const

const command = (text: string, more: object = {}) => [{ hooks: [{ type: "command", command: text, ...more }] }]
const hooks = (made: Readonly<Record<string, string>>) => ({
  hooks: Object.fromEntries(Object.entries(made).map(([name, text]) => [name, command(text)]))
})

const configOf = (request: FakeRequest | undefined): { readonly generationConfig?: Args } =>
  JSON.parse(JSON.stringify(request?.body ?? {}))

/** About 12,000 tokens. */
const long = Array.from({ length: 2_000 }, (_, at) => `Line ${at}: value ${at * 7_919}.`).join("\n")

it.live("hooks of Gemini CLI run unchanged for every event and can change, add, block and answer", function* () {
  // The scripts end with status 2 where they are told anything else than Gemini CLI tells them.
  const { hooks: all, ...rest } = JSON.parse(readFileSync(path.join(fixture, "settings.json"), "utf8"))
  const { PostCompress: _numbers, ...theirs } = all
  const where = yield* place("hooks-all", {
    trust: "trusted",
    work: { ".palimpsest/settings.json": { ...rest, hooks: theirs } }
  })
  const record = path.join(where.home, "events.jsonl")
  // Hooks of calls side by side run at once: each writes its line as one.
  const keep = command(`line=$(cat); printf '%s\\n' "$line" >> "$RECORD"`, {
    name: "record",
    env: { RECORD: record }
  })
  const settings = { window: 60_000, hooks: Object.fromEntries(events.map((name) => [name, keep])) }
  yield* Effect.sync(() => cpSync(fixture, where.cwd, { recursive: true }))
  write(where.home, { "settings.json": settings })
  const fake = yield* serve(
    calls(
      ["write_file", { file_path: "a.txt", content: "one" }],
      ["write_file", { file_path: "b.txt", content: "password = x" }],
      ["run_shell_command", { command: "touch ran" }]
    ),
    says("The key is AIzaNobodyKnows."),
    says("I tested it with AIzaNobodyKnows.")
  )
  const first = yield* runs(where, fake, ["ask", "Write it", "--session", "work", "--approve", "edits"], {
    input: long
  })
  assert.deepStrictEqual([first.status, String(first.stdout)], [0, "I tested it with [key].\n"])
  assert.include(first.stderr, "session: startup")
  assert.include(first.stderr, "a secret was kept out")
  assert.include(first.stderr, "somebody is asked")
  assert.notInclude(first.stderr, "failed on")

  const turns = yield* turnsOf(fake)
  assert.lengthOf(turns, 3)
  const [one, two, three] = turns
  assert.strictEqual(configOf(one).generationConfig?.["temperature"], 0)
  const names = bodyOf(one).tools?.flatMap(({ functionDeclarations = [] }) =>
    functionDeclarations.map(({ name }) => name)
  )
  assert.sameMembers(names ?? [], ["read_file", "write_file", "run_shell_command"])
  assert.match(textsOf(one).join("\n"), /the tests need a database[^]*branch: main/)
  assert.strictEqual(readFileSync(path.join(where.cwd, "a.txt"), "utf8"), "one\n")
  assert.isFalse(existsSync(path.join(where.cwd, "b.txt")))
  const told = JSON.stringify(results(two))
  // The first result gave way to that of read_file, which the hook had run behind it.
  assert.deepStrictEqual(results(two)[0], { output: "one\n" })
  assert.include(told, "write_file would write a password")
  assert.include(textsOf(three).join("\n"), "say what you tested")

  // The conversation is too large now.
  const second = yield* runs(where, fake, ["ask", "Go on", "--session", "work", "--threshold", "0.2"])
  assert.strictEqual(second.status, 0)
  assert.include(second.stderr, "compressing (auto)")

  const stdin = jsonLines(record)
  assert.deepStrictEqual([...new Set(stdin.map((input) => input["hook_event_name"]))].sort(), [...events].sort())
  for (const input of stdin) {
    assert.deepInclude(input, {
      session_id: "work",
      cwd: where.cwd,
      transcript_path: path.join(where.home, "sessions", "work.jsonl")
    })
  }
  const of = (name: string) => stdin.filter((input) => input["hook_event_name"] === name)
  assert.deepStrictEqual(
    of("SessionStart").map(({ source }) => source),
    ["startup", "resume"]
  )
  assert.deepStrictEqual(
    of("SessionEnd").map(({ reason }) => reason),
    ["exit", "exit"]
  )
  assert.deepStrictEqual(
    of("BeforeAgent")
      .map(({ prompt }) => prompt)
      .slice(1),
    // What an answer is sent back with is a prompt, too.
    ["say what you tested", "Go on", "say what you tested"]
  )
  assert.deepInclude(of("AfterAgent")[1], { prompt_response: "I tested it with [key].", stop_hook_active: true })
  assert.strictEqual(of("Notification")[0]?.["notification_type"], "ToolPermission")
  const [compressed] = of("PostCompress").filter(({ status }) => status === "COMPRESSED")
  assert.strictEqual(compressed?.["trigger"], "auto")
  assert.isBelow(Number(compressed?.["tokens_after"]), Number(compressed?.["tokens_before"]))
  const { tool_name: tool, tool_response: response } = of("AfterTool")[0] ?? {}
  assert.strictEqual(tool, "write_file")
  assert.include(JSON.stringify(response), "llmContent")
})

describe("a workflow of hooks", () => {
  const ran = Effect.fnUntraced(function* (name: string, ...flags: ReadonlyArray<string>) {
    const where = yield* place(name, { home: { "settings.json": Workflow.settings() } })
    yield* Effect.sync(() => Workflow.install(where.cwd))
    const fake = yield* serve(...Workflow.answers)
    const { status, stderr, stdout } = yield* runs(where, fake, ["ask", Workflow.prompt, "--approve", "all", ...flags])
    assert.deepStrictEqual([status, String(stdout)], [0, "Noted. Checked: b.txt.\n"], stderr)
    return { where, stderr, requests: yield* turnsOf(fake) }
  })

  it.live("has the same effects as in Gemini CLI", function* () {
    const { requests, stderr, where } = yield* ran("hooks-workflow")
    const effects = Workflow.effects({ cwd: where.cwd, stderr, requests })
    assert.lengthOf(Object.keys(effects), 14)
    assert.deepStrictEqual(effects, Workflow.expected)
    // Nothing is kept, so there is an id for as long as the program runs, and no file.
    for (const { session_id: session, transcript_path: file } of Workflow.heard(where.cwd)) {
      assert.match(String(session), /^[0-9a-f]{8}-[0-9a-f]{4}-7/)
      assert.strictEqual(file, "")
    }
  })
})

describe("a hook", () => {
  it.live("can stop a run before anything is sent: status 1 and one line", function* () {
    const where = yield* place("hooks-stop", {
      home: {
        "settings.json": hooks({ BeforeAgent: `echo '{"continue": false, "stopReason": "not on a Friday"}'` })
      }
    })
    const fake = yield* serve()
    const { status, stderr, stdout } = yield* runs(where, fake, ["ask", "Deploy"])
    assert.deepStrictEqual([status, String(stdout)], [1, ""])
    assert.match(stderr, /^palimpsest: [^\n]*not on a Friday[^\n]*\n$/)
    assert.deepStrictEqual(yield* fake.requests, [])
  })

  it.live("gets the path of a transcript that exists when it runs, from the first event on", function* () {
    // What the path names is looked at while the hook runs.
    const look = `node -e 'let t="";process.stdin.on("data",d=>t+=d).on("end",()=>{const e=JSON.parse(t);require("fs").appendFileSync("seen.log",e.hook_event_name+" "+require("fs").existsSync(e.transcript_path)+"\\n")})'`
    const names = ["SessionStart", "BeforeAgent", "BeforeModel", "AfterAgent"]
    const where = yield* place("hooks-transcript", {
      home: { "settings.json": hooks(Object.fromEntries(names.map((name) => [name, look]))) }
    })
    const fake = yield* serve(says("One."))
    assert.strictEqual((yield* runs(where, fake, ["ask", "Go", "--session", "new"])).status, 0)
    const seen = readFileSync(path.join(where.cwd, "seen.log"), "utf8").trim().split("\n")
    assert.deepStrictEqual(
      seen,
      names.map((name) => `${name} true`)
    )
  })

  it.live("of the user runs whatever a folder's settings say; the user's variable disables all", function* () {
    const own = { BeforeAgent: command("echo from home", { name: "guard" }) }
    const where = yield* place("hooks-folder", {
      trust: "trusted",
      home: { "settings.json": { hooks: own } },
      work: {
        ".env": "PALIMPSEST_HOOKS_CONFIG_ENABLED=false\n",
        ".palimpsest/settings.json": {
          hooks: {
            BeforeAgent: [...command("echo from the folder"), ...command("echo from home", { timeout: 1 })]
          },
          hooksConfig: { enabled: false, disabled: ["guard"], timeout: 1 }
        }
      }
    })
    const fake = yield* serve(says("One."), says("Two."))
    const first = yield* runs(where, fake, ["ask", "Go"])
    assert.strictEqual(first.status, 0)
    assert.include(first.stderr, "palimpsest: hook guard: from home\n")
    assert.notInclude(first.stderr, "from the folder")
    const second = yield* runs(where, fake, ["ask", "Go"], { env: { PALIMPSEST_HOOKS_CONFIG_ENABLED: "false" } })
    assert.strictEqual(second.status, 0)
    assert.notInclude(second.stderr, "from home")
  })
})
