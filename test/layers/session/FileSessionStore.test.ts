import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Fiber, FileSystem, Layer, Result } from "effect"
import path from "node:path"
import { text } from "../../../src/domain/content/Content.ts"
import * as FileSessionStore from "../../../src/layers/session/FileSessionStore.ts"
import * as FileTempStore from "../../../src/layers/session/FileTempStore.ts"
import { appended, started } from "../../../src/layers/testing/SessionHistories.ts"
import { SessionStore, type SessionStoreError } from "../../../src/services/session/SessionStore.ts"
import * as FaultyFileSystem from "../../support/FaultyFileSystem.ts"
import { assert, layer } from "../../support/vitest.ts"

/** A session in files that is deleted while another request works with it, and one that takes its place. */

const id = "one"
type Store = SessionStore["Service"]

const works: ReadonlyArray<readonly [name: string, work: (store: Store) => Effect.Effect<unknown, SessionStoreError>]> =
  [
    ["opened", (store) => Effect.scoped(store.open(id))],
    ["read", (store) => store.events(id)]
  ]

layer(NodeServices.layer)((it) => {
  for (const [name, work] of works) {
    it.effect.each([false, true])(
      `that is ${name} is missing unless it is stored anew (%s), and nothing else fails`,
      function* (isAnew) {
        const fs = yield* FileSystem.FileSystem
        const storeOf = (folder: string, files: Layer.Layer<FileSystem.FileSystem>) =>
          Layer.build(Layer.fresh(FileSessionStore.layer(folder)).pipe(Layer.provide([FileTempStore.folders, files])))
        let missing = 0
        for (let number = 1; ; number += 1) {
          const folder = yield* fs.makeTempDirectoryScoped()
          const store = yield* Effect.provide(
            SessionStore,
            yield* storeOf(folder, Layer.succeed(FileSystem.FileSystem, fs))
          )
          yield* store.add([started(id), appended(1, text("Hello".repeat(2_000)))])
          const faulty = yield* FaultyFileSystem.make(FaultyFileSystem.nthCall(number, "hang"))
          const other = yield* Effect.provide(SessionStore, yield* storeOf(folder, faulty.layer))
          const working = yield* Effect.forkChild(Effect.result(work(other)), { startImmediately: true })
          const isHanging = yield* Effect.raceFirst(
            Effect.as(faulty.hanging, true),
            Effect.as(Fiber.await(working), false)
          )
          if (!isHanging) break
          // By hand: the lock may be taken.
          for (const file of yield* fs.readDirectory(folder))
            yield* fs.remove(path.join(folder, file), { recursive: true })
          if (isAnew) yield* store.add([started(id), appended(1, text("World".repeat(2_000)))])
          yield* faulty.release
          const result = yield* Fiber.join(working)
          if (Result.isSuccess(result)) continue
          assert.strictEqual(result.failure.reason._tag, "SessionNotFound", `call ${number}: ${result.failure.message}`)
          missing += 1
        }
        if (isAnew) assert.strictEqual(missing, 0)
        else assert.isAbove(missing, 0)
      }
    )
  }
})
