import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Layer, Stream } from "effect"
import { call, model, type Part, response, text, user } from "../../../src/domain/content/Content.ts"
import type { RecordedTurn } from "../../../src/domain/evaluation/Replay.ts"
import { estimateText } from "../../../src/domain/tokens/Tokens.ts"
import * as MemoryTempStore from "../../../src/layers/testing/MemoryTempStore.ts"
import { ReplayModel } from "../../../src/services/evaluation/ReplayModel.ts"
import { Model, type ModelRequest } from "../../../src/services/model/Model.ts"
import { isRetryable } from "../../../src/services/model/Retry.ts"
import { TokenCounter } from "../../../src/services/tokens/TokenCounter.ts"
import { Transcripts } from "../../../src/services/transcripts/Transcripts.ts"
import { sessionFile } from "../../support/sessions.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const turn = (message: ReadonlyArray<Part>, ...answer: ReadonlyArray<Part>): RecordedTurn => ({
  before: [],
  message,
  answer: model(...answer)
})

const turns = [
  turn(
    [text("What is there?")],
    { text: "I look.", thought: true },
    text("One\ntwo\n"),
    call("ls", { path: "." }, "c1")
  ),
  turn([response("ls", { output: "a b" }, "c1")], text("There are a and b."))
]

const request = (...words: ReadonlyArray<string>): ModelRequest => ({
  model: "recorded",
  contents: words.map((each) => user(text(each)))
})

const asked = (of: Model["Service"], ...words: ReadonlyArray<string>) => Stream.runCollect(of.stream(request(...words)))

describe("ReplayModel", () => {
  it.effect("returns the recorded answers to any request, with complete thoughts and calls", function* () {
    const { model: replayed } = yield* ReplayModel.make(turns)
    const first = yield* asked(replayed, "anything")
    assert.deepStrictEqual(
      first.flatMap(({ parts }) => parts),
      [{ text: "I look.", thought: true }, text("One\ntwo\n"), call("ls", { path: "." }, "c1")]
    )
    assert.strictEqual(first.at(-1)?.finishReason, "STOP")
    const second = yield* asked(replayed, "something else")
    assert.deepStrictEqual(second[0]?.parts, [text("There are a and b.")])
  })

  it.effect("returns an answer in pieces", function* () {
    const { model: replayed } = yield* ReplayModel.make(turns, (part) =>
      part.text === "One\ntwo\n" ? [text("One\n"), text("two\n")] : [part]
    )
    const answer = yield* asked(replayed, "anything")
    assert.deepStrictEqual(
      answer.slice(0, -1).map(({ parts }) => parts),
      [[{ text: "I look.", thought: true }], [text("One\n")], [text("two\n")], [call("ls", { path: "." }, "c1")]]
    )
  })

  it.effect("reports as usage the whole request, and the part a cache would have served", function* () {
    const { model: replayed, requests } = yield* ReplayModel.make(turns)
    const [one, two] = ["What is there?", "And what else is there?"]
    const first = (yield* asked(replayed, one)).at(-1)?.usage
    const second = (yield* asked(replayed, one, two)).at(-1)?.usage
    const [ofOne, ofTwo] = [estimateText(one), estimateText(two)]
    assert.deepInclude(first, { prompt: ofOne, cached: 0, thoughts: estimateText("I look.") })
    assert.deepInclude(second, { prompt: ofOne + ofTwo, cached: ofOne, thoughts: 0 })
    assert.strictEqual(yield* replayed.countTokens(request(one, two)), ofOne + ofTwo)
    assert.deepStrictEqual(yield* requests, [
      { tokens: ofOne, prefix: 0 },
      { tokens: ofOne + ofTwo, prefix: ofOne }
    ])
  })

  it.effect("repeats an answer that was not read to its end", function* () {
    const { model: replayed } = yield* ReplayModel.make(turns)
    yield* replayed.stream(request("a")).pipe(Stream.take(1), Stream.runDrain)
    const again = yield* asked(replayed, "a")
    assert.deepStrictEqual(again[0]?.parts, [{ text: "I look.", thought: true }])
  })

  it.effect("yields the recorded user messages in order; tool results are not messages", function* () {
    const {
      model: replayed,
      next,
      prompt,
      skip
    } = yield* ReplayModel.make([...turns, turn([text("Thanks.")], text("!"))])
    assert.strictEqual(yield* prompt, "What is there?")
    yield* asked(replayed, "a")
    assert.strictEqual(yield* prompt, "")
    assert.deepStrictEqual((yield* next)?.message, turns[1]?.message)
    yield* skip
    assert.strictEqual(yield* prompt, "Thanks.")
    yield* skip
    assert.isUndefined(yield* next)
    assert.strictEqual(yield* prompt, "")
  })

  it.effect("after the last answer fails in one line, marked as final", function* () {
    const { model: replayed } = yield* ReplayModel.make(turns.slice(1))
    yield* asked(replayed, "a")
    const error = yield* Effect.flip(asked(replayed, "b"))
    assert.match(error.message, /^[^\n]*the recording has ended[^\n]*$/)
    assert.isFalse(isRetryable(error))
  })

  it.effect("a summary request uses up no answer", function* () {
    const { model: replayed } = yield* ReplayModel.make(turns)
    const error = yield* Effect.flip(replayed.generate(request("Summarise.")))
    assert.include(error.message, "no summaries")
    assert.deepStrictEqual((yield* asked(replayed, "a"))[0]?.parts, [{ text: "I look.", thought: true }])
  })

  const transcripts = Transcripts.layer.pipe(
    Layer.provide(Layer.mergeAll(MemoryTempStore.layer, TokenCounter.layerEstimate)),
    Layer.provide(NodeServices.layer)
  )

  it.effect(
    "a file can be a model",
    ReplayModel.layer(sessionFile("claude-code-short")).pipe(Layer.provide(transcripts)),
    function* () {
      const replay = yield* ReplayModel
      assert.strictEqual(yield* replay.prompt, "mix phx.server doesnt seem to start")
      const answer = yield* asked(yield* Model, "a")
      assert.strictEqual(answer.at(-1)?.finishReason, "STOP")
    }
  )

  it.effect("an unreadable file cannot", function* () {
    const error = yield* Effect.flip(Layer.build(ReplayModel.layer("/nowhere.jsonl").pipe(Layer.provide(transcripts))))
    assert.include(error.message, "no such file")
  })
})
