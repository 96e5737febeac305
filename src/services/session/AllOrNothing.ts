import { Effect, Exit, Scope } from "effect"

/** Acquires resources in the outer scope as a unit: when `open` fails or is interrupted, none of them stays open. */
export const allOrNothing = <A, E, R>(
  open: Effect.Effect<A, E, R | Scope.Scope>
): Effect.Effect<A, E, R | Scope.Scope> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const inner = yield* Scope.fork(yield* Effect.scope)
      return yield* restore(Scope.provide(open, inner)).pipe(
        Effect.onExit((exit) => (Exit.isFailure(exit) ? Scope.close(inner, exit) : Effect.void))
      )
    })
  )
