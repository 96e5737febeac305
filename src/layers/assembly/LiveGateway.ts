import { Effect, Layer, Path } from "effect"
import { Compression } from "../../services/compression/Compression.ts"
import { Gateway } from "../../services/gateway/Gateway.ts"
import type { GatewayOptions } from "../../services/gateway/GatewayPlan.ts"
import * as SnapshotWriter from "../../services/gateway/SnapshotWriter.ts"
import { HookSystem } from "../../services/hooks/HookSystem.ts"
import { TenantLimiter } from "../../services/serve/TenantLimiter.ts"
import { TokenCounter } from "../../services/tokens/TokenCounter.ts"
import * as FileGatewayStore from "../gateway/FileGatewayStore.ts"
import * as GatewayHttp from "../gateway/GatewayHttp.ts"
import { homeFolder } from "../platform/HomeFolder.ts"
import * as MemoryTempStore from "../testing/MemoryTempStore.ts"

/** Options of a gateway. */
export interface LiveGatewayOptions extends GatewayOptions, GatewayHttp.GatewayHttpOptions {
  /** What each key may use. Absent: anything. */
  readonly budgets?: { readonly requests?: number; readonly tokens?: number } | undefined
  /** Days after which what nobody used is forgotten. */
  readonly keepDays: number
}

/** Code writes the snapshots, unless models may, and no hooks of the user run for the conversations of others. */
const compression = Compression.layer.pipe(
  Layer.provideMerge(Layer.mergeAll(SnapshotWriter.layer, TokenCounter.layerEstimate, MemoryTempStore.layer)),
  Layer.provide(HookSystem.layer)
)

const store = ({ keepDays }: LiveGatewayOptions) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const path = yield* Path.Path
      return FileGatewayStore.layer(path.join(yield* homeFolder, "gateway"), keepDays)
    })
  )

const limiter = ({ budgets: { requests = Infinity, tokens = Infinity } = {} }: LiveGatewayOptions) =>
  TenantLimiter.layer({ limits: { requests, tokens } })

/** The gateway: it listens until the layer ends. What it knows of conversations is in the folder `gateway` of the home folder. */
export const layer = (options: LiveGatewayOptions) =>
  GatewayHttp.layer(options).pipe(
    Layer.provide(Gateway.layer(options)),
    Layer.provide(limiter(options)),
    Layer.provide(compression),
    Layer.provide(store(options))
  )
