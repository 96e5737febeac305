/** Makes the plan of a compression of the strategy `gemini` from its decision. */

import { cleanCuts } from "../../../conversation/CleanCuts.ts"
import { type Conversation, itemParts, view, type ViewItem } from "../../../conversation/Conversation.ts"
import { curatedIndexes, shownContent } from "../../../conversation/Curation.ts"
import type { FailureMemory } from "../../../conversation/FailureMemory.ts"
import type { OutputForm } from "../../../conversation/ToolOutputShortening.ts"
import type * as Work from "../../../text/SlicedWork.ts"
import { TokenCount } from "../../../tokens/Tokens.ts"
import type { Decision, PlanStep } from "../../Compression.ts"
import type { PolicyOptions } from "../../PolicyOptions.ts"
import { countedParts, layoutOf } from "./Conclusion.ts"
import { deciding, type GeminiRequest, type Summarize } from "./Decision.ts"
import { gemini } from "./Gemini.ts"
import { estimate, estimating } from "./TokenEstimate.ts"
import { outputOf, type Truncation } from "./ToolOutputs.ts"

/** The input of a plan besides the conversation and the policy. */
export interface GeminiPlanOptions {
  readonly forced: boolean
  readonly memory: FailureMemory
  /** The prompt tokens that the API reported for the latest request. Before the first request: `estimate` of all parts. */
  readonly lastPromptTokens: number
  readonly firstNumber?: number
  readonly failedSaves?: ReadonlySet<number>
}

/** Returns the curated items of the view, including the environment message. `GeminiRequest.contents` is made from them. */
export const curatedItems = (conversation: Conversation): ReadonlyArray<ViewItem> => {
  const items = view(conversation)
  return curatedIndexes(items.map(shownContent), "older").flatMap((index) => items[index] ?? [])
}

/** Returns by curated item whether a cut before it keeps every call of the view with its response. */
const cleanAt = (all: ReadonlyArray<ViewItem>, items: ReadonlyArray<ViewItem>): ReadonlyArray<boolean> => {
  const clean = cleanCuts(all)
  const at = new Map(all.map((item, index) => [item, clean[index] === true]))
  return items.map((item) => at.get(item) === true)
}

/** Makes the input of the decision from a conversation and its curated items. */
export const requestOf = (
  conversation: Conversation,
  items: ReadonlyArray<ViewItem>,
  policy: PolicyOptions,
  { failedSaves, firstNumber, forced, lastPromptTokens, memory }: GeminiPlanOptions
): GeminiRequest => ({
  contents: items.map(shownContent),
  environment: items.find((item) => item.entry.author === "environment")?.entry.content,
  lastPromptTokens,
  limit: policy.limit,
  threshold: policy.threshold,
  preserve: policy.preserve,
  forced,
  hasFailed: memory.failed,
  isClean: cleanAt(view(conversation), items),
  truncate: {
    budget: policy.toolBudget,
    stored: (content, part) => {
      const entry = items[content]?.entry
      const handle = entry?.handles[part]
      const answer = entry?.content.parts[part]?.functionResponse
      return handle === undefined || answer === undefined ? undefined : { handle, text: outputOf(answer) }
    },
    form: policy.outputForm,
    ...(firstNumber === undefined ? {} : { firstNumber }),
    ...(failedSaves === undefined ? {} : { failedSaves })
  }
})

/** Makes one step for each output that changes, from the item `from` on, oldest first. */
function* shortenSteps(
  items: ReadonlyArray<ViewItem>,
  { outputs }: Truncation,
  from: number,
  form: OutputForm
): Work.SlicedWork<Array<PlanStep>> {
  const steps: Array<PlanStep> = []
  for (const output of outputs.toReversed()) {
    const item = items[output.content]
    const original = item === undefined ? undefined : itemParts(item)[output.part]
    if (item === undefined || original === undefined || output.replacement === undefined) continue
    yield
    if (output.content < from || JSON.stringify(original) === JSON.stringify(output.replacement)) continue
    steps.push({
      _tag: "Shorten",
      entry: item.entry.id,
      part: output.part,
      form,
      tokensBefore: TokenCount.make(estimate([original])),
      tokensAfter: TokenCount.make(estimate([output.replacement]))
    })
  }
  return steps
}

/** Makes the steps of a decision that calls the model. `all` is the view, `items` its curated part. */
function* summarizeSteps(
  all: ReadonlyArray<ViewItem>,
  items: ReadonlyArray<ViewItem>,
  policy: PolicyOptions,
  decision: Summarize
): Work.SlicedWork<Array<PlanStep>> {
  const { anchor, slice, split, truncation } = decision
  const kept = items.slice(split)
  const end = kept[0] === undefined ? all.length : all.indexOf(kept[0])
  // The range covers both ends, so messages that are not curated leave with their neighbours.
  const first = all[0]
  const last = all[end - 1]
  const steps = yield* shortenSteps(items, truncation, slice === "truncated" ? 0 : split, policy.outputForm)
  if (first === undefined || last === undefined) return steps
  return [
    ...steps,
    {
      _tag: "Summarize",
      from: first.entry.id,
      to: last.entry.id,
      prompt: anchor,
      verify: true,
      // Gemini CLI sets no bound.
      budget: policy.snapshotBudget ?? policy.limit
    },
    { _tag: "Layout", split, kept: kept.map((item) => item.entry.id), acknowledge: true }
  ]
}

/** Returns the decision as a plan. `after` excludes the summary, the only part of the request that is not known yet. */
export function* plan(
  conversation: Conversation,
  policy: PolicyOptions,
  options: GeminiPlanOptions
): Work.SlicedWork<Decision> {
  const items = curatedItems(conversation)
  const decision = yield* deciding(requestOf(conversation, items, policy, options))
  const { before } = decision
  if (decision._tag === "Noop") return { _tag: "Skip", reason: decision.reason, before }
  if (decision._tag === "SplitRefused") return { _tag: "Skip", reason: "nothing to compress", before }
  const truncated = decision._tag === "ContentTruncated"
  return {
    _tag: "Go",
    plan: {
      version: conversation.version,
      strategy: gemini.name,
      rung: 0,
      steps: truncated
        ? yield* shortenSteps(items, decision.truncation, 0, policy.outputForm)
        : yield* summarizeSteps(view(conversation), items, policy, decision),
      before: TokenCount.make(before),
      after: TokenCount.make(
        truncated ? decision.after : yield* estimating(countedParts(decision, layoutOf(decision, "")))
      )
    }
  }
}
