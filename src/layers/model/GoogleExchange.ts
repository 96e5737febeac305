import type { Duration } from "effect"
import { wellFormedJson } from "../../domain/text/JsonText.ts"
import { AnswerTooLargeError, type ModelErrorReason } from "../../services/model/Model.ts"
import { bounded } from "./BoundedResponse.ts"
import { retryAfter } from "./ProviderErrors.ts"

/** Observes the HTTP exchange behind one request of the SDK, and bounds its answer. */

/** Bytes of an answer: more than any model writes, images included. An endless answer is ended there. */
export const maxAnswerBytes = 32 * 1024 * 1024
/** Bytes of the body of an error, of which a few hundred characters are shown. */
export const maxErrorBytes = 1024 * 1024

/** Facts about one request that the SDK's errors omit. Mutable: `observedFetch` writes them. */
export interface Exchange {
  sent: boolean
  /** Undefined until the head of the answer has arrived. */
  status: number | undefined
  retryAfter: Duration.Duration | undefined
  /** Whether the request failed because there is no such model. */
  isNoModel: boolean
  /** Why this program ended the answer. */
  excess: ModelErrorReason | undefined
}

/** A `fetch` that writes to `exchange`, bounds the answer, and follows no redirection: the key is for this server alone. */
export const observedFetch =
  (exchange: Exchange): typeof fetch =>
  (input, init) => {
    exchange.sent = true
    const body = typeof init?.body === "string" ? { body: wellFormedJson(init.body) } : {}
    return fetch(input, { ...init, ...body, redirect: "manual" }).then((response) => {
      exchange.status = response.status
      exchange.retryAfter = retryAfter((name) => response.headers.get(name))
      // The status alone is enough where the body of an error is too large.
      if (!response.ok) return bounded(response, maxErrorBytes, () => new Error("the body of the error is too large"))
      return bounded(response, maxAnswerBytes, () => {
        const excess = new AnswerTooLargeError({ unit: "bytes", limit: maxAnswerBytes })
        exchange.excess = excess
        return excess
      })
    })
  }
