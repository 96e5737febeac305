import * as NodePath from "@effect/platform-node/NodePath"
import { Effect, FileSystem, Layer } from "effect"
import { KeyValueStore } from "effect/persistence"
import { text } from "../../../src/domain/content/Content.ts"
import type { SessionEvent } from "../../../src/domain/session/Session.ts"
import * as FileSessionStore from "../../../src/layers/session/FileSessionStore.ts"
import * as FileTempStore from "../../../src/layers/session/FileTempStore.ts"
import * as KeyValueSessionStore from "../../../src/layers/session/KeyValueSessionStore.ts"
import * as SqliteSessionStore from "../../../src/layers/session/SqliteSessionStore.ts"
import * as MemoryFileSystem from "../../../src/layers/testing/MemoryFileSystem.ts"
import { appended, started } from "../../../src/layers/testing/SessionHistories.ts"
import { SessionStore } from "../../../src/services/session/SessionStore.ts"
import { interruptSweep } from "../../support/interruptSweep.ts"
import { strideOf } from "../../support/runs.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** Stores in memory whose callers are interrupted, or meet each other, at any point. */

const inMemory = (fs: Layer.Layer<FileSystem.FileSystem>) =>
  FileSessionStore.layer("/sessions").pipe(
    Layer.provide(FileTempStore.folders),
    Layer.provide(Layer.merge(fs, NodePath.layer))
  )

const stores = {
  "a key-value store": KeyValueSessionStore.layer().pipe(Layer.provide(KeyValueStore.layerMemory)),
  SQLite: SqliteSessionStore.layer(":memory:")
}

const lines = [1, 2, 3].map((n) => appended(n, text(n === 2 ? "x".repeat(9_000) : `line ${n}`)))
const more = appended(9, text("free to go on"))

/** Whether these are the first of those events. */
const isBeginning = (found: ReadonlyArray<SessionEvent>, all: ReadonlyArray<SessionEvent>) =>
  JSON.stringify(found) === JSON.stringify(all.slice(0, found.length))

describe("a session whose writer is interrupted anywhere has whole lines, and a next writer can open it", () => {
  it.live.each(Object.entries(stores))("%s", ([, layer]) =>
    Effect.gen(function* () {
      const store = yield* SessionStore
      const idOf = (k: number) => `s${k}`
      const points = yield* interruptSweep(
        (k) =>
          Effect.scoped(
            Effect.flatMap(store.create(started(idOf(k))), (log) =>
              Effect.forEach(lines, log.append, { discard: true })
            )
          ),
        (_, k) =>
          Effect.gen(function* () {
            const all = [started(idOf(k)), ...lines]
            if (!(yield* store.list).includes(idOf(k))) {
              yield* Effect.scoped(store.create(started(idOf(k))))
            }
            const found = yield* store.events(idOf(k))
            assert.isTrue(isBeginning(found, all), JSON.stringify(found))
            yield* Effect.scoped(Effect.flatMap(store.open(idOf(k)), ({ log }) => log.append(more)))
            assert.deepStrictEqual(yield* store.events(idOf(k)), [...found, more])
            yield* store.remove(idOf(k))
          }),
        strideOf(29)
      )
      assert.isAbove(points, 5)
    }).pipe(Effect.scoped, Effect.provide(Layer.fresh(layer)))
  )
})

it.effect("a new session gives way to another that came before its lock", MemoryFileSystem.layer(), function* () {
  const fs = yield* FileSystem.FileSystem
  const other = [started("s1"), appended(1, text("of the other writer"))]
  const others = inMemory(Layer.succeed(FileSystem.FileSystem, fs))
  let isFirst = true
  // The folder is made between the first look and the lock.
  const slow: FileSystem.FileSystem = {
    ...fs,
    makeDirectory: (path, options) =>
      Effect.suspend(() => {
        const made = fs.makeDirectory(path, options)
        if (!isFirst) return made
        isFirst = false
        return Effect.andThen(
          Effect.orDie(
            Effect.provide(
              SessionStore.use((store) => store.add(other)),
              Layer.fresh(others)
            )
          ),
          made
        )
      })
  }
  const error = yield* Effect.flip(Effect.scoped(SessionStore.use((store) => store.create(started("s1"))))).pipe(
    Effect.provide(inMemory(Layer.succeed(FileSystem.FileSystem, slow)))
  )
  assert.isFalse(isFirst)
  assert.strictEqual(error.reason._tag, "SessionExists")
  assert.deepStrictEqual(yield* SessionStore.use((store) => store.events("s1")).pipe(Effect.provide(others)), other)
})
