import { Effect } from "effect"
import type { Outcome } from "../../src/domain/compression/Compression.ts"
import type { Part } from "../../src/domain/content/Content.ts"
import { type Conversation, itemParts, view } from "../../src/domain/conversation/Conversation.ts"
import { projectMessages } from "../../src/domain/conversation/Projection.ts"
import type { Session } from "../../src/domain/session/Session.ts"
import * as Work from "../../src/domain/text/SlicedWork.ts"
import { partTokens } from "../../src/domain/tokens/Tokens.ts"
import { type Check, described, policyOf, type Script } from "../support/generate.ts"

/** Law 4: a compression shrinks the request by the stated minimum or says why not, and it never loops. */

export const estimate = (parts: ReadonlyArray<Part>): number =>
  parts.reduce((tokens, part) => tokens + Work.runSync(partTokens(part)), 0)

/** Tokens of the view, counted anew. */
export const recount = (conversation: Conversation): number =>
  view(conversation).reduce(
    (tokens, item) => (item.entry.author === "environment" ? tokens : tokens + estimate(itemParts(item))),
    0
  )

/** Tokens of the request, counted anew. */
const sentTokens = (conversation: Conversation): number => {
  const environment = new Set(
    view(conversation).flatMap(({ entry }) => (entry.author === "environment" ? [entry.id] : []))
  )
  return projectMessages(conversation).reduce(
    (tokens, { content, entry }) => (environment.has(entry) ? tokens : tokens + estimate(content.parts)),
    0
  )
}

const unremembered = (session: Session): string => described({ ...session, memory: { failed: false, waitUntil: 0 } })

export const shrank = (outcome: Outcome): outcome is Extract<Outcome, { _tag: "Compressed" | "ContentTruncated" }> =>
  outcome._tag === "Compressed" || outcome._tag === "ContentTruncated"

/** Whether a failure states its reason, and the reason is true. */
const saysWhy = (outcome: Outcome): boolean => {
  switch (outcome._tag) {
    case "FailedInflatedTokenCount":
      return outcome.reason === (outcome.after >= outcome.before ? "inflated" : "below minimum gain")
    case "FailedSummarizer":
      return outcome.reason !== "" && outcome.message !== ""
    case "FailedTokenCountError":
      return outcome.message !== ""
    default:
      return true
  }
}

/** What a compression reports is true, and one that reports no change changed nothing. */
const claims = (script: Script, outcome: Outcome, before: Session, after: Session): string | undefined => {
  const { minGain, overhead } = policyOf(script)
  if (!shrank(outcome)) {
    if (unremembered(before) !== unremembered(after)) return `${outcome._tag} changed the conversation`
    if (outcome._tag === "Noop" && described(before) !== described(after)) return "Noop changed what is remembered"
    return saysWhy(outcome) ? undefined : `${outcome._tag} does not say why: ${JSON.stringify(outcome).slice(0, 200)}`
  }
  const counts = [recount, sentTokens].map((count) => [
    overhead + count(before.conversation),
    overhead + count(after.conversation)
  ])
  // The view or the request: either, but the same for both counts.
  if (!counts.some(([was, is]) => outcome.before === was && outcome.after === is)) {
    return `counted ${outcome.before} and ${outcome.after} for what is ${counts.map(([was, is]) => `${was} and ${is}`).join(" or ")}`
  }
  return outcome.after <= outcome.before * (1 - minGain)
    ? undefined
    : `from ${outcome.before} to ${outcome.after} is less than the minimum gain`
}

export const progress: Check = Effect.fnUntraced(function* ({ chat, moments }, script) {
  for (const { after, before, outcome } of moments) {
    const problem = outcome === undefined ? undefined : claims(script, outcome, before, after)
    if (problem !== undefined) return problem
  }
  // Two more compressions: each ends, and none enlarges the conversation.
  for (let again = 0; again < 2; again += 1) {
    const before = yield* chat.session
    const outcome = yield* Effect.orDie(chat.compress({ policy: policyOf(script), forced: true }))
    const after = yield* chat.session
    if (recount(after.conversation) > recount(before.conversation)) return "compressing again made it larger"
    const problem = claims(script, outcome, before, after)
    if (problem !== undefined) return `again: ${problem}`
  }
  return undefined
})

/** The request is not larger after a compression: the view is not all that counts. */
export const sendsLess: Check = Effect.fnUntraced(function* ({ moments }) {
  for (const { after, before, outcome } of moments) {
    if (outcome === undefined || !shrank(outcome)) continue
    const was = sentTokens(before.conversation)
    const is = sentTokens(after.conversation)
    if (is >= was) return `${outcome.before} to ${outcome.after} in the view, but ${was} to ${is} in the request`
  }
  return undefined
})
