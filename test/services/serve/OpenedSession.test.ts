import { Effect, Stream } from "effect"
import { beforeEvents, eventLifetime } from "../../../src/domain/serve/EventBuffer.ts"
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
    ["repeats the events of the journal", 1, last, eventLifetime, "TurnStarted"],
    ["begins with a reset once the journal can have lost them", 1, last, eventLifetime + 1, "Reset"],
    ["begins with a reset where the session was changed before it was opened", 1, undefined, 0, "Reset"],
    ["is one of no events where the session is as the client read it", 2, undefined, eventLifetime + 1, "Ping"]
  ] as const
  it.effect.each(rows)("%s", function* ([, version, kept, now, first]) {
    const journal = { save: () => Effect.succeed(true), last: kept }
    const session = new OpenedSession("one", Object.create(null), new TurnQuestions(), "own", 2, journal)
    const events = yield* Stream.runCollect(Stream.take(session.stream(beforeEvents(version), now), 1))
    assert.deepStrictEqual(
      events.map(({ event }) => event),
      [first]
    )
  })
})
