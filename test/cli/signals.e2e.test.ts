import { Deferred, Effect, Fiber } from "effect"
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import path from "node:path"
import * as FakeGemini from "../../src/layers/testing/FakeGemini.ts"
import { assert, describe, it } from "../support/vitest.ts"
import { conversationIn } from "./conversation.ts"
import { program, run } from "./program.ts"

/** What a signal leaves of a conversation that is kept, and how every command that reads one ends by it. */

const signals = [
  ["SIGINT", 130],
  ["SIGTERM", 143],
  ["SIGHUP", 129]
] as const

const answer = FakeGemini.sse(FakeGemini.response([{ text: "It is done." }]))

const contentsOf = (request: FakeGemini.FakeRequest | undefined): unknown => {
  const { contents = [] }: { contents?: ReadonlyArray<unknown> } = Object(request?.body)
  return conversationIn(contents)
}

/** A home of its own, and `ask --session work` with it. */
const asking = Effect.fnUntraced(function* (name: string, fake: FakeGemini.FakeGemini, settings: object = {}) {
  const { folder } = yield* program
  const home = path.join(folder, `signals-${name}`)
  mkdirSync(home, { recursive: true })
  writeFileSync(path.join(home, "settings.json"), JSON.stringify(settings))
  const sessions = path.join(home, "sessions")
  const env = { PALIMPSEST_HOME: home, GEMINI_API_KEY: "AIza-not-a-key", GOOGLE_GEMINI_BASE_URL: fake.url }
  const asked = ["ask", "--session", "work"]
  const ask = (message: string) => run(asked, { cwd: home, env, input: message })
  /** Asks, and sends the signal once the server has this request. */
  const cut = Effect.fnUntraced(function* (message: string, request: number, signal: NodeJS.Signals, args = asked) {
    const running = yield* Deferred.make<{ readonly kill: (signal: NodeJS.Signals) => void }>()
    const fiber = yield* Effect.forkChild(
      run(args, {
        cwd: home,
        env,
        input: message,
        started: (child) => Deferred.doneUnsafe(running, Effect.succeed(child))
      })
    )
    yield* fake.received(request)
    const child = yield* Deferred.await(running)
    child.kill(signal)
    assert.isFalse(yield* fake.closed(request))
    return yield* Fiber.join(fiber)
  })
  return {
    ask,
    cut,
    names: () => readdirSync(sessions).sort(),
    log: () => readFileSync(path.join(sessions, "work.jsonl"), "utf8")
  }
})

describe("a signal", () => {
  it.effect.each(signals)(
    "%s during an answer leaves the session unchanged and free; the next turn works",
    function* ([signal, status]) {
      const fake = yield* FakeGemini.make(({ index }) =>
        index === 1 ? [FakeGemini.streamHead, FakeGemini.stall] : answer
      )
      const { ask, cut, log, names } = yield* asking(signal, fake)
      yield* ask("one")
      const before = log()
      const ended = yield* cut("two", 1, signal)
      assert.deepStrictEqual([ended.status, String(ended.stdout), ended.stderr], [status, "", ""])
      assert.strictEqual(log(), before)
      assert.deepStrictEqual(names(), ["work.jsonl"])
      assert.strictEqual((yield* ask("three")).status, 0)
      const said = (role: string, text: string) => ({ role, parts: [{ text }] })
      assert.deepStrictEqual(contentsOf((yield* fake.requests)[2]), [
        said("user", "one"),
        said("model", "It is done."),
        said("user", "three")
      ])
    }
  )

  it.effect("SIGTERM during a compression closes its request; the session is unchanged and free", function* () {
    // A conversation is streamed; what is asked whole is a snapshot.
    const fake = yield* FakeGemini.make(({ body, method }) =>
      method === "generateContent"
        ? [FakeGemini.stall]
        : method === "countTokens"
          ? FakeGemini.tokens(Math.ceil(JSON.stringify(body).length / 4))
          : answer
    )
    const settings = { window: 60_000, compressionThreshold: 0.1, titles: false }
    const { ask, cut, log, names } = yield* asking("compressing", fake, settings)
    yield* ask("The build of src/legacy is red.\n".repeat(500))
    const before = log()
    const ended = yield* cut("The tests of src/new are green.\n".repeat(500), 2, "SIGTERM")
    const methods = (yield* fake.requests).map(({ method }) => method)
    assert.deepStrictEqual(methods, ["countTokens", "streamGenerateContent", "generateContent"])
    assert.deepStrictEqual([ended.status, String(ended.stdout), ended.stderr], [143, "", ""])
    assert.strictEqual(log(), before)
    assert.deepStrictEqual(
      names().filter((name) => name !== "work.jsonl.blobs"),
      ["work.jsonl"]
    )
  })

  it.effect.each(signals)("%s during `compress` says so, with --json by the outcome", function* ([signal, status]) {
    const fake = yield* FakeGemini.make(({ method }) =>
      method === "countTokens" ? FakeGemini.tokens(900) : [FakeGemini.stall]
    )
    const { cut } = yield* asking(`json-${signal}`, fake)
    const contents = Array.from({ length: 20 }, (_, at) => ({
      role: at % 2 === 0 ? "user" : "model",
      parts: [{ text: `Part ${at} of the build of src/legacy is red.`.repeat(20) }]
    }))
    const text = yield* cut(JSON.stringify(contents), 0, signal, ["compress", "-", "--force"])
    assert.deepStrictEqual([text.status, String(text.stdout)], [status, ""])
    assert.strictEqual(text.stderr, "palimpsest: cancelled; nothing was written\n")
    const ended = yield* cut(JSON.stringify(contents), 1, signal, ["compress", "-", "--force", "--json"])
    assert.deepStrictEqual([ended.status, ended.stderr], [status, ""])
    const report = JSON.parse(String(ended.stdout))
    const { after, before } = report.tokens
    assert.deepInclude(report, { status: "CANCELLED", outcome: { _tag: "Cancelled", before }, snapshot: null })
    assert.isAbove(before, 0)
    assert.strictEqual(after, before)
    assert.lengthOf(report.history, contents.length)
  })
})
