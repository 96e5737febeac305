import { assert, describe, it } from "@effect/vitest"
import { runSync } from "../../../src/domain/text/SlicedWork.ts"
import { claudeReader } from "../../../src/domain/transcripts/claude/ClaudeReader.ts"
import { codexReader } from "../../../src/domain/transcripts/codex/CodexReader.ts"
import { readContents } from "../../../src/domain/transcripts/gemini/ContentsReader.ts"
import { geminiReader, readGeminiDocument } from "../../../src/domain/transcripts/gemini/GeminiReader.ts"
import { piReader } from "../../../src/domain/transcripts/pi/PiReader.ts"
import type { Transcript } from "../../../src/domain/transcripts/Transcript.ts"
import { corpus } from "../../support/corpus.ts"
import { drafts, ok, reading, told } from "../../support/reading.ts"

/** Which messages the records of each agent become: one rule a row of `test/fixtures/records-and-messages.jsonl`. */

interface Row {
  readonly agent: keyof typeof readers | "contents"
  readonly rule: string
  readonly records: ReadonlyArray<object>
  /** Whether the records after the first are also the messages of a document. */
  readonly isDocument?: true
  /** The messages and compactions, as `told` writes them. */
  readonly told: ReadonlyArray<string>
  /** Of each message: its time, model, line, ids and usage. */
  readonly about: ReadonlyArray<object>
  /** The transcript without its steps. */
  readonly whole: Partial<Transcript>
}
const readers = { claude: claudeReader, codex: codexReader, gemini: geminiReader, pi: piReader }

/** Reads lines of records; the only record of `contents` is the whole document. */
const readRow = ({ agent, records }: Row): Transcript => {
  const lines = records.map((record) => JSON.stringify(record))
  const [document = ""] = lines
  return ok(
    agent === "contents" ? runSync(readContents(JSON.parse(document), document)) : reading(readers[agent])(lines)
  )
}

const documentOf = ([about, ...messages]: ReadonlyArray<object>) => {
  const text = JSON.stringify({ ...about, messages })
  return ok(runSync(readGeminiDocument(JSON.parse(text), text)))
}

const rows = corpus<Row>("records-and-messages")

describe.each([...Object.keys(readers), "contents"])("%s", (name) => {
  it.each(rows.filter(({ agent }) => agent === name))("$rule", (row) => {
    const { about, isDocument, records, whole } = row
    const read = readRow(row)
    const aboutRead = drafts(read).map(({ at, model, origin, usage }) => ({ at, model, ...origin, usage }))
    assert.deepStrictEqual(JSON.parse(JSON.stringify(aboutRead)), about)
    for (const { shown, steps, unknown: _, ...transcript } of isDocument ? [read, documentOf(records)] : [read]) {
      assert.deepStrictEqual(told({ ...transcript, steps }), row.told)
      const all = { ...transcript, shown: shown && Object.fromEntries(shown) }
      assert.deepStrictEqual(JSON.parse(JSON.stringify(all)), whole)
    }
  })
})
