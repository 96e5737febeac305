/**
 * Answers calls of the gateway's tool with the content that left the window, exactly as the provider received it
 * earlier.
 */

import { Effect } from "effect"
import type { Handle } from "../../domain/content/Handle.ts"
import { isJson } from "../../domain/text/JsonObject.ts"
import { parsedOrUndefined } from "../../domain/text/JsonText.ts"
import type { Dialect } from "../../domain/wire/Dialect.ts"
import type { RecallCall, RecalledContent } from "../../domain/wire/RelayedAnswer.ts"
import { textBehind } from "../conversation/KnownConversation.ts"
import { HandleNotHeld, searchHidden, select, type TempStore, TempStoreError } from "../session/TempStore.ts"
import type { TokenCounter } from "../tokens/TokenCounter.ts"
import { recall as recallTool } from "../tools/builtin/Recall.ts"
import { unwatchedCall } from "../tools/Tool.ts"
import { emptyLog, withMessages } from "./ConversationLog.ts"
import { type ConversationMemory, logOf, namesOf, viewOf } from "./ConversationMemory.ts"
import type { SentView } from "./GatewayPlan.ts"

/** Maximum tokens of one answer. */
const maxRecallTokens = 4_000
const minRecallTokens = 200

/** Finds the text of a handle in everything that left conversations of an owner. */
const textElsewhere = Effect.fnUntraced(function* (
  memory: ConversationMemory,
  owner: string,
  dialect: Dialect,
  handle: Handle
) {
  for (const name of (yield* namesOf(memory, owner)).views) {
    const view = yield* viewOf(memory, owner, name)
    if (view === undefined || (view.dropped !== handle && !view.handles.includes(handle))) continue
    const original = yield* memory.store.get(owner, "original", name)
    const values = original === undefined ? undefined : parsedOrUndefined(original)
    if (!Array.isArray(values)) continue
    if (view.dropped === handle) return original
    const sent = values.map((value) => ({ json: JSON.stringify(value), upTo: 0, isEnd: true }))
    const log = yield* withMessages(emptyLog(dialect), sent)
    const text = log.handles.text(handle)
    if (text !== undefined) return text
  }
  return undefined
})

/** Answers calls of our tool. `room` is the maximum number of tokens of all answers. */
export const recall = Effect.fn("Gateway.recall")(function* (
  memory: ConversationMemory,
  sent: SentView,
  calls: ReadonlyArray<RecallCall>,
  room: number
) {
  const context = yield* Effect.context<TempStore | TokenCounter>()
  const { body, owner, rest, view } = sent
  const log = yield* withMessages(yield* logOf(memory, sent, view), rest)
  const tool = recallTool({
    conversation: Effect.succeed(log.conversation),
    // The provider has seen all of it before: exactly that comes back.
    settings: Effect.succeed({ model: body.model, policy: { redactSecrets: false } }),
    recall: Effect.fnUntraced(function* (handle, selection = {}) {
      const text =
        textBehind(log, handle) ??
        (yield* Effect.orElseSucceed(textElsewhere(memory, owner, body.dialect, handle), () => undefined))
      return text === undefined
        ? yield* new TempStoreError({ reason: new HandleNotHeld({ name: handle, advice: "copy it as it is shown" }) })
        : yield* select(text, selection)
    }, Effect.provideContext(context)),
    search: (query) => searchHidden(log.conversation, query)
  })
  const share = Math.floor(room / Math.max(1, calls.length))
  const maxTokens = Math.max(minRecallTokens, Math.min(maxRecallTokens, share))
  return yield* Effect.forEach(calls, ({ args, id }) =>
    tool.call({ ...(isJson(args) ? args : {}), maxTokens }, unwatchedCall(id, "gateway")).pipe(
      Effect.flatMap((call) => call.run),
      Effect.match({
        onFailure: ({ message }): RecalledContent => ({ text: message, media: [], isError: true }),
        onSuccess: ({ media = [], value }) => ({ text: String(value), media })
      })
    )
  )
})
