import { Effect, Option, Schema } from "effect"
import { Command, Flag } from "effect/cli"
import {
  defaultStrategy,
  defaultThreshold,
  StrategyName,
  strategyDefaults
} from "../../domain/compression/strategies/Strategies.ts"
import { thresholdOf } from "../../domain/compression/strategies/Threshold.ts"
import { entries } from "../../domain/conversation/Conversation.ts"
import { recordedTurns } from "../../domain/evaluation/Replay.ts"
import { printableLine } from "../../domain/text/InvisibleCharacters.ts"
import { FormatName } from "../../domain/transcripts/Transcript.ts"
import type { ContextOverflow } from "../../services/chat/FitRequest.ts"
import { type ReplayedCompression, playRecording, type ReplayResult } from "../../services/evaluation/Replay.ts"
import * as Input from "../input/Input.ts"
import { badInput, type ExitError, failed } from "../output/ExitError.ts"
import * as Output from "../output/Output.ts"

const { number, share, table } = Output

/** The result of one strategy. Token counts are those of requests, by the estimator. */
const Result = Schema.Struct({
  strategy: StrategyName,
  /** Number of replayed exchanges. */
  turns: Schema.Natural,
  requests: Schema.Natural,
  /** Exchanges, from 1, whose message could not be made to fit. The message was left out and its recorded answer kept. */
  refused: Schema.Array(Schema.Natural),
  largest: Schema.Natural,
  /** Requests larger than the window. Must be 0. */
  over: Schema.Natural,
  sent: Schema.Natural,
  /** The part of `sent` that each request shares with the beginning of the one before: what a prompt cache would serve. */
  prefix: Schema.Natural,
  /** Number of compressions by status. */
  statuses: Schema.Record(Schema.String, Schema.Natural),
  /** Compressions that the guard forced because the request might not have fitted, and that made it fit. */
  rescued: Schema.Natural,
  compressions: Schema.Array(
    Schema.Struct({
      turn: Schema.Natural,
      status: Schema.String,
      trigger: Schema.Literals(["threshold", "guard"]),
      message: Schema.NullOr(Schema.String),
      before: Schema.Natural,
      after: Schema.Natural
    })
  ),
  /** The facts that the agent used again after a compression, before any later message showed them, by location. */
  facts: Schema.Struct({
    used: Schema.Natural,
    inContext: Schema.Natural,
    behindHandle: Schema.Natural,
    lost: Schema.Natural
  }),
  /** The tokens of each request, and the prefix that it shares with the one before. */
  sizes: Schema.Array(Schema.Struct({ tokens: Schema.Natural, prefix: Schema.Natural })),
  /** Time spent in the runtime itself. */
  milliseconds: Schema.Finite
})
type Result = typeof Result.Type

/** The output of `--json`. */
export const Report = Schema.Struct({
  file: Schema.String,
  format: FormatName,
  messages: Schema.Natural,
  window: Schema.Natural,
  threshold: Schema.Finite,
  strategies: Schema.Array(Result)
})
export type Report = typeof Report.Type

const isStrategy = Schema.is(StrategyName)

/** Parses a list such as `palimpsest,gemini` into distinct strategies; undefined when a name is unknown. */
const parseStrategies = (text: string): ReadonlyArray<StrategyName> | undefined => {
  const names = [...new Set(text.split(",").map((name) => name.trim()))]
  const strategies = names.filter(isStrategy)
  return strategies.length === names.length ? strategies : undefined
}

const flags = {
  ...Input.conversation,
  window: Input.size("window").pipe(Flag.withDescription("Context window in tokens")),
  strategy: Flag.String("strategy").pipe(
    Flag.filterMap(
      (text) => Option.fromUndefinedOr(parseStrategies(text)),
      () => `strategies with commas between them, of ${StrategyName.literals.join(", ")}`
    ),
    Flag.withMetavar("name,…"),
    Flag.withDescription("Strategies to compare, separated by commas"),
    Flag.withDefault([defaultStrategy.name])
  ),
  threshold: Input.share("threshold").pipe(
    Flag.withDescription("Compress at this share of the window (default: 0.5, or what the strategy says)"),
    Flag.optional,
    Flag.map(Option.getOrUndefined)
  ),
  toolOutputForm: Input.outputForm,
  json: Input.json
}
type Flags = Command.Command.Config.Infer<typeof flags>

/** Rejects an invalid window before any input is read. */
const checked = ({ window }: Flags): Effect.Effect<void, ExitError> =>
  window === 0 ? badInput("--window 0 leaves no room; give the window in tokens") : Effect.void

const isChange = ({ status }: ReplayedCompression): boolean => status === "COMPRESSED" || status === "CONTENT_TRUNCATED"

/** Whether the guard forced the compression and the request then could be sent. */
const isRescue = (one: ReplayedCompression, refused: ReadonlyArray<number>): boolean =>
  one.trigger === "guard" && isChange(one) && !refused.includes(one.turn)

const resultOf = (strategy: StrategyName, window: number, turns: number, played: ReplayResult): Result => {
  const { compressions, kept, millis, refused, requests } = played
  const statuses: Record<string, number> = {}
  for (const { status } of compressions) statuses[status] = (statuses[status] ?? 0) + 1
  return {
    strategy,
    turns,
    requests: requests.length,
    refused,
    largest: requests.reduce((max, { tokens }) => Math.max(max, tokens), 0),
    over: requests.filter(({ tokens }) => tokens > window).length,
    sent: requests.reduce((total, { tokens }) => total + tokens, 0),
    prefix: requests.reduce((total, { prefix }) => total + prefix, 0),
    statuses,
    rescued: compressions.filter((one) => isRescue(one, refused)).length,
    compressions,
    facts: kept,
    sizes: requests,
    milliseconds: millis
  }
}

/** Maximum rows of a timeline and ranges of refused turns. `--json` has all of them. */
const rowsShown = 20

/** Groups consecutive compressions that failed in the same way into one row. */
const runsOf = (
  compressions: ReadonlyArray<ReplayedCompression>
): ReadonlyArray<ReadonlyArray<ReplayedCompression>> => {
  const runs: Array<Array<ReplayedCompression>> = []
  for (const one of compressions) {
    const run = runs.at(-1)
    const isAlike = run?.[0]?.status === one.status && run[0].trigger === one.trigger && !isChange(one)
    if (isAlike) run.push(one)
    else runs.push([one])
  }
  return runs
}

const span = (from: number, to: number): string => (from === to ? number(from) : `${number(from)}–${number(to)}`)

const runRow = (run: ReadonlyArray<ReplayedCompression>, refused: ReadonlyArray<number>): ReadonlyArray<string> => {
  const [first] = run
  const last = run.at(-1)
  if (first === undefined || last === undefined) return []
  const by = isRescue(first, refused) ? "rescued by the guard" : first.trigger === "guard" ? "forced by the guard" : ""
  return [
    `turn ${span(first.turn, last.turn)}`,
    number(first.before),
    isChange(first) ? "→" : run.length > 1 ? "to" : "",
    isChange(first) ? number(first.after) : run.length > 1 ? number(last.before) : "",
    run.length > 1 ? `${first.status}, ${number(run.length)} times` : first.status,
    by
  ]
}

/** Formats turns as ranges, such as `6–24, 30`. */
const spansOf = (turns: ReadonlyArray<number>): string => {
  const spans: Array<{ readonly from: number; to: number }> = []
  for (const turn of turns) {
    const last = spans.at(-1)
    if (last?.to === turn - 1) last.to = turn
    else spans.push({ from: turn, to: turn })
  }
  const shown = spans.slice(0, rowsShown).map(({ from, to }) => span(from, to))
  return shown.join(", ") + (spans.length > rowsShown ? ", …" : "")
}

const timeline = ({ compressions, largest, refused, sizes, strategy }: Result, style: Output.Style): string => {
  const runs = runsOf(compressions)
  const more = Math.max(0, runs.length - rowsShown)
  const lines = [
    Output.sparkline(
      sizes.map(({ tokens }) => tokens),
      80
    ),
    `${number(sizes.length)} requests of up to ${number(largest)} tokens, in order`,
    ...(runs.length === 0
      ? ["no compression was needed"]
      : table(
          runs.slice(0, rowsShown).map((run) => runRow(run, refused)),
          "lrlrll"
        ).split("\n")),
    ...(more > 0 ? [`and ${number(more)} more (--json has them all)`] : []),
    ...(refused.length > 0 ? [style.warn(`refused, too large even after compression: turn ${spansOf(refused)}`)] : [])
  ]
  return [style.bold(strategy), ...lines.map((line) => `  ${line}`)].join("\n")
}

/**
 * The table of figures: one row per figure, one column per strategy. Some rows are left out when their figure is zero for all
 * strategies.
 */
const figures = (results: ReadonlyArray<Result>, style: Output.Style): string => {
  const row = (name: string, value: (result: Result) => string) => [name, ...results.map(value)]
  const any = (figure: (result: Result) => number, ...rows: ReadonlyArray<ReadonlyArray<string>>) =>
    results.some((result) => figure(result) > 0) ? rows : []
  const kept = (name: string, part: (facts: Result["facts"]) => number) =>
    row(name, ({ facts }) => (facts.used === 0 ? "–" : share(part(facts), facts.used)))
  const statuses = [...new Set(results.flatMap((result) => Object.keys(result.statuses)))].sort()
  const rows = [
    ["", ...results.map(({ strategy }) => style.bold(strategy))],
    row("turns", ({ turns }) => number(turns)),
    row("requests", ({ requests }) => number(requests)),
    row("  larger than the window", ({ over }) => number(over)),
    ...any(
      ({ refused }) => refused.length,
      row("  refused before sending", ({ refused }) => number(refused.length))
    ),
    row("largest request", ({ largest }) => number(largest)),
    row("tokens sent in total", ({ sent }) => number(sent)),
    row("  shared with the previous request", ({ prefix, sent }) => share(prefix, sent)),
    row("compressions", ({ compressions }) => number(compressions.length)),
    ...statuses.map((status) => row(`  ${status}`, (result) => number(result.statuses[status] ?? 0))),
    ...any(
      ({ compressions }) => compressions.length,
      row("  rescued by the guard", ({ rescued }) => number(rescued))
    ),
    ...any(
      ({ facts }) => facts.used,
      row("facts used again after a compression", ({ facts }) => number(facts.used)),
      kept("  still in the context", ({ inContext }) => inContext),
      kept("  behind a handle", ({ behindHandle }) => behindHandle),
      kept("  lost", ({ lost }) => lost)
    )
  ]
  return table(rows, `l${"r".repeat(results.length)}`)
}

/** The report as text. It omits durations, so that the same file gives the same text. */
export const describe = (report: Report, style: Output.Style = Output.plain): string =>
  [
    `${printableLine(report.file)} (${report.format}, ${number(report.messages)} messages) in a window of ${number(report.window)} tokens, compressed at ${number(Math.ceil(report.threshold * report.window))}`,
    ...report.strategies.map((result) => timeline(result, style)),
    figures(report.strategies, style)
  ].join("\n\n")

const tooSmall = (window: number, { stubborn: [largest] }: ContextOverflow): string => {
  const largestPart =
    largest === undefined ? "" : `, of which ${largest.what} takes most with about ${largest.tokens} tokens`
  return `--window ${window} is too small: what was said before the first answer${largestPart}, does not fit even after compression; give a larger window`
}

/** The command `palimpsest replay <file>`. */
export const replay = Command.make(
  "replay",
  flags,
  Effect.fn("cli.replay")(function* (input) {
    yield* checked(input)
    const threshold = thresholdOf(input.threshold, undefined)
    const { format, session } = yield* Input.load(input)
    const turns = recordedTurns(session.conversation)
    const name = input.file === "-" ? "standard input" : input.file
    if (turns.length === 0) return yield* badInput(`${name}: it has no model answers, so there is nothing to replay`)
    const results = yield* Effect.forEach(input.strategy, (strategy) =>
      playRecording(turns, {
        session: `replay-${strategy}`,
        window: input.window,
        threshold,
        policy: {
          ...strategyDefaults(strategy),
          ...(input.toolOutputForm === undefined ? {} : { outputForm: input.toolOutputForm })
        },
        recording: session
      }).pipe(
        Output.progress(`playing ${name} (${strategy})`),
        Effect.mapError((error) =>
          error._tag === "ContextOverflow" ? badInput(tooSmall(input.window, error)) : failed(error.message)
        ),
        Effect.map((played) => resultOf(strategy, input.window, turns.length, played))
      )
    )
    const report: Report = {
      file: input.file,
      format,
      messages: entries(session.conversation).length,
      window: input.window,
      threshold: threshold ?? defaultThreshold(input.strategy[0] ?? defaultStrategy.name, input.window),
      strategies: results
    }
    if (input.json) yield* Output.json(Report, report)
    else yield* Output.text(describe(report, yield* Output.style))
    for (const { milliseconds, strategy, turns: count } of results) {
      yield* Output.notice(
        `the runtime took ${Math.round(milliseconds)} ms with ${strategy}, ${(milliseconds / count).toFixed(1)} ms a turn`
      )
    }
    const over = results.find((result) => result.over > 0)
    if (over !== undefined) {
      return yield* failed(
        `${over.over} requests with ${over.strategy} were larger than the window; this is a bug, please report it with the file`
      )
    }
  })
).pipe(
  Command.withDescription("Replay a recorded conversation in another window, without a model"),
  Command.withExamples([
    {
      command: "palimpsest replay talk.jsonl --window 32k",
      description: "Show when a window of 32,000 tokens is compressed and what it keeps"
    },
    {
      command: "palimpsest replay talk.jsonl --window 32k --strategy palimpsest,gemini",
      description: "Compare two strategies"
    }
  ])
)
