import { Effect, Layer } from "effect"
import { bytesOf } from "../../../src/domain/content/Base64Bytes.ts"
import { call, isMedia, model, type Part, response, text, user } from "../../../src/domain/content/Content.ts"
import { imageSize } from "../../../src/domain/content/ImageTokens.ts"
import { entries } from "../../../src/domain/conversation/Conversation.ts"
import * as Offline from "../../../src/layers/assembly/Offline.ts"
import * as Scripted from "../../../src/layers/testing/ScriptedModel.ts"
import { ImageReducer } from "../../../src/services/compression/strategies/ImageReducer.ts"
import { begin, taken } from "../../support/sending.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** Images are sent as large as the model's provider accepts them. */

const png = (width: number, height: number, size = 0): string => {
  const bytes = Buffer.concat([
    Buffer.from("\u0089PNG\r\n\u001a\n\0\0\0\0IHDR\0\0\0\0\0\0\0\0", "latin1"),
    Buffer.alloc(size)
  ])
  bytes.writeUInt32BE(width, 16)
  bytes.writeUInt32BE(height, 20)
  return bytes.toString("base64")
}
const image = (width: number, height: number, size?: number): Part => ({
  inlineData: { mimeType: "image/png", data: png(width, height, size) }
})
const sidesOf = (parts: ReadonlyArray<Part>) =>
  parts.filter(isMedia).map(({ inlineData }) => imageSize(bytesOf(inlineData?.data ?? ""))?.width)

/** Images whose bytes are as many as a hundredth of their pixels. */
const reducer = Layer.succeed(ImageReducer, {
  reduce: (_image, width, height) =>
    Effect.succeed({ mimeType: "image/png", data: png(width, height, Math.floor((width * height) / 100)) })
})
const served = (images: Layer.Layer<never>) =>
  Layer.fresh(Layer.provideMerge(Offline.layerWithModel(Scripted.layer(() => "fine")), images))

/** Sends images as a tool's result, or in the user's message. Returns the widths in the last request, and in the log. */
const widths = Effect.fnUntraced(function* (name: string, images: ReadonlyArray<Part>, isOwn: boolean) {
  const { chat } = yield* begin({ model: name, window: 10_000_000 })
  if (isOwn) yield* taken(chat.send([text("look"), ...images]))
  else {
    yield* chat.append([
      { content: user(text("look")) },
      { content: model(call("read_file", {}, "a")) },
      { content: user(response("read_file", { output: "read" }, "a"), ...images) }
    ])
    yield* taken(chat.send(""))
  }
  yield* taken(chat.send("and now?"))
  const calls = (yield* Scripted.Script.use((script) => script.calls)).filter(({ method }) => method === "stream")
  const sent = calls.map(({ request }) => request.contents.flatMap(({ parts }) => parts))
  assert.deepStrictEqual(sidesOf(sent[0] ?? []), sidesOf(sent[1] ?? []))
  const kept = entries(yield* chat.conversation).flatMap(({ content }) => content.parts)
  assert.deepStrictEqual(sidesOf(kept), sidesOf(images))
  return { sent: sidesOf(sent[1] ?? []), parts: sent[1] ?? [] }
})

const mebi = 1024 * 1024
const many = (count: number, side: number) => Array.from({ length: count }, () => image(side, 10))

describe("images of tools and of messages", () => {
  for (const isOwn of [false, true]) {
    it.effect.each<[string, string, ReadonlyArray<Part>, ReadonlyArray<number>]>([
      ["Anthropic, pixels", "claude-sonnet-4-5", [image(9_000, 20), image(8_000, 20)], [2_000, 8_000]],
      ["Anthropic, bytes", "claude-sonnet-4-5", [image(1_000, 1_000, 8 * mebi)], [612]],
      ["Anthropic, twenty images", "claude-sonnet-4-5", many(20, 3_000), Array(20).fill(3_000)],
      ["Anthropic, more images", "claude-sonnet-4-5", many(21, 3_000), Array(21).fill(2_000)],
      ["another maker, pixels", "gpt-5", [image(9_000, 20)], [9_000]]
    ])(`${isOwn ? "of the user" : "of a tool"}: %s`, ([, name, images, expected]) =>
      Effect.gen(function* () {
        assert.deepStrictEqual((yield* widths(name, images, isOwn)).sent, [...expected])
      }).pipe(Effect.provide(served(reducer)))
    )
  }

  it.effect("one that cannot be reduced is left out, with its handle", served(Layer.empty), function* () {
    const { parts, sent } = yield* widths("claude-sonnet-4-5", [image(9_000, 20)], false)
    assert.deepStrictEqual(sent, [])
    assert.isTrue(parts.some((part) => /left out.*h_\w+/.test(part.text ?? "")))
  })
})
