/** The handlers of the API: each passes a request of a tenant to `ServedSessions`. */

import { Context, Effect, Layer, Metric, Semaphore, Stream } from "effect"
import { HttpApiBuilder, HttpApiMiddleware } from "effect/http-api"
import type { Headers } from "effect/http/Headers"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as PrometheusMetrics from "effect/observability/PrometheusMetrics"
import type { Selection } from "../../domain/conversation/Excerpt.ts"
import { isBeforeEvents } from "../../domain/serve/EventBuffer.ts"
import { localTenant } from "../../domain/serve/ServeSettings.ts"
import { firstUnits } from "../../domain/text/Bytes.ts"
import { ApiTokens } from "./ApiTokens.ts"
import { Authorization, Caller, RequestCheck, ServeApi, versioned } from "./ServeApi.ts"
import { ServedSessions } from "./ServedSessions.ts"
import { BadRequest, NotFound, Unauthorized, Unavailable } from "./ServeErrors.ts"
import { openStreams, requestsServed } from "./ServeMetrics.ts"
import { TenantLimiter } from "./TenantLimiter.ts"

const selection = ({ lines, ...rest }: Omit<Selection, "lines"> & { readonly lines?: string }): Selection => {
  if (lines === undefined) return rest
  const [from = 1, to = from] = lines.split("-").map(Number)
  return { ...rest, lines: [from, to] }
}

/** The default number of messages to read of a session, and characters of each part. */
const defaultMessages = 50
const defaultChars = 2_000
const defaultSearchTokens = 4_000
const defaultRows = 100

const noToken = new Unauthorized({
  message: "the header Authorization must be Bearer and a valid token of this server"
})

/** What the log says of a request. Mutable: whoever handles the request adds what it learns. No words of users are in it. */
export interface RequestRecord {
  /** The tenant of its token; null before that is known. */
  tenant: string | null
  /** The path of its endpoint, with names in the place of ids; null where no endpoint of the API answers. */
  route: string | null
}

/** The record of the request that is handled. */
export const RequestRecord = Context.Reference<RequestRecord>("palimpsest/services/serve/RequestRecord", {
  defaultValue: () => ({ tenant: null, route: null })
})

/** Semaphores of tenants, each made when it is first needed. */
const tenantSemaphores = (permits: number) => {
  const made = new Map<string, Semaphore.Semaphore>()
  return (tenant: string) => {
    const semaphore = made.get(tenant) ?? Semaphore.makeUnsafe(permits)
    made.set(tenant, semaphore)
    return semaphore
  }
}

/** The event of a turn that a client has read last. The id before all events tells of none. */
const lastInTurn = ({ "last-event-id": id }: { readonly "last-event-id"?: string }): string | undefined =>
  id === undefined || isBeforeEvents(id) ? undefined : id

/** Handles a request with the tenant of its token. */
const of = <A, E, R>(work: (tenant: string) => Effect.Effect<A, E, R>) =>
  Effect.flatMap(Caller, ({ tenant }) => work(tenant))

/**
 * Counts an answer that can take long, an event stream or an export, as one of the tenant's streams until it is sent. Counted here,
 * where the client's request arrives, it counts once, whichever processes and streams below carry it.
 */
const asStream =
  (limiter: TenantLimiter["Service"]) =>
  <A, E, R>(work: (tenant: string) => Effect.Effect<A, E, R>) =>
    of((tenant) =>
      Effect.acquireRelease(
        Effect.tap(limiter.take(tenant, "streams"), () => Metric.modify(openStreams, 1)),
        (release) => Effect.andThen(release, Metric.modify(openStreams, -1))
      ).pipe(Effect.andThen(work(tenant)))
    )

class Storing extends Context.Service<Storing, (tenant: string) => Semaphore.Semaphore>()(
  "palimpsest/services/serve/Storing"
) {}

/**
 * What a tenant stores and deletes beside its turns happens one after the other: sessions are counted before one more is stored, and
 * none is stored in a folder that is being deleted.
 */
const oneAtATime = Effect.map(
  Storing,
  (storing) =>
    <A, E, R>(work: (tenant: string) => Effect.Effect<A, E, R>) =>
      of((tenant) => storing(tenant).withPermit(work(tenant)))
)

const sessions = HttpApiBuilder.group(
  ServeApi,
  "sessions",
  Effect.fn(function* (handlers) {
    const served = yield* ServedSessions
    const limiter = yield* TenantLimiter
    const stored = yield* oneAtATime
    const streamed = asStream(limiter)
    /** A stream of events, which ends when the token of the request is revoked. */
    const watched = <A, E, R>(work: (tenant: string) => Effect.Effect<Stream.Stream<A>, E, R>) =>
      Effect.flatMap(Caller, ({ revoked }) => Effect.map(streamed(work), Stream.interruptWhen(revoked)))
    return handlers.handleAll({
      list: ({ query }) =>
        of((tenant) => served.list(tenant, { limit: defaultRows, ...query, totals: query.totals === "true" })),
      change: ({ params, payload }) => stored((tenant) => served.change(tenant, params.id, payload)),
      create: ({ payload }) => stored((tenant) => served.create(tenant, payload)),
      read: ({ params, query }) =>
        of((tenant) => served.read(tenant, params.id, { messages: defaultMessages, chars: defaultChars, ...query })),
      remove: ({ params }) => of((tenant) => served.remove(tenant, params.id)),
      fork: ({ params, payload }) => stored((tenant) => served.fork(tenant, params.id, payload)),
      send: ({ headers, params, payload }) =>
        watched((tenant) => {
          const { id, media, onDisconnect, text, ...options } = payload
          return served.send(tenant, params.id, { id, media, onDisconnect, text, options }, lastInTurn(headers))
        }),
      turn: ({ headers, params }) =>
        watched((tenant) => served.turn(tenant, params.id, params.message, lastInTurn(headers))),
      events: ({ headers, params }) => watched((tenant) => served.events(tenant, params.id, headers["last-event-id"])),
      answer: ({ params, payload }) => of((tenant) => served.answer(tenant, params.id, params.call, payload)),
      cancel: ({ params }) =>
        of((tenant) => Effect.map(served.cancel(tenant, params.id), (cancelled) => ({ cancelled }))),
      compress: ({ params, payload }) => of((tenant) => served.compress(tenant, params.id, payload)),
      plan: ({ params }) => of((tenant) => served.plan(tenant, params.id)),
      undo: ({ params }) => of((tenant) => served.turnBack(tenant, params.id, "undo")),
      redo: ({ params }) => of((tenant) => served.turnBack(tenant, params.id, "redo")),
      search: ({ params, query }) =>
        of((tenant) => served.search(tenant, params.id, query.pattern, query.maxTokens ?? defaultSearchTokens)),
      recall: ({ params, query }) => of((tenant) => served.recall(tenant, params.id, params.handle, selection(query))),
      ledger: ({ params }) => of((tenant) => served.ledger(tenant, params.id)),
      export: ({ params, query }) =>
        streamed((tenant) => served.exported(tenant, params.id, query.format ?? "palimpsest"))
    })
  })
)

const tenants = HttpApiBuilder.group(
  ServeApi,
  "tenant",
  Effect.fn(function* (handlers) {
    const served = yield* ServedSessions
    const limiter = yield* TenantLimiter
    const stored = yield* oneAtATime
    return handlers.handleAll({
      exportAll: () =>
        Effect.flatMap(Caller, ({ revoked }) =>
          // It breaks off: an export that ends is whole.
          Effect.map(asStream(limiter)(served.exportAll), Stream.interruptWhen(Effect.andThen(revoked, noToken)))
        ),
      removeAll: () => stored((tenant) => Effect.map(served.removeAll(tenant), (sessions) => ({ sessions })))
    })
  })
)

const server = (version: string) =>
  HttpApiBuilder.group(
    ServeApi,
    "server",
    Effect.fn(function* (handlers) {
      const { isReady } = yield* ServedSessions
      return handlers.handleAll({
        health: () => Effect.succeed({ status: "ok" as const, version }),
        ready: () =>
          Effect.filterOrFail(
            isReady,
            (ready) => ready,
            () => new Unavailable({ message: "the server is stopping; try again in a moment" })
          ).pipe(Effect.as({ status: "ready" as const })),
        metrics: () =>
          of((tenant) =>
            tenant === localTenant
              ? PrometheusMetrics.format()
              : new NotFound({ message: "there is nothing at this address" })
          )
      })
    })
  )

/** Large bodies of a tenant that are received at the same time. The others wait in their connections, up to the time of a request. */
const maxLargeBodies = 16
/** The requests of a minute bound the bodies up to this size. */
const smallBodyBytes = 65_536

const isLarge = (headers: Headers): boolean =>
  headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > smallBodyBytes

const authorization = Layer.effect(
  Authorization,
  Effect.gen(function* () {
    const tokens = yield* ApiTokens
    const limiter = yield* TenantLimiter
    const receiving = tenantSemaphores(maxLargeBodies)
    return Authorization.of({
      bearer: Effect.fnUntraced(function* (work, { credential, endpoint }) {
        const tenant = yield* tokens.tenantOf(credential)
        const record = yield* RequestRecord
        record.route = endpoint.path
        if (tenant === undefined) return yield* noToken
        record.tenant = tenant
        yield* limiter.request(tenant)
        yield* Metric.update(requestsServed, 1)
        const request = yield* HttpServerRequest.HttpServerRequest
        // The handler gets the same text, or the same failure.
        if (isLarge(request.headers)) yield* receiving(tenant).withPermit(Effect.exit(request.text))
        return yield* Effect.provideService(work, Caller, { tenant, revoked: tokens.revoked(credential, tenant) })
      })
    })
  })
)

/** Maximum characters of the explanation of an invalid request. */
const maxExplanation = 500

const parts = { Params: "path", Headers: "headers", Query: "query", Payload: "body" } as const

const requestCheck = HttpApiMiddleware.layerSchemaErrorTransform(RequestCheck, (error) =>
  error.kind === "Body" || error.kind === "ResponseHeaders"
    ? Effect.die(error)
    : Effect.fail(
        new BadRequest({
          message: firstUnits(`${parts[error.kind]}: ${error.cause.message.replace(/\s+/g, " ")}`, maxExplanation)
        })
      )
)

/** The API with its handlers and checks. */
export const routes = (version: string) =>
  HttpApiBuilder.layer(versioned(version), { openapiPath: "/openapi.json" }).pipe(
    Layer.provide([sessions, tenants, server(version)]),
    Layer.provide([authorization, requestCheck, Layer.sync(Storing, () => tenantSemaphores(1))])
  )
