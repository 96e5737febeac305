/** Writes Pi sessions of version 3: a header, then entries, each the child of the previous one. */

import {
  isCall,
  isErrorResponse,
  isResponse,
  isText,
  type Content,
  isThought,
  outputText,
  type Part
} from "../../content/Content.ts"
import { messageMedia } from "../../content/MediaBlocks.ts"
import type { Draft } from "../../conversation/Conversation.ts"
import { foreignNote } from "../../conversation/Projection.ts"
import { isJson, type Json } from "../../text/JsonObject.ts"
import {
  type CallOf,
  type Cut,
  isSummary,
  layoutWriter,
  type NativeCall,
  nothingInPlace,
  type RecordIds,
  type Row,
  type SessionLines,
  unheldKind
} from "../CompactionLayout.ts"
import { type Piece, piecesOf } from "../ExactParts.ts"
import { countsOf } from "../JsonRecord.ts"
import { listedBlocks } from "../ListedBlocks.ts"
import { recordLine, exactLine, type LineContent, type Marks } from "../RecordMarks.ts"
import type { Skipped } from "../Skipped.ts"
import type { Transcript, Writer } from "../Transcript.ts"
import { clock, isoTime, providerOf, shortIdOf } from "../WrittenRecords.ts"
import { nativeEntry } from "./PiReader.ts"
import { unknownModel } from "./Record.ts"

const signature = (key: string, { thoughtSignature }: Part) =>
  thoughtSignature === undefined ? {} : { [key]: thoughtSignature }

const imageBlock = ({ inlineData: { data, mimeType } = {} }: Part): Json | undefined =>
  data !== undefined && mimeType?.startsWith("image/") === true ? { type: "image", data, mimeType } : undefined

/** Returns the block of a part of a message; undefined when Pi has none for it. */
const blockOf = (role: Content["role"], part: Part, call: NativeCall | undefined): Json | undefined => {
  if (isText(part)) return { type: "text", text: part.text }
  if (role === "user") return imageBlock(part)
  if (isCall(part)) {
    const { args, name } = part.functionCall
    const block = { type: "toolCall", id: call?.id, name, arguments: isJson(args) ? args : {} }
    return { ...block, ...signature("thoughtSignature", part) }
  }
  return isThought(part)
    ? { type: "thinking", thinking: part.text ?? "", ...signature("thinkingSignature", part) }
    : undefined
}

/** Returns a block of another agent's result in Pi's form. */
const resultBlock = (block: unknown): Json => {
  if (isJson(block) && block.type === "text" && typeof block.text === "string") return block
  const media = messageMedia(block)
  return (media === undefined ? undefined : imageBlock(media)) ?? { type: "text", text: JSON.stringify(block) }
}

/** Returns the content of a result as blocks. */
const resultContent = (part: Part): ReadonlyArray<Json> => {
  const text = outputText(part)
  if (text !== undefined) return text === "" ? [] : [{ type: "text", text }]
  const json = JSON.stringify(part.functionResponse?.response) ?? ""
  return listedBlocks(part)?.map(resultBlock) ?? [{ type: "text", text: json }]
}

/** Returns the blocks of parts, and counts those that have none. */
const blocksOf = (
  role: Content["role"],
  parts: ReadonlyArray<Part>,
  call: CallOf,
  unheld: Skipped
): ReadonlyArray<Json> =>
  parts.flatMap((part, index) => {
    const block = blockOf(role, part, call(index))
    if (block !== undefined) return [block]
    unheld.add(unheldKind(role, part))
    return []
  })

/** The protocols of providers, as Pi names them. */
const apis: Readonly<Record<string, string>> = {
  anthropic: "anthropic-messages",
  openai: "openai-responses",
  google: "google-generative-ai"
}

const servedBy = (model: string | undefined) => {
  const provider = providerOf(model)
  return { api: apis[provider] ?? provider, provider, model: model ?? unknownModel }
}

/** The type under which Pi stores messages that a program added. */
const customType = "palimpsest"

/** An entry to write: its own form, and the parts that it represents. */
interface Entry {
  readonly record: Json
  readonly pieces: ReadonlyArray<Piece>
  readonly isResult: boolean
}

/** Returns the stop reason. Pi does not send aborted answers to a model, so an aborted one represents an empty answer. */
const stopReason = ({ content: { parts } }: Draft): string =>
  parts.length === 0 ? "aborted" : parts.some(isCall) ? "toolUse" : "stop"

const usageRecord = ({ usage }: Draft): Json => {
  const { cacheRead, cacheWrite, input, output } = countsOf(usage)
  return {
    input,
    output,
    cacheRead,
    cacheWrite,
    totalTokens: input + output + cacheRead + cacheWrite,
    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 }
  }
}

const message = (value: Json): Json => ({ type: "message", message: value })

const modelEntry = (draft: Draft, model: string | undefined, at: number, call: CallOf, unheld: Skipped): Entry => {
  const { parts } = draft.content
  for (const part of parts) if (isText(part) && part.thoughtSignature !== undefined) unheld.add("signatures")
  const content = blocksOf("model", parts, call, unheld)
  const about = { ...servedBy(model), usage: usageRecord(draft), stopReason: stopReason(draft), timestamp: at }
  return { record: message({ role: "assistant", content, ...about }), pieces: piecesOf(draft), isResult: false }
}

const resultEntry = (piece: Piece, call: NativeCall, at: number, unheld: Skipped): Entry => {
  const { part } = piece
  if (part.functionResponse?.parts !== undefined) unheld.add("media in results")
  const record = message({
    role: "toolResult",
    toolCallId: call.id,
    toolName: part.functionResponse?.name ?? call.name,
    content: resultContent(part),
    isError: isErrorResponse(part),
    timestamp: at
  })
  return { record, pieces: [piece], isResult: true }
}

/** Returns the entry of a user message. Text of a program or a model in the user's role becomes a custom message. */
const userEntry = (draft: Draft, pieces: ReadonlyArray<Piece>, at: number, unheld: Skipped, alone: boolean): Entry => {
  const parts = pieces.map(({ part }) => part)
  const content = blocksOf("user", parts, () => undefined, unheld)
  if (draft.author === undefined) {
    return { record: message({ role: "user", content, timestamp: at }), pieces, isResult: false }
  }
  const note = alone && content.length > 0 ? foreignNote(draft) : undefined
  const shown = note === undefined ? content : [{ type: "text", text: note }, ...content]
  return { record: { type: "custom_message", customType, content: shown, display: true }, pieces, isResult: false }
}

/** Returns the entries of a user message: one for each result, then one for everything else. */
const userEntries = (draft: Draft, at: number, call: CallOf, unheld: Skipped): ReadonlyArray<Entry> => {
  const results: Array<Entry> = []
  const others: Array<Piece> = []
  for (const [index, piece] of piecesOf(draft).entries()) {
    const made = isResponse(piece.part) ? call(index) : undefined
    if (made === undefined) others.push(piece)
    else results.push(resultEntry(piece, made, at, unheld))
  }
  return results.length > 0 && others.length === 0
    ? results
    : [...results, userEntry(draft, others, at, unheld, results.length === 0)]
}

/** Whether the record of a compaction can hold this message: one text and nothing else. */
const holds = (draft: Draft): boolean => draft.content.parts.length === 1 && isSummary(draft)

/** The entries of a session while they are written. */
const sessionEntries = (transcript: Transcript, session: string, ids: RecordIds): SessionLines => {
  const time = clock(transcript.steps)
  const cwd = transcript.cwd === undefined ? {} : { cwd: transcript.cwd }
  const lines = [recordLine({ type: "session", version: 3, id: session, timestamp: isoTime(time.now), ...cwd })]
  let last: string | null = null
  let model: string | undefined
  /** Whether the last message was a result, so that a reader would join the next one to it. */
  let isResult = false

  const about = (id: string, at: number): Json => {
    return { id, parentId: last, timestamp: isoTime(at) }
  }

  const add = (id: string, line: string): void => {
    lines.push(line)
    last = id
  }

  const addExact = (id: string, record: Json, content: LineContent): void => {
    add(id, exactLine(record, content, nativeEntry))
  }

  const changeModel = (to: string | undefined, at: number): void => {
    if (to === undefined || to === model) return
    const { provider } = servedBy(to)
    const id = ids.fresh()
    add(id, recordLine({ type: "model_change", ...about(id, at), provider, modelId: to }))
    model = to
  }

  const row = (item: Row, call: CallOf, unheld: Skipped): void => {
    const { draft } = item
    const at = time.at(draft, item.again !== undefined)
    const own = draft.model ?? transcript.model
    if (draft.content.role === "model") changeModel(own, at)
    const natives =
      draft.content.role === "model" ? [modelEntry(draft, own, at, call, unheld)] : userEntries(draft, at, call, unheld)
    const pieces = piecesOf(draft)
    const order = natives.flatMap((one) => one.pieces)
    const inOrder = order.every(({ part }, place) => part === pieces[place]?.part)
    const again = item.again === undefined ? undefined : ids.of(item.again)
    const isClosed = item.inserted || again !== undefined
    for (const [k, native] of natives.entries()) {
      const id = ids.of(item, k)
      const joins = native.isResult && isResult && !(k > 0 && isClosed)
      const goesOn: Marks = joins ? {} : { message: "same" }
      const marks: Marks =
        k > 0
          ? goesOn
          : {
              ...(joins ? { message: "new" } : {}),
              ...(item.inserted ? { inserted: true } : {}),
              ...(again === undefined ? {} : { again })
            }
      addExact(
        id,
        { ...native.record, ...about(id, at) },
        {
          pieces: inOrder ? native.pieces : k === 0 ? pieces : [],
          marks,
          opens: k === 0 ? draft : undefined
        }
      )
      isResult = native.isResult
    }
  }

  const cut = (item: Cut): void => {
    const { kept, summary } = item
    const { tokensBefore = 0, trigger } = item.compaction
    const id = ids.of(item)
    const [first] = summary?.content.parts ?? []
    const record = {
      type: "compaction",
      ...about(id, time.at(summary)),
      summary: first?.text ?? nothingInPlace,
      // A compaction that kept nothing names itself: no entry before it has that id.
      firstKeptEntryId: kept === undefined ? id : ids.of(kept),
      tokensBefore
    }
    addExact(id, record, {
      pieces: summary === undefined ? [] : piecesOf(summary),
      marks: trigger === "auto" ? {} : { trigger },
      opens: summary
    })
    isResult = false
  }

  /** Names the model with which the session goes on. */
  const close = (): void => {
    changeModel(transcript.model, time.now)
  }

  return { lines, row, cut, close }
}

/**
 * Writes a Pi session of version 3. A compaction that replaced messages by one text names the first entry that it kept. Any
 * other compaction is followed by everything that Pi should see. A reader returns each message once.
 */
export const writePi: Writer = layoutWriter(
  { holds, keepsById: true, isFit: (id) => id !== "", idOf: shortIdOf, isOwn: (id) => id !== "" },
  sessionEntries
)
