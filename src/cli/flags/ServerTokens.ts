import { Effect, Redacted } from "effect"
import { localTenant, type TokenSetting } from "../../domain/serve/ServeSettings.ts"
import { hashOf, newToken } from "../../services/serve/ApiTokens.ts"
import { Settings } from "../../services/settings/Settings.ts"
import { userSettings } from "./UserSettings.ts"

/** The tokens that a server accepts. */
export interface ServerTokens {
  /** Reads them: those of the settings at this moment, and the one that was made. */
  readonly tokens: Effect.Effect<ReadonlyArray<TokenSetting>, { readonly message: string }>
  /** The token that was made for this run; null when the settings had tokens at the start. */
  readonly made: string | null
}

/** Returns the tokens of the settings. Where they have none, makes one of the local tenant for this run. */
export const serverTokens = Effect.fnUntraced(function* (configured: ReadonlyArray<TokenSetting> = []) {
  const settings = yield* Settings
  const read = userSettings.pipe(
    Effect.map(({ serve }) => serve.tokens ?? []),
    Effect.provideService(Settings, settings)
  )
  if (configured.length > 0) return { tokens: read, made: null }
  const token = yield* newToken
  const own = { tenant: localTenant, hash: hashOf(token) }
  return { tokens: Effect.map(read, (tokens) => [...tokens, own]), made: Redacted.value(token) }
})
