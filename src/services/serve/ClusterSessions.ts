import { Deferred, Effect, FiberSet, Layer, Option, Ref, Schedule, Schema, Stream } from "effect"
import { EntityAddress, EntityId, MessageStorage, Sharding } from "effect/cluster"
import { eventId } from "../../domain/serve/EventBuffer.ts"
import { JoinedStream } from "../../domain/serve/JoinedStream.ts"
import type { ServeSettings } from "../../domain/serve/ServeSettings.ts"
import { storeError } from "./Failures.ts"
import { reset } from "./OpenedSession.ts"
import type { StreamEvent } from "./ServeApi.ts"
import { ServedSessions } from "./ServedSessions.ts"
import { Conflict, type ServeError, Unavailable } from "./ServeErrors.ts"
import { entityId, SessionEntity } from "./SessionEntity.ts"
import * as StoredSessions from "./StoredSessions.ts"
import { TurnJournal } from "./TurnJournal.ts"

/**
 * The sessions of a cluster, as a front offers them: it reads the store itself, and sends everything that needs an open session
 * to the runner that has it. A message is acknowledged when it is stored; when its runner dies, another one answers it, and
 * the client's stream goes on.
 */

/** Options of a front. */
export interface ClusterOptions {
  readonly settings: ServeSettings
  readonly model?: string | undefined
}

/** Waits between two looks for the runner that has a session. */
const patience = Schedule.spaced("250 millis").pipe(Schedule.upTo({ times: 120 }))

const isServeError = (error: { readonly _tag: string }): error is ServeError =>
  ["BadRequest", "NotFound", "Conflict", "TooMany", "Failed", "Unavailable"].includes(error._tag)

const isFailedSend = Schema.is(
  Schema.Struct({ _tag: Schema.tag("Success"), value: Schema.Struct({ status: Schema.Literal("failed") }) })
)

const away = () => new Unavailable({ message: "no runner has this session now; try again in a moment" })

const make = Effect.fnUntraced(function* ({ model, settings }: ClusterOptions) {
  const sessions = yield* StoredSessions.make(model)
  const { limiter } = sessions
  const clientOf = yield* SessionEntity.client
  const journal = yield* TurnJournal
  const sharding = yield* Sharding.Sharding
  const storage = yield* MessageStorage.MessageStorage
  const sends = yield* FiberSet.make<void>()
  const closing = yield* Deferred.make<void>()
  let isDraining = false

  const client = (tenant: string, id: string) => clientOf(entityId(tenant, id))

  /** Asks the runner of a session that exists. While no runner has the session, it waits. */
  const ask = <A, E extends { readonly _tag: string }>(
    tenant: string,
    id: string,
    work: (session: ReturnType<typeof client>) => Effect.Effect<A, E>
  ): Effect.Effect<A, ServeError> =>
    Effect.andThen(
      StoredSessions.existing(sessions, tenant, id),
      Effect.suspend(() => work(client(tenant, id))).pipe(
        Effect.retry({ schedule: patience, while: (error) => !isServeError(error) }),
        Effect.catch((error): Effect.Effect<never, ServeError> => Effect.fail(isServeError(error) ? error : away()))
      )
    )

  const accepting = Effect.suspend(() =>
    isDraining ? Effect.fail(new Unavailable({ message: "the server stops; send it again in a moment" })) : Effect.void
  )

  const counted = (tenant: string) =>
    Effect.asVoid(Effect.acquireRelease(limiter.take(tenant, "streams"), (release) => release))

  /** A message that failed, and is sent again, is answered again. */
  const forgetFailure = Effect.fnUntraced(function* (tenant: string, id: string, message: string) {
    const entity = EntityId.make(entityId(tenant, id))
    const shardId = sharding.getShardId(entity, "default")
    const address = EntityAddress.make({ entityType: SessionEntity.type, entityId: entity, shardId })
    const request = yield* storage.requestIdForPrimaryKey({ address, tag: "Send", id: message })
    if (Option.isNone(request)) return
    const reply = (yield* storage.repliesForUnfiltered([request.value])).at(-1)
    if (reply?._tag === "WithExit" && isFailedSend(reply.exit)) yield* sharding.reset(request.value)
  }, Effect.mapError(away))

  /**
   * The events of a session or a turn, from whichever runner has it. `over`: when this ends, the runner is asked once more, which
   * may be another one than that whose stream has come to a halt. `joined`: what the client has of it.
   */
  const watch = (
    tenant: string,
    id: string,
    message: string | null,
    joined: JoinedStream<StreamEvent>,
    over: Effect.Effect<void> = Effect.never
  ) =>
    Stream.suspend(() => client(tenant, id).Watch({ message, lastId: joined.last ?? null })).pipe(
      // A turn that its runner stopped goes on at another one.
      Stream.filter(({ data: { event } }) => event._tag !== "TurnEnded" || event.status !== "stopped"),
      // A runner that lives sends a ping more often.
      Stream.timeout("20 seconds"),
      Stream.interruptWhen(over),
      // The runner has gone, which comes as an interruption too, or has not begun with the message yet.
      Stream.catchCause(() => Stream.empty),
      Stream.concat(Stream.fromEffectDrain(Effect.sleep("250 millis"))),
      Stream.forever,
      // When its runner goes, the engine sends a request again as it was, and the next runner begins anew.
      Stream.flatMap((event) => Stream.fromIterable(joined.next(event))),
      Stream.interruptWhen(Deferred.await(closing))
    )

  const isEnd = (message: string) => (event: StreamEvent) =>
    event.event === "TurnEnded" && event.data.message === message

  /** The end of a turn that no runner streams any more: what the journal holds of it, or else that events are missing. */
  const unseen = Effect.fnUntraced(function* (
    tenant: string,
    id: string,
    message: string,
    joined: JoinedStream<StreamEvent>,
    error: string | null
  ) {
    const told = journal === undefined ? undefined : yield* journal.read(tenant, id)
    const journaled = (told?.events ?? []).flatMap((one): ReadonlyArray<StreamEvent> =>
      told !== undefined && one.message === message
        ? [{ id: eventId(told.name, one.number), event: one.event._tag, data: { message, event: one.event } }]
        : []
    )
    if (journaled.some(isEnd(message))) return journaled.flatMap((event) => joined.next(event))
    const end = { _tag: "TurnEnded", status: error === null ? "answered" : "failed", error } as const
    return [reset, { event: end._tag, data: { message, event: end } }]
  })

  const send: ServedSessions["Service"]["send"] = Effect.fnUntraced(function* (tenant, id, message, lastId) {
    yield* accepting
    yield* StoredSessions.existing(sessions, tenant, id)
    yield* limiter.checkTokens(tenant)
    if (message.id !== undefined) yield* forgetFailure(tenant, id, message.id)
    const messageId = message.id ?? (yield* StoredSessions.newId)
    yield* counted(tenant)
    const stored = yield* Deferred.make<void, ServeError>()
    const ended = yield* Deferred.make<{ readonly status: string; readonly error: string | null }>()
    const session = client(tenant, id)
    // The message is stored when the first of the two returns. The second is the same message, and waits for its answer.
    const payload = { message: messageId, text: message.text }
    const work = session.Send(payload, { discard: true }).pipe(
      Effect.mapError(away),
      Effect.onExit((exit) => Deferred.done(stored, exit)),
      Effect.andThen(session.Send(payload).pipe(Effect.retry({ schedule: Schedule.spaced("500 millis") }))),
      Effect.flatMap((end) => Deferred.succeed(ended, end)),
      Effect.ignore
    )
    yield* FiberSet.run(sends, work)
    yield* Deferred.await(stored)
    if ((message.onDisconnect ?? settings.onDisconnect ?? "continue") === "cancel") {
      yield* Effect.addFinalizer(() =>
        Effect.flatMap(Deferred.isDone(ended), (isDone) => (isDone ? Effect.void : Effect.ignore(session.Cancel())))
      )
    }
    const seen = yield* Ref.make(false)
    const isAsked = yield* Ref.make(false)
    const late = Effect.andThen(Deferred.await(ended), Effect.sleep("2 seconds"))
    const over = Effect.flatMap(Ref.get(isAsked), (asked) =>
      asked ? Effect.never : Effect.andThen(late, Ref.set(isAsked, true))
    )
    const joined = new JoinedStream<StreamEvent>(lastId, reset)
    return watch(tenant, id, messageId, joined, over).pipe(
      Stream.takeUntil(isEnd(messageId)),
      Stream.tap((event) => (isEnd(messageId)(event) ? Ref.set(seen, true) : Effect.void)),
      // What ended without a stream is told all the same.
      Stream.interruptWhen(Effect.andThen(late, Effect.sleep("10 seconds"))),
      Stream.concat(
        Stream.unwrap(
          Effect.map(Effect.all([Ref.get(seen), Deferred.poll(ended)]), ([isSeen, end]) =>
            isSeen || Option.isNone(end)
              ? Stream.empty
              : Stream.fromIterableEffect(
                  Effect.flatMap(end.value, ({ error }) => unseen(tenant, id, messageId, joined, error))
                )
          )
        )
      )
    )
  })

  const row = (tenant: string, id: string) =>
    Effect.map(StoredSessions.existing(sessions, tenant, id), (summary) => StoredSessions.rowOf(summary, null, true))

  return ServedSessions.of({
    ...StoredSessions.reading(
      sessions,
      (_, summary) => StoredSessions.rowOf(summary, null, true),
      (tenant, id) => (journal === undefined ? Effect.succeed(null) : journal.last(tenant, id))
    ),
    create: (tenant, options) =>
      Effect.andThen(
        accepting,
        Effect.map(StoredSessions.create(sessions, tenant, options), (summary) =>
          StoredSessions.rowOf(summary, null, true)
        )
      ),
    remove: Effect.fnUntraced(function* (tenant, id) {
      yield* ask(tenant, id, (session) => session.Close())
      yield* Effect.catchTag(StoredSessions.remove(sessions, tenant, id, 40), "SessionStoreError", (error) =>
        error.reason._tag === "SessionLocked"
          ? Effect.fail(new Conflict({ message: "the server works on this session now; cancel the turn first" }))
          : storeError(error)
      )
      if (journal !== undefined) yield* journal.forget(tenant, id)
    }),
    fork: Effect.fnUntraced(function* (tenant, id, options) {
      yield* accepting
      const copied = yield* StoredSessions.copy(sessions, tenant, id, options)
      const { at } = options
      if (at !== undefined) yield* ask(tenant, copied, (session) => session.Branch({ at }))
      return yield* row(tenant, copied)
    }),
    send,
    turn: Effect.fnUntraced(function* (tenant, id, message, lastId) {
      yield* StoredSessions.existing(sessions, tenant, id)
      yield* counted(tenant)
      return Stream.takeUntil(watch(tenant, id, message, new JoinedStream(lastId, reset)), isEnd(message))
    }),
    events: Effect.fnUntraced(function* (tenant, id, lastId) {
      yield* StoredSessions.existing(sessions, tenant, id)
      yield* counted(tenant)
      return watch(tenant, id, null, new JoinedStream(lastId, reset))
    }),
    cancel: (tenant, id) => ask(tenant, id, (session) => session.Cancel()),
    compress: (tenant, id, { focus, force }) =>
      Effect.andThen(
        accepting,
        Effect.flatMap(StoredSessions.newId, (request) =>
          ask(tenant, id, (session) => session.Compress({ request, focus: focus ?? null, force: force ?? null })).pipe(
            // A connection without bytes is cut off a little later.
            Effect.timeoutOrElse({
              duration: "50 seconds",
              orElse: () => new Unavailable({ message: "the compression goes on; read the session in a while" })
            })
          )
        )
      ),
    plan: (tenant, id) => ask(tenant, id, (session) => session.Plan()),
    turnBack: (tenant, id, by) => ask(tenant, id, (session) => session.TurnBack({ by })),
    recall: (tenant, id, handle, selection) => ask(tenant, id, (session) => session.Recall({ handle, selection })),
    search: (tenant, id, pattern, maxTokens) => ask(tenant, id, (session) => session.Search({ pattern, maxTokens })),
    branch: (tenant, id, at) => ask(tenant, id, (session) => session.Branch({ at })),
    isBusy: () => Effect.succeed(false),
    close: () => Effect.void,
    isReady: Effect.sync(() => !isDraining),
    drain: Effect.suspend(() => {
      isDraining = true
      const ended = Effect.timeoutOption(FiberSet.awaitEmpty(sends), `${settings.drainSeconds ?? 20} seconds`)
      // Their streams get a moment to tell it.
      const told = Effect.flatMap(FiberSet.size(sends), (count) =>
        count === 0 ? Effect.void : Effect.andThen(ended, Effect.sleep("500 millis"))
      )
      return Effect.andThen(told, Effect.asVoid(Deferred.succeed(closing, undefined)))
    })
  })
})

/** The sessions of a cluster, until the layer ends. */
export const layer = (options: ClusterOptions) => Layer.effect(ServedSessions, make(options))
