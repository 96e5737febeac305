import { execFile } from "node:child_process"
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from "node:fs"
import { cpus, tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout } from "node:timers/promises"
import { promisify } from "node:util"
import type { Part } from "../src/domain/content/Content.ts"
import { Handle } from "../src/domain/content/Handle.ts"
import { type Entry, entryId } from "../src/domain/conversation/Conversation.ts"
import { encodeLine } from "../src/domain/session/LogFormat.ts"
import type { SessionEvent } from "../src/domain/session/Session.ts"
import { TokenCount } from "../src/domain/tokens/Tokens.ts"
import { median, print, type Row } from "./table.ts"

/**
 * `npm run bench:sizes`: the time of `sessions list` with 10,000 sessions, compared with an empty home, and the time and memory
 * of commands on a log of 1 GB, one of a million messages and one that was compressed often. Each figure is measured on the
 * built program in its own process.
 *
 * `--sessions N`, `--bytes N` and `--messages N` reduce the sizes. Needs 3 GB in the temporary folder.
 */

const option = (name: string, otherwise: number) => {
  const at = process.argv.indexOf(`--${name}`)
  return at < 0 ? otherwise : Number(process.argv[at + 1])
}
const sessions = option("sessions", 10_000)
const bytes = option("bytes", 1_000_000_000)
const messages = option("messages", 1_000_000)
const rounds = 7

const folder = mkdtempSync(join(tmpdir(), "palimpsest-sizes-"))
const empty = join(folder, "empty")
const full = join(folder, "full")
mkdirSync(empty)
mkdirSync(join(full, "sessions"), { recursive: true, mode: 0o700 })

const alphabet = "abcdefghijklmnopqrstuvwxyz234567"
const handleOf = (number: number) => {
  let text = ""
  for (let rest = number, at = 0; at < 10; at += 1) {
    text += alphabet[rest % 32]
    rest = Math.floor(rest / 32)
  }
  return Handle.make(`h_${text}`)
}
const words =
  "the parser reads every line of src/domain/Parser.ts and keeps what the caller asked for, 4821 times".split(" ")
const prose = (length: number, seed: number) => {
  let text = ""
  for (let at = seed; text.length < length;) {
    at = (at * 7_919 + 13) % 1_000_003
    text += `${words[at % words.length]} `
  }
  return text
}
const started = (session: string): SessionEvent => ({
  _tag: "Started",
  version: 1,
  session,
  at: 1.7e12,
  estimator: "1",
  model: "gemini-2.5-pro",
  cwd: "/home/user/work"
})
const appended = (sequence: number, role: "user" | "model", ...parts: ReadonlyArray<Part>): SessionEvent => ({
  _tag: "Appended",
  entry: {
    id: entryId(sequence),
    content: { role, parts },
    at: 1.7e12 + sequence,
    tokens: parts.map((part) => Math.ceil(JSON.stringify(part).length / 4)),
    handles: parts.map((_, index) => handleOf(sequence * 4 + index)),
    ...(role === "user" ? {} : { usage: { prompt: 9_000, answer: 200, thoughts: 50, cached: 0 } })
  } satisfies Entry
})
/** Four messages of an agent that reads a file. */
const round = (next: number): ReadonlyArray<SessionEvent> => [
  appended(next, "user", { text: prose(1_000, next) }),
  appended(
    next + 1,
    "model",
    { text: prose(2_000, next) },
    { functionCall: { id: `c${next}`, name: "read_file", args: { path: `src/f${next % 500}.ts` } } }
  ),
  appended(next + 2, "user", {
    functionResponse: { id: `c${next}`, name: "read_file", response: { output: prose(4_000, next) } }
  }),
  appended(next + 3, "model", { text: prose(2_000, next) })
]

/** Writes a log, event by event, until `events` ends. */
const writeLog = (file: string, events: Iterable<SessionEvent>, limit = Number.POSITIVE_INFINITY) => {
  const handle = openSync(file, "w", 0o600)
  let held = ""
  let size = 0
  for (const event of events) {
    const line = `${encodeLine(event)}\n`
    held += line
    size += line.length
    if (held.length > 4e6) {
      writeSync(handle, held)
      held = ""
    }
    if (size >= limit) break
  }
  writeSync(handle, held)
  closeSync(handle)
  return size
}

function* ordinary() {
  yield started("ordinary")
  for (let next = 1; ; next += 4) yield* round(next)
}
function* small() {
  yield started("small")
  for (let next = 1; next <= messages; next += 2) {
    yield appended(next, "user", { text: `say ${next}` })
    yield appended(next + 1, "model", { text: `said ${next}` })
  }
}
/** A log that is compressed every 800 messages. */
function* compressed(): Generator<SessionEvent> {
  yield started("compressed")
  let first = 1
  for (let next = 1, rounds = 1; ; rounds += 1) {
    yield* round(next)
    next += 4
    if (rounds % 200 > 0) continue
    const tokens = [1_000]
    const content = { role: "user" as const, parts: [{ text: prose(4_000, next) }] }
    const snapshot = { id: entryId(next), author: "summary" as const, content, tokens, handles: [handleOf(next * 4)] }
    yield {
      _tag: "Compressed",
      at: 1.7e12,
      status: "COMPRESSED",
      strategy: "palimpsest",
      trigger: "auto",
      before: TokenCount.make(900_000),
      after: TokenCount.make(50_000),
      patch: { drop: { from: entryId(first), to: entryId(next - 41) }, insert: [snapshot], shorten: [] }
    }
    first = next
    next += 1
  }
}

const run = promisify(execFile)
const main = join(import.meta.dirname, "..", "dist", "main.mjs")
/** Reports the peak memory of a process when it ends. */
const telling = `process.on("exit",()=>process.stderr.write("\\nRSS "+process.resourceUsage().maxRSS))`
const timed = async (home: string, ...args: ReadonlyArray<string>) => {
  const from = performance.now()
  const child = ["--import", `data:text/javascript,${encodeURIComponent(telling)}`, main, ...args]
  const env = { ...process.env, PALIMPSEST_HOME: home }
  const { code, stderr } = await run(process.execPath, child, { env, maxBuffer: 1e9 }).then(
    (done) => ({ code: 0, stderr: done.stderr }),
    (error: { readonly code: number; readonly stderr: string }) => error
  )
  const said = stderr.split("\n").filter((line) => line !== "" && !line.startsWith("RSS "))
  return {
    code,
    ms: performance.now() - from,
    mb: Number(/RSS (\d+)/.exec(stderr)?.[1]) / 1024,
    said: said.at(-1) ?? ""
  }
}
const best = async (home: string, ...args: ReadonlyArray<string>) => {
  const all: Array<Awaited<ReturnType<typeof timed>>> = []
  for (let count = 0; count < rounds; count += 1) all.push(await timed(home, ...args))
  return { ms: median(all.map(({ ms }) => ms)), mb: median(all.map(({ mb }) => mb)) }
}

console.log(`Node ${process.version}, ${process.arch}, ${cpus().length} cores; the median of ${rounds} runs`)
for (let number = 0; number < sessions; number += 1) {
  const id = `0190a000-0000-7000-8000-${String(number).padStart(12, "0")}`
  const file = join(full, "sessions", `${id}.jsonl`)
  writeLog(file, [started(id), ...round(1)])
  if (number % 2 === 0) writeFileSync(join(full, "sessions", `${id}.title`), `Session ${number}\n`, { mode: 0o600 })
}
// Files that changed a moment ago are not in the catalogue yet.
await setTimeout(3_000)
const start = await best(empty, "sessions", "list")
const first = await timed(full, "sessions", "list")
const later = await best(full, "sessions", "list")
const json = await best(full, "sessions", "list", "--json")
const beyond = (ms: number) => `${Math.round(ms - start.ms)} ms beyond start-up`
console.log(`sessions list, none: ${Math.round(start.ms)} ms, ${Math.round(start.mb)} MB`)
console.log(`sessions list, ${sessions}, for the first time: ${beyond(first.ms)}, ${Math.round(first.mb)} MB`)
console.log(`sessions list, ${sessions}: ${beyond(later.ms)}, ${Math.round(later.mb)} MB`)
console.log(`sessions list --json, ${sessions}: ${beyond(json.ms)}, ${Math.round(json.mb)} MB`)

/** Runs commands on the log `file`, and measures them. */
const told = async (file: string, ...args: ReadonlyArray<string>) => {
  const { code, mb, ms, said } = await timed(empty, ...args.map((arg) => (arg === "LOG" ? file : arg)))
  console.log(
    `${args.join(" ")}: ${Math.round(ms / start.ms)} × start-up, ${Math.round(mb)} MB, status ${code}${said === "" ? "" : `; ${said}`}`
  )
  return mb
}
const rows: Array<Row> = []
const logs = [
  ["ordinary messages", ordinary, bytes],
  ["small messages", small, Number.POSITIVE_INFINITY],
  ["messages that were compressed", compressed, bytes]
] as const
for (const [name, events, limit] of logs) {
  const file = join(folder, "log.jsonl")
  const size = writeLog(file, events(), limit)
  console.log(`\n${(size / 1e6).toFixed(0)} MB of ${name}`)
  for (const form of [[], ["--json"], ["--html", join(folder, "page.html")]]) {
    const mb = await told(file, "inspect", "LOG", ...form)
    const what = `inspect ${form[0] ?? ""} of ${(size / 1e6).toFixed(0)} MB of ${name}`
    rows.push({ what, value: `${Math.round(mb)} MB`, bound: "500 MB", ok: mb <= 500 })
  }
  await told(file, "compress", "LOG", "--plan")
  await told(file, "recall", "LOG", handleOf(4))
}
console.log("")
print([
  {
    what: `sessions list with ${sessions} sessions, beyond start-up`,
    value: `${Math.round(later.ms - start.ms)} ms`,
    bound: "300 ms",
    ok: later.ms - start.ms <= 300
  },
  ...rows
])
rmSync(folder, { recursive: true, force: true })
