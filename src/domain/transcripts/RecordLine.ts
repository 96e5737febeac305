import { isPart, payload } from "../content/Content.ts"
import { decode, encode } from "../text/Bytes.ts"
import { isJson, type Json } from "../text/JsonObject.ts"
import { arraySlices, sliceAt, type SourceText } from "../text/JsonSource.ts"
import { parsedOrUndefined } from "../text/JsonText.ts"
import { type Piece, wirePiece } from "./ExactParts.ts"
import { type Problem, recordProblem } from "./Problem.ts"

/**
 * Writes the lines of records for other agents. Under the key `palimpsest`, a record carries exact parts and marks for which
 * its own format has no place.
 */

/** The key under which a record carries exact parts and marks. */
const extension = "palimpsest"

/** Replaces escapes of single bytes (see Bytes.ts) by these bytes, as they were in the original file. */
const withBytes = (json: string): string => {
  if (!json.includes("\\udc")) return json
  const raw = json.replace(/\\\\|\\u(dc[89a-f][0-9a-f])/g, (match, hex: string | undefined) =>
    hex === undefined ? match : String.fromCharCode(Number.parseInt(hex, 16))
  )
  return decode(encode(raw)).text === raw ? raw : json
}

/**
 * Writes the exact JSON of a part on one line. Content that the handle returns as text has its bytes; content that it
 * returns as JSON keeps its spelling. A source text with line breaks becomes a JSON string of that text.
 */
const exactJson = ({ part, source }: Piece): string => {
  if (source !== undefined) return /[\r\n]/.test(source) ? withBytes(JSON.stringify(source)) : source
  return payload(part).form === "text" ? withBytes(JSON.stringify(part)) : JSON.stringify(part)
}

/**
 * Writes a record as a line of its format. `exact` holds, by name, parts that the record's own form would not return exactly
 * (`exactPieces` reads them), and `marks` everything else that its own form cannot hold (`marksOf` reads it).
 */
export const recordLine = (
  record: Json,
  exact: Readonly<Record<string, ReadonlyArray<Piece>>> = {},
  marks: Json = {}
): string => {
  const ours = [
    ...Object.entries(marks).map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`),
    ...Object.entries(exact).map(([name, pieces]) => `"${name}":[${pieces.map(exactJson).join(",")}]`)
  ]
  const line = withBytes(JSON.stringify(record))
  return ours.length === 0 ? line : `${line.slice(0, -1)},"${extension}":{${ours.join(",")}}}`
}

const unmarked: Json = {}

/** Returns the marks that a record carries. */
export const marksOf = (record: Json): Json => {
  const ours = record[extension]
  return isJson(ours) ? ours : unmarked
}

/** Reads a part, with the text it was read from when that has to be kept; undefined when the value is not a part. */
const exactPiece = (value: unknown, slice: SourceText | undefined): Piece | undefined => {
  if (typeof value === "string") {
    const part = parsedOrUndefined(value)
    return isPart(part) ? { part, source: value } : undefined
  }
  return isPart(value) ? wirePiece(value, slice) : undefined
}

/** Returns the exact parts that a record carries under a name; undefined when its own form is exact. */
export const exactPieces = (record: Json, text: string, name: string): ReadonlyArray<Piece> | Problem | undefined => {
  const ours = record[extension]
  const list = isJson(ours) ? ours[name] : undefined
  if (list === undefined) return undefined
  if (!Array.isArray(list)) return recordProblem(`${extension}.${name}`, "expected a list of parts")
  const slices = arraySlices(sliceAt(text, [extension, name]) ?? "")
  const pieces: Array<Piece> = []
  for (const [index, value] of list.entries()) {
    const piece = exactPiece(value, slices[index])
    if (piece === undefined) return recordProblem(`${extension}.${name}[${index}]`, "expected a part")
    pieces.push(piece)
  }
  return pieces
}
