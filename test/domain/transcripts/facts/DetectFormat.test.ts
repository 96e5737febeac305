import { assert, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import { gunzipSync } from "node:zlib"
import { formatOfRecord, detectFormat } from "../../../../src/domain/transcripts/facts/DetectFormat.ts"
import type { FormatName } from "../../../../src/domain/transcripts/Transcript.ts"
import { corpus } from "../../../support/corpus.ts"

/** How files begin that agents, and other programs, write. */
const heads = corpus<readonly [name: string, head: string, format: FormatName | null]>("heads-of-files")

describe("detect", () => {
  it.each(heads)("%s", (_, head, format) => {
    assert.strictEqual(detectFormat(head) ?? null, format)
  })

  it.each([
    ["claude-code-short", "claude"],
    ["claude-code-tools", "claude"],
    ["claude-code-subagent", "claude"],
    ["claude-code-1512-lines", "claude"],
    ["pi-1019-lines", "pi"]
  ])("real file %s: its first KB is enough, and every line says the same or nothing", (name, format) => {
    const file = gunzipSync(readFileSync(new URL(`../../../fixtures/sessions/${name}.jsonl.gz`, import.meta.url)))
    const text = file.toString("utf8")
    assert.strictEqual(detectFormat(text.slice(0, 1024)), format)
    const found = new Set(
      text.split("\n").flatMap((line) => (line === "" ? [] : (formatOfRecord(JSON.parse(line)) ?? [])))
    )
    assert.deepStrictEqual([...found], [format])
  })
})
