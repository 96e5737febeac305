import { Context, Effect, Layer, Redacted } from "effect"
import * as SecureRandom from "effect/crypto/SecureRandom"
import * as Base64Url from "effect/encoding/Base64Url"
import * as Hex from "effect/encoding/Hex"
import type { TokenSetting } from "../../domain/serve/ServeSettings.ts"
import { encode } from "../../domain/text/Bytes.ts"

/** The tokens that open the API. Only their hashes are kept. */
export class ApiTokens extends Context.Service<
  ApiTokens,
  {
    /** The tenant of a token; undefined for one that is not valid. Takes the same time for every token. */
    readonly tenantOf: (token: Redacted.Redacted) => Effect.Effect<string | undefined>
  }
>()("palimpsest/services/serve/ApiTokens") {
  /** The tokens with these hashes. */
  static readonly layer = (tokens: ReadonlyArray<TokenSetting>) =>
    Layer.succeed(ApiTokens, {
      tenantOf: (token) =>
        Effect.map(hashOf(token), (given) => {
          let tenant: string | undefined
          // Looks at all of them, and at all characters of each, so that the time tells nothing.
          for (const one of tokens) if (isSame(one.hash, given)) tenant = one.tenant
          return tenant
        })
    })
}

const isSame = (one: string, other: string): boolean => {
  let difference = one.length ^ other.length
  for (let at = 0; at < other.length; at += 1) difference |= (one.charCodeAt(at) || 0) ^ other.charCodeAt(at)
  return difference === 0
}

/** The hash of a token, as the settings keep it. A token is random, so that a plain hash does not give it away. */
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
