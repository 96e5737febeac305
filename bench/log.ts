import { Context, Effect, FileSystem, Layer } from "effect"
import { spawnSync } from "node:child_process"
import { closeSync, fsyncSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync, writeSync } from "node:fs"
import { availableParallelism, loadavg, tmpdir } from "node:os"
import { join } from "node:path"
import { argv, cpuUsage, execArgv, execPath, memoryUsage, version } from "node:process"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { model as modelSays, text, user } from "../src/domain/content/Content.ts"
import { entryId } from "../src/domain/conversation/Conversation.ts"
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
import * as MemoryCalibrations from "../src/layers/testing/MemoryCalibrations.ts"
import * as MemoryTempStore from "../src/layers/testing/MemoryTempStore.ts"
import { Chats } from "../src/services/chat/Chats.ts"
import { Compression } from "../src/services/compression/Compression.ts"
import { Summarizer } from "../src/services/compression/summary/Summarizer.ts"
import { HookSystem } from "../src/services/hooks/HookSystem.ts"
import { Model, unavailableModel } from "../src/services/model/Model.ts"
import { SessionStore } from "../src/services/session/SessionStore.ts"
import { TempStore } from "../src/services/session/TempStore.ts"
import { TokenCounter } from "../src/services/tokens/TokenCounter.ts"
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

/** Milliseconds of processor time of this process. */
const processorTime = () => {
  const { system, user } = cpuUsage()
  return (system + user) / 1_000
}

// A child process: opens one session and says how long that took, code that runs for the first time included.
if (argv[2] === "open") {
  const began = performance.now()
  const used = processorTime()
  await opened(argv[3] ?? "", argv[4] ?? "")
  console.log(JSON.stringify({ ms: performance.now() - began, used: processorTime() - used }))
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
      closeSync(bare)
      return { ours: median(ours.slice(500)), floor: median(floor.slice(500)) }
    }).pipe(Effect.scoped, Effect.provide(Layer.provide(store, platform)))
  )
}
for (const [isSynced, bound] of [
  [false, 3],
  [true, 1.5]
] as const) {
  const home = join(folder, String(isSynced))
  const { floor, ours } = await appending(home, isSynced)
  const what = isSynced ? "writing and syncing its line" : "writing its line, nothing synced"
  rows.push(ratio(`appending a message, to ${what}`, ours, floor, bound))
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

interface Opening {
  readonly ms: number
  readonly used: number
}

/** Milliseconds to open each session in a fresh process: the median of the clock, and of processor time. */
const cold = (ids: ReadonlyArray<string>, runs: number): ReadonlyArray<Opening> => {
  const taken = ids.map((): Array<Opening> => [])
  for (let run = 0; run < runs; run += 1) {
    for (const [index, id] of ids.entries()) {
      const args = [...execArgv, argv[1] ?? "", "open", home, id]
      const { stderr, stdout } = spawnSync(execPath, args, { encoding: "utf8" })
      if (stdout === "") throw new Error(stderr)
      taken[index]?.push(JSON.parse(stdout))
    }
  }
  return taken.map((all) => ({ ms: median(all.map(({ ms }) => ms)), used: median(all.map(({ used }) => used)) }))
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

/** What opening a session takes beyond opening an empty one. On a busy machine only the processor time says something. */
const beyond = (what: string, { ms, used }: Opening, empty: Opening, bound: number | undefined): Row => ({
  what,
  value: `${(ms - empty.ms).toFixed(1)} ms (processor ${(used - empty.used).toFixed(1)} ms)`,
  bound: bound === undefined ? undefined : `${bound} ms`,
  ok: bound === undefined || ms - empty.ms <= bound
})

await sessionOf("empty", 0, undefined)
await sessionOf("whole10k", 10_000, undefined)
await sessionOf("short10k", 10_000, 1_500)
await sessionOf("short100k", 100_000, 1_500)
await sessionOf("branched20k", 20_000, undefined, (session) => [
  { _tag: "Branched", at: 1, from: entryId(session.count - 20) },
  ...session.turn()
])
const none: Opening = { ms: 0, used: 0 }
const [empty = none, short10k = none, short100k = none, whole10k = none, branched20k = none] = cold(
  ["empty", "short10k", "short100k", "whole10k", "branched20k"],
  9
)
rows.push(
  beyond("opening a compressed session of 10,000 messages in a new process, beyond an empty one", short10k, empty, 60)
)
rows.push(beyond("the same of 100,000 messages", short100k, empty, 100))
rows.push(beyond("the same of 10,000 messages, none compressed", whole10k, empty, undefined))
rows.push(beyond("the same of 20,000 messages, after going back by 20", branched20k, empty, undefined))
const whole = await warm("whole10k", 15)
rows.push(
  ratio(
    "opening a session of 10,000 messages, none compressed, to JSON.parse of its lines",
    whole.open,
    whole.floor,
    1.5
  )
)
const branched = await warm("branched20k", 15)
rows.push(
  ratio(
    "opening a session of 20,000 messages that went back by 20, to JSON.parse of its lines",
    branched.open,
    branched.floor,
    1.5
  )
)

// --- many chats at once ---------------------------------------------------------------------------------------------------

/** Bytes that are still reachable. */
const reachable = () => {
  setFlagsFromString("--expose-gc")
  runInNewContext("gc()")
  const { arrayBuffers, heapUsed } = memoryUsage()
  return heapUsed + arrayBuffers
}
const chats = 1_000
const idle = await Effect.runPromise(
  Effect.gen(function* () {
    const open = (n: number) =>
      Effect.gen(function* () {
        const chat = yield* (yield* Chats).open(`idle${n}`)
        for (let turn = 0; turn < 10; turn += 1) {
          yield* chat.append([
            { content: user(text(`Please look at step ${turn} of task ${n}.`)) },
            { content: modelSays(text(`Step ${turn} of task ${n} is done: nothing had to be changed.`)) }
          ])
        }
      })
    yield* Effect.forEach(Array.from({ length: 20 }), (_, n) => open(n + chats))
    const before = reachable()
    yield* Effect.forEach(Array.from({ length: chats }), (_, n) => open(n), { concurrency: 50, discard: true })
    return (reachable() - before) / chats / 1_024
  }).pipe(
    Effect.scoped,
    Effect.provide(
      Chats.layer.pipe(
        Layer.provideMerge(Compression.layer),
        Layer.provideMerge(Summarizer.layerExtractive),
        Layer.provideMerge(
          Layer.mergeAll(
            TokenCounter.layerEstimate,
            MemoryTempStore.layer,
            HookSystem.layer,
            MemoryCalibrations.layer,
            Layer.succeed(Model, unavailableModel),
            FileSessionStore.layer(join(folder, "chats")).pipe(Layer.provide(FileTempStore.folders))
          )
        ),
        Layer.provide(Layer.provideMerge(unsynced, NodePlatform.layer))
      )
    )
  )
)
rows.push({
  what: `memory of each of ${chats.toLocaleString("en")} chats of 20 short messages, open and idle`,
  value: `${idle.toFixed(1)} KB`,
  bound: "100 KB",
  ok: idle <= 100
})

rmSync(folder, { recursive: true })
console.log(`Node ${version}, ${availableParallelism()} cores, load ${loadavg()[0]?.toFixed(1)}; medians`)
print(rows)
