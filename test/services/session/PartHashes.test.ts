import { Layer } from "effect"
import { call, text, user } from "../../../src/domain/content/Content.ts"
import { entryId } from "../../../src/domain/conversation/Conversation.ts"
import * as MemoryTempStore from "../../../src/layers/testing/MemoryTempStore.ts"
import { HandleIndex, makeEntry } from "../../../src/services/session/EntryBuilder.ts"
import { hashOfPart } from "../../../src/services/session/PartHashes.ts"
import { TempStore } from "../../../src/services/session/TempStore.ts"
import { TokenCounter } from "../../../src/services/tokens/TokenCounter.ts"
import { assert, it } from "../../support/vitest.ts"

it.effect(
  "the hash of a part is known with its message, and not with other JSON texts of it",
  Layer.merge(MemoryTempStore.layer, TokenCounter.layerEstimate),
  function* () {
    const { hash } = yield* TempStore
    const source = { "1": '{ "functionCall": { "name": "f", "args": 1.0 } }' }
    const draft = { content: user(text("words"), call("f", 1)), source }
    assert.isUndefined(hashOfPart(draft, 0))
    const entry = yield* makeEntry(draft, entryId(1), new HandleIndex())
    assert.strictEqual(hashOfPart(entry, 0), yield* hash("words"))
    const bounded = { ...entry, bounded: {} }
    assert.strictEqual(hashOfPart(bounded, 1), yield* hash(source["1"]))
    assert.isUndefined(hashOfPart(entry, 2))
    assert.isUndefined(hashOfPart({ ...entry, source: { ...source } }, 1))
    assert.isUndefined(hashOfPart({ ...entry, content: user(...entry.content.parts) }, 0))
  }
)
