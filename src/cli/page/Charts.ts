import * as Plot from "@observablehq/plot"
import { parseHTML } from "linkedom/worker"

/**
 * The charts of the page, drawn as SVG without a browser. The one file of the command line that imports vendors: it is
 * loaded when a page is written and at no other time. Nothing that stands in a transcript comes in here; what it gives
 * back can stand in a page as it is.
 */

/** A value at a message, counted from 1. */
export interface Point {
  readonly message: number
  readonly tokens: number
}

/** A message that a chart points at: where it leads (a fragment, `#e12`) and what is said about it. */
export interface Mark extends Point {
  readonly href: string | undefined
  readonly title: string
}

/** A compaction, between two messages, and the tokens of the view before and after it. */
export interface Cut {
  readonly message: number
  readonly before: number
  readonly after: number
  readonly title: string
}

/** What a chart shows: lines of points, in the order of messages, each with the class that colours it. */
export interface Chart {
  /** For who cannot see it. */
  readonly label: string
  readonly description: string
  /** Messages along the bottom: the scale goes from the first to this one. */
  readonly messages: number
  readonly lines: ReadonlyArray<{
    readonly name: string
    readonly points: ReadonlyArray<Point>
    /** Whether the space below it is filled, and whether a value holds until the next one. */
    readonly filled: boolean
    readonly stepped: boolean
  }>
  readonly marks: ReadonlyArray<Mark>
  readonly cuts: ReadonlyArray<Cut>
}

/**
 * Widths and heights in pixels, one for wide pages, one for narrow ones: the page shows the one that fits. And how many labels there
 * is room for, along the bottom and at compactions.
 */
const sizes = {
  wide: { width: 856, height: 290, ticks: 8, labels: 6 },
  narrow: { width: 340, height: 220, ticks: 4, labels: 2 }
} as const
export type Size = keyof typeof sizes

/** Tokens as an axis tells them: 20k, 1.5M. */
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 })
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 })

/** A chart of tokens over messages. Values that are no numbers are left out; with nothing to show, axes remain. */
export const draw = (chart: Chart, size: Size): string => {
  const { document } = parseHTML("<html></html>")
  const { height, labels, ticks, width } = sizes[size]
  const isDrawn = (point: Point) => Number.isFinite(point.tokens) && Number.isFinite(point.message)
  const lines = chart.lines.map((line) => ({ ...line, points: line.points.filter(isDrawn) }))
  const values = lines.flatMap(({ points }) => points.map(({ tokens }) => tokens))
  const largest = values.reduce((a, b) => Math.max(a, b), 1)
  const at = { x: "message", y: "tokens" }
  const svg = Plot.plot({
    document,
    className: "plot",
    width,
    height,
    marginLeft: 48,
    marginRight: 14,
    marginTop: 26,
    marginBottom: 34,
    ariaLabel: chart.label,
    ariaDescription: chart.description,
    // A little more than the messages there are: one message alone is a scale too.
    x: { domain: [0.5, chart.messages + 0.5], label: "message" },
    y: { domain: [0, largest], nice: 5, label: "tokens" },
    marks: [
      Plot.gridY({ ticks: 5 }),
      Plot.axisX({
        ticks,
        tickSize: 0,
        tickFormat: (value: number) => (Number.isInteger(value) ? whole.format(value) : "")
      }),
      Plot.axisY({ ticks: 5, tickSize: 0, tickFormat: (value: number) => short.format(value) }),
      ...lines.flatMap(({ filled, name, points, stepped }) => {
        const curve = stepped ? "step-after" : "linear"
        return [
          ...(filled ? [Plot.areaY(points, { ...at, curve, className: `area ${name}` })] : []),
          Plot.lineY(points, { ...at, curve, className: `line ${name}` }),
          // A line needs two points; one alone is shown as a dot.
          ...(points.length === 1 ? [Plot.dot(points, { ...at, r: 2.5, className: `dot ${name}` })] : [])
        ]
      }),
      Plot.ruleY([0], { className: "ground" }),
      Plot.ruleX(chart.cuts, { x: "message", title: "title", className: "cut" }),
      Plot.text(chart.cuts.length > labels ? [] : chart.cuts, {
        x: "message",
        text: ({ after, before }: Cut) => `${short.format(before)} → ${short.format(after)}`,
        frameAnchor: "top",
        textAnchor: "start",
        dx: 5,
        className: "told"
      }),
      Plot.dot(chart.marks.filter(isDrawn), { ...at, r: 3.5, title: "title", href: "href", className: "mark" })
    ]
  })
  // The page has one sheet, and its policy allows no other.
  for (const style of svg.querySelectorAll("style")) style.remove()
  svg.setAttribute("font-size", "12")
  svg.setAttribute("class", `plot ${size}`)
  svg.setAttribute("role", "group")
  return svg.outerHTML
}
