/**
 * Writes Claude Code transcripts: one message a line, each the child of the previous one. Blocks that the Anthropic API
 * would refuse are not in a line's own form, but among its exact parts.
 */

import {
  type Content,
  isCall,
  isErrorResponse,
  isResponse,
  isText,
  isThought,
  outputText,
  type Part,
  isMedia
} from "../../content/Content.ts"
import { blockMedia } from "../../content/MediaBlocks.ts"
import type { Draft } from "../../conversation/Conversation.ts"
import { foreignNote, missingResponse } from "../../conversation/Projection.ts"
import { isJson, type Json } from "../../text/JsonObject.ts"
import {
  type CallOf,
  type Cut,
  isSummary,
  layoutWriter,
  nothingInPlace,
  type RecordIds,
  type Row,
  type SessionLines,
  type NativeCall,
  unheldKind
} from "../CompactionLayout.ts"
import { piecesOf } from "../ExactParts.ts"
import { countsOf } from "../JsonRecord.ts"
import { listedBlocks } from "../ListedBlocks.ts"
import { recordLine, exactLine, type Marks } from "../RecordMarks.ts"
import type { Skipped } from "../Skipped.ts"
import type { Transcript, Writer } from "../Transcript.ts"
import { clock, isoTime } from "../WrittenRecords.ts"
import { nativeMessage } from "./Line.ts"
import { synthetic } from "./Record.ts"

/** The text that Claude Code writes for an empty message, because the API accepts none. */
const noContent = "(no content)"

const images = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"])

const mediaBlock = ({ fileData: file, inlineData: data }: Part): Json | undefined => {
  const mime = data?.mimeType ?? file?.mimeType ?? ""
  const type = images.has(mime) ? "image" : mime === "application/pdf" ? "document" : undefined
  if (type === undefined) return undefined
  if (data !== undefined) {
    return data.data === undefined ? undefined : { type, source: { type: "base64", media_type: mime, data: data.data } }
  }
  const isWeb = /^https?:\/\//.test(file?.fileUri ?? "")
  return isWeb ? { type, source: { type: "url", url: file?.fileUri } } : undefined
}

const resultTypes = new Set(["text", "image", "document", "search_result", "tool_reference"])

/** Returns a block of another agent's result in Claude Code's form. */
const resultBlock = (block: unknown): Json => {
  const media = isJson(block) && "source" in block ? undefined : blockMedia(block)
  const native = media === undefined ? undefined : mediaBlock(media)
  if (native !== undefined) return native
  const known = isJson(block) && resultTypes.has(String(block.type))
  return known && (block.type !== "text" || typeof block.text === "string")
    ? block
    : { type: "text", text: JSON.stringify(block) }
}

const resultContent = (part: Part): unknown =>
  outputText(part) ?? listedBlocks(part)?.map(resultBlock) ?? JSON.stringify(part.functionResponse?.response) ?? ""

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

const isForeign = (model: string | undefined): boolean => model !== undefined && !/claude/i.test(model)

/** Returns the block of a part; undefined for one that the API refuses, such as a thought without a signature that it can check. */
const blockOf = (
  role: Content["role"],
  part: Part,
  call: NativeCall | undefined,
  model: string | undefined
): Json | undefined => {
  if (isText(part)) return { type: "text", text: part.text }
  if (role === "user") {
    if (isResponse(part)) return call === undefined ? undefined : resultOf(part, call)
    return isMedia(part) ? mediaBlock(part) : undefined
  }
  if (isCall(part)) {
    const { args, name } = part.functionCall
    return { type: "tool_use", id: call?.id, name, input: isJson(args) ? args : {} }
  }
  return !isThought(part) || part.thoughtSignature === undefined || isForeign(model)
    ? undefined
    : { type: "thinking", thinking: part.text ?? "", signature: part.thoughtSignature }
}

/** Returns the blocks of a message in the order that the API requires: results first. */
const blocksOf = (
  { content }: Draft,
  model: string | undefined,
  call: CallOf,
  unheld: Skipped
): ReadonlyArray<Json> => {
  const results: Array<Json> = []
  const others: Array<Json> = []
  for (const [index, part] of content.parts.entries()) {
    if (isText(part) && part.text === "") continue
    const block = blockOf(content.role, part, call(index), model)
    if (block === undefined) {
      unheld.add(unheldKind(content.role, part))
      continue
    }
    if (part.functionResponse?.parts !== undefined) unheld.add("media in results")
    if (part.thoughtSignature !== undefined && !isThought(part)) unheld.add("signatures")
    if (isResponse(part)) results.push(block)
    else others.push(block)
  }
  return [...results, ...others]
}

/** Whether a block is the result of a call. */
const isAnswer = (block: Json): boolean => block.type === "tool_result"

/** Returns the content of a user line. A single text is written as a string. */
const contentOf = (blocks: ReadonlyArray<Json>): unknown => {
  const [only] = blocks
  if (only === undefined) return noContent
  return blocks.length === 1 && only.type === "text" ? only.text : blocks
}

/** The version of Claude Code that the records imitate. */
const version = "2.1.39"

/** Whether the Anthropic API accepts the id of a call. */
const isFit = (id: string): boolean => /^[a-zA-Z0-9_-]{1,128}$/.test(id)

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

const nothing: Draft = { content: { role: "user", parts: [] }, author: "summary" }

/** The lines of a transcript while they are written. */
const transcriptLines = (transcript: Transcript, session: string, ids: RecordIds): SessionLines => {
  const lines: Array<string> = []
  const names = new Map<string, string>()
  const time = clock(transcript.steps)
  let last: string | undefined
  /** Whether the last line holds results, so that a reader would join results in the next line to it. */
  let isResults = false

  const about = (uuid: string, parent: string | undefined, at: number): Json => {
    return {
      parentUuid: parent ?? null,
      isSidechain: false,
      userType: "external",
      cwd: transcript.cwd,
      sessionId: session,
      version,
      uuid,
      timestamp: isoTime(at)
    }
  }

  const push = (record: Json, draft: Draft, marks: Marks): void => {
    const content = { pieces: piecesOf(draft), marks, opens: draft }
    lines.push(exactLine(record, content, (value, line) => nativeMessage(value, line, names)))
  }

  const row = (item: Row, call: CallOf, unheld: Skipped): void => {
    const isAgain = item.again !== undefined
    const draft = isAgain ? writtenAgain(item.draft) : item.draft
    const model = draft.model ?? transcript.model
    const uuid = ids.of(item)
    const blocks = blocksOf(draft, model, call, unheld)
    for (const block of blocks) if (block.type === "tool_use") names.set(String(block.id), String(block.name))
    const results = blocks.some(isAnswer)
    const again = isAgain ? ids.of(item.again) : undefined
    const record = draft.content.role === "model" ? modelRecord(draft, blocks, model, uuid) : userRecord(draft, blocks)
    push({ ...about(uuid, last, time.at(draft, isAgain)), ...record }, draft, {
      ...(results && isResults ? { message: "new" } : {}),
      ...(item.inserted ? { inserted: true } : {}),
      ...(again === undefined ? {} : { again })
    })
    isResults = results
    last = uuid
    const replacements = draft.content.parts.flatMap(({ functionResponse }, part) => {
      const replacement = transcript.shown?.get(functionResponse?.id ?? "")
      const toolUseId = call(part)?.id
      return replacement === undefined || toolUseId === undefined
        ? []
        : [{ kind: "tool-result", toolUseId, replacement }]
    })
    if (replacements.length > 0 && !isAgain)
      lines.push(recordLine({ type: "content-replacement", sessionId: session, replacements }))
  }

  const cut = (item: Cut, unheld: Skipped): void => {
    const boundary = ids.fresh()
    const logical = last === undefined ? {} : { logicalParentUuid: last }
    const at = time.at(item.summary)
    lines.push(recordLine({ ...about(boundary, undefined, at), ...logical, ...boundaryRecord(item) }))
    const draft = item.summary ?? nothing
    const uuid = ids.of(item)
    const blocks = blocksOf(draft, undefined, () => undefined, unheld)
    push({ ...about(uuid, boundary, at), ...summaryRecord(draft, blocks) }, draft, {})
    last = uuid
  }

  /** Writes results for calls that got none: Claude Code drops a message whose call has no result. */
  const answer = (calls: ReadonlyArray<NativeCall>, caller: Draft | undefined): void => {
    const content = calls.map((call) => resultOf(missingResponse(call), call))
    const uuid = ids.fresh()
    const record = { ...about(uuid, last, time.at(caller, true)), type: "user", message: { role: "user", content } }
    lines.push(recordLine(record, {}, { owed: true }))
    last = uuid
  }

  return { lines, row, cut, answer }
}

/**
 * Writes a Claude Code transcript. Claude Code sees only the messages after the last compact boundary: the summary, the
 * other inserted messages, and the kept ones, which are written again. A reader returns each message once.
 */
export const writeClaude: Writer = layoutWriter({ holds: isSummary, isFit }, transcriptLines)
