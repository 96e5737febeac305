import { Context, Effect, Exit, Fiber, FileSystem, Layer, Path, Ref, References } from "effect"
import { TestClock } from "effect/testing"
import { isDeepStrictEqual } from "node:util"
import { call, response, text as textPart } from "../../src/domain/content/Content.ts"
import { entries, entryId, sequenceOf } from "../../src/domain/conversation/Conversation.ts"
import type { SessionEvent } from "../../src/domain/session/Session.ts"
import * as Bytes from "../../src/domain/text/Bytes.ts"
import { TokenCount } from "../../src/domain/tokens/Tokens.ts"
import * as NodePlatform from "../../src/layers/platform/NodePlatform.ts"
import * as FileSessionStore from "../../src/layers/session/FileSessionStore.ts"
import * as FileTempStore from "../../src/layers/session/FileTempStore.ts"
import {
  appended,
  entry,
  sessionOf,
  visibleState,
  started,
  compressedBy
} from "../../src/layers/testing/SessionHistories.ts"
import { SessionStore } from "../../src/services/session/SessionStore.ts"
import * as FaultyFileSystem from "../support/FaultyFileSystem.ts"
import * as ForgetfulFileSystem from "../support/ForgetfulFileSystem.ts"
import { interruptSweep } from "../support/interruptSweep.ts"
import { strideOf } from "../support/runs.ts"
import { assert, layer } from "../support/vitest.ts"

/**
 * Law 2 on the disk: after a fault, an interruption or a power cut at any write, a session holds everything that was
 * acknowledged, and nothing half.
 *
 * One file: all faults are tried on the same operations and checked in the same way.
 */

/** create + append + append: one line, then one line with two parts in the blob store. */
const events: ReadonlyArray<SessionEvent> = [
  started("s1"),
  appended(1, textPart("a small message")),
  appended(
    2,
    call("shell", { command: "x".repeat(9_000) }, "c1"),
    response("shell", { output: "é".repeat(9_000) }, "c1")
  )
]
const next = appended(3, textPart("after it"))

/** Every valid state of the session: `states[n]` after n events. */
const states = events.map((_, index) => sessionOf(events.slice(0, index + 1)))

interface Folder {
  readonly sessions: string
  readonly blobs: string
}

const folderAt = (base: string): Effect.Effect<Folder, never, Path.Path> =>
  Effect.map(Path.Path, (path) => ({
    sessions: path.join(base, "sessions"),
    blobs: path.join(base, "sessions", "s1.jsonl.blobs")
  }))

const freshFolder = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  return yield* folderAt(yield* fs.makeTempDirectoryScoped())
})

const real = ({ sessions }: Pick<Folder, "sessions">) =>
  Layer.fresh(FileSessionStore.layer(sessions).pipe(Layer.provide(FileTempStore.folders)))

/** Every byte where a log may be cut; outside of the laws tier some within each line, and those around its end. */
const cutsBetween = (from: number, to: number, ends: ReadonlyArray<number>): ReadonlyArray<number> =>
  Array.from({ length: to - from + 1 }, (_, index) => from + index).filter(
    (cut) => cut % strideOf(29) === 0 || ends.some((end) => Math.abs(end - cut) <= 1)
  )

/** Writes all events and counts the acknowledged ones. */
const write = (folder: Folder, acknowledged: Ref.Ref<number>) =>
  Effect.gen(function* () {
    const { create } = yield* SessionStore
    const log = yield* create(started("s1"))
    yield* Ref.set(acknowledged, 1)
    for (const [index, event] of events.slice(1).entries()) {
      yield* log.append(event)
      yield* Ref.set(acknowledged, index + 2)
    }
  }).pipe(Effect.scoped, Effect.provide(real(folder)))

/** The content of a folder, without the list of its sessions, which is derived. */
const names = Effect.fnUntraced(function* (folder: string) {
  const fs = yield* FileSystem.FileSystem
  const found = yield* fs.readDirectory(folder).pipe(Effect.orElseSucceed((): Array<string> => []))
  return found.filter((name) => name !== ".catalogue")
})

/**
 * What is wrong after the last event may have been interrupted: the session must be what was acknowledged, or that and the
 * pending event; complete, with every blob; without other files; and new events can be appended.
 */
const violations = Effect.fnUntraced(function* (folder: Folder, acknowledged: number) {
  const left = [
    ...(yield* names(folder.sessions)).filter((name) => name !== "s1.jsonl" && name !== "s1.jsonl.blobs"),
    ...(yield* names(folder.blobs)).filter((name) => !/^[a-z2-7]{52}$/.test(name))
  ].map((name) => `left behind: ${name}`)
  if (left.length > 0) return left
  const store = real(folder)
  const reopen = Effect.gen(function* () {
    const { open } = yield* SessionStore
    const { log, session, torn } = yield* open("s1")
    yield* log.append(next)
    return { session, torn }
  }).pipe(Effect.scoped, Effect.provide(store), Effect.result)
  const found = yield* reopen
  if (found._tag === "Failure") {
    return found.failure.reason._tag === "SessionNotFound" && acknowledged === 0 ? [] : [found.failure.message]
  }
  const { session, torn } = found.success
  const count = states.findIndex((state) => isDeepStrictEqual(state, session)) + 1
  const again = yield* reopen
  return [
    ...(torn > 0 ? [`torn: ${torn} bytes`] : []),
    ...(count >= acknowledged && count > 0 && count <= acknowledged + 1
      ? []
      : [`${count} events after ${acknowledged} were acknowledged`]),
    ...(again._tag === "Success" &&
    isDeepStrictEqual(again.success.session, sessionOf([...events.slice(0, count), next]))
      ? []
      : ["does not go on"])
  ]
})

/** Runs the three operations with one fault in the file system, then returns what is wrong. */
const withFault = Effect.fnUntraced(function* (fault: FaultyFileSystem.Fault) {
  const folder = yield* freshFolder
  const acknowledged = yield* Ref.make(0)
  const faulty = yield* FaultyFileSystem.make(fault)
  const exit = yield* write(folder, acknowledged).pipe(Effect.provide(faulty.layer), Effect.exit)
  return { failed: Exit.isFailure(exit), violations: yield* violations(folder, yield* Ref.get(acknowledged)) }
})

/** All calls of the file system in the three operations. */
const allCalls = Effect.gen(function* () {
  const faulty = yield* FaultyFileSystem.make(FaultyFileSystem.none)
  yield* write(yield* freshFolder, yield* Ref.make(0)).pipe(Effect.provide(faulty.layer))
  return yield* faulty.calls
})

/** Interrupts the three operations at each suspension point; returns the number of points, or the first violation. */
const sweep = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const base = yield* fs.makeTempDirectoryScoped()
  const acknowledged = yield* Ref.make(0)
  const folder = (k: number) => folderAt(path.join(base, String(k)))
  return yield* interruptSweep(
    (k) =>
      Effect.andThen(
        Ref.set(acknowledged, 0),
        Effect.flatMap(folder(k), (_) => write(_, acknowledged))
      ),
    (_, k) =>
      Effect.gen(function* () {
        const [violation] = yield* violations(yield* folder(k), yield* Ref.get(acknowledged))
        if (violation !== undefined) return yield* Effect.fail(`point ${k}: ${violation}`)
      })
  )
})

const compressed = (sequence: number, drop: number, shorten: number): SessionEvent =>
  compressedBy({
    drop: { from: entryId(drop), to: entryId(drop) },
    insert: [entry(sequence, [textPart("summary")])],
    shorten: [{ entry: entryId(shorten), part: 0, replacement: textPart("…"), tokens: TokenCount.make(1) }]
  })

/** One event of each kind, four of them with a checkpoint. */
const everything: ReadonlyArray<SessionEvent> = [
  started("s1"),
  appended(1, textPart("😀")),
  { _tag: "Answered", message: entry(2, [textPart("q")]), answer: { ...entry(3, [textPart("a")]), model: "m" } },
  { _tag: "Pinned", at: 2, pin: { entry: entryId(2), part: 0, start: 0, end: 1 } },
  compressed(4, 1, 3),
  { _tag: "ModelSwitched", at: 3, model: "m" },
  appended(5, textPart("more")),
  compressed(6, 2, 5),
  { _tag: "Undone", at: 4 },
  {
    _tag: "CompressionFailed",
    at: 5,
    status: "FAILED_SUMMARIZER",
    forced: false,
    tokens: TokenCount.make(3),
    tried: { from: entryId(3), to: entryId(5) }
  },
  { _tag: "Redone", at: 6 }
]

/** The same with parts in the blob store. */
const large: ReadonlyArray<SessionEvent> = [
  ...everything.slice(0, 2),
  {
    _tag: "Answered",
    message: entry(2, [textPart("q".repeat(9_000))]),
    answer: entry(3, [textPart("a".repeat(9_001)), call("f", { x: "y".repeat(9_002) })])
  },
  ...everything.slice(3)
]

/**
 * Writes one session, sets its title, writes another and deletes it; the power fails at the n-th change. Returns the number of
 * changes, and checks the content of the disk.
 */
const powerCut = Effect.fnUntraced(function* (n: number) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const base = yield* fs.makeTempDirectoryScoped()
  const disk = yield* ForgetfulFileSystem.make(base, n)
  let acknowledged = 0
  let isTitled = false
  let removal: "not begun" | "begun" | "done" = "not begun"
  let isThere = false
  yield* Effect.gen(function* () {
    const { create, remove, rename } = yield* SessionStore
    const log = yield* create(started("s1"))
    acknowledged = 1
    for (const [index, event] of large.slice(1).entries()) {
      yield* log.append(event)
      acknowledged = index + 2
      if (index === 3) {
        yield* rename("s1", "a title")
        isTitled = true
      }
    }
    yield* Effect.scoped(Effect.flatMap(create(started("s2")), ({ append }) => append(large[2] ?? started("s2"))))
    isThere = true
    removal = "begun"
    yield* remove("s2")
    removal = "done"
  }).pipe(
    Effect.scoped,
    Effect.provide(Layer.provide(real(yield* folderAt(base)), disk.layer)),
    Effect.exit,
    // The warnings when a lock can no longer be released.
    Effect.provideService(References.MinimumLogLevel, "None")
  )
  const changes = yield* disk.changes
  for (const kept of ["synced", "all"] as const) {
    const after = yield* fs.makeTempDirectoryScoped()
    yield* disk.restore(after, kept)
    // Locks whose content was lost have expired by then.
    yield* TestClock.setTime(Number.MAX_SAFE_INTEGER)
    yield* Effect.gen(function* () {
      const { list, open, summaries } = yield* SessionStore
      const where = `${n}, ${kept} names`
      const listed = yield* list
      const more: SessionEvent = { _tag: "ModelSwitched", at: 9, model: "after it" }
      if (listed.includes("s1")) {
        const { log, session, torn } = yield* open("s1")
        const whole = yield* log.whole
        const count = large.findIndex((_, index) => isDeepStrictEqual(sessionOf(large.slice(0, index + 1)), whole)) + 1
        assert.isTrue(count >= Math.max(1, acknowledged) && count <= acknowledged + 1, `${where}: ${count} events`)
        assert.deepStrictEqual([visibleState(session), torn], [visibleState(whole), 0], where)
        yield* log.append(more)
        assert.deepStrictEqual(yield* log.whole, sessionOf([...large.slice(0, count), more]), where)
      } else assert.strictEqual(acknowledged, 0, where)
      const title = (yield* summaries).find(({ id }) => id === "s1")?.title
      assert.isTrue(title === "a title" || (!isTitled && title === undefined), where)
      if (removal === "done") assert.notInclude(listed, "s2", where)
      if (removal === "not begun" && isThere) assert.include(listed, "s2", where)
      if (isThere && listed.includes("s2")) {
        const { log } = yield* open("s2")
        assert.deepStrictEqual(yield* log.whole, sessionOf([started("s2"), large[2] ?? started("s2")]), where)
      }
    }).pipe(Effect.scoped, Effect.provide(real({ sessions: path.join(after, "sessions") })))
  }
  return changes
}, Effect.scoped)

const flatten = (runs: ReadonlyArray<{ readonly violations: ReadonlyArray<string> }>) =>
  runs.flatMap((run) => run.violations)

layer(NodePlatform.layer)("a session after a crash", (it) => {
  it.effect(
    "opens with every complete line of any kind, wherever it was cut, also inside a checkpoint, and can be appended to",
    function* () {
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const folder = yield* freshFolder
      yield* SessionStore.use((store) =>
        Effect.flatMap(store.create(started("s1")), (log) => Effect.forEach(large.slice(1), log.append))
      ).pipe(Effect.scoped, Effect.provide(real(folder)))
      const file = path.join(folder.sessions, "s1.jsonl")
      const bytes = yield* fs.readFile(file)
      assert.strictEqual(Bytes.decode(bytes).text.split('"checkpoint":').length, 5)
      const ends = [...bytes.entries()].flatMap(([at, byte]) => (byte === 10 ? [at + 1] : []))
      const { open } = Context.get(yield* Layer.build(real(folder)), SessionStore)
      const more: SessionEvent = { _tag: "ModelSwitched", at: 9, model: "after it" }
      for (const cut of cutsBetween(ends[0] ?? 0, bytes.length, ends)) {
        yield* fs.writeFile(file, bytes.subarray(0, cut))
        const whole = ends.filter((end) => end <= cut)
        const left = large.slice(0, whole.length)
        const told = sessionOf(left)
        yield* Effect.scoped(
          Effect.gen(function* () {
            const { log, session, torn } = yield* open("s1")
            assert.deepStrictEqual(visibleState(session), visibleState(told), `${cut}`)
            assert.strictEqual(torn, cut - (whole.at(-1) ?? 0))
            assert.strictEqual(Number((yield* fs.stat(file)).size), cut - torn)
            // Near the ends of lines, and at intervals between them: an append waits for the disk.
            if (cut % 5 > 0 && !ends.some((end) => Math.abs(end - cut) < 2)) return
            yield* log.append(more)
            assert.deepStrictEqual(yield* log.whole, sessionOf([...left, more]))
          })
        )
      }
    }
  )

  it.effect(
    "law 2: after a power cut at any moment, everything acknowledged is stored and nothing is partial",
    function* () {
      const total = yield* powerCut(Infinity)
      assert.isAtLeast(total, 60)
      for (let n = 1; n <= total; n += strideOf(7)) yield* powerCut(n)
    }
  )

  it.effect("a rename or a removal that fails or is interrupted at any moment is done or not done", function* () {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const prepared = Effect.gen(function* () {
      const folder = yield* freshFolder
      yield* write(folder, yield* Ref.make(0))
      yield* SessionStore.use((store) => store.rename("s1", "old")).pipe(Effect.provide(real(folder)))
      return folder
    })
    const operations = {
      rename: SessionStore.use((store) => store.rename("s1", "new")),
      remove: SessionStore.use((store) => store.remove("s1"))
    }
    /** The session is complete, under either title; or it is not listed, and its remains can be removed. */
    const check = Effect.fnUntraced(function* (folder: Folder, what: keyof typeof operations, succeeded: boolean) {
      const listed = yield* SessionStore.use((store) => store.summaries).pipe(Effect.provide(real(folder)))
      if (what === "remove" && listed.length === 0) {
        const cleared = yield* operations.remove.pipe(Effect.provide(real(folder)), Effect.exit)
        assert.strictEqual(Exit.isFailure(cleared), (yield* names(folder.sessions)).length === 0 && succeeded)
        assert.deepStrictEqual(yield* names(folder.sessions), [])
        return
      }
      assert.deepStrictEqual([listed.length, what === "remove" && succeeded], [1, false])
      const title = listed[0]?.title
      assert.include(what === "rename" ? (succeeded ? ["new"] : ["old", "new"]) : ["old"], title)
      assert.deepStrictEqual((yield* names(folder.sessions)).sort(), ["s1.jsonl", "s1.jsonl.blobs", "s1.title"])
      const found = yield* Effect.scoped(SessionStore.use((store) => store.open("s1"))).pipe(
        Effect.provide(real(folder))
      )
      assert.deepStrictEqual(found.session, states.at(-1))
    })
    for (const what of ["rename", "remove"] as const) {
      const counting = yield* FaultyFileSystem.make(FaultyFileSystem.none)
      yield* operations[what].pipe(Effect.provide(Layer.provide(real(yield* prepared), counting.layer)))
      for (const { number } of yield* counting.calls) {
        for (const verdict of ["fail", "half"] as const) {
          const folder = yield* prepared
          const faulty = yield* FaultyFileSystem.make(FaultyFileSystem.nthCall(number, verdict))
          const exit = yield* operations[what].pipe(
            Effect.provide(Layer.provide(real(folder), faulty.layer)),
            Effect.exit
          )
          yield* check(folder, what, Exit.isSuccess(exit))
        }
      }
      const base = yield* fs.makeTempDirectoryScoped()
      const template = yield* prepared
      const folder = (k: number) => folderAt(path.join(base, `${what}${k}`))
      const points = yield* interruptSweep(
        (k) =>
          Effect.gen(function* () {
            const here = yield* folder(k)
            yield* Effect.uninterruptible(fs.copy(template.sessions, here.sessions))
            yield* operations[what].pipe(Effect.provide(real(here)))
          }),
        (exit, k) =>
          Effect.gen(function* () {
            const here = yield* folder(k)
            if ((yield* names(here.sessions)).length > 0 || Exit.isSuccess(exit)) {
              yield* check(here, what, Exit.isSuccess(exit))
            }
          })
      )
      assert.isAtLeast(points, 10)
    }
  })

  it.effect("is unchanged or complete whichever file system call fails", function* () {
    const calls = yield* allCalls
    assert.isAtLeast(calls.filter((each) => each.mutating !== undefined).length, 20)
    const runs = yield* Effect.forEach(calls, ({ number }) => withFault(FaultyFileSystem.nthCall(number, "fail")))
    assert.deepStrictEqual(flatten(runs), [])
    // The others are repeated, or do not matter.
    assert.isAtLeast(runs.filter((run) => run.failed).length, 20)
  })

  it.effect("is unchanged or complete whichever write stops half-way", function* () {
    const writes = (yield* allCalls).flatMap((each) => each.write ?? [])
    assert.isAtLeast(writes.length, 6)
    const runs = yield* Effect.forEach(writes, (n) => withFault(FaultyFileSystem.nthWriteHalf(n)))
    assert.deepStrictEqual(flatten(runs), [])
    assert.isTrue(runs.every((run) => run.failed))
  })

  it.effect.each([
    ["continues at once", Effect.yieldNow],
    ["continues after everything else", undefined]
  ] as const)("is old or new when it is interrupted while a call hangs that then %s", function* ([, moment]) {
    for (const { name, number } of yield* allCalls) {
      const folder = yield* freshFolder
      const acknowledged = yield* Ref.make(0)
      const faulty = yield* FaultyFileSystem.make(FaultyFileSystem.nthCall(number, "hang"))
      const fiber = yield* Effect.forkChild(write(folder, acknowledged).pipe(Effect.provide(faulty.layer)))
      assert.isTrue(yield* faulty.interrupt(fiber, moment))
      assert.deepStrictEqual(yield* violations(folder, yield* Ref.get(acknowledged)), [], `${number}: ${name}`)
    }
  })

  it.effect("accepts appends after one was interrupted while a call hung", function* () {
    const [first, second, third] = events
    if (first?._tag !== "Started" || second === undefined || third === undefined) return assert.fail("no events")
    const opening = yield* FaultyFileSystem.make(FaultyFileSystem.none)
    yield* Effect.scoped(SessionStore.use(({ create }) => Effect.asVoid(create(first)))).pipe(
      Effect.provide(Layer.provide(real(yield* freshFolder), opening.layer))
    )
    // Closing the scope releases the lock: two calls.
    const opened = (yield* opening.calls).length - 2
    const total = (yield* allCalls).length - 2
    for (let number = opened + 1; number <= total; number += 1) {
      const folder = yield* freshFolder
      const faulty = yield* FaultyFileSystem.make(FaultyFileSystem.nthCall(number, "hang"))
      const exit = yield* Effect.gen(function* () {
        const { create } = yield* SessionStore
        const log = yield* create(first)
        const fiber = yield* Effect.forkChild(Effect.andThen(log.append(second), log.append(third)))
        assert.isTrue(yield* faulty.interrupt(fiber))
        yield* log.append(next)
      }).pipe(Effect.scoped, Effect.provide(Layer.provide(real(folder), faulty.layer)), Effect.exit)
      assert.isTrue(Exit.isSuccess(exit), `${number}`)
      const found = yield* Effect.scoped(SessionStore.use((store) => store.open("s1"))).pipe(
        Effect.provide(real(folder))
      )
      const allowed = [1, 2, 3].map((count) => sessionOf([...events.slice(0, count), next]))
      assert.isTrue(
        allowed.some((state) => isDeepStrictEqual(state, found.session)),
        `${number}`
      )
    }
  })

  it.effect("accepts appends after one was interrupted at any suspension point", function* () {
    const folder = yield* freshFolder
    const interrupted = (k: number) => appended(2 * k, textPart(`${k} ${"x".repeat(9_000)}`))
    const after = (k: number) => appended(2 * k + 1, textPart(`after ${k}`))
    const done: Array<boolean> = []
    yield* Effect.gen(function* () {
      const log = yield* SessionStore.use((store) => store.create(started("s1")))
      yield* interruptSweep(
        (k) => log.append(interrupted(k)),
        (exit, k) => {
          done.push(Exit.isSuccess(exit))
          return log.append(after(k))
        },
        1
      )
    }).pipe(Effect.scoped, Effect.provide(real(folder)))
    assert.isAtLeast(done.length, 100)
    const { session } = yield* Effect.scoped(SessionStore.use((store) => store.open("s1"))).pipe(
      Effect.provide(real(folder))
    )
    const found = new Set(entries(session.conversation).map(({ id }) => sequenceOf(id)))
    const order = [...found]
    assert.deepStrictEqual(
      order,
      order.toSorted((a, b) => a - b)
    )
    assert.strictEqual(order.length, entries(session.conversation).length)
    for (const [index, success] of done.entries()) {
      assert.isTrue(found.has(2 * index + 3))
      // An interruption during the commit counts as one after it.
      if (success) assert.isTrue(found.has(2 * index + 2))
    }
  })

  it.effect(
    "opening is interrupted at once while a read hangs, and closing waits a limited time for a hung disk",
    function* () {
      const folder = yield* freshFolder
      yield* write(folder, yield* Ref.make(0))
      const open = Effect.scoped(SessionStore.use((store) => store.open("s1"))).pipe(Effect.provide(real(folder)))
      const counting = yield* FaultyFileSystem.make(FaultyFileSystem.none)
      yield* open.pipe(Effect.provide(counting.layer))
      const calls = yield* counting.calls
      const reads = calls.filter((each) => each.mutating === undefined)
      assert.isAtLeast(reads.length, 10)
      for (const { number } of [...reads, ...calls.slice(-1)]) {
        const faulty = yield* FaultyFileSystem.make(FaultyFileSystem.nthCall(number, "hang"))
        const fiber = yield* Effect.forkChild(open.pipe(Effect.provide(faulty.layer)))
        yield* faulty.hanging
        const interrupting = yield* Effect.forkChild(Fiber.interrupt(fiber), { startImmediately: true })
        yield* TestClock.adjust("1 minute")
        // Nothing releases the call. The test is that this ends.
        yield* Fiber.join(interrupting)
        const fs = yield* FileSystem.FileSystem
        const path = yield* Path.Path
        yield* fs.remove(path.join(folder.sessions, "s1.lock"), { force: true })
      }
    }
  )

  it.effect("is unchanged or complete when interrupted at any suspension point", function* () {
    assert.isAtLeast(yield* sweep, 500)
  })
})

layer(NodePlatform.layer)("the checks above", (it) => {
  it.effect("detect a disk that lies about truncating, renaming, removing or writing", function* () {
    const writes = (yield* allCalls).flatMap((each) => each.write ?? []).length
    for (const lie of ["File.truncate", "rename", "remove", "File.writeAll"]) {
      const { violations } = yield* withFault((each) =>
        each.name === lie ? "lie" : lie === "File.truncate" && each.write === writes ? "half" : "pass"
      )
      assert.isNotEmpty(violations, lie)
    }
  })
})
