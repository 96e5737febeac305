import { Deferred, Effect, Exit, Fiber } from "effect"
import { hash } from "node:crypto"
import type { ServerResponse } from "node:http"
import * as zlib from "node:zlib"
import { pricesWith } from "../../../src/domain/tokens/Prices.ts"
import { type Dialect, dialects } from "../../../src/domain/wire/Dialect.ts"
import { type Block, codecs, isReference, type Json, signatureOf } from "../../support/GatewayDialects.ts"
import {
  compressedClient,
  filler,
  type FakeModel,
  type Fault,
  makeClient,
  makeGateway,
  makeProvider as provider,
  metricsToken,
  noted,
  type ProviderRequest,
  raw,
  small
} from "../../support/GatewayScene.ts"
import { fetchFrom, inMemory } from "../../support/memoryNet.ts"
import { isUnitTier, runsOf } from "../../support/runs.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** What the gateway does besides compressing: pass bytes, and tell both sides of failures. */

const makeProvider = (model: FakeModel) => provider(model, inMemory)

/** A gateway before a provider with this model. */
const scene = Effect.fnUntraced(function* (
  model = noted,
  options: Parameters<typeof makeGateway>[1] = {},
  settings: Parameters<typeof makeGateway>[3] = {}
) {
  const provider = yield* makeProvider(model)
  return { provider, gateway: yield* makeGateway(provider.url, options, new Map(), settings) }
})

/** Sends a body as a client of the dialect does. */
const post = (
  gateway: { readonly url: string },
  dialect: Dialect,
  body: Json = codecs[dialect].body(codecs[dialect].user("hello"), true),
  key = "secret-key"
) => {
  const isStream = body["stream"] === true || dialect === "gemini"
  return raw(
    `${gateway.url}${codecs[dialect].path(isStream)}`,
    ["Authorization", `Bearer ${key}`],
    JSON.stringify(body)
  )
}

/** Every dialect, streamed and not; outside of the laws tier each of them once, as what is read of answers has tests of its own. */
const ways = dialects.flatMap((dialect, at) =>
  [true, false]
    .filter((isStream) => runsOf(2, 1) === 2 || isStream === (at % 2 === 0))
    .map((isStream) => [dialect, isStream] as const)
)

/** The dialects of a rule that is none of a dialect: in the unit tier every other one. */
const some = (from: 0 | 1) => (isUnitTier ? dialects.filter((_, at) => at % 2 === from) : dialects)

const metricsOf = (gateway: { readonly url: string }) =>
  Effect.map(
    raw(`${gateway.url}/metrics`, ["Authorization", `Bearer ${metricsToken.text}`], "", "GET"),
    ({ body }) => body
  )

describe("a request that fits", () => {
  it.live("goes out byte for byte, and so does its answer", function* () {
    const { gateway, provider } = yield* scene()
    const body = `{ "model":"claude-sonnet-4-5",\n "messages" : [ {"role":"user","content":"h\\u00e9\\ud83d\\ude00 é"} ],\t"max_tokens":1e2 }`
    const headers = [
      "X-Api-Key",
      "k",
      "Content-Type",
      "application/json",
      "x-Odd",
      "1",
      "content-length",
      String(Buffer.byteLength(body))
    ]
    const direct = yield* raw(`${provider.url}/v1/messages`, headers, body)
    const through = yield* raw(`${gateway.url}/v1/messages?beta=true`, headers, body)
    const [one, other] = provider.requests
    assert.strictEqual(other?.text, body)
    assert.strictEqual(other?.url, "/v1/messages?beta=true")
    const sent = (rawHeaders: ReadonlyArray<string> = []) =>
      rawHeaders.filter((_, at) => !/^(?:host|connection)$/i.test(rawHeaders[at - (at % 2)] ?? ""))
    assert.deepStrictEqual(sent(other?.rawHeaders), sent(one?.rawHeaders))
    // The provider numbers its answers.
    assert.strictEqual(through.body.replace("msg_2", "msg_1"), direct.body)
  })

  it.live.each(["GET", "HEAD"])(
    "has an answer whose status line and headers are the provider's bytes (%s)",
    function* (method) {
      // The bytes of UTF-8, as headers have them.
      const bytes = Buffer.from("日本 é").toString("latin1")
      const url = yield* inMemory((_, response) => {
        response.writeHead(200, bytes, { "x-note": bytes, "content-length": 2 })
        response.end(Buffer.from("ok"))
      })
      const gateway = yield* makeGateway(url)
      const { headers, status } = yield* raw(`${gateway.url}/v1/files`, [], "", method)
      assert.deepStrictEqual([status, headers[headers.indexOf("x-note") + 1]], [200, bytes])
    }
  )

  it.live("may go to any path, and may be larger than what is read", function* () {
    const { gateway, provider } = yield* scene(noted, { maxBodyBytes: 1_000 })
    const models = yield* raw(`${gateway.url}/v1/models?after=x`, [], "", "GET")
    assert.deepStrictEqual(JSON.parse(models.body), { path: "/v1/models?after=x", text: "" })
    const body = JSON.stringify(codecs.anthropic.body(codecs.anthropic.user(filler(1).repeat(300)), false))
    yield* raw(`${gateway.url}/v1/messages`, ["Content-Length", String(Buffer.byteLength(body))], body)
    yield* raw(`${gateway.url}/v1/messages`, ["Transfer-Encoding", "chunked"], body)
    assert.deepStrictEqual(
      provider.requests.map(({ text }) => text === body),
      [true, true]
    )
  })
})

it.live.each([
  [["Content-Encoding", "compress"], "POST", 415],
  [["Connection", "Upgrade", "Upgrade", "websocket"], "GET", 426]
] as const)("requests that are refused, because they would pass unread %s", function* ([headers, method, status]) {
  const provider = yield* makeProvider(noted)
  const gateway = yield* makeGateway(provider.url)
  const answer = yield* raw(`${gateway.url}/v1/responses`, ["Authorization", "Bearer k", ...headers], "{}", method)
  assert.deepStrictEqual([answer.status, provider.requests.length], [status, 0])
  assert.include(JSON.parse(answer.body).error.message, "palimpsest gateway")
  const names = answer.headers.map((text) => text.toLowerCase())
  assert.strictEqual(names.includes("upgrade") && names.includes("http/1.1"), status === 426)
})

describe("failures", () => {
  it.live.each(dialects)("of a provider come back as they are (%s)", function* (dialect) {
    const provider = yield* makeProvider(() => ({ status: 429, body: `{"error": {"message":"slow down"}}` }))
    const gateway = yield* makeGateway(provider.url)
    const answer = yield* post(gateway, dialect)
    assert.strictEqual(answer.status, 429)
    assert.strictEqual(answer.body, `{"error": {"message":"slow down"}}`)
    assert.include(answer.headers.join("\n"), "retry-after\n1")
  })

  it.live.each(some(0))(
    "that come as garbage come back as they are, and the next answer is read again (%s)",
    function* (dialect) {
      let fault: Fault | undefined
      const provider = yield* makeProvider((request, at) => fault ?? noted(request, at))
      const gateway = yield* makeGateway(provider.url, small)
      const client = yield* compressedClient(dialect, gateway.url)
      for (const [type, body, encoding] of [
        ["text/event-stream", "data: {not json\n\n: comment\n\nevent: \u0000\ndata\n\n\uFFFD", undefined],
        ["application/json", `{"choices": [[[`, undefined],
        ["application/json", "null", undefined],
        ["text/html", "<html>502</html>", undefined],
        ["text/html", "no gzip", "gzip"],
        ["text/html", "no brotli", "br"]
      ] as const) {
        const headers = { "content-type": type, ...(encoding === undefined ? {} : { "content-encoding": encoding }) }
        fault = { write: (response) => void response.writeHead(200, headers).end(body) }
        const isStream = type === "text/event-stream"
        const sent = codecs[dialect].body([...client.history, ...codecs[dialect].user("and now?")], isStream)
        const answer = yield* raw(
          `${gateway.url}${codecs[dialect].path(isStream)}`,
          ["Authorization", "Bearer secret-key"],
          JSON.stringify(sent)
        )
        assert.deepStrictEqual([answer.status, answer.body], [200, body])
        fault = undefined
        yield* Effect.promise(() => client.say("and now?", () => ""))
      }
    }
  )

  it.live.each(dialects)("to reach a provider are reported in the dialect's form (%s)", function* (dialect) {
    const gateway = yield* makeGateway("http://nobody.memory")
    const answer = yield* post(gateway, dialect)
    assert.strictEqual(answer.status, 502)
    assert.include(JSON.parse(answer.body).error.message, "nobody.memory")
  })

  it.live.each([false, true])(
    "of a provider in the middle break the client's connection (compressed: %s)",
    function* (isCompressed) {
      let isBroken = false
      const provider = yield* makeProvider(() => (isBroken ? { breakAfter: 3 } : [{ kind: "text", text: "Noted." }]))
      const gateway = yield* makeGateway(provider.url, small)
      const client = isCompressed
        ? yield* compressedClient("anthropic", gateway.url)
        : makeClient("anthropic", gateway.url, true)
      isBroken = true
      const said = yield* Effect.exit(Effect.tryPromise(() => client.say("and now?", () => "")))
      assert.isTrue(Exit.isFailure(said))
    }
  )

  it.live("of the store leave requests unchanged", function* () {
    const provider = yield* makeProvider(noted)
    class Gone extends Map<string, string> {
      override set(): this {
        throw new Error("no space left")
      }
    }
    const gateway = yield* makeGateway(provider.url, small, new Gone())
    const client = yield* compressedClient("chat", gateway.url)
    const [last = ""] = provider.requests.slice(-1).map(({ text }) => text)
    assert.lengthOf(codecs.chat.messages(last), client.history.length)
    assert.match(yield* metricsOf(gateway), /palimpsest_gateway_failures_total [1-9]/)
  })

  it.live("caused by the gateway's changes do not reach the client", function* () {
    const provider = yield* makeProvider(({ text }) =>
      text.includes("left the window")
        ? { status: 400, body: `{"error":{"message":"unknown field"}}` }
        : [{ kind: "text", text: "Noted." }]
    )
    const gateway = yield* makeGateway(provider.url, { ...small, threshold: 0.4 })
    const client = makeClient("gemini", gateway.url, true)
    for (let turn = 1; turn <= 4; turn += 1)
      yield* Effect.promise(() => client.say(`${turn}: ${filler(turn)}`, () => ""))
    assert.isTrue(provider.requests.some(({ text }) => text.includes("left the window")))
    assert.lengthOf(client.history, 8)
  })
})

describe("a request that a provider refuses as too long", () => {
  const window = `{"error":{"message":"prompt is too long: 200001 tokens > 200000 maximum","code":"context_length_exceeded"}}`
  const minute = `{"error":{"message":"Request too large for m on tokens per min (TPM): Limit 30000, Requested 35000."}}`

  it.live.each([
    ...dialects.map((dialect) => [dialect, 400, window] as const),
    ["chat", 413, minute] as const,
    ["chat", 429, minute] as const,
    ["chat", 500, window] as const,
    // With the status of success, as an event in place of those of an answer, and as a body.
    ["chat", 200, `event: error\ndata: ${window}\n\n`] as const,
    ["chat", 200, `data: ${window}\n\ndata: [DONE]\n\n`] as const,
    ["anthropic", 200, window] as const
  ])("is compressed and sent again (%s, %s)", function* ([dialect, status, body]) {
    const provider = yield* makeProvider(({ text }) =>
      text.length > 9_000 ? { status, body } : [{ kind: "text", text: "Noted." }]
    )
    const gateway = yield* makeGateway(provider.url, { window: 8_192 })
    const client = yield* compressedClient(dialect, gateway.url, false)
    assert.lengthOf(client.history, 12)
  })
})

it.live("a request that is refused as too long again is told to the client, and not sent a third time", function* () {
  const refusal = `{"error":{"message":"prompt is too long: 200001 tokens > 200000 maximum"}}`
  let isRefused = false
  const provider = yield* makeProvider((request, at) =>
    isRefused ? { status: 400, body: refusal } : noted(request, at)
  )
  const gateway = yield* makeGateway(provider.url, { window: 8_192 })
  const client = yield* compressedClient("anthropic", gateway.url, false)
  isRefused = true
  const before = provider.requests.length
  const said = yield* Effect.flip(Effect.tryPromise(() => client.say("and now?", () => "")))
  assert.include(String(said.cause), refusal)
  assert.strictEqual(provider.requests.length - before, 2)
})

it.live.each(ways)(
  "a call of ours beside one of the client is answered with the client's own result (%s, stream: %s)",
  function* ([dialect, isStream]) {
    let step = 0
    const provider = yield* makeProvider(({ text }) => {
      const name = /"(palimpsest_recall)"/.exec(text)?.[1]
      if (name === undefined || step > 1) return [{ kind: "text", text: "Noted." }]
      step += 1
      const calls: ReadonlyArray<Block> = [
        { kind: "call", id: "c1", name, args: { grep: "turn 1 tells of part 61" } },
        { kind: "call", id: "c2", name: "read_file", args: { path: "a" } }
      ]
      return step === 1 ? [{ kind: "text", text: "Both. " }, ...calls] : [{ kind: "text", text: "Done." }]
    })
    const gateway = yield* makeGateway(provider.url, small)
    const client = yield* compressedClient(dialect, gateway.url, isStream)
    assert.strictEqual(step, 2)
    const text = JSON.stringify(client.history)
    assert.include(text, "read_file")
    assert.notInclude(text, "palimpsest")
    const answered = provider.requests.find((request) => codecs[dialect].messages(request.text).join().includes('"c1"'))
    assert.include(codecs[dialect].messages(answered?.text ?? "").join(), "Line 0 of turn 1")
  }
)

it.live.each(ways)(
  "recalls that the operator wants to see are shown in the answer, and are not part of the conversation (%s, stream: %s)",
  function* ([dialect, isStream]) {
    let step = 0
    const provider = yield* makeProvider(({ text }) => {
      const name = /"(palimpsest_recall)"/.exec(text)?.[1]
      if (name === undefined || step > 0) return [{ kind: "text", text: "Noted." }]
      step += 1
      return [
        // The provider sends such a text, and refuses to take it back.
        ...(dialect === "anthropic" ? [{ kind: "text" as const, text: "" }] : []),
        { kind: "text", text: "Let me see.\n" },
        { kind: "call", id: "r1", name, args: { grep: "part 61" } }
      ]
    })
    const gateway = yield* makeGateway(provider.url, { ...small, showRecalls: true })
    const client = yield* compressedClient(dialect, gateway.url, isStream)
    assert.include(JSON.stringify(client.history), "[recalled part 61]")
    for (const { text } of provider.requests) assert.notInclude(text, "[recalled part 61]")
    assert.strictEqual(step, 1)
  }
)

it.live.each(ways)(
  "a snapshot by the client's model is asked for with the client's request and key, and not shown (%s, stream: %s)",
  function* ([dialect, isStream]) {
    const isQuestion = ({ text }: ProviderRequest) => text.includes("is now a record")
    const written = "<state_snapshot>\n<overall_goal>\n- intent: fill the window\n</overall_goal>\n</state_snapshot>"
    const provider = yield* makeProvider((request) => [
      { kind: "text", text: isQuestion(request) ? written : "Noted." }
    ])
    const gateway = yield* makeGateway(provider.url, { ...small, snapshots: "model" })
    const client = makeClient(dialect, gateway.url, isStream)
    const line = "A line that fills the window of the model. ".repeat(12)
    // A request near the threshold leads to the question, which goes out behind its answer.
    const ask = Effect.promise(() => client.say(`${client.history.length}: ${line}`, () => ""))
    // The longer it takes, the more time has the question: on a busy machine, the next request would always come before it.
    const pause = Effect.suspend(() => Effect.sleep((client.history.length / 20) ** 2))
    yield* Effect.repeat(Effect.andThen(ask, pause), {
      until: () => provider.requests.some(isQuestion)
    })
    const question = provider.requests.find(isQuestion)
    const asked = codecs[dialect].messages(question?.text ?? "").slice(0, -1)
    const isAsked = ({ text }: ProviderRequest) => codecs[dialect].messages(text).join() === asked.join()
    assert.isTrue(provider.requests.some(isAsked))
    assert.strictEqual(question?.headers.authorization, "Bearer secret-key")
    assert.notInclude(JSON.stringify(client.history), "state_snapshot")
  }
)

describe("the operator", () => {
  it.live.each(dialects)("limits what a key may use (%s)", function* (dialect) {
    const { gateway } = yield* scene(noted, {}, { requests: 1 })
    const ask = (key: string) => post(gateway, dialect, undefined, key)
    assert.strictEqual((yield* ask("one")).status, 200)
    const refused = yield* ask("one")
    assert.strictEqual(refused.status, 429)
    assert.include(JSON.parse(refused.body).error.message, "1 requests a minute")
    assert.strictEqual((yield* ask("two")).status, 200)
  })

  it.live("limits what requests that run at the same time may cost together", function* () {
    const held: Array<ServerResponse> = []
    const { gateway } = yield* scene(
      () => ({ write: (response: ServerResponse) => void held.push(response) }),
      {},
      { tokens: 100 }
    )
    const statuses: Array<number> = []
    const ask = Effect.map(post(gateway, "chat"), ({ status }) => void statuses.push(status))
    const asked = yield* Effect.forkChild(Effect.all(Array<typeof ask>(30).fill(ask), { concurrency: "unbounded" }))
    yield* Effect.repeat(Effect.sleep("1 millis"), { until: () => statuses.length + held.length >= 30 })
    for (const response of held) response.writeHead(200, { "content-type": "application/json" }).end("{}")
    yield* Fiber.join(asked)
    assert.deepStrictEqual(statuses, [...Array<number>(29).fill(429), 200])
  })

  it.live("limits them by their texts, however small the bodies are compressed", function* () {
    const held: Array<ServerResponse> = []
    const { gateway } = yield* scene(
      () => ({ write: (response: ServerResponse) => void held.push(response) }),
      {},
      { tokens: 100_000 }
    )
    const text = JSON.stringify({
      ...codecs.chat.body(codecs.chat.user("word ".repeat(100_000)), false),
      max_tokens: 1
    })
    const statuses: Array<number> = []
    const ask = Effect.promise(() =>
      fetchFrom(`${gateway.url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: "Bearer key", "content-encoding": "gzip" },
        body: zlib.gzipSync(text)
      }).then(async (response) => {
        await response.text()
        statuses.push(response.status)
      })
    )
    const asked = yield* Effect.forkChild(Effect.all([ask, ask], { concurrency: "unbounded" }))
    yield* Effect.repeat(Effect.sleep("1 millis"), { until: () => statuses.length + held.length >= 2 })
    for (const response of held) response.writeHead(200, { "content-type": "application/json" }).end("{}")
    yield* Fiber.join(asked)
    assert.deepStrictEqual(statuses, [429, 200])
  })

  it.live.each([
    ["a byte that is no UTF-8", (text: string) => Buffer.from(text.replace("hello", "\u00ff"), "latin1"), "identity"],
    ["an encoding that it does not have", (text: string) => Buffer.from(text), "gzip"]
  ] as const)("limits no tokens of a body that cannot be read: %s", function* ([, bytesOf, encoding]) {
    const { gateway, provider } = yield* scene(noted, {}, { tokens: 1_000_000 })
    const text = JSON.stringify({ ...codecs.responses.body(codecs.responses.user("hello"), false), background: true })
    const answer = yield* Effect.promise(() =>
      fetchFrom(`${gateway.url}/v1/responses`, {
        method: "POST",
        headers: { authorization: "Bearer key", "content-encoding": encoding },
        body: bytesOf(text)
      }).then(async (response) => [response.status, await response.text()])
    )
    assert.strictEqual(answer[0], 403)
    assert.include(answer[1], "with a budget of tokens the body must be JSON that can be read")
    assert.lengthOf(provider.requests, 0)
  })

  it.live("names tenants, whose keys count together", function* () {
    const keys = ["one", "two"].map((key) => `sha256:${hash("sha256", key, "hex")}`)
    const { gateway } = yield* scene(noted, {}, { tenants: { acme: { keys, budgets: { requests: 2 } } } })
    const ask = (key: string) => Effect.map(post(gateway, "chat", undefined, key), ({ status }) => status)
    const statuses = yield* Effect.forEach(["one", "two", "one", "two", "three"], ask)
    assert.deepStrictEqual(statuses, [200, 200, 429, 429, 401])
    assert.match(yield* metricsOf(gateway), /palimpsest_gateway_tokens_total\{[^}]*tenant="acme"/)
  })

  it.live("counts the cost by the operator's prices", function* () {
    const prices = pricesWith({ "gpt-4o": { price: { input: 1_000_000, output: 1_000_000 } } })
    const { gateway } = yield* scene(noted, { prices })
    // The counters are those of the process.
    const sums = Effect.map(metricsOf(gateway), (metrics) => {
      const sum = (name: string): number =>
        [...metrics.matchAll(new RegExp(`^palimpsest_gateway_${name}(?:\\{[^}]*\\})? ([0-9]+)$`, "gm"))].reduce(
          (total, [, value]) => total + Number(value),
          0
        )
      return { cost: sum("cost_microdollars_total"), tokens: sum("tokens_total") }
    })
    const before = yield* sums
    yield* post(gateway, "chat")
    const after = yield* sums
    assert.isAbove(after.tokens, before.tokens)
    // A dollar for each token.
    assert.strictEqual(after.cost - before.cost, (after.tokens - before.tokens) * 1_000_000)
  })

  it.live("sees what clients compacted themselves", function* () {
    const { gateway } = yield* scene(noted, small)
    const client = makeClient("anthropic", gateway.url, true)
    const summary = "This session is being continued from a previous conversation that ran out of context."
    yield* Effect.promise(() => client.say(`${summary}\n${filler(1)}\n${filler(2)}`, () => ""))
    yield* Effect.promise(() => client.say(filler(3), () => ""))
    assert.match(yield* metricsOf(gateway), /palimpsest_gateway_client_compactions_total\{client="claude"\} 1\n/)
  })

  it.live("names the keys that may use it", function* () {
    const provider = yield* makeProvider(noted)
    const key = `sha256:${hash("sha256", "good", "hex")}`
    const gateway = yield* makeGateway(provider.url, { keys: [key] })
    const body = JSON.stringify(codecs.anthropic.body(codecs.anthropic.user("hello"), true))
    const ask = (given: string) => raw(`${gateway.url}/v1/messages`, ["X-Api-Key", given], body)
    assert.strictEqual((yield* ask("bad")).status, 401)
    assert.strictEqual((yield* ask("good")).status, 200)
    assert.lengthOf(provider.requests, 1)
  })
})

describe("what is kept", () => {
  it.live("lets a restarted gateway send the same bytes", function* () {
    const provider = yield* makeProvider(noted)
    const first = yield* makeGateway(provider.url, small)
    const client = yield* compressedClient("responses", first.url)
    const second = yield* makeGateway(provider.url, small, first.held)
    yield* Effect.promise(() => client.say("Go on.", () => ""))
    const again = makeClient("responses", second.url, true)
    again.history.push(...client.history.slice(0, -2))
    yield* Effect.promise(() => again.say("Go on.", () => ""))
    const [one, other] = provider.requests.slice(-2)
    assert.strictEqual(other?.text, one?.text)
  })

  it.live("belongs to the key of the client", function* () {
    const { gateway } = yield* scene(noted, small)
    yield* compressedClient("chat", gateway.url, true, "key-one")
    const owners = () => new Set([...gateway.held.keys()].map((name) => name.split("/")[0]))
    assert.strictEqual(owners().size, 1)
    yield* compressedClient("chat", gateway.url, true, "key-two")
    assert.strictEqual(owners().size, 2)
    assert.notInclude([...gateway.held].flat().join(), "key-one")
  })

  it.live("belongs to the conversation that the header names, which is not sent on", function* () {
    const { gateway, provider } = yield* scene(noted, small)
    const { history } = yield* compressedClient("chat", gateway.url)
    const body = JSON.stringify(codecs.chat.body([...history, ...codecs.chat.user("Go on.")], true))
    const ask = (headers: ReadonlyArray<string>) =>
      Effect.map(
        raw(`${gateway.url}/v1/chat/completions`, ["Authorization", "Bearer secret-key", ...headers], body),
        () => provider.requests.at(-1)
      )
    const unnamed = yield* ask([])
    const named = yield* ask(["X-Palimpsest-Session", "another"])
    const again = yield* ask(["X-Palimpsest-Session", "another"])
    assert.include(unnamed?.text, "left the window")
    // It has a compression of its own.
    assert.notStrictEqual(named?.text, unnamed?.text)
    assert.strictEqual(again?.text, named?.text)
    assert.isUndefined(named?.headers["x-palimpsest-session"])
  })

  it.live.each([
    ["anthropic", "/v1/messages/count_tokens"],
    ["gemini", "/v1beta/models/gemini-2.5-flash:countTokens"]
  ] as const)("is what a count of tokens counts (%s)", function* ([dialect, path]) {
    const { gateway, provider } = yield* scene(noted, small)
    const { history } = yield* compressedClient(dialect, gateway.url)
    const body = JSON.stringify(codecs[dialect].body([...history, ...codecs[dialect].user("Go on.")], false))
    const headers = ["Authorization", "Bearer secret-key"]
    const counted = yield* raw(`${gateway.url}${path}`, headers, body)
    // The provider of the tests repeats what a path asks that it does not know.
    const { text = provider.requests.at(-1)?.text ?? "" }: { readonly text?: string } = JSON.parse(counted.body)
    yield* raw(`${gateway.url}${codecs[dialect].path(false)}`, headers, body)
    assert.include(text, "left the window")
    assert.deepStrictEqual(
      codecs[dialect].messages(text),
      codecs[dialect].messages(provider.requests.at(-1)?.text ?? "")
    )
  })

  it.live("is left where the client goes back before it", function* () {
    const { gateway, provider } = yield* scene(noted, small)
    const client = yield* compressedClient("anthropic", gateway.url)
    const back = makeClient("anthropic", gateway.url, true)
    back.history.push(...client.history.slice(0, 2))
    yield* Effect.promise(() => back.say("Something else.", () => ""))
    const [last] = provider.requests.slice(-1)
    assert.deepStrictEqual(
      codecs.anthropic.messages(last?.text ?? ""),
      back.history.slice(0, 3).map((message) => JSON.stringify(message))
    )
    yield* Effect.promise(() => client.say("The first again.", () => ""))
    assert.include(provider.requests.at(-1)?.text ?? "", "left the window")
  })
})

describe("the whole content of another conversation", () => {
  it.live.each(some(1))("is given back to its owner, and to nobody else (%s)", function* (dialect) {
    const codec = codecs[dialect]
    const provider = yield* makeProvider(({ text }) => {
      const asked = /Recall (h_\w+)\./.exec(codec.messages(text).at(-1) ?? "")
      return asked === null
        ? [{ kind: "text", text: "Noted." }]
        : [{ kind: "call", id: "r1", name: "palimpsest_recall", args: { handle: asked[1] } }]
    })
    const gateway = yield* makeGateway(provider.url, small)
    yield* compressedClient(dialect, gateway.url, true, "one")
    const view = [...gateway.held].find(([key]) => key.includes("/view/"))?.[1]
    const handle = JSON.parse(view ?? "{}").dropped
    assert.match(handle, /^h_/)
    for (const [key, isOwners] of [
      ["one", true],
      ["another", false]
    ] as const) {
      const fork = makeClient(dialect, gateway.url, true, key)
      for (let turn = 11; turn <= 16; turn += 1)
        yield* Effect.promise(() => fork.say(`${turn}: ${filler(turn)}`, () => ""))
      yield* Effect.promise(() => fork.say(`Recall ${handle}.`, () => ""))
      assert.strictEqual(provider.requests.at(-1)?.text.includes("Line 0 of turn 1 "), isOwners, key)
    }
  })
})

describe("items of answers that a client refers to by id", () => {
  const codec = codecs.responses
  /** A client that keeps only the ids of what the model said, as the AI SDK does where the provider stores answers. */
  const talker = (first: string, isStream: boolean, reference: Json = { type: "item_reference" }) => {
    const history: Array<Json> = []
    return {
      history,
      say: async (text: string, url = first) => {
        history.push(...codec.user(text))
        const { store: _, ...body } = codec.body(history, isStream)
        const response = await fetchFrom(`${url}${codec.path(isStream)}`, {
          method: "POST",
          headers: { authorization: "Bearer secret-key" },
          body: JSON.stringify(body)
        })
        const answer = await response.text()
        assert.strictEqual(response.status, 200, answer)
        const last = isStream ? (/.*^data: (.*)$/ms.exec(answer)?.[1] ?? "") : answer
        const { output } = isStream ? JSON.parse(last).response : JSON.parse(last)
        history.push(...output.map(({ id }: Json) => ({ ...reference, id })))
        return JSON.stringify(output)
      }
    }
  }

  it.live.each([
    [true, { type: "item_reference" }],
    [false, { type: "item_reference" }],
    [false, {}]
  ] as const)(
    "are read by compressions and recalls, and none is sent twice (stream: %s, %j)",
    function* ([isStream, reference]) {
      let wanted = ""
      const provider = yield* makeProvider(({ text }, at) => {
        const isFound = text.includes("function_call_output") && text.includes(`walnut-${wanted} `)
        return wanted === "" || isFound
          ? [
              { kind: "thought", text: "", signature: signatureOf(`${at}`) },
              { kind: "text", text: `I saw walnut-${at} there.` }
            ]
          : [{ kind: "call", id: `r${at}`, name: "palimpsest_recall", args: { grep: `walnut-${wanted}` } }]
      })
      const gateway = yield* makeGateway(provider.url, small)
      const client = talker(gateway.url, isStream, reference)
      for (let turn = 0; turn < 12; turn += 1) yield* Effect.promise(() => client.say(`${turn}: ${filler(turn)}`))
      const { input }: Json = JSON.parse(provider.requests.at(-1)?.text ?? "")
      assert.isFalse(input.some(isReference))
      wanted = "1"
      // A gateway that was restarted reads them from its store.
      const again = yield* makeGateway(provider.url, small, gateway.held)
      yield* Effect.promise(() => client.say("What did you see first?", again.url))
      assert.include(provider.requests.at(-1)?.text ?? "", "walnut-1 ")
      wanted = ""
      for (const text of ["Thanks.", "And now?"]) yield* Effect.promise(() => client.say(text))
    }
  )

  it.live("that never passed through here leave the request as it is", function* () {
    const { gateway, provider } = yield* scene(noted, small)
    const client = talker(gateway.url, false)
    client.history.push({ type: "item_reference", id: "msg_elsewhere" })
    for (let turn = 0; turn < 12; turn += 1) {
      client.history.push(...codec.user(filler(turn)), ...codec.assistant([{ kind: "text", text: "Noted." }]))
    }
    yield* Effect.promise(() => client.say(filler(12)))
    assert.include(provider.requests.at(-1)?.text ?? "", "msg_elsewhere")
  })
})

/** What this Node can compress with. */
const encoders: Readonly<Record<string, (text: string) => Buffer>> = {
  gzip: zlib.gzipSync,
  deflate: zlib.deflateSync,
  br: zlib.brotliCompressSync,
  ...("zstdCompressSync" in zlib ? { zstd: zlib.zstdCompressSync } : {})
}

describe("items of an answer", () => {
  const body = JSON.stringify(codecs.responses.body(codecs.responses.user("hello"), false))
  it.live.each([
    ["that is not to be stored", body, false],
    ["that is not to be stored, as it says with other blanks", body.replace(`"store":`, `"store"\n : `), false],
    ["that is to be stored", body.replace(`"store":false`, `"store":true`), true],
    [
      "that is to be stored, where only a part of the request says otherwise",
      body.replace(`"store":false`, `"metadata":{"store":false}`),
      true
    ]
  ] as const)("%s", function* ([, text, isKept]) {
    const { gateway } = yield* scene()
    for (const [at, encoding] of ["identity", ...Object.keys(encoders)].entries()) {
      const answer = yield* Effect.promise(() =>
        fetchFrom(`${gateway.url}/v1/responses`, {
          method: "POST",
          headers: { authorization: `Bearer key-${at}`, "content-encoding": encoding },
          body: encoders[encoding]?.(text) ?? text
        }).then(async (response) => [response.status, await response.text()])
      )
      assert.strictEqual(answer[0], 200, encoding)
      yield* Effect.yieldNow
      const isStored = Effect.sync(() => [...gateway.held.keys()].filter((key) => key.includes("/item/")).length)
      assert.strictEqual(yield* isStored, isKept ? at + 1 : 0, encoding)
    }
  })
})

it.live.each(ways)(
  "a provider that compresses its answers unasked is read, also where the model recalls something (%s, stream: %s)",
  function* ([dialect, isStream]) {
    const codec = codecs[dialect]
    const counts = { input: 5, output: 2 }
    let encoding: string | undefined
    const provider = yield* makeProvider(({ text }, at) => {
      if (encoding === undefined) return [{ kind: "text", text: "Noted." }]
      const wanted = `nothing of ${encoding}`
      const said: ReadonlyArray<Block> = text.includes(wanted)
        ? [{ kind: "text", text: "It is 12." }]
        : [{ kind: "call", id: `r${at}`, name: "palimpsest_recall", args: { grep: wanted } }]
      const answer = { number: at, blocks: said, counts }
      const written = isStream ? codec.events(answer).join("") : codec.json(answer)
      const headers = {
        "content-type": isStream ? "text/event-stream" : "application/json",
        "content-encoding": encoding
      }
      return { write: (response) => void response.writeHead(200, headers).end(encoders[encoding ?? ""]?.(written)) }
    })
    const gateway = yield* makeGateway(provider.url, small)
    const client = yield* compressedClient(dialect, gateway.url, isStream)
    for (const name of Object.keys(encoders)) {
      encoding = name
      const before = provider.requests.length
      const { words } = yield* Effect.promise(() => client.say(`And with ${name}?`, () => ""))
      assert.deepStrictEqual([words, provider.requests.length - before], ["It is 12.", 2], name)
    }
    encoding = "compress"
    const body = JSON.stringify(codec.body([...client.history, ...codec.user("And now?")], isStream))
    const answer = yield* raw(`${gateway.url}${codec.path(isStream)}`, ["Authorization", "Bearer secret-key"], body)
    assert.deepStrictEqual([answer.status, answer.body.includes("content-encoding compress")], [502, true])
  }
)

describe("images and files that left the window", () => {
  const data = Buffer.alloc(9_000, 7).toString("base64")
  const attached: Readonly<
    Record<(typeof dialects)[number], readonly [message: Json, named: string, comesBack: RegExp | undefined]>
  > = {
    anthropic: [
      {
        role: "user",
        content: [
          { type: "text", text: "Look." },
          { type: "image", source: { type: "base64", media_type: "image/png", data } }
        ]
      },
      "image/png of 9000 bytes",
      /"tool_result".{0,80}"type":"image","source":\{"type":"base64"/
    ],
    responses: [
      {
        role: "user",
        content: [
          { type: "input_text", text: "Look." },
          { type: "input_file", file_id: "file-ABC1" }
        ]
      },
      "file-ABC1",
      /"function_call_output".{0,80}"type":"input_file","file_id":"file-ABC1"/
    ],
    chat: [
      {
        role: "user",
        content: [
          { type: "text", text: "Look." },
          { type: "image_url", image_url: { url: "https://img.example/ABC1.png" } }
        ]
      },
      "https://img.example/ABC1.png",
      undefined
    ],
    gemini: [
      {
        role: "user",
        parts: [{ text: "Look." }, { fileData: { fileUri: "https://files.example/ABC1", mimeType: "application/pdf" } }]
      },
      "https://files.example/ABC1",
      /"functionResponse".*"fileUri":"https:\/\/files\.example\/ABC1"/
    ]
  }

  it.live.each(dialects)(
    "are named in the snapshot, are found, and come back as what they are (%s)",
    function* (dialect) {
      const codec = codecs[dialect]
      const [message, name, comesBack] = attached[dialect]
      let asked: object = {}
      const provider = yield* makeProvider(({ text }, at) => {
        const isAsked = /Recall it\./.test(codec.messages(text).at(-1) ?? "")
        return isAsked
          ? [{ kind: "call", id: `r${at}`, name: "palimpsest_recall", args: asked }]
          : [{ kind: "text", text: "Noted." }]
      })
      const gateway = yield* makeGateway(provider.url, small)
      const client = makeClient(dialect, gateway.url, true)
      client.history.push(message, ...codec.assistant([{ kind: "text", text: "I see." }]))
      for (let turn = 1; turn <= 8; turn += 1)
        yield* Effect.promise(() => client.say(`${turn}: ${filler(turn)}`, () => ""))
      const last = () => codec.messages(provider.requests.at(-1)?.text ?? "").join("\n")
      assert.notInclude(last(), data)
      const handle = new RegExp(`${name.replaceAll(/[.?]/g, "\\$&")}\\]: recall (h_\\w+)`).exec(last())?.[1]
      assert.isDefined(handle)
      asked = { grep: name.replace(" of 9000 bytes", "") }
      yield* Effect.promise(() => client.say("Recall it.", () => ""))
      assert.include(last().slice(last().lastIndexOf("Recall it.")), handle)
      asked = { handle }
      yield* Effect.promise(() => client.say("Recall it.", () => ""))
      if (comesBack !== undefined) assert.match(last().slice(last().lastIndexOf("Recall it.")), comesBack)
    }
  )
})

it.live("connections of a client that disconnects end the provider's answer", function* () {
  const closed = yield* Deferred.make<void>()
  const url = yield* inMemory((request, response) => {
    request.resume()
    response.on("close", () => Deferred.doneUnsafe(closed, Effect.void))
    response.writeHead(200, { "content-type": "text/event-stream" })
    response.write("event: ping\ndata: {}\n\n")
  })
  const gateway = yield* makeGateway(url)
  const leaving = new AbortController()
  const response = yield* Effect.promise(() =>
    fetchFrom(`${gateway.url}/v1/messages`, {
      method: "POST",
      body: `{"messages":[{}],"stream":true}`,
      signal: leaving.signal
    })
  )
  yield* Effect.promise(async () => response.body?.getReader().read())
  leaving.abort()
  yield* Deferred.await(closed)
})
