import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { newScan } from "../../../src/domain/transcripts/facts/ScanState.ts"
import { scanRecord } from "../../../src/domain/transcripts/facts/SessionScan.ts"
import { searchedTexts } from "../../../src/domain/transcripts/facts/SessionSearch.ts"
import * as FileAgentSessions from "../../../src/layers/transcripts/FileAgentSessions.ts"
import { Environment } from "../../../src/services/platform/Environment.ts"
import { SessionFiles } from "../../../src/services/session/SessionFiles.ts"
import { AgentSessions, type SessionFile } from "../../../src/services/transcripts/AgentSessions.ts"
import { root } from "../../support/paths.ts"

const uuid = "019c2a10-77aa-7d01-9f3e-0a1b2c3d4e5f"

const put = (file: string, text: string) => {
  mkdirSync(path.dirname(file), { recursive: true })
  writeFileSync(file, text)
}

/** A machine with one session of each agent that keeps files, some of them broken. */
const withMachine = <A, E>(use: (home: string) => Effect.Effect<A, E, AgentSessions>) =>
  Effect.acquireUseRelease(
    Effect.sync(() => mkdtempSync(path.join(tmpdir(), "agents-"))),
    (home) => {
      const fixture = (name: string) => path.join(root, "test/fixtures", name)
      const claude = `${home}/claude/projects/-p`
      mkdirSync(claude, { recursive: true })
      cpSync(path.join(root, "examples/claude-code-subagent.jsonl"), `${claude}/${uuid}.jsonl`)
      put(
        `${claude}/half.jsonl`,
        '{"type":"user","uuid":"a","sessionId":"s","message":{"role":"user","content":"hi"}}\n{"type":"us'
      )
      put(`${claude}/binary.jsonl`, "\0\0\0")
      mkdirSync(`${home}/codex/sessions/2026/02/03`, { recursive: true })
      cpSync(fixture("codex/codex-today.jsonl"), `${home}/codex/sessions/2026/02/03/rollout-x-${uuid}.jsonl`)
      put(`${home}/gemini/.gemini/tmp/slug/.project_root`, "/work/tides\n")
      const chats = `${home}/gemini/.gemini/tmp/slug/chats`
      mkdirSync(chats)
      for (const name of ["session-2026-02-03T10-15-5f0c2d1a.json", "session-2026-08-21T08-00-c0ffee00.jsonl"]) {
        cpSync(fixture(`gemini/${name}`), `${chats}/${name}`)
      }
      const variables = {
        CLAUDE_CONFIG_DIR: `${home}/claude`,
        CODEX_HOME: `${home}/codex`,
        GEMINI_CLI_HOME: `${home}/gemini`,
        PI_CODING_AGENT_DIR: `${home}/pi`,
        XDG_DATA_HOME: `${home}/data`
      }
      const layer = FileAgentSessions.layer.pipe(
        Layer.provide([
          Layer.succeed(Environment, { variables: Effect.succeed(variables) }),
          Layer.succeed(SessionFiles, { folder: `${home}/own`, of: (id) => `${home}/own/${id}.jsonl` })
        ])
      )
      return Effect.provide(use(home), layer)
    },
    (home) => Effect.sync(() => rmSync(home, { recursive: true }))
  )

const scanned = Effect.fnUntraced(function* (file: SessionFile) {
  const sessions = yield* AgentSessions
  const state = newScan()
  const texts: Array<string> = []
  const read = yield* sessions.records(file, { from: 0, line: 1 }, (record) => {
    scanRecord(state, file.agent, record)
    texts.push(...searchedTexts(record))
  })
  return { ...state, read, texts: texts.join("\n") }
})

describe("FileAgentSessions", () => {
  it.effect("finds the sessions of every agent, and what each says about itself", () =>
    withMachine(
      Effect.fnUntraced(function* () {
        const { files, problems } = yield* AgentSessions.use((sessions) => sessions.files())
        assert.deepStrictEqual(problems, [])
        const facts: Record<string, unknown> = {}
        for (const file of files) {
          if (file.id === "half" || file.id === "binary") continue
          const { facts: found, requests } = yield* scanned(file)
          const { folder = file.folder, prompts, title } = found
          const prompt = requests.reduce((sum, { usage }) => sum + usage.prompt, 0)
          facts[`${file.agent} ${path.extname(file.path)}`] = {
            folder,
            title: title?.slice(0, 30),
            prompts,
            prompt,
            requests: requests.length
          }
        }
        assert.deepStrictEqual(facts, expectedFacts)
      })
    )
  )

  it.effect("reads the complete part of a half-written file, and refuses a binary one", () =>
    withMachine(
      Effect.fnUntraced(function* () {
        const { files } = yield* AgentSessions.use((sessions) => sessions.files(["claude"]))
        const named = (id: string) => files.find((file) => file.id === id) ?? assert.fail(id)
        const half = yield* scanned(named("half"))
        assert.strictEqual(half.texts, "hi")
        assert.deepStrictEqual(half.read, { end: 84, line: 2, broken: 0 })
        const refused = yield* Effect.flip(scanned(named("binary")))
        assert.match(refused.message, /binary\.jsonl: is binary; expected UTF-8 text$/)
      })
    )
  )

  it.effect.skipIf(process.getuid?.() === 0)("names a folder that cannot be read, and lists the others", () =>
    withMachine(
      Effect.fnUntraced(function* (home) {
        chmodSync(`${home}/claude/projects/-p`, 0o000)
        const { files, problems } = yield* AgentSessions.use((sessions) => sessions.files())
        chmodSync(`${home}/claude/projects/-p`, 0o700)
        assert.deepStrictEqual(problems, [{ path: `${home}/claude/projects/-p`, message: "permission denied" }])
        assert.strictEqual(files.length, 3)
      })
    )
  )
})

const expectedFacts = {
  "claude .jsonl": {
    folder: "/home/marco/projects/spotter",
    title: "/handgemacht:create-beads webs",
    prompts: 2,
    prompt: 564_356,
    requests: 17
  },
  "codex .jsonl": {
    folder: "/home/dev/tides",
    title: "The table of tides for Brest i",
    prompts: 3,
    prompt: 37_465,
    requests: 3
  },
  "gemini .json": {
    folder: "/work/tides",
    title: "Finds out why a sum of large n",
    prompts: 2,
    prompt: 17_124,
    requests: 2
  },
  "gemini .jsonl": { folder: "/work/tides", title: "Renames a module", prompts: 4, prompt: 11_100, requests: 3 }
}
