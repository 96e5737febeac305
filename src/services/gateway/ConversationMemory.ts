import { Clock, Effect, Schema } from "effect"
import {
  type CompressedView,
  CompressedViewJson,
  HiddenExchangeJson,
  sentMessages
} from "../../domain/gateway/CompressedView.ts"
import type { RequestBody } from "../../domain/gateway/RequestBody.ts"
import { BoundedMap } from "../../domain/text/BoundedMap.ts"
import type { HiddenExchange } from "../../domain/wire/HiddenExchange.ts"
import { type ConversationLog, emptyLog, withMessages, withPatch } from "./ConversationLog.ts"
import { GatewayStore } from "./GatewayStore.ts"

/** Conversations, views and items in memory. */
const maxLogs = 12
const maxViews = 128
const maxItems = 1_000
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

/** Whether a call is of our tool. Its name has a number where the client has a tool of the same name. */
export const isOwnTool = (name: string): boolean => /^palimpsest_recall(?:_\d+)?$/.test(name)

/** The views and hidden exchanges of conversations: a store, with the newest of its content in memory. */
export interface ConversationMemory {
  readonly store: GatewayStore["Service"]
  readonly owners: Map<string, OwnerNames>
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

/** The hidden exchanges of a conversation, by the number of messages before them. */
export const hiddenOf = Effect.fnUntraced(function* (
  memory: ConversationMemory,
  owner: string,
  names: ReadonlyArray<string>,
  from: number
) {
  const { hidden } = yield* namesOf(memory, owner)
  const exchanges = new Map<number, HiddenExchange>()
  if (hidden.size === 0) return exchanges
  for (let at = from; at < names.length; at += 1) {
    const name = names[at]
    if (name === undefined || !hidden.has(name)) continue
    const text = yield* memory.store.get(owner, "hidden", name)
    const exchange = text === undefined ? undefined : yield* Effect.option(decodeHidden(text))
    if (exchange?._tag === "Some") exchanges.set(at, exchange.value)
  }
  return exchanges
})

/** The log of the nearest view that is in memory, and the views after it, the oldest first. */
const nearestLog = Effect.fnUntraced(function* (
  memory: ConversationMemory,
  owner: string,
  last: CompressedView | undefined
) {
  const later: Array<CompressedView> = []
  let view = last
  while (view !== undefined) {
    const log = memory.logs.get(`${owner}/${view.name}`)
    if (log !== undefined) return { log, from: view.messages, later }
    later.unshift(view)
    view = view.parent === null ? undefined : yield* viewOf(memory, owner, view.parent)
  }
  return { log: undefined, from: 0, later }
})

/** The log of a conversation up to a view, from memory or made from the client's messages. */
export const logOf = Effect.fnUntraced(function* (
  memory: ConversationMemory,
  owner: string,
  { dialect, messages }: RequestBody,
  names: ReadonlyArray<string>,
  view: CompressedView | undefined
) {
  const nearest = yield* nearestLog(memory, owner, view)
  let { from, log = emptyLog(dialect) } = nearest
  for (const each of nearest.later) {
    const hidden = yield* hiddenOf(memory, owner, names.slice(0, each.messages), from)
    const sent = sentMessages(dialect, messages.slice(0, each.messages), from, hidden)
    log = withPatch(yield* withMessages(log, sent, isOwnTool), each)
    memory.logs.set(`${owner}/${each.name}`, log)
    from = each.messages
  }
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
  owners: new Map(),
  views: new BoundedMap(maxViews),
  logs: new BoundedMap(maxLogs),
  items: new BoundedMap(maxItems)
}))
