import { Effect, Layer } from "effect"
import { call, model, response, text, user } from "../../../../src/domain/content/Content.ts"
import type { Handle } from "../../../../src/domain/content/Handle.ts"
import { entries } from "../../../../src/domain/conversation/Conversation.ts"
import * as Offline from "../../../../src/layers/assembly/Offline.ts"
import { recall } from "../../../../src/services/tools/builtin/Recall.ts"
import { callTool, failureOf } from "../../../support/callTool.ts"
import { begin } from "../../../support/sending.ts"
import { assert, describe, it } from "../../../support/vitest.ts"

const output = Array.from({ length: 3_000 }, (_, n) => `line ${n + 1} of the long output`).join("\n")

/** A conversation that holds an output, and its handle. */
const conversation = (said: string) =>
  Effect.gen(function* () {
    const { chat } = yield* begin()
    yield* chat.append([
      { content: user(text("go")) },
      { content: model(call("read_file", { path: "a" }, "c")) },
      { content: user(response("read_file", { output: said }, "c")) }
    ])
    const handle = entries(yield* chat.conversation)
      .flatMap(({ handles }) => handles)
      .at(-1)
    return { chat, handle: handle ?? "" }
  })

const here = Layer.fresh(Offline.layer)

/** The handle with its last characters changed, so that nothing has it. */
const mistaken = (handle: string): string => handle.slice(0, -1) + (handle.endsWith("a") ? "b" : "a")

describe("recall", () => {
  it.effect("returns an output by lines, by pattern, and within 4,000 tokens", here, function* () {
    const { chat, handle } = yield* conversation(output)
    const tool = recall(chat)
    const value = (args: Record<string, unknown>) =>
      Effect.map(callTool(tool, { handle, ...args }), ({ result }) => String(result.value))
    assert.strictEqual(yield* value({ from: 2, to: 3 }), "line 2 of the long output\nline 3 of the long output")
    assert.strictEqual(yield* value({ grep: "^line 2999 " }), "2999: line 2999 of the long output")
    const first = yield* value({})
    assert.match(
      first,
      /^line 1 of the long output\n[^]*\n\(\d+ lines more of 3000; ask for them by number, or by grep\)$/
    )
    assert.isBelow(first.length, 20_000)
    assert.isBelow((yield* value({ maxTokens: 100 })).length, 600)
    assert.isBelow((yield* value({ maxTokens: 1_000_000 })).length, 50_000)
    assert.match(yield* value({ grep: "nothing like it" }), /has no line that matches; it has 3000 lines\.$/)
    assert.match(yield* value({ from: 9_000 }), /has none of the lines asked for/)
  })

  it.effect("returns images as they were, unless they are too many, and other parts as text", here, function* () {
    const image = { inlineData: { mimeType: "image/png", data: "AQID" } }
    const { chat } = yield* begin()
    const responses = [1, 100].map((count) => ({
      functionResponse: {
        id: "c",
        name: "see",
        response: { n: count },
        parts: Array.from({ length: count }, () => image)
      }
    }))
    const plain = { functionResponse: { id: "c", name: "see", response: { a: 1, b: [2] } } }
    yield* chat.append([
      { content: user(image) },
      ...[...responses, plain].flatMap((part) => [{ content: model(call("see", {}, "c")) }, { content: user(part) }])
    ])
    const handles = entries(yield* chat.conversation).flatMap(({ content, handles }) =>
      content.role === "user" ? handles : []
    )
    const told = yield* Effect.forEach(handles, (handle) =>
      Effect.map(callTool(recall(chat), { handle }), ({ result: { media = [], value } }) => [
        media.length,
        String(value).slice(0, 20)
      ])
    )
    assert.deepStrictEqual(told, [
      [1, "[image/png of 3 byte"],
      [1, '{"n":1}'],
      [0, '{"functionResponse":'],
      [0, '{"functionResponse":']
    ])
  })

  it.effect("finds a handle in text copied with it", here, function* () {
    const { chat, handle } = yield* conversation("short")
    const { question, result } = yield* callTool(recall(chat), { handle: `[recall ${handle}]` })
    assert.strictEqual(result.value, "short")
    assert.strictEqual(question, undefined)
  })

  it.effect("answers an unknown handle with a suggestion or with what to do", here, function* () {
    const { chat, handle } = yield* conversation("short")
    const tool = recall(chat)
    const near = yield* failureOf(tool, { handle: mistaken(handle) })
    assert.strictEqual(near, `unknown_handle: nothing is kept under ${mistaken(handle)}; did you mean ${handle}?`)
    const beginning = yield* failureOf(tool, { handle: handle.slice(0, 10) })
    assert.include(beginning, `did you mean ${handle}?`)
    const far = yield* failureOf(tool, { handle: "h_zzzzzzzzzz" })
    assert.match(far ?? "", /^unknown_handle: nothing is kept under h_zzzzzzzzzz here; copy a handle exactly/)
    assert.match((yield* failureOf(tool, { handle: "the output" })) ?? "", /^unknown_handle/)
  })

  it.effect("reports an invalid pattern to the model", here, function* () {
    const { chat, handle } = yield* conversation("short")
    const failure = yield* failureOf(recall(chat), { handle, grep: "(" })
    assert.match(failure ?? "", /^invalid_tool_params: grep is not a regular expression/)
    const unsupported = yield* failureOf(recall(chat), { handle, grep: "(?=a)b" })
    assert.match(unsupported ?? "", /^invalid_tool_params: [^\n]*look-ahead/)
  })

  it.effect("accepts handles of other agents' sessions, named or not", here, function* () {
    const own = yield* conversation("mine")
    const child = yield* conversation("what the child saw")
    const asked: Array<Handle> = []
    const tool = recall(
      own.chat,
      Effect.succeed([
        {
          session: "s1",
          search: ({ pattern }) => Effect.succeed({ text: `the child has ${pattern}`, searched: 1, matched: 1 }),
          recall: (handle, selection) => {
            asked.push(handle)
            return child.chat.recall(handle, selection)
          }
        }
      ])
    )
    const value = (args: Record<string, unknown>) =>
      Effect.map(callTool(tool, args), ({ result }) => String(result.value))
    assert.strictEqual(yield* value({ handle: own.handle }), "mine")
    assert.deepStrictEqual(asked, [])
    assert.strictEqual(yield* value({ handle: child.handle }), "what the child saw")
    assert.strictEqual(yield* value({ handle: child.handle, session: "s1" }), "what the child saw")
    assert.strictEqual(
      yield* failureOf(tool, { handle: own.handle, session: "s2" }),
      "unknown_session: there is no session s2; there are: s1"
    )
    assert.match(
      (yield* failureOf(recall(own.chat), { handle: own.handle, session: "s1" })) ?? "",
      /no agent was started here/
    )
    assert.match(
      (yield* failureOf(tool, { grep: "x", session: "s2" })) ?? "",
      /^unknown_session: there is no session s2/
    )
    assert.strictEqual(yield* value({ grep: "x", session: "s1" }), "the child has x")
    assert.match(yield* value({ grep: "child saw" }), /^No match in the 0 parts/)
    assert.match(
      (yield* failureOf(tool, { handle: "h_zzzzzzzzzz", session: "s1" })) ?? "",
      /^unknown_handle: .*in session s1/
    )
  })
})
