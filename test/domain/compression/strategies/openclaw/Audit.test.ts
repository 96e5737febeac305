import { assert, describe, it } from "@effect/vitest"
import { completed } from "../../../../../src/domain/compression/strategies/openclaw/Audit.ts"

describe("a completed summary", () => {
  it("says nothing is there where nothing was added alone", () => {
    const summary = "## Exact identifiers\nNone.\n\n## Pending user asks\nNone."
    assert.strictEqual(
      completed(summary, { headings: [], identifiers: ["a-1"], ask: false }, ""),
      "## Exact identifiers\n- a-1\n\n## Pending user asks\nNone."
    )
  })
})
