import { NodeServices } from "@effect/platform-node"
import { Effect, FileSystem, Option, Path } from "effect"
import { execFileSync } from "node:child_process"
import { encode } from "../../../src/domain/text/Bytes.ts"
import { diskErrorText } from "../../../src/domain/text/DiskErrors.ts"
import * as AtomicFile from "../../../src/services/platform/AtomicFile.ts"
import * as FaultyFileSystem from "../../support/FaultyFileSystem.ts"
import { needs } from "../../support/machine.ts"
import { assert, describe, layer } from "../../support/vitest.ts"
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
  it.effect("creates the file and its folders private to the owner", function* () {
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

  it.effect("uses the given mode, else that of any new file", function* () {
    const { at, fs, modeOf } = yield* ground
    yield* fs.writeFileString(at("any"), "")
    yield* AtomicFile.write(at("new"), encode("a"), undefined)
    yield* AtomicFile.write(at("script"), encode("b"), 0o751)
    assert.strictEqual(yield* modeOf(at("new")), yield* modeOf(at("any")))
    assert.strictEqual(yield* modeOf(at("script")), 0o751)
  })

  it.effect("replaces a link and keeps its target", function* () {
    const { at, fs } = yield* ground
    yield* fs.writeFileString(at("elsewhere"), "theirs")
    yield* fs.symlink(at("elsewhere"), at("file"))
    yield* AtomicFile.writePrivate(at("file"), "ours")
    assert.strictEqual(yield* fs.readFileString(at("elsewhere")), "theirs")
    assert.strictEqual(yield* fs.readFileString(at("file")), "ours")
  })
})

layer(NodeServices.layer)("rewriting a file of the user's", (it) => {
  it.effect("keeps its mode, and a new one gets the given mode", function* () {
    const { at, fs, modeOf } = yield* ground
    for (const mode of [0o600, 0o640, 0o644, 0o755]) {
      yield* fs.writeFileString(at("file"), "before")
      yield* fs.chmod(at("file"), mode)
      yield* AtomicFile.rewrite(at("file"), encode("after"), 0o600)
      assert.strictEqual(yield* modeOf(at("file")), mode)
      assert.strictEqual(yield* fs.readFileString(at("file")), "after")
    }
    yield* AtomicFile.rewritePrivate(at("new", "file"), "after")
    assert.deepStrictEqual([yield* modeOf(at("new")), yield* modeOf(at("new", "file"))], [0o700, 0o600])
  })

  it.effect("follows links, also to a file in a folder that is linked", function* () {
    const { at, fs } = yield* ground
    yield* fs.makeDirectory(at("real"))
    yield* fs.writeFileString(at("real", "file"), "before")
    yield* fs.symlink(at("real"), at("folder"))
    yield* fs.symlink("folder/file", at("link"))
    yield* AtomicFile.rewrite(at("link"), encode("after"), undefined)
    assert.strictEqual(yield* fs.readFileString(at("real", "file")), "after")
    assert.strictEqual(yield* fs.readLink(at("link")), "folder/file")
    assert.strictEqual(yield* AtomicFile.leadsTo(at("folder", "new", "file")), at("real", "new", "file"))
  })

  it.effect("refuses a folder, a device, a named pipe and a link that leads nowhere", function* () {
    const { at, fs, folder } = yield* ground
    yield* fs.makeDirectory(at("folder"))
    yield* fs.symlink("/dev/null", at("device"))
    yield* fs.symlink(at("none"), at("nowhere"))
    execFileSync("mkfifo", [at("pipe")])
    const names = ["folder", "device", "nowhere", "pipe"]
    for (const name of names) {
      const error = yield* Effect.flip(AtomicFile.rewrite(at(name), encode("x"), undefined))
      assert.notInclude(diskErrorText(error), "\n", name)
    }
    assert.deepStrictEqual((yield* fs.readDirectory(folder)).toSorted(), names.toSorted())
  })
})

needs("a user who is not root")("rewriting a file", () => {
  layer(NodeServices.layer)((it) => {
    it.effect("refuses a read-only one", function* () {
      const { at, fs } = yield* ground
      yield* fs.writeFileString(at("file"), "before")
      yield* fs.chmod(at("file"), 0o444)
      yield* Effect.flip(AtomicFile.rewrite(at("file"), encode("after"), undefined))
      assert.strictEqual(yield* fs.readFileString(at("file")), "before")
    })
  })
})

needs("root")("writing a file of another user's", () => {
  const others = { uid: 1_234, gid: 2_345 }
  const theirs = Effect.gen(function* () {
    const { at, folder, fs, modeOf } = yield* ground
    yield* fs.writeFileString(at("file"), "a text that is longer")
    yield* fs.chmod(at("file"), 0o640)
    yield* fs.chown(at("file"), others.uid, others.gid)
    const owner = Effect.map(fs.stat(at("file")), ({ gid, uid }) => ({
      uid: Option.getOrThrow(uid),
      gid: Option.getOrThrow(gid)
    }))
    return { file: at("file"), folder, fs, mode: modeOf(at("file")), owner }
  })

  layer(NodeServices.layer)((it) => {
    it.effect("keeps its owner, its group and its mode", function* () {
      const { file, mode, owner } = yield* theirs
      yield* AtomicFile.rewrite(file, encode("after"), 0o600)
      assert.deepStrictEqual(yield* owner, others)
      assert.strictEqual(yield* mode, 0o640)
      yield* AtomicFile.writePrivate(file, "private")
      assert.deepStrictEqual(yield* owner, others)
      assert.strictEqual(yield* mode, 0o640)
    })

    it.effect("has its old content when the disk fails", function* () {
      const { file, folder, fs, mode, owner } = yield* theirs
      const writes = Effect.fnUntraced(function* (fault: FaultyFileSystem.Fault) {
        const { calls, layer: disk } = yield* FaultyFileSystem.make(fault)
        const done = yield* Effect.exit(AtomicFile.rewrite(file, encode("after"), 0o600).pipe(Effect.provide(disk)))
        return { done, changes: (yield* calls).filter(({ mutating }) => mutating !== undefined).length }
      })
      const { changes } = yield* writes(FaultyFileSystem.none)
      assert.strictEqual(yield* fs.readFileString(file), "after")
      for (let n = 1; n < changes; n += 1) {
        yield* fs.writeFileString(file, "a text that is longer")
        const { done } = yield* writes(FaultyFileSystem.nthMutating(n, "half"))
        assert.strictEqual(done._tag, "Failure", `change ${n}`)
        assert.strictEqual(yield* fs.readFileString(file), "a text that is longer", `change ${n}`)
        assert.deepStrictEqual(yield* fs.readDirectory(folder), ["file"], `change ${n}`)
      }
      assert.deepStrictEqual(yield* owner, others)
      assert.strictEqual(yield* mode, 0o640)
    })
  })
})

describe("a failing disk or an interruption", () => {
  layer(NodeServices.layer)((it) => {
    it.effect.each(["fail", "half"] as const)("%s: the old file stays, without leftovers", function* (verdict) {
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

    it.effect("at any step leaves the old or the new file when the interruption returns", function* () {
      const { at, folder, fs } = yield* ground
      const seen = new Set<string>()
      for (let n = 1; n <= 6; n += 1) {
        yield* fs.writeFileString(at("file"), "before")
        const disk = yield* FaultyFileSystem.make(FaultyFileSystem.nthMutating(n, "hang"))
        const writing = yield* AtomicFile.write(at("file"), encode("after"), 0o600).pipe(
          Effect.provide(disk.layer),
          Effect.forkChild({ startImmediately: true })
        )
        const hung = yield* disk.interrupt(writing)
        const text = yield* fs.readFileString(at("file"))
        assert.include(["before", "after"], text)
        assert.deepStrictEqual(yield* fs.readDirectory(folder), ["file"])
        if (hung) seen.add(text)
      }
      assert.include([...seen], "after")
    })
  })
})
