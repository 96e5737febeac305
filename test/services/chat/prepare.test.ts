import { Clock, Deferred, Effect, Exit, Fiber, Layer, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import type { ChatEvent } from "../../../src/domain/chat/ChatEvent.ts"
import { model as modelSays, text, user } from "../../../src/domain/content/Content.ts"
import { summaryRequests } from "../../../src/domain/evaluation/RecordedUse.ts"
import { applyEvent, emptySession, type SessionEvent } from "../../../src/domain/session/Session.ts"
import * as Offline from "../../../src/layers/assembly/Offline.ts"
import { Chat } from "../../../src/services/chat/Chat.ts"
import type { ChatSettings } from "../../../src/services/chat/ChatSettings.ts"
import { endingBy } from "../../../src/services/chat/Preparation.ts"
import { HookSystem } from "../../../src/services/hooks/HookSystem.ts"
import { InvalidRequestError, Model, ModelError, type ModelRequest } from "../../../src/services/model/Model.ts"
import { estimateContents } from "../../../src/services/tokens/Calibrations.ts"
import { described } from "../../support/generate.ts"
import { interruptSweep } from "../../support/interruptSweep.ts"
import { strideOf } from "../../support/runs.ts"
import { endingOf, taken } from "../../support/sending.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** A snapshot that is prepared while the chat goes on: when it begins, how it is used, and how it ends. */

/** Milliseconds that the model takes for a snapshot. It answers messages at once. */
const slow = 10_000

const usage = { prompt: 100, answer: 10, thoughts: 0, cached: 0 }

/** What the model was asked for snapshots. */
interface Asked {
  readonly requests: Array<ModelRequest>
  answered: number
  interrupted: number
  failing: boolean
  /** What the turns asked. */
  readonly turns: Array<ModelRequest>
}

const world = Effect.fnUntraced(function* (settings: Partial<ChatSettings> = {}) {
  const asked: Asked = { requests: [], answered: 0, interrupted: 0, failing: false, turns: [] }
  const model = Layer.succeed(Model, {
    generate: (request) =>
      Effect.gen(function* () {
        asked.requests.push(request)
        yield* Effect.sleep(slow).pipe(
          Effect.onInterrupt(() =>
            Effect.sync(() => {
              asked.interrupted += 1
            })
          )
        )
        if (asked.failing) return yield* new ModelError({ reason: new InvalidRequestError({ detail: "no" }) })
        asked.answered += 1
        const snapshot = "<state_snapshot><overall_goal>Make it green.</overall_goal></state_snapshot>"
        return { content: modelSays(text(snapshot)), finishReason: "STOP", usage }
      }),
    stream: (request) => {
      asked.turns.push(request)
      return Stream.fromIterable([{ parts: [text(`Done. ${"It was looked at. ".repeat(20)}`)], finishReason: "STOP" }])
    },
    countTokens: (request) => estimateContents(request)
  })
  const services = yield* Layer.build(Offline.layerWithModel(model))
  const scope = yield* Scope.fork(yield* Effect.scope)
  const events: Array<SessionEvent> = []
  const chat = yield* Chat.make({
    log: { append: (event) => Effect.sync(() => void events.push(event)) },
    session: emptySession,
    settings: { model: "gemini-2.5-flash", window: 16_000, threshold: 0.5, prepareAt: 0.8, ...settings }
  }).pipe(Effect.provide(services), Scope.provide(scope))
  const said = (words: number) => taken(chat.send(`Please look. ${"with care and patience ".repeat(words)}`))
  return { asked, chat, events, said, scope, hooks: yield* Effect.provide(HookSystem, services) }
})
type World = Effect.Success<ReturnType<typeof world>>

const kinds = (events: ReadonlyArray<{ readonly _tag: string }>) => events.map(({ _tag }) => _tag)
const states = (events: ReadonlyArray<ChatEvent>) =>
  events.flatMap((event) => (event._tag === "SnapshotPreparation" ? [event.state] : []))

/** Talks until the lower mark is reached. */
const untilMark = Effect.fnUntraced(function* ({ chat, said }: World) {
  for (let turn = 0; (yield* chat.usage).preparation === undefined; turn += 1) {
    assert.isBelow(turn, 30)
    yield* said(200)
  }
})

/** A second passes. Uninterruptible: the test clock forgets whom it was about to wake. */
const tick = Effect.andThen(Effect.uninterruptible(TestClock.adjust(slow / 10)), Effect.yieldNow)

/** Lets time pass until a fiber ends. */
const ended = <A, E>(fiber: Fiber.Fiber<A, E>) =>
  Effect.raceFirst(Fiber.join(fiber), Effect.forever(Effect.andThen(TestClock.adjust(slow / 10), Effect.yieldNow)))

/** Lets time pass until no snapshot is being written. */
const settled = Effect.fnUntraced(function* ({ chat }: World) {
  while ((yield* chat.usage).preparation === "running") {
    yield* tick
  }
})

/** Talks until the threshold is reached, and returns the events of the turn that compresses. */
const untilThreshold = Effect.fnUntraced(function* ({ said }: World) {
  for (let turn = 0; turn < 30; turn += 1) {
    const { events } = yield* said(200)
    if (kinds(events).includes("ChatCompressed")) return events
  }
  return assert.fail("never compressed")
})

const consistent = Effect.fnUntraced(function* ({ chat, events }: World) {
  assert.strictEqual(described(events.reduce(applyEvent, emptySession)), described(yield* chat.session))
})

describe("a prepared snapshot", () => {
  it.effect("takes no time at the threshold, with a model that takes 10 s", function* () {
    const one = yield* world()
    yield* untilMark(one)
    yield* settled(one)
    assert.strictEqual((yield* one.chat.usage).preparation, "ready")
    const before = yield* Clock.currentTimeMillis
    const events = yield* untilThreshold(one)
    assert.strictEqual((yield* Clock.currentTimeMillis) - before, 0)
    assert.strictEqual(endingOf(events)?._tag, "Finished")
    const compressed = events.find((event) => event._tag === "ChatCompressed")
    assert.strictEqual(compressed?.status, "COMPRESSED")
    assert.isNull(compressed?.message ?? null)
    yield* consistent(one)
    // The next one is far away.
    assert.isUndefined((yield* one.chat.usage).preparation)
  })

  it.effect.each([0, 1, 2])("is sent as any other compression, %d turns after it was ready", function* (turns) {
    const one = yield* world({ prepareAt: 0.6 })
    yield* untilMark(one)
    yield* settled(one)
    for (let turn = 0; turn < turns; turn += 1) yield* one.said(20)
    yield* untilThreshold(one)
    // Each of the two requests continues what the view gives when it is projected anew.
    const projected = yield* one.chat.contents
    yield* one.said(1)
    const [compressed, next] = one.asked.turns.slice(-2)
    assert.deepStrictEqual(next?.contents.slice(0, -1), projected)
    assert.deepStrictEqual(compressed?.contents, projected.slice(0, -1))
    yield* consistent(one)
  })

  it.effect("is waited for when it is not ready in time, and a cancel ends the wait only", function* () {
    const one = yield* world({ prepareAt: 1 })
    // Above the threshold already when it begins.
    yield* untilMark(one)
    const cancel = yield* Deferred.make<void>()
    const given = yield* Effect.forkChild(taken(one.chat.send("Cancel this.", { cancel: Deferred.await(cancel) })))
    yield* TestClock.adjust(slow / 2)
    yield* Deferred.succeed(cancel, undefined)
    assert.strictEqual(endingOf((yield* Fiber.join(given)).events)?._tag, "UserCancelled")
    assert.strictEqual((yield* one.chat.usage).preparation, "running")
    assert.strictEqual(one.asked.interrupted, 0)
    const turn = yield* Effect.forkChild(one.said(1))
    const { events } = yield* ended(turn)
    assert.include(kinds(events), "ChatCompressed")
    assert.deepStrictEqual(states(events), ["running", "ready"])
    assert.strictEqual(one.asked.requests.length, one.asked.answered, "asked once")
    yield* consistent(one)
  })

  it.effect("runs the PreCompress hooks when it begins, and uses their focus", function* () {
    const one = yield* world()
    let fired = 0
    yield* one.hooks.subscribe("focus", (event) =>
      Effect.sync(() => {
        if (event._tag !== "PreCompress") return undefined
        fired += 1
        return { hookSpecificOutput: { focus: "the names of the files" } }
      })
    )
    yield* untilMark(one)
    yield* settled(one)
    assert.include(JSON.stringify(one.asked.requests), "the names of the files")
    const before = fired
    assert.strictEqual((yield* one.chat.compress())._tag, "Compressed")
    assert.strictEqual(fired, before + 1, "asked whether it may, not about the focus")
    assert.strictEqual(one.asked.requests.length, one.asked.answered)
  })

  it.effect("is not begun against the veto of a hook, nor for snapshots by code, nor when it is off", function* () {
    for (const settings of [{}, { policy: { summarizer: "extractive" } }, { prepareAt: 0 }] as const) {
      const one = yield* world(settings)
      yield* one.hooks.subscribe("veto", (event) =>
        Effect.succeed(
          event._tag === "PreCompress" && !("prepareAt" in settings)
            ? { decision: "block" as const, reason: "not now" }
            : undefined
        )
      )
      // Above the lower mark of 6,400, below the threshold of 8,000.
      for (let turn = 0; (yield* one.chat.usage).tokens < 7_000; turn += 1) {
        assert.isBelow(turn, 30)
        yield* one.said(200)
        yield* settled(one)
      }
      assert.isEmpty(one.asked.requests)
      assert.isUndefined((yield* one.chat.usage).preparation)
    }
  })

  const ends: Readonly<Record<string, (one: World) => Effect.Effect<unknown, unknown>>> = {
    "the settings name another strategy": ({ chat }) => chat.configure({ policy: { strategy: "gemini" } }),
    "it is switched off": ({ chat }) => chat.configure({ prepareAt: 0 }),
    "another model is chosen": ({ chat }) => chat.configure({ model: "gemini-2.5-pro" }),
    "the user pins words": ({ chat }) => chat.pin("Please look."),
    "the chat is closed": ({ scope }) => Scope.close(scope, Exit.void)
  }
  it.effect.each(Object.entries(ends))("ends at once when %s", function* ([, end]) {
    const one = yield* world()
    yield* untilMark(one)
    yield* Effect.yieldNow
    assert.strictEqual(one.asked.requests.length, 1)
    yield* end(one)
    yield* Effect.yieldNow
    assert.strictEqual(one.asked.interrupted, 1)
    yield* settled(one)
    assert.strictEqual(one.asked.requests.length, 1)
    yield* consistent(one)
  })

  it.effect("ends when a compression with a focus of its own is asked for", function* () {
    const one = yield* world()
    yield* untilMark(one)
    yield* Effect.yieldNow
    const compressing = yield* Effect.forkChild(one.chat.compress({ focus: "the names of the files" }))
    assert.strictEqual((yield* ended(compressing))._tag, "Compressed")
    assert.strictEqual(one.asked.interrupted, 1)
    assert.include(JSON.stringify(one.asked.requests.slice(1)), "the names of the files")
    yield* consistent(one)
  })

  it("is given up after what changes the words before it, or the model", () => {
    const tags = "Appended Masked Compressed Undone Redone Branched Pinned ModelSwitched".split(" ")
    const kept = tags.filter((_tag) => endingBy({ _tag } as SessionEvent) === undefined)
    assert.deepStrictEqual(kept, ["Appended", "Masked"])
  })

  it.effect("is given up when it would not make enough room", function* () {
    const one = yield* world()
    yield* untilMark(one)
    yield* settled(one)
    const turn = yield* Effect.forkChild(one.said(1_800))
    const { events } = yield* ended(turn)
    const told = events.flatMap((event) => (event._tag === "SnapshotPreparation" ? [event.message] : []))
    assert.include(told, "it would not make enough room")
    yield* consistent(one)
    assert.strictEqual(summaryRequests(one.events).length, one.asked.answered)
  })

  it.effect("that failed without a fallback is logged as a failure", function* () {
    const one = yield* world({ policy: { summarizer: "model", ladder: false } })
    one.asked.failing = true
    yield* untilMark(one)
    yield* settled(one)
    assert.isUndefined((yield* one.chat.usage).preparation)
    const [made] = one.events.filter((event) => event._tag === "CompressionFailed")
    const { forced, status, strategy, tokens = 0 } = made ?? assert.fail("it was not logged")
    assert.deepStrictEqual([forced, status, strategy], [false, "FAILED_SUMMARIZER", "palimpsest"])
    assert.isAbove(tokens, 5_000)
    yield* consistent(one)
  })

  it.effect("is not tried again for the same view when it failed, and the failure is remembered", function* () {
    const one = yield* world()
    one.asked.failing = true
    yield* untilMark(one)
    yield* settled(one)
    const asked = one.asked.requests.length
    assert.isAbove(asked, 0)
    assert.isUndefined((yield* one.chat.usage).preparation)
    yield* one.chat.append([{ content: user(text("One more.")) }])
    yield* one.said(1)
    yield* settled(one)
    assert.strictEqual(one.asked.requests.length, asked)
    yield* consistent(one)
  })

  it.effect("leaves a conversation that works, wherever a turn is interrupted", function* () {
    let one: World | undefined
    const points = yield* interruptSweep(
      () =>
        Effect.gen(function* () {
          one = undefined
          one = yield* world({ window: 6_000 })
          yield* one.chat.append([
            { content: user(text(`Look. ${"with care ".repeat(1_150)}`)) },
            { content: modelSays(text("Done.")) }
          ])
          yield* one.said(60)
          yield* settled(one)
          yield* ended(yield* Effect.forkChild(one.said(140)))
        }),
      () =>
        Effect.gen(function* () {
          if (one === undefined) return
          yield* consistent(one)
          yield* settled(one)
          const turn = yield* Effect.forkChild(one.said(200))
          assert.strictEqual(endingOf((yield* ended(turn)).events)?._tag, "Finished")
          yield* consistent(one)
          assert.strictEqual(summaryRequests(one.events).length, one.asked.answered)
        }),
      61 * strideOf(15)
    )
    assert.isAbove(points, 1_000)
    assert.include(kinds(one?.events ?? []), "Prepared")
  })
})
