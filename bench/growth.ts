import { NodeServices } from "@effect/platform-node"
import { Effect, type FileSystem, Layer, type Path, type Stdio } from "effect"
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { plan } from "../src/domain/compression/strategies/palimpsest/Plan.ts"
import { defaultPolicy } from "../src/domain/compression/strategies/Policy.ts"
import { entries, view } from "../src/domain/conversation/Conversation.ts"
import { freshMemory } from "../src/domain/conversation/FailureMemory.ts"
import { encodeLine, spillableParts } from "../src/domain/session/LogFormat.ts"
import { type SessionEvent, minSpillBytes, type Spilled } from "../src/domain/session/Session.ts"
import { runSync } from "../src/domain/text/SlicedWork.ts"
import * as FileSessionStore from "../src/layers/session/FileSessionStore.ts"
import * as FileTempStore from "../src/layers/session/FileTempStore.ts"
import { Chat } from "../src/services/chat/Chat.ts"
import { Compression } from "../src/services/compression/Compression.ts"
import { Summarizer } from "../src/services/compression/summary/Summarizer.ts"
import { inspect } from "../src/services/evaluation/Inspect.ts"
import { HookSystem } from "../src/services/hooks/HookSystem.ts"
import { SessionStore } from "../src/services/session/SessionStore.ts"
import { TempStore } from "../src/services/session/TempStore.ts"
import { TokenCounter } from "../src/services/tokens/TokenCounter.ts"
import { load } from "../src/services/transcripts/Transcripts.ts"
import { claudeLines } from "./corpus.ts"

/**
 * `npm run bench:growth`: the cost of each operation at 100 to 100,000 messages, in one process, and how it grows. The cost of
 * an operation on the whole conversation may grow linearly; an operation per turn must not grow at all.
 */

const sizes = [100, 1_000, 10_000, 100_000]
/** Bytes per message: 100 MB at the largest size. */
const messageBytes = 1_000

/** The real services: sessions and blobs on disk, snapshots by code. */
const services = (home: string) =>
  Compression.layer.pipe(
    Layer.provideMerge(
      Layer.mergeAll(
        HookSystem.layer,
        Summarizer.layerExtractive,
        FileSessionStore.layer(home).pipe(Layer.provide(FileTempStore.folders))
      )
    ),
    Layer.provideMerge(Layer.merge(TokenCounter.layerEstimate, FileTempStore.layer(join(home, "blobs")))),
    Layer.provideMerge(NodeServices.layer)
  )
type Services =
  | Compression
  | HookSystem
  | Summarizer
  | SessionStore
  | TokenCounter
  | TempStore
  | FileSystem.FileSystem
  | Path.Path
  | Stdio.Stdio

/** Milliseconds of the fastest of several runs, which is closest to the cost of the work itself. */
const timed = <A, E, R>(work: Effect.Effect<A, E, R>, runs: number) =>
  Effect.gen(function* () {
    let best = Number.POSITIVE_INFINITY
    let result: A | undefined
    for (let i = 0; i < runs; i += 1) {
      const start = performance.now()
      result = yield* work
      best = Math.min(best, performance.now() - start)
    }
    return { ms: best, result: result as A }
  })

/** Writes a log at once; appending would sync after each line. */
const writeLog = Effect.fnUntraced(function* (file: string, events: ReadonlyArray<SessionEvent>) {
  const store = yield* TempStore
  const lines: Array<string> = []
  for (const event of events) {
    const spilled = new Map<string, Spilled>()
    for (const { form, key, text } of spillableParts(event, minSpillBytes)) {
      const bytes = new TextEncoder().encode(text)
      spilled.set(key, { hash: yield* store.put(bytes), size: bytes.length, form })
    }
    lines.push(encodeLine(event, spilled))
  }
  writeFileSync(file, `${lines.join("\n")}\n`)
})

/** The operations, each returning its milliseconds at one size. */
const measure = (size: number, folder: string): Effect.Effect<Readonly<Record<string, number>>, unknown, Services> =>
  Effect.scoped(
    Effect.gen(function* () {
      const runs = size > 10_000 ? 2 : 5
      const file = join(folder, `${size}.jsonl`)
      writeFileSync(file, `${claudeLines(size, size * messageBytes).join("\n")}\n`)
      const reading = yield* timed(load(file), runs)
      const { events, session } = reading.result
      const { conversation } = session
      const shown = view(conversation)

      const counter = yield* TokenCounter
      const parts = entries(conversation).flatMap((entry) => entry.content.parts)
      const counting = yield* timed(counter.count(parts), runs)

      const inspecting = yield* timed(inspect(conversation), runs)
      const planning = yield* timed(
        Effect.sync(() => runSync(plan(conversation, defaultPolicy, { forced: true, memory: freshMemory, rung: 0 }))),
        runs
      )

      const [started, ...rest] = events
      if (started?._tag !== "Started") return yield* Effect.die("a conversation opens with Started")
      const id = started.session
      yield* writeLog(join(folder, `${id}.jsonl`), [started, ...rest])
      const store = yield* SessionStore
      const resuming = yield* timed(Effect.scoped(store.open(id)), runs)

      const opened = yield* store.open(id)
      const chat = yield* Chat.keep(opened)
      const last = shown.at(-1)?.entry.handles[0]
      if (last === undefined) return yield* Effect.die("the last message has a handle")
      const times = 20
      const recalling = yield* timed(
        Effect.forEach(Array.from({ length: times }), () => chat.recall(last), { discard: true }),
        runs
      )
      const appending = yield* timed(
        Effect.forEach(
          Array.from({ length: times }),
          () => chat.append([{ content: { role: "user", parts: [{ text: "and one more thing" }] } }]),
          { discard: true }
        ),
        runs
      )
      const compressing = yield* timed(chat.compress({ policy: defaultPolicy, forced: true }), 1)
      const search = { pattern: "words (that|which) no message has", maxTokens: 4_000, isRedacted: true }
      const searching = yield* timed(chat.search(search), runs)
      return {
        reading: reading.ms,
        counting: counting.ms,
        inspecting: inspecting.ms,
        planning: planning.ms,
        compressing: compressing.ms,
        resuming: resuming.ms,
        "searching all that left the window": searching.ms,
        "recalling one part": recalling.ms / times,
        "appending one message": appending.ms / times,
        megabytes: statSync(file).size / 1e6
      }
    })
  )

/** Runs in a temporary folder. */
const run = async (size: number) => {
  const folder = mkdtempSync(join(tmpdir(), "palimpsest-growth-"))
  try {
    return await Effect.runPromise(measure(size, folder).pipe(Effect.provide(services(folder))))
  } finally {
    rmSync(folder, { recursive: true })
  }
}

// Warm up the compiler with a small conversation.
await run(1_000)
const table: Array<Readonly<Record<string, number>>> = []
for (const size of sizes) table.push(await run(size))

/** Operations whose cost must not depend on the length of the conversation. */
const constant = new Set(["recalling one part", "appending one message"])
const shown = (ms: number) => (ms >= 100 ? ms.toFixed(0) : ms >= 1 ? ms.toFixed(1) : ms.toFixed(3))
console.log(`| ms at messages | ${sizes.map((size) => size.toLocaleString("en")).join(" | ")} | grows as | bound |`)
console.log(`|---|${sizes.map(() => "---:").join("|")}|---|---|`)
let over = false
for (const name of Object.keys(table[0] ?? {})) {
  if (name === "megabytes") continue
  const values = table.map((row) => row[name] ?? Number.NaN)
  // From 10,000 to 100,000: short conversations have little to plan and would make the growth look steeper.
  const exponent = Math.log10((values[3] ?? 1) / (values[2] ?? 1))
  const bound = constant.has(name) ? 0.2 : 1.3
  over ||= exponent > bound
  console.log(
    `| ${name} | ${values.map(shown).join(" | ")} | n^${exponent.toFixed(2)}${exponent > bound ? " OVER" : ""} | n^${bound} |`
  )
}
console.log(`files: ${table.map((row) => `${row["megabytes"]?.toFixed(1)} MB`).join(", ")}`)
process.exitCode = over ? 1 : 0
