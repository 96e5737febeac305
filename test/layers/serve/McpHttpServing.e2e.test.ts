import { Deferred, Effect, Fiber, Layer, Redacted } from "effect"
import { McpProtocol } from "effect/ai"
import * as McpHttpServing from "../../../src/layers/serve/McpHttpServing.ts"
import { layer as tools } from "../../../src/services/transcripts/SessionMcpTools.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const answers = {
  list: Effect.succeed([]),
  recall: () => Effect.succeed("exact"),
  search: () => Effect.succeed(""),
  changes: () => Effect.succeed(""),
  snapshot: () => Effect.succeed("")
}

const options = {
  name: "palimpsest",
  version: "1",
  instructions: "",
  protocols: [McpProtocol.v2025_06_18],
  token: Redacted.make("pal_x")
} as const

const call = (url: string, headers: Record<string, string>, method: string, params: object) =>
  Effect.promise(async () => {
    const response = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "application/json, text/event-stream", ...headers },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params })
    })
    return { status: response.status, session: response.headers.get("mcp-session-id"), text: await response.text() }
  })

const opening = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "t", version: "1" } }

describe("MCP over HTTP", () => {
  it.live("answers with the token, and refuses other requests; a port that is in use is named", function* () {
    const listening = yield* Deferred.make<string>()
    const started = (url: string) => Effect.asVoid(Deferred.succeed(listening, url))
    const server = yield* Effect.forkChild(
      McpHttpServing.serveMcp({ ...options, port: 0 }, tools(answers, false), started)
    )
    const url = yield* Deferred.await(listening)
    assert.strictEqual((yield* call(url, {}, "initialize", opening)).status, 401)
    const headers = { authorization: "Bearer pal_x" }
    const cross = yield* call(url, { ...headers, origin: "https://evil.example" }, "initialize", opening)
    assert.strictEqual(cross.status, 403)
    const { session } = yield* call(url, headers, "initialize", opening)
    const recalled = yield* call(url, { ...headers, "mcp-session-id": session ?? "" }, "tools/call", {
      name: "recall",
      arguments: { handle: "h_abcdefghij" }
    })
    assert.include(recalled.text, "exact")
    const port = Number(new URL(url).port)
    const second = McpHttpServing.serveMcp({ ...options, port }, Layer.empty, () => Effect.void)
    assert.include((yield* Effect.flip(second)).message, "the port is in use")
    yield* Fiber.interrupt(server)
  })
})
