import { type Hidden, hiddenOf } from "./ChildEnvironment.ts"

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

/** Names that only the real environment may set: where this program keeps things, and what it trusts. */
const neverFromFiles = new Set(["PALIMPSEST_HOME", "GEMINI_CLI_HOME", "GEMINI_CLI_TRUST_WORKSPACE"])

/**
 * Whether a variable says something to this program. In a project's plain `.env` those that concern any program are meant
 * for the project's own: its telemetry and its debugging.
 */
export const concerns = (name: string, isProjects: boolean): boolean =>
  !neverFromFiles.has(name) &&
  (/^(?:GEMINI_|PALIMPSEST_)\w+$|^GOOGLE_API_KEY$|^GOOGLE_GEMINI_BASE_URL$/.test(name) ||
    (!isProjects && /^OTEL_\w+$|^NO_COLOR$|^DEBUG$/.test(name)))

/** What of a file is taken over: what concerns this program and says something. */
export const takenFrom = ({ variables }: DotEnv, isProjects: boolean): Readonly<Record<string, string>> =>
  Object.fromEntries([...variables].filter(([name, value]) => value !== "" && concerns(name, isProjects)))

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
