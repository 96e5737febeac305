import { assert, it } from "@effect/vitest"
import { model, text, user } from "../../../../src/domain/content/Content.ts"
import { previousSummary } from "../../../../src/services/compression/strategies/SummaryRunner.ts"
import { entryOf } from "../../../support/entries.ts"

it("the newest of several summaries is continued, whichever strategy wrote it", () => {
  const older = entryOf(1, user(text("<summary>\nthe older one\n</summary>")), { author: "summary" })
  const acknowledged = entryOf(2, model(text("Got it.")), { author: "summary" })
  const newer = entryOf(3, user(text("read this:\n<summary>\nthe newer one\n</summary>")), { author: "summary" })
  const words = entryOf(4, user(text("<summary>\nmy own words\n</summary>")))
  const plain = entryOf(5, user(text("of two parts"), text("without a frame")), { author: "summary" })
  assert.isUndefined(previousSummary([words]))
  assert.strictEqual(previousSummary([older, acknowledged, words]), "the older one")
  assert.strictEqual(previousSummary([older, acknowledged, newer, words]), "the newer one")
  assert.strictEqual(previousSummary([older, newer, plain, words]), "without a frame")
})
