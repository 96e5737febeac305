import { Schema } from "effect"
import { agentTexts, eachAnchor, toolTexts } from "./Anchors.ts"
import * as Chain from "./Chain.ts"
import type { Part } from "./Content.ts"
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
} from "./Conversation.ts"
import type { SessionEvent } from "./Session.ts"
import type { Work } from "./Work.ts"

/**
 * What the compressions that are in force kept and dropped, and how large the view was all along. The environment message is
 * not counted, as the limits do not count it.
 */

/** Messages, and their tokens, the environment message left out. */
const Share = Schema.Struct({ messages: Schema.Natural, tokens: Schema.Natural })
type Share = typeof Share.Type

/** A compression that is in force. `kept` and `dropped` are all that was in the view before. */
export const Compaction = Schema.Struct({
  /** The last entry of the log before it. */
  after: Schema.NullOr(EntryId),
  /** Of the view before and after. */
  tokens: Schema.Struct({ before: Schema.Natural, after: Schema.Natural }),
  /** Who decided it; null where only the conversation is known, not its log. */
  strategy: Schema.NullOr(Schema.String),
  trigger: Schema.NullOr(Schema.Literals(["manual", "auto"])),
  /** As they were in the view before it. */
  dropped: Share,
  kept: Share,
  inserted: Share,
  /** Of what was kept, the parts shown shortened from then on, and the tokens that saved (below 0: they grew). */
  shortened: Schema.Struct({ parts: Schema.Natural, saved: Schema.Int }),
  /**
   * Of the names, paths and numbers that the agent and the person used most at the end of what was dropped (at most 200):
   * how many there were, and how many of them still stood in what was inserted or kept. Null: nothing was dropped, or there
   * is too much to look through.
   */
  facts: Schema.NullOr(Schema.Struct({ dropped: Schema.Natural, kept: Schema.Natural }))
})
export type Compaction = typeof Compaction.Type

/** Tokens of a message of the log; the environment message has none. */
export const counted = (entry: Entry): number => (entry.author === "environment" ? 0 : entryTokens(entry))

/** A compression that lies over a conversation. */
export interface Laid {
  readonly entries: number
  readonly before: number
  readonly after: number
}

/** The compressions that lie over a conversation, oldest first, with the view's tokens before and after each. */
export const laidOver = (conversation: Conversation, log: ReadonlyArray<Entry>): ReadonlyArray<Laid> => {
  const layers = Chain.toArray(conversation.undoable)
  return layers.map((layer, index) => {
    const next = layers[index + 1]
    const appended = sum(log.slice(layer.entries, next?.entries).map(counted))
    const later = next === undefined ? viewTokens(conversation) : Chain.total(next.before)
    return { entries: layer.entries, before: Chain.total(layer.before), after: later - appended }
  })
}

/** Tokens of the view after each message of the log, as it was at that time. */
export const viewSizes = (conversation: Conversation): ReadonlyArray<number> => {
  const log = entries(conversation)
  return sizesOf(log, laidOver(conversation, log))
}

/** `viewSizes`, where the compressions are known already. */
export const sizesOf = (log: ReadonlyArray<Entry>, compactions: ReadonlyArray<Laid>): ReadonlyArray<number> => {
  let size = 0
  let laid = 0
  return log.map((entry, index) => {
    for (let next = compactions[laid]; next !== undefined && next.entries <= index; next = compactions[laid]) {
      size = next.after
      laid += 1
    }
    size += counted(entry)
    return size
  })
}

type Decided = Extract<SessionEvent, { readonly _tag: "Compressed" }>

/** The events of the compressions in force, oldest first. */
const inForce = (events: ReadonlyArray<SessionEvent>): ReadonlyArray<Decided> => {
  const held: Array<Decided> = []
  let undone: Array<Decided> = []
  const move = (from: Array<Decided>, to: Array<Decided>) => {
    const last = from.pop()
    if (last !== undefined) to.push(last)
  }
  for (const event of events) {
    if (event._tag === "Undone") move(held, undone)
    else if (event._tag === "Redone") move(undone, held)
    else if (event._tag === "Compressed") {
      held.push(event)
      undone = []
    }
  }
  return held
}

/** What a patch takes out of a view and what it leaves, the environment message in neither. */
const parted = (items: ReadonlyArray<ViewItem>, { drop }: Patch) => {
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

/** The last replacement of each part, by entry and part. */
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
 * How many facts are looked for in what one compression dropped: in so many characters of it, the latest, and so many of
 * one text (of a file that was written whole, its beginning). Where they stand is looked for in so many tokens of all
 * views together.
 */
const searched = { facts: 200, characters: 50_000, text: 2_000, tokens: 4_000_000 }
/** As the extractive summarizer ranks them: messages after which a use weighs half, and what a mention weighs. */
const weights = { halfLife: 50, person: 2, agent: 1, other: 0.5 }

/** The facts that were used most at the end of some messages, by the agent and by people. */
function* weightiest(items: ReadonlyArray<ViewItem>): Work<ReadonlyArray<string>> {
  const uses = new Map<string, number>()
  let left = searched.characters
  for (const [since, item] of items.toReversed().entries()) {
    if (left <= 0) break
    const { author, content } = item.entry
    const amount = author !== undefined ? weights.other : content.role === "user" ? weights.person : weights.agent
    const weight = amount * 0.5 ** (since / weights.halfLife)
    const texts: Array<string> = []
    for (const part of itemParts(item)) agentTexts(part, (text) => texts.push(text.slice(0, searched.text)))
    for (const text of texts) {
      eachAnchor(text, (fact) => uses.set(fact, (uses.get(fact) ?? 0) + weight))
      left -= text.length + 20
      yield text.length * 8 + 100
      if (left <= 0) break
    }
  }
  return [...uses]
    .sort((a, b) => b[1] - a[1])
    .slice(0, searched.facts)
    .map(([fact]) => fact)
}

/** Of the weightiest facts of what a patch drops, how many still stand, letter by letter, in what it leaves. */
function* factsOf(
  dropped: ReadonlyArray<ViewItem>,
  kept: ReadonlyArray<ViewItem>,
  patch: Patch
): Work<Compaction["facts"]> {
  const missing = new Set(yield* weightiest(dropped))
  const all = missing.size
  const replaced = replacements(patch)
  // What was said is searched first: it is less than what tools answered, and holds most.
  const said: Array<string> = []
  const answered: Array<string> = []
  const read = (part: Part) => {
    agentTexts(part, (text) => said.push(text))
    toolTexts(part, (text) => answered.push(text))
  }
  for (const entry of patch.insert) entry.content.parts.forEach(read)
  for (const item of kept) {
    itemParts(item).forEach((part, index) => read(replaced.get(`${item.entry.id}:${index}`)?.replacement ?? part))
  }
  for (const texts of [said, answered]) {
    if (missing.size === 0) break
    const text = texts.join("\n")
    yield text.length
    for (const fact of missing) {
      if (text.includes(fact)) missing.delete(fact)
      yield text.length / 8
    }
  }
  return { dropped: all, kept: all - missing.size }
}

/** What each compression in force did, oldest first. */
export function* compactionsOf(
  conversation: Conversation,
  log: ReadonlyArray<Entry>,
  laid: ReadonlyArray<Laid>,
  events: ReadonlyArray<SessionEvent>
): Work<ReadonlyArray<Compaction>> {
  const layers = Chain.toArray(conversation.undoable)
  const decided = inForce(events)
  const found: Array<Compaction> = []
  let left = searched.tokens
  // The latest first: when there is too much to look through, it is the old ones that go without.
  for (let index = layers.length - 1; index >= 0; index -= 1) {
    const layer = layers[index]
    const sizes = laid[index]
    if (layer === undefined || sizes === undefined) continue
    const { dropped, kept } = parted(Chain.toArray(layer.before), layer.patch)
    yield (dropped.length + kept.length) * 50
    const shares = { dropped: shareOf(dropped), kept: shareOf(kept) }
    left -= shares.dropped.tokens + shares.kept.tokens
    found.push({
      after: log[sizes.entries - 1]?.id ?? null,
      tokens: { before: sizes.before, after: sizes.after },
      strategy: decided[index]?.strategy ?? null,
      trigger: decided[index]?.trigger ?? null,
      ...shares,
      inserted: {
        messages: layer.patch.insert.filter(({ author }) => author !== "environment").length,
        tokens: sum(layer.patch.insert.map(counted))
      },
      shortened: shortenedIn(kept, layer.patch),
      facts: dropped.length === 0 || left < 0 ? null : yield* factsOf(dropped, kept, layer.patch)
    })
  }
  return found.reverse()
}
