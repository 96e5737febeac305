import { Effect, Fiber, Stream } from "effect"
import * as TestClock from "effect/testing/TestClock"
import { endMark } from "../../../src/domain/wire/SseEvents.ts"
import type { ProviderRequest } from "../../../src/layers/model/HttpSend.ts"
import type { Provider } from "../../../src/layers/model/Provider.ts"
import { events } from "../../../src/layers/model/ProviderExchange.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** The events of an answer, however its server or a relay before it writes them. */

/** A provider whose server answers with these pieces, each after a minute. */
const answering = (pieces: ReadonlyArray<string>, sent: Array<ProviderRequest> = []): Provider => ({
  names: { keys: ["API_KEY"], baseUrl: "BASE_URL", api: "Test" },
  key: "sk-secret",
  baseUrl: new URL("http://api/v1/?api-version=2026-01-01"),
  model: undefined,
  timeouts: { chunk: "100 seconds", countTokens: "1 second" },
  headers: () => ({}),
  needsKey: true,
  learned: new Map(),
  send: (request) =>
    Effect.sync(() => {
      sent.push(request)
      const left = [...pieces]
      const next = Effect.sync(() => {
        const piece = left.shift()
        return piece === undefined ? undefined : Buffer.from(piece)
      })
      return { status: 200, header: () => undefined, next: Effect.delay(next, "1 minute") }
    })
})

const read = (provider: Provider) =>
  Effect.gen(function* () {
    const answer = yield* Effect.forkChild(Stream.runCollect(events(provider, "ask", {})))
    yield* TestClock.adjust("1 hour")
    return yield* Fiber.join(answer)
  })

const [one, two] = [{ a: 1 }, { b: 2 }]
const [first, second] = [JSON.stringify(one), JSON.stringify(two)]

describe("the events of an answer", () => {
  it.effect.each<readonly [what: string, pieces: ReadonlyArray<string>]>([
    ["as they should be", [`data: ${first}\n\n`, `data: ${second}\n\n`, "data: [DONE]\n\n"]],
    ["with a mark of the order of bytes", [`\ufeffdata: ${first}\n\ndata: ${second}\n\n`, "data: [DONE]\n\n"]],
    ["without blank lines", [`data: ${first}\ndata: ${second}\n`, "data: [DONE]\n"]],
    ["as a list", [`[${first},\n`, `${second}]`]],
    ["as lines of JSON", [`${first}\n`, `${second}\n`, "[DONE]\n"]],
    [
      "with others that keep the connection open",
      [
        "data:\n\n",
        `data: ${first}\n\n`,
        "event: ping\ndata: ping\n\n",
        "data: : PROCESSING\n\n",
        "id: 1\ndata: \n\n",
        `data: ${second}\n\n`,
        "data: keep-alive\n\n",
        "data: [DONE]\n\n"
      ]
    ],
    // Silence for longer than the limit, but for comments.
    [
      "with comments in between",
      [...Array<string>(9).fill(": PROCESSING\n\n"), `data: ${first}\n\n`, `data: ${second}\n\ndata: [DONE]\n\n`]
    ]
  ])("are read %s", function* ([, pieces]) {
    const said = (yield* read(answering(pieces))).filter((event) => JSON.stringify(event) !== "{}")
    assert.deepStrictEqual(
      said.filter((event) => event !== endMark),
      [one, two]
    )
  })

  it.effect("are told in their own words where they are not JSON, without the key", function* () {
    const { message } = yield* Effect.flip(read(answering([`data: ${first}\n\n`, "data: no quota for sk-secret\n\n"])))
    assert.include(message, "it contains an event that is not JSON (no quota for <key>)")
    const cut = yield* Effect.flip(read(answering(['data: {"choices":[{"delta":{"content":"secret\n\n'])))
    assert.notInclude(cut.message, "secret")
  })

  it.effect("are asked for with what the address has behind its path", function* () {
    const sent: Array<ProviderRequest> = []
    yield* read(answering([], sent))
    assert.deepStrictEqual(
      sent.map(({ url }) => url.href),
      ["http://api/v1/ask?api-version=2026-01-01"]
    )
  })
})
