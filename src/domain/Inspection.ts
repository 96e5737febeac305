import { Schema } from "effect"
import { Compaction, compactionsOf, laidOver, sizesOf } from "./Compactions.ts"
import { isCall, isMedia, isResponse, isText, isThought, outputText, type Part, Role } from "./Content.ts"
import {
  type Conversation,
  entries,
  type Entry,
  EntryId,
  entryTokens,
  inserted,
  type Pairing,
  pairing,
  placeKey,
  view,
  viewTokens
} from "./Conversation.ts"
import { Handle } from "./Handle.ts"
import { Cost, type Prices } from "./Prices.ts"
import { answersIn, priced, Recorded, summaryRequests, usageOf } from "./RecordedUse.ts"
import type { SessionEvent } from "./Session.ts"
import { visibleLine } from "./Visible.ts"
import { actionsOf } from "./ToolCalls.ts"
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

/** A file that was read more than once. */
export const RepeatedRead = Schema.Struct({
  /** As the calls name it, without a leading `./` or the conversation's folder. */
  path: Schema.String,
  reads: Schema.Natural,
  /** Tokens of all its outputs. */
  tokens: Schema.Natural,
  /** Tokens of all but the first. */
  repeated: Schema.Natural,
  /** Where the outputs stand, in order. */
  entries: Schema.Array(EntryId)
})
export type RepeatedRead = typeof RepeatedRead.Type

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
  /** Compressions that are in force, oldest first. */
  compactions: Schema.Array(Compaction),
  /** Files that were read more than once, by the tokens of the repeats. */
  reads: Schema.Array(RepeatedRead),
  /** Null: the agent recorded none. */
  usage: Schema.NullOr(Recorded),
  /** All requests, those that compressed among them. */
  cost: Cost,
  /** The model calls of compressions alone; no models: none was recorded. */
  compressing: Cost,
  broken: Schema.Struct({
    /** Calls that were never answered; those of the last message may still be. */
    calls: Schema.Array(Unpaired),
    /** Responses to no call. */
    responses: Schema.Array(Unpaired)
  })
})
export type Inspection = typeof Inspection.Type

/** Letters, digits, signs and single blanks: all there is to see is seen. */
const ordinary = /^(?:[!-~]+(?: [!-~]+)*)?$/

/** A text on one line in which everything is seen, without sequences that only colour or move what is on a terminal. */
export const printable = (text: string): string =>
  ordinary.test(text)
    ? text
    : visibleLine(text.replace(/\p{Cc}\[[0-?]*[ -/]*[@-~]/gu, "").replace(/[\s\p{Zl}\p{Zp}]+/gu, " ")).trim()

/** What a part says, in at most `width` characters that are safe for a terminal. */
export const preview = (part: Part, width = 60): string => {
  const text = isCall(part)
    ? JSON.stringify(part.functionCall.args ?? {})
    : (outputText(part) ?? part.text ?? JSON.stringify(part.functionResponse?.response ?? part))
  const shown = [...printable(text.slice(0, width * 8))]
  return shown.length <= width ? shown.join("") : `${shown.slice(0, width - 1).join("")}…`
}

/** What a part of an entry is. */
export const kindOf = (entry: Entry, part: Part): Kind => {
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

/** What the conversation alone does not say. */
export interface About {
  /** The events of its log: who compressed it, and why. */
  readonly events?: ReadonlyArray<SessionEvent> | undefined
  /** The model of the answers that name none. */
  readonly model?: string | undefined
  /** The folder it was held in. */
  readonly cwd?: string | undefined
  /** Absent: the built-in list prices. */
  readonly prices?: Prices | undefined
}

// --- reads --------------------------------------------------------------------------------------------------------------

/** The way to tell a path: seen from the conversation's folder, without steps that lead nowhere. */
export const pathsFrom = (cwd: string | undefined): ((path: string) => string) => {
  const folder = cwd?.replace(/[\\/]$/, "")
  const isInside = (path: string) =>
    folder !== undefined && cwd !== "" && path.startsWith(folder) && /^[\\/]/.test(path.slice(folder.length))
  return (path) =>
    (isInside(path) ? path.slice((folder ?? "").length + 1) : path).replace(/(^|[\\/])(?:\.[\\/]+)+/g, "$1")
}

/** Whether a call is told to run something: what that did is no read, and finding out would take longer than all else. */
export const isCommand = (args: unknown): boolean =>
  typeof args === "object" && args !== null && ("command" in args || "cmd" in args || "script" in args)

/** The files that were read more than once: what one call read of several is shared out evenly. */
function* readsOf(
  all: ReadonlyArray<Entry>,
  pairs: Pairing,
  cwd: string | undefined
): Work<ReadonlyArray<RepeatedRead>> {
  const told = pathsFrom(cwd)
  const files = new Map<string, { reads: number; tokens: number; repeated: number; entries: Array<EntryId> }>()
  for (const [item, entry] of all.entries()) {
    for (const [index, part] of entry.content.parts.entries()) {
      if (!isCall(part) || isCommand(part.functionCall.args)) continue
      const place = pairs.responseOf.get(placeKey({ item, part: index }))
      const answering = place === undefined ? undefined : all[place.item]
      if (place === undefined || answering === undefined) continue
      yield 300
      const actions = actionsOf(part, answering.content.parts[place.part])
      const paths = new Set(actions.flatMap((action) => (action._tag === "Read" ? [told(action.path)] : [])))
      const tokens = answering.tokens[place.part] ?? 0
      let spare = tokens % Math.max(1, paths.size)
      for (const path of paths) {
        const file = files.get(path) ?? { reads: 0, tokens: 0, repeated: 0, entries: [] }
        files.set(path, file)
        const own = Math.floor(tokens / paths.size) + (spare > 0 ? 1 : 0)
        spare -= 1
        file.tokens += own
        if (file.reads > 0) file.repeated += own
        file.reads += 1
        file.entries.push(answering.id)
      }
    }
  }
  return [...files]
    .flatMap(([path, file]) => (file.reads > 1 ? [{ path, ...file }] : []))
    .sort((a, b) => b.repeated - a.repeated)
}

// --- sums ---------------------------------------------------------------------------------------------------------------

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

const bySize = <A extends { readonly tokens: number }>(a: A, b: A) => b.tokens - a.tokens

/** How many of the largest parts are told. */
const largestCount = 10

/** Where the tokens of a conversation go. */
export function* inspect(conversation: Conversation, about: About = {}): Work<Inspection> {
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
  /** Tokens that a part has to exceed to be among them. */
  let least = -1
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
      if (tokens > least) {
        const handle = entry.handles[index] ?? null
        largest.push({ entry: entry.id, part: index, kind, tool: tool ?? null, tokens, handle, value: part })
      }
      if (largest.length >= 8 * largestCount) {
        largest = largest.sort(bySize).slice(0, largestCount)
        least = largest.at(-1)?.tokens ?? least
      }
      if (tool === undefined) continue
      const isAnswered = isCall(part) ? pairs.responseOf : pairs.callOf
      if (isAnswered.has(placeKey({ item, part: index }))) continue
      broken[isCall(part) ? "calls" : "responses"].push({ entry: entry.id, part: index, tool })
    }
  }

  const laid = laidOver(conversation, log)
  const sizes = sizesOf(log, laid)
  yield log.length * 50
  const answers = answersIn(log, sizes)
  const usage = usageOf(answers)
  const summaries = summaryRequests(about.events ?? [])
  yield log.length * 50
  const starts = log.flatMap((entry, index) => (opensTurn(entry) ? [index] : []))
  const toolNames = new Set([...calls.keys(), ...outputs.keys()])
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
    compactions: yield* compactionsOf(conversation, log, laid, about.events ?? []),
    reads: yield* readsOf(log, pairs, about.cwd),
    usage,
    cost: priced(answers, usage === null && answers.length > 0, summaries, about),
    compressing: priced([], false, summaries, about),
    broken
  }
}
