import { Clock, Context, Effect, Layer, Option, Queue, Ref, Schema, Semaphore, Stream } from "effect"
import { type Arriving, unspecified } from "../domain/Answer.ts"
import type { ChatEvent } from "../domain/ChatEvent.ts"
import {
  callsOf,
  Cancelled,
  type Decision,
  FailedInflatedTokenCount,
  type Outcome,
  goesByReport,
  patchOf,
  type Plan,
  type Policy,
  recounted,
  statusOf,
  tokensOf,
  triedBy
} from "../domain/Compression.ts"
import { defaultBound, resultText } from "../domain/Bounded.ts"
import * as Chain from "../domain/Chain.ts"
import { alwaysKept, defaultMasking, maskable, ResultTokens } from "../domain/Masking.ts"
import { mask } from "../domain/ToolOutput.ts"
import * as Work from "../domain/Work.ts"
import {
  type Content,
  hasResponses,
  isMedia,
  isResponse,
  isText,
  type Part,
  text,
  user,
  withOutput
} from "../domain/Content.ts"
import {
  canRedo,
  canUndo,
  compressed,
  type Conversation,
  type Draft,
  entries,
  entryId,
  type Entry,
  environmentTokens,
  type Patch,
  view,
  viewTokens
} from "../domain/Conversation.ts"
import type { Excerpt, Selection } from "../domain/Excerpt.ts"
import type { Handle } from "../domain/Handle.ts"
import { type HookOutcome, type Trigger, unsaid } from "../domain/Hook.ts"
import { projecting, requestTokens } from "../domain/Projection.ts"
import { recall } from "../domain/Recall.ts"
import { type Pin, recallableOf, type Session, type SessionEvent, step } from "../domain/Session.ts"
import { TokenCount } from "../domain/Tokens.ts"
import { Calibrations, empty as noCalibrations, make as makeCalibrations } from "./Calibrations.ts"
import { ChatDefaults, type ChatSettings } from "./ChatSettings.ts"
import { Compression, type PlanRefused } from "./Compression.ts"
import type { Ended } from "./CompressRequest.ts"
import * as Hooked from "./Hooked.ts"
import { type HookPlace, HookSystem } from "./HookSystem.ts"
import { HandleIndex, type Incoming, makeEntry, withBounds } from "./Intake.ts"
import * as ModelWindows from "./ModelWindows.ts"
import { Model, type ModelError, unavailable } from "./Model.ts"
import type { OpenSession, SessionLog, SessionStoreError } from "./SessionStore.ts"
import { type BadPattern, HandleNotHeld, select, TempStore, TempStoreError } from "./TempStore.ts"
import { type TokenCountError, TokenCounter } from "./TokenCounter.ts"
import * as Turn from "./Turn.ts"

/** The conversation is being changed by something else: a turn, a compression. Wait for it, or cancel it. */
export class ChatBusy extends Schema.TaggedError<ChatBusy>()("ChatBusy", { doing: Schema.String }) {
  override get message() {
    return `the conversation is busy with ${this.doing}; wait for it to end, or cancel it`
  }
}

/** There is nothing that an answer could be given to: no message, and the conversation is empty or ends with an answer. */
export class NothingToAsk extends Schema.TaggedError<NothingToAsk>()("NothingToAsk", {}) {
  override get message() {
    return "there is nothing to ask: give a message"
  }
}

/** Why a turn failed. In each case the conversation is what it was, but for the results of tools, which are kept. */
export type TurnError =
  | ChatBusy
  | Turn.ContextOverflow
  | Turn.InvalidAnswer
  | Turn.StoppedByHook
  | NothingToAsk
  | ModelError
  | SessionStoreError
  | TokenCountError

/** What is wanted of one compression. */
export interface CompressOptions {
  /** How; absent: as the chat's settings say. */
  readonly policy?: Policy | undefined
  /** What the person wants kept. */
  readonly focus?: string | undefined
  /** No threshold, no failure memory: what a person asks for, and the default. */
  readonly forced?: boolean | undefined
  /** When this completes first, the compression is given up and ends as `Cancelled`. */
  readonly cancel?: Effect.Effect<unknown> | undefined
  /** Carry out this plan in place of making one. */
  readonly plan?: Plan | undefined
  /** Is told what hooks have to say to it, one line each. */
  readonly tell?: ((line: string) => Effect.Effect<void>) | undefined
}

/** A compression that comes before a request. */
interface Compressing extends CompressOptions {
  /** What hooks said to it; absent: they are told now. */
  readonly advice?: HookOutcome | undefined
  /** Without it nothing can be sent (law 3): no hook may refuse it. */
  readonly mustFit?: boolean | undefined
  /** Whether an outcome that makes the request larger is refused, whatever its strategy says (law 4). */
  readonly guarded?: boolean | undefined
}

/** What a program puts behind a message: files that it names, words of a hook. Not the user's words (law 6). */
export interface Attachment {
  readonly parts: ReadonlyArray<Part>
  /** The most tokens that its texts and media may be shown with; the whole stays behind their handles. Absent: all of it. */
  readonly room?: number | undefined
}

/** How one message is sent. */
export interface SendOptions {
  /** When this completes before the answer does, the turn is given up: the last event is `UserCancelled`, no failure. */
  readonly cancel?: Effect.Effect<unknown> | undefined
  /** `program`: the words are not the user's (law 6). */
  readonly author?: "program" | undefined
  /** What goes with the message, and into the conversation with it or not at all. */
  readonly attached?: ReadonlyArray<Attachment> | undefined
}

/**
 * One conversation. The only place where history changes: everything that can wait or fail is prepared first and changes
 * nothing; then one event is appended to the log and the state is swapped, uninterruptibly. Reading never waits; a second
 * change at the same time fails with `ChatBusy`.
 */
export class Chat extends Context.Service<
  Chat,
  {
    /**
     * What the log says at this moment. Of a session that was opened again it may lack what left the window (`whole` has
     * it); what the model sees is complete.
     */
    readonly session: Effect.Effect<Session>
    /** Everything the log says at this moment; what was not read yet is read now. */
    readonly whole: Effect.Effect<Session, SessionStoreError>
    /** The conversation at this moment, as `session` has it. It is a value: what happens later does not change it. */
    readonly conversation: Effect.Effect<Conversation>
    /** What would be sent now, before the next message. */
    readonly contents: Effect.Effect<ReadonlyArray<Content>>
    /** How the conversation is held; `model` is the one that is asked. */
    readonly settings: Effect.Effect<ChatSettings>
    /**
     * The tokens of the next request without its message, as the model is known to count, and the share of the window that a
     * compression waits for. `scale`: the model's tokens for one of the estimator's; undefined where no count of this model is
     * known yet, so that `tokens` is an estimate.
     */
    readonly usage: Effect.Effect<
      {
        readonly tokens: number
        readonly limit: number
        readonly threshold: number
        readonly scale: number | undefined
      },
      TokenCountError
    >
    /** Changes how the conversation is held from the next turn on; another model is noted in the log. */
    readonly configure: (change: Partial<ChatSettings>) => Effect.Effect<void, ChatBusy | SessionStoreError>
    /**
     * Sends a message and reports what happens; see `ChatEvent` for what comes. Before it leaves, the conversation is
     * compressed where that is due, and nothing leaves that would not fit (law 3). The message and its answer enter the
     * conversation together; results of tools at once, each bounded (`ChatSettings.toolOutput`) and kept whole. Without a message (empty, blank) what the conversation ends with is
     * asked again; `NothingToAsk` where that is an answer. However else a turn ends, also when the stream is closed early, the
     * conversation is what it was. The turn runs in a fiber of its own; it waits when 256 events are not taken.
     */
    readonly send: (message: string | ReadonlyArray<Part>, options?: SendOptions) => Stream.Stream<ChatEvent, TurnError>
    /** Adds messages at the end, each one event. Results of tools are bounded as those that are sent. */
    readonly append: (
      drafts: ReadonlyArray<Incoming>
    ) => Effect.Effect<ReadonlyArray<Entry>, ChatBusy | TokenCountError | SessionStoreError>
    /** What a compression would do. */
    readonly plan: (options?: CompressOptions) => Effect.Effect<Decision, SessionStoreError | TokenCountError>
    /**
     * Compresses once and says how it ended; only an outcome with a patch changes the conversation. Failures of the model or of
     * counting are outcomes. Interrupted, it has happened or not.
     */
    readonly compress: (
      options?: CompressOptions
    ) => Effect.Effect<Outcome, ChatBusy | PlanRefused | SessionStoreError | TokenCountError>
    /** Takes the last compression away. False: there is none. */
    readonly undo: Effect.Effect<boolean, ChatBusy | SessionStoreError>
    /** Lays the compression that was undone last again. False: there is none. */
    readonly redo: Effect.Effect<boolean, ChatBusy | SessionStoreError>
    /**
     * Shows these words of the user exactly in every snapshot from now on: the latest message that holds them, or without
     * words the latest message whole. Words that no message holds are added as a message of the user's own first, so
     * give only what the user typed. Undefined when the words are blank, or without words when there is no message.
     */
    readonly pin: (words?: string) => Effect.Effect<Pin | undefined, ChatBusy | TokenCountError | SessionStoreError>
    /** What a handle stands for: exactly, or the wanted part of it. */
    readonly recall: (
      handle: Handle,
      selection?: Selection
    ) => Effect.Effect<Excerpt, TempStoreError | BadPattern | SessionStoreError>
  }
>()("palimpsest/services/Chat") {
  /** A conversation as `options.session` says it is, continued in `options.log`. */
  static readonly make = Effect.fnUntraced(function* (
    options: ChatOptions
  ): Effect.fn.Return<
    Chat["Service"],
    never,
    Calibrations | Compression | HookSystem | Model | TokenCounter | TempStore
  > {
    const compression = yield* Compression
    const hooks = yield* HookSystem
    const counter = yield* TokenCounter
    const model = yield* Model
    const calibrations = yield* Calibrations
    const { log } = options
    const store = log.blobs ?? (yield* TempStore)
    const context = Context.make(TokenCounter, counter).pipe(
      Context.add(TempStore, store),
      Context.add(Model, model),
      Context.add(Calibrations, calibrations)
    )
    const state = yield* Ref.make(options.session)
    const settings = yield* Ref.make(options.settings ?? (yield* ChatDefaults))
    const held = new HandleIndex()
    held.restore(recallableOf(options.session).entries)
    let rest = options.complete === false ? log.whole : undefined
    const turn = yield* Semaphore.make(1)
    const gate = yield* Semaphore.make(1)
    const doing = yield* Ref.make("another change")

    const alone = <A, E, R>(what: string, work: Effect.Effect<A, E, R>): Effect.Effect<A, E | ChatBusy, R> =>
      turn
        .withPermitsIfAvailable(1)(Effect.andThen(Ref.set(doing, what), work))
        .pipe(
          Effect.flatMap(
            Option.match({
              onNone: () => Effect.flatMap(Ref.get(doing), (busy) => Effect.fail(new ChatBusy({ doing: busy }))),
              onSome: Effect.succeed
            })
          )
        )

    /** The one commit point: a line in the log, then the state. A cancel that comes now counts as after it. */
    const commit = (event: SessionEvent) =>
      log
        .append(event)
        .pipe(
          Effect.andThen(Ref.update(state, (session) => step(session, event))),
          gate.withPermit,
          Effect.uninterruptible
        )

    /** Reads what the store left out when it opened the session; never between a line and the state that goes with it. */
    const whole = Effect.suspend(() =>
      rest === undefined
        ? Ref.get(state)
        : gate.withPermit(
            Effect.flatMap(rest, (session) =>
              Effect.uninterruptible(
                Effect.andThen(
                  Ref.set(state, session),
                  Effect.sync(() => {
                    held.restore(recallableOf(session).entries)
                    rest = undefined
                    return session
                  })
                )
              )
            )
          )
    )

    /** How a compression is done that nobody said more about: as the settings have it, in the window as it is. */
    const policyOf = Effect.fnUntraced(function* ({ focus, policy }: CompressOptions) {
      if (policy !== undefined) return policy
      const { tokens } = yield* turns.beside
      const { conversation } = yield* Ref.get(state)
      const made = yield* turns.policy(tokens + environmentTokens(conversation))
      return focus === undefined ? made : { ...made, focus }
    })

    // --- compression -------------------------------------------------------------------------------------------------

    const requestOf = (session: Session, policy: Policy, forced: boolean) => ({
      conversation: session.conversation,
      memory: session.memory,
      policy,
      forced,
      held,
      pins: Chain.toArray(session.pins),
      cwd: session.started?.cwd,
      family: session.model ?? session.started?.model
    })

    const cancelled: Ended = { outcome: Cancelled.make({}), dropped: undefined }

    const place: Effect.Effect<HookPlace> = Effect.map(
      Effect.all([Ref.get(state), Ref.get(settings)]),
      ([{ started }, { cwd }]) => ({ session: started?.session, cwd: cwd ?? started?.cwd })
    )

    /**
     * What telemetry knows a compression by: Gemini CLI's `compress-<ms>` where a person asked for it, else the turn it comes
     * before, which is the session's and the entry that the turn goes on with.
     */
    const promptIdOf = Effect.fnUntraced(function* (isAsked: boolean): Effect.fn.Return<string> {
      if (isAsked) return `compress-${yield* Clock.currentTimeMillis}`
      const { conversation, started } = yield* Ref.get(state)
      return `${started?.session ?? "chat"}:${entryId(conversation.next)}`
    })

    /** What goes with each request is told as things are now, where something left the window. */
    const renewed = Effect.gen(function* () {
      const { renew } = yield* Ref.get(settings)
      if (renew === undefined) return
      const environment = yield* renew
      yield* Ref.update(settings, (held) => (held.environment === environment ? held : { ...held, environment }))
    })

    /** `committed` is told in the very step in which the conversation changes, whatever comes after it. */
    const compressing = Effect.fnUntraced(function* (
      policy: Policy,
      given: Compressing,
      committed: (outcome: Outcome) => void = () => {}
    ): Effect.fn.Return<Outcome, PlanRefused | SessionStoreError | TokenCountError> {
      const { cancel, forced = true, mustFit = false, plan, tell } = given
      const { scale = 1, tokens: before } = yield* turns.sized(false)
      const promptId = yield* promptIdOf(forced && !mustFit)
      // What has to fit nobody asked for.
      const trigger: Trigger = forced && !mustFit ? "manual" : "auto"
      const hooked = Hooked.make(hooks, yield* place, (event) =>
        event._tag === "Notice" && tell !== undefined ? tell(event.message) : Effect.void
      )
      const work = Effect.gen(function* (): Effect.fn.Return<Ended, PlanRefused | SessionStoreError | TokenCountError> {
        const session = yield* whole
        const isEmpty = session.conversation.view === undefined
        // Of an empty conversation nobody is told (spec 3.1 step 1).
        const advice = given.advice ?? (isEmpty ? unsaid : yield* hooked.fire({ _tag: "PreCompress", trigger }))
        const request = { ...requestOf(session, policy, forced), advice, mustFit, promptId }
        const { models } = yield* Ref.get(settings)
        const carriedOut = plan === undefined ? compression.compress(request) : compression.apply(request, plan)
        // Windows that a person set hold for the model that summarises, too.
        const ended = yield* models === undefined
          ? carriedOut
          : Effect.provideService(carriedOut, ModelWindows.Own, models)
        return given.guarded === true ? yield* guarded(session.conversation, ended) : ended
      })
      const { dropped, outcome: made } = yield* cancel === undefined
        ? work
        : Effect.raceFirst(work, Effect.as(cancel, cancelled))
      const at = yield* Clock.currentTimeMillis
      const patch = patchOf(made)
      const status = statusOf(made)
      const own = tokensOf(made)
      const counts = { before: TokenCount.make(own.before), after: TokenCount.make(own.after) }
      /**
       * The outcome in the model's tokens. What a strategy counted that goes by reports holds no instruction and no tools on one
       * side: where something changed, what would be sent is told in its place.
       */
      const shown = (tokens: number, by: number): Outcome => {
        // Who gave the policy wants what came of it, as its strategy counts.
        if (given.policy !== undefined) return made
        if (goesByReport(policy.strategy)) {
          return patch === undefined ? made : recounted(made, before * scale, tokens * by)
        }
        const after = made._tag === "FailedInflatedTokenCount" ? made.after : own.after
        return recounted(made, own.before * scale, after * by)
      }
      const paid = callsOf(made).map(({ model, usage }) => ({ model, usage }))
      const calls = paid.length === 0 ? {} : { calls: paid }
      if (patch !== undefined) {
        const event: SessionEvent = {
          _tag: "Compressed",
          at,
          status,
          strategy: policy.strategy,
          // In the log it says whether it was forced: by a person, or because nothing else would fit.
          trigger: forced ? "manual" : "auto",
          ...counts,
          patch,
          ...(dropped === undefined ? {} : { dropped }),
          ...calls
        }
        yield* Effect.uninterruptible(
          Effect.andThen(
            commit(event),
            Effect.map(Ref.get(state), ({ conversation }) =>
              committed(shown(policy.overhead + viewTokens(conversation), scale))
            )
          )
        )
      } else if (status.startsWith("COMPRESSION_FAILED") || status === "FAILED_SUMMARIZER") {
        const tried = triedBy(made)
        yield* commit({
          _tag: "CompressionFailed",
          at,
          status,
          forced,
          tokens: counts.before,
          strategy: policy.strategy,
          ...(tried === undefined ? {} : { tried }),
          ...calls
        })
      }
      const ended = (work: Effect.Effect<void>) => (cancel === undefined ? work : Effect.raceFirst(work, cancel))
      if (patch !== undefined) yield* ended(renewed)
      const { scale: by = 1, tokens } = yield* turns.sized(false)
      const outcome = shown(tokens, patch === undefined ? scale : by)
      const { after, before: held } = tokensOf(outcome)
      const told = hooked.fire({
        _tag: "PostCompress",
        trigger,
        status,
        before: TokenCount.make(held),
        after: TokenCount.make(after),
        promptId,
        calls: callsOf(outcome).map(({ model, promptId: id = promptId, purpose, usage }) => ({
          promptId: id,
          purpose,
          model,
          usage
        }))
      })
      yield* ended(Effect.asVoid(told))
      return outcome
    })

    const compress = Effect.fn("Chat.compress")(function* (given: CompressOptions) {
      const { cancel, forced = true, plan, policy } = given
      if (policy !== undefined || plan !== undefined) return yield* compressing(yield* policyOf(given), given)
      // What is sent to be summarised may be sent to be counted, where nothing is known of the model.
      const counted = forced && (yield* policyOf(given)).summarizer === "model" ? turns.sized(true) : Effect.void
      yield* cancel === undefined ? counted : Effect.raceFirst(Effect.asVoid(counted), Effect.asVoid(cancel))
      return yield* compressing(yield* policyOf(given), given)
    })

    // --- turns -------------------------------------------------------------------------------------------------------

    const turns = yield* Turn.make({
      session: Ref.get(state),
      settings: Ref.get(settings),
      hooks,
      place,
      compress: (policy, forced, mustFit, committed, advice, emit) =>
        Effect.catchTag(
          compressing(
            policy,
            {
              forced,
              mustFit,
              guarded: true,
              advice,
              tell: (message) => Effect.asVoid(emit({ _tag: "Notice", source: "hook", message }))
            },
            committed
          ),
          "PlanRefused",
          Effect.die
        )
    }).pipe(Effect.provideContext(context))

    const results = new ResultTokens()
    /** Tokens of results when masking them gained too little, and from which on it is worth another look. */
    let unmasked = nothingTried

    /** Shows old results by their ends, where enough is gained: decided before anything is written, one event for all of them. */
    const masking = Effect.fnUntraced(function* (emit: Turn.Emit) {
      const { keeps = [], masking: limits = {} } = yield* Ref.get(settings)
      if (limits === false) return
      const { least, protect } = { ...defaultMasking, ...limits }
      const { conversation } = yield* Ref.get(state)
      const total = yield* Work.run(results.follow(conversation.view))
      // What was too little then is enough at the earliest when as much has come as was missing.
      if (total < unmasked.total) unmasked = nothingTried
      if (total < protect + least || total < unmasked.next) return
      const kept = new Set([...alwaysKept, ...keeps])
      const shorten: Array<Patch["shorten"][number]> = []
      const old = yield* Work.run(maskable(conversation.view, protect, kept))
      if (old.gain < least) {
        unmasked = { total, next: total + least - old.gain }
        return
      }
      let gain = 0
      for (const { entry, handle, index, part, tokens } of old.found) {
        const name = part.functionResponse?.name
        const output = resultText(part) ?? ""
        const replacement = withOutput(part, mask(output, handle, name === shellTool))
        const [now = tokens] = yield* counter.count([replacement])
        if (now >= tokens) continue
        shorten.push({ entry, part: index, replacement, tokens: TokenCount.make(now) })
        gain += tokens - now
      }
      if (gain < least) {
        unmasked = { total, next: total + least - gain }
        return
      }
      const { scale = 1 } = yield* turns.sized(false)
      yield* commit({ _tag: "Masked", at: yield* Clock.currentTimeMillis, shorten })
      yield* emit({
        _tag: "ToolOutputMasked",
        parts: shorten.length,
        before: TokenCount.make(Math.round(viewTokens(conversation) * scale)),
        after: TokenCount.make(Math.round(viewTokens((yield* Ref.get(state)).conversation) * scale))
      })
    })

    const draftOf = (arriving: Arriving, model: string, at: number): Draft => ({
      content: arriving.content,
      at,
      model,
      ...(arriving.usage === null ? {} : { usage: arriving.usage })
    })

    /** Puts the answer, and its message where that is not there yet, into the conversation. */
    const record = Effect.fnUntraced(function* (pending: Turn.Pending | undefined, answer: Draft) {
      const { conversation } = yield* Ref.get(state)
      const { next } = conversation
      if (pending === undefined) {
        const entry = yield* makeEntry(answer, entryId(next), held)
        yield* commit({ _tag: "Appended", entry })
        return entry
      }
      const { at, author, content, tokens } = pending
      const said = { content, at, ...(author === undefined ? {} : { author }) }
      const message = yield* makeEntry(said, entryId(next), held, tokens)
      const attached = Turn.attachedFrom(pending.attached, next + 1)
      const entry = yield* makeEntry(answer, entryId(next + 1 + attached.length), held)
      yield* commit({ _tag: "Answered", message, ...(attached.length === 0 ? {} : { attached }), answer: entry })
      return entry
    }, Effect.provideContext(context))

    /** What goes with a message, as it will be shown. It has no place in the conversation yet. */
    const attachedOf = Effect.fnUntraced(function* (attachments: ReadonlyArray<Attachment>, at: number) {
      const { next } = (yield* Ref.get(state)).conversation
      const entries: Array<Entry> = []
      for (const { parts, room } of attachments) {
        const draft: Draft = { content: { role: "user", parts }, at, author: "program" }
        const whole = yield* makeEntry(draft, entryId(next + 1), held)
        entries.push(room === undefined ? whole : yield* withBounds(whole, {}, unbounded, room, isShortened))
      }
      return entries
    }, Effect.provideContext(context))

    const turnOf = Effect.fn("Chat.turn")(function* (
      parts: ReadonlyArray<Part>,
      { attached = [], author, cancel }: SendOptions,
      emit: Turn.Emit
    ): Effect.fn.Return<void, TurnError> {
      const at = yield* Clock.currentTimeMillis
      const beside = yield* turns.beside
      const limit = TokenCount.make(beside.window.room)
      yield* emit({ _tag: "ModelInfo", model: beside.model, limit })
      // What a tool did is not undone by a cancel, so its result is kept whatever becomes of the answer.
      const results = parts.filter(isResponse)
      if (results.length > 0) yield* appendOne({ content: { role: "user", parts: results }, at })
      const said = parts.filter((part) => !isResponse(part))
      const isSilent = said.every((part) => isText(part) && part.text.trim() === "")
      // Without a message they are messages of their own: what is asked then has them in it.
      if (isSilent) {
        for (const { parts: words, room } of attached) {
          yield* appendOne({ content: { role: "user", parts: words }, at, author: "program", room })
        }
      }
      const asked = (yield* Ref.get(state)).conversation.view?.value.entry.content
      if (isSilent && asked?.role !== "user") return yield* new NothingToAsk({})
      // Beside results there may be media that belong to them.
      const answersTools = isSilent && asked !== undefined && hasResponses(asked)
      yield* masking(emit)
      const work = Effect.gen(function* () {
        const content: Content = { role: "user", parts: said }
        const pending = isSilent
          ? undefined
          : { content, at, author, tokens: yield* counter.count(said), attached: yield* attachedOf(attached, at) }
        return { pending, ...(yield* turns.answered(beside, pending, answersTools, emit)) }
      })
      const done = yield* cancel === undefined
        ? work
        : Effect.raceFirst(
            work,
            Effect.map(cancel, () => undefined)
          )
      if (done === undefined) {
        // What was committed before the cancel came has happened.
        const late = turns.untold()
        if (late !== undefined) yield* emit(late)
        yield* emit({ _tag: "UserCancelled" })
        return
      }
      const { arriving, isSame, model: answeredBy, pending, ready } = done
      const entry = yield* Effect.uninterruptible(
        record(pending, draftOf(arriving, answeredBy, yield* Clock.currentTimeMillis))
      )
      const { usage } = arriving
      if (usage !== null && usage.prompt > 0 && isSame) yield* turns.learn(beside, ready, usage.prompt)
      const { citations, finishReason = unspecified } = arriving
      if (citations.length > 0) yield* emit({ _tag: "Citation", text: citations.join("\n") })
      const now = yield* turns.sized(false)
      yield* emit({
        _tag: "Finished",
        reason: finishReason,
        usage,
        answer: entry.id,
        tokens: TokenCount.make(Math.round(now.tokens * (now.scale ?? 1))),
        limit
      })
    })

    const send = (message: string | ReadonlyArray<Part>, given: SendOptions = {}) =>
      Stream.callback<ChatEvent, TurnError>(
        (queue) => {
          const emit: Turn.Emit = (event) => Queue.offer(queue, event)
          const parts = typeof message === "string" ? [text(message)] : message
          return alone("a turn", turnOf(parts, given, emit)).pipe(
            Effect.tapError((error) => emit(failureEvent(error))),
            Effect.andThen(Queue.end(queue))
          )
        },
        { bufferSize: 256, strategy: "suspend" }
      )

    // --- the rest --------------------------------------------------------------------------------------------------------

    const appendOne = Effect.fnUntraced(function* ({ instead = {}, room, ...draft }: Incoming) {
      const { conversation } = yield* Ref.get(state)
      const whole = yield* makeEntry(draft, entryId(conversation.next), held)
      const { toolOutput } = yield* Ref.get(settings)
      const entry = hasResponses(draft.content)
        ? yield* withBounds(
            whole,
            instead,
            { ...defaultBound, ...toolOutput },
            ((yield* turns.beside).window.room * resultShare) / ((yield* turns.sized(false)).scale ?? 1)
          )
        : room === undefined
          ? whole
          : yield* withBounds(whole, {}, unbounded, room, isShortened)
      yield* commit({ _tag: "Appended", entry })
      return entry
    }, Effect.provideContext(context))

    const change = Effect.fnUntraced(function* (
      tag: "Undone" | "Redone",
      possible: (conversation: Conversation) => boolean
    ) {
      const { conversation } = yield* whole
      if (!possible(conversation)) return false
      yield* commit({ _tag: tag, at: yield* Clock.currentTimeMillis })
      return true
    })

    const pin = Effect.fnUntraced(function* (words: string | undefined) {
      const at = yield* Clock.currentTimeMillis
      const said = spanOf(entries((yield* whole).conversation), words)
      if (said === undefined && (words === undefined || words.trim() === "")) return undefined
      const found = said ?? spanOf([yield* appendOne({ content: user(text(words ?? "")), at })], words)
      if (found !== undefined) yield* commit({ _tag: "Pinned", at, pin: found })
      return found
      // The words and their pin go into the log together.
    }, Effect.uninterruptible)

    const configure = Effect.fnUntraced(function* (changes: Partial<ChatSettings>) {
      const session = yield* Ref.get(state)
      const before = yield* Ref.get(settings)
      const { model: name } = changes
      if (name !== undefined && name !== Turn.askedModel(session, { ...before, routed: undefined })) {
        yield* commit({ _tag: "ModelSwitched", at: yield* Clock.currentTimeMillis, model: name })
      }
      yield* Ref.set(settings, { ...before, ...changes })
    }, Effect.uninterruptible)

    const found = Effect.fnUntraced(function* (handle: Handle) {
      const inView = held.text(handle) ?? ranged(yield* Ref.get(state), handle)
      if (inView !== undefined || rest === undefined) return inView
      const session = yield* whole
      return held.text(handle) ?? ranged(session, handle)
    })

    return {
      session: Ref.get(state),
      whole,
      conversation: Effect.map(Ref.get(state), (session) => session.conversation),
      contents: turns.contents,
      settings: Effect.map(Effect.all([Ref.get(state), Ref.get(settings)]), ([session, of]) => ({
        ...of,
        model: Turn.askedModel(session, of)
      })),
      usage: Effect.gen(function* () {
        const { threshold, window } = yield* turns.beside
        const { scale, tokens } = yield* turns.sized(false)
        const limit = window.room
        return { tokens: Math.round(tokens * (scale ?? 1)), limit, threshold, scale }
      }),
      configure: (changes) => alone("a change of its settings", configure(changes)),
      send,
      append: (drafts) => alone("adding a message", Effect.forEach(drafts, appendOne)),
      plan: Effect.fn("Chat.plan")(function* (given = {}) {
        const policy = yield* policyOf(given)
        return yield* compression.plan(requestOf(yield* whole, policy, given.forced ?? true))
      }),
      compress: (given = {}) => alone("a compression", compress(given)),
      undo: alone("an undo", change("Undone", canUndo)),
      redo: alone("a redo", change("Redone", canRedo)),
      pin: (words) => alone("a pin", pin(words)),
      recall: Effect.fn("Chat.recall")(function* (handle, selection = {}) {
        // What else the store has may be another conversation's.
        const whatItHolds = yield* found(handle)
        return whatItHolds === undefined ? yield* notHeld(handle) : yield* select(whatItHolds, selection)
      })
    }
  })

  /** A conversation that another part of the program asks a model about: `send` says that there is none. */
  static readonly keep = (options: ChatOptions) =>
    Effect.flatMap(
      makeCalibrations(noCalibrations, () => Effect.void),
      (calibrations) =>
        Chat.make(options).pipe(
          Effect.provideService(Model, unavailable),
          Effect.provideService(Calibrations, calibrations)
        )
    )

  /** The one conversation of a program. Programs with many take `Chats`. */
  static readonly layer = (options: ChatOptions) => Layer.effect(Chat, Chat.make(options))
}

/** A session as the store opened it: its log, which only this chat may write from now on, and what the log says. */
export interface ChatOptions extends Partial<Pick<OpenSession, "complete">> {
  /** Without `blobs`, those of the context are taken. */
  readonly log: Pick<SessionLog, "append"> & Partial<SessionLog>
  readonly session: Session
  /** How the conversation is held; absent: as `ChatDefaults` say. */
  readonly settings?: ChatSettings | undefined
}

/** No part is too large by itself: all together have a room. */
const unbounded = { ...defaultBound, most: Infinity }
const isShortened = (part: Part): boolean => isText(part) || isMedia(part)

/** The most of the window that the results of one answer's calls may take together. */
const resultShare = 0.4
const nothingTried = { total: 0, next: 0 }
/** Of a command the last lines say how it ended. */
const shellTool = "run_shell_command"

/**
 * A compression that makes the request larger is none (law 4). A strategy that goes by reports holds the API's count of one side
 * against its own estimate of the other, so it may think otherwise.
 */
const guarded = Effect.fnUntraced(function* (conversation: Conversation, ended: Ended) {
  const { outcome } = ended
  if (outcome._tag !== "Compressed") return ended
  const before = requestTokens(yield* Work.run(projecting(view(conversation))))
  const after = requestTokens(yield* Work.run(projecting(view(compressed(conversation, outcome.patch)))))
  if (after <= before) return ended
  const { calls, plan } = outcome
  const counts = { before: TokenCount.make(Math.round(before)), after: TokenCount.make(Math.round(after)) }
  const failed = FailedInflatedTokenCount.make({ ...counts, reason: "inflated", plan, stubborn: [], calls })
  return { outcome: failed, dropped: undefined }
})

const notHeld = (name: Handle) =>
  new TempStoreError({
    reason: new HandleNotHeld({
      name,
      advice:
        "copy it exactly as it is shown; what a conversation in memory held ends with its process, so run again what gave it"
    })
  })

const ranged = (session: Session, handle: Handle): string | undefined =>
  recall({ entries: [], ranges: Chain.toArray(session.ranges) }, handle)?.text

/** Where the user's own words stand last. */
const spanOf = (log: ReadonlyArray<Entry>, words: string | undefined): Pin | undefined => {
  if (words?.trim() === "") return undefined
  for (const entry of [...log].reverse()) {
    if (entry.content.role !== "user" || entry.author !== undefined) continue
    for (const [part, each] of entry.content.parts.entries()) {
      if (!isText(each) || each.text.trim() === "") continue
      const start = words === undefined ? 0 : each.text.indexOf(words)
      if (start >= 0) return { entry: entry.id, part, start, end: start + (words ?? each.text).length }
    }
  }
  return undefined
}

/** The last event of a turn that failed. */
export const failureEvent = (error: TurnError): ChatEvent => {
  switch (error._tag) {
    case "InvalidAnswer":
      return { _tag: "InvalidStream", fault: error.fault, message: error.message }
    case "StoppedByHook":
      return { _tag: "HookStopped", message: error.message, refused: true }
    case "ContextOverflow": {
      const { estimated, limit, message, remaining, stubborn: parts, text: words, what } = error
      return {
        _tag: "ContextWindowWillOverflow",
        what,
        estimated,
        remaining,
        limit,
        stubborn: parts,
        text: words,
        message
      }
    }
    case "ModelError":
    case "SessionStoreError":
      return { _tag: "Error", reason: error.reason._tag, message: error.message }
    default:
      return { _tag: "Error", reason: error._tag, message: error.message }
  }
}
