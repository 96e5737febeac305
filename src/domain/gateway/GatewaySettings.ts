import { Schema } from "effect"
import { TenantLimits, TenantName, whole } from "../serve/ServeSettings.ts"

/** The settings of the gateway: the providers' addresses, and when conversations are compressed. */

const tokens = (description: string) =>
  whole(4_096).annotate({ description, expected: "a whole number of tokens, at least 4096, such as 200000" })

const address = (name: string) =>
  Schema.optionalKey(
    Schema.NonEmptyString.check(Schema.isPattern(/^https?:\/\/\S+$/)).annotate({
      description: `Where requests for ${name} go`,
      expected: "an address such as https://api.example.com"
    })
  )

const Keys = Schema.Array(Schema.String.check(Schema.isPattern(/^sha256:[0-9a-f]{64}$/)))

const Budgets = Schema.Struct({
  requests: TenantLimits.fields.requests,
  tokens: TenantLimits.fields.tokens
})

/** The setting `gateway`. */
export const GatewaySettings = Schema.Struct({
  upstreams: Schema.optionalKey(
    Schema.Struct({
      anthropic: address("Anthropic"),
      gemini: address("Gemini"),
      openai: address("OpenAI")
    }).annotate({
      description: "Addresses of the providers, in place of the real ones",
      expected: `an object such as {"openai": "http://127.0.0.1:8000"}`
    })
  ),
  window: Schema.optionalKey(tokens("The window of every model, in place of the one in the table of models")),
  windows: Schema.optionalKey(
    Schema.Record(Schema.String, tokens("The window of one model")).annotate({
      description: "Windows of individual models",
      expected: `an object such as {"claude-sonnet-4-5": 100000}`
    })
  ),
  threshold: Schema.optionalKey(
    Schema.Finite.check(Schema.isBetween({ minimum: 0.1, maximum: 1 })).annotate({
      description: "Share of the window at which a conversation is compressed (default 0.75)",
      expected: "a number from 0.1 to 1"
    })
  ),
  snapshots: Schema.optionalKey(
    Schema.Literals(["code", "model"]).annotate({
      description:
        "Who writes snapshots: code, or the client's model in the background with the client's key (default code)",
      expected: "code or model"
    })
  ),
  recall: Schema.optionalKey(
    Schema.Boolean.annotate({
      description: "Declare the tool with which models read what left the window (default true)",
      expected: "true or false"
    })
  ),
  showRecalls: Schema.optionalKey(
    Schema.Boolean.annotate({
      description: "Show in answers that the model recalled something (default false)",
      expected: "true or false"
    })
  ),
  keys: Schema.optionalKey(
    Keys.annotate({
      description: "The keys that may use the gateway, as SHA-256 of their text (default: all)",
      expected: `a list such as ["sha256:…"]`
    })
  ),
  budgets: Schema.optionalKey(
    Budgets.annotate({
      description: "What each key may use (default: unlimited)",
      expected: `an object such as {"requests": 60, "tokens": 10000000}`
    })
  ),
  tenants: Schema.optionalKey(
    Schema.Record(
      TenantName,
      Schema.Struct({
        keys: Keys.annotate({
          description: "The tenant's keys, as SHA-256 of their text",
          expected: `a list such as ["sha256:…"]`
        }),
        budgets: Schema.optionalKey(
          Budgets.annotate({
            description: "What the tenant may use with all of its keys",
            expected: `an object such as {"requests": 60, "tokens": 10000000}`
          })
        )
      })
    ).annotate({
      description: "Tenants by name: their keys may use the gateway, and are counted together",
      expected: `an object such as {"acme": {"keys": ["sha256:…"], "budgets": {"tokens": 10000000}}}`
    })
  ),
  keepDays: Schema.optionalKey(
    whole(1).annotate({
      description: "Days without activity after which a conversation is deleted (default 30)",
      expected: "a whole number of days, such as 30"
    })
  ),
  bodyBytes: Schema.optionalKey(
    whole(1_024).annotate({
      description: "Maximum bytes of a body that is processed; larger ones pass through unread (default 67108864)",
      expected: "a whole number of bytes, such as 67108864"
    })
  ),
  silentSeconds: Schema.optionalKey(
    whole(1).annotate({
      description: "Seconds without a byte after which the connection to a provider is closed (default 600)",
      expected: "a whole number of seconds, such as 600"
    })
  ),
  drainSeconds: Schema.optionalKey(
    whole(0).annotate({
      description: "Seconds for running answers to finish when the gateway stops (default 120)",
      expected: "a whole number of seconds, such as 120"
    })
  )
})
export type GatewaySettings = typeof GatewaySettings.Type
