import { Effect } from "effect"
import { createHash } from "node:crypto"
import { mkdirSync, writeFileSync } from "node:fs"
import path from "node:path"
import { handleOf, hashOf } from "../../src/domain/content/Handle.ts"
import { assert, describe, it } from "../support/vitest.ts"
import { example, program, run } from "./program.ts"

const hash = (bytes: string | Buffer) => hashOf(createHash("sha256").update(bytes).digest())
const handle = (bytes: string | Buffer) => handleOf(hash(bytes))

const lines = "first\nsecond\r\nthird ü\n\nfifth"
const args = '{"n":12345678901234567890,"1":2,"0":1.50}'
const callPart = `{"functionCall":{"name":"count","args":${args}}}`

const conversation = Effect.gen(function* () {
  const { folder } = yield* program
  const file = path.join(folder, "recall.json")
  const body = [
    Buffer.from(`[{"role":"user","parts":[{"text":${JSON.stringify(lines)}}]},{"role":"model","parts":[${callPart}]},`),
    Buffer.from('{"role":"user","parts":[{"text":"bad '),
    Buffer.from([0xff, 0xfe]),
    Buffer.from(' bytes"}]}]')
  ]
  writeFileSync(file, Buffer.concat(body))
  return file
})

describe("recall", () => {
  it.effect("prints bytes that are not UTF-8", function* () {
    const bytes = Buffer.concat([Buffer.from("bad "), Buffer.from([0xff, 0xfe]), Buffer.from(" bytes")])
    const { stdout } = yield* run(["recall", yield* conversation, handle(bytes)])
    assert.deepStrictEqual(stdout, bytes)
  })

  it.effect("accepts a unique prefix of a handle and a correct whole hash", function* () {
    const file = yield* conversation
    const { stdout } = yield* run(["recall", file, handle(lines).slice(0, 7)])
    assert.strictEqual(String(stdout), lines)
    assert.strictEqual(String((yield* run(["recall", file, `h_${hash(lines)}`])).stdout), lines)
    const wrong = yield* run(["recall", file, `${handle(lines)}aaaaaaaa`])
    assert.strictEqual(wrong.status, 2)
  })

  it.effect("prints lines, matches or a token budget's worth", function* () {
    const file = yield* conversation
    const read = (...flags: ReadonlyArray<string>) => run(["recall", file, handle(lines), ...flags])
    assert.strictEqual(String((yield* read("--lines", "1-2")).stdout), "first\nsecond\r\n")
    assert.strictEqual(String((yield* read("--lines", "5-")).stdout), "fifth\n")
    assert.strictEqual(String((yield* read("--grep", "^[st]")).stdout), "2: second\r\n3: third ü\n")
    const short = yield* read("--max-tokens", "3")
    assert.strictEqual(String(short.stdout), "first\n")
    assert.match(short.stderr, /4 more lines/)
    const nothing = yield* read("--grep", "sixth")
    assert.deepStrictEqual([nothing.status, String(nothing.stdout)], [1, ""])
    const bad = yield* read("--grep", "(")
    assert.strictEqual(bad.status, 2)
    assert.match(bad.stderr, /^palimpsest: --grep: [^\n]+\n$/)
    const unsupported = yield* read("--grep", "(?=a)b")
    assert.strictEqual(unsupported.status, 2)
    assert.match(unsupported.stderr, /^palimpsest: --grep: [^\n]*look-ahead[^\n]*\n$/)
  })

  it.effect("reads bytes that exist only in the blob folder beside the file", function* () {
    const file = yield* conversation
    const store = (folder: string, bytes: string) => {
      mkdirSync(folder, { recursive: true })
      writeFileSync(path.join(folder, hash(bytes)), bytes)
    }
    const shared = file.replace(".json", ".blobs")
    store(`${file}.blobs`, "kept apart")
    store(shared, "kept apart, too")
    store(shared, "somebody else's")
    const mentioning = JSON.stringify([{ role: "user", parts: [{ text: `see ${handle("kept apart, too")}` }] }])
    for (const [body, bytes, status] of [
      [undefined, "kept apart", 0],
      // A folder that other files may share answers only for what this file refers to.
      [undefined, "kept apart, too", 2],
      [mentioning, "kept apart, too", 0],
      [mentioning, "somebody else's", 2]
    ] as const) {
      if (body !== undefined) writeFileSync(file, body)
      const read = yield* run(["recall", file, handle(bytes)])
      assert.deepStrictEqual([read.status, String(read.stdout)], [status, status === 0 ? bytes : ""])
    }
    const damaged = hash("damaged")
    writeFileSync(path.join(`${file}.blobs`, damaged), "something else")
    const { status, stderr } = yield* run(["recall", file, `h_${damaged}`])
    assert.strictEqual(status, 1)
    assert.match(stderr, /was changed or damaged\n$/)
  })

  it.effect("--grep without a match exits with 1, as grep does", function* () {
    const original = JSON.parse(String((yield* run(["inspect", example, "--json"])).stdout)).largest[0]
    const { status, stderr, stdout } = yield* run(["recall", example, original.handle, "--grep", "no such words"])
    assert.deepStrictEqual([status, String(stdout)], [1, ""])
    assert.match(stderr, /^palimpsest: no match in [\d,]+ lines?; try another --grep\n$/)
    const found = yield* run(["recall", example, original.handle, "--grep", "."])
    assert.strictEqual(found.status, 0)
  })

  it.effect("prints everything a compression dropped, by one handle", function* () {
    const { folder } = yield* program
    const out = path.join(folder, "compressed.jsonl")
    const flags = ["--force", "--limit", "40000", "--to", "palimpsest", "--out", out]
    assert.strictEqual((yield* run(["compress", example, ...flags])).status, 0)
    const [range] = JSON.parse(String((yield* run(["inspect", out, "--json"])).stdout)).dropped
    const { stdout } = yield* run(["recall", out, range.handle])
    const messages = String(stdout)
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line))
    assert.strictEqual(messages.length, range.messages)
    const original = JSON.parse(String((yield* run(["inspect", example, "--json"])).stdout)).largest[0]
    const { stdout: part } = yield* run(["recall", example, original.handle])
    assert.isTrue(
      String(stdout).includes(String(part)) || JSON.stringify(messages).includes(JSON.stringify(String(part)))
    )
  })

  it.effect("searches everything that left the window, by a pattern alone", function* () {
    const { folder } = yield* program
    for (const [name, flags] of [
      ["own.jsonl", ["--to", "palimpsest"]],
      // The log lies beside a file whose format cannot hold it.
      ["contents.json", ["--to", "contents"]]
    ] as const) {
      const out = path.join(folder, name)
      const made = yield* run(["compress", example, "--force", "--limit", "40000", ...flags, "--out", out])
      assert.strictEqual(made.status, 0)
      const { status, stderr, stdout } = yield* run(["recall", out, "--grep", "elixir: .~>"])
      assert.deepStrictEqual([status, stderr], [0, ""])
      const [, handle = "", line = ""] =
        /^(h_\w+) {2}e\d+ {2}[\d -:]+ {2}output of Read\n[^]*? {2}(8): [^\n]*elixir: /.exec(String(stdout)) ?? []
      const exact = yield* run(["recall", out, handle, "--lines", `${line}-${line}`])
      assert.match(String(exact.stdout), /elixir: "~>/)
      const short = yield* run(["recall", out, "--grep", ".", "--max-tokens", "300"])
      assert.isBelow(short.stdout.length, 2_000)
      assert.match(String(short.stdout), /Left out: [^\n]+\. Narrow the pattern, or allow more tokens\.\n/)
      const nothing = yield* run(["recall", out, "--grep", "no such words at all"])
      assert.deepStrictEqual([nothing.status, String(nothing.stdout)], [1, ""])
      assert.match(
        nothing.stderr,
        /^palimpsest: No match in the [\d,]+ parts that left the window; try another --grep\n$/
      )
    }
    const whole = yield* run(["recall", example, "--grep", "elixir"])
    assert.deepStrictEqual([whole.status, String(whole.stdout)], [1, ""])
    assert.match(whole.stderr, /nothing has left the window/)
    for (const flags of [[], ["--lines", "1-2"], ["--lines", "1-2", "--grep", "a"], ["--grep", " "]]) {
      const refused = yield* run(["recall", example, ...flags])
      assert.deepStrictEqual([refused.status === 2 || flags[1] === " ", String(refused.stdout)], [true, ""])
    }
  })
})
