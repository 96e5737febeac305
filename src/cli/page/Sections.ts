import { EntryId } from "../../domain/conversation/Conversation.ts"
import type { TurnCost } from "../../domain/evaluation/TurnCosts.ts"
import { ratingLabel } from "../../domain/session/Rating.ts"
import { clipped } from "../../domain/text/Bytes.ts"
import { tokensOfCost } from "../../domain/tokens/Prices.ts"
import { comparisonRows, namesOf } from "../output/InspectComparison.ts"
import { decidedText, dollars, kindNames, type Report } from "../output/InspectReport.ts"
import { number, share, plural } from "../output/Output.ts"
import { bar, kindOrder, swatch } from "./KindBars.ts"
import { type Html, markup, none, trusted } from "./Markup.ts"
import { maxOf } from "./PageCharts.ts"

/**
 * The sections of the page that show figures. A section without data is left out.
 *
 * One file: the sections share their tables, bars and notes, and the page shows them in this order.
 */

/** Links to a message on the page. A message that is not on the page is shown as plain text. */
export type Link = (entry: EntryId) => Html

/** Markup for a section with its heading. */
export const section = (id: string, title: string, body: Html): Html =>
  markup`<section id="${id}" aria-labelledby="${id}-title">
    <h2 id="${id}-title">${title}</h2>
    ${body}
  </section> `

/**
 * A table column: its heading and its form, which is numbers, a bar or text. Columns marked `extra` are left out on narrow
 * pages.
 */
interface Column {
  readonly head: string
  readonly form?: "n" | "chart" | "text" | "begins" | "n any" | "n extra" | "text extra" | "extra"
}

/** The column of a bar. The bar repeats the numbers beside it; the heading is for screen readers. */
const chart: Column = { head: "bar", form: "chart" }

type Cell = string | Html

/** Markup for a name from a transcript, which can be long and without a place to break. */
const name = (text: string, length = 100): Html => markup`<span class="any">${clipped(text, length)}</span>`

const cell = (value: Cell): Html => (typeof value === "string" ? markup`${value}` : value)

/** Markup for a table. The first cell of each row is the row's heading. */
export const table = (
  caption: string,
  columns: ReadonlyArray<Column>,
  rows: ReadonlyArray<ReadonlyArray<Cell>>
): Html => {
  const heads = columns.map(({ form, head }) =>
    form === "chart"
      ? markup`<th scope="col"><span class="unseen">bar</span></th>`
      : markup`<th scope="col" class="${form ?? ""}">${head}</th>`
  )
  const body = rows.map((row) => {
    const cells = row.map((value, column) => {
      const form = columns[column]?.form ?? ""
      return column === 0
        ? markup`<th scope="row">${cell(value)}</th>`
        : markup`<td class="${form}">${cell(value)}</td>`
    })
    return markup`<tr>
      ${cells}
    </tr> `
  })
  return markup`<div class="wrap">
    <table>
      <caption>
        ${caption}
      </caption>
      <thead>
        <tr>
          ${heads}
        </tr>
      </thead>
      <tbody>
        ${body}
      </tbody>
    </table>
  </div> `
}

/** Returns the first rows and a note that counts the rest. */
const first = <A>(all: ReadonlyArray<A>, limit: number): readonly [shown: ReadonlyArray<A>, more: Html] => [
  all.slice(0, limit),
  all.length > limit
    ? markup`<p class="note">and ${number(all.length - limit)} more (inspect --json has them all)</p>`
    : none
]

const inView = (tokens: number, shown: number, whole: number, of: string): Html =>
  bar(
    [
      { of, tokens: Math.min(shown, tokens) },
      { of: `${of} gone`, tokens: Math.max(0, tokens - shown) }
    ],
    whole
  )

/** Markup for the verdict: names between backticks are code, and messages are links. */
export const verdict = (sentences: ReadonlyArray<string>, link: Link): Html =>
  markup`${sentences.map(
    (sentence) =>
      markup`<p class="lead">${sentence
        .split("`")
        .flatMap((text, at) =>
          at % 2 === 1
            ? [markup`<code>${text}</code>`]
            : text
                .split(/\b(e\d+)\b/)
                .map((piece, index) => (index % 2 === 1 ? link(EntryId.make(piece)) : markup`${piece}`))
        )}</p>`
  )}`

/** The main figures of the page. */
export const numbers = (report: Report): Html => {
  const calls = report.tools.reduce((total, tool) => total + tool.calls, 0)
  const all: ReadonlyArray<readonly [value: string, name: string]> = [
    [number(report.tokens.all), "tokens in all"],
    [number(report.tokens.view), "tokens in view"],
    [number(report.messages), report.messages === 1 ? "message" : "messages"],
    [number(report.turns), report.turns === 1 ? "turn" : "turns"],
    [number(calls), calls === 1 ? "tool call" : "tool calls"],
    [number(report.compactions.length), report.compactions.length === 1 ? "compaction" : "compactions"],
    ...(report.cost.total === null
      ? []
      : [[dollars(report.cost.total), report.cost.estimated ? "cost, estimated" : "cost, by recorded use"] as const])
  ]
  return markup`<dl class="numbers">
    ${all.map(
      ([value, name]) =>
        markup`<div>
          <dt>${name}</dt>
          <dd>${value}</dd>
        </div>`
    )}
  </dl> `
}

/** Facts about the file. */
export const facts = (report: Report, span: string, hidesTexts: boolean): Html => {
  const { environment } = report.tokens
  const all: ReadonlyArray<readonly [name: string, value: string | null]> = [
    ["format", report.format],
    ["session", report.session],
    ["model", report.model],
    ["folder", hidesTexts ? null : report.cwd],
    ["time", span === "" ? null : span],
    ["size", `${plural(report.bytes, "byte")}, ${plural(report.messages, "message")}`],
    ["not counted", environment > 0 ? `${plural(environment, "token")} in the environment message` : null]
  ]
  return markup`<dl class="facts">
    ${all.map(([name, value]) =>
      value === null
        ? none
        : markup`<dt>${name}</dt>
            <dd>${clipped(value, 1_000)}</dd>`
    )}
  </dl> `
}

/** Results of tools are sent in the user's role. */
const roleNames = { user: "user and tool results", model: "model" } as const

/** The tokens by kind, by role and by tool. */
export const composition = (report: Report): Html => {
  const { kinds, roles, tokens, tools } = report
  if (kinds.length === 0) return section("tokens", "Where the tokens went", markup`<p>Nothing was counted.</p>`)
  const ordered = kindOrder.flatMap((kind) => kinds.filter((each) => each.kind === kind && each.tokens > 0))
  const strip = markup`<figure>
      ${bar(
        ordered.map((each) => ({ of: `k-${each.kind}`, tokens: each.tokens })),
        tokens.all,
        "strip"
      )}
      <ul class="legend">
        ${ordered.map(
          (each) => markup`<li>${swatch(each.kind)}${kindNames[each.kind]} ${share(each.tokens, tokens.all)}</li>`
        )}
      </ul>
    </figure>
    <p class="note">In the bars below, full colour is content in the current view; pale is content no longer in it.</p> `
  const columns: ReadonlyArray<Column> = [
    chart,
    { head: "tokens", form: "n" },
    { head: "percent", form: "n extra" },
    { head: "in view", form: "n" }
  ]
  const sums = (
    sum: { readonly tokens: number; readonly view: number },
    whole: number,
    of: string
  ): ReadonlyArray<Cell> => [
    inView(sum.tokens, sum.view, whole, of),
    number(sum.tokens),
    share(sum.tokens, tokens.all),
    number(sum.view)
  ]
  const largestKind = maxOf(kinds.map((each) => each.tokens))
  const byKind = table(
    "By kind",
    [{ head: "kind" }, ...columns, { head: "parts", form: "n extra" }],
    kinds.map((each) => [
      markup`${swatch(each.kind)}${kindNames[each.kind]}`,
      ...sums(each, largestKind, `k-${each.kind}`),
      number(each.parts)
    ])
  )
  const largestRole = maxOf(roles.map((each) => each.tokens))
  const byRole = table(
    "By role",
    [{ head: "role" }, ...columns, { head: "messages", form: "n extra" }],
    roles.map((each) => [roleNames[each.role], ...sums(each, largestRole, "plain"), number(each.messages)])
  )
  const [shown, more] = first(tools, 25)
  const largestTool = maxOf(tools.map((tool) => tool.arguments + tool.output))
  const byTool =
    tools.length === 0
      ? none
      : markup`${table(
          "By tool",
          [
            { head: "tool" },
            chart,
            { head: "calls", form: "n" },
            { head: "arguments", form: "n" },
            { head: "output", form: "n" },
            { head: "in view", form: "n extra" }
          ],
          shown.map((tool) => [
            name(tool.tool),
            bar(
              [
                { of: "k-call", tokens: tool.arguments },
                { of: "k-output", tokens: tool.output }
              ],
              largestTool
            ),
            number(tool.calls),
            number(tool.arguments),
            number(tool.output),
            number(tool.view)
          ])
        )}${more}`
  return section("tokens", "Where the tokens went", markup`${strip}${byKind}${byRole}${byTool}`)
}

/** A chart as SVG, drawn in both sizes. */
export interface Drawn {
  /** SVG for wide pages. */
  readonly wide: string
  /** SVG for narrow pages. */
  readonly narrow: string
}

/** Markup for a chart with its caption. */
export const figure = (drawn: Drawn, caption: Html): Html =>
  markup`<figure>
    ${trusted(drawn.wide)}${trusted(drawn.narrow)}
    <figcaption>${caption}</figcaption>
  </figure> `

/** The growth of the view. */
export const growth = (report: Report, drawn: Drawn | undefined, largest: number): Html => {
  if (drawn === undefined) return none
  const caption = markup`Tokens in the view after each message; at most ${number(largest)}, ${number(report.tokens.view)}
  now.${report.compactions.length > 0 ? markup` Dashed: ${plural(report.compactions.length, "compaction")}.` : none}
  Circles mark the largest messages and link to them.`
  return section("growth", "Growth", figure(drawn, caption))
}

/** The figures of two conversations beside each other. */
export const comparison = (one: Report, other: Report, drawn: Drawn): Html => {
  const names = namesOf(one, other).map((file) => clipped(file, 60))
  const keys = names.map(
    (file, at) => markup`<span class="keyed"><i class="key series-${at}"></i>${file}</span>
`
  )
  return section(
    "beside",
    "Side by side",
    markup`${figure(drawn, markup`${keys}Tokens in the view after each message.`)}${table(
      "Figures of both",
      [
        { head: "figure" },
        ...names.map((head) => ({ head, form: "n any" as const })),
        { head: "change", form: "n extra" }
      ],
      comparisonRows(one, other)
    )}`
  )
}

/** The tokens and the cost of each turn. */
export const turns = (
  all: ReadonlyArray<TurnCost>,
  { cost, growth }: Report,
  link: Link,
  hidesTexts: boolean
): Html => {
  if (all.length === 0 || growth.length === 0) return none
  const [shown, more] = first(all, 60)
  const isPriced = cost.total !== null && cost.total > 0
  const whole = maxOf(all.map((turn) => (isPriced ? (turn.cost ?? 0) : turn.tokens)))
  const views = new Map(growth.map((row) => [row.turn, row.tokens]))
  const rows = shown.map((turn) => [
    markup`${turn.turn === 0 ? "before" : number(turn.turn)}`,
    markup`${link(turn.entry)} ${hidesTexts ? none : name(turn.title, 60)}`,
    bar([{ of: "plain", tokens: isPriced ? (turn.cost ?? 0) : turn.tokens }], whole),
    number(turn.calls),
    number(turn.tokens),
    views.has(turn.turn) ? number(views.get(turn.turn) ?? 0) : "–",
    number(turn.sent),
    number(turn.cached),
    turn.cost === null ? "–" : dollars(turn.cost)
  ])
  const dearest = [...all].sort((a, b) => (b.cost ?? 0) - (a.cost ?? 0))[0]
  const dearestNote =
    !isPriced || dearest?.cost === undefined || dearest.cost === null || all.length < 2
      ? none
      : markup`<p>Turn ${number(dearest.turn)} cost most: ${dollars(dearest.cost)} of ${dollars(cost.total ?? 0)}${cost.estimated ? ", by estimates" : ""}.</p>`
  return section(
    "turns",
    "Turns",
    markup`${dearestNote}${table(
      "What each turn took",
      [
        { head: "turn" },
        { head: "begins", form: "begins" },
        chart,
        { head: "calls", form: "n extra" },
        { head: "tokens", form: "n" },
        { head: "in view after it", form: "n extra" },
        { head: "sent", form: "n extra" },
        { head: "cached", form: "n extra" },
        { head: "cost", form: "n" }
      ],
      rows
    )}${more}`
  )
}

const rounded = (value: number): string => (Number.isFinite(value) ? number(Math.round(value)) : "–")

/** The provider's token counts compared with our estimates. */
export const usage = (report: Report, drawn: Drawn | undefined): Html => {
  const { usage: recorded } = report
  if (recorded === null) return none
  const { answers, error, factor, overhead, recorded: sums } = recorded
  const caption = markup`<span class="keyed"><i class="key"></i>sent, by our count</span>
<span class="keyed"><i class="key recorded"></i>sent, by the provider's count</span>`
  const comparedText =
    overhead < 0 ? "tokens less" : "tokens more, for instructions and tools that are not in the transcript"
  const fit =
    answers > 1 && Number.isFinite(factor)
      ? `The provider's count is about ${factor.toFixed(2)} times ours and ${rounded(Math.abs(overhead))} ${comparedText}: ${share(Math.min(1, Math.max(0, error)), 1)} off on average.`
      : ""
  const rows: ReadonlyArray<readonly [string, number]> = [
    ["sent, over all requests", sums.prompt],
    ["of which read from a cache", sums.cached],
    ["of which written to a cache", sums.cacheWrite ?? 0],
    ["answers", sums.answer],
    ["thoughts", sums.thoughts]
  ]
  return section(
    "usage",
    "Recorded use",
    markup`${drawn === undefined ? none : figure(drawn, caption)}${fit === "" ? none : markup`<p>${fit}</p>`}
      ${table(
        `Totals over ${plural(answers, "answer")} with recorded counts`,
        [{ head: "what" }, { head: "tokens", form: "n" }],
        rows.map(([name, tokens]) => [name, number(tokens)])
      )}`
  )
}

/** The cost by model. */
export const cost = ({ compressing, cost }: Report): Html => {
  if (cost.models.length === 0) return none
  const [shown, more] = first(cost.models, 25)
  const note = cost.estimated
    ? "The agent recorded no counts: these are our estimates, without caching."
    : "From the counts that the agent recorded."
  const { answered, requests, sent } = tokensOfCost(compressing)
  const summaries =
    requests === 0
      ? ""
      : ` ${compressing.total === null ? "" : `${dollars(compressing.total)} of it for `}${plural(requests, "compression call")}: ${number(sent)} tokens sent, ${number(answered)} answered.`
  return section(
    "cost",
    "Cost",
    markup`<p>${cost.total === null ? "No price is known." : `${dollars(cost.total)} in all.`} ${note}${summaries}</p>
      ${table(
        `Prices: ${clipped(cost.table, 300)}`,
        [
          { head: "model" },
          { head: "requests", form: "n extra" },
          { head: "sent", form: "n" },
          { head: "cached", form: "n extra" },
          { head: "answered", form: "n" },
          { head: "cost", form: "n" }
        ],
        shown.map((model) => [
          name(model.model),
          number(model.requests),
          number(model.prompt),
          number(model.cached),
          number(model.answer + model.thoughts),
          model.cost === null ? "–" : dollars(model.cost)
        ])
      )}${more}`
  )
}

/** The largest parts. */
export const largest = ({ largest }: Report, link: Link, hidesTexts: boolean): Html => {
  if (largest.length === 0) return none
  const whole = maxOf(largest.map((part) => part.tokens))
  return section(
    "largest",
    "Largest parts",
    table(
      "Each links to its message",
      [
        { head: "entry" },
        { head: "kind" },
        chart,
        { head: "tokens", form: "n" },
        { head: "begins", form: "text extra" }
      ],
      largest.map((part) => [
        link(part.entry),
        markup`${swatch(part.kind)}${kindNames[part.kind]}${part.tool === null ? none : markup` ${name(part.tool, 60)}`}`,
        bar([{ of: `k-${part.kind}`, tokens: part.tokens }], whole),
        number(part.tokens),
        hidesTexts ? "" : part.preview
      ])
    )
  )
}

/** Files that were read more than once. */
export const reads = ({ reads }: Report, link: Link, hidesTexts: boolean): Html => {
  if (reads.length === 0) return none
  const [shown, more] = first(reads, 25)
  const repeated = reads.reduce((total, read) => total + read.repeated, 0)
  return section(
    "reads",
    "Read more than once",
    markup`<p>Reading ${plural(reads.length, "file")} again used ${plural(repeated, "token")}.</p>
      ${table(
        "Files by tokens in repeated reads",
        [
          { head: "file" },
          { head: "reads", form: "n" },
          { head: "tokens", form: "n extra" },
          { head: "repeats", form: "n" },
          { head: "entries", form: "extra" }
        ],
        shown.map((read, at) => {
          const linked = read.entries.slice(0, 12).map((entry) => markup`${link(entry)} `)
          const rest = read.entries.length - linked.length
          return [
            hidesTexts ? `file ${number(at + 1)}` : markup`<code>${name(read.path, 300)}</code>`,
            number(read.reads),
            number(read.tokens),
            number(read.repeated),
            markup`${linked}${rest > 0 ? `and ${number(rest)} more` : ""}`
          ]
        })
      )}${more}`
  )
}

/** Columns for messages and tokens, the latter on wide pages only. */
const messagesAndTokens = ({ messages, tokens }: { readonly messages: number; readonly tokens: number }): Cell =>
  messages === 0 ? "–" : markup`${number(messages)}<span class="extra"> · ${number(tokens)}</span>`

/** Past compactions: what each of them dropped and kept. */
export const compactions = (report: Report, link: Link, recall: string): Html => {
  const all = report.compactions
  if (all.length === 0 && report.dropped.length === 0) return none
  const [shown, more] = first(all, 60)
  const list =
    all.length === 0
      ? none
      : table(
          "Compactions in force, oldest first",
          [
            { head: "after" },
            { head: "before", form: "n" },
            { head: "after", form: "n" },
            { head: "dropped", form: "n" },
            { head: "kept", form: "n" },
            { head: "inserted", form: "n extra" },
            { head: "shortened", form: "n extra" },
            { head: "facts kept", form: "n" },
            { head: "by", form: "extra" }
          ],
          shown.map((each) => [
            each.after === null ? "the start" : link(each.after),
            number(each.tokens.before),
            number(each.tokens.after),
            messagesAndTokens(each.dropped),
            messagesAndTokens(each.kept),
            messagesAndTokens(each.inserted),
            each.shortened.parts === 0
              ? "–"
              : `${plural(each.shortened.parts, "part")}, −${number(each.shortened.saved)}`,
            each.facts === null ? "–" : `${number(each.facts.kept)} of ${number(each.facts.dropped)}`,
            name(
              [decidedText(each), each.rating === null ? "" : ratingLabel(each.rating)].filter(Boolean).join(", ") ||
                "–"
            )
          ])
        )
  const [ranges, moreRanges] = first(report.dropped, 60)
  const dropped =
    report.dropped.length === 0
      ? none
      : markup`${table(
          "Dropped messages, recallable in full by handle",
          [{ head: "from" }, { head: "to" }, { head: "messages", form: "n" }, { head: "handle" }],
          ranges.map((range) => [
            link(range.from),
            link(range.to),
            number(range.messages),
            markup`<code>${range.handle}</code>`
          ])
        )}${moreRanges}
          <p class="note"><code>${recall} HANDLE</code></p>`
  return section(
    "compactions",
    "Compactions",
    markup`${list}${more}${
      all.some((each) => each.facts !== null)
        ? markup`<p class="note">
            Facts are the most important names, paths and numbers in the dropped messages; the kept ones are still in the
            view afterwards.
          </p>`
        : none
    }${dropped}`
  )
}

/** The effect of a compression run now. */
export const next = ({ next }: Report): Html => {
  if (next === null) {
    return section(
      "next",
      "The next compression",
      markup`<p>Not computed: the current view is too large to hold in memory.</p>`
    )
  }
  const { forced, waits } = next
  return section(
    "next",
    "The next compression",
    markup`<p>
      ${waits === null ? "An automatic one is due." : `An automatic one waits: ${waits}.`}
      ${
        forced === null
          ? "There is nothing to compress."
          : `A requested one would replace ${plural(forced.messages, "message")} by a snapshot: ${number(forced.before)} → about ${number(forced.after)} tokens.`
      }
    </p>`
  )
}

/** Problems and omissions: calls without responses, skipped records, an incomplete line. */
export const oddities = ({ broken, skipped, torn }: Report, link: Link): Html => {
  const pairs = [
    ...broken.calls.map((call) => [call.entry, call.tool, "a call without a response"] as const),
    ...broken.responses.map((response) => [response.entry, response.tool, "a response without a call"] as const)
  ]
  const records = Object.entries(skipped).sort((a, b) => b[1] - a[1])
  if (pairs.length === 0 && records.length === 0 && torn === null) return none
  const [shownPairs, morePairs] = first(pairs, 30)
  const [shownRecords, moreRecords] = first(records, 30)
  return section(
    "rest",
    "Irregularities",
    markup`${
      pairs.length === 0
        ? none
        : markup`${table(
            "Broken pairs",
            [{ head: "entry" }, { head: "tool" }, { head: "problem" }],
            shownPairs.map(([entry, tool, what]) => [link(entry), name(tool), what])
          )}${morePairs}`
    }${
      records.length === 0
        ? none
        : markup`${table(
            "Records of the file that are not part of the conversation",
            [{ head: "kind" }, { head: "records", form: "n" }],
            shownRecords.map(([kind, count]) => [name(kind), number(count)])
          )}${moreRecords}`
    }${torn === null ? none : markup`<p>Line ${number(torn)}, the last one, is incomplete and is ignored.</p>`}`
  )
}
