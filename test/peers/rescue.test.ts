import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import path from "node:path"
import { pathToFileURL } from "node:url"
import { entries } from "../../src/domain/conversation/Conversation.ts"
import { projectMessages } from "../../src/domain/conversation/Projection.ts"
import { carryOver } from "../../src/services/transcripts/CarryOver.ts"
import { Transcripts } from "../../src/services/transcripts/Transcripts.ts"
import { program } from "../cli/program.ts"
import { breaks } from "../support/brokenSessions.ts"
import { inHome, recorded } from "../support/carriedSessions.ts"
import { newFolder } from "../support/paths.ts"
import { brokenSession, userTexts } from "../support/seededBreaks.ts"
import { sessionText } from "../support/sessions.ts"
import { type FakeProviders, startFakeProviders } from "./FakeProviders.ts"
import { packageFolder } from "./install.ts"
import { opencode, programs } from "./Programs.ts"

/** Broken sessions that `rescue` and `resume --in` wrote, opened by the programs that they were written for. */

const folder = newFolder("rescue-")
const { bundle } = await Effect.runPromise(program)
const lines = sessionText("claude-code-subagent").trimEnd().split("\n")

let server: FakeProviders

beforeAll(async () => {
  mkdirSync(folder, { recursive: true })
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

for (const program of [...programs, opencode]) {
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

/** The texts that the agent's own loader finds in a file. */
const loaders: Readonly<Record<"pi" | "gemini", (file: string) => Promise<string>>> = {
  pi: async (file) => {
    const { SessionManager } = await import(
      pathToFileURL(path.join(packageFolder("@mariozechner/pi-coding-agent"), "dist/core/session-manager.js")).href
    )
    return JSON.stringify(SessionManager.open(file).buildSessionContext().messages)
  },
  gemini: async (file) => {
    const core = path.join(packageFolder("@google/gemini-cli-core"), "dist/src")
    const { loadConversationRecord } = await import(
      pathToFileURL(path.join(core, "services/chatRecordingService.js")).href
    )
    const { convertSessionToClientHistory } = await import(pathToFileURL(path.join(core, "utils/sessionUtils.js")).href)
    const { messages } = await loadConversationRecord(file)
    return JSON.stringify(convertSessionToClientHistory(messages))
  }
}

describe("100 sessions broken by seeds", () => {
  it.effect("are opened by the loaders of Pi and Gemini CLI, with images of 50 MB and 100,000 records", () =>
    inHome((home) =>
      Effect.gen(function* () {
        writeFileSync(`${home}/projects.json`, JSON.stringify({ projects: { "/work/here": "here" } }))
        const sessions = yield* recorded(home)
        const transcripts = yield* Transcripts
        for (let seed = 0; seed < 100; seed += 1) {
          // Of each format, one with images and one with many records.
          const isLarge = seed >= 28 && seed < 36
          const sizes = isLarge ? { image: 67_000_000, records: 100_000 } : { image: 1_100_000, records: 1_000 }
          const broken = brokenSession(seed, sessions, sizes)
          const file = `${home}/session.jsonl`
          writeFileSync(file, broken.text)
          const loaded = yield* transcripts.load(file, { lenient: true })
          const kept = new Set(
            entries(loaded.session.conversation).flatMap(({ content }) =>
              content.parts.map(({ text = "" }) => text.trim())
            )
          )
          for (const text of userTexts(broken)) assert.isTrue(kept.has(text.trim()), `${broken.name}: ${text}`)
          for (const agent of ["pi", "gemini"] as const) {
            const carried = yield* carryOver({
              loaded,
              file,
              agent,
              from: undefined,
              below: isLarge ? 80_000 : 9_000,
              folder: "/work/here"
            })
            const read = yield* Effect.promise(() => loaders[agent](carried.file))
            const own = yield* transcripts.load(carried.file)
            for (const { content } of projectMessages(own.session.conversation)) {
              for (const { text = "" } of content.parts) {
                const line =
                  text.split("\n").find((one) => one.trim().length > 3 && !one.startsWith("[palimpsest: ")) ?? ""
                assert.include(read, JSON.stringify(line).slice(1, -1), `${broken.name}, in ${agent}`)
              }
            }
          }
        }
      })
    )
  )
})
