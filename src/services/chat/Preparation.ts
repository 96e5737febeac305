/** Uses and ends the snapshot that a chat prepares in the background. `PrepareSnapshot.ts` starts it. */

import { Deferred, Effect, Ref } from "effect"
import { withCounts } from "../../domain/compression/Compression.ts"
import { rebased } from "../../domain/compression/Rebase.ts"
import type { Policy } from "../../domain/compression/strategies/Policy.ts"
import { compressed, viewTokens } from "../../domain/conversation/Conversation.ts"
import { Outgoing } from "../../domain/conversation/Outgoing.ts"
import type { SessionEvent } from "../../domain/session/Session.ts"
import * as Work from "../../domain/text/SlicedWork.ts"
import type { CompressionResult } from "../compression/strategies/CompressRequest.ts"
import type { ChatState, Emit, RequestContext } from "./ChatState.ts"

/** Ends the preparation, if there is one: interrupts its request and discards what it wrote. Never waits. */
export const endPreparation = (chat: ChatState, why: string): Effect.Effect<void> =>
  Effect.sync(() => {
    const { preparation } = chat
    if (preparation === undefined) return
    chat.preparation = undefined
    if (preparation.state !== "failed") {
      chat.preparationEvents.push({ _tag: "SnapshotPreparation", state: "dropped", message: why })
    }
    preparation.fiber?.interruptUnsafe()
  })

/** Returns why an event makes a preparation useless. Undefined when it does not. */
export const endingBy = ({ _tag }: SessionEvent): string | undefined => {
  switch (_tag) {
    case "Compressed":
      return "the conversation was compressed without it"
    case "Undone":
    case "Redone":
      return "a compression was undone or redone"
    case "Branched":
      return "the conversation went back to an earlier message"
    case "Pinned":
      return "words were pinned"
    case "ModelSwitched":
      return "the model was changed"
    default:
      return undefined
  }
}

/** Reports what happened to preparations since the last report. */
export const reportPreparation = (chat: ChatState, emit: Emit): Effect.Effect<void> =>
  Effect.suspend(() => Effect.forEach(chat.preparationEvents.splice(0), emit, { discard: true }))

/**
 * Applies a prepared snapshot to the conversation as it is now, and builds the resulting request, before either is
 * needed. Both take time in the length of the conversation. Runs in slices after the turns that follow a snapshot.
 */
export const rehearse = Effect.fnUntraced(function* (chat: ChatState, { model, opening }: RequestContext) {
  const { preparation } = chat
  if (preparation?.state !== "ready") return
  const written = yield* Deferred.await(preparation.done)
  const { conversation } = yield* Ref.get(chat.session)
  if (written === undefined || preparation.rehearsal?.conversation === conversation) return
  const patch = rebased(written.outcome.patch, written.from, conversation)
  if (patch === undefined) return
  const outgoing = new Outgoing()
  yield* Work.run(outgoing.follow(compressed(conversation, patch).view, model, opening.length > 0))
  preparation.rehearsal = { conversation, patch, outgoing }
})

/**
 * Returns the prepared snapshot as a compression of the conversation as it is now. Waits for a snapshot that is being
 * written. Undefined: there is none, or the request would still have more than `maxTokens` (estimated) or gain too
 * little; then the snapshot is discarded.
 */
export const takePrepared = Effect.fnUntraced(function* (
  chat: ChatState,
  policy: Policy,
  maxTokens: number,
  emit: Emit
): Effect.fn.Return<CompressionResult | undefined> {
  const { preparation } = chat
  if (preparation?.strategy !== policy.strategy || policy.summarizer !== "model") return undefined
  const isRunning = preparation.state === "running"
  if (isRunning) yield* emit({ _tag: "SnapshotPreparation", state: "running", message: null })
  const written = yield* Deferred.await(preparation.done)
  if (isRunning) yield* reportPreparation(chat, emit)
  if (written === undefined) return undefined
  const { conversation } = yield* Ref.get(chat.session)
  const { rehearsal } = preparation
  const patch =
    rehearsal?.conversation === conversation
      ? rehearsal.patch
      : rebased(written.outcome.patch, written.from, conversation)
  if (patch !== undefined) {
    // Uses the known totals of the views: the request is counted before it is sent anyway, and this must be fast.
    const before = policy.overhead + viewTokens(conversation)
    const after = policy.overhead + viewTokens(compressed(conversation, patch))
    if (after < before && after <= before * (1 - policy.minGain) && after <= maxTokens) {
      const outcome = withCounts({ ...written.outcome, patch }, before, after)
      return { outcome, dropped: written.dropped }
    }
  }
  yield* endPreparation(chat, patch === undefined ? "the conversation changed" : "it would not make enough room")
  return undefined
})
