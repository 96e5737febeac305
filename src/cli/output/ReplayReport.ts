/** What `replay` says: the document of `--json`, and the sections of the report: the figures of all strategies, then the requests and compressions of each. */

import { Array as Arr, Schema } from "effect"
import { StrategyName } from "../../domain/compression/strategies/Strategies.ts"
import { Figures, noRatio, type Ratio, sumFigures } from "../../domain/evaluation/Measure.ts"
import { RequestSize } from "../../domain/evaluation/Replay.ts"
import { repeatedInVain, StablePrefix, stablePrefix } from "../../domain/evaluation/ReplayFigures.ts"
import { type Cell, column, figures, note, type Section, table } from "../../domain/evaluation/Report.ts"
import { printableLine } from "../../domain/text/InvisibleCharacters.ts"
import { dollars, plural } from "../../domain/text/NumberText.ts"
import { costOf, type Prices } from "../../domain/tokens/Prices.ts"
import { SourceFormat } from "../../domain/transcripts/Transcript.ts"
import { ReplayedCompression, type ReplayResult } from "../../services/evaluation/Replay.ts"
import * as Output from "./Output.ts"
import { reportText, type TextLimits, textLimits } from "./ReportText.ts"

/** The result of one strategy. Token counts are those of requests, by the estimator. */
export const Result = Schema.Struct({
  strategy: StrategyName,
  /** Tokens of a request above which it is compressed. */
  trigger: Schema.Natural,
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
  /**
   * Of the requests that follow another one without a compression between them: the tokens with which the next request begins,
   * unchanged, of all tokens, and the least share of one request.
   */
  stable: StablePrefix,
  /** US dollars for all requests and answers. Null: the model has no price. */
  cost: Schema.NullOr(Schema.Finite),
  /** Number of compressions by status. */
  statuses: Schema.Record(Schema.String, Schema.Natural),
  /** Compressions that the guard forced because the request might not have fitted, and that made it fit. */
  rescued: Schema.Natural,
  /** Compressions right after another one that saved less than a tenth of the request. */
  inVain: Schema.Natural,
  compressions: Schema.Array(ReplayedCompression),
  /** The sums over all compressions. */
  figures: Figures,
  /** The tokens of each request, and the prefix that it shares with the one before. */
  sizes: Schema.Array(RequestSize),
  /** Time spent in the runtime itself. */
  milliseconds: Schema.Finite
})
export type Result = typeof Result.Type

/** The output of `--json`. */
export const Report = Schema.Struct({
  file: Schema.String,
  format: SourceFormat,
  messages: Schema.Natural,
  window: Schema.Natural,
  /** The share of the window above which the first strategy compresses: `--threshold`, else its own. */
  threshold: Schema.Finite,
  /** The model whose prices were taken; null when the recording names none. */
  model: Schema.NullOr(Schema.String),
  /** The source of the prices. */
  prices: Schema.String,
  strategies: Schema.Array(Result)
})
export type Report = typeof Report.Type

/** Whether a compression changed something. */
export const isChange = ({ status }: Pick<ReplayedCompression, "status">): boolean =>
  status === "COMPRESSED" || status === "CONTENT_TRUNCATED"

/** Whether the guard forced the compression and the request then could be sent. */
const isRescue = (
  one: Pick<ReplayedCompression, "status" | "trigger" | "turn">,
  refused: ReadonlyArray<number>
): boolean => one.trigger === "guard" && isChange(one) && !refused.includes(one.turn)

/** A replay's settings. */
interface Replayed {
  readonly strategy: StrategyName
  /** Tokens of a request above which it is compressed. */
  readonly trigger: number
  readonly window: number
  readonly turns: number
  /** The model whose prices are taken. */
  readonly model: string | undefined
  readonly prices: Prices
}

/** Returns the part of the report about one strategy. */
export const resultOf = (
  { model, prices, strategy, trigger, turns, window }: Replayed,
  played: ReplayResult
): Result => {
  const { compressions, millis, refused, requests, usages } = played
  const statuses: Record<string, number> = {}
  for (const { status } of compressions) statuses[status] = (statuses[status] ?? 0) + 1
  // What no cache held is written to it, where a provider has a price for that.
  const priced = usages.map((usage) => ({
    model: model ?? "unknown",
    usage: { ...usage, cacheWrite: usage.prompt - usage.cached }
  }))
  return {
    strategy,
    trigger,
    turns,
    requests: requests.length,
    refused,
    largest: requests.reduce((max, { tokens }) => Math.max(max, tokens), 0),
    over: requests.filter(({ tokens }) => tokens > window).length,
    sent: requests.reduce((total, { tokens }) => total + tokens, 0),
    prefix: requests.reduce((total, { prefix }) => total + prefix, 0),
    stable: stablePrefix(
      requests,
      compressions.filter(isChange).map(({ request }) => request)
    ),
    cost: costOf(priced, prices, true).total,
    statuses,
    rescued: compressions.filter((one) => isRescue(one, refused)).length,
    inVain: repeatedInVain(compressions),
    compressions,
    figures: sumFigures(compressions.map(({ figures }) => figures ?? {})),
    sizes: requests,
    milliseconds: millis
  }
}

const { number, share } = Output

type Compression = Result["compressions"][number]
type Run = Arr.NonEmptyReadonlyArray<Compression>

/** Ranges of refused requests that are shown. `--json` has all of them. */
const rowsShown = 20

/** Groups consecutive compressions that failed in the same way into one row. */
const runsOf = (compressions: ReadonlyArray<Compression>): ReadonlyArray<Run> =>
  Arr.isReadonlyArrayNonEmpty(compressions)
    ? Arr.groupWith(compressions, (one, first) => {
        return first.status === one.status && first.trigger === one.trigger && !isChange(one)
      })
    : []

const span = (from: number, to: number): string => (from === to ? number(from) : `${number(from)}–${number(to)}`)

const percent = ({ part, whole }: Ratio = noRatio): string => (whole === 0 ? "–" : share(part, whole))

const statusOf = (run: Run, refused: ReadonlyArray<number>): string => {
  const [first] = run
  const by = isRescue(first, refused) ? ", made to fit" : first.trigger === "guard" ? ", did not fit" : ""
  return `${first.status}${by}${run.length > 1 ? `, ${number(run.length)} times` : ""}`
}

/** Formats numbers of requests as ranges, such as `6–24, 30`. */
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

/** The requests of a strategy, and its compressions. */
const strategySection = ({ compressions, largest, refused, sizes, strategy }: Result, index: number): Section => ({
  id: `strategy-${index}`,
  title: strategy,
  blocks: [
    {
      _tag: "Chart",
      id: `strategy-${index}`,
      values: sizes.map(({ tokens }) => tokens),
      caption: `${plural(sizes.length, "request")}, first to last; the largest has ${plural(largest, "token")}`
    },
    ...(compressions.length === 0
      ? [note("no compression was needed")]
      : [
          table(
            "Compressions",
            runsOf(compressions),
            [
              column("request", (run) => span(run[0].turn, (run.at(-1) ?? run[0]).turn)),
              figures("before", (run) => span(run[0].before, (run.at(-1) ?? run[0]).before)),
              figures("after", ([first]) => (isChange(first) ? first.after : "–")),
              figures("actions", ([first]) => percent(first.figures?.["actionsGrounded"])),
              figures("with one recall", ([first]) => percent(first.figures?.["actionsReachable"]), { isExtra: true }),
              figures("facts", ([first]) => percent(first.figures?.["factsKept"])),
              column("status", (run) => statusOf(run, refused), { isExtra: true })
            ],
            50
          )
        ]),
    ...(refused.length > 0
      ? [
          {
            _tag: "Text",
            form: "warning",
            text: `refused, too large even after compression: request ${spansOf(refused)}`
          } as const
        ]
      : [])
  ]
})

/** A row of the table: the name of a figure, and its value for each strategy. */
type FigureRow = readonly [name: Cell, ...values: ReadonlyArray<string>]

/**
 * Returns the table of figures: one row per figure, one value per strategy. Some rows are left out when their figure is zero
 * for all strategies.
 */
const figureRows = (results: ReadonlyArray<Result>): ReadonlyArray<FigureRow> => {
  const row = (name: string, value: (result: Result) => string): FigureRow => [name, ...results.map(value)]
  /** A figure that belongs to the one above. */
  const part = (name: string, value: (result: Result) => string): FigureRow => [
    { _tag: "Within", text: name },
    ...results.map(value)
  ]
  const any = (figure: (result: Result) => number, ...rows: ReadonlyArray<FigureRow>) =>
    results.some((result) => figure(result) > 0) ? rows : []
  const figure = (result: Result, key: string) => result.figures[key] ?? noRatio
  const needed = (name: string, here: string, reachable: string) =>
    any(
      (result) => figure(result, here).whole,
      row(name, (result) => number(figure(result, here).whole)),
      part("in the context", (result) => percent(figure(result, here))),
      part("or there after one recall", (result) => percent(figure(result, reachable)))
    )
  const statuses = [...new Set(results.flatMap((result) => Object.keys(result.statuses)))].sort()
  return [
    row("requests", ({ requests }) => number(requests)),
    part("larger than the window", ({ over }) => number(over)),
    ...any(
      ({ refused }) => refused.length,
      part("refused before sending", ({ refused }) => number(refused.length))
    ),
    row("compressed at", ({ trigger }) => number(trigger)),
    row("largest request", ({ largest }) => number(largest)),
    row("tokens sent in total", ({ sent }) => number(sent)),
    part("average request", ({ requests, sent }) => number(Math.round(sent / Math.max(1, requests)))),
    part("same as in the request before", ({ prefix, sent }) => share(prefix, sent)),
    row("unchanged between compressions", ({ stable }) => percent(stable)),
    part("lowest of any request", ({ stable: { least, whole } }) => (whole === 0 ? "–" : share(least, 1))),
    row("cost", ({ cost }) => (cost === null ? "–" : dollars(cost))),
    row("compressions", ({ compressions }) => number(compressions.length)),
    ...statuses.map((status) => part(status, (result) => number(result.statuses[status] ?? 0))),
    ...any(
      ({ compressions }) => compressions.length,
      part("made to fit", ({ rescued }) => number(rescued)),
      part("without progress", ({ inVain }) => number(inVain))
    ),
    ...needed("tool calls that need earlier content", "actionsGrounded", "actionsReachable"),
    ...needed("names used again after a compression", "factsKept", "factsReachable")
  ]
}

/** Says at how many tokens the strategies compress: one number when all agree. */
export const triggersText = (results: ReadonlyArray<Result>): string => {
  const triggers = [...new Set(results.map(({ trigger }) => trigger))]
  const namesAt = (tokens: number) => results.flatMap(({ strategy, trigger }) => (trigger === tokens ? strategy : []))
  return triggers.length === 1
    ? triggers.map(number).join("")
    : triggers.map((tokens) => `${number(tokens)} (${namesAt(tokens).join(", ")})`).join(", ")
}

/** Describes how the cost was computed; undefined when there is none. */
const costNote = ({ model, prices, strategies }: Report): string | undefined =>
  model === null || strategies.every(({ cost }) => cost === null)
    ? undefined
    : `cost: ${printableLine(model)}, ${printableLine(prices)}; a cache serves what a request shares with the one before`

const figuresSection = (report: Report): Section => {
  const cost = costNote(report)
  return {
    id: "figures",
    title: "Figures",
    blocks: [
      table("Figures", figureRows(report.strategies), [
        column("figure", ([name]) => name),
        ...report.strategies.map(({ strategy }, at) =>
          figures<FigureRow>(strategy, ([, ...values]) => values[at] ?? "")
        )
      ]),
      ...(report.strategies.some(({ compressions }) => compressions.length > 0)
        ? [
            note(
              "Actions: the percentage of the agent's next tool calls whose names are in the context. Facts: the same for all that the agent wrote."
            )
          ]
        : []),
      ...(cost === undefined ? [] : [note(`${cost}.`)])
    ]
  }
}

/** Returns the sections of a replay. A page draws the requests of all strategies in one chart. */
export const replaySections = (report: Report): ReadonlyArray<Section> => [
  {
    id: "requests",
    title: "Tokens of each request",
    short: "Requests",
    blocks: [{ _tag: "Chart", id: "requests", values: [], caption: "" }]
  },
  figuresSection(report),
  ...report.strategies.map(strategySection)
]

/** The report as text. It omits durations, so that the same file gives the same text. */
export const describe = (report: Report, style: Output.Style = Output.plain, limits: TextLimits = textLimits): string =>
  [
    `${printableLine(report.file)} (${report.format}, ${number(report.messages)} messages) in a window of ${number(report.window)} tokens, compressed at ${triggersText(report.strategies)}`,
    reportText(replaySections(report), style, { ...limits, rows: 40 })
  ].join("\n\n")
