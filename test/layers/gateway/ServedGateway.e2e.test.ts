import { Effect, Redacted } from "effect"
import { hash } from "node:crypto"
import type { Provider } from "../../../src/domain/gateway/Route.ts"
import { dialects } from "../../../src/domain/wire/Dialect.ts"
import type { ServedGatewayOptions } from "../../../src/layers/assembly/LiveGateway.ts"
import { codecs } from "../../support/GatewayDialects.ts"
import { type FakeModel, makeClient, makeProvider } from "../../support/GatewayScene.ts"
import { newHome, startServer, tokens } from "../../support/server.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** The gateway within `serve`. */

const providerKeys = {
  anthropic: Redacted.make("operator-a"),
  openai: Redacted.make("operator-o"),
  gemini: Redacted.make("operator-g")
}

const noted: FakeModel = () => [{ kind: "text", text: "Noted." }]

const start = Effect.fnUntraced(function* (provider: string, more: Partial<ServedGatewayOptions> = {}) {
  const server = yield* startServer({
    home: newHome(),
    settings: { limits: { requests: 100 }, tenants: { zeta: { limits: { requests: 1 } } } },
    gateway: {
      upstreams: { anthropic: provider, gemini: provider, openai: provider },
      maxBodyBytes: 8_000_000,
      silentSeconds: 600,
      clientSeconds: 30,
      window: 8_192,
      threshold: 0.75,
      keepDays: 30,
      ownKeys: false,
      providerKeys,
      ...more
    }
  })
  const ask = (headers: Readonly<Record<string, string>>, path = "/v1/messages") =>
    Effect.promise(async () => {
      const answer = await fetch(`${server.url}/gateway${path}`, {
        method: "POST",
        headers,
        body: JSON.stringify(codecs.anthropic.body(codecs.anthropic.user("hello"), false))
      })
      return { status: answer.status, text: await answer.text() }
    })
  return { ...server, ask }
})

const keyIn: Readonly<Record<Provider, (headers: Readonly<Record<string, unknown>>) => unknown>> = {
  anthropic: (headers) => headers["x-api-key"],
  gemini: (headers) => headers["x-goog-api-key"],
  openai: (headers) => headers["authorization"]
}

describe("the gateway within serve", () => {
  it.live.each(dialects)("compresses for a tenant's token, with the operator's key (%s)", function* (dialect) {
    const provider = yield* makeProvider(noted)
    const { url } = yield* start(provider.url)
    const client = makeClient(dialect, `${url}/gateway`, true, tokens.acme)
    const text = "A line that fills the window of the model. ".repeat(110)
    for (let turn = 0; turn < 8; turn += 1) yield* Effect.promise(() => client.say(`${turn}: ${text}`, () => ""))
    const last = provider.requests.at(-1)
    assert.include(last?.text ?? "", "palimpsest_recall")
    const name = dialect === "chat" || dialect === "responses" ? "openai" : dialect
    const expected = { anthropic: "operator-a", gemini: "operator-g", openai: "Bearer operator-o" }[name]
    for (const { headers } of provider.requests) {
      assert.strictEqual(keyIn[name](headers), expected)
      assert.notInclude(JSON.stringify(headers), tokens.acme)
    }
  })

  it.live(
    "accepts the client's own keys beside a token, where they are listed, or where all are allowed",
    function* () {
      const provider = yield* makeProvider(noted)
      const closed = yield* start(provider.url)
      const own = { "x-api-key": "own" }
      assert.strictEqual((yield* closed.ask(own)).status, 401)
      assert.strictEqual((yield* closed.ask({ ...own, "x-palimpsest-token": "wrong" })).status, 401)
      assert.strictEqual((yield* closed.ask({ ...own, "x-palimpsest-token": tokens.acme })).status, 200)
      assert.strictEqual(provider.requests[0]?.headers["x-api-key"], "own")
      assert.isUndefined(provider.requests[0]?.headers["x-palimpsest-token"])
      const listed = yield* start(provider.url, { keys: [`sha256:${hash("sha256", "own", "hex")}`] })
      assert.strictEqual((yield* listed.ask(own)).status, 200)
      assert.strictEqual((yield* listed.ask({ "x-api-key": "other" })).status, 401)
      const open = yield* start(provider.url, { ownKeys: true })
      assert.strictEqual((yield* open.ask(own)).status, 200)
    }
  )

  it.live("counts for the tenant, and says what is missing", function* () {
    const provider = yield* makeProvider(noted)
    const { ask } = yield* start(provider.url, { providerKeys: {} })
    const without = yield* ask({ "x-api-key": tokens.acme })
    assert.strictEqual(without.status, 403)
    assert.include(without.text, "this server has no key for anthropic")
    const zeta = { "x-api-key": "own", "x-palimpsest-token": tokens.zeta }
    assert.strictEqual((yield* ask(zeta)).status, 200)
    assert.strictEqual((yield* ask(zeta)).status, 429)
  })
})
