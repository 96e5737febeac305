/** Names messages and prompts of `effect/ai`, and the parts of their messages: handles are made of these names. */

import { Effect } from "effect"
import type * as Prompt from "effect/ai/Prompt"
import * as Base64 from "effect/encoding/Base64"
import { payload } from "../../domain/content/Content.ts"
import type { Hash } from "../../domain/content/Handle.ts"
import { toContent } from "../../domain/effect-ai/PromptContent.ts"
import { TempStore } from "../session/TempStore.ts"

/**
 * Returns the text from which the name of a message is made. Messages with the same text have the same bytes under each of
 * their handles, in this process and in later ones: values are written as `JSON.stringify` writes them.
 */
export const messageText = (message: Prompt.Message): string => writeValue(message, true)

/** The number of equal messages at the start of two prompts. A caller that extends a history keeps its message objects. */
export const sharedMessages = (one: ReadonlyArray<Prompt.Message>, other: ReadonlyArray<Prompt.Message>): number => {
  const differs = one.findIndex((message, at) => {
    const theirs = other[at]
    return message !== theirs && (theirs === undefined || messageText(message) !== messageText(theirs))
  })
  return differs < 0 ? one.length : differs
}

/** Fields that contain parts. */
const partFields = new Set(["content", "modelOutput"])

const hasToJson = (value: object): value is { readonly toJSON: () => unknown } =>
  "toJSON" in value && typeof value.toJSON === "function"

/**
 * Writes the fields of an object. With `isPart` it is a message or a part, whose field order is up to its constructor or
 * decoder. In any other object the key order is data.
 */
const writeFields = (value: object, isPart: boolean): string => {
  const entries: ReadonlyArray<readonly [string, unknown]> = Object.entries(value)
  let text = "{"
  for (const [key, each] of isPart ? entries.toSorted(([one], [other]) => (one < other ? -1 : 1)) : entries) {
    // JSON omits undefined values, and so does a history that is read back from JSON.
    if (each !== undefined) text += `${JSON.stringify(key)}:${writeValue(each, isPart && partFields.has(key))},`
  }
  return `${text}}`
}

const writeValue = (value: unknown, isPart: boolean): string => {
  if (typeof value === "bigint") return `${value}n`
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null"
  if (Array.isArray(value)) return `[${value.map((each) => writeValue(each, isPart)).join(",")}]`
  // Tagged, so that a string with the same text has another name.
  if (value instanceof Uint8Array) return `bytes(${Base64.encode(value)})`
  if (value instanceof URL) return `url(${JSON.stringify(value.href)})`
  return hasToJson(value) ? writeValue(value.toJSON(), false) : writeFields(value, isPart)
}

/** The names of prompts and of the parts of their messages, by which handles find them. A message object is hashed once. */
export interface PromptNames {
  readonly hash: TempStore["Service"]["hash"]
  readonly named: WeakMap<Prompt.Message, { readonly after: Hash | ""; readonly name: Hash }>
  readonly hashes: WeakMap<Prompt.Message, ReadonlyArray<Hash>>
}

/** Makes names with the hash of the `TempStore`. */
export const makeNames = Effect.map(TempStore, ({ hash }): PromptNames => ({
  hash,
  named: new WeakMap(),
  hashes: new WeakMap()
}))

const nameAfter = (
  { hash, named }: PromptNames,
  after: Hash | "",
  message: Prompt.Message
): Hash | Effect.Effect<Hash> => {
  const before = named.get(message)
  if (before?.after === after) return before.name
  return Effect.map(hash(`${after}\n${messageText(message)}`), (name) => {
    named.set(message, { after, name })
    return name
  })
}

/**
 * Names all beginnings of a prompt, that of no messages first, which is the owner: undefined for a conversation that exists in its caller's history
 * only. Such a name is the same in every process, because handles are made of it.
 */
export const namesOf = Effect.fnUntraced(function* (
  names: PromptNames,
  content: ReadonlyArray<Prompt.Message>,
  owner?: string
) {
  let last: Hash | "" = owner === undefined ? "" : yield* names.hash(`key ${owner}`)
  const made = [last]
  for (const message of content) {
    const name = nameAfter(names, last, message)
    last = typeof name === "string" ? name : yield* name
    made.push(last)
  }
  return made
})

/** The texts of a message's parts, as handles name them. */
export const textsOf = (message: Prompt.Message): ReadonlyArray<string> =>
  message.role === "system" ? [] : toContent(message).parts.map((part) => payload(part).text)

/** The hashes of a message's parts, as in their handles. */
export const hashesOf = Effect.fnUntraced(function* ({ hash, hashes }: PromptNames, message: Prompt.Message) {
  const before = hashes.get(message)
  if (before !== undefined) return before
  const made = yield* Effect.forEach(textsOf(message), hash)
  hashes.set(message, made)
  return made
})
