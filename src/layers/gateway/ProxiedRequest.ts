import { Effect } from "effect"
import { Buffer } from "node:buffer"
import type { IncomingMessage, ServerResponse } from "node:http"
import { pipeline } from "node:stream"
import type { Route } from "../../domain/gateway/Dialect.ts"
import { endToEnd, send, type UpstreamRequest } from "./UpstreamRequests.ts"

/** Forwards a request to a provider, and passes answers back byte for byte. */

/** A request and its destination. */
export interface ProxiedRequest {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly upstream: UpstreamRequest
  readonly route: Route | undefined
  /** The name that its use is counted under, and the tenant that has a name in the settings. */
  readonly account: string
  readonly tenant: string | undefined
}

/** Sends it with the body that the client sent. */
export const asSent = ({ upstream }: ProxiedRequest, body: Buffer) =>
  send(upstream, (request) => {
    request.end(body)
  })

/** The same request with another body, whose answer can be read. */
export const withText = ({ upstream }: ProxiedRequest, text: string, isRead: boolean) => {
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

/** The type of an answer, empty where it names none. */
export const typeOf = ({ headers }: IncomingMessage): string => headers["content-type"] ?? ""

/** Writes to a client that reads as fast as it can. */
export const write = (response: ServerResponse, text: string): Effect.Effect<void> =>
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

/** Passes an answer on byte for byte. If the provider breaks off, the client's connection is closed too. */
export const passAnswer = (from: IncomingMessage, to: ServerResponse): Effect.Effect<void> =>
  Effect.callback((resume) => {
    to.writeHead(from.statusCode ?? 502, from.statusMessage ?? "", endToEnd(from.rawHeaders))
    to.flushHeaders()
    pipeline(from, to, () => resume(Effect.void))
    return Effect.sync(() => void from.destroy())
  })

/** Passes back an answer whose body was read. */
export const passRead = ({ response }: ProxiedRequest, answer: IncomingMessage, body: Buffer): void => {
  response.writeHead(answer.statusCode ?? 502, answer.statusMessage ?? "", endToEnd(answer.rawHeaders))
  response.end(body)
}

/** Answers with JSON of the gateway. An answer that has begun can only be aborted. */
export const sendJson = (
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
