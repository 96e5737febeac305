import { assert, describe, it } from "@effect/vitest"
import { keysOf, withOperatorKey, withOwnKey } from "../../../src/domain/gateway/ClientKeys.ts"
import { endToEnd, headerOf, withoutHeaders } from "../../../src/domain/gateway/HeaderList.ts"
import { requestTarget } from "../../../src/domain/gateway/RequestTarget.ts"

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
    const request = carried("key=Q&alt=sse", "X-Api-Key", "A", "Cookie", "c", "x-goog-api-key", "G")
    const sent = withOwnKey("anthropic", request)
    assert.deepStrictEqual(sent.headers, ["X-Api-Key", "A", "Cookie", "c"])
    assert.deepStrictEqual(
      sent.query.map(({ text }) => text),
      ["alt=sse"]
    )
  })

  it("give way to the operator's, with what a provider needs to understand the request alone", () => {
    const request = carried(
      "key=Q&alt=sse&quotaUser=x",
      "OpenAI-Organization",
      "org",
      "Content-Type",
      "application/json",
      "X-Api-Key",
      "A",
      "X-Goog-User-Project",
      "p"
    )
    const sent = withOperatorKey("openai", request, "operator")
    assert.deepStrictEqual(sent.headers, ["Content-Type", "application/json", "Authorization", "Bearer operator"])
    assert.deepStrictEqual(
      sent.query.map(({ text }) => text),
      ["alt=sse"]
    )
  })
})

describe("headers", () => {
  it("of the connection alone are dropped, whatever it names", () => {
    const headers = ["Connection", "content-length, x-own", "X-Own", "1", "TE", "trailers", "Content-Length", "5"]
    assert.deepStrictEqual(endToEnd(headers), ["X-Own", "1", "Content-Length", "5"])
    assert.strictEqual(headerOf(headers, "x-own"), "1")
    assert.isUndefined(headerOf(headers, "x-other"))
    assert.deepStrictEqual(withoutHeaders(["A", "1", "b", "2", "B", "3"], ["b"]), ["A", "1"])
  })
})
