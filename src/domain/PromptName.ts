import type * as Prompt from "effect/ai/Prompt"
import * as Base64 from "effect/encoding/Base64"

/**
 * The text that the name of a message is made of. Two messages with the same text give the same bytes for every one of
 * their handles, in this process and in the next one: values are written as `JSON.stringify` writes them.
 */
export const messageText = (message: Prompt.Message): string => write(message, true)

/** Fields that hold parts. */
const partFields = new Set(["content", "modelOutput"])

const hasToJson = (value: object): value is { readonly toJSON: () => unknown } =>
  "toJSON" in value && typeof value.toJSON === "function"

/**
 * `isPart`: a message or a part, whose fields come in any order, as a constructor or a decoder made it. Anything else is
 * data: the order of its keys is part of what was said.
 */
const fields = (value: object, isPart: boolean): string => {
  const entries: ReadonlyArray<readonly [string, unknown]> = Object.entries(value)
  let text = "{"
  for (const [key, each] of isPart ? entries.toSorted(([one], [other]) => (one < other ? -1 : 1)) : entries) {
    // JSON leaves these out, and so does whoever reads a history back from JSON.
    if (each !== undefined) text += `${JSON.stringify(key)}:${write(each, isPart && partFields.has(key))},`
  }
  return `${text}}`
}

const write = (value: unknown, isPart: boolean): string => {
  if (typeof value === "bigint") return `${value}n`
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null"
  if (Array.isArray(value)) return `[${value.map((each) => write(each, isPart)).join(",")}]`
  // Tagged, so that a text that looks the same has another name.
  if (value instanceof Uint8Array) return `bytes(${Base64.encode(value)})`
  if (value instanceof URL) return `url(${JSON.stringify(value.href)})`
  return hasToJson(value) ? write(value.toJSON(), false) : fields(value, isPart)
}
