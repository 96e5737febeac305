import { assert, it } from "@effect/vitest"
import { unreadable } from "../../../src/cli/flags/ConversationInput.ts"
import { transcriptError, type TranscriptError } from "../../../src/services/transcripts/TranscriptError.ts"

const advice: ReadonlyArray<readonly [kind: TranscriptError["kind"], advice: string]> = [
  ["BrokenLine", "; use --lenient to skip broken lines"],
  ["UnknownFormat", ", or name the format with --from FORMAT"],
  ["TooLarge", "; to read it all the same set NODE_OPTIONS=--max-old-space-size=3"],
  ["UnknownSession", "; palimpsest find lists the sessions"],
  ["Unusable", ""]
]

it.each(advice)(
  "a conversation that cannot be read is bad input, with the flag or command that helps: %s",
  (kind, end) => {
    const { message, status } = unreadable(transcriptError("a.jsonl", 0, "no", kind, 3e6))
    assert.deepStrictEqual([status, message], [2, `a.jsonl: no${end}`])
  }
)
