/** The table of models: how large a request may be, and how long an answer. The service `ModelWindows` decides which window a request has. */

import { closestName } from "../text/SpellingSuggestion.ts"

/** The family of a model, whose rules it follows. */
export type ModelFamily = "gemini" | "gemma" | "claude" | "openai" | "open"

/** The limits of one model, in tokens. */
export interface ModelLimits {
  readonly family: ModelFamily
  /** The largest request. If the answer shares the window: request and answer together. */
  readonly window: number
  /** The longest answer, thoughts included. */
  readonly output: number
  /** Whether the answer must fit into `window` together with the request. */
  readonly sharesWindow: boolean
}

/**
 * The window assumed for a model that neither the table nor the provider knows. Small on purpose: nearly every model today takes
 * 32 Ki tokens, and a request that is compressed early costs less than one that is refused.
 */
export const assumedWindow = 32_768

const kibi = 1_024

const limits =
  (family: ModelFamily, sharesWindow: boolean) =>
  (window: number, output: number): ModelLimits => ({ family, window, output, sharesWindow })

/** The API states separate limits for input and output. */
const gemini = limits("gemini", false)
const gemma = limits("gemma", false)
/** A request whose input and `max_tokens` together exceed the window is refused. */
const claude = limits("claude", true)
/** The window is input and answer together; since GPT-5 the largest input is a separate limit. */
const openai = limits("openai", true)
const openaiInput = limits("openai", false)
/** Open-weight models, and others that many hosts serve: input and answer together. */
const openWeights = limits("open", true)

const million = 1_048_576
const claude200 = 200_000
const gpt5 = openaiInput(272_000, 128_000)
const gpt5Large = openaiInput(922_000, 128_000)
const chatModel = openai(128_000, 16_384)

/**
 * Limits as of November 2026. Gemini and Gemma: ai.google.dev/gemini-api/docs/models. Claude: platform.claude.com, "Models
 * overview"; the 200,000 of Sonnet 4 and 4.5 are those without a beta header. OpenAI: developers.openai.com/api/docs/models.
 * All compared with models.dev (`limit.context`, `limit.input`, `limit.output`) and, for open models, with the hosts listed
 * there; where hosts differ, a small one. Keys are names without dates, `-latest`, `-preview` and a provider before them
 * (`modelKey`).
 */
const limitsOfModels: ReadonlyArray<readonly [limits: ModelLimits, names: string]> = [
  [gemma(131_072, 8_192), "gemma-3-4b gemma-3-12b gemma-3-27b"],
  // Gemini CLI, March 2026; others say 262,144.
  [gemma(256_000, 8_192), "gemma-4-26b-a4b gemma-4-31b"],
  [gemini(2_097_152, 8_192), "gemini-1.5-pro"],
  [gemini(million, 8_192), "gemini-1.5-flash gemini-1.5-flash-8b gemini-2.0-flash gemini-2.0-flash-lite"],
  [
    gemini(million, 65_536),
    `gemini-2.5-pro gemini-2.5-flash gemini-2.5-flash-lite gemini-3-pro gemini-3-flash gemini-3.1-pro
    gemini-3.1-flash-lite gemini-3.5-flash gemini-3.7-flash gemini-3.8-flash gemini-pro gemini-flash
    gemini-flash-lite`
  ],
  [claude(claude200, 4_096), "claude-3-haiku claude-3-sonnet claude-3-opus"],
  [claude(claude200, 8_192), "claude-3-5-haiku claude-3-5-sonnet"],
  [claude(claude200, 64_000), "claude-3-7-sonnet claude-sonnet-4"],
  [claude(claude200, 32_000), "claude-opus-4 claude-opus-4-1"],
  [claude(claude200, 64_000), "claude-haiku-4-5 claude-sonnet-4-5 claude-opus-4-5"],
  [claude(1_000_000, 64_000), "claude-sonnet-4-6"],
  [
    claude(1_000_000, 128_000),
    `claude-opus-4-6 claude-opus-4-7 claude-opus-4-8 claude-sonnet-5 claude-opus-5 claude-fable-5 claude-haiku-5-5
    claude-sonnet-5-5 claude-opus-5-5 claude-fable-5-1 claude-fable-5-2`
  ],
  [openai(16_385, 4_096), "gpt-3.5-turbo"],
  [openai(8_192, 8_192), "gpt-4"],
  [openai(128_000, 4_096), "gpt-4-turbo"],
  [chatModel, "gpt-4o"],
  [openai(128_000, 4_096), "gpt-4o-2024-05-13"],
  [chatModel, "gpt-4o-mini"],
  [openai(1_047_576, 32_768), "gpt-4.1 gpt-4.1-mini gpt-4.1-nano"],
  [gpt5, "gpt-5 gpt-5-mini gpt-5-nano gpt-5-codex"],
  [chatModel, "gpt-5-chat"],
  // The rest of its window of 400,000 after an answer of up to 272,000.
  [openaiInput(128_000, 272_000), "gpt-5-pro"],
  [gpt5, "gpt-5.1 gpt-5.1-codex gpt-5.1-codex-max gpt-5.1-codex-mini"],
  [chatModel, "gpt-5.1-chat"],
  [gpt5, "gpt-5.2 gpt-5.2-codex gpt-5.2-pro"],
  [chatModel, "gpt-5.2-chat"],
  [gpt5, "gpt-5.3-codex"],
  [openai(128_000, 32_000), "gpt-5.3-codex-spark"],
  [chatModel, "gpt-5.3-chat"],
  [gpt5, "gpt-5.4 gpt-5.4-mini gpt-5.4-nano"],
  [
    gpt5Large,
    `gpt-5.4-pro gpt-5.5 gpt-5.5-pro gpt-5.6 gpt-5.6-sol gpt-5.6-terra gpt-5.6-luna gpt-6.1-sol gpt-6.1-terra
    gpt-6-astra gpt-6-sol gpt-6-luna`
  ],
  [openai(200_000, 100_000), "o1 o1-pro"],
  [openai(128_000, 65_536), "o1-mini"],
  [openai(200_000, 100_000), "o3 o3-mini o3-pro o4-mini"],
  [openWeights(128 * kibi, 32 * kibi), "gpt-oss-20b gpt-oss-120b"],
  [openWeights(128 * kibi, 64 * kibi), "deepseek-v3.2"],
  [openWeights(1_000_000, 384_000), "deepseek-v4-flash deepseek-v4-pro"],
  [openWeights(256 * kibi, 64 * kibi), "devstral-2"],
  [openWeights(128 * kibi, 96 * kibi), "glm-4.5 glm-4.5-air"],
  [openWeights(200_000, 128 * kibi), "glm-4.6 glm-4.7 glm-5 glm-5.1"],
  [openWeights(256_000, 64_000), "grok-4"],
  [openWeights(256_000, 10_000), "grok-code-fast-1"],
  [openWeights(128 * kibi, 16 * kibi), "kimi-k2"],
  [openWeights(256 * kibi, 16 * kibi), "kimi-k2-0905"],
  [openWeights(256 * kibi, 32 * kibi), "kimi-k2-thinking kimi-k2.5 kimi-k2.6"],
  [openWeights(128 * kibi, 16 * kibi), "llama-3.3-70b"],
  [openWeights(128 * kibi, 8 * kibi), "llama-4-maverick llama-4-scout"],
  [openWeights(192 * kibi, 128 * kibi), "minimax-m2 minimax-m2.5"],
  [openWeights(128 * kibi, 16 * kibi), "mistral-large mistral-medium mistral-small"],
  [openWeights(40 * kibi, 8 * kibi), "qwen3-32b"],
  [openWeights(128 * kibi, 8 * kibi), "qwen3-235b-a22b"],
  [openWeights(256 * kibi, 64 * kibi), "qwen3-coder"],
  [openWeights(256 * kibi, 32 * kibi), "qwen3-max"]
]

/** The limits of each model. Of models that take each other's place, the newer one comes later. */
export const modelTable: Readonly<Record<string, ModelLimits>> = Object.fromEntries(
  limitsOfModels.flatMap(([of, names]) => names.split(/\s+/).map((name) => [name, of] as const))
)

/** The maximum length of a name. */
const maxNameChars = 200

/** The name as its maker writes it: without the provider that serves it, `claude-sonnet-4.5` as `claude-sonnet-4-5`. */
export const bareName = (name: string): string => {
  const bare = name
    .toLowerCase()
    .slice(name.lastIndexOf("/") + 1)
    .replace(/^(?:[a-z-]+\.)?anthropic\./, "")
    .replace("@", "-")
  return bare.startsWith("claude") ? bare.replaceAll(".", "-") : bare
}

/** Suffixes that gateways and Claude Code add to a name: `:free`, Bedrock's `-v1:0`, `[1m]`. */
const gatewaySuffix = /(?::(?:free|thinking|nitro|floor|extended|exacto|online|beta)|-v\d+(?::\d+)?|\[\d+m\])$/

/**
 * Parts of a name that do not make it another model: dates (`-20250929`, `-2025-08-07`, `-09-2025`, `-06-17`), build numbers (`-001`, `-2512`), and
 * words.
 */
const editionSuffix =
  /-(?:\d{8}|\d{4}-\d{2}-\d{2}|\d{2}-\d{4}|\d{2}-\d{2}|\d{3,4}|0|latest|preview|exp|experimental|customtools|it|instruct)$/

const tableKey = (key: string): string | undefined => (Object.hasOwn(modelTable, key) ? key : undefined)

/**
 * The name of a model in the table. Undefined: the table does not have it. Only dates, builds and words like `-latest` may be missing from the name:
 * `gemini-2.5-pro-nope` is a different model than `gemini-2.5-pro`.
 */
export const modelKey = (name: string): string | undefined => {
  if (name.length > maxNameChars) return undefined
  let key = bareName(name.trim())
  for (;;) {
    const tableName = tableKey(key)
    if (tableName !== undefined) return tableName
    const shorter = key.replace(gatewaySuffix, "").replace(editionSuffix, "")
    if (shorter === key) return undefined
    key = shorter
  }
}

/** The limits of a model; undefined: it is not in the table. */
export const modelLimits = (name: string): ModelLimits | undefined => {
  const key = modelKey(name)
  return key === undefined ? undefined : modelTable[key]
}

/**
 * The window of a model in tokens, without asking the provider.
 *
 * **Example** (Looking up a window)
 *
 * ```ts
 * import { Tokens } from "palimpsest"
 *
 * console.log(Tokens.tokenLimit("gemini-2.5-flash"), Tokens.tokenLimit("a-model-of-mine")) // => 1048576 32768
 * ```
 */
export const tokenLimit = (name: string): number => modelLimits(name)?.window ?? assumedWindow

/** Tokens kept for an answer without a requested length, and their largest share of a small window. */
const defaultAnswerReserve = { tokens: 16_384, share: 0.25 }

/** Tokens of a window that are kept for an answer of any length. */
export const defaultReserve = (window: number): number =>
  Math.min(defaultAnswerReserve.tokens, Math.floor(window * defaultAnswerReserve.share))

/** The longest answer of a model, in tokens, that a request names where it has to name one. */
export const answerLength = (name: string): number =>
  Math.min(defaultReserve(tokenLimit(name)), modelLimits(name)?.output ?? Infinity)

/** Tokens of a window that are kept for the answer: the requested maximum where request and answer share the window, else none. */
export const reserveFor = (
  limits: Pick<ModelLimits, "sharesWindow"> | undefined,
  window: number,
  requested: number | undefined
): number => (limits?.sharesWindow === true ? Math.min(window, requested ?? defaultReserve(window)) : 0)

/** Whether the name is that of a Google model. */
export const isGoogleModel = (name: string): boolean => /^(?:models\/)?(?:gemini|gemma)-/.test(name)

/** The provider that makes a model, by its name: `claude-sonnet-5`, `openai/gpt-5`. Undefined: the name does not say. */
export const makerOf = (name: string): "anthropic" | "google" | "openai" | undefined => {
  const bare = bareName(name)
  if (isGoogleModel(bare)) return "google"
  if (bare.startsWith("claude-")) return "anthropic"
  return /^(?:gpt-|o\d|chatgpt-|codex-)/.test(bare) && !bare.startsWith("gpt-oss") ? "openai" : undefined
}

/**
 * The models to choose from: the current one, then those of the table that can be asked at their maker, of the same maker before others, the newest
 * first. Open models are not among them: their names do not say who serves them.
 */
export const modelChoices = (current: string, canAsk: (name: string) => boolean): ReadonlyArray<string> => {
  const maker = makerOf(current)
  const newest = Object.keys(modelTable)
    .filter((name) => makerOf(name) !== undefined && canAsk(name))
    .toReversed()
  const isOther = (name: string) => makerOf(name) !== maker
  return [...new Set([current, ...newest.filter((name) => !isOther(name)), ...newest.filter(isOther)])]
}

/** The model in the table with the closest name, of those that the provider serves. */
export const suggestModel = (name: string, serves: (name: string) => boolean): string | undefined => {
  const bare = bareName(name)
  return closestName(bare, Object.keys(modelTable).filter(serves), Math.max(2, Math.floor(bare.length / 4)))
}
