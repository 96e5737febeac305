/** Writes the summary of a branch when a conversation goes back. */

import { Effect } from "effect"
import {
  branchInstruction,
  branchRequest,
  branchSummaryText,
  maxBranchSummaryTokens
} from "../../../domain/compression/BranchPrompts.ts"
import type { Degraded, SummaryCall } from "../../../domain/compression/Compression.ts"
import { digestOf } from "../../../domain/compression/handover/Digest.ts"
import type { ModelNames } from "../../../domain/compression/PolicyOptions.ts"
import { digestHeading } from "../../../domain/compression/SummaryPrompts.ts"
import { text, user } from "../../../domain/content/Content.ts"
import type { Entry } from "../../../domain/conversation/Conversation.ts"
import { redacting, type Secret } from "../../../domain/text/Redaction.ts"
import * as Work from "../../../domain/text/SlicedWork.ts"
import { untrustedBlock } from "../../../domain/text/UntrustedText.ts"
import type { Model } from "../../model/Model.ts"
import type { Calibrations } from "../../tokens/Calibrations.ts"
import { askInOrder, chainOf, type ModelChain } from "./ModelChain.ts"
import { askOnce, digestBudget, modelOf } from "./ModelSummarizer.ts"

/** The input of the summary of a branch that the conversation left. */
export interface BranchSummaryRequest {
  /** The entries of the branch, oldest first. */
  readonly entries: readonly [Entry, ...ReadonlyArray<Entry>]
  /** Secrets of the whole conversation. The summary shows none of them. */
  readonly secrets: ReadonlyArray<Secret>
  readonly cwd: string | undefined
  /** What the summary should preserve above all. */
  readonly focus: string | undefined
  readonly by: "model" | "extractive"
  /**
   * The summarizing models, if any were named, and the conversation's own model, whose family determines the default.
   */
  readonly model: ModelNames | undefined
  readonly family: string | undefined
}

/** The summary of a branch. */
export interface BranchSummary {
  /** The text of the message that replaces the branch. */
  readonly text: string
  readonly by: "model" | "extractive"
  /** Why code wrote the summary although a model was asked. */
  readonly degraded: Degraded | null
  readonly calls: ReadonlyArray<SummaryCall>
}

const noAnswer: Degraded = { reason: "EmptySummary", message: "the model returned an empty summary" }

/** Asks a model in one call. The model sees a digest. */
const written = Effect.fnUntraced(function* (request: BranchSummaryRequest, chain: ModelChain) {
  const { cwd, entries, family, focus, secrets } = request
  const [model] = chain.models
  const budget = yield* digestBudget(modelOf({ family, model }))
  const digest = yield* Work.run(digestOf(entries, { budget, cwd, secrets }))
  const answer = yield* askInOrder(chain, askOnce, {
    family,
    promptId: `branch-${entries[0].id}`,
    purpose: "generate",
    system: branchInstruction,
    contents: [user(text(`${digestHeading}\n\n${digest}`), text(branchRequest(focus)))],
    maxOutputTokens: maxBranchSummaryTokens
  })
  return untrustedBlock((yield* Work.run(redacting(answer, secrets))).text).trim()
})

/**
 * Summarises a branch that the conversation left: by a model, or by code if no model is wanted or the model returns
 * nothing. Never fails.
 */
export const branchSummary = Effect.fn("BranchSummary.branchSummary")(function* (
  request: BranchSummaryRequest
): Effect.fn.Return<BranchSummary, never, Model | Calibrations> {
  const { cwd, entries, secrets } = request
  const [first] = entries
  const last = entries.at(-1) ?? first
  const chain = chainOf(request.model)
  const { calls } = chain
  const answer = request.by === "model" ? yield* Effect.result(written(request, chain)) : undefined
  if (answer?._tag === "Success" && answer.success !== "") {
    const shown = branchSummaryText(answer.success, first.id, last.id, "model")
    return { text: shown, by: "model", degraded: null, calls }
  }
  const digest = yield* Work.run(digestOf(entries, { budget: maxBranchSummaryTokens, cwd, secrets }))
  return {
    text: branchSummaryText(digest, first.id, last.id, "extractive"),
    by: "extractive",
    degraded:
      answer === undefined
        ? null
        : answer._tag === "Success"
          ? noAnswer
          : { reason: answer.failure.reason, message: answer.failure.message },
    calls
  }
})
