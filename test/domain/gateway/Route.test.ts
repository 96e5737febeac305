import { assert, describe, it } from "@effect/vitest"
import { recallDeclaration } from "../../../src/domain/gateway/RecallDeclaration.ts"
import {
  headOf,
  likelyCost,
  mayGoOn,
  mayNameState,
  modelOf,
  readBody,
  withMessages
} from "../../../src/domain/gateway/RequestBody.ts"
import { type RequestTarget, requestTarget, targetText } from "../../../src/domain/gateway/RequestTarget.ts"
import {
  defaultUpstreams,
  isModelRequest,
  providerOf,
  providerOfOther,
  routeOf
} from "../../../src/domain/gateway/Route.ts"
import { answerLength } from "../../../src/domain/model/ModelLimits.ts"
import { type Dialect, dialects } from "../../../src/domain/wire/Dialect.ts"

const targetOf = (path: string): RequestTarget => requestTarget(path) ?? { path: "", query: [] }

const at = (path: string, method = "POST") => routeOf(method, targetOf(path))

describe("the model of a request", () => {
  it.each([
    ["/v1/messages", `{"messages":[],"model":"claude-opus-5-5"}`, "claude-opus-5-5"],
    ["/v1/responses", `{"model":"gpt-5","previous_response_id":"r1","input":"next"}`, "gpt-5"],
    ["/v1beta/models/gemini-2.5-pro:generateContent", "[", "gemini-2.5-pro"],
    ["/v1/messages", `{"model":7}`, ""],
    ["/v1/messages", "no JSON", ""]
  ])("is known also where its messages are not read: %s %s", (path, text, model) => {
    const route = at(path)
    assert.strictEqual(route === undefined ? undefined : modelOf(route, text), model)
  })
})

describe("a route", () => {
  it.each([
    ["/v1/messages", "anthropic answer"],
    ["/v1/messages?beta=true", "anthropic answer"],
    ["/v1/messages/count_tokens", "anthropic count"],
    ["/v1/chat/completions", "chat answer"],
    ["/v1/responses", "responses answer"],
    ["/v1/responses/compact", undefined],
    ["/openai/deployments/our-gpt/chat/completions?api-version=2024-10-21", "chat answer our-gpt"],
    ["/openai/responses?api-version=2025-04-01-preview", "responses answer"],
    ["/openai/v1/responses", "responses answer"],
    ["/v1beta/openai/chat/completions", "chat answer"],
    ["/compatible-mode/v1/chat/completions", "chat answer"],
    ["/chat/completions", "chat answer"],
    ["/v1/files/chat/completions", undefined],
    ["/anthropic/v1/messages", "anthropic answer"],
    [
      "/v1/projects/p/locations/global/publishers/google/models/gemini-2.5-pro:generateContent",
      "gemini answer gemini-2.5-pro"
    ],
    ["/v1beta1/publishers/google/models/gemini-2.5-pro:streamGenerateContent?alt=sse", "gemini answer gemini-2.5-pro"],
    ["/v1/projects/p/locations/global/endpoints/openapi/chat/completions", "chat answer"],
    ["/v1/projects/p/locations/l/publishers/anthropic/models/claude-x@1:rawPredict", "anthropic answer claude-x@1"],
    ["/v1/projects/p/locations/l/publishers/anthropic/models/claude-x:streamRawPredict", "anthropic answer claude-x"],
    ["/v1/projects/p/locations/l/publishers/anthropic/models/count-tokens:rawPredict", "anthropic count"],
    ["/inference/v1/chat/completions", "chat answer"],
    ["/api/anthropic/v1/messages", "anthropic answer"],
    ["/api/v1/messages/count_tokens", "anthropic count"],
    ["/v1/messages/batches", undefined],
    ["/v1beta/models/gemini-2.5-pro:generateContent", "gemini answer gemini-2.5-pro"],
    ["/v1alpha/models/gemini-2.5-pro:countTokens", "gemini count gemini-2.5-pro"],
    ["/v1/models/gemini-2.5-pro:streamGenerateContent?alt=sse", "gemini answer gemini-2.5-pro"],
    ["/v1beta/models/gemini-2.5-pro:streamGenerateContent", "gemini answer gemini-2.5-pro array"],
    ["/v1beta/models/gemini-2.5-pro:embedContent", undefined]
  ])("of %s is %s", (path, expected) => {
    const route = at(path)
    const told =
      route === undefined
        ? undefined
        : [route.dialect, route.asks, route.model, route.isArray ? "array" : ""].filter(Boolean).join(" ")
    assert.strictEqual(told, expected)
    assert.isUndefined(at(path, "GET"))
  })

  it.each([
    ["/v1beta/models", [], "gemini"],
    ["/v1/models", ["anthropic-version"], "anthropic"],
    ["/v1/messages/batches", [], "anthropic"],
    ["/v1/models", ["x-goog-api-key"], "gemini"],
    ["/v1/models", ["x-api-key"], "anthropic"],
    ["/v1beta1/projects/p/locations/l/publishers/google/models/g:embedContent", ["authorization"], "gemini"],
    ["/v1/projects/p/locations/l/publishers/anthropic/models/c:other", ["authorization"], "anthropic"],
    ["/v1/embeddings", ["authorization"], "openai"]
  ])("of the other path %s with %s goes to %s", (path, headers, provider) => {
    assert.strictEqual(
      providerOfOther(targetOf(path), (name) => headers.some((header) => header === name)),
      provider
    )
  })
})

it.each([
  ["/v1/messages", "api.anthropic.com"],
  ["/v1beta/models/m:generateContent", "generativelanguage.googleapis.com"],
  ["/v1beta/openai/chat/completions", "generativelanguage.googleapis.com"],
  ["/v1/projects/p/locations/l/endpoints/openapi/chat/completions", "generativelanguage.googleapis.com"],
  ["/v1/chat/completions", "api.openai.com"],
  ["/v1/responses", "api.openai.com"]
])("%s goes to its provider's own server", (path, host) => {
  const target = targetOf(path)
  const route = routeOf("POST", target)
  assert.strictEqual(route === undefined ? undefined : new URL(defaultUpstreams[providerOf(route, target)]).host, host)
})

it.each(dialects)("our tool is declared in the form of the dialect %s", (dialect) => {
  const { inDialect, name, plain } = recallDeclaration(dialect, "")
  const { description, parameters, ...named } = JSON.parse(plain)
  assert.deepStrictEqual(named, { name })
  const forms: Readonly<Record<Dialect, object>> = {
    anthropic: { name, description, input_schema: parameters },
    chat: { type: "function", function: { name, description, parameters } },
    responses: { type: "function", name, description, parameters, strict: false },
    gemini: { functionDeclarations: [{ name, description, parameters }] }
  }
  assert.deepStrictEqual(JSON.parse(inDialect), forms[dialect])
  const types = Object.entries<{ readonly type: string }>(parameters.properties).map(([key, { type }]) => [key, type])
  assert.deepStrictEqual(
    [parameters.type, ...types],
    ["object", ["handle", "string"], ["from", "integer"], ["to", "integer"], ["grep", "string"]]
  )
})

describe("the body of a request", () => {
  const anthropic = at("/v1/messages")
  const chat = at("/v1/chat/completions")
  const gemini = at("/v1beta/models/gemini-2.5-pro:generateContent")
  if (anthropic === undefined || chat === undefined || gemini === undefined) return assert.fail("no route")

  it("is unchanged except for its messages and our tool", () => {
    const text = `{ "tools" : [ {"name":"palimpsest_recall"} ] , "messages": [ {"role":"user","content":"a, ] }"} , {"role":"assistant","content":"b"} ], "model" : "m" }`
    const body = readBody(anthropic, text)
    if (body === undefined) return assert.fail("no body")
    assert.deepStrictEqual(body.messages, [`{"role":"user","content":"a, ] }"}`, `{"role":"assistant","content":"b"}`])
    assert.strictEqual(headOf(body), `{ "tools" : [ {"name":"palimpsest_recall"} ] , "messages": , "model" : "m" }`)
    const declaration = recallDeclaration("anthropic", `[ {"name":"palimpsest_recall"} ]`)
    assert.strictEqual(declaration.name, "palimpsest_recall_2")
    assert.strictEqual(
      withMessages(body, ["1", "2"], { ...declaration, inDialect: "T" }),
      `{ "tools" : [ {"name":"palimpsest_recall"},T ] , "messages": [1,2], "model" : "m" }`
    )
  })

  it("gets our tool where the dialect has functions", () => {
    const declaration = { name: "r", plain: "P", inDialect: "D" }
    const written = (route: typeof chat, text: string) => {
      const body = readBody(route, text)
      return body === undefined ? undefined : withMessages(body, ["1"], body.canRecall ? declaration : undefined)
    }
    assert.strictEqual(
      written(chat, `{"messages":[{"role":"system"},{"role":"user"}]}`),
      `{"tools":[D],"messages":[{"role":"system"},1]}`
    )
    assert.strictEqual(written(chat, `{"messages":[{"role":"user"}],"tools":[]}`), `{"messages":[1],"tools":[D]}`)
    assert.strictEqual(written(chat, `{"messages":[{"role":"user"}],"n":2}`), `{"messages":[1],"n":2}`)
    const functions = `"tools":[{"googleSearch":{}},{"functionDeclarations":[{}]}]`
    assert.strictEqual(
      written(gemini, `{"contents":[{}],${functions}}`),
      `{"contents":[1],"tools":[{"googleSearch":{}},{"functionDeclarations":[{},P]}]}`
    )
    const search = `{"contents":[{}],"tools":[{"googleSearch":{}}]}`
    assert.strictEqual(written(gemini, search), `{"contents":[1],"tools":[{"googleSearch":{}}]}`)
    for (const config of [`"responseMimeType":"application/json"`, `"candidateCount":2`]) {
      const text = `{"contents":[{}],"generationConfig":{${config}}}`
      assert.strictEqual(written(gemini, text), text.replace("[{}]", "[1]"))
    }
  })

  it.each([
    [
      `{"messages":[{"role":"system"},{"role":"developer"},{}],"max_tokens":5,"stream":true,"model":"m"}`,
      2,
      1,
      5,
      true
    ],
    [`{"messages":[{"role":"system"},{"role":"developer"}],"max_completion_tokens":6,"n":1}`, 2, 0, 6, true],
    [`{"messages":[{},{"role":"system"}],"max_output_tokens":7,"functions":[]}`, 0, 2, 7, false],
    [`{"messages":[{}],"max_tokens":"8","tools":{}}`, 0, 1, 8, false],
    [`{"messages":[{}],"max_tokens":"many","functions":[]}`, 0, 1, undefined, false],
    // Between calls, Claude may think for longer than its answer is.
    [`{"messages":[{}],"max_tokens":9,"thinking":{"type":"enabled","budget_tokens":90}}`, 0, 1, 9, true],
    // Clients of local servers ask for no limit.
    [`{"messages":[{}],"max_tokens":-1}`, 0, 1, undefined, true],
    [`{"messages":[{}],"background":true,"conversation":null}`, 0, 1, undefined, false]
  ])("is read: %s", (text, lead, messages, maxAnswer, canRecall) => {
    const body = readBody(chat, text)
    assert.deepStrictEqual(
      [body?.lead.length, body?.messages.length, body?.maxAnswer, body?.canRecall],
      [lead, messages, maxAnswer, canRecall]
    )
    assert.strictEqual(body?.model, text.includes("stream") ? "m" : "")
    const theirs = readBody(anthropic, text)
    assert.deepStrictEqual([theirs?.lead.length, theirs?.messages.length], [0, lead + messages])
  })

  it.each([
    `{"messages":[]}`,
    `{"messages":"text"}`,
    `{"messages":[{"role":"user"}]`,
    `{"messages":[{}],"messages":[{}]}`,
    `{"messages":[}]}`,
    `{"messages":[{}}}`,
    `[1]`,
    ``,
    `{"messages":[{}],"previous_response_id":"r"}`,
    `{"messages":[{}],"Previous_Response_Id":"r"}`,
    `{"messages":[{}],"context_management":{"edits":[{"type":"compact_20260112"}]}}`,
    `{"messages":[{}],"context_management":[{"type":"compaction","compact_threshold":9}]}`,
    `{"messages":["unended}]}`
  ])("is not read: %s", (text) => {
    assert.isUndefined(readBody(anthropic, text))
  })
})

it.each([`{"edits":[{"type":"clear_thinking_20251015"}]}`, "null", "{}", "[]"])(
  "a request whose provider compacts nothing is read: %s",
  (management) => {
    const anthropic = at("/v1/messages", "POST")
    assert.isDefined(anthropic && readBody(anthropic, `{"messages":[{}],"context_management":${management}}`))
  }
)

describe("a request with the operator's key", () => {
  it.each([
    ["POST", "/v1/messages", true],
    ["POST", "/v1/messages/count_tokens", true],
    ["POST", "/v1beta/models/gemini-2.5-pro:countTokens", true],
    ["GET", "/v1/models", true],
    ["HEAD", "/v1/models/gpt-5", true],
    ["GET", "/v1beta/models/gemini-2.5-pro", true],
    ["DELETE", "/v1/models/ft:gpt-5:acme", false],
    ["POST", "/v1beta/tunedModels/of-acme:generateContent", false],
    ["POST", "/v1/projects/p/locations/l/endpoints/openapi/chat/completions", true],
    ["POST", "/v1/projects/p/locations/l/endpoints/123/chat/completions", false],
    ["GET", "/v1/messages", false],
    ["GET", "/v1/files", false],
    ["GET", "/v1/models/../files", false],
    ["GET", "/v1/chat/completions/of-acme", false],
    ["DELETE", "/v1/responses/resp_of_acme", false],
    ["POST", "/v1/completions", false],
    ["POST", "/v1/messages/batches", false],
    ["POST", "/v1beta/models/m:batchGenerateContent", false],
    ["GET", "/v1/organization/admin_api_keys", false]
  ])("may %s %s: %s", (method, path, expected) => {
    assert.strictEqual(isModelRequest(method, targetOf(path), at(path, method)), expected)
  })

  it.each([
    [`{"model":"m","input":"x"}`, false],
    [`{"model":"m","previous_response_id":null}`, false],
    [`{"model":"m","previous_response_id":"resp_of_acme"}`, true],
    [`{"model":"m","previous_response\\u005fid":"resp_of_acme"}`, true],
    [`{"conversation":null,"conversation":"conv_of_acme"}`, true],
    [`{"cached_content":"cachedContents/of-acme"}`, true],
    [`[{"cachedContent":"cachedContents/of-acme"}]`, true],
    [`{"input":"previous_response_id"}`, false],
    [`{"container":"container_of_acme"}`, true],
    [`{"prompt":{"id":"pmpt_of_acme"}}`, true],
    // Servers in Go take keys in any case.
    [`{"Previous_Response_Id":"resp_of_acme"}`, true],
    [`{"input":[{"Type":"item_reference","ID":"msg_of_acme"}]}`, true],
    [`{"input":[{"role":"user","content":[{"type":"input_file","File_ID":"file_of_acme"}]}]}`, true],
    // Within messages and tools, also where keys are escaped.
    [`{"input":[{"role":"user","content":[{"type":"input_file","file_id":"file_of_acme"}]}]}`, true],
    [`{"input":[{"role":"user","content":[{"type":"input_file","file\\u005fid":"file_of_acme"}]}]}`, true],
    [`{"input":[{"type":"computer_call","container_id":"cntr_of_acme"}]}`, true],
    // Whose they are, the items tell that passed through.
    [`{"input":[{"type":"image_generation_call","id":"ig_1"}]}`, false],
    [`{"input":[{"type":"code_interpreter_call","id":"ci_1","container_id":"cntr_1"}]}`, false],
    [`{"input":[{"type":"code_interpreter_call","id":"ci_1","Container_ID":"cntr_of_acme"}]}`, true],
    [`{"Input":[{"type":"item_reference","id":"msg_of_acme"}]}`, true],
    // Keys that clients and databases have for themselves.
    [`{"messages":[{"_id":"65a1","role":"user","content":"x"}]}`, false],
    [`{"contents":[{"parts":[{"text":"x","partMetadata":{"ID":"own"}}]}]}`, false],
    [`{"tools":[{"type":"mcp","headers":{"ID":"own"}}]}`, false],
    [`{"guided_json":{"type":"object","properties":{"ID":{"type":"string"}}}}`, false],
    [`{"tools":[{"type":"file_search","vector_store_ids":["vs_of_acme"]}]}`, true],
    [`{"tools":[{"type":"code_interpreter","container":"cntr_of_acme"}]}`, true],
    [`{"tools":[{"type":"code_interpreter","container":{"type":"auto"}}]}`, false],
    [`{"messages":[{"role":"assistant","audio":{"id":"audio_of_acme"}}]}`, true],
    [`{"audio":{"voice":"alloy","format":"wav"}}`, false],
    [`{"messages":[{"content":[{"type":"document","source":{"type":"file","file_id":"file_of_acme"}}]}]}`, true],
    [
      `{"contents":[{"parts":[{"fileData":{"fileUri":"https://generativelanguage.googleapis.com/v1beta/files/of-acme"}}]}]}`,
      true
    ],
    [`{"contents":[{"parts":[{"file_data":{"file_uri":"gs://of-acme/a"}}]}]}`, true],
    [`{"contents":[{"parts":[{"fileData":{"fileUri":"https://www.youtube.com/watch?v=1"}}]}]}`, false],
    [`{"generateContentRequest":{"cachedContent":"cachedContents/of-acme"}}`, true],
    [`{"tools":[{"fileSearch":{"fileSearchStoreNames":["fileSearchStores/of-acme"]}}]}`, true],
    // The client's own tools have any keys.
    [`{"tools":[{"name":"t","input_schema":{"properties":{"file_id":{"type":"string"}}}}]}`, false],
    [`{"tools":[{"name":"t","input_schema":{},"input_examples":[{"file_id":"own"}]}]}`, false],
    [`{"messages":[{"tool_calls":[{"function":{"name":"t","arguments":{"file_id":"own"}}}]}]}`, false],
    [
      `{"messages":[{"content":[{"type":"tool_use","id":"t","name":"t","input":{"file_id":"own","container":"own"}}]}]}`,
      false
    ],
    [`{"contents":[{"parts":[{"functionResponse":{"name":"t","response":{"file_id":"own"}}}]}]}`, false],
    // A key that stands twice: some providers take the first value.
    [`{"input":[{"role":"user","content":[{"type":"input_file","file_id":"file_of_acme","file_id":null}]}]}`, true],
    [`{"input":[{"type":"item_reference","id":"msg_of_acme","\\u0069d":"msg_1"}]}`, true],
    [`{"input":[{"role":"user","content":"twice: \\"id\\": 1, \\"id\\": 2"}]}`, false],
    ["", true]
  ])("may name state of the account: %s: %s", (text, expected) => {
    assert.strictEqual(mayNameState(text), expected)
  })
})

describe("a request whose tokens are counted", () => {
  it.each([
    [`{"input":"x","background":true}`, true],
    [`{"input":"x","background":false}`, false],
    [`{"input":"x","background":null}`, false],
    [`{"input":"x","background":"true"}`, true],
    [`{"input":"x","background":1}`, true],
    [`{"input":"x","background":false,"Background":true}`, true],
    [`{"input":"in the background"}`, false],
    [`{"b\\u0061ckground":true}`, true],
    [`{"background":false,"background":true}`, true],
    ["no JSON", false]
  ])("may go on without its client: %s: %s", (text, expected) => {
    assert.strictEqual(mayGoOn(text), expected)
  })
})

describe("the tokens that a request may cost", () => {
  it.each([
    ["openai", `{"model":"m","max_tokens":100}`, 100],
    ["openai", `{"model":"m","max_tokens":100,"n":3}`, 300],
    ["openai", `{"model":"m","max_tokens":100,"n":null}`, 100],
    ["openai", `{"model":"m","max_tokens":"100","n":"3"}`, 300],
    ["openai", `\ufeff{"model":"m","max_tokens":100,"n":3}`, 300],
    ["openai", `{"model":"m","max_tokens":100,"best_of":4,"n":2}`, 400],
    ["openai", `{"model":"gpt-4o","max_tokens":-1,"n":2}`, 2 * answerLength("gpt-4o")],
    ["openai", `{"model":"m","max_tokens":100,"reasoning":{"max_tokens":300}}`, 300],
    ["openai", `{"model":"m","max_tokens":100,"thinking":{"type":"enabled","budget_tokens":300}}`, 300],
    ["gemini", `{"generationConfig":{"maxOutputTokens":100,"thinkingConfig":{"thinkingBudget":300}}}`, 300],
    // Which of two a server takes is its own affair.
    ["openai", `{"model":"m","max_tokens":10,"max_completion_tokens":100}`, 100],
    ["openai", `{"model":"m","max_tokens":100,"n":4,"max_tokens":10,"\\u006e":1}`, 400],
    ["gemini", `{"contents":[],"generationConfig":{"maxOutputTokens":100}}`, 100],
    ["gemini", `{"contents":[],"generation_config":{"max_output_tokens":100,"candidate_count":2}}`, 200],
    ["gemini", `{"generationConfig":{"maxOutputTokens":100},"generationConfig":{"candidateCount":3}}`, 300],
    ["gemini", `{"contents":[],"generationConfig":{"candidateCount":2}}`, 2 * answerLength("gemini-2.5-pro")],
    ["openai", `{"max_tokens":100,"n":${"[".repeat(5_000)}${"]".repeat(5_000)}}`, 100],
    ["gemini", `${`{"thinking":`.repeat(50_000)}{"n":9}${"}".repeat(50_000)}`, answerLength("gemini-2.5-pro")]
  ] as const)("holds back for %s: %.80s: %d", (api, text, expected) => {
    const route = at(api === "openai" ? "/v1/chat/completions" : "/v1beta/models/gemini-2.5-pro:generateContent")
    assert.strictEqual(route && likelyCost(route, 400, text), 100 + expected)
  })
})

describe("the target of a request", () => {
  it.each([
    ["/v1/messages", "/v1/messages"],
    ["/v1/messages/", "/v1/messages"],
    ["//v1///messages//", "/v1/messages"],
    ["/v1/%6Dessages", "/v1/messages"],
    ["/v1/./x/../messages?beta=true", "/v1/messages?beta=true"],
    ["/../../v1/messages", "/v1/messages"],
    ["http://any:80/v1/messages?a=b?c&&d", "/v1/messages?a=b?c&d"],
    ["HTTPS://any", "/"],
    ["http://any?x", "/?x"],
    ["/v1beta/models/gemini%3AgenerateContent", "/v1beta/models/gemini:generateContent"],
    ["/v1/files/a%2Fb%20c", "/v1/files/a%2Fb%20c"],
    ["/v1/files/a%2fb", "/v1/files/a%2Fb"],
    ["/v1/%2e%2e/messages", "/messages"],
    ["/v1/x?y=%zz", undefined],
    ["/v1/%zz", undefined],
    ["/v1/messages#x", undefined],
    ["v1/messages", undefined],
    ["*", undefined],
    ["", undefined],
    ["any:80", undefined],
    ["/v1/mess\u00e4ges", undefined]
  ])("%s is sent as %s", (text, expected) => {
    const target = requestTarget(text)
    assert.strictEqual(target === undefined ? undefined : targetText(target), expected)
    if (target !== undefined) assert.deepStrictEqual(requestTarget(targetText(target)), target)
  })

  it("has the parameters of its query, decoded", () => {
    assert.deepStrictEqual(
      requestTarget("/x?%6bey=a+b&key=%3D&key")?.query.map(({ name, value }) => [name, value]),
      [
        ["key", "a b"],
        ["key", "="],
        ["key", ""]
      ]
    )
  })
})
