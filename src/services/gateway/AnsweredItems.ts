import { Effect } from "effect"
import type { RequestBody } from "../../domain/gateway/RequestBody.ts"
import { isJson, textOrEmpty } from "../../domain/text/JsonObject.ts"
import { parsedOrUndefined } from "../../domain/text/JsonText.ts"
import { mayRefer, referenceOf } from "../../domain/wire/responses/Messages.ts"
import type { ConversationMemory } from "./ConversationMemory.ts"

/**
 * Items of answers of the Responses API that the provider stores. Clients refer to them by id in later requests, so they are kept as they
 * pass through: a compression and a recall read the items themselves.
 */

const idOf = (item: string): string => {
  const value = parsedOrUndefined(item)
  return isJson(value) && referenceOf(value) === undefined ? textOrEmpty(value, "id") : ""
}

/** Keeps the items of an answer. */
export const keepItems = Effect.fnUntraced(function* (
  { items, store }: ConversationMemory,
  owner: string,
  answered: ReadonlyArray<string>
) {
  for (const item of answered) {
    const id = idOf(item)
    if (id === "") continue
    const name = store.hash(id)
    items.set(`${owner}/${name}`, item)
    yield* store.put(owner, "item", name, item)
  }
})

const itemOf = Effect.fnUntraced(function* ({ items, store }: ConversationMemory, owner: string, id: string) {
  const name = store.hash(id)
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
