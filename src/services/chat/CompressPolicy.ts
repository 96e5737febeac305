/** The policies under which a chat compresses, in the tokens that its strategy counts. */

import { Effect, Ref } from "effect"
import { defaultPolicy, type Policy } from "../../domain/compression/strategies/Policy.ts"
import { environmentTokens, viewTokens } from "../../domain/conversation/Conversation.ts"
import { TokenCount } from "../../domain/tokens/Tokens.ts"
import type { ChatState, RequestContext } from "./ChatState.ts"
import { requestContext } from "./RequestContext.ts"
import { reportedTokens, requestSize } from "./RequestSize.ts"

/** Converts a policy for a strategy that uses the provider's counts: the whole window, and the last count. */
export const inStrategyTerms = (chat: ChatState, { settings, strategy, window }: RequestContext, policy: Policy) =>
  Effect.map(Ref.get(chat.session), (session): Policy => {
    if (!strategy.countsByReport || strategy.name !== policy.strategy) return policy
    const prompt = reportedTokens(chat, session)
    return {
      ...policy,
      toolBudget: settings.policy?.toolBudget ?? defaultPolicy.toolBudget,
      ...(settings.policy?.snapshotBudget === undefined ? {} : { snapshotBudget: settings.policy.snapshotBudget }),
      limit: TokenCount.make(window.window),
      threshold: Math.min(1, window.trigger / Math.max(1, window.window)),
      ...(prompt === undefined ? {} : { promptTokens: TokenCount.make(prompt) })
    }
  })

/** The policy of a compression that the user asks for: down to the request limit, in the estimator's tokens. */
export const policyFor = Effect.fnUntraced(function* (
  chat: ChatState,
  { focus, policy }: { readonly focus?: string | undefined; readonly policy?: Policy | undefined }
) {
  if (policy !== undefined) return policy
  const context = yield* requestContext(chat)
  const { conversation } = yield* Ref.get(chat.session)
  const { scale = 1 } = yield* requestSize(chat, false)
  const limit = Math.max(1, Math.floor(context.window.maxRequestTokens / scale))
  const made: Policy = {
    ...(yield* inStrategyTerms(chat, context, context.window.policy(limit, scale))),
    overhead: TokenCount.make(Math.ceil(context.overheadTokens + environmentTokens(conversation)))
  }
  return focus === undefined ? made : { ...made, focus }
})

/**
 * Whether a strategy that uses the provider's counts is due: by the last count or, without one (resumed, just compressed), by its own estimate.
 * Undefined: the strategy does not use counts.
 */
export const isDueByReport = (chat: ChatState, { strategy, window }: RequestContext) =>
  Effect.map(Ref.get(chat.session), (session): boolean | undefined => {
    if (!strategy.countsByReport) return undefined
    if (viewTokens(session.conversation) < session.memory.waitUntil) return false
    const prompt = reportedTokens(chat, session)
    return prompt === undefined || prompt >= window.trigger
  })
