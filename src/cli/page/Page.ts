/** The page of `inspect`: figures and charts of a conversation, and the list of its messages. */

import { Effect } from "effect"
import { type Conversation, entries, type EntryId } from "../../domain/conversation/Conversation.ts"
import { lostFacts, viewSizes } from "../../domain/evaluation/Compactions.ts"
import { PartKind } from "../../domain/evaluation/PartKind.ts"
import { conversationBreaks, turnCosts } from "../../domain/evaluation/TurnCosts.ts"
import { verdictOf } from "../../domain/evaluation/Verdict.ts"
import { clipped } from "../../domain/text/Bytes.ts"
import { printableLine } from "../../domain/text/InvisibleCharacters.ts"
import { dollars } from "../../domain/text/NumberText.ts"
import { shellWord } from "../../domain/text/ShellWord.ts"
import * as Work from "../../domain/text/SlicedWork.ts"
import type { Prices } from "../../domain/tokens/Prices.ts"
import { comparisonSection, namesOf } from "../output/InspectComparison.ts"
import { kindNames, type Report } from "../output/InspectReport.ts"
import { inspectFacts, inspectSections, maxOf } from "../output/InspectSections.ts"
import { number, plural } from "../output/Output.ts"
import { renderDocument } from "./Document.ts"
import * as Entries from "./Entries.ts"
import { type Html, markup, none } from "./Markup.ts"
import { comparisonChart, growthChart, marksOf, usageChart } from "./PageCharts.ts"
import { baseName, figure, type Link, reportPage, sentence } from "./ReportPage.ts"

/** The input of a page: the output of `inspect --json` and the conversation behind it. */
export interface Page {
  /** The report that `inspect --json` prints. */
  readonly report: Report
  /** The conversation whose messages the page lists. */
  readonly conversation: Conversation
  /** The whole of a log that was too long for memory, with shortened texts. `conversation` is then what the model sees of it, or empty. */
  readonly measured?: Conversation | undefined
  /** The prices of requests. Absent: the built-in list prices. */
  readonly prices?: Prices | undefined
  /** A snapshot by code in place of the last compaction's, of the same size. */
  readonly snapshotByCode?: string | undefined
  /** The heading. Absent: the file's name. */
  readonly title?: string | undefined
  /** Whether the page shows sizes in place of texts and names from them. */
  readonly hidesTexts?: boolean | undefined
  /** Another conversation to compare with. */
  readonly beside?: Omit<Page, "beside"> | undefined
}

/** The entries that the figures on the page link to. */
const mentioned = (report: Report): ReadonlySet<EntryId> => {
  const all = [
    ...report.largest.map((part) => part.entry),
    ...report.compactions.flatMap(({ after }) => (after === null ? [] : [after])),
    ...report.broken.calls.slice(0, 50).map((call) => call.entry),
    ...report.broken.responses.slice(0, 50).map((response) => response.entry),
    ...report.dropped.flatMap(({ from, to }) => [from, to]),
    ...report.reads.slice(0, 25).flatMap((read) => read.entries.slice(0, 12))
  ]
  return new Set(all.slice(0, 1_000))
}

/** The times of the first and the last message. */
const spanText = (conversation: Conversation): string => {
  const times = entries(conversation).flatMap(({ at }) => (at === undefined || Entries.moment(at) === "" ? [] : [at]))
  const from = times.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY)
  const to = maxOf(times)
  if (times.length === 0) return ""
  return from === to ? Entries.moment(from) : `${Entries.moment(from)} to ${Entries.moment(to)}`
}

const filterForm = (report: Report): Html => {
  const kinds = PartKind.literals.filter((kind) => report.kinds.some((each) => each.kind === kind))
  return markup`<form id="filter" role="search" aria-label="Messages" hidden>
    <input
      type="search"
      id="search"
      aria-label="Text to find in messages"
      placeholder="Find in messages"
      autocomplete="off"
      spellcheck="false"
    />
    <select id="kind" aria-label="Kind">
      <option value="">every kind</option>
      ${kinds.map((kind) => markup`<option value="${kind}">${kindNames[kind]}</option>`)}
    </select>
    <select id="where" aria-label="Place">
      <option value="">in view or not</option>
      <option value="in">in the view</option>
      <option value="left">not in the view</option>
    </select>
    <button type="submit" value="next">Next</button>
    <button type="submit" value="back">Back</button>
    <button type="reset">Clear</button>
    <output id="hits" aria-live="polite"></output>
    <output id="told" aria-live="polite"></output>
  </form> `
}

const conversationSection = (
  report: Report,
  rows: Html,
  extent: Entries.Extent,
  { hidesTexts, isLong }: { readonly hidesTexts: boolean; readonly isLong: boolean }
): Html => {
  const all = isLong ? report.messages : extent.messages
  const left = all - extent.shown
  const notes = [
    isLong && left > 0
      ? `This log is too large to load: of ${plural(all, "message")}, the page has ${number(extent.shown)} of those that the model sees; the recall command prints any other.`
      : "",
    left > 0 && !isLong
      ? `${number(extent.shown)} of ${plural(extent.messages, "message")} are on this page: the first, the last, those that the tables name and the largest. ${plural(left, "message")} are not.`
      : "",
    hidesTexts
      ? "Texts are not shown."
      : extent.partLimit > 0
        ? `Texts are shown up to ${number(extent.partLimit)} characters a part; characters that cannot be seen are shown by their names.`
        : "There is too much text for one page: none of it is shown."
  ].filter((text) => text !== "")
  const body = markup`<p class="note">${notes.join(" ")}</p>
${filterForm(report)}
<ol class="rows" role="list">
${rows}</ol>`
  return markup`<section id="conversation" aria-labelledby="conversation-title">
<h2 id="conversation-title">The conversation</h2>
${all === 0 ? markup`<p>There are no messages.</p>` : extent.shown === 0 ? markup`<p class="note">${notes.join(" ")}</p>` : body}
</section>
`
}

/** Returns the facts that the last compaction lost, and those that a snapshot by code keeps. */
const lostBy = Effect.fnUntraced(function* ({ conversation, report, snapshotByCode }: Page) {
  const index = report.compactions.length - 1
  const compaction = report.compactions[index]
  const lost = yield* Work.run(lostFacts(conversation, index))
  if (lost === undefined || compaction === undefined || compaction.facts === null) return undefined
  const byCode =
    snapshotByCode === undefined ? undefined : yield* Work.run(lostFacts(conversation, index, snapshotByCode))
  const facts = compaction.facts.dropped
  return {
    after: compaction.after,
    facts,
    lost,
    keptByCode: byCode && facts - byCode.length
  }
})

/** The main figures of the page. */
const numbers = (report: Report): Html => {
  const calls = report.tools.reduce((total, tool) => total + tool.calls, 0)
  const all: ReadonlyArray<readonly [value: string, name: string]> = [
    [number(report.tokens.all), "tokens in all"],
    [number(report.tokens.view), "tokens in view"],
    [number(report.messages), report.messages === 1 ? "message" : "messages"],
    [number(report.turns), report.turns === 1 ? "prompt" : "prompts"],
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
const facts = (all: ReadonlyArray<readonly [name: string, value: string]>): Html =>
  markup`<dl class="facts">
    ${all.map(
      ([name, value]) =>
        markup`<dt>${name}</dt>
            <dd>${clipped(value, 1_000)}</dd>`
    )}
  </dl> `

/** The caption of the chart of the view's growth. */
const growthCaption = ({ compactions, tokens }: Report, largest: number): Html =>
  markup`Tokens in the view after each message; at most ${number(largest)}, ${number(tokens.view)}
  now.${compactions.length > 0 ? markup` Dashed: ${plural(compactions.length, "compaction")}.` : none}
  Circles mark the largest messages and link to them.`

const usageCaption = markup`<span class="keyed"><i class="key"></i>sent, by our count</span>
<span class="keyed"><i class="key recorded"></i>sent, by the provider's count</span>`

const besideCaption = (one: Report, other: Report): Html =>
  markup`${namesOf(one, other).map(
    (file, at) => markup`<span class="keyed"><i class="key series-${at}"></i>${clipped(file, 60)}</span>
`
  )}Tokens in the view after each message.`

/** Draws the charts of a page, by the place of each. */
const chartsOf = Effect.fnUntraced(function* (
  { beside, conversation, measured, report }: Page,
  sizes: ReadonlyArray<number>,
  laidAt: ReadonlyArray<number>,
  isShown: (entry: EntryId) => boolean
) {
  const charts = new Map<string, Html>()
  if (sizes.length > 0) {
    // The positions of messages are unknown when only some are loaded.
    const marks = measured === undefined ? marksOf(conversation, sizes, isShown) : []
    const chart = growthChart(report, sizes, laidAt, marks)
    charts.set("growth", yield* figure(chart, growthCaption(report, maxOf(sizes))))
  }
  if (report.usage !== null && report.usage.points.length > 0) {
    const places = new Map(entries(conversation).map((entry, index) => [entry.id, index + 1]))
    charts.set("usage", yield* figure(usageChart(report, places, sizes.length), usageCaption))
  }
  if (beside !== undefined) {
    const chart = comparisonChart([report, sizes], [beside.report, viewSizes(beside.conversation)])
    charts.set("beside", yield* figure(chart, besideCaption(report, beside.report)))
  }
  return charts
})

/** Returns the marks between the messages of the page: where a compaction was. */
const cutsOf = ({ measured, report }: Page, laidAt: ReadonlyArray<number>): ReadonlyArray<Entries.Cut> =>
  (measured === undefined ? laidAt : []).map((laid, index) => {
    const tokens = report.compactions[index]?.tokens
    return {
      entries: laid,
      text:
        tokens === undefined
          ? "A compaction"
          : `A compaction: ${number(tokens.before)} → ${number(tokens.after)} tokens in the view`
    }
  })

/**
 * Renders one self-contained HTML page about a conversation: where its tokens went, and all of its messages.
 *
 * All text of the transcript is escaped. The same conversation always gives the same page.
 */
export const renderPage = Effect.fn("Page.renderPage")(function* (page: Page) {
  const { beside, conversation, hidesTexts = false, measured, prices, report, title } = page
  const sizes = viewSizes(measured ?? conversation)
  const laidAt = Entries.compressedAt(measured ?? conversation)
  yield* Effect.yieldNow
  const selected = Entries.select(conversation, mentioned(report))
  const isShown = (entry: EntryId) => selected.ids.has(entry)
  const link: Link = (entry) => (isShown(entry) ? markup`<a href="#${entry}">${entry}</a>` : markup`${entry}`)
  const recall = `palimpsest recall ${shellWord(report.file)}`
  const about = { model: report.model ?? undefined, prices }
  const turnList = measured === undefined ? turnCosts(conversation, about) : []
  yield* Effect.yieldNow
  const verdict = verdictOf({
    inspection: report,
    kindNames,
    lost: measured === undefined ? yield* lostBy(page) : undefined,
    breaks: measured === undefined ? conversationBreaks(conversation, laidAt, about) : [],
    tellsNames: !hidesTexts
  })
  const turns = new Map(turnList.map((turn) => [turn.entry, turn]))
  const listed = yield* Entries.rows(selected, conversation, cutsOf(page, laidAt), { recall, turns, hidesTexts })
  const sections = reportPage(
    [
      ...(beside === undefined ? [] : [comparisonSection(report, beside.report)]),
      ...inspectSections(report, { sizes, turns: turnList, recall, hidesTexts })
    ],
    { link, charts: yield* chartsOf(page, sizes, laidAt, isShown) }
  )
  const name = printableLine(title ?? baseName(report.file))
  return yield* renderDocument({
    title: `${name}: where the tokens went`,
    header: markup`<p class="over">Palimpsest · inspect</p>
<h1>${name}</h1>
${verdict.map((text) => markup`<p class="lead">${sentence(text, link)}</p>`)}
${facts(inspectFacts(report, { time: spanText(measured ?? conversation), hidesTexts }))}
${numbers(report)}`,
    contents: [...sections.contents, ["conversation", "Conversation"]],
    main: [
      ...sections.main,
      conversationSection(report, listed.markup, listed.extent, { hidesTexts, isLong: measured !== undefined })
    ],
    footer: markup`Tokens are estimates of palimpsest unless the page says that they were recorded.
<code>${recall} HANDLE</code> prints the exact bytes behind a handle.`
  })
})
