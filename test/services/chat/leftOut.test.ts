import { Effect, Layer } from "effect"
import {
  call,
  isMedia,
  isResponse,
  model,
  type Part,
  response,
  text,
  user
} from "../../../src/domain/content/Content.ts"
import { entries } from "../../../src/domain/conversation/Conversation.ts"
import * as Offline from "../../../src/layers/assembly/Offline.ts"
import * as Scripted from "../../../src/layers/testing/ScriptedModel.ts"
import {
  InvalidRequestError,
  ModelError,
  type ModelRequest,
  RequestBytesError
} from "../../../src/services/model/Model.ts"
import { begin, endingOf, taken } from "../../support/sending.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** What a provider refuses does not stay in the way. */

const media = (mimeType: string, size = 400): Part => ({ inlineData: { mimeType, data: "A".repeat(size) } })
const image = media("image/png")
const pdf = media("application/pdf")

const partsOf = ({ contents }: ModelRequest): ReadonlyArray<Part> => contents.flatMap(({ parts }) => parts)
const dataOf = (request: ModelRequest) =>
  partsOf(request).flatMap(({ functionResponse, inlineData }) => [
    ...(inlineData === undefined ? [] : [inlineData.mimeType ?? ""]),
    ...(JSON.stringify(functionResponse ?? {}).match(/image\/png/g) ?? [])
  ])

const refusing = (refused: "image" | "file" | "signature", detail = "not this") =>
  new ModelError({ reason: new InvalidRequestError({ detail, refused }) })

/** A runtime whose provider answers a request with this, if anything, and else "fine". */
const served = (refuse: (request: ModelRequest) => ModelError | undefined) =>
  Layer.fresh(Offline.layerWithModel(Scripted.layer((request): Scripted.Step => refuse(request) ?? "fine")))

const results = (id: string, ...parts: ReadonlyArray<Part>) => [
  { content: model(call("read_file", {}, id)) },
  { content: user(...(parts.some(isResponse) ? [] : [response("read_file", { output: "read" }, id)]), ...parts) }
]

/** Sends a message, and returns the notices, the last request, and whether it was answered. */
const sent = Effect.fnUntraced(function* (
  chat: Effect.Success<ReturnType<typeof begin>>["chat"],
  parts: ReadonlyArray<Part>
) {
  const { events } = yield* taken(chat.send(parts))
  const calls = (yield* Scripted.Script.use((script) => script.calls)).filter(({ method }) => method === "stream")
  return {
    calls: calls.length,
    notices: events.flatMap((event) => (event._tag === "Notice" ? [event.message] : [])),
    last: calls.at(-1)?.request ?? assert.fail("nothing was sent"),
    isAnswered: endingOf(events)?._tag === "Finished"
  }
})

describe("content that the provider refuses", () => {
  it.effect.each([
    ["image", "an image was", [image], []],
    ["image", "an image was", [pdf, image], ["application/pdf"]],
    ["file", "a file was", [pdf, image], ["image/png"]],
    ["image", "4 images were", [1, 2, 3, 4].map((size) => media("image/png", 400 + size)), []],
    ["image", "an image was", [{ functionResponse: { id: "a", name: "read_file", response: {}, parts: [image] } }], []],
    // As other agents write results.
    [
      "image",
      "an image was",
      [
        {
          functionResponse: {
            id: "a",
            name: "read_file",
            response: {
              content: [{ type: "image", source: { type: "base64", media_type: "image/png", data: "abcd" } }]
            }
          }
        }
      ],
      []
    ]
  ] as const)("%s: %s left out once, with one line, and stays recallable", ([refused, what, parts, left]) =>
    Effect.gen(function* () {
      const { chat } = yield* begin()
      yield* sent(chat, [text("hi")])
      yield* chat.append(results("a", ...parts))
      const first = yield* sent(chat, [])
      assert.isTrue(first.isAnswered)
      assert.lengthOf(first.notices, 1)
      const notice = first.notices[0] ?? ""
      assert.isTrue(notice.startsWith(`${what} left out of the request, because the model's provider `), notice)
      assert.lengthOf(notice.match(/\bh_/g) ?? [], Math.min(3, parts.length - left.length))
      assert.deepStrictEqual(dataOf(first.last), [...left])
      const kept = entries(yield* chat.conversation).flatMap(({ content }) => content.parts)
      for (const part of parts) assert.include(kept, part)
      assert.strictEqual((yield* sent(chat, [text("again")])).calls, first.calls + 1)
    }).pipe(
      Effect.provide(
        served((request) =>
          dataOf(request).some((type) => type.startsWith("image/") === (refused === "image"))
            ? refusing(refused)
            : undefined
        )
      )
    )
  )

  it.effect.each([
    ["image", pdf, "a file was"],
    ["file", image, "an image was"]
  ] as const)(
    "%s: may be of the other kind, where the server names the form of a content alone",
    ([refused, part, what]) =>
      Effect.gen(function* () {
        const { chat } = yield* begin()
        yield* chat.append(results("a", part))
        const { isAnswered, notices } = yield* sent(chat, [text("look")])
        assert.isTrue(isAnswered)
        assert.isTrue(notices[0]?.startsWith(`${what} left out of the request`))
      }).pipe(
        Effect.provide(
          served((request) => (dataOf(request).length > 0 ? refusing(refused, "content must be a string") : undefined))
        )
      )
  )

  it.effect(
    "is left out of a summary's request, too",
    served((request) => (dataOf(request).length > 0 ? refusing("image") : undefined)),
    function* () {
      const { chat } = yield* begin({ policy: { summarizer: "model" } })
      yield* chat.append(results("a", image))
      assert.isTrue((yield* sent(chat, [text("look")])).isAnswered)
      const words = [user(text("Words of oak. ".repeat(600))), model(text("Of oak. ".repeat(600)))]
      yield* chat.append([...words, ...words].map((content) => ({ content })))
      yield* chat.compress()
      const calls = yield* Scripted.Script.use((script) => script.calls)
      const asked = calls.filter(({ method }) => method === "generate").map(({ request }) => request)
      assert.isAbove(asked.length, 0)
      assert.deepStrictEqual(asked.flatMap(dataOf), [])
    }
  )

  it.effect(
    "stays where the refusal names another kind",
    served((request) => (dataOf(request).length > 0 ? refusing("image", "no image_generation here") : undefined)),
    function* () {
      const { chat } = yield* begin()
      yield* chat.append(results("a", pdf))
      assert.deepStrictEqual((yield* sent(chat, [text("look")])).notices, [])
    }
  )

  it.effect(
    "in the user's own message goes back with it, and takes nothing else along",
    served((request) => (dataOf(request).length > 1 ? refusing("image") : undefined)),
    function* () {
      const { chat } = yield* begin()
      yield* chat.append(results("a", image))
      assert.isTrue((yield* sent(chat, [text("look")])).isAnswered)
      const { isAnswered, notices } = yield* sent(chat, [text("and this"), image])
      assert.deepStrictEqual([isAnswered, notices], [false, []])
      const { isAnswered: isNext, last } = yield* sent(chat, [text("never mind")])
      assert.deepStrictEqual([isNext, dataOf(last)], [true, ["image/png"]])
    }
  )

  it.effect(
    "too many bytes: the oldest media go first, and no more than needed",
    served((request) =>
      dataOf(request).length > 3 ? new ModelError({ reason: new RequestBytesError({}) }) : undefined
    ),
    function* () {
      const { chat } = yield* begin()
      for (const id of ["a", "b", "c", "d", "e"]) yield* chat.append(results(id, image))
      const { isAnswered, last, notices } = yield* sent(chat, [text("look")])
      assert.isTrue(isAnswered)
      const said = /^(.+) left out of the request, because .* bytes .*; recall h_/
      assert.deepStrictEqual(
        notices.map((notice) => said.exec(notice)?.[1]),
        ["a file was", "2 files were"]
      )
      assert.lengthOf(dataOf(last), 2)
      assert.isTrue(last.contents.at(-2)?.parts.some(isMedia))
    }
  )

  it.effect(
    "signatures are left out of every later request",
    served((request) =>
      partsOf(request).some(({ thoughtSignature }) => thoughtSignature === "foreign")
        ? refusing("signature")
        : undefined
    ),
    function* () {
      const { chat } = yield* begin()
      yield* chat.append([
        { content: user(text("hi")) },
        { content: model({ text: "hello", thoughtSignature: "foreign" }), model: "gemini-2.5-flash" }
      ])
      const first = yield* sent(chat, [text("go on")])
      assert.deepStrictEqual([first.isAnswered, first.notices.length, first.calls], [true, 1, 2])
      assert.strictEqual((yield* sent(chat, [text("again")])).calls, 3)
      // Another model's provider may take them.
      yield* chat.configure({ chosen: "gemini-2.5-pro" })
      assert.strictEqual((yield* sent(chat, [text("again")])).notices.length, 1)
    }
  )

  it.effect.each<readonly [tool: InvalidRequestError["tool"] & {}, name: string]>([
    [1, "odd.one"],
    ["odd_one", "odd.one"],
    [[0, 2], "read"],
    ["look", "look"]
  ])("the tool %s is left out of every later request, with one line that names it", ([tool, name]) =>
    Effect.gen(function* () {
      const functionDeclarations = ["look", "odd.one", "read"].map((each) => ({ name: each }))
      const { chat } = yield* begin({ tools: [{ functionDeclarations }] })
      const first = yield* sent(chat, [text("go on")])
      assert.deepStrictEqual([first.isAnswered, first.calls], [true, 2])
      assert.lengthOf(first.notices, 1)
      assert.include(first.notices[0], `does not accept the tool ${name} (not this)`)
      const left = functionDeclarations.filter((each) => each.name !== name)
      assert.deepStrictEqual(first.last.tools, [{ functionDeclarations: left }])
      assert.strictEqual((yield* sent(chat, [text("again")])).calls, 3)
    }).pipe(
      Effect.provide(
        served(({ tools }) =>
          JSON.stringify(tools).includes(`"${name}"`)
            ? new ModelError({ reason: new InvalidRequestError({ detail: "not this", refused: "tool", tool }) })
            : undefined
        )
      )
    )
  )

  const declaring = (...names: ReadonlyArray<string>) => ({ functionDeclarations: names.map((name) => ({ name })) })
  const refusingTool = (tool: NonNullable<InvalidRequestError["tool"]>) =>
    new ModelError({ reason: new InvalidRequestError({ detail: "not this", refused: "tool", tool }) })

  it.effect(
    "a tool of a later list is left out, and counted no more, until another model is asked",
    served(({ tools }) => (JSON.stringify(tools).includes(`"odd"`) ? refusingTool([1, 0]) : undefined)),
    function* () {
      const { chat } = yield* begin({ tools: [declaring("look"), declaring("odd", "read")] })
      const before = (yield* chat.usage).tokens
      const { isAnswered, last } = yield* sent(chat, [text("go on")])
      assert.deepStrictEqual([isAnswered, last.tools], [true, [declaring("look"), declaring("read")]])
      const { chat: other } = yield* begin({ tools: [declaring("look"), declaring("read")] })
      assert.isBelow((yield* other.usage).tokens, before)
      yield* sent(other, [text("go on")])
      assert.strictEqual((yield* chat.usage).tokens, (yield* other.usage).tokens)
      yield* chat.configure({ generation: { temperature: 0 } })
      assert.strictEqual((yield* sent(chat, [text("again")])).notices.length, 0)
      yield* chat.configure({ chosen: "gemini-2.5-pro" })
      assert.strictEqual((yield* sent(chat, [text("again")])).notices.length, 1)
    }
  )

  it.effect(
    "a provider that refuses all tools alike is not asked once for each",
    served(() => refusingTool(0)),
    function* () {
      const { chat } = yield* begin({ tools: [declaring("a", "b", "c", "d", "e")] })
      const { calls, isAnswered, notices } = yield* sent(chat, [text("go on")])
      assert.deepStrictEqual([calls, isAnswered, notices.length], [3, false, 2])
    }
  )

  it.effect(
    "a tool that is not declared ends the turn as any other failure",
    served(() => new ModelError({ reason: new InvalidRequestError({ detail: "no", refused: "tool", tool: 7 }) })),
    function* () {
      const { chat } = yield* begin()
      const { calls, isAnswered, notices } = yield* sent(chat, [text("go on")])
      assert.deepStrictEqual([calls, isAnswered, notices], [1, false, []])
    }
  )
})
