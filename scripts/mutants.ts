/**
 * `npm run test:mutants -- [ROOM | PATH | all | --changed] [--sample 60] [--seed 1] [--tier e2e] [--at-least PERCENT]`: puts small
 * faults into the sources, one at a time, and runs the tests that reach them. A fault that no test sees survives.
 *
 * A room is the folder of that name on each floor, but not in `src/layers`, which only end-to-end tests see: `--tier e2e` adds it,
 * and those tests of the room. `all` takes a sample of each of the rooms below; `--changed` takes the files of `src` that differ
 * from where the branch left `main`. All happens in copies of the project, in the folder for temporary files:
 *
 * 1. Faults are drawn, at most one a line. Those that the compiler sees are left out.
 * 2. A clean run of the tests that import a drawn file notes which faults each of them would run.
 * 3. Each fault is put into a copy. The test files that run it are run, nearest first, until a test fails or does not end.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process"
import {
  chmodSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { availableParallelism, tmpdir } from "node:os"
import path from "node:path"
import { parseArgs } from "node:util"
import config from "../vitest.config.ts"
import type { Coverage } from "./mutants/coverage.ts"
import { distancesTo, importersOf } from "./mutants/graph.ts"
import { applied, drawn, type Mutant, mutantsOf } from "./mutants/operators.ts"

const rooms = "transcripts wire model gateway effect-ai chat compression session agent tools tokens".split(" ")
/** How long tests may take with a fault, beyond twice their time in the clean run. */
const graceMillis = 20_000
/** The nearest test files of one fault. */
const maxTests = 60

const root = path.dirname(import.meta.dirname)
const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    changed: { type: "boolean", default: false },
    sample: { type: "string", default: "60" },
    seed: { type: "string", default: "1" },
    tier: { type: "string", default: "unit" },
    "at-least": { type: "string", default: "0" },
    help: { type: "boolean", default: false }
  }
})
if (values.help) {
  console.log(`npm run test:mutants -- [ROOM | PATH | all | --changed] [--sample 60] [--seed 1] [--tier unit | e2e] [--at-least PERCENT]
Rooms: ${rooms.join(", ")}. CONTRIBUTING.md says more.`)
  process.exit(0)
}
const [size = 0, seed = 0, least = 0] = [values.sample, values.seed, values["at-least"]].map(Number)

const folder = mkdtempSync(path.join(tmpdir(), "mutants-"))
// Some tests work as another user.
chmodSync(folder, 0o755)
const clean = path.join(folder, "0")
const running = new Set<ChildProcess>()
const end = ({ pid }: ChildProcess) => {
  try {
    if (pid !== undefined) process.kill(-pid, "SIGKILL")
  } catch {
    // It has ended.
  }
}
process.on("exit", () => {
  running.forEach(end)
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
})
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => process.exit(130))

/** Runs a script of a package in a copy, in a process group of its own. The code is null when it was ended. */
const run = (copy: string, script: string, args: ReadonlyArray<string>, limit?: number, more?: NodeJS.ProcessEnv) =>
  new Promise<{ readonly code: number | null; readonly output: string }>((resolve) => {
    const temporary = { TMPDIR: path.join(folder, "tmp"), NODE_COMPILE_CACHE: path.join(folder, "compiled") }
    const env = { ...process.env, NO_COLOR: "1", ...temporary, ...more }
    const program = ["--max-old-space-size=2048", path.join(root, "node_modules", script), ...args]
    const child = spawn(process.execPath, program, {
      cwd: copy,
      detached: true,
      env,
      stdio: ["ignore", "pipe", "pipe"]
    })
    running.add(child)
    const timer = limit === undefined ? undefined : setTimeout(() => end(child), limit)
    let output = ""
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += String(chunk)))
    child.on("close", (code) => {
      clearTimeout(timer)
      running.delete(child)
      resolve({ code, output })
    })
  })

const vitest = ["run", "--config", "scripts/mutants/vitest.config.ts", "--configLoader", "native", "--mode", "unit"]

const lines = (text: string) => text.split("\n").filter((line) => line !== "")
const git = (...args: ReadonlyArray<string>) => lines(execFileSync("git", args, { cwd: root, encoding: "utf8" }))
const glob = (patterns: ReadonlyArray<string>, exclude: ReadonlyArray<string> = []) =>
  globSync(patterns, { cwd: clean, exclude })
    .map((file) => file.replaceAll("\\", "/"))
    .sort()

const copied = (name: string): string => {
  const copy = path.join(folder, name)
  for (const file of git("ls-files", "--cached", "--others", "--exclude-standard")) {
    const from = path.join(root, file)
    if (existsSync(from)) cpSync(from, path.join(copy, file), { verbatimSymlinks: true })
  }
  symlinkSync(path.join(root, "node_modules"), path.join(copy, "node_modules"))
  return copy
}

const texts = new Map<string, string>()
/** The text of a file without a fault: each is read before the first fault is put in. */
const textOf = (file: string): string => {
  const text = texts.get(file) ?? readFileSync(path.join(clean, file), "utf8")
  texts.set(file, text)
  return text
}

/** The sources to put faults into, by what was asked for. */
const groups = (): ReadonlyArray<readonly [name: string, files: ReadonlyArray<string>]> => {
  const isSource = (file: string) => /^src\/.*\.ts$/.test(file) && existsSync(path.join(clean, file))
  if (values.changed) {
    const [fork = "HEAD"] = git("merge-base", "HEAD", "main")
    const changed = [...git("diff", "--name-only", fork), ...git("ls-files", "--others", "--exclude-standard")]
    return [["changed files", changed.filter(isSource).sort()]]
  }
  return positionals
    .flatMap((name) => (name === "all" ? rooms : [name]))
    .map((name) => {
      const floors = values.tier === "e2e" ? "*" : "{domain,services,cli}"
      const at = name.startsWith("src/") ? name : `src/${floors}/${name}`
      return [name, glob([at, `${at}/**/*.ts`]).filter(isSource)]
    })
}

/** Those that the compiler does not object to, but for a name that is now unused. All are tried in one run. */
const compiled = async (mutants: ReadonlyArray<Mutant>): Promise<ReadonlySet<Mutant>> => {
  const files = [...new Set(mutants.map(({ file }) => file))]
  for (const file of files) {
    const own = mutants.filter((mutant) => mutant.file === file).sort((one, other) => other.start - one.start)
    writeFileSync(path.join(clean, file), own.reduce(applied, textOf(file)))
  }
  const { output } = await run(clean, "typescript/bin/tsc", [
    "--noEmit",
    "--pretty",
    "false",
    "-p",
    "tsconfig.oldest.json"
  ])
  for (const file of files) writeFileSync(path.join(clean, file), textOf(file))
  const errors = [...output.matchAll(/^(src\/[^(]+)\((\d+),\d+\): error TS(?!6133|6192|6196|6198)/gm)]
  const isRefused = ({ file, within }: Mutant) => {
    const [first = 0, last = 0] = within.map((place) => textOf(file).slice(0, place).split("\n").length)
    return errors.some(([, at, line]) => at === file && first <= Number(line) && Number(line) <= last)
  }
  return new Set(mutants.filter((mutant) => !isRefused(mutant)))
}

/** The tests that may see a fault in a file, by their distance: those of the unit tier and, if asked for, others of its room. */
const reachOf = (files: ReadonlyArray<string>) => {
  const [unit = [], endToEnd = []] = ["unit", "e2e"].map((mode) => {
    const { test } = config({ mode, command: "serve" })
    return glob(test?.include ?? [], test?.exclude)
  })
  const importers = importersOf(glob(["{src,test}/**/*.ts"], ["test/fixtures/**"]).map((file) => [file, textOf(file)]))
  return new Map(
    files.map((file) => {
      const room = path.posix.dirname(file).replace(/^src\/\w+\//, "")
      const near = endToEnd.filter((test) => test.replace(/^test\/\w+\//, "").startsWith(`${room}/`))
      const tests = new Set(values.tier === "e2e" ? [...unit, ...near] : unit)
      return [file, new Map([...distancesTo(file, importers)].filter(([test]) => tests.has(test)))]
    })
  )
}

const short = (text: string) => text.replace(/\s+/g, " ").trim().slice(0, 70) || "nothing"
const described = ({ after, before, file, line, operator }: Mutant) =>
  `${file}:${line}  ${operator}  ${short(before)} -> ${short(after)}`

const measure = async (): Promise<void> => {
  const copies = Array.from({ length: Math.min(4, availableParallelism()) }, (_, index) => copied(String(index)))
  mkdirSync(path.join(folder, "tmp"))

  if (![size, seed, least].every(Number.isSafeInteger)) throw new Error("--sample, --seed and --at-least are numbers")
  const asked = groups()
  const none = asked.find(([, files]) => files.length === 0)
  if (none !== undefined && values.changed) return console.log("nothing in src has changed")
  if (none !== undefined || asked.length === 0) {
    throw new Error(
      `no sources in "${none?.[0] ?? ""}": name a room such as "transcripts", a path in src, "all" or --changed`
    )
  }
  const candidates = asked.map(([name, files]) => {
    return [
      name,
      drawn(
        files.flatMap((file) => mutantsOf(file, textOf(file))),
        2 * size,
        seed
      )
    ] as const
  })
  const kept = await compiled(candidates.flatMap(([, mutants]) => mutants))
  const samples = candidates.map(
    ([name, mutants]) => [name, mutants.filter((one) => kept.has(one)).slice(0, size)] as const
  )
  const sample = samples.flatMap(([, mutants]) => mutants)

  const reach = reachOf([...new Set(sample.map(({ file }) => file))])
  const tests = [...new Set([...reach.values()].flatMap((distances) => [...distances.keys()]))]
  console.error(`${sample.length} mutants; a clean run of ${tests.length} test files`)
  const [places, notes] = [path.join(folder, "places.json"), path.join(folder, "coverage.txt")]
  writeFileSync(places, JSON.stringify(sample))
  const env = { MUTANTS_PLACES: places, MUTANTS_COVERAGE: notes }
  const first = await run(clean, "vitest/vitest.mjs", [...vitest, ...tests], undefined, env)
  if (first.code !== 0) {
    const from = Math.max(0, first.output.search(/⎯+ Failed|Unhandled/))
    throw new Error(`tests fail without a fault:\n${first.output.slice(from)}`)
  }
  const coverage: ReadonlyArray<Coverage> = lines(readFileSync(notes, "utf8")).map((line) => JSON.parse(line))

  const survivors = new Map<Mutant, string>()
  const judge = async (copy: string, mutant: Mutant, index: number): Promise<void> => {
    const distances = reach.get(mutant.file) ?? new Map<string, number>()
    const distanceOf = ({ test }: Coverage) => distances.get(test) ?? Infinity
    // What runs when a module is loaded, or once in each worker for what is made at first use, concerns every test that reaches it.
    const isLoaded = coverage.some(({ loaded }) => loaded.includes(index))
    const timesRun = coverage.filter(({ ran }) => ran.includes(index)).length
    const isShared = isLoaded || (timesRun > 0 && timesRun <= availableParallelism())
    const concerned = coverage
      .filter((one) => distances.has(one.test) && (isShared || one.ran.includes(index) || distanceOf(one) === 1))
      .sort((one, other) => distanceOf(one) - distanceOf(other) || one.millis - other.millis)
      .slice(0, maxTests)
    const limit = graceMillis + 2 * concerned.reduce((sum, { millis }) => sum + millis, 0)
    const args = [...vitest, "--bail", "1", "--maxWorkers", "1", ...concerned.map(({ test }) => test)]
    const target = path.join(copy, mutant.file)
    writeFileSync(target, applied(textOf(mutant.file), mutant))
    const { code, output } =
      concerned.length === 0 ? { code: 0, output: "" } : await run(copy, "vitest/vitest.mjs", args, limit)
    writeFileSync(target, textOf(mutant.file))
    if (/Startup Error|No test files found/.test(output)) throw new Error(output)
    if (code === 0) {
      survivors.set(
        mutant,
        isLoaded || timesRun > 0 ? `survived, test files: ${concerned.length}` : "survived, no test runs it"
      )
    }
    const by = code === null ? "seen: a time limit" : `seen: ${/FAIL\s+(\S+)/.exec(output)?.[1] ?? "a crash"}`
    console.log(`${described(mutant)}  ${survivors.get(mutant) ?? by}`)
  }
  // One queue for all copies.
  const queue = sample.entries()
  await Promise.all(
    copies.map(async (copy) => {
      for (const [index, mutant] of queue) await judge(copy, mutant, index)
    })
  )

  for (const [name, mutants] of samples) {
    const left = mutants.filter((mutant) => survivors.has(mutant))
    const seen = mutants.length - left.length
    const percent = Math.round((100 * seen) / mutants.length)
    console.log(`\nseen ${seen} of ${mutants.length} (${percent} %) in ${name}, seed ${seed}`)
    for (const mutant of left) {
      console.log(`${described(mutant)}  ${survivors.get(mutant)}`)
      console.log(`    ${textOf(mutant.file).split("\n")[mutant.line - 1]?.trim()}`)
    }
    if (percent < least) process.exitCode = 1
  }
}

try {
  await measure()
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 2
}
