/** Finds, loads and stores what the gateway keeps of conversations: views, their logs and hidden exchanges. */

import { Clock, Effect, Schema } from "effect"
import { type CompressedView, CompressedViewJson, sentMessages } from "../../domain/gateway/CompressedView.ts"
import { BoundedMap } from "../../domain/text/BoundedMap.ts"
import { type HiddenExchange, HiddenExchangeJson } from "../../domain/wire/HiddenExchange.ts"
import { withPatch } from "../conversation/KnownConversation.ts"
import type { TempStore } from "../session/TempStore.ts"
import type { TokenCounter } from "../tokens/TokenCounter.ts"
import { type ConversationLog, emptyLog, withMessages } from "./ConversationLog.ts"
import type { GatewayError, Preparable } from "./GatewayPlan.ts"
import { GatewayStore } from "./GatewayStore.ts"
import { MessageCounts } from "./MessageCounts.ts"

/** Conversations and views in memory. */
const maxLogs = 12
const maxViews = 128
/** Characters of the items in memory: images that a model made are among them. */
const maxItemChars = 16_777_216
/** Owners whose names are in memory. A client can come with a new key in each request. */
const maxOwners = 10_000
/** Age at which names are read again: another process may have compressed a conversation. */
const namesAgeMillis = 5_000

/** The names of an owner's views and hidden exchanges in the store. */
interface OwnerNames {
  readonly views: Set<string>
  readonly hidden: Set<string>
  readonly readAt: number
}

const decodeView = Schema.decodeUnknownEffect(CompressedViewJson)
const encodeView = Schema.encodeEffect(CompressedViewJson)
const decodeHidden = Schema.decodeUnknownEffect(HiddenExchangeJson)
const encodeHidden = Schema.encodeEffect(HiddenExchangeJson)

/** A conversation as a client sends it, with the names of all prefixes of its messages. */
type SentConversation = Pick<Preparable, "body" | "names" | "owner">

/** The views and hidden exchanges of conversations: a store, with the newest of its content in memory. */
export interface ConversationMemory {
  readonly store: GatewayStore["Service"]
  readonly counts: MessageCounts
  readonly owners: BoundedMap<string, OwnerNames>
  readonly views: BoundedMap<string, CompressedView>
  readonly logs: BoundedMap<string, ConversationLog>
  /** The newest items of answers, as JSON. */
  readonly items: BoundedMap<string, string>
}

/** The names of an owner; with `isFresh`, not older than `namesAgeMillis`. */
export const namesOf = Effect.fnUntraced(function* (
  { owners, store }: ConversationMemory,
  owner: string,
  isFresh = false
) {
  const inMemory = owners.get(owner)
  const now = yield* Clock.currentTimeMillis
  if (inMemory !== undefined && (!isFresh || now - inMemory.readAt < namesAgeMillis)) return inMemory
  const names: OwnerNames = {
    views: new Set(yield* store.names(owner, "view")),
    hidden: new Set(yield* store.names(owner, "hidden")),
    readAt: now
  }
  owners.set(owner, names)
  return names
})

/** The view with a name; undefined if it is gone or cannot be read. */
export const viewOf = Effect.fnUntraced(function* ({ store, views }: ConversationMemory, owner: string, name: string) {
  const key = `${owner}/${name}`
  const inMemory = views.get(key)
  if (inMemory !== undefined) return inMemory
  const text = yield* store.get(owner, "view", name)
  const view = text === undefined ? undefined : yield* Effect.option(decodeView(text))
  if (view?._tag !== "Some") return undefined
  views.set(key, view.value)
  return view.value
})

/** The view that stands for the most messages at the start of a conversation. */
export const deepestView = Effect.fnUntraced(function* (
  memory: ConversationMemory,
  owner: string,
  names: ReadonlyArray<string>
) {
  const { views } = yield* namesOf(memory, owner)
  if (views.size === 0) return undefined
  for (let at = names.length - 1; at > 0; at -= 1) {
    const name = names[at]
    if (name === undefined || !views.has(name)) continue
    const view = yield* viewOf(memory, owner, name)
    if (view !== undefined && view.messages === at) return view
  }
  return undefined
})

/** The hidden exchanges of a conversation, by the number of messages before them: those from `from` up to `to`. */
const hiddenBetween = Effect.fnUntraced(function* (
  memory: ConversationMemory,
  { names, owner }: SentConversation,
  from: number,
  to: number
) {
  const { hidden } = yield* namesOf(memory, owner)
  const exchanges = new Map<number, HiddenExchange>()
  if (hidden.size === 0) return exchanges
  for (let at = from; at < to; at += 1) {
    const name = names[at]
    if (name === undefined || !hidden.has(name)) continue
    const text = yield* memory.store.get(owner, "hidden", name)
    const exchange = text === undefined ? undefined : yield* Effect.option(decodeHidden(text))
    if (exchange?._tag === "Some") exchanges.set(at, exchange.value)
  }
  return exchanges
})

/** The messages to send for those of a client from `from` up to `to`, with the exchanges that the client did not see. Each is counted once, under its name. */
export const messagesBetween = Effect.fnUntraced(function* (
  memory: ConversationMemory,
  conversation: SentConversation,
  from: number,
  to = conversation.body.messages.length
) {
  const { body, names } = conversation
  const { dialect, messages } = body
  const sent = sentMessages(dialect, messages.slice(0, to), from, yield* hiddenBetween(memory, conversation, from, to))
  return sent.map(({ isEnd, json, upTo }) => {
    const name = json === messages[upTo - 1] ? names[upTo] : undefined
    return { isEnd, json, upTo, text: memory.counts.message(dialect, json, name) }
  })
})

/** The log of a conversation up to a view, from memory or made from the client's messages. */
export const logOf = Effect.fnUntraced(function* (
  memory: ConversationMemory,
  conversation: SentConversation,
  view: CompressedView | undefined
): Effect.fn.Return<ConversationLog, GatewayError, TempStore | TokenCounter> {
  const { body, owner } = conversation
  if (view === undefined) return emptyLog(body.dialect)
  const inMemory = memory.logs.get(`${owner}/${view.name}`)
  if (inMemory !== undefined) return inMemory
  const parent = view.parent === null ? undefined : yield* viewOf(memory, owner, view.parent)
  const base = yield* logOf(memory, conversation, parent)
  const sent = yield* messagesBetween(memory, conversation, parent?.messages ?? 0, view.messages)
  const log = withPatch(yield* withMessages(base, sent), view.patch, view.dropped ?? undefined)
  memory.logs.set(`${owner}/${view.name}`, log)
  return log
})

/** Stores a view, the text it stands for, and the log from then on. */
export const addView = Effect.fnUntraced(function* (
  memory: ConversationMemory,
  owner: string,
  view: CompressedView,
  original: string,
  log: ConversationLog
) {
  const { logs, store, views } = memory
  const { name } = view
  yield* store.put(owner, "original", name, original)
  yield* store.put(owner, "view", name, yield* Effect.orDie(encodeView(view)))
  const names = yield* namesOf(memory, owner)
  names.views.add(name)
  views.set(`${owner}/${name}`, view)
  logs.set(`${owner}/${name}`, log)
})

/** Stores the hidden part of the answer to the messages up to a name. */
export const addHidden = Effect.fnUntraced(function* (
  memory: ConversationMemory,
  owner: string,
  name: string,
  exchange: HiddenExchange
) {
  const { hidden } = yield* namesOf(memory, owner)
  // An answer without a hidden part replaces an earlier one with one.
  if (exchange.rounds.length === 0 && exchange.beside === undefined && !hidden.has(name)) return
  yield* memory.store.put(owner, "hidden", name, yield* Effect.orDie(encodeHidden(exchange)))
  hidden.add(name)
})

/** Opens the memory over the store of the context. */
export const makeConversationMemory = Effect.map(GatewayStore, (store): ConversationMemory => ({
  store,
  counts: new MessageCounts(),
  owners: new BoundedMap(maxOwners),
  views: new BoundedMap(maxViews),
  logs: new BoundedMap(maxLogs),
  items: new BoundedMap(maxItemChars, (item) => item.length)
}))
