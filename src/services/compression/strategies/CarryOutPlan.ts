/** Carries out one plan: shortens parts, gets the snapshot written, checks the gain. */

import { Effect } from "effect"
import { toolKind } from "../../../domain/actions/AgentTools.ts"
import { partnersIn } from "../../../domain/compression/AnsweredCalls.ts"
import * as Domain from "../../../domain/compression/Compression.ts"
import { requestSpans, type Span, witnessOf } from "../../../domain/compression/evidence/UserRequests.ts"
import { modelNames } from "../../../domain/compression/PolicyOptions.ts"
import { acknowledgement, opening } from "../../../domain/compression/SnapshotOpening.ts"
import { shownText, shortenedText, sizeOf } from "../../../domain/compression/strategies/palimpsest/Shortening.ts"
import { unshrinkable } from "../../../domain/compression/Unshrinkable.ts"
import { model, type Part, text, user, withOutput } from "../../../domain/content/Content.ts"
import type { Handle } from "../../../domain/content/Handle.ts"
import {
  compressed,
  type Conversation,
  entries,
  type Entry,
  type EntryId,
  itemParts,
  type Patch,
  sequenceOf,
  sum,
  view,
  type ViewItem
} from "../../../domain/conversation/Conversation.ts"
import { indexedView } from "../../../domain/conversation/IndexedView.ts"
import { hasMedia } from "../../../domain/conversation/LeftOut.ts"
import { droppedEntries } from "../../../domain/conversation/Recall.ts"
import { redactedEntries, secretsOf } from "../../../domain/conversation/RedactedEntries.ts"
import {
  redact,
  redacting,
  redactSpan,
  type Secret,
  strongSecrets,
  distinctiveSecrets
} from "../../../domain/text/Redaction.ts"
import * as Work from "../../../domain/text/SlicedWork.ts"
import { TokenCount } from "../../../domain/tokens/Tokens.ts"
import { rangeHandle } from "../../session/EntryBuilder.ts"
import { TokenCounter } from "../../tokens/TokenCounter.ts"
import { summarizeInOrder } from "../summary/ModelChain.ts"
import type { Summarizer, SummarizerError, SummaryRequest } from "../summary/Summarizer.ts"
import { snapshotFromHook, type VerifiedSnapshot } from "../summary/WrittenSnapshot.ts"
import {
  failuresAsOutcomes,
  keptOut,
  summaryEntries,
  wasTriedWithoutResult,
  noop,
  redactedCalls
} from "./CompressionResults.ts"
import type { CompressionResult, CompressRequest } from "./CompressRequest.ts"
import type { RunnerServices } from "./StrategyRunner.ts"

/** Writes the snapshot with a model. Code and hooks write theirs the same way for every strategy. */
export type WriteSnapshot = (
  request: CompressRequest,
  summaryRequest: SummaryRequest
) => Effect.Effect<VerifiedSnapshot, SummarizerError, Summarizer>

const summarizeAndVerify: WriteSnapshot = ({ policy }, summaryRequest) => summarizeInOrder(policy.model, summaryRequest)

/** Carries out one plan. `write` is the strategy's own way to write a snapshot with a model. */
export const carryOutWith =
  (write: WriteSnapshot) =>
  (request: CompressRequest, plan: Domain.Plan): Effect.Effect<CompressionResult, never, RunnerServices> =>
    carryOutBy(request, plan, write)

/** Carries out one plan. Failures of the summarizer and of counting become outcomes. */
const carryOutBy = Effect.fn("Compression.attempt")(
  function* (request: CompressRequest, plan: Domain.Plan, write: WriteSnapshot) {
    const { conversation, policy } = request
    const shorten = yield* shortened(request, plan)
    const summarize = plan.steps.find((step) => step._tag === "Summarize")
    const layout = plan.steps.find((step) => step._tag === "Layout")
    if (summarize === undefined || layout === undefined) {
      return yield* conclude(request, plan, { insert: [], shorten }, undefined)
    }
    const wasTried = wasTriedWithoutResult(request, summarize)
    if (wasTried && !policy.ladder) return noop("already tried", plan.before)
    // On rungs above the first, the model has already been tried.
    const by = plan.rung === 0 ? policy.summarizer : "extractive"
    const hasFailed = by === "model" && request.memory.failed && !request.forced
    const items = view(conversation)
    const dropped = droppedEntries(items, summarize)
    // A value that was identified as a secret by its name remains one after the name has left the window.
    const everySecret = yield* Work.run(secretsOf(entries(conversation).map(({ content }) => content)))
    const clean = yield* Work.run(redactedEntries(dropped, everySecret))
    const summaryRequest: SummaryRequest = {
      ...(yield* backgroundOf(request, plan, summarize, dropped, everySecret)),
      entries: policy.redactSecrets === false ? dropped : clean.entries,
      media: shownMedia(items),
      kept: keptTexts(items, summarize.to, shorten),
      by: wasTried || hasFailed ? "extractive" : by
    }
    const written = yield* summaryOf(request, plan, summaryRequest, write)
    const why = wasTried ? triedBefore : (written.degraded ?? (hasFailed ? failedBefore : null))
    const summary = { ...written, degraded: written.by === "extractive" ? why : written.degraded }
    if (summary.text.trim() === "") {
      return { outcome: Domain.FailedEmptySummary.make({ before: plan.before, plan, calls: summary.calls }) }
    }
    const range = yield* rangeHandle(dropped)
    // No secret enters a snapshot, whether a model, a hook or code wrote it.
    const { secrets, text: snapshot } = yield* Work.run(redacting(summary.text))
    const calls = yield* Work.run(redactedCalls(summary.calls, distinctiveSecrets(everySecret)))
    const from = Domain.rangeText(dropped[0], summarize.from, summarize.to)
    const words = user(text(`${opening(from, range, request.earlierRanges)}${snapshot}`))
    const insert = yield* summaryEntries(request, layout.acknowledge ? [words, model(text(acknowledgement))] : [words])
    const patch: Patch = { drop: { from: summarize.from, to: summarize.to }, insert, shorten }
    const made = { ...summary, text: snapshot, calls, range, secrets: [...clean.secrets, ...secrets] }
    const concluded = yield* conclude(request, plan, patch, made)
    return summary.unusable === undefined ? concluded : { ...concluded, unusable: summary.unusable }
  },
  (effect, _request, plan) => failuresAsOutcomes(effect, plan)
)

/** Returns what the view shows in the place of media, by entry. */
const shownMedia = (items: ReadonlyArray<ViewItem>): SummaryRequest["media"] =>
  new Map(
    items.flatMap(({ entry, shortened }) => {
      const media = [...shortened].filter(([part]) => hasMedia(entry.content.parts.slice(part, part + 1), "bytes"))
      return media.length === 0 ? [] : [[entry.id, new Map(media)] as const]
    })
  )

/** Returns the texts after an entry as the view will show them. */
const keptTexts = (items: ReadonlyArray<ViewItem>, to: EntryId, shorten: Patch["shorten"]): ReadonlyArray<string> => {
  const replaced = new Map(shorten.map((one) => [`${one.entry}:${one.part}`, one.replacement]))
  return items.slice(items.findIndex(({ entry }) => entry.id === to) + 1).map((item) =>
    itemParts(item)
      .map((part, at) => partText(replaced.get(`${item.entry.id}:${at}`) ?? part))
      .join("\n")
  )
}

/** Returns what a snapshot is written with besides the messages that it replaces. */
const backgroundOf = Effect.fnUntraced(function* (
  request: CompressRequest,
  plan: Domain.Plan,
  { budget, to, verify }: Extract<Domain.PlanStep, { _tag: "Summarize" }>,
  dropped: ReadonlyArray<Entry>,
  secrets: ReadonlyArray<Secret>
) {
  const { conversation, cwd, family, policy, promptId } = request
  const log = entries(conversation)
  return {
    budget,
    focus: policy.focus === undefined ? undefined : redact(policy.focus),
    cwd,
    messages: yield* Work.run(messagesOf(log, to, policy.redactSecrets === false ? undefined : secrets)),
    earlier: droppedEarlier(log, dropped, to),
    pins: pinsOf(plan, conversation, strongSecrets(distinctiveSecrets(secrets))),
    userWords: witnessOf(log, secrets),
    secrets,
    verify,
    fallback: policy.ladder,
    model: policy.model === undefined ? undefined : modelNames(policy.model)[0],
    family,
    digestBudget: policy.digestBudget,
    promptId
  }
})

/**
 * Why code writes the snapshot instead of the model: an earlier summary was no smaller than what it replaced, and the user did
 * not ask for another one.
 */
const failedBefore = {
  reason: "failed before",
  message: "an earlier summary did not make the conversation smaller, so this one was made without a model"
} as const

/** Why code writes the snapshot in place of a model that was paid for the same range before. */
const triedBefore = {
  reason: "failed before",
  message: "an earlier call for these messages returned no usable summary, so this one was made without a model"
} as const

/** Returns the snapshot: a hook's for the first plan, else the summarizer's. Both are verified against the conversation. */
const summaryOf = Effect.fnUntraced(function* (
  request: CompressRequest,
  { rung }: Domain.Plan,
  summaryRequest: SummaryRequest,
  write: WriteSnapshot
) {
  const snapshot = request.hookDecision?.specific["snapshot"]
  const made =
    rung === 0 && typeof snapshot === "string" ? yield* snapshotFromHook(snapshot, summaryRequest) : undefined
  if (made?._tag === "Success") return made.success
  const summary = yield* (summaryRequest.by === "model" ? write : summarizeAndVerify)(request, summaryRequest)
  return made === undefined ? summary : { ...summary, degraded: summary.degraded ?? made.failure }
})

/** Carries out one plan of the default strategy. */
export const carryOut = carryOutWith(summarizeAndVerify)

const partText = (part: Part): string =>
  part.functionCall === undefined
    ? part.functionResponse === undefined
      ? (part.text ?? "")
      : shownText(part, undefined)
    : `${part.functionCall.name} ${JSON.stringify(part.functionCall.args ?? {})}`

/** Returns the parts that a plan shortens, in the form that the view will show. */
const shortened = Effect.fnUntraced(function* (request: CompressRequest, plan: Domain.Plan) {
  const counter = yield* TokenCounter
  const items = new Map(view(request.conversation).map((item) => [item.entry.id, item]))
  const parts: Array<Patch["shorten"][number]> = []
  for (const step of plan.steps) {
    if (step._tag !== "Shorten") continue
    const item = items.get(step.entry)
    const original = item?.entry.content.parts[step.part]
    if (item === undefined || original === undefined) continue
    const output = shortenedText(item, step.part, step.form, sizeOf(plan, step))
    if (output === undefined) continue
    const replacement = withOutput(original, output)
    const tokens = sum(yield* counter.count([replacement]))
    parts.push({ entry: step.entry, part: step.part, replacement, tokens: TokenCount.make(tokens) })
  }
  return parts
})

/** Whether a call asks the user. */
const asks = (call: Part["functionCall"]): boolean => call !== undefined && toolKind(call.name, call.args) === "ask"

/** Returns what the user wrote up to an entry, without these secrets, whatever earlier compressions dropped. */
function* messagesOf(
  log: ReadonlyArray<Entry>,
  to: EntryId,
  secrets: ReadonlyArray<Secret> | undefined
): Work.SlicedWork<ReadonlyArray<Span>> {
  const last = sequenceOf(to)
  const ofUser = log.filter(
    ({ author, content, id }) =>
      sequenceOf(id) <= last &&
      (content.role === "user" ? author === undefined : content.parts.some(({ functionCall }) => asks(functionCall)))
  )
  yield
  const clean = secrets === undefined ? ofUser : (yield* redactedEntries(ofUser, secrets)).entries
  const partnerOf = partnersIn(clean)
  return clean.flatMap((entry, item) => requestSpans(entry, (part) => partnerOf(item, part)?.part))
}

/**
 * Returns the entries of the log up to an entry that are not among the summarised ones, because earlier compressions
 * dropped them.
 */
const droppedEarlier = (
  log: ReadonlyArray<Entry>,
  summarised: ReadonlyArray<Entry>,
  to: EntryId
): ReadonlyArray<Entry> => {
  const held = new Set(summarised.map(({ id }) => id))
  const last = sequenceOf(to)
  return log.filter(({ id }) => !held.has(id) && sequenceOf(id) <= last)
}

const pinsOf = (plan: Domain.Plan, conversation: Conversation, secrets: ReadonlyArray<Secret>) => {
  const pins = plan.steps.filter((step) => step._tag === "Pin")
  const pinnedIds = new Set<string>(pins.map(({ entry }) => entry))
  const log = new Map(
    pins.length === 0
      ? []
      : [...view(conversation).map(({ entry }) => entry), ...entries(conversation)]
          .filter(({ id }) => pinnedIds.has(id))
          .map((entry) => [entry.id, entry])
  )
  const spans = (why: (typeof pins)[number]["why"]): ReadonlyArray<Span> =>
    pins
      .filter((pin) => pin.why === why)
      .map(({ end, entry: id, part, start }) => {
        const entry = log.get(id)
        const whole = entry?.content.parts[part]?.text ?? ""
        return {
          entry: id,
          part,
          start,
          end,
          text: redactSpan(whole, start, end, secrets),
          handle: entry?.handles[part]
        }
      })
  return {
    original: spans("original request")[0],
    latest: spans("latest request")[0],
    pinned: spans("pinned by the user")
  }
}

interface MadeSummary extends VerifiedSnapshot {
  readonly range: Handle
  /** The secrets that were left out of the snapshot. */
  readonly secrets: ReadonlyArray<Secret>
}

/** Returns the result of a plan: counts both sides the same way and checks the gain. */
const conclude = Effect.fnUntraced(function* (
  request: CompressRequest,
  plan: Domain.Plan,
  patch: Patch,
  summary: MadeSummary | undefined
) {
  const { policy } = request
  const next = compressed(request.conversation, patch)
  const before = plan.before
  const { requestTokens } = yield* Work.run(indexedView(next.view))
  const after = TokenCount.make(policy.overhead + requestTokens)
  const enough = after < before && after <= before * (1 - policy.minGain)
  if (!enough) {
    const kept = new Set(view(next).map((item) => item.entry.id))
    return {
      outcome: Domain.FailedInflatedTokenCount.make({
        reason: after >= before ? "inflated" : "below minimum gain",
        before,
        after,
        plan,
        stubborn: unshrinkable(request.conversation, kept),
        calls: summary?.calls ?? []
      })
    }
  }
  const common = { before, after, plan, patch, degraded: summary?.degraded ?? null, calls: summary?.calls ?? [] }
  return summary === undefined
    ? { outcome: Domain.ContentTruncated.make(common) }
    : {
        outcome: Domain.Compressed.make({
          ...common,
          by: summary.by,
          snapshot: summary.text,
          audit: summary.audit,
          doubts: summary.doubts,
          ...keptOut(summary.secrets)
        }),
        dropped: summary.range
      }
})
