/** Prices of models, and the cost of a conversation. */

import { Result, Schema, SchemaIssue } from "effect"
import { bareName } from "../model/ModelLimits.ts"
import { parseJson } from "../text/JsonText.ts"
import { addClamped, addUsage, type Usage } from "./Tokens.ts"

const priceText = "a number from 0 to 1000000 (US dollars for a million tokens)"
const Price = Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1_000_000 }, { expected: priceText }))

const rates = {
  /** The price of input tokens. */
  input: Price,
  /** The price of output tokens, thoughts included. */
  output: Price,
  /** The price of tokens read from a cache. Absent: as `input`. */
  cacheRead: Schema.optionalKey(Price),
  /** The price of tokens written to a cache. Absent: as `input`. */
  cacheWrite: Schema.optionalKey(Price),
  /** The price of tokens written to a cache that keeps them for an hour. Absent: as `cacheWrite`. */
  cacheWriteHour: Schema.optionalKey(Price)
}

/** Prices of one model, in US dollars for a million tokens. */
export const ModelPrice = Schema.Struct({
  ...rates,
  /** Other prices for a whole request of more than `tokens`. */
  above: Schema.optionalKey(Schema.Struct({ tokens: Schema.Natural, ...rates }))
})
export type ModelPrice = typeof ModelPrice.Type

/** A table of prices by the beginning of a model's name, the format that `--prices` reads. */
export const PriceTable = Schema.Struct({ models: Schema.Record(Schema.String, ModelPrice) })
export type PriceTable = typeof PriceTable.Type

/** A price table and its source, which is shown with the cost. */
export interface Prices {
  readonly source: string
  readonly table: PriceTable
}

/** The cost of the requests to one model. */
export const ModelCost = Schema.Struct({
  /** The model; `unknown` if the log does not name it. */
  model: Schema.String,
  requests: Schema.Natural,
  /** All tokens sent, including those from a cache. */
  prompt: Schema.Natural,
  cached: Schema.Natural,
  cacheWrite: Schema.Natural,
  answer: Schema.Natural,
  thoughts: Schema.Natural,
  /** US dollars. Null: the table has no price for the model. */
  cost: Schema.NullOr(Schema.Finite)
})
export type ModelCost = typeof ModelCost.Type

/** The cost of a conversation. */
export const Cost = Schema.Struct({
  currency: Schema.Literal("USD"),
  /** The source of the prices: the built-in table with its date, or a file. */
  table: Schema.String,
  /** The total over the models with a price. Null: there are models, and none has a price. */
  total: Schema.NullOr(Schema.Finite),
  /** Most expensive first; models without a price last. */
  models: Schema.Array(ModelCost),
  /** Whether the tokens are estimates, because the agent recorded no counts. */
  estimated: Schema.Boolean,
  /** Models without a price. */
  unpriced: Schema.Array(Schema.String)
})
export type Cost = typeof Cost.Type

/** Anthropic's caches: a read costs a tenth of the input price, a write for five minutes a quarter more, for an hour twice. */
const anthropic = (input: number, output: number) => ({
  input,
  output,
  cacheRead: input / 10,
  cacheWrite: input * 1.25,
  cacheWriteHour: input * 2
})

/** Google and OpenAI: a read costs this share of the input price, and a write has no price of its own. */
const cachedAt = (share: number) => (input: number, output: number) => ({ input, output, cacheRead: input * share })
const tenth = cachedAt(0.1)
const quarter = cachedAt(0.25)
const half = cachedAt(0.5)

const longPromptTokens = 200_000
const sonnet4 = { ...anthropic(3, 15), above: { tokens: longPromptTokens, ...anthropic(6, 22.5) } }
/** OpenAI's prices for a whole request of more than 272,000 tokens: twice for input, half as much again for output. */
const long = (cacheWrite?: number) => (input: number, output: number) => {
  const at = (times: number) => (cacheWrite === undefined ? {} : { cacheWrite: input * cacheWrite * times })
  return {
    ...tenth(input, output),
    ...at(1),
    above: { tokens: 272_000, ...tenth(input * 2, output * 1.5), ...at(2) }
  }
}
const gpt5 = long()
const gpt6 = long(1.25)
const gpt61 = (input: number, output: number) => {
  const price = gpt6(input, output)
  return { ...price, cacheRead: input / 20, above: { ...price.above, cacheRead: input / 10 } }
}
const gemini25Pro = { ...tenth(1.25, 10), above: { tokens: longPromptTokens, ...tenth(2.5, 15) } }
const gemini3Pro = { ...tenth(2, 12), above: { tokens: longPromptTokens, ...tenth(4, 18) } }

/**
 * Public list prices for text as of October 2026, without batch discounts and tools of the server: platform.claude.com ("Pricing" and the pages of
 * the models), developers.openai.com/api/docs/pricing and ai.google.dev/gemini-api/docs/pricing. These prices do not follow changes: `--prices` replaces them.
 */
export const builtInPrices: Prices = {
  source: "built in, list prices of October 2026",
  table: {
    models: {
      "gemini-2.0-flash": quarter(0.1, 0.4),
      "gemini-2.0-flash-lite": { input: 0.075, output: 0.3 },
      "gemini-2.5-pro": gemini25Pro,
      "gemini-2.5-flash": tenth(0.3, 2.5),
      "gemini-2.5-flash-lite": tenth(0.1, 0.4),
      "gemini-3-pro": gemini3Pro,
      "gemini-3.1-pro": gemini3Pro,
      "gemini-3-flash": tenth(0.5, 3),
      "gemini-3.1-flash-lite": tenth(0.25, 1.5),
      "gemini-3.5-flash": tenth(1.5, 9),
      // Half price until the end of 2027, and of 2026.
      "gemini-3.7-flash": tenth(0.75, 3.75),
      "gemini-3.8-flash": tenth(0.75, 3.75),
      "claude-3-haiku": { input: 0.25, output: 1.25, cacheRead: 0.03, cacheWrite: 0.3, cacheWriteHour: 0.5 },
      "claude-3-opus": anthropic(15, 75),
      "claude-3-5-haiku": anthropic(0.8, 4),
      "claude-3-5-sonnet": anthropic(3, 15),
      "claude-3-7-sonnet": anthropic(3, 15),
      "claude-sonnet-4-0": sonnet4,
      "claude-sonnet-4-20250514": sonnet4,
      "claude-sonnet-4-5": sonnet4,
      "claude-sonnet-4-6": anthropic(3, 15),
      "claude-sonnet-5": anthropic(2, 10),
      "claude-sonnet-5-5": { ...anthropic(2, 10), cacheRead: 0.1 },
      "claude-opus-4-0": anthropic(15, 75),
      "claude-opus-4-20250514": anthropic(15, 75),
      "claude-opus-4-1": anthropic(15, 75),
      "claude-opus-4-5": anthropic(5, 25),
      "claude-opus-4-6": anthropic(5, 25),
      "claude-opus-4-7": anthropic(5, 25),
      "claude-opus-4-8": anthropic(5, 25),
      "claude-opus-5": anthropic(5, 25),
      "claude-opus-5-5": { ...anthropic(4, 20), cacheRead: 0.2 },
      "claude-haiku-4-5": anthropic(1, 5),
      "claude-haiku-5-5": { ...anthropic(0.1, 0.5), above: { tokens: 100_000, ...anthropic(0.5, 2.5) } },
      "claude-fable-5": anthropic(10, 50),
      "claude-fable-5-1": { ...anthropic(10, 50), cacheRead: 0.25 },
      "claude-fable-5-2": { ...anthropic(8, 40), cacheRead: 0.2 },
      "gpt-4o": half(2.5, 10),
      "gpt-4o-mini": half(0.15, 0.6),
      "gpt-4.1": quarter(2, 8),
      "gpt-4.1-mini": quarter(0.4, 1.6),
      "gpt-4.1-nano": quarter(0.1, 0.4),
      "gpt-5": tenth(1.25, 10),
      "gpt-5-mini": tenth(0.25, 2),
      "gpt-5-nano": tenth(0.05, 0.4),
      "gpt-5-pro": { input: 15, output: 120 },
      "gpt-5.1": tenth(1.25, 10),
      "gpt-5.1-codex-mini": tenth(0.25, 2),
      "gpt-5.2": tenth(1.75, 14),
      "gpt-5.2-pro": { input: 21, output: 168 },
      "gpt-5.3-codex": tenth(1.75, 14),
      "gpt-5.4": gpt5(2.5, 15),
      "gpt-5.4-mini": tenth(0.75, 4.5),
      "gpt-5.4-nano": tenth(0.2, 1.25),
      "gpt-5.4-pro": { input: 30, output: 180 },
      "gpt-5.5": gpt5(5, 30),
      "gpt-5.5-pro": { input: 30, output: 180 },
      "gpt-5.6": gpt5(4, 20),
      "gpt-5.6-sol": gpt5(4, 20),
      "gpt-5.6-terra": gpt5(2, 12),
      "gpt-5.6-luna": gpt5(0.2, 1.2),
      // Reads of its cache cost a twentieth.
      "gpt-6.1-sol": gpt61(2, 10),
      "gpt-6.1-terra": gpt61(1, 5),
      "gpt-6-astra": gpt6(10, 50),
      "gpt-6-sol": gpt6(2, 10),
      "gpt-6-luna": gpt6(0.1, 0.5)
    }
  }
}

const example = '{"models": {"gemini-2.5-pro": {"input": 1.25, "output": 10}}}'
const priceKeys = ["input", "output", "cacheRead", "cacheWrite", "cacheWriteHour"]

const decodeTable = Schema.decodeUnknownResult(PriceTable, { onExcessProperty: "error" })
const issues = SchemaIssue.makeFormatterStandardSchemaV1({
  leafHook: (issue) =>
    issue._tag === "UnexpectedKey"
      ? "is not a known key"
      : issue._tag === "MissingKey"
        ? "is missing"
        : SchemaIssue.defaultLeafHook(issue)
})

/** The expected value at a path of a table. */
const expectedAt = (path: ReadonlyArray<string>): string => {
  const [, model, key, inner] = path
  if (path[0] !== "models" || model === undefined) return example
  const isAbove = key === "above"
  const last = isAbove ? inner : key
  if (last === undefined) return isAbove ? `an object with tokens, ${priceKeys.join(", ")}` : "an object with prices"
  if (last === "tokens" && isAbove) return "a whole number of tokens"
  return priceKeys.includes(last) ? priceText : `only ${[...priceKeys, isAbove ? "tokens" : "above"].join(", ")}`
}

/** Parses a price table from the text of a file. The failure says in one line what was expected, and at which key. */
export const parsePrices = (text: string): Result.Result<PriceTable, string> => {
  const invalid = (path: string, detail: string, expected: string) =>
    Result.fail(`${path === "" ? "" : `${path}: `}${detail === "" ? "" : `${detail}; `}expected ${expected}`)
  const json = parseJson(text.startsWith("\uFEFF") ? text.slice(1) : text)
  if (Result.isFailure(json)) {
    const { _tag, message } = json.failure
    return invalid("", _tag === "NotJson" ? `not JSON (${message})` : message, example)
  }
  const table = decodeTable(json.success)
  if (Result.isFailure(table)) {
    const issue = issues(table.failure.issue).issues[0]
    const path = (issue?.path ?? []).map((step) => String(typeof step === "object" ? step.key : step))
    const issueText = issue?.message ?? ""
    return invalid(path.join("."), issueText.startsWith("is ") ? issueText : "", expectedAt(path))
  }
  const names = Object.keys(table.success.models)
  if (names.length === 0) return invalid("models", "is empty", example)
  if (names.includes("")) return invalid("models", "a name is empty", "the beginning of a model's name")
  return Result.succeed(table.success)
}

/** The maximum length of a name, and of a key that can match. */
const maxNameChars = 200

/** Whether a number continues at `end`: `gpt-5` is no beginning of `gpt-5.2`, nor `opus-4-1` of `opus-4-10`. */
const isInsideNumber = (name: string, end: number): boolean =>
  /^\d$/.test(name.charAt(end - 1)) && /^\.?\d/.test(name.slice(end, end + 2))

/** The price of a model, from the longest key that its name begins with. */
export const priceOf = (table: PriceTable, model: string): ModelPrice | undefined => {
  const whole = model.slice(0, maxNameChars)
  for (const name of [whole, bareName(whole)]) {
    for (let end = name.length; end > 0; end -= 1) {
      const key = name.slice(0, end)
      if (Object.hasOwn(table.models, key) && !isInsideNumber(name, end)) return table.models[key]
    }
  }
  return undefined
}

/** The built-in prices, and the user's own for single models, by the beginning of a name. */
export const pricesWith = (
  models: Readonly<Record<string, { readonly price?: ModelPrice | undefined }>> = {}
): Prices => {
  const own = Object.entries(models).flatMap(([name, { price }]) =>
    price === undefined ? [] : [[name, price] as const]
  )
  return own.length === 0
    ? builtInPrices
    : {
        source: `${builtInPrices.source}, and settings`,
        table: { models: { ...builtInPrices.table.models, ...Object.fromEntries(own) } }
      }
}

/** The prices of one request, which depend on its size. */
export const rateOf = (price: ModelPrice, usage: Usage): Omit<ModelPrice, "above"> =>
  price.above !== undefined && usage.prompt > price.above.tokens ? price.above : price

/** The cost of one request in millionths of a US dollar. */
export const requestCost = (price: ModelPrice, usage: Usage): number => {
  const rate = rateOf(price, usage)
  const written = usage.cacheWrite ?? 0
  const forAnHour = Math.min(written, usage.cacheWriteHour ?? 0)
  const fresh = Math.max(0, usage.prompt - usage.cached - written)
  return (
    fresh * rate.input +
    usage.cached * (rate.cacheRead ?? rate.input) +
    (written - forAnHour) * (rate.cacheWrite ?? rate.input) +
    forAnHour * (rate.cacheWriteHour ?? rate.cacheWrite ?? rate.input) +
    (usage.answer + usage.thoughts) * rate.output
  )
}

/** The tokens of all requests of a cost: sent, answered (thoughts included), and the number of requests. */
export const tokensOfCost = ({ models }: Cost) =>
  models.reduce(
    (all, one) => ({
      requests: addClamped(all.requests, one.requests),
      sent: addClamped(all.sent, one.prompt),
      cached: addClamped(all.cached, one.cached),
      answered: addClamped(all.answered, addClamped(one.answer, one.thoughts))
    }),
    { requests: 0, sent: 0, cached: 0, answered: 0 }
  )

/** One request to a model, and its usage. */
export interface PricedRequest {
  readonly model: string
  readonly usage: Usage
}

const byCost = (a: ModelCost, b: ModelCost): number =>
  (b.cost ?? -1) - (a.cost ?? -1) || b.prompt - a.prompt || (a.model < b.model ? -1 : 1)

/** What requests to one model used. */
interface ModelSum {
  readonly price: ModelPrice | undefined
  readonly requests: number
  readonly usage: Usage
  /** Millionths of a US dollar. Undefined: the cost of no request is known. */
  readonly micros: number | undefined
}

/** The cost of requests: as the agent recorded it, else by a table. `estimated`: their tokens are estimates. */
export const costOf = (requests: Iterable<PricedRequest>, prices: Prices, estimated: boolean): Cost => {
  const sums = new Map<string, ModelSum>()
  for (const { model, usage } of requests) {
    const before = sums.get(model)
    const price = before === undefined ? priceOf(prices.table, model) : before.price
    const own = usage.cost === undefined ? price && requestCost(price, usage) : usage.cost * 1e6
    sums.set(model, {
      price,
      requests: 1 + (before?.requests ?? 0),
      usage: before === undefined ? usage : addUsage(before.usage, usage),
      micros: own === undefined ? before?.micros : own + (before?.micros ?? 0)
    })
  }
  const models = [...sums].map(([model, { micros, requests, usage }]): ModelCost => {
    const { answer, cached, cacheWrite = 0, prompt, thoughts } = usage
    const cost = micros === undefined ? null : Math.round(micros) / 1e6
    return { model, requests, prompt, cached, cacheWrite, answer, thoughts, cost }
  })
  const known = [...sums.values()].flatMap(({ micros }) => micros ?? [])
  return {
    currency: "USD",
    table: prices.source,
    total:
      known.length === 0 && models.length > 0
        ? null
        : known.reduce((total, micros) => total + Math.round(micros), 0) / 1e6,
    models: models.sort(byCost),
    estimated,
    unpriced: models.flatMap(({ cost, model }) => (cost === null ? [model] : []))
  }
}
