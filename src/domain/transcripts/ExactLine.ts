import type { Draft } from "../conversation/Conversation.ts"
import { isJson, type Json } from "../text/JsonObject.ts"
import { type Piece, samePieces } from "./ExactParts.ts"
import { recordLine } from "./RecordLine.ts"
import { keysMark, type Marks, type Native, usageMark } from "./RecordMarks.ts"

/** Writes a message as a line of another agent's format, with the exact parts where that would lose something. */

/** What a line of a message stands for, besides its record. */
export interface LineContent {
  readonly pieces: ReadonlyArray<Piece>
  readonly marks: Marks
  /** The message that begins with this line. */
  readonly opens: Draft | undefined
}

/** Writes a record in its own form, together with everything that a reader of this form would lose. */
export const exactLine = (
  record: Json,
  { marks, opens, pieces }: LineContent,
  readBack: (value: Json, line: string) => Native
): string => {
  const native = recordLine(record)
  // Own JSON: the line was parsed before.
  const value: unknown = JSON.parse(native)
  const read = readBack(isJson(value) ? value : {}, native)
  const all: Marks = {
    ...marks,
    ...(opens === undefined || opens.author === read.author ? {} : { author: opens.author ?? null }),
    ...(opens === undefined ? {} : { ...keysMark(opens), ...usageMark(opens, read.usage) })
  }
  const isExact = samePieces(read.pieces, pieces)
  return isExact && Object.keys(all).length === 0 ? native : recordLine(record, isExact ? {} : { parts: pieces }, all)
}
