/** Compresses a conversation of the gateway into a new view. */

import { Clock, Effect } from "effect"
import { patchOf } from "../../domain/compression/Compression.ts"
import { entries } from "../../domain/conversation/Conversation.ts"
import type { CompressedView } from "../../domain/gateway/CompressedView.ts"
import { gatewayPolicy } from "../../domain/gateway/GatewayLimits.ts"
import { compress, withPatch } from "../conversation/KnownConversation.ts"
import {
  changedEnd,
  type ConversationLog,
  isWithinGroup,
  logUpTo,
  viewMessages,
  withMessages
} from "./ConversationLog.ts"
import { type ConversationMemory, logOf } from "./ConversationMemory.ts"
import type { Preparable } from "./GatewayPlan.ts"

/** A compression that is not stored yet. */
export interface MadeView {
  readonly view: CompressedView
  /** The messages that the view replaces, as a JSON list. */
  readonly original: string
  readonly log: ConversationLog
  readonly by: "code" | "model"
}

/** Compresses a conversation. Undefined when nothing could be made smaller. */
export const makeView = Effect.fn("ViewMaking.makeView")(function* (
  memory: ConversationMemory,
  next: Preparable,
  by: MadeView["by"]
) {
  const { body, limit, names, overhead, rest, tokens, trigger, view: parent } = next
  const base = yield* logOf(memory, next, parent)
  const whole = yield* withMessages(base, rest)
  const policy = gatewayPolicy(limit, trigger, overhead.total)
  const { dropped, outcome } = yield* compress(whole, {
    policy: by === "code" ? policy : { ...policy, summarizer: "model" },
    forced: true,
    mustFit: true,
    family: body.model
  })
  const patch = patchOf(outcome)
  if (patch === undefined || outcome._tag !== "Compressed") return undefined
  const start = base.messages.length
  let end = Math.max(start, changedEnd(whole, patch))
  while (end < whole.messages.length && (rest[end - start - 1]?.isEnd !== true || isWithinGroup(whole, end))) end += 1
  const messages = rest[end - start - 1]?.upTo
  const name = messages === undefined ? undefined : names[messages]
  if (messages === undefined || name === undefined) return undefined
  // What comes after it stays the client's own.
  const cut = logUpTo(base, whole, end)
  const log = withPatch(cut, patch, dropped)
  const view: CompressedView = {
    version: 1,
    name,
    messages,
    parent: parent?.name ?? null,
    sent: viewMessages(log),
    patch,
    dropped: dropped ?? null,
    handles: entries(cut.conversation)
      .slice(entries(base.conversation).length)
      .flatMap(({ handles }) => handles),
    model: body.model,
    at: yield* Clock.currentTimeMillis,
    tokens: { before: Math.round(tokens.total), after: 0 }
  }
  const made: MadeView = {
    view,
    original: `[${cut.messages.slice(start).join()}]`,
    log,
    by: outcome.by === "model" ? "model" : "code"
  }
  return made
})
