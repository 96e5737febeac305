import * as NodeServices from "@effect/platform-node/NodeServices"
import { Clock, Context, Effect, FileSystem, Layer, Path, type PlatformError } from "effect"
import { TestClock } from "effect/testing"
import { execFileSync } from "node:child_process"
import { statSync, utimesSync, writeFileSync } from "node:fs"
import { text } from "../../../src/domain/content/Content.ts"
import { encodeLine } from "../../../src/domain/session/LogFormat.ts"
import * as FileSessionStore from "../../../src/layers/session/FileSessionStore.ts"
import * as FileTempStore from "../../../src/layers/session/FileTempStore.ts"
import { FileStats, statFiles } from "../../../src/layers/session/SessionCatalogue.ts"
import { appended, started } from "../../../src/layers/testing/SessionHistories.ts"
import { SessionStore } from "../../../src/services/session/SessionStore.ts"
import * as FaultyFileSystem from "../../support/FaultyFileSystem.ts"
import { assert, describe, layer } from "../../support/vitest.ts"

const looks = [
  ["Node's way of looking", Layer.succeed(FileStats, statFiles)],
  ["the file system's", Layer.empty]
] as const

/** More than have to differ before a catalogue is written. */
const many = 100

const idOf = (number: number) => `s${String(number).padStart(4, "0")}`
const logOf = (id: string, words: string) =>
  `${encodeLine(started(id))}\n${encodeLine(appended(1, text(words)))}\n${encodeLine(appended(2, text("more")))}\n`

/** A folder of sessions. */
const made = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const folder = yield* fs.makeTempDirectoryScoped()
  const file = (name: string) => path.join(folder, name)
  for (let number = 0; number < many; number += 1) {
    const id = idOf(number)
    yield* fs.writeFileString(file(`${id}.jsonl`), logOf(id, `words of ${id}`))
    if (number % 3 === 0) yield* fs.writeFileString(file(`${id}.title`), `title of ${id}\n`)
  }
  return { folder, file, catalogue: file(".catalogue") }
})

/** Lets time pass until what was written so far is catalogued. */
const settle = TestClock.setTime(Date.now() + 3_600_000)

/** A folder of sessions, at a time at which everything in it counts as settled. */
const sessions = Effect.tap(made, settle)

const listOf = (folder: string, look: Layer.Layer<never> = Layer.empty) =>
  SessionStore.use((store) => store.summaries).pipe(
    Effect.provide(
      Layer.fresh(FileSessionStore.layer(folder)).pipe(Layer.provide(look), Layer.provide(FileTempStore.folders))
    )
  )

/** The list without a catalogue, by the same way of looking: the two round a time to milliseconds differently. */
const truth = Effect.fnUntraced(function* (folder: string, look: Layer.Layer<never>) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  yield* fs.remove(path.join(folder, ".catalogue"), { force: true })
  // At this time nothing has settled, so that no catalogue is written either.
  const now = yield* Clock.currentTimeMillis
  yield* TestClock.setTime(0)
  const rows = yield* listOf(folder, look)
  assert.isFalse(yield* fs.exists(path.join(folder, ".catalogue")))
  yield* TestClock.setTime(now)
  return rows
})

/** Everything that can happen to a session, by hand or by a program. */
const changes: ReadonlyArray<
  readonly [
    name: string,
    change: (
      fs: FileSystem.FileSystem,
      file: (name: string) => string
    ) => Effect.Effect<unknown, PlatformError.PlatformError>
  ]
> = [
  ["nothing", () => Effect.void],
  ["a session that begins", (fs, file) => fs.writeFileString(file("new.jsonl"), logOf("new", "hello"))],
  [
    "one that goes on",
    (fs, file) => fs.writeFileString(file("s0003.jsonl"), `${encodeLine(appended(3, text("x")))}\n`, { flag: "a" })
  ],
  ["one that is gone", (fs, file) => fs.remove(file("s0003.jsonl"))],
  ["a title that is new", (fs, file) => fs.writeFileString(file("s0001.title"), "now it has one\n")],
  [
    "a title that is another",
    (fs, file) =>
      Effect.andThen(fs.writeFileString(file("x"), "title of s0XX3\n"), fs.rename(file("x"), file("s0003.title")))
  ],
  ["a title that is gone", (fs, file) => fs.remove(file("s0003.title"))],
  [
    "an old one from a backup",
    (fs, file) =>
      Effect.andThen(
        fs.writeFileString(file("s0003.jsonl"), logOf("s0003", "from long ago")),
        fs.utimes(file("s0003.jsonl"), 1_000_000_000, 1_000_000_000)
      )
  ],
  [
    "an edit that leaves the size",
    (fs, file) =>
      Effect.andThen(
        fs.writeFileString(file("s0003.jsonl"), logOf("s0003", "w0rds of s0003")),
        fs.utimes(file("s0003.jsonl"), 1_500_000_000, 1_500_000_000)
      )
  ],
  [
    "another file of the same size and time",
    (fs, file) =>
      Effect.gen(function* () {
        const { atimeMs, mtimeMs } = statSync(file("s0003.jsonl"))
        yield* fs.writeFileString(file("other"), logOf("s0003", "w0rds of s0003"))
        utimesSync(file("other"), atimeMs / 1_000, mtimeMs / 1_000)
        yield* fs.rename(file("other"), file("s0003.jsonl"))
      })
  ],
  [
    "two that changed places",
    (fs, file) =>
      Effect.all([
        fs.rename(file("s0003.jsonl"), file("x")),
        fs.rename(file("s0004.jsonl"), file("s0003.jsonl")),
        fs.rename(file("x"), file("s0004.jsonl"))
      ])
  ],
  ["one that is broken now", (fs, file) => fs.writeFileString(file("s0003.jsonl"), "no log\nat all\n")],
  [
    "a folder in its place",
    (fs, file) => Effect.andThen(fs.remove(file("s0003.jsonl")), fs.makeDirectory(file("s0003.jsonl")))
  ],
  [
    "most of them gone",
    (fs, file) => Effect.all(Array.from({ length: 60 }, (_, n) => fs.remove(file(`${idOf(n)}.jsonl`))))
  ]
]

layer(NodeServices.layer)((it) => {
  for (const [how, look] of looks) {
    describe(`a catalogue, by ${how}`, () => {
      it.effect("lists many without opening a log, and is private to its owner", function* () {
        const fs = yield* FileSystem.FileSystem
        const { catalogue, folder } = yield* sessions
        const first = yield* listOf(folder, look)
        assert.strictEqual(first.length, many)
        assert.strictEqual((yield* fs.stat(catalogue)).mode & 0o777, 0o600)
        const faulty = yield* FaultyFileSystem.make(FaultyFileSystem.none)
        const again = yield* listOf(folder, look).pipe(Effect.provide(faulty.layer))
        assert.deepStrictEqual(again, first)
        const opened = (yield* faulty.calls).filter(({ name }) => name === "open")
        assert.strictEqual(opened.length, 0)
        assert.deepStrictEqual(yield* truth(folder, look), first)
      })

      it.effect.each(changes)("is correct after %s", function* ([, change]) {
        const { file, folder } = yield* sessions
        yield* listOf(folder, look)
        yield* change(yield* FileSystem.FileSystem, file)
        const rows = yield* listOf(folder, look)
        yield* settle
        const later = yield* listOf(folder, look)
        assert.deepStrictEqual([rows, later], [rows, rows])
        assert.deepStrictEqual(rows, yield* truth(folder, look))
      })

      it.effect("drops sessions that were deleted or renamed", function* () {
        const fs = yield* FileSystem.FileSystem
        const { catalogue, file, folder } = yield* sessions
        yield* listOf(folder, look)
        yield* SessionStore.use((store) =>
          Effect.andThen(store.remove("s0003"), store.rename("s0006", "another"))
        ).pipe(Effect.provide(Layer.fresh(FileSessionStore.layer(folder)).pipe(Layer.provide(FileTempStore.folders))))
        const kept = yield* fs.readFileString(catalogue)
        assert.notInclude(kept, "words of s0003")
        assert.notInclude(kept, "title of s0003")
        assert.notInclude(kept, "title of s0006")
        assert.include(kept, "words of s0004")
        // Nor of one that went by hand, from the next list on.
        yield* fs.remove(file("s0009.jsonl"))
        yield* listOf(folder, look)
        assert.notInclude(yield* fs.readFileString(catalogue), "words of s0009")
      })

      it.effect("stores no reason why a log cannot be opened", function* () {
        const fs = yield* FileSystem.FileSystem
        const { catalogue, file, folder } = yield* made
        yield* fs.writeFileString(file("s0003.jsonl"), "no log\nat all\n")
        yield* settle
        const rows = yield* listOf(folder, look)
        assert.isDefined(rows.find(({ id }) => id === "s0003")?.problem)
        assert.notInclude(yield* fs.readFileString(catalogue), "s0003")
      })

      it.effect("shows a malformed file as such, and does not wait for a pipe", function* () {
        const fs = yield* FileSystem.FileSystem
        const { file, folder } = yield* made
        for (const name of ["s0000.title", "s0001.lock", "s0002.jsonl"]) {
          yield* fs.remove(file(name), { force: true })
          yield* Effect.sync(() => execFileSync("mkfifo", [file(name)]))
        }
        yield* fs.symlink(file("loop.jsonl"), file("loop.jsonl"))
        yield* settle
        const rows = yield* listOf(folder, look)
        assert.strictEqual(rows.length, many + 1)
        assert.deepStrictEqual(
          rows
            .filter(({ problem }) => problem !== undefined)
            .map(({ id }) => id)
            .toSorted(),
          ["loop", "s0002"]
        )
        assert.isUndefined(rows.find(({ id }) => id === "s0000")?.title)
      })

      it.effect("does not trust a log that changed a moment ago", function* () {
        const fs = yield* FileSystem.FileSystem
        const { catalogue, folder } = yield* sessions
        yield* TestClock.setTime(Date.now())
        yield* listOf(folder, look)
        assert.isFalse(yield* fs.exists(catalogue))
      })
    })
  }

  describe("a store that stays open", () => {
    it.effect("asks again for the logs that may have changed since its last list, and for no others", function* () {
      const { file, folder } = yield* sessions
      let asked = 0
      const counting = Layer.succeed(FileStats, (files) => {
        asked += files.length
        return statFiles(files)
      })
      const services = yield* Layer.build(
        FileSessionStore.layer(folder).pipe(Layer.provide(counting), Layer.provide(FileTempStore.folders))
      )
      const store = Context.get(services, SessionStore)
      /** Lists, and compares the sizes with those of the files. Returns how many files it asked for. */
      const list = Effect.gen(function* () {
        asked = 0
        const rows = yield* store.summaries
        assert.deepStrictEqual(
          rows.map(({ bytes, id }) => [id, bytes]),
          rows.map(({ id }) => [id, statSync(file(`${id}.jsonl`)).size])
        )
        return { asked, ids: rows.map(({ id }) => id) }
      })
      /** Lists until it asks for so few: what it remembers may be collected at any time. */
      const few = (files: number) =>
        Effect.map(Effect.repeat(list, { times: 5, until: (listed) => listed.asked === files }), (listed) =>
          assert.strictEqual(listed.asked, files)
        )
      yield* list
      yield* settle
      assert.isAbove((yield* list).asked, many)
      // The folder and the catalogue.
      yield* few(2)
      yield* Effect.scoped(
        Effect.gen(function* () {
          const { log } = yield* store.open("s0003")
          yield* settle
          yield* list
          for (let turn = 10; turn < 13; turn += 1) {
            yield* log.append(appended(turn, text("more")))
            yield* few(3)
          }
          yield* log.append(appended(13, text("and the last")))
        })
      )
      yield* list
      yield* settle
      yield* list
      yield* Effect.sync(() => writeFileSync(file("new.jsonl"), logOf("new", "hello")))
      assert.include((yield* list).ids, "new")
      yield* store.remove("s0004")
      assert.notInclude((yield* list).ids, "s0004")
      yield* store.rename("s0005", "Another")
      assert.strictEqual((yield* store.summaries).find(({ id }) => id === "s0005")?.title, "Another")
      assert.strictEqual((yield* store.summary("s0005")).title, "Another")
    })
  })

  describe("an unusable catalogue", () => {
    const flipped = (bytes: Uint8Array, at: number) => bytes.with(at, (bytes[at] ?? 0) ^ 1)
    const damages: ReadonlyArray<readonly [name: string, damage: (bytes: Uint8Array) => Uint8Array]> = [
      ["empty", () => new Uint8Array()],
      ["cut", (bytes) => bytes.subarray(0, bytes.length / 2)],
      ["zeroes", (bytes) => new Uint8Array(bytes.length)],
      ["one bit in a title", (bytes) => flipped(bytes, Buffer.from(bytes).indexOf("title of s0003"))],
      ["one bit in the first words", (bytes) => flipped(bytes, Buffer.from(bytes).indexOf("words of s0004"))],
      ["of another version", (bytes) => Buffer.concat([Buffer.from("9"), bytes])],
      ["twice", (bytes) => Buffer.concat([bytes, bytes])]
    ]
    it.effect.each(damages)("%s: is rebuilt", function* ([, damage]) {
      const fs = yield* FileSystem.FileSystem
      const { catalogue, folder } = yield* sessions
      const first = yield* listOf(folder)
      const good = yield* fs.readFile(catalogue)
      yield* fs.writeFile(catalogue, damage(good))
      assert.deepStrictEqual(yield* listOf(folder), first)
      assert.strictEqual((yield* fs.readFile(catalogue)).length, good.length)
    })

    it.effect("a folder of its name: lists from the logs", function* () {
      const fs = yield* FileSystem.FileSystem
      const { catalogue, folder } = yield* sessions
      yield* fs.makeDirectory(catalogue)
      assert.strictEqual((yield* listOf(folder)).length, many)
      assert.deepStrictEqual(
        (yield* fs.readDirectory(folder)).filter((each) => each.includes("tmp")),
        []
      )
    })

    it.effect("a disk without writes: lists from the logs", function* () {
      const { folder } = yield* sessions
      const faulty = yield* FaultyFileSystem.make(({ mutating }) => (mutating === undefined ? "pass" : "fail"))
      assert.strictEqual((yield* listOf(folder).pipe(Effect.provide(faulty.layer))).length, many)
    })
  })

  it.effect("concurrency 50 lists beside renames, creations and deletions return consistent rows", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const { file, folder } = yield* made
      // Old enough for a catalogue on the real clock.
      yield* Effect.sleep("3 seconds")
      const stores = FileSessionStore.layer(folder).pipe(
        Layer.provide(Layer.succeed(FileStats, statFiles)),
        Layer.provide(FileTempStore.folders)
      )
      let begun = 0
      let done = 0
      const wrong: Array<string> = []
      const writing = Effect.gen(function* () {
        const store = yield* SessionStore
        for (let round = 1; round <= 40; round += 1) {
          begun = round
          yield* store.rename("s0000", `round ${round}`)
          yield* fs.writeFileString(file(`n${round}.jsonl`), logOf(`n${round}`, "new"))
          yield* fs.remove(file(`${idOf(round)}.jsonl`))
          // A list in between writes the catalogue again: most rows differ.
          if (round % 10 === 0) yield* fs.remove(file(".catalogue"), { force: true })
          done = round
          yield* Effect.yieldNow
        }
      }).pipe(Effect.provide(Layer.fresh(stores)))
      const listing = Effect.gen(function* () {
        const from = done
        const rows = yield* SessionStore.use((store) => store.summaries)
        const to = begun
        const titled = rows.find(({ id }) => id === "s0000")?.title ?? ""
        const round = Number(/^round (\d+)$/.exec(titled)?.[1] ?? (titled === "title of s0000" ? 0 : Number.NaN))
        if (!(round >= from && round <= to)) wrong.push(`${titled}, expected ${from} to ${to}`)
        const ids = new Set(rows.map(({ id }) => id))
        for (let each = 1; each <= from; each += 1) {
          if (!ids.has(`n${each}`)) wrong.push(`n${each} is missing after round ${from}`)
          if (ids.has(idOf(each))) wrong.push(`${idOf(each)} is listed after round ${from}`)
        }
        for (const { firstPrompt, id } of rows) {
          if (firstPrompt !== (id.startsWith("n") ? "new" : `words of ${id}`)) wrong.push(`${id}: ${firstPrompt}`)
        }
      }).pipe(Effect.provide(Layer.fresh(stores)))
      yield* Effect.all([writing, ...Array.from({ length: 50 }, () => listing)], { concurrency: "unbounded" })
      yield* Effect.all(
        Array.from({ length: 5 }, () => listing),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(wrong, [])
      assert.deepStrictEqual(
        (yield* fs.readDirectory(folder)).filter((name) => name.endsWith(".tmp")),
        []
      )
    }).pipe(TestClock.withLive)
  )
})
