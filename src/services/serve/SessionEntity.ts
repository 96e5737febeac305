/**
 * A session as an entity of a cluster: one runner has it at a time, and answers its messages one after another.
 * Messages contain ids, what users send and handles, and never a transcript.
 */

import { Effect, Schedule, Schema, Stream } from "effect"
import { ClusterSchema, Entity } from "effect/cluster"
import { Rpc } from "effect/rpc"
import { Decision } from "../../domain/compression/Compression.ts"
import { Handle } from "../../domain/content/Handle.ts"
import { EntryId } from "../../domain/conversation/Conversation.ts"
import { Excerpt, Selection } from "../../domain/conversation/Excerpt.ts"
import { FoundParts } from "../../domain/conversation/RecallSearch.ts"
import { ServedEvent, ServedTurnEnd } from "../../domain/serve/EventBuffer.ts"
import { TurnOptions } from "../../domain/serve/SessionRecord.ts"
import { ClientAnswer } from "../../domain/session/CallQuestions.ts"
import { fromJson } from "../../domain/text/JsonText.ts"
import { CompressionDone, MessageMedia, Turned } from "./ServeApi.ts"
import { ServedSessions } from "./ServedSessions.ts"
import { errors, type ServeError, Unavailable } from "./ServeErrors.ts"

const error = Schema.Union(errors)

/** How a turn ended. `refused`: why it did not begin. */
export const TurnEnd = Schema.Struct({ ...ServedTurnEnd.fields, refused: Schema.optionalKey(error) })
export type TurnEnd = typeof TurnEnd.Type

/** An event of a stream, between two processes. */
const Event = Schema.Struct({ id: Schema.optionalKey(Schema.String), event: Schema.String, data: ServedEvent })

/**
 * Sends a message, and returns how its turn ended. The message is stored under its id before it is acknowledged: sent
 * twice, it is answered once, and when the runner dies, another one answers it.
 */
const Send = Rpc.make("Send", {
  payload: {
    message: Schema.String,
    text: Schema.String,
    media: Schema.optional(Schema.Array(MessageMedia)),
    options: Schema.optional(fromJson(TurnOptions))
  },
  primaryKey: ({ message }) => message,
  success: TurnEnd
})
  .annotate(ClusterSchema.Persisted, true)
  // The message is answered even if its client disconnects.
  .annotate(ClusterSchema.Uninterruptible, "client")
  // Running turns end before the engine stops. Another runner continues what is left.
  .annotate(ClusterSchema.InterruptOnTermination, true)

/** The events of a turn, or without a message those of the session, from the one after `lastId`. */
const Watch = Rpc.make("Watch", {
  payload: { message: Schema.NullOr(Schema.String), lastId: Schema.NullOr(Schema.String) },
  success: Event,
  error,
  stream: true
}).annotate(ClusterSchema.InterruptOnTermination, true)

/** Answers a question of the turn. The answer is sent as JSON, as it has no tag; it is in the log of the session when this returns. */
const Answer = Rpc.make("Answer", { payload: { call: Schema.String, answer: fromJson(ClientAnswer) }, error })
/** Cancels the turn. Stored, so that a runner has the messages accepted before it, and the next runner cancels when one dies. */
const Cancel = Rpc.make("Cancel", { success: Schema.Boolean, error })
  .annotate(ClusterSchema.Persisted, true)
  .annotate(ClusterSchema.InterruptOnTermination, true)
/** Compresses. Stored like `Send`, under the id of the request. */
const Compress = Rpc.make("Compress", {
  payload: {
    request: Schema.String,
    focus: Schema.NullOr(Schema.String),
    force: Schema.NullOr(Schema.Boolean)
  },
  primaryKey: ({ request }) => request,
  success: CompressionDone,
  error
})
  .annotate(ClusterSchema.Persisted, true)
  .annotate(ClusterSchema.Uninterruptible, "client")
  .annotate(ClusterSchema.InterruptOnTermination, true)

const Plan = Rpc.make("Plan", { success: Decision, error })
const TurnBack = Rpc.make("TurnBack", {
  payload: { by: Schema.Literals(["undo", "redo"]) },
  success: Turned,
  error
})
const Recall = Rpc.make("Recall", { payload: { handle: Handle, selection: Selection }, success: Excerpt, error })
const Search = Rpc.make("Search", {
  payload: { pattern: Schema.String, maxTokens: Schema.Natural },
  success: FoundParts,
  error
})
const Branch = Rpc.make("Branch", { payload: { at: EntryId }, error })
/** Fails while a turn runs; closes the session otherwise, so that it can be deleted. */
const Close = Rpc.make("Close", { error })

/** The entity. Its id is the tenant and the session, with a slash between them. */
export const SessionEntity = Entity.make("palimpsest/Session", [
  Send,
  Watch,
  Answer,
  Cancel,
  Compress,
  Plan,
  TurnBack,
  Recall,
  Search,
  Branch,
  Close
])

/** The id of the entity of a session. */
export const entityId = (tenant: string, id: string): string => `${tenant}/${id}`

// The turn was stopped because this runner stops or another one has taken the session. In both cases the engine ends this entity
// before the message is tried again here.
const again = Schedule.spaced("6 seconds")

/** Answers a message with the sessions of this process, and returns how its turn ended. */
const answered = (
  local: ServedSessions["Service"],
  tenant: string,
  id: string,
  { message, ...sent }: (typeof Send)["payloadSchema"]["Type"]
) =>
  local.send(tenant, id, { ...sent, id: message, onDisconnect: "continue", isAccepted: true }).pipe(
    Effect.flatMap(
      Stream.runFold(
        (): TurnEnd => ({ status: "stopped", error: null }),
        (end, { data: { event } }) => (event._tag === "TurnEnded" ? { status: event.status, error: event.error } : end)
      )
    ),
    Effect.flatMap((last) =>
      last.status === "stopped" ? Effect.fail(new Unavailable({ message: last.error ?? "" })) : Effect.succeed(last)
    ),
    Effect.scoped,
    Effect.retry({ schedule: again, while: ({ _tag }) => _tag === "Unavailable" }),
    // The store may be unavailable for a moment.
    Effect.retry({ schedule: Schedule.upTo(again, { times: 10 }), while: ({ _tag }) => _tag === "Failed" }),
    Effect.catch((refused: ServeError) =>
      Effect.succeed<TurnEnd>({ status: "failed", error: refused.message, refused })
    ),
    Effect.catchDefect((defect) =>
      Effect.as(Effect.logError(defect), {
        status: "failed" as const,
        error: "the server could not do this; its log says why"
      })
    )
  )

/**
 * Answers messages with the sessions of this process, which must open a session even if its last owner seems to be
 * alive.
 */
export const handlers = SessionEntity.toLayer(
  Effect.gen(function* () {
    const local = yield* ServedSessions
    const { entityId: name } = yield* Entity.CurrentAddress
    const [tenant = "", id = ""] = name.split("/")
    yield* Effect.addFinalizer(() => local.close(tenant, id))

    /** The number of messages that came and are not answered. The turn of each begins after the ones before, and after the session is opened. */
    let unanswered = 0

    return SessionEntity.of({
      Send: ({ payload }) => {
        unanswered += 1
        const done = Effect.sync(() => void (unanswered -= 1))
        return Effect.ensuring(answered(local, tenant, id, payload), done)
      },
      Watch: ({ payload: { lastId, message } }) =>
        Stream.unwrap(
          message === null
            ? local.events(tenant, id, lastId ?? undefined)
            : local.turn(tenant, id, message, lastId ?? undefined)
        ).pipe(Stream.scoped, Rpc.fork),
      Answer: ({ payload: { answer, call } }) => Rpc.fork(local.answer(tenant, id, call, answer)),
      Cancel: () =>
        Rpc.fork(
          Effect.repeat(local.cancel(tenant, id), {
            schedule: Schedule.spaced("100 millis"),
            until: (isCancelled) => isCancelled || unanswered === 0
          })
        ),
      Compress: ({ payload: { focus, force, request } }) =>
        Rpc.fork(
          Effect.retry(local.compress(tenant, id, { focus: focus ?? undefined, force: force ?? undefined, request }), {
            schedule: again,
            while: ({ _tag }) => _tag === "Unavailable"
          })
        ),
      Plan: () => Rpc.fork(local.plan(tenant, id)),
      TurnBack: ({ payload: { by } }) => Rpc.fork(local.turnBack(tenant, id, by)),
      Recall: ({ payload: { handle, selection } }) => Rpc.fork(local.recall(tenant, id, handle, selection)),
      Search: ({ payload: { maxTokens, pattern } }) => Rpc.fork(local.search(tenant, id, pattern, maxTokens)),
      Branch: ({ payload: { at } }) => Rpc.fork(local.branch(tenant, id, at)),
      Close: () => Rpc.fork(local.closeIdle(tenant, id))
    })
  }),
  { concurrency: 1, maxIdleTime: "1 minute" }
)
