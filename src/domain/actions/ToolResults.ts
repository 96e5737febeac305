/** The forms in which each agent's tools answer: exit codes, signals, and the labels around what a command printed. */

import { Predicate } from "effect"
import { isErrorResponse, type Part } from "../content/Content.ts"
import { responseText } from "../content/MediaBlocks.ts"
import { lastUnits } from "../text/Bytes.ts"
import { isJson } from "../text/JsonObject.ts"
import { parsedOrUndefined } from "../text/JsonText.ts"

/** Returns the texts of a response, one for each block that the tool gave. */
export const answerTexts = (part: Part | undefined): ReadonlyArray<string> => {
  const response: unknown = part?.functionResponse?.response
  const content = Predicate.isObject(response) ? (response.content ?? response.error) : undefined
  if (!Array.isArray(content)) return part === undefined ? [] : [answerText(part)]
  return content.flatMap((block: unknown) =>
    Predicate.isObject(block) && typeof block.text === "string" ? [block.text] : []
  )
}

/** Gemini CLI of mid-2026 writes these around what a shell, a server or a page gave. */
const untrusted = { opens: /^<untrusted_context>\r?\n?/, closes: "</untrusted_context>" }
/** Gemini CLI adds the words of a hook to the result of a tool, and before them which arguments a hook changed. */
const hookWords = { opens: "\n\n<hook_context>", closes: "</hook_context>" }
const changedArguments = /\n\n\[System\] Tool input parameters \([^\n]*$/

const withoutAdditions = (text: string): string => {
  const whole = text.trimEnd()
  const at = whole.endsWith(hookWords.closes) ? whole.lastIndexOf(hookWords.opens) : -1
  const own = (at < 0 ? whole : whole.slice(0, at)).replace(changedArguments, "")
  return own.length === whole.length ? text : own
}

/** Returns the whole response of a tool as text, without marks around it or words after it. */
export const answerText = (part: Part | undefined): string => {
  const text = part === undefined ? "" : responseText(part)
  const opening = untrusted.opens.exec(text)?.[0] ?? ""
  if (opening === "" && !text.startsWith("Output: ")) return text
  const result = withoutAdditions(text)
  if (opening === "") return result
  const whole = result.trimEnd()
  return whole.slice(opening.length, whole.endsWith(untrusted.closes) ? -untrusted.closes.length : undefined)
}

/**
 * What Claude Code answers for a call that it did not make, or broke off: one beside it failed, the answer was begun anew (the sentence does
 * not say which), or the turn ended, which the user may have done or not, whatever the sentence says.
 */
const unmade =
  /^(?:(?:<tool_use_error>)?(?:Cancelled: parallel tool call [^]{1,400} errored|Sibling tool call errored|Streaming fallback - tool execution discarded)(?:<\/tool_use_error>)?\s*$|The user doesn't want to take this action right now\.|\[Request interrupted by user(?: for tool use)?\]\s*$)/

/** Whether a call was not made to its end. */
export const wasNotMade = (answer: Part | undefined): boolean =>
  answer !== undefined && isErrorResponse(answer) && unmade.test(answerText(answer).slice(0, 600))

/** What agents answer while a command runs on (Claude Code after what it printed so far, Codex, a script of Codex), with its id. */
const running = [
  /(?:^|\n)Command (?:running in background|was manually backgrounded by user|(?:[^\n]*\bwas )?moved to (?:the )?background) with ID: (\w+)/,
  /^(?:Chunk ID: .*\n)?Wall time: .*\nProcess running with session ID (\w+)/,
  /^Script running with cell ID (\w+)/
]

/** Matches other responses that come before the end of a command or in place of one (Gemini CLI). */
const unfinished = /^Command (?:(?:is )?running in background|moved to background|was (?:automatically )?cancelled)/

const edgesOf = (text: string): string =>
  text.length > 2_000 ? `${text.slice(0, 1_000)}\n${text.slice(-1_000)}` : text

/** How an answer begins that states an exit code: what it printed may quote the sentences above. */
const ended = /^(?:Exit code -?\d|(?:Chunk ID: .*\n)?Wall time: .*\nProcess exited with code)/

/** Returns the id under which the agent asks for the end of a command that runs on. */
export const runningId = (answer: Part | undefined): string | undefined => {
  const edges = edgesOf(answerText(answer))
  if (ended.test(edges)) return undefined
  return running.map((form) => form.exec(edges)?.[1]).find((id) => id !== undefined)
}

/** How Claude Code tells later that such a command ended: in a message, not in a result. */
const notification = /<(task|bash)-notification>([^]*?)<\/\1-notification>/g

/** The end of a command that ran in the background, as a message tells it: its id, its exit code, and what says so. */
interface NotifiedEnd {
  readonly id: string
  readonly exit: number
  readonly summary: string
}

/** Returns the commands whose end a message of a program tells. */
export const endedCommands = (text: string): ReadonlyArray<NotifiedEnd> =>
  [...text.matchAll(notification)].flatMap(([, , body = ""]) => {
    const id = /<(?:task|shell)-id>(\w+)</.exec(body)?.[1]
    const [, summary = "", code] = /<summary>([^<]*\bexit code (-?\d+)[^<]*)/.exec(body) ?? []
    return id === undefined || code === undefined ? [] : [{ id, exit: Number(code), summary }]
  })

/** The JSON in which Codex of 2025 wrapped what a command printed. */
const codexJson = /^\{"output":[\s\S]*"metadata":\s*\{"exit_code":\s*(-?\d+)[^{}]*\}\}\s*$/

/** Codex's forms of an exit code, anchored where Codex writes them, so that command output cannot match. */
const codexForms = [
  /^Exit code: (-?\d+)\nWall time: /,
  /^(?:Chunk ID: .*\n)?Wall time: .*\nProcess exited with code (-?\d+)/,
  codexJson
]

/**
 * Claude Code's and Pi's forms of an exit code, in errors only: a successful response holds command output and nothing else.
 */
const errorForms = [/^Exit code:? (-?\d+)/i, /(?:^|\n)Command exited with code (-?\d+)\s*$/]

/** Whether a value of the label `Signal` names one. Gemini CLI of early 2026 wrote 0 for none, others a word. */
const isSignal = (value: string | undefined): boolean =>
  value !== undefined && !/^(?:0|none|null|undefined|\(none\))?$/.test(value.trim())

const signalLabel = /^Signal: (.*)$/gm

/** Whether a response of a shell says that a signal ended its command. */
export const isSignalled = (answer: Part): boolean => {
  const last = [...lastUnits(answerText(answer), 2_000).matchAll(signalLabel)].at(-1)
  return isSignal(last?.[1])
}

const labelledForm = /^(?:Command|Output): /
const label = /^(Exit Code|Signal|Background PIDs|Process Group PGID): (.*)$/

/**
 * Returns the exit code from Gemini CLI's labelled form. Only the labels after the output come from the tool. Newer versions
 * omit a code of 0 or none; `otherwise` is the value for that case.
 */
const labelledExit = (text: string, otherwise: number | undefined): number | undefined => {
  const labels = new Map<string, string>()
  for (const line of text.trimEnd().split("\n").reverse()) {
    const [, name, value] = label.exec(line) ?? []
    if (name === undefined || value === undefined || labels.has(name)) break
    labels.set(name, value)
  }
  if (isSignal(labels.get("Signal"))) return undefined
  const code = labels.get("Exit Code")
  if (code === undefined) return otherwise
  return /^-?\d+$/.test(code) ? Number(code) : undefined
}

/**
 * Returns the exit code that a shell's response reports, or 0 for a response without an error or a code. Undefined when
 * there is no exit code: no response yet, still running, ended by a signal or otherwise without an exit.
 */
export const exitCode = (answer: Part | undefined): number | undefined => {
  if (answer === undefined) return undefined
  const edges = edgesOf(answerText(answer))
  if (unfinished.test(edges) || runningId(answer) !== undefined) return undefined
  const isError = isErrorResponse(answer)
  for (const form of isError ? [...codexForms, ...errorForms] : codexForms) {
    const code = form.exec(edges)?.[1]
    if (code !== undefined) return Number(code)
  }
  const otherwise = isError ? undefined : 0
  return labelledForm.test(edges) ? labelledExit(edges, otherwise) : otherwise
}

/** What Codex writes before the output of a command. */
const codexHead =
  /^(?:Exit code: .*\n)?(?:Chunk ID: .*\n)?Wall time: .*\n(?:Process (?:exited|running) with .*\n)?(?:(?:Original token count|Total output lines): .*\n)*Output:\n/

const printedNothing = /^(?:Stdout|Stderr|Output|Error): (?:\(none\)|\(empty\))$/

/**
 * Returns the lines that a command printed, verbatim. In the labelled form of Gemini CLI, which our tools share, and in Codex's, the
 * labels and the lines that name the command and its result are left out, and the JSON of Codex of 2025. In any other form it is the whole response.
 *
 * `text` may be cut at its end.
 */
export const printedText = (text: string): string => {
  const wrapped = codexJson.test(text) ? parsedOrUndefined(text) : undefined
  if (isJson(wrapped) && typeof wrapped.output === "string") return wrapped.output
  if (!labelledForm.test(text)) return text.replace(codexHead, "")
  const lines = text.split("\n")
  const first = text.startsWith("Command: ") ? lines.findIndex((line) => line.startsWith("Directory: ")) + 1 : 0
  let last = lines.length
  while (last > first && (label.test(lines[last - 1] ?? "") || lines[last - 1]?.trim() === "")) last -= 1
  return lines
    .slice(first, last)
    .filter((line) => !printedNothing.test(line))
    .join("\n")
    .replace(/^(?:Output|Stdout): /, "")
}

/** Returns texts without the line numbers that tools put before lines. */
export const withoutLineNumbers = (text: string): string => text.replace(/^ *\d+(?:→|\t)/gm, "")
