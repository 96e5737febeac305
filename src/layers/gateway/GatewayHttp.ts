import { Cause, Effect, Exit, Fiber, Layer, Metric, Schema } from "effect"
import * as PrometheusMetrics from "effect/observability/PrometheusMetrics"
import { Buffer, isUtf8 } from "node:buffer"
import { hash } from "node:crypto"
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import { pipeline } from "node:stream"
import { isTooLong as isRefusedAsTooLong, usageOf } from "../../domain/gateway/AnswerUsage.ts"
import { type Provider, providerOf, providerOfOther, type Route, routeOf } from "../../domain/gateway/Dialect.ts"
import { answerDialects } from "../../domain/gateway/DialectForms.ts"
import { failureBody } from "../../domain/gateway/FailureBody.ts"
import { SseSplitter } from "../../domain/gateway/SseEvents.ts"
import { builtInPrices, priceOf, requestCost } from "../../domain/tokens/Prices.ts"
import { nextStep, noRounds } from "../../services/gateway/AnswerRounds.ts"
import { Gateway, type GatewayPlan, type SentView } from "../../services/gateway/Gateway.ts"
import {
  compressionsDone,
  failuresPassed,
  microDollars,
  requestsPassed,
  requestsRefused,
  tokensCounted,
  tokensSaved
} from "../../services/gateway/GatewayMetrics.ts"
import { GatewayServer } from "../../services/gateway/GatewayServer.ts"
import { TenantLimiter } from "../../services/serve/TenantLimiter.ts"
import { meter } from "./AnswerMeter.ts"
import { decoded } from "./BodyEncoding.ts"
import { endToEnd, readAll, send, type UpstreamRequest, UpstreamFailed } from "./UpstreamRequests.ts"

/**
 * One file: the HTTP side of the gateway. It uses Node's server and client directly: a request that fits goes through as the bytes
 * it is, with its headers as they were written, and its answer is piped. A framework between them would decode both.
 */

/** Options of the server. */
export interface GatewayHttpOptions {
  readonly host: string
  readonly port: number
  readonly upstreams: Readonly<Record<Provider, string>>
  /** Bodies above this size are streamed through unread. */
  readonly maxBodyBytes: number
  /** Seconds that running requests get when the server stops. */
  readonly drainSeconds: number
  readonly page: { readonly html: string; readonly policy: string }
  /** The keys that may use the gateway, as `sha256:…`. Absent: all. */
  readonly keys?: ReadonlyArray<string> | undefined
}

/** The address cannot be listened at. The message says why, and what to do. */
export class GatewayListenError extends Schema.TaggedError<GatewayListenError>()("ListenError", {
  message: Schema.String
}) {}

const sessionHeader = "x-palimpsest-session"

/** Whose conversations a request may see: the hash of its key, wherever the client puts it. */
const ownerOf = (request: IncomingMessage, url: URL): string => {
  const { authorization, "x-api-key": key, "x-goog-api-key": google } = request.headers
  const bearer = authorization?.replace(/^Bearer\s+/i, "")
  const given = [key, google, bearer, url.searchParams.get("key")].find(
    (value) => value !== undefined && value !== null && value !== ""
  )
  return hash("sha256", String(given ?? ""), "hex")
}

/** Why a request is refused before it goes out: its key is none of those that may use the gateway, or has used what it may. */
const refusalOf = Effect.fnUntraced(function* ({ keys }: GatewayHttpOptions, owner: string) {
  const limiter = yield* TenantLimiter
  if (keys !== undefined && !keys.includes(`sha256:${owner}`)) {
    return { status: 401, message: "palimpsest gateway: this key may not use the gateway", retryAfter: undefined }
  }
  const used = yield* Effect.result(Effect.andThen(limiter.request(owner), limiter.checkTokens(owner)))
  return used._tag === "Success"
    ? undefined
    : { status: 429, message: `palimpsest gateway: ${used.failure.message}`, retryAfter: used.failure.retryAfter }
})

/** The body of a request as far as it is not larger than the bound. */
interface Received {
  readonly body: Buffer
  /** Whether that is all of it. */
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

/** Writes to a client that reads as fast as it can. */
const write = (response: ServerResponse, text: string): Effect.Effect<void> =>
  text === ""
    ? Effect.void
    : Effect.callback((resume) => {
        if (response.write(text)) {
          resume(Effect.void)
          return
        }
        const done = () => {
          response.off("drain", done).off("close", done)
          resume(Effect.void)
        }
        response.on("drain", done).on("close", done)
      })

/** Passes an answer on, as the bytes it is. A provider that breaks off leaves a client whose connection breaks. */
const passAnswer = (from: IncomingMessage, to: ServerResponse): Effect.Effect<void> =>
  Effect.callback((resume) => {
    to.writeHead(from.statusCode ?? 502, from.statusMessage ?? "", endToEnd(from.rawHeaders))
    to.flushHeaders()
    pipeline(from, to, () => resume(Effect.void))
    return Effect.sync(() => void from.destroy())
  })

const sendJson = (
  response: ServerResponse,
  status: number,
  body: string,
  headers: Readonly<Record<string, string>> = {}
): void => {
  if (response.headersSent) {
    response.destroy()
    return
  }
  response.writeHead(status, {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
    ...headers
  })
  response.end(body)
}

/** One request, and where it goes. */
interface Passing {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly upstream: UpstreamRequest
  readonly route: Route | undefined
  readonly owner: string
}

const asSent = ({ upstream }: Passing, body: Buffer) =>
  send(upstream, (request) => {
    request.end(body)
  })

/** The same request with another body, whose answer can be read. */
const withText = ({ upstream }: Passing, text: string, isRead: boolean) => {
  const body = Buffer.from(text)
  const without = ["content-length", "content-encoding", ...(isRead ? ["accept-encoding"] : [])]
  const headers = [
    ...endToEnd(upstream.headers, without),
    ...(isRead ? ["Accept-Encoding", "identity"] : []),
    "Content-Length",
    String(body.length)
  ]
  return send({ ...upstream, headers }, (request) => {
    request.end(body)
  })
}

const typeOf = ({ headers }: IncomingMessage): string => headers["content-type"] ?? ""

/** Counts what an answer cost, and learns from it. */
const account = Effect.fnUntraced(
  function* ({ owner, route }: Passing, model: string, estimated: number | undefined, counts: unknown) {
    const usage = route === undefined ? undefined : usageOf(route.dialect, counts)
    if (usage === undefined) return
    const { learn } = yield* Gateway
    const limiter = yield* TenantLimiter
    if (estimated !== undefined) learn(model, estimated, usage.prompt)
    const { answer, cached, cacheWrite = 0, prompt, thoughts } = usage
    yield* limiter.tokens(owner, prompt + answer + thoughts)
    const kinds = { input: prompt - cached - cacheWrite, cached, written: cacheWrite, output: answer + thoughts }
    for (const [kind, tokens] of Object.entries(kinds)) {
      if (tokens > 0) yield* Metric.update(Metric.withAttributes(tokensCounted, { kind }), tokens)
    }
    const price = priceOf(builtInPrices.table, model)
    if (price !== undefined) yield* Metric.update(microDollars, Math.round(requestCost(price, usage)))
  },
  Effect.catchCause((cause) => reportFailure(cause))
)

/** Reads a stream of events while it passes it on, and asks again as long as the model calls our tool. */
const passStream = Effect.fnUntraced(function* (
  passing: Passing,
  sent: SentView,
  tool: string,
  first: IncomingMessage
) {
  const gateway = yield* Gateway
  const { response } = passing
  const stream = answerDialects[sent.body.dialect].stream(tool)
  response.writeHead(first.statusCode ?? 200, first.statusMessage ?? "", endToEnd(first.rawHeaders, ["content-length"]))
  response.flushHeaders()
  let rounds = noRounds
  let answer = first
  for (;;) {
    const splitter = new SseSplitter()
    const decoder = new TextDecoder()
    yield* Effect.callback<void, UpstreamFailed>((resume) => {
      const failed = (cause: unknown) =>
        resume(Effect.fail(new UpstreamFailed({ message: "the provider closed the connection", cause })))
      const take = (text: string) => {
        if (text === "" || response.write(text)) return
        answer.pause()
        response.once("drain", () => answer.resume())
      }
      // An exception in a listener would end the process.
      const safely = (work: () => void) => () => {
        try {
          work()
        } catch (cause) {
          answer.destroy()
          resume(Effect.die(cause))
        }
      }
      const read = (piece: string) => {
        for (const event of splitter.push(piece)) take(stream.push(event))
      }
      answer.on("data", (piece: Buffer) => safely(() => read(decoder.decode(piece, { stream: true })))())
      answer.once(
        "end",
        safely(() => {
          read(decoder.decode())
          for (const event of splitter.end()) take(stream.push(event))
          resume(Effect.void)
        })
      )
      answer.once("error", failed)
      answer.once("close", () => {
        if (!answer.complete) failed(undefined)
      })
      return Effect.sync(() => void answer.destroy())
    })
    const read = stream.read()
    yield* account(passing, sent.body.model, rounds.rounds.length === 0 ? sent.tokens : undefined, read.usage)
    const step = yield* nextStep(gateway, sent, rounds, read, reportFailure)
    if (step._tag === "End") {
      yield* write(response, stream.finish(step.ending))
      response.end()
      return
    }
    const told = stream.next(step.note)
    rounds = step.rounds
    yield* write(response, told)
    answer = yield* withText(passing, step.text, true)
    if (answer.statusCode !== 200 || !typeOf(answer).includes("event-stream")) {
      const body = (yield* readAll(answer)).toString("utf8")
      yield* write(response, stream.failure(answer.statusCode ?? 502, body))
      response.end()
      return
    }
  }
})

/** Reads a whole answer, and asks again as long as the model calls our tool. */
const passWhole = Effect.fnUntraced(function* (passing: Passing, sent: SentView, tool: string, first: IncomingMessage) {
  const gateway = yield* Gateway
  const whole = answerDialects[sent.body.dialect].whole(tool)
  const { response } = passing
  let rounds = noRounds
  let answer = first
  for (;;) {
    const body = yield* readAll(answer)
    const read = answer.statusCode === 200 ? whole.push(body.toString("utf8")) : undefined
    if (read === undefined) {
      response.writeHead(answer.statusCode ?? 502, answer.statusMessage ?? "", endToEnd(answer.rawHeaders))
      response.end(body)
      return
    }
    yield* account(passing, sent.body.model, rounds.rounds.length === 0 ? sent.tokens : undefined, read.usage)
    const step = yield* nextStep(gateway, sent, rounds, read, reportFailure)
    if (step._tag === "End") {
      const text = Buffer.from(whole.finish(step.ending))
      response.writeHead(200, [
        ...endToEnd(answer.rawHeaders, ["content-length"]),
        "Content-Length",
        String(text.length)
      ])
      response.end(text)
      return
    }
    whole.next(step.note)
    rounds = step.rounds
    answer = yield* withText(passing, step.text, true)
  }
})

/** Bodies of refusals that are looked at. */
const maxRefusalBytes = 65_536

/** Passes an answer on that nobody changes, and counts what it cost. */
const passUnread = Effect.fnUntraced(function* (
  passing: Passing,
  { model, tokens }: { readonly model: string; readonly tokens: number | undefined },
  answer: IncomingMessage
) {
  const context = yield* Effect.context<Gateway | TenantLimiter>()
  if (answer.statusCode === 200 && passing.route?.asks === "answer") {
    meter(answer, (counts) => void Effect.runForkWith(context)(account(passing, model, tokens, counts)))
  }
  yield* passAnswer(answer, passing.response)
})

/** Passes back an answer whose body was read. */
const passRead = ({ response }: Passing, answer: IncomingMessage, body: Buffer): void => {
  response.writeHead(answer.statusCode ?? 502, answer.statusMessage ?? "", endToEnd(answer.rawHeaders))
  response.end(body)
}

/** Sends a request on, and its answer back. `retry` makes a plan for a request that the provider refused as too long. */
const pass = Effect.fnUntraced(function* (
  passing: Passing,
  plan: GatewayPlan,
  body: Buffer,
  retry: Effect.Effect<GatewayPlan | undefined, never, Gateway | TenantLimiter>
): Effect.fn.Return<void, UpstreamFailed, Gateway | TenantLimiter> {
  const isChanged = plan._tag === "Changed"
  const declaration = isChanged ? plan.sent.declaration : undefined
  const answer = isChanged
    ? yield* withText(passing, plan.text, declaration !== undefined)
    : yield* asSent(passing, body)
  const status = answer.statusCode ?? 502
  const size = Number(answer.headers["content-length"] ?? 0)
  if ((status === 400 || status === 413) && passing.route?.asks === "answer" && size < maxRefusalBytes) {
    const refusal = yield* readAll(answer)
    if (isRefusedAsTooLong(status, refusal.toString("utf8"))) {
      const next = yield* retry
      if (next?._tag === "Changed") return yield* pass(passing, next, body, Effect.undefined)
    } else if (isChanged && plan.before < plan.sent.limit) {
      // What we made of the request may be what it refused.
      yield* reportFailure(Cause.fail(new Error(`the provider refused a compressed request (${status})`)))
      return yield* pass(passing, { _tag: "Unchanged", model: plan.model, tokens: plan.before }, body, Effect.undefined)
    }
    return passRead(passing, answer, refusal)
  }
  const tokens = isChanged ? plan.after : plan.tokens
  if (!isChanged || declaration === undefined || status !== 200) {
    return yield* passUnread(passing, { model: plan.model, tokens }, answer)
  }
  if (typeOf(answer).includes("event-stream")) return yield* passStream(passing, plan.sent, declaration.name, answer)
  if (typeOf(answer).includes("json")) return yield* passWhole(passing, plan.sent, declaration.name, answer)
  return yield* passUnread(passing, { model: plan.model, tokens }, answer)
})

/** The text of a body; undefined for bytes that are none, or that take more than the bound. Codex compresses what it sends. */
const textOf = (body: Buffer, { headers }: IncomingMessage, maxBytes: number): string | undefined => {
  const plain = decoded(body, headers["content-encoding"] ?? "identity", maxBytes)
  return plain !== undefined && isUtf8(plain) ? plain.toString("utf8") : undefined
}

/** Decides what goes out for a request. Whatever fails here, the request goes out as it came. */
const planFor = Effect.fnUntraced(function* (
  route: Route,
  owner: string,
  body: Buffer,
  request: IncomingMessage,
  { isTooLong, maxBodyBytes }: { readonly isTooLong: boolean; readonly maxBodyBytes: number }
) {
  const gateway = yield* Gateway
  const text = textOf(body, request, maxBodyBytes)
  const unchanged: GatewayPlan = { _tag: "Unchanged", model: route.model ?? "", tokens: undefined }
  if (text === undefined) return unchanged
  const session = request.headers[sessionHeader]
  const plan = yield* gateway
    .plan({ owner, route, text, isTooLong, ...(typeof session === "string" ? { session } : {}) })
    .pipe(Effect.catchCause((cause) => Effect.as(reportFailure(cause), unchanged)))
  if (plan._tag === "Changed") {
    yield* Metric.update(tokensSaved, Math.max(0, plan.before - plan.after))
    if (plan.isNew) yield* Metric.update(compressionsDone, 1)
  }
  return plan
})

const reported = new Set<string>()

/** Tells of a failure of ours, each once. */
const reportFailure = (cause: Cause.Cause<unknown>) =>
  Effect.suspend(() => {
    if (Cause.hasInterruptsOnly(cause)) return Effect.void
    const error = Cause.squash(cause)
    const message = error instanceof Error ? error.message : String(error)
    const counted = Metric.update(failuresPassed, 1)
    if (reported.has(message)) return counted
    reported.add(message)
    return Effect.andThen(counted, Effect.logWarning(`gateway: ${message}; requests go through unchanged`))
  })

/** The address that a request asks for. A path of two slashes is no host. */
const addressOf = ({ url = "/" }: IncomingMessage): URL => {
  const address = new URL("http://gateway")
  const [pathname = "/", ...search] = url.split("?")
  address.pathname = pathname
  address.search = search.join("?")
  return address
}

const handle = Effect.fnUntraced(function* (
  options: GatewayHttpOptions,
  request: IncomingMessage,
  response: ServerResponse
) {
  const url = addressOf(request)
  const method = request.method ?? "GET"
  if (method === "GET" && url.pathname === "/") {
    response.writeHead(200, {
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": options.page.policy
    })
    response.end(options.page.html)
    return
  }
  if (method === "GET" && url.pathname === "/health") return sendJson(response, 200, '{"status":"ok"}')
  if (method === "GET" && url.pathname === "/metrics") {
    const text = yield* PrometheusMetrics.format()
    response.writeHead(200, { "content-type": "text/plain; version=0.0.4; charset=utf-8" })
    response.end(text)
    return
  }
  const route = routeOf(method, url)
  const provider =
    route === undefined
      ? providerOfOther(url.pathname, (name) => request.headers[name] !== undefined)
      : providerOf(route.dialect)
  const owner = ownerOf(request, url)
  const refusal = yield* refusalOf(options, owner)
  if (refusal !== undefined) {
    const { message, retryAfter, status } = refusal
    yield* Metric.update(requestsRefused, 1)
    request.resume()
    const headers = retryAfter === undefined ? {} : { "retry-after": String(retryAfter) }
    return sendJson(response, status, failureBody(route?.dialect, status, message), headers)
  }
  const base = new URL(options.upstreams[provider])
  const path = `${base.pathname.replace(/\/$/, "")}${request.url ?? "/"}`
  const passing: Passing = {
    request,
    response,
    route,
    owner,
    upstream: { url: base, path, method, headers: endToEnd(request.rawHeaders, ["host", sessionHeader]) }
  }
  const declared = Number(request.headers["content-length"] ?? 0)
  const received =
    route === undefined || declared > options.maxBodyBytes
      ? { body: Buffer.alloc(0), isWhole: false }
      : yield* receive(request, options.maxBodyBytes)
  if (!received.isWhole) {
    yield* Metric.update(
      Metric.withAttributes(requestsPassed, { dialect: route?.dialect ?? "other", view: "unread" }),
      1
    )
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
  const view = plan._tag === "Changed" ? "compressed" : "unchanged"
  yield* Metric.update(Metric.withAttributes(requestsPassed, { dialect: route?.dialect ?? "other", view }), 1)
  return yield* pass(passing, plan, received.body, planned(true))
})

const explained = (options: GatewayHttpOptions, cause: NodeJS.ErrnoException): GatewayListenError => {
  const why: Readonly<Record<string, string>> = {
    EADDRINUSE: "the port is in use; choose another with --port",
    EACCES: "this user may not use the port; choose one above 1023 with --port"
  }
  const code = cause.code ?? "unknown"
  return new GatewayListenError({
    message: `${options.host}:${options.port}: ${why[code] ?? `it cannot be used (${code}); choose another with --host`}`
  })
}

const listen = (server: Server, options: GatewayHttpOptions) =>
  Effect.callback<number, GatewayListenError>((resume) => {
    server.once("error", (error) => resume(Effect.fail(explained(options, error))))
    server.listen(options.port, options.host, () => {
      const address = server.address()
      resume(Effect.succeed(typeof address === "object" && address !== null ? address.port : options.port))
    })
  })

/** The server, until the layer ends. It then takes no more connections, and lets running requests end. */
export const layer = (
  options: GatewayHttpOptions
): Layer.Layer<GatewayServer, GatewayListenError, Gateway | TenantLimiter> =>
  Layer.effect(
    GatewayServer,
    Effect.gen(function* () {
      const context = yield* Effect.context<Gateway | TenantLimiter>()
      const running = new Set<Fiber.Fiber<void>>()
      const server = createServer({ keepAliveTimeout: 65_000, requestTimeout: 0 }, (request, response) => {
        const route = routeOf(request.method ?? "", addressOf(request))
        const fiber = Effect.runForkWith(context)(
          handle(options, request, response).pipe(
            Effect.catchCause((cause) =>
              Effect.andThen(
                cause.reasons.some((reason) => reason._tag === "Fail" && reason.error instanceof UpstreamFailed)
                  ? Effect.void
                  : reportFailure(cause),
                Effect.sync(() => {
                  const error = Cause.squash(cause)
                  const message = error instanceof Error ? error.message : String(error)
                  sendJson(response, 502, failureBody(route?.dialect, 502, `palimpsest gateway: ${message}`))
                })
              )
            )
          )
        )
        running.add(fiber)
        // A client that is gone is told of by "close".
        request.on("error", () => {})
        response.on("error", () => {})
        response.once("close", () => {
          // The client is gone: the provider need not go on.
          if (!response.writableFinished) fiber.interruptUnsafe()
        })
        fiber.addObserver((exit) => {
          running.delete(fiber)
          if (Exit.isFailure(exit) && !response.writableEnded) response.destroy()
        })
      })
      const port = yield* listen(server, options)
      yield* Effect.addFinalizer(() =>
        Effect.gen(function* () {
          server.close()
          server.closeIdleConnections()
          yield* Effect.forEach([...running], (fiber) => Fiber.await(fiber), { concurrency: "unbounded" }).pipe(
            Effect.timeoutOption(`${options.drainSeconds} seconds`)
          )
          server.closeAllConnections()
        })
      )
      return { port }
    })
  )
