import { Effect, Stream } from "effect"
import { eventLifetime } from "../../../src/domain/serve/EventBuffer.ts"
import { OpenedSession } from "../../../src/services/serve/OpenedSession.ts"
import { TurnQuestions } from "../../../src/services/serve/TurnQuestions.ts"
import { assert, describe, it } from "../../support/vitest.ts"

describe("a stream from before all events", () => {
  const last = {
    name: "journal",
    since: 1,
    events: [
      { number: 1, message: "m", event: { _tag: "TurnStarted", text: "Hello" } },
      { number: 2, message: "m", event: { _tag: "TurnEnded", status: "answered", error: null } }
    ]
  } as const
  const rows = [
    ["repeats the events of the journal", last, eventLifetime, "TurnStarted"],
    ["begins with a reset once the journal can have lost them", last, eventLifetime + 1, "Reset"],
    ["is one of no events", undefined, eventLifetime + 1, "Ping"]
  ] as const
  for (const [rule, kept, now, first] of rows) {
    it.effect(rule, function* () {
      const journal = { save: () => Effect.succeed(true), last: kept }
      // It was opened an hour ago.
      const session = new OpenedSession(
        "one",
        Object.create(null),
        new TurnQuestions(),
        "own",
        now - 3_600_000,
        journal
      )
      const events = yield* Stream.runCollect(Stream.take(session.stream("0", now), 1))
      assert.deepStrictEqual(
        events.map(({ event }) => event),
        [first]
      )
    })
  }
})
