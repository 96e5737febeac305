import { Duration, Effect, Fiber, Layer, Stream } from "effect"
import { TestClock } from "effect/testing"
import type { ChatEvent } from "../../../src/domain/chat/ChatEvent.ts"
import { model, text, user } from "../../../src/domain/content/Content.ts"
import { entries } from "../../../src/domain/conversation/Conversation.ts"
import * as Offline from "../../../src/layers/assembly/Offline.ts"
import * as Scripted from "../../../src/layers/testing/ScriptedModel.ts"
import type { ChatSettings } from "../../../src/services/chat/ChatSettings.ts"
import {
  ContextLengthError,
  InternalProviderError,
  InvalidResponseError,
  ModelError,
  RateLimitError
} from "../../../src/services/model/Model.ts"
import { SessionStoreError, SessionUnavailable } from "../../../src/services/session/SessionStore.ts"
import { TokenCounter, TokenCountError } from "../../../src/services/tokens/TokenCounter.ts"
import { begin, brief, endingOf, held, taken, textOf } from "../../support/sending.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** `Chat.send` with a model, a log and a counter that fail, under the test's clock. */

const limited = (seconds: number) =>
  new ModelError({ reason: new RateLimitError({ retryAfter: Duration.seconds(seconds) }) })
const broken = new ModelError({ reason: new InternalProviderError({ status: 503 }) })

const torn = new ModelError({ reason: new InvalidResponseError({ detail: "it is torn" }) })
const empty = { content: model(), finishReason: "STOP", usage: null } as const

/** A turn of a scripted model under the test's clock, in the patience that people get. */
const underClock = (answers: Scripted.Answers, settings: Partial<ChatSettings> = {}) =>
  Effect.gen(function* () {
    const { chat } = yield* begin({ retries: undefined, ...settings })
    const seen: Array<ChatEvent> = []
    const fiber = yield* Effect.forkChild(
      Effect.exit(Stream.runForEach(chat.send("question"), (event) => Effect.sync(() => void seen.push(event))))
    )
    yield* TestClock.adjust(0)
    const script = yield* Scripted.Script
    const asked = Effect.map(script.calls, (calls) => calls.length)
    return { chat, seen, fiber, asked }
  }).pipe(Effect.provide(Layer.fresh(Offline.layerWithModel(Scripted.layer(answers)))))

describe("failures outside of the model", () => {
  const full = new SessionStoreError({
    reason: new SessionUnavailable({ operation: "append", message: "the disk is full", cause: "ENOSPC" })
  })

  it.effect(
    "an unwritable log: the answer was shown, the conversation is unchanged, the next turn is stored",
    Layer.fresh(Offline.layerWithModel(Scripted.layer(() => "fine"))),
    function* () {
      let failing = true
      const { chat, events: log } = yield* begin(held, {
        log: ({ append }) => ({ append: (event) => (failing ? Effect.fail(full) : append(event)) })
      })
      const before = yield* chat.session
      const { error, events } = yield* taken(chat.send("question"))
      assert.deepStrictEqual(events.map(brief), ["ModelInfo", "Content fine", "Error SessionUnavailable"])
      assert.strictEqual(error?._tag, "SessionStoreError")
      assert.strictEqual(yield* chat.session, before)
      failing = false
      assert.strictEqual(endingOf((yield* taken(chat.send("question"))).events)?._tag, "Finished")
      assert.deepStrictEqual(
        log.map(({ _tag }) => _tag),
        ["Answered"]
      )
      assert.deepStrictEqual(
        entries(yield* chat.conversation).map(({ id }) => String(id)),
        ["e1", "e2"]
      )
    }
  )

  it.effect(
    "uncountable tokens: nothing is sent",
    Layer.fresh(Offline.layerWithModel(Scripted.layer([]))),
    function* () {
      const uncounted = new TokenCountError({ message: "no answer; try again", cause: "offline" })
      const { chat, events: log } = yield* begin().pipe(
        Effect.provideService(TokenCounter, {
          count: (parts) => (parts.length === 0 ? Effect.succeed([]) : Effect.fail(uncounted))
        })
      )
      const { error, events } = yield* taken(chat.send("question"))
      assert.deepStrictEqual(events.map(brief), ["ModelInfo", "Error TokenCountError"])
      assert.strictEqual(error?._tag, "TokenCountError")
      assert.isEmpty(log)
      assert.isEmpty(yield* (yield* Scripted.Script).calls)
    }
  )

  it.effect("no model: the failure says so", Offline.layer, function* () {
    const { chat, events: log } = yield* begin()
    const { error, events } = yield* taken(chat.send("question"))
    assert.deepStrictEqual(events.map(brief), ["ModelInfo", "Error AuthenticationError"])
    assert.strictEqual(error?.message, "no model is configured, or it has no key")
    assert.isEmpty(log)
  })
})

describe("a request that the provider rejects as too long", () => {
  const tooLong = new ModelError({ reason: new ContextLengthError({}) })
  /** Some 15,000 tokens that can be made smaller. */
  const long = Array.from({ length: 10 }, (_, n) => [
    { content: user(text(`Step ${n}. ${"Please look at this with care. ".repeat(100)}`)) },
    { content: model(text(`Done ${n}. ${"It was looked at with care. ".repeat(100)}`)) }
  ]).flat()
  it.effect.each<readonly [ends: string, refused: number, sent: number]>([
    ["Finished STOP", 1, 2],
    ["Error ContextLengthError", 9, 2]
  ])("is made smaller and sent once more: %s", ([ends, refused, sent]) => {
    let asked = 0
    const answers: Scripted.Answers = () => ((asked += 1) <= refused ? tooLong : "fine")
    return Effect.gen(function* () {
      const { chat } = yield* begin({ window: 20_000, threshold: 1 })
      yield* chat.append(long)
      const { events } = yield* taken(chat.send("question"))
      assert.strictEqual(brief(events.at(-1) ?? assert.fail("nothing")), ends)
      const { calls } = yield* Scripted.Script
      const streams = (yield* calls).filter(({ method }) => method === "stream")
      assert.lengthOf(streams, sent)
      const [before = 0, after = 0] = streams.map(({ request }) => JSON.stringify(request.contents).length)
      assert.isBelow(after, before)
    }).pipe(Effect.provide(Layer.fresh(Offline.layerWithModel(Scripted.layer(answers, () => 25_000)))))
  })
})

describe("retries", () => {
  it.effect("wait at least Retry-After, and report it", function* () {
    const { asked, fiber, seen } = yield* underClock([limited(42), "fine"])
    const retry = seen.at(-1)
    assert.isTrue(retry?._tag === "Retry" && retry.delay === 42_000 && retry.message.includes("42s"))
    yield* TestClock.adjust("41999 millis")
    assert.strictEqual(yield* asked, 1)
    yield* TestClock.adjust("1 millis")
    yield* Fiber.join(fiber)
    assert.strictEqual(yield* asked, 2)
    assert.deepStrictEqual(seen.slice(2).map(brief), ["Content fine", "Finished STOP"])
  })

  it.effect.each<readonly [what: string, step: Scripted.Step, attempts: number, first: number, most: number]>([
    ["calls: ten attempts, with pauses doubling from 5 s to 30 s", broken, 10, 5_000, 30_000],
    ["unusable answers: four attempts, with pauses doubling from 1 s", empty, 4, 1_000, 8_000],
    ["answers that break off: as of unusable ones", torn, 4, 1_000, 8_000]
  ])("of %s", function* ([, step, attempts, first, most]) {
    const { asked, fiber, seen } = yield* underClock(() => step)
    for (let attempt = 2; attempt <= attempts; attempt += 1) {
      const retry = seen.at(-1)
      if (retry?._tag !== "Retry") return assert.fail(`no pause before attempt ${attempt}`)
      assert.strictEqual(retry.attempt, attempt)
      const middle = Math.min(first * 2 ** (attempt - 2), most)
      assert.isAtLeast(retry.delay, middle * 0.75)
      assert.isAtMost(retry.delay, Math.min(middle * 1.25, most))
      assert.strictEqual(yield* asked, attempt - 1)
      yield* TestClock.adjust(retry.delay)
    }
    yield* Fiber.join(fiber)
    assert.strictEqual(yield* asked, attempts)
    const last = brief(seen.at(-1) ?? assert.fail("nothing"))
    const endings: ReadonlyArray<unknown> = [
      "Error InternalProviderError",
      "InvalidStream NO_RESPONSE_TEXT",
      "InvalidStream NO_FINISH_REASON"
    ]
    assert.strictEqual(last, endings[[broken, empty, torn].findIndex((one) => one === step)])
  })

  it.effect("of all kinds: ten attempts in total", function* () {
    const { asked, fiber } = yield* underClock((_, index) => (index % 4 === 3 ? empty : broken))
    yield* TestClock.adjust("1 hour")
    yield* Fiber.join(fiber)
    assert.strictEqual(yield* asked, 10)
  })

  it.effect("of a provider that is away: the turn ends within five minutes", function* () {
    const { asked, fiber } = yield* underClock(() => broken)
    yield* TestClock.adjust("5 minutes")
    assert.isDefined(fiber.pollUnsafe())
    assert.strictEqual(yield* asked, 10)
  })

  it.effect(
    "wait for a reader of the turn, without losing events",
    Offline.layerWithModel(Scripted.layer([Array.from({ length: 1_000 }, (_, n) => `line ${n}\n`).join("")])),
    function* () {
      const lines = Array.from({ length: 1_000 }, (_, n) => `line ${n}\n`).join("")
      const { chat } = yield* begin(held)
      const events = yield* Stream.runCollect(
        chat.send("question").pipe(Stream.mapEffect((event) => Effect.as(Effect.yieldNow, event)))
      )
      assert.strictEqual(textOf(events), lines)
      assert.strictEqual(endingOf(events)?._tag, "Finished")
    }
  )
})
