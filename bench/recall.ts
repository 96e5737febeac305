import { spawn, spawnSync } from "node:child_process"
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { cpus, tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { claudeLines } from "./corpus.ts"
import { median, print, ratio } from "./table.ts"

/**
 * `npm run bench:recall`: how long `palimpsest mcp` takes to answer over standard input and output, on a session of 3 MB that grows by
 * a record before each question, among 1,000 of other folders: the first question, which reads the session, then recalls and
 * searches. Before that, from the start of `mcp` to its answer to `initialize`, to `node -e 0`, in turn.
 */

const rounds = 50
/** Sessions of other folders on the machine. */
const others = 1_000
const folder = mkdtempSync(join(tmpdir(), "palimpsest-recall-"))
const projects = join(folder, ".claude", "projects", "-home-someone-project")
mkdirSync(projects, { recursive: true })
const small = claudeLines(20, 20_000).join("\n").replaceAll("/home/someone/project", "/home/someone/another")
for (let number = 0; number < others; number += 1) writeFileSync(join(projects, `other-${number}.jsonl`), `${small}\n`)
const file = join(projects, "00000000-0000-4000-8000-ffffffffffff.jsonl")
writeFileSync(file, `${claudeLines(1_500, 3_000_000).join("\n")}\n`)

const program = join(import.meta.dirname, "..", "dist", "palimpsest.mjs")
const startServer = () =>
  spawn(process.execPath, [program, "mcp", "--folder", "/home/someone/project"], {
    stdio: ["pipe", "pipe", "inherit"],
    env: { PATH: process.env["PATH"] ?? "", HOME: folder, USERPROFILE: folder, PALIMPSEST_HOME: join(folder, "home") }
  })
const initialize = {
  protocolVersion: "2025-06-18",
  capabilities: {},
  clientInfo: { name: "bench", version: "1" }
}

/** Milliseconds from the start of a server to its answer to `initialize`. */
const startMillis = () =>
  new Promise<number>((resolve) => {
    const from = performance.now()
    const server = startServer()
    server.stdout.once("data", () => {
      const millis = performance.now() - from
      server.on("exit", () => resolve(millis)).stdin.end()
    })
    server.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: 0, method: "initialize", params: initialize })}\n`)
  })
const nodeMillis = () => {
  const from = performance.now()
  spawnSync(process.execPath, ["-e", "0"], { stdio: "ignore" })
  return performance.now() - from
}
const starts: Array<number> = []
const nodes: Array<number> = []
// The first run writes the compiled code.
await startMillis()
for (let round = 0; round < 15; round += 1) {
  nodes.push(nodeMillis())
  starts.push(await startMillis())
}

const child = startServer()
const waiting = new Map<number, (text: string) => void>()
createInterface({ input: child.stdout }).on("line", (line) => {
  const { id }: { readonly id?: number } = JSON.parse(line)
  if (id !== undefined) waiting.get(id)?.(line)
})
let next = 0
const ask = async (method: string, params: unknown) => {
  const from = performance.now()
  next += 1
  const id = next
  const answer = new Promise<string>((resolve) => waiting.set(id, resolve))
  child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`)
  return { text: await answer, ms: performance.now() - from }
}
const call = (name: string, args: unknown) => ask("tools/call", { name, arguments: args })

try {
  await ask("initialize", initialize)
  child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" })}\n`)
  const first = await call("search_history", { pattern: "npm test", tokens: 2_000 })
  const handles = [...new Set(first.text.match(/h_[a-z2-7]{10}/g))]
  const grow = () => appendFileSync(file, '{"type":"user","message":{"role":"user","content":"one more"}}\n')
  const recalls: Array<number> = []
  const searches: Array<number> = []
  for (let round = 0; round < rounds; round += 1) {
    grow()
    const answer = await call("recall", { handle: handles[round % handles.length] })
    if (!answer.text.includes("npm test")) throw new Error(answer.text.slice(0, 300))
    recalls.push(answer.ms)
  }
  for (let round = 0; round < 10; round += 1) {
    grow()
    searches.push((await call("search_history", { pattern: `cache\\d+` })).ms)
  }
  const row = (what: string, ms: number) => ({ what, value: `${ms.toFixed(1)} ms`, bound: undefined, ok: true })
  const ms = median(recalls)
  console.log(
    `Node ${process.version}, ${process.arch}, ${cpus().length} cores; a session of 3 MB that grows, ${others} others`
  )
  print([
    ratio("from the start of mcp to its answer to initialize, to node -e 0", median(starts), median(nodes), 3),
    row("the first question: reading the session, a search", first.ms),
    { what: `a recall, median of ${rounds}`, value: `${ms.toFixed(1)} ms`, bound: "20 ms", ok: ms <= 20 },
    row("the slowest of them", Math.max(...recalls)),
    row("a search of all of it, read again", median(searches))
  ])
} finally {
  child.kill()
  rmSync(folder, { recursive: true, force: true })
}
