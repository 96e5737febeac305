import type { Part } from "../../content/Content.ts"
import { messageMedia } from "../../content/MediaBlocks.ts"
import { parsedOrUndefined } from "../../text/JsonText.ts"
import type { Usage } from "../../tokens/Tokens.ts"
import type { Answer } from "../ExactParts.ts"
import { instant, isJson, type Json, textAt } from "../JsonRecord.ts"
import { recordProblem, type RecordProblem } from "../Problem.ts"
import { opencodeUsage } from "../RecordUsage.ts"

/**
 * Decodes what opencode records: a row of its database (`kind` is the table: session, message or part), or an element of the document
 * that `opencode export` writes. The conversation and the facts of a session are folds over these records.
 */

/** A part of a message. */
export type OpencodePart =
  | { readonly _tag: "Text"; readonly text: string; readonly isTyped: boolean }
  | { readonly _tag: "Thought"; readonly text: string }
  | { readonly _tag: "Media"; readonly part: Part }
  | {
      readonly _tag: "Call"
      readonly id: string | undefined
      readonly name: string | undefined
      readonly args: unknown
      /** Undefined for a call that never ended. */
      readonly result: Answer | undefined
      readonly media: ReadonlyArray<Part>
    }
  /** The user asks for a compaction. */
  | { readonly _tag: "Compaction"; readonly trigger: "manual" | "auto"; readonly firstKept: string | undefined }
  | { readonly _tag: "Other"; readonly kind: string }

/** A record of opencode. */
export type OpencodeRecord =
  | {
      readonly _tag: "Session"
      readonly id: string | undefined
      readonly folder: string | undefined
      readonly title: string | undefined
      readonly version: string | undefined
      /** The session whose agent started this one. */
      readonly parent: string | undefined
      /** The first message that the user took back. */
      readonly revertedFrom: string | undefined
    }
  | {
      readonly _tag: "Message"
      readonly id: string
      readonly at: number | undefined
      readonly role: unknown
      readonly model: string | undefined
      readonly usage: Usage | undefined
      /** The message that it answers. */
      readonly parent: string | undefined
      /** Whether it is a finished summary. */
      readonly isSummary: boolean
      /** Its parts, where they stand in the same record. */
      readonly parts: ReadonlyArray<Json>
    }
  | { readonly _tag: "Part"; readonly message: string; readonly data: Json }
  | { readonly _tag: "Other"; readonly kind: string }
  | { readonly _tag: "Broken"; readonly problem: RecordProblem }

/** Parts and rows that this program knows and does not read. A text is one that opencode ignores, too. */
export const ignoredKinds: ReadonlySet<string> = new Set(
  ["agent", "compaction", "patch", "retry", "snapshot", "step-finish", "step-start", "text"].map(
    (kind) => `part: ${kind}`
  )
)

/** A file: its bytes, or its name where it lies elsewhere. */
const fileOf = (part: Json): Part => {
  const media = messageMedia({ ...part, type: "file" })
  return media?.inlineData === undefined
    ? { text: `[file ${textAt(part, "filename") ?? textAt(part, "url") ?? ""}]` }
    : media
}

/** The result of a tool; undefined for a call that never ended. */
const resultOf = (part: Json, state: Json): Answer | undefined => {
  const about = { id: textAt(part, "callID"), name: textAt(part, "tool") }
  if (state.status === "error") return { ...about, failed: true, content: textAt(state, "error") ?? "" }
  if (state.status !== "completed") return undefined
  // The exit code of a command stands beside its output alone.
  const exit = isJson(state.metadata) ? state.metadata.exit : undefined
  return { ...about, failed: typeof exit === "number" && exit !== 0, content: textAt(state, "output") ?? "" }
}

/** Decodes a part of a message. */
export const decodePart = (part: Json): OpencodePart => {
  const { state, text, type } = part
  if (type === "text" && typeof text === "string" && part.ignored !== true) {
    return { _tag: "Text", text, isTyped: part.synthetic !== true }
  }
  if (type === "reasoning" && typeof text === "string") return { _tag: "Thought", text }
  if (type === "file") return { _tag: "Media", part: fileOf(part) }
  if (type === "subtask") return { _tag: "Media", part: { text: textAt(part, "prompt") ?? "" } }
  if (type === "tool" && isJson(state)) {
    const files: ReadonlyArray<unknown> = Array.isArray(state.attachments) ? state.attachments : []
    return {
      _tag: "Call",
      id: textAt(part, "callID"),
      name: textAt(part, "tool"),
      args: state.input,
      result: resultOf(part, state),
      media: files.filter(isJson).map(fileOf)
    }
  }
  if (type !== "compaction") return { _tag: "Other", kind: `part: ${String(type)}` }
  return {
    _tag: "Compaction",
    trigger: part.auto === false ? "manual" : "auto",
    firstKept: textAt(part, "tail_start_id")
  }
}

const sessionOf = (session: Json): OpencodeRecord => {
  const stored = session.revert
  const revert: unknown = typeof stored === "string" ? parsedOrUndefined(stored) : stored
  return {
    _tag: "Session",
    id: textAt(session, "id"),
    folder: textAt(session, "directory"),
    title: textAt(session, "title"),
    version: textAt(session, "version"),
    parent: textAt(session, "parent_id") ?? textAt(session, "parentID"),
    revertedFrom: isJson(revert) ? textAt(revert, "messageID") : undefined
  }
}

const messageOf = (id: string, at: unknown, data: Json, parts: unknown): OpencodeRecord => ({
  _tag: "Message",
  id,
  at: instant(at),
  role: data.role,
  model: textAt(data, "modelID"),
  usage: opencodeUsage(data),
  parent: textAt(data, "parentID"),
  isSummary: data.summary === true && typeof data.finish === "string",
  parts: Array.isArray(parts) ? parts.filter(isJson) : []
})

const broken = (path: string, detail: string): OpencodeRecord => ({
  _tag: "Broken",
  problem: recordProblem(path, detail)
})

/** Decodes an element of the document that `opencode export` writes: the session's, or a message with its parts. */
const elementOf = (info: Json, parts: unknown): OpencodeRecord => {
  if (!("role" in info) && parts === undefined) return sessionOf(info)
  const id = textAt(info, "id")
  const time = isJson(info.time) ? info.time : {}
  return id === undefined
    ? broken("info.id", "expected a text, the id of the message")
    : messageOf(id, time.created, info, parts)
}

/** Decodes a row, or an element of a document. */
export const decodeOpencode = (record: Json): OpencodeRecord => {
  const { data, info, kind } = record
  const id = textAt(record, "id")
  if (isJson(info)) return elementOf(info, record.parts)
  if (kind === "session") return sessionOf(record)
  if (kind !== "message" && kind !== "part") return { _tag: "Other", kind: `row: ${String(kind)}` }
  if (id === undefined || !isJson(data)) return broken("data", "expected the JSON object of a message or part")
  return kind === "part"
    ? { _tag: "Part", message: textAt(record, "message_id") ?? "", data }
    : messageOf(id, record.time_created, data, undefined)
}
