/** Makes the header that authenticates requests to a remote agent. */

import { Config, Effect, Option, Redacted } from "effect"
import { Buffer } from "node:buffer"
import type { AgentAuth } from "../../domain/agent/AgentDefinition.ts"
import { AgentFailure } from "../../services/agent/AgentRunner.ts"

const failed = (message: string): AgentFailure => new AgentFailure({ message })

/** A value of a definition, with `$NAME` and `${NAME}` replaced by environment variables. */
const valueOf = Effect.fnUntraced(function* (agent: string, field: string, text: string | undefined) {
  if (text === undefined) return yield* failed(`the auth of agent ${agent} lacks ${field}`)
  const name = /^\$(?:\{(\w+)\}|(\w+))$/.exec(text)
  const variable = name?.[1] ?? name?.[2]
  if (variable === undefined) return text
  const value = yield* Effect.option(Config.Redacted(variable))
  const filled = Option.match(value, { onNone: () => "", onSome: (secret) => Redacted.value(secret).trim() })
  return filled === ""
    ? yield* failed(`agent ${agent} needs the environment variable ${variable}, which is not set`)
    : filled
})

/** A header with a secret. */
export interface Header {
  readonly name: string
  readonly value: Redacted.Redacted<string>
}

/** Returns the header of a definition; undefined if the definition has no auth. */
export const headerOf = Effect.fnUntraced(function* (agent: string, auth: AgentAuth | undefined) {
  if (auth === undefined) return undefined
  const header = Effect.fnUntraced(function* (name: string, value: string) {
    // `fetch` would reject it with the value in the message.
    if (!/^[\x20-\x7e]+$/.test(value) || !/^[\w-]+$/.test(name)) {
      return yield* failed(
        `the auth of agent ${agent} cannot be sent as a header; check it for line breaks and control characters`
      )
    }
    return { name, value: Redacted.make(value) }
  })
  switch (auth.type) {
    case "apiKey":
      return yield* header(auth.name ?? "X-API-Key", yield* valueOf(agent, "key", auth.key))
    case "http": {
      const scheme = auth.scheme.toLowerCase()
      if (auth.value === undefined && scheme === "bearer") {
        return yield* header("Authorization", `Bearer ${yield* valueOf(agent, "token", auth.token)}`)
      }
      if (auth.value === undefined && scheme === "basic") {
        const user = yield* valueOf(agent, "username", auth.username)
        const password = yield* valueOf(agent, "password", auth.password)
        return yield* header("Authorization", `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`)
      }
      return yield* header("Authorization", `${auth.scheme} ${yield* valueOf(agent, "value", auth.value)}`)
    }
    case "google-credentials":
    case "oauth":
      return yield* failed(
        `agent ${agent} uses ${auth.type}, which is not supported; give a token as http with scheme Bearer`
      )
  }
})

/** Removes the secret of a header from a text. */
export const withoutSecret = (text: string, header: Header | undefined): string => {
  if (header === undefined) return text
  const secret = Redacted.value(header.value)
  const bare = secret.slice(secret.indexOf(" ") + 1)
  return text.replaceAll(secret, "<credentials>").replaceAll(bare, "<credentials>")
}
