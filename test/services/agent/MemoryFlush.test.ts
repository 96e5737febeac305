import { Effect, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import { call } from "../../../src/domain/content/Content.ts"
import { entries } from "../../../src/domain/conversation/Conversation.ts"
import { hang, Script, type Step } from "../../../src/layers/testing/ScriptedModel.ts"
import * as Agent from "../../../src/services/agent/Agent.ts"
import * as MemoryFlush from "../../../src/services/agent/MemoryFlush.ts"
import { HookSystem } from "../../../src/services/hooks/HookSystem.ts"
import { InvalidRequestError, ModelError, type ModelRequest } from "../../../src/services/model/Model.ts"
import { Approval } from "../../../src/services/tools/Approval.ts"
import * as Tool from "../../../src/services/tools/Tool.ts"
import { begin, taken } from "../../support/sending.ts"
import { calls, echo, runtime, saidIn } from "../../support/subagents.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** Conversations in a window of 20,000 tokens, compressed from 10,000 on; facts are saved from 6,000 on. */
const window = { window: 20_000, threshold: 0.5 }

const about = (tokens: number) => "word ".repeat(tokens)

const isFlush = (request: ModelRequest) => saidIn(request).includes("about to be compressed")

/** Answers a flush with these steps in turn, and all else with one word. */
const flushing = (...steps: ReadonlyArray<Step>) => {
  let used = 0
  return runtime((request) => (isFlush(request) ? (steps[used++] ?? "NO_REPLY") : "Well."))
}

/** A conversation whose facts are saved, and what was saved. */
const remembering = Effect.fnUntraced(function* (logBytes: () => number = () => 0) {
  const facts: Array<string> = []
  const remember = Tool.make({
    name: "save_memory",
    description: "Saves a fact.",
    parameters: Schema.Struct({ fact: Schema.String }),
    result: Schema.String,
    kind: "read",
    run: ({ fact }) => Effect.sync(() => ({ value: `saved as number ${facts.push(fact)}` }))
  })
  const tools = [echo("look"), remember]
  const hooks = yield* HookSystem
  const fired: Array<string> = []
  yield* hooks.subscribe("watch", ({ _tag }) => Effect.sync(() => void fired.push(_tag)))
  const { chat, events: log } = yield* begin(window)
  const beforeTurn = yield* MemoryFlush.make({
    name: "main",
    chat,
    tools,
    memoryTool: "save_memory",
    logBytes: Effect.sync(logBytes),
    hooks
  })
  const approval = yield* Approval
  const say = (message: string) =>
    taken(Agent.run({ name: "main", chat, tools, beforeTurn }, message).pipe(Stream.provideService(Approval, approval)))
  const flushes = Script.use((script) =>
    Effect.map(script.calls, (all) => all.map(({ request }) => request).filter(isFlush))
  )
  return { chat, facts, fired, flushes, log, say }
})

const save = (fact: string) => calls(call("save_memory", { fact }))

describe("the memory flush", () => {
  it.effect(
    "openclaw: saves facts shortly before a compression, once a cycle (OpenClaw 2026.9; ours: opening a session begins a cycle)",
    flushing(save("The port is 8080"), "NO_REPLY"),
    function* () {
      const { chat, facts, fired, flushes, say } = yield* remembering()
      yield* say(about(2_000))
      assert.lengthOf(yield* flushes, 0)
      yield* say(about(4_500))
      assert.deepStrictEqual(facts, ["The port is 8080"])
      assert.include(fired, "BeforeTool", "as in any run")
      const count = (yield* flushes).length
      yield* say("And?")
      assert.lengthOf(yield* flushes, count)
      assert.strictEqual((yield* Effect.orDie(chat.compress()))._tag, "Compressed")
      yield* say(about(8_000))
      assert.lengthOf(yield* flushes, count + 1)
    }
  )

  it.effect(
    "openclaw: nothing of the hidden turn enters the conversation or is shown (OpenClaw 2026.9; ours: a line says that facts were saved)",
    flushing(save("The port is 8080"), "NO_REPLY"),
    function* () {
      const { chat, log, say } = yield* remembering()
      const { error, events } = yield* say(about(6_500))
      assert.isUndefined(error)
      const whole = JSON.stringify([yield* chat.contents, log])
      for (const word of ["about to be compressed", "save_memory", "NO_REPLY", "8080"]) assert.notInclude(whole, word)
      assert.deepStrictEqual(
        events.flatMap((event) => (event._tag === "Notice" ? [`${event.source}: ${event.message}`] : [])),
        ["memory: 1 fact was saved before the conversation is compressed"]
      )
      assert.isFalse(events.some(({ _tag }) => _tag === "ToolCallRequest" || _tag === "ToolCallStarted"))
      assert.strictEqual(events.flatMap((event) => (event._tag === "Content" ? [event.text] : [])).join(""), "Well.")
    }
  )

  it.effect(
    "openclaw: an answer that means something is shown, NO_REPLY is not (OpenClaw 2026.9; ours: as one line beside the conversation)",
    flushing("Memory is full."),
    function* () {
      const { say } = yield* remembering()
      const { events } = yield* say(about(6_500))
      assert.deepStrictEqual(
        events.flatMap((event) => (event._tag === "Notice" ? [event.message] : [])),
        ["Memory is full."]
      )
    }
  )

  it.effect(
    "openclaw: workspace files are read-only: only the memory tool runs (OpenClaw 2026.9; ours: all tools are declared as before, so that the provider's cache holds)",
    flushing(calls(call("look", { word: "here" }), call("save_memory", { fact: "A fact" })), "NO_REPLY"),
    function* () {
      const { facts, flushes, say } = yield* remembering()
      yield* say(about(6_500))
      assert.deepStrictEqual(facts, ["A fact"])
      const [first, second] = yield* flushes
      assert.isDefined(second)
      assert.include(saidIn(second), "look is not available now")
      const all = yield* Script.use((script) => script.calls)
      const turn = all.map(({ request }) => request).find((request) => !isFlush(request))
      assert.deepStrictEqual(first?.tools, turn?.tools)
      assert.strictEqual(first?.systemInstruction, turn?.systemInstruction)
    }
  )

  it.effect("openclaw: 2 MB of log force it (OpenClaw 2026.9)", flushing(), function* () {
    let bytes = 500_000
    const { flushes, say } = yield* remembering(() => bytes)
    yield* say("Hello")
    assert.lengthOf(yield* flushes, 0)
    bytes += 2 * 1024 * 1024
    yield* say("And?")
    assert.lengthOf(yield* flushes, 1)
  })

  let tries = 0
  it.effect(
    "openclaw: at most 3 failed tries, and the reply comes whatever fails (OpenClaw 2026.9)",
    runtime((request) => {
      if (!isFlush(request)) return "Well."
      tries += 1
      if (tries === 1) throw new Error("not foreseen")
      return new ModelError({ reason: new InvalidRequestError({ detail: "no" }) })
    }),
    function* () {
      const { flushes, say } = yield* remembering()
      for (const message of [about(6_500), "One", "Two", "Three", "Four"]) {
        const { error, events } = yield* say(message)
        assert.isUndefined(error)
        assert.strictEqual(events.at(-1)?._tag, "Finished")
      }
      assert.lengthOf(yield* flushes, 3)
    }
  )

  it.effect("a flush that hangs ends after two minutes, and with the run", flushing(hang), function* () {
    const { chat, flushes, say } = yield* remembering()
    yield* Effect.forkChild(say(about(6_500)))
    while ((yield* flushes).length === 0) yield* Effect.promise(() => new Promise((resume) => setImmediate(resume)))
    yield* TestClock.adjust("121 seconds")
    while (entries(yield* chat.conversation).length < 2)
      yield* Effect.promise(() => new Promise((resume) => setImmediate(resume)))
  })
})
