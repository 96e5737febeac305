/** Writes the snapshot of the next compression in the background. `Preparation.ts` uses and ends it. */

import { Cause, Clock, Deferred, Effect, Exit, Ref } from "effect"
import { callsOf, Cancelled, Noop, paidCalls, statusOf } from "../../domain/compression/Compression.ts"
import type { Policy } from "../../domain/compression/strategies/Policy.ts"
import { viewTokens } from "../../domain/conversation/Conversation.ts"
import { failedEvent, isFailure } from "../../domain/session/CompressionEvent.ts"
import type { SessionEvent } from "../../domain/session/Session.ts"
import { TokenCount } from "../../domain/tokens/Tokens.ts"
import { Compression } from "../compression/Compression.ts"
import { firePreCompress, postCompress } from "../compression/PreCompress.ts"
import { unusableIn, withUsableModels } from "../compression/UsableModels.ts"
import { type ChatState, hooksOf, type Preparation, type PreparedSnapshot, type RequestContext } from "./ChatState.ts"
import { commit, readWhole } from "./Commit.ts"
import { compressRequest, promptIdOf } from "./Compress.ts"
import { policyFor } from "./CompressPolicy.ts"
import { rehearse } from "./Preparation.ts"
import { withOwnWindows } from "./RequestContext.ts"

/**
 * Starts to prepare a snapshot after a turn, if the request is larger than the lower mark and a model writes
 * snapshots. There is one preparation per view: a failed one is not repeated until the conversation is compressed or
 * a compression is undone. It belongs to the chat and not to the turn.
 */
export const prepareSnapshot = Effect.fnUntraced(function* (chat: ChatState, context: RequestContext, tokens: number) {
  if (chat.preparation?.state === "ready") yield* Effect.forkIn(rehearse(chat, context), chat.scope)
  const { prepareAt = 0 } = context.settings
  if (prepareAt <= 0 || chat.preparation !== undefined || tokens < prepareAt * context.window.trigger) return
  if (chat.scope.state._tag === "Closed") return
  const { conversation, memory } = yield* Ref.get(chat.session)
  // After a failure, code writes the snapshot, which needs no preparation.
  if (memory.failed || viewTokens(conversation) < memory.waitUntil) return
  const policy = withUsableModels(yield* policyFor(chat, {}), memory)
  if (policy.summarizer !== "model") return
  const preparation: Preparation = {
    strategy: policy.strategy,
    done: yield* Deferred.make<PreparedSnapshot | undefined>(),
    state: "running",
    fiber: undefined,
    rehearsal: undefined
  }
  chat.preparation = preparation
  chat.preparationEvents.push({ _tag: "SnapshotPreparation", state: "running", message: null })
  // Only the writing is interruptible, so `done` always completes.
  preparation.fiber = yield* Effect.interruptible(write(chat, context, policy)).pipe(
    Effect.exit,
    Effect.flatMap((exit) => settle(chat, preparation, policy, exit)),
    Effect.andThen(Effect.interruptible(rehearse(chat, context))),
    Effect.forkIn(chat.scope, { uninterruptible: true })
  )
}, Effect.uninterruptible)

/** Compresses the conversation as it is now without committing the result. Undefined: a hook vetoes it. */
const write = Effect.fn("Chat.prepare")(function* (chat: ChatState, { strategy }: RequestContext, policy: Policy) {
  const session = yield* readWhole(chat)
  const { conversation } = session
  const hooks = yield* hooksOf(chat, () => Effect.void)
  const hookDecision = yield* firePreCompress(hooks, { conversation, forced: false })
  // The conversation has not changed yet, whatever was written.
  yield* Effect.addFinalizer((exit) => {
    const before = TokenCount.make(viewTokens(conversation))
    const outcome = Exit.isSuccess(exit) ? Noop.make({ reason: "below threshold", before }) : Cancelled.make({ before })
    return hooks.fireAside(postCompress("auto", outcome))
  })
  if (strategy.heedsHooks && (hookDecision.stopped ?? hookDecision.blocked) !== undefined) return undefined
  const compression = yield* Compression
  const compressing = compression.compress({
    // Forced, because the conversation is below the threshold; but never for a range that was paid for without a
    // result.
    ...(yield* compressRequest(chat, session, policy, true)),
    mustFit: true,
    hookDecision,
    promptId: yield* promptIdOf(chat, false)
  })
  return { ...(yield* withOwnWindows(chat, compressing)), from: conversation }
}, Effect.scoped)

/**
 * Logs the model calls, and makes the snapshot available. A snapshot that code wrote instead of the model is not
 * used.
 */
const settle = Effect.fnUntraced(function* (
  chat: ChatState,
  preparation: Preparation,
  policy: Policy,
  exit: Exit.Exit<Effect.Success<ReturnType<typeof write>>, unknown>
) {
  const { strategy } = policy
  const result = Exit.isSuccess(exit) ? exit.value : undefined
  const outcome = result?.outcome
  const written: PreparedSnapshot | undefined =
    result !== undefined && outcome?._tag === "Compressed" && (outcome.by === "model" || outcome.by === "hook")
      ? { ...result, outcome }
      : undefined
  if (outcome !== undefined) {
    const at = yield* Clock.currentTimeMillis
    const { calls } = paidCalls(callsOf(outcome))
    const unusable = result === undefined ? [] : unusableIn(result, policy)
    const hasFailed = isFailure(statusOf(outcome))
    const status = hasFailed ? statusOf(outcome) : "FAILED_SUMMARIZER"
    const event: SessionEvent | undefined =
      written === undefined && (calls !== undefined || hasFailed)
        ? failedEvent(outcome, { at, strategy, forced: false, unusable }, status)
        : calls && { _tag: "Prepared", at, strategy, calls }
    if (event !== undefined) yield* commit(chat, event).pipe(Effect.ignore({ log: "Warn" }))
  } else if (Exit.isFailure(exit) && !Cause.hasInterrupts(exit.cause)) {
    yield* Effect.logWarning("a snapshot could not be prepared", exit.cause)
  }
  if (chat.preparation === preparation) {
    preparation.state = written === undefined ? "failed" : "ready"
    chat.preparationEvents.push({
      _tag: "SnapshotPreparation",
      ...(written === undefined
        ? { state: "dropped", message: outcome === undefined ? "a hook vetoed it" : "no model wrote one" }
        : { state: "ready", message: null })
    })
  }
  yield* Deferred.succeed(preparation.done, written)
})
