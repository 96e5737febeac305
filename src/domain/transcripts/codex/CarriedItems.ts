import { type Content, isPart } from "../../content/Content.ts"
import { isJson, type Json } from "../../text/JsonObject.ts"
import type { Piece } from "../ExactParts.ts"
import { natural, textAt } from "../JsonRecord.ts"
import { type Problem, recordProblem } from "../Problem.ts"
import { exactPieces, marksOf } from "../RecordLine.ts"
import { markedAuthor, type Marks, readMarks } from "../RecordMarks.ts"
import { type ItemMessage, messageOf, objectOf } from "./ItemMessage.ts"

/** What the records that this program writes for Codex carry beside their own form: exact parts, marks and the layout of a compaction. */

/** The type of an item that Codex ignores. It carries parts for which Codex has no form. */
export const carrier = "other"

/**
 * Writes a piece as a text without escapes or bytes that are not valid Unicode. Codex refuses a file or a line with such
 * bytes, so these pieces are stored as JSON within a JSON string.
 */
export const escapedPiece = ({ part, source }: Piece): string =>
  JSON.stringify(source === undefined ? { part } : { part, source })

const readEscaped = (value: unknown): Piece | undefined => {
  const piece = typeof value === "string" ? objectOf(value) : undefined
  return piece !== undefined && isPart(piece.part) ? { part: piece.part, source: textAt(piece, "source") } : undefined
}

/** Returns the exact parts of a record; undefined when its own form is exact. */
export const readExact = (record: Json, text: string): ReadonlyArray<Piece> | Problem | undefined => {
  const { escaped } = marksOf(record)
  if (escaped === undefined) return exactPieces(record, text, "parts")
  const found = Array.isArray(escaped) ? escaped.map(readEscaped) : [undefined]
  const whole = found.filter((piece) => piece !== undefined)
  return whole.length === found.length
    ? whole
    : recordProblem("palimpsest.escaped", "expected a list of parts, each in a text")
}

const roleOf = (value: unknown): Content["role"] | undefined =>
  value === "user" || value === "model" ? value : undefined

/**
 * The data of a compaction that this program wrote about one of its items. `item` is its number; `missing` concerns earlier
 * parts for which Codex has no form. It stands for the next `parts` of the record's exact parts.
 */
export interface Layout extends Pick<Marks, "author" | "message"> {
  readonly item: number
  readonly missing?: true
  readonly role: Content["role"]
  readonly parts?: number
}

/** An item of a compaction with its marks and exact parts. */
export interface PlacedItem {
  readonly item: number
  readonly missing: boolean
  readonly role: Content["role"]
  readonly marks: Marks
  readonly exact: ReadonlyArray<Piece> | undefined
}

/** Returns the layout of a compaction, with each exact part in its place; empty when there is none. */
export const readLayout = (record: Json, exact: ReadonlyArray<Piece>): ReadonlyArray<PlacedItem> | Problem => {
  const wrong = recordProblem("palimpsest.layout", "expected a list that says where each exact part belongs")
  const { layout = [] } = marksOf(record)
  if (!Array.isArray(layout)) return wrong
  const arranged: Array<PlacedItem> = []
  let from = 0
  for (const value of layout) {
    if (!isJson(value)) return wrong
    const { item, missing, parts } = value
    const role = roleOf(value.role)
    if (typeof item !== "number" || role === undefined) return wrong
    const to = from + (natural(parts) ?? 0)
    arranged.push({
      item,
      missing: missing === true,
      role,
      marks: readMarks({ palimpsest: value }),
      exact: parts === undefined ? undefined : exact.slice(from, to)
    })
    from = to
  }
  return from === exact.length ? arranged : wrong
}

/** Applies marks and exact parts to an item. */
export const withMarks = (found: ItemMessage, marks: Marks, exact: ReadonlyArray<Piece> | undefined): ItemMessage => ({
  ...found,
  author: markedAuthor(marks, found.author),
  parts: exact ?? found.parts
})

/** Reads an item that carries parts for which Codex has no form. */
export const carriedBy = (item: Json): ItemMessage | Problem => {
  const role = roleOf(item.role)
  return role === undefined
    ? recordProblem("role", 'expected "user" or "model" in an item of ours')
    : messageOf(role, [])
}
