import { isCall, isErrorResponse, isResponse, isText, isThought, outputText, type Part } from "../content/Content.ts"
import type { PartPlace } from "../conversation/CallPairs.ts"
import { type Draft, placeKey } from "../conversation/Conversation.ts"
import { foreignNote, missingResponse } from "../conversation/Projection.ts"
import { nativeMessage, synthetic } from "./ClaudeReader.ts"
import {
  callIdOf,
  clock,
  type Cut,
  Ids,
  isoTime,
  isSummary,
  type NativeCall,
  type NativeCalls,
  nativeCalls,
  nothingInPlace,
  owedCalls,
  type Row,
  stretchesOf,
  uuidOf
} from "./CompactionLayout.ts"
import { piecesOf, samePieces } from "./ExactParts.ts"
import { isJson, type Json } from "./JsonRecord.ts"
import { recordLine } from "./RecordLine.ts"
import { countsOf, keysMark, type Marks, usageMark } from "./RecordMarks.ts"
import { Skipped } from "./Skipped.ts"
import type { Writer } from "./Transcript.ts"

/**
 * Writes Claude Code transcripts: one message a line, each the child of the previous one. Blocks that the Anthropic API
 * would refuse are not in a line's own form, but among its exact parts.
 */

/** The version of Claude Code that the records imitate. */
const version = "2.1.39"

/** The text that Claude Code writes for an empty message, because the API accepts none. */
const noContent = "(no content)"

const isUuid = (id: string | undefined): id is string =>
  id !== undefined && /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i.test(id)

/** Whether the Anthropic API accepts the id of a call. */
const isFit = (id: string): boolean => /^[a-zA-Z0-9_-]{1,128}$/.test(id)

const images = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"])

// --- parts to blocks ----------------------------------------------------------------------------------------------------

/** A block, or the kind of a part that the API refuses. */
type Native = { readonly block: Json } | { readonly left: string | undefined }

const left = (kind?: string): Native => ({ left: kind })

const mediaBlock = (part: Part): Native => {
  const { fileData: file, inlineData: data } = part
  const mime = data?.mimeType ?? file?.mimeType ?? ""
  const type = images.has(mime) ? "image" : mime === "application/pdf" ? "document" : undefined
  if (data !== undefined) {
    return type === undefined || data.data === undefined
      ? left("media")
      : { block: { type, source: { type: "base64", media_type: mime, data: data.data } } }
  }
  const isWeb = /^https?:\/\//.test(file?.fileUri ?? "")
  return type === undefined || !isWeb ? left("files") : { block: { type, source: { type: "url", url: file?.fileUri } } }
}

const resultTypes = new Set(["text", "image", "document", "search_result", "tool_reference"])

/** Returns a block of another agent's result in Claude Code's form. */
const resultBlock = (block: unknown): Json => {
  if (isJson(block) && block.type === "image" && typeof block.data === "string") {
    return { type: "image", source: { type: "base64", media_type: block.mimeType, data: block.data } }
  }
  const known = isJson(block) && resultTypes.has(String(block.type))
  return known && (block.type !== "text" || typeof block.text === "string")
    ? block
    : { type: "text", text: JSON.stringify(block) }
}

const resultContent = (part: Part): unknown => {
  const text = outputText(part)
  if (text !== undefined) return text
  const response = part.functionResponse?.response
  const blocks = isJson(response) ? (response.content ?? response.error) : undefined
  return Array.isArray(blocks) && isJson(response) && Object.keys(response).length === 1
    ? blocks.map(resultBlock)
    : (JSON.stringify(response) ?? "")
}

/** Writes a result. The API refuses a failure without a text. */
const resultOf = (part: Part, call: NativeCall): Json => {
  const failed = isErrorResponse(part)
  const content = resultContent(part)
  const isEmpty = content === "" || (Array.isArray(content) && content.length === 0)
  return {
    type: "tool_result",
    tool_use_id: call.id,
    content: failed && isEmpty ? noContent : content,
    ...(failed ? { is_error: true } : {})
  }
}

const saidInResult = ({ functionResponse }: Part, unheld: Skipped): void => {
  if (functionResponse?.parts !== undefined) unheld.add("media in results")
}

const isForeign = (model: string | undefined): boolean => model !== undefined && !/claude/i.test(model)

/** Writes a thought. The API refuses thoughts without a signature that it can check. */
const thoughtBlock = (part: Part, model: string | undefined): Native =>
  part.thoughtSignature === undefined || isForeign(model)
    ? left("thoughts")
    : { block: { type: "thinking", thinking: part.text ?? "", signature: part.thoughtSignature } }

const textBlock = (part: Part): Native =>
  part.text === undefined || part.text === "" ? left() : { block: { type: "text", text: part.text } }

const isMedia = (part: Part): boolean => part.inlineData !== undefined || part.fileData !== undefined

const modelBlock = (part: Part, call: NativeCall | undefined, model: string | undefined): Native => {
  if (isCall(part)) {
    const { args, name } = part.functionCall
    return { block: { type: "tool_use", id: call?.id, name, input: isJson(args) ? args : {} } }
  }
  if (isResponse(part)) return left("results of the model")
  if (isThought(part)) return thoughtBlock(part, model)
  if (isText(part)) return textBlock(part)
  return left(isMedia(part) ? "media" : "unknown parts")
}

const userBlock = (part: Part, call: NativeCall | undefined): Native => {
  if (isCall(part)) return left("calls of the user")
  if (isResponse(part)) return call === undefined ? left("results without a call") : { block: resultOf(part, call) }
  if (isThought(part)) return left("thoughts")
  if (isText(part)) return textBlock(part)
  return isMedia(part) ? mediaBlock(part) : left("unknown parts")
}

/** Returns the blocks of a message in the order that the API requires: results first. */
const blocksOf = (
  { content }: Draft,
  model: string | undefined,
  call: (part: number) => NativeCall | undefined,
  unheld: Skipped
): ReadonlyArray<Json> => {
  const results: Array<Json> = []
  const others: Array<Json> = []
  for (const [index, part] of content.parts.entries()) {
    const native = content.role === "model" ? modelBlock(part, call(index), model) : userBlock(part, call(index))
    if ("left" in native) {
      if (native.left !== undefined) unheld.add(native.left)
      continue
    }
    saidInResult(part, unheld)
    if (part.thoughtSignature !== undefined && !isThought(part)) unheld.add("signatures")
    if (isResponse(part)) results.push(native.block)
    else others.push(native.block)
  }
  return [...results, ...others]
}

const isAnswer = (block: Json): boolean => block.type === "tool_result"

/** Returns the content of a user line. A single text is written as a string. */
const contentOf = (blocks: ReadonlyArray<Json>): unknown => {
  const [only] = blocks
  if (only === undefined) return noContent
  return blocks.length === 1 && only.type === "text" ? only.text : blocks
}

// --- lines --------------------------------------------------------------------------------------------------------------

/** Returns the blocks after a note that names their author, because the model does not see a line's flags. */
const withNote = (draft: Draft, blocks: ReadonlyArray<Json>): ReadonlyArray<Json> => {
  const note = foreignNote(draft)
  return note === undefined || blocks.length === 0 || blocks.some(isAnswer)
    ? blocks
    : [{ type: "text", text: note }, ...blocks]
}

const stopReason = (blocks: ReadonlyArray<Json>): string =>
  blocks.some((block) => block.type === "tool_use") ? "tool_use" : "end_turn"

const usageRecord = ({ usage }: Draft): Json => {
  const { cacheRead, cacheWrite, input, output } = countsOf(usage)
  const forAnHour = usage?.cacheWriteHour
  const forMinutes = cacheWrite - (forAnHour ?? 0)
  return {
    input_tokens: input,
    ...(usage !== undefined && usage.cacheWrite === undefined ? {} : { cache_creation_input_tokens: cacheWrite }),
    cache_read_input_tokens: cacheRead,
    output_tokens: output,
    ...(forAnHour === undefined
      ? {}
      : { cache_creation: { ephemeral_5m_input_tokens: forMinutes, ephemeral_1h_input_tokens: forAnHour } })
  }
}

/**
 * Derived from the line's own id. Claude Code joins lines with the same message id, even across a compaction, so no two
 * lines share one.
 */
const messageId = (uuid: string): string => `msg_${uuid.replaceAll("-", "")}`

const modelRecord = (draft: Draft, blocks: ReadonlyArray<Json>, model: string | undefined, uuid: string): Json => ({
  type: "assistant",
  message: {
    model: model ?? synthetic,
    id: messageId(uuid),
    type: "message",
    role: "assistant",
    content: blocks.length === 0 ? [{ type: "text", text: noContent }] : blocks,
    stop_reason: stopReason(blocks),
    stop_sequence: null,
    usage: usageRecord(draft)
  }
})

const userRecord = (draft: Draft, blocks: ReadonlyArray<Json>): Json => ({
  type: "user",
  message: { role: "user", content: contentOf(withNote(draft, blocks)) },
  ...(draft.author === undefined ? {} : { isMeta: true })
})

const summaryRecord = (draft: Draft, blocks: ReadonlyArray<Json>): Json => ({
  type: "user",
  message: { role: "user", content: blocks.length === 0 ? nothingInPlace : contentOf(withNote(draft, blocks)) },
  isVisibleInTranscriptOnly: true,
  isCompactSummary: true
})

const boundaryRecord = ({ compaction: { tokensBefore, trigger } }: Cut): Json => ({
  type: "system",
  subtype: "compact_boundary",
  content: "Conversation compacted",
  isMeta: false,
  level: "info",
  compactMetadata: { trigger, ...(tokensBefore === undefined ? {} : { preTokens: tokensBefore }) }
})

/** Drops the usage from a repeated message: after a compaction Claude Code would take it for the size of its context. */
const writtenAgain = ({ usage: _usage, ...draft }: Draft): Draft => draft

const isRow = (item: Row | Cut): item is Row => item._tag === "Row"

/** Returns the message that a row or a compaction writes. */
const draftOf = (item: Row | Cut): Draft | undefined => (isRow(item) ? item.draft : item.summary)

const nothing: Draft = { content: { role: "user", parts: [] }, author: "summary" }

/**
 * Writes a Claude Code transcript. Claude Code sees only the messages after the last compact boundary: the summary, the
 * other inserted messages, and the kept ones, which are written again. A reader returns each message once.
 */
export const writeClaude: Writer = function* (transcript) {
  const session = transcript.session ?? uuidOf(transcript.cwd ?? "")(0)
  const stretches = yield* stretchesOf(transcript.steps, isSummary, false)
  const uuids = new Ids(uuidOf(session))
  const known = new Map<Row | Cut, string>()
  for (const item of stretches.flat()) {
    yield 100
    const id = draftOf(item)?.origin?.ids[0]
    if (isUuid(id) && !(isRow(item) && item.again !== undefined) && uuids.claim(id)) known.set(item, id)
  }

  const time = clock(transcript.steps)
  const unheld = new Skipped()
  const names = new Map<string, string>()
  const lines: Array<string> = []
  let last: string | undefined
  /** Whether the last line holds results, so that a reader would join results in the next line to it. */
  let isResults = false

  const about = (uuid: string, parent: string | undefined, at: number): Json => ({
    parentUuid: parent ?? null,
    isSidechain: false,
    userType: "external",
    cwd: transcript.cwd,
    sessionId: session,
    version,
    uuid,
    timestamp: isoTime(at)
  })
  const uuidFor = (item: Row | Cut): string => {
    const uuid = known.get(item) ?? uuids.fresh()
    known.set(item, uuid)
    return uuid
  }
  /** Writes the line of a message in its own form, together with everything that this form would lose. */
  const line = (record: Json, draft: Draft, marks: Marks): string => {
    const native = recordLine(record)
    // Own JSON: the line was parsed before.
    const value: unknown = JSON.parse(native)
    const pieces = piecesOf(draft)
    const read = nativeMessage(isJson(value) ? value : {}, native, names)
    const all: Marks = {
      ...marks,
      ...(read.author === draft.author ? {} : { author: draft.author ?? null }),
      ...keysMark(draft),
      ...usageMark(draft, read.usage)
    }
    const isExact = samePieces(read.pieces, pieces)
    return isExact && Object.keys(all).length === 0 ? native : recordLine(record, isExact ? {} : { parts: pieces }, all)
  }
  const row = (item: Row, calls: NativeCalls, index: number): void => {
    const draft = item.again === undefined ? item.draft : writtenAgain(item.draft)
    const model = draft.model ?? transcript.model
    const uuid = uuidFor(item)
    const call = (part: number) => calls.get(placeKey({ item: index, part }))
    const blocks = blocksOf(draft, model, call, item.again === undefined ? unheld : new Skipped())
    for (const block of blocks) if (block.type === "tool_use") names.set(String(block.id), String(block.name))
    const results = blocks.some(isAnswer)
    const again = item.again === undefined ? undefined : known.get(item.again)
    const record = draft.content.role === "model" ? modelRecord(draft, blocks, model, uuid) : userRecord(draft, blocks)
    lines.push(
      line({ ...about(uuid, last, time.at(draft, item.again !== undefined)), ...record }, draft, {
        ...(results && isResults ? { message: "new" } : {}),
        ...(item.inserted ? { inserted: true } : {}),
        ...(again === undefined ? {} : { again })
      })
    )
    isResults = results
    last = uuid
  }
  const cut = (item: Cut): void => {
    const boundary = uuids.fresh()
    const logical = last === undefined ? {} : { logicalParentUuid: last }
    const at = time.at(item.summary)
    lines.push(recordLine({ ...about(boundary, undefined, at), ...logical, ...boundaryRecord(item) }))
    const draft = item.summary ?? nothing
    const uuid = uuidFor(item)
    lines.push(
      line(
        {
          ...about(uuid, boundary, at),
          ...summaryRecord(
            draft,
            blocksOf(draft, undefined, () => undefined, unheld)
          )
        },
        draft,
        {}
      )
    )
    last = uuid
  }

  /** Writes results for calls that got none: Claude Code drops a message whose call has no result. */
  const answer = (places: ReadonlyArray<PartPlace>, rows: ReadonlyArray<Row>, calls: NativeCalls): void => {
    const content = places.flatMap((place) => {
      const call = calls.get(placeKey(place))
      return call === undefined ? [] : [resultOf(missingResponse(call), call)]
    })
    const uuid = uuids.fresh()
    const at = time.at(rows[places[0]?.item ?? 0]?.draft, true)
    const record = { ...about(uuid, last, at), type: "user", message: { role: "user", content } }
    lines.push(recordLine(record, {}, { owed: true }))
    last = uuid
  }

  for (const [number, stretch] of stretches.entries()) {
    const rows = stretch.filter(isRow)
    const calls = yield* nativeCalls(rows, isFit, callIdOf(session))
    const owed = yield* owedCalls(
      rows.map(({ draft }) => draft.content),
      number === stretches.length - 1
    )
    let index = 0
    for (const item of stretch) {
      const from = lines.length
      if (isRow(item)) {
        row(item, calls, index)
        const places = owed.get(index)
        if (places !== undefined) answer(places, rows, calls)
        index += 1
      } else cut(item)
      yield lines.slice(from).reduce((size, one) => size + one.length * 8, 2_000)
    }
  }
  return { lines, unheld: unheld.counts }
}
