import { execFileSync } from "node:child_process"
import { appendFileSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import path from "node:path"
import packageJson from "../../package.json" with { type: "json" }
import { assert, describe, it } from "../support/vitest.ts"
import { program, run } from "./program.ts"

const oneLine = /^palimpsest: [^\n]+\n$/

/** One message of a Claude Code transcript, to feed for as long as it takes. */
const message = `${JSON.stringify({
  type: "user",
  uuid: "00000000-0000-7000-8000-000000000001",
  parentUuid: null,
  sessionId: "00000000-0000-7000-8000-000000000000",
  timestamp: "2026-01-01T00:00:00.000Z",
  message: { role: "user", content: "Hello" }
})}\n`

describe("palimpsest", () => {
  it.effect("prints its version", function* () {
    const { status, stderr, stdout } = yield* run(["--version"])
    assert.deepStrictEqual([status, String(stdout), stderr], [0, `palimpsest v${packageJson.version}\n`, ""])
  })

  it.effect("prints help on request, on stdout", function* () {
    for (const args of [["--help"], ["inspect", "--help"], []]) {
      const { status, stderr, stdout } = yield* run(args)
      assert.deepStrictEqual([status, stderr], [0, ""])
      assert.include(String(stdout), "USAGE")
    }
  })

  it.effect("prints completions", function* () {
    const { status, stdout } = yield* run(["--completions", "bash"])
    assert.strictEqual(status, 0)
    assert.include(String(stdout), "inspect")
  })

  it.effect("refuses input that is not a conversation with status 2 and one line that names it", function* () {
    const { folder } = yield* program
    const file = (name: string) => path.join(folder, name)
    writeFileSync(file("empty"), "")
    writeFileSync(file("binary"), Buffer.from([0, 1, 2, 255, 0]))
    writeFileSync(file("prose"), "Dear diary,\n")
    writeFileSync(file("broken.jsonl"), `${message}{"type":\n${message}`)
    execFileSync("mkfifo", [file("pipe")])
    for (const name of ["missing", ".", "empty", "binary", "prose", "broken.jsonl", "pipe"]) {
      const { status, stderr, stdout } = yield* run(["inspect", name])
      assert.deepStrictEqual([status, String(stdout)], [2, ""], name)
      assert.match(stderr, oneLine, name)
      assert.include(stderr, name)
    }
  })

  it.effect("refuses a line of 200 MB in one line that says so", function* () {
    const { folder } = yield* program
    const file = path.join(folder, "wide.jsonl")
    const piece = Buffer.alloc(1_000_000, "x")
    writeFileSync(file, '{"type":"user","message":{"role":"user","content":"')
    for (let i = 0; i < 200; i += 1) appendFileSync(file, piece)
    const { status, stderr } = yield* run(["inspect", "wide.jsonl"])
    assert.strictEqual(status, 2)
    assert.include(stderr, "palimpsest: wide.jsonl, line 1: the line is longer than 128 MiB")
    rmSync(file)
  })

  it.effect("keeps terminal escapes out of its messages", function* () {
    const { stderr } = yield* run(["inspect", "a\u001b[31m\u0007b"])
    assert.match(stderr, oneLine)
    assert.notInclude(stderr, "\u001b")
  })

  it.effect("ends quietly when the reader closes the pipe", function* () {
    const { folder } = yield* program
    const large = path.join(folder, "large.json")
    writeFileSync(large, JSON.stringify([{ role: "user", parts: [{ text: "line\n".repeat(1_000_000) }] }]))
    const { status: inspected, stderr: said, stdout: json } = yield* run(["inspect", large, "--json"])
    assert.deepStrictEqual([inspected, said], [0, ""])
    const { largest } = JSON.parse(String(json))
    const { status, stderr, stdout } = yield* run(["recall", large, largest[0].handle], { hangUp: true })
    assert.deepStrictEqual([status, stderr], [0, ""])
    assert.isBelow(stdout.length, 5_000_000)
  })
})

describe("signals", () => {
  const reading = { input: `${message}${" ".repeat(2_000_000)}`, keepOpen: true } as const

  it.effect.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
    ["SIGHUP", 129]
  ] as const)("%s while reading exits with %s and writes nothing", function* ([name, expected]) {
    const { folder } = yield* program
    const before = readdirSync(folder)
    const { status, stderr, stdout } = yield* run(["inspect", "-"], {
      ...reading,
      signal: { name, after: "input" }
    })
    assert.deepStrictEqual([status, String(stdout), stderr], [expected, "", ""])
    assert.deepStrictEqual(readdirSync(folder), before)
  })

  it.effect("treats a key press that arrives twice, from the terminal and from npm, as one", function* () {
    const { status } = yield* run(["inspect", "-"], {
      ...reading,
      signal: { name: "SIGINT", after: "input", times: 2 }
    })
    assert.strictEqual(status, 130)
  })
})
