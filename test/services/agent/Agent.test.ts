import { Deferred, Effect, Fiber, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import { text, user } from "../../../src/domain/content/Content.ts"
import { itemTokens, view } from "../../../src/domain/conversation/Conversation.ts"
import * as Agent from "../../../src/services/agent/Agent.ts"
import { make } from "../../../src/services/agent/LoopDetector.ts"
import * as Mailbox from "../../../src/services/agent/Mailbox.ts"
import { ChatBusy } from "../../../src/services/chat/Commit.ts"
import { Model } from "../../../src/services/model/Model.ts"
import * as Tool from "../../../src/services/tools/Tool.ts"
import { agent, asking, calling, saying, tool, transcript } from "../../support/agents.ts"
import { noLoops } from "../../support/noLoops.ts"
import { taken } from "../../support/sending.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const upper = tool("read", "read", (word) => Effect.succeed(word.toUpperCase()))

describe("Agent", () => {
  it.effect("runs reading calls in parallel, with results in the order of the calls", function* () {
    const second = yield* Deferred.make<void>()
    const waits = tool("slow", "read", () => Effect.as(Deferred.await(second), "first"))
    const frees = tool("fast", "read", () => Effect.as(Deferred.succeed(second, undefined), "second"))
    const { chat, run } = yield* agent({
      tools: [waits, frees],
      answers: [calling(asking("slow", "x"), asking("fast", "y")), saying("done")]
    })
    yield* Stream.runDrain(run("go"))
    assert.include((yield* transcript(chat))[2], `slow → {"output":"first"} | fast → {"output":"second"}`)
  })

  it.effect("runs calls that start agents in parallel, after the calls before them", function* () {
    const second = yield* Deferred.make<void>()
    const order: Array<string> = []
    const noted = (name: string, work: Effect.Effect<unknown>) =>
      Effect.as(
        Effect.andThen(
          work,
          Effect.sync(() => order.push(name))
        ),
        name
      )
    const agents = [
      tool("slow", "execute", () => noted("slow", Deferred.await(second))),
      tool("fast", "execute", () => noted("fast", Deferred.succeed(second, undefined)))
    ].map((each) => ({ ...each, isAgent: true as const }))
    const edits = tool("edit", "edit", () => noted("edit", Effect.void))
    const reads = tool("look", "read", () => noted("look", Effect.void))
    const { chat, run } = yield* agent({
      tools: [...agents, edits, reads],
      answers: [
        calling(asking("look", "a"), asking("slow", "x"), asking("fast", "y"), asking("edit", "z")),
        saying("done")
      ]
    })
    yield* Stream.runDrain(run("go"))
    assert.deepStrictEqual([order[0], order.length, order[3]], ["look", 4, "edit"])
    assert.match((yield* transcript(chat))[2] ?? "", /^.*look.*slow.*fast.*edit/)
  })

  it.effect("runs the tool of a name before one that has it for an alias, wherever it stands", function* () {
    const named = (name: string, aliases: ReadonlyArray<string>) => ({
      ...tool(name, "read", () => Effect.succeed(name)),
      aliases
    })
    const tools = [named("first", ["second", "other"]), named("second", ["first"]), named("third", ["other"])]
    const { chat, run } = yield* agent({
      tools,
      answers: [calling(asking("second", "x"), asking("first", "x"), asking("other", "x")), saying("done")]
    })
    yield* Stream.runDrain(run("go"))
    const outputs = (yield* transcript(chat))[2]?.match(/(?<="output":")\w+/g)
    assert.deepStrictEqual(outputs, ["second", "first", "first"])
  })

  it.effect("gives a summary of a result the request, and what was said before it, latest first", function* () {
    const intents: Array<string> = []
    const { chat, run } = yield* agent({
      tools: [upper],
      summarize: (_, __, intent) => Effect.sync(() => void intents.push(intent)).pipe(Effect.as(undefined)),
      answers: [saying("I look."), ...[1, 2].flatMap(() => [calling(asking("read", "x")), saying("done")])]
    })
    yield* Stream.runDrain(run("Port 8123 matters."))
    yield* Stream.runDrain(run("use read"))
    assert.deepStrictEqual(intents, [
      "use read\n\nBefore that, latest first:\nagent: I look.\nuser: Port 8123 matters."
    ])
    const words = Array.from({ length: 40 }, (_, n) => `${n}`.repeat(n < 39 ? 1 : 201))
    yield* chat.append(words.map((each) => ({ content: user(text(each)) })))
    yield* Stream.runDrain(run("use it"))
    // Two of the last thirty messages are the request and the call.
    const said = intents[1]?.split("\n").slice(3)
    assert.deepStrictEqual(said, [
      `user: ${"39".repeat(200)}…`,
      ...words
        .slice(12, 39)
        .toReversed()
        .map((each) => `user: ${each}`)
    ])
  })

  it.effect(
    "finds the same loop of words in the same answer, however it is cut and however soon it ends",
    function* () {
      const words = "I will now check the file again to see the problem. ".repeat(40)
      const seen = (chars: number) =>
        Effect.gen(function* () {
          const parts = Array.from({ length: Math.ceil(words.length / chars) }, (_, n) =>
            text(words.slice(n * chars, (n + 1) * chars))
          )
          const loops = yield* make({ checkAfter: Infinity })
          const { run } = yield* agent({ loops, answers: [calling(...parts), calling(...parts)] })
          const { events } = yield* taken(run("go"))
          return {
            text: events.map((event) => (event._tag === "Content" ? event.text : "")).join(""),
            loops: events.filter(({ _tag }) => _tag === "LoopDetected")
          }
        }).pipe(Effect.provide(Model.layerUnavailable))
      const whole = yield* seen(words.length)
      assert.strictEqual(whole.loops.length, 2)
      assert.strictEqual(whole.text, words.slice(0, 9 * 52 + 50).repeat(2))
      for (const chars of [1, 7, 52, 500]) assert.deepStrictEqual(yield* seen(chars), whole)
    }
  )

  it.effect(
    "refuses another run while a tool runs; closing the stream then still gives its call a response",
    function* () {
      const running = yield* Deferred.make<void>()
      const hanging = tool("hang", "execute", (_, { progress }) =>
        progress("half").pipe(Effect.andThen(Deferred.succeed(running, undefined)), Effect.andThen(Effect.never))
      )
      const { chat, run } = yield* agent({ tools: [hanging], answers: [calling(asking("hang", "b"))] })
      const fiber = yield* Effect.forkChild(Stream.runDrain(run("go")))
      yield* Deferred.await(running)
      // Another run could come between the call and its answer.
      assert.deepStrictEqual((yield* taken(run("and this"))).error, new ChatBusy({ doing: "an agent's run" }))
      yield* Fiber.interrupt(fiber)
      assert.match((yield* transcript(chat))[2] ?? "", /hang → \{"error":"\[Operation Cancelled\].*half/)
    }
  )

  describe("any fault", () => {
    it.effect("a compression started by the user between two turns is waited for", function* () {
      const { chat, profile, services } = yield* agent({
        tools: [upper],
        answers: [calling(asking("read", "a")), saying("done")]
      })
      // Another change of the conversation is under way when the second turn begins.
      let turns = 0
      const busy = {
        ...chat,
        send: (...given: Parameters<typeof chat.send>) =>
          Stream.suspend(() => {
            turns += 1
            return turns === 2 ? Stream.fail(new ChatBusy({ doing: "a compression" })) : chat.send(...given)
          })
      }
      const fiber = yield* Effect.forkChild(
        taken(Agent.run({ ...profile, chat: busy }, "go").pipe(Stream.provideContext(services)))
      )
      for (let step = 0; step < 20; step += 1) yield* TestClock.adjust("50 millis")
      const { error, events } = yield* Fiber.join(fiber)
      assert.isUndefined(error)
      assert.isFalse(events.some(({ _tag }) => _tag === "Error"))
      assert.strictEqual((yield* transcript(chat)).at(-1), "model done")
    })

    for (const [where, part] of [
      ["a summary of a result", { summarize: () => Effect.never }],
      ["a router", { route: () => Effect.never }],
      ["a look for loops", { loops: { ...noLoops, turn: () => Effect.never } }]
    ] as const) {
      it.effect(`a cancel takes effect during ${where}`, function* () {
        const { run } = yield* agent({
          tools: [upper],
          ...part,
          answers: [calling(asking("read", "a")), saying("done")]
        })
        const fiber = yield* Effect.forkChild(taken(run("go", { cancel: Effect.sleep("1 second") })))
        yield* TestClock.adjust("1 second")
        const { events } = yield* Fiber.join(fiber)
        assert.strictEqual(events.at(-1)?._tag, "UserCancelled")
      })
    }

    it.effect(
      "what the user types while it works is read after the tools of a turn, and never before the message",
      function* () {
        const typed = [["too early"], ["stop reading", "and say why"], []]
        const { calls, chat, run } = yield* agent({
          tools: [upper],
          answers: [calling(asking("read", "a")), calling(asking("read", "b")), saying("done")]
        })
        const steering = Effect.sync(() => typed.shift() ?? [])
        yield* Stream.runDrain(run("go", { steering }))
        assert.strictEqual((yield* calls).length, 3)
        assert.deepStrictEqual(
          (yield* transcript(chat)).filter((line) => /^user (?!read)/.test(line)),
          ["user go", "user too early", "user stop reading", "user and say why"]
        )
      }
    )

    it.effect("the model is told of an interruption, once the run has kept something", function* () {
      const slow = tool("read", "read", () => Effect.never)
      const { chat, run } = yield* agent({ tools: [slow], answers: [calling(asking("read", "a"))] })
      const fiber = yield* Effect.forkChild(taken(run("go", { cancel: Effect.sleep("1 second") })))
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(fiber)
      assert.match((yield* transcript(chat)).at(-1) ?? "", /^program \[palimpsest.*The user interrupted the work here/)
      const { chat: fresh, run: runFresh } = yield* agent({ answers: [], route: () => Effect.never })
      const early = yield* Effect.forkChild(taken(runFresh("go", { cancel: Effect.sleep("1 second") })))
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(early)
      assert.deepStrictEqual(yield* transcript(fresh), [])
      // A limit is no interruption by the user.
      const limited = yield* agent({ tools: [slow], answers: [calling(asking("read", "a"))] })
      const bounded = Agent.run({ ...limited.profile, limits: { time: 1_000 } }, "go")
      const late = yield* Effect.forkChild(taken(Stream.provideContext(bounded, limited.services)))
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(late)
      assert.match((yield* transcript(limited.chat)).at(-1) ?? "", /worked for 1 second, which is its limit/)
    })

    it.effect("a message that is kept without an answer leaves room for others", function* () {
      const loops = { ...noLoops, turn: () => Effect.succeed({ kind: "calls", detail: "read(a)" } as const) }
      const { chat, run } = yield* agent({ settings: { window: 10_000 }, loops, answers: [saying("done")] })
      const note = { parts: [text("the old mill ".repeat(9_000))] }
      yield* Stream.runDrain(run("the old road ".repeat(9_000), { attached: [note, { ...note, room: 1_000 }] }))
      const thousands = view(yield* chat.conversation).map((item) => Math.ceil(itemTokens(item) / 1_000))
      assert.deepStrictEqual(thousands.slice(0, 3), [4, 4, 1])
    })

    it.effect("an undelivered message is delivered later", function* () {
      const mailbox = yield* Mailbox.make
      yield* mailbox.put("the child is done")
      const { chat, profile, services } = yield* agent({
        answers: ["one", "two"],
        inbox: mailbox.deliver
      })
      let isFull = true
      const unwilling = {
        ...chat,
        append: (...given: Parameters<typeof chat.append>) =>
          Effect.suspend(() =>
            isFull ? Effect.fail(new ChatBusy({ doing: "nothing that ends" })) : chat.append(...given)
          )
      }
      const run = Agent.run({ ...profile, chat: unwilling }, "go").pipe(Stream.provideContext(services))
      const fiber = yield* Effect.forkChild(Stream.runDrain(run))
      yield* TestClock.adjust("1 second")
      yield* Fiber.interrupt(fiber)
      isFull = false
      yield* Stream.runDrain(run)
      assert.match((yield* transcript(chat)).join("\n"), /^program \[palimpsest.*the child is done\nuser go\n/)
    })

    it.effect("reminders are repeated after a compression", function* () {
      const { calls, log, run } = yield* agent({
        tools: [tool("read", "read", (word) => Effect.succeed(`${word} ${"line of output\n".repeat(60)}`))],
        settings: { window: 12_000 },
        reminder: Effect.succeed("scout-1 is at work"),
        answers: (_, index) => (index < 60 ? calling(asking("read", `file-${index}`)) : saying("done"))
      })
      yield* Stream.runDrain(run("go"))
      const told = (yield* calls).filter(({ request }) =>
        JSON.stringify(request.contents).includes("scout-1 is at work")
      )
      assert.isAbove(told.length, 3)
      // Once after each compression.
      const order = log.flatMap((event) =>
        event._tag === "Compressed"
          ? ["compressed"]
          : event._tag === "Appended" && JSON.stringify(event.entry).includes("scout-1 is at work")
            ? ["told"]
            : []
      )
      assert.notMatch(order.join(" "), /told told|compressed compressed/)
    })

    it.effect("a router's model is used for one run; the user's choice meanwhile stays", function* () {
      let routed: string | undefined = "gemini-2.5-pro"
      const { calls, chat, run } = yield* agent({ route: () => Effect.succeed(routed), answers: ["one", "two"] })
      yield* Stream.runDrain(run("go"))
      yield* chat.configure({ model: "gemini-2.5-flash-lite" })
      routed = undefined
      yield* Stream.runDrain(run("go"))
      assert.deepStrictEqual(
        (yield* calls).map(({ request }) => request.model),
        ["gemini-2.5-pro", "gemini-2.5-flash-lite"]
      )
    })
  })

  it.effect("a toolkit of effect/ai can be passed directly", function* () {
    const AiTool = yield* Effect.promise(() => import("effect/ai/Tool"))
    const Toolkit = yield* Effect.promise(() => import("effect/ai/Toolkit"))
    const toolkit = Toolkit.make(
      AiTool.make("add", {
        description: "Adds.",
        parameters: Schema.Struct({ a: Schema.Finite, b: Schema.Finite }),
        success: Schema.Finite,
        failure: Schema.String,
        failureMode: "return"
      }).annotate(AiTool.Readonly, true)
    )
    const handlers = yield* Effect.provide(
      toolkit,
      toolkit.toLayer({
        add: ({ a, b }) =>
          a === 0
            ? Effect.die(new Error("the table is broken"))
            : a < 0
              ? Effect.fail("no negative numbers")
              : Effect.succeed(a + b)
      })
    )
    const tools = yield* Tool.fromToolkit(handlers)
    const { chat, run } = yield* agent({
      tools,
      mode: "none",
      answers: [
        calling(
          { functionCall: { name: "add", args: { a: 1, b: 2 } } },
          { functionCall: { name: "add", args: { a: -1, b: 2 } } },
          { functionCall: { name: "add", args: { a: "x" } } },
          { functionCall: { name: "add", args: { a: 0, b: 2 } } }
        ),
        saying("done")
      ]
    })
    yield* Stream.runDrain(run("go"))
    const answers = (yield* transcript(chat))[2] ?? ""
    assert.include(answers, `add → {"output":"3"}`)
    assert.include(answers, "no negative numbers")
    assert.include(answers, "Expected number")
    assert.include(answers, "add failed unexpectedly: Error: the table is broken")
  })
})
