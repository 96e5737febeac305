import type { Author, Draft } from "../conversation/Conversation.ts"
import { foreignNote, foreignNotes } from "../conversation/Projection.ts"
import { runtimeMark } from "../text/RuntimeMark.ts"
import { type Piece, piecesOf } from "./ExactParts.ts"

/** Names the author of a message in a note in front of it, for formats without a field for the author. */

/** Returns the pieces of a message, after a note that names the author when the role does not tell who it is. */
export const withAuthorNote = (draft: Draft): ReadonlyArray<Piece> => {
  const note = foreignNote(draft)
  return note === undefined ? piecesOf(draft) : [{ part: { text: note }, source: undefined }, ...piecesOf(draft)]
}

/** The note before a summary in files that earlier versions wrote. */
const olderSummaryNote = `${runtimeMark} What follows was written by a model: a summary of what was said before.`

/** The inverse of `withAuthorNote`: returns the author from the note, and the pieces without it. */
export const splitAuthorNote = (
  pieces: ReadonlyArray<Piece>
): { readonly author: Author | undefined; readonly pieces: ReadonlyArray<Piece> } => {
  const first = pieces[0]?.part
  // A note is a plain text: not a thought, and without a signature.
  const note = first !== undefined && Object.keys(first).length === 1 ? first.text : undefined
  const isSummary = note === foreignNotes.summary || note === olderSummaryNote
  const author = isSummary ? "summary" : note === foreignNotes.program ? "program" : undefined
  return { author, pieces: author === undefined ? pieces : pieces.slice(1) }
}
