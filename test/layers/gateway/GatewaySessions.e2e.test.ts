import { Effect, Layer, Stream } from "effect"
import * as Chat from "effect/ai/Chat"
import { type Dialect, dialects } from "../../../src/domain/wire/Dialect.ts"
import * as AnthropicModel from "../../../src/layers/model/AnthropicModel.ts"
import * as OpenAiModel from "../../../src/layers/model/OpenAiModel.ts"
import { layerLanguageModel } from "../../../src/services/effect-ai/ModelLanguageModel.ts"
import type { Model } from "../../../src/services/model/Model.ts"
import { makeClient } from "../../support/GatewayScene.ts"
import { filler, type Talker, talkThrough } from "../../support/GatewaySession.ts"
import { assert, it } from "../../support/vitest.ts"

/** Whole sessions over sockets: clients that never compact, and a window that their histories outgrow several times. */

/** A client of a dialect, which never sees what is the gateway's. */
const client =
  (dialect: Dialect, isStream: boolean): Talker =>
  (url) => {
    const { history, say } = makeClient(dialect, url, isStream)
    return async (text) => {
      const { words } = await say(text, (path) => `${path} has these lines:\n${filler(text.length)}`)
      assert.notInclude(JSON.stringify(history.at(-1)), "palimpsest")
      return words
    }
  }

const apiKey = "not-checked"

/** A chat of `effect/ai`, with a language model made of one of ours, whose answers are streamed in every other turn. */
const chatOf =
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

const talkers: ReadonlyArray<readonly [name: string, dialect: Dialect, talker: Talker, turns: number]> = [
  ...dialects.flatMap((dialect) =>
    // The clients of effect/ai below read whole answers of these two, too.
    (dialect === "anthropic" || dialect === "chat" ? [true] : [true, false]).map(
      (isStream) => [`${dialect}, stream: ${isStream}`, dialect, client(dialect, isStream), 48] as const
    )
  ),
  [
    "effect/ai with Anthropic",
    "anthropic",
    chatOf("claude-sonnet-4-5", (baseUrl) => AnthropicModel.layer({ apiKey, baseUrl })),
    30
  ],
  ["effect/ai with OpenAI", "chat", chatOf("gpt-4o", (url) => OpenAiModel.layer({ apiKey, baseUrl: `${url}/v1` })), 30]
]

it.live.each(talkers)("a session stays in its window and forgets nothing (%s)", ([, dialect, talk, turns]) =>
  Effect.asVoid(talkThrough(dialect, talk, { canRead: turns > 30, turns, window: 8_192 })).pipe(Effect.scoped)
)
