import { appendFileSync, readFileSync } from "node:fs"
import { type Profiler, Session } from "node:inspector"
import path from "node:path"
import { pathToFileURL } from "node:url"
import { type RunnerTestFile, TestRunner } from "vitest"

/** What a test file ran of the places in `MUTANTS_PLACES`, by their numbers. */
export interface Coverage {
  readonly test: string
  readonly millis: number
  /** What ran when modules were loaded: in another order of the files, another file would have loaded them. */
  readonly loaded: ReadonlyArray<number>
  readonly ran: ReadonlyArray<number>
}

const root = path.resolve(import.meta.dirname, "../..")
const given: ReadonlyArray<{ readonly file: string; readonly within: readonly [start: number, end: number] }> =
  JSON.parse(readFileSync(process.env["MUTANTS_PLACES"] ?? "", "utf8"))
// Offsets in the source are those of V8: Node puts blanks in the place of types.
// The whole expression counts: swapped arms matter where only the second one runs.
const places = given.map(({ file, within: [start] }) => ({ start, url: pathToFileURL(path.join(root, file)).href }))

const session = new Session()
session.connect()
session.post("Profiler.enable")
session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true })

const nowhere: Profiler.CoverageRange = { startOffset: 0, endOffset: Infinity, count: 0 }
const sizeOf = ({ endOffset, startOffset }: Profiler.CoverageRange) => endOffset - startOffset

/** The places that ran since this was last called. */
const take = (): ReadonlyArray<number> => {
  let scripts: ReadonlyArray<Profiler.ScriptCoverage> = []
  // A session answers its own thread before `post` returns.
  session.post("Profiler.takePreciseCoverage", (_error, { result }) => (scripts = result))
  const ranges = new Map(scripts.map(({ functions, url }) => [url, functions.flatMap((one) => one.ranges)]))
  return [...places.keys()].filter((index) => {
    const { start = 0, url = "" } = places[index] ?? {}
    const around = ranges.get(url)?.filter(({ endOffset, startOffset }) => startOffset <= start && start < endOffset)
    const innermost = around?.reduce((one, other) => (sizeOf(other) < sizeOf(one) ? other : one), nowhere)
    return innermost !== undefined && innermost.count > 0
  })
}

/** A test runner that notes in `MUTANTS_COVERAGE`, after each file, what it ran. */
export default class CoverageRunner extends TestRunner {
  #loaded: ReadonlyArray<number> = []
  #start = 0

  onBeforeCollect(): void {
    take()
    this.#start = performance.now()
  }

  onCollected(): void {
    this.#loaded = take()
  }

  override onAfterRunFiles(files: Array<RunnerTestFile>): void {
    super.onAfterRunFiles(files)
    const test = path.relative(root, files[0]?.filepath ?? "").replaceAll("\\", "/")
    const millis = Math.round(performance.now() - this.#start)
    const noted: Coverage = { test, millis, loaded: this.#loaded, ran: take() }
    appendFileSync(process.env["MUTANTS_COVERAGE"] ?? "", `${JSON.stringify(noted)}\n`)
  }
}
