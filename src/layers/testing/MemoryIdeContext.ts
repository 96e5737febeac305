import { Effect, Layer, Ref } from "effect"
import { type IdeLimits, type IdeState, normalise } from "../../domain/workspace/IdeContext.ts"
import { IdeContext } from "../../services/workspace/IdeContext.ts"

/** An editor context with the state of this reference: for tests, and for programs that are the editor. */
export const layer = (current: Ref.Ref<IdeState | undefined>, limits?: IdeLimits): Layer.Layer<IdeContext> =>
  Layer.succeed(IdeContext, {
    state: Effect.map(Ref.get(current), (state) => (state === undefined ? undefined : normalise(state, limits))),
    problem: Effect.undefined
  })

/** An editor context without an editor. */
export const layerNone: Layer.Layer<IdeContext> = Layer.succeed(IdeContext, {
  state: Effect.undefined,
  problem: Effect.undefined
})
