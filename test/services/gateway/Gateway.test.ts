import { Effect } from "effect"
import { requestTarget } from "../../../src/domain/gateway/RequestTarget.ts"
import { routeOf } from "../../../src/domain/gateway/Route.ts"
import { Gateway } from "../../../src/services/gateway/Gateway.ts"
import type { SentView } from "../../../src/services/gateway/GatewayPlan.ts"
import { codecs } from "../../support/GatewayDialects.ts"
import { gatewayLayer } from "../../support/GatewayScene.ts"
import { assert, it } from "../../support/vitest.ts"

class Gone extends Map<string, string> {
  override get(): never {
    throw new Error("no disk")
  }
  override set(): never {
    throw new Error("no space left")
  }
  override keys(): never {
    throw new Error("no disk")
  }
}

const answer = { calls: [], hasOthers: false, sent: ['{"type":"message","id":"m"}'], visible: [], usage: undefined }

it.effect("whatever its store does, no request of a client fails", function* () {
  const route = routeOf("POST", requestTarget("/v1/responses") ?? { path: "", query: [] })
  if (route === undefined) throw new Error("no route")
  const sent = { names: ["n"], owner: "me" } as unknown as SentView
  const said = yield* Gateway.use(({ keep, knowsItems, plan, recall, remember }) =>
    Effect.all([
      keep("me", answer, true),
      remember(sent, { rounds: [{ sent: [], visible: [] }] }),
      knowsItems("me", JSON.stringify({ input: [{ type: "item_reference", id: "m2" }] })),
      recall(sent, [{ id: "c", name: "r", args: {}, json: "{}" }], 1_000),
      plan({
        owner: "me",
        route,
        text: JSON.stringify(codecs.responses.body(codecs.responses.user("x".repeat(9_000)), false))
      })
    ])
  ).pipe(Effect.provide(gatewayLayer({ threshold: 0.75, window: 5_000 }, new Gone())))
  const text = "the removed content is temporarily unavailable"
  assert.deepStrictEqual(said.slice(0, 4), [undefined, undefined, false, [{ text, media: [], isError: true }]])
  assert.strictEqual(said[4]._tag, "Unchanged")
})
