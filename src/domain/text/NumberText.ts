/** Formats numbers for the user: counts with nouns, dollars, shares, sizes and tokens. */

/** Formats a number with thousands separators: `1,048,576`. */
export const number = (value: number): string => String(value).replace(/\B(?=(\d{3})+$)/g, ",")

/** Formats a count with its noun: `1 message`, `1,024 messages`. Pass `many` when the plural is not `one` plus `s`. */
export const plural = (count: number, one: string, many = `${one}s`): string =>
  `${number(count)} ${count === 1 ? one : many}`

/** Formats US dollars to the cent; small sums with more digits. */
export const dollars = (value: number): string => {
  if (value !== 0 && value < 0.0001) return "less than $0.0001"
  if (value !== 0 && value < 0.1) return `$${value.toFixed(4)}`
  const [whole = "", cents = ""] = value.toFixed(2).split(".")
  return whole.includes("e") ? `$${whole}` : `$${number(Number(whole))}.${cents}`
}

/** Formats a share in whole percent. A very small share is shown as an upper bound. */
export const share = (part: number, whole: number): string => {
  if (whole === 0 || part === 0) return "0 %"
  const percent = (part / whole) * 100
  return percent < 0.5 ? "< 1 %" : `${Math.round(percent)} %`
}

/** Formats a size in bytes: `950 B`, `1.2 kB`, `340 MB`, `2.0 GB`. */
export const sizeText = (bytes: number): string => {
  if (bytes < 1_000) return `${bytes} B`
  const [value, unit] = bytes < 1e6 ? [bytes / 1e3, "kB"] : bytes < 1e9 ? [bytes / 1e6, "MB"] : [bytes / 1e9, "GB"]
  return `${value.toFixed(value < 100 ? 1 : 0)} ${unit}`
}

/** Formats a count of tokens: `950`, `12k`, `3.4M`. */
export const tokensText = (tokens: number): string => {
  if (tokens < 1_000) return String(tokens)
  return tokens < 999_500 ? `${Math.round(tokens / 1_000)}k` : `${Math.round(tokens / 100_000) / 10}M`
}
