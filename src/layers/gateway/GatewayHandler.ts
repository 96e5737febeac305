import { Cause, Effect, Metric } from "effect"
import { Buffer } from "node:buffer"
import type { IncomingMessage, ServerResponse } from "node:http"
import { pipeline } from "node:stream"
import { type Provider, providerOf, providerOfOther, routeOf } from "../../domain/gateway/Dialect.ts"
import { failureBody } from "../../domain/gateway/FailureBody.ts"
import type { GatewayAccess } from "../../domain/gateway/GatewayAccess.ts"
import { errorText } from "../../domain/text/ErrorText.ts"
import { Gateway } from "../../services/gateway/Gateway.ts"
import { requestsPassed, requestsRefused, tenantAttribute } from "../../services/gateway/GatewayMetrics.ts"
import type { GatewayPlan } from "../../services/gateway/GatewayPlan.ts"
import type { TenantLimiter } from "../../services/serve/TenantLimiter.ts"
import { accessOf, type TokenAccess } from "./ClientAccess.ts"
import { reportFailure } from "./GatewayFailures.ts"
import { pass, planFor } from "./PassRequest.ts"
import { passAnswer, type ProxiedRequest, sendJson } from "./ProxiedRequest.ts"
import { askFor } from "./SnapshotRequests.ts"
import { send, UpstreamFailed } from "./UpstreamRequests.ts"

/** Handles requests of clients: authenticates them, checks their budgets, and routes them to providers. */

/** Options of the handler: the upstreams, and the access of clients. */
export interface GatewayHandlerOptions extends GatewayAccess {
  readonly upstreams: Readonly<Record<Provider, string>>
  /** Bodies above this size are streamed through unread. */
  readonly maxBodyBytes: number
  /** Seconds without a byte after which the connection to a provider is closed. */
  readonly silentSeconds: number
  /** Tokens of the server that clients may use in place of keys. Absent: keys only. */
  readonly tokens?: TokenAccess | undefined
}

/** The body of a request, up to the size limit. */
interface Received {
  readonly body: Buffer
  /** Whether `body` is complete. */
  readonly isWhole: boolean
}

const receive = (request: IncomingMessage, maxBytes: number): Effect.Effect<Received> =>
  Effect.callback((resume) => {
    const pieces: Array<Buffer> = []
    let size = 0
    const onData = (piece: Buffer) => {
      pieces.push(piece)
      size += piece.length
      if (size <= maxBytes) return
      request.pause()
      request.off("data", onData)
      request.off("end", onEnd)
      resume(Effect.succeed({ body: Buffer.concat(pieces), isWhole: false }))
    }
    const onEnd = () => resume(Effect.succeed({ body: Buffer.concat(pieces), isWhole: true }))
    request.on("data", onData)
    request.once("end", onEnd)
  })

/** Returns the path and query of a request. A path that begins with two slashes does not name a host. */
const addressOf = ({ url = "/" }: IncomingMessage): URL => {
  const address = new URL("http://gateway")
  const [pathname = "/", ...search] = url.split("?")
  address.pathname = pathname
  address.search = search.join("?")
  return address
}

const work = Effect.fnUntraced(function* (
  options: GatewayHandlerOptions,
  request: IncomingMessage,
  response: ServerResponse
) {
  const url = addressOf(request)
  const method = request.method ?? "GET"
  const route = routeOf(method, url)
  const provider =
    route === undefined
      ? providerOfOther(url.pathname, (name) => request.headers[name] !== undefined)
      : providerOf(route.dialect)
  const access = yield* accessOf(options, request, url, provider)
  if ("status" in access) {
    const { message, retryAfter, status } = access
    yield* Metric.update(requestsRefused, 1)
    request.resume()
    const headers = retryAfter === undefined ? {} : { "retry-after": String(retryAfter) }
    return sendJson(response, status, failureBody(route?.dialect, status, message), headers)
  }
  const { account, headers, owner, tenant } = access
  const base = new URL(options.upstreams[provider])
  const path = `${base.pathname.replace(/\/$/, "")}${access.path}`
  const upstream = { url: base, path, method, headers, silentSeconds: options.silentSeconds }
  const passing: ProxiedRequest = { request, response, route, account, tenant, upstream }
  const counted = (view: string) =>
    Metric.update(
      Metric.withAttributes(requestsPassed, { dialect: route?.dialect ?? "other", view, ...tenantAttribute(tenant) }),
      1
    )
  const declared = Number(request.headers["content-length"] ?? 0)
  const received =
    route === undefined || declared > options.maxBodyBytes
      ? { body: Buffer.alloc(0), isWhole: false }
      : yield* receive(request, options.maxBodyBytes)
  if (!received.isWhole) {
    yield* counted("unread")
    const answer = yield* send(passing.upstream, (upstream) => {
      if (received.body.length > 0) upstream.write(received.body)
      pipeline(request, upstream, () => {})
    })
    return yield* passAnswer(answer, response)
  }
  const planned = (isTooLong: boolean) =>
    route === undefined
      ? Effect.succeed<GatewayPlan>({ _tag: "Unchanged", model: "", tokens: undefined })
      : planFor(route, owner, received.body, request, { isTooLong, maxBodyBytes: options.maxBodyBytes })
  const plan = yield* planned(false)
  yield* counted(plan._tag === "Changed" ? "compressed" : "unchanged")
  yield* pass(passing, plan, received.body, planned(true))
  if (route !== undefined && response.statusCode === 200) {
    const gateway = yield* Gateway
    yield* gateway.prepare(plan, yield* askFor(passing, route.dialect, plan.model))
  }
})

/** Answers a request. A failure in the gateway itself is reported, and the client gets an error in its dialect. */
export const handle = (
  options: GatewayHandlerOptions,
  request: IncomingMessage,
  response: ServerResponse
): Effect.Effect<void, never, Gateway | TenantLimiter> =>
  work(options, request, response).pipe(
    Effect.catchCause((cause) => {
      const upstream = cause.reasons.flatMap((reason) =>
        reason._tag === "Fail" && reason.error instanceof UpstreamFailed ? [reason.error] : []
      )[0]
      const status = upstream?.status ?? 502
      const route = routeOf(request.method ?? "", addressOf(request))
      const error = Cause.squash(cause)
      const message = errorText(error)
      return Effect.andThen(
        upstream === undefined ? reportFailure(cause) : Effect.void,
        Effect.sync(() =>
          sendJson(response, status, failureBody(route?.dialect, status, `palimpsest gateway: ${message}`))
        )
      )
    })
  )
