import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import {
  appendFileSync,
  mkdirSync,
  readdirSync,
  mkdtempSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { wordsQuery } from "../../../src/domain/transcripts/facts/SessionSearch.ts"
import * as FileAgentSessions from "../../../src/layers/transcripts/FileAgentSessions.ts"
import * as SqliteSessionIndex from "../../../src/layers/transcripts/SqliteSessionIndex.ts"
import { Environment } from "../../../src/services/platform/Environment.ts"
import { SessionFiles } from "../../../src/services/session/SessionFiles.ts"
import { AgentSessions, type SessionFile } from "../../../src/services/transcripts/AgentSessions.ts"
import { listSessions, searchSessions } from "../../../src/services/transcripts/FindSessions.ts"
import { SessionIndex } from "../../../src/services/transcripts/SessionIndex.ts"

const withFolder = <A, E>(use: (home: string) => Effect.Effect<A, E>) =>
  Effect.acquireUseRelease(
    Effect.sync(() => mkdtempSync(path.join(tmpdir(), "index-"))),
    use,
    (home) => Effect.sync(() => rmSync(home, { recursive: true }))
  )

const agents = (home: string) =>
  FileAgentSessions.layer.pipe(
    Layer.provide([
      Layer.succeed(Environment, {
        variables: Effect.succeed({
          CLAUDE_CONFIG_DIR: home,
          CODEX_HOME: home,
          GEMINI_CLI_HOME: home,
          XDG_DATA_HOME: home
        })
      }),
      Layer.succeed(SessionFiles, { folder: `${home}/own`, of: (id) => `${home}/own/${id}.jsonl` })
    ])
  )

const kept = (home: string) => SqliteSessionIndex.layer(`${home}/index`).pipe(Layer.provideMerge(agents(home)))
const none = (home: string) => SessionIndex.layerReading.pipe(Layer.provideMerge(agents(home)))

/** The database of the index; its name has the version. */
const databaseIn = (home: string): string => {
  const name = readdirSync(`${home}/index`).find((each) => each.endsWith(".sqlite"))
  return `${home}/index/${name}`
}

let count = 0
const user = (text: string) => {
  count += 1
  const message = { role: "user", content: text }
  return `${JSON.stringify({ type: "user", uuid: `u${count}`, sessionId: "s", cwd: "/p", timestamp: "2026-02-03T10:00:00Z", message })}\n`
}
const answer = (id: string, text: string, tokens: number) => {
  const usage = { input_tokens: tokens, output_tokens: 1 }
  const message = { id, role: "assistant", model: "claude-sonnet-4-5", content: [{ type: "text", text }], usage }
  return `${JSON.stringify({ type: "assistant", uuid: id, sessionId: "s", timestamp: "2026-02-03T10:00:01Z", message })}\n`
}

const all = { agents: undefined, folder: undefined, since: undefined }

/** The texts that a search shows. */
const found = Effect.fnUntraced(function* (text: string) {
  const { problems, sessions } = yield* listSessions(all)
  const { found } = yield* searchSessions(sessions, wordsQuery(text), { sessions: 10, hits: 10 })
  return { problems, texts: found.flatMap(({ hits }) => hits.map(({ line, text: shown }) => `${line} ${shown}`)) }
})

const search = (home: string, text: string) =>
  Effect.gen(function* () {
    const indexed = yield* Effect.provide(found(text), kept(home))
    const { texts } = yield* Effect.provide(found(text), none(home))
    assert.deepStrictEqual(indexed.texts, texts)
    return texts
  })

describe("SqliteSessionIndex", () => {
  it.effect("finds the same as reading everything, while files grow, are rewritten and vanish", () =>
    withFolder((home) =>
      Effect.gen(function* () {
        yield* TestClock.setTime(Date.now() + 60_000)
        const folder = `${home}/projects/-p`
        mkdirSync(folder, { recursive: true })
        const [one, other] = [`${folder}/one.jsonl`, `${folder}/other.jsonl`]
        writeFileSync(one, user("the tide of Brest") + answer("m1", "PALIMPSEST_HOME is set, señor", 10))
        writeFileSync(other, `${user("潮汐表")}not json\n{"half`)
        assert.deepStrictEqual(yield* search(home, "tide"), ["1 the tide of Brest"])
        assert.deepStrictEqual(yield* search(home, "palimpsest_h Señor"), ["2 PALIMPSEST_HOME is set, señor"])
        assert.deepStrictEqual(yield* search(home, '"tide of"'), ["1 the tide of Brest"])
        assert.deepStrictEqual(yield* search(home, "汐"), ["1 潮汐表"])
        assert.deepStrictEqual(yield* search(home, "ide"), [])
        assert.deepStrictEqual(yield* search(home, "brest palimpsest"), [])
        appendFileSync(one, answer("m1", "the tide again", 10) + answer("m2", "tides", 30))
        assert.deepStrictEqual(yield* search(home, "tide"), ["1 the tide of Brest", "3 the tide again", "4 tides"])
        const requests = yield* SessionIndex.use((index) =>
          Effect.flatMap(
            AgentSessions.use((sessions) => sessions.files(["claude"])),
            ({ files }) => index.requests(files)
          )
        ).pipe(Effect.provide(kept(home)))
        assert.deepStrictEqual(
          requests.get(one)?.map(({ id, usage }) => [id, usage.prompt]),
          [
            ["m1", 10],
            ["m2", 30]
          ]
        )
        appendFileSync(other, '": 1}\n' + user("whole now"))
        assert.deepStrictEqual(yield* search(home, "whole"), ["4 whole now"])
        writeFileSync(
          one,
          user("rotated to a longer text than there was, so that only its first bytes tell") +
            user("ebb") +
            user("flow") +
            user("x".repeat(500))
        )
        assert.deepStrictEqual(yield* search(home, "tide"), [])
        assert.deepStrictEqual(yield* search(home, "ebb"), ["2 ebb"])
        writeFileSync(one, user("cut"))
        assert.deepStrictEqual(yield* search(home, "ebb"), [])
        rmSync(one)
        assert.deepStrictEqual(yield* search(home, "cut"), [])
        assert.strictEqual(statSync(`${home}/index`).mode & 0o777, 0o700)
        assert.strictEqual(statSync(databaseIn(home)).mode & 0o777, 0o600)
      })
    )
  )

  it.effect("looks again at a file that changed in the tick in which it was read, and rebuilds a damaged index", () =>
    withFolder((home) =>
      Effect.gen(function* () {
        const file = `${home}/projects/-p/one.jsonl`
        mkdirSync(path.dirname(file), { recursive: true })
        const at = new Date(1_700_000_000_000)
        const write = (text: string) => {
          writeFileSync(file, text)
          utimesSync(file, at, at)
        }
        yield* TestClock.setTime(at.getTime())
        write(user("one"))
        assert.deepStrictEqual(yield* search(home, "one"), ["1 one"])
        write(user("two"))
        assert.deepStrictEqual(yield* search(home, "two"), ["1 two"])
        writeFileSync(databaseIn(home), "no database".repeat(1_000))
        assert.deepStrictEqual(yield* search(home, "two"), ["1 two"])
      })
    )
  )

  it.effect("leaves out a file that cannot be read, and continues", () =>
    withFolder((home) =>
      Effect.gen(function* () {
        mkdirSync(`${home}/projects/-p`, { recursive: true })
        writeFileSync(`${home}/projects/-p/bad.jsonl`, "\0\0")
        writeFileSync(`${home}/projects/-p/good.jsonl`, user("good"))
        const { problems, texts } = yield* Effect.provide(found("good"), kept(home))
        assert.deepStrictEqual(texts, ["1 good"])
        assert.deepStrictEqual(problems, [
          { path: `${home}/projects/-p/bad.jsonl`, message: "is binary; expected UTF-8 text" }
        ])
      })
    )
  )

  it.effect("lists what it knows while another process writes to the index", () =>
    withFolder((home) =>
      Effect.gen(function* () {
        mkdirSync(`${home}/projects/-p`, { recursive: true })
        writeFileSync(`${home}/projects/-p/one.jsonl`, user("one"))
        yield* search(home, "one")
        const { DatabaseSync } = process.getBuiltinModule("node:sqlite")
        const other = new DatabaseSync(databaseIn(home))
        other.exec("begin immediate")
        writeFileSync(`${home}/projects/-p/two.jsonl`, user("one more"))
        const { problems, texts } = yield* Effect.provide(found("one"), kept(home))
        other.close()
        assert.deepStrictEqual(texts, ["1 one"])
        assert.deepStrictEqual(problems, [
          {
            path: "the index of sessions",
            message: "cannot be updated now (database is locked); what is new is missing"
          }
        ])
      })
    )
  )

  it.effect("reads opencode's database", () =>
    withFolder((home) =>
      Effect.gen(function* () {
        mkdirSync(`${home}/opencode`)
        const { DatabaseSync } = process.getBuiltinModule("node:sqlite")
        const database = new DatabaseSync(`${home}/opencode/opencode.db`)
        database.exec(`
          create table session (id text, project_id text, parent_id text, directory text, title text, time_created int, time_updated int);
          create table message (id text, session_id text, time_created int, time_updated int, data text);
          create table part (id text, message_id text, session_id text, time_created int, time_updated int, data text);
          insert into session values ('ses_1', 'p', null, '/p/tides', 'Tides', 1, 2000);
          insert into message values ('msg_1', 'ses_1', 1000, 1000, '{"role":"user"}');
          insert into message values ('msg_2', 'ses_1', 1500, 1500, '{"role":"assistant","modelID":"claude-sonnet-4-5","cost":0.25,"tokens":{"input":5,"output":7,"reasoning":2,"cache":{"read":90,"write":0}}}');
          insert into part values ('prt_1', 'msg_1', 'ses_1', 1000, 1000, '{"type":"text","text":"when is high water"}');
          insert into part values ('prt_2', 'msg_2', 'ses_1', 1500, 1500, '{"type":"tool","tool":"bash","state":{"output":"at noon"}}');
        `)
        database.close()
        const { sessions } = yield* Effect.provide(listSessions(all), kept(home))
        const session = sessions.find(({ agent }) => agent === "opencode") ?? assert.fail("no session")
        assert.deepInclude(session, {
          title: "Tides",
          folder: "/p/tides",
          prompts: 1,
          path: `${home}/opencode/opencode.db#ses_1`
        })
        assert.deepStrictEqual(yield* search(home, "high noon"), [])
        assert.deepStrictEqual(yield* search(home, "noon"), ["5 at noon"])
        const files: ReadonlyArray<SessionFile> = session.files
        const requests = yield* SessionIndex.use((index) => index.requests(files)).pipe(Effect.provide(kept(home)))
        const request = requests.get(session.path)?.[0]
        assert.deepStrictEqual([request?.usage.cost, request?.model], [0.25, "claude-sonnet-4-5"])
      })
    )
  )
})
