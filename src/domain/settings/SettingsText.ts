import { Predicate, Result, Schema } from "effect"
import { faultIn, type JsonFault } from "../text/JsonFault.ts"
import { isDeeper, parseJson } from "../text/JsonText.ts"
import { expandVariables, variableNamesIn } from "./Expansion.ts"
import { SettingsFile } from "./Settings.ts"
import {
  dotted,
  keepsVariables,
  firstMismatch,
  type SettingsPath,
  type UnknownKey,
  unknownKeys,
  valueAt
} from "./SettingsKey.ts"

/**
 * Reads settings files, which are JSON with comments and trailing commas, and edits single values in place.
 *
 * The editor is our own. `jsonc-parser` 3.3 was tried: its `modify` moves a comment to the wrong value, deletes
 * comments next to a removed value, reformats neighbouring lines, changes the first of two equal
 * keys (the last one counts), fails where a scalar is in the way, and its parser drops `__proto__` keys.
 */

/** Why a settings file cannot be used. */
export type SettingsProblem =
  /** `fault` is undefined when the error has no place. */
  | { readonly _tag: "NoJson"; readonly fault: JsonFault | undefined }
  | { readonly _tag: "TooDeep" }
  | { readonly _tag: "NoObject" }
  /** `key` is dotted. */
  | { readonly _tag: "Mismatch"; readonly key: string; readonly expected: string }
  /** The key cannot be changed in the text without harm to the rest. */
  | { readonly _tag: "NotEditable"; readonly key: string }

/** The dotted key of a problem; undefined when it affects the whole file. */
export const settingsProblemKey = (problem: SettingsProblem): string | undefined =>
  "key" in problem ? problem.key : undefined

/** A problem in words, without its key: what was expected. */
export const settingsProblemText = (problem: SettingsProblem): string => {
  switch (problem._tag) {
    case "NoJson": {
      const { fault } = problem
      return `expected JSON${fault === undefined ? "" : `; line ${fault.line}, column ${fault.column} should have ${fault.expected}`}`
    }
    case "TooDeep":
      return `expected an object of settings, not one that is nested deeper than ${deepest} levels`
    case "NoObject":
      return "expected an object of settings"
    case "Mismatch":
      return `expected ${problem.expected}`
    case "NotEditable":
      return "cannot be changed without harm to the rest of the file; change it there yourself"
  }
}

/** A parsed settings file. */
export interface ParsedSettings {
  /** With environment variables expanded. */
  readonly settings: SettingsFile
  /** As written in the file. */
  readonly written: Readonly<Record<string, unknown>>
  /** Unknown keys. */
  readonly unknown: ReadonlyArray<UnknownKey>
  /** Variables that are not set, with the keys that use them. */
  readonly missing: ReadonlyArray<{ readonly key: string; readonly name: string }>
}

/** The settings of an empty file. */
export const emptySettings: ParsedSettings = { settings: {}, written: {}, unknown: [], missing: [] }

const wrong = (problem: SettingsProblem): Result.Result<never, SettingsProblem> => Result.fail(problem)

const blank = (text: string): string => text.replace(/[^\n]/g, " ")

// Unterminated strings and comments match to the end of the text, so that no part is scanned twice.

const withoutComments = (text: string): string =>
  text
    .replace(/^\uFEFF/, " ")
    .replace(/"(?:[^"\\]|\\[^]?)*(?:"|$)|\/\/[^\n]*|\/\*[^]*?(?:\*\/|$)/g, (match) =>
      match.startsWith('"') ? match : blank(match)
    )

/**
 * Removes comments and trailing commas from JSON. They become spaces, so that offsets stay the same. Strings are
 * untouched.
 */
export const strictJson = (text: string): string =>
  withoutComments(text).replace(/"(?:[^"\\]|\\[^]?)*(?:"|$)|,(?=\s*[}\]])/g, (match) => (match === "," ? " " : match))

/** Deepest nesting accepted; no settings are deeper, and unbounded nesting would exhaust the stack. */
const deepest = 64

/** Parses the text of a settings file as an object, without checking its fields. */
export const jsonOf = (text: string): Result.Result<Readonly<Record<string, unknown>>, SettingsProblem> => {
  const strict = strictJson(text)
  if (isDeeper(strict, deepest)) return wrong({ _tag: "TooDeep" })
  const json = parseJson(strict)
  if (Result.isFailure(json)) return wrong({ _tag: "NoJson", fault: faultIn(strict) })
  return Predicate.isObject(json.success) ? Result.succeed(json.success) : wrong({ _tag: "NoObject" })
}

/** Maps all strings, except those that keep variables. */
const mapStrings = (value: unknown, path: SettingsPath, map: (text: string, path: SettingsPath) => string): unknown => {
  if (typeof value === "string") return map(value, path)
  if (keepsVariables(path)) return value
  if (Array.isArray(value)) return value.map((one) => mapStrings(one, path, map))
  if (!Predicate.isObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, mapStrings(one, [...path, name], map)]))
}

/** The environment variables that settings use. */
export const environmentNames = (json: Readonly<Record<string, unknown>>): ReadonlyArray<string> => {
  const names = new Set<string>()
  mapStrings(json, [], (text, path) => {
    if (!keepsVariables(path)) for (const name of variableNamesIn(text)) names.add(name)
    return text
  })
  return [...names]
}

const decode = Schema.decodeUnknownResult(SettingsFile)

/** Decodes settings from JSON. An invalid value is a problem that names its key. */
export const settingsOf = (
  written: Readonly<Record<string, unknown>>,
  environment: Readonly<Record<string, string | undefined>>
): Result.Result<ParsedSettings, SettingsProblem> => {
  const missing: Array<{ readonly key: string; readonly name: string }> = []
  const filled = mapStrings(written, [], (value, path) => {
    if (keepsVariables(path)) return value
    const { missing: names, text } = expandVariables(value, environment)
    missing.push(...names.map((name) => ({ key: dotted(path), name })))
    return text
  })
  const mismatch = firstMismatch(filled)
  if (mismatch !== undefined) {
    const { expected, path } = mismatch
    return wrong(path.length === 0 ? { _tag: "NoObject" } : { _tag: "Mismatch", key: dotted(path), expected })
  }
  const settings = decode(filled)
  if (Result.isFailure(settings)) return wrong({ _tag: "NoObject" })
  return Result.succeed({ settings: settings.success, written, unknown: unknownKeys(written), missing })
}

/** Parses a settings file with these environment variables. */
export const parseSettings = (
  text: string,
  environment: Readonly<Record<string, string | undefined>> = {}
): Result.Result<ParsedSettings, SettingsProblem> =>
  Result.flatMap(jsonOf(text), (json) => settingsOf(json, environment))

/** A value in the text with its offsets. */
interface Placed {
  readonly from: number
  readonly to: number
  readonly members: ReadonlyArray<Member>
  /** For lists: the number of items, and the end of the last one. */
  readonly items: number
  readonly last: number
  readonly kind: "object" | "list" | "other"
}

interface Member {
  readonly key: string
  readonly from: number
  readonly value: Placed
}

/** Finds the offsets of all values in valid JSON. */
const placesIn = (json: string): Placed => {
  const tokens = [...json.matchAll(/"(?:[^"\\]|\\[^]?)*(?:"|$)|[[\]{}:,]|[^\s[\]{}:,"]+/g)]
  let next = 0
  const value = (): Placed => {
    const token = tokens[next]
    const text = token?.[0] ?? ""
    const from = token?.index ?? json.length
    next += 1
    let last = from + text.length
    const members: Array<Member> = []
    let items = 0
    if (text === "{" || text === "[") {
      const close = text === "{" ? "}" : "]"
      while (next < tokens.length && tokens[next]?.[0] !== close) {
        const key = tokens[next]
        if (key?.[0] === ",") next += 1
        else if (text === "{") {
          next += 2
          const one = value()
          // Own JSON: the text was parsed before, so this cannot fail.
          members.push({ key: String(JSON.parse(key?.[0] ?? '""')), from: key?.index ?? from, value: one })
          last = one.to
        } else {
          last = value().to
          items += 1
        }
      }
      const end = tokens[next]
      next += 1
      const to = (end?.index ?? json.length) + 1
      return { from, to, members, items, last, kind: text === "{" ? "object" : "list" }
    }
    return { from, to: last, members, items, last, kind: "other" }
  }
  return value()
}

const plainList: (value: unknown) => value is ReadonlyArray<unknown> = Array.isArray

/** JSON on one line, with spaces. */
const inline = (value: unknown): string =>
  plainList(value)
    ? `[${value.map(inline).join(", ")}]`
    : Predicate.isObject(value)
      ? `{${Object.entries(value)
          .map(([name, one]) => `${JSON.stringify(name)}: ${inline(one)}`)
          .join(", ")}}`
      : (JSON.stringify(value) ?? "null")

/** Longest value written on one line, in characters. */
const lineWidth = 80

const written = (value: unknown, indent: string): string => {
  const line = inline(value)
  return line.length <= lineWidth ? line : JSON.stringify(value, undefined, 2).replaceAll("\n", `\n${indent}`)
}

/** The white space before an offset when nothing else precedes it on the line; else undefined. */
const indentAt = (text: string, place: number): string | undefined => {
  const before = text.slice(text.lastIndexOf("\n", place - 1) + 1, place)
  return /^[^\S\n]*$/.test(before) ? before : undefined
}

/** Appends a member to an object. Comments stay with the values they follow. */
const withMember = (text: string, object: Placed, member: (indent: string) => string): string => {
  const close = object.to - 1
  const bare = withoutComments(text)
  const last = object.members.at(-1)
  const isOuter = object.from === bare.search(/\S/)
  const isOneLine = !bare.slice(object.from, close).includes("\n")
  if (isOneLine && !isOuter && last !== undefined) {
    return `${text.slice(0, last.value.to)}, ${member(indentAt(text, last.from) ?? "")}${text.slice(last.value.to)}`
  }
  const outer = /^[^\S\n]*/.exec(text.slice(text.lastIndexOf("\n", object.from) + 1))?.[0] ?? ""
  const indent = (last === undefined ? undefined : indentAt(text, last.from)) ?? `${outer}  `
  const comma = last === undefined ? -1 : bare.slice(last.value.to, close).indexOf(",")
  const anchor = last === undefined ? object.from + 1 : comma < 0 ? last.value.to : last.value.to + comma + 1
  const head = `${text.slice(0, last === undefined ? anchor : last.value.to)}${last === undefined ? "" : ","}`
  const rest = text.slice(anchor, close)
  // To the end of the line, so that a comment stays with the value it follows. A block comment over several lines is
  // skipped whole.
  const line = /^(?:\/\/[^\n]*|\/\*[^]*?\*\/|[^\n/])*?(?=\r?\n|$)/.exec(rest)?.[0] ?? ""
  const kept = line.length < rest.length ? line : rest.trimEnd()
  const after = rest.slice(kept.length)
  const newline = text.includes("\r\n") ? "\r\n" : "\n"
  return `${head}${kept}${newline}${indent}${member(indent)}${after.includes("\n") ? after : `${newline}${outer}`}${text.slice(close)}`
}

/** Removes a member and its comma, and the line when it becomes blank. */
const withoutMember = (text: string, object: Placed, index: number): string => {
  const bare = withoutComments(text)
  const member = object.members[index]
  const before = object.members[index - 1]
  if (member === undefined) return text
  const behind = /^\s*,/.exec(bare.slice(member.value.to, object.to - 1))?.[0]
  let from = member.from
  let to = member.value.to + (behind?.length ?? 0)
  const start = text.lastIndexOf("\n", from - 1) + 1
  const end = text.indexOf("\n", to)
  const isAlone = text.slice(start, from).trim() === "" && end >= 0 && text.slice(to, end).trim() === ""
  if (isAlone) {
    from = start
    to = end + 1
  } else if (behind !== undefined) to += /^[^\S\n]*/.exec(text.slice(to))?.[0].length ?? 0
  else from -= /[^\S\n]*$/.exec(text.slice(0, from))?.[0].length ?? 0
  const shorter = `${text.slice(0, from)}${text.slice(to)}`
  if (behind !== undefined || before === undefined) return shorter
  const comma = bare.indexOf(",", before.value.to)
  return comma < 0 || comma > from ? shorter : `${shorter.slice(0, comma)}${shorter.slice(comma + 1)}`
}

/** The values along a path, as far as they exist. */
const way = (text: string, path: SettingsPath) => {
  let node = placesIn(strictJson(text))
  const nodes = [node]
  for (const name of path) {
    const memberValue = node.members.findLast((member) => member.key === name)?.value
    if (memberValue === undefined) break
    node = memberValue
    nodes.push(node)
  }
  return nodes
}

const orEmptyObject = (text: string): string => (text.trim() === "" ? "{}\n" : text)

const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other)

/** The edited text, checked as a whole: it must parse, and the path must have the expected value. */
const checkedEdit = (
  next: string,
  path: SettingsPath,
  isThere: (value: unknown) => boolean,
  parse = (text: string) => Result.map(parseSettings(text), ({ written }) => written)
): Result.Result<string, SettingsProblem> => {
  const again = parse(next)
  if (Result.isFailure(again)) return Result.fail(again.failure)
  return isThere(valueAt(again.success, path))
    ? Result.succeed(next)
    : wrong({ _tag: "NotEditable", key: dotted(path) })
}

/**
 * Sets a value in the text of a settings file. Comments, order and white space are preserved. Fails without a change
 * when the result would be invalid.
 */
export const withSetting = (text: string, path: SettingsPath, value: unknown): Result.Result<string, SettingsProblem> =>
  Result.flatMap(withValue(text, path, value), (next) => checkedEdit(next, path, (there) => isSame(there, value)))

/** Like `withSetting`, for the settings of another program: JSON with comments, whose other values can be anything. */
export const withValue = (text: string, path: SettingsPath, value: unknown): Result.Result<string, SettingsProblem> => {
  const before = orEmptyObject(text)
  const read = jsonOf(before)
  if (Result.isFailure(read)) return Result.fail(read.failure)
  if (isSame(valueAt(read.success, path), value)) return Result.succeed(before)
  const nodes = way(before, path)
  const deepestNode = nodes.at(-1)
  const rest = path.slice(nodes.length - 1)
  if (deepestNode === undefined) return wrong({ _tag: "NotEditable", key: dotted(path) })
  const isMember = rest.length > 0 && deepestNode.kind === "object"
  // A value that is not an object, such as `false`, is replaced by one.
  const [name = "", ...below] = isMember ? rest : ["", ...rest]
  const whole = below.toReversed().reduce<unknown>((inner, key) => ({ [key]: inner }), value)
  const next = isMember
    ? withMember(before, deepestNode, (indent) => `${JSON.stringify(name)}: ${written(whole, indent)}`)
    : `${before.slice(0, deepestNode.from)}${written(whole, /^[^\S\n]*/.exec(before.slice(before.lastIndexOf("\n", deepestNode.from) + 1))?.[0] ?? "")}${before.slice(deepestNode.to)}`
  return checkedEdit(next, path, (there) => isSame(there, value), jsonOf)
}

/** Removes a value from the text of a settings file. Returns the same text when it was not set. */
export const withoutSetting = (text: string, path: SettingsPath): Result.Result<string, SettingsProblem> =>
  Result.flatMap(withoutValue(text, path), (next) =>
    next === text ? Result.succeed(text) : checkedEdit(next, path, (there) => there === undefined)
  )

/** Like `withoutSetting`, for the settings of another program. */
const withoutValue = (text: string, path: SettingsPath): Result.Result<string, SettingsProblem> => {
  const read = jsonOf(orEmptyObject(text))
  if (Result.isFailure(read)) return Result.fail(read.failure)
  let next = orEmptyObject(text)
  const name = path.at(-1)
  // Removes duplicates of the key too.
  for (;;) {
    const nodes = way(next, path)
    const object = nodes.at(-2)
    if (object === undefined || nodes.length <= path.length) break
    next = withoutMember(
      next,
      object,
      object.members.findLastIndex((member) => member.key === name)
    )
  }
  if (next === orEmptyObject(text)) return Result.succeed(text)
  return checkedEdit(next, path, (there) => there === undefined, jsonOf)
}

/** Like `withoutValue`; objects around the value that are empty without it go too, unless the text has comments. */
export const withoutBranch = (text: string, path: SettingsPath): Result.Result<string, SettingsProblem> =>
  Result.flatMap(withoutValue(text, path), (next) => {
    const around = path.slice(0, -1)
    if (next === text || around.length === 0 || withoutComments(next) !== next) return Result.succeed(next)
    return Result.flatMap(jsonOf(next), (json) =>
      isSame(valueAt(json, around), {}) ? withoutBranch(next, around) : Result.succeed(next)
    )
  })

/** Adds grants to `allowed` in the text of a settings file. Everything else is preserved. */
export const withAllowed = (text: string, grants: ReadonlyArray<string>): Result.Result<string, SettingsProblem> => {
  const before = orEmptyObject(text)
  const read = parseSettings(before)
  if (Result.isFailure(read)) return Result.fail(read.failure)
  const allowedBefore = read.success.settings.allowed ?? []
  const added = [...new Set(grants)].filter((grant) => !allowedBefore.includes(grant))
  if (added.length === 0) return Result.succeed(before)
  const all = [...allowedBefore, ...added]
  const list = way(before, ["allowed"])[1]
  if (list?.kind !== "list") return withSetting(before, ["allowed"], all)
  const at = list.items === 0 ? list.from + 1 : list.last
  const next = `${before.slice(0, at)}${list.items === 0 ? "" : ", "}${added.map((grant) => JSON.stringify(grant)).join(", ")}${before.slice(at)}`
  return checkedEdit(next, ["allowed"], (there) => isSame(there, all))
}
