import { nearest } from "./Nearest.ts"

/** The models we know: how large a request they take, and how long an answer may be. */

/** Whose rules a model follows. */
export type ModelFamily = "gemini" | "gemma" | "claude" | "openai" | "open"

/** The limits of one model, in tokens. */
export interface ModelLimits {
  readonly family: ModelFamily
  /** The largest request. Where the answer shares the window, request and answer together. */
  readonly window: number
  /** The longest answer, thoughts included. */
  readonly output: number
  /** Whether the answer has to fit into `window` beside the request. */
  readonly sharesWindow: boolean
}

/**
 * The window of a model that is not in the table and that the provider says nothing about. Small on purpose: nearly every
 * model that is served today takes 32 Ki tokens, and a request that is compressed early costs less than one that is refused.
 */
export const unknownWindow = 32_768

const ki = 1_024

/** Gemini: the API states the limits of input and output apart. */
const gemini = (window: number, output: number): ModelLimits => ({
  family: "gemini",
  window,
  output,
  sharesWindow: false
})
const gemma = (window: number, output: number): ModelLimits => ({ ...gemini(window, output), family: "gemma" })

/** Claude: a request whose input and `max_tokens` together exceed the window is refused. */
const claude = (window: number, output: number): ModelLimits => ({
  family: "claude",
  window,
  output,
  sharesWindow: true
})

/** OpenAI: `window` is input and answer together. */
const openai = (window: number, output: number): ModelLimits => ({
  family: "openai",
  window,
  output,
  sharesWindow: true
})
/** OpenAI since GPT-5: the largest input is a figure of its own. */
const openaiInput = (window: number, output: number): ModelLimits => ({
  ...openai(window, output),
  sharesWindow: false
})

/** Models with open weights, and others that many hosts serve: input and answer together. */
const open = (window: number, output: number): ModelLimits => ({ family: "open", window, output, sharesWindow: true })

const million = 1_048_576
const claude200 = 200_000
const gpt5 = openaiInput(272_000, 128_000)
const gpt55 = openaiInput(922_000, 128_000)
const chatModel = openai(128_000, 16_384)

/**
 * Limits as of October 2026. Gemini and Gemma: ai.google.dev/gemini-api/docs/models. Claude: platform.claude.com, "Models
 * overview"; the 200,000 of Sonnet 4 and 4.5 are those without a beta header. OpenAI: developers.openai.com/api/docs/models.
 * All compared with models.dev (`limit.context`, `limit.input`, `limit.output`) and, for open models, with the hosts listed
 * there; where hosts differ, a small one. Keys are names without dates, `-latest`, `-preview` and a provider before them
 * (`modelKey`).
 */
export const knownModels: Readonly<Record<string, ModelLimits>> = {
  "gemini-1.5-pro": gemini(2_097_152, 8_192),
  "gemini-1.5-flash": gemini(million, 8_192),
  "gemini-1.5-flash-8b": gemini(million, 8_192),
  "gemini-2.0-flash": gemini(million, 8_192),
  "gemini-2.0-flash-lite": gemini(million, 8_192),
  "gemini-2.5-pro": gemini(million, 65_536),
  "gemini-2.5-flash": gemini(million, 65_536),
  "gemini-2.5-flash-lite": gemini(million, 65_536),
  "gemini-3-pro": gemini(million, 65_536),
  "gemini-3-flash": gemini(million, 65_536),
  "gemini-3.1-pro": gemini(million, 65_536),
  "gemini-3.1-flash-lite": gemini(million, 65_536),
  "gemini-3.5-flash": gemini(million, 65_536),
  "gemini-3.7-flash": gemini(million, 65_536),
  "gemini-3.8-flash": gemini(million, 65_536),
  "gemini-pro": gemini(million, 65_536),
  "gemini-flash": gemini(million, 65_536),
  "gemini-flash-lite": gemini(million, 65_536),
  "gemma-3-4b": gemma(131_072, 8_192),
  "gemma-3-12b": gemma(131_072, 8_192),
  "gemma-3-27b": gemma(131_072, 8_192),
  // Gemini CLI, March 2026; others say 262,144.
  "gemma-4-26b-a4b": gemma(256_000, 8_192),
  "gemma-4-31b": gemma(256_000, 8_192),

  "claude-3-haiku": claude(claude200, 4_096),
  "claude-3-sonnet": claude(claude200, 4_096),
  "claude-3-opus": claude(claude200, 4_096),
  "claude-3-5-haiku": claude(claude200, 8_192),
  "claude-3-5-sonnet": claude(claude200, 8_192),
  "claude-3-7-sonnet": claude(claude200, 64_000),
  "claude-sonnet-4": claude(claude200, 64_000),
  "claude-opus-4": claude(claude200, 32_000),
  "claude-opus-4-1": claude(claude200, 32_000),
  "claude-haiku-4-5": claude(claude200, 64_000),
  "claude-sonnet-4-5": claude(claude200, 64_000),
  "claude-opus-4-5": claude(claude200, 64_000),
  "claude-sonnet-4-6": claude(1_000_000, 64_000),
  "claude-opus-4-6": claude(1_000_000, 128_000),
  "claude-opus-4-7": claude(1_000_000, 128_000),
  "claude-opus-4-8": claude(1_000_000, 128_000),
  "claude-sonnet-5": claude(1_000_000, 128_000),
  "claude-opus-5": claude(1_000_000, 128_000),
  "claude-fable-5": claude(1_000_000, 128_000),
  "claude-haiku-5-5": claude(1_000_000, 128_000),
  "claude-sonnet-5-5": claude(1_000_000, 128_000),
  "claude-opus-5-5": claude(1_000_000, 128_000),
  "claude-fable-5-1": claude(1_000_000, 128_000),

  "gpt-3.5-turbo": openai(16_385, 4_096),
  "gpt-4": openai(8_192, 8_192),
  "gpt-4-turbo": openai(128_000, 4_096),
  "gpt-4o": chatModel,
  "gpt-4o-2024-05-13": openai(128_000, 4_096),
  "gpt-4o-mini": chatModel,
  "gpt-4.1": openai(1_047_576, 32_768),
  "gpt-4.1-mini": openai(1_047_576, 32_768),
  "gpt-4.1-nano": openai(1_047_576, 32_768),
  "gpt-5": gpt5,
  "gpt-5-mini": gpt5,
  "gpt-5-nano": gpt5,
  "gpt-5-codex": gpt5,
  "gpt-5-chat": chatModel,
  // Of its window of 400,000, what its answer of up to 272,000 leaves.
  "gpt-5-pro": openaiInput(128_000, 272_000),
  "gpt-5.1": gpt5,
  "gpt-5.1-codex": gpt5,
  "gpt-5.1-codex-max": gpt5,
  "gpt-5.1-codex-mini": gpt5,
  "gpt-5.1-chat": chatModel,
  "gpt-5.2": gpt5,
  "gpt-5.2-codex": gpt5,
  "gpt-5.2-pro": gpt5,
  "gpt-5.2-chat": chatModel,
  "gpt-5.3-codex": gpt5,
  "gpt-5.3-codex-spark": openai(128_000, 32_000),
  "gpt-5.3-chat": chatModel,
  "gpt-5.4": gpt5,
  "gpt-5.4-mini": gpt5,
  "gpt-5.4-nano": gpt5,
  "gpt-5.4-pro": gpt55,
  "gpt-5.5": gpt55,
  "gpt-5.5-pro": gpt55,
  "gpt-5.6": gpt55,
  "gpt-5.6-sol": gpt55,
  "gpt-5.6-terra": gpt55,
  "gpt-5.6-luna": gpt55,
  "gpt-6-astra": gpt55,
  "gpt-6-sol": gpt55,
  "gpt-6-luna": gpt55,
  o1: openai(200_000, 100_000),
  "o1-pro": openai(200_000, 100_000),
  "o1-mini": openai(128_000, 65_536),
  o3: openai(200_000, 100_000),
  "o3-mini": openai(200_000, 100_000),
  "o3-pro": openai(200_000, 100_000),
  "o4-mini": openai(200_000, 100_000),

  "gpt-oss-20b": open(128 * ki, 32 * ki),
  "gpt-oss-120b": open(128 * ki, 32 * ki),
  "deepseek-v3.2": open(128 * ki, 64 * ki),
  "deepseek-v4-flash": open(1_000_000, 384_000),
  "deepseek-v4-pro": open(1_000_000, 384_000),
  "devstral-2": open(256 * ki, 64 * ki),
  "glm-4.5": open(128 * ki, 96 * ki),
  "glm-4.5-air": open(128 * ki, 96 * ki),
  "glm-4.6": open(200_000, 128 * ki),
  "glm-4.7": open(200_000, 128 * ki),
  "glm-5": open(200_000, 128 * ki),
  "glm-5.1": open(200_000, 128 * ki),
  "grok-4": open(256_000, 64_000),
  "grok-code-fast-1": open(256_000, 10_000),
  "kimi-k2": open(128 * ki, 16 * ki),
  "kimi-k2-0905": open(256 * ki, 16 * ki),
  "kimi-k2-thinking": open(256 * ki, 32 * ki),
  "kimi-k2.5": open(256 * ki, 32 * ki),
  "kimi-k2.6": open(256 * ki, 32 * ki),
  "llama-3.3-70b": open(128 * ki, 16 * ki),
  "llama-4-maverick": open(128 * ki, 8 * ki),
  "llama-4-scout": open(128 * ki, 8 * ki),
  "minimax-m2": open(192 * ki, 128 * ki),
  "minimax-m2.5": open(192 * ki, 128 * ki),
  "mistral-large": open(128 * ki, 16 * ki),
  "mistral-medium": open(128 * ki, 16 * ki),
  "mistral-small": open(128 * ki, 16 * ki),
  "qwen3-32b": open(40 * ki, 8 * ki),
  "qwen3-235b-a22b": open(128 * ki, 8 * ki),
  "qwen3-coder": open(256 * ki, 64 * ki),
  "qwen3-max": open(256 * ki, 32 * ki)
}

// --- from names to models -----------------------------------------------------------------------------------------------

/** Names are no longer than this. */
const longestName = 200

/** The name as its maker writes it: without the provider that passes it on, `claude-sonnet-4.5` as `claude-sonnet-4-5`. */
export const bareName = (name: string): string => {
  const bare = name
    .toLowerCase()
    .slice(name.lastIndexOf("/") + 1)
    .replace(/^(?:[a-z-]+\.)?anthropic\./, "")
    .replace("@", "-")
  return bare.startsWith("claude") ? bare.replaceAll(".", "-") : bare
}

/** What gateways and Claude Code put behind a name: `:free`, Bedrock's `-v1:0`, `[1m]`. */
const routing = /(?::(?:free|thinking|nitro|floor|extended|exacto|online|beta)|-v\d+(?::\d+)?|\[\d+m\])$/

/**
 * What does not make it another model: dates (`-20250929`, `-2025-08-07`, `-09-2025`, `-06-17`), numbers of a build (`-001`,
 * `-2512`), and words.
 */
const edition =
  /-(?:\d{8}|\d{4}-\d{2}-\d{2}|\d{2}-\d{4}|\d{2}-\d{2}|\d{3,4}|0|latest|preview|exp|experimental|customtools|it|instruct)$/

const own = (key: string): string | undefined => (Object.hasOwn(knownModels, key) ? key : undefined)

/**
 * The name under which the table has a model; undefined: it has none. Only dates, builds and words like `-latest` may be
 * missing from the name: `gemini-2.5-pro-nope` is another model than `gemini-2.5-pro`.
 */
export const modelKey = (name: string): string | undefined => {
  if (name.length > longestName) return undefined
  let key = bareName(name.trim())
  for (;;) {
    const found = own(key)
    if (found !== undefined) return found
    const shorter = key.replace(routing, "").replace(edition, "")
    if (shorter === key) return undefined
    key = shorter
  }
}

/** What the table has of a model; undefined: it has none. */
export const knownModel = (name: string): ModelLimits | undefined => {
  const key = modelKey(name)
  return key === undefined ? undefined : knownModels[key]
}

/** The window of a model, in tokens, as far as it can be said without asking anybody. */
export const tokenLimit = (name: string): number => knownModel(name)?.window ?? unknownWindow

/** Tokens that are kept for an answer whose length nobody asked for, and the most that this takes of a small window. */
const answerReserve = { tokens: 16_384, share: 0.25 }

/** What is kept of a window for an answer of any length. */
export const defaultReserve = (window: number): number =>
  Math.min(answerReserve.tokens, Math.floor(window * answerReserve.share))

/**
 * What is kept of a window for the answer: as many tokens as the request asks for at most, where both share the window,
 * else none.
 */
export const reserveFor = (
  limits: Pick<ModelLimits, "sharesWindow"> | undefined,
  window: number,
  asked: number | undefined
): number => (limits?.sharesWindow === true ? Math.min(window, asked ?? defaultReserve(window)) : 0)

/** Whether Google's API may serve a model of this name. */
export const isGoogles = (name: string): boolean => /^(?:models\/)?(?:gemini|gemma)-/.test(name)

/** The model of the table that may have been meant, of those that the provider serves. */
export const nearestModel = (name: string, serves: (name: string) => boolean): string | undefined => {
  const bare = bareName(name)
  return nearest(bare, Object.keys(knownModels).filter(serves), Math.max(2, Math.floor(bare.length / 4)))
}
