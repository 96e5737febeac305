/** Searches the texts of a session's records for words or for a pattern. */

import { escape } from "effect/RegExp"
import { isJson, type Json } from "../../text/JsonObject.ts"
import { lineEnd } from "../../text/Lines.ts"
import { type Pattern, PatternMatcher } from "../../text/Pattern.ts"
import type { SlicedWork } from "../../text/SlicedWork.ts"
import { decodeClaude } from "../claude/Record.ts"
import { textAt } from "../JsonRecord.ts"
import { authorOf, typedText } from "../voice/Voice.ts"

/** What a search looks for: a message with all of these words, or a line that matches a pattern. */
export type SessionQuery =
  | { readonly _tag: "Words"; readonly words: ReadonlyArray<RegExp>; readonly tokens: ReadonlyArray<string> }
  | { readonly _tag: "Pattern"; readonly pattern: Pattern }

/** A match in a record: an excerpt of its line, and the characters that match in it. */
export interface Match {
  readonly text: string
  /** Where the matches begin and end, in order. */
  readonly marks: ReadonlyArray<readonly [start: number, end: number]>
}

/** Scripts that write words without blanks: a word can begin anywhere. */
const unspaced = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}]/u

const tokensIn = (word: string): ReadonlyArray<string> => word.toLowerCase().match(/[\p{L}\p{N}\p{Co}]+/gu) ?? []

/**
 * Returns the query of a text: each of its words must begin a word of the message, in any case. Quotes make a phrase one word.
 * `tokens` are the beginnings of words that an index can look up; there is none for a text without letters and digits.
 */
export const wordsQuery = (text: string): SessionQuery => {
  const words = [...text.matchAll(/"([^"]+)"|(\S+)/g)].flatMap(([, phrase = "", word]) => word ?? (phrase.trim() || []))
  return {
    _tag: "Words",
    words: words.map((word) => {
      const start = /^[\p{L}\p{N}]/u.test(word) && !unspaced.test(word) ? "(?<![\\p{L}\\p{N}])" : ""
      return new RegExp(`${start}${escape(word).replace(/\s+/g, "\\s+")}`, "giu")
    }),
    tokens: words.some((word) => unspaced.test(word)) ? [] : [...new Set(words.flatMap(tokensIn))]
  }
}

/** Characters of a line that are shown around a match. */
const shownChars = 160

const excerptOf = (line: string, marks: ReadonlyArray<readonly [number, number]>): Match => {
  const [first] = marks
  const from = Math.max(0, Math.min((first?.[0] ?? 0) - Math.floor(shownChars / 3), line.length - shownChars))
  const before = from > 0 ? "…" : ""
  const cut = line.slice(from, from + shownChars)
  const shift = before.length - from
  return {
    text: `${before}${cut}${from + shownChars < line.length ? "…" : ""}`,
    marks: marks
      .filter(([start]) => start >= from && start < from + shownChars)
      .map(([start, end]): readonly [number, number] => [start + shift, Math.min(end, from + shownChars) + shift])
  }
}

/** Returns the line of a text around an offset, without blanks around it. */
const lineAround = (text: string, at: number): string => {
  const brk = text.indexOf("\n", at)
  return text.slice(text.lastIndexOf("\n", at) + 1, brk < 0 ? text.length : brk).trim()
}

const maxMarks = 20

/** Returns where the words are in a line, and how many of them are. */
const marksIn = (line: string, words: ReadonlyArray<RegExp>) => {
  const found = words.map((word) => {
    word.lastIndex = 0
    return [...line.matchAll(word)].slice(0, maxMarks)
  })
  return {
    present: found.filter(({ length }) => length > 0).length,
    marks: found
      .flat()
      .map((one): readonly [number, number] => [one.index, one.index + one[0].length])
      .sort(([a], [b]) => a - b)
  }
}

/** Returns a match when all words are in the texts. Of the lines where a word is first, the one with most words is shown. */
const matchWords = (texts: ReadonlyArray<string>, words: ReadonlyArray<RegExp>): Match | undefined => {
  if (words.length === 0) return undefined
  const text = texts.join("\n")
  const places: Array<number> = []
  for (const word of words) {
    word.lastIndex = 0
    const found = word.exec(text)
    if (found === null) return undefined
    places.push(found.index)
  }
  let best: { readonly line: string; readonly marks: ReadonlyArray<readonly [number, number]> } | undefined
  let maxPresent = 0
  for (const place of places) {
    const line = lineAround(text, place)
    const { marks, present } = marksIn(line, words)
    if (present > maxPresent) {
      maxPresent = present
      best = { line, marks }
    }
  }
  return best === undefined ? undefined : excerptOf(best.line, best.marks)
}

/** Finds the first match in the texts of a record. */
export type SessionMatcher = (texts: ReadonlyArray<string>) => SlicedWork<Match | undefined>

/** Makes the matcher of a query, for one search at a time. */
export const sessionMatcher = (query: SessionQuery): SessionMatcher => {
  // oxlint-disable-next-line require-yield -- words are looked for at once
  if (query._tag === "Words")
    return function* (texts) {
      return matchWords(texts, query.words)
    }
  const matcher = new PatternMatcher(query.pattern)
  return function* (texts) {
    for (const text of texts) {
      const line = yield* matcher.line(text)
      if (line === undefined) continue
      const end = yield* lineEnd(text, line.from)
      const span = (yield* matcher.span(text, line.from, end)) ?? { start: line.start, end: line.start }
      return excerptOf(text.slice(line.start, end), [[span.start - line.start, span.end - line.start]])
    }
    return undefined
  }
}

// --- the texts of records ------------------------------------------------------------------------------------------------

/** Keys whose values are names, times, bytes or repetitions of what stands elsewhere in the record. */
const notSearched = new Set(
  (
    "uuid parentUuid logicalParentUuid sessionId session_id session parentId promptId requestId messageId messageID leafUuid id call_id callId callID " +
    "tool_use_id toolCallId toolUseID parentToolUseID timestamp at time_created time_updated type role kind version userType gitBranch cwd model " +
    "signature thoughtSignature encrypted_content usage toolUseResult snapshot stop_reason entrypoint slug agentId handles tokens _tag spilled " +
    "textSignature thinkingSignature checkpoint projectHash mimeType media_type hookInfos resultDisplay turn_id"
  ).split(" ")
)

const isData = (text: string): boolean => text.length > 2_000 && /^[A-Za-z0-9+/=_-]{2000}/.test(text)

/** Keys below which a tool's own names begin. */
const free = new Set(["input", "args", "arguments", "response", "output"])

const collect = (value: unknown, texts: Array<string>, depth: number, isFree = false): void => {
  if (typeof value === "string") {
    if (value.length > 1 && !isData(value)) texts.push(value)
  } else if (Array.isArray(value)) {
    if (depth > 0) for (const item of value) collect(item, texts, depth - 1, isFree)
  } else if (isJson(value) && depth > 0) {
    for (const key of Object.keys(value)) {
      if (isFree || !notSearched.has(key)) collect(value[key], texts, depth - 1, isFree || free.has(key))
    }
  }
}

const maxTextDepth = 40

/** Returns the texts of a record that a search looks through: what was said, called and answered, in order. */
export const searchedTexts = (record: unknown): ReadonlyArray<string> => {
  const texts: Array<string> = []
  if (!isJson(record)) return texts
  // Reports of hooks and running commands repeat what the messages hold.
  if (record.type === "progress") {
    const { data } = record
    if (isJson(data) && isJson(data.message)) collect(data.message, texts, maxTextDepth)
    return texts
  }
  if (record.type === "file-history-snapshot") return texts
  collect(record, texts, maxTextDepth)
  return texts
}

/** Who speaks in a record of another kind or role. */
const speakers: ReadonlyMap<string, string> = new Map([
  ["assistant", "model"],
  ["gemini", "model"],
  ["function_call", "model"],
  ["custom_tool_call", "model"],
  ["function_call_output", "tool"],
  ["custom_tool_call_output", "tool"],
  ["attachment", "program"],
  ["custom", "program"],
  ["custom_message", "program"]
])

/** Whether a program or another agent wrote a message in the user's role. */
const isByProgram = ({ isCompactSummary, isMeta }: Json, content: unknown): boolean =>
  isMeta === true ||
  isCompactSummary === true ||
  authorOf(
    [content]
      .flat()
      .flatMap((block: unknown) => (isJson(block) ? textAt(block, "text") : block) ?? [])
      .flatMap((text) => (typeof text === "string" ? [{ text }] : []))
  ) === "program"

/** Returns who said what a record holds, in the words of its agent: a role, a kind of record. */
export const speakerOf = (record: unknown): string => {
  if (!isJson(record)) return "record"
  const sent = record.type === "attachment" ? decodeClaude(record) : undefined
  if (sent?._tag === "Sent") return (sent.isProgram ?? isByProgram({}, sent.prompt)) ? "program" : "user"
  const { data } = record
  const payload = isJson(data) && isJson(data.message) ? (data.message.message ?? data.message) : data
  const inner = [record.message, record.payload, record.entry, record.answer, payload, record].filter(isJson)
  for (const one of inner) {
    const content = isJson(one.content) ? one.content : one
    const role = textAt(content, "role")
    if (role !== undefined) {
      const [first] = Array.isArray(one.content) ? one.content : Array.isArray(content.parts) ? content.parts : []
      const isResult =
        isJson(first) && (first.type === "tool_result" || "functionResponse" in first || first.type === "toolResult")
      if (isResult || role === "toolResult") return "tool"
      return role === "user" && isByProgram(record, content.parts ?? content.content)
        ? "program"
        : (speakers.get(role) ?? role)
    }
  }
  for (const one of inner) {
    const type = textAt(one, "type") ?? textAt(one, "_tag")
    if (type === undefined || type === "response_item") continue
    return type === "user" && isByProgram(record, one.content) ? "program" : (speakers.get(type) ?? type)
  }
  return "record"
}

/** Returns who said what was found in a record: a program can write beside the user's words. */
export const speakerOfMatch = (record: unknown, { marks, text }: Match): string => {
  const speaker = speakerOf(record)
  // What an attachment says of its author is all that is known.
  if (speaker !== "user" || (isJson(record) && record.type === "attachment")) return speaker
  const found = marks.map(([start, end]) => text.slice(start, end))
  const isTyped = (one: string): boolean => {
    const typed = typedText(one)
    return found.every((words) => typed.includes(words))
  }
  return searchedTexts(record).some(isTyped) ? speaker : "program"
}
