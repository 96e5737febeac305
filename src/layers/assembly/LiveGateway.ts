import { Effect, Layer, Path } from "effect"
import { Reactivity } from "effect/reactivity"
import { SqlClient } from "effect/sql"
import { Compression } from "../../services/compression/Compression.ts"
import { Gateway } from "../../services/gateway/Gateway.ts"
import type { GatewayOptions } from "../../services/gateway/GatewayPlan.ts"
import { type GatewayStore, GatewayStoreError } from "../../services/gateway/GatewayStore.ts"
import * as SnapshotWriter from "../../services/gateway/SnapshotWriter.ts"
import { HookSystem } from "../../services/hooks/HookSystem.ts"
import { TenantLimiter } from "../../services/serve/TenantLimiter.ts"
import { TokenCounter } from "../../services/tokens/TokenCounter.ts"
import * as FileGatewayStore from "../gateway/FileGatewayStore.ts"
import * as GatewayHttp from "../gateway/GatewayHttp.ts"
import * as SqlGatewayStore from "../gateway/SqlGatewayStore.ts"
import { homeFolder } from "../platform/HomeFolder.ts"
import * as PostgresClient from "../platform/PostgresClient.ts"
import * as SqliteClient from "../platform/SqliteClient.ts"
import * as MemoryTempStore from "../testing/MemoryTempStore.ts"
import { storeAddress } from "./LiveStores.ts"

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

const maxConnections = 10

const told = <E extends { readonly message: string }, R>(store: Layer.Layer<GatewayStore, E, R>) =>
  store.pipe(
    Layer.build,
    Effect.mapError((cause) => new GatewayStoreError({ message: cause.message, cause })),
    Layer.effectContext
  )

/** Where sessions are: in a database, or else in a folder beside them. */
const store = ({ keepDays }: LiveGatewayOptions) =>
  told(
    Layer.unwrap(
      Effect.gen(function* () {
        const address = yield* storeAddress
        const path = yield* Path.Path
        const tables = SqlGatewayStore.layer(keepDays)
        switch (address._tag) {
          case "Files":
            return told(FileGatewayStore.layer(path.join(yield* homeFolder, "gateway"), keepDays))
          case "Sqlite":
            return told(Layer.provide(tables, SqliteClient.layer(address.file)))
          case "Postgres": {
            const client = Layer.effect(SqlClient.SqlClient, PostgresClient.make(address.url, maxConnections))
            return told(Layer.provide(tables, Layer.provide(client, Reactivity.layer)))
          }
        }
      })
    )
  )

const limiter = ({ budgets: { requests = Infinity, tokens = Infinity } = {} }: LiveGatewayOptions) =>
  TenantLimiter.layer({ limits: { requests, tokens } })

/** The gateway: it listens until the layer ends. What it knows of conversations is where sessions are. */
export const layer = (options: LiveGatewayOptions) =>
  GatewayHttp.layer(options).pipe(
    Layer.provide(Gateway.layer(options)),
    Layer.provide(limiter(options)),
    Layer.provide(compression),
    Layer.provide(store(options))
  )
