import { assert, it } from "@effect/vitest"
import { runSync } from "../../../src/domain/text/SlicedWork.ts"
import { claudeReader } from "../../../src/domain/transcripts/claude/ClaudeReader.ts"
import { codexReader } from "../../../src/domain/transcripts/codex/CodexReader.ts"
import { geminiReader } from "../../../src/domain/transcripts/gemini/GeminiReader.ts"
import { piReader } from "../../../src/domain/transcripts/pi/PiReader.ts"
import { problemText } from "../../../src/domain/transcripts/Problem.ts"
import { agentRecords } from "../../support/agentRecords.ts"
import { corpus } from "../../support/corpus.ts"
import { bad, ok, reading, told } from "../../support/reading.ts"

/** What a reader says of a record that it cannot read, and that such a record can be skipped. */

const readers = { claude: claudeReader, codex: codexReader, gemini: geminiReader, pi: piReader }
const rows = corpus<{
  readonly agent: keyof typeof readers
  readonly rule: string
  readonly records: ReadonlyArray<unknown>
  /** The broken record, from 1. */
  readonly line: number
  /** What the problem begins with. */
  readonly where: string
}>("broken-records")

/** What is told of these records and of a message after them, without those that are a problem. */
const toldOf = (agent: keyof typeof readers, records: ReadonlyArray<unknown>) => {
  const reader = readers[agent]()
  const all = [...records, ...agentRecords[agent].records([{ user: "Go on." }])]
  for (const [index, record] of all.entries()) reader.line(record, JSON.stringify(record), index + 1)
  const transcript = ok(runSync(reader.end()))
  assert.include(told(transcript), "user: Go on.")
  return [told(transcript), transcript.skipped, transcript.session]
}

it.each(rows)("a broken record $agent: $rule", ({ agent, line, records, where }) => {
  const problem = bad(reading(readers[agent])(records.map((record) => JSON.stringify(record))))
  assert.deepStrictEqual([problem.line, problemText(problem).startsWith(where)], [line, true], problemText(problem))
  assert.notInclude(problemText(problem), "\n")
  const isOfLine = readers[agent]().line(records[line - 1], JSON.stringify(records[line - 1]), 1) !== undefined
  if (isOfLine && records.length === line)
    assert.deepStrictEqual(
      toldOf(agent, [...records, ...records]),
      toldOf(agent, [...records.slice(0, -1), ...records.slice(0, -1)])
    )
})
