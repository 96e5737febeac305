import { Effect, Layer } from "effect"

/** The services of Node, loaded with the layer: callers of other layers do not need `@effect/platform-node`. */
export const nodeServices = Layer.unwrap(
  Effect.promise(() =>
    import("../platform/NodePlatform.ts").then(
      ({ layer }) => layer,
      (cause) => {
        throw new Error(`files need the package @effect/platform-node: ${String(cause)}`, { cause })
      }
    )
  )
)
