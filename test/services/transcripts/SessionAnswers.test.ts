import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { McpProtocol, McpTest } from "effect/ai"
import {
  appendFileSync,
  cpSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import * as MemoryTempStore from "../../../src/layers/testing/MemoryTempStore.ts"
import { TokenCounter } from "../../../src/services/tokens/TokenCounter.ts"
import { AgentSessions, type SessionFile } from "../../../src/services/transcripts/AgentSessions.ts"
import { type SessionScope, makeSessionAnswers } from "../../../src/services/transcripts/SessionAnswers.ts"
import * as SessionMcpTools from "../../../src/services/transcripts/SessionMcpTools.ts"
import { Transcripts } from "../../../src/services/transcripts/Transcripts.ts"
import { root } from "../../support/paths.ts"

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
