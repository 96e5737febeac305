import { type Content, isCall, isResponse, isText } from "../Content.ts"
import { type Draft, pairing, type Place, placeKey } from "../Conversation.ts"
import { runtimeMark } from "../RuntimeMark.ts"
import type { Work } from "../Work.ts"
import type { Step } from "./Transcript.ts"

/**
 * A conversation laid out for agents that see of their file only what follows the last compaction: what was kept is written
 * again behind it, and says that it repeats.
 */

type Compaction = Extract<Step, { readonly _tag: "Compaction" }>

/** A message to write. */
export interface Row {
  readonly _tag: "Row"
  readonly draft: Draft
  /** A compaction inserted it. */
  readonly inserted: boolean
  /** It repeats this one. */
  readonly again: Row | undefined
}

/** A compaction to write. */
export interface Cut {
  readonly _tag: "Cut"
  readonly compaction: Compaction
  /** What it inserted first, where its own record holds that. */
  readonly summary: Draft | undefined
  /** The first message that was kept where it stands; undefined: none, or those that were are written again. */
  readonly kept: Row | undefined
}

/** What an agent sees of its file at once, the last of it at least. */
export type Stretch = ReadonlyArray<Row | Cut>

/** Stands where a compaction put nothing in place of what it left out and the format wants a text. */
export const nothingInPlace = `${runtimeMark} What was said before this point is no longer part of this context.`

const isEnvironment = ({ draft }: Row): boolean => draft.author === "environment"

/** A summary whose text can stand in the record of a compaction. */
export const isSummary = ({ author, content }: Draft): boolean =>
  content.role === "user" &&
  author === "summary" &&
  content.parts.some((part) => isText(part) && part.text.trim() !== "") &&
  !content.parts.some((part) => isCall(part) || isResponse(part))

/**
 * The steps in stretches, each but the first opened by a compaction. `holds`: whether the compaction's own record can hold
 * what was inserted first. `keepsById`: where it holds all that was inserted, the format can name the first message that
 * was kept, and nothing is written again.
 */
export function* stretchesOf(
  steps: ReadonlyArray<Step>,
  holds: (first: Draft) => boolean,
  keepsById: boolean
): Work<ReadonlyArray<Stretch>> {
  let stretch: Array<Row | Cut> = []
  const stretches = [stretch]
  let environment: ReadonlyArray<Row> = []
  let shown: Array<{ readonly row: Row; readonly number: number }> = []
  let messages = 0
  const write = (draft: Draft, inserted: boolean, again: Row | undefined): Row => {
    const row: Row = { _tag: "Row", draft, inserted, again }
    stretch.push(row)
    return row
  }
  for (const step of steps) {
    yield 100
    if (step._tag === "Message") {
      const row = write(step.draft, false, undefined)
      if (isEnvironment(row)) environment = [...environment, row]
      else shown.push({ row, number: messages })
      messages += 1
      continue
    }
    const { insert, keptFrom } = step
    const kept = keptFrom === undefined ? [] : shown.filter(({ number }) => number >= keptFrom)
    const first = insert[0]
    const summary = first !== undefined && holds(first) ? first : undefined
    const cut = (row: Row | undefined): Cut => ({ _tag: "Cut", compaction: step, summary, kept: row })
    if (keepsById && summary !== undefined && insert.length === 1 && environment.length === 0) {
      stretch.push(cut(kept[0]?.row))
      shown = kept
      continue
    }
    stretch = [cut(undefined)]
    stretches.push(stretch)
    environment = environment.map((row) => write(row.draft, false, row))
    for (const draft of summary === undefined ? insert : insert.slice(1)) write(draft, true, undefined)
    shown = kept.map(({ number, row }) => ({ row: write(row.draft, false, row), number }))
    yield shown.length * 100
  }
  return stretches
}

// --- ids ----------------------------------------------------------------------------------------------------------------

const hex = (value: number, digits: number): string => value.toString(16).padStart(digits, "0").slice(-digits)

/** FNV-1a, 32 bits. */
const hash = (text: string, seed: number): number => {
  let value = (0x811c9dc5 ^ seed) >>> 0
  for (let i = 0; i < text.length; i += 1) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193) >>> 0
  return value
}

/** The n-th UUID (version 8, made by a rule of its own) of a session: the same every time (law 7). */
export const uuidOf =
  (session: string) =>
  (n: number): string => {
    const random = hex(hash(session, 1), 8) + hex(hash(session, 2), 8)
    return `${random.slice(0, 8)}-${random.slice(8, 12)}-8${random.slice(12, 15)}-8${hex(hash(session, 3), 3)}-${hex(n, 12)}`
  }

/** The n-th id of eight hexadecimal digits of a session; no two of 2^32 are the same. */
export const shortIdOf =
  (session: string) =>
  (n: number): string =>
    hex((hash(session, 4) + Math.imul(n, 0x9e3779b1)) >>> 0, 8)

/** The n-th id of a call that had none, or none that an API takes. */
export const callIdOf =
  (session: string) =>
  (n: number): string =>
    `toolu_${hex(hash(session, 5), 8)}${hex(n, 16)}`

/** Ids that are there once: known ones where they can be had, else the next that is free. */
export class Ids {
  private readonly taken = new Set<string>()
  private made = 0
  private readonly make: (n: number) => string

  constructor(make: (n: number) => string) {
    this.make = make
  }

  /** Takes a known id; false when somebody has it. */
  claim(id: string): boolean {
    if (this.taken.has(id)) return false
    this.taken.add(id)
    return true
  }

  /** The next id that nobody has. */
  fresh(): string {
    for (;;) {
      const id = this.make(this.made)
      this.made += 1
      if (this.claim(id)) return id
    }
  }
}

// --- calls and their results --------------------------------------------------------------------------------------------

/** A call as the other agent's API will take it. */
export interface NativeCall {
  readonly id: string
  readonly name: string
}

/** By place in a stretch: the calls of the model, and of the results that answer one of them, that one. */
export type NativeCalls = ReadonlyMap<string, NativeCall>

/**
 * Where each turn of a model begins: its run of messages of one role and the run of the user's after it. An answer belongs
 * into that, as a model's API wants it, so calls and results are paired within one.
 */
const turnsOf = (contents: ReadonlyArray<Content>): ReadonlyArray<number> => {
  let role: string | undefined
  return contents.flatMap((content, index) => {
    const begins = content.parts.length > 0 && content.role === "model" && role !== "model"
    if (content.parts.length > 0) role = content.role
    return begins ? [index] : []
  })
}

/** Ids for the calls of the model. */
function* named(
  contents: ReadonlyArray<Content>,
  isFit: (id: string) => boolean,
  make: (n: number) => string
): Work<Map<string, NativeCall>> {
  const ids = new Ids(make)
  const calls = new Map<string, NativeCall>()
  const nameless: Array<readonly [key: string, name: string]> = []
  for (const [item, { parts, role }] of contents.entries()) {
    yield 100
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
 * The calls and results of a stretch, as a model's API wants them: ids that are there once (`isFit`: in a form it takes),
 * results in the run of messages right after their call's. A result that is left out has no such call.
 */
export function* nativeCalls(
  rows: ReadonlyArray<Row>,
  isFit: (id: string) => boolean,
  make: (n: number) => string
): Work<NativeCalls> {
  const contents = rows.map(({ draft }) => draft.content)
  const calls = yield* named(contents, isFit, make)
  const turns = turnsOf(contents)
  for (const [turn, from] of turns.entries()) {
    const own = contents.slice(from, turns[turn + 1] ?? contents.length)
    yield own.length * 200
    for (const [key, call] of pairing(own).callOf) {
      const [item = 0, part = 0] = key.split(":").map(Number)
      const made = calls.get(placeKey({ item: from + call.item, part: call.part }))
      if (made !== undefined) calls.set(placeKey({ item: from + item, part }), made)
    }
  }
  return calls
}

/**
 * Calls that got no answer in the run of messages right after theirs, by the message behind which one belongs: agents send
 * such a call as it stands, which an API refuses, or leave its message out. `isEnd`: no answers follow the last message.
 */
export function* owedCalls(
  contents: ReadonlyArray<Content>,
  isEnd: boolean
): Work<ReadonlyMap<number, ReadonlyArray<Place>>> {
  const owed = new Map<number, ReadonlyArray<Place>>()
  const turns = turnsOf(contents)
  for (const [turn, from] of turns.entries()) {
    const next = turns[turn + 1]
    if (next === undefined && !isEnd) break
    const own = contents.slice(from, next ?? contents.length)
    yield own.length * 200
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

// --- what every record says ---------------------------------------------------------------------------------------------

/** Times in order: where a message does not say when it was, the last that is known; before all, the first. */
export const clock = (steps: ReadonlyArray<Step>) => {
  const inRange = (at: number | undefined): at is number => at !== undefined && Math.abs(at) <= 8.64e15
  const first = steps
    .flatMap((step) => (step._tag === "Message" ? step.draft : step.insert))
    .find(({ at }) => inRange(at))?.at
  let now = first ?? 0
  return {
    /** Milliseconds since 1970. What is written again keeps its time and moves no other. */
    at: (draft: Draft | undefined, isAgain = false): number => {
      const at = inRange(draft?.at) ? draft.at : now
      if (!isAgain) now = at
      return at
    },
    get now() {
      return now
    }
  }
}

/** Milliseconds since 1970 as ISO text. */
export const isoTime = (at: number): string => new Date(at).toISOString()
