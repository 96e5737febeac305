/** Finds values that follow a telling name, such as `password: x`. */

import type { Finding, Kind } from "./Finding.ts"
import { matchAt } from "./MatchAt.ts"
import { isCamelCase } from "./RandomText.ts"
import { classOf, type NameClass, stems } from "./SecretNames.ts"
import {
  formed,
  isEnvironment,
  isNamedSecret,
  isNoWord,
  isPassword,
  isPin,
  isPlaceholder,
  isSecretValue
} from "./SecretValues.ts"
import { openQuote, type Value, valueAt, wholeOf, withContinued } from "./ValueText.ts"

const nameReach = 64

/** Between a name and its value: the name's closing quote, then an assignment sign. */
const assigns =
  /(?:'\\{1,4}''|\\{0,7}["'`]|&quot;|&#34;|%22)?\]?[ \t]{0,40}(?::[ \t]{0,4}(?:[Ss]tring|str|&(?:'static )?str)[ \t]{0,4}(?==))?(?:=>|:=|\?=|\+=|={1,2}(?!=)|:{1,2}(?!:)|%3[AaDd]|\\u003[ad])[ \t]{0,8}(?:[|>][-+]?[ \t]{0,4}\r?\n[ \t]{1,40}|\\\r?\n[ \t]{0,40}|<<[-~]?["']?[A-Z_]{2,20}["']?\r?\n[ \t]{0,40})?/y
/** A list of values: `"passwords": ["x", "y"]`. */
const listStart = new RegExp(String.raw`${assigns.source}\[(?=[\s\d"'\\])`, "y")
const isListAt = (text: string, at: number): boolean => matchAt(listStart, text, at) >= 0
const listGap = /(?:[\s,]|\\{1,7}[nrt]){0,60}/y
const listComma = /(?:\s|\\{1,7}[nrt]){0,60},/y
const maxListValues = 64
/** In lists of arguments, calls and tables: `"--token", "x"`, `define('KEY', 'x')`. */
const lists = /(?:'\\{1,4}''|\\{0,7}["'`])[ \t]{0,8},(?:\s|\\{1,7}[nrt]){0,40}(?='\\{1,4}''|\\{0,7}["'`])/y
/** After a command line flag. */
const spaced = /(?:\\{0,7}["'])?[ \t]{1,8}(?:\\\r?\n[ \t]{0,40})?/y
/** An object with separate fields for name and value: `name: KEY` and `value: x`. Lines may have numbers or diff marks. */
const splitObject =
  /(?:\\{0,7}["'])?(?:[\s,+]|\\{1,7}[nrt]|\d{1,6}[→|]){1,60}(?:\\{0,7}["'])?[vV]alue(?:\\{0,7}["'])?[ \t]{0,8}[:=][ \t]{0,8}/y
/** In a sentence. */
const inSentence = /(?:\\{0,7}["'`*_]{1,2})?[ \t]{1,4}(?:is|was|are|ist|lautet|=)[ \t]{0,4}:?[ \t]{1,4}/y
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
const nextLine =
  /\\{0,7}["'][ \t]{0,8}:[ \t]{0,8}(?:\r?\n|\\{1,7}n)[ \t]{0,60}(?=(\\{0,7}["'])[^"'\n]{1,512}\1(?!\s{0,4}:))/y
/** A value before its name: `"value": "x", "name": "KEY"`. */
const valueFirst = /"[vV]alue"\s{0,8}:\s{0,8}"([^"\\\n]{4,512})"\s{0,40},\s{0,40}"(?:[nN]ame|[kK]ey)"\s{0,8}:\s{0,8}"$/
/** An element with the name as an attribute: `<entry key="api.token">`. */
const attribute = /\b(?:name|key)=["'][\w.:-]{0,64}$/
/** A table cell. */
const tableCell = /[ \t`*]{0,20}\|[ \t]{0,20}/y

const scheme =
  /(?:Bearer|Basic|Token|ApiKey|Negotiate|Digest|Bot|SSWS|GenieKey|AWS4-HMAC-SHA256)(?:[ \t+]|%20){1,8}(?:token=)?/iy
const credential = /[^\s"'`\\<>,;)}\]]{4,8192}/y
const noCredential =
  /^(?:realm|error|charset|username|token|tokens|auth|authentication|authorization|scheme|header|headers|key|keys|credentials?)\b/i

/** A telling name in a text, and how it is written. */
interface Naming {
  readonly text: string
  readonly start: number
  readonly end: number
  readonly name: string
  /** The characters before the name. */
  readonly before: string
  readonly nameClass: NameClass
  /** Whether it is a flag: `--token`. */
  readonly isFlag: boolean
  /** Whether it stands in the query of an address. */
  readonly isQuery: boolean
  /** Whether it is a call that sets a value: `setPassword(`. */
  readonly isSetter: boolean
  /** Whether a list of values follows. */
  readonly isList: boolean
  /** Where the content of the element with this name begins; -1 when there is none. */
  readonly contentStart: number
}

/** What follows a name that has a value: a sign, or a word that says so. */
const namesValue = /^[ \t]*(?:[\\"'`*_]{1,4}[ \t]*)?(?:[:=|]|(?:is|was|are|ist)\b)/
/** A name in a list of logins: `login ann `, `user ann `. */
const loginBefore =
  /\b(?:login|user|username|machine)[ \t]+(?!(?:can|could|may|might|must|should|will|would|has|said|to|field)\b)[^\s:=]+\s+$/i
/** Words before the verb. */
const verbBefore =
  /(?:^|\b(?:always|never|also|only|just|please|to|not|can|could|may|might|must|shall|should|will|would|do|don't|n't|and|or|then|let|i|you|we|they|it|which|that)[ \t]+)$/i

/** Whether `pass` is the verb of a sentence, "always pass depth=1", and names nothing. */
const isVerb = (text: string, start: number, end: number): boolean => {
  if (!/^[Pp]ass$/.test(text.slice(start, end)) || !/^[ \t]+\S/.test(text.slice(end, end + 8))) return false
  const before = text.slice(Math.max(0, start - 80), start)
  if (namesValue.test(text.slice(end, end + 12))) return false
  if (verbBefore.test(before)) return true
  if (loginBefore.test(before)) return false
  const isQuoted = /^[ \t]+\\{0,7}["'`]/.test(text.slice(end, end + 12))
  return !isQuoted || /^[ \t]+["'`](?:--?)?[A-Za-z][\w.-]*=/.test(text.slice(end, end + 80))
}

const namingAt = (text: string, start: number, end: number): Naming | undefined => {
  if (isVerb(text, start, end)) return undefined
  const name = text.slice(start, end).replace(/^-+/, "")
  const before = text.slice(Math.max(0, start - 24), start)
  const isSetter = text.charAt(end) === "(" && /^(?:set|with)[_A-Z]|^[a-z]+$|^apiKey$/.test(name)
  const bareName = isSetter ? name.replace(/^(?:set|with)[_-]?(?=[A-Z]|pass)/, "") : name
  // A list has a name in the plural.
  const nameClass =
    classOf(bareName, before) ??
    (/s$/i.test(name) && isListAt(text, end) ? classOf(name.slice(0, -1), before) : undefined)
  if (nameClass === undefined) return undefined
  const isTag = before.endsWith("<") && text.charAt(end) === ">"
  const isAttribute =
    /^["']>[^<\s]/.test(text.slice(end, end + 3)) && attribute.test(text.slice(Math.max(0, start - 72), start))
  return {
    text,
    start,
    end,
    name,
    before,
    nameClass,
    isFlag: text.startsWith("--", start) || (text.startsWith("-", start) && /(?:^|[\s"'[])$/.test(before)),
    isQuery: /[?&;]$|%26$|%3F$|\\u0026$/i.test(before) || /(?:&amp;)$/.test(before),
    isSetter,
    isList: isListAt(text, end),
    contentStart: isAttribute ? end + 2 : isTag ? end + 1 : -1
  }
}

/** What was found after a name, and how far the text was inspected. */
interface Looked {
  readonly findings: ReadonlyArray<Finding>
  readonly end: number
}

const nothingUpTo = (end: number): Looked => ({ findings: [], end })
const foundAt = (start: number, end: number, kind: Kind): Looked => ({ findings: [{ start, end, kind }], end })

/** The kind of what a name of this class is followed by. */
const kindOf = (nameClass: NameClass): Kind => (nameClass === "pin" ? "password" : nameClass)

/** Returns the value of an object that names its value first. */
const valueBeforeName = ({ before, nameClass, start, text }: Naming): Looked | undefined => {
  if (!/"(?:[nN]ame|[kK]ey)"\s{0,8}:\s{0,8}"$/.test(before)) return undefined
  const from = Math.max(0, start - 640)
  const match = valueFirst.exec(text.slice(from, start))
  const [whole, value] = match ?? []
  if (match === null || whole === undefined || value === undefined) return undefined
  const at = from + match.index + whole.indexOf(value, whole.indexOf(":"))
  const isOne =
    nameClass === "password"
      ? isNoWord(value) && !isPlaceholder(value, true) && !/\s/.test(value)
      : nameClass === "secret" && isSecretValue({ start: at, end: at + value.length, text: value, quote: '"' })
  return isOne ? foundAt(at, at + value.length, nameClass) : undefined
}

/** Where a value begins that is assigned to a name. */
interface AssignedPlace {
  readonly at: number
  /** The sign between both; empty after a flag. */
  readonly sign: string
  /** Whether page texts are written this way too. */
  readonly isLoose: boolean
}

const placeAt = (at: number, sign: string, isLoose = false): AssignedPlace | undefined =>
  at < 0 ? undefined : { at, sign, isLoose }

/** Returns where a command has the value after the name and a blank. */
const placeInCommand = ({ end, isFlag, name, nameClass, start, text }: Naming): AssignedPlace | undefined => {
  const line = text.slice(Math.max(0, start - 80), start)
  if (name === "IDENTIFIED") return placeAt(matchAt(identified, text, end), " ")
  // A setting is meant for a program, as a variable in an environment is.
  if (setting.test(line)) return placeAt(matchAt(spaced, text, end), "=")
  if (defining.test(line) || name === "requirepass") return placeAt(matchAt(spaced, text, end), " ")
  if (storing.test(line)) return placeAt(matchAt(body, text, end), " ")
  if (nameClass !== "password" || isFlag) return undefined
  return placeAt(matchAt(beforeQuote, text, end), " ", name !== "PASSWORD")
}

const assignedPlace = (naming: Naming): AssignedPlace | undefined => {
  const { contentStart, end, isFlag, isSetter, nameClass, text } = naming
  let at = contentStart
  if (at < 0) at = matchAt(nextLine, text, end)
  if (at < 0) at = matchAt(assigns, text, end)
  if (at >= 0) return placeAt(at, text.slice(end, at))
  const inCommand = placeInCommand(naming)
  if (inCommand !== undefined) return inCommand
  if (!isFlag) at = matchAt(isSetter ? called : defaults, text, end)
  if (at >= 0) return placeAt(at, text.slice(end, at), true)
  if (nameClass === "bearer") return placeAt(matchAt(spaced, text, end), "")
  return isFlag ? (placeAt(matchAt(lists, text, end), "") ?? placeAt(matchAt(spaced, text, end), "")) : undefined
}

/** Returns the value that stands beside a name without a sign: in a sentence, a table, an object with separate fields. */
const valueBesideName = ({ before, end, name, nameClass, start, text }: Naming): Looked => {
  let at = matchAt(splitObject, text, end)
  if (at < 0 && (/^[A-Z][A-Z0-9_]+$/.test(name) || nameClass === "authorization" || /^x-/i.test(name))) {
    at = matchAt(lists, text, end)
  }
  const isInSentence = at < 0
  if (at < 0) at = matchAt(inSentence, text, end)
  if (at < 0 && /\|[ \t`*]{0,20}$/.test(before)) at = matchAt(tableCell, text, end)
  if (at < 0 && nameClass === "password" && loginBefore.test(text.slice(Math.max(0, start - 160), start))) {
    at = matchAt(spaced, text, end)
  }
  const value = at < 0 ? undefined : valueAt(text, at)
  if (value === undefined) return nothingUpTo(end)
  const isQuoted = value.quote !== ""
  // In a sentence the value is one word, and the sentence continues after it.
  const word = isInSentence && !isQuoted ? value.text.replace(/[.,:;!?)]+$/, "") : value.text
  const cut = { ...value, text: word, end: value.start + word.length }
  const isWord =
    !isPlaceholder(word, isQuoted) &&
    !formed.test(word) &&
    !/\s/.test(word) &&
    word.length >= 4 &&
    (isNoWord(word) || (isQuoted && !isInSentence))
  const isOne =
    (nameClass === "password" && isWord) ||
    (nameClass === "pin" && isPin(word)) ||
    (nameClass === "secret" && isSecretValue(cut))
  return isOne ? foundAt(cut.start, cut.end, kindOf(nameClass)) : nothingUpTo(value.end)
}

const afterQuote = (text: string, at: number): number => Math.max(at, matchAt(openQuote, text, at))

/** Returns the credentials of a header. */
const headerCredentials = ({ end, nameClass, text }: Naming, at: number): Looked => {
  const from = afterQuote(text, at)
  const afterScheme = nameClass === "bearer" ? -1 : matchAt(scheme, text, from)
  const first = afterScheme < 0 ? from : afterScheme
  const last = matchAt(credential, text, first)
  if (last < 0) return nothingUpTo(end)
  const value = text.slice(first, last)
  if (isPlaceholder(value, false) || noCredential.test(value)) return nothingUpTo(last)
  const isOne =
    nameClass === "bearer" || afterScheme < 0
      ? /\d/.test(value) && (value.length >= 16 || nameClass === "authorization")
      : /\d/.test(value) || value.length >= 12
  return isOne ? foundAt(first, last, "credentials") : nothingUpTo(last)
}

const cookieLine = /[^\r\n"'`\\<]{4,8192}/y

/** Returns the cookies of a header, if one of them is a secret. */
const cookiesAt = ({ end, text }: Naming, at: number): Looked => {
  const from = afterQuote(text, at)
  const last = matchAt(cookieLine, text, from)
  const line = last < 0 ? "" : text.slice(from, last)
  const values = line.split(/;\s*/).map((part) => part.slice(part.indexOf("=") + 1))
  const isOne =
    line.includes("=") && values.some((value) => isSecretValue({ start: 0, end: 0, text: value, quote: '"' }))
  return isOne ? foundAt(from, last, "cookie") : nothingUpTo(Math.max(end, last))
}

/** Returns the secrets of a list. */
const valuesOfList = ({ end, isFlag, before, name, nameClass, text }: Naming): Looked => {
  const findings: Array<Finding> = []
  let at = matchAt(listStart, text, end)
  for (let count = 0; count < maxListValues; count += 1) {
    at = Math.max(at, matchAt(listGap, text, at))
    const value = text.charAt(at) === "]" ? undefined : valueAt(text, at)
    if (value === undefined) break
    const assignment = { name, sign: ":", isFlag, before, after: "" }
    const isOne =
      nameClass === "pin"
        ? isPin(value.text)
        : nameClass === "password"
          ? isNoWord(value.text) && isPassword(value, assignment)
          : nameClass === "secret" && isSecretValue(value)
    if (isOne) findings.push({ start: value.start, end: value.end, kind: kindOf(nameClass) })
    at = value.quote === "" ? value.end : Math.min(text.length, value.end + value.quote.length)
    if (matchAt(listComma, text, at) < 0) break
  }
  return { findings, end: Math.max(end, at) }
}

/** Returns whether a value after a sign is a secret, and its kind. */
const assignedKind = (value: Value, naming: Naming, { isLoose, sign }: AssignedPlace): Kind | undefined => {
  const { before, isFlag, isQuery, name, nameClass, text } = naming
  const assignment = { name, sign: sign.trim(), isFlag, before, after: text.slice(value.end, value.end + 8) }
  switch (nameClass) {
    case "password":
      // Page texts are written this way too.
      if (isLoose && !isNoWord(value.text)) return undefined
      if (isFlag && value.quote === "" && sign === "" && !isNoWord(value.text)) return undefined
      return isPassword(value, assignment) ? "password" : undefined
    case "pin":
      return isPin(value.text) ? "password" : undefined
    case "secret":
      return isNamedSecret(value, assignment) ? "secret" : undefined
    case "key": {
      const isLong =
        value.text.length >= 20 &&
        (isQuery ||
          (isEnvironment(assignment) &&
            !/CACHE|PRIMARY|SORT|PUBLIC|PARTITION|IDEMPOTENCY|FOREIGN|ROUTING|SHARD|OBJECT|LOOKUP/.test(name)))
      return isLong && isSecretValue(value) ? "secret" : undefined
    }
    case "signature":
      return (isQuery || /shared/i.test(name)) && isSecretValue(value) ? "signature" : undefined
    case "auth": {
      const isEncoded =
        /^[A-Za-z0-9+/]{8,}={0,2}$/.test(value.text) &&
        value.text.length % 4 === 0 &&
        (value.text.endsWith("=") || /[a-z][A-Z][a-z]*[A-Z]|\d/.test(value.text)) &&
        !isCamelCase(value.text)
      const isPart = name.startsWith("_") || value.quote !== ""
      return isPart && !isPlaceholder(value.text, true) && (isEncoded || isSecretValue(value))
        ? "credentials"
        : undefined
    }
    default:
      return undefined
  }
}

/** Returns the secrets that belong to the name at these characters. */
const secretsAfterName = (text: string, start: number, end: number): Looked => {
  const naming = namingAt(text, start, end)
  if (naming === undefined) return nothingUpTo(end)
  const { before, contentStart, isFlag, isList, isQuery, name, nameClass } = naming
  const first = valueBeforeName(naming)
  if (first !== undefined) return first
  const place = assignedPlace(naming)
  if (place === undefined) return isFlag ? nothingUpTo(end) : valueBesideName(naming)
  if (nameClass === "authorization" || nameClass === "bearer") return headerCredentials(naming, place.at)
  if (nameClass === "cookie") return cookiesAt(naming, place.at)
  if (isList) return valuesOfList(naming)
  const isElement = contentStart >= 0
  const wrapped = matchAt(wrapper, text, place.at)
  const short = valueAt(text, wrapped < 0 ? place.at : wrapped, isQuery || isElement)
  if (short === undefined) return nothingUpTo(end)
  const value = wholeOf(text, short, name, isFlag || isQuery || isElement ? undefined : before)
  const kind = assignedKind(value, naming, place)
  if (kind === undefined) return nothingUpTo(value.end)
  const last = withContinued(text, value)
  return foundAt(value.start, last, kind)
}

/** Characters of names, read from a stem in both directions. */
const nameChar = /[A-Za-z0-9_-]/

/**
 * After inspecting more characters than this without a result, the next names within them are skipped; otherwise every name would
 * inspect as many again.
 */
const maxVainLook = 256

/** Finds values behind names of secrets between two places, and adds them to the findings. */
export const findNamed = (text: string, from: number, to: number, findings: Array<Finding>): void => {
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
    const looked = secretsAfterName(text, start, end)
    for (const each of looked.findings) findings.push(each)
    if (looked.findings.length > 0) done = Math.max(done, looked.end)
    else if (looked.end - end > maxVainLook) done = end + maxVainLook
  }
}
