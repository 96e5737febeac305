import { Predicate, Result } from "effect"
import http from "node:http"
import https from "node:https"
import { createBrotliDecompress, createInflate, createUnzip } from "node:zlib"
import { maxAnswerParts } from "../../domain/chat/Answer.ts"
import { parseJson } from "../../domain/text/JsonText.ts"
import { AnswerTooLargeError } from "../../services/model/Model.ts"
import { type Exchange, maxAnswerBytes, maxErrorBytes } from "./GoogleExchange.ts"
import { retryAfter } from "./ProviderErrors.ts"
import { ServerEvents } from "./ServerEvents.ts"

/**
 * The streamed answers of the Gemini API, over `node:http`. The SDK takes a request as objects, serialises and encodes all of it, parses
 * it again to add fields that it does not know, and makes two Fetch API objects for each piece of an answer: in a conversation with tools
 * this took a third of a turn. Here the body is bytes already (RequestBytes.ts). All other calls go through the SDK.
 */

/** A failure that the server reported, in the head or in the middle of an answer. The message is its JSON. */
class ReportedFailure extends Error {
  readonly status: number
  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/** A request of a stream. */
export interface StreamRequest {
  readonly baseUrl: URL
  readonly key: string
  readonly model: string
  readonly body: ReadonlyArray<Uint8Array>
  /** The record of the exchange. */
  readonly exchange: Exchange
}

/** The next item of a stream: a piece of the answer, its end, or its failure. */
export type Next =
  | { readonly _tag: "Piece"; readonly value: unknown }
  | { readonly _tag: "End" }
  | { readonly _tag: "Failed"; readonly error: unknown }

const end: Next = { _tag: "End" }
const failedWith = (error: unknown): Next => ({ _tag: "Failed", error })

/** Returns the URL path of a model, as the SDK does; undefined for a name that would lead to another resource. */
const modelPath = (name: string): string | undefined =>
  name === "" || /\.\.|[?&]/.test(name) ? undefined : /^(?:models|tunedModels)\//.test(name) ? name : `models/${name}`

/** An unpacked body. */
const unpacked = (response: http.IncomingMessage): NodeJS.ReadableStream => {
  const encoding = response.headers["content-encoding"]?.trim().toLowerCase()
  const unpack =
    encoding === "gzip" || encoding === "x-gzip"
      ? createUnzip()
      : encoding === "deflate"
        ? createInflate()
        : encoding === "br"
          ? createBrotliDecompress()
          : undefined
  if (unpack === undefined) return response
  response.on("error", (error) => unpack.destroy(error))
  return response.pipe(unpack)
}

/** A value of the server that reports a failure. */
const failureIn = (value: unknown): ReportedFailure | undefined => {
  if (!Predicate.hasProperty(value, "error") || !Predicate.hasProperty(value.error, "code")) return undefined
  const { code } = value.error
  return Predicate.isNumber(code) && code >= 400 && code < 600
    ? new ReportedFailure(code, JSON.stringify(value))
    : undefined
}

const decoder = new TextDecoder()

/** The next of an event; undefined for one without data. */
const nextOf = (event: Uint8Array): Next | undefined => {
  const text = decoder.decode(event).trim()
  const isData = text.startsWith("data:")
  const read = parseJson(isData ? text.slice("data:".length) : text)
  if (Result.isFailure(read)) {
    return isData
      ? failedWith(new Error(read.failure._tag === "TooDeep" ? read.failure.message : "a piece is not JSON"))
      : undefined
  }
  const failure = failureIn(read.success)
  if (failure !== undefined) return failedWith(failure)
  return isData ? { _tag: "Piece", value: read.success } : undefined
}

/** One answer as it arrives. Mutable: it holds what has arrived and was not taken yet. */
export class GoogleStream {
  private readonly arrived: Array<Next> = []
  private waiting: (() => void) | undefined
  private isOver = false
  private readonly request: http.ClientRequest | undefined
  private readonly exchange: Exchange

  constructor({ baseUrl, body, exchange, key, model }: StreamRequest) {
    this.exchange = exchange
    const path = modelPath(model)
    if (path === undefined) {
      this.finish(failedWith(new Error("invalid model parameter")))
      return
    }
    const url = new URL(`${baseUrl.href.replace(/\/$/, "")}/v1beta/${path}:streamGenerateContent?alt=sse`)
    const request = (url.protocol === "https:" ? https : http).request(url, {
      method: "POST",
      headers: {
        accept: "*/*",
        "accept-encoding": "gzip, deflate",
        "content-length": body.reduce((size, { length }) => size + length, 0),
        "content-type": "application/json",
        "user-agent": "palimpsest",
        "x-goog-api-key": key
      }
    })
    this.request = request
    exchange.sent = true
    request.on("error", (error) => this.finish(failedWith(error)))
    request.on("response", (response) => this.receive(response))
    request.cork()
    for (const piece of body) request.write(piece)
    request.end()
  }

  /** Ends the stream with a last item. */
  private finish(next: Next): void {
    if (this.isOver) return
    this.isOver = true
    this.put(next)
  }

  private put(next: Next): void {
    this.arrived.push(next)
    this.waiting?.()
  }

  /** Ends an answer that is no longer needed. */
  private refuse(error: unknown): void {
    this.finish(failedWith(error))
    this.request?.destroy()
  }

  private receive(response: http.IncomingMessage): void {
    const { exchange } = this
    const { statusCode: status = 0 } = response
    exchange.status = status
    exchange.retryAfter = retryAfter((name) => response.headers[name])
    const body = unpacked(response)
    body.on("error", (error) => this.finish(failedWith(error)))
    // The connection ended within the body.
    response.on("aborted", () => this.finish(failedWith(Object.assign(new Error("aborted"), { code: "ECONNRESET" }))))
    if (status < 200 || status >= 300) this.receiveError(status, body)
    else this.receiveEvents(body)
  }

  private receiveError(status: number, body: NodeJS.ReadableStream): void {
    const pieces: Array<Buffer> = []
    let size = 0
    body.on("data", (piece: Buffer) => {
      size += piece.length
      // The status alone is enough where the body of an error is too large.
      if (size > maxErrorBytes) this.refuse(new Error("the body of the error is too large"))
      else pieces.push(piece)
    })
    body.on("end", () => {
      const text = decoder.decode(Buffer.concat(pieces))
      this.finish(failedWith(status >= 400 ? new ReportedFailure(status, text) : new Error(text)))
    })
  }

  private receiveEvents(body: NodeJS.ReadableStream): void {
    const { exchange } = this
    const events = new ServerEvents(
      // A piece may have no part, so pieces are bounded as parts are.
      { bytes: maxAnswerBytes, events: maxAnswerParts },
      (event) => {
        const next = nextOf(event)
        if (next?._tag === "Failed") this.refuse(next.error)
        else if (next !== undefined && !this.isOver) this.put(next)
      },
      (what) => {
        const excess =
          what === "bytes"
            ? new AnswerTooLargeError({ unit: "bytes", limit: maxAnswerBytes })
            : new AnswerTooLargeError({ unit: "parts", limit: maxAnswerParts })
        exchange.excess = excess
        return excess
      }
    )
    body.on("data", (piece: Buffer) => {
      if (this.isOver) return
      try {
        events.push(piece)
      } catch (error) {
        this.refuse(error)
      }
    })
    body.on("end", () =>
      this.finish(events.end() === undefined ? end : failedWith(new Error("it ended in the middle of a piece")))
    )
  }

  /** What has arrived and comes next; undefined when that has to be waited for. */
  poll(): Next | undefined {
    return this.arrived.shift()
  }

  /** Passes on what comes next, once. Returns how to stop waiting for it. */
  take(done: (next: Next) => void): () => void {
    const hand = (): boolean => {
      const next = this.poll()
      if (next === undefined) return false
      this.waiting = undefined
      done(next)
      return true
    }
    if (!hand()) this.waiting = () => void hand()
    return () => {
      this.waiting = undefined
    }
  }

  /** Closes the connection, unless the answer has arrived whole. */
  close(): void {
    if (!this.isOver) this.request?.destroy()
    this.isOver = true
  }
}
