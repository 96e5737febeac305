/**
 * Describes the compressions in force: what each kept and dropped, and the size of the view over time. The environment
 * message is not counted, as in the limits.
 */

import { Schema } from "effect"
import { agentTexts, eachAnchor, toolTexts } from "../compression/Anchors.ts"
import type { Part } from "../content/Content.ts"
import {
  type Conversation,
  entries,
  type Entry,
  EntryId,
  entryTokens,
  itemParts,
  itemTokens,
  type Patch,
  sum,
  type ViewItem,
  viewTokens
} from "../conversation/Conversation.ts"
import { currentPath } from "../session/CurrentPath.ts"
import { Rating, ratingOf } from "../session/Rating.ts"
import type { SessionEvent } from "../session/Session.ts"
import * as PersistentList from "../text/PersistentList.ts"
import { eachItem, type SlicedWork } from "../text/SlicedWork.ts"

/** A number of messages and their tokens, without the environment message. */
const Share = Schema.Struct({ messages: Schema.Natural, tokens: Schema.Natural })
type Share = typeof Share.Type

/** A compression in force. `kept` and `dropped` together are the view before it. */
export const Compaction = Schema.Struct({
  /** The last log entry before it. */
  after: Schema.NullOr(EntryId),
  /** Tokens of the view before and after. */
  tokens: Schema.Struct({ before: Schema.Natural, after: Schema.Natural }),
  /** The strategy that decided it; null when only the conversation is known and not its log. */
  strategy: Schema.NullOr(Schema.String),
  trigger: Schema.NullOr(Schema.Literals(["manual", "auto"])),
  /** The user's rating of its snapshot (`/rate`); null without one. */
  rating: Schema.NullOr(Rating),
  /** The messages as they were in the view before it. */
  dropped: Share,
  kept: Share,
  inserted: Share,
  /** Parts of the kept messages that were shown shortened from then on, and the tokens saved (negative when they grew). */
  shortened: Schema.Struct({ parts: Schema.Natural, saved: Schema.Int }),
  /**
   * The names, paths and numbers that the agent and the user used most at the end of the dropped messages (at most 200):
   * their number, and how many of them were still in the inserted or kept messages. Null when nothing was dropped, or there
   * is too much text to search.
   */
  facts: Schema.NullOr(Schema.Struct({ dropped: Schema.Natural, kept: Schema.Natural }))
})
export type Compaction = typeof Compaction.Type

/** Returns the tokens of a log message; 0 for the environment message. */
export const countedTokens = (entry: Entry): number => (entry.author === "environment" ? 0 : entryTokens(entry))

/** The sizes of a compression in force. */
export interface AppliedCompaction {
  /** Number of log entries before it. */
  readonly entries: number
  /** Tokens of the view before and after it, without the environment message. */
  readonly before: number
  readonly after: number
}

/** Returns the compressions in force, oldest first, with the tokens of the view before and after each. */
export const appliedCompactions = (
  conversation: Conversation,
  log: ReadonlyArray<Entry>
): ReadonlyArray<AppliedCompaction> => {
  const layers = PersistentList.toArray(conversation.undoable)
  return layers.map((layer, index) => {
    const next = layers[index + 1]
    const appended = sum(log.slice(layer.entries, next?.entries).map(countedTokens))
    const later = next === undefined ? viewTokens(conversation) : PersistentList.total(next.before)
    return { entries: layer.entries, before: PersistentList.total(layer.before), after: later - appended }
  })
}

/** Returns the tokens of the view after each message of the log, as it was at that time. */
export const viewSizes = (conversation: Conversation): ReadonlyArray<number> => {
  const log = entries(conversation)
  return sizesOf(log, appliedCompactions(conversation, log))
}

/** `viewSizes` for compressions that are already computed. */
export const sizesOf = (
  log: ReadonlyArray<Entry>,
  compactions: ReadonlyArray<AppliedCompaction>
): ReadonlyArray<number> => {
  let size = 0
  let laid = 0
  return log.map((entry, index) => {
    for (let next = compactions[laid]; next !== undefined && next.entries <= index; next = compactions[laid]) {
      size = next.after
      laid += 1
    }
    size += countedTokens(entry)
    return size
  })
}

type Decided = Extract<SessionEvent, { readonly _tag: "Compressed" }>

/** Returns the events of the compressions in force, oldest first. */
const inForce = (events: ReadonlyArray<SessionEvent>): ReadonlyArray<Decided> => {
  const held: Array<Decided> = []
  let undone: Array<Decided> = []
  const move = (from: Array<Decided>, to: Array<Decided>) => {
    const last = from.pop()
    if (last !== undefined) to.push(last)
  }
  for (const event of currentPath(events)) {
    if (event._tag === "Undone") move(held, undone)
    else if (event._tag === "Redone") move(undone, held)
    else if (event._tag === "Compressed") {
      held.push(event)
      undone = []
    }
  }
  return held
}

/** Returns the ratings in force, by the snapshot's message. */
const ratingsIn = (events: ReadonlyArray<SessionEvent>): ReadonlyMap<EntryId, Rating | undefined> =>
  new Map(
    events.flatMap((event) => (event._tag === "Labelled" ? [[event.entry, ratingOf(event.label ?? "")] as const] : []))
  )

/** The items of a view that a patch drops and those that it leaves, without the environment message. */
interface PartedView {
  readonly dropped: ReadonlyArray<ViewItem>
  readonly kept: ReadonlyArray<ViewItem>
}

const parted = (items: ReadonlyArray<ViewItem>, { drop }: Patch): PartedView => {
  const dropped: Array<ViewItem> = []
  const kept: Array<ViewItem> = []
  let dropping = false
  for (const item of items) {
    dropping = dropping || item.entry.id === drop?.from
    if (item.entry.author !== "environment") (dropping ? dropped : kept).push(item)
    if (item.entry.id === drop?.to) dropping = false
  }
  return { dropped, kept }
}

const shareOf = (items: ReadonlyArray<ViewItem>): Share => ({
  messages: items.length,
  tokens: sum(items.map(itemTokens))
})

/** Returns the last replacement of each part, by entry and part. */
const replacements = (patch: Patch): ReadonlyMap<string, Patch["shorten"][number]> =>
  new Map(patch.shorten.map((one) => [`${one.entry}:${one.part}`, one]))

const shortenedIn = (kept: ReadonlyArray<ViewItem>, patch: Patch): Compaction["shortened"] => {
  const items = patch.shorten.length === 0 ? new Map() : new Map(kept.map((item) => [item.entry.id, item]))
  const saved = [...replacements(patch).values()].flatMap(({ entry, part, tokens }) => {
    const item: ViewItem | undefined = items.get(entry)
    return item === undefined ? [] : [(item.shortened.get(part)?.tokens ?? item.entry.tokens[part] ?? 0) - tokens]
  })
  return { parts: saved.length, saved: sum(saved) }
}

/**
 * Limits of the search for facts: the number of facts per compression, the characters of dropped messages searched (the
 * latest), the characters searched in one text (of a file written whole, its beginning), and the tokens searched for these
 * facts in all views together.
 */
const searched = { facts: 200, characters: 50_000, text: 2_000, tokens: 4_000_000 }
/**
 * Weights of a mention by its author, and the number of messages after which it counts half. The extractive summarizer has
 * weights of its own (`NameWeights.ranking`).
 */
const weights = { halfLife: 50, user: 2, agent: 1, other: 0.5 }

/** Returns the facts that the agent and users used most at the end of some messages. */
const weightiest = (items: ReadonlyArray<ViewItem>): ReadonlyArray<string> => {
  const uses = new Map<string, number>()
  let left = searched.characters
  for (const [since, item] of items.toReversed().entries()) {
    if (left <= 0) break
    const { author, content } = item.entry
    const amount = author !== undefined ? weights.other : content.role === "user" ? weights.user : weights.agent
    const weight = amount * 0.5 ** (since / weights.halfLife)
    const texts: Array<string> = []
    for (const part of itemParts(item)) agentTexts(part, (text) => texts.push(text.slice(0, searched.text)))
    for (const text of texts) {
      eachAnchor(text, (fact) => uses.set(fact, (uses.get(fact) ?? 0) + weight))
      left -= text.length + 20
      if (left <= 0) break
    }
  }
  return [...uses]
    .sort((a, b) => b[1] - a[1])
    .slice(0, searched.facts)
    .map(([fact]) => fact)
}

/** The facts of a compression. */
interface DroppedFacts {
  /** Number of facts that it dropped. */
  readonly dropped: number
  /** Those of them that the messages which remain do not have, the most used first. */
  readonly lost: ReadonlyArray<string>
}

/** Finds the facts that a compression dropped, and which of them stand in no message that remains. */
function* factsOf(
  { dropped, kept }: PartedView,
  patch: Patch,
  inserted: ReadonlyArray<Part> = patch.insert.flatMap(({ content }) => content.parts)
): SlicedWork<DroppedFacts> {
  const replaced = replacements(patch)
  // Dialogue is searched first: it is shorter than tool output and holds most facts.
  const dialogue: Array<string> = []
  const outputs: Array<string> = []
  const read = (part: Part) => {
    agentTexts(part, (text) => dialogue.push(text))
    toolTexts(part, (text) => outputs.push(text))
  }
  inserted.forEach(read)
  for (const item of kept) {
    itemParts(item).forEach((part, index) => read(replaced.get(`${item.entry.id}:${index}`)?.replacement ?? part))
    yield
  }
  const remaining = [dialogue.join("\n"), outputs.join("\n")]
  const facts = weightiest(dropped)
  const isKept = yield* eachItem(facts, (fact) => remaining.some((text) => text.includes(fact)))
  return { dropped: facts.length, lost: facts.filter((_, index) => isKept[index] === false) }
}

/**
 * Returns the facts that the compression in force at this index lost. With `snapshot`, as if it had inserted this text. Undefined when
 * it dropped nothing.
 */
export function* lostFacts(
  conversation: Conversation,
  index: number,
  snapshot?: string
): SlicedWork<ReadonlyArray<string> | undefined> {
  const layer = PersistentList.toArray(conversation.undoable)[index]
  if (layer === undefined) return undefined
  const view = parted(PersistentList.toArray(layer.before), layer.patch)
  if (view.dropped.length === 0) return undefined
  return (yield* factsOf(view, layer.patch, snapshot === undefined ? undefined : [{ text: snapshot }])).lost
}

/**
 * Returns what each compression in force did, the oldest first. When there is too much text to search, the facts of the oldest are
 * skipped.
 */
export function* compactionsOf(
  conversation: Conversation,
  log: ReadonlyArray<Entry>,
  applied: ReadonlyArray<AppliedCompaction>,
  events: ReadonlyArray<SessionEvent>
): SlicedWork<ReadonlyArray<Compaction>> {
  const decided = inForce(events)
  const ratings = ratingsIn(events)
  const compactions: Array<Compaction> = []
  let left = searched.tokens
  for (const [index, layer] of [...PersistentList.toArray(conversation.undoable).entries()].reverse()) {
    const sizes = applied[index]
    if (sizes === undefined) continue
    const { patch } = layer
    const view = parted(PersistentList.toArray(layer.before), patch)
    const shares = { dropped: shareOf(view.dropped), kept: shareOf(view.kept) }
    left -= shares.dropped.tokens + shares.kept.tokens
    const facts = view.dropped.length === 0 || left < 0 ? null : yield* factsOf(view, patch)
    compactions.push({
      after: log[sizes.entries - 1]?.id ?? null,
      tokens: { before: sizes.before, after: sizes.after },
      strategy: decided[index]?.strategy ?? null,
      trigger: decided[index]?.trigger ?? null,
      rating: patch.insert.map(({ id }) => ratings.get(id)).find((rating) => rating !== undefined) ?? null,
      ...shares,
      inserted: {
        messages: patch.insert.filter(({ author }) => author !== "environment").length,
        tokens: sum(patch.insert.map(countedTokens))
      },
      shortened: shortenedIn(view.kept, patch),
      facts: facts && { dropped: facts.dropped, kept: facts.dropped - facts.lost.length }
    })
    yield
  }
  return compactions.reverse()
}
