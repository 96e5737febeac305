import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Effect, Layer, Redacted } from "effect"
import * as HttpRouter from "effect/http/HttpRouter"
import http from "node:http"
import type { Socket } from "node:net"
import type { AccessOptions } from "../../../src/layers/gateway/ClientAccess.ts"
import * as GatewayRoutes from "../../../src/layers/gateway/GatewayRoutes.ts"
import { Upstream } from "../../../src/layers/gateway/Upstream.ts"
import { TenantLimiter } from "../../../src/services/serve/TenantLimiter.ts"
import { codecs } from "../../support/GatewayDialects.ts"
import { gatewayLayer, raw } from "../../support/GatewayScene.ts"
import { connector, inMemory, requestOptions, serve } from "../../support/memoryNet.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** The gateway behind a router of Effect, as `serve` has it. */

const silentMillis = 60_000

const codeRun = {
  type: "code_interpreter_call",
  id: "ci_own",
  container_id: "cntr_own",
  code: "1",
  status: "completed"
}

const scene = Effect.fnUntraced(function* (access: AccessOptions = {}) {
  const sockets: Array<Socket> = []
  const seen: Array<unknown> = []
  const url = yield* inMemory((request, response) => {
    request.resume()
    request.once("end", () => {
      // What the limit of the client's socket is while the provider has not answered.
      seen.push([request.method, request.url, sockets.at(-1)?.timeout])
      const item = { type: "message", id: "msg_own", role: "assistant", content: [{ type: "output_text", text: "ok" }] }
      const output = [item, codeRun, { type: "image_generation_call", id: "ig_own", result: "aGk=" }]
      response.writeHead(200, { "content-type": "application/json" })
      response.end(JSON.stringify(request.url?.startsWith("/v1/responses") ? { output } : { path: request.url }))
    })
  })
  const services = Layer.mergeAll(
    gatewayLayer({ threshold: 0.75 }),
    Upstream.layer(1_000_000, connector),
    TenantLimiter.layer({ limits: {} })
  )
  const options = {
    upstreams: { anthropic: url, gemini: url, openai: `${url}?api-version=1&tag=own` },
    maxBodyBytes: 1_000_000,
    silentSeconds: 600,
    clientSeconds: 30,
    ...access
  }
  const app = yield* HttpRouter.toHttpEffect(Layer.unwrap(GatewayRoutes.routes(options)).pipe(Layer.provide(services)))
  const handle = yield* NodeHttpServer.makeHandler(app, { scope: yield* Effect.scope })
  const server = http.createServer((request, response) => {
    sockets.push(request.socket)
    handle(request, response)
  })
  server.timeout = silentMillis
  return { url: yield* serve(server), seen, sockets }
})

/** The status of a target as it is written: an address would resolve its dots. */
const statusOf = (url: string, path: string) =>
  new Promise<number | undefined>((resolve, reject) => {
    const { hostname, port } = new URL(url)
    http
      .get({ ...requestOptions(url), hostname, port, path }, ({ statusCode }) => resolve(statusCode))
      .on("error", reject)
  })

describe("the gateway behind a router", () => {
  it.live("passes what is under its prefix, for as long as a provider is silent", function* () {
    const { seen, sockets, url } = yield* scene()
    const models = yield* raw(`${url}/gateway/v1/models?after=x&tag=x`, [], "", "GET")
    // The parameters of the provider's address stay, where the client names no others.
    const sent = "/v1/models?api-version=1&after=x&tag=x"
    assert.deepStrictEqual([models.status, models.body], [200, `{"path":"${sent}"}`])
    const body = JSON.stringify(codecs.anthropic.body(codecs.anthropic.user("hello"), false))
    assert.strictEqual((yield* raw(`${url}/gateway/v1/messages`, [], body)).status, 200)
    assert.deepStrictEqual(seen, [
      ["GET", sent, 0],
      ["POST", "/v1/messages", 0]
    ])
    // The server's own limit holds again for what comes next, once the answer is out.
    const isRestored = Effect.sync(() => sockets.every(({ timeout }) => timeout === silentMillis))
    assert.isTrue(yield* Effect.repeat(isRestored, { until: (restored) => restored, times: 1_000 }))
    assert.strictEqual((yield* raw(`${url}/v1/messages`, [], body)).status, 404)
    const before = seen.length
    const out = yield* Effect.promise(() => statusOf(url, "/gateway/../1234567/v1/models"))
    assert.deepStrictEqual([out, seen.length], [400, before])
  })

  it.live("sends no request on with the operator's key that may name what the operator's account keeps", function* () {
    const tokens = {
      tenantOf: (token: Redacted.Redacted) => Effect.succeed(Redacted.value(token) === "token" ? "acme" : undefined),
      providerKeys: { openai: Redacted.make("operator") },
      ownKeys: false
    }
    const { seen, url } = yield* scene({ tokens })
    const { store: _, ...body } = codecs.responses.body(codecs.responses.user("hello"), false)
    const refused = [
      JSON.stringify({ ...body, previous_response_id: "resp_1" }),
      JSON.stringify({ ...body, input: [{ type: "item_reference", id: "msg_of_acme" }] }),
      JSON.stringify({ ...body, input: [{ role: "system", type: "item_reference", id: "msg_of_acme" }] }),
      JSON.stringify({ ...body, background: true }),
      `${JSON.stringify(body)}{"previous_response_id":"resp_1"}`,
      "no JSON"
    ]
    for (const text of [...refused, JSON.stringify(body)]) {
      const { status } = yield* raw(`${url}/gateway/v1/responses`, ["Authorization", "Bearer token"], text)
      assert.deepStrictEqual([status, seen.length], refused.includes(text) ? [403, 0] : [200, 1])
    }
    // The items of its own answers, which the gateway saw.
    for (const [item, expected] of [
      [{ type: "item_reference", id: "msg_own" }, 200],
      [{ type: "item_reference", id: "msg_other" }, 403],
      [codeRun, 200],
      [{ ...codeRun, container_id: "cntr_other" }, 403],
      [{ ...codeRun, id: "ci_other" }, 403],
      [{ type: "image_generation_call", id: "ig_own" }, 200],
      [{ type: "image_generation_call", id: "ig_other" }, 403],
      [{ type: "image_generation_call", id: "ig_other", result: "aGk=" }, 200]
    ] as const) {
      const text = JSON.stringify({ ...body, input: [item] })
      const { status } = yield* raw(`${url}/gateway/v1/responses`, ["Authorization", "Bearer token"], text)
      assert.strictEqual(status, expected, text)
    }
    // Of an answer that the provider does not store, it keeps the container of a run.
    const [header, tools] = [
      ["Authorization", "Bearer token"],
      [{ type: "code_interpreter", container: { type: "auto" } }]
    ]
    const unstored = yield* scene({ tokens })
    for (const [input, expected] of [
      [[codeRun], 403],
      [body["input"], 200],
      [[codeRun], 200],
      [[{ ...codeRun, container_id: "cntr_other" }], 403],
      [[{ type: "item_reference", id: "msg_own" }], 403]
    ] as const) {
      const text = JSON.stringify({ ...body, store: false, tools, input })
      assert.strictEqual((yield* raw(`${unstored.url}/gateway/v1/responses`, header, text)).status, expected, text)
    }
  })
})
