/** Tells a value that was generated from one that somebody typed. */

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

/** Returns whether a value consists of words joined by case, as names in programs do. */
export const isCamelCase = (value: string): boolean => camel.test(value)

/** Returns whether a value has digits and letters. */
export const hasDigitAndLetter = (value: string): boolean => /\d/.test(value) && /[A-Za-z]/.test(value)

/** Returns whether a value looks generated rather than typed: many characters, evenly distributed. */
export const isRandom = (value: string): boolean => {
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
