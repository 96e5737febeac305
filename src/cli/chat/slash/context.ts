/** The slash commands `/context` and `/recall`: show what fills the window, and what left it. */

import { Effect } from "effect"
import { isHandle } from "../../../domain/content/Handle.ts"
import type { Inspection } from "../../../domain/evaluation/Inspection.ts"
import { visibleBlock } from "../../../domain/text/InvisibleCharacters.ts"
import { inspect } from "../../../services/evaluation/Inspect.ts"
import { kindNames } from "../../output/InspectReport.ts"
import * as Output from "../../output/Output.ts"
import { say, type SlashCommand, tableColumns } from "./ChatSession.ts"

/** The values of the bar and the table, in tokens. */
export interface ContextUse {
  /** Tokens by part kind. */
  readonly kinds: Inspection["kinds"]
  /** The fixed part of every request: system instruction and tools. */
  readonly overhead: number
  /** The next request without its message. */
  readonly tokens: number
  /** The model's window. */
  readonly limit: number
  /** Share of the window that triggers a compression; 1 disables it. */
  readonly threshold: number
}

/** A mark for each kind of part, and one for the instructions and tools. */
const blocks = ["█", "▓", "▒", "░", "▞", "▄", "#", "=", "+", "o"]

/** Draws the bar, in which each kind has its own mark. A kind with tokens has at least one column. */
const barOf = (rows: ReadonlyArray<number>, { limit, threshold }: ContextUse, width: number): string => {
  const cells: Array<string> = []
  rows.forEach((tokens, at) => {
    const columns = tokens === 0 ? 0 : Math.max(1, Math.round((tokens / Math.max(1, limit)) * width))
    for (let column = 0; column < columns && cells.length < width; column += 1) {
      cells.push(blocks[at] ?? "")
    }
  })
  while (cells.length < width) cells.push("·")
  const mark = Math.min(width - 1, Math.round(threshold * width))
  if (threshold < 1 && cells[mark] === "·") cells[mark] = "|"
  return `[${cells.join("")}]`
}

/** Returns the lines of `/context`, none wider than `columns` if that is 40 or more. */
export const contextTable = (use: ContextUse, columns: number): string => {
  const { kinds, limit, overhead, threshold, tokens } = use
  const sizes: ReadonlyArray<readonly [string, number]> = [
    ...(overhead === 0 ? [] : [["system and tools", overhead] as const]),
    ...kinds
      .filter(({ view }) => view > 0)
      .map(({ kind, view }) => [kindNames[kind], view] as const)
      .sort((one, other) => other[1] - one[1])
  ]
  const width = Math.max(10, Math.min(60, columns - 4))
  const free = Math.max(0, limit - tokens)
  const rows = sizes.map(([name, size], at) => [
    "",
    blocks[at] ?? "",
    name,
    Output.number(size),
    Output.share(size, limit)
  ])
  const due = Math.max(0, Math.ceil(threshold * limit) - tokens)
  return [
    `  ${barOf(
      sizes.map(([, size]) => size),
      use,
      width
    )}`,
    Output.table([...rows, ["", "·", "free", Output.number(free), Output.share(free, limit)]], "lllrr"),
    `  ${Output.number(tokens)} of ${Output.number(limit)} tokens`,
    threshold >= 1
      ? "  compressed only when nothing else fits"
      : `  | ${Output.share(threshold * limit, limit)}: ${due === 0 ? "compresses before the next message" : `compresses in ${Output.number(due)} tokens`}`
  ].join("\n")
}

/** The command `/context`. */
export const context: SlashCommand = {
  name: "context",
  help: "Show what fills the context window",
  run: Effect.fnUntraced(function* (session) {
    const { chat, terminal } = session
    const { limit, scale = 1, threshold, tokens } = yield* chat.usage
    const { conversation } = yield* chat.session
    const { kinds, tokens: estimated } = yield* inspect(conversation)
    const use = {
      kinds: kinds.map((kind) => ({ ...kind, view: Math.round(kind.view * scale) })),
      overhead: Math.max(0, Math.round(tokens - estimated.view * scale)),
      tokens,
      limit,
      threshold
    }
    yield* terminal.write(`${contextTable(use, yield* tableColumns(session))}\n`)
  })
}

const maxTokens = 4_000

/** The command `/recall <handle or pattern>`. */
export const recall: SlashCommand = {
  name: "recall",
  usage: "<handle|pattern>",
  help: "Show what left the window, by handle or by pattern",
  run: Effect.fnUntraced(function* (session, handleOrPattern) {
    const { chat, terminal } = session
    if (handleOrPattern === "") return yield* say(session, "Give a handle or a pattern, for example: /recall timeout")
    // The user may see secrets, as with `palimpsest recall`.
    const { text } = isHandle(handleOrPattern)
      ? yield* chat.recall(handleOrPattern, { maxTokens })
      : yield* chat.search({ pattern: handleOrPattern, maxTokens, isRedacted: false })
    yield* terminal.write(`${visibleBlock(text)}\n`)
  })
}
