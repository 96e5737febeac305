import { Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { call, type Content, model, plainText, response, text, user } from "../../../src/domain/content/Content.ts"
import { defaults, loopDetectionOf } from "../../../src/domain/settings/Settings.ts"
import * as ScriptedModel from "../../../src/layers/testing/ScriptedModel.ts"
import { defaultLoopSettings, fromNumbers, type LoopSettings, make } from "../../../src/services/agent/LoopDetector.ts"
import { Model, ModelError, NetworkError } from "../../../src/services/model/Model.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const verdict = (confidence: unknown, analysis = "it reads the same file again and again") =>
  JSON.stringify({ unproductive_state_analysis: analysis, unproductive_state_confidence: confidence })

const talk: ReadonlyArray<Content> = Array.from({ length: 15 }, (_, n) => [
  model(call("read_file", { file_path: `${n}.ts` })),
  user(response("read_file", { output: `line ${n} ${"x".repeat(10_000)}` }))
]).flat()

const contents = Effect.succeed([user(text("Fix the build")), ...talk, model(call("read_file", {}))])

const models = Effect.map(
  ScriptedModel.Script.use(({ calls }) => calls),
  (calls) => calls.map(({ request }) => request.model)
)

/** The turns, of so many, before which models were asked, those in which a loop was found, and the models. */
const checked = (given: Partial<LoopSettings>, count: number, answers: ReadonlyArray<ScriptedModel.Step>) =>
  Effect.gen(function* () {
    const detector = yield* make(given)
    const [asked, found]: [Array<number>, Array<number>] = [[], []]
    for (let turn = 1; turn <= count; turn += 1) {
      const before = (yield* models).length
      if ((yield* detector.turn(contents, "Fix the build")) !== undefined) found.push(turn)
      if ((yield* models).length > before) asked.push(turn)
    }
    return [asked, found, (yield* models).map((model) => model.replace("gemini-2.5-", ""))]
  }).pipe(Effect.provide(Layer.fresh(ScriptedModel.layer(answers))))

const same = <E>(times: number, one: Effect.Effect<unknown, E>) => Effect.replicateEffect(one, times)

describe("the loop detector of an agent", () => {
  it.effect("reports a loop until the next turn, and then a new one", Model.layerUnavailable, function* () {
    const { call, content, turn } = yield* make({ checkAfter: Infinity })
    yield* same(4, call("read_file", { file_path: "a" }))
    const loop = yield* call("read_file", { file_path: "a" })
    assert.strictEqual(loop?.kind, "calls")
    // The rest of the calls of the same answer, made before the model could be told.
    assert.deepStrictEqual(yield* call("read_file", { file_path: "a" }), loop)
    assert.deepStrictEqual(yield* content("more"), loop)
    assert.isUndefined(yield* turn(contents, ""))
    assert.isUndefined(yield* call("read_file", { file_path: "a" }))
    yield* same(3, call("read_file", { file_path: "a" }))
    assert.isDefined(yield* call("read_file", { file_path: "a" }))
  })

  it.effect("counts calls across turns", Model.layerUnavailable, function* () {
    const detector = yield* make({ checkAfter: Infinity })
    for (let n = 0; n < 4; n += 1) {
      yield* detector.turn(contents, "")
      assert.isUndefined(yield* detector.call("read_file", {}))
      yield* detector.result("read_file", {}, "the same")
    }
    yield* detector.turn(contents, "")
    assert.isDefined(yield* detector.call("read_file", {}))
  })

  it.effect("does not treat calls with changing results as a loop", Model.layerUnavailable, function* () {
    const detector = yield* make({ checkAfter: Infinity })
    for (let n = 0; n < 30; n += 1) {
      assert.isUndefined(yield* detector.call("run_shell_command", { command: "gh run view" }))
      yield* detector.result("run_shell_command", { command: "gh run view" }, `${n} of 30 jobs`)
    }
  })

  it.effect(
    "ignores the text of a discarded answer, and a code block open in it",
    Model.layerUnavailable,
    function* () {
      const detector = yield* make({ checkAfter: Infinity })
      const words = "the words of an answer that has to be given again, as they are. "
      assert.isUndefined(yield* detector.content(`${words.repeat(9)}\n\`\`\`\n`))
      yield* detector.again
      assert.isUndefined(yield* detector.content(words.repeat(9)))
      assert.isDefined(yield* detector.content(words.repeat(9)))
    }
  )

  it.effect("starts afresh with another run", Model.layerUnavailable, function* () {
    const detector = yield* make({ checkAfter: Infinity })
    yield* same(5, detector.call("read_file", {}))
    yield* detector.reset
    assert.isUndefined(yield* detector.call("read_file", {}))
  })
})

const broken = new ModelError({ reason: new NetworkError({ detail: "none" }) })
const other = "anthropic/claude-sonnet-4-5"

describe("the check by a model", () => {
  it.effect.each<
    readonly [
      what: string,
      settings: Partial<LoopSettings>,
      turns: number,
      answers: ReadonlyArray<ScriptedModel.Step>,
      asked: ReadonlyArray<number>,
      found: ReadonlyArray<number>,
      models: ReadonlyArray<string>
    ]
  >([
    ["happens not before the thirtieth turn", {}, 29, [], [], [], []],
    [
      "happens the sooner again the surer the model was",
      {},
      70,
      [0, 0.85, 0.5, 0, 0].map((confidence) => verdict(confidence)),
      [30, 45, 52, 62],
      [],
      ["flash", "flash", "flash", "flash"]
    ],
    ["that fails is no loop", {}, 55, [broken, "no idea", verdict("sure")], [30, 40, 50], [], Array(3).fill("flash")],
    ["is confirmed by the stronger model", {}, 30, [verdict(0.9), verdict(0.95)], [30], [30], ["flash", "pro"]],
    [
      "counts by what the stronger model says, and so does the interval",
      {},
      44,
      [verdict(1), verdict(0.1), verdict(0)],
      [30, 44],
      [],
      ["flash", "pro", "flash"]
    ],
    ["is no loop where the stronger model fails", {}, 30, [verdict(1), "?"], [30], [], ["flash", "pro"]],
    ["can be disabled alone", { checkAfter: Infinity }, 100, [], [], [], []],
    ["may come first", { checkAfter: 1 }, 29, [verdict(0), verdict(0)], [1, 16], [], ["flash", "flash"]],
    ["comes first where that is set", { checkAfter: 29 }, 29, [verdict(0)], [29], [], ["flash"]],
    ["asks the conversation's own model", { family: other }, 30, [verdict(1), verdict(1)], [30], [30], [other, other]]
  ])("%s", function* ([, settings, count, answers, asked, found, names]) {
    assert.deepStrictEqual<unknown>(yield* checked(settings, count, answers), [asked, found, names])
  })

  it.effect(
    "sends the request and the last messages as data, trimmed and short",
    ScriptedModel.layer([verdict(0)]),
    function* () {
      const detector = yield* make()
      for (let turn = 0; turn < 30; turn += 1) yield* detector.turn(contents, "Fix the build")
      const [asked] = yield* ScriptedModel.Script.use(({ calls }) => calls)
      const [content] = asked?.request.contents ?? []
      const shown: { request: string; messages: ReadonlyArray<{ parts: ReadonlyArray<Record<string, string>> }> } =
        JSON.parse(content === undefined ? "{}" : plainText(content))
      assert.strictEqual(asked?.request.contents.length, 1)
      assert.strictEqual(shown.request, "Fix the build")
      // Twenty, without the call at the end, whose answer is not there, and the answer at the beginning, whose call is not.
      assert.strictEqual(shown.messages.length, 18)
      assert.deepStrictEqual(Object.keys(shown.messages.at(-1)?.parts[0] ?? {}), ["answer_of", "output"])
      assert.isBelow(JSON.stringify(shown).length, 40_000)
    }
  )

  it.effect("times out after thirty seconds: no loop", ScriptedModel.layer([ScriptedModel.hang]), function* () {
    const detector = yield* make({ checkAfter: 1 })
    const fiber = yield* Effect.forkChild(detector.turn(contents, ""))
    yield* TestClock.adjust("30 seconds")
    assert.isUndefined(yield* Fiber.join(fiber))
    assert.strictEqual(yield* ScriptedModel.Script.use(({ interrupted }) => interrupted), 1)
  })

  it.effect("builds its request only when due", ScriptedModel.layer([verdict(0)]), function* () {
    const detector = yield* make()
    let made = 0
    const counting = Effect.sync(() => {
      made += 1
      return talk
    })
    for (let turn = 1; turn <= 31; turn += 1) yield* detector.turn(counting, "")
    assert.strictEqual(made, 1)
  })
})

const numbersOf = (setting: Parameters<typeof loopDetectionOf>[0]) =>
  loopDetectionOf(setting) ?? assert.fail("no loop detection")

describe("loop detection settings", () => {
  it("default settings equal the default detector", () => {
    assert.deepStrictEqual(
      { ...defaultLoopSettings, ...fromNumbers(numbersOf(defaults.loopDetection)) },
      defaultLoopSettings
    )
  })

  it.effect("set numbers apply, and waiting tools stay exempt", Model.layerUnavailable, function* () {
    const detector = yield* make(fromNumbers(numbersOf({ calls: 2, content: 3, chunk: 10 })))
    yield* detector.call("read_file", {})
    assert.isDefined(yield* detector.call("read_file", {}))
    yield* detector.reset
    assert.isUndefined(yield* detector.content("0123456789".repeat(2)))
    assert.isDefined(yield* detector.content("0123456789"))
    yield* detector.reset
    yield* same(9, detector.call("sessions_yield", {}))
    assert.isUndefined(yield* detector.call("sessions_yield", {}))
  })
})
