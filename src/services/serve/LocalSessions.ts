import { Cause, Deferred, Effect, Exit, Fiber, FiberSet, Layer, Metric, Option, RcMap, Schedule, Stream } from "effect"
import { type Outcome, statusOf, tokensOf } from "../../domain/compression/Compression.ts"
import { type EntryId, viewTokens } from "../../domain/conversation/Conversation.ts"
import { ResumedAnswer, resumption } from "../../domain/serve/ResumedTurn.ts"
import type { ServeSettings } from "../../domain/serve/ServeSettings.ts"
import { answerTo } from "../../domain/serve/SessionLedger.ts"
import { firstUnits } from "../../domain/text/Bytes.ts"
import { CompressionSteps } from "../compression/summary/CompressionSteps.ts"
import * as Runtime from "../runtime/Runtime.ts"
import { noticeText } from "../runtime/RuntimeNotice.ts"
import * as SessionRetention from "../session/SessionRetention.ts"
import type { SessionSummary } from "../session/SessionStore.ts"
import { SessionSteps } from "./DurableCompression.ts"
import { internal, openError, storeError } from "./Failures.ts"
import { OpenedSession, recordedTurn, type ServedTurn, turnStatus } from "./OpenedSession.ts"
import type { CompressionDone, StreamEvent } from "./ServeApi.ts"
import { type MessageToSend, ServedSessions } from "./ServedSessions.ts"
import { BadRequest, Conflict, NotFound, type ServeError, Unavailable } from "./ServeErrors.ts"
import { openSessions, openStreams, runningTurns, tokensUsed, turnsEnded } from "./ServeMetrics.ts"
import * as StoredSessions from "./StoredSessions.ts"
import { TenantLimiter } from "./TenantLimiter.ts"
import { TurnJournal } from "./TurnJournal.ts"

/**
 * The sessions of this process: each is opened here when it is first written, and its turns run here.
 *
 * One file: all methods share the open sessions and the running turns.
 */

/** Options of the sessions. */
export interface ServedOptions {
  readonly settings: ServeSettings
  /** Overrides the model of the settings. */
  readonly model?: string | undefined
}

const doneOf = (outcome: Outcome): CompressionDone => ({
  status: statusOf(outcome),
  outcome: outcome._tag,
  ...tokensOf(outcome),
  reason: "reason" in outcome ? outcome.reason : null,
  snapshot: outcome._tag === "Compressed" ? outcome.snapshot : null
})

const make = Effect.fnUntraced(function* ({ model, settings }: ServedOptions) {
  const { copy, create, existing, inTenant, reading } = yield* StoredSessions.make(model)
  const limiter = yield* TenantLimiter
  const stepsOf = yield* SessionSteps
  const journal = yield* TurnJournal
  const turns = yield* FiberSet.make<void>()
  const opened = new Map<string, OpenedSession>()
  let isDraining = false

  const keyOf = (tenant: string, id: string) => `${tenant} ${id}`

  const sessions = yield* RcMap.make({
    lookup: Effect.fnUntraced(function* (key: string) {
      const [tenant = "", id = ""] = key.split(" ")
      const agent = yield* inTenant(
        tenant,
        Runtime.make({
          session: { _tag: "Named", name: id },
          tools: settings.tools === true,
          approve: settings.approve ?? "none",
          handlers: { notify: (notice) => Effect.logDebug(`serve: ${noticeText(notice)}`) }
        })
      ).pipe(
        Effect.catchTags({
          SessionStoreError: openError,
          ChatBusy: openError,
          UnknownModelError: openError,
          SettingsError: openError,
          SessionSelectionError: openError,
          SystemPromptError: openError,
          WorkspaceFolderError: openError
        })
      )
      const name = (yield* StoredSessions.newId).slice(-12)
      const session = new OpenedSession(
        id,
        agent,
        name,
        journal === undefined
          ? undefined
          : { save: (turn) => journal.save(tenant, id, turn, name), last: yield* journal.take(tenant, id, name) }
      )
      if (journal !== undefined) {
        yield* Effect.addFinalizer(() => session.flush)
        yield* Effect.forkScoped(session.flushing)
      }
      yield* Effect.acquireRelease(
        Effect.andThen(
          Metric.modify(openSessions, 1),
          Effect.sync(() => opened.set(key, session))
        ),
        () =>
          Effect.andThen(
            Metric.modify(openSessions, -1),
            Effect.sync(() => {
              if (opened.get(key) === session) opened.delete(key)
            })
          )
      )
      return session
    }),
    idleTimeToLive: "1 minute"
  })

  const open = (tenant: string, id: string) =>
    Effect.andThen(
      opened.has(keyOf(tenant, id)) ? Effect.void : existing(tenant, id),
      RcMap.get(sessions, keyOf(tenant, id))
    )

  const within = <A>(
    tenant: string,
    id: string,
    use: (session: OpenedSession) => Effect.Effect<A, ServeError>
  ): Effect.Effect<A, ServeError> => Effect.scoped(Effect.flatMap(open(tenant, id), use))

  const row = (tenant: string, summary: SessionSummary) => {
    const session = opened.get(keyOf(tenant, summary.id))
    return StoredSessions.rowOf(summary, session?.running?.message ?? null, session !== undefined)
  }

  const accepting = Effect.suspend(() =>
    isDraining ? Effect.fail(new Unavailable({ message: "the server stops; send it again in a moment" })) : Effect.void
  )

  const runTurn = Effect.fnUntraced(function* (
    tenant: string,
    session: OpenedSession,
    turn: ServedTurn,
    text: string,
    resumed: ResumedAnswer,
    release: Effect.Effect<void>
  ) {
    let end: ReturnType<typeof turnStatus> = { status: "answered", error: null }
    const work = session.agent.send(text, { cancel: Deferred.await(turn.cancel), messageId: turn.message }).pipe(
      Stream.provideService(CompressionSteps, stepsOf(tenant, session.id)),
      Stream.runForEach((event) => {
        end = turnStatus(end, event)
        for (const told of resumed.next(event)) session.publish({ message: turn.message, event: told })
        if (event._tag !== "Finished") return Effect.void
        const { tokens, usage } = event
        // A provider that reports nothing would never come to a limit.
        const amount = usage === null ? Math.ceil(tokens) : usage.prompt + usage.answer + usage.thoughts
        return Effect.andThen(limiter.tokens(tenant, amount), Metric.update(tokensUsed, amount))
      })
    )
    yield* Effect.onExit(work, (exit) =>
      Effect.suspend(() => {
        if (Exit.isFailure(exit)) {
          const error = Option.getOrUndefined(Cause.findErrorOption(exit.cause))
          // In a cluster, a database that is away comes back, and the turn is taken up again.
          const isTaken =
            error?._tag === "SessionStoreError" &&
            (journal !== undefined || error.reason._tag === "SessionTaken" || error.reason._tag === "SessionChanged")
          end =
            Cause.hasInterrupts(exit.cause) || isTaken
              ? { status: "stopped", error: "another server took over, or this one stopped; send the message again" }
              : {
                  status: "failed",
                  error: end.error ?? error?.message ?? "the server could not do this; its log says why"
                }
        }
        session.end(turn, end.status, end.error)
        // Its streams go on with what is opened next.
        if (end.status === "stopped") Deferred.doneUnsafe(session.closing, Effect.void)
        const log = Exit.isFailure(exit) && Cause.hasDies(exit.cause) ? Effect.logError(exit.cause) : Effect.void
        return Effect.all(
          [
            log,
            release,
            // What was taken over must be read again before it is written again.
            end.status === "stopped" && opened.get(keyOf(tenant, session.id)) === session
              ? RcMap.invalidate(sessions, keyOf(tenant, session.id))
              : Effect.void,
            Metric.modify(runningTurns, -1),
            Metric.update(Metric.withAttributes(turnsEnded, { status: end.status }), 1)
          ],
          { discard: true }
        )
      })
    ).pipe(Effect.exit)
  })

  /** The stream of a session's events, counted. It and the session end with the scope, which is the request's. */
  const streamed = Effect.fnUntraced(function* (
    tenant: string,
    id: string,
    of: (session: OpenedSession) => Stream.Stream<StreamEvent>
  ) {
    yield* Effect.asVoid(
      Effect.acquireRelease(
        Effect.tap(limiter.take(tenant, "streams"), () => Metric.modify(openStreams, 1)),
        (release) => Effect.andThen(release, Metric.modify(openStreams, -1))
      )
    )
    return of(yield* open(tenant, id))
  })

  const send = Effect.fnUntraced(function* (
    tenant: string,
    id: string,
    message: MessageToSend,
    lastId: string | undefined
  ) {
    yield* accepting
    const messageId = message.id ?? (yield* StoredSessions.newId)
    const turn = yield* within(
      tenant,
      id,
      Effect.fnUntraced(function* (session) {
        const before = session.turn(messageId)
        if (before !== undefined && (before.ended === undefined || before.ended === "answered")) return before
        const whole = yield* Effect.catch(session.agent.chat.whole, storeError)
        const recorded = answerTo(whole, messageId)
        const lost = before?.ended === "stopped" ? before : undefined
        const missing = resumption(lost === undefined ? [] : session.toldOf(lost), recorded?.texts ?? [])
        const resume = (one: ServedTurn) => {
          const resumed = session.resume(one)
          for (const event of missing.events) session.publish({ message: messageId, event })
          return resumed
        }
        if (recorded?.isComplete === true) {
          if (lost === undefined) return recorded.text
          const resumed = resume(lost)
          session.end(resumed, "answered", null)
          return resumed
        }
        yield* limiter.checkTokens(tenant)
        const release = yield* limiter.take(tenant, "turns")
        const { running } = session
        if (running !== undefined) {
          yield* release
          if (running.message === messageId) return running
          return yield* new Conflict({
            message: `the session answers message ${running.message}; wait for its end, or cancel it`
          })
        }
        // No other request comes between the look at `running` and this.
        const begun = lost === undefined ? session.begin(messageId, message.text) : resume(lost)
        yield* Metric.modify(runningTurns, 1)
        // The session stays open until the turn ends. What is in the conversation already is asked again, not added.
        const resumed = new ResumedAnswer(lost === undefined ? "" : missing.open)
        const work = runTurn(tenant, session, begun, recorded === undefined ? message.text : "", resumed, release)
        begun.fiber = yield* FiberSet.run(
          turns,
          Effect.scoped(Effect.andThen(Effect.ignore(RcMap.get(sessions, keyOf(tenant, id))), work)),
          { startImmediately: true }
        )
        return begun
      }, Effect.uninterruptible)
    )
    if (typeof turn === "string") return recordedTurn(messageId, turn, lastId)
    const cancels = (message.onDisconnect ?? settings.onDisconnect ?? "continue") === "cancel"
    if (cancels) {
      yield* Effect.addFinalizer(() =>
        Effect.sync(() => {
          if (turn.ended === undefined) Deferred.doneUnsafe(turn.cancel, Effect.void)
        })
      )
    }
    return yield* streamed(tenant, id, (session) => session.turnStream(turn, lastId))
  })

  const turnOf = Effect.fnUntraced(function* (tenant: string, id: string, message: string, lastId: string | undefined) {
    const turn = yield* within(tenant, id, (session) =>
      Effect.gen(function* () {
        const known = session.turn(message)
        if (known !== undefined) return known
        return answerTo(yield* Effect.catch(session.agent.chat.whole, storeError), message)
      })
    )
    if (turn === undefined) {
      return yield* new NotFound({ message: `session ${id} has no message ${message}; send it with this id` })
    }
    return "text" in turn
      ? recordedTurn(message, turn.text, lastId)
      : yield* streamed(tenant, id, (session) => session.turnStream(turn, lastId))
  })

  const cancel = (tenant: string, id: string) =>
    Effect.flatMap(existing(tenant, id), () =>
      Effect.suspend(() => {
        const running = opened.get(keyOf(tenant, id))?.running
        if (running === undefined) return Effect.succeed(false)
        Deferred.doneUnsafe(running.cancel, Effect.void)
        return Effect.as(Deferred.await(running.done), true)
      })
    )

  const close = Effect.fnUntraced(function* (tenant: string, id: string) {
    const key = keyOf(tenant, id)
    const session = opened.get(key)
    if (session === undefined) return
    const fiber = session.running?.fiber
    if (fiber !== undefined) yield* Fiber.interrupt(fiber)
    yield* session.flush
    Deferred.doneUnsafe(session.closing, Effect.void)
    yield* RcMap.invalidate(sessions, key)
  })

  const remove = Effect.fnUntraced(function* (tenant: string, id: string) {
    yield* existing(tenant, id)
    const key = keyOf(tenant, id)
    const session = opened.get(key)
    if (session?.running !== undefined) {
      return yield* new Conflict({ message: "the server works on this session now; cancel the turn first" })
    }
    yield* close(tenant, id)
    // Streams that were reading it end in a moment, and with them the lock.
    yield* inTenant(tenant, SessionRetention.remove(id)).pipe(
      Effect.retry({
        schedule: Schedule.spaced("50 millis").pipe(Schedule.upTo({ times: session === undefined ? 0 : 40 })),
        while: (error) => error._tag === "SessionStoreError" && error.reason._tag === "SessionLocked"
      }),
      Effect.catchTag("SessionStoreError", storeError)
    )
  })

  const branchTo = (tenant: string, id: string, at: EntryId) =>
    within(tenant, id, ({ agent }) =>
      agent.chat.branch({ to: at }).pipe(
        Effect.asVoid,
        Effect.catchTags({
          SessionStoreError: storeError,
          ChatBusy: internal,
          TokenCountError: internal,
          UnknownEntry: ({ message }) => Effect.fail(new NotFound({ message }))
        })
      )
    )

  const fork = Effect.fnUntraced(function* (
    tenant: string,
    id: string,
    options: { readonly id?: string | undefined; readonly at?: EntryId | undefined }
  ) {
    yield* accepting
    const copied = yield* copy(tenant, id, options)
    const { at } = options
    if (at !== undefined) yield* branchTo(tenant, copied, at)
    return row(tenant, yield* existing(tenant, copied))
  })

  const busy = ({ message }: { readonly message: string }) => Effect.fail(new Conflict({ message }))

  return ServedSessions.of({
    ...reading(row, (tenant, id) => Effect.sync(() => opened.get(keyOf(tenant, id))?.lastEvent ?? null)),
    create: (tenant, options) =>
      Effect.andThen(
        accepting,
        Effect.map(create(tenant, options), (summary) => row(tenant, summary))
      ),
    remove,
    fork,
    send: (tenant, id, message, lastId) => send(tenant, id, message, lastId),
    turn: turnOf,
    events: (tenant, id, lastId) =>
      Effect.andThen(
        existing(tenant, id),
        streamed(tenant, id, (session) => session.stream(lastId))
      ),
    cancel,
    compress: (tenant, id, { focus, force }) =>
      Effect.andThen(
        accepting,
        within(tenant, id, (session) =>
          session.agent.chat.compress({ focus, forced: force ?? true }).pipe(
            Effect.provideService(CompressionSteps, stepsOf(tenant, id)),
            Effect.catchTags({
              ChatBusy: busy,
              PlanRefused: busy,
              SessionStoreError: storeError,
              TokenCountError: internal
            }),
            Effect.map(doneOf),
            Effect.tap(() =>
              Effect.sync(() => session.publish({ message: null, event: { _tag: "Changed", by: "compress" } }))
            )
          )
        )
      ),
    plan: (tenant, id) =>
      within(tenant, id, ({ agent }) =>
        agent.chat.plan().pipe(Effect.catchTags({ SessionStoreError: storeError, TokenCountError: internal }))
      ),
    turnBack: (tenant, id, by) =>
      within(tenant, id, (session) =>
        session.agent.chat[by].pipe(
          Effect.catchTags({ ChatBusy: busy, SessionStoreError: storeError }),
          Effect.tap((done) =>
            Effect.sync(() => {
              if (done) session.publish({ message: null, event: { _tag: "Changed", by } })
            })
          ),
          Effect.flatMap((done) =>
            Effect.map(session.agent.chat.conversation, (conversation) => ({
              done,
              tokens: Math.ceil(viewTokens(conversation))
            }))
          )
        )
      ),
    recall: (tenant, id, handle, selection) =>
      within(tenant, id, ({ agent }) =>
        agent.chat.recall(handle, selection).pipe(
          Effect.catchTags({
            TempStoreError: () =>
              Effect.fail(
                new NotFound({ message: `session ${id} holds nothing under ${handle}; its ledger lists the handles` })
              ),
            BadPattern: ({ message }) => Effect.fail(new BadRequest({ message: `grep: ${message}` })),
            SessionStoreError: storeError
          })
        )
      ),
    search: (tenant, id, pattern, maxTokens) =>
      within(tenant, id, ({ agent }) =>
        agent.chat.search({ pattern, maxTokens, isRedacted: false }).pipe(
          Effect.catchTags({
            BadPattern: ({ message }) =>
              Effect.fail(new BadRequest({ message: `pattern: ${firstUnits(message, 500)}` })),
            SessionStoreError: storeError
          })
        )
      ),
    branch: branchTo,
    isBusy: (tenant, id) => Effect.sync(() => opened.get(keyOf(tenant, id))?.running !== undefined),
    close,
    isReady: Effect.sync(() => !isDraining),
    drain: Effect.gen(function* () {
      isDraining = true
      yield* Effect.timeoutOption(FiberSet.awaitEmpty(turns), `${settings.drainSeconds ?? 20} seconds`)
      yield* FiberSet.clear(turns)
      for (const session of opened.values()) {
        yield* session.flush
        Deferred.doneUnsafe(session.closing, Effect.void)
      }
    })
  })
})

/** The sessions of this process, until the layer ends. */
export const layer = (options: ServedOptions) => Layer.effect(ServedSessions, make(options))
