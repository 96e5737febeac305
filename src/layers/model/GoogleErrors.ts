import { Duration, Option, Predicate, Schema } from "effect"
import { errorText } from "../../domain/text/ErrorText.ts"
import { fromJson } from "../../domain/text/JsonText.ts"
import { excessOf, refusedIn } from "../../domain/wire/ProviderFault.ts"
import {
  AuthenticationError,
  InternalProviderError,
  InvalidRequestError,
  InvalidResponseError,
  type ModelErrorReason,
  QuotaExhaustedError,
  RateLimitError
} from "../../services/model/Model.ts"
import { codeOf } from "../platform/ConnectionCode.ts"
import type { Exchange } from "./GoogleExchange.ts"
import { clip, ofConnection, reasonOfExcess, reasonOfRefusal } from "./ModelFailures.ts"

/** Turns failures of the SDK, of the Gemini API and of the connection into reasons of a `ModelError`. */

const Detail = Schema.Struct({
  reason: Schema.optionalKey(Schema.String),
  retryDelay: Schema.optionalKey(Schema.String),
  violations: Schema.optionalKey(
    Schema.Array(
      Schema.Struct({ quotaId: Schema.optionalKey(Schema.String), quotaValue: Schema.optionalKey(Schema.String) })
    )
  )
})
type Detail = typeof Detail.Type

/** An error as Google's servers write it. */
interface ServerError {
  readonly message: string
  /** The status name of the server: NOT_FOUND, INVALID_ARGUMENT, … */
  readonly status?: string | undefined
  readonly details: ReadonlyArray<Detail>
}

const ErrorBody = fromJson(
  Schema.Struct({
    error: Schema.Struct({
      message: Schema.optionalKey(Schema.String),
      status: Schema.optionalKey(Schema.String),
      details: Schema.optionalKey(Schema.Array(Schema.Unknown))
    })
  })
)
const readErrorBody = Schema.decodeUnknownOption(ErrorBody)
const readDetail = Schema.decodeUnknownOption(Detail)

/** Reads the error from the SDK's message: the body as text, in a stream behind a prefix, and wrapped again when it was not declared as JSON. */
const serverErrorOf = (text: string): ServerError =>
  Option.match(readErrorBody(text.replace(/^got status: [^{]*/, "")), {
    onNone: () => ({ message: text, details: [] }),
    onSome: ({ error }) =>
      error.details === undefined && error.message?.trimStart().startsWith("{")
        ? serverErrorOf(error.message.trim())
        : {
            message: error.message ?? "",
            status: error.status,
            details: (error.details ?? []).flatMap((detail) => Option.toArray(readDetail(detail)))
          }
  })

const isKeyRefused = ({ details, message }: ServerError): boolean =>
  details.some(({ reason }) => reason === "API_KEY_INVALID") || /api key (not valid|expired)/i.test(message)

/** Recognizes a quota that does not refill within minutes: a daily one, or one of zero. */
const exhaustedQuota = ({ details }: ServerError): string | undefined =>
  details
    .flatMap(({ violations }) => violations ?? [])
    .find(({ quotaId, quotaValue }) => /per_?day|daily/i.test(quotaId ?? "") || quotaValue === "0")?.quotaId

const retryDelay = ({ details }: ServerError): Duration.Duration | undefined => {
  const seconds = details
    .map((detail) => /^(\d+(?:\.\d+)?)s$/.exec(detail.retryDelay ?? "")?.[1])
    .find(Predicate.isString)
  return seconds === undefined ? undefined : Duration.seconds(Number(seconds))
}

/** An HTML page instead of an API response: the address belongs to another server. */
const isPage = ({ details, message }: ServerError): boolean => details.length === 0 && /^\s*</.test(message)

/** A failure of the key. */
export const keyError = (kind: AuthenticationError["kind"]): AuthenticationError =>
  new AuthenticationError({ kind, variable: "GEMINI_API_KEY" })

const badRequest = (status: number, serverError: ServerError): ModelErrorReason =>
  isKeyRefused(serverError)
    ? keyError("InvalidKey")
    : reasonOfRefusal(
        status,
        { message: serverError.message, kind: serverError.status ?? "" },
        clip(serverError.message)
      )

const ofStatus = (
  status: number,
  serverError: ServerError,
  header: Duration.Duration | undefined
): ModelErrorReason => {
  const delay = header ?? retryDelay(serverError)
  const waiting = delay === undefined ? {} : { retryAfter: delay }
  const { message, status: name = "" } = serverError
  const excess = excessOf(status, { message, kind: name, isPage: isPage(serverError) })
  if (excess !== undefined) return reasonOfExcess(excess)
  if (status < 500 && isPage(serverError)) {
    return new InvalidRequestError({
      detail: `this address does not serve the Gemini API (HTTP ${status} and a page); check GOOGLE_GEMINI_BASE_URL`
    })
  }
  if (status === 401) return keyError("InvalidKey")
  if (status === 403 && refusedIn(status, { message, kind: name }) !== undefined) return badRequest(status, serverError)
  if (status === 403) {
    return keyError(isKeyRefused(serverError) ? "InvalidKey" : "InsufficientPermissions")
  }
  if (status === 429) {
    const quota = exhaustedQuota(serverError)
    return quota === undefined ? new RateLimitError(waiting) : new QuotaExhaustedError({ detail: clip(quota) })
  }
  if (status === 408 || status >= 500) return new InternalProviderError({ status, ...waiting })
  return badRequest(status, serverError)
}

/** Whether the connection ended within a body. `fetch` reports this without a code. */
const isCutOff = (error: unknown): boolean => error instanceof TypeError && error.message === "terminated"

const statusOf = (error: unknown): number | undefined =>
  Predicate.hasProperty(error, "status") && Predicate.isNumber(error.status) ? error.status : undefined

/** Whether the API has no such model, or does not accept the text as a model name. An unknown path at a gateway or a rejected key does not count. */
export const isUnknownModel = (error: unknown): boolean => {
  const serverError = serverErrorOf(errorText(error))
  return statusOf(error) === 404
    ? serverError.status === "NOT_FOUND"
    : statusOf(error) === 400 && serverError.status === "INVALID_ARGUMENT" && !isKeyRefused(serverError)
}

/** The reason of a failure. `message` is the error's, without the key. */
export const reasonOf = (error: unknown, message: string, exchange: Exchange, host: string): ModelErrorReason => {
  if (exchange.excess !== undefined) return exchange.excess
  const status = statusOf(error)
  if (status !== undefined) return ofStatus(status, serverErrorOf(message), exchange.retryAfter)
  if (!exchange.sent) return new InvalidRequestError({ detail: clip(message) })
  const code = codeOf(error) ?? (isCutOff(error) ? "the answer broke off" : undefined)
  if (exchange.status === undefined) return ofConnection(code ?? "no connection", host)
  // The body of an error that could not be read adds nothing to its status.
  if (exchange.status >= 400) {
    const message = `HTTP ${exchange.status}, and its body cannot be read`
    return ofStatus(exchange.status, { message, details: [] }, exchange.retryAfter)
  }
  if (exchange.status >= 300) return new InvalidResponseError({ detail: `a redirection (${exchange.status})` })
  return code === undefined ? new InvalidResponseError({ detail: clip(message) }) : ofConnection(code, host)
}
