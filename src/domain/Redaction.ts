/**
 * Secrets of well-known shapes, taken out of a text before somebody who was not given them reads it. What stands around
 * them stays. Every pattern begins where its run of characters begins or is bounded, so the time grows with the text alone.
 */

/** What kind of secret stood somewhere; said in its place. */
export const kinds = [
  "private key",
  "AWS key",
  "GitHub token",
  "Google key",
  "model key",
  "Slack token",
  "JWT",
  "credentials",
  "password",
  "secret"
] as const
export type Kind = (typeof kinds)[number]

/** What stands where a secret stood. */
export const redacted = (kind: Kind): string => `[redacted: ${kind}]`

// Private keys

const opening = /-----BEGIN (?:[A-Z0-9]{1,16} ){0,3}PRIVATE KEY(?: BLOCK)?-----/g
const closing = /-----END (?:[A-Z0-9]{1,16} ){0,3}PRIVATE KEY(?: BLOCK)?-----/g
/** What a key looks like whose end is missing: lines of base64, also where line ends are written as in JSON. */
const torn = /(?:\s|\\[nrt]|[A-Za-z0-9+/=]{16,})*(?:[A-Za-z0-9+/=]{1,15}(?![A-Za-z0-9]))?/y
/** A key with its headers takes some kilobytes; an end that is farther off belongs to another. */
const longestKey = 65_536

const withoutPrivateKeys = (text: string): string => {
  let result = ""
  let from = 0
  let end: RegExpExecArray | null | undefined
  opening.lastIndex = 0
  for (let found = opening.exec(text); found !== null; found = opening.exec(text)) {
    const body = found.index + found[0].length
    // The next end is looked for again only when it lies behind.
    if (end === undefined || (end !== null && end.index < body)) {
      closing.lastIndex = body
      end = closing.exec(text)
    }
    let until: number
    if (end !== null && end.index - body <= longestKey) {
      until = end.index + end[0].length
    } else {
      torn.lastIndex = body
      until = body + (torn.exec(text)?.[0] ?? "").length
    }
    result += text.slice(from, found.index) + redacted("private key")
    from = until
    opening.lastIndex = until
  }
  return result + text.slice(from)
}

// Shapes that speak for themselves

/** Where a token may begin: not within a word, but behind a line end as JSON writes it or behind `%3D` as addresses do. */
const start = String.raw`(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf]|\\u[0-9a-fA-F]{4}|%[0-9A-Fa-f]{2}))`
/** As `start`, for what may hold `-` and `_` itself. */
const wideStart = String.raw`(?:(?<![A-Za-z0-9_-])|(?<=\\[nrtbf]|\\u[0-9a-fA-F]{4}|%[0-9A-Fa-f]{2}))`

interface Shape {
  readonly kind: Kind
  readonly pattern: RegExp
  /** Whether this match is one, beyond its shape. */
  readonly accepts?: (value: string) => boolean
}

const hasDigitAndLetter = (value: string): boolean => /\d/.test(value) && /[A-Za-z]/.test(value)

const shapes: ReadonlyArray<Shape> = [
  {
    kind: "AWS key",
    pattern: new RegExp(String.raw`${start}(?:AKIA|ASIA|ABIA|ACCA|AGPA|AIDA|AROA|ANPA)[A-Z2-7]{16}(?![A-Za-z0-9])`, "g")
  },
  {
    kind: "GitHub token",
    pattern: new RegExp(String.raw`${start}(?:gh[oprsu]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255})`, "g")
  },
  {
    kind: "Google key",
    pattern: new RegExp(
      String.raw`${start}(?:AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])|GOCSPX-[A-Za-z0-9_-]{20,64}|ya29\.[A-Za-z0-9_-]{20,2048})`,
      "g"
    )
  },
  {
    kind: "model key",
    // CSS classes and branches are named so too, without digits.
    pattern: new RegExp(String.raw`${wideStart}sk-[A-Za-z0-9_-]{20,256}`, "g"),
    accepts: hasDigitAndLetter
  },
  {
    kind: "Slack token",
    pattern: new RegExp(
      String.raw`${start}(?:xox[abceoprs]-[A-Za-z0-9-]{10,255}|xapp-[A-Za-z0-9-]{10,255}|(?<=hooks\.slack\.com\/services\/)[A-Z0-9]{6,16}\/[A-Z0-9]{6,16}\/[A-Za-z0-9]{16,64})`,
      "g"
    )
  },
  {
    kind: "JWT",
    pattern: new RegExp(
      String.raw`${wideStart}eyJ[A-Za-z0-9_-]{8,8192}\.[A-Za-z0-9_-]{8,65536}(?:\.[A-Za-z0-9_-]{0,65536}){0,3}`,
      "g"
    )
  }
]

// What stands behind a name

/** A value as it stands in code, JSON, shells and headers: quoted, also within a JSON string, or up to the next blank. */
const quoted = [
  String.raw`\\"(?:[^"\\\n]|\\(?!")){1,4096}\\"`,
  String.raw`"(?:[^"\\\n]|\\[^\n]){1,4096}"`,
  String.raw`\\?'[^'\n]{1,4096}'`,
  "`[^`\\n]{1,4096}`"
].join("|")
const bare = String.raw`(?:\\?["'\`])?(?:[^\s"'\`,;&)}\]<>\\]|\\(?![nrt"'\`])){1,4096}`
/** Between a name and its value. */
const is = String.raw`(?:\\?["'])?[ \t]{0,8}(?:=>|:=|[:=])[ \t]{0,8}`

const authorization = new RegExp(
  String.raw`\b((?:Proxy-)?Authorization${is}(?:\\?["'])?(?:(?:Bearer|Basic|Token|Digest|ApiKey|Negotiate)[ \t]{1,8})?)([^\s"'\`\\]{4,8192})`,
  "gi"
)
const bearer = /\b(Bearer[ \t]{1,8})([A-Za-z0-9._~+/-]{16,8192}={0,2})/gi
const address = /(:\/\/[^\s/:@"'`<>]{0,128}:)([^\s/@"'`<>]{1,256})(?=@)/g
const password = new RegExp(String.raw`((?:password|passwd|passphrase|pwd)(?:_?\d)?${is})(${quoted}|${bare})`, "gi")
const named = new RegExp(
  String.raw`((?:api|access|secret|private|signing|encryption|account|auth|app|master|shared|client|subscription)[_-]?(?:key|secret|token)(?:[_-]?(?:id|value|base64))?${is}|(?:secret|token|credentials?|apikey|cookie|signature)${is})((?:\\?["'\`])?)([A-Za-z0-9+/_=.~:%-]{16,8192})`,
  "gi"
)

/** What stands for a value that is somewhere else, or for its kind: a variable, an expression, a type. */
const placeholder =
  /^(?:\$|%[A-Za-z_]+%|<|\*+$|\.{3}|x{3,}$|[[{(]|(?:string|str|text|boolean|bool|number|null|none|undefined|true|false|unknown|any|required|optional|redacted|hidden)\b[?;|]?$)/i
/** An expression of a program: a call, or a property of something. */
const expression =
  /^[A-Za-z_$][\w$]*(?:(?:\?\.|\.)[A-Za-z_$][\w$]*)*\(|^[A-Za-z_$][A-Za-z_$]*(?:\.[A-Za-z_$][A-Za-z_$]*)+$/

/** `PWD` is the working folder as often as a password. */
const isFolderName = /^pwd/i
const folder = /^(?:\\?["'`])?(?:\/|~|\.|[A-Za-z]:\\)/

const unquoted = (value: string): string => value.replace(/^\\?["'`]/, "").replace(/\\?["'`]$/, "")

const isPlaceholder = (value: string): boolean => {
  const inner = unquoted(value)
  return inner.trim() === "" || placeholder.test(inner) || (inner === value && expression.test(value))
}

/** Bits a character, from how often each occurs (Shannon). */
const entropy = (value: string): number => {
  const counts = new Map<string, number>()
  for (const character of value) counts.set(character, (counts.get(character) ?? 0) + 1)
  let bits = 0
  for (const count of counts.values()) bits -= (count / value.length) * Math.log2(count / value.length)
  return bits
}

/** Words and numbers joined by hyphens or dots have few characters a word; what a generator made has not. */
const isRandom = (value: string): boolean =>
  hasDigitAndLetter(value) &&
  entropy(value.slice(0, 512)) >= 3 &&
  !/^[a-z]+(?:[-_./:][a-z]+)*[-_./:]?\d{0,4}$/i.test(value)

const keepQuotes = (value: string, kind: Kind): string => {
  const open = /^\\?["'`]/.exec(value)?.[0] ?? ""
  return open === "" ? redacted(kind) : `${open}${redacted(kind)}${open}`
}

/** The text without the secrets in it; each is replaced by its kind. The same text twice gives the same; what is redacted stays so. */
export const redact = (text: string): string => {
  let result = withoutPrivateKeys(text)
  for (const { accepts, kind, pattern } of shapes) {
    result = result.replace(pattern, (value) => (accepts === undefined || accepts(value) ? redacted(kind) : value))
  }
  return result
    .replace(authorization, (whole, name: string, value: string) =>
      isPlaceholder(value) ? whole : `${name}${redacted("credentials")}`
    )
    .replace(bearer, (whole, name: string, value: string) =>
      /\d/.test(value) ? `${name}${redacted("credentials")}` : whole
    )
    .replace(address, (whole, name: string, value: string) =>
      isPlaceholder(value) ? whole : `${name}${redacted("password")}`
    )
    .replace(password, (whole, name: string, value: string) =>
      isPlaceholder(value) || (isFolderName.test(name) && folder.test(value))
        ? whole
        : `${name}${keepQuotes(value, "password")}`
    )
    .replace(named, (whole, name: string, quote: string, value: string) =>
      !isPlaceholder(value) && isRandom(value) ? `${name}${quote}${redacted("secret")}` : whole
    )
}
