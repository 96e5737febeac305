import { assert, describe, it } from "@effect/vitest"
import { excessOf, faultOf } from "../../../src/domain/wire/ProviderFault.ts"
import { corpus } from "../../support/corpus.ts"

/** What providers answer to a request that is too large. The bodies follow what bug reports and manuals quote of each server. */

const openai = (message: string, code: string | null = null) =>
  JSON.stringify({ error: { message, type: "invalid_request_error", param: null, code } })
const anthropic = (type: string, message: string) => JSON.stringify({ type: "error", error: { type, message } })
const gemini = (message: string) => JSON.stringify({ error: { code: 400, message, status: "INVALID_ARGUMENT" } })

interface Refusal {
  readonly server: string
  readonly status: number
  /** The tokens and the window that the body states. */
  readonly tokens: number | null
  readonly limit: number | null
  readonly body: string
}

const tooLong = corpus<Refusal>("refused-as-too-long")

describe("a request with too many tokens", () => {
  it.each(tooLong)("$server, HTTP $status", ({ body, limit, status, tokens }) => {
    assert.deepStrictEqual(excessOf(status, faultOf(body)), {
      _tag: "TooManyTokens",
      ...(tokens === null ? {} : { tokens }),
      ...(limit === null ? {} : { limit })
    })
  })
})

describe("a request with too many bytes", () => {
  it.each([
    ["nginx", 413, "<html>\r\n<head><title>413 Request Entity Too Large</title></head></html>"],
    ["Anthropic", 413, anthropic("request_too_large", "Request exceeds the maximum size")],
    ["a server without words", 413, ""],
    ["Gemini", 400, gemini("Request payload size exceeds the limit: 20971520 bytes.")]
  ])("%s, HTTP %s", (_, status, body) =>
    assert.deepStrictEqual(excessOf(status, faultOf(body)), { _tag: "TooManyBytes" })
  )
})

describe("a request that is refused for another reason", () => {
  it.each([
    [
      "a rate",
      429,
      openai(
        "Rate limit reached on tokens per min (TPM): Limit 30000, Requested 31000. context length",
        "rate_limit_exceeded"
      )
    ],
    [
      "a rate, with another status",
      413,
      openai(
        "Request too large for model on tokens per minute (TPM): Limit 6000, Requested 9000: too many tokens",
        "rate_limit_exceeded"
      )
    ],
    ["a key", 401, openai("context length")],
    [
      "the size of the answer",
      400,
      openai(
        "max_tokens is too large: 100000. This model supports at most 16384 completion tokens, whereas you provided 100000."
      )
    ],
    [
      "the size of the answer, Anthropic",
      400,
      anthropic(
        "invalid_request_error",
        "max_tokens: 64000 > 8192, which is the maximum allowed number of output tokens for claude-3-5-haiku"
      )
    ],
    ["a server that quotes", 500, openai("the prompt is too long")],
    ["a page that quotes", 400, "<html>maximum context length is 4096 tokens</html>"]
  ])("%s, HTTP %s", (_, status, body) => assert.isUndefined(excessOf(Number(status), faultOf(body))))
})
