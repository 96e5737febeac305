import { Effect, Layer } from "effect"
import { Buffer } from "node:buffer"
import { Readable } from "node:stream"
import { HeldBytes } from "../../../src/layers/gateway/HeldBytes.ts"
import { type KeptBody, pass } from "../../../src/layers/gateway/PassRequest.ts"
import type { ProxiedRequest } from "../../../src/layers/gateway/ProxiedRequest.ts"
import { Upstream } from "../../../src/layers/gateway/Upstream.ts"
import { Gateway } from "../../../src/services/gateway/Gateway.ts"
import { TenantLimiter } from "../../../src/services/serve/TenantLimiter.ts"
import { assert, describe, it } from "../../support/vitest.ts"

describe("the body of a request", () => {
  it.effect("is let go when the answer begins, which may last an hour", function* () {
    const body: KeptBody = { bytes: Buffer.from("{}"), text: "{}" }
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
})
