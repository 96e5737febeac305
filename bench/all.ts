import { spawnSync } from "node:child_process"
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { cpus, loadavg, tmpdir } from "node:os"
import { join } from "node:path"
import { print, type Row } from "./table.ts"

/** `npm run bench`: start, compression, tool turns, sessions' logs and memory files, in one table of goals and figures. */

const folder = mkdtempSync(join(tmpdir(), "palimpsest-bench-all-"))
const file = join(folder, "rows.jsonl")
console.log(`Node ${process.version}, ${process.arch}, ${cpus().length} cores, load ${loadavg()[0]?.toFixed(1)}`)
const failed: Array<Row> = []
for (const name of ["run", "turns", "log", "memory"]) {
  const { status } = spawnSync(process.execPath, [join(import.meta.dirname, `${name}.ts`)], {
    stdio: ["ignore", "ignore", "inherit"],
    env: { ...process.env, BENCH_ROWS: file }
  })
  if (status !== 0) failed.push({ what: `bench/${name}.ts`, value: "did not end well", bound: "to end", ok: false })
}
const rows = existsSync(file) ? readFileSync(file, "utf8").split("\n").slice(0, -1) : []
rmSync(folder, { recursive: true })
print([...rows.map((row): Row => JSON.parse(row)), ...failed])
