import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { strategies } from "../../../src/domain/compression/strategies/Strategies.ts"
import { model, text, user } from "../../../src/domain/content/Content.ts"
import { entries } from "../../../src/domain/conversation/Conversation.ts"
import { TokenCount } from "../../../src/domain/tokens/Tokens.ts"
import * as Offline from "../../../src/layers/assembly/Offline.ts"
import * as ScriptedModel from "../../../src/layers/testing/ScriptedModel.ts"
import { ContextOverflow } from "../../../src/services/chat/FitRequest.ts"
import { estimateContents } from "../../../src/services/tokens/Calibrations.ts"
import { countingBy } from "../../support/scales.ts"
import { begin, taken } from "../../support/sending.ts"

/** A quarter of the window is for what is sent of the messages. */
it.effect.each<readonly [window: number, tokens: number]>([
  [4_000, 1_000],
  [16_000, 4_000]
])("of a summarizing model with a window of %i tokens, as the settings say: %i are sent", ([window, tokens]) =>
  Effect.gen(function* () {
    const { chat } = yield* begin({
      models: { writer: { window } },
      policy: { summarizer: "model", model: "writer", preserve: 0.1 }
    })
    const words = Array.from({ length: 60 }, (_, n) => [
      { content: user(text(`${n} words of oak. `.repeat(60))) },
      { content: model(text(`${n} of oak. `.repeat(60))) }
    ])
    yield* chat.append(words.flat())
    yield* chat.compress()
    const calls = yield* ScriptedModel.Script.use((script) => script.calls)
    const [asked = assert.fail("no model was asked")] = calls
      .filter(({ method }) => method === "generate")
      .map(({ request }) => request)
    const sent = yield* estimateContents({ model: asked.model, contents: asked.contents })
    assert.isAbove(sent, tokens * 0.5)
    assert.isBelow(sent, tokens * 1.6)
  }).pipe(Effect.provide(ScriptedModel.layer(() => "no snapshot").pipe(Offline.layerWithModel)))
)

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

  it.effect("is answered where it leaves room for a text, though none for calls", () =>
    Effect.gen(function* () {
      const systemInstruction = "Do as you are told. ".repeat(400)
      const { chat: other } = yield* begin()
      for (let n = 0; n < 3; n += 1) yield* taken(other.send(systemInstruction))
      const { chat } = yield* begin({ window: 4_000, reserve: 1_000, systemInstruction })
      const { tokens } = yield* chat.usage
      assert.isAbove(tokens, 0.75 * 3_000)
      const { events } = yield* taken(chat.send("hi"))
      assert.strictEqual(events.at(-1)?._tag, "Finished")
    }).pipe(Effect.provide(countingBy(1)))
  )
})
