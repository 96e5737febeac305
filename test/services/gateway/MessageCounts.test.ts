import { assert, describe, it } from "@effect/vitest"
import * as Work from "../../../src/domain/text/SlicedWork.ts"
import { type Features, sumFeatures, totalTokens } from "../../../src/domain/tokens/TextFeatures.ts"
import { estimateText } from "../../../src/domain/tokens/Tokens.ts"
import { type Dialect, dialects } from "../../../src/domain/wire/Dialect.ts"
import { MessageCounts, RequestTokens } from "../../../src/services/gateway/MessageCounts.ts"
import { codecs } from "../../support/GatewayDialects.ts"

const words = "Line 17 tells of part 61. ".repeat(400)
const nothing = sumFeatures([])
const counts = () => new MessageCounts()
/** A request whose classes are known. */
const requestOf = (features: Features) =>
  new RequestTokens([{ count: { tokens: totalTokens(features), parts: [], features }, frame: 0, parts: () => [] }])

const instructions: Readonly<Record<Dialect, object>> = {
  anthropic: { role: "system", content: words },
  chat: { role: "system", content: words },
  responses: { type: "message", role: "developer", content: [{ type: "input_text", text: words }] },
  gemini: { role: "system", parts: [{ text: words }] }
}

describe("the tokens of a message", () => {
  it.each(dialects)("are about those of its text, also where nobody reads it (%s)", (dialect) => {
    const call = { kind: "call", id: "c", name: "look", args: { words } } as const
    const all = [
      ...codecs[dialect].user(words),
      ...codecs[dialect].assistant([{ kind: "text", text: words }]),
      ...codecs[dialect].assistant([call]),
      ...codecs[dialect].results([{ id: "c", name: "look", text: words }]),
      instructions[dialect],
      { type: "unheard-of", words },
      [words]
    ]
    const expected = estimateText(words)
    for (const message of all) {
      const json = JSON.stringify(message)
      const counted = counts().message(dialect, json)
      const { tokens } = counted.count
      assert.isAtLeast(tokens, expected, json.slice(0, 60))
      assert.isAtMost(tokens, expected * 1.2 + 100, json.slice(0, 60))
      const classes = Work.runSync(new RequestTokens([counted]).features())
      assert.approximately(totalTokens(classes), tokens, 1e-6, json.slice(0, 60))
    }
  })

  it("are held under the given name, or under its own", () => {
    const held = counts()
    const first = held.message("chat", JSON.stringify({ role: "user", content: words }), "one")
    assert.strictEqual(held.message("chat", "another", "one").count, first.count)
    assert.notStrictEqual(held.message("chat", "another", "two").count, first.count)
    assert.strictEqual(held.head("{}").count, held.head("{}").count)
  })

  it("are known by class from the first answer on: that of an earlier request says it of a later one", () => {
    const held = counts()
    const text = (name: string) => held.message("chat", JSON.stringify({ role: "user", content: words }), name)
    const first = new RequestTokens([held.head("{}"), text("one")])
    assert.deepStrictEqual(first.known, nothing)
    const classes = Work.runSync(first.features())
    assert.deepStrictEqual([first.known, Work.runSync(first.features())], [classes, classes])
    assert.approximately(totalTokens(classes), first.total, 1)
    const later = new RequestTokens([held.head("{}")]).and([text("one"), text("two")])
    assert.approximately(totalTokens(later.known), first.total, 1)
    assert.isAbove(later.total, 1.9 * totalTokens(later.known))
    // The text itself is read for them once.
    let reads = 0
    const shared = { count: { parts: [], tokens: 1 }, frame: 0, parts: () => [{ text: `${(reads += 1)}` }] }
    for (const request of [new RequestTokens([shared]), new RequestTokens([shared])]) Work.runSync(request.features())
    assert.strictEqual(reads, 1)
    // What is not known counts as the model's requests do on average.
    held.learn("m", { ...nothing, code: 5_000 }, 7_000)
    const usual = held.factor("m")
    assert.isAbove(usual, 1.3)
    assert.approximately(held.factor("m", new RequestTokens([text("three")])), usual, 1e-9)
    assert.isAtMost(Math.abs(held.factor("m", later) - (usual + held.factor("m", first)) / 2), 0.01)
  })

  it("are corrected by the newest counts, however many came before, of which one that is nonsense spoils nothing", () => {
    const learning = counts()
    const factorAfter = (times: number, share: number): number => {
      for (let time = 0; time < times; time += 1) {
        const tokens = 1_000 + time
        learning.learn("m", { ...nothing, prose: tokens }, tokens * share)
      }
      return Math.round(learning.factor("m", requestOf({ ...nothing, prose: 2_000 })) * 20) / 20
    }
    assert.deepStrictEqual(
      [factorAfter(200, 1), factorAfter(1, 5_000), factorAfter(60, 1.4), factorAfter(60, 1)],
      [1, 1.05, 1.4, 1]
    )
  })

  it("are corrected for each model by itself, for what a request consists of, within bounds", () => {
    const learning = counts()
    const of = (prose: number, code = 0) => ({ ...nothing, prose, code })
    for (let time = 0; time < 40; time += 1) {
      learning.learn("more", of(1_000 + time), (1_000 + time) * 1.3)
      learning.learn("many", of(1_000 + time), (1_000 + time) * 9)
      learning.learn("few", of(1_000 + time), (1_000 + time) * 0.5)
      learning.learn("odd", of(1_000 + time), 1)
      learning.learn("code", time % 2 === 0 ? of(1_000 + time, 100) : of(100, 1_000 + time), 1_100 + time * 1.1)
      learning.learn("code", of(100, 1_000 + time), 100 + (1_000 + time) * 1.5)
    }
    learning.learn("none", of(0), 1_000)
    learning.learn("none", of(1_000), 0)
    const factor = (model: string, request = of(2_000)) =>
      Math.round(learning.factor(model, requestOf(request)) * 20) / 20
    assert.deepStrictEqual(
      ["more", "many", "few", "odd", "none"].map((model) => factor(model)),
      [1.3, 1.6, 0.8, 1, 1]
    )
    const usual = ["more", "many", "few", "odd", "none"].map((model) => Math.round(learning.factor(model) * 20) / 20)
    assert.deepStrictEqual(usual, [1.3, 1.6, 0.8, 1, 1])
    assert.isAbove(factor("code", of(0, 1_000)), factor("code", of(1_000)))
    // A server that cuts prompts is told once for each model, and teaches nothing.
    const told = [4_000, 4_000, 8_000].map((prose) => learning.learn("more", of(prose), 1_000)?.isNew)
    assert.deepStrictEqual([...told, learning.learn("few", of(4_000), 1_000)?.isNew], [true, false, false, true])
    assert.deepStrictEqual(learning.learn("few", of(4_000), 1_000), {
      model: "few",
      estimated: 4_000,
      counted: 1_000,
      isNew: false
    })
    // Earlier counts are doubted only where a cut one was plausible.
    learning.learn("few", of(2_000), 1_000)
    assert.deepStrictEqual([factor("more"), factor("few")], [1.3, 1])
    assert.isUndefined(learning.learn("more", of(9_000), 9_000))
  })
})
