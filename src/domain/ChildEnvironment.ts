import { redact } from "./Redaction.ts"

/** What of an environment the programs get to see that a model starts: all but its keys. */

/** A word of a name that says that the value is secret: GITHUB_TOKEN, apiKey, DB_PASS. */
const secretWord =
  /^(?:.*KEY|.*KEYS|KEYRING|.*TOKENS?|.*SECRETS?|.*PASSWORDS?|PASSWD|PASS|.*PASSPHRASE|.*CREDENTIALS?|CREDS?|AUTH|AUTHORIZATION|OAUTH\d?|BEARER|JWT|COOKIES?|PRIVATE|DSN|SIGNATURE|PAT|PASSCODE|MNEMONIC|WEBHOOKS?|SAS)$/

/** PWD and OLDPWD are folders, any other such word is a password: MYSQL_PWD. */
const isSecretName = (name: string): boolean => {
  if (name === "PWD" || name === "OLDPWD") return false
  const words = name
    .replace(/([a-z0-9])([A-Z])/g, "$1_$2")
    .toUpperCase()
    .split(/[^A-Z0-9]+/)
  return words.some((word) => secretWord.test(word) || word === "PWD")
}

/** Shapes of keys that are told apart in an environment beside those of `redact`. */
const keyShapes: ReadonlyArray<RegExp> = [
  /\b[rs]k_(?:live|test)_\w{16,}/,
  /\bglpat-[\w-]{16,}/,
  /\bnpm_\w{30,}/,
  /\bpypi-[\w-]{30,}/,
  /\bhf_\w{20,}/,
  /^\s*(?:Bearer|Basic)\s+\S{8,}/i
]

/** A long word of letters of both cases and digits, and nothing a path or a sentence would have. */
const looksRandom = (value: string): boolean =>
  /^[A-Za-z0-9+_=-]{32,}$/.test(value) && /[a-z]/.test(value) && /[A-Z]/.test(value) && /\d/.test(value)

/** Whether a value looks like a key, a token or a password. */
export const isSecretValue = (value: string): boolean =>
  redact(value) !== value || keyShapes.some((shape) => shape.test(value)) || looksRandom(value)

const isLeftOut = (name: string, value: string, named: ReadonlyArray<string>): boolean =>
  !named.includes(name) && (isSecretName(name) || isSecretValue(value))

/**
 * The variables without those whose name or value is that of a key, a token or a password; those that are `named` are kept
 * whatever they look like. Better one too many left out than one too few.
 */
export const childEnvironment = (
  variables: Readonly<Record<string, string | undefined>>,
  named: ReadonlyArray<string> = []
): Record<string, string> => {
  const kept: Record<string, string> = {}
  for (const [name, value] of Object.entries(variables)) {
    if (value !== undefined && !isLeftOut(name, value, named)) kept[name] = value
  }
  return kept
}

/** A shorter value stands in many a text by chance. */
const shortestHidden = 8

/** A value that no program is given, and what stands in its place where one prints it all the same. */
export interface Hidden {
  readonly value: string
  readonly instead: string
}

/** What `childEnvironment` leaves out, the longest first: one value may hold another. Values that are passed are not hidden. */
export const hiddenOf = (
  variables: Readonly<Record<string, string | undefined>>,
  named: ReadonlyArray<string> = []
): ReadonlyArray<Hidden> => {
  const passed = new Set(Object.values(childEnvironment(variables, named)))
  const hidden = Object.entries(variables).flatMap(([name, value = ""]) =>
    value.length >= shortestHidden && isLeftOut(name, value, named) && !passed.has(value)
      ? [{ value, instead: `[redacted: ${name}]` }]
      : []
  )
  return hidden.sort((one, other) => other.value.length - one.value.length)
}

/** A text in which no value stands that is hidden. */
export const withoutHidden = (text: string, hidden: ReadonlyArray<Hidden>): string =>
  hidden.reduce(
    (rest, { instead, value }) => (rest.includes(value) ? rest.replaceAll(value, () => instead) : rest),
    text
  )
