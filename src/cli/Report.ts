import { Schema } from "effect"
import { NoopReason } from "../domain/Compression.ts"
import { EntryId } from "../domain/Conversation.ts"
import { Handle } from "../domain/Handle.ts"
import { Inspection, type Kind } from "../domain/Inspection.ts"
import { FormatName } from "../domain/transcripts/Transcript.ts"
import * as Output from "./Output.ts"

/** What `inspect --json` prints. */
export const Report = Schema.Struct({
  file: Schema.String,
  format: FormatName,
  bytes: Schema.Natural,
  session: Schema.NullOr(Schema.String),
  model: Schema.NullOr(Schema.String),
  cwd: Schema.NullOr(Schema.String),
  ...Inspection.fields,
  /** What compressions dropped, oldest first: one handle names all of it. */
  dropped: Schema.Array(Schema.Struct({ handle: Handle, messages: Schema.Natural, from: EntryId, to: EntryId })),
  /** Records of the file that are no part of the conversation, by kind. */
  skipped: Schema.Record(Schema.String, Schema.Natural),
  /** What a compression would do now; null: what the model sees is too much to be held for that. */
  next: Schema.NullOr(
    Schema.Struct({
      /** Why an automatic one would leave the conversation alone; null: it would not. */
      waits: Schema.NullOr(NoopReason),
      /** Tokens of the request before and, as planned, after one that is asked for; null: there is nothing to compress. */
      forced: Schema.NullOr(Schema.Struct({ before: Schema.Natural, after: Schema.Natural, messages: Schema.Natural }))
    })
  ),
  /** The number of the last line when it broke off in the middle and was left out. */
  torn: Schema.NullOr(Schema.Natural)
})
export type Report = typeof Report.Type

/** What people call the kinds. */
export const kindNames: Record<Kind, string> = {
  user: "user text",
  program: "program text",
  model: "model text",
  thought: "thoughts",
  summary: "summaries",
  call: "call arguments",
  output: "tool output",
  media: "media",
  other: "other"
}

/** US dollars, to the cent, and small sums as far as they say something. */
export const dollars = (value: number): string => {
  if (value !== 0 && value < 0.0001) return "less than $0.0001"
  if (value !== 0 && value < 0.1) return `$${value.toFixed(4)}`
  const [whole = "", cents = ""] = value.toFixed(2).split(".")
  return whole.includes("e") ? `$${whole}` : `$${Output.number(Number(whole))}.${cents}`
}
