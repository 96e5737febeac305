import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { text } from "../../../src/domain/content/Content.ts"
import { entryId } from "../../../src/domain/conversation/Conversation.ts"
import { type OwnQuestion, questionsOf } from "../../../src/domain/evaluation/OwnQuestions.ts"
import { parseRating, type Rating, ratingLabel, ratingOf } from "../../../src/domain/session/Rating.ts"
import type { SessionEvent } from "../../../src/domain/session/Session.ts"
import { appended, compressedBy, entry, sessionOf } from "../../../src/layers/testing/SessionHistories.ts"
import { inspect } from "../../../src/services/evaluation/Inspect.ts"

describe("a rating", () => {
  it.each<readonly [words: string, rating: Rating | undefined]>([
    ["good", { verdict: "good", why: "" }],
    ["BAD it lost the port", { verdict: "bad", why: "it lost the port" }],
    ["bad: it lost the port", { verdict: "bad", why: "it lost the port" }],
    ["badly", undefined],
    ["", undefined]
  ])("is read from %j", (words, rating) => {
    assert.deepStrictEqual(parseRating(words), rating)
    if (rating !== undefined) assert.deepStrictEqual(ratingOf(ratingLabel(rating)), rating)
  })

  it("is no other label", () => assert.isUndefined(ratingOf("good")))
})

describe("the rating of a compression", () => {
  const labelled = (sequence: number, label: string | null): SessionEvent => ({
    _tag: "Labelled",
    at: 2,
    entry: entryId(sequence),
    label
  })
  const snapshot = { ...entry(3, [text("snapshot")]), author: "summary" as const }
  const rated = (...labels: ReadonlyArray<SessionEvent>) => {
    const events = [
      appended(1, text("a")),
      appended(2, text("b")),
      compressedBy({ drop: { from: entryId(1), to: entryId(1) }, insert: [snapshot], shorten: [] }),
      ...labels
    ]
    return Effect.runSync(inspect(sessionOf(events).conversation, { events })).compactions
  }

  it("is the last label of its snapshot", () => {
    const ratings = (...labels: ReadonlyArray<SessionEvent>) => rated(...labels).map(({ rating }) => rating)
    assert.deepStrictEqual(ratings(), [null])
    assert.deepStrictEqual(ratings(labelled(2, "rated bad")), [null])
    assert.deepStrictEqual(ratings(labelled(3, "rated bad"), labelled(3, "rated good: all there")), [
      { verdict: "good", why: "all there" }
    ])
    assert.deepStrictEqual(ratings(labelled(3, "rated bad"), labelled(3, null)), [null])
  })

  it.each<readonly [why: string, answer: OwnQuestion["answer"] | undefined]>([
    ["it lost the port", undefined],
    ["it lost port 9090 and src/app.ts", ["9090", "src/app.ts"]],
    ['it lost "the green one"', ["the green one"]]
  ])("is a question about what it names: %j", (why, answer) => {
    const label = ratingLabel({ verdict: "bad", why })
    assert.deepStrictEqual(
      questionsOf(rated(labelled(3, label))),
      answer === undefined ? [] : [{ after: entryId(2), question: label, answer }]
    )
  })
})
