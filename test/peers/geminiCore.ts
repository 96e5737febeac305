import { execFile } from "node:child_process"
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { homedir, tmpdir } from "node:os"
import path from "node:path"
import { promisify } from "node:util"
import type { GeminiCase, OriginalRun } from "./GeminiCase.ts"

const name = "@google/gemini-cli-core"
const version = "0.61.0"

/** A folder of its own in `$PALIMPSEST_PEERS`, else in the user's cache folder: outside of the project, installed once. */
const folder = path.join(
  process.env["PALIMPSEST_PEERS"] ??
    path.join(process.env["XDG_CACHE_HOME"] ?? path.join(homedir(), ".cache"), "palimpsest-peers"),
  "gemini-cli-core"
)

const execute = promisify(execFile)

const installed = (): boolean => {
  try {
    return readFileSync(path.join(folder, "node_modules", name, "package.json"), "utf8").includes(
      `"version": "${version}"`
    )
  } catch {
    return false
  }
}

/** Installs the original where it is missing. A text says in one line why that was not possible. */
export const install = async (): Promise<string | undefined> => {
  if (installed()) return undefined
  mkdirSync(folder, { recursive: true })
  writeFileSync(
    path.join(folder, "package.json"),
    `${JSON.stringify({ private: true, dependencies: { [name]: version } })}\n`
  )
  try {
    // No scripts: what is used of it needs none of its own.
    await execute("npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], {
      cwd: folder,
      timeout: 600_000,
      shell: process.platform === "win32"
    })
  } catch (error) {
    return `cannot install ${name} from the npm registry: ${String(error).split("\n")[0]}`
  }
  return installed() ? undefined : `the npm registry did not give ${name} ${version}`
}

/** What the original makes of these cases, in a process with a home of its own. */
export const original = async (cases: ReadonlyArray<GeminiCase>): Promise<ReadonlyArray<OriginalRun>> => {
  const home = mkdtempSync(path.join(process.env["PALIMPSEST_TEST_FOLDER"] ?? tmpdir(), "original-"))
  const [given, made] = [path.join(home, "cases.json"), path.join(home, "results.json")]
  writeFileSync(given, JSON.stringify(cases))
  const script = path.join(import.meta.dirname, "geminiOriginal.ts")
  await execute(process.execPath, [script, folder, given, made], {
    env: {
      PATH: process.env["PATH"] ?? "",
      HOME: home,
      USERPROFILE: home,
      GEMINI_CLI_HOME: home,
      TMPDIR: home,
      TMP: home,
      TEMP: home
    },
    maxBuffer: 1e8
  })
  const results: ReadonlyArray<OriginalRun> = JSON.parse(readFileSync(made, "utf8"))
  rmSync(home, { recursive: true, force: true })
  return results
}
