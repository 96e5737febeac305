import { describe, it } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import * as Chat from "effect/ai/Chat"
import type { Dialect } from "../../../src/domain/wire/Dialect.ts"
import * as AnthropicModel from "../../../src/layers/model/AnthropicModel.ts"
import * as OpenAiModel from "../../../src/layers/model/OpenAiModel.ts"
import { layerLanguageModel } from "../../../src/services/effect-ai/ModelLanguageModel.ts"
import type { Model } from "../../../src/services/model/Model.ts"
import { type Talker, talkThrough } from "../../support/GatewaySession.ts"

/** A chat of `effect/ai`, with language models made of ours, through the gateway. */

const apiKey = "not-checked"

/** A chat whose answers are streamed in every other turn. */
const talker =
  (model: string, layer: (url: string) => Layer.Layer<Model>): Talker =>
  (url) => {
    const language = Layer.provide(layerLanguageModel({ model }), layer(url))
    const chat = Effect.runSync(Chat.empty)
    let turn = 0
    return (prompt) => {
      turn += 1
      const said =
        turn % 2 === 0
          ? Effect.map(chat.generateText({ prompt }), ({ text }) => text)
          : chat.streamText({ prompt }).pipe(
              Stream.filter((part) => part.type === "text-delta"),
              Stream.runFold(
                () => "",
                (text, { delta }) => text + delta
              )
            )
      return Effect.runPromise(Effect.provide(said, language))
    }
  }

const talkers: ReadonlyArray<readonly [name: string, dialect: Dialect, talker: Talker]> = [
  ["Anthropic", "anthropic", talker("claude-sonnet-4-5", (baseUrl) => AnthropicModel.layer({ apiKey, baseUrl }))],
  ["OpenAI", "chat", talker("gpt-4o", (url) => OpenAiModel.layer({ apiKey, baseUrl: `${url}/v1` }))]
]

describe.each(talkers)("a chat of effect/ai with %s through the gateway", (_, dialect, talk) => {
  it.live("stays in its window and forgets nothing", () =>
    Effect.asVoid(talkThrough(dialect, talk, { turns: 30, window: 8_192 })).pipe(Effect.scoped)
  )
})
