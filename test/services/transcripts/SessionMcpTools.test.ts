import { Effect } from "effect"
import { McpProtocol, McpTest } from "effect/ai"
import type { ListedSession, SessionAnswers } from "../../../src/services/transcripts/SessionAnswers.ts"
import * as SessionMcpTools from "../../../src/services/transcripts/SessionMcpTools.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** What each tool asks: the fake answers with the question. */

const asked = (...question: ReadonlyArray<unknown>) => Effect.succeed(JSON.stringify(question))

const listed = (id: string, rest: Partial<ListedSession>): ListedSession => ({
  prompts: 1,
  ...rest,
  file: { agent: "codex", id, kind: "session", parent: undefined, path: id, bytes: 1, updatedAt: 5_000, folder: "/w" }
})

const answers: SessionAnswers = {
  list: Effect.succeed([listed("file-1", { session: "s1", title: "two\nlines" }), listed("file-2", {})]),
  recall: (...all) => asked("recall", ...all),
  search: (...all) => asked("search", ...all),
  changes: (...all) => asked("changes", ...all),
  snapshot: (...all) => asked("snapshot", ...all)
}

const clientOf = (others: boolean) =>
  McpTest.makeClient(SessionMcpTools.layer(answers, others), { protocols: [McpProtocol.v2025_06_18] })

type Row = readonly [tool: string, args: Readonly<Record<string, unknown>>, question: ReadonlyArray<unknown>]
const end = Number.MAX_SAFE_INTEGER
const rows: ReadonlyArray<Row> = [
  ["recall", { handle: "h" }, ["recall", "h", { maxTokens: 4_000 }, null]],
  ["recall", { handle: "h", from: 3, session: "x" }, ["recall", "h", { maxTokens: 4_000, lines: [3, end] }, "x"]],
  ["recall", { handle: "h", to: 7, tokens: 9 }, ["recall", "h", { maxTokens: 9, lines: [1, 7] }, null]],
  ["recall", { handle: "h", pattern: "p", tokens: 1e9 }, ["recall", "h", { maxTokens: 20_000, grep: "p" }, null]],
  ["search_history", { pattern: "p" }, ["search", "p", 4_000, null]],
  ["search_history", { pattern: "p", tokens: 20_001, session: "x" }, ["search", "p", 20_000, "x"]],
  ["what_changed", {}, ["changes", null, null]],
  ["what_changed", { since: "1h", session: "x" }, ["changes", "1h", "x"]],
  ["snapshot", {}, ["snapshot", 4_000, null]],
  ["snapshot", { tokens: 0, session: "x" }, ["snapshot", 0, "x"]]
]

describe("a tool over MCP", () => {
  it.effect.each(rows)("%s %j asks %j", function* ([name, args, question]) {
    const client = yield* clientOf(false)
    const { content } = yield* client.callTool({ name, arguments: args })
    assert.deepStrictEqual(content, [{ type: "text", text: JSON.stringify(question) }])
  })

  it.effect("lists sessions only where others may be read, each on one line", function* () {
    const names = ({ tools }: { readonly tools: ReadonlyArray<{ readonly name: string }> }) =>
      tools.map(({ name }) => name)
    const alone = ["recall", "search_history", "what_changed", "snapshot"]
    assert.deepStrictEqual(names(yield* (yield* clientOf(false)).listTools({})), alone)
    const client = yield* clientOf(true)
    assert.deepStrictEqual(names(yield* client.listTools({})), [...alone, "list_sessions"])
    const { content } = yield* client.callTool({ name: "list_sessions", arguments: {} })
    const text = "s1  codex  1970-01-01T00:00:05.000Z  two lines\nfile-2  codex  1970-01-01T00:00:05.000Z  (no title)"
    assert.deepStrictEqual(content, [{ type: "text", text }])
  })

  it.effect("offers the handover and the changes of the current session as resources", function* () {
    const client = yield* clientOf(false)
    const read = (name: string) => client.readResource({ uri: `palimpsest://session/${name}` })
    const textOf = ({ contents: [first] }: { readonly contents: ReadonlyArray<object> }) =>
      first !== undefined && "text" in first ? first.text : undefined
    assert.strictEqual(textOf(yield* read("snapshot")), JSON.stringify(["snapshot", 4_000, null]))
    assert.strictEqual(textOf(yield* read("changes")), JSON.stringify(["changes", null, null]))
  })
})
