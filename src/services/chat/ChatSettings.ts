import { Context, type Effect } from "effect"
import type { Policy } from "../../domain/compression/strategies/Policy.ts"
import type { MaskLimits } from "../../domain/conversation/Masking.ts"
import type { OutputBound } from "../../domain/conversation/ToolOutputBound.ts"
import { logVersion, type Started } from "../../domain/session/Session.ts"
import { estimatorVersion } from "../../domain/tokens/Tokens.ts"
import type { Generation, ModelRequest, RetryPolicy } from "../model/Model.ts"

/** How often and how patiently a turn retries: after a failed call, and after an answer that cannot be used. */
export interface TurnRetries {
  readonly call: RetryPolicy
  readonly answer: Omit<RetryPolicy, "maxServerDelayMillis">
}

/** Settings for a single model. */
export interface ModelSettings {
  readonly window?: number | undefined
  readonly threshold?: number | undefined
}

/** Settings of a conversation. Tokens are the model's. */
export interface ChatSettings {
  /** The model to ask where the session names none. */
  readonly model: string
  /** The model to ask for now, whatever the session names. Not stored in the session. */
  readonly routed?: string | undefined
  /** The working folder. Stored in a session that begins. */
  readonly cwd?: string | undefined
  /** The model's window. Default: looked up by `ModelWindows.resolve`. */
  readonly window?: number | undefined
  /** Overrides of `window` and `threshold` for single models, by name. */
  readonly models?: Readonly<Record<string, ModelSettings>> | undefined
  /**
   * Tokens of the window that are kept for the answer. Default: 0 for models whose answer has a limit of its own; for models whose
   * answer shares the window `generation.maxOutputTokens`, else 16,384 tokens or a quarter of a small window.
   */
  readonly reserve?: number | undefined
  /** The share of the window that triggers a compression (`thresholdOf`). */
  readonly threshold?: number | undefined
  /**
   * The share of the threshold from which the snapshot of the next compression is prepared while the chat goes on, where a model
   * writes snapshots. The compression then takes no time, and its price is paid also when it never becomes due. Default: 0,
   * never.
   */
  readonly prepareAt?: number | undefined
  /** The share of the free window that a message may take (default 1; Gemini CLI: 0.95). */
  readonly overflowFactor?: number | undefined
  /** The compression policy. A model writes the snapshot where `ModelSummarizer.layer` is provided to `Compression`. */
  readonly policy?: Partial<Omit<Policy, "limit" | "threshold" | "overhead" | "promptTokens">> | undefined
  readonly systemInstruction?: string | undefined
  /**
   * The environment message: where and when the conversation takes place. It opens every request in the user's role, is counted with
   * it, is no part of the conversation, and is never summarised.
   */
  readonly environment?: string | undefined
  /** Renews `environment` after a compression, before the request leaves. Default: it stays. */
  readonly refreshEnvironment?: Effect.Effect<string | undefined> | undefined
  /**
   * A message of the program that follows a compression, for example rules that must not fade. It is appended once: not while the view
   * still holds it, and not where the request fits only because of this compression. Undefined: none.
   */
  readonly afterCompression?: Effect.Effect<string | undefined> | undefined
  /** Tool declarations in the wire shape of the Gemini API. */
  readonly tools?: ModelRequest["tools"]
  readonly generation?: Generation | undefined
  /**
   * How much of a tool result enters the window; the whole is kept. Default: `defaultBound`. A `form` is also that of results
   * that a compression shortens, where `policy.outputForm` does not name another.
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

/** The settings of conversations that give none. */
export const ChatDefaults = Context.Reference<ChatSettings>("palimpsest/services/chat/ChatSettings/ChatDefaults", {
  defaultValue: () => ({ model: "gemini-2.5-flash" })
})

/** The first event of a session with these settings. */
export const startedWith = ({ cwd, model }: ChatSettings, session: string, at: number): Started => ({
  _tag: "Started",
  version: logVersion,
  session,
  at,
  estimator: estimatorVersion,
  model,
  ...(cwd === undefined ? {} : { cwd })
})
