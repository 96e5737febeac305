import { Context, Effect, Ref } from "effect"
import { runtimeMark } from "../../domain/text/RuntimeMark.ts"
import { delta, full, type IdeState } from "../../domain/workspace/IdeContext.ts"

/** The state of the user's editor. */
export class IdeContext extends Context.Service<
  IdeContext,
  {
    /** The current state, normalized, with paths relative to the workspace. Undefined: no editor. */
    readonly state: Effect.Effect<IdeState | undefined>
    /** What is wrong with the editor's state, in one line, reported once. The last valid state stays. */
    readonly problem: Effect.Effect<string | undefined>
  }
>()("palimpsest/services/workspace/IdeContext") {}

/** An update for the model. */
interface IdeUpdate {
  /** A message of its own, marked as the runtime's. */
  readonly text: string
  /** Marks the update as sent: until then it counts as new. */
  readonly markSent: Effect.Effect<void>
}

/** The state of the editor for the model: in full, or what changed since the last update. */
export interface IdeUpdates {
  /** The full state, for the environment message at the start and after a compression. It then counts as sent. */
  readonly full: Effect.Effect<string | undefined>
  /** The change since the last update sent; undefined when nothing changed. */
  readonly next: Effect.Effect<IdeUpdate | undefined>
}

/** Starts with a model that knows nothing. */
export const makeUpdates: Effect.Effect<IdeUpdates, never, IdeContext> = Effect.gen(function* () {
  const ide = yield* IdeContext
  const last = yield* Ref.make<IdeState | undefined>(undefined)
  return {
    full: Effect.gen(function* () {
      const now = yield* ide.state
      yield* Ref.set(last, now)
      return now === undefined ? undefined : full(now)
    }),
    next: Effect.gen(function* () {
      const now = yield* ide.state
      const text = delta(yield* Ref.get(last), now)
      return text === undefined ? undefined : { text: `${runtimeMark}\n${text}`, markSent: Ref.set(last, now) }
    })
  }
})
