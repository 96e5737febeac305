/** Truncates tool outputs beyond a budget, as the strategy `gemini` does before it summarises. */

import { Predicate } from "effect"
import { type Content, type FunctionResponse, type Part } from "../../../content/Content.ts"
import type { Handle } from "../../../content/Handle.ts"
import { defaultSize, type OutputForm, shorten } from "../../../conversation/ToolOutputShortening.ts"
import type * as Work from "../../../text/SlicedWork.ts"
import { gemini } from "./Gemini.ts"
import { defaultRates, type Rates, textCost, unitsPerToken } from "./TokenEstimate.ts"

/** Tokens of tool output to keep in full, newest first. */
export const defaultToolBudget = 50_000
/** Maximum characters of a placeholder. */
const maxPlaceholderChars = 40_000

/**
 * Returns the maximum characters of a placeholder: four for every token left in the window. A full window leaves 0, where
 * Gemini CLI's arithmetic would go negative.
 */
export const maxCharsOf = (limit: number, lastPromptTokens: number, maxChars: number = maxPlaceholderChars): number =>
  Math.max(0, Math.min(maxChars, unitsPerToken * (limit - lastPromptTokens)))

/** A tool output over the budget that has to be saved. */
export interface OutputSave {
  /** The session's counter value. */
  readonly number: number
  /** Index of the message that holds the output. */
  readonly content: number
  readonly part: number
  /** The whole output, however it is shown now. */
  readonly text: string
}

/** An output as the conversation stores it. */
export interface StoredOutput {
  /** Recalls the whole output. */
  readonly handle: Handle
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
  /** Returns the stored output of a part. Undefined: nothing recalls it, so that it stays. */
  readonly stored: (content: number, part: number) => StoredOutput | undefined
  /** Tokens to keep in full. */
  readonly budget?: number
  /** Default: `last-lines`. */
  readonly form?: OutputForm
  /** See `maxCharsOf`. */
  readonly maxChars?: number
  /** The session's counter: the number of the next save. */
  readonly firstNumber?: number
  /** Numbers of saves that failed. */
  readonly failedSaves?: ReadonlySet<number>
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

/**
 * Returns the text that replaces an output in the window: its placeholder, made from the whole output, or what is shown now
 * when that is not longer.
 */
export const placeholder = (
  shown: string,
  { handle, text }: StoredOutput,
  form: OutputForm = gemini.defaults.outputForm,
  maxChars: number = maxPlaceholderChars
): string => {
  const shortened = shorten(text, handle, form, { ...defaultSize, chars: maxChars })
  return shortened.length < shown.length ? shortened : shown
}

/** Returns the text of a response: the response itself, its `output`, its `content`, or all of it as JSON. */
export const outputOf = ({ response }: FunctionResponse): string => {
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
  const { budget = defaultToolBudget, form, maxChars, rates = defaultRates } = options
  const shown = outputOf(answer)
  const tokens = Math.floor(textCost(shown, rates))
  if (state.used + tokens <= budget) {
    state.used += tokens
    return part
  }
  const number = state.number
  state.number += 1
  const stored = options.stored(at.content, at.part)
  const save: OutputSave = { number, ...at, text: stored?.text ?? shown }
  // Without a response, the original has nothing to save: the save fails and the part stays.
  if (stored === undefined || options.failedSaves?.has(number) === true || answer.response === undefined) {
    state.used += tokens
    state.outputs.push({ ...save, saved: false, replacement: undefined })
    return part
  }
  const output = placeholder(shown, stored, form, maxChars)
  state.used += Math.floor(textCost(output, rates))
  const replacement = withNewOutput(answer, output)
  state.outputs.push({ ...save, saved: true, replacement })
  return replacement
}

/** Keeps tool outputs within their budget, newest first. After one that exceeds it, smaller older ones may still fit. */
export function* truncating(contents: ReadonlyArray<Content>, options: TruncateOptions): Work.SlicedWork<Truncation> {
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
      yield
    }
    newest.push({ ...original, parts: parts.reverse() })
  }
  return { contents: newest.reverse(), outputs: state.outputs, nextNumber: state.number }
}
