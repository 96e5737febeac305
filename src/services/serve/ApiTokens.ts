import { Context, Effect, Equal, Layer, Option, Redacted, Schedule, Stream, SubscriptionRef } from "effect"
import * as SecureRandom from "effect/crypto/SecureRandom"
import * as Base64Url from "effect/encoding/Base64Url"
import * as Hex from "effect/encoding/Hex"
import { digestOf } from "../../domain/content/Sha256.ts"
import type { TokenSetting } from "../../domain/serve/ServeSettings.ts"
import { encode } from "../../domain/text/Bytes.ts"
import { isEqualSecret } from "../../domain/text/SecretComparison.ts"

/** The valid API tokens. Only their hashes are stored. They are read again every second, so that tokens come and go while the server runs. */
export class ApiTokens extends Context.Service<
  ApiTokens,
  {
    /** Returns the tenant of a token. Undefined for an invalid one. Takes the same time for every token. */
    readonly tenantOf: (token: Redacted.Redacted) => Effect.Effect<string | undefined>
    /** Waits until a token is not one of this tenant any more. */
    readonly revoked: (token: Redacted.Redacted, tenant: string) => Effect.Effect<void>
  }
>()("palimpsest/services/serve/ApiTokens") {
  /** Provides the tokens that `read` returns. While it fails, the tokens that it returned before stay valid. */
  static readonly layer = <E extends { readonly message: string }, R>(
    read: Effect.Effect<ReadonlyArray<TokenSetting>, E, R>
  ) => Layer.effect(ApiTokens, make(read))
}

/** The tenant of a hash. Compares with all hashes in full, so that the time reveals nothing. */
const tenantIn = (tokens: ReadonlyArray<TokenSetting>, hash: string): string | undefined => {
  let tenant: string | undefined
  for (const one of tokens) if (isEqualSecret(one.hash, hash)) tenant = one.tenant
  return tenant
}

const make = Effect.fnUntraced(function* <E extends { readonly message: string }, R>(
  read: Effect.Effect<ReadonlyArray<TokenSetting>, E, R>
) {
  const tokens = yield* SubscriptionRef.make<ReadonlyArray<TokenSetting>>([])
  let problem = ""
  const refresh = Effect.matchEffect(read, {
    onFailure: ({ message }) => {
      const isKnown = message === problem
      problem = message
      return isKnown ? Effect.void : Effect.logWarning(`serve: the tokens stay as they were: ${message}`)
    },
    onSuccess: (now) => {
      problem = ""
      // Every open stream looks at a change.
      return SubscriptionRef.updateSome(tokens, (before) =>
        Equal.equals(before, now) ? Option.none() : Option.some(now)
      )
    }
  })
  yield* refresh
  yield* Effect.forkScoped(Effect.repeat(Effect.delay(refresh, "1 second"), Schedule.forever))
  return ApiTokens.of({
    tenantOf: (token) => Effect.map(SubscriptionRef.get(tokens), (all) => tenantIn(all, hashOf(token))),
    revoked: (token, tenant) =>
      SubscriptionRef.changes(tokens).pipe(
        Stream.filter((now) => tenantIn(now, hashOf(token)) !== tenant),
        Stream.take(1),
        Stream.runDrain
      )
  })
})

/** Returns the hash of a token, as stored in the settings. A token is random, so a plain hash does not reveal it. */
export const hashOf = (token: Redacted.Redacted): string =>
  `sha256:${Hex.encode(digestOf(encode(Redacted.value(token))))}`

/** Makes a token of 256 random bits. */
export const newToken: Effect.Effect<Redacted.Redacted> = Effect.gen(function* () {
  const random = yield* SecureRandom.SecureRandom
  const bytes = yield* random.randomBytes(32)
  return Redacted.make(`pal_${Base64Url.encode(bytes)}`)
}).pipe(Effect.provide(SecureRandom.layerWebCrypto))
