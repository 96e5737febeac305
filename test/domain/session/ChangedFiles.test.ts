import { assert, describe, it } from "@effect/vitest"
import { Hash } from "../../../src/domain/content/Handle.ts"
import {
  changedSince,
  fileState,
  type FileVersion,
  isVersionKept,
  maxKeptFileBytes,
  type RecordedChange,
  type RewindTarget
} from "../../../src/domain/session/ChangedFiles.ts"

const hash = (name: string) => Hash.make(name.repeat(52))
const version = (name: string, more: Partial<FileVersion> = {}): FileVersion => ({
  hash: hash(name),
  size: maxKeptFileBytes,
  mode: 0o644,
  ...more
})
/** `2 tool x a>b`: at position 2 a tool changed the file x from a to b; `-` is none. */
const changesOf = (...texts: ReadonlyArray<string>): ReadonlyArray<RecordedChange> =>
  texts.map((text) => {
    const [, position = "", by, path = "", before = "", after = ""] = /^(\d+) (\w+) (\w) (.)>(.)$/.exec(text) ?? []
    return {
      position: Number(position),
      by: by === "tool" ? "tool" : "rewind",
      path,
      before: before === "-" ? null : version(before),
      after: after === "-" ? null : hash(after)
    }
  })

describe("the files that a rewind restores", () => {
  const changes = changesOf(
    "1 tool x ->a",
    "2 tool y b>c",
    "3 tool x a>d",
    "5 rewind x d>a",
    "5 rewind y c>b",
    "6 tool z e>-",
    "6 tool z ->f",
    "8 rewind z f>e",
    "8 rewind x a>-"
  )
  const shown = (target: RewindTarget, all = changes) =>
    changedSince(all, target)
      .map(({ left, path, target }) => `${path} ${left?.[0] ?? "-"}>${target?.hash[0] ?? "-"}`)
      .join(", ")

  it.each([
    [0, "x ->-, y b>b, z e>e"],
    [1, "y b>b, x ->a, z e>e"],
    [2, "x ->a, y b>c, z e>e"],
    [3, "x ->d, y b>c, z e>e"],
    [5, "z e>e, x ->a"],
    [7, "z e>f, x ->a"],
    [8, ""]
  ])("before what came after entry %i", (sequence, expected) =>
    assert.strictEqual(shown({ _tag: "Before", sequence }), expected)
  )

  it.each([
    [9, "z e>f, x ->a"],
    [7, "x a>d, y b>c, z f>e"],
    [5, "x a>d, y b>c"],
    [3, ""]
  ])("before the last rewind of the first %i changes", (count, expected) =>
    assert.strictEqual(shown({ _tag: "LastRewind" }, changes.slice(0, count)), expected)
  )
})

it("a file is compared with its version at the moment, and with what was left of it", () => {
  const states = [version("a"), version("a", { lost: true }), null].flatMap((target) =>
    [hash("b"), null].map((left) =>
      [hash("a"), hash("b"), hash("c"), null]
        .map((current) => fileState({ path: "x", target, left }, current))
        .join(" ")
    )
  )
  assert.deepStrictEqual(states, [
    "same ours changed changed",
    "same changed changed ours",
    "same lost lost lost",
    "same lost lost lost",
    "changed ours changed same",
    "changed changed changed same"
  ])
})

it("a version is kept up to 5 MiB, and up to 100 MiB of all that are kept, each once", () => {
  const one = (name: string, more?: Partial<FileVersion>): ReadonlyArray<RecordedChange> =>
    changesOf(`1 tool x ${name}>-`).map((change) => ({ ...change, before: version(name, more) }))
  // 16 versions of 5 MiB, some of them twice.
  const changes = [..."abcdefghijklmnopabc"].flatMap((name) => one(name))
  const free = 4 * maxKeptFileBytes
  const rest = one("q", { size: free - maxKeptFileBytes })
  const cases: ReadonlyArray<readonly [changes: ReadonlyArray<RecordedChange>, size: number]> = [
    [[], maxKeptFileBytes],
    [[], maxKeptFileBytes + 1],
    [[...changes, ...changesOf("1 tool x ->a"), ...one("r", { lost: true }), ...rest], maxKeptFileBytes],
    [[...changes, ...one("q", { size: free - 9 })], 9],
    [[...changes, ...one("q", { size: free - 9 })], 10]
  ]
  assert.strictEqual(maxKeptFileBytes, 5 * 2 ** 20)
  assert.deepStrictEqual(
    cases.map(([changes, size]) => isVersionKept(changes, size)),
    [true, false, true, true, false]
  )
})
