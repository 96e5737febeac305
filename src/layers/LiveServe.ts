import { Effect, FileSystem, Layer, Path, Semaphore } from "effect"
import { localTenant, type ServeSettings, type TokenSetting } from "../domain/serve/ServeSettings.ts"
import { Model } from "../services/model/Model.ts"
import { ApiTokens } from "../services/serve/ApiTokens.ts"
import * as LocalSessions from "../services/serve/LocalSessions.ts"
import { TenantLimiter } from "../services/serve/TenantLimiter.ts"
import { TenantRuntimes, TenantUnavailable } from "../services/serve/TenantRuntimes.ts"
import { Settings } from "../services/settings/Settings.ts"
import * as LiveRuntime from "./LiveRuntime.ts"
import { homeFolder } from "./platform/HomeFolder.ts"
import * as HttpServing from "./serve/HttpServing.ts"

/** Options of a server. */
export interface LiveServeOptions extends Omit<HttpServing.HttpServingOptions, "bodyBytes"> {
  readonly settings: ServeSettings
  readonly tokens: ReadonlyArray<TokenSetting>
  /** The model of new sessions; absent: that of the settings. */
  readonly model?: string | undefined
}

const defaultBodyBytes = 4 * 1024 * 1024

/** The user's settings, as a tenant's agents get them: they cannot be changed from there. */
const readOnly = (settings: Settings["Service"]): Settings["Service"] => ({
  ...settings,
  allow: () => Effect.void
})

/**
 * A runtime for each tenant. The tenant `local` works in the user's home folder and in the folder of the server. Every other
 * one has a home of its own, with its sessions, memory and trust, and gets only the user's settings and models.
 */
const tenantRuntimes = ({ settings, version }: LiveServeOptions) =>
  Layer.effect(
    TenantRuntimes,
    Effect.gen(function* () {
      const home = yield* homeFolder
      const path = yield* Path.Path
      const fs = yield* FileSystem.FileSystem
      const own = yield* Settings
      const model = Layer.succeed(Model, yield* Model)
      const scope = yield* Effect.scope
      const alone = yield* Semaphore.make(1)
      const made = new Map<string, Effect.Success<ReturnType<typeof make>>>()

      const folders = Effect.fnUntraced(function* (tenant: string) {
        const root = path.join(home, "tenants", tenant)
        const given = Object.hasOwn(settings.tenants ?? {}, tenant) ? settings.tenants?.[tenant]?.folder : undefined
        const folder = given ?? path.join(root, "work")
        yield* fs.makeDirectory(root, { recursive: true, mode: 0o700 })
        if (given === undefined) yield* fs.makeDirectory(folder, { recursive: true, mode: 0o700 })
        return { folder: yield* fs.realPath(folder), home: root }
      })

      const make = Effect.fnUntraced(function* (tenant: string) {
        const places = tenant === localTenant ? {} : yield* folders(tenant)
        const shared = Layer.succeed(Settings, readOnly(own))
        const runtime = Layer.provideMerge(shared, LiveRuntime.layer({ ...places, model, version }))
        // Without a map of its own, a tenant would share the stores of the one before.
        return yield* Layer.buildWithMemoMap(runtime, yield* Layer.makeMemoMap, scope)
      })

      return TenantRuntimes.of({
        of: (tenant) =>
          Effect.suspend(() => {
            const known = made.get(tenant)
            if (known !== undefined) return Effect.succeed(known)
            return alone.withPermit(
              Effect.suspend(() => {
                const first = made.get(tenant)
                return first === undefined
                  ? Effect.tap(make(tenant), (services) => Effect.sync(() => made.set(tenant, services)))
                  : Effect.succeed(first)
              })
            )
          }).pipe(
            Effect.mapError(
              (cause) => new TenantUnavailable({ message: `tenant ${tenant} cannot work: ${cause.message}`, cause })
            )
          )
      })
    })
  )

/** A server, until the layer ends. */
export const layer = (options: LiveServeOptions) =>
  HttpServing.layer({ ...options, bodyBytes: options.settings.bodyBytes ?? defaultBodyBytes }).pipe(
    Layer.provideMerge(LocalSessions.layer({ settings: options.settings, model: options.model })),
    Layer.provideMerge(Layer.merge(ApiTokens.layer(options.tokens), TenantLimiter.layer(options.settings))),
    Layer.provideMerge(tenantRuntimes(options))
  )
