/** Selects the environment variables that programs started by a model receive: all except secrets. */

import { redact } from "./Redaction.ts"

/** A word in a variable name that marks the value as secret: GITHUB_TOKEN, apiKey, DB_PASS. */
const secretWord =
  /^(?:.*KEY|.*KEYS|KEYRING|.*TOKENS?|.*SECRETS?|.*PASSWORDS?|PASSWD|PASS|.*PASSPHRASE|.*CREDENTIALS?|CREDS?|AUTH|AUTHORIZATION|OAUTH\d?|BEARER|JWT|COOKIES?|PRIVATE|DSN|SIGNATURE|PAT|PASSCODE|MNEMONIC|WEBHOOKS?|SAS)$/

/** PWD and OLDPWD are folders; any other name with that word is a password: MYSQL_PWD. */
const isSecretName = (name: string): boolean => {
  if (name === "PWD" || name === "OLDPWD") return false
  const words = name
    .replace(/([a-z0-9])([A-Z])/g, "$1_$2")
    .toUpperCase()
    .split(/[^A-Z0-9]+/)
  return words.some((word) => secretWord.test(word) || word === "PWD")
}

/** Shapes of keys that are recognized in an environment, in addition to those of `redact`. */
const keyShapes: ReadonlyArray<RegExp> = [
  /\b[rs]k_(?:live|test)_\w{16,}/,
  /\bglpat-[\w-]{16,}/,
  /\bnpm_\w{30,}/,
  /\bpypi-[\w-]{30,}/,
  /\bhf_\w{20,}/,
  /^\s*(?:Bearer|Basic)\s+\S{8,}/i
]

/** A long word of digits and letters of both cases, without characters that paths and sentences have. */
const looksRandom = (value: string): boolean =>
  /^[A-Za-z0-9+_=-]{32,}$/.test(value) && /[a-z]/.test(value) && /[A-Z]/.test(value) && /\d/.test(value)

/** Returns whether a value looks like a key, a token or a password. */
export const isSecretValue = (value: string): boolean =>
  redact(value) !== value || keyShapes.some((shape) => shape.test(value)) || looksRandom(value)

const isLeftOut = (name: string, value: string, named: ReadonlyArray<string>): boolean =>
  !named.includes(name) && (isSecretName(name) || isSecretValue(value))

/**
 * Returns the variables without those whose name or value looks like a key, a token or a password. Variables in `named` are
 * always kept. In doubt a variable is left out.
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

/** A shorter value occurs in many texts by chance. */
const minHiddenChars = 8

/** A value that no child process receives, and the text that replaces it where a program prints it anyway. */
export interface HiddenValue {
  readonly value: string
  readonly instead: string
}

/**
 * Returns the values that `childEnvironment` leaves out, longest first, because one value may contain another. Values that
 * are passed on are not hidden.
 */
export const hiddenValues = (
  variables: Readonly<Record<string, string | undefined>>,
  named: ReadonlyArray<string> = []
): ReadonlyArray<HiddenValue> => {
  const passed = new Set(Object.values(childEnvironment(variables, named)))
  const hidden = Object.entries(variables).flatMap(([name, value = ""]) =>
    value.length >= minHiddenChars && isLeftOut(name, value, named) && !passed.has(value)
      ? [{ value, instead: `[redacted: ${name}]` }]
      : []
  )
  return hidden.sort((one, other) => other.value.length - one.value.length)
}

/** Replaces every hidden value in a text. */
export const redactHidden = (text: string, hidden: ReadonlyArray<HiddenValue>): string =>
  hidden.reduce(
    (rest, { instead, value }) => (rest.includes(value) ? rest.replaceAll(value, () => instead) : rest),
    text
  )
