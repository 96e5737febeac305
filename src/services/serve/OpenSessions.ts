/**
 * The open sessions of this process. A session is opened when a request first needs it, and closed a minute after the
 * last use.
 */

import { Effect, Fiber, FiberSet, Metric, RcMap } from "effect"
import type { ServeSettings } from "../../domain/serve/ServeSettings.ts"
import { reconfigure } from "../chat/Chat.ts"
import { newId } from "../platform/NewId.ts"
import * as Runtime from "../runtime/Runtime.ts"
import { noticeText } from "../runtime/RuntimeNotice.ts"
import { SessionSteps } from "./DurableCompression.ts"
import { chatError } from "./Failures.ts"
import { OpenedSession } from "./OpenedSession.ts"
import { type ServeError, Unavailable } from "./ServeErrors.ts"
import { openSessions } from "./ServeMetrics.ts"
import * as StoredSessions from "./StoredSessions.ts"
import { TurnJournal } from "./TurnJournal.ts"
import { TurnQuestions } from "./TurnQuestions.ts"

/** Options of the sessions. */
export interface ServedOptions {
  readonly settings: ServeSettings
  /** Overrides the model in the settings. */
  readonly model?: string | undefined
}

/** The open sessions and their running turns. Mutable: all requests share them. */
export interface OpenSessions {
  readonly settings: ServeSettings
  readonly stored: StoredSessions.StoredSessions
  readonly journal: typeof TurnJournal.Service
  readonly stepsOf: typeof SessionSteps.Service
  readonly turns: FiberSet.FiberSet
  /** Opens sessions, by `keyOf`. */
  readonly sessions: RcMap.RcMap<string, OpenedSession, ServeError>
  /** Those that are open. */
  readonly opened: Map<string, OpenedSession>
  /** The server is stopping: it starts nothing new. */
  isDraining: boolean
}

/** Returns the key of a session, unique across tenants. */
export const keyOf = (tenant: string, id: string) => `${tenant} ${id}`

const lookup = Effect.fnUntraced(function* (state: OpenSessions, key: string) {
  const { journal, opened, settings, stored } = state
  const [tenant = "", id = ""] = key.split(" ")
  const questions = new TurnQuestions()
  const opening = Runtime.make({
    session: { _tag: "Stored", id },
    tools: settings.tools === true,
    approve: settings.approve ?? "none",
    instruction: Effect.sync(() => opened.get(key)?.instruction),
    handlers: {
      notify: (notice) => Effect.logDebug(`serve: ${noticeText(notice)}`),
      ask: questions.approve,
      isInteractive: false
    }
  })
  const agent = yield* StoredSessions.inTenant(stored, tenant, Effect.catch(opening, chatError))
  questions.attach(agent.chat)
  const { model } = yield* StoredSessions.recordOf(stored, tenant, id)
  yield* Effect.catch(reconfigure(agent.chat, { chosen: model }), chatError)
  const name = (yield* newId).slice(-12)
  const session = new OpenedSession(
    id,
    agent,
    questions,
    name,
    (yield* agent.chat.conversation).version,
    journal === undefined
      ? undefined
      : { save: (turn) => journal.save(tenant, id, turn, name), last: yield* journal.take(tenant, id, name) }
  )
  if (journal !== undefined) {
    yield* Effect.addFinalizer(() => session.flush)
    yield* Effect.forkScoped(session.flushing)
  }
  yield* Effect.acquireRelease(Metric.modify(openSessions, 1), () => Metric.modify(openSessions, -1))
  yield* Effect.acquireRelease(
    Effect.sync(() => opened.set(key, session)),
    () => Effect.sync(() => opened.get(key) === session && opened.delete(key))
  )
  return session
})

/** Makes the state, without an open session. Sessions close with the scope. */
export const make = Effect.fnUntraced(function* ({ model, settings }: ServedOptions) {
  const state: OpenSessions = {
    settings,
    stored: yield* StoredSessions.make(model),
    journal: yield* TurnJournal,
    stepsOf: yield* SessionSteps,
    turns: yield* FiberSet.make<void>(),
    sessions: yield* RcMap.make({
      // A session that cannot be opened now may be opened at the next request: the map would keep the failure.
      lookup: (key: string) =>
        Effect.tapError(lookup(state, key), () => Effect.forkDetach(RcMap.invalidate(state.sessions, key))),
      idleTimeToLive: "1 minute"
    }),
    opened: new Map(),
    isDraining: false
  }
  return state
})

/** Returns the session if it is open. */
export const openedOf = ({ opened }: OpenSessions, tenant: string, id: string) => opened.get(keyOf(tenant, id))

/** Closes a session whose events no client gets any more. The next request opens it again. */
const closeLost = Effect.fnUntraced(function* ({ sessions }: OpenSessions, tenant: string, session: OpenedSession) {
  const fiber = session.running?.fiber
  if (fiber !== undefined) yield* Fiber.interrupt(fiber)
  yield* RcMap.invalidate(sessions, keyOf(tenant, session.id))
  return yield* new Unavailable({ message: "another server took over; send the message again" })
})

/** Opens an existing session until the scope closes. */
export const open = (state: OpenSessions, tenant: string, id: string) =>
  (openedOf(state, tenant, id) === undefined ? StoredSessions.existing(state.stored, tenant, id) : Effect.void).pipe(
    Effect.andThen(RcMap.get(state.sessions, keyOf(tenant, id))),
    Effect.flatMap((session) => (session.isLost ? closeLost(state, tenant, session) : Effect.succeed(session)))
  )

/** Runs work with an open session. */
export const within = <A>(
  state: OpenSessions,
  tenant: string,
  id: string,
  use: (session: OpenedSession) => Effect.Effect<A, ServeError>
): Effect.Effect<A, ServeError> => Effect.scoped(Effect.flatMap(open(state, tenant, id), use))

/** Fails if the server is stopping. */
export const accepting = (state: { readonly isDraining: boolean }) =>
  Effect.suspend(() =>
    state.isDraining
      ? Effect.fail(new Unavailable({ message: "the server is stopping; send it again in a moment" }))
      : Effect.void
  )
