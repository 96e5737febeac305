import { Schema } from "effect"
import { isCall, isResponse, isText, isThought, needsSource, type Part, PartShape, plainText } from "../Content.ts"
import type { Author } from "../Conversation.ts"
import { arraySlices, sliceAt, type SourceText } from "../Source.ts"
import type { Usage } from "../Tokens.ts"
import {
  answerPiece,
  callPiece,
  contextMarks,
  exactPieces,
  isJson,
  type Json,
  locate,
  type Locator,
  type Piece,
  snapshotLook,
  type SnapshotLook,
  textAt,
  textPiece,
  thoughtPiece,
  timeAt,
  withoutNote
} from "./Contents.ts"
import { markedAuthor, readMarks } from "./Marks.ts"

/**
 * What one message of a Gemini CLI session says (spec 11). A message of the model holds its tool calls with their results,
 * so it is one or two messages of ours.
 */

/**
 * Who wrote a message. "context": the environment if the user has said nothing before it, else a program. A look of a
 * snapshot: its place decides whether it is a summary or the user's own words.
 */
type Whose = Author | "context" | Exclude<SnapshotLook, undefined> | undefined

/** What a record gives the conversation. */
type Gives =
  | {
      readonly _tag: "User"
      readonly whose: Whose
      readonly pieces: ReadonlyArray<Piece>
      /** Written by us with its exact parts: all of them count, whatever they look like. */
      readonly exact: boolean
    }
  | {
      readonly _tag: "Gemini"
      readonly whose: Author | undefined
      readonly pieces: ReadonlyArray<Piece>
      /** The results of its calls, and when the first of them came. */
      readonly answers: ReadonlyArray<Piece>
      readonly answeredAt: number | undefined
      /** Ids of all its calls. */
      readonly calls: ReadonlyArray<string>
      /** Those to which we wrote a result because Gemini CLI needs one: they never got their own. */
      readonly owed: ReadonlyArray<string>
      readonly model: string | undefined
      readonly usage: Usage | undefined
    }
  | { readonly _tag: "Nothing"; readonly kind: string }

/** A message record. */
export interface Said {
  readonly id: string | undefined
  readonly line: number
  readonly at: number | undefined
  readonly gives: Gives
  /** In a checkpoint of ours: it was there before the checkpoint and stays. */
  readonly stays: boolean
}

const isPart = Schema.is(PartShape)

/** Parts in wire shape, or texts; `slice` is the exact text of one. A text: what is wrong. */
const wirePieces = (
  list: ReadonlyArray<unknown>,
  slice: (index: number) => SourceText | undefined,
  place: string
): ReadonlyArray<Piece> | string => {
  const pieces: Array<Piece> = []
  for (const [index, item] of list.entries()) {
    if (typeof item === "string") pieces.push(textPiece(item, () => slice(index)))
    else if (isPart(item)) {
      const own = slice(index)
      pieces.push({ part: item, source: own !== undefined && needsSource(item, own) ? own : undefined })
    } else return `${place}[${index}]: expected a text or a part (an object with text, functionCall, inlineData, …)`
  }
  return pieces
}

/** Exact texts of the elements of a list, found when the first of them is asked for. */
const slicesIn = (list: () => SourceText | undefined) => {
  let slices: ReadonlyArray<SourceText> | undefined
  return (index: number): SourceText | undefined => {
    slices ??= arraySlices(list() ?? "")
    return slices[index]
  }
}

/** Where the exact text of a value of the record is. */
type At = Locator["at"]

const readContent = ({ content }: Json, at: At): ReadonlyArray<Piece> | string => {
  const whole = at(["content"])
  if (typeof content === "string") return [textPiece(content, whole)]
  if (Array.isArray(content)) return wirePieces(content, slicesIn(whole), "content")
  return isJson(content) ? wirePieces([content], whole, "content") : "content: expected a text or a list of parts"
}

/** The words of a message as Gemini CLI weighs them: anything that is no text counts as something. */
const wordsOf = (pieces: ReadonlyArray<Piece>): string =>
  pieces
    .map(({ part }) => (isText(part) ? part.text : "[part]"))
    .join("")
    .trim()

/** Why Gemini CLI takes a message of the person for no part of the conversation, if it does (spec 11). */
export const ignored = (pieces: ReadonlyArray<Piece>): string | undefined => {
  const words = wordsOf(pieces)
  if (words === "") return "blank message"
  return words.startsWith("/") || words.startsWith("?") ? "command" : undefined
}

const whoseOf = (pieces: ReadonlyArray<Piece>): Whose => {
  if (!pieces.some(({ part }) => isText(part))) return undefined
  const words = plainText({ role: "user", parts: pieces.map(({ part }) => part) }).trim()
  if (contextMarks.some((mark) => words.startsWith(mark))) return "context"
  // A prompt may follow in the same message, and that is the person's.
  if (words.startsWith("<hook_context>") && words.endsWith("</hook_context>")) return "program"
  return snapshotLook(words)
}

const readUser = (record: Json, text: string, at: At): Gives | string => {
  const exact = exactPieces(record, text, "parts")
  if (typeof exact === "string") return exact
  const native = readContent(record, at)
  if (typeof native === "string") return native
  const kind = exact === undefined ? ignored(native) : undefined
  if (kind !== undefined) return { _tag: "Nothing", kind }
  const marks = readMarks(record)
  const said = marks.author === undefined ? withoutNote(native) : { author: undefined, pieces: native }
  return {
    _tag: "User",
    whose: marks.author === undefined ? (said.author ?? whoseOf(native)) : markedAuthor(marks, undefined),
    pieces: exact ?? said.pieces,
    exact: exact !== undefined
  }
}

/** As Gemini CLI gives them to the model again. */
const thoughtText = (thought: Json): string => {
  const subject = textAt(thought, "subject") ?? ""
  const description = textAt(thought, "description") ?? ""
  if (subject === "") return description
  return description === "" ? `**${subject}**` : `**${subject}** ${description}`
}

const readThoughts = (record: Json): ReadonlyArray<Piece> | string => {
  const { thoughts } = record
  if (thoughts === undefined || thoughts === null) return []
  if (!Array.isArray(thoughts)) return "thoughts: expected a list of thoughts"
  const pieces: Array<Piece> = []
  for (const [index, thought] of thoughts.entries()) {
    if (!isJson(thought)) return `thoughts[${index}]: expected a thought, an object with subject and description`
    pieces.push(thoughtPiece(thoughtText(thought), undefined, () => undefined))
  }
  return pieces
}

/** A tool call of a record, and what it gave. */
interface Called {
  readonly id: string | undefined
  readonly piece: Piece
  readonly results: ReadonlyArray<Piece>
  readonly owed: boolean
  readonly at: number | undefined
}

const hasResponse = (value: unknown): boolean => isJson(value) && value.functionResponse !== undefined

/** The one text of a result in a list of its own. */
const onlyText = (
  list: ReadonlyArray<unknown>
): { readonly text: string; readonly path: Array<string> } | undefined => {
  const [only] = list
  if (list.length !== 1) return undefined
  if (typeof only === "string") return { text: only, path: ["0"] }
  return isJson(only) && typeof only.text === "string" && Object.keys(only).length === 1
    ? { text: only.text, path: ["0", "text"] }
    : undefined
}

/**
 * What a call gave: parts with the response as it was sent, or a text or other JSON of which we make one (spec 11).
 */
const readResult = (call: Json, slice: () => SourceText | undefined): ReadonlyArray<Piece> | string => {
  const { result, status } = call
  if (result === undefined || result === null) return []
  const at = (path: ReadonlyArray<string>) => () => {
    const own = slice()
    return own === undefined ? undefined : sliceAt(own, path)
  }
  const failed = status === "error" || status === "cancelled"
  const made = (content: unknown, path: ReadonlyArray<string>) => [
    answerPiece({ id: textAt(call, "id"), name: textAt(call, "name"), failed, content }, at(["result", ...path]))
  ]
  if (!Array.isArray(result)) {
    return hasResponse(result) ? wirePieces([result], at(["result"]), "result") : made(result, [])
  }
  if (result.length === 0) return []
  if (result.some(hasResponse)) return wirePieces(result, slicesIn(at(["result"])), "result")
  const only = onlyText(result)
  return only === undefined ? made(result, []) : made(only.text, only.path)
}

const readCalls = ({ toolCalls }: Json, at: At): ReadonlyArray<Called> | string => {
  if (toolCalls === undefined || toolCalls === null) return []
  if (!Array.isArray(toolCalls)) return "toolCalls: expected a list of tool calls"
  const slices = slicesIn(at(["toolCalls"]))
  const calls: Array<Called> = []
  for (const [index, call] of toolCalls.entries()) {
    const place = `toolCalls[${index}]`
    if (!isJson(call)) return `${place}: expected a tool call, an object with id, name and args`
    if (typeof call.name !== "string") return `${place}.name: expected a text, the name of the tool`
    const slice = () => slices(index)
    const owed = readMarks(call).owed === true
    const results = owed ? [] : readResult(call, slice)
    if (typeof results === "string") return `${place}.${results}`
    const id = textAt(call, "id")
    const piece = callPiece({ id, name: call.name, args: call.args }, () => {
      const own = slice()
      return own === undefined ? undefined : sliceAt(own, ["args"])
    })
    calls.push({ id, piece, results, owed, at: timeAt(call) })
  }
  return calls
}

const json = (part: Part): string => JSON.stringify(part)

/** By what the same call is known again. */
const callKey = ({ functionCall: call }: Part): string =>
  JSON.stringify(call?.id === undefined ? [call?.name, call?.args] : call.id)

/** The calls that the content of the message does not hold yet: newer versions write them in both places (spec 11). */
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
 * The results of all calls. Newer versions write all parts of the answering message into the result of each of its calls:
 * what another call has given already is left out.
 */
const answersOf = (calls: ReadonlyArray<Called>): ReadonlyArray<Piece> => {
  const by = new Map<string, string | undefined>()
  return calls.flatMap(({ id, results }) =>
    results.filter(({ part }) => {
      const key = json(part)
      const named = !isResponse(part) || part.functionResponse.id !== undefined
      if (named && by.has(key) && by.get(key) !== id) return false
      by.set(key, id)
      return true
    })
  )
}

/** A count; undefined when the value is none. */
export const natural = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined

const usageOf = ({ tokens }: Json): Usage | undefined => {
  if (!isJson(tokens)) return undefined
  const prompt = natural(tokens.input)
  const answer = natural(tokens.output)
  return prompt === undefined || answer === undefined
    ? undefined
    : { prompt, answer, thoughts: natural(tokens.thoughts) ?? 0, cached: natural(tokens.cached) ?? 0 }
}

const readGemini = (record: Json, text: string, at: At): Gives | string => {
  const exact = exactPieces(record, text, "parts")
  const exactAnswers = exactPieces(record, text, "answers")
  const nothing = record.content === undefined || record.content === null || record.content === ""
  const content = nothing ? [] : readContent(record, at)
  const thoughts = readThoughts(record)
  const calls = readCalls(record, at)
  if (typeof exact === "string") return exact
  if (typeof exactAnswers === "string") return exactAnswers
  if (typeof content === "string") return content
  if (typeof thoughts === "string") return thoughts
  if (typeof calls === "string") return calls
  // Where the content holds the thoughts themselves, the list only repeats them.
  const first = content.some(({ part }) => isThought(part)) ? [] : thoughts
  const pieces = exact ?? [...first, ...content, ...missing(content, calls)]
  const marks = readMarks(record)
  return {
    _tag: "Gemini",
    whose: markedAuthor(marks, undefined),
    pieces,
    answers: exactAnswers ?? answersOf(calls),
    answeredAt: calls.find(({ results }) => results.length > 0)?.at,
    calls: [
      ...calls.flatMap(({ id }) => id ?? []),
      ...pieces.flatMap(({ part }) => (isCall(part) ? (part.functionCall.id ?? []) : []))
    ],
    owed: calls.flatMap(({ id, owed }) => (owed && id !== undefined ? [id] : [])),
    model: textAt(record, "model"),
    usage: marks.usage ?? usageOf(record)
  }
}

const readGives = (record: Json, text: string): Gives | string => {
  const { at } = locate(record, text, [])
  switch (record.type) {
    case "user":
      return readUser(record, text, at)
    case "gemini":
      return readGemini(record, text, at)
    case "info":
    case "error":
    case "warning":
      return { _tag: "Nothing", kind: record.type }
    default:
      return typeof record.type === "string"
        ? { _tag: "Nothing", kind: `message: ${record.type}` }
        : "type: expected user, gemini, info, error or warning"
  }
}

/** Reads a message record, of which `text` is the JSON. A text: what is wrong, and where in the record. */
export const readMessage = (record: unknown, text: string, line: number): Said | string => {
  if (!isJson(record)) return "expected a message, an object with id, type and content"
  const gives = readGives(record, text)
  if (typeof gives === "string") return gives
  return { id: textAt(record, "id"), line, at: timeAt(record), gives, stays: readMarks(record).again !== undefined }
}
