import { Effect, Redacted } from "effect"
import { localTenant, type TokenSetting } from "../../domain/serve/ServeSettings.ts"
import { hashOf, newToken } from "../../services/serve/ApiTokens.ts"

/** The tokens that a server accepts. */
export interface ServerTokens {
  readonly tokens: ReadonlyArray<TokenSetting>
  /** The token that was made for this run; null when the settings have tokens. */
  readonly made: string | null
}

/** Returns the tokens of the settings, or one of the local tenant that is made for this run. */
export const serverTokens = Effect.fnUntraced(function* (configured: ReadonlyArray<TokenSetting> = []) {
  if (configured.length > 0) return { tokens: configured, made: null }
  const token = yield* newToken
  return { tokens: [{ tenant: localTenant, hash: yield* hashOf(token) }], made: Redacted.value(token) }
})
