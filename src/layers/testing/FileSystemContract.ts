/** The contract suite of file systems. */

import {
  ByteSize,
  Effect,
  FileSystem,
  type Layer,
  Option,
  type PlatformError,
  Record,
  type Scope,
  Stream
} from "effect"
import assert from "node:assert/strict"
import { serviceContract, type TestFunctions, type TestSteps } from "./ContractTests.ts"

/** A file system to test, and an empty folder in it. */
export interface FileSystemVariant {
  /** The name of the suite. */
  readonly name: string
  /** The file system. */
  readonly layer: Layer.Layer<FileSystem.FileSystem>
  /** Makes an empty folder, which exists until the scope closes. */
  readonly folder: Effect.Effect<string, PlatformError.PlatformError, Scope.Scope | FileSystem.FileSystem>
}

const tagOf = <A, R>(effect: Effect.Effect<A, PlatformError.PlatformError, R>) =>
  Effect.map(Effect.flip(effect), ({ reason }) => reason._tag)

const tests: Readonly<
  Record<
    string,
    (
      fs: FileSystem.FileSystem,
      newFolder: FileSystemVariant["folder"]
    ) => TestSteps<FileSystem.FileSystem | Scope.Scope>
  >
> = {
  *"reads back what was written, whole, as text and in pieces"(fs, newFolder) {
    const file = `${yield* newFolder}/a.txt`
    yield* fs.writeFileString(file, "one\ntwo\n")
    assert.strictEqual(yield* fs.readFileString(file), "one\ntwo\n")
    assert.strictEqual((yield* fs.readFile(file)).length, 8)
    const pieces = yield* fs.stream(file, { chunkSize: 3 }).pipe(Stream.decodeText, Stream.runCollect)
    assert.deepStrictEqual(pieces, ["one", "\ntw", "o\n"])
    const info = yield* fs.stat(file)
    assert.strictEqual(info.type, "File")
    assert.strictEqual(ByteSize.toNumberUnsafe(info.size), 8)
    assert.ok(yield* fs.exists(file))
    assert.ok(!(yield* fs.exists(`${file}.not`)))
    assert.strictEqual(yield* fs.realPath(file), file)
  },

  *"makes folders, lists them and removes them"(fs, newFolder) {
    const top = yield* newFolder
    yield* fs.makeDirectory(`${top}/a/b`, { recursive: true })
    yield* fs.makeDirectory(`${top}/a/b`, { recursive: true })
    yield* fs.writeFileString(`${top}/a/b/c`, "")
    assert.strictEqual(yield* tagOf(fs.makeDirectory(`${top}/a`)), "AlreadyExists")
    assert.strictEqual(yield* tagOf(fs.makeDirectory(`${top}/x/y`)), "NotFound")
    assert.deepStrictEqual([...(yield* fs.readDirectory(top, { recursive: true }))].sort(), ["a", "a/b", "a/b/c"])
    assert.deepStrictEqual(
      (yield* fs.readDirectoryEntries(`${top}/a/b`)).map(({ name, type }) => [name, type]),
      [["c", "File"]]
    )
    assert.deepStrictEqual(yield* fs.glob("**/c", { root: top }), ["a/b/c"])
    yield* Effect.flip(fs.remove(`${top}/a`))
    yield* fs.remove(`${top}/a`, { recursive: true })
    assert.deepStrictEqual(yield* fs.readDirectory(top), [])
    yield* fs.remove(`${top}/a`, { force: true })
    assert.strictEqual(yield* tagOf(fs.remove(`${top}/a`)), "NotFound")
  },

  *"reports errors with the same tags"(fs, newFolder) {
    const top = yield* newFolder
    yield* fs.writeFileString(`${top}/f`, "x")
    assert.strictEqual(yield* tagOf(fs.readFile(`${top}/none`)), "NotFound")
    assert.strictEqual(yield* tagOf(fs.readFile(top)), "BadResource")
    assert.strictEqual(yield* tagOf(fs.readDirectory(`${top}/f`)), "BadResource")
    assert.strictEqual(yield* tagOf(fs.stat(`${top}/f/g`)), "BadResource")
    assert.strictEqual(yield* tagOf(fs.realPath(`${top}/none`)), "NotFound")
    assert.strictEqual(yield* tagOf(fs.writeFileString(`${top}/none/f`, "")), "NotFound")
    assert.strictEqual(yield* tagOf(Effect.scoped(fs.open(`${top}/f`, { flag: "wx" }))), "AlreadyExists")
  },

  *"a rename replaces a file; an open handle keeps the old one"(fs, newFolder) {
    const top = yield* newFolder
    yield* fs.writeFileString(`${top}/old`, "old")
    yield* fs.writeFileString(`${top}/new`, "new")
    const file = yield* fs.open(`${top}/old`)
    const before = yield* fs.stat(`${top}/old`)
    yield* fs.rename(`${top}/new`, `${top}/old`)
    assert.strictEqual(yield* fs.readFileString(`${top}/old`), "new")
    assert.ok(!(yield* fs.exists(`${top}/new`)))
    const held = yield* file.readAlloc(10)
    assert.deepStrictEqual(
      Option.map(held, (bytes) => new TextDecoder().decode(bytes)),
      Option.some("old")
    )
    assert.notDeepStrictEqual(before.ino, (yield* fs.stat(`${top}/old`)).ino)
    assert.deepStrictEqual(before.ino, (yield* file.stat).ino)
  },

  *"open files write at their position, append at the end, and can be truncated"(fs, newFolder) {
    const place = `${yield* newFolder}/f`
    const bytes = (text: string) => new TextEncoder().encode(text)
    const file = yield* fs.open(place, { flag: "w+" })
    yield* file.writeAll(bytes("hello world"))
    yield* file.seek(6n, "start")
    yield* file.writeAll(bytes("W"))
    const added = yield* fs.open(place, { flag: "a" })
    yield* added.writeAll(bytes("!"))
    yield* file.sync
    assert.strictEqual(yield* fs.readFileString(place), "hello World!")
    yield* fs.truncate(place, 5)
    assert.strictEqual(yield* fs.readFileString(place), "hello")
    yield* fs.writeFileString(place, " again", { flag: "a" })
    assert.strictEqual(yield* fs.readFileString(place), "hello again")
    yield* fs.copyFile(place, `${place}2`)
    assert.strictEqual(yield* fs.readFileString(`${place}2`), "hello again")
  }
}

/** Defines the tests for the file system features that tools use. */
export const fileSystemContract = (functions: TestFunctions, { folder, layer, name }: FileSystemVariant) =>
  serviceContract(
    functions,
    FileSystem.FileSystem,
    { name, make: Effect.succeed(layer) },
    Record.map(tests, (run) => (fs: FileSystem.FileSystem) => run(fs, folder))
  )
