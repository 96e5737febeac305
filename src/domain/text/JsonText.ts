/**
 * Reads JSON. All JSON from outside is read here, because values nested deeper than the stack break the code that walks through
 * them afterwards.
 */

import { Result, Schema } from "effect"
import { errorText } from "./ErrorText.ts"
import { stringEnd } from "./JsonSource.ts"

/**
 * Maximum nesting depth of JSON from outside. Real values have dozens of levels, and all code that walks through them manages some
 * thousands.
 */
export const maxDepth = 1_000
/** Maximum nesting depth of our own log, which wraps such values in some levels of its own. */
export const maxLogDepth = 1_100

const digits = (count: number): string => count.toLocaleString("en-US")

const tooDeep = (levels: number, place: string): string => `nested deeper than ${digits(levels)} levels${place}`

/** Returns the index of the bracket that opens one level too many; undefined when there is none. The text need not be JSON. */
const firstBeyond = (json: string, levels: number): number | undefined => {
  // Each level takes a character.
  if (json.length <= levels) return undefined
  let depth = 0
  for (let at = 0; at < json.length; at += 1) {
    const code = json.charCodeAt(at)
    if (code === 34) {
      const end = stringEnd(json, at)
      if (end < 0) return undefined
      at = end - 1
    } else if (code === 91 || code === 123) {
      depth += 1
      if (depth > levels) return at
    } else if (code === 93 || code === 125) depth -= 1
  }
  return undefined
}

/** Returns whether a text is nested deeper than this many levels. The text need not be JSON. */
export const isDeeper = (json: string, levels: number): boolean => firstBeyond(json, levels) !== undefined

const isNested = (value: unknown): value is object => typeof value === "object" && value !== null

/** Returns whether a value that was parsed elsewhere is nested deeper than this many levels. */
export const isTooDeep = (value: unknown, levels = maxDepth): boolean => {
  let level = [value].filter(isNested)
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth === levels) return true
    level = level.flatMap((one) => Object.values(one).filter(isNested))
  }
  return false
}

/** The reason why a text could not be parsed as JSON. */
export interface JsonProblem {
  readonly _tag: "NotJson" | "TooDeep"
  /** An explanation that follows the name of the source in a message. `NotJson` quotes the text. */
  readonly message: string
}

/** Parses a text as JSON with a maximum nesting depth. */
export const parseJson = (text: string, levels = maxDepth): Result.Result<unknown, JsonProblem> => {
  const beyond = firstBeyond(text, levels)
  if (beyond !== undefined) {
    const before = text.slice(0, beyond)
    const line = before.split("\n").length
    const column = beyond - before.lastIndexOf("\n")
    const place = ` (${line > 1 ? `line ${digits(line)}, ` : ""}column ${digits(column)})`
    return Result.fail({ _tag: "TooDeep", message: tooDeep(levels, place) })
  }
  return Result.try({
    try: (): unknown => JSON.parse(text),
    catch: (error) => ({ _tag: "NotJson", message: errorText(error) })
  })
}

/**
 * Parses a text as JSON. Returns undefined when it is not JSON or nested deeper. A level of JSON takes two characters, so that short texts
 * need no search for their depth.
 */
export const parsedWithin = (text: string, levels: number): unknown => {
  if (text.length > 2 * levels && isDeeper(text, levels)) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Parses a text as JSON. Returns undefined when it is not JSON or nested too deeply. */
export const parsedOrUndefined = (text: string): unknown => Result.getOrUndefined(parseJson(text))

const Shallow = Schema.String.check(
  Schema.makeFilter((json) => (isDeeper(json, maxDepth) ? tooDeep(maxDepth, "") : undefined))
)

/** Like `Schema.fromJsonString`, for text from outside: text that is nested too deeply is not decoded. */
export const fromJson = <S extends Schema.Top>(schema: S) =>
  Shallow.pipe(Schema.decodeTo(Schema.fromJsonString(schema)))

/** A pair of backslashes, or half of a surrogate pair: `JSON.stringify` writes only halves as escapes. */
const halfOrSlashes = /\\(?:\\|u[dD][89a-fA-F][0-9a-fA-F]{2})/g

/** Replaces the halves of surrogate pairs in JSON that `JSON.stringify` wrote. Providers refuse a request that has one. */
export const wellFormedJson = (json: string): string =>
  json.includes("\\ud") ? json.replace(halfOrSlashes, (found) => (found === "\\\\" ? found : "\uFFFD")) : json

/**
 * The text from the first brace of an answer to the last: without the fence or the words that models put round an object.
 * Empty: there is none.
 */
export const jsonIn = (answer: string): string => {
  const from = answer.indexOf("{")
  return from < 0 ? "" : answer.slice(from, answer.lastIndexOf("}") + 1)
}
