import { Duration, Option, Predicate, Schema } from "effect"
import { fromJson } from "../../domain/text/JsonText.ts"
import {
  AuthenticationError,
  ContentPolicyError,
  ContextLengthError,
  InternalProviderError,
  InvalidRequestError,
  InvalidResponseError,
  type ModelErrorReason,
  QuotaExhaustedError,
  RateLimitError
} from "../../services/model/Model.ts"
import { codeOf } from "../platform/ConnectionCode.ts"
import { clip, ofConnection, tooLarge } from "./ModelFailures.ts"

/** Turns failures of providers that speak the dialects of Anthropic and OpenAI, and of the connection, into reasons of a `ModelError`. */

const nullish = Schema.optionalKey(Schema.NullOr(Schema.Union([Schema.String, Schema.Finite])))
const Fault = Schema.Struct({
  message: Schema.optionalKey(Schema.NullOr(Schema.String)),
  type: nullish,
  code: nullish,
  /** llama.cpp: the size of the request and of the window. */
  n_prompt_tokens: Schema.optionalKey(Schema.Natural),
  n_ctx: Schema.optionalKey(Schema.Natural)
})

/** The error within an answer, in one of the shapes that servers give it. */
const readFault = Schema.decodeUnknownOption(
  Schema.Union([Schema.Struct({ error: Fault }), Schema.Struct({ error: Schema.String }), Fault])
)
const readJson = Schema.decodeUnknownOption(fromJson(Schema.Unknown))

/** An error as a provider writes it. */
export interface ProviderFault {
  readonly message: string
  /** Its type and code, in one text. */
  readonly kind: string
  readonly tokens?: number | undefined
  readonly limit?: number | undefined
}

/** Returns the error in a value; undefined if it contains none. */
export const faultIn = (value: unknown): ProviderFault | undefined =>
  Option.match(readFault(value), {
    onNone: () => undefined,
    onSome: (read) => {
      const fault = "error" in read ? read.error : read
      if (typeof fault === "string") return { message: fault, kind: "" }
      return {
        message: fault.message ?? "",
        kind: [fault.type, fault.code].filter(Predicate.isNotNullish).join(" "),
        tokens: fault.n_prompt_tokens,
        limit: fault.n_ctx
      }
    }
  })

/** The error that the body of an answer states. */
export const faultOf = (body: string): ProviderFault => {
  const fault = Option.match(readJson(body), { onNone: () => undefined, onSome: faultIn })
  return fault === undefined || fault.message + fault.kind === "" ? { message: body, kind: "" } : fault
}

const tooLong =
  /context_length_exceeded|exceed_context_size|request_too_large|prompt is too long|maximum context length|context (?:limit|window|size)|context length/i

/** The numbers in the messages of the servers; a message that has none of these forms says no more than that it is too long. */
const sizes: ReadonlyArray<RegExp> = [
  /(?<tokens>\d+) tokens? > (?<limit>\d+)/,
  /(?<tokens>\d+) \+ (?<more>\d+) > (?<limit>\d+)/,
  /maximum context length (?:is|of) (?<limit>\d+).*?(?<tokens>\d+) (?:input )?tokens/s,
  /\((?<tokens>\d+) tokens\) exceeds the available context size \((?<limit>\d+)/,
  /available context size \((?<limit>\d+)/
]

const contextLength = ({ kind, limit, message, tokens }: ProviderFault): ContextLengthError | undefined => {
  if (!tooLong.test(`${kind} ${message}`)) return undefined
  const plain = message.replaceAll(/(?<=\d)[,_](?=\d{3})/g, "")
  const groups = sizes.map((size) => size.exec(plain)?.groups).find(Predicate.isNotUndefined) ?? {}
  const total = groups["tokens"] === undefined ? undefined : Number(groups["tokens"]) + Number(groups["more"] ?? 0)
  const size = tokens ?? total
  const window = limit ?? (groups["limit"] === undefined ? undefined : Number(groups["limit"]))
  return tooLarge(size, window)
}

const isQuota = ({ kind, message }: ProviderFault): boolean =>
  /insufficient_quota|billing|credit balance|exceeded your current quota/i.test(`${kind} ${message}`)

const isPolicy = ({ kind }: ProviderFault): boolean =>
  /content_policy|content_filter|moderation|invalid_prompt/i.test(kind)

/** The header `retry-after` (seconds, or a date by the server's clock) or `retry-after-ms`. */
export const retryAfter = (headers: Headers): Duration.Duration | undefined => {
  const millis = headers.get("retry-after-ms") ?? ""
  if (/^\d+(?:\.\d+)?$/.test(millis)) return Duration.millis(Number(millis))
  const value = headers.get("retry-after")
  if (value === null) return undefined
  const seconds = /^\d+(?:\.\d+)?$/.test(value)
    ? Number(value)
    : (Date.parse(value) - Date.parse(headers.get("date") ?? "")) / 1000
  return Number.isFinite(seconds) ? Duration.seconds(Math.max(0, seconds)) : undefined
}

/** The delay in a message: `Please try again in 1.2s`. */
const statedDelay = (message: string): Duration.Duration | undefined => {
  const [, number, unit] = /try again in (\d+(?:\.\d+)?)(ms|s)\b/.exec(message) ?? []
  return number === undefined ? undefined : Duration.millis(Number(number) * (unit === "ms" ? 1 : 1_000))
}

/** Names used in the messages. */
export interface ProviderNames {
  /** The environment variables of the key and of the address. */
  readonly key: string
  readonly baseUrl: string
  /** The name of the API. */
  readonly api: string
}

/** A failure of the key. */
export const keyError = (kind: AuthenticationError["kind"], { key }: ProviderNames) =>
  new AuthenticationError({ kind, variable: key })

/** The reason of an answer with the status of an error. */
export const reasonOfStatus = (
  status: number,
  fault: ProviderFault,
  delay: Duration.Duration | undefined,
  names: ProviderNames
): ModelErrorReason => {
  const { kind, message } = fault
  const detail = clip(message.trim() === "" ? `HTTP ${status}` : message)
  const retryDelay = delay ?? statedDelay(message)
  const waiting = retryDelay === undefined ? {} : { retryAfter: retryDelay }
  if (status >= 300 && status < 400) return new InvalidResponseError({ detail: `a redirection (${status})` })
  if (status < 500 && /^\s*</.test(message)) {
    const place = `check ${names.baseUrl}`
    return new InvalidRequestError({
      detail: `this address does not serve the ${names.api} API (HTTP ${status} and a page); ${place}`
    })
  }
  if (status === 401) return keyError("InvalidKey", names)
  if (isPolicy(fault)) return new ContentPolicyError({ finishReason: clip(kind) })
  if (status === 402 || isQuota(fault)) return new QuotaExhaustedError({ detail })
  if (status === 403) return keyError("InsufficientPermissions", names)
  if (status === 429) return new RateLimitError(waiting)
  const length = status < 500 || kind.includes("context") ? contextLength(fault) : undefined
  if (length !== undefined) return length
  if (status === 413) return new ContextLengthError({})
  if (status === 408 || status === 409 || status >= 500) return new InternalProviderError({ status, ...waiting })
  return new InvalidRequestError({ detail })
}

/** The status that an error would have had, if it had come before the answer began. */
const statusOfKind = (kind: string): number => {
  if (/overloaded/.test(kind)) return 529
  if (/rate_limit/.test(kind)) return 429
  if (/authentication|invalid_api_key/.test(kind)) return 401
  if (/permission/.test(kind)) return 403
  if (/billing/.test(kind)) return 402
  if (/context|invalid_request|invalid_prompt|content_|not_found/.test(kind)) return 400
  return 500
}

/** The reason of an error in the middle of an answer. */
export const reasonOfEvent = (fault: ProviderFault, names: ProviderNames): ModelErrorReason => {
  const code = Number(/\b[45]\d\d\b/.exec(fault.kind)?.[0] ?? statusOfKind(fault.kind))
  return reasonOfStatus(code, fault, undefined, names)
}

/** The reason of a connection that failed. The text of such an error is not shown: it may quote the request. */
export const reasonOfConnection = (error: unknown, isBegun: boolean, host: string): ModelErrorReason =>
  ofConnection(codeOf(error) ?? (isBegun ? "the answer broke off" : "no connection"), host)
