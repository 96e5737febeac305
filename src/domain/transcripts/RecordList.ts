/** Reads records that do not stand one a line: in a list, or each over several lines, as exporters and `jq` write them. */

import { afterSpace, stringEnd, valueEnd } from "../text/JsonSource.ts"

/** Whether a file that begins with `head` holds a list of records, or records over several lines. */
export const isRecordList = (head: string): boolean => /^\s*(?:\[|\{[ \t\r]*\n)/.test(head)

/** Returns the JSON text of a value on one line. Its strings and numbers keep their spelling. */
const onOneLine = (json: string): string => {
  const pieces: Array<string> = []
  let at = 0
  for (let quote = json.indexOf('"'); quote >= 0; quote = json.indexOf('"', at)) {
    const end = stringEnd(json, quote)
    if (end < 0) break
    pieces.push(json.slice(at, quote).replace(/\s+/g, ""), json.slice(quote, end))
    at = end
  }
  pieces.push(json.slice(at).replace(/\s+/g, ""))
  return pieces.join("")
}

const lineBreaksIn = (text: string): string => text.replace(/[^\n]+/g, "")

/** Returns the records of such a text one a line, each on the line where it begins, if that is not taken. */
export const recordsByLine = (text: string): string => {
  const start = afterSpace(text, 0)
  const isList = text[start] === "["
  const lines = [lineBreaksIn(text.slice(0, start))]
  let at = isList ? start + 1 : start
  while (at < text.length) {
    const begin = afterSpace(text, text[at] === "," || text[at] === "]" ? at + 1 : at)
    const end = valueEnd(text, begin)
    const next = end < 0 ? text.length : afterSpace(text, end)
    const record = text.slice(begin, end < 0 ? next : end)
    lines.push(lineBreaksIn(text.slice(at, begin)))
    if (record !== "") lines.push(onOneLine(record), lineBreaksIn(text.slice(begin, next)) || (end < 0 ? "" : "\n"))
    at = Math.max(next, begin + (record === "" ? 1 : 0))
  }
  return lines.join("")
}
