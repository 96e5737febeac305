import { Context, Effect, Layer, Schema } from "effect"
import type { Degraded } from "../domain/Compression.ts"
import type { Entry } from "../domain/Conversation.ts"
import type { Witness, Span } from "../domain/Evidence.ts"
import { type Audit, extract } from "../domain/Extractive.ts"
import * as Work from "../domain/Work.ts"

/** No summary could be had. */
export class SummarizerError extends Schema.TaggedError<SummarizerError>()("SummarizerError", {
  /** Named as `effect/ai` names the reasons of its errors. */
  reason: Schema.String,
  message: Schema.String,
  cause: Schema.Defect()
}) {}

export interface SummaryRequest {
  /** What leaves the window, oldest first, as it was before anything was shortened. */
  readonly entries: ReadonlyArray<Entry>
  /** Texts that stay in the window. */
  readonly kept: ReadonlyArray<string>
  /** Upper bound of the snapshot, in tokens. */
  readonly budget: number
  readonly focus: string | undefined
  readonly cwd: string | undefined
  /** The user's words that have to be shown exactly. */
  readonly pins: { readonly original: Span | undefined; readonly latest: Span | undefined }
  /** Whether the user wrote these words in that entry, by the whole log: earlier snapshots may claim so. */
  readonly said: Witness
  readonly verify: boolean
}

export interface Summary {
  /** The rendered snapshot; empty when nothing usable came back. */
  readonly text: string
  readonly audit: Audit
  readonly by: "model" | "extractive"
  readonly degraded: Degraded | null
}

/** Writes the snapshot that stands for what leaves the window. */
export class Summarizer extends Context.Service<
  Summarizer,
  {
    readonly summarize: (request: SummaryRequest) => Effect.Effect<Summary, SummarizerError>
  }
>()("palimpsest/services/Summarizer") {
  /** Written by code from evidence: no model, no network, the same text for the same conversation. */
  static readonly layerExtractive = Layer.succeed(Summarizer, {
    summarize: Effect.fn("Summarizer.extractive")(function* (request: SummaryRequest): Effect.fn.Return<Summary> {
      const { audit, text } = yield* Work.run(extract(request.entries, request))
      return { text, audit, by: "extractive", degraded: null }
    })
  })
}
