import { Result, Schema, SchemaIssue } from "effect"
import { parsedOrUndefined } from "../JsonText.ts"
import { decode, encode } from "../Bytes.ts"
import {
  type Content,
  ContentShape,
  isText,
  needsSource,
  type Part,
  PartShape,
  payload,
  plainText
} from "../Content.ts"
import type { Author, Draft } from "../Conversation.ts"
import { foreignNote, foreignNotes } from "../Projection.ts"
import { runtimeMark } from "../RuntimeMark.ts"
import { arraySlices, sliceAt, type SourceText } from "../Source.ts"
import { acknowledgement } from "../strategies/Gemini.ts"
import type { Usage } from "../Tokens.ts"
import type { Work } from "../Work.ts"
import type { Problem, Step, Transcript } from "./Transcript.ts"

/**
 * Parts in the wire shape of the Gemini API: a whole JSON document of them, and the pieces from which the readers of other
 * formats build theirs, each with its exact JSON text where writing it again would give another (law 1).
 */

/** An object as `JSON.parse` gives it. */
export type Json = { readonly [key: string]: unknown }
/** Whether a value is an object: no list, and not null. */
export const isJson = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The text under a key; undefined when there is none or it is something else. */
export const textAt = (record: Json, key: string): string | undefined => {
  const value = record[key]
  return typeof value === "string" ? value : undefined
}

/** Milliseconds since 1970 of a record's `timestamp`, ISO text or number. */
export const timeAt = (record: Json): number | undefined => {
  const value = record.timestamp
  const time = typeof value === "string" ? Date.parse(value) : value
  return typeof time === "number" && Number.isFinite(time) ? time : undefined
}

/** A part, and the JSON text it was read from where it has to be kept. */
export interface Piece {
  readonly part: Part
  readonly source: SourceText | undefined
}

/** The exact JSON text of a value somewhere in a record; undefined where writing the value again gives the same text. */
export type Exact = () => SourceText | undefined

/** Whether no slice of the text can differ from writing its value again (escaped surrogates differ from raw bytes). */
const isCanonical = (value: unknown, text: string): boolean =>
  !text.includes("\\ud") && !text.includes("\\uD") && JSON.stringify(value) === text

/**
 * Finds exact texts in one record. `list` is where its blocks are; `under(index, key)` is a value of a block. Nothing is
 * compared or searched before it is asked for.
 */
export const locate = (value: unknown, text: string, list: ReadonlyArray<string>) => {
  let canonical: boolean | undefined
  let blocks: ReadonlyArray<SourceText> | undefined
  const at = (path: ReadonlyArray<string>): SourceText | undefined => {
    canonical ??= isCanonical(value, text)
    return canonical ? undefined : sliceAt(text, path)
  }
  const block = (index: number): SourceText | undefined => {
    blocks ??= arraySlices(at(list) ?? "")
    return blocks[index]
  }
  return {
    at:
      (path: ReadonlyArray<string>): Exact =>
      () =>
        at(path),
    under:
      (index: number, key: string): Exact =>
      () => {
        const slice = block(index)
        return slice === undefined ? undefined : sliceAt(slice, [key])
      }
  }
}
/** The exact texts of one record, found when they are asked for. */
export type Locator = ReturnType<typeof locate>

/** `build` wraps the exact inner text into the text of the whole part. */
const piece = (part: Part, exact: Exact, build: (inner: SourceText) => SourceText): Piece => {
  const inner = exact()
  if (inner === undefined) return { part, source: undefined }
  const slice = build(inner)
  return { part, source: needsSource(part, slice) ? slice : undefined }
}

/** The object with these members, in this order; members whose text is undefined are left out. */
const spliced = (members: ReadonlyArray<readonly [key: string, text: SourceText | undefined]>): SourceText =>
  `{${members.flatMap(([key, text]) => (text === undefined ? [] : [`"${key}":${text}`])).join(",")}}`

const json = (value: string | undefined): SourceText | undefined =>
  value === undefined ? undefined : JSON.stringify(value)

const withId = (id: string | undefined) => (id === undefined ? {} : { id })
const withName = (name: string | undefined) => (name === undefined ? {} : { name })
const signed = (thoughtSignature: string | undefined) => (thoughtSignature === undefined ? {} : { thoughtSignature })

/** A text; its exact spelling is kept where it is no well-formed text. */
export const textPiece = (text: string, exact: Exact): Piece =>
  text.isWellFormed()
    ? { part: { text }, source: undefined }
    : piece({ text }, exact, (inner) => spliced([["text", inner]]))

/** A thought, with the signature that its provider wants to see again. */
export const thoughtPiece = (text: string, signature: string | undefined, exact: Exact): Piece => {
  const part: Part = { text, thought: true, ...signed(signature) }
  return text.isWellFormed()
    ? { part, source: undefined }
    : piece(part, exact, (inner) =>
        spliced([
          ["text", inner],
          ["thought", "true"],
          ["thoughtSignature", json(signature)]
        ])
      )
}

/** A call; the exact JSON of its arguments is kept where writing them again would give another text. */
export const callPiece = (
  call: {
    readonly id: string | undefined
    readonly name: string
    readonly args: unknown
    readonly signature?: string | undefined
  },
  exact: Exact
): Piece =>
  piece(
    {
      functionCall: {
        ...withId(call.id),
        name: call.name,
        ...(call.args === undefined ? {} : { args: call.args })
      },
      ...signed(call.signature)
    },
    call.args === undefined ? () => undefined : exact,
    (inner) =>
      spliced([
        [
          "functionCall",
          spliced([
            ["id", json(call.id)],
            ["name", json(call.name)],
            ["args", inner]
          ])
        ],
        ["thoughtSignature", json(call.signature)]
      ])
  )

/** What a tool answered, as the other agent wrote it down: a text, or a list of blocks. */
export interface Answer {
  readonly id: string | undefined
  readonly name: string | undefined
  readonly failed: boolean
  readonly content: unknown
}

/** The one text of an answer: it is a text itself, has a single text block, or nothing. */
const answerText = (content: unknown): string | undefined => {
  if (content === undefined || content === null) return ""
  if (typeof content === "string") return content
  if (!Array.isArray(content) || content.length > 1) return undefined
  const only: unknown = content[0]
  if (only === undefined) return ""
  return isJson(only) && only.type === "text" && typeof only.text === "string" ? only.text : undefined
}

/** Whether writing an answer again might give another text than the one it was read from. */
export const needsExact = (content: unknown): boolean => answerText(content)?.isWellFormed() !== true

/**
 * A tool's answer: one text as `{output}` or, when the tool failed, `{error}`; several blocks (or media) as `{content}` or
 * `{error}` with the blocks as they were, because joining them would lose where one ends.
 */
export const answerPiece = (answer: Answer, exact: Exact): Piece => {
  const text = answerText(answer.content)
  const key = answer.failed ? "error" : text === undefined ? "content" : "output"
  const part: Part = {
    functionResponse: {
      ...withId(answer.id),
      ...withName(answer.name),
      response: { [key]: text ?? answer.content }
    }
  }
  if (!needsExact(answer.content)) return { part, source: undefined }
  return piece(part, exact, (inner) => {
    // The exact text is that of the list of blocks, also where its only block's text stands for it.
    const value = text === undefined || typeof answer.content === "string" ? inner : sliceAt(inner, [0, "text"])
    return spliced([
      [
        "functionResponse",
        spliced([
          ["id", json(answer.id)],
          ["name", json(answer.name)],
          ["response", spliced([[key, value]])]
        ])
      ]
    ])
  })
}

/** The message of some pieces, with everything its record says about it. */
export const draftOf = (
  role: Content["role"],
  pieces: ReadonlyArray<Piece>,
  about: {
    readonly at: number | undefined
    readonly author: Author | undefined
    readonly line: number
    readonly ids: ReadonlyArray<string>
    readonly model?: string | undefined
    readonly usage?: Usage | undefined
  }
): Draft => {
  const source = sourcesOf(pieces.map((one) => one.source))
  return {
    content: { role, parts: pieces.map((one) => one.part) },
    ...(about.at === undefined ? {} : { at: about.at }),
    ...(about.author === undefined ? {} : { author: about.author }),
    ...(source === undefined ? {} : { source }),
    ...(about.model === undefined ? {} : { model: about.model }),
    ...(about.usage === undefined ? {} : { usage: about.usage }),
    origin: { line: about.line, ids: about.ids }
  }
}

const sourcesOf = (sources: ReadonlyArray<SourceText | undefined>): Record<string, string> | undefined => {
  const kept = sources.flatMap((source, index) => (source === undefined ? [] : [[String(index), source] as const]))
  return kept.length === 0 ? undefined : Object.fromEntries(kept)
}

/** The pieces of a message: what `draftOf` was given. */
export const piecesOf = ({ content, source }: Draft): ReadonlyArray<Piece> =>
  content.parts.map((part, index) => ({ part, source: source?.[String(index)] }))

// --- what another agent's format cannot say -----------------------------------------------------------------------------

/** The key under which a record carries, beside its own form, the exact parts it stands for. */
const extension = "palimpsest"

/** Whether two lists of pieces are the same parts and give the same bytes under their handles. */
export const samePieces = (left: ReadonlyArray<Piece>, right: ReadonlyArray<Piece>): boolean =>
  left.length === right.length &&
  left.every((one, index) => {
    const other = right[index]
    return (
      other !== undefined &&
      JSON.stringify(one.part) === JSON.stringify(other.part) &&
      payload(one.part, one.source).text === payload(other.part, other.source).text
    )
  })

/** Escapes of single bytes (see Bytes.ts) as these bytes, as they stood in the file they came from. */
const withBytes = (json: string): string => {
  if (!json.includes("\\udc")) return json
  const raw = json.replace(/\\\\|\\u(dc[89a-f][0-9a-f])/g, (match, hex: string | undefined) =>
    hex === undefined ? match : String.fromCharCode(Number.parseInt(hex, 16))
  )
  return decode(encode(raw)).text === raw ? raw : json
}

/**
 * The exact JSON of a part on one line. What its handle gives as text has its bytes; what it gives as JSON is left as it is
 * spelled. A text it was read from that has line breaks becomes a JSON string of that text.
 */
const exactJson = ({ part, source }: Piece): string => {
  if (source !== undefined) return /[\r\n]/.test(source) ? withBytes(JSON.stringify(source)) : source
  return payload(part).form === "text" ? withBytes(JSON.stringify(part)) : JSON.stringify(part)
}

/**
 * A record as a line of its format. `exact`, by name: parts that reading the record's own form would not give back as they
 * are; `exactPieces` reads them. `marks`: what else it says beside its own form; `marksOf` reads it.
 */
export const recordLine = (
  record: Json,
  exact: Readonly<Record<string, ReadonlyArray<Piece>>> = {},
  marks: Json = {}
): string => {
  const ours = [
    ...Object.entries(marks).map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`),
    ...Object.entries(exact).map(([name, pieces]) => `"${name}":[${pieces.map(exactJson).join(",")}]`)
  ]
  const line = withBytes(JSON.stringify(record))
  return ours.length === 0 ? line : `${line.slice(0, -1)},"${extension}":{${ours.join(",")}}}`
}

const unmarked: Json = {}

/** What a record of ours says beside its own form. */
export const marksOf = (record: Json): Json => {
  const ours = record[extension]
  return isJson(ours) ? ours : unmarked
}

const isPart = Schema.is(PartShape)

/** A part with the text it was read from, where that has to be kept; undefined when the value is no part. */
const exactPiece = (value: unknown, slice: SourceText | undefined): Piece | undefined => {
  if (typeof value === "string") {
    const part = parsedOrUndefined(value)
    return isPart(part) ? { part, source: value } : undefined
  }
  if (!isPart(value)) return undefined
  return { part: value, source: slice !== undefined && needsSource(value, slice) ? slice : undefined }
}

/** The exact parts that a record of ours carries under a name; undefined: its own form says it all. A text: what is wrong. */
export const exactPieces = (record: Json, text: string, name: string): ReadonlyArray<Piece> | string | undefined => {
  const ours = record[extension]
  const list = isJson(ours) ? ours[name] : undefined
  if (list === undefined) return undefined
  if (!Array.isArray(list)) return `${extension}.${name}: expected a list of parts`
  const slices = arraySlices(sliceAt(text, [extension, name]) ?? "")
  const pieces: Array<Piece> = []
  for (const [index, value] of list.entries()) {
    const piece = exactPiece(value, slices[index])
    if (piece === undefined) return `${extension}.${name}[${index}]: expected a part`
    pieces.push(piece)
  }
  return pieces
}

/** A message for a format that has no mark of its own for who wrote it: a note in front says so (law 6). */
export const noted = (draft: Draft): ReadonlyArray<Piece> => {
  const note = foreignNote(draft)
  return note === undefined ? piecesOf(draft) : [{ part: { text: note }, source: undefined }, ...piecesOf(draft)]
}

/** The other way round: who wrote it by the note in front, and what it says without the note. */
export const withoutNote = (
  pieces: ReadonlyArray<Piece>
): { readonly author: Author | undefined; readonly pieces: ReadonlyArray<Piece> } => {
  const first = pieces[0]?.part
  // A note is a text and nothing else: no thought, and nothing that has a signature.
  const note = first !== undefined && Object.keys(first).length === 1 ? first.text : undefined
  const author = note === foreignNotes.summary ? "summary" : note === foreignNotes.program ? "program" : undefined
  return { author, pieces: author === undefined ? pieces : pieces.slice(1) }
}

/** Counts what a reader skips, by kind. */
export class Skipped {
  private readonly kinds = new Map<string, number>()
  /** One more of a kind. */
  add(kind: string): void {
    this.kinds.set(kind, (this.kinds.get(kind) ?? 0) + 1)
  }
  /** One fewer of a kind: it was no part of what is skipped after all. */
  take(kind: string): void {
    const left = (this.kinds.get(kind) ?? 0) - 1
    if (left > 0) this.kinds.set(kind, left)
    else this.kinds.delete(kind)
  }
  /** How many of each kind, in the order in which the kinds came up. */
  get counts(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.kinds)
  }
}

// ---------------------------------------------------------------------------------------------------------------------

const isContent = Schema.is(ContentShape)
const decodeContent = Schema.decodeUnknownResult(ContentShape)
const issues = SchemaIssue.makeFormatterStandardSchemaV1()

const pathText = (path: ReadonlyArray<unknown>): string =>
  path
    .map((key) => (typeof key === "number" || /^\d+$/.test(String(key)) ? `[${String(key)}]` : `.${String(key)}`))
    .join("")

const oneLine = (text: string, limit = 160): string => {
  const line = text.replace(/\s+/g, " ").trim()
  return line.length > limit ? `${line.slice(0, limit)}…` : line
}

/** Why a value is no Content, with the place. */
const contentProblem = (value: unknown, place: string): string => {
  if (!isJson(value))
    return `${place}: expected a Content (an object with role and parts), got ${oneLine(JSON.stringify(value), 40)}`
  if (value.role !== "user" && value.role !== "model") {
    return `${place}.role: expected "user" or "model", got ${oneLine(JSON.stringify(value.role) ?? "nothing", 40)}`
  }
  const result = decodeContent(value)
  if (Result.isSuccess(result)) return `${place}: expected a Content`
  const issue = issues(result.failure.issue).issues[0]
  const path = (issue?.path ?? []).map((segment) => (typeof segment === "object" ? segment.key : segment))
  return oneLine(`${place}${pathText(path)}: ${issue?.message ?? "expected a Content"}`)
}

/** How the message begins that tells the model about its environment. */
export const contextMarks = ["<session_context>", "This is the Gemini CLI. We are setting up the context for our chat."]
const snapshotMark = "<state_snapshot>"

/**
 * How a text looks like a snapshot: "marked" behind the runtime's mark, "bare" as Gemini CLI writes it (its scratchpad may
 * stand in front). A user can type either, so the look alone says nothing: see `isSummary`.
 */
export type SnapshotLook = "marked" | "bare" | undefined

/** How the beginning of a text looks. */
export const snapshotLook = (words: string): SnapshotLook => {
  if (!words.includes(snapshotMark)) return undefined
  if (words.startsWith(runtimeMark)) return "marked"
  return words.startsWith(snapshotMark) || words.startsWith("<scratchpad>") ? "bare" : undefined
}

/**
 * Whether a message in the user's role is the summary of a compression. Its place says so: a snapshot is the first that is
 * said in the user's role, and behind a bare one stands the fixed answer that Gemini CLI writes for the model.
 */
export const isSummary = (look: SnapshotLook, isFirst: boolean, answer: ReadonlyArray<Part> | undefined): boolean =>
  isFirst &&
  (look === "marked" || (look === "bare" && answer?.length === 1 && answer[0]?.text?.trim() === acknowledgement))

const isEnvironment = (content: Content): boolean =>
  content.role === "user" && contextMarks.some((mark) => plainText(content).trimStart().startsWith(mark))

const authorOf = (
  content: Content,
  next: unknown,
  isUserSeen: boolean,
  isEnvironmentSeen: boolean
): Author | undefined => {
  if (content.role !== "user" || isUserSeen || !content.parts.some(isText)) return undefined
  if (!isEnvironmentSeen && isEnvironment(content)) return "environment"
  const answer = isContent(next) && next.role === "model" ? next.parts : undefined
  return isSummary(snapshotLook(plainText(content).trimStart()), true, answer) ? "summary" : undefined
}

/** Where the messages of a document are, and its other keys. */
const listOf = (value: unknown): { readonly key: string | undefined; readonly list: unknown } => {
  if (Array.isArray(value) || !isJson(value)) return { key: undefined, list: value }
  const key = "history" in value ? "history" : "contents"
  return { key, list: value[key] }
}

const partSlices = (slice: SourceText): ReadonlyArray<SourceText> => arraySlices(sliceAt(slice, ["parts"]) ?? "")

const sourceOf = (content: Content, slice: SourceText | undefined): Record<string, string> | undefined => {
  if (slice === undefined) return undefined
  const slices = partSlices(slice)
  return sourcesOf(
    content.parts.map((part, index) => {
      const own = slices[index]
      return own !== undefined && needsSource(part, own) ? own : undefined
    })
  )
}

/** The number of the line each slice begins on, in order. */
export const lineNumbers = (text: string, slices: ReadonlyArray<SourceText>): ReadonlyArray<number> => {
  let line = 1
  let counted = 0
  let from = 0
  return slices.map((slice) => {
    const start = text.indexOf(slice, from)
    for (let at = text.indexOf("\n", counted); at >= 0 && at < start; at = text.indexOf("\n", counted)) {
      line += 1
      counted = at + 1
    }
    from = start + slice.length
    return line
  })
}

/** The messages with their exact texts; a document that is written as we would write it needs none. */
const slicesOf = (value: unknown, text: string, key: string | undefined): ReadonlyArray<SourceText> | undefined => {
  if (isCanonical(value, text)) return undefined
  return arraySlices(key === undefined ? text : (sliceAt(text, [key]) ?? ""))
}

/**
 * Reads a JSON array of `Content`, `{"history": […]}` or `{"contents": […], …}`. `value` is what `text` parses to. Keys
 * beside the messages (system instruction, tools) are counted as skipped. Work, because a document is read at once and may
 * be long.
 */
export function* readContents(value: unknown, text: string): Work<Transcript | Problem> {
  const { key, list } = listOf(value)
  if (!Array.isArray(list)) {
    return { line: 0, message: 'expected a list of Content, {"history": […]} or {"contents": […]}' }
  }
  const slices = slicesOf(value, text, key)
  const lines = slices === undefined ? undefined : lineNumbers(text, slices)
  const steps: Array<Step> = []
  let isEnvironmentSeen = false
  let isUserSeen = false
  for (const [index, item] of list.entries()) {
    const whole: unknown = isJson(item) && item.parts === undefined ? { ...item, parts: [] } : item
    if (!isContent(whole)) return { line: 0, message: contentProblem(whole, `${key ?? ""}[${index}]`) }
    yield slices?.[index]?.length ?? 1_000
    const source = sourceOf(whole, slices?.[index])
    const said = withoutNote(piecesOf({ content: whole, ...(source === undefined ? {} : { source }) }))
    const author: Author | undefined = said.author ?? authorOf(whole, list[index + 1], isUserSeen, isEnvironmentSeen)
    isEnvironmentSeen ||= author === "environment"
    isUserSeen ||= whole.role === "user" && author !== "environment"
    const sources = sourcesOf(said.pieces.map((one) => one.source))
    steps.push({
      _tag: "Message",
      draft: {
        // The keys beside the parts stay as they are.
        content: said.author === undefined ? whole : { ...whole, parts: said.pieces.map((one) => one.part) },
        ...(author === undefined ? {} : { author }),
        ...(sources === undefined ? {} : { source: sources }),
        origin: { line: lines?.[index] ?? 1, ids: [] }
      }
    })
  }
  const skipped = new Skipped()
  if (isJson(value)) for (const other of Object.keys(value)) if (other !== key) skipped.add(other)
  return {
    format: "contents",
    session: undefined,
    cwd: undefined,
    model: isJson(value) ? textAt(value, "model") : undefined,
    steps,
    skipped: skipped.counts
  }
}
