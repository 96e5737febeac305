import { Duration, Effect, Fiber, FileSystem, Layer, Path, Predicate } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"
import type { ChildProcess } from "effect/process"
import { TestClock } from "effect/testing"
import type { McpServersSettings } from "../../../src/domain/tools/McpServer.ts"
import { Environment } from "../../../src/services/platform/Environment.ts"
import * as McpServers from "../../../src/services/tools/McpServers.ts"
import { context, failureOf, resultOf } from "../../support/callTool.ts"
import * as Processes from "../../support/processes.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** Servers in memory: over HTTP by their host, or as programs that are not started by their name. */

const schema = { type: "object", additionalProperties: true }

interface Server {
  /** What it lists; a text is the name of a tool. */
  readonly tools: ReadonlyArray<string | object>
  /** The protocol that it speaks; absent: that of its client. */
  readonly version?: string
  /** Its answer to a call; absent: its name and the tool's. */
  readonly answer?: object
}

/** The answer of a server to a message; undefined: none is wanted. */
const answerOf = (name: string, { answer, tools, version }: Server, message: unknown): object | undefined => {
  const { id, method, params } = Object(message)
  if (id === undefined) return undefined
  const { arguments: args, name: tool, protocolVersion } = Object(params)
  const results: Readonly<Record<string, object>> = {
    initialize: {
      protocolVersion: version ?? protocolVersion,
      capabilities: { tools: {} },
      serverInfo: { name, version: "1" }
    },
    "tools/list": {
      tools: tools.map((one) => (Predicate.isObject(one) ? one : { name: one, inputSchema: schema }))
    },
    "tools/call": answer ?? { content: [{ type: "text", text: `${name} did ${tool} ${JSON.stringify(args)}` }] }
  }
  return { jsonrpc: "2.0", id, result: results[method] ?? {} }
}

const variables = { PATH: "/bin:bin", LANG: "C", TOKEN: "told on purpose", MY_API_KEY: "hidden-value-1" }

/** The machine with these servers. A host that is not listed answers with this status, a program in another way. */
const machine = (
  servers: Readonly<Record<string, Server>>,
  {
    play = () => undefined,
    status = 500
  }: { play?: (name: string) => Processes.Played | undefined; status?: number } = {}
) => {
  const started: Array<ChildProcess.StandardCommand> = []
  const asked: Array<Readonly<Record<string, string>>> = []
  const http = HttpClient.make((request, { hostname }) =>
    Effect.sync(() => {
      const { body, headers } = request
      asked.push(headers)
      const server = servers[hostname]
      const sent: unknown = body._tag === "Uint8Array" ? JSON.parse(new TextDecoder().decode(body.body)) : undefined
      const content = server === undefined ? undefined : answerOf(hostname, server, sent)
      return HttpClientResponse.fromWeb(
        request,
        content === undefined
          ? new Response(null, { status: server === undefined ? status : 202 })
          : Response.json(content)
      )
    })
  )
  const processes = Processes.layer((command) => {
    started.push(command)
    const name = command.command.replace("/bin/", "")
    const server = servers[name]
    if (server === undefined) return play(name)
    return {
      ends: Effect.never,
      replies: (line) => {
        const answer = answerOf(name, server, JSON.parse(line))
        return answer === undefined ? "" : `${JSON.stringify(answer)}\n`
      }
    }
  })
  const layer = Layer.mergeAll(
    processes,
    Path.layer,
    FileSystem.layerNoop({
      realPath: () => Effect.succeed("/work"),
      access: (place) => (place.includes("none") ? Effect.die("no look is needed") : Effect.void),
      stat: () => Effect.succeed({ type: "File", mode: 0o755 } as FileSystem.File.Info)
    }),
    Layer.succeed(Environment, { variables: Effect.succeed(variables) }),
    Layer.succeed(HttpClient.HttpClient, http)
  )
  return { asked, layer, started }
}

const start = (servers: McpServersSettings) => McpServers.start(servers, { version: "1" })

/** The ways to a server, by its name. */
const ways = [
  ["over HTTP", (name: string, env = {}) => ({ url: `http://${name}/mcp`, headers: env })],
  ["as a program", (name: string, env = {}) => ({ command: `/bin/${name}`, env })]
] as const

describe.each(ways)("servers %s", (way, at) => {
  it.effect("have tools of different names, and each call asks for its server and reaches it", () => {
    const { layer } = machine({
      one: { tools: ["read"] },
      two: { tools: ["read", { name: "write", inputSchema: schema, annotations: { readOnlyHint: true } }] },
      three: { tools: ["b_read", "b read"] }
    })
    return Effect.gen(function* () {
      const offer = yield* start({ "a b": at("one"), a_b: at("two"), a: { ...at("three"), timeout: 5_000 } })
      assert.deepStrictEqual(offer.problems, [])
      const told = yield* Effect.forEach(offer.tools, (tool) =>
        Effect.gen(function* () {
          const call = yield* tool.call({ n: 1 }, context)
          const { grants = [] } = (yield* call.question) ?? {}
          const said = /\n([^\n]* did [^\n]*)\n/.exec(String((yield* resultOf(tool, `{"n":1}`)).value))?.[1]
          return [tool.name, said, grants.join(), tool.kind, Duration.toSeconds(tool.timeout)]
        })
      )
      assert.deepStrictEqual(told, [
        ["mcp_a_b_read", 'one did read {"n":1}', "mcp:a b", "execute", 600],
        ["mcp_a_b_read_2", 'two did read {"n":1}', "mcp:a_b", "execute", 600],
        ["mcp_a_b_write", 'two did write {"n":1}', "mcp:a_b", "fetch", 600],
        ["mcp_a_b_read_3", 'three did b_read {"n":1}', "mcp:a", "execute", 5],
        ["mcp_a_b_read_4", 'three did b read {"n":1}', "mcp:a", "execute", 5]
      ])
      const [first] = offer.tools
      if (first === undefined) return
      const call = yield* first.call({ n: 1 }, context)
      assert.strictEqual(call.title, 'mcp_a_b_read {"n":1}')
      assert.deepInclude(yield* call.question, {
        detail: 'read of the MCP server a b\n{\n  "n": 1\n}',
        covers: "all tools of the MCP server a b"
      })
      for (const wrong of [5, "text", "[1]"])
        assert.match((yield* failureOf(first, wrong)) ?? "", /^invalid_tool_params/)
      assert.include(String((yield* resultOf(first, null)).value), "one did read {}")
    }).pipe(Effect.scoped, Effect.provide(layer))
  })

  it.effect("have at most 128 tools, none with a long schema, and those that can be read", () => {
    const long = { name: "long", inputSchema: { ...schema, description: "x".repeat(32_768) } }
    const many = Array.from({ length: 129 }, (_, n) => `t${n}`)
    const { layer } = machine({
      many: { tools: [long, ...many] },
      enough: { tools: many.slice(0, 128) },
      odd: { tools: ["a", 7, { name: "b", inputSchema: { type: "object", properties: 1 } }] as Array<string> }
    })
    return Effect.gen(function* () {
      const { problems, tools } = yield* start({ many: at("many"), enough: at("enough"), odd: at("odd") })
      assert.deepStrictEqual(problems, [
        "The MCP server many offers 130 tools; 2 are ignored, beyond 128 or described at too great a length",
        "The MCP server odd describes tools in a form that cannot be read, and they are ignored: a tool without a name, b"
      ])
      assert.strictEqual(tools.length, 257)
    }).pipe(Effect.scoped, Effect.provide(layer))
  })

  it.effect.each<readonly [what: string, answer: object, expected: string | RegExp]>([
    [
      "a failure",
      { content: [{ type: "text", text: "no such table" }], isError: true },
      /^mcp_tool_error: .*no such table/s
    ],
    ["a failure without words", { content: [], isError: true }, /without a reason/],
    ["nothing", { content: [] }, ""],
    ["a picture", { content: [{ type: "image", data: "AQID", mimeType: "image/png" }] }, "image/png AQID"],
    ["what cannot be read", { content: [{ type: "hologram" }] }, /hologram/],
    [
      "what is too deep",
      JSON.parse(`{"content":[],"structuredContent":${'{"a":'.repeat(2_000)}1${"}".repeat(2_000)}}`),
      /nested deeper than 1000 levels/
    ]
  ])("may answer with %s", ([, answer, expected]) => {
    const { layer } = machine({ one: { tools: ["read"], answer } })
    return Effect.gen(function* () {
      const { tools } = yield* start({ one: at("one") })
      const [tool] = tools
      if (tool === undefined) return assert.fail("no tool")
      const failure = yield* failureOf(tool, {})
      if (failure !== undefined) return assert.match(failure, expected instanceof RegExp ? expected : /^$/)
      const { media = [], value } = yield* resultOf(tool, {})
      const shown = media.map(({ inlineData }) => `${inlineData?.mimeType} ${inlineData?.data}`).join() || String(value)
      if (typeof expected === "string") assert.strictEqual(shown, expected)
      else assert.match(shown, expected)
    }).pipe(Effect.scoped, Effect.provide(layer))
  })

  it.effect("may speak an older protocol, get what their settings name, and no key", () => {
    const { asked, layer, started } = machine({ old: { tools: ["read"], version: "2025-06-18" } })
    return Effect.gen(function* () {
      const { problems, tools } = yield* start({ old: at("old", { Token: "$TOKEN, ${TOKEN}" }) })
      assert.deepStrictEqual(problems, [])
      for (const tool of tools) assert.include(String((yield* resultOf(tool, {})).value), "old did read")
      if (way === "over HTTP") {
        assert.deepStrictEqual(new Set(asked.map(({ token }) => token)), new Set(["told on purpose, told on purpose"]))
        assert.strictEqual(asked.at(-1)?.["mcp-protocol-version"], "2025-06-18")
      } else {
        const [{ options } = {}] = started
        assert.deepStrictEqual(Object.keys(options?.env ?? {}).sort(), ["LANG", "PATH", "Token"])
        assert.strictEqual(options?.env?.["PATH"], "/bin")
      }
    }).pipe(Effect.scoped, Effect.provide(layer))
  })
})

describe("a server that cannot be used is left out, with the reason, and costs no other", () => {
  const rows: ReadonlyArray<
    readonly [settings: McpServersSettings[string], facts: RegExp, more?: Parameters<typeof machine>[1]]
  > = [
    [{ command: "./none" }, /\.\/none/],
    [{ command: "/bin/gone" }, /\/bin\/gone cannot be started/],
    [{ command: "/bin/x", env: { A: "$NOT_SET $TOKEN" } }, /name \$NOT_SET, not set/],
    [{ url: "http://x/mcp", headers: { A: "${NOT_SET}" } }, /name \$NOT_SET, not set/],
    [{ url: "http://me:word@x/mcp?key=abc#d" }, /^[^@]*HTTP 500$/],
    [{ url: "http://x/mcp" }, /refused with HTTP 403/, { status: 403 }],
    [{ command: "/bin/old" }, /protocol/i],
    [
      { command: "/bin/x" },
      /ended[^;]*; it said: Error: out of cheese$/,
      { play: () => ({ out: "hello\n", err: "Error: out of cheese\n  at x\n", ends: 3 }) }
    ]
  ]
  it.effect.each(rows)("%j", ([settings, facts, more]) => {
    const { layer } = machine({ sound: { tools: ["read"] }, old: { tools: [], version: "1999-01-01" } }, more)
    return Effect.gen(function* () {
      const fiber = yield* Effect.forkChild(start({ bad: settings, sound: { url: "http://sound/mcp" } }))
      yield* TestClock.adjust("1 second")
      const { problems, tools } = yield* Fiber.join(fiber)
      assert.deepStrictEqual(
        tools.map(({ name }) => name),
        ["mcp_sound_read"]
      )
      assert.lengthOf(problems, 1)
      for (const problem of problems) assert.match(problem, facts)
    }).pipe(Effect.scoped, Effect.provide(layer))
  })

  it.effect("when it is silent for ten seconds", () => {
    let isEnded = false
    const ends = Effect.onInterrupt(Effect.never, () => Effect.sync(() => void (isEnded = true)))
    const { layer } = machine({}, { play: () => ({ ends, replies: () => `{"hello":"world"}\n` }) })
    return Effect.gen(function* () {
      const fiber = yield* Effect.forkChild(start({ silent: { command: "/bin/silent" } }))
      yield* TestClock.adjust("9999 millis")
      assert.isUndefined(fiber.pollUnsafe())
      yield* TestClock.adjust("10 seconds")
      const { problems } = yield* Fiber.join(fiber)
      assert.match(problems.join(), /within 10s; it said: \{"hello":"world"\}$/)
      assert.isTrue(isEnded, "its process")
    }).pipe(Effect.scoped, Effect.provide(layer))
  })
})
