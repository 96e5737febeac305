import { Effect, Schema } from "effect"
import {
  failedModelsOf,
  FailedSummarizer,
  FailedTokenCountError,
  Noop,
  type NoopReason,
  type Outcome,
  type Plan,
  type SummaryCall
} from "../../../domain/compression/Compression.ts"
import { modelNames } from "../../../domain/compression/PolicyOptions.ts"
import type { Policy } from "../../../domain/compression/strategies/Policy.ts"
import type { Content } from "../../../domain/content/Content.ts"
import type { Handle } from "../../../domain/content/Handle.ts"
import { type Conversation, entryId, type Pin } from "../../../domain/conversation/Conversation.ts"
import {
  defaultModelName,
  type FailureMemory,
  isTried,
  maxUnusable,
  type TriedRange,
  usableModels
} from "../../../domain/conversation/FailureMemory.ts"
import type { HookOutcome } from "../../../domain/hooks/Hook.ts"
import { countSecrets, redacting, type Secret, withoutValues } from "../../../domain/text/Redaction.ts"
import type { SlicedWork } from "../../../domain/text/SlicedWork.ts"
import { TokenCount } from "../../../domain/tokens/Tokens.ts"
import { type HandleIndex, makeEntry } from "../../session/EntryBuilder.ts"
import type { TokenCountError } from "../../tokens/TokenCounter.ts"
import { contextLength, type SummarizerError } from "../summary/Summarizer.ts"

/** The input of a compression. */
export interface CompressRequest {
  readonly conversation: Conversation
  readonly policy: Policy
  /** Compress regardless of the threshold and of earlier failures. */
  readonly forced: boolean
  readonly memory: FailureMemory
  /** The user's pins, wherever they are in the log. */
  readonly pins?: ReadonlyArray<Pin> | undefined
  /** The handles that the session has assigned. */
  readonly held: HandleIndex
  /** The handles of the ranges that left before, newest first, for a caller that keeps no session: the snapshot names them. */
  readonly earlierRanges?: ReadonlyArray<Handle> | undefined
  readonly cwd?: string | undefined
  /** The id of its model calls in telemetry. Absent: `compress`. */
  readonly promptId?: string | undefined
  /** The model of the conversation. */
  readonly family?: string | undefined
  /**
   * The hooks' decision on PreCompress, when it was fired before: a veto (`stopped`, `blocked`), and in `specific` a `focus`
   * for a policy that has none and the `snapshot` to use. Absent: the workflow fires it. See `Strategy.heedsHooks`.
   */
  readonly hookDecision?: HookOutcome | undefined
  /** The next request would not fit otherwise, so no hook can veto the compression. */
  readonly mustFit?: boolean | undefined
}

/** The outcome of a compression. */
export interface CompressionResult {
  readonly outcome: Outcome
  /** The handle that recalls everything it dropped. Absent: nothing. */
  readonly dropped?: Handle | undefined
  /** The summarizing models that gave nothing usable. Absent: none. */
  readonly unusable?: ReadonlyArray<string> | undefined
}

/** The names of a policy's summarizing models. */
const namesOf = ({ model }: Pick<Policy, "model">): ReadonlyArray<string> =>
  model === undefined ? [defaultModelName] : modelNames(model)

/** Returns the policy without the models that gave nothing usable several times in a row. Where none is left, code writes the summary. */
export const withUsableModels = (policy: Policy, memory: FailureMemory): Policy => {
  if (policy.summarizer !== "model" || memory.unusable === undefined) return policy
  const names = namesOf(policy)
  const [first, ...others] = usableModels(memory, names)
  if (first === undefined) return { ...policy, summarizer: "extractive" }
  return others.length + 1 === names.length ? policy : { ...policy, model: [first, ...others] }
}

/** Returns the models of a policy that gave nothing usable in a compression. */
export const unusableIn = ({ outcome, unusable }: CompressionResult, policy: Policy): ReadonlyArray<string> => {
  if (unusable !== undefined) return unusable
  if (policy.summarizer !== "model") return []
  const isFailed =
    outcome._tag === "FailedEmptySummary" || (outcome._tag === "FailedSummarizer" && outcome.reason !== contextLength)
  return isFailed ? namesOf(policy) : failedModelsOf(outcome).map(({ model }) => model)
}

/** Says of which models of a compression no other is asked for. Undefined: of none. `after`: the memory with this compression. */
export const givenUpText = (after: FailureMemory, unusable: ReadonlyArray<string>): string | undefined => {
  const usable = usableModels(after, unusable)
  const given = unusable.filter((name) => !usable.includes(name))
  return given.length === 0
    ? undefined
    : `${given.join(" and ")} gave no usable summary ${maxUnusable} times in a row and is not asked again in this session, unless another model is chosen`
}

/** Makes the result of a compression that changed nothing, with the reason. */
export const noop = (reason: NoopReason, before: number, detail?: string): CompressionResult => ({
  outcome: Noop.make({
    reason,
    before: TokenCount.make(before),
    ...(detail === undefined || detail.trim() === "" ? {} : { detail })
  })
})

/** The counts of the secrets that did not enter a snapshot, for its outcome. */
export const keptOut = (secrets: ReadonlyArray<Secret>) =>
  secrets.length === 0 ? {} : { secrets: countSecrets(secrets) }

/** Makes the messages that stand for what a compression drops. */
export const summaryEntries = (
  { conversation, held }: Pick<CompressRequest, "conversation" | "held">,
  contents: ReadonlyArray<Content>
) =>
  Effect.forEach(contents, (content, index) =>
    makeEntry({ content, author: "summary" }, entryId(conversation.next + index), held)
  )

/** Turns failures of the summarizer and of counting into outcomes. */
export const failuresAsOutcomes = <R>(
  effect: Effect.Effect<CompressionResult, SummarizerError | TokenCountError, R>,
  plan: Plan
): Effect.Effect<CompressionResult, never, R> => {
  const { before } = plan
  return Effect.catchTags(effect, {
    TokenCountError: ({ message }) =>
      Effect.succeed<CompressionResult>({ outcome: FailedTokenCountError.make({ before, message }) }),
    SummarizerError: ({ calls, message, reason }) =>
      Effect.succeed<CompressionResult>({
        outcome: FailedSummarizer.make({ before, plan, reason, message, calls })
      })
  })
}

/** The plan was made for another state of the conversation or with other settings. A new plan is needed. */
export class PlanRefused extends Schema.TaggedError<PlanRefused>()("PlanRefused", {
  planned: Schema.Natural,
  current: Schema.Natural
}) {
  override get message() {
    return this.planned === this.current
      ? "the plan was made with other settings; make a new plan, or use the same settings"
      : `the plan was made for version ${this.planned} of the conversation, which is at version ${this.current}; make a new plan`
  }
}

/**
 * Whether a model was paid for this range before without a result, and the user did not ask again. Such a range is
 * not paid for twice.
 */
export const wasTriedWithoutResult = (
  { forced, memory, mustFit = false, policy }: CompressRequest,
  range: TriedRange
): boolean => policy.summarizer === "model" && (!forced || mustFit) && isTried(memory, range)

/** Redacts secrets in the answers of model calls, because outcomes are stored and printed. */
export function* redactedCalls(
  calls: ReadonlyArray<SummaryCall>,
  secrets: ReadonlyArray<Secret>
): SlicedWork<ReadonlyArray<SummaryCall>> {
  const clean: Array<SummaryCall> = []
  for (const call of calls) {
    const { text } = yield* redacting(call.answer)
    clean.push({ ...call, answer: yield* withoutValues(text, secrets) })
  }
  return clean
}
