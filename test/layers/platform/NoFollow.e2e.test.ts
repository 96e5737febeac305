import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem, type Path, PlatformError, type Scope } from "effect"
import { execFileSync } from "node:child_process"
import { readdirSync, readlinkSync } from "node:fs"
import path from "node:path"
import { diskErrorText } from "../../../src/domain/text/DiskErrors.ts"
import type { NoFollow as CheckedPaths } from "../../../src/layers/platform/CheckedPaths.ts"
import * as NoFollow from "../../../src/layers/platform/NoFollow.ts"
import * as MemoryFileSystem from "../../../src/layers/testing/MemoryFileSystem.ts"
import { needs } from "../../support/machine.ts"
import { temporaryFolder, writeFiles } from "../../support/workspaces.ts"

/** The machine's files without descriptors as paths, as on macOS. */
const withoutProc = Effect.map(FileSystem.FileSystem, (fs) =>
  FileSystem.make({
    ...fs,
    stat: (place) =>
      place.startsWith("/proc/")
        ? Effect.fail(PlatformError.systemError({ _tag: "NotFound", module: "FileSystem", method: "stat" }))
        : fs.stat(place)
  })
)

const inMemory = Effect.flatMap(FileSystem.FileSystem, (fs) =>
  Effect.map(MemoryFileSystem.make({ "/memory/": "" }), (memory) => ({ fs, memory }))
)

type Use = (options: {
  readonly top: string
  readonly plain: FileSystem.FileSystem
  readonly files: FileSystem.FileSystem
  readonly held: CheckedPaths["folder"]
}) => Generator<
  Effect.Effect<unknown, PlatformError.PlatformError, FileSystem.FileSystem | Path.Path | Scope.Scope>,
  unknown,
  never
>

const using = (kind: "descriptors" | "looks" | "memory", use: Use) =>
  Effect.gen(function* () {
    const { fs, memory } = yield* inMemory
    const plain = kind === "memory" ? memory : kind === "looks" ? yield* withoutProc : fs
    const top = kind === "memory" ? "/memory" : yield* temporaryFolder
    yield* Effect.gen(function* () {
      const { files, folder } = yield* NoFollow.make
      yield* Effect.gen(() => use({ top, plain, files: files(plain), held: (place) => folder(place) }))
    }).pipe(Effect.provideService(FileSystem.FileSystem, plain))
  }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))

const told = <R>(work: Effect.Effect<unknown, PlatformError.PlatformError, R>) =>
  Effect.match(work, {
    onFailure: (error) => `${error.reason._tag}: ${diskErrorText(error)}`,
    onSuccess: () => "done"
  })

/** What tools rely on, of each way. */
const contract = (kind: "descriptors" | "looks" | "memory") => {
  it.effect("works like the plain operation without links", () =>
    using(kind, function* ({ files, held, plain, top }) {
      yield* files.makeDirectory(`${top}/a/b`, { recursive: true })
      yield* files.makeDirectory(`${top}/a/b`, { recursive: true })
      yield* Effect.scoped(
        Effect.flatMap(files.open(`${top}/a/b/c`, { flag: "wx", mode: 0o640 }), (file) =>
          file.writeAll(new TextEncoder().encode("one"))
        )
      )
      assert.match(yield* told(Effect.scoped(files.open(`${top}/a/b/c`, { flag: "wx" }))), /^AlreadyExists: /)
      yield* Effect.scoped(
        Effect.flatMap(files.open(`${top}/a/b/c`, { flag: "r+" }), (file) =>
          file.writeAll(new TextEncoder().encode("two"))
        )
      )
      assert.strictEqual(yield* files.readFileString(`${top}/a/b/c`), "two")
      yield* files.chmod(`${top}/a/b/c`, 0o600)
      assert.strictEqual((yield* files.stat(`${top}/a/b/c`)).mode & 0o777, 0o600)
      assert.deepStrictEqual(yield* files.stat(`${top}/a/b/c`), yield* plain.stat(`${top}/a/b/c`))
      yield* files.rename(`${top}/a/b/c`, `${top}/a/d`)
      assert.deepStrictEqual(yield* files.readDirectory(`${top}/a/b/`), [])
      assert.deepStrictEqual(
        (yield* files.readDirectoryEntries(`${top}/a`)).map(({ name, type }) => `${type} ${name}`).sort(),
        ["Directory b", "File d"]
      )
      assert.isTrue(yield* files.exists(`${top}/a/d`))
      assert.isFalse(yield* files.exists(`${top}/a/b/c`))
      assert.strictEqual(yield* files.realPath(`${top}/a/d`), `${top}/a/d`)
      yield* files.remove(`${top}/a/d`)
      yield* files.remove(`${top}/a/d`, { force: true })
      assert.isFalse(yield* plain.exists(`${top}/a/d`))
      yield* Effect.scoped(Effect.tap(held(`${top}/a`), (here) => plain.readDirectory(here)))
    })
  )

  it.effect("errors name the given path", () =>
    using(kind, function* ({ files, top }) {
      yield* files.makeDirectory(`${top}/d`)
      const all = [
        yield* told(files.readFile(`${top}/none`)),
        yield* told(files.stat(`${top}/none/deep`)),
        yield* told(files.readDirectory(`${top}/none`)),
        yield* told(Effect.scoped(files.open(`${top}/none/x`, { flag: "wx" }))),
        yield* told(files.rename(`${top}/none`, `${top}/d/x`))
      ]
      for (const message of all) {
        assert.match(message, /^NotFound: /)
        assert.notInclude(message, "/proc/")
      }
      assert.match(yield* told(files.readFile(`${top}/d`)), /^BadResource: /)
      if (kind === "memory") return
      assert.strictEqual(
        yield* told(files.makeDirectory(`${top}/${"n".repeat(300)}`)),
        `Unknown: ENAMETOOLONG: name too long, mkdir '${top}/${"n".repeat(300)}'`
      )
    })
  )
}

const links = (kind: "descriptors" | "looks") => {
  it.effect("follows no link anywhere in the path, and changes nothing behind it", () =>
    using(kind, function* ({ files, held, plain, top }) {
      yield* writeFiles(top, { "in/x": "in", "out/x": "out", "out/deep/y": "out" })
      yield* plain.symlink(`${top}/out`, `${top}/in/link`)
      yield* plain.symlink(`${top}/out/x`, `${top}/in/file`)
      const before = readdirSync(`${top}/out`, { recursive: true }).join(" ")
      const all = {
        read: files.readFile(`${top}/in/link/x`),
        file: files.readFile(`${top}/in/file`),
        deep: files.stat(`${top}/in/link/deep/y`),
        absent: files.stat(`${top}/in/link/none`),
        list: files.readDirectory(`${top}/in/link`),
        entries: files.readDirectoryEntries(`${top}/in/link/deep`),
        open: Effect.scoped(files.open(`${top}/in/link/x`, { flag: "r+" })),
        make: Effect.scoped(files.open(`${top}/in/link/new`, { flag: "wx" })),
        folder: files.makeDirectory(`${top}/in/link/a/b`, { recursive: true }),
        to: files.rename(`${top}/in/x`, `${top}/in/link/x`),
        from: files.rename(`${top}/in/link/x`, `${top}/in/y`),
        remove: files.remove(`${top}/in/link/x`),
        mode: files.chmod(`${top}/in/link/x`, 0o777),
        access: files.access(`${top}/in/link/x`),
        held: Effect.scoped(held(`${top}/in/link`))
      }
      for (const [name, work] of Object.entries(all)) {
        // Of what is not there, looking can say no more than that.
        if (kind === "looks" && ["absent", "folder"].includes(name)) continue
        assert.match(yield* told(work), /replaced by a link/, name)
      }
      assert.strictEqual(readdirSync(`${top}/out`, { recursive: true }).join(" "), before)
      assert.strictEqual(yield* plain.readFileString(`${top}/out/x`), "out")
      assert.strictEqual(yield* plain.readFileString(`${top}/in/x`), "in")
    })
  )
}

needs("Linux")("files by descriptors", () => {
  contract("descriptors")
  links("descriptors")

  it.live("does not wait for a pipe, and leaves no descriptor open", () =>
    using("descriptors", function* ({ files, top }) {
      execFileSync("mkfifo", [path.join(top, "pipe")])
      // Other tests of this process open files, too: only those of this folder count.
      const isHere = (descriptor: string): boolean => {
        try {
          return readlinkSync(`/proc/self/fd/${descriptor}`).startsWith(top)
        } catch {
          return false
        }
      }
      const open = () => readdirSync("/proc/self/fd").filter(isHere).length
      const before = open()
      for (let i = 0; i < 50; i += 1) {
        assert.match(yield* told(Effect.scoped(files.open(`${top}/pipe`))), /not a regular file/)
        yield* told(files.stat(`${top}/none`))
        yield* Effect.timeoutOption(files.readDirectory(top), i % 5)
      }
      // What was given up is closed as its call ends.
      while (open() >= before + 10) yield* Effect.sleep("10 millis")
    })
  )

  it.effect("an open folder stays the same when another takes its name", () =>
    using("descriptors", function* ({ held, plain, top }) {
      yield* writeFiles(top, { "d/x": "first", "e/x": "second" })
      const here = yield* held(`${top}/d`)
      yield* plain.rename(`${top}/d`, `${top}/away`)
      yield* plain.symlink(`${top}/e`, `${top}/d`)
      assert.strictEqual(yield* plain.readFileString(`${here}/x`), "first")
    })
  )
})

describe("a file system with checked paths", () => {
  contract("looks")
  links("looks")
})

describe("a file system in memory", () => {
  contract("memory")
})
