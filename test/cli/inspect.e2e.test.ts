import { Effect, Schema } from "effect"
import { readFileSync, writeFileSync } from "node:fs"
import path from "node:path"
import { gunzipSync } from "node:zlib"
import { Report } from "../../src/cli/output/InspectReport.ts"
import { assert, describe, it } from "../support/vitest.ts"
import { example, program, run } from "./program.ts"

const decode = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.toCodecJson(Report)))
const fixture = (name: string) =>
  gunzipSync(readFileSync(path.join(import.meta.dirname, "..", "fixtures", "sessions", `${name}.jsonl.gz`)))

describe("inspect", () => {
  it.effect("--json prints one document that matches its schema", function* () {
    const { status, stderr, stdout } = yield* run(["inspect", example, "--json"])
    assert.deepStrictEqual([status, stderr], [0, ""])
    assert.strictEqual(String(stdout).split("\n").length, 2)
    const report = decode(String(stdout))
    assert.strictEqual(report.format, "claude")
    assert.strictEqual(report.bytes, readFileSync(example).length)
    assert.strictEqual(report.largest.length, 10)
  })

  it.effect.each(["pi-1019-lines", "claude-code-subagent"])(
    "has equal sums by role, by kind and in total: %s",
    function* (name) {
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
    }
  )

  it.effect("says that of two sessions of Claude Code in one file the latest is read", function* () {
    const record = (type: string, uuid: string, sessionId: string, day: number) => {
      const message = { role: type, content: [{ type: "text", text: `${type} ${day}` }] }
      const parentUuid = type === "user" ? null : `u${day}`
      return JSON.stringify({ type, uuid, parentUuid, sessionId, timestamp: `2026-01-0${day}T00:00:00Z`, message })
    }
    const input = [record("user", "u2", "b", 2), record("user", "u1", "a", 1), record("assistant", "m1", "a", 1)].join(
      "\n"
    )
    const { status, stderr, stdout } = yield* run(["inspect", "-", "--json"], { input })
    const told = "palimpsest: standard input holds several sessions; the latest is read, without 2 messages of others"
    assert.deepStrictEqual([status, stderr.split("\n")[0]], [0, told])
    assert.strictEqual(decode(String(stdout)).messages, 1)
  })

  it.effect("prints no terminal escapes, whatever the file holds", function* () {
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
})

const written = Effect.fnUntraced(function* (name: string, content: string) {
  const { folder } = yield* program
  const file = path.join(folder, name)
  writeFileSync(file, content)
  return file
})

it.effect("inspect --prices takes prices from a file, and names it", function* () {
  const file = yield* written("prices.json", '{"models": {"claude-opus": {"input": 1000, "output": 2000}}}')
  const built = decode(String((yield* run(["inspect", example, "--json"])).stdout)).cost
  const { status, stdout } = yield* run(["inspect", example, "--json", "--prices", file])
  const { cost } = decode(String(stdout))
  assert.strictEqual(status, 0)
  assert.strictEqual(cost.table, file)
  assert.notStrictEqual(cost.total, built.total)
  assert.match(built.table, /^built in/)
  assert.deepStrictEqual(built.unpriced, [])
  const shown = yield* run(["inspect", example, "--prices", file])
  assert.include(String(shown.stdout), "prices.json")
})

it.effect("inspect --html writes the page, prints its path, and nothing else", function* () {
  const { folder } = yield* program
  const file = path.join(folder, "page.html")
  const { status, stderr, stdout } = yield* run(["inspect", example, "--html", file])
  assert.deepStrictEqual([status, String(stdout), stderr], [0, "", `palimpsest: wrote the page to ${file}\n`])
  assert.match(readFileSync(file, "utf8"), /^<!doctype html>/i)
})
