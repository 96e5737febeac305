import { Effect, Layer, Ref } from "effect"
import { type IdeLimits, type IdeState, normalise } from "../domain/IdeContext.ts"
import { IdeContext } from "../services/IdeContext.ts"

/** What the editor says, as this says it: for tests, and for programs that are the editor. */
export const layer = (said: Ref.Ref<IdeState | undefined>, limits?: IdeLimits): Layer.Layer<IdeContext> =>
  Layer.succeed(IdeContext, {
    state: Effect.map(Ref.get(said), (state) => (state === undefined ? undefined : normalise(state, limits))),
    problem: Effect.undefined
  })

/** There is no editor. */
export const layerNone: Layer.Layer<IdeContext> = Layer.succeed(IdeContext, {
  state: Effect.undefined,
  problem: Effect.undefined
})
