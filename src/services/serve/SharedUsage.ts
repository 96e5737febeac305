import { Context, type Effect } from "effect"
import type { TenantUsage } from "../../domain/serve/TenantUsage.ts"

/** The contract of usage counts that several servers share. */

/** Counts what tenants use in all servers of a cluster together. */
export interface UsageOfAll {
  /** Adds to what a tenant has used. Returns the sum and its age; undefined while that cannot be known. */
  readonly add: (
    tenant: string,
    kind: keyof TenantUsage,
    amount: number
  ) => Effect.Effect<{ readonly used: number; readonly ageMillis: number } | undefined>
  /**
   * Takes a turn or a stream for this process. Names that several processes hold count once. Returns false above
   * `limit`; undefined takes it in any case.
   */
  readonly take: (
    tenant: string,
    what: "streams" | "turns",
    name: string,
    limit: number | undefined
  ) => Effect.Effect<boolean>
  /** Gives it back. What a dead process holds is given back after a while. */
  readonly give: (tenant: string, what: "streams" | "turns", name: string) => Effect.Effect<void>
}

/** The counts of all servers. Default: none; this process is alone. */
export const SharedUsage = Context.Reference<UsageOfAll | undefined>("palimpsest/services/serve/SharedUsage", {
  defaultValue: () => undefined
})
