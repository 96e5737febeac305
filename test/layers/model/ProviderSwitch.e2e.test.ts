import { Context, Effect, Layer, Schema } from "effect"
import * as LanguageModel from "effect/ai/LanguageModel"
import { type Content, isCall, type Part, response, text, user } from "../../../src/domain/content/Content.ts"
import { layerLanguageModel } from "../../../src/services/effect-ai/ModelLanguageModel.ts"
import { Model } from "../../../src/services/model/Model.ts"
import { anthropic, chat, gemini, inOnePiece, responses, type Said } from "../../support/ProviderDialects.ts"
import * as Server from "../../support/ProviderServer.ts"
import { strict } from "../../support/StrictProviders.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** One conversation over every provider, each as strict as the real one: images, tools, thinking, structured answers, marks for the cache. */

interface Provider {
  readonly name: keyof typeof strict
  readonly model: string
  readonly layer: (url: string, key: string) => Layer.Layer<Model, unknown>
  readonly answer: (said: ReadonlyArray<Said>) => Server.ProviderAnswer
  /** Where an image stands in a request. */
  readonly image: string
}

const providers: ReadonlyArray<Provider> = [
  {
    ...gemini,
    model: "gemini-3-pro",
    answer: (said) => inOnePiece(gemini.answer(said)),
    image: '{"inlineData":{"mimeType":"image/png","data":"aGk="}}'
  },
  {
    ...anthropic,
    name: "Messages",
    image: '"source":{"type":"base64","media_type":"image/png","data":"aGk="}'
  },
  { ...responses, name: "Responses", image: '"image_url":"data:image/png;base64,aGk="' },
  { ...chat, name: "Chat Completions", image: '"image_url":{"url":"data:image/png;base64,aGk="}' }
]

const image: Part = { inlineData: { mimeType: "image/png", data: "aGk=" } }
const tools = [
  { functionDeclarations: [{ name: "look", description: "Looks", parametersJsonSchema: { type: "object" } }] }
]

/** A model behind a server that refuses what its provider would refuse. */
const against = Effect.fnUntraced(function* (provider: Provider, said: (index: number) => ReadonlyArray<Said>) {
  const server = yield* Server.make(({ body }, index) => {
    const wrong = strict[provider.name](body)
    return wrong === undefined
      ? provider.answer(said(index))
      : Server.json({ error: { type: "invalid_request_error", message: wrong } }, 400)
  })
  const context = yield* Layer.build(provider.layer(server.url, "sk-key"))
  return { server, provider, context, model: Context.get(context, Model) }
})

/** Every provider follows every other one. */
const order = [0, 1, 2, 3, 0, 2, 1, 3, 2, 0, 3, 1, 0]

describe("providers", () => {
  it.live("take over a conversation from each other, with images, calls and thinking", function* () {
    let turn = 0
    const all = yield* Effect.forEach(providers, (provider) =>
      against(provider, (index) =>
        index % 2 === 0
          ? [{ thought: `${provider.name} thinks` }, { call: "look", args: { turn }, id: `call_${turn}` }]
          : [{ text: `${provider.name} has seen ${turn}` }]
      )
    )
    let contents: ReadonlyArray<Content> = []
    for (const at of order) {
      turn += 1
      const { model, provider, server } = all[at] ?? assert.fail("no provider")
      const ask = () =>
        model.generate({ model: provider.model, contents, systemInstruction: "Be brief.", tools }).pipe(
          Effect.tap(({ content }) =>
            Effect.sync(() => {
              contents = [...contents, content]
            })
          )
        )
      contents = [...contents, user(text(`question ${turn}`), image)]
      const called = (yield* ask()).content.parts.find(isCall)?.functionCall
      assert.deepStrictEqual(called?.args, { turn })
      const seen = response("look", { output: `result ${turn}` }, called?.id)
      contents = [...contents, user({ functionResponse: { ...seen.functionResponse, parts: [image] } })]
      assert.deepInclude((yield* ask()).content.parts.at(-1), { text: `${provider.name} has seen ${turn}` })

      const sent = JSON.stringify(server.requests.at(-1)?.body)
      assert.lengthOf(sent.split(provider.image), 2 * turn + 1)
      for (let before = 1; before <= turn; before += 1) {
        assert.include(sent, `question ${before}`)
        assert.include(sent, `result ${before}`)
        if (before < turn) assert.include(sent, `has seen ${before}`)
      }
      // Each is shown its own signatures and nobody else's.
      const own = {
        Gemini: gemini.signature("Gemini thinks"),
        Messages: "signed:Messages",
        Responses: "signed:Responses"
      }
      for (const [name, signature] of Object.entries(own)) {
        assert.strictEqual(sent.includes(signature), name === provider.name, `${signature} at ${provider.name}`)
      }
      assert.lengthOf(sent.split('"cache_control"'), provider.name === "Messages" ? 4 : 1)
    }
  })

  it.live("answer in the shape of a schema", function* () {
    for (const provider of providers) {
      const { context, server } = yield* against(provider, () => [
        { call: "person", args: { name: "Ada", age: 36 }, id: "call_1" }
      ])
      const answer = yield* LanguageModel.generateObject({
        prompt: "Who?",
        objectName: "person",
        schema: Schema.Struct({ name: Schema.String, age: Schema.Int })
      }).pipe(Effect.provide(layerLanguageModel({ model: provider.model })), Effect.provide(context))
      assert.deepStrictEqual(answer.value, { name: "Ada", age: 36 })
      // The model cannot answer otherwise.
      assert.match(JSON.stringify(server.requests[0]?.body), /"type":"any"|"required"|"mode":"ANY"/)
    }
  })
})
