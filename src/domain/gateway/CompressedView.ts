import { Schema } from "effect"
import { Handle } from "../content/Handle.ts"
import { Patch } from "../conversation/Conversation.ts"
import { fromJson } from "../text/JsonText.ts"
import type { Dialect } from "./Dialect.ts"
import { type HiddenExchange, woven } from "./HiddenExchange.ts"

/** What is sent in place of the beginning of a conversation. */

const CompressedViewShape = Schema.Struct({
  version: Schema.Literals([1]),
  /** The beginning that it stands for: its name, and its number of messages of the client. */
  name: Schema.String,
  messages: Schema.Natural,
  /** The earlier compression that it builds on. */
  parent: Schema.NullOr(Schema.String),
  /** The messages that are sent, as JSON. */
  sent: Schema.Array(Schema.String),
  /** What the compression changed. */
  patch: Patch,
  /** The handle of everything that left. */
  dropped: Schema.NullOr(Handle),
  /** The handles of all parts that the messages since the earlier compression have. */
  handles: Schema.Array(Handle),
  model: Schema.String,
  at: Schema.Finite,
  tokens: Schema.Struct({ before: Schema.Natural, after: Schema.Natural })
})
/** A compression of the beginning of a conversation, as it is sent and kept. */
export type CompressedView = typeof CompressedViewShape.Type

/** Its form in the store. */
export const CompressedViewJson = fromJson(Schema.toCodecJson(CompressedViewShape))

const VisibleBlockShape = Schema.Struct({
  kind: Schema.Literals(["text", "thought", "other"]),
  text: Schema.String
})

const Texts = Schema.Array(Schema.String)

/** A hidden exchange in the store. */
export const HiddenExchangeJson = fromJson(
  Schema.Struct({
    rounds: Schema.Array(Schema.Struct({ sent: Texts, visible: Schema.Array(VisibleBlockShape) })),
    beside: Schema.optionalKey(Schema.Struct({ calls: Texts, results: Texts }))
  })
)

/** A message that is sent, and how many messages of the client it and those before it stand for. */
export interface SentMessage {
  readonly json: string
  readonly upTo: number
  /** Whether the next message stands for the next of the client: only there can a view end. */
  readonly isEnd: boolean
}

/**
 * Returns what is sent for the messages of a client from `from` on: the same, with hidden exchanges at their places. `hidden` has
 * them by the number of messages before them.
 */
export const sentMessages = (
  dialect: Dialect,
  messages: ReadonlyArray<string>,
  from: number,
  hidden: ReadonlyMap<number, HiddenExchange>
): ReadonlyArray<SentMessage> => {
  const sent: Array<SentMessage> = []
  const add = (jsons: ReadonlyArray<string>, upTo: number) => {
    for (const [at, json] of jsons.entries()) sent.push({ json, upTo, isEnd: at === jsons.length - 1 })
  }
  for (let at = from; at < messages.length;) {
    const exchange = hidden.get(at)
    const found = exchange === undefined ? undefined : woven(dialect, exchange, messages.slice(at))
    const own = found === undefined || found.consumed === 0 ? messages.slice(at, at + 1) : []
    const consumed = found === undefined || found.consumed === 0 ? 1 : found.consumed
    at += consumed
    add([...(found?.sent ?? []), ...own], at)
  }
  return sent
}
