/** Classifies what stands in the place of a secret: a placeholder, something else of a recognizable form, or a value. */

import { isRandom } from "./RandomText.ts"
import type { Value } from "./ValueText.ts"

/** A placeholder for a value or its kind: a variable, an expression, a type. */
const placeholder =
  /^(?:(?:yield|await|new)\b|\/[*/:]|![01]$|0x[0-9a-f]{1,8}$|[|,]|\+(?:$|["'\s])|\$[A-Za-z_{(]|\$\$|\$\d|%[A-Za-z_]+%|%\(?[a-z]|<|\*+|•|\.{3}|…|x{3,}|X{3,}|[[{(]|#\{|@[A-Za-z]|:[a-z]|\?|(?:string|str|text|boolean|bool|number|int|null|nil|none|undefined|true|false|yes|no|on|off|unknown|any|never|void|object|array|required|optional|wrong|invalid|incorrect|missing|forgotten|erforderlich|vergessen|falsch|requis|obligatoire|obligatori[oa]|requerid[oa]|redacted|hidden|removed|empty|todo|tbd|n\/a|file|env|prompt|inherit|default|password|passwd|secret|token|credentials?|auto|basic|bearer)\b[?;|,.]?$)/i
const sample =
  /^(?:your|my|our|the|an?|some|insert|put|enter|replace|change|example|sample|dummy|fake|mock|placeholder|test)[-_. ]?(?:\w+[-_. ])*(?:key|token|secret|password|pass|pwd|value|here|me|this|it|api|access)s?\b|[-_]here$|^change[-_]?(?:me|it|this)$|x{4,}$/i
/** A program expression: a call, a property access, an index. */
const expression =
  /^[!+~-]?(?:new )?[A-Za-z_$][\w$]*(?:(?:\?\.|!?\.|::|->|\[)[A-Za-z_$\d][\w$\]]*)*[([]|^[A-Za-z_$][\w$]*(?:(?:\?\.|!?\.|::|->)[A-Za-z_$][A-Za-z_$\d]{0,40})+[!?;]?$/
const constantName = /^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$/
/** Values of a recognizable form that is not secret. */
export const formed =
  /^(?:sha(?:1|224|256|384|512)[-:=]|md5[-:=]|h_[a-z2-7]{10,}$|https?:\/\/|wss?:\/\/|file:|data:|blob:|(?:\.{1,2}|~)\/|\/[a-z0-9._-]+(?:\/|$)|[A-Za-z]:\\|\d{1,4}(?:[-/.:T]\d{1,4})+(?:[T Z.:+\d-]*)$|v?\d+\.\d+\.\d+)/
/** The name of a file. */
export const fileName =
  /^[\w./@-]*\.(?:[cm]?[jt]sx?|json|ya?ml|toml|ini|env|pem|key|crt|cer|p12|pfx|jks|txt|md|html?|css|py|rb|go|rs|java|cs|php|sh|conf|cfg|lock|log|png|svg|sock)$/i

/** Returns whether a value stands for one that is to be put in, or is an expression of a program. */
export const isPlaceholder = (value: string, quoted: boolean): boolean => {
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

const tokenLike = /^[A-Za-z0-9+/_=.~:%@$!^*#?-]+$/

/** Returns whether a value is no word of a program or a sentence. */
export const isNoWord = (value: string): boolean =>
  /\d/.test(value) || /[^\w\s.,:;!?()'"-]/.test(value) || /[a-z][A-Z]/.test(value)

/** Returns whether a value looks generated, whatever its name. */
export const isSecretValue = ({ quote, text }: Value): boolean =>
  text.length >= 8 &&
  tokenLike.test(text) &&
  !isPlaceholder(text, quote !== "") &&
  !formed.test(text) &&
  !fileName.test(text) &&
  isRandom(text)

const sentenceLike = (value: string): boolean =>
  /\s/.test(value.trim()) &&
  (/^[A-Z¿¡]/.test(value) ||
    /[.!?:…]$/.test(value.trim()) ||
    /passw|token|secret/i.test(value) ||
    value.split(/\s+/).length > 8)

/** The name of a value, and what stands around both. */
interface Named {
  readonly name: string
  /** The sign between name and value. */
  readonly sign: string
  readonly isFlag: boolean
  readonly before: string
  readonly after: string
}

/** `NAME=value`, as in an environment. */
export const isEnvironment = ({ name, sign }: Named): boolean => sign === "=" && /^[A-Z][A-Z0-9_]*$/.test(name)

const sameWords = (value: string, name: string): boolean => {
  const letters = (text: string) => text.toLowerCase().replace(/[^a-z0-9]/g, "")
  const [one, other] = [letters(value), letters(name)]
  return one !== "" && (other.includes(one) || one.includes(other))
}

/** Returns whether a value with the name of a password is one. */
export const isPassword = (value: Value, named: Named): boolean => {
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

/** Returns whether a value is the number of a card or a code that is used once. */
export const isPin = (value: string): boolean => /^\d{4,8}$/.test(value)

/** Returns whether a value with the name of a secret is one. */
export const isNamedSecret = (value: Value, named: Named): boolean => {
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
