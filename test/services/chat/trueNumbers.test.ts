import { Effect, Layer } from "effect"
import { tokensOf } from "../../../src/domain/compression/Compression.ts"
import { call, model, response, text } from "../../../src/domain/content/Content.ts"
import * as Offline from "../../../src/layers/assembly/Offline.ts"
import * as Scripted from "../../../src/layers/testing/ScriptedModel.ts"
import { ContextLengthError, ModelError, type ModelRequest } from "../../../src/services/model/Model.ts"
import { contentParts } from "../../../src/services/tokens/Calibrations.ts"
import { estimated, estimateOf } from "../../support/scales.ts"
import { begin, endingOf, taken } from "../../support/sending.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** What people and triggers go by is what the server counts, not what the estimator thinks. */

const words = (tokens: number): string => "the builder keeps the old road open ".repeat(Math.ceil(tokens / 7))

const isSummary = ({ systemInstruction }: ModelRequest): boolean =>
  systemInstruction?.includes("state_snapshot") === true

/** A runtime whose model says this, reports what `prompt` says, and counts by `factor` when it is asked. */
const served = (options: {
  readonly prompt: (request: ModelRequest) => number
  readonly factor?: number
  readonly answer?: Scripted.Step
  readonly summary?: string
}) =>
  Layer.fresh(
    Offline.layerWithModel(
      Scripted.layer(
        (request): Scripted.Step =>
          isSummary(request)
            ? (options.summary ?? "")
            : (options.answer ?? {
                content: model(text("fine")),
                finishReason: "STOP",
                usage: { prompt: options.prompt(request), answer: 1, thoughts: 0, cached: 0 }
              }),
        (request) => Math.ceil(estimated(contentParts(request)) * (options.factor ?? 1))
      )
    )
  )

const paid = Effect.map(
  Scripted.Script.use(({ calls }) => calls),
  (calls) => calls.filter(({ method }) => method === "generate").length
)

describe("strategy gemini uses the last reported count", () => {
  for (const [reported, compresses] of [
    [4_999, false],
    [5_000, true]
  ] as const) {
    it.effect(
      `${reported} of 10,000: ${compresses ? "compressed" : "not compressed"} before the next message`,
      served({ prompt: (request) => (request.contents.length >= 7 ? reported : 100), summary: "" }),
      function* () {
        const policy = { strategy: "gemini", summarizer: "model", minGain: 0 } as const
        const { chat } = yield* begin({ window: 10_000, policy })
        for (let n = 0; n < 4; n += 1) yield* taken(chat.send(`${n} ${words(400)}`))
        const before = yield* paid
        yield* taken(chat.send("and now?"))
        assert.strictEqual((yield* paid) - before, compresses ? 2 : 0)
      }
    )
  }
})

describe("a missing summary", () => {
  it.effect.each(["gemini", "palimpsest"] as const)(
    "%s: the conversation continues, nothing is paid for twice, and the model is given up",
    served({ prompt: (request) => Math.ceil(estimateOf(request) * 3), factor: 3 }),
    function* (strategy) {
      const { chat } = yield* begin({ window: 4_000, policy: { strategy, summarizer: "model" } })
      const costs: Array<number> = []
      const lines: Array<string> = []
      for (let n = 0; n < 12; n += 1) {
        const before = yield* paid
        const { events } = yield* taken(chat.send(`${n} ${words(500)}`))
        assert.strictEqual(endingOf(events)?._tag, "Finished", `message ${n}`)
        for (const event of events) if (event._tag === "Notice") lines.push(event.message)
        costs.push((yield* paid) - before)
      }
      assert.isAtMost(Math.max(...costs), 2)
      assert.strictEqual(costs.filter((cost) => cost > 0).length, 2)
      assert.lengthOf(
        lines.filter((line) => line.includes("not asked again")),
        1
      )
      yield* chat.configure({ model: "another" })
      const before = yield* paid
      yield* chat.compress()
      assert.isAbove((yield* paid) - before, 0)
    }
  )
})

it.effect(
  "a compression by hand that makes the request larger is refused, also by a strategy of reported counts",
  served({ prompt: () => 6_400, summary: `<state_snapshot>${"detail ".repeat(300)}</state_snapshot>` }),
  function* () {
    const { chat, events } = yield* begin({
      window: 40_000,
      systemInstruction: "instruction ".repeat(5_000),
      policy: { strategy: "gemini", summarizer: "model" }
    })
    for (const line of ["hello", "how are you", "fine"]) yield* taken(chat.send(line))
    const outcome = yield* chat.compress()
    if (outcome._tag !== "FailedInflatedTokenCount") return assert.fail(outcome._tag)
    assert.strictEqual(outcome.before, 6_401)
    assert.isAbove(outcome.after, outcome.before + 200)
    assert.isBelow(outcome.after, outcome.before + 600)
    assert.notInclude(
      events.map(({ _tag }) => _tag),
      "Compressed"
    )
  }
)

it.effect.each(["claude-sonnet-5", "openai/gpt-5", "ollama/llama3.1"])(
  "the summarizing model of a conversation with %s is the same",
  served({ prompt: () => 100 }),
  function* (name) {
    const { chat } = yield* begin({ model: name, window: 10_000, policy: { summarizer: "model" } })
    for (let n = 0; n < 4; n += 1) yield* taken(chat.send(`${n} ${words(400)}`))
    yield* chat.compress()
    const asked = (yield* Scripted.Script.use(({ calls }) => calls)).filter(({ method }) => method === "generate")
    assert.isAbove(asked.length, 0)
    assert.deepStrictEqual([...new Set(asked.map(({ request }) => request.model))], [name])
  }
)

it.effect(
  "a first compression by a model is preceded by a count, which a cancel ends",
  served({ prompt: () => 100 }),
  function* () {
    const { chat } = yield* begin({ window: 10_000, policy: { summarizer: "model" } })
    yield* chat.append([{ content: { role: "user", parts: [text(words(400))] } }, { content: model(text("ok")) }])
    yield* chat.compress({ cancel: Effect.void })
    yield* chat.compress()
    const calls = yield* Scripted.Script.use((script) => script.calls)
    assert.strictEqual(calls[0]?.method, "countTokens")
  }
)

describe("one conversation has one figure", () => {
  for (const reports of [true, false]) {
    let isCounted = true
    it.effect(
      `in a compression, its undo and the status line (counts are reported: ${reports})`,
      Layer.fresh(
        Offline.layerWithModel(
          Scripted.layer((request): Scripted.Step => {
            const own = estimated([text(request.systemInstruction ?? "")])
            // What one kind of text costs is learned from another conversation.
            const prompt = Math.ceil(estimateOf(request) * 2 - own)
            const usage = { prompt, answer: 1, thoughts: 0, cached: 0 }
            return { content: model(text("fine")), finishReason: "STOP", usage: isCounted ? usage : null }
          })
        )
      ),
      function* () {
        let environment = "It is early."
        const settings = {
          window: 40_000,
          systemInstruction: `{"a": [1, 2, 3]}\n`.repeat(200),
          environment,
          refreshEnvironment: Effect.sync(() => environment)
        }
        const other = yield* begin(settings)
        for (let n = 0; n < 3; n += 1) yield* taken(other.chat.send(`${n} ${words(900)}`))
        isCounted = reports
        const { chat } = yield* begin(settings)
        for (let n = 0; n < 6; n += 1) yield* taken(chat.send(`${n} ${words(700)}`))
        const before = (yield* chat.usage).tokens
        const outcome = yield* chat.compress()
        const after = (yield* chat.usage).tokens
        assert.deepStrictEqual({ ...tokensOf(outcome) }, { before, after })
        assert.isTrue(yield* chat.undo)
        assert.strictEqual((yield* chat.usage).tokens, before)
        assert.isTrue(yield* chat.redo)
        assert.strictEqual((yield* chat.usage).tokens, after)
        environment = `It is late, and ${words(200)}`
        assert.isTrue(yield* chat.undo)
        const renewed = tokensOf(yield* chat.compress())
        assert.strictEqual(renewed.before, before)
        assert.strictEqual(renewed.after, (yield* chat.usage).tokens)
      }
    )
  }
})

describe("learned counts", () => {
  it.effect.each<readonly [by: string, window: number, said: { tokens?: number; limit?: number }]>([
    ["a model with a window far smaller than assumed", 1_000_000, {}],
    ["an account with a limit below the window", 40_000, { tokens: 10_500, limit: 10_000 }]
  ])("ignore a refusal by %s", ([, window, said]) =>
    Effect.gen(function* () {
      const settings = { window }
      const one = yield* begin(settings)
      yield* taken(one.chat.send(words(9_000)))
      const other = yield* begin(settings)
      const message = words(100_000)
      yield* other.chat.append([{ content: { role: "user", parts: [text(message)] } }, { content: model(text("ok")) }])
      const { tokens } = yield* other.chat.usage
      assert.isBelow(tokens, estimated([text(message)]) * 1.5)
    }).pipe(
      Effect.provide(served({ prompt: estimateOf, answer: new ModelError({ reason: new ContextLengthError(said) }) }))
    )
  )

  it.effect(
    "of prompts that the server cut are not believed, and the user is told once",
    served({ prompt: (request) => Math.min(4_096, estimated(contentParts(request))) }),
    function* () {
      const { chat } = yield* begin({ window: 100_000 })
      const notices: Array<string> = []
      for (let n = 0; n < 8; n += 1) {
        const { events } = yield* taken(chat.send(`${n} ${words(1_000)}`))
        for (const event of events) if (event._tag === "Notice") notices.push(event.message)
      }
      const { tokens } = yield* chat.usage
      assert.isAbove(tokens, 7_500)
      assert.lengthOf(notices, 1)
      assert.include(notices[0], "num_ctx")
    }
  )

  it.effect(
    "of one model do not apply to another, also after an undo",
    served({
      prompt: (request) => Math.ceil(estimateOf(request) * (request.model === "gemini-2.5-pro" ? 0.7 : 1.4))
    }),
    function* () {
      const { chat } = yield* begin({ window: 100_000 })
      for (let n = 0; n < 4; n += 1) yield* taken(chat.send(`${n} ${words(1_000)}`))
      yield* chat.compress()
      yield* chat.configure({ model: "gemini-2.5-pro" })
      for (let n = 0; n < 2; n += 1) yield* taken(chat.send(`${n} ${words(1_000)}`))
      assert.isTrue(yield* chat.undo)
      const { tokens } = yield* chat.usage
      const counted = estimated((yield* chat.contents).flatMap(({ parts }) => parts)) * 0.7
      assert.closeTo(tokens, counted, counted * 0.03)
    }
  )
})

describe("a server that adds tokens to each request", () => {
  it.effect.each([30, 300, 12_000])("(%i) is no reason to refuse a long message after a short one", (added) =>
    Effect.gen(function* () {
      const { chat, events } = yield* begin({ window: 128_000 })
      yield* taken(chat.send("hi"))
      assert.closeTo((yield* chat.usage).tokens, added, 5)
      const long = words(12_000)
      const { events: shown } = yield* taken(chat.send(long))
      assert.strictEqual(endingOf(shown)?._tag, "Finished")
      assert.deepStrictEqual(
        events.map(({ _tag }) => _tag),
        ["Answered", "Answered"]
      )
      const expected = estimated([text(long)]) + added
      assert.closeTo((yield* chat.usage).tokens, expected, expected * 0.01)
    }).pipe(Effect.provide(served({ prompt: (request) => estimateOf(request) + added })))
  )
})

it.effect("a refusal names the tool results, where these do not fit", served({ prompt: estimateOf }), function* () {
  const calls = Array.from({ length: 3 }, (_, at) => call("read_file", { path: `src/${at}.ts` }, `c${at}`))
  const { chat } = yield* begin({
    window: 3_000,
    systemInstruction: words(2_100),
    toolOutput: { most: 1_000_000 }
  })
  yield* chat.append([{ content: { role: "user", parts: [text("read them")] } }, { content: model(...calls) }])
  const results = calls.map((_, at) => response("read_file", { output: words(2_000) }, `c${at}`))
  const { error } = yield* taken(chat.send(results))
  if (error?._tag !== "ContextOverflow") return assert.fail(`${error?._tag}`)
  assert.strictEqual(error.what, "tool results")
  assert.isAbove(error.estimated, 0)
  assert.isBelow(error.remaining, error.estimated)
  assert.include(error.message, "the tools' results do not fit")
})
