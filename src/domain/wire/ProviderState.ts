/** What in a request refers to state that the provider keeps: for a conversation, or for the account of the key. */

import { isJson, type Json } from "../text/JsonObject.ts"

/** A key as a server may read it: in any case, and in either spelling of the Gemini API. */
export const foldedKey = (key: string): string => key.toLowerCase().replaceAll("_", "")

const statefulKeys = new Set(["previousresponseid", "conversation", "cachedcontent", "prompt", "container"])

/** Whether a key of a request refers to state on the provider's side: earlier messages or a cache. */
export const isStateful = (key: string): boolean => statefulKeys.has(foldedKey(key))

/** Keys of parts and tools that name files, containers, caches and indexes of the account. */
const accountKeys: ReadonlySet<string> = new Set([
  "cachedcontent",
  "containerid",
  "fileid",
  "fileids",
  "filesearchstorenames",
  "retrieval",
  "skillid",
  "vectorstoreids"
])

/** Keys of values with any keys: schemas, the arguments and results of the client's tools, what a client notes, and what an answer cites. */
const freeKeys: ReadonlySet<string> = new Set([
  "annotations",
  "args",
  "arguments",
  "citations",
  "headers",
  "inputexamples",
  "inputschema",
  "metadata",
  "parameters",
  "parametersjsonschema",
  "partmetadata",
  "properties",
  "response",
  "responsejsonschema",
  "responseschema",
  "schema"
])

const codeCall = "code_interpreter_call"

/**
 * Whether an item of the Responses API needs what the provider keeps of it, though it is no reference: a run of code its container, an image without
 * its data all of it.
 */
export const needsState = ({ container_id, result, type }: Json): boolean =>
  type === codeCall
    ? (container_id ?? undefined) !== undefined
    : type === "image_generation_call" && typeof result !== "string"

/** An address that anyone can read; those of Google name files of the account. */
const isPublic = (uri: unknown): boolean =>
  typeof uri === "string" && /^https?:\/\/[\w.-]+(?::\d+)?(?:[/?#]|$)/i.test(uri) && !/googleapis/i.test(uri)

const namesAccount = (key: string, value: unknown, { type }: Json): boolean => {
  if (value === null || value === undefined) return false
  const name = foldedKey(key)
  switch (name) {
    case "fileuri":
      return !isPublic(value)
    case "container":
      return typeof value === "string"
    case "audio":
      return isJson(value) && "id" in value
    case "containerid":
      return type !== codeCall || key !== "container_id"
    case "id":
    case "input":
    case "type":
      // Items are told by these, as they are spelled. Databases call their own key _id.
      return key !== name && key.toLowerCase() === name
    default:
      return accountKeys.has(name)
  }
}

/**
 * Whether the messages or tools of a request name something of the account: a file, a container, an index, a cache. Items of the Responses API that
 * are references or need state are not looked at: some are of the client's own answers.
 */
export const namesAccountState = (body: unknown): boolean => {
  const left: Array<unknown> = [body]
  while (left.length > 0) {
    const next = left.pop()
    if (Array.isArray(next)) for (const each of next) left.push(each)
    if (!isJson(next)) continue
    for (const [key, value] of Object.entries(next)) {
      if (namesAccount(key, value, next)) return true
      // The input of a call is an object, and that of a request a list.
      if (!freeKeys.has(foldedKey(key)) && (key !== "input" || Array.isArray(value))) left.push(value)
    }
  }
  return false
}

/** Whether a key, where it is true, has the provider go on with a request after its client has left, and keep the answer for later. */
export const isBackground = (key: string): boolean => foldedKey(key) === "background"
