/** The settings of a conversation, with their defaults and the check of their values. */

import { Context, Effect, Predicate, Schema, Struct } from "effect"
import { optionCheck, type OptionCheck, valueCheck } from "../../domain/compression/InvalidOption.ts"
import { type Policy, policyProblem, shareProblem, tokensProblem } from "../../domain/compression/strategies/Policy.ts"
import type { MaskLimits } from "../../domain/conversation/Masking.ts"
import type { OutputBound } from "../../domain/conversation/ToolOutputBound.ts"
import { OutputForm } from "../../domain/conversation/ToolOutputShortening.ts"
import type { ModelPrice } from "../../domain/tokens/Prices.ts"
import type { Generation, ModelRequest } from "../model/Model.ts"
import type { RetryPolicy } from "../model/Retry.ts"

/** How often and how long a turn retries: after a failed call, and after an unusable answer. */
export interface TurnRetries {
  readonly call: RetryPolicy
  readonly answer: Omit<RetryPolicy, "maxServerDelayMillis">
}

/** Settings for a single model. */
export interface ModelSettings {
  readonly window?: number | undefined
  readonly threshold?: number | undefined
  /** Prices in US dollars for a million tokens. Default: the built-in ones. */
  readonly price?: ModelPrice | undefined
}

/** Settings of a conversation. Token counts use the model's tokenizer. */
export interface ChatSettings {
  /** The model to ask when the session names none. */
  readonly model: string
  /** The model to ask, also for summaries, whatever model the session names. It is not stored in the session. */
  readonly chosen?: string | undefined
  /** The model to ask now, whatever model the session names or is chosen. It is not stored in the session. */
  readonly routed?: string | undefined
  /**
   * Whether the model that a session names cannot be asked here; then `model` is asked in its place, also for summaries. Default: models of an
   * imported session that are not Google's.
   */
  readonly isUnavailable?: ((model: string) => boolean) | undefined
  /** The working folder. It is stored in a new session. */
  readonly cwd?: string | undefined
  /** The model's window. Default: looked up by `ModelWindows.resolve`. */
  readonly window?: number | undefined
  /** Overrides of `window`, `threshold` and `price` for single models, by name. */
  readonly models?: Readonly<Record<string, ModelSettings>> | undefined
  /**
   * Tokens of the window that are reserved for the answer. Default: 0 for models with a separate limit for answers.
   * For models whose answer shares the window, `generation.maxOutputTokens`, or else 16,384 tokens or a quarter of a
   * small window.
   */
  readonly reserve?: number | undefined
  /** The share of the window that triggers a compression (`thresholdOf`). */
  readonly threshold?: number | undefined
  /**
   * The share of the threshold at which the snapshot of the next compression is prepared in the background, if a
   * model writes snapshots. The compression then takes no time, but its price is paid even if it never becomes due.
   * Default: 0, never.
   */
  readonly prepareAt?: number | undefined
  /** The share of the free window that a message may take (default 1; Gemini CLI: 0.95). */
  readonly overflowFactor?: number | undefined
  /** The compression policy. A model writes the snapshot if `ModelSummarizer.layer` is provided to `Compression`. */
  readonly policy?: Partial<Omit<Policy, "limit" | "threshold" | "overhead" | "promptTokens">> | undefined
  readonly systemInstruction?: string | undefined
  /**
   * The environment message: where and when the conversation takes place. It opens every request in the user's role
   * and counts towards its size, but it is not part of the conversation and is never summarised. Until the next compression, requests begin with the
   * one that was sent first, and what has changed goes along with the next message.
   */
  readonly environment?: string | undefined
  /** Renews `environment` after a compression, before the request is sent. Default: it does not change. */
  readonly refreshEnvironment?: Effect.Effect<string | undefined> | undefined
  /**
   * A message that the program appends after a compression, for example rules that must stay in view. It is not
   * repeated while the view still contains it, or when the request fits only because of this compression. Undefined:
   * none.
   */
  readonly afterCompression?: Effect.Effect<string | undefined> | undefined
  /** Tool declarations in the wire shape of the Gemini API. */
  readonly tools?: ModelRequest["tools"]
  readonly generation?: Generation | undefined
  /**
   * How much of a tool result enters the window; the whole result is stored. Default: `defaultBound`. `form` also
   * applies to results that a compression shortens, unless `policy.outputForm` names another.
   */
  readonly toolOutput?: Partial<OutputBound> | undefined
  /** When old tool results are masked. Default: `defaultMasking`; false: never. */
  readonly masking?: Partial<MaskLimits> | false | undefined
  /** Tools whose results are never masked, in addition to the built-in list. */
  readonly unmaskedTools?: ReadonlyArray<string> | undefined
  /** Default: `defaultTurnRetries`. */
  readonly retries?: TurnRetries | undefined
}

/** Ten calls, with delays doubling from 5 s to 30 s; four answers, from 1 s on; no server is waited for longer than 5 min. */
export const defaultTurnRetries: TurnRetries = {
  call: { attempts: 10, initialDelayMillis: 5_000, maxDelayMillis: 30_000, maxServerDelayMillis: 300_000 },
  answer: { attempts: 4, initialDelayMillis: 1_000, maxDelayMillis: 8_000 }
}

const isAtLeast = (least: number) => (value: unknown) => Predicate.isNumber(value) && value >= least

const number = optionCheck(isAtLeast(-Infinity), "a number")
const size = optionCheck(isAtLeast(0), "a number, 0 or more")
const text = optionCheck(Predicate.isString, "a text")
const effect = optionCheck(Effect.isEffect, "an effect")
const object = optionCheck(Predicate.isObject, "an object")
const listOf = (isItem: (item: unknown) => boolean, expected: string) =>
  optionCheck((value) => Array.isArray(value) && value.every(isItem), expected)

/** Checks the parts of an object, by their names there: `toolOutput.most`. */
const partsOf =
  (checkOf: (part: string) => OptionCheck | undefined): OptionCheck =>
  (name, value) =>
    object(name, value) ??
    Object.entries(Predicate.isObject(value) ? value : {})
      .map(([part, one]) => checkOf(part)?.(`${name}.${part}`, one))
      .find(Predicate.isNotUndefined)

const parts = (checks: Readonly<Record<string, OptionCheck>>) =>
  partsOf((part) => (Object.hasOwn(checks, part) ? checks[part] : undefined))

const window: OptionCheck = (name, value) => tokensProblem(name, value, 1)
const masking = parts({ protect: size, least: size })

const Delay = Schema.Number.check(Schema.isGreaterThanOrEqualTo(0))
const Retries = {
  attempts: Schema.Number.check(Schema.isGreaterThanOrEqualTo(1)),
  initialDelayMillis: Delay,
  maxDelayMillis: Delay
}
const isTurnRetries = Schema.is(
  Schema.Struct({ call: Schema.Struct({ ...Retries, maxServerDelayMillis: Delay }), answer: Schema.Struct(Retries) })
)

/** What each setting may be. A program without types may pass anything. */
const checks: { readonly [K in keyof ChatSettings]-?: OptionCheck } = {
  model: optionCheck((value) => Predicate.isString(value) && value !== "", "the name of a model"),
  chosen: text,
  routed: text,
  isUnavailable: optionCheck(Predicate.isFunction, "a function of a name"),
  cwd: text,
  window,
  models: partsOf(() => parts({ window, threshold: shareProblem, price: object })),
  reserve: tokensProblem,
  threshold: shareProblem,
  prepareAt: shareProblem,
  overflowFactor: size,
  policy: (name, value) => object(name, value) ?? policyProblem(value ?? {}),
  systemInstruction: text,
  environment: text,
  refreshEnvironment: effect,
  afterCompression: effect,
  tools: listOf(Predicate.isObject, "a list of declarations"),
  generation: parts({
    temperature: number,
    topP: number,
    topK: number,
    maxOutputTokens: tokensProblem,
    thinkingBudget: number,
    responseSchema: object
  }),
  toolOutput: parts({
    most: size,
    form: optionCheck(Schema.is(OutputForm), OutputForm.literals.join(" or ")),
    lines: size
  }),
  masking: (name, value) => (value === false ? undefined : masking(name, value)),
  unmaskedTools: listOf(Predicate.isString, "a list of names"),
  retries: optionCheck(isTurnRetries, "attempts, 1 or more, and delays, 0 or more, of `call` and of `answer`")
}

/** Says what is wrong with the first of these settings whose value no conversation can have; undefined: nothing. */
export const settingsProblem = (settings: Partial<ChatSettings>): string | undefined =>
  valueCheck(Predicate.isObject, "an object")("settings", settings) ??
  Struct.keys(checks)
    .map((name) => checks[name](name, settings[name]))
    .find(Predicate.isNotUndefined)

/** The settings of conversations that are opened without any. */
export const ChatDefaults = Context.Reference<ChatSettings>("palimpsest/services/chat/ChatSettings/ChatDefaults", {
  defaultValue: () => ({ model: "gemini-2.5-flash" })
})
