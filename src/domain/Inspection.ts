import { Schema } from "effect"
import * as Chain from "./Chain.ts"
import { isCall, isMedia, isResponse, isText, isThought, outputText, type Part, Role } from "./Content.ts"
import {
  type Conversation,
  entries,
  type Entry,
  EntryId,
  entryTokens,
  inserted,
  pairing,
  placeKey,
  view,
  viewTokens
} from "./Conversation.ts"
import { Handle } from "./Handle.ts"
import type { Work } from "./Work.ts"

/**
 * Where the tokens of a conversation go. The environment message is counted apart, everywhere, as the limits do.
 */

/** What a part is, for whoever pays for it. */
export const Kind = Schema.Literals([
  "user",
  "program",
  "model",
  "thought",
  "summary",
  "call",
  "output",
  "media",
  "other"
])
export type Kind = typeof Kind.Type

/** Tokens in all (the log and what compressions inserted) and in the current view (shortened parts as they are shown). */
const sums = { tokens: Schema.Natural, view: Schema.Natural }

/** One of the largest parts. */
export const LargePart = Schema.Struct({
  entry: EntryId,
  /** Its index in the message. */
  part: Schema.Natural,
  kind: Kind,
  tool: Schema.NullOr(Schema.String),
  tokens: Schema.Natural,
  handle: Schema.NullOr(Handle),
  /** Its first characters, safe for a terminal. */
  preview: Schema.String
})
export type LargePart = typeof LargePart.Type

/** A call or a response that stands alone. */
export const Unpaired = Schema.Struct({ entry: EntryId, part: Schema.Natural, tool: Schema.String })
export type Unpaired = typeof Unpaired.Type

/** What a conversation consists of. */
export const Inspection = Schema.Struct({
  /** Messages in the log, the environment message included. */
  messages: Schema.Natural,
  /** Times the user spoke. */
  turns: Schema.Natural,
  tokens: Schema.Struct({ all: Schema.Natural, view: Schema.Natural, environment: Schema.Natural }),
  roles: Schema.Array(Schema.Struct({ role: Role, messages: Schema.Natural, ...sums })),
  kinds: Schema.Array(Schema.Struct({ kind: Kind, parts: Schema.Natural, ...sums })),
  tools: Schema.Array(
    Schema.Struct({
      tool: Schema.String,
      calls: Schema.Natural,
      /** Tokens of the arguments it was called with. */
      arguments: Schema.Natural,
      outputs: Schema.Natural,
      /** Tokens of what it answered. */
      output: Schema.Natural,
      /** Tokens of both in the current view. */
      view: Schema.Natural
    })
  ),
  largest: Schema.Array(LargePart),
  /** Tokens of the view when each turn was over. */
  growth: Schema.Array(Schema.Struct({ turn: Schema.Natural, entry: EntryId, tokens: Schema.Natural })),
  /** Compressions that are in force, oldest first: tokens of the view before and after. */
  compactions: Schema.Array(
    Schema.Struct({
      /** The last entry of the log before it. */
      after: Schema.NullOr(EntryId),
      tokens: Schema.Struct({ before: Schema.Natural, after: Schema.Natural })
    })
  ),
  broken: Schema.Struct({
    /** Calls that were never answered; those of the last message may still be. */
    calls: Schema.Array(Unpaired),
    /** Responses to no call. */
    responses: Schema.Array(Unpaired)
  })
})
export type Inspection = typeof Inspection.Type

/** A text without what a terminal would act on (control and formatting characters), on one line. */
export const printable = (text: string): string =>
  text
    .replace(/\p{Cc}\[[0-?]*[ -/]*[@-~]/gu, "")
    .replace(/[\s\p{Zl}\p{Zp}]+/gu, " ")
    .replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Co}]/gu, "")
    .trim()

/** What a part says, in at most `width` characters that are safe for a terminal. */
export const preview = (part: Part, width = 60): string => {
  const text = isCall(part)
    ? JSON.stringify(part.functionCall.args ?? {})
    : (outputText(part) ?? part.text ?? JSON.stringify(part.functionResponse?.response ?? part))
  const shown = [...printable(text.slice(0, width * 8))]
  return shown.length <= width ? shown.join("") : `${shown.slice(0, width - 1).join("")}…`
}

const kindOf = (entry: Entry, part: Part): Kind => {
  if (isCall(part)) return "call"
  if (isResponse(part)) return "output"
  if (isMedia(part)) return "media"
  if (isThought(part)) return "thought"
  if (!isText(part)) return "other"
  if (entry.author === "summary" || entry.author === "program") return entry.author
  return entry.content.role
}

/** Whether the user speaks in this message, so that a turn begins with it. */
export const opensTurn = (entry: Entry): boolean =>
  entry.content.role === "user" &&
  entry.author === undefined &&
  entry.content.parts.some((part) => (isText(part) && part.text !== "") || isMedia(part))

interface Compaction {
  readonly entries: number
  readonly before: number
  readonly after: number
}

const counted = (entry: Entry): number => (entry.author === "environment" ? 0 : entryTokens(entry))

/** The compressions that lie over a conversation, oldest first, with the view's tokens before and after each. */
const compactionsOf = (conversation: Conversation, log: ReadonlyArray<Entry>): ReadonlyArray<Compaction> => {
  const layers = Chain.toArray(conversation.undoable)
  return layers.map((layer, index) => {
    const next = layers[index + 1]
    const appended = log.slice(layer.entries, next?.entries).reduce((total, entry) => total + counted(entry), 0)
    const later = next === undefined ? viewTokens(conversation) : Chain.total(next.before)
    return { entries: layer.entries, before: Chain.total(layer.before), after: later - appended }
  })
}

/** Tokens of the view after each message of the log, as it was at that time. */
export const viewSizes = (conversation: Conversation): ReadonlyArray<number> => {
  const log = entries(conversation)
  const compactions = compactionsOf(conversation, log)
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

interface Sum {
  count: number
  tokens: number
  view: number
}

const sumOf = <K>(sums: Map<K, Sum>, key: K): Sum => {
  const known = sums.get(key)
  if (known !== undefined) return known
  const fresh = { count: 0, tokens: 0, view: 0 }
  sums.set(key, fresh)
  return fresh
}

/** How many of the largest parts are told. */
const largestCount = 10

/** Where the tokens of a conversation go. */
export function* inspect(conversation: Conversation): Work<Inspection> {
  const log = entries(conversation)
  const all = [...log, ...inserted(conversation)]
  const shown = new Map(view(conversation).map((item) => [item.entry.id, item]))
  yield all.length * 20
  const pairs = pairing(all.map((entry) => entry.content))
  yield all.length * 50

  const roles = new Map<Role, Sum>()
  const kinds = new Map<Kind, Sum>()
  const calls = new Map<string, Sum>()
  const outputs = new Map<string, Sum>()
  let environment = 0
  let largest: Array<Omit<LargePart, "preview"> & { readonly value: Part }> = []
  const broken: { readonly calls: Array<Unpaired>; readonly responses: Array<Unpaired> } = { calls: [], responses: [] }

  const toolOf = (item: number, index: number, part: Part): string | undefined => {
    if (isCall(part)) return part.functionCall.name
    if (!isResponse(part)) return undefined
    const place = pairs.callOf.get(placeKey({ item, part: index }))
    const call = place === undefined ? undefined : all[place.item]?.content.parts[place.part]
    return part.functionResponse.name ?? call?.functionCall?.name ?? "unknown"
  }

  for (const [item, entry] of all.entries()) {
    yield 100 * entry.content.parts.length
    if (entry.author === "environment") {
      environment += entryTokens(entry)
      continue
    }
    const seen = shown.get(entry.id)
    const role = sumOf(roles, entry.content.role)
    role.count += 1
    for (const [index, part] of entry.content.parts.entries()) {
      const kind = kindOf(entry, part)
      const tool = toolOf(item, index, part)
      const tokens = entry.tokens[index] ?? 0
      const visible = seen === undefined ? 0 : (seen.shortened.get(index)?.tokens ?? tokens)
      const sums = [role, sumOf(kinds, kind)]
      if (tool !== undefined) sums.push(sumOf(isCall(part) ? calls : outputs, tool))
      for (const [position, sum] of sums.entries()) {
        if (position > 0) sum.count += 1
        sum.tokens += tokens
        sum.view += visible
      }
      largest.push({
        entry: entry.id,
        part: index,
        kind,
        tool: tool ?? null,
        tokens,
        handle: entry.handles[index] ?? null,
        value: part
      })
      const place = placeKey({ item, part: index })
      if (isCall(part) && !pairs.responseOf.has(place))
        broken.calls.push({ entry: entry.id, part: index, tool: tool ?? "" })
      if (isResponse(part) && !pairs.callOf.has(place))
        broken.responses.push({ entry: entry.id, part: index, tool: tool ?? "" })
    }
    if (largest.length > 1_000) largest = largest.sort((a, b) => b.tokens - a.tokens).slice(0, largestCount)
  }

  const sizes = viewSizes(conversation)
  const starts = log.flatMap((entry, index) => (opensTurn(entry) ? [index] : []))
  const toolNames = new Set([...calls.keys(), ...outputs.keys()])
  const bySize = <A extends { readonly tokens: number }>(a: A, b: A) => b.tokens - a.tokens
  return {
    messages: log.length,
    turns: starts.length,
    tokens: {
      all: [...roles.values()].reduce((total, sum) => total + sum.tokens, 0),
      view: viewTokens(conversation),
      environment
    },
    roles: [...roles].map(([role, { count, tokens, view }]) => ({ role, messages: count, tokens, view })),
    kinds: [...kinds].map(([kind, { count, tokens, view }]) => ({ kind, parts: count, tokens, view })).sort(bySize),
    tools: [...toolNames]
      .map((tool) => {
        const called = sumOf(calls, tool)
        const answered = sumOf(outputs, tool)
        return {
          tool,
          calls: called.count,
          arguments: called.tokens,
          outputs: answered.count,
          output: answered.tokens,
          view: called.view + answered.view
        }
      })
      .sort((a, b) => b.arguments + b.output - (a.arguments + a.output)),
    largest: largest
      .sort(bySize)
      .slice(0, largestCount)
      .map(({ value, ...part }) => ({ ...part, preview: preview(value) })),
    growth: starts.flatMap((_, turn) => {
      const last = (starts[turn + 1] ?? log.length) - 1
      const entry = log[last]
      return entry === undefined ? [] : [{ turn: turn + 1, entry: entry.id, tokens: sizes[last] ?? 0 }]
    }),
    compactions: compactionsOf(conversation, log).map(({ after, before, entries }) => ({
      after: log[entries - 1]?.id ?? null,
      tokens: { before, after }
    })),
    broken
  }
}
