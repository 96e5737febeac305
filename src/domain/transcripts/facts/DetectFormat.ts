/** Detects the format of a file from its first lines. */

import { isJson, type Json } from "../../text/JsonObject.ts"
import { parsedOrUndefined } from "../../text/JsonText.ts"
import { decodeClaude, ignoredKinds } from "../claude/Record.ts"
import * as codex from "../codex/Record.ts"
import { decodeOpencode } from "../opencode/Record.ts"
import * as pi from "../pi/Record.ts"
import { isRecordList, recordsByLine } from "../RecordList.ts"
import type { SourceFormat } from "../Transcript.ts"

const piKinds = new Set([...pi.ignoredKinds, ...pi.readKinds])
const codexKinds = new Set([...codex.ignoredKinds, ...codex.readKinds, "response_item", "event_msg"])
/** Keys of Claude Code alone. Other programs have `type` and `sessionId`, too. */
const claudeKeys = ["parentUuid", "leafUuid", "isSidechain"]

const isCodex = (record: Json): boolean =>
  typeof record.type === "string"
    ? codexKinds.has(record.type) && isJson(record.payload)
    : typeof record.id === "string" && typeof record.timestamp === "string" && "instructions" in record

const isGemini = (record: Json): boolean => {
  if ("projectHash" in record && "sessionId" in record) return true
  if ("$set" in record || "$rewindTo" in record) return true
  return (
    typeof record.id === "string" &&
    (record.type === "gemini" || record.type === "user") &&
    "content" in record &&
    !("message" in record)
  )
}

/** Whether a record is one of Qwen Code, which has the keys of Claude Code around the messages of Gemini. */
const isQwen = ({ message, systemPayload }: Json): boolean =>
  systemPayload !== undefined || (isJson(message) && "parts" in message && !("content" in message))

/** Whether Claude Code writes records of this kind. A message has one. */
const isClaudeKind = (record: Json): boolean => {
  const { _tag, recordKind } = decodeClaude(record)
  return ignoredKinds.has(recordKind) || (_tag !== "Other" && _tag !== "Broken")
}

/** Records of other programs have kinds like `tag` and `progress`, too. */
const isOwnRecord = ({ message, type, uuid }: Json): boolean =>
  isJson(message) || uuid !== undefined || /-|^mode$/.test(String(type))

const isClaude = (record: Json): boolean =>
  typeof record.type === "string" &&
  !isQwen(record) &&
  (claudeKeys.some((key) => key in record) ||
    ("sessionId" in record && isOwnRecord(record) && isClaudeKind(record)) ||
    (record.type === "file-history-snapshot" && "snapshot" in record))

const isPi = (record: Json): boolean => {
  if (typeof record.type !== "string" || typeof record.timestamp !== "string") return false
  if (record.type === "session") return typeof record.id === "string"
  return piKinds.has(record.type) && (record.type !== "message" || isJson(record.message))
}

const isOpencode = (record: Json): boolean =>
  typeof record.kind === "string"
    ? decodeOpencode(record)._tag !== "Other" && typeof record.id === "string"
    : isJson(record.info) && Array.isArray(record.messages)

/** Returns the format of one record (a line, or a whole document); undefined when several are possible. */
export const formatOfRecord = (value: unknown): SourceFormat | undefined => {
  if (Array.isArray(value)) return "contents"
  if (!isJson(value)) return undefined
  if (typeof value._tag === "string") return "palimpsest"
  if (isOpencode(value)) return "opencode"
  if (isGemini(value)) return "gemini"
  if (isCodex(value)) return "codex"
  if (isClaude(value)) return "claude"
  if (isPi(value)) return "pi"
  return Array.isArray(value.history) || Array.isArray(value.contents) ? "contents" : undefined
}

/** Returns the keys of the object that begins `text`, as far as the text goes. */
const topKeys = (text: string): ReadonlyArray<string> => {
  const keys: Array<string> = []
  // A text that is never closed goes to the end, so that it is read once.
  const token = /"((?:[^"\\]|\\.?)*)(?:"(\s*:)?|$)|[[\]{}]/gs
  let depth = 0
  for (const [whole, inner, colon] of text.matchAll(token)) {
    if (whole === "{" || whole === "[") depth += 1
    else if (whole === "}" || whole === "]") depth -= 1
    else if (depth === 1 && colon !== undefined && inner !== undefined) keys.push(inner)
    if (depth === 0) break
  }
  return keys
}

/** Returns the format of an object with these first keys, for a text that ends before the object. */
const byKeys = (keys: ReadonlyArray<string>): SourceFormat | undefined => {
  const has = (key: string) => keys.includes(key)
  if (has("_tag")) return "palimpsest"
  if (has("projectHash")) return "gemini"
  if (has("info") && !has("payload")) return "opencode"
  if (has("history") || has("contents") || has("systemInstruction")) return "contents"
  if (has("payload") && has("type")) return "codex"
  if (claudeKeys.some(has) || (has("sessionId") && (has("message") || has("operation")))) return "claude"
  return has("type") && has("timestamp") && has("message") ? "pi" : undefined
}

/** Whether a list of objects that begins with these keys is another program's: messages with `content`, or an export of ChatGPT. */
const isForeignList = (keys: ReadonlyArray<string>): boolean =>
  keys.length > 0 && !keys.includes("parts") && (keys.includes("content") || !keys.includes("role"))

/** Agents that write records, one a line, of which other programs make a list. */
const listedFormats: ReadonlyArray<SourceFormat | undefined> = ["claude", "codex", "pi"]
/** Characters of a list that are looked at. */
const maxListChars = 65_536

/** Returns the format of a list of records; `keys` are those of the first, which may be longer than what is looked at. */
const listedFormat = (text: string, keys: ReadonlyArray<string>): SourceFormat | undefined => {
  const lines = recordsByLine(text.slice(0, maxListChars)).split("\n")
  const records = lines.flatMap((line) => (line === "" ? [] : [parsedOrUndefined(line)]))
  const first = byKeys(keys)
  if (first === "gemini" || (records[0] === undefined && listedFormats.includes(first))) return first
  return records.map(formatOfRecord).find((format) => listedFormats.includes(format))
}

/** An event of Pi's `--mode json`, which begins like a session. */
const piEvent = /^\{"type":"(?:agent|turn|message|tool_execution)_(?:start|update|end)"/m

/** Detects the format of a file that begins with `head`; undefined when it cannot be told. */
export const detectFormat = (head: string): SourceFormat | undefined => {
  const text = head.trimStart()
  if (text.startsWith("[")) {
    const keys = topKeys(text.slice(1))
    return listedFormat(text, keys) ?? (isForeignList(keys) ? undefined : "contents")
  }
  const lines = (isRecordList(text) ? recordsByLine(text) : text).split("\n")
  // What is longer than the text is not JSON, but its keys identify it.
  if (text.startsWith("{") && parsedOrUndefined(lines[0] ?? "") === undefined) {
    const found = byKeys(topKeys(text))
    if (found !== undefined) return found
  }
  let isForeign = false
  for (const line of lines) {
    const record = line.trimStart().startsWith("{") ? parsedOrUndefined(line) : undefined
    const found = formatOfRecord(record)
    // Other agents (Droid) write the records of Pi after a first record of their own.
    if (found !== undefined) return found === "pi" && (isForeign || piEvent.test(head)) ? undefined : found
    isForeign ||= isJson(record) && typeof record.type === "string"
  }
  return undefined
}

/**
 * Whether a Gemini CLI session that begins with `head` is one document and not records, one a line. The first record of the
 * latter form holds no messages and is short; it may be damaged.
 */
export const isGeminiDocument = (head: string): boolean => {
  const text = head.trimStart()
  const first = parsedOrUndefined(text.split("\n", 1)[0] ?? "")
  return isJson(first) ? "messages" in first : topKeys(text).includes("messages")
}

/** Whether a session of opencode that begins with `head` is rows, one a line, and not one document. */
export const isOpencodeRows = (head: string): boolean => {
  const first = parsedOrUndefined(head.trimStart().split("\n", 1)[0] ?? "")
  return isJson(first) && "kind" in first
}

const lfsPointer = "version https://git-lfs.github.com/spec/"

/** Says how to get the content of a file that begins with these bytes; undefined when they are its content. */
export const packedProblem = (head: Uint8Array): string | undefined => {
  const begins = (...magic: ReadonlyArray<number>) => magic.every((byte, index) => head[index] === byte)
  if (begins(0x1f, 0x8b)) return "is compressed with gzip; unpack it first: gunzip -k FILE"
  if (begins(0x28, 0xb5, 0x2f, 0xfd)) return "is compressed with Zstandard; unpack it first: unzstd FILE"
  if (begins(0x50, 0x4b, 0x03, 0x04)) return "is a ZIP archive; unpack it first: unzip FILE"
  if (begins(...Array.from(lfsPointer, (char) => char.charCodeAt(0))))
    return "is a pointer of Git LFS; fetch the file first: git lfs pull"
  return undefined
}
