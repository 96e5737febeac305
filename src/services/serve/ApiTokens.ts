import { Context, Effect, Layer, Redacted } from "effect"
import * as SecureRandom from "effect/crypto/SecureRandom"
import * as Base64Url from "effect/encoding/Base64Url"
import * as Hex from "effect/encoding/Hex"
import type { TokenSetting } from "../../domain/serve/ServeSettings.ts"
import { encode } from "../../domain/text/Bytes.ts"
import { isEqualSecret } from "../../domain/text/SecretComparison.ts"

/** The valid API tokens. Only their hashes are stored. */
export class ApiTokens extends Context.Service<
  ApiTokens,
  {
    /** Returns the tenant of a token. Undefined for an invalid one. Takes the same time for every token. */
    readonly tenantOf: (token: Redacted.Redacted) => Effect.Effect<string | undefined>
  }
>()("palimpsest/services/serve/ApiTokens") {
  /** Provides the tokens with these hashes. */
  static readonly layer = (tokens: ReadonlyArray<TokenSetting>) =>
    Layer.succeed(ApiTokens, {
      tenantOf: (token) =>
        Effect.map(hashOf(token), (hash) => {
          let tenant: string | undefined
          // Compares with all hashes in full, so that the time reveals nothing.
          for (const one of tokens) if (isEqualSecret(one.hash, hash)) tenant = one.tenant
          return tenant
        })
    })
}

/** Returns the hash of a token, as stored in the settings. A token is random, so a plain hash does not reveal it. */
export const hashOf = Effect.fnUntraced(function* (token: Redacted.Redacted): Effect.fn.Return<string> {
  const bytes = encode(Redacted.value(token)).slice()
  const digest = yield* Effect.promise(() => globalThis.crypto.subtle.digest("SHA-256", bytes))
  return `sha256:${Hex.encode(new Uint8Array(digest))}`
})

/** Makes a token of 256 random bits. */
export const newToken: Effect.Effect<Redacted.Redacted> = Effect.gen(function* () {
  const random = yield* SecureRandom.SecureRandom
  const bytes = yield* random.randomBytes(32)
  return Redacted.make(`pal_${Base64Url.encode(bytes)}`)
}).pipe(Effect.provide(SecureRandom.layerWebCrypto))
