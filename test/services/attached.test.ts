import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { text, user } from "../../src/domain/Content.ts"
import { entries, itemTokens, view } from "../../src/domain/Conversation.ts"
import { emptySession, step } from "../../src/domain/Session.ts"
import { decodeLine, encodeLine } from "../../src/domain/LogFormat.ts"
import { foreignNotes } from "../../src/domain/Projection.ts"
import * as Fake from "../../src/layers/FakeGemini.ts"
import { against, contentsOf, endingOf, said, taken } from "../support/sending.ts"

const always: Fake.Script = ({ method }) => (method === "countTokens" ? Fake.tokens(40_000) : said("seen"))

const file = "one line of a file\n".repeat(4_000)

describe("what goes with a message", () => {
  it.live("enters with the message and its answer in one line, as a program's words", () =>
    Effect.gen(function* () {
      const { chat, events, fake } = yield* against(always)
      yield* taken(chat.send("look at @a.txt", { attached: [{ parts: [text("a.txt:"), text("the file")] }] }))
      yield* taken(chat.send("and now?"))
      assert.deepStrictEqual(
        events.map(({ _tag }) => _tag),
        ["Answered", "Answered"]
      )
      const log = entries(yield* chat.conversation)
      assert.deepStrictEqual(
        log.map(({ author, id }) => [id, author]),
        [
          ["e1", undefined],
          ["e2", "program"],
          ["e3", undefined],
          ["e4", undefined],
          ["e5", undefined]
        ]
      )
      const [first, second] = yield* fake.requests
      const opening = [user(text("look at @a.txt")), user(text(foreignNotes.program), text("a.txt:"), text("the file"))]
      assert.deepStrictEqual(contentsOf(first ?? assert.fail()), opening)
      assert.deepStrictEqual(
        contentsOf(second ?? assert.fail()).slice(0, 2),
        opening,
        "what was sent stays what it was"
      )
      for (const event of events) {
        const line = decodeLine(JSON.parse(encodeLine(event)))
        assert.deepStrictEqual(line._tag === "Success" ? line.success?.event : line.failure, event)
      }
      assert.deepStrictEqual(entries(events.reduce(step, emptySession).conversation), log)
    })
  )

  it.live("is gone with a message that gets no answer", () =>
    Effect.gen(function* () {
      const { chat, events } = yield* against(() => Fake.failure(400, "no"))
      const { events: told } = yield* taken(chat.send("look", { attached: [{ parts: [text("the file")] }] }))
      assert.strictEqual(endingOf(told)?._tag, "Error")
      assert.deepStrictEqual(events, [])
      assert.lengthOf(entries(yield* chat.conversation), 0)
    })
  )

  it.live("is shown within its room, and recalled whole by its handle", () =>
    Effect.gen(function* () {
      const { chat, fake } = yield* against(always)
      yield* taken(chat.send("look", { attached: [{ parts: [text(file), text("small")], room: 1_000 }] }))
      const item = view(yield* chat.conversation)[1] ?? assert.fail("nothing was attached")
      assert.isAtMost(itemTokens(item), 1_000)
      const handle = item.entry.handles[0] ?? assert.fail("no handle")
      const sent = JSON.stringify(contentsOf((yield* fake.requests)[0] ?? assert.fail()))
      assert.include(sent, handle)
      assert.include(sent, "small", "what is small stays whole")
      assert.isBelow(sent.length, 10_000)
      assert.strictEqual((yield* chat.recall(handle)).text, file)
    })
  )

  it.live("counts: what does not fit is not sent, and the tokens say why", () =>
    Effect.gen(function* () {
      const { chat, events, fake } = yield* against(always, { window: 4_000 })
      const { events: told } = yield* taken(chat.send("look", { attached: [{ parts: [text(file)] }] }))
      const last = endingOf(told)
      assert.isTrue(last?._tag === "ContextWindowWillOverflow" && last.estimated > 10_000)
      assert.lengthOf(yield* fake.requests, 0)
      assert.deepStrictEqual(events, [])
    })
  )
})

describe("the environment message", () => {
  it.live("opens every request and is no part of the conversation", () =>
    Effect.gen(function* () {
      const { chat, events, fake } = yield* against(always, { environment: "It is Sunday." })
      const before = (yield* chat.usage).tokens
      yield* taken(chat.send("first"))
      yield* taken(chat.send("second"))
      for (const request of yield* fake.requests) {
        assert.deepStrictEqual(contentsOf(request)[0], user(text("It is Sunday.")))
      }
      assert.lengthOf(entries(yield* chat.conversation), 4)
      assert.notInclude(JSON.stringify(events), "Sunday")
      assert.isAbove(before, 0, "it is counted")
    })
  )

  it.live("counts towards the window", () =>
    Effect.gen(function* () {
      const { chat, fake } = yield* against(always, { environment: file, window: 4_000 })
      const { events } = yield* taken(chat.send("first"))
      assert.strictEqual(endingOf(events)?._tag, "ContextWindowWillOverflow")
      assert.lengthOf(yield* fake.requests, 0)
    })
  )
})
