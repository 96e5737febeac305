import type { Part } from "../content/Content.ts"
import { type Entry, pairing, placeKey } from "../conversation/Conversation.ts"

/** Finds the tool calls of entries together with their responses. */

/** A call and its response. */
export interface AnsweredCall {
  readonly call: Part
  readonly answer: Part
}

/** Returns the calls in these entries with their responses, in the order of the responses. */
export const answeredCalls = (entries: ReadonlyArray<Entry>): ReadonlyArray<AnsweredCall> => {
  const { callOf } = pairing(entries.map(({ content }) => content))
  return entries.flatMap(({ content }, item) =>
    content.parts.flatMap((answer, part) => {
      const place = callOf.get(placeKey({ item, part }))
      const call = place === undefined ? undefined : entries[place.item]?.content.parts[place.part]
      return call === undefined ? [] : [{ call, answer }]
    })
  )
}
