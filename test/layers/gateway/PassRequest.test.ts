import { Effect, Fiber, Layer } from "effect"
import { Buffer } from "node:buffer"
import { Readable } from "node:stream"
import { finished } from "node:stream/promises"
import { meter } from "../../../src/layers/gateway/AnswerMeter.ts"
import { HeldBytes } from "../../../src/layers/gateway/HeldBytes.ts"
import { type KeptBody, pass } from "../../../src/layers/gateway/PassRequest.ts"
import { passPieces, type ProxiedRequest } from "../../../src/layers/gateway/ProxiedRequest.ts"
import { beginningOf, readAll, Upstream } from "../../../src/layers/gateway/Upstream.ts"
import { Gateway } from "../../../src/services/gateway/Gateway.ts"
import { TenantLimiter } from "../../../src/services/serve/TenantLimiter.ts"
import { assert, describe, it } from "../../support/vitest.ts"

it.effect("the body of a request is let go when the answer begins, which may last an hour", function* () {
  const body: KeptBody = { bytes: Buffer.from("{}"), text: "{}", held: 2 }
  const seen: Array<unknown> = []
  const see = (what: string, bytes = body.bytes) => void seen.push([what, bytes.length, body.text])
  const upstream = Layer.mock(Upstream, {
    held: new HeldBytes(1_000),
    send: (_, sent) =>
      Effect.sync(() => {
        see("sent", Buffer.isBuffer(sent) ? sent : undefined)
        return { status: 200, statusText: "OK", headers: [], body: Readable.from([]) }
      })
  })
  const response = {
    writeHead: () => {
      see("answered")
      throw new Error("enough")
    }
  }
  const passing = {
    response,
    upstream: { headers: [] },
    holder: { add: (bytes: number) => void seen.push(bytes) }
  } as unknown as ProxiedRequest
  const plan = { _tag: "Unchanged", model: "m", tokens: undefined } as const
  yield* pass(passing, plan, body, Effect.undefined).pipe(
    Effect.scoped,
    Effect.provide(upstream),
    Effect.provideService(Gateway, {} as Gateway["Service"]),
    Effect.provideService(TenantLimiter, {} as TenantLimiter["Service"]),
    Effect.exit
  )
  assert.deepStrictEqual(seen, [["sent", 2, "{}"], -2, ["answered", 0, undefined]])
})

describe("an answer", () => {
  const holder = { add: () => {} } as unknown as ProxiedRequest["holder"]

  it.effect("whose first bytes its client did not await is charged", function* () {
    const charged: Array<number> = []
    const upstream = Layer.mock(Upstream, {
      held: new HeldBytes(1_000),
      send: () => Effect.succeed({ status: 200, statusText: "OK", headers: [], body: new Readable({ read: () => {} }) })
    })
    const passing = {
      route: { asks: "answer", dialect: "anthropic" },
      bodyBytes: 400,
      upstream: { headers: [] },
      holder
    } as unknown as ProxiedRequest
    const plan = { _tag: "Unchanged", model: "m", tokens: undefined } as const
    const fiber = yield* pass(passing, plan, { bytes: Buffer.from("{}"), text: "{}", held: 2 }, Effect.undefined).pipe(
      Effect.scoped,
      Effect.provide(upstream),
      Effect.provideService(Gateway, {} as Gateway["Service"]),
      Effect.provideService(TenantLimiter, {
        tokens: (_: unknown, tokens: number) => Effect.sync(() => void charged.push(tokens))
      } as unknown as TenantLimiter["Service"]),
      Effect.forkChild({ startImmediately: true })
    )
    yield* Effect.yieldNow
    yield* Fiber.interrupt(fiber)
    assert.deepStrictEqual(charged, [100])
  })

  const response = { socket: null, write: () => true }
  it.effect.each<
    readonly [what: string, use: (answer: { readonly body: Readable }) => Effect.Effect<unknown, unknown>]
  >([
    ["its beginning", (answer) => beginningOf({ status: 200, statusText: "", headers: [], ...answer })],
    ["the whole of it", (answer) => readAll({ status: 200, statusText: "", headers: [], ...answer }, holder)],
    [
      "its pieces",
      (answer) =>
        passPieces(
          { status: 200, statusText: "", headers: [], ...answer },
          { response } as unknown as ProxiedRequest,
          () => ""
        )
    ],
    [
      "its counts",
      (answer) =>
        Effect.callback((resume) =>
          meter({ status: 200, statusText: "", headers: [], ...answer }, () => resume(Effect.void))
        )
    ]
  ])("that has ended is not waited for: %s", function* ([, use]) {
    const body = Readable.from([])
    yield* Effect.promise(() => finished(body.resume()))
    yield* use({ body })
    // Nor one whose beginning was awaited.
    const next = new Readable({ read: () => {} })
    const waiting = yield* Effect.forkChild(beginningOf({ status: 200, statusText: "", headers: [], body: next }), {
      startImmediately: true
    })
    next.push(null)
    assert.strictEqual(yield* Fiber.join(waiting), "")
    yield* Effect.promise(() => new Promise((resume) => setImmediate(resume)))
    yield* use({ body: next })
  })
})
