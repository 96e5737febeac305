import { Arbitrary, Effect, Layer, Schema } from "effect"
import type { ChatEvent } from "../../src/domain/chat/ChatEvent.ts"
import { type Outcome, patchOf, tokensOf } from "../../src/domain/compression/Compression.ts"
import { sectionNames } from "../../src/domain/compression/Snapshot.ts"
import type { Policy } from "../../src/domain/compression/strategies/Policy.ts"
import { call, type Content, model, type Part, response, text } from "../../src/domain/content/Content.ts"
import * as Work from "../../src/domain/text/SlicedWork.ts"
import { estimateText, partTokens } from "../../src/domain/tokens/Tokens.ts"
import * as Offline from "../../src/layers/assembly/Offline.ts"
import * as Scripted from "../../src/layers/testing/ScriptedModel.ts"
import type { ChatSettings } from "../../src/services/chat/ChatSettings.ts"
import {
  ContextLengthError,
  InvalidRequestError,
  ModelError,
  type ModelRequest
} from "../../src/services/model/Model.ts"
import { overheadParts, contentParts } from "../../src/services/tokens/Calibrations.ts"
import { runsOf } from "../support/runs.ts"
import { begin, brief, endingOf, taken } from "../support/sending.ts"
import { assert, describe, it } from "../support/vitest.ts"

/**
 * The model's own count decides, whatever the estimate is. With servers that count much less or more than the estimate, no request
 * is too large, none that fits is refused, the usage shown is the server's count, and no summary is paid for twice.
 */

/** The server counts the whole conversation at each request: parts are counted once. */
const sizes = new WeakMap<Part, number>()
const sizeOf = (part: Part): number => {
  const size = sizes.get(part) ?? Work.runSync(partTokens(part))
  sizes.set(part, size)
  return size
}

const estimated = (parts: ReadonlyArray<Part>): number => parts.reduce((total, part) => total + sizeOf(part), 0)

const prose = (n: number, tokens: number): string => {
  const sentence = `In part ${n} the reader finds that the builder has to keep the old road open. `
  return sentence.repeat(Math.max(1, Math.round(tokens / estimateText(sentence)))).trim()
}

const Happening = Schema.Struct({
  what: Schema.Literals(["message", "message", "message", "tool", "tool", "compress", "undo"]),
  /** Share of the window, by the server's count. That of a request of a few dozen tokens says little: a server may add as many itself. */
  size: Schema.Literals([0.05, 0.05, 0.05, 0.1, 0.1, 0.25, 0.4, 0.7, 1.3]),
  answer: Schema.Literals([0.01, 0.03, 0.1]),
  /** The model's answer to a request for a summary. */
  summary: Schema.Literals(["good", "good", "empty", "inflated", "fails"])
})

const Case = Schema.Struct({
  window: Schema.Literals([6_000, 16_000]),
  instruction: Schema.Literals(["", "You help with the road."]),
  happenings: Schema.Array(Happening).check(Schema.isMinLength(3), Schema.isMaxLength(9))
})
type Case = typeof Case.Type

/** A snapshot as a model writes one, with this many words. */
const snapshotText = (knowledge = "nothing was learned"): string =>
  `<state_snapshot>\n${sectionNames
    .map((name) => `<${name}>${name === "key_knowledge" ? knowledge : "the road stays open"}</${name}>`)
    .join("\n")}\n</state_snapshot>`

const tools = [{ functionDeclarations: [{ name: "read_file", parametersJsonSchema: { type: "object" } }] }]

/** Within five percent, or what a server may add to a request. What it does add is told from the cost of tokens by and by. */
const nearBy =
  (added: number) =>
  (shown: number, actual: number): boolean =>
    Math.abs(shown - actual) <= Math.max(40, actual * 0.05, added === 0 ? 0 : added + actual * 0.1)

interface Seen {
  refused: number
  compressed: number
  finished: number
  paid: number
}

const wrong = Effect.fnUntraced(function* (
  { happenings, instruction, window }: Case,
  { added, factor }: { readonly added: number; readonly factor: number },
  strategy: Policy["strategy"],
  seen: Seen
) {
  const count = (parts: ReadonlyArray<Part>) => Math.ceil(estimated(parts) * factor)
  // When it is asked for a count, it tells that of the contents alone.
  const countOf = (request: ModelRequest) => added + count([...overheadParts(request), ...contentParts(request)])
  const settings: Partial<ChatSettings> = {
    window,
    policy: { strategy, summarizer: "model", ...(strategy === "gemini" ? { minGain: 0 } : {}) },
    retries: {
      call: { attempts: 1, initialDelayMillis: 0, maxDelayMillis: 0, maxServerDelayMillis: 0 },
      answer: { attempts: 1, initialDelayMillis: 0, maxDelayMillis: 0 }
    },
    ...(instruction === "" ? {} : { systemInstruction: instruction, tools })
  }
  const isNear = nearBy(added)
  let answer: Content = model(text("fine"))
  let summary: (typeof Happening.Type)["summary"] = "good"
  let tooLong = 0
  const services = yield* Layer.build(
    Layer.fresh(
      Offline.layerWithModel(
        Scripted.layer(
          (request): Scripted.Step => {
            const prompt = countOf(request)
            const isSummary = request.systemInstruction !== settings.systemInstruction
            if (prompt > window + added && !isSummary) {
              tooLong += 1
              return new ModelError({ reason: new ContextLengthError({}) })
            }
            const usage = { prompt, answer: 1, thoughts: 0, cached: 0 }
            if (!isSummary) return { content: answer, finishReason: "STOP", usage }
            if (summary === "fails") return new ModelError({ reason: new InvalidRequestError({ detail: "no" }) })
            const words =
              summary === "empty"
                ? ""
                : summary === "good"
                  ? snapshotText()
                  : snapshotText(prose(1, (window / factor) * 2))
            return { content: model(text(words)), finishReason: "STOP", usage }
          },
          (request) => count(contentParts(request))
        )
      )
    )
  )
  const script = yield* Effect.provide(Scripted.Script, services)
  const { chat, events } = yield* Effect.provide(begin(settings), services)
  const overhead = instruction === "" ? {} : { systemInstruction: instruction, tools }
  const beside = added + count(overheadParts({ model: "", contents: [], ...overhead }))
  const paidCalls = Effect.map(script.calls, (calls) => calls.filter(({ method }) => method === "generate").length)
  const requests = Effect.map(script.calls, (calls) => calls.filter(({ method }) => method === "stream"))
  const next = Effect.map(chat.contents, (contents) => beside + count(contents.flatMap(({ parts }) => parts)))
  const shown = Effect.map(chat.usage, ({ scale, tokens }) => (scale === undefined ? undefined : tokens))
  /** Paid calls by the text to be summarised. */
  const paid = new Map<string, number>()
  let open = 0
  for (const [n, happening] of happenings.entries()) {
    const { size, what } = happening
    summary = happening.summary
    const before = yield* paidCalls
    const logged = events.length
    const now = yield* next
    const knew = yield* shown
    if (knew !== undefined && !isNear(knew, now)) return `${n}: ${knew} tokens are shown, ${now} are counted`
    if (what === "undo") {
      yield* chat.undo
      continue
    }
    let byHand: Outcome | undefined
    if (what === "compress") {
      byHand = yield* chat.compress({ forced: true })
      const patch = patchOf(byHand)
      const { after, before: told } = tokensOf(byHand)
      if (patch !== undefined) {
        seen.compressed += 1
        const then = yield* next
        if (!isNear(told, now)) return `${n}: compressed from ${told}, counted ${now}`
        if (!isNear(after, then)) return `${n}: compressed to ${after}, counted ${then}`
      }
    } else {
      const words = prose(n, (size * window) / factor)
      const isResult = open > 0
      const message: ReadonlyArray<Part> = isResult
        ? [response("read_file", { output: words }, `c${open - 1}`)]
        : [text(words)]
      const said = text(prose(n, (happening.answer * window) / factor))
      answer = what === "tool" ? model(said, call("read_file", { path: `src/${n}.ts` }, `c${n}`)) : model(said)
      const asked = (yield* requests).length
      const { events: told } = yield* taken(chat.send(message))
      const sent = (yield* requests).slice(asked).map(({ request }) => countOf(request))
      const problem = turned({ told, sent, now, own: count(message), isResult, window: window + added, isNear })
      if (problem !== undefined) return `${n}: ${problem}`
      const last = endingOf(told)
      open = last?._tag === "Finished" && what === "tool" ? n + 1 : 0
      if (last?._tag === "Finished") {
        seen.finished += 1
        if (!isNear(last.tokens, yield* next)) return `${n}: ${last.tokens} tokens are told, ${yield* next} are counted`
      } else {
        seen.refused += 1
      }
      seen.compressed += told.filter(({ _tag }) => _tag === "ChatCompressed").length
      const calls = (yield* paidCalls) - before
      if (calls > 2) return `${n}: ${calls} calls were paid for one turn`
    }
    const calls = (yield* paidCalls) - before
    seen.paid += calls
    // A compression that the user requests again is paid again.
    if (calls === 0 || what === "compress") continue
    // A later one in the same turn is the guard's: code writes it.
    const [range] = events
      .slice(logged)
      .flatMap((event) =>
        event._tag === "CompressionFailed"
          ? (event.tried ?? [])
          : event._tag === "Compressed"
            ? (event.patch.drop ?? [])
            : []
      )
    if (range === undefined) continue
    const key = `${range.from} ${range.to}`
    paid.set(key, (paid.get(key) ?? 0) + calls)
    // As Gemini CLI, `gemini` asks again after a summary that said nothing or made the request larger.
    if (strategy !== "gemini" && (paid.get(key) ?? 0) > 2) return `${n}: ${key} was paid for twice`
  }
  return tooLong > 0 ? `${tooLong} requests were too long for the server` : undefined
})

/** The violation in the events and requests of one turn. */
const turned = (turn: {
  readonly told: ReadonlyArray<ChatEvent>
  readonly sent: ReadonlyArray<number>
  readonly now: number
  readonly own: number
  readonly isResult: boolean
  readonly window: number
  readonly isNear: ReturnType<typeof nearBy>
}): string | undefined => {
  const { isNear, isResult, now, own, sent, told, window } = turn
  const last = endingOf(told)
  for (const tokens of sent) if (tokens > window) return `${tokens} tokens were sent to a window of ${window}`
  const compressed = told.filter((event) => event._tag === "ChatCompressed")
  const isMasked = told.some((event) => event._tag === "ToolOutputMasked")
  const final = sent.at(-1)
  const made = compressed.findLast(({ status }) => status === "COMPRESSED" || status === "CONTENT_TRUNCATED")
  if (made !== undefined && final !== undefined && !isNear(made.after, final)) {
    return `compressed to ${made.after}, and ${final} were sent`
  }
  const first = compressed[0]
  if (first !== undefined && !isResult && !isMasked && !isNear(first.before, now + own)) {
    return `${first.status} from ${first.before}, where ${now + own} are counted`
  }
  if (last?._tag === "Finished") return undefined
  if (last?._tag !== "ContextWindowWillOverflow") return `it ended with ${told.map(brief).join(", ")}`
  if (sent.length > 0) return "what did not fit was sent"
  if (last.estimated <= last.remaining) return `refused ${last.estimated} where ${last.remaining} are left`
  if (!isResult && !isNear(last.estimated, own)) return `a message of ${own} is said to have ${last.estimated}`
  // The parts of a result are bounded on entry, so its own count is no measure.
  return !isResult && now + own <= window * 0.98 ? `refused what fits: ${now + own} of ${window}` : undefined
}

const cases = Arbitrary.schema(Case)
const runs = runsOf(200, 12)

describe("learned counts", () => {
  for (const strategy of ["palimpsest", "gemini"] as const) {
    for (const [factor, added] of [
      [0.7, 0],
      [1.25, 0],
      [1.4, 0],
      [3, 0],
      [1, 30],
      [1.4, 30]
    ] as const) {
      it.effect(`${strategy}, a server that counts ${factor} of the estimate and adds ${added}`, function* () {
        const seen: Seen = { refused: 0, compressed: 0, finished: 0, paid: 0 }
        const result = yield* Arbitrary.checkEffect(
          cases,
          (given) =>
            Effect.scoped(wrong(given, { added, factor }, strategy, seen)).pipe(
              Effect.orDie,
              Effect.flatMap((problem) =>
                problem === undefined ? Effect.succeed(true) : Effect.fail(`${problem} in ${JSON.stringify(given)}`)
              )
            ),
          { runs, seed: `counts ${strategy} ${factor} ${added}`, maxShrinks: 200, size: 24 }
        )
        if (result._tag !== "Passed") return assert.fail(JSON.stringify(result))
        assert.isAbove(seen.finished, 1.5 * runs)
        assert.isAbove(seen.compressed, 0.3 * runs)
        assert.isAbove(seen.paid, 0.3 * runs)
        assert.isAbove(seen.refused, 0.05 * runs)
      })
    }
  }
})
