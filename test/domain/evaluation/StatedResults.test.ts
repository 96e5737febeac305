import { assert, describe, it } from "@effect/vitest"
import {
  around,
  citedEntry,
  clippedPlace,
  isResult,
  resultIn,
  statedResults,
  statedTests
} from "../../../src/domain/evaluation/StatedResults.ts"
import { readContext } from "../../../src/domain/evaluation/Statements.ts"

describe("the result that a text tells", () => {
  it.each([
    ["it ran", undefined],
    ["exit 0", "0"],
    ["exited with code 2", "2"],
    ["exit code: -1", "-1"],
    ["no exit code", "unknown"],
    ["no clear result", "unknown"],
    ["3 failed", "failed"],
    ["✗", "failed"],
    ["✅", "0"],
    ["no errors", "0"],
    ["0 failed, 2 errors", "failed"],
    ["passed, then failed", "failed"],
    ["failed, then exit 0", "0"],
    ["failed; passes now", "failed, then passed"],
    ["failed and passed after the fix", "failed, then passed"],
    ["the parser is cleaned", undefined],
    [`${"x".repeat(194)} passed`, undefined],
    [`${"x".repeat(193)} passed`, "0"]
  ])("%j: %s", (text, result) => assert.strictEqual(resultIn(text), result))

  it("answers a question for any other code where the code is not told", () => {
    const asked = ["0", "1", "failed"]
    const answers = ["0", "1", "-1", "2", "failed", "unknown", "failed, then passed"]
    assert.deepStrictEqual(
      asked.map((expected) => answers.filter((answer) => isResult(expected, answer))),
      [
        ["0", "failed, then passed"],
        ["1", "failed", "failed, then passed"],
        ["1", "-1", "2", "failed", "failed, then passed"]
      ]
    )
  })
})

it.each([
  ["none", 0],
  ["e0 and one2", 0],
  ["(e9, e12 h_aaaaaaaaaa)", 12],
  ["e12, e9", 12]
])("the entry that a text cites %j: %d", (text, entry) => assert.strictEqual(citedEntry(text), entry))

describe("what stands around a command", () => {
  it.each([
    ["npm test", { before: "", after: "" }],
    ["- `x`: npm test → exit 1", { before: "- `x`: ", after: " → exit 1" }],
    ["cd lib && npm test", undefined],
    ["cd lib; npm test", undefined],
    ["a | npm test", undefined],
    ["pnpm test", undefined],
    ["npm test -- --watch", undefined],
    ["npm tests", undefined],
    ["run npm test failed", { before: "run ", after: " failed" }],
    ["npm test -- x, and npm test: passed", { before: "npm test -- x, and ", after: ": passed" }],
    ["npm test 2>&1 | tail -3 (e4)", { before: "", after: " (e4)" }]
  ])("%j", (text, found) => assert.deepStrictEqual(around(text, "npm test", []), found))

  const command = "docker run --volume /a:/b image one"
  it.each([
    ["at the beginning", "docker run --volume /a:/b im… → exit 1", 0, 29],
    ["later", "ran docker run --volume /a:/b …", 4, 27],
    ["exactly the shortest beginning", "docker run --volume /a:/… (e1)", 0, 25],
    ["too short a beginning", "docker run --volume… (e1)", undefined, 0],
    ["another ending", "docker run --volume /a:/b it…", undefined, 0],
    ["no clipped text", "docker run --volume /a:/b im", undefined, 0],
    ["a clipped text before it", "x… docker run --volume /a:/b im", undefined, 0]
  ])("a clipped one: %s", (_, text, at, length) => {
    assert.deepStrictEqual(clippedPlace(text, command, [command]), at === undefined ? undefined : { at, length })
    assert.isUndefined(clippedPlace(text, command, [command, `${command.slice(0, 30)} two`]))
  })
})

describe("the results that a context tells of a command", () => {
  const commit = `git commit -m "Close the socket on cancel"`
  it.each<[string, string, ReadonlyArray<string>]>([
    ["after it", "- npm test → exit 2 (e4)", ["2 e4"]],
    ["before it", "- failed: npm test", ["failed e0"]],
    ["before it, a success", "- passed: npm test (e3)", ["0 e3"]],
    ["an open failure", "- unresolved failure of npm test (e3)", ["failed e3"]],
    ["by the heading above", "# Commands that succeeded\n- npm test (e3 h_aaaaaaaaaa)", ["0 e3"]],
    ["by a heading of failures", "# Failed commands\n- npm test (e3)", ["failed e3"]],
    ["by a heading that tells nothing", "# Commands\n- npm test (e3)", []],
    ["not by the heading where more is said", "# Commands that succeeded\n- npm test (e3), to be repeated", []],
    ["two", "- npm test: failed (e2)\n- npm test: passed (e5)", ["failed e2", "0 e5"]],
    [
      "a failure with its end, beside a state",
      "- npm test: failed, passed after a fix (e2)\n- npm test: exit 1 (e5)",
      ["1 e5"]
    ],
    ["a failure with its end, alone", "- npm test: failed, passed after a fix (e2)", ["failed, then passed e2"]]
  ])("%s", (_, text, stated) => {
    const results = statedResults(readContext(text), "npm test", ["npm test"])
    assert.deepStrictEqual(
      results.map(({ answer, entry }) => `${answer} e${entry}`),
      [...stated]
    )
  })

  it.each([
    ["its hash and subject", "- 48f554e Close the socket on cancel (e7)", true],
    ["its subject, clipped", "- 48f554e: Close the socket…", true],
    ["another subject", "- 48f554e Close the window on cancel", false],
    ["no hash", "- Close the socket on cancel", false],
    ["too short a subject", "- 48f554e Close the", false]
  ])("a commit by %s", (_, text, isStated) => {
    assert.strictEqual(statedResults(readContext(text), commit, [commit]).length > 0, isStated)
    assert.deepStrictEqual(statedResults(readContext(text), "git status", ["git status"]), [])
  })
})

it.each<[string, string, ReadonlyArray<string>]>([
  ["its line", "- test passed: npm test (e4)", ["passed e4"]],
  ["its line, before others", "- last test run: failed (e9)\n- 3 tests pass (e2)", ["failed e9"]],
  ["any statement about tests", "- 3 tests pass (e2)\n- specs are red (e5)", ["passed e2", "failed e5"]],
  ["no plan", "- the tests should pass", []],
  ["no other statement", "- the build passes (e2)", []]
])("the last test run that a context tells %s", (_, text, stated) => {
  assert.deepStrictEqual(
    statedTests(readContext(text)).map(({ answer, entry }) => `${answer} e${entry}`),
    [...stated]
  )
})
