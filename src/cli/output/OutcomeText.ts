/** Sentences about the outcome of a compression, one for each status. */

import {
  callsOf,
  type Degraded,
  failedModelsOf,
  type NoopReason,
  Outcome
} from "../../domain/compression/Compression.ts"
import { viewItem, itemTokens } from "../../domain/conversation/Conversation.ts"
import { dollars } from "../../domain/text/NumberText.ts"
import { costOf, type Prices } from "../../domain/tokens/Prices.ts"
import * as Output from "./Output.ts"

/** Reasons for doing nothing. */
export const noopReasonText: Record<NoopReason, string> = {
  empty: "the conversation is empty",
  "below threshold": "below the threshold; use --force to compress anyway",
  "waiting for growth": "waiting for the conversation to grow after a failure; use --force to compress anyway",
  "already tried": "a model failed to summarize this before; use --force to try again",
  "nothing to compress": "nothing to compress",
  "nothing shrank": "nothing got smaller",
  "vetoed by a hook": "a hook prevented it"
}

/** Why nothing was compressed, in a chat, which has no flags. */
export const chatReasonText = (reason: NoopReason): string => noopReasonText[reason].replace(/; use --force.*$/, "")

/** Below this size it is normal that a compression does not help. */
const largeConversationTokens = 50_000

/** An amount of money within a sentence. */
export const costText = (value: number): string => (value < 0.0001 ? dollars(value) : `about ${dollars(value)}`)

/** Names the models that failed before a fallback was used, and why; empty when none failed. */
export const failedModelsText = (outcome: Outcome): string => {
  const failed = failedModelsOf(outcome).map(({ message, model }) => `${model} failed (${withoutPeriod(message)})`)
  return failed.length === 0 ? "" : `${failed.join(", ")}; the next model was asked`
}

/** The cost of a compression's model calls, and the models that failed; empty when code did the work. */
const callsText = (outcome: Outcome, prices: Prices): string => {
  const calls = callsOf(outcome)
  if (calls.length === 0) return ""
  const failed = failedModelsText(outcome)
  const cost = costOf(
    calls.flatMap(({ model, usage }) => (usage === null ? [] : [{ model, usage }])),
    prices,
    false
  )
  const tokens = calls.reduce((sum, { usage }) => sum + (usage === null ? 0 : usage.prompt + usage.answer), 0)
  return ` It took ${Output.plural(calls.length, "call")}${tokens === 0 ? "" : ` of ${Output.number(tokens)} tokens`}${
    cost.total === null ? "" : ` (${costText(cost.total)})`
  }.${failed === "" ? "" : ` Note: ${failed}.`}`
}

/** Number and kinds of the secrets kept out of a snapshot; empty for none. */
export const secretsText = (outcome: Outcome): string => {
  const counts = Object.entries(outcome._tag === "Compressed" ? (outcome.secrets ?? {}) : {})
  const all = counts.reduce((sum, [, count]) => sum + count, 0)
  if (all === 0) return ""
  const kinds = counts.map(([kind, count]) => `${Output.number(count)} × ${kind}`).join(", ")
  return `${Output.plural(all, "secret")} kept out of the snapshot (${kinds})`
}

const secretsSentence = (outcome: Outcome): string => {
  const text = secretsText(outcome)
  return text === "" ? "" : ` ${text} (recallable).`
}

const degradedNote = (degraded: Degraded | null): string =>
  degraded === null ? "" : ` Note: ${withoutPeriod(degraded.message)}.`

const tokenRange = (before: number, after: number, limit: number): string =>
  `from ${Output.number(before)} to ${Output.number(after)} tokens (${Output.share(after, limit)} of the window)`

const undoHint = " /undo reverses it."

/** A failure message as part of a sentence. */
const withoutPeriod = (message: string): string => message.replace(/\.$/, "")

/**
 * The sentence that a chat shows: the tokens before and after, what was kept, the cost and how to undo it; or why nothing
 * changed and what to do. `limit` is the window in tokens; `prices` those of the calls; `scale` converts the estimator's tokens to the model's.
 */
export const outcomeSentence = (outcome: Outcome, limit: number, prices: Prices, scale = 1): string =>
  Outcome.match(outcome, {
    Compressed: (made) => {
      const { after, before, by, degraded, patch, plan } = made
      const layout = plan.steps.find((step) => step._tag === "Layout")
      const messages = layout === undefined ? 0 : layout.kept.length
      const snapshot = patch.insert.reduce((sum, entry) => sum + itemTokens(viewItem(entry)), 0)
      const writer =
        by === "model" ? "written by the model" : by === "hook" ? "written by a hook" : "made without a model"
      const stayed =
        messages === 0
          ? "The whole conversation"
          : `${messages === 1 ? "The last message is unchanged" : `The last ${Output.number(messages)} messages are unchanged`}; the rest`
      return `Compressed ${tokenRange(before, after, limit)}. ${stayed} is now a snapshot of ${Output.number(Math.round(snapshot * scale))} tokens, ${writer}, and stays recallable.${secretsSentence(made)}${callsText(outcome, prices)}${degradedNote(degraded)}${undoHint}`
    },
    ContentTruncated: ({ after, before, degraded, patch }) =>
      `Shortened ${Output.plural(patch.shorten.length, "tool output")}, ${tokenRange(before, after, limit)}. Everything else is unchanged, and the full ${patch.shorten.length === 1 ? "output stays" : "outputs stay"} recallable.${callsText(outcome, prices)}${degradedNote(degraded)}${undoHint}`,
    Noop: ({ detail, reason }) => {
      const why = chatReasonText(reason)
      return reason === "nothing to compress" || reason === "empty"
        ? "Nothing to compress."
        : `Not compressed: ${why}${detail === undefined ? "" : ` (${withoutPeriod(detail)})`}.`
    },
    FailedInflatedTokenCount: ({ after, before, reason }) =>
      before < largeConversationTokens
        ? `Compression does not help at this size: ${Output.number(before)} tokens would become ${Output.number(after)}. Nothing was changed.${callsText(outcome, prices)}`
        : `The summary would ${reason === "inflated" ? "not make it smaller" : "save too little"} (${Output.number(before)} to ${Output.number(after)} tokens); the conversation keeps its full history. Try another model with /model, or name what matters most: /compress FOCUS.${callsText(outcome, prices)}`,
    FailedTokenCountError: ({ message }) =>
      `The tokens could not be counted (${withoutPeriod(message)}), so nothing was compressed. Try again.`,
    FailedEmptySummary: () =>
      `The model returned an empty summary, so nothing was changed. Try again, or another model with /model.${callsText(outcome, prices)}`,
    FailedSummarizer: ({ message }) =>
      `The summary failed: ${withoutPeriod(message)}. Nothing was changed.${callsText(outcome, prices)}`,
    Cancelled: () => "Cancelled. The conversation is unchanged."
  })

/** Why a compression on the command line had no effect; undefined when it had one. */
export const failureLine: (outcome: Outcome) => string | undefined = Outcome.match({
  Compressed: () => undefined,
  ContentTruncated: () => undefined,
  Noop: () => undefined,
  FailedInflatedTokenCount: ({ after, before, reason, stubborn }) =>
    `${reason === "inflated" ? "the result would not be smaller" : "the result would save too little"} (${Output.number(before)} to ${Output.number(after)} tokens); nothing was changed. ${
      stubborn.length === 0
        ? "Try a smaller --budget"
        : `Cannot be shortened: ${stubborn.map(({ entry, tokens, what }) => `${entry} ${what} ${Output.number(tokens)}`).join(", ")}. Try --preserve 0 or a smaller --min-gain`
    }`,
  FailedTokenCountError: ({ message }) => `tokens could not be counted: ${message}`,
  FailedEmptySummary: () => "the summary is empty; try again, or use --summarizer extractive",
  FailedSummarizer: ({ message, reason }) =>
    `the summary failed: ${message}${reason === "AuthenticationError" ? "; without a model: --summarizer extractive" : ""}`,
  Cancelled: () => "cancelled; nothing was changed"
})
