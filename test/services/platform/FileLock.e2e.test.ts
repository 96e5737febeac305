import * as NodeServices from "@effect/platform-node/NodeServices"
import {
  Clock,
  Deferred,
  Duration,
  Effect,
  Exit,
  Fiber,
  FileSystem,
  Layer,
  Option,
  Path,
  PlatformError,
  Scope
} from "effect"
import { TestClock } from "effect/testing"
import { spawn } from "node:child_process"
import type { ProcessOwner } from "../../../src/domain/platform/ProcessOwner.ts"
import { ownerOf, temporaryName, whereabouts } from "../../../src/domain/platform/ProcessOwner.ts"
import * as ThisProcess from "../../../src/layers/platform/ThisProcess.ts"
import * as FileLock from "../../../src/services/platform/FileLock.ts"
import { Processes } from "../../../src/services/platform/ProcessIdentity.ts"
import * as StaleFiles from "../../../src/services/platform/StaleFiles.ts"
import { chance } from "../../crash/sight.ts"
import { needs } from "../../support/machine.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** A process of a world in which the test says who runs. */
const world = () => {
  const running = new Map<number, string>()
  let given = 0
  const as = (owner: ProcessOwner): typeof Processes.Service => ({
    self: Effect.succeed(owner),
    find: (pid) => Effect.sync(() => (running.has(pid) ? { start: running.get(pid) } : undefined)),
    unique: Effect.sync(() => `t${(given += 1)}`)
  })
  return { running, as }
}

const machine = "boot1_c1_host1"

const folder = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const root = yield* fs.makeTempDirectoryScoped()
  return { root, lock: path.join(root, ".x.lock"), file: path.join(root, "x") }
})

/** A file system without hard links, as some that are mounted from elsewhere. */
const withoutLinks = Layer.effect(
  FileSystem.FileSystem,
  FileSystem.FileSystem.use((fs) =>
    Effect.succeed({
      ...fs,
      link: (from: string) =>
        Effect.fail(
          PlatformError.systemError({ _tag: "Unknown", module: "FileSystem", method: "link", pathOrDescriptor: from })
        )
    })
  )
)

describe("a file lock", () => {
  for (const links of [true, false]) {
    const how = links ? "" : ", without hard links"

    it.live(`has one holder at a time, with processes killed at any time and numbers reused${how}`, () =>
      Effect.gen(function* () {
        // Actors with numbers that few share: each lives, holds the lock, and is killed or ends; its successor may get its number.
        for (const seed of [1, 2, 3]) {
          const { file, lock, root } = yield* folder
          const { as, running } = world()
          const fs = yield* FileSystem.FileSystem
          let holding = 0
          let most = 0
          let done = 0
          let kills = 0
          const roll = chance(seed)
          const choices = Array.from({ length: 60 }, () => ({ dies: roll(4), waits: roll(3) }))
          const life = (index: number) => {
            const pid = 100 + (index % 6)
            const start = String(index)
            const choice = choices[index]
            return Effect.gen(function* () {
              running.set(pid, start)
              const scope = yield* Scope.make()
              while ((yield* Scope.provide(FileLock.tryAcquire(lock), scope)) !== undefined) yield* Effect.sleep(1)
              holding += 1
              most = Math.max(most, holding)
              yield* Effect.sleep(choice?.waits ?? 0)
              holding -= 1
              done += 1
              // What kill -9 leaves: the lock, of a process that no longer runs.
              if (choice?.dies === 0) kills += 1
              else yield* Scope.close(scope, Exit.void)
              running.delete(pid)
            }).pipe(Effect.provideService(Processes, as({ pid, start, machine })))
          }
          // Six at once, each the one after the other of its number.
          running.set(500, "1")
          // And one that sweeps all the time.
          const sweeping = Effect.gen(function* () {
            yield* StaleFiles.sweepLock(lock)
            yield* Effect.sleep(1)
          }).pipe(Effect.forever, Effect.provideService(Processes, as({ pid: 500, start: "1", machine })))
          const sweeper = yield* Effect.forkChild(sweeping)
          yield* Effect.forEach(
            [0, 1, 2, 3, 4, 5],
            (first) => Effect.forEach([0, 1, 2, 3, 4, 5, 6, 7, 8, 9], (round) => life(first + 6 * round)),
            { concurrency: "unbounded" }
          )
          yield* Fiber.interrupt(sweeper)
          assert.strictEqual(most, 1, `seed ${seed}`)
          assert.strictEqual(done, 60)
          assert.isAbove(kills, 0)
          // Whatever lies there now, the next one gets it and leaves nothing.
          yield* FileLock.withLock({ file, lock }, Effect.void).pipe(
            Effect.provideService(Processes, as({ pid: 999, start: "1", machine }))
          )
          yield* StaleFiles.sweepLock(lock).pipe(
            Effect.provideService(Processes, as({ pid: 999, start: "1", machine }))
          )
          assert.deepStrictEqual(yield* fs.readDirectory(root), [])
        }
      }).pipe(Effect.scoped, Effect.provide(links ? Layer.empty : withoutLinks), Effect.provide(NodeServices.layer))
    )

    it.live(`that is dead is taken over by exactly one of many${how}`, () =>
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        const { as, running } = world()
        for (let round = 0; round < 20; round += 1) {
          const { lock } = yield* folder
          // Also the lock under which it was being broken is a dead one's.
          yield* fs.writeFileString(lock, JSON.stringify({ pid: 7, start: "1", since: 1, token: "dead" }))
          if (round % 2 === 0) {
            yield* fs.writeFileString(`${lock}.dead`, JSON.stringify({ pid: 8, start: "1", since: 1, token: "too" }))
          }
          let holders = 0
          yield* Effect.forEach(
            Array.from({ length: 12 }, (_, index) => index),
            (index) => {
              running.set(100 + index, "1")
              return Effect.gen(function* () {
                if ((yield* FileLock.tryAcquire(lock)) === undefined) holders += 1
              }).pipe(Effect.provideService(Processes, as({ pid: 100 + index, start: "1", machine })))
            },
            { concurrency: "unbounded" }
          )
          assert.strictEqual(holders, 1)
        }
      }).pipe(Effect.scoped, Effect.provide(links ? Layer.empty : withoutLinks), Effect.provide(NodeServices.layer))
    )
  }

  it.live("is not broken twice by a sweep and a waiter", NodeServices.layer, function* () {
    const fs = yield* FileSystem.FileSystem
    const { lock, root } = yield* folder
    const { as, running } = world()
    for (const pid of [10, 11, 12]) running.set(pid, "1")
    const breaker = `${lock}.ta`
    yield* fs.writeFileString(lock, JSON.stringify({ pid: 1, start: "1", machine, since: 1, token: "ta" }))
    yield* fs.writeFileString(breaker, JSON.stringify({ pid: 2, start: "1", machine, since: 1, token: "tb" }))
    /** A process that stops before it removes a file, until it may go on. */
    const pausing = Effect.fnUntraced(function* (file: string) {
      const reached = yield* Deferred.make<void>()
      const go = yield* Deferred.make<void>()
      const remove: typeof fs.remove = (place, options) =>
        place === file
          ? Deferred.succeed(reached, undefined).pipe(
              Effect.andThen(Deferred.await(go)),
              Effect.andThen(fs.remove(place, options))
            )
          : fs.remove(place, options)
      return { go, reached, files: Effect.provideService(FileSystem.FileSystem, { ...fs, remove }) }
    })
    const by = (pid: number) => Effect.provideService(Processes, as({ pid, start: "1", machine }))
    const sweeping = yield* pausing(breaker)
    const waiting = yield* pausing(lock)
    const sweep = yield* Effect.forkChild(StaleFiles.sweepLock(lock).pipe(by(10), sweeping.files))
    yield* Deferred.await(sweeping.reached)
    const scope = yield* Effect.scope
    const wait = yield* Effect.forkChild(
      FileLock.tryAcquire(lock).pipe(Scope.provide(scope), by(11), waiting.files, Effect.timeoutOption(2_000))
    )
    // It gets as far as to the removal only where it took the breaker that the sweep is breaking.
    const got = yield* Effect.timeoutOption(Deferred.await(waiting.reached), 200)
    assert.strictEqual(got._tag, "None")
    yield* Deferred.succeed(sweeping.go, undefined)
    yield* Deferred.succeed(waiting.go, undefined)
    yield* Fiber.join(sweep)
    yield* Fiber.join(wait)
    assert.isFalse((yield* fs.readDirectory(root)).includes(".x.lock.ta"))
  })

  it.effect("a sweep removes the leftovers of its own lock, whatever its name", NodeServices.layer, function* () {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const { lock, root } = yield* folder
    const { as } = world()
    const dead = JSON.stringify({ pid: 1, start: "1", machine, since: 1, token: "ta" })
    const elsewhere = JSON.stringify({ pid: 1, start: "1", machine: "boot9_c9_host9", since: 1, token: "te" })
    const kept = {
      ".terraform.lock.hcl": "provider {}",
      ".flake.lock": "{}",
      ".y.lock": dead,
      ".x.lock.hcl.tf": dead,
      ".x.lock.t1": "",
      ".x.lock.t2": elsewhere
    }
    for (const [name, text] of Object.entries({
      ...kept,
      ".x.lock": dead,
      ".x.lock.ta": dead.replace('"ta"', '"tb"')
    })) {
      yield* fs.writeFileString(path.join(root, name), text)
      yield* fs.utimes(path.join(root, name), 1, 1)
    }
    yield* TestClock.setTime(100_000_000_000)
    yield* StaleFiles.sweepLock(lock).pipe(Effect.provideService(Processes, as({ pid: 9, start: "1", machine })))
    assert.deepStrictEqual((yield* fs.readDirectory(root)).toSorted(), Object.keys(kept).toSorted())
  })

  it.effect("of another machine counts while it is renewed, while it is held", NodeServices.layer, function* () {
    const fs = yield* FileSystem.FileSystem
    const { lock } = yield* folder
    const { as } = world()
    yield* TestClock.setTime(1_000_000_000)
    const elsewhere = Effect.provideService(Processes, as({ pid: 7, start: "1", machine: "boot2_c1_host2" }))
    const scope = yield* Scope.make()
    yield* FileLock.tryAcquireRenewed(lock).pipe(Scope.provide(scope), elsewhere)
    const written = Effect.map(fs.stat(lock), ({ mtime }) => Option.getOrThrow(mtime).getTime())
    for (let minute = 0; minute < 15; minute += 1) {
      yield* TestClock.adjust("1 minute")
      const now = yield* Clock.currentTimeMillis
      while ((yield* written) !== now) yield* Effect.promise(() => new Promise((done) => setTimeout(done, 2)))
    }
    const me = Effect.provideService(Processes, as({ pid: 9, start: "1", machine }))
    assert.deepInclude(yield* me(FileLock.holderOf(lock)), { pid: 7 })
    yield* Scope.close(scope, Exit.void)
    assert.isFalse(yield* fs.exists(lock))
  })

  it.effect("that is a pipe or a folder is refused by name", NodeServices.layer, function* () {
    const fs = yield* FileSystem.FileSystem
    const { lock } = yield* folder
    yield* fs.makeDirectory(lock)
    assert.include((yield* Effect.flip(FileLock.tryAcquire(lock))).message, lock)
  })

  it.effect("whose breaker names itself is refused by name", NodeServices.layer, function* () {
    const fs = yield* FileSystem.FileSystem
    const { lock } = yield* folder
    const { as } = world()
    for (const name of [lock, `${lock}.ta`]) {
      yield* fs.writeFileString(name, JSON.stringify({ pid: 1, start: "1", machine, since: 1, token: "ta" }))
    }
    const held = FileLock.tryAcquire(lock).pipe(Effect.provideService(Processes, as({ pid: 9, start: "1", machine })))
    assert.include((yield* Effect.flip(held)).message, `${lock}.ta`)
  })

  it.live("is ours when the disk created it but reported that it existed", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const { lock } = yield* folder
      const link: typeof fs.link = (from, to) => Effect.andThen(fs.link(from, to), fs.link(from, to))
      const held = FileLock.tryAcquire(lock).pipe(Effect.provideService(FileSystem.FileSystem, { ...fs, link }))
      assert.isUndefined(yield* held)
    }).pipe(Effect.scoped, ThisProcess.provide, Effect.provide(NodeServices.layer))
  )

  const standings: ReadonlyArray<readonly [rule: string, owner: object, age: string, isFree: boolean]> = [
    ["a process that runs", { pid: 7, start: "1", machine }, "9 days", false],
    ["one that is gone", { pid: 8, start: "1", machine }, "1 second", true],
    ["one whose number another one has", { pid: 7, start: "2", machine }, "1 second", true],
    [
      "one of before the machine was started again",
      { pid: 7, start: "1", machine: "boot0_c1_host1" },
      "1 second",
      true
    ],
    [
      "one on a machine of which only the name is the same",
      { pid: 7, start: "1", machine: "boot0_c1_nhost1" },
      "1 second",
      false
    ],
    ["one in another container, lately", { pid: 8, start: "1", machine: "boot1_c2_host2" }, "9 minutes", false],
    ["one in another container, long ago", { pid: 8, start: "1", machine: "boot1_c2_host2" }, "11 minutes", true],
    ["one on another machine, lately", { pid: 8, start: "1", machine: "boot2_c1_host2" }, "9 minutes", false],
    ["one of an older version that runs", { pid: 7 }, "9 days", false],
    ["an unknown owner, recent", {}, "9 seconds", false],
    ["an unknown owner, old", {}, "11 seconds", true]
  ]
  for (const [rule, owner, age, isFree] of standings) {
    it.effect(`the lock of ${rule} is ${isFree ? "broken" : "respected"}`, NodeServices.layer, function* () {
      const fs = yield* FileSystem.FileSystem
      const { lock } = yield* folder
      const { as, running } = world()
      running.set(7, "1")
      yield* fs.writeFileString(lock, JSON.stringify({ ...owner, since: 1 }))
      yield* fs.utimes(lock, 1_000_000, 1_000_000)
      yield* TestClock.setTime(1_000_000_000 + Duration.toMillis(Duration.fromInputUnsafe(age as Duration.Input)))
      const own = rule.includes("only the name") ? "boot1_c1_nhost1" : machine
      const held = yield* FileLock.tryAcquire(lock).pipe(
        Effect.provideService(Processes, as({ pid: 9, start: "1", machine: own }))
      )
      assert.strictEqual(held === undefined, isFree)
    })
  }

  it.effect("waiting names the holder after a while, and can be interrupted", NodeServices.layer, function* () {
    const { file, lock } = yield* folder
    const { as, running } = world()
    running.set(7, "1")
    running.set(9, "1")
    const other = Effect.provideService(Processes, as({ pid: 9, start: "1", machine }))
    let ran = false
    const work = FileLock.withLock(
      { file, lock },
      Effect.sync(() => void (ran = true))
    )
    yield* FileLock.tryAcquire(lock).pipe(Effect.provideService(Processes, as({ pid: 7, start: "1", machine })))
    const interrupted = yield* Effect.forkChild(other(work), { startImmediately: true })
    const patient = yield* Effect.forkChild(Effect.flip(other(work)), { startImmediately: true })
    yield* Fiber.interrupt(interrupted)
    for (let second = 0; second < 40; second += 1) {
      yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 5)))
      yield* TestClock.adjust("1 second")
    }
    const error = yield* Fiber.join(patient)
    assert.strictEqual(
      error.message.replace(file, "FILE"),
      "FILE is being changed by process 7; end it or wait for it, then try again"
    )
    assert.isFalse(ran)
  })

  it.live("is released when the work fails, dies or is interrupted in the queue", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const { file, lock, root } = yield* folder
      yield* Effect.exit(FileLock.withLock({ file, lock }, Effect.fail("no")))
      yield* Effect.exit(FileLock.withLock({ file, lock }, Effect.die("no")))
      let count = 0
      const add = FileLock.withLock(
        { file, lock },
        Effect.gen(function* () {
          const before = count
          yield* Effect.sleep(1)
          count = before + 1
        })
      )
      // Two of three are interrupted; each of the others counts.
      const fibers = yield* Effect.forEach(Array.from({ length: 30 }), () => Effect.forkChild(add))
      for (const [index, fiber] of fibers.entries()) if (index % 3 > 0) yield* Fiber.interrupt(fiber)
      const exits = yield* Effect.forEach(fibers, Fiber.await)
      assert.strictEqual(count, exits.filter(({ _tag }) => _tag === "Success").length)
      assert.isAtLeast(count, 10)
      assert.deepStrictEqual(yield* fs.readDirectory(root), [])
    }).pipe(Effect.scoped, ThisProcess.provide, Effect.provide(NodeServices.layer))
  )

  describe("leftover files", () => {
    it.effect("are removed where their owner is dead, and kept where it may run", NodeServices.layer, function* () {
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const { root } = yield* folder
      const { as, running } = world()
      running.set(7, "1")
      const of = (owner: ProcessOwner | undefined, unique: string) => temporaryName(owner, unique)
      const kept = [
        of({ pid: 7, start: "1", machine }, "lives"),
        of({ pid: 8, start: "1", machine: "boot1_c2_host2" }, "elsewhere"),
        of(undefined, "fresh"),
        ".package.lock",
        ".palimpsest-notes.md",
        "x.tmp"
      ]
      const gone = [
        of({ pid: 8, start: "1", machine }, "dead"),
        of({ pid: 7, start: "2", machine }, "another"),
        of({ pid: 7, start: "1", machine: "boot0_c1_host1" }, "before")
      ]
      const old = [of({ pid: 8, start: "1", machine: "boot1_c2_host2" }, "long"), of(undefined, "ago")]
      for (const name of [...kept, ...gone, ...old]) {
        yield* fs.writeFileString(path.join(root, name), "")
        yield* fs.utimes(path.join(root, name), old.includes(name) ? 1 : 100_000, old.includes(name) ? 1 : 100_000)
      }
      yield* fs.makeDirectory(path.join(root, of({ pid: 8, start: "1", machine }, "folder")))
      yield* TestClock.setTime(100_000_000)
      yield* StaleFiles.sweep(root).pipe(Effect.provideService(Processes, as({ pid: 9, start: "1", machine })))
      assert.deepStrictEqual(
        (yield* fs.readDirectory(root)).toSorted(),
        [...kept, of({ pid: 8, start: "1", machine }, "folder")].toSorted()
      )
    })

    it.effect("have their owner in the name, and no other name matches", () =>
      Effect.sync(() => {
        const roll = chance(1)
        const part = () => (roll(2 ** 31) + 1).toString(36)
        for (let turn = 0; turn < 1_000; turn += 1) {
          const one = {
            pid: 1 + roll(4_194_304),
            start: String(1 + roll(2 ** 31)),
            machine: `${part()}_${part()}_${part()}`
          }
          const unique = part()
          assert.deepStrictEqual(ownerOf(temporaryName(one, unique)), one)
          assert.isUndefined(ownerOf(temporaryName(undefined, unique)))
          assert.strictEqual(whereabouts(one, one), "here")
        }
        for (const name of [".palimpsest-../x.tmp", ".palimpsest-1-1-a_b_c-x.tmp/..", "palimpsest-1-1-a-x.tmp"]) {
          assert.isUndefined(ownerOf(name))
        }
      })
    )
  })

  needs("Linux")("this process among others", () => {
    it.live("distinguish a running owner, an ended one, and a zombie", () =>
      Effect.gen(function* () {
        const { find, self } = yield* Processes
        const own = yield* self
        assert.deepStrictEqual(yield* find(process.pid), { start: own?.start })
        // A shell that does not wait for its child: that becomes a zombie when it is killed.
        const shell = spawn("/bin/sh", ["-c", "sleep 60 & echo $!; exec sleep 60"], {
          stdio: ["ignore", "pipe", "ignore"]
        })
        const child = yield* Effect.promise(
          () => new Promise<number>((resolve) => shell.stdout.once("data", (data) => resolve(Number(data))))
        )
        assert.isDefined(yield* find(child))
        process.kill(child, "SIGKILL")
        let found: unknown = "running"
        while (found !== undefined) {
          found = yield* find(child)
          yield* Effect.sleep(5)
        }
        shell.kill("SIGKILL")
      }).pipe(ThisProcess.provide)
    )
  })
})
