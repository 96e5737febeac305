/** Forwards a request to a provider, and passes answers back byte for byte. */

import { Effect, Result } from "effect"
import { Buffer } from "node:buffer"
import type { IncomingMessage, ServerResponse } from "node:http"
import { PassThrough, type Readable } from "node:stream"
import { withoutHeaders } from "../../domain/gateway/HeaderList.ts"
import type { Route } from "../../domain/gateway/Route.ts"
import type { Holder } from "./HeldBytes.ts"
import { Upstream, type UpstreamAnswer, UpstreamFailed, type UpstreamRequest } from "./Upstream.ts"

/** A request and its destination. */
export interface ProxiedRequest {
  readonly response: ServerResponse
  readonly upstream: UpstreamRequest
  readonly route: Route | undefined
  /** The name that its use is counted under, and the tenant that has a name in the settings. */
  readonly account: string
  /** The owner of the conversation, whose later requests may refer to the answer, and whether the provider stores it; undefined where they cannot. */
  readonly keeper: { readonly owner: string; readonly isStored: boolean } | undefined
  readonly tenant: string | undefined
  /** The bytes of the client's body, or the characters of its text, where those are more. */
  readonly bodyBytes: number
  /** Counts what the request holds in memory. */
  readonly holder: Holder
  /** Seconds without progress after which a client that does not read is disconnected. */
  readonly clientSeconds: number
}

/** The headers that frame a body. They are made anew. */
const framing = ["content-length"]

/** Sends it with the body that the client sent. */
export const asSent = ({ upstream }: ProxiedRequest, body: Buffer) =>
  Effect.flatMap(Upstream, ({ send }) =>
    send({ ...upstream, headers: withoutHeaders(upstream.headers, framing) }, body.length === 0 ? undefined : body)
  )

/** Sends it with a body that is still arriving, in the length that the client announced, if it did. */
export const streaming = ({ upstream }: ProxiedRequest, body: Readable | undefined) =>
  Effect.flatMap(Upstream, ({ send }) => send(upstream, body))

/** The same request with another body, whose answer can be read. */
export const withText = ({ upstream }: ProxiedRequest, text: string, isRead: boolean) => {
  const without = [...framing, "content-encoding", ...(isRead ? ["accept-encoding"] : [])]
  const headers = [...withoutHeaders(upstream.headers, without), ...(isRead ? ["Accept-Encoding", "identity"] : [])]
  return Effect.flatMap(Upstream, ({ send }) => send({ ...upstream, headers }, Buffer.from(text)))
}

/**
 * Returns a client's body, of which a part has been received. A client that sends nothing for too long, while the provider waits for it, is
 * disconnected.
 */
export const bodyOf = (request: IncomingMessage, received: Buffer, clientSeconds: number): Readable => {
  const { socket } = request
  const body = new PassThrough()
  const wait = () => void socket.setTimeout(clientSeconds * 1_000)
  // If the provider ends early, the rest is dropped, so that the client gets the answer.
  body.on("error", () => request.resume())
  body.on("drain", () => {
    wait()
    request.resume()
  })
  request.on("data", (piece: Buffer) => {
    if (body.destroyed || body.write(piece)) return
    request.pause()
    socket.setTimeout(0)
  })
  request.once("end", () => {
    socket.setTimeout(0)
    body.end()
  })
  request.once("close", () => {
    if (!request.complete) body.destroy(new Error("the client closed the connection"))
  })
  if (received.length > 0) body.write(received)
  wait()
  request.resume()
  return body
}

/** Runs until the client has read what was written, or left. A client that reads nothing for too long is disconnected. */
const settled = ({ clientSeconds, response }: ProxiedRequest, event: "drain" | "finish") =>
  Effect.callback((resume) => {
    const { socket } = response
    const done = () => {
      response.off(event, done).off("close", done)
      socket?.setTimeout(0)
      resume(Effect.void)
    }
    socket?.setTimeout(clientSeconds * 1_000)
    response.on(event, done).on("close", done)
    if (response.destroyed) done()
  })

/** Writes to a client that reads as fast as it can. */
export const write = (passing: ProxiedRequest, text: string): Effect.Effect<void> =>
  Effect.suspend(() => (text === "" || passing.response.write(text) ? Effect.void : settled(passing, "drain")))

/** Ends an answer, and waits until the client has it. */
export const finish = (passing: ProxiedRequest, rest: Buffer | string = ""): Effect.Effect<void> =>
  Effect.suspend(() => {
    passing.response.end(rest)
    return settled(passing, "finish")
  })

/**
 * Passes an answer on as fast as the client reads it. `change` makes what is written of each piece, and of the end; it may not wait. Pieces
 * that arrive together are one piece: a provider may send each byte by itself.
 */
export const passPieces = (
  { body }: UpstreamAnswer,
  { clientSeconds, response }: ProxiedRequest,
  change: (piece: Buffer | undefined) => Buffer | string | UpstreamFailed
): Effect.Effect<void, UpstreamFailed> =>
  Effect.callback((resume) => {
    const { socket } = response
    let arrived: Array<Buffer> = []
    const resumeReading = () => {
      socket?.setTimeout(0)
      body.resume()
    }
    const pass = (piece: Buffer | undefined): void => {
      // An exception in a listener would end the process.
      const changed = Result.try(() => change(piece))
      if (Result.isFailure(changed)) return resume(Effect.die(changed.failure))
      if (changed.success instanceof UpstreamFailed) return resume(Effect.fail(changed.success))
      const isFull = changed.success.length > 0 && !response.write(changed.success)
      if (!isFull || piece === undefined || body.isPaused()) return
      body.pause()
      socket?.setTimeout(clientSeconds * 1_000)
      response.once("drain", resumeReading)
    }
    const flush = (): void => {
      const [first, ...others] = arrived
      arrived = []
      if (first !== undefined) pass(others.length === 0 ? first : Buffer.concat([first, ...others]))
    }
    body.on("data", (piece: Buffer) => {
      if (arrived.push(piece) === 1) queueMicrotask(flush)
    })
    const end = () => {
      flush()
      pass(undefined)
      resume(Effect.void)
    }
    body.once("end", end)
    // It may have ended while its first bytes were awaited.
    if (body.readableEnded) end()
    body.once("error", (cause) =>
      resume(Effect.fail(new UpstreamFailed({ message: "the provider closed the connection", status: 502, cause })))
    )
    return Effect.sync(() => void body.destroy())
  })

/** Passes an answer on byte for byte. If the provider breaks off, the client's connection is closed too. */
export const passAnswer = Effect.fnUntraced(function* (passing: ProxiedRequest, answer: UpstreamAnswer) {
  writeHead(passing, answer)
  yield* passPieces(answer, passing, (piece) => piece ?? "")
  yield* finish(passing)
})

/** Writes the status and the headers of an answer, without those named. */
export const writeHead = (
  { response }: ProxiedRequest,
  { headers, status, statusText }: UpstreamAnswer,
  without: ReadonlyArray<string> = []
): void => {
  // Bytes as they came: undici reads the reason as UTF-8, and `flushHeaders` would write all of it so.
  const reason = Buffer.from(statusText).toString("latin1")
  response.writeHead(status, reason, [...withoutHeaders(headers, without)])
  response.write(Buffer.alloc(0))
}

/** Passes back an answer whose body was read. */
export const passRead = (passing: ProxiedRequest, answer: UpstreamAnswer, body: Buffer): Effect.Effect<void> => {
  writeHead(passing, answer)
  return finish(passing, body)
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
