import { Effect, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import type { AnchorKind } from "../../domain/compression/Anchors.ts"
import { adopt, patchOf, statusOf } from "../../domain/compression/Compression.ts"
import { defaultPolicy } from "../../domain/compression/strategies/Policy.ts"
import { strategies, type StrategyName } from "../../domain/compression/strategies/Strategies.ts"
import { isCall } from "../../domain/content/Content.ts"
import {
  append,
  compressions,
  empty,
  entries,
  type Entry,
  itemParts,
  view
} from "../../domain/conversation/Conversation.ts"
import { freshMemory } from "../../domain/conversation/FailureMemory.ts"
import { measureRetention, entryText, reusedAnchors } from "../../domain/evaluation/Retention.ts"
import { printableLine } from "../../domain/text/InvisibleCharacters.ts"
import * as Work from "../../domain/text/SlicedWork.ts"
import { estimateText, TokenCount } from "../../domain/tokens/Tokens.ts"
import { Compression } from "../../services/compression/Compression.ts"
import { HandleIndex } from "../../services/session/EntryBuilder.ts"
import * as Input from "../input/Input.ts"
import * as Output from "../output/Output.ts"

const KindRow = Schema.Struct({ used: Schema.Natural, inSnapshot: Schema.Natural, inContext: Schema.Natural })

/** One compression at one point with one budget, and where it left the anchors that are used later. */
const Trial = Schema.Struct({
  budget: Schema.Natural,
  status: Schema.String,
  /** Tokens of the snapshot, and of the whole context. */
  snapshotTokens: Schema.Natural,
  contextTokens: Schema.Natural,
  used: Schema.Natural,
  inSnapshot: Schema.Natural,
  inContext: Schema.Natural,
  behindHandle: Schema.Natural,
  lost: Schema.Natural,
  byKind: Schema.Record(Schema.String, KindRow)
})
type Trial = typeof Trial.Type

const Point = Schema.Struct({
  /** The last entry before the point. */
  after: Schema.String,
  entriesBefore: Schema.Natural,
  entriesAfter: Schema.Natural,
  used: Schema.Natural,
  /** The summary that was recorded at this point. */
  recorded: Schema.NullOr(Schema.Struct({ tokens: Schema.Natural, held: Schema.Natural })),
  trials: Schema.Array(Trial)
})
type Point = typeof Point.Type

const Report = Schema.Struct({
  files: Schema.Array(Schema.Struct({ file: Schema.String, points: Schema.Array(Point) }))
})

const defaultBudgets = [2_000, 4_000, 8_000]
/** Positions, as shares of the recording, at which a compaction is tried when the recording has none. */
const defaultCutShares = [0.25, 0.5, 0.75]
const minMessagesPerSide = 4

/** Returns the first position from `count` on at which no call is open. */
const answeredFrom = (all: ReadonlyArray<Entry>, count: number): number => {
  let point = count
  while (point < all.length && all[point - 1]?.content.parts.some(isCall) === true) point += 1
  return point
}

/**
 * Measures twice: the snapshot alone, when it replaces everything before the point as a recorded summary did, and the context
 * that the runtime would send, which keeps the end of the conversation.
 */
const runTrial = Effect.fnUntraced(function* (
  before: ReadonlyArray<Entry>,
  used: ReadonlyMap<string, AnchorKind>,
  budget: number,
  options: { readonly strategy: StrategyName; readonly cwd: string | undefined }
) {
  const compression = yield* Compression
  const conversation = before.reduce(append, empty)
  const held = new HandleIndex()
  held.restore(before)
  const run = (preserve: number) =>
    compression.compress({
      conversation,
      policy: {
        ...defaultPolicy,
        strategy: options.strategy,
        preserve,
        minGain: 0,
        ladder: false,
        snapshotBudget: TokenCount.make(budget)
      },
      forced: true,
      memory: freshMemory,
      held,
      cwd: options.cwd
    })
  const alone = (yield* run(0)).outcome
  const { outcome } = yield* run(defaultPolicy.preserve)
  const snapshot = alone._tag === "Compressed" ? alone.snapshot : ""
  const context = view(adopt(conversation, outcome))
    .map((item) => entryText({ ...item.entry, content: { ...item.entry.content, parts: itemParts(item) } }))
    .join("\n")
  const dropped = patchOf(outcome) === undefined ? [] : before.map(entryText)
  const { byKind, ...places } = yield* Work.run(measureRetention(used, { snapshot, context, dropped }))
  const trial: Trial = {
    budget,
    status: statusOf(outcome),
    snapshotTokens: estimateText(snapshot),
    contextTokens: estimateText(context),
    ...places,
    byKind: { ...byKind }
  }
  return trial
})

const share = (part: number, whole: number): string => (whole === 0 ? "–" : (part / whole).toFixed(2))

const describe = (file: string, points: ReadonlyArray<Point>): string => {
  const lines = [printableLine(file)]
  for (const point of points) {
    lines.push(
      `  after ${point.after}: ${Output.number(point.entriesBefore)} messages before, ${Output.number(point.entriesAfter)} after; ${point.used} facts are used later`
    )
    const rows: Array<Array<string>> = [["", "", "tokens", "snapshot", "context", "by handle", "lost"]]
    if (point.recorded !== null) {
      rows.push([
        "",
        "recorded summary",
        Output.number(point.recorded.tokens),
        share(point.recorded.held, point.used),
        "",
        "",
        ""
      ])
    }
    for (const trial of point.trials) {
      rows.push([
        "",
        `budget ${Output.number(trial.budget)}`,
        Output.number(trial.snapshotTokens),
        share(trial.inSnapshot, trial.used),
        share(trial.inContext, trial.used),
        share(trial.behindHandle, trial.used),
        share(trial.lost, trial.used)
      ])
    }
    lines.push(...Output.table(rows, "llrrrrr").split("\n"))
    const kinds = Object.entries(point.trials[0]?.byKind ?? {}).map(
      ([kind, row]) => `${kind} ${share(row.inContext, row.used)} of ${row.used}`
    )
    if (kinds.length > 0) lines.push(`    in the context at the first budget, by kind: ${kinds.join(", ")}`)
  }
  return lines.join("\n")
}

const measurable = strategies.filter(({ hasSnapshotBudget }) => hasSnapshotBudget).map(({ name }) => name)

/** The command `palimpsest eval <files…>`. */
export const evaluate = Command.make(
  "eval",
  {
    files: Argument.String("files").pipe(
      Argument.withDescription("Recorded conversations"),
      Argument.variadic({ min: 1 })
    ),
    from: Input.from,
    lenient: Input.lenient,
    budget: Input.optional(
      Input.size("budget"),
      "Snapshot size in tokens (default: the recorded summary's, else 2k, 4k and 8k)"
    ),
    strategy: Flag.Literals("strategy", measurable).pipe(
      Flag.withDescription("Strategy to measure"),
      Flag.withDefault(defaultPolicy.strategy)
    ),
    json: Input.json
  },
  Effect.fn("cli.eval")(function* (input) {
    const files: Array<(typeof Report.Type)["files"][number]> = []
    for (const file of input.files) {
      const { session } = yield* Input.load({ file, from: input.from, lenient: input.lenient })
      const all = entries(session.conversation)
      const recorded = compressions(session.conversation).filter(
        ({ entries: count }) => count > 0 && count < all.length
      )
      const cuts =
        recorded.length > 0
          ? recorded.map(({ entries: count, patch }) => ({ count, summary: patch.insert.map(entryText).join("\n") }))
          : defaultCutShares.map((part) => ({
              count: answeredFrom(all, Math.floor(all.length * part)),
              summary: undefined
            }))
      const points: Array<Point> = []
      for (const { count, summary } of cuts) {
        if (count < minMessagesPerSide || all.length - count < minMessagesPerSide) continue
        const before = all.slice(0, count)
        const after = all.slice(count)
        const used = yield* Work.run(reusedAnchors(before, after))
        const size = summary === undefined ? undefined : estimateText(summary)
        const budgets = input.budget === undefined ? (size === undefined ? defaultBudgets : [size]) : [input.budget]
        const trials = yield* Effect.forEach(budgets, (budget) =>
          runTrial(before, used, budget, {
            strategy: input.strategy,
            cwd: session.started?.cwd
          })
        ).pipe(Output.progress(`measuring ${file}`))
        points.push({
          after: before[before.length - 1]?.id ?? "",
          entriesBefore: before.length,
          entriesAfter: after.length,
          used: used.size,
          recorded:
            summary === undefined || size === undefined
              ? null
              : { tokens: size, held: [...used.keys()].filter((anchor) => summary.includes(anchor)).length },
          trials
        })
      }
      files.push({ file, points })
    }
    if (input.json) return yield* Output.json(Report, { files })
    yield* Output.text(files.map(({ file, points }) => describe(file, points)).join("\n\n"))
  })
).pipe(Command.withDescription("Measure how much of what an agent needed later a compression keeps"))
