/** Previews what an agent would send, without a session. */

import { Effect, type Path } from "effect"
import type { PromptSize } from "../../domain/prompt/PromptInputs.ts"
import { estimateText } from "../../domain/tokens/Tokens.ts"
import type { EnvFiles } from "../platform/Environment.ts"
import type { BuiltPrompt } from "../prompt/SystemPrompt.ts"
import type { RuntimeServices } from "./AgentHost.ts"
import * as Runtime from "./Runtime.ts"
import type { RuntimeError } from "./RuntimeError.ts"
import type { Notify } from "./RuntimeNotice.ts"
import * as SessionOpening from "./SessionOpening.ts"

/** Options of a preview; what is undefined is as in the settings. */
export interface PromptPreviewOptions {
  readonly size: PromptSize | undefined
  /** Whether plan mode is on. */
  readonly plan: boolean
  readonly model: string | undefined
}

/** Everything that is sent with every request before the conversation. */
export interface PromptPreview {
  readonly built: BuiltPrompt
  /** Estimated tokens of the tools' declarations. */
  readonly toolTokens?: number | undefined
  /** The environment message, as it would be sent. */
  readonly environment?: string | undefined
}

/** Assembles what an agent would send from this folder before the first message. Session hooks do not run. */
export const make: (
  options: PromptPreviewOptions,
  notify: Notify
) => Effect.Effect<PromptPreview, RuntimeError, EnvFiles | Path.Path | RuntimeServices | SessionOpening.ChatServices> =
  Effect.fn("PromptPreview.make")(function* ({ model, plan, size }: PromptPreviewOptions, notify: Notify) {
    const opened = yield* SessionOpening.openTemporary({ model }, { notify }, true)
    const { settings } = opened
    const sized = size === undefined ? settings : { ...settings, prompt: { ...settings.prompt, size } }
    const { context } = yield* Runtime.host(
      { ...opened, settings: sized },
      { isPreview: true, ...(plan ? { approve: "plan" as const } : {}) },
      { notify }
    )
    const { tools } = yield* opened.chat.settings
    return {
      built: yield* context.prompt,
      toolTokens: tools === undefined ? 0 : estimateText(JSON.stringify(tools)),
      environment: yield* context.environment
    }
  }, Effect.scoped)
