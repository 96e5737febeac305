/** Finds the tool calls of entries together with their responses. */

import { isResponse, type Part } from "../content/Content.ts"
import type { Handle } from "../content/Handle.ts"
import { callPairs } from "../conversation/CallPairs.ts"
import type { Entry } from "../conversation/Conversation.ts"

/** A response or a call, its handle, and its tokens. */
export interface PartOfEntry {
  readonly part: Part
  readonly handle: Handle | undefined
  readonly tokens: number
}

/** Finds the response of a call, or the call of a response. `item`: the index of its entry. */
export type FindPartner = (item: number, part: number) => PartOfEntry | undefined

/** Pairs the calls of entries with their responses. */
export const partnersIn = (entries: ReadonlyArray<Entry>): FindPartner => {
  const pairs = callPairs(entries.map(({ content }) => content))
  return (item, part) => {
    const place = pairs.partnerOf(item, part)
    const entry = place && entries[place.item]
    const partner = place && entry?.content.parts[place.part]
    return partner && { part: partner, handle: entry?.handles[place.part], tokens: entry?.tokens[place.part] ?? 0 }
  }
}

/** A call and its response. */
export interface AnsweredCall {
  readonly call: Part
  readonly answer: Part
}

/** Returns the calls in these entries with their responses, in the order of the responses. */
export const answeredCalls = (entries: ReadonlyArray<Entry>): ReadonlyArray<AnsweredCall> => {
  const partnerOf = partnersIn(entries)
  return entries.flatMap(({ content }, item) =>
    content.parts.flatMap((answer, at) => {
      const call = isResponse(answer) ? partnerOf(item, at)?.part : undefined
      return call === undefined ? [] : [{ call, answer }]
    })
  )
}
