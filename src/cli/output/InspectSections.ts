/**
 * What `inspect` says about a conversation, as sections of a report. A section without data is left out.
 *
 * One file: the sections follow each other in this order, and share their bars and limits.
 */

import { Array as Arr } from "effect"
import { defaultPolicy } from "../../domain/compression/strategies/Policy.ts"
import { PartKind } from "../../domain/evaluation/PartKind.ts"
import {
  bars,
  blocksOf,
  type Block,
  column,
  type ColumnOf,
  entry,
  figures,
  name,
  note,
  type Section,
  sentence,
  table
} from "../../domain/evaluation/Report.ts"
import type { TurnCost } from "../../domain/evaluation/TurnCosts.ts"
import { ratingLabel } from "../../domain/session/Rating.ts"
import { dollars } from "../../domain/text/NumberText.ts"
import { tokensOfCost } from "../../domain/tokens/Prices.ts"
import type { Report } from "./InspectReport.ts"
import { number, plural, share } from "./Output.ts"

/** What the sections show besides the report. */
export interface InspectParts {
  /** Tokens of the view after each message. */
  readonly sizes: ReadonlyArray<number>
  /** The turns, on a page. */
  readonly turns?: ReadonlyArray<TurnCost>
  /** The command that prints a message by its handle, without the handle. */
  readonly recall: string
  /** Whether sizes are shown in place of texts and names from them. */
  readonly hidesTexts?: boolean
}

/** A column that narrow pages leave out. */
const extra = { isExtra: true } as const

/** Returns the largest of these values; 0 of none. */
export const maxOf = (values: ReadonlyArray<number>): number => values.reduce((a, b) => Math.max(a, b), 0)

/** Results of tools are sent in the user's role. */
const roleNames = { user: "user and tool results", model: "model" } as const

type Sums = { readonly tokens: number; readonly view: number }

/** Columns of tokens, and of those in the view. */
const sumColumns = <A extends Sums>(
  items: ReadonlyArray<A>,
  whole: number,
  colour: (item: A) => PartKind | "used"
): ReadonlyArray<ColumnOf<A>> => [
  bars(maxOf(items.map(({ tokens }) => tokens)), (item) => [
    { of: colour(item), tokens: Math.min(item.view, item.tokens) },
    { of: colour(item), tokens: Math.max(0, item.tokens - item.view), isGone: true }
  ]),
  figures("tokens", ({ tokens }) => tokens),
  figures("percent", ({ tokens }) => share(tokens, whole), extra),
  figures("in view", ({ view }) => view)
]

const composition = ({ kinds, roles, tokens, tools }: Report): Section => {
  const largestTool = maxOf(tools.map((tool) => tool.arguments + tool.output))
  const ordered = PartKind.literals.flatMap((of) =>
    kinds.flatMap((each) => (each.kind === of && each.tokens > 0 ? [{ of, tokens: each.tokens }] : []))
  )
  const byTool = table(
    "By tool",
    tools,
    [
      column("tool", ({ tool }) => name(tool)),
      bars(largestTool, (tool) => [
        { of: "call", tokens: tool.arguments },
        { of: "output", tokens: tool.output }
      ]),
      figures("calls", ({ calls }) => calls),
      figures("arguments", (tool) => tool.arguments),
      figures("output", ({ output }) => output),
      figures("in view", ({ view }) => view, extra)
    ],
    25
  )
  return {
    id: "tokens",
    title: "Where the tokens went",
    short: "Tokens",
    blocks:
      kinds.length === 0
        ? [sentence("Nothing was counted.")]
        : blocksOf(
            { _tag: "Shares", kinds: ordered, whole: tokens.all },
            note(
              "In the bars below, full colour is content in the current view; pale is content no longer in it.",
              "page"
            ),
            table("By kind", kinds, [
              column("kind", ({ kind }) => ({ _tag: "Kind", kind })),
              ...sumColumns(kinds, tokens.all, ({ kind }) => kind),
              figures("parts", ({ parts }) => parts, extra)
            ]),
            table("By role", roles, [
              column("role", ({ role }) => roleNames[role]),
              ...sumColumns(roles, tokens.all, () => "used"),
              figures("messages", ({ messages }) => messages, extra)
            ]),
            byTool
          )
  }
}

const growth = ({ messages, tokens, turns }: Report, sizes: ReadonlyArray<number>): Section => ({
  id: "growth",
  title: "Growth",
  blocks:
    sizes.length === 0
      ? []
      : [
          {
            _tag: "Chart",
            id: "growth",
            values: sizes,
            caption: `over ${plural(messages, "message")}, ${plural(turns, "prompt")}: at most ${number(maxOf(sizes))} tokens in the view, now ${number(tokens.view)}`
          }
        ]
})

/** The tokens and the cost of each prompt of the user, up to the next. */
const turnsSection = ({ cost, growth }: Report, all: ReadonlyArray<TurnCost>, hidesTexts: boolean): Section => {
  const isPriced = cost.total !== null && cost.total > 0
  const sizeOf = (turn: TurnCost) => (isPriced ? (turn.cost ?? 0) : turn.tokens)
  const views = new Map(growth.map((row) => [row.turn, row.tokens]))
  const [dearest] = [...all].sort((a, b) => (b.cost ?? 0) - (a.cost ?? 0))
  const whole = `${dollars(cost.total ?? 0)}${cost.estimated ? ", by estimates" : ""}`
  const blocks = blocksOf(
    isPriced && typeof dearest?.cost === "number" && all.length > 1
      ? sentence(`Prompt ${number(dearest.turn)} cost most: ${dollars(dearest.cost)} of ${whole}.`)
      : undefined,
    table(
      "What each prompt took",
      all,
      [
        column("prompt", ({ turn }) => (turn === 0 ? "before" : number(turn))),
        column("begins", ({ entry: id, title }) => ({ _tag: "Message", id, text: hidesTexts ? "" : title }), {
          form: "message"
        }),
        bars(maxOf(all.map(sizeOf)), (turn) => [{ of: "used", tokens: sizeOf(turn) }]),
        figures("calls", ({ calls }) => calls, extra),
        figures("tokens", ({ tokens }) => tokens),
        figures("in view after it", ({ turn }) => views.get(turn) ?? "–", extra),
        figures("sent", ({ sent }) => sent, extra),
        figures("cached", ({ cached }) => cached, extra),
        figures("cost", (turn) => (turn.cost === null ? "–" : dollars(turn.cost)))
      ],
      60
    )
  )
  return { id: "turns", title: "Prompts", blocks: growth.length === 0 ? [] : blocks }
}

const rounded = (value: number): string => (Number.isFinite(value) ? number(Math.round(value)) : "–")

/** The provider's token counts compared with our estimates. */
const usageSection = ({ usage }: Report): Section => {
  const blocks: Array<Block> = []
  if (usage !== null) {
    const { answers, error, factor, overhead, recorded } = usage
    blocks.push({ _tag: "Chart", id: "usage", values: [], caption: "" })
    // A fit without a slope says nothing.
    if (answers > 1 && Number.isFinite(factor) && factor >= 0.01) {
      const difference =
        overhead < 0 ? "tokens less" : "tokens more, for instructions and tools that are not in the transcript"
      blocks.push(
        sentence(
          `The provider's count is about ${factor.toFixed(2)} times ours and ${rounded(Math.abs(overhead))} ${difference}: ${share(Math.min(1, Math.max(0, error)), 1)} off on average.`
        )
      )
    }
    const rows: ReadonlyArray<readonly [what: string, tokens: number]> = [
      ["sent, over all requests", recorded.prompt],
      ["of which read from a cache", recorded.cached],
      ["of which written to a cache", recorded.cacheWrite ?? 0],
      ["answers", recorded.answer],
      ["thoughts", recorded.thoughts]
    ]
    blocks.push(
      table(`Totals over ${plural(answers, "answer")} with recorded counts`, rows, [
        column("what", ([what]) => what),
        figures("tokens", ([, tokens]) => tokens)
      ])
    )
  }
  return { id: "usage", title: "Recorded use", blocks }
}

const costSection = ({ compressing, cost }: Report): Section => {
  const blocks: Array<Block> = []
  if (cost.models.length > 0) {
    const { answered, requests, sent } = tokensOfCost(compressing)
    const least = cost.total !== null && cost.unpriced.length > 0 ? "At least " : ""
    const total = cost.total === null ? "No price is known." : `${least}${dollars(cost.total)} in all.`
    const source = cost.estimated
      ? "The agent recorded no counts: these are our estimates, without instructions, tools and caching."
      : "From the counts that the agent recorded, without its subagents (palimpsest cost adds them)."
    const paid = compressing.total === null ? "" : `${dollars(compressing.total)} of it for `
    const summaries =
      requests === 0
        ? ""
        : ` ${paid}${plural(requests, "compression call")}: ${number(sent)} tokens sent, ${number(answered)} answered.`
    blocks.push(
      sentence(`${total} ${source}${summaries}`),
      table(
        `Prices: ${cost.table.slice(0, 300)}${cost.table.startsWith("built in") ? " (--prices FILE for others)" : ""}`,
        cost.models,
        [
          column("model", ({ model }) => name(model)),
          figures("requests", (one) => one.requests, extra),
          figures("sent", ({ prompt }) => prompt),
          figures("cached", ({ cached }) => cached, extra),
          figures("answered", ({ answer, thoughts }) => answer + thoughts),
          figures("cost", (one) => (one.cost === null ? "–" : dollars(one.cost)))
        ],
        25
      )
    )
    if (cost.unpriced.length > 0) blocks.push(note(`no price for ${cost.unpriced.join(", ")}`, "terminal"))
  }
  return { id: "cost", title: "Cost", blocks }
}

const largestSection = ({ largest }: Report, recall: string, hidesTexts: boolean): Section => {
  const parts = table("By tokens", largest, [
    column("entry", (part) => entry(part.entry)),
    column("kind", ({ kind, tool }) => ({ _tag: "Kind", kind, tool: tool ?? undefined })),
    bars(maxOf(largest.map((part) => part.tokens)), ({ kind, tokens }) => [{ of: kind, tokens }]),
    figures("tokens", ({ tokens }) => tokens),
    column("handle", ({ handle }) => handle ?? "", { only: "terminal" }),
    column("begins", ({ preview }) => (hidesTexts ? "" : name(preview)), { form: "preview", ...extra })
  ])
  const blocks = largest.length === 0 ? [] : [parts, note(`print one with: ${recall} HANDLE`, "terminal")]
  return { id: "largest", title: "Largest parts", blocks }
}

/** Messages of a file that are linked. */
const linkedReads = 12

const readsSection = ({ reads, tokens }: Report, hidesTexts: boolean): Section => {
  const repeated = reads.reduce((total, read) => total + read.repeated, 0)
  const files = table(
    "Files by tokens in repeated reads",
    reads,
    [
      column("file", ({ path }, at) =>
        hidesTexts ? `file ${number(at + 1)}` : { _tag: "Code", text: path, keeps: "end" }
      ),
      figures("reads", (read) => read.reads),
      figures("tokens", (read) => read.tokens, extra),
      figures("repeats", (read) => read.repeated),
      column(
        "entries",
        ({ entries }) => ({ _tag: "Entries", ids: entries.slice(0, linkedReads), count: entries.length }),
        { ...extra, only: "page" }
      )
    ],
    25
  )
  const used = `${plural(repeated, "token")}, ${share(repeated, tokens.all)}`
  return {
    id: "reads",
    title: "Read more than once",
    short: "Read again",
    blocks: reads.length === 0 ? [] : [sentence(`Reading ${plural(reads.length, "file")} again used ${used}.`), files]
  }
}

const messagesOf = ({ messages, tokens }: { readonly messages: number; readonly tokens: number }): string =>
  messages === 0 ? "–" : `${number(messages)} · ${number(tokens)}`

/** Past compactions: what each of them dropped and kept. */
const compactionsSection = ({ compactions, dropped }: Report, recall: string): Section => ({
  id: "compactions",
  title: "Compactions",
  blocks: blocksOf(
    table(
      "Compactions in force, newest first",
      compactions.toReversed(),
      [
        column("after", ({ after }) => entry(after)),
        figures("before", ({ tokens }) => tokens.before),
        figures("after", ({ tokens }) => tokens.after),
        figures("dropped", (one) => messagesOf(one.dropped)),
        figures("kept", ({ kept }) => messagesOf(kept)),
        figures("inserted", ({ inserted }) => messagesOf(inserted), extra),
        figures(
          "shortened",
          ({ shortened: { parts, saved } }) => (parts === 0 ? "–" : `${plural(parts, "part")}, −${number(saved)}`),
          extra
        ),
        figures("facts kept", ({ facts }) =>
          facts === null ? "–" : `${number(facts.kept)} of ${number(facts.dropped)}`
        ),
        column(
          "by",
          (one) => name([one.strategy, one.trigger].filter((text) => text !== null).join(", ") || "–"),
          extra
        )
      ],
      60
    ),
    compactions.some(({ facts }) => facts !== null)
      ? note(
          "Facts are the most important names, paths and numbers in the dropped messages; the kept ones are still in the view afterwards.",
          "page"
        )
      : undefined,
    ratingsTable(compactions.flatMap(({ after, rating }) => (rating === null ? [] : [{ after, rating }]))),
    table(
      "Dropped messages, recallable in full by handle",
      dropped,
      [
        column("from", ({ from }) => entry(from)),
        column("to", ({ to }) => entry(to)),
        figures("messages", ({ messages }) => messages),
        column("handle", ({ handle }) => ({ _tag: "Code", text: handle }))
      ],
      60
    ),
    dropped.length === 0 ? undefined : note(`\`${recall} HANDLE\``, "page")
  )
})

/** A compaction that the user rated. */
interface Rated {
  readonly after: Report["compactions"][number]["after"]
  readonly rating: NonNullable<Report["compactions"][number]["rating"]>
}

/** The table of what the user thinks of compactions, newest first. */
export const ratingsTable = (rated: ReadonlyArray<Rated>): Block =>
  table(
    "Ratings, newest first",
    rated.toReversed(),
    [
      column("after", ({ after }) => entry(after)),
      column("rating", ({ rating }) => name(ratingLabel(rating)), { form: "preview" })
    ],
    60
  )

/** What a compression by hand would do now. The plan counts the request as it is sent, so only the difference is comparable with the view. */
const forcedText = (forced: NonNullable<Report["next"]>["forced"]): string => {
  if (forced === null) return "There is nothing to compress."
  const saved = forced.before - forced.after
  return saved < forced.before * defaultPolicy.minGain
    ? "By hand (compress --force), it may save too little to be carried out."
    : `By hand (compress --force), it would replace ${plural(forced.messages, "message")} by a snapshot and save about ${number(saved)} tokens or more.`
}

/** The effect of a compression run now. */
const nextSection = ({ next }: Report): Section => {
  const blocks: Array<Block> = []
  if (next === null) {
    blocks.push(
      sentence("Not computed: the current view is too large to hold in memory."),
      note(`run "palimpsest compress FILE --plan"`, "terminal")
    )
  } else {
    const { forced, waits } = next
    blocks.push(
      sentence(waits === null ? "Due at the next request." : `Not due: ${waits}.`),
      sentence(forcedText(forced))
    )
  }
  return { id: "next", title: "The next compression", short: "Next compression", blocks }
}

/** Problems and omissions: calls without responses, skipped records, an incomplete line. */
const irregularities = ({ broken, skipped, torn, unknown }: Report): Section => {
  const blocks: Array<Block> = []
  const pairs = [
    ...broken.calls.map((call) => ({ ...call, what: "a call without a response" })),
    ...broken.responses.map((response) => ({ ...response, what: "a response without a call" }))
  ]
  if (pairs.length > 0) {
    const equal = Object.values(Arr.groupBy(pairs, ({ entry, tool, what }) => `${entry} ${tool} ${what}`))
    const list = table(
      "Broken pairs",
      equal,
      [
        column("entry", ([one]) => entry(one.entry)),
        column("tool", ([{ tool }]) => name(tool)),
        column("problem", (same) => same[0].what + (same.length === 1 ? "" : ` (× ${number(same.length)})`))
      ],
      30
    )
    blocks.push(list)
  }
  const records = Object.entries(skipped).sort((a, b) => b[1] - a[1])
  if (records.length > 0) {
    const list = table(
      "Records of the file that are not part of the conversation",
      records,
      [column("kind", ([kind]) => name(kind)), figures("records", ([, count]) => count)],
      30
    )
    blocks.push(list)
  }
  const collapses = skipped["marble-origami-commit"] ?? 0
  if (collapses > 0) {
    const text = `The model saw a summary in place of ${plural(collapses, "span")} that ${collapses === 1 ? "is" : "are"} read in full here.`
    blocks.push({ _tag: "Text", form: "warning", text })
  }
  if (unknown !== undefined) {
    const are = unknown.kinds.length === 1 ? "is" : "are"
    const names = unknown.kinds.slice(0, 5).join(", ") + (unknown.kinds.length > 5 ? ", …" : "")
    blocks.push(
      sentence(
        `${plural(unknown.kinds.length, "kind")} of records of ${unknown.program} ${are} new to this program: ${names}`
      )
    )
  }
  if (torn !== null) {
    const text = `Line ${number(torn)}, the last one, is incomplete and is ignored.`
    blocks.push({ _tag: "Text", form: "warning", text })
  }
  return { id: "rest", title: "Irregularities", blocks }
}

/** Returns the sections about a conversation, in their order. */
export const inspectSections = (
  report: Report,
  { hidesTexts = false, recall, sizes, turns = [] }: InspectParts
): ReadonlyArray<Section> => [
  composition(report),
  growth(report, sizes),
  turnsSection(report, turns, hidesTexts),
  usageSection(report),
  costSection(report),
  largestSection(report, recall, hidesTexts),
  readsSection(report, hidesTexts),
  compactionsSection(report, recall),
  nextSection(report),
  irregularities(report)
]

/** Returns the facts about the file: their names and values. `time` is the time from the first to the last message. */
export const inspectFacts = (
  report: Report,
  { hidesTexts = false, time }: { readonly hidesTexts?: boolean; readonly time?: string | undefined } = {}
): ReadonlyArray<readonly [name: string, value: string]> => {
  const { environment } = report.tokens
  const facts: ReadonlyArray<readonly [name: string, value: string | null | undefined]> = [
    ["format", report.format],
    ["session", report.session],
    ["model", report.model],
    ["folder", hidesTexts ? null : report.cwd],
    ["time", time],
    [
      "size",
      `${plural(report.bytes, "byte")}, ${plural(report.messages, "message")}, ${plural(report.turns, "prompt")}`
    ],
    ["not counted", environment > 0 ? `${plural(environment, "token")} in the environment message` : null]
  ]
  return facts.flatMap(([name, value]) =>
    value === null || value === undefined || value === "" ? [] : [[name, value]]
  )
}
