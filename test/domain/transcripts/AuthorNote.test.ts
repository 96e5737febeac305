import { assert, describe, it } from "@effect/vitest"
import { foreignNotes } from "../../../src/domain/conversation/Projection.ts"
import { runtimeMark } from "../../../src/domain/text/RuntimeMark.ts"
import { splitAuthorNote } from "../../../src/domain/transcripts/AuthorNote.ts"

describe("the note in front of a summary", () => {
  const piece = (text: string) => ({ part: { text }, source: undefined })
  it("says nothing of who wrote it, because code writes summaries too", () => {
    assert.notInclude(foreignNotes.summary, "model")
  })
  it.each([
    foreignNotes.summary,
    `${runtimeMark} What follows was written by a model: a summary of what was said before.`
  ])("is read as %s", (note) => {
    const read = splitAuthorNote([piece(note), piece("They asked about tides.")])
    assert.deepStrictEqual(read, { author: "summary", pieces: [piece("They asked about tides.")] })
  })
})
