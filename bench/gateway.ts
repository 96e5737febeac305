import { type ChildProcess, spawn } from "node:child_process"
import { mkdtempSync, readFileSync } from "node:fs"
import http from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import path from "node:path"
import { estimateText } from "../src/domain/tokens/Tokens.ts"
import { codecs } from "../test/support/GatewayDialects.ts"
import { median, print, type Row } from "./table.ts"

/**
 * `npm run bench:gateway`: what the built gateway adds to the first byte of a stream, the memory of 200 streams at once, and the
 * pause of the request that compresses 200,000 tokens. A provider on loopback answers at once; each request is sent to it directly
 * and through the gateway in turn.
 */

const bundle = path.join(import.meta.dirname, "..", "dist", "palimpsest.mjs")
const codec = codecs.anthropic
const rows: Array<Row> = []

/** As many tokens as the gateway estimates, which learns from what a provider counts. */
const sample = "the parser reads a line and keeps what the caller asked for, ".repeat(100)
const tokensPerByte = estimateText(sample) / sample.length

/** A provider whose streams begin at once, and end when `release` is called where they are held. */
let held: Array<() => void> | undefined
const provider = http.createServer((request, response) => {
  let size = 0
  request.on("data", (piece: Buffer) => {
    size += piece.length
  })
  request.on("end", () => {
    const [first = "", ...rest] = codec.events({
      blocks: [{ kind: "text", text: "An answer. ".repeat(20) }],
      counts: { input: Math.round(size * tokensPerByte), output: 60 }
    })
    response.writeHead(200, { "content-type": "text/event-stream" })
    response.write(first)
    const end = () => response.end(rest.join(""))
    if (held === undefined) end()
    else held.push(end)
  })
})
await new Promise<void>((resolve) => void provider.listen(0, "127.0.0.1", resolve))
const direct = `http://127.0.0.1:${(provider.address() as AddressInfo).port}`

/** Starts the gateway as a user does, and returns its address when it listens. */
const start = (args: ReadonlyArray<string>) =>
  new Promise<{ readonly child: ChildProcess; readonly url: string; readonly token: string }>((resolve, reject) => {
    const child = spawn(
      process.execPath,
      [bundle, "gateway", "--json", "--port", "0", "--upstream", `anthropic=${direct}`, ...args],
      {
        env: { ...process.env, PALIMPSEST_HOME: mkdtempSync(path.join(tmpdir(), "bench-gateway-")) },
        stdio: ["ignore", "pipe", "pipe"]
      }
    )
    let said = ""
    child.stdout.setEncoding("utf8").once("data", (line: string) => resolve({ child, ...JSON.parse(line) }))
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      said += text
    })
    child.on("exit", () => reject(new Error(`the gateway ended: ${said}`)))
  })

const agent = new http.Agent({ keepAlive: true, maxSockets: 500 })

/** Sends a request. `first` ends with the milliseconds to the first byte of the answer, `whole` with the end of it. */
const ask = (url: string, body: string) => {
  const begun = performance.now()
  let tellFirst: (millis: number) => void = () => {}
  const first = new Promise<number>((resolve) => {
    tellFirst = resolve
  })
  const whole = new Promise<void>((resolve, reject) => {
    const request = http.request(
      `${url}${codec.path(true)}`,
      { method: "POST", agent, headers: { "content-type": "application/json", "x-api-key": "bench" } },
      (response) => {
        response.once("data", () => tellFirst(performance.now() - begun))
        response.on("end", resolve).resume()
      }
    )
    request.on("error", reject)
    request.end(body)
  })
  return { first, whole }
}

/** A conversation of about this many characters. */
const conversation = (chars: number, turn = 0): string => {
  const messages = []
  for (let size = 0, at = 0; size < chars; at += 1) {
    const text = `Step ${at}: ${"the parser reads a line and keeps what the caller asked for, ".repeat(25)}`
    messages.push(...codec.user(text), ...codec.assistant([{ kind: "text", text: `Step ${at} is done.` }]))
    size += text.length
  }
  return JSON.stringify(codec.body([...messages, ...codec.user(`Go on with turn ${turn}.`)], true))
}

const at = (values: ReadonlyArray<number>, share: number): number =>
  values.toSorted((one, other) => one - other)[Math.floor(values.length * share)] ?? 0

const { child, url } = await start([])
const plain: Array<number> = []
const through: Array<number> = []
for (let turn = 0; turn < 330; turn += 1) {
  const body = conversation(100_000, turn)
  for (const [to, times] of [[direct, plain] as const, [url, through] as const]) {
    const { first, whole } = ask(to, body)
    const millis = await first
    await whole
    if (turn >= 30) times.push(millis)
  }
}
const added = (share: number, bound: number) => {
  const more = at(through, share) - at(plain, share)
  rows.push({
    what: `more to the first byte of a stream below the threshold, bodies of 100 kB, p${share * 100}`,
    value: `${more.toFixed(2)} ms (${at(plain, share).toFixed(2)} ms directly)`,
    bound: `${bound} ms`,
    ok: more <= bound
  })
}
added(0.5, 3)
added(0.99, 10)

held = []
const streams = Array.from({ length: 200 }, (_, turn) => ask(url, conversation(100_000, turn)))
await Promise.all(streams.map(({ first }) => first))
const memory = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))?.[1]) / 1024
const peak = Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))?.[1]) / 1024
for (const release of held) release()
held = undefined
await Promise.all(streams.map(({ whole }) => whole))
rows.push({
  what: "memory with 200 streams at once",
  value: `${memory.toFixed(0)} MB (peak ${peak.toFixed(0)} MB)`,
  bound: "300 MB",
  ok: peak <= 300
})
child.kill()

// Each conversation is another one. It grows over the threshold from near it, as conversations do, or at once from far below it.
const small = await start(["--window", "250k", "--threshold", "0.7"])
let compressed = 0
const compressions = async () => {
  const metrics = await (
    await fetch(`${small.url}/metrics`, { headers: { authorization: `Bearer ${small.token}` } })
  ).text()
  return Number(/^\S*compressions\S* (\d+)/m.exec(metrics)?.[1] ?? 0)
}
const pause = async (name: string, firstChars: number) => {
  const grown = (chars: number) => conversation(chars, compressed).replaceAll("Step ", `Step ${name} ${compressed}/`)
  const before = ask(small.url, grown(firstChars))
  await before.whole
  if ((await compressions()) !== compressed) throw new Error("the first request was compressed")
  // While the client works, the next compression is prepared.
  await new Promise((resolve) => setTimeout(resolve, 1_500))
  const body = grown(900_000)
  const alone = ask(direct, body)
  const directly = await alone.first
  await alone.whole
  const { first, whole } = ask(small.url, body)
  const millis = await first
  await whole
  compressed += 1
  if ((await compressions()) !== compressed) throw new Error("the second request was not compressed")
  return millis - directly
}
for (const { bound, chars, what } of [
  { what: "that was prepared from 0.8 of the threshold on", chars: 700_000, bound: 100 },
  { what: "that nothing prepared: 100,000 tokens more in one request", chars: 450_000, bound: 200 }
]) {
  const pauses: Array<number> = []
  for (let turn = 0; turn < 12; turn += 1) {
    const millis = await pause(what, chars)
    if (turn >= 3) pauses.push(millis)
  }
  rows.push({
    what: `pause of the request that compresses 200,000 tokens by code, ${what}`,
    value: `${median(pauses).toFixed(0)} ms (${at(pauses, 0).toFixed(0)} to ${at(pauses, 0.99).toFixed(0)} ms)`,
    bound: `${bound} ms`,
    ok: median(pauses) <= bound
  })
}
small.child.kill()
print(rows)
provider.close()
provider.closeAllConnections()
process.exit()
