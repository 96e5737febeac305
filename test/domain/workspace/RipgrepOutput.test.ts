import { assert, describe, it } from "@effect/vitest"
import { addOutput, endOutput, noOutput } from "../../../src/domain/workspace/RipgrepOutput.ts"

const read = (...pieces: ReadonlyArray<string>) => {
  const output = noOutput()
  for (const piece of pieces) addOutput(output, piece)
  endOutput(output)
  return output
}

/** A line of the output: the name ends with NUL. */
const line = (shown: string) => shown.replace(":", "\0")

const notice = `b: binary file matches (found "\\0" byte around offset 9)\n`

describe("the output of ripgrep", () => {
  it("returns the lines of each file, in whatever pieces they arrive", () => {
    const text = ["a:1:one\r\n", "a:2:t:wo\n", "b:7:three\n"].map(line).join("")
    const lines = {
      a: [
        { number: 1, text: "one" },
        { number: 2, text: "t:wo" }
      ],
      b: [{ number: 7, text: "three" }]
    }
    for (const pieces of [[text], [...text]]) {
      const output = read(...pieces)
      assert.deepStrictEqual(Object.fromEntries(output.files), lines)
      assert.deepStrictEqual([output.count, output.isAmbiguous, output.notices.length], [3, false, 0])
    }
  })

  it("separates notices from names, also at the end", () => {
    assert.deepStrictEqual(read(`${notice}${line("a:1:x\n")}`).notices, [{ all: `${notice}a`, binary: "b" }])
    const output = read(`${line("a:1:x\n")}${notice}`)
    assert.deepStrictEqual([output.notices, output.isAmbiguous], [[{ all: notice, binary: "b" }], false])
  })

  it.each([line("a:x:one\n"), line("a:0:one\n"), line("a:1 one\n"), "left over", "x".repeat(1_048_577)])(
    "is ambiguous in another form: %#",
    (text) => assert.isTrue(read(text).isAmbiguous)
  )
})
