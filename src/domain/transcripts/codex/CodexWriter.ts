/**
 * Writes Codex CLI rollouts. Every message is read back before it is written. When the items of its own form would not give the same
 * parts, the first one carries the exact parts besides.
 *
 * One file: the items and the records of one format and direction.
 */

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
import type { Draft } from "../../conversation/Conversation.ts"
import { foreignNote } from "../../conversation/Projection.ts"
import { isJson, type Json } from "../../text/JsonObject.ts"
import { sliceAt } from "../../text/JsonSource.ts"
import { wellFormedJson } from "../../text/JsonText.ts"
import { runSync } from "../../text/SlicedWork.ts"
import { addUsage, partTokens, type Usage } from "../../tokens/Tokens.ts"
import {
  type CallOf,
  type Cut,
  layoutWriter,
  type NativeCall,
  type Row,
  type SessionLines,
  unheldKind
} from "../CompactionLayout.ts"
import { namedPieces, nowhere, type Piece, piecesOf, samePieces } from "../ExactParts.ts"
import { textAt } from "../JsonRecord.ts"
import { isProblem } from "../Problem.ts"
import { recordLine, type Marks } from "../RecordMarks.ts"
import { Skipped } from "../Skipped.ts"
import type { Transcript, Writer } from "../Transcript.ts"
import { authorInCodex } from "../voice/Voice.ts"
import { clock, isoTime, isUuid, uuidOf } from "../WrittenRecords.ts"
import { carrier, continuesMessage, escaped, type ItemMessage, messageOf, objectOf, readItem } from "./Items.ts"

/** Replaces lone surrogates by U+FFFD in Codex's own form: it refuses a line that contains one. */
const wellFormed = (record: Json): Json => {
  const json = JSON.stringify(record)
  if (!json.includes("\\ud")) return record
  // Own JSON: the line was parsed before.
  const value: unknown = JSON.parse(wellFormedJson(json))
  return isJson(value) ? value : record
}

// --- parts as items -----------------------------------------------------------------------------------------------------

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

const callItem = (piece: Piece, name: string, call_id: string | undefined): Json => {
  const input = onlyArgument(piece.part.functionCall?.args, "input")
  return input === undefined
    ? { type: "function_call", name, arguments: argumentsText(piece), call_id }
    : { type: "custom_tool_call", status: "completed", call_id, name, input }
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

/** The content that one item can hold: a run of message blocks, a run of thoughts up to a signature, a call, a result, or nothing. */
type Kind = "message" | "thought" | "call" | "answer" | "none"

const kindOf = (role: Content["role"], part: Part, call: NativeCall | undefined): Kind => {
  if (isCall(part) || isResponse(part)) return call === undefined ? "none" : isCall(part) ? "call" : "answer"
  if (isThought(part)) return role === "model" && part.text !== undefined ? "thought" : "none"
  return messageBlock(role, part) === undefined ? "none" : "message"
}

/** Some parts of a message, of which the first is the part `at`. */
interface Group {
  readonly kind: Kind
  readonly at: number
  readonly pieces: Array<Piece>
}

const groupsOf = (draft: Draft, call: CallOf): ReadonlyArray<Group> => {
  const groups: Array<Group> = []
  for (const [at, piece] of piecesOf(draft).entries()) {
    const kind = kindOf(draft.content.role, piece.part, call(at))
    const last = groups.at(-1)
    const isEnded = kind === "thought" && last?.pieces.at(-1)?.part.thoughtSignature !== undefined
    const goesOn = kind === "message" || kind === "none" || (kind === "thought" && !isEnded)
    if (last?.kind === kind && goesOn) last.pieces.push(piece)
    else groups.push({ kind, at, pieces: [piece] })
  }
  return groups
}

/**
 * Whether a thought can be sent back to the model that wrote it: signed by OpenAI, or unsigned in a message of one of their
 * models. The API refuses any other.
 */
const isOwnThought = (pieces: ReadonlyArray<Piece>, model: string | undefined): boolean => {
  const signature = pieces.at(-1)?.part.thoughtSignature
  return signature === undefined ? model !== undefined && /^(?:gpt|o\d|codex)/i.test(model) : isOwnSignature(signature)
}

/** Returns what a reader makes of an item. The item is spelled as it would be written, so exact texts need no search. */
const readBack = (item: Json, summary: string | undefined): ItemMessage | undefined => {
  const message = readItem(item, nowhere, new Skipped(), { summary })
  return isProblem(message) ? undefined : message
}

/** Returns the item of a message, after a note when no form of Codex's own shows that the user did not write it: the model knows no other agent's. */
const notedItem = (draft: Draft, pieces: ReadonlyArray<Piece>): Json | undefined => {
  const { author, content } = draft
  const item = messageItem(content.role, pieces)
  const note = item === undefined || content.role === "model" ? undefined : foreignNote(draft)
  if (item === undefined || note === undefined) return item
  const parts = pieces.map(({ part }) => part)
  const isKnown =
    readBack(item, undefined)?.author === author && (author !== "program" || authorInCodex(parts) === author)
  return isKnown ? item : messageItem(content.role, [{ part: { text: note }, source: undefined }, ...pieces])
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

/** An item of a message, with what it carries. */
interface WrittenItem {
  readonly item: Json
  readonly marks: Marks & { readonly escaped?: ReadonlyArray<string> }
}

/** A compaction whose messages are not all known yet. */
interface OpenCompaction {
  readonly cut: Cut
  /** The text that it names as its summary. */
  readonly message: string
  readonly rows: Array<{ readonly draft: Draft; readonly items: ReadonlyArray<WrittenItem> }>
}

const rollout = (transcript: Transcript, made: string): SessionLines => {
  const lines: Array<string> = []
  /** The kind of message that a reader would join the next item to. */
  let open: ItemMessage["joins"]
  let compacting: OpenCompaction | undefined
  /** Names of all calls so far, in file order, by which a reader names their results. */
  const names = new Map<string, string>()
  /** The ids of the calls of custom tools. */
  const custom = new Set<string>()
  let contextModel: string | undefined
  let total = nothing
  const time = clock(transcript.steps, true)

  const write = (type: string, payload: Json, marks: Json = {}): void => {
    const timestamp = isoTime(time.now)
    lines.push(recordLine({ timestamp, type, payload: wellFormed(payload) }, {}, marks))
  }

  /** Codex resumes under its own settings; these are cautious defaults. */
  const context = (model: string | undefined): void => {
    if (model === undefined || model === contextModel) return
    contextModel = model
    write("turn_context", {
      cwd: transcript.cwd ?? "",
      approval_policy: "on-request",
      sandbox_policy: { type: "read-only" },
      model,
      summary: "auto"
    })
  }

  const row = ({ again, draft, inserted }: Row, call: CallOf, unheld: Skipped): void => {
    const { content, model, usage } = draft
    const isSeen = inserted || again !== undefined
    if (!isSeen) {
      settle()
      time.at(draft)
      if (content.role === "model") context(model)
    }
    const items = itemsOf(draft, call, unheld)
    if (isSeen) {
      compacting?.rows.push({ draft, items })
      return
    }
    for (const { item, marks } of items) write("response_item", item, marks)
    say(draft)
    if (usage !== undefined && content.role === "model") count(usage)
  }

  /** Writes the event that the user sees. Codex lists sessions and separates turns by the user's events. */
  const say = ({ author, content }: Draft): void => {
    if (author !== undefined) return
    const text = content.parts.flatMap((part) => (isText(part) && part.text !== "" ? [part.text] : [])).join("\n")
    if (text === "") return
    write("event_msg", { type: content.role === "user" ? "user_message" : "agent_message", message: text })
  }

  const count = (usage: Usage): void => {
    if (usage.prompt + usage.answer + usage.thoughts === 0) return
    total = addUsage(total, usage)
    tokenCount(countsOf(usage))
    // A reader begins the next message here.
    open = undefined
  }

  const tokenCount = (last: Json): void => {
    const info = { total_token_usage: countsOf(total), last_token_usage: last, model_context_window: null }
    write("event_msg", { type: "token_count", info, rate_limits: null })
  }

  const cut = (cut: Cut): void => {
    settle()
    const summary = cut.compaction.insert.find(({ author }) => author === "summary")
    const message = summary === undefined ? "" : plainText(summary.content)
    time.at(summary)
    compacting = { cut, message: textAt(wellFormed({ message }), "message") ?? "", rows: [] }
    open = undefined
  }

  /**
   * Writes the compaction that is open, now that all that was shown from it on is known. A token count follows, as in Codex, which trusts
   * the last one of its file, and would compact again at once because of the earlier one.
   */
  const settle = (): void => {
    if (compacting === undefined) return
    const { cut, message, rows } = compacting
    compacting = undefined
    const { trigger } = cut.compaction
    const isNative = rows.every(({ items }) => items.every(({ marks }) => Object.keys(marks).length === 0))
    // The environment stays where it is.
    const messages = rows
      .filter(({ draft }) => draft.author !== "environment")
      .map(({ draft }) => ({
        role: draft.content.role,
        palimpsest: {
          ...(draft.author === undefined ? {} : { author: draft.author }),
          escaped: escaped(piecesOf(draft))
        }
      }))
    const history = rows.flatMap(({ items }) => items.map(({ item }) => item)).filter(({ type }) => type !== carrier)
    const marks = { ...(trigger === "auto" ? {} : { trigger }), ...(isNative ? {} : { messages }) }
    write("compacted", { message, replacement_history: history }, marks)
    const parts = rows.flatMap(({ draft }) => draft.content.parts)
    const tokens = parts.reduce((sum, part) => sum + runSync(partTokens(part)), 0)
    tokenCount({ ...countsOf(nothing), total_tokens: tokens })
    open = undefined
  }

  /** Returns a message as items, in order; one that only carries it, when Codex has no form for it. */
  const itemsOf = (draft: Draft, call: CallOf, unheld: Skipped): ReadonlyArray<WrittenItem> => {
    const { author, content } = draft
    const written = groupsOf(draft, call).flatMap((group) => {
      const native = itemOf(draft, group, call(group.at))
      const item = native === undefined ? undefined : wellFormed(native)
      for (const { part } of group.pieces) {
        if (item === undefined && !isText(part)) unheld.add(unheldKind(content.role, part))
        if (item !== undefined && part.thoughtSignature !== undefined && !isThought(part)) unheld.add("signatures")
        if (part.functionResponse?.parts !== undefined && item !== undefined) unheld.add("media in results")
      }
      const read = item === undefined ? undefined : readBack(item, compacting?.message)
      return item === undefined || read === undefined ? [] : [{ item, read }]
    })
    const list = namedPieces(
      written.flatMap(({ read }) => read.parts),
      (id) => names.get(id)
    )
    const [first] = written
    const isExact = first !== undefined && samePieces(list, piecesOf(draft))
    const own = written.map(({ item, read }) => ({ item, joins: read.joins }))
    const carried = { item: { type: carrier, role: content.role }, joins: messageOf(content.role, []).joins }
    const items = first === undefined ? [carried] : own
    const before = open
    open = items[0]?.joins
    return items.map(({ item, joins }, at): WrittenItem => {
      const isFirst = at === 0
      return {
        item,
        marks: {
          ...(!isFirst || first?.read.author === author ? {} : { author: author ?? null }),
          ...(continuesMessage(isFirst ? before : open, joins) === isFirst
            ? { message: isFirst ? "new" : "same" }
            : {}),
          ...(isExact ? {} : { escaped: isFirst ? escaped(piecesOf(draft)) : [] })
        }
      }
    })
  }

  /** Writes some parts in Codex's own form. */
  const itemOf = (draft: Draft, { kind, pieces }: Group, call: NativeCall | undefined): Json | undefined => {
    const [first] = pieces
    switch (kind) {
      case "message":
        return notedItem(draft, pieces)
      case "thought":
        return isOwnThought(pieces, draft.model ?? transcript.model) ? reasoningItem(pieces) : undefined
      case "call": {
        const item = first === undefined ? {} : wellFormed(callItem(first, call?.name ?? "", call?.id))
        const id = textAt(item, "call_id") ?? ""
        names.set(id, textAt(item, "name") ?? "")
        if (item.type === "custom_tool_call") custom.add(id)
        else custom.delete(id)
        return item
      }
      case "answer": {
        const type = custom.has(call?.id ?? "") ? "custom_tool_call_output" : "function_call_output"
        return first === undefined ? undefined : { type, call_id: call?.id, output: outputOf(first) }
      }
      case "none":
        return undefined
    }
  }

  const { cwd = "", session } = transcript
  const isOwn = isUuid(session)
  const meta = {
    id: isOwn ? session : uuidOf(made)(0),
    timestamp: isoTime(time.now),
    cwd,
    originator: "palimpsest",
    cli_version: "0.0.0",
    source: "cli"
  }
  write("session_meta", meta, isOwn ? {} : wellFormed({ session: session ?? null }))
  context(transcript.model)
  return { lines, row, cut, close: settle }
}

/**
 * Writes a Codex CLI rollout that Codex can resume. A compaction holds everything that was shown from then on. A note in
 * front of a message in the user's role names an author other than the user when Codex's own form does not. Ids and times
 * that Codex needs and the session lacks are always the same for the same conversation.
 */
export const writeCodex: Writer = layoutWriter(
  {
    holds: () => false,
    // OpenAI's API refuses a request with a longer one.
    isFit: (id) => id.isWellFormed() && id !== "" && id.length <= 64,
    takesLate: true
  },
  rollout
)
