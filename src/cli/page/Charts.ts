/**
 * Draws the charts of the page as SVG without a browser.
 *
 * No other file of the command line imports third-party packages. It is loaded only when a page is written. It gets no
 * transcript text, so its output is safe to embed.
 */

import * as Plot from "@observablehq/plot"
import { parseHTML } from "linkedom/worker"

/** A value at a message, counted from 1. */
export interface Point {
  /** Position of the message, from 1. */
  readonly message: number
  readonly tokens: number
}

/** A marked message: its link target (a fragment, `#e12`) and its label. */
export interface MarkedPoint extends Point {
  /** Link target; undefined when the message is not on the page. */
  readonly href: string | undefined
  /** Text shown for the mark. */
  readonly title: string
}

/** A compaction between two messages, with the tokens of the view before and after it. */
export interface Cut {
  /** Position on the message axis, half-way between two messages. */
  readonly message: number
  /** Tokens of the view before the compaction. */
  readonly before: number
  /** Tokens of the view after the compaction. */
  readonly after: number
  /** Text shown for the compaction. */
  readonly title: string
}

/** The data of a chart: lines of points in message order, each with the class that colours it. */
export interface Chart {
  /** The label for screen readers. */
  readonly label: string
  /** Longer description for screen readers. */
  readonly description: string
  /** Length of the horizontal axis in messages, from the first one. */
  readonly messages: number
  /** What the horizontal axis counts; absent: messages. */
  readonly axis?: string
  readonly lines: ReadonlyArray<{
    readonly name: string
    readonly points: ReadonlyArray<Point>
    /** Whether the space below the line is filled, and whether a value holds until the next one. */
    readonly filled?: boolean
    readonly stepped?: boolean
    /** Points of the line that are marked, in its colour. */
    readonly dots?: ReadonlyArray<MarkedPoint>
  }>
  /** Marked messages. */
  readonly marks?: ReadonlyArray<MarkedPoint>
  /** Compactions, oldest first. */
  readonly cuts?: ReadonlyArray<Cut>
}

/**
 * Width and height in pixels for wide and for narrow pages (the page shows the one that fits), and the number of labels that
 * fit along the bottom and at compactions.
 */
const sizes = {
  wide: { width: 856, height: 290, ticks: 8, labels: 6 },
  narrow: { width: 340, height: 220, ticks: 4, labels: 2 }
} as const
export type Size = keyof typeof sizes

/** Axis labels for tokens: 20k, 1.5M. */
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 })
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 })

const at = { x: "message", y: "tokens" }
const isDrawn = (point: Point) => Number.isFinite(point.tokens) && Number.isFinite(point.message)

const axes = (ticks: number) => [
  Plot.gridY({ ticks: 5 }),
  Plot.axisX({
    ticks,
    tickSize: 0,
    tickFormat: (value: number) => (Number.isInteger(value) ? whole.format(value) : "")
  }),
  Plot.axisY({ ticks: 5, tickSize: 0, tickFormat: (value: number) => short.format(value) })
]

type Line = Chart["lines"][number]

const lineMarks = ({ dots = [], filled = false, name, points, stepped = false }: Line) => {
  const curve = stepped ? "step-after" : "linear"
  return [
    ...(filled ? [Plot.areaY(points, { ...at, curve, className: `area ${name}` })] : []),
    Plot.lineY(points, { ...at, curve, className: `line ${name}` }),
    // A line needs two points; a single point is drawn as a dot.
    ...(points.length === 1 ? [Plot.dot(points, { ...at, r: 2.5, className: `dot ${name}` })] : []),
    Plot.dot(dots.filter(isDrawn), { ...at, r: 3.5, title: "title", className: `mark ${name}` })
  ]
}

/** The labels of compactions; at the right edge a label stands before its line. */
const cutLabels = (cuts: ReadonlyArray<Cut>, messages: number) =>
  (["start", "end"] as const).map((textAnchor) =>
    Plot.text(
      cuts.filter(({ message }) => message > messages * 0.85 === (textAnchor === "end")),
      {
        x: "message",
        text: ({ after, before }: Cut) => `${short.format(before)} → ${short.format(after)}`,
        frameAnchor: "top",
        textAnchor,
        dx: textAnchor === "start" ? 5 : -5,
        className: "told"
      }
    )
  )

/** Draws a chart of tokens over messages. Values that are not finite are left out; without data only the axes are drawn. */
export const draw = (chart: Chart, size: Size): string => {
  const { document } = parseHTML("<html></html>")
  const { height, labels, ticks, width } = sizes[size]
  const { cuts = [], marks = [], messages } = chart
  const lines = chart.lines.map((line) => ({ ...line, points: line.points.filter(isDrawn) }))
  const values = lines.flatMap(({ points }) => points.map(({ tokens }) => tokens))
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
    // Slightly wider than the messages, so that a single message has a scale too.
    x: { domain: [0.5, messages + 0.5], label: chart.axis ?? "message" },
    y: { domain: [0, values.reduce((a, b) => Math.max(a, b), 1)], nice: 5, label: "tokens" },
    marks: [
      ...axes(ticks),
      ...lines.flatMap(lineMarks),
      Plot.ruleY([0], { className: "ground" }),
      Plot.ruleX(cuts, { x: "message", title: "title", className: "cut" }),
      ...cutLabels(cuts.length <= labels ? cuts : [], messages),
      Plot.dot(marks.filter(isDrawn), { ...at, r: 3.5, title: "title", href: "href", className: "mark" })
    ]
  })
  // The page has a single style sheet, and its policy allows no other.
  for (const style of svg.querySelectorAll("style")) style.remove()
  // A label without a role says nothing to screen readers; the chart has its own.
  for (const group of svg.querySelectorAll("g[aria-label]")) group.removeAttribute("aria-label")
  svg.setAttribute("font-size", "12")
  svg.setAttribute("class", `plot ${size}`)
  svg.setAttribute("role", "group")
  return svg.outerHTML
}
