import { Context, Effect, Layer, Schema } from "effect"
import { type Degraded, SummaryCall } from "../domain/Compression.ts"
import type { Content } from "../domain/Content.ts"
import type { Entry } from "../domain/Conversation.ts"
import type { Witness, Span } from "../domain/Evidence.ts"
import { type Audit, extract } from "../domain/Extractive.ts"
import type { Secret } from "../domain/Redaction.ts"
import * as Work from "../domain/Work.ts"

/** No summary could be had. */
export class SummarizerError extends Schema.TaggedError<SummarizerError>()("SummarizerError", {
  /** Named as `effect/ai` names the reasons of its errors. */
  reason: Schema.String,
  message: Schema.String,
  cause: Schema.Defect(),
  /** What had been answered before it failed. */
  calls: Schema.Array(SummaryCall)
}) {}

/** What is to be summarised, and how. */
export interface SummaryRequest {
  /**
   * What leaves the window, oldest first, as it was before anything was shortened; without the secrets in it, unless the
   * policy says otherwise (`redactSecrets`).
   */
  readonly entries: ReadonlyArray<Entry>
  /** Texts that stay in the window. */
  readonly kept: ReadonlyArray<string>
  /** Upper bound of the snapshot, in tokens. */
  readonly budget: number
  readonly focus: string | undefined
  readonly cwd: string | undefined
  /** The user's words that have to be shown exactly; `asked`: because the person said so. */
  readonly pins: {
    readonly original: Span | undefined
    readonly latest: Span | undefined
    readonly asked?: ReadonlyArray<Span> | undefined
  }
  /** Whether the user wrote these words in that entry, by the whole log: earlier snapshots may claim so. */
  readonly said: Witness
  /** Secrets of the whole conversation: none of their values is shown. */
  readonly secrets?: ReadonlyArray<Secret> | undefined
  readonly verify: boolean
  readonly by: "model" | "extractive"
  /** Whether code may write the snapshot when the model cannot. */
  readonly fallback: boolean
  /** The summarizing model, where one was named. */
  readonly model: string | undefined
  /** The conversation's own model, whose family decides otherwise. */
  readonly family: string | undefined
  /** What telemetry knows the calls by; absent: `compress`. */
  readonly promptId?: string | undefined
}

/**
 * What a summarizer gives. Nothing of it is believed: the workflow reads the text, marks quotes that the user never wrote,
 * takes out exact facts that nobody said, cuts it to the budget, and adds what it left out (`WrittenSnapshot.verified`).
 */
export interface Summary {
  /** A `<state_snapshot>`, or plain words. Blank: nothing usable came back. */
  readonly text: string
  /** The model calls that were made, in order. */
  readonly calls?: ReadonlyArray<SummaryCall> | undefined
  /** What failed before this text was written by lesser means. */
  readonly degraded?: Degraded | null | undefined
}

/** Summaries that code wrote from the evidence itself, as they are, for the request that they were written for. */
const writtenByCode = new WeakMap<Summary, { readonly request: SummaryRequest; readonly audit: Audit }>()

/** A snapshot that code writes. It needs no verification, unless somebody changes it. */
export const extractive = Effect.fnUntraced(function* (
  request: SummaryRequest,
  rest: Pick<Summary, "degraded" | "calls"> = {}
): Effect.fn.Return<Summary> {
  const { audit, text } = yield* Work.run(extract(request.entries, request))
  const summary: Summary = Object.freeze({ ...rest, text })
  writtenByCode.set(summary, { request, audit })
  return summary
})

/** The audit of a summary that `extractive` wrote for this very request; undefined: it is somebody else's. */
export const auditByCode = (summary: Summary, request: SummaryRequest): Audit | undefined => {
  const known = writtenByCode.get(summary)
  return known?.request === request ? known.audit : undefined
}

/** Two calls, the second made of the first's answer (spec 3.1, steps 9 and 10). */
export interface AnswersRequest {
  readonly model: string | undefined
  readonly family: string | undefined
  readonly promptId?: string | undefined
  readonly system: string
  readonly generate: ReadonlyArray<Content>
  /** The messages of the second call, made of what the first one answered. */
  readonly verify: (summary: string) => ReadonlyArray<Content>
}

/** Both answers, as the model gave them. */
export interface Answered {
  readonly summary: string
  readonly verified: string
  readonly calls: ReadonlyArray<SummaryCall>
}

/** Messages to be counted, and the model they are for. */
export interface CountRequest {
  readonly family: string | undefined
  readonly contents: ReadonlyArray<Content>
}

const noModel = () =>
  new SummarizerError({
    reason: "AuthenticationError",
    message: "no model is configured; set GEMINI_API_KEY, or use --summarizer extractive",
    cause: "no model",
    calls: []
  })

/** Writes the text that stands for what leaves the window. A summarizer of one's own needs `summarize` only. */
export class Summarizer extends Context.Service<
  Summarizer,
  {
    /** The text. With `fallback` a summarizer may let code write (`extractive`) what it cannot; else it fails. */
    readonly summarize: (request: SummaryRequest) => Effect.Effect<Summary, SummarizerError>
    /** The two answers of a model, taken as they are: strategy `gemini`, which else makes do with `summarize`. */
    readonly answers?: (request: AnswersRequest) => Effect.Effect<Answered, SummarizerError>
    /** The tokens of these messages as the conversation's model counts them: asked where there are media. */
    readonly count?: (request: CountRequest) => Effect.Effect<number, SummarizerError>
  }
>()("palimpsest/services/Summarizer") {
  /** Written by code from evidence: no model, no network, the same text for the same conversation. */
  static readonly layerExtractive = Layer.succeed(Summarizer, {
    summarize: Effect.fn("Summarizer.extractive")(function* (request: SummaryRequest) {
      return request.by === "extractive" || request.fallback ? yield* extractive(request) : yield* noModel()
    }),
    answers: () => Effect.fail(noModel()),
    count: () => Effect.fail(noModel())
  })
}
