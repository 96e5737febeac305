import { Array as Arr } from "effect"
import { PartKind } from "../../domain/evaluation/PartKind.ts"
import {
  bars,
  type Block,
  type Cell,
  type Column,
  name,
  note,
  numbers,
  type Section,
  sentence,
  table
} from "../../domain/evaluation/Report.ts"
import type { TurnCost } from "../../domain/evaluation/TurnCosts.ts"
import { ratingLabel } from "../../domain/session/Rating.ts"
import { tokensOfCost } from "../../domain/tokens/Prices.ts"
import { comparisonRows, namesOf } from "./InspectComparison.ts"
import { dollars, type Report } from "./InspectReport.ts"
import { number, plural, share } from "./Output.ts"

/**
 * What `inspect` says about a conversation, as sections of a report. A section without data is left out.
 *
 * One file: the sections follow each other in this order, and share their bars and limits.
 */

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

const maxOf = (values: ReadonlyArray<number>): number => values.reduce((a, b) => Math.max(a, b), 0)

/** Results of tools are sent in the user's role. */
const roleNames = { user: "user and tool results", model: "model" } as const

type Sums = { readonly tokens: number; readonly view: number }

const sumColumns: ReadonlyArray<Column> = [
  bars,
  numbers("tokens"),
  numbers("percent", { isExtra: true }),
  numbers("in view")
]

const inView = ({ tokens, view }: Sums, whole: number, of: PartKind | "used"): Cell => ({
  _tag: "Bar",
  segments: [
    { of, tokens: Math.min(view, tokens) },
    { of, tokens: Math.max(0, tokens - view), isGone: true }
  ],
  whole
})

const composition = ({ kinds, roles, tokens, tools }: Report): Section => {
  const sums = (sum: Sums, whole: number, of: PartKind | "used"): ReadonlyArray<Cell> => [
    inView(sum, whole, of),
    number(sum.tokens),
    share(sum.tokens, tokens.all),
    number(sum.view)
  ]
  const largestKind = maxOf(kinds.map((each) => each.tokens))
  const largestRole = maxOf(roles.map((each) => each.tokens))
  const largestTool = maxOf(tools.map((tool) => tool.arguments + tool.output))
  const ordered = PartKind.literals.flatMap((of) =>
    kinds.flatMap((each) => (each.kind === of && each.tokens > 0 ? [{ of, tokens: each.tokens }] : []))
  )
  return {
    id: "tokens",
    title: "Where the tokens went",
    short: "Tokens",
    blocks:
      kinds.length === 0
        ? [sentence("Nothing was counted.")]
        : [
            { _tag: "Shares", kinds: ordered, whole: tokens.all },
            note(
              "In the bars below, full colour is content in the current view; pale is content no longer in it.",
              "page"
            ),
            table(
              "By kind",
              [{ head: "kind" }, ...sumColumns, numbers("parts", { isExtra: true })],
              kinds.map((each) => [
                { _tag: "Kind", kind: each.kind },
                ...sums(each, largestKind, each.kind),
                number(each.parts)
              ])
            ),
            table(
              "By role",
              [{ head: "role" }, ...sumColumns, numbers("messages", { isExtra: true })],
              roles.map((each) => [roleNames[each.role], ...sums(each, largestRole, "used"), number(each.messages)])
            ),
            ...(tools.length === 0
              ? []
              : [
                  table(
                    "By tool",
                    [
                      { head: "tool" },
                      bars,
                      numbers("calls"),
                      numbers("arguments"),
                      numbers("output"),
                      numbers("in view", { isExtra: true })
                    ],
                    tools.map((tool) => [
                      name(tool.tool),
                      {
                        _tag: "Bar",
                        segments: [
                          { of: "call", tokens: tool.arguments },
                          { of: "output", tokens: tool.output }
                        ],
                        whole: largestTool
                      },
                      number(tool.calls),
                      number(tool.arguments),
                      number(tool.output),
                      number(tool.view)
                    ]),
                    25
                  )
                ])
          ]
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
            caption: `over ${plural(messages, "message")}, ${plural(turns, "turn")}: at most ${number(maxOf(sizes))} tokens in the view, now ${number(tokens.view)}`
          }
        ]
})

/** The tokens and the cost of each turn. */
const turnsSection = ({ cost, growth }: Report, all: ReadonlyArray<TurnCost>, hidesTexts: boolean): Section => {
  const isPriced = cost.total !== null && cost.total > 0
  const sizeOf = (turn: TurnCost) => (isPriced ? (turn.cost ?? 0) : turn.tokens)
  const whole = maxOf(all.map(sizeOf))
  const views = new Map(growth.map((row) => [row.turn, row.tokens]))
  const [dearest] = [...all].sort((a, b) => (b.cost ?? 0) - (a.cost ?? 0))
  const dearestCost = dearest?.cost ?? null
  const rows = all.map((turn): ReadonlyArray<Cell> => {
    const view = views.get(turn.turn)
    return [
      turn.turn === 0 ? "before" : number(turn.turn),
      { _tag: "Message", id: turn.entry, text: hidesTexts ? "" : turn.title },
      { _tag: "Bar", segments: [{ of: "used", tokens: sizeOf(turn) }], whole },
      number(turn.calls),
      number(turn.tokens),
      view === undefined ? "–" : number(view),
      number(turn.sent),
      number(turn.cached),
      turn.cost === null ? "–" : dollars(turn.cost)
    ]
  })
  return {
    id: "turns",
    title: "Turns",
    blocks:
      all.length === 0 || growth.length === 0
        ? []
        : [
            ...(!isPriced || dearest === undefined || dearestCost === null || all.length < 2
              ? []
              : [
                  sentence(
                    `Turn ${number(dearest.turn)} cost most: ${dollars(dearestCost)} of ${dollars(cost.total ?? 0)}${cost.estimated ? ", by estimates" : ""}.`
                  )
                ]),
            table(
              "What each turn took",
              [
                { head: "turn" },
                { head: "begins", form: "message" },
                bars,
                numbers("calls", { isExtra: true }),
                numbers("tokens"),
                numbers("in view after it", { isExtra: true }),
                numbers("sent", { isExtra: true }),
                numbers("cached", { isExtra: true }),
                numbers("cost")
              ],
              rows,
              60
            )
          ]
  }
}

const rounded = (value: number): string => (Number.isFinite(value) ? number(Math.round(value)) : "–")

/** The provider's token counts compared with our estimates. */
const usageSection = ({ usage }: Report): Section => {
  const blocks: Array<Block> = []
  if (usage !== null) {
    const { answers, error, factor, overhead, recorded } = usage
    blocks.push({ _tag: "Chart", id: "usage", values: [], caption: "" })
    if (answers > 1 && Number.isFinite(factor)) {
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
      table(
        `Totals over ${plural(answers, "answer")} with recorded counts`,
        [{ head: "what" }, numbers("tokens")],
        rows.map(([what, tokens]) => [what, number(tokens)])
      )
    )
  }
  return { id: "usage", title: "Recorded use", blocks }
}

const costSection = ({ compressing, cost }: Report): Section => {
  const { answered, requests, sent } = tokensOfCost(compressing)
  const isPart = cost.total !== null && cost.unpriced.length > 0
  const total =
    cost.total === null ? "No price is known." : `${isPart ? "At least " : ""}${dollars(cost.total)} in all.`
  const source = cost.estimated
    ? "The agent recorded no counts: these are our estimates, without instructions, tools and caching."
    : "From the counts that the agent recorded."
  const summaries =
    requests === 0
      ? ""
      : ` ${compressing.total === null ? "" : `${dollars(compressing.total)} of it for `}${plural(requests, "compression call")}: ${number(sent)} tokens sent, ${number(answered)} answered.`
  return {
    id: "cost",
    title: "Cost",
    blocks:
      cost.models.length === 0
        ? []
        : [
            sentence(`${total} ${source}${summaries}`),
            table(
              `Prices: ${cost.table.slice(0, 300)}${cost.table.startsWith("built in") ? " (--prices FILE for others)" : ""}`,
              [
                { head: "model" },
                numbers("requests", { isExtra: true }),
                numbers("sent"),
                numbers("cached", { isExtra: true }),
                numbers("answered"),
                numbers("cost")
              ],
              cost.models.map((model) => [
                name(model.model),
                number(model.requests),
                number(model.prompt),
                number(model.cached),
                number(model.answer + model.thoughts),
                model.cost === null ? "–" : dollars(model.cost)
              ]),
              25
            ),
            ...(cost.unpriced.length > 0 ? [note(`no price for ${cost.unpriced.join(", ")}`, "terminal")] : [])
          ]
  }
}

const largestSection = ({ largest }: Report, recall: string, hidesTexts: boolean): Section => {
  const whole = maxOf(largest.map((part) => part.tokens))
  return {
    id: "largest",
    title: "Largest parts",
    blocks:
      largest.length === 0
        ? []
        : [
            table(
              "By tokens",
              [
                { head: "entry" },
                { head: "kind" },
                bars,
                numbers("tokens"),
                { head: "handle", only: "terminal" },
                { head: "begins", form: "preview", isExtra: true }
              ],
              largest.map((part) => [
                { _tag: "Entries", ids: [part.entry] },
                { _tag: "Kind", kind: part.kind, tool: part.tool ?? undefined },
                { _tag: "Bar", segments: [{ of: part.kind, tokens: part.tokens }], whole },
                number(part.tokens),
                part.handle ?? "",
                hidesTexts ? "" : name(part.preview)
              ])
            ),
            note(`print one with: ${recall} HANDLE`, "terminal")
          ]
  }
}

/** Messages of a file that are linked. */
const linkedReads = 12

const readsSection = ({ reads, tokens }: Report, hidesTexts: boolean): Section => {
  const repeated = reads.reduce((total, read) => total + read.repeated, 0)
  return {
    id: "reads",
    title: "Read more than once",
    short: "Read again",
    blocks:
      reads.length === 0
        ? []
        : [
            sentence(
              `Reading ${plural(reads.length, "file")} again used ${plural(repeated, "token")}, ${share(repeated, tokens.all)}.`
            ),
            table(
              "Files by tokens in repeated reads",
              [
                { head: "file" },
                numbers("reads"),
                numbers("tokens", { isExtra: true }),
                numbers("repeats"),
                { head: "entries", isExtra: true, only: "page" }
              ],
              reads.map((read, at) => [
                hidesTexts ? `file ${number(at + 1)}` : { _tag: "Code", text: read.path, keeps: "end" },
                number(read.reads),
                number(read.tokens),
                number(read.repeated),
                { _tag: "Entries", ids: read.entries.slice(0, linkedReads), count: read.entries.length }
              ]),
              25
            )
          ]
  }
}

const messagesOf = ({ messages, tokens }: { readonly messages: number; readonly tokens: number }): string =>
  messages === 0 ? "–" : `${number(messages)} · ${number(tokens)}`

/** Past compactions: what each of them dropped and kept. */
const compactionsSection = ({ compactions, dropped }: Report, recall: string): Section => {
  const rated = compactions.flatMap(({ after, rating }) => (rating === null ? [] : [{ after, rating }]))
  return {
    id: "compactions",
    title: "Compactions",
    blocks: [
      ...(compactions.length === 0
        ? []
        : [
            table(
              "Compactions in force, newest first",
              [
                { head: "after" },
                numbers("before"),
                numbers("after"),
                numbers("dropped"),
                numbers("kept"),
                numbers("inserted", { isExtra: true }),
                numbers("shortened", { isExtra: true }),
                numbers("facts kept"),
                { head: "by", isExtra: true }
              ],
              compactions
                .toReversed()
                .map((each) => [
                  each.after === null ? "the start" : { _tag: "Entries", ids: [each.after] },
                  number(each.tokens.before),
                  number(each.tokens.after),
                  messagesOf(each.dropped),
                  messagesOf(each.kept),
                  messagesOf(each.inserted),
                  each.shortened.parts === 0
                    ? "–"
                    : `${plural(each.shortened.parts, "part")}, −${number(each.shortened.saved)}`,
                  each.facts === null ? "–" : `${number(each.facts.kept)} of ${number(each.facts.dropped)}`,
                  name([each.strategy, each.trigger].filter((text) => text !== null).join(", ") || "–")
                ]),
              60
            )
          ]),
      ...(compactions.some((each) => each.facts !== null)
        ? [
            note(
              "Facts are the most important names, paths and numbers in the dropped messages; the kept ones are still in the view afterwards.",
              "page"
            )
          ]
        : []),
      ...(rated.length === 0 ? [] : [ratingsTable(rated)]),
      ...(dropped.length === 0
        ? []
        : [
            table(
              "Dropped messages, recallable in full by handle",
              [{ head: "from" }, { head: "to" }, numbers("messages"), { head: "handle" }],
              dropped.map((range) => [
                { _tag: "Entries", ids: [range.from] },
                { _tag: "Entries", ids: [range.to] },
                number(range.messages),
                { _tag: "Code", text: range.handle }
              ]),
              60
            ),
            note(`\`${recall} HANDLE\``, "page")
          ])
    ]
  }
}

/** The table of what the user thinks of compactions, newest first. */
export const ratingsTable = (
  rated: ReadonlyArray<{
    readonly after: Report["compactions"][number]["after"]
    readonly rating: NonNullable<Report["compactions"][number]["rating"]>
  }>
): Block =>
  table(
    "Ratings, newest first",
    [{ head: "after" }, { head: "rating", form: "preview" }],
    rated
      .toReversed()
      .map(({ after, rating }) => [
        after === null ? "the start" : { _tag: "Entries", ids: [after] },
        name(ratingLabel(rating))
      ]),
    60
  )

/** The effect of a compression run now. */
const nextSection = ({ next }: Report): Section => {
  const blocks: Array<Block> = []
  if (next === null) {
    blocks.push(
      sentence("Not computed: the current view is too large to hold in memory."),
      note(`run "palimpsest compress FILE --plan"`, "terminal")
    )
  } else {
    const automatic = next.waits === null ? "An automatic one is due." : `An automatic one waits: ${next.waits}.`
    const requested =
      next.forced === null
        ? "There is nothing to compress."
        : `A requested one (compress --force) would replace ${plural(next.forced.messages, "message")} by a snapshot: ${number(next.forced.before)} → about ${number(next.forced.after)} tokens.`
    blocks.push(sentence(automatic), sentence(requested))
  }
  return { id: "next", title: "The next compression", short: "Next compression", blocks }
}

/** Problems and omissions: calls without responses, skipped records, an incomplete line. */
const irregularities = ({ broken, skipped, torn, unknown }: Report): Section => {
  const pairs = [
    ...broken.calls.map((call) => ({ ...call, what: "a call without a response" })),
    ...broken.responses.map((response) => ({ ...response, what: "a response without a call" }))
  ]
  const equal = Object.values(Arr.groupBy(pairs, ({ entry, tool, what }) => `${entry} ${tool} ${what}`))
  const records = Object.entries(skipped).sort((a, b) => b[1] - a[1])
  return {
    id: "rest",
    title: "Irregularities",
    short: "Oddities",
    blocks: [
      ...(pairs.length === 0
        ? []
        : [
            table(
              "Broken pairs",
              [{ head: "entry" }, { head: "tool" }, { head: "problem" }],
              equal.map((same) => [
                { _tag: "Entries", ids: [same[0].entry] },
                name(same[0].tool),
                `${same[0].what}${same.length === 1 ? "" : ` (× ${number(same.length)})`}`
              ]),
              30
            )
          ]),
      ...(records.length === 0
        ? []
        : [
            table(
              "Records of the file that are not part of the conversation",
              [{ head: "kind" }, numbers("records")],
              records.map(([kind, count]) => [name(kind), number(count)]),
              30
            )
          ]),
      ...(unknown === undefined
        ? []
        : [
            sentence(
              `${unknown.kinds.length === 1 ? "1 kind" : `${number(unknown.kinds.length)} kinds`} of records of ${unknown.program} ${unknown.kinds.length === 1 ? "is" : "are"} new to this program.`
            )
          ]),
      ...(torn === null
        ? []
        : [
            {
              _tag: "Text",
              form: "warning",
              text: `Line ${number(torn)}, the last one, is incomplete and is ignored.`
            } as const
          ])
    ]
  }
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
    ["size", `${plural(report.bytes, "byte")}, ${plural(report.messages, "message")}, ${plural(report.turns, "turn")}`],
    ["not counted", environment > 0 ? `${plural(environment, "token")} in the environment message` : null]
  ]
  return facts.flatMap(([name, value]) =>
    value === null || value === undefined || value === "" ? [] : [[name, value]]
  )
}

/** Returns the figures of two conversations beside each other. */
export const comparisonSection = (one: Report, other: Report): Section => ({
  id: "beside",
  title: "Side by side",
  blocks: [
    { _tag: "Chart", id: "beside", values: [], caption: "" },
    table(
      "Figures of both",
      [
        { head: "figure" },
        ...namesOf(one, other).map((head) => numbers(head, { isName: true })),
        numbers("change", { isExtra: true })
      ],
      comparisonRows(one, other)
    )
  ]
})
