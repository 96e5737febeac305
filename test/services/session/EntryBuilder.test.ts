import { Effect, Layer } from "effect"
import { call, response, text, user } from "../../../src/domain/content/Content.ts"
import { Handle, Hash } from "../../../src/domain/content/Handle.ts"
import { entryId } from "../../../src/domain/conversation/Conversation.ts"
import * as MemoryTempStore from "../../../src/layers/testing/MemoryTempStore.ts"
import { HandleIndex, makeEntry, rangeHandle, RangeName } from "../../../src/services/session/EntryBuilder.ts"
import { TempStore } from "../../../src/services/session/TempStore.ts"
import { TokenCounter } from "../../../src/services/tokens/TokenCounter.ts"
import { assert, it } from "../../support/vitest.ts"

/** Hashes that begin with the same 11 characters for all texts that begin with the same one, and end with their length. */
const hash = (bytes: Uint8Array | string) =>
  Effect.succeed(
    Hash.make(
      `${String(bytes)
        .slice(0, 1)
        .toLowerCase()
        .replace(/[^a-z]/, "x")
        .repeat(11)}${"abcdefghijklmnopqrstuvwxyz".charAt(bytes.length % 26)}`.padEnd(52, "2")
    )
  )
const services = Layer.merge(Layer.mock(TempStore, { hash }), TokenCounter.layerEstimate)

it.effect(
  "the same bytes have one handle and others another, also in a session that is opened again",
  services,
  function* () {
    const parts = [text("aa"), text("aaa"), text("aa"), text("b"), response("f", { output: "aaaa" }), call("g", {})]
    const draft = { content: user(...parts), source: { "5": "aaaaa" } }
    const held = new HandleIndex()
    const entry = yield* makeEntry(draft, entryId(1), held, [1, 2, 3, 4, 5, 6])
    const a = "h_aaaaaaaaaa"
    const b = Handle.make("h_bbbbbbbbbb")
    const handles = [a, `${a}a`, a, b, `${a}ae`, `${a}af`].map((name) => Handle.make(name))
    assert.deepStrictEqual(entry, { ...draft, id: entryId(1), tokens: [1, 2, 3, 4, 5, 6], handles })
    assert.deepStrictEqual((yield* makeEntry(draft, entryId(2), held)).handles, handles)
    const again = new HandleIndex()
    again.restore([{ ...entry, handles: entry.handles.slice(0, 5) }, entry])
    for (const index of [held, again]) {
      assert.deepStrictEqual(
        entry.handles.map((handle) => index.text(handle)),
        ["aa", "aaa", "aa", "b", "aaaa", "aaaaa"]
      )
      const later = yield* makeEntry({ content: user(text("aaaaaa"), text("b"), text("bb")) }, entryId(3), index)
      assert.deepStrictEqual(later.handles.map(String), [`${a}ag`, b, `${b}b`])
    }

    const lengths = yield* Effect.forEach([[entry], [entry, entry]], rangeHandle)
    assert.deepStrictEqual(lengths.map(String), ["h_eeeeeeeeee", "h_eeeeeeeeee"])
    const named = rangeHandle([entry]).pipe(Effect.provideService(RangeName, ([one]) => one?.handles[3]))
    assert.strictEqual(yield* named, b)
  }
)

it.effect("a range has the handle of all its parts: any other part, or another order, gives another one", () =>
  Effect.gen(function* () {
    const held = new HandleIndex()
    const made = (id: number, ...words: ReadonlyArray<string>) =>
      makeEntry({ content: user(...words.map((one) => text(one))) }, entryId(id), held)
    const [one, other, later] = [yield* made(1, "a", "b"), yield* made(1, "a", "c"), yield* made(2, "a", "b")]
    const ranges = [[one], [other], [later], [one, later], [later, one], []]
    const names = yield* Effect.forEach(ranges, rangeHandle)
    assert.strictEqual(new Set(names).size, ranges.length)
    assert.deepStrictEqual(yield* Effect.forEach(ranges, rangeHandle), names)
  }).pipe(Effect.provide(Layer.merge(MemoryTempStore.layer, TokenCounter.layerEstimate)))
)
