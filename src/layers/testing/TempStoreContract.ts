/** The contract suite of blob stores. */

import { Arbitrary, Effect, Fiber, Layer, Schema } from "effect"
import assert from "node:assert/strict"
import { Handle, handleOf, Hash } from "../../domain/content/Handle.ts"
import * as Bytes from "../../domain/text/Bytes.ts"
import { TempStore } from "../../services/session/TempStore.ts"
import {
  checkProperty,
  type ContractVariant,
  defineTests,
  type NamedTests,
  onService,
  type ServiceTests,
  type TestFunctions
} from "./ContractTests.ts"

/** SHA-256 of "abc" (FIPS 180-2) as base32. */
const abc = Hash.make("xj4bnp4pahh6uqkbidpf3lrceoyagyndsylxvhfucd7wd4qacwwq")

const nowhere = Hash.make("a".repeat(52))

/** Texts of sizes around 8 KiB and 64 KiB, with every kind of character that an encoding could break. */
export const storableText: Arbitrary.Arbitrary<string> = Arbitrary.all({
  unit: Arbitrary.schema(
    Schema.Literals([
      "a",
      "é",
      "語",
      "😀",
      "\uDC80",
      "\uDCFF",
      "\uD800",
      "\0",
      '"\\\n',
      "\uFEFF",
      "\u2028",
      "e\uDC28",
      "\uDCC3\uDCA9"
    ])
  ),
  size: Arbitrary.schema(Schema.Literals([0, 1, 40, 1_000, 8_192, 65_536])),
  around: Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: -3, maximum: 3 })))
}).pipe(
  Arbitrary.map(({ around, size, unit }) => {
    const length = Math.max(0, size + around)
    const each = Bytes.encode(unit).length
    return unit.repeat(Math.floor(length / each)) + "x".repeat(length % each)
  })
)

/** How a TempStore is tested. */
export interface TempStoreVariant extends ContractVariant<Layer.Layer<TempStore, unknown>> {
  /** Changes the stored bytes of a blob, in the storage made last, behind the store's back. Undefined: nothing but the store reaches them. */
  readonly damage: ((hash: Hash) => Effect.Effect<unknown, unknown>) | undefined
}

/** Two texts whose hashes begin with the same ten characters, so that their shortest handles are one. */
const twins = ["text d9794ce4b8de8", "text a9e0d8e521c8c"] as const

type StoreTests = ServiceTests<TempStore, TempStore["Service"]>

const storing: StoreTests = {
  *"names bytes by their SHA-256 in base32, without storing them"(store) {
    for (const bytes of ["abc", Bytes.encode("abc")]) assert.strictEqual(yield* store.hash(bytes), abc)
    const long = "語".repeat(50_000)
    assert.strictEqual(yield* store.hash(long), yield* store.put(Bytes.encode(long)))
    const error = yield* Effect.flip(store.get(abc))
    assert.strictEqual(error.reason._tag, "BlobMissing")
  },

  *"stores under the hash of the bytes, whatever else its caller passes"(store) {
    const put: (bytes: Uint8Array, claimed: Hash) => ReturnType<typeof store.put> = store.put
    assert.strictEqual(yield* put(Bytes.encode("abc"), nowhere), abc)
    assert.strictEqual(Bytes.decode(yield* store.get(abc)).text, "abc")
  },

  *"stores empty content too, and the same bytes only once"(store) {
    const empty = yield* store.put(new Uint8Array())
    assert.strictEqual((yield* store.get(empty)).length, 0)
    assert.strictEqual(yield* store.put(new Uint8Array()), empty)
    assert.strictEqual(yield* store.resolve(handleOf(empty)), empty)
  },

  *"never gives other bytes than a name says, even when its caller changes them meanwhile"(store) {
    const bytes = Bytes.encode("x".repeat(50_000))
    const putting = yield* Effect.forkChild(store.put(bytes), { startImmediately: true })
    bytes[0] = 0
    const hash = yield* Fiber.join(putting)
    const found = yield* Effect.result(store.get(hash))
    if (found._tag === "Success") assert.strictEqual(yield* store.hash(found.success), hash)
    else assert.strictEqual(found.failure.reason._tag, "BlobDamaged")
  },

  *"stores many blobs at once, with equal and different bytes"(store) {
    const names = Array.from({ length: 40 }, (_, index) => `text ${index % 8}`)
    const hashes = yield* Effect.forEach(names, (name) => store.put(Bytes.encode(name)), {
      concurrency: "unbounded"
    })
    assert.strictEqual(new Set(hashes).size, 8)
    for (const [index, hash] of hashes.entries()) {
      assert.strictEqual(Bytes.decode(yield* store.get(hash)).text, names[index])
    }
  }
}

const finding: StoreTests = {
  *"resolves handles of any length to the one hash they name"(store) {
    const hashes = yield* Effect.forEach(["one", "two", "three"], (name) => store.put(Bytes.encode(name)))
    for (const hash of hashes) {
      for (const length of [10, 11, 30, 51, 52]) {
        assert.strictEqual(yield* store.resolve(Handle.make(`h_${hash.slice(0, length)}`)), hash)
      }
    }
    const two = yield* store.get(yield* store.resolve(handleOf(hashes[1] ?? nowhere)))
    assert.strictEqual(Bytes.decode(two).text, "two")
  },

  *"resolves each of many handles to its own hash"(store) {
    const hashes = yield* Effect.forEach(
      Array.from({ length: 100 }, (_, n) => `text ${n}`),
      (text) => store.put(Bytes.encode(text))
    )
    for (const hash of hashes) assert.strictEqual(yield* store.resolve(handleOf(hash)), hash)
  },

  *"refuses a handle that two blobs have, and finds each by a longer one"(store) {
    const [first, second] = [yield* store.put(Bytes.encode(twins[0])), yield* store.put(Bytes.encode(twins[1]))]
    assert.notStrictEqual(first, second)
    assert.strictEqual(handleOf(first), handleOf(second))
    const error = yield* Effect.flip(store.resolve(handleOf(first)))
    assert.strictEqual(error.reason._tag, "HandleAmbiguous")
    for (const hash of [first, second]) {
      const longer = handleOf(hash, (handle) => first.startsWith(handle.slice(2)) && second.startsWith(handle.slice(2)))
      assert.strictEqual(yield* store.resolve(longer), hash)
    }
  },

  *"names what is missing, by hash and by handle, even before anything was stored"(store) {
    const byHash = yield* Effect.flip(store.get(nowhere))
    assert.deepStrictEqual([byHash.reason._tag, byHash.message], ["BlobMissing", `nothing is stored under ${nowhere}`])
    const byHandle = yield* Effect.flip(store.resolve(handleOf(nowhere)))
    assert.strictEqual(byHandle.reason._tag, "BlobMissing")
  }
}

const damaging = (damage: NonNullable<TempStoreVariant["damage"]>): StoreTests => ({
  *"says that a blob is damaged"(store) {
    const hash = yield* store.put(Bytes.encode("abc"))
    yield* damage(hash)
    const error = yield* Effect.flip(store.get(hash))
    assert.strictEqual(error.reason._tag, "BlobDamaged")
  }
})

const restarting = (variant: TempStoreVariant): NamedTests => ({
  *"returns what was stored, also after a restart and after the caller changed its bytes"() {
    const storage = yield* variant.make
    const bytes = Bytes.encode("abc")
    const hash = yield* TempStore.use((store) => store.put(bytes)).pipe(Effect.provide(storage))
    bytes[0] = 0
    assert.strictEqual(hash, abc)
    const stored = yield* TempStore.use((store) => store.get(hash)).pipe(Effect.provide(storage))
    assert.strictEqual(Bytes.decode(stored).text, "abc")
    stored[0] = 0
    const again = yield* TempStore.use((store) => store.get(hash)).pipe(Effect.provide(storage))
    assert.strictEqual(Bytes.decode(again).text, "abc")
  },

  *"returns every byte unchanged"() {
    yield* checkProperty(Arbitrary.array(storableText, { maxLength: 4 }), variant.runs, (texts) =>
      Effect.gen(function* () {
        const store = yield* TempStore
        for (const text of texts) {
          const bytes = Bytes.encode(text)
          const stored = yield* store.get(yield* store.resolve(handleOf(yield* store.put(bytes))))
          assert.ok(stored.length === bytes.length && stored.every((byte, index) => byte === bytes[index]))
        }
      }).pipe(Effect.provide(Layer.unwrap(variant.make)), Effect.scoped)
    )
  }
})

/**
 * Defines the tests that every TempStore passes.
 *
 * *When to use*: to test a TempStore of your own. See `TestFunctions` for an example.
 */
export const tempStoreContract = (functions: TestFunctions, variant: TempStoreVariant) =>
  defineTests(functions, variant.name, {
    ...onService(TempStore, variant, {
      ...storing,
      ...finding,
      ...(variant.damage === undefined ? {} : damaging(variant.damage))
    }),
    ...restarting(variant)
  })
