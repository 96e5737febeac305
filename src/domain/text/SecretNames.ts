/** Classifies names by what they say of their values: `DB_PASSWORD`, `api-key`. */

/** The parts of a name that mark its value as secret. */
export const stems =
  /kennwort|p(?:ass|wd|in_?code|ins?\b|uks?\b)|otps?\b|secret|token|key|auth|cred|cookie|sig|bearer|_pat|identified/gi

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

/** The owner of a key before the name, in a sentence. */
const ownerBefore = /(?:api|access|secret|private|signing|encryption|master|account|shared|license)[ ]$/i

/** Numbers of few digits. */
const pinName = /^(?:pin|puk|otp|pincode)$/
/** Words beside `pin` for the pin of a chip or of a version. */
const notPin = /^(?:gpio|led|button|input|output|version|chip|digital|analog)$/

/** What a name says of its value. */
export type NameClass =
  | "password"
  | "pin"
  | "secret"
  | "key"
  | "authorization"
  | "bearer"
  | "cookie"
  | "signature"
  | "auth"

const wordsOf = (name: string): Array<string> =>
  name
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((each) => each !== "")

/** Classifies the value after a name; undefined when the name says nothing. `before` is the text in front of the name. */
export const classOf = (name: string, before: string): NameClass | undefined => {
  const words = wordsOf(name)
  while (words.length > 1 && neutral.test(words[words.length - 1] ?? "")) words.pop()
  const last = words.at(-1)
  if (last === undefined) return undefined
  const rest = words.slice(0, -1)
  // The result of a Go test.
  if (name === "PASS" && before.endsWith("--- ")) return undefined
  if (passwordName.test(last)) return rest.some((each) => notPassword.test(each)) ? undefined : "password"
  if (name === "IDENTIFIED") return "password"
  if (pinName.test(last) || (last === "code" && rest.at(-1) === "pin")) {
    return rest.some((each) => notPin.test(each)) ? undefined : "pin"
  }
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
    if (rest.length === 0 && ownerBefore.test(before)) return "secret"
    return "key"
  }
  if (last === "auth") return "auth"
  if (last === "signature" || last === "sig") return "signature"
  return undefined
}
