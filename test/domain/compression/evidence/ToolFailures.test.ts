import { assert, describe, it } from "@effect/vitest"
import { failureText } from "../../../../src/domain/compression/evidence/ToolFailures.ts"

describe("the lines that say why a call failed", () => {
  it.each([
    ["a printed error", "Exit code 1\nbuilding\nerror: no such file\n", "error: no such file"],
    [
      "serialised JSON, line by line",
      '{"stderr":"compiling\\n  error: bad type\\n  error: bad type\\nerror: 2 failed"}',
      'error: bad type\nerror: 2 failed"}'
    ],
    ["no line without a word", "---\nerror: not set\n***", "error: not set"],
    [
      "the first three of many",
      "Exit code 1\nerror: one\nerror: two\nwell\nerror: three\nerror: four",
      "error: one\nerror: two\nerror: three"
    ],
    ["the first two where none is telling", "one went\ntwo went\nthree went", "one went\ntwo went"],
    ["a Windows path", "cannot open C:\\new\\a.txt", "cannot open C:\\new\\a.txt"],
    ["a tool's tags", "<tool_use_error>File does not exist.</tool_use_error>", "File does not exist."],
    [
      "the user's refusal",
      "The user doesn't want to proceed with this tool use. The tool use was rejected. To tell you how to proceed, the user said:\nuse pnpm",
      "not allowed; the user said:\nuse pnpm"
    ]
  ])("%s", (_, answer, lines) => assert.strictEqual(failureText(answer), lines))
})
