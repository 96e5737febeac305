/** The parts of an agent's profile that come from the settings. */

import { Context, Effect, Layer } from "effect"
import { loopDetectionOf, routerOf, type SettingsFile } from "../../domain/settings/Settings.ts"
import type { Profile } from "../agent/AgentRun.ts"
import * as LoopDetector from "../agent/LoopDetector.ts"
import { summarize } from "../agent/OutputSummary.ts"
import type { Model } from "../model/Model.ts"
import { Router } from "../model/Router.ts"
import type { TokenCounter } from "../tokens/TokenCounter.ts"
import type { HostSession } from "./AgentParts.ts"

/** Tokens of a summarized output when its setting names no budget. */
const defaultSummaryTokens = 2_000

/** The loop detection and output summaries that the settings define. Each agent needs its own. */
export const outputGuards = ({ loopDetection, model: family, redactSecrets, summarizeToolOutput }: SettingsFile) =>
  Effect.gen(function* () {
    const context = yield* Effect.context<Model | TokenCounter>()
    const numbers = loopDetectionOf(loopDetection)
    const loops =
      numbers === undefined
        ? undefined
        : yield* LoopDetector.make({
            ...LoopDetector.fromNumbers(numbers),
            ...(family === undefined ? {} : { family })
          })
    if (summarizeToolOutput === undefined) return { loops }
    return {
      loops,
      summarize: (tool: string, output: string, intent: string) => {
        const setting = Object.hasOwn(summarizeToolOutput, tool) ? summarizeToolOutput[tool] : undefined
        if (setting === undefined) return Effect.undefined
        return Effect.provideContext(
          summarize({
            tool,
            text: output,
            intent,
            budget: setting.tokenBudget ?? defaultSummaryTokens,
            family,
            redactSecrets
          }),
          context
        )
      }
    }
  })

/** Routes each message to a model, when the settings name a router. */
export const modelRoute = Effect.fnUntraced(function* ({
  chat,
  settings: { router }
}: Pick<HostSession, "chat" | "settings">) {
  const models = routerOf(router)
  if (models === undefined) return {}
  const built = yield* Layer.build(Router.layerClassifier(models))
  const { pick } = Context.get(built, Router)
  return {
    route: (request: Parameters<NonNullable<Profile["route"]>>[0]) => pick({ history: chat.contents, request })
  }
})
