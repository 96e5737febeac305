import { Context, Effect, FileSystem, Layer } from "effect"
import { spawnSync } from "node:child_process"
import { closeSync, fsyncSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync, writeSync } from "node:fs"
import { availableParallelism, loadavg, tmpdir } from "node:os"
import { join } from "node:path"
import { argv, execArgv, execPath, version } from "node:process"
import { LogLines } from "../src/domain/session/Checkpoint.ts"
import { encodeLine, spillableParts } from "../src/domain/session/LogFormat.ts"
import {
  applyEvent,
  emptySession,
  minSpillBytes,
  type SessionEvent,
  type Spilled
} from "../src/domain/session/Session.ts"
import * as Bytes from "../src/domain/text/Bytes.ts"
import * as NodePlatform from "../src/layers/platform/NodePlatform.ts"
import * as FileSessionStore from "../src/layers/session/FileSessionStore.ts"
import * as FileTempStore from "../src/layers/session/FileTempStore.ts"
import { SessionStore } from "../src/services/session/SessionStore.ts"
import { TempStore } from "../src/services/session/TempStore.ts"
import { AgentSession, startedAs } from "./sessionLog.ts"
import { median, print, ratio, type Row } from "./table.ts"

/**
 * `npm run bench:log`: appending to a session's log, and opening it again, beside a bare loop that writes or parses the same lines. Prints
 * a table, marks each row over its bound, and fails if there is one.
 */

const storeAt = (home: string) =>
  FileSessionStore.layer(home).pipe(Layer.provide(FileTempStore.folders), Layer.provideMerge(NodePlatform.layer))

const opened = (home: string, id: string) =>
  Effect.runPromise(
    Effect.scoped(SessionStore.use((store) => store.open(id))).pipe(
      Effect.map(({ complete, session }) => ({ complete, entries: session.conversation.view?.length ?? 0 })),
      Effect.provide(storeAt(home))
    )
  )

// A child process: opens one session and says how long that took, code that runs for the first time included.
if (argv[2] === "open") {
  const began = performance.now()
  const found = await opened(argv[3] ?? "", argv[4] ?? "")
  console.log(JSON.stringify({ ...found, ms: performance.now() - began }))
  process.exit(0)
}

const rows: Array<Row> = []
const folder = mkdtempSync(join(tmpdir(), "palimpsest-bench-log-"))

// --- appending ----------------------------------------------------------------------------------------------------------

const messages = 1_500
const events = (() => {
  const session = new AgentSession(7)
  const made: Array<SessionEvent> = []
  while (made.length < messages) {
    made.push(...session.turn().filter((event) => spillableParts(event, minSpillBytes).length === 0))
  }
  return made.slice(0, messages)
})()

/** The file system, with files that are never synced. */
const unsynced = Layer.effect(
  FileSystem.FileSystem,
  Effect.map(FileSystem.FileSystem, (fs) => ({
    ...fs,
    open: (file: string, options?: Parameters<FileSystem.FileSystem["open"]>[1]) =>
      Effect.map(fs.open(file, options), (handle): FileSystem.File => ({
        [FileSystem.FileTypeId]: FileSystem.FileTypeId,
        stat: Effect.suspend(() => handle.stat),
        seek: (offset, from) => handle.seek(offset, from),
        sync: Effect.void,
        read: (buffer, given) => handle.read(buffer, given),
        readAlloc: (size, given) => handle.readAlloc(size, given),
        truncate: (length) => handle.truncate(length),
        write: (buffer) => handle.write(buffer),
        writeAll: (buffer) => handle.writeAll(buffer)
      }))
  }))
)

/** Milliseconds of one append each, ours and those of a bare loop in turn, so that both meet the same disk. */
const appending = (home: string, isSynced: boolean) => {
  const store = FileSessionStore.layer(home).pipe(Layer.provide(FileTempStore.folders))
  const platform = isSynced ? NodePlatform.layer : Layer.provideMerge(unsynced, NodePlatform.layer)
  return Effect.runPromise(
    Effect.gen(function* () {
      const log = yield* (yield* SessionStore).create(startedAs("append"))
      const bare = openSync(join(home, "bare"), "a")
      const ours: Array<number> = []
      const floor: Array<number> = []
      for (const event of events) {
        let start = performance.now()
        writeSync(bare, `${JSON.stringify(event)}\n`)
        if (isSynced) fsyncSync(bare)
        floor.push(performance.now() - start)
        start = performance.now()
        yield* log.append(event)
        ours.push(performance.now() - start)
      }
      const together = performance.now()
      yield* Effect.forEach(events, log.append, { concurrency: 16, discard: true })
      const each = (performance.now() - together) / events.length
      closeSync(bare)
      return { ours: median(ours.slice(500)), floor: median(floor.slice(500)), together: each }
    }).pipe(Effect.scoped, Effect.provide(Layer.provide(store, platform)))
  )
}
for (const [isSynced, bound] of [
  [false, 3],
  [true, 1.5]
] as const) {
  const home = join(folder, String(isSynced))
  const { floor, ours, together } = await appending(home, isSynced)
  const what = isSynced ? "writing and syncing its line" : "writing its line, nothing synced"
  rows.push(ratio(`appending a message, to ${what}`, ours, floor, bound))
  if (isSynced) rows.push(ratio("the same, 16 at a time: each", together, floor, bound))
}

// --- sessions to open -----------------------------------------------------------------------------------------------------

/** Writes the log of a session and its blobs, with the checkpoints that appending gives it. */
const writeSession = (home: string, id: string, all: ReadonlyArray<SessionEvent>) =>
  Effect.runPromise(
    Effect.gen(function* () {
      const blobs = Context.get(yield* Layer.build(FileTempStore.layer(join(home, `${id}.jsonl.blobs`))), TempStore)
      const lines = new LogLines()
      let session = emptySession
      let text = ""
      for (const event of all) {
        const spilled = new Map<string, Spilled>()
        for (const { form, key, text: payload } of spillableParts(event, minSpillBytes)) {
          const bytes = Bytes.encode(payload)
          spilled.set(key, { hash: yield* blobs.put(bytes), size: bytes.length, form })
        }
        session = applyEvent(session, event)
        const checkpoint =
          event._tag === "Compressed" || event._tag === "Branched" ? lines.checkpoint(session, event) : undefined
        const line = `${encodeLine(event, spilled, checkpoint)}\n`
        lines.add(event, text.length, text.length + line.length)
        text += line
      }
      writeFileSync(join(home, `${id}.jsonl`), text)
    }).pipe(Effect.scoped, Effect.provide(Layer.provideMerge(unsynced, NodePlatform.layer)))
  )

const home = join(folder, "false")

const sessionOf = (
  id: string,
  count: number,
  compressEvery: number | undefined,
  more = (_: AgentSession): ReadonlyArray<SessionEvent> => []
) => {
  const session = new AgentSession(count)
  const all: Array<SessionEvent> = [startedAs(id)]
  let from = 1
  let next = compressEvery ?? Number.POSITIVE_INFINITY
  while (session.count < count) {
    all.push(...session.turn())
    if (session.count < next) continue
    next += compressEvery ?? 0
    const event = session.compression(from, 300)
    all.push(event)
    from = session.count
  }
  all.push(...more(session))
  return writeSession(home, id, all)
}

/** Median milliseconds to open a session in a fresh process. */
const cold = (ids: ReadonlyArray<string>, runs: number): ReadonlyArray<number> => {
  const taken = ids.map((): Array<number> => [])
  for (let run = 0; run < runs; run += 1) {
    for (const [index, id] of ids.entries()) {
      const { stderr, stdout } = spawnSync(execPath, [...execArgv, argv[1] ?? "", "open", home, id], {
        encoding: "utf8"
      })
      const line = stdout.trim()
      if (line === "") throw new Error(stderr)
      const said: { readonly ms: number; readonly complete: boolean } = JSON.parse(line)
      taken[index]?.push(said.ms)
    }
  }
  return taken.map(median)
}

/** Median milliseconds to open a session in this process, and to parse the lines of its log. */
const warm = async (id: string, runs: number) => {
  const text = readFileSync(join(home, `${id}.jsonl`), "utf8").trimEnd()
  const floors: Array<number> = []
  const opens: Array<number> = []
  for (let run = 0; run < runs; run += 1) {
    let start = performance.now()
    const kept = text.split("\n").map((line): unknown => JSON.parse(line))
    floors.push(performance.now() - start)
    if (kept.length === 0) throw new Error("no lines")
    start = performance.now()
    await opened(home, id)
    opens.push(performance.now() - start)
  }
  return { open: median(opens), floor: median(floors) }
}

const below = (what: string, ms: number, bound: number): Row => ({
  what,
  value: `${ms.toFixed(1)} ms`,
  bound: `${bound} ms`,
  ok: ms <= bound
})

if (process.env["ONLY"] === "append") {
  print(rows)
  process.exit()
}
await sessionOf("empty", 0, undefined)
await sessionOf("whole10k", 10_000, undefined)
await sessionOf("short10k", 10_000, 1_500)
await sessionOf("short100k", 100_000, 1_500)
await sessionOf("branched20k", 20_000, undefined, (session) => [
  { _tag: "Branched", at: 1, from: `e${session.count - 20}` as never },
  ...session.turn()
])
const [none = 0, short10k = 0, short100k = 0, whole = 0, branched = 0] = cold(
  ["empty", "short10k", "short100k", "whole10k", "branched20k"],
  9
)
rows.push(
  below("opening a compressed session of 10,000 messages in a new process, beyond an empty one", short10k - none, 60)
)
rows.push(below("the same of 100,000 messages", short100k - none, 100))
const full = await warm("whole10k", 9)
rows.push(
  ratio("opening a session of 10,000 messages, none compressed, to JSON.parse of its lines", full.open, full.floor, 1.5)
)
rows.push({
  what: "the same in a new process, beyond an empty session",
  value: `${(whole - none).toFixed(1)} ms`,
  bound: undefined,
  ok: true
})
const back = await warm("branched20k", 5)
rows.push(
  ratio(
    "opening a session of 20,000 messages that went back 20 messages, to JSON.parse of its lines",
    back.open,
    back.floor,
    1.5
  )
)
rows.push({
  what: "the same in a new process, beyond an empty session",
  value: `${(branched - none).toFixed(1)} ms`,
  bound: undefined,
  ok: true
})

rmSync(folder, { recursive: true })
console.log(`Node ${version}, ${availableParallelism()} cores, load ${loadavg()[0]?.toFixed(1)}; medians`)
print(rows)
