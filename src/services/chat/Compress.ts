/**
 * Decides when and how a chat compresses, and commits the outcome. The workflow itself is in `services/compression`.
 */

import { Clock, Effect, Exit, Ref, Schema } from "effect"
import {
  Cancelled,
  FailedInflatedTokenCount,
  type Outcome,
  patchOf,
  type Plan,
  tokensOf,
  withCounts
} from "../../domain/compression/Compression.ts"
import type { Policy } from "../../domain/compression/strategies/Policy.ts"
import type { Strategy } from "../../domain/compression/Strategy.ts"
import { isCall, text, user } from "../../domain/content/Content.ts"
import { compressed, type Conversation, entryId, view, viewTokens } from "../../domain/conversation/Conversation.ts"
import { withUnusable } from "../../domain/conversation/FailureMemory.ts"
import { indexedView } from "../../domain/conversation/IndexedView.ts"
import type { HookOutcome } from "../../domain/hooks/Hook.ts"
import { compressionEvent } from "../../domain/session/CompressionEvent.ts"
import type { Session, SessionEvent } from "../../domain/session/Session.ts"
import * as PersistentList from "../../domain/text/PersistentList.ts"
import * as Work from "../../domain/text/SlicedWork.ts"
import { estimateText, TokenCount } from "../../domain/tokens/Tokens.ts"
import { Compression } from "../compression/Compression.ts"
import { firePreCompress, postCompress, type PreCompressRequest, triggerOf } from "../compression/PreCompress.ts"
import { type CompressionResult, type CompressRequest } from "../compression/strategies/CompressRequest.ts"
import { CompressionSteps } from "../compression/summary/CompressionSteps.ts"
import { givenUpText, unusableIn, withUsableModels } from "../compression/UsableModels.ts"
import type { SessionStoreError } from "../session/SessionStore.ts"
import { appendMessage } from "./AppendMessages.ts"
import { type ChatState, type Emit, hooksOf } from "./ChatState.ts"
import { commit, readWhole } from "./Commit.ts"
import { policyFor } from "./CompressPolicy.ts"
import { endPreparation, takePrepared } from "./Preparation.ts"
import { requestContext, summaryFamily, withOwnWindows } from "./RequestContext.ts"
import { requestSize } from "./RequestSize.ts"

/** Options of one compression. */
export interface CompressOptions {
  /** Default: the policy of the chat's settings. */
  readonly policy?: Policy | undefined
  /** What the compression should preserve above all. */
  readonly focus?: string | undefined
  /** Compresses below the threshold and after failures, as at the user's request (default true). */
  readonly forced?: boolean | undefined
  /** When this completes first, the compression is cancelled and ends as `Cancelled`. */
  readonly cancel?: Effect.Effect<unknown> | undefined
  /** Carries out this plan instead of making a new one. */
  readonly plan?: Plan | undefined
  /** The id of the request that asks for it, which is stored with it. */
  readonly request?: string | undefined
  /** Receives messages of hooks, one line each. */
  readonly onNotice?: ((line: string) => Effect.Effect<void>) | undefined
}

/** The state of a turn that compresses before its request. */
export interface BeforeRequest {
  /** The request does not fit without this compression, so hooks cannot veto it. */
  readonly mustFit: boolean
  /** The decision of the PreCompress hooks. Undefined: they are asked now. */
  readonly hookDecision: HookOutcome | undefined
  readonly emit: Emit
}

/** The input of the compression workflow. */
export const compressRequest = (chat: ChatState, session: Session, policy: Policy, forced: boolean) =>
  Effect.map(Ref.get(chat.settings), (settings) => ({
    conversation: session.conversation,
    memory: session.memory,
    policy: withUsableModels(policy, session.memory),
    forced,
    held: chat.handles,
    pins: PersistentList.toArray(session.pins),
    cwd: session.started?.cwd,
    family: summaryFamily(session, settings)
  }))

/** Compresses at the request of the user or a program. */
export const compress = Effect.fn("Chat.compress")(function* (chat: ChatState, options: CompressOptions) {
  const { cancel, forced = true, plan, policy } = options
  if (policy === undefined && plan === undefined) {
    // A text that a model will summarise may also be sent to be counted, if nothing is known of the model.
    const counted =
      forced && (yield* policyFor(chat, options)).summarizer === "model" ? requestSize(chat, true) : Effect.void
    yield* cancel === undefined ? counted : Effect.raceFirst(Effect.asVoid(counted), Effect.asVoid(cancel))
  }
  return yield* compressWith(chat, yield* policyFor(chat, options), options)
})

/** Compresses before a request. `forced`: the request does not fit without this compression. */
export const compressBefore = (chat: ChatState, policy: Policy, forced: boolean, turn: BeforeRequest) =>
  Effect.catchTag(compressWith(chat, policy, { forced }, turn), "PlanRefused", Effect.die)

/** Reports notices to the turn that the compression is for, or as its options say. */
const noticesTo =
  ({ onNotice = () => Effect.void }: CompressOptions, turn: BeforeRequest | undefined): Emit =>
  (event) => {
    if (event._tag !== "Notice") return Effect.void
    return turn === undefined ? onNotice(event.message) : turn.emit(event)
  }

const compressWith = Effect.fnUntraced(function* (
  chat: ChatState,
  policy: Policy,
  options: CompressOptions,
  turn?: BeforeRequest
) {
  const { cancel, forced = true } = options
  const { estimated: estimatedBefore, scale: known, tokens: requestBefore } = yield* requestSize(chat, false)
  const scale = known ?? 1
  const trigger = triggerOf({ forced, mustFit: turn?.mustFit })
  const promptId = yield* promptIdOf(chat, trigger === "manual")
  const hooks = yield* hooksOf(chat, noticesTo(options, turn))
  const { focus, plan } = options
  if (options.policy !== undefined || focus !== undefined || plan !== undefined) {
    yield* endPreparation(chat, "another compression was asked for")
  }
  const { window } = yield* requestContext(chat)
  const maxTokens = turn === undefined ? Infinity : Math.min(window.trigger, window.maxRequestTokens) / scale
  const { strategy } = yield* Effect.orDie((yield* Compression).runner(policy.strategy))
  const attempt: Attempt = { policy, strategy, options, turn, promptId, hooks, maxTokens, requestBefore, scale }
  const { compression } = yield* CompressionSteps
  const { conversation } = yield* Ref.get(chat.session)
  // An undo restores this view, and then says the same tokens.
  if (known !== undefined && conversation.view !== undefined) {
    chat.requests.scales.set(conversation.view, { model: window.model, scale: known })
  }
  const sized = strategy.countsByReport ? requestBefore : TokenCount.make(estimatedBefore)
  const cancelled: Made = { outcome: Cancelled.make({ before: sized }), isPrepared: false }
  const prepared = prepare(chat, attempt)
  const made = yield* compression(
    conversation.version,
    Effect.tap(cancel === undefined ? prepared : Effect.raceFirst(prepared, Effect.as(cancel, cancelled)), (result) =>
      record(chat, attempt, result)
    )
  ).pipe(
    Effect.onExit((exit) => {
      // A turn fires it for its own compressions.
      if (Exit.isSuccess(exit) || turn !== undefined || !chat.awaitsPostCompress) return Effect.void
      chat.awaitsPostCompress = false
      return hooks.fireAside(postCompress(trigger, cancelled.outcome, promptId))
    })
  )
  const unlessCancelled = <E>(work: Effect.Effect<unknown, E>) =>
    cancel === undefined ? work : Effect.raceFirst(work, cancel)
  const outcome = yield* settled(chat, attempt, made.outcome, unlessCancelled)
  if (conversation.view === undefined || (!chat.awaitsPostCompress && outcome._tag === "Cancelled")) return outcome
  chat.awaitsPostCompress = false
  const ended = postCompress(trigger, outcome, promptId)
  yield* outcome._tag === "Cancelled" ? hooks.fireAside(ended) : unlessCancelled(hooks.fire(ended))
  return outcome
})

/** Appends what follows a compression, if it changed the conversation, and returns its outcome in the model's tokens. */
const settled = Effect.fnUntraced(function* (
  chat: ChatState,
  attempt: Attempt,
  outcome: Outcome,
  unlessCancelled: <E>(work: Effect.Effect<unknown, E>) => Effect.Effect<unknown, E>
) {
  const patch = patchOf(outcome)
  if (patch !== undefined) {
    yield* unlessCancelled(refreshEnvironment(chat))
    if (attempt.turn?.mustFit !== true) yield* appendAfterCompression(chat)
  }
  const { scale = 1, tokens } = yield* requestSize(chat, false)
  return inModelTokens(attempt, outcome, tokens, patch === undefined ? attempt.scale : scale)
})

/** The result of a compression. `isPrepared`: it was prepared earlier, and its calls are already in the log. */
interface Made extends CompressionResult {
  readonly isPrepared: boolean
}

/** Asks the PreCompress hooks, and notes that PostCompress must follow. */
export const askHooks = Effect.fnUntraced(function* (
  chat: ChatState,
  hooks: Parameters<typeof firePreCompress>[0],
  how: Pick<PreCompressRequest, "forced" | "mustFit">
) {
  const { conversation } = yield* Ref.get(chat.session)
  chat.awaitsPostCompress = conversation.view !== undefined
  return yield* firePreCompress(hooks, { conversation, ...how })
})

/** A compression that is to be made. */
interface Attempt {
  readonly policy: Policy
  readonly strategy: Strategy
  readonly options: CompressOptions
  /** The turn that it is for; undefined: a user or a program asked for it. */
  readonly turn: BeforeRequest | undefined
  readonly promptId: string
  readonly hooks: Effect.Success<ReturnType<typeof hooksOf>>
  /** A view that was prepared earlier is used if the request then has at most this many estimated tokens. */
  readonly maxTokens: number
  /** The model's tokens of the request before, without a message. */
  readonly requestBefore: number
  /** The model's tokens for one estimated token, before. */
  readonly scale: number
}

/** Prepares a compression: everything that may wait, fail or be cancelled. The conversation does not change. */
const prepare = Effect.fnUntraced(function* (
  chat: ChatState,
  { hooks, maxTokens, options, policy, promptId, scale, strategy, turn }: Attempt
) {
  const { forced = true, plan } = options
  const compression = yield* Compression
  const mustFit = turn?.mustFit ?? false
  const hookDecision = turn?.hookDecision ?? (yield* askHooks(chat, hooks, { forced, mustFit }))
  const veto = hookDecision.stopped ?? hookDecision.blocked
  const prepared =
    strategy.heedsHooks && !mustFit && veto !== undefined
      ? undefined
      : yield* takePrepared(chat, policy, maxTokens, turn?.emit ?? (() => Effect.void))
  if (prepared !== undefined) return { ...prepared, isPrepared: true }
  const session = yield* readWhole(chat)
  const { conversation } = session
  const request: CompressRequest = {
    ...(yield* compressRequest(chat, session, policy, forced)),
    hookDecision,
    mustFit,
    promptId
  }
  const carriedOut = plan === undefined ? compression.compress(request) : compression.apply(request, plan)
  const result = yield* withOwnWindows(chat, carriedOut)
  const unusable = unusableIn(result, request.policy)
  const why = givenUpText(withUnusable(request.memory, unusable, false), unusable)
  if (why !== undefined) yield* noticesTo(options, turn)({ _tag: "Notice", source: "compression", message: why })
  return {
    ...(yield* refuseInflated(conversation, policy.overhead, scale, { ...result, unusable })),
    isPrepared: false
  }
})

/**
 * Rejects a compression that makes the request larger. A strategy that uses the provider's counts compares such a
 * count with its own estimate, so it may not notice.
 */
const refuseInflated = Effect.fnUntraced(function* (
  conversation: Conversation,
  overhead: number,
  scale: number,
  result: CompressionResult
) {
  const { outcome } = result
  if (outcome._tag !== "Compressed") return result
  const { requestTokens: before } = yield* Work.run(indexedView(conversation.view))
  const { requestTokens: after } = yield* Work.run(indexedView(compressed(conversation, outcome.patch).view))
  if (after <= before) return result
  const { calls, plan } = outcome
  const sizeOf = (tokens: number) => TokenCount.make(Math.round((overhead + tokens) * scale))
  const counts = { before: sizeOf(before), after: sizeOf(after) }
  const failed = FailedInflatedTokenCount.make({ ...counts, reason: "inflated", plan, stubborn: [], calls })
  return { ...result, outcome: failed, dropped: undefined }
})

/** Commits the result of a compression: its patch, or its failure. */
const record = Effect.fnUntraced(function* (
  chat: ChatState,
  attempt: Attempt,
  { dropped, isPrepared, outcome, unusable = [] }: Made
) {
  const { options, policy, scale, turn } = attempt
  const { forced = true, request } = options
  const event = compressionEvent(outcome, {
    at: yield* Clock.currentTimeMillis,
    dropped,
    forced,
    isPaid: isPrepared,
    request,
    strategy: policy.strategy,
    unusable
  })
  if (event === undefined) return
  const isCompressed = event._tag === "Compressed"
  const note = Effect.map(Ref.get(chat.session), ({ conversation }) => {
    if (isCompressed && turn !== undefined)
      chat.unreported = inModelTokens(attempt, outcome, (policy.overhead + viewTokens(conversation)) * scale, scale)
  })
  const committing = commitStep(isCompressed && isPrepared ? adopt(chat, event) : commit(chat, event))
  yield* Effect.uninterruptible(Effect.andThen(committing, note))
})

const commitStep = (committing: Effect.Effect<void, SessionStoreError>) =>
  CompressionSteps.use(({ step }) => step({ name: "commit", result: Schema.Boolean }, Effect.as(committing, true)))

/** Commits a prepared compression, and discards the preparation. */
const adopt = (chat: ChatState, event: SessionEvent) =>
  Effect.suspend(() => {
    const { preparation } = chat
    chat.preparation = undefined
    const { outgoing, patch } = preparation?.rehearsal ?? {}
    const isRehearsed = outgoing !== undefined && event._tag === "Compressed" && event.patch === patch
    return commit(chat, event).pipe(
      Effect.tapError(() => Effect.sync(() => (chat.preparation = preparation))),
      Effect.tap(() => Effect.sync(() => isRehearsed && (chat.requests.outgoing = outgoing)))
    )
  })

/**
 * Converts an outcome to the model's tokens. If the conversation changed, they are the sizes of the requests, as `Chat.usage` counts them: for
 * strategies that use the provider's counts, and where no message follows. `requestAfter` is in the model's tokens, too.
 */
const inModelTokens = (
  { options, requestBefore, scale, strategy, turn }: Attempt,
  outcome: Outcome,
  requestAfter: number,
  scaleAfter: number
): Outcome => {
  // The outcome of a caller's own policy stays in the strategy's own counts.
  if (options.policy !== undefined) return outcome
  if (patchOf(outcome) !== undefined && (strategy.countsByReport || turn === undefined)) {
    return withCounts(outcome, requestBefore, requestAfter)
  }
  if (strategy.countsByReport) return outcome
  const { after, before } = tokensOf(outcome)
  return withCounts(outcome, before * scale, after * scaleAfter)
}

/**
 * The id of a compression in telemetry: Gemini CLI's `compress-<ms>` for a requested compression, else the session and the entry that the turn
 * continues with.
 */
export const promptIdOf = Effect.fnUntraced(function* (chat: ChatState, isAsked: boolean) {
  if (isAsked) return `compress-${yield* Clock.currentTimeMillis}`
  const { conversation, started } = yield* Ref.get(chat.session)
  return `${started?.session ?? "chat"}:${entryId(conversation.next)}`
})

/** Rebuilds the environment message, if the settings define how: requests begin anew anyway. */
const refreshEnvironment = Effect.fnUntraced(function* (chat: ChatState) {
  const settings = yield* Ref.get(chat.settings)
  const environment = yield* settings.refreshEnvironment ?? Effect.succeed(settings.environment)
  yield* Ref.update(chat.settings, (before) =>
    before.environment === environment ? before : { ...before, environment }
  )
  const session = yield* Ref.get(chat.session)
  if (environment === undefined || environment === session.environment?.opening) return
  const at = yield* Clock.currentTimeMillis
  yield* commit(chat, { _tag: "EnvironmentSent", at, text: environment, opens: true })
})

/** The largest share of the window that a message after a compression may take. */
const maxMessageShare = 0.05

/**
 * Appends the message that the settings define for after a compression, if there is room for it and no call waits for
 * its response.
 */
const appendAfterCompression = Effect.fnUntraced(function* (chat: ChatState) {
  const { afterCompression } = yield* Ref.get(chat.settings)
  const message = yield* afterCompression ?? Effect.undefined
  if (message === undefined) return
  const items = view((yield* Ref.get(chat.session)).conversation)
  const isThere = items.some(
    ({ entry }) => entry.author === "program" && entry.content.parts.some((part) => part.text === message)
  )
  const hasOpenCalls = items.at(-1)?.entry.content.parts.some(isCall) === true
  const { window } = yield* requestContext(chat)
  const { scale = 1 } = yield* requestSize(chat, false)
  if (isThere || hasOpenCalls || estimateText(message) * scale > maxMessageShare * window.maxRequestTokens) return
  const at = yield* Clock.currentTimeMillis
  yield* appendMessage(chat, { content: user(text(message)), at, author: "program" })
})
