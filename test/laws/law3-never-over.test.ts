import { Arbitrary, Effect, Layer, Schema } from "effect"
import {
  call,
  type Content,
  model,
  outputText,
  type Part,
  response,
  text,
  user
} from "../../src/domain/content/Content.ts"
import { viewTokens } from "../../src/domain/conversation/Conversation.ts"
import { emptySession, type Session, type SessionEvent, applyEvent } from "../../src/domain/session/Session.ts"
import * as Work from "../../src/domain/text/SlicedWork.ts"
import { estimateText, partTokens } from "../../src/domain/tokens/Tokens.ts"
import * as Offline from "../../src/layers/assembly/Offline.ts"
import * as Scripted from "../../src/layers/testing/ScriptedModel.ts"
import type { ChatSettings } from "../../src/services/chat/ChatSettings.ts"
import { InvalidRequestError, ModelError, type ModelRequest } from "../../src/services/model/Model.ts"
import { Experiments } from "../../src/services/settings/Experiments.ts"
import { Calibrations, overheadParts, contentParts } from "../../src/services/tokens/Calibrations.ts"
import { runsOf } from "../support/runs.ts"
import { begin, brief, endingOf, taken } from "../support/sending.ts"
import { assert, describe, it } from "../support/vitest.ts"

/**
 * Law 3: no request is sent that is larger than the model's window, by the model's own count.
 *
 * One file: all cases share the same model and its way of counting.
 */

const tokensOf = (parts: ReadonlyArray<Part>): number =>
  parts.reduce((total, part) => total + Work.runSync(partTokens(part)), 0)

/** How many times the estimate the model counts, for ordinary text and for hexadecimal digits. */
interface Counting {
  readonly factor: number
  readonly ofDigits: number
}

const isDigits = (part: Part): boolean => /^[0-9a-f ]+$/.test(part.text ?? outputText(part) ?? "")

const countOfParts = ({ factor, ofDigits }: Counting, parts: ReadonlyArray<Part>): number =>
  Math.ceil(parts.reduce((total, part) => total + tokensOf([part]) * (isDigits(part) ? ofDigits : factor), 0))

/** The model's count of a whole request. */
const countOf = (counting: Counting, request: ModelRequest): number =>
  countOfParts(counting, [...overheadParts(request), ...contentParts(request)])

/** Prose of about this many tokens, never twice the same. */
const prose = (n: number, tokens: number): string => {
  const sentence = `In part ${n} the reader finds that the builder has to keep the old road open. `
  return sentence.repeat(Math.max(1, Math.round(tokens / estimateText(sentence)))).trim()
}

/** Hexadecimal digits of about this many tokens, like hashes. */
const digits = (n: number, tokens: number): string => {
  const line = `9f3c2ab47d01e6588b9a0c1d2e3f4a5b ${(n * 7_919).toString(16).padStart(8, "0")}7d01e6588b9a0c1d2e3f4a5b `
  return line.repeat(Math.max(1, Math.round(tokens / estimateText(line)))).trim()
}

/** The next step of a conversation. Sizes are shares of the window. */
const Happening = Schema.Struct({
  what: Schema.Literals(["message", "message", "message", "tool", "tool", "undo", "compress", "resume", "window"]),
  size: Schema.Literals([0.01, 0.01, 0.05, 0.05, 0.1, 0.1, 0.3, 0.3, 0.6, 0.85, 0.95, 1.1, 2]),
  words: Schema.Literals(["prose", "prose", "prose", "digits"]),
  answer: Schema.Literals([0.01, 0.05, 0.2]),
  /** Whether the model fails in this step. */
  fails: Schema.Literals([false, false, false, true])
})

const Case = Schema.Struct({
  window: Schema.Literals([2_000, 6_000, 20_000]),
  factor: Schema.Literals([1, 0.7, 1.1, 1.2, 1.3]),
  ofDigits: Schema.Literals([1, 1.5, 2]),
  reserve: Schema.Literals([0, 0, 300]),
  threshold: Schema.Literals([0.5, 0.9, 1]),
  overflowFactor: Schema.Literals([1, 0.95]),
  instruction: Schema.Literals(["", "You help with the road."]),
  happenings: Schema.Array(Happening).check(Schema.isMaxLength(10))
})
type Case = typeof Case.Type

const tools = [{ functionDeclarations: [{ name: "read_file", parametersJsonSchema: { type: "object" } }] }]
const refused = new ModelError({ reason: new InvalidRequestError({ detail: "no" }) })

interface Replaced {
  readonly calibrations?: Calibrations["Service"]
  /** Whether the model answers `countTokens`. */
  readonly counts?: boolean
}

/** The violation in a conversation, or undefined, with the number of finished turns. */
const wrong = Effect.fnUntraced(function* (
  { factor, happenings, instruction, ofDigits, overflowFactor, reserve, threshold, window }: Case,
  { calibrations, counts = true }: Replaced
) {
  const counting = { factor, ofDigits }
  const settings: Partial<ChatSettings> = {
    window,
    reserve,
    threshold,
    overflowFactor,
    ...(instruction === "" ? {} : { systemInstruction: instruction, tools })
  }
  let next: Scripted.Step = ""
  const services = yield* Layer.build(
    Layer.fresh(
      Offline.layerWithModel(
        Scripted.layer(
          (request) =>
            next instanceof ModelError || typeof next === "string" || !("content" in next)
              ? next
              : { ...next, usage: { prompt: countOf(counting, request), answer: 1, thoughts: 0, cached: 0 } },
          (request) => (counts ? countOfParts(counting, contentParts(request)) : refused)
        )
      )
    )
  )
  const script = yield* Effect.provide(Scripted.Script, services)
  const log: Array<SessionEvent> = []
  const open = (session: Session, given: Partial<ChatSettings>) => {
    const begun =
      calibrations === undefined
        ? begin(given, { session })
        : Effect.provideService(begin(given, { session }), Calibrations, calibrations)
    return Effect.provide(begun, services)
  }
  let { chat, events } = yield* open(emptySession, settings)
  let room = window - reserve
  let finished = 0
  let pending = 0
  for (const [n, { answer, fails, size, what, words: kind }] of happenings.entries()) {
    if (what === "undo") yield* chat.undo
    if (what === "compress") yield* chat.compress()
    if (what === "window") {
      room = Math.round(window * (size > 1 ? 1 : 0.5 + size / 2)) - reserve
      yield* chat.configure({ window: room + reserve })
    }
    if (what === "resume") {
      log.push(...events)
      const again = yield* open(log.reduce(applyEvent, emptySession), { ...settings, window: room + reserve })
      chat = again.chat
      events = again.events
    }
    if (what !== "message" && what !== "tool") continue
    const said = prose(n, answer * window)
    next = fails
      ? refused
      : {
          content:
            what === "tool"
              ? model(text(said), call("read_file", { path: `src/${n}.ts` }, `c${n}`))
              : model(text(said)),
          finishReason: "STOP",
          usage: null
        }
    const words = (kind === "prose" ? prose : digits)(n, size * window)
    const message: string | ReadonlyArray<Part> =
      pending > 0 ? [response("read_file", { output: words }, `c${pending - 1}`)] : words
    const isResult = pending > 0
    const asked = (yield* script.calls).filter(({ method }) => method === "stream").length
    const before = yield* chat.session
    const { events: told } = yield* taken(chat.send(message))
    const sent = (yield* script.calls).filter(({ method }) => method === "stream").slice(asked)
    for (const { request } of sent) {
      const count = countOf(counting, request)
      if (count > room)
        return { problem: `${n}: ${count} tokens were sent to a window with room for ${room}`, finished }
    }
    const last = endingOf(told)
    const after = yield* chat.session
    if (last?._tag === "Finished") {
      finished += 1
      pending = what === "tool" ? n + 1 : 0
    } else if (last?._tag === "ContextWindowWillOverflow") {
      if (sent.length > 0) return { problem: `${n}: what did not fit was sent`, finished }
      if (!isResult && last.text !== message) return { problem: `${n}: the words were not given back`, finished }
      if (last.limit !== room) return { problem: `${n}: the limit is said to be ${last.limit}`, finished }
    } else if (last?._tag !== "Error" || !fails) {
      return { problem: `${n}: it ended with ${told.map(brief).join(", ")}`, finished }
    }
    // Results exist whatever happens to the answer, and answer their call.
    if (isResult && last?._tag !== "Finished") pending = 0
    const logged = (session: Session) => session.conversation.log?.length ?? 0
    const more = (last?._tag === "Finished" ? 1 : 0) + (isResult || last?._tag === "Finished" ? 1 : 0)
    if (logged(after) !== logged(before) + more) return { problem: `${n}: the log has not grown by ${more}`, finished }
  }
  return { problem: undefined, finished }
})

const cases = Arbitrary.schema(Case)
const runs = runsOf(400, 20)

const holds =
  (replaced: Replaced, reached?: { finished: number }) =>
  (given: Case): Effect.Effect<boolean, string> =>
    Effect.scoped(wrong(given, replaced)).pipe(
      Effect.orDie,
      Effect.flatMap(({ finished, problem }) => {
        if (reached !== undefined) reached.finished += finished
        return problem === undefined ? Effect.succeed(true) : Effect.fail(problem)
      })
    )

const notices = (replaced: Replaced, from = cases) =>
  Effect.map(
    Arbitrary.checkEffect(from, holds(replaced), { runs: 300, seed: "mutant", maxShrinks: 0, size: 24 }),
    (result) => result._tag === "Falsified"
  )

describe("law 3: no request exceeds the window", () => {
  for (const counts of [true, false]) {
    it.effect(`in any conversation, ${counts ? "with" : "without"} a model that counts`, function* () {
      const reached = { finished: 0 }
      const result = yield* Arbitrary.checkEffect(cases, holds({ counts }, reached), {
        runs,
        seed: `law 3, ${counts}`,
        maxShrinks: 200,
        size: 24
      })
      assert.strictEqual(result._tag, "Passed", JSON.stringify(result).slice(0, 2_000))
      assert.isAbove(reached.finished, 0.75 * runs, "and what fits is answered")
    })
  }

  it.effect.each([1, 1.1])("the checks detect a runtime whose bound is %d of the plain estimate", function* (share) {
    const calibrations = {
      added: () => Effect.succeed(0),
      upperBound: (_: string, parts: ReadonlyArray<Part>) => Effect.succeed(tokensOf(parts) * share),
      expected: () => Effect.succeed<number | undefined>(undefined),
      observe: () => Effect.undefined
    }
    assert.isTrue(yield* notices({ calibrations, counts: false }))
  })
})

/** A world with a scripted model that answers `fine` and counts like this. */
const scripted = (count: (request: ModelRequest) => number, answers: Scripted.Answers = () => "fine") =>
  Layer.fresh(Offline.layerWithModel(Scripted.layer(answers, count)))
const exactly = (request: ModelRequest): number => tokensOf(contentParts(request))

const streams = Effect.flatMap(Scripted.Script, ({ calls }) =>
  Effect.map(calls, (all) => all.filter(({ method }) => method === "stream").map(({ request }) => request))
)

/** A conversation of about this many tokens. */
const talk = (tokens: number): ReadonlyArray<{ readonly content: Content }> =>
  Array.from({ length: 20 }, (_, n) => ({
    content: n % 2 === 0 ? user(text(prose(n, tokens / 20))) : model(text(prose(n, tokens / 20)))
  }))

describe("law 3 at its limits", () => {
  it.effect(
    "one message too large: ContextOverflow, its text returned, nothing sent, nothing changed",
    scripted(exactly),
    function* () {
      const { chat, events } = yield* begin({ window: 2_000 })
      const words = prose(1, 3_000)
      const { error, events: told } = yield* taken(chat.send(words))
      assert.deepStrictEqual(told.map(({ _tag }) => _tag).at(-1), "ContextWindowWillOverflow")
      if (error?._tag !== "ContextOverflow") return assert.fail("it fails otherwise")
      assert.strictEqual(error.text, words)
      assert.isAbove(error.estimated, 2_900)
      assert.strictEqual(error.remaining, 2_000)
      assert.strictEqual(error.limit, 2_000)
      assert.strictEqual(error.stubborn[0]?.what, "this message")
      assert.match(error.message, /^this message alone does not fit: .*; shorten it, or use a model/)
      assert.isEmpty(yield* streams)
      assert.isEmpty(events)
      assert.strictEqual(endingOf((yield* taken(chat.send("short"))).events)?._tag, "Finished")
    }
  )

  it.effect(
    "instruction and tools too large: nothing is sent, and the message names what takes the room",
    scripted(exactly),
    function* () {
      const { chat } = yield* begin({ window: 1_000, systemInstruction: prose(1, 2_000) })
      const { error } = yield* taken(chat.send("hello"))
      assert.isTrue(error?._tag === "ContextOverflow" && error.stubborn[0]?.what === "system instruction and tools")
      assert.isEmpty(yield* streams)
    }
  )

  it.effect(
    "compresses before it sends, after a resume and after a switch to a smaller window",
    scripted(exactly),
    function* () {
      const { chat, events } = yield* begin({ window: 100_000 })
      yield* chat.append(talk(30_000))
      yield* taken(chat.send("one"))
      const resumed = yield* begin({ window: 20_000 }, { session: events.reduce(applyEvent, emptySession) })
      const { events: told } = yield* taken(resumed.chat.send("two"))
      assert.deepStrictEqual(told.map(brief), [
        "ModelInfo",
        "ChatCompressed COMPRESSED",
        "Content fine",
        "Finished STOP"
      ])
      yield* chat.configure({ window: 10_000 })
      yield* taken(chat.send("three"))
      const [one, two, three] = (yield* streams).map(exactly)
      assert.isAbove(one ?? 0, 20_000)
      assert.isAtMost(two ?? Infinity, 20_000)
      assert.isAtMost(three ?? Infinity, 10_000)
    }
  )

  /** This model counts hexadecimal digits at twice the estimate, and everything else at the estimate. */
  const dense = (request: ModelRequest): number => countOf({ factor: 1, ofDigits: 2 }, request)

  it.effect(
    "the count of a failed message has no effect on the next",
    scripted(dense, () => refused),
    function* () {
      const { chat } = yield* begin({ window: 10_000, threshold: 1 })
      yield* taken(chat.send(prose(1, 8_000)))
      const { error } = yield* taken(chat.send(digits(1, 8_050)))
      assert.strictEqual(error?._tag, "ContextOverflow")
      for (const request of yield* streams) assert.isAtMost(dense(request), 10_000)
    }
  )

  it.effect(
    "the count of a conversation has no effect after a compression and new growth",
    scripted(dense),
    function* () {
      const { chat } = yield* begin({ window: 10_000, threshold: 1 })
      yield* chat.append(talk(8_000))
      yield* taken(chat.send("one"))
      const measured = viewTokens(yield* chat.conversation)
      yield* chat.compress()
      const left = viewTokens(yield* chat.conversation)
      assert.isBelow(left, measured * 0.7)
      yield* chat.append([{ content: user(text(digits(1, measured + 30 - left))) }])
      yield* taken(chat.send("two"))
      for (const request of yield* streams) assert.isAtMost(dense(request), 10_000)
    }
  )
})

describe("the threshold", () => {
  /** At this share of the window, with this local setting and this experiment. */
  const table: ReadonlyArray<
    readonly [rule: string, share: number, local: number | undefined, experiment: number | undefined, due: boolean]
  > = [
    ["without a word it is a half: below", 0.4, undefined, undefined, false],
    ["without a word it is a half: above", 0.6, undefined, undefined, true],
    ["what is set here counts", 0.4, 0.3, undefined, true],
    ["an experiment's value applies", 0.4, undefined, 0.3, true],
    ["what is set here counts more than an experiment: higher", 0.4, 0.9, 0.3, false],
    ["what is set here counts more than an experiment: lower", 0.4, 0.3, 0.9, true],
    ["0 is not set: the experiment counts", 0.4, 0, 0.3, true],
    ["0 is not set: a half", 0.4, 0, undefined, false],
    ["0 of an experiment is not set", 0.6, undefined, 0, true],
    ["1 is off", 0.9, 1, undefined, false],
    ["1 is off, but for the guard", 1.1, 1, undefined, true]
  ]
  it.effect.each(table)("%s", scripted(exactly), function* ([, share, local, experiment, due]) {
    const { chat } = yield* begin({ window: 20_000, threshold: local }).pipe(
      Effect.provideService(Experiments, { number: () => Effect.succeed(experiment) })
    )
    yield* chat.append(talk(share * 20_000))
    const { events } = yield* taken(chat.send("question"))
    assert.strictEqual(endingOf(events)?._tag, "Finished")
    assert.strictEqual(
      events.some(({ _tag }) => _tag === "ChatCompressed"),
      due
    )
  })

  it.effect("compresses a request of exactly the threshold", scripted(exactly), function* () {
    const window = 2 ** 15
    const words = "question"
    for (const [more, due] of [
      [0, true],
      [1, false]
    ] as const) {
      const { chat } = yield* begin({ window })
      yield* chat.append(talk(10_000))
      const { tokens } = yield* chat.usage
      yield* chat.configure({ threshold: (tokens + estimateText(words) + more) / window })
      const { events } = yield* taken(chat.send(words))
      assert.strictEqual(
        events.some(({ _tag }) => _tag === "ChatCompressed"),
        due
      )
    }
  })

  it.effect("a factor of 0.95 allows a message that much of the remaining window", scripted(exactly), function* () {
    const words = prose(1, 970)
    const size = estimateText(words)
    assert.isTrue(size > 950 && size <= 1_000)
    for (const [overflowFactor, fits] of [
      [undefined, true],
      [1, true],
      [0.95, false],
      [0, true]
    ] as const) {
      const { chat } = yield* begin({ window: 1_000, threshold: 1, overflowFactor })
      const { events } = yield* taken(chat.send(words))
      assert.strictEqual(endingOf(events)?._tag, fits ? "Finished" : "ContextWindowWillOverflow")
    }
  })

  it.effect("a factor of zero does not disable the guard", scripted(exactly), function* () {
    const { chat } = yield* begin({ window: 1_000, overflowFactor: 0 })
    yield* chat.append(talk(700))
    yield* chat.append([{ content: model(call("f", {}, "1")) }])
    yield* taken(chat.send([response("f", { output: digits(1, 3_000) }, "1")]))
    for (const request of yield* streams) assert.isAtMost(exactly(request), 1_000)
  })
})
