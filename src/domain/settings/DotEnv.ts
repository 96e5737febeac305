/**
 * Parses `.env` files: one `NAME=value` a line.
 *
 * The parser is our own because its problems name a line and never quote it (it may hold a key), because nothing is
 * expanded or executed, and because `dotenv` and `node:util.parseEnv` skip lines they do not understand without
 * reporting them.
 */

import { placeVariable } from "../agent/AgentPlace.ts"
import { keyVariables } from "../model/ModelRoute.ts"
import { type HiddenValue, hiddenValues } from "../text/ChildEnvironment.ts"
import { dotted, keyOf, settingVariables } from "./SettingsKey.ts"

/** A line that could not be parsed, counted from 1, and what was expected. Its content is not reported: it may be a key. */
export interface DotEnvProblem {
  readonly line: number
  readonly text: string
}

/** The parsed file. The last of several lines for one name wins. */
interface DotEnv {
  readonly variables: ReadonlyMap<string, string>
  readonly problems: ReadonlyArray<DotEnvProblem>
}

/** The start of an assignment, up to its value. */
const assignment = /[^\S\n]*(?:export[^\S\n]+)?([A-Za-z_][A-Za-z0-9_.-]*)[^\S\n]*=[^\S\n]*/y
/** An empty line or a comment. */
const empty = /[^\S\n]*(?:#[^\n]*)?(?:\n|$)/y
/** A comment after an unquoted value, separated by white space. */
const comment = /(?:^|\s)#/
const quotedValue = {
  "'": /'([^']*)'/y,
  '"': /"((?:[^"\\]|\\[^])*)"/y,
  "`": /`([^`]*)`/y
} as const

const escapes: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t", '"': '"', "\\": "\\", $: "$" }

/** Replaces escapes in double quotes; unknown escapes stay as written. */
const unescaped = (text: string): string =>
  text.replace(/\\([^])/g, (whole, character: string) => escapes[character] ?? whole)

const isQuote = (character: string | undefined): character is keyof typeof quotedValue =>
  character !== undefined && Object.hasOwn(quotedValue, character)

/** Matches a sticky pattern at an index. */
const execAt = (pattern: RegExp, text: string, index: number): RegExpExecArray | null => {
  pattern.lastIndex = index
  return pattern.exec(text)
}

/**
 * Parses a `.env` file: `export` before a name, three kinds of quotes (also over several lines), `\n` in double quotes,
 * `#` comments. Nothing is expanded and nothing is executed: `$NAME` stays as written.
 */
export const parseDotEnv = (file: string): DotEnv => {
  const text = file.replace(/^\uFEFF/, "").replace(/\r\n?/g, "\n")
  const variables = new Map<string, string>()
  const problems: Array<DotEnvProblem> = []
  let index = 0
  let line = 1
  /** Continues at an index and counts lines. */
  const move = (to: number) => {
    for (let next = text.indexOf("\n", index); next >= 0 && next < to; next = text.indexOf("\n", next + 1)) line += 1
    index = to
  }
  const refuse = (expected: string) => {
    problems.push({ line, text: `expected ${expected}` })
    const end = text.indexOf("\n", index)
    move(end < 0 ? text.length : end + 1)
  }
  while (index < text.length) {
    const blank = execAt(empty, text, index)
    if (blank !== null) {
      move(index + blank[0].length)
      continue
    }
    const begin = execAt(assignment, text, index)
    if (begin === null) {
      refuse("NAME=value")
      continue
    }
    const [opening, name = ""] = begin
    const from = index + opening.length
    const quote = text[from]
    if (!isQuote(quote)) {
      const end = text.indexOf("\n", from)
      const written = text.slice(from, end < 0 ? text.length : end)
      const cut = written.search(comment)
      variables.set(name, (cut < 0 ? written : written.slice(0, cut)).trimEnd())
      move(from + written.length + 1)
      continue
    }
    const match = execAt(quotedValue[quote], text, from)
    if (match === null) {
      refuse("a closing quote")
      continue
    }
    const rest = execAt(empty, text, from + match[0].length)
    if (rest === null) {
      refuse("nothing after the closing quote")
      continue
    }
    const [whole, value = ""] = match
    variables.set(name, quote === '"' ? unescaped(value) : value)
    move(from + whole.length + rest[0].length)
  }
  return { variables, problems }
}

/**
 * Whose file it is: the user's, a folder's for this program, or a folder's plain `.env`, which also serves other
 * programs.
 */
export type EnvFileOwner = "person" | "folder" | "project"

/** Overrides the model's endpoint. */
export const endpointVariable = "GOOGLE_GEMINI_BASE_URL"
/** Replaces the system prompt. */
export const promptVariable = "GEMINI_SYSTEM_MD"

/**
 * Returns why a folder's file may not choose the endpoint, given the keys that the environment sets; undefined when it may. It needs
 * a key of its own, so that the user's key is never sent to an address that a folder chose.
 */
export const endpointProblem = (
  variables: Readonly<Record<string, string>>,
  environmentKeys: ReadonlyArray<string>
): string | undefined => {
  if (keyVariables.google.every((name) => variables[name] === undefined)) return "the file sets no key for it"
  return environmentKeys.length === 0
    ? undefined
    : `${environmentKeys.join(" and ")} from the environment would be sent there`
}

/**
 * Variables that only the real environment may set: where this program stores data, what it trusts and where it writes.
 */
const neverFromFiles = new Set([
  "PALIMPSEST_HOME",
  "PALIMPSEST_STORE",
  placeVariable,
  "GEMINI_CLI_HOME",
  "GEMINI_CLI_TRUST_WORKSPACE",
  "GEMINI_WRITE_SYSTEM_MD"
])

/** What a folder may set besides settings. Some endpoints and files are excluded by the layer. */
const folderVariables = new Set<string>([...keyVariables.google, endpointVariable, promptVariable, "GEMINI_MODEL"])

/**
 * Whether a folder's `.env` may set this: a setting that is a number, a boolean or an enumeration. Strings and lists of
 * strings, except the model, name files, folders or hooks.
 */
const isFolderSetting = (name: string): boolean => {
  const path = settingVariables.find((one) => one.name === name)?.path
  if (path === undefined || path[0] === "hooksConfig") return false
  const key = keyOf(dotted(path))
  return (
    dotted(path) === "model" || !(key === undefined || !("accepts" in key) || key.accepts("x") || key.accepts(["x"]))
  )
}

/**
 * Whether a variable concerns this program and this file may set it. Folders have a short list; in a plain `.env`,
 * variables that concern any program belong to the project.
 */
export const isAccepted = (name: string, owner: EnvFileOwner): boolean => {
  if (neverFromFiles.has(name)) return false
  if (owner === "person") {
    return /^(?:GEMINI_|PALIMPSEST_|OTEL_)\w+$|^GOOGLE_API_KEY$|^GOOGLE_GEMINI_BASE_URL$|^NO_COLOR$|^DEBUG$/.test(name)
  }
  if (name === "NO_COLOR") return owner === "folder"
  return folderVariables.has(name) || /^GEMINI_PROMPT_\w+$/.test(name) || isFolderSetting(name)
}

const nonBlank = ({ variables }: DotEnv) => [...variables].filter(([, value]) => value.trim() !== "")

/** The variables taken from a file: those that concern this program and are not blank. */
export const acceptedVariables = (file: DotEnv, owner: EnvFileOwner): Readonly<Record<string, string>> =>
  Object.fromEntries(nonBlank(file).filter(([name]) => isAccepted(name, owner)))

/** Variables of this program that this file must not set. Variables of other programs are not reported. */
export const rejectedVariables = (file: DotEnv, owner: EnvFileOwner): ReadonlyArray<string> =>
  nonBlank(file).flatMap(([name]) =>
    (neverFromFiles.has(name) || /^PALIMPSEST_\w+$|^GEMINI_EXP$/.test(name)) && !isAccepted(name, owner) ? [name] : []
  )

/** Variables that carry keys although their names do not show it. */
const headers = /^OTEL_\w*HEADERS$/

/** Values that must not appear in any output, longest first. */
export const secretValues = (variables: Readonly<Record<string, string>>): ReadonlyArray<HiddenValue> => {
  const plain = Object.entries(variables).map(([name, value]) => [headers.test(name) ? `${name}_SECRET` : name, value])
  return hiddenValues(Object.fromEntries(plain)).map(({ instead, value }) => ({
    value,
    instead: instead.replace("_SECRET]", "]")
  }))
}
