import { Cause, type Context, Deferred, Effect, Exit, Fiber, identity, Layer, Schema, type Scope, Stream } from "effect"
import * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import { ModelName } from "effect/ai/Model"
import * as Prompt from "effect/ai/Prompt"
import type * as Response from "effect/ai/Response"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import { handleOf, mentions } from "../../../src/domain/content/Handle.ts"
import { runtimeMark } from "../../../src/domain/text/RuntimeMark.ts"
import * as Offline from "../../../src/layers/assembly/Offline.ts"
import * as MemoryCalibrations from "../../../src/layers/testing/MemoryCalibrations.ts"
import * as ScriptedLanguageModel from "../../../src/layers/testing/ScriptedLanguageModel.ts"
import * as ScriptedModel from "../../../src/layers/testing/ScriptedModel.ts"
import { Compression } from "../../../src/services/compression/Compression.ts"
import * as ModelSummarizer from "../../../src/services/compression/summary/ModelSummarizer.ts"
import { Summarizer } from "../../../src/services/compression/summary/Summarizer.ts"
import * as CompressedLanguageModel from "../../../src/services/effect-ai/CompressedLanguageModel.ts"
import { ConversationKey, withConversation } from "../../../src/services/effect-ai/ConversationKey.ts"
import { sharedMessages } from "../../../src/services/effect-ai/PromptNames.ts"
import {
  layerRecallTool,
  layerRecallToolWith,
  Recall,
  recallToolkit
} from "../../../src/services/effect-ai/RecallTool.ts"
import { type HookPlace, HookSystem } from "../../../src/services/hooks/HookSystem.ts"
import { idOfKey, SessionStore } from "../../../src/services/session/SessionStore.ts"
import { hashSync } from "../../../src/services/session/Sha256.ts"
import { select } from "../../../src/services/session/TempStore.ts"
import { TokenCounter, TokenCountError } from "../../../src/services/tokens/TokenCounter.ts"
import { thousand } from "../../support/generate.ts"
import { interruptSweep } from "../../support/interruptSweep.ts"
import {
  answers,
  boundOf,
  brokenTalks,
  calls,
  illegalPrompt,
  result,
  says,
  snapshotOf,
  type Talk,
  talks,
  turnsOf,
  wordsOf
} from "../../support/prompts.ts"
import { assert, describe, it } from "../../support/vitest.ts"

type Messages = ReadonlyArray<Prompt.Message>
type Options = CompressedLanguageModel.Options

const services = Layer.merge(Offline.layer, MemoryCalibrations.layer)
const { Script } = ScriptedLanguageModel

/** A scripted model behind the compression. */
const over = (options: Options, answers: ScriptedLanguageModel.Answers = () => "ok") =>
  CompressedLanguageModel.layer(options).pipe(
    Layer.provideMerge(ScriptedLanguageModel.layer(answers)),
    Layer.provideMerge(services)
  )

const ask = (messages: Messages) => LanguageModel.generateText({ prompt: Prompt.fromMessages(messages) })
const requests = Effect.map(
  Script.use((script) => script.requests),
  (all) => all.map(({ prompt }) => prompt.content)
)
const latest = Effect.map(requests, (all) => all.at(-1) ?? [])

const page = (n: number) => `${n}: ${"the build of src/parser is red, see line 17. ".repeat(12)}`
/** A conversation about a topic, of so many questions with their answers. */
const conversation = (topic: string, questions: number): ReadonlyArray<Prompt.Message> =>
  Array.from({ length: questions }, (_, n) => [
    says(`${topic} question ${page(n)}`),
    answers(`${topic} answer ${n}`)
  ]).flat()

const isPrefix = (one: Messages, other: Messages): boolean => sharedMessages(one, other) === one.length

const small: Options = { window: 4_000, reserve: 500 }
/** A question that comes behind a conversation which is over the threshold. */
const long = [Prompt.systemMessage({ content: "Be brief." }), ...conversation("alpha", 25), says("And now?")]

const failing = (reason: AiError.AiErrorReason) => AiError.make({ module: "Fake", method: "generateText", reason })

// --- what reaches the model -----------------------------------------------------------------------------------------------

const system = (messages: Messages) => messages.filter(({ role }) => role === "system")

/** What is wrong with what was sent for a prompt of a window that holds `room` tokens. */
const wrong = (prompt: Messages, sent: Messages, room: number): string | undefined => {
  const illegal = illegalPrompt(sent)
  if (illegal !== undefined) return illegal
  const bound = boundOf(sent)
  if (bound > room) return `${bound} tokens for a room of ${room}`
  if (system(sent).some((message, index) => message !== system(prompt)[index])) return "system messages changed"
  if (system(sent).length !== system(prompt).length) return "system messages are missing"
  const foreign = sent.filter((message) => !prompt.includes(message))
  for (const message of foreign) {
    // What is new in the user's role is marked as the runtime's; all else is an output that was shortened, or is owed.
    const marked = wordsOf([message]).includes(JSON.stringify(runtimeMark).slice(1, -1))
    if (message.role === "user" && !marked) return `the user never said ${wordsOf([message])}`
  }
  return undefined
}

/** Sends a talk turn by turn and says what is wrong with what reached the model. */
const played = Effect.fnUntraced(function* (talk: Talk) {
  const room = talk.window - Math.min(16_384, Math.floor(talk.window / 4))
  let prompt: Messages = []
  let before: Messages = []
  let compressed = 0
  for (const turn of turnsOf(talk)) {
    prompt = [...prompt, ...turn]
    if (prompt.every(({ role }) => role === "system")) continue
    const exit = yield* Effect.exit(ask(prompt))
    const sent = yield* latest
    if (Exit.isFailure(exit)) {
      const error = Cause.squash(exit.cause)
      if (!AiError.isAiError(error) || error.reason._tag !== "InvalidUserInputError") return String(error)
      // What cannot be left out, with a snapshot of the smallest size for the rest, has to be why.
      const pending = prompt.slice(prompt.findLastIndex(({ role }) => role === "assistant"))
      const least = boundOf([...system(prompt), ...pending]) + 1_000
      if (least < room) return `refused, although ${least} of ${room} tokens have to stay: ${error.message}`
      return undefined
    }
    const problem = wrong(prompt, sent, room)
    if (problem !== undefined) return problem
    const wasCompressed = snapshotOf(sent) !== snapshotOf(before)
    if (wasCompressed) compressed += 1
    else if (snapshotOf(sent) !== undefined && illegalPrompt(prompt) === undefined && !isPrefix(before, sent)) {
      return "what was sent before changed between two compressions"
    }
    before = sent
  }
  const recall = yield* Recall
  for (const handle of mentions(wordsOf(before.filter((message) => !prompt.includes(message))))) {
    if (handle === "h_aaaaaaaaaa") continue
    const found = yield* Effect.exit(recall.recall(handle))
    if (Exit.isFailure(found)) return `${handle} cannot be recalled`
  }
  return compressed
})

const holds = (talk: Talk) =>
  played(talk).pipe(
    Effect.provide(Layer.fresh(over({ window: talk.window }))),
    Effect.flatMap((found) => (typeof found === "string" ? Effect.fail(found) : Effect.succeed(true)))
  )

describe("the request", () => {
  it.effect.prop(
    "fits, is valid, keeps system messages, is stable between compressions, and leaves no resources behind",
    [talks],
    ([talk]) => holds(talk),
    { arbitrary: thousand("what reaches the model") }
  )

  it.effect.prop("is made valid where an interruption left a call open", [brokenTalks], ([talk]) => holds(talk), {
    arbitrary: thousand("broken prompts", 300)
  })

  it.effect("is compressed in these tests, more than once", function* () {
    const happenings = Array.from(
      { length: 24 },
      (_, n) => ({ kind: n % 2 === 0 ? "reads" : "thinks", size: "page" }) as const
    )
    const found = yield* played({ window: 5_000, system: true, happenings }).pipe(
      Effect.provide(over({ window: 5_000 }))
    )
    assert.isTrue(typeof found === "number" && found > 2, String(found))
  })

  it.effect("is the given object below the threshold, for every method", () => {
    const seen: Array<unknown> = []
    const record = (options: unknown) => {
      seen.push(options)
    }
    const inner = Layer.effect(
      LanguageModel.LanguageModel,
      Effect.map(
        LanguageModel.make({ generateText: () => Effect.die("unused"), streamText: () => Stream.empty }),
        (model) => ({
          ...model,
          generateText: ((options: unknown) =>
            Effect.sync(() => {
              record(options)
              return new LanguageModel.GenerateTextResponse([])
            })) as unknown as typeof model.generateText,
          generateObject: ((options: unknown) =>
            Effect.sync(() => {
              record(options)
              return new LanguageModel.GenerateObjectResponse({}, [])
            })) as unknown as typeof model.generateObject,
          streamText: ((options: unknown) => {
            record(options)
            return Stream.empty
          }) as typeof model.streamText
        })
      )
    )
    return Effect.gen(function* () {
      const prompt = Prompt.fromMessages([Prompt.systemMessage({ content: "Be brief." }), says("Hello.")])
      const schema = Schema.Struct({ ok: Schema.Boolean })
      const toolkit = yield* Adding.pipe(Effect.provide(layerAdding))
      yield* LanguageModel.generateText({ prompt, toolkit, toolChoice: "none", concurrency: 3 })
      yield* LanguageModel.generateObject({ prompt, schema, objectName: "answer" })
      yield* Stream.runDrain(LanguageModel.streamText({ prompt, disableToolCallResolution: true }))
      assert.deepStrictEqual(seen, [
        { prompt, toolkit, toolChoice: "none", concurrency: 3 },
        { prompt, schema, objectName: "answer" },
        { prompt, disableToolCallResolution: true }
      ])
      assert.isTrue(seen.every((options) => (options as { readonly prompt: unknown }).prompt === prompt))
      assert.strictEqual((seen[0] as { readonly toolkit: unknown }).toolkit, toolkit)
    }).pipe(Effect.provide(CompressedLanguageModel.layer(small).pipe(Layer.provide([inner, services]))))
  })

  it.effect("keeps messages with their options, and system messages in place", over(small), function* () {
    const [first, middle, late] = ["Be brief.", "Mode: plan.", "Mode: act."].map((content) =>
      Prompt.systemMessage({ content, options: { anthropic: { cacheControl: { type: "ephemeral" } } } })
    )
    if (first === undefined || middle === undefined || late === undefined) return
    const signed = Prompt.assistantMessage({
      content: [
        Prompt.reasoningPart({ text: "Hm.", options: { google: { thoughtSignature: "abc" } } }),
        Prompt.textPart({ text: "Because." })
      ],
      options: { some: { thing: 1 } }
    })
    const talk = conversation("alpha", 25)
    const last = Prompt.systemMessage({ content: "Mode: last." })
    const prompt = [first, ...talk.slice(0, 10), middle, ...talk.slice(10), signed, late, says("And now?"), last]
    yield* ask(prompt)
    const sent = yield* latest
    assert.isBelow(sent.length, prompt.length / 2)
    assert.deepStrictEqual(sent.slice(0, 2), [first, middle])
    assert.include(snapshotOf(sent.slice(2, 3)) ?? "", runtimeMark)
    assert.deepStrictEqual(sent.slice(-4), prompt.slice(-4))
    assert.isTrue(sent.slice(-4).every((message) => prompt.includes(message)))
  })

  it.effect(
    "shows shortened outputs, with the rest of their message unchanged",
    over({ ...small, policy: { toolBudget: 500 as never } }),
    function* () {
      const body = Array.from({ length: 600 }, (_, line) => `${line}: export const value${line} = ${line * 7}`).join(
        "\n"
      )
      const prompt = [
        says("Read both."),
        calls("c1", "c2"),
        Prompt.toolMessage({
          content: [{ ...result("c1", { output: body }), options: { x: { y: 1 } } }, result("c2", "short", true)],
          options: { z: { w: 2 } }
        }),
        says("And?")
      ]
      yield* ask(prompt)
      const tool = (yield* latest).find(({ role }) => role === "tool")
      assert.deepStrictEqual(tool?.options, { z: { w: 2 } })
      const [one, two] = tool?.role === "tool" ? tool.content : []
      assert.deepStrictEqual([one?.options, two], [{ x: { y: 1 } }, result("c2", "short", true)])
      const shown = one?.type === "tool-result" ? String(one.result) : ""
      assert.isBelow(shown.length, body.length / 2)
      const [handle] = mentions(shown)
      if (handle === undefined) return assert.fail(`no handle in ${shown}`)
      assert.strictEqual((yield* Recall.use(({ recall }) => recall(handle))).text, body)
    }
  )
})

// --- tools ----------------------------------------------------------------------------------------------------------------

const add = Tool.make("add", {
  description: "Adds two numbers.",
  parameters: Schema.Struct({ a: Schema.Finite, b: Schema.Finite }),
  success: Schema.Finite
})
const Adding = Toolkit.make(add)
let added = 0
const layerAdding = Adding.toLayer(
  Effect.succeed(
    Adding.of({
      add: ({ a, b }) =>
        Effect.sync(() => {
          added += 1
          return a + b
        })
    })
  )
)
const callsAdd: Response.PartEncoded = { type: "tool-call", id: "t1", name: "add", params: { a: 1, b: 2 } }

/** A call that waits for an approval, and the approval. */
const asked = Prompt.assistantMessage({
  content: [
    Prompt.toolCallPart({ id: "t1", name: "add", params: { a: 1, b: 2 }, providerExecuted: false }),
    Prompt.toolApprovalRequestPart({ approvalId: "a1", toolCallId: "t1" })
  ]
})
const decided = Prompt.toolMessage({ content: [Prompt.toolApprovalResponsePart({ approvalId: "a1", approved: true })] })

describe("tools", () => {
  const ways: ReadonlyArray<readonly [string, Messages]> = [
    ["below the threshold", [says("1 + 2?")]],
    ["behind a compression", long]
  ]
  for (const [name, prompt] of ways) {
    it.effect(
      `run once, ${name}`,
      Layer.merge(
        over(small, () => [callsAdd]),
        layerAdding
      ),
      function* () {
        added = 0
        const options = { prompt: Prompt.fromMessages(prompt), toolkit: Adding }
        const response = yield* LanguageModel.generateText(options)
        assert.deepStrictEqual(
          response.toolResults.map((each) => each.result),
          [3]
        )
        assert.strictEqual(added, 1)
        const streamed = yield* Stream.runCollect(LanguageModel.streamText(options))
        assert.strictEqual(streamed.filter((part) => part.type === "tool-result").length, 1)
        assert.strictEqual(added, 2)
        const unresolved = yield* LanguageModel.generateText({ ...options, disableToolCallResolution: true })
        assert.deepStrictEqual([unresolved.toolCalls.length, unresolved.toolResults.length, added], [1, 0, 2])
      }
    )
  }

  it.effect("count against the window, and so does the schema of a response", () => {
    const wide = (words: number) => Tool.make("wide", { description: "very ".repeat(words) })
    const refused = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
      Effect.map(Effect.exit(effect), (exit) => Exit.isFailure(exit) && String(exit.cause).includes("too long"))
    return Effect.gen(function* () {
      const toolkit = (words: number) => Toolkit.make(wide(words))
      const asked = (words: number) =>
        LanguageModel.generateText({ prompt: "Hello.", toolkit: toolkit(words), disableToolCallResolution: true })
      assert.isFalse(yield* refused(asked(1_000)))
      assert.isTrue(yield* refused(asked(4_000)))
      const schema = Schema.Struct({ a: Schema.String.annotate({ description: "very ".repeat(4_000) }) })
      assert.isTrue(yield* refused(LanguageModel.generateObject({ prompt: "Hello.", schema })))
      assert.strictEqual((yield* requests).length, 1)
    }).pipe(Effect.provide(over(small)))
  })

  it.effect("are measured again when they change, although the conversation only grew", () => {
    const described = (description: string) => Toolkit.make(Tool.make("wide", { description }))
    const first = [...conversation("alpha", 12), says("And now?")]
    const asked = (messages: Messages, description: string) =>
      LanguageModel.generateText({
        prompt: Prompt.fromMessages(messages),
        toolkit: described(description),
        disableToolCallResolution: true
      }).pipe(Effect.andThen(latest), Effect.map(snapshotOf))
    return Effect.gen(function* () {
      // About as many estimated tokens, and up to twice as many real ones.
      assert.isUndefined(yield* asked(first, "very ".repeat(700)))
      assert.isDefined(yield* asked([...first, answers("ok"), says("Go on.")], "😀👩‍👩‍👧".repeat(110)))
    }).pipe(Effect.provide(over({ window: 4_600, reserve: 0, threshold: 1 })))
  })

  it.effect("approved earlier run once, behind a compression", Layer.merge(over(small), layerAdding), function* () {
    added = 0
    // So much was said with the call that it would not be kept, were it not awaited.
    const verbose = { ...asked, content: [Prompt.textPart({ text: `delta ${page(1).repeat(9)}` }), ...asked.content] }
    yield* LanguageModel.generateText({ prompt: Prompt.fromMessages([...long, verbose, decided]), toolkit: Adding })
    assert.strictEqual(added, 1)
    const sent = yield* latest
    assert.include(wordsOf(sent), "delta 1:")
    assert.isBelow(sent.length, long.length)
    assert.isUndefined(illegalPrompt(sent))
    assert.include(wordsOf(sent.slice(-1)), '"result":3')
  })
})

// --- methods --------------------------------------------------------------------------------------------------------------

describe("generateObject", () => {
  it.effect(
    "works with a compressed prompt",
    over(small, () => '{"ok":true}'),
    function* () {
      const schema = Schema.Struct({ ok: Schema.Boolean })
      const response = yield* LanguageModel.generateObject({ prompt: Prompt.fromMessages(long), schema })
      assert.deepStrictEqual(response.value, { ok: true })
      assert.isDefined(snapshotOf(yield* latest))
    }
  )
})

describe("streamText", () => {
  it.effect(
    "passes parts on as they arrive, and releases the model when its scope closes",
    over(small, () => [{ type: "text", text: "half" }, ScriptedLanguageModel.hang]),
    function* () {
      const came = yield* Deferred.make<void>()
      const fiber = yield* LanguageModel.streamText({ prompt: Prompt.fromMessages(long) }).pipe(
        Stream.runForEach((part) => (part.type === "text-delta" ? Deferred.succeed(came, undefined) : Effect.void)),
        Effect.forkChild
      )
      yield* Deferred.await(came)
      yield* Effect.yieldNow.pipe(Effect.repeat({ times: 20 }))
      assert.strictEqual(yield* Script.use((script) => script.interrupted), 0)
      yield* Fiber.interrupt(fiber)
      assert.strictEqual(yield* Script.use((script) => script.interrupted), 1)
    }
  )

  it.effect("starts afresh each run", over(small), function* () {
    const stream = LanguageModel.streamText({ prompt: Prompt.fromMessages(long) })
    yield* Stream.runDrain(stream)
    yield* Stream.runDrain(stream)
    const [one, two] = yield* requests
    assert.deepStrictEqual(one, two)
  })
})

// --- the prefix -----------------------------------------------------------------------------------------------------------

/** How often a snapshot was written. */
const counting = Effect.gen(function* () {
  let written = 0
  const summarizer = yield* Summarizer
  const layer = Layer.succeed(Summarizer, {
    ...summarizer,
    summarize: (request) =>
      Effect.suspend(() => {
        written += 1
        // A model takes its time, and others go on meanwhile.
        return Effect.andThen(Effect.yieldNow, summarizer.summarize(request))
      })
  })
  return { layer, written: () => written }
})

const withSummarizer = (options: Options, layer: Layer.Layer<Summarizer>, answers?: ScriptedLanguageModel.Answers) =>
  CompressedLanguageModel.layer(options).pipe(
    Layer.provideMerge(ScriptedLanguageModel.layer(answers ?? (() => "ok"))),
    // Another than the one that the services have already.
    Layer.provide(Layer.fresh(Compression.layer)),
    Layer.provide(layer),
    Layer.provide(services)
  )

describe("a continued conversation", () => {
  it.effect("is recognized when parsed anew each time", over(small), function* () {
    const anew = (length: number) =>
      Schema.decodeEffect(Schema.fromJsonString(Prompt.Prompt))(JSON.stringify({ content: long.slice(0, length) }))
    for (const length of [40, 42, 43, 43]) {
      yield* LanguageModel.generateText({ prompt: yield* anew(length) })
    }
    const sent = yield* requests
    const [first, ...rest] = sent
    assert.isDefined(snapshotOf(first ?? []))
    for (const messages of rest) assert.strictEqual(snapshotOf(messages), snapshotOf(first ?? []))
    assert.isTrue(rest.every((messages, index) => isPrefix(sent[index] ?? [], messages)))
  })

  it.effect.each([undefined, "a"])("costs only what is new in it, parsed anew, with the key %s", function* (key) {
    const counter = yield* TokenCounter.pipe(Effect.provide(services))
    let counted = 0
    const counting = Layer.succeed(TokenCounter, {
      count: (parts) => Effect.suspend(() => ((counted += 1), counter.count(parts)))
    })
    const history = [Prompt.systemMessage({ content: "Be brief." }), ...conversation("alpha", 30)]
    const asked = (messages: Messages) =>
      Effect.suspend(() => {
        counted = 0
        const prompt = Prompt.fromMessages(JSON.parse(JSON.stringify(messages)))
        return Effect.map(LanguageModel.generateText({ prompt, toolkit: Adding }), () => counted)
      }).pipe(key === undefined ? identity : withConversation(key))
    yield* Effect.gen(function* () {
      const grown = [...history, says("And now?")]
      assert.strictEqual(yield* asked(grown), grown.length + Object.keys(Adding.tools).length)
      const longer = [...grown, answers("Well."), says("Go on.")]
      assert.strictEqual(yield* asked(longer), 2)
      // A compression counts what is sent; the calls after it count only what is new again, also where they branch.
      const due = [...longer, ...conversation("beta", 30), says("Well?")]
      yield* asked(due)
      assert.isDefined(snapshotOf(yield* latest))
      assert.isAtMost(yield* asked([...due, answers("So."), says("Then?")]), 2)
      assert.isAtMost(yield* asked([...due, answers("No."), says("Why?")]), 2)
    }).pipe(
      Effect.provide(
        CompressedLanguageModel.layer({ window: 16_000, reserve: 500 }).pipe(
          Layer.provideMerge(
            Layer.merge(
              ScriptedLanguageModel.layer(() => "ok"),
              layerAdding
            )
          ),
          Layer.provide(counting),
          Layer.provide(Layer.fresh(services))
        )
      )
    )
  })

  it.effect("with a key continues from its store after a restart, byte for byte", () => {
    const restarted = <A, E>(effect: Effect.Effect<A, E, LanguageModel.LanguageModel | ScriptedLanguageModel.Script>) =>
      effect.pipe(
        withConversation("a/b"),
        Effect.provide(
          Layer.fresh(
            CompressedLanguageModel.layer(small).pipe(Layer.provideMerge(ScriptedLanguageModel.layer(() => "ok")))
          )
        )
      )
    const longer = [...long, answers("Well."), ...conversation("alpha", 4), says("Go on.")]
    return Effect.gen(function* () {
      const sent = yield* restarted(Effect.andThen(ask(long), Effect.andThen(ask(longer), latest)))
      assert.isDefined(snapshotOf(sent))
      assert.deepStrictEqual(yield* restarted(Effect.andThen(ask(longer), latest)), sent)
      // Also while somebody else has its session open: nothing is written.
      yield* SessionStore.use(({ open }) => open(idOfKey("a/b")))
      assert.deepStrictEqual(yield* restarted(Effect.andThen(ask(longer), latest)), sent)
    }).pipe(Effect.scoped, Effect.provide(services))
  })

  it.effect("is compressed once for two concurrent requests", function* () {
    const { layer, written } = yield* counting.pipe(Effect.provide(services))
    yield* Effect.gen(function* () {
      yield* Effect.all([ask(long), ask(long), ask(long.slice()), ask([...long, answers("x"), says("y")])], {
        concurrency: "unbounded"
      })
      const [one, two, three, four] = yield* requests
      assert.deepStrictEqual(one, two)
      assert.deepStrictEqual(one, three)
      assert.isTrue(isPrefix(one ?? [], four ?? []))
      assert.strictEqual(written(), 1)
    }).pipe(Effect.provide(withSummarizer(small, layer)))
  })

  for (const [what, bounds] of [
    ["no longer held in memory", { conversations: 1 }],
    ["forgotten", { conversations: 1, remembered: 1 }]
  ] as const) {
    it.effect(`continues when it is ${what}, and its handles stay valid`, function* () {
      const { layer, written } = yield* counting.pipe(Effect.provide(services))
      yield* Effect.gen(function* () {
        yield* ask(long)
        const first = yield* latest
        const handles = mentions(wordsOf(first))
        assert.isAtLeast(handles.length, 2)
        const { recall } = yield* Recall
        const texts = yield* Effect.forEach(handles, (handle) => recall(handle))
        // Conversations that are not compressed have none forgotten that is.
        for (let n = 0; n < 4; n += 1) yield* ask([says(`Something else ${n}.`)])
        yield* ask(long)
        assert.strictEqual(written(), 1)
        yield* ask([...conversation("else", 25), says("And now?")])
        const again = yield* Effect.forEach(handles, (handle) => recall(handle)).pipe(Recall.within(long))
        assert.deepStrictEqual(again, texts)
        yield* ask(long)
        assert.deepStrictEqual(yield* latest, first)
        assert.strictEqual(written(), "remembered" in bounds ? 3 : 2)
        // What comes next is what would have come had nobody forgotten anything.
        const grown = [...long, ...conversation("more", 25), says("Well?")]
        yield* ask(grown)
        const sent = yield* latest
        const whole = Layer.fresh(over(small))
        const expected = yield* ask(long).pipe(
          Effect.andThen(ask(grown)),
          Effect.andThen(latest),
          Effect.provide(whole)
        )
        assert.deepStrictEqual(sent, expected)
      }).pipe(Effect.provide(withSummarizer({ ...small, ...bounds }, layer)))
    })
  }
})

it.effect("as many conversations are remembered as the options say, each once compressed", function* () {
  const { layer, written } = yield* counting.pipe(Effect.provide(services))
  // Two beginnings of each: where it was compressed, and its latest.
  const asked = (topics: ReadonlyArray<string>) =>
    Effect.forEach(
      topics.map((topic) => [...conversation(topic, 25), says("And now?")]),
      (begun) => Effect.andThen(ask(begun), ask([...begun, answers("ok"), says("And then?")])),
      { discard: true }
    )
  yield* Effect.gen(function* () {
    yield* asked(["a", "b", "c"])
    yield* asked(["a", "b", "c"])
    assert.strictEqual(written(), 3)
    yield* asked(["d", "e", "f", "g", "a"])
    assert.strictEqual(written(), 8)
  }).pipe(Effect.provide(withSummarizer({ ...small, remembered: 3 }, layer)))
})

describe("the hooks of a compression", () => {
  it.effect("hear of it before and after, and of the session of its conversation", over(small), function* () {
    const hooks = yield* HookSystem
    const heard: Array<string> = []
    const listening = (event: "PreCompress" | "PostCompress") => ({
      name: event,
      event,
      priority: 0,
      run: (_: unknown, { session }: HookPlace) =>
        Effect.sync(() => {
          heard.push(`${event} ${session?.split("-")[0] ?? "without"}`)
          return {}
        })
    })
    yield* hooks.add([listening("PreCompress"), listening("PostCompress")])
    yield* ask(long)
    yield* ask(long).pipe(withConversation("one"))
    assert.deepStrictEqual(heard, [
      "PreCompress without",
      "PostCompress without",
      "PreCompress one",
      "PostCompress one"
    ])
  })
})

describe("a compression without effect", () => {
  /** One request that takes most of the window, then a conversation about it. */
  const request = says(`alpha request ${page(0).repeat(14)}`)
  const follows = Array.from({ length: 6 }, (_, n) => [answers(`alpha answer ${n}`), says(`alpha more ${n}`)]).flat()
  const vetoing = Effect.gen(function* () {
    const hooks = yield* HookSystem
    let vetoes = 2
    yield* hooks.add([
      {
        name: "not now",
        event: "PreCompress",
        priority: 0,
        run: () =>
          Effect.sync(() => {
            vetoes -= 1
            return vetoes >= 0 ? { decision: "block" as const, reason: "not now" } : {}
          })
      }
    ])
  })
  const ways: ReadonlyArray<
    readonly [string, Messages, Messages, Effect.Effect<void, never, HookSystem | Scope.Scope>]
  > = [
    ["because there was nothing to compress", [request], [says(`beta ${wordsOf([request])}`)], Effect.void],
    ["because a hook vetoed it", conversation("alpha", 14), [says(`beta ${wordsOf([request])}`)], vetoing]
  ]
  for (const [why, first, other, prepared] of ways) {
    it.effect(`leaves the conversation complete when its session is dropped, ${why}`, function* () {
      const sentWith = (conversations: number) =>
        Effect.gen(function* () {
          yield* prepared
          yield* ask(first)
          assert.deepStrictEqual(yield* latest, first)
          yield* ask(other)
          for (let length = 2; length <= follows.length; length += 2)
            yield* ask([...first, ...follows.slice(0, length)])
          yield* ask([...first, ...follows, ...conversation("alpha later", 6), says("And now?")])
          return (yield* requests).slice(2)
        }).pipe(Effect.scoped, Effect.provide(Layer.fresh(over({ ...small, conversations }))))
      const held = yield* sentWith(64)
      const letGo = yield* sentWith(1)
      assert.isDefined(snapshotOf(held.at(-1) ?? []))
      assert.deepStrictEqual(letGo, held)
    })
  }
})

it.effect("two conversations, compressed more than once, are the same made again from what was recorded", function* () {
  const sentWith = (conversations: number) =>
    Effect.gen(function* () {
      const topics = ["alpha", "beta"]
      for (let turn = 10; turn <= 40; turn += 5)
        for (const topic of topics) yield* ask([...conversation(topic, turn), says("And now?")])
      const found = yield* Effect.forEach(topics, (topic) =>
        Recall.use(({ search }) => search({ pattern: `${topic} question`, maxTokens: 9_000, isRedacted: false })).pipe(
          Recall.within([...conversation(topic, 40), says("And now?")])
        )
      )
      assert.isTrue(found.every(({ matched }) => matched > 5))
      return [...(yield* requests), ...found]
    }).pipe(Effect.provide(Layer.fresh(over({ ...small, conversations }))))
  const held = yield* sentWith(64)
  assert.deepStrictEqual(yield* sentWith(1), held)
})

describe("a prompt that differs from the known one", () => {
  const grown = [...long, answers("Well."), says("Go on.")]
  const at = (index: number, message: Prompt.Message) => grown.map((each, n) => (n === index ? message : each))
  const cases: ReadonlyArray<readonly [string, Messages, gone: string]> = [
    ["an edited last message", at(grown.length - 1, says("Stop: gamma.")), "Go on."],
    ["an edited answer", at(grown.length - 2, answers("No: gamma.")), "Well."],
    ["an edited first message", at(1, says(`gamma ${page(0)}`)), `alpha question 0`],
    ["another system message", at(0, Prompt.systemMessage({ content: "gamma" })), "Be brief."],
    ["a message less in the middle", grown.filter((_, n) => n !== grown.length - 4).concat(says("gamma")), "answer 24"]
  ]
  for (const [name, prompt, gone] of cases) {
    it.effect(`branches: ${name}`, over(small), function* () {
      yield* ask(long)
      yield* ask(grown)
      yield* ask(prompt)
      const sent = yield* latest
      assert.include(wordsOf(sent), "gamma")
      assert.notInclude(wordsOf(sent), gone)
      assert.isUndefined(wrong(prompt, sent, 3_500))
      // The one before goes on as if nothing had been.
      const before = (yield* requests)[1] ?? []
      yield* ask([...grown, answers("x"), says("y")])
      assert.isTrue(isPrefix(before, yield* latest))
    })
  }

  it.effect("that is shorter, as after an undo, is sent without the later messages", over(small), function* () {
    yield* ask(long)
    yield* ask(grown)
    yield* ask(grown.slice(0, 9))
    assert.deepStrictEqual(yield* latest, grown.slice(0, 9))
    yield* ask(long)
    assert.deepStrictEqual(yield* latest, (yield* requests)[0])
  })
})

// --- limits ---------------------------------------------------------------------------------------------------------------

/** A compression that counts how often it is asked. */
const watched = Effect.gen(function* () {
  let tried = 0
  const real = yield* Compression.pipe(Effect.provide(services))
  const compress: typeof real.compress = (request) =>
    Effect.suspend(() => {
      tried += 1
      return real.compress(request)
    })
  return { layer: Layer.succeed(Compression, { ...real, compress }), tried: () => tried }
})

describe("a prompt that cannot be made to fit", () => {
  const huge = says(`gamma ${"unbelievable words that have to stay ".repeat(1_000)}`)

  it.effect("is refused with the numbers, before sending, by every method", over(small), function* () {
    const prompt = Prompt.fromMessages([...long, answers("x"), huge])
    const schema = Schema.Struct({ ok: Schema.Boolean })
    const refusals = yield* Effect.all([
      Effect.flip(LanguageModel.generateText({ prompt })),
      Effect.flip(LanguageModel.generateObject({ prompt, schema })),
      Effect.flip(Stream.runDrain(LanguageModel.streamText({ prompt })))
    ])
    for (const error of refusals) {
      assert.strictEqual(error.reason._tag, "InvalidUserInputError")
      assert.match(error.message, /the prompt is too long: up to \d+ tokens.*window of 4000 less 500.*room for 3500/)
    }
    assert.deepStrictEqual(yield* requests, [])
  })

  it.effect("leaves the conversation unchanged", over(small), function* () {
    yield* ask(long)
    const before = yield* latest
    yield* Effect.flip(ask([...long, answers("x"), huge]))
    yield* ask([...long, answers("x"), says("Shorter.")])
    assert.isTrue(isPrefix(before, yield* latest))
  })

  it.effect("is not compressed needlessly when system messages alone are too long", function* () {
    const { layer, written } = yield* counting.pipe(Effect.provide(services))
    yield* Effect.gen(function* () {
      const system = Prompt.systemMessage({ content: "Be brief. ".repeat(4_000) })
      const error = yield* Effect.flip(ask([system, ...long]))
      assert.include(error.message, "system messages and tools alone")
      assert.strictEqual(written(), 0)
    }).pipe(Effect.provide(withSummarizer(small, layer)))
  })

  it.effect(
    "costs no second summary when repeated",
    CompressedLanguageModel.layer(small).pipe(
      Layer.provideMerge(ScriptedLanguageModel.layer(() => "ok")),
      Layer.provide(Layer.fresh(Compression.layer)),
      Layer.provide(ModelSummarizer.layer),
      Layer.provideMerge(ScriptedModel.layer(() => "I would rather not.")),
      Layer.provide(services)
    ),
    function* () {
      const paid = Effect.map(
        ScriptedModel.Script.use((script) => script.calls),
        (calls) => calls.filter(({ method }) => method !== "countTokens").length
      )
      const prompt = [...long, answers("x"), huge]
      yield* Effect.flip(ask(prompt))
      const once = yield* paid
      assert.isAbove(once, 0)
      assert.strictEqual((yield* Effect.flip(ask(prompt))).reason._tag, "InvalidUserInputError")
      assert.strictEqual(yield* paid, once)
    }
  )

  it.effect.each([undefined, "a/b"])("is not retried when nothing can be gained, with the key %s", function* (key) {
    const { layer: spied, tried } = yield* watched
    yield* Effect.gen(function* () {
      // Over the threshold, within the window: all of it waits for its answer.
      const pending = says(page(0).repeat(26))
      let prompt: Messages = [pending]
      for (let n = 0; n < 6; n += 1) {
        yield* ask(prompt)
        assert.deepStrictEqual(yield* latest, prompt)
        prompt = [...prompt, says("?")]
      }
      assert.strictEqual(tried(), 1)
    }).pipe(
      key === undefined ? identity : withConversation(key),
      Effect.provide(
        CompressedLanguageModel.layer({ window: 6_000, reserve: 0 }).pipe(
          Layer.provideMerge(ScriptedLanguageModel.layer(() => "ok")),
          Layer.provide(spied),
          Layer.provide(services)
        )
      )
    )
  })
})

describe("a provider's rejection as too long", () => {
  const tooLong = failing(
    new AiError.InvalidRequestError({ description: "This model's maximum context length is 2000 tokens" })
  )
  const refusing =
    (most: number): ScriptedLanguageModel.Answers =>
    (request) =>
      wordsOf(request.prompt.content).length > most ? tooLong : "fits"
  const halfFull = [Prompt.systemMessage({ content: "Be brief." }), ...conversation("alpha", 12)]

  it.effect("is retried once with less", over({ window: 6_000 }, refusing(7_000)), function* () {
    const response = yield* ask(halfFull)
    assert.strictEqual(response.text, "fits")
    const [first, second, ...more] = yield* requests
    assert.deepStrictEqual(first, halfFull)
    assert.isDefined(snapshotOf(second ?? []))
    assert.deepStrictEqual(more, [])
    // What was learned is kept: the next one fits at once.
    yield* ask([...halfFull, says("Next?")])
    assert.strictEqual((yield* requests).length, 3)
  })

  it.effect("is retried for a stream that has not begun", over({ window: 6_000 }, refusing(7_000)), function* () {
    const parts = yield* Stream.runCollect(LanguageModel.streamText({ prompt: Prompt.fromMessages(halfFull) }))
    assert.isTrue(parts.some((part) => part.type === "text-delta" && part.delta === "fits"))
    assert.strictEqual((yield* requests).length, 2)
  })

  it.effect.each([
    ["retried once where nothing but its id has come", [{ type: "response-metadata", id: "r" }], 2],
    [
      "not retried once a text begins",
      [
        { type: "text-start", id: "t" },
        { type: "text-delta", id: "t", delta: "a" }
      ],
      1
    ]
  ] as ReadonlyArray<readonly [string, ReadonlyArray<Response.StreamPartEncoded>, number]>)(
    "of a stream is %s",
    function* ([, begun, expected]) {
      let asked = 0
      const streamText = () =>
        Stream.suspend(() => {
          asked += 1
          return Stream.concat(Stream.fromIterable(begun), Stream.fail(tooLong))
        })
      const inner = Layer.effect(
        LanguageModel.LanguageModel,
        LanguageModel.make({ generateText: () => Effect.die("unused"), streamText })
      )
      const seen: Array<string> = []
      const error = yield* LanguageModel.streamText({ prompt: Prompt.fromMessages(halfFull) }).pipe(
        Stream.runForEach((part) => Effect.sync(() => seen.push(part.type))),
        Effect.flip,
        Effect.provide(CompressedLanguageModel.layer({ window: 6_000 }).pipe(Layer.provide([inner, services])))
      )
      assert.strictEqual(error.reason._tag, "InvalidRequestError")
      assert.deepStrictEqual([asked, seen.slice(0, begun.length)], [expected, begun.map(({ type }) => type)])
    }
  )

  it.effect("is not retried twice", over({ window: 6_000 }, refusing(0)), function* () {
    const error = yield* Effect.flip(ask(halfFull))
    assert.include(["InvalidRequestError", "InvalidUserInputError"], error.reason._tag)
    assert.isAtMost((yield* requests).length, 2)
  })

  it.effect(
    "is not retried after tools have run, nor is any other failure",
    Layer.merge(over({ window: 6_000 }, refusing(0)), layerAdding),
    function* () {
      added = 0
      const prompt = Prompt.fromMessages([...halfFull, asked, decided])
      yield* Effect.flip(LanguageModel.generateText({ prompt, toolkit: Adding }))
      assert.deepStrictEqual([added, (yield* requests).length], [1, 1])
    }
  )

  it.effect(
    "or any other failure is not retried",
    over({ window: 6_000 }, [failing(new AiError.RateLimitError({}))]),
    function* () {
      const error = yield* Effect.flip(ask(halfFull))
      assert.strictEqual(error.reason._tag, "RateLimitError")
      assert.strictEqual((yield* requests).length, 1)
    }
  )

  for (const [name, honest] of [
    ["from the first call on", 0],
    ["all of a sudden", 30]
  ] as const) {
    it.effect(`teaches the counts: a model that counts more gets less, ${name}`, () => {
      /** A provider that counts three tokens where we count one. */
      const counting: ScriptedLanguageModel.Answers = (request, index) => [
        { type: "text", text: "ok" },
        {
          type: "finish",
          reason: "stop",
          usage: {
            inputTokens: { total: Math.round(boundOf(request.prompt.content) * (index < honest ? 0.8 : 3)) },
            outputTokens: {}
          }
        }
      ]
      return Effect.gen(function* () {
        const talk = conversation("alpha", 20)
        for (let length = 1; length <= talk.length; length += 1) yield* ask(talk.slice(0, length))
        const sent = yield* requests
        assert.isTrue(sent.some((messages) => snapshotOf(messages) !== undefined))
        // The first that is counted so teaches it.
        for (const messages of sent.slice(honest + 1)) assert.isAtMost(boundOf(messages) * 3, 6_000)
      }).pipe(Effect.provide(over({ window: 6_000, reserve: 0, threshold: 0.9 }, counting)))
    })
  }
})

// --- the rest -------------------------------------------------------------------------------------------------------------

describe("options", () => {
  const sentFor = (options: Options, name?: string) =>
    Effect.map(Effect.andThen(ask(long), latest), (sent) => snapshotOf(sent) !== undefined).pipe(
      Effect.provide(
        CompressedLanguageModel.layer(options).pipe(
          Layer.provideMerge(ScriptedLanguageModel.layer(() => "ok")),
          Layer.provide(services),
          Layer.provide(name === undefined ? Layer.empty : Layer.succeed(ModelName, name))
        )
      )
    )
  const cases: ReadonlyArray<readonly [string, Options, string | undefined, boolean]> = [
    ["the window given", { window: 4_000 }, undefined, true],
    ["the window of a model", { model: "gemma-4-27b" }, undefined, false],
    ["a smaller window of a model", { model: "gpt-4", threshold: 0.3 }, undefined, true],
    ["a smaller window of the model that the layer names", { threshold: 0.3 }, "gpt-4", true],
    ["the window of the option's model first", { model: "gemma-4-27b", threshold: 0.3 }, "gpt-4", false],
    ["the default window", {}, undefined, false],
    ["a small share of the default window", { threshold: 0.1 }, undefined, true],
    ["the window given before that of the model", { window: 4_000, model: "gemini-2.5-pro" }, "gemma-4-27b", true],
    ["a higher threshold", { window: 12_000, threshold: 0.5 }, undefined, false],
    ["a lower threshold", { window: 12_000, threshold: 0.2 }, undefined, true],
    ["a reserve that leaves too little", { window: 6_000, threshold: 1, reserve: 3_000 }, undefined, true]
  ]
  for (const [name, options, model, compressed] of cases) {
    it.effect(`${name}: ${compressed ? "compresses" : "does not"}`, function* () {
      assert.strictEqual(yield* sentFor(options, model), compressed)
    })
  }

  it.effect.each([
    ["window", { window: 0 }],
    ["reserve", { reserve: -1 }],
    ["threshold", { threshold: 1.1 }],
    ["threshold", { threshold: 0 }],
    ["preserve", { policy: { preserve: 2 } }],
    ["conversations", { conversations: Number.NaN }],
    ["remembered", { remembered: 0 }],
    ["model", { model: 5 as never }],
    ["window", { window: null as never }],
    ["policy", { policy: 5 as never }]
  ] as const)("out of their range fail each call, and name it: %s", function* ([name, options]) {
    const error = yield* Effect.flip(sentFor(options))
    assert.strictEqual(error.reason._tag, "InvalidUserInputError")
    assert.include(error.message, `${name} is `)
  })

  it.effect(
    "let a model write the snapshot when its layer is provided",
    CompressedLanguageModel.layer(small).pipe(
      Layer.provideMerge(ScriptedLanguageModel.layer(() => "ok")),
      Layer.provide(Layer.fresh(Compression.layer)),
      Layer.provide(ModelSummarizer.layer),
      Layer.provideMerge(
        ScriptedModel.layer(
          () =>
            "<state_snapshot><overall_goal>A model wrote this.</overall_goal><active_constraints>none</active_constraints><key_knowledge>none</key_knowledge><artifact_trail>none</artifact_trail><file_system_state>none</file_system_state><recent_actions>none</recent_actions><task_state>none</task_state></state_snapshot>"
        )
      ),
      Layer.provide(services)
    ),
    function* () {
      yield* ask(long)
      assert.include(snapshotOf(yield* latest) ?? "", "A model wrote this.")
      assert.isAbove((yield* ScriptedModel.Script.use((script) => script.calls)).length, 0)
    }
  )
})

describe("a system prompt", () => {
  it.effect("counts towards the growth mark after a compression with little gain", function* () {
    const { layer: spied, tried } = yield* watched
    yield* Effect.gen(function* () {
      const pending = says(page(0).repeat(24))
      let prompt: Messages = [
        Prompt.systemMessage({ content: page(1).repeat(16) }),
        ...conversation("alpha", 3),
        pending
      ]
      yield* ask(prompt)
      assert.isDefined(snapshotOf(yield* latest))
      assert.strictEqual(tried(), 1)
      for (let n = 0; n < 4; n += 1) {
        prompt = [...prompt, says("?")]
        yield* ask(prompt)
        assert.strictEqual(tried(), 1)
      }
      yield* ask([...prompt, ...conversation("beta", 4), says("?")])
      assert.strictEqual(tried(), 2)
    }).pipe(
      Effect.provide(
        CompressedLanguageModel.layer({ window: 12_000, reserve: 0, threshold: 0.3, policy: { minGain: 0 } }).pipe(
          Layer.provideMerge(ScriptedLanguageModel.layer(() => "ok")),
          Layer.provide(spied),
          Layer.provide(services)
        )
      )
    )
  })

  it.effect(
    "counts towards the threshold, and the result stays below it",
    over({ window: 4_000, reserve: 0 }),
    function* () {
      const system = Prompt.systemMessage({ content: page(0).repeat(8) })
      yield* ask([system, ...conversation("alpha", 8), says("And now?")])
      const sent = yield* latest
      assert.isDefined(snapshotOf(sent))
      assert.isBelow(boundOf(sent) / 1.4, 2_000)
    }
  )
})

describe("recall", () => {
  it.effect(
    "is a tool that the model can call, with errors as results",
    Layer.mergeAll(layerRecallTool, layerAdding).pipe(
      Layer.provideMerge(
        over(small, (request, index) => {
          if (index === 0) return "ok"
          const asked = /Recall (.*)$/.exec(wordsOf(request.prompt.content).replaceAll('\\"', '"'))?.[1] ?? ""
          const params = JSON.parse(asked.slice(0, asked.indexOf("}") + 1))
          return [{ type: "tool-call", id: "r1", name: "recall", params }]
        })
      )
    ),
    function* () {
      yield* ask(long)
      const [, handle] = mentions(snapshotOf(yield* latest) ?? "")
      const toolkit = Toolkit.merge(Adding, recallToolkit)
      const call = (params: Readonly<Record<string, unknown>>) =>
        Effect.map(
          LanguageModel.generateText({
            prompt: Prompt.fromMessages([...long, answers("Well."), says(`Recall ${JSON.stringify(params)}`)]),
            toolkit
          }),
          ({ toolResults: [one] }) => [one?.isFailure, String(one?.result)]
        )
      const [failed, text] = yield* call({ handle })
      assert.isFalse(failed)
      assert.match(String(text), /^alpha question \d+/)
      const nowhere = `${handle} has no line that matches; it has 1 line.`
      assert.deepStrictEqual(yield* call({ handle, grep: "nowhere" }), [false, nowhere])
      const [unknown, told] = yield* call({ handle: "nothing" })
      assert.isTrue(unknown)
      assert.match(String(told), /^nothing is kept under nothing here; copy a handle exactly/)
      const [unasked, needed] = yield* call({})
      assert.deepStrictEqual([unasked, needed], [true, "give a handle, or grep to search everything that left"])
      const [bad, why] = yield* call({ handle, grep: "(" })
      assert.isTrue(bad)
      assert.isNotEmpty(why)
      assert.deepStrictEqual(yield* call({ handle, from: 2 }), [
        false,
        `${handle} has none of the lines asked for; it has 1 line.`
      ])
      const other = yield* LanguageModel.generateText({ prompt: `Recall ${JSON.stringify({ handle })}`, toolkit })
      assert.match(String(other.toolResults[0]?.result), /^nothing is kept under h_\w+ here; copy a handle/)
    }
  )
})

describe("recall within a call within a call", () => {
  it.effect(
    "finds what the innermost prompt holds, then what those around it hold, in the same conversation",
    over(small),
    function* () {
      yield* ask(long)
      const [handle] = mentions(snapshotOf(yield* latest) ?? "")
      if (handle === undefined) return assert.fail("no handle")
      const { recall } = yield* Recall
      const { text } = yield* recall(handle).pipe(Recall.within(long))
      const inner = recall(handle).pipe(Recall.within([says("Within.")]))
      assert.strictEqual((yield* inner.pipe(Recall.within(long))).text, text)
      assert.strictEqual((yield* inner.pipe(Recall.within([says("Between.")]), Recall.within(long))).text, text)
      yield* Effect.flip(inner)
      yield* Effect.flip(inner.pipe(withConversation("another"), Recall.within(long)))
    }
  )
})

it.effect("recall finds each part of a message by its handle", over(small), function* () {
  const { recall } = yield* Recall
  const texts = ["one", "two", "three"].map((text) => `${text} ${page(0)}`)
  const message = (made: (parts: ReadonlyArray<Prompt.TextPart>) => Prompt.Message, from: number) =>
    made(texts.slice(from, from + 2).map((text) => Prompt.textPart({ text })))
  const prompt = [
    message((content) => Prompt.userMessage({ content }), 0),
    message((content) => Prompt.assistantMessage({ content }), 1)
  ]
  for (const text of texts) {
    const found = yield* recall(handleOf(hashSync(text))).pipe(Recall.within(prompt))
    assert.strictEqual(found.text, text)
  }
})

it.effect.each([
  [undefined, undefined, true],
  ["a", "a", true],
  ["a", "b", false],
  ["a", undefined, false],
  [undefined, "b", false]
] as const)(
  "recall looks into the prompts around of its own conversation: %s around %s",
  ([around, inner, isFound]) => {
    const keyed = (key: string | undefined) => (key === undefined ? identity : withConversation(key))
    const within = (key: string | undefined) => Effect.provideService(ConversationKey, key)
    const said = page(0)
    return Effect.gen(function* () {
      const { recall } = yield* Recall
      const found = yield* Effect.result(
        recall(handleOf(hashSync(said))).pipe(within(inner), Recall.within([says(said)]), keyed(around))
      )
      assert.strictEqual(found._tag, isFound ? "Success" : "Failure")
    }).pipe(Effect.provide(over(small)))
  }
)

it.effect("recall reads the sessions of a key while somebody else has them open", function* () {
  yield* Effect.gen(function* () {
    yield* ask(long)
    const [handle = assert.fail("the request shows no handle")] = mentions(JSON.stringify(yield* latest))
    yield* SessionStore.use(({ open }) => open(idOfKey("a")))
    const { recall, search } = yield* Recall
    assert.isNotEmpty((yield* recall(handle)).text)
    assert.isAbove((yield* search({ pattern: "parser", maxTokens: 100, isRedacted: false })).matched, 0)
  }).pipe(Effect.scoped, withConversation("a"), Effect.provide(over(small)))
})

describe("recall outside of a call", () => {
  const told = Effect.gen(function* () {
    const [handle] = mentions(snapshotOf(yield* latest) ?? "")
    if (handle === undefined) return assert.fail("no handle")
    return handle
  })

  it.effect(
    "finds nothing after a prompt that is a prefix of the known one: it may be another conversation",
    over(small),
    function* () {
      yield* ask(long)
      const handle = yield* told
      const { recall } = yield* Recall
      yield* ask(long.slice(0, 2))
      const error = yield* Effect.flip(recall(handle))
      assert.include(error.message, "belongs to one of several conversations")
      assert.isNotEmpty((yield* recall(handle).pipe(Recall.within(long))).text)
    }
  )

  it.effect("finds what was dropped from a single conversation that repeats its request", over(small), function* () {
    yield* ask(long)
    const handle = yield* told
    const { recall } = yield* Recall
    const { text } = yield* recall(handle)
    for (const prompt of [long, long.slice(), [...long, answers("Well."), says("Go on.")]]) {
      yield* ask(prompt)
      assert.strictEqual((yield* recall(handle)).text, text)
    }
  })
})

describe("the recall tool", () => {
  it.effect("returns as much as fits the window, with a note about the rest", function* () {
    const lines = Array.from({ length: 3_000 }, (_, line) => `line ${line} of a long file`).join("\n")
    const recall = Layer.succeed(Recall, {
      recall: (_, selection) => select(lines, selection ?? {}),
      search: () => Effect.die("not searched")
    })
    const toolkit = yield* recallToolkit.pipe(Effect.provide(Layer.provide(layerRecallTool, recall)))
    const told = (params: { readonly handle: string; readonly from?: number; readonly to?: number }) =>
      toolkit.handle("recall", params).pipe(Stream.unwrap, Stream.runCollect)
    const [all] = yield* told({ handle: "h_aaaaaaaaaa" })
    assert.isBelow(String(all?.result).length, 40_000)
    assert.match(String(all?.result), /\(\d+ lines more of 3000; ask for them by number, or by grep\)$/)
    const [some] = yield* told({ handle: "h_aaaaaaaaaa", from: 2_001, to: 2_002 })
    assert.include(String(some?.result), "line 2000 of")
    assert.notInclude(String(some?.result), "lines more")
  })

  it.effect.each([true, false])("leaves secrets out unless it may not (%s)", function* (redactSecrets) {
    const secret = "password = tr0ub4dor&3horse"
    const recall = Layer.succeed(Recall, {
      recall: (_, selection) => select(`before\n${secret}\nafter`, selection ?? {}),
      search: () => Effect.die("not searched")
    })
    const tool = Layer.provide(layerRecallToolWith({ redactSecrets }), recall)
    const toolkit = yield* recallToolkit.pipe(Effect.provide(tool))
    const [told] = yield* toolkit.handle("recall", { handle: "h_aaaaaaaaaa" }).pipe(Stream.unwrap, Stream.runCollect)
    const text = String(told?.result)
    assert.strictEqual(text.includes(secret), !redactSecrets)
    assert.strictEqual(
      text.endsWith("(secrets in this text are left out; the program that stores them can read them)"),
      redactSecrets
    )
  })
})

describe("failures", () => {
  it.effect(
    "of counting are model errors",
    CompressedLanguageModel.layer(small).pipe(
      Layer.provideMerge(ScriptedLanguageModel.layer(() => "ok")),
      Layer.provide(
        Layer.succeed(TokenCounter, {
          count: () => Effect.fail(new TokenCountError({ message: "no counter today", cause: "test" }))
        })
      ),
      Layer.provide(services)
    ),
    function* () {
      const error = yield* Effect.flip(ask([says("Hello.")]))
      assert.isTrue(AiError.isAiError(error))
      assert.include(error.message, "no counter today")
      assert.deepStrictEqual(yield* requests, [])
    }
  )

  it.effect("leave an interrupted call before or after its change", function* () {
    const long = conversation("alpha", 4)
    const model = over({ window: 1_100, reserve: 200, policy: { minGain: 0 } })
    const reference = yield* Effect.andThen(ask(long), latest).pipe(Effect.provide(Layer.fresh(model)))
    assert.isDefined(snapshotOf(reference))
    let current: Context.Context<LanguageModel.LanguageModel | ScriptedLanguageModel.Script> | undefined
    const points = yield* interruptSweep(
      () =>
        Effect.gen(function* () {
          current = yield* Layer.build(Layer.fresh(model))
          yield* Effect.provideContext(ask(long), current)
        }),
      () =>
        Effect.gen(function* () {
          if (current === undefined) return
          // The same prompt and a longer one, as if nothing had been.
          yield* Effect.gen(function* () {
            yield* ask(long)
            assert.deepStrictEqual(yield* latest, reference)
            yield* ask([...long, answers("x"), says("y")])
            assert.isTrue(isPrefix(reference, yield* latest))
          }).pipe(Effect.provideContext(current))
        })
    )
    assert.isAbove(points, 10)
  })
})
