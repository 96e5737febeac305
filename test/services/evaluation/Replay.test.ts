import { Arbitrary, Effect, Layer, Schema } from "effect"
import { call, model, response, text, user } from "../../../src/domain/content/Content.ts"
import { compressions as compressionsOf, type Draft, entries } from "../../../src/domain/conversation/Conversation.ts"
import { sumFigures } from "../../../src/domain/evaluation/Measure.ts"
import { recordedTurns } from "../../../src/domain/evaluation/Replay.ts"
import { emptySession } from "../../../src/domain/session/Session.ts"
import * as MemorySessionStore from "../../../src/layers/testing/MemorySessionStore.ts"
import * as MemoryTempStore from "../../../src/layers/testing/MemoryTempStore.ts"
import { Compression } from "../../../src/services/compression/Compression.ts"
import { Summarizer } from "../../../src/services/compression/summary/Summarizer.ts"
import { requestFor } from "../../../src/services/conversation/KnownConversation.ts"
import { type ReplayResult, playRecording } from "../../../src/services/evaluation/Replay.ts"
import { HookSystem } from "../../../src/services/hooks/HookSystem.ts"
import { SessionStore } from "../../../src/services/session/SessionStore.ts"
import { TokenCounter } from "../../../src/services/tokens/TokenCounter.ts"
import { openingDrafts, type Script, talks, thousand } from "../../support/generate.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const stores = Layer.mergeAll(
  Layer.provideMerge(MemorySessionStore.layer, MemoryTempStore.layer),
  TokenCounter.layerEstimate
)

const ask = (words: string): Draft => ({ content: user(text(words)) })
const says = (words: string): Draft => ({ content: model(text(words)) })

/** A prompt and calls, each with so many lines of output. */
const work = (calls: number, lines: number): ReadonlyArray<Draft> => [
  ask("Make the build green."),
  ...Array.from({ length: calls }, (_, n): ReadonlyArray<Draft> => [
    { content: model(call("shell", { command: `make part${n}` }, `c${n}`)) },
    { content: user(response("shell", { output: `line ${n} of the build\n`.repeat(lines) }, `c${n}`)) }
  ]).flat(),
  says("It is green.")
]

interface How {
  readonly window: number
  readonly strategy?: "palimpsest" | "gemini"
}

/** Plays some messages in a world of their own. */
const played = (drafts: ReadonlyArray<Draft>, { strategy = "palimpsest", window }: How) =>
  Effect.gen(function* () {
    const { conversation } = yield* requestFor(drafts)
    return yield* playRecording(recordedTurns(conversation), {
      session: "replayed",
      window,
      threshold: 0.5,
      policy: { strategy },
      recording: { ...emptySession, conversation }
    })
  }).pipe(Effect.provide(stores, { local: true }))

/** What is wrong with a replay, or nothing. */
const wrong = (
  { compressions, refused, requests, unanswered }: ReplayResult,
  turns: number,
  window: number
): string | undefined => {
  const over = requests.find(({ tokens }) => tokens > window)
  if (over !== undefined) return `a request of ${over.tokens} tokens in a window of ${window}`
  const asked = Array.from({ length: turns }, (_, index) => index + 1).filter(
    (turn) => !refused.includes(turn) || unanswered.includes(turn)
  )
  if (requests.length !== asked.length) return `${requests.length} requests for ${asked.length} turns`
  for (const [index, { prefix }] of requests.entries()) {
    const before = requests[index - 1]
    const since = asked[index - 1] ?? 0
    const now = asked[index] ?? 0
    const isCompressed = compressions.some(
      ({ after, before: size, turn }) => turn > since && turn <= now && after !== size
    )
    if (before !== undefined && !isCompressed && !unanswered.includes(since) && prefix !== before.tokens)
      return `turn ${now} begins with ${prefix} of the ${before.tokens} tokens before`
  }
  return undefined
}

const sound = (script: Script, how: How): Effect.Effect<boolean, string> =>
  Effect.gen(function* () {
    const drafts = openingDrafts(script)
    const first = yield* Effect.result(played(drafts, how))
    const again = yield* Effect.result(played(drafts, how))
    if (first._tag === "Failure" || again._tag === "Failure") {
      const [one, other] = [first, again].map((result) => (result._tag === "Failure" ? result.failure.message : ""))
      const isRefusal =
        first._tag === "Failure" &&
        (first.failure._tag === "ContextOverflow" ||
          (first.failure._tag === "ModelError" && first.failure.reason._tag === "AnswerTooLargeError"))
      if (!isRefusal) return yield* Effect.fail(one ?? "")
      return one === other || (yield* Effect.fail("the failures differ"))
    }
    const { conversation } = yield* requestFor(drafts).pipe(Effect.provide(stores), Effect.orDie)
    const violation = wrong(first.success, recordedTurns(conversation).length, how.window)
    if (violation !== undefined) return yield* Effect.fail(violation)
    const [one, other] = [first.success, again.success].map((each) => JSON.stringify({ ...each, millis: 0 }))
    return one === other || (yield* Effect.fail("the reports differ"))
  })

const windows = Arbitrary.schema(
  Schema.Struct({
    window: Schema.Literals([2_000, 6_000, 1_000, 20_000, 300]),
    strategy: Schema.Literals(["palimpsest", "palimpsest", "gemini"])
  })
)

describe("Replay", () => {
  it.effect.prop(
    "keeps every request within the window, with a stable prefix between compressions, and is deterministic",
    [talks, windows],
    ([script, how]) => sound(script, how),
    { arbitrary: thousand("replay", 100) }
  )

  it.effect("distinguishes the guard's compressions from those by the threshold", function* () {
    const { compressions, requests } = yield* played(
      [...work(6, 300), ask(`Here is the whole log. ${"It went on and on. ".repeat(1_100)}`), ...work(6, 300)],
      { window: 8_000 }
    )
    assert.includeMembers(
      compressions.map(({ trigger }) => trigger),
      ["threshold", "guard"]
    )
    const [guarded] = compressions.filter(({ trigger }) => trigger === "guard")
    assert.isAbove(guarded?.before ?? 0, 8_000)
    assert.isBelow(guarded?.after ?? 0, 8_000)
    assert.isTrue(requests.every(({ tokens }) => tokens <= 8_000))
  })

  it.effect("skips a message that cannot fit, keeps its recorded answer, and continues", function* () {
    const huge = "Every word of this counts. ".repeat(2_000)
    const { refused, requests } = yield* played(
      [ask("Begin."), says("Begun."), ask(huge), says("Read."), ask("Go on."), says("Done.")],
      { window: 4_000 }
    )
    assert.deepStrictEqual(refused, [2])
    assert.lengthOf(requests, 2)
    // The answer to what was refused is part of the last request.
    assert.isAbove(requests[1]?.tokens ?? 0, (requests[0]?.tokens ?? 0) + 2)
  })

  it.effect("skips calls that no request could hold with their message, and continues", function* () {
    const { refused, requests, unanswered } = yield* played(
      [
        ask("Begin."),
        says("Begun."),
        ask("Write it."),
        { content: model(call("write_file", { content: "Every word of this counts. ".repeat(2_000) }, "c1")) },
        { content: user(response("write_file", { output: "written" }, "c1")) },
        says("Written."),
        ask("Go on."),
        says("Done.")
      ],
      { window: 4_000 }
    )
    assert.deepStrictEqual(refused, [2])
    assert.deepStrictEqual(unanswered, [2])
    assert.lengthOf(requests, 4)
    assert.isTrue(requests.every(({ tokens }) => tokens < 200))
  })

  it.effect("ends at a first message that cannot fit", function* () {
    const error = yield* Effect.flip(played([ask("word ".repeat(5_000)), says("Read.")], { window: 2_000 }))
    assert.strictEqual(error._tag, "ContextOverflow")
  })

  it.effect("writes to a new session of the store, with compressions", () =>
    Effect.gen(function* () {
      const { conversation } = yield* requestFor(work(12, 300))
      const { compressions } = yield* playRecording(recordedTurns(conversation), {
        session: "kept",
        window: 4_000,
        threshold: 0.5,
        policy: {},
        recording: { ...emptySession, conversation }
      })
      const { session } = yield* SessionStore.use((store) => store.open("kept"))
      assert.deepStrictEqual(
        entries(session.conversation).map(({ content }) => content),
        entries(conversation).map(({ content }) => content)
      )
      assert.strictEqual(compressionsOf(session.conversation).length, compressions.length)
      assert.isAbove(compressions.length, 0)
    }).pipe(Effect.scoped, Effect.provide(stores, { local: true }))
  )

  it.effect("keeps facts that the agent used again in the context or one recall away", function* () {
    const facts = Array.from({ length: 40 }, (_, n) => `src/parser/module${n}.ts`)
    const { compressions } = yield* played(
      [
        ask(`The files are ${facts.join(", ")}.`),
        says("Understood."),
        ...work(20, 300),
        ask("Which ones?"),
        says(`I use ${facts.slice(0, 30).join(", ")}.`)
      ],
      { window: 4_000 }
    )
    const { part = 0, whole = 0 } = sumFigures(compressions.map(({ figures }) => figures ?? {}))["factsReachable"] ?? {}
    assert.isAtLeast(whole, 30)
    assert.strictEqual(part, whole)
  })

  it.effect("is isolated from the program: fires none of its hooks, calls none of its models", () => {
    const asked = Effect.die("the program's own summarizer was asked")
    const summarizer = Layer.succeed(Summarizer, { summarize: () => asked, ask: () => asked, count: () => asked })
    return Effect.gen(function* () {
      const heard: Array<string> = []
      const hooks = yield* HookSystem
      yield* hooks.subscribe("test", ({ _tag }) => Effect.sync(() => void heard.push(_tag)))
      const { conversation } = yield* requestFor(work(12, 300))
      const { compressions } = yield* playRecording(recordedTurns(conversation), {
        session: "apart",
        window: 4_000,
        threshold: 0.5,
        policy: {},
        recording: { ...emptySession, conversation }
      })
      assert.isAbove(compressions.length, 0)
      assert.deepStrictEqual(heard, [])
    }).pipe(
      Effect.scoped,
      Effect.provide(Compression.layer.pipe(Layer.provideMerge(Layer.mergeAll(summarizer, HookSystem.layer, stores))), {
        local: true
      })
    )
  })
})
