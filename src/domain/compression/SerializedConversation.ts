/** A conversation as one text for a model that summarises it: nothing in it can be taken for a turn of its own. */

import { answerText } from "../actions/ToolResults.ts"
import { isCall, isMedia, isResponse, isText, isThought, type Part } from "../content/Content.ts"
import type { Entry } from "../conversation/Conversation.ts"
import type { SlicedWork } from "../text/SlicedWork.ts"

/** How much of each message is shown. */
export interface SerializeOptions {
  /** Characters of a tool result. */
  readonly maxResultChars: number
  /** Characters of its end that are shown as well when the end looks like an error. Absent: none. */
  readonly maxErrorTailChars?: number | undefined
  /** Whether thoughts are shown. */
  readonly thoughts: boolean
  /** Whether media are mentioned. */
  readonly media: boolean
}

/** Matches the end of an output that tells of an error (OpenClaw 2026.9). */
const errorEnd = /\b(?:error|exception|failed|fatal|traceback|panic|exit code)\b/i

const resultText = (text: string, { maxErrorTailChars = 0, maxResultChars }: SerializeOptions): string => {
  if (text.length <= maxResultChars) return text
  const end = text.slice(-2_000)
  const tail = maxErrorTailChars > 0 && errorEnd.test(end) ? text.slice(-maxErrorTailChars) : ""
  const head = text.slice(0, maxResultChars - tail.length)
  return `${head}\n[… ${text.length - head.length - tail.length} more characters]${tail === "" ? "" : `\n${tail}`}`
}

const callText = ({ args, name }: NonNullable<Part["functionCall"]>): string => {
  const entries = typeof args === "object" && args !== null ? Object.entries(args) : []
  return `${name}(${entries.map(([key, value]) => `${key}=${JSON.stringify(value)}`).join(", ")})`
}

const joined = (parts: ReadonlyArray<Part>): string =>
  parts
    .flatMap(({ text }) => (text === undefined ? [] : [text]))
    .join("\n")
    .trim()

const blocks = ({ author, content: { parts, role } }: Entry, options: SerializeOptions): ReadonlyArray<string> => {
  const words = joined(parts.filter((part) => isText(part) && !isThought(part)))
  const thought = options.thoughts ? joined(parts.filter(isThought)) : ""
  const calls = parts.flatMap((part) => (isCall(part) ? [callText(part.functionCall)] : []))
  const media = options.media ? parts.filter(isMedia).length : 0
  const speaker = role === "model" ? "Assistant" : author === undefined ? "User" : "Program"
  return [
    ...(thought === "" ? [] : [`[Assistant thinking]: ${thought}`]),
    ...(words === "" ? [] : [`[${speaker}]: ${words}`]),
    ...(calls.length === 0 ? [] : [`[Assistant tool calls]: ${calls.join("; ")}`]),
    ...parts.filter(isResponse).map((part) => `[Tool result]: ${resultText(answerText(part), options)}`),
    ...(media === 0 ? [] : [`[${media} ${media === 1 ? "file" : "files"} left out]`])
  ]
}

/** Returns the entries as one text, a labelled block for each kind of part, with blank lines between. */
export function* serialized(entries: ReadonlyArray<Entry>, options: SerializeOptions): SlicedWork<string> {
  const texts: Array<string> = []
  for (const entry of entries) {
    for (const each of blocks(entry, options)) texts.push(each)
    yield
  }
  return texts.join("\n\n")
}
