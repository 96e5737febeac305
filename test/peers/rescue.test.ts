import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { breaks } from "../support/brokenSessions.ts"
import { sessionText } from "../support/sessions.ts"
import { type FakeProviders, startFakeProviders } from "./FakeProviders.ts"
import { programs } from "./Programs.ts"

/** Broken sessions that `rescue` and `resume --in` wrote, opened by the programs that they were written for. */

const folder = mkdtempSync(path.join(process.env["PALIMPSEST_TEST_FOLDER"] ?? tmpdir(), "rescue-"))
const bundle = path.join(folder, "palimpsest.mjs")
const root = path.join(import.meta.dirname, "..", "..")
const lines = sessionText("claude-code-subagent").trimEnd().split("\n")

let server: FakeProviders

beforeAll(async () => {
  mkdirSync(folder, { recursive: true })
  execFileSync(process.execPath, [path.join(root, "scripts", "build.mjs"), bundle], { stdio: "ignore" })
  mkdirSync(path.join(folder, ".gemini"))
  writeFileSync(path.join(folder, ".gemini", "projects.json"), JSON.stringify({ projects: { [folder]: "work" } }))
  server = await startFakeProviders()
})

afterAll(async () => {
  await server.close()
  rmSync(folder, { recursive: true, force: true })
})

/** The file that is written for an agent. */
const carried = (name: string, agent: string): string => {
  const file = path.join(folder, `${name.replaceAll(" ", "-")}.jsonl`)
  writeFileSync(file, breaks[name]?.(lines) ?? "")
  const args = [bundle, "resume", file, "--in", agent, "--below", "8k", "--folder", folder, "--json"]
  const report: { file: string } = JSON.parse(
    execFileSync(process.execPath, args, {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
      env: {
        PATH: process.env["PATH"] ?? "",
        HOME: folder,
        PALIMPSEST_HOME: path.join(folder, "home"),
        GEMINI_CLI_HOME: folder
      }
    })
  )
  return report.file
}

for (const program of programs) {
  describe(`${program.title} opens a session`, () => {
    for (const name of Object.keys(breaks)) {
      it(name, { timeout: 300_000 }, async () => {
        const home = mkdtempSync(path.join(folder, `${program.name}-`))
        const ran = await program.resume(carried(name, program.name), "What comes next?", home, server)
        assert.strictEqual(ran.status, 0, ran.output.slice(-500))
        const sent = JSON.stringify(ran.requests)
        assert.include(sent, "What comes next?")
        assert.include(sent, "state_snapshot")
        assert.isBelow(sent.length, 1_000_000)
        assert.isNotEmpty(readFileSync(path.join(folder, `${name.replaceAll(" ", "-")}.jsonl`)))
      })
    }
  })
}
