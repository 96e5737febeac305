import { model, text, user } from "../../../src/domain/content/Content.ts"
import { Handle } from "../../../src/domain/content/Handle.ts"
import { entries, entryId, type Patch, view } from "../../../src/domain/conversation/Conversation.ts"
import * as Offline from "../../../src/layers/assembly/Offline.ts"
import {
  knownConversation,
  entriesOf,
  textBehind,
  withEntries,
  withPatch
} from "../../../src/services/conversation/KnownConversation.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const drafts = ["one", "two", "three"].map((words, at) => ({ content: (at % 2 === 0 ? user : model)(text(words)) }))

describe("a known conversation", () => {
  it.effect("reads back what left, and what an earlier process inserted", Offline.layer, function* () {
    const begun = knownConversation()
    const whole = withEntries(begun, yield* entriesOf(begun, drafts))
    const [one, two, three] = entries(whole.conversation).flatMap(({ handles }) => handles)
    if (one === undefined || two === undefined || three === undefined) return assert.fail("a part has no handle")

    // The patch comes from the store: its handles are in no index of this process.
    const [summary, range] = [Handle.make("h_summaryaaa"), Handle.make("h_rangeaaaaa")]
    const content = user(text("A summary."))
    const patch: Patch = {
      drop: { from: entryId(1), to: entryId(2) },
      insert: [{ id: entryId(4), content, tokens: [3], handles: [summary] }],
      shorten: []
    }
    const after = withPatch(whole, patch, range)
    assert.deepStrictEqual(
      view(after.conversation).map(({ entry }) => entry.id),
      [entryId(4), entryId(3)]
    )
    assert.deepStrictEqual(
      [one, two, three, summary].map((handle) => textBehind(after, handle)),
      ["one", "two", "three", "A summary."]
    )
    const lines = textBehind(after, range)?.trimEnd().split("\n") ?? []
    assert.deepStrictEqual(
      lines.map((line) => JSON.parse(line).parts),
      [[text("one")], [text("two")]]
    )
    assert.strictEqual(textBehind(after, Handle.make("h_nothingaaa")), undefined)
    // The conversation before is another value.
    assert.deepStrictEqual([whole.ranges, view(whole.conversation).length], [undefined, 3])
  })
})
