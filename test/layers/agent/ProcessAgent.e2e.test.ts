import { NodeServices } from "@effect/platform-node"
import { Deferred, Effect, Exit, Fiber, Scope } from "effect"
import { TestClock } from "effect/testing"
import { readFileSync } from "node:fs"
import { type LocalAgent, localDefaults } from "../../../src/domain/agent/AgentDefinition.ts"
import type { Activity } from "../../../src/domain/chat/ChatEvent.ts"
import * as ProcessAgent from "../../../src/layers/agent/ProcessAgent.ts"
import type { Task } from "../../../src/services/agent/AgentRunner.ts"
import { eventText, parseTask, type ProcessEvent } from "../../../src/services/agent/ProcessAgentProtocol.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const line = (event: ProcessEvent): string => `${eventText(event)}\n`
const working = (activity: Activity): string => line({ _tag: "Working", activity })
const ended = (text: string): string => line({ _tag: "Ended", text, reason: "GOAL", turns: 2, duration: 5 })
/** As a script writes it, with a text that it computes. */
const endedWith = (expression: string) =>
  `say(JSON.stringify({ _tag: "Ended", text: ${expression}, reason: "GOAL", turns: 2, duration: 5 }) + "\\n")`
const thoughtWith = (expression: string) =>
  `say(JSON.stringify({ _tag: "Working", activity: { _tag: "Thought", text: ${expression} } }) + "\\n")`

const definition: LocalAgent = {
  ...localDefaults,
  kind: "local",
  name: "one",
  description: "x",
  prompt: "You are one.",
  tools: ["*"],
  runner: "process"
}
const share = { tools: ["read_file"], model: "m" }

/** A program of its own, as a text. `say` writes to stdout. */
const agent = (script: string, more: Partial<ProcessAgent.ProcessAgentOptions> = {}) =>
  ProcessAgent.make({
    command: [
      process.execPath,
      "-e",
      `const { readFileSync, writeSync } = require("node:fs");
       const say = (text) => { for (let rest = Buffer.from(text); rest.length > 0;) {
         try { rest = rest.subarray(writeSync(1, rest)) } catch (error) { if (error.code !== "EAGAIN") throw error } } };
       ${script}`
    ],
    definition,
    env: {},
    ...more
  })

const quiet: Omit<Task, "prompt"> = { activity: () => Effect.void, waiting: (work) => work }

const run = (script: string, more: Partial<ProcessAgent.ProcessAgentOptions> = {}, prompt = "the task") =>
  Effect.gen(function* () {
    const { start } = yield* agent(script, more)
    const { result } = yield* start({ ...quiet, prompt }, share)
    return yield* result
  }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))

const failure = (script: string, more: Partial<ProcessAgent.ProcessAgentOptions> = {}) =>
  Effect.map(Effect.flip(run(script, more)), ({ message }) => message)

/** Not so a zombie: that is dead, and nobody has looked. */
const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8"))
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "ENOENT" && process.platform !== "linux"
  }
}

describe("an agent as a process", () => {
  it.effect("gets its definition and its task on stdin, with no more tools than its parent has", function* () {
    const { text, ...result } = yield* run(endedWith(`readFileSync(0, "utf8")`), {}, "läs\ndetta")
    assert.deepStrictEqual(result, { reason: "GOAL", turns: 2, duration: 5, session: undefined, note: undefined })
    assert.deepStrictEqual(parseTask(text), {
      definition: { ...definition, tools: ["read_file"], runner: "inside" },
      model: "m",
      prompt: "läs\ndetta"
    })
  })

  it.effect("reports its progress", NodeServices.layer, function* () {
    const activities: ReadonlyArray<Activity> = [
      { _tag: "Thought", text: "Where" },
      { _tag: "CallStarted", id: "1", name: "ls", title: "ls src" },
      { _tag: "CallEnded", id: "1", name: "ls", status: "success" },
      { _tag: "Failed", message: "overloaded" }
    ]
    const seen: Array<Activity> = []
    const { start } = yield* agent(`say(${JSON.stringify(`${activities.map(working).join("\n")}\n${ended("ok")}`)})`)
    const { result } = yield* start(
      { ...quiet, prompt: "x", activity: (activity) => Effect.sync(() => void seen.push(activity)) },
      share
    )
    yield* result
    assert.deepStrictEqual(seen, activities)
  })

  it.effect("has exactly the given environment", function* () {
    const { text } = yield* run(endedWith("Object.keys(process.env).sort().join()"), { env: { ONLY: "this" } })
    assert.strictEqual(text, "ONLY")
  })

  const bad: ReadonlyArray<readonly [name: string, script: string, says: ReadonlyArray<string>]> = [
    ["prints garbage", `say("hello world\\n"); setInterval(() => {}, 1000)`, ["an invalid event: hello world"]],
    ["prints another program's events", `say('{"_tag":"Content","text":"x"}\\n')`, ["an invalid event"]],
    ["ends within a line", `say(${JSON.stringify(ended("x").slice(0, 12))})`, ["an invalid event"]],
    ["prints nothing", "", ["ended without an answer"]],
    ["ends before it is done", thoughtWith(`"x"`), ["ended without an answer"]],
    [
      "exits 1",
      `process.stderr.write("one\\ntwo\\n"); process.exitCode = 1`,
      ["exit status 1", "the last lines of its error output: one\ntwo"]
    ],
    ["exits 1 after an answer", `say(${JSON.stringify(ended("x"))}); process.exitCode = 1`, ["exit status 1"]],
    ["exits 137", "process.exitCode = 137", ["exit status 137", "was killed"]],
    ["kills itself", `process.kill(process.pid, "SIGKILL")`, ["SIGKILL"]],
    [
      "prints 100 MB on one line",
      `const x = "x".repeat(1e6); for (let n = 0; n < 100; n += 1) say(x)`,
      ["more than 8 MiB"]
    ],
    [
      "writes a lot to stderr",
      `for (let n = 0; n < 20000; n += 1) process.stderr.write("line " + n + "\\n"); process.exitCode = 1`,
      ["line 19999"]
    ]
  ]
  it.effect.each(bad)("fails with a clear message when it %s", function* ([, script, says]) {
    const message = yield* failure(script)
    for (const words of says) assert.include(message, words)
    assert.isBelow(message.length, 10_000)
  })

  it.effect("reports a missing program", function* () {
    assert.include(yield* failure("", { command: ["/nowhere/agent"] }), "/nowhere/agent cannot be started")
    assert.include(yield* failure("", { cwd: "/nowhere" }), "cannot be started")
  })

  it.effect("is not waited for when it does not read a long task", function* () {
    assert.strictEqual((yield* run(`say(${JSON.stringify(ended("ok"))})`, {}, "x".repeat(4_000_000))).text, "ok")
  })

  it.effect("is ended some minutes after its own limit of time", NodeServices.layer, function* () {
    const pid = yield* Deferred.make<number>()
    const { start } = yield* agent(`${thoughtWith("String(process.pid)")}; setInterval(() => {}, 1000)`)
    const running = yield* start(
      {
        ...quiet,
        prompt: "x",
        activity: (activity) =>
          activity._tag === "Thought" ? Effect.asVoid(Deferred.succeed(pid, Number(activity.text))) : Effect.void
      },
      share
    )
    const fiber = yield* Effect.forkChild(Effect.flip(running.result))
    const alive = yield* Deferred.await(pid)
    yield* TestClock.adjust("12 minutes")
    assert.isTrue(isAlive(alive))
    yield* TestClock.adjust("1 minute")
    assert.include((yield* Fiber.join(fiber)).message, "it worked for 13m and was ended")
  })

  it.effect("is killed with all its processes when the scope closes", NodeServices.layer, function* () {
    const scope = yield* Scope.make()
    const pids = yield* Deferred.make<ReadonlyArray<number>>()
    const { start } = yield* agent(
      `process.on("SIGTERM", () => {});
         const { spawn } = require("node:child_process");
         const child = spawn(process.execPath, ["-e", "process.on('SIGTERM', () => {}); process.stdout.write('.'); setInterval(() => {}, 1000)"]);
         child.stdout.once("data", () => ${thoughtWith(`process.pid + " " + child.pid`)});
         setInterval(() => {}, 1000)`
    )
    yield* Scope.provide(
      start(
        {
          ...quiet,
          prompt: "x",
          activity: (activity) =>
            activity._tag === "Thought"
              ? Effect.asVoid(Deferred.succeed(pids, activity.text.split(" ").map(Number)))
              : Effect.void
        },
        share
      ),
      scope
    )
    const alive = yield* Deferred.await(pids)
    assert.deepStrictEqual(alive.map(isAlive), [true, true])
    yield* Scope.close(scope, Exit.void)
    assert.deepStrictEqual(alive.map(isAlive), [false, false])
  })

  it.effect("is not waited for when another process keeps its output open", NodeServices.layer, function* () {
    const read = yield* Deferred.make<void>()
    const last = working({ _tag: "Thought", text: "the last line" })
    const { start } = yield* agent(
      `say(${JSON.stringify(ended("ok") + last)});
         require("node:child_process").spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio: "inherit" }).unref()`,
      { definition: { ...definition, timeoutMinutes: 1_000_000 } }
    )
    const { result } = yield* start(
      { ...quiet, prompt: "x", activity: () => Effect.asVoid(Deferred.succeed(read, undefined)) },
      share
    )
    const fiber = yield* Effect.forkChild(result)
    yield* Deferred.await(read)
    while (fiber.pollUnsafe() === undefined) {
      yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      yield* TestClock.adjust("1 second")
    }
    assert.strictEqual((yield* Fiber.join(fiber)).text, "ok")
  })

  it.effect("rejects messages: it takes one task", NodeServices.layer, function* () {
    const { start } = yield* agent(`say(${JSON.stringify(ended("ok"))})`)
    const { result, send } = yield* start({ ...quiet, prompt: "x" }, share)
    assert.include((yield* Effect.flip(send("and?"))).message, "takes one task")
    yield* result
    assert.include((yield* Effect.flip(send("and?"))).message, "start another agent")
  })
})
