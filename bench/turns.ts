import { spawn } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs"
import http from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type Peer, peers } from "./peers.ts"
import { median, print, ratio, type Row } from "./table.ts"

/**
 * `npm run bench:turns -- [TURNS] [BYTES…]`: what an agent does all day. The built program reads a thousand files, one a turn, against a
 * server that answers at once; beside it a bare loop, which sends the same requests with `node:http` and appends what came to a file.
 * The two alternate, each in a process of its own. Prints ratios, the milliseconds between an answer and the next request, and memory;
 * and what Pi takes for the same turns, where it is installed.
 */

const bundle = join(import.meta.dirname, "..", "dist", "palimpsest.mjs")
const node = process.execPath
const model = "gemini-2.5-flash"

/** A file name for a turn. No two results are alike, so that no run is taken for a loop. */
const fileOf = (turn: number): string => `file${turn}.txt`

const contentOf = (turn: number, bytes: number): string => {
  const line = (at: number) => `value${at} of file ${turn} is computed in step ${(turn * 7 + at * 13) % 997}\n`
  let text = ""
  for (let at = 0; text.length < bytes; at += 1) text += line(at)
  return text.slice(0, bytes)
}

/** The baseline: a bare loop that gets the same answers and does only what every agent must do. */
const bareLoop = `
import { appendFileSync, readFileSync } from "node:fs"
import http from "node:http"
const [, , url, log] = process.argv
const agent = new http.Agent({ keepAlive: true })
const contents = [{ role: "user", parts: [{ text: "Read all files." }] }]
const post = (body) => new Promise((resolve, reject) => {
  const request = http.request(url + "/v1beta/models/${model}:streamGenerateContent?alt=sse", {
    agent, method: "POST", headers: { "content-type": "application/json", "content-length": Buffer.byteLength(body) }
  }, (response) => {
    let text = ""
    response.setEncoding("utf8").on("data", (piece) => { text += piece }).on("end", () => resolve(text))
  })
  request.on("error", reject)
  request.end(body)
})
for (;;) {
  const text = await post(JSON.stringify({ contents }))
  const answer = JSON.parse(text.slice(text.indexOf("{")))
  const content = answer.candidates[0].content
  contents.push(content)
  appendFileSync(log, JSON.stringify(content) + "\\n")
  const call = content.parts.find((part) => part.functionCall !== undefined)?.functionCall
  if (call === undefined) break
  const output = readFileSync(call.args.file_path, "utf8")
  const result = { role: "user", parts: [{ functionResponse: { id: call.id, name: call.name, response: { output } } }] }
  contents.push(result)
  appendFileSync(log, JSON.stringify(result) + "\\n")
}
agent.destroy()
`

/** The figures of one run of a client. */
interface Run {
  readonly wall: number
  /** User and system time of the client's process. */
  readonly cpu: number
  readonly peak: number
  /** Milliseconds between each answer and the next request. */
  readonly gaps: ReadonlyArray<number>
}

/** A server that calls a tool for reading files in each of so many turns, and ends in the next. */
const listen = (turns: number, folder: string, [tool, pathName]: Peer["reads"]) =>
  new Promise<{ readonly url: string; readonly gaps: Array<number>; readonly close: () => void }>((resolve) => {
    const gaps: Array<number> = []
    let turn = 0
    let answered = 0
    const server = http.createServer((incoming, outgoing) => {
      if (incoming.method !== "POST") return void outgoing.writeHead(404).end("{}")
      const isTurn = incoming.url?.includes("streamGenerateContent") === true
      if (isTurn && answered > 0) gaps.push(performance.now() - answered)
      let size = 0
      incoming.on("data", (piece: Buffer) => {
        size += piece.length
      })
      incoming.on("end", () => {
        if (!isTurn) {
          outgoing.writeHead(200, { "content-type": "application/json" })
          return void outgoing.end(JSON.stringify({ totalTokens: 1_000 }))
        }
        const at = turn
        turn += 1
        const args = { [pathName]: join(folder, fileOf(at)) }
        const parts =
          at < turns
            ? [{ text: `Now file ${at}.` }, { functionCall: { id: `c${at}`, name: tool, args } }]
            : [{ text: "All files are read." }]
        const candidate = { content: { role: "model", parts }, index: 0, finishReason: "STOP" }
        outgoing.writeHead(200, { "content-type": "text/event-stream" })
        const usageMetadata = { promptTokenCount: Math.ceil(size / 4), candidatesTokenCount: 20 }
        outgoing.end(`data: ${JSON.stringify({ candidates: [candidate], usageMetadata })}\r\n\r\n`, () => {
          answered = performance.now()
        })
      })
    })
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      resolve({
        url: typeof address === "object" ? `http://127.0.0.1:${address?.port}` : "",
        gaps,
        close: () => {
          server.closeAllConnections()
          server.close()
        }
      })
    })
  })

const preload = `process.on("exit", () => {
  const { maxRSS, systemCPUTime, userCPUTime } = process.resourceUsage()
  process.stderr.write("\\nused " + maxRSS + " " + (systemCPUTime + userCPUTime) + "\\n")
})`

const place = mkdtempSync(join(tmpdir(), "palimpsest-bench-turns-"))
const preloadFile = join(place, "used.mjs")
const bareFile = join(place, "bare.mjs")
writeFileSync(preloadFile, preload)
writeFileSync(bareFile, bareLoop)
let runs = 0

const measure = async (client: "bare" | "ours" | Peer, turns: number, folder: string): Promise<Run> => {
  const isOurs = client === "ours"
  const peer = typeof client === "string" ? undefined : client
  const { close, gaps, url } = await listen(turns, folder, peer?.reads ?? ["read_file", "file_path"])
  runs += 1
  const home = join(place, `home${runs}`)
  mkdirSync(home)
  const settings = join(home, "settings.json")
  writeFileSync(settings, JSON.stringify({ maxTurns: turns + 1 }))
  // The settings file of a real user is older than the run.
  utimesSync(settings, 1_700_000_000, 1_700_000_000)
  const asked = peer?.asks("Read all files.", url, home)
  const args = isOurs
    ? [bundle, "ask", "--session", "bench", "Read all files."]
    : [peer?.script ?? bareFile, ...(asked?.args ?? [url, join(home, "log.jsonl")])]
  const flags = process.env["BENCH_NODE_FLAGS"]?.split(" ") ?? []
  const start = performance.now()
  const child = spawn(node, [...(isOurs ? flags : []), "--import", preloadFile, ...args], {
    cwd: folder,
    env: { ...process.env, GEMINI_API_KEY: "none", GOOGLE_GEMINI_BASE_URL: url, PALIMPSEST_HOME: home, ...asked?.env },
    stdio: ["ignore", "ignore", "pipe"]
  })
  let said = ""
  child.stderr.on("data", (piece: Buffer) => {
    said += piece.toString()
  })
  const status = await new Promise<number | null>((resolve) => child.on("exit", resolve))
  const wall = performance.now() - start
  close()
  const used = /used (\d+) (\d+)/.exec(said)
  if (status !== 0 || gaps.length !== turns || used === null) {
    throw new Error(
      `${isOurs ? "palimpsest" : (peer?.name ?? "the bare loop")} ended with ${status} after ${gaps.length} turns: ${said.slice(-500)}`
    )
  }
  return { wall, cpu: Number(used[2]) / 1_000, peak: Number(used[1]) / 1_024, gaps }
}

const rows: Array<Row> = []
const first = ({ gaps }: Run): number => median(gaps.slice(0, 20))
const last = ({ gaps }: Run): number => median(gaps.slice(-20))

const [turns = 1_000, ...sizes] = process.argv.slice(2).map(Number)
for (const bytes of sizes.length === 0 ? [200, 8_000] : sizes) {
  const folder = join(place, `files${bytes}`)
  mkdirSync(folder)
  for (let turn = 0; turn < turns; turn += 1) writeFileSync(join(folder, fileOf(turn)), contentOf(turn, bytes))
  const bare: Array<Run> = []
  const ours: Array<Run> = []
  for (let round = 0; round < 3; round += 1) {
    bare.push(await measure("bare", turns, folder))
    ours.push(await measure("ours", turns, folder))
  }
  const of = (all: ReadonlyArray<Run>, figure: (run: Run) => number): number => median(all.map(figure))
  const what = `${turns.toLocaleString("en")} tool turns with results of ${bytes.toLocaleString("en")} bytes`
  const bound = bytes < 1_000 ? 5 : 1.3
  rows.push(
    ratio(
      `${what}, to a bare loop`,
      of(ours, ({ wall }) => wall),
      of(bare, ({ wall }) => wall),
      bound
    )
  )
  rows.push(
    ratio(
      "the same, processor time",
      of(ours, ({ cpu }) => cpu),
      of(bare, ({ cpu }) => cpu)
    )
  )
  const [begin, end, bareEnd] = [of(ours, first), of(ours, last), of(bare, last)]
  rows.push({
    what: "between an answer and the next request, first 20 turns",
    value: `${begin.toFixed(1)} ms (bare ${of(bare, first).toFixed(1)} ms)`,
    bound: "4 ms",
    ok: begin <= 4
  })
  rows.push({
    what: "the same, last 20 turns",
    value: `${end.toFixed(1)} ms (bare ${bareEnd.toFixed(1)} ms)`,
    bound: "6 ms more than bare",
    ok: end - bareEnd <= 6
  })
  const peak = of(ours, (run) => run.peak)
  rows.push({
    what: "peak memory of it",
    value: `${peak.toFixed(0)} MB (bare ${of(bare, (run) => run.peak).toFixed(0)} MB)`,
    bound: "160 MB",
    ok: peak <= 160
  })
  // Gemini CLI also asks its model whether it loops, and who speaks next.
  for (const peer of peers.filter(({ name }) => name.startsWith("Pi "))) {
    const its = await measure(peer, turns, folder)
    const bareWall = of(bare, ({ wall }) => wall)
    const gaps = `${first(its).toFixed(1)} and ${last(its).toFixed(1)} ms between an answer and the next request`
    const row = ratio(`${peer.name}, ${what}`, its.wall, bareWall)
    rows.push({ ...row, value: `${row.value}, ${gaps}, ${its.peak.toFixed(0)} MB` })
  }
}
rmSync(place, { recursive: true })
print(rows)
