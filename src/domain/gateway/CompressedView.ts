/** The messages that are sent in place of the beginning of a conversation. */

import { Schema } from "effect"
import { Handle } from "../content/Handle.ts"
import { Patch } from "../conversation/Conversation.ts"
import { fromJson } from "../text/JsonText.ts"
import type { Dialect } from "../wire/Dialect.ts"
import { type HiddenExchange, woven } from "../wire/HiddenExchange.ts"
import { wire } from "./WireDialects.ts"

const CompressedViewShape = Schema.Struct({
  version: Schema.Literals([1]),
  /** The beginning that the view replaces: its name, and how many of the client's messages it has. */
  name: Schema.String,
  messages: Schema.Natural,
  /** The earlier compression that this one builds on. */
  parent: Schema.NullOr(Schema.String),
  /** The messages that are sent, as JSON. */
  sent: Schema.Array(Schema.String),
  /** What the compression changed. */
  patch: Patch,
  /** The handle of everything that was dropped. */
  dropped: Schema.NullOr(Handle),
  /** The handles of all parts of the messages that were added since the earlier compression. */
  handles: Schema.Array(Handle),
  model: Schema.String,
  at: Schema.Finite,
  tokens: Schema.Struct({ before: Schema.Natural, after: Schema.Natural })
})
/** A compression of the beginning of a conversation, as it is sent and kept. */
export type CompressedView = typeof CompressedViewShape.Type

/** The stored form of a view. */
export const CompressedViewJson = fromJson(Schema.toCodecJson(CompressedViewShape))

/** A message to send. `upTo` is the number of the client's messages that it and the messages before it represent. */
export interface RelayedMessage {
  readonly json: string
  readonly upTo: number
  /** Whether the message ends where one of the client's messages ends. A view can only end there. */
  readonly isEnd: boolean
}

/**
 * Returns the messages to send for a client's messages from `from` on: the same messages, with hidden exchanges
 * inserted. The keys of `hidden` are the numbers of messages before each exchange.
 */
export const sentMessages = (
  dialect: Dialect,
  messages: ReadonlyArray<string>,
  from: number,
  hidden: ReadonlyMap<number, HiddenExchange>
): ReadonlyArray<RelayedMessage> => {
  const sent: Array<RelayedMessage> = []
  const add = (jsons: ReadonlyArray<string>, upTo: number) => {
    for (const [at, json] of jsons.entries()) sent.push({ json, upTo, isEnd: at === jsons.length - 1 })
  }
  for (let at = from; at < messages.length;) {
    const exchange = hidden.get(at)
    const found = exchange === undefined ? undefined : woven(wire[dialect], exchange, messages.slice(at))
    const own = found === undefined || found.consumed === 0 ? messages.slice(at, at + 1) : []
    const consumed = found === undefined || found.consumed === 0 ? 1 : found.consumed
    at += consumed
    add([...(found?.sent ?? []), ...own], at)
  }
  return sent
}
