/**
 * Compresses a conversation in advance, while its client works, so that the request that needs the compression does
 * not wait.
 */

import { Deferred, Effect, type Fiber, type Scope, Semaphore } from "effect"
import { maxUnusable, retryFrom } from "../../domain/conversation/FailureMemory.ts"
import { BoundedMap } from "../../domain/text/BoundedMap.ts"
import type { ConversationMemory } from "./ConversationMemory.ts"
import type { AskUpstream, GatewayOptions, Preparable } from "./GatewayPlan.ts"
import { SnapshotAsk, snapshotQuestion } from "./SnapshotWriter.ts"
import { type MadeView, makeView } from "./ViewMaking.ts"

/** The share of the threshold at which a compression is prepared. */
export const prepareAt = 0.8

/** Conversations whose next compression is kept. */
const maxPrepared = 32
/** Conversations of which it is known how their model failed to write snapshots. */
const maxConversations = 10_000

interface Preparation {
  /** The name of the conversation when it started. */
  readonly end: string
  readonly tokens: number
  state: "waiting" | "running" | "done"
  readonly byCode: Deferred.Deferred<void>
  made: MadeView | undefined
  fiber: Fiber.Fiber<unknown> | undefined
}

/** What compressions are prepared with, and the prepared ones by the place of their conversation. */
interface State {
  readonly options: GatewayOptions
  readonly memory: ConversationMemory
  readonly scope: Scope.Scope
  /** One at a time: requests that are answered meanwhile come first. */
  readonly turn: Semaphore.Semaphore
  readonly preparations: BoundedMap<string, Preparation>
  /** By conversation and model: how many times in a row the model gave no usable snapshot. */
  readonly unusable: BoundedMap<string, number>
}

const isOf = (made: MadeView | undefined, names: ReadonlyArray<string>): made is MadeView =>
  made !== undefined && names[made.view.messages] === made.view.name

/** Whether a request is worth a preparation, after an earlier one for its conversation. */
const isWorth = (earlier: Preparation | undefined, { names, tokens }: Preparable): boolean => {
  if (earlier === undefined) return true
  if (earlier.state !== "done") return !names.includes(earlier.end)
  return earlier.made === undefined ? tokens.total >= retryFrom(earlier.tokens) : !isOf(earlier.made, names)
}

const run = Effect.fnUntraced(function* (
  { memory, options, turn, unusable }: State,
  preparation: Preparation,
  next: Preparable,
  ask: AskUpstream
) {
  const { snapshots = "code" } = options
  const byCode = Effect.suspend(() => {
    preparation.state = "running"
    return makeView(memory, next, "code")
  }).pipe(
    turn.withPermit,
    Effect.ensuring(
      Effect.suspend(() => {
        preparation.state = "done"
        return Deferred.succeed(preparation.byCode, undefined)
      })
    )
  )
  preparation.made = yield* byCode
  const asked = `${next.owner}/${next.body.model}`
  const failures = unusable.get(asked) ?? 0
  if (snapshots === "code" || preparation.made === undefined || failures >= maxUnusable) return
  const made = yield* makeView(memory, next, "model").pipe(
    Effect.provideService(SnapshotAsk, snapshotQuestion(next, ask))
  )
  unusable.set(asked, made?.by === "model" ? 0 : failures + 1)
  if (made?.by !== "model" && failures + 1 === maxUnusable) {
    yield* Effect.logWarning(
      `${next.body.model} wrote no usable snapshot ${maxUnusable} times in a row; code writes them for this conversation`
    )
  }
  if (made?.by === "model") preparation.made = made
})

/** Starts to prepare the next compression of a conversation, if it has not started. Does not wait for it. */
const prepare = Effect.fnUntraced(function* (state: State, next: Preparable, ask: AskUpstream) {
  const { preparations, scope } = state
  const earlier = preparations.get(next.place)
  if (!isWorth(earlier, next)) return
  earlier?.fiber?.interruptUnsafe()
  const preparation: Preparation = {
    end: next.names.at(-1) ?? "",
    tokens: next.tokens.total,
    state: "waiting",
    byCode: yield* Deferred.make<void>(),
    made: undefined,
    fiber: undefined
  }
  preparations.set(next.place, preparation)
  preparation.fiber = yield* Effect.forkIn(Effect.ignore(run(state, preparation, next, ask), { log: "Warn" }), scope)
})

/**
 * Takes the compression that was prepared for a conversation. Waits for one that code writes; a model that has not answered is
 * interrupted.
 */
const take = Effect.fnUntraced(function* (
  { preparations }: State,
  { names, place }: Pick<Preparable, "names" | "place">
) {
  const preparation = preparations.get(place)
  if (preparation === undefined) return undefined
  if (preparation.state === "running") yield* Deferred.await(preparation.byCode)
  preparation.fiber?.interruptUnsafe()
  preparations.delete(place)
  return isOf(preparation.made, names) ? preparation.made : undefined
})

/** Makes compressions ahead of the requests that need them. Those that run end with the scope. */
export const makeSnapshotPreparation = Effect.fnUntraced(function* (
  options: GatewayOptions,
  memory: ConversationMemory
) {
  const state: State = {
    options,
    memory,
    scope: yield* Effect.scope,
    turn: yield* Semaphore.make(1),
    preparations: new BoundedMap(maxPrepared),
    unusable: new BoundedMap(maxConversations)
  }
  return {
    prepare: (next: Preparable, ask: AskUpstream) => prepare(state, next, ask),
    take: (next: Pick<Preparable, "names" | "place">) => take(state, next)
  }
})

/** The preparations of compressions. */
export type SnapshotPreparation = Effect.Success<ReturnType<typeof makeSnapshotPreparation>>
