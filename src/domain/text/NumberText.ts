/** Formats a number with thousands separators: `1,048,576`. */
export const number = (value: number): string => String(value).replace(/\B(?=(\d{3})+$)/g, ",")

/** Formats a count with its noun: `1 message`, `1,024 messages`. Pass `many` when the plural is not `one` plus `s`. */
export const plural = (count: number, one: string, many = `${one}s`): string =>
  `${number(count)} ${count === 1 ? one : many}`
