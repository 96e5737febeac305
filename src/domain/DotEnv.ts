import { type Hidden, hiddenOf } from "./ChildEnvironment.ts"
import { dotted, keyOf, variables as settingVariables } from "./SettingsKey.ts"

/** Files that set variables of an environment, one `NAME=value` a line (spec 15). */

/** A line that could not be understood, counted from 1. What stands there is not said: it may be a key. */
export interface DotEnvProblem {
  readonly line: number
  readonly message: string
}

/** What such a file says. Of two lines for one name the later counts. */
export interface DotEnv {
  readonly variables: ReadonlyMap<string, string>
  readonly problems: ReadonlyArray<DotEnvProblem>
}

/** The beginning of a line that sets something, as far as its value. */
const assignment = /[^\S\n]*(?:export[^\S\n]+)?([A-Za-z_][A-Za-z0-9_.-]*)[^\S\n]*=[^\S\n]*/y
/** Nothing, or a comment. */
const empty = /[^\S\n]*(?:#[^\n]*)?(?:\n|$)/y
/** A comment behind a value without quotes; white space parts the two. */
const comment = /(?:^|\s)#/
const quotedValue = {
  "'": /'([^']*)'/y,
  '"': /"((?:[^"\\]|\\[^])*)"/y,
  "`": /`([^`]*)`/y
} as const

const escapes: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t", '"': '"', "\\": "\\", $: "$" }

/** What stands behind a backslash in double quotes; one that means nothing stays. */
const unescaped = (text: string): string =>
  text.replace(/\\([^])/g, (whole, character: string) => escapes[character] ?? whole)

const isQuote = (character: string | undefined): character is keyof typeof quotedValue =>
  character !== undefined && Object.hasOwn(quotedValue, character)

/** The text that a pattern finds at a place, and its first group. */
const at = (pattern: RegExp, text: string, index: number): RegExpExecArray | null => {
  pattern.lastIndex = index
  return pattern.exec(text)
}

/**
 * Reads the text of such a file: `export` before a name, values in quotes of three kinds, also over several lines, `\n` in
 * double ones, comments behind `#`. Nothing is filled in and nothing is run: `$NAME` stays as it is.
 */
export const parseDotEnv = (file: string): DotEnv => {
  const text = file.replace(/^\uFEFF/, "").replace(/\r\n?/g, "\n")
  const variables = new Map<string, string>()
  const problems: Array<DotEnvProblem> = []
  let index = 0
  let line = 1
  /** Goes on behind a place. */
  const move = (to: number) => {
    for (let next = text.indexOf("\n", index); next >= 0 && next < to; next = text.indexOf("\n", next + 1)) line += 1
    index = to
  }
  const refuse = (message: string) => {
    problems.push({ line, message })
    const end = text.indexOf("\n", index)
    move(end < 0 ? text.length : end + 1)
  }
  while (index < text.length) {
    const blank = at(empty, text, index)
    if (blank !== null) {
      move(index + blank[0].length)
      continue
    }
    const begin = at(assignment, text, index)
    if (begin === null) {
      refuse("expected NAME=value")
      continue
    }
    const [opening, name = ""] = begin
    const from = index + opening.length
    const quote = text[from]
    if (!isQuote(quote)) {
      const end = text.indexOf("\n", from)
      const given = text.slice(from, end < 0 ? text.length : end)
      const cut = given.search(comment)
      variables.set(name, (cut < 0 ? given : given.slice(0, cut)).trimEnd())
      move(from + given.length + 1)
      continue
    }
    const found = at(quotedValue[quote], text, from)
    if (found === null) {
      refuse("expected a closing quote")
      continue
    }
    const rest = at(empty, text, from + found[0].length)
    if (rest === null) {
      refuse("expected nothing behind the closing quote")
      continue
    }
    const [whole, value = ""] = found
    variables.set(name, quote === '"' ? unescaped(value) : value)
    move(from + whole.length + rest[0].length)
  }
  return { variables, problems }
}

/** Whose a file is: the person's own, a folder's for this program, or a folder's plain `.env`, which is there for others too. */
export type Owner = "person" | "folder" | "project"

/** The variable that names another address for the model. */
export const endpointVariable = "GOOGLE_GEMINI_BASE_URL"
/** The variables of keys for the model. */
export const keyVariables = ["GEMINI_API_KEY", "GOOGLE_API_KEY"] as const
/** The variable that puts a text of one's own in the place of the system prompt. */
export const promptVariable = "GEMINI_SYSTEM_MD"

/** Names that only the real environment may set: where this program keeps things, what it trusts, and where it writes. */
const neverFromFiles = new Set([
  "PALIMPSEST_HOME",
  "GEMINI_CLI_HOME",
  "GEMINI_CLI_TRUST_WORKSPACE",
  "GEMINI_WRITE_SYSTEM_MD"
])

/** What a folder may say beside settings. Of an address and a file it depends on which: see the layer. */
const ofFolders = new Set<string>([...keyVariables, endpointVariable, promptVariable, "GEMINI_MODEL"])

/**
 * Whether a folder may set this: what its settings may set too, as far as that is a number, a switch or one of some words. A
 * text or a list of them, save the model, is the name of a file, a folder or a hook.
 */
const isFoldersSetting = (name: string): boolean => {
  const path = settingVariables.find((one) => one.name === name)?.path
  if (path === undefined || path[0] === "hooksConfig") return false
  const key = keyOf(dotted(path))
  return (
    dotted(path) === "model" || !(key === undefined || !("accepts" in key) || key.accepts("x") || key.accepts(["x"]))
  )
}

/**
 * Whether a variable says something to this program and may say it there. A folder's file has a short list; in its plain
 * `.env` what concerns any program is meant for the project's own.
 */
export const concerns = (name: string, owner: Owner): boolean => {
  if (neverFromFiles.has(name)) return false
  if (owner === "person") {
    return /^(?:GEMINI_|PALIMPSEST_|OTEL_)\w+$|^GOOGLE_API_KEY$|^GOOGLE_GEMINI_BASE_URL$|^NO_COLOR$|^DEBUG$/.test(name)
  }
  if (name === "NO_COLOR") return owner === "folder"
  return ofFolders.has(name) || /^GEMINI_PROMPT_\w+$/.test(name) || isFoldersSetting(name)
}

const filled = ({ variables }: DotEnv) => [...variables].filter(([, value]) => value.trim() !== "")

/** What of a file is taken over: what concerns this program and says something. */
export const takenFrom = (file: DotEnv, owner: Owner): Readonly<Record<string, string>> =>
  Object.fromEntries(filled(file).filter(([name]) => concerns(name, owner)))

/** Variables of this program that a file must not set; what only other programs know is none. */
export const refusedFrom = (file: DotEnv, owner: Owner): ReadonlyArray<string> =>
  filled(file).flatMap(([name]) =>
    (neverFromFiles.has(name) || /^PALIMPSEST_\w+$|^GEMINI_EXP$/.test(name)) && !concerns(name, owner) ? [name] : []
  )

/** Names whose values carry keys although they do not sound like it. */
const headers = /^OTEL_\w*HEADERS$/

/** What of these variables must not stand in any output, the longest first. */
export const hiddenFrom = (variables: Readonly<Record<string, string>>): ReadonlyArray<Hidden> => {
  const plain = Object.entries(variables).map(([name, value]) => [headers.test(name) ? `${name}_SECRET` : name, value])
  return hiddenOf(Object.fromEntries(plain)).map(({ instead, value }) => ({
    value,
    instead: instead.replace("_SECRET]", "]")
  }))
}
