import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Layer, Predicate } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"
import { Environment } from "../../../src/services/platform/Environment.ts"
import { type McpOffer, McpServers } from "../../../src/services/tools/McpServers.ts"
import { assert, it } from "../../support/vitest.ts"

/** Several servers over HTTP, in memory. Each says its host when its tool is called. */

const schema = { type: "object", additionalProperties: true }

/** The result of a request to the server of this host, which has tools of these names. */
const resultOf = (host: string, names: ReadonlyArray<string>, method: unknown, params: unknown): object => {
  const { protocolVersion } = Object(params)
  if (method === "initialize") {
    return { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: host, version: "1" } }
  }
  return method === "tools/list"
    ? { tools: names.map((name) => ({ name, inputSchema: schema })) }
    : { content: [{ type: "text", text: `${host} did ${String(Object(params)["name"])}` }] }
}

/** Servers by host, with the names of their tools. A host that is not listed answers nothing. */
const network = (servers: Readonly<Record<string, ReadonlyArray<string>>>) =>
  Layer.mergeAll(
    NodeServices.layer,
    Layer.succeed(Environment, { variables: Effect.succeed({}) }),
    Layer.succeed(
      HttpClient.HttpClient,
      HttpClient.make((request, { hostname }) =>
        Effect.sync(() => {
          const { body } = request
          const names = servers[hostname]
          const sent: unknown = body._tag === "Uint8Array" ? JSON.parse(new TextDecoder().decode(body.body)) : undefined
          const answer = (status: number, content?: object) =>
            HttpClientResponse.fromWeb(
              request,
              content === undefined ? new Response(null, { status }) : Response.json(content, { status })
            )
          if (names === undefined) return answer(500)
          if (!Predicate.isObject(sent) || sent["id"] === undefined) return answer(202)
          const result = resultOf(hostname, names, sent["method"], sent["params"])
          return answer(200, { jsonrpc: "2.0", id: sent["id"], result })
        })
      )
    )
  )

const context = {
  id: "c1",
  agent: "main",
  progress: () => Effect.void,
  activity: () => Effect.void,
  waiting: <A, E, R>(work: Effect.Effect<A, E, R>) => work
}

/** Calls each tool. Returns what it said, by the tool's name. */
const saidBy = ({ tools }: McpOffer) =>
  Effect.forEach(tools, (tool) =>
    Effect.gen(function* () {
      const call = yield* tool.call({}, context)
      const question = yield* call.question
      const said = /\n([^\n]* did [^\n]*)\n/.exec(String((yield* call.run).value))?.[1]
      return [tool.name, said, question?.grants.join()]
    })
  )

it.effect(
  "servers whose names look alike have tools of different names, and each call reaches its own",
  network({ one: ["read"], two: ["read", "write"], three: ["b_read", "b read"] }),
  function* () {
    const offer = yield* McpServers.start(
      {
        "a b": { url: "http://one/mcp" },
        broken: { url: "http://nowhere/mcp" },
        a_b: { url: "http://two/mcp" },
        a: { url: "http://three/mcp" }
      },
      { version: "1" }
    )
    assert.deepStrictEqual(yield* saidBy(offer), [
      ["mcp_a_b_read", "one did read", "mcp:a b"],
      ["mcp_a_b_read_2", "two did read", "mcp:a_b"],
      ["mcp_a_b_write", "two did write", "mcp:a_b"],
      ["mcp_a_b_read_3", "three did b_read", "mcp:a"],
      ["mcp_a_b_read_4", "three did b read", "mcp:a"]
    ])
    assert.deepStrictEqual(
      offer.problems.map(({ _tag, server }) => [_tag, server]),
      [["LeftOut", "broken"]]
    )
  }
)
