import { assert, describe, it } from "@effect/vitest"
import { shellLine, shellWord } from "../../../src/domain/text/ShellWord.ts"

describe("a word of a shell line", () => {
  it.each([
    ["/usr/bin/node", "/usr/bin/node"],
    ["a b", "'a b'"],
    ["it's", `'it'\\''s'`],
    ["$HOME", "'$HOME'"],
    ["`x`", "'`x`'"],
    ["~/x", "'~/x'"],
    ["x~", "x~"],
    ["", "''"],
    ["a\nb", "'a\nb'"]
  ])("%j is written %s", (word, written) => {
    assert.strictEqual(shellWord(word), written)
  })

  it("on Windows is in double quotes where it has a backslash or a space", () => {
    assert.strictEqual(shellLine(["C:\\a b\\node.exe", "hook"], "\\"), `"C:\\a b\\node.exe" hook`)
  })
})
