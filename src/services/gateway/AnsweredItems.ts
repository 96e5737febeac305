/**
 * Items of answers of the Responses API of which the provider keeps something. Clients refer to them by id in later requests, or send them back with
 * what they name, so they are kept as they pass through: a compression and a recall read the items themselves.
 */

import { Effect } from "effect"
import { hashText } from "../../domain/gateway/MessageChain.ts"
import type { RequestBody } from "../../domain/gateway/RequestBody.ts"
import { isJson, jsonsAt, textOrEmpty } from "../../domain/text/JsonObject.ts"
import { parsedOrUndefined } from "../../domain/text/JsonText.ts"
import { needsState } from "../../domain/wire/ProviderState.ts"
import { mayRefer, referenceOf } from "../../domain/wire/responses/Messages.ts"
import type { ConversationMemory } from "./ConversationMemory.ts"

/** Keeps the items of an answer: all that the provider stores, else those alone of which it keeps something all the same, such as a container. */
export const keepItems = Effect.fnUntraced(function* (
  { items, store }: ConversationMemory,
  owner: string,
  answered: ReadonlyArray<string>,
  isStored: boolean
) {
  const keptItems = answered.flatMap((item) => {
    const value = parsedOrUndefined(item)
    const isKept = isJson(value) && referenceOf(value) === undefined && (isStored || needsState(value))
    const id = isKept ? textOrEmpty(value, "id") : ""
    return id === "" ? [] : [{ name: hashText(id), item }]
  })
  // All at once: the client may refer to them before they are stored.
  for (const { item, name } of keptItems) items.set(`${owner}/${name}`, item)
  for (const { item, name } of keptItems) yield* store.put(owner, "item", name, item)
})

const itemOf = Effect.fnUntraced(function* ({ items, store }: ConversationMemory, owner: string, id: string) {
  const name = hashText(id)
  return items.get(`${owner}/${name}`) ?? (yield* store.get(owner, "item", name))
})

/** Returns a request with the items that it refers to. Undefined when one of them never passed through here. */
export const withItems = Effect.fnUntraced(function* (memory: ConversationMemory, owner: string, body: RequestBody) {
  if (body.dialect !== "responses" || !body.messages.some(mayRefer)) return body
  const messages: Array<string> = []
  for (const message of body.messages) {
    const value = parsedOrUndefined(message)
    const reference = isJson(value) ? referenceOf(value) : undefined
    const item = reference === undefined ? message : yield* itemOf(memory, owner, reference)
    if (item === undefined) return undefined
    messages.push(item)
  }
  return { ...body, messages }
})

/** Whether each item that a request refers to passed through here for this owner. */
export const knowsItems = Effect.fnUntraced(function* (memory: ConversationMemory, owner: string, text: string) {
  const body = parsedOrUndefined(text)
  for (const item of isJson(body) ? jsonsAt(body, "input") : []) {
    const id = referenceOf(item) ?? (needsState(item) ? textOrEmpty(item, "id") : undefined)
    if (id === undefined) continue
    const kept = parsedOrUndefined((yield* itemOf(memory, owner, id)) ?? "")
    if (!isJson(kept) || (item["container_id"] ?? kept["container_id"]) !== kept["container_id"]) return false
  }
  return true
})
