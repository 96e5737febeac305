import { Schema } from "effect"
import * as Chain from "./Chain.ts"
import type { Part } from "./Content.ts"
import {
  type Entry,
  EntryId,
  entryId,
  type Patch,
  sequenceOf,
  type Shortened,
  shown,
  view,
  viewItem,
  type ViewItem
} from "./Conversation.ts"
import { entriesOf } from "./LogFormat.ts"
import { Pin, type Session, type SessionEvent, type Started } from "./Session.ts"

/**
 * A note beside an event that replaced what the model sees: where in the log the lines are that the view is made of. With
 * it a session is opened from the end of its log, however much left the window before. Nothing is written twice.
 */

/** `e5`, or `e5-e9` for five entries one after the other. */
const Run = Schema.String.check(Schema.isPattern(/^e[1-9]\d*(-e[1-9]\d*)?$/))

/** What is known after the event in whose line it stands. */
export const Checkpoint = Schema.Struct({
  /** From where to where, in bytes, lines before this one have to be read; ascending, the first line among them. */
  ranges: Schema.Array(Schema.Tuple([Schema.Natural, Schema.Natural])),
  /** The entries of the view, in order. */
  ids: Schema.Array(Run),
  /** The next entry's number, and how often the conversation has changed. */
  next: Schema.Natural,
  version: Schema.Natural,
  memory: Schema.Struct({
    failed: Schema.Boolean,
    waitUntil: Schema.Finite,
    tried: Schema.optionalKey(Schema.Array(Schema.Struct({ from: EntryId, to: EntryId })))
  }),
  model: Schema.optionalKey(Schema.String),
  pins: Schema.Array(Pin)
})
export type Checkpoint = typeof Checkpoint.Type

const decode = Schema.decodeUnknownOption(Checkpoint)

/** The checkpoint that a line carries; undefined where it carries none that can be used. */
export const decodeCheckpoint = (value: unknown): Checkpoint | undefined => {
  const found = value === undefined ? undefined : decode(value)
  return found?._tag === "Some" ? found.value : undefined
}

/** Whether an event can put entries back into the view that earlier ones took out of it, or take others out. */
export const replacesView = (event: SessionEvent): boolean =>
  event._tag === "Compressed" || event._tag === "Undone" || event._tag === "Redone"

/** Consecutive numbers as one run. */
const runsOf = (ids: ReadonlyArray<EntryId>): Array<string> => {
  const runs: Array<{ readonly from: EntryId; to: EntryId }> = []
  for (const id of ids) {
    const last = runs.at(-1)
    if (last !== undefined && sequenceOf(id) === sequenceOf(last.to) + 1) last.to = id
    else runs.push({ from: id, to: id })
  }
  return runs.map(({ from, to }) => (from === to ? from : `${from}-${to}`))
}

/** The ids of a run as numbers, first and last. */
const boundsOf = (run: string): readonly [from: number, to: number] => {
  const [from = "", to = from] = run.split("-")
  return [Number(from.slice(1)), Number(to.slice(1))]
}

/** What an event shows shorter from its line on: a compression's patch, or a mask. */
const shortenedIn = (event: SessionEvent): Patch["shorten"] | undefined =>
  event._tag === "Compressed" ? event.patch.shorten : event._tag === "Masked" ? event.shorten : undefined

/** All shortenings by entry and part, in the order of the log: of two for the same part, the later one holds. */
const shortenedBy = (lists: ReadonlyArray<Patch["shorten"]>): ReadonlyMap<EntryId, ReadonlyMap<number, Shortened>> => {
  const found = new Map<EntryId, Map<number, Shortened>>()
  for (const { entry, part, replacement, tokens } of lists.flat()) {
    const parts = found.get(entry) ?? new Map<number, Shortened>()
    found.set(entry, parts.set(part, { part: replacement, tokens }))
  }
  return found
}

const noParts: ReadonlyMap<number, Shortened> = new Map()

/** An entry as it stands in the view: with the bounds that it came with, and over them what was shortened later. */
const itemWith = (entry: Entry, parts: ReadonlyMap<number, Shortened>): ViewItem => {
  const item = viewItem(entry)
  return parts.size === 0 ? item : { entry, shortened: new Map([...item.shortened, ...parts]) }
}

/** Whether `itemWith` gives back this item. */
const isGivenBack = ({ entry, shortened }: ViewItem, parts: ReadonlyMap<number, Shortened>): boolean =>
  [...parts.keys()].every((part) => shortened.has(part)) &&
  [...shortened].every(([part, { part: replacement, tokens }]) => {
    const later = parts.get(part)
    // A bound is made anew from the entry each time, so it has no identity; its tokens are those of the entry.
    return later === undefined
      ? entry.bounded?.[String(part)]?.tokens === tokens
      : later.part === replacement && later.tokens === tokens
  })

/**
 * Where the lines of a log are that hold entries or compressions, as far as they were read or written. Mutable: whoever
 * writes a log has one and adds each event to it once that is on disk.
 */
export class LogLines {
  /** In the order of the log. Three lists of plain values, because there may be many. */
  private readonly events: Array<SessionEvent> = []
  private readonly begins: Array<number> = []
  private readonly ends: Array<number> = []
  /** Lines that were looked through: the rest waits until a checkpoint is wanted, most sessions want none. */
  private known = 0
  private readonly entries = new Map<EntryId, number>()
  private readonly shortenings = new Map<number, Patch["shorten"]>()
  /** By what stands in the place of a part: the line that put it there. */
  private readonly replacements = new Map<Part, number>()
  /** Whether an id or a beginning was there twice; such a log has no checkpoints. */
  private isOdd = false

  /** An event whose line goes from `from` to `to` (the line break included). */
  add(event: SessionEvent, from: number, to: number): void {
    this.events.push(event)
    this.begins.push(from)
    this.ends.push(to)
  }

  private learn(): void {
    for (; this.known < this.events.length; this.known += 1) {
      const line = this.known
      const event = this.events[line]
      if (event === undefined) continue
      if ((event._tag === "Started") !== (line === 0)) this.isOdd = true
      for (const { id } of entriesOf(event)) {
        if (this.entries.has(id)) this.isOdd = true
        this.entries.set(id, line)
      }
      const shorten = shortenedIn(event) ?? []
      if (shorten.length > 0) this.shortenings.set(line, shorten)
      for (const { replacement } of shorten) this.replacements.set(replacement, line)
    }
  }

  /**
   * The checkpoint for the line of `event`, after which the session is `after`. Undefined where the lines could not give back
   * the same view; such a log is read whole.
   */
  checkpoint(after: Session, event: SessionEvent): Checkpoint | undefined {
    this.learn()
    if (this.isOdd || this.events.length === 0) return undefined
    const items = view(after.conversation)
    const ids = new Set(items.map((item) => item.entry.id))
    if (ids.size !== items.length) return undefined
    const needed = new Set([0])
    const brought = new Set(entriesOf(event).map((entry) => entry.id))
    for (const id of ids) {
      const line = this.entries.get(id)
      // Its own line need not be named; and it must be in one line only.
      if (brought.has(id) === (line !== undefined)) return undefined
      if (line !== undefined) needed.add(line)
    }
    for (const { shortened } of items) {
      for (const { part } of shortened.values()) {
        const line = this.replacements.get(part)
        if (line !== undefined) needed.add(line)
      }
    }
    const lines = [...needed].sort((a, b) => a - b)
    const own = shortenedIn(event) ?? []
    const shortened = shortenedBy([...lines.flatMap((line) => [this.shortenings.get(line) ?? []]), own])
    if (!items.every((item) => isGivenBack(item, shortened.get(item.entry.id) ?? noParts))) return undefined
    return {
      ranges: this.rangesOf(lines),
      ids: runsOf([...ids]),
      next: after.conversation.next,
      version: after.conversation.version,
      memory: after.memory,
      ...(after.model === undefined ? {} : { model: after.model }),
      pins: Chain.toArray(after.pins)
    }
  }

  private rangesOf(lines: ReadonlyArray<number>): Array<readonly [number, number]> {
    const ranges: Array<[number, number]> = []
    for (const line of lines) {
      const from = this.begins[line] ?? 0
      const to = this.ends[line] ?? 0
      const last = ranges.at(-1)
      if (last?.[1] === from) last[1] = to
      else ranges.push([from, to])
    }
    return ranges
  }
}

/**
 * The session after the line of a checkpoint, as far as the model sees it. `events` are those of its ranges and that of the line
 * itself, in the order of the log. Undefined where they do not hold what the checkpoint says.
 */
export const restored = (checkpoint: Checkpoint, events: ReadonlyArray<SessionEvent>): Session | undefined => {
  const started: Started | undefined = events[0]?._tag === "Started" ? events[0] : undefined
  if (started === undefined) return undefined
  const appended = new Map<EntryId, Entry>()
  const inserted = new Map<EntryId, Entry>()
  for (const event of events) {
    const found = event._tag === "Compressed" ? inserted : appended
    for (const entry of entriesOf(event)) found.set(entry.id, entry)
  }
  const shortened = shortenedBy(events.map((event) => shortenedIn(event) ?? []))
  const items: Array<ViewItem> = []
  for (const run of checkpoint.ids) {
    const [from, to] = boundsOf(run)
    for (let sequence = from; sequence <= to; sequence += 1) {
      const id = entryId(sequence)
      const entry = appended.get(id) ?? inserted.get(id)
      if (entry === undefined) return undefined
      items.push(itemWith(entry, shortened.get(id) ?? noParts))
    }
  }
  return {
    started,
    model: checkpoint.model,
    pins: checkpoint.pins.reduce<Chain.Chain<Pin>>((chain, pin) => Chain.append(chain, pin, 0), undefined),
    conversation: shown(items, (entry) => inserted.has(entry.id), checkpoint),
    memory: checkpoint.memory,
    ranges: undefined
  }
}
