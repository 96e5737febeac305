import { NodeServices } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Prompt from "effect/ai/Prompt"
import { spawn, spawnSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { cpus, tmpdir } from "node:os"
import { join } from "node:path"
import { gunzipSync } from "node:zlib"
import { gatherEvidence } from "../src/domain/compression/evidence/Evidence.ts"
import { composeSnapshot } from "../src/domain/compression/handover/Extractive.ts"
import { plan } from "../src/domain/compression/strategies/palimpsest/Plan.ts"
import { defaultPolicy } from "../src/domain/compression/strategies/Policy.ts"
import { append, type Conversation, empty, entries, entryId } from "../src/domain/conversation/Conversation.ts"
import { freshMemory } from "../src/domain/conversation/FailureMemory.ts"
import { runSync } from "../src/domain/text/SlicedWork.ts"
import { estimateText } from "../src/domain/tokens/Tokens.ts"
import * as Live from "../src/layers/assembly/Live.ts"
import * as Offline from "../src/layers/assembly/Offline.ts"
import * as FakeGemini from "../src/layers/testing/FakeGemini.ts"
import * as ScriptedLanguageModel from "../src/layers/testing/ScriptedLanguageModel.ts"
import * as CompressedLanguageModel from "../src/services/effect-ai/CompressedLanguageModel.ts"
import { HandleIndex, makeEntry } from "../src/services/session/EntryBuilder.ts"
import { load } from "../src/services/transcripts/Transcripts.ts"
import { claudeLines } from "./corpus.ts"
import { peers } from "./peers.ts"
import { median, print, ratio as ratioOf, type Row } from "./table.ts"

/**
 * `npm run bench`: the main timings, as ratios to a baseline measured in the same run on the same machine. Prints a table,
 * marks each row over its bound, and fails if there is one.
 */

const times = (n: number, work: () => void): number => {
  const taken: Array<number> = []
  for (let i = 0; i < n; i += 1) {
    const start = performance.now()
    work()
    taken.push(performance.now() - start)
  }
  return median(taken)
}

const rows: Array<Row> = []
const ratio = (...figures: Parameters<typeof ratioOf>) => rows.push(ratioOf(...figures))

const run = <A, E>(effect: Effect.Effect<A, E, never>) => Effect.runPromise(effect)
const folder = mkdtempSync(join(tmpdir(), "palimpsest-bench-"))
const bundle = join(import.meta.dirname, "..", "dist", "palimpsest.mjs")
const node = process.execPath
const example = join(import.meta.dirname, "..", "examples", "claude-code-subagent.jsonl")

// --- start-up ---------------------------------------------------------------------------------------------------------
const bare = times(15, () => spawnSync(node, ["-e", "0"]))
const version = times(15, () => spawnSync(node, [bundle, "--version"]))
ratio("palimpsest --version, to node -e 0", version, bare, 3)

const usage = join(folder, "usage.mjs")
writeFileSync(
  usage,
  `process.on("exit", () => {
  const { maxRSS, systemCPUTime, userCPUTime } = process.resourceUsage()
  process.stderr.write("used " + (systemCPUTime + userCPUTime) / 1000 + " " + maxRSS / 1024 + "\\n")
})`
)
/** Wall time and CPU time in milliseconds, and the peak memory in MB, of a process: the third smallest of so many runs. */
const used = async (args: ReadonlyArray<string>, env: Readonly<Record<string, string>> = {}, runs = 9) => {
  const figures: { wall: Array<number>; cpu: Array<number>; peak: Array<number> } = { wall: [], cpu: [], peak: [] }
  // The first run saves what Node compiled.
  for (let i = 0; i <= runs; i += 1) {
    const start = performance.now()
    const child = spawn(node, ["--import", usage, ...args], { env: { ...process.env, ...env }, stdio: "pipe" })
    let said = ""
    child.stdin.end()
    child.stdout.resume()
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      said += text
    })
    const status = await new Promise((resolve) => child.on("close", resolve))
    if (status !== 0) throw new Error(`${args.join(" ")} ended with ${String(status)}: ${said}`)
    const [, cpu, peak] = /used (\S+) (\S+)/.exec(said) ?? []
    if (i === 0) continue
    figures.wall.push(performance.now() - start)
    figures.cpu.push(Number(cpu))
    figures.peak.push(Number(peak))
  }
  const third = (all: Array<number>) => all.sort((one, other) => one - other)[2] ?? Number.NaN
  return { wall: third(figures.wall), cpu: third(figures.cpu), peak: third(figures.peak) }
}
const nothing = await used(["-e", "0"])
ratio("palimpsest --help, CPU, to node -e 0", (await used([bundle, "--help"])).cpu, nothing.cpu, 2)
const compressed = await used([bundle, "compress", example, "--force"])
ratio("palimpsest compress of a small file, CPU, to node -e 0", compressed.cpu, nothing.cpu, 4)
const turn = await run(
  Effect.scoped(
    Effect.gen(function* () {
      const fake = yield* FakeGemini.make(() => FakeGemini.sse(FakeGemini.response([{ text: "hello" }])))
      for (const { asks, name, script } of peers) {
        const { args, env } = asks("hello", fake.url, join(folder, name))
        const theirs = yield* Effect.promise(() => used([script, ...args], env, 3))
        const help = yield* Effect.promise(() => used([script, "--help"], env, 3))
        ratio(`${name}, a headless turn, to node -e 0`, theirs.wall, nothing.wall)
        ratio(`${name}, --help, to node -e 0`, help.wall, nothing.wall)
      }
      return yield* Effect.promise(() =>
        used([bundle, "ask", "hello"], {
          GEMINI_API_KEY: "none",
          GOOGLE_GEMINI_BASE_URL: fake.url,
          PALIMPSEST_HOME: join(folder, "turn")
        })
      )
    })
  ).pipe(Effect.provide(NodeServices.layer))
)
ratio("a headless turn, to node -e 0", turn.wall, nothing.wall, 6)
ratio("a headless turn, CPU, to node -e 0", turn.cpu, nothing.cpu, 10)
rows.push({
  what: "peak memory of a headless turn",
  value: `${turn.peak.toFixed(0)} MB`,
  bound: "90 MB",
  ok: turn.peak <= 90
})

// --- twenty shell turns: the grammar of the shell is WebAssembly -------------------------------------------------------------
const shell = await run(
  Effect.scoped(
    Effect.gen(function* () {
      let commands = 0
      const fake = yield* FakeGemini.make(() => {
        commands += 1
        const call = {
          functionCall: { name: "run_shell_command", args: { command: `echo ${commands} && ls / | head -3` } }
        }
        return FakeGemini.sse(FakeGemini.response([commands % 21 === 0 ? { text: "done" } : call]))
      })
      return yield* Effect.promise(() =>
        used(
          [bundle, "ask", "--approve", "all", "list it"],
          { GEMINI_API_KEY: "none", GOOGLE_GEMINI_BASE_URL: fake.url, PALIMPSEST_HOME: join(folder, "shell") },
          3
        )
      )
    })
  ).pipe(Effect.provide(NodeServices.layer))
)
rows.push({
  what: "peak memory of twenty shell turns",
  value: `${shell.peak.toFixed(0)} MB`,
  bound: "130 MB",
  ok: shell.peak <= 130
})

// --- reading, planning, compressing 10,000 messages of 30 MB; whole processes, alternating ------------------------------
const file = join(folder, "talk.jsonl")
const lines = claudeLines(10_000, 30_000_000)
writeFileSync(file, `${lines.join("\n")}\n`)
const bytes = readFileSync(file).length
const floorScript = join(folder, "floor.mjs")
writeFileSync(
  floorScript,
  `import { readFileSync } from "node:fs"
for (const line of readFileSync(${JSON.stringify(file)}, "utf8").split("\\n")) if (line !== "") JSON.stringify(JSON.parse(line))
`
)
const processTime = (args: ReadonlyArray<string>): number => {
  const start = performance.now()
  const { status, stderr } = spawnSync(node, args, { maxBuffer: 1e9, encoding: "utf8" })
  if (status !== 0) throw new Error(`${args.join(" ")} ended with ${status}: ${stderr}`)
  return performance.now() - start
}
const floors: Array<number> = []
const compressions: Array<number> = []
for (let i = 0; i < 6; i += 1) {
  floors.push(processTime([floorScript]))
  compressions.push(processTime([bundle, "compress", file, "--force"]))
}
const size = `10,000 messages, ${(bytes / 1e6).toFixed(0)} MB`
ratio(
  `palimpsest compress of ${size}, to node that parses and stringifies its lines`,
  median(compressions),
  median(floors),
  4
)

const preload = join(folder, "peak.mjs")
writeFileSync(
  preload,
  `process.on("exit", () => process.stderr.write("peak " + process.resourceUsage().maxRSS + "\\n"))`
)
const { stderr: said } = spawnSync(node, ["--import", preload, bundle, "compress", file, "--force", "--json"], {
  maxBuffer: 1e9,
  encoding: "utf8"
})
const megabytes = Number(/peak (\d+)/.exec(said)?.[1] ?? Number.NaN) / 1024
rows.push({
  what: "peak memory of it",
  value: `${megabytes.toFixed(0)} MB`,
  bound: "600 MB",
  ok: megabytes <= 600
})

// --- inspecting 3 MB; whole processes, alternating ------------------------------------------------------------------------
const small = join(folder, "small.jsonl")
writeFileSync(small, `${claudeLines(1_500, 3_000_000).join("\n")}\n`)
const shortest = join(folder, "shortest.jsonl")
writeFileSync(shortest, `${claudeLines(2, 1_000).join("\n")}\n`)
const parseScript = join(folder, "parse.mjs")
writeFileSync(
  parseScript,
  `import { readFileSync } from "node:fs"
for (const line of readFileSync(${JSON.stringify(small)}, "utf8").split("\\n")) if (line !== "") JSON.parse(line)
`
)
const spent = { nothing: [], parse: [], start: [], inspect: [], page: [] } as Record<string, Array<number>>
for (let i = 0; i < 15; i += 1) {
  spent["nothing"]?.push(processTime(["-e", "0"]))
  spent["parse"]?.push(processTime([parseScript]))
  spent["start"]?.push(processTime([bundle, "inspect", shortest]))
  spent["inspect"]?.push(processTime([bundle, "inspect", small]))
  spent["page"]?.push(processTime([bundle, "inspect", small, "--html", join(folder, "page.html")]))
}
const took = (name: string) => median(spent[name] ?? [])
const parsing = took("parse") - took("nothing")
ratio(
  "palimpsest inspect of 1,500 lines, 3 MB, to JSON.parse of them and palimpsest inspect of two lines",
  took("inspect"),
  parsing + took("start"),
  3
)
// A stricter form of the same bound, which is not met: reported without a bound.
rows.push({
  what: "the same beyond the start, to JSON.parse alone",
  value: `${((took("inspect") - took("start")) / parsing).toFixed(1)} × (${(took("inspect") - took("start")).toFixed(0)} ms to ${parsing.toFixed(0)} ms)`,
  bound: undefined,
  ok: true
})
rows.push({
  what: "--html of it, beyond inspect alone",
  value: `${(took("page") - took("inspect")).toFixed(0)} ms`,
  bound: "1,000 ms",
  ok: took("page") - took("inspect") <= 1_000
})
for (const [count, name] of [
  [3_000, "3,000 messages"],
  [100_000, "100,000 messages"]
] as const) {
  const large = join(folder, "large.jsonl")
  writeFileSync(large, `${claudeLines(count, 100_000_000).join("\n")}\n`)
  const { stderr: told } = spawnSync(node, ["--import", preload, bundle, "inspect", large, "--json"], {
    maxBuffer: 1e9,
    encoding: "utf8"
  })
  const peak = Number(/peak (\d+)/.exec(told)?.[1] ?? Number.NaN) / 1024
  rows.push({
    what: `peak memory of inspect of ${name}, ${(readFileSync(large).length / 1e6).toFixed(0)} MB`,
    value: `${peak.toFixed(0)} MB`,
    bound: "1,000 MB",
    ok: peak <= 1_000
  })
  const { stderr: compressing } = spawnSync(node, ["--import", preload, bundle, "compress", large, "--force"], {
    maxBuffer: 1e9,
    encoding: "utf8"
  })
  const most = Number(/peak (\d+)/.exec(compressing)?.[1] ?? Number.NaN) / 1024
  rows.push({
    what: `the same of compress of ${name}`,
    value: `${most.toFixed(0)} MB`,
    bound: "300 MB",
    ok: most <= 300
  })
  rmSync(large)
}

// --- a wrapped effect/ai model below its threshold ----------------------------------------------------------------------
const asked = 1_000
const growing = (layer: Layer.Layer<LanguageModel.LanguageModel>) =>
  run(
    Effect.gen(function* () {
      let prompt: Prompt.Prompt = Prompt.empty
      const start = performance.now()
      for (let i = 0; i < asked; i += 1) {
        prompt = Prompt.concat(prompt, `question ${i}`)
        yield* LanguageModel.generateText({ prompt })
      }
      return (performance.now() - start) / asked
    }).pipe(Effect.provide(layer))
  )
const bareModel = ScriptedLanguageModel.layer(() => "ok")
const wrappedModel = CompressedLanguageModel.layer({ window: 10_000_000 }).pipe(
  Layer.provide(bareModel),
  Layer.provide(Offline.layer)
)
const calls: { readonly bare: Array<number>; readonly wrapped: Array<number> } = { bare: [], wrapped: [] }
for (let i = 0; i < 9; i += 1) {
  calls.bare.push(await growing(bareModel))
  calls.wrapped.push(await growing(wrappedModel))
}
const added = (median(calls.wrapped) - median(calls.bare)) * 1_000
rows.push({
  what: `a wrapped effect/ai model below its threshold, a call more than the bare one, prompts of 1 to ${asked.toLocaleString("en")} messages`,
  value: `${added.toFixed(0)} µs (${(median(calls.bare) * 1_000).toFixed(0)} µs bare)`,
  bound: "100 µs",
  ok: added <= 100
})

// --- replaying a recording; whole processes -------------------------------------------------------------------------------
const recording = join(folder, "recording.jsonl")
const fixture = join(import.meta.dirname, "..", "test", "fixtures", "sessions", "claude-code-1512-lines.jsonl.gz")
writeFileSync(recording, gunzipSync(readFileSync(fixture)))
const reading = await used([bundle, "inspect", recording])
for (const window of [64_000, 128_000]) {
  const replaying = await used([bundle, "replay", recording, "--window", String(window)])
  ratio(
    `palimpsest replay of 1,512 lines in a window of ${window.toLocaleString("en")} tokens, CPU, to palimpsest inspect of them`,
    replaying.cpu,
    reading.cpu,
    3
  )
}

// --- from Ctrl+C to the closed socket ---------------------------------------------------------------------------------
const cancelled = await run(
  Effect.scoped(
    Effect.gen(function* () {
      const fake = yield* FakeGemini.make(() => [FakeGemini.stall])
      const taken: Array<number> = []
      for (let i = 0; i < 9; i += 1) {
        const child = spawn(node, [bundle, "compress", example, "--force", "--summarizer", "model"], {
          env: { ...process.env, GEMINI_API_KEY: "none", GOOGLE_GEMINI_BASE_URL: fake.url },
          stdio: "ignore"
        })
        yield* fake.received(i)
        const start = performance.now()
        child.kill("SIGINT")
        yield* fake.closed(i)
        taken.push(performance.now() - start)
      }
      return median(taken)
    })
  )
)
rows.push({
  what: "from SIGINT to the model's socket closed",
  value: `${cancelled.toFixed(1)} ms`,
  bound: "50 ms",
  ok: cancelled <= 50
})

// --- planning ----------------------------------------------------------------------------------------------------------
const services = Effect.provide(Live.layer)

const conversationOf = (count: number) =>
  Effect.gen(function* () {
    const held = new HandleIndex()
    let conversation: Conversation = empty
    const sample = yield* load(file)
    const drafts = entries(sample.session.conversation)
    for (let i = 0; i < count; i += 1) {
      const draft = drafts[i % drafts.length]
      if (draft !== undefined) conversation = append(conversation, { ...draft, id: entryId(i + 1) })
    }
    return { conversation, held }
  }).pipe(services, Effect.provide(NodeServices.layer))

const planning = (conversation: Conversation) =>
  runSync(plan(conversation, defaultPolicy, { forced: true, memory: freshMemory, rung: 0 }))
const sizes = [10_000, 100_000]
/** The first plan of a conversation, and a plan after each of some further turns. */
const planned: Array<{ readonly first: number; readonly next: number }> = []
await run(conversationOf(1_000)).then(({ conversation }) => times(20, () => planning(conversation)))
for (const size of sizes) {
  const { conversation } = await run(conversationOf(size))
  const first = times(1, () => planning(conversation))
  let grown = conversation
  const next = times(15, () => {
    for (const entry of entries(conversation).slice(-2)) grown = append(grown, { ...entry, id: entryId(grown.next) })
    planning(grown)
  })
  planned.push({ first, next })
}
for (const [index, bound] of [20, 60].entries()) {
  const { first = NaN, next = NaN } = planned[index] ?? {}
  rows.push({
    what: `planning at ${sizes[index]?.toLocaleString("en")} messages, after one more turn`,
    value: `${next.toFixed(1)} ms (the first plan: ${first.toFixed(0)} ms)`,
    bound: `${bound} ms`,
    ok: next <= bound
  })
}

// --- writing a snapshot of 100,000 messages by code --------------------------------------------------------------------
const { conversation: whole } = await run(conversationOf(100_000))
const summarised = entries(whole)
const written = summarised.map(({ content }) => JSON.stringify(content))
const parsed = times(5, () => {
  for (const message of written) JSON.parse(message)
})
const composed = times(5, () => {
  const evidence = runSync(gatherEvidence(summarised))
  runSync(composeSnapshot(evidence, { budget: 4_000, kept: [] }))
})
ratio("gathering and writing a snapshot of 100,000 messages, to JSON.parse of them", composed, parsed, 8)

// --- one more message -------------------------------------------------------------------------------------------------
const oneMore = (count: number) =>
  Effect.gen(function* () {
    const { conversation, held } = yield* Effect.promise(() => run(conversationOf(count)))
    const draft = { content: { role: "user" as const, parts: [{ text: "and one more thing" }] } }
    let best = Number.POSITIVE_INFINITY
    for (let round = 0; round < 9; round += 1) {
      const start = performance.now()
      for (let i = 0; i < 1_000; i += 1) append(conversation, yield* makeEntry(draft, entryId(count + 1), held))
      best = Math.min(best, (performance.now() - start) / 1_000)
    }
    return best
  }).pipe(services, Effect.provide(NodeServices.layer))
await run(oneMore(1_000))
const short = await run(oneMore(1_000))
const long = await run(oneMore(100_000))
ratio("counting and appending one message after 100,000, to after 1,000", long, short, 1.5)

// --- estimating -------------------------------------------------------------------------------------------------------
const sample = lines.join("\n").slice(0, 8 << 20)
estimateText(sample)
const estimating = times(5, () => estimateText(sample)) / 8
rows.push({
  what: "estimating tokens",
  value: `${estimating.toFixed(1)} ms a MiB`,
  bound: "10 ms",
  ok: estimating <= 10
})

rmSync(folder, { recursive: true })
console.log(`Node ${process.version}, ${process.arch}, ${cpus().length} cores; medians`)
print(rows)
