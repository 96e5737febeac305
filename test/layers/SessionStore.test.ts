import { assert, describe, layer, vi } from "@effect/vitest"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, FileSystem, Layer, Path } from "effect"
import { TestClock } from "effect/testing"
import { pid } from "node:process"
import { text as textPart } from "../../src/domain/Content.ts"
import * as FileSessionStore from "../../src/layers/FileSessionStore.ts"
import * as FileTempStore from "../../src/layers/FileTempStore.ts"
import * as MemorySessionStore from "../../src/layers/MemorySessionStore.ts"
import * as MemoryTempStore from "../../src/layers/MemoryTempStore.ts"
import { SessionStore } from "../../src/services/SessionStore.ts"
import { BlobUnavailable, TempStore, TempStoreError } from "../../src/services/TempStore.ts"
import * as FaultyFileSystem from "../support/FaultyFileSystem.ts"
import { appended, fold, reopened, sessionStoreContract, started } from "./SessionStore.contract.ts"

// Hundreds of real files each; a busy machine takes its time.
vi.setConfig({ testTimeout: 60_000 })

/** A folder for sessions that does not exist yet. */
const freshFolder = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  return path.join(yield* fs.makeTempDirectoryScoped(), "not", "yet", "there")
})

sessionStoreContract({
  name: "FileSessionStore over FileTempStore",
  make: Effect.gen(function* () {
    const path = yield* Path.Path
    const folder = yield* freshFolder
    return FileSessionStore.layer(path.join(folder, "sessions")).pipe(
      Layer.provide(FileTempStore.layer(path.join(folder, "blobs"))),
      Layer.provide(NodeServices.layer)
    )
  }),
  runs: 200
})

sessionStoreContract({
  name: "FileSessionStore over MemoryTempStore",
  make: Effect.gen(function* () {
    const blobs = yield* Layer.build(MemoryTempStore.layer)
    return FileSessionStore.layer(yield* freshFolder).pipe(
      Layer.provide(Layer.succeedContext(blobs)),
      Layer.provide(NodeServices.layer)
    )
  }),
  runs: 200
})

sessionStoreContract({
  name: "MemorySessionStore",
  make: Effect.map(Layer.build(MemorySessionStore.layer), Layer.succeedContext),
  runs: 1_000
})

/** A session `s1` of three lines in a folder of its own, its blobs beside it. */
const written = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const folder = yield* freshFolder
  const store = Layer.fresh(
    FileSessionStore.layer(folder).pipe(Layer.provide(FileTempStore.layer(path.join(folder, "blobs"))))
  )
  yield* SessionStore.use((_) =>
    Effect.flatMap(_.create(started("s1")), (log) => Effect.forEach(events.slice(1), log.append))
  ).pipe(Effect.scoped, Effect.provide(store))
  const file = path.join(folder, "s1.jsonl")
  const lines = (yield* fs.readFileString(file)).trimEnd().split("\n")
  const open = reopened("s1").pipe(Effect.provide(store))
  return { folder, file, lines, lock: path.join(folder, "s1.lock"), open, store }
})

const events = [started("s1"), appended(1, textPart("small")), appended(2, textPart("x".repeat(9_000)))]

describe("FileSessionStore", () => {
  layer(NodeServices.layer)((it) => {
    it.effect("keeps everything to its owner, large parts apart, and no lock when nobody writes", () =>
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        const { file, folder, lines } = yield* written
        assert.deepStrictEqual((yield* fs.readDirectory(folder)).sort(), ["blobs", "s1.jsonl"])
        assert.strictEqual((yield* fs.stat(folder)).mode & 0o777, 0o700)
        assert.strictEqual((yield* fs.stat(file)).mode & 0o777, 0o600)
        assert.strictEqual(lines.length, 3)
        assert.isBelow(lines[2]?.length ?? Infinity, 1_000)
      })
    )

    it.effect("reports and cuts off what was written half: no line break, or no JSON in the last line", () =>
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        for (const torn of ['{"_tag":"Und', "\0\0\0\0", "not json\n", "\n", '{"_tag":"Undone","at":1}', "\xff\n"]) {
          const { file, open } = yield* written
          const before = yield* fs.readFileString(file)
          yield* fs.writeFileString(file, before + torn)
          assert.deepStrictEqual(yield* open, { session: fold(events), torn: new TextEncoder().encode(torn).length })
          assert.strictEqual(yield* fs.readFileString(file), before)
          assert.strictEqual((yield* open).torn, 0)
        }
      })
    )

    it.effect("refuses a log it cannot read, names the line, and changes nothing", () =>
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        const { file, lines, open } = yield* written
        const [first = "", second = "", third = ""] = lines
        const refusals: ReadonlyArray<readonly [string, string, string]> = [
          [`${first}\nbroken\n${third}\n`, "SessionCorrupt", "session s1, line 2: this is not JSON"],
          [`${first}\n\n${third}\n{"half`, "SessionCorrupt", "session s1, line 2: this is not JSON"],
          [`${first}\n${second}\nbroken\n{"half`, "SessionCorrupt", "session s1, line 3: this is not JSON"],
          [`${first}\n{"_tag":"Undone"}\n`, "SessionCorrupt", "session s1, line 2:"],
          [`${first}\n{"_tag":"Later"}\n`, "SessionCorrupt", "session s1, line 2: an event of an unknown kind: Later"],
          [`${second}\n${third}\n`, "SessionCorrupt", "session s1, line 1: the log does not begin with Started"],
          ["", "SessionCorrupt", "session s1, line 1: the log does not begin with Started"],
          [first, "SessionCorrupt", "session s1, line 1: the log does not begin with Started"],
          [`${first.replace('"version":1', '"version":7')}\nwhatever\n`, "SessionTooNew", "(log format 7)"]
        ]
        for (const [content, tag, message] of refusals) {
          yield* fs.writeFileString(file, content)
          const error = yield* Effect.flip(open)
          assert.strictEqual(error.reason._tag, tag)
          assert.include(error.message, message)
          assert.strictEqual(yield* fs.readFileString(file), content)
        }
        yield* fs.writeFileString(file, `${first}\n{"_tag":"Later","ignorable":true}\n${second}\n${third}\n`)
        assert.deepStrictEqual((yield* open).session, fold(events))
      })
    )

    it.effect("keeps nothing open when it cannot be opened, even while the scope is", () =>
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        const { file, folder, lines, store } = yield* written
        yield* Effect.gen(function* () {
          const { open } = yield* SessionStore
          yield* fs.writeFileString(file, `${lines[0]}\nbroken\n${lines[2]}\n`)
          assert.strictEqual((yield* Effect.flip(open("s1"))).reason._tag, "SessionCorrupt")
          assert.notInclude(yield* fs.readDirectory(folder), "s1.lock")
          yield* fs.writeFileString(file, `${lines.join("\n")}\n`)
          assert.deepStrictEqual((yield* open("s1")).session, fold(events))
        }).pipe(Effect.scoped, Effect.provide(store))
      })
    )

    it.effect("names the blob that a line lacks", () =>
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        const path = yield* Path.Path
        const { folder, open } = yield* written
        const [blob = ""] = yield* fs.readDirectory(path.join(folder, "blobs"))
        yield* fs.writeFileString(path.join(folder, "blobs", blob), "damage")
        const damaged = yield* Effect.flip(open)
        assert.deepStrictEqual([damaged.reason._tag, damaged.message.includes(blob)], ["SessionCorrupt", true])
        yield* fs.remove(path.join(folder, "blobs", blob))
        const error = yield* Effect.flip(open)
        assert.strictEqual(error.reason._tag, "SessionCorrupt")
        assert.strictEqual(error.message, `session s1, line 3: nothing is stored under ${blob}`)
      })
    )

    it.effect("writes nothing to a log that somebody else changed, replaced or took away", () =>
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        const { file, store } = yield* written
        const content = yield* fs.readFileString(file)
        const changes: ReadonlyArray<readonly [Effect.Effect<void, unknown>, string | undefined]> = [
          [fs.writeFileString(file, `${content}more\n`), `${content}more\n`],
          [fs.truncate(file, 10), content.slice(0, 10)],
          [Effect.andThen(fs.copyFile(file, `${file}.copy`), fs.rename(`${file}.copy`, file)), content],
          [fs.remove(file), undefined]
        ]
        for (const [change, left] of changes) {
          yield* fs.writeFileString(file, content)
          const error = yield* SessionStore.use((_) =>
            Effect.gen(function* () {
              const { log } = yield* _.open("s1")
              yield* change
              return yield* Effect.flip(log.append(appended(3, textPart("lost?"))))
            })
          ).pipe(Effect.scoped, Effect.provide(store))
          assert.strictEqual(error.reason._tag, "SessionChanged")
          const found = yield* Effect.option(fs.readFileString(file))
          assert.strictEqual(found._tag === "Some" ? found.value : undefined, left)
        }
      })
    )

    it.effect("takes over the lock of a process that is gone, and of one whose number was given to another", () =>
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        const { folder, lock, open } = yield* written
        const locks: ReadonlyArray<object> = [
          { pid: 4_194_999, start: "1", since: 1 },
          { pid: 4_194_999, since: 1 },
          { pid, start: "1", since: 1 }
        ]
        for (const owner of locks) {
          yield* fs.writeFileString(lock, JSON.stringify(owner))
          assert.deepStrictEqual((yield* open).session, fold(events))
          assert.deepStrictEqual((yield* fs.readDirectory(folder)).sort(), ["blobs", "s1.jsonl"])
        }
      })
    )

    it.effect("respects the lock of a process that runs, and says who it is", () =>
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        const { lock, open } = yield* written
        const stat = yield* fs.readFileString("/proc/self/stat")
        const start = stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19]
        const owners: ReadonlyArray<{ readonly pid: number; readonly start?: string | undefined }> = [
          { pid, start },
          { pid },
          { pid: 1 }
        ]
        for (const owner of owners) {
          const text = JSON.stringify({ ...owner, since: 17 })
          yield* fs.writeFileString(lock, text)
          const { reason } = yield* Effect.flip(open)
          assert.deepStrictEqual(reason._tag === "SessionLocked" ? [reason.pid, reason.since] : reason._tag, [
            owner.pid,
            17
          ])
          assert.strictEqual(yield* fs.readFileString(lock), text)
        }
      })
    )

    it.effect("respects a lock that says nothing yet, and takes it over when it never will", () =>
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        const { lock, open } = yield* written
        for (const text of ["", "{", '{"pid":-1,"since":1}']) {
          yield* fs.writeFileString(lock, text)
          yield* TestClock.setTime(1_000_000_000)
          yield* fs.utimes(lock, 999_991, 999_991)
          assert.strictEqual((yield* Effect.flip(open)).reason._tag, "SessionLocked")
          yield* fs.utimes(lock, 999_989, 999_989)
          assert.strictEqual((yield* open).torn, 0)
        }
      })
    )

    it.effect("does not release a lock that is no longer its own", () =>
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        const { lock, store } = yield* written
        yield* SessionStore.use((_) => Effect.andThen(_.open("s1"), fs.writeFileString(lock, "somebody else's"))).pipe(
          Effect.scoped,
          Effect.provide(store)
        )
        assert.strictEqual(yield* fs.readFileString(lock), "somebody else's")
      })
    )

    it.effect(
      "refuses further appends when half a line could not be taken back, and heals when it is opened again",
      () =>
        Effect.gen(function* () {
          const path = yield* Path.Path
          const { folder, open } = yield* written
          const faulty = yield* FaultyFileSystem.make((call) =>
            call.name === "File.writeAll" && call.write === 2 ? "half" : call.name === "File.truncate" ? "fail" : "pass"
          )
          const store = FileSessionStore.layer(folder).pipe(
            Layer.provide(FileTempStore.layer(path.join(folder, "blobs"))),
            Layer.provide(faulty.layer)
          )
          yield* SessionStore.use((_) =>
            Effect.gen(function* () {
              // The first write is the lock's.
              const { log } = yield* _.open("s1")
              for (let i = 0; i < 3; i += 1) {
                const error = yield* Effect.flip(log.append(appended(3, textPart("never"))))
                assert.strictEqual(error.reason._tag, "SessionUnavailable")
              }
            })
          ).pipe(Effect.scoped, Effect.provide(store))
          const found = yield* open
          assert.deepStrictEqual(found.session, fold(events))
          assert.isAbove(found.torn, 0)
        })
    )

    it.effect("goes on after an append that failed", () =>
      Effect.gen(function* () {
        const path = yield* Path.Path
        const { folder, open } = yield* written
        for (const name of ["File.writeAll", "File.sync"]) {
          let seen = 0
          const faulty = yield* FaultyFileSystem.make((call) => {
            if (call.name === name) seen += 1
            return call.name === name && seen === (name === "File.sync" ? 1 : 2) ? "half" : "pass"
          })
          const store = FileSessionStore.layer(folder).pipe(
            Layer.provide(FileTempStore.layer(path.join(folder, "blobs"))),
            Layer.provide(faulty.layer)
          )
          yield* SessionStore.use((_) =>
            Effect.gen(function* () {
              const { log } = yield* _.open("s1")
              assert.strictEqual(
                (yield* Effect.flip(log.append({ _tag: "Undone", at: 1 }))).reason._tag,
                "SessionUnavailable"
              )
              yield* log.append({ _tag: "Redone", at: 2 })
            })
          ).pipe(Effect.scoped, Effect.provide(store))
        }
        const redone = { _tag: "Redone", at: 2 } as const
        assert.deepStrictEqual(yield* open, { session: fold([...events, redone, redone]), torn: 0 })
      })
    )

    it.effect("a blob store that fails makes an append fail and the log stay as it was", () =>
      Effect.gen(function* () {
        const path = yield* Path.Path
        const { folder, open } = yield* written
        const full = Layer.effect(
          TempStore,
          Effect.map(TempStore, (real) => ({
            ...real,
            put: () =>
              Effect.fail(
                new TempStoreError({
                  reason: new BlobUnavailable({ operation: "put", message: "no space left", cause: "ENOSPC" })
                })
              )
          }))
        ).pipe(Layer.provide(FileTempStore.layer(path.join(folder, "blobs"))))
        const store = FileSessionStore.layer(folder).pipe(Layer.provide(full))
        const error = yield* SessionStore.use((_) =>
          Effect.flatMap(_.open("s1"), ({ log }) => Effect.flip(log.append(appended(3, textPart("y".repeat(9_000))))))
        ).pipe(Effect.scoped, Effect.provide(store))
        assert.deepStrictEqual([error.reason._tag, error.message], ["SessionUnavailable", "no space left"])
        assert.deepStrictEqual((yield* open).session, fold(events))
      })
    )
  })
})
