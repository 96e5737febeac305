import { Effect, Redacted, Schema } from "effect"
import { hash } from "node:crypto"
import { headerPairs } from "../../../src/domain/gateway/HeaderList.ts"
import { type RequestTarget, requestTarget } from "../../../src/domain/gateway/RequestTarget.ts"
import { isModelRequest, type Provider, providerOf, providers, routeOf } from "../../../src/domain/gateway/Route.ts"
import {
  type AccessOptions,
  accessOf,
  type ClientAccess,
  type Refusal
} from "../../../src/layers/gateway/ClientAccess.ts"
import { TenantLimiter } from "../../../src/services/serve/TenantLimiter.ts"
import { runsOf } from "../../support/runs.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** Who sends a request, who pays, and what goes upstream. */

const tokens: Readonly<Record<string, string>> = {
  "token-of-acme": "acme",
  "token-of-evil": "evil",
  "second-of-evil": "evil"
}

const operatorKeys: Readonly<Record<Provider, string>> = {
  anthropic: "operator-anthropic",
  gemini: "operator-gemini",
  openai: "operator-openai"
}

const served: AccessOptions = {
  tokens: {
    tenantOf: (token) => Effect.succeed(tokens[Redacted.value(token)]),
    providerKeys: {
      anthropic: Redacted.make(operatorKeys.anthropic),
      gemini: Redacted.make(operatorKeys.gemini),
      openai: Redacted.make(operatorKeys.openai)
    },
    ownKeys: true
  }
}

const targetOf = (text: string): RequestTarget => requestTarget(text) ?? { path: "", query: [] }

interface Sent {
  readonly method?: string
  readonly path: string
  readonly headers: ReadonlyArray<string>
  readonly provider: Provider
}

/** Headers as Node's server has them. */
const parsed = (headers: ReadonlyArray<string>): Record<string, string> => {
  const all: Record<string, string> = {}
  for (const [name, value] of headerPairs(headers)) {
    const key = name.toLowerCase()
    const before = all[key]
    if (before === undefined) all[key] = value
    else if (key !== "authorization" && key !== "host") all[key] = `${before}, ${value}`
  }
  return all
}

const access = (
  options: AccessOptions,
  { headers, method = "POST", path, provider }: Sent,
  limits = {}
): Effect.Effect<ClientAccess | Refusal> => {
  const target = targetOf(path)
  const request = { method, headers: parsed(headers), rawHeaders: [...headers] }
  return accessOf(options, request, target, { provider, route: routeOf(method, target) }).pipe(
    Effect.provide(TenantLimiter.layer({ limits }))
  )
}

const keyPlaces: ReadonlyArray<(key: string) => { readonly headers?: ReadonlyArray<string>; readonly query?: string }> =
  [
    (key) => ({ headers: ["Authorization", `Bearer ${key}`] }),
    (key) => ({ headers: ["authorization", `bearer  ${key}`] }),
    (key) => ({ headers: ["Authorization", key] }),
    (key) => ({ headers: ["X-Api-Key", key] }),
    (key) => ({ headers: ["x-goog-api-key", key] }),
    (key) => ({ headers: ["API-KEY", key] }),
    (key) => ({ headers: ["X-Palimpsest-Token", key] }),
    (key) => ({ query: `key=${key}` }),
    (key) => ({ query: `%6bey=${key}` }),
    (key) => ({ query: `alt=sse&key=${key}&key=${key}` }),
    (key) => ({ query: `access_token=${key}` }),
    (key) => ({ query: `$key=${key}` }),
    (key) => ({ query: `api_key=${key}` })
  ]

const paths: ReadonlyArray<readonly [method: string, path: string]> = [
  ["POST", "/v1/messages"],
  ["POST", "//v1/messages/"],
  ["POST", "http://any/v1/messages"],
  ["POST", "/v1/messages/count_tokens"],
  ["POST", "/v1/chat/completions"],
  ["POST", "/v1/responses"],
  ["POST", "/v1beta/models/m:generateContent"],
  ["POST", "/v1beta/models/m%3AstreamGenerateContent"],
  ["POST", "/v1beta/tunedModels/m:generateContent"],
  ["POST", "/v1/completions"],
  ["POST", "/v1/messages/batches"],
  ["GET", "/v1/models"],
  ["GET", "/v1/files"],
  ["DELETE", "/v1/responses/resp_1"],
  ["GET", "/v1beta/files"],
  ["PATCH", "/v1/organization/x"]
]

const keys = [...Object.keys(tokens), "own-key", "other-key", ""]

const indexOf = (all: ReadonlyArray<unknown>) =>
  Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: all.length - 1 }))

const Case = Schema.Struct({
  path: indexOf(paths),
  provider: Schema.Literals(providers),
  keys: Schema.Array(Schema.Struct({ place: indexOf(keyPlaces), key: Schema.Literals(keys) })).check(
    Schema.isMaxLength(3)
  ),
  session: Schema.Literals(["", "mine"])
})
type Case = typeof Case.Type

/** The request of a case, with other keys. */
const sentOf = ({ keys: placed, path: at, provider, session }: Case, keyOf = (key: string) => key): Sent => {
  const [method, plain] = paths[at] ?? ["", ""]
  const put = placed.map(({ key, place }) => keyPlaces[place]?.(keyOf(key)))
  const query = put.flatMap((each) => each?.query ?? [])
  const path = query.length === 0 ? plain : `${plain}?${query.join("&")}`
  const route = routeOf(method, targetOf(path))
  const named = session === "" ? [] : ["X-Palimpsest-Session", session]
  return {
    method,
    path,
    headers: [...put.flatMap((each) => each?.headers ?? []), ...named],
    provider: route === undefined ? provider : providerOf(route, targetOf(path))
  }
}

const otherTenant: Readonly<Record<string, string>> = {
  "token-of-acme": "token-of-evil",
  "token-of-evil": "token-of-acme",
  "second-of-evil": "token-of-acme"
}

describe("two tenants, with any keys in any places, on any path", () => {
  it.effect.prop(
    "get the account, the owner and the key that are theirs, and no token goes upstream",
    [Case],
    ([given]) =>
      Effect.gen(function* () {
        const request = sentOf(given)
        const got = yield* access(served, request)
        if ("status" in got) return
        const sent = [...got.carried.headers, ...got.carried.query.map(({ text }) => text)].join("\n")
        for (const token of Object.keys(tokens)) assert.notInclude(sent, token)
        const used = given.keys.map(({ key }) => key).filter((key) => key !== "")
        const target = targetOf(request.path)
        if (got.isOperators) {
          assert.isTrue(isModelRequest(request.method ?? "", target, routeOf(request.method ?? "", target)))
          assert.include(sent, operatorKeys[request.provider])
          for (const key of used) assert.notInclude(sent, key)
        } else for (const key of Object.values(operatorKeys)) assert.notInclude(sent, key)
        if (got.tenant === undefined) return
        assert.include(
          used.map((key) => tokens[key]),
          got.tenant
        )
        assert.strictEqual(got.account, got.tenant)
        const other = yield* access(
          served,
          sentOf(given, (key) => otherTenant[key] ?? key)
        )
        if ("status" in other || other.tenant === got.tenant) return
        assert.notStrictEqual(other.owner, got.owner)
        assert.notStrictEqual(other.account, got.account)
      }),
    { arbitrary: { runs: runsOf(5_000, 500) } }
  )
})

const statusOf = (got: ClientAccess | Refusal) => ("status" in got ? got.status : 200)

describe("the key of a request", () => {
  it.effect.each([
    {
      provider: "openai",
      headers: ["Authorization", "Bearer A", "X-Api-Key", "B"],
      sent: ["Authorization", "Bearer A"]
    },
    { provider: "anthropic", headers: ["X-Api-Key", "A", "x-goog-api-key", "B"], sent: ["X-Api-Key", "A"] },
    {
      provider: "anthropic",
      headers: ["X-Api-Key", "A", "Authorization", "Bearer A"],
      sent: ["X-Api-Key", "A", "Authorization", "Bearer A"]
    },
    { provider: "anthropic", headers: ["X-Api-Key", "A", "Authorization", "Bearer B"], sent: undefined },
    { provider: "openai", headers: ["Authorization", "Bearer A", "authorization", "Bearer B"], sent: undefined },
    { provider: "openai", headers: ["Authorization", "Bearer A", "API-Key", "B"], sent: undefined },
    { provider: "gemini", headers: ["x-goog-api-key", "A"], query: "?key=B", sent: undefined },
    { provider: "gemini", headers: ["X-Api-Key", "B"], query: "?key=A", sent: [] }
  ] as const)("is the one that $provider reads: $headers $query", function* ({ headers, provider, sent, ...more }) {
    const path = `${{ openai: "/v1/responses", anthropic: "/v1/messages", gemini: "/v1beta/models/m:countTokens" }[provider]}${"query" in more ? more.query : ""}`
    const limited: AccessOptions = { keys: [`sha256:${hash("sha256", "A", "hex")}`] }
    const got = yield* access(limited, { path, headers, provider })
    assert.deepStrictEqual("status" in got ? undefined : got.carried.headers, sent)
    assert.strictEqual(statusOf(got), sent === undefined ? 400 : 200)
    const listed = yield* access({ keys: [] }, { path, headers, provider })
    assert.strictEqual(statusOf(listed), sent === undefined ? 400 : 401)
  })

  it.effect("owns what is stored, together with the tenant and the client's name for a conversation", function* () {
    const sent = { path: "/v1/messages", provider: "anthropic" as const }
    const requests = [
      ["X-Api-Key", "A"],
      ["X-Api-Key", "B"],
      ["X-Api-Key", `["acme","A",null]`],
      ["X-Api-Key", "A", "X-Palimpsest-Session", "mine"],
      ["X-Api-Key", "A", "X-Palimpsest-Token", "token-of-acme"],
      ["X-Api-Key", "A", "X-Palimpsest-Token", "token-of-evil"],
      ["X-Palimpsest-Token", "token-of-acme"],
      ["X-Palimpsest-Token", "token-of-evil"],
      ["X-Api-Key", "token-of-evil", "X-Palimpsest-Session", "mine"]
    ]
    const owners = yield* Effect.forEach(requests, (headers) =>
      Effect.map(access(served, { ...sent, headers }), (got) => ("status" in got ? "" : got.owner))
    )
    assert.lengthOf(new Set(owners), requests.length)
    assert.notInclude(owners, "")
    // A token that nobody knows is not passed over, whatever the key beside it may do.
    for (const options of [served, {}, { keys: [`sha256:${hash("sha256", "A", "hex")}`] }]) {
      const headers = ["X-Api-Key", "A", "X-Palimpsest-Token", "unknown"]
      assert.strictEqual(statusOf(yield* access(options, { ...sent, headers })), 401)
    }
    // A tenant's tokens are one: each sees what the others have kept, wherever it stands.
    const others = [
      ["X-Palimpsest-Token", "second-of-evil"],
      ["X-Api-Key", "second-of-evil"],
      ["X-Api-Key", "second-of-evil", "X-Palimpsest-Session", "mine"],
      ["X-Api-Key", "A", "X-Palimpsest-Token", "second-of-evil"]
    ]
    const same = yield* Effect.forEach(others, (headers) =>
      Effect.map(access(served, { ...sent, headers }), (got) => ("status" in got ? "" : got.owner))
    )
    assert.deepStrictEqual(same, [owners[7], owners[7], owners[8], owners[5]])
  })

  it.effect("with a budget of tokens may ask for what is counted only", function* () {
    const ask = (method: string, path: string, limits: object) =>
      Effect.map(access({}, { method, path, headers: ["X-Api-Key", "A"], provider: "anthropic" }, limits), statusOf)
    const budget = { tokens: 1_000 }
    assert.strictEqual(yield* ask("POST", "/v1/messages", budget), 200)
    assert.strictEqual(yield* ask("GET", "/v1/files", budget), 200)
    for (const path of ["/v1/messages/batches", "/v1/complete", "/v1%2Fmessages", "/v1/messages;x=1", "/V1/MESSAGES"]) {
      assert.strictEqual(yield* ask("POST", path, budget), 403, path)
      assert.strictEqual(yield* ask("POST", path, { tokens: Infinity }), 200, path)
    }
  })
})
