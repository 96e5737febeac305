import { Duration, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { askUser } from "../../../../src/services/tools/builtin/AskUser.ts"
import { UserPrompt, type UserQuestion } from "../../../../src/services/tools/UserPrompt.ts"
import { callTool, context, failureOf } from "../../../support/callTool.ts"
import { assert, describe, it } from "../../../support/vitest.ts"

/** Somebody who answers with the question's own words, an hour later. */
const slow = (asked: Array<UserQuestion>) =>
  Layer.succeed(UserPrompt, {
    ask: (question) =>
      Effect.sync(() => {
        asked.push(question)
        return `about ${question.text}`
      }).pipe(Effect.delay("1 hour"))
  })

const one = { questions: [{ question: "Which colour?" }] }

describe("ask_user", () => {
  it.effect("asks the questions in order", function* () {
    const asked: Array<UserQuestion> = []
    const tool = yield* Effect.provide(askUser, slow(asked))
    const fiber = yield* Effect.forkChild(
      callTool(tool, {
        questions: [
          {
            question: "Which colour?",
            header: "Colour",
            type: "choice",
            options: [{ label: "Red", description: "Like fire" }, { label: "Blue" }],
            multiSelect: true
          },
          { question: "Sure?", type: "yesno", multiSelect: true },
          { question: "Why?", type: "text", options: [{ label: "no matter" }] }
        ]
      }),
      { startImmediately: true }
    )
    yield* TestClock.adjust("1 hour")
    assert.strictEqual(asked.length, 1)
    yield* TestClock.adjust("2 hours")
    const { question, result, title } = yield* Fiber.join(fiber)
    assert.deepStrictEqual(result.value, {
      answers: [
        { question: "Which colour?", answer: "about Which colour?" },
        { question: "Sure?", answer: "about Sure?" },
        { question: "Why?", answer: "about Why?" }
      ]
    })
    assert.deepStrictEqual(asked, [
      {
        text: "Which colour?",
        header: "Colour",
        choices: [
          { label: "Red", description: "Like fire" },
          { label: "Blue", description: undefined }
        ],
        several: true
      },
      {
        text: "Sure?",
        header: undefined,
        choices: [
          { label: "Yes", description: undefined },
          { label: "No", description: undefined }
        ],
        several: false
      },
      { text: "Why?", header: undefined, choices: [], several: false }
    ])
    assert.strictEqual(question, undefined)
    assert.strictEqual(title, "ask_user Which colour?")
    assert.isTrue(tool.isNeverMasked)
    assert.isFalse(Duration.isFinite(tool.timeout))
  })

  it.effect("counts the time as waiting for the user", function* () {
    let waits = 0
    const tool = yield* Effect.provide(askUser, slow([]))
    const { run } = yield* tool.call(one, {
      ...context,
      waiting: (work) =>
        Effect.andThen(
          Effect.sync(() => void (waits += 1)),
          work
        )
    })
    const fiber = yield* Effect.forkChild(run, { startImmediately: true })
    yield* TestClock.adjust("1 hour")
    const { display } = yield* Fiber.join(fiber)
    assert.strictEqual(waits, 1)
    // The title of the call has the question.
    assert.deepStrictEqual(display, { _tag: "Text", text: "about Which colour?" })
  })

  it.effect("serializes two concurrent calls", function* () {
    const asked: Array<UserQuestion> = []
    const tool = yield* Effect.provide(askUser, slow(asked))
    const fibers = yield* Effect.forEach([1, 2], () =>
      Effect.forkChild(callTool(tool, one), { startImmediately: true })
    )
    yield* TestClock.adjust("1 hour")
    assert.strictEqual(asked.length, 1)
    yield* TestClock.adjust("1 hour")
    yield* Fiber.joinAll(fibers)
    assert.strictEqual(asked.length, 2)
  })

  it.effect("informs the model when no terminal is attached", function* () {
    const tool = yield* Effect.provide(askUser, UserPrompt.layerUnavailable)
    assert.match((yield* failureOf(tool, one)) ?? "", /^nobody_there: no user is available to answer/)
  })

  it.effect.each([
    ["no question", [], /give at least one/],
    ["five questions", Array.from({ length: 5 }, () => ({ question: "?" })), /at most 4/],
    ["an empty question", [{ question: "a" }, { question: " " }], /question 2 is empty/],
    ["a choice without options", [{ question: "a", type: "choice" }], /without options; give at least two/],
    ["a question that is no object", ["a"], /questions\.0/]
  ] as const)("rejects %s", function* ([, questions, expected]) {
    const tool = yield* Effect.provide(askUser, UserPrompt.layerUnavailable)
    const failure = (yield* failureOf(tool, { questions })) ?? "no failure"
    assert.match(failure, /^invalid_tool_params: /)
    assert.match(failure, expected)
  })
})
