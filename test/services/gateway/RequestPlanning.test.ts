import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { requestTarget } from "../../../src/domain/gateway/RequestTarget.ts"
import { routeOf } from "../../../src/domain/gateway/Route.ts"
import { estimateText } from "../../../src/domain/tokens/Tokens.ts"
import { dialects } from "../../../src/domain/wire/Dialect.ts"
import { Gateway } from "../../../src/services/gateway/Gateway.ts"
import { codecs } from "../../support/GatewayDialects.ts"
import { gatewayLayer } from "../../support/GatewayScene.ts"

const words = (topic: string, lines: number): string =>
  Array.from({ length: lines }, (_, at) => `Line ${at} of ${topic} tells of part ${(at * 61) % 997}.`).join("\n")

describe.each(dialects)("the estimate of a request in the dialect %s", (dialect) => {
  it.effect("is its own, whatever was counted before: of other messages, owners and places", () => {
    const codec = codecs[dialect]
    const target = requestTarget(codec.path(false))
    const route = target === undefined ? undefined : routeOf("POST", target)
    return Effect.gen(function* () {
      const gateway = yield* Gateway
      const tokensOf = Effect.fnUntraced(function* (owner: string, said: ReadonlyArray<string>) {
        const text = JSON.stringify(
          codec.body(
            said.flatMap((each, at) =>
              at % 2 === 0 ? codec.user(each) : codec.assistant([{ kind: "text", text: each }])
            ),
            false
          )
        )
        if (route === undefined) return assert.fail("no route")
        const plan = yield* gateway.plan({ owner, route, text })
        assert.strictEqual(plan._tag, "Unchanged")
        return plan._tag === "Unchanged" && plan.tokens !== undefined ? plan.tokens.total : 0
      })
      for (const said of [
        [words("a", 220), "ok", words("b", 10)],
        [words("c", 120), "ok", words("b", 110)],
        [words("b", 110), words("a", 120), "ok"],
        [words("b", 110), words("d", 180), "ok"]
      ]) {
        for (const owner of ["one", "other"]) {
          const expected = estimateText(said.join("\n"))
          const tokens = yield* tokensOf(owner, said)
          // The head is some 150 tokens.
          assert.isAtLeast(tokens, expected)
          assert.isAtMost(tokens, expected + 450)
        }
      }
    }).pipe(Effect.provide(gatewayLayer({ window: 11_000, threshold: 0.75 })))
  })
})
