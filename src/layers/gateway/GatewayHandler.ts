/** Handles requests of clients: authenticates them, checks their budgets, and routes them to providers. */

import { Cause, Effect, Metric, Result } from "effect"
import { Buffer } from "node:buffer"
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http"
import { isStored, likelyCost, mayGoOn, mayNameState } from "../../domain/gateway/RequestBody.ts"
import { type RequestTarget, requestTarget, targetText } from "../../domain/gateway/RequestTarget.ts"
import { type Provider, providerOf, providerOfOther, type Route, routeOf } from "../../domain/gateway/Route.ts"
import { wire } from "../../domain/gateway/WireDialects.ts"
import { errorText } from "../../domain/text/ErrorText.ts"
import { Gateway } from "../../services/gateway/Gateway.ts"
import { reportFailure } from "../../services/gateway/GatewayFailures.ts"
import { requestsPassed, requestsRefused, tenantAttribute } from "../../services/gateway/GatewayMetrics.ts"
import type { GatewayPlan } from "../../services/gateway/GatewayPlan.ts"
import { TenantLimiter } from "../../services/serve/TenantLimiter.ts"
import { isReadable, readableEncodings } from "../platform/ContentEncoding.ts"
import { type AccessOptions, accessOf, beyondLimit, type Refusal, refuse } from "./ClientAccess.ts"
import { ByteCollector, type Holder } from "./HeldBytes.ts"
import { type KeptBody, pass, passUnread, planFor, textOf } from "./PassRequest.ts"
import { bodyOf, type ProxiedRequest, sendJson, streaming } from "./ProxiedRequest.ts"
import { askFor } from "./SnapshotRequests.ts"
import { holding, late, type Upstream, UpstreamFailed } from "./Upstream.ts"

/** Options of the handler: the upstreams, and the access of clients. */
export interface GatewayHandlerOptions extends AccessOptions {
  readonly upstreams: Readonly<Record<Provider, string>>
  /** Bodies above this size are streamed through unread, or refused where they must be read. */
  readonly maxBodyBytes: number
  /** Seconds without a byte after which the connection to a provider is closed. */
  readonly silentSeconds: number
  /** Seconds without progress after which a client that sends a body, or reads an answer, is disconnected. */
  readonly clientSeconds: number
}

/** No body takes longer to arrive than this many times `clientSeconds`, and no request longer than `maxRequestMillis`. */
const maxBodyPeriods = 10
const maxRequestMillis = 3_600_000

/** The body of a request, up to the size limit. */
interface Received extends KeptBody {
  /** Whether it is complete. */
  readonly isWhole: boolean
}

const receive = (
  request: IncomingMessage,
  { clientSeconds, maxBodyBytes }: GatewayHandlerOptions,
  holder: Holder
): Effect.Effect<Received, UpstreamFailed> =>
  Effect.callback((resume) => {
    const collector = new ByteCollector(Number(request.headers["content-length"] ?? 0))
    const { socket } = request
    let held = 0
    const hold = (bytes: number) => {
      held += bytes
      holder.add(bytes)
    }
    const deadline = setTimeout(
      () => {
        stop()
        resume(Effect.fail(late("the body did not arrive in time")))
      },
      clientSeconds * maxBodyPeriods * 1_000
    )
    const stop = () => {
      clearTimeout(deadline)
      socket.setTimeout(0)
      request.off("data", onData).off("end", onEnd)
    }
    const onData = (piece: Buffer) => {
      hold(collector.push(piece))
      if (collector.length <= maxBodyBytes) return
      request.pause()
      stop()
      resume(Effect.succeed({ bytes: collector.collected, text: undefined, held, isWhole: false }))
    }
    const onEnd = () => {
      stop()
      const bytes = collector.collected
      resume(
        Effect.sync(() => {
          const text = textOf(bytes, request, maxBodyBytes)
          // A compressed body can be a thousandth of its text.
          hold(Math.max(0, (text?.length ?? 0) - bytes.length))
          return { bytes, text, held, isWhole: true }
        })
      )
    }
    // A client that sends nothing for too long is disconnected by Node.
    socket.setTimeout(clientSeconds * 1_000)
    request.on("data", onData)
    request.once("end", onEnd)
    return Effect.sync(stop)
  })

/** A request whose access is decided. */
interface Admitted {
  readonly passing: ProxiedRequest
  readonly owner: string
  readonly isOperators: boolean
  /** Whether its body counts: for the operator, or in a budget of tokens. */
  readonly mustBeRead: boolean
}

const stateRefusal = "with a token of this server a request cannot name state that the provider keeps"

/** Why a body is refused: where the operator pays, or has set a budget of tokens. */
const bodyRefusal = Effect.fnUntraced(function* (
  { isOperators, mustBeRead, owner, passing: { route } }: Admitted,
  text: string | undefined
) {
  if (!mustBeRead) return undefined
  if (text === undefined) {
    const why = isOperators ? "a token of this server" : "a budget of tokens"
    return refuse(403, `with ${why} the body must be JSON that can be read, within the size limit`)
  }
  if (isOperators) {
    if (mayNameState(text)) return refuse(403, `${stateRefusal}, such as previous_response_id or a file`)
    const { knowsItems } = yield* Gateway
    const isKnown = route?.dialect !== "responses" || (yield* knowsItems(owner, text))
    if (!isKnown) return refuse(403, `${stateRefusal}: it refers to an item that did not pass through here`)
  }
  return mayGoOn(text)
    ? refuse(403, "an answer in the background cannot be counted; send the request without background")
    : undefined
})

const counted = ({ route, tenant }: ProxiedRequest, view: string) =>
  Metric.update(
    Metric.withAttributes(requestsPassed, { dialect: route?.dialect ?? "other", view, ...tenantAttribute(tenant) }),
    1
  )

/** Sends a chat or a count, compressed if it has to be. */
const passRoute = Effect.fnUntraced(function* (admitted: Admitted, body: KeptBody, route: Route) {
  const { owner, passing } = admitted
  const refusal = yield* bodyRefusal(admitted, body.text)
  if (refusal !== undefined) return yield* refused(passing.response, route, refusal)
  const planned = (isTooLong: boolean) => Effect.suspend(() => planFor(route, owner, body.text, isTooLong))
  const plan: GatewayPlan = yield* planned(false)
  yield* counted(passing, plan._tag === "Changed" ? "compressed" : "unchanged")
  yield* pass(passing, plan, body, planned(true))
  if (passing.response.statusCode === 200) {
    const gateway = yield* Gateway
    yield* gateway.prepare(plan, yield* askFor(passing, route.dialect, plan.model))
  }
})

const refused = (response: ServerResponse, route: Route | undefined, { message, retryAfter, status }: Refusal) =>
  Effect.andThen(
    Metric.update(requestsRefused, 1),
    Effect.sync(() => {
      const headers = {
        ...(retryAfter === undefined ? {} : { "retry-after": String(retryAfter) }),
        // RFC 9110 wants the protocols that the client may go on with.
        ...(status === 426 ? { upgrade: "HTTP/1.1", connection: "upgrade" } : {})
      }
      sendJson(response, status, failureBody(route, status, message), headers)
    })
  )

/** The body for a failure of the gateway itself, in the form that the client expects. */
const failureBody = (route: Route | undefined, status: number, message: string): string =>
  JSON.stringify(wire[route?.dialect ?? "chat"].answers.failure(status, message))

/** Holds back what a request may cost, until its answer is over. */
const reserve = (account: string, route: Route, bytes: number, text: string | undefined) =>
  Effect.flatMap(TenantLimiter, ({ limits, reserve }) =>
    Number.isFinite(limits(account).tokens)
      ? Effect.acquireRelease(reserve(account, likelyCost(route, bytes, text)), (settled) => settled)
      : Effect.void
  )

/** Who may refer to the answer of a request later. Without code in a container, a provider that stores no answer keeps nothing of it. */
const keeperOf = (route: Route, owner: string, text: string): ProxiedRequest["keeper"] => {
  const stored = isStored(route, text)
  return stored === true || (stored === false && text.includes("code_interpreter"))
    ? { owner, isStored: stored }
    : undefined
}

const work = Effect.fnUntraced(function* (
  options: GatewayHandlerOptions,
  request: IncomingMessage,
  response: ServerResponse,
  target: RequestTarget,
  holder: Holder
) {
  const { clientSeconds, maxBodyBytes, silentSeconds, upstreams } = options
  const { headers, method = "GET" } = request
  const route = routeOf(method, target)
  const provider =
    route === undefined ? providerOfOther(target, (name) => headers[name] !== undefined) : providerOf(route, target)
  const access = yield* accessOf(options, request, target, { provider, route })
  if ("status" in access) {
    request.resume()
    return yield* refused(response, route, access)
  }
  const { account, carried, isOperators, owner, tenant } = access
  const url = new URL(upstreams[provider])
  // An address may have parameters of its own, as the `api-version` of Azure.
  const own = requestTarget(url.pathname + url.search)?.query ?? []
  const query = [...own.filter(({ name }) => carried.query.every((given) => given.name !== name)), ...carried.query]
  const path = `${url.pathname.replace(/\/$/, "")}${targetText({ ...target, query })}`
  const declared = Number(headers["content-length"] ?? 0)
  const { limits } = yield* TenantLimiter
  const mustBeRead = isOperators || Number.isFinite(limits(account).tokens)
  const isRead = route !== undefined && (declared <= maxBodyBytes || mustBeRead)
  const received: Received = isRead
    ? yield* receive(request, options, holder)
    : { bytes: Buffer.alloc(0), text: undefined, held: 0, isWhole: false }
  const passing: ProxiedRequest = {
    response,
    route,
    account,
    tenant,
    upstream: { url, path, method, headers: carried.headers, silentSeconds },
    // A compressed body can be a thousandth of its text.
    bodyBytes: Math.max(declared, received.bytes.length, received.text?.length ?? 0),
    holder,
    clientSeconds,
    keeper: route?.asks === "answer" ? keeperOf(route, owner, received.text ?? "") : undefined
  }
  if (route?.asks === "answer") {
    const reserved = yield* Effect.result(reserve(account, route, passing.bodyBytes, received.text))
    if (Result.isFailure(reserved)) return yield* refused(response, route, beyondLimit(reserved.failure))
  }
  if (route !== undefined && (received.isWhole || mustBeRead)) {
    return yield* passRoute({ passing, owner, isOperators, mustBeRead }, received, route)
  }
  yield* counted(passing, "unread")
  const hasBody = declared > 0 || headers["transfer-encoding"] !== undefined
  const answer = yield* streaming(passing, hasBody ? bodyOf(request, received.bytes, clientSeconds) : undefined)
  yield* passUnread(passing, { model: route?.model ?? "", estimated: undefined }, answer)
})

/** Why a request cannot be read at all. */
const malformed = (
  target: RequestTarget | undefined,
  route: Route | undefined,
  { "content-encoding": encoding = "", "transfer-encoding": coding = "chunked", upgrade = "" }: IncomingHttpHeaders
): Refusal | undefined => {
  if (target === undefined) return refuse(400, "the target of the request is no path")
  if (coding.toLowerCase() !== "chunked") return refuse(400, "transfer-encoding may only be chunked")
  // Codex goes on with HTTP after this status.
  if (/\bwebsocket\b/i.test(upgrade)) return refuse(426, "WebSockets are not supported; use HTTP")
  return route === undefined || isReadable(encoding)
    ? undefined
    : refuse(
        415,
        `the gateway cannot read content-encoding ${encoding}; send the body as it is, or in ${readableEncodings}`
      )
}

/**
 * Answers a request whose target begins behind `prefix`. A failure in the gateway itself is reported, and the client gets an error in its
 * dialect.
 */
export const handle = (
  options: GatewayHandlerOptions,
  request: IncomingMessage,
  response: ServerResponse,
  prefix = ""
): Effect.Effect<void, never, Gateway | TenantLimiter | Upstream> => {
  const whole = requestTarget(request.url ?? "/")
  // Dots may lead out of the prefix.
  const isWithin = whole !== undefined && `${whole.path}/`.startsWith(`${prefix}/`)
  const target = isWithin ? { ...whole, path: whole.path.slice(prefix.length) || "/" } : undefined
  const route = target === undefined ? undefined : routeOf(request.method ?? "", target)
  const refusal = malformed(target, route, request.headers)
  if (target === undefined || refusal !== undefined) {
    request.resume()
    return refused(response, route, refusal ?? refuse(400, ""))
  }
  return holding(maxRequestMillis, (holder) => Effect.scoped(work(options, request, response, target, holder))).pipe(
    Effect.catchCause((cause) => {
      const [upstream] = cause.reasons.flatMap((reason) =>
        reason._tag === "Fail" && reason.error instanceof UpstreamFailed ? [reason.error] : []
      )
      const status = upstream?.status ?? 502
      const message = `palimpsest gateway: ${errorText(Cause.squash(cause))}`
      return Effect.andThen(
        upstream === undefined ? reportFailure(cause, `the client gets status ${status}`) : Effect.void,
        Effect.sync(() => sendJson(response, status, failureBody(route, status, message)))
      )
    })
  )
}
