import { assert, it } from "@effect/vitest"
import { model, text, user } from "../../../../src/domain/content/Content.ts"
import { type Entry, entryId } from "../../../../src/domain/conversation/Conversation.ts"
import { previousSummary } from "../../../../src/services/compression/strategies/SummaryRunner.ts"

const entryOf = (n: number, content: Entry["content"], author?: Entry["author"]): Entry => ({
  id: entryId(n),
  content,
  tokens: content.parts.map(() => 1),
  handles: [],
  ...(author === undefined ? {} : { author })
})

it("the newest of several summaries is continued, whichever strategy wrote it", () => {
  const older = entryOf(1, user(text("<summary>\nthe older one\n</summary>")), "summary")
  const acknowledged = entryOf(2, model(text("Got it.")), "summary")
  const newer = entryOf(3, user(text("read this:\n<summary>\nthe newer one\n</summary>")), "summary")
  const words = entryOf(4, user(text("<summary>\nmy own words\n</summary>")))
  const plain = entryOf(5, user(text("of two parts"), text("without a frame")), "summary")
  assert.isUndefined(previousSummary([words]))
  assert.strictEqual(previousSummary([older, acknowledged, words]), "the older one")
  assert.strictEqual(previousSummary([older, acknowledged, newer, words]), "the newer one")
  assert.strictEqual(previousSummary([older, newer, plain, words]), "without a frame")
})
