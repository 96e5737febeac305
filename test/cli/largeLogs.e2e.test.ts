import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { closeSync, openSync, readFileSync, rmSync, statSync, writeSync } from "node:fs"
import path from "node:path"
import { Report } from "../../src/cli/output/InspectReport.ts"
import { program, run } from "./program.ts"

const decode = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.toCodecJson(Report)))

/** A process that may use so much dies of what holds a log like these. */
const env = { NODE_OPTIONS: "--max-old-space-size=200" }

/** Writes a log of so many messages, each with these words, line by line. */
const written = (file: string, messages: number, words: string) => {
  const handle = openSync(file, "w")
  let held = `{"_tag":"Started","version":1,"session":"large","at":0,"estimator":"1","model":"gemini-2.5-pro"}\n`
  for (let n = 1; n <= messages; n += 1) {
    const role = n % 2 === 0 ? "model" : "user"
    const id = `h_${"a".repeat(3)}${n
      .toString()
      .replace(/\d/g, (digit) => "abcdefghij".charAt(Number(digit)))
      .padStart(7, "k")}`
    held += `{"_tag":"Appended","entry":{"id":"e${n}","content":{"role":"${role}","parts":[{"text":"${n} ${words}"}]},"tokens":[${words.length}],"handles":["${id}"]}}\n`
    if (held.length < 1_000_000) continue
    writeSync(handle, held)
    held = ""
  }
  writeSync(handle, held)
  closeSync(handle)
}

const messages = 20_000
const words = "some words of a message ".repeat(120)

describe("a log that does not fit in memory", () => {
  it.effect(
    "is inspected in little memory, as text, JSON and a page",
    () =>
      Effect.gen(function* () {
        const { folder } = yield* program
        const file = path.join(folder, `large-${messages}.jsonl`)
        const page = path.join(folder, `large-${messages}.html`)
        yield* Effect.addFinalizer(() =>
          Effect.sync(() => [file, page].forEach((each) => rmSync(each, { force: true })))
        )
        written(file, messages, words)

        const text = yield* run(["inspect", file], { env })
        assert.deepStrictEqual([text.status, text.stderr], [0, ""])
        assert.include(String(text.stdout), `${messages.toLocaleString("en-US")} messages`)

        const { status, stderr, stdout } = yield* run(["inspect", file, "--json"], { env })
        assert.deepStrictEqual([status, stderr], [0, ""])
        const report = decode(String(stdout))
        assert.deepStrictEqual(
          [report.messages, report.turns, report.tokens.view, report.bytes, report.growth.length, report.next],
          [messages, messages / 2, messages * words.length, statSync(file).size, messages / 2, null]
        )

        assert.strictEqual((yield* run(["inspect", file, "--html", page], { env })).status, 0)
        const html = readFileSync(page, "utf8")
        assert.include(html, "This log is too large to load")
        assert.isBelow(html.length, 1_000_000)
      }),
    600_000
  )

  it.effect(
    "is refused in one line before reading by commands that need all of it in memory",
    () =>
      Effect.gen(function* () {
        const { folder } = yield* program
        const file = path.join(folder, "large-refused.jsonl")
        yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(file, { force: true })))
        written(file, 300_000, "said")
        const { status, stderr, stdout } = yield* run(["compress", file, "--plan"], { env })
        assert.deepStrictEqual([status, String(stdout)], [2, ""])
        assert.match(
          stderr,
          /^palimpsest: .*large-refused\.jsonl: a file of \d+\.\d MB takes about \d+ MB of memory, more than the \d+ MB that this program may use; to read it all the same set NODE_OPTIONS=--max-old-space-size=\d+\n$/
        )
      }),
    600_000
  )
})
