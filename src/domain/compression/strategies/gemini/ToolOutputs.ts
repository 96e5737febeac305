import { Predicate } from "effect"
import { type Content, type FunctionResponse, isResponse, type Part } from "../../../content/Content.ts"
import { defaultSize } from "../../../conversation/ToolOutputShortening.ts"
import { firstUnits, lastUnits } from "../../../text/Bytes.ts"
import { runtimeMark } from "../../../text/RuntimeMark.ts"
import type * as Work from "../../../text/SlicedWork.ts"
import { defaultRates, type Rates, textCost, unitsPerToken } from "./TokenEstimate.ts"

/** Tokens of tool output to keep in full, newest first. */
export const defaultToolBudget = 50_000
/** Maximum characters of a placeholder. */
export const maxPlaceholderChars = 40_000

/** The placeholder forms of this strategy: Gemini CLI's of March 2026, and its form until 2026-02-06. */
export type PlaceholderForm = "head-tail-chars" | "last-lines"

/**
 * Returns the maximum characters of a placeholder: four for every token left in the window. A full window leaves 0, where
 * Gemini CLI's arithmetic would go negative.
 */
export const maxCharsOf = (limit: number, lastPromptTokens: number, maxChars: number = maxPlaceholderChars): number =>
  Math.max(0, Math.min(maxChars, unitsPerToken * (limit - lastPromptTokens)))

const safeFileName = (name: string): string => name.replace(/[^A-Za-z0-9_-]/g, "_").toLowerCase()

/** Returns the file name of a saved output: `<tool>_<number>.txt`. */
export const fileNameOf = (tool: string | undefined, number: number): string =>
  `${safeFileName(tool ?? "unknown_tool")}_${number}.txt`

/** A tool output over the budget that has to be saved. */
export interface OutputSave {
  /** The session's counter value. */
  readonly number: number
  readonly file: string
  /** Index of the message that holds the output. */
  readonly content: number
  readonly part: number
  readonly text: string
}

/** A tool output after truncation. */
export interface TruncatedOutput extends OutputSave {
  readonly saved: boolean
  /** The part that replaces it; undefined when the save failed and the original stays. */
  readonly replacement: Part | undefined
}

/** Options for shortening outputs. Absent fields take Gemini CLI's values of March 2026. */
export interface TruncateOptions {
  /** Tokens to keep in full. */
  readonly budget?: number
  readonly form?: PlaceholderForm
  /** See `maxCharsOf`. */
  readonly maxChars?: number
  /** The session's counter: the number of the next save. */
  readonly firstNumber?: number
  /** Numbers of saves that failed. */
  readonly failedSaves?: ReadonlySet<number>
  /** Makes the text by which the placeholder refers to the whole output. Default: its file. */
  readonly pointer?: (save: OutputSave) => string
  readonly rates?: Rates
}

/** The messages after truncation, and every output over the budget. */
export interface Truncation {
  readonly contents: ReadonlyArray<Content>
  /** In the order of their numbers, newest first. */
  readonly outputs: ReadonlyArray<TruncatedOutput>
  /** The session's counter afterwards. A failed save uses up its number too. */
  readonly nextNumber: number
}

const grouped = (count: number): string => count.toLocaleString("en-US")

/** Makes the form of March 2026: the first fifth and the last four fifths. A text that is short enough stays unchanged. */
const headAndTail = (whole: string, maxChars: number, pointer: string): string => {
  if (whole.length <= maxChars) return whole
  const head = Math.floor(maxChars * 0.2)
  const tail = maxChars - head
  const header = `${runtimeMark} Shown are the first ${grouped(head)} and last ${grouped(tail)} characters of this output. All of it: ${pointer}`
  const marker = `... [${grouped(whole.length - maxChars)} characters omitted] ...`
  return `${header}\n${firstUnits(whole, head)}\n\n${marker}\n\n${lastUnits(whole, tail)}`
}

const widthMark = "... [LINE WIDTH TRUNCATED]"

/** Makes the form until 2026-02-06: the last lines with wide ones cut, or the end of a single line. */
const lastLines = (whole: string, pointer: string): string => {
  const lines = whole.split("\n")
  if (lines.length === 1) {
    const shown = Math.min(defaultSize.singleLine, whole.length)
    return `${runtimeMark} Shown are the last ${grouped(shown)} of ${grouped(whole.length)} characters of this output. All of it: ${pointer}\n...\n${lastUnits(whole, defaultSize.singleLine)}`
  }
  const tail = lines.slice(-defaultSize.lastLines)
  const isWide = (line: string): boolean => line.length > defaultSize.lineWidth
  const cut = tail.some(isWide) ? `, each cut at ${grouped(defaultSize.lineWidth)} characters` : ""
  const shown = tail.map((line) => (isWide(line) ? `${firstUnits(line, defaultSize.lineWidth)}${widthMark}` : line))
  return `${runtimeMark} Shown are the last ${grouped(tail.length)} of ${grouped(lines.length)} lines of this output${cut}. All of it: ${pointer}\n...\n${shown.join("\n")}`
}

/** Returns the text that replaces an output in the window. */
export const placeholder = (whole: string, form: PlaceholderForm, maxChars: number, pointer: string): string =>
  form === "last-lines" ? lastLines(whole, pointer) : headAndTail(whole, maxChars, pointer)

/** Returns the text of a response: the response itself, its `output`, its `content`, or all of it as JSON. */
const outputOf = ({ response }: FunctionResponse): string => {
  if (typeof response === "string") return response
  if (Predicate.isObject(response)) {
    for (const value of [response.output, response.content]) if (typeof value === "string") return value
  }
  return response === undefined ? "" : JSON.stringify(response, null, 2)
}

/** Returns the response with a new output. Its own keys stay, those of the former output do not. */
const withNewOutput = (answer: FunctionResponse, output: string): Part => ({
  functionResponse: { ...answer, response: { output } }
})

/** The state of the budget while the outputs are processed, newest first. */
interface BudgetState {
  used: number
  number: number
  readonly outputs: Array<TruncatedOutput>
}

/** Returns the part for one output: the original within the budget or when it cannot be saved, else its placeholder. */
const truncatePart = (
  state: BudgetState,
  part: Part,
  at: { readonly content: number; readonly part: number },
  options: TruncateOptions
) => {
  const answer = part.functionResponse
  if (answer === undefined) return part
  const {
    budget = defaultToolBudget,
    form = "head-tail-chars",
    maxChars = maxPlaceholderChars,
    rates = defaultRates
  } = options
  const whole = outputOf(answer)
  const tokens = Math.floor(textCost(whole, rates))
  if (state.used + tokens <= budget) {
    state.used += tokens
    return part
  }
  const number = state.number
  state.number += 1
  const save: OutputSave = { number, file: fileNameOf(answer.name, number), ...at, text: whole }
  // Without a response, the original has nothing to save: the save fails and the part stays.
  if (options.failedSaves?.has(number) === true || answer.response === undefined) {
    state.used += tokens
    state.outputs.push({ ...save, saved: false, replacement: undefined })
    return part
  }
  const shown = placeholder(whole, form, maxChars, options.pointer?.(save) ?? save.file)
  state.used += Math.floor(textCost(shown, rates))
  const replacement = withNewOutput(answer, shown)
  state.outputs.push({ ...save, saved: true, replacement })
  return replacement
}

/** Keeps tool outputs within their budget, newest first. After one that exceeds it, smaller older ones may still fit. */
export function* truncating(
  contents: ReadonlyArray<Content>,
  options: TruncateOptions = {}
): Work.SlicedWork<Truncation> {
  const state: BudgetState = { used: 0, number: options.firstNumber ?? 1, outputs: [] }
  const newest: Array<Content> = []
  for (let content = contents.length - 1; content >= 0; content -= 1) {
    const original = contents[content]
    if (original === undefined) continue
    const parts: Array<Part> = []
    for (let part = original.parts.length - 1; part >= 0; part -= 1) {
      const before = original.parts[part]
      if (before === undefined) continue
      parts.push(truncatePart(state, before, { content, part }, options))
      yield isResponse(before) ? 4_000 : 20
    }
    newest.push({ ...original, parts: parts.reverse() })
  }
  return { contents: newest.reverse(), outputs: state.outputs, nextNumber: state.number }
}
