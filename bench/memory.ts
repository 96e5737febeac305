import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, FileSystem } from "effect"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { cpus, tmpdir } from "node:os"
import { dirname, join } from "node:path"
import * as FileMemory from "../src/layers/memory/FileMemory.ts"
import { median, print, ratio } from "./table.ts"

/**
 * `node bench/memory.ts`: the time to find and load 200 memory files with imports, as a multiple of reading the same files in
 * the same run.
 */

const memories = 200
const rounds = 31

const home = mkdtempSync(join(tmpdir(), "palimpsest-memory-"))
const root = join(home, "work")
const files: Array<string> = []
const put = (name: string, text: string) => {
  const file = join(root, name)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
  files.push(file)
}
mkdirSync(join(root, ".git"), { recursive: true })
const prose = "Tests stand beside what they test, and say what would be wrong. ".repeat(30)
for (let n = 0; n < memories - 1; n += 1) {
  put(`part${n % 20}/m${n}/GEMINI.md`, `# Part ${n}\n\n${prose}\n@./more.md\n@../../shared/s${n % 10}.md\n`)
  put(`part${n % 20}/m${n}/more.md`, `## More of ${n}\n\n${prose}\n`)
}
put("GEMINI.md", `# All\n\n${prose}\n`)
for (let n = 0; n < 10; n += 1) put(`shared/s${n}.md`, `## Shared ${n}\n\n${prose}\n`)

const timed = <A, E, R>(work: Effect.Effect<A, E, R>) =>
  Effect.suspend(() => {
    const start = performance.now()
    return Effect.map(work, (value) => ({ value, ms: performance.now() - start }))
  })

const program = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const reading = Effect.forEach(files, (file) => fs.readFileString(file), { concurrency: 20 })
  const loading = Effect.flatMap(
    FileMemory.make({
      home: join(home, ".palimpsest"),
      geminiHome: join(home, ".gemini"),
      extensions: [],
      root,
      isTrusted: () => Effect.succeed(true),
      memory: { maxDirs: 1_000 }
    }),
    ({ load }) => load
  )
  const oneByOne = Effect.forEach(files, (file) => fs.readFileString(file))
  const times = { reading: new Array<number>(), oneByOne: new Array<number>(), loading: new Array<number>() }
  for (let round = 0; round < rounds; round += 1) {
    times.reading.push((yield* timed(reading)).ms)
    times.oneByOne.push((yield* timed(oneByOne)).ms)
    const { ms, value } = yield* timed(loading)
    times.loading.push(ms)
    if (value.blocks.length !== memories || value.problems.length > 0) {
      return yield* Effect.die(new Error(`${value.blocks.length} files, ${value.problems.join("; ")}`))
    }
  }
  const loaded = median(times.loading)
  console.log(
    `Node ${process.version}, ${process.arch}, ${cpus().length} cores; ${files.length} files; ${rounds} rounds`
  )
  print([
    ratio(`${memories} memory files with imports, to reading them one by one`, loaded, median(times.oneByOne), 3),
    ratio("the same, to reading them 20 at a time", loaded, median(times.reading), 3)
  ])
})

await Effect.runPromise(program.pipe(Effect.provide(NodeServices.layer)))
rmSync(home, { recursive: true, force: true })
