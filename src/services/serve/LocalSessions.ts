/** The sessions of this process. Each is opened here when it is first written, and its turns run here. */

import { Clock, Deferred, Effect, Fiber, FiberSet, Layer, RcMap } from "effect"
import { type Outcome, statusOf, tokensOf } from "../../domain/compression/Compression.ts"
import { viewTokens } from "../../domain/conversation/Conversation.ts"
import { drainSecondsOf } from "../../domain/serve/ServeSettings.ts"
import { firstUnits } from "../../domain/text/Bytes.ts"
import { CompressionSteps } from "../compression/summary/CompressionSteps.ts"
import { chatError, isWorkedOn, storeError } from "./Failures.ts"
import * as OpenSessions from "./OpenSessions.ts"
import { accepting, keyOf, open, openedOf, within } from "./OpenSessions.ts"
import type { CompressionDone } from "./ServeApi.ts"
import { ServedSessions } from "./ServedSessions.ts"
import { BadRequest, NotFound } from "./ServeErrors.ts"
import { send, turnOf } from "./SessionTurns.ts"
import * as StoredSessions from "./StoredSessions.ts"
import * as TenantData from "./TenantData.ts"

type State = OpenSessions.OpenSessions

const doneOf = (outcome: Outcome): CompressionDone => ({
  status: statusOf(outcome),
  outcome: outcome._tag,
  ...tokensOf(outcome),
  reason: "reason" in outcome ? outcome.reason : null,
  snapshot: outcome._tag === "Compressed" ? outcome.snapshot : null
})

const cancel = (state: State, tenant: string, id: string) =>
  Effect.flatMap(StoredSessions.existing(state.stored, tenant, id), () =>
    Effect.suspend(() => {
      const running = openedOf(state, tenant, id)?.running
      if (running === undefined) return Effect.succeed(false)
      Deferred.doneUnsafe(running.cancel, Effect.void)
      return Effect.as(Deferred.await(running.done), true)
    })
  )

const close = Effect.fnUntraced(function* (state: State, tenant: string, id: string) {
  const session = openedOf(state, tenant, id)
  if (session !== undefined) {
    const fiber = session.running?.fiber
    if (fiber !== undefined) yield* Fiber.interrupt(fiber)
    yield* session.flush
    Deferred.doneUnsafe(session.closing, Effect.void)
  }
  // Also one that is being opened: it would stay open here after another process has taken it.
  yield* RcMap.invalidate(state.sessions, keyOf(tenant, id))
})

const closeIdle = Effect.fnUntraced(function* (state: State, tenant: string, id: string) {
  const key = keyOf(tenant, id)
  // One that is being opened may be about to begin a turn, which finds that it is closed.
  if (yield* RcMap.has(state.sessions, key)) yield* Effect.ignore(Effect.scoped(RcMap.get(state.sessions, key)))
  const session = openedOf(state, tenant, id)
  if (session !== undefined) {
    yield* session.flush
    if (session.running !== undefined) return yield* isWorkedOn()
    Deferred.doneUnsafe(session.closing, Effect.void)
  }
  yield* close(state, tenant, id)
})

/** Ends the turns that only wait for clients: who takes them up waits on. */
const endWaiting = Effect.fnUntraced(function* ({ opened }: State) {
  for (const { running, waitsForClients } of opened.values()) {
    if (running?.fiber !== undefined && waitsForClients) yield* Fiber.interrupt(running.fiber)
  }
})

/** Waits for the running turns, up to the time in the settings, then ends the rest and all streams. */
const drain = Effect.fnUntraced(function* (state: State) {
  state.isDraining = true
  yield* FiberSet.awaitEmpty(state.turns).pipe(
    Effect.raceFirst(Effect.forever(Effect.delay(endWaiting(state), "100 millis"))),
    Effect.timeoutOption(`${drainSecondsOf(state.settings)} seconds`)
  )
  yield* FiberSet.clear(state.turns)
  for (const session of state.opened.values()) {
    yield* session.flush
    Deferred.doneUnsafe(session.closing, Effect.void)
  }
})

const compress = (state: State): ServedSessions["Service"]["compress"] =>
  Effect.fnUntraced(function* (tenant, id, { focus, force, request }) {
    yield* accepting(state)
    const before =
      request === undefined ? undefined : yield* StoredSessions.compressionBy(state.stored, tenant, id, request)
    if (before !== undefined) return before
    const { checkTokens, reserve } = state.stored.limiter
    yield* checkTokens(tenant)
    return yield* within(
      state,
      tenant,
      id,
      Effect.fnUntraced(function* (session) {
        const { chat } = session.agent
        const reserved = reserve(tenant, viewTokens(yield* chat.conversation))
        yield* Effect.asVoid(Effect.acquireRelease(reserved, (settled) => settled))
        const done = yield* chat
          .compress({ focus, forced: force ?? true, request })
          .pipe(Effect.provideService(CompressionSteps, state.stepsOf(tenant, id)), Effect.catch(chatError))
        session.publish({ message: null, event: { _tag: "Changed", by: "compress" } })
        return doneOf(done)
      }, Effect.scoped)
    )
  })

/** What is done with the conversation of a session, which is opened for it. */
const conversing = (
  state: State
): Pick<ServedSessions["Service"], "answer" | "compress" | "plan" | "recall" | "search" | "turnBack"> => ({
  answer: (tenant, id, call, answer) =>
    within(state, tenant, id, ({ questions }) => questions.answer(id, call, answer)),
  compress: compress(state),
  plan: (tenant, id) => within(state, tenant, id, ({ agent }) => Effect.catch(agent.chat.plan(), chatError)),
  turnBack: (tenant, id, by) =>
    within(
      state,
      tenant,
      id,
      Effect.fnUntraced(function* (session) {
        const { chat } = session.agent
        const done = yield* Effect.catch(chat[by], chatError)
        if (done) session.publish({ message: null, event: { _tag: "Changed", by } })
        return { done, tokens: Math.ceil(viewTokens(yield* chat.conversation)) }
      })
    ),
  recall: (tenant, id, handle, selection) =>
    within(state, tenant, id, ({ agent }) =>
      agent.chat.recall(handle, selection).pipe(
        Effect.catchTags({
          TempStoreError: () =>
            new NotFound({ message: `session ${id} holds nothing under ${handle}; its ledger lists the handles` }),
          BadPattern: ({ message }) => new BadRequest({ message: `grep: ${message}` }),
          SessionStoreError: storeError
        })
      )
    ),
  search: (tenant, id, pattern, maxTokens) =>
    within(state, tenant, id, ({ agent }) =>
      agent.chat.search({ pattern, maxTokens, isRedacted: false }).pipe(
        Effect.catchTags({
          BadPattern: ({ message }) => new BadRequest({ message: `pattern: ${firstUnits(message, 500)}` }),
          SessionStoreError: storeError
        })
      )
    )
})

const branch =
  (state: State): ServedSessions["Service"]["branch"] =>
  (tenant, id, at) =>
    within(state, tenant, id, ({ agent }) => Effect.catch(Effect.asVoid(agent.chat.branch({ to: at })), chatError))

const make = Effect.fnUntraced(function* (options: OpenSessions.ServedOptions) {
  const state = yield* OpenSessions.make(options)
  const { stored } = state
  return ServedSessions.of({
    ...StoredSessions.storing(stored, {
      row: (tenant, summary) => {
        const session = openedOf(state, tenant, summary.id)
        return StoredSessions.rowOf(summary, session?.running?.message ?? null, session !== undefined)
      },
      lastEvent: (tenant, id) => Effect.sync(() => openedOf(state, tenant, id)?.lastEvent),
      accepting: accepting(state),
      branch: branch(state)
    }),
    ...conversing(state),
    remove: Effect.fnUntraced(function* (tenant, id) {
      yield* StoredSessions.existing(stored, tenant, id)
      const removed = StoredSessions.remove(stored, tenant, id, closeIdle(state, tenant, id))
      yield* Effect.catchTag(removed, "SessionStoreError", storeError)
    }),
    send: send(state),
    turn: turnOf(state),
    events: (tenant, id, lastId) =>
      Effect.andThen(
        StoredSessions.existing(stored, tenant, id),
        Effect.zipWith(open(state, tenant, id), Clock.currentTimeMillis, (session, now) => session.stream(lastId, now))
      ),
    cancel: (tenant, id) => cancel(state, tenant, id),
    exportAll: (tenant) => TenantData.exportAll(stored, tenant),
    removeAll: (tenant) =>
      TenantData.removeAll(stored, tenant, (id) => Effect.andThen(cancel(state, tenant, id), close(state, tenant, id))),
    close: (tenant, id) => close(state, tenant, id),
    closeIdle: (tenant, id) => closeIdle(state, tenant, id),
    isReady: Effect.sync(() => !state.isDraining),
    drain: drain(state)
  })
})

/** Provides the sessions of this process. */
export const layer = (options: OpenSessions.ServedOptions) => Layer.effect(ServedSessions, make(options))
