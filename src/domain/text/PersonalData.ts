/**
 * Finds personal data with a form of its own: addresses of e-mail, telephone numbers with a country code, numbers of bank accounts and
 * payment cards with their check digits, and US social security numbers. Names and postal addresses have no form.
 */

import type { Finding } from "./Finding.ts"

/** The kinds of personal data. */
export const personalKinds = [
  "e-mail address",
  "telephone number",
  "bank account",
  "payment card",
  "social security number"
]

/** Addresses that belong to nobody: examples, programs and services. */
const nobody =
  /^(?:no-?reply|do-?not-?reply|git|hg|svn|root|user|username|you|me|name|someone|email|test|foo|bar|example|admin|info|support|hello|contact|security|notifications?|bot|action|actions|npm|pypi)(?:[+.-]\w+)*@|@(?:(?:[\w-]+\.)*(?:example|test|invalid|localhost|local|internal)(?:\.[a-z]{2,3})?|users\.noreply\.github\.com|email\.com|domain\.(?:com|tld)|company\.com|(?:[\w-]+\.)*amazonaws\.com|[\d.]+)$|\[bot\]@/i
/** What looks like the end of an address but is a file or a version. */
const notDomain =
  /\.(?:png|jpe?g|gif|svg|webp|[cm]?[jt]sx?|json|ya?ml|toml|md|py|rb|go|rs|lock|html?|css|sh|service|mount|target|\d+)$/i
const email =
  /(?<![\w.+/@%=-])[A-Za-z0-9][\w.+-]{0,63}@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,4}[A-Za-z]{2,18}(?![\w@-])/g
/** A telephone number: a country code and groups of digits. Sums and lines of a diff do not match. */
const telephone = /(?<![\w.+*/-])\+[1-9]\d{0,2}[ .-]?(?:\(\d{1,4}\)[ .-]?)?\d{1,4}(?:[ .-]\d{2,8}){1,4}(?![\w.-]?\d)/g
const iban = /(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?![A-Za-z0-9])/g
/** Four groups of four digits, or as American Express writes them, all apart in the same way. */
const card =
  /(?<![\w.+/=#-])(?:(?:4\d{3}|5[1-5]\d{2}|2[2-7]\d{2}|6(?:011|5\d{2}))([ -]?)\d{4}\1\d{4}\1\d{4}|3[47]\d{2}([ -]?)\d{6}\2\d{5})(?![\w-]|\.\d)/g
/** Digits without gaps are a card only where a word says so. */
const cardWord = /card|visa|amex|american express|credit|\bpan\b|\bcc\b|payment|kreditkarte/i
const socialSecurity = /(?<![\w.+/-])(?!000|666|9)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\w-])/g

const isCard = (text: string, before: string): boolean => {
  if (!/[ -]/.test(text) && !cardWord.test(before)) return false
  const digits = text.replace(/\D/g, "")
  // Test numbers repeat a digit.
  if (/(\d)\1{7}/.test(digits) || new Set(digits).size < 4) return false
  let sum = 0
  for (let at = 0; at < digits.length; at += 1) {
    const digit = Number(digits[digits.length - 1 - at])
    const double = digit * 2
    sum += at % 2 === 0 ? digit : double > 9 ? double - 9 : double
  }
  return sum % 10 === 0
}

const isIban = (text: string): boolean => {
  const plain = text.replaceAll(" ", "")
  if (plain.length < 15 || plain.length > 34) return false
  let rest = 0
  for (const character of plain.slice(4) + plain.slice(0, 4)) {
    const code = /\d/.test(character) ? character : String(character.charCodeAt(0) - 55)
    rest = Number(`${rest}${code}`) % 97
  }
  return rest === 1
}

const isTelephone = (text: string): boolean => {
  const digits = text.replace(/\D/g, "")
  return digits.length >= 9 && digits.length <= 15 && !/^(\d)\1+$/.test(digits) && !/555[ .-]?01\d\d$/.test(text)
}

const rules: ReadonlyArray<
  readonly [kind: string, form: RegExp, hint: string, isReal: (text: string, before: string) => boolean]
> = [
  ["e-mail address", email, "@", (text) => !nobody.test(text) && !notDomain.test(text)],
  ["telephone number", telephone, "+", isTelephone],
  ["bank account", iban, "", isIban],
  ["payment card", card, "", isCard],
  ["social security number", socialSecurity, "-", (text) => !/^(?:123-45-6789|078-05-1120)$/.test(text)]
]

/** Characters before a number in which a word can say what it is. */
const contextChars = 60

/** Returns the personal data in a text, in order. */
export const personalDataIn = (text: string): ReadonlyArray<Finding> =>
  rules
    .flatMap(([kind, form, hint, isReal]) =>
      text.includes(hint)
        ? [...text.matchAll(form)].flatMap(({ 0: found, index }) =>
            isReal(found, text.slice(Math.max(0, index - contextChars), index))
              ? [{ start: index, end: index + found.length, kind }]
              : []
          )
        : []
    )
    .sort((one, other) => one.start - other.start)
