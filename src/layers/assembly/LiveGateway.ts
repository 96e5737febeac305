/** Assembles the gateway: as a server of its own, and as routes within `serve`. */

import { Effect, Layer, Path } from "effect"
import { Reactivity } from "effect/reactivity"
import { SqlClient } from "effect/sql"
import { limitsOfKeys } from "../../domain/gateway/GatewayAccess.ts"
import type { GatewaySettings } from "../../domain/gateway/GatewaySettings.ts"
import type { TokenSetting } from "../../domain/serve/ServeSettings.ts"
import type { StoreAddress } from "../../domain/session/StoreAddress.ts"
import { Compression } from "../../services/compression/Compression.ts"
import { Gateway } from "../../services/gateway/Gateway.ts"
import type { GatewayOptions } from "../../services/gateway/GatewayPlan.ts"
import { GatewayStoreError } from "../../services/gateway/GatewayStore.ts"
import * as SnapshotWriter from "../../services/gateway/SnapshotWriter.ts"
import { HookSystem } from "../../services/hooks/HookSystem.ts"
import { ApiTokens } from "../../services/serve/ApiTokens.ts"
import { TenantLimiter } from "../../services/serve/TenantLimiter.ts"
import { TokenCounter } from "../../services/tokens/TokenCounter.ts"
import type { TokenAccess } from "../gateway/ClientAccess.ts"
import * as FileGatewayStore from "../gateway/FileGatewayStore.ts"
import type { GatewayHandlerOptions } from "../gateway/GatewayHandler.ts"
import * as GatewayHttp from "../gateway/GatewayHttp.ts"
import * as GatewayRoutes from "../gateway/GatewayRoutes.ts"
import * as SqlGatewayStore from "../gateway/SqlGatewayStore.ts"
import { Upstream } from "../gateway/Upstream.ts"
import { homeFolder } from "../platform/HomeFolder.ts"
import * as PostgresClient from "../platform/PostgresClient.ts"
import * as SqliteClient from "../platform/SqliteClient.ts"
import * as MemoryTempStore from "../testing/MemoryTempStore.ts"
import { storeAddress } from "./LiveStores.ts"

/** Options of a gateway. */
interface LiveGatewayOptions extends GatewayOptions, GatewayHandlerOptions {
  /** The budgets of keys. Absent: no limit. */
  readonly budgets?: GatewaySettings["budgets"] | undefined
  /** Tenants, whose keys count together. */
  readonly tenants?: GatewaySettings["tenants"] | undefined
  /** Days after which unused conversations are deleted. */
  readonly keepDays: number
}

/** Code writes the snapshots, unless models may. The user's hooks do not run for the conversations of clients. */
const compression = Compression.layer.pipe(
  Layer.provideMerge(Layer.mergeAll(SnapshotWriter.layer, TokenCounter.layerEstimate, MemoryTempStore.layer)),
  Layer.provide(HookSystem.layer)
)

const maxConnections = 10

/** The gateway's store: the database of the sessions, or else a folder beside them. */
const store = <E extends { readonly message: string }, R>(
  { keepDays }: LiveGatewayOptions,
  place: Effect.Effect<StoreAddress, E, R>
) =>
  Effect.gen(function* () {
    const address = yield* place
    const path = yield* Path.Path
    const tables = SqlGatewayStore.layer(keepDays)
    switch (address._tag) {
      case "Files":
        return yield* Layer.build(FileGatewayStore.layer(path.join(yield* homeFolder, "gateway"), keepDays))
      case "Sqlite":
        return yield* Layer.build(Layer.provide(tables, SqliteClient.layer(address.file)))
      case "Postgres": {
        const client = Layer.effect(SqlClient.SqlClient, PostgresClient.make(address.url, maxConnections))
        return yield* Layer.build(Layer.provide(tables, Layer.provide(client, Reactivity.layer)))
      }
    }
  }).pipe(
    Effect.mapError((cause) => new GatewayStoreError({ message: cause.message, cause })),
    Layer.effectContext
  )

const gateway = <E extends { readonly message: string }, R>(
  options: LiveGatewayOptions,
  place: Effect.Effect<StoreAddress, E, R>
) => Gateway.layer(options).pipe(Layer.provide(compression), Layer.provide(store(options, place)))

/** The least bytes of unfinished messages that a gateway holds for all requests together: an answer that is read, and some room. */
const minHeldBytes = 72 * 1_024 * 1_024

/** A body may fill the bound by itself. */
const heldShare = 1.125

const upstream = ({ maxBodyBytes }: LiveGatewayOptions) =>
  Upstream.layer(Math.max(minHeldBytes, maxBodyBytes * heldShare))

/** Options of a gateway that is a server of its own. */
type StandaloneGatewayOptions = LiveGatewayOptions &
  GatewayHttp.GatewayHttpOptions & {
    /** The tokens for its metrics. */
    readonly metricsTokens: Effect.Effect<ReadonlyArray<TokenSetting>, { readonly message: string }>
  }

/** Runs the gateway until the layer ends. It stores its conversations where the sessions are. */
export const layer = ({ budgets, metricsTokens, tenants, ...options }: StandaloneGatewayOptions) =>
  GatewayHttp.layer({ ...options, tenants }).pipe(
    Layer.provide([gateway(options, storeAddress), upstream(options), ApiTokens.layer(metricsTokens)]),
    Layer.provide(
      TenantLimiter.layer(
        limitsOfKeys({ ...(budgets === undefined ? {} : { budgets }), ...(tenants === undefined ? {} : { tenants }) })
      )
    )
  )

/** Options of the gateway within `serve`. */
export interface ServedGatewayOptions extends LiveGatewayOptions, Omit<TokenAccess, "tenantOf"> {}

/**
 * The gateway's routes within `serve`. For a token of the server, requests use the operator's key and count for the token's tenant.
 */
export const routes = (options: ServedGatewayOptions, place: StoreAddress) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const { tenantOf } = yield* ApiTokens
      return yield* GatewayRoutes.routes({ ...options, tokens: { tenantOf, ...options } })
    })
  ).pipe(Layer.provide([gateway(options, Effect.succeed(place)), upstream(options)]))
