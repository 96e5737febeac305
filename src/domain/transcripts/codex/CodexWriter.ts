import {
  type Content,
  isCall,
  isMedia,
  isResponse,
  isText,
  isThought,
  outputText,
  type Part,
  plainText
} from "../../content/Content.ts"
import { messageMedia } from "../../content/MediaBlocks.ts"
import type { Author, Draft } from "../../conversation/Conversation.ts"
import { isJson, type Json } from "../../text/JsonObject.ts"
import { sliceAt, spelledSurrogate } from "../../text/JsonSource.ts"
import { wellFormedJson } from "../../text/JsonText.ts"
import type { SlicedWork } from "../../text/SlicedWork.ts"
import { addUsage, partTokens, type Usage } from "../../tokens/Tokens.ts"
import { withAuthorNote } from "../AuthorNote.ts"
import { isOpenAnswer, namedPieces, nowhere, type Piece, piecesOf, samePieces } from "../ExactParts.ts"
import { textAt } from "../JsonRecord.ts"
import { isProblem } from "../Problem.ts"
import { recordLine } from "../RecordLine.ts"
import type { Marks } from "../RecordMarks.ts"
import { Skipped } from "../Skipped.ts"
import { VisibleMessages, type Step, type Transcript, type Writer, type Written } from "../Transcript.ts"
import { authorInCodex } from "../voice/Voice.ts"
import { clock, isoTime, isUuid, uuidOf } from "../WrittenRecords.ts"
import { carrier, escapedPiece, type Layout } from "./CarriedItems.ts"
import { continuesMessage, type ItemMessage, objectOf } from "./ItemMessage.ts"
import { readItem } from "./Items.ts"

/**
 * Writes Codex CLI rollouts. Every item is read back before it is written. When its own form would not give the same parts,
 * the record carries the exact parts besides.
 *
 * One file: the items, calls and records of one format and direction.
 */

// --- what Codex's parser takes ------------------------------------------------------------------------------------------

/** Replaces lone surrogates by U+FFFD in a record's own form, because Codex refuses a line that contains one. */
const wellFormed = (record: Json): Json => {
  const json = JSON.stringify(record)
  if (!json.includes("\\ud")) return record
  // Own JSON: the line was parsed before.
  const value: unknown = JSON.parse(wellFormedJson(json))
  return isJson(value) ? value : record
}

/** Whether Codex can read a line: it contains no bytes and no escapes that are not valid Unicode. */
const isReadable = (line: string): boolean => line.isWellFormed() && !spelledSurrogate.test(line)

/** Returns the line of a record with its exact parts and marks. */
const markedLine = (record: Json, pieces: ReadonlyArray<Piece> | undefined, marks: Json): string => {
  if (pieces === undefined) return recordLine(record, {}, marks)
  const line = recordLine(record, { parts: pieces }, marks)
  return isReadable(line) ? line : recordLine(record, {}, { ...marks, escaped: pieces.map(escapedPiece) })
}

// --- parts as items -----------------------------------------------------------------------------------------------------

/** Some parts of one message as one item. */
interface Unit {
  readonly role: Content["role"]
  /** Undefined when Codex has no form for them. */
  readonly item: Json | undefined
  /** The parts, when reading the item would not return them. */
  readonly exact: ReadonlyArray<Piece> | undefined
  readonly marks: Pick<Marks, "author" | "message">
  /** Kinds of content that Codex or its model will not see. */
  readonly unheld: ReadonlyArray<string>
}

/** A call without a result so far, under the id it was written with. */
interface OpenCall {
  readonly run: number
  readonly written: string
  readonly custom: boolean
}

/** The calls of a conversation that results can refer to. */
class Calls {
  /** The ids in use, and how often each was requested. */
  private readonly used = new Map<string, number>()
  private readonly byId = new Map<string, Array<OpenCall>>()
  private readonly byName = new Map<string, Array<OpenCall>>()
  private run = 0
  private role: Content["role"] | undefined

  /** Begins a turn of this role. */
  turn(role: Content["role"]): void {
    if (role !== this.role) this.run += 1
    this.role = role
  }

  /** Returns an id that no other call or lone result has, because Codex pairs by id. */
  private claim(id: string | undefined, otherwise: string): string {
    const base = id === undefined || id === "" ? `${otherwise}_${this.used.size + 1}` : id
    let times = this.used.get(base) ?? 0
    let own = base
    while (times > 0 && this.used.has(own)) {
      times += 1
      own = `${base}_${times}`
    }
    this.used.set(base, Math.max(1, times))
    this.used.set(own, this.used.get(own) ?? 1)
    return own
  }

  call(id: string | undefined, name: string, custom: boolean): string {
    const made = { run: this.run, written: this.claim(id, "call"), custom }
    const [calls, key] = id === undefined ? [this.byName, name] : [this.byId, id]
    const open = calls.get(key)
    // The same id in another turn is another call.
    if (open?.at(-1)?.run === this.run) open.push(made)
    else calls.set(key, [made])
    return made.written
  }

  /** Returns the call of a result, by the general pairing rules: by id, else by name, in order. */
  answer(
    id: string | undefined,
    name: string | undefined
  ): { readonly written: string; readonly custom: boolean; readonly alone: boolean } {
    const open = (id === undefined ? undefined : this.byId.get(id)) ?? this.byName.get(name ?? "")
    const call = open?.shift()
    return call === undefined
      ? { written: this.claim(id, "answer"), custom: false, alone: true }
      : { written: call.written, custom: call.custom, alone: false }
  }
}

/** Whether OpenAI made this signature of reasoning. The API refuses any other. */
const isOwnSignature = (signature: unknown): signature is string =>
  typeof signature === "string" && signature.startsWith("gAAAA")

const imageUrl = ({ fileData, inlineData }: Part): string | undefined => {
  if (inlineData !== undefined) {
    const { data, mimeType = "" } = inlineData
    return data !== undefined && (mimeType === "" || mimeType.startsWith("image/"))
      ? `data:${mimeType};base64,${data}`
      : undefined
  }
  const { fileUri, mimeType = "image/" } = fileData ?? {}
  return fileUri !== undefined && /^https?:/.test(fileUri) && mimeType.startsWith("image/") ? fileUri : undefined
}

const messageBlock = (role: Content["role"], part: Part): Json | undefined => {
  if (isText(part)) return { type: role === "model" ? "output_text" : "input_text", text: part.text }
  const url = role === "user" && isMedia(part) ? imageUrl(part) : undefined
  return url === undefined ? undefined : { type: "input_image", image_url: url }
}

const isEmptyText = (block: Json): boolean => block.text === ""

const messageItem = (role: Content["role"], pieces: ReadonlyArray<Piece>): Json | undefined => {
  const content = pieces.map(({ part }) => messageBlock(role, part)).filter((block) => block !== undefined)
  return content.every(isEmptyText)
    ? undefined
    : { type: "message", role: role === "model" ? "assistant" : "user", content }
}

const reasoningItem = (pieces: ReadonlyArray<Piece>): Json => {
  const signature = pieces.at(-1)?.part.thoughtSignature
  const own = isOwnSignature(signature)
  const only = pieces.length === 1 && pieces[0]?.part.text === "" && own
  return {
    type: "reasoning",
    summary: only ? [] : pieces.map(({ part }) => ({ type: "summary_text", text: part.text ?? "" })),
    encrypted_content: own ? signature : null
  }
}

/** Returns the only argument of a call if it is a text under this key. */
const onlyArgument = (args: unknown, key: string): string | undefined =>
  isJson(args) && Object.keys(args).length === 1 ? textAt(args, key) : undefined

const argumentsText = ({ part, source }: Piece): string => {
  const args = part.functionCall?.args
  if (args === undefined) return ""
  const raw = onlyArgument(args, "arguments")
  if (raw !== undefined && raw !== "" && objectOf(raw) === undefined) return raw
  return sliceAt(source ?? "", ["functionCall", "args"]) ?? JSON.stringify(args)
}

const callItem = (piece: Piece, name: string, id: string | undefined, calls: Calls): Json => {
  const input = onlyArgument(piece.part.functionCall?.args, "input")
  const written = calls.call(id, name, input !== undefined)
  return input === undefined
    ? { type: "function_call", name, arguments: argumentsText(piece), call_id: written }
    : { type: "custom_tool_call", status: "completed", call_id: written, name, input }
}

/** Writes a block of another agent's result as a content item of Codex. */
const contentItem = (block: Json): Json => {
  if (typeof block.text === "string") return { type: "input_text", text: block.text }
  const url = imageUrl(messageMedia(block) ?? {})
  return url === undefined
    ? { type: "input_text", text: JSON.stringify(block) }
    : { type: "input_image", image_url: url }
}

const isOwnItem = (block: Json): boolean =>
  (block.type === "input_text" && typeof block.text === "string") ||
  (block.type === "input_image" && typeof block.image_url === "string")

/** Returns the output of a result as Codex sees it: its text, its blocks, or the JSON of anything else. */
const outputOf = (piece: Piece): unknown => {
  const { part, source } = piece
  const text = outputText(part)
  if (text !== undefined) return text
  const { response } = part.functionResponse ?? {}
  const [blocks, ...others] = isJson(response) ? Object.values(response) : []
  if (Array.isArray(blocks) && blocks.length > 0 && others.length === 0 && blocks.every(isJson)) {
    return blocks.every(isOwnItem) ? blocks : blocks.map(contentItem)
  }
  return sliceAt(source ?? "", ["functionResponse", "response"]) ?? JSON.stringify(response ?? "")
}

/**
 * The content that one item can hold: a run of message blocks, a run of thoughts up to a signature, a call, a result, or
 * nothing.
 */
type Kind = "message" | "thought" | "call" | "answer" | "none"

/** Whether a model runs behind Codex's own API. */
const isOwnModel = (model: string | undefined): boolean => model !== undefined && /^(?:gpt|o\d|codex)/i.test(model)

const kindOf = (role: Content["role"], part: Part): Kind => {
  if (isCall(part)) return role === "model" ? "call" : "none"
  if (isResponse(part)) return role === "user" ? "answer" : "none"
  if (isThought(part)) return role === "model" && part.text !== undefined ? "thought" : "none"
  return messageBlock(role, part) === undefined ? "none" : "message"
}

/**
 * Whether a thought can be sent back to the model that wrote it: signed by OpenAI, or unsigned in a message of one of their
 * models. The API refuses any other.
 */
const isOwnThought = (pieces: ReadonlyArray<Piece>, model: string | undefined): boolean => {
  const signature = pieces.at(-1)?.part.thoughtSignature
  return signature === undefined ? isOwnModel(model) : isOwnSignature(signature)
}

const groupsOf = (
  role: Content["role"],
  pieces: ReadonlyArray<Piece>,
  model: string | undefined
): ReadonlyArray<{ readonly kind: Kind; readonly pieces: ReadonlyArray<Piece> }> => {
  const groups: Array<{ readonly kind: Kind; readonly pieces: Array<Piece> }> = []
  for (const piece of pieces) {
    const kind = kindOf(role, piece.part)
    const last = groups.at(-1)
    const ended = kind === "thought" && last?.pieces.at(-1)?.part.thoughtSignature !== undefined
    const goesOn = kind === last?.kind && (kind === "message" || kind === "none" || (kind === "thought" && !ended))
    if (goesOn) last?.pieces.push(piece)
    else groups.push({ kind, pieces: [piece] })
  }
  if (groups.length === 0) return [{ kind: "none", pieces: [] }]
  return groups.map((group) =>
    group.kind !== "thought" || isOwnThought(group.pieces, model) ? group : { ...group, kind: "none" }
  )
}

// --- what Codex will not see --------------------------------------------------------------------------------------------

const ownKeys = new Set([
  "text",
  "thought",
  "thoughtSignature",
  "functionCall",
  "functionResponse",
  "inlineData",
  "fileData"
])

/** Returns the kind of a part that no item can hold. */
const homeless = (role: Content["role"], part: Part): string => {
  if (isCall(part)) return "call in the user's role"
  if (isResponse(part)) return "answer in the model's role"
  if (isThought(part)) return role === "model" ? "thought of another model" : "thought in the user's role"
  if (!isMedia(part)) return "part of an unknown kind"
  if (role === "model") return "file of the model"
  return part.fileData === undefined ? "file that is no image" : "file by address"
}

/** Returns the kinds of a part's content that Codex or its model will not see. */
const unheldIn = (kind: Kind, role: Content["role"], part: Part): ReadonlyArray<string> => {
  if (kind === "none") return [homeless(role, part)]
  const unheld: Array<string> = []
  if (kind !== "thought" && part.thoughtSignature !== undefined) unheld.push("signature of another model")
  if (part.functionResponse?.parts !== undefined) unheld.push("file in an answer")
  if (Object.keys(part).some((key) => !ownKeys.has(key))) unheld.push("key of a part")
  return unheld
}

// --- the rollout --------------------------------------------------------------------------------------------------------

const nothing: Usage = { prompt: 0, answer: 0, thoughts: 0, cached: 0 }

const countsOf = (usage: Usage) => ({
  input_tokens: usage.prompt,
  cached_input_tokens: usage.cached,
  ...(usage.cacheWrite === undefined ? {} : { cache_write_input_tokens: usage.cacheWrite }),
  output_tokens: usage.answer + usage.thoughts,
  reasoning_output_tokens: usage.thoughts,
  total_tokens: usage.prompt + usage.answer + usage.thoughts
})

/** Returns what a reader makes of an item. The item is spelled as it would be written, so exact texts need no search. */
const readBack = (item: Json, summary?: string | undefined): ItemMessage | undefined => {
  const message = readItem(item, nowhere, new Skipped(), { summary })
  return isProblem(message) ? undefined : message
}

const carriedJoins = (role: Content["role"]): ItemMessage["joins"] => (role === "model" ? "model" : undefined)

class Rollout {
  readonly lines: Array<string> = []
  readonly unheld = new Skipped()
  private readonly shown = new VisibleMessages()
  /** The kind of message that a reader would join the next item to. */
  private open: ItemMessage["joins"]
  private calls = new Calls()
  /** Names of all calls so far, in file order, by which a reader names their results. */
  private readonly names = new Map<string, string>()
  private model: string | undefined
  private total = nothing
  private readonly time: ReturnType<typeof clock>
  private readonly transcript: Transcript

  constructor(transcript: Transcript) {
    this.transcript = transcript
    this.time = clock(transcript.steps, true)
  }

  /** `payload` is well-formed already. */
  private record(type: string, payload: Json): Json {
    return { timestamp: isoTime(this.time.now), type, payload }
  }

  private write(type: string, payload: Json): void {
    this.lines.push(recordLine(this.record(type, wellFormed(payload))))
  }

  meta(): void {
    const { cwd = "", session, steps } = this.transcript
    const isOwn = isUuid(session)
    const payload = {
      id: isOwn ? session : uuidOf(session ?? `${this.time.now} ${steps.length}`)(0),
      timestamp: isoTime(this.time.now),
      cwd,
      originator: "palimpsest",
      cli_version: "0.0.0",
      source: "cli"
    }
    const marks = isOwn ? {} : wellFormed({ session: session ?? null })
    this.lines.push(recordLine(this.record("session_meta", wellFormed(payload)), {}, marks))
    this.context(this.transcript.model)
  }

  /** Codex resumes under its own settings; these are cautious defaults. */
  private context(model: string | undefined): void {
    if (model === undefined || model === this.model) return
    this.model = model
    this.write("turn_context", {
      cwd: this.transcript.cwd ?? "",
      approval_policy: "on-request",
      sandbox_policy: { type: "read-only" },
      model,
      summary: "auto"
    })
  }

  message(step: Extract<Step, { readonly _tag: "Message" }>): void {
    const { draft } = step
    this.time.at(draft)
    if (draft.content.role === "model") this.context(draft.model)
    this.shown.add(step)
    const { open, units } = this.units(draft, this.open)
    this.open = open
    this.leave(draft, units)
    for (const { exact, item, marks, role } of units) {
      this.lines.push(markedLine(this.record("response_item", item ?? { type: carrier, role }), exact, marks))
    }
    this.say(draft)
    if (draft.usage !== undefined && draft.content.role === "model") this.count(draft.usage)
  }

  /** Counts the content of a message that Codex will not see. */
  private leave({ content }: Draft, units: ReadonlyArray<Unit>): void {
    if (Object.keys(content).some((key) => key !== "role" && key !== "parts")) this.unheld.add("key of a message")
    for (const { unheld } of units) for (const what of unheld) this.unheld.add(what)
  }

  /** Writes the event that the user sees. Codex lists sessions and separates turns by the user's events. */
  private say({ author, content }: Draft): void {
    if (author !== undefined) return
    const text = content.parts.flatMap((part) => (isText(part) && part.text !== "" ? [part.text] : [])).join("\n")
    if (text === "") return
    this.write("event_msg", { type: content.role === "user" ? "user_message" : "agent_message", message: text })
  }

  private count(usage: Usage): void {
    if (usage.prompt + usage.answer + usage.thoughts === 0) return
    this.total = addUsage(this.total, usage)
    this.tokenCount(countsOf(usage))
    // A reader begins the next message here.
    this.open = undefined
  }

  private tokenCount(last: Json): void {
    const info = { total_token_usage: countsOf(this.total), last_token_usage: last, model_context_window: null }
    this.write("event_msg", { type: "token_count", info, rate_limits: null })
  }

  /**
   * Writes a token count after a compaction, as Codex does. Codex trusts the last count of its file, and would compact again
   * at once because of the earlier one.
   */
  private *recount(): SlicedWork<void> {
    let tokens = 0
    for (const { content } of this.shown.drafts) for (const part of content.parts) tokens += yield* partTokens(part)
    this.tokenCount({ ...countsOf(nothing), total_tokens: tokens })
  }

  *compaction(step: Extract<Step, { readonly _tag: "Compaction" }>): SlicedWork<void> {
    this.shown.add(step)
    this.calls = new Calls()
    const summary = step.insert.find(({ author }) => author === "summary")
    const message = textAt(wellFormed({ message: summary === undefined ? "" : plainText(summary.content) }), "message")
    this.time.at(summary)
    const items: Array<Json> = []
    const layout: Array<Layout> = []
    const carried: Array<Piece> = []
    const inserted = new Set(step.insert)
    let before: ItemMessage["joins"]
    for (const draft of this.shown.drafts) {
      const { open, units } = this.units(draft, before, message)
      if (inserted.has(draft)) this.leave(draft, units)
      before = open
      for (const { exact, item, marks, role } of units) {
        const about = { role, ...marks, ...(exact === undefined ? {} : { parts: exact.length }) }
        if (item === undefined) layout.push({ item: items.length, missing: true, ...about })
        else if (Object.keys(about).length > 1) layout.push({ item: items.length, ...about })
        for (const piece of exact ?? []) carried.push(piece)
        if (item !== undefined) items.push(item)
      }
      yield
    }
    const payload = { message, replacement_history: items }
    const marks = {
      ...(step.trigger === "auto" ? {} : { trigger: step.trigger }),
      ...(layout.length === 0 ? {} : { layout })
    }
    this.lines.push(markedLine(this.record("compacted", payload), carried.length === 0 ? undefined : carried, marks))
    yield* this.recount()
    this.open = undefined
  }

  /**
   * Returns a message as items, in order. `before` is the kind of message that a reader has just read, `summary` the text
   * that a compaction names as its summary.
   */
  private units(
    { author, content, model = this.transcript.model, source }: Draft,
    before: ItemMessage["joins"],
    summary?: string | undefined
  ): { readonly units: ReadonlyArray<Unit>; readonly open: ItemMessage["joins"] } {
    const { role } = content
    this.calls.turn(role)
    let open = before
    const units = groupsOf(role, piecesOf({ content, ...(source === undefined ? {} : { source }) }), model).map(
      ({ kind, pieces }, index): Unit => {
        const { item, unheld } = this.item(kind, role, pieces)
        const written = item === undefined ? undefined : this.asRead(item, author, pieces, summary)
        const kindOfMessage = written === undefined ? carriedJoins(role) : written.message.joins
        const joins = continuesMessage(open, kindOfMessage)
        if (index === 0) open = kindOfMessage
        const known = written?.message.author
        return {
          role,
          item: written?.item,
          exact: written?.same === true ? undefined : pieces,
          marks: {
            ...(known === author ? {} : { author: author ?? null }),
            ...(joins === index > 0 ? {} : { message: index > 0 ? "same" : "new" })
          },
          unheld: [...unheld, ...pieces.flatMap(({ part }) => unheldIn(kind, role, part))]
        }
      }
    )
    return { units, open }
  }

  /**
   * Writes an item, after an author note when no form of Codex's own shows that the user did not write it: the model knows no
   * other agent's. Returns what a reader makes of it, and whether that is the same pieces. Undefined when a reader makes nothing of it.
   */
  private asRead(
    item: Json,
    author: Author | undefined,
    pieces: ReadonlyArray<Piece>,
    summary: string | undefined
  ): { readonly item: Json; readonly message: ItemMessage; readonly same: boolean } | undefined {
    const message = readBack(item)
    if (message === undefined) return undefined
    const parts = pieces.map(({ part }) => part)
    const isKnown = message.author === author && (author !== "program" || authorInCodex(parts) === author)
    const isForeign = item.type === "message" && message.role === "user" && !isKnown
    const noteFirst = withAuthorNote({
      content: { role: message.role, parts },
      ...(author === undefined ? {} : { author })
    })
    const withNote =
      isForeign && noteFirst.length > pieces.length ? wellFormed(messageItem("user", noteFirst) ?? item) : item
    const read = withNote === item && summary === undefined ? message : (readBack(withNote, summary) ?? message)
    // A call that comes later would also name the result.
    const isNamed = read.parts.every((part) => !isOpenAnswer(part) || this.names.has(part.answer.id ?? ""))
    const list = namedPieces(read.parts, (call) => this.names.get(call))
    return { item: withNote, message: read, same: isNamed && samePieces(list, pieces) }
  }

  /** Writes some parts in Codex's own form. */
  private item(
    kind: Kind,
    role: Content["role"],
    pieces: ReadonlyArray<Piece>
  ): { readonly item: Json | undefined; readonly unheld: ReadonlyArray<string> } {
    const [first] = pieces
    if (first === undefined) return { item: undefined, unheld: ["empty message"] }
    switch (kind) {
      case "none":
        return { item: undefined, unheld: [] }
      case "message": {
        const item = messageItem(role, pieces)
        return item === undefined ? { item, unheld: ["empty message"] } : { item: wellFormed(item), unheld: [] }
      }
      case "thought":
        return { item: wellFormed(reasoningItem(pieces)), unheld: [] }
      case "call": {
        const { id, name = "" } = first.part.functionCall ?? {}
        const item = wellFormed(callItem(first, name, id, this.calls))
        this.names.set(textAt(item, "call_id") ?? "", textAt(item, "name") ?? "")
        return { item, unheld: [] }
      }
      case "answer": {
        const { id, name } = first.part.functionResponse ?? {}
        const { alone, custom, written } = this.calls.answer(id, name)
        const type = custom ? "custom_tool_call_output" : "function_call_output"
        const item = wellFormed({ type, call_id: written, output: outputOf(first) })
        return { item, unheld: alone ? ["answer without a call"] : [] }
      }
    }
  }
}

/**
 * Writes a Codex CLI rollout that Codex can resume. A compaction holds everything that was shown from then on. A note in
 * front of a message in the user's role names an author other than the user when Codex's own form does not. Ids and times
 * that Codex needs and the session lacks are always the same for the same conversation.
 */
export const writeCodex: Writer = function* (transcript): SlicedWork<Written> {
  const rollout = new Rollout(transcript)
  rollout.meta()
  for (const step of transcript.steps) {
    if (step._tag === "Message") rollout.message(step)
    else yield* rollout.compaction(step)
    yield
  }
  return { lines: rollout.lines, unheld: rollout.unheld.counts }
}
