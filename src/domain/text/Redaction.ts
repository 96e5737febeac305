import {
  discordShape,
  joinedReach,
  type JoinedShape,
  joinedShapes,
  type TokenShape,
  tokenShapes
} from "./SecretShapes.ts"
import * as Work from "./SlicedWork.ts"

/** One file: the rules for secrets overlap, and their order decides which of them names a finding. */

/**
 * Removes secrets from a text before it reaches a reader who must not see them: keys of known shapes, and values that follow a
 * telling name. The text around them stays. Every rule starts at the beginning of a run of characters or of a name and looks a bounded
 * distance, so the time is linear in the length of the text.
 */

/** The kind of a secret; shown in its place. */
export type Kind = string

/** Returns the mark that replaces a secret. */
export const redacted = (kind: Kind): string => `[redacted: ${kind}]`

/** The beginning of a mark; a text without it contains no mark. */
export const markStart = "[redacted: "

/** A secret: characters `start` to `end` of the searched text. */
export interface Finding {
  readonly start: number
  readonly end: number
  readonly kind: Kind
}

// Private keys

const pemStart = "-----BEGIN "
const opening = /-----BEGIN (?:[A-Z0-9]{1,16} ){0,3}PRIVATE KEY(?: BLOCK)?-----/y
const closing = /-----END (?:[A-Z0-9]{1,16} ){0,3}PRIVATE KEY(?: BLOCK)?-----/g
/** A private key whose end is missing: lines of base64, also with line breaks as written in JSON, or with line numbers. */
const torn = /(?:\s|\\{1,7}[nrt]|\d{1,6}→|[+>|](?=[ \t])|[A-Za-z0-9+/=]{16,})*(?:[A-Za-z0-9+/=]{1,15}(?![A-Za-z0-9]))?/y
/** Maximum distance to the end of a private key. A key with its headers takes some kilobytes; an end farther away belongs to another. */
const maxPrivateKeyChars = 65_536

// Runs of letters and digits

const isRun = new Uint8Array(128)
for (const character of "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") {
  isRun[character.charCodeAt(0)] = 1
}
const runAt = (text: string, at: number): boolean => {
  const code = text.charCodeAt(at)
  return code < 128 && isRun[code] === 1
}
/** No token has a shorter run, so checking one character in each interval of this length finds all runs. */
const minRunChars = 16
/** A run may contain names and separators before the token; no token is searched for beyond this distance. */
const runReach = 160

interface Row extends TokenShape {
  readonly pattern: RegExp
}

const rowsByStart: ReadonlyMap<string, ReadonlyArray<readonly [start: string, row: Row]>> = (() => {
  const rows = new Map<string, Array<readonly [string, Row]>>()
  for (const shape of tokenShapes) {
    const bound = shape.max < 100 ? "(?![A-Za-z0-9])" : ""
    const row = {
      ...shape,
      pattern: shape.shape ?? new RegExp(`${shape.of}{${shape.min},${shape.max}}${bound}`, "y")
    }
    for (const start of shape.starts) {
      const sameStart = rows.get(start.slice(0, 2)) ?? []
      sameStart.push([start, row])
      rows.set(start.slice(0, 2), sameStart)
    }
  }
  return rows
})()

const joinedByJoint: ReadonlyMap<string, ReadonlyArray<JoinedShape>> = new Map(
  joinedShapes.map(({ joint }) => [joint, joinedShapes.filter((shape) => shape.joint === joint)])
)

const matchAt = (pattern: RegExp, text: string, at: number): number => {
  pattern.lastIndex = at
  return pattern.test(text) ? pattern.lastIndex : -1
}

const hasDigitAndLetter = (value: string): boolean => /\d/.test(value) && /[A-Za-z]/.test(value)

/** Words and numbers, as in branch and class names. */
const branch = /^(?:v?\d{1,6}|[a-z]{1,16})(?:[-_](?:v?\d{1,6}|[a-z]{1,16})){2,}$/

/** The text ends here or says that something was cut out: what began before may be the first half of a token. */
const cutHere = /(?:…|\.\.\.|\[…|\[\.\.\.)/y
const isCut = (text: string, at: number): boolean => at >= text.length || matchAt(cutHere, text, at) >= 0
/** Minimum length at which a truncated token is recognized. */
const minCutTokenChars = 8

/** Returns whether the preceding character belongs to an escaped line break or to `%3D` in an address. */
const isEscaped = (text: string, at: number): boolean =>
  /(?:\\[nrtbf]|\\u[0-9a-fA-F]{4}|%[0-9A-Fa-f]{2})$/.test(text.slice(Math.max(0, at - 6), at))

/** Returns the token that begins at `at`. `runEnd` is the end of the run in which it begins. */
const tokenAt = (text: string, at: number, runEnd: number): Finding | undefined => {
  const rows = rowsByStart.get(text.slice(at, at + 2))
  if (rows === undefined) return undefined
  for (const [start, row] of rows) {
    // A short prefix occurs within many long names.
    if (!text.startsWith(start, at) || (start.length < 4 && runAt(text, at - 1) && !isEscaped(text, at))) continue
    const body = at + start.length
    const end = matchAt(row.pattern, text, row.shape === undefined ? body : at)
    if (end >= 0) {
      if (row.mixed === true && (!hasDigitAndLetter(text.slice(body, end)) || branch.test(text.slice(body, end))))
        continue
      // A run longer than any token is removed to its end.
      return { start: at, end: end - body >= row.max ? Math.max(end, runEnd) : end, kind: row.kind }
    } else if (
      start.length >= 4 &&
      runEnd - body >= minCutTokenChars &&
      isCut(text, runEnd) &&
      /\d/.test(text.slice(body, runEnd))
    ) {
      return { start: at, end: runEnd, kind: row.kind }
    }
  }
  return undefined
}

/** Returns the offsets in a run where a token may begin: its start, after an escaped line break or `%3D`, and after each `_` or `-`. */
const startsIn = (text: string, from: number, to: number): ReadonlyArray<number> => {
  const starts = [from]
  const before = text.charAt(from - 1)
  if (before === "\\") starts.push(from + 1, from + 5)
  if (before === "%") starts.push(from + 2)
  const end = Math.min(to - 8, from + runReach)
  for (let at = from; at < end; at += 1) {
    const character = text.charAt(at)
    if (character === "_" || character === "-") starts.push(at + 1)
  }
  return starts
}

const findInRun = (text: string, from: number, to: number, findings: Array<Finding>): number => {
  const joints = joinedByJoint.get(text.charAt(from - 1))
  if (joints !== undefined) {
    const before = text.slice(Math.max(0, from - joinedReach), from)
    for (const { after, kind, shape } of joints) {
      if (!after.test(before)) continue
      const end = matchAt(shape, text, from)
      if (end < 0) continue
      findings.push({ start: from, end, kind })
      return Math.max(end, to)
    }
  }
  for (const start of startsIn(text, from, to)) {
    const token = tokenAt(text, start, to)
    if (token !== undefined) {
      findings.push(token)
      return Math.max(token.end, to)
    }
  }
  const first = text.charAt(from)
  if ((first === "M" || first === "N" || first === "O") && text.charAt(to) === ".") {
    const end = matchAt(discordShape, text, from)
    if (end >= 0) {
      findings.push({ start: from, end, kind: "Discord token" })
      return end
    }
  }
  return to
}

/** Finds the tokens of known shapes whose run begins before `to`. Returns the offset up to which they extend. */
const findTokens = (text: string, from: number, to: number, findings: Array<Finding>): number => {
  let done = from
  for (let probe = from + minRunChars - 1; probe < to + minRunChars; probe += minRunChars) {
    if (probe < done || !runAt(text, Math.min(probe, text.length - 1))) continue
    let start = Math.min(probe, text.length - 1)
    while (start > done && runAt(text, start - 1)) start -= 1
    let end = probe + 1
    while (runAt(text, end)) end += 1
    done = end - start >= minRunChars - 1 ? findInRun(text, start, end, findings) : end
  }
  return done
}

// Values that follow a telling name

/** The parts of a name that mark its value as secret. */
const stems = /pass|pwd|secret|token|key|auth|cred|cookie|sig|bearer|_pat|identified/gi

/** Name endings that say nothing about the value. */
const neutral =
  /^(?:value|val|base64|b64|hex|raw|plain|plaintext|data|prod|production|dev|development|staging|stage|test|testing|sandbox|live|old|new|current|previous|prev|primary|secondary|default|env|var|main|backup|base|\d+)$/
const passwordName =
  /(?:password|passwd|passphrase|passcode|passwort|kennwort|pwd)\d*$|^(?:db|user|ssh|my|admin|root|auth|smtp|mail|ftp|bind|store|key|require)?pass\d*$/
/** Words beside `password` that make it page text, a property or an action. */
const notPassword =
  /^(?:forgot|forgotten|reset|change|changed|invalid|wrong|incorrect|missing|no|show|hide|toggle|is|has|allow|require|requires|required|enable|disable|min|max|weak|strong|validate|check|verify|compare|hash|encode|encrypt|decrypt|generate|get|set|all|depth|first|second|with|without|by|enter|error|one|low|high|band)$/
const secretName = /(?:secret|token|apikey|credentials?|creds)\d*$/
/** Words beside `token` or `secret` that make it no secret. */
const notSecret =
  /^(?:max|min|num|total|count|counts|input|output|prompt|completion|cached|next|page|continuation|pagination|cancellation|cancel|sync|stop|start|eos|bos|pad|unk|mask|sep|lexer|syntax|ast|comma|end|begin|keyword|punctuator|last|first|prev|injection|design|css|color|theme)$/
/** Words for the purpose of a key that nobody else may have. */
const keyOwner =
  /^(?:api|access|secret|private|priv|signing|sign|encryption|encrypt|enc|account|auth|app|application|master|shared|client|subscription|service|session|hmac|aes|rsa|ssh|deploy|license|licence|security|jwt|crypto|cipher|webhook|admin|root|server|integration|write|ingest|data|functions?|consumer|developer|project|storage|host|wireguard|tls)$/
const ownedKey = /^(?:api|access|secret|private|account|signing|encryption|auth|master|app)keys?$/

const spokenOwner = /(?:api|access|secret|private|signing|encryption|master|account|shared|license)[ ]$/i

type NameClass = "password" | "secret" | "key" | "authorization" | "bearer" | "cookie" | "signature" | "auth"

const wordsOf = (name: string): Array<string> =>
  name
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((each) => each !== "")

/** Classifies the value after a name; undefined when the name says nothing. `before` is the text in front of the name. */
const classOf = (name: string, before: string): NameClass | undefined => {
  const words = wordsOf(name)
  while (words.length > 1 && neutral.test(words[words.length - 1] ?? "")) words.pop()
  const last = words.at(-1)
  if (last === undefined) return undefined
  const rest = words.slice(0, -1)
  // The result of a Go test.
  if (name === "PASS" && before.endsWith("--- ")) return undefined
  if (passwordName.test(last)) return rest.some((each) => notPassword.test(each)) ? undefined : "password"
  if (name === "IDENTIFIED") return "password"
  if (last === "authorization") return "authorization"
  if (last === "bearer") return "bearer"
  if (last === "cookie") return "cookie"
  // A parser's message about the token that it reads.
  if (last === "token" && rest.length === 0 && /\b(?:unexpected|illegal|unrecogni[sz]ed)[ ]$/i.test(before))
    return undefined
  if (secretName.test(last) || last === "jwt" || (last === "pat" && rest.length > 0)) {
    return rest.some((each) => notSecret.test(each)) ? undefined : "secret"
  }
  if (last === "key" || last === "keys" || ownedKey.test(last)) {
    if (rest.includes("public") || rest.includes("pub")) return undefined
    if (ownedKey.test(last) || rest.some((each) => keyOwner.test(each))) return "secret"
    // `private key: …`, and `?key=…` of an address.
    if (rest.length === 0 && spokenOwner.test(before)) return "secret"
    return "key"
  }
  if (last === "auth") return "auth"
  if (last === "signature" || last === "sig") return "signature"
  return undefined
}

const nameReach = 64

/** Between a name and its value: the name's closing quote, then an assignment sign. */
const assigns =
  /(?:'\\{1,4}''|\\{0,7}["'`]|&quot;|&#34;|%22)?\]?[ \t]{0,40}(?::[ \t]{0,4}(?:[Ss]tring|str|&(?:'static )?str)[ \t]{0,4}(?==))?(?:=>|:=|\?=|\+=|={1,2}(?!=)|:{1,2}(?!:)|%3[AaDd]|\\u003[ad])[ \t]{0,8}(?:[|>][-+]?[ \t]{0,4}\r?\n[ \t]{1,40}|\\\r?\n[ \t]{0,40})?/y
/** In lists of arguments, calls and tables: `"--token", "x"`, `define('KEY', 'x')`. */
const lists = /(?:'\\{1,4}''|\\{0,7}["'`])[ \t]{0,8},(?:\s|\\{1,7}[nrt]){0,40}(?='\\{1,4}''|\\{0,7}["'`])/y
/** After a command line flag. */
const spaced = /(?:\\{0,7}["'])?[ \t]{1,8}(?:\\\r?\n[ \t]{0,40})?/y
/** An object with separate fields for name and value: `name: KEY` and `value: x`. Lines may have numbers or diff marks. */
const apart =
  /(?:\\{0,7}["'])?(?:[\s,+]|\\{1,7}[nrt]|\d{1,6}[→|]){1,60}(?:\\{0,7}["'])?[vV]alue(?:\\{0,7}["'])?[ \t]{0,8}[:=][ \t]{0,8}/y
/** In a sentence. */
const spoken = /(?:\\{0,7}["'`*_]{1,2})?[ \t]{1,4}(?:is|was|are|ist|=)[ \t]{0,4}:?[ \t]{1,4}/y
/** A default for a missing variable: `process.env.KEY || "x"`. */
const defaults = /(?:\\{0,7}["'])?[\])]{0,2}[ \t]{0,4}(?:\|\||\?\?)=?\s{0,20}(?=[bBuUrR]{0,2}\\{0,7}["'`])/y
/** A call with the value as its only argument: `setPassword("x")`. */
const called = /\([ \t]{0,4}(?=[bBuUrR]{0,2}\\{0,7}["'`])/y
/** A wrapper around a value: `SecretStr("x")`. */
const wrapper =
  /(?:new )?(?:Some|Ok|Just|SecretStr|SecretString(?:::new|::from)?|Secret(?:::new)?|SecretBytes|String(?:::from)?|str|bytes|Buffer\.from|Redacted\.make|\[\]byte)\([ \t]{0,4}(?=[bBuUrR]{0,2}\\{0,7}["'`])/y
/** Commands that take a name and, after a blank, its value. */
const setting =
  /(?:^|[\s;&|"'])(?:ENV|setx|set[ \t]+-[a-zA-Z]{1,4}|(?:config(?:ure)?|CONFIG)[ \t]+(?:set|SET))[ \t]+[^\s"']{0,48}$/
const defining = /#[ \t]{0,4}define[ \t]+$/
const storing = /\bsecret[ \t]+set[ \t]+$/
const body = /[ \t]{1,4}(?:--body|-b)[ \t=]{1,4}/y
/** `IDENTIFIED BY 'x'`. */
const identified = /[ \t]{1,4}(?:WITH[ \t]+[\w'"`]{1,40}[ \t]+)?BY[ \t]{1,4}(?:PASSWORD[ \t]{1,4})?(?=['"])/iy
/** A quoted value after a name and a blank. */
const beforeQuote = /[ \t]{1,8}(?=\\{0,7}["'])/y
/** A value on the line after its name. */
const below =
  /\\{0,7}["'][ \t]{0,8}:[ \t]{0,8}(?:\r?\n|\\{1,7}n)[ \t]{0,60}(?=(\\{0,7}["'])[^"'\n]{1,512}\1(?!\s{0,4}:))/y
/** A value before its name: `"value": "x", "name": "KEY"`. */
const ahead = /"[vV]alue"\s{0,8}:\s{0,8}"([^"\\\n]{4,512})"\s{0,40},\s{0,40}"(?:[nN]ame|[kK]ey)"\s{0,8}:\s{0,8}"$/
/** An element with the name as an attribute: `<entry key="api.token">`. */
const attribute = /\b(?:name|key)=["'][\w.:-]{0,64}$/
/** A table cell. */
const cell = /[ \t`*]{0,20}\|[ \t]{0,20}/y

const openQuote = /(?:\$|[bBuUrR]{1,2}(?=\\{0,7}["']))?(?:'\\{1,4}''|\\{0,7}["'`]|&quot;|&#34;|&#39;|%22|%27|@")/y
const maxValueChars = 8_192
const bare = new RegExp(String.raw`(?:[^\s"'\`,;&)}\]<>\\|]|\\(?![nrtu"'\`\\])){1,${maxValueChars}}`, "y")
const bareInQuery = new RegExp(String.raw`[^\s"'\`&#<>\\,;)}\]|]{1,${maxValueChars}}`, "y")

/** An element of a snapshot is never part of a value: an unclosed quote ends there. */
const element = /<\/?[a-z]+_[a-z_]+[ >]/y

interface Value {
  readonly start: number
  readonly end: number
  readonly text: string
  readonly quote: string
}

/** Returns the value at `at`: quoted, also within a JSON string, or up to the next blank. */
const valueAt = (text: string, at: number, inQuery = false): Value | undefined => {
  const begin = matchAt(openQuote, text, at)
  if (begin < 0) {
    const end = matchAt(inQuery ? bareInQuery : bare, text, at)
    return end < 0 ? undefined : { start: at, end, text: text.slice(at, end), quote: "" }
  }
  const quote = text.slice(at, begin).replace(/^[$@bBuUrR]+/, "")
  const limit = Math.min(text.length, begin + maxValueChars)
  let end = begin
  while (
    end < limit &&
    text.charCodeAt(end) !== 10 &&
    !text.startsWith(quote, end) &&
    matchAt(element, text, end) < 0
  ) {
    // A quote after a backslash belongs to the value, unless the delimiters are escaped the same way.
    end += quote.length === 1 && text.charCodeAt(end) === 92 && text.charCodeAt(end + 1) !== 10 ? 2 : 1
  }
  end = Math.min(end, limit)
  return end === begin ? undefined : { start: begin, end, text: text.slice(begin, end), quote }
}

// Classifying a value

/** A placeholder for a value or its kind: a variable, an expression, a type. */
const placeholder =
  /^(?:(?:yield|await|new)\b|\/[*/:]|![01]$|0x[0-9a-f]{1,8}$|[|,]|\+(?:$|["'\s])|\$[A-Za-z_{(]|\$\$|\$\d|%[A-Za-z_]+%|%\(?[a-z]|<|\*+|•|\.{3}|…|x{3,}|X{3,}|[[{(]|#\{|@[A-Za-z]|:[a-z]|\?|(?:string|str|text|boolean|bool|number|int|null|nil|none|undefined|true|false|yes|no|on|off|unknown|any|never|void|object|array|required|optional|redacted|hidden|removed|empty|todo|tbd|n\/a|file|env|prompt|inherit|default|password|passwd|secret|token|credentials?|auto|basic|bearer)\b[?;|,.]?$)/i
const sample =
  /^(?:your|my|our|the|an?|some|insert|put|enter|replace|change|example|sample|dummy|fake|mock|placeholder|test)[-_. ]?(?:\w+[-_. ])*(?:key|token|secret|password|pass|pwd|value|here|me|this|it|api|access)s?\b|[-_]here$|^change[-_]?(?:me|it|this)$|x{4,}$/i
/** A program expression: a call, a property access, an index. */
const expression =
  /^[!+~-]?(?:new )?[A-Za-z_$][\w$]*(?:(?:\?\.|!?\.|::|->|\[)[A-Za-z_$\d][\w$\]]*)*[([]|^[A-Za-z_$][\w$]*(?:(?:\?\.|!?\.|::|->)[A-Za-z_$][A-Za-z_$\d]{0,40})+[!?;]?$/
const constantName = /^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$/
/** Values of a recognizable form that is not secret. */
const formed =
  /^(?:sha(?:1|224|256|384|512)[-:=]|md5[-:=]|h_[a-z2-7]{10,}$|https?:\/\/|wss?:\/\/|file:|data:|blob:|(?:\.{1,2}|~)\/|\/[a-z0-9._-]+(?:\/|$)|[A-Za-z]:\\|\d{1,4}(?:[-/.:T]\d{1,4})+(?:[T Z.:+\d-]*)$|v?\d+\.\d+\.\d+)/
const fileName =
  /^[\w./@-]*\.(?:[cm]?[jt]sx?|json|ya?ml|toml|ini|env|pem|key|crt|cer|p12|pfx|jks|txt|md|html?|css|py|rb|go|rs|java|cs|php|sh|conf|cfg|lock|log|png|svg|sock)$/i

const isPlaceholder = (value: string, quoted: boolean): boolean => {
  const inner = value.trim()
  return (
    inner === "" ||
    placeholder.test(inner) ||
    sample.test(inner) ||
    constantName.test(inner) ||
    inner.includes("${") ||
    inner.includes("{{") ||
    (!quoted && expression.test(inner))
  )
}

/** Returns the Shannon entropy of a value, in bits per character. */
const entropy = (value: string): number => {
  const counts = new Map<string, number>()
  for (const character of value) counts.set(character, (counts.get(character) ?? 0) + 1)
  let bits = 0
  for (const count of counts.values()) bits -= (count / value.length) * Math.log2(count / value.length)
  return bits
}

/** Words and numbers joined by hyphens, dots or case. */
const worded = /^[A-Z]?[a-z]{2,}(?:[-_./: ]?[A-Z]?[a-z]{2,}|[-_./: ][a-z])*[-_./:]?(?:v?\d{1,4})?$/
/** Words whose last letters are upper case: `getURL`, `isJSON`; with numbers: `utf8ToBase64`. */
const camel = /^(?:[A-Z]{0,5}[a-z]{2,}\d{0,2}|[A-Z]{2,5}\d{0,2}|[-_./:])+$/

/** Returns whether a value looks generated rather than typed: many characters, evenly distributed. */
const isRandom = (value: string): boolean => {
  const { length } = value
  if (length < 8) return false
  const head = value.slice(0, 512)
  const digits = head.replace(/[^0-9]/g, "").length
  const larges = head.replace(/[^A-Z]/g, "").length
  const smalls = head.replace(/[^a-z]/g, "").length
  if (digits === 0) {
    // Random letters are upper case about as often as lower case; in names every fifth is.
    if (length < 16 || larges + smalls < head.length * 0.8) return false
    return larges / head.length > 0.28 && smalls / head.length > 0.28 && entropy(head) >= 3.3 && !camel.test(head)
  }
  if (larges + smalls === 0) return false
  if (worded.test(head)) return false
  if (length < 16) {
    return entropy(head) >= 2.5 && !camel.test(head) && /\d[A-Za-z]|[A-Za-z]\d+[A-Za-z]|[A-Z]+[a-z]+\d/.test(head)
  }
  return entropy(head) >= 3 && !(camel.test(head) && digits < 4 && larges / head.length < 0.25)
}

const tokenLike = /^[A-Za-z0-9+/_=.~:%@$!^*#?-]+$/

const isSecretValue = ({ quote, text }: Value): boolean =>
  text.length >= 8 &&
  tokenLike.test(text) &&
  !isPlaceholder(text, quote !== "") &&
  !formed.test(text) &&
  !fileName.test(text) &&
  isRandom(text)

/** Returns whether a value is no word of a program or a sentence. */
const isNoWord = (value: string): boolean =>
  /\d/.test(value) || /[^\w\s.,:;!?()'"-]/.test(value) || /[a-z][A-Z]/.test(value)

const sentenceLike = (value: string): boolean =>
  /\s/.test(value.trim()) &&
  (/^[A-Z¿¡]/.test(value) ||
    /[.!?:…]$/.test(value.trim()) ||
    /passw|token|secret/i.test(value) ||
    value.split(/\s+/).length > 8)

interface Named {
  readonly name: string
  /** The sign between name and value. */
  readonly sign: string
  readonly isFlag: boolean
  readonly before: string
  readonly after: string
}

/** `NAME=value`, as in an environment. */
const isEnvironment = ({ name, sign }: Named): boolean => sign === "=" && /^[A-Z][A-Z0-9_]*$/.test(name)

const sameWords = (value: string, name: string): boolean => {
  const letters = (text: string) => text.toLowerCase().replace(/[^a-z0-9]/g, "")
  const [one, other] = [letters(value), letters(name)]
  return one !== "" && (other.includes(one) || one.includes(other))
}

const isPassword = (value: Value, named: Named): boolean => {
  const { quote, text } = value
  if (isPlaceholder(text, quote !== "") || fileName.test(text)) return false
  if (/^pwd$/i.test(named.name) && formed.test(text)) return false
  if (/^(?:old)?pwd$/i.test(named.name) && /^[/~.]|^[A-Za-z]:\\/.test(text)) return false
  if (quote !== "") return !sentenceLike(text) && !(sameWords(text, named.name) && !/\d/.test(text))
  if (/^\d+$/.test(text)) return text.length >= 4
  if (sameWords(text, named.name) && !/\d/.test(text)) return false
  // A single word may be the name of a variable or type, except where only values can stand.
  if (isEnvironment(named)) return true
  if (/^[A-Za-z_$][A-Za-z_$]*[?!.]*$/.test(text)) {
    const isLine = /(?:^|[\n\r])[ \t#-]*["']?$/.test(named.before) && /^\s*(?:$|[\n\r#])/.test(named.after)
    return isLine && text.length >= 6 && /^[a-z]+$/.test(text) && !named.isFlag
  }
  return isNoWord(text)
}

const isNamedSecret = (value: Value, named: Named): boolean => {
  if (isSecretValue(value)) return true
  const { quote, text } = value
  // A value in an environment is meant for a program, not for a reader.
  return (
    isEnvironment(named) &&
    text.length >= 8 &&
    tokenLike.test(text) &&
    !isPlaceholder(text, quote !== "") &&
    !formed.test(text) &&
    !fileName.test(text) &&
    !/^\d+$/.test(text) &&
    !/\./.test(text) &&
    !sameWords(text, named.name)
  )
}

const scheme =
  /(?:Bearer|Basic|Token|ApiKey|Negotiate|Digest|Bot|SSWS|GenieKey|AWS4-HMAC-SHA256)(?:[ \t+]|%20){1,8}(?:token=)?/iy
const credential = /[^\s"'`\\<>,;)}\]]{4,8192}/y
const noCredential =
  /^(?:realm|error|charset|username|token|tokens|auth|authentication|authorization|scheme|header|headers|key|keys|credentials?)\b/i

/** Lines that continue a long value: base64 is wrapped. */
const continued = /(?:\r?\n[ \t]{0,40}|\\n)[A-Za-z0-9+/=_-]{20,}(?![^\s\\"'])/y

const withContinued = (text: string, value: Value): number => {
  let { end } = value
  if (end - value.start < 40) return end
  for (;;) {
    const next = matchAt(continued, text, end)
    if (next < 0) return end
    end = next
  }
}

const lineStart = /(?:^|[\n\r]|\\n)[ \t+-]{0,24}(?:(?:export|ENV|set)[ \t]{1,4})?[A-Za-z0-9_.-]{0,24}$/
const toBlank = /[^\s<"]{1,512}/y

/** Extends an unquoted value to the next blank or the end of the line if its name begins the line: there `&` and `;` end nothing. */
const wholeOf = (text: string, value: Value, name: string, before: string | undefined): Value => {
  if (value.quote !== "" || before === undefined || !lineStart.test(before)) return value
  const end = matchAt(toBlank, text, value.start)
  const whole = text.slice(value.start, end).replace(/[,;)\]}'`]+$/, "")
  // In source code, the text that follows is code.
  const goesOn = !/^[\r\n]|^$/.test(text.slice(end, end + 1)) && !/^[A-Z0-9_]+$/.test(name)
  return whole.length <= value.text.length ||
    goesOn ||
    !hasDigitAndLetter(whole) ||
    /[({[$=]|\\[nrtu"']|&&|\|\|/.test(whole)
    ? value
    : { ...value, text: whole, end: value.start + whole.length }
}

/** How far the text after a name was inspected. */
interface LookBehind {
  readonly end: number
}

/** Returns the value after a name if it is a secret; otherwise how far the text was inspected. */
const behind = (text: string, start: number, end: number): Finding | LookBehind => {
  const name = text.slice(start, end).replace(/^-+/, "")
  const before = text.slice(Math.max(0, start - 24), start)
  const isSet = text.charAt(end) === "(" && /^(?:set|with)[_A-Z]|^[a-z]+$|^apiKey$/.test(name)
  const nameClass = classOf(isSet ? name.replace(/^(?:set|with)[_-]?(?=[A-Z]|pass)/, "") : name, before)
  if (nameClass === undefined) return { end }
  const isFlag = text.startsWith("--", start) || (text.startsWith("-", start) && /(?:^|[\s"'[])$/.test(before))
  const isQuery = /[?&;]$|%26$|%3F$|\\u0026$/i.test(before) || /(?:&amp;)$/.test(before)
  const isAttribute =
    /^["']>[^<\s]/.test(text.slice(end, end + 3)) && attribute.test(text.slice(Math.max(0, start - 72), start))
  const isElement = isAttribute || (before.endsWith("<") && text.charAt(end) === ">")
  if (/"(?:[nN]ame|[kK]ey)"\s{0,8}:\s{0,8}"$/.test(before)) {
    const match = ahead.exec(text.slice(Math.max(0, start - 640), start))
    if (match !== null) {
      const from = Math.max(0, start - 640) + match.index + match[0].indexOf(match[1] ?? "", match[0].indexOf(":"))
      const value = { start: from, end: from + (match[1] ?? "").length, text: match[1] ?? "", quote: '"' }
      const isOne =
        nameClass === "password"
          ? isNoWord(value.text) && !isPlaceholder(value.text, true) && !/\s/.test(value.text)
          : nameClass === "secret" && isSecretValue(value)
      if (isOne) return { start: value.start, end: value.end, kind: nameClass }
    }
  }

  let at = isElement ? end + (isAttribute ? 2 : 1) : matchAt(below, text, end)
  if (at < 0) at = matchAt(assigns, text, end)
  let sign = ""
  let isLoose = false
  if (at < 0) {
    const line = text.slice(Math.max(0, start - 80), start)
    const isSetting = setting.test(line)
    if (name === "IDENTIFIED") at = matchAt(identified, text, end)
    else if (isSetting || defining.test(line) || name === "requirepass") at = matchAt(spaced, text, end)
    else if (storing.test(line)) at = matchAt(body, text, end)
    else if (nameClass === "password" && !isFlag) {
      at = matchAt(beforeQuote, text, end)
      isLoose = at >= 0 && name !== "PASSWORD"
    }
    // A setting is meant for a program, as a variable in an environment is.
    if (at >= 0) sign = isSetting ? "=" : " "
  }
  if (at < 0 && !isFlag) {
    at = matchAt(isSet ? called : defaults, text, end)
    isLoose = at >= 0
  }
  if (at >= 0) sign ||= text.slice(end, at)
  else if (nameClass === "bearer") at = matchAt(spaced, text, end)
  else if (isFlag) {
    at = matchAt(lists, text, end)
    if (at < 0) at = matchAt(spaced, text, end)
  } else {
    at = matchAt(apart, text, end)
    if (at < 0 && (/^[A-Z][A-Z0-9_]+$/.test(name) || nameClass === "authorization" || /^x-/i.test(name))) {
      at = matchAt(lists, text, end)
    }
    const isInSentence = at < 0
    if (isInSentence) at = matchAt(spoken, text, end)
    if (at < 0 && /\|[ \t`*]{0,20}$/.test(before)) at = matchAt(cell, text, end)
    if (
      at < 0 &&
      nameClass === "password" &&
      /\b(?:login|user|machine|username)[ \t]/.test(text.slice(Math.max(0, start - 160), start))
    ) {
      at = matchAt(spaced, text, end)
    }
    if (at < 0) return { end }
    const value = valueAt(text, at)
    if (value === undefined) return { end }
    // In a sentence the value is one word, and the sentence continues after it.
    const stop = isInSentence && value.quote === "" ? value.text.replace(/[.,:;!?)]+$/, "") : value.text
    const cut = { ...value, text: stop, end: value.start + stop.length }
    const isOne =
      nameClass === "password"
        ? !isPlaceholder(stop, value.quote !== "") &&
          !formed.test(stop) &&
          !/\s/.test(stop) &&
          stop.length >= 4 &&
          (isNoWord(stop) || (value.quote !== "" && !isInSentence))
        : nameClass === "secret" && isSecretValue(cut)
    return isOne ? { start: cut.start, end: cut.end, kind: nameClass } : { end: value.end }
  }
  if (at < 0) return { end }

  if (nameClass === "authorization" || nameClass === "bearer") {
    const quote = matchAt(openQuote, text, at)
    const from = quote < 0 ? at : quote
    const behindScheme = nameClass === "bearer" ? -1 : matchAt(scheme, text, from)
    const first = behindScheme < 0 ? from : behindScheme
    const last = matchAt(credential, text, first)
    if (last < 0) return { end }
    const value = text.slice(first, last)
    if (isPlaceholder(value, false) || noCredential.test(value)) return { end: last }
    const isOne =
      nameClass === "bearer" || behindScheme < 0
        ? /\d/.test(value) && (value.length >= 16 || nameClass === "authorization")
        : /\d/.test(value) || value.length >= 12
    return isOne ? { start: first, end: last, kind: "credentials" } : { end: last }
  }
  if (nameClass === "cookie") {
    const quote = matchAt(openQuote, text, at)
    const from = quote < 0 ? at : quote
    const last = matchAt(cookieLine, text, from)
    const value = last < 0 ? "" : text.slice(from, last)
    const parts = value.split(/;\s*/).map((part) => part.slice(part.indexOf("=") + 1))
    const isOne =
      value.includes("=") && parts.some((part) => isSecretValue({ start: 0, end: 0, text: part, quote: '"' }))
    return isOne ? { start: from, end: last, kind: "cookie" } : { end: Math.max(end, last) }
  }

  const wrapped = matchAt(wrapper, text, at)
  const short = valueAt(text, wrapped < 0 ? at : wrapped, isQuery || isElement)
  if (short === undefined) return { end }
  const value = wholeOf(text, short, name, !isFlag && !isQuery && !isElement ? before : undefined)
  const looked = { end: value.end }
  const named = { name, sign: sign.trim(), isFlag, before, after: text.slice(value.end, value.end + 8) }
  const findingOf = (kind: Kind): Finding => ({ start: value.start, end: withContinued(text, value), kind })
  // Page texts are written this way too.
  if (isLoose && nameClass === "password" && !isNoWord(value.text)) return looked
  switch (nameClass) {
    case "password":
      if (isFlag && value.quote === "" && sign === "" && !isNoWord(value.text)) return looked
      return isPassword(value, named) ? findingOf("password") : looked
    case "secret":
      return isNamedSecret(value, named) ? findingOf("secret") : looked
    case "key": {
      const isLong =
        value.text.length >= 20 &&
        (isQuery ||
          (isEnvironment(named) &&
            !/CACHE|PRIMARY|SORT|PUBLIC|PARTITION|IDEMPOTENCY|FOREIGN|ROUTING|SHARD|OBJECT|LOOKUP/.test(name)))
      return isLong && isSecretValue(value) ? findingOf("secret") : looked
    }
    case "signature":
      return (isQuery || /shared/i.test(name)) && isSecretValue(value) ? findingOf("signature") : looked
    case "auth": {
      const isEncoded =
        /^[A-Za-z0-9+/]{8,}={0,2}$/.test(value.text) &&
        value.text.length % 4 === 0 &&
        (value.text.endsWith("=") || /[a-z][A-Z][a-z]*[A-Z]|\d/.test(value.text)) &&
        !camel.test(value.text)
      const isPart = name.startsWith("_") || value.quote !== ""
      return isPart && !isPlaceholder(value.text, true) && (isEncoded || isSecretValue(value))
        ? findingOf("credentials")
        : looked
    }
  }
}

const cookieLine = /[^\r\n"'`\\<]{4,8192}/y

/** Characters of names, read from a stem in both directions. */
const nameChar = /[A-Za-z0-9_-]/

/**
 * After inspecting more characters than this without a result, the next names within them are skipped; otherwise every name would
 * inspect as many again.
 */
const maxVainLook = 256

const findNamed = (text: string, from: number, to: number, findings: Array<Finding>): void => {
  const part = text.slice(from, Math.min(text.length, to + 16))
  let done = 0
  for (const { index } of part.matchAll(stems)) {
    const place = from + index
    if (place < done || place >= to) continue
    let start = place
    while (start > 0 && place - start < nameReach && nameChar.test(text.charAt(start - 1))) start -= 1
    let end = place
    while (end < text.length && end - place < nameReach && nameChar.test(text.charAt(end))) end += 1
    done = end
    // The letter belongs to the escaped line break before it, as JSON writes it.
    if (/^[nrt]/.test(text.slice(start, end)) && text.charAt(start - 1) === "\\") start += 1
    if (/^(?:3[dDfF]|26|20|22|27)/.test(text.slice(start, end)) && text.charAt(start - 1) === "%") start += 2
    const finding = behind(text, start, end)
    if ("kind" in finding) {
      findings.push(finding)
      done = Math.max(done, finding.end)
    } else if (finding.end - end > maxVainLook) done = end + maxVainLook
  }
}

// Login data

/** The end of user and password before a host. */
const userInfo = /([^\s/:@"'`<>\\]{0,128}):((?:[^\s/@"'`<>\\]|@(?=[^\s/@"'`<>\\]{0,128}@)){1,256})@(?=[\w[.$-])/y
const tokenInfo = /([A-Za-z0-9_-]{20,256})@(?=[\w.-]+)/y
/** Files that list hosts with ports, users and passwords (`.pgpass`). */
const pgPass = /:(?:5432|5433|6432|\*):([^\s:<]{1,64}):([^\s:<]{1,64}):([^\s:<]{1,256})(?=\s|$|<|\\n)/y
const curlUser =
  /(?:\s|["'])(?:-[fgikLnsSvO]{0,6}u|--user|--proxy-user|-U)(?:\\{0,7}["'],\s{0,8}|[ =]{0,4})(?:'\\{1,4}''|\\{0,7}["'])?[^\s:"'`@$\\<]{1,64}:[^\s"'`\\<]{1,128}/y
const combinedUser = /^-[fgikLnsSvO]{1,6}u[ ]/
const webProgram =
  /(?:\b|\\[nrt])(?:curl|wget|https?|xh|aria2c|ab|svn|restic|rclone|smbclient|mosquitto_(?:pub|sub)|lftp)\b/
const shortPassword =
  /(?:\s|["'])-[pPa](?:\\{0,7}["'],\s{0,8}|[ ]?)(?:'\\{1,4}''|\\{0,7}["'])?([^\s"'`\\<-][^\s"'`\\<]{2,127})/y
const passProgram =
  /(?:\b|\\[nrt])(sshpass|docker|podman|redis-cli|unzip|7z|az|oc|mongo\w{0,8}|mysql\w{0,8}|mariadb\w{0,8})\b/

const each = (text: string, from: number, to: number, mark: string, visit: (at: number) => void): void => {
  const part = text.slice(from, Math.min(text.length, to + mark.length - 1))
  for (let at = part.indexOf(mark); at >= 0; at = part.indexOf(mark, at + mark.length)) visit(from + at)
}

/** Returns the user and password, or the token, before a host. */
const userAt = (text: string, at: number): Finding | undefined => {
  const end = matchAt(userInfo, text, at)
  if (end >= 0) {
    const start = at + text.slice(at, end).indexOf(":") + 1
    const value = text.slice(start, end - 1)
    return isPlaceholder(value, true) || /^(?:pass|pw|pwd)$/i.test(value)
      ? undefined
      : { start, end: end - 1, kind: "password" }
  }
  const token = matchAt(tokenInfo, text, at)
  return token >= 0 && isRandom(text.slice(at, token - 1))
    ? { start: at, end: token - 1, kind: "credentials" }
    : undefined
}

const pgPassAt = (text: string, at: number): Finding | undefined => {
  const end = matchAt(pgPass, text, at)
  if (end < 0) return undefined
  const start = at + text.slice(at, end).lastIndexOf(":") + 1
  return isPlaceholder(text.slice(start, end), true) ? undefined : { start, end, kind: "password" }
}

/** Returns the password after a single-letter flag, if the program takes a password there. */
const flagAt = (text: string, at: number): Finding | undefined => {
  const letter = text.charAt(at + 2)
  const isUser = letter !== "p" && letter !== "P" && letter !== "a"
  const end = matchAt(isUser ? curlUser : shortPassword, text, at)
  if (end < 0) return undefined
  const line = text.slice(Math.max(0, at - 200), at)
  const before = line.slice(line.lastIndexOf("\n") + 1)
  const whole = text.slice(at, end)
  if (isUser) {
    const start = at + whole.lastIndexOf(":") + 1
    return !webProgram.test(before) || isPlaceholder(text.slice(start, end), true)
      ? undefined
      : { start, end, kind: "password" }
  }
  const program = passProgram.exec(before)?.[1]
  if (program === undefined) return undefined
  const isGlued = /^[\s"']-[pPa][^\s"']/.test(whole)
  const takes =
    program.startsWith("mysql") || program.startsWith("mariadb")
      ? letter === "p" && isGlued
      : program === "redis-cli"
        ? letter === "a"
        : program === "docker" || program === "podman"
          ? letter === "p" && !isGlued && /\blogin\b/.test(before)
          : letter !== "a" && (!isGlued || program === "7z" || program === "unzip" || program === "sshpass")
  const value = /[^\s"'`\\]+$/.exec(isGlued ? whole.slice(3) : whole)?.[0] ?? ""
  return !takes || value === "" || isPlaceholder(value, true) || /^[\d:]+$/.test(value)
    ? undefined
    : { start: end - value.length, end, kind: "password" }
}

const findLogins = (text: string, from: number, to: number, findings: Array<Finding>): void => {
  let done = from
  const add = (finding: Finding | undefined) => {
    if (finding === undefined) return
    findings.push(finding)
    done = finding.end
  }
  each(text, from, to, ":", (at) => {
    if (at < done) return
    const next = text.charAt(at + 1)
    if (next === "/" && text.charAt(at + 2) === "/") add(userAt(text, at + 3))
    else if (next === "%" && /^%2F%2F/i.test(text.slice(at + 1, at + 7))) add(userAt(text, at + 7))
    else if (next === "5" || next === "6" || next === "*") add(pgPassAt(text, at))
  })
  done = from
  each(text, from, to, "-", (at) => {
    const before = text.charAt(at - 1)
    if (at < done || (before !== " " && before !== '"' && before !== "'" && before !== "\n")) return
    const next = text.charAt(at + 1)
    if (next === "u" || next === "U" || next === "p" || next === "P" || next === "a") add(flagAt(text, at - 1))
    else if (combinedUser.test(text.slice(at, at + 9))) add(flagAt(text, at - 1))
    else if (next === "-" && /^--(?:proxy-)?user\b/.test(text.slice(at, at + 13))) add(flagAt(text, at - 1))
  })
}

const findPrivateKeys = (text: string, from: number, to: number, findings: Array<Finding>): void => {
  let done = from
  let end: RegExpExecArray | null | undefined
  each(text, from, to, pemStart, (at) => {
    if (at < done) return
    const body = matchAt(opening, text, at)
    if (body < 0) return
    // The next end is searched again only when it lies behind.
    if (end === undefined || (end !== null && end.index < body)) {
      closing.lastIndex = body
      end = closing.exec(text)
    }
    const isWhole = end !== null && end.index - body <= maxPrivateKeyChars && !text.slice(body, end.index).includes("<")
    const until = isWhole && end !== null ? end.index + end[0].length : matchAt(torn, text, body)
    findings.push({ start: at, end: until, kind: "private key" })
    done = until
  })
}

// All rules together

/** Characters searched between two pauses. */
const window = 131_072
/** Cost of searching a character, in characters of plain scanning. */
const searchCost = 2

const redactionMarks = /\[redacted: [^\]\n]{1,60}\]/g

/** Sorts findings and removes overlaps and what earlier marks cover. The first rule that finds something names it. */
const resolvedFindings = (text: string, findings: ReadonlyArray<Finding>): ReadonlyArray<Finding> => {
  if (findings.length === 0) return findings
  const sorted = findings
    .map((finding, index) => ({ ...finding, index }))
    .sort((one, other) => one.start - other.start || one.end - other.end)
  const united: Array<Finding & { readonly index: number }> = []
  for (const next of sorted) {
    const last = united.at(-1)
    if (last === undefined || next.start >= last.end) {
      united.push(next)
      continue
    }
    const first = last.index <= next.index ? last : next
    united[united.length - 1] = { ...first, start: last.start, end: Math.max(last.end, next.end) }
  }
  if (!text.includes(markStart)) return united
  const marks = Array.from(text.matchAll(redactionMarks), ({ 0: { length }, index }) => ({
    from: index,
    to: index + length
  }))
  let at = 0
  return united.filter(({ end, start }) => {
    while ((marks[at]?.to ?? Infinity) <= start) at += 1
    return (marks[at]?.from ?? Infinity) >= end
  })
}

// Invisible and look-alike characters

/** Terminal colours and cursor movements, also as programs and JSON write them, and characters that only modify others. */
const hidden = new RegExp(
  [
    String.raw`(?:\u001b\[|\u009b|\\(?:u001[bB]|x1[bB]|0?33|e)\[)[0-?]{0,32}[ -/]{0,4}[@-~]`,
    String.raw`[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]`,
    String.raw`\udb40[\udc00-\udc7f]`,
    String.raw`\\u(?:00[aA][dD]|200[b-fB-F]|2060|[fF][eE][fF][fF])`
  ].join("|"),
  "g"
)
/** Blanks and signs that look like ASCII ones. */
const alike: ReadonlyArray<readonly [RegExp, string]> = [
  [/[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]/g, " "],
  [/：/g, ":"],
  [/＝/g, "="]
]

/** A text without its hidden characters, and the number of hidden characters up to each offset. */
interface Seen {
  readonly text: string
  readonly gaps: ReadonlyArray<{ readonly at: number; readonly hidden: number }>
}

function* seeing(text: string): Work.SlicedWork<Seen> {
  let visible = ""
  let from = 0
  const gaps: Array<{ at: number; hidden: number }> = []
  for (const { 0: match, index } of text.matchAll(hidden)) {
    visible += text.slice(from, index)
    from = index + match.length
    gaps.push({ at: visible.length, hidden: from - visible.length })
    if (gaps.length % 8_192 === 0) yield window
  }
  visible += text.slice(from)
  yield text.length / 4
  for (const [like, plain] of alike) visible = visible.replace(like, plain)
  return { text: visible, gaps }
}

/** Maps findings in the visible text to offsets in the whole text. */
const placed = (findings: ReadonlyArray<Finding>, gaps: Seen["gaps"]): ReadonlyArray<Finding> => {
  if (gaps.length === 0) return findings
  let next = 0
  const place = (at: number): number => {
    while ((gaps[next]?.at ?? Infinity) <= at) next += 1
    return at + (gaps[next - 1]?.hidden ?? 0)
  }
  return findings.map(({ end, kind, start }) => ({ start: place(start), end: place(end - 1) + 1, kind }))
}

/** Finds every secret of a text, in order, in slices. */
export function* finding(whole: string): Work.SlicedWork<ReadonlyArray<Finding>> {
  const { gaps, text } = yield* seeing(whole)
  const findings: Array<Finding> = []
  const named: Array<Finding> = []
  let reached = 0
  for (let from = 0; from < text.length; from += window) {
    const to = Math.min(text.length, from + window)
    findPrivateKeys(text, from, to, findings)
    reached = findTokens(text, Math.max(from, reached), to, findings)
    findLogins(text, from, to, findings)
    findNamed(text, from, to, named)
    yield (to - from) * searchCost
  }
  return placed(resolvedFindings(text, [...findings, ...named]), gaps)
}

/** Returns every secret of a text, in order. */
const secretsIn = (text: string): ReadonlyArray<Finding> => Work.runSync(finding(text))

const without = (text: string, findings: ReadonlyArray<Finding>): string => {
  let result = ""
  let from = 0
  for (const { end, kind, start } of findings) {
    result += text.slice(from, start) + redacted(kind)
    from = end
  }
  return result + text.slice(from)
}

/** A removed secret. */
export interface Secret {
  readonly kind: Kind
  readonly value: string
}

/** A text without its secrets, and the removed secrets in order. */
export interface Redaction {
  readonly text: string
  readonly secrets: ReadonlyArray<Secret>
}

/** Removing one secret may reveal another beside it; a few passes settle any text. */
const maxPasses = 4

/** Like `redact`, in slices; also returns what was removed. */
export function* redacting(text: string): Work.SlicedWork<Redaction> {
  let result = text
  const secrets: Array<Secret> = []
  for (let look = 0; look < maxPasses; look += 1) {
    const findings = yield* finding(result)
    if (findings.length === 0) break
    for (const { end, kind, start } of findings) secrets.push({ kind, value: result.slice(start, end) })
    result = without(result, findings)
  }
  return { text: result, secrets }
}

/** Returns whether a secret looks generated and is no path, handle, element or ordinary word: such a value occurs nowhere by chance. */
const isDistinctive = ({ value }: Secret): boolean =>
  isRandom(value) &&
  /\d/.test(value) &&
  !/h_[a-z2-7]/.test(value) &&
  !formed.test(value) &&
  (/^[A-Za-z0-9+_.~:%@$!^*#?&;,-]+$/.test(value)
    ? !fileName.test(value)
    : /^[A-Za-z0-9+/]{32,}={0,2}$/.test(value) && value.split("/").every((each) => !/^[A-Z]?[a-z]{3,}$/.test(each)))

/**
 * Returns whether a value is also removed from the user's words when another text revealed it. A shorter value is not: the output of
 * a tool must not decide what the user said.
 */
const isStrong = ({ value }: Secret): boolean => value.length >= 12 && hasDigitAndLetter(value)
/** Selects the revealed values that are also removed from the user's words. */
export const strongSecrets = (telling: ReadonlyArray<Secret>): ReadonlyArray<Secret> => telling.filter(isStrong)
/** Maximum number of values searched for in the written texts of a conversation, and in all of it: each costs one pass over the whole. */
export const maxDistinctiveSecrets = { written: 2_000, everywhere: 200 }

/** Returns the values of these secrets that are recognizable without their names, longest first. */
export const distinctiveSecrets = (
  secrets: Iterable<Secret>,
  maxSecrets = maxDistinctiveSecrets.written
): ReadonlyArray<Secret> => {
  const distinctive = new Map<string, Secret>()
  for (const secret of secrets) if (isDistinctive(secret)) distinctive.set(secret.value, secret)
  return [...distinctive.values()].sort((one, other) => other.value.length - one.value.length).slice(0, maxSecrets)
}

/** Removes these values from a text: what a name revealed in one place is also a secret where it stands alone. */
export function* withoutValues(text: string, secrets: ReadonlyArray<Secret>): Work.SlicedWork<string> {
  let result = text
  for (const { kind, value } of secrets) {
    if (result.includes(value)) result = result.replaceAll(value, () => redacted(kind))
    yield text.length / 8
  }
  return result
}

/** Replaces each secret in a text by its kind. Deterministic, and applying it again changes nothing. */
export const redact = (text: string): string => Work.runSync(redacting(text)).text

/** Returns characters `start` to `end` of a text without the secrets of the whole text, including halves of secrets at the borders. */
export const redactSpan = (text: string, start: number, end: number): string =>
  redact(
    without(
      text.slice(start, end),
      secretsIn(text)
        .filter((secret) => secret.start < end && secret.end > start)
        .map((secret) => ({
          ...secret,
          start: Math.max(secret.start, start) - start,
          end: Math.min(secret.end, end) - start
        }))
    )
  )

/** Number of removed secrets by kind. */
export type SecretCounts = Readonly<Record<Kind, number>>

/** Counts secrets by kind, in alphabetical order of the kinds. */
export const countSecrets = (secrets: Iterable<Secret>): SecretCounts => {
  const counts = new Map<Kind, number>()
  for (const { kind } of secrets) counts.set(kind, (counts.get(kind) ?? 0) + 1)
  return Object.fromEntries([...counts].sort(([one], [other]) => (one < other ? -1 : 1)))
}
