import { NodeServices } from "@effect/platform-node"
import { Layer } from "effect"
import * as MemoryTempStore from "../../../src/layers/testing/MemoryTempStore.ts"
import { TokenCounter } from "../../../src/services/tokens/TokenCounter.ts"
import { withKeptRecords } from "../../../src/services/transcripts/KeptRecords.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const services = Layer.mergeAll(TokenCounter.layerEstimate, MemoryTempStore.layer, NodeServices.layer)

const metadata = { sessionId: "s", projectHash: "p" }
const message = (id: string, type: string, content: unknown) => ({
  id,
  timestamp: "2026-01-01T00:00:00Z",
  type,
  content
})
const info = message("i", "info", "Update {available}\n")
const hologram = message("h", "hologram", "?")
const summary = message("s", "user", "So far: much.")
const original = [info, message("1", "user", "a"), message("2", "gemini", "b"), hologram, message("3", "error", "c")]

describe("what an agent recorded beside a conversation stays when the conversation is replaced", () => {
  it.effect.each([
    ["one line", undefined],
    ["many lines", 2]
  ] as const)("in a document of Gemini CLI on %s", services, function* ([, indent]) {
    const before = JSON.stringify({ ...metadata, messages: original, kind: "main" }, undefined, indent)
    const written = [JSON.stringify({ ...metadata, messages: [summary, message("x", "error", "own")], kind: "main" })]
    const kept = yield* withKeptRecords(before, written, "gemini")
    assert.deepStrictEqual(JSON.parse(kept.join("\n")), {
      ...metadata,
      messages: [info, hologram, summary, message("x", "error", "own")],
      kind: "main"
    })
  })

  it.effect("in records, one a line, over several lines or in a list", services, function* () {
    const lines = (list: ReadonlyArray<object>) => list.map((one) => JSON.stringify(one))
    const written = lines([metadata, summary])
    const before = [metadata, ...original]
    const over = before.map((one) => JSON.stringify(one, null, 2))
    for (const text of [lines(before).join("\n"), over.join("\n"), JSON.stringify(before, null, 2)]) {
      const kept = yield* withKeptRecords(text, written, "gemini")
      assert.deepStrictEqual(kept, lines([metadata, info, hologram, message("3", "error", "c"), summary]))
    }
  })

  it.effect("in what the first record, and later ones, say of the session", services, function* () {
    const line = (one: object) => JSON.stringify(one)
    const own = { sessionId: "s", projectHash: "ours", kind: "main" }
    const before = { sessionId: "s", projectHash: "p", summary: "Title" }
    const later = { $set: { summary: "Later" } }
    const text = [before, ...original, later, { $set: { lastUpdated: "2026-01-01T00:00:00Z" } }].map(line).join("\n")
    const kept = yield* withKeptRecords(text, [own, summary].map(line), "gemini")
    assert.deepStrictEqual<unknown>(
      kept.map((one) => JSON.parse(one)),
      [{ ...before, kind: "main" }, info, hologram, message("3", "error", "c"), later, summary]
    )
    const document = [line({ ...own, messages: [summary] })]
    const [whole = ""] = yield* withKeptRecords(line({ ...before, messages: [] }), document, "gemini")
    assert.deepStrictEqual<unknown>(JSON.parse(whole), { ...before, kind: "main", messages: [summary] })
    const meta = (payload: object) => ({ timestamp: "2026-01-01T00:00:00Z", type: "session_meta", payload })
    const said = (role: string) => ({ type: "response_item", payload: { type: "message", role, content: [] } })
    const base = { id: "c", cli_version: "1", base_instructions: { text: "Be brief." }, model_provider: "own" }
    const codex = [meta({ ...base, history_base: { thread_id: "d" } }), said("user")].map(line).join("\n")
    const [first = ""] = yield* withKeptRecords(
      codex,
      [meta({ id: "c", cli_version: "0" }), said("user")].map(line),
      "codex"
    )
    assert.deepStrictEqual<unknown>(JSON.parse(first), meta({ ...base, cli_version: "0" }))
  })

  it.effect.each([
    ["gemini", { $set: { summary: "Title" } }, [{ $set: { summary: "Title" } }]],
    ["gemini", message("1", "user", "a"), []],
    ["codex", { type: "response_item", payload: { type: "message", role: "user", content: [] } }, []]
  ] as const)(
    "a first record that describes no session describes none then: %s",
    services,
    function* ([format, first, stays]) {
      const header = format === "gemini" ? metadata : { type: "session_meta", payload: { id: "c", cli_version: "0" } }
      const second = format === "gemini" ? message("2", "gemini", "b") : first
      const before = [first, second].map((one) => JSON.stringify(one)).join("\n")
      const written = [header, format === "gemini" ? summary : second]
      const kept = yield* withKeptRecords(
        before,
        written.map((one) => JSON.stringify(one)),
        format
      )
      assert.deepStrictEqual<unknown>(
        kept.map((one) => JSON.parse(one)),
        [header, ...stays, written[1]]
      )
    }
  )

  it.effect("in a session of Pi, whose entries have had ids since version 2", services, function* () {
    const level = { type: "thinking_level_change", timestamp: "2026-01-01T00:00:00Z", thinkingLevel: "high" }
    const said = (text: string) => ({ type: "message", message: { role: "user", content: [{ type: "text", text }] } })
    const header = { type: "session", version: 3, id: "p", cwd: "/", timestamp: "2026-01-01T00:00:00Z" }
    const placed = { ...level, id: "b", parentId: "a" }
    const written = [header, { ...said("So far: much."), id: "s", parentId: null }].map((one) => JSON.stringify(one))
    const [first = "", ...rest] = written
    const { version: _, ...old } = header
    for (const [before, stays] of [
      [[old, said("a"), level], { ...level, id: "kept0000", parentId: null }],
      [[header, { ...said("a"), id: "a", parentId: null }, placed], placed]
    ] as const) {
      const text = before.map((one) => JSON.stringify(one)).join("\n")
      const kept = yield* withKeptRecords(text, written, "pi")
      assert.deepStrictEqual(kept, [first, JSON.stringify(stays), ...rest])
    }
  })

  it.effect("not where the file has another form now", services, function* () {
    const before = JSON.stringify({ ...metadata, messages: original })
    const written = [JSON.stringify(metadata), JSON.stringify(summary)]
    assert.deepStrictEqual(yield* withKeptRecords(before, written, "gemini"), written)
  })
})
