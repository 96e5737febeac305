import { execFile } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"
import { registerHooks } from "node:module"
import { availableParallelism } from "node:os"
import path from "node:path"
import { fileURLToPath } from "node:url"
import { parseArgs, promisify } from "node:util"
import type { EvaluationReport } from "../src/domain/evaluation/EvaluationReport.ts"

/**
 * `npm run bench:rules -- FOLDER… [--only WORD] [--scale 50%]`: what each rule of the writer of snapshots is worth. Each folder holds
 * recordings, and has columns of its own: one to tune on, and others, of other projects, that nobody looked at. A line says how much each
 * figure of `eval` falls, in thousandths, when the rule is switched off, at the size of the recorded summaries (2k, 4k and 8k
 * where there is none). A rule with a line of dots is worth nothing to any figure: it has to be worth something to a reader.
 *
 * The switches stand here and not in the writer: a rule is switched off by a change of the source while it is loaded.
 */

/** A rule, and the changes of sources that switch it off. */
interface Rule {
  readonly name: string
  readonly off: ReadonlyArray<readonly [file: string, from: string, to: string]>
}

const root = path.dirname(import.meta.dirname)
const rules: ReadonlyArray<Rule> = JSON.parse(readFileSync(path.join(import.meta.dirname, "rules.json"), "utf8"))

/** Loads sources without a rule. */
const switchOff = ({ name, off }: Rule): void => {
  registerHooks({
    load: (url, context, next) => {
      const loaded = next(url, context)
      const file = url.startsWith("file:") ? path.relative(root, fileURLToPath(url)).replaceAll("\\", "/") : ""
      const own = off.filter(([changed]) => `src/domain/compression/${changed}` === file)
      let source = String(loaded.source)
      for (const [, from, to] of own) {
        if (source.split(from).length !== 2) throw new Error(`rule "${name}": not once in ${file}: ${from}`)
        source = source.replace(from, () => to)
      }
      return own.length === 0 ? loaded : { ...loaded, source }
    }
  })
}

/** The figures: what `eval` counts, and whether less of it is better. */
const figures: ReadonlyArray<readonly [title: string, keys: ReadonlyArray<string>, isCost: boolean]> = [
  ["actions", ["actionsGrounded"], false],
  ["+recall", ["actionsReachable"], false],
  ["facts", ["factsKept"], false],
  ["edits", ["editsReachable"], false],
  ["state", ["statesRight"], false],
  ["false", ["statesStale", "statesWrong", "decoysBelieved"], true],
  ["user", ["userMessages"], false],
  ["waste", ["waste"], true]
]

const run = promisify(execFile)

/** Returns the figures of each folder without a rule, in thousandths. */
const measured = async (
  rule: string,
  folders: ReadonlyArray<string>,
  args: ReadonlyArray<string>
): Promise<ReadonlyArray<ReadonlyArray<number>>> => {
  const files = folders.flatMap((folder) => readdirSync(folder).map((file) => path.join(folder, file)))
  const program = [fileURLToPath(import.meta.url), "eval", "--strategy", "palimpsest", "--preserve", "0", "--json"]
  const { stdout } = await run(process.execPath, [...program, ...args, ...files], {
    env: { ...process.env, WITHOUT_RULE: rule },
    maxBuffer: 1e9
  })
  const report: EvaluationReport = JSON.parse(stdout)
  return folders.map((folder) => {
    const own = report.files.filter(({ file }) => path.dirname(file) === path.normalize(folder))
    const rows = own.flatMap(({ points }) => points.flatMap((point) => point.rows))
    return figures.map(([, keys]) => {
      const ratios = rows.flatMap((row) =>
        row.writer === "palimpsest" ? keys.flatMap((key) => row.figures[key] ?? []) : []
      )
      const whole = ratios.reduce((sum, ratio) => sum + ratio.whole, 0)
      return whole === 0 ? 0 : (1_000 * ratios.reduce((sum, ratio) => sum + ratio.part, 0)) / whole
    })
  })
}

const line = (name: string, folders: ReadonlyArray<ReadonlyArray<number>>, digits: number): string =>
  name.padEnd(42) +
  folders
    .map((numbers) =>
      numbers.map((number) => (Math.abs(number) < 0.05 ? "·" : number.toFixed(digits)).padStart(8)).join("")
    )
    .join(" |")

const tables = async (args: ReadonlyArray<string>) => {
  const { positionals: folders, values } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: { only: { type: "string", default: "" }, scale: { type: "string", default: "100%" } }
  })
  const size = ["--scale", values.scale]
  const all = await measured("", folders, size)
  const titles = folders.map(() => figures.map(([name]) => name.padStart(8)).join("")).join(" |")
  console.log(`${folders.join(" | ")}\n${"".padEnd(42)}${titles}\n${line("all rules", all, 0)}`)
  const left = rules.filter(({ name }) => name.includes(values.only))
  const work = async () => {
    for (let rule = left.shift(); rule !== undefined; rule = left.shift()) {
      const without = await measured(rule.name, folders, size)
      const worth = all.map((numbers, folder) =>
        numbers.map((value, at) => (value - (without[folder]?.[at] ?? 0)) * (figures[at]?.[2] === true ? -1 : 1))
      )
      console.log(line(rule.name, worth, 1))
    }
  }
  await Promise.all(Array.from({ length: availableParallelism() }, work))
}

const { WITHOUT_RULE: without } = process.env
if (without === undefined) await tables(process.argv.slice(2))
else {
  const rule = rules.find(({ name }) => name === without)
  if (rule !== undefined) switchOff(rule)
  const { main } = await import("../src/cli/main.ts")
  main()
}
