import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Prompt from "effect/ai/Prompt"
import { isUnchanged, legalPrompt, noResult, repaired } from "../../../src/domain/effect-ai/PromptRepair.ts"
import { thousand } from "../../support/generate.ts"
import {
  answers,
  brokenTalks,
  calls,
  illegalPrompt,
  result,
  results,
  says,
  talks,
  turnsOf
} from "../../support/prompts.ts"
import { runsOf } from "../../support/runs.ts"

const sent = legalPrompt
const missing = (id: string) => result(id, { error: noResult }, true)

const asks = (id: string, approval: string) =>
  Prompt.assistantMessage({
    content: [...calls(id).content, Prompt.toolApprovalRequestPart({ approvalId: approval, toolCallId: id })]
  })
const requests = (id: string, approval: string) =>
  Prompt.assistantMessage({ content: [Prompt.toolApprovalRequestPart({ approvalId: approval, toolCallId: id })] })
const decides = (approval: string) =>
  Prompt.toolMessage({ content: [Prompt.toolApprovalResponsePart({ approvalId: approval, approved: true })] })
const system = Prompt.systemMessage({ content: "Be brief." })

describe("a valid prompt", () => {
  const cases: ReadonlyArray<readonly [string, ReadonlyArray<Prompt.Message>]> = [
    ["nothing", []],
    ["no calls", [system, says("a"), answers("b"), says("c")]],
    ["answered calls", [says("a"), calls("1", "2"), results(result("2", ""), result("1", "")), answers("b")]],
    ["answers in several messages", [calls("1", "2"), results(result("1", "")), results(result("2", "")), says("b")]],
    ["a system message before the answer", [calls("1"), system, results(result("1", ""))]],
    ["the same id in two turns", [calls("1"), results(result("1", "")), calls("1"), results(result("1", ""))]],
    ["the same id twice in a turn", [calls("1", "1"), results(result("1", "a"), result("1", "b"))]],
    ["an empty message in between", [calls("1"), Prompt.userMessage({ content: [] }), results(result("1", ""))]],
    ["a decision that is not carried out yet", [says("a"), asks("1", "x"), decides("x")]],
    ["a request in a message of its own", [calls("1"), requests("1", "x"), decides("x")]],
    ["effect/ai's own order", [asks("1", "x"), decides("x"), answers("b"), results(result("1", ""))]]
  ]
  it.each(cases)("is unchanged: %s", (_, messages) => {
    assert.strictEqual(sent(messages), messages)
  })

  it.effect.prop(
    "is unchanged after any history",
    [talks],
    ([talk]) =>
      Effect.sync(() => {
        const messages = turnsOf(talk).flat()
        assert.strictEqual(sent(messages), messages)
      }),
    { arbitrary: { ...thousand("legal"), runs: runsOf(1_000, 60) } }
  )
})

describe("an invalid prompt", () => {
  const cases: ReadonlyArray<
    readonly [string, ReadonlyArray<Prompt.Message>, expected: ReadonlyArray<Prompt.Message>]
  > = [
    [
      "a call that nothing answered",
      [says("a"), calls("1"), says("b")],
      [says("a"), calls("1"), results(missing("1")), says("b")]
    ],
    ["a call at the end", [says("a"), calls("1")], [says("a"), calls("1"), results(missing("1"))]],
    [
      "half of the calls",
      [calls("1", "2"), results(result("2", "x")), answers("b")],
      [calls("1", "2"), results(missing("1")), results(result("2", "x")), answers("b")]
    ],
    [
      "an answer that came late",
      [calls("1"), says("b"), results(result("1", "x")), answers("c")],
      [calls("1"), results(result("1", "x")), says("b"), answers("c")]
    ],
    [
      "an answer that came late, among others",
      [calls("1"), says("b"), calls("2"), results(result("1", "x"), result("2", "y"))],
      [calls("1"), results(result("1", "x")), says("b"), calls("2"), results(result("2", "y"))]
    ],
    [
      "a request that nobody decided on",
      [asks("1", "x"), says("never mind")],
      [asks("1", "x"), results(missing("1")), says("never mind")]
    ],
    [
      "what was decided and then done, after the user went on",
      [asks("1", "x"), decides("x"), says("b"), answers("c"), results(result("1", "done"))],
      [asks("1", "x"), results(result("1", "done")), decides("x"), says("b"), answers("c")]
    ],
    [
      "a call answered twice",
      [calls("1"), results(result("1", "x")), results(result("1", "y"), result("1", "z")), says("b")],
      [calls("1"), results(result("1", "x")), says("b")]
    ],
    [
      "a call answered twice, the second time too late",
      [calls("1"), results(result("1", "x")), says("b"), results(result("1", "y")), says("c")],
      [calls("1"), results(result("1", "x")), says("b"), says("c")]
    ],
    [
      "the same id, answered once",
      [calls("1"), says("b"), calls("1"), results(result("1", "x"))],
      [calls("1"), results(missing("1")), says("b"), calls("1"), results(result("1", "x"))]
    ]
  ]
  it.each(cases)("is repaired: %s", (_, messages, expected) => {
    assert.isFalse(isUnchanged(repaired(messages), messages))
    assert.deepStrictEqual(sent(messages), expected)
  })

  const fates = ["in time", "late", "never"] as const
  it.each(fates.flatMap((one) => fates.map((other) => [one, other] as const)))(
    "has one answer to each of two calls, answered %s and %s",
    (...answered) => {
      const of = (fate: (typeof fates)[number]) =>
        answered.flatMap((own, at) => (own === fate ? [results(result(`${at}`, `of ${at}`))] : []))
      const after = sent([calls("0", "1"), ...of("in time"), says("b"), ...of("late"), answers("c")])
      assert.isUndefined(illegalPrompt(after))
      const found = after.flatMap((message) => (message.role === "tool" ? [...message.content] : []))
      assert.sameDeepMembers(
        found,
        answered.map((fate, at) => (fate === "never" ? missing(`${at}`) : result(`${at}`, `of ${at}`)))
      )
    }
  )

  it("keeps a result without a call, which the provider may know", () => {
    const messages = [results(result("elsewhere", "x")), says("a")]
    assert.deepStrictEqual(sent(messages), messages)
  })

  it("leaves a decided call to effect/ai, even behind the user", () => {
    const messages = [asks("1", "x"), says("b"), decides("x")]
    assert.deepStrictEqual(sent(messages), messages)
  })

  it.effect.prop(
    "becomes valid after any history, and repairing again changes nothing",
    [brokenTalks],
    ([talk]) =>
      Effect.sync(() => {
        for (const messages of prompts(turnsOf(talk))) {
          const after = sent(messages)
          assert.isUndefined(illegalPrompt(after))
          assert.strictEqual(sent(after), after)
          // Nothing that was said is lost, and every result stays.
          const parts = (all: ReadonlyArray<Prompt.Message>) => all.flatMap(({ content }) => [...content])
          const kept = new Set(parts(after))
          assert.isTrue(parts(messages).every((part) => kept.has(part)))
        }
      }),
    { arbitrary: { ...thousand("broken"), runs: runsOf(1_000, 60) } }
  )
})

/** The prompts that grow, turn by turn. */
const prompts = (turns: ReadonlyArray<ReadonlyArray<Prompt.Message>>): ReadonlyArray<ReadonlyArray<Prompt.Message>> =>
  turns.map((_, index) => turns.slice(0, index + 1).flat())
