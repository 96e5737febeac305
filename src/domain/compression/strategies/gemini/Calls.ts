/** The model calls of the strategy `gemini`: the first asks for a snapshot, the second for a check of it. */

import { type Content, model, text, user } from "../../../content/Content.ts"
import { callPromptId, summarizerRole } from "../../Compression.ts"
import type { Summarize } from "./Decision.ts"
import { compressionInstruction, critiqueRequest, type SnapshotSource, snapshotRequest } from "./Prompts.ts"

/** One model call, not streamed. */
export interface CompressionCall {
  readonly promptId: string
  readonly role: typeof summarizerRole
  readonly system: string
  readonly contents: ReadonlyArray<Content>
}

const compressionCall = (promptId: string, contents: ReadonlyArray<Content>): CompressionCall => ({
  promptId,
  role: summarizerRole,
  system: compressionInstruction,
  contents
})

/** Makes the first call, which asks for the snapshot. */
export const firstCall = (
  { anchor, summarized }: Pick<Summarize, "summarized"> & { readonly anchor: SnapshotSource },
  promptId: string
): CompressionCall => compressionCall(promptId, [...summarized, user(text(snapshotRequest(anchor)))])

/**
 * Makes the second call, which asks for a check. It is made whatever the first answer was, and does not repeat the first
 * question.
 */
export const secondCall = (
  { summarized }: Pick<Summarize, "summarized">,
  promptId: string,
  summary: string
): CompressionCall =>
  compressionCall(callPromptId(promptId, "verify"), [...summarized, model(text(summary)), user(text(critiqueRequest))])
