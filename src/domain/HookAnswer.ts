import { Predicate, Result, Schema } from "effect"
import { parsedOrUndefined } from "./JsonText.ts"
import { firstUnits } from "./Bytes.ts"
import { HookOutput } from "./Hook.ts"

/** What a command said to an event: its output and its exit code as a hook's answer (spec 8). */

/** What a hook answered, where there is more to tell than its output. */
export interface HookAnswer {
  readonly _tag: "HookAnswer"
  readonly output: HookOutput | undefined
  /** Whether what it changed is what the next one in a row is told. */
  readonly succeeded: boolean
  /** What was wrong with it, in one line; undefined: nothing. */
  readonly problem: string | undefined
}

/** How a command ended. */
export interface HookRun {
  readonly stdout: string
  readonly stderr: string
  readonly code: number
  /** Whether it printed more than is kept. */
  readonly isCut: boolean
}

/** The most characters of what is no JSON that are told to a person or a model. */
const textLength = 8_192

/** Exit codes by which a shell says that a signal ended a program. */
const signals: Readonly<Record<number, string>> = { 134: "SIGABRT", 137: "SIGKILL", 139: "SIGSEGV", 143: "SIGTERM" }

const decodeOutput = Schema.decodeUnknownResult(HookOutput)

/** The object that a text is the JSON of, also where that was written as JSON once more. */
const objectOf = (text: string): Readonly<Record<string, unknown>> | undefined => {
  const once = parsedOrUndefined(text)
  const value = typeof once === "string" ? parsedOrUndefined(once) : once
  return Predicate.isObject(value) ? value : undefined
}

/** The fields that are as they should be, and the names of those that are not. */
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

const clipped = (text: string): string => (text.length > textLength ? `${firstUnits(text, textLength - 1)}…` : text)

/** What is no JSON says by the exit code what it means (spec 8). */
const plain = (text: string, code: number): HookOutput => {
  if (code === 0) return { decision: "allow", systemMessage: text }
  if (code === 1) return { decision: "allow", systemMessage: `Warning: ${text}` }
  return { decision: "deny", reason: text }
}

/** A command's answer: a JSON object is what it says, anything else is a text that the exit code gives a meaning. */
export const answerOf = ({ code, isCut, stderr, stdout }: HookRun): HookAnswer => {
  const text = stdout.trim() === "" ? stderr.trim() : stdout.trim()
  const value = text === "" ? undefined : objectOf(text)
  const [fields, wrong] = value === undefined ? [undefined, []] : fieldsOf(value)
  const problems: Array<string> = []
  const signal = signals[code]
  if (signal !== undefined) problems.push(`exit code ${code} (${signal})`)
  else if (text === "" && code !== 0) problems.push(`exit code ${code}, and it said nothing`)
  if (isCut) problems.push("it printed too much; the rest was dropped")
  else if (value === undefined && text.startsWith("{"))
    problems.push("what it printed is no whole JSON and was taken as a text")
  if (wrong.length > 0)
    problems.push(`of what it answered this has the wrong form and was left out: ${wrong.join(", ")}`)
  return {
    _tag: "HookAnswer",
    output: text === "" ? undefined : (fields ?? plain(clipped(text), code)),
    succeeded: code === 0,
    problem: problems.length === 0 ? undefined : problems.join("; ")
  }
}
