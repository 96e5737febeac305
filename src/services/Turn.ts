import { Context, Duration, Effect, Schedule, Schema, Semaphore, Stream } from "effect"
import { Arriving, type CallAt, callId, faultMessage, isWorthRetrying, thoughtOf } from "../domain/Answer.ts"
import { isBelievable } from "../domain/Calibration.ts"
import { AnswerFault, type ChatEvent, Overflowing, Stubborn } from "../domain/ChatEvent.ts"
import {
  defaultPolicy,
  goesByReport,
  type Outcome,
  patchOf,
  type Policy,
  statusOf,
  thresholdOf,
  tokensOf
} from "../domain/Compression.ts"
import { type Content, hasResponses, isCall, isText, isThought, type Part, plainText, text } from "../domain/Content.ts"
import {
  type Entry,
  type EntryId,
  entryId,
  itemParts,
  itemTokens,
  sum,
  view,
  viewItem,
  type ViewItem,
  viewTokens
} from "../domain/Conversation.ts"
import type { HookOutcome } from "../domain/Hook.ts"
import { isGoogles, reserveFor } from "../domain/Models.ts"
import { Outgoing, type Request } from "../domain/Outgoing.ts"
import type { Session } from "../domain/Session.ts"
import { stubborn } from "../domain/strategies/Palimpsest.ts"
import { TokenCount } from "../domain/Tokens.ts"
import * as Work from "../domain/Work.ts"
import { Calibrations, count as countRequest, partsBeside } from "./Calibrations.ts"
import { type ChatSettings, defaultPatience } from "./ChatSettings.ts"
import { compressionThreshold, Experiments } from "./Experiments.ts"
import {
  AnswerTooLargeError,
  doubling,
  Model,
  type ModelChunk,
  ModelError,
  type ModelRequest,
  retries
} from "./Model.ts"
import * as Hooked from "./Hooked.ts"
import type { HookPlace, HookSystem } from "./HookSystem.ts"
import * as ModelHooks from "./ModelHooks.ts"
import * as ModelWindows from "./ModelWindows.ts"
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

/**
 * A message, or the results of tools, that do not fit however much is compressed. Nothing was sent; the conversation is what it was.
 * All counts are the model's tokens, as its own count or what is known of its counting says.
 */
export class ContextOverflow extends Schema.TaggedError<ContextOverflow>()("ContextOverflow", {
  what: Overflowing,
  /** Tokens of what was about to be sent: the message, or without one the results of tools that were to be answered. */
  estimated: TokenCount,
  /** Tokens that were left for it; always fewer. */
  remaining: TokenCount,
  limit: TokenCount,
  /** What takes the room and cannot be made smaller, largest first. */
  stubborn: Schema.Array(Stubborn),
  /** The message's plain text. */
  text: Schema.String
}) {
  override get message() {
    const what =
      this.what === "tool results"
        ? "the tools' results do not fit: they have"
        : `${this.estimated > this.limit ? "this message alone" : "the message"} does not fit: it has`
    const mend = this.what === "tool results" ? "ask for less at once" : "shorten it"
    return `${what} about ${this.estimated} tokens, and ${this.remaining} of the window of ${this.limit} are left; ${mend}, or use a model with a larger window`
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

/** Of the window, what the calls of one answer may take, with the system instruction and the tools. */
const callsShare = 0.75

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
  /** Compresses it once; `mustFit`: nothing can be sent without it; `committed` is told in the very step in which it changes. `advice`: what hooks said to that. */
  readonly compress: (
    policy: Policy,
    forced: boolean,
    mustFit: boolean,
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

/** The share of what is left that a message may take. Nothing and less cannot be meant: they count as not set. */
const shareOf = ({ overflowFactor = 1 }: ChatSettings): number => (overflowFactor > 0 ? Math.min(1, overflowFactor) : 1)

const hasResults = (items: ReadonlyArray<ViewItem>): boolean => items.some(({ entry }) => hasResponses(entry.content))

/** A model's window, and how much of it is kept for the answer. What the settings leave open is asked for. */
const windowOf = (of: ChatSettings, name: string) =>
  Effect.map(
    of.window === undefined || ownOf(of, name)?.window !== undefined
      ? ModelWindows.of(name, of.models)
      : Effect.succeed({ ...ModelWindows.offline(name), window: of.window }),
    ({ sharesWindow, window }) => ({
      window,
      reserve: of.reserve ?? reserveFor({ sharesWindow }, window, of.generation?.maxOutputTokens)
    })
  )

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
  /** What the provider counted for the last request, and the view with its answer. */
  let reported: { readonly view: ViewChain; readonly prompt: number } | undefined
  /** The view that the window's scale was looked up or reported for; undefined: it is another request's. */
  let scaled: { readonly view: ViewChain } | undefined
  /** What the scale was in views that a report came for: an undo brings them back. */
  const scales = new WeakMap<NonNullable<ViewChain>, { readonly model: string; readonly scale: number }>()
  const scaleAt = (view: ViewChain, name: string): number | undefined => {
    for (let node = view; node !== undefined; node = node.before) {
      const known = scales.get(node)
      if (known?.model === name) return known.scale
    }
    return undefined
  }

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
      ...(yield* Effect.provideContext(windowOf(of, name), context)),
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
  const following = yield* Semaphore.make(1)
  /** A compression that happened and that nobody has been told of yet. */
  let untold: ChatEvent | undefined

  const readyWith = (pending: Pending | undefined, share: number) =>
    Effect.gen(function* (): Effect.fn.Return<Ready, TokenCountError> {
      const { conversation } = yield* conversing.session
      // A compression may have changed what goes with the request.
      const { opening, parts: around, tokens: aroundTokens } = yield* besides()
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
      // Who reads while a turn is taken follows another view: one at a time.
      const { contents, environment, parts, tokens } = yield* following.withPermit(
        Effect.map(Work.run(outgoing.follow(conversation.view, opening.length > 0)), () => outgoing.request(next))
      )
      return {
        contents: [...opening, ...contents],
        environment,
        answer: entryId(conversation.next + next.length),
        parts: () => [...around, ...parts()],
        tokens: aroundTokens + tokens,
        free: pendingTokens(pending) * (1 / share - 1)
      }
    })

  /**
   * What would leave now, without a message: the estimator's tokens, and the model's for one of these. Undefined: nothing is
   * known of the model. `ask`: see `Window.scaleOf`.
   */
  const sized = Effect.fnUntraced(function* (
    ask: boolean
  ): Effect.fn.Return<{ readonly tokens: number; readonly scale: number | undefined }, TokenCountError> {
    const { model: name, window } = yield* besides()
    const { conversation } = yield* conversing.session
    const before = scaled
    const isNew = before === undefined || !continues(conversation.view, before.view, undefined)
    const request = yield* readyWith(undefined, 1)
    const known = isNew ? scaleAt(conversation.view, name) : undefined
    const scale = yield* window.scaleOf(request, isNew, ask && conversation.view !== undefined, known)
    // What was reported meanwhile is newer.
    if (scaled === before) scaled = { view: conversation.view }
    return { tokens: request.tokens, scale }
  })

  /** The model's tokens of a request that could leave now. `isNew`: another one than was looked at last. */
  const likelyOf = ({ window }: Beside, request: Ready, isNew: boolean) =>
    Effect.map(window.scaleOf(request, isNew, false), (scale) =>
      TokenCount.make(Math.round(request.tokens * (scale ?? 1)))
    )

  /** The refusal in the numbers that it was made by, so that what did not fit is always more than what was left for it. */
  const overflow = Effect.fnUntraced(function* (
    beside: Beside,
    pending: Pending | undefined,
    { estimated, tokens }: Window.WindowOverflow
  ): Effect.fn.Return<ContextOverflow> {
    const { conversation } = yield* conversing.session
    const items = view(conversation)
    const by = tokens / Math.max(1, estimated)
    const counted = (size: number) => TokenCount.make(Math.max(0, Math.round(size * by)))
    const answers = items.slice(items.findLastIndex(({ entry }) => entry.content.role === "model") + 1)
    const own = pending === undefined ? sum(answers.map(itemTokens)) : pendingTokens(pending)
    const what = pending === undefined && hasResults(answers) ? "tool results" : "message"
    const kept = new Set<string>(items.map(({ entry }) => entry.id))
    const others: ReadonlyArray<Stubborn> = [
      ...(pending === undefined ? [] : [{ entry: null, what: "this message", tokens: counted(own) }]),
      ...(beside.tokens === 0
        ? []
        : [{ entry: null, what: "system instruction and tools", tokens: counted(beside.tokens) }]),
      ...stubborn(conversation, kept).map((one) => ({ ...one, tokens: counted(one.tokens) }))
    ]
    const limit = beside.window.room
    const size = Math.min(tokens, counted(own))
    const share = shareOf(yield* conversing.settings)
    return new ContextOverflow({
      what,
      estimated: TokenCount.make(size),
      remaining: TokenCount.make(Math.max(0, Math.min(Math.floor((limit - (tokens - size)) * share), size - 1))),
      limit: TokenCount.make(limit),
      stubborn: [...others].sort((one, other) => other.tokens - one.tokens).slice(0, 5),
      text: pending === undefined ? "" : plainText(pending.content)
    })
  })

  /** What the provider counted for the last request, as long as the view is that request's with more at its end. */
  const promptOf = ({ conversation }: Session): number | undefined =>
    reported !== undefined && continues(conversation.view, reported.view, undefined) ? reported.prompt : undefined

  /**
   * Whether a strategy that goes by the last report is due: by that, or where there is none (resumed, compressed just now) by
   * its own estimate, which it makes itself. Undefined: the strategy does not go by it.
   */
  const dueByReport = Effect.fnUntraced(function* ({ of, threshold, window }: Beside) {
    if (!goesByReport(of.policy?.strategy ?? defaultPolicy.strategy)) return undefined
    const session = yield* conversing.session
    if (viewTokens(session.conversation) < session.memory.waitUntil) return false
    const prompt = promptOf(session)
    return prompt === undefined || prompt >= threshold * window.window
  })

  /** The policy in the terms of such a strategy: the window itself, and what was counted. */
  const byReport = Effect.fnUntraced(function* ({ of, threshold, window }: Beside, policy: Policy) {
    if (!goesByReport(policy.strategy)) return policy
    const prompt = promptOf(yield* conversing.session)
    return {
      ...policy,
      toolBudget: of.policy?.toolBudget ?? defaultPolicy.toolBudget,
      ...(of.policy?.snapshotBudget === undefined ? {} : { snapshotBudget: of.policy.snapshotBudget }),
      limit: TokenCount.make(window.window),
      threshold: Math.min(1, threshold),
      ...(prompt === undefined ? {} : { promptTokens: TokenCount.make(prompt) })
    }
  })

  /** A request that surely fits, after the compressions that it takes (law 3). */
  const fitted = Effect.fnUntraced(function* (
    beside: Beside,
    pending: Pending | undefined,
    advice: HookOutcome | undefined,
    emit: Emit
  ): Effect.fn.Return<Ready, ContextOverflow | SessionStoreError | TokenCountError> {
    const share = shareOf(yield* conversing.settings)
    const now = readyWith(pending, share)
    const first = yield* now
    const { conversation } = yield* conversing.session
    // What was measured says nothing of a request that does not hold all of it: after an undo, a turn that failed.
    if (latest === undefined || !continues(conversation.view, latest.view, latest.message)) measured = undefined
    latest = { view: conversation.view, message: pending?.content }
    yield* sized(false)
    const isDue = yield* dueByReport(beside)
    if (isDue !== true && beside.window.isSmall(first.tokens + (first.free ?? 0), measured)) return first
    const overhead = beside.tokens + first.environment + pendingTokens(pending)
    const { memory } = yield* conversing.session
    let sent = first
    // What is looked at now holds the message too.
    scaled = undefined
    const fitting = yield* beside.window
      .fit(
        {
          request: now,
          isDue,
          compress: Effect.fnUntraced(function* (policy, forced) {
            const had = yield* likelyOf(beside, sent, false)
            const outcome = yield* conversing.compress(
              { ...(yield* byReport(beside, policy)), overhead: TokenCount.make(Math.ceil(overhead)) },
              forced && !goesByReport(policy.strategy),
              forced,
              (made) => {
                untold = compressedEvent(made, beside.window.room)
              },
              advice,
              emit
            )
            if (patchOf(outcome) !== undefined) sent = yield* now
            const has = patchOf(outcome) === undefined ? had : yield* likelyOf(beside, sent, true)
            if (outcome._tag !== "Noop") {
              yield* emit({ ...compressedEvent(outcome, beside.window.room), before: had, after: has })
            } else if (outcome.reason === "vetoed by a hook") {
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
        // The mark is the view's: what else the request holds is added to it.
        memory.waitUntil === 0 ? 0 : memory.waitUntil + first.tokens - viewTokens(conversation)
      )
      .pipe(Effect.catchTag("WindowOverflow", (over) => Effect.flatMap(overflow(beside, pending, over), Effect.fail)))
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
    Effect.zipWith(
      calibrations.upperBound(name, parts),
      Effect.provideContext(windowOf(of, name), context),
      (most, { reserve, window }) => most <= window - reserve
    )

  /** Refuses calls that no request could hold any more: a compression makes texts and results smaller, never calls. */
  const bearable = Effect.fnUntraced(function* (
    { tokens: around, window }: Beside,
    ready: Ready,
    arriving: Arriving
  ): Effect.fn.Return<void, ModelError> {
    const calls = arriving.content.parts.filter(isCall)
    const most = Math.floor(window.room * callsShare)
    // No token is shorter than a byte: what is small is not counted.
    if (calls.reduce((size, { functionCall: { args } }) => size + (JSON.stringify(args) ?? "").length, 0) < most / 4)
      return
    const counts = yield* Effect.orElseSucceed(counter.count(calls), () => [])
    const scale = (yield* window.scaleOf(ready, false, false)) ?? 1
    if ((sum(counts) + around) * scale <= most) return
    return yield* new ModelError({ reason: new AnswerTooLargeError({ unit: "tokens", limit: most }) })
  })

  const once = Effect.fnUntraced(function* (
    beside: Beside,
    { generation, systemInstruction, tools }: ChatSettings,
    ready: Ready,
    answersTools: boolean,
    emit: Emit
  ): Effect.fn.Return<Tried, ModelError> {
    const { answer, contents, parts, tokens } = ready
    const hooked = yield* hookedFor(emit)
    let arriving = new Arriving()
    const own: ModelRequest = { model: beside.model, contents, generation, systemInstruction, tools }
    const take = (chunk: ModelChunk) => {
      const calls = arriving.push(chunk)
      const { excess } = arriving
      // Not asked for again: a model that does this once costs as much each time.
      if (excess !== undefined) return Effect.fail(new ModelError({ reason: new AnswerTooLargeError(excess) }))
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
    yield* bearable(beside, ready, arriving)
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
    /** The next request, without its message: see above. With `ask` a model is asked of which nothing is known. */
    sized,
    /** How is compressed by hand: to the room, in the estimator's tokens, or as a strategy wants that goes by reports. */
    policy: Effect.fnUntraced(function* (overhead: number) {
      const beside = yield* besides()
      const { scale: by = 1 } = yield* sized(false)
      const policy = yield* byReport(beside, beside.window.policy(Math.max(1, Math.floor(beside.window.room / by)), by))
      return { ...policy, overhead: TokenCount.make(Math.ceil(overhead)) }
    }),
    /** Learns from what the provider counted for a request, now that its answer is in the conversation. */
    learn: Effect.fnUntraced(function* ({ window }: Beside, request: Window.Weighed, prompt: number) {
      yield* window.learn(request, prompt)
      const { conversation } = yield* conversing.session
      scaled = { view: conversation.view }
      // A gateway may report a part of it only: then the strategy's own estimate decides.
      reported = isBelievable(prompt, request.tokens) ? { view: conversation.view, prompt } : undefined
      const scale = yield* window.scaleOf(request, false, false)
      if (scale !== undefined && conversation.view !== undefined)
        scales.set(conversation.view, { model: window.model, scale })
    }),
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

const compressedEvent = (outcome: Outcome, limit: number): Extract<ChatEvent, { _tag: "ChatCompressed" }> => {
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
