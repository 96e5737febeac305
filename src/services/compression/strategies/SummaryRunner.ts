/** The common part of the strategies that keep the newest messages and summarise the rest with a model. */

import { Effect } from "effect"
import { withoutFileLists } from "../../../domain/compression/FileLists.ts"
import type { Strategy } from "../../../domain/compression/Strategy.ts"
import { summaryPlan, type SummaryStrategy } from "../../../domain/compression/SummaryPlan.ts"
import type { Entry } from "../../../domain/conversation/Conversation.ts"
import * as Work from "../../../domain/text/SlicedWork.ts"
import { planStep } from "../summary/CompressionSteps.ts"
import { Summarizer, SummarizerError } from "../summary/Summarizer.ts"
import { carryOutWith, type WriteSnapshot } from "./CarryOutPlan.ts"
import { noop } from "./CompressionResults.ts"
import type { StrategyRunner } from "./StrategyRunner.ts"

/** Returns the text of the earlier summary among these entries, whichever strategy wrote it. */
export const previousSummary = (entries: ReadonlyArray<Entry>): string | undefined => {
  const parts = entries.flatMap(({ author, content }) =>
    author === "summary" && content.role === "user" ? content.parts : []
  )
  const written = parts.flatMap((part) => (part.text === undefined ? [] : [part.text])).at(-1)
  return written === undefined
    ? undefined
    : withoutFileLists(/<summary>\n([\s\S]*)\n<\/summary>/.exec(written)?.[1] ?? written)
}

/** Returns the function that asks the summarizing model; fails when the summarizer has none. */
export const askOf = Effect.flatMap(Summarizer, ({ ask }) =>
  ask === undefined
    ? Effect.fail(
        new SummarizerError({
          reason: "AuthenticationError",
          message: "the summarizer does not support this strategy",
          cause: "no ask",
          calls: []
        })
      )
    : Effect.succeed(ask)
)

/** Makes the runner of such a strategy. `write` writes the summary with a model. */
export const summaryRunner = (strategy: Strategy, planning: SummaryStrategy, write: WriteSnapshot): StrategyRunner => {
  const decide: StrategyRunner["decide"] = (request) =>
    Work.run(summaryPlan(planning, request.conversation, request.policy, request))
  const carryOut = carryOutWith(write)
  return {
    strategy,
    decide,
    compress: (request) =>
      Effect.flatMap(planStep(decide(request)), (decision) =>
        decision._tag === "Skip"
          ? Effect.succeed(noop(decision.reason, decision.before))
          : carryOut(request, decision.plan)
      ),
    apply: carryOut
  }
}
