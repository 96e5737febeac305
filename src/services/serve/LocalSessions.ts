import { Deferred, Effect, Fiber, FiberSet, Layer, RcMap } from "effect"
import { type Outcome, statusOf, tokensOf } from "../../domain/compression/Compression.ts"
import { type EntryId, viewTokens } from "../../domain/conversation/Conversation.ts"
import { drainSecondsOf } from "../../domain/serve/ServeSettings.ts"
import { firstUnits } from "../../domain/text/Bytes.ts"
import { CompressionSteps } from "../compression/summary/CompressionSteps.ts"
import type { SessionSummary } from "../session/SessionStore.ts"
import { internal, storeError } from "./Failures.ts"
import * as OpenSessions from "./OpenSessions.ts"
import { accepting, keyOf, openedOf, within } from "./OpenSessions.ts"
import type { CompressionDone } from "./ServeApi.ts"
import { ServedSessions } from "./ServedSessions.ts"
import { BadRequest, Conflict, NotFound } from "./ServeErrors.ts"
import { send, streamed, turnOf } from "./SessionTurns.ts"
import * as StoredSessions from "./StoredSessions.ts"
import * as TenantData from "./TenantData.ts"

/** The sessions of this process. Each is opened here when it is first written, and its turns run here. */

type State = OpenSessions.OpenSessions

/** The arguments of a method of `ServedSessions`. */
type Arguments<Name extends "compress" | "recall" | "search" | "turnBack"> = Parameters<ServedSessions["Service"][Name]>

const doneOf = (outcome: Outcome): CompressionDone => ({
  status: statusOf(outcome),
  outcome: outcome._tag,
  ...tokensOf(outcome),
  reason: "reason" in outcome ? outcome.reason : null,
  snapshot: outcome._tag === "Compressed" ? outcome.snapshot : null
})

const row = (state: State, tenant: string, summary: SessionSummary) => {
  const session = openedOf(state, tenant, summary.id)
  return StoredSessions.rowOf(summary, session?.running?.message ?? null, session !== undefined)
}

const shown = (state: State, tenant: string, summary: SessionSummary) =>
  StoredSessions.shownRow(state.stored, tenant, row(state, tenant, summary))

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

const remove = Effect.fnUntraced(function* (state: State, tenant: string, id: string) {
  yield* StoredSessions.existing(state.stored, tenant, id)
  const session = openedOf(state, tenant, id)
  if (session?.running !== undefined) {
    return yield* new Conflict({ message: "the server works on this session now; cancel the turn first" })
  }
  yield* close(state, tenant, id)
  yield* Effect.catchTag(
    StoredSessions.remove(state.stored, tenant, id, session === undefined ? 0 : 40),
    "SessionStoreError",
    storeError
  )
})

const branchTo = (state: State, tenant: string, id: string, at: EntryId) =>
  within(state, tenant, id, ({ agent }) =>
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
  state: State,
  tenant: string,
  id: string,
  options: { readonly id?: string | undefined; readonly at?: EntryId | undefined }
) {
  yield* accepting(state)
  const copied = yield* StoredSessions.copy(state.stored, tenant, id, options)
  const { at } = options
  if (at !== undefined) yield* branchTo(state, tenant, copied, at)
  return yield* shown(state, tenant, yield* StoredSessions.existing(state.stored, tenant, copied))
})

const busy = ({ message }: { readonly message: string }) => Effect.fail(new Conflict({ message }))

const compress = Effect.fnUntraced(function* (
  state: State,
  tenant: string,
  id: string,
  { focus, force, request }: Arguments<"compress">[2]
) {
  yield* accepting(state)
  const before =
    request === undefined ? undefined : yield* StoredSessions.compressionBy(state.stored, tenant, id, request)
  if (before !== undefined) return before
  yield* state.stored.limiter.checkTokens(tenant)
  return yield* within(state, tenant, id, (session) =>
    session.agent.chat.compress({ focus, forced: force ?? true, request }).pipe(
      Effect.provideService(CompressionSteps, state.stepsOf(tenant, id)),
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
})

const turnBack = (state: State, tenant: string, id: string, by: Arguments<"turnBack">[2]) =>
  within(state, tenant, id, (session) =>
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
  )

const recall = (state: State, ...[tenant, id, handle, selection]: Arguments<"recall">) =>
  within(state, tenant, id, ({ agent }) =>
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
  )

const search = (state: State, ...[tenant, id, pattern, maxTokens]: Arguments<"search">) =>
  within(state, tenant, id, ({ agent }) =>
    agent.chat.search({ pattern, maxTokens, isRedacted: false }).pipe(
      Effect.catchTags({
        BadPattern: ({ message }) => Effect.fail(new BadRequest({ message: `pattern: ${firstUnits(message, 500)}` })),
        SessionStoreError: storeError
      })
    )
  )

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

const make = Effect.fnUntraced(function* (options: OpenSessions.ServedOptions) {
  const state = yield* OpenSessions.make(options)
  const { stored } = state
  return ServedSessions.of({
    ...StoredSessions.reading(
      stored,
      (tenant, summary) => row(state, tenant, summary),
      (tenant, id) => Effect.sync(() => openedOf(state, tenant, id)?.lastEvent ?? null)
    ),
    create: (tenant, created) =>
      Effect.andThen(
        accepting(state),
        Effect.flatMap(StoredSessions.create(stored, tenant, created), (summary) => shown(state, tenant, summary))
      ),
    remove: (tenant, id) => remove(state, tenant, id),
    fork: (tenant, id, copied) => fork(state, tenant, id, copied),
    send: (tenant, id, message, lastId) => send(state, tenant, id, message, lastId),
    turn: (tenant, id, message, lastId) => turnOf(state, tenant, id, message, lastId),
    events: (tenant, id, lastId) =>
      Effect.andThen(
        StoredSessions.existing(stored, tenant, id),
        streamed(state, tenant, id, (session) => session.stream(lastId))
      ),
    answer: (tenant, id, call, answer) =>
      within(state, tenant, id, ({ questions }) => questions.answer(id, call, answer)),
    cancel: (tenant, id) => cancel(state, tenant, id),
    compress: (tenant, id, options) => compress(state, tenant, id, options),
    plan: (tenant, id) =>
      within(state, tenant, id, ({ agent }) =>
        agent.chat.plan().pipe(Effect.catchTags({ SessionStoreError: storeError, TokenCountError: internal }))
      ),
    turnBack: (tenant, id, by) => turnBack(state, tenant, id, by),
    recall: (tenant, id, handle, selection) => recall(state, tenant, id, handle, selection),
    search: (tenant, id, pattern, maxTokens) => search(state, tenant, id, pattern, maxTokens),
    exportAll: (tenant) => TenantData.exportAll(stored, tenant),
    removeAll: (tenant) =>
      TenantData.removeAll(stored, tenant, (id) => Effect.andThen(cancel(state, tenant, id), close(state, tenant, id))),
    branch: (tenant, id, at) => branchTo(state, tenant, id, at),
    isBusy: (tenant, id) => Effect.sync(() => openedOf(state, tenant, id)?.running !== undefined),
    close: (tenant, id) => close(state, tenant, id),
    isReady: Effect.sync(() => !state.isDraining),
    drain: drain(state)
  })
})

/** Provides the sessions of this process. */
export const layer = (options: OpenSessions.ServedOptions) => Layer.effect(ServedSessions, make(options))
