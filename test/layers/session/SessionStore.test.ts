import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, FileSystem, Layer, Path, type PlatformError } from "effect"
import { pid } from "node:process"
import { call, text as textPart } from "../../../src/domain/content/Content.ts"
import { type EntryId, entryId } from "../../../src/domain/conversation/Conversation.ts"
import { checkpointMark } from "../../../src/domain/session/LogFormat.ts"
import { emptySession, type SessionEvent, applyEvent } from "../../../src/domain/session/Session.ts"
import { TokenCount } from "../../../src/domain/tokens/Tokens.ts"
import * as FileSessionStore from "../../../src/layers/session/FileSessionStore.ts"
import * as FileTempStore from "../../../src/layers/session/FileTempStore.ts"
import {
  appended,
  entry,
  sessionOf,
  visibleState,
  started,
  compressedBy
} from "../../../src/layers/testing/SessionHistories.ts"
import { reopened, sessionStoreContract } from "../../../src/layers/testing/SessionStoreContract.ts"
import { SessionStore } from "../../../src/services/session/SessionStore.ts"
import { BlobFolder, BlobUnavailable, TempStore, TempStoreError } from "../../../src/services/session/TempStore.ts"
import * as FaultyFileSystem from "../../support/FaultyFileSystem.ts"
import { runsOf, sizeOf } from "../../support/runs.ts"
import { assert, describe, it, layer } from "../../support/vitest.ts"

/** A folder for sessions that does not exist yet. */
const freshFolder = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  return path.join(yield* fs.makeTempDirectoryScoped(), "not", "yet", "there")
})

sessionStoreContract(
  { describe, it },
  {
    name: "FileSessionStore over FileTempStore",
    make: Effect.gen(function* () {
      return FileSessionStore.layer(yield* freshFolder).pipe(
        Layer.provide(FileTempStore.folders),
        Layer.provide(NodeServices.layer)
      )
    }).pipe(Effect.provide(NodeServices.layer)),
    runs: runsOf(200, 8)
  }
)

/** The store over a folder, on this machine or over another file system. */
const over = (folder: string, files: Layer.Layer<FileSystem.FileSystem> | Layer.Layer<never> = Layer.empty) =>
  FileSessionStore.layer(folder).pipe(Layer.provide(FileTempStore.folders), Layer.provide(files as Layer.Layer<never>))

/** Opens `s1`, and appends to it. */
const append = Effect.fnUntraced(function* (all: ReadonlyArray<SessionEvent>, concurrency = 1) {
  const { log } = yield* SessionStore.use((_) => _.open("s1"))
  yield* Effect.forEach(all, log.append, { concurrency })
}, Effect.scoped)

/** A session `s1` of three lines in a folder of its own, its blobs beside it. */
const written = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const folder = yield* freshFolder
  const store = Layer.fresh(over(folder))
  yield* SessionStore.use((_) =>
    Effect.flatMap(_.create(started("s1")), (log) => Effect.forEach(events.slice(1), log.append))
  ).pipe(Effect.scoped, Effect.provide(store))
  const file = path.join(folder, "s1.jsonl")
  const lines = (yield* fs.readFileString(file)).trimEnd().split("\n")
  const open = reopened("s1").pipe(Effect.provide(store))
  return { folder, file, lines, lock: path.join(folder, "s1.lock"), open, store }
})

const compressed = (
  sequence: number,
  drop: { readonly from: EntryId; readonly to: EntryId },
  shorten: Extract<SessionEvent, { readonly _tag: "Compressed" }>["patch"]["shorten"]
): SessionEvent => compressedBy({ drop, insert: [entry(sequence, [textPart("summary")])], shorten })

/** The file system of the context, and how many bytes were read through it. */
const countReads = Effect.map(FileSystem.FileSystem, (fs) => {
  let bytes = 0
  const counted = <A>(read: Effect.Effect<A, PlatformError.PlatformError>, size: (found: A) => number) =>
    Effect.tap(read, (found) =>
      Effect.sync(() => {
        bytes += size(found)
      })
    )
  const layer = Layer.succeed(FileSystem.FileSystem, {
    ...fs,
    readFile: (file) => counted(fs.readFile(file), (found) => found.length),
    readFileString: (file, encoding) => counted(fs.readFileString(file, encoding), (found) => found.length),
    open: (file, options) =>
      Effect.map(fs.open(file, options), (handle) => ({
        [FileSystem.FileTypeId]: FileSystem.FileTypeId,
        stat: handle.stat,
        seek: (offset, from) => handle.seek(offset, from),
        sync: handle.sync,
        read: (buffer, options) => counted(handle.read(buffer, options), Number),
        readAlloc: (size, options) =>
          counted(handle.readAlloc(size, options), (found) => (found._tag === "Some" ? found.value.length : 0)),
        truncate: (length) => handle.truncate(length),
        write: (buffer) => handle.write(buffer),
        writeAll: (buffer) => handle.writeAll(buffer)
      }))
  })
  return { layer, bytes: () => bytes }
})

const events = [started("s1"), appended(1, textPart("small")), appended(2, textPart("x".repeat(9_000)))]

describe("FileSessionStore", () => {
  layer(NodeServices.layer)((it) => {
    it.effect("keeps files private to their owner, large parts apart, and no lock when idle", function* () {
      const fs = yield* FileSystem.FileSystem
      const { file, folder, lines } = yield* written
      assert.deepStrictEqual((yield* fs.readDirectory(folder)).sort(), ["s1.jsonl", "s1.jsonl.blobs"])
      assert.strictEqual((yield* fs.stat(folder)).mode & 0o777, 0o700)
      assert.strictEqual((yield* fs.stat(file)).mode & 0o777, 0o600)
      assert.strictEqual(lines.length, 3)
      assert.isBelow(lines[2]?.length ?? Infinity, 1_000)
    })

    it.effect("reports and truncates a partial write: no line break, or invalid JSON in the last line", function* () {
      const fs = yield* FileSystem.FileSystem
      for (const torn of ['{"_tag":"Und', "\0\0\0\0", "not json\n", "\n", '{"_tag":"Undone","at":1}', "\xff\n"]) {
        const { file, open } = yield* written
        const before = yield* fs.readFileString(file)
        yield* fs.writeFileString(file, before + torn)
        assert.deepStrictEqual(yield* open, {
          session: sessionOf(events),
          torn: new TextEncoder().encode(torn).length
        })
        assert.strictEqual(yield* fs.readFileString(file), before)
        assert.strictEqual((yield* open).torn, 0)
      }
    })

    it.effect("refuses a log it cannot read, names the line, and changes nothing", function* () {
      const fs = yield* FileSystem.FileSystem
      const { file, lines, open } = yield* written
      const [first = "", second = "", third = ""] = lines
      const refusals: ReadonlyArray<readonly [string, string, string]> = [
        [`${first}\nbroken\n${third}\n`, "SessionCorrupt", "session s1, line 2: this is not JSON"],
        [`${first}\n\n${third}\n{"half`, "SessionCorrupt", "session s1, line 2: this is not JSON"],
        [`${first}\n${second}\nbroken\n{"half`, "SessionCorrupt", "session s1, line 3: this is not JSON"],
        [`${first}\n{"_tag":"Undone"}\n`, "SessionCorrupt", "session s1, line 2:"],
        [`${first}\n{"_tag":"Later"}\n`, "SessionCorrupt", "session s1, line 2: unknown event: Later"],
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
      assert.deepStrictEqual((yield* open).session, sessionOf(events))
    })

    it.effect("releases everything when it cannot be opened, even within an open scope", function* () {
      const fs = yield* FileSystem.FileSystem
      const { file, folder, lines, store } = yield* written
      yield* Effect.gen(function* () {
        const { open } = yield* SessionStore
        yield* fs.writeFileString(file, `${lines[0]}\nbroken\n${lines[2]}\n`)
        assert.strictEqual((yield* Effect.flip(open("s1"))).reason._tag, "SessionCorrupt")
        assert.notInclude(yield* fs.readDirectory(folder), "s1.lock")
        yield* fs.writeFileString(file, `${lines.join("\n")}\n`)
        assert.deepStrictEqual((yield* open("s1")).session, sessionOf(events))
      }).pipe(Effect.scoped, Effect.provide(store))
    })

    it.effect("names the missing blob of a line", function* () {
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const { folder, open } = yield* written
      const [blob = ""] = yield* fs.readDirectory(path.join(folder, "s1.jsonl.blobs"))
      yield* fs.writeFileString(path.join(folder, "s1.jsonl.blobs", blob), "damage")
      const damaged = yield* Effect.flip(open)
      assert.deepStrictEqual([damaged.reason._tag, damaged.message.includes(blob)], ["SessionCorrupt", true])
      yield* fs.remove(path.join(folder, "s1.jsonl.blobs", blob))
      const error = yield* Effect.flip(open)
      assert.strictEqual(error.reason._tag, "SessionCorrupt")
      assert.strictEqual(error.message, `session s1, line 3: nothing is stored under ${blob}`)
    })

    it.effect(
      "reads large parts when it opens a session, which is then whole whatever becomes of its blobs",
      function* () {
        const fs = yield* FileSystem.FileSystem
        const path = yield* Path.Path
        const { folder, store } = yield* written
        const blobs = path.join(folder, "s1.jsonl.blobs")
        const [blob = ""] = yield* fs.readDirectory(blobs)
        const opened = yield* Effect.scoped(SessionStore.use((_) => _.open("s1"))).pipe(Effect.provide(store))
        yield* fs.remove(path.join(blobs, blob))
        assert.strictEqual(visibleState(opened.session).view[1]?.parts[0]?.text, "x".repeat(9_000))
        assert.deepStrictEqual(opened.session, sessionOf(events))
      }
    )

    it.effect("does not write to a log that another process changed, replaced or removed", function* () {
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

    it.effect("takes over the lock of a dead process, also when its number was reused", function* () {
      const fs = yield* FileSystem.FileSystem
      const { folder, lock, open } = yield* written
      const locks: ReadonlyArray<object> = [
        { pid: 4_194_999, start: "1", since: 1 },
        { pid: 4_194_999, since: 1 },
        { pid, start: "1", since: 1 }
      ]
      for (const owner of locks) {
        yield* fs.writeFileString(lock, JSON.stringify(owner))
        assert.deepStrictEqual((yield* open).session, sessionOf(events))
        assert.deepStrictEqual((yield* fs.readDirectory(folder)).sort(), ["s1.jsonl", "s1.jsonl.blobs"])
      }
    })

    it.effect("respects the lock of a running process, and names it", function* () {
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

    it.effect("refuses appends when a partial line could not be removed, and recovers when opened again", function* () {
      const { folder, open } = yield* written
      const faulty = yield* FaultyFileSystem.make((call) =>
        call.name === "File.writeAll" && call.write === 2 ? "half" : call.name === "File.truncate" ? "fail" : "pass"
      )
      const store = over(folder, faulty.layer)
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
      assert.deepStrictEqual(found.session, sessionOf(events))
      assert.isAbove(found.torn, 0)
    })

    it.effect("accepts appends after one failed", function* () {
      const { folder, open } = yield* written
      for (const name of ["File.writeAll", "File.sync"]) {
        let seen = 0
        const faulty = yield* FaultyFileSystem.make((call) => {
          if (call.name === name) seen += 1
          return call.name === name && seen === (name === "File.sync" ? 1 : 2) ? "half" : "pass"
        })
        const store = over(folder, faulty.layer)
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
      assert.deepStrictEqual(yield* open, { session: sessionOf([...events, redone, redone]), torn: 0 })
    })

    it.effect("reads only what the model sees of a long session", function* () {
      const fs = yield* FileSystem.FileSystem
      const { file, folder, store } = yield* written
      const count = sizeOf(2_000, 1_000)
      const many = Array.from({ length: count }, (_, n) => appended(n + 3, textPart(`${n} ${"words ".repeat(300)}`)))
      const shortened = { part: 0, replacement: textPart("short"), tokens: TokenCount.make(1) }
      const all: ReadonlyArray<SessionEvent> = [
        ...many,
        compressed(count + 3, { from: entryId(1), to: entryId(count - 10) }, [
          { entry: entryId(count - 5), ...shortened }
        ]),
        appended(count + 4, textPart("after it"))
      ]
      yield* append(all).pipe(Effect.provide(store))
      const told = sessionOf([...events, ...all])
      const size = Number((yield* fs.stat(file)).size)
      assert.isAbove(size, sizeOf(3_000_000, 1_500_000))
      /** Opens it, does something with it, and says how many bytes of the log that took. */
      const reading = Effect.fnUntraced(function* (next: ReadonlyArray<SessionEvent>, whole: boolean) {
        const counting = yield* countReads
        const session = yield* SessionStore.use((_) =>
          Effect.gen(function* () {
            const opened = yield* _.open("s1")
            assert.isFalse(opened.complete)
            for (const event of next) yield* opened.log.append(event)
            return whole ? yield* opened.log.whole : opened.session
          })
        ).pipe(Effect.scoped, Effect.provide(over(folder, counting.layer)))
        return { session, bytes: counting.bytes() }
      })
      const first = yield* reading([], false)
      assert.deepStrictEqual(visibleState(first.session), visibleState(told))
      assert.isBelow(first.bytes, size / 20)

      // A compression laid over what was read from a checkpoint: what was shortened before stays so.
      const second = compressed(count + 5, { from: entryId(count + 3), to: entryId(count - 8) }, [])
      yield* reading([second], false)
      assert.strictEqual((yield* fs.readFileString(file)).split(checkpointMark).length, 3)
      const again = yield* reading([], false)
      assert.deepStrictEqual(visibleState(again.session), visibleState(applyEvent(told, second)))
      assert.isBelow(again.bytes, size / 20)

      const undone = { _tag: "Undone", at: 1 } as const
      const both = yield* reading([undone, undone], true)
      const before = [second, undone, undone].reduce(applyEvent, told)
      assert.deepStrictEqual(both.session, before)
      assert.isAbove(both.bytes, size)
      // Now everything is in the window again.
      assert.deepStrictEqual(visibleState((yield* reading([], false)).session), visibleState(before))
    })

    it.effect("reads no more of a session with a bounded result and masks", function* () {
      const fs = yield* FileSystem.FileSystem
      const { file, folder, store } = yield* written
      const result = (sequence: number): SessionEvent => ({
        _tag: "Appended",
        entry: {
          ...entry(sequence, [{ functionResponse: { name: "f", response: { output: "line\n".repeat(1_000) } } }]),
          bounded: { "0": { form: "head-tail-chars", size: 100, tokens: TokenCount.make(7) } }
        }
      })
      const mask = (id: number): SessionEvent => ({
        _tag: "Masked",
        at: 1,
        shorten: [{ entry: entryId(id), part: 0, replacement: textPart("masked"), tokens: TokenCount.make(1) }]
      })
      const many = Array.from({ length: 600 }, (_, n) => appended(n + 3, textPart(`${n} ${"words ".repeat(300)}`)))
      const all: ReadonlyArray<SessionEvent> = [
        ...many,
        result(603),
        result(604),
        mask(5),
        mask(604),
        compressed(605, { from: entryId(1), to: entryId(600) }, []),
        mask(602)
      ]
      yield* append(all).pipe(Effect.provide(store))
      const size = Number((yield* fs.stat(file)).size)
      const counting = yield* countReads
      const opened = yield* SessionStore.use((_) => _.open("s1")).pipe(
        Effect.scoped,
        Effect.provide(over(folder, counting.layer))
      )
      assert.deepStrictEqual(
        [opened.complete, visibleState(opened.session)],
        [false, visibleState(sessionOf([...events, ...all]))]
      )
      assert.isBelow(counting.bytes(), size / 10)
    })

    it.effect("falls back when a line does not describe the view", function* () {
      const fs = yield* FileSystem.FileSystem
      const { file, open, store } = yield* written
      const all: ReadonlyArray<SessionEvent> = [
        compressed(3, { from: entryId(1), to: entryId(1) }, []),
        compressed(4, { from: entryId(2), to: entryId(2) }, [])
      ]
      yield* append(all).pipe(Effect.provide(store))
      const undone = { _tag: "Undone", at: 1 } as const
      yield* fs.writeFileString(file, `${yield* fs.readFileString(file)}${JSON.stringify(undone)}\n`)
      const opened = yield* Effect.scoped(SessionStore.use((_) => _.open("s1"))).pipe(Effect.provide(store))
      assert.deepStrictEqual(
        [opened.complete, opened.session],
        [true, [...events, ...all, undone].reduce(applyEvent, emptySession)]
      )
      assert.strictEqual((yield* open).torn, 0)
    })

    it.effect("ignores a checkpoint that does not fit, and reports a broken line in what it reads", function* () {
      const fs = yield* FileSystem.FileSystem
      const { file, store } = yield* written
      const all: ReadonlyArray<SessionEvent> = [
        appended(3, textPart("dropped")),
        appended(4, call("f", { checkpoint: { ranges: [[0, 5]] }, text: ',"checkpoint":{"ranges":[' })),
        compressed(5, { from: entryId(1), to: entryId(3) }, []),
        appended(6, call("f", { x: 1, checkpoint: { ranges: [[0, 5]] } }))
      ]
      yield* append(all).pipe(Effect.provide(store))
      const told = sessionOf([...events, ...all])
      const content = yield* fs.readFileString(file)
      const opening = Effect.scoped(SessionStore.use((_) => _.open("s1"))).pipe(Effect.provide(store))
      const opened = yield* opening
      assert.deepStrictEqual([opened.complete, visibleState(opened.session)], [false, visibleState(told)])

      const [, ranges = ""] = /"checkpoint":\{"ranges":(\[\[0,\d+\],\[\d+,\d+\]\])/.exec(content) ?? []
      assert.isAbove(ranges.length, 10)
      for (const wrong of [
        "[]",
        "[[0,9]]",
        "[[3,9]]",
        "[[0,99999999]]",
        "[[5,2]]",
        '"none"',
        ranges.replace("[0,", "[1,")
      ]) {
        yield* fs.writeFileString(file, content.replace(ranges, wrong))
        const other = yield* opening
        assert.deepStrictEqual([other.complete, other.session], [true, told], wrong)
      }
      for (const [from, to] of [
        ['"ids":["e5","e4"]', '"ids":["e5","e9"]'],
        ['"ids":["e5","e4"]', '"ids":["e5-e99999999999"]'],
        ['"ids":["e5","e4"]', '"ids":["e5","e0"]']
      ] as const) {
        assert.include(content, from)
        yield* fs.writeFileString(file, content.replace(from, to))
        assert.deepStrictEqual((yield* opening).session, told, to)
      }

      const lines = content.split("\n")
      const broken = (number: number, line: string) =>
        fs.writeFileString(file, lines.map((each, index) => (index + 1 === number ? line : each)).join("\n"))
      // What is not read is not looked at; what is read is.
      yield* broken(4, "x".repeat(lines[3]?.length ?? 0))
      assert.deepStrictEqual(visibleState((yield* opening).session), visibleState(told))
      for (const number of [5, 7]) {
        yield* broken(number, `${"x".repeat((lines[number - 1]?.length ?? 0) - 2)}\n{`)
        assert.strictEqual((yield* Effect.flip(opening)).message, `session s1, line ${number}: this is not JSON`)
      }
      yield* broken(7, '{"_tag":"Later"}')
      assert.include((yield* Effect.flip(opening)).message, "line 7: unknown event: Later")
      yield* broken(1, (lines[0] ?? "").replace('"version":1', '"version":7'))
      assert.strictEqual((yield* Effect.flip(opening)).reason._tag, "SessionTooNew")
    })

    it.effect("lists thousands of sessions, some of them huge, with a limited read of each", function* () {
      const count = sizeOf(2_000, 200)
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const folder = yield* freshFolder
      yield* fs.makeDirectory(folder, { recursive: true })
      const line = JSON.stringify(appended(1, textPart("hello there")))
      for (let n = 0; n < count; n += 1) {
        const id = `s${String(n).padStart(4, "0")}`
        const file = path.join(folder, `${id}.jsonl`)
        yield* fs.writeFileString(file, `${JSON.stringify(started(id))}\n${line}\n`)
        // Sparse: as long as a log of years, and nothing of it on the disk.
        if (n % 100 === 0) yield* fs.truncate(file, 2 ** 33)
        yield* fs.utimes(file, 1_000_000 + n, 1_000_000 + n)
      }
      const wrong: ReadonlyArray<readonly [string, string, string]> = [
        ["newer", `${JSON.stringify({ ...started("newer"), version: 9 })}\n`, "newer version (log format 9)"],
        ["broken", `${JSON.stringify(started("broken"))}\nbroken\n${line}\n`, "line 2: this is not JSON"],
        ["empty", "", "does not begin with Started"]
      ]
      for (const [id, content] of wrong) yield* fs.writeFileString(path.join(folder, `${id}.jsonl`), content)
      yield* fs.makeDirectory(path.join(folder, "folder.jsonl"))
      yield* fs.writeFileString(path.join(folder, "s0007.title"), `seven\u001b[1m\n${"more ".repeat(1e5)}`)
      const counting = yield* countReads
      const found = yield* SessionStore.use((_) => _.summaries).pipe(Effect.provide(over(folder, counting.layer)))
      assert.strictEqual(found.length, count + 4)
      assert.isBelow(counting.bytes(), (count / 100) * 65_536 + count * 400 + 10_000)
      const fine = found.filter(({ problem }) => problem === undefined)
      assert.strictEqual(fine.length, count)
      assert.deepStrictEqual([fine[0]?.id, fine.at(-1)?.id], [`s${String(count - 1).padStart(4, "0")}`, "s0000"])
      assert.isTrue(fine.every(({ firstPrompt }) => firstPrompt === "hello there"))
      assert.deepStrictEqual([fine.at(-1)?.bytes, fine.at(-1)?.updatedAt], [2 ** 33, 1_000_000_000])
      assert.match(found.find(({ id }) => id === "s0007")?.title ?? "", /^seven more more/)
      for (const [id, , problem] of [...wrong, ["folder", "", "not a regular file"] as const]) {
        assert.include(found.find((session) => session.id === id)?.problem, problem)
      }
    })

    it.effect("a new session does not take the title of a deleted one", function* () {
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const folder = yield* fs.makeTempDirectoryScoped()
      const store = over(folder)
      // As a removal that was stopped half-way leaves it.
      yield* fs.writeFileString(path.join(folder, "s1.title"), "an old thing\n")
      const [found] = yield* SessionStore.use((sessions) =>
        Effect.andThen(Effect.scoped(sessions.create(started("s1"))), sessions.summaries)
      ).pipe(Effect.provide(store))
      assert.deepStrictEqual([found?.id, found?.title], ["s1", undefined])
    })

    it.effect("keeps titles private and leaves no temporary file", function* () {
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const { folder, store } = yield* written
      yield* SessionStore.use((_) => _.rename("s1", "a title")).pipe(Effect.provide(store))
      const title = path.join(folder, "s1.title")
      assert.deepStrictEqual(
        [yield* fs.readFileString(title), (yield* fs.stat(title)).mode & 0o777],
        ["a title\n", 0o600]
      )
      yield* SessionStore.use((_) => _.remove("s1")).pipe(Effect.provide(store))
      assert.deepStrictEqual(yield* fs.readDirectory(folder), [])
    })

    it.effect("deletes what a dead process held, and finishes an incomplete removal", function* () {
      const fs = yield* FileSystem.FileSystem
      for (const isHalf of [false, true]) {
        const { file, folder, lock, store } = yield* written
        yield* fs.writeFileString(lock, JSON.stringify({ pid: 4_194_999, since: 1 }))
        if (isHalf) yield* fs.remove(file)
        assert.include(yield* fs.readDirectory(folder), "s1.jsonl.blobs")
        yield* SessionStore.use((_) => _.remove("s1")).pipe(Effect.provide(store))
        assert.deepStrictEqual(yield* fs.readDirectory(folder), [])
      }
    })

    it.effect("a failing blob store makes an append fail and leaves the log unchanged", function* () {
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
      ).pipe(Layer.provide(FileTempStore.layer(path.join(folder, "s1.jsonl.blobs"))), Layer.provide(NodeServices.layer))
      const store = FileSessionStore.layer(folder).pipe(Layer.provide(Layer.succeed(BlobFolder, { at: () => full })))
      const error = yield* SessionStore.use((_) =>
        Effect.flatMap(_.open("s1"), ({ log }) => Effect.flip(log.append(appended(3, textPart("y".repeat(9_000))))))
      ).pipe(Effect.scoped, Effect.provide(store))
      assert.strictEqual(error.reason._tag, "SessionUnavailable")
      assert.match(error.message, /could not be written, and is unchanged: no space left$/)
      assert.deepStrictEqual((yield* open).session, sessionOf(events))
    })
  })
})
