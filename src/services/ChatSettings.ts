import { Context, type Effect } from "effect"
import type { OutputBound } from "../domain/Bounded.ts"
import type { Policy } from "../domain/Compression.ts"
import type { MaskLimits } from "../domain/Masking.ts"
import { logVersion, type Started } from "../domain/Session.ts"
import { estimatorVersion } from "../domain/Tokens.ts"
import type { Generation, ModelRequest, Patience } from "./Model.ts"

/** How often is tried again when a call fails, and when an answer cannot be used. */
export interface TurnPatience {
  readonly call: Patience
  readonly answer: Omit<Patience, "asked">
}

/** How a conversation is held with one model. */
export interface ModelSettings {
  readonly window?: number | undefined
  readonly threshold?: number | undefined
}

/** How a conversation is held. Tokens are the model's. */
export interface ChatSettings {
  /** The model that is asked where the session names none. */
  readonly model: string
  /** The model that is asked for the time being, whatever the session names; not noted in it. */
  readonly routed?: string | undefined
  /** The folder the conversation is about; noted in a session that begins. */
  readonly cwd?: string | undefined
  /** The model's window, where it is not the known one (`ModelWindows.of`). */
  readonly window?: number | undefined
  /** What holds for single models, by name, in the place of `window` and `threshold`. */
  readonly models?: Readonly<Record<string, ModelSettings>> | undefined
  /**
   * What is kept of the window for the answer. Absent: 0 for models whose answer has a limit of its own; for those whose
   * answer shares the window `generation.maxOutputTokens`, else 16,384 tokens or a quarter of a small window.
   */
  readonly reserve?: number | undefined
  /** Share of the window that triggers a compression (`thresholdOf`). */
  readonly threshold?: number | undefined
  /** The most that a message may take of what is left (spec 4: 1; seed 002: 0.95). */
  readonly overflowFactor?: number | undefined
  /** How is compressed. A model writes the snapshot where `ModelSummarizer.layer` stands behind `Compression`. */
  readonly policy?: Partial<Omit<Policy, "limit" | "threshold" | "overhead" | "promptTokens">> | undefined
  readonly systemInstruction?: string | undefined
  /**
   * A message in the user's role that opens every request and is no part of the conversation: where and when it is held (spec
   * 10). Never summarised; counted with the request.
   */
  readonly environment?: string | undefined
  /** Makes `environment` anew: after a compression, before the request that it made room for. Absent: it stays. */
  readonly renew?: Effect.Effect<string | undefined> | undefined
  /** Tool declarations in the wire shape of the Gemini API. */
  readonly tools?: ModelRequest["tools"]
  readonly generation?: Generation | undefined
  /** How much of a tool's result enters the window; the whole is kept. Absent: `defaultBound`. */
  readonly toolOutput?: Partial<OutputBound> | undefined
  /** When old results are shown by their ends only. Absent: `defaultMasking`; false: never. */
  readonly masking?: Partial<MaskLimits> | false | undefined
  /** Tools whose results are never masked, beside those of `alwaysKept`. */
  readonly keeps?: ReadonlyArray<string> | undefined
  /** Absent: `defaultPatience`. */
  readonly patience?: TurnPatience | undefined
}

/** Spec 1.6: ten calls, from 5 s doubling to 30 s; four answers, from 1 s on. Longer than 5 min no server is waited for. */
export const defaultPatience: TurnPatience = {
  call: { attempts: 10, first: 5_000, most: 30_000, asked: 300_000 },
  answer: { attempts: 4, first: 1_000, most: 8_000 }
}

/** How conversations are held where nobody says otherwise. */
export const ChatDefaults = Context.Reference<ChatSettings>("palimpsest/services/ChatDefaults", {
  defaultValue: () => ({ model: "gemini-2.5-flash" })
})

/** How a session begins that is held like this. */
export const startedWith = ({ cwd, model }: ChatSettings, session: string, at: number): Started => ({
  _tag: "Started",
  version: logVersion,
  session,
  at,
  estimator: estimatorVersion,
  model,
  ...(cwd === undefined ? {} : { cwd })
})
