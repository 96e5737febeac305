/** The contract of the services that each tenant has for itself. */

import { Context, type Effect, type FileSystem, type Path, Schema, type Stdio } from "effect"
import type { EnvFiles } from "../platform/Environment.ts"
import type { RuntimeServices } from "../runtime/AgentHost.ts"
import type { ChatServices } from "../runtime/SessionOpening.ts"
import type { SessionRecords } from "./SessionRecords.ts"

/** The services with which sessions of a tenant are opened, stored and read. */
export type TenantServices =
  | ChatServices
  | EnvFiles
  | FileSystem.FileSystem
  | Path.Path
  | RuntimeServices
  | SessionRecords
  | Stdio.Stdio

/** The folder or the store of a tenant cannot be used. */
export class TenantUnavailable extends Schema.TaggedError<TenantUnavailable>()("TenantUnavailable", {
  message: Schema.String,
  cause: Schema.Defect()
}) {}

/**
 * The services of each tenant. No two tenants share a store, a memory or a folder, so no request can reach another
 * tenant's data, whatever ids it contains.
 */
export class TenantRuntimes extends Context.Service<
  TenantRuntimes,
  {
    /** Returns the services of a tenant. They are made on the first request and cached. */
    readonly of: (tenant: string) => Effect.Effect<Context.Context<TenantServices>, TenantUnavailable>
    /** Deletes what is in a tenant's home: memory, plans, the files of its agents. A folder of the settings stays as it is. */
    readonly clear: (tenant: string) => Effect.Effect<void, TenantUnavailable>
  }
>()("palimpsest/services/serve/TenantRuntimes") {}
