import { assert, it } from "@effect/vitest"
import { beforeEvents } from "../../../src/domain/serve/EventBuffer.ts"
import { JoinedStream } from "../../../src/domain/serve/JoinedStream.ts"

interface Event {
  readonly id?: string
  readonly event: string
}

const reset: Event = { event: "Reset" }
const at = (id: string): Event => ({ id, event: "Content" })
const recorded: Event = { event: "Content" }
const ping: Event = { event: "Ping" }

const table: ReadonlyArray<{
  readonly name: string
  readonly last?: string
  readonly isSession?: boolean
  readonly given: ReadonlyArray<Event>
  readonly told: ReadonlyArray<Event>
}> = [
  {
    name: "a client that read a session without events",
    last: beforeEvents(3),
    given: [ping, at("a.1"), at("a.2")],
    told: [ping, at("a.1"), at("a.2")]
  },
  {
    name: "a client that read a session without events, of which some are missing now",
    last: beforeEvents(3),
    given: [reset, at("a.7"), at("a.8")],
    told: [reset, at("a.7"), at("a.8")]
  },
  { name: "one server", given: [ping, at("a.1"), at("a.2")], told: [ping, at("a.1"), at("a.2")] },
  {
    name: "a server that begins anew",
    given: [at("a.9"), at("a.10"), at("a.9"), at("a.10"), at("a.11")],
    told: [at("a.9"), at("a.10"), at("a.11")]
  },
  { name: "a client that comes again", last: "a.2", given: [at("a.1"), at("a.2"), at("a.3")], told: [at("a.3")] },
  {
    name: "a server with other events",
    given: [at("a.1"), at("b.1"), at("b.2")],
    told: [at("a.1"), reset, at("b.1"), at("b.2")]
  },
  { name: "a server that says so itself", given: [at("a.1"), reset, at("b.1")], told: [at("a.1"), reset, at("b.1")] },
  {
    name: "a server that says so before another goes on",
    given: [at("a.1"), reset, ping, reset, ping, at("a.1"), at("a.2")],
    told: [at("a.1"), ping, ping, at("a.2")]
  },
  {
    name: "servers that say so, and events that are missing",
    given: [at("a.1"), reset, reset, at("a.3"), at("a.4")],
    told: [at("a.1"), reset, at("a.3"), at("a.4")]
  },
  {
    name: "a server without events of the session",
    last: "a.2",
    isSession: true,
    given: [reset, ping, ping, at("b.1")],
    told: [reset, ping, ping, at("b.1")]
  },
  {
    name: "an answer as the session holds it",
    given: [at("a.1"), recorded, recorded],
    told: [at("a.1"), reset, recorded, recorded]
  },
  { name: "such an answer, and nothing before", given: [recorded, recorded], told: [recorded, recorded] }
]

it.each(table)("streams of several servers, joined $name", ({ given, isSession, last, told }) => {
  const joined = new JoinedStream<Event>(last, reset, isSession)
  assert.deepStrictEqual(
    given.flatMap((event) => joined.next(event)),
    told
  )
})
