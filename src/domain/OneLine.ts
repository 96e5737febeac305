import { firstUnits } from "./Bytes.ts"

/** A text on one line: what is blank, breaks a line or controls a terminal becomes a blank, however much of it there is. */
export const oneLine = (text: string): string => text.replace(/[\s\p{Cc}]+/gu, " ").trim()

/** One line of at most so many characters and `…`, cut where no character is parted. */
export const shortLine = (text: string, most: number): string => {
  const line = oneLine(text)
  return line.length > most ? `${firstUnits(line, most).trimEnd()}…` : line
}
