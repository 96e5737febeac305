import { Effect, FileSystem, Layer } from "effect"
import { encode } from "../../../../src/domain/text/Bytes.ts"
import * as MemoryFileSystem from "../../../../src/layers/testing/MemoryFileSystem.ts"
import * as Patterns from "../../../../src/services/platform/Patterns.ts"
import { searchLines, searchOne } from "../../../../src/services/tools/builtin/LineSearch.ts"
import { Workspace } from "../../../../src/services/workspace/Workspace.ts"
import { assert, it } from "../../../support/vitest.ts"

const caseful = { ignoresCase: false }

const workspace = Layer.mock(Workspace, {
  root: "/work",
  folders: ["/work"],
  files: (files) => files,
  shown: (place) => place
})

/** Searches a file that arrives in pieces of so many bytes. */
const searched = Effect.fnUntraced(function* (bytes: Uint8Array, size: number, maxMatches = 100, maxPieces = Infinity) {
  let read = 0
  const disk = yield* MemoryFileSystem.make({ "/work/a.txt": bytes })
  const fs = {
    ...disk,
    open: (place: string) =>
      Effect.map(disk.open(place), (file) => ({
        ...file,
        read: (buffer: Uint8Array) =>
          (read += 1) > maxPieces ? Effect.die("no more is needed") : file.read(buffer.subarray(0, size))
      }))
  }
  const [pattern, excluded] = [yield* Patterns.compile("ß|end", caseful), yield* Patterns.compile("not this", caseful)]
  const lines = yield* searchOne("/work/a.txt", { pattern, excluded }, maxMatches).pipe(
    Effect.provide(workspace),
    Effect.provideService(FileSystem.FileSystem, fs)
  )
  return lines.map(({ number, text }) => `${number}: ${text}`)
})

const text = "Straße\r\nnothing\r\n\nthe ß, not this one\n😀 Gruß 😀\nthe end"

it.effect("a search finds the same lines wherever the file is cut, the last one too", function* () {
  const found = ["1: Straße", "5: 😀 Gruß 😀", "6: the end"]
  for (const size of [1, 2, 3, 5, 7, 11, 1_000]) {
    assert.deepStrictEqual(yield* searched(encode(text), size), found, `in pieces of ${size}`)
    assert.deepStrictEqual(yield* searched(encode(text), size, 2), found.slice(0, 2), `two, in pieces of ${size}`)
  }
  const wide = new Uint8Array(Buffer.from(`\ufeff${text}`, "utf16le"))
  for (const size of [2, 5, 1_000]) assert.deepStrictEqual(yield* searched(wide, size), found, `UTF-16, ${size}`)
  assert.deepStrictEqual(yield* searched(encode(`${text}\0`), 7), [])
  assert.deepStrictEqual(yield* searched(encode(""), 7), [])
  const long = `${text}${"\n".repeat(1_000)}`
  assert.deepStrictEqual(yield* searched(encode(long), 7, 2, 20), found.slice(0, 2), "reads no further")
  assert.deepStrictEqual(yield* searched(encode(`\0${long}`), 7, 100, 5), [], "reads no further of a binary file")
  // Larger than what is read at once: each piece is matched to its last whole line.
  const lines = `${"x".repeat(99)}\n`.repeat(25_000)
  assert.deepStrictEqual(yield* searched(encode(`${lines}the end`), 1_048_576), ["25001: the end"])
  assert.deepStrictEqual(yield* searched(encode(`${"x".repeat(5_000)}\nß${"y".repeat(5_000)}`), 1_000), [
    `2: ß${"y".repeat(4_095)}`
  ])
})

it.effect(
  "a search opens no more files than it needs for its total, but for those that it reads at once",
  function* () {
    const names = Array.from({ length: 60 }, (_, at) => `/work/${at + 10}.txt`)
    const disk = yield* MemoryFileSystem.make(Object.fromEntries(names.map((name) => [name, "ß\n"])))
    const opened: Array<string> = []
    const fs = { ...disk, open: (place: string) => Effect.suspend(() => (opened.push(place), disk.open(place))) }
    const search = {
      lines: { pattern: yield* Patterns.compile("ß", caseful), excluded: undefined },
      pattern: { source: "ß", rust: undefined, isCaseSensitive: true },
      target: "/work",
      isFile: false,
      choice: undefined,
      includes: () => true,
      include: undefined,
      perFile: 4,
      total: 3
    }
    const found = yield* searchLines(search, names.toReversed()).pipe(
      Effect.provide(workspace),
      Effect.provideService(FileSystem.FileSystem, fs)
    )
    assert.deepStrictEqual(
      found.map(({ place }) => place),
      names.slice(0, 4)
    )
    assert.isAtMost(opened.length, 30)
  }
)
