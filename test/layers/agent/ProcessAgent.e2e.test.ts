import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Ref, Schema, Scope } from "effect"
import { TestClock } from "effect/testing"
import { readFileSync } from "node:fs"
import { type Activity, ChatEvent } from "../../../src/domain/chat/ChatEvent.ts"
import { EntryId } from "../../../src/domain/conversation/Conversation.ts"
import { TokenCount } from "../../../src/domain/tokens/Tokens.ts"
import * as ProcessAgent from "../../../src/layers/agent/ProcessAgent.ts"
import type { Task } from "../../../src/services/agent/AgentRunner.ts"

const encode = Schema.encodeSync(Schema.fromJsonString(Schema.toCodecJson(ChatEvent)))
const line = (event: ChatEvent): string => `${encode(event)}\n`
const { cases } = ChatEvent
const model = line(cases.ModelInfo.make({ model: "m", limit: TokenCount.make(1_000) }))
const content = (text: string) => line(cases.Content.make({ text }))
const finished = line(
  cases.Finished.make({
    reason: "STOP",
    usage: null,
    answer: EntryId.make("e1"),
    tokens: TokenCount.make(1),
    limit: TokenCount.make(1_000)
  })
)

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
    env: {},
    ...more
  })

const quiet: Omit<Task, "prompt"> = { activity: () => Effect.void, waiting: (work) => work }

const run = (script: string, more: Partial<ProcessAgent.ProcessAgentOptions> = {}, prompt = "the task") =>
  Effect.gen(function* () {
    const { start } = yield* agent(script, more)
    const { result } = yield* start({ ...quiet, prompt })
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
  it.effect("gets the task on stdin and returns its last message", () =>
    Effect.gen(function* () {
      const { duration, ...result } = yield* run(
        `const task = readFileSync(0, "utf8");
         say(${JSON.stringify(model + content("I look"))});
         say(${JSON.stringify(line(cases.ToolCallRequest.make({ id: "c1", call: { name: "ls", args: {} } })) + finished)});
         say(${JSON.stringify(model)});
         say(JSON.stringify({ _tag: "Content", text: "done: " + task }) + "\\n");
         say(${JSON.stringify(finished)})`,
        {},
        "läs\ndetta"
      )
      assert.isAtLeast(duration, 0)
      assert.deepStrictEqual(result, { text: "done: läs\ndetta", reason: "GOAL", turns: 2, session: undefined })
    })
  )

  it.effect("reports its progress", () =>
    Effect.gen(function* () {
      const seen: Array<Activity> = []
      const { start } = yield* agent(
        `say(${JSON.stringify(
          model +
            line(cases.Thought.make({ subject: "Where", description: "long" })) +
            line(cases.ToolCallStarted.make({ id: "1", name: "ls", title: "ls src" })) +
            line(
              cases.ToolCallResponse.make({
                id: "1",
                name: "ls",
                status: "success",
                display: null,
                message: null,
                duration: 1
              })
            ) +
            line(cases.Retry.make({ attempt: 2, delay: 1, reason: "x", message: "overloaded" })) +
            content("ok") +
            finished
        )})`
      )
      const { result } = yield* start({
        ...quiet,
        prompt: "x",
        activity: (activity) => Effect.sync(() => void seen.push(activity))
      })
      yield* result
      assert.deepStrictEqual(seen, [
        { _tag: "Thought", text: "Where" },
        { _tag: "CallStarted", id: "1", name: "ls", title: "ls src" },
        { _tag: "CallEnded", id: "1", name: "ls", status: "success" },
        { _tag: "Failed", message: "overloaded" }
      ])
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )

  it.effect("has exactly the given environment", () =>
    Effect.gen(function* () {
      const { text } = yield* run(
        `say(${JSON.stringify(model)});
         say(JSON.stringify({ _tag: "Content", text: Object.keys(process.env).sort().join() }) + "\\n");
         say(${JSON.stringify(finished)})`,
        { env: { ONLY: "this" } }
      )
      assert.strictEqual(text, "ONLY")
    })
  )

  it.effect("skips events of later versions", () =>
    Effect.gen(function* () {
      const script = `say(${JSON.stringify(`${model}{"_tag":"Rainbow","x":1}\n\n${content("ok")}${finished}`)})`
      assert.strictEqual((yield* run(script)).text, "ok")
    })
  )

  it.effect("reports in the result why it stopped early, with the result so far", () =>
    Effect.gen(function* () {
      const limit = line(cases.LimitReached.make({ limit: "turns", message: "100 turns are used up" }))
      const result = yield* run(`say(${JSON.stringify(model + content("half") + limit)})`)
      assert.strictEqual(result.reason, "MAX_TURNS")
      assert.include(result.text, "100 turns are used up")
      assert.include(result.text, "half")
    })
  )

  const bad: ReadonlyArray<readonly [name: string, script: string, says: ReadonlyArray<string>]> = [
    ["prints garbage", `say("hello world\\n"); setInterval(() => {}, 1000)`, ["an invalid event: hello world"]],
    ["prints a broken event", `say('{"_tag":"Content"}\\n')`, ["a broken event Content"]],
    ["ends within a line", `say(${JSON.stringify(model + content("x").slice(0, 12))})`, ["an invalid event"]],
    ["prints nothing", "", ["ended without an answer"]],
    ["ends before it is done", `say(${JSON.stringify(model + content("x"))})`, ["ended without an answer"]],
    [
      "exits 1",
      `process.stderr.write("one\\ntwo\\n"); process.exitCode = 1`,
      ["exit status 1", "the last lines of its error output: one\ntwo"]
    ],
    [
      "exits 1 after an answer",
      `say(${JSON.stringify(model + content("x") + finished)}); process.exitCode = 1`,
      ["exit status 1"]
    ],
    [
      "exits 1 with an event that says why",
      `say(${JSON.stringify(line(cases.Error.make({ reason: "x", message: "no key was given" })))}); process.exitCode = 1`,
      ["exit status 1", "no key was given"]
    ],
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
  for (const [name, script, says] of bad) {
    it.effect(`fails with a clear message when it ${name}`, () =>
      Effect.gen(function* () {
        const message = yield* failure(script)
        for (const words of says) assert.include(message, words)
        assert.isBelow(message.length, 10_000)
      })
    )
  }

  it.effect("reports a missing program", () =>
    Effect.gen(function* () {
      assert.include(yield* failure("", { command: ["/nowhere/agent"] }), "/nowhere/agent cannot be started")
      assert.include(yield* failure("", { cwd: "/nowhere" }), "cannot be started")
    })
  )

  it.effect("is not waited for when it does not read a long task", () =>
    Effect.gen(function* () {
      const script = `say(${JSON.stringify(model + content("ok") + finished)})`
      assert.strictEqual((yield* run(script, {}, "x".repeat(4_000_000))).text, "ok")
    })
  )

  it.effect("is ended when it is silent for too long", () =>
    Effect.gen(function* () {
      const pid = yield* Deferred.make<number>()
      const { start } = yield* agent(
        `say(JSON.stringify({ _tag: "Thought", subject: String(process.pid), description: "" }) + "\\n");
         setInterval(() => {}, 1000)`,
        { silenceTimeout: "1 minute" }
      )
      const running = yield* start({
        ...quiet,
        prompt: "x",
        activity: (activity) =>
          activity._tag === "Thought" ? Effect.asVoid(Deferred.succeed(pid, Number(activity.text))) : Effect.void
      })
      const fiber = yield* Effect.forkChild(Effect.flip(running.result))
      const alive = yield* Deferred.await(pid)
      // Its next line is waited for once it was taken.
      for (let turn = 0; turn < 20; turn += 1) yield* Effect.yieldNow
      yield* TestClock.adjust("1 minute")
      assert.include((yield* Fiber.join(fiber)).message, "said nothing for 1m")
      assert.isNumber(alive)
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )

  it.effect("is killed with all its processes when the scope closes", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const pids = yield* Deferred.make<ReadonlyArray<number>>()
      const { start } = yield* agent(
        `process.on("SIGTERM", () => {});
         const { spawn } = require("node:child_process");
         const child = spawn(process.execPath, ["-e", "process.on('SIGTERM', () => {}); process.stdout.write('.'); setInterval(() => {}, 1000)"]);
         child.stdout.once("data", () =>
           say(JSON.stringify({ _tag: "Thought", subject: process.pid + " " + child.pid, description: "" }) + "\\n"));
         setInterval(() => {}, 1000)`
      )
      yield* Scope.provide(
        start({
          ...quiet,
          prompt: "x",
          activity: (activity) =>
            activity._tag === "Thought"
              ? Effect.asVoid(Deferred.succeed(pids, activity.text.split(" ").map(Number)))
              : Effect.void
        }),
        scope
      )
      const alive = yield* Deferred.await(pids)
      assert.deepStrictEqual(alive.map(isAlive), [true, true])
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(alive.map(isAlive), [false, false])
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.effect("is not waited for when another process keeps its output open", () =>
    Effect.gen(function* () {
      const read = yield* Deferred.make<void>()
      const last = line(cases.Thought.make({ subject: "the last line", description: "" }))
      const { start } = yield* agent(
        `say(${JSON.stringify(model + content("ok") + finished + last)});
         require("node:child_process").spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio: "inherit" }).unref()`,
        { silenceTimeout: "1000 days" }
      )
      const { result } = yield* start({
        ...quiet,
        prompt: "x",
        activity: () => Effect.asVoid(Deferred.succeed(read, undefined))
      })
      const fiber = yield* Effect.forkChild(result)
      yield* Deferred.await(read)
      while (fiber.pollUnsafe() === undefined) {
        yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
        yield* TestClock.adjust("1 second")
      }
      assert.strictEqual((yield* Fiber.join(fiber)).text, "ok")
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )

  it.effect("rejects a second message when it takes one task", () =>
    Effect.gen(function* () {
      const { start } = yield* agent(`say(${JSON.stringify(model + content("ok") + finished)})`)
      const { result, send } = yield* start({ ...quiet, prompt: "x" })
      assert.include((yield* Effect.flip(send("and?"))).message, "takes one task")
      yield* result
      assert.include((yield* Effect.flip(send("and?"))).message, "start another agent")
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )
})

describe("an agent that takes messages", () => {
  const parrot = `
    let rest = "";
    process.stdin.on("data", (bytes) => {
      rest += bytes;
      for (let at = rest.indexOf("\\n"); at >= 0; at = rest.indexOf("\\n")) {
        const { message } = JSON.parse(rest.slice(0, at));
        rest = rest.slice(at + 1);
        if (message === "die") process.exit(3);
        say(${JSON.stringify(model)});
        say(JSON.stringify({ _tag: "Content", text: "heard " + message }) + "\\n");
        say(${JSON.stringify(finished)});
      }
    });`

  it.effect("answers each in turn, the task first", () =>
    Effect.gen(function* () {
      const { start } = yield* agent(parrot, { takesMessages: true })
      const { result, send } = yield* start({ ...quiet, prompt: "the\ntask" })
      assert.strictEqual((yield* result).text, "heard the\ntask")
      assert.strictEqual((yield* result).text, "heard the\ntask")
      assert.strictEqual(yield* send("a"), "heard a")
      assert.deepStrictEqual(yield* Effect.all([send("b"), send("c")], { concurrency: 2 }), ["heard b", "heard c"])
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )

  it.effect("reports its death to current and later senders", () =>
    Effect.gen(function* () {
      const told = yield* Ref.make("")
      const { start } = yield* agent(parrot, { takesMessages: true })
      const { result, send } = yield* start({ ...quiet, prompt: "x" })
      yield* result
      yield* Ref.set(told, (yield* Effect.flip(send("die"))).message)
      assert.include(yield* Ref.get(told), "exit status 3")
      assert.include((yield* Effect.flip(send("more"))).message, "start another agent")
      assert.strictEqual((yield* result).text, "heard x")
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )
})
