import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFileSync } from "node:child_process"
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import path from "node:path"
import { program } from "../cli/program.ts"
import { newFolder } from "../support/paths.ts"
import { sessionText } from "../support/sessions.ts"
import { type FakeProviders, startFakeProviders } from "./FakeProviders.ts"
import { programs } from "./Programs.ts"

/** Compactions of the programs themselves, with what `install` puts into their settings: what their models see afterwards. */

const folder = newFolder("compaction-")
const { bundle } = await Effect.runPromise(program)
const bin = path.join(folder, "bin")

let server: FakeProviders

beforeAll(async () => {
  mkdirSync(bin, { recursive: true })
  const command = path.join(bin, "palimpsest")
  writeFileSync(command, `#!/bin/sh\nexec "${process.execPath}" "${bundle}" "$@"\n`)
  chmodSync(command, 0o755)
  server = await startFakeProviders()
})

afterAll(async () => {
  await server.close()
  rmSync(folder, { recursive: true, force: true })
})

const palimpsest = (cwd: string, home: string, ...args: ReadonlyArray<string>): string =>
  execFileSync(process.execPath, [bundle, ...args], {
    cwd,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
    env: { PATH: process.env["PATH"] ?? "", HOME: home, CODEX_HOME: path.join(home, "codex"), PALIMPSEST_HOME: home }
  })

/** The recorded conversation for an agent, a home, and a folder to work in with what `install` writes there. */
const installed = (agent: string) => {
  const home = mkdtempSync(path.join(folder, `${agent}-`))
  const work = path.join(home, "work")
  mkdirSync(work)
  const recorded = path.join(home, "recorded.jsonl")
  writeFileSync(recorded, sessionText("claude-code-subagent"))
  const file = path.join(home, "session.jsonl")
  palimpsest(work, home, "compress", recorded, "--out", file, "--to", agent, "--threshold", "1")
  palimpsest(work, home, "install", agent, "--yes")
  return { home, work, file }
}

const programOf = (name: string) => programs.find((one) => one.name === name) ?? assert.fail(name)
const withOurs = {
  PATH: [bin, path.dirname(process.execPath), process.env["PATH"] ?? ""].join(path.delimiter),
  // Settings are read before the arguments.
  GEMINI_CLI_TRUST_WORKSPACE: "true"
}
const origin = "Taken from the record of this conversation by a program, without a model"

describe("a compaction of the program itself", () => {
  it("Codex: the request after it holds what the summary lost", { timeout: 300_000 }, async () => {
    const { file, home } = installed("codex")
    const args = ["--dangerously-bypass-hook-trust", "-c", "model_auto_compact_token_limit=100"]
    const ran = await programOf("codex").resume(file, "What comes next?", home, server, { args, env: withOurs })
    assert.strictEqual(ran.status, 0, ran.output.slice(-2_000))
    const last = JSON.stringify(ran.requests.at(-1)?.body)
    assert.include(last, origin)
    assert.notInclude(last, "Full hook output saved")
  })

  it(
    "Claude Code: its summary is asked for with our focus, and what it lost follows",
    { timeout: 300_000 },
    async () => {
      const { file, home } = installed("claude")
      const claude = programOf("claude")
      const compacted = await claude.resume(file, "/compact", home, server, { env: withOurs })
      assert.strictEqual(compacted.status, 0, compacted.output.slice(-2_000))
      const asked = JSON.stringify(compacted.requests.at(-1)?.body)
      assert.include(asked, "Say of each of these files what was changed and why")
      const projects = path.join(home, "config", "projects")
      const [log = ""] = readdirSync(projects, { recursive: true })
        .map(String)
        .filter((name) => name.endsWith(".jsonl"))
      cpSync(path.join(projects, log), file)
      const next = await claude.resume(file, "What comes next?", home, server, { env: withOurs })
      const told = JSON.stringify(next.requests.at(-1)?.body)
      assert.include(told, origin)
      // The agent can ask for the rest over MCP. Claude Code 2.1.332 names such tools first, and declares them when they are wanted.
      assert.include(told, "mcp__palimpsest__recall")
    }
  )

  it("Pi: its summary is ours, and no model is asked", { timeout: 300_000 }, async () => {
    const { file, home } = installed("pi")
    const ran = await programOf("pi").resume(file, "", home, server, { env: withOurs, input: `{"type":"compact"}\n` })
    const answer =
      ran.output.split("\n").find((line) => line.includes('"command":"compact"')) ?? assert.fail(ran.output)
    const { data, success }: { success: boolean; data: { summary: string; firstKeptEntryId: string } } =
      JSON.parse(answer)
    assert.isTrue(success, answer)
    assert.isTrue(data.summary.startsWith(origin))
    assert.deepStrictEqual(ran.requests, [])
    const recorded = readFileSync(path.join(home, "session.jsonl"), "utf8")
    const [line = ""] = recorded.split("\n").filter((one) => one.includes('"type":"compaction"'))
    assert.deepInclude(JSON.parse(line), {
      summary: data.summary,
      firstKeptEntryId: data.firstKeptEntryId,
      fromHook: true
    })
  })

  it("Gemini CLI: the next prompt holds what the summary lost, once", { timeout: 300_000 }, async () => {
    const { file, home } = installed("gemini")
    const gemini = programOf("gemini")
    const settings = { model: { name: "gemini-2.5-pro", compressionThreshold: 0.000_001 } }
    const first = await gemini.resume(file, "What comes next?", home, server, { env: withOurs, settings })
    assert.strictEqual(first.status, 0, first.output.slice(-2_000))
    const chats = path.join(home, ".gemini", "tmp", "work", "chats")
    const [chat = ""] = readdirSync(chats).filter((name) => name.endsWith("l"))
    cpSync(path.join(chats, chat), file)
    assert.include(readFileSync(file, "utf8"), '"$set":{"messages"')
    const second = await gemini.resume(file, "And then?", home, server, { env: withOurs })
    assert.include(JSON.stringify(second.requests.at(-1)?.body), origin)
    cpSync(path.join(chats, chat), file)
    const third = await gemini.resume(file, "And after that?", home, server, { env: withOurs })
    assert.strictEqual(JSON.stringify(third.requests.at(-1)?.body).split(origin).length - 1, 1)
  })
})
