import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { readFileSync, writeFileSync } from "node:fs"
import path from "node:path"
import { gunzipSync } from "node:zlib"
import { describe as text, Report } from "../../src/cli/commands/inspect.ts"
import { entryId } from "../../src/domain/Conversation.ts"
import { Handle } from "../../src/domain/Handle.ts"
import { example, program, run } from "./program.ts"

const decode = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.toCodecJson(Report)))
const fixture = (name: string) =>
  gunzipSync(readFileSync(path.join(import.meta.dirname, "..", "fixtures", "sessions", `${name}.jsonl.gz`)))

describe("inspect", () => {
  it.effect("--json prints one document, as its schema says", () =>
    Effect.gen(function* () {
      const { status, stderr, stdout } = yield* run(["inspect", example, "--json"])
      assert.deepStrictEqual([status, stderr], [0, ""])
      assert.strictEqual(String(stdout).split("\n").length, 2)
      const report = decode(String(stdout))
      assert.strictEqual(report.format, "claude")
      assert.strictEqual(report.bytes, readFileSync(example).length)
      assert.strictEqual(report.largest.length, 10)
    })
  )

  for (const name of [
    "pi-1019-lines",
    "claude-code-1512-lines",
    "claude-code-subagent",
    "claude-code-tools",
    "claude-code-short"
  ]) {
    it.effect(`sums to the same by role, by kind and in all: ${name}`, () =>
      Effect.gen(function* () {
        const { stdout } = yield* run(["inspect", "-", "--json"], { input: String(fixture(name)) })
        const report = decode(String(stdout))
        const total = (sums: ReadonlyArray<{ readonly tokens: number; readonly view: number }>) => ({
          all: sums.reduce((sum, { tokens }) => sum + tokens, 0),
          view: sums.reduce((sum, { view }) => sum + view, 0)
        })
        const { all, view } = report.tokens
        assert.deepStrictEqual(total(report.roles), { all, view })
        assert.deepStrictEqual(total(report.kinds), { all, view })
        assert.strictEqual(report.growth.at(-1)?.tokens, view)
        assert.strictEqual(report.growth.length, report.turns)
      })
    )
  }

  it.effect("tells of past compactions", () =>
    Effect.gen(function* () {
      const { stdout } = yield* run(["inspect", "-", "--json"], { input: String(fixture("claude-code-1512-lines")) })
      const [compaction, another] = decode(String(stdout)).compactions
      assert.isUndefined(another)
      assert.isTrue(compaction !== undefined && compaction.tokens.after < compaction.tokens.before / 10)
    })
  )

  it.effect("the text holds nothing that a terminal acts on, whatever the file holds", () =>
    Effect.gen(function* () {
      const { folder } = yield* program
      const evil = "\u001b]0;owned\u0007\u001b[2J\u202e\u009b31m"
      const file = path.join(folder, "evil.json")
      writeFileSync(
        file,
        JSON.stringify([
          { role: "user", parts: [{ text: evil }] },
          { role: "model", parts: [{ functionCall: { name: `run${evil}`, args: { [evil]: evil } } }] }
        ])
      )
      const { status, stdout } = yield* run(["inspect", file])
      assert.strictEqual(status, 0)
      assert.notMatch(String(stdout), /[^\P{C}\n]/u)
      assert.include(String(stdout), "without a response")
    })
  )

  it("has text for every section", () => {
    const shown = text(
      {
        file: "f",
        format: "claude",
        bytes: 12_345,
        session: null,
        model: "m",
        cwd: null,
        messages: 2,
        turns: 1,
        tokens: { all: 1_000, view: 400, environment: 7 },
        roles: [{ role: "user", messages: 2, tokens: 1_000, view: 400 }],
        kinds: [{ kind: "output", parts: 1, tokens: 1_000, view: 400 }],
        tools: [{ tool: "t", calls: 0, arguments: 0, outputs: 1, output: 1_000, view: 400 }],
        largest: [],
        growth: [],
        compactions: [{ after: null, tokens: { before: 9, after: 1 } }],
        dropped: [{ handle: Handle.make("h_aaaaaaaaaa"), messages: 2, from: entryId(1), to: entryId(2) }],
        broken: { calls: [], responses: [] },
        skipped: { progress: 3 },
        next: { waits: "below threshold", forced: { before: 410, after: 90, messages: 1 } },
        torn: 9
      },
      [10, 400]
    )
    for (const part of [
      "12,345 bytes",
      "2 messages, 1 turn",
      "environment",
      "By kind",
      "By role",
      "By tool",
      "▁█",
      "at the start",
      "h_aaaaaaaaaa",
      "progress",
      "Line 9"
    ]) {
      assert.include(shown, part)
    }
    assert.notMatch(shown, / $/m)
  })
})
