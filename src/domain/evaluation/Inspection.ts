import { Schema } from "effect"
import { actionsOf } from "../actions/Actions.ts"
import { isCommand } from "../actions/AgentTools.ts"
import { answerText } from "../actions/ToolResults.ts"
import { isCall, isResponse, type Part, Role } from "../content/Content.ts"
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
} from "../conversation/Conversation.ts"
import type { SessionEvent } from "../session/Session.ts"
import type { SlicedWork } from "../text/SlicedWork.ts"
import { relativePath } from "../text/WorkspacePath.ts"
import { Cost, type Prices } from "../tokens/Prices.ts"
import { isPrompt } from "../transcripts/voice/Voice.ts"
import { Compaction, compactionsOf, appliedCompactions, sizesOf } from "./Compactions.ts"
import { LargePart, PartKind, partKindOf } from "./PartKind.ts"
import { answersIn, recordedCost, RecordedUsage, summaryRequests, usageOf } from "./RecordedUse.ts"
import { RepeatedReads } from "./RepeatedReads.ts"
import { sumOf, tallied, Tally } from "./Tally.ts"

/** Inspects where the tokens of a conversation go. The environment message is always counted separately, as in the limits. */

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

// --- reads --------------------------------------------------------------------------------------------------------------

/** Returns a function that normalises paths: relative to the conversation's folder, without redundant steps. */
export const relativePathsTo =
  (cwd: string | undefined) =>
  (path: string): string =>
    relativePath(path, cwd).replace(/(^|[\\/])(?:\.[\\/]+)+/g, "$1")

/** Returns the files that were read more than once. The tokens of a call that read several files are divided evenly. */
function* readsOf(
  all: ReadonlyArray<Entry>,
  pairs: Pairing,
  cwd: string | undefined
): SlicedWork<ReadonlyArray<RepeatedRead>> {
  const relative = relativePathsTo(cwd)
  const reads = new RepeatedReads()
  for (const [item, entry] of all.entries()) {
    for (const [index, part] of entry.content.parts.entries()) {
      // What a command did to files does not count: finding it would take longer than everything else.
      if (!isCall(part) || isCommand(part.functionCall.args)) continue
      const place = pairs.responseOf.get(placeKey({ item, part: index }))
      const answering = place === undefined ? undefined : all[place.item]
      if (place === undefined || answering === undefined) continue
      yield 300
      const answer = answering.content.parts[place.part]
      const actions = actionsOf(part, answer)
      const paths = new Set(actions.flatMap((action) => (action._tag === "Read" ? [relative(action.path)] : [])))
      if (paths.size === 0) continue
      const text = answerText(answer)
      reads.add(paths, { text, tokens: answering.tokens[place.part] ?? 0 }, answering.id)
      yield text.length * 2
    }
  }
  return reads.repeated()
}

/** Inspects where the tokens of a conversation go. */
export function* inspect(conversation: Conversation, about: InspectionContext = {}): SlicedWork<Inspection> {
  const log = entries(conversation)
  const all = [...log, ...inserted(conversation)]
  const shown = new Map(view(conversation).map((item) => [item.entry.id, item]))
  yield all.length * 20
  const pairs = pairing(all.map((entry) => entry.content))
  yield all.length * 50

  const tally = new Tally()
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
      tally.environment += entryTokens(entry)
      continue
    }
    const seen = shown.get(entry.id)
    const role = sumOf(tally.roles, entry.content.role)
    role.count += 1
    for (const [index, part] of entry.content.parts.entries()) {
      const kind = partKindOf(entry, part)
      const tool = toolOf(item, index, part)
      const tokens = entry.tokens[index] ?? 0
      const visible = seen === undefined ? 0 : (seen.shortened.get(index)?.tokens ?? tokens)
      const sums = [role, sumOf(tally.kinds, kind)]
      if (tool !== undefined) sums.push(sumOf(isCall(part) ? tally.calls : tally.outputs, tool))
      for (const [position, sum] of sums.entries()) {
        if (position > 0) sum.count += 1
        sum.tokens += tokens
        sum.view += visible
      }
      const handle = entry.handles[index] ?? null
      tally.add({ entry: entry.id, part: index, kind, tool: tool ?? null, tokens, handle }, part)
      if (tool === undefined) continue
      const isAnswered = isCall(part) ? pairs.responseOf : pairs.callOf
      if (isAnswered.has(placeKey({ item, part: index }))) continue
      broken[isCall(part) ? "calls" : "responses"].push({ entry: entry.id, part: index, tool })
    }
  }

  const laid = appliedCompactions(conversation, log)
  const sizes = sizesOf(log, laid)
  yield log.length * 50
  const answers = answersIn(log, sizes)
  const usage = usageOf(answers)
  const summaries = summaryRequests(about.events ?? [])
  yield log.length * 50
  const starts = log.flatMap((entry, index) => (isPrompt(entry) ? [index] : []))
  const { all: allTokens, environment, ...sums } = tallied([tally])
  return {
    messages: log.length,
    turns: starts.length,
    tokens: { all: allTokens, view: viewTokens(conversation), environment },
    ...sums,
    growth: starts.flatMap((_, turn) => {
      const last = (starts[turn + 1] ?? log.length) - 1
      const entry = log[last]
      return entry === undefined ? [] : [{ turn: turn + 1, entry: entry.id, tokens: sizes[last] ?? 0 }]
    }),
    compactions: yield* compactionsOf(conversation, log, laid, about.events ?? []),
    reads: yield* readsOf(log, pairs, about.cwd),
    usage,
    cost: recordedCost(answers, usage === null && answers.length > 0, summaries, about),
    compressing: recordedCost([], false, summaries, about),
    broken
  }
}
