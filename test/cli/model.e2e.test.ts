import { Deferred, Effect, Fiber } from "effect"
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync } from "node:fs"
import path from "node:path"
import * as FakeGemini from "../../src/layers/testing/FakeGemini.ts"
import { assert, describe, it } from "../support/vitest.ts"
import { example, program, run } from "./program.ts"

/** `compress --summarizer model` against a Gemini API on loopback. */

const key = "AIza-not-a-real-key-0123456789"

const section = (name: string, body: string) => `<${name}>\n- ${body}\n</${name}>`
const snapshot = `<scratchpad>private</scratchpad><state_snapshot>${[
  ["overall_goal", "set up credo and dialyxir"],
  ["active_constraints", "none were given"],
  ["key_knowledge", "mix.exs was read; /made/up/Path.ts was not"],
  ["artifact_trail", "nothing was written"],
  ["file_system_state", "/home/marco/projects/spotter is the folder"],
  ["recent_actions", "web searches"],
  ["task_state", "the beads are to be drafted"]
]
  .map(([name = "", body = ""]) => section(name, body))
  .join("")}</state_snapshot>`

const said = (text: string) => FakeGemini.json(FakeGemini.response([{ text }]))
const env = (fake: FakeGemini.FakeGemini) => ({ GEMINI_API_KEY: key, GOOGLE_GEMINI_BASE_URL: fake.url })
const folderFor = (name: string) =>
  Effect.map(program, ({ folder }) => {
    const own = path.join(folder, name)
    mkdirSync(own, { recursive: true })
    return own
  })

describe("compress --summarizer model", () => {
  it.effect("makes two requests, checks the answers, and reports the cost", function* () {
    const usage = { promptTokenCount: 20_000, candidatesTokenCount: 5, totalTokenCount: 20_005 }
    const counted = FakeGemini.json(FakeGemini.response([{ text: snapshot }], { usage }))
    const fake = yield* FakeGemini.make(FakeGemini.queue(said(snapshot), counted), {
      describe: (name) => FakeGemini.description(name, 1_000_000, 8_192)
    })
    const { status, stderr, stdout } = yield* run(
      ["compress", example, "--force", "--summarizer", "model", "--model", "gemini-test", "--json"],
      { env: env(fake) }
    )
    const report = JSON.parse(String(stdout))
    assert.deepStrictEqual([status, report.status, report.outcome.by], [0, "COMPRESSED", "model"])
    assert.notInclude(report.snapshot, "private")
    assert.deepStrictEqual(report.outcome.doubts.removed, ["/made/up/Path.ts"])
    assert.strictEqual(report.outcome.calls.length, 2)
    assert.strictEqual(report.outcome.calls[0].usage.prompt, 10)
    const requests = yield* fake.requests
    assert.deepStrictEqual(
      requests.map(({ method, model }) => [method, model]),
      [
        ["generateContent", "gemini-test"],
        ["generateContent", "gemini-test"]
      ]
    )
    assert.notInclude(`${stdout}${stderr}${JSON.stringify(requests)}`, key)
    // What the model's own count taught is kept, that of the second request: no tokenizer needs 10 tokens for the first. It is for the next run,
    // and readable by its owner alone.
    const { folder } = yield* program
    const learned = path.join(`${folder}-home`, "calibrations.json")
    assert.property(JSON.parse(readFileSync(learned, "utf8")).models, "gemini-test")
    assert.strictEqual(statSync(learned).mode & 0o777, 0o600)
  })

  it.effect("is the default with a key, and falls back to code with a message", function* () {
    const refusal = said("I will not do that.")
    const fake = yield* FakeGemini.make(FakeGemini.queue(refusal, refusal))
    const { status, stdout } = yield* run(["compress", example, "--force", "--json"], { env: env(fake) })
    const report = JSON.parse(String(stdout))
    assert.deepStrictEqual([status, report.status, report.outcome.by], [0, "COMPRESSED", "extractive"])
    assert.strictEqual(report.degraded.reason, "InvalidOutputError")
  })

  it.effect.each([
    ["a key that is not accepted", FakeGemini.keyInvalid, "AuthenticationError"],
    ["a request that is too long", FakeGemini.contextLength(2_000_000, 1_048_576), "ContextLengthError"]
  ] as const)("%s prints one line, exits with 1, and writes nothing", function* ([, answer, reason]) {
    // What is too long is sent again, shorter each time.
    const attempts = reason === "ContextLengthError" ? 8 : 1
    const fake = yield* FakeGemini.make(FakeGemini.queue(...Array.from({ length: attempts }, () => answer)))
    const folder = yield* folderFor(`fails-${reason}`)
    const { status, stderr, stdout } = yield* run(
      ["compress", example, "--force", "--summarizer", "model", "--json", "--out", path.join(folder, "out.jsonl")],
      { env: env(fake) }
    )
    const report = JSON.parse(String(stdout))
    assert.deepStrictEqual([status, report.status, report.outcome.reason], [1, "FAILED_SUMMARIZER", reason])
    assert.match(stderr, /^palimpsest: the summary failed: [^\n]+\n$/)
    assert.isEmpty(report.elided)
    assert.isAtMost((yield* fake.requests).length, attempts)
  })

  it.effect("Ctrl+C while the model answers closes its socket, exits with 130, and writes nothing", function* () {
    const fake = yield* FakeGemini.make(() => [FakeGemini.stall])
    const folder = yield* folderFor("interrupted-model")
    const running = yield* Deferred.make<{ readonly kill: (signal: NodeJS.Signals) => void }>()
    const fiber = yield* Effect.forkChild(
      run(["compress", example, "--force", "--summarizer", "model", "--out", path.join(folder, "out.jsonl")], {
        env: env(fake),
        started: (child) => Deferred.doneUnsafe(running, Effect.succeed(child))
      })
    )
    yield* fake.received(0)
    const child = yield* Deferred.await(running)
    child.kill("SIGINT")
    assert.isFalse(yield* fake.closed(0))
    const { status, stdout } = yield* Fiber.join(fiber)
    assert.deepStrictEqual([status, String(stdout)], [130, ""])
    assert.isFalse(existsSync(path.join(folder, "out.jsonl")))
    assert.deepStrictEqual(readdirSync(folder), [])
    assert.strictEqual((yield* fake.requests).length, 1)
  })
})
