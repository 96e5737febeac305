/** The settings of the gateway: the providers' addresses, and when conversations are compressed. */

import { Schema } from "effect"
import { optional, TenantLimits, TenantName, whole } from "../serve/ServeSettings.ts"

const tokens = (description: string) =>
  whole(4_096).annotate({ description, expected: "a whole number of tokens, at least 4096, such as 200000" })

const address = (name: string) =>
  optional(
    Schema.NonEmptyString.check(Schema.isPattern(/^https?:\/\/\S+$/)),
    `Where requests for ${name} go`,
    "an address such as https://api.example.com"
  )

const Keys = Schema.Array(Schema.String.check(Schema.isPattern(/^sha256:[0-9a-f]{64}$/)))

const Budgets = Schema.Struct({
  requests: TenantLimits.fields.requests,
  tokens: TenantLimits.fields.tokens
})

/** The setting `gateway`. */
export const GatewaySettings = Schema.Struct({
  upstreams: optional(
    Schema.Struct({
      anthropic: address("Anthropic"),
      gemini: address("Gemini"),
      openai: address("OpenAI")
    }),
    "Addresses of the providers, in place of the real ones",
    `an object such as {"openai": "http://127.0.0.1:8000"}`
  ),
  window: Schema.optionalKey(tokens("The window of every model, in place of the one in the table of models")),
  windows: optional(
    Schema.Record(Schema.String, tokens("The window of one model")),
    "Windows of individual models",
    `an object such as {"claude-sonnet-4-5": 100000}`
  ),
  threshold: optional(
    Schema.Finite.check(Schema.isBetween({ minimum: 0.1, maximum: 1 })),
    "Share of the window at which a conversation is compressed (default 0.75)",
    "a number from 0.1 to 1"
  ),
  snapshots: optional(
    Schema.Literals(["code", "model"]),
    "Who writes snapshots: code, or the client's model in the background with the client's key (default code)",
    "code or model"
  ),
  recall: optional(
    Schema.Boolean,
    "Declare the tool with which models read what left the window (default true)",
    "true or false"
  ),
  showRecalls: optional(
    Schema.Boolean,
    "Show in answers that the model recalled something (default false)",
    "true or false"
  ),
  keys: optional(
    Keys,
    "The keys that may use the gateway, as SHA-256 of their text (default: all)",
    `a list such as ["sha256:…"]`
  ),
  budgets: optional(
    Budgets,
    "What each key may use (default: unlimited)",
    `an object such as {"requests": 60, "tokens": 10000000}`
  ),
  tenants: optional(
    Schema.Record(
      TenantName,
      Schema.Struct({
        keys: Keys.annotate({
          description: "The tenant's keys, as SHA-256 of their text",
          expected: `a list such as ["sha256:…"]`
        }),
        budgets: optional(
          Budgets,
          "What the tenant may use with all of its keys",
          `an object such as {"requests": 60, "tokens": 10000000}`
        )
      })
    ),
    "Tenants by name: their keys may use the gateway, and are counted together",
    `an object such as {"acme": {"keys": ["sha256:…"], "budgets": {"tokens": 10000000}}}`
  ),
  keepDays: optional(
    whole(1),
    "Days without activity after which a conversation is deleted (default 30)",
    "a whole number of days, such as 30"
  ),
  bodyBytes: optional(
    whole(1_024),
    "Maximum bytes of a body that is processed; larger ones pass through unread (default 67108864)",
    "a whole number of bytes, such as 67108864"
  ),
  silentSeconds: optional(
    whole(1),
    "Seconds without a byte after which the connection to a provider is closed (default 600)",
    "a whole number of seconds, such as 600"
  ),
  drainSeconds: optional(
    whole(0),
    "Seconds for running answers to finish when the gateway stops (default 120)",
    "a whole number of seconds, such as 120"
  )
})
export type GatewaySettings = typeof GatewaySettings.Type
