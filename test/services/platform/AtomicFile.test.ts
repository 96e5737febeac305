import { NodeServices } from "@effect/platform-node"
import { assert, describe, layer } from "@effect/vitest"
import { Effect, Fiber, FileSystem, Path } from "effect"
import { encode } from "../../../src/domain/text/Bytes.ts"
import * as AtomicFile from "../../../src/services/platform/AtomicFile.ts"
import * as FaultyFileSystem from "../../support/FaultyFileSystem.ts"
import { temporaryFolder } from "../../support/workspaces.ts"

const ground = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const folder = yield* temporaryFolder
  const at = (...parts: ReadonlyArray<string>) => path.join(folder, ...parts)
  const modeOf = (place: string) => Effect.map(fs.stat(place), ({ mode }) => mode & 0o777)
  return { fs, folder, at, modeOf }
})

layer(NodeServices.layer)("an atomic write", (it) => {
  it.effect("creates the file and its folders private to the owner", () =>
    Effect.gen(function* () {
      const { at, fs, modeOf } = yield* ground
      yield* AtomicFile.writePrivate(at("a", "b", "file"), "first")
      yield* AtomicFile.writePrivate(at("a", "b", "file"), "then")
      assert.strictEqual(yield* fs.readFileString(at("a", "b", "file")), "then")
      assert.deepStrictEqual(
        yield* Effect.forEach([at("a"), at("a", "b"), at("a", "b", "file")], modeOf),
        [0o700, 0o700, 0o600]
      )
      assert.deepStrictEqual(yield* fs.readDirectory(at("a", "b")), ["file"])
    })
  )

  it.effect("uses the given mode, else that of any new file", () =>
    Effect.gen(function* () {
      const { at, fs, modeOf } = yield* ground
      yield* fs.writeFileString(at("any"), "")
      yield* AtomicFile.write(at("new"), encode("a"), undefined)
      yield* AtomicFile.write(at("script"), encode("b"), 0o751)
      assert.strictEqual(yield* modeOf(at("new")), yield* modeOf(at("any")))
      assert.strictEqual(yield* modeOf(at("script")), 0o751)
    })
  )

  it.effect("replaces a link and keeps its target", () =>
    Effect.gen(function* () {
      const { at, fs } = yield* ground
      yield* fs.writeFileString(at("elsewhere"), "theirs")
      yield* fs.symlink(at("elsewhere"), at("file"))
      yield* AtomicFile.writePrivate(at("file"), "ours")
      assert.strictEqual(yield* fs.readFileString(at("elsewhere")), "theirs")
      assert.strictEqual(yield* fs.readFileString(at("file")), "ours")
    })
  )
})

describe("a failing disk or an interruption", () => {
  layer(NodeServices.layer)((it) => {
    for (const verdict of ["fail", "half"] as const) {
      it.effect(`${verdict}: the old file stays, without leftovers`, () =>
        Effect.gen(function* () {
          const { at, folder, fs } = yield* ground
          yield* fs.writeFileString(at("file"), "before")
          const writes = Effect.fnUntraced(function* (fault: FaultyFileSystem.Fault) {
            const { calls, layer: disk } = yield* FaultyFileSystem.make(fault)
            const done = yield* Effect.exit(AtomicFile.writePrivate(at("file"), "after").pipe(Effect.provide(disk)))
            return { done, changes: (yield* calls).filter(({ mutating }) => mutating !== undefined).length }
          })
          const { changes } = yield* writes(FaultyFileSystem.none)
          yield* fs.writeFileString(at("file"), "before")
          for (let n = 1; n <= changes; n += 1) {
            const { done } = yield* writes(FaultyFileSystem.nthMutating(n, verdict))
            assert.strictEqual(done._tag, "Failure", `change ${n}`)
            assert.strictEqual(yield* fs.readFileString(at("file")), "before", `change ${n}`)
            assert.deepStrictEqual(yield* fs.readDirectory(folder), ["file"], `change ${n}`)
          }
          assert.isAtLeast(changes, 5)
        })
      )
    }

    it.effect("at any step leaves the old or the new file when the interruption returns", () =>
      Effect.gen(function* () {
        const { at, folder, fs } = yield* ground
        const seen = new Set<string>()
        for (let n = 1; n <= 6; n += 1) {
          yield* fs.writeFileString(at("file"), "before")
          const disk = yield* FaultyFileSystem.make(FaultyFileSystem.nthMutating(n, "hang"))
          const writing = yield* AtomicFile.write(at("file"), encode("after"), 0o600).pipe(
            Effect.provide(disk.layer),
            Effect.forkChild({ startImmediately: true })
          )
          const { length } = yield* Effect.raceFirst(
            Effect.as(disk.hanging, ["hangs"]),
            Effect.as(Fiber.await(writing), [])
          )
          const stopped = yield* Effect.forkChild(Fiber.interrupt(writing), { startImmediately: true })
          yield* disk.release
          yield* Fiber.join(stopped)
          const text = yield* fs.readFileString(at("file"))
          assert.include(["before", "after"], text)
          assert.deepStrictEqual(yield* fs.readDirectory(folder), ["file"])
          if (length > 0) seen.add(text)
        }
        assert.include([...seen], "after")
      })
    )
  })
})
