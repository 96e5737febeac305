import { NodeServices } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import { McpProtocol, McpTest } from "effect/ai"
import { TestClock } from "effect/testing"
import {
  appendFileSync,
  cpSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { seededRandom } from "../../../src/domain/evaluation/SeededRandom.ts"
import * as MemoryTempStore from "../../../src/layers/testing/MemoryTempStore.ts"
import { TokenCounter } from "../../../src/services/tokens/TokenCounter.ts"
import { AgentSessions, type SessionFile } from "../../../src/services/transcripts/AgentSessions.ts"
import {
  makeSessionAnswers,
  type SessionAnswers,
  type SessionScope
} from "../../../src/services/transcripts/SessionAnswers.ts"
import * as SessionMcpTools from "../../../src/services/transcripts/SessionMcpTools.ts"
import { Transcripts } from "../../../src/services/transcripts/Transcripts.ts"
import { agentRecords, type Beat, folder as tides, timeOf } from "../../support/agentRecords.ts"
import { root } from "../../support/paths.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const folder = "/home/marco/projects/spotter"

const services = Transcripts.layer.pipe(
  Layer.provideMerge(Layer.mergeAll(NodeServices.layer, TokenCounter.layerEstimate, MemoryTempStore.layer))
)

/** Sessions `new` and `old` of the folder, and one of another folder that changed last. */
const withSessions = <A, E, R>(use: (file: string) => Effect.Effect<A, E, R>) =>
  Effect.acquireUseRelease(
    Effect.sync(() => {
      const home = mkdtempSync(path.join(tmpdir(), "history-"))
      for (const id of ["new", "old"])
        cpSync(path.join(root, "examples/claude-code-subagent.jsonl"), `${home}/${id}.jsonl`)
      return home
    }),
    (home) => {
      const fileOf = (id: string, own: string, updatedAt: number): SessionFile & { readonly own: string } => ({
        agent: "claude",
        id,
        kind: "session",
        parent: undefined,
        path: `${home}/${id}.jsonl`,
        bytes: id === "other" ? 10 : statSync(`${home}/${id}.jsonl`).size,
        updatedAt,
        folder: own,
        own
      })
      const files = [fileOf("other", "/elsewhere", 3), fileOf("new", folder, 2), fileOf("old", folder, 1)]
      const agents = Layer.succeed(AgentSessions, {
        roots: Effect.succeed([]),
        files: () => Effect.succeed({ files, problems: [] }),
        records: () => Effect.succeed({ end: 0, line: 1, broken: 0 })
      })
      return Effect.provide(use(`${home}/new.jsonl`), Layer.merge(services, agents))
    },
    (home) => Effect.sync(() => rmSync(home, { recursive: true }))
  )

const scope = (options: Partial<SessionScope> = {}): SessionScope => ({
  folder,
  others: false,
  showsSecrets: false,
  ...options
})

const clientOf = Effect.fnUntraced(function* (options: Partial<SessionScope> = {}) {
  const answers = yield* makeSessionAnswers(scope(options))
  const client = yield* McpTest.makeClient(SessionMcpTools.layer(answers, options.others === true), {
    protocols: [McpProtocol.v2025_06_18]
  })
  const call = Effect.fnUntraced(function* (name: string, args: Record<string, unknown>) {
    const result = yield* client.callTool({ name, arguments: args })
    const [content] = result.content
    return { failed: result.isError === true, text: content?.type === "text" ? content.text : "" }
  })
  return { client, call }
})

const handleIn = (text: string): string => /h_[a-z2-7]{10}/.exec(text)?.[0] ?? ""

describe("the history of a session, over MCP", () => {
  it.effect("finds a text in the folder's newest session and reads it back exactly", () =>
    withSessions(() =>
      Effect.gen(function* () {
        const { call, client } = yield* clientOf()
        const { tools } = yield* client.listTools({})
        assert.deepStrictEqual(
          tools.map(({ annotations, name }) => [name, annotations?.readOnlyHint]),
          ["recall", "search_history", "what_changed", "snapshot"].map((name) => [name, true])
        )
        const found = yield* call("search_history", { pattern: "mix\\.exs" })
        const handle = handleIn(found.text)
        const whole = yield* call("recall", { handle, tokens: 20_000 })
        assert.include(whole.text, "mix.exs")
        const line = yield* call("recall", { handle, pattern: "mix\\.exs", tokens: 200 })
        assert.match(line.text, /^\d+: .*mix\.exs/)
        assert.include((yield* call("snapshot", { tokens: 800 })).text, "<user_words")
        assert.match((yield* call("what_changed", {})).text, /^Since the beginning:/)
      })
    )
  )

  it.effect("explains in one line what is wrong with a question", () =>
    withSessions(() =>
      Effect.gen(function* () {
        const { call } = yield* clientOf()
        for (const [name, args, answer] of [
          ["recall", { handle: "h_aaaaaaaaaa" }, /nothing is kept under h_aaaaaaaaaa/],
          ["what_changed", { since: "yesterday-ish" }, /since must be/],
          ["search_history", { pattern: " " }, /blank/],
          ["recall", { handle: "h_aaaaaaaaaa", session: "old" }, /only the current session/]
        ] as const) {
          const { failed, text } = yield* call(name, args)
          assert.isTrue(failed, name)
          assert.match(text, answer)
          assert.notInclude(text, "\n")
        }
      })
    )
  )

  it.effect("reads other sessions of the folder when that is allowed, and none of another folder", () =>
    withSessions(() =>
      Effect.gen(function* () {
        const { call } = yield* clientOf({ others: true })
        const { text } = yield* call("list_sessions", {})
        assert.deepStrictEqual(
          text.split("\n").map((line) => line.split("  ")[0]),
          ["new", "old"]
        )
        assert.isFalse((yield* call("search_history", { pattern: "mix", session: "old" })).failed)
        assert.isTrue((yield* call("search_history", { pattern: "mix", session: "other" })).failed)
      })
    )
  )

  it.effect("follows a file that grows, ends in half a line, or is cut off", () =>
    withSessions((file) =>
      Effect.gen(function* () {
        const { call } = yield* clientOf()
        const told = yield* call("search_history", { pattern: "a quite new wish" })
        assert.include(told.text, "No match")
        const message = {
          type: "user",
          uuid: "n",
          parentUuid: null,
          sessionId: "s",
          message: { role: "user", content: "a quite new wish" }
        }
        appendFileSync(file, `${JSON.stringify(message)}\n{"type":"us`)
        assert.isNotEmpty(handleIn((yield* call("search_history", { pattern: "a quite new wish" })).text))
        truncateSync(file, 4_000)
        assert.include((yield* call("search_history", { pattern: "a quite new wish" })).text, "No match")
      })
    )
  )

  it.effect("reads a file again that was rotated or is being written, and recalls what it held", () =>
    withSessions((file) =>
      Effect.gen(function* () {
        const { call } = yield* clientOf()
        const search = (pattern: string) => call("search_history", { pattern })
        const handle = handleIn((yield* search("mix\\.exs")).text)
        const known = (yield* call("recall", { handle, tokens: 20_000 })).text
        const lines = readFileSync(file, "utf8").split("\n")

        // The agent moves the file away, and begins another one under its name.
        renameSync(file, `${file}.old`)
        const gone = yield* search("mix\\.exs")
        assert.isTrue(gone.failed)
        assert.include(gone.text, "cannot be read")
        assert.strictEqual((yield* call("recall", { handle, tokens: 20_000 })).text, known)
        const said = (content: string) =>
          JSON.stringify({ type: "user", uuid: content, sessionId: "s", message: { role: "user", content } })
        writeFileSync(file, `${said("begin anew")}\n`)
        assert.isNotEmpty(handleIn((yield* search("begin anew")).text))
        assert.include((yield* search("mix\\.exs")).text, "No match")

        // A record that is cut within a character.
        const half = Buffer.from(said("é".repeat(40))).subarray(0, -20)
        writeFileSync(file, Buffer.concat([Buffer.from(`${said("begin anew")}\n`), half]))
        assert.isNotEmpty(handleIn((yield* search("begin anew")).text))
        appendFileSync(file, Buffer.from(said("é".repeat(40))).subarray(-20))
        assert.isNotEmpty(handleIn((yield* search("éé")).text))

        writeFileSync(file, "")
        const empty = yield* search("begin")
        assert.notInclude(empty.text, "\n")
        writeFileSync(file, lines.join("\n"))
        assert.strictEqual((yield* call("recall", { handle, tokens: 20_000 })).text, known)
      })
    )
  )
})

/** A session of the folder: its agent, and what it recorded. */
interface Recorded {
  readonly id: string
  readonly agent: "claude" | "codex" | "gemini" | "pi"
  readonly beats: ReadonlyArray<Beat>
}

/** Sessions in files of a home of their own, the newest first, and how often each was read. */
const withRecorded = <A, E, R>(
  sessions: ReadonlyArray<Recorded>,
  use: (scene: {
    readonly file: (id: string) => string
    readonly write: (recorded: Recorded, at: number) => void
    readonly reads: Map<string, number>
  }) => Effect.Effect<A, E, R>
) =>
  Effect.acquireUseRelease(
    Effect.sync(() => mkdtempSync(path.join(tmpdir(), "history-"))),
    (home) => {
      const file = (id: string) => `${home}/${id}.jsonl`
      const write = ({ agent, beats, id }: Recorded, at: number): void => {
        const records = agentRecords[agent].records(beats)
        writeFileSync(file(id), records.map((record) => `${JSON.stringify(record)}\n`).join(""))
        utimesSync(file(id), at, at)
      }
      for (const [at, one] of sessions.entries()) write(one, 1_000 - at)
      const reads = new Map<string, number>()
      const listed = Effect.sync(() => ({
        files: sessions.map(({ agent, id }): SessionFile => {
          const { mtimeMs: updatedAt, size: bytes } = statSync(file(id))
          return { agent, id, kind: "session", parent: undefined, path: file(id), bytes, updatedAt, folder: tides }
        }),
        problems: []
      }))
      const agents = Layer.succeed(AgentSessions, {
        roots: Effect.succeed([]),
        files: () => listed,
        records: () => Effect.succeed({ end: 0, line: 1, broken: 0 })
      })
      const counting = Layer.effect(
        Transcripts,
        Effect.map(Transcripts, (transcripts) => ({
          ...transcripts,
          load: (...asked: Parameters<typeof transcripts.load>) => {
            reads.set(asked[0], (reads.get(asked[0]) ?? 0) + 1)
            return transcripts.load(...asked)
          }
        }))
      ).pipe(Layer.provideMerge(services))
      return Effect.provide(use({ file, write, reads }), Layer.merge(counting, agents))
    },
    (home) => Effect.sync(() => rmSync(home, { recursive: true }))
  )

/** The agent writes a file, and is told that it did. */
const writing = (agent: Recorded["agent"], ...names: ReadonlyArray<string>): ReadonlyArray<Beat> =>
  names.flatMap((name): ReadonlyArray<Beat> => [
    { answer: `I write ${name}.`, calls: [[`c-${name}`, ...agentRecords[agent].write(`${tides}/${name}`)]] },
    { result: `c-${name}`, words: "ok" }
  ])

const tidesScope = scope({ folder: tides, others: true })

it.effect.each(["claude", "codex", "gemini", "pi"] as const)(
  "what changed %s: since the last of two compactions, an entry, a time or an age, and nothing before",
  (agent) => {
    const context =
      agent === "gemini" ? "<session_context>x</session_context>" : "<environment_context>x</environment_context>"
    const beats = [
      { user: context },
      { user: "Write them all." },
      ...writing(agent, "a.ts"),
      { compacted: "a.ts is written." },
      ...writing(agent, "b.ts"),
      { compacted: "a.ts and b.ts are written." },
      ...writing(agent, "c.ts", "d.ts")
    ]
    return withRecorded([{ id: "one", agent, beats }], () =>
      Effect.gen(function* () {
        const { changes } = yield* makeSessionAnswers(tidesScope)
        const files = (since?: string) =>
          Effect.map(changes(since, undefined), (text) => text.match(/[a-d]\.ts(?= \()/g) ?? [])
        assert.deepStrictEqual(yield* files(), ["c.ts", "d.ts"])
        assert.deepStrictEqual(yield* files(" "), ["c.ts", "d.ts"])
        assert.deepStrictEqual(yield* files("e1"), ["a.ts", "b.ts", "c.ts", "d.ts"])
        // The beat that writes d.ts is the second last.
        assert.deepStrictEqual(yield* files(new Date(timeOf(beats.length - 3)).toISOString()), ["d.ts"])
        yield* TestClock.setTime(timeOf(beats.length - 3) + 60_000)
        assert.deepStrictEqual(yield* files("1m"), ["d.ts"])
        yield* TestClock.setTime(timeOf(beats.length))
        assert.deepStrictEqual(yield* files("1d"), ["a.ts", "b.ts", "c.ts", "d.ts"])
        assert.strictEqual(yield* changes("e99", undefined), "nothing changed since e99")
      })
    )
  }
)

describe("several sessions", () => {
  const said = (id: string, ...words: ReadonlyArray<string>): Recorded => ({
    id,
    agent: "claude",
    beats: words.map((user) => ({ user }))
  })

  it.effect("are named by the beginning of an id; a whole id is meant before a longer one", () =>
    withRecorded([said("newer", "the words of newer"), said("new", "the words of new"), said("old", "older")], () =>
      Effect.gen(function* () {
        const { search, snapshot } = yield* makeSessionAnswers(tidesScope)
        assert.include(yield* search("words of new", 500, "new"), "the words of new")
        assert.notInclude(yield* search("words of new", 500, " new "), "newer")
        assert.include(yield* search("words of", 500, "newe"), "newer")
        assert.include(yield* snapshot(800, undefined), "newer", "the current one changed last")
        const unclear = yield* Effect.flip(search("words", 500, "ne"))
        assert.include(unclear.message, "the beginning of 2 sessions")
        assert.include((yield* Effect.flip(search("words", 500, "x"))).message, "no session x")
      })
    )
  )

  it.effect("answer from memory as a fresh look does, whatever was read and written in between", () => {
    const ids = ["a", "b", "c"]
    return withRecorded(
      ids.map((id) => said(id, `tide of ${id} 0`)),
      ({ file, reads, write }) =>
        Effect.gen(function* () {
          const answers = yield* makeSessionAnswers(tidesScope)
          const ask = (from: SessionAnswers, id: string) =>
            Effect.all([from.search("tide", 500, id), from.snapshot(800, id), from.changes(undefined, id)])
          const random = seededRandom(3)
          const pick = <A>(all: ReadonlyArray<A>) => all[Math.floor(random() * all.length)]
          for (let round = 1; round <= 12; round += 1) {
            const id = pick(ids) ?? "a"
            // Of the same length, of another one, or as it was.
            const words = pick([[`tide of ${id} ${round % 10}`], [`tide of ${id}`, `and more ${round}`], undefined])
            if (words !== undefined) write(said(id, ...words), 2_000 + round)
            for (const asked of [id, pick(ids) ?? "a"])
              assert.deepStrictEqual(
                yield* ask(answers, asked),
                yield* ask(yield* makeSessionAnswers(tidesScope), asked)
              )
          }
          reads.clear()
          for (const id of ["a", "b", "a", "b", "b"]) yield* ask(answers, id)
          const count = ["a", "b"].reduce((sum, id) => sum + (reads.get(file(id)) ?? 0), 0)
          assert.isAtMost(count, 2, "two stay in memory")
        })
    )
  })

  it.effect("are read once for all that ask at the same time", () =>
    withRecorded([said("a", "tide of a")], ({ file, reads }) =>
      Effect.gen(function* () {
        const { search } = yield* makeSessionAnswers(tidesScope)
        const asked = Array.from({ length: 20 }, () => search("tide", 500, "a"))
        const found = yield* Effect.all(asked, { concurrency: "unbounded" })
        assert.deepStrictEqual([new Set(found).size, reads.get(file("a"))], [1, 1])
      })
    )
  )

  it.effect("leave memory in the order in which they were read: one that grew was read last", () => {
    const ids = ["a", "b", "c"]
    return withRecorded(
      ids.map((id) => said(id, `tide of ${id}`)),
      ({ file, reads, write }) =>
        Effect.gen(function* () {
          const { search } = yield* makeSessionAnswers(tidesScope)
          const ask = (id: string) => search("tide", 500, id)
          yield* Effect.forEach(["a", "b"], ask)
          write(said("a", "tide of a", "and more"), 2_000)
          yield* Effect.forEach(["a", "c", "a"], ask)
          assert.strictEqual(reads.get(file("a")), 2)
        })
    )
  })
})

describe("a secret of a session", () => {
  const token = ["gh", "p_", "q7".repeat(18)].join("")
  const beats: ReadonlyArray<Beat> = [
    { user: `Deploy with ${token} and harbour-pilot-77.` },
    { answer: "I do.", calls: [["c1", ...agentRecords.claude.shell(`./deploy --token ${token} harbour-pilot-77`)]] },
    { result: "c1", words: "ok" }
  ]

  it.effect.each([true, false])("is shown: %s", (showsSecrets) =>
    withRecorded([{ id: "one", agent: "claude", beats }], () =>
      Effect.gen(function* () {
        const known = [{ kind: "password", value: "harbour-pilot-77" }]
        const answers = yield* makeSessionAnswers({ ...tidesScope, showsSecrets, known })
        const found = yield* answers.search("Deploy with", 500, undefined)
        const texts = [
          found,
          yield* answers.recall(handleIn(found), { maxTokens: 500 }, undefined),
          yield* answers.changes(undefined, undefined),
          yield* answers.snapshot(1_500, undefined)
        ]
        // What changed is told without secrets in any case.
        for (const [at, text] of texts.entries()) {
          const isShown = showsSecrets && at < 2
          for (const secret of [token, "harbour-pilot-77"])
            if (isShown || !showsSecrets) assert.strictEqual(text.includes(secret), isShown, text)
          assert.strictEqual(text.includes("[redacted: "), !isShown)
          if (at < 3) assert.strictEqual(text.includes("(secrets are left out"), !isShown)
        }
      })
    )
  )
})
