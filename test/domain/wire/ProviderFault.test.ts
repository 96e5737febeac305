import { assert, describe, it } from "@effect/vitest"
import {
  excessOf,
  faultOf,
  type RefusedContent,
  refusedIn,
  refusedTool
} from "../../../src/domain/wire/ProviderFault.ts"
import { corpus } from "../../support/corpus.ts"

/** What providers answer to a request that they refuse. The bodies follow what bug reports and manuals quote of each server. */
const refusals = corpus<{
  readonly server: string
  readonly status: number
  readonly body: string
  /** The tokens and the window that it states. */
  readonly tooLong?: { readonly tokens?: number; readonly limit?: number }
  readonly refuses?: RefusedContent
}>("provider-refusals")

it.each(refusals.map((one) => [one.server, one] as const))("%s", (_, { body, refuses, status, tooLong }) => {
  const fault = faultOf(body)
  assert.deepStrictEqual(excessOf(status, fault), tooLong && { _tag: "TooManyTokens", ...tooLong })
  assert.strictEqual(refusedIn(status, fault), refuses)
})

describe("a request with too many bytes", () => {
  it.each([
    ["nginx", 413, "<html>\r\n<head><title>413 Request Entity Too Large</title></head></html>"],
    [
      "Anthropic",
      413,
      `{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`
    ],
    ["a server without words", 413, ""],
    [
      "OpenAI, for one text",
      400,
      `{"error":{"message":"Invalid 'input[3].content': string too long.","code":"string_above_max_length"}}`
    ],
    ["Gemini", 400, `{"error":{"code":400,"message":"Request payload size exceeds the limit: 20971520 bytes."}}`],
    ["Bedrock", 400, `{"message":"Input is too large. Maximum size is 20 MB"}`],
    ["a gateway of AWS", 400, `{"message":"Request body size exceeds the limit of 10485760 bytes"}`]
  ])("%s, HTTP %s", (_, status, body) =>
    assert.deepStrictEqual(excessOf(status, faultOf(body)), { _tag: "TooManyBytes" })
  )
  it("is none where the server fails", () =>
    assert.isUndefined(excessOf(500, faultOf(`{"error":{"type":"request_too_large"}}`))))
})

it.each([
  ["tools.7.custom.input_schema.properties: Property keys should match pattern", 7],
  ["Invalid 'tools[2].function.description': string too long.", 2],
  ["* GenerateContentRequest.tools[0].function_declarations[5].parameters: missing field", [0, 5]],
  ["* GenerateContentRequest.tools[1].function_declarations[0].name: Invalid function name", [1, 0]],
  [`{"loc":["body","tools",3,"function","name"]}`, 3],
  [
    "* GenerateContentRequest.tools[0].tool_type: required one_of 'tool_type' must have one initialized field",
    undefined
  ],
  ["This model does not support tools: tools.0 is not permitted", undefined],
  ["Invalid schema for function 'create': 'x' is not a 'regex'.", "create"],
  ["messages[3].tool_calls[0].id: too long", undefined]
])("the tool that is refused is named by its place or its name: %s", (message, tool) => {
  assert.deepStrictEqual<unknown>(refusedTool(400, { message, kind: "" }), tool)
  assert.isUndefined(refusedTool(500, { message, kind: "" }))
})

describe("a text too long for its field", () => {
  const tooLong = (field: string) =>
    `{"error":{"message":"Invalid '${field}': string too long. Expected a string with maximum length 40, but got a string with length 60 instead.","type":"invalid_request_error","param":"${field}","code":"string_above_max_length"}}`

  it.each([
    "messages[1].content",
    "messages[1].content[0].image_url.url",
    "input[3].content[0].text",
    "input[5].output"
  ])("is too many bytes in %s", (field) =>
    assert.deepStrictEqual(excessOf(400, faultOf(tooLong(field))), { _tag: "TooManyBytes" })
  )
  it.each(["messages[1].tool_calls[0].id", "tools[2].function.description", "input[3].id"])(
    "is not in %s, which no smaller content mends",
    (field) => assert.isUndefined(excessOf(400, faultOf(tooLong(field))))
  )
})

const google = (message: string, ...details: ReadonlyArray<unknown>) =>
  JSON.stringify({ error: { code: 429, message, status: "RESOURCE_EXHAUSTED", details } })
const violated = (quotaId: string, quotaValue = "250000") => ({ violations: [{ quotaId, quotaValue }] })

describe("the details of an error of Google's servers", () => {
  it.each([
    ["a delay", google("slow down", "odd", { retryDelay: "2.5s" }, { retryDelay: "9s" }), { retryMillis: 2_500 }],
    ["a rate", google("slow down", violated("InputTokensPerMinute")), { exhaustedQuota: undefined }],
    [
      "a daily quota",
      google("no more", violated("A"), violated("RequestsPerDay")),
      { exhaustedQuota: "RequestsPerDay" }
    ],
    ["no quota at all", google("no more", violated("FreeTier", "0")), { exhaustedQuota: "FreeTier" }],
    ["a key by its reason", google("no", { reason: "API_KEY_INVALID" }), { isKeyRefused: true }],
    ["a key by its words", google("API key expired. Renew it."), { isKeyRefused: true }],
    ["another reason", google("no", { reason: "OTHER" }), { isKeyRefused: false, kind: "429 RESOURCE_EXHAUSTED" }],
    [
      "an error within an error",
      google(google("inner", violated("B", "0"))),
      { message: "inner", exhaustedQuota: "B" }
    ],
    ["no error within a message that only quotes one", google('"slow down"'), { message: '"slow down"' }]
  ])("say: %s", (_, body, expected) => assert.deepInclude(faultOf(body), expected))
})
