import { Effect } from "effect"
import { readFile, writeFile } from "node:fs/promises"
import path from "node:path"
import { sessionText } from "../support/sessions.ts"
import { assert, describe, it } from "../support/vitest.ts"
import { program, run } from "./program.ts"

/** What is given to other people: the page and the text of `inspect`, without what is nobody else's. */

const key = `ghp_${"abcdefghijklmnopqrstuvwxyzABCDEF1234"}`
const own = /marotte|ghp_abc/i

/** The large recording as somebody's own, with a key in it. */
const recording = Effect.runSync(
  Effect.cached(
    Effect.gen(function* () {
      const { folder } = yield* program
      const file = path.join(folder, "marotte.jsonl")
      const text = sessionText("claude-code-1512-lines")
        .replaceAll("home/USER", "home/marotte")
        .replaceAll("home-USER", "home-marotte")
        .replaceAll('"continue"', `"continue, says Marotte with ${key}"`)
      yield* Effect.promise(() => writeFile(file, text))
      return file
    })
  )
)

describe("inspect for other people", () => {
  const rows: ReadonlyArray<readonly [flags: ReadonlyArray<string>, isOwn: boolean, hasTexts: boolean, told: RegExp]> =
    [
      [["--share"], false, true, /replaced [\d,]+ secrets and names; --redact-texts hides all texts\n$/],
      [["--redact-texts"], false, false, /replaced [\d,]+ secrets and names; texts are not shown\n$/],
      [["--share", "--no-redact"], true, true, /nothing was removed/]
    ]
  for (const [flags, isOwn, hasTexts, told] of rows) {
    it.effect(flags.join(" "), function* () {
      const html = path.join((yield* program).folder, `share${flags.length}.html`)
      const { status, stderr } = yield* run(["inspect", yield* recording, "--html", html, ...flags])
      assert.strictEqual(status, 0, stderr)
      assert.match(stderr, told)
      const page = yield* Effect.promise(() => readFile(html, "utf8"))
      assert.deepStrictEqual([own.test(page), page.includes("defmodule")], [isOwn, hasTexts])
      assert.isBelow(page.length, 2_000_000)
    })
  }

  it.effect("--share, as text and JSON", function* () {
    for (const flags of [["--share"], ["--share", "--json"]]) {
      const { status, stdout } = yield* run(["inspect", yield* recording, ...flags])
      assert.strictEqual(status, 0)
      assert.notMatch(String(stdout), own)
      assert.include(String(stdout), "[redacted: home folder #1]/projects")
    }
  })

  it.effect("sessions export --redact, as a page", function* () {
    const { folder } = yield* program
    const html = path.join(folder, "session.html")
    const env = { PALIMPSEST_HOME: path.join(folder, "share-home") }
    yield* run(["sessions", "import", yield* recording], { env })
    const { status, stderr } = yield* run(["sessions", "export", "latest", html, "--redact"], { env })
    assert.strictEqual(status, 0, stderr)
    const page = yield* Effect.promise(() => readFile(html, "utf8"))
    assert.match(page, /<h1>Work on bead/)
    assert.notMatch(page, own)
  })
})

it.effect("mcp answers a line that is no JSON with a parse error, and goes on", function* () {
  const initialize = {
    jsonrpc: "2.0",
    id: 1,
    method: "initialize",
    params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "test", version: "1" } }
  }
  const { status, stderr, stdout } = yield* run(["mcp"], { input: `garbage\n\n${JSON.stringify(initialize)}\n` })
  const answers = String(stdout)
    .trimEnd()
    .split("\n")
    .map((line): unknown => JSON.parse(line))
  assert.deepStrictEqual([status, stderr], [0, ""])
  assert.deepStrictEqual(answers[0], { jsonrpc: "2.0", id: null, error: { code: -32700, message: "Parse error" } })
  assert.nestedPropertyVal(answers[1], "result.serverInfo.name", "palimpsest")
})
