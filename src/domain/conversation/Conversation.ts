/** The conversation as a value: its entries, the view of the model, and the compressions that can be undone. */

import { Schema } from "effect"
import { Content, hasResponses, isCall, isResponse, Part } from "../content/Content.ts"
import { Handle } from "../content/Handle.ts"
import * as PersistentList from "../text/PersistentList.ts"
import { TokenCount, Usage } from "../tokens/Tokens.ts"
import { callPairs, type PartPlace } from "./CallPairs.ts"
import { BoundedResult, boundedPart } from "./ToolOutputBound.ts"

/** The id of an entry: `e1`, `e2`, … in order of creation, including inserted entries. */
export const EntryId = Schema.String.check(Schema.isPattern(/^e[1-9]\d*$/)).pipe(Schema.brand("EntryId"))
export type EntryId = typeof EntryId.Type

/** Returns the id of the entry with this number, from 1. */
export const entryId = (sequence: number): EntryId => EntryId.make(`e${sequence}`)
/** Returns the number in an entry's id. */
export const sequenceOf = (id: EntryId): number => Number(id.slice(1))

/**
 * The author of a message whose role does not tell who wrote it: a program (injected reminders), a summary of an earlier
 * part of the conversation, or the environment message that opens it (never summarised, never counted).
 */
export const Author = Schema.Literals(["program", "summary", "environment"])
export type Author = typeof Author.Type

const draftFields = {
  content: Content,
  /** Milliseconds since 1970. */
  at: Schema.optionalKey(Schema.Finite),
  author: Schema.optionalKey(Author),
  /** The id under which a client sent the message. No two messages of a session have the same. */
  messageId: Schema.optionalKey(Schema.String),
  /** By part index: the JSON text that the part was read from, when writing the value again would give another text. */
  source: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)),
  /** On an answer: the model that gave it, and the provider's counts for the call. */
  model: Schema.optionalKey(Schema.String),
  usage: Schema.optionalKey(Usage),
  /** The origin in another agent's file: line number (from 1) and that agent's ids. */
  origin: Schema.optionalKey(Schema.Struct({ line: Schema.Natural, ids: Schema.Array(Schema.String) }))
}

/** A message that is not part of a conversation yet. */
export const Draft = Schema.Struct(draftFields)
export type Draft = typeof Draft.Type

/** A message of a conversation, with the tokens and the handle of each part. */
export const Entry = Schema.Struct({
  id: EntryId,
  ...draftFields,
  tokens: Schema.Array(Schema.Natural),
  handles: Schema.Array(Handle),
  /** By part index: results that were too large for the window when they arrived, and the form in which they are shown. */
  bounded: Schema.optionalKey(Schema.Record(Schema.String, BoundedResult))
})
export type Entry = typeof Entry.Type

/** Returns the JSON text that a part was read from, when writing it again would give another text. */
export const sourceOf = (entry: Draft, part: number): string | undefined => entry.source?.[String(part)]

/** Returns the sum of the numbers; 0 when there are none. */
export const sum = (numbers: ReadonlyArray<number>): number => numbers.reduce((total, n) => total + n, 0)
/** Returns the tokens of all parts, as counted when the entry was made. */
export const entryTokens = (entry: Entry): number => sum(entry.tokens)

/** An entry as the model sees it: whole, or with some parts shortened. */
export interface ViewItem {
  readonly entry: Entry
  readonly shortened: ReadonlyMap<number, ShortenedPart>
}
/** The replacement of a part, and its tokens. */
export interface ShortenedPart {
  readonly part: Part
  readonly tokens: number
}

const whole: ReadonlyMap<number, ShortenedPart> = new Map()

/** Makes the replacement of a bounded part on first access, once. */
const lazily = (tokens: number, make: () => Part): ShortenedPart => {
  let made: Part | undefined
  return {
    tokens,
    get part() {
      made ??= make()
      return made
    }
  }
}

const boundedParts = (entry: Entry): ReadonlyMap<number, ShortenedPart> => {
  const parts = new Map<number, ShortenedPart>()
  for (const [index, bounded] of Object.entries(entry.bounded ?? {})) {
    const part = entry.content.parts[Number(index)]
    const handle = entry.handles[Number(index)]
    if (part === undefined || handle === undefined) continue
    parts.set(
      Number(index),
      lazily(bounded.tokens, () => boundedPart(part, handle, bounded))
    )
  }
  return parts
}

/** Returns the view item of an entry that no compression shortened: whole, except for results that were bounded on arrival. */
export const viewItem = (entry: Entry): ViewItem => ({
  entry,
  shortened: entry.bounded === undefined ? whole : boundedParts(entry)
})

/** Returns the tokens of an entry as the model sees it. The environment message is counted with the request and not here. */
export const itemTokens = (item: ViewItem): number => {
  if (item.entry.author === "environment") return 0
  let tokens = entryTokens(item.entry)
  for (const [part, shortened] of item.shortened) tokens += shortened.tokens - (item.entry.tokens[part] ?? 0)
  return tokens
}

/** Returns the parts of an entry as the model sees them. */
export const itemParts = (item: ViewItem): ReadonlyArray<Part> =>
  item.shortened.size === 0
    ? item.entry.content.parts
    : item.entry.content.parts.map((part, index) => item.shortened.get(index)?.part ?? part)

/** Whether an entry is a message to answer: the user's or a program's, and no tool results. */
export const beginsTurn = ({ content }: Entry): boolean => content.role === "user" && !hasResponses(content)

/** Whether the user wrote an entry. */
export const isFromUser = (entry: Entry): boolean => entry.author === undefined && beginsTurn(entry)

/**
 * The change that one compression makes. Entries from `drop.from` to `drop.to` (both in the view) leave the view, `insert`
 * takes their place, and single parts of the remaining entries are shortened. A patch holds no copy of the history.
 */
export const Patch = Schema.Struct({
  drop: Schema.optionalKey(Schema.Struct({ from: EntryId, to: EntryId })),
  insert: Schema.Array(Entry),
  shorten: Schema.Array(Schema.Struct({ entry: EntryId, part: Schema.Natural, replacement: Part, tokens: TokenCount }))
})
export type Patch = typeof Patch.Type

/** A compression in force, and the view before it. */
export interface AppliedPatch {
  readonly patch: Patch
  readonly before: PersistentList.PersistentList<ViewItem>
  /** Number of log entries when the patch was applied. */
  readonly entries: number
}

/** A state of a conversation that a branch can go back to. */
export interface Moment {
  readonly log: PersistentList.PersistentList<Entry>
  readonly view: PersistentList.PersistentList<ViewItem>
  readonly undoable: PersistentList.PersistentList<AppliedPatch>
  readonly redoable: PersistentList.PersistentList<Patch>
}

/** A part of the past in which messages were appended and nothing else changed: the moments before and after them. */
export interface PastSegment {
  readonly from: Moment
  readonly to: Moment
}

/**
 * A conversation: the log of its entries, the view that the model sees, and the compressions that can be undone or redone.
 * After a branch, log and view are those of the current path; `left` returns the other entries. Immutable. Versions share
 * structure, and appending is O(1).
 */
export interface Conversation extends Moment {
  /** The moment at which the present segment began, and the earlier segments, oldest first. */
  readonly since: Moment
  readonly past: PersistentList.PersistentList<PastSegment>
  /** Whether the conversation went back at least once. */
  readonly isBranched: boolean
  /** The entries that compressions inserted, including undone ones: their handles stay valid. */
  readonly inserted: PersistentList.PersistentList<Entry>
  /** The number of the next entry. */
  readonly next: number
  /** Counts every change. A plan is made for one version. */
  readonly version: number
}

const start: Moment = { log: undefined, view: undefined, undoable: undefined, redoable: undefined }

/** A conversation without messages. */
export const empty: Conversation = {
  ...start,
  since: start,
  past: undefined,
  isBranched: false,
  inserted: undefined,
  next: 1,
  version: 0
}

/** Returns the log: the appended entries of the current path, oldest first. Compressions never remove entries from it. */
export const entries = (self: Conversation): ReadonlyArray<Entry> => PersistentList.toArray(self.log)
/** Returns the view of the model, oldest first: the entries that compressions left, and those that they inserted. */
export const view = (self: Conversation): ReadonlyArray<ViewItem> => PersistentList.toArray(self.view)
/** Returns the tokens of the view. */
export const viewTokens = (self: Conversation): number => PersistentList.total(self.view)

/** Returns the tokens of the environment message, which is part of every request but not of the dialogue. Walks the view. */
export const environmentTokens = (self: Conversation): number =>
  sum(view(self).map(({ entry }) => (entry.author === "environment" ? entryTokens(entry) : 0)))

const appendItem = (chain: PersistentList.PersistentList<ViewItem>, item: ViewItem) =>
  PersistentList.append(chain, item, itemTokens(item))

/** Appends an entry. Its id has to be the next one (`entryId(self.next)`). */
export const append = (self: Conversation, entry: Entry): Conversation => appendAll(self, [entry])

/** Appends entries one after the other. */
export const appendAll = (self: Conversation, entries: ReadonlyArray<Entry>): Conversation => {
  let { log, next, view } = self
  for (const entry of entries) {
    log = PersistentList.append(log, entry, entryTokens(entry))
    view = appendItem(view, viewItem(entry))
    next = sequenceOf(entry.id) + 1
  }
  return { ...self, log, view, next, version: self.version + entries.length }
}

/**
 * Makes a conversation from its view alone, without the entries that left the view and without compressions to undo. `next`
 * and `version` are those of the whole conversation.
 */
export const shown = (
  items: ReadonlyArray<ViewItem>,
  isInserted: (entry: Entry) => boolean,
  { next, version }: Pick<Conversation, "next" | "version">
): Conversation => {
  let { inserted, log, view }: Conversation = empty
  for (const item of items) {
    view = appendItem(view, item)
    if (isInserted(item.entry)) inserted = PersistentList.append(inserted, item.entry, 0)
    else log = PersistentList.append(log, item.entry, entryTokens(item.entry))
  }
  return { ...empty, log, view, since: { ...start, log, view }, inserted, next, version }
}

/** Returns the present moment of a conversation. */
export const momentOf = ({ log, redoable, undoable, view }: Moment): Moment => ({ log, view, undoable, redoable })

/** Begins another segment, with another view, after these changes. */
export const turned = (self: Conversation, changes: Partial<Moment>): Conversation => {
  const since = momentOf({ ...self, ...changes })
  return {
    ...self,
    ...since,
    since,
    past: PersistentList.append(self.past, { from: self.since, to: momentOf(self) }, 0),
    version: self.version + 1
  }
}

const applyPatch = (
  chain: PersistentList.PersistentList<ViewItem>,
  patch: Patch
): PersistentList.PersistentList<ViewItem> => {
  const shortened = new Map<EntryId, Map<number, ShortenedPart>>()
  for (const { entry, part, replacement, tokens } of patch.shorten) {
    const parts = shortened.get(entry) ?? new Map<number, ShortenedPart>()
    shortened.set(entry, parts.set(part, { part: replacement, tokens }))
  }
  let next: PersistentList.PersistentList<ViewItem>
  let dropping = false
  const insert = () => {
    for (const entry of patch.insert) next = appendItem(next, viewItem(entry))
  }
  let isInserted = patch.insert.length === 0
  const nodes = Array.from<PersistentList.Node<ViewItem>>({ length: PersistentList.length(chain) })
  for (let node = chain; node !== undefined; node = node.before) nodes[node.length - 1] = node
  for (const { before, tokens, value: item } of nodes) {
    // When nothing is dropped, the inserted entry opens the conversation, after the environment message.
    const opens = patch.drop === undefined && item.entry.author !== "environment"
    dropping = dropping || item.entry.id === patch.drop?.from
    if (!isInserted && (opens || dropping)) {
      isInserted = true
      insert()
    }
    if (!dropping || item.entry.author === "environment") {
      const parts = shortened.get(item.entry.id)
      next =
        parts === undefined
          ? PersistentList.append(next, item, tokens - PersistentList.total(before))
          : appendItem(next, { entry: item.entry, shortened: new Map([...item.shortened, ...parts]) })
    }
    if (item.entry.id === patch.drop?.to) dropping = false
  }
  if (!isInserted) insert()
  return next
}

/** Returns the conversation with these parts shown shorter from now on. This is not a compression and cannot be undone. */
export const masked = (self: Conversation, shorten: Patch["shorten"]): Conversation =>
  turned(self, { view: applyPatch(self.view, { insert: [], shorten }) })

const lay = (self: Conversation, patch: Patch, redoable: Conversation["redoable"]): Conversation => ({
  ...turned(self, {
    view: applyPatch(self.view, patch),
    undoable: PersistentList.append(
      self.undoable,
      { patch, before: self.view, entries: PersistentList.length(self.log) },
      0
    ),
    redoable
  }),
  next: Math.max(self.next, ...patch.insert.map((entry) => sequenceOf(entry.id) + 1))
})

/** What patches made of a conversation: a compression is measured before it is committed. A patch that is kept keeps no conversation. */
const applied = new WeakMap<Conversation, WeakMap<Patch, Conversation>>()

/** Applies a compression. Clears the compressions that could be redone. */
export const compressed = (self: Conversation, patch: Patch): Conversation => {
  const results = applied.get(self) ?? new WeakMap<Patch, Conversation>()
  const known = results.get(patch)
  if (known !== undefined) return known
  const next = {
    ...lay(self, patch, undefined),
    inserted: patch.insert.reduce<PersistentList.PersistentList<Entry>>(
      (chain, entry) => PersistentList.append(chain, entry, 0),
      self.inserted
    )
  }
  applied.set(self, results.set(patch, next))
  return next
}

/** Whether a compression is in force, so that it can be undone. */
export const canUndo = (self: Conversation): boolean => self.undoable !== undefined
/** Whether a compression was undone and none was applied since. */
export const canRedo = (self: Conversation): boolean => self.redoable !== undefined

/** Undoes the last compression and keeps the turns after it. Returns the same conversation when there is none. */
export const undone = (self: Conversation): Conversation => {
  const last = self.undoable
  if (last === undefined) return self
  let restored = last.value.before
  for (const entry of PersistentList.drop(self.log, last.value.entries))
    restored = appendItem(restored, viewItem(entry))
  return turned(self, {
    view: restored,
    undoable: last.before,
    redoable: PersistentList.append(self.redoable, last.value.patch, 0)
  })
}

/** Applies again the compression that was undone last. */
export const redone = (self: Conversation): Conversation => {
  const last = self.redoable
  return last === undefined ? self : lay(self, last.value, last.before)
}

/** Returns the compressions in force, oldest first: the patch of each, and the number of log entries at that time. */
export const compressions = (self: Conversation): ReadonlyArray<{ readonly patch: Patch; readonly entries: number }> =>
  PersistentList.toArray(self.undoable)

/** Returns the entries that compressions inserted. The log stores them in the compressions' events and not as entries. */
export const inserted = (self: Conversation): ReadonlyArray<Entry> => PersistentList.toArray(self.inserted)

/** Calls and their responses, in both directions. Keys are those of `placeKey`; `CallPairs` needs none. */
export interface Pairing {
  /** By `item:part` of a call: the place of its response. */
  readonly responseOf: ReadonlyMap<string, PartPlace>
  /** By `item:part` of a response: the place of its call. */
  readonly callOf: ReadonlyMap<string, PartPlace>
}

/** Returns the key of a place, `item:part`, for maps. */
export const placeKey = (place: PartPlace): string => `${place.item}:${place.part}`

/** Returns the pairing of all these messages (see `CallPairs`). */
export const pairing = (
  contents: ReadonlyArray<{ readonly role: Content["role"]; readonly parts: ReadonlyArray<Part> }>
): Pairing => {
  const pairs = callPairs(contents)
  const responseOf = new Map<string, PartPlace>()
  const callOf = new Map<string, PartPlace>()
  for (const [item, { parts }] of contents.entries()) {
    for (const [index, part] of parts.entries()) {
      const call = isResponse(part) && !isCall(part) ? pairs.partnerOf(item, index) : undefined
      if (call === undefined) continue
      const place = { item, part: index }
      responseOf.set(placeKey(call), place)
      callOf.set(placeKey(place), call)
    }
  }
  return { responseOf, callOf }
}

/** Characters of the user's text that every snapshot has to show verbatim. */
export const Pin = Schema.Struct({
  entry: EntryId,
  part: Schema.Natural,
  start: Schema.Natural,
  end: Schema.Natural
})
export type Pin = typeof Pin.Type
