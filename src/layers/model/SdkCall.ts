/** Calls of a vendor's SDK, whose requests are exchanges of ours: an SDK would wrap their failures. */

import { type Context, Effect } from "effect"
import { errorText } from "../../domain/text/ErrorText.ts"
import { wellFormedJson } from "../../domain/text/JsonText.ts"
import { InvalidRequestError, InvalidResponseError, type ModelError } from "../../services/model/Model.ts"
import type { ProviderRequest } from "./HttpSend.ts"
import type { Provider } from "./Provider.ts"
import { clip, failed, hideKey } from "./ProviderErrors.ts"
import { exchanged, maxAnswerBytes, type Refusal, textOf } from "./ProviderExchange.ts"

/** What came of the requests of one call of a vendor's SDK, which would wrap its failures. Mutable. */
export interface SdkCall {
  isSent: boolean
  failure?: ModelError
  refusal?: Refusal
}

/** The `fetch` of a vendor's SDK, over the same exchange, as a part of the fiber with this context. */
export const sdkFetch =
  (provider: Provider, sdkCall: SdkCall, context: Context.Context<never>): typeof fetch =>
  (input, init) => {
    sdkCall.isSent = true
    const request: ProviderRequest = {
      url: new URL(input instanceof Request ? input.url : input),
      method: init?.method === "GET" ? "GET" : "POST",
      headers: Object.fromEntries(new Headers(init?.headers)),
      body: typeof init?.body === "string" ? [Buffer.from(wellFormedJson(init.body))] : []
    }
    return exchanged(provider, request, (refusal) => (sdkCall.refusal = refusal)).pipe(
      Effect.flatMap((reply) => textOf(provider, reply, maxAnswerBytes)),
      Effect.map((text) => new Response(text, { headers: { "content-type": "application/json" } })),
      Effect.tapError((error) => Effect.sync(() => (sdkCall.failure = error))),
      Effect.scoped,
      (exchange) => Effect.runPromiseWith(context)(exchange, { signal: init?.signal ?? undefined })
    )
  }

/** Calls a vendor's SDK. The signal that it gives aborts the request until the promise settles, no longer. */
export const callSdk = <A>(provider: Provider, sdkCall: SdkCall, use: (signal: AbortSignal) => Promise<A>) =>
  Effect.tryPromise({
    try: (signal) => use(signal),
    catch: (error) => {
      if (sdkCall.failure !== undefined) return sdkCall.failure
      const detail = clip(hideKey(provider)(errorText(error)))
      return failed(sdkCall.isSent ? new InvalidResponseError({ detail }) : new InvalidRequestError({ detail }))
    }
  })
