import { Context, Deferred, Effect, Exit, Fiber, FileSystem, Layer, PlatformError, Scope } from "effect"
import type { ChildProcess } from "effect/process"
import { TestClock } from "effect/testing"
import * as TreeSitterGrammar from "../../../../src/layers/tools/TreeSitterGrammar.ts"
import { Environment } from "../../../../src/services/platform/Environment.ts"
import * as BackgroundCommands from "../../../../src/services/tools/builtin/BackgroundCommands.ts"
import { shell } from "../../../../src/services/tools/builtin/Shell.ts"
import { ShellSettings } from "../../../../src/services/tools/builtin/ShellProcess.ts"
import { context } from "../../../support/callTool.ts"
import * as Processes from "../../../support/processes.ts"
import { assert, describe, it } from "../../../support/vitest.ts"
import { inMemory } from "../../../support/workspaces.ts"

/** The shell tool over processes that are not started: what each is started with, and what the model and the user get. */

const variables = {
  PATH: "/usr/bin:bin",
  CDPATH: "/",
  GIT_CONFIG_COUNT: "1",
  MY_API_KEY: "hidden-value-1",
  NAMED_TOKEN: "passed-value-1"
}

/** Calls of the tool, each with the process that it starts. */
const opened = Effect.fnUntraced(function* (
  play: Parameters<typeof Processes.layer>[0],
  grammar: Layer.Layer<never> | typeof TreeSitterGrammar.layer = Layer.empty
) {
  const started: Array<ChildProcess.StandardCommand> = []
  const scope = yield* Scope.make()
  const commands = yield* BackgroundCommands.make
  const services = Layer.mergeAll(
    inMemory({ "sub/x": "", "../usr/bin/ps": "", "../usr/bin/pgrep": "" }),
    grammar,
    Layer.succeed(Environment, { variables: Effect.succeed(variables) }),
    Layer.succeed(ShellSettings, {
      inactivity: "10 seconds",
      grace: "1 second",
      bufferBytes: 1_000,
      passedVariables: ["NAMED_TOKEN"]
    }),
    Layer.succeed(BackgroundCommands.BackgroundCommands, commands),
    Processes.layer((command) => {
      started.push(command)
      return play(command)
    })
  )
  const built = yield* Layer.buildWithScope(services, scope)
  const { chmod } = Context.get(built, FileSystem.FileSystem)
  for (const program of ["ps", "pgrep"]) yield* chmod(`/usr/bin/${program}`, 0o755)
  const tool = yield* shell.pipe(Scope.provide(scope), Effect.provideContext(built))
  const shown: Array<string> = []
  const progress = (text: string) => Effect.sync(() => void shown.push(text))
  const call = Effect.fnUntraced(function* (args: object) {
    const made = yield* tool.call(args, { ...context, progress })
    return { question: yield* made.question, result: yield* made.run }
  })
  const ask = (args: object) => Effect.flatMap(tool.call(args, context), ({ question }) => question)
  return { ask, call, close: Scope.close(scope, Exit.void), commands, shown, started }
})

const answered = (fields: Readonly<Record<string, string | number>>, group = 101) =>
  Object.entries({
    Command: "make it",
    Directory: "(root)",
    Stdout: "(empty)",
    Stderr: "(empty)",
    Error: "(none)",
    "Exit Code": "(none)",
    Signal: "(none)",
    "Background PIDs": "(none)",
    ...fields,
    "Process Group PGID": group
  })
    .map(([label, value]) => `${label}: ${value}`)
    .join("\n")

const twelve = Array.from({ length: 12 }, (_, at) => `line ${at}`)

describe("a command in the foreground", () => {
  const rows: ReadonlyArray<
    readonly [how: string, played: Processes.Played, fields: Readonly<Record<string, string | number>>, user: string]
  > = [
    ["ends well", { third: "101 0\n" }, { "Exit Code": 0 }, "exit code 0"],
    [
      "prints and fails",
      { out: `${twelve.join("\n")}\n`, err: "hidden-value-1 and passed-value-1\n", third: "101 3\n" },
      {
        Stdout: `${twelve.join("\n")}\n`,
        Stderr: "[redacted: MY_API_KEY] and passed-value-1\n",
        "Exit Code": 3
      },
      `${twelve.slice(-10).join("\n")}\n[redacted: MY_API_KEY] and passed-value-1\nexit code 3`
    ],
    ["is ended by a signal", { third: "101 143\n" }, { "Exit Code": 143, Signal: "SIGTERM" }, "ended by SIGTERM"],
    ["is ended with its shell", { ends: "SIGKILL" }, { Signal: "SIGKILL" }, "ended by SIGKILL"],
    [
      "leaves processes of its group",
      { third: "101 0\n 101 1 101 S\n 102 101 101 R\n 103 1 101 S\n 104 1 101 Zs\n 105 1 99 S\n 106 1 101 Ss\n" },
      { "Exit Code": 0, "Background PIDs": "103, 106" },
      "exit code 0"
    ],
    [
      "leaves processes, on a machine without ps",
      { third: "101 0\n101\n107\n" },
      { "Exit Code": 0, "Background PIDs": "107" },
      "exit code 0"
    ]
  ]
  it.effect.each(rows)("that %s", function* ([, played, fields, user]) {
    const { call, close, shown } = yield* opened(() => played)
    const { result } = yield* call({ command: "make it" })
    assert.deepStrictEqual(result, { value: answered(fields), display: { _tag: "Text", text: user } })
    assert.deepStrictEqual(shown, [])
    yield* close
  })

  it.effect("is started in its folder and group, without secrets and folders of a program's choice", function* () {
    const { call, started } = yield* opened(() => ({ third: "101 0\n" }))
    const { question, result } = yield* call({ command: "make it", dir_path: "sub" })
    assert.strictEqual(result.value, answered({ Directory: "sub", "Exit Code": 0 }))
    assert.deepStrictEqual(question, {
      detail: "make it\n(in sub)",
      grants: [],
      covers: "this command",
      edits: { argument: "command", text: "make it" }
    })
    const [{ args = [], command = "", options } = {}] = started
    const programs = ["/bin/sh", "/usr/bin/ps", "/usr/bin/pgrep"]
    assert.deepStrictEqual([command, args[0], ...args.slice(2)], ["/bin/sh", "-c", "sh", "make it", ...programs])
    assert.deepInclude(options, { cwd: "/work/sub", detached: true, forceKillAfter: "1 second" })
    assert.deepStrictEqual(options?.env, {
      PATH: "/usr/bin",
      NAMED_TOKEN: "passed-value-1",
      GIT_CONFIG_COUNT: "3",
      GIT_CONFIG_KEY_1: "safe.bareRepository",
      GIT_CONFIG_VALUE_1: "explicit",
      GIT_CONFIG_KEY_2: "core.fsmonitor",
      GIT_CONFIG_VALUE_2: "false"
    })
  })

  it.effect("is shown each second while it prints, and stopped when it has been silent for too long", function* () {
    const { call, shown } = yield* opened(() => ({ out: "half", err: "no hidden-value-1", ends: Effect.never }))
    const fiber = yield* Effect.forkChild(call({ command: "make it" }))
    yield* TestClock.adjust("9999 millis")
    assert.deepStrictEqual(shown, ["half\nno [redacted: MY_API_KEY]"])
    assert.isUndefined(fiber.pollUnsafe())
    yield* TestClock.adjust("1 millis")
    yield* TestClock.adjust("1 second")
    const { result } = yield* Fiber.join(fiber)
    const error = "it printed nothing for 10s and was stopped; what it printed before is kept"
    assert.deepStrictEqual(result, {
      value: answered({ Stdout: "half", Stderr: "no [redacted: MY_API_KEY]", Error: error, Signal: "SIGTERM" }),
      display: { _tag: "Text", text: `half\nno [redacted: MY_API_KEY]\n${error}` }
    })
  })

  const bad = { module: "ChildProcess", method: "spawn" }
  it.effect.each<readonly [played: PlatformError.PlatformError | undefined, why: string]>([
    [undefined, "NotFound: ChildProcess.spawn"],
    [PlatformError.badArgument({ ...bad, description: "a\nNUL" }), '"a\\nNUL"'],
    [PlatformError.badArgument(bad), "ChildProcess.spawn"]
  ])("that cannot be started says why: %s", function* ([played, why]) {
    const { call } = yield* opened(() => played)
    assert.deepInclude(yield* Effect.flip(call({ command: "make it" })), {
      message: `the command could not be started: ${why}`,
      type: "shell_execute_error"
    })
  })

  it.effect("keeps its output where it is cancelled", function* () {
    const { call, shown } = yield* opened(() => ({ out: "half", ends: Effect.never }))
    const fiber = yield* Effect.forkChild(call({ command: "make it" }))
    yield* TestClock.adjust("500 millis")
    yield* Fiber.interrupt(fiber)
    assert.deepStrictEqual(shown, [answered({ Stdout: "half", Error: "it was cancelled before it ended" })])
  })
})

describe("the question before a command", () => {
  const rows: ReadonlyArray<readonly [command: string, grants: ReadonlyArray<string>, covers: string]> = [
    ["git push && npm test", ["shell:/work $ git push", "shell:npm test in /work"], "in this folder"],
    ["cd sub && git push", ["shell:/work/sub $ git push"], "in sub"],
    ["git status | head -3", ["shell:git status in /work", "shell:head"], "head, as long as it only reads"],
    ["npm ci", ["shell:/work $ npm ci"], 'exactly "npm ci" in this folder'],
    ["npm start", ["shell:npm start in /work"], "npm start"],
    ["touch ../outside", ["shell:/work $ touch ../outside"], 'exactly "touch'],
    ["cd /tmp && git add -A", [], "this command"],
    ["cat < sub/x", ["shell:cat"], "cat"],
    ["cat < none", [], "this command"],
    ["cat < ../etc/passwd", [], "this command"],
    ["ls > sub/y", [], "this command"],
    ["cd .. && ls", [], "this command"],
    ["ls ../*", [], "this command"],
    ["cd sub && ls ../*", [], "this command"],
    [
      "git -C sub log && git -C . log",
      ["shell:git -C /work/sub log", "shell:git log in /work"],
      "git log in this folder"
    ],
    ["(cd sub; ls ../../x)", [], "this command"],
    ["eval x", [], "this command"],
    ["ls a\u202e", [], "this command"],
    [`ls ${"a".repeat(20_000)}`, [], "this command"]
  ]
  it.effect.each(rows)("%s", function* ([command, grants, covers]) {
    const { ask } = yield* opened(() => ({}), TreeSitterGrammar.layer)
    const question = yield* ask({ command })
    assert.deepStrictEqual(question?.grants, [...grants])
    assert.include(question?.covers, covers)
  })
})

describe("a command in the background", () => {
  const args = { command: "make it", is_background: true }

  it.effect.each<
    readonly [how: string, ends: Processes.Played["ends"], fields: Readonly<Record<string, string | number>>]
  >([
    ["well", 0, { "Exit Code": 0 }],
    ["with a failure", 4, { "Exit Code": 4 }],
    ["by a signal", "SIGHUP", { Signal: "SIGHUP" }]
  ])("that ends at once %s is not listed", function* ([, ends, fields]) {
    const { call, commands } = yield* opened(() => ({ out: "ready\n", ...(ends === undefined ? {} : { ends }) }))
    const { question, result } = yield* call(args)
    assert.strictEqual(question?.detail, "make it\n(in the background)")
    assert.strictEqual(result.value, answered({ Stdout: "ready\n", ...fields }))
    assert.deepStrictEqual(yield* commands.all, [])
  })

  it.effect("is listed while it runs, and ends when it is stopped, or with the session", function* () {
    const over = yield* Deferred.make<number>()
    const { call, close, commands } = yield* opened(({ args: words }) => ({
      out: "ready\n",
      err: "note\n",
      ends: words.includes("make it") ? Effect.never : Deferred.await(over)
    }))
    yield* TestClock.adjust("5 seconds")
    for (const [at, command] of ["make it", "watch it", "make it"].entries()) {
      const fiber = yield* Effect.forkChild(call({ ...args, command }))
      yield* TestClock.adjust("200 millis")
      const { result } = yield* Fiber.join(fiber)
      assert.deepStrictEqual(result, {
        value: answered(
          { Command: command, Stdout: "ready\n", Stderr: "note\n", "Background PIDs": 101 + at },
          101 + at
        ),
        display: { _tag: "Text", text: `ready\nnote\nruns in the background, process group ${101 + at}` }
      })
    }
    const all = yield* commands.all
    assert.deepStrictEqual(
      all.map(({ command, id, startedAt }) => [command, id, startedAt]),
      [
        ["make it", 101, 5_200],
        ["watch it", 102, 5_400],
        ["make it", 103, 5_600]
      ]
    )
    // What the answer had is not shown again.
    assert.deepStrictEqual(yield* Effect.forEach(all, ({ output }) => output), ["", "", ""])
    const ends = Effect.forEach(all, ({ ended }) => ended)
    assert.deepStrictEqual(yield* ends, [undefined, undefined, undefined])
    yield* all[0]?.stop ?? Effect.void
    yield* Deferred.succeed(over, 7)
    assert.deepStrictEqual(yield* ends, ["ended by SIGTERM", "exit code 7", undefined])
    yield* close
    assert.deepStrictEqual((yield* ends)[2], "ended by SIGTERM")
  })
})
