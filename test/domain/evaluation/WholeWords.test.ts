import { assert, describe, it } from "@effect/vitest"
import type { AnchorKind } from "../../../src/domain/compression/Anchors.ts"
import { comparable, hasWord, relativeTo, SearchableText } from "../../../src/domain/evaluation/WholeWords.ts"

const cases: ReadonlyArray<readonly [name: string, kind: AnchorKind, text: string, isThere: boolean]> = [
  ["100", "number", "1000 lines", false],
  ["100", "number", "1,100 lines", false],
  ["100", "number", "in 100.", true],
  ["100", "number", "100.5", false],
  ["4.1", "number", "effect 4.1.0", false],
  ["lib/a.ts", "path", "see lib/a.ts:12", true],
  ["lib/a.ts", "path", "see packages/core/lib/a.ts.", true],
  ["lib", "path", "lib/a.ts", true],
  ["lib/a.ts", "path", "lib/a.tsx", false],
  ["lib/a", "path", "lib/a.ts", false],
  ["lib/a.ts", "path", "mylib/a.ts", false],
  ["lib/a.ts", "path", "my-lib/a.ts", false],
  ["credo.exs", "path", "edit .credo.exs", true],
  ["/etc/hosts", "path", "/private/etc/hosts", false],
  ["readFile", "symbol", "readFileSync", false],
  ["readFile", "symbol", "fs.readFile(path)", true],
  ["read_file", "symbol", "pre-read_file", false],
  ["read_file", "symbol", "- read_file", true],
  ["read_file", "symbol", "(-read_file, +write_file)", true],
  ["readFile", "symbol", String.raw`"output":"a\nreadFile\tb"`, true],
  ["--watch", "symbol", "npm test --watch=no", true],
  ["--watch", "symbol", "--watch-all", false],
  ["--watch", "symbol", "---watch", false],
  ["48f554e", "id", "commit 48f554e: done", true],
  ["48f554e", "id", "48f554e4", false]
]

describe("whole words", () => {
  it.each(cases)("%s (%s) in %s: %s", (name, kind, text, isThere) => {
    assert.strictEqual(hasWord(text, name, kind), isThere)
  })

  it("writes paths below the folders of a session in relative form, the innermost folder first", () => {
    const relative = relativeTo(["/work/project", "/work/project/packages/core/"])
    assert.strictEqual(
      relative("cd /work/project && cat /work/project/packages/core/lib/a.ts /work/project2/b.ts /work/project/c.ts"),
      "cd . && cat lib/a.ts /work/project2/b.ts c.ts"
    )
    assert.strictEqual(comparable("./lib/", relative), "lib")
  })

  it("answers for each kind by itself", () => {
    const text = new SearchableText("v1.100", (own) => own)
    assert.deepStrictEqual([text.has("100", "number"), text.has("100", "symbol")], [false, true])
  })

  it("finds paths that braces stand for, in any depth", () => {
    const text = new SearchableText("- lib/{a.ts (2 changes: +one, +two), b/{c.ts, d.ts: created}, e.ts}", (own) => own)
    for (const path of ["lib/a.ts", "lib/b/c.ts", "lib/b/d.ts", "lib/e.ts"]) assert.isTrue(text.has(path, "path"), path)
    assert.isFalse(text.has("lib/c.ts", "path"))
  })
})
