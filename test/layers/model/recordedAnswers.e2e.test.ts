import { Effect, Layer, Result, Stream } from "effect"
import { readdirSync, readFileSync } from "node:fs"
import path from "node:path"
import { call, isThought, type Part, text, user } from "../../../src/domain/content/Content.ts"
import { Model } from "../../../src/services/model/Model.ts"
import { root } from "../../support/paths.ts"
import { anthropic, chat, type Dialect, gemini, responses } from "../../support/ProviderDialects.ts"
import * as Server from "../../support/ProviderServer.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** Answers that providers really gave, from the test suites of other programs, through our models. */

const folder = path.join(root, "test", "fixtures", "provider-answers")

const usage = (prompt: number, answer: number, thoughts = 0, cached = 0) => ({ prompt, answer, thoughts, cached })

/** What an answer has to become: its words, its calls and its end; or the reason of a failure. */
interface Recorded {
  readonly dialect: Dialect
  readonly parts?: ReadonlyArray<Part>
  /** The beginning of the words, where they are long. */
  readonly begins?: string
  /** The beginning of the thoughts. */
  readonly thinks?: string
  /** Whether a signature comes with the answer. */
  readonly isSigned?: boolean
  readonly finishReason?: string
  readonly usage?: object
  readonly fails?: object
}

const answers: Readonly<Record<string, Recorded>> = {
  "anthropic-text-and-call": {
    dialect: anthropic,
    parts: [
      text("I'll invoke the JSON response tool."),
      call(
        "json",
        { elements: [{ location: "San Francisco", temperature: 58, condition: "sunny" }] },
        "toolu_01KFbKqPYSuAKujiL6mTfzYA"
      )
    ],
    usage: usage(849, 47)
  },
  "anthropic-call-without-arguments": {
    dialect: anthropic,
    parts: [text("I'll update the issue list for you."), call("updateIssueList", {}, "toolu_01QE1WLsSVp5hy5Q3GmGTmjP")],
    usage: usage(565, 48)
  },
  // The count at the start is lower than the one at the end.
  "anthropic-late-usage": { dialect: anthropic, parts: [text("pong")], usage: usage(61, 2) },
  "anthropic-server-tool": {
    dialect: anthropic,
    begins: "I'll search for a weather-related tool to help you",
    usage: usage(1_040, 41)
  },
  "anthropic-structured": {
    dialect: anthropic,
    begins: '{"characters":[{"name":"Theron Ironheart"',
    usage: usage(313, 305)
  },
  // The provider's own summary is opaque, and goes back with the next request.
  "anthropic-compaction": { dialect: anthropic, isSigned: true, begins: "Hello there!", usage: usage(30, 8) },
  "anthropic-refusal": { dialect: anthropic, fails: { _tag: "ContentPolicyError", finishReason: "refusal" } },
  "responses-reasoning-and-calls": {
    dialect: responses,
    thinks: "**Calculating step-by-step",
    isSigned: true,
    parts: [call("calculator", { a: 12, b: 7, op: "add" }, "call_AB6AaRZ1FYZB2RwS6A5vbdqn")]
  },
  "responses-no-quota": { dialect: responses, fails: { _tag: "QuotaExhaustedError" } },
  // Its first chunk is about the prompt and has no choice.
  "chat-azure": { dialect: chat, parts: [text("Capital of Denmark.")], usage: usage(15, 14, 64) },
  "chat-deepseek-reasoning-and-call": {
    dialect: chat,
    // Its reasoning goes back with the call.
    isSigned: true,
    thinks: "The user is asking for the weather in San Francisc",
    parts: [call("weather", { location: "San Francisco" }, "call_00_ioIn7yN9p1ZOMNpDLwd4MgAF")],
    usage: usage(339, 44, 39, 320)
  },
  "gemini-signature-in-empty-text": { dialect: gemini, begins: "4", isSigned: true, usage: usage(15, 1, 52) },
  "gemini-blocked": { dialect: gemini, fails: { _tag: "ContentPolicyError", finishReason: "PROHIBITED_CONTENT" } }
}

const recorded = ({ dialect }: Recorded, name: string): Server.ProviderAnswer => {
  const lines = readFileSync(path.join(folder, `${name}.jsonl`), "utf8")
    .split("\n")
    .filter((line) => line.trim() !== "")
  if (dialect === gemini) return Server.events(...lines)
  return dialect === chat
    ? Server.events(...lines, "[DONE]")
    : Server.namedEvents(...lines.map((line) => JSON.parse(line)))
}

describe("answers of real providers", () => {
  it("are all here", () => {
    const names = readdirSync(folder).filter((name) => name.endsWith(".jsonl"))
    assert.sameMembers(
      names,
      Object.keys(answers).map((name) => `${name}.jsonl`)
    )
  })

  it.live.each(Object.entries(answers))("%s", function* ([name, expected]) {
    const { dialect } = expected
    const server = yield* Server.make(() => recorded(expected, name))
    const model = yield* Effect.provide(Model, yield* Layer.build(dialect.layer(server.url, "a-key-for-nobody")))
    const asked = Stream.runCollect(model.stream({ model: dialect.model, contents: [user(text("hello"))] }))
    const result = yield* Effect.result(asked)
    if (expected.fails !== undefined) {
      assert.isTrue(Result.isFailure(result))
      if (Result.isFailure(result)) assert.deepInclude(result.failure.reason, expected.fails)
      return
    }
    if (Result.isFailure(result)) return yield* result.failure
    const parts = result.success.flatMap((chunk) => chunk.parts)
    const words = parts.filter((part) => part.text !== undefined && !isThought(part)).map((part) => part.text)
    const thoughts = parts.filter(isThought).map((part) => part.text)
    if (expected.begins !== undefined) assert.isTrue(words.join("").startsWith(expected.begins), words.join(""))
    if (expected.thinks !== undefined) assert.isTrue(thoughts.join("").startsWith(expected.thinks), thoughts.join(""))
    assert.strictEqual(
      parts.some((part) => part.thoughtSignature !== undefined),
      expected.isSigned ?? false
    )
    if (expected.parts !== undefined) {
      const calls = parts.filter((part) => part.functionCall !== undefined)
      const said = words.join("") === "" ? [] : [text(words.join(""))]
      assert.deepStrictEqual([...said, ...calls], expected.parts)
    }
    assert.strictEqual(result.success.at(-1)?.finishReason ?? "", expected.finishReason ?? "STOP")
    if (expected.usage !== undefined) {
      assert.deepStrictEqual(result.success.findLast((chunk) => chunk.usage !== undefined)?.usage, expected.usage)
    }
  })
})
