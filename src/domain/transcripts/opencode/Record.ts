import { messageMedia } from "../../content/MediaBlocks.ts"
import { parsedOrUndefined } from "../../text/JsonText.ts"
import type { Usage } from "../../tokens/Tokens.ts"
import { answerPiece, callPiece, type Piece, textPiece, thoughtPiece } from "../ExactParts.ts"
import { instant, isJson, type Json, textAt } from "../JsonRecord.ts"
import { recordProblem, type RecordProblem } from "../Problem.ts"
import { opencodeUsage } from "../RecordUsage.ts"

/**
 * Decodes what opencode records: a row of its database (`kind` is the table: session, message or part), or an element of the document
 * that `opencode export` writes. The conversation and the facts of a session are folds over these records.
 */

/** A part of a message. */
export type OpencodePart =
  | {
      readonly _tag: "Said"
      readonly kind: "text" | "reasoning" | "file" | "subtask"
      readonly piece: Piece
      /** Whether opencode leaves this text of the user out of its requests. */
      readonly isIgnored: boolean
      /** Whose text it is in a message of the user. A file belongs to the text before it. */
      readonly by: "user" | "program" | undefined
    }
  /** A call with its result and the files of that; without them, it never ended. */
  | { readonly _tag: "Call"; readonly call: Piece; readonly answers: ReadonlyArray<Piece> }
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

/** The database holds values; there is no other spelling of them to keep. */
const noText = () => undefined

type Said = Extract<OpencodePart, { readonly _tag: "Said" }>

const saidOf = (kind: Said["kind"], piece: Piece, by?: Said["by"], isIgnored = false): OpencodePart => ({
  _tag: "Said",
  kind,
  piece,
  isIgnored,
  by
})

/** A file: its bytes, or its name where it lies elsewhere. */
const fileOf = (part: Json): Piece => {
  const media = messageMedia({ ...part, type: "file" })
  return media?.inlineData === undefined
    ? textPiece(`[file ${textAt(part, "filename") ?? textAt(part, "url") ?? ""}]`, noText)
    : { part: media, source: undefined }
}

const callOf = (part: Json, state: Json): OpencodePart => {
  const [id, name] = [textAt(part, "callID"), textAt(part, "tool")]
  const call = callPiece({ id, name: name ?? "unknown", args: state.input }, noText)
  // The exit code of a command stands beside its output alone.
  const exit = isJson(state.metadata) ? state.metadata.exit : undefined
  const failed = state.status === "error" || (typeof exit === "number" && exit !== 0)
  const content = textAt(state, state.status === "error" ? "error" : "output") ?? ""
  const files: ReadonlyArray<unknown> = Array.isArray(state.attachments) ? state.attachments : []
  const hasEnded = state.status === "error" || state.status === "completed"
  return {
    _tag: "Call",
    call,
    answers: [
      ...(hasEnded ? [answerPiece({ id, name, failed, content }, noText)] : []),
      ...files.filter(isJson).map(fileOf)
    ]
  }
}

/** Decodes a part of a message. */
export const decodePart = (part: Json): OpencodePart => {
  const { state, text, type } = part
  if (type === "text" && typeof text === "string") {
    return saidOf(type, textPiece(text, noText), part.synthetic === true ? "program" : "user", part.ignored === true)
  }
  if (type === "reasoning" && typeof text === "string") return saidOf(type, thoughtPiece(text, undefined, noText))
  if (type === "file") return saidOf(type, fileOf(part))
  if (type === "subtask") return saidOf(type, textPiece(textAt(part, "prompt") ?? "", noText))
  if (type === "tool" && isJson(state)) return callOf(part, state)
  if (type !== "compaction") return { _tag: "Other", kind: `part: ${String(type)}` }
  return {
    _tag: "Compaction",
    trigger: part.auto === false ? "manual" : "auto",
    firstKept: textAt(part, "tail_start_id")
  }
}

/** Decodes the description of a session. */
export const decodeOpencodeSession = (session: Json): OpencodeRecord & { readonly _tag: "Session" } => {
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

const messageOf = (
  id: string,
  at: unknown,
  data: Json,
  parts: unknown
): OpencodeRecord & { readonly _tag: "Message" } => ({
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

const broken = (path: string, detail: string): OpencodeRecord & { readonly _tag: "Broken" } => ({
  _tag: "Broken",
  problem: recordProblem(path, detail)
})

/** Decodes a message, with its parts, of the document that `opencode export` writes. */
export const decodeOpencodeMessage = ({
  info,
  parts
}: Json): OpencodeRecord & { readonly _tag: "Message" | "Broken" } => {
  if (!isJson(info)) return broken("info.id", "expected a text, the id of the message")
  const id = textAt(info, "id")
  const time = isJson(info.time) ? info.time : {}
  return id === undefined
    ? broken("info.id", "expected a text, the id of the message")
    : messageOf(id, time.created, info, parts)
}

/** Decodes a row, or an element of a document: where it stands there is unknown, so one without a role and parts is the session's. */
export const decodeOpencode = (record: Json): OpencodeRecord => {
  const { data, info, kind } = record
  const id = textAt(record, "id")
  if (isJson(info)) {
    return "role" in info || record.parts !== undefined ? decodeOpencodeMessage(record) : decodeOpencodeSession(info)
  }
  if (kind === "session") return decodeOpencodeSession(record)
  if (kind !== "message" && kind !== "part") return { _tag: "Other", kind: `row: ${String(kind)}` }
  if (id === undefined || !isJson(data)) return broken("data", "expected the JSON object of a message or part")
  return kind === "part"
    ? { _tag: "Part", message: textAt(record, "message_id") ?? "", data }
    : messageOf(id, record.time_created, data, undefined)
}
