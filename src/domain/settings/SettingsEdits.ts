/**
 * Edits single values in the text of settings files in place, and leaves everything else as it is.
 *
 * The editor is our own. `jsonc-parser` 3.3 was tried: its `modify` moves a comment to the wrong value, deletes
 * comments next to a removed value, reformats neighbouring lines, changes the first of two equal
 * keys (the last one counts), fails where a scalar is in the way, and its parser drops `__proto__` keys.
 */

import { Predicate, Result } from "effect"
import { afterSpace, containerSpans, type ElementSpan, plainKey, type Span, valueEnd } from "../text/JsonSource.ts"
import { dotted, type SettingsPath, valueAt, isList } from "./SettingsKey.ts"
import { jsonOf, parseSettings, type SettingsProblem, strictJson, withoutComments, wrong } from "./SettingsText.ts"

/** A value in the text with its offsets. */
interface Placed extends Span {
  /** The members of an object, or the items of a list. */
  readonly members: ReadonlyArray<ElementSpan>
  readonly kind: "object" | "list" | "other"
}

const placedAt = (json: string, start: number): Placed => {
  const kind = json[start] === "{" ? "object" : json[start] === "[" ? "list" : "other"
  const { elements, end } = containerSpans(json, start) ?? { elements: [], end: valueEnd(json, start) }
  return { start, end, members: elements, kind }
}

/** The place among the members of a value that a name means: the last member of that name, or the item with that index. */
const indexOf = ({ kind, members }: Placed, name: string): number =>
  kind === "list" ? Number(name) : members.findLastIndex(({ key }) => plainKey(key) === name)

/** JSON on one line, with spaces. */
const inline = (value: unknown): string =>
  isList(value)
    ? `[${value.map(inline).join(", ")}]`
    : Predicate.isObject(value)
      ? `{${Object.entries(value)
          .map(([name, one]) => `${JSON.stringify(name)}: ${inline(one)}`)
          .join(", ")}}`
      : (JSON.stringify(value) ?? "null")

/** Longest value written on one line, in characters. */
const lineWidth = 80

/** A value as JSON: on one line, or over several with this indent where it is long. */
const written = (value: unknown, indent: string | undefined): string => {
  const line = inline(value)
  return indent === undefined || line.length <= lineWidth
    ? line
    : JSON.stringify(value, undefined, 2).replaceAll("\n", `\n${indent}`)
}

/** The white space before an offset when nothing else precedes it on the line; else undefined. */
const indentAt = (text: string, place: number): string | undefined => {
  const before = text.slice(text.lastIndexOf("\n", place - 1) + 1, place)
  return /^[^\S\n]*$/.test(before) ? before : undefined
}

/** The white space at the beginning of the line of an offset. */
const lineIndent = (text: string, place: number): string =>
  /^[^\S\n]*/.exec(text.slice(text.lastIndexOf("\n", place - 1) + 1).replace(/^\uFEFF/, ""))?.[0] ?? ""

/** The line break of a text. */
export const newlineOf = (text: string): string => (text.includes("\r\n") ? "\r\n" : "\n")

/** Appends a member to an object, or an item to a list. Comments stay with the values they follow. */
const withMember = (text: string, object: Placed, memberText: (indent: string | undefined) => string): string => {
  const newline = newlineOf(text)
  const member = (indent?: string) => memberText(indent).replaceAll("\n", newline)
  const close = object.end - 1
  const bare = withoutComments(text)
  const last = object.members.at(-1)
  const isOuter = object.start === bare.search(/\S/)
  const isOneLine = !bare.slice(object.start, close).includes("\n")
  const outer = lineIndent(text, object.start)
  if (isOneLine && !isOuter && last !== undefined) {
    return `${text.slice(0, last.end)}, ${member()}${text.slice(last.end)}`
  }
  const indent = (last === undefined ? undefined : indentAt(text, last.from)) ?? `${outer}  `
  const comma = last === undefined ? -1 : bare.slice(last.end, close).indexOf(",")
  const anchor = last === undefined ? object.start + 1 : comma < 0 ? last.end : last.end + comma + 1
  const head = `${text.slice(0, last === undefined ? anchor : last.end)}${last === undefined ? "" : ","}`
  const rest = text.slice(anchor, close)
  // To the end of the line, so that a comment stays with the value it follows. A block comment over several lines is
  // skipped whole.
  const line = /^(?:\/\/[^\n]*|\/\*[^]*?\*\/|[^\n/])*?(?=\r?\n|$)/.exec(rest)?.[0] ?? ""
  const kept = line.length < rest.length ? line : rest.trimEnd()
  const after = rest.slice(kept.length)
  return `${head}${kept}${newline}${indent}${member(indent)}${after.includes("\n") ? after : `${newline}${outer}`}${text.slice(close)}`
}

/** Removes a member or an item and its comma, and the line when it becomes blank. */
const withoutMember = (text: string, object: Placed, index: number): string => {
  const bare = withoutComments(text)
  const member = object.members[index]
  const before = object.members[index - 1]
  if (member === undefined) return text
  const commaAfter = /^\s*,/.exec(bare.slice(member.end, object.end - 1))?.[0]
  let from = member.from
  let to = member.end + (commaAfter?.length ?? 0)
  const start = text.lastIndexOf("\n", from - 1) + 1
  const end = text.indexOf("\n", to)
  const isAlone = text.slice(start, from).trim() === "" && end >= 0 && text.slice(to, end).trim() === ""
  if (isAlone) {
    from = start
    to = end + 1
  } else if (commaAfter !== undefined) to += /^[^\S\n]*/.exec(text.slice(to))?.[0].length ?? 0
  else from -= /[^\S\n]*$/.exec(text.slice(0, from))?.[0].length ?? 0
  const shorter = `${text.slice(0, from)}${text.slice(to)}`
  if (commaAfter !== undefined || before === undefined) return shorter
  const comma = bare.indexOf(",", before.end)
  return comma < 0 || comma > from ? shorter : `${shorter.slice(0, comma)}${shorter.slice(comma + 1)}`
}

/** The values along a path, as far as they exist. */
const way = (text: string, path: SettingsPath) => {
  const json = strictJson(text)
  let node = placedAt(json, afterSpace(json, 0))
  const nodes = [node]
  for (const name of path) {
    const member = node.members[indexOf(node, name)]
    if (member === undefined) break
    node = placedAt(json, member.start)
    nodes.push(node)
  }
  return nodes
}

/** A blank text as an empty object. A byte order mark stays. */
const orEmptyObject = (text: string): string =>
  text.trim() === "" ? `${text.startsWith("\uFEFF") ? "\uFEFF" : ""}{}\n` : text

const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other)

const notEditable = (path: SettingsPath) =>
  wrong("cannot be changed without harm to the rest of the file; change it there yourself", dotted(path))

/** The edited text, checked as a whole: it must parse, and the path must have the expected value. */
const checkedEdit = (
  next: string,
  path: SettingsPath,
  isThere: (value: unknown) => boolean,
  parse = (text: string) => Result.map(parseSettings(text), ({ written }) => written)
): Result.Result<string, SettingsProblem> => {
  const again = parse(next)
  if (Result.isFailure(again)) return Result.fail(again.failure)
  return isThere(valueAt(again.success, path)) ? Result.succeed(next) : notEditable(path)
}

/** Replaces a value. */
const withReplaced = (text: string, node: Placed, value: unknown): string =>
  `${text.slice(0, node.start)}${written(value, lineIndent(text, node.start)).replaceAll("\n", newlineOf(text))}${text.slice(node.end)}`

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
  if (deepestNode === undefined) return notEditable(path)
  const isMember = rest.length > 0 && deepestNode.kind === "object"
  // A value that is not an object, such as `false`, is replaced by one.
  const [name = "", ...below] = isMember ? rest : ["", ...rest]
  const whole = below.toReversed().reduce<unknown>((inner, key) => ({ [key]: inner }), value)
  const next = isMember
    ? withMember(before, deepestNode, (indent) => `${JSON.stringify(name)}: ${written(whole, indent)}`)
    : withReplaced(before, deepestNode, whole)
  return checkedEdit(next, path, (there) => isSame(there, value), jsonOf)
}

/** Removes a value from the text of a settings file. Returns the same text when it was not set. */
export const withoutSetting = (text: string, path: SettingsPath): Result.Result<string, SettingsProblem> => {
  const before = orEmptyObject(text)
  const read = jsonOf(before)
  if (Result.isFailure(read)) return Result.fail(read.failure)
  let next = before
  const name = path.at(-1) ?? ""
  // Removes duplicates of the key too.
  for (;;) {
    const nodes = way(next, path)
    const object = nodes.at(-2)
    if (object === undefined || nodes.length <= path.length) break
    next = withoutMember(next, object, indexOf(object, name))
  }
  return next === before ? Result.succeed(text) : checkedEdit(next, path, (there) => there === undefined)
}

/**
 * Appends an item to a list in the settings of another program. The list is created if it does not exist. Everything else stays,
 * byte by byte.
 */
export const withItem = (text: string, path: SettingsPath, item: unknown): Result.Result<string, SettingsProblem> => {
  const before = orEmptyObject(text)
  const read = jsonOf(before)
  if (Result.isFailure(read)) return Result.fail(read.failure)
  const nodes = way(before, path)
  const list = nodes[path.length]
  if (list === undefined) return withValue(before, path, [item])
  if (list.kind !== "list") return notEditable(path)
  const next = withMember(before, list, (indent) => written(item, indent))
  return Result.map(jsonOf(next), () => next)
}

/** Replaces an existing value in the settings of another program. A path leads into lists by index. */
export const withExisting = (
  text: string,
  path: SettingsPath,
  value: unknown
): Result.Result<string, SettingsProblem> => {
  const node = way(text, path)[path.length]
  if (node === undefined) return notEditable(path)
  const next = withReplaced(text, node, value)
  return Result.map(jsonOf(next), () => next)
}

/**
 * Removes an existing value from the settings of another program. A path leads into lists by index. Of the objects and lists around
 * it, those that `removable` names (dotted) go too when nothing is left between their brackets.
 */
export const withoutEntry = (
  text: string,
  path: SettingsPath,
  removable: ReadonlyArray<string> = []
): Result.Result<string, SettingsProblem> => {
  const nodes = way(text, path)
  const around = path.slice(0, -1)
  const container = nodes[path.length - 1]
  const index = container === undefined ? -1 : indexOf(container, path.at(-1) ?? "")
  if (container?.members[index] === undefined) return notEditable(path)
  const next = withoutMember(text, container, index)
  const read = jsonOf(next)
  if (Result.isFailure(read)) return Result.fail(read.failure)
  const rest = way(next, around)[around.length]
  const isBlank = rest !== undefined && next.slice(rest.start + 1, rest.end - 1).trim() === ""
  return isBlank && removable.includes(dotted(around)) ? withoutEntry(next, around, removable) : Result.succeed(next)
}

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
  const at = list.members.at(-1)?.end ?? list.start + 1
  const next = `${before.slice(0, at)}${list.members.length === 0 ? "" : ", "}${added.map((grant) => JSON.stringify(grant)).join(", ")}${before.slice(at)}`
  return checkedEdit(next, ["allowed"], (there) => isSame(there, all))
}

/** Removes grants from `allowed` in the text of a settings file. */
export const withoutAllowed = (text: string, grants: ReadonlyArray<string>): Result.Result<string, SettingsProblem> => {
  const read = parseSettings(orEmptyObject(text))
  if (Result.isFailure(read)) return Result.fail(read.failure)
  const before = read.success.settings.allowed ?? []
  const rest = before.filter((grant) => !grants.includes(grant))
  return rest.length === before.length ? Result.succeed(text) : withSetting(text, ["allowed"], rest)
}
