import { assert, describe, it } from "@effect/vitest"
import { distinctProblems, type MemoryProblem, memoryProblemText } from "../../../src/domain/memory/MemoryProblem.ts"

const missing = (file: string): MemoryProblem => ({ _tag: "LeftOut", file, fault: { _tag: "Missing" } })
const circle = (file: string, files: ReadonlyArray<string>): MemoryProblem => ({
  _tag: "NotImported",
  file,
  path: "./x.md",
  fault: { _tag: "Circle", files }
})

describe("the problems of memory files", () => {
  for (const [title, problems, expected] of [
    ["are one for equal problems", [missing("a"), missing("b"), missing("a")], ["a", "b"]],
    [
      "report a circle at its first way in only",
      [circle("a", ["/x", "/y"]), circle("b", ["/y", "/x"]), circle("c", ["/z"])],
      ["a", "c"]
    ]
  ] as const) {
    it(title, () =>
      assert.deepStrictEqual(
        distinctProblems(problems).map(({ file }) => file),
        [...expected]
      )
    )
  }

  it("are one line each in words", () => {
    assert.deepStrictEqual([missing("a"), circle("b", ["/y"])].map(memoryProblemText), [
      "a: there is no such file",
      "b: @./x.md was not imported: it is already being imported, so it imports itself"
    ])
  })
})
