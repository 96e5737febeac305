import { Context, Effect, Equal, Layer, Option, Redacted, Schedule, Stream, SubscriptionRef } from "effect"
import * as SecureRandom from "effect/crypto/SecureRandom"
import * as Base64Url from "effect/encoding/Base64Url"
import * as Hex from "effect/encoding/Hex"
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
    tenantOf: Effect.fnUntraced(function* (token) {
      const hash = yield* hashOf(token)
      return tenantIn(yield* SubscriptionRef.get(tokens), hash)
    }),
    revoked: Effect.fnUntraced(function* (token, tenant) {
      const hash = yield* hashOf(token)
      const gone = Stream.filter(SubscriptionRef.changes(tokens), (now) => tenantIn(now, hash) !== tenant)
      yield* Stream.runDrain(Stream.take(gone, 1))
    })
  })
})

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
