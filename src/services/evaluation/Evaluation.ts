/** Measures what compressions of a recording leave to the agent that continues. */

import { Effect } from "effect"
import { statusOf } from "../../domain/compression/Compression.ts"
import { defaultPolicy } from "../../domain/compression/strategies/Policy.ts"
import { defaultStrategy, type StrategyName } from "../../domain/compression/strategies/Strategies.ts"
import { append, type Conversation, entries, entryId, inserted, view } from "../../domain/conversation/Conversation.ts"
import { type CompactionPoint, compactionPoints, shownText } from "../../domain/evaluation/CompactionPoints.ts"
import type { MeasuredPoint, MeasuredRow } from "../../domain/evaluation/EvaluationReport.ts"
import type { Measure } from "../../domain/evaluation/Measure.ts"
import { type MeasuredText, prepareMeasures } from "../../domain/evaluation/Measuring.ts"
import { recaller } from "../../domain/evaluation/OneRecall.ts"
import { emptySession, type Session, type SessionEvent } from "../../domain/session/Session.ts"
import * as Work from "../../domain/text/SlicedWork.ts"
import { estimateText, TokenCount } from "../../domain/tokens/Tokens.ts"
import type { Compression } from "../compression/Compression.ts"
import { compress, type KnownConversation } from "../conversation/KnownConversation.ts"
import { ReportProgress } from "../platform/Progress.ts"
import { HandleIndex } from "../session/EntryBuilder.ts"

/** Options of an evaluation. */
export interface EvaluationOptions {
  readonly measures: ReadonlyArray<Measure>
  readonly strategies: ReadonlyArray<StrategyName>
  /** The shares of the conversation's end that are kept, each measured separately. 0: only the snapshot remains. */
  readonly preserves: ReadonlyArray<number>
  /** Tokens of a snapshot; undefined: the recorded summary's size, else `defaultBudgets`. */
  readonly budget: number | undefined
  /** The size of a snapshot as a share of the recorded summary's. */
  readonly scale: number
}

const defaultBudgets = [2_000, 4_000, 8_000]

/** A recorded summary stands alone, also where the model had not answered yet. */
const answered = (conversation: Conversation): Conversation =>
  append(conversation, {
    id: entryId(conversation.next),
    content: { role: "model", parts: [] },
    tokens: [],
    handles: []
  })

/** Runs one strategy at a point. */
const compressAt = Effect.fnUntraced(function* (
  { compaction, session }: CompactionPoint,
  options: { readonly strategy: StrategyName; readonly preserve: number; readonly budget: number }
) {
  const conversation = options.preserve === 0 ? answered(session.conversation) : session.conversation
  const held = new HandleIndex()
  held.restore([...compaction.log, ...inserted(conversation)])
  const known: KnownConversation = { ...emptySession, conversation, handles: held }
  const { after, outcome } = yield* compress(known, {
    policy: {
      ...defaultPolicy,
      strategy: options.strategy,
      preserve: options.preserve,
      minGain: 0,
      ladder: false,
      snapshotBudget: TokenCount.make(options.budget)
    },
    forced: true,
    cwd: session.started?.cwd
  })
  return {
    status: statusOf(outcome),
    isMeasured: outcome._tag === "Compressed",
    snapshot: outcome._tag === "Compressed" ? outcome.snapshot : "",
    context: shownText(view(after.conversation)),
    recall: recaller({ ...session, conversation: after.conversation }, after.ranges?.value)
  }
})

const noRecall = () => undefined

/** A text that replaces a conversation, and where it comes from. */
interface Written extends MeasuredText {
  readonly row: Omit<MeasuredRow, "figures" | "snapshotTokens" | "contextTokens">
}

/** Returns the recorded summary of a point. */
const recordedAt = (recorded: string): Written => ({
  row: {
    writer: "recorded",
    preserve: null,
    budget: estimateText(recorded),
    size: "recorded",
    status: "RECORDED",
    isMeasured: true
  },
  snapshot: recorded,
  context: recorded,
  recall: noRecall
})

/** Returns the sizes of the snapshots at a point. */
const sizesAt = (
  { recorded }: CompactionPoint,
  { budget, scale }: EvaluationOptions
): ReadonlyArray<{ readonly size: string; readonly budget: number }> => {
  if (budget !== undefined) return [{ size: String(budget), budget }]
  if (recorded === undefined) return defaultBudgets.map((each) => ({ size: String(each), budget: each }))
  const size = scale === 1 ? "recorded" : `${scale} recorded`
  return [{ size, budget: Math.round(estimateText(recorded) * scale) }]
}

/** Returns the runs at a point: each strategy with each size and share. */
const runsAt = (point: CompactionPoint, options: EvaluationOptions) =>
  options.strategies.flatMap((strategy) =>
    sizesAt(point, options).flatMap((size) => options.preserves.map((preserve) => ({ strategy, preserve, ...size })))
  )

/** Measures one point: the recorded summary, then each run. */
const measurePoint = Effect.fnUntraced(function* (
  point: CompactionPoint,
  options: EvaluationOptions,
  place: { readonly index: number; readonly points: number }
) {
  const report = yield* ReportProgress
  const { compaction, recorded, session } = point
  const figuresOf = yield* Work.run(prepareMeasures(options.measures, compaction))
  const measure = Effect.fnUntraced(function* ({ row, ...text }: Written) {
    return {
      ...row,
      snapshotTokens: estimateText(text.snapshot),
      contextTokens: estimateText(text.context),
      figures: row.isMeasured ? yield* Work.run(figuresOf(text)) : {}
    }
  })
  const runs = runsAt(point, options)
  const first = recorded === undefined ? [] : [yield* measure(recordedAt(recorded))]
  const rows = yield* Effect.forEach(
    runs,
    Effect.fnUntraced(function* ({ size, ...run }, done) {
      report({ done: place.index * runs.length + done, total: place.points * runs.length, unit: "compressions" })
      const { isMeasured, status, ...text } = yield* compressAt(point, run)
      const { budget, preserve, strategy: writer } = run
      return yield* measure({ row: { writer, preserve, budget, size, status, isMeasured }, ...text })
    })
  )
  const measured: MeasuredPoint = {
    after: entries(session.conversation).at(-1)?.id ?? "",
    entriesBefore: compaction.before.length,
    entriesAfter: compaction.after.length,
    rows: [...first, ...rows]
  }
  return measured
})

/**
 * Writes a snapshot by code in place of the last recorded summary, from the same conversation and of the same size.
 * Undefined when the recording has no summary, or when nothing could be written.
 */
export const snapshotByCode = Effect.fn("Evaluation.snapshotByCode")(function* (recording: {
  readonly events: ReadonlyArray<SessionEvent>
  readonly session: Session
}): Effect.fn.Return<string | undefined, never, Compression> {
  const point = compactionPoints(recording.events, recording.session).at(-1)
  if (point?.recorded === undefined) return undefined
  const budget = estimateText(point.recorded)
  const { isMeasured, snapshot } = yield* compressAt(point, { strategy: defaultStrategy.name, preserve: 0, budget })
  return isMeasured ? snapshot : undefined
})

/** Measures a recording at its compactions, or at its quarters when it has none. Calls no model. */
export const evaluateRecording = Effect.fn("Evaluation.evaluateRecording")(function* (
  recording: { readonly events: ReadonlyArray<SessionEvent>; readonly session: Session },
  options: EvaluationOptions
): Effect.fn.Return<ReadonlyArray<MeasuredPoint>, never, Compression> {
  const points = compactionPoints(recording.events, recording.session)
  return yield* Effect.forEach(points, (point, index) => measurePoint(point, options, { index, points: points.length }))
})
