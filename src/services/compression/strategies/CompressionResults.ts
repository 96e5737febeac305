/** Makes the results of strategies: no change and why, the messages in place of what is dropped, failures. */

import { Effect } from "effect"
import {
  FailedSummarizer,
  FailedTokenCountError,
  Noop,
  type NoopReason,
  type Plan,
  type SummaryCall
} from "../../../domain/compression/Compression.ts"
import type { Content } from "../../../domain/content/Content.ts"
import { entryId } from "../../../domain/conversation/Conversation.ts"
import { isTried, type TriedRange } from "../../../domain/conversation/FailureMemory.ts"
import { countSecrets, redacting, type Secret } from "../../../domain/text/Redaction.ts"
import type { SlicedWork } from "../../../domain/text/SlicedWork.ts"
import { TokenCount } from "../../../domain/tokens/Tokens.ts"
import { makeEntry } from "../../session/EntryBuilder.ts"
import type { TokenCountError } from "../../tokens/TokenCounter.ts"
import type { SummarizerError } from "../summary/Summarizer.ts"
import type { CompressionResult, CompressRequest } from "./CompressRequest.ts"

/** Makes the result of a compression that changed nothing, with the reason. */
export const noop = (reason: NoopReason, before: number, detail?: string): CompressionResult => ({
  outcome: Noop.make({
    reason,
    before: TokenCount.make(before),
    ...(detail === undefined || detail.trim() === "" ? {} : { detail })
  })
})

/** The counts of the secrets that did not enter a snapshot, for its outcome. */
export const keptOut = (secrets: ReadonlyArray<Secret>) =>
  secrets.length === 0 ? {} : { secrets: countSecrets(secrets) }

/** Makes the messages that stand for what a compression drops. */
export const summaryEntries = (
  { conversation, held }: Pick<CompressRequest, "conversation" | "held">,
  contents: ReadonlyArray<Content>
) =>
  Effect.forEach(contents, (content, index) =>
    makeEntry({ content, author: "summary" }, entryId(conversation.next + index), held)
  )

/** Turns failures of the summarizer and of counting into outcomes. */
export const failuresAsOutcomes = <R>(
  effect: Effect.Effect<CompressionResult, SummarizerError | TokenCountError, R>,
  plan: Plan
) => {
  const { before } = plan
  return Effect.catchTags(effect, {
    TokenCountError: ({ message }) =>
      Effect.succeed<CompressionResult>({ outcome: FailedTokenCountError.make({ before, message }) }),
    SummarizerError: ({ calls, message, reason }) =>
      Effect.succeed<CompressionResult>({
        outcome: FailedSummarizer.make({ before, plan, reason, message, calls })
      })
  })
}

/**
 * Whether a model was paid for this range before without a result, and the user did not ask again. Such a range is
 * not paid for twice.
 */
export const wasTriedWithoutResult = (
  { forced, memory, mustFit = false, policy }: CompressRequest,
  range: TriedRange
): boolean => policy.summarizer === "model" && (!forced || mustFit) && isTried(memory, range)

/** Redacts secrets in the answers of model calls, because outcomes are stored and printed. */
export function* redactedCalls(
  calls: ReadonlyArray<SummaryCall>,
  secrets: ReadonlyArray<Secret>
): SlicedWork<ReadonlyArray<SummaryCall>> {
  const clean: Array<SummaryCall> = []
  for (const call of calls) {
    clean.push({ ...call, answer: (yield* redacting(call.answer, secrets)).text })
  }
  return clean
}
