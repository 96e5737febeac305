import type * as Prompt from "effect/ai/Prompt"
import * as Base64 from "effect/encoding/Base64"

/** The text by which a message of `effect/ai` is named, and how many messages two prompts share. */

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
