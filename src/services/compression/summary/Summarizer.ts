/** The contract of summarizers, the summarizer by code, and the bounds for one that a program brings. */

import { Cause, Context, Duration, Effect, Layer, Schema } from "effect"
import { type AuditResult, type Degraded, SummaryCall } from "../../../domain/compression/Compression.ts"
import { type Evidence, gatherEvidence } from "../../../domain/compression/evidence/Evidence.ts"
import type { UserWordsWitness, Span } from "../../../domain/compression/evidence/UserRequests.ts"
import { composeSnapshot } from "../../../domain/compression/handover/Extractive.ts"
import type { Content } from "../../../domain/content/Content.ts"
import type { Entry, EntryId, ViewItem } from "../../../domain/conversation/Conversation.ts"
import { errorText } from "../../../domain/text/ErrorText.ts"
import type { Secret } from "../../../domain/text/Redaction.ts"
import * as Work from "../../../domain/text/SlicedWork.ts"

/** The summarizer returned no summary. */
export class SummarizerError extends Schema.TaggedError<SummarizerError>()("SummarizerError", {
  /** Named like the reasons of errors in `effect/ai`. */
  reason: Schema.String,
  message: Schema.String,
  cause: Schema.Defect(),
  /** The calls answered before the failure. */
  calls: Schema.Array(SummaryCall)
}) {}

/** The input of a summary. */
export interface SummaryRequest {
  /**
   * The entries that leave the window, oldest first, as they were before any shortening. Secrets are redacted unless the
   * policy says otherwise (`redactSecrets`).
   */
  readonly entries: ReadonlyArray<Entry>
  /** What the window shows in the place of media of these entries: a model may refuse them as they were. */
  readonly media?: ReadonlyMap<EntryId, ViewItem["shortened"]> | undefined
  /** Texts that stay in the window. */
  readonly kept: ReadonlyArray<string>
  /** Upper bound for the snapshot, in tokens. */
  readonly budget: number
  readonly focus: string | undefined
  readonly cwd: string | undefined
  /** Every message of the user up to the end of the entries, oldest first, from the whole log. Absent: those in the entries. */
  readonly messages?: ReadonlyArray<Span> | undefined
  /** The entries of the log that earlier compressions dropped, oldest first, as they are in the log. */
  readonly earlier?: ReadonlyArray<Entry> | undefined
  /** The user's words that have to be shown exactly. `pinned`: pinned by the user. */
  readonly pins: {
    readonly original: Span | undefined
    readonly latest: Span | undefined
    readonly pinned?: ReadonlyArray<Span> | undefined
  }
  /** Tells whether the user wrote these words in that entry, from the whole log. Claims of earlier snapshots are not proof. */
  readonly userWords: UserWordsWitness
  /** Secrets of the whole conversation. The snapshot shows none of their values. */
  readonly secrets?: ReadonlyArray<Secret> | undefined
  readonly verify: boolean
  readonly by: "model" | "extractive"
  /** Whether code may write the snapshot when the model cannot. */
  readonly fallback: boolean
  /** The summarizing model, when one was named. */
  readonly model: string | undefined
  /** The conversation's own model. Its family decides when no model was named. */
  readonly family: string | undefined
  /** Upper bound for what the model is sent of the entries, in tokens. Absent: derived from the model's window. */
  readonly digestBudget?: number | undefined
  /** The id of the calls in telemetry. Absent: `compress`. */
  readonly promptId?: string | undefined
}

/**
 * The result of a summarizer. It is not trusted: the workflow parses the text, marks quotes that the user never wrote,
 * removes exact facts that do not occur in the conversation, cuts it to the budget, and adds what it omitted
 * (`WrittenSnapshot.verified`).
 */
export interface Summary {
  /** A `<state_snapshot>` or plain text. Blank: nothing usable came back. */
  readonly text: string
  /** The model calls, in order. */
  readonly calls?: ReadonlyArray<SummaryCall> | undefined
  /** The failure that led to a fallback. */
  readonly degraded?: Degraded | null | undefined
}

const gathered = new WeakMap<SummaryRequest, Evidence>()

/** Returns the evidence in the entries of a request. Gathers it once per request. */
export const evidenceOf = Effect.fnUntraced(function* (request: SummaryRequest) {
  const evidence = gathered.get(request) ?? (yield* Work.run(gatherEvidence(request.entries, request)))
  gathered.set(request, evidence)
  return evidence
})

/** Summaries that code wrote from the evidence, with the request that they were written for. */
const writtenByCode = new WeakMap<Summary, { readonly request: SummaryRequest; readonly audit: AuditResult }>()

/** Writes a snapshot by code. It needs no verification unless it is changed. */
export const extractiveSummary = Effect.fnUntraced(function* (
  request: SummaryRequest,
  rest: Pick<Summary, "degraded" | "calls"> = {}
) {
  const { audit, text } = yield* Work.run(composeSnapshot(yield* evidenceOf(request), request))
  const summary: Summary = Object.freeze({ ...rest, text })
  writtenByCode.set(summary, { request, audit })
  return summary
})

/** Returns the audit of a summary that `extractive` wrote for this very request; undefined for any other summary. */
export const auditOfOwnSummary = (summary: Summary, request: SummaryRequest): AuditResult | undefined => {
  const own = writtenByCode.get(summary)
  return own?.request === request ? own.audit : undefined
}

/** One question to the summarizing model, outside the form of a snapshot. */
export interface AskRequest {
  readonly purpose: SummaryCall["purpose"]
  /** The summarizing model, when one was named. */
  readonly model: string | undefined
  /** The conversation's own model. Its family decides when no model was named. */
  readonly family: string | undefined
  /** The id of the compression in telemetry. Absent: `compress`. */
  readonly promptId?: string | undefined
  readonly system: string
  readonly contents: ReadonlyArray<Content>
  /** Upper bound for the answer, in tokens. Absent: the model's own. */
  readonly maxOutputTokens?: number | undefined
}

/** Messages to count, and the model to count them for. */
export interface CountRequest {
  readonly family: string | undefined
  readonly contents: ReadonlyArray<Content>
}

const noModel = () =>
  new SummarizerError({
    reason: "AuthenticationError",
    message: "no model is configured",
    cause: "no model",
    calls: []
  })

/** The failure of a program's own summarizer. */
const failed = (request: SummaryRequest, cause: unknown): Effect.Effect<Summary, SummarizerError> => {
  const message = `the summarizer failed: ${errorText(cause)}`
  const reason = "SummarizerFailed"
  return request.fallback || request.by === "extractive"
    ? extractiveSummary(request, { degraded: { reason, message } })
    : Effect.fail(new SummarizerError({ reason, message, cause, calls: [] }))
}

const maxTime = Duration.minutes(3)
/** For one question. Strategies that ask have shorter limits of their own. */
const maxAskTime = Duration.minutes(5)

/** Runs code of a program: with a time limit, and with defects and interruptions of its own as failures. */
const withTimeLimit = <A, E, R>(effect: Effect.Effect<A, E, R>, limit = maxTime) =>
  effect.pipe(
    // In a fiber of its own, so that it ends no other.
    Effect.timeoutOrElse({
      duration: limit,
      orElse: () => Effect.fail(new Error(`it took longer than ${Duration.format(limit)}`))
    }),
    Effect.catchCause((cause) =>
      Cause.hasInterruptsOnly(cause)
        ? Effect.fail(new Error("it interrupted itself"))
        : Effect.fail(Cause.squash(cause))
    )
  )

const asSummarizerError = (cause: unknown): SummarizerError =>
  cause instanceof SummarizerError
    ? cause
    : new SummarizerError({
        reason: "SummarizerFailed",
        message: `the summarizer failed: ${errorText(cause)}`,
        cause,
        calls: []
      })

/** A summarizer that a program may have brought, which ends, and ends nothing else. */
export const bounded = (summarizer: Summarizer["Service"]): Summarizer["Service"] => {
  const { ask, count, limitsItself = false, summarize } = summarizer
  if (limitsItself) return summarizer
  const limited = <A>(effect: () => Effect.Effect<A, SummarizerError>) =>
    Effect.mapError(withTimeLimit(Effect.suspend(effect), maxAskTime), asSummarizerError)
  return {
    limitsItself: true,
    summarize: (request) =>
      withTimeLimit(Effect.suspend(() => summarize(request))).pipe(
        Effect.catch((error) => (error instanceof SummarizerError ? Effect.fail(error) : failed(request, error)))
      ),
    ...(ask === undefined ? {} : { ask: (request: AskRequest) => limited(() => ask(request)) }),
    ...(count === undefined ? {} : { count: (request: CountRequest) => limited(() => count(request)) })
  }
}

/**
 * Writes the text that replaces the entries that leave the window.
 *
 * *When to use*: provide it to `Compression` to write summaries with a model or with your own code. Your own
 * summarizer needs only `summarize`; see `Summarizer.layer`.
 */
export class Summarizer extends Context.Service<
  Summarizer,
  {
    /**
     * Writes the text. With `fallback`, the summarizer may use text written by code (`extractive`); otherwise it
     * fails when it cannot write one.
     */
    readonly summarize: (request: SummaryRequest) => Effect.Effect<Summary, SummarizerError>
    /**
     * Asks the model one question and returns its answer unchanged, for strategies with prompts of their own. Absent: they use
     * `summarize`.
     */
    readonly ask?: (request: AskRequest) => Effect.Effect<SummaryCall, SummarizerError>
    /** Counts messages as the conversation's model does. Used when they contain media. */
    readonly count?: (request: CountRequest) => Effect.Effect<number, SummarizerError>
    /** Whether it ends by itself, in its own time. Absent: `summarize` is ended after 3 minutes, a question after 5. */
    readonly limitsItself?: boolean | undefined
  }
>()("palimpsest/services/compression/summary/Summarizer") {
  /**
   * Provides a summarizer of your own: a function that returns a text. The workflow verifies the text, adds what it
   * omitted and cuts it to the budget. When the function fails, code writes the snapshot if the request allows it
   * (`fallback`), and the outcome gives the reason (`degraded`); the same when it takes longer than 3 minutes.
   *
   * **Example** (Writing the snapshots yourself)
   *
   * ```ts
   * import { Effect } from "effect"
   * import { Compress, Compression, Palimpsest } from "palimpsest"
   *
   * const Mine = Compression.Summarizer.layer(() =>
   *   Effect.succeed("<state_snapshot><overall_goal>Mend the bridge.</overall_goal></state_snapshot>")
   * )
   * const history = Array.from({ length: 40 }, (_, n) => ({
   *   role: n % 2 === 0 ? "user" : "assistant",
   *   content: `Message ${n}. ${"It was built in 1743, of oak. ".repeat(20)}`
   * }))
   * const compressed = Compress.openAi(history, { limit: 4_000 }).pipe(
   *   Effect.provide(Palimpsest.layer({ summarizer: Mine }))
   * )
   * const { outcome } = await Effect.runPromise(compressed)
   * console.log(outcome._tag === "Compressed" && outcome.snapshot.includes("Mend the bridge.")) // => true
   * ```
   */
  static readonly layer = <E = never, R = never>(
    write: (request: SummaryRequest) => Effect.Effect<string, E, R>
  ): Layer.Layer<Summarizer, never, R> =>
    Layer.effect(
      Summarizer,
      Effect.map(Effect.context<R>(), (context) => ({
        summarize: (request) =>
          Effect.suspend(() => write(request)).pipe(
            Effect.provideContext(context),
            (written) => withTimeLimit(written),
            Effect.matchEffect({
              onSuccess: (text) =>
                typeof text === "string"
                  ? Effect.succeed<Summary>({ text })
                  : failed(request, new Error(`it returned ${typeof text} in place of a text`)),
              onFailure: (error) => failed(request, error)
            })
          )
      }))
    )

  /**
   * Provides snapshots written by code from evidence. It uses no model and no network, and gives the same text for
   * the same conversation.
   */
  static readonly layerExtractive = Layer.succeed(Summarizer, {
    limitsItself: true,
    summarize: Effect.fn("Summarizer.extractive")(function* (request: SummaryRequest) {
      return request.by === "extractive" || request.fallback ? yield* extractiveSummary(request) : yield* noModel()
    }),
    ask: () => Effect.fail(noModel()),
    count: () => Effect.fail(noModel())
  })
}
