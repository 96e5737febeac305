import { NodeServices } from "@effect/platform-node"
import { Effect, Exit, Fiber, FileSystem, Layer, type Option, Path, Queue, Ref, Scope, Sink, Stream } from "effect"
import { ChildProcessSpawner } from "effect/process"
import { TestClock } from "effect/testing"
import { execFileSync } from "node:child_process"
import * as TreeSitterGrammar from "../../../../src/layers/tools/TreeSitterGrammar.ts"
import { Environment } from "../../../../src/services/platform/Environment.ts"
import * as BackgroundCommands from "../../../../src/services/tools/builtin/BackgroundCommands.ts"
import { shell } from "../../../../src/services/tools/builtin/Shell.ts"
import { ShellSettings } from "../../../../src/services/tools/builtin/ShellProcess.ts"
import type { CallContext, Tool } from "../../../../src/services/tools/Tool.ts"
import { Workspace, WorkspaceError } from "../../../../src/services/workspace/Workspace.ts"
import { interruptSweep } from "../../../support/interruptSweep.ts"
import { needs } from "../../../support/machine.ts"
import { processes, untilNone } from "../../../support/processGroups.ts"
import { assert, describe, it } from "../../../support/vitest.ts"

/** A workspace in a folder of its own, which has no links. */
const workspace = Layer.effect(
  Workspace,
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const root = yield* Effect.flatMap(
      fs.makeTempDirectoryScoped({ directory: process.env["PALIMPSEST_TEST_FOLDER"], prefix: "shell-" }),
      (folder) => fs.realPath(folder)
    )
    return {
      root,
      folders: [root],
      path: (given: string) => {
        const place = path.resolve(root, given)
        return place === root || place.startsWith(`${root}/`)
          ? Effect.succeed(place)
          : Effect.fail(
              new WorkspaceError({ message: `${given} is outside the workspace`, reason: "OutsideWorkspace" })
            )
      },
      shown: (absolute: string) => path.relative(root, absolute),
      files: (files) => files,
      held: (folder: string) => Effect.succeed(folder)
    }
  })
)

const variables = { PATH: process.env["PATH"] ?? "", PLAIN: "seen", MY_API_KEY: "hidden-1", NAMED_TOKEN: "passed-1" }

const services = Layer.mergeAll(
  workspace,
  Layer.succeed(Environment, { variables: Effect.succeed(variables) }),
  Layer.succeed(ShellSettings, {
    inactivity: "300 seconds",
    grace: "300 millis",
    bufferBytes: 16 * 1024 * 1024,
    passedVariables: ["NAMED_TOKEN"]
  })
).pipe(Layer.provideMerge(NodeServices.layer))

const contextWith = (progress: CallContext["progress"]): CallContext => ({
  id: "call-1",
  agent: "main",
  progress,
  activity: () => Effect.void,
  waiting: (work) => work
})

const silent = contextWith(() => Effect.void)

const call = (tool: Tool, args: object, context = silent) =>
  Effect.flatMap(tool.call(args, context), ({ run }) => Effect.map(run, ({ value }) => String(value)))

/** One command, in a tool of its own. */
const answer = (args: object) => Effect.flatMap(shell, (tool) => call(tool, args))

const labels = [
  "Command",
  "Directory",
  "Stdout",
  "Stderr",
  "Error",
  "Exit Code",
  "Signal",
  "Background PIDs",
  "Process Group PGID"
]

/** What stands behind a label, to the next one. */
const field = (text: string, label: string): string => {
  const next = labels[labels.indexOf(label) + 1]
  const from = text.indexOf(`${label}: `) + label.length + 2
  return text.slice(from, next === undefined ? undefined : text.indexOf(`\n${next}: `, from))
}

/** Processes of a group that live. */
const living = (group: string) => processes().filter((each) => String(each.group) === group)

/** Whether a process lives, by its number. */
const lives = (pid: number) => processes().some((each) => each.pid === pid)

/** With time that passes: for what waits for real processes. */
const live = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  TestClock.withLive(effect).pipe(Effect.scoped, Effect.provide(services))

describe("run_shell_command", () => {
  it.live.each([
    ["in the foreground", {}],
    ["in the background", { is_background: true }]
  ] as const)("a command %s begins only when it is registered", services, function* ([, more]) {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const { root } = yield* Workspace
    const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
    const mark = path.join(root, "mark")
    let isEarly: boolean | undefined
    const slow = ChildProcessSpawner.make((command) =>
      Effect.tap(spawner.spawn(command), () =>
        Effect.andThen(
          Effect.sleep("300 millis"),
          Effect.map(Effect.orDie(fs.exists(mark)), (there) => void (isEarly = there))
        )
      )
    )
    const tool = yield* Effect.provideService(shell, ChildProcessSpawner.ChildProcessSpawner, slow)
    yield* call(tool, { command: "echo > mark", ...more })
    while (!(yield* fs.exists(mark))) yield* Effect.sleep("10 millis")
    assert.isFalse(isEarly)
  })

  it.live.each([
    ["the shell is bash", "echo ${BASH_VERSION:+bash}", { Stdout: "bash\n" }],
    ["the input is empty", "cat; echo end", { Stdout: "end\n" }],
    ["a signal", "kill -9 $$", { "Exit Code": "137", Signal: "SIGKILL", Stderr: "(empty)" }],
    [
      "the whole group is killed by itself",
      "echo before; kill -9 0",
      { "Exit Code": "(none)", Signal: "SIGKILL", Stdout: "before\n" }
    ],
    ["plain variables are passed", 'echo "$PLAIN"', { Stdout: "seen\n" }],
    ["keys are not", 'echo "[$MY_API_KEY]"; env | grep -c hidden', { Stdout: "[]\n0\n" }],
    ["keys that are named are", 'echo "$NAMED_TOKEN"', { Stdout: "passed-1\n" }],
    [
      "keys that a command finds all the same are not shown, whatever stands between them",
      String.raw`printf 'PLAIN=seen\0MY_API_KEY=hidden-1\0N=1' > env; cat env; echo " $NAMED_TOKEN"; echo 'xhidden-1hidden-1 hidden-2' >&2`,
      {
        Stdout: "PLAIN=seen\nMY_API_KEY=[redacted: MY_API_KEY]\nN=1 passed-1\n",
        Stderr: "x[redacted: MY_API_KEY][redacted: MY_API_KEY] hidden-2\n"
      }
    ],
    ["bytes that are no UTF-8", String.raw`printf 'caf\xe9 and more text'`, { Stdout: "caf\ufffd and more text" }],
    ["binary output", String.raw`head -c 5000 /dev/zero`, { Stdout: "(binary output, 5,000 bytes)" }],
    ["colours", String.raw`printf '\033[31mred\033[0m\n'`, { Stdout: "red\n" }],
    ["stream 3 is closed", "echo forged >&3", { "Exit Code": "1", Stdout: "(empty)" }]
  ] as const)("%s", services, function* ([, command, expected]) {
    const text = yield* answer({ command })
    for (const [label, value] of Object.entries(expected)) assert.strictEqual(field(text, label), value, label)
  })

  it.live("runs in any folder of the workspace, and in no other", services, function* () {
    const fs = yield* FileSystem.FileSystem
    const { root } = yield* Workspace
    yield* fs.makeDirectory(`${root}/inner`)
    yield* fs.writeFileString(`${root}/file`, "")
    const text = yield* answer({ command: "pwd", dir_path: "inner" })
    assert.strictEqual(field(text, "Stdout"), `${root}/inner\n`)
    assert.strictEqual(field(text, "Directory"), "inner")
    for (const [dir, expected] of [
      ["../..", /outside the workspace/],
      ["absent", /could not be started/],
      ["ab\nsent", /^the command could not be started: "[^\n]*ab\\nsent[^\n]*"$/],
      ["file", /not a folder/]
    ] as const) {
      const failure = yield* Effect.flip(answer({ command: "pwd", dir_path: dir }))
      assert.match(failure.message, expected)
    }
  })

  it.live.each([
    ["an empty command", { command: "  \n" }, /not an empty text/],
    ["one that is too long", { command: `: ${"x".repeat(200_000)}` }, /too long/],
    ["a NUL", { command: "echo a\u0000b" }, /NUL/],
    ["not an object", [1], /wrongly/]
  ] as const)("refuses %s in one line", services, function* ([, args, expected]) {
    const failure = yield* Effect.flip(answer(args))
    assert.match(failure.message, expected)
    assert.notInclude(failure.message, "\n")
  })

  it.live("keeps both ends of 40 MB, within its buffer", services, function* () {
    const text = yield* answer({ command: "echo first; yes 0123456789abcde | head -c 40000000; echo; echo last" })
    const stdout = field(text, "Stdout")
    assert.isBelow(stdout.length, 16 * 1024 * 1024 + 200)
    assert.isAbove(stdout.length, 16 * 1024 * 1024 - 200)
    assert.isTrue(stdout.startsWith("first\n0123456789abcde\n"))
    assert.isTrue(stdout.endsWith("\nlast\n"))
    assert.include(
      stdout,
      `${(40_000_012 - 16 * 1024 * 1024).toLocaleString("en-US")} of 40,000,012 bytes are left out`
    )
  })

  it.effect.each([
    ["a plain one", "echo begun; sleep 1000"],
    ["one that has children", "echo begun; sleep 1000 & sleep 1000 & wait"],
    ["one that ignores SIGTERM", "trap '' TERM; echo begun; while :; do sleep 1000; done"],
    ["one that prints without end", "yes begun"]
  ] as const)(
    "a cancelled command ends with its group, and its output is reported: %s",
    services,
    function* ([, command]) {
      const last = yield* Ref.make("")
      const shown = yield* Queue.unbounded<string>()
      const tool = yield* shell
      const progress = (text: string) => Effect.andThen(Ref.set(last, text), Queue.offer(shown, text))
      const fiber = yield* Effect.forkChild(call(tool, { command }, contextWith(progress)))
      yield* untilTold(Queue.poll(shown))
      yield* Fiber.interrupt(fiber)
      const text = yield* Ref.get(last)
      assert.match(field(text, "Stdout"), /^begun\n/)
      assert.match(field(text, "Error"), /cancelled/)
      yield* untilNone(() => living(field(text, "Process Group PGID")))
    }
  )

  it.live.each([
    ["forks and leaves", "sleep 1000 & echo $!", "0"],
    ["forks twice", "(sleep 1000 & echo $!)", "0"]
  ] as const)(
    "one that %s: the call ends, the child is listed and lives as long as the tool",
    services,
    function* ([, command, code]) {
      const scope = yield* Scope.make()
      const tool = yield* Scope.provide(shell, scope)
      const text = yield* call(tool, { command })
      const pid = Number(field(text, "Stdout").trim())
      assert.strictEqual(field(text, "Background PIDs"), String(pid))
      assert.strictEqual(field(text, "Exit Code"), code)
      assert.isTrue(lives(pid))
      yield* Scope.close(scope, Exit.void)
      yield* untilNone(() => [pid].filter(lives))
    }
  )

  it.live("a command in the background is listed with its output, and can be stopped", services, function* () {
    const list = yield* BackgroundCommands.make
    const tool = yield* Effect.provideService(shell, BackgroundCommands.BackgroundCommands, list)
    const text = yield* call(tool, { command: "sleep 0.4; echo late; sleep 1000", is_background: true })
    const [task = assert.fail("nothing is listed")] = yield* list.all
    assert.strictEqual(String(task.id), field(text, "Process Group PGID"))
    assert.isUndefined(yield* task.ended)
    const fs = yield* FileSystem.FileSystem
    // Looking at a file lets the output arrive.
    yield* Effect.repeat(Effect.andThen(fs.exists("/"), task.output), {
      until: (output) => output.includes("late")
    })
    yield* task.stop
    assert.strictEqual(yield* task.ended, "ended by SIGTERM")
    yield* untilNone(() => living(String(task.id)))
  })

  it.effect("a pipe is read by no command that runs without asking", () =>
    live(
      Effect.gen(function* () {
        const { root } = yield* Workspace
        execFileSync("mkfifo", [`${root}/pipe`])
        const { question } = yield* (yield* shell).call({ command: "wc -l < pipe" }, silent)
        assert.deepStrictEqual((yield* question)?.grants, [])
      })
    ).pipe(Effect.provide(TreeSitterGrammar.layer))
  )

  needs("git")("git", () => {
    it.live("runs no program of a repository to find changed files", services, function* () {
      const { root } = yield* Workspace
      const fs = yield* FileSystem.FileSystem
      execFileSync("git", ["init"], { cwd: root, stdio: "ignore" })
      execFileSync("git", ["config", "core.fsmonitor", `touch ${root}/PWNED; false`], { cwd: root })
      // The attack works where nothing is done against it.
      execFileSync("git", ["status"], { cwd: root, stdio: "ignore" })
      assert.isTrue(yield* fs.exists(`${root}/PWNED`))
      yield* fs.remove(`${root}/PWNED`)
      const text = yield* answer({ command: "git status" })
      assert.strictEqual(field(text, "Exit Code"), "0")
      assert.isFalse(yield* fs.exists(`${root}/PWNED`))
    })

    it.live("does not treat a folder as a repository because an edit made it look like one", services, function* () {
      const { root } = yield* Workspace
      const fs = yield* FileSystem.FileSystem
      for (const folder of ["objects", "refs"]) yield* fs.makeDirectory(`${root}/bare/${folder}`, { recursive: true })
      yield* fs.writeFileString(`${root}/bare/HEAD`, "ref: refs/heads/main\n")
      yield* fs.writeFileString(
        `${root}/bare/config`,
        `[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = ${root}\n\tfsmonitor = "touch ${root}/PWNED; false"\n`
      )
      // The attack works where nothing is done against it.
      execFileSync("git", ["status"], { cwd: `${root}/bare`, stdio: "ignore" })
      assert.isTrue(yield* fs.exists(`${root}/PWNED`))
      yield* fs.remove(`${root}/PWNED`)
      const text = yield* answer({ command: "cd bare && git status" })
      assert.isFalse(yield* fs.exists(`${root}/PWNED`))
      assert.include(field(text, "Stderr"), "safe.bareRepository")
    })
  })

  it.live("changes into subfolders only", services, function* () {
    const { root } = yield* Workspace
    const fs = yield* FileSystem.FileSystem
    for (const folder of ["other/sub", "sub"]) yield* fs.makeDirectory(`${root}/${folder}`, { recursive: true })
    const elsewhere = Layer.succeed(Environment, {
      variables: Effect.succeed({ ...variables, CDPATH: `${root}/other` })
    })
    const text = yield* answer({ command: "cd sub && pwd" }).pipe(Effect.provide(elsewhere))
    assert.strictEqual(field(text, "Stdout"), `${root}/sub\n`)
  })
})

/** Processes that end when they are told to, and what of them is left. */
const countedSpawner = Effect.sync(() => {
  let living = 0
  let started = 0
  const encoder = new TextEncoder()
  const spawner = ChildProcessSpawner.make(() =>
    Effect.acquireRelease(
      Effect.sync(() => {
        living += 1
        started += 1
        return ChildProcessSpawner.makeHandle({
          pid: ChildProcessSpawner.ProcessId(4321),
          exitCode: Effect.as(Effect.yieldNow, ChildProcessSpawner.ExitCode(0)),
          isRunning: Effect.succeed(true),
          kill: () => Effect.void,
          stdin: Sink.drain,
          stdout: Stream.make(encoder.encode("out\n"), encoder.encode("more\n")),
          stderr: Stream.make(encoder.encode("err\n")),
          all: Stream.empty,
          getInputFd: () => Sink.drain,
          getOutputFd: () => Stream.make(encoder.encode("4321 0\n 4321 1 4321 S\n")),
          unref: Effect.succeed(Effect.void)
        })
      }),
      () =>
        Effect.sync(() => {
          living -= 1
        })
    )
  )
  return { spawner, left: () => living, started: () => started }
})

it.effect("interrupted at any suspension point, a command leaves no process", services, function* () {
  const runs: Array<Effect.Success<typeof countedSpawner>> = []
  const points = yield* interruptSweep(
    () =>
      Effect.gen(function* () {
        const counted = yield* countedSpawner
        runs.push(counted)
        const tool = yield* Effect.provideService(shell, ChildProcessSpawner.ChildProcessSpawner, counted.spawner)
        const before = counted.left()
        const text = yield* call(tool, { command: "anything" })
        assert.strictEqual(before, 0)
        return text
      }),
    (exit) =>
      Effect.sync(() => {
        assert.strictEqual(runs.at(-1)?.left() ?? 0, 0)
        if (Exit.isSuccess(exit)) assert.strictEqual(field(exit.value, "Stdout"), "out\nmore\n")
      })
  )
  assert.isAbove(points, 5)
  assert.isAbove(runs.filter(({ started }) => started() > 0).length, 3)
})

/** Lets a second pass again and again, until something is there: processes take their own time. */
const untilTold = <A, E, R>(look: Effect.Effect<Option.Option<A>, E, R>) =>
  Effect.gen(function* () {
    for (;;) {
      const found = yield* look
      if (found._tag === "Some") return found.value
      yield* TestClock.withLive(Effect.sleep("5 millis"))
      yield* TestClock.adjust("100 millis")
    }
  })
