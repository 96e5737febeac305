import { Deferred, Effect, Fiber, Queue, Ref, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import type { Loop } from "../../../src/domain/agent/LoopDetection.ts"
import type { ChatEvent } from "../../../src/domain/chat/ChatEvent.ts"
import { model } from "../../../src/domain/content/Content.ts"
import * as Agent from "../../../src/services/agent/Agent.ts"
import { type LoopDetector, off } from "../../../src/services/agent/LoopDetector.ts"
import * as Mailbox from "../../../src/services/agent/Mailbox.ts"
import { ChatBusy } from "../../../src/services/chat/Commit.ts"
import * as Tool from "../../../src/services/tools/Tool.ts"
import { agent, asking, calling, saying, tool, transcript } from "../../support/agents.ts"
import { taken } from "../../support/sending.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const tags = (events: ReadonlyArray<ChatEvent>) => events.map(({ _tag }) => _tag).filter((tag) => tag !== "ModelInfo")

const upper = tool("read", "read", (word) => Effect.succeed(word.toUpperCase()))

/** A watch that finds what it is told to. */
const watching = (
  found: Partial<Record<"call" | "content" | "turn", (count: number) => Loop | undefined>>
): LoopDetector => {
  const counts = { call: 0, content: 0, turn: 0 }
  const next = (what: "call" | "content" | "turn") =>
    Effect.sync(() => {
      counts[what] += 1
      return found[what]?.(counts[what])
    })
  return {
    ...off,
    call: () => next("call"),
    content: () => next("content"),
    turn: () => next("turn")
  }
}

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

  it.effect("runs a changing call alone and after all before it", function* () {
    const log = yield* Ref.make<ReadonlyArray<string>>([])
    const note = (line: string) => Ref.update(log, (lines) => [...lines, line])
    const noting = (name: string, kind: Tool.ToolKind) =>
      tool(name, kind, (word) =>
        note(`${word} begins`).pipe(
          Effect.andThen(Effect.yieldNow),
          Effect.andThen(note(`${word} ends`)),
          Effect.as(word)
        )
      )
    const { run } = yield* agent({
      tools: [noting("read", "read"), noting("edit", "edit")],
      answers: [
        calling(asking("read", "r1"), asking("edit", "e1"), asking("edit", "e2"), asking("read", "r2")),
        saying("done")
      ]
    })
    yield* Stream.runDrain(run("go"))
    assert.deepStrictEqual(
      yield* Ref.get(log),
      ["r1", "e1", "e2", "r2"].flatMap((word) => [`${word} begins`, `${word} ends`])
    )
  })

  describe("reports any failed call to the model in one sentence, and continues", () => {
    const rows: ReadonlyArray<readonly [rule: string, made: Tool.Tool, part: ReturnType<typeof asking>, told: RegExp]> =
      [
        [
          "a tool that throws",
          tool("bad", "read", () => Effect.die(new Error("boom"))),
          asking("bad", "x"),
          /failed unexpectedly: .*boom/
        ],
        [
          "a tool that fails",
          tool("bad", "read", () => Effect.fail(new Tool.ToolFailure({ message: "no such file" }))),
          asking("bad", "x"),
          /"error":"no such file"/
        ],
        ["an unknown tool", upper, asking("write", "x"), /there is no tool write; the tools are: read/],
        [
          "arguments of a wrong shape",
          upper,
          { functionCall: { name: "read", args: { word: 1 } } },
          /read was called wrongly: word/
        ],
        ["no arguments", upper, { functionCall: { name: "read" } }, /read was called wrongly: word/],
        [
          "arguments that are no object",
          upper,
          { functionCall: { name: "read", args: [1] } },
          /read was called wrongly/
        ],
        [
          "arguments as the text of an object",
          upper,
          { functionCall: { name: "read", args: '{"word":"q"}' } },
          /"output":"Q"/
        ],
        ["an empty result", tool("mute", "read", () => Effect.succeed("")), asking("mute", "x"), /it had no output/]
      ]
    for (const [rule, made, part, told] of rows) {
      it.effect(rule, function* () {
        const { chat, run } = yield* agent({ tools: [made], answers: [calling(part), saying("done")] })
        const { error } = yield* taken(run("go"))
        assert.isUndefined(error)
        const lines = yield* transcript(chat)
        assert.match(lines[2] ?? "", told)
        assert.strictEqual(lines[3], "model done")
      })
    }
  })

  describe("approval of changes", () => {
    const edits = (ran: Ref.Ref<number>) =>
      tool("edit", "edit", () =>
        Effect.as(
          Ref.update(ran, (n) => n + 1),
          "ok"
        )
      )

    it.effect("passes a refusal's reason to the model", function* () {
      const ran = yield* Ref.make(0)
      const { chat, run } = yield* agent({
        tools: [edits(ran)],
        mode: "none",
        ask: () => Effect.succeed({ _tag: "No", words: "use the other file" }),
        answers: [calling(asking("edit", "x")), saying("done")]
      })
      yield* Stream.runDrain(run("go"))
      assert.match((yield* transcript(chat))[2] ?? "", /they say: use the other file/)
    })

    it.effect("does not count the time of the question as the tool's", function* () {
      const [asked, working] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const slow = tool("edit", "edit", () =>
        Deferred.succeed(working, undefined).pipe(Effect.andThen(Effect.sleep("2 seconds")), Effect.as("ok"))
      )
      const { run } = yield* agent({
        tools: [slow],
        mode: "none",
        ask: () =>
          Deferred.succeed(asked, undefined).pipe(
            Effect.andThen(Effect.sleep("10 seconds")),
            Effect.as({ _tag: "Once" } as const)
          ),
        answers: [calling(asking("edit", "x")), saying("done")]
      })
      const ran = yield* Effect.forkChild(taken(run("go")))
      yield* Deferred.await(asked)
      yield* TestClock.adjust("10 seconds")
      yield* Deferred.await(working)
      yield* TestClock.adjust("2 seconds")
      const { events } = yield* Fiber.join(ran)
      assert.deepStrictEqual(
        events.flatMap((event) => (event._tag === "ToolCallResponse" ? [event.duration] : [])),
        [2_000]
      )
    })
  })

  it.effect(
    "cancelled while tools run: keeps finished results, marks the others as cancelled, and can continue",
    function* () {
      const cancel = yield* Deferred.make<void>()
      const hanging = tool("hang", "execute", (_, { progress }) =>
        progress("half").pipe(Effect.andThen(Deferred.succeed(cancel, undefined)), Effect.andThen(Effect.never))
      )
      const { chat, run } = yield* agent({
        tools: [upper, hanging],
        answers: [calling(asking("read", "a"), asking("hang", "b"), asking("read", "c")), saying("again")]
      })
      const { events, error } = yield* taken(run("go", { cancel: Deferred.await(cancel) }))
      assert.isUndefined(error)
      assert.strictEqual(events.at(-1)?._tag, "UserCancelled")
      const answers = (yield* transcript(chat))[2] ?? ""
      assert.include(answers, `read → {"output":"A"}`)
      assert.match(answers, /hang → \{"error":"\[Operation Cancelled\].*half/)
      assert.match(answers, /read → \{"error":"\[Operation Cancelled\]/)
      yield* Stream.runDrain(run("go on"))
      assert.strictEqual((yield* transcript(chat)).at(-1), "model again")
    }
  )

  it.effect("closing the stream while a tool runs still gives its call a response", function* () {
    const running = yield* Deferred.make<void>()
    const hanging = tool("hang", "execute", (_, { progress }) =>
      progress("half").pipe(Effect.andThen(Deferred.succeed(running, undefined)), Effect.andThen(Effect.never))
    )
    const { chat, run } = yield* agent({ tools: [hanging], answers: [calling(asking("hang", "b"))] })
    const fiber = yield* Effect.forkChild(Stream.runDrain(run("go")))
    yield* Deferred.await(running)
    yield* Fiber.interrupt(fiber)
    assert.match((yield* transcript(chat))[2] ?? "", /hang → \{"error":"\[Operation Cancelled\].*half/)
  })

  describe("limits", () => {
    it.effect("time, not counting questions to the user", function* () {
      const slow = tool("slow", "read", () => Effect.as(Effect.sleep("40 seconds"), "ok"))
      const edit = tool("edit", "edit", () => Effect.succeed("ok"))
      const { chat, run } = yield* agent({
        tools: [slow, edit],
        mode: "none",
        ask: () => Effect.as(Effect.sleep("1 hour"), { _tag: "Once" }),
        limits: { time: 60_000 },
        answers: [calling(asking("slow", "a"), asking("edit", "b")), calling(asking("slow", "c")), saying("done")]
      })
      const fiber = yield* Effect.forkChild(taken(run("go")))
      yield* TestClock.adjust("40 seconds")
      yield* TestClock.adjust("1 hour")
      yield* TestClock.adjust("19 seconds")
      assert.isUndefined(fiber.pollUnsafe())
      yield* TestClock.adjust("1 second")
      const { events } = yield* Fiber.join(fiber)
      const last = events.at(-1)
      assert.isTrue(last?._tag === "LimitReached" && last.limit === "time")
      assert.match(
        (yield* transcript(chat)).at(-1) ?? "",
        /slow → \{"error":"\[Operation Cancelled\] the agent worked for 1 minutes/
      )
    })
  })

  describe("loops", () => {
    it.effect("a repeating answer is stopped, the model informed, and the message kept", function* () {
      const { chat, run } = yield* agent({
        loops: watching({ content: (n) => (n === 1 ? { kind: "content", detail: "the same words" } : undefined) }),
        answers: ["round and round\n".repeat(5_000), "better"]
      })
      const { events } = yield* taken(run("go"))
      assert.notInclude(tags(events), "UserCancelled")
      assert.match(
        (yield* transcript(chat)).join("\n"),
        /^user go\nprogram \[palimpsest.*the same words.*\nmodel better$/
      )
    })
  })

  it.effect("shows a summary in place of a result, which can be recalled by its handle", function* () {
    const { chat, run } = yield* agent({
      tools: [tool("read", "read", () => Effect.succeed("long ".repeat(2_000)))],
      summarize: (_tool, _output, intent) => Effect.succeed(`in short, for ${intent}`),
      answers: [calling(asking("read", "x")), saying("done")]
    })
    yield* Stream.runDrain(run("go"))
    const contents = yield* chat.contents
    assert.include(JSON.stringify(contents), "in short, for go")
    assert.notInclude(JSON.stringify(contents), "long long")
    const { conversation } = yield* chat.session
    const handle = conversation.log?.before?.value.handles[0]
    assert.isDefined(handle)
    if (handle !== undefined) assert.strictEqual((yield* chat.recall(handle)).text, "long ".repeat(2_000))
  })

  describe("any fault", () => {
    for (const [how, work] of [
      ["interrupts itself", Effect.interrupt],
      [
        "takes from a queue that is shut down",
        Effect.flatMap(Queue.unbounded<string>(), (queue) => Effect.andThen(Queue.shutdown(queue), Queue.take(queue)))
      ]
    ] as const) {
      it.effect(`a tool that ${how} gets a response, and so do its neighbours; the run continues`, function* () {
        const { chat, run } = yield* agent({
          tools: [upper, tool("bad", "read", () => Effect.as(work, "x"))],
          answers: [calling(asking("read", "a"), asking("bad", "x"), asking("read", "b")), saying("done")]
        })
        yield* Stream.runDrain(run("go"))
        const lines = yield* transcript(chat)
        assert.match(lines[2] ?? "", /"A".*bad → \{"error":"bad interrupted itself"\}.*"B"/)
        assert.strictEqual(lines[3], "model done")
      })
    }

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
      assert.notInclude(tags(events), "Error")
      assert.strictEqual((yield* transcript(chat)).at(-1), "model done")
    })

    for (const [where, part] of [
      ["a summary of a result", { summarize: () => Effect.never }],
      ["a router", { route: () => Effect.never }],
      ["a look for loops", { loops: { ...off, turn: () => Effect.never } }]
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

    it.effect("an undelivered message is delivered later", function* () {
      const mailbox = yield* Mailbox.make
      yield* mailbox.put("the child is done")
      const { chat, profile, services } = yield* agent({
        answers: ["one", "two"],
        inbox: (use) => mailbox.deliver((letters) => use(letters.map(({ text }) => text)))
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

    it.effect("text of a discarded answer does not count", function* () {
      const heard: Array<string> = []
      const loops = {
        ...off,
        content: (text: string) => Effect.sync(() => void heard.push(text)),
        again: Effect.sync(() => void heard.push("again"))
      }
      const broken = { content: model({ text: "thinking" }), finishReason: "MALFORMED_FUNCTION_CALL", usage: null }
      const { run } = yield* agent({ loops, answers: [broken, saying("fine")] })
      const fiber = yield* Effect.forkChild(Stream.runDrain(run("go")))
      yield* TestClock.adjust("1 minute")
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(heard, ["thinking", "again", "fine"])
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

    it.effect("an empty answer to a result with an image is valid", function* () {
      const picture = Tool.make({
        name: "look",
        description: "Looks.",
        parameters: Schema.Struct({}),
        result: Schema.String,
        kind: "read",
        run: () =>
          Effect.succeed({ value: "a picture", media: [{ inlineData: { mimeType: "image/png", data: "AAAA" } }] })
      })
      const { run } = yield* agent({
        tools: [picture],
        answers: [calling({ functionCall: { name: "look", args: {} } }), calling()]
      })
      assert.isUndefined((yield* taken(run("go"))).error)
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
