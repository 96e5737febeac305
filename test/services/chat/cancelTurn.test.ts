import { Deferred, Effect, Exit, Fiber, Layer, Stream } from "effect"
import type { ChatEvent } from "../../../src/domain/chat/ChatEvent.ts"
import { call, model, response, text, user } from "../../../src/domain/content/Content.ts"
import { emptySession, type Session, type SessionEvent, applyEvent } from "../../../src/domain/session/Session.ts"
import * as Offline from "../../../src/layers/assembly/Offline.ts"
import * as Fake from "../../../src/layers/testing/FakeGemini.ts"
import * as Scripted from "../../../src/layers/testing/ScriptedModel.ts"
import type { ChatSettings } from "../../../src/services/chat/ChatSettings.ts"
import { HookSystem } from "../../../src/services/hooks/HookSystem.ts"
import { described } from "../../support/generate.ts"
import { interruptSweep } from "../../support/interruptSweep.ts"
import {
  against,
  begin,
  brief,
  bytes,
  contentsOf,
  endingOf,
  google,
  quick,
  said,
  taken
} from "../../support/sending.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/**
 * A turn that is given up, at any place and in either way: the conversation is what it was (or what a compression made of it),
 * the socket is closed, the next message is free to go, and the message that was cancelled is in no later request.
 */

const secret = "The message that was cancelled."
const half = Fake.response([{ text: "half an answer" }], { finishReason: null })

/** Some 10,000 tokens, half of the window below. */
const long = Array.from({ length: 10 }, (_, n) => [
  { content: user(text(`Step ${n}. ${"Please look at this with care. ".repeat(70)}`)) },
  { content: model(text(`Done ${n}. ${"It was looked at with care. ".repeat(70)}`)) }
]).flat()
const full: Partial<ChatSettings> = { window: 16_000, threshold: 0.5 }

interface Place {
  readonly script: Fake.Script
  readonly settings?: Partial<ChatSettings>
  /** Whether a long conversation comes before it. */
  readonly isLong?: boolean
  /** Whether a hook hangs. */
  readonly hook?: boolean
  /** What was seen last when it is given up; without it the request `hangs` has arrived. */
  readonly at?: ChatEvent["_tag"]
  /** The request that hangs. */
  readonly hangs?: number
  /** Lines that the log has got afterwards. */
  readonly log?: ReadonlyArray<SessionEvent["_tag"]>
}

/** These answers to the first requests, then one that is fine. */
const only =
  (...answers: ReadonlyArray<Fake.Answer>): Fake.Script =>
  ({ index, method }) =>
    answers[index] ?? (method === "countTokens" ? Fake.tokens(9_000) : said("fine"))

const places: Readonly<Record<string, Place>> = {
  "before the first byte": { script: only([Fake.stall]), hangs: 0 },
  "in the middle of an answer": {
    script: only([Fake.streamHead, Fake.event(half), Fake.stall]),
    hangs: 0,
    at: "Content"
  },
  "in the pause before another try": {
    script: only(Fake.rateLimited(60)),
    settings: { retries: { ...quick, call: { ...quick.call, maxServerDelayMillis: 300_000 } } },
    at: "Retry"
  },
  "in the second try": { script: only(Fake.failure(503, "no"), [Fake.stall]), hangs: 1 },
  "in a hook before a compression": { script: only(), settings: full, isLong: true, hook: true },
  "in a compression, while a model writes the snapshot": {
    // The first request counts, as nothing is known of the model.
    script: only(Fake.tokens(9_000), [Fake.stall]),
    settings: { ...full, policy: { summarizer: "model" } },
    isLong: true,
    hangs: 1
  },
  "in the second call of a snapshot, in the middle of its body": {
    script: only(Fake.tokens(9_000), Fake.json(Fake.response([{ text: "<state_snapshot>" }])), [
      Fake.head(200, { "content-type": "application/json" }),
      Fake.write('{"candidates":['),
      Fake.stall
    ]),
    settings: { ...full, policy: { summarizer: "model" } },
    isLong: true,
    hangs: 2
  },
  "after a compression, before the first byte": {
    script: only(Fake.tokens(9_000), [Fake.stall]),
    settings: full,
    isLong: true,
    hangs: 1,
    log: ["Compressed"]
  }
}

/** A conversation at this place of a turn, which somebody reads in a fiber. */
const standing = Effect.fnUntraced(function* (place: Place, cancel?: Effect.Effect<void>) {
  const fake = yield* Fake.make(place.script)
  const services = yield* Layer.build(google(fake.url))
  const { chat, events: log } = yield* Effect.provide(begin(place.settings), services)
  if (place.isLong === true) yield* chat.append(long)
  const before = log.length
  const reached = yield* Deferred.make<void>()
  const hooked = yield* Deferred.make<void>()
  if (place.hook === true) {
    const hooks = yield* Effect.provide(HookSystem, services)
    let hangs = true
    yield* hooks.subscribe("slow", () =>
      Effect.suspend(() => {
        if (!hangs) return Effect.void
        hangs = false
        return Effect.andThen(Deferred.succeed(hooked, undefined), Effect.never)
      })
    )
  }
  const seen: Array<ChatEvent> = []
  const fiber = yield* Effect.forkChild(
    Stream.runForEach(chat.send(secret, { cancel }), (event) =>
      Effect.suspend(() => {
        seen.push(event)
        return event._tag === place.at ? Deferred.succeed(reached, undefined) : Effect.void
      })
    )
  )
  if (place.hook === true) yield* Deferred.await(hooked)
  else if (place.at !== undefined) yield* Deferred.await(reached)
  else if (place.hangs !== undefined) yield* fake.received(place.hangs)

  const afterwards = Effect.gen(function* () {
    if (place.hangs !== undefined) assert.isFalse(yield* fake.closed(place.hangs), "the socket closes")
    assert.deepStrictEqual(
      log.slice(before).map(({ _tag }) => _tag),
      place.log ?? []
    )
    const asked = (yield* fake.requests).length
    const next = yield* taken(chat.send("The next one."))
    assert.strictEqual(endingOf(next.events)?._tag, "Finished", next.events.map(brief).join(", "))
    const later = (yield* fake.requests).slice(asked)
    assert.isAbove(later.length, 0)
    for (const request of later) assert.notInclude(bytes(contentsOf(request)), secret)
    assert.notInclude(JSON.stringify(log), secret)
  })
  return { fiber, seen, afterwards }
})

describe("a cancelled turn", () => {
  for (const [name, place] of Object.entries(places)) {
    it.live(`${name}: ends with UserCancelled, without a failure`, function* () {
      const cancel = yield* Deferred.make<void>()
      const { afterwards, fiber, seen } = yield* standing(place, Deferred.await(cancel))
      yield* Deferred.succeed(cancel, undefined)
      yield* Fiber.join(fiber)
      assert.strictEqual(endingOf(seen)?._tag, "UserCancelled")
      yield* afterwards
    })

    it.live(`${name}, by interrupting the reader: stays an interruption`, function* () {
      const { afterwards, fiber, seen } = yield* standing(place)
      yield* Fiber.interrupt(fiber)
      assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(fiber)))
      assert.isUndefined(endingOf(seen))
      yield* afterwards
    })
  }

  it.live("a cancel before the message: sends nothing", function* () {
    const { chat, events: log } = yield* against(only([Fake.stall]))
    const { error, events } = yield* taken(chat.send(secret, { cancel: Effect.void }))
    assert.deepStrictEqual(events.map(brief), ["ModelInfo", "UserCancelled"])
    assert.isUndefined(error)
    assert.isEmpty(log)
  })

  it.live("a cancel after the end changes nothing", function* () {
    const { chat, events: log } = yield* against(only())
    const cancel = yield* Deferred.make<void>()
    const { events } = yield* taken(
      chat
        .send("question", { cancel: Deferred.await(cancel) })
        .pipe(Stream.tap(({ _tag }) => (_tag === "Finished" ? Deferred.succeed(cancel, undefined) : Effect.void)))
    )
    assert.strictEqual(endingOf(events)?._tag, "Finished")
    assert.deepStrictEqual(
      log.map(({ _tag }) => _tag),
      ["Answered"]
    )
  })
})

describe("a cancelled turn with a scripted model", () => {
  it.effect(
    "without a reader, ends once it is read",
    Offline.layerWithModel(Scripted.layer(["a line\n".repeat(600)])),
    function* () {
      const { chat, events: log } = yield* begin()
      const cancel = yield* Deferred.make<void>()
      const { error, events } = yield* taken(
        chat
          .send(secret, { cancel: Deferred.await(cancel) })
          .pipe(Stream.tap(({ _tag }) => (_tag === "ModelInfo" ? Deferred.succeed(cancel, undefined) : Effect.void)))
      )
      assert.strictEqual(endingOf(events)?._tag, "UserCancelled")
      assert.isUndefined(error)
      assert.isBelow(events.length, 600)
      assert.isEmpty(log)
    }
  )

  it.effect(
    "with tool results, keeps them, since the tools have run",
    Offline.layerWithModel(
      Scripted.layer([
        { content: model(call("read_file", { path: "a" }, "1")), finishReason: "STOP", usage: null },
        Scripted.hang,
        "fine"
      ])
    ),
    function* () {
      const { chat, events: log } = yield* begin()
      yield* taken(chat.send("read it"))
      const cancel = yield* Deferred.make<void>()
      const results = [response("read_file", { output: "the file" }, "1")]
      const { events } = yield* taken(
        chat
          .send(results, { cancel: Deferred.await(cancel) })
          .pipe(Stream.tap(({ _tag }) => (_tag === "ModelInfo" ? Deferred.succeed(cancel, undefined) : Effect.void)))
      )
      assert.deepStrictEqual(events.map(brief), ["ModelInfo", "UserCancelled"])
      assert.deepStrictEqual(
        log.map(({ _tag }) => _tag),
        ["Answered", "Appended"]
      )
      yield* taken(chat.send("go on"))
      const { calls } = yield* Scripted.Script
      assert.deepStrictEqual((yield* calls).at(-1)?.request.contents.slice(2), [
        { role: "user", parts: results },
        user(text("go on"))
      ])
    }
  )
})

describe("ChatBusy", () => {
  // More events than a turn gets rid of before somebody takes them: it runs as long as it is read.
  const services = Offline.layerWithModel(Scripted.layer(["a line\n".repeat(600)]))

  it.effect("fails for a compression, an undo or a new message during a turn", services, function* () {
    const { chat } = yield* begin()
    const refused: Array<string> = []
    const busy = (work: Effect.Effect<unknown, { readonly message: string }>) =>
      Effect.map(Effect.flip(work), ({ message }) => void refused.push(message))
    const { events } = yield* taken(
      chat
        .send("question")
        .pipe(
          Stream.tap(({ _tag }) =>
            _tag === "ModelInfo"
              ? Effect.all([
                  busy(chat.compress()),
                  busy(chat.undo),
                  busy(chat.append(long)),
                  busy(Stream.runDrain(chat.send("second"))),
                  busy(chat.configure({ model: "gemini-2.5-pro" }))
                ])
              : Effect.void
          )
        )
    )
    assert.strictEqual(endingOf(events)?._tag, "Finished")
    assert.lengthOf(refused, 5)
    for (const message of refused) assert.include(message, "busy with a turn")
  })
})

describe("a turn abandoned at every suspension point", () => {
  const answers: Scripted.Answers = () => "The answer\nin two lines."

  /** The session that the turn begins in. */
  const prepared = Effect.gen(function* () {
    const { chat, events } = yield* begin(full)
    yield* chat.append(long)
    return events.reduce(applyEvent, emptySession)
  }).pipe(Effect.provide(Offline.layerWithModel(Scripted.layer(answers))))

  const started = Effect.fnUntraced(function* (session: Session) {
    const services = yield* Layer.build(Layer.fresh(Offline.layerWithModel(Scripted.layer(answers))))
    return { services, ...(yield* Effect.provide(begin(full, { session }), services)) }
  })

  /** Every state that a turn in this session goes through. */
  const statesOf = Effect.fnUntraced(function* (session: Session) {
    const { chat, events } = yield* started(session)
    const { events: told } = yield* taken(chat.send(secret))
    assert.deepStrictEqual(told.map(brief), [
      "ModelInfo",
      "ChatCompressed COMPRESSED",
      "Content The answer\n",
      "Content in two lines.",
      "Finished STOP"
    ])
    return new Set(
      [session, ...events.map((_, at) => events.slice(0, at + 1).reduce(applyEvent, session))].map(described)
    )
  })

  /** What is wrong with a conversation whose turn was given up. */
  const check = Effect.fnUntraced(function* (
    { chat, events, services }: Effect.Success<ReturnType<typeof started>>,
    session: Session,
    states: ReadonlySet<string>
  ) {
    const now = yield* chat.session
    const written = events.map(({ _tag }) => _tag)
    assert.isTrue(states.has(described(now)), `a state in between, after ${written.join(", ")}`)
    assert.strictEqual(described(events.reduce(applyEvent, session)), described(now), "the log says what the state is")
    const isSent = written.includes("Answered")
    const next = yield* taken(chat.send("The next one."))
    assert.strictEqual(endingOf(next.events)?._tag, "Finished", next.events.map(brief).join(", "))
    const { calls } = yield* Effect.provide(Scripted.Script, services)
    const last = (yield* calls).findLast(({ method }) => method === "stream")
    assert.strictEqual(bytes(last?.request.contents ?? []).includes(secret), isSent)
    return isSent
  })

  it.effect("by interruption: is complete or absent, and the chat accepts the next message", function* () {
    const session = yield* prepared
    const states = yield* statesOf(session)
    let current: Effect.Success<ReturnType<typeof started>> | undefined
    let sent = 0
    const points = yield* interruptSweep(
      () => Effect.suspend(() => (current === undefined ? Effect.void : Stream.runDrain(current.chat.send(secret)))),
      Effect.fnUntraced(function* () {
        if (current !== undefined && (yield* check(current, session, states))) sent += 1
        current = yield* started(session)
      })
    )
    assert.isAbove(points, 100)
    assert.isAbove(sent, 0)
  })
})
