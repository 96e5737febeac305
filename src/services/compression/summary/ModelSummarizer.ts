/**
 * A summarizer that asks a model in two calls: for its part of the snapshot, then for corrections. The model sees a
 * digest of a long conversation. When it fails or returns nothing usable, code writes the snapshot if the request
 * allows it, and the summary reports that (`degraded`).
 */

import { Context, Effect, Layer } from "effect"
import { callPromptId, type Degraded, summarizerRole, SummaryCall } from "../../../domain/compression/Compression.ts"
import { contextLength } from "../../../domain/compression/Compression.ts"
import { corrected } from "../../../domain/compression/Corrections.ts"
import { digestOf } from "../../../domain/compression/handover/Digest.ts"
import { knownState } from "../../../domain/compression/handover/Extractive.ts"
import { modelFor } from "../../../domain/compression/ModelPurpose.ts"
import { isSnapshot, parseSnapshot, renderSnapshot, unusableText } from "../../../domain/compression/Snapshot.ts"
import {
  correctionRequest,
  digestHeading,
  knownHeading,
  repeatRequest,
  summaryInstruction,
  summaryRequest
} from "../../../domain/compression/SummaryPrompts.ts"
import { type Content, isText, model as modelSays, text, user } from "../../../domain/content/Content.ts"
import { type Entry, entryTokens, viewItem } from "../../../domain/conversation/Conversation.ts"
import { projecting } from "../../../domain/conversation/Projection.ts"
import { defaultReserve } from "../../../domain/model/ModelLimits.ts"
import { redact } from "../../../domain/text/Redaction.ts"
import * as Work from "../../../domain/text/SlicedWork.ts"
import { estimateText } from "../../../domain/tokens/Tokens.ts"
import { type Generation, Model, type ModelAnswer, type ModelError, type ModelRequest } from "../../model/Model.ts"
import { cleanError } from "../../model/ModelSpans.ts"
import * as ModelWindows from "../../model/ModelWindows.ts"
import { retrySchedule, briefRetries } from "../../model/Retry.ts"
import { Calibrations, countRequest, requestParts } from "../../tokens/Calibrations.ts"
import { CompressionSteps } from "./CompressionSteps.ts"
import {
  type AskRequest,
  type CountRequest,
  evidenceOf,
  extractiveSummary,
  type Summary,
  Summarizer,
  SummarizerError,
  type SummaryRequest
} from "./Summarizer.ts"

const answerText = (answer: ModelAnswer): string =>
  answer.content.parts
    .filter(isText)
    .map((part) => part.text)
    .join("")

/**
 * The maximum size of the entries in the request: this share of the model's window and this many tokens. Longer
 * entries are digested.
 */
const digestSize = { share: 0.25, maxTokens: 40_000 }
/** Entries up to this share of the budget are sent unchanged, because a digest would save little. */
const wholeShare = 0.25
/** Tokens of the snapshot's existing statements that accompany a digest. */
const knownTokens = 1_500

/** Returns the maximum number of tokens of the entries that this model receives. */
export const digestBudget = Effect.fnUntraced(function* (name: string): Effect.fn.Return<number, never, Model> {
  const { window } = yield* ModelWindows.resolve(name)
  return Math.min(digestSize.maxTokens, window * digestSize.share)
})

/** A digest is halved until the model takes it, down to about this many tokens. */
const minDigestTokens = 250

/** Returns the messages that show the entries to the model: legal and unshortened, or their digest. */
const recordOf = Effect.fnUntraced(function* (
  request: SummaryRequest,
  budget: number
): Effect.fn.Return<ReadonlyArray<Content>> {
  const tokens = request.entries.reduce((sum, entry) => sum + entryTokens(entry), 0)
  if (tokens <= budget * wholeShare) {
    const items = request.entries.map((entry) => {
      const item = viewItem(entry)
      return { entry, shortened: new Map([...item.shortened, ...(request.media?.get(entry.id) ?? [])]) }
    })
    const sent = yield* Work.run(projecting(items))
    return sent.map(({ content }) => content)
  }
  const known = yield* Work.run(
    knownState(yield* evidenceOf(request), { ...request, budget: Math.min(knownTokens, budget / 4) })
  )
  const digest = yield* Work.run(digestOf(request.entries, { ...request, budget: budget - estimateText(known) }))
  const parts = [text(`${digestHeading}\n\n${digest}`)]
  return [user(...parts, ...(known === "" ? [] : [text(`${knownHeading}\n\n${known}`)]))]
})

/**
 * Whether a request fits the model's window without the answer's reserve. Uses the learned calibration of the model, and
 * asks for the model's own count when that is not conclusive.
 */
const fits = Effect.fnUntraced(function* (
  request: ModelRequest
): Effect.fn.Return<boolean, never, Model | Calibrations> {
  const { window } = yield* ModelWindows.resolve(request.model)
  const room = window - defaultReserve(window)
  const calibrations = yield* Calibrations
  const bound = yield* calibrations.upperBound(request.model, requestParts(request))
  return bound <= room || (yield* countRequest(request)).tokens <= room
})

/** Whether the entries contain the summary of an earlier compression, by whichever agent. */
const holdsSummary = (entries: ReadonlyArray<Entry>): boolean =>
  entries.some(({ author, content }) => author === "summary" && content.role === "user")

interface Written {
  readonly text: string
  readonly calls: ReadonlyArray<SummaryCall>
}

/** A failed attempt to get a snapshot, with the calls made so far. */
class Unusable {
  readonly degraded: Degraded
  readonly calls: ReadonlyArray<SummaryCall>
  readonly error: ModelError | undefined
  constructor(degraded: Degraded, calls: ReadonlyArray<SummaryCall>, error?: ModelError) {
    this.degraded = degraded
    this.calls = calls
    this.error = error
  }
}

/** How to ask a model. */
interface Asking {
  readonly name: string
  readonly system: string
  readonly generation?: Generation | undefined
  /** The id of the compression in telemetry. */
  readonly of?: string | undefined
}

/** Asks a model and records the call. A failure carries the calls made so far. */
const asking = ({ generation, name, of = "compress", system }: Asking, calls: Array<SummaryCall>) =>
  Effect.fn("ModelSummarizer.call")(function* (
    purpose: SummaryCall["purpose"],
    messages: ReadonlyArray<Content>
  ): Effect.fn.Return<SummaryCall, Unusable, Model | Calibrations> {
    const promptId = callPromptId(of, purpose)
    yield* Effect.annotateCurrentSpan({ prompt_id: promptId, role: summarizerRole, purpose, model: name })
    const service = yield* Model
    const calibrations = yield* Calibrations
    const request: ModelRequest = { model: name, contents: messages, generation, systemInstruction: system }
    if (!(yield* fits(request))) {
      const degraded = { reason: contextLength, message: `the messages to summarize are too long for ${name}` }
      return yield* Effect.fail(new Unusable(degraded, calls))
    }
    const answering = service.generate(request).pipe(
      Effect.mapError(cleanError(request)),
      Effect.retry(retrySchedule(briefRetries)),
      Effect.map((answer): SummaryCall => {
        const { finishReason, usage } = answer
        return {
          purpose,
          promptId,
          model: name,
          messages: messages.length,
          answer: answerText(answer),
          finishReason,
          usage
        }
      })
    )
    const { step } = yield* CompressionSteps
    const call = yield* step({ name: purpose, result: SummaryCall, about: request }, answering).pipe(
      Effect.mapError(
        (error) => new Unusable({ reason: error.reason._tag, message: redact(error.message) }, calls, error)
      )
    )
    const { usage } = call
    calls.push(call)
    if (usage !== null) yield* calibrations.observe(name, requestParts(request), usage.prompt)
    return call
  })

/** Returns the summarizing model: the named one, else one of the conversation's family. */
export const modelOf = (names: { readonly family: string | undefined; readonly model: string | undefined }): string =>
  names.model ?? modelFor("compression", names.family ?? "").model

const failure = ({ calls, degraded, error }: Unusable): SummarizerError =>
  new SummarizerError({ ...degraded, cause: error, calls })

/** Asks one question outside the form of a snapshot. */
export const askOnce = Effect.fn("ModelSummarizer.ask")(function* (
  request: AskRequest
): Effect.fn.Return<SummaryCall, SummarizerError, Model | Calibrations> {
  const { contents, maxOutputTokens, promptId, purpose, system } = request
  const generation = maxOutputTokens === undefined ? undefined : { maxOutputTokens }
  return yield* asking({ name: modelOf(request), system, generation, of: promptId }, [])(purpose, contents).pipe(
    Effect.mapError(failure)
  )
})

/** Returns the count of the conversation's own model. */
const counted = Effect.fn("ModelSummarizer.count")(function* ({
  contents,
  family
}: CountRequest): Effect.fn.Return<number, SummarizerError, Model> {
  const service = yield* Model
  return yield* service.countTokens({ model: family ?? modelOf({ family, model: undefined }), contents }).pipe(
    // Retries briefly, because two answers were already paid for.
    Effect.retry(retrySchedule(briefRetries)),
    Effect.mapError((error) => failure(new Unusable({ reason: error.reason._tag, message: error.message }, [], error)))
  )
})

/**
 * Asks for a snapshot. If a model accepts less than its stated window, it gets a digest of half the size, and so on.
 */
const askForSnapshot = Effect.fnUntraced(function* (
  request: SummaryRequest,
  name: string,
  ask: ReturnType<typeof asking>
) {
  const prompt = holdsSummary(request.entries) ? "merge" : "create"
  const question = user(text(summaryRequest(prompt, request.focus)))
  let budget = request.digestBudget ?? (yield* digestBudget(name))
  for (;;) {
    const contents = [...(yield* recordOf(request, budget)), question]
    const result = yield* Effect.result(ask("generate", contents))
    if (result._tag === "Success") return { contents, first: result.success.answer }
    if (result.failure.degraded.reason !== contextLength || budget < 2 * minDigestTokens) {
      return yield* Effect.fail(result.failure)
    }
    budget /= 2
  }
})

const write = Effect.fn("ModelSummarizer.write")(function* (
  request: SummaryRequest
): Effect.fn.Return<Written, Unusable, Model | Calibrations> {
  const name = modelOf(request)
  const calls: Array<SummaryCall> = []
  const ask = asking({ name, system: summaryInstruction, of: request.promptId }, calls)
  const { contents, first } = yield* askForSnapshot(request, name, ask)
  const snapshot = parseSnapshot(first)
  if (!request.verify) return isSnapshot(snapshot) ? { text: first, calls } : yield* unusable([first], calls)
  const again = (question: string) =>
    Effect.map(ask("verify", [...contents, modelSays(text(first)), user(text(question))]), ({ answer }) => answer)
  if (isSnapshot(snapshot)) {
    const corrections = yield* again(correctionRequest).pipe(
      // The first answer is used when only its check fails.
      Effect.orElseSucceed(() => "")
    )
    return { text: renderSnapshot(corrected(snapshot, corrections)), calls }
  }
  const second = yield* again(repeatRequest(snapshot))
  return isSnapshot(parseSnapshot(second)) ? { text: second, calls } : yield* unusable([first, second], calls)
})

const unusable = (
  answers: ReadonlyArray<string>,
  calls: ReadonlyArray<SummaryCall>
): Effect.Effect<never, Unusable> => {
  const last = answers.findLast((answer) => answer.trim() !== "")
  const degraded =
    last === undefined
      ? { reason: "EmptySummary", message: "the model returned an empty summary" }
      : {
          reason: "InvalidOutputError",
          message: `the model wrote ${unusableText(String(parseSnapshot(last)))}`
        }
  return Effect.fail(new Unusable(degraded, calls))
}

/** Summarizes with the provided `Model`, and reports the usage of its calls to `Calibrations`. */
export const layer: Layer.Layer<Summarizer, never, Model | Calibrations> = Layer.effect(
  Summarizer,
  Effect.gen(function* () {
    const context = Context.pick(Model, Calibrations)(yield* Effect.context<Model | Calibrations>())
    return {
      limitsItself: true,
      summarize: Effect.fn("ModelSummarizer.summarize")(function* (
        request: SummaryRequest
      ): Effect.fn.Return<Summary, SummarizerError> {
        if (request.by === "extractive") return yield* extractiveSummary(request)
        const written = yield* write(request).pipe(Effect.provideContext(context), Effect.result)
        if (written._tag === "Success") return written.success
        const { calls, degraded } = written.failure
        if (request.fallback) return yield* extractiveSummary(request, { degraded, calls })
        if (degraded.reason === "EmptySummary") return { text: "", calls }
        return yield* failure(written.failure)
      }),
      ask: (request) => Effect.provideContext(askOnce(request), context),
      count: (request) => Effect.provideContext(counted(request), context)
    }
  })
)
