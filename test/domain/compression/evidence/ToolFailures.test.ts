import { assert, describe, it } from "@effect/vitest"
import type { Command } from "../../../../src/domain/actions/Action.ts"
import { decisiveCommand, failureText, isFailure } from "../../../../src/domain/compression/evidence/ToolFailures.ts"
import { response } from "../../../../src/domain/content/Content.ts"

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
  ["the name of a system's error, and no word like it", "every entire pass\nopen: ENOENT", "open: ENOENT"],
  ["the first two where none is telling", "one went\ntwo went\nthree went", "one went\ntwo went"],
  [
    "without what Codex writes before an output",
    "Chunk ID: a1\nWall time: 0.1 seconds\nProcess exited with code 130\nOriginal token count: 1\nOutput:\none went",
    "one went"
  ],
  [
    "the exit code where nothing was printed",
    "Chunk ID: a1\nWall time: 0.1 seconds\nProcess exited with code 2\nOutput:\n",
    "Process exited with code 2"
  ],
  ["a Windows path", "cannot open C:\\new\\a.txt", "cannot open C:\\new\\a.txt"],
  ["a tool's tags", "<tool_use_error>File does not exist.</tool_use_error>", "File does not exist."]
])("the lines that say why a call failed %s", (_, answer, lines) => assert.strictEqual(failureText(answer), lines))

describe("whether a script of several commands failed", () => {
  const ran = (command: string, output: string, known: Partial<Command> = {}): Command => ({
    _tag: "Command",
    command,
    exit: 0,
    output,
    ...known
  })
  it.each([
    ["no command", [], false],
    ["one that failed, after one that did not", [ran("make", "ok"), ran("git push", "", { exit: 1 })], true],
    ["a check whose output says so", [ran("npm test", "1 failed", { isExitHidden: true })], true],
    ["a check whose output does not tell", [ran("npm test", "", { isExitHidden: true })], false],
    ["an exit code that is known", [ran("npm test", "1 failed")], false],
    ["one that is running still", [ran("npm test", "1 failed", { exit: undefined })], false]
  ] as const)("%s", (_, actions, failed) => {
    assert.strictEqual(isFailure(actions, response("exec", { output: "Script completed" })), failed)
  })

  it("is decided by the first that failed, else by the first: of any three", () => {
    const ends: ReadonlyArray<readonly [known: Partial<Command>, failed: boolean]> = [
      [{}, false],
      [{ exit: 2 }, true],
      [{ exit: undefined }, false],
      [{ exit: undefined, isExitHidden: true }, false],
      [{ isExitHidden: true, output: "3 tests passed" }, false],
      [{ isExitHidden: true, output: "1 failed" }, true]
    ]
    for (const first of ends) {
      for (const second of ends) {
        for (const third of ends) {
          const rows = [first, second, third]
          const actions = rows.map(([known]) => ran("npm test", "", known))
          const failed = rows.findIndex(([, isFailed]) => isFailed)
          assert.strictEqual(decisiveCommand(actions), actions[Math.max(0, failed)], JSON.stringify(rows))
        }
      }
    }
  })
})
