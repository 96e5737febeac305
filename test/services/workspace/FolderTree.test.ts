import { Effect, Fiber, FileSystem, Layer, Path } from "effect"
import { TestClock } from "effect/testing"
import { type FolderTree, type TreeEntry, treeText } from "../../../src/domain/prompt/EnvironmentMessage.ts"
import * as MemoryFileSystem from "../../../src/layers/testing/MemoryFileSystem.ts"
import { scan } from "../../../src/services/workspace/FolderTree.ts"
import { Workspace } from "../../../src/services/workspace/Workspace.ts"
import { sizeOf } from "../../support/runs.ts"
import { assert, describe, it } from "../../support/vitest.ts"
import { placeOf } from "../../support/watchedFiles.ts"
import { inMemory, onDisk } from "../../support/workspaces.ts"

const scanned = (items: number, entries?: number) =>
  Effect.flatMap(Workspace, ({ root }) => scan(root, { items, entries }))

/** The lines of a tree, without its heading. */
const linesOf = (tree: FolderTree): ReadonlyArray<string> => treeText(tree).split("\n").slice(1)

const count = (entries: ReadonlyArray<TreeEntry> = []): number =>
  entries.reduce((sum, entry) => sum + 1 + (entry._tag === "Folder" ? count(entry.entries) : 0), 0)

const countFiles = (files: number) => Object.fromEntries(Array.from({ length: files }, (_, i) => [`f${i}`, ""]))

/** Files that are made up when somebody looks, with what was looked at. */
const madeUp = Effect.fnUntraced(function* (
  entriesOf: (place: string) => ReadonlyArray<FileSystem.DirectoryEntry> | "never"
) {
  const memory = yield* MemoryFileSystem.make({ "/work/": "" })
  const read: Array<string> = []
  const fs = FileSystem.make({
    ...memory,
    readDirectoryEntries: (place) =>
      Effect.suspend(() => {
        read.push(place)
        const entries = entriesOf(place)
        return entries === "never" ? Effect.never : Effect.succeed(entries)
      })
  })
  const workspace = Workspace.of({
    root: "/work",
    folders: ["/work"],
    path: (given) => Effect.succeed(given),
    shown: (given) => given,
    files: (files) => files,
    held: (folder) => Effect.succeed(folder)
  })
  return {
    read,
    layer: Layer.mergeAll(Layer.succeed(FileSystem.FileSystem, fs), Layer.succeed(Workspace, workspace), Path.layer)
  }
})

const folders = (names: number, files: number): ReadonlyArray<FileSystem.DirectoryEntry> => [
  ...Array.from({ length: names }, (_, i) => ({ name: `d${i}`, type: "Directory" }) as const),
  ...Array.from({ length: files }, (_, i) => ({ name: `f${i}`, type: "File" }) as const)
]

describe("the tree of a folder", () => {
  it.effect(
    "lists folders first, by name, all levels that fit",
    inMemory({ "z.md": "", "a.md": "", "src/b.ts": "", "src/a.ts": "", "src/deep/c.ts": "" }),
    function* () {
      const tree = yield* scanned(200)
      assert.deepStrictEqual(linesOf(tree), [
        "  src/",
        "    deep/",
        "      c.ts",
        "    a.ts",
        "    b.ts",
        "  a.md",
        "  z.md"
      ])
    }
  )

  it.effect(
    "honours ignore files; a folder with ignored content is shown closed",
    inMemory({
      ".git/HEAD": "",
      ".gitignore": "*.log\n!keep.log\n/out/\n",
      ".geminiignore": "secret.txt\n",
      "a.log": "",
      "keep.log": "",
      "secret.txt": "",
      "out/x": "",
      "dist/x": "",
      "build/x": "",
      "node_modules/x/y": "",
      "src/.gitignore": "a.ts\n",
      "src/a.ts": "",
      "src/b.ts": ""
    }),
    function* () {
      assert.deepStrictEqual(linesOf(yield* scanned(200)), [
        "  .git/…",
        "  build/…",
        "  dist/…",
        "  node_modules/…",
        "  out/…",
        "  src/",
        "    .gitignore",
        "    b.ts",
        "  .geminiignore",
        "  .gitignore",
        "  keep.log"
      ])
    }
  )

  it.effect(
    "goes level by level until it is full, and counts the rest",
    inMemory({ "a/x": "", "a/y": "", "a/z": "", "b/x": "", c: "", d: "" }),
    function* () {
      assert.deepStrictEqual(linesOf(yield* scanned(6)), [
        "  a/",
        "    x",
        "    y",
        "    … 1 more",
        "  b/…",
        "  c",
        "  d"
      ])
      assert.deepStrictEqual(linesOf(yield* scanned(3)), ["  a/…", "  b/…", "  c", "  … 1 more"])
      assert.strictEqual(count((yield* scanned(0)).entries), 0)
    }
  )

  it.effect(
    "shows links without following them, omits pipes, and does not enter unreadable folders",
    onDisk({ a: "", "src/b": "" }),
    function* () {
      const fs = yield* FileSystem.FileSystem
      const { root } = yield* Workspace
      yield* fs.symlink(root, `${root}/round`)
      const blind = FileSystem.make({
        ...fs,
        readDirectoryEntries: (place) =>
          placeOf(place) === `${root}/src`
            ? fs.readDirectoryEntries(`${place}/none`)
            : Effect.map(fs.readDirectoryEntries(place), (entries) => [...entries, { name: "pipe", type: "FIFO" }])
      })
      const tree = yield* Effect.provideService(scanned(200), FileSystem.FileSystem, blind)
      assert.deepStrictEqual(linesOf(tree), ["  src/…", "  a", "  round"])
    }
  )

  it.effect("reports a missing folder", inMemory({}), function* () {
    const tree = yield* scan("/gone", { items: 10 })
    assert.deepStrictEqual(tree, { folder: "/gone", entries: undefined, more: 0 })
  })
})

describe("a huge tree", () => {
  it.effect("100,000 files in one folder: reads a limited number of entries, and counts the others", function* () {
    const { layer, read } = yield* madeUp(() => folders(0, 100_000))
    const tree = yield* Effect.provide(scanned(200), layer)
    assert.strictEqual(count(tree.entries), 200)
    assert.strictEqual(tree.more, 99_800)
    assert.deepStrictEqual(read, ["/work"])
  })

  it.effect(
    "100,000 files in memory, most of them in ignored folders",
    inMemory({
      ".geminiignore": "out/\n",
      "a.ts": "",
      ...Object.fromEntries(
        Object.keys(countFiles(sizeOf(50_000, 1_000))).flatMap((name) => [
          [`node_modules/${name}`, ""],
          [`out/${name}`, ""]
        ])
      )
    }),
    function* () {
      const tree = yield* scanned(200)
      assert.deepStrictEqual(linesOf(tree), ["  node_modules/…", "  out/…", "  .geminiignore", "  a.ts"])
    }
  )

  it.effect("endlessly nested folders: reads no more than it shows", function* () {
    for (const [names, files] of [
      [1, 0],
      [3, 2],
      [1_000, 1_000],
      [0, 1]
    ] as const) {
      const { layer, read } = yield* madeUp(() => folders(names, files))
      const tree = yield* Effect.provide(scanned(200), layer)
      assert.isAtMost(count(tree.entries), 200)
      assert.isAtMost(read.length, 201)
      assert.strictEqual(new Set(read).size, read.length)
    }
  })

  it.effect("empty folders cost no more than they show", function* () {
    const { layer, read } = yield* madeUp((place) => (place === "/work" ? folders(5_000, 0) : []))
    const tree = yield* Effect.provide(scanned(6_000), layer)
    assert.strictEqual(count(tree.entries), 2_000)
    assert.strictEqual(tree.more, 3_000)
    assert.strictEqual(read.length, 2_001)
  })

  it.effect("waits two seconds for a hung folder, and shows what was found", function* () {
    const { layer } = yield* madeUp((place) => (place === "/work/d1" ? "never" : folders(2, 1)))
    const fiber = yield* Effect.forkChild(Effect.provide(scanned(200), layer), { startImmediately: true })
    yield* TestClock.adjust("2 seconds")
    assert.deepStrictEqual(linesOf(yield* Fiber.join(fiber)), [
      "  d0/",
      "    d0/…",
      "    d1/…",
      "    f0",
      "  d1/…",
      "  f0"
    ])
  })

  it.effect("can be interrupted at once, also within a large folder", function* () {
    const { layer, read } = yield* madeUp(() => folders(1, 2_000))
    const fiber = yield* Effect.forkChild(Effect.provide(scanned(1_000_000), layer), { startImmediately: true })
    for (let i = 0; i < 20; i += 1) yield* Effect.yieldNow
    yield* Fiber.interrupt(fiber)
    const soFar = read.length
    for (let i = 0; i < 20; i += 1) yield* Effect.yieldNow
    assert.strictEqual(read.length, soFar)
    assert.isBelow(soFar, 100)
  })
})

it.effect("reads a real folder", onDisk({ "src/a.ts": "", "README.md": "" }), function* () {
  assert.deepStrictEqual(linesOf(yield* scanned(200)), ["  src/", "    a.ts", "  README.md"])
})
