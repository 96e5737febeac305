/**
 * The result of a tool, and its conversion to the answer for the model. What the model sees of a large result is decided in
 * `conversation/ToolOutputBound`; here only the log and the display are bounded.
 */

import { Predicate, Schema } from "effect"
import type { Part } from "../content/Content.ts"
import { clipped, lastUnits } from "../text/Bytes.ts"

/** Maximum length of a tool's output in a conversation, in characters (UTF-16 units). */
export const maxOutputChars = 32 * 1024 * 1024

/**
 * Truncates a tool's output to `maxChars` characters by replacing its middle with a note. This bound only protects the
 * conversation log; the context window has a smaller one (`ToolOutputBound.ts`).
 */
export const truncateOutput = (output: string, maxChars = maxOutputChars): string => {
  if (output.length <= maxChars) return output
  const half = Math.floor(maxChars / 2)
  const left = output.length - 2 * half
  return `${output.slice(0, half)}\n... [${left} characters left out here: results are kept up to ${maxChars} characters] ...\n${output.slice(-half)}`
}

/** One step of the `write_todos` plan. */
export const Todo = Schema.Struct({
  description: Schema.String,
  status: Schema.Literals(["pending", "in_progress", "completed", "cancelled", "blocked"])
})
export type Todo = typeof Todo.Type

/** The form in which a result is shown to the user. */
export const Display = Schema.TaggedUnion({
  /** A few lines. */
  Text: { text: Schema.String },
  /** A change to a file, as unified diff; the counts are of lines. */
  Diff: { file: Schema.String, diff: Schema.String, added: Schema.Natural, removed: Schema.Natural },
  /** The whole plan. */
  Todos: { todos: Schema.Array(Todo) }
})
export type Display = typeof Display.Type

/** Makes a display of a few lines of text. */
export const textDisplay = (text: string): Display => ({ _tag: "Text", text })

/** Maximum length of a displayed text, in characters; an output may be a single line of megabytes. */
const maxDisplayChars = 2_000

/** Truncates a display to its end, because the end says how a command finished. */
export const truncateDisplay = (display: Display): Display =>
  display._tag === "Text" && display.text.length > maxDisplayChars
    ? textDisplay(`…${lastUnits(display.text, maxDisplayChars)}`)
    : display

/** Truncates an answer to the model for display. */
export const truncateMessage = (message: string): string => clipped(message, maxDisplayChars)

/** The result of a tool. */
export interface ToolResult<A = unknown> {
  /** The answer to the model: a text, or an object that is sent unchanged. */
  readonly value: A
  /** Images, PDFs and other media that accompany the answer. */
  readonly media?: ReadonlyArray<Part> | undefined
  /** What the user sees. Absent: only the title of the call. */
  readonly display?: Display | undefined
  /** Whether the result ends the agent's work: it takes no further turn. */
  readonly ends?: boolean | undefined
}

/** The answer for an empty result. */
const noOutputText = "The tool ran; it had no output."

/**
 * Returns the `response` of a function response: an object unchanged, anything else as `{output}`. An object larger than
 * `maxOutputChars` as JSON becomes a truncated `{output}`.
 */
export const wireResponse = (value: unknown): Readonly<Record<string, unknown>> => {
  if (typeof value === "string") return { output: value === "" ? noOutputText : truncateOutput(value) }
  const json = JSON.stringify(value) ?? ""
  if (!Predicate.isObject(value) || json.length > maxOutputChars)
    return { output: json === "" ? noOutputText : truncateOutput(json) }
  return value
}

/** Returns the `response` of a failed call. */
export const errorResponse = (message: string): Readonly<Record<string, unknown>> => ({
  error: truncateOutput(message)
})
