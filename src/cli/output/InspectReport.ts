/** The document of `inspect --json`, and the names of the kinds of parts. */

import { Schema } from "effect"
import { NoopReason } from "../../domain/compression/Compression.ts"
import { Handle } from "../../domain/content/Handle.ts"
import { EntryId } from "../../domain/conversation/Conversation.ts"
import { Inspection } from "../../domain/evaluation/Inspection.ts"
import type { PartKind } from "../../domain/evaluation/PartKind.ts"
import { SourceFormat } from "../../domain/transcripts/Transcript.ts"

/** The output of `inspect --json`. */
export const Report = Schema.Struct({
  file: Schema.String,
  format: SourceFormat,
  bytes: Schema.Natural,
  session: Schema.NullOr(Schema.String),
  model: Schema.NullOr(Schema.String),
  cwd: Schema.NullOr(Schema.String),
  ...Inspection.fields,
  /** The messages that compressions dropped, oldest first. One handle covers each range. */
  dropped: Schema.Array(Schema.Struct({ handle: Handle, messages: Schema.Natural, from: EntryId, to: EntryId })),
  /** Records of the file that are not part of the conversation, by kind. */
  skipped: Schema.Record(Schema.String, Schema.Natural),
  /** Kinds of records that this program does not know, and the agent and version that wrote them. Absent when there are none. */
  unknown: Schema.optionalKey(Schema.Struct({ program: Schema.String, kinds: Schema.Array(Schema.String) })),
  /** The compression that would run now; null when the model's view is too large to plan one. */
  next: Schema.NullOr(
    Schema.Struct({
      /** Why an automatic compression would not run; null when it would. */
      waits: Schema.NullOr(NoopReason),
      /** Planned tokens of the request before and after a forced compression; null when there is nothing to compress. */
      forced: Schema.NullOr(Schema.Struct({ before: Schema.Natural, after: Schema.Natural, messages: Schema.Natural }))
    })
  ),
  /** Number of the last line when it is incomplete and was left out. */
  torn: Schema.NullOr(Schema.Natural)
})
export type Report = typeof Report.Type

/** Display names of the part kinds. */
export const kindNames: Record<PartKind, string> = {
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
