import { assert, describe, it } from "@effect/vitest"
import {
  errorResponse,
  maxOutputChars,
  textDisplay,
  truncateDisplay,
  truncateMessage,
  truncateOutput,
  wireResponse
} from "../../../src/domain/tools/ToolResult.ts"
import { isUnitTier } from "../../support/runs.ts"

describe("a tool's result as a response", () => {
  it.each([
    ["a text is its output", "hello", { output: "hello" }],
    ["nothing is said to be nothing", "", { output: "The tool ran; it had no output." }],
    ["nothing at all, too", undefined, { output: "The tool ran; it had no output." }],
    ["an object is sent as it is", { fileName: "a" }, { fileName: "a" }],
    ["a list is its JSON", [1, 2], { output: "[1,2]" }],
    ["a number is its JSON", 3, { output: "3" }]
  ] as const)("%s", (_rule, value, answer) => assert.deepStrictEqual(wireResponse(value), answer))

  it("cuts the middle of a result above the limit, and says how much", () => {
    assert.strictEqual(truncateOutput("0123456789", 10), "0123456789")
    assert.strictEqual(
      truncateOutput("0123456789", 4),
      "01\n... [6 characters left out here: results are kept up to 4 characters] ...\n89"
    )
  })

  it("shows the user the end of a long output and the beginning of a long message", () => {
    assert.deepStrictEqual(
      truncateDisplay(textDisplay(`${"x".repeat(9_000_000)}end`)),
      textDisplay(`…${"x".repeat(1_997)}end`)
    )
    assert.deepStrictEqual(truncateDisplay(textDisplay("short")), textDisplay("short"))
    assert.strictEqual(truncateMessage(`no ${"x".repeat(9_000_000)}`).length, 2_001)
    assert.strictEqual(truncateMessage("no"), "no")
  })

  it.skipIf(isUnitTier)("turns hundreds of megabytes into a response of limited size", () => {
    const flood = "x".repeat(500_000_000)
    for (const answer of [
      wireResponse(flood),
      wireResponse({ all: flood.slice(0, 200_000_000) }),
      errorResponse(flood)
    ]) {
      const [text] = Object.values(answer)
      assert.isBelow(String(text).length, maxOutputChars + 200)
      assert.include(String(text), "characters left out here")
    }
  })
})
