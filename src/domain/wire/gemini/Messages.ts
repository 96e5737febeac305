/** Contents of the Gemini API, in either spelling of their fields. */

import { Schema } from "effect"
import { ContentShape, type Part } from "../../content/Content.ts"
import { isJson, type Json } from "../../text/JsonObject.ts"
import type { MessageCodec, ReadPart } from "../MessageCodec.ts"
import { groupOf } from "../MessageCodec.ts"

const isContent = Schema.is(ContentShape)

/** The names of the Gemini API's fields in Python, which the API takes as well. */
const camelCase = (key: string): string => key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())

const partFields = new Set([
  "function_call",
  "function_response",
  "inline_data",
  "file_data",
  "thought_signature",
  "video_metadata",
  "executable_code",
  "code_execution_result"
])
const mediaFields = new Set(["mime_type", "file_uri", "display_name", "will_continue"])

const renamed = (value: unknown, fields: ReadonlySet<string>): unknown =>
  isJson(value)
    ? Object.fromEntries(
        Object.entries(value)
          .filter(([, field]) => field !== null)
          .map(([key, field]) => [fields.has(key) ? camelCase(key) : key, field])
      )
    : value

const isPythonPart = (part: unknown): part is Json =>
  isJson(part) && Object.keys(part).some((key) => partFields.has(key))

/** A field of a part with its names. The result of a function has media as parts. */
const namedField = (key: string, field: unknown): unknown => {
  if (key !== "functionCall" && key !== "functionResponse" && key !== "inlineData" && key !== "fileData") return field
  const media = renamed(field, mediaFields)
  return isJson(media) && Array.isArray(media["parts"]) ? { ...media, parts: media["parts"].map(namedPart) } : media
}

/** Returns a part as the API's JavaScript SDK names its fields. Python's `model_dump()` writes null for those without a value. */
export const namedPart = (part: unknown): unknown => {
  const whole = renamed(part, partFields)
  return isJson(whole)
    ? Object.fromEntries(Object.entries(whole).map(([key, field]) => [key, namedField(key, field)]))
    : whole
}

/** A message in the form in which it is read: the same value if it has that form. The role is the user's unless it is said, as in the API. */
export const namedContent = (message: unknown): unknown => {
  if (!isJson(message)) return message
  // An answer without content has no parts.
  const { parts = message.role === "model" && Object.keys(message).length === 1 ? [] : undefined, role: given } =
    message
  // Earlier versions of the API and its SDKs gave results a role of their own.
  const role = given === undefined || given === "function" ? "user" : given
  const read = Array.isArray(parts) && parts.some(isPythonPart) ? parts.map(namedPart) : parts
  return role === given && read !== undefined && read === message.parts ? message : { ...message, role, parts: read }
}

/** Contents as the Gemini API and its SDK have them. */
export const geminiCodec: MessageCodec = {
  read: (messages) =>
    messages.flatMap((given, at) => {
      const message = namedContent(given)
      if (!isContent(message)) return []
      const parts = message.parts.map((part, index): ReadPart => [
        part,
        { message: at, path: ["parts", index], write: (short: Part) => short }
      ])
      const group = groupOf(at, at + 1, message.role, parts)
      return [{ ...group, content: message }]
    }),
  write: (content) => content
}
