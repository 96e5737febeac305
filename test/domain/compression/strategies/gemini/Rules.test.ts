import { assert, describe, it } from "@effect/vitest"
import type { Plan } from "../../../../../src/domain/compression/Compression.ts"
import { modelAlias } from "../../../../../src/domain/compression/ModelPurpose.ts"
import { firstCall, secondCall } from "../../../../../src/domain/compression/strategies/gemini/Calls.ts"
import {
  acknowledgement,
  concluding,
  layoutOf
} from "../../../../../src/domain/compression/strategies/gemini/Conclusion.ts"
import {
  deciding,
  defaultPreserve,
  type GeminiDecision,
  type GeminiRequest,
  geminiThreshold,
  splitting,
  type Summarize
} from "../../../../../src/domain/compression/strategies/gemini/Decision.ts"
import { plan } from "../../../../../src/domain/compression/strategies/gemini/Plan.ts"
import {
  compressionInstruction,
  critiqueRequest,
  snapshotRequest
} from "../../../../../src/domain/compression/strategies/gemini/Prompts.ts"
import { estimate } from "../../../../../src/domain/compression/strategies/gemini/TokenEstimate.ts"
import {
  defaultToolBudget,
  maxCharsOf,
  outputOf,
  placeholder,
  type StoredOutput,
  type TruncateOptions,
  truncating
} from "../../../../../src/domain/compression/strategies/gemini/ToolOutputs.ts"
import { defaultPolicy, type Policy } from "../../../../../src/domain/compression/strategies/Policy.ts"
import { strategyDefaults } from "../../../../../src/domain/compression/strategies/Strategies.ts"
import {
  call,
  type Content,
  model,
  type Part,
  response,
  text,
  user
} from "../../../../../src/domain/content/Content.ts"
import { Handle } from "../../../../../src/domain/content/Handle.ts"
import { type Conversation, empty, entryId } from "../../../../../src/domain/conversation/Conversation.ts"
import { freshMemory, remember } from "../../../../../src/domain/conversation/FailureMemory.ts"
import { OutputForm } from "../../../../../src/domain/conversation/ToolOutputShortening.ts"
import * as Work from "../../../../../src/domain/text/SlicedWork.ts"
import { TokenCount } from "../../../../../src/domain/tokens/Tokens.ts"
import { conversationOf as ofEntries, entryOf } from "../../../../support/entries.ts"

/**
 * The rules of the strategy `gemini`, one test each: `gemini: <rule> (<source>)`. Where ours differs from the source, the title
 * says how. `npm run test:peers` compares all of them together with the original itself.
 */

const decide = (...given: Parameters<typeof deciding>) => Work.runSync(deciding(...given))
const conclude = (...given: Parameters<typeof concluding>) => Work.runSync(concluding(...given))
const splitPoint = (...given: Parameters<typeof splitting>) => Work.runSync(splitting(...given))

const handle = Handle.make("h_aaaaaaaaaa")
const whole = (output: string): StoredOutput => ({ handle, text: output })
const storedIn = (contents: ReadonlyArray<Content>) => (content: number, part: number) => {
  const answer = contents[content]?.parts[part]?.functionResponse
  return answer === undefined ? undefined : whole(outputOf(answer))
}
const truncateToBudget = (contents: ReadonlyArray<Content>, options: Partial<TruncateOptions> = {}) =>
  Work.runSync(truncating(contents, { stored: storedIn(contents), ...options }))
const partsOf = (contents: ReadonlyArray<Content>): ReadonlyArray<Part> => contents.flatMap(({ parts }) => parts)
const fill = (unit: string, length: number): string => unit.repeat(Math.ceil(length / unit.length)).slice(0, length)
const environment = user(text("This is the environment: Linux, in /work."))

/** Rates of Gemini CLI after March 2026: those of the version that the strategy is compared with. */
const laterRates = { ascii: 0.25, other: 1.5 }

const window = 1_048_576
const request = (contents: ReadonlyArray<Content>, change: Partial<GeminiRequest> = {}): GeminiRequest => ({
  contents,
  lastPromptTokens: 600_000,
  limit: window,
  forced: false,
  hasFailed: false,
  truncate: { stored: storedIn(contents) },
  ...change
})
const asked = (decision: GeminiDecision): Summarize => {
  if (decision._tag !== "Summarize") throw new Error(`the decision is ${decision._tag}`)
  return decision
}

const short = [user(text("a")), model(text("b")), user(text("c")), model(text("d"))]
const pairs = Array.from({ length: 20 }, (_, n) => [
  model(call("ls", { n }, `c${n}`)),
  user(response("ls", { output: "x".repeat(200) }, `c${n}`))
]).flat()
const onePrompt = [user(text("Do everything.")), ...pairs]

describe("what is compressed, and how", () => {
  it("gemini: compresses when the last prompt reaches the threshold, and whenever forced (Gemini CLI)", () => {
    assert.deepInclude(decide(request(short, { lastPromptTokens: 524_287 })), {
      _tag: "Noop",
      reason: "below threshold",
      hook: "auto",
      before: 524_287,
      after: 524_287
    })
    assert.deepInclude(decide(request(short, { lastPromptTokens: 524_288 })), { _tag: "Summarize", hook: "auto" })
    assert.deepInclude(decide(request(short, { lastPromptTokens: 1, forced: true })), { hook: "manual" })
  })

  it("gemini: an empty history calls no model and no hook (Gemini CLI)", () => {
    for (const forced of [true, false]) {
      assert.deepInclude(decide(request([], { forced })), { _tag: "Noop", before: 0, after: 0, hook: undefined })
    }
  })

  it("gemini: two calls, the second checks the first whatever it was (Gemini CLI)", () => {
    const decision = asked(decide(request(short)))
    assert.strictEqual(decision.split, 4)
    const [one, two] = [firstCall(decision, "p"), secondCall(decision, "p", "")]
    assert.deepStrictEqual([one.promptId, one.contents.length], ["p", 5])
    assert.deepStrictEqual([two.promptId, two.contents.length], ["p-verify", 6])
    assert.deepStrictEqual(two.contents.slice(4), [model(text("")), user(text(critiqueRequest))])
  })

  it("gemini: the checked answer counts, else the first, else it is an empty summary (Gemini CLI)", () => {
    const decision = asked(decide(request(short)))
    assert.strictEqual(conclude(decision, { summary: "", verified: "x" }).status, "COMPRESSED")
    assert.deepInclude(conclude(decision, { summary: " x ", verified: "y\n" }), { summary: "y" })
    assert.deepInclude(conclude(decision, { summary: " x ", verified: "\n" }), { summary: "x" })
    assert.deepStrictEqual(conclude(decision, { summary: "", verified: "" }), {
      status: "COMPRESSION_FAILED_EMPTY_SUMMARY",
      before: 600_000,
      after: 600_000
    })
  })

  it("gemini: a result larger than the last prompt is inflated, and changes nothing (Gemini CLI)", () => {
    const { before, ...decision } = asked(decide(request(short)))
    const after = estimate([text("s"), text(acknowledgement)])
    const answers = { summary: "s", verified: "" }
    assert.strictEqual(before, 600_000)
    assert.strictEqual(conclude({ ...decision, before: after }, answers).status, "COMPRESSED")
    assert.deepStrictEqual(conclude({ ...decision, before: after - 1 }, answers), {
      status: "COMPRESSION_FAILED_INFLATED_TOKEN_COUNT",
      before: after - 1,
      after,
      summary: "s"
    })
  })

  it("gemini: an inflated result is remembered as a failure unless forced, until a success (Gemini CLI)", () => {
    const after = (status: string, forced: boolean, failed: boolean) =>
      remember({ ...freshMemory, failed }, { status, forced, tokens: 1 }).failed
    assert.isTrue(after("COMPRESSION_FAILED_INFLATED_TOKEN_COUNT", false, false))
    assert.isFalse(after("COMPRESSION_FAILED_INFLATED_TOKEN_COUNT", true, false))
    assert.isFalse(after("COMPRESSED", false, true))
    for (const status of ["NOOP", "CONTENT_TRUNCATED", "COMPRESSION_FAILED_EMPTY_SUMMARY"]) {
      assert.isTrue(after(status, false, true))
      assert.isFalse(after(status, false, false))
    }
  })

  it("gemini: a compression that is forced ignores an earlier failure (Gemini CLI)", () => {
    assert.strictEqual(decide(request(short, { hasFailed: true, forced: true }))._tag, "Summarize")
    assert.strictEqual(decide(request(short, { hasFailed: true }))._tag, "Noop")
  })

  it("gemini: keeps the last 0.3 by JSON length, from the next message of the user on (Gemini CLI)", () => {
    assert.strictEqual(defaultPreserve, 0.3)
    const history = Array.from({ length: 10 }, (_, n) => [user(text(`${n}`)), model(text(`${n}`))]).flat()
    // Model messages are one character longer: 14 of 20 messages are a little less than 0.7 of the whole.
    assert.strictEqual(splitPoint(history, 1 - defaultPreserve), 14)
    const [, ...withResponse] = history.with(14, user(response("t", { output: "x" }), text("and a remark")))
    assert.strictEqual(splitPoint(withResponse, 0.7), 15)
  })

  it("gemini: with nothing to split after 0.7 keeps nothing, or the turn of a pending call (Gemini CLI)", () => {
    const long = [user(text("a")), model(text("b")), user(text("c")), model(text("d".repeat(999)))]
    assert.strictEqual(splitPoint(long, 0.7), 4)
    assert.strictEqual(splitPoint([...long.slice(0, 3), model(call("t", { long: "d".repeat(999) }))], 0.7), 2)
  })

  it("gemini: merges an earlier snapshot only if it is among what is summarised (Gemini CLI)", () => {
    const tail = user(text(`<state_snapshot>${"x".repeat(400)}`))
    const history = [user(text("y".repeat(2_000))), model(text("b")), tail, model(text("d"))]
    assert.deepInclude(asked(decide(request(history))), { split: 2, anchor: "create" })
    const first = [user(text(`<state_snapshot>${"x".repeat(2_000)}`)), ...short]
    assert.strictEqual(asked(decide(request(first))).anchor, "merge")
  })

  it("gemini: after a failure only shortens outputs (Gemini CLI; ours: reports it only when something got smaller)", () => {
    const tiny = request(short, { hasFailed: true })
    assert.strictEqual(estimate(partsOf(short)), 1)
    assert.deepInclude(decide(tiny), { _tag: "Noop", reason: "nothing shrank", before: 600_000, after: 600_000 })
  })

  it("gemini: the newest 50,000 tokens of outputs stay whole, older ones are shortened (Gemini CLI)", () => {
    assert.strictEqual(defaultToolBudget, 50_000)
    const outputs = ["a", "b", "c"].map((letter) =>
      user(response("Grep Tool/x", { output: letter.repeat(120_000) }, letter))
    )
    const { contents, nextNumber, outputs: saved } = truncateToBudget(outputs, { form: "head-tail-chars" })
    assert.deepStrictEqual(
      saved.map(({ content, number, text: all }) => [content, number, all[0], all.length]),
      [
        [1, 1, "b", 120_000],
        [0, 2, "a", 120_000]
      ]
    )
    assert.strictEqual(nextNumber, 3)
    assert.strictEqual(contents[2]?.parts[0], outputs[2]?.parts[0])
    const after = JSON.stringify(contents[0]?.parts[0]).length
    assert.isAbove(after, 40_000)
    assert.isBelow(after, 40_400)
  })

  it("gemini: a shortened output is its last 30 lines (seed)", () => {
    assert.strictEqual(defaultPolicy.outputForm, "last-lines")
    assert.strictEqual(strategyDefaults("gemini").outputForm, "last-lines")
    const lines = Array.from({ length: 9_000 }, (_, n) => `line ${n} of a long log`)
    const { contents } = truncateToBudget([user(response("ls", { output: lines.join("\n") }))])
    const [header, ...rest] = outputOf(contents[0]?.parts[0]?.functionResponse ?? {}).split("\n")
    assert.deepStrictEqual(rest, ["...", ...lines.slice(-30)])
    assert.include(header, `The last 30 of 9000 lines. The whole output: recall ${handle}`)
  })

  it("gemini: of one line the last 4,000 characters, of a wide line the first 1,000 (Gemini CLI)", () => {
    const one = placeholder("w".repeat(9_000), whole("w".repeat(9_000)))
    assert.include(one, "The last 4000 of 9000 characters of one line")
    assert.isTrue(one.endsWith(`\n${"w".repeat(4_000)}`))
    const wide = `${"v".repeat(1_001)}\n${"w".repeat(9_000)}`
    const shown = placeholder(wide, whole(wide)).split("\n").slice(2)
    assert.deepStrictEqual(
      shown,
      ["v", "w"].map((letter) => `${letter.repeat(1_000)}... [LINE WIDTH TRUNCATED]`)
    )
  })

  it("gemini: the form by characters shows the first fifth and the last four fifths (Gemini CLI)", () => {
    const output = `${"h".repeat(10)}${"m".repeat(250)}${"t".repeat(40)}`
    const shown = placeholder(output, whole(output), "head-tail-chars", 50)
    const [header = "", ...rest] = shown.split("\n")
    assert.include(header, `The first 10 and last 40 of 300 characters. The whole output: recall ${handle}`)
    assert.deepStrictEqual(rest, ["h".repeat(10), "", "... [250 characters omitted] ...", "", "t".repeat(40)])
  })

  it("gemini: the form of shortened outputs is a setting (seed; ours: also the first and last lines)", () => {
    const lines = Array.from({ length: 9_000 }, (_, n) => `line ${n} of a long log`)
    const contents = [user(response("ls", { output: lines.join("\n") }))]
    for (const [form, first] of [
      ["last-lines", "The last 30 of 9000 lines"],
      ["head-tail-chars", "The first 8000 and last 32000 of"],
      ["head-tail-lines", "The first 200 and last 800 of 9000 lines"]
    ] as const) {
      const made = truncateToBudget(contents, { form }).contents
      assert.include(outputOf(made[0]?.parts[0]?.functionResponse ?? {}), first)
      const step = planOf(
        planned(
          conversationOf([user(text("go")), model(call("ls", {})), ...contents]),
          { outputForm: form },
          false,
          true
        )
      ).steps[0]
      assert.deepInclude(step, { _tag: "Shorten", form })
    }
  })

  it("gemini: a shortened output names what recalls all of it (Gemini CLI; ours: a handle, no file)", () => {
    const outputs = ["read_file", "Grep Tool/x", "../../etc", "größe-1"].map((tool) =>
      user(response(tool, { output: fill("a line\n", 30_000) }))
    )
    const { contents, outputs: saved } = truncateToBudget(outputs, { budget: 0 })
    assert.strictEqual(saved.length, 4)
    for (const part of partsOf(contents)) {
      const [header = ""] = outputOf(part.functionResponse ?? {}).split("\n")
      assert.isTrue(header.endsWith(`. The whole output: recall ${handle}`))
      assert.notInclude(header, ".txt")
    }
    // Without a handle nothing could be recalled.
    assert.deepStrictEqual(truncateToBudget(outputs, { budget: 0, stored: () => undefined }).contents, outputs)
  })

  it("gemini: an output that was shortened before is shortened from the whole (ours)", () => {
    const all = Array.from({ length: 9_000 }, (_, n) => `line ${n} of a long log`).join("\n")
    for (const form of OutputForm.literals) {
      const once = placeholder(all, whole(all), form)
      const contents = [user(response("ls", { output: once }))]
      const again = truncateToBudget(contents, { budget: 0, form, stored: () => whole(all) })
      assert.deepStrictEqual(again.contents, contents)
      assert.strictEqual(again.outputs[0]?.text, all)
    }
  })

  it("gemini: never splits the turn of one prompt, even when forced (Gemini CLI)", () => {
    assert.strictEqual(splitPoint(onePrompt, 0.7), 0)
    assert.deepInclude(decide(request(onePrompt, { forced: true })), { _tag: "Noop", reason: "nothing to compress" })
  })

  it("gemini: splits before any message of the user (Gemini CLI; ours: never between a call and its late result)", () => {
    const contents = [
      user(text("Start the server.")),
      model(call("shell", { command: "serve" }, "late")),
      user(text("Is it up?")),
      model(text("Not yet.")),
      user(response("shell", { output: "x".repeat(2_000) }, "late")),
      model(text("It is up."))
    ]
    assert.strictEqual(splitPoint(contents, 0.05), 2)
    const policy: Policy = { ...defaultPolicy, strategy: "gemini", limit: TokenCount.make(10_000), preserve: 0.95 }
    const given = { forced: true, memory: freshMemory, lastPromptTokens: 9_000 }
    const decision = Work.runSync(plan(conversationOf(contents), policy, given))
    const range = decision._tag === "Go" && decision.plan.steps.find((step) => step._tag === "Summarize")
    assert.isTrue(range !== false && range?._tag === "Summarize" && range.to !== "e2" && range.to !== "e3")
  })

  it("gemini: summarises the environment message as history (Gemini CLI)", () => {
    const history = [environment, ...onePrompt]
    const decision = asked(decide(request(history, { environment })))
    assert.deepStrictEqual(decision.summarized, [environment])
    const conclusion = conclude(decision, { summary: "s", verified: "" })
    assert.strictEqual(conclusion.status, "COMPRESSED")
    assert.strictEqual(history.length, 42)
    assert.strictEqual("history" in conclusion && conclusion.history.length, 43)
  })

  const video = { inlineData: { mimeType: "video/mp4", data: "A".repeat(4_000) } }
  const estimates: ReadonlyArray<readonly [name: string, part: Part, seeds: number, later: number]> = [
    ["two Chinese characters", text("你好"), 2, 3],
    ["the same behind two letters", text("Hi你好"), 3, 3],
    ["an emoji", text("😀"), 2, 3],
    ["a video of 4,000 characters", video, 1_012, 1_012],
    ["a call", { functionCall: { name: "foo", args: {} } }, 10, 10]
  ]
  it("gemini: estimates a quarter token for an ASCII character, 1.3 for others (Gemini CLI)", () => {
    for (const [what, part, seeds, later] of estimates) {
      assert.strictEqual(estimate([part]), seeds, what)
      assert.strictEqual(estimate([part], laterRates), later, what)
    }
  })
})

describe("estimates, outputs, prompts", () => {
  const nested = (depth: number): Part =>
    depth === 0 ? text("xxxx") : { functionResponse: { name: "f", response: null, parts: [nested(depth - 1)] } }
  const costs: ReadonlyArray<readonly [name: string, parts: ReadonlyArray<Part>, tokens: number]> = [
    ["nothing", [], 0],
    ["one floor for all", [text("ab"), text("ab")], 1],
    ["100,000 characters by script", [text("好".repeat(100_000))], 130_000],
    ["longer texts by length", [text("好".repeat(100_001))], 25_000],
    ["a response that is a text by length", [response("name", "好".repeat(4))], 2],
    ["a response by its JSON", [response("name", { output: "x" })], 4],
    ["a response of nothing", [{ functionResponse: { name: "name" } }], 1],
    ["three levels in a response", [nested(3)], 1],
    ["the fourth level not, and each level rounded down", [nested(4)], 0],
    ["an image", [{ fileData: { mimeType: "image/webp", fileUri: "u" } }], 3_000],
    ["a PDF", [{ inlineData: { mimeType: "application/pdf", data: "x" } }], 25_800],
    ["text before media", [{ text: "abcd", inlineData: { mimeType: "image/png" } }], 1],
    ["an empty part", [{}], 0]
  ]
  it("gemini: estimates long texts and responses by length, media by kind, rounded down once (Gemini CLI)", () => {
    for (const [what, parts, tokens] of costs) {
      assert.strictEqual(estimate(parts), tokens, what)
    }
  })

  it("gemini: refuses to keep everything or nothing (Gemini CLI; ours: as an outcome, not an exception)", () => {
    for (const fraction of [0, 1, -0.1, 1.5]) {
      assert.deepInclude(splitPoint(short, fraction), { _tag: "SplitRefused", fraction })
    }
  })

  it("a message with words beside a response is no place to split, and words beside a call end no history", () => {
    const answer = user(text("Here:"), response("read_file", { output: "a" }, "c1"))
    const open = model(text("I look."), call("read_file", {}, "c2"))
    const history = [user(text("go")), model(call("read_file", {}, "c1")), answer, open]
    assert.strictEqual(splitPoint(history, 0.5), 0)
    assert.strictEqual(outputOf({ name: "f", response: { a: 1 } }), '{\n  "a": 1\n}')
  })

  it("the responses of one message keep their order, and the last ASCII character is one", () => {
    const outputs = ["a", "b"].map((output) => response("read_file", { output }, output))
    assert.deepStrictEqual(truncateToBudget([user(...outputs)]).contents, [user(...outputs)])
    assert.strictEqual(estimate([text("\u007f".repeat(4))]), 1)
  })

  it("gemini: an empty history has nothing to split (Gemini CLI)", () => {
    assert.strictEqual(splitPoint([], 0.7), 0)
  })

  it("gemini: the threshold is the setting, else the experiment, else 0.5; 0 counts as unset (Gemini CLI)", () => {
    assert.deepStrictEqual(
      [
        geminiThreshold(),
        geminiThreshold(0),
        geminiThreshold(0, 0),
        geminiThreshold(0.2, 0.7),
        geminiThreshold(0, 0.7)
      ],
      [0.5, 0.5, 0.5, 0.2, 0.7]
    )
  })

  it("gemini: a placeholder by characters takes at most 40,000 and four for each token left (Gemini CLI; ours: never below 0)", () => {
    assert.deepStrictEqual([maxCharsOf(window, 0), maxCharsOf(100, 90), maxCharsOf(100, 110)], [40_000, 40, 0])
  })

  it("gemini: smaller older outputs still fit after one that exceeds the budget (Gemini CLI)", () => {
    const outputs = [100, 6_000, 100].map((tokens) => user(response("t", { output: "x".repeat(tokens * 4) })))
    const saved = (budget: number) =>
      truncateToBudget(outputs, { budget, form: "head-tail-chars", maxChars: 0 }).outputs.map((one) => one.content)
    assert.deepStrictEqual(saved(260), [1])
    // What stands for the large one counts too.
    assert.deepStrictEqual(saved(201), [1, 0])
  })

  it("gemini: an output that cannot be saved stays, and counts in full (Gemini CLI)", () => {
    const outputs = ["a", "b", "c"].map((letter) => user(response("t", { output: letter.repeat(400) })))
    const {
      contents,
      nextNumber,
      outputs: saved
    } = truncateToBudget(outputs, {
      budget: 90,
      form: "head-tail-chars",
      maxChars: 4,
      failedSaves: new Set([1])
    })
    assert.deepStrictEqual(
      saved.map(({ content, number, saved: done }) => [content, number, done]),
      [
        [2, 1, false],
        [1, 2, true],
        [0, 3, true]
      ]
    )
    assert.deepStrictEqual(contents[2], outputs[2])
    assert.strictEqual(nextNumber, 4)
  })

  it("gemini: a shortened response keeps its keys beside the output, and its media (Gemini CLI)", () => {
    const before: Part = {
      functionResponse: {
        id: "1",
        name: "t",
        kept: 1,
        parts: [text("p")],
        response: { output: "x".repeat(99), gone: 1 }
      },
      gone: 1
    }
    const [content] = truncateToBudget([user(before)], { budget: 0, form: "head-tail-chars", maxChars: 99 }).contents
    assert.deepStrictEqual(content?.parts, [
      { functionResponse: { id: "1", name: "t", kept: 1, parts: [text("p")], response: { output: "x".repeat(99) } } }
    ])
  })

  const wholes = [
    "",
    "one",
    "a\nb",
    fill("line\n", 2_000),
    "w".repeat(4_001),
    `${fill("😀", 2_001)}\n${fill("😀", 1_001)}`,
    fill("😀", 4_001)
  ]
  it("gemini: no placeholder shows an end of 0 characters, or is longer than what it replaces (ours)", () => {
    for (const maxChars of [0, 1, 4, 5, 40_000]) {
      for (const output of wholes) {
        for (const form of OutputForm.literals) {
          const shown = placeholder(output, whole(output), form, maxChars)
          assert.isAtMost(shown.length, output.length)
          assert.notMatch(shown, /(first|last) 0 /)
        }
      }
    }
  })

  it("gemini: no placeholder splits a character (ours)", () => {
    for (const max of [5, 6, 7, 8, 9]) {
      assert.isTrue(placeholder("😀".repeat(600), whole("😀".repeat(600)), "head-tail-chars", max).isWellFormed())
    }
  })

  it("gemini: summarises with a model of the conversation's family (Gemini CLI)", () => {
    const table: ReadonlyArray<readonly [model: string, alias: string]> = [
      ["gemini-3-pro-preview", "chat-compression-3-pro"],
      ["gemini-3.1-pro-preview", "chat-compression-3-pro"],
      ["gemini-3-flash-preview", "chat-compression-3-flash"],
      ["gemini-2.5-pro", "chat-compression-2.5-pro"],
      ["gemini-2.5-flash", "chat-compression-2.5-flash"],
      ["gemini-2.5-flash-lite", "chat-compression-2.5-flash-lite"],
      ["gemma-4-31b-it", "chat-compression-default"],
      ["toString", "chat-compression-default"]
    ]
    assert.deepStrictEqual(
      table.map(([name]) => modelAlias(name).alias),
      table.map(([, alias]) => alias)
    )
    assert.strictEqual(modelAlias("other").model, "gemini-3-pro-preview")
  })

  it("gemini: a scratchpad, then seven sections in one order (Gemini CLI; ours: the instruction is in our words)", () => {
    const found = [...compressionInstruction.matchAll(/^ {2}<(\w+)>$/gm)].map(([, name]) => name)
    assert.deepStrictEqual(found, [
      "overall_goal",
      "active_constraints",
      "key_knowledge",
      "artifact_trail",
      "file_system_state",
      "recent_actions",
      "task_state"
    ])
    assert.isBelow(compressionInstruction.indexOf("<scratchpad>"), compressionInstruction.indexOf("<state_snapshot>"))
  })

  it("gemini: the last message asks for a first snapshot, or for one that takes in the earlier one, and the second call for what is missing (Gemini CLI; ours: in our words)", () => {
    assert.notStrictEqual(snapshotRequest("create"), snapshotRequest("merge"))
    assert.match(critiqueRequest, /missing.*technical details, file paths, results of tools.*repeat the same snapshot/s)
  })

  it("gemini: the summary in the user's role, the acknowledgement, the kept messages (Gemini CLI)", () => {
    const decision = asked(decide(request([user(text("y".repeat(2_000))), model(text("b")), user(text("c"))])))
    assert.deepStrictEqual(layoutOf(decision, "s"), [
      user(text("s")),
      model(text("Got it. Thanks for the additional context!")),
      user(text("c"))
    ])
    assert.strictEqual(acknowledgement, "Got it. Thanks for the additional context!")
  })

  it("gemini: a failed count ends as a counting error (Gemini CLI; ours: instead of an estimate)", () => {
    const decision = asked(decide(request(short)))
    assert.strictEqual(
      conclude(decision, { summary: "s", verified: "" }, "failed").status,
      "COMPRESSION_FAILED_TOKEN_COUNT_ERROR"
    )
  })
})

// --- As a plan ---

const conversationOf = (contents: ReadonlyArray<Content>, opening?: Content) =>
  ofEntries([
    ...(opening === undefined ? [] : [entryOf(1, opening, { author: "environment" })]),
    ...contents.map((content, at) => entryOf(at + (opening === undefined ? 1 : 2), content))
  ])

const policy: Policy = { ...defaultPolicy, strategy: "gemini", outputForm: "head-tail-chars" }
const planned = (conversation: Conversation, change: Partial<Policy> = {}, forced = true, failed = false) =>
  Work.runSync(
    plan(
      conversation,
      { ...policy, ...change },
      { forced, memory: { ...freshMemory, failed }, lastPromptTokens: 600_000 }
    )
  )
const planOf = (decision: ReturnType<typeof planned>): Plan => {
  if (decision._tag !== "Go") throw new Error(decision.reason)
  return decision.plan
}

describe("the decision as a plan", () => {
  const big = (letter: string) => user(response("cat", { output: letter.repeat(120_000) }, letter))
  const history = [
    user(text("first")),
    model(call("cat", {}, "a")),
    big("a"),
    model(call("cat", {}, "b")),
    big("b"),
    model(text("seen")),
    model(text("")),
    user(text("second")),
    model(call("cat", {}, "c")),
    big("c"),
    model(text("done")),
    user(text("third"))
  ]

  it("gemini: messages that stay are shortened too (Gemini CLI)", () => {
    // The tail holds three outputs, the budget one.
    const tail = [user(text("x".repeat(600_000))), ...history.filter(({ role }) => role === "user")]
    const made = planOf(planned(conversationOf(tail)))
    assert.deepStrictEqual(
      made.steps.map((step) => step._tag),
      ["Shorten", "Shorten", "Summarize", "Layout"]
    )
    assert.deepInclude(made.steps[0], {
      entry: entryId(3),
      part: 0,
      form: "head-tail-chars",
      tokensBefore: TokenCount.make(30_004)
    })
    assert.deepInclude(made.steps[2], { from: entryId(1), to: entryId(1), prompt: "create", verify: true })
    assert.deepInclude(made.steps[3], { split: 1, kept: [2, 3, 4, 5, 6, 7].map(entryId), acknowledge: true })
    assert.deepInclude(made, { strategy: "gemini", before: TokenCount.make(600_000), rung: 0 })
    assert.isBelow(made.after, 60_000)
  })

  it("gemini: invalid messages are left out, and leave with their neighbours (Gemini CLI)", () => {
    const contents = [...history.slice(0, -1), model(text("")), user(text("third"))]
    const made = planOf(planned(conversationOf(contents, environment)))
    const summarize = made.steps.find((step) => step._tag === "Summarize")
    const layout = made.steps.find((step) => step._tag === "Layout")
    assert.deepInclude(summarize, { from: entryId(1), to: entryId(13) })
    assert.deepInclude(layout, { split: 9, kept: [entryId(14)] })
  })

  it("gemini: after a failure no model is asked (Gemini CLI)", () => {
    const made = planOf(planned(conversationOf(history), {}, false, true))
    assert.deepStrictEqual(
      made.steps.map((step) => (step._tag === "Shorten" ? step.entry : step._tag)),
      [entryId(3), entryId(5)]
    )
  })

  it("gemini: nothing changes without history, below the threshold, or without a split (Gemini CLI)", () => {
    const reasons = [
      planned(empty),
      planned(conversationOf(short), {}, false, true),
      planned(conversationOf(short), { limit: TokenCount.make(1_300_000) }, false),
      planned(conversationOf(onePrompt)),
      planned(conversationOf(short), { preserve: 0 })
    ].map((decision) => (decision._tag === "Skip" ? decision.reason : "go"))
    assert.deepStrictEqual(reasons, [
      "empty",
      "nothing shrank",
      "below threshold",
      "nothing to compress",
      "nothing to compress"
    ])
  })

  it("gemini: summarises the original messages when they fit the window, else the shortened ones (Gemini CLI)", () => {
    const steps = (limit: number) =>
      planOf(planned(conversationOf(history), { limit: TokenCount.make(limit) })).steps.map((step) =>
        step._tag === "Shorten" ? step.entry : step._tag
      )
    assert.deepStrictEqual(steps(1_048_576), ["Summarize", "Layout"])
    assert.deepStrictEqual(steps(80_000), [entryId(3), entryId(5), "Summarize", "Layout"])
  })
})
