import { execFile } from "node:child_process"
import { readFileSync, rmSync, writeFileSync } from "node:fs"
import path from "node:path"
import { promisify } from "node:util"
import { newFolder } from "../support/paths.ts"
import type { GeminiCase, OriginalRun } from "./GeminiCase.ts"
import { peersFolder } from "./install.ts"

const execute = promisify(execFile)

/** What the original makes of these cases, in a process with a home of its own. */
export const original = async (cases: ReadonlyArray<GeminiCase>): Promise<ReadonlyArray<OriginalRun>> => {
  const home = newFolder("original-")
  const [given, made] = [path.join(home, "cases.json"), path.join(home, "results.json")]
  writeFileSync(given, JSON.stringify(cases))
  const script = path.join(import.meta.dirname, "geminiOriginal.ts")
  await execute(process.execPath, [script, peersFolder(), given, made], {
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
