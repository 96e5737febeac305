/**
 * A fast path for messages and turns, which nearly every line of a long log holds. It checks 10,000 of them in 25 ms, where
 * the schema `SessionEvent` takes 380 ms and parsing their JSON 100 ms; the user waits while a session is opened. It accepts
 * nothing that the schema rejects, and leaves everything unusual to the schema. A property test compares the two.
 */

import type { Entry } from "../conversation/Conversation.ts"
import type { SessionEvent } from "./Session.ts"

type Check = (value: unknown) => boolean

const isString: Check = (value) => typeof value === "string"
const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)
const isCount: Check = (value) => typeof value === "number" && value >= 0 && Number.isSafeInteger(value)
const isArrayOf =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(check)
const isMatch =
  (pattern: RegExp): Check =>
  (value) =>
    typeof value === "string" && pattern.test(value)

/** Every known key holds a value of its type; other keys may hold anything. */
const isOpen =
  (checks: ReadonlyMap<string, Check>): Check =>
  (value) => {
    if (!isObject(value)) return false
    for (const key in value) if (checks.get(key)?.(value[key]) === false) return false
    return true
  }

const callChecks = isOpen(new Map([["id", isString]]))
const isCommonPart = isOpen(
  new Map<string, Check>([
    ["text", isString],
    ["thought", (value) => typeof value === "boolean"],
    ["thoughtSignature", isString],
    ["functionCall", (value) => isObject(value) && isString(value.name) && callChecks(value)],
    [
      "functionResponse",
      isOpen(
        new Map([
          ["id", isString],
          ["name", isString]
        ])
      )
    ],
    [
      "inlineData",
      isOpen(
        new Map([
          ["mimeType", isString],
          ["data", isString]
        ])
      )
    ],
    [
      "fileData",
      isOpen(
        new Map([
          ["mimeType", isString],
          ["fileUri", isString]
        ])
      )
    ]
  ])
)

const isCommonParts = isArrayOf(isCommonPart)

const usageKeys = ["prompt", "answer", "thoughts", "cached"]
const writeKeys = ["cacheWrite", "cacheWriteHour"]
const isUsage: Check = (value) => {
  if (!isObject(value) || !usageKeys.every((key) => isCount(value[key]))) return false
  for (const key in value)
    if (!usageKeys.includes(key) && !(writeKeys.includes(key) && isCount(value[key]))) return false
  return true
}

/** The keys of an entry. An entry with any other key is left to the schema. */
const entryChecks = new Map<string, Check>([
  ["id", isMatch(/^e[1-9]\d*$/)],
  [
    "content",
    (value) => isObject(value) && (value.role === "user" || value.role === "model") && isCommonParts(value.parts)
  ],
  ["at", Number.isFinite],
  ["usage", (value) => isUsage(value)],
  ["author", (value) => value === "program" || value === "summary" || value === "environment"],
  ["messageId", isString],
  ["model", isString],
  ["tokens", isArrayOf(isCount)],
  ["handles", isArrayOf(isMatch(/^h_[a-z2-7]{10,52}$/))]
])

const isCommonEntry = (value: unknown): value is Entry => {
  if (!isObject(value)) return false
  if (value.id === undefined || value.content === undefined || value.tokens === undefined) return false
  if (value.handles === undefined) return false
  for (const key in value) if (entryChecks.get(key)?.(value[key]) !== true) return false
  return true
}

/** Decodes an `Appended` or `Answered` event whose entries have only common keys; undefined for all others. */
export const decodeCommonEvent = (value: Readonly<Record<string, unknown>>): SessionEvent | undefined => {
  const { answer, attached, entry, message } = value
  if (value._tag === "Appended") return isCommonEntry(entry) ? { _tag: "Appended", entry } : undefined
  if (value._tag !== "Answered" || attached !== undefined) return undefined
  return isCommonEntry(message) && isCommonEntry(answer) ? { _tag: "Answered", message, answer } : undefined
}
