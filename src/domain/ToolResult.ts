import { Schema } from "effect"
import { firstUnits, lastUnits } from "./Bytes.ts"
import type { Part } from "./Content.ts"

/** What a tool gives back, and how that becomes an answer to the model (spec 14, result shape). */

/** One step of a plan that the model keeps (spec 14, write_todos). */
export const Todo = Schema.Struct({
  description: Schema.String,
  status: Schema.Literals(["pending", "in_progress", "completed", "cancelled", "blocked"])
})
export type Todo = typeof Todo.Type

/** What a person is shown of a result. */
export const Display = Schema.TaggedUnion({
  /** A line or a few. */
  Text: { text: Schema.String },
  /** A change to a file, as unified diff; the counts are of lines. */
  Diff: { file: Schema.String, diff: Schema.String, added: Schema.Natural, removed: Schema.Natural },
  /** The whole plan. */
  Todos: { todos: Schema.Array(Todo) }
})
export type Display = typeof Display.Type

/** A few words to show. */
export const words = (text: string): Display => ({ _tag: "Text", text })

/** Characters of words that a person is shown; where an output is one line of megabytes, too. */
const mostShown = 2_000

/** A display of a bounded size: how an output ended stands at its end. */
export const inBrief = (display: Display): Display =>
  display._tag === "Text" && display.text.length > mostShown ? words(`…${lastUnits(display.text, mostShown)}`) : display

/** What the model was told, as far as a person is shown it. */
export const messageInBrief = (message: string): string =>
  message.length > mostShown ? `${firstUnits(message, mostShown)}…` : message

/** What a tool gives back. */
export interface ToolResult<A = unknown> {
  /** What the model is told: a text, or an object that is sent as it is. */
  readonly value: A
  /** Images, PDFs and the like, which travel beside the answer. */
  readonly media?: ReadonlyArray<Part> | undefined
  /** What a person is shown; absent: the call's title alone. */
  readonly display?: Display | undefined
  /** Whether the agent's work is done with this: no further turn is taken. */
  readonly ends?: boolean | undefined
}

/** The answer to the model where there is nothing to say. */
const nothing = "The tool ran; it had no output."

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Characters of a result that are kept at most: what is longer never enters the conversation whole. */
export const mostKept = 32 * 1024 * 1024

/** A text of any length, its middle left out where it is too long to be kept; says so where it stood. */
export const kept = (output: string, most = mostKept): string => {
  if (output.length <= most) return output
  const half = Math.floor(most / 2)
  const left = output.length - 2 * half
  return `${output.slice(0, half)}\n... [${left} characters left out here: results are kept up to ${most} characters] ...\n${output.slice(-half)}`
}

/** The `response` of a function response: objects as they are, all else as `{output}` (spec 14). */
export const wireResponse = (value: unknown): Readonly<Record<string, unknown>> => {
  if (typeof value === "string") return { output: value === "" ? nothing : kept(value) }
  const json = JSON.stringify(value) ?? ""
  if (!isRecord(value) || json.length > mostKept) return { output: json === "" ? nothing : kept(json) }
  return value
}

/** Every function response that is not a success (spec 14). */
export const errorResponse = (message: string): Readonly<Record<string, unknown>> => ({ error: kept(message) })
