import { assert, describe, it } from "@effect/vitest"
import { estimateText } from "../../../src/domain/tokens/Tokens.ts"
import { type Dialect, dialects } from "../../../src/domain/wire/Dialect.ts"
import { MessageCounts } from "../../../src/services/gateway/MessageCounts.ts"
import { codecs } from "../../support/GatewayDialects.ts"

const words = "Line 17 tells of part 61. ".repeat(400)
const counts = () => new MessageCounts((text) => text)

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
      const tokens = counts().message(dialect, json)
      assert.isAtLeast(tokens, expected, json.slice(0, 60))
      assert.isAtMost(tokens, expected * 1.2 + 100, json.slice(0, 60))
    }
  })

  it("are held under the given name, or under its own", () => {
    const held = counts()
    const first = held.message("chat", JSON.stringify({ role: "user", content: words }), "one")
    assert.strictEqual(held.message("chat", "another", "one"), first)
    assert.notStrictEqual(held.message("chat", "another", "two"), first)
    assert.strictEqual(held.head("{}"), held.head("{}"))
  })

  it("are corrected by the newest counts, however many came before", () => {
    const learning = counts()
    const factorAfter = (times: number, share: number): number => {
      for (let time = 0; time < times; time += 1) learning.learn("m", 1_000 + time, (1_000 + time) * share)
      return Math.round(learning.factor("m") * 100) / 100
    }
    learning.learn("small", 20, 60)
    assert.strictEqual(learning.factor("small"), 1.18)
    assert.deepStrictEqual([factorAfter(200, 1), factorAfter(5, 1.4), factorAfter(60, 1.4)], [1, 1.33, 1.4])
  })

  it("are corrected for each model by itself, within bounds", () => {
    const learning = counts()
    for (let time = 0; time < 40; time += 1) {
      learning.learn("more", 1_000, 1_300)
      learning.learn("many", 1_000, 9_000)
      learning.learn("few", 1_000, 500)
      learning.learn("odd", 1_000, 1)
    }
    learning.learn("none", 0, 1_000)
    learning.learn("none", 1_000, 0)
    const factors = ["more", "many", "few", "odd", "none"].map(
      (model) => Math.round(learning.factor(model) * 100) / 100
    )
    assert.deepStrictEqual(factors, [1.3, 1.6, 0.8, 1, 1])
    // A server that cuts prompts is told once for each model, and teaches nothing.
    const told = [4_000, 4_000, 8_000].map((estimated) => learning.learn("more", estimated, 1_000)?.isNew)
    assert.deepStrictEqual([...told, learning.learn("many", 4_000, 1_000)?.isNew], [true, false, false, true])
    // Earlier counts are doubted only where a cut one was plausible.
    learning.learn("many", 2_000, 1_000)
    assert.deepStrictEqual([Math.round(learning.factor("more") * 10), learning.factor("many")], [13, 1])
    assert.isUndefined(learning.learn("more", 9_000, 9_000))
  })
})
