import { Schema } from "effect"
import { Bounded, boundedPart } from "./Bounded.ts"
import * as Chain from "./Chain.ts"
import { Content, isCall, isResponse, Part } from "./Content.ts"
import { Handle } from "./Handle.ts"
import { TokenCount, Usage } from "./Tokens.ts"

/** `e1`, `e2`, … in the order in which entries came to be, inserted ones included. */
export const EntryId = Schema.String.check(Schema.isPattern(/^e[1-9]\d*$/)).pipe(Schema.brand("EntryId"))
export type EntryId = typeof EntryId.Type

/** The id of the entry with this number, from 1. */
export const entryId = (sequence: number): EntryId => EntryId.make(`e${sequence}`)
/** The number in an entry's id. */
export const sequenceOf = (id: EntryId): number => Number(id.slice(1))

/**
 * Who wrote a message when it is not who its role says: a program (injected reminders), a summary that stands for an
 * earlier part of the conversation, or the environment message that opens it (never summarised, never counted).
 */
export const Author = Schema.Literals(["program", "summary", "environment"])
export type Author = typeof Author.Type

const draftFields = {
  content: Content,
  /** Milliseconds since 1970. */
  at: Schema.optionalKey(Schema.Finite),
  author: Schema.optionalKey(Author),
  /** By part index: the JSON text it was read from, where writing the value again would give another. */
  source: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)),
  /** Of an answer: the model that gave it, and what the provider counted for the call that brought it. */
  model: Schema.optionalKey(Schema.String),
  usage: Schema.optionalKey(Usage),
  /** Where it came from in another agent's file: line number (from 1) and that agent's ids. */
  origin: Schema.optionalKey(Schema.Struct({ line: Schema.Natural, ids: Schema.Array(Schema.String) }))
}

/** A message that has no place in a conversation yet. */
export const Draft = Schema.Struct(draftFields)
export type Draft = typeof Draft.Type

/** A message of a conversation, with what is known about each part: its tokens and its handle. */
export const Entry = Schema.Struct({
  id: EntryId,
  ...draftFields,
  tokens: Schema.Array(Schema.Natural),
  handles: Schema.Array(Handle),
  /** By part index: results that were too large for the window when they came, and how they are shown. */
  bounded: Schema.optionalKey(Schema.Record(Schema.String, Bounded))
})
export type Entry = typeof Entry.Type

/** The JSON text a part was read from, where writing it again would give another. */
export const sourceOf = (entry: Draft, part: number): string | undefined => entry.source?.[String(part)]

/** All together; of nothing, 0. */
export const sum = (numbers: ReadonlyArray<number>): number => numbers.reduce((total, n) => total + n, 0)
/** Tokens of all parts, as they were counted when the entry was made. */
export const entryTokens = (entry: Entry): number => sum(entry.tokens)

/** An entry as the model sees it: whole, or with some parts shortened. */
export interface ViewItem {
  readonly entry: Entry
  readonly shortened: ReadonlyMap<number, Shortened>
}
/** What stands in the place of a part, and its tokens. */
export interface Shortened {
  readonly part: Part
  readonly tokens: number
}

const whole: ReadonlyMap<number, Shortened> = new Map()

/** What is shown for a bounded part is made when it is looked at, once. */
const lazily = (tokens: number, make: () => Part): Shortened => {
  let made: Part | undefined
  return {
    tokens,
    get part() {
      made ??= make()
      return made
    }
  }
}

const boundedParts = (entry: Entry): ReadonlyMap<number, Shortened> => {
  const parts = new Map<number, Shortened>()
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

/** An entry as it stands in the view when no compression shortened it: whole, but for results that were bounded when they came. */
export const viewItem = (entry: Entry): ViewItem => ({
  entry,
  shortened: entry.bounded === undefined ? whole : boundedParts(entry)
})

/** Tokens of an entry as the model sees it. The environment message is counted with the request, not here. */
export const itemTokens = (item: ViewItem): number => {
  if (item.entry.author === "environment") return 0
  let tokens = entryTokens(item.entry)
  for (const [part, shortened] of item.shortened) tokens += shortened.tokens - (item.entry.tokens[part] ?? 0)
  return tokens
}

/** The parts of an entry as the model sees them. */
export const itemParts = (item: ViewItem): ReadonlyArray<Part> =>
  item.shortened.size === 0
    ? item.entry.content.parts
    : item.entry.content.parts.map((part, index) => item.shortened.get(index)?.part ?? part)

/**
 * What one compression changes: entries from `drop.from` to `drop.to` (both in the view) leave it, `insert` takes their
 * place, and single parts of what stays are shortened. Nothing here holds a copy of history.
 */
export const Patch = Schema.Struct({
  drop: Schema.optionalKey(Schema.Struct({ from: EntryId, to: EntryId })),
  insert: Schema.Array(Entry),
  shorten: Schema.Array(Schema.Struct({ entry: EntryId, part: Schema.Natural, replacement: Part, tokens: TokenCount }))
})
export type Patch = typeof Patch.Type

interface Layer {
  readonly patch: Patch
  readonly before: Chain.Chain<ViewItem>
  /** Entries of the log that existed when the patch was laid. */
  readonly entries: number
}

/**
 * A conversation: the log of all entries (comprehensive), the view of what the model sees (curated by compressions), and the
 * compressions that can be undone or redone. Immutable; versions share structure, appending is O(1).
 */
export interface Conversation {
  readonly log: Chain.Chain<Entry>
  readonly view: Chain.Chain<ViewItem>
  readonly undoable: Chain.Chain<Layer>
  readonly redoable: Chain.Chain<Patch>
  /** What compressions inserted, undone ones included: their handles stay good (law 1). */
  readonly inserted: Chain.Chain<Entry>
  /** The next entry's number. */
  readonly next: number
  /** Counts every change; a plan is made for one version. */
  readonly version: number
}

/** A conversation in which nothing has been said. */
export const empty: Conversation = {
  log: undefined,
  view: undefined,
  undoable: undefined,
  redoable: undefined,
  inserted: undefined,
  next: 1,
  version: 0
}

/** The log: every entry that was appended, oldest first. No compression takes one away (law 1). */
export const entries = (self: Conversation): ReadonlyArray<Entry> => Chain.toArray(self.log)
/** What the model sees, oldest first: entries as compressions left them, and those they inserted. */
export const view = (self: Conversation): ReadonlyArray<ViewItem> => Chain.toArray(self.view)
/** Tokens of the view. */
export const viewTokens = (self: Conversation): number => Chain.total(self.view)

/** Tokens of the environment message, which goes with every request and is no part of what is said. Walks the view. */
export const environmentTokens = (self: Conversation): number =>
  sum(view(self).map(({ entry }) => (entry.author === "environment" ? entryTokens(entry) : 0)))

const appendItem = (chain: Chain.Chain<ViewItem>, item: ViewItem) => Chain.append(chain, item, itemTokens(item))

/** The conversation with this entry at its end. Its id has to be the next one (`entryId(self.next)`). */
export const append = (self: Conversation, entry: Entry): Conversation => ({
  ...self,
  log: Chain.append(self.log, entry, entryTokens(entry)),
  view: appendItem(self.view, viewItem(entry)),
  next: sequenceOf(entry.id) + 1,
  version: self.version + 1
})

/**
 * A conversation of which only what the model sees is known: no entry that left the view, no compression that could be
 * undone. `next` and `version` are those of the whole.
 */
export const shown = (
  items: ReadonlyArray<ViewItem>,
  isInserted: (entry: Entry) => boolean,
  { next, version }: Pick<Conversation, "next" | "version">
): Conversation => {
  let { inserted, log, view }: Conversation = empty
  for (const item of items) {
    view = appendItem(view, item)
    if (isInserted(item.entry)) inserted = Chain.append(inserted, item.entry, 0)
    else log = Chain.append(log, item.entry, entryTokens(item.entry))
  }
  return { ...empty, log, view, inserted, next, version }
}

const applyPatch = (chain: Chain.Chain<ViewItem>, patch: Patch): Chain.Chain<ViewItem> => {
  const shortened = new Map<EntryId, Map<number, Shortened>>()
  for (const { entry, part, replacement, tokens } of patch.shorten) {
    const parts = shortened.get(entry) ?? new Map<number, Shortened>()
    shortened.set(entry, parts.set(part, { part: replacement, tokens }))
  }
  let next: Chain.Chain<ViewItem>
  let dropping = false
  const insert = () => {
    for (const entry of patch.insert) next = appendItem(next, viewItem(entry))
  }
  let isInserted = patch.insert.length === 0
  for (const item of Chain.toArray(chain)) {
    // With nothing to drop, what is inserted opens the conversation, behind the environment message.
    const opens = patch.drop === undefined && item.entry.author !== "environment"
    dropping = dropping || item.entry.id === patch.drop?.from
    if (!isInserted && (opens || dropping)) {
      isInserted = true
      insert()
    }
    const parts = shortened.get(item.entry.id)
    if (!dropping || item.entry.author === "environment") {
      next = appendItem(
        next,
        parts === undefined ? item : { entry: item.entry, shortened: new Map([...item.shortened, ...parts]) }
      )
    }
    if (item.entry.id === patch.drop?.to) dropping = false
  }
  if (!isInserted) insert()
  return next
}

/** The conversation with these parts shown shorter from now on. No compression: there is nothing to undo. */
export const masked = (self: Conversation, shorten: Patch["shorten"]): Conversation => ({
  ...self,
  view: applyPatch(self.view, { insert: [], shorten }),
  version: self.version + 1
})

const lay = (self: Conversation, patch: Patch): Conversation => {
  const inserted = patch.insert.map((entry) => sequenceOf(entry.id) + 1)
  return {
    ...self,
    view: applyPatch(self.view, patch),
    undoable: Chain.append(self.undoable, { patch, before: self.view, entries: Chain.length(self.log) }, 0),
    next: Math.max(self.next, ...inserted),
    version: self.version + 1
  }
}

/** Lays a compression over the conversation. What could be redone no longer can. */
export const compressed = (self: Conversation, patch: Patch): Conversation => ({
  ...lay(self, patch),
  redoable: undefined,
  inserted: patch.insert.reduce<Chain.Chain<Entry>>((chain, entry) => Chain.append(chain, entry, 0), self.inserted)
})

/** Whether a compression lies over the conversation. */
export const canUndo = (self: Conversation): boolean => self.undoable !== undefined
/** Whether a compression was undone and nothing was compressed since. */
export const canRedo = (self: Conversation): boolean => self.redoable !== undefined

/** Takes the last compression away; turns that came after it stay. Without one, the same conversation. */
export const undone = (self: Conversation): Conversation => {
  const last = self.undoable
  if (last === undefined) return self
  let restored = last.value.before
  for (const entry of Chain.drop(self.log, last.value.entries)) restored = appendItem(restored, viewItem(entry))
  return {
    ...self,
    view: restored,
    undoable: last.before,
    redoable: Chain.append(self.redoable, last.value.patch, 0),
    version: self.version + 1
  }
}

/** Lays the compression that was undone last over the conversation again. */
export const redone = (self: Conversation): Conversation => {
  const last = self.redoable
  return last === undefined ? self : { ...lay(self, last.value), redoable: last.before }
}

/** The compressions that hold, oldest first: what each changed, and how many entries the log had then. */
export const compressions = (self: Conversation): ReadonlyArray<{ readonly patch: Patch; readonly entries: number }> =>
  Chain.toArray(self.undoable)

/** Entries that compressions inserted: in the log as part of their events, not as entries. */
export const inserted = (self: Conversation): ReadonlyArray<Entry> => Chain.toArray(self.inserted)

/** Where a part stands: index in the list, index of the part. */
export interface Place {
  readonly item: number
  readonly part: number
}

/** Calls and their responses, both ways. Keys are those of `placeKey`. */
export interface Pairing {
  /** By `item:part` of a call: the place of its response. */
  readonly responseOf: ReadonlyMap<string, Place>
  /** By `item:part` of a response: the place of its call. */
  readonly callOf: ReadonlyMap<string, Place>
}

/** `item:part`, for maps by place. */
export const placeKey = (place: Place): string => `${place.item}:${place.part}`

/**
 * Which response answers which call, message by message. Ids decide; a response without a known id takes the first open
 * call of the same name that has no id of its own, else none. A call is answered once, after it was made; where an id or a
 * name is used again in a later run of messages, that run's call is meant (ids like `call_0` begin anew each turn). Mutable.
 */
export class Pairs implements Pairing {
  readonly responseOf = new Map<string, Place>()
  readonly callOf = new Map<string, Place>()
  private readonly runs: Array<number> = []
  private readonly byId = new Map<string, Array<Place>>()
  private readonly byName = new Map<string, Array<Place>>()
  private run = 0
  private role: string | undefined

  private open(calls: Map<string, Array<Place>>, key: string, place: Place): void {
    const places = calls.get(key)
    const last = places?.[places.length - 1]
    if (places === undefined || last === undefined || this.runs[last.item] !== this.run) calls.set(key, [place])
    else places.push(place)
  }

  /** The next message. */
  add({ parts, role }: { readonly role: Content["role"]; readonly parts: ReadonlyArray<Part> }): void {
    const item = this.runs.length
    if (parts.length > 0 && role !== this.role) {
      this.run += 1
      this.role = role
    }
    this.runs.push(this.run)
    parts.forEach((part, index) => {
      const place = { item, part: index }
      if (isCall(part)) {
        if (part.functionCall.id === undefined) this.open(this.byName, part.functionCall.name, place)
        else this.open(this.byId, part.functionCall.id, place)
      } else if (isResponse(part)) {
        const { id, name } = part.functionResponse
        const made = (id === undefined ? undefined : this.byId.get(id)) ?? this.byName.get(name ?? "")
        const call = made?.shift()
        if (call !== undefined) {
          this.responseOf.set(placeKey(call), place)
          this.callOf.set(placeKey(place), call)
        }
      }
    })
  }
}

/** Which response answers which call in all these messages (see `Pairs`). */
export const pairing = (
  contents: ReadonlyArray<{ readonly role: Content["role"]; readonly parts: ReadonlyArray<Part> }>
): Pairing => {
  const pairs = new Pairs()
  for (const content of contents) pairs.add(content)
  return pairs
}
