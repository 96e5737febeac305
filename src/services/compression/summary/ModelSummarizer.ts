import { Context, Effect, Layer } from "effect"
import {
  callPromptId,
  type Degraded,
  summarizerRole,
  type SummaryCall
} from "../../../domain/compression/Compression.ts"
import { modelFor } from "../../../domain/compression/ModelPurpose.ts"
import { isSnapshot, parseSnapshot } from "../../../domain/compression/Snapshot.ts"
import { compressionInstruction, critiqueRequest, snapshotRequest } from "../../../domain/compression/SummaryPrompts.ts"
import { type Content, isText, model as modelSays, plainText, text, user } from "../../../domain/content/Content.ts"
import { type Entry, viewItem } from "../../../domain/conversation/Conversation.ts"
import { projectItems } from "../../../domain/conversation/Projection.ts"
import { redact } from "../../../domain/text/Redaction.ts"
import {
  Model,
  type ModelAnswer,
  type ModelError,
  type ModelRequest,
  retrySchedule,
  briefRetries
} from "../../model/Model.ts"
import * as ModelWindows from "../../model/ModelWindows.ts"
import { Calibrations, countRequest, requestParts } from "../../tokens/Calibrations.ts"
import {
  type SummaryAnswers,
  type AnswersRequest,
  type CountRequest,
  extractiveSummary,
  type Summary,
  Summarizer,
  SummarizerError,
  type SummaryRequest
} from "./Summarizer.ts"

/**
 * A summarizer that has a model write the snapshot in two calls, generate and verify. When the model fails or gives nothing
 * usable, code writes the snapshot if the request allows it, and the summary reports that (`degraded`).
 */

const answerText = (answer: ModelAnswer): string =>
  answer.content.parts
    .filter(isText)
    .map((part) => part.text)
    .join("")

const focusLine = (focus: string | undefined): string =>
  focus === undefined ? "" : `\n\nThe user who requested this snapshot wants this kept above all: ${focus}`

/** Returns the messages to summarise: legal, and without any shortening. */
const slice = (request: SummaryRequest): ReadonlyArray<Content> =>
  projectItems(request.entries.map(viewItem)).map(({ content }) => content)

/** Tokens of the summarizing model's window reserved for its answer, thoughts included; in a small window, a quarter. */
const reserve = { tokens: 16_384, share: 0.25 }

/**
 * Whether a request fits the model's window without the answer's reserve. Uses the learned calibration of the model, and
 * asks for the model's own count when that is not conclusive.
 */
const fits = Effect.fnUntraced(function* (
  request: ModelRequest
): Effect.fn.Return<boolean, never, Model | Calibrations> {
  const { window } = yield* ModelWindows.resolve(request.model)
  const room = window - Math.min(reserve.tokens, window * reserve.share)
  const calibrations = yield* Calibrations
  const bound = yield* calibrations.upperBound(request.model, requestParts(request))
  return bound <= room || (yield* countRequest(request)).tokens <= room
})

/**
 * Whether the entries contain a snapshot that a compression wrote. The tag alone proves nothing, because a user can type it.
 */
const holdsSnapshot = (entries: ReadonlyArray<Entry>): boolean =>
  entries.some(({ author, content }) => author === "summary" && plainText(content).includes("<state_snapshot>"))

interface Written {
  readonly text: string
  readonly calls: ReadonlyArray<SummaryCall>
}

/** Why there is no snapshot, with the calls made so far. */
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

/** Returns the usable one of two answers: the verified one, else the first. */
const chosen = (answers: ReadonlyArray<string>): string | undefined =>
  answers.findLast((said) => isSnapshot(parseSnapshot(said)))

/** Asks a model and records the call. A failure carries the calls made so far. */
const asking = (name: string, system: string, calls: Array<SummaryCall>, of = "compress") =>
  Effect.fn("ModelSummarizer.call")(function* (
    purpose: SummaryCall["purpose"],
    messages: ReadonlyArray<Content>
  ): Effect.fn.Return<string, Unusable, Model | Calibrations> {
    const promptId = callPromptId(of, purpose)
    yield* Effect.annotateCurrentSpan({ prompt_id: promptId, role: summarizerRole, purpose, model: name })
    const service = yield* Model
    const calibrations = yield* Calibrations
    const request: ModelRequest = { model: name, contents: messages, systemInstruction: system }
    if (!(yield* fits(request))) {
      const degraded = { reason: "ContextLengthError", message: `what is to be summarised is too long for ${name}` }
      return yield* Effect.fail(new Unusable(degraded, calls))
    }
    const answer = yield* service.generate(request).pipe(
      Effect.retry(retrySchedule(briefRetries)),
      Effect.mapError(
        (error) => new Unusable({ reason: error.reason._tag, message: redact(error.message) }, calls, error)
      )
    )
    const answered = answerText(answer)
    const { finishReason, usage } = answer
    calls.push({ purpose, promptId, model: name, messages: messages.length, answer: answered, finishReason, usage })
    if (usage !== null) yield* calibrations.observe(name, requestParts(request), usage.prompt)
    return answered
  })

/** Returns the summarizing model: the named one, else one of the conversation's family. */
const modelOf = (given: { readonly family: string | undefined; readonly model: string | undefined }): string =>
  modelFor("compression", given.family ?? "", given.model === undefined ? {} : { compression: { model: given.model } })
    .model

const failure = ({ calls, degraded, error }: Unusable): SummarizerError =>
  new SummarizerError({ ...degraded, cause: error, calls })

/** Returns both answers unchanged. The second call is made whatever the first answer was. */
const answers = Effect.fn("ModelSummarizer.answers")(function* (
  request: AnswersRequest
): Effect.fn.Return<SummaryAnswers, SummarizerError, Model | Calibrations> {
  const calls: Array<SummaryCall> = []
  const ask = asking(modelOf(request), request.system, calls, request.promptId)
  return yield* Effect.gen(function* () {
    const summary = yield* ask("generate", request.generate)
    const verified = yield* ask("verify", request.verify(summary))
    return { summary, verified, calls }
  }).pipe(Effect.mapError(failure))
})

/** Returns the count of the conversation's own model. */
const counted = Effect.fn("ModelSummarizer.count")(function* ({
  contents,
  family
}: CountRequest): Effect.fn.Return<number, SummarizerError, Model> {
  const service = yield* Model
  return yield* service.countTokens({ model: family ?? modelOf({ family, model: undefined }), contents }).pipe(
    // Two answers were already paid for at this point.
    Effect.retry(retrySchedule(briefRetries)),
    Effect.mapError((error) => failure(new Unusable({ reason: error.reason._tag, message: error.message }, [], error)))
  )
})

const write = Effect.fn("ModelSummarizer.write")(function* (
  request: SummaryRequest
): Effect.fn.Return<Written, Unusable, Model | Calibrations> {
  const name = modelOf(request)
  const contents = slice(request)
  const calls: Array<SummaryCall> = []
  const ask = asking(name, compressionInstruction, calls, request.promptId)
  const instruction = snapshotRequest(holdsSnapshot(request.entries) ? "merge" : "create")
  const first = yield* ask("generate", [...contents, user(text(`${instruction}${focusLine(request.focus)}`))])
  const second = request.verify
    ? yield* ask("verify", [...contents, modelSays(text(first)), user(text(critiqueRequest))]).pipe(
        // The first answer is used when only its check fails.
        Effect.catch((failure: Unusable) =>
          isSnapshot(parseSnapshot(first)) ? Effect.succeed("") : Effect.fail(failure)
        )
      )
    : ""
  const usable = chosen([first, second])
  if (usable === undefined) {
    const empty = first.trim() === "" && second.trim() === ""
    return yield* Effect.fail(
      new Unusable(
        empty
          ? { reason: "EmptySummary", message: "the model returned an empty summary" }
          : {
              reason: "InvalidOutputError",
              message: `the model returned no usable snapshot (${String(parseSnapshot(second === "" ? first : second))})`
            },
        calls
      )
    )
  }
  return { text: usable, calls }
})

/** Summarizes with the provided `Model`, and reports the usage of its calls to `Calibrations`. */
export const layer: Layer.Layer<Summarizer, never, Model | Calibrations> = Layer.effect(
  Summarizer,
  Effect.gen(function* () {
    const context = Context.pick(Model, Calibrations)(yield* Effect.context<Model | Calibrations>())
    return {
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
      answers: (request) => Effect.provideContext(answers(request), context),
      count: (request) => Effect.provideContext(counted(request), context)
    }
  })
)
