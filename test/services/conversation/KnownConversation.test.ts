import { Effect, Layer } from "effect"
import { FailedTokenCountError, Noop } from "../../../src/domain/compression/Compression.ts"
import { defaultPolicy } from "../../../src/domain/compression/strategies/Policy.ts"
import { model, text, user } from "../../../src/domain/content/Content.ts"
import { Handle } from "../../../src/domain/content/Handle.ts"
import { entries, entryId, type Patch, view } from "../../../src/domain/conversation/Conversation.ts"
import { defaultModelName } from "../../../src/domain/conversation/FailureMemory.ts"
import { applyEvent, emptySession, startedWith } from "../../../src/domain/session/Session.ts"
import { TokenCount } from "../../../src/domain/tokens/Tokens.ts"
import * as Offline from "../../../src/layers/assembly/Offline.ts"
import { Compression } from "../../../src/services/compression/Compression.ts"
import type { CompressRequest } from "../../../src/services/compression/strategies/CompressRequest.ts"
import {
  compress,
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

  it.effect("is compressed with what its session knows, and remembers a failure and a success", function* () {
    const asked: Array<CompressRequest> = []
    const policy = { ...defaultPolicy, summarizer: "model" as const }
    const before = TokenCount.make(9)
    const failed = FailedTokenCountError.make({ before, message: "away" })
    const layer = Layer.mock(Compression, {
      compress: (request) => {
        asked.push(request)
        return Effect.succeed({ outcome: failed, dropped: undefined, unusable: [defaultModelName] })
      }
    })
    const started = startedWith({ model: "m", cwd: "/work" }, "s", 1)
    let known = knownConversation(applyEvent(emptySession, started))
    for (let time = 0; time < 3; time += 1) {
      const { after, event } = yield* Effect.provide(compress(known, { policy, forced: false }), layer)
      assert.strictEqual(event?._tag, "CompressionFailed")
      known = after
    }
    // A model that gave nothing usable twice is not asked again.
    assert.deepStrictEqual(
      asked.map(({ cwd, family, policy: { summarizer } }) => [cwd, family, summarizer]),
      [
        ["/work", "m", "model"],
        ["/work", "m", "model"],
        ["/work", "m", "extractive"]
      ]
    )
    const nothing = Layer.mock(Compression, {
      compress: () => Effect.succeed({ outcome: Noop.make({ reason: "empty", before }), dropped: undefined })
    })
    const same = yield* Effect.provide(compress(known, { policy, forced: false }), nothing)
    assert.strictEqual(same.after, known)
    assert.isUndefined(same.event)
  })
})
