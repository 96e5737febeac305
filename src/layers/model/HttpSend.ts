/**
 * Sends requests to providers: through the `HttpClient` that the program provides to the model's layer, whose proxies, recorders and certificates then
 * take effect, or else with `node:http`, which takes less processor time than `fetch` for a small request.
 */

import { Effect, Option, type Scope, Stream } from "effect"
import * as Headers from "effect/http/Headers"
import * as HttpBody from "effect/http/HttpBody"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as Pull from "effect/Pull"
import http from "node:http"
import https from "node:https"
import { decodedStream } from "../platform/ContentEncoding.ts"

/** A request to a provider. */
export interface ProviderRequest {
  readonly url: URL
  readonly method: "GET" | "POST"
  readonly headers: Readonly<Record<string, string>>
  /** The bytes, in pieces. */
  readonly body: ReadonlyArray<Uint8Array>
}

/** An answer whose head has arrived. */
export interface Reply {
  readonly status: number
  /** The value of a header; its name is in lower case. */
  readonly header: (name: string) => string | undefined
  /** The next bytes of the body, decompressed; undefined at its end. */
  readonly next: Effect.Effect<Uint8Array | undefined, unknown>
}

/** Sends a request. The connection closes with the scope. */
export type Send = (request: ProviderRequest) => Effect.Effect<Reply, unknown, Scope.Scope>

/** Sends with `node:http`. */
const nodeSend: Send = Effect.fnUntraced(function* ({ body: sent, headers, method, url }) {
  const request = yield* Effect.acquireRelease(
    Effect.sync(() =>
      (url.protocol === "https:" ? https : http).request(url, {
        method,
        headers: {
          ...headers,
          "accept-encoding": "gzip, deflate",
          "content-length": sent.reduce((size, { length }) => size + length, 0),
          "user-agent": "palimpsest"
        }
      })
    ),
    (request) => Effect.sync(() => request.destroy())
  )
  const response = yield* Effect.callback<http.IncomingMessage, unknown>((resume) => {
    request.on("error", (error) => resume(Effect.fail(error)))
    request.on("response", (response) => resume(Effect.succeed(response)))
    request.cork()
    for (const piece of sent) request.write(piece)
    request.end()
  })
  const body = decodedStream(response, response.headers["content-encoding"] ?? "")
  const pieces: AsyncIterator<Uint8Array> = body[Symbol.asyncIterator]()
  return {
    status: response.statusCode ?? 0,
    header: (name) => {
      const value = response.headers[name]
      return typeof value === "string" ? value : value?.[0]
    },
    next: Effect.tryPromise({
      try: () => pieces.next().then(({ done, value }) => (done === true ? undefined : value)),
      catch: (error) => error
    })
  }
})

/** Header names of keys, which no span may show. */
const keyNames = ["authorization", "cookie", "set-cookie", "x-api-key", "x-goog-api-key"]

/** Sends with a client of the program. */
const clientSend =
  (client: HttpClient.HttpClient): Send =>
  ({ body, headers, method, url }) =>
    HttpClient.withScope(client)
      .execute(
        HttpClientRequest.make(method)(url, {
          headers,
          body: method === "GET" ? HttpBody.empty : HttpBody.uint8Array(Buffer.concat(body), headers["content-type"])
        })
      )
      .pipe(
        Effect.flatMap((response) =>
          Effect.map(Stream.toPull(response.stream), (pull): Reply => ({
            status: response.status,
            header: (name) => response.headers[name],
            next: pull.pipe(
              Effect.map((chunks) => (chunks.length === 1 ? chunks[0] : Buffer.concat(chunks))),
              Pull.catchDone(() => Effect.undefined)
            )
          }))
        ),
        Effect.provideService(Headers.CurrentRedactedNames, keyNames)
      )

/** How the requests of a layer are sent. */
export const send: Effect.Effect<Send> = Effect.map(
  Effect.serviceOption(HttpClient.HttpClient),
  Option.match({ onNone: () => nodeSend, onSome: clientSend })
)
