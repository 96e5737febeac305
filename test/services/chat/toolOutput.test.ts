import { Arbitrary, Effect, Layer, Schema, Stream } from "effect"
import { agentDefaultsOf } from "../../../src/domain/compression/strategies/Strategies.ts"
import { call, type Part, response, text } from "../../../src/domain/content/Content.ts"
import { entries, view, viewTokens } from "../../../src/domain/conversation/Conversation.ts"
import { resultText } from "../../../src/domain/conversation/ToolOutputBound.ts"
import * as Offline from "../../../src/layers/assembly/Offline.ts"
import * as ScriptedModel from "../../../src/layers/testing/ScriptedModel.ts"
import type { ChatSettings } from "../../../src/services/chat/ChatSettings.ts"
import { agent, asking, calling, saying, tool } from "../../support/agents.ts"
import { runsOf, sizeOf } from "../../support/runs.ts"
import { begin, taken } from "../../support/sending.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** Every result is bounded when it comes, and old ones are masked; the whole of each stays behind its handle. */

const conversing = Effect.fnUntraced(function* (answers: ScriptedModel.Answers, settings: Partial<ChatSettings> = {}) {
  const services = yield* Layer.build(Offline.layerWithModel(ScriptedModel.layer(answers)))
  const begun = yield* Effect.provide(begin(settings), services)
  const calls = Effect.provide(
    ScriptedModel.Script.use((script) => script.calls),
    services
  )
  return { ...begun, calls }
})

const user = (...parts: ReadonlyArray<Part>) => ({ content: { role: "user" as const, parts } })
const shownOf = (parts: ReadonlyArray<Part>) => parts.map((part) => resultText(part) ?? part.text ?? "")

/** Appends results of these sizes and says what is shown of each, what is kept, and its tokens. */
const appended = Effect.fnUntraced(function* (parts: ReadonlyArray<Part>, settings: Partial<ChatSettings> = {}) {
  const { chat, events } = yield* conversing([], settings)
  yield* chat.append([user(...parts)])
  const [item] = view(yield* chat.conversation)
  assert.isDefined(item)
  if (item === undefined) return { chat, events, shown: [], handles: [], tokens: 0 }
  const shown = item.entry.content.parts.map((part, index) => item.shortened.get(index)?.part ?? part)
  return {
    chat,
    events,
    shown: shownOf(shown),
    handles: item.entry.handles,
    tokens: viewTokens(yield* chat.conversation)
  }
})

const long = (characters: number) => "0123456789abcdef ".repeat(Math.ceil(characters / 17)).slice(0, characters)

describe("tool results are bounded on arrival", () => {
  it.effect(
    "pi: a tool's output has at most 2,000 lines or 50 KB (Pi 0.73; ours: 51,200 characters, in any number of lines)",
    function* () {
      const { toolOutput } = agentDefaultsOf("pi")
      const of = (characters: number) => appended([response("t", { output: long(characters) })], { toolOutput })
      assert.strictEqual((yield* of(51_200)).shown[0], long(51_200))
      const { handles, shown } = yield* of(60_000)
      assert.isBelow(shown[0]?.length ?? 0, 52_000)
      assert.include(shown[0] ?? "", handles[0] ?? "no handle")
    }
  )

  const rows: ReadonlyArray<
    readonly [rule: string, part: Part, settings: Partial<ChatSettings>, check: (shown: string) => void]
  > = [
    [
      "40,000 characters stay as they are",
      response("t", { output: long(40_000) }),
      {},
      (shown) => assert.strictEqual(shown, long(40_000))
    ],
    [
      "what is longer is shown by its first fifth and its last four fifths",
      response("t", { output: long(41_000) }),
      {},
      (shown) => {
        assert.match(shown, /first 8000 and last 32000 of 41000 characters.*recall h_/)
        assert.isBelow(shown.length, 40_300)
      }
    ],
    [
      "the last 30 lines",
      response("t", { output: "a line\n".repeat(10_000) }),
      { toolOutput: { form: "last-lines" } },
      (shown) => assert.strictEqual(shown.split("\n").filter((line) => line === "a line").length, 29)
    ],
    [
      "0 bounds nothing",
      response("t", { output: long(90_000) }),
      { toolOutput: { most: 0 } },
      (shown) => assert.strictEqual(shown.length, 90_000)
    ],
    ["the user's text is not cut", text(long(90_000)), {}, (shown) => assert.strictEqual(shown.length, 90_000)]
  ]
  it.effect.each(rows)("%s", function* ([, part, settings, check]) {
    const { chat, handles, shown } = yield* appended([part], settings)
    check(shown[0] ?? "")
    const [handle = assert.fail("no handle")] = handles
    const whole = (yield* chat.recall(handle)).text
    const output = part.functionResponse?.response
    const texts = typeof output === "object" && output !== null ? Object.values(output) : [part.text]
    assert.isTrue(texts.some((one) => whole === one || whole.includes(JSON.stringify(one))))
  })

  it.effect("parallel results share one limit in any window; small ones stay whole", function* () {
    const parts = [
      response("t", { output: long(30_000) }),
      response("t", { output: "short" }),
      response("t", { output: long(39_000) })
    ]
    const { shown, tokens } = yield* appended(parts, { window: 8_000 })
    assert.isBelow(tokens, 8_000 * 0.75)
    assert.strictEqual(shown[1], "short")
    assert.isAbove(shown[0]?.length ?? 0, 1_000)
  })

  it.effect("media that do not fit become a note with their handle, and the conversation continues", function* () {
    const data = "A".repeat(sizeOf(4_000_000, 400_000))
    const pdf: Part = { inlineData: { mimeType: "application/pdf", data } }
    const { chat } = yield* conversing(["fine"], { window: 32_000 })
    for (let n = 0; n < 3; n += 1) {
      yield* chat.append([
        { content: { role: "model", parts: [call("look", {}, `c${n}`)] } },
        user(response("look", { output: "three" }, `c${n}`), pdf, pdf)
      ])
    }
    const { error } = yield* taken(chat.send("and now?"))
    assert.isUndefined(error)
    const handle = entries(yield* chat.conversation)[1]?.handles[1] ?? assert.fail("no handle")
    assert.strictEqual((yield* chat.recall(handle)).text, JSON.stringify(pdf))
  })

  it.effect("a full window still bounds", function* () {
    const { chat } = yield* conversing([], { window: 20_000 })
    yield* chat.append([user(text(long(60_000)))])
    yield* chat.append([user(response("t", { output: long(100_000) }))])
    const before = viewTokens(yield* chat.conversation)
    yield* chat.append([user(response("t", { output: long(100_000) }))])
    assert.isBelow(viewTokens(yield* chat.conversation) - before, 20_000 * 0.4)
  })
})

describe("old results are masked", () => {
  const filler = (n: number) => `file ${n}\n${"some words of this file\n".repeat(900)}the end of ${n}`
  const reader = tool("read", "read", (word) => Effect.succeed(filler(Number(word))))
  const turns = 24
  // Without counts: the estimate stands.
  const answers: ScriptedModel.Answers = (_, index) => ({
    ...(index < turns ? calling(asking("read", String(index))) : saying("done")),
    usage: null
  })

  it.effect("in batches, when that saves enough, and never the newest", function* () {
    const { calls, chat, log, run } = yield* agent({ tools: [reader], answers })
    const { events } = yield* taken(run("go"))
    const masked = events.filter(({ _tag }) => _tag === "ToolOutputMasked")
    assert.isAtLeast(masked.length, 1)
    assert.isBelow(masked.length, turns / 4)
    for (const event of masked) {
      if (event._tag === "ToolOutputMasked") assert.isAtLeast(event.before - event.after, 25_000)
    }
    assert.strictEqual(log.filter(({ _tag }) => _tag === "Masked").length, masked.length)
    const last = JSON.stringify((yield* calls).at(-1)?.request.contents)
    assert.include(last, "An old output")
    assert.include(
      last,
      filler(turns - 1)
        .slice(0, 200)
        .replaceAll("\n", "\\n")
    )
    const [first] = entries(yield* chat.conversation).filter(({ content }) =>
      content.parts.some((part) => part.functionResponse !== undefined)
    )
    const handle = first?.handles[0] ?? assert.fail("no handle")
    assert.strictEqual((yield* chat.recall(handle)).text, filler(0))
  })

  it.effect("the sent prefix is stable between two masks", function* () {
    const { calls, run } = yield* agent({ tools: [reader], answers })
    yield* Stream.runDrain(run("go"))
    const requests = (yield* calls).map(({ request }) => JSON.stringify(request.contents).slice(0, -1))
    let broken = 0
    requests.forEach((request, index) => {
      const before = requests[index - 1]
      if (before !== undefined && !request.startsWith(before)) broken += 1
    })
    assert.isAtMost(broken, 4)
    assert.isAtLeast(broken, 1)
  })

  it.effect("false disables it; a tool's own kept results stay", function* () {
    const off = yield* agent({ tools: [reader], answers, settings: { masking: false } })
    yield* Stream.runDrain(off.run("go"))
    assert.isFalse(off.log.some(({ _tag }) => _tag === "Masked"))
    const keeping = yield* agent({ tools: [{ ...reader, isNeverMasked: true }], answers })
    yield* Stream.runDrain(keeping.run("go"))
    assert.isFalse(keeping.log.some(({ _tag }) => _tag === "Masked"))
  })
})

describe("any tool result", () => {
  const sizes = Arbitrary.schema(
    Schema.Array(
      Schema.Struct({
        length: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 90_000 })),
        kind: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 3 }))
      })
    ).check(Schema.isMinLength(1), Schema.isMaxLength(5))
  )
  it.effect.prop(
    "is bounded, and recalled byte for byte",
    [sizes],
    ([given]) =>
      Effect.gen(function* () {
        const parts = given.map(({ kind, length }, n) =>
          kind === 0
            ? response("t", { output: long(length) })
            : kind === 1
              ? response("t", { error: `${n}\n`.repeat(length / 3) })
              : kind === 2
                ? response("t", `日本語${n}`.repeat(length / 8))
                : response("t", { a: long(length / 2), b: [long(length / 2)] })
        )
        const { chat, handles, tokens } = yield* appended(parts, { window: 30_000 })
        const recalled = yield* Effect.forEach(handles, (handle) =>
          Effect.map(chat.recall(handle), (found) => found.text)
        )
        const wholes = parts.map((part) => {
          const given = part.functionResponse?.response
          const values = typeof given === "object" && given !== null ? Object.values(given) : [given]
          return values.length === 1 ? String(values[0]) : JSON.stringify(part)
        })
        return tokens <= 30_000 * 0.75 + 50 * parts.length && recalled.every((one, n) => one === wholes[n])
      }),
    { arbitrary: { runs: runsOf(150) } }
  )
})
