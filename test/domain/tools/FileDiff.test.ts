import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { fileDiff, numberedDiff } from "../../../src/domain/tools/FileDiff.ts"
import { applyDiff } from "../../support/applyDiff.ts"
import { runsOf, sizeOf } from "../../support/runs.ts"

const Text = Schema.Array(Schema.Literals(["a\n", "b\n", "\n", "  a\n", "- c\n", "+\r\n", "é", "@@ -1 +1 @@\n"]))

describe("the diff of a file", () => {
  it("one replaced line", () => {
    assert.deepStrictEqual(
      fileDiff("README.md", "Welcome to the Gemini CLI!\n", "Welcome to the awesome Gemini CLI!\n"),
      {
        diff: "--- a/README.md\n+++ b/README.md\n@@ -1 +1 @@\n-Welcome to the Gemini CLI!\n+Welcome to the awesome Gemini CLI!\n",
        added: 1,
        removed: 1
      }
    )
  })

  it("a new file", () => {
    const { added, diff, removed } = fileDiff("test.md", "", "This is a test file.")
    assert.isTrue(diff.startsWith("--- a/test.md\n+++ b/test.md\n@@ -0,0 +1 @@\n+This is a test file.\n"))
    assert.deepStrictEqual([added, removed], [1, 0])
  })

  it("is empty without a change", () => {
    assert.deepStrictEqual(fileDiff("a", "x\n", "x\n"), { diff: "", added: 0, removed: 0 })
  })

  it("a name with a line break cannot forge a line", () => {
    const { diff } = fileDiff("a\n+evil", "x\n", "y\n")
    assert.strictEqual(diff.split("\n")[0], `--- "a/a\\n+evil"`)
    assert.strictEqual(diff.split("\n")[2], "@@ -1 +1 @@")
  })

  it("shows no binary content", () => {
    assert.strictEqual(fileDiff("a.bin", "\0x", "\0y").diff, "Binary files a/a.bin and b/a.bin differ\n")
  })

  it("names files with a line of millions of characters without comparing them", () => {
    const giant = "x".repeat(20_000_000)
    const differ = { diff: "Files a/a.js and b/a.js differ: a line is too long to compare\n", added: 0, removed: 0 }
    assert.deepStrictEqual(fileDiff("a.js", giant, "short\n"), differ)
    assert.deepStrictEqual(fileDiff("a.js", "short\n", `a\n${giant}\nb`), differ)
    assert.deepInclude(fileDiff("a.js", `${"line\n".repeat(300_000)}old\n`, "line\n".repeat(300_000)), { removed: 1 })
  })

  it("compares two long unrelated texts correctly within limits", () => {
    const length = sizeOf(20_000, 5_000)
    const before = Array.from({ length }, (_, n) => `before ${n}\n`).join("")
    const after = Array.from({ length }, (_, n) => `after ${n}\n`).join("")
    const { added, diff, removed } = fileDiff("a", before, after)
    assert.deepStrictEqual([added, removed], [length, length])
    assert.strictEqual(applyDiff(before, diff), after)
  })

  it("is the smallest of a thousand edits in two long texts", () => {
    const before = Array.from({ length: 5_000 }, (_, n) => `${String(n).padStart(39, "-")}\n`)
    const after = before.map((line, n) => (n % 50 === 0 ? `changed ${n}\n` : line))
    assert.deepInclude(fileDiff("a", before.join(""), after.join("")), { added: 100, removed: 100 })
  })

  it.prop(
    "yields the new text when applied to the old",
    [Text, Text],
    ([before, after]) => {
      const [from, to] = [before.join(""), after.join("")]
      const { added, diff, removed } = fileDiff("a", from, to)
      assert.strictEqual(applyDiff(from, diff), to)
      const count = (text: string) => (text.match(/[^\n]*\n|[^\n]+$/g) ?? []).length
      assert.strictEqual(count(to) - count(from), added - removed)
    },
    { arbitrary: { runs: runsOf(1_000) } }
  )

  it("has the numbers of its lines, and takes nothing for a line of it that is not", () => {
    const lines = [
      "--- a/x",
      "@@ -3,2 +3,3 @@ f",
      " same",
      "-@@ -1 +1 @@",
      "+one",
      "+-- two",
      "+three",
      "\\ No newline at end of file",
      "@@ -9 +10,0 @@",
      "-last"
    ]
    assert.deepStrictEqual(
      numberedDiff(lines).map(({ kind, number }) => `${number ?? ""} ${kind}`.trim()),
      ["other", "heading", "3 context", "4 removed", "4 added", "5 added", "other", "other", "heading", "9 removed"]
    )
  })

  it("begins no hunk before the one above has its lines", () => {
    const kinds = (...lines: ReadonlyArray<string>) => numberedDiff(lines).map(({ kind }) => kind)
    const next = "@@ -9 +9 @@"
    assert.deepStrictEqual(kinds("@@ -1,2 +0,0 @@", next, "-a", "-b", next), [
      "heading",
      "other",
      "removed",
      "removed",
      "heading"
    ])
    assert.deepStrictEqual(kinds("@@ -0,0 +1,2 @@", next, "+a", "+b", next), [
      "heading",
      "other",
      "added",
      "added",
      "heading"
    ])
  })
})
