import { assert, describe, it } from "@effect/vitest"
import { distinctProblems, type MemoryProblem } from "../../../src/domain/memory/MemoryProblem.ts"

const missing = (text: string): MemoryProblem => ({ text })
const circle = (text: string, files: ReadonlyArray<string>): MemoryProblem => ({ text, circle: files })

describe("the problems of memory files", () => {
  for (const [title, problems, expected] of [
    ["are one for equal problems", [missing("a"), missing("b"), missing("a")], ["a", "b"]],
    [
      "report a circle at its first way in only",
      [circle("a", ["/x", "/y"]), circle("b", ["/y", "/x"]), circle("c", ["/z"])],
      ["a", "c"]
    ]
  ] as const) {
    it(title, () => assert.deepStrictEqual(distinctProblems(problems), [...expected]))
  }
})
