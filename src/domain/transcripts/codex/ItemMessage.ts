import { type Content, isPart } from "../../content/Content.ts"
import type { Author } from "../../conversation/Conversation.ts"
import { isJson, type Json } from "../../text/JsonObject.ts"
import { parsedOrUndefined } from "../../text/JsonText.ts"
import type { OpenAnswer, Piece } from "../ExactParts.ts"
import { textAt } from "../JsonRecord.ts"
import { isProblem, type Problem, recordProblem } from "../Problem.ts"
import { marksOf } from "../RecordLine.ts"
import { markedAuthor, type Marks, readMarks } from "../RecordMarks.ts"

/** The message that a response item of Codex makes, by its own form or by what this program wrote beside it. */

/** The message of a response item. */
export interface ItemMessage {
  readonly role: Content["role"]
  readonly author: Author | undefined
  /** Consecutive items of the same kind form one message. */
  readonly joins: "model" | "answers" | undefined
  readonly parts: ReadonlyArray<Piece | OpenAnswer>
  /** The call that the item makes. */
  readonly call: { readonly id: string; readonly name: string } | undefined
  /** The result of that call, when the item has it too. */
  readonly result?: ItemMessage
}

/** Makes the message of an item. Those of the model join each other. */
export const messageOf = (role: Content["role"], list: ReadonlyArray<Piece>, author?: Author): ItemMessage => ({
  role,
  author,
  joins: role === "model" ? "model" : undefined,
  parts: list,
  call: undefined
})

/** Parses a text as a JSON object; undefined when it is not one. */
export const objectOf = (text: string): Json | undefined => {
  const value = parsedOrUndefined(text)
  return isJson(value) ? value : undefined
}

/** Whether an item joins the message before it: consecutive items of the model, and consecutive tool results. */
export const continuesMessage = (before: ItemMessage["joins"], next: ItemMessage["joins"]): boolean =>
  next !== undefined && before === next

/** The type of an item that Codex ignores. It carries a message for which Codex has no form. */
export const carrier = "other"

/**
 * Writes exact parts as texts without escapes or bytes that are not valid Unicode: Codex refuses a file or a line with such bytes. So each
 * is JSON within a JSON string.
 */
export const escaped = (pieces: ReadonlyArray<Piece>): ReadonlyArray<string> =>
  pieces.map(({ part, source }) => JSON.stringify(source === undefined ? { part } : { part, source }))

const readEscaped = (value: unknown): Piece | undefined => {
  const piece = typeof value === "string" ? objectOf(value) : undefined
  return piece !== undefined && isPart(piece.part) ? { part: piece.part, source: textAt(piece, "source") } : undefined
}

/** Returns the exact parts that a record carries; undefined when its own form is exact. */
export const readExact = (record: Json): ReadonlyArray<Piece> | Problem | undefined => {
  const { escaped: list } = marksOf(record)
  if (list === undefined) return undefined
  const found = Array.isArray(list) ? list.map(readEscaped) : [undefined]
  const whole = found.filter((piece) => piece !== undefined)
  return whole.length === found.length
    ? whole
    : recordProblem("palimpsest.escaped", "expected a list of parts, each in a text")
}

/** Applies the marks and exact parts of a record to the message of its item. */
export const withMarks = (
  found: ItemMessage,
  { author }: Marks,
  exact: ReadonlyArray<Piece> | undefined
): ItemMessage => ({
  ...found,
  author: markedAuthor({ author }, found.author),
  parts: exact ?? found.parts
})

/** Reads a message that this program carries beside Codex's own forms. */
export const carriedMessage = (item: unknown, of: unknown = item): ItemMessage | Problem => {
  const role = isJson(item) ? item.role : undefined
  const exact = isJson(of) ? readExact(of) : undefined
  if (isProblem(exact)) return exact
  return isJson(of) && (role === "user" || role === "model")
    ? withMarks(messageOf(role, []), readMarks(of), exact)
    : recordProblem("role", 'expected "user" or "model" in a message of ours')
}
