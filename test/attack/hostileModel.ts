import { type ChildProcess, spawn } from "node:child_process"
import { createHash, randomBytes } from "node:crypto"
import { readdirSync, readFileSync, rmSync } from "node:fs"
import http from "node:http"
import type { Socket } from "node:net"
import path from "node:path"
import process from "node:process"
import { gzipSync } from "node:zlib"
import { newFolder } from "../support/paths.ts"

/**
 * Attacks on the built program by a model server: a server on the loopback interface floods, stalls or lies; one program asks it,
 * continues its session afterwards, and is measured.
 *
 * One file: a list of attacks and the program that runs and measures them.
 */

/** Answers one request. `raw` is the underlying connection. */
type Hostile = (response: http.ServerResponse, request: http.IncomingMessage) => void

export interface Attack {
  readonly name: string
  /** Answers streaming requests, or the requests that `of` names. */
  readonly answer: Hostile
  /** The requests that it answers; absent: `stream`. */
  readonly of?: "count" | "describe"
  /** What stderr must contain. */
  readonly says: RegExp
  /** Seconds after which the program is interrupted, as a user does when a server stalls. */
  readonly interrupt?: number
  /** Whether the answer is accepted: it is odd but harmless. */
  readonly isTaken?: boolean
}

/** The result of one attack. */
export interface Attacked {
  readonly name: string
  /** Seconds of the hostile turn, from start to exit. */
  readonly seconds: number
  /** The program's peak memory in MB; 0 where the system does not report it. */
  readonly peak: number
  /** Bytes that the server sent. */
  readonly sent: number
  readonly stderr: string
  /** What went wrong; empty: the attack failed. */
  readonly hits: ReadonlyArray<string>
}

// Answers of hostile servers

const event = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`
const piece = (parts: ReadonlyArray<unknown>, finishReason?: string) => ({
  candidates: [{ content: { role: "model", parts }, ...(finishReason === undefined ? {} : { finishReason }) }]
})

const inPieces = (response: http.ServerResponse, headers: Readonly<Record<string, string>> = {}) =>
  response.writeHead(200, { "content-type": "text/event-stream", ...headers })

/** Bytes, or a function that makes new ones each time. */
type Again = string | Buffer | (() => string)

/** Writes bytes as fast as they are accepted, until the connection closes. */
const endlessly = (response: http.ServerResponse, again: Again) => {
  const pump = () => {
    while (!response.destroyed && response.write(typeof again === "function" ? again() : again));
    if (!response.destroyed) response.once("drain", pump)
  }
  pump()
}

/** Sends `text` once, then `again` forever. */
const flood =
  (begin: string, again: Again, headers?: Readonly<Record<string, string>>): Hostile =>
  (response) => {
    inPieces(response, headers)
    response.write(begin)
    endlessly(response, again)
  }

const once =
  (...values: ReadonlyArray<unknown>): Hostile =>
  (response) => {
    inPieces(response)
    for (const value of values) response.write(event(value))
    response.end()
  }

/** Words that do not repeat, so that they do not count as a loop. */
const words = () => randomBytes(12).toString("base64")
const many = (make: () => string) => () => Array.from({ length: 500 }, make).join("")

const filler = "x".repeat(64 * 1024)
const nested = (depth: number): string => `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`
const asText =
  (text: string | (() => string)): Hostile =>
  (response) => {
    inPieces(response)
    response.end(typeof text === "string" ? text : text())
  }
const call = (name: string, args: unknown, id?: string) => ({
  functionCall: { name, args, ...(id === undefined ? {} : { id }) }
})
const deepCall = (depth: number) =>
  `data: {"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"read_file","args":${nested(depth)}}}]},"finishReason":"STOP"}]}\n\n`
const repeated = <A>(count: number, make: (index: number) => A): ReadonlyArray<A> =>
  Array.from({ length: count }, (_, index) => make(index))

/** A megabyte of gzip that expands to a gigabyte of blanks; its members may repeat without end. */
const bomb = () => gzipSync(Buffer.alloc(64 * 1024 * 1024, " "))

const tooLarge = /more than 32 MiB/
const tooManyCalls = /more than 256 calls/
const tooMany = /more than 128,000 parts/
const unusable = /answer|model/
const noRoom = /window has no room/

/** One line that never ends, in writes of one byte. */
const byteByByte: Hostile = (response) => {
  inPieces(response)
  response.socket?.setNoDelay(true)
  response.write("data: ")
  const pump = () => {
    for (let n = 0; n < 2_000 && !response.destroyed; n += 1) response.write("x")
    if (!response.destroyed) {
      if (response.writableNeedDrain) response.once("drain", pump)
      else setImmediate(pump)
    }
  }
  pump()
}

const endlessHeaders: Hostile = ({ socket }) => {
  socket?.write("HTTP/1.1 200 OK\r\n")
  const pump = () => {
    let isTaken = true
    while (isTaken) isTaken = socket?.write(`x-${"y".repeat(1_000)}: z\r\n`) === true && !socket.destroyed
    socket?.once("drain", pump)
  }
  pump()
}

/** A body that is no stream, and never ends. */
const endlessBody =
  (status: number, type: string, begin: string): Hostile =>
  (response) => {
    response.writeHead(status, { "content-type": type })
    response.write(begin)
    endlessly(response, filler)
  }

/** Writes again and again, slowly. */
const slowly =
  (millis: number, write: (response: http.ServerResponse) => unknown): Hostile =>
  (response) => {
    const timer = setInterval(() => write(response), millis)
    response.on("close", () => clearInterval(timer))
  }

/** Headers that never end, a byte at a time. */
const slowHeaders = slowly(500, ({ socket }) => socket?.write("H"))
const slowLines: Hostile = (response, request) => {
  inPieces(response)
  slowly(5, () => response.write(": still there\n\n"))(response, request)
}

const endlessPieces = (part: () => unknown): Hostile =>
  flood(
    "",
    many(() => event(piece([part()])))
  )
/** An answer in one piece. */
const whole = (all: ReadonlyArray<unknown>): Hostile => once(piece(all, "STOP"))
const parts = (...all: ReadonlyArray<unknown>): Hostile => whole(all)
const manyParts = (count: number, make: (index: number) => unknown): Hostile => whole(repeated(count, make))
const fine = { text: "Fine." }
const tenMegabytes = filler.repeat(160)

/** Answers and what is said of them; nothing: they are odd but harmless, and accepted. */
const answers: ReadonlyArray<readonly [name: string, answer: Hostile, says?: RegExp]> = [
  ["one line without an end", flood('data: {"candidates":[', filler), tooLarge],
  ["one line, byte by byte", byteByByte, tooLarge],
  ["small pieces without an end", endlessPieces(() => ({ text: `${words()} ` })), tooMany],
  ["thoughts without an end", endlessPieces(() => ({ text: `${words()} `, thought: true })), tooMany],
  ["empty pieces without an end", flood("", "data: {}\n\n".repeat(2_000)), tooMany],
  ["comments without an end", flood("", ": still there\n\n".repeat(2_000)), tooLarge],
  ["line ends without an end", flood("", "\n".repeat(65_536)), tooLarge],
  ["an error's body without an end", endlessBody(400, "text/plain", filler), /HTTP 400/],
  ["an error's JSON without an end", endlessBody(400, "application/json", '{"error":{"message":"'), /HTTP 400/],
  ["gzip of blanks without an end", flood("", bomb(), { "content-encoding": "gzip" }), tooLarge],
  ["headers without an end", endlessHeaders, unusable],
  ["100,000 calls", manyParts(100_000, (n) => call("read_file", { path: `f${n}` })), tooManyCalls],
  [
    "100,000 calls in as many pieces",
    once(...repeated(100_000, (n) => piece([call("read_file", { path: `f${n}` })])), piece([], "STOP")),
    tooManyCalls
  ],
  ["100,000 calls with one id", manyParts(100_000, () => call("write_file", { path: "f" }, "same")), tooManyCalls],
  ["100,000 parts of text", manyParts(100_000, (n) => ({ text: `${n} ` }))],
  ["100,000 texts and thoughts in turn", manyParts(100_000, (n) => ({ text: `${n} `, thought: n % 2 === 0 }))],
  ["100,000 signed texts", manyParts(100_000, (n) => ({ text: `${n} `, thoughtSignature: "s" }))],
  ["1,000,000 empty parts", manyParts(1_000_000, () => ({ text: "" })), tooMany],
  ["1,000,000 parts that are nothing", manyParts(1_000_000, () => ({})), tooMany],
  ["a call's name of 10 MB", parts(call(tenMegabytes, {})), /a name or an id/],
  ["a call's id of 10 MB", parts(call("read_file", {}, tenMegabytes)), /a name or an id/],
  ["a signature of 10 MB", parts({ ...fine, thoughtSignature: tenMegabytes }), /beside its words/],
  ["an unknown part of 10 MB", parts({ dream: tenMegabytes }, fine), /beside its words/],
  ["an unknown key of 10 MB", parts({ ...fine, [tenMegabytes]: 1 }), /beside its words/],
  ["a text of 30 MB", parts({ text: words().concat(" ").repeat(1_700_000) })],
  ["an image of 20 MB", parts(fine, { inlineData: { mimeType: "image/png", data: filler.repeat(320) } }), /of images/],
  ["arguments of 3 MB", parts(call("read_file", { path: words().concat(" ").repeat(180_000) })), noRoom],
  ["arguments of 30 MB", parts(call("read_file", { path: "p".repeat(30_000_000) })), noRoom],
  ["100,000 keys of arguments", parts(call("read_file", Object.fromEntries(repeated(100_000, (n) => [`k${n}`, n]))))],
  ["arguments 100 deep", asText(deepCall(100))],
  ...[1_000, 5_000, 100_000, 2_000_000].map(
    (depth) => [`arguments ${depth.toLocaleString("en-US")} deep`, asText(deepCall(depth)), /nested deeper/] as const
  )
]

export const attacks: ReadonlyArray<Attack> = [
  ...answers.map(([name, answer, says]) => ({ name, answer, says: says ?? /^/, isTaken: says === undefined })),
  {
    name: "a count without an end",
    of: "count",
    answer: endlessBody(200, "application/json", '{"totalTokens":1,"x":"'),
    says: /^/,
    isTaken: true
  },
  {
    name: "a model's description without an end",
    of: "describe",
    answer: endlessBody(200, "application/json", '{"name":"'),
    says: /^/,
    isTaken: true
  },
  { name: "silence, then Ctrl+C", answer: () => {}, says: /^/, interrupt: 3 },
  { name: "headers byte by byte, then Ctrl+C", answer: slowHeaders, says: /^/, interrupt: 3 },
  { name: "a flood of lines, then Ctrl+C", answer: slowLines, says: /^/, interrupt: 3 }
]

/** Limits of a hostile turn: seconds (a server that sends byte by byte takes longest, and the machine may be busy), peak memory in MB, and bytes of a request with a window of 1,000,000 tokens. */
export const bounds = { seconds: 90, peak: 500, request: 6_000_000 }

// Running the program

interface Ended {
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
  readonly seconds: number
  readonly peak: number
}

/** Peak memory of a process so far in MB, where the system reports it. */
const peakOf = (child: ChildProcess): number => {
  try {
    const status = readFileSync(`/proc/${child.pid}/status`, "utf8")
    return Math.round(Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1_024)
  } catch {
    return 0
  }
}

const { GEMINI_API_KEY: _gemini, GOOGLE_API_KEY: _google, ...withoutKeys } = process.env

const run = (
  bundle: string,
  args: ReadonlyArray<string>,
  home: string,
  url: string,
  interrupt?: number
): Promise<Ended> =>
  new Promise((resolve) => {
    const begun = performance.now()
    const child = spawn(process.execPath, [bundle, ...args], {
      cwd: home,
      env: {
        ...withoutKeys,
        PALIMPSEST_HOME: path.join(home, "home"),
        GEMINI_CLI_HOME: path.join(home, "user"),
        GEMINI_API_KEY: "not-a-key",
        GOOGLE_GEMINI_BASE_URL: url
      },
      stdio: ["ignore", "pipe", "pipe"]
    })
    let peak = 0
    let [stdout, stderr] = ["", ""]
    let interrupted = begun
    const look = setInterval(() => (peak = Math.max(peak, peakOf(child))), 20)
    const late = setTimeout(() => child.kill("SIGKILL"), 150_000)
    const signal =
      interrupt === undefined
        ? undefined
        : setTimeout(() => {
            interrupted = performance.now()
            child.kill("SIGINT")
          }, interrupt * 1_000)
    child.stdout.on("data", (chunk: Buffer) => (stdout = stdout.length > 1e6 ? stdout : stdout + String(chunk)))
    child.stderr.on("data", (chunk: Buffer) => (stderr = stderr.length > 1e6 ? stderr : stderr + String(chunk)))
    child.on("close", (status) => {
      clearInterval(look)
      clearTimeout(late)
      clearTimeout(signal)
      resolve({ status, stdout, stderr, seconds: (performance.now() - interrupted) / 1_000, peak })
    })
  })

/** The lines of the only session in a home folder. */
const logOf = (home: string): string => {
  const folder = path.join(home, "home", "sessions")
  const [name] = readdirSync(folder).filter((one) => one.endsWith(".jsonl"))
  return name === undefined ? "" : readFileSync(path.join(folder, name), "utf8")
}

const digest = (text: string) => createHash("sha256").update(text).digest("hex")

/** Runs one attack on the built program, and then uses the session. */
export const attacked = async (attack: Attack, bundle: string): Promise<Attacked> => {
  const home = newFolder("attack-")
  /** Number of requests that still get a hostile answer. */
  let hostile = 0
  let sent = 0
  /** Bytes of the largest request. */
  let largest = 0
  const sockets = new Set<Socket>()
  const server = http.createServer((request, response) => {
    let size = 0
    request.on("data", (chunk: Buffer) => (size += chunk.length))
    const asked = /:(\w+)/.exec(request.url ?? "")?.[1] ?? ""
    const kind =
      { countTokens: "count", streamGenerateContent: "stream", generateContent: "whole" }[asked] ?? "describe"
    request.on("end", () => {
      if (kind === "stream") largest = Math.max(largest, size)
      if (hostile > 0 && kind === (attack.of ?? "stream")) {
        hostile -= 1
        return attack.answer(response, request)
      }
      // About as many tokens as a real model would count.
      const tokens = Math.ceil(size / 4)
      if (kind === "stream") {
        inPieces(response)
        return response.end(
          event({ ...piece([{ text: "Fine." }], "STOP"), usageMetadata: { promptTokenCount: tokens } })
        )
      }
      response.writeHead(200, { "content-type": "application/json" })
      response.end(
        JSON.stringify(
          kind === "count" ? { totalTokens: tokens } : { inputTokenLimit: 1_000_000, outputTokenLimit: 65_536 }
        )
      )
    })
  })
  server.on("connection", (socket: Socket) => {
    sockets.add(socket)
    socket.on("error", () => {})
    socket.on("close", () => {
      sent += socket.bytesWritten
      sockets.delete(socket)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = server.address()
  const url = `http://127.0.0.1:${address !== null && typeof address === "object" ? address.port : 0}`
  const ask = (words: string, interrupt?: number) =>
    run(bundle, ["ask", "--session", "attacked", words], home, url, interrupt)
  const hits: Array<string> = []
  const expect = (is: boolean, what: string) => {
    if (!is) hits.push(what)
  }
  try {
    const first = await ask(`hello ${"and tell me more of it, ".repeat(2_000)}`)
    expect(first.status === 0, `the first turn failed: ${first.stderr}`)
    const before = logOf(home)
    hostile = attack.isTaken === true ? 3 : Infinity
    const turn = await ask("go on", attack.interrupt)
    hostile = 0
    const held = sockets.size
    if (attack.isTaken === true) expect(turn.status === 0, `exit ${turn.status}`)
    else {
      expect(turn.status !== 0 && turn.status !== null, `exit ${turn.status}`)
      expect(digest(logOf(home)) === digest(before), "something of it stands in the log")
    }
    expect(attack.says.test(turn.stderr), `it says: ${turn.stderr.slice(-300)}`)
    expect(turn.stderr.length < 4_000, `it says ${turn.stderr.length} characters`)
    expect(!/\n\s+at |RangeError|heap out of memory/.test(turn.stderr), "a stack trace")
    expect(turn.seconds < (attack.interrupt === undefined ? bounds.seconds : 3), `${turn.seconds.toFixed(1)} s`)
    expect(turn.peak < bounds.peak, `${turn.peak} MB`)
    expect(held === 0, `${held} sockets held`)
    const again = await ask("and now?")
    expect(again.seconds < bounds.seconds, `the next turn took ${again.seconds.toFixed(1)} s`)
    expect(again.status === 0 && again.stdout.trim() === "Fine.", `the next turn failed: ${again.stderr.slice(-300)}`)
    const file = path.join(home, "talk.jsonl")
    expect(largest < bounds.request, `a request of ${Math.round(largest / 1e6)} MB`)
    for (const args of [
      ["sessions", "export", "latest", file],
      ["inspect", file],
      ["compress", file, "--force", "--summarizer", "extractive"]
    ]) {
      const ended = await run(bundle, args, home, url)
      const isDone = ended.status === 0 || /would not be smaller/.test(ended.stderr)
      expect(isDone, `${args[0]} failed: ${ended.stderr.slice(-300)}`)
    }
    return { name: attack.name, seconds: turn.seconds, peak: turn.peak, sent, stderr: turn.stderr, hits }
  } finally {
    for (const socket of sockets) socket.destroy()
    server.close()
    rmSync(home, { recursive: true, force: true })
  }
}
