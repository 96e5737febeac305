import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { EntryId } from "../../../src/domain/conversation/Conversation.ts"
import type { ServedEvent } from "../../../src/domain/serve/EventBuffer.ts"
import { ResumedAnswer, resumption } from "../../../src/domain/serve/ResumedTurn.ts"
import { TokenCount } from "../../../src/domain/tokens/Tokens.ts"
import { runsOf } from "../../support/runs.ts"

type Event = ServedEvent["event"]
const content = (text: string): Event => ({ _tag: "Content", text })
const finished: Event = {
  _tag: "Finished",
  reason: "STOP",
  usage: null,
  answer: EntryId.make("e2"),
  tokens: TokenCount.make(1),
  limit: TokenCount.make(9)
}

/** What a client shows of the answers: `Retry` makes the one that runs void. */
const shown = (events: ReadonlyArray<Event>): ReadonlyArray<string> => {
  const answers = [""]
  for (const event of events) {
    if (event._tag === "Content") answers.push((answers.pop() ?? "") + event.text)
    if (event._tag === "Retry") answers.splice(-1, 1, "")
    if (event._tag === "Finished") answers.push("")
  }
  return answers.filter((text) => text !== "")
}
const Pieces = Schema.Array(Schema.Literals(["a", "b", "ab", "ba"])).check(Schema.isMaxLength(6))
const Rounds = Schema.Array(Pieces).check(Schema.isMaxLength(3))

describe("a turn that another process goes on with", () => {
  it("repeats nothing while the new answer begins like the old one", () => {
    const resumed = new ResumedAnswer("one two")
    const events = [content("one "), content("two three"), finished].flatMap((event) => resumed.next(event))
    assert.deepStrictEqual(events, [content(" three"), finished])
  })

  it("voids text that the new answer does not begin with", () => {
    const resumed = new ResumedAnswer("one two")
    const tags = [content("one "), content("three")].flatMap((event) => resumed.next(event)).map(({ _tag }) => _tag)
    assert.deepStrictEqual(tags, ["Retry", "Content"])
  })

  it.prop(
    "shows the new answer, whatever was shown of the old one",
    [Pieces, Pieces],
    ([old, made]) => {
      const told = old.map(content)
      const { open } = resumption(told, [])
      assert.strictEqual(open, old.join(""))
      const resumed = new ResumedAnswer(open)
      const events = [...told, ...[...made.map(content), finished].flatMap((event) => resumed.next(event))]
      assert.strictEqual(shown(events).join("|"), made.join(""))
    },
    { arbitrary: { runs: runsOf(500) } }
  )

  it.prop(
    "shows the content of the session, wherever the process ended",
    [Rounds, Pieces, Schema.Natural],
    ([rounds, last, cut]) => {
      const all = [...rounds.flatMap((round) => [...round.map(content), finished]), ...last.map(content)]
      const told = all.slice(0, cut % (all.length + 1))
      const committed = rounds.map((round) => round.join(""))
      const { events, open } = resumption(told, committed)
      const answers = told.filter(({ _tag }) => _tag === "Finished").length
      if (committed.length > answers) {
        assert.strictEqual(open, "")
        assert.strictEqual(shown([...told, ...events]).join(""), committed.join(""))
      } else {
        assert.deepStrictEqual(events, [])
      }
    },
    { arbitrary: { runs: runsOf(500) } }
  )
})
