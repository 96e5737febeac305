import { Effect } from "effect"
import type { Handle } from "../../domain/content/Handle.ts"
import { recall as recallRange } from "../../domain/conversation/Recall.ts"
import { hiddenParts } from "../../domain/conversation/RecallSearch.ts"
import type { RecallCall } from "../../domain/gateway/Answer.ts"
import type { Dialect } from "../../domain/gateway/Dialect.ts"
import { isJson } from "../../domain/model/MessageForm.ts"
import { parsedOrUndefined } from "../../domain/text/JsonText.ts"
import * as Work from "../../domain/text/SlicedWork.ts"
import { HandleNotHeld, search, select, type TempStore, TempStoreError } from "../session/TempStore.ts"
import type { TokenCounter } from "../tokens/TokenCounter.ts"
import { recall as recallTool } from "../tools/builtin/Recall.ts"
import type { CallContext } from "../tools/Tool.ts"
import { emptyLog, withMessages } from "./ConversationLog.ts"
import { type ConversationMemory, isOwnTool, logOf, namesOf, viewOf } from "./ConversationMemory.ts"
import type { Recalled, SentView } from "./GatewayPlan.ts"

/** Answers calls of our tool with what left the window, exactly as the provider saw it before. */

/** Tokens of one answer to the model. */
const maxRecallTokens = 4_000
const minRecallTokens = 200

/** Nobody watches a call of ours. */
const unwatched: Omit<CallContext, "id"> = {
  agent: "gateway",
  progress: () => Effect.void,
  activity: () => Effect.void,
  waiting: (work) => work
}

/** Answers over what is known of conversations. */
export const makeRecallAnswers = Effect.fnUntraced(function* (memory: ConversationMemory) {
  const provide = Effect.provideContext(yield* Effect.context<TempStore | TokenCounter>())

  /** Looks for a handle in everything that ever left conversations of this owner. */
  const recallElsewhere = Effect.fnUntraced(function* (owner: string, dialect: Dialect, handle: Handle) {
    for (const name of (yield* namesOf(memory, owner)).views) {
      const view = yield* viewOf(memory, owner, name)
      if (view === undefined || (view.dropped !== handle && !view.handles.includes(handle))) continue
      const text = yield* memory.store.get(owner, "original", name)
      if (text === undefined) continue
      const values = parsedOrUndefined(text)
      if (!Array.isArray(values)) continue
      if (view.dropped === handle) return text
      const sent = values.map((value) => ({ json: JSON.stringify(value), upTo: 0, isEnd: true }))
      const log = yield* withMessages(emptyLog(dialect), sent, isOwnTool)
      const found = log.handles.text(handle)
      if (found !== undefined) return found
    }
    return undefined
  })

  const recall = Effect.fn("Gateway.recall")(function* (
    { body, names, owner, rest, view }: SentView,
    calls: ReadonlyArray<RecallCall>,
    room: number
  ) {
    const log = yield* withMessages(yield* logOf(memory, owner, body, names, view), rest, isOwnTool)
    const tool = recallTool({
      conversation: Effect.succeed(log.conversation),
      // The provider has seen all of it before: exactly that comes back.
      settings: Effect.succeed({ model: body.model, policy: { redactSecrets: false } }),
      recall: Effect.fnUntraced(function* (handle, selection = {}) {
        const text =
          log.handles.text(handle) ??
          recallRange({ entries: [], ranges: log.ranges }, handle)?.text ??
          (yield* Effect.orElseSucceed(recallElsewhere(owner, body.dialect, handle), () => undefined))
        return text === undefined
          ? yield* new TempStoreError({ reason: new HandleNotHeld({ name: handle, advice: "copy it as it is shown" }) })
          : yield* select(text, selection)
      }, provide),
      search: (query) => Effect.flatMap(Work.run(hiddenParts(log.conversation)), (parts) => search(parts, query))
    })
    const most = Math.max(minRecallTokens, Math.min(maxRecallTokens, Math.floor(room / Math.max(1, calls.length))))
    return yield* Effect.forEach(calls, ({ args, id }) =>
      tool.call({ ...(isJson(args) ? args : {}), maxTokens: most }, { ...unwatched, id }).pipe(
        Effect.flatMap(({ run }) => run),
        Effect.match({
          onFailure: ({ message }): Recalled => ({ text: message, isFailure: true }),
          onSuccess: ({ value }) => ({ text: String(value), isFailure: false })
        })
      )
    )
  }, provide)
  return { recall }
})
