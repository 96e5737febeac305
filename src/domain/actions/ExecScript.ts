/**
 * Codex's `exec` (0.14x with newer models): one tool whose input is a script that calls the other tools,
 * `const r = await tools.exec_command({ cmd: "npm test" }); text(r.output)`. Reads the calls out of the script, without running it.
 */

import type { Part } from "../content/Content.ts"
import { endOf } from "../text/MatchAt.ts"
import { answerTexts } from "./ToolResults.ts"

/** A value of a script, and where it ends. Undefined as a value: it is not written as a literal. */
interface Literal {
  readonly value: unknown
  readonly end: number
}

const blank = /(?:\s|\/\/[^\n]*|\/\*[\s\S]*?\*\/)*/y
const identifier = /[A-Za-z_$][\w$]*/y
const number = /-?\d[\d_]*(?:\.\d+)?/y
const quoted = /"(?:[^"\\\n]|\\[\s\S])*"|'(?:[^'\\\n]|\\[\s\S])*'/y
const template = /(?:String\.raw)?`(?:[^`\\]|\\[\s\S])*`/y

const escapes: Readonly<Record<string, string>> = {
  n: "\n",
  t: "\t",
  r: "\r",
  b: "\b",
  f: "\f",
  v: "\v",
  0: "\0",
  "\n": ""
}

const unescaped = (text: string): string =>
  text.replace(
    /\\(?:u\{([0-9a-f]+)\}|u([0-9a-f]{4})|x([0-9a-f]{2})|([\s\S]))/gi,
    (_, point, unit, byte, char: string) => {
      const code: string | undefined = point ?? unit ?? byte
      return code === undefined ? (escapes[char] ?? char) : String.fromCodePoint(Math.min(parseInt(code, 16), 0x10ffff))
    }
  )

const afterBlank = (text: string, at: number): number => endOf(blank, text, at) ?? at

/** Levels of objects and lists within each other that are read. */
const maxDepth = 12

/** Reads one value of a script. Names stand for the constants of `known`. */
const literalAt = (text: string, from: number, known: ReadonlyMap<string, unknown>, depth = 0): Literal | undefined => {
  const at = afterBlank(text, from)
  const first = simpleAt(text, at, known, depth)
  if (first === undefined) return undefined
  let { end, value } = first
  // `"a" + "b"`
  while (typeof value === "string") {
    const plus = afterBlank(text, end)
    const next = text[plus] === "+" ? simpleAt(text, afterBlank(text, plus + 1), known, depth) : undefined
    if (typeof next?.value !== "string") break
    value += next.value
    end = next.end
  }
  return { value, end }
}

const simpleAt = (
  text: string,
  at: number,
  known: ReadonlyMap<string, unknown>,
  depth: number
): Literal | undefined => {
  const string = endOf(quoted, text, at)
  if (string !== undefined) return { value: unescaped(text.slice(at + 1, string - 1)), end: string }
  const raw = endOf(template, text, at)
  if (raw !== undefined) {
    const open = text.indexOf("`", at)
    const body = text.slice(open + 1, raw - 1)
    const filled = (open > at ? body : unescaped(body)).replace(/\$\{([A-Za-z_$][\w$]*)\}/g, (whole, name: string) => {
      const value = known.get(name)
      return typeof value === "string" || typeof value === "number" ? String(value) : whole
    })
    return { value: filled, end: raw }
  }
  const digits = endOf(number, text, at)
  if (digits !== undefined) return { value: Number(text.slice(at, digits).replaceAll("_", "")), end: digits }
  if (depth < maxDepth && text[at] === "[") return listAt(text, at, known, depth + 1)
  if (depth < maxDepth && text[at] === "{") return objectAt(text, at, known, depth + 1)
  const name = endOf(identifier, text, at)
  if (name === undefined) return undefined
  const word = text.slice(at, name)
  return { value: word === "true" ? true : word === "false" ? false : known.get(word), end: name }
}

/** Characters of an expression that is passed over. Behind a longer one, nothing is read. */
const maxPassedChars = 1_000

/** Returns where the next item of a list or an object begins, or the bracket that closes it. Of the one before, the rest is passed over. */
const nextItem = (text: string, from: number, end: number): number => {
  let at = afterBlank(text, end)
  let open = 0
  for (let char = text.charAt(at); char !== "" && (open > 0 || !/[,\]}]/.test(char)); char = text.charAt(at)) {
    if (at - end > maxPassedChars) return text.length
    if (/[([{]/.test(char)) open += 1
    else if (/[)\]}]/.test(char)) open = Math.max(0, open - 1)
    at = afterBlank(text, endOf(quoted, text, at) ?? endOf(template, text, at) ?? at + 1)
  }
  return text[at] === "," ? afterBlank(text, at + 1) : Math.max(from + 1, at)
}

const listAt = (text: string, at: number, known: ReadonlyMap<string, unknown>, depth: number): Literal => {
  const values: Array<unknown> = []
  let next = afterBlank(text, at + 1)
  while (next < text.length && text[next] !== "]") {
    const item = literalAt(text, next, known, depth)
    values.push(item?.value)
    next = nextItem(text, next, item?.end ?? next)
  }
  return { value: values, end: next + 1 }
}

const objectAt = (text: string, at: number, known: ReadonlyMap<string, unknown>, depth: number): Literal => {
  const value: Record<string, unknown> = {}
  let next = afterBlank(text, at + 1)
  while (next < text.length && text[next] !== "}") {
    const string = endOf(quoted, text, next)
    const end = string ?? endOf(identifier, text, next) ?? next
    const key = string === undefined ? text.slice(next, end) : unescaped(text.slice(next + 1, end - 1))
    const colon = afterBlank(text, end)
    const field = text[colon] === ":" ? literalAt(text, colon + 1, known, depth) : { value: known.get(key), end }
    if (end > next && field?.value !== undefined) value[key] = field.value
    next = nextItem(text, next, field?.end ?? colon + 1)
  }
  return { value, end: next + 1 }
}

const constant = /\b(?:const|let|var)\s+([A-Za-z_$][\w$]*)\s*=(?!=)/g
const toolCall = /\btools(?:\.([A-Za-z_$][\w$]*)|\[["']([\w.-]+)["']\])\s*\(/g
/** A name that stands for each item of a list: `for (const cmd of cmds)`, `cmds.map((cmd) =>`. */
const eachOf = /\bfor\s*\(\s*(?:const|let|var)\s+([A-Za-z_$][\w$]*)\s+of\s+(?=[[A-Za-z_$])/g
const mapped = /\.(?:map|forEach)\(\s*(?:async\s*)?\(?\s*([A-Za-z_$][\w$]*)/g

/** Only this much of a script is read. */
const maxScriptChars = 60_000

/** A call that a script makes. */
export interface ScriptCall {
  readonly name: string
  readonly args: unknown
}

/** Returns the lists that a name stands for an item of. */
const itemsOf = (script: string, known: ReadonlyMap<string, unknown>): ReadonlyMap<string, ReadonlyArray<unknown>> => {
  const items = new Map<string, ReadonlyArray<unknown>>()
  const add = (name: string, list: unknown) => {
    if (Array.isArray(list)) items.set(name, list)
  }
  for (const match of script.matchAll(eachOf)) {
    add(match[1] ?? "", literalAt(script, match.index + match[0].length, known)?.value)
  }
  for (const match of script.matchAll(mapped)) {
    const before = script.slice(0, match.index).trimEnd()
    const name = /[A-Za-z_$][\w$]*$/.exec(before)?.[0]
    add(match[1] ?? "", name === undefined ? literalAt(before, before.lastIndexOf("["), known)?.value : known.get(name))
  }
  return items
}

/** Returns the calls that a script makes, in the order in which they stand in it. */
export const scriptCalls = (text: string): ReadonlyArray<ScriptCall> => {
  const script = text.slice(0, maxScriptChars)
  const known = new Map<string, unknown>()
  for (const match of script.matchAll(constant)) {
    const value = literalAt(script, match.index + match[0].length, known)?.value
    if (value !== undefined) known.set(match[1] ?? "", value)
  }
  const items = itemsOf(script, known)
  return [...script.matchAll(toolCall)].flatMap((match): ReadonlyArray<ScriptCall> => {
    const name = match[1] ?? match[2] ?? ""
    const at = match.index + match[0].length
    const read = (names: ReadonlyMap<string, unknown>): ScriptCall => ({
      name,
      args: literalAt(script, at, names)?.value
    })
    const argument = script.slice(at, literalAt(script, at, known)?.end ?? at)
    const [item, list] =
      [...items].find(([each]) => new RegExp(`\\b${each.replaceAll("$", "\\$")}\\b`).test(argument)) ?? []
    return item === undefined || list === undefined
      ? [read(known)]
      : list.map((value) => read(new Map([...known, [item, value]])))
  })
}

const header = /^Script (completed|failed|terminated|running with cell ID \S+)\nWall time:? [\d.]+ seconds?\nOutput:\n?/

/** How a script ended, and what it printed: a text for each `text(…)`. */
export interface ScriptResult {
  readonly state: "completed" | "failed" | "running"
  readonly outputs: ReadonlyArray<string>
}

/** Reads the response of `exec`; undefined for a response in any other form. */
export const scriptResult = (answer: Part | undefined): ScriptResult | undefined => {
  const [first = "", ...others] = answerTexts(answer)
  const [head, state] = header.exec(first) ?? []
  if (head === undefined || state === undefined) return undefined
  const rest = first.slice(head.length)
  return {
    state: state === "completed" ? "completed" : state.startsWith("running") ? "running" : "failed",
    outputs: rest === "" ? others : [rest, ...others]
  }
}

/** Matches the exit code in what a script printed of a command's result: the result as JSON, or Codex's own line about it. */
const exitForms = [
  /^\s*\{[\s\S]*"exit_code":\s*(-?\d+)/,
  /(?:^|\n)(?:Process exited with code|exit(?:_| )code[:=]) ?(-?\d+)\s*$/i
]

/** Returns the exit code that is all of a text: `exit 1`, `exit_code=0`, `[exit: 2]`. */
export const exitAlone = (text: string): number | undefined => {
  const code = /^\W{0,3}exit(?:[_ ]?code)?\W{1,3}(-?\d+)\W{0,3}$/i.exec(text)?.[1]
  return code === undefined ? undefined : Number(code)
}

/** Returns the exit code that a script printed of a command; undefined when it printed none. */
export const printedExit = (output: string): number | undefined => {
  for (const form of exitForms) {
    const code = form.exec(output)?.[1]
    if (code !== undefined) return Number(code)
  }
  return undefined
}

/** Returns what a command printed, where a script printed its result as JSON. */
export const printedOutput = (output: string): string => {
  if (!/^\s*\{/.test(output)) return output
  const text = /"output":\s*"((?:[^"\\]|\\.)*)"/.exec(output)?.[1]
  return text === undefined ? output : unescaped(text)
}
