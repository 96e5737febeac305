import { Effect, Schema } from "effect"
import { Buffer } from "node:buffer"
import { Agent as HttpAgent, type ClientRequest, type IncomingMessage, request as httpRequest } from "node:http"
import { Agent as HttpsAgent, request as httpsRequest } from "node:https"

/**
 * Requests to providers by Node's own client: headers keep their order and spelling, bodies keep their bytes, and streams keep their
 * backpressure. A client that parses them would take more time.
 */

/** A provider could not be reached, sent nothing for too long, sent too much, or closed the connection. */
export class UpstreamFailed extends Schema.TaggedError<UpstreamFailed>()("UpstreamFailed", {
  message: Schema.String,
  /** The status that the client gets: 504 for a provider that sent nothing, else 502. */
  status: Schema.Literals([502, 504]),
  cause: Schema.Defect()
}) {}

/** Maximum bytes of an answer that is read as a whole, and characters of one event of a stream. */
export const maxAnswerBytes = 64 * 1_024 * 1_024

const options = { keepAlive: true, maxFreeSockets: 64 }
const agents = { http: new HttpAgent(options), https: new HttpsAgent(options) }

/** Headers that concern one connection only. */
const hopByHop = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "expect"
])

/** Returns raw headers without those of the connection, and those named. */
export const endToEnd = (raw: ReadonlyArray<string>, without: ReadonlyArray<string> = []): Array<string> => {
  const dropped = new Set([...hopByHop, ...without])
  for (let at = 0; at < raw.length; at += 2) {
    if (raw[at]?.toLowerCase() !== "connection") continue
    for (const name of (raw[at + 1] ?? "").split(",")) dropped.add(name.trim().toLowerCase())
  }
  const kept: Array<string> = []
  for (let at = 0; at < raw.length; at += 2) {
    const name = raw[at] ?? ""
    if (!dropped.has(name.toLowerCase())) kept.push(name, raw[at + 1] ?? "")
  }
  return kept
}

/** A request to a provider. */
export interface UpstreamRequest {
  /** The provider. */
  readonly url: URL
  /** The path and the query, exactly as the client wrote them, behind the path of the provider's address. */
  readonly path: string
  readonly method: string
  /** Names and values in turn, without the host. */
  readonly headers: ReadonlyArray<string>
  /** Seconds without a byte after which the connection is closed. */
  readonly silentSeconds: number
}

const open = ({ headers, method, path, url }: UpstreamRequest): ClientRequest => {
  const secure = url.protocol === "https:"
  const all = { method, path, headers: ["Host", url.host, ...headers], agent: secure ? agents.https : agents.http }
  return secure ? httpsRequest(url, all) : httpRequest(url, all)
}

/** The reason of a failure in a few words. */
const reasonOf = (error: Error): string =>
  "code" in error && error.code !== undefined ? String(error.code) : error.message

/** Nothing came from a provider for too long. */
class Silent extends Error {}

const failedAt = (origin: string, error: Error): UpstreamFailed =>
  new UpstreamFailed({
    message: `${origin}: ${reasonOf(error)}`,
    status: error instanceof Silent ? 504 : 502,
    cause: error
  })

/**
 * Sends a request, whose body `write` writes, and returns the answer once its headers are there. Interruption closes the
 * connection.
 */
export const send = (
  upstream: UpstreamRequest,
  write: (request: ClientRequest) => void
): Effect.Effect<IncomingMessage, UpstreamFailed> =>
  Effect.callback((resume) => {
    const request = open(upstream)
    request.once("response", (response) => resume(Effect.succeed(response)))
    request.once("error", (error) => resume(Effect.fail(failedAt(upstream.url.origin, error))))
    request.setTimeout(upstream.silentSeconds * 1_000, () =>
      request.destroy(new Silent(`nothing came for ${upstream.silentSeconds} s`))
    )
    // Errors after the answer began are those of the answer.
    request.on("error", () => {})
    write(request)
    return Effect.sync(() => void request.destroy())
  })

/** Reads the rest of a message as one buffer. Fails above `maxAnswerBytes`. */
export const readAll = (message: IncomingMessage): Effect.Effect<Buffer, UpstreamFailed> =>
  Effect.callback((resume) => {
    const pieces: Array<Buffer> = []
    let bytes = 0
    message.on("data", (piece: Buffer) => {
      pieces.push(piece)
      bytes += piece.length
      if (bytes <= maxAnswerBytes) return
      message.destroy()
      resume(Effect.fail(tooLarge("an answer")))
    })
    message.once("end", () => resume(Effect.succeed(joined(pieces))))
    message.once("error", (error) => resume(Effect.fail(failedAt("the provider", error))))
    message.once("close", () => {
      if (!message.complete) resume(Effect.fail(failedAt("the provider", new Error("the connection closed"))))
    })
    return Effect.sync(() => void message.destroy())
  })

/** The failure for something larger than `maxAnswerBytes`. */
export const tooLarge = (what: string): UpstreamFailed =>
  new UpstreamFailed({
    message: `the provider sent ${what} of more than ${maxAnswerBytes / 1_048_576} MiB`,
    status: 502,
    cause: undefined
  })

const joined = (pieces: ReadonlyArray<Buffer>): Buffer => {
  const [first] = pieces
  return first !== undefined && pieces.length === 1 ? first : Buffer.concat(pieces)
}
