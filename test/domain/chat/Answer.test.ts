import { assert, describe, it } from "@effect/vitest"
import { AnswerBuilder, faultMessage, isWorthRetrying, thoughtOf } from "../../../src/domain/chat/Answer.ts"
import { AnswerFault } from "../../../src/domain/chat/ChatEvent.ts"
import { call, model, type Part, response, text, user, withSignature } from "../../../src/domain/content/Content.ts"

/** An answer whose parts come in these pieces, and which then ends like this. */
const arrived = (pieces: ReadonlyArray<ReadonlyArray<Part>>, finishReason?: string): AnswerBuilder => {
  const arriving = new AnswerBuilder()
  for (const parts of pieces) arriving.push({ parts })
  arriving.push({ parts: [], finishReason })
  return arriving
}
const nested = (depth: number): Readonly<Record<string, unknown>> => {
  let value: Readonly<Record<string, unknown>> = {}
  for (let level = 1; level < depth; level += 1) value = { a: value }
  return value
}
const thought = (words: string): Part => ({ text: words, thought: true })

describe("consolidation", () => {
  const table: ReadonlyArray<
    readonly [rule: string, pieces: ReadonlyArray<ReadonlyArray<Part>>, parts: ReadonlyArray<Part>]
  > = [
    ["adjacent texts become one", [[text("a"), text("b")], [text("c")]], [text("abc")]],
    ["an empty text says nothing", [[text("")], [text("a")], [text("")]], [text("a")]],
    ["only empty texts are no part", [[text("")], [text("")]], []],
    ["nothing at all is no part", [], []],
    ["thoughts are left out", [[thought("hm")], [text("a")], [thought("so")]], [text("a")]],
    ["texts on both sides of a thought are adjacent", [[text("a")], [thought("hm")], [text("b")]], [text("ab")]],
    [
      "a call parts two texts and stays where it was",
      [[text("a")], [call("f", {}, "1"), text("b")], [text("c"), call("g", {}, "2")]],
      [text("a"), call("f", {}, "1"), text("bc"), call("g", {}, "2")]
    ],
    [
      "a text with a signature stays by itself",
      [[text("a")], [{ text: "b", thoughtSignature: "s" }], [text("c"), text("d")]],
      [text("a"), { text: "b", thoughtSignature: "s" }, text("cd")]
    ],
    [
      "an empty text with a signature stays",
      [[text("a")], [{ text: "", thoughtSignature: "s" }]],
      [text("a"), { text: "", thoughtSignature: "s" }]
    ],
    [
      "a call keeps its signature and keys nobody knows",
      [[{ ...call("f", {}, "1"), thoughtSignature: "s", later: { a: 1 } }]],
      [{ ...call("f", {}, "1"), thoughtSignature: "s", later: { a: 1 } }]
    ],
    [
      "an id that names no call, or the second one that it names, is left out",
      [[call("f", {}, ""), call("g", {}, "1")], [call("h", {}, "1")]],
      [call("f", {}), call("g", {}, "1"), call("h", {})]
    ],
    [
      "media and kinds nobody knows stay in order",
      [
        [{ inlineData: { mimeType: "image/png", data: "aGk=" } }, text("a")],
        [{ hologram: 1 }, text("b")]
      ],
      [{ inlineData: { mimeType: "image/png", data: "aGk=" } }, text("a"), { hologram: 1 }, text("b")]
    ]
  ]
  for (const [rule, pieces, parts] of table) {
    it(rule, () => {
      assert.deepStrictEqual(arrived(pieces, "STOP").content, { role: "model", parts })
    })
  }

  const image = (characters: number): Part => ({
    inlineData: { mimeType: "image/png", data: "a".repeat(characters) }
  })
  const excessive: ReadonlyArray<readonly [rule: string, parts: ReadonlyArray<Part>, unit: string | undefined]> = [
    ["256 calls", Array.from({ length: 256 }, () => call("f", {})), undefined],
    ["257 calls", Array.from({ length: 257 }, () => call("f", {})), "calls"],
    ["128,000 thoughts", Array.from({ length: 128_000 }, () => thought("")), undefined],
    ["128,001 thoughts", Array.from({ length: 128_001 }, () => thought("")), "parts"],
    ["a long name", [call("f".repeat(16_384), {}, "i".repeat(16_384))], undefined],
    ["a longer name", [call("f".repeat(16_385), {})], "name"],
    ["a longer id", [call("f", {}, "i".repeat(16_385))], "name"],
    ["a large signature", [{ ...text("a"), thoughtSignature: "s".repeat(8_000_000) }], undefined],
    ["a larger one", [{ ...text("a"), thoughtSignature: "s".repeat(8_400_000) }], "extras"],
    ["images of 14 MiB", [image(4_000_000), image(14 * 1_048_576 - 4_000_000)], undefined],
    ["images of a character more", [image(4_000_000), image(14 * 1_048_576 - 3_999_999)], "media"],
    ["a large key that nobody knows", [{ ...text("a"), later: { now: ["s".repeat(8_400_000)] } }], "extras"],
    ["a large text, image and argument", [text("t".repeat(9e6)), call("f", { a: "a".repeat(9e6) })], undefined],
    ["arguments a little deep", [call("f", nested(900))], undefined],
    ["arguments too deep", [call("f", nested(1_000))], "levels"],
    ["arguments far too deep", [call("f", nested(100_000))], "levels"],
    ["unknown keys far too deep", [{ ...text("a"), later: nested(100_000) }], "levels"]
  ]
  for (const [rule, parts, unit] of excessive) {
    it(`${rule}: ${unit === undefined ? "not too much" : `too much (${unit})`}`, () => {
      assert.strictEqual(arrived([parts], "STOP").excess?.unit, unit)
    })
  }

  it("takes the last finish reason and the last counts", () => {
    const usage = (prompt: number) => ({ prompt, answer: 0, thoughts: 0, cached: 0 })
    const arriving = new AnswerBuilder()
    assert.isNull(arriving.usage)
    arriving.push({ parts: [], finishReason: "OTHER", usage: usage(1) })
    arriving.push({ parts: [text("a")], finishReason: "STOP", usage: usage(2) })
    arriving.push({ parts: [] })
    assert.strictEqual(arriving.finishReason, "STOP")
    assert.deepStrictEqual(arriving.usage, usage(2))
  })

  it("sorts source addresses and lists each once", () => {
    const arriving = new AnswerBuilder()
    arriving.push({ parts: [], citations: ["https://b", "https://a"] })
    arriving.push({ parts: [], citations: ["https://b", "(T) https://c"] })
    assert.deepStrictEqual(arriving.citations, ["(T) https://c", "https://a", "https://b"])
  })
})

describe("thoughts", () => {
  const table: ReadonlyArray<readonly [words: string, subject: string, description: string]> = [
    ["**Plan** First look.", "Plan", "First look."],
    ["Before. ** Plan ** After.", "Plan", "Before.  After."],
    ["no headline", "", "no headline"],
    ["**one** and **two**", "one", "and **two**"],
    ["**two\nlines** rest", "two\nlines", "rest"],
    ["**never closed", "", "**never closed"],
    ["", "", ""],
    ["****", "", ""]
  ]
  for (const [words, subject, description] of table) {
    it(JSON.stringify(words), () => {
      assert.deepStrictEqual(thoughtOf(words), { subject, description })
    })
  }
})

describe("validation", () => {
  const faults: ReadonlyArray<
    readonly [
      rule: string,
      parts: ReadonlyArray<Part>,
      finishReason: string | undefined,
      fault: AnswerFault | undefined,
      answeringTools?: AnswerFault | undefined
    ]
  > = [
    ["a text that ends is an answer", [text("a")], "STOP", undefined],
    ["a text cut short by MAX_TOKENS is an answer", [text("a")], "MAX_TOKENS", undefined],
    ["no finish reason", [text("a")], undefined, "NO_FINISH_REASON", undefined],
    ["nothing at all", [], undefined, "NO_FINISH_REASON", undefined],
    ["a call needs no finish reason", [call("f", {})], undefined, undefined],
    ["a call is an answer whatever the reason", [call("f", {})], "MALFORMED_FUNCTION_CALL", undefined],
    [
      "MALFORMED_FUNCTION_CALL, even with text",
      [text("a")],
      "MALFORMED_FUNCTION_CALL",
      "MALFORMED_FUNCTION_CALL",
      "MALFORMED_FUNCTION_CALL"
    ],
    [
      "UNEXPECTED_TOOL_CALL, even with text",
      [text("a")],
      "UNEXPECTED_TOOL_CALL",
      "UNEXPECTED_TOOL_CALL",
      "UNEXPECTED_TOOL_CALL"
    ],
    ["MAX_TOKENS before a word", [], "MAX_TOKENS", "MAX_TOKENS_EXCEEDED", "MAX_TOKENS_EXCEEDED"],
    ["SAFETY without text", [], "SAFETY", "SAFETY_BLOCKED", "SAFETY_BLOCKED"],
    ["RECITATION without text", [], "RECITATION", "RECITATION_BLOCKED", "RECITATION_BLOCKED"],
    ["OTHER without text", [], "OTHER", "OTHER_BLOCKED", "OTHER_BLOCKED"],
    ["a block after some text leaves an answer", [text("a")], "OTHER", undefined],
    ["only thoughts", [thought("hm")], "STOP", "THINKING_ONLY_RESPONSE", "THINKING_ONLY_RESPONSE"],
    [
      "thoughts and white space",
      [thought("hm"), text(" \n")],
      "STOP",
      "THINKING_ONLY_RESPONSE",
      "THINKING_ONLY_RESPONSE"
    ],
    ["a reason counts before thoughts", [thought("hm")], "MAX_TOKENS", "MAX_TOKENS_EXCEEDED", "MAX_TOKENS_EXCEEDED"],
    ["no text; after results of tools that is an answer", [], "STOP", "NO_RESPONSE_TEXT", undefined],
    ["white space", [text(" \r\n\t\u00a0")], "STOP", "NO_RESPONSE_TEXT", undefined],
    ["characters without width", [text("\u200b\u200c\u200d\u200e\u200f\ufeff")], "STOP", "NO_RESPONSE_TEXT", undefined],
    ["an HTML comment", [text(" <!-- hidden --> ")], "STOP", "NO_RESPONSE_TEXT", undefined],
    ["a comment over two texts", [text("<!-- a"), text("b -->")], "STOP", "NO_RESPONSE_TEXT", undefined],
    ["a comment left by comments", [text("<!<!-- a -->-- b -->")], "STOP", "NO_RESPONSE_TEXT", undefined],
    ["a comment that never ends is text", [text("<!-- a")], "STOP", undefined],
    ["text beside a comment", [text("<!-- a -->b")], "STOP", undefined],
    ["a signature alone is no text", [{ text: "", thoughtSignature: "s" }], "STOP", "NO_RESPONSE_TEXT", undefined],
    ["a picture is an answer", [{ inlineData: { mimeType: "image/png", data: "aGk=" } }], "STOP", undefined],
    ["a kind nobody knows is an answer", [{ executableCode: { code: "1" } }], "STOP", undefined]
  ]
  for (const [rule, parts, finishReason, fault, answeringTools] of faults) {
    it(rule, () => {
      assert.strictEqual(arrived([parts], finishReason).fault(false), fault)
      assert.strictEqual(arrived([parts], finishReason).fault(true), answeringTools)
    })
  }

  it("an answer without chunks is invalid, even after tool results", () => {
    assert.strictEqual(new AnswerBuilder().fault(false), "NO_FINISH_REASON")
    assert.strictEqual(new AnswerBuilder().fault(true), "NO_FINISH_REASON")
  })

  it("every fault says in one line what to do, and a blocked request is not retried", () => {
    for (const fault of AnswerFault.literals) {
      assert.match(faultMessage[fault], /^[^\n]+; [^\n]+$/)
      assert.strictEqual(isWorthRetrying(fault), !/^(?:SAFETY|RECITATION|OTHER)_/.test(fault))
    }
  })

  it("a megabyte of nested comments is checked at once", () => {
    const nested = "<!--".repeat(130_000) + "-->".repeat(130_000)
    assert.isUndefined(arrived([[text(nested)]], "STOP").fault(false))
    assert.strictEqual(arrived([[text("<!---->".repeat(150_000))]], "STOP").fault(false), "NO_RESPONSE_TEXT")
  })
})

describe("signatures", () => {
  const signed = { ...call("f", {}, "1"), thoughtSignature: "skip_thought_signature_validator" }

  it("are added to the first call of a model's message, once, and not to the stored message", () => {
    const content = model(text("a"), call("f", {}, "1"), call("g", {}, "2"))
    const once = withSignature(content)
    assert.deepStrictEqual(once, model(text("a"), signed, call("g", {}, "2")))
    assert.deepStrictEqual(content, model(text("a"), call("f", {}, "1"), call("g", {}, "2")))
    assert.strictEqual(withSignature(once), once)
  })

  it.each([
    ["a call that has one", model({ ...call("f", {}), thoughtSignature: "own" }, call("g", {}))],
    ["a message without calls", model(text("a"))],
    ["a call in the user's role", user(call("f", {}))],
    ["a result", user(response("f", { output: "x" }))],
    ["an empty message", model()]
  ])("%s returns the same object", (_, content) => assert.strictEqual(withSignature(content), content))
})
