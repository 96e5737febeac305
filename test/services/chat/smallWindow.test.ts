import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { strategies } from "../../../src/domain/compression/strategies/Strategies.ts"
import { entries } from "../../../src/domain/conversation/Conversation.ts"
import { TokenCount } from "../../../src/domain/tokens/Tokens.ts"
import * as Offline from "../../../src/layers/assembly/Offline.ts"
import * as ScriptedModel from "../../../src/layers/testing/ScriptedModel.ts"
import { ContextOverflow } from "../../../src/services/chat/FitRequest.ts"
import { begin } from "../../support/sending.ts"

describe("a window that is smaller than the system prompt", () => {
  it("is one that it fills, too", () => {
    const [none, limit] = [0, 100].map((tokens) => TokenCount.make(tokens)) as [TokenCount, TokenCount]
    const stubborn = [{ entry: null, what: "system instruction and tools", tokens: limit }]
    const error = new ContextOverflow({ what: "message", estimated: none, remaining: none, limit, stubborn, text: "" })
    assert.match(error.message, /^the system instruction and the tools alone take about 100 tokens/)
  })

  it.effect.each(strategies.map(({ name }) => name))("refuses each message in one clear line: %s", (strategy) =>
    Effect.gen(function* () {
      const systemInstruction = "Do as you are told. ".repeat(1_000)
      const { chat, events } = yield* begin({ window: 2_000, systemInstruction, policy: { strategy } })
      for (const message of ["hi", "a longer message. ".repeat(50)]) {
        const error = yield* Effect.flip(Stream.runDrain(chat.send(message)))
        assert.strictEqual(error._tag, "ContextOverflow")
        if (error._tag !== "ContextOverflow") return
        assert.match(
          error.message,
          /^the system instruction and the tools alone take about \d{4,} tokens, and the window has \d+; offer fewer tools, or use a model with a larger window$/
        )
        assert.strictEqual(error.text, message)
      }
      assert.deepStrictEqual([entries(yield* chat.conversation).length, events.length], [0, 0])
    }).pipe(Effect.provide(Offline.layerWithModel(ScriptedModel.layer([]))))
  )
})
