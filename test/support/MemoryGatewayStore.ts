import { Effect, Layer } from "effect"
import { GatewayStore } from "../../src/services/gateway/GatewayStore.ts"

/** The gateway's store, in memory. `held` can be shared between layers, as a restarted gateway shares its files. */
export const layer = (held: Map<string, string> = new Map()): Layer.Layer<GatewayStore> =>
  Layer.succeed(GatewayStore, {
    names: (owner, kind) =>
      Effect.sync(() => {
        const before = `${owner}/${kind}/`
        return [...held.keys()].filter((key) => key.startsWith(before)).map((key) => key.slice(before.length))
      }),
    get: (owner, kind, name) => Effect.sync(() => held.get(`${owner}/${kind}/${name}`)),
    put: (owner, kind, name, text) => Effect.sync(() => void held.set(`${owner}/${kind}/${name}`, text))
  })
