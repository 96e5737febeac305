/** Parses a command hook's answer: its JSON output, or its text and exit code. */

import { Predicate, Result, Schema } from "effect"
import { firstUnits } from "../text/Bytes.ts"
import { parsedOrUndefined } from "../text/JsonText.ts"
import { HookOutput } from "./Hook.ts"

/** A hook's output with how the hook ended. */
export interface HookAnswer {
  readonly _tag: "HookAnswer"
  readonly output: HookOutput | undefined
  /** Whether the next hook in a sequence receives this hook's changes. */
  readonly succeeded: boolean
  /** What was wrong with the output, in one line; undefined when nothing was. */
  readonly problem: string | undefined
}

/** How a hook's command ended. */
interface HookRun {
  readonly stdout: string
  readonly stderr: string
  readonly code: number
  /** Whether the output exceeded the limit and was cut. */
  readonly isCut: boolean
}

/** Longest plain-text output passed on to the user or the model, in characters. */
const maxTextChars = 8_192

/** Exit codes by which a shell reports that a signal ended the program. */
const signals: Readonly<Record<number, string>> = { 134: "SIGABRT", 137: "SIGKILL", 139: "SIGSEGV", 143: "SIGTERM" }

const decodeOutput = Schema.decodeUnknownResult(HookOutput)

/** Parses a JSON object, also when it is encoded as JSON twice. */
const objectOf = (text: string): Readonly<Record<string, unknown>> | undefined => {
  const once = parsedOrUndefined(text)
  const value = typeof once === "string" ? parsedOrUndefined(once) : once
  return Predicate.isObject(value) ? value : undefined
}

/** The valid fields, and the names of the invalid ones. */
const fieldsOf = (value: Readonly<Record<string, unknown>>): readonly [HookOutput, ReadonlyArray<string>] => {
  const wrong: Array<string> = []
  let output: HookOutput = {}
  for (const name of Object.keys(HookOutput.fields)) {
    const field = value[name]
    if (field === undefined || field === null) continue
    const decoded = decodeOutput({ [name]: field })
    if (Result.isSuccess(decoded)) output = { ...output, ...decoded.success }
    else wrong.push(name)
  }
  return [output, wrong]
}

const clipped = (text: string): string => (text.length > maxTextChars ? `${firstUnits(text, maxTextChars - 1)}…` : text)

/** Plain text gets its meaning from the exit code: 0 is a message, 1 a warning, anything else blocks. */
const plainTextOutput = (text: string, code: number): HookOutput => {
  if (code === 0) return { decision: "allow", systemMessage: text }
  if (code === 1) return { decision: "allow", systemMessage: `Warning: ${text}` }
  return { decision: "deny", reason: text }
}

/**
 * Judges a command hook's answer. A JSON object on stdout is the answer; any other text is interpreted by the exit
 * code.
 */
export const answerOf = ({ code, isCut, stderr, stdout }: HookRun): HookAnswer => {
  const text = stdout.trim() === "" ? stderr.trim() : stdout.trim()
  const value = text === "" ? undefined : objectOf(text)
  const [fields, wrong] = value === undefined ? [undefined, []] : fieldsOf(value)
  const problems: Array<string> = []
  const signal = signals[code]
  if (signal !== undefined) problems.push(`exit code ${code} (${signal})`)
  else if (text === "" && code !== 0) problems.push(`exit code ${code} without output`)
  if (isCut) problems.push("its output exceeded the limit and was cut")
  else if (value === undefined && text.startsWith("{"))
    problems.push("its output is incomplete JSON and was used as plain text")
  if (wrong.length > 0) problems.push(`these fields of its answer are invalid and were ignored: ${wrong.join(", ")}`)
  return {
    _tag: "HookAnswer",
    output: text === "" ? undefined : (fields ?? plainTextOutput(clipped(text), code)),
    succeeded: code === 0,
    problem: problems.length === 0 ? undefined : problems.join("; ")
  }
}
