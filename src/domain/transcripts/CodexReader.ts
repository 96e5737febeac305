import { Schema } from "effect"
import { exitCode } from "../actions/ToolResults.ts"
import { type Content, type Part, PartShape } from "../content/Content.ts"
import type { Author, Draft } from "../conversation/Conversation.ts"
import { type SourceText, arraySlices, sliceAt } from "../text/JsonSource.ts"
import { parsedOrUndefined } from "../text/JsonText.ts"
import type { SlicedWork } from "../text/SlicedWork.ts"
import type { Usage } from "../tokens/Tokens.ts"
import { splitAuthorNote } from "./AuthorNote.ts"
import {
  answerPiece,
  callPiece,
  draftOf,
  type Exact,
  locate,
  needsExact,
  type Piece,
  textPiece,
  thoughtPiece
} from "./ExactParts.ts"
import { isJson, type Json, textAt, timeAt, natural } from "./JsonRecord.ts"
import { isRecordProblem, type Problem, problemAt, recordProblem, type RecordProblem } from "./Problem.ts"
import { exactPieces, marksOf } from "./RecordLine.ts"
import { markedAuthor, type Marks, readMarks } from "./RecordMarks.ts"
import { codexUsage } from "./RecordUsage.ts"
import { Skipped } from "./Skipped.ts"
import type { LineReader, Step, Transcript } from "./Transcript.ts"
import { authorOf } from "./voice/Voice.ts"

/**
 * Reads Codex CLI rollouts: records of the form `{timestamp, type, payload}`, whose response items are the conversation.
 * Files of 2025 hold the session's record and the items without this wrapper, one a line.
 *
 * One file: the items and records of one format.
 */

// --- response items -----------------------------------------------------------------------------------------------------

/** A part of an item. A tool result waits for the name of its call. */
export type Bit =
  | { readonly _tag: "Piece"; readonly piece: Piece }
  | { readonly _tag: "Answer"; readonly call: string; readonly build: (name: string | undefined) => Piece }

/** The message of a response item. */
export interface ItemMessage {
  readonly role: Content["role"]
  readonly author: Author | undefined
  /** Consecutive items of the same kind form one message. */
  readonly joins: "model" | "answers" | undefined
  readonly bits: ReadonlyArray<Bit>
  /** The call that the item makes. */
  readonly call: { readonly id: string; readonly name: string } | undefined
  /** The result of that call, when the item has it too. */
  readonly result?: ItemMessage
}

/** The place of an item: in its own line (`root` is the path to it), or in a list. */
interface Place {
  readonly value: unknown
  readonly text: string
  readonly root: ReadonlyArray<string>
  /** The name of the place in problems. */
  readonly name: string
  /** Names the item in its file. */
  readonly id?: string
}

const exactAt = ({ root, text, value }: Place, key: string): Exact => locate(value, text, []).at([...root, key])
const listAt = ({ root, text, value }: Place, key: string) => locate(value, text, [...root, key])

const pieces = (list: ReadonlyArray<Piece>): ReadonlyArray<Bit> => list.map((piece) => ({ _tag: "Piece", piece }))

const messageOf = (role: Content["role"], list: ReadonlyArray<Piece>, author?: Author): ItemMessage => ({
  role,
  author,
  joins: role === "model" ? "model" : undefined,
  bits: pieces(list),
  call: undefined
})

const dataUrl = /^data:([^,]*);base64,/

/** Returns an image: its bytes if the address contains them, else the address. */
const image = (url: string): Piece => {
  const [head, mimeType] = dataUrl.exec(url) ?? []
  const part: Part =
    head === undefined
      ? { fileData: { fileUri: url } }
      : {
          inlineData: {
            ...(mimeType === undefined || mimeType === "" ? {} : { mimeType }),
            data: url.slice(head.length)
          }
        }
  return { part, source: undefined }
}

const readBlocks = (item: Json, place: Place, skipped: Skipped): ReadonlyArray<Piece> | RecordProblem => {
  const { content } = item
  if (typeof content === "string") return [textPiece(content, exactAt(place, "content"))]
  if (!Array.isArray(content)) return recordProblem(`${place.name}content`, "expected a text or a list of blocks")
  const locator = listAt(place, "content")
  const found: Array<Piece> = []
  for (const [index, block] of content.entries()) {
    const name = `${place.name}content[${index}]`
    if (!isJson(block) || typeof block.type !== "string")
      return recordProblem(`${name}`, "expected a block, an object with a type")
    switch (block.type) {
      case "input_text":
      case "output_text":
      case "text":
        if (typeof block.text !== "string")
          return recordProblem(`${name}.text`, `expected a text in a block of type ${block.type}`)
        found.push(textPiece(block.text, locator.under(index, "text")))
        break
      case "input_image":
        if (typeof block.image_url !== "string")
          return recordProblem(`${name}.image_url`, "expected a text, the address of the image")
        found.push(image(block.image_url))
        break
      default:
        skipped.add(`block: ${block.type}`)
    }
  }
  return found
}

/** The beginning of a compaction's summary in Codex. */
const summaryMark = "Another language model started to solve this problem and produced a summary"

/** Returns the author of a message in the user's role, and the message without an author note. */
const userMessage = (list: ReadonlyArray<Piece>, summary: string | undefined): ItemMessage => {
  const { author, pieces: rest } = splitAuthorNote(list)
  if (author !== undefined) return messageOf("user", rest, author)
  const first = list[0]?.part.text
  if (
    first !== undefined &&
    (first.startsWith(summaryMark) || (list.length === 1 && first === summary && first !== ""))
  )
    return messageOf("user", list, "summary")
  return messageOf("user", list, authorOf(list.map(({ part }) => part)))
}

const readMessage = (
  item: Json,
  place: Place,
  summary: string | undefined,
  skipped: Skipped
): ItemMessage | RecordProblem | undefined => {
  const { role } = item
  if (typeof role !== "string") return recordProblem(`${place.name}role`, "expected a text in a message")
  if (!["user", "assistant", "developer", "system"].includes(role)) {
    skipped.add(`message: ${role}`)
    return undefined
  }
  const list = readBlocks(item, place, skipped)
  if (isRecordProblem(list)) return list
  if (role === "assistant") return messageOf("model", list)
  return role === "user" ? userMessage(list, summary) : messageOf("user", list, "program")
}

const readThoughts = (item: Json, place: Place, skipped: Skipped): ItemMessage | RecordProblem | undefined => {
  const thoughts: Array<{ readonly text: string; readonly exact: Exact }> = []
  for (const key of ["summary", "content"]) {
    const list = item[key] ?? []
    if (!Array.isArray(list))
      return recordProblem(`${place.name}${key}`, "expected a list of texts in a reasoning item")
    const locator = listAt(place, key)
    for (const [index, block] of list.entries()) {
      if (!isJson(block) || typeof block.text !== "string")
        return recordProblem(`${place.name}${key}[${index}].text`, "expected a text in a reasoning item")
      thoughts.push({ text: block.text, exact: locator.under(index, "text") })
    }
  }
  const signature = textAt(item, "encrypted_content")
  if (thoughts.length === 0) {
    if (signature !== undefined) return messageOf("model", [thoughtPiece("", signature, () => undefined)])
    skipped.add("response_item: reasoning without text")
    return undefined
  }
  return messageOf(
    "model",
    thoughts.map(({ exact, text }, index) =>
      thoughtPiece(text, index === thoughts.length - 1 ? signature : undefined, exact)
    )
  )
}

/** Parses a text as a JSON object; undefined when it is not one. */
export const objectOf = (text: string): Json | undefined => {
  const value = parsedOrUndefined(text)
  return isJson(value) ? value : undefined
}

/** Matches a surrogate that a JSON string writes as an escape. */
const spelledSurrogate = /(?<!\\)(?:\\\\)*\\u[dD][89a-fA-F]/

/** The arguments of a call, which are a JSON text inside the JSON. */
interface Arguments {
  readonly args: Json | undefined
  readonly exact: Exact
}

const textArgument = (key: string, text: string, literal: Exact): Arguments => ({
  args: { [key]: text },
  exact: () => {
    const slice = literal()
    return slice === undefined ? undefined : `{"${key}":${slice}}`
  }
})

/**
 * Reads arguments. The JSON text of an object is parsed and its spelling kept; an empty text means no arguments. Any other
 * text, JSON or not, becomes the one argument `arguments`, so that nothing is lost and args are always an object.
 */
const readArguments = (text: string, literal: Exact): Arguments => {
  if (text === "") return { args: undefined, exact: () => undefined }
  const spelled = !text.isWellFormed() && spelledSurrogate.test(literal() ?? "")
  const args = spelled ? undefined : objectOf(text)
  return args === undefined ? textArgument("arguments", text, literal) : { args, exact: () => text }
}

const readCall = (item: Json, place: Place, argument: "arguments" | "input"): ItemMessage | RecordProblem => {
  const text = item[argument]
  const { call_id: id, name } = item
  const wrong = (key: string) => recordProblem(`${place.name}${key}`, `expected a text in a ${String(item.type)}`)
  if (typeof name !== "string") return wrong("name")
  if (typeof text !== "string") return wrong(argument)
  if (typeof id !== "string") return wrong("call_id")
  const literal = exactAt(place, argument)
  const { args, exact } = argument === "input" ? textArgument("input", text, literal) : readArguments(text, literal)
  return { ...messageOf("model", [callPiece({ id, name, args }, exact)]), call: { id, name } }
}

const shellCall = "local_shell"

const readShellCall = (item: Json, place: Place): ItemMessage | RecordProblem => {
  if (!isJson(item.action)) return recordProblem(`${place.name}action`, "expected an object in a local_shell_call")
  const id = textAt(item, "call_id") ?? textAt(item, "id")
  return {
    ...messageOf("model", [callPiece({ id, name: shellCall, args: item.action }, exactAt(place, "action"))]),
    call: id === undefined ? undefined : { id, name: shellCall }
  }
}

/** Tools whose results state in Codex's own words how they ended. */
const toolsThatReportFailure = new Set([
  "shell",
  "shell_command",
  "exec_command",
  "write_stdin",
  "container.exec",
  "apply_patch",
  "exec",
  shellCall
])

/** Codex's text for a call that it did not carry out. */
const notExecuted =
  /^(?:Script (?:failed|terminated)\n|apply_patch verification failed|failed to parse function arguments|exec command rejected by user|(?:Wall time: .*\n)?aborted)/

const saysItFailed = (name: string | undefined, text: string): boolean => {
  if (name === undefined || !toolsThatReportFailure.has(name)) return false
  const code = exitCode({ functionResponse: { name, response: { output: text } } })
  return (code !== undefined && code !== 0) || notExecuted.test(text.slice(0, 200))
}

/** Returns the text with which a result begins. */
const firstText = (value: unknown): string => {
  const first: unknown = Array.isArray(value) ? value[0] : value
  return typeof first === "string" ? first : isJson(first) ? (textAt(first, "text") ?? "") : ""
}

/**
 * Reads a result: a text, a list of content items, or `{content, success}`. The text stays unchanged, even when it is JSON
 * around the output. It is an error when `success` says so, or when the text of a shell or a patch does.
 */
const readAnswer = (item: Json, place: Place): ItemMessage | RecordProblem => {
  const { call_id: id, output } = item
  if (typeof id !== "string") return recordProblem(`${place.name}call_id`, `expected a text in a ${String(item.type)}`)
  const wrapped = isJson(output)
  const content = wrapped ? output.content : output
  if (typeof content !== "string" && !(Array.isArray(content) && content.every(isJson))) {
    return recordProblem(`${place.name}output`, "expected a text, a list of content items or an object with content")
  }
  const path = wrapped ? ["output", "content"] : ["output"]
  const whole = locate(place.value, place.text, []).at([...place.root, ...path])
  const only: unknown = Array.isArray(content) && content.length === 1 ? content[0] : undefined
  const single = isJson(only) && only.type === "input_text" && typeof only.text === "string" ? only.text : undefined
  const value: unknown = single ?? content
  // Taken now, so that the line's text can be released before the name of the call is known.
  const slice = needsExact(value) ? whole() : undefined
  const exact: SourceText | undefined =
    slice !== undefined && single !== undefined ? sliceAt(slice, [0, "text"]) : slice
  const refused = wrapped && output.success === false
  const build = (name: string | undefined) =>
    answerPiece({ id, name, failed: refused || saysItFailed(name, firstText(value)), content: value }, () => exact)
  return {
    role: "user",
    author: undefined,
    joins: "answers",
    bits: [{ _tag: "Answer", call: id, build }],
    call: undefined
  }
}

const ownFields = new Set(["type", "id", "call_id", "status", "result", "results", "output", "outputs"])

/** Returns what the provider's own tool answered: an image, a text, or how the call ended. */
const providerResult = (item: Json): unknown => {
  const { output = item.outputs ?? item.results ?? item.result, type } = item
  if (output === undefined || output === null) return textAt(item, "status") ?? ""
  if (type !== "image_generation_call" || typeof output !== "string") {
    return typeof output === "string" ? output : JSON.stringify(output)
  }
  return [{ type: "input_image", image_url: `data:image/png;base64,${output}` }]
}

/**
 * Reads a call of a tool that the provider runs (`web_search_call`), which has its result itself; a call with a `call_id`
 * has it in an item of its own.
 */
const readProviderCall = (item: Json, type: string, place: Place): ItemMessage => {
  const name = type.replace(/_call$/, "")
  const own = ["action", "arguments"].find((key) => isJson(item[key]))
  const args: unknown =
    own === undefined ? Object.fromEntries(Object.entries(item).filter(([key]) => !ownFields.has(key))) : item[own]
  const callId = textAt(item, "call_id")
  const id = callId ?? textAt(item, "id") ?? (place.id === undefined ? undefined : `${name}_${place.id}`)
  const made = messageOf("model", [
    callPiece({ id, name, args }, own === undefined ? () => undefined : exactAt(place, own))
  ])
  const call = id === undefined ? undefined : { id, name }
  if (callId !== undefined) return { ...made, call }
  const result = answerPiece(
    { id, name, failed: item.status === "failed", content: providerResult(item) },
    () => undefined
  )
  return {
    ...made,
    call,
    result: { role: "user", author: undefined, joins: "answers", bits: pieces([result]), call: undefined }
  }
}

/** Reads the result of such a call (`tool_search_output`). */
const readProviderAnswer = (item: Json, id: string): ItemMessage => {
  const { output = Object.fromEntries(Object.entries(item).filter(([key]) => !ownFields.has(key))) } = item
  const content = typeof output === "string" ? output : JSON.stringify(output)
  const build = (name: string | undefined) =>
    answerPiece({ id, name, failed: item.status === "failed", content }, () => undefined)
  return {
    role: "user",
    author: undefined,
    joins: "answers",
    bits: [{ _tag: "Answer", call: id, build }],
    call: undefined
  }
}

/**
 * Reads a response item by its own form. Returns undefined for an item that is not part of the conversation, which is
 * counted as skipped. `summary` is the text of a compaction's summary.
 */
export const readItem = (
  item: Json,
  place: Place,
  skipped: Skipped,
  summary?: string | undefined
): ItemMessage | RecordProblem | undefined => {
  switch (item.type) {
    case "message":
      return readMessage(item, place, summary, skipped)
    case "reasoning":
      return readThoughts(item, place, skipped)
    case "function_call":
      return readCall(item, place, "arguments")
    case "custom_tool_call":
      return readCall(item, place, "input")
    case "local_shell_call":
      return readShellCall(item, place)
    case "function_call_output":
    case "custom_tool_call_output":
      return readAnswer(item, place)
    default:
      if (typeof item.type !== "string")
        return recordProblem(`${place.name}type`, "expected a text, the kind of the item")
      if (item.type.endsWith("_call")) return readProviderCall(item, item.type, place)
      if (item.type.endsWith("_output") && typeof item.call_id === "string")
        return readProviderAnswer(item, item.call_id)
      skipped.add(`response_item: ${item.type}`)
      return undefined
  }
}

/** Returns the pieces of some bits, with each result named after its call. */
export const named = (
  bits: ReadonlyArray<Bit>,
  nameOf: (call: string, bit: Bit) => string | undefined
): ReadonlyArray<Piece> => bits.map((bit) => (bit._tag === "Piece" ? bit.piece : bit.build(nameOf(bit.call, bit))))

// --- what records carry beside their own form -------------------------------------------------------------------------

/** The type of an item that Codex ignores. It carries parts for which Codex has no form. */
export const carrier = "other"

/**
 * Writes a piece as a text without escapes or bytes that are not valid Unicode. Codex refuses a file or a line with such
 * bytes, so these pieces are stored as JSON within a JSON string.
 */
export const escapedPiece = ({ part, source }: Piece): string =>
  JSON.stringify(source === undefined ? { part } : { part, source })

const isPart = Schema.is(PartShape)

const readEscaped = (value: unknown): Piece | undefined => {
  const piece = typeof value === "string" ? objectOf(value) : undefined
  return piece !== undefined && isPart(piece.part) ? { part: piece.part, source: textAt(piece, "source") } : undefined
}

/** Returns the exact parts of a record; undefined when its own form is exact. */
const readExact = (record: Json, text: string): ReadonlyArray<Piece> | RecordProblem | undefined => {
  const { escaped } = marksOf(record)
  if (escaped === undefined) return exactPieces(record, text, "parts")
  const found = Array.isArray(escaped) ? escaped.map(readEscaped) : [undefined]
  const whole = found.filter((piece) => piece !== undefined)
  return whole.length === found.length
    ? whole
    : recordProblem("palimpsest.escaped", "expected a list of parts, each in a text")
}

const roleOf = (value: unknown): Content["role"] | undefined =>
  value === "user" || value === "model" ? value : undefined

/**
 * The data of a compaction that this program wrote about one of its items. `item` is its number; `missing` concerns earlier
 * parts for which Codex has no form. It stands for the next `parts` of the record's exact parts.
 */
export interface Layout extends Pick<Marks, "author" | "message"> {
  readonly item: number
  readonly missing?: true
  readonly role: Content["role"]
  readonly parts?: number
}

interface Arranged {
  readonly item: number
  readonly missing: boolean
  readonly role: Content["role"]
  readonly marks: Marks
  readonly exact: ReadonlyArray<Piece> | undefined
}

/** Returns the layout of a compaction, with each exact part in its place; empty when there is none. */
const readLayout = (record: Json, exact: ReadonlyArray<Piece>): ReadonlyArray<Arranged> | RecordProblem => {
  const wrong = recordProblem("palimpsest.layout", "expected a list that says where each exact part belongs")
  const { layout = [] } = marksOf(record)
  if (!Array.isArray(layout)) return wrong
  const arranged: Array<Arranged> = []
  let from = 0
  for (const value of layout) {
    if (!isJson(value)) return wrong
    const { item, missing, parts } = value
    const role = roleOf(value.role)
    if (typeof item !== "number" || role === undefined) return wrong
    const to = from + (natural(parts) ?? 0)
    arranged.push({
      item,
      missing: missing === true,
      role,
      marks: readMarks({ palimpsest: value }),
      exact: parts === undefined ? undefined : exact.slice(from, to)
    })
    from = to
  }
  return from === exact.length ? arranged : wrong
}

/** Applies marks and exact parts to an item. */
const marked = (found: ItemMessage, marks: Marks, exact: ReadonlyArray<Piece> | undefined): ItemMessage => ({
  ...found,
  author: markedAuthor(marks, found.author),
  bits: exact === undefined ? found.bits : pieces(exact)
})

// --- the rollout --------------------------------------------------------------------------------------------------------

/** A message that later items may extend. */
interface Turn {
  readonly role: Content["role"]
  readonly author: Author | undefined
  readonly joins: ItemMessage["joins"]
  readonly bits: Array<Bit>
  readonly at: number | undefined
  readonly line: number
  readonly ids: Array<string>
  readonly model: string | undefined
  usage: Usage | undefined
}
type Stretch =
  | { readonly _tag: "Turn"; readonly turn: Turn }
  | {
      readonly _tag: "Compaction"
      readonly insert: ReadonlyArray<Turn>
      readonly trigger: "manual" | "auto"
      readonly tokensBefore: number | undefined
      readonly encryptedAt: number | undefined
    }

/** Whether the user typed this message, as opposed to tool results and to text that Codex inserted. */
const isTyped = ({ author, joins, role }: Turn): boolean =>
  role === "user" && author === undefined && joins === undefined

const isTypedTurn = (one: Stretch | undefined): boolean => one?._tag === "Turn" && isTyped(one.turn)

const carriedBy = (item: Json, name: string): ItemMessage | RecordProblem => {
  const role = roleOf(item.role)
  return role === undefined
    ? recordProblem(`${name}role`, 'expected "user" or "model" in an item of ours')
    : messageOf(role, [])
}

/** Whether an item joins the message before it: consecutive items of the model, and consecutive tool results. */
export const continuesMessage = (before: ItemMessage["joins"], next: ItemMessage["joins"]): boolean =>
  next !== undefined && before === next

const folder = /<cwd>([^<\n]+)<\/cwd>|^Current working directory: (.+)$/m

const folderAt = (record: Json): string | undefined => {
  const path = textAt(record, "cwd")
  return path === "" ? undefined : path
}

/** Whether an item is a summary that only its provider can read (Codex with a ChatGPT login). */
const isEncryptedSummary = ({ encrypted_content: content, type }: Json): boolean =>
  typeof content === "string" &&
  (type === "compaction" || type === "compaction_summary" || type === "context_compaction")

class Rollout {
  readonly skipped = new Skipped()
  session: string | undefined
  cwd: string | undefined
  model: string | undefined
  private started = false
  private readonly stretches: Array<Stretch> = []
  /** The message that the next item may join. */
  private open: Turn | undefined
  /** The last message of the model, if nothing has changed what it was asked with. */
  private answered: Turn | undefined
  private readonly names = new Map<string, string>()
  /** Results by the name that their call had when they arrived. */
  private readonly known = new Map<Bit, string>()
  private counted: string | undefined
  private tokens: number | undefined

  record(record: unknown, text: string, line: number): RecordProblem | undefined {
    if (!isJson(record)) return recordProblem("", "expected a record: an object with timestamp, type and payload")
    if (typeof record.record_type === "string") {
      this.skipped.add(`record_type: ${record.record_type}`)
      return undefined
    }
    const { payload, type } = record
    if (typeof type !== "string") {
      const isMeta = type === undefined && typeof record.id === "string"
      return isMeta ? this.meta(record, record, "") : recordProblem("type", "expected a text, the kind of the record")
    }
    switch (type) {
      case "session_meta":
      case "turn_context":
      case "response_item":
      case "event_msg":
      case "compacted":
        if (!isJson(payload)) return recordProblem("payload", `expected an object in a ${type} record`)
        return this.payload(type, payload, record, text, line)
      default: {
        if (!("payload" in record)) return this.item(record, record, text, [], line)
        this.skipped.add(type)
        return undefined
      }
    }
  }

  private payload(type: string, payload: Json, record: Json, text: string, line: number): RecordProblem | undefined {
    switch (type) {
      case "session_meta":
        return this.meta(payload, record, "payload.")
      case "turn_context":
        this.model = textAt(payload, "model") ?? this.model
        this.cwd ??= folderAt(payload)
        this.skipped.add(type)
        return undefined
      case "event_msg":
        return this.event(payload)
      case "compacted":
        return this.compacted(payload, record, text, line)
      default:
        return this.item(payload, record, text, ["payload"], line)
    }
  }

  /** Reads the session's own record. A fork repeats the record of its parent session. */
  private meta(meta: Json, record: Json, name: string): RecordProblem | undefined {
    if (typeof meta.id !== "string") return recordProblem(`${name}id`, "expected a text, the id of the session")
    if (this.started) {
      this.skipped.add("session_meta")
      return undefined
    }
    this.started = true
    const marks = marksOf(record)
    this.session = "session" in marks ? textAt(marks, "session") : meta.id
    this.cwd ??= folderAt(meta)
    return undefined
  }

  private item(
    item: Json,
    record: Json,
    text: string,
    root: ReadonlyArray<string>,
    line: number
  ): RecordProblem | undefined {
    const name = root.map((key) => `${key}.`).join("")
    const exact = readExact(record, text)
    if (isRecordProblem(exact)) return exact
    const carried = exact !== undefined && item.type === carrier
    const found = carried
      ? carriedBy(item, name)
      : readItem(item, { value: record, text, root, name, id: String(line) }, this.skipped)
    if (found === undefined || isRecordProblem(found)) return found
    const marks = "palimpsest" in record ? readMarks(record) : {}
    const at = timeAt(record)
    this.add(this.join(this.open, marked(found, marks, exact), marks, line, at, textAt(item, "id")))
    if (found.result !== undefined) this.add(this.join(this.open, found.result, {}, line, at, undefined))
    return undefined
  }

  private add(turn: Turn): void {
    if (turn !== this.open) this.stretches.push({ _tag: "Turn", turn })
    this.open = turn
    if (turn.role === "model") this.answered = turn
  }

  /** Returns the message that an item joins or begins. */
  private join(
    open: Turn | undefined,
    found: ItemMessage,
    { message }: Marks,
    line: number,
    at: number | undefined,
    id: string | undefined
  ): Turn {
    if (found.author === "program") this.findFolder(found)
    if (found.call !== undefined) this.names.set(found.call.id, found.call.name)
    for (const bit of found.bits) {
      const name = bit._tag === "Answer" ? this.names.get(bit.call) : undefined
      if (name !== undefined) this.known.set(bit, name)
    }
    const { author, joins, role } = found
    const same =
      message === undefined ? continuesMessage(open?.joins, joins) : message === "same" && open?.role === role
    const turn: Turn =
      same && open !== undefined
        ? open
        : {
            role,
            author,
            joins,
            bits: [],
            at,
            line,
            ids: [],
            model: role === "model" ? this.model : undefined,
            usage: undefined
          }
    for (const bit of found.bits) turn.bits.push(bit)
    if (id !== undefined) turn.ids.push(id)
    return turn
  }

  /** Files of 2025 name the folder only in the message that tells it to the model. */
  private findFolder({ bits }: ItemMessage): void {
    for (const bit of this.cwd === undefined ? bits : []) {
      const [, element, line] = folder.exec(bit._tag === "Piece" ? (bit.piece.part.text ?? "") : "") ?? []
      this.cwd ??= element ?? line
    }
  }

  private event(payload: Json): RecordProblem | undefined {
    if (payload.type === "token_count" && this.count(payload.info)) return undefined
    if (payload.type === "thread_rolled_back") {
      const turns = natural(payload.num_turns)
      if (turns === undefined)
        return recordProblem("payload.num_turns", "expected a number of turns in a thread_rolled_back event")
      this.rollBack(turns)
      return undefined
    }
    this.skipped.add(`event_msg: ${textAt(payload, "type") ?? "unknown"}`)
    return undefined
  }

  /** Returns whether the counts are new for the model's last message. Codex repeats them to report rate limits. */
  private count(info: unknown): boolean {
    const last = isJson(info) ? info.last_token_usage : undefined
    if (!isJson(last)) return false
    const counts = JSON.stringify(info)
    const isNew = counts !== this.counted
    this.counted = counts
    const usage = codexUsage(last)
    this.tokens = natural(last.total_tokens) ?? (usage === undefined ? this.tokens : usage.prompt + usage.answer)
    if (!isNew || usage === undefined || this.answered === undefined) return false
    this.answered.usage = usage
    // The counts end a response: later text of the model belongs to another one.
    if (this.open === this.answered) this.open = undefined
    return true
  }

  /** Removes the user's last turns, each with everything after it. */
  private rollBack(turns: number): void {
    const first = this.stretches.findIndex(isTypedTurn)
    if (turns === 0 || first < 0) return
    let from = this.stretches.length
    for (let left = turns; left > 0 && from > first;) {
      from -= 1
      if (isTypedTurn(this.stretches[from])) left -= 1
    }
    // A program's text right before the turn belongs to it, unless it opens the conversation.
    for (let before = this.stretches[from - 1]; from > first; before = this.stretches[from - 1]) {
      if (before?._tag !== "Turn" || before.turn.author !== "program") break
      from -= 1
    }
    for (const one of this.stretches.splice(from)) if (one._tag === "Turn") this.skipped.add("rolled back")
    this.close()
  }

  private close(): void {
    this.open = undefined
    this.answered = undefined
  }

  private compacted(payload: Json, record: Json, text: string, line: number): RecordProblem | undefined {
    const { message, replacement_history: history } = payload
    if (typeof message !== "string")
      return recordProblem("payload.message", "expected a text, the summary, in a compacted record")
    if (history !== undefined && history !== null && !Array.isArray(history))
      return recordProblem("payload.replacement_history", "expected a list of items")
    const replaced = Array.isArray(history) ? this.history(history, payload, record, text, line) : undefined
    if (isRecordProblem(replaced)) return replaced
    const typed = replaced === undefined ? this.typed() : []
    const { encryptedAt, turns: insert } = replaced ?? {
      // Without a word, the provider has the summary.
      ...(message === "" ? { encryptedAt: typed.length } : { encryptedAt: undefined }),
      turns: message === "" ? typed : [...typed, this.summary(message, record, text, line)]
    }
    this.stretches.push({
      _tag: "Compaction",
      insert,
      encryptedAt,
      trigger: readMarks(record).trigger ?? "auto",
      tokensBefore: this.tokens
    })
    this.close()
    this.tokens = undefined
    return undefined
  }

  /** Returns the user's messages that the model still sees. */
  private typed(): ReadonlyArray<Turn> {
    const last = this.stretches.findLastIndex((one) => one._tag === "Compaction")
    return this.stretches
      .slice(Math.max(0, last))
      .flatMap((one) => (one._tag === "Turn" ? [one.turn] : one.insert))
      .filter(isTyped)
  }

  private summary(message: string, record: Json, text: string, line: number): Turn {
    const piece = textPiece(message, locate(record, text, []).at(["payload", "message"]))
    return this.join(undefined, messageOf("user", [piece], "summary"), {}, line, timeAt(record), undefined)
  }

  /** Returns the items that replace all earlier messages, with their marks and exact parts, and the place of an encrypted summary. */
  private history(
    items: ReadonlyArray<unknown>,
    payload: Json,
    record: Json,
    text: string,
    line: number
  ): { readonly turns: ReadonlyArray<Turn>; readonly encryptedAt: number | undefined } | RecordProblem {
    const exact = readExact(record, text)
    if (isRecordProblem(exact)) return exact
    const layout = readLayout(record, exact ?? [])
    if (isRecordProblem(layout)) return layout
    const slices = arraySlices(sliceAt(text, ["payload", "replacement_history"]) ?? "")
    const summary = textAt(payload, "message")
    const turns: Array<Turn> = []
    let encryptedAt: number | undefined
    const add = (
      found: ItemMessage,
      id: string | undefined,
      { exact: own, marks }: Pick<Arranged, "exact" | "marks">
    ) => {
      const whole = marked(found, marks, own)
      // The environment stays where it is: a compaction does not insert it again.
      if (whole.author === "environment") return
      const open = turns.at(-1)
      const joined = this.join(open, whole, marks, line, timeAt(record), id)
      if (joined !== open) turns.push(joined)
    }
    let next = 0
    const carried = (before: number) => {
      for (let one = layout[next]; one?.missing === true && one.item === before; one = layout[next]) {
        add(messageOf(one.role, []), undefined, one)
        next += 1
      }
    }
    for (const [index, item] of items.entries()) {
      carried(index)
      const name = `payload.replacement_history[${index}]`
      if (!isJson(item)) return recordProblem(`${name}`, "expected a response item")
      if (isEncryptedSummary(item)) encryptedAt = turns.length
      const place: Place = {
        value: item,
        text: slices[index] ?? "",
        root: [],
        name: `${name}.`,
        id: `${line}_${index}`
      }
      const found = readItem(item, place, this.skipped, summary)
      if (isRecordProblem(found)) return found
      const own = layout[next]?.item === index ? layout[next] : undefined
      if (own !== undefined) next += 1
      if (found !== undefined) add(found, textAt(item, "id"), own ?? { exact: undefined, marks: {} })
      if (found?.result !== undefined) add(found.result, undefined, { exact: undefined, marks: {} })
    }
    carried(items.length)
    return { turns, encryptedAt: turns.some(({ author }) => author === "summary") ? undefined : encryptedAt }
  }

  *transcript(): SlicedWork<Transcript> {
    const steps: Array<Step> = []
    for (const one of this.stretches) {
      if (one._tag === "Turn") steps.push({ _tag: "Message", draft: this.draft(one.turn) })
      else {
        steps.push({
          _tag: "Compaction",
          insert: one.insert.map((turn) => this.draft(turn)),
          keptFrom: undefined,
          trigger: one.trigger,
          tokensBefore: one.tokensBefore,
          ...(one.encryptedAt === undefined ? {} : { encryptedAt: one.encryptedAt })
        })
      }
      yield one._tag === "Turn" ? 1_000 : 1_000 * (1 + one.insert.length)
    }
    return {
      format: "codex",
      session: this.session,
      cwd: this.cwd,
      model: this.model,
      steps,
      skipped: this.skipped.counts
    }
  }

  private draft({ at, author, bits, ids, line, model, role, usage }: Turn): Draft {
    // A call that comes after its result still names it.
    const list = named(bits, (call, bit) => this.known.get(bit) ?? this.names.get(call))
    return draftOf(role, list, { at, author, line, ids, model, usage })
  }
}

/**
 * Reads a Codex CLI rollout of the current form or of 2025. Items of the model are one Content up to a tool result, a user
 * message or the next token count; consecutive tool results are one, and each user message is one. Rolled-back turns are
 * left out.
 */
export const codexReader = (): LineReader => {
  const rollout = new Rollout()
  return {
    line: (value, text, number): Problem | undefined => {
      const problem = rollout.record(value, text, number)
      return problem === undefined ? undefined : problemAt(number, problem)
    },
    end: () => rollout.transcript()
  }
}
