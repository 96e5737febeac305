import { isCall, isErrorResponse, isResponse, isText, isThought, outputText, type Part } from "../content/Content.ts"
import { type Draft, placeKey } from "../conversation/Conversation.ts"
import { foreignNote } from "../conversation/Projection.ts"
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
  type Row,
  shortIdOf,
  stretchesOf,
  uuidOf
} from "./CompactionLayout.ts"
import { type Piece, piecesOf, samePieces } from "./ExactParts.ts"
import { isJson, type Json } from "./JsonRecord.ts"
import { nativeEntry, unknownModel } from "./PiReader.ts"
import { recordLine } from "./RecordLine.ts"
import { countsOf, keysMark, type Marks, usageMark } from "./RecordMarks.ts"
import { Skipped } from "./Skipped.ts"
import type { Writer } from "./Transcript.ts"

/** Writes Pi sessions of version 3: a header, then entries, each the child of the previous one. */

/** The provider and the protocol of a model, as Pi names them. */
const providers: ReadonlyArray<readonly [model: RegExp, provider: string, api: string]> = [
  [/claude/i, "anthropic", "anthropic-messages"],
  [/^(gpt|o\d|codex)/i, "openai", "openai-responses"],
  [/gemini/i, "google", "google-generative-ai"]
]

const servedBy = (model: string | undefined) => {
  const [, provider = unknownModel, api = unknownModel] = providers.find(([name]) => name.test(model ?? "")) ?? []
  return { api, provider, model: model ?? unknownModel }
}

/** The type under which Pi stores messages that a program added. */
const customType = "palimpsest"

// --- parts to blocks ----------------------------------------------------------------------------------------------------

/** A block, or the kind of a part for which Pi has no block. */
type Native = { readonly block: Json } | { readonly left: string }

const left = (kind: string): Native => ({ left: kind })

const signature = (key: string, { thoughtSignature }: Part) =>
  thoughtSignature === undefined ? {} : { [key]: thoughtSignature }

const modelBlock = (part: Part, call: NativeCall | undefined): Native => {
  if (isCall(part)) {
    const { args, name } = part.functionCall
    const block = { type: "toolCall", id: call?.id, name, arguments: isJson(args) ? args : {} }
    return { block: { ...block, ...signature("thoughtSignature", part) } }
  }
  if (isResponse(part)) return left("results of the model")
  if (isThought(part)) {
    return { block: { type: "thinking", thinking: part.text ?? "", ...signature("thinkingSignature", part) } }
  }
  if (isText(part)) return { block: { type: "text", text: part.text } }
  return left(part.inlineData !== undefined || part.fileData !== undefined ? "media" : "unknown parts")
}

const userBlock = (part: Part): Native => {
  if (isCall(part)) return left("calls of the user")
  if (isResponse(part)) return left("results without a call")
  if (isThought(part)) return left("thoughts")
  if (isText(part)) return { block: { type: "text", text: part.text } }
  const { fileData, inlineData } = part
  if (fileData !== undefined) return left("files")
  if (inlineData === undefined) return left("unknown parts")
  const { data, mimeType } = inlineData
  return data === undefined || mimeType?.startsWith("image/") !== true
    ? left("media")
    : { block: { type: "image", data, mimeType } }
}

/** Returns a block of another agent's result in Pi's form. */
const resultBlock = (block: unknown): Json => {
  if (isJson(block) && block.type === "text" && typeof block.text === "string") return block
  if (isJson(block) && block.type === "image") {
    if (typeof block.data === "string") return block
    const source = isJson(block.source) ? block.source : {}
    if (typeof source.data === "string") return { type: "image", data: source.data, mimeType: source.media_type }
  }
  return { type: "text", text: JSON.stringify(block) }
}

const resultContent = (part: Part): ReadonlyArray<Json> => {
  const text = outputText(part)
  if (text !== undefined) return text === "" ? [] : [{ type: "text", text }]
  const response = part.functionResponse?.response
  const blocks = isJson(response) ? (response.content ?? response.error) : undefined
  return Array.isArray(blocks) && isJson(response) && Object.keys(response).length === 1
    ? blocks.map(resultBlock)
    : [{ type: "text", text: JSON.stringify(response) ?? "" }]
}

// --- entries ------------------------------------------------------------------------------------------------------------

/** An entry to write: its own form, and the parts that it represents. */
interface Entry {
  readonly record: Json
  readonly pieces: ReadonlyArray<Piece>
  readonly isResult: boolean
}

const blocksOf = (natives: ReadonlyArray<Native>, unheld: Skipped): ReadonlyArray<Json> =>
  natives.flatMap((native) => {
    if ("block" in native) return [native.block]
    unheld.add(native.left)
    return []
  })

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

const modelEntry = (
  draft: Draft,
  model: string | undefined,
  at: number,
  call: (part: number) => NativeCall | undefined,
  unheld: Skipped
): Entry => {
  const { parts } = draft.content
  for (const part of parts) if (isText(part) && part.thoughtSignature !== undefined) unheld.add("signatures")
  const content = blocksOf(
    parts.map((part, index) => modelBlock(part, call(index))),
    unheld
  )
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
  const content = blocksOf(
    pieces.map(({ part }) => userBlock(part)),
    unheld
  )
  if (draft.author === undefined) {
    return { record: message({ role: "user", content, timestamp: at }), pieces, isResult: false }
  }
  const note = alone && content.length > 0 ? foreignNote(draft) : undefined
  const shown = note === undefined ? content : [{ type: "text", text: note }, ...content]
  return { record: { type: "custom_message", customType, content: shown, display: true }, pieces, isResult: false }
}

/** Returns the entries of a user message: one for each result, then one for everything else. */
const userEntries = (
  draft: Draft,
  at: number,
  call: (part: number) => NativeCall | undefined,
  unheld: Skipped
): ReadonlyArray<Entry> => {
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

const isRow = (item: Row | Cut): item is Row => item._tag === "Row"
const draftOf = (item: Row | Cut): Draft | undefined => (isRow(item) ? item.draft : item.summary)

/**
 * Writes a Pi session of version 3. A compaction that replaced messages by one text names the first entry that it kept. Any
 * other compaction is followed by everything that Pi should see. A reader returns each message once.
 */
export const writePi: Writer = function* (transcript) {
  const session = transcript.session ?? uuidOf(transcript.cwd ?? "")(0)
  const stretches = yield* stretchesOf(transcript.steps, holds, true)
  const ids = new Ids(shortIdOf(session))
  const known = new Map<Row | Cut, Array<string>>()
  for (const item of stretches.flat()) {
    yield 100
    const origin = isRow(item) && item.again !== undefined ? [] : (draftOf(item)?.origin?.ids ?? [])
    known.set(
      item,
      origin.filter((id) => id !== "" && ids.claim(id))
    )
  }

  const time = clock(transcript.steps)
  const unheld = new Skipped()
  const cwd = transcript.cwd === undefined ? {} : { cwd: transcript.cwd }
  const header = { type: "session", version: 3, id: session, timestamp: isoTime(time.now), ...cwd }
  const lines = [recordLine(header)]
  const firstIds = new Map<Row, string>()
  let last: string | null = null
  let model: string | undefined
  /** Whether the last message was a result, so that a reader would join the next one to it. */
  let isResult = false

  const about = (id: string, at: number): Json => ({ id, parentId: last, timestamp: isoTime(at) })
  const add = (id: string, line: string): void => {
    lines.push(line)
    last = id
  }
  /** Writes an entry in its own form, together with everything that this form would lose. */
  const line = (record: Json, pieces: ReadonlyArray<Piece>, marks: Marks, opens?: Draft): string => {
    const native = recordLine(record)
    // Own JSON: the line was parsed before.
    const value: unknown = JSON.parse(native)
    const read = nativeEntry(isJson(value) ? value : {}, native)
    const all: Marks = {
      ...marks,
      ...(opens === undefined || opens.author === read.author ? {} : { author: opens.author ?? null }),
      ...(opens === undefined ? {} : usageMark(opens, read.usage))
    }
    const isExact = samePieces(read.pieces, pieces)
    return isExact && Object.keys(all).length === 0 ? native : recordLine(record, isExact ? {} : { parts: pieces }, all)
  }
  const changeModel = (to: string | undefined, at: number): void => {
    if (to === undefined || to === model) return
    const { provider } = servedBy(to)
    const id = ids.fresh()
    add(id, recordLine({ type: "model_change", ...about(id, at), provider, modelId: to }))
    model = to
  }
  const row = (item: Row, calls: NativeCalls, index: number): void => {
    const { draft } = item
    const at = time.at(draft, item.again !== undefined)
    const call = (part: number) => calls.get(placeKey({ item: index, part }))
    const counted = item.again === undefined ? unheld : new Skipped()
    const own = draft.model ?? transcript.model
    if (draft.content.role === "model") changeModel(own, at)
    const natives =
      draft.content.role === "model"
        ? [modelEntry(draft, own, at, call, counted)]
        : userEntries(draft, at, call, counted)
    const pieces = piecesOf(draft)
    const order = natives.flatMap((one) => one.pieces)
    const inOrder = order.every(({ part }, place) => part === pieces[place]?.part)
    const again = item.again === undefined ? undefined : firstIds.get(item.again)
    const isClosed = item.inserted || again !== undefined
    for (const [k, native] of natives.entries()) {
      const id = known.get(item)?.[k] ?? ids.fresh()
      const joins = native.isResult && isResult && !(k > 0 && isClosed)
      const goesOn: Marks = joins ? {} : { message: "same" }
      const marks: Marks =
        k > 0
          ? goesOn
          : {
              ...(joins ? { message: "new" } : {}),
              ...(item.inserted ? { inserted: true } : {}),
              ...(again === undefined ? {} : { again }),
              ...keysMark(draft)
            }
      const stands = inOrder ? native.pieces : k === 0 ? pieces : []
      if (k === 0) firstIds.set(item, id)
      add(id, line({ ...native.record, ...about(id, at) }, stands, marks, k === 0 ? draft : undefined))
      isResult = native.isResult
    }
  }
  const cut = (item: Cut): void => {
    const { kept, summary } = item
    const { tokensBefore = 0, trigger } = item.compaction
    const id = known.get(item)?.[0] ?? ids.fresh()
    const [first] = summary?.content.parts ?? []
    const record = {
      type: "compaction",
      ...about(id, time.at(summary)),
      summary: first?.text ?? nothingInPlace,
      // A compaction that kept nothing names itself: no entry before it has that id.
      firstKeptEntryId: (kept === undefined ? undefined : firstIds.get(kept)) ?? id,
      tokensBefore
    }
    const pieces = summary === undefined ? [] : piecesOf(summary)
    const marks: Marks = {
      ...(trigger === "auto" ? {} : { trigger }),
      ...(summary === undefined ? {} : keysMark(summary))
    }
    add(id, line(record, pieces, marks, summary))
    isResult = false
  }

  for (const stretch of stretches) {
    const rows = stretch.filter(isRow)
    const calls = yield* nativeCalls(rows, (id) => id !== "", callIdOf(session))
    let index = 0
    for (const item of stretch) {
      const from = lines.length
      if (isRow(item)) {
        row(item, calls, index)
        index += 1
      } else cut(item)
      yield lines.slice(from).reduce((size, one) => size + one.length * 8, 2_000)
    }
  }
  changeModel(transcript.model, time.now)
  return { lines, unheld: unheld.counts }
}
