import { assert, describe, it } from "@effect/vitest"
import { keysOf, withOperatorKey, withOwnKey } from "../../../src/domain/gateway/ClientKeys.ts"
import { endToEnd, headerOf, withoutHeaders } from "../../../src/domain/gateway/HeaderList.ts"
import { requestTarget } from "../../../src/domain/gateway/RequestTarget.ts"
import type { Provider } from "../../../src/domain/gateway/Route.ts"

/** Where keys are in a request, and what of it goes upstream. */

const carried = (query: string, ...headers: ReadonlyArray<string>) => ({
  headers,
  query: requestTarget(`/x?${query}`)?.query ?? []
})

describe("the keys of a request", () => {
  it("are where the provider reads them, each once", () => {
    const request = carried(
      "key=Q&%6bey=R",
      "X-Api-Key",
      "A",
      "AUTHORIZATION",
      "bearer  A",
      "x-goog-api-key",
      " G ",
      "api-key",
      "Z"
    )
    assert.deepStrictEqual(keysOf("anthropic", request), ["A"])
    assert.deepStrictEqual(keysOf("gemini", request), ["A", "G", "Q", "R"])
    assert.deepStrictEqual(keysOf("openai", request), ["A", "Z"])
    assert.deepStrictEqual(keysOf("openai", carried("key=Q", "X-Api-Key", "A", "Authorization", "Bearer ")), [])
  })

  it("of other providers are not sent on", () => {
    const headers = ["X-Api-Key", "A", "Authorization", "B", "Cookie", "c", "x-goog-api-key", "G", "api-key", "Z"]
    const request = carried("key=Q&alt=sse&access_token=R&oauth_token=S&api-key=T&api_key=U", ...headers)
    const sent = (provider: Provider) => {
      const { headers: names, query } = withOwnKey(provider, request)
      return [...names.filter((_, at) => at % 2 === 1), ...query.map(({ value }) => value)].join(" ")
    }
    assert.strictEqual(sent("anthropic"), "A B c sse")
    assert.strictEqual(sent("openai"), "B c Z sse")
    assert.strictEqual(sent("gemini"), "B c G Q sse R S")
  })

  it("give way to the operator's, with what a provider needs to understand the request alone", () => {
    const plain =
      "Accept Accept-Encoding anthropic-beta anthropic-version Content-Encoding Content-Length Content-Type openai-beta User-Agent"
    const pages = "after after_id alt api-version before_id beta limit page_size page_token pageSize pageToken"
    const refused = "OpenAI-Organization X-Api-Key X-Goog-User-Project Cookie"
    const request = carried(
      `key=Q&quotaUser=x&${pages.split(" ").join("&")}`,
      ...`${refused} ${plain}`.split(" ").flatMap((name) => [name, "x"])
    )
    for (const [provider, header, key] of [
      ["openai", "Authorization", "Bearer operator"],
      ["anthropic", "X-Api-Key", "operator"],
      ["gemini", "X-Goog-Api-Key", "operator"]
    ] as const) {
      const { headers, query } = withOperatorKey(provider, request, "operator")
      assert.strictEqual(headers.filter((_, at) => at % 2 === 0).join(" "), `${plain} ${header}`)
      assert.strictEqual(headers.at(-1), key)
      assert.strictEqual(query.map(({ text }) => text).join(" "), pages)
    }
  })
})

it("headers of the connection alone are dropped, whatever it names", () => {
  const own =
    "Connection Expect Keep-Alive Proxy-Authenticate Proxy-Authorization Proxy-Connection TE Trailer Transfer-Encoding Upgrade"
  const headers = [...own.split(" ").flatMap((name) => [name, "x-own"]), "X-Own", "1", "Content-Length", "5"]
  assert.deepStrictEqual(endToEnd(headers), ["X-Own", "1", "Content-Length", "5"])
  assert.strictEqual(headerOf(headers, "x-own"), "1")
  assert.isUndefined(headerOf(headers, "x-other"))
  assert.deepStrictEqual(withoutHeaders(["A", "1", "b", "2", "B", "3"], ["b"]), ["A", "1"])
})
