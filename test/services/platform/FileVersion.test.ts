import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, FileSystem } from "effect"
import { TestClock } from "effect/testing"
import * as FileVersion from "../../../src/services/platform/FileVersion.ts"
import { assert, layer } from "../../support/vitest.ts"

layer(NodeServices.layer)("what was read from a file", (it) => {
  const begin = Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const file = `${yield* fs.makeTempDirectoryScoped()}/file`
    let reads = 0
    const read = FileVersion.whileSame(
      file,
      Effect.suspend(() => {
        reads += 1
        return Effect.orElseSucceed(fs.readFileString(file), () => "none")
      })
    )
    /** Changes the file, at a time that is so many seconds ago. */
    const write = (text: string, ago: number) =>
      Effect.gen(function* () {
        yield* fs.writeFileString(file, text)
        yield* fs.utimes(file, 1_000_000 - ago, 1_000_000 - ago)
      })
    yield* TestClock.setTime(1_000_000_000)
    return { file, fs, read, reads: () => reads, write }
  })

  it.effect("is kept while the file is the same", function* () {
    const { read, reads, write } = yield* begin
    yield* write("one", 60)
    assert.deepStrictEqual([yield* read, yield* read, yield* read], ["one", "one", "one"])
    assert.strictEqual(reads(), 1)
    yield* write("two", 50)
    assert.deepStrictEqual([yield* read, yield* read], ["two", "two"])
    assert.strictEqual(reads(), 2)
  })

  it.effect("is kept while there is no file, and read when one appears or another takes its place", function* () {
    const { file, fs, read, reads, write } = yield* begin
    assert.deepStrictEqual([yield* read, yield* read], ["none", "none"])
    assert.strictEqual(reads(), 1)
    yield* write("one", 60)
    assert.strictEqual(yield* read, "one")
    // The same size and the same time.
    yield* fs.writeFileString(`${file}.new`, "two")
    yield* fs.utimes(`${file}.new`, 999_940, 999_940)
    yield* fs.rename(`${file}.new`, file)
    assert.strictEqual(yield* read, "two")
    yield* fs.remove(file)
    assert.strictEqual(yield* read, "none")
  })

  it.effect("is read again while the file may still change without a trace", function* () {
    const { read, reads, write } = yield* begin
    yield* write("one", 1)
    yield* read
    yield* write("two", 1)
    assert.strictEqual(yield* read, "two")
    yield* TestClock.adjust("5 seconds")
    yield* read
    yield* read
    assert.strictEqual(reads(), 3)
  })
})
