import { NodeServices } from "@effect/platform-node"
import { Duration, Effect, Fiber, FileSystem, Layer, Schedule, Schema } from "effect"
import path from "node:path"
import { type HookEvent, type HookOutcome, type HookRequest, emptyOutcome } from "../../../src/domain/hooks/Hook.ts"
import { type CommandHook, HooksConfigSettings, HooksSettings } from "../../../src/domain/hooks/HookSettings.ts"
import * as CommandHooks from "../../../src/services/hooks/CommandHooks.ts"
import { type Hook, HookSystem } from "../../../src/services/hooks/HookSystem.ts"
import { Environment } from "../../../src/services/platform/Environment.ts"
import { untilNone, watched } from "../../support/processGroups.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const fixture = path.join(import.meta.dirname, "..", "..", "fixtures", "hooks")

const variables = { PATH: process.env["PATH"] ?? "", PLAIN: "seen", MY_API_KEY: "hidden-1", NAMED_TOKEN: "passed-1" }

const services = Layer.mergeAll(
  HookSystem.layer,
  Layer.succeed(Environment, { variables: Effect.succeed(variables) })
).pipe(Layer.provideMerge(NodeServices.layer))

const folder = Effect.flatMap(FileSystem.FileSystem, (fs) =>
  Effect.flatMap(
    fs.makeTempDirectoryScoped({ directory: process.env["PALIMPSEST_TEST_FOLDER"], prefix: "hooks-" }),
    (made) => fs.realPath(made)
  )
)

const definition = (fields: Partial<CommandHook>): CommandHook => ({
  source: "home",
  event: "BeforeAgent",
  matcher: undefined,
  sequential: false,
  command: "true",
  name: "hook",
  description: undefined,
  timeout: undefined,
  env: {},
  ...fields
})

const options: CommandHooks.CommandHooksOptions = {
  cwd: fixture,
  isTrusted: Effect.succeed(true),
  passed: ["NAMED_TOKEN"],
  transcript: (session) => `/sessions/${session}.jsonl`,
  grace: "300 millis"
}

const prompt: HookEvent = { _tag: "BeforeAgent", prompt: "do" }

/** What one command says to one event. */
const said = (
  fields: Partial<CommandHook>,
  more: Partial<CommandHooks.CommandHooksOptions> = {},
  event: HookEvent = prompt
) =>
  Effect.gen(function* () {
    const hooks = yield* HookSystem
    yield* hooks.add(yield* CommandHooks.make([definition({ event: event._tag, ...fields })], { ...options, ...more }))
    return yield* hooks.fire(event, { session: "s1" })
  })

const failing = (message: string): HookOutcome => ({ ...emptyOutcome, failures: [{ hook: "hook", message }] })

const telling = (message: string): HookOutcome => ({
  ...emptyOutcome,
  messages: [message],
  notices: [{ hook: "hook", message }]
})

const request: HookRequest = { model: "gemini-2.5-pro", messages: [{ role: "user", content: "hello" }] }
const specific = (fields: Readonly<Record<string, unknown>>): Partial<HookOutcome> => ({ specific: fields })
const notice = (hook: string, message: string): Partial<HookOutcome> => ({
  messages: [message],
  notices: [{ hook, message }]
})

const cases: ReadonlyArray<readonly [HookEvent, Partial<HookOutcome>]> = [
  [
    { _tag: "BeforeTool", tool: "write_file", input: { file_path: "a", content: "password = 1" } },
    { blocked: "write_file would write a password", ...notice("no-secrets", "a secret was kept out") }
  ],
  [
    { _tag: "AfterTool", tool: "replace", input: { file_path: "a" }, response: { output: "done" } },
    {
      context: "4 characters",
      ...specific({
        hookEventName: "AfterTool",
        additionalContext: "4 characters",
        tailToolCallRequest: { name: "read_file", args: { file_path: "a" } }
      })
    }
  ],
  [
    { _tag: "AfterAgent", prompt: "do", answer: "done", isAgain: true },
    { clears: true, ...specific({ hookEventName: "AfterAgent", clearContext: true }) }
  ],
  [
    { _tag: "Notification", kind: "ToolPermission", message: "may I?", details: { tool: "glob" } },
    notice("./notification.sh", "somebody is asked")
  ],
  [
    { _tag: "SessionStart", source: "startup" },
    {
      context: "the tests need a database",
      ...notice("node ${GEMINI_PROJECT_DIR}/session-start.cjs", "session: startup"),
      ...specific({ hookEventName: "SessionStart", additionalContext: "the tests need a database" })
    }
  ],
  [{ _tag: "SessionStart", source: "resume" }, {}],
  [
    { _tag: "BeforeModel", request: { ...request, messages: [{ role: "user", content: "ping" }] } },
    {
      blocked: "known",
      ...specific({
        hookEventName: "BeforeModel",
        llm_response: { candidates: [{ content: { role: "model", parts: ["pong"] }, finishReason: "STOP" }] }
      })
    }
  ],
  [
    { _tag: "BeforeToolSelection", request },
    specific({ toolConfig: { mode: "ANY", allowedFunctionNames: ["read_file", "run_shell_command", "write_file"] } })
  ]
]

const Settings = Schema.fromJsonString(Schema.Struct({ hooks: HooksSettings, hooksConfig: HooksConfigSettings }))

it.live.each(cases)("a hook of Gemini CLI runs unchanged $_tag", services, function* ([event, expected]) {
  const fs = yield* FileSystem.FileSystem
  const text = yield* fs.readFileString(path.join(fixture, "settings.json"))
  const settings = yield* Schema.decodeEffect(Settings)(text)
  const { hooks, problems } = yield* CommandHooks.fromSettings({ home: {}, workspace: settings }, options)
  assert.deepStrictEqual(problems, [])
  const system = yield* HookSystem
  yield* system.add(hooks)
  const outcome = yield* system.fire(event, { session: "s1" })
  assert.deepStrictEqual(outcome, { ...emptyOutcome, ...expected })
})

describe("a command's answer", () => {
  it.live.each<readonly [string, Partial<CommandHook>, HookOutcome]>([
    ["nothing", { command: "true" }, emptyOutcome],
    ["exit 2", { command: "echo no >&2; exit 2" }, { ...emptyOutcome, blocked: "no" }],
    ["exit 1 without output", { command: "exit 1" }, failing("exit code 1 without output")],
    ["killed", { command: "echo half; kill -9 $$" }, failing("it was ended by SIGKILL")],
    ["bash", { command: "[[ -n $BASH_VERSION ]] && echo bash" }, telling("bash")],
    ["its own variables", { command: 'echo "$MODE $PLAIN"', env: { MODE: "strict" } }, telling("strict seen")],
    ["keys are not handed on", { command: 'echo "[$MY_API_KEY]"; env | grep -c hidden-; true' }, telling("[]\n0")],
    ["unless they are named", { command: 'echo "$NAMED_TOKEN"' }, telling("passed-1")],
    ["the session", { command: 'echo "$GEMINI_SESSION_ID $GEMINI_PLANS_DIR"' }, telling("s1 /plans")],
    ["the transcript", { command: "grep -o '/sessions/[^\"]*'" }, telling("/sessions/s1.jsonl")],
    ["an unread stdin", { command: "exec 0<&-; echo deaf" }, telling("deaf")]
  ])("%s", services, function* ([, fields, expected]) {
    // More than a pipe holds, for who does not read it.
    const event: HookEvent = { _tag: "BeforeAgent", prompt: "x".repeat(200_000) }
    const outcome = yield* said(fields, { plans: "/plans" }, event)
    assert.deepStrictEqual(outcome, expected)
  })

  const names: ReadonlyArray<readonly [place: string, command: string, out: (cwd: string) => string]> = [
    ["no quotes", `printf '%s ' $GEMINI_PROJECT_DIR \${GEMINI_PROJECT_DIR}`, (cwd) => `${cwd} ${cwd}`],
    ["double quotes", `printf '%s ' "$GEMINI_PROJECT_DIR" "\${GEMINI_PROJECT_DIR}/x"`, (cwd) => `${cwd} ${cwd}/x`],
    ["a shell within the shell", `sh -c 'echo "$GEMINI_PROJECT_DIR"'`, (cwd) => cwd],
    ["a substitution", `name="$(basename "$GEMINI_PROJECT_DIR")"; echo "$name"`, (cwd) => path.basename(cwd)],
    ["one of the old kind", 'name=`basename "$GEMINI_PROJECT_DIR"`; echo "$name"', (cwd) => path.basename(cwd)],
    ["a comment", `# it's for $GEMINI_PROJECT_DIR\necho "$CLAUDE_PROJECT_DIR"`, (cwd) => cwd],
    ["a text of several lines", "cat <<END\nit's $GEMINI_CWD\nEND", (cwd) => `it's ${cwd}`]
  ]
  it.live.each(names)(
    "the folder's name is never executed, wherever a command has it: %s",
    services,
    function* ([, command, out]) {
      const fs = yield* FileSystem.FileSystem
      for (const name of [
        "$(touch${IFS}pwned)",
        "`touch${IFS}pwned`",
        "';touch${IFS}pwned;'",
        '";touch${IFS}pwned;"'
      ]) {
        const cwd = path.join(yield* folder, name)
        yield* fs.makeDirectory(cwd)
        const { messages } = yield* Effect.scoped(said({ command }, { cwd }))
        assert.deepStrictEqual(messages, [out(cwd)])
        assert.deepStrictEqual(yield* fs.readDirectory(cwd), [])
      }
    }
  )

  it.live("the user's .bashrc is not read", services, function* () {
    const fs = yield* FileSystem.FileSystem
    const home = yield* folder
    yield* fs.writeFileString(path.join(home, ".bashrc"), "echo noise")
    assert.deepStrictEqual((yield* said({ command: "echo fine", env: { HOME: home } })).messages, ["fine"])
  })

  it.live.each<readonly [string, Partial<CommandHook>, Partial<CommandHooks.CommandHooksOptions>, RegExp]>([
    ["a folder that is gone", {}, { cwd: "/no/such/folder" }, /^it could not be started: /],
    ["a NUL", { command: "echo a\u0000b" }, {}, /^it could not be started: .*NUL/],
    ["a command that is too long", { command: `: ${"x".repeat(200_000)}` }, {}, /^it could not be started: /]
  ])("a command that cannot be started is reported in one line: %s", services, function* ([, fields, more, expected]) {
    const { failures } = yield* said(fields, more)
    assert.strictEqual(failures.length, 1)
    assert.match(failures[0]?.message ?? "", expected)
    assert.notInclude(failures[0]?.message ?? "", "\n")
  })

  it.live("input that is not valid JSON is reported, and nothing runs", services, function* () {
    const event: HookEvent = { _tag: "Notification", kind: "x", message: "", details: 1n }
    const { failures } = yield* said({ command: "echo ran" }, {}, event)
    assert.deepStrictEqual(failures, [{ hook: "hook", message: "the event cannot be written as JSON" }])
  })

  it.live("an unnamed hook is named by the first line of its command", services, function* () {
    const hooks = yield* CommandHooks.make(
      [definition({ name: undefined, command: `echo ${"x".repeat(200)}\necho two` })],
      options
    )
    assert.match(hooks[0]?.name ?? "", /^echo x{10,80}…$/)
  })
})

describe("a misbehaving command", () => {
  it.live("is ended with its process group after its timeout, even if it ignores signals", services, function* () {
    const processes = yield* watched
    yield* Effect.gen(function* () {
      const { failures } = yield* said({ command: "trap '' TERM; sleep 600 & sleep 600; wait", timeout: 200 })
      assert.deepStrictEqual(failures, [{ hook: "hook", message: "no answer within 200ms" }])
    }).pipe(Effect.scoped, Effect.provide(processes.layer))
    // The scope of the hooks waits for the end of what it interrupted.
    assert.strictEqual(processes.groups.length, 1)
    yield* untilNone(processes.left)
  })

  it.live("is ended with its process group by a cancel", services, function* () {
    const fs = yield* FileSystem.FileSystem
    const cwd = yield* folder
    const processes = yield* watched
    yield* Effect.gen(function* () {
      const fiber = yield* Effect.forkChild(said({ command: "sleep 600 & touch started; sleep 600" }, { cwd }))
      yield* Effect.repeat(fs.exists(path.join(cwd, "started")), {
        until: (there) => there,
        schedule: Schedule.spaced("10 millis")
      })
      yield* Fiber.interrupt(fiber)
    }).pipe(Effect.scoped, Effect.provide(processes.layer))
    assert.strictEqual(processes.groups.length, 1)
    yield* untilNone(processes.left)
  })

  it.live("may leave background processes, which are not waited for", services, function* () {
    const processes = yield* watched
    const outcome = yield* said({ command: "sleep 600 & echo done" }).pipe(
      Effect.scoped,
      Effect.provide(processes.layer)
    )
    assert.deepStrictEqual(outcome, telling("done"))
    const left = processes.left()
    assert.strictEqual(left.length, 1)
    for (const group of left) process.kill(-group, "SIGKILL")
  })

  it.live("has its excess output cut and reported; its exit code counts", services, function* () {
    const outcome = yield* said({ command: "head -c 5000000 /dev/zero | tr '\\0' x; exit 2" })
    assert.match(outcome.blocked ?? "", /^x{1000}/)
    assert.isBelow(outcome.blocked?.length ?? Infinity, 10_000)
    assert.deepStrictEqual(outcome.failures, [{ hook: "hook", message: "its output exceeded the limit and was cut" }])
  })
})

describe("trust", () => {
  it.live("runs a workspace's hooks only while its folder is trusted, the user's own always", services, function* () {
    const state = { trusted: true }
    const more = { isTrusted: Effect.sync(() => state.trusted) }
    const hooks = yield* HookSystem
    const definitions = [
      definition({ source: "workspace", name: "theirs", command: "echo theirs" }),
      definition({ name: "mine", command: "echo mine" })
    ]
    yield* hooks.add(yield* CommandHooks.make(definitions, { ...options, ...more }))
    assert.deepStrictEqual((yield* hooks.fire(prompt)).messages, ["theirs", "mine"])
    state.trusted = false
    const { failures, messages } = yield* hooks.fire(prompt)
    assert.deepStrictEqual(messages, ["mine"])
    assert.deepStrictEqual(failures, [{ hook: "theirs", message: "it was not run: its folder is not trusted" }])
  })
})

describe("fromSettings", () => {
  const group = (command: string, more: object = {}) => [{ hooks: [{ type: "command", command, ...more }] }]
  const echo = (...words: ReadonlyArray<string>): HooksSettings => ({
    BeforeAgent: words.flatMap((word) => group(`echo ${word}`))
  })
  const timeouts = (hooks: ReadonlyArray<Hook>) => hooks.map(({ timeout = 0 }) => Duration.toMillis(timeout))

  it.live("joins both sources, the folder's first; equal hooks run once, as the user's", services, function* () {
    const { definitions, hooks, problems } = yield* CommandHooks.fromSettings(
      {
        home: { hooks: { BeforeAgent: group("echo home", { timeout: 9_000 }), Nothing: [] } },
        workspace: { hooks: { BeforeAgent: [...group("echo workspace"), ...group("echo home", { timeout: 1 })] } }
      },
      { ...options, timeout: 7_000 }
    )
    assert.strictEqual(problems.length, 1)
    assert.deepStrictEqual(
      definitions.map(({ source }) => source),
      ["workspace", "home"]
    )
    assert.deepStrictEqual(timeouts(hooks), [7_000, 9_000])
    const system = yield* HookSystem
    yield* system.add(hooks)
    assert.deepStrictEqual((yield* system.fire(prompt)).messages, ["workspace", "home"])
  })

  it.live("time limits: the user's is the default for all, the folder's for its own only", services, function* () {
    const made = (home: HooksConfigSettings, workspace: HooksConfigSettings) =>
      CommandHooks.fromSettings(
        {
          home: { hooks: echo("own"), hooksConfig: home },
          workspace: { hooks: echo("theirs"), hooksConfig: workspace }
        },
        options
      )
    assert.deepStrictEqual(timeouts((yield* made({}, { timeout: 1 })).hooks), [1, 60_000])
    assert.deepStrictEqual(timeouts((yield* made({ timeout: 700 }, {})).hooks), [700, 700])
    assert.deepStrictEqual(timeouts((yield* made({ timeout: 700 }, { timeout: 1 })).hooks), [1, 700])
  })
})
