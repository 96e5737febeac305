import { assert, describe, it } from "@effect/vitest"
import { entryId } from "../../../src/domain/conversation/Conversation.ts"
import {
  afterBranch,
  afterModelSwitch,
  afterUndo,
  type FailureMemory,
  freshMemory,
  isTried,
  remember,
  requestMark,
  usableModels,
  withUnusable
} from "../../../src/domain/conversation/FailureMemory.ts"

const failed: FailureMemory = { failed: true, waitUntil: 500 }
const statuses = [
  "COMPRESSED",
  "CONTENT_TRUNCATED",
  "NOOP",
  "COMPRESSION_FAILED_INFLATED_TOKEN_COUNT",
  "COMPRESSION_FAILED_TOKEN_COUNT_ERROR",
  "COMPRESSION_FAILED_EMPTY_SUMMARY",
  "FAILED_SUMMARIZER",
  "CANCELLED"
]

it("the latest ranges that were paid for in vain are remembered", () => {
  const range = (n: number) => ({ from: entryId(n), to: entryId(n + 1) })
  let memory = freshMemory
  for (let n = 1; n <= 20; n += 1) memory = afterUndo(memory, 100, range(n))
  assert.deepStrictEqual(
    [1, 4, 5, 20].map((n) => isTried(memory, range(n))),
    [false, false, true, true]
  )
})
/** Flag after, for a flag that was false and one that was true. */
const table: ReadonlyArray<readonly [status: string, forced: boolean, fresh: boolean, set: boolean]> = statuses.flatMap(
  (status) =>
    [true, false].map((forced) =>
      status === "COMPRESSED"
        ? ([status, forced, false, false] as const)
        : ([status, forced, status === "COMPRESSION_FAILED_INFLATED_TOKEN_COUNT" && !forced, true] as const)
    )
)

describe("FailureMemory", () => {
  it.each(table)("after %s (forced: %s) the flag is %s, or %s when it was set", (status, forced, fresh, set) => {
    assert.strictEqual(remember(freshMemory, { status, forced, tokens: 1_000 }).failed, fresh)
    assert.strictEqual(remember(failed, { status, forced, tokens: 1_000 }).failed, set)
  })

  it("success also clears the growth mark", () => {
    assert.deepStrictEqual(remember(failed, { status: "COMPRESSED", forced: false, tokens: 9 }), freshMemory)
    assert.deepStrictEqual(remember(failed, { status: "COMPRESSED", forced: true, tokens: 9 }), freshMemory)
  })

  it.each([
    "COMPRESSION_FAILED_INFLATED_TOKEN_COUNT",
    "COMPRESSION_FAILED_TOKEN_COUNT_ERROR",
    "COMPRESSION_FAILED_EMPTY_SUMMARY",
    "FAILED_SUMMARIZER"
  ])("after an unforced %s the next attempt waits for a tenth more", (status) => {
    assert.strictEqual(remember(freshMemory, { status, forced: false, tokens: 1_001 }).waitUntil, 1_102)
    assert.strictEqual(remember(failed, { status, forced: false, tokens: 0 }).waitUntil, 0)
  })

  it.each(statuses.filter((status) => status !== "COMPRESSED"))("a forced %s moves no mark", (status) => {
    assert.deepStrictEqual(remember(failed, { status, forced: true, tokens: 9_999 }), failed)
    assert.deepStrictEqual(remember(freshMemory, { status, forced: true, tokens: 9_999 }), freshMemory)
  })

  it.each(["NOOP", "CANCELLED", "CONTENT_TRUNCATED"])("%s changes nothing", (status) => {
    assert.strictEqual(remember(failed, { status, forced: false, tokens: 9_999 }), failed)
  })

  it("after an undo the next automatic compression waits for growth, and the flag is unchanged", () => {
    assert.deepStrictEqual(afterUndo(freshMemory, 1_001), { failed: false, waitUntil: 1_102 })
    assert.deepStrictEqual(afterUndo(failed, 10), { failed: true, waitUntil: 11 })
  })

  it("a success with little gain waits for growth; one with more does not", () => {
    const ended = { status: "COMPRESSED", forced: false, tokens: 950 }
    assert.strictEqual(remember(freshMemory, { ...ended, before: 1_000 }).waitUntil, 1_045)
    assert.strictEqual(remember(freshMemory, { ...ended, before: 2_000 }).waitUntil, 0)
  })

  it("gemini: a model that gave nothing usable in two compressions in a row is not asked again until another one is chosen: code writes, and one line says so (ours)", () => {
    const names = ["a", "b"]
    const once = withUnusable(freshMemory, ["a"], false)
    const success = remember(withUnusable(once, [], true), {
      status: "COMPRESSED",
      forced: false,
      tokens: 1,
      before: 9
    })
    assert.deepStrictEqual(usableModels(withUnusable(success, ["a"], false), names), names)
    const twice = afterBranch(withUnusable(once, ["a"], true))
    assert.deepStrictEqual(usableModels(twice, names), ["b"])
    assert.deepStrictEqual(usableModels(withUnusable(twice, ["b"], true), names), ["b"])
    assert.deepStrictEqual(usableModels(afterModelSwitch(twice), names), names)
  })

  it("remembers ranges paid for in vain, also after a success and an undo", () => {
    const status = "COMPRESSION_FAILED_EMPTY_SUMMARY"
    const range = (to: number) => ({ from: entryId(1), to: entryId(to) })
    const once = remember(freshMemory, { status, forced: true, tokens: 9, tried: range(4) })
    const twice = remember(once, { status, forced: false, tokens: 9, tried: range(8) })
    const later = afterUndo(remember(twice, { status: "COMPRESSED", forced: false, tokens: 9 }), 9, range(6))
    for (const to of [4, 6, 8]) assert.isTrue(isTried(later, range(to)), `${to}`)
    assert.isFalse(isTried(later, range(5)))
    const many = Array.from({ length: 40 }, (_, at) => range(at + 10)).reduce(
      (memory, tried) => remember(memory, { status, forced: false, tokens: 9, tried }),
      later
    )
    assert.lengthOf(many.tried ?? [], 16)
  })
})

it.each([
  [0, 500, 0],
  [100, 0, 100],
  [100, 500, 600]
])("a mark at %s of the view is one of a request with %s more tokens at %s", (waitUntil, rest, mark) =>
  assert.strictEqual(requestMark({ ...freshMemory, waitUntil }, rest), mark)
)
