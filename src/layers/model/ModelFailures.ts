import { clipped } from "../../domain/text/Bytes.ts"
import {
  type ProviderFault,
  refusedIn,
  type TooManyBytes,
  type TooManyTokens
} from "../../domain/wire/ProviderFault.ts"
import {
  ContextLengthError,
  InvalidRequestError,
  InvalidResponseError,
  ModelError,
  type ModelErrorReason,
  NetworkError,
  RequestBytesError
} from "../../services/model/Model.ts"

/** Error handling that all providers share. */

/** A `ModelError` for a reason. */
export const failed = (reason: ModelErrorReason) => new ModelError({ reason })

/** A text of the server, cut to what fits an error message. */
export const clip = (text: string): string => clipped(text, 500)

/** The reason of a request that the provider does not accept. */
export const reasonOfRefusal = (status: number, fault: ProviderFault, detail: string): InvalidRequestError => {
  const refused = refusedIn(status, fault)
  return new InvalidRequestError({ detail, ...(refused === undefined ? {} : { refused }) })
}

/** The error of an answer that cannot be used. */
export const unusable = (detail: string) => failed(new InvalidResponseError({ detail: clip(detail) }))

/** The reason of a request that is too large, with the numbers that the server states. */
export const reasonOfExcess = (excess: TooManyTokens | TooManyBytes): ModelErrorReason =>
  excess._tag === "TooManyBytes"
    ? new RequestBytesError({})
    : new ContextLengthError({
        ...(excess.tokens === undefined ? {} : { tokens: excess.tokens }),
        ...(excess.limit === undefined ? {} : { limit: excess.limit })
      })

/** The shortest key that is hidden. Local servers are given keys such as `x` or `none`, whose letters are in every message. */
const minHiddenKey = 8

/** Returns a function that removes the key from a text of the server. */
export const hideKey =
  ({ key }: { readonly key: string | undefined }) =>
  (text: string): string =>
    key === undefined || key.length < minHiddenKey ? text : text.replaceAll(key, "<key>")

/** The reason of a connection that failed with this code. */
export const ofConnection = (code: string, host: string, isBegun = false): ModelErrorReason =>
  new NetworkError({ detail: `${code}, ${host}`, ...(isBegun ? { isBegun } : {}) })
