/**
 * Decodes what opencode records: a row of its database (`kind` is the table: session, message or part), or an element of the document
 * that `opencode export` writes. The conversation and the facts of a session are folds over these records.
 */

import { messageMedia } from "../../content/MediaBlocks.ts"
import { isJson, type Json, jsonAt, jsonsAt } from "../../text/JsonObject.ts"
import { parsedOrUndefined } from "../../text/JsonText.ts"
import type { Usage } from "../../tokens/Tokens.ts"
import { answerPiece, callPiece, type Piece, textPiece, thoughtPiece } from "../ExactParts.ts"
import { instant, kindsIn, natural, textAt, usageOf as recordedUsage, withCost } from "../JsonRecord.ts"
import { broken } from "../Problem.ts"

/** Parts and rows that this program knows and does not read. A text is one that opencode ignores, too. */
export const ignoredKinds = kindsIn({
  "part: ": "agent compaction patch retry snapshot step-finish step-start text"
})

/** The database holds values; there is no other spelling of them to keep. */
const noText = () => undefined

/**
 * What was said. `isIgnored`: opencode leaves this text of the user out of its requests. `by`: whose text it is in a message of the
 * user; a file belongs to the text before it.
 */
const saidOf = <Kind extends "text" | "reasoning" | "file" | "subtask">(
  kind: Kind,
  piece: Piece,
  by?: "user" | "program",
  isIgnored = false
) => ({ _tag: "Said", kind, piece, isIgnored, by }) as const

/** A file: its bytes, or its name where it lies elsewhere. */
const fileOf = (part: Json): Piece => {
  const media = messageMedia({ ...part, type: "file" })
  return media?.inlineData === undefined
    ? textPiece(`[file ${textAt(part, "filename") ?? textAt(part, "url") ?? ""}]`, noText)
    : { part: media, source: undefined }
}

/** A call with its result and the files of that; without them, it never ended. */
const callOf = (part: Json) => {
  const { state } = part
  if (!isJson(state)) return undefined
  const [id, name] = [textAt(part, "callID"), textAt(part, "tool")]
  const call = callPiece({ id, name: name ?? "unknown", args: state.input }, noText)
  // The exit code of a command stands beside its output alone. One that was stopped has null.
  const { exit } = jsonAt(state, "metadata")
  const failed = state.status === "error" || (exit !== undefined && exit !== 0)
  const content = textAt(state, state.status === "error" ? "error" : "output") ?? ""
  const hasEnded = state.status === "error" || state.status === "completed"
  return {
    _tag: "Call",
    kind: "tool",
    id,
    call,
    /** Whether opencode shows this result to the model no more. */
    isCleared: isJson(state.time) && typeof state.time.compacted === "number",
    answers: [
      ...(hasEnded ? [answerPiece({ id, name, failed, content }, noText)] : []),
      ...jsonsAt(state, "attachments").map(fileOf)
    ]
  } as const
}

const textOf = (part: Json) =>
  typeof part.text === "string"
    ? saidOf("text", textPiece(part.text, noText), part.synthetic === true ? "program" : "user", part.ignored === true)
    : undefined

const reasoningOf = ({ text }: Json) =>
  typeof text === "string" ? saidOf("reasoning", thoughtPiece(text, undefined, noText)) : undefined

/** The user asks for a compaction. */
const compactionOf = (part: Json) =>
  ({
    _tag: "Compaction",
    kind: "compaction",
    trigger: part.auto === false ? "manual" : "auto",
    firstKept: textAt(part, "tail_start_id")
  }) as const

/** How each type of part is read. */
const partReaders = {
  text: textOf,
  reasoning: reasoningOf,
  tool: callOf,
  file: (part: Json) => saidOf("file", fileOf(part)),
  subtask: (part: Json) => saidOf("subtask", textPiece(textAt(part, "prompt") ?? "", noText)),
  compaction: compactionOf
}
type Part = ReturnType<(typeof partReaders)[keyof typeof partReaders]>
const partReaderOf = new Map<unknown, (part: Json) => Part>(Object.entries(partReaders))

/** The kinds of rows and parts that are read. */
export const readKinds: ReadonlyArray<string> = [
  ...["session", "message", "part"].map((kind) => `row: ${kind}`),
  ...Object.keys(partReaders).map((kind) => `part: ${kind}`)
]

/** Decodes a part of a message. */
export const decodePart = (part: Json) =>
  partReaderOf.get(part.type)?.(part) ?? ({ _tag: "Other", kind: String(part.type) } as const)

/** A part of a message. */
export type OpencodePart = ReturnType<typeof decodePart>

/** Decodes the description of a session. */
const decodeOpencodeSession = (session: Json) => {
  const stored = session.revert
  const revert: unknown = typeof stored === "string" ? parsedOrUndefined(stored) : stored
  return {
    _tag: "Session",
    id: textAt(session, "id"),
    folder: textAt(session, "directory"),
    title: textAt(session, "title"),
    version: textAt(session, "version"),
    /** The session whose agent started this one. */
    parent: textAt(session, "parent_id") ?? textAt(session, "parentID"),
    /** The first message that the user took back. */
    revertedFrom: isJson(revert) ? textAt(revert, "messageID") : undefined
  } as const
}

const usageOf = ({ cost, tokens }: Json): Usage | undefined => {
  if (!isJson(tokens)) return undefined
  const cache = jsonAt(tokens, "cache")
  const thoughts = natural(tokens.reasoning) ?? 0
  const usage = recordedUsage({
    input: tokens.input,
    cacheRead: cache.read,
    cacheWrite: cache.write,
    output: (natural(tokens.output) ?? 0) + thoughts
  })
  return withCost(usage === undefined ? undefined : { ...usage, answer: usage.answer - thoughts, thoughts }, cost)
}

const messageOf = (id: string, at: unknown, data: Json, parts: unknown) =>
  ({
    _tag: "Message",
    id,
    at: instant(at),
    role: data.role,
    model: textAt(data, "modelID"),
    usage: usageOf(data),
    /** The message that it answers. */
    parent: textAt(data, "parentID"),
    /** Whether it is a finished summary. */
    isSummary: data.summary === true && typeof data.finish === "string",
    /** Its parts, where they stand in the same record. */
    parts: Array.isArray(parts) ? parts.filter(isJson) : []
  }) as const

/** Decodes a message, with its parts, of the document that `opencode export` writes. */
const decodeOpencodeMessage = ({ info, parts }: Json) => {
  const id = isJson(info) ? textAt(info, "id") : undefined
  if (!isJson(info) || id === undefined) return broken("info.id", "expected a text, the id of the message")
  return messageOf(id, jsonAt(info, "time").created, info, parts)
}

/** Decodes a row, or an element of a document: where it stands there is unknown, so one without a role and parts is the session's. */
export const decodeOpencode = (record: Json) => {
  const { data, info, kind } = record
  const id = textAt(record, "id")
  if (isJson(info)) {
    return "role" in info || record.parts !== undefined ? decodeOpencodeMessage(record) : decodeOpencodeSession(info)
  }
  if (kind === "session") return decodeOpencodeSession(record)
  if (kind !== "message" && kind !== "part") return { _tag: "Other", kind: `row: ${String(kind)}` } as const
  if (id === undefined || !isJson(data)) return broken("data", "expected the JSON object of a message or part")
  return kind === "part"
    ? ({ _tag: "Part", message: textAt(record, "message_id") ?? "", data } as const)
    : messageOf(id, record.time_created, data, undefined)
}

/** A record of opencode. */
export type OpencodeRecord = ReturnType<typeof decodeOpencode>
