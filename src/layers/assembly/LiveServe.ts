/** Assembles the server: its stores, a runtime for each tenant, the cluster and the gateway. */

import { Cache, Context, Duration, Effect, Exit, FileSystem, Layer, Path, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { drainSecondsOf, localTenant, type ServeSettings, type TokenSetting } from "../../domain/serve/ServeSettings.ts"
import { Model } from "../../services/model/Model.ts"
import { ApiTokens } from "../../services/serve/ApiTokens.ts"
import * as ClusterSessions from "../../services/serve/ClusterSessions.ts"
import * as DurableCompression from "../../services/serve/DurableCompression.ts"
import * as LocalSessions from "../../services/serve/LocalSessions.ts"
import { metered } from "../../services/serve/MeteredModel.ts"
import { ServedSessions } from "../../services/serve/ServedSessions.ts"
import * as SessionEntity from "../../services/serve/SessionEntity.ts"
import { SessionRecords } from "../../services/serve/SessionRecords.ts"
import { TenantLimiter } from "../../services/serve/TenantLimiter.ts"
import { TenantRuntimes, TenantUnavailable } from "../../services/serve/TenantRuntimes.ts"
import { SessionStore } from "../../services/session/SessionStore.ts"
import { Settings } from "../../services/settings/Settings.ts"
import { TokenCounter } from "../../services/tokens/TokenCounter.ts"
import { homeFolder } from "../platform/HomeFolder.ts"
import * as SqliteClient from "../platform/SqliteClient.ts"
import * as ClusterEngine from "../serve/ClusterEngine.ts"
import * as FileSessionRecords from "../serve/FileSessionRecords.ts"
import * as HttpServing from "../serve/HttpServing.ts"
import * as SqlSessionRecords from "../serve/SqlSessionRecords.ts"
import * as SqlSharedUsage from "../serve/SqlSharedUsage.ts"
import * as SqlTurnJournal from "../serve/SqlTurnJournal.ts"
import * as SqlSessionStore from "../session/SqlSessionStore.ts"
import * as LiveGateway from "./LiveGateway.ts"
import * as LiveRuntime from "./LiveRuntime.ts"

/** Where a server keeps its sessions, and the role of this process. */
export type ServeStore =
  /** Files in the folders of the tenants. */
  | { readonly _tag: "Files" }
  /** One database of this machine; without `file`, `serve.db` in the home folder. */
  | { readonly _tag: "Sqlite"; readonly file?: string | undefined }
  /** A database that several servers share. */
  | ({ readonly _tag: "Postgres"; readonly url: Redacted.Redacted } & Omit<ClusterEngine.ClusterRole, "drainSeconds">)

/** Options of a server. */
export interface LiveServeOptions extends Omit<HttpServing.HttpServingOptions, "bodyBytes"> {
  readonly settings: ServeSettings
  /** Reads the valid tokens; read again while the server runs. */
  readonly tokens: Effect.Effect<ReadonlyArray<TokenSetting>, { readonly message: string }>
  /** The model of new sessions; absent: that of the settings. */
  readonly model?: string | undefined
  readonly store?: ServeStore | undefined
  /** The gateway below `/gateway`; absent: there is none. */
  readonly gateway?: LiveGateway.ServedGatewayOptions | undefined
}

/** Whether this Node has the database of the store `Sqlite`. */
export const hasSqlite = SqliteClient.isAvailable

const defaultBodyBytes = 4 * 1024 * 1024

/** The user's settings for the agents of a tenant, which cannot change them. */
const readOnly = (settings: Settings["Service"]): Settings["Service"] => ({
  ...settings,
  allow: () => Effect.succeed(""),
  disallow: () => Effect.succeed("")
})

/**
 * The sessions of a tenant in a database. The cluster assigns sessions to processes, so this process opens one even if its last owner
 * seems alive; later writes of that owner are refused.
 */
const sqlStore = (tenant: string, client: SqlClient.SqlClient) =>
  Layer.effect(
    SessionStore,
    Effect.gen(function* () {
      const store = yield* SessionStore
      const records = yield* SessionRecords
      return {
        ...store,
        open: (id: string) => store.open(id, { takeOver: true }),
        // Whoever deletes a session, also because its time is over, deletes both. A deletion that was cut short is taken up again.
        remove: (id: string) =>
          store.remove(id).pipe(
            Effect.tapError(({ reason }) => (reason._tag === "SessionNotFound" ? records.remove(id) : Effect.void)),
            Effect.andThen(records.remove(id))
          )
      }
    })
  ).pipe(
    Layer.provide(SqlSessionStore.layer({ tenant })),
    Layer.provideMerge(SqlSessionRecords.layer(tenant)),
    Layer.provide(Layer.succeed(SqlClient.SqlClient, client))
  )

/** The home of a tenant other than `local`. */
const homeOf = Effect.fnUntraced(function* (tenant: string) {
  const path = yield* Path.Path
  return path.join(yield* homeFolder, "tenants", tenant)
})

/** Makes the home and the working folder of a tenant other than `local`. */
const makeFolders = Effect.fnUntraced(function* (tenant: string, { tenants = {} }: ServeSettings) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const home = yield* homeOf(tenant)
  const own = Object.hasOwn(tenants, tenant) ? tenants[tenant]?.folder : undefined
  const folder = own ?? path.join(home, "work")
  yield* fs.makeDirectory(home, { recursive: true, mode: 0o700 })
  if (own === undefined) yield* fs.makeDirectory(folder, { recursive: true, mode: 0o700 })
  return { folder: yield* fs.realPath(folder), home }
})

/** The services of a tenant, until the scope closes. */
const makeRuntime = Effect.fnUntraced(function* (
  tenant: string,
  { settings, version }: LiveServeOptions,
  client: SqlClient.SqlClient | undefined
) {
  const places = tenant === localTenant ? undefined : yield* makeFolders(tenant, settings)
  const model = metered(yield* Model, tenant, yield* TenantLimiter, yield* TokenCounter)
  const stored =
    client === undefined ? FileSessionRecords.layer(places?.home ?? (yield* homeFolder)) : sqlStore(tenant, client)
  return yield* Layer.build(
    Layer.merge(stored, Layer.succeed(Settings, readOnly(yield* Settings))).pipe(
      Layer.provideMerge(LiveRuntime.layer({ ...places, model: Layer.succeed(Model, model), version }))
    )
  )
})

/**
 * A runtime for each tenant. The tenant `local` works in the user's home folder and in the folder of the server. Every other
 * one has a home of its own, with its sessions, memory and trust, and gets only the user's settings and models.
 */
const tenantRuntimes = (options: LiveServeOptions, client: SqlClient.SqlClient | undefined) =>
  Layer.effect(
    TenantRuntimes,
    Effect.gen(function* () {
      // Services are made within the first request of a tenant, whose own scope and services are not theirs.
      const context = yield* Effect.context<Effect.Services<ReturnType<typeof makeRuntime>>>()
      const unavailable = (tenant: string) =>
        Effect.mapError(
          (cause: { readonly message: string }) =>
            new TenantUnavailable({ message: `tenant ${tenant} cannot work: ${cause.message}`, cause })
        )
      const runtimes = yield* Cache.makeWith(
        (tenant: string) => Effect.provideContext(makeRuntime(tenant, options, client), context),
        {
          capacity: Number.POSITIVE_INFINITY,
          // What kept a tenant from working may be mended.
          timeToLive: (exit) => (Exit.isSuccess(exit) ? Duration.infinity : Duration.zero)
        }
      )
      return TenantRuntimes.of({
        clear: Effect.fn("TenantRuntimes.clear")(
          function* (tenant) {
            const home = yield* homeOf(tenant)
            // Another request may write into a folder that is being removed.
            yield* FileSystem.FileSystem.use((fs) => fs.remove(home, { recursive: true, force: true })).pipe(
              Effect.retry({ times: 10 })
            )
            // Its services go on with empty folders.
            yield* makeFolders(tenant, options.settings)
          },
          (work, tenant) => unavailable(tenant)(Effect.provideContext(work, context))
        ),
        of: (tenant) => unavailable(tenant)(Cache.get(runtimes, tenant))
      })
    })
  )

/** The runner's part: entities over the sessions of this process. It lets running turns end before the engine gives them away. */
const runner = (options: LiveServeOptions) =>
  Layer.effectDiscard(ServedSessions.use(({ drain }) => Effect.addFinalizer(() => drain))).pipe(
    Layer.provideMerge(SessionEntity.handlers),
    Layer.provide(LocalSessions.layer(options)),
    Layer.provide(DurableCompression.layer),
    Layer.provide(ClusterEngine.workflows),
    Layer.merge(ClusterEngine.pruning)
  )

/** The sessions of a cluster, with its engine over a database. */
const clustered = (options: LiveServeOptions, store: Exclude<ServeStore, { readonly _tag: "Files" }>) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const home = yield* homeFolder
      const database =
        store._tag === "Sqlite"
          ? ClusterEngine.sqlite(store.file ?? `${home}/serve.db`)
          : ClusterEngine.postgres(store.url)
      const client = yield* Layer.build(database)
      const sql = Layer.succeedContext(client)
      const engine =
        store._tag === "Sqlite"
          ? ClusterEngine.single
          : ClusterEngine.among({ ...store, drainSeconds: drainSecondsOf(options.settings) })
      const isRunner = store._tag === "Sqlite" || store.runner !== undefined
      const sessions = ClusterSessions.layer(options)
      return (isRunner ? Layer.merge(sessions, runner(options)) : sessions).pipe(
        Layer.provideMerge(Layer.provide(engine, sql)),
        Layer.provide(SqlTurnJournal.layer),
        Layer.provide(sql),
        Layer.provideMerge(tenantRuntimes(options, Context.get(client, SqlClient.SqlClient))),
        Layer.provideMerge(
          TenantLimiter.layer(options.settings).pipe(
            Layer.provide(store._tag === "Sqlite" ? Layer.empty : Layer.provide(SqlSharedUsage.layer, sql))
          )
        )
      )
    })
  )

/** The gateway's routes. It stores its conversations where the sessions are. */
const gatewayRoutes = (options: LiveGateway.ServedGatewayOptions, store: ServeStore) =>
  Layer.unwrap(
    Effect.gen(function* () {
      switch (store._tag) {
        case "Files":
          return LiveGateway.routes(options, { _tag: "Files", folder: undefined })
        case "Sqlite":
          return LiveGateway.routes(options, { _tag: "Sqlite", file: store.file ?? `${yield* homeFolder}/serve.db` })
        case "Postgres":
          return LiveGateway.routes(options, { _tag: "Postgres", url: Redacted.value(store.url) })
      }
    })
  )

/** A server, until the layer ends. */
export const layer = (options: LiveServeOptions) => {
  const { settings, store = { _tag: "Files" } } = options
  const sessions =
    store._tag === "Files"
      ? LocalSessions.layer(options).pipe(
          Layer.provideMerge(tenantRuntimes(options, undefined)),
          Layer.provideMerge(TenantLimiter.layer(settings))
        )
      : clustered(options, store)
  const { gateway } = options
  return HttpServing.layer(
    { ...options, bodyBytes: settings.bodyBytes ?? defaultBodyBytes },
    gateway === undefined ? Layer.empty : gatewayRoutes(gateway, store)
  ).pipe(Layer.provideMerge(sessions), Layer.provideMerge(ApiTokens.layer(options.tokens)))
}
