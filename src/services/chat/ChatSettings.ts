import { Context, type Effect } from "effect"
import { type Policy, policyProblem, shareProblem, tokensProblem } from "../../domain/compression/strategies/Policy.ts"
import type { MaskLimits } from "../../domain/conversation/Masking.ts"
import type { OutputBound } from "../../domain/conversation/ToolOutputBound.ts"
import type { ModelPrice } from "../../domain/tokens/Prices.ts"
import type { Generation, ModelRequest } from "../model/Model.ts"
import type { RetryPolicy } from "../model/Retry.ts"

/** The settings of a conversation, with their defaults and the check of their values. */

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

/** Says what is wrong with the first of these settings whose value no conversation can have; undefined: nothing. */
export const settingsProblem = (settings: Partial<ChatSettings>): string | undefined => {
  const problems = [
    tokensProblem("window", settings.window, 1),
    shareProblem("threshold", settings.threshold),
    tokensProblem("reserve", settings.reserve),
    shareProblem("prepareAt", settings.prepareAt),
    // More than all of it is all of it.
    shareProblem("overflowFactor", settings.overflowFactor && Math.min(1, settings.overflowFactor)),
    ...Object.entries(settings.models ?? {}).flatMap(([name, { threshold, window }]) => [
      tokensProblem(`the window of ${name}`, window, 1),
      shareProblem(`the threshold of ${name}`, threshold)
    ]),
    policyProblem(settings.policy ?? {})
  ]
  return problems.find((problem) => problem !== undefined)
}

/** The settings of conversations that are opened without any. */
export const ChatDefaults = Context.Reference<ChatSettings>("palimpsest/services/chat/ChatSettings/ChatDefaults", {
  defaultValue: () => ({ model: "gemini-2.5-flash" })
})
