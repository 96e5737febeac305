import { callsOf, type Degraded, type NoopReason, Outcome } from "../domain/Compression.ts"
import { viewItem, itemTokens } from "../domain/Conversation.ts"
import { builtIn, costOf } from "../domain/Prices.ts"
import * as Output from "./Output.ts"
import { dollars } from "./Report.ts"

/** What is said about how a compression ended: one sentence of its own for each way (spec 11, UI texts). */

/** Why nothing was done. */
export const noopText: Record<NoopReason, string> = {
  empty: "the conversation is empty",
  "below threshold": "below the threshold; --force compresses all the same",
  "waiting for growth": "waiting for the conversation to grow after a failure; --force compresses all the same",
  "already tried": "a model was asked to summarise just this before, in vain; --force asks again",
  "nothing to compress": "nothing to compress",
  "nothing shrank": "nothing got smaller",
  "vetoed by a hook": "a hook did not want it"
}

/** Below so many tokens a compression that does not help is what one would expect (seed 003). */
const worthwhile = 50_000

/** A sum of money as it stands within a sentence. */
export const costText = (value: number): string => (value < 0.0001 ? dollars(value) : `about ${dollars(value)}`)

/** What the model calls of a compression cost; nothing where code did the work. */
const paid = (outcome: Outcome): string => {
  const calls = callsOf(outcome)
  if (calls.length === 0) return ""
  const cost = costOf(
    calls.flatMap(({ model, usage }) => (usage === null ? [] : [{ model, usage }])),
    builtIn,
    false
  )
  const tokens = calls.reduce((sum, { usage }) => sum + (usage === null ? 0 : usage.prompt + usage.answer), 0)
  return ` It took ${Output.plural(calls.length, "call")}${tokens === 0 ? "" : ` of ${Output.number(tokens)} tokens`}${
    cost.total === null ? "" : ` (${costText(cost.total)})`
  }.`
}

/** How many secrets were kept out of a snapshot, and of which kinds; nothing where there were none. */
export const secretsText = (outcome: Outcome): string => {
  const counts = Object.entries(outcome._tag === "Compressed" ? (outcome.secrets ?? {}) : {})
  const all = counts.reduce((sum, [, count]) => sum + count, 0)
  if (all === 0) return ""
  const kinds = counts.map(([kind, count]) => `${Output.number(count)} × ${kind}`).join(", ")
  return `${Output.plural(all, "secret")} kept out of the snapshot (${kinds})`
}

const kept = (outcome: Outcome): string => {
  const text = secretsText(outcome)
  return text === "" ? "" : ` ${text}; recall shows them.`
}

const but = (degraded: Degraded | null): string => (degraded === null ? "" : ` Note: ${reasonOf(degraded.message)}.`)

const span = (before: number, after: number, limit: number): string =>
  `from ${Output.number(before)} to ${Output.number(after)} tokens (${Output.share(after, limit)} of the window)`

const back = " /undo takes it back."

/** A failure's words as part of a sentence. */
const reasonOf = (message: string): string => message.replace(/\.$/, "")

/**
 * The sentence that a chat says: from how many tokens to how many, what was kept, what it cost, how to undo it; or why
 * nothing changed and what to do. `limit` is the window in tokens; `scale`: the model's tokens for one of the estimator's.
 */
export const outcomeSentence = (outcome: Outcome, limit: number, scale = 1): string =>
  Outcome.match(outcome, {
    Compressed: (made) => {
      const { after, before, by, degraded, patch, plan } = made
      const layout = plan.steps.find((step) => step._tag === "Layout")
      const messages = layout === undefined ? 0 : layout.kept.length
      const snapshot = patch.insert.reduce((sum, entry) => sum + itemTokens(viewItem(entry)), 0)
      const writer = by === "model" ? "the model" : by === "hook" ? "a hook" : "code"
      const stayed =
        messages === 0
          ? "All of it"
          : `${messages === 1 ? "The last message stayed as it was" : `The last ${Output.number(messages)} messages stayed as they were`}; the rest`
      return `Compressed ${span(before, after, limit)}. ${stayed} is now a snapshot of ${Output.number(Math.round(snapshot * scale))} tokens, written by ${writer}, and can be recalled.${kept(made)}${paid(outcome)}${but(degraded)}${back}`
    },
    ContentTruncated: ({ after, before, degraded, patch }) =>
      `Shortened ${Output.plural(patch.shorten.length, "tool output")}, ${span(before, after, limit)}. All else stayed as it was, and ${patch.shorten.length === 1 ? "it" : "they"} can be recalled in full.${paid(outcome)}${but(degraded)}${back}`,
    Noop: ({ detail, reason }) => {
      const why = noopText[reason].replace(/; --force.*$/, "")
      return reason === "nothing to compress" || reason === "empty"
        ? "Nothing to compress."
        : `Nothing was compressed: ${why}${detail === undefined ? "" : ` (${reasonOf(detail)})`}.`
    },
    FailedInflatedTokenCount: ({ after, before, reason }) =>
      before < worthwhile
        ? `Compressing does not pay at this size: ${Output.number(before)} tokens would become ${Output.number(after)}. Nothing was changed.${paid(outcome)}`
        : `The summary did not make it ${reason === "inflated" ? "smaller" : "smaller by enough"} (${Output.number(before)} to ${Output.number(after)} tokens); the conversation goes on with its full history. Try another model with /model, or /compress with what matters most.${paid(outcome)}`,
    FailedTokenCountError: ({ message }) =>
      `The tokens could not be counted (${reasonOf(message)}), so nothing was compressed. Try again.`,
    FailedEmptySummary: () =>
      `The model returned an empty summary, so nothing was changed. Try again, or another model with /model.${paid(outcome)}`,
    FailedSummarizer: ({ message }) => `The summary failed: ${reasonOf(message)}. Nothing was changed.${paid(outcome)}`,
    Cancelled: () => "Cancelled; the conversation is as it was."
  })

/** Why a compression that was asked for on the command line came to nothing; undefined where it came to something. */
export const failureLine: (outcome: Outcome) => string | undefined = Outcome.match({
  Compressed: () => undefined,
  ContentTruncated: () => undefined,
  Noop: () => undefined,
  FailedInflatedTokenCount: ({ after, before, reason, stubborn }) =>
    `${reason === "inflated" ? "the result would not be smaller" : "the result would save too little"} (${Output.number(before)} to ${Output.number(after)} tokens); nothing was changed. ${
      stubborn.length === 0
        ? "Try a smaller --budget"
        : `What cannot shrink: ${stubborn.map(({ entry, tokens, what }) => `${entry} ${what} ${Output.number(tokens)}`).join(", ")}. Try --preserve 0 or a smaller --min-gain`
    }`,
  FailedTokenCountError: ({ message }) => `tokens could not be counted: ${message}`,
  FailedEmptySummary: () => "the summary came back empty; try again, or use --summarizer extractive",
  FailedSummarizer: ({ message }) => `the summary failed: ${message}`,
  Cancelled: () => "cancelled; nothing was changed"
})
