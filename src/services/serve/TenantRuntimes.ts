import { Context, type Effect, type FileSystem, type Path, Schema, type Stdio } from "effect"
import type { EnvFiles } from "../platform/EnvFiles.ts"
import type { RuntimeServices } from "../runtime/AgentHost.ts"
import type { ChatServices } from "../runtime/SessionOpening.ts"

/** What sessions of a tenant are opened, stored and read with. */
export type TenantServices = ChatServices | EnvFiles | FileSystem.FileSystem | Path.Path | RuntimeServices | Stdio.Stdio

/** The folder or the store of a tenant cannot be used. */
export class TenantUnavailable extends Schema.TaggedError<TenantUnavailable>()("TenantUnavailable", {
  message: Schema.String,
  cause: Schema.Defect()
}) {}

/**
 * The services of each tenant. No two tenants share a store, a memory or a folder, so that no request can reach what is
 * another's, whatever ids it holds.
 */
export class TenantRuntimes extends Context.Service<
  TenantRuntimes,
  {
    /** The services of a tenant, made at the first request and kept. */
    readonly of: (tenant: string) => Effect.Effect<Context.Context<TenantServices>, TenantUnavailable>
  }
>()("palimpsest/services/serve/TenantRuntimes") {}
