/** Reads the errors of providers: what their bodies say, and whether a request was too large. All dialects and the gateway read them here. */

import { Option, Predicate, Schema } from "effect"
import { fromJson } from "../text/JsonText.ts"

/** An error as a provider writes it. */
export interface ProviderFault {
  readonly message: string
  /** Its type, code and status, in one text. */
  readonly kind: string
  /** The size of the request and of the window in tokens, where the body has fields for them. */
  readonly tokens?: number | undefined
  readonly limit?: number | undefined
  /** A page of a proxy or of another server, which is no answer of an API. */
  readonly isPage?: boolean
  /** Milliseconds after which the server allows another attempt. */
  readonly retryMillis?: number | undefined
  /** The name of a quota that does not refill within minutes: a daily one, or one of zero. */
  readonly exhaustedQuota?: string | undefined
  /** Whether the key is not valid, in an error that names another cause by its status. */
  readonly isKeyRefused?: boolean
}

const nullish = Schema.optionalKey(Schema.NullOr(Schema.Union([Schema.String, Schema.Finite])))

const Fault = Schema.Struct({
  message: Schema.optionalKey(Schema.NullOr(Schema.String)),
  type: nullish,
  code: nullish,
  status: nullish,
  /** z.ai. */
  msg: nullish,
  /** Problem details (RFC 9457), as NVIDIA's servers write them. */
  title: nullish,
  detail: nullish,
  /** OpenRouter: what the provider behind it answered. */
  metadata: Schema.optionalKey(Schema.Unknown),
  /** Google's servers. */
  details: Schema.optionalKey(Schema.Unknown),
  /** llama.cpp: the size of the request and of the window. */
  n_prompt_tokens: Schema.optionalKey(Schema.Natural),
  n_ctx: Schema.optionalKey(Schema.Natural)
})

/** MiniMax's servers report an error beside an answer without choices. */
const MiniMax = Schema.Struct({
  base_resp: Schema.Struct({ status_code: Schema.Int.check(Schema.isGreaterThan(0)), status_msg: Schema.String })
})

/** The error within an answer, in one of the shapes that servers give it. */
const readFault = Schema.decodeUnknownOption(
  Schema.Union([Schema.Struct({ error: Fault }), Schema.Struct({ error: Schema.String }), MiniMax, Fault])
)
const readJson = Schema.decodeUnknownOption(fromJson(Schema.Unknown))

const Detail = Schema.Struct({
  reason: Schema.optionalKey(Schema.String),
  retryDelay: Schema.optionalKey(Schema.String),
  violations: Schema.optionalKey(
    Schema.Array(
      Schema.Struct({ quotaId: Schema.optionalKey(Schema.String), quotaValue: Schema.optionalKey(Schema.String) })
    )
  )
})
const readDetail = Schema.decodeUnknownOption(Detail)

/** What the details of an error of Google's servers say. */
const detailsOf = (details: unknown, message: string): Partial<ProviderFault> => {
  const read = Array.isArray(details) ? details.flatMap((detail) => Option.toArray(readDetail(detail))) : []
  const seconds = read.flatMap(({ retryDelay = "" }) => /^(\d+(?:\.\d+)?)s$/.exec(retryDelay)?.[1] ?? [])[0]
  return {
    isKeyRefused:
      read.some(({ reason }) => reason === "API_KEY_INVALID") || /api key (not valid|expired)/i.test(message),
    retryMillis: seconds === undefined ? undefined : Number(seconds) * 1_000,
    exhaustedQuota: read
      .flatMap(({ violations = [] }) => violations)
      .find(({ quotaId = "", quotaValue }) => /per_?day|daily/i.test(quotaId) || quotaValue === "0")?.quotaId
  }
}

const rawIn = (metadata: unknown): string | undefined =>
  Predicate.isObject(metadata) && typeof metadata.raw === "string" && metadata.raw.trim() !== ""
    ? metadata.raw
    : undefined

/** Returns the error in a value; undefined if it contains none. Google's servers put theirs into a list. */
export const faultIn = (value: unknown): ProviderFault | undefined =>
  Option.match(readFault(Array.isArray(value) ? value[0] : value), {
    onNone: () => undefined,
    onSome: (read) => {
      if ("base_resp" in read) return { message: read.base_resp.status_msg, kind: String(read.base_resp.status_code) }
      const fault = "error" in read ? read.error : read
      if (typeof fault === "string") return { message: fault, kind: "" }
      const message = fault.message ?? String(fault.detail ?? fault.title ?? fault.msg ?? "")
      // Google's servers wrap an error again that was not declared as JSON.
      const wrapped = rawIn(fault.metadata) ?? (message.trimStart().startsWith("{") ? message : undefined)
      const inner = wrapped === undefined ? undefined : faultOf(wrapped)
      if (inner !== undefined && inner.message !== message && inner.isPage !== true) return inner
      return {
        ...detailsOf(fault.details, message),
        message,
        kind: [fault.type, fault.code, fault.status].filter(Predicate.isNotNullish).join(" "),
        tokens: fault.n_prompt_tokens,
        limit: fault.n_ctx
      }
    }
  })

/** The error that the body of an answer states. */
export const faultOf = (body: string): ProviderFault => {
  const json = readJson(body)
  if (Option.isNone(json)) return { message: body, kind: "", isPage: /^\s*</.test(body) }
  const fault = faultIn(json.value)
  return fault === undefined || fault.message + fault.kind === "" ? { message: body, kind: "" } : fault
}

/** More tokens than the window of the model has room for; with the numbers, where the provider states them. */
export interface TooManyTokens {
  readonly _tag: "TooManyTokens"
  readonly tokens?: number
  readonly limit?: number
}

/** More bytes than the server or a proxy before it takes. It says nothing about tokens. */
export interface TooManyBytes {
  readonly _tag: "TooManyBytes"
}

/**
 * How providers say that a request has too many tokens, those with numbers first. `more` are the tokens that are asked of the answer. Numbers are
 * compared without separators.
 */
const tooManyTokens: ReadonlyArray<RegExp> = [
  // Anthropic, and Claude on Bedrock and Vertex.
  /prompt is too long: (?<tokens>\d+) tokens? > (?<limit>\d+)/,
  /exceed context limit: (?<tokens>\d+) \+ (?<more>\d+) > (?<limit>\d+)/,
  // Gemini.
  /input token count (?:is |of )?\(?(?<tokens>\d+)\)? .{0,60}?(?:exceeds|only supports up to) \D{0,80}(?<limit>\d+)/,
  // OpenAI, Azure, DeepSeek, OpenRouter, Together, vLLM and SGLang.
  /maximum context length is (?<limit>\d+) tokens.{0,120} for a total of at least (?<tokens>\d+)/,
  /you passed (?<tokens>\d+) input tokens .{0,60}context length is only (?<limit>\d+)/,
  /maximum context length (?:is|of) (?<limit>\d+) tokens.{0,20}? (?:you requested|your messages resulted in|your request has|your prompt contains|the request has|you requested a total of)(?: about| at least)? (?<tokens>\d+)/,
  /maximum context length (?:is|of) (?<limit>\d+)/,
  /prompt \(length (?<tokens>\d+)\) is longer than the maximum model length of (?<limit>\d+)/,
  /input \((?<tokens>\d+) tokens\) is longer than the model's context length \((?<limit>\d+)/,
  /exceed the configured limit of (?<limit>\d+) tokens\. your messages resulted in (?<tokens>\d+)/,
  /tokens in the prompt \((?<tokens>\d+)\) exceeds the model context size of (?<limit>\d+)/,
  // llama.cpp and LM Studio.
  /\((?<tokens>\d+) tokens\) exceeds (?:the available )?context size \((?<limit>\d+)/,
  /available context size \((?<limit>\d+)/,
  /keep the first (?<tokens>\d+) tokens when context .{0,80}?context length of only (?<limit>\d+)/,
  // xAI, GitHub Copilot, Kimi, Mistral, Fireworks, Cerebras and Groq.
  /maximum prompt length is (?<limit>\d+) but the request contains (?<tokens>\d+)/,
  /prompt token count of (?<tokens>\d+) exceeds the limit of (?<limit>\d+)/,
  /exceeded model token limit: (?<limit>\d+)(?: \(requested: (?<tokens>\d+)\))?/,
  /prompt contains (?<tokens>\d+) tokens.{0,80}? (?<limit>\d+) maximum context length/,
  /prompt is too long: (?<tokens>\d+), model maximum context length: (?<limit>\d+)/,
  /current length is (?<tokens>\d+) while limit is (?<limit>\d+)/,
  // DashScope, Cohere and Text Generation Inference.
  /range of input length should be \[\d+, (?<limit>\d+)\]/,
  /tokens in the prompt cannot exceed (?<limit>\d+) - received (?<tokens>\d+)/,
  /`inputs` tokens \+ `max_new_tokens` must be <= (?<limit>\d+)\. given: (?<tokens>\d+) `inputs` tokens and (?<more>\d+)/,
  /`inputs` must have less than (?<limit>\d+) tokens\. given: (?<tokens>\d+)/,
  /token count .{0,80}?(?:exceeds|only supports up to) \D{0,80}(?<limit>\d+)/,
  // TensorRT-LLM, GitHub Models and Cloudflare.
  /prompt length \((?<tokens>\d+)[^)]*\).{0,40} max_num_tokens \((?<limit>\d+)/,
  /input tokens exceeds max\. (?<tokens>\d+) > (?<limit>\d+)/,
  /max size: (?<limit>\d+) tokens/,
  /tokens \((?<tokens>\d+)\) exceeded this model context window limit \((?<limit>\d+)/,
  // Triton and Databricks, text generation servers, Poolside, Perplexity, watsonx, SambaNova, Qianfan and Hunyuan, NVIDIA, Snowflake, SiliconFlow.
  /(?:prompt|input) length \(?(?<tokens>\d+)\)? (?:exceeds|is greater than) (?:the |model's )?max\D{0,40}(?<limit>\d+)/,
  /prompt too long: (?<tokens>\d+) tokens exceeds max\D{0,24}(?<limit>\d+)/,
  /tokens in the prompt \((?<tokens>\d+)\) exceeds the max\D{0,24}(?<limit>\d+)/,
  /(?:total |prompt_)tokens ?\((?<tokens>\d+)\) (?:exceed limit|must be less than \D{0,24}) ?\(?(?<limit>\d+)/,
  /input tokens and max_tokens exceeds the limit of (?<limit>\d+)/,
  /requested (?<tokens>\d+) tokens exceeds model's context of (?<limit>\d+)/,
  /requested tokens \((?<tokens>\d+)\) exceed context window of (?<limit>\d+)/,
  /number of input tokens (?<tokens>\d+) cannot exceed \D{0,80}(?<limit>\d+)/,
  /prompt is (?<tokens>\d+) tokens long.{0,160}? sequence length is (?:just )?(?<limit>\d+)/,
  /max input (?:tokens|length) is (?<limit>\d+)/,
  /input tokens and max_tokens \((?<tokens>\d+)\) exceeds max sequence length (?<limit>\d+)/,
  /max tokens of (?<limit>\d+) exceeded; prompt has (?<tokens>\d+)/,
  // Stepfun, AI21, Volcengine and Nova on Bedrock; z.ai and Baichuan.
  /\b(?:request|input|prompt|total|prompt \+ completion) tokens?\b.{0,40}\bexceeds? (?:the |model )?max(?:imum)?\b(?:[^\d.]{0,40}(?<limit>\d+))?/,
  /(?:prompt|输入|上下文)(?:\S{0,6} ?(?:超长|过长)|长度\S{0,4}(?:超出|超过|超限))/,
  // Without numbers: codes of OpenAI, llama.cpp, Copilot and z.ai, and the words of Bedrock, Groq, Ollama, MiniMax and others.
  /context_length_exceeded|exceed_context_size|max_prompt_tokens_exceeded|model_context_window_exceeded/,
  // vLLM's rest of a window that is full, and OpenAI's maximum number of messages.
  /max_(?:completion_)?tokens must be at least 1, got -\d|'(?:messages|input)': array too long/,
  /(?:prompt|input|request|conversation|context)(?: is| was)? too (?:long|large) for|(?:input|messages) token(?: length)?(?: is)? too long|(?:prompt|input|conversation)[ _](?:is |length )?too[ _]long|(?:prompt|input) (?:length )?exceeds (?:the )?(?:max|context)/,
  /token count.{0,40} exceeds|message token length exceeds?|number of tokens in the (?:input|prompt) exceeds|too many (?:input |prompt )?tokens|context(?: |_)(?:length|window|size|limit)|reduce the length of the (?:messages|prompt|input)/
]

/** A request that is larger than all that its account may send in a minute: no other attempt succeeds. OpenAI and Groq. */
const tooManyForAccount = /request too large for .{0,200}limit (?<limit>\d+), requested (?<tokens>\d+)/

/** The last form is OpenAI's, for one text. It says the same of other fields, such as the id of a call, which no smaller content mends. */
const tooManyBytes =
  /request_too_large|(?:payload|body) size exceeds|entity too large|too large\. maximum size is \d+ ?[km]b|'(?:messages|input)\[\d+\]\.(?:content|output)\b[^']*': string too long/

/** Words about the length of the answer, or about a rate: the request itself is not too long. */
const otherLimit =
  /throttling|please wait before|per minute|per day|\btpm\b|rate_limit|maximum (?:allowed )?number of output tokens|at most \d+ completion tokens/

/** Content that a provider refuses by itself, so that the request is accepted without it; `tool`: the declaration of one. */
export type RefusedContent = "image" | "file" | "signature" | "tool"

/** How servers say that a content has the wrong form, whatever stands in it. */
const contentForm =
  /content\S{0,7} (?:must be a|input should be a valid) string|content\S{0,7}\.type(?: is invalid| 参数非法|$)/

/** Whether a refusal names the form of a content, so that what is refused may be an image or a file. */
export const mayBeAnyContent = (detail: string): boolean => contentForm.test(detail.toLowerCase())

/** How providers say what they refuse, in the order in which it is looked for. */
const refusals: ReadonlyArray<readonly [Exclude<RefusedContent, "tool">, RegExp]> = [
  // Anthropic, Gemini and OpenAI: reasoning that another model or account wrote.
  [
    "signature",
    /signature\b.{0,80}(?:thinking|thought|valid|corrupt|expired|missing|required)|(?:invalid|corrupted|missing|expired).{0,40}signature/
  ],
  ["signature", /encrypted[_ ]content|could not decode the compaction blob|thinking` blocks .{0,40}cannot be modified/],
  // Reasoning that OpenAI stored, or not; and servers that refuse the fields which they sent: Groq, Cerebras, Mistral.
  ["signature", /item with id 'rs_\w+' not found|'reasoning' was provided without|without its required 'reasoning'/],
  [
    "signature",
    /(?:\breasoning_(?:content|details)|messages.{0,80}\breasoning)['"`:].{0,40}(?:unsupported|not supported|not permitted|unexpected)|(?:not permitted|unexpected).{0,40}\breasoning_(?:content|details)/
  ],
  ["signature", /duplicate item found with id rs_/],
  // Servers of Chat Completions that take no files: vLLM, DashScope, DeepSeek. Some list what they take, images among it.
  [
    "file",
    /(?:unknown|unsupported|invalid|input)[a-z ]{0,40}(?:type|value|variant|tag)\W{1,3}(?:file|document|input_file)\b|file must have a file_id/
  ],
  // Anthropic, OpenAI, Gemini; then servers whose model has no vision: OpenRouter, vLLM, DeepSeek, Groq, Ollama, llama.cpp.
  [
    "image",
    /image.{0,80}(?:dimension|exceed|too large|too many|max|process|valid|unsupported|support|format|decod|pars|media type|corrupt|disallowed|could not|failed)/
  ],
  [
    "image",
    /(?:invalid|unsupported|process|decod|pars|load|too many|at most \d+|support|download).{0,60}image|unknown variant .?image/
  ],
  // The same of servers that name the form of the content: vLLM, llama.cpp, Groq, Cerebras, z.ai.
  [
    "image",
    new RegExp(
      String.raw`${contentForm.source}|(?:content|invalid) type image|not a (?:multimodal|vlm)|support multimodal|图[片像]|required for image|vision requests|must be type .text. if .is_error.`
    )
  ],
  [
    "file",
    /\bpdf\b|(?:unsupported|invalid|corrupt).{0,40}(?:\bfile\b|mime ?type|document\b|audio|video)|access the file|mime ?type.{0,80}not supported/
  ],
  [
    "file",
    /(?:file_data|file_id|input_file|document\b|audio|video).{0,80}(?:valid|expected|unsupported|support|exceed|pages|process|expired|not found)/
  ]
]

/** How the Gemini API says that a call has no signature. Without others, it has none either. */
export const missingSignature = /missing a .?thought_signature/i

/** Words about the request itself, not about its content: declarations of tools, and the length of a prompt, of which images are a part. */
const otherParts = /input_schema|function_declarations|tools?[.[]\d|tools?\.function|tokens of image and text/
/** The place of a tool's declaration in a request, with a field of it. Those of Gemini stand in a list of lists. Then its name, as OpenAI says it. */
const geminiPlace = /(?<!\w)tools(?:\[(\d+)\])?\.function_declarations\[(\d+)\]/
const toolPlace =
  /(?<!\w)tools(?:\[|\.|"\s*,\s*)(\d+)\]?(?:\.|"?\s*,\s*")(?:custom|function|name|description|parameters|input_schema|strict|toolSpec)\b/
const toolName = /schema for (?:function|tool) ['"`]([^'"`]+)['"`]/i

/** A tool: its place among those of a request, that in one of their lists, or its name. */
export type ToolPlace = number | string | readonly [list: number, at: number]

/** The tool whose declaration was refused, as the request has it. `status` is that of HTTP. */
export const refusedTool = (status: number, { message }: ProviderFault): ToolPlace | undefined => {
  if (status !== 400 && status !== 422) return undefined
  const [, list = "0", at] = geminiPlace.exec(message) ?? []
  if (at !== undefined) return [Number(list), Number(at)]
  const place = toolPlace.exec(message)?.[1]
  return place === undefined ? toolName.exec(message)?.[1] : Number(place)
}

/** How llama.cpp and Ollama say that their model takes no such content. Their status is that of a failing server, which may quote anything else. */
const unableTo = /input is not supported|required for image input/

/** Returns what a provider refused of a request; undefined if it was another part or the whole. `status` is that of HTTP. */
export const refusedIn = (status: number, fault: ProviderFault): RefusedContent | undefined => {
  const { isPage = false, kind, message } = fault
  if (refusedTool(status, fault) !== undefined) return "tool"
  const text = `${kind} ${message}`.toLowerCase()
  // Addresses of files that expired are refused with 403 or 404, and images by routers with 404.
  const isFailing = status >= 500 && !unableTo.test(text)
  if (isPage || status < 400 || isFailing || [401, 402, 408, 429].includes(status)) return undefined
  if (otherParts.test(text) || missingSignature.test(text)) return undefined
  return refusals.find(([, form]) => form.test(text))?.[0]
}

/** How llama.cpp says so where its window fills while it answers, and of a whole request in 2025. Its status is that of a failing server. */
const windowFull = /context size has been exceeded|exceeds the available context size/

/** The status names the cause by itself: the key, the path or the rate. */
const otherStatuses: ReadonlySet<number> = new Set([401, 402, 403, 404, 408, 429])

/** Returns in what a refused request was too large; undefined if it was refused for another reason. `status` is that of HTTP. */
export const excessOf = (status: number, fault: ProviderFault): TooManyTokens | TooManyBytes | undefined => {
  const text = `${fault.kind} ${fault.message}`.replaceAll(/(?<=\d)[,_](?=\d{3})/g, "").toLowerCase()
  const { limit: most, tokens: asked } = tooManyForAccount.exec(text)?.groups ?? {}
  if (status < 500 && Number(asked) > Number(most)) {
    return { _tag: "TooManyTokens", tokens: Number(asked), limit: Number(most) }
  }
  if (otherStatuses.has(status)) return undefined
  // A failing server may quote anything, but gives a code on purpose, and a number that is larger than its limit.
  const isFailing = status >= 500
  if (otherLimit.test(isFailing ? fault.kind.toLowerCase() : text)) return undefined
  if (fault.isPage !== true) {
    for (const form of tooManyTokens) {
      const found = form.exec(text)
      if (found === null) continue
      const { limit, more = "0", tokens } = found.groups ?? {}
      const isMeant =
        Number(tokens) + Number(more) > Number(limit) || form.test(fault.kind.toLowerCase()) || windowFull.test(text)
      if (isFailing && !isMeant) continue
      const size = fault.tokens ?? (tokens === undefined ? undefined : Number(tokens) + Number(more))
      const window = fault.limit ?? (limit === undefined ? undefined : Number(limit))
      return {
        _tag: "TooManyTokens",
        ...(size === undefined ? {} : { tokens: size }),
        ...(window === undefined ? {} : { limit: window })
      }
    }
  }
  const isBytes = status === 413 || tooManyBytes.test(text)
  return isBytes && !isFailing ? { _tag: "TooManyBytes" } : undefined
}
