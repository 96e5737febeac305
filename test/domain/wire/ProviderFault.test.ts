import { assert, describe, it } from "@effect/vitest"
import { excessOf, faultOf, type RefusedContent, refusedIn } from "../../../src/domain/wire/ProviderFault.ts"

/** What providers answer to a request that is too large. The bodies follow what bug reports and manuals quote of each server. */

const openai = (message: string, code: string | null = null) =>
  JSON.stringify({ error: { message, type: "invalid_request_error", param: null, code } })
const anthropic = (type: string, message: string) => JSON.stringify({ type: "error", error: { type, message } })
const gemini = (message: string) => JSON.stringify({ error: { code: 400, message, status: "INVALID_ARGUMENT" } })

/** The server, the status, the body, and the tokens and the window that it states. */
const tooLong: ReadonlyArray<readonly [string, number, string, number | undefined, number | undefined]> = [
  [
    "Anthropic",
    400,
    anthropic("invalid_request_error", "prompt is too long: 213462 tokens > 200000 maximum"),
    213_462,
    200_000
  ],
  [
    "Anthropic, with the answer",
    400,
    anthropic(
      "invalid_request_error",
      "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens` and try again"
    ),
    209_573,
    200_000
  ],
  [
    "Anthropic, 413",
    413,
    anthropic("invalid_request_error", "prompt is too long: 1,213,462 tokens > 1,000,000 maximum"),
    1_213_462,
    1_000_000
  ],
  ["Bedrock", 400, `{"message":"Input is too long for requested model."}`, undefined, undefined],
  [
    "Gemini",
    400,
    gemini("The input token count (1196265) exceeds the maximum number of tokens allowed (1048575)."),
    1_196_265,
    1_048_575
  ],
  [
    "Gemini on Vertex",
    400,
    gemini("The input token count is 40000 but model only supports up to 32768."),
    40_000,
    32_768
  ],
  [
    "OpenAI",
    400,
    openai(
      "This model's maximum context length is 128000 tokens. However, your messages resulted in 130137 tokens. Please reduce the length of the messages.",
      "context_length_exceeded"
    ),
    130_137,
    128_000
  ],
  [
    "OpenAI Responses",
    400,
    openai(
      "Your input exceeds the context window of this model. Please adjust your input and try again.",
      "context_length_exceeded"
    ),
    undefined,
    undefined
  ],
  [
    "OpenRouter",
    400,
    openai(
      "This endpoint's maximum context length is 200000 tokens. However, you requested about 201012 tokens (201000 of text input, 12 of tool input)."
    ),
    201_012,
    200_000
  ],
  [
    "DeepSeek",
    400,
    openai(
      "This model's maximum context length is 65536 tokens. However, you requested 70012 tokens (66012 in the messages, 4000 in the completion)."
    ),
    70_012,
    65_536
  ],
  [
    "vLLM",
    400,
    openai(
      "'max_tokens' or 'max_completion_tokens' is too large: 100. This model's maximum context length is 4096 tokens and your request has 4090 input tokens (100 > 4096 - 4090)."
    ),
    4_090,
    4_096
  ],
  [
    "vLLM, long prompt",
    400,
    openai("The decoder prompt (length 5000) is longer than the maximum model length of 4096."),
    5_000,
    4_096
  ],
  [
    "SGLang",
    400,
    `{"object":"error","message":"The input (5000 tokens) is longer than the model's context length (4096 tokens).","type":"BadRequestError","code":400}`,
    5_000,
    4_096
  ],
  [
    "llama.cpp",
    400,
    `{"error":{"code":400,"message":"the request exceeds the available context size. try increasing the context size","type":"exceed_context_size_error","n_prompt_tokens":9719,"n_ctx":9216}}`,
    9_719,
    9_216
  ],
  [
    "llama.cpp, in words",
    400,
    openai("request (9719 tokens) exceeds the available context size (9216 tokens), try increasing it"),
    9_719,
    9_216
  ],
  [
    "LM Studio",
    400,
    `{"error":"Trying to keep the first 9719 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough."}`,
    9_719,
    4_096
  ],
  ["Ollama", 400, openai("prompt too long; exceeded max context length by 719 tokens"), undefined, undefined],
  [
    "xAI",
    400,
    `{"code":"invalid-argument","error":"This model's maximum prompt length is 9000 but the request contains 9719 tokens."}`,
    9_719,
    9_000
  ],
  [
    "GitHub Copilot",
    400,
    openai("prompt token count of 9719 exceeds the limit of 9000", "model_max_prompt_tokens_exceeded"),
    9_719,
    9_000
  ],
  [
    "Kimi",
    400,
    openai("Invalid request: Your request exceeded model token limit: 9000 (requested: 9718)"),
    9_718,
    9_000
  ],
  ["z.ai", 400, `{"error":{"code":"1261","message":"Prompt exceeds max length"}}`, undefined, undefined],
  ["MiniMax", 400, openai("invalid params, context window exceeds limit (2013)"), undefined, undefined],
  [
    "Mistral",
    400,
    `{"object":"error","message":"Prompt contains 140012 tokens and 0 draft tokens, too large for model with 131072 maximum context length","type":"invalid_request_prompt","code":"3051"}`,
    140_012,
    131_072
  ],
  [
    "Groq",
    400,
    openai("Please reduce the length of the messages or completion.", "context_length_exceeded"),
    undefined,
    undefined
  ],
  [
    "Cerebras",
    400,
    openai(
      "Please reduce the length of the messages or completion. Current length is 9719 while limit is 8192",
      "context_length_exceeded"
    ),
    9_719,
    8_192
  ],
  ["Fireworks", 400, openai("The prompt is too long: 140012, model maximum context length: 131071"), 140_012, 131_071],
  [
    "DashScope",
    400,
    openai(
      "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]",
      "invalid_parameter_error"
    ),
    undefined,
    129_024
  ],
  [
    "Cohere",
    400,
    `{"message":"too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 9719."}`,
    9_719,
    4_081
  ],
  [
    "Text Generation Inference",
    422,
    openai(
      "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4090 `inputs` tokens and 100 `max_new_tokens`"
    ),
    4_190,
    4_096
  ],
  [
    "Text Generation Inference, input",
    422,
    `{"error":"Input validation error: \`inputs\` must have less than 1024 tokens. Given: 2000","error_type":"validation"}`,
    2_000,
    1_024
  ],
  [
    "a server that counts the answer apart",
    400,
    "maximum context length is 8192 tokens. However, you requested 9100 tokens: 9000 prompt tokens and 100 completion tokens",
    9_100,
    8_192
  ],
  ["a proxy that cuts numbers", 400, "The input token count exceeds the maximum", undefined, undefined],
  ["a server of its own", 400, "This model's input exceeds the maximum number of tokens", undefined, undefined],
  ["a server that fails with a code", 500, openai("internal error", "context_length_exceeded"), undefined, undefined]
]

describe("a request with too many tokens", () => {
  it.each(tooLong)("%s, HTTP %s", (_, status, body, tokens, limit) => {
    const excess = excessOf(status, faultOf(body))
    assert.deepStrictEqual(excess, {
      _tag: "TooManyTokens",
      ...(tokens === undefined ? {} : { tokens }),
      ...(limit === undefined ? {} : { limit })
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

const invalid = (message: string) => anthropic("invalid_request_error", message)

/** What was refused, the server, the status and the body. */
const refused: ReadonlyArray<readonly [RefusedContent | undefined, string, number, string]> = [
  [
    "image",
    "Anthropic, pixels",
    400,
    invalid(
      "messages.2.content.1.image.source.base64.data: At least one of the image dimensions exceed max allowed size: 8000 pixels"
    )
  ],
  [
    "image",
    "Anthropic, many images",
    400,
    invalid(
      "messages.10.content.3.image.source.base64.data: At least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels"
    )
  ],
  [
    "image",
    "Anthropic, bytes",
    400,
    invalid("messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes")
  ],
  ["image", "Anthropic, content", 400, invalid("Could not process image")],
  [
    "image",
    "Anthropic, type",
    400,
    invalid(
      "messages.4.content.0.tool_result.content.1.image.source.base64: Image does not match the provided media type image/png"
    )
  ],
  [
    "image",
    "OpenAI",
    400,
    openai(
      "You uploaded an unsupported image. Please make sure your image is of one of the following formats: ['png', 'jpeg', 'gif', 'webp'].",
      "invalid_image_format"
    )
  ],
  [
    "image",
    "OpenAI, data",
    400,
    openai("The image data you provided does not represent a valid image.", "image_parse_error")
  ],
  [
    "image",
    "Gemini",
    400,
    gemini(
      "Unable to process input image. Please retry or report in https://developers.generativeai.google/guide/troubleshooting"
    )
  ],
  [
    "image",
    "OpenRouter, no vision",
    404,
    `{"error":{"message":"No endpoints found that support image input","code":404}}`
  ],
  [
    "image",
    "DeepSeek, no vision",
    400,
    openai(
      "Failed to deserialize the JSON body into the target type: messages[3]: unknown variant `image_url`, expected `text` at line 1 column 900"
    )
  ],
  ["image", "vLLM", 400, openai("At most 1 image(s) may be provided in one request.")],
  [
    "image",
    "llama.cpp",
    400,
    `{"error":{"code":400,"message":"image input is not supported - hint: if this is unexpected, you may need to provide the mmproj","type":"invalid_request_error"}}`
  ],
  [
    "file",
    "Anthropic, PDF",
    400,
    invalid("messages.1.content.0.document.source.base64.data: The PDF specified was not valid.")
  ],
  [
    "file",
    "Gemini, a file that expired",
    403,
    gemini("You do not have permission to access the File abc123 or it may not exist.")
  ],
  ["file", "Gemini, type", 400, gemini("Unsupported MIME type: application/zip")],
  ["signature", "Anthropic", 400, invalid("messages.1.content.0: Invalid `signature` in `thinking` block")],
  ["signature", "Gemini", 400, gemini("Thought signature is not valid")],
  [
    "signature",
    "OpenAI",
    400,
    openai(
      "The encrypted content gAAA could not be verified. Reason: Encrypted content could not be decrypted or parsed.",
      "invalid_encrypted_content"
    )
  ],
  [undefined, "a tool that makes images", 400, invalid("tools.3.custom.input_schema: image: JSON schema is invalid")],
  [undefined, "a key", 401, invalid("invalid image key")],
  [undefined, "a failing server", 500, openai("failed to process image")],
  [undefined, "another reason", 400, invalid("messages: roles must alternate between user and assistant")]
]

describe("content that a provider refuses", () => {
  it.each(refused)("%s: %s, HTTP %s", (content, _, status, body) => {
    const fault = faultOf(body)
    assert.strictEqual(refusedIn(status, fault), content)
    if (content !== undefined) assert.isUndefined(excessOf(status, fault))
  })
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
