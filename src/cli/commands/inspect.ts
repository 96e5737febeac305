import { Array as Arr, Effect } from "effect"
import { Command, Flag } from "effect/cli"
import { type Compaction, viewSizes } from "../../domain/evaluation/Compactions.ts"
import { OwnQuestion, questionsOf } from "../../domain/evaluation/OwnQuestions.ts"
import { printableLine } from "../../domain/text/InvisibleCharacters.ts"
import { tokensOfCost } from "../../domain/tokens/Prices.ts"
import * as ConversationInput from "../flags/ConversationInput.ts"
import { inspected, writePage } from "../flags/InspectedFile.ts"
import * as PageFlag from "../flags/PageFlag.ts"
import * as PricesFlag from "../flags/PricesFlag.ts"
import * as Input from "../flags/SharedFlags.ts"
import * as ShareFlags from "../flags/ShareFlags.ts"
import { badInput } from "../output/ExitError.ts"
import { comparisonRows, namesOf } from "../output/InspectComparison.ts"
import { decidedText, dollars, kindNames, ratingLines, Report } from "../output/InspectReport.ts"
import * as Output from "../output/Output.ts"

const { number, share, table } = Output

/**
 * The `inspect` command: reports where the tokens of a conversation go. One file: all sections of the text share its width,
 * its tables and its limits.
 */

/** Rows shown per section. `--json` has all of them. */
const rowsShown = 15
/** Width of the text in columns. */
const columns = 100
const indent = 2

/** Cuts a text to a width. `keep` selects the end that stays. */
const clipped = (text: string, width: number, keep: "start" | "end" = "start"): string => {
  if (Output.columnsOf(text) <= width) return text
  const characters = [...text]
  if (keep === "end") characters.reverse()
  const shown: Array<string> = []
  let left = width - 1
  for (const character of characters) {
    left -= Output.columnsOf(character)
    if (left < 0) break
    shown.push(character)
  }
  return keep === "end" ? `…${shown.reverse().join("")}` : `${shown.join("")}…`
}

/** A text from a file as a table cell: without control characters and at most `width` columns wide. */
const cell = (text: string, width: number, keep?: "end"): string => clipped(printableLine(text), width, keep)

type Row = ReadonlyArray<string>

/** Width left for one more column beside these rows. */
const widthBeside = (rows: ReadonlyArray<Row>): number => {
  const widths: Array<number> = []
  for (const row of rows) {
    row.forEach((text, at) => (widths[at] = Math.max(widths[at] ?? 0, Output.columnsOf(text))))
  }
  return Math.max(8, columns - indent - widths.reduce((total, width) => total + width + 2, 0))
}

const first = <A>(items: ReadonlyArray<A>, row: (item: A) => Row, align: string, header: Row = []): string => {
  const shown = items.slice(0, rowsShown).map(row)
  const more = items.length - shown.length
  const body = table(header.length === 0 ? shown : [header, ...shown], align)
  return more > 0 ? `${body}\nand ${number(more)} more (--json has them all)` : body
}

/** Returns rows of numbers, each after a name that takes the remaining width. */
const named = <A>(
  items: ReadonlyArray<A>,
  name: (item: A) => string,
  numbers: (item: A) => Row,
  header: Row,
  keep?: "end"
): ((item: A) => Row) => {
  const width = widthBeside([header, ...items.slice(0, rowsShown).map(numbers)])
  return (item) => [cell(name(item), width, keep), ...numbers(item)]
}

/** The title and the text of a section, or undefined for a section without data. */
type Section = readonly [title: string, body: string] | undefined

const factsText = (report: Report): string => {
  const { all, environment, view } = report.tokens
  const named = (name: string, value: string | null, keep?: "end"): ReadonlyArray<Row> =>
    value === null ? [] : [[name, cell(value, columns - 10, keep)]]
  return table([
    ...named("file", report.file, "end"),
    ["format", report.format],
    ...named("session", report.session),
    ...named("model", report.model),
    ...named("folder", report.cwd, "end"),
    [
      "size",
      `${number(report.bytes)} bytes, ${Output.plural(report.messages, "message")}, ${Output.plural(report.turns, "turn")}`
    ],
    ["tokens", `${number(all)} in total, ${number(view)} in the current view`],
    ...(environment > 0 ? [["", `${number(environment)} in the environment message, not counted here`]] : [])
  ])
}

type Sums = { readonly tokens: number; readonly view: number }

const sumsSections = (report: Report, style: Output.Style): ReadonlyArray<Section> => {
  if (report.kinds.length === 0) return []
  const header = ["", "tokens", "percent", "in view"].map(style.dim)
  const row = (name: string, sums: Sums): Row => [
    name,
    number(sums.tokens),
    share(sums.tokens, report.tokens.all),
    number(sums.view)
  ]
  return [
    ["By kind", first(report.kinds, (kind) => row(kindNames[kind.kind], kind), "lrrr", header)],
    ["By role", first(report.roles, (role) => row(role.role, role), "lrrr", header)]
  ]
}

const toolsSection = ({ tools }: Report, style: Output.Style): Section => {
  if (tools.length === 0) return undefined
  const header = ["calls", "arguments", "output", "in view"]
  const row = named(
    tools,
    ({ tool }) => tool,
    (tool) => [number(tool.calls), number(tool.arguments), number(tool.output), number(tool.view)],
    header
  )
  return ["By tool", first(tools, row, "lrrrr", ["", ...header].map(style.dim))]
}

const largestSection = ({ largest }: Report, style: Output.Style): Section => {
  if (largest.length === 0) return undefined
  const row = (part: Report["largest"][number]) => [
    part.entry,
    cell(kindNames[part.kind] + (part.tool === null ? "" : ` ${part.tool}`), 36),
    number(part.tokens),
    part.handle ?? ""
  ]
  const width = widthBeside(largest.map(row))
  return [
    "Largest parts (print one with: palimpsest recall FILE HANDLE)",
    first(largest, (part) => [...row(part), style.dim(clipped(part.preview, width))], "llrll")
  ]
}

const readsSection = ({ reads, tokens }: Report, style: Output.Style): Section => {
  if (reads.length === 0) return undefined
  const repeated = reads.reduce((total, read) => total + read.repeated, 0)
  const header = ["reads", "tokens", "by rereading"]
  const row = named(
    reads,
    ({ path }) => path,
    (read) => [number(read.reads), number(read.tokens), number(read.repeated)],
    header,
    "end"
  )
  return [
    `Files read more than once: ${number(repeated)} tokens by rereading, ${share(repeated, tokens.all)}`,
    first(reads, row, "lrrr", ["", ...header].map(style.dim))
  ]
}

const growthSection = (report: Report, sizes: ReadonlyArray<number>): Section => {
  if (sizes.length < 2) return undefined
  const largest = sizes.reduce((a, b) => Math.max(a, b), 0)
  return [
    `Growth over ${Output.plural(sizes.length, "message")}, ${Output.plural(report.turns, "turn")}`,
    `${Output.sparkline(sizes)}\npeak ${number(largest)} tokens in the view, now ${number(report.tokens.view)}`
  ]
}

const compactionsSection = ({ compactions }: Report, style: Output.Style): Section => {
  if (compactions.length === 0) return undefined
  const latest = [...compactions].reverse()
  const numbers = (one: Compaction) => [
    one.after === null ? "at the start" : `after ${one.after}`,
    number(one.tokens.before),
    "→",
    number(one.tokens.after),
    number(one.dropped.messages),
    number(one.kept.messages),
    number(one.inserted.messages),
    number(one.shortened.parts),
    one.facts === null ? "" : `${number(one.facts.kept)} of ${number(one.facts.dropped)}`
  ]
  const header = ["", "before", "", "after", "dropped", "kept", "inserted", "shortened", "facts"]
  const width = widthBeside([header, ...latest.slice(0, rowsShown).map(numbers)])
  return [
    "Past compactions, newest first (tokens in the view; messages; facts kept)",
    first(latest, (one) => [...numbers(one), cell(decidedText(one), width)], "lrlrrrrrrl", header.map(style.dim))
  ]
}

const ratingsSection = ({ compactions }: Report): Section => {
  const lines = ratingLines(compactions)
  return lines.length === 0
    ? undefined
    : ["Ratings", first(lines.toReversed(), (line) => [cell(line, columns - indent)], "l")]
}

const droppedSection = ({ dropped }: Report): Section => {
  if (dropped.length === 0) return undefined
  const row = ({ from, handle, messages, to }: Report["dropped"][number]) => [
    `${from} to ${to}`,
    Output.plural(messages, "message"),
    handle
  ]
  return ["Dropped ranges (print one with: palimpsest recall FILE HANDLE)", first(dropped, row, "lll")]
}

const usageSection = ({ usage }: Report): Section => {
  if (usage === null) return undefined
  const { answers, error, factor, overhead, points, recorded } = usage
  const written = recorded.cacheWrite === undefined ? "" : `, ${number(recorded.cacheWrite)} written to cache`
  const rows = [
    ["sent", `${number(recorded.prompt)}, ${share(recorded.cached, recorded.prompt)} from cache${written}`],
    ["answered", `${number(recorded.answer)}, plus ${number(recorded.thoughts)} in thoughts`],
    [
      "a request",
      points.length === 0
        ? "not recorded"
        : `about ${number(Math.round(overhead))} + ${factor.toFixed(2)} × our estimate of the view (mean error ${share(error, 1)})`
    ]
  ]
  return [`Usage recorded by the provider (${Output.plural(answers, "answer")})`, table(rows)]
}

const costSection = ({ compressing, cost }: Report, style: Output.Style): Section => {
  if (cost.models.length === 0) return undefined
  const header = ["requests", "sent", "cached", "answered", "USD"]
  const row = named(
    cost.models,
    ({ model }) => model,
    (one) => [
      number(one.requests),
      number(one.prompt),
      number(one.cached),
      number(one.answer + one.thoughts),
      one.cost === null ? "?" : dollars(one.cost)
    ],
    header
  )
  const summaries = tokensOfCost(compressing)
  const notes = [
    `prices: ${cell(cost.table, 70, "end")}${cost.table.startsWith("built in") ? " (--prices FILE for others)" : ""}`,
    ...(cost.estimated
      ? ["the agent recorded no usage: these are estimates, without instructions, tools and caching"]
      : []),
    ...(cost.unpriced.length > 0
      ? [cell(`no price for ${cost.unpriced.join(", ").slice(0, 1_000)}`, columns - indent)]
      : [])
  ]
  const total = cost.total === null ? "unknown" : dollars(cost.total)
  const isPart = cost.total !== null && cost.unpriced.length > 0
  const paid = compressing.total === null ? "" : `${dollars(compressing.total)} of it `
  const ofIt =
    summaries.requests === 0
      ? ""
      : `, ${paid}for ${Output.plural(summaries.requests, "call")} that compressed (${number(summaries.sent + summaries.answered)} tokens)`
  return [
    cell(`${cost.estimated ? "Estimated cost" : "Cost"}: ${isPart ? "at least " : ""}${total}${ofIt}`, columns),
    `${first(cost.models, row, "lrrrrr", ["", ...header].map(style.dim))}\n${notes.join("\n")}`
  ]
}

const brokenSection = ({ broken: { calls, responses } }: Report, style: Output.Style): Section => {
  if (calls.length + responses.length === 0) return undefined
  const alone = [
    ...calls.map((call) => ({ ...call, what: (tool: string) => `call of ${tool} without a response` })),
    ...responses.map((response) => ({ ...response, what: (tool: string) => `response of ${tool} without a call` }))
  ]
  const equal = Object.values(Arr.groupBy(alone, ({ entry, tool, what }) => `${entry} ${what(tool)}`))
  const row = (calls: Arr.NonEmptyReadonlyArray<(typeof alone)[number]>) => {
    const [{ entry, tool, what }] = calls
    return [entry, `${what(cell(tool, 45))}${calls.length === 1 ? "" : ` (× ${number(calls.length)})`}`]
  }
  return ["Broken pairs", style.warn(first(equal, row, "ll"))]
}

const skippedSection = (report: Report): Section => {
  const skipped = Object.entries(report.skipped).sort((a, b) => b[1] - a[1])
  if (skipped.length === 0) return undefined
  const row = ([kind, count]: readonly [string, number]) => [cell(kind, 60), number(count)]
  const { unknown } = report
  const news =
    unknown === undefined
      ? ""
      : `\n${unknown.kinds.length === 1 ? "1 kind" : `${number(unknown.kinds.length)} kinds`} of records of ${cell(unknown.program, 60)} ${unknown.kinds.length === 1 ? "is" : "are"} new to this program`
  return ["Records that are not part of the conversation", `${first(skipped, row, "lr")}${news}`]
}

/** The report as text. `sizes` are the view's tokens after each message. */
export const describe = (report: Report, sizes: ReadonlyArray<number>, style: Output.Style = Output.plain): string => {
  const sections: ReadonlyArray<Section> = [
    ...sumsSections(report, style),
    toolsSection(report, style),
    largestSection(report, style),
    readsSection(report, style),
    growthSection(report, sizes),
    compactionsSection(report, style),
    ratingsSection(report),
    droppedSection(report),
    usageSection(report),
    costSection(report, style),
    ["Next compression", nextText(report.next)],
    brokenSection(report, style),
    skippedSection(report)
  ]
  const torn =
    report.torn === null ? [] : [style.warn(`Line ${number(report.torn)}, the last one, is incomplete and is ignored.`)]
  return [
    factsText(report),
    ...sections.flatMap((section) =>
      section === undefined ? [] : [`${style.bold(section[0])}\n${section[1].replace(/^(?=.)/gm, " ".repeat(indent))}`]
    ),
    ...torn
  ].join("\n\n")
}

const nextText = (next: Report["next"]): string => {
  if (next === null)
    return `not planned: the conversation is too large to load here; run "palimpsest compress FILE --plan"`
  const { forced, waits } = next
  const automatic = waits === null ? "due now" : `not yet: ${waits}`
  return forced === null
    ? `${automatic}
there is nothing to compress`
    : `${automatic}
--force would replace ${Output.plural(forced.messages, "message")}: ${number(forced.before)} → up to about ${number(forced.after)} tokens`
}

const flags = {
  ...Input.conversation,
  prices: PricesFlag.flag,
  html: PageFlag.flag,
  beside: Input.optional(
    Flag.String("beside").pipe(Flag.withMetavar("file")),
    "Compare with the figures of another conversation"
  ),
  questions: Input.flag("questions", "Print the ratings of its compressions as questions for eval --questions"),
  ...ShareFlags.flags,
  json: Input.json
}

const besideText = (one: Report, other: Report, style: Output.Style): string => {
  const names = namesOf(one, other).map((file) => cell(file, 30, "end"))
  return table([["", ...names, "change"].map(style.dim), ...comparisonRows(one, other)], "lrrr")
}

/** The command `palimpsest inspect <file>`. */
export const inspect = Command.make(
  "inspect",
  flags,
  Effect.fn("cli.inspect")(function* (input) {
    yield* PageFlag.checkPlace(input.file, input.html)
    const sharing = yield* ShareFlags.sharingOf(input)
    if (input.beside !== undefined && input.json) return yield* badInput("use either --beside or --json, not both")
    if (input.beside === "-" && input.file === "-") return yield* badInput("standard input has one conversation only")
    const prices = yield* PricesFlag.read(input.prices)
    const read = Effect.fnUntraced(function* (file: string, shortens: boolean) {
      const conversation = yield* ConversationInput.load({ ...input, file, shortens })
      const { loaded, name } = yield* sharing.clean(
        conversation,
        sharing.isClean ? (file.split(/[\\/]/).at(-1) ?? file) : file
      )
      return { loaded, ...(yield* inspected(loaded, { file: name, prices })) }
    })
    const { loaded, ...one } = yield* read(input.file, true)
    const other = input.beside === undefined ? undefined : yield* read(input.beside, false)
    const { report } = one
    if (input.html !== undefined) {
      yield* writePage(input.html, loaded, one, { hidesTexts: input.redactTexts, beside: other })
    }
    if (input.questions) {
      const questions = questionsOf(report.compactions)
      yield* Effect.forEach(questions, (question) => Output.json(OwnQuestion, question))
      if (questions.length === 0) yield* Output.notice("no rating of its compressions names anything to ask for")
    } else if (input.json) yield* Output.json(Report, report)
    else if (input.html === undefined) {
      const style = yield* Output.style
      const sizes = viewSizes(one.measured ?? one.conversation)
      yield* Output.text(other === undefined ? describe(report, sizes, style) : besideText(report, other.report, style))
    }
    yield* sharing.tell
  })
).pipe(
  Command.withExamples([
    {
      command: "palimpsest inspect examples/claude-code-subagent.jsonl",
      description: "Inspect a Claude Code transcript"
    },
    { command: "palimpsest inspect session.json --json | jq .tokens", description: "Use the numbers in a script" },
    { command: "palimpsest inspect session.jsonl --html session.html", description: "Open it in a browser" },
    {
      command: "palimpsest inspect session.jsonl --html session.html --share",
      description: "Write a page to share, without secrets and account names"
    },
    { command: "palimpsest inspect before.jsonl --beside after.jsonl", description: "Compare two runs" }
  ])
)
