import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { type Content, model, text, user } from "../../../src/domain/content/Content.ts"
import { carriedState, type Target } from "../../../src/domain/wire/ModelState.ts"
import { bodyOf } from "../../../src/layers/model/RequestBytes.ts"
import { runsOf } from "../../support/runs.ts"

const { isBetween } = Schema

const target = { dialect: "gemini", server: "api", model: "m" } as const

const json = (pieces: ReadonlyArray<Uint8Array>): unknown => JSON.parse(Buffer.concat(pieces).toString("utf8"))

const Length = Schema.Int.check(isBetween({ minimum: 0, maximum: 40_000 }))
/** What is done to a conversation between two requests: messages are added, or its end is replaced. */
const Change = Schema.Struct({
  keep: Schema.Finite.check(isBetween({ minimum: 0, maximum: 1 })),
  cuts: Schema.Boolean,
  added: Schema.Array(Length).check(Schema.isMaxLength(5))
})

describe("the bytes of a request", () => {
  it.effect.prop(
    "are those of the whole conversation, however it grew or was cut, and never change afterwards",
    [Schema.Array(Change).check(Schema.isMaxLength(8))],
    ([changes]) =>
      Effect.sync(() => {
        let contents: ReadonlyArray<Content> = [user(text("begin \u{1f600} \ud800"))]
        const sent: Array<readonly [pieces: ReadonlyArray<Uint8Array>, expected: unknown]> = []
        for (const [turn, { added, cuts, keep }] of changes.entries()) {
          const kept = cuts ? contents.slice(0, Math.max(1, Math.floor(contents.length * keep))) : contents
          contents = [...kept, ...added.map((length, at) => model(text(`${turn}.${at} ${"ä".repeat(length)}`)))]
          // Half of a surrogate pair is replaced.
          const whole = [user(text("begin \u{1f600} \ufffd")), ...contents.slice(1)]
          const expected = JSON.parse(JSON.stringify({ contents: whole, generationConfig: {} }))
          sent.push([bodyOf({ model: "m", contents }, target), expected])
        }
        for (const [pieces, expected] of sent) assert.deepStrictEqual(json(pieces), expected)
      }),
    { arbitrary: { runs: runsOf(200) } }
  )

  it("are made again for another model, which gets none of the signatures of the first", () => {
    const signed = { text: "a", thoughtSignature: carriedState(target, "c2ln") }
    const contents = [user(text("q")), model(signed)]
    const sentTo = (to: Target) => JSON.stringify(json(bodyOf({ model: to.model, contents }, to)))
    for (const [to, isSent] of [
      [target, true],
      [{ ...target, model: "n" }, false],
      [{ ...target, server: "other" }, false],
      [target, true]
    ] as const) {
      assert.strictEqual(sentTo(to).includes("c2ln"), isSent)
    }
  })

  it("hold what accompanies the contents, also when only that changes", () => {
    const contents = [user(text("hello"))]
    const tools = [{ functionDeclarations: [{ name: "f" }] }]
    const system = { parts: [{ text: "be brief" }] }
    assert.deepStrictEqual(json(bodyOf({ model: "m", contents, systemInstruction: "be brief", tools }, target)), {
      contents,
      systemInstruction: system,
      tools,
      generationConfig: {}
    })
    assert.deepStrictEqual(
      json(
        bodyOf({ model: "m", contents, mustCall: true, generation: { temperature: 0, thinkingBudget: -1 } }, target)
      ),
      {
        contents,
        toolConfig: { functionCallingConfig: { mode: "ANY" } },
        generationConfig: { temperature: 0, thinkingConfig: { thinkingBudget: -1 } }
      }
    )
    assert.deepStrictEqual(json(bodyOf({ model: "m", contents: [] }, target)), { contents: [], generationConfig: {} })
  })

  it("share the bytes of the request before", () => {
    const first = Array.from({ length: 50 }, (_, at) => user(text(`message ${at} ${"x".repeat(5_000)}`)))
    const before = bodyOf({ model: "m", contents: first }, target)
    const after = bodyOf({ model: "m", contents: [...first, user(text("one more"))] }, target)
    const shared = before.filter(({ buffer, byteOffset }) =>
      after.some((piece) => piece.buffer === buffer && piece.byteOffset === byteOffset)
    )
    // All but the end, which says what accompanies the contents.
    assert.strictEqual(shared.length, before.length)
  })

  it("stay in as few pieces as their size needs, though the last message is another object each time", () => {
    const settled: Array<Content> = [user(text("begin"))]
    let pieces: ReadonlyArray<Uint8Array> = []
    for (let turn = 0; turn < 500; turn += 1) {
      const last = () => user(text(`message ${turn} ${"x".repeat(300)}`))
      pieces = bodyOf({ model: "m", contents: [...settled, last()] }, target)
      settled.push(last())
    }
    assert.deepStrictEqual(json(pieces), { contents: settled, generationConfig: {} })
    assert.isBelow(pieces.length, 20)
  })

  it("ask for an answer that fits a schema", () => {
    const generation = { temperature: 0, responseSchema: { type: "object" } }
    const body = json(bodyOf({ model: "m", contents: [user(text("q"))], generation }, target))
    assert.deepInclude(body, {
      generationConfig: {
        temperature: 0,
        responseMimeType: "application/json",
        responseJsonSchema: { type: "object" }
      }
    })
  })
})
