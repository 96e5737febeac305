import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { plainText, model, text, user } from "../../../src/domain/content/Content.ts"
import { entries } from "../../../src/domain/conversation/Conversation.ts"
import * as Offline from "../../../src/layers/assembly/Offline.ts"
import * as ScriptedModel from "../../../src/layers/testing/ScriptedModel.ts"
import { Chats } from "../../../src/services/chat/Chats.ts"
import { cleanTitle, entitle, excerptOf } from "../../../src/services/chat/Titles.ts"
import { ModelError, NetworkError } from "../../../src/services/model/Model.ts"
import { SessionStore } from "../../../src/services/session/SessionStore.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const talk = Array.from({ length: 40 }, (_, n) => ({
  content: n % 2 === 0 ? user(text(`question ${n} ${"?".repeat(600)}`)) : model(text(`answer ${n}`))
}))

const filled = Effect.gen(function* () {
  const chat = yield* Chats.use((chats) => chats.open("one"))
  yield* chat.append(talk)
  return chat
})

const titles = Effect.map(
  SessionStore.use((store) => store.summaries),
  (found) => found.map(({ firstPrompt, title }) => title ?? `(${firstPrompt?.slice(0, 10)})`)
)

const withModel = (...answers: ReadonlyArray<ScriptedModel.Step>) =>
  Offline.layerWithModel(ScriptedModel.layer(answers))

describe("the title of a session", () => {
  it.effect(
    "is requested with the first and the last ten messages, 500 characters of each",
    Offline.layer,
    function* () {
      const chat = yield* filled
      const content = excerptOf(entries(yield* chat.conversation))
      const shown: ReadonlyArray<{ role: string; text: string }> = JSON.parse(content ? plainText(content) : "[]")
      assert.deepStrictEqual(
        shown.map((one) => `${one.role} ${one.text.slice(0, 11).trim()}`),
        [...talk.slice(0, 10), ...talk.slice(-10)].map(
          ({ content: said }) => `${said.role} ${plainText(said).slice(0, 11).trim()}`
        )
      )
      assert.isTrue(shown.every((one) => one.text.length <= 500))
      assert.strictEqual(excerptOf([]), undefined)
    }
  )

  it.effect(
    "is the small model's answer, on one line",
    withModel(`**"Fixing the build."**\nMore words.`),
    function* () {
      yield* entitle("one", yield* filled)
      assert.deepStrictEqual(yield* titles, ["Fixing the build"])
      const [call] = yield* ScriptedModel.Script.use(({ calls }) => calls)
      assert.strictEqual(call?.request.model, "gemini-2.5-flash-lite")
    }
  )

  for (const [rule, step] of [
    ["the model fails", new ModelError({ reason: new NetworkError({ detail: "none" }) })],
    ["the model's answer is blank", " \n "]
  ] as const) {
    it.effect(`is the first prompt where ${rule}`, withModel(step), function* () {
      yield* entitle("one", yield* filled)
      assert.deepStrictEqual(yield* titles, ["(question 0)"])
    })
  }

  it.effect(
    "is the first prompt after five seconds, with the request aborted",
    withModel(ScriptedModel.hang),
    function* () {
      const fiber = yield* Effect.forkChild(entitle("one", yield* filled), { startImmediately: true })
      yield* TestClock.adjust("5 seconds")
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(yield* titles, ["(question 0)"])
      assert.strictEqual(yield* ScriptedModel.Script.use(({ interrupted }) => interrupted), 1)
    }
  )

  it.effect("is not requested for an empty conversation", withModel(), function* () {
    const chat = yield* Chats.use((chats) => chats.open("empty"))
    yield* entitle("empty", chat)
    assert.deepStrictEqual(yield* ScriptedModel.Script.use(({ calls }) => calls), [])
  })

  it.each([
    ["one line of several", "\n\nFirst line\nSecond line", "First line"],
    ["without quotation marks and a full stop", `"A talk about trees."`, "A talk about trees"],
    ["without marks of a heading", "## Title: A talk about trees", "A talk about trees"],
    ["without tags", "<title>A talk about trees</title>", "A talk about trees"],
    ["without what a terminal acts on", "A \u001b[31mred\u001b[0m talk\u0007", "A red talk\\u{7}"],
    ["in any script", "「木についての話」", "「木についての話」"],
    [
      "at most 60 characters, whole words",
      `${"seven77 ".repeat(10)}`,
      "seven77 seven77 seven77 seven77 seven77 seven77 seven77"
    ],
    ["at most 60 characters, also of one word", "x".repeat(80), "x".repeat(60)],
    ["nothing where there are only marks", `"**"`, undefined]
  ] as const)("is cleaned: %s", (_, answer, title) => assert.strictEqual(cleanTitle(answer), title))
})
