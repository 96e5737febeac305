import { NodeServices } from "@effect/platform-node"
import { Effect, Layer, Stream, Schema, type Scope } from "effect"
import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { performance } from "node:perf_hooks"
import { call, model, response, text } from "../src/domain/content/Content.ts"
import { emptySession } from "../src/domain/session/Session.ts"
import * as Offline from "../src/layers/assembly/Offline.ts"
import * as ProcessEnvironment from "../src/layers/platform/ProcessEnvironment.ts"
import * as ScriptedModel from "../src/layers/testing/ScriptedModel.ts"
import * as FileWorkspace from "../src/layers/workspace/FileWorkspace.ts"
import * as Agent from "../src/services/agent/Agent.ts"
import * as LoopDetector from "../src/services/agent/LoopDetector.ts"
import { Chat } from "../src/services/chat/Chat.ts"
import { Approval } from "../src/services/tools/Approval.ts"
import { readFile } from "../src/services/tools/builtin/ReadFile.ts"
import { searchFiles } from "../src/services/tools/builtin/SearchFiles.ts"
import { type CallContext, make, type Tool } from "../src/services/tools/Tool.ts"
import { median, print, ratio, type Row } from "./table.ts"

/**
 * `npm run bench:agent`: the overhead of an agent's loop besides its turns and tools, and the cost of reading and searching
 * compared with `cat` and ripgrep as child processes. Everything is measured in one run.
 */

const calls = 1_000
const rows: Array<Row> = []
const folder = mkdtempSync(join(tmpdir(), "palimpsest-bench-agent-"))

// 1. A thousand calls of a tool that does nothing, one per turn: through the agent, and by hand with the same chat.
const output = "a line of what a tool printed\n".repeat(20)
const tool = make({
  name: "look",
  description: "Looks.",
  parameters: Schema.Struct({ at: Schema.Natural }),
  result: Schema.String,
  kind: "read",
  run: () => Effect.succeed({ value: output })
})
const answers = (_: unknown, index: number) =>
  index < calls
    ? {
        content: model(text(`Now for number ${index}.`), call("look", { at: index }, `c${index}`)),
        finishReason: "STOP",
        usage: null
      }
    : "done"
const services = () =>
  Layer.merge(Offline.layerWithModel(ScriptedModel.layer(answers)), Approval.layer({ mode: "none", granted: [] }))
const begun = Chat.make({
  log: { append: () => Effect.void },
  session: emptySession,
  settings: { model: "gemini-2.5-pro", policy: { summarizer: "extractive" } }
})
const now = Effect.sync(() => performance.now())

const byAgent = Effect.gen(function* () {
  const chat = yield* begun
  const loops = yield* LoopDetector.make({ checkAfter: Infinity })
  const ends: Array<number> = [yield* now]
  yield* Agent.run({ name: "main", chat, tools: [tool], loops }, "Look at all of them.").pipe(
    Stream.runForEach(({ _tag }) =>
      _tag === "ToolCallResponse" ? Effect.map(now, (at) => void ends.push(at)) : Effect.void
    )
  )
  return ends.slice(1).map((end, index) => end - (ends[index] ?? end))
})

const byHand = Effect.gen(function* () {
  const chat = yield* begun
  yield* chat.configure({ tools: [{ functionDeclarations: [{ name: "look" }] }] })
  const ends: Array<number> = [yield* now]
  yield* Stream.runDrain(chat.send("Look at all of them."))
  for (let index = 0; index < calls; index += 1) {
    yield* chat.append([{ content: { role: "user", parts: [response("look", { output }, `c${index}`)] } }])
    yield* Stream.runDrain(chat.send([]))
    ends.push(yield* now)
  }
  return ends.slice(1).map((end, index) => end - (ends[index] ?? end))
})

const timed = (
  work: Effect.Effect<ReadonlyArray<number>, unknown, Layer.Success<ReturnType<typeof services>> | Scope.Scope>
) => Effect.runPromise(Effect.scoped(Effect.provide(work, services())))

const mean = (values: ReadonlyArray<number>): number => values.reduce((a, b) => a + b, 0) / values.length
await timed(byAgent)
await timed(byHand)
const agentRuns: Array<ReadonlyArray<number>> = []
const handRuns: Array<ReadonlyArray<number>> = []
for (let run = 0; run < 3; run += 1) {
  agentRuns.push(await timed(byAgent))
  handRuns.push(await timed(byHand))
}
const perCall = median(agentRuns.map(mean)) - median(handRuns.map(mean))
rows.push({
  what: `the loop, a call more than by hand (${calls.toLocaleString("en")} calls)`,
  value: `${perCall.toFixed(3)} ms (${median(agentRuns.map(mean)).toFixed(3)} to ${median(handRuns.map(mean)).toFixed(3)} ms)`,
  bound: "2 ms",
  ok: perCall <= 2
})
const added = (from: number, to: number) =>
  Math.max(
    0.001,
    median(agentRuns.map((run) => mean(run.slice(from, to)))) - median(handRuns.map((run) => mean(run.slice(from, to))))
  )
rows.push({
  what: "the same over the last 200 calls, to the 200 after the first hundred",
  value: `${added(800, 1_000).toFixed(3)} to ${added(100, 300).toFixed(3)} ms`,
  bound: "0.5 ms more",
  ok: added(800, 1_000) - added(100, 300) <= 0.5
})

// 2. Reading and searching, compared with child processes that do the same.
const files = 2_000
for (let n = 0; n < files; n += 1) {
  const place = join(folder, `part${n % 20}`)
  mkdirSync(place, { recursive: true })
  const lines = Array.from(
    { length: 120 },
    (_, line) => `export const value${line} = compute(${n}, ${line}) // step ${line * 7}`
  )
  if (n % 40 === 0) lines[60] = "const needle = findTheNeedle()"
  writeFileSync(join(place, `file${n}.ts`), lines.join("\n"))
}
const large = join(folder, "large.log")
writeFileSync(
  large,
  Array.from({ length: 1_900 }, (_, line) => `${line}: something happened here, and was written down`).join("\n")
)

const context: CallContext = {
  id: "1",
  agent: "bench",
  progress: () => Effect.void,
  activity: () => Effect.void,
  waiting: (work) => work
}
const platform = FileWorkspace.layer({ root: folder }).pipe(
  Layer.provideMerge(ProcessEnvironment.layer),
  Layer.provideMerge(NodeServices.layer)
)
const measure = async (
  what: string,
  tools: Effect.Effect<Tool, never, Layer.Success<typeof platform>>,
  args: unknown,
  command: readonly [string, ReadonlyArray<string>],
  check: (found: string) => boolean
) => {
  const [program, given] = command
  const ours: Array<number> = []
  const theirs: Array<number> = []
  await Effect.runPromise(
    Effect.gen(function* () {
      const made = yield* tools
      for (let run = 0; run < 15; run += 1) {
        const begin = performance.now()
        const { value } = yield* Effect.flatMap(made.call(args, context), (one) => one.run)
        ours.push(performance.now() - begin)
        if (!check(String(value))) return yield* Effect.die(new Error(`${what}: ${String(value).slice(0, 300)}`))
        const start = performance.now()
        const printed = execFileSync(program, [...given], { encoding: "utf8", maxBuffer: 1e9 })
        theirs.push(performance.now() - start)
        if (printed === "") return yield* Effect.die(new Error(`${program} printed nothing`))
      }
    }).pipe(Effect.provide(platform), Effect.scoped)
  )
  rows.push(ratio(what, median(ours), median(theirs), 1.5))
}
await measure("reading a file of 1,900 lines, to cat", readFile, { file_path: large }, ["cat", [large]], (found) =>
  found.includes("1899: something")
)
try {
  execFileSync("rg", ["--version"])
  await measure(
    `searching ${files.toLocaleString("en")} files, to ripgrep`,
    searchFiles,
    { pattern: "findTheNeedle" },
    ["rg", ["--json", "-i", "findTheNeedle", folder]],
    (found) => found.includes("Found 50 match")
  )
} catch {
  console.log("ripgrep is not installed; searching was not held against it")
}
rmSync(folder, { recursive: true })

print(rows)
