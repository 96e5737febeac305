import { firstUnits } from "./Bytes.ts"

/** Puts a text on one line: each run of white space, line breaks and control characters becomes one blank. */
export const oneLine = (text: string): string => text.replace(/[\s\p{Cc}]+/gu, " ").trim()

/** Puts a text on one line and truncates it to a maximum length plus `…`, without splitting a character. */
export const shortLine = (text: string, maxChars: number): string => {
  const line = oneLine(text)
  return line.length > maxChars ? `${firstUnits(line, maxChars).trimEnd()}…` : line
}
