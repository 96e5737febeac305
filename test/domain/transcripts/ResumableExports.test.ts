import { assert, describe, it } from "@effect/vitest"
import { outputText, type Part } from "../../../src/domain/content/Content.ts"
import type { Draft } from "../../../src/domain/conversation/Conversation.ts"
import { foreignNotes, missingResponse } from "../../../src/domain/conversation/Projection.ts"
import { isJson, type Json } from "../../../src/domain/text/JsonObject.ts"
import { runtimeMark } from "../../../src/domain/text/RuntimeMark.ts"
import { runSync } from "../../../src/domain/text/SlicedWork.ts"
import { estimateText, partTokens } from "../../../src/domain/tokens/Tokens.ts"
import type { Step } from "../../../src/domain/transcripts/Transcript.ts"
import { cut, draftsIn, readText, recordsOf, summary, transcriptOf, writtenText } from "../../support/transcripts.ts"

/** What other agents' programs need of a file to go on with our view; `npm run test:peers` asks the programs themselves. */

const message = (draft: Draft): Step => ({ _tag: "Message", draft })
const user = (...parts: ReadonlyArray<Part>): Draft => ({ content: { role: "user", parts } })
const model = (...parts: ReadonlyArray<Part>): Draft => ({ content: { role: "model", parts }, model: "claude-x" })
const call = (id: string): Part => ({ functionCall: { id, name: "Read", args: { path: id } } })
const result = (id: string): Part => ({ functionResponse: { id, name: "Read", response: { output: `in ${id}` } } })

const agents = ["claude", "codex", "gemini", "pi"] as const
type Agent = (typeof agents)[number]

/** A file's records as the agent has them: without what we say beside its own form. */
const native = (agent: Agent, steps: ReadonlyArray<Step>): string =>
  JSON.stringify(recordsOf(agent, steps).map(({ palimpsest: _ours, ...record }) => record))

const times = (text: string, part: string): number => text.split(part).length - 1

/** What reading a file gives, without ids and times. */
const readBack = (agent: Agent, steps: ReadonlyArray<Step>): ReadonlyArray<unknown> =>
  draftsIn(readText(writtenText(agent, transcriptOf(steps)).text)).map(({ author, content }) => ({ author, content }))

const talk: ReadonlyArray<Step> = [
  message(user({ text: "go" })),
  message(model({ text: "Looking." }, call("c1"))),
  message(user(result("c1"))),
  message(model({ text: "Done." })),
  message(user({ text: "thanks" })),
  message(model({ text: "You are welcome." }))
]

it.each<readonly [string, ReadonlyArray<Step>]>([
  ["a compaction", [...talk, cut([summary("s")], 1)]],
  ["an older compaction, and what came after it", [...talk, cut([summary("s")], 1), ...talk.slice(0, 4)]],
  ["two compactions", [...talk, cut([summary("s")], 1), ...talk, cut([summary("t")], 3)]]
])("Claude Code no two lines are of one message, so that none is joined with its repetition: %s", (_, steps) => {
  const ids = recordsOf("claude", steps).flatMap(({ message }) =>
    isJson(message) && message.role === "assistant" ? [message.id] : []
  )
  assert.isAbove(ids.length, 3)
  assert.strictEqual(new Set(ids).size, ids.length)
  assert.deepStrictEqual(recordsOf("claude", steps), recordsOf("claude", steps))
})

describe("a result behind later words of the model", () => {
  const steps = [
    ...talk.slice(0, 2),
    message(user({ text: "quick" })),
    ...talk.slice(3, 5),
    message(user(result("c1")))
  ]
  it.each([
    ["codex", true],
    ["claude", false],
    ["pi", false]
  ] as const)("is given to %s: %s", (agent, isGiven) =>
    assert.strictEqual(native(agent, steps).includes("in c1"), isGiven)
  )
})

describe("Codex", () => {
  it.each([
    [64, true],
    [65, false]
  ])("gets the id of a call of %i characters: %s", (length, isKept) => {
    const id = "c".repeat(length)
    const steps = [message(user({ text: "go" })), message(model(call(id))), message(user(result(id)))]
    const ids = recordsOf("codex", steps).flatMap(({ payload }) =>
      isJson(payload) && payload.call_id !== undefined ? [payload.call_id] : []
    )
    assert.strictEqual(ids[0] === id, isKept)
    assert.deepStrictEqual(ids, [ids[0], ids[0]])
    assert.deepStrictEqual(readBack("codex", steps)[1], { author: undefined, content: model(call(id)).content })
  })

  const usage = { prompt: 170_000, cached: 0, answer: 1, thoughts: 0 }
  const infos = (steps: ReadonlyArray<Step>): ReadonlyArray<Json> =>
    recordsOf("codex", steps).flatMap(({ payload }) =>
      isJson(payload) && payload.type === "token_count" && isJson(payload.info) ? [payload.info] : []
    )

  it("gets after a compaction the remaining tokens, not the earlier count", () => {
    const kept = talk.slice(3)
    const steps = [
      ...talk.slice(0, 5),
      message({ ...model({ text: "You are welcome." }), usage }),
      cut([summary("s")], 3)
    ]
    const left = [{ text: "s" }, ...kept.flatMap((step) => (step._tag === "Message" ? step.draft.content.parts : []))]
    const tokens = left.reduce((sum, part) => sum + runSync(partTokens(part)), 0)
    const [before, after, ...others] = infos(steps)
    assert.deepStrictEqual(others, [])
    assert.isTrue(isJson(before?.last_token_usage) && before.last_token_usage.total_tokens === 170_001)
    assert.deepStrictEqual(after?.last_token_usage, {
      input_tokens: 0,
      cached_input_tokens: 0,
      output_tokens: 0,
      reasoning_output_tokens: 0,
      total_tokens: tokens
    })
    assert.deepStrictEqual(after?.total_token_usage, before?.total_token_usage)
    assert.isAtLeast(tokens, estimateText("You are welcome."))
    const types = recordsOf("codex", steps).map(({ type }) => type)
    assert.strictEqual(types[types.indexOf("compacted") + 1], "event_msg")
  })

  it.each<readonly [string, Part, string | undefined, boolean]>([
    ["unsigned, of another model", { text: "hm", thought: true }, "claude-x", false],
    ["unsigned, of an unknown model", { text: "hm", thought: true }, undefined, false],
    ["signed by another", { text: "hm", thought: true, thoughtSignature: "EqQB" }, "gpt-5", false],
    ["signed by OpenAI", { text: "hm", thought: true, thoughtSignature: "gAAAAx" }, "gpt-5", true],
    ["unsigned, of a model of OpenAI's", { text: "hm", thought: true }, "gpt-5-codex", true]
  ])("a thought %s", (_, thought, name, isGiven) => {
    const { model: _model, ...draft } = model(thought, { text: "Yes." })
    const steps = [message(user({ text: "go" })), message(name === undefined ? draft : { ...draft, model: name })]
    assert.strictEqual(native("codex", steps).includes('"reasoning"'), isGiven)
    assert.strictEqual(native("codex", steps).includes('"hm"'), isGiven)
    const { unheld } = writtenText("codex", transcriptOf(steps))
    assert.deepStrictEqual(unheld, isGiven ? {} : { thoughts: 1 })
    assert.deepStrictEqual(readBack("codex", steps)[1], { author: undefined, content: draft.content })
  })
})

describe.each(agents)("%s", (agent) => {
  const ours = `${runtimeMark} The messages e1 to e4 left the window.`

  it("has no note before a snapshot that names its own author", () => {
    for (const steps of [
      [...talk, cut([summary(ours)], 3)],
      [message(summary(ours)), ...talk]
    ]) {
      assert.strictEqual(times(native(agent, steps), foreignNotes.summary), 0)
      assert.isAtLeast(times(native(agent, steps), ours), 1)
      assert.deepInclude(readBack(agent, steps), summary(ours))
    }
  })

  it("has one before any other text that is not the user's", () => {
    const steps = [message({ ...user({ text: "Mind the gap." }), author: "program" }), message(summary("s")), ...talk]
    const text = native(agent, steps)
    assert.deepStrictEqual([times(text, foreignNotes.program), times(text, foreignNotes.summary)], [1, 1])
    assert.deepInclude(readBack(agent, steps), summary("s"))
  })
})

describe.each(["claude", "gemini"] as const)("%s", (agent) => {
  const owed = outputText(missingResponse({ name: "Read" })) ?? ""

  it.each<readonly [string, ReadonlyArray<Step>, number]>([
    ["none", talk, 0],
    ["the only one of its message", [...talk, message(model(call("x"))), message(user({ text: "stop" }))], 1],
    ["one of two", [message(model(call("x"), call("y"))), message(user(result("y"))), ...talk], 1],
    ["before an answer of the model", [message(model(call("x"))), message(user({ text: "no" })), ...talk.slice(1)], 1],
    ["the last", [...talk, message(model(call("x")))], 1],
    [
      "the last before a compaction that parts it",
      [...talk, message(model(call("x"))), cut([summary("s")]), ...talk],
      0
    ],
    [
      "kept by a compaction",
      [message(model(call("x"))), message(user({ text: "a" })), ...talk, cut([summary("s")], 0)],
      2
    ]
  ])("answers calls that never got an answer, and reading leaves that out: %s", (_, steps, count) => {
    assert.strictEqual(times(native(agent, steps), owed), count)
    const said = steps.flatMap((step) => (step._tag === "Message" ? [step.draft] : step.insert))
    assert.deepStrictEqual(
      readBack(agent, steps),
      said.map(({ author, content }) => ({ author, content }))
    )
  })
})
