import { Context, Duration, Effect, Schedule, Schema, Stream } from "effect"
import { Arriving, type CallAt, callId, faultMessage, isWorthRetrying, thoughtOf } from "../domain/Answer.ts"
import { AnswerFault, type ChatEvent, Stubborn } from "../domain/ChatEvent.ts"
import { type Outcome, type Policy, statusOf, thresholdOf, tokensOf } from "../domain/Compression.ts"
import { type Content, isText, isThought, type Part, plainText, text } from "../domain/Content.ts"
import {
  type Entry,
  type EntryId,
  entryId,
  environmentTokens,
  itemParts,
  itemTokens,
  sum,
  view,
  viewItem,
  viewTokens
} from "../domain/Conversation.ts"
import type { HookOutcome } from "../domain/Hook.ts"
import { Outgoing, type Request } from "../domain/Outgoing.ts"
import type { Session } from "../domain/Session.ts"
import { stubborn } from "../domain/strategies/Palimpsest.ts"
import { TokenCount, tokenLimit } from "../domain/Tokens.ts"
import * as Work from "../domain/Work.ts"
import { Calibrations, count as countRequest, partsBeside } from "./Calibrations.ts"
import { type ChatSettings, defaultPatience } from "./ChatSettings.ts"
import { compressionThreshold, Experiments } from "./Experiments.ts"
import { doubling, Model, type ModelChunk, type ModelError, type ModelRequest, retries } from "./Model.ts"
import * as Hooked from "./Hooked.ts"
import type { HookPlace, HookSystem } from "./HookSystem.ts"
import * as ModelHooks from "./ModelHooks.ts"
import type { SessionStoreError } from "./SessionStore.ts"
import { type TokenCountError, TokenCounter } from "./TokenCounter.ts"
import * as Window from "./Window.ts"

/** From a message to its answer: made to fit, asked, asked again. The conversation is left as it is, but for compressions. */

/** No attempt gave an answer that can be used (spec 1.5). The conversation is what it was. */
export class InvalidAnswer extends Schema.TaggedError<InvalidAnswer>()("InvalidAnswer", {
  fault: AnswerFault,
  /** What the provider's own words or the protocol say of it, where that is known. */
  detail: Schema.NullOr(Schema.String)
}) {
  override get message() {
    return this.detail === null ? faultMessage[this.fault] : `${faultMessage[this.fault]} (${this.detail})`
  }
}

/** A message that does not fit, however much is compressed (spec 4). Nothing was sent, the conversation is what it was. Tokens. */
export class ContextOverflow extends Schema.TaggedError<ContextOverflow>()("ContextOverflow", {
  /** The message's. */
  estimated: TokenCount,
  /** What was left for it. */
  remaining: TokenCount,
  limit: TokenCount,
  /** What takes the room and cannot be made smaller, largest first. */
  stubborn: Schema.Array(Stubborn),
  /** The message's plain text. */
  text: Schema.String
}) {
  override get message() {
    const whole = this.estimated > this.limit ? "this message alone does not fit" : "the message does not fit"
    return `${whole}: it has about ${this.estimated} tokens, and ${this.remaining} of the window of ${this.limit} are left; shorten it, or use a model with a larger window`
  }
}

/** A hook stopped the turn, or would not let its request or its answer pass (spec 8). The conversation is what it was. */
export class StoppedByHook extends Schema.TaggedError<StoppedByHook>()("StoppedByHook", { reason: Schema.String }) {
  override get message() {
    return this.reason.trim() === "" ? "a hook stopped this" : `a hook stopped this: ${this.reason}`
  }
}

/** Of all kinds of attempts together (spec 1.6). */
const mostAttempts = 10

/** Whoever is told what happens; it may make us wait. */
export type Emit = (event: ChatEvent) => Effect.Effect<unknown>

/** A message that is not part of the conversation yet. */
export interface Pending {
  readonly content: Content
  readonly author?: "program" | undefined
  readonly tokens: ReadonlyArray<number>
  /** What a program puts behind it. The ids stand for those they will have. */
  readonly attached: ReadonlyArray<Entry>
  /** Milliseconds since 1970. */
  readonly at: number
}

/** What is put behind a message, with the ids that follow the message's. */
export const attachedFrom = (attached: ReadonlyArray<Entry>, next: number): ReadonlyArray<Entry> =>
  attached.map((entry, index) => ({ ...entry, id: entryId(next + index) }))

/** Tokens of a message and of what goes with it, as they are shown. */
const pendingTokens = (pending: Pending | undefined): number =>
  pending === undefined ? 0 : sum(pending.tokens) + sum(pending.attached.map((entry) => itemTokens(viewItem(entry))))

const pendingParts = (pending: Pending | undefined): ReadonlyArray<Part> =>
  pending === undefined
    ? []
    : [...pending.content.parts, ...pending.attached.flatMap((entry) => itemParts(viewItem(entry)))]

/** The window of the model that is asked, and what goes with every request. */
export interface Beside {
  readonly of: ChatSettings
  readonly model: string
  readonly parts: ReadonlyArray<Part>
  readonly tokens: number
  /** The environment message, where there is one: it opens the request. */
  readonly opening: ReadonlyArray<Content>
  readonly window: Window.Window
  readonly threshold: number
}

/** The request as it would leave now. */
interface Ready extends Window.Weighed {
  readonly contents: Request["contents"]
  readonly environment: Request["environment"]
  /** The entry that the answer will be. */
  readonly answer: EntryId
}

/** The conversation that the turns are taken in. */
export interface Conversing {
  /** As it is now; what left the view may be missing. */
  readonly session: Effect.Effect<Session>
  /** How it is held from the next turn on. */
  readonly settings: Effect.Effect<ChatSettings>
  /** Who is told what happens, where this conversation is held. */
  readonly hooks: HookSystem["Service"]
  /** What hooks are told of where that is. */
  readonly place: Effect.Effect<HookPlace>
  /** Compresses it once; `committed` is told in the very step in which it changes. `advice`: what hooks said to that. */
  readonly compress: (
    policy: Policy,
    forced: boolean,
    committed: (outcome: Outcome) => void,
    advice: HookOutcome | undefined,
    emit: Emit
  ) => Effect.Effect<Outcome, SessionStoreError | TokenCountError>
}

/** How much more than estimated a request may cost, as a factor, where nothing is measured: what hooks may add stays below. */
const wary = 3

type ViewChain = Session["conversation"]["view"]

/** Whether a view is an earlier one with nothing but more at its end, first of all this message. */
const continues = (view: ViewChain, earlier: ViewChain, message: Content | undefined): boolean => {
  let node = view
  let next: ViewChain
  while (node !== undefined && node.length > (earlier?.length ?? 0)) {
    next = node
    node = node.before
  }
  return node === earlier && (message === undefined || next?.value.entry.content === message)
}

const isGoogles = (model: string): boolean => /^(?:models\/)?(?:gemini|gemma)-/.test(model)

/** The model that a session asks: its own, unless that came with another agent's file and is none that can be asked here. */
export const askedModel = ({ model, started }: Session, settings: ChatSettings): string => {
  if (settings.routed !== undefined) return settings.routed
  if (model === undefined) return settings.model
  const isForeign = started?.importedFrom !== undefined && model === started.model && !isGoogles(model)
  return isForeign ? settings.model : model
}

/** An answer, and whether the request it was given to is the one that was made: hooks may have changed it. */
interface Asked {
  readonly arriving: Arriving
  readonly isSame: boolean
  /** The model that was asked. */
  readonly model: string
}

/** What one attempt came to. */
interface Tried {
  readonly asked: Asked
  readonly fault: AnswerFault | undefined
  readonly detail: string | null
  /** Why a hook ended it. */
  readonly stopped: string | undefined
}

const ownOf = ({ models }: ChatSettings, name: string) =>
  models !== undefined && Object.hasOwn(models, name) ? models[name] : undefined

const windowOf = (of: ChatSettings, name: string): number => ownOf(of, name)?.window ?? of.window ?? tokenLimit(name)

/** What takes the turns of one conversation, one at a time. */
export const make = Effect.fnUntraced(function* (conversing: Conversing) {
  const counter = yield* TokenCounter
  const model = yield* Model
  const calibrations = yield* Calibrations
  const experiments = yield* Experiments
  const context = Context.make(Model, model).pipe(Context.add(Calibrations, calibrations))

  let known: Beside | undefined
  let measured: Window.Measured | undefined
  /** What the request that was made last held: the view, and the message behind it. */
  let latest: { readonly view: ViewChain; readonly message: Content | undefined } | undefined

  /** The window of the model that is asked, and what goes with every request. Made anew when either changes. */
  const besides = Effect.fnUntraced(function* (): Effect.fn.Return<Beside, TokenCountError> {
    const of = yield* conversing.settings
    const name = askedModel(yield* conversing.session, of)
    if (known?.of === of && known.model === name) return known
    const declared = partsBeside({ ...of, model: name, contents: [] })
    const opening: ReadonlyArray<Content> =
      of.environment === undefined ? [] : [{ role: "user", parts: [text(of.environment)] }]
    const parts = [...declared, ...opening.flatMap((content) => content.parts)]
    const share = ownOf(of, name)?.threshold ?? of.threshold
    const threshold = thresholdOf(share, yield* experiments.number(compressionThreshold))
    const window = yield* Window.make({
      model: name,
      window: windowOf(of, name),
      reserve: of.reserve ?? 0,
      threshold,
      policy: of.policy,
      recount: (all) =>
        Effect.map(
          countRequest({ ...of, model: name, contents: [{ role: "user", parts: all.slice(declared.length) }] }),
          ({ tokens }) => tokens
        ).pipe(Effect.provideContext(context))
    }).pipe(Effect.provideContext(context))
    const tokens = sum(yield* counter.count(parts))
    known = { of, model: name, parts, tokens, opening, window, threshold }
    measured = undefined
    return known
  })

  /** Failures of hooks that the person was told of. */
  const toldOf = new Set<string>()
  const hookedFor = (emit: Emit) =>
    Effect.map(conversing.place, (place) => Hooked.make(conversing.hooks, place, emit, toldOf))
  /** Whether hooks changed the request that was sent last. */
  let isChanged = false

  const outgoing = new Outgoing()
  /** A compression that happened and that nobody has been told of yet. */
  let untold: ChatEvent | undefined

  const readyWith = (pending: Pending | undefined, share: number) =>
    Effect.gen(function* (): Effect.fn.Return<Ready, TokenCountError> {
      const { conversation } = yield* conversing.session
      // A compression may have changed what goes with the request.
      const { opening, parts: around, tokens: aroundTokens } = yield* besides()
      yield* Work.run(outgoing.follow(conversation.view, opening.length > 0))
      const next =
        pending === undefined
          ? []
          : [
              viewItem({
                id: entryId(conversation.next),
                handles: [],
                content: pending.content,
                tokens: pending.tokens,
                ...(pending.author === undefined ? {} : { author: pending.author })
              }),
              ...attachedFrom(pending.attached, conversation.next + 1).map(viewItem)
            ]
      const { contents, environment, parts, tokens } = outgoing.request(next)
      return {
        contents: [...opening, ...contents],
        environment,
        answer: entryId(conversation.next + next.length),
        parts: () => [...around, ...parts()],
        tokens: aroundTokens + tokens,
        free: pendingTokens(pending) * (1 / share - 1)
      }
    })

  const overflow = Effect.fnUntraced(function* (
    beside: Beside,
    pending: Pending | undefined
  ): Effect.fn.Return<ContextOverflow> {
    const { conversation } = yield* conversing.session
    const estimated = pendingTokens(pending)
    const kept = new Set<string>(view(conversation).map(({ entry }) => entry.id))
    const others: ReadonlyArray<Stubborn> = [
      ...(estimated === 0 ? [] : [{ entry: null, what: "this message", tokens: TokenCount.make(estimated) }]),
      ...(beside.tokens === 0
        ? []
        : [{ entry: null, what: "system instruction and tools", tokens: TokenCount.make(beside.tokens) }]),
      ...stubborn(conversation, kept)
    ]
    return new ContextOverflow({
      estimated: TokenCount.make(estimated),
      remaining: TokenCount.make(
        Math.max(
          0,
          Math.floor(beside.window.room - beside.tokens - environmentTokens(conversation) - viewTokens(conversation))
        )
      ),
      limit: TokenCount.make(beside.window.room),
      stubborn: [...others].sort((one, other) => other.tokens - one.tokens).slice(0, 5),
      text: pending === undefined ? "" : plainText(pending.content)
    })
  })

  /** A request that surely fits, after the compressions that it takes (law 3). */
  const fitted = Effect.fnUntraced(function* (
    beside: Beside,
    pending: Pending | undefined,
    advice: HookOutcome | undefined,
    emit: Emit
  ): Effect.fn.Return<Ready, ContextOverflow | SessionStoreError | TokenCountError> {
    const { overflowFactor = 1 } = yield* conversing.settings
    // Nothing and less cannot be meant: they count as not set.
    const share = overflowFactor > 0 ? Math.min(1, overflowFactor) : 1
    const now = readyWith(pending, share)
    const first = yield* now
    const { conversation } = yield* conversing.session
    // What was measured says nothing of a request that does not hold all of it: after an undo, a turn that failed.
    if (latest === undefined || !continues(conversation.view, latest.view, latest.message)) measured = undefined
    latest = { view: conversation.view, message: pending?.content }
    if (beside.window.isSmall(first.tokens + (first.free ?? 0), measured)) return first
    const overhead = beside.tokens + first.environment + pendingTokens(pending)
    const { memory } = yield* conversing.session
    const fitting = yield* beside.window
      .fit(
        {
          request: now,
          compress: Effect.fnUntraced(function* (policy, forced) {
            const outcome = yield* conversing.compress(
              { ...policy, overhead: TokenCount.make(Math.ceil(overhead)) },
              forced,
              (made) => {
                untold = compressedEvent(made, beside.window.room)
              },
              advice,
              emit
            )
            if (outcome._tag !== "Noop") yield* emit(compressedEvent(outcome, beside.window.room))
            else if (outcome.reason === "vetoed by a hook") {
              const why = outcome.detail === undefined ? "" : `: ${outcome.detail}`
              yield* emit({ _tag: "Notice", source: "hook", message: `a hook put the compression off${why}` })
            }
            untold = undefined
            return outcome
          })
        },
        {
          parts: () => [...beside.parts, ...pendingParts(pending)],
          tokens: beside.tokens + pendingTokens(pending),
          free: first.free ?? 0,
          what: "what no compression can make smaller does not fit"
        },
        memory.waitUntil
      )
      .pipe(Effect.catchTag("WindowOverflow", () => Effect.flatMap(overflow(beside, pending), Effect.fail)))
    measured = fitting.measured
    latest = { view: (yield* conversing.session).conversation.view, message: pending?.content }
    return fitting.request
  })

  /** Asks until an answer can be used, as often as is sensible. */
  const ask = Effect.fnUntraced(function* (
    beside: Beside,
    ready: Ready,
    answersTools: boolean,
    emit: Emit
  ): Effect.fn.Return<Asked, ModelError | InvalidAnswer | StoppedByHook> {
    const of = yield* conversing.settings
    const { answer, call } = of.patience ?? defaultPatience
    let attempts = 1
    const again = (reason: string, message: string, delay: Duration.Duration) =>
      Effect.suspend(() => {
        attempts += 1
        return emit({ _tag: "Retry", attempt: attempts, delay: Duration.toMillis(delay), reason, message })
      })
    const more = () => attempts < mostAttempts
    const calls = retries(call).pipe(
      Schedule.while(more),
      Schedule.tap(({ duration, input }) => again(input.reason._tag, input.message, duration))
    )
    const answers = doubling(answer).pipe(
      Schedule.setInputType<ModelError | InvalidAnswer>(),
      Schedule.while(({ input }) => more() && input._tag === "InvalidAnswer" && isWorthRetrying(input.fault)),
      Schedule.tap(({ duration, input }) =>
        again(input._tag === "InvalidAnswer" ? input.fault : input.reason._tag, input.message, duration)
      )
    )
    const { asked, stopped } = yield* Effect.suspend(() => once(beside, of, ready, answersTools, emit)).pipe(
      Effect.retry(calls),
      Effect.tap(({ detail, fault, stopped: ended }) =>
        fault === undefined || ended !== undefined ? Effect.void : Effect.fail(new InvalidAnswer({ fault, detail }))
      ),
      Effect.retry(answers)
    )
    return stopped === undefined ? asked : yield* new StoppedByHook({ reason: stopped })
  })

  /** Whether another model's window surely holds a request (law 3). */
  const fits = (of: ChatSettings, name: string, parts: ReadonlyArray<Part>) =>
    Effect.map(calibrations.upperBound(name, parts), (most) => most <= windowOf(of, name) - (of.reserve ?? 0))

  const once = Effect.fnUntraced(function* (
    beside: Beside,
    { generation, systemInstruction, tools }: ChatSettings,
    { answer, contents, parts, tokens }: Ready,
    answersTools: boolean,
    emit: Emit
  ): Effect.fn.Return<Tried, ModelError> {
    const hooked = yield* hookedFor(emit)
    let arriving = new Arriving()
    const own: ModelRequest = { model: beside.model, contents, generation, systemInstruction, tools }
    const take = (chunk: ModelChunk) => {
      const calls = arriving.push(chunk)
      return Effect.forEach(eventsOf(chunk, calls, answer), emit, { discard: true })
    }
    const spare = Math.max(0, Math.floor(beside.window.room - tokens * wary))
    isChanged = false
    const passed = yield* ModelHooks.before(hooked, own, spare, (name) => fits(beside.of, name, parts()))
    if (passed._tag !== "Passed") {
      const asked = { arriving, isSame: false, model: beside.model }
      if (passed._tag === "Stopped" || passed.answer === undefined) {
        return { asked, fault: undefined, detail: null, stopped: passed.why }
      }
      yield* take({ parts: [text(passed.answer)], finishReason: "STOP" })
      return { asked, fault: arriving.fault(answersTools), detail: null, stopped: undefined }
    }
    const { isSame, request } = passed
    isChanged = !isSame
    const ending = yield* model.stream(request).pipe(
      Stream.mapEffect((chunk) => ModelHooks.after(hooked, request, chunk)),
      Stream.takeUntil(({ _tag }) => _tag !== "Passed"),
      Stream.runFoldEffect(
        (): string | undefined => undefined,
        (stopped, one) => {
          if (one._tag === "Passed") return Effect.as(take(one.chunk), stopped)
          if (one._tag === "Stopped" || one.answer === undefined) return Effect.succeed(one.why)
          // What a hook answers in the model's place is all of the answer: what came before it is void.
          arriving = new Arriving()
          const voided: ChatEvent = { _tag: "Retry", attempt: 2, delay: 0, reason: "hook", message: one.why }
          const whole = { parts: [text(one.answer)], finishReason: "STOP" }
          return Effect.as(Effect.andThen(emit(voided), take(whole)), stopped)
        }
      ),
      Effect.map((stopped) => ({ stopped, why: null })),
      // An answer that broke off is judged by what there is of it.
      Effect.catchReason("ModelError", "InvalidResponseError", ({ detail: why }) =>
        Effect.succeed({ stopped: undefined, why })
      )
    )
    const fault = arriving.fault(answersTools)
    const { finishReason = "STOP" } = arriving
    // A reason that no fault is named after would be known to nobody.
    const isTold = finishReason === "STOP" || fault?.startsWith(finishReason) === true
    return {
      asked: { arriving, isSame, model: request.model },
      fault,
      detail: ending.why ?? (isTold ? null : finishReason),
      stopped: ending.stopped
    }
  })

  /** The answer to a request that fits; one that the model finds too long all the same is shrunk once more (law 3). */
  const answered = Effect.fnUntraced(function* (
    beside: Beside,
    pending: Pending | undefined,
    answersTools: boolean,
    emit: Emit
  ) {
    // As in the seeds it is told before it is known whether it will come to one (spec 3.1 step 2).
    const { conversation } = yield* conversing.session
    const advice =
      conversing.hooks.has("PreCompress") && conversation.view !== undefined
        ? yield* (yield* hookedFor(emit)).fire({ _tag: "PreCompress", trigger: "auto" })
        : undefined
    const ready = yield* fitted(beside, pending, advice, emit)
    const tooLong = Effect.fnUntraced(function* (error: ModelError) {
      // What hooks made of the request is no request of ours: nothing is learned from it, and shrinking ours may not help.
      if (isChanged) return yield* error
      yield* beside.window.learnTooLong(ready)
      measured = undefined
      const again = yield* fitted(beside, pending, advice, emit)
      const isSame = again.tokens === ready.tokens && again.contents.length === ready.contents.length
      return isSame ? yield* error : { ready: again, ...(yield* ask(beside, again, answersTools, emit)) }
    })
    return yield* ask(beside, ready, answersTools, emit).pipe(
      Effect.map((asked) => ({ ready, ...asked })),
      Effect.catchIf(
        (error): error is ModelError => error._tag === "ModelError" && error.reason._tag === "ContextLengthError",
        tooLong
      )
    )
  })

  return {
    beside: besides(),
    answered,
    /** The compression that a cancelled turn could not tell of any more, once. */
    untold: () => {
      const event = untold
      untold = undefined
      return event
    },
    /** What would be sent now, before the next message. */
    contents: Effect.suspend(() => {
      const own = new Outgoing()
      return Effect.flatMap(conversing.session, ({ conversation }) =>
        Effect.map(Work.run(own.follow(conversation.view)), () => own.request().contents)
      )
    })
  }
})

/** What a piece of an answer tells, in the order of spec 1.7: thoughts, then text, then calls. */
const eventsOf = ({ parts }: ModelChunk, calls: ReadonlyArray<CallAt>, answer: EntryId): ReadonlyArray<ChatEvent> => [
  ...parts.filter(isThought).map((part): ChatEvent => ({ _tag: "Thought", ...thoughtOf(part.text ?? "") })),
  ...parts
    .filter(isText)
    .filter((part) => part.text !== "")
    .map((part): ChatEvent => ({ _tag: "Content", text: part.text })),
  ...calls.map(({ call, part }): ChatEvent => ({ _tag: "ToolCallRequest", id: callId(call, answer, part), call }))
]

const compressedEvent = (outcome: Outcome, limit: number): ChatEvent => {
  const { after, before } = tokensOf(outcome)
  return {
    _tag: "ChatCompressed",
    trigger: "auto",
    status: statusOf(outcome),
    before: TokenCount.make(before),
    after: TokenCount.make(after),
    limit: TokenCount.make(limit),
    message: "degraded" in outcome ? (outcome.degraded?.message ?? null) : "message" in outcome ? outcome.message : null
  }
}
