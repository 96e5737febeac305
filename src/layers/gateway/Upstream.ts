/**
 * Requests to providers by undici: it frames each body itself, whatever the method, closes a connection on which something arrives while it
 * is idle, keeps the order and spelling of headers, and lets a slow reader slow the provider down.
 */

import { Context, Deferred, Effect, Layer, Schema, type Scope } from "effect"
import type { Buffer } from "node:buffer"
import type { Readable } from "node:stream"
import { Agent, type Dispatcher } from "undici"
import { endToEnd, type HeaderList, headerOf, withoutHeaders } from "../../domain/gateway/HeaderList.ts"
import { decodedStream, isReadable } from "../platform/ContentEncoding.ts"
import { ByteCollector, HeldBytes, type Holder } from "./HeldBytes.ts"

/** A provider could not be reached, sent nothing for too long, sent too much, or closed the connection; or the gateway had no room. */
export class UpstreamFailed extends Schema.TaggedError<UpstreamFailed>()("UpstreamFailed", {
  message: Schema.String,
  /** The status that the client gets: 504 for what did not come in time, 503 where there was no room, else 502. */
  status: Schema.Literals([502, 503, 504]),
  cause: Schema.Defect()
}) {}

/** Maximum bytes of an answer that is read as a whole, and characters of one event of a stream. */
export const maxAnswerBytes = 64 * 1_024 * 1_024

/** A request to a provider. */
export interface UpstreamRequest {
  /** The provider. */
  readonly url: URL
  /** The path and the query. */
  readonly path: string
  readonly method: string
  /** The headers besides the host and those that frame the body. */
  readonly headers: HeaderList
  /** Seconds without a byte after which the connection is closed. */
  readonly silentSeconds: number
}

/** An answer whose body has not been read. */
export interface UpstreamAnswer {
  readonly status: number
  readonly statusText: string
  /** The headers without those of the connection. */
  readonly headers: HeaderList
  readonly body: Readable
}

/** Connections to providers, and the bound on what all requests hold together. */
export class Upstream extends Context.Service<
  Upstream,
  {
    /** Sends a request, and returns the answer once its headers are there. The end of the scope closes what is left of the answer. */
    readonly send: (
      request: UpstreamRequest,
      body: Buffer | Readable | undefined
    ) => Effect.Effect<UpstreamAnswer, UpstreamFailed, Scope.Scope>
    readonly held: HeldBytes
  }
>()("palimpsest/layers/gateway/Upstream") {
  /** Connections of their own, which end with the layer. At most `maxHeldBytes` are held for unfinished messages. `connect` opens a connection. */
  static readonly layer = (
    maxHeldBytes: number,
    connect: Agent.Options["connect"] = { timeout: connectMillis }
  ): Layer.Layer<Upstream> =>
    Layer.effect(
      Upstream,
      Effect.gen(function* () {
        const agent = yield* Effect.acquireRelease(
          Effect.sync(() => new Agent({ connect })),
          (made) => Effect.promise(() => made.destroy())
        )
        return Upstream.of({ send: (request, body) => send(agent, request, body), held: new HeldBytes(maxHeldBytes) })
      })
    )
}

/** Runs work that holds bytes of unfinished messages. Fails where it has to make room for others, and after `maxMillis`. */
export const holding = <A, E, R>(
  maxMillis: number,
  work: (holder: Holder) => Effect.Effect<A, E, R>
): Effect.Effect<A, E | UpstreamFailed, R | Upstream> =>
  Effect.flatMap(Upstream, ({ held }) => {
    const ended = Deferred.makeUnsafe<never, UpstreamFailed>()
    const holder = held.open(() => Deferred.doneUnsafe(ended, noRoom))
    // A timer of Node, and an error made when it is needed: each request would wait for a fiber and an error that almost none needs.
    const deadline = setTimeout(
      () => Deferred.doneUnsafe(ended, late(`no end within ${maxMillis / 60_000} minutes`)),
      maxMillis
    )
    return Effect.ensuring(
      Effect.raceFirst(work(holder), Deferred.await(ended)),
      Effect.sync(() => {
        clearTimeout(deadline)
        holder.close()
      })
    )
  })

/** The failure for what did not end in time. */
export const late = (message: string): UpstreamFailed => new UpstreamFailed({ message, status: 504, cause: undefined })

const noRoom = new UpstreamFailed({
  message: "the gateway holds too many unfinished messages; try again in a moment",
  status: 503,
  cause: undefined
})

const connectMillis = 15_000

/** Bytes of an answer that wait for the client. Each may be a piece of its own, which takes a hundred times as much memory. */
const maxWaitingBytes = 1_024

/** The codes of undici for a provider that sent nothing in time. */
const silences = ["UND_ERR_HEADERS_TIMEOUT", "UND_ERR_BODY_TIMEOUT"]

/** Returns the failure of an exchange with a provider. */
const failedAt = (origin: string, error: Error, silentSeconds?: number): UpstreamFailed => {
  const code = "code" in error && typeof error.code === "string" ? error.code : ""
  const isSilent = silences.includes(code)
  const reason = isSilent
    ? `nothing came for ${silentSeconds} s`
    : code.startsWith("UND_")
      ? error.message
      : code || error.message
  return new UpstreamFailed({ message: `${origin}: ${reason}`, status: isSilent ? 504 : 502, cause: error })
}

const send = (
  agent: Agent,
  { headers, method, path, silentSeconds, url }: UpstreamRequest,
  body: Buffer | Readable | undefined
) =>
  Effect.acquireRelease(
    Effect.callback<UpstreamAnswer, UpstreamFailed>((resume) => {
      const silentMillis = silentSeconds * 1_000
      const abort = new AbortController()
      const options: Dispatcher.RequestOptions = {
        origin: url.origin,
        path,
        method,
        headers: [...headers],
        body: body ?? null,
        headersTimeout: silentMillis,
        bodyTimeout: silentMillis,
        responseHeaders: "raw",
        highWaterMark: maxWaitingBytes,
        signal: abort.signal
      }
      agent.request(options).then(
        (answer) => {
          // An answer that nobody reads any more may still break.
          answer.body.on("error", () => {})
          // With `raw`, names and values in turn: the types do not say so.
          const raw: unknown = answer.headers
          const headers = endToEnd(Array.isArray(raw) ? raw.map(String) : [])
          const { body, statusCode: status, statusText } = answer
          resume(Effect.succeed({ status, statusText, headers, body }))
        },
        (error: Error) => resume(Effect.fail(failedAt(url.origin, error, silentSeconds)))
      )
      return Effect.sync(() => abort.abort())
    }),
    (answer) => Effect.sync(() => void answer.body.destroy()),
    { interruptible: true }
  )

/** The longest time in which the first bytes of an answer are waited for, where they may be an error. */
const beginningMillis = 1_000

/** Returns the first bytes of an answer, which stay in it; nothing where none come soon. */
export const beginningOf = ({ body }: UpstreamAnswer): Effect.Effect<string, UpstreamFailed> =>
  Effect.callback<string, UpstreamFailed>((resume) => {
    const stop = () => {
      clearTimeout(timer)
      body.off("readable", look).off("end", look).off("error", fail)
    }
    const end = (result: Effect.Effect<string, UpstreamFailed>) => {
      stop()
      resume(result)
    }
    const fail = (error: Error) => end(Effect.fail(failedAt("the provider", error)))
    const look = () => {
      // To read at its end would end the body, before its reader is there.
      const piece: Buffer | null = body.readableLength === 0 ? null : body.read()
      if (piece !== null) body.unshift(piece)
      end(Effect.succeed(piece?.toString("latin1") ?? ""))
    }
    const timer = setTimeout(() => end(Effect.succeed("")), beginningMillis)
    body.once("readable", look).once("end", look).once("error", fail)
    if (body.readableEnded) look()
    return Effect.sync(stop)
  })

/** Reads the rest of an answer as one buffer, which `holder` counts. Fails above `maxAnswerBytes`. */
export const readAll = ({ body }: UpstreamAnswer, holder: Holder): Effect.Effect<Buffer, UpstreamFailed> =>
  Effect.callback((resume) => {
    const collector = new ByteCollector()
    body.on("data", (piece: Buffer) => {
      holder.add(collector.push(piece))
      if (collector.length <= maxAnswerBytes) return
      body.destroy()
      resume(Effect.fail(tooLarge("an answer")))
    })
    const end = () => resume(Effect.succeed(collector.collected))
    body.once("end", end)
    // It may have ended while its first bytes were awaited.
    if (body.readableEnded) end()
    body.once("error", (error) => resume(Effect.fail(failedAt("the provider", error))))
    return Effect.sync(() => void body.destroy())
  })

/** The type of an answer, empty where it names none. */
export const typeOf = ({ headers }: UpstreamAnswer): string => headerOf(headers, "content-type") ?? ""

/** The encoding of an answer's body. */
export const encodingOf = ({ headers }: UpstreamAnswer): string => headerOf(headers, "content-encoding") ?? "identity"

/**
 * Returns an answer that can be read: providers, and proxies before them, compress answers although they are asked not to. Fails for an answer in
 * an encoding that this Node does not have.
 */
export const readable = (answer: UpstreamAnswer): Effect.Effect<UpstreamAnswer, UpstreamFailed> =>
  Effect.suspend(() => {
    const encoding = encodingOf(answer)
    if (!isReadable(encoding)) {
      const message = `the provider sent an answer in content-encoding ${encoding}, which the gateway cannot read`
      return Effect.fail(new UpstreamFailed({ message, status: 502, cause: undefined }))
    }
    const body = decodedStream(answer.body, encoding)
    if (body === answer.body) return Effect.succeed(answer)
    const headers = withoutHeaders(answer.headers, ["content-encoding", "content-length"])
    return Effect.succeed({ ...answer, headers, body })
  })

/** The failure for something larger than `maxAnswerBytes`. */
export const tooLarge = (what: string): UpstreamFailed =>
  new UpstreamFailed({
    message: `the provider sent ${what} of more than ${maxAnswerBytes / 1_048_576} MiB`,
    status: 502,
    cause: undefined
  })
