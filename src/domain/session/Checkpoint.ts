/**
 * A checkpoint belongs to an event that replaced the view. It lists where the lines of the view are in the log, so that a
 * session is opened by reading only these, however much left the window before. It stores no content twice.
 */

import { Schema } from "effect"
import type { Part } from "../content/Content.ts"
import {
  canRedo,
  canUndo,
  type Entry,
  EntryId,
  type Patch,
  sequenceOf,
  type ShortenedPart,
  shown,
  view,
  viewItem,
  type ViewItem,
  Pin
} from "../conversation/Conversation.ts"
import * as PersistentList from "../text/PersistentList.ts"
import { type Session, type SessionEvent, type Started, entriesOf } from "./Session.ts"

/** `e5`, or `e5-e9` for five consecutive entries. */
const Run = Schema.String.check(Schema.isPattern(/^e[1-9]\d*(-e[1-9]\d*)?$/))

/** The state after the event that carries the checkpoint. */
export const Checkpoint = Schema.Struct({
  /** The byte ranges of the earlier lines that are needed; ascending, with the first line among them. */
  ranges: Schema.Array(Schema.Tuple([Schema.Natural, Schema.Natural])),
  /** The entries of the view, in order. */
  ids: Schema.Array(Run),
  /** The number of the next entry, and how often the conversation has changed. */
  next: Schema.Natural,
  version: Schema.Natural,
  memory: Schema.Struct({
    failed: Schema.Boolean,
    waitUntil: Schema.Finite,
    tried: Schema.optionalKey(Schema.Array(Schema.Struct({ from: EntryId, to: EntryId }))),
    unusable: Schema.optionalKey(Schema.Record(Schema.String, Schema.Natural))
  }),
  model: Schema.optionalKey(Schema.String),
  environment: Schema.optionalKey(Schema.Struct({ opening: Schema.String, told: Schema.String })),
  pins: Schema.Array(Pin)
})
export type Checkpoint = typeof Checkpoint.Type

const decode = Schema.decodeUnknownOption(Checkpoint)

/** Decodes the checkpoint of a line; undefined when it has none that can be used. */
export const decodeCheckpoint = (value: unknown): Checkpoint | undefined => {
  const found = value === undefined ? undefined : decode(value)
  return found?._tag === "Some" ? found.value : undefined
}

/** Whether an event can remove entries from the view, or put back entries that earlier events removed. */
export const replacesView = (event: SessionEvent): boolean => event._tag === "Compressed" || restoresView(event)

/** Whether an event puts back a view of the past, which only the whole log holds. */
export const restoresView = ({ _tag }: SessionEvent): boolean =>
  _tag === "Undone" || _tag === "Redone" || _tag === "Branched"

/** Whether an event goes back beyond what a session holds that was not read from its start. */
export const goesBeyond = ({ conversation }: Session, { _tag }: SessionEvent): boolean =>
  _tag === "Branched" || (_tag === "Undone" && !canUndo(conversation)) || (_tag === "Redone" && !canRedo(conversation))

/** Joins consecutive ids into runs. */
const runsOf = (ids: ReadonlyArray<EntryId>): Array<string> => {
  const runs: Array<{ readonly from: EntryId; to: EntryId }> = []
  for (const id of ids) {
    const last = runs.at(-1)
    if (last !== undefined && sequenceOf(id) === sequenceOf(last.to) + 1) last.to = id
    else runs.push({ from: id, to: id })
  }
  return runs.map(({ from, to }) => (from === to ? from : `${from}-${to}`))
}

/** The first and last number of a run. */
const boundsOf = (run: string): readonly [from: number, to: number] => {
  const [from = "", to = from] = run.split("-")
  return [Number(from.slice(1)), Number(to.slice(1))]
}

/** The parts that an event shortens: those of a compression's patch, or of a mask. */
const shortenedIn = (event: SessionEvent): Patch["shorten"] | undefined =>
  event._tag === "Compressed" ? event.patch.shorten : event._tag === "Masked" ? event.shorten : undefined

/** All shortened parts by entry and part, in the order of the log: the last one for a part counts. */
const shortenedBy = (
  lists: ReadonlyArray<Patch["shorten"]>
): ReadonlyMap<EntryId, ReadonlyMap<number, ShortenedPart>> => {
  const found = new Map<EntryId, Map<number, ShortenedPart>>()
  for (const { entry, part, replacement, tokens } of lists.flat()) {
    const parts = found.get(entry) ?? new Map<number, ShortenedPart>()
    found.set(entry, parts.set(part, { part: replacement, tokens }))
  }
  return found
}

const noParts: ReadonlyMap<number, ShortenedPart> = new Map()

/** An entry as the view shows it: with the bounds it was added with, and over them what was shortened later. */
const itemWith = (entry: Entry, parts: ReadonlyMap<number, ShortenedPart>): ViewItem => {
  const item = viewItem(entry)
  return parts.size === 0 ? item : { entry, shortened: new Map([...item.shortened, ...parts]) }
}

const isRestorable = ({ entry, shortened }: ViewItem, parts: ReadonlyMap<number, ShortenedPart>): boolean =>
  [...parts.keys()].every((part) => shortened.has(part)) &&
  [...shortened].every(([part, { part: replacement, tokens }]) => {
    const later = parts.get(part)
    // A bound is derived from the entry each time and has no identity; its tokens are those of the entry.
    return later === undefined
      ? entry.bounded?.[String(part)]?.tokens === tokens
      : later.part === replacement && later.tokens === tokens
  })

/**
 * The positions of the lines that were read from or written to a log, for making checkpoints. Mutable: the writer of a log adds
 * each event after it is on disk.
 */
export class LogLines {
  /** In log order. Three lists of plain values, because there may be many. */
  private readonly events: Array<SessionEvent> = []
  private readonly begins: Array<number> = []
  private readonly ends: Array<number> = []
  /** Number of indexed lines. The others are indexed when a checkpoint is made, which most sessions never need. */
  private indexed = 0
  private readonly entries = new Map<EntryId, number>()
  private readonly shortenings = new Map<number, Patch["shorten"]>()
  /** The line of each part that replaces another one. */
  private readonly replacements = new Map<Part, number>()
  /** Whether the log holds an id or `Started` twice; such a log gets no checkpoints. */
  private isUnusable = false

  /** Adds an event whose line spans `from` to `to`, including its line break. */
  add(event: SessionEvent, from: number, to: number): void {
    this.events.push(event)
    this.begins.push(from)
    this.ends.push(to)
  }

  /** Adds events with their lines. Returns the events. */
  addAll(
    events: ReadonlyArray<{ readonly event: SessionEvent; readonly from: number; readonly to: number }>
  ): ReadonlyArray<SessionEvent> {
    for (const { event, from, to } of events) this.add(event, from, to)
    return events.map(({ event }) => event)
  }

  /** Whether there is no line yet. */
  get isEmpty(): boolean {
    return this.events.length === 0
  }

  private index(): void {
    for (; this.indexed < this.events.length; this.indexed += 1) {
      const line = this.indexed
      const event = this.events[line]
      if (event === undefined) continue
      if ((event._tag === "Started") !== (line === 0)) this.isUnusable = true
      for (const { id } of entriesOf(event)) {
        if (this.entries.has(id)) this.isUnusable = true
        this.entries.set(id, line)
      }
      const shorten = shortenedIn(event) ?? []
      if (shorten.length > 0) this.shortenings.set(line, shorten)
      for (const { replacement } of shorten) this.replacements.set(replacement, line)
    }
  }

  /**
   * Makes the checkpoint for the line of `event`, after which the session is `after`. Undefined when the lines could not restore
   * the same view; such a log is read whole.
   */
  checkpoint(after: Session, event: SessionEvent): Checkpoint | undefined {
    this.index()
    if (this.isUnusable || this.events.length === 0) return undefined
    const items = view(after.conversation)
    const ids = new Set(items.map((item) => item.entry.id))
    if (ids.size !== items.length) return undefined
    const needed = new Set([0])
    const brought = new Set(entriesOf(event).map((entry) => entry.id))
    for (const id of ids) {
      const line = this.entries.get(id)
      // The event's own line need not be listed, and an entry must be in one line only.
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
    if (!items.every((item) => isRestorable(item, shortened.get(item.entry.id) ?? noParts))) return undefined
    return {
      ranges: this.rangesOf(lines),
      ids: runsOf([...ids]),
      next: after.conversation.next,
      version: after.conversation.version,
      memory: after.memory,
      ...(after.model === undefined ? {} : { model: after.model }),
      ...(after.environment === undefined ? {} : { environment: after.environment }),
      pins: PersistentList.toArray(after.pins)
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
 * Restores the session after the line of a checkpoint, as far as the view needs it. `events` are those of its ranges and of
 * the line itself, in log order. Undefined when they do not match the checkpoint.
 */
export const restoreSession = (checkpoint: Checkpoint, events: ReadonlyArray<SessionEvent>): Session | undefined => {
  const started: Started | undefined = events[0]?._tag === "Started" ? events[0] : undefined
  if (started === undefined) return undefined
  const appended = new Map<number, Entry>()
  const inserted = new Map<number, Entry>()
  for (const event of events) {
    const found = event._tag === "Compressed" ? inserted : appended
    for (const entry of entriesOf(event)) found.set(sequenceOf(entry.id), entry)
  }
  const shortened = shortenedBy(events.map((event) => shortenedIn(event) ?? []))
  const items: Array<ViewItem> = []
  for (const run of checkpoint.ids) {
    const [from, to] = boundsOf(run)
    for (let sequence = from; sequence <= to; sequence += 1) {
      const entry = appended.get(sequence) ?? inserted.get(sequence)
      if (entry === undefined) return undefined
      items.push(itemWith(entry, shortened.get(entry.id) ?? noParts))
    }
  }
  return {
    started,
    model: checkpoint.model,
    pins: checkpoint.pins.reduce<PersistentList.PersistentList<Pin>>(
      (chain, pin) => PersistentList.append(chain, pin, 0),
      undefined
    ),
    conversation: shown(items, (entry) => inserted.has(sequenceOf(entry.id)), checkpoint),
    labels: undefined,
    environment: checkpoint.environment,
    memory: checkpoint.memory,
    ranges: undefined,
    changes: undefined,
    questions: undefined
  }
}

/** The state of a log: its session, and where its lines are. */
export interface LogState {
  readonly session: Session
  readonly lines: LogLines
  /** Whether the whole log was read. */
  readonly complete: boolean
}
