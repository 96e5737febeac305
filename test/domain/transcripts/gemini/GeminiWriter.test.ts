import { assert, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import { model, text, user } from "../../../../src/domain/content/Content.ts"
import type { Transcript } from "../../../../src/domain/transcripts/Transcript.ts"
import { draftsIn, readText, recordsOf, said, says, transcriptOf, writtenText } from "../../../support/transcripts.ts"

/** What Gemini CLI asks of a file. What its records are like is in `test/golden/written-gemini.txt`, for each row of `writers.test.ts`. */

it("a session without an id has one of its messages, and is read without any", () => {
  const idOf = (...words: ReadonlyArray<string>) =>
    recordsOf("gemini", words.map(says), { session: undefined })[0]?.sessionId
  const ids = [idOf(), idOf("a"), idOf("b"), idOf("a", "b"), idOf("a", "c", "b"), idOf("c", "b")]
  for (const id of ids) assert.match(String(id), /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/)
  assert.strictEqual(new Set(ids).size, ids.length)
})

it("skips ids that are taken, however many", () => {
  const taken = Array.from({ length: 20_000 }, (_, index) => `m${index + 1}`)
  const [, record] = recordsOf("gemini", [said(user(text("a")), { origin: { line: 1, ids: ["", ...taken] } })])
  assert.strictEqual(record?.id, "m20001")
})

it("a document of Gemini CLI is written back unchanged", () => {
  const file = new URL("../../../fixtures/gemini/session-2026-02-03T10-15-5f0c2d1a.json", import.meta.url)
  const original = readText(readFileSync(file, "utf8"))
  const { text: again, unheld } = writtenText("gemini document", original)
  assert.deepStrictEqual(unheld, { "environment message": 1 })
  const known = (transcript: Transcript) => draftsIn(transcript).map(({ origin: _, ...rest }) => rest)
  assert.deepStrictEqual(known(readText(again)), known(original))
})

it("names tokens written to a cache as left out, where there are some", () => {
  const unheldOf = (cacheWrite: number) => {
    const usage = { prompt: 9, cached: 1, cacheWrite, answer: 2, thoughts: 0 }
    return writtenText("gemini", transcriptOf([says("a"), said(model(text("b")), { usage })])).unheld
  }
  assert.deepStrictEqual([0, 1].map(unheldOf), [{}, { "tokens written to a cache": 1 }])
})
