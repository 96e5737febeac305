import { Effect } from "effect"
import { existsSync, readFileSync, statSync } from "node:fs"
import path from "node:path"
import * as FakeGemini from "../../src/layers/testing/FakeGemini.ts"
import { listening } from "../support/loopback.ts"
import { assert, describe, it } from "../support/vitest.ts"
import { calls, jsonLines, place, runs, says } from "./scene.ts"

/** Telemetry through the built program: numbers and names in a file and at a collector, and nobody's words. */

/** Words that must not leave: of the user, the model, a tool, a file and its name. */
const words = ["xylophone", "zeppelin", "marmalade", "quicksilver", "harlequin"] as const
const [asked, answered, inFile, inName, inSummary] = words

/** About 15,000 tokens. */
const long = Array.from({ length: 2_500 }, (_, at) => `${asked} ${at}: value ${at * 7_919}.`).join("\n")

/** A collector on loopback: what it is sent, by its path. */
const collector = Effect.gen(function* () {
  const got = new Map<string, Array<string>>()
  const url = yield* listening((incoming, outgoing) => {
    let text = ""
    incoming.setEncoding("utf8").on("data", (piece: string) => {
      text += piece
    })
    incoming.on("end", () => {
      const all = got.get(incoming.url ?? "") ?? []
      got.set(incoming.url ?? "", [...all, text])
      outgoing.writeHead(200, { "content-type": "application/json" }).end("{}")
    })
  })
  return { url, got }
})

/** A model that reads a file and answers; its summaries are these. */
const model = (summary: FakeGemini.Answer) => {
  let turn = 0
  return FakeGemini.make((request) => {
    if (request.method === "countTokens") return FakeGemini.tokens(100)
    if (request.method === "generateContent") return summary
    turn += 1
    return turn === 1 ? calls(["read_file", { file_path: `${inName}.txt` }]) : says(`It is a ${answered}.`)
  })
}

const snapshot = FakeGemini.json(
  FakeGemini.response([
    { text: `<state_snapshot>\n<overall_goal>\n- ${inSummary}\n</overall_goal>\n</state_snapshot>` }
  ])
)

/** Two questions, the second of which has to be compressed for. */
const twoQuestions = Effect.fnUntraced(function* (
  name: string,
  summary: FakeGemini.Answer,
  settings: object,
  ...args: ReadonlyArray<string>
) {
  const where = yield* place(name, {
    home: { "settings.json": settings },
    work: { [`${inName}.txt`]: `${inFile}\n` }
  })
  const fake = yield* model(summary)
  const first = yield* runs(where, fake, ["ask", "Look", "--session", "s"], { input: long })
  assert.deepStrictEqual([first.status, String(first.stdout)], [0, `It is a ${answered}.\n`])
  const second = yield* runs(where, fake, ["ask", "And now?", "--session", "s", "--threshold", "0.2", ...args])
  assert.strictEqual(second.status, 0)
  return where
})

describe("telemetry", () => {
  it.live("sends requests, calls and compressions to a file and a collector, as numbers and names only", function* () {
    const { got, url } = yield* collector
    const where = yield* twoQuestions("telemetry-on", snapshot, {
      window: 60_000,
      telemetry: { enabled: true, endpoint: url }
    })
    const file = path.join(where.home, "telemetry.jsonl")
    assert.strictEqual(statSync(file).mode & 0o777, 0o600)
    const records = jsonLines(file)
    const names = records.map(({ name }) => name)
    assert.includeMembers(names, ["request", "turn", "tool_call", "chat_compression"])
    for (const record of records) assert.strictEqual(record["session"], "s")
    const attributes: Readonly<Record<string, unknown>> = Object(
      records.find(({ name }) => name === "chat_compression")?.["attributes"]
    )
    assert.deepInclude(attributes, { status: "COMPRESSED", trigger: "auto" })
    assert.isBelow(Number(attributes["tokens_after"]), Number(attributes["tokens_before"]))
    // Both calls of the summary are known by the turn they came before.
    const promptId = String(attributes["prompt_id"])
    assert.match(promptId, /^s:e\d+$/)
    const summaries: ReadonlyArray<Readonly<Record<string, unknown>>> = records
      .filter(({ name }) => name === "summary_call")
      .map((record) => Object(record["attributes"]))
    assert.deepStrictEqual(
      summaries.map((one) => [one["prompt_id"], one["role"], one["purpose"]]),
      [
        [promptId, "utility_compressor", "generate"],
        [`${promptId}-verify`, "utility_compressor", "verify"]
      ]
    )
    for (const one of summaries) assert.isAbove(Number(one["prompt_tokens"]), 0)
    const traces = (got.get("/v1/traces") ?? []).join("\n")
    for (const value of [promptId, `${promptId}-verify`, "utility_compressor"]) {
      assert.include(traces, JSON.stringify(value))
    }

    assert.includeMembers([...got.keys()], ["/v1/traces", "/v1/metrics", "/v1/logs"])
    const logs = (got.get("/v1/logs") ?? []).join("\n")
    assert.include(logs, "chat_compression")
    assert.include(logs, "tokens_before")
    assert.include(logs, `${promptId}-verify`)
    assert.include((got.get("/v1/metrics") ?? []).join("\n"), "palimpsest_tokens_saved")
    const everything = [readFileSync(file, "utf8"), ...[...got.values()].flat()].join("\n")
    for (const word of words) assert.notInclude(everything, word)
    assert.notInclude(everything, "AIza")
  })

  it.live("is off by default; with prompts enabled it includes them", function* () {
    const off = yield* place("telemetry-off")
    const fake = yield* FakeGemini.make(() => says("Hello."))
    assert.strictEqual((yield* runs(off, fake, ["ask", asked])).status, 0)
    assert.isFalse(existsSync(path.join(off.home, "telemetry.jsonl")))
    const on = yield* place("telemetry-prompts", {
      home: { "settings.json": { telemetry: { enabled: true, prompts: true, file: "mine.jsonl" } } }
    })
    assert.strictEqual((yield* runs(on, fake, ["ask", asked])).status, 0)
    const file = [path.join(on.cwd, "mine.jsonl"), path.join(on.home, "mine.jsonl")].find(existsSync)
    assert.include(readFileSync(file ?? "", "utf8"), asked)
  })

  it.live("prints at most a line for an unwritable file or a missing collector, and the answer arrives", function* () {
    const where = yield* place("telemetry-broken", {
      home: {
        "settings.json": { telemetry: { enabled: true, endpoint: "http://127.0.0.1:9", file: "/dev/null/x.jsonl" } }
      }
    })
    const fake = yield* FakeGemini.make(() => says("Hello."))
    const { status, stderr, stdout } = yield* runs(where, fake, ["ask", "Hello"])
    assert.deepStrictEqual([status, String(stdout)], [0, "Hello.\n"])
    assert.match(stderr, /^palimpsest: no more telemetry is kept: [^\n]*x\.jsonl[^\n]*\n$/)
  })
})
