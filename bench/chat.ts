import * as NodeServices from "@effect/platform-node/NodeServices"
import { GoogleGenAI } from "@google/genai/web"
import { ConfigProvider, Effect, type FileSystem, Layer, type Scope, Stream } from "effect"
import { spawn, spawnSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { open as openFile } from "node:fs/promises"
import http from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { call, model as modelSays, type Part, response, text, user } from "../src/domain/content/Content.ts"
import { Handle } from "../src/domain/content/Handle.ts"
import { entryId } from "../src/domain/conversation/Conversation.ts"
import { encodeLine } from "../src/domain/session/LogFormat.ts"
import { logVersion, type SessionEvent, type Started } from "../src/domain/session/Session.ts"
import * as GoogleModel from "../src/layers/model/GoogleModel.ts"
import * as FileSessionStore from "../src/layers/session/FileSessionStore.ts"
import * as FileTempStore from "../src/layers/session/FileTempStore.ts"
import * as MemoryCalibrations from "../src/layers/testing/MemoryCalibrations.ts"
import * as MemoryTempStore from "../src/layers/testing/MemoryTempStore.ts"
import { Chats } from "../src/services/chat/Chats.ts"
import { Compression } from "../src/services/compression/Compression.ts"
import { Summarizer } from "../src/services/compression/summary/Summarizer.ts"
import { HookSystem } from "../src/services/hooks/HookSystem.ts"
import { Model } from "../src/services/model/Model.ts"
import { SessionStore } from "../src/services/session/SessionStore.ts"
import { TokenCounter } from "../src/services/tokens/TokenCounter.ts"
import { median, print, ratio as ratioOf, type Row } from "./table.ts"

/**
 * `npm run bench:chat`: the overhead of a chat besides the model, as ratios to a baseline measured in the same run. Prints a
 * table, marks each row over its bound, and fails if there is one.
 */

const turns = 1_000
const folder = mkdtempSync(join(tmpdir(), "palimpsest-bench-chat-"))
const bundle = join(import.meta.dirname, "..", "dist", "palimpsest.mjs")
const node = process.execPath

const rows: Array<Row> = []
const ratio = (...figures: Parameters<typeof ratioOf>) => rows.push(ratioOf(...figures))
const mean = (values: ReadonlyArray<number>): number => values.reduce((a, b) => a + b, 0) / values.length

// --- a server that answers at once ---------------------------------------------------------------------------------------

const answerParts = (turn: number): ReadonlyArray<Part> =>
  turn % 2 === 0
    ? [text(`Looking at file ${turn}.`), call("read_file", { path: `src/file${turn}.ts`, lines: [1, 40] }, `c${turn}`)]
    : [text(`Turn ${turn}: the file declares what the one before uses. Nothing has to be changed here.`)]
const messageParts = (turn: number): ReadonlyArray<Part> =>
  turn % 2 === 0
    ? [text(`Go on with step ${turn}, please.`)]
    : [response("read_file", { output: `line of file ${turn}\n`.repeat(20) }, `c${turn - 1}`)]

const answerOf = (turn: number) => ({
  candidates: [{ content: { role: "model", parts: answerParts(turn) }, index: 0, finishReason: "STOP" }]
})

/** Answers every request, and signals when the first one arrived. */
const listen = (onRequest: () => void = () => {}) =>
  new Promise<{ readonly url: string; readonly close: () => void; readonly reset: () => void }>((resolve) => {
    let turn = 0
    const server = http.createServer((incoming, outgoing) => {
      incoming.resume()
      incoming.on("end", () => {
        onRequest()
        outgoing.writeHead(200, { "content-type": "text/event-stream" })
        outgoing.end(`data: ${JSON.stringify(answerOf(turn))}\r\n\r\n`)
        turn += 1
      })
    })
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      resolve({
        url: typeof address === "object" ? `http://127.0.0.1:${address?.port}` : "",
        close: () => {
          server.closeAllConnections()
          server.close()
        },
        reset: () => {
          turn = 0
        }
      })
    })
  })

// --- the runtime ------------------------------------------------------------------------------------------------------------

const runtime = <E, R>(model: Layer.Layer<Model, E, R>, home: string) =>
  Chats.layer.pipe(
    Layer.provideMerge(Compression.layer),
    Layer.provideMerge(Summarizer.layerExtractive),
    Layer.provideMerge(
      Layer.mergeAll(
        TokenCounter.layerEstimate,
        MemoryTempStore.layer,
        HookSystem.layer,
        MemoryCalibrations.layer,
        model,
        FileSessionStore.layer(home).pipe(Layer.provide(FileTempStore.folders))
      )
    ),
    Layer.provideMerge(NodeServices.layer)
  )

const talk = (id: string) =>
  Effect.gen(function* () {
    const chat = yield* (yield* Chats).open(id)
    for (let turn = 0; turn < turns; turn += 1) yield* Stream.runDrain(chat.send(messageParts(turn)))
  }).pipe(Effect.scoped)

// 1. The time from the end of an answer to the next request, with a model that answers at once.
const overheads: Array<number> = []
let ended = 0
let asked = 0
const instant = Layer.succeed(Model, {
  generate: () => Effect.die("not asked"),
  countTokens: () => Effect.succeed(1),
  stream: () =>
    Stream.suspend(() => {
      if (ended > 0) overheads.push(performance.now() - ended)
      const parts = answerParts(asked)
      asked += 1
      return Stream.fromIterable([{ parts, finishReason: "STOP" }]).pipe(
        Stream.onEnd(
          Effect.sync(() => {
            ended = performance.now()
          })
        )
      )
    })
})
await Effect.runPromise(talk("overhead").pipe(Effect.provide(runtime(instant, join(folder, "overhead")))))
ratio(
  "runtime between an answer and the next request, last hundred of 1,000 turns to the first",
  mean(overheads.slice(-100)),
  mean(overheads.slice(0, 100)),
  1.5
)

// 2. The whole chat, alternating with a bare loop over the same SDK and sockets.
const server = await listen()
const bareLoop = async () => {
  const { models } = new GoogleGenAI({ apiKey: "none", vertexai: false, httpOptions: { baseUrl: server.url } })
  const contents: Array<object> = []
  for (let turn = 0; turn < turns; turn += 1) {
    contents.push({ role: "user", parts: messageParts(turn) })
    const parts: Array<object> = []
    for await (const chunk of await models.generateContentStream({
      model: "gemini-2.5-flash",
      contents,
      config: { automaticContinuation: false }
    })) {
      parts.push(...(chunk.candidates?.[0]?.content?.parts ?? []))
    }
    contents.push({ role: "model", parts })
  }
}
const google = GoogleModel.layerConfig.pipe(
  Layer.provide(
    ConfigProvider.layer(ConfigProvider.fromUnknown({ GEMINI_API_KEY: "none", GOOGLE_GEMINI_BASE_URL: server.url }))
  )
)
const bares: Array<number> = []
const ours: Array<number> = []
for (let round = 0; round < 3; round += 1) {
  server.reset()
  let start = performance.now()
  await bareLoop()
  bares.push(performance.now() - start)
  server.reset()
  start = performance.now()
  await Effect.runPromise(talk(`loop${round}`).pipe(Effect.provide(runtime(google, join(folder, `loop${round}`)))))
  ours.push(performance.now() - start)
}
ratio("1,000 turns through chat.send, to a bare loop with the same SDK calls", median(ours), median(bares), 2)
server.close()

// 3. Appending, compared with a plain write and sync of the same bytes, at the beginning of a log and after 10,000 messages.
const entryOf = (sequence: number) => {
  const parts = sequence % 2 === 1 ? messageParts(sequence) : answerParts(sequence)
  return {
    id: entryId(sequence),
    content: sequence % 2 === 1 ? user(...parts) : modelSays(...parts),
    tokens: parts.map(() => 40),
    handles: parts.map((_, part) =>
      Handle.make(
        `h_${String(sequence * 4 + part)
          .replace(/[0189]/g, "a")
          .padStart(10, "b")}`
      )
    )
  }
}
const started = (session: string): Started => ({
  _tag: "Started",
  version: logVersion,
  session,
  at: 0,
  estimator: "bench"
})
const appended = (sequence: number): SessionEvent => ({ _tag: "Appended", entry: entryOf(sequence) })
const messages = 10_000
const usage = { prompt: 1_000, answer: 20, thoughts: 0, cached: 500 }
/** Appends as a chat does: every message together with its answer. */
const turnLine = (turn: number) =>
  encodeLine({
    _tag: "Answered",
    message: { ...entryOf(2 * turn + 1), at: 1_700_000_000_000 + turn },
    answer: { ...entryOf(2 * turn + 2), at: 1_700_000_000_000 + turn, model: "gemini-2.5-flash", usage }
  })
const logLines = (id: string) => [
  encodeLine(started(id)),
  ...Array.from({ length: messages / 2 }, (_, turn) => turnLine(turn))
]
const withStore = <A, E>(
  home: string,
  work: Effect.Effect<A, E, SessionStore | Scope.Scope | FileSystem.FileSystem>
): Promise<A> =>
  Effect.runPromise(
    Effect.scoped(work).pipe(
      Effect.provide(
        FileSessionStore.layer(home).pipe(Layer.provide(FileTempStore.folders), Layer.provideMerge(NodeServices.layer))
      )
    )
  )
const home = join(folder, "sessions")
const warm = 200
const appends = 300
const plainFile = await openFile(join(folder, "plain.jsonl"), "a")
const [ourAppend, plainAppend, lateAppend] = await withStore(
  home,
  Effect.gen(function* () {
    const store = yield* SessionStore
    const log = yield* store.create(started("append"))
    const plain: Array<number> = []
    const own: Array<number> = []
    const late: Array<number> = []
    const timed = (event: SessionEvent, into: Array<number>) =>
      Effect.gen(function* () {
        const start = performance.now()
        yield* log.append(event)
        into.push(performance.now() - start)
      })
    // Both are warm.
    for (let at = 1; at <= warm; at += 1) {
      yield* Effect.promise(() => plainFile.write(`${encodeLine(appended(at))}\n`))
      yield* log.append(appended(at))
    }
    for (let at = warm + 1; at <= warm + appends; at += 1) {
      const start = performance.now()
      yield* Effect.promise(async () => {
        await plainFile.write(`${encodeLine(appended(at))}\n`)
        await plainFile.sync()
      })
      plain.push(performance.now() - start)
      yield* timed(appended(at), own)
    }
    for (let at = warm + appends + 1; at <= messages; at += 1) yield* log.append(appended(at))
    for (let at = messages + 1; at <= messages + appends; at += 1) yield* timed(appended(at), late)
    return [median(own), median(plain), median(late)] as const
  })
)
await plainFile.close()
ratio("appending one message, to a plain write and sync of its line", ourAppend, plainAppend, 2)
ratio("the same behind 10,000 messages", lateAppend, plainAppend, 2)

// 4. Opening a session of 10,000 messages, compared with JSON.parse of the same lines with their values retained.
const open = (id: string) =>
  withStore(
    home,
    SessionStore.use((store) => Effect.scoped(store.open(id)))
  )
const opening = async (id: string, lines: ReadonlyArray<string>) => {
  const floors: Array<number> = []
  const opens: Array<number> = []
  for (let round = 0; round < 15; round += 1) {
    let start = performance.now()
    const kept = lines.map((line): unknown => JSON.parse(line))
    floors.push(performance.now() - start)
    if (kept.length !== lines.length) throw new Error("a line is missing")
    start = performance.now()
    await open(id)
    opens.push(performance.now() - start)
  }
  return [median(opens), median(floors)] as const
}
const plainLines = logLines("long")
writeFileSync(join(home, "long.jsonl"), `${plainLines.join("\n")}\n`)
const [whole, wholeFloor] = await opening("long", plainLines)
ratio("opening a session of 10,000 messages, none compressed, to JSON.parse of its lines", whole, wholeFloor, 1.5)

// What a status line asks for after every answer: the same for a long conversation as for one of a single turn.
writeFileSync(join(home, "short.jsonl"), `${plainLines.slice(0, 2).join("\n")}\n`)
const usageOf = (id: string) =>
  Effect.runPromise(
    Effect.gen(function* () {
      const chat = yield* (yield* Chats).open(id)
      const batches: Array<number> = []
      for (let round = 0; round < 50; round += 1) {
        const start = performance.now()
        for (let call = 0; call < 1_000; call += 1) yield* chat.usage
        batches.push(performance.now() - start)
      }
      return median(batches)
    }).pipe(Effect.scoped, Effect.provide(runtime(instant, home)))
  )
const [longUsage, shortUsage] = [await usageOf("long"), await usageOf("short")]
ratio("1,000 readings of Chat.usage at 10,000 messages, to those at 2 messages", longUsage, shortUsage, 1.5)

await Effect.runPromise(
  Effect.gen(function* () {
    const chat = yield* (yield* Chats).open("long")
    yield* chat.configure({ window: 400_000 })
    const { _tag } = yield* chat.compress()
    if (_tag !== "Compressed") throw new Error(`the compression ended as ${_tag}`)
  }).pipe(Effect.scoped, Effect.provide(runtime(instant, home)))
)
const compressedLog = readFileSync(join(home, "long.jsonl"))
const lastLine = compressedLog.toString("utf8").trimEnd().split("\n").at(-1) ?? ""
const { checkpoint }: { readonly checkpoint: { readonly ranges: ReadonlyArray<readonly [number, number]> } } =
  JSON.parse(lastLine)
const needed = [
  ...checkpoint.ranges.flatMap(([from, to]) => compressedLog.subarray(from, to).toString("utf8").trimEnd().split("\n")),
  lastLine
]
const [partly, partlyFloor] = await opening("long", needed)
ratio(
  `the same compressed (${needed.length.toLocaleString("en")} lines, ${(needed.join("").length / 1e6).toFixed(1)} of ${(compressedLog.length / 1e6).toFixed(1)} MB), to JSON.parse of those lines`,
  partly,
  partlyFloor,
  1.5
)

// 5. and 6. The built program: one `ask`, and a chat of 1,000 turns.
let first: () => void = () => {}
const other = await listen(() => first())
const env = {
  ...process.env,
  GEMINI_API_KEY: "none",
  GOOGLE_GEMINI_BASE_URL: other.url,
  PALIMPSEST_HOME: join(folder, "home")
}
const headless = () =>
  new Promise<number>((resolve) => {
    const start = performance.now()
    let at = 0
    first = () => {
      at = performance.now() - start
      first = () => {}
    }
    spawn(node, [bundle, "ask", "hello"], { env, stdio: "ignore" }).on("exit", () => resolve(at))
  })
const starts: Array<number> = []
const nodes: Array<number> = []
for (let round = 0; round < 15; round += 1) {
  const start = performance.now()
  spawnSync(node, ["-e", "0"])
  nodes.push(performance.now() - start)
  starts.push(await headless())
}
ratio("from the start of `palimpsest ask` to its request, to node -e 0", median(starts), median(nodes), 6)

const preload = join(folder, "peak.mjs")
writeFileSync(
  preload,
  `process.on("exit", () => process.stderr.write("peak " + process.resourceUsage().maxRSS + "\\n"))`
)
other.reset()
const peak = await new Promise<number>((resolve) => {
  const child = spawn(node, ["--import", preload, bundle, "chat"], { env, stdio: ["pipe", "ignore", "pipe"] })
  let said = ""
  child.stderr.on("data", (piece: Buffer) => {
    said += piece.toString()
  })
  child.on("exit", () => resolve(Number(/peak (\d+)/.exec(said)?.[1] ?? Number.NaN) / 1024))
  child.stdin.end(Array.from({ length: turns }, (_, turn) => `Go on with step ${turn}, please.\n`).join(""))
})
rows.push({
  what: "peak memory of a chat of 1,000 turns",
  value: `${peak.toFixed(0)} MB`,
  bound: "150 MB",
  ok: peak <= 150
})
other.close()

const log = readFileSync(join(home, "append.jsonl"), "utf8")
if (log.split("\n").length < messages) throw new Error("the log is shorter than what was appended")
rmSync(folder, { recursive: true })

print(rows)
