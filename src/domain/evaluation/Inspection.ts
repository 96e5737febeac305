/** Inspects where the tokens of a conversation go. The environment message is always counted separately, as in the limits. */

import { Schema } from "effect"
import { actionsOf } from "../actions/Actions.ts"
import { isCommand } from "../actions/AgentTools.ts"
import { answerText } from "../actions/ToolResults.ts"
import { isCall, isResponse, type Part, Role } from "../content/Content.ts"
import { type CallPairs, callPairs } from "../conversation/CallPairs.ts"
import {
  type Conversation,
  entries,
  type Entry,
  EntryId,
  entryTokens,
  inserted,
  sum,
  view,
  type ViewItem,
  viewTokens
} from "../conversation/Conversation.ts"
import type { SessionEvent } from "../session/Session.ts"
import { relativePath } from "../text/WorkspacePath.ts"
import { Cost, type Prices } from "../tokens/Prices.ts"
import { isPrompt } from "../transcripts/voice/Voice.ts"
import { type AppliedCompaction, Compaction, sizesOf } from "./Compactions.ts"
import { LargePart, PartKind, partKindOf, preview } from "./PartKind.ts"
import { answersIn, recordedCost, RecordedUsage, summaryRequests, usageOf } from "./RecordedUse.ts"
import { RepeatedReads } from "./RepeatedReads.ts"

/** Tokens in total (the log and the entries that compressions inserted) and in the current view (shortened parts as shown). */
const sums = { tokens: Schema.Natural, view: Schema.Natural }

/** A call or a response without its counterpart. */
export const Unpaired = Schema.Struct({ entry: EntryId, part: Schema.Natural, tool: Schema.String })
export type Unpaired = typeof Unpaired.Type

/** A file that was read more than once. */
export const RepeatedRead = Schema.Struct({
  /** The path as the calls name it, without a leading `./` or the conversation's folder. */
  path: Schema.String,
  reads: Schema.Natural,
  /** Tokens of all its outputs. */
  tokens: Schema.Natural,
  /** Tokens of the lines that an earlier output had shown. */
  repeated: Schema.Natural,
  /** The entries that hold the outputs, in order. */
  entries: Schema.Array(EntryId)
})
export type RepeatedRead = typeof RepeatedRead.Type

/** The composition of a conversation. */
export const Inspection = Schema.Struct({
  /** Messages in the log, the environment message included. */
  messages: Schema.Natural,
  /** Number of the user's prompts. */
  turns: Schema.Natural,
  tokens: Schema.Struct({ all: Schema.Natural, view: Schema.Natural, environment: Schema.Natural }),
  roles: Schema.Array(Schema.Struct({ role: Role, messages: Schema.Natural, ...sums })),
  kinds: Schema.Array(Schema.Struct({ kind: PartKind, parts: Schema.Natural, ...sums })),
  tools: Schema.Array(
    Schema.Struct({
      tool: Schema.String,
      calls: Schema.Natural,
      /** Tokens of the call arguments. */
      arguments: Schema.Natural,
      outputs: Schema.Natural,
      /** Tokens of the responses. */
      output: Schema.Natural,
      /** Tokens of both in the current view. */
      view: Schema.Natural
    })
  ),
  largest: Schema.Array(LargePart),
  /** Tokens of the view at the end of each turn. */
  growth: Schema.Array(Schema.Struct({ turn: Schema.Natural, entry: EntryId, tokens: Schema.Natural })),
  /** The compressions in force, oldest first. */
  compactions: Schema.Array(Compaction),
  /** Files that were read more than once, by the tokens of the repeats. */
  reads: Schema.Array(RepeatedRead),
  /** Null when the agent recorded none. */
  usage: Schema.NullOr(RecordedUsage),
  /** Cost of all requests, including those of compressions. */
  cost: Cost,
  /** Cost of the compressions' model calls alone. Without models when none was recorded. */
  compressing: Cost,
  broken: Schema.Struct({
    /** Calls without a response. Those of the last message may still get one. */
    calls: Schema.Array(Unpaired),
    /** Responses without a call. */
    responses: Schema.Array(Unpaired)
  })
})
export type Inspection = typeof Inspection.Type

/** Facts about a conversation that its messages do not contain. */
export interface InspectionContext {
  /** The events of its log, which tell the strategy and the reason of each compression. */
  readonly events?: ReadonlyArray<SessionEvent> | undefined
  /** The model of answers that do not name one. */
  readonly model?: string | undefined
  /** The folder that the conversation took place in. */
  readonly cwd?: string | undefined
  /** Absent: the built-in list prices. */
  readonly prices?: Prices | undefined
}

/** The number of some messages, parts or calls, their tokens, and their tokens in the view. */
interface Sum {
  count: number
  tokens: number
  view: number
}

/** Returns the sum under a key, and creates it when it is missing. */
const sumOf = <K>(sums: Map<K, Sum>, key: K): Sum => {
  const existing = sums.get(key)
  if (existing !== undefined) return existing
  const fresh = { count: 0, tokens: 0, view: 0 }
  sums.set(key, fresh)
  return fresh
}

const bySize = (a: { readonly tokens: number }, b: { readonly tokens: number }) => b.tokens - a.tokens

/** Number of largest parts to report. */
const largestCount = 10

/** Sums tokens by role, kind and tool, and collects the largest parts. Mutable. */
class Tally {
  readonly roles = new Map<Role, Sum>()
  readonly kinds = new Map<PartKind, Sum>()
  readonly calls = new Map<string, Sum>()
  readonly outputs = new Map<string, Sum>()
  /** Tokens of the environment message, which no other sum includes. */
  environment = 0
  /** Candidates for the largest parts, in no order. */
  largest: Array<LargePart> = []
  private least = -1

  /** Adds a part to the largest ones if it is one of them. */
  add(large: Omit<LargePart, "preview">, part: Part): void {
    if (large.tokens <= this.least) return
    this.largest.push({ ...large, preview: preview(part) })
    if (this.largest.length < 8 * largestCount) return
    this.largest = this.largest.sort(bySize).slice(0, largestCount)
    this.least = this.largest.at(-1)?.tokens ?? this.least
  }

  /** Returns the sums as an inspection has them, largest first. */
  sums() {
    return {
      roles: [...this.roles].map(([role, { count, tokens, view }]) => ({ role, messages: count, tokens, view })),
      kinds: [...this.kinds]
        .map(([kind, { count, tokens, view }]) => ({ kind, parts: count, tokens, view }))
        .sort(bySize),
      tools: [...new Set([...this.calls.keys(), ...this.outputs.keys()])]
        .map((tool) => {
          const called = sumOf(this.calls, tool)
          const answered = sumOf(this.outputs, tool)
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
      largest: [...this.largest].sort(bySize).slice(0, largestCount)
    }
  }
}

// --- reads --------------------------------------------------------------------------------------------------------------

/** Returns a function that normalises paths: relative to the conversation's folder, without redundant steps. */
export const relativePathsTo =
  (cwd: string | undefined) =>
  (path: string): string =>
    relativePath(path, cwd).replace(/(^|[\\/])(?:\.[\\/]+)+/g, "$1")

/** Reads the messages of a conversation one by one, and finds where its tokens go. */
export class MessageInspection {
  /** The messages to read: the log, and what compressions inserted. */
  readonly all: ReadonlyArray<Entry>
  readonly log: ReadonlyArray<Entry>
  private readonly conversation: Conversation
  private readonly about: InspectionContext
  private readonly shown: ReadonlyMap<EntryId, ViewItem>
  private readonly pairs: CallPairs
  private readonly tally = new Tally()
  private readonly reads = new RepeatedReads()
  private readonly relative: (path: string) => string
  private readonly calls: Array<Unpaired> = []
  private readonly responses: Array<Unpaired> = []

  constructor(conversation: Conversation, about: InspectionContext) {
    this.conversation = conversation
    this.about = about
    this.log = entries(conversation)
    this.all = [...this.log, ...inserted(conversation)]
    this.shown = new Map(view(conversation).map((item) => [item.entry.id, item]))
    this.pairs = callPairs(this.all.map((entry) => entry.content))
    this.relative = relativePathsTo(about.cwd)
  }

  /** Reads the next of all messages. */
  read(entry: Entry, item: number): void {
    // Copies that compressions inserted are no reads.
    if (item < this.log.length) this.addReads(entry, item)
    if (entry.author === "environment") {
      this.tally.environment += entryTokens(entry)
      return
    }
    sumOf(this.tally.roles, entry.content.role).count += 1
    for (const [index, part] of entry.content.parts.entries()) {
      const tool = this.toolOf(item, index, part)
      this.addPart(entry, index, part, tool)
      if (tool === undefined) continue
      if (this.pairs.partnerOf(item, index) !== undefined) continue
      const unpaired = isCall(part) ? this.calls : this.responses
      unpaired.push({ entry: entry.id, part: index, tool })
    }
  }

  private addPart(entry: Entry, index: number, part: Part, tool: string | undefined): void {
    const { tally } = this
    const kind = partKindOf(entry, part)
    const tokens = entry.tokens[index] ?? 0
    const seen = this.shown.get(entry.id)
    const visible = seen === undefined ? 0 : (seen.shortened.get(index)?.tokens ?? tokens)
    const own = [sumOf(tally.kinds, kind)]
    if (tool !== undefined) own.push(sumOf(isCall(part) ? tally.calls : tally.outputs, tool))
    for (const sum of own) sum.count += 1
    for (const sum of [sumOf(tally.roles, entry.content.role), ...own]) {
      sum.tokens += tokens
      sum.view += visible
    }
    const handle = entry.handles[index] ?? null
    tally.add({ entry: entry.id, part: index, kind, tool: tool ?? null, tokens, handle }, part)
  }

  private toolOf(item: number, index: number, part: Part): string | undefined {
    if (isCall(part)) return part.functionCall.name
    if (!isResponse(part)) return undefined
    const place = this.pairs.partnerOf(item, index)
    const call = place === undefined ? undefined : this.all[place.item]?.content.parts[place.part]
    return part.functionResponse.name ?? call?.functionCall?.name ?? "unknown"
  }

  /** Adds the files that calls read. The tokens of a call that read several files are divided evenly. */
  private addReads(entry: Entry, item: number): void {
    for (const [index, part] of entry.content.parts.entries()) {
      // What a command did to files does not count: finding it would take longer than everything else.
      if (!isCall(part) || isCommand(part.functionCall.args)) continue
      const place = this.pairs.partnerOf(item, index)
      const answering = place === undefined ? undefined : this.log[place.item]
      if (place === undefined || answering === undefined) continue
      const answer = answering.content.parts[place.part]
      const paths = new Set(
        actionsOf(part, answer).flatMap((action) => (action._tag === "Read" ? [this.relative(action.path)] : []))
      )
      if (paths.size === 0) continue
      const read = { text: answerText(answer), tokens: answering.tokens[place.part] ?? 0 }
      this.reads.add(paths, read, answering.id)
    }
  }

  /** Returns the inspection after all messages were read. */
  inspection(applied: ReadonlyArray<AppliedCompaction>, compactions: ReadonlyArray<Compaction>): Inspection {
    const { about, conversation, log, tally } = this
    const sizes = sizesOf(log, applied)
    const answers = answersIn(log, sizes)
    const usage = usageOf(answers)
    const summaries = summaryRequests(about.events ?? [])
    const starts = log.flatMap((entry, index) => (isPrompt(entry) ? [index] : []))
    const sums = tally.sums()
    return {
      messages: log.length,
      turns: starts.length,
      tokens: {
        all: sum(sums.roles.map(({ tokens }) => tokens)),
        view: viewTokens(conversation),
        environment: tally.environment
      },
      ...sums,
      growth: starts.flatMap((_, turn) => {
        const last = (starts[turn + 1] ?? log.length) - 1
        const entry = log[last]
        return entry === undefined ? [] : [{ turn: turn + 1, entry: entry.id, tokens: sizes[last] ?? 0 }]
      }),
      compactions,
      reads: this.reads.repeated(),
      usage,
      cost: recordedCost(answers, usage === null && answers.length > 0, summaries, about),
      compressing: recordedCost([], false, summaries, about),
      broken: { calls: this.calls, responses: this.responses }
    }
  }
}
