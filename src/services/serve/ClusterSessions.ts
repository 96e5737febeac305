/**
 * The sessions of a cluster, as seen by a front. A front reads the store itself, and sends every request that needs
 * an open session to the runner that has it. A message is acknowledged when it is stored. When its runner dies,
 * another runner answers it, and the client's stream continues.
 *
 * One file: sending a message, watching its turn and joining the streams of several runners are one thing to a client.
 */

import { Cause, Data, Deferred, Effect, FiberSet, Layer, Option, Pull, Queue, Schedule, Schema, Stream } from "effect"
import { EntityAddress, EntityId, MessageStorage, Sharding, type Snowflake } from "effect/cluster"
import { eventId } from "../../domain/serve/EventBuffer.ts"
import { JoinedStream } from "../../domain/serve/JoinedStream.ts"
import { drainSecondsOf, type ServeSettings } from "../../domain/serve/ServeSettings.ts"
import { hasWords } from "../../domain/serve/SessionLedger.ts"
import { newId } from "../platform/NewId.ts"
import { isWorkedOn, noMessage, otherWords, storeError } from "./Failures.ts"
import { reset, streamEvent } from "./OpenedSession.ts"
import { accepting, type ServedOptions } from "./OpenSessions.ts"
import type { StreamEvent } from "./ServeApi.ts"
import { type MessageToSend, ServedSessions } from "./ServedSessions.ts"
import { errors, type ServeError, Unavailable } from "./ServeErrors.ts"
import { entityId, SessionEntity, TurnEnd } from "./SessionEntity.ts"
import * as StoredSessions from "./StoredSessions.ts"
import * as TenantData from "./TenantData.ts"
import { TurnJournal } from "./TurnJournal.ts"

/** The pause between two attempts to reach the runner of a session. */
const patience = Schedule.spaced("250 millis").pipe(Schedule.upTo({ times: 120 }))

const isServeError = Schema.is(Schema.Union(errors))

const decodeEnd = Schema.decodeUnknownOption(
  Schema.Struct({ _tag: Schema.tag("Success"), value: Schema.toCodecJson(TurnEnd) })
)

const away = () => new Unavailable({ message: "no runner has this session now; try again in a moment" })

/** The state of a front. Mutable: all requests share it. */
interface Front {
  readonly settings: ServeSettings
  readonly stored: StoredSessions.StoredSessions
  readonly clientOf: Effect.Success<typeof SessionEntity.client>
  readonly journal: typeof TurnJournal.Service
  readonly sharding: Sharding.Sharding["Service"]
  readonly storage: MessageStorage.MessageStorage["Service"]
  /** The messages that runners are answering. */
  readonly sends: FiberSet.FiberSet
  /** The sessions of the turns that clients read here. */
  readonly answering: Set<{ readonly tenant: string; readonly id: string }>
  /** Has an element after one of these turns asked its client, or its client is served. */
  readonly news: Queue.Queue<void>
  /** Completed when the streams should end because the server stops. */
  readonly closing: Deferred.Deferred<void>
  /** The server is stopping: it starts nothing new. */
  isDraining: boolean
}

type Served = ServedSessions["Service"]
type Client = ReturnType<Front["clientOf"]>

const client = ({ clientOf }: Front, tenant: string, id: string) => clientOf(entityId(tenant, id))

/** Asks the runner of an existing session. Waits while no runner has the session. */
const ask = <A, E extends { readonly _tag: string }>(
  front: Front,
  tenant: string,
  id: string,
  work: (session: Client) => Effect.Effect<A, E>
) =>
  Effect.andThen(
    StoredSessions.existing(front.stored, tenant, id),
    Effect.suspend(() => work(client(front, tenant, id))).pipe(
      Effect.retry({ schedule: patience, while: (error) => !isServeError(error) }),
      Effect.catch((error) => Effect.fail(isServeError(error) ? error : away()))
    )
  )

/** Cancels the turn. The engine keeps the request until a runner has the session; the client does not wait that long. */
const cancel = (front: Front, tenant: string, id: string) =>
  ask(front, tenant, id, (session) => session.Cancel()).pipe(
    Effect.timeoutOrElse({ duration: "50 seconds", orElse: away })
  )

const close = (front: Front, tenant: string, id: string) => ask(front, tenant, id, (session) => session.Close())

/** What is known of a message: the engine's request, how its turn ended, and what the session holds of it. */
const knownMessage = Effect.fnUntraced(function* (front: Front, tenant: string, id: string, message: string) {
  const { sharding, storage, stored } = front
  const entity = EntityId.make(entityId(tenant, id))
  const shardId = sharding.getShardId(entity, "default")
  const address = EntityAddress.make({ entityType: SessionEntity.type, entityId: entity, shardId })
  const { end, request } = yield* Effect.gen(function* () {
    const found = yield* storage.requestIdForPrimaryKey({ address, tag: "Send", id: message })
    if (Option.isNone(found)) return {}
    const reply = (yield* storage.repliesForUnfiltered([found.value])).at(-1)
    if (reply?._tag !== "WithExit") return { request: found.value }
    const decoded = Option.map(decodeEnd(reply.exit), ({ value }) => value)
    return { request: found.value, end: Option.getOrElse(decoded, (): TurnEnd => ({ status: "failed", error: null })) }
  }).pipe(
    Effect.mapError(away),
    Effect.map((found): { readonly request?: Snowflake.Snowflake; readonly end?: TurnEnd } => found)
  )
  const isRunning = request !== undefined && end === undefined
  const held = isRunning ? undefined : yield* StoredSessions.messageOf(stored, tenant, id, message)
  return { request, end, isRunning, held }
})

/** The runner has no such session or message, and will not get it. */
class Gone extends Data.TaggedError("Gone") {}

/**
 * Streams the events of a session or a turn from the runner that has it. `over`: when this ends, the runner is asked
 * once more; by then it may be another one than the runner whose stream stopped. `isGone`: whether the stream ends
 * when the runner does not know the message. `joined`: what the client has received.
 */
const watch = (
  front: Front,
  tenant: string,
  id: string,
  message: string | null,
  joined: JoinedStream<StreamEvent>,
  isGone: Effect.Effect<boolean, ServeError>,
  over: Effect.Effect<void> = Effect.never
) =>
  Stream.suspend(() => client(front, tenant, id).Watch({ message, lastId: joined.last ?? null })).pipe(
    // A turn that its runner stopped continues on another runner.
    Stream.filter(({ data: { event } }) => event._tag !== "TurnEnded" || event.status !== "stopped"),
    // A live runner sends pings more often than this.
    Stream.timeout("20 seconds"),
    Stream.interruptWhen(over),
    // The runner is gone, which appears as an interruption too, or it has not started the message yet.
    Stream.catchCause((cause) => {
      const error = Option.getOrUndefined(Cause.findErrorOption(cause))
      if (error?._tag !== "NotFound") return Stream.fromEffectDrain(Effect.logDebug("watching a session failed", cause))
      const session = StoredSessions.existing(front.stored, tenant, id)
      return Stream.fromEffectDrain(
        Effect.andThen(session, isGone).pipe(
          Effect.catch((failure) => Effect.succeed(failure._tag === "NotFound")),
          Effect.flatMap((gone) => (gone ? new Gone() : Effect.void))
        )
      )
    }),
    Stream.concat(Stream.fromEffectDrain(Effect.sleep("250 millis"))),
    Stream.forever,
    Stream.catch(() => Stream.empty),
    // When the runner dies, the engine repeats the request unchanged, and the next runner starts from the beginning.
    Stream.flatMap((event) => Stream.fromIterable(joined.next(event))),
    Stream.interruptWhen(Deferred.await(front.closing))
  )

const isEnd = (message: string) => (event: StreamEvent) => event.event === "TurnEnded" && event.data.message === message

/**
 * Returns the end of a turn that no runner streams any more: the events in the journal, or else a note that events
 * are missing.
 */
const unseen = Effect.fnUntraced(function* (
  { journal }: Front,
  tenant: string,
  id: string,
  message: string,
  joined: JoinedStream<StreamEvent>,
  error: string | null
) {
  const stored = journal === undefined ? undefined : yield* journal.read(tenant, id)
  const { events = [], name = "" } = stored ?? {}
  const journaled = events.flatMap((one) =>
    one.message === message ? [streamEvent(one, eventId(name, one.number))] : []
  )
  if (journaled.some(isEnd(message))) return journaled.flatMap((event) => joined.next(event))
  const end = { _tag: "TurnEnded", status: error === null ? "answered" : "failed", error } as const
  return [reset, streamEvent({ message, event: end })].flatMap((event) => joined.next(event))
})

/**
 * Sends a message to its runner. Returns when the message is stored, with the effect that waits for the end of its
 * turn.
 */
const accepted = Effect.fnUntraced(function* (
  front: Front,
  tenant: string,
  id: string,
  message: string,
  { media, options, text }: MessageToSend,
  release: Effect.Effect<void>
) {
  const session = client(front, tenant, id)
  const stored = yield* Deferred.make<void, ServeError>()
  const ended = yield* Deferred.make<TurnEnd>()
  // The message is stored when the first of the two returns. The second sends the same message and waits for its
  // answer.
  const payload = { message, text, media, options }
  // The deletion of a session takes a message that no runner has begun from the engine, which then never answers it.
  const gone = Effect.forever(Effect.delay(StoredSessions.existing(front.stored, tenant, id), "5 seconds")).pipe(
    Effect.retry({ while: ({ _tag }) => _tag !== "NotFound" })
  )
  const answer = session.Send(payload).pipe(Effect.retry({ schedule: Schedule.spaced("500 millis") }))
  const work = session.Send(payload, { discard: true }).pipe(
    Effect.mapError(away),
    Effect.onExit((exit) => Deferred.done(stored, exit)),
    Effect.andThen(Effect.raceFirst(answer, gone)),
    Effect.flatMap((end) => Deferred.succeed(ended, end)),
    Effect.ignore,
    Effect.ensuring(release)
  )
  yield* FiberSet.run(front.sends, work)
  return { stored, ended }
})

/**
 * Streams the events of a turn to its end, which is sent even if no runner streams the turn. Fails where the turn did
 * not begin. `poll`: how it ended; `late`: ends when no runner will stream it.
 */
const turnEvents = (
  front: Front,
  tenant: string,
  id: string,
  message: string,
  lastId: string | undefined,
  poll: Effect.Effect<Option.Option<TurnEnd>, ServeError>,
  late: Effect.Effect<void>
) =>
  Stream.suspend(() => {
    let isSeen = false
    let isAsked = false
    const over = Effect.suspend(() => (isAsked ? Effect.never : Effect.map(late, () => void (isAsked = true))))
    const joined = new JoinedStream<StreamEvent>(lastId, reset)
    const isOver = Effect.map(poll, Option.isSome)
    return watch(front, tenant, id, message, joined, isOver, over).pipe(
      Stream.takeUntil(isEnd(message)),
      Stream.tap((event) => Effect.sync(() => void (isSeen ||= isEnd(message)(event)))),
      Stream.interruptWhen(Effect.andThen(late, Effect.sleep("10 seconds"))),
      Stream.concat(
        Stream.fromIterableEffect(
          Effect.gen(function* () {
            if (isSeen) return []
            const end = Option.getOrUndefined(yield* poll)
            if (end === undefined) return []
            if (end.refused !== undefined && joined.last === undefined) return yield* Effect.fail(end.refused)
            return yield* unseen(front, tenant, id, message, joined, end.error)
          })
        )
      )
    )
  })

/** Waits for the first events of a stream, or for its failure. The stream ends with the scope. */
const begun = Effect.fnUntraced(function* (stream: Stream.Stream<StreamEvent, ServeError>) {
  const pull = yield* Stream.toPull(stream)
  const first = yield* Pull.catchDone(pull, () => Effect.succeed<ReadonlyArray<StreamEvent>>([]))
  return Stream.concat(Stream.fromIterable(first), Stream.fromPull(Effect.succeed(pull))).pipe(
    Stream.catch(() => Stream.empty)
  )
})

const send = (front: Front): Served["send"] =>
  Effect.fnUntraced(function* (tenant, id, message, lastId) {
    const { limiter } = front.stored
    yield* accepting(front)
    yield* StoredSessions.existing(front.stored, tenant, id)
    yield* StoredSessions.checkModel(front.stored, tenant, message.options?.model)
    const messageId = message.id ?? (yield* newId)
    const { end, held, isRunning, request } = yield* knownMessage(front, tenant, id, messageId)
    const before = isRunning ? yield* StoredSessions.messageOf(front.stored, tenant, id, messageId) : held
    if (before !== undefined && !hasWords(before.message, message.text)) return yield* otherWords(id, messageId)
    const isAccepted = isRunning || held?.isComplete === true || end?.status === "cancelled"
    if (!isAccepted) yield* limiter.checkTokens(tenant)
    const { answering, news } = front
    const of = { tenant, id }
    yield* Effect.acquireRelease(
      Effect.sync(() => answering.add(of)),
      () => Effect.suspend(() => Queue.offer(news, void answering.delete(of)))
    )
    const { ended, release, stored } = yield* Effect.uninterruptible(
      Effect.gen(function* () {
        const release = yield* limiter.take(tenant, "turns", { name: id, isAccepted })
        // A message whose turn failed, or that the session does not hold any more, is answered again.
        if (request !== undefined && !isAccepted) yield* front.sharding.reset(request)
        return { ...(yield* accepted(front, tenant, id, messageId, message, release)), release }
      })
    )
    yield* Deferred.await(stored)
    if ((message.onDisconnect ?? front.settings.onDisconnect ?? "continue") === "cancel") {
      yield* Effect.addFinalizer(() =>
        Effect.flatMap(Deferred.isDone(ended), (isDone) =>
          isDone ? Effect.void : Effect.ignore(cancel(front, tenant, id))
        )
      )
    }
    const poll = Effect.flatMap(Deferred.poll(ended), (done) => Effect.transposeOption(done))
    const late = Effect.andThen(Deferred.await(ended), Effect.sleep("2 seconds"))
    // Its client may send the next message before the engine has the reply.
    const streamed = Stream.tap(turnEvents(front, tenant, id, messageId, lastId, poll, late), (event) =>
      isEnd(messageId)(event) ? release : event.event === "Question" ? Queue.offer(news, undefined) : Effect.void
    )
    return yield* begun(streamed)
  })

/** Streams the turn of a message again. */
const turn = (front: Front): Served["turn"] =>
  Effect.fnUntraced(function* (tenant, id, message, lastId) {
    yield* StoredSessions.existing(front.stored, tenant, id)
    const { end, held, isRunning } = yield* knownMessage(front, tenant, id, message)
    const { refused, status = "answered" } = end ?? {}
    if (!isRunning && held === undefined && (refused !== undefined || status === "answered")) {
      return yield* noMessage(id, message)
    }
    const poll = Effect.map(knownMessage(front, tenant, id, message), (now) => Option.fromUndefinedOr(now.end))
    return yield* begun(turnEvents(front, tenant, id, message, lastId, poll, Effect.never)).pipe(
      // It waited for its turn, and was refused.
      Effect.mapError((error) => (error._tag === "Unavailable" ? error : noMessage(id, message)))
    )
  })

const remove = (front: Front): Served["remove"] =>
  Effect.fnUntraced(function* (tenant, id) {
    const forget = front.journal?.forget(tenant, id) ?? Effect.void
    // Of a session that is gone, an earlier deletion may have left something: it is taken up again.
    const closed = Effect.catchTag(close(front, tenant, id), "NotFound", () => Effect.void)
    yield* StoredSessions.remove(front.stored, tenant, id, closed).pipe(
      Effect.catchTag("SessionStoreError", (error) =>
        error.reason._tag === "SessionLocked" ? Effect.fail(isWorkedOn()) : storeError(error)
      ),
      Effect.tapError((error) => (error._tag === "NotFound" ? forget : Effect.void))
    )
    yield* forget
  })

/** Whether no turn runs but those that wait for clients: whoever takes them up waits on. */
const isQuiet = ({ answering, stored }: Front) =>
  Effect.map(
    Effect.forEach(answering, ({ id, tenant }) =>
      Effect.orElseSucceed(StoredSessions.isWaiting(stored, tenant, id), () => false)
    ),
    (waiting) => waiting.every((each) => each)
  )

/** Waits for the turns that clients read, up to the time in the settings, and ends the streams. Runners wait for the others. */
const drain = Effect.fnUntraced(function* (front: Front) {
  front.isDraining = true
  if (front.answering.size > 0) {
    yield* Queue.offer(front.news, undefined)
    yield* Effect.repeat(Effect.andThen(Queue.take(front.news), isQuiet(front)), { until: (quiet) => quiet }).pipe(
      Effect.timeoutOption(`${drainSecondsOf(front.settings)} seconds`)
    )
    // Gives the streams a moment to send their end.
    yield* Effect.sleep("500 millis")
  }
  yield* Deferred.succeed(front.closing, undefined)
})

const compress = (front: Front): ServedSessions["Service"]["compress"] =>
  Effect.fnUntraced(function* (tenant, id, { focus = null, force = null }) {
    yield* accepting(front)
    const request = yield* newId
    return yield* ask(front, tenant, id, (session) => session.Compress({ request, focus, force })).pipe(
      // A connection without data is closed a little later.
      Effect.timeoutOrElse({
        duration: "50 seconds",
        orElse: () => new Unavailable({ message: "the compression is still running; read the session later" })
      })
    )
  })

const make = Effect.fnUntraced(function* ({ model, settings }: ServedOptions) {
  const front: Front = {
    settings,
    stored: yield* StoredSessions.make(model),
    clientOf: yield* SessionEntity.client,
    journal: yield* TurnJournal,
    sharding: yield* Sharding.Sharding,
    storage: yield* MessageStorage.MessageStorage,
    sends: yield* FiberSet.make<void>(),
    answering: new Set(),
    news: yield* Queue.sliding<void>(1),
    closing: yield* Deferred.make<void>(),
    isDraining: false
  }
  const { journal, stored } = front
  return ServedSessions.of({
    ...StoredSessions.storing(stored, {
      row: (_, summary) => StoredSessions.rowOf(summary, null, true),
      lastEvent: (tenant, id) => journal?.last(tenant, id) ?? Effect.undefined,
      accepting: accepting(front),
      branch: (tenant, id, at) => ask(front, tenant, id, (session) => session.Branch({ at }))
    }),
    remove: remove(front),
    send: send(front),
    turn: turn(front),
    events: (tenant, id, lastId) =>
      Effect.as(
        StoredSessions.existing(stored, tenant, id),
        // It ends when the session is deleted.
        watch(front, tenant, id, null, new JoinedStream<StreamEvent>(lastId, reset, true), Effect.succeed(true))
      ),
    answer: (tenant, id, call, answer) => ask(front, tenant, id, (session) => session.Answer({ call, answer })),
    cancel: (tenant, id) => cancel(front, tenant, id),
    compress: compress(front),
    plan: (tenant, id) => ask(front, tenant, id, (session) => session.Plan()),
    turnBack: (tenant, id, by) => ask(front, tenant, id, (session) => session.TurnBack({ by })),
    recall: (tenant, id, handle, selection) =>
      ask(front, tenant, id, (session) => session.Recall({ handle, selection })),
    search: (tenant, id, pattern, maxTokens) =>
      ask(front, tenant, id, (session) => session.Search({ pattern, maxTokens })),
    exportAll: (tenant) => TenantData.exportAll(stored, tenant),
    removeAll: (tenant) =>
      TenantData.removeAll(
        stored,
        tenant,
        (id) => Effect.andThen(cancel(front, tenant, id), close(front, tenant, id)),
        (id) => journal?.forget(tenant, id) ?? Effect.void
      ),
    close: () => Effect.void,
    closeIdle: () => Effect.void,
    isReady: Effect.sync(() => !front.isDraining),
    drain: drain(front)
  })
})

/** Provides the sessions of a cluster. */
export const layer = (options: ServedOptions) => Layer.effect(ServedSessions, make(options))
