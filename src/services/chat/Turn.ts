/** Runs one turn, from a message to its answer: fits the request, asks the model, commits the answer. */

import { Cause, Clock, Effect, Exit, Ref, Schema } from "effect"
import { type AnswerBuilder, unspecifiedReason } from "../../domain/chat/Answer.ts"
import type { ChatEvent } from "../../domain/chat/ChatEvent.ts"
import { Cancelled, Noop } from "../../domain/compression/Compression.ts"
import { type Content, hasResponses, isResponse, isText, type Part, text } from "../../domain/content/Content.ts"
import type { Draft } from "../../domain/conversation/Conversation.ts"
import { emptyOutcome } from "../../domain/hooks/Hook.ts"
import { environmentChange } from "../../domain/prompt/EnvironmentChange.ts"
import type { Session } from "../../domain/session/Session.ts"
import { cutPromptText } from "../../domain/tokens/CutPrompts.ts"
import { TokenCount } from "../../domain/tokens/Tokens.ts"
import { postCompress } from "../compression/PreCompress.ts"
import type { ModelError, ModelErrorReason } from "../model/Model.ts"
import { annotateConversation } from "../model/ModelSpans.ts"
import type { SessionStoreError } from "../session/SessionStore.ts"
import { type TokenCountError, TokenCounter } from "../tokens/TokenCounter.ts"
import { appendAnswer, appendMessage, attachedEntries, type Attachment } from "./AppendMessages.ts"
import { type Answered, askModel, type InvalidAnswer, type StoppedByHook } from "./AskModel.ts"
import { afterTurn, assembleRequest, ingestMessage } from "./AssembleRequest.ts"
import { type ChatState, type Emit, hooksOf, type RequestContext } from "./ChatState.ts"
import { type ChatBusy, commit } from "./Commit.ts"
import { askHooks, promptIdOf } from "./Compress.ts"
import { compressedEvent, type ContextOverflow, fitRequest } from "./FitRequest.ts"
import { leaveOut } from "./LeaveOut.ts"
import { reportPreparation } from "./Preparation.ts"
import { prepareSnapshot } from "./PrepareSnapshot.ts"
import { requestContext } from "./RequestContext.ts"
import { learnCount, type PendingMessage, requestSize } from "./RequestSize.ts"

/** There is nothing to answer: no message was given, and the conversation is empty or ends with an answer. */
export class NothingToAsk extends Schema.TaggedError<NothingToAsk>()("NothingToAsk", {}) {
  override get message() {
    return "the message is empty"
  }
}

/** Why a turn failed. In each case the conversation did not change, except that tool results are kept. */
export type TurnError =
  | ChatBusy
  | ContextOverflow
  | InvalidAnswer
  | StoppedByHook
  | NothingToAsk
  | ModelError
  | SessionStoreError
  | TokenCountError

/** Options for sending one message. */
export interface SendOptions {
  /** Cancels the turn if it completes before the answer: the last event is `UserCancelled`, not a failure. */
  readonly cancel?: Effect.Effect<unknown> | undefined
  /** `program`: a program wrote the message, not the user. */
  readonly author?: "program" | undefined
  /** The id under which a client sent the message; the conversation keeps it with the message. */
  readonly messageId?: string | undefined
  /** Attachments of the message. They enter the conversation with it or not at all. */
  readonly attached?: ReadonlyArray<Attachment> | undefined
  /** Wraps how events are emitted. The turn waits for the emission of each event before it goes on. */
  readonly through?: ((emit: Emit) => Emit) | undefined
}

/** Runs one turn and reports it to `emit`. See `Chat.send`. */
export const runTurn = Effect.fn("Chat.turn")(function* (
  chat: ChatState,
  parts: ReadonlyArray<Part>,
  { attached = [], author, cancel, messageId }: SendOptions,
  emit: Emit
) {
  yield* annotateConversation
  const at = yield* Clock.currentTimeMillis
  const context = yield* requestContext(chat)
  const limit = TokenCount.make(context.window.requestLimit)
  yield* emit({ _tag: "ModelInfo", model: context.model, limit })
  yield* reportPreparation(chat, emit)
  // A cancellation does not undo what a tool did, so its result is kept whatever happens to the answer.
  const results = parts.filter(isResponse)
  if (results.length > 0) yield* appendMessage(chat, { content: { role: "user", parts: results }, at })
  const words = parts.filter((part) => !isResponse(part))
  const news = yield* environmentNews(chat)
  const isSilent = words.every((part) => isText(part) && part.text.trim() === "")
  // Without a message, attachments are messages of their own.
  if (isSilent) {
    for (const { parts: attachedParts, room } of attached) {
      yield* appendMessage(chat, { content: { role: "user", parts: attachedParts }, at, author: "program", room })
    }
  }
  const last = (yield* Ref.get(chat.session)).conversation.view?.value.entry.content
  if (isSilent && last?.role !== "user") return yield* new NothingToAsk({})
  // Results may be followed by media that belong to them.
  const answersTools = isSilent && last !== undefined && hasResponses(last)
  yield* assembleRequest(chat, context, emit)
  const work = Effect.gen(function* () {
    const options = { attached: [...news.attached, ...attached], author, messageId }
    const pending = isSilent ? undefined : yield* pendingMessage(chat, context, words, options, at)
    return { pending, ...(yield* answer(chat, context, pending, answersTools, emit)) }
  })
  const done = yield* cancel === undefined ? work : Effect.raceFirst(work, Effect.as(cancel, undefined))
  if (done === undefined) return yield* reportCancelled(chat, limit, emit)
  const { arriving, context: asked, isSame, pending, ready, selected } = done
  const entry = yield* commitAnswer(chat, news, pending, done)
  const { citations, finishReason = unspecifiedReason, usage } = arriving
  const isCounted = usage !== null && usage.prompt > 0 && isSame
  const cut = isCounted ? yield* learnCount(chat, asked, ready, usage.prompt) : undefined
  if (cut?.isNew === true) yield* emit({ _tag: "Notice", source: "model", message: cutPromptText(cut) })
  yield* afterTurn(chat, asked)
  if (citations.length > 0) yield* emit({ _tag: "Citation", text: citations.join("\n") })
  const { tokens } = yield* requestSize(chat, false)
  yield* prepareSnapshot(chat, asked, tokens)
  yield* reportPreparation(chat, emit)
  yield* emit({
    _tag: "Finished",
    reason: finishReason,
    usage,
    answer: entry.id,
    tokens,
    limit,
    ...(selected === undefined ? {} : { tools: selected })
  })
})

/** Reports a cancelled turn, and what was committed before. */
const reportCancelled = Effect.fnUntraced(function* (chat: ChatState, limit: TokenCount, emit: Emit) {
  const { unreported } = chat
  chat.unreported = undefined
  if (unreported !== undefined) yield* emit(compressedEvent(unreported, limit))
  yield* emit({ _tag: "UserCancelled" })
})

/** Commits an answer with its message, and what the model now knows of the environment. */
const commitAnswer = Effect.fnUntraced(function* (
  chat: ChatState,
  { changed, known, opening }: EnvironmentNews,
  pending: PendingMessage | undefined,
  { arriving, model }: Answered
) {
  if (opening !== undefined) yield* noteEnvironment(chat, known, opening, true)
  const entry = yield* appendAnswer(chat, pending, draftOf(arriving, model, yield* Clock.currentTimeMillis))
  if (changed !== undefined && pending !== undefined) yield* noteEnvironment(chat, known, changed, false)
  return entry
}, Effect.uninterruptible)

/** What the model does not know of the environment yet: the message that opens its first request, or what changed since. */
interface EnvironmentNews {
  readonly known: Session["environment"]
  readonly attached: ReadonlyArray<Attachment>
  readonly opening?: string
  readonly changed?: string
}

const environmentNews = Effect.fnUntraced(function* (chat: ChatState) {
  const { environment: now } = yield* Ref.get(chat.settings)
  const { environment: known } = yield* Ref.get(chat.session)
  if (now === undefined || now === known?.told) return { known, attached: [] }
  if (known === undefined) return { known, attached: [], opening: now }
  const change = environmentChange(known.told, now)
  return { known, attached: change === undefined ? [] : [{ parts: [text(change)] }], changed: now }
})

/** Records what the model knows of the environment, unless a compression has renewed it meanwhile. */
const noteEnvironment = Effect.fnUntraced(function* (
  chat: ChatState,
  known: Session["environment"],
  now: string,
  opens: boolean
) {
  if ((yield* Ref.get(chat.session)).environment !== known) return
  const at = yield* Clock.currentTimeMillis
  yield* commit(chat, { _tag: "EnvironmentSent", at, text: now, opens })
})

const pendingMessage = Effect.fnUntraced(function* (
  chat: ChatState,
  context: RequestContext,
  parts: ReadonlyArray<Part>,
  { attached = [], author, messageId }: SendOptions,
  at: number
) {
  const counter = yield* TokenCounter
  const tokens = yield* counter.count(parts)
  const entries = yield* attachedEntries(chat, attached, at)
  const content: Content = { role: "user", parts }
  const pending: PendingMessage = { content, at, author, messageId, tokens, attached: entries }
  return yield* ingestMessage(chat, context, pending)
})

const draftOf = (arriving: AnswerBuilder, model: string, at: number): Draft => ({
  content: arriving.content,
  at,
  model,
  ...(arriving.usage === null ? {} : { usage: arriving.usage })
})

/** Answers a request that fits. A request that the model still rejects as too long is shrunk and sent again. */
const answer = Effect.fnUntraced(function* (
  chat: ChatState,
  first: RequestContext,
  pending: PendingMessage | undefined,
  answersTools: boolean,
  emit: Emit
) {
  let context = first
  let hookDecision = emptyOutcome
  let ready = yield* askBeforeCompression(chat, emit).pipe(
    Effect.tap((decision) => Effect.sync(() => (hookDecision = decision))),
    Effect.flatMap((decision) => fitRequest(chat, context, pending, decision, emit)),
    Effect.onExit((exit) => closeCompression(chat, emit, Exit.isFailure(exit) && Cause.hasInterrupts(exit.cause)))
  )
  let attempts = context.strategy.overflowAttempts
  const refusals: Array<ModelErrorReason> = []
  for (;;) {
    const result = yield* Effect.result(askModel(chat, context, ready, answersTools, emit))
    if (result._tag === "Success") return { context, ready, ...result.success }
    const error = result.failure
    const canMend = error._tag === "ModelError" && !chat.requests.isChangedByHooks
    if (canMend && (yield* leaveOut(chat, error.reason, pending?.content.parts ?? [], refusals, emit))) {
      refusals.push(error.reason)
      context = yield* requestContext(chat)
      chat.requests.measured = undefined
      ready = yield* fitRequest(chat, context, pending, hookDecision, emit)
      continue
    }
    if (error._tag !== "ModelError" || error.reason._tag !== "ContextLengthError") return yield* error
    // A request that hooks changed says nothing about the original, and shrinking the original may not help.
    if (attempts <= 0 || chat.requests.isChangedByHooks) return yield* error
    attempts -= 1
    refusals.push(error.reason)
    yield* context.window.learnTooLong(ready, error.reason)
    chat.requests.measured = undefined
    const smaller = yield* fitRequest(chat, context, pending, hookDecision, emit)
    if (smaller.tokens === ready.tokens && smaller.contents.length === ready.contents.length) return yield* error
    ready = smaller
  }
})

/** Asks the PreCompress hooks, as Gemini CLI does before it knows whether a compression is due. */
const askBeforeCompression = Effect.fnUntraced(function* (chat: ChatState, emit: Emit) {
  const hooks = yield* hooksOf(chat, emit, chat.hookFailures)
  return yield* askHooks(chat, hooks, { forced: false })
})

/** Fires PostCompress for a PreCompress that no compression followed. */
const closeCompression = Effect.fnUntraced(function* (chat: ChatState, emit: Emit, isInterrupted: boolean) {
  if (!chat.awaitsPostCompress) return
  chat.awaitsPostCompress = false
  const hooks = yield* hooksOf(chat, emit, chat.hookFailures)
  if (!hooks.has("PostCompress")) return
  const { tokens: before } = yield* requestSize(chat, false)
  const outcome = isInterrupted ? Cancelled.make({ before }) : Noop.make({ reason: "below threshold", before })
  const event = postCompress("auto", outcome, yield* promptIdOf(chat, false))
  yield* isInterrupted ? hooks.fireAside(event) : hooks.fire(event)
})

/** The last event of a turn that failed. */
export const failureEvent = (error: TurnError): ChatEvent => {
  switch (error._tag) {
    case "InvalidAnswer":
      return { _tag: "InvalidStream", fault: error.fault, message: error.message }
    case "StoppedByHook":
      return { _tag: "HookStopped", message: error.message, refused: true }
    case "ContextOverflow": {
      const { estimated, limit, message, remaining, stubborn, text, what } = error
      return { _tag: "ContextWindowWillOverflow", what, estimated, remaining, limit, stubborn, text, message }
    }
    case "ModelError":
    case "SessionStoreError":
      return { _tag: "Error", reason: error.reason._tag, message: error.message }
    default:
      return { _tag: "Error", reason: error._tag, message: error.message }
  }
}
