import { Effect, Layer, Stream } from "effect"
import { bytesOf } from "../../../src/domain/content/Base64Bytes.ts"
import { isMedia, type Part, text } from "../../../src/domain/content/Content.ts"
import { imageSize } from "../../../src/domain/content/ImageTokens.ts"
import { entries } from "../../../src/domain/conversation/Conversation.ts"
import { emptySession } from "../../../src/domain/session/Session.ts"
import * as Offline from "../../../src/layers/assembly/Offline.ts"
import * as ScriptedModel from "../../../src/layers/testing/ScriptedModel.ts"
import { Chat } from "../../../src/services/chat/Chat.ts"
import { ImageReducer } from "../../../src/services/compression/strategies/ImageReducer.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** Large images in a chat with the strategy openclaw. */

const header = (width: number, height: number): string => {
  const bytes = Buffer.from("\u0089PNG\r\n\u001a\n\0\0\0\0IHDR\0\0\0\0\0\0\0\0", "latin1")
  bytes.writeUInt32BE(width, 16)
  bytes.writeUInt32BE(height, 20)
  return bytes.toString("base64")
}

const image = (width: number, height: number): Part => ({
  inlineData: { mimeType: "image/png", data: header(width, height) }
})

const settings = { model: "gemini-2.5-flash", window: 100_000, policy: { strategy: "openclaw" } }

/** Sends an image and then a word. Returns what the model saw each time, and what the log holds. */
const played = Effect.fnUntraced(function* (part: Part, reducer: Layer.Layer<never>) {
  const seen: Array<ReadonlyArray<Part>> = []
  const model = ScriptedModel.layer(({ contents }) => {
    seen.push(contents.flatMap(({ parts }) => parts))
    return "a cat"
  })
  return yield* Effect.gen(function* () {
    const chat = yield* Chat.make({ log: { append: () => Effect.void }, session: emptySession, settings })
    yield* Stream.runDrain(chat.send([text("What is this?"), part]))
    yield* Stream.runDrain(chat.send("Look again."))
    const kept = entries(yield* chat.conversation).flatMap(({ content }) => content.parts)
    return { seen, kept }
  }).pipe(Effect.provide(Offline.layerWithModel(model).pipe(Layer.provide(reducer))))
})

const sizes = (parts: ReadonlyArray<Part>) =>
  parts.filter(isMedia).map(({ inlineData }) => imageSize(bytesOf(inlineData?.data ?? "")))

describe("a large image in a chat with openclaw", () => {
  it.effect.each([
    [4_000, 3_000],
    // As many tiles as before.
    [1_300, 1_300]
  ] as const)("is sent reduced, once, and logged as it was: %d × %d", ([width, height]) =>
    Effect.gen(function* () {
      let reduced = 0
      const reducer = Layer.succeed(ImageReducer, {
        reduce: (_image, wide, high) =>
          Effect.sync(() => {
            reduced += 1
            return { mimeType: "image/png", data: header(wide, high) }
          })
      })
      const { kept, seen } = yield* played(image(width, height), reducer)
      const target = { width: 1_200, height: Math.round((1_200 / width) * height) }
      assert.deepStrictEqual(seen.map(sizes), [[target], [target]])
      assert.deepStrictEqual(sizes(kept), [{ width, height }])
      assert.strictEqual(reduced, 1)
    })
  )

  it.effect("is a note with its handle where it cannot be reduced", function* () {
    const { kept, seen } = yield* played(image(4_000, 3_000), Layer.empty)
    // Before its answer is there, a message has no handles.
    assert.deepStrictEqual(seen.map(sizes), [[{ width: 4_000, height: 3_000 }], []])
    const note = seen[1]?.find((part) => part.text?.includes("4000 × 3000") === true)
    assert.match(note?.text ?? "", /It is too large and cannot be reduced\. .*recall \S+/)
    assert.deepStrictEqual(sizes(kept), [{ width: 4_000, height: 3_000 }])
  })

  it.effect("stays as it is when it is not too large", function* () {
    const { seen } = yield* played(image(1_200, 900), Layer.empty)
    assert.deepStrictEqual(seen.map(sizes), [[{ width: 1_200, height: 900 }], [{ width: 1_200, height: 900 }]])
  })
})
