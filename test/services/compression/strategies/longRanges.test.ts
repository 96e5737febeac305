import { Effect, Layer, Ref, Stream } from "effect"
import { statusOf } from "../../../../src/domain/compression/Compression.ts"
import { critiqueRequest, snapshotRequest } from "../../../../src/domain/compression/strategies/gemini/Prompts.ts"
import { defaultPolicy, type Policy } from "../../../../src/domain/compression/strategies/Policy.ts"
import { strategyDefaults, type StrategyName } from "../../../../src/domain/compression/strategies/Strategies.ts"
import {
  call,
  type Content,
  isResponse,
  model,
  plainText,
  response,
  text,
  user
} from "../../../../src/domain/content/Content.ts"
import { TokenCount } from "../../../../src/domain/tokens/Tokens.ts"
import * as MemoryCalibrations from "../../../../src/layers/testing/MemoryCalibrations.ts"
import * as MemoryTempStore from "../../../../src/layers/testing/MemoryTempStore.ts"
import { Compression } from "../../../../src/services/compression/Compression.ts"
import * as ModelSummarizer from "../../../../src/services/compression/summary/ModelSummarizer.ts"
import { requestFor } from "../../../../src/services/conversation/KnownConversation.ts"
import { HookSystem } from "../../../../src/services/hooks/HookSystem.ts"
import { ContextLengthError, Model, ModelError, type ModelRequest } from "../../../../src/services/model/Model.ts"
import * as ModelWindows from "../../../../src/services/model/ModelWindows.ts"
import { estimateContents } from "../../../../src/services/tokens/Calibrations.ts"
import { TokenCounter } from "../../../../src/services/tokens/TokenCounter.ts"
import { isUnitTier, runsOf } from "../../../support/runs.ts"
import { assert, describe, it } from "../../../support/vitest.ts"

/** Ranges that exceed the summarizing model's own window. */

const snapshot = `<state_snapshot>
<overall_goal>
- keep the build green
</overall_goal>
<task_state>
- [TODO] read on
</task_state>
</state_snapshot>`

const name = "summarizer-of-a-small-window"

/** Compresses with a model that refuses what its window does not hold. */
const compressing = Effect.fnUntraced(function* (
  strategy: StrategyName,
  contents: ReadonlyArray<Content>,
  window: number,
  {
    answer = () => snapshot,
    change = {},
    scale = 1
  }: {
    /** The answer of a call, by the number of calls before. */
    readonly answer?: (index: number) => string
    readonly change?: Partial<Policy>
    /** How many tokens of the model one estimated token is. */
    readonly scale?: number
  } = {}
) {
  const count = (request: ModelRequest) => Effect.map(estimateContents(request), (tokens) => tokens * scale)
  const asked = yield* Ref.make<ReadonlyArray<ModelRequest>>([])
  const small = Layer.succeed(Model, {
    generate: Effect.fnUntraced(function* (request) {
      if ((yield* count(request)) > window) {
        return yield* new ModelError({ reason: new ContextLengthError({}) })
      }
      const before = yield* Ref.getAndUpdate(asked, (all) => [...all, request])
      return { content: model(text(answer(before.length))), finishReason: "STOP", usage: null }
    }),
    stream: () => Stream.die("unexpected call"),
    countTokens: count
  })
  const services = Compression.layer.pipe(
    Layer.provide(Layer.provide(ModelSummarizer.layer, Layer.merge(small, MemoryCalibrations.layer))),
    Layer.provideMerge(Layer.mergeAll(TokenCounter.layerEstimate, MemoryTempStore.layer, HookSystem.layer))
  )
  const policy: Policy = {
    ...defaultPolicy,
    ...strategyDefaults(strategy),
    summarizer: "model",
    model: name,
    ladder: false,
    preserve: 0.01,
    promptTokens: TokenCount.make(2_000_000),
    ...change
  }
  const { outcome } = yield* Effect.gen(function* () {
    const request = yield* requestFor(
      contents.map((content) => ({ content })),
      policy
    )
    return yield* Compression.use(({ compress }) => compress({ ...request, forced: true }))
  }).pipe(Effect.provideService(ModelWindows.Overrides, { [name]: { window } }), Effect.provide(services))
  return { outcome, asked: yield* Ref.get(asked) }
})

const turn = (n: number, output: string): ReadonlyArray<Content> => [
  user(text(`question ${n} about module_${n}`)),
  model(call("read_file", { path: `src/file${n}.ts` }, `c${n}`)),
  user(response("read_file", { output }, `c${n}`)),
  model(text(`answer ${n}: see src/file${n}.ts`))
]
/** 7 MB in turns in the laws tier. */
const long = Array.from({ length: runsOf(700, isUnitTier ? 40 : 150) }, (_, n) =>
  turn(n, `const value${n} = compute(${n}) // of file ${n}\n`.repeat(250))
).flat()

/** Most of it in one message, in the arguments of one call and in its result. */
const size = runsOf(1_500_000, isUnitTier ? 120_000 : 300_000)
const giants: ReadonlyArray<Content> = [
  user(text(`Read this: ${"some words of a pasted log\n".repeat(size / 27)}`)),
  model(call("write_file", { path: "a.ts", content: `const a = "é\\n"\n`.repeat(size / 16) }, "w")),
  user(response("write_file", { output: "\n".repeat(size) }, "w")),
  model(text("done"), { inlineData: { mimeType: "image/png", data: "A".repeat(4_000) } }),
  ...turn(1, "x"),
  ...turn(2, "x")
]

const questions = (asked: ReadonlyArray<ModelRequest>) =>
  asked.map(({ contents }) => plainText(contents.at(-1) ?? user()))

describe("a range beyond the summarizing model's window", () => {
  it.effect.skipIf(isUnitTier)(
    "palimpsest: a range of 7 MB ends in a snapshot by a model of any window (seed; ours: from a digest)",
    function* () {
      for (const contents of [long, giants]) {
        for (const window of [3_000, 32_000]) {
          const { asked, outcome } = yield* compressing("palimpsest", contents, window)
          assert.strictEqual(statusOf(outcome), "COMPRESSED", JSON.stringify(outcome).slice(0, 400))
          assert.deepInclude(outcome, { by: "model", degraded: null })
          assert.strictEqual(asked.length, 2)
        }
      }
    }
  )

  it.effect("palimpsest: a model that accepts less than its stated window gets a smaller digest (ours)", function* () {
    for (const scale of [4, 8]) {
      const { asked, outcome } = yield* compressing("palimpsest", long, 32_000, { scale })
      assert.strictEqual(statusOf(outcome), "COMPRESSED", JSON.stringify(outcome).slice(0, 400))
      assert.strictEqual(asked.length, 2)
    }
  })

  it.effect(
    "gemini: the model sees the original when it fits, else shortened outputs (Gemini CLI; ours: its own window)",
    function* () {
      const contents = Array.from({ length: 6 }, (_, n) => turn(n, `line of file ${n}\n`.repeat(2_000))).flat()
      const change = { toolBudget: TokenCount.make(1_000) }
      const sent = Effect.fnUntraced(function* (window: number) {
        const { asked, outcome } = yield* compressing("gemini", contents, window, { change })
        assert.strictEqual(statusOf(outcome), "COMPRESSED")
        assert.deepStrictEqual(questions(asked), [snapshotRequest("create"), critiqueRequest])
        return JSON.stringify(asked[0]?.contents)
      })
      assert.notInclude(yield* sent(1_000_000), "The last 30 of 2001 lines")
      assert.include(yield* sent(32_000), "The last 30 of 2001 lines")
    }
  )

  it.effect.skipIf(isUnitTier)(
    "gemini: a range of 7 MB is summarised in parts, which are joined and checked (seed)",
    function* () {
      for (const contents of [long, giants]) {
        for (const window of contents === long ? [runsOf(100_000, 30_000)] : [4_000, runsOf(40_000, 20_000)]) {
          const { asked, outcome } = yield* compressing("gemini", contents, window)
          assert.strictEqual(statusOf(outcome), "COMPRESSED", JSON.stringify(outcome).slice(0, 400))
          const said = questions(asked)
          assert.isAtLeast(said.length, 4)
          assert.deepStrictEqual(said.slice(-2), [snapshotRequest("stages"), critiqueRequest])
          assert.deepStrictEqual(new Set(said.slice(0, -2)), new Set([snapshotRequest("create")]))
          assert.strictEqual("calls" in outcome && outcome.calls?.length, asked.length)
          // Each part begins where no call waits for its result.
          for (const { contents: sent } of asked) assert.isFalse(sent[0]?.parts.some(isResponse))
        }
      }
      const { asked } = yield* compressing("gemini", long, runsOf(200_000, 40_000))
      const parts = asked.slice(0, -2).flatMap((request) => request.contents.slice(0, -1))
      assert.strictEqual(parts.filter(({ role }) => role === "user").length, parts.length / 2)
      const all = JSON.stringify(parts)
      for (let n = 0; n < long.length / 4 - 1; n += 1) assert.include(all, `question ${n} about`)
    }
  )

  it.effect("gemini: an empty summary of one part is an empty summary (ours)", function* () {
    const { asked, outcome } = yield* compressing("gemini", long, runsOf(200_000, 40_000), {
      answer: (index) => (index === 1 ? " " : snapshot)
    })
    assert.strictEqual(statusOf(outcome), "COMPRESSION_FAILED_EMPTY_SUMMARY")
    assert.notInclude(questions(asked), snapshotRequest("stages"))
  })

  it.effect("gemini: a window that holds no part is one error, not a loop (ours)", function* () {
    const { asked, outcome } = yield* compressing("gemini", giants, 100)
    assert.deepInclude(outcome, { _tag: "FailedSummarizer", reason: "ContextLengthError" })
    assert.lengthOf(asked, 0)
  })
})
