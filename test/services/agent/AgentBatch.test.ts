import { assert, it } from "@effect/vitest"
import { chainedTask, numberedResults } from "../../../src/services/agent/RunAgents.ts"

it("a chain inserts the previous answer into a task wherever it is named, as literal text", () =>
  assert.strictEqual(
    chainedTask("Check {previous}, then {previous}.", "$& {previous}"),
    "Check $& {previous}, then $& {previous}."
  ))

it("results are numbered in order, and share the room equally", () => {
  assert.strictEqual(numberedResults(["one", "two"]), "1. one\n\n2. two")
  const shared = numberedResults(["a".repeat(50_000), "b", "c", "d"])
  assert.isBelow(shared.length, 10_000)
  assert.include(shared, "a\n(41000 more characters)\n\n2. b")
})
