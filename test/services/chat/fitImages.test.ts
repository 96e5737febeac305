import { Effect, Layer } from "effect"
import { bytesOf } from "../../../src/domain/content/Base64Bytes.ts"
import { call, isMedia, model, type Part, response, text, user } from "../../../src/domain/content/Content.ts"
import { imageSize } from "../../../src/domain/content/ImageTokens.ts"
import { entries } from "../../../src/domain/conversation/Conversation.ts"
import * as Offline from "../../../src/layers/assembly/Offline.ts"
import * as Scripted from "../../../src/layers/testing/ScriptedModel.ts"
import type { Chat } from "../../../src/services/chat/Chat.ts"
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

/** Makes images of so many bytes a pixel. */
const reducing = (bytes: number) =>
  Layer.succeed(ImageReducer, {
    reduce: (_image, width, height) =>
      Effect.succeed({ mimeType: "image/png", data: png(width, height, Math.floor(width * height * bytes)) })
  })
const served = (images: Layer.Layer<never>) =>
  Layer.fresh(Layer.provideMerge(Offline.layerWithModel(Scripted.layer(() => "fine")), images))

/** Appends images as a tool's result, or returns the user's message with them. Returns the message to send. */
const offered = (chat: Chat["Service"], images: ReadonlyArray<Part>, isOwn: boolean) =>
  isOwn
    ? Effect.succeed([text("look"), ...images])
    : Effect.as(
        chat.append([
          { content: user(text("look")) },
          { content: model(call("read_file", {}, "a")) },
          { content: user(response("read_file", { output: "read" }, "a"), ...images) }
        ]),
        ""
      )

/** Sends images as a tool's result, or in the user's message. Returns the widths in the last request, and in the log. */
const widths = Effect.fnUntraced(function* (name: string, images: ReadonlyArray<Part>, isOwn: boolean) {
  const { chat } = yield* begin({ model: name, window: 10_000_000 })
  const notices: Array<string> = []
  const send = (message: Parameters<typeof chat.send>[0]) =>
    Effect.map(taken(chat.send(message)), ({ events }) => {
      for (const event of events) if (event._tag === "Notice") notices.push(event.message)
    })
  yield* send(yield* offered(chat, images, isOwn))
  yield* send("and now?")
  const calls = (yield* Scripted.Script.use((script) => script.calls)).filter(({ method }) => method === "stream")
  const sent = calls.map(({ request }) => request.contents.flatMap(({ parts }) => parts))
  assert.deepStrictEqual(sidesOf(sent[0] ?? []), sidesOf(sent[1] ?? []))
  const kept = entries(yield* chat.conversation).flatMap(({ content }) => content.parts)
  assert.deepStrictEqual(sidesOf(kept), sidesOf(images))
  return { notices, sent: sidesOf(sent[1] ?? []), parts: sent[1] ?? [] }
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
    ])(`${isOwn ? "of the user" : "of a tool"}: %s`, served(reducing(0.01)), function* ([, name, images, expected]) {
      assert.deepStrictEqual((yield* widths(name, images, isOwn)).sent, [...expected])
    })
  }

  it.effect("all are reduced once there are more than twenty", served(reducing(0.01)), function* () {
    const { chat } = yield* begin({ model: "claude-sonnet-4-5", window: 10_000_000 })
    for (const [at, count] of [20, 1, 1].entries()) {
      yield* chat.append([
        { content: user(text("look")) },
        { content: model(call("read_file", {}, `a${at}`)) },
        { content: user(response("read_file", { output: "read" }, `a${at}`), ...many(count, 3_000)) }
      ])
      yield* taken(chat.send(""))
    }
    const calls = yield* Scripted.Script.use((script) => script.calls)
    const sent = calls.map(({ request }) => sidesOf(request.contents.flatMap(({ parts }) => parts)))
    assert.deepStrictEqual(sent, [Array(20).fill(3_000), Array(21).fill(2_000), Array(22).fill(2_000)])
  })

  it.effect("one whose bytes stay too many is halved twice, and then left out", function* () {
    // The most bytes in a reduced image, for each of its pixels: one pixel is the least.
    const large = image(2_000, 1_000, 8 * mebi)
    for (const [given, bytes, expected] of [
      [large, 6, [613]],
      [large, 22, [306]],
      [large, 85, []],
      [image(2_000, 1, 8 * mebi), 12_000, [306]]
    ] as const) {
      const { sent } = yield* widths("claude-sonnet-4-5", [given], false).pipe(Effect.provide(served(reducing(bytes))))
      assert.deepStrictEqual<object>(sent, expected)
    }
  })

  it.effect("those that cannot be reduced are left out, with their handles", served(Layer.empty), function* () {
    for (const [count, said] of [
      [1, "an image was left"],
      [2, "2 images were left"]
    ] as const) {
      const { notices, parts, sent } = yield* widths("claude-sonnet-4-5", many(count, 9_000), false)
      assert.deepStrictEqual(sent, [])
      assert.isTrue(parts.some((part) => /left out.*h_\w+/.test(part.text ?? "")))
      assert.deepStrictEqual(
        notices.map((notice) => notice.startsWith(said)),
        [true]
      )
    }
  })
})

describe("a large image in a chat with openclaw", () => {
  /** Sends an image, as above, and then a word. Returns its widths in each request and in the log, how often it was reduced, and the last parts. */
  const played = Effect.fnUntraced(function* (part: Part, isOwn = true) {
    const { chat } = yield* begin({ window: 100_000, policy: { strategy: "openclaw" } })
    for (const message of [yield* offered(chat, [part], isOwn), "Look again."]) yield* taken(chat.send(message))
    const calls = yield* Scripted.Script.use((script) => script.calls)
    const seen = calls.map(({ request }) => request.contents.flatMap(({ parts }) => parts))
    const kept = entries(yield* chat.conversation).flatMap(({ content }) => content.parts)
    return { parts: seen.at(-1) ?? [], widths: [...seen, kept].map(sidesOf) }
  })

  let reduced = 0
  const counting = Layer.succeed(ImageReducer, {
    reduce: (_image, wide, high) =>
      Effect.sync(() => {
        reduced += 1
        return { mimeType: "image/png", data: png(wide, high) }
      })
  })
  it.effect.each([
    [4_000, 3_000],
    // As many tiles as before.
    [1_300, 1_300]
  ] as const)("is sent reduced, once, and logged as it was: %d × %d", function* ([width, height]) {
    reduced = 0
    for (const [at, isOwn] of [true, false].entries()) {
      const { widths: found } = yield* Effect.provide(played(image(width, height), isOwn), served(counting))
      assert.deepStrictEqual([found, reduced], [[[1_200], [1_200], [width]], at + 1])
    }
  })

  it.effect("is a note with its handle where it cannot be reduced", served(Layer.empty), function* () {
    const { parts, widths: found } = yield* played(image(4_000, 3_000))
    // Before its answer is there, a message has no handles.
    assert.deepStrictEqual(found, [[4_000], [], [4_000]])
    assert.isTrue(parts.some((part) => /4000 × 3000.*recall \S+/.test(part.text ?? "")))
  })

  it.effect("stays as it is when it is not too large", served(Layer.empty), function* () {
    assert.deepStrictEqual((yield* played(image(1_200, 900))).widths, [[1_200], [1_200], [1_200]])
  })
})
