/** The settings of the server: who may use it, and how much. */

import { Schema } from "effect"
import { ApprovalMode } from "../tools/Approval.ts"

/** A setting that means something when unset. */
export const optional = <S extends Schema.Top>(schema: S, description: string, expected: string) =>
  Schema.optionalKey<S["Rebuild"]>(schema.annotate({ description, expected }))

/** A whole number from `minimum` on. */
export const whole = (minimum: number) => Schema.Int.check(Schema.isGreaterThanOrEqualTo(minimum))

const limit = (description: string, minimum: number, such: number) =>
  Schema.optionalKey(
    whole(minimum).annotate({ description, expected: `a whole number, at least ${minimum}, such as ${such}` })
  )

/** The limits of one tenant. An absent limit has its value from `defaultLimits`. */
export const TenantLimits = Schema.Struct({
  requests: limit("Requests per minute", 1, 600),
  tokens: limit("Tokens per day, sent and received", 1, 10_000_000),
  sessions: limit("Stored sessions", 1, 1_000),
  turns: limit("Turns that run at the same time", 1, 8),
  streams: limit("Event streams that are open at the same time", 1, 32)
})
/** All limits of a tenant. */
export type TenantLimits = { readonly [K in keyof typeof TenantLimits.Type]-?: number }

/** The limits of a tenant without limits of its own in the settings. */
export const defaultLimits: TenantLimits = {
  requests: 600,
  tokens: Infinity,
  sessions: 1_000,
  turns: 8,
  streams: 32
}

/** The name of a tenant. It becomes the name of a folder. */
export const TenantName = Schema.String.check(Schema.isPattern(/^[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?$/))
/** Whether a text can be the name of a tenant. */
export const isTenantName = Schema.is(TenantName)

/** The tenant that works in the user's own home folder: its sessions are those of the command line. */
export const localTenant = "local"

/** An API token in the settings, which hold only its hash. */
export const TokenSetting = Schema.Struct({
  tenant: TenantName.annotate({
    description: "The tenant whose sessions the token gives access to",
    expected: "1 to 32 small letters, digits and hyphens"
  }),
  hash: Schema.String.check(Schema.isPattern(/^sha256:[0-9a-f]{64}$/)).annotate({
    description: "The hash of the token; palimpsest serve --new-token TENANT prints both",
    expected: "sha256: and 64 hexadecimal digits"
  })
})
export type TokenSetting = typeof TokenSetting.Type

/** One tenant's own settings. */
export const TenantSetting = Schema.Struct({
  folder: optional(
    Schema.NonEmptyString,
    "The folder in which the tenant's agents work (default: an empty folder of the tenant)",
    "the absolute path of a folder"
  ),
  limits: Schema.optionalKey(TenantLimits)
})

/** What happens to a turn whose client disconnects: it continues and its stream can be resumed, or it is cancelled. */
export const OnDisconnect = Schema.Literals(["continue", "cancel"])
export type OnDisconnect = typeof OnDisconnect.Type

/**
 * Who may use the gateway of the server: clients with the server's tokens only, or also clients with their own keys.
 */
export const ServedGateway = Schema.Literals(["tokens", "keys"])

const defaultDrainSeconds = 20

/** The setting `serve`. */
export const ServeSettings = Schema.Struct({
  tokens: optional(
    Schema.Array(TokenSetting),
    "The API tokens, as hashes",
    `a list such as [{"tenant": "acme", "hash": "sha256:…"}]`
  ),
  tenants: optional(
    Schema.Record(TenantName, TenantSetting),
    "Folders and limits of individual tenants, by name",
    `an object such as {"acme": {"limits": {"sessions": 50}}}`
  ),
  limits: optional(
    TenantLimits,
    "The limits of tenants without limits of their own",
    `an object such as {"requests": 600, "tokens": 10000000}`
  ),
  tools: optional(Schema.Boolean, "Let the agents of served sessions use tools (default false)", "true or false"),
  approve: optional(
    ApprovalMode,
    "Tool calls that run in served sessions; all others are denied, because no user can be asked",
    `one of ${ApprovalMode.literals.join(", ")}`
  ),
  onDisconnect: optional(
    OnDisconnect,
    "What happens to a turn whose client disconnects (default continue)",
    "continue or cancel"
  ),
  gateway: optional(
    ServedGateway,
    "Serve the gateway below /gateway. tokens: for the server's tokens and the keys of the setting gateway; keys: also for clients with their own keys",
    "tokens or keys"
  ),
  drainSeconds: optional(
    whole(0),
    `Seconds for running turns to finish when the server stops (default ${defaultDrainSeconds})`,
    "a whole number of seconds, such as 20"
  ),
  bodyBytes: optional(
    whole(1_024),
    "Maximum bytes of a request's body (default 4194304)",
    "a whole number of bytes, such as 4194304"
  )
})
export type ServeSettings = typeof ServeSettings.Type

/** Seconds that running turns get when the server stops. */
export const drainSecondsOf = ({ drainSeconds = defaultDrainSeconds }: ServeSettings): number => drainSeconds

/** The limits of a tenant. */
export const limitsOf = ({ limits, tenants = {} }: ServeSettings, tenant: string): TenantLimits => ({
  ...defaultLimits,
  ...limits,
  ...(Object.hasOwn(tenants, tenant) ? tenants[tenant]?.limits : {})
})
