import { execFile } from "node:child_process"
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync
} from "node:fs"
import { cpus, tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { claudeLines } from "./corpus.ts"
import { median, print, ratio } from "./table.ts"

/**
 * `npm run bench:find`: the first index over the sessions of Claude Code, to a Node process that reads and parses their lines;
 * its peak memory with a quarter of them and with all; and what a later `find` takes beyond a start without sessions. Each figure
 * is measured on the built program in its own process.
 *
 * The generated sessions are all text, with many names that occur once, which is the most that an index can have to do.
 * `--from FILE` takes copies of a recorded session of Claude Code instead. `--sessions N` (300) and `--bytes N` (3 MB, if generated)
 * set the sizes; the temporary folder needs room for one and a half times as much.
 */

const option = (name: string) => {
  const at = process.argv.indexOf(`--${name}`)
  return at < 0 ? undefined : process.argv[at + 1]
}
const sessions = Number(option("sessions") ?? 300)
const bytes = Number(option("bytes") ?? 3_000_000)
const from = option("from")
const recorded = from === undefined ? undefined : readFileSync(from, "utf8").trimEnd()
const rounds = 7

const folder = mkdtempSync(join(tmpdir(), "palimpsest-find-"))
const homes = { empty: join(folder, "empty"), some: join(folder, "some"), all: join(folder, "all") }

const files: Array<string> = []
/** The text of a session: generated, or recorded with ids of its own. */
const textOf = (number: number, id: string): string =>
  recorded === undefined
    ? claudeLines(1_000 + number, bytes)
        .join("\n")
        .replaceAll("00000000-0000-4000-8000-ffffffffffff", id)
    : recorded
        .replaceAll(/"sessionId":"[^"]*"/g, `"sessionId":"${id}"`)
        .replaceAll('"id":"msg_', `"id":"msg_${number}_`)

const write = (home: string, count: number) => {
  const projects = join(home, ".claude", "projects", "-home-someone-project")
  mkdirSync(projects, { recursive: true })
  for (let number = 0; number < count; number += 1) {
    const id = `00000000-0000-4000-8000-${number.toString(16).padStart(12, "0")}`
    const file = join(projects, `${id}.jsonl`)
    writeFileSync(file, `${textOf(number, id)}\n`)
    files.push(file)
  }
}

const run = promisify(execFile)
const program = join(import.meta.dirname, "..", "dist", "palimpsest.mjs")
/** Reports what a process took when it ends: peak memory in kB, processor time in microseconds. */
const telling = `process.on("exit",()=>{const u=process.resourceUsage();process.stderr.write("\\nTOOK "+u.maxRSS+" "+(u.userCPUTime+u.systemCPUTime))})`
const timed = async (args: ReadonlyArray<string>, home: string) => {
  const from = performance.now()
  const child = ["--import", `data:text/javascript,${encodeURIComponent(telling)}`, ...args]
  const env = { PATH: process.env["PATH"] ?? "", HOME: home, USERPROFILE: home, PALIMPSEST_HOME: join(home, "own") }
  const { stderr } = await run(process.execPath, child, { env, maxBuffer: 1e9 })
  const ms = performance.now() - from
  const [, kilobytes, microseconds] = /TOOK (\d+) (\d+)/.exec(stderr) ?? []
  return { ms, mb: Number(kilobytes) / 1024, cpu: Number(microseconds) / 1_000 }
}
const find = (home: string, ...args: ReadonlyArray<string>) => timed([program, "find", ...args], home)

/** Reads the files named by a list, and parses each line. */
const reader = `
import { readFileSync } from "node:fs"
for (const file of readFileSync(process.argv[2], "utf8").split("\\n"))
  for (const line of readFileSync(file, "utf8").split("\\n")) if (line !== "") JSON.parse(line)
`

console.log(`Node ${process.version}, ${process.arch}, ${cpus().length} cores; ${sessions} sessions`)
write(homes.some, Math.ceil(sessions / 4))
files.length = 0
write(homes.all, sessions)
mkdirSync(homes.empty)
const total = files.reduce((sum, file) => sum + statSync(file).size, 0)
const list = join(folder, "list")
writeFileSync(list, files.join("\n"))
const script = join(folder, "read.mjs")
writeFileSync(script, reader)

try {
  await find(homes.empty)
  const reading = await timed([script, list], homes.all)
  const some = await find(homes.some)
  const all = await find(homes.all)
  // The index checks files again that changed a moment ago.
  await find(homes.all)
  const starts: Array<number> = []
  const listed: Array<number> = []
  const searched: Array<number> = []
  const grown: Array<number> = []
  const [first = ""] = files
  for (let round = 0; round < rounds; round += 1) {
    starts.push((await find(homes.empty)).ms)
    listed.push((await find(homes.all)).ms)
    searched.push((await find(homes.all, "cache", "retry")).ms)
    appendFileSync(first, '{"type":"user","message":{"role":"user","content":"one more"}}\n')
    grown.push((await find(homes.all)).ms)
  }
  const start = median(starts)
  const later = median(listed) - start
  const indexes = join(homes.all, "own", "index")
  const index = Math.max(...readdirSync(indexes).map((name) => statSync(join(indexes, name)).size))
  const row = (what: string, value: string) => ({ what, value, bound: undefined, ok: true })
  print([
    ratio(
      `first index over ${(total / 1e6).toFixed(0)} MB, to reading and parsing it, in processor time`,
      all.cpu,
      reading.cpu,
      3
    ),
    row("the same by the clock", `${(all.ms / 1_000).toFixed(1)} s (reading: ${(reading.ms / 1_000).toFixed(1)} s)`),
    row("size of the index", `${(index / 1e6).toFixed(0)} MB`),
    row(`peak memory with ${Math.ceil(sessions / 4)} sessions`, `${Math.round(some.mb)} MB`),
    {
      what: `the same with ${sessions}, to that`,
      value: `${(all.mb / some.mb).toFixed(2)} × (${Math.round(all.mb)} MB)`,
      bound: "1.5 ×",
      ok: all.mb <= some.mb * 1.5
    },
    { what: "a later find, beyond start-up", value: `${Math.round(later)} ms`, bound: "200 ms", ok: later <= 200 },
    row("the same after a session grew", `${Math.round(median(grown) - start)} ms`),
    row("a search for two words, beyond start-up", `${Math.round(median(searched) - start)} ms`)
  ])
} finally {
  rmSync(folder, { recursive: true, force: true })
}
