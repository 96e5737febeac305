import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { plainText } from "../../../../src/domain/content/Content.ts"
import * as ScriptedModel from "../../../../src/layers/testing/ScriptedModel.ts"
import { ModelError, NetworkError } from "../../../../src/services/model/Model.ts"
import { EditCorrector, type FailedEdit, make } from "../../../../src/services/tools/builtin/EditCorrector.ts"
import { assert, describe, it } from "../../../support/vitest.ts"

const failed: FailedEdit = {
  file: "/w/a.ts",
  content: "let colour = 1\n",
  oldText: "hue = 1",
  newText: "hue = 2",
  instruction: "Another colour.",
  problem: "not found"
}
const correction = {
  search: "colour = 1",
  replace: "colour = 2",
  noChangesRequired: false,
  explanation: "It is colour."
}
const calls = Effect.flatMap(ScriptedModel.Script, (script) => script.calls)
const count = Effect.map(calls, (all) => all.length)

describe("the edit corrector", () => {
  it.effect("is off by default", function* () {
    const { correct } = yield* EditCorrector
    assert.strictEqual(yield* correct(failed), undefined)
  })

  it.effect(
    "sends the small model everything known, as data",
    ScriptedModel.layer([`\`\`\`json\n${JSON.stringify(correction)}\n\`\`\``]),
    function* () {
      const { correct } = yield* make()
      assert.deepStrictEqual(yield* correct(failed), correction)
      const [call] = yield* calls
      assert.strictEqual(call?.request.model, "gemini-2.5-flash-lite")
      const [content] = call?.request.contents ?? []
      assert.deepStrictEqual(JSON.parse(content === undefined ? "" : plainText(content)), {
        file: "/w/a.ts",
        content: failed.content,
        search: "hue = 1",
        replace: "hue = 2",
        purpose: "Another colour.",
        problem: "not found"
      })
      assert.notInclude(call?.request.systemInstruction, "colour = 1")
    }
  )

  for (const [rule, answer] of [
    ["no JSON", "I cannot find it."],
    ["JSON of another shape", `{"search": 1}`],
    ["an empty search", `{"search": "", "replace": "x"}`],
    ["nothing", ""]
  ] as const) {
    it.effect(`${rule} is an empty result, and cached: no second call`, ScriptedModel.layer([answer]), function* () {
      const { correct } = yield* make()
      assert.strictEqual(yield* correct(failed), undefined)
      assert.strictEqual(yield* correct({ ...failed, instruction: "said otherwise", file: "/w/b.ts" }), undefined)
      assert.strictEqual(yield* count, 1)
    })
  }

  it.effect(
    "results are cached by content, old and new text",
    ScriptedModel.layer(() => JSON.stringify(correction)),
    function* () {
      const { correct } = yield* make()
      for (const edit of [
        failed,
        { ...failed, content: "other" },
        { ...failed, oldText: "other" },
        { ...failed, newText: "other" },
        failed
      ]) {
        assert.deepStrictEqual(yield* correct(edit), correction)
      }
      assert.strictEqual(yield* count, 4)
    }
  )

  it.effect(
    "keeps fifty, and drops the least recently used",
    ScriptedModel.layer(() => JSON.stringify(correction)),
    function* () {
      const { correct } = yield* make()
      const nth = (n: number) => correct({ ...failed, oldText: `old ${n}` })
      for (let n = 0; n < 50; n += 1) yield* nth(n)
      yield* nth(0)
      assert.strictEqual(yield* count, 50)
      yield* nth(50)
      yield* nth(0)
      assert.strictEqual(yield* count, 51)
      yield* nth(1)
      assert.strictEqual(yield* count, 52)
    }
  )

  it.effect(
    "another cache size can be set",
    ScriptedModel.layer(() => JSON.stringify(correction)),
    function* () {
      const { correct } = yield* make("", 2)
      for (const n of [1, 2, 1, 3, 1, 2]) yield* correct({ ...failed, oldText: `old ${n}` })
      assert.strictEqual(yield* count, 4)
    }
  )

  it.effect("does not correct .json and .ipynb files, nor very long ones", ScriptedModel.layer([]), function* () {
    const { correct } = yield* make()
    assert.strictEqual(yield* correct({ ...failed, file: "/w/a.json" }), undefined)
    assert.strictEqual(yield* correct({ ...failed, file: "/w/A.IPYNB" }), undefined)
    assert.strictEqual(yield* correct({ ...failed, content: "x".repeat(400_001) }), undefined)
    assert.strictEqual(yield* count, 0)
  })

  it.effect(
    "a failed call is not cached",
    ScriptedModel.layer([new ModelError({ reason: new NetworkError({ detail: "none" }) }), JSON.stringify(correction)]),
    function* () {
      const { correct } = yield* make()
      assert.strictEqual(yield* correct(failed), undefined)
      assert.deepStrictEqual(yield* correct(failed), correction)
    }
  )

  it.effect("times out after forty seconds", ScriptedModel.layer([ScriptedModel.hang]), function* () {
    const { correct } = yield* make()
    const fiber = yield* Effect.forkChild(correct(failed), { startImmediately: true })
    yield* TestClock.adjust("40 seconds")
    assert.strictEqual(yield* Fiber.join(fiber), undefined)
    assert.strictEqual(yield* ScriptedModel.Script.use((script) => script.interrupted), 1)
  })
})
