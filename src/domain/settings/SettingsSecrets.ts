/** Hides secrets in settings values that are shown. */

import { Predicate } from "effect"
import { redact } from "../text/Redaction.ts"
import { isList, type SettingsPath } from "./SettingsKey.ts"

/** Replaces the hidden part of a text. */
const hiddenPart = "•••"

/** Replaces a hidden value. Its length shows whether the value exists and is complete. */
export const mask = (value: unknown): string => {
  const { length } = [...String(value)]
  return `${hiddenPart} (${length} ${length === 1 ? "character" : "characters"})`
}

/** Objects of servers and hooks whose values are often secrets. */
const secretRecords = new Set(["env", "headers"])

/** Whether a path leads to such an object. A server or an event of that name does not count. */
const isSecretRecord = (path: SettingsPath): boolean => path.length > 2 && secretRecords.has(path.at(-1) ?? "")

/** Matches flag and variable names whose value is a secret. */
const secretName = "(?:key|token|secret|pass(?=$|=|wor|wd|phr)|pwd|auth|credential|cookie|header|bearer)"
const secretFlag = new RegExp(`^--?[\\w-]*${secretName}[\\w-]*$`, "i")
/** Short flags followed by a header or a password (curl, sshpass). */
const shortFlags = new Set(["-H", "-p"])
/** Flags that set a variable of a program: `-e NAME=value` (docker). */
const variableFlags = new Set(["-e", "--env"])
/** Flags for a user name, with the password after a colon (curl). */
const userFlags = new Set(["-u", "--user"])
/** A name with its value: `--token=x`, `API_KEY=x`; a header after its flag: `-HCookie: x`. */
const assigned = new RegExp(`^(?:-{0,2}[\\w.-]*${secretName}[\\w.-]*=|-H)(?=[^])`, "i")
/** A text that is a URL, and a URL within a text. */
const wholeAddress = /^(\s*[a-z][a-z0-9+.-]*:\/\/)([^]+)$/i
const address = /([a-z][a-z0-9+.-]*:\/\/)([^\s"'`<>]+)/gi
/** A random-looking path segment: some servers take a key there. */
const randomSegment = /(?<=\/)(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]{20,}(?=\/|$)/g

/** A URL without credentials, query and fragment. */
const withoutKeys = (_: string, scheme: string, rest: string): string => {
  const end = /[?#]/.exec(rest)?.index ?? rest.length
  const place = rest.slice(0, end).replace(/^[^/]*@/, `${hiddenPart}@`)
  const parameters = rest
    .slice(end)
    .replace(
      /([?#&;][^?#&;=]*=)[^?#&;]+|([?#&;])[^?#&;=]+(?=[?#&;]|$)/g,
      (_all, name: string | undefined, mark: string | undefined) => `${name ?? mark ?? ""}${hiddenPart}`
    )
  return scheme + place.replace(randomSegment, hiddenPart) + parameters
}

/** The masked form of a secret argument; undefined when it is not a secret. `whole` replaces all of it. */
const argument = (text: string, before: string, whole: string): string | undefined => {
  const unquoted = text.replace(/^["']|["']$/g, "")
  if (secretFlag.test(before) || shortFlags.has(before)) return whole
  if (userFlags.has(before) && unquoted.includes(":")) return whole
  if (variableFlags.has(before)) return unquoted.replace(/=[^]+$/, `=${hiddenPart}`)
  const name = assigned.exec(unquoted)?.[0]
  return name === undefined ? undefined : name + hiddenPart
}

/** A text without secrets. When it is a command, each word is treated as an argument. */
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

/** An item of a list, which may be the arguments of a command. */
const shownArgument = (text: string, before: unknown): string =>
  argument(text, typeof before === "string" ? before : "", mask(text)) ?? shownText(text)

const allHidden = (value: unknown): unknown => {
  if (isList(value)) return value.map(allHidden)
  return Predicate.isObject(value)
    ? Object.fromEntries(Object.entries(value).map(([name, one]) => [name, allHidden(one)]))
    : mask(value)
}

const shownAt = (path: SettingsPath, value: unknown): unknown => {
  if (isSecretRecord(path)) return allHidden(value)
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
 * A settings value that is safe to show. Hides variables and headers of servers and hooks, credentials and queries in
 * URLs, arguments whose flag or name marks a secret, and anything that looks like a secret.
 */
export const shownValue = (path: SettingsPath, value: unknown): unknown => {
  // Everything below such an object is hidden.
  const isBelow = path.some((_, index) => isSecretRecord(path.slice(0, index + 1)))
  return isBelow ? allHidden(value) : shownAt(path, value)
}
