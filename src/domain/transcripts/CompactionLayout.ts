/**
 * Lays out a conversation as rows, for agents that see only what follows the last compaction in their file. Kept messages
 * are written again after the compaction and marked as repetitions.
 */

import { type Content, isCall, isMedia, isResponse, isText, isThought, type Part } from "../content/Content.ts"
import type { PartPlace } from "../conversation/CallPairs.ts"
import { type Draft, pairing, placeKey } from "../conversation/Conversation.ts"
import { runtimeMark } from "../text/RuntimeMark.ts"
import type { SlicedWork } from "../text/SlicedWork.ts"
import { Skipped } from "./Skipped.ts"
import { type Compaction, VisibleMessages, type Step, type Transcript, type Writer } from "./Transcript.ts"
import { callIdOf, Ids, isUuid, uuidOf } from "./WrittenRecords.ts"

/** A message to write. */
export interface Row {
  readonly _tag: "Row"
  readonly draft: Draft
  /** Whether a compaction inserted it. */
  readonly inserted: boolean
  /** The row that this one repeats. */
  readonly again: Row | undefined
}

/** A compaction to write. */
export interface Cut {
  readonly _tag: "Cut"
  readonly compaction: Compaction
  /** The first inserted message, when the compaction's own record holds it. */
  readonly summary: Draft | undefined
  /** The first message that was kept in place; undefined when there is none, or when the kept messages are written again. */
  readonly kept: Row | undefined
}

/** Whether a message is written, and not a compaction. */
export const isRow = (item: Row | Cut): item is Row => item._tag === "Row"

/** Returns the message that a row or a compaction writes. */
export const messageOf = (item: Row | Cut): Draft | undefined => (isRow(item) ? item.draft : item.summary)

/** Returns the kind of a part that a message of this role has no place for, as it is counted. */
export const unheldKind = (role: Content["role"], part: Part): string => {
  if (isCall(part)) return "calls of the user"
  if (isResponse(part)) return role === "model" ? "results of the model" : "results without a call"
  if (isThought(part)) return "thoughts"
  if (!isMedia(part)) return "unknown parts"
  return role === "user" && part.fileData !== undefined ? "files" : "media"
}

/** The text for a compaction that inserted nothing, in formats that require one. */
export const nothingInPlace = `${runtimeMark} What was said before this point is no longer part of this context.`

/** Whether a message is a summary whose text fits into the record of a compaction. */
export const isSummary = ({ author, content }: Draft): boolean =>
  content.role === "user" &&
  author === "summary" &&
  content.parts.some((part) => isText(part) && part.text.trim() !== "") &&
  !content.parts.some((part) => isCall(part) || isResponse(part))

/**
 * Splits the steps into segments, of which each but the first begins with a compaction. An agent sees at least the last one.
 * `holds`: whether the compaction's own record can hold the first inserted message. `keepsById`: when the record holds
 * everything that was inserted, the format can name the first kept message, and nothing is written again.
 */
function* segmentsOf(
  steps: ReadonlyArray<Step>,
  holds: (first: Draft) => boolean,
  keepsById: boolean
): SlicedWork<ReadonlyArray<ReadonlyArray<Row | Cut>>> {
  let segment: Array<Row | Cut> = []
  const segments = [segment]
  const shown = new VisibleMessages()
  const rows = new Map<Draft, Row>()
  const write = (draft: Draft, inserted: boolean): void => {
    const row: Row = { _tag: "Row", draft, inserted, again: rows.get(draft) }
    segment.push(row)
    rows.set(draft, row)
  }
  for (const step of steps) {
    yield
    shown.add(step)
    if (step._tag === "Message") {
      write(step.draft, false)
      continue
    }
    const { insert } = step
    const [first] = insert
    const summary = first !== undefined && holds(first) ? first : undefined
    const cut: Cut = { _tag: "Cut", compaction: step, summary, kept: undefined }
    const [opening, next] = shown.drafts
    if (keepsById && summary !== undefined && insert.length === 1 && opening === summary) {
      segment.push({ ...cut, kept: next && rows.get(next) })
      continue
    }
    segment = [cut]
    segments.push(segment)
    for (const draft of shown.drafts) if (draft !== summary) write(draft, !rows.has(draft))
    yield
  }
  return segments
}

// --- calls and their results --------------------------------------------------------------------------------------------

/** A call in a form that the other agent's API accepts. */
export interface NativeCall {
  readonly id: string
  readonly name: string
}

/** By place in a segment: each call of the model, and for each result the call that it answers. */
export type NativeCalls = ReadonlyMap<string, NativeCall>

/**
 * Returns where each turn of a model begins: its run of messages of one role and the user's run after it. Calls and results
 * are paired within a turn, because a model's API requires the result there.
 */
const turnsOf = (contents: ReadonlyArray<Content>): ReadonlyArray<number> => {
  let role: string | undefined
  return contents.flatMap((content, index) => {
    const begins = content.parts.length > 0 && content.role === "model" && role !== "model"
    if (content.parts.length > 0) role = content.role
    return begins ? [index] : []
  })
}

/** Assigns ids to the calls of the model. */
function* assignIds(
  contents: ReadonlyArray<Content>,
  isFit: (id: string) => boolean,
  make: (n: number) => string
): SlicedWork<Map<string, NativeCall>> {
  const ids = new Ids(make)
  const calls = new Map<string, NativeCall>()
  const nameless: Array<readonly [key: string, name: string]> = []
  for (const [item, { parts, role }] of contents.entries()) {
    yield
    if (role !== "model") continue
    for (const [index, part] of parts.entries()) {
      if (!isCall(part)) continue
      const { id, name } = part.functionCall
      const key = placeKey({ item, part: index })
      if (id !== undefined && isFit(id) && ids.claim(id)) calls.set(key, { id, name })
      else nameless.push([key, name])
    }
  }
  for (const [key, name] of nameless) calls.set(key, { id: ids.fresh(), name })
  return calls
}

/**
 * Pairs the calls and results of a segment by the rules of a model's API: ids are unique and in an accepted form (`isFit`),
 * and results are in the run of messages right after their call's, or, with `takesLate`, anywhere behind it. A result without such a
 * call is left out.
 */
export function* nativeCalls(
  contents: ReadonlyArray<Content>,
  isFit: (id: string) => boolean,
  make: (n: number) => string,
  takesLate = false
): SlicedWork<NativeCalls> {
  const calls = yield* assignIds(contents, isFit, make)
  const turns = takesLate ? [0] : turnsOf(contents)
  for (const [turn, from] of turns.entries()) {
    const own = contents.slice(from, turns[turn + 1] ?? contents.length)
    yield
    for (const [key, call] of pairing(own).callOf) {
      const [item = 0, part = 0] = key.split(":").map(Number)
      const made = calls.get(placeKey({ item: from + call.item, part: call.part }))
      if (made !== undefined) calls.set(placeKey({ item: from + item, part }), made)
    }
  }
  return calls
}

/**
 * Returns the calls without a result in the run of messages right after theirs, by the message after which one belongs.
 * Agents send such a call unchanged, which an API refuses, or drop its message. `isEnd`: no results follow the last message.
 */
export function* owedCalls(
  contents: ReadonlyArray<Content>,
  isEnd: boolean
): SlicedWork<ReadonlyMap<number, ReadonlyArray<PartPlace>>> {
  const owed = new Map<number, ReadonlyArray<PartPlace>>()
  const turns = turnsOf(contents)
  for (const [turn, from] of turns.entries()) {
    const next = turns[turn + 1]
    if (next === undefined && !isEnd) break
    const own = contents.slice(from, next ?? contents.length)
    yield
    const { responseOf } = pairing(own)
    const open = own.flatMap(({ parts, role }, item) =>
      role !== "model"
        ? []
        : parts.flatMap((one, part) =>
            isCall(one) && !responseOf.has(placeKey({ item, part })) ? [{ item: from + item, part }] : []
          )
    )
    const last = own.findLastIndex(
      ({ parts, role }) => role === "model" || (parts.length > 0 && parts.every(isResponse))
    )
    if (open.length > 0) owed.set(from + last, open)
  }
  return owed
}

// --- writing ------------------------------------------------------------------------------------------------------------

/** The ids of the records of messages and compactions: those that they had, where they are free, else new ones. */
export class RecordIds extends Ids {
  private readonly known = new Map<Row | Cut, Array<string>>()

  /** Keeps the ids of its own form that a message had. A repetition has others. */
  keep(item: Row | Cut, isOwn: (id: string) => boolean): void {
    const had = isRow(item) && item.again !== undefined ? [] : (messageOf(item)?.origin?.ids ?? [])
    this.known.set(
      item,
      had.filter((id) => isOwn(id) && this.claim(id))
    )
  }

  /** Returns the id of the n-th record of an item. */
  of(item: Row | Cut, n = 0): string {
    const ids = this.known.get(item) ?? []
    this.known.set(item, ids)
    return (ids[n] ??= this.fresh())
  }
}

/** Returns the call that a part of a message makes, or that it answers. */
export type CallOf = (part: number) => NativeCall | undefined

/** Writes the records of a session. `unheld` counts what they have no place for. */
export interface SessionLines {
  readonly lines: ReadonlyArray<string>
  /** Writes a message. */
  readonly row: (item: Row, call: CallOf, unheld: Skipped) => void
  /** Writes a compaction. */
  readonly cut: (item: Cut, unheld: Skipped) => void
  /** Writes results for calls that got none, of which a message made the first, for an agent that needs them. */
  readonly answer?: (calls: ReadonlyArray<NativeCall>, caller: Draft | undefined) => void
  /** Writes what follows the last message. */
  readonly close?: () => void
}

/**
 * Makes a writer for an agent that sees what follows the last compaction. `isFit`: whether its API accepts the id of a call.
 * `takesLate`: whether it takes a result behind later messages of the model.
 */
export const layoutWriter = (
  format: {
    readonly holds: (first: Draft) => boolean
    readonly keepsById?: true
    readonly isFit: (id: string) => boolean
    readonly takesLate?: true
    /** Makes the n-th id of a record, and says which ids are of its form. */
    readonly idOf?: (session: string) => (n: number) => string
    readonly isOwn?: (id: string) => boolean
  },
  begin: (transcript: Transcript, session: string, ids: RecordIds) => SessionLines
): Writer =>
  function* (transcript) {
    const session = transcript.session ?? uuidOf(transcript.cwd ?? "")(0)
    const segments = yield* segmentsOf(transcript.steps, format.holds, format.keepsById === true)
    const ids = new RecordIds((format.idOf ?? uuidOf)(session))
    for (const item of segments.flat()) {
      yield
      ids.keep(item, format.isOwn ?? isUuid)
    }
    const written = begin(transcript, session, ids)
    const unheld = new Skipped()
    for (const [number, segment] of segments.entries()) {
      const rows = segment.filter(isRow)
      const contents = rows.map(({ draft }) => draft.content)
      const calls = yield* nativeCalls(contents, format.isFit, callIdOf(session), format.takesLate)
      const owed = written.answer === undefined ? undefined : yield* owedCalls(contents, number === segments.length - 1)
      let index = 0
      for (const item of segment) {
        if (isRow(item)) {
          const place = index
          const call = (part: number) => calls.get(placeKey({ item: place, part }))
          // What is repeated was counted where it stood first.
          written.row(item, call, item.again === undefined ? unheld : new Skipped())
          const places = owed?.get(index)
          if (places !== undefined) {
            const open = places.flatMap((one) => calls.get(placeKey(one)) ?? [])
            written.answer?.(open, rows[places[0]?.item ?? 0]?.draft)
          }
          index += 1
        } else written.cut(item, unheld)
        yield
      }
    }
    written.close?.()
    return { lines: written.lines, unheld: unheld.counts }
  }
