import { Context, Effect, Ref } from "effect"
import { delta, full, type IdeState } from "../domain/IdeContext.ts"
import { runtimeMark } from "../domain/RuntimeMark.ts"

/** What the person's editor says. */
export class IdeContext extends Context.Service<
  IdeContext,
  {
    /** What it says now, normalised; paths below the workspace are given from there. Undefined: there is no editor. */
    readonly state: Effect.Effect<IdeState | undefined>
    /** What is wrong with what it says, in one line; told once. What it said before holds on. */
    readonly problem: Effect.Effect<string | undefined>
  }
>()("palimpsest/services/IdeContext") {}

/** News for a model. */
export interface News {
  /** A message of its own, marked as the runtime's. */
  readonly text: string
  /** To be run when it was sent: until then the same is news again. */
  readonly told: Effect.Effect<void>
}

/** What a model was told of the editor, and what is new since. */
export interface IdeNews {
  /** All there is, for the environment message: at the beginning and after a compression. It counts as told. */
  readonly full: Effect.Effect<string | undefined>
  /** What changed since the model was told last; undefined: nothing did. */
  readonly next: Effect.Effect<News | undefined>
}

/** Begins with a model that was told nothing. */
export const makeNews: Effect.Effect<IdeNews, never, IdeContext> = Effect.gen(function* () {
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
      return text === undefined ? undefined : { text: `${runtimeMark}\n${text}`, told: Ref.set(last, now) }
    })
  }
})
