import { Result, Schema } from "effect"

/**
 * Reading JSON. Everything that reads JSON from outside reads it here, because values that are nested deeper than the stack
 * break whatever walks through them afterwards.
 */

/** Levels of nesting that are read. Real values have dozens, and all that walks through them manages some thousands. */
export const maxDepth = 1_000
/** A log of our own wraps what was read in some levels of its own. */
export const maxLogDepth = 1_100

const digits = (count: number): string => count.toLocaleString("en-US")

const tooDeep = (most: number, place: string): string => `nested deeper than ${digits(most)} levels${place}`

/** Past the string that opens at `at`. */
const stringEnd = (json: string, at: number): number => {
  for (let quote = json.indexOf('"', at + 1); quote >= 0; quote = json.indexOf('"', quote + 1)) {
    let slashes = 0
    while (json.charCodeAt(quote - 1 - slashes) === 92) slashes += 1
    if (slashes % 2 === 0) return quote
  }
  return json.length
}

/** The index of the bracket that opens a level too many; undefined: there is none. The text need not be JSON. */
const firstBeyond = (json: string, most: number): number | undefined => {
  // Each level takes a character.
  if (json.length <= most) return undefined
  let depth = 0
  for (let at = 0; at < json.length; at += 1) {
    const code = json.charCodeAt(at)
    if (code === 34) at = stringEnd(json, at)
    else if (code === 91 || code === 123) {
      depth += 1
      if (depth > most) return at
    } else if (code === 93 || code === 125) depth -= 1
  }
  return undefined
}

/** Whether a text is nested deeper than so many levels. The text need not be JSON. */
export const isDeeper = (json: string, most: number): boolean => firstBeyond(json, most) !== undefined

const isNested = (value: unknown): value is object => typeof value === "object" && value !== null

/** Whether a value that was parsed elsewhere is nested deeper than `maxDepth`. */
export const isTooDeep = (value: unknown): boolean => {
  let level = [value].filter(isNested)
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth === maxDepth) return true
    level = level.flatMap((one) => Object.values(one).filter(isNested))
  }
  return false
}

/** Why a text is not read as JSON. */
export interface JsonProblem {
  readonly _tag: "NotJson" | "TooDeep"
  /** In words, to stand behind the name of what was read. Of `NotJson` it quotes the text. */
  readonly message: string
}

/** Parses a text as JSON, at most so many levels deep. */
export const parseJson = (text: string, most = maxDepth): Result.Result<unknown, JsonProblem> => {
  const beyond = firstBeyond(text, most)
  if (beyond !== undefined) {
    const before = text.slice(0, beyond)
    const line = before.split("\n").length
    const column = beyond - before.lastIndexOf("\n")
    const place = ` (${line > 1 ? `line ${digits(line)}, ` : ""}column ${digits(column)})`
    return Result.fail({ _tag: "TooDeep", message: tooDeep(most, place) })
  }
  return Result.try({
    try: (): unknown => JSON.parse(text),
    catch: (error) => ({ _tag: "NotJson", message: error instanceof Error ? error.message : String(error) })
  })
}

/** Parses a text as JSON; undefined: it is none, or too deep. */
export const parsedOrUndefined = (text: string): unknown => Result.getOrUndefined(parseJson(text))

const Shallow = Schema.String.check(
  Schema.makeFilter((json) => (isDeeper(json, maxDepth) ? tooDeep(maxDepth, "") : undefined))
)

/** `Schema.fromJsonString`, for texts that come from outside: what is nested too deep is not decoded. */
export const fromJson = <S extends Schema.Top>(schema: S) =>
  Shallow.pipe(Schema.decodeTo(Schema.fromJsonString(schema)))
