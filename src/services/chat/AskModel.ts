/**
 * Asks the model for one answer: runs the hooks of the request, emits the answer's events, and retries until an
 * answer is usable.
 */

import { Context, Duration, Effect, Ref, Schedule, Schema, type Scope, Stream } from "effect"
import {
  AnswerBuilder,
  callId,
  faultMessage,
  isWorthRetrying,
  type PlacedCall,
  thoughtOf
} from "../../domain/chat/Answer.ts"
import { AnswerFault, type ChatEvent } from "../../domain/chat/ChatEvent.ts"
import { isCall, isText, isThought, type Part, text } from "../../domain/content/Content.ts"
import { type EntryId, sum } from "../../domain/conversation/Conversation.ts"
import type { Hooked } from "../hooks/Hooked.ts"
import * as ModelHooks from "../hooks/ModelHooks.ts"
import { AnswerTooLargeError, Model, type ModelChunk, ModelError, type ModelRequest } from "../model/Model.ts"
import { cleanError } from "../model/ModelSpans.ts"
import { backoff, retrySchedule } from "../model/Retry.ts"
import { Calibrations } from "../tokens/Calibrations.ts"
import { TokenCounter } from "../tokens/TokenCounter.ts"
import { type ChatSettings, defaultTurnRetries } from "./ChatSettings.ts"
import { type ChatState, type Emit, hooksOf, type RequestContext } from "./ChatState.ts"
import { windowLimits } from "./RequestContext.ts"
import type { ReadyRequest } from "./RequestSize.ts"

/** No attempt gave a usable answer. The conversation did not change. */
export class InvalidAnswer extends Schema.TaggedError<InvalidAnswer>()("InvalidAnswer", {
  fault: AnswerFault,
  /** The text of the provider or of the protocol error, if any. */
  detail: Schema.NullOr(Schema.String)
}) {
  override get message() {
    return this.detail === null ? faultMessage[this.fault] : `${faultMessage[this.fault]} (${this.detail})`
  }
}

/** A hook stopped the turn, or refused its request or its answer. The conversation did not change. */
export class StoppedByHook extends Schema.TaggedError<StoppedByHook>()("StoppedByHook", { reason: Schema.String }) {
  override get message() {
    return this.reason.trim() === "" ? "a hook stopped this" : `a hook stopped this: ${this.reason}`
  }
}

/** Maximum number of attempts, whatever the reason for each retry. */
const maxAttempts = 10

/** The share of the window that the calls of one answer may take, with the system instruction and the tools. */
const callsShare = 0.75

/** The multiple of its estimate that a request may cost before calibration. Additions by hooks stay below it. */
const hookSafetyFactor = 3

/** An answer, and the request that it answers. */
export interface Answered {
  readonly arriving: AnswerBuilder
  /** Whether the request was sent as built. Hooks may have changed it. */
  readonly isSame: boolean
  /** The model that answered. */
  readonly model: string
  /** The tools that a hook left to choose from. Absent: all. */
  readonly selected?: ReadonlyArray<string>
}

/** How one attempt ended. */
interface Attempt {
  readonly answered: Answered
  readonly fault: AnswerFault | undefined
  readonly detail: string | null
  /** Why a hook ended it. */
  readonly stopped: string | undefined
}

/**
 * Asks until an answer is usable, as often as the settings allow. `answersTools`: the message consists of tool
 * results only.
 */
export const askModel = Effect.fnUntraced(function* (
  chat: ChatState,
  context: RequestContext,
  ready: ReadyRequest,
  answersTools: boolean,
  emit: Emit
): Effect.fn.Return<Answered, ModelError | InvalidAnswer | StoppedByHook, AskServices> {
  const settings = yield* Ref.get(chat.settings)
  const { answer, call } = settings.retries ?? defaultTurnRetries
  let attempts = 1
  const hasMore = () => attempts < maxAttempts
  const again = (reason: string, message: string, delay: Duration.Duration) =>
    Effect.suspend(() => {
      attempts += 1
      return emit({ _tag: "Retry", attempt: attempts, delay: Duration.toMillis(delay), reason, message })
    })
  const calls = retrySchedule(call).pipe(
    Schedule.while(hasMore),
    Schedule.tap(({ duration, input }) => again(input.reason._tag, input.message, duration))
  )
  const answers = backoff(answer).pipe(
    Schedule.setInputType<ModelError | InvalidAnswer>(),
    Schedule.while(({ input }) => hasMore() && input._tag === "InvalidAnswer" && isWorthRetrying(input.fault)),
    Schedule.tap(({ duration, input }) =>
      again(input._tag === "InvalidAnswer" ? input.fault : input.reason._tag, input.message, duration)
    )
  )
  const { answered, stopped } = yield* Effect.suspend(() =>
    attempt(chat, context, settings, ready, answersTools, emit)
  ).pipe(
    Effect.retry(calls),
    Effect.tap(({ detail, fault, stopped: reason }) =>
      fault === undefined || reason !== undefined ? Effect.void : Effect.fail(new InvalidAnswer({ fault, detail }))
    ),
    Effect.retry(answers)
  )
  return stopped === undefined ? answered : yield* new StoppedByHook({ reason: stopped })
})

type AskServices = Calibrations | Effect.Services<ReturnType<typeof hooksOf>> | Model | TokenCounter

/** Takes an answer piece by piece, and emits its events. */
class ReceivedAnswer {
  arriving = new AnswerBuilder()
  /** Whether anything answered, a hook too. */
  isAnswered = false
  private readonly id: EntryId
  private readonly emit: Emit

  constructor(id: EntryId, emit: Emit) {
    this.id = id
    this.emit = emit
  }

  take(chunk: ModelChunk): Effect.Effect<void, ModelError> {
    const calls = this.arriving.push(chunk)
    const { excess } = this.arriving
    // Not retried: each retry could cost as much again.
    if (excess !== undefined) return Effect.fail(new ModelError({ reason: new AnswerTooLargeError(excess) }))
    return Effect.forEach(eventsOf(chunk, calls, this.id), this.emit, { discard: true })
  }

  /** Takes the whole answer of a hook. The pieces received before are void. */
  takeWhole(words: string): Effect.Effect<void, ModelError> {
    this.arriving = new AnswerBuilder()
    return this.take({ parts: [text(words)], finishReason: "STOP" })
  }
}

const attempt = Effect.fnUntraced(function* (
  chat: ChatState,
  context: RequestContext,
  { generation, systemInstruction }: ChatSettings,
  ready: ReadyRequest,
  answersTools: boolean,
  emit: Emit
): Effect.fn.Return<Attempt, ModelError, AskServices | Scope.Scope> {
  const { answer, contents, parts, tokens } = ready
  const services = Context.pick(Calibrations, Model)(yield* Effect.context<Calibrations | Model>())
  const hooks = yield* hooksOf(chat, emit, chat.hookFailures)
  const received = new ReceivedAnswer(answer, emit)
  const { tools } = context
  const own: ModelRequest = { model: context.model, contents, generation, systemInstruction, tools }
  const spare = Math.max(0, Math.floor(context.window.maxRequestTokens - tokens * hookSafetyFactor))
  yield* Effect.addFinalizer(() => (received.isAnswered ? Effect.void : ModelHooks.unanswered(hooks, own)))
  const passed = yield* ModelHooks.before(hooks, own, spare, (name) =>
    Effect.provideContext(fitsWindowOf(context.settings, name, parts()), services)
  )
  if (passed._tag !== "Passed") {
    received.isAnswered = true
    const words = passed._tag === "Blocked" ? passed.answer : undefined
    if (words !== undefined) yield* received.takeWhole(words)
    const { arriving } = received
    const answered = { arriving, isSame: false, model: context.model }
    return words === undefined
      ? { answered, fault: undefined, detail: null, stopped: passed.why }
      : { answered, fault: arriving.fault(answersTools), detail: null, stopped: undefined }
  }
  const { isSame, request } = passed
  chat.requests.isChangedByHooks = !isSame
  const { stopped, why } = yield* receive(hooks, request, received, emit)
  const { arriving } = received
  yield* refuseHugeCalls(context, ready, arriving)
  const fault = arriving.fault(answersTools)
  const { finishReason = "STOP" } = arriving
  // Reports a finish reason that has no fault of its own.
  const isReported = finishReason === "STOP" || fault?.startsWith(finishReason) === true
  const selected = request.tools === tools ? {} : { selected: ModelHooks.declaredNames(request) }
  return {
    answered: { arriving, isSame, model: request.model, ...selected },
    fault,
    detail: why ?? (isReported ? null : finishReason),
    stopped
  }
}, Effect.scoped)

/** Receives the model's answer. Returns why a hook ended it, and why it is truncated. */
const receive = Effect.fnUntraced(function* (
  hooks: Hooked,
  request: ModelRequest,
  received: ReceivedAnswer,
  emit: Emit
): Effect.fn.Return<{ readonly stopped: string | undefined; readonly why: string | null }, ModelError, Model> {
  const model = yield* Model
  return yield* model.stream(request).pipe(
    Stream.mapError(cleanError(request)),
    Stream.mapEffect((chunk) => {
      received.isAnswered = true
      return ModelHooks.after(hooks, request, chunk)
    }),
    Stream.takeUntil(({ _tag }) => _tag !== "Passed"),
    Stream.runFoldEffect(
      (): string | undefined => undefined,
      (stopped, verdict) => {
        if (verdict._tag === "Passed") return Effect.as(received.take(verdict.chunk), stopped)
        if (verdict._tag === "Stopped" || verdict.answer === undefined) return Effect.succeed(verdict.why)
        const voided: ChatEvent = { _tag: "Retry", attempt: 2, delay: 0, reason: "hook", message: verdict.why }
        return Effect.as(Effect.andThen(emit(voided), received.takeWhole(verdict.answer)), stopped)
      }
    ),
    Effect.map((stopped) => ({ stopped, why: null })),
    // A truncated answer is judged by the part that arrived.
    Effect.catchReason("ModelError", "InvalidResponseError", ({ detail: why }) =>
      Effect.succeed({ stopped: undefined, why })
    )
  )
})

/** Whether the window of another model certainly holds a request. */
const fitsWindowOf = Effect.fnUntraced(function* (settings: ChatSettings, name: string, parts: ReadonlyArray<Part>) {
  const calibrations = yield* Calibrations
  const tokens = yield* calibrations.upperBound(name, parts)
  const { reserve, window } = yield* windowLimits(settings, name)
  return tokens <= window - reserve
})

/** Rejects calls that no later request could hold: a compression shortens texts and results but never calls. */
const refuseHugeCalls = Effect.fnUntraced(function* (
  { overheadTokens, window }: RequestContext,
  ready: ReadyRequest,
  arriving: AnswerBuilder
): Effect.fn.Return<void, ModelError, TokenCounter> {
  const counter = yield* TokenCounter
  const calls = arriving.content.parts.filter(isCall)
  if (calls.length === 0) return
  const limit = Math.floor(window.maxRequestTokens * callsShare)
  // A token has four characters on average, where nobody can count them.
  const counts = yield* Effect.orElseSucceed(counter.count(calls), () => [Math.ceil(JSON.stringify(calls).length / 4)])
  const scale = (yield* window.scaleOf(ready, false, false)) ?? 1
  if ((sum(counts) + overheadTokens) * scale <= limit) return
  return yield* new ModelError({ reason: new AnswerTooLargeError({ unit: "tokens", limit }) })
})

/** The events of a piece of an answer: thoughts, then text, then calls. */
const eventsOf = (
  { parts }: ModelChunk,
  calls: ReadonlyArray<PlacedCall>,
  answer: EntryId
): ReadonlyArray<ChatEvent> => [
  ...parts.filter(isThought).map((part): ChatEvent => ({ _tag: "Thought", ...thoughtOf(part.text ?? "") })),
  ...parts
    .filter(isText)
    .filter((part) => part.text !== "")
    .map((part): ChatEvent => ({ _tag: "Content", text: part.text })),
  ...calls.map(({ call, part }): ChatEvent => ({ _tag: "ToolCallRequest", id: callId(call, answer, part), call }))
]
