import { Context, Effect, Layer, Schema } from "effect"
import * as Domain from "../domain/Compression.ts"
import { type Part, text, withOutput } from "../domain/Content.ts"
import {
  append,
  compressed,
  type Conversation,
  type Draft,
  empty,
  entries,
  type Entry,
  entryId,
  itemParts,
  type Patch,
  view,
  viewTokens
} from "../domain/Conversation.ts"
import { saidIn, type Span } from "../domain/Evidence.ts"
import { freshMemory } from "../domain/FailureMemory.ts"
import type { Handle } from "../domain/Handle.ts"
import type { Trigger } from "../domain/Hook.ts"
import { projecting, requestTokens } from "../domain/Projection.ts"
import { redactedEntries, secretsOf } from "../domain/RedactedEntries.ts"
import {
  countSecrets,
  redact,
  redacting,
  redactSpan,
  type Secret,
  strongOf,
  tellingOf,
  withoutValues
} from "../domain/Redaction.ts"
import { runtimeMark } from "../domain/RuntimeMark.ts"
import {
  answerOf,
  plan as planPalimpsest,
  rungs,
  sizeOf,
  shortenedText,
  stubborn
} from "../domain/strategies/Palimpsest.ts"
import { TokenCount } from "../domain/Tokens.ts"
import * as Work from "../domain/Work.ts"
import { callsWithout, type CompressRequest, type Ended, isPaidInVain } from "./CompressRequest.ts"
import { compressAsTheSeeds, planAsTheSeeds } from "./GeminiCompression.ts"
import { HookSystem } from "./HookSystem.ts"
import { HandleIndex, makeEntry, rangeHandle } from "./Intake.ts"
import { Summarizer, type SummarizerError, type SummaryRequest } from "./Summarizer.ts"
import { TempStore } from "./TempStore.ts"
import { type TokenCountError, TokenCounter } from "./TokenCounter.ts"
import { given, type Verified, verified } from "./WrittenSnapshot.ts"

/** The plan was made for another state of the conversation. Make a new one. */
export class PlanRefused extends Schema.TaggedError<PlanRefused>()("PlanRefused", {
  planned: Schema.Natural,
  found: Schema.Natural
}) {
  override get message() {
    return this.planned === this.found
      ? "the plan was made with other settings than these; make a new plan, or give the same"
      : `the plan was made for version ${this.planned} of the conversation, which is at version ${this.found}; make a new plan`
  }
}

/**
 * What `compress` is asked for by a program that keeps its messages itself: they become the entries `e1`, `e2`, … of a
 * conversation, counted and with handles. Nothing is stored, and nobody remembers what failed before. A message without an
 * author is taken for the user's or the model's own, as its role says. Not forced: below the policy's threshold nothing
 * happens.
 */
export const requestFor: (
  messages: ReadonlyArray<Draft>,
  policy?: Domain.Policy
) => Effect.Effect<CompressRequest, TokenCountError, TokenCounter | TempStore> = Effect.fn("Compression.requestFor")(
  function* (messages, policy = Domain.defaultPolicy) {
    const held = new HandleIndex()
    let conversation = empty
    for (const message of messages) {
      conversation = append(conversation, yield* makeEntry(message, entryId(conversation.next), held))
    }
    return { conversation, policy, forced: false, memory: freshMemory, held }
  }
)

/**
 * The workflow: hook, plan, summary, audit, check, outcome. Changes nothing itself: the outcome carries a patch, and only
 * `Chat` lays it over the conversation. Interruptible at every step.
 */
export class Compression extends Context.Service<
  Compression,
  {
    /** What would be done, decided and not done. */
    readonly plan: (request: CompressRequest) => Effect.Effect<Domain.Decision>
    /**
     * Decides, carries out, and says how it ended. Never fails: what fails on the way is an outcome, or is told in one that
     * succeeded by lesser means (`degraded`). With `policy.ladder`, stronger plans follow until the result fits the window.
     */
    readonly compress: (request: CompressRequest) => Effect.Effect<Ended>
    /** Carries out a plan that was made before. */
    readonly apply: (request: CompressRequest, plan: Domain.Plan) => Effect.Effect<Ended, PlanRefused>
  }
>()("palimpsest/services/Compression") {
  /** The workflow over these services. It keeps nothing from one compression to the next. */
  static readonly layer = Layer.effect(
    Compression,
    Effect.gen(function* () {
      const hooks = yield* HookSystem
      const summarizer = yield* Summarizer
      const counter = yield* TokenCounter
      const store = yield* TempStore
      const context = Context.mergeAll(
        Context.make(Summarizer, summarizer),
        Context.make(TokenCounter, counter),
        Context.make(TempStore, store)
      )
      const carryOut = (request: CompressRequest, plan: Domain.Plan) =>
        Effect.provideContext(attempt(request, plan), context)
      const asTheSeeds = (request: CompressRequest) => Effect.provideContext(compressAsTheSeeds(request), context)

      const decide = Effect.fnUntraced(function* (request: CompressRequest, rung: number) {
        yield* existing(request.policy.strategy)
        return yield* request.policy.strategy === "gemini"
          ? planAsTheSeeds(request)
          : Work.run(planPalimpsest(request.conversation, request.policy, { ...request, rung }))
      })

      const skipped = (decision: Extract<Domain.Decision, { _tag: "Skip" }>): Ended => ({
        outcome: Domain.Noop.make({ reason: decision.reason, before: TokenCount.make(decision.before) }),
        dropped: undefined
      })

      /** The request with what hooks say to it; told once, and heeded where the strategy is our own (spec 8, PreCompress). */
      const advisedOn = Effect.fnUntraced(function* (
        request: CompressRequest,
        trigger: Trigger
      ): Effect.fn.Return<CompressRequest> {
        const advice = request.advice ?? (yield* hooks.fire({ _tag: "PreCompress", trigger }, { cwd: request.cwd }))
        const { policy } = request
        const focus = advice.specific["focus"]
        const isHeeded = policy.strategy !== "gemini" && policy.focus === undefined
        return isHeeded && typeof focus === "string" && focus.trim() !== ""
          ? { ...request, advice, policy: { ...policy, focus } }
          : { ...request, advice }
      })

      /** What ends the compression because a hook does not want it. Where nothing was due, that is what is told. */
      const vetoed = Effect.fnUntraced(function* (request: CompressRequest): Effect.fn.Return<Ended | undefined> {
        if (vetoOf(request) === undefined) return undefined
        const decision = yield* decide(request, 0)
        return decision._tag === "Skip" ? skipped(decision) : noopFor(request, decision.plan.before)
      })

      /** From rung to rung until one fits; of those that only made progress, the smallest. */
      const climb = Effect.fnUntraced(function* (request: CompressRequest): Effect.fn.Return<Ended> {
        let best: Ended | undefined
        let degraded: Domain.Degraded | null = null
        const calls: Array<Domain.SummaryCall> = []
        const last = request.policy.ladder ? rungs : 1
        for (let rung = 0; rung < last; rung += 1) {
          const decision = yield* decide(request, rung)
          if (decision._tag === "Skip") {
            // Only where a plan finds nothing may a stronger one find something.
            if (decision.reason !== "nothing to compress") return skipped(decision)
            best ??= skipped(decision)
            continue
          }
          const made = yield* carryOut(request, decision.plan)
          calls.push(...Domain.callsOf(made.outcome))
          const result = rung === 0 ? made : asLadder(made, degraded, calls)
          if (fits(result.outcome, request.policy)) return result
          degraded ??= reasonOf(result.outcome, request)
          best = better(best, result)
        }
        return (
          (best === undefined ? undefined : tooLarge(best, request)) ??
          skipped({ _tag: "Skip", reason: "nothing to compress", before: viewTokens(request.conversation) })
        )
      })

      return {
        plan: (request) => decide(request, 0),
        compress: Effect.fn("Compression.compress")(function* (request) {
          yield* Effect.annotateCurrentSpan({ tokens: viewTokens(request.conversation), forced: request.forced })
          if (view(request.conversation).length === 0) {
            return skipped({ _tag: "Skip", reason: "empty", before: 0 })
          }
          const advised = yield* advisedOn(request, triggerOf(request))
          if (advised.policy.strategy === "gemini") return yield* asTheSeeds(advised)
          return (yield* vetoed(advised)) ?? (yield* climb(advised))
        }),
        apply: Effect.fn("Compression.apply")(function* (request, plan) {
          yield* existing(plan.strategy)
          if (plan.version !== request.conversation.version) {
            return yield* new PlanRefused({ planned: plan.version, found: request.conversation.version })
          }
          const advised = yield* advisedOn(request, "manual")
          if (plan.strategy === "gemini") {
            // This strategy decides and does in one go: the plan is held against what it would decide now.
            const seeds = { ...advised, forced: true, policy: { ...request.policy, strategy: plan.strategy } }
            const now = yield* planAsTheSeeds(seeds)
            const same = now._tag === "Go" && JSON.stringify(now.plan.steps) === JSON.stringify(plan.steps)
            return same
              ? yield* asTheSeeds(seeds)
              : yield* new PlanRefused({ planned: plan.version, found: request.conversation.version })
          }
          return vetoOf(advised) === undefined ? yield* carryOut(advised, plan) : noopFor(advised, plan.before)
        })
      }
    })
  )
}

const isStrategy = Schema.is(Domain.StrategyName)

/** Dies on a strategy that the types do not allow: a program without them must not get another one under that name. */
const existing = (strategy: Domain.StrategyName): Effect.Effect<void> =>
  isStrategy(strategy)
    ? Effect.void
    : Effect.die(
        new Error(`no strategy is called ${String(strategy)}; expected ${Domain.StrategyName.literals.join(" or ")}`)
      )

/** Who asked: what only has to fit was asked for by nobody. */
const triggerOf = ({ forced, mustFit = false }: CompressRequest): Trigger => (forced && !mustFit ? "manual" : "auto")

/** Why hooks do not want this compression, where they may say so. */
const vetoOf = ({ advice, mustFit = false }: CompressRequest): string | undefined =>
  mustFit ? undefined : (advice?.stopped ?? advice?.blocked)

const noopFor = (request: CompressRequest, before: number): Ended => {
  const detail = vetoOf(request)
  return {
    outcome: Domain.Noop.make({
      reason: "vetoed by a hook",
      before: TokenCount.make(before),
      ...(detail === undefined || detail.trim() === "" ? {} : { detail })
    }),
    dropped: undefined
  }
}

const fits = (outcome: Domain.Outcome, policy: Domain.Policy): boolean =>
  (outcome._tag === "Compressed" || outcome._tag === "ContentTruncated") && outcome.after <= policy.limit

/** Why a rung was not enough, for the outcome of the one that was. */
const reasonOf = (outcome: Domain.Outcome, request: CompressRequest): Domain.Degraded =>
  Domain.Outcome.matchOrElse(
    outcome,
    {
      // What failed before the plan proved too weak is the older news.
      Compressed: ({ after, degraded }) =>
        degraded ?? {
          reason: "over the limit",
          message: `the first plan left ${after} tokens, over the limit of ${request.policy.limit}`
        },
      FailedInflatedTokenCount: ({ after, before, reason }) => ({
        reason,
        message: `the first plan came from ${before} to ${after} tokens`
      }),
      FailedSummarizer: ({ message, reason }) => ({ reason, message })
    },
    () => ({ reason: Domain.statusOf(outcome), message: "the first plan did not help" })
  )

/** The outcome of a stronger rung, with what failed and what was paid on the way to it. */
const asLadder = (made: Ended, degraded: Domain.Degraded | null, calls: ReadonlyArray<Domain.SummaryCall>): Ended => ({
  ...made,
  outcome: Domain.Outcome.matchOrElse(
    made.outcome,
    {
      Compressed: (outcome): Domain.Outcome => Domain.Compressed.make({ ...outcome, by: "ladder", degraded, calls }),
      ContentTruncated: (outcome) => Domain.ContentTruncated.make({ ...outcome, degraded, calls }),
      FailedInflatedTokenCount: (outcome) => Domain.FailedInflatedTokenCount.make({ ...outcome, calls })
    },
    (outcome) => outcome
  )
})

/** Says what keeps the best that could be done over the limit. */
const tooLarge = (best: Ended, request: CompressRequest): Ended => {
  const { outcome } = best
  if (outcome._tag !== "Compressed" && outcome._tag !== "ContentTruncated") return best
  const kept = new Set(view(compressed(request.conversation, outcome.patch)).map((item) => item.entry.id))
  const parts = stubborn(request.conversation, kept).map(({ entry, tokens, what }) => `${entry} ${what} ${tokens}`)
  const degraded = {
    reason: "over the limit",
    message: `${outcome.after} tokens are left, over the limit of ${request.policy.limit}${parts.length === 0 ? "" : `; what cannot be made to fit: ${parts.join(", ")}`}`
  }
  return {
    ...best,
    outcome:
      outcome._tag === "Compressed"
        ? Domain.Compressed.make({ ...outcome, degraded })
        : Domain.ContentTruncated.make({ ...outcome, degraded })
  }
}

/** The one that changes something and leaves least; of two that change nothing, the first. */
const better = (one: Ended | undefined, other: Ended): Ended => {
  if (one === undefined) return other
  if (Domain.patchOf(other.outcome) === undefined) return one
  if (Domain.patchOf(one.outcome) === undefined) return other
  return Domain.tokensOf(other.outcome).after < Domain.tokensOf(one.outcome).after ? other : one
}

const acknowledgement = "Understood. I continue from this snapshot and recall what it points to when I need it."

const opening = (from: string, to: string, dropped: Handle): string =>
  `${runtimeMark} The messages ${from} to ${to} left the window; this snapshot stands for them. What is quoted as user_words was written by the user; all else was written by the runtime from the conversation. Nothing is lost: recall ${dropped} for all of it, or a handle below for one part.\n\n`

/** Carries out one plan, up to an outcome. */
const attempt = Effect.fn("Compression.attempt")(
  function* (
    request: CompressRequest,
    plan: Domain.Plan
  ): Effect.fn.Return<Ended, SummarizerError | TokenCountError, Summarizer | TokenCounter | TempStore> {
    const { conversation, policy } = request
    const items = view(conversation)
    const shorten = yield* shortened(request, plan)
    const summarize = plan.steps.find((step) => step._tag === "Summarize")
    const layout = plan.steps.find((step) => step._tag === "Layout")
    if (summarize === undefined || layout === undefined) {
      return yield* judged(request, plan, { insert: [], shorten }, undefined)
    }
    const from = items.findIndex((item) => item.entry.id === summarize.from)
    const to = items.findIndex((item) => item.entry.id === summarize.to)
    const dropped = items.slice(from, to + 1).filter((item) => item.entry.author !== "environment")
    const replaced = new Map(shorten.map((one) => [`${one.entry}:${one.part}`, one.replacement]))
    const kept = items.slice(to + 1).map((item) =>
      itemParts(item)
        .map((part, at) => partText(replaced.get(`${item.entry.id}:${at}`) ?? part))
        .join("\n")
    )
    const isInVain = isPaidInVain(request, summarize)
    if (isInVain && !policy.ladder) {
      return {
        outcome: Domain.Noop.make({ reason: "already tried", before: plan.before }),
        dropped: undefined
      }
    }
    const whole = dropped.map((item) => item.entry)
    // What was named once stays a secret, also after the name has left the window.
    const log = entries(conversation)
    const secretsOfAll = yield* Work.run(secretsOf(log.map(({ content }) => content)))
    const telling = tellingOf(secretsOfAll)
    const clean = yield* Work.run(redactedEntries(whole, secretsOfAll))
    const wanted: SummaryRequest = {
      entries: policy.redactSecrets === false ? whole : clean.entries,
      kept,
      budget: summarize.budget,
      focus: policy.focus === undefined ? undefined : redact(policy.focus),
      cwd: request.cwd,
      pins: pinsOf(plan, conversation, strongOf(telling)),
      said: saidIn(log, secretsOfAll),
      secrets: secretsOfAll,
      verify: summarize.verify,
      // Above the first rung the model has had its chance.
      by: plan.rung === 0 && !isInVain ? policy.summarizer : "extractive",
      fallback: policy.ladder,
      model: policy.model,
      family: request.family,
      promptId: request.promptId
    }
    const summary = yield* summarised(request, plan, wanted)
    if (summary.text.trim() === "") {
      return {
        outcome: Domain.FailedEmptySummary.make({ before: plan.before, plan, calls: summary.calls }),
        dropped: undefined
      }
    }
    const range = yield* rangeHandle(whole)
    // Whoever wrote it: no secret enters a snapshot.
    const { secrets, text: snapshot } = yield* Work.run(redacting(summary.text))
    const calls = yield* Work.run(callsWithout(summary.calls, telling))
    const insert: Array<Entry> = []
    const messages: ReadonlyArray<{ readonly role: "user" | "model"; readonly text: string }> = [
      { role: "user", text: `${opening(summarize.from, summarize.to, range)}${snapshot}` },
      ...(layout.acknowledge ? [{ role: "model" as const, text: acknowledgement }] : [])
    ]
    for (const message of messages) {
      const draft = { content: { role: message.role, parts: [text(message.text)] }, author: "summary" as const }
      insert.push(yield* makeEntry(draft, entryId(conversation.next + insert.length), request.held))
    }
    const patch: Patch = { drop: { from: summarize.from, to: summarize.to }, insert, shorten }
    const made = { ...summary, text: snapshot, calls, range, secrets: [...clean.secrets, ...secrets] }
    return yield* judged(request, plan, patch, made)
  },
  (effect, _request, plan) =>
    Effect.catchTags(effect, {
      TokenCountError: (error) =>
        Effect.succeed<Ended>({
          outcome: Domain.FailedTokenCountError.make({ before: plan.before, message: error.message }),
          dropped: undefined
        }),
      SummarizerError: (error) =>
        Effect.succeed<Ended>({
          outcome: Domain.FailedSummarizer.make({
            before: plan.before,
            plan,
            reason: error.reason,
            message: error.message,
            calls: error.calls
          }),
          dropped: undefined
        })
    })
)

/** Why code writes the snapshot that a model was to write: a summary failed before, and nobody insists on another one. */
const failedBefore = {
  reason: "failed before",
  message: "a summary failed before, so that no model was asked for another one"
} as const

/** The snapshot: what a hook gave for the first plan, else what the summarizer writes; both only as far as they hold. */
const summarised = Effect.fnUntraced(function* (
  request: CompressRequest,
  plan: Domain.Plan,
  wanted: SummaryRequest
): Effect.fn.Return<Verified, SummarizerError, Summarizer> {
  if (wanted.by === "model" && request.memory.failed && !request.forced) {
    const summary = yield* written(request, plan, { ...wanted, by: "extractive" })
    return summary.by === "hook" ? summary : { ...summary, degraded: summary.degraded ?? failedBefore }
  }
  return yield* written(request, plan, wanted)
})

const written = Effect.fnUntraced(function* (
  { advice }: CompressRequest,
  { rung }: Domain.Plan,
  wanted: SummaryRequest
): Effect.fn.Return<Verified, SummarizerError, Summarizer> {
  const snapshot = advice?.specific["snapshot"]
  const made = rung === 0 && typeof snapshot === "string" ? yield* given(snapshot, wanted) : undefined
  if (made !== undefined && typeof made !== "string") return made
  const summarizer = yield* Summarizer
  const summary = yield* verified(yield* summarizer.summarize(wanted), wanted)
  return made === undefined
    ? summary
    : { ...summary, degraded: summary.degraded ?? { reason: "InvalidOutputError", message: made } }
})

const partText = (part: Part): string =>
  part.functionCall === undefined
    ? part.functionResponse === undefined
      ? (part.text ?? "")
      : answerOf(part, undefined)
    : `${part.functionCall.name} ${JSON.stringify(part.functionCall.args ?? {})}`

/** The parts a plan shortens, as they will stand in the view. */
const shortened = Effect.fnUntraced(function* (
  request: CompressRequest,
  plan: Domain.Plan
): Effect.fn.Return<Patch["shorten"], TokenCountError, TokenCounter> {
  const counter = yield* TokenCounter
  const items = new Map(view(request.conversation).map((item) => [item.entry.id, item]))
  const parts: Array<Patch["shorten"][number]> = []
  for (const step of plan.steps) {
    if (step._tag !== "Shorten") continue
    const item = items.get(step.entry)
    const original = item?.entry.content.parts[step.part]
    if (item === undefined || original === undefined) continue
    const output = shortenedText(item, step.part, step.form, sizeOf(plan, step.form))
    if (output === undefined) continue
    const replacement = withOutput(original, output)
    const [tokens = 0] = yield* counter.count([replacement])
    parts.push({ entry: step.entry, part: step.part, replacement, tokens: TokenCount.make(tokens) })
  }
  return parts
})

const pinsOf = (plan: Domain.Plan, conversation: Conversation, secrets: ReadonlyArray<Secret>) => {
  const pins = plan.steps.filter((step) => step._tag === "Pin")
  const named = new Set<string>(pins.map(({ entry }) => entry))
  const log = new Map(
    pins.length === 0
      ? []
      : [...view(conversation).map(({ entry }) => entry), ...entries(conversation)]
          .filter(({ id }) => named.has(id))
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
          text: Work.runSync(withoutValues(redactSpan(whole, start, end), secrets)),
          handle: entry?.handles[part]
        }
      })
  return {
    original: spans("original request")[0],
    latest: spans("latest request")[0],
    asked: spans("pinned by the user")
  }
}

interface MadeSummary extends Verified {
  readonly range: Handle
  /** The secrets that were kept out of it. */
  readonly secrets: ReadonlyArray<Secret>
}

/** Counts both sides alike and says what the plan came to. */
const judged = Effect.fnUntraced(function* (
  request: CompressRequest,
  plan: Domain.Plan,
  patch: Patch,
  summary: MadeSummary | undefined
): Effect.fn.Return<Ended> {
  const { policy } = request
  const next = compressed(request.conversation, patch)
  const before = plan.before
  const sent = yield* Work.run(projecting(view(next)))
  const after = TokenCount.make(policy.overhead + requestTokens(sent))
  const enough = after < before && after <= before * (1 - policy.minGain)
  if (!enough) {
    const kept = new Set(view(next).map((item) => item.entry.id))
    return {
      outcome: Domain.FailedInflatedTokenCount.make({
        reason: after >= before ? "inflated" : "below minimum gain",
        before,
        after,
        plan,
        stubborn: stubborn(request.conversation, kept),
        calls: summary?.calls ?? []
      }),
      dropped: undefined
    }
  }
  const common = { before, after, plan, patch, degraded: summary?.degraded ?? null, calls: summary?.calls ?? [] }
  return summary === undefined
    ? { outcome: Domain.ContentTruncated.make(common), dropped: undefined }
    : {
        outcome: Domain.Compressed.make({
          ...common,
          by: summary.by,
          snapshot: summary.text,
          audit: summary.audit,
          doubts: summary.doubts,
          ...(summary.secrets.length === 0 ? {} : { secrets: countSecrets(summary.secrets) })
        }),
        dropped: summary.range
      }
})
