/** Turns failures of providers and of the connection into a `ModelError`, and its reasons. */

import { Duration } from "effect"
import { clipped } from "../../domain/text/Bytes.ts"
import { excessOf, type ProviderFault, refusedIn, refusedTool } from "../../domain/wire/ProviderFault.ts"
import {
  AuthenticationError,
  ContentPolicyError,
  ContextLengthError,
  InternalProviderError,
  InvalidRequestError,
  InvalidResponseError,
  ModelError,
  type ModelErrorReason,
  NetworkError,
  QuotaExhaustedError,
  RateLimitError,
  RequestBytesError
} from "../../services/model/Model.ts"
import { codeOf } from "../platform/ConnectionCode.ts"

/** A `ModelError` for a reason. */
export const failed = (reason: ModelErrorReason) => new ModelError({ reason })

/** A text of the server in one line, cut to what fits an error message. */
export const clip = (text: string): string => clipped(text.trim().replace(/\s+/g, " "), 500)

/** The error of an answer that cannot be used. */
export const unusable = (detail: string) => failed(new InvalidResponseError({ detail: clip(detail) }))

/** The shortest key that is hidden. Local servers are given keys such as `x` or `none`, whose letters are in every message. */
const minHiddenKey = 8

/** Returns a function that removes the key from a text of the server. */
export const hideKey =
  ({ key }: { readonly key: string | undefined }) =>
  (text: string): string =>
    key === undefined || key.length < minHiddenKey ? text : text.replaceAll(key, "<key>")

/** How servers say that an account is empty, or at a limit of hours and more: z.ai, MiniMax, xAI, OpenRouter, Ollama, Codex, Gemini. */
const emptyAccount =
  /insufficient balance|余额不足|key limit exceeded|usage.limit.(?:has been )?(?:reached|exceeded)|(?:hourly|daily|weekly|monthly) (?:\w+ ){0,2}(?:limit|cap\b)|credits are depleted|available credits|extra usage is required|free-models-per-day/i

/** Whether a quota is used up that does not refill within minutes. The Gemini API says the same of a rate, in details. */
const isQuota = (status: number, { exhaustedQuota, kind, message }: ProviderFault): boolean =>
  exhaustedQuota !== undefined ||
  // What is wrong with a request is said in its own words.
  (status !== 400 &&
    status !== 422 &&
    !/per minute|\brpm\b/i.test(message) &&
    emptyAccount.test(`${kind} ${message}`)) ||
  (!/RESOURCE_EXHAUSTED/.test(kind) &&
    /insufficient_quota|billing|credit balance|exceeded your current quota/i.test(`${kind} ${message}`))

const isPolicyKind = /content_policy|content_filter|moderation|invalid_prompt|data_inspection/i
/** How xAI, OpenRouter, DashScope and z.ai say that they refuse what a request is about. */
const policyWords = /usage guidelines|input was flagged|inappropriate content|敏感内容/i

/** Why a request was refused for what it is about, in the provider's word. */
const policyOf = (status: number, { kind, message }: ProviderFault): string | undefined => {
  if (isPolicyKind.test(kind)) return kind
  // An overloaded server may name its guidelines, too, and vLLM quotes the request.
  const isOfRequest = ![408, 409, 429, 502, 503, 529].includes(status) && !message.includes("'input':")
  return isOfRequest && policyWords.test(message) ? message : undefined
}

/** How servers that read calls themselves say that the model wrote none they can read: Groq. Another answer may have one. */
const isUnreadable = /tool_use_failed|output_parse_failed/

/** The words of servers, and of proxies before them, that have nothing at a path. */
const isNowhere =
  /^(?:(?:404 )?(?:(?:page |resource )?not found|method not allowed)\.?$|unexpected endpoint or method)/i

/** The header `retry-after` (seconds, or a date by the server's clock) or `retry-after-ms`. */
export const retryAfter = (
  header: (name: "date" | "retry-after" | "retry-after-ms") => string | undefined
): Duration.Duration | undefined => {
  const millis = header("retry-after-ms") ?? ""
  if (/^\d+(?:\.\d+)?$/.test(millis)) return Duration.millis(Number(millis))
  const value = header("retry-after") ?? ""
  if (value === "") return undefined
  const seconds = /^\d+(?:\.\d+)?$/.test(value)
    ? Number(value)
    : (Date.parse(value) - Date.parse(header("date") ?? "")) / 1000
  return Number.isFinite(seconds) ? Duration.seconds(Math.max(0, seconds)) : undefined
}

/** The delay that an error states, also in a message: `Please try again in 1m1.2s`, `Please retry after 20 seconds`. */
const statedDelay = ({ message, retryMillis }: ProviderFault): Duration.Duration | undefined => {
  if (retryMillis !== undefined) return Duration.millis(retryMillis)
  const [, hours = 0, minutes = 0, number, unit] =
    /(?:try again in|retry (?:after|in)) (?:(\d+)h)?(?:(\d+)m(?!s))?(\d+(?:\.\d+)?) ?(ms|s)/i.exec(message) ?? []
  if (number === undefined) return undefined
  const seconds = Number(hours) * 3_600 + Number(minutes) * 60
  return Duration.millis(seconds * 1_000 + Number(number) * (unit === "ms" ? 1 : 1_000))
}

/** Names used in the messages. */
export interface ProviderNames {
  /** The environment variables of the key, of several the first that is set; and of the address. */
  readonly keys: readonly [string, ...ReadonlyArray<string>]
  readonly baseUrl: string
  /** The name of the API. */
  readonly api: string
}

/** A failure of the key. */
export const keyError = (kind: AuthenticationError["kind"], { keys: [variable] }: ProviderNames) =>
  new AuthenticationError({ kind, variable })

/** The reason of an answer with the status of an error. */
export const reasonOfStatus = (
  status: number,
  fault: ProviderFault,
  delay: Duration.Duration | undefined,
  names: ProviderNames
): ModelErrorReason => {
  const { isPage = false, kind, message } = fault
  const detail = clip(message) || `HTTP ${status}`
  const retryDelay = delay ?? statedDelay(fault)
  const waiting = retryDelay === undefined ? {} : { retryAfter: retryDelay }
  if (status >= 300 && status < 400) return new InvalidResponseError({ detail: `a redirection (${status})` })
  const { _tag: excess, ...counts } = excessOf(status, fault) ?? {}
  if (excess === "TooManyBytes") return new RequestBytesError({})
  if (excess === "TooManyTokens") return new ContextLengthError(counts)
  if (status < 500 && (isPage || ([404, 405].includes(status) && isNowhere.test(message.trim())))) {
    const answered = `HTTP ${status}${isPage ? " and a page" : ""}`
    return new InvalidRequestError({
      detail: `this address does not serve the ${names.api} API (${answered}); check ${names.baseUrl}, and the name of the model`
    })
  }
  if (status === 401 || fault.isKeyRefused === true) return keyError("InvalidKey", names)
  const policy = policyOf(status, fault)
  if (policy !== undefined) return new ContentPolicyError({ finishReason: clip(policy) })
  if (isUnreadable.test(kind)) return new InvalidResponseError({ detail })
  const refused = refusedIn(status, fault)
  const tool = refusedTool(status, fault)
  if (refused !== undefined)
    return new InvalidRequestError({ detail, refused, ...(tool === undefined ? {} : { tool }) })
  if (status === 402 || isQuota(status, fault))
    return new QuotaExhaustedError({ detail: clip(fault.exhaustedQuota ?? detail) })
  if (status === 403) return keyError("InsufficientPermissions", names)
  if (status === 429) return new RateLimitError(waiting)
  if (status === 408 || status === 409 || status >= 500) {
    const said = isPage || clip(message) === "" ? {} : { detail }
    return new InternalProviderError({ status, ...said, ...waiting })
  }
  return new InvalidRequestError({ detail })
}

/** The status that an error would have had, if it had come before the answer began. */
const statusOfKind = (kind: string): number => {
  if (/overloaded/.test(kind)) return 529
  if (/rate_limit/.test(kind)) return 429
  if (/authentication|invalid_api_key/.test(kind)) return 401
  if (/permission/.test(kind)) return 403
  if (/billing/.test(kind)) return 402
  // MiniMax's.
  if (/^(?:1004|2049)$/.test(kind)) return 401
  if (/^1002$/.test(kind)) return 429
  if (/^2013$/.test(kind)) return 400
  if (/context|invalid_request|invalid_prompt|content_|not_found/.test(kind)) return 400
  return 500
}

/** The reason of an error in the middle of an answer. */
export const reasonOfEvent = (fault: ProviderFault, names: ProviderNames): ModelErrorReason => {
  // LM Studio says so with the status of an answer.
  const isElsewhere = fault.kind === "" && isNowhere.test(fault.message)
  const code = isElsewhere ? 404 : Number(/\b[45]\d\d\b/.exec(fault.kind)?.[0] ?? statusOfKind(fault.kind))
  return reasonOfStatus(code, fault, undefined, names)
}

/** The reason of a connection that failed. The text of such an error is not shown: it may quote the request. */
export const reasonOfConnection = (error: unknown, isBegun: boolean, host: string): ModelErrorReason => {
  const cause = codeOf(error) ?? (isBegun ? "the answer broke off" : "no connection")
  return new NetworkError({ detail: `${cause}, ${host}`, ...(isBegun ? { isBegun } : {}) })
}
