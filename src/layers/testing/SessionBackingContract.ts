/** What the tests of a whole `SessionStore` cannot see, because `BackedSessionStore` stands between: each method by itself. */

import { Effect, Exit, type Layer, Scope } from "effect"
import assert from "node:assert/strict"
import { Hash } from "../../domain/content/Handle.ts"
import * as Bytes from "../../domain/text/Bytes.ts"
import { type BackedLine, SessionBacking } from "../../services/session/SessionBacking.ts"
import type { SessionStoreError } from "../../services/session/SessionStore.ts"
import { type ContractVariant, serviceContract, type ServiceTests, type TestFunctions } from "./ContractTests.ts"

const line = (sequence: number, change: Partial<BackedLine> = {}): BackedLine => ({
  sequence,
  id: `e${sequence}`,
  text: JSON.stringify({ n: sequence, text: "a\u2028b 語 😀" }),
  isCheckpoint: false,
  at: 1_000 * sequence,
  ...change
})
const [one, two] = [Hash.make(`${"a".repeat(51)}a`), Hash.make(`${"a".repeat(11)}${"b".repeat(41)}`)]
const other = Hash.make("c".repeat(52))
const bytes = Bytes.encode("a large part")

/** Lines without what a backing keeps beside them. */
const linesOf = (lines: ReadonlyArray<BackedLine>): ReadonlyArray<BackedLine> =>
  lines.map(({ at, id, isCheckpoint, sequence, text }) => ({ sequence, id, text, isCheckpoint, at }))

const refusal = <A, R>(effect: Effect.Effect<A, SessionStoreError, R>) =>
  Effect.map(Effect.flip(effect), ({ reason }) => reason._tag)

const textOf = (found: Uint8Array | undefined) => (found === undefined ? undefined : Bytes.decode(found).text)

const tests: ServiceTests<SessionBacking, SessionBacking["Service"]> = {
  *"keeps the lines of a session in order, each character of them"(backing) {
    const owner = yield* backing.create("s1", "head", [line(1), line(2, { isCheckpoint: true })])
    yield* backing.append(owner, line(3))
    yield* backing.append(owner, line(4, { isCheckpoint: true }))
    yield* backing.append(owner, line(5))
    const all = [1, 2, 3, 4, 5].map((n) => line(n, { isCheckpoint: n === 2 || n === 4 }))
    assert.deepStrictEqual(linesOf(yield* backing.read("s1", 1, Number.MAX_SAFE_INTEGER)), all)
    assert.deepStrictEqual(linesOf(yield* backing.read("s1", 2, 4)), all.slice(1, 3))
    assert.deepStrictEqual(yield* backing.read("s1", 6, 9), [])
    // A backing that names none has its logs read as a whole.
    assert.ok([4, undefined].includes(yield* backing.lastCheckpoint("s1")))
  },

  *"reads from any line to any other, also beyond the end"(backing) {
    const all = Array.from({ length: 40 }, (_, index) => line(index + 1))
    yield* backing.create("s1", "head", all)
    for (const from of [1, 2, 16, 17, 40, 41]) {
      for (const to of [1, 2, 17, 18, 33, 40, 41, 60]) {
        assert.deepStrictEqual(
          linesOf(yield* backing.read("s1", from, to)),
          all.slice(from - 1, Math.max(from, to) - 1)
        )
      }
    }
  },

  *"appends a line once, and only at the end"(backing) {
    const owner = yield* backing.create("s1", "head", [line(1)])
    yield* backing.append(owner, line(2))
    yield* backing.append(owner, line(2))
    assert.strictEqual((yield* backing.read("s1", 1, 9)).length, 2)
    assert.strictEqual(yield* refusal(backing.append(owner, line(4))), "SessionChanged")
    assert.strictEqual(yield* refusal(backing.append(owner, line(2, { text: "{}" }))), "SessionChanged")
    assert.strictEqual((yield* backing.read("s1", 1, 9)).length, 2)
    assert.strictEqual(yield* backing.lastCheckpoint("s1"), undefined)
  },

  *"lists rows with what they hold, all or one"(backing) {
    const owner = yield* backing.create("s1", "head one", [line(1)])
    yield* Effect.scoped(backing.create("s2", "head two", [line(1)]))
    yield* backing.append(owner, line(2), "another head")
    yield* backing.rename("s1", "a title")
    assert.deepStrictEqual([...(yield* backing.ids)].sort(), ["s1", "s2"])
    assert.deepStrictEqual((yield* backing.list()).map(({ id }) => id).sort(), ["s1", "s2"])
    const rows = yield* backing.list("s1")
    assert.strictEqual(rows.length, 1)
    const [row] = rows
    assert.deepStrictEqual([row?.id, row?.head, row?.title, row?.updatedAt], ["s1", "another head", "a title", 2_000])
    assert.ok((row?.bytes ?? 0) >= line(1).text.length + line(2).text.length)
    assert.ok(row?.holder !== undefined)
    const [closed] = yield* backing.list("s2")
    assert.deepStrictEqual([closed?.head, closed?.title, closed?.holder], ["head two", undefined, undefined])
    assert.deepStrictEqual(yield* backing.list("none"), [])
    yield* backing.rename("s1", undefined)
    assert.strictEqual((yield* backing.list("s1"))[0]?.title, undefined)
    assert.strictEqual(yield* refusal(backing.rename("none", "x")), "SessionNotFound")
  },

  *"has one owner at a time, and one after the other"(backing) {
    const scope = yield* Scope.make()
    const first = yield* backing.create("s1", "head", [line(1)]).pipe(Effect.provideService(Scope.Scope, scope))
    assert.strictEqual(yield* refusal(backing.create("s1", "head", [line(1)])), "SessionExists")
    assert.strictEqual(yield* refusal(backing.own("s1", false)), "SessionLocked")
    assert.strictEqual(yield* refusal(backing.remove("s1")), "SessionLocked")
    const second = yield* backing.own("s1", true)
    assert.ok(second.epoch > first.epoch)
    assert.strictEqual(yield* refusal(backing.append(first, line(2))), "SessionTaken")
    yield* backing.append(second, line(2))
    // An earlier owner's end does not end the later one's.
    yield* Scope.close(scope, Exit.void)
    assert.strictEqual(yield* refusal(backing.own("s1", false)), "SessionLocked")
    assert.strictEqual(yield* refusal(backing.own("none", false)), "SessionNotFound")
  },

  *"is released with its scope"(backing) {
    const first = yield* Effect.scoped(backing.create("s1", "head", [line(1)]))
    const second = yield* Effect.scoped(backing.own("s1", false))
    const third = yield* backing.own("s1", false)
    assert.ok(first.epoch < second.epoch && second.epoch < third.epoch)
    yield* backing.append(third, line(2))
  },

  *"keeps blobs of each session by themselves, as they were put"(backing) {
    const mine = Uint8Array.from(bytes)
    yield* backing.putBlob("s1", one, mine)
    mine.fill(0)
    assert.deepStrictEqual(yield* Effect.map(backing.getBlob("s1", one), textOf), "a large part")
    yield* backing.putBlob("s1", one, bytes)
    yield* backing.putBlob("s1", two, Bytes.encode("another"))
    yield* backing.putBlob("s2", other, bytes)
    assert.deepStrictEqual(yield* Effect.map(backing.getBlob("s1", one), textOf), "a large part")
    assert.strictEqual(yield* backing.getBlob("s1", other), undefined)
    assert.strictEqual(yield* backing.getBlob("s2", one), undefined)
    assert.deepStrictEqual([...(yield* backing.findBlobs("s1", ""))].sort(), [one, two].sort())
    assert.deepStrictEqual(yield* backing.findBlobs("s1", "a".repeat(12)), [one])
    assert.deepStrictEqual(yield* backing.findBlobs("s1", "c"), [])
    assert.strictEqual((yield* backing.findBlobs("s1", "a".repeat(11))).length, 2)
  },

  *"removes a session with its blobs, also those of one that was never made"(backing) {
    yield* Effect.scoped(backing.create("s1", "head", [line(1)]))
    yield* backing.putBlob("s1", one, bytes)
    yield* backing.putBlob("s2", one, bytes)
    yield* backing.putBlob("s3", one, bytes)
    yield* backing.remove("s1")
    assert.strictEqual(yield* backing.getBlob("s1", one), undefined)
    assert.deepStrictEqual(yield* backing.findBlobs("s1", ""), [])
    assert.deepStrictEqual(yield* backing.read("s1", 1, 9), [])
    assert.deepStrictEqual(yield* backing.ids, [])
    assert.strictEqual(yield* refusal(backing.remove("s2")), "SessionNotFound")
    assert.strictEqual(yield* backing.getBlob("s2", one), undefined)
    assert.notStrictEqual(yield* backing.getBlob("s3", one), undefined)
    yield* Effect.scoped(backing.create("s1", "new", [line(1)]))
    assert.strictEqual((yield* backing.list("s1"))[0]?.head, "new")
  }
}

/**
 * Defines the tests that every SessionBacking passes.
 *
 * *When to use*: beside `sessionStoreContract` over `BackedSessionStore.over(yourBacking)`, which hides some mistakes of a backing.
 */
export const sessionBackingContract = (
  functions: TestFunctions,
  variant: Omit<ContractVariant<Layer.Layer<SessionBacking, unknown>>, "runs">
) => serviceContract(functions, SessionBacking, variant, tests)
