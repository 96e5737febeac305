import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { formatFor } from "../../../src/domain/transcripts/FileExtension.ts"
import type { FormatName } from "../../../src/domain/transcripts/Transcript.ts"

/** The format of a file, or what is said where it has none. */
const formatOf = (file: string, wanted?: FormatName) => Result.merge(formatFor(file, wanted))

describe("the format of an output file", () => {
  for (const [file, wanted, format] of [
    ["talk.md", undefined, "markdown"],
    ["Talk.MD", undefined, "markdown"],
    ["a/b.c/talk.json", undefined, "contents"],
    ["talk.jsonl", undefined, "palimpsest"],
    ["talk.jsonl", "claude", "claude"],
    ["talk.json", "gemini", "gemini"],
    // A format that is named decides where the name says nothing.
    ["talk.log", "codex", "codex"],
    ["talk", "pi", "pi"]
  ] as const) {
    it(`${file}${wanted === undefined ? "" : ` as ${wanted}`}: ${format}`, () =>
      assert.strictEqual(formatOf(file, wanted), format))
  }

  for (const [file, wanted, says] of [
    ["talk.txt", undefined, /^no format is written to \.txt; end it in \.md[^\n]*\.json[^\n]*\.jsonl[^\n]*claude/],
    ["talk", undefined, /^the name has no ending; /],
    [".md", undefined, /^the name has no ending; /],
    ["talk.constructor", undefined, /^no format is written to \.constructor; /],
    ["talk.md", "claude", /^\.md is for markdown; the format claude goes into \.jsonl$/],
    ["talk.json", "palimpsest", /^\.json is for contents or gemini; the format palimpsest goes into \.jsonl$/],
    ["talk.jsonl", "contents", /goes into \.json$/]
  ] as const) {
    it(`${file}${wanted === undefined ? "" : ` as ${wanted}`} is refused`, () =>
      assert.match(formatOf(file, wanted), says))
  }
})
