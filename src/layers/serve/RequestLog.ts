import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import { Clock, Effect } from "effect"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import { newId } from "../../services/platform/NewId.ts"
import { RequestRecord } from "../../services/serve/RequestRecord.ts"

/** Logs requests: one line for each, when its answer has been sent or its client has gone. */

/** The status in the log of a request whose client left before the answer. */
const clientClosed = 499

/** An id that a client or a proxy gave a request. */
const isId = (id: string | undefined): id is string => id !== undefined && /^[\w.-]{1,64}$/.test(id)

/** Handles a request under an id, which its answer has in `x-request-id`. `isLogged`: whether the log gets a line. */
export const logged = <E, R>(
  work: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>,
  isLogged: boolean
): Effect.Effect<HttpServerResponse.HttpServerResponse, E, R | HttpServerRequest.HttpServerRequest> =>
  Effect.gen(function* () {
    const received = yield* HttpServerRequest.HttpServerRequest
    const began = yield* Clock.currentTimeMillis
    const given = received.headers["x-request-id"]
    const id = isId(given) ? given : yield* newId
    const record: RequestRecord = { tenant: null, route: null }
    if (isLogged) {
      const response = NodeHttpServerRequest.toServerResponse(received)
      const closed = Effect.callback<void>((resume) => void response.once("close", () => resume(Effect.void)))
      const line = Effect.flatMap(Clock.currentTimeMillis, (now) =>
        Effect.annotateLogs(Effect.logInfo("request"), {
          request: id,
          method: received.method,
          ...record,
          status: response.headersSent ? response.statusCode : clientClosed,
          duration: now - began
        })
      )
      yield* Effect.forkDetach(Effect.andThen(closed, line), { startImmediately: true })
    }
    const answer = yield* Effect.provideService(work, RequestRecord, record)
    return HttpServerResponse.setHeader(answer, "x-request-id", id)
  })
