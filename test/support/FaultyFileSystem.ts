import { Deferred, Effect, Fiber, FileSystem, Layer, PlatformError, type Scope } from "effect"

/** One call of a file system, or of a file that it opened, as the wrapper recorded it. */
export interface Call {
  /** Number of the call, from 1. */
  readonly number: number
  /** Number among the calls that change something, from 1; undefined for other calls. */
  readonly mutating: number | undefined
  /** Number among the calls that write bytes, from 1; undefined for other calls. */
  readonly write: number | undefined
  /** `rename`, `File.sync`, … */
  readonly name: string
}

/**
 * What happens to a call. `fail`: it changes nothing and fails. `half`: a write writes half its bytes, then fails; any
 * other call fails. `hang`: it waits until `release` and is then carried out, even if its caller was interrupted in the
 * meantime, because the kernel does not take back a call. `lie`: it does nothing and reports success.
 */
export type Verdict = "pass" | "fail" | "hang" | "half" | "lie"

/** Decides what happens to each call. */
export type Fault = (call: Call) => Verdict

/** No faults: for counting calls. */
export const none: Fault = () => "pass"
/** Applies a fate to the n-th call that changes something. */
export const nthMutating =
  (n: number, verdict: Verdict): Fault =>
  (call) =>
    call.mutating === n ? verdict : "pass"
/** Applies a fate to the n-th call of any kind. */
export const nthCall =
  (n: number, verdict: Verdict): Fault =>
  (call) =>
    call.number === n ? verdict : "pass"
/** Stops the n-th write half-way. */
export const nthWriteHalf =
  (n: number): Fault =>
  (call) =>
    call.write === n ? "half" : "pass"

/** A file system with one fault, and what a test can observe of it. */
export interface Faulty {
  readonly layer: Layer.Layer<FileSystem.FileSystem>
  /** The calls so far, in order. */
  readonly calls: Effect.Effect<ReadonlyArray<Call>>
  /** Waits until a call hangs. */
  readonly hanging: Effect.Effect<void>
  /** Lets the hanging call continue. */
  readonly release: Effect.Effect<void>
  /**
   * Interrupts a fiber while a call hangs, lets the call continue, and waits for both: the call continues when no other is
   * made any more, or after `moment`. Returns whether a call hung; false: the fiber ended before.
   */
  readonly interrupt: (fiber: Fiber.Fiber<unknown, unknown>, moment?: Effect.Effect<void>) => Effect.Effect<boolean>
}

const broken = (method: string) =>
  PlatformError.systemError({ _tag: "Unknown", module: "FileSystem", method, description: "injected fault" })

type Kind = "read" | "change" | "write"

/** Wraps the file system of the context: its own methods and those of the files it opens. */
export const make = Effect.fnUntraced(function* (fault: Fault): Effect.fn.Return<Faulty, never, FileSystem.FileSystem> {
  const real = yield* FileSystem.FileSystem
  const hanging = yield* Deferred.make<void>()
  const released = yield* Deferred.make<void>()
  const settled = yield* Deferred.make<void>()
  const calls: Array<Call> = []
  let mutating = 0
  let writes = 0
  let running = 0

  const tracked = <A, R>(call: Effect.Effect<A, PlatformError.PlatformError, R>) =>
    Effect.acquireUseRelease(
      Effect.sync(() => void (running += 1)),
      () => call,
      () => Effect.sync(() => void (running -= 1))
    )

  const strike = <A, R>(
    name: string,
    kind: Kind,
    call: Effect.Effect<A, PlatformError.PlatformError, R>,
    options: {
      readonly half?: Effect.Effect<unknown, PlatformError.PlatformError, R>
      readonly lie?: Effect.Effect<A>
    } = {}
  ): Effect.Effect<A, PlatformError.PlatformError, R> =>
    Effect.suspend(() => {
      if (kind !== "read") mutating += 1
      if (kind === "write") writes += 1
      const seen: Call = {
        number: calls.length + 1,
        mutating: kind === "read" ? undefined : mutating,
        write: kind === "write" ? writes : undefined,
        name
      }
      calls.push(seen)
      switch (fault(seen)) {
        case "pass":
          return tracked(call)
        case "fail":
          return Effect.fail(broken(name))
        case "half":
          return Effect.andThen(options.half ?? Effect.void, Effect.fail(broken(name)))
        case "hang":
          return Deferred.await(released).pipe(
            Effect.andThen(call),
            Effect.ensuring(Deferred.succeed(settled, undefined)),
            Effect.forkDetach({ startImmediately: true }),
            Effect.tap(Deferred.succeed(hanging, undefined)),
            Effect.flatMap(Fiber.join)
          )
        case "lie":
          return options.lie ?? Effect.die(`no lie for ${name}`)
      }
    })

  const change = (name: string, call: Effect.Effect<void, PlatformError.PlatformError>) =>
    strike(name, "change", call, { lie: Effect.void })

  const firstHalf = (bytes: Uint8Array) => bytes.subarray(0, Math.floor(bytes.length / 2))

  const wrapFile = (file: FileSystem.File): FileSystem.File => ({
    [FileSystem.FileTypeId]: FileSystem.FileTypeId,
    stat: strike("File.stat", "read", file.stat),
    seek: (offset, from) => file.seek(offset, from),
    sync: change("File.sync", file.sync),
    read: (buffer, options) => strike("File.read", "read", file.read(buffer, options)),
    readAlloc: (size, options) => strike("File.readAlloc", "read", file.readAlloc(size, options)),
    truncate: (length) => change("File.truncate", file.truncate(length)),
    write: (buffer) =>
      strike("File.write", "write", file.write(buffer), {
        half: file.writeAll(firstHalf(buffer)),
        lie: Effect.succeed(buffer.length)
      }),
    writeAll: (buffer) =>
      strike("File.writeAll", "write", file.writeAll(buffer), {
        half: file.writeAll(firstHalf(buffer)),
        lie: Effect.void
      })
  })

  const open = (
    path: string,
    options?: Parameters<FileSystem.FileSystem["open"]>[1]
  ): Effect.Effect<FileSystem.File, PlatformError.PlatformError, Scope.Scope> =>
    strike(
      "open",
      (options?.flag ?? "r").startsWith("r") ? "read" : "change",
      Effect.map(real.open(path, options), wrapFile)
    )

  const wrapped = FileSystem.make({
    access: (path, options) => strike("access", "read", real.access(path, options)),
    copy: (from, to, options) => change("copy", real.copy(from, to, options)),
    copyFile: (from, to) => change("copyFile", real.copyFile(from, to)),
    chmod: (path, mode) => change("chmod", real.chmod(path, mode)),
    chown: (path, uid, gid) => change("chown", real.chown(path, uid, gid)),
    link: (from, to) => change("link", real.link(from, to)),
    lstat: (path) => strike("lstat", "read", real.lstat(path)),
    makeDirectory: (path, options) => change("makeDirectory", real.makeDirectory(path, options)),
    makeTempDirectory: (options) => strike("makeTempDirectory", "change", real.makeTempDirectory(options)),
    makeTempDirectoryScoped: (options) =>
      strike("makeTempDirectoryScoped", "change", real.makeTempDirectoryScoped(options)),
    makeTempFile: (options) => strike("makeTempFile", "change", real.makeTempFile(options)),
    makeTempFileScoped: (options) => strike("makeTempFileScoped", "change", real.makeTempFileScoped(options)),
    open,
    readDirectory: (path, options) => strike("readDirectory", "read", real.readDirectory(path, options)),
    readDirectoryEntries: (path) => strike("readDirectoryEntries", "read", real.readDirectoryEntries(path)),
    readFile: (path) => strike("readFile", "read", real.readFile(path)),
    readLink: (path) => strike("readLink", "read", real.readLink(path)),
    realPath: (path) => strike("realPath", "read", real.realPath(path)),
    remove: (path, options) => change("remove", real.remove(path, options)),
    rename: (from, to) => change("rename", real.rename(from, to)),
    stat: (path) => strike("stat", "read", real.stat(path)),
    symlink: (from, to) => change("symlink", real.symlink(from, to)),
    truncate: (path, length) => change("truncate", real.truncate(path, length)),
    utimes: (path, atime, mtime) => change("utimes", real.utimes(path, atime, mtime)),
    watch: real.watch,
    writeFile: (path, data, options) =>
      strike("writeFile", "write", real.writeFile(path, data, options), {
        half: real.writeFile(path, firstHalf(data), options),
        lie: Effect.void
      })
  })

  const quiet = Effect.callback<void>((resume) => {
    // A caller that continues after a call makes its next one within a few turns of the event loop.
    let turns = 0
    const look = () => {
      turns = running === 0 ? turns + 1 : 0
      if (turns > 20) resume(Effect.void)
      else setImmediate(look)
    }
    look()
  })
  const release = Effect.asVoid(Deferred.succeed(released, undefined))

  return {
    layer: Layer.succeed(FileSystem.FileSystem, wrapped),
    calls: Effect.sync(() => [...calls]),
    hanging: Deferred.await(hanging),
    release,
    interrupt: Effect.fnUntraced(function* (fiber, moment = quiet) {
      const hung = yield* Effect.raceFirst(
        Effect.as(Deferred.await(hanging), true),
        Effect.as(Fiber.await(fiber), false)
      )
      const interrupting = yield* Effect.forkChild(Fiber.interrupt(fiber), { startImmediately: true })
      yield* moment
      yield* release
      yield* Fiber.join(interrupting)
      if (hung) yield* Deferred.await(settled)
      return hung
    })
  }
})
