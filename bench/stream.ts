import { execFileSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import http from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { print } from "./table.ts"

/**
 * `npm run bench:stream`: 10,000 lines of Markdown that stream into the chat of the built program on a terminal of 120 by 40, some
 * 200 lines a second: the processor time and the memory of the program. Needs tmux and Linux.
 */

const lines = 10_000
const piece = 200
const pauseMillis = 25
const ticksPerSecond = 100

const lineOf = (at: number): string => {
  const of = at % 40
  if (of === 0) return `\n## Part ${at}\n\n`
  if (of < 10) return `- item **${at}** with \`code\` and words\n`
  if (of === 10) return "\n```ts\n"
  if (of < 20) return `const x${at} = ${at} + "text" // comment\n`
  return of === 20 ? "```\n\n" : `Line ${at} of a long answer, with words in it.\n`
}
const answer = `${Array.from({ length: lines }, (_, at) => lineOf(at)).join("")}\n\nthe end\n`

const response = (text: string, finishReason?: string) => ({
  candidates: [{ content: { role: "model", parts: [{ text }] }, index: 0, ...(finishReason ? { finishReason } : {}) }]
})
/** Characters sent so far. */
let sent = 0
const server = http.createServer((incoming, outgoing) => {
  incoming.resume()
  incoming.on("end", async () => {
    if (!(incoming.url ?? "").includes("streamGenerateContent")) {
      outgoing.setHeader("content-type", "application/json")
      outgoing.end(JSON.stringify({ ...response("Lines", "STOP"), totalTokens: 1, inputTokenLimit: 1_000_000 }))
      return
    }
    outgoing.writeHead(200, { "content-type": "text/event-stream" })
    for (sent = 0; sent < answer.length; sent += piece) {
      outgoing.write(`data: ${JSON.stringify(response(answer.slice(sent, sent + piece)))}\r\n\r\n`)
      await sleep(pauseMillis)
    }
    outgoing.end(`data: ${JSON.stringify(response("", "STOP"))}\r\n\r\n`)
  })
})
await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
const address = server.address()
const url = typeof address === "object" ? `http://127.0.0.1:${address?.port}` : ""

const folder = mkdtempSync(join(tmpdir(), "palimpsest-bench-stream-"))
const tmux = (...args: ReadonlyArray<string>) =>
  execFileSync("tmux", ["-L", `stream${process.pid}`, "-f", "/dev/null", "-u", ...args], { encoding: "utf8" })
const until = async (expected: string) => {
  while (!tmux("capture-pane", "-p").includes(expected)) await sleep(100)
}
tmux(
  ..."new-session -d -x 120 -y 40".split(" "),
  "-c",
  folder,
  "-e",
  `PALIMPSEST_HOME=${folder}`,
  "-e",
  "GEMINI_API_KEY=none",
  "-e",
  `GOOGLE_GEMINI_BASE_URL=${url}`,
  `exec '${process.execPath}' '${join(import.meta.dirname, "..", "dist", "palimpsest.mjs")}' chat`
)
try {
  await until("new session")
  const pid = tmux("display-message", "-p", "#{pane_pid}").trim()
  const cpuSeconds = () => {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? []
    return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond
  }
  const megabytes = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1_024
  const [before, start] = [cpuSeconds(), performance.now()]
  tmux("send-keys", "go", "Enter")
  const quarter: Array<number> = []
  const last: Array<number> = []
  while (sent < answer.length) {
    if (sent > 0 && sent < answer.length / 4) quarter.push(megabytes())
    if (sent > (answer.length * 3) / 4) last.push(megabytes())
    await sleep(200)
  }
  await until("the end")
  const seconds = (performance.now() - start) / 1_000
  const cpu = cpuSeconds() - before
  const growth = Math.max(...last) - Math.max(...quarter)
  print([
    {
      what: "10,000 lines of streamed Markdown: share of a core",
      value: `${((100 * cpu) / seconds).toFixed(0)} % (${cpu.toFixed(1)} s of ${seconds.toFixed(0)} s)`,
      bound: "50 %",
      ok: cpu / seconds <= 0.5
    },
    {
      what: "memory in the last quarter, beyond the first",
      value: `${growth.toFixed(0)} MB (${Math.max(...last).toFixed(0)} to ${Math.max(...quarter).toFixed(0)} MB)`,
      bound: "30 MB",
      ok: growth <= 30
    }
  ])
} finally {
  tmux("kill-server")
  server.closeAllConnections()
  server.close()
  rmSync(folder, { recursive: true, force: true })
}
