import { Predicate } from "effect"
import { redact } from "./Redaction.ts"
import { type SettingsPath } from "./SettingsKey.ts"

/** What stands where a part of a text is not shown. */
export const hiddenPart = "•••"

/** What stands where a value is not shown: its length tells whether there is one, and whether it is whole. */
export const hidden = (value: unknown): string => {
  const { length } = [...String(value)]
  return `${hiddenPart} (${length} ${length === 1 ? "character" : "characters"})`
}

/** Objects of servers and hooks whose values are secrets more often than not. */
const holders = new Set(["env", "headers"])

/** Whether a path leads to such an object. A server or an event may have that name too, and is none. */
const isHolder = (path: SettingsPath): boolean => path.length > 2 && holders.has(path.at(-1) ?? "")

/** What the name of a flag or a variable has in it whose value is a secret. */
const telling = "(?:key|token|secret|pass(?=$|=|wor|wd|phr)|pwd|auth|credential|cookie|header|bearer)"
const tellingFlag = new RegExp(`^--?[\\w-]*${telling}[\\w-]*$`, "i")
/** Flags of one letter whose value comes next: a header, a password (curl, sshpass). */
const shortFlags = new Set(["-H", "-p"])
/** Variables that a program is started with: `-e NAME=value` (docker). */
const variableFlags = new Set(["-e", "--env"])
/** A user, behind a colon the password (curl). */
const userFlags = new Set(["-u", "--user"])
/** A name with its value behind it: `--token=x`, `API_KEY=x`; a header behind its flag: `-HCookie: x`. */
const assigned = new RegExp(`^(?:-{0,2}[\\w.-]*${telling}[\\w.-]*=|-H)(?=[^])`, "i")
/** An address that is a whole text, and one within. */
const wholeAddress = /^(\s*[a-z][a-z0-9+.-]*:\/\/)([^]+)$/i
const address = /([a-z][a-z0-9+.-]*:\/\/)([^\s"'`<>]+)/gi
/** A part of a path that nobody made up: some servers are reached by a key in it. */
const random = /(?<=\/)(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]{20,}(?=\/|$)/g

/** An address without who logs in, and without what stands behind the path. */
const withoutKeys = (_: string, scheme: string, rest: string): string => {
  const end = /[?#]/.exec(rest)?.index ?? rest.length
  const place = rest.slice(0, end).replace(/^[^/]*@/, `${hiddenPart}@`)
  const behind = rest
    .slice(end)
    .replace(
      /([?#&;][^?#&;=]*=)[^?#&;]+|([?#&;])[^?#&;=]+(?=[?#&;]|$)/g,
      (_all, name: string | undefined, mark: string | undefined) => `${name ?? mark ?? ""}${hiddenPart}`
    )
  return scheme + place.replace(random, hiddenPart) + behind
}

/** What stands for an argument that is a secret; undefined: it is none. `whole` stands for all of it. */
const argument = (text: string, before: string, whole: string): string | undefined => {
  const given = text.replace(/^["']|["']$/g, "")
  if (tellingFlag.test(before) || shortFlags.has(before)) return whole
  if (userFlags.has(before) && given.includes(":")) return whole
  if (variableFlags.has(before)) return given.replace(/=[^]+$/, `=${hiddenPart}`)
  const name = assigned.exec(given)?.[0]
  return name === undefined ? undefined : name + hiddenPart
}

/** A text without secrets. It may be a command: then each of its words is an argument. */
const shownText = (text: string): string => {
  if (wholeAddress.test(text)) return redact(text.replace(wholeAddress, withoutKeys))
  let before = ""
  const words = (text.match(/\s+|(?:"[^"]*"|'[^']*'|[^\s"'])+|["']/g) ?? []).map((word) => {
    if (/^\s/.test(word)) return word
    const shown = argument(word, before, hiddenPart)
    before = word
    return shown ?? word.replace(address, withoutKeys)
  })
  return redact(words.join(""))
}

/** One of a list, which may be the arguments of a command. */
const shownArgument = (text: string, before: unknown): string =>
  argument(text, typeof before === "string" ? before : "", hidden(text)) ?? shownText(text)

const isList: (value: unknown) => value is ReadonlyArray<unknown> = Array.isArray

const allHidden = (value: unknown): unknown => {
  if (isList(value)) return value.map(allHidden)
  return Predicate.isObject(value)
    ? Object.fromEntries(Object.entries(value).map(([name, one]) => [name, allHidden(one)]))
    : hidden(value)
}

const shownAt = (path: SettingsPath, value: unknown): unknown => {
  if (isHolder(path)) return allHidden(value)
  if (isList(value)) {
    return value.map((one, index) =>
      typeof one === "string" ? shownArgument(one, value[index - 1]) : shownAt(path, one)
    )
  }
  if (Predicate.isObject(value)) {
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, shownAt([...path, name], one)]))
  }
  return typeof value === "string" ? shownText(value) : value
}

/**
 * A value of the settings as it may be shown. Hidden are: what servers and hooks get as variables or headers, whoever logs in
 * at an address and what stands behind its path, arguments whose flag or name tells that they are secrets, and what looks like
 * one anywhere.
 */
export const shownValue = (path: SettingsPath, value: unknown): unknown => {
  // Below a holder all is its own.
  const isBelow = path.some((_, index) => isHolder(path.slice(0, index + 1)))
  return isBelow ? allHidden(value) : shownAt(path, value)
}
