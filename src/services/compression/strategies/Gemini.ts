/**
 * Carries out a compression as Gemini CLI did in March 2026: its split, counts, calls, statuses and layout. The guarantees
 * of every strategy hold here too: nothing is lost, and every request is legal.
 */

import { Effect } from "effect"
import * as Domain from "../../../domain/compression/Compression.ts"
import { witnessOf } from "../../../domain/compression/evidence/UserRequests.ts"
import { asModelWrote } from "../../../domain/compression/Snapshot.ts"
import {
  acknowledgement,
  type Answers,
  concluding,
  countedParts,
  finalSummary,
  layoutOf
} from "../../../domain/compression/strategies/gemini/Conclusion.ts"
import {
  deciding,
  type GeminiDecision,
  type Summarize
} from "../../../domain/compression/strategies/gemini/Decision.ts"
import { gemini as strategy } from "../../../domain/compression/strategies/gemini/Gemini.ts"
import { curatedItems, plan as planGemini, requestOf } from "../../../domain/compression/strategies/gemini/Plan.ts"
import { compressionInstruction } from "../../../domain/compression/strategies/gemini/Prompts.ts"
import { estimate, needsApiCount } from "../../../domain/compression/strategies/gemini/TokenEstimate.ts"
import type { Truncation } from "../../../domain/compression/strategies/gemini/ToolOutputs.ts"
import { unshrinkable } from "../../../domain/compression/Unshrinkable.ts"
import { type Content, model, text, user } from "../../../domain/content/Content.ts"
import {
  entries,
  type Entry,
  itemParts,
  type Patch,
  sum,
  view,
  type ViewItem
} from "../../../domain/conversation/Conversation.ts"
import { droppedEntries } from "../../../domain/conversation/Recall.ts"
import { redactedContents, redactedEntries, secretsOf } from "../../../domain/conversation/RedactedEntries.ts"
import { encode } from "../../../domain/text/Bytes.ts"
import { redact, redacting, type Secret, distinctiveSecrets } from "../../../domain/text/Redaction.ts"
import * as Work from "../../../domain/text/SlicedWork.ts"
import { TokenCount } from "../../../domain/tokens/Tokens.ts"
import { rangeHandle } from "../../session/EntryBuilder.ts"
import { TempStore } from "../../session/TempStore.ts"
import { TokenCounter } from "../../tokens/TokenCounter.ts"
import { planStep } from "../summary/CompressionSteps.ts"
import { askInOrder, chainOf } from "../summary/ModelChain.ts"
import { extractiveSummary, Summarizer, type SummaryRequest } from "../summary/Summarizer.ts"
import { redactedCalls, failuresAsOutcomes, keptOut, summaryEntries, noop } from "./CompressionResults.ts"
import { type CompressRequest, PlanRefused } from "./CompressRequest.ts"
import { masking } from "./MaskOutputs.ts"
import { stagedSummary } from "./StagedSummary.ts"
import type { StrategyRunner } from "./StrategyRunner.ts"

const inputOf = (request: CompressRequest) => {
  const items = curatedItems(request.conversation)
  const { memory, policy } = request
  const counted = policy.promptTokens ?? estimate(items.flatMap((item) => [...itemParts(item)]))
  return { items, request: { forced: request.forced, memory, lastPromptTokens: counted } }
}

const decide = (request: CompressRequest) =>
  Work.run(planGemini(request.conversation, request.policy, inputOf(request).request))

/** Returns the outputs that were shortened, from the curated item `from` on. */
const shortened = Effect.fnUntraced(function* (items: ReadonlyArray<ViewItem>, { outputs }: Truncation, from: number) {
  const counter = yield* TokenCounter
  const found: Array<Patch["shorten"][number]> = []
  for (const { content, part, replacement } of outputs) {
    const item = items[content]
    if (item === undefined || replacement === undefined || content < from) continue
    if (JSON.stringify(itemParts(item)[part]) === JSON.stringify(replacement)) continue
    const tokens = sum(yield* counter.count([replacement]))
    found.push({ entry: item.entry.id, part, replacement, tokens: TokenCount.make(tokens) })
  }
  return found
})

/**
 * Returns the token budget of a snapshot that code writes: a quarter of what it replaces, because a larger one is
 * discarded.
 */
const budgetFor = (dropped: ReadonlyArray<Entry>): number => {
  const total = dropped.reduce((sum, { tokens }) => tokens.reduce((all, part) => all + part, sum), 0)
  return Math.min(8_000, Math.max(320, Math.ceil(total / 4)))
}

/**
 * Returns the versions of the slice to summarise, best first: the original messages, then the messages with shortened
 * outputs.
 */
const ladderOf = ({ slice, split, summarized, truncation }: Summarize): ReadonlyArray<ReadonlyArray<Content>> => {
  const isShortened = truncation.outputs.some(({ content, saved }) => saved && content < split)
  return slice === "original" && isShortened ? [summarized, truncation.contents.slice(0, split)] : [summarized]
}

/** Returns the summary of the slice: a model's two answers, or a text written by code. */
const answersTo = Effect.fnUntraced(function* (
  request: CompressRequest,
  decision: Summarize,
  dropped: ReadonlyArray<Entry>,
  secrets: ReadonlyArray<Secret>
) {
  const { family, policy } = request
  const summarizer = yield* Summarizer
  const promptId = request.promptId ?? "compress"
  const isRedacted = policy.redactSecrets !== false
  const summaryRequest: SummaryRequest = {
    entries: isRedacted ? (yield* Work.run(redactedEntries(dropped, secrets))).entries : dropped,
    kept: [],
    budget: policy.snapshotBudget ?? budgetFor(dropped),
    focus: policy.focus === undefined ? undefined : redact(policy.focus),
    cwd: request.cwd,
    pins: { original: undefined, latest: undefined },
    userWords: witnessOf(entries(request.conversation), secrets),
    secrets,
    verify: false,
    by: policy.summarizer,
    fallback: false,
    model: undefined,
    family,
    promptId
  }
  const { ask } = summarizer
  const chain = chainOf(policy.model)
  if (policy.summarizer === "extractive" || ask === undefined) {
    const { calls = [], text: written } =
      policy.summarizer === "extractive"
        ? yield* extractiveSummary(summaryRequest)
        : yield* summarizer.summarize({ ...summaryRequest, model: chain.models[0] })
    return { answers: { summary: written, verified: "" }, calls }
  }
  const clean = (contents: ReadonlyArray<Content>) =>
    isRedacted
      ? Effect.map(Work.run(redactedContents(contents, secrets)), (redacted) => redacted.contents)
      : Effect.succeed(contents)
  const common = { family, promptId, system: compressionInstruction }
  const answers = yield* stagedSummary({
    ask: (purpose, contents) => askInOrder(chain, ask, { ...common, purpose, contents }),
    calls: chain.calls,
    clean,
    versions: yield* Effect.forEach(ladderOf(decision), clean)
  })
  return { answers, calls: chain.calls }
})

/**
 * Returns the API's count of the new history. As in the original, only media are counted, and without a model there is no
 * count. A failed count ends the compression with the status that exists for it. The original continues with its estimate
 * (Gemini CLI, March 2026), which can be wrong by any factor for media.
 */
const apiCount = Effect.fnUntraced(function* (
  { family, policy }: CompressRequest,
  decision: Summarize,
  answers: Answers
) {
  const summary = finalSummary(answers)
  const parts = countedParts(decision, layoutOf(decision, summary))
  if (policy.summarizer !== "model" || summary === "" || !needsApiCount(parts))
    return { tokens: undefined, problem: "" }
  const { count } = yield* Summarizer
  if (count === undefined) return { tokens: undefined, problem: "" }
  return yield* Effect.match(count({ family, contents: [{ role: "user", parts }] }), {
    onSuccess: (tokens) => ({ tokens, problem: "" }),
    onFailure: ({ message }) => ({ tokens: "failed" as const, problem: message })
  })
})

/** Returns the answers without secrets: none enters a snapshot, whether a model, a hook or code wrote it. */
function* cleanAnswers({ summary, verified }: Answers, secrets: ReadonlyArray<Secret>) {
  const one = yield* redacting(summary, secrets)
  const other = yield* redacting(verified, secrets)
  return { answers: { summary: one.text, verified: other.text }, secrets: [...one.secrets, ...other.secrets] }
}

const summarised = Effect.fnUntraced(function* (
  request: CompressRequest,
  items: ReadonlyArray<ViewItem>,
  decision: Summarize,
  plan: Domain.Plan
) {
  const { conversation } = request
  const step = plan.steps.find((candidate) => candidate._tag === "Summarize")
  if (step === undefined) return noop("nothing to compress", plan.before)
  const dropped = droppedEntries(view(conversation), step)
  const { secrets } = yield* Work.run(redactedEntries(dropped))
  // A value that was identified as a secret by its name remains one after the name has left the window.
  const everySecret = yield* Work.run(secretsOf(entries(conversation).map(({ content }) => content)))
  const telling = distinctiveSecrets(everySecret)
  const made = yield* answersTo(request, decision, dropped, everySecret)
  const clean = yield* Work.run(cleanAnswers(made.answers, telling))
  const calls = yield* Work.run(redactedCalls(made.calls, telling))
  const counted = yield* apiCount(request, decision, clean.answers)
  const conclusion = yield* Work.run(concluding(decision, clean.answers, counted.tokens))
  const before = TokenCount.make(conclusion.before)
  if (!("summary" in conclusion)) {
    const outcome =
      conclusion.status === "COMPRESSION_FAILED_EMPTY_SUMMARY"
        ? Domain.FailedEmptySummary.make({ before, plan, calls })
        : Domain.FailedTokenCountError.make({ before, message: counted.problem, plan, calls })
    return { outcome }
  }
  const after = TokenCount.make(conclusion.after)
  const common = { before, after, plan, calls }
  if (conclusion.status === "COMPRESSION_FAILED_INFLATED_TOKEN_COUNT") {
    const kept = new Set(items.slice(decision.split).map(({ entry }) => entry.id))
    const stubborn = unshrinkable(conversation, kept)
    return { outcome: Domain.FailedInflatedTokenCount.make({ ...common, reason: "inflated", stubborn }) }
  }
  // The original made the decision; quotes of the model that the user never wrote are marked as the model's.
  const snapshot = asModelWrote(conclusion.summary, witnessOf(entries(conversation), everySecret))
  const insert = yield* summaryEntries(request, [user(text(snapshot)), model(text(acknowledgement))])
  const shorten = yield* shortened(items, decision.truncation, decision.split)
  const outcome = Domain.Compressed.make({
    ...common,
    patch: { drop: { from: step.from, to: step.to }, insert, shorten },
    degraded: null,
    by: calls.length === 0 ? "extractive" : "model",
    snapshot,
    audit: { anchors: 0, inSnapshot: 0, inTail: 0, restored: 0 },
    doubts: { removed: [], unknown: [] },
    ...keptOut([...secrets, ...clean.secrets])
  })
  return { outcome, dropped: yield* rangeHandle(dropped) }
})

const onlyTruncated = Effect.fnUntraced(function* (
  items: ReadonlyArray<ViewItem>,
  decision: Extract<GeminiDecision, { _tag: "ContentTruncated" }>,
  plan: Domain.Plan
) {
  const patch: Patch = { insert: [], shorten: yield* shortened(items, decision.truncation, 0) }
  const { after, before } = plan
  return { outcome: Domain.ContentTruncated.make({ before, after, plan, patch, degraded: null, calls: [] }) }
})

/**
 * Decides, after saving every output that the decision shortens. An output that cannot be saved stays unchanged, and the
 * decision about the rest is made again.
 */
const decided = Effect.fnUntraced(function* (
  request: CompressRequest,
  items: ReadonlyArray<ViewItem>,
  inputs: ReturnType<typeof inputOf>["request"]
) {
  const store = yield* TempStore
  const failedSaves = new Set<number>()
  let saved = 0
  for (;;) {
    const decision = yield* Work.run(
      deciding(requestOf(request.conversation, items, request.policy, { ...inputs, failedSaves }))
    )
    const outputs = "truncation" in decision ? (decision.truncation?.outputs ?? []) : []
    let again = false
    for (const { number, saved: isSaved, text: whole } of outputs.filter((output) => output.number > saved)) {
      saved = number
      if (!isSaved) continue
      const put = yield* Effect.result(store.put(encode(whole)))
      if (put._tag === "Success") continue
      yield* Effect.logDebug(`tool output ${number} was not saved: ${put.failure.message}`)
      failedSaves.add(number)
      again = true
      break
    }
    if (!again) return { decision, failedSaves }
  }
})

const compress = Effect.fn("Compression.gemini")(function* (request: CompressRequest) {
  const { items, request: inputs } = inputOf(request)
  const { decision, failedSaves } = yield* decided(request, items, inputs)
  const planned = yield* planStep(
    Work.run(planGemini(request.conversation, request.policy, { ...inputs, failedSaves }))
  )
  if (decision._tag === "Noop") return noop(decision.reason, decision.before)
  if (planned._tag === "Skip" || decision._tag === "SplitRefused") {
    return noop("nothing to compress", decision.before)
  }
  const { plan } = planned
  const work =
    decision._tag === "ContentTruncated"
      ? onlyTruncated(items, decision, plan)
      : summarised(request, items, decision, plan)
  return yield* failuresAsOutcomes(work, plan)
})

/** Decision and execution are one step, so a plan is compared with the current decision. */
const apply = Effect.fnUntraced(function* (original: CompressRequest, plan: Domain.Plan) {
  const request = { ...original, forced: true }
  const now = yield* decide(request)
  const isSame = now._tag === "Go" && JSON.stringify(now.plan.steps) === JSON.stringify(plan.steps)
  if (isSame) return yield* compress(request)
  return yield* new PlanRefused({ planned: plan.version, current: request.conversation.version })
})

/** The runner of the strategy `gemini`. */
export const gemini: StrategyRunner = { strategy, decide, compress, apply, open: masking }
