import { Deferred, Effect, type Fiber, Semaphore } from "effect"
import { BoundedMap } from "../../domain/text/BoundedMap.ts"
import type { Compression } from "../compression/Compression.ts"
import type { TempStore } from "../session/TempStore.ts"
import type { TokenCounter } from "../tokens/TokenCounter.ts"
import type { ConversationMemory } from "./ConversationMemory.ts"
import type { AskUpstream, GatewayOptions, Preparable } from "./GatewayPlan.ts"
import { SnapshotAsk, snapshotQuestion } from "./SnapshotWriter.ts"
import { type MadeView, makeView } from "./ViewMaking.ts"

/** Makes the next compression of a conversation while its client works, so that the request that needs it does not wait. */

/** Share of the threshold from which a compression is prepared. */
export const prepareAt = 0.8

/** Conversations whose next compression is held. */
const maxPrepared = 32

/** A request that has this many times the tokens of one that was prepared in vain is worth another attempt. */
const growthInVain = 1.1

interface Preparation {
  /** The messages that it was begun with. */
  readonly end: string
  readonly tokens: number
  state: "waiting" | "running" | "done"
  readonly byCode: Deferred.Deferred<void>
  made: MadeView | undefined
  fiber: Fiber.Fiber<unknown> | undefined
}

/** Prepares over what is known of conversations. What runs ends with the scope. */
export const makeSnapshotPreparation = Effect.fnUntraced(function* (
  { snapshots = "code", threshold }: GatewayOptions,
  memory: ConversationMemory
) {
  const provide = Effect.provideContext(yield* Effect.context<Compression | TempStore | TokenCounter>())
  const scope = yield* Effect.scope
  // One at a time: the requests that pass by meanwhile come first.
  const turn = yield* Semaphore.make(1)
  const preparations = new BoundedMap<string, Preparation>(maxPrepared)

  const isOf = (made: MadeView | undefined, names: ReadonlyArray<string>): made is MadeView =>
    made !== undefined && names[made.view.messages] === made.view.name

  const isWorth = (known: Preparation | undefined, { names, tokens }: Preparable): boolean => {
    if (known === undefined) return true
    if (known.state !== "done") return !names.includes(known.end)
    return known.made === undefined ? tokens > known.tokens * growthInVain : !isOf(known.made, names)
  }

  const run = Effect.fnUntraced(function* (preparation: Preparation, next: Preparable, ask: AskUpstream) {
    const begin = Effect.sync(() => {
      preparation.state = "running"
    })
    const byCode = Effect.andThen(begin, makeView(memory, threshold, next, "code")).pipe(
      turn.withPermit,
      Effect.ensuring(
        Effect.suspend(() => {
          preparation.state = "done"
          return Deferred.succeed(preparation.byCode, undefined)
        })
      )
    )
    preparation.made = yield* byCode
    if (snapshots === "code" || preparation.made === undefined) return
    const made = yield* makeView(memory, threshold, next, "model").pipe(
      Effect.provideService(SnapshotAsk, snapshotQuestion(next, ask))
    )
    if (made?.by === "model") preparation.made = made
  }, provide)

  /** Begins to prepare the next compression of a conversation, if that has not begun. Never waits for it. */
  const prepare = Effect.fnUntraced(function* (next: Preparable, ask: AskUpstream) {
    const known = preparations.get(next.place)
    if (!isWorth(known, next)) return
    known?.fiber?.interruptUnsafe()
    const preparation: Preparation = {
      end: next.names.at(-1) ?? "",
      tokens: next.tokens,
      state: "waiting",
      byCode: yield* Deferred.make<void>(),
      made: undefined,
      fiber: undefined
    }
    preparations.set(next.place, preparation)
    preparation.fiber = yield* Effect.forkIn(Effect.ignore(run(preparation, next, ask), { log: "Warn" }), scope)
  })

  /**
   * Returns what was prepared for a conversation, and forgets it. Waits for code that writes one; a model that has not answered is
   * given up.
   */
  const take = Effect.fnUntraced(function* ({ names, place }: Pick<Preparable, "names" | "place">) {
    const preparation = preparations.get(place)
    if (preparation === undefined) return undefined
    if (preparation.state === "running") yield* Deferred.await(preparation.byCode)
    preparation.fiber?.interruptUnsafe()
    preparations.delete(place)
    return isOf(preparation.made, names) ? preparation.made : undefined
  })

  return { prepare, take }
})

/** The compressions that are prepared. */
export type SnapshotPreparation = Effect.Success<ReturnType<typeof makeSnapshotPreparation>>
