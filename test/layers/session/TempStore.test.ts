import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Exit, FileSystem, Layer, Path, Ref } from "effect"
import { handleOf, Hash } from "../../../src/domain/content/Handle.ts"
import * as Bytes from "../../../src/domain/text/Bytes.ts"
import * as FileTempStore from "../../../src/layers/session/FileTempStore.ts"
import * as MemoryTempStore from "../../../src/layers/testing/MemoryTempStore.ts"
import { tempStoreContract } from "../../../src/layers/testing/TempStoreContract.ts"
import { TempStore } from "../../../src/services/session/TempStore.ts"
import * as FaultyFileSystem from "../../support/FaultyFileSystem.ts"
import { interruptSweep } from "../../support/interruptSweep.ts"
import { runsOf } from "../../support/runs.ts"
import { assert, describe, it, layer } from "../../support/vitest.ts"

let lastFolder = ""

tempStoreContract(
  { describe, it },
  {
    name: "FileTempStore",
    make: Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const folder = yield* fs.makeTempDirectoryScoped()
      lastFolder = path.join(folder, "not", "yet", "there")
      return Layer.provide(FileTempStore.layer(lastFolder), NodeServices.layer)
    }).pipe(Effect.provide(NodeServices.layer)),
    damage: (hash) =>
      FileSystem.FileSystem.use((fs) => fs.writeFileString(`${lastFolder}/${hash}`, "damage")).pipe(
        Effect.provide(NodeServices.layer)
      ),
    runs: runsOf(200, 8)
  }
)

tempStoreContract(
  { describe, it },
  {
    name: "MemoryTempStore",
    make: Effect.map(Layer.build(MemoryTempStore.layer), Layer.succeedContext),
    damage: undefined,
    runs: runsOf(1_000, 20)
  }
)

const bytes = Bytes.encode("x".repeat(10_000))

/** A folder for blobs that does not exist yet. */
const freshFolder = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  return path.join(yield* fs.makeTempDirectoryScoped(), "blobs")
})

const names = Effect.fnUntraced(function* (folder: string) {
  const fs = yield* FileSystem.FileSystem
  return yield* fs.readDirectory(folder).pipe(Effect.orElseSucceed((): Array<string> => []))
})

const put = (folder: string) =>
  TempStore.use((store) => store.put(bytes)).pipe(Effect.provide(Layer.fresh(FileTempStore.layer(folder))))

/** What is wrong with a folder after a put that may not have succeeded. */
const violations = Effect.fnUntraced(function* (folder: string, acknowledged: boolean) {
  const found = yield* names(folder)
  const hash = yield* put(folder)
  const whole = yield* TempStore.use((store) => store.get(hash)).pipe(
    Effect.provide(Layer.fresh(FileTempStore.layer(folder)))
  )
  return [
    ...found.filter((name) => name !== hash).map((name) => `left behind: ${name}`),
    ...(acknowledged && !found.includes(hash) ? ["acknowledged and not there"] : []),
    ...(whole.length === bytes.length ? [] : ["not whole"])
  ]
})

describe("FileTempStore", () => {
  layer(NodeServices.layer)((it) => {
    it.effect("keeps files private to their owner, and writes no bytes twice", function* () {
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const folder = yield* freshFolder
      const hash = yield* put(folder)
      assert.deepStrictEqual(yield* names(folder), [hash])
      assert.strictEqual((yield* fs.stat(folder)).mode & 0o777, 0o700)
      assert.strictEqual((yield* fs.stat(path.join(folder, hash))).mode & 0o777, 0o600)
      const faulty = yield* FaultyFileSystem.make(FaultyFileSystem.none)
      yield* put(folder).pipe(Effect.provide(faulty.layer))
      const changes = (yield* faulty.calls).filter((call) => call.mutating !== undefined && call.name !== "File.sync")
      assert.deepStrictEqual(changes, [])
    })

    it.effect("detects a damaged blob, and repairs it when the bytes are stored again", function* () {
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const folder = yield* freshFolder
      const hash = yield* put(folder)
      const store = yield* Layer.build(FileTempStore.layer(folder))
      const get = TempStore.use((_) => _.get(hash)).pipe(Effect.provide(store))
      for (const damage of [bytes.subarray(1), new Uint8Array(), Bytes.encode("y".repeat(10_000))]) {
        yield* fs.writeFile(path.join(folder, hash), damage)
        const error = yield* Effect.flip(get)
        assert.strictEqual(error.reason._tag, "BlobDamaged")
        yield* put(folder)
        assert.strictEqual((yield* get).length, bytes.length)
      }
    })

    it.effect("does not follow a link out of its folder, and replaces the link, not its target", function* () {
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const folder = yield* freshFolder
      const hash = yield* put(folder)
      const outside = path.join(path.dirname(folder), "outside")
      // Even the right bytes are not taken from there.
      yield* fs.rename(path.join(folder, hash), outside)
      yield* fs.symlink(outside, path.join(folder, hash))
      const get = TempStore.use((_) => _.get(hash)).pipe(Effect.provide(FileTempStore.layer(folder)))
      assert.strictEqual((yield* Effect.flip(get)).reason._tag, "BlobDamaged")
      yield* put(folder)
      assert.strictEqual((yield* get).length, bytes.length)
      assert.strictEqual((yield* fs.lstat(path.join(folder, hash))).type, "File")
      assert.strictEqual((yield* fs.readFile(outside)).length, bytes.length)
    })

    it.effect("rejects a name that is not a hash, and an ambiguous handle", function* () {
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const folder = yield* freshFolder
      const hash = yield* put(folder)
      yield* fs.writeFileString(path.join(path.dirname(folder), "secret"), "secret")
      const store = yield* Layer.build(FileTempStore.layer(folder))
      for (const name of ["../secret", "secret", "", `${hash}/../../secret`]) {
        const forged = TempStore.use((_) => _.get(Hash.make(name, { disableChecks: true }))).pipe(Effect.provide(store))
        assert.strictEqual((yield* Effect.flip(forged)).reason._tag, "BlobMissing")
      }
      yield* fs.writeFileString(path.join(folder, `${hash.slice(0, 51)}a`), "")
      yield* fs.writeFileString(path.join(folder, "README"), "")
      const error = yield* TempStore.use((_) => _.resolve(handleOf(hash))).pipe(Effect.provide(store), Effect.flip)
      assert.strictEqual(error.reason._tag, "HandleAmbiguous")
    })

    it.effect("writes completely or not at all, without leftovers, whichever call fails or stops", function* () {
      const counting = yield* FaultyFileSystem.make(FaultyFileSystem.none)
      yield* put(yield* freshFolder).pipe(Effect.provide(counting.layer))
      const calls = yield* counting.calls
      const faults = [
        ...calls.map((_, index) => FaultyFileSystem.nthCall(index + 1, "fail")),
        ...calls.map((_, index) => FaultyFileSystem.nthWriteHalf(index + 1))
      ]
      let failures = 0
      for (const fault of faults) {
        const folder = yield* freshFolder
        const faulty = yield* FaultyFileSystem.make(fault)
        const exit = yield* Effect.exit(put(folder).pipe(Effect.provide(faulty.layer)))
        if (Exit.isFailure(exit)) failures += 1
        assert.deepStrictEqual(yield* violations(folder, Exit.isSuccess(exit)), [])
      }
      assert.isAtLeast(failures, 7)
    })

    it.effect("leaves nothing behind when interrupted while a call hangs", function* () {
      const counting = yield* FaultyFileSystem.make(FaultyFileSystem.none)
      yield* put(yield* freshFolder).pipe(Effect.provide(counting.layer))
      for (const { number } of yield* counting.calls) {
        const folder = yield* freshFolder
        const faulty = yield* FaultyFileSystem.make(FaultyFileSystem.nthCall(number, "hang"))
        const fiber = yield* Effect.forkChild(put(folder).pipe(Effect.provide(faulty.layer)))
        assert.isTrue(yield* faulty.interrupt(fiber))
        assert.deepStrictEqual(yield* violations(folder, false), [])
      }
    })

    it.effect("leaves nothing behind at any suspension point", function* () {
      const path = yield* Path.Path
      const base = yield* freshFolder
      const folder = (k: number) => path.join(base, String(k))
      const acknowledged = yield* Ref.make(false)
      const points = yield* interruptSweep(
        (k) =>
          Ref.set(acknowledged, false).pipe(
            Effect.andThen(put(folder(k))),
            Effect.andThen(Ref.set(acknowledged, true))
          ),
        (_, k) =>
          Effect.gen(function* () {
            assert.deepStrictEqual(yield* violations(folder(k), yield* Ref.get(acknowledged)), [])
          })
      )
      assert.isAtLeast(points, 50)
    })

    it.effect("the checks detect a missing rename and a leftover temporary file", function* () {
      for (const lie of ["rename", "remove"]) {
        const folder = yield* freshFolder
        const faulty = yield* FaultyFileSystem.make((call) =>
          call.name === lie ? "lie" : lie === "remove" && call.name === "File.writeAll" ? "half" : "pass"
        )
        const exit = yield* Effect.exit(put(folder).pipe(Effect.provide(faulty.layer)))
        assert.isNotEmpty(yield* violations(folder, Exit.isSuccess(exit)))
      }
    })
  })
})
