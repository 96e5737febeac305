import { Effect } from "effect"
import { encode } from "../domain/Bytes.ts"
import * as Domain from "../domain/Compression.ts"
import { model, text, user } from "../domain/Content.ts"
import { entries, type Entry, entryId, itemParts, type Patch, view, type ViewItem } from "../domain/Conversation.ts"
import { saidIn } from "../domain/Evidence.ts"
import {
  acknowledgement,
  type Answers,
  type ApiCount,
  concluding,
  countedParts,
  curatedItems,
  deciding,
  estimate,
  finalSummary,
  firstCall,
  type GeminiDecision,
  layoutOf,
  needsApiCount,
  plan as planGemini,
  requestOf,
  secondCall,
  type Summarize,
  type Truncation
} from "../domain/strategies/Gemini.ts"
import { redactedContents, redactedEntries, secretsOf } from "../domain/RedactedEntries.ts"
import { countSecrets, redact, redacting, type Secret, tellingOf, withoutValues } from "../domain/Redaction.ts"
import { asWritten } from "../domain/Snapshot.ts"
import { stubborn } from "../domain/strategies/Palimpsest.ts"
import { TokenCount } from "../domain/Tokens.ts"
import * as Work from "../domain/Work.ts"
import { callsWithout, type CompressRequest, type Ended, isPaidInVain } from "./CompressRequest.ts"
import { makeEntry, rangeHandle } from "./Intake.ts"
import { extractive, Summarizer, type SummarizerError, type SummaryRequest } from "./Summarizer.ts"
import { TempStore } from "./TempStore.ts"
import { TokenCounter, type TokenCountError } from "./TokenCounter.ts"

/**
 * A compression as Gemini CLI did it when the seeds were written: its split, counts, calls, anchor choice, statuses and
 * layout (spec 3.1 to 3.7). What lies below every strategy stays: nothing is lost, and what is sent is legal.
 */

const options = (request: CompressRequest) => {
  const items = curatedItems(request.conversation)
  const { memory, policy } = request
  const counted = policy.promptTokens ?? estimate(items.flatMap((item) => [...itemParts(item)]))
  return { items, request: { forced: request.forced, memory, lastPromptTokens: counted } }
}

/** The decision as a plan. */
export const planAsTheSeeds = (request: CompressRequest): Effect.Effect<Domain.Decision> =>
  Work.run(planGemini(request.conversation, request.policy, options(request).request))

const nothing = (decision: { readonly reason: Domain.NoopReason; readonly before: number }): Ended => ({
  outcome: Domain.Noop.make({ reason: decision.reason, before: TokenCount.make(decision.before) }),
  dropped: undefined
})

/** The outputs that were shortened, from the curated item `from` on. */
const shortened = Effect.fnUntraced(function* (
  items: ReadonlyArray<ViewItem>,
  { outputs }: Truncation,
  from: number
): Effect.fn.Return<Patch["shorten"], TokenCountError, TokenCounter> {
  const counter = yield* TokenCounter
  const found: Array<Patch["shorten"][number]> = []
  for (const { content, part, replacement } of outputs) {
    const item = items[content]
    if (item === undefined || replacement === undefined || content < from) continue
    if (JSON.stringify(itemParts(item)[part]) === JSON.stringify(replacement)) continue
    const [tokens = 0] = yield* counter.count([replacement])
    found.push({ entry: item.entry.id, part, replacement, tokens: TokenCount.make(tokens) })
  }
  return found
})

/** The summary of the slice: a model's two answers, or in their place what code writes. */
const answersTo = Effect.fnUntraced(function* (
  request: CompressRequest,
  decision: Summarize,
  dropped: ReadonlyArray<Entry>,
  secrets: ReadonlyArray<Secret>
): Effect.fn.Return<
  { readonly answers: Answers; readonly calls: ReadonlyArray<Domain.SummaryCall> },
  SummarizerError,
  Summarizer
> {
  const { family, policy } = request
  const summarizer = yield* Summarizer
  const promptId = request.promptId ?? "compress"
  const isRedacted = policy.redactSecrets !== false
  const wanted: SummaryRequest = {
    entries: isRedacted ? (yield* Work.run(redactedEntries(dropped, secrets))).entries : dropped,
    kept: [],
    budget: policy.snapshotBudget ?? 8_000,
    focus: policy.focus === undefined ? undefined : redact(policy.focus),
    cwd: request.cwd,
    pins: { original: undefined, latest: undefined },
    said: saidIn(entries(request.conversation), secrets),
    secrets,
    verify: false,
    by: policy.summarizer,
    fallback: false,
    model: policy.model,
    family,
    promptId
  }
  if (policy.summarizer === "extractive" || summarizer.answers === undefined) {
    const { calls = [], text: written } =
      policy.summarizer === "extractive" ? yield* extractive(wanted) : yield* summarizer.summarize(wanted)
    return { answers: { summary: written, verified: "" }, calls }
  }
  const first = firstCall(decision, promptId)
  const generate = isRedacted ? (yield* Work.run(redactedContents(first.contents, secrets))).contents : first.contents
  const answered = yield* summarizer.answers({
    model: policy.model,
    family,
    promptId,
    system: first.system,
    generate,
    verify: (summary) => {
      const second = secondCall(decision, promptId, summary).contents
      // All but the summary is known from the first call.
      return isRedacted ? Work.runSync(redactedContents(second, secrets)).contents : second
    }
  })
  return { answers: answered, calls: answered.calls }
})

/**
 * What the API counts of the new history. Only media are worth asking for, as in the original. Where no model takes part, none
 * is asked. A count that fails ends the compression with the status that exists for it; the original goes on with its
 * estimate (Gemini CLI, March 2026), which for media can be wrong by any factor.
 */
const apiCount = Effect.fnUntraced(function* (
  { family, policy }: CompressRequest,
  decision: Summarize,
  answers: Answers
): Effect.fn.Return<{ readonly tokens: ApiCount; readonly problem: string }, never, Summarizer> {
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

const summarised = Effect.fnUntraced(function* (
  request: CompressRequest,
  items: ReadonlyArray<ViewItem>,
  decision: Summarize,
  plan: Domain.Plan
): Effect.fn.Return<Ended, SummarizerError | TokenCountError, Summarizer | TokenCounter | TempStore> {
  const step = plan.steps.find((candidate) => candidate._tag === "Summarize")
  const all = view(request.conversation)
  const from = all.findIndex((item) => item.entry.id === step?.from)
  const to = all.findIndex((item) => item.entry.id === step?.to)
  // The original pays for an empty summary again on every turn.
  if (step !== undefined && isPaidInVain(request, step)) {
    return nothing({ reason: "already tried", before: plan.before })
  }
  const dropped = all.slice(from, to + 1).flatMap(({ entry }) => (entry.author === "environment" ? [] : [entry]))
  const { secrets } = yield* Work.run(redactedEntries(dropped))
  // What was named once stays a secret, also after the name has left the window.
  const everySecret = yield* Work.run(secretsOf(entries(request.conversation).map(({ content }) => content)))
  const { answers: given, calls: made } = yield* answersTo(request, decision, dropped, everySecret)
  // Whoever wrote it: no secret enters a snapshot.
  const summary = yield* Work.run(redacting(given.summary))
  const verified = yield* Work.run(redacting(given.verified))
  const telling = tellingOf(everySecret)
  const answers: Answers = {
    summary: yield* Work.run(withoutValues(summary.text, telling)),
    verified: yield* Work.run(withoutValues(verified.text, telling))
  }
  const calls = yield* Work.run(callsWithout(made, telling))
  const counted = yield* apiCount(request, decision, answers)
  const conclusion = yield* Work.run(concluding(decision, answers, counted.tokens))
  const before = TokenCount.make(conclusion.before)
  if (!("summary" in conclusion)) {
    return {
      outcome:
        conclusion.status === "COMPRESSION_FAILED_EMPTY_SUMMARY"
          ? Domain.FailedEmptySummary.make({ before, plan, calls })
          : Domain.FailedTokenCountError.make({ before, message: counted.problem, plan, calls }),
      dropped: undefined
    }
  }
  if (step === undefined) return nothing({ reason: "nothing to compress", before: conclusion.before })
  const after = TokenCount.make(conclusion.after)
  if (conclusion.status === "COMPRESSION_FAILED_INFLATED_TOKEN_COUNT") {
    return {
      outcome: Domain.FailedInflatedTokenCount.make({
        reason: "inflated",
        before,
        after,
        plan,
        stubborn: stubborn(request.conversation, new Set(items.slice(decision.split).map(({ entry }) => entry.id))),
        calls
      }),
      dropped: undefined
    }
  }
  const { held } = request
  const next = request.conversation.next
  // The decision was the original's; what the model quotes without the user having said it stays the model's own.
  const snapshot = asWritten(conclusion.summary, saidIn(entries(request.conversation), everySecret))
  const insert = [
    yield* makeEntry({ content: user(text(snapshot)), author: "summary" }, entryId(next), held),
    yield* makeEntry({ content: model(text(acknowledgement)), author: "summary" }, entryId(next + 1), held)
  ]
  const shorten = yield* shortened(items, decision.truncation, decision.split)
  const keptOut = [...secrets, ...summary.secrets, ...verified.secrets]
  const patch: Patch = { drop: { from: step.from, to: step.to }, insert, shorten }
  return {
    outcome: Domain.Compressed.make({
      before,
      after,
      plan,
      patch,
      degraded: null,
      by: calls.length === 0 ? "extractive" : "model",
      snapshot,
      audit: { anchors: 0, inSnapshot: 0, inTail: 0, restored: 0 },
      calls,
      doubts: { removed: [], unknown: [] },
      ...(keptOut.length === 0 ? {} : { secrets: countSecrets(keptOut) })
    }),
    dropped: yield* rangeHandle(dropped)
  }
})

const onlyTruncated = Effect.fnUntraced(function* (
  items: ReadonlyArray<ViewItem>,
  decision: Extract<GeminiDecision, { _tag: "ContentTruncated" }>,
  plan: Domain.Plan
): Effect.fn.Return<Ended, TokenCountError, TokenCounter> {
  const patch: Patch = { insert: [], shorten: yield* shortened(items, decision.truncation, 0) }
  const { after, before } = plan
  return {
    outcome: Domain.ContentTruncated.make({ before, after, plan, patch, degraded: null, calls: [] }),
    dropped: undefined
  }
})

/**
 * The decision, with every output that it shortens saved before: one that cannot be saved stays as it is, and what comes
 * after it is decided anew (spec 3.3).
 */
const decided = Effect.fnUntraced(function* (
  request: CompressRequest,
  items: ReadonlyArray<ViewItem>,
  given: ReturnType<typeof options>["request"]
): Effect.fn.Return<
  { readonly decision: GeminiDecision; readonly failedSaves: ReadonlySet<number> },
  never,
  TempStore
> {
  const store = yield* TempStore
  const failedSaves = new Set<number>()
  let saved = 0
  for (;;) {
    const decision = yield* Work.run(deciding(requestOf(items, request.policy, { ...given, failedSaves })))
    const outputs = "truncation" in decision ? (decision.truncation?.outputs ?? []) : []
    let again = false
    for (const { file, number, saved: isSaved, text: whole } of outputs.filter((output) => output.number > saved)) {
      saved = number
      if (!isSaved) continue
      const put = yield* Effect.result(store.put(encode(whole)))
      if (put._tag === "Success") continue
      yield* Effect.logDebug(`${file} was not saved: ${put.failure.message}`)
      failedSaves.add(number)
      again = true
      break
    }
    if (!again) return { decision, failedSaves }
  }
})

/** One compression, from the decision to the outcome. */
export const compressAsTheSeeds = Effect.fn("Compression.gemini")(function* (
  request: CompressRequest
): Effect.fn.Return<Ended, never, Summarizer | TokenCounter | TempStore> {
  const { items, request: given } = options(request)
  const { decision, failedSaves } = yield* decided(request, items, given)
  const planned = yield* Work.run(planGemini(request.conversation, request.policy, { ...given, failedSaves }))
  if (decision._tag === "Noop") return nothing(decision)
  if (planned._tag === "Skip" || decision._tag === "SplitRefused") {
    return nothing({ reason: "nothing to compress", before: decision.before })
  }
  const { plan } = planned
  const work =
    decision._tag === "ContentTruncated"
      ? onlyTruncated(items, decision, plan)
      : summarised(request, items, decision, plan)
  return yield* work.pipe(
    Effect.catchTags({
      TokenCountError: ({ message }) =>
        Effect.succeed<Ended>({
          outcome: Domain.FailedTokenCountError.make({ before: plan.before, message }),
          dropped: undefined
        }),
      SummarizerError: ({ calls, message, reason }) =>
        Effect.succeed<Ended>({
          outcome: Domain.FailedSummarizer.make({ before: plan.before, plan, reason, message, calls }),
          dropped: undefined
        })
    })
  )
})
