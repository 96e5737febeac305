import { Clock, Effect, Schema } from "effect"
import {
  type CompressedView,
  CompressedViewJson,
  HiddenExchangeJson,
  sentMessages
} from "../../domain/gateway/CompressedView.ts"
import type { HiddenExchange } from "../../domain/gateway/HiddenExchange.ts"
import type { RequestBody } from "../../domain/gateway/RequestBody.ts"
import { BoundedMap } from "../../domain/text/BoundedMap.ts"
import { type ConversationLog, emptyLog, withMessages, withPatch } from "./ConversationLog.ts"
import { GatewayStore } from "./GatewayStore.ts"

/** What the gateway knows of conversations: views and hidden exchanges in the store, and the newest of them in memory. */

/** Conversations and views that are held in memory. */
const maxLogs = 12
const maxViews = 128
/** Conversations that another process may have compressed are looked for again after this time. */
const namesAgeMillis = 5_000

/** What is known of the conversations of an owner: the names in the store. */
export interface Known {
  readonly views: Set<string>
  readonly hidden: Set<string>
  readonly readAt: number
}

const decodeView = Schema.decodeUnknownEffect(CompressedViewJson)
const encodeView = Schema.encodeEffect(CompressedViewJson)
const decodeHidden = Schema.decodeUnknownEffect(HiddenExchangeJson)
const encodeHidden = Schema.encodeEffect(HiddenExchangeJson)

/** Whether a call is of our tool, whose name has a number where a client has one of the same name. */
export const isOwnTool = (name: string): boolean => /^palimpsest_recall(?:_\d+)?$/.test(name)

/** Opens what is known over the store of the context. */
export const makeConversationMemory = Effect.gen(function* () {
  const store = yield* GatewayStore
  const owners = new Map<string, Known>()
  const views = new BoundedMap<string, CompressedView>(maxViews)
  const logs = new BoundedMap<string, ConversationLog>(maxLogs)

  /** What is known of an owner; `isFresh` asks the store again after a while. */
  const knownOf = Effect.fnUntraced(function* (owner: string, isFresh = false) {
    const held = owners.get(owner)
    const now = yield* Clock.currentTimeMillis
    if (held !== undefined && (!isFresh || now - held.readAt < namesAgeMillis)) return held
    const known: Known = {
      views: new Set(yield* store.names(owner, "view")),
      hidden: new Set(yield* store.names(owner, "hidden")),
      readAt: now
    }
    owners.set(owner, known)
    return known
  })

  /** The view under a name; undefined where it is gone or cannot be read. */
  const viewOf = Effect.fnUntraced(function* (owner: string, name: string) {
    const key = `${owner}/${name}`
    const held = views.get(key)
    if (held !== undefined) return held
    const text = yield* store.get(owner, "view", name)
    const read = text === undefined ? undefined : yield* Effect.option(decodeView(text))
    if (read?._tag !== "Some") return undefined
    views.set(key, read.value)
    return read.value
  })

  /** The deepest compression of a beginning of this conversation. */
  const deepest = Effect.fnUntraced(function* (owner: string, names: ReadonlyArray<string>) {
    const known = yield* knownOf(owner)
    if (known.views.size === 0) return undefined
    for (let at = names.length - 1; at > 0; at -= 1) {
      const name = names[at]
      if (name === undefined || !known.views.has(name)) continue
      const view = yield* viewOf(owner, name)
      if (view !== undefined && view.messages === at) return view
    }
    return undefined
  })

  /** The hidden exchanges of this conversation, by the number of messages before them. */
  const hiddenOf = Effect.fnUntraced(function* (owner: string, names: ReadonlyArray<string>, from: number) {
    const { hidden } = yield* knownOf(owner)
    const found = new Map<number, HiddenExchange>()
    if (hidden.size === 0) return found
    for (let at = from; at < names.length; at += 1) {
      const name = names[at]
      if (name === undefined || !hidden.has(name)) continue
      const text = yield* store.get(owner, "hidden", name)
      const read = text === undefined ? undefined : yield* Effect.option(decodeHidden(text))
      if (read?._tag === "Some") found.set(at, read.value)
    }
    return found
  })

  /** The conversation up to a view: held, or made again of the client's messages. */
  const logOf = Effect.fnUntraced(function* (
    owner: string,
    body: RequestBody,
    names: ReadonlyArray<string>,
    view: CompressedView | undefined
  ) {
    const chain: Array<CompressedView> = []
    let log: ConversationLog | undefined
    for (let each = view; each !== undefined && log === undefined;) {
      log = logs.get(`${owner}/${each.name}`)
      if (log !== undefined) break
      chain.unshift(each)
      each = each.parent === null ? undefined : yield* viewOf(owner, each.parent)
    }
    const [first] = chain
    let from =
      first === undefined
        ? 0
        : ((first.parent === null ? undefined : yield* viewOf(owner, first.parent))?.messages ?? 0)
    log ??= emptyLog(body.dialect)
    for (const each of chain) {
      const hidden = yield* hiddenOf(owner, names.slice(0, each.messages), from)
      const sent = sentMessages(body.dialect, body.messages.slice(0, each.messages), from, hidden)
      log = withPatch(yield* withMessages(log, sent, isOwnTool), each)
      logs.set(`${owner}/${each.name}`, log)
      from = each.messages
    }
    return log
  })

  /** The text that a view stands for; undefined where it is gone. */
  const originalOf = (owner: string, name: string) => store.get(owner, "original", name)

  /** Keeps a compression, with the messages that it stands for and the conversation as it is from then on. */
  const addView = Effect.fnUntraced(function* (
    owner: string,
    view: CompressedView,
    original: string,
    log: ConversationLog
  ) {
    const { name } = view
    yield* store.put(owner, "original", name, original)
    yield* store.put(owner, "view", name, yield* Effect.orDie(encodeView(view)))
    const known = yield* knownOf(owner)
    known.views.add(name)
    views.set(`${owner}/${name}`, view)
    logs.set(`${owner}/${name}`, log)
  })

  /** Keeps what a client did not see of the answer to the messages up to a name. */
  const addHidden = Effect.fnUntraced(function* (owner: string, name: string, exchange: HiddenExchange) {
    const known = yield* knownOf(owner)
    // Another answer to the same request, of which nothing was hidden, takes the place of an earlier one.
    if (exchange.rounds.length === 0 && exchange.beside === undefined && !known.hidden.has(name)) return
    yield* store.put(owner, "hidden", name, yield* Effect.orDie(encodeHidden(exchange)))
    known.hidden.add(name)
  })

  return { hash: store.hash, knownOf, viewOf, deepest, hiddenOf, logOf, originalOf, addView, addHidden }
})

/** What is known of conversations. */
export type ConversationMemory = Effect.Success<typeof makeConversationMemory>
