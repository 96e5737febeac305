/**
 * Reads one message record of a Gemini CLI session. A model record holds its tool calls with their results, so it gives one
 * or two messages; some in the user's role are Gemini CLI's own: its environment, and the snapshot of a compression.
 */

import { acknowledgement } from "../../compression/strategies/gemini/Conclusion.ts"
import { type Part, plainText, isCall, isPart, isResponse, isText, isThought } from "../../content/Content.ts"
import type { Author } from "../../conversation/Conversation.ts"
import { isJson, type Json } from "../../text/JsonObject.ts"
import { runtimeMark } from "../../text/RuntimeMark.ts"
import {
  answerPiece,
  callPiece,
  locate,
  type Locate,
  type Piece,
  textPiece,
  thoughtPiece,
  under,
  wirePiece
} from "../ExactParts.ts"
import { textAt, timeAt } from "../JsonRecord.ts"
import { isProblem, type Problem, problemUnder, recordProblem } from "../Problem.ts"
import { exactPieces, markedAuthor, readMarks, splitAuthorNote } from "../RecordMarks.ts"
import { authorOf } from "../voice/Voice.ts"
import { geminiEnvironments } from "../voice/VoiceForms.ts"
import { decodeGeminiMessage, type GeminiRecord } from "./Record.ts"

/** Whether a message in the user's role begins as the one in which Gemini CLI describes its environment. */
export const isEnvironment = (parts: ReadonlyArray<Part>): boolean => {
  const words = plainText({ role: "user", parts }).trimStart()
  return geminiEnvironments.some((mark) => words.startsWith(mark))
}

/** Returns the first folder that such a message names. */
export const folderIn = (parts: ReadonlyArray<Part>): string | undefined => {
  const [, first, only] = folders.exec(plainText({ role: "user", parts })) ?? []
  return (first ?? only)?.trim()
}
const folders =
  /(?:\*\*Workspace Directories:\*\*|working in the following directories:)\s*\n\s*- (.+)|working in the directory: (.+)/

const snapshotMark = "<state_snapshot>"

/**
 * The resemblance of a text to a snapshot: "marked" begins with the runtime's mark, "bare" is Gemini CLI's form (a
 * scratchpad may come first). A user can type either, so the look alone decides nothing: see `isSummary`.
 */
export type SnapshotLook = "marked" | "bare" | undefined

/** Returns how the beginning of a text looks. */
export const snapshotLook = (words: string): SnapshotLook => {
  if (!words.includes(snapshotMark)) return undefined
  if (words.startsWith(runtimeMark)) return "marked"
  return words.startsWith(snapshotMark) || words.startsWith("<scratchpad>") ? "bare" : undefined
}

/**
 * Whether a message in the user's role is the summary of a compression. Its place decides: a snapshot is the first message
 * in the user's role, and a bare one is followed by the fixed answer that Gemini CLI writes for the model.
 */
export const isSummary = (look: SnapshotLook, isFirst: boolean, answer: ReadonlyArray<Part> | undefined): boolean =>
  isFirst &&
  (look === "marked" || (look === "bare" && answer?.length === 1 && answer[0]?.text?.trim() === acknowledgement))

/**
 * The author of a message. "context": the environment if the user has written nothing before it, else a program. A snapshot
 * look: the place decides whether it is a summary or the user's own text.
 */
type Whose = Author | "context" | Exclude<SnapshotLook, undefined> | undefined

type Message = Extract<GeminiRecord, { readonly _tag: "Message" }>
type Note = Extract<GeminiRecord, { readonly _tag: "Note" }>

/** Reads parts in wire shape, or texts, of a list in which `at` locates them. */
const wirePieces = (list: ReadonlyArray<unknown>, at: Locate, place: string): ReadonlyArray<Piece> | Problem => {
  const pieces: Array<Piece> = []
  for (const [index, item] of list.entries()) {
    if (typeof item === "string") pieces.push(textPiece(item, at([index])))
    else if (isPart(item)) pieces.push(wirePiece(item, at([index])()))
    else
      return recordProblem(
        `${place}[${index}]`,
        "expected a text or a part (an object with text, functionCall, inlineData, …)"
      )
  }
  return pieces
}

/** Locates the only element of a list that the record writes without one. */
const alone =
  (at: Locate): Locate =>
  ([_, ...path]) =>
    at(path)

const readContent = ({ content }: Json, record: Locate): ReadonlyArray<Piece> | Problem => {
  const at = under(record, "content")
  if (typeof content === "string") return [textPiece(content, at([]))]
  if (Array.isArray(content)) return wirePieces(content, at, "content")
  return isJson(content)
    ? wirePieces([content], alone(at), "content")
    : recordProblem("content", "expected a text or a list of parts")
}

/** Returns the text of a message by Gemini CLI's rules, where a part that is not text counts as content. */
const wordsOf = (parts: ReadonlyArray<Part>): string =>
  parts
    .map((part) => (isText(part) ? part.text : "[part]"))
    .join("")
    .trim()

/** Returns why Gemini CLI leaves a user message out of the conversation; undefined when it does not. */
export const leadingJunkNote = (parts: ReadonlyArray<Part>): string | undefined => {
  const words = wordsOf(parts)
  if (words === "") return "blank message"
  return words.startsWith("/") || words.startsWith("?") ? "command" : undefined
}

const whoseOf = (pieces: ReadonlyArray<Piece>): Whose => {
  if (!pieces.some(({ part }) => isText(part))) return undefined
  const parts = pieces.map(({ part }) => part)
  if (isEnvironment(parts)) return "context"
  const look = snapshotLook(plainText({ role: "user", parts }).trim())
  return look ?? (authorOf(parts) === "program" ? "program" : undefined)
}

const nothing = (kind: string) => ({ _tag: "Nothing", kind }) as const

const readUser = (record: Json, text: string, at: Locate) => {
  const exact = exactPieces(record, text, "parts")
  if (isProblem(exact)) return exact
  const native = readContent(record, at)
  if (isProblem(native)) return native
  const kind = exact === undefined ? leadingJunkNote(native.map(({ part }) => part)) : undefined
  if (kind !== undefined) return nothing(kind)
  const marks = readMarks(record)
  const authored = marks.author === undefined ? splitAuthorNote(native) : { author: undefined, pieces: native }
  return {
    _tag: "User",
    whose: marks.author === undefined ? (authored.author ?? whoseOf(native)) : markedAuthor(marks, undefined),
    pieces: exact ?? authored.pieces,
    /** Written by this program with its exact parts, all of which count, whatever their form. */
    exact: exact !== undefined
  } as const
}

/** Returns a thought in the form in which Gemini CLI sends it back to the model. */
const thoughtText = (thought: Json): string => {
  const subject = textAt(thought, "subject") ?? ""
  const description = textAt(thought, "description") ?? ""
  if (subject === "") return description
  return description === "" ? `**${subject}**` : `**${subject}** ${description}`
}

const readThoughts = (record: Json): ReadonlyArray<Piece> | Problem => {
  const { thoughts } = record
  if (thoughts === undefined || thoughts === null) return []
  if (!Array.isArray(thoughts)) return recordProblem("thoughts", "expected a list of thoughts")
  const pieces: Array<Piece> = []
  for (const [index, thought] of thoughts.entries()) {
    if (!isJson(thought))
      return recordProblem(`thoughts[${index}]`, "expected a thought, an object with subject and description")
    pieces.push(thoughtPiece(thoughtText(thought), undefined, () => undefined))
  }
  return pieces
}

/** A tool call of a record, and its results. */
interface Called {
  readonly id: string | undefined
  readonly piece: Piece
  readonly results: ReadonlyArray<Piece>
  readonly owed: boolean
  readonly at: number | undefined
}

const hasResponse = (value: unknown): boolean => isJson(value) && value.functionResponse !== undefined

/** Returns the only text of a result that has its own list. */
const onlyText = (
  list: ReadonlyArray<unknown>
): { readonly text: string; readonly path: ReadonlyArray<string | number> } | undefined => {
  const [only] = list
  if (list.length !== 1) return undefined
  if (typeof only === "string") return { text: only, path: [0] }
  return isJson(only) && typeof only.text === "string" && Object.keys(only).length === 1
    ? { text: only.text, path: [0, "text"] }
    : undefined
}

/** Returns the result of a call: parts with the response as sent, or a response made from a text or other JSON. */
const readResult = (call: Json, of: Locate): ReadonlyArray<Piece> | Problem => {
  const { result, status } = call
  if (result === undefined || result === null) return []
  const at = under(of, "result")
  const failed = status === "error" || status === "cancelled"
  const made = (content: unknown, path: ReadonlyArray<string | number>) => [
    answerPiece({ id: textAt(call, "id"), name: textAt(call, "name"), failed, content }, at(path))
  ]
  if (!Array.isArray(result)) return hasResponse(result) ? wirePieces([result], alone(at), "result") : made(result, [])
  if (result.length === 0) return []
  if (result.some(hasResponse)) return wirePieces(result, at, "result")
  const only = onlyText(result)
  return only === undefined ? made(result, []) : made(only.text, only.path)
}

const readCalls = ({ toolCalls }: Json, at: Locate): ReadonlyArray<Called> | Problem => {
  if (toolCalls === undefined || toolCalls === null) return []
  if (!Array.isArray(toolCalls)) return recordProblem("toolCalls", "expected a list of tool calls")
  const calls: Array<Called> = []
  for (const [index, call] of toolCalls.entries()) {
    const place = `toolCalls[${index}]`
    if (!isJson(call)) return recordProblem(`${place}`, "expected a tool call, an object with id, name and args")
    if (typeof call.name !== "string") return recordProblem(`${place}.name`, "expected a text, the name of the tool")
    const own = under(at, "toolCalls", index)
    const owed = readMarks(call).owed === true
    const results = owed ? [] : readResult(call, own)
    if (isProblem(results)) return problemUnder(place, results)
    const id = textAt(call, "id")
    const piece = callPiece({ id, name: call.name, args: call.args }, own(["args"]))
    calls.push({ id, piece, results, owed, at: timeAt(call) })
  }
  return calls
}

/** The key by which a repeated call is recognized. */
const callKey = ({ functionCall: call }: Part): string =>
  JSON.stringify(call?.id === undefined ? [call?.name, call?.args] : call.id)

/** Returns the calls that the message's content lacks. Newer versions write calls in both places. */
const missing = (content: ReadonlyArray<Piece>, calls: ReadonlyArray<Called>): ReadonlyArray<Piece> => {
  const held = new Map<string, number>()
  for (const { part } of content) if (isCall(part)) held.set(callKey(part), (held.get(callKey(part)) ?? 0) + 1)
  return calls.flatMap(({ piece }) => {
    const left = held.get(callKey(piece.part)) ?? 0
    if (left === 0) return [piece]
    held.set(callKey(piece.part), left - 1)
    return []
  })
}

/**
 * Returns the results of all calls. Newer versions write all parts of the response message into the result of each call, so
 * parts that another call already gave are left out.
 */
const answersOf = (calls: ReadonlyArray<Called>): ReadonlyArray<Piece> => {
  const by = new Map<string, string | undefined>()
  return calls.flatMap(({ id, results }) =>
    results.filter(({ part }) => {
      const key = JSON.stringify(part)
      const hasId = !isResponse(part) || part.functionResponse.id !== undefined
      if (hasId && by.has(key) && by.get(key) !== id) return false
      by.set(key, id)
      return true
    })
  )
}

const readGemini = ({ model, usage }: Message, record: Json, text: string, at: Locate) => {
  const exact = exactPieces(record, text, "parts")
  const exactAnswers = exactPieces(record, text, "answers")
  const nothing = record.content === undefined || record.content === null || record.content === ""
  const content = nothing ? [] : readContent(record, at)
  const thoughts = readThoughts(record)
  const calls = readCalls(record, at)
  if (isProblem(exact)) return exact
  if (isProblem(exactAnswers)) return exactAnswers
  if (isProblem(content)) return content
  if (isProblem(thoughts)) return thoughts
  if (isProblem(calls)) return calls
  // When the content holds the thoughts, the list only repeats them.
  const first = content.some(({ part }) => isThought(part)) ? [] : thoughts
  const pieces = exact ?? [...first, ...content, ...missing(content, calls)]
  const marks = readMarks(record)
  return {
    _tag: "Gemini",
    whose: markedAuthor(marks, undefined),
    pieces,
    /** The results of its calls, and when the first of them came. */
    answers: exactAnswers ?? answersOf(calls),
    answeredAt: calls.find(({ results }) => results.length > 0)?.at,
    /** Ids of all its calls. */
    calls: [
      ...calls.flatMap(({ id }) => id ?? []),
      ...pieces.flatMap(({ part }) => (isCall(part) ? (part.functionCall.id ?? []) : []))
    ],
    /** Calls for which this program wrote a result because Gemini CLI needs one: they never got their own. */
    owed: calls.flatMap(({ id, owed }) => (owed && id !== undefined ? [id] : [])),
    model,
    usage: marks.usage ?? usage
  } as const
}

/** Reads a decoded message, or a note. `text` is the JSON of its record. */
export const messageOf = (decoded: Message | Note, record: Json, text: string, line: number) => {
  const at = locate(record, text)
  const gives =
    decoded._tag === "Note"
      ? nothing(decoded.kind)
      : decoded.role === "user"
        ? readUser(record, text, at)
        : readGemini(decoded, record, text, at)
  if (isProblem(gives)) return gives
  /** In a checkpoint that this program wrote: the message was there before and stays. */
  const stays = readMarks(record).again !== undefined
  return { id: decoded.id, line, at: decoded.at, gives, stays }
}

/** A message record, with what it adds to the conversation. */
export type MessageRecord = Exclude<ReturnType<typeof messageOf>, Problem>

/** Reads a message in a list of messages. `text` is its JSON. */
export const readMessage = (record: unknown, text: string, line: number): MessageRecord | Problem => {
  if (!isJson(record)) return recordProblem("", "expected a message, an object with id, type and content")
  const decoded = decodeGeminiMessage(record)
  return decoded._tag === "Broken" ? decoded.problem : messageOf(decoded, record, text, line)
}
