/**
 * A Gemini API on the loopback interface that follows a script, for tests of clients of the real one. It has no clock of its own: a
 * step that has to happen at a certain moment waits for an effect that the test controls.
 *
 * One file: one server, whose scripts, answers and protocol belong together.
 */

import { Clock, Data, Deferred, Effect, FiberSet, Option, Schema, type Scope } from "effect"
import http from "node:http"
import type { Socket } from "node:net"
import { fromJson } from "../../domain/text/JsonText.ts"

/** One step of an answer. Written text is flushed to the socket before the next step. */
export type Step = Data.TaggedEnum<{
  /** Sends the status and the headers. */
  readonly Head: { readonly status: number; readonly headers: Readonly<Record<string, string>> }
  /** Sends a piece of the body. Without a preceding head, the answer is 200 and JSON. */
  readonly Write: { readonly text: string }
  /** Waits without sending anything. */
  readonly Wait: { readonly until: Effect.Effect<void> }
  /** Closes the connection without ending the answer. */
  readonly Drop: {}
  /** Resets the connection. */
  readonly Reset: {}
}>
const Step = Data.taggedEnum<Step>()

/** The steps with which the server answers a request, in order. When all are done and none closed the connection, the body ends normally. */
export type Answer = ReadonlyArray<Step>

/** The API methods of the server. */
export const Method = Schema.Literals(["generateContent", "streamGenerateContent", "countTokens"])
export type Method = typeof Method.Type

/** A received request. */
export interface FakeRequest {
  /** The number of earlier requests. */
  readonly index: number
  readonly method: Method
  readonly version: "v1" | "v1beta"
  readonly model: string
  /** The path with its query, without the value of a key in it. */
  readonly path: string
  /** Header names in lower case; the value of the key is `<key>`. */
  readonly headers: Readonly<Record<string, string>>
  /** The JSON body, or its text when it is not JSON. */
  readonly body: unknown
}

/** Returns the answer to a request. */
export type Script = (request: FakeRequest) => Answer

/** An event at the server, in the order of occurrence. */
export type ServerEvent = Data.TaggedEnum<{
  /** A complete request arrived. */
  readonly Received: { readonly index: number; readonly at: number }
  /** The socket of a request closed. Each request has its own. `complete` is false when the client had not received the whole answer. */
  readonly Closed: { readonly index: number; readonly at: number; readonly complete: boolean }
}>
const Sighting = Data.taggedEnum<ServerEvent>()

/** A running server and its record. */
export interface FakeGemini {
  /** The value for GOOGLE_GEMINI_BASE_URL. */
  readonly url: string
  /** All complete requests for a method of the server so far. */
  readonly requests: Effect.Effect<ReadonlyArray<FakeRequest>>
  /** The names of the models that clients asked about so far, in order. These requests are not part of `requests`. */
  readonly lookups: Effect.Effect<ReadonlyArray<string>>
  /** All events so far. `at` is in milliseconds of the clock with which the server was made. */
  readonly sightings: Effect.Effect<ReadonlyArray<ServerEvent>>
  /** Waits for request `index`, counted from 0. */
  readonly received: (index: number) => Effect.Effect<FakeRequest>
  /** Waits until the socket of request `index` is closed. Returns whether the answer was sent completely. */
  readonly closed: (index: number) => Effect.Effect<boolean>
}

// Steps

/** Sends the status and the headers. */
export const head = (status: number, headers: Readonly<Record<string, string>> = {}): Step =>
  Step.Head({ status, headers })
/** Sends a piece of the body. */
export const write = (text: string): Step => Step.Write({ text })
/** Waits for an effect of the test, such as a deferred or a latch. */
export const wait = (until: Effect.Effect<void>): Step => Step.Wait({ until })
/** Sends nothing more. */
export const stall: Step = Step.Wait({ until: Effect.never })
/** Closes the connection without ending the answer. */
export const drop: Step = Step.Drop()
/** Resets the connection: the client gets `ECONNRESET`. */
export const reset: Step = Step.Reset()

const jsonType = { "content-type": "application/json" }
/** The head of a successful stream. */
export const streamHead: Step = head(200, { "content-type": "text/event-stream" })
/** One event of a stream. */
export const event = (response: unknown): Step => write(`data: ${JSON.stringify(response)}\r\n\r\n`)

// Answers

/** A whole JSON answer. */
export const json = (
  value: unknown,
  status = 200,
  headers: Readonly<Record<string, string>> = {}
): readonly [Step, Step] => [head(status, { ...jsonType, ...headers }), write(JSON.stringify(value))]

/** A stream that ends after these responses. */
export const sse = (...responses: ReadonlyArray<unknown>): Answer => [streamHead, ...responses.map(event)]

/** An answer of `countTokens`. */
export const tokens = (total: number): Answer => json({ totalTokens: total })

/** Deviations from the default response: a complete text of 5 tokens that answers a prompt of 10. */
export interface ResponseOptions {
  /** Omitted from the response when null. */
  readonly finishReason?: string | null
  readonly usage?: Readonly<Record<string, number>>
  /** The token that the SDK sends back to continue an answer that ended with `CONTINUATION`, or without a reason. */
  readonly continuationToken?: string
}

/** A response with one candidate of these parts, in the wire shape. */
export const response = (parts: ReadonlyArray<unknown>, options: ResponseOptions = {}) => {
  const { continuationToken, finishReason = "STOP", usage } = options
  return {
    candidates: [
      {
        content: { role: "model", parts },
        index: 0,
        ...(finishReason === null ? {} : { finishReason }),
        ...(continuationToken === undefined ? {} : { continuationToken })
      }
    ],
    usageMetadata: usage ?? { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 }
  }
}

/** Further fields of an error. */
export interface FailureOptions {
  /** The `retry-after` header, as sent. */
  readonly retryAfter?: string
  /** `google.rpc` details. */
  readonly details?: ReadonlyArray<Readonly<Record<string, unknown>>>
}

const statusNames: Readonly<Record<number, string>> = {
  400: "INVALID_ARGUMENT",
  401: "UNAUTHENTICATED",
  403: "PERMISSION_DENIED",
  404: "NOT_FOUND",
  429: "RESOURCE_EXHAUSTED",
  500: "INTERNAL",
  501: "UNIMPLEMENTED",
  503: "UNAVAILABLE",
  504: "DEADLINE_EXCEEDED"
}

/** An error body as Google writes it; also used as an event of a stream. */
export const failureBody = (code: number, message: string, details?: FailureOptions["details"]) => ({
  error: { code, message, status: statusNames[code] ?? "UNKNOWN", ...(details === undefined ? {} : { details }) }
})

/** An error answer. */
export const failure = (code: number, message: string, { details, retryAfter }: FailureOptions = {}): Answer =>
  json(failureBody(code, message, details), code, retryAfter === undefined ? {} : { "retry-after": retryAfter })

const quotaExceeded = (quotaId: string, retryDelay: string): Answer =>
  failure(429, "You exceeded your current quota.", {
    details: [
      {
        "@type": "type.googleapis.com/google.rpc.QuotaFailure",
        violations: [{ quotaMetric: "generativelanguage.googleapis.com/generate_requests", quotaId, quotaValue: "250" }]
      },
      { "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay }
    ]
  })

/** An error for too many requests this minute. `seconds` is sent in the details, as Google does. */
export const rateLimited = (seconds: number): Answer =>
  quotaExceeded("GenerateRequestsPerMinutePerProjectPerModel", `${seconds}s`)

/** The API's description of a model. */
export const description = (name: string, window: number, output: number): Answer =>
  json({
    name: `models/${name}`,
    version: "001",
    displayName: name,
    inputTokenLimit: window,
    outputTokenLimit: output,
    supportedGenerationMethods: ["generateContent", "countTokens"]
  })

/** An error for an unknown model. */
export const noModel = (name: string): Answer =>
  failure(
    404,
    `models/${name} is not found for API version v1beta, or is not supported for generateContent. Call ListModels to see the list of available models and their supported methods.`
  )

/** An error for an exhausted daily quota. */
export const dailyQuota: Answer = quotaExceeded("GenerateRequestsPerDayPerProjectPerModel", "12s")

/** An error for a request that is larger than the model's window. */
export const contextLength = (sent: number, limit: number): Answer =>
  failure(400, `The input token count (${sent}) exceeds the maximum number of tokens allowed (${limit}).`)

/** An error for an invalid key: Google answers 400, not 401. */
export const keyInvalid: Answer = failure(400, "API key not valid. Please pass a valid API key.", {
  details: [
    {
      "@type": "type.googleapis.com/google.rpc.ErrorInfo",
      reason: "API_KEY_INVALID",
      domain: "googleapis.com"
    }
  ]
})

/** A refused prompt: there are no candidates. */
export const blocked = (blockReason: string) => ({ promptFeedback: { blockReason } })

// Scripts

/** A script with one answer per request. A request beyond the last gets a 501 that says so. */
export const queue =
  (...answers: ReadonlyArray<Answer>): Script =>
  ({ index }) =>
    answers[index] ?? failure(501, `the script has ${answers.length} answers, this is request ${index + 1}`)

const Recorded = Schema.Union([
  Schema.Struct({ method: Schema.Literal("generateContent"), response: Schema.Unknown }),
  Schema.Struct({ method: Schema.Literal("generateContentStream"), response: Schema.Array(Schema.Unknown) }),
  Schema.Struct({ method: Schema.Literal("countTokens"), response: Schema.Unknown })
])
type Recorded = typeof Recorded.Type
const readRecorded = Schema.decodeUnknownEffect(fromJson(Recorded))

const methodOf = ({ method }: Recorded): Method =>
  method === "generateContentStream" ? "streamGenerateContent" : method

const replayed = (recorded: Recorded): Answer =>
  recorded.method === "generateContentStream" ? sse(...recorded.response) : json(recorded.response)

/**
 * A script with the answers of a `.responses` file of gemini-cli: one JSON object per line, with `method` and `response`. A request for
 * another method than the recorded one gets a 501 that says so.
 */
export const replay = (file: string): Effect.Effect<Script, Schema.SchemaError> =>
  Effect.forEach(
    file.split("\n").filter((line) => line.trim() !== ""),
    (line) => readRecorded(line)
  ).pipe(
    Effect.map((lines): Script => (request) => {
      const recorded = lines[request.index]
      return recorded === undefined || methodOf(recorded) === request.method
        ? queue(...lines.map(replayed))(request)
        : failure(501, `request ${request.index + 1} is ${request.method}, recorded was ${recorded.method}`)
    })
  )

// The server

const route = /^\/(?<version>v1|v1beta)\/models\/(?<model>[^/:?]+):(?<method>\w+)(?:\?|$)/
const modelRoute = /^\/(?:v1|v1beta)\/models\/(?<model>[^/:?]+)(?:\?|$)/
const isMethod = Schema.is(Method)
const keyHeader = "x-goog-api-key"
const parse = Schema.decodeUnknownOption(fromJson(Schema.Unknown))

const bodyText = (incoming: http.IncomingMessage): Effect.Effect<string> =>
  Effect.callback((resume) => {
    const pieces: Array<Buffer> = []
    incoming.on("data", (piece: Buffer) => pieces.push(piece))
    incoming.on("end", () => resume(Effect.succeed(Buffer.concat(pieces).toString("utf8"))))
  })

const headersOf = (incoming: http.IncomingMessage): Record<string, string> =>
  Object.fromEntries(
    Object.entries(incoming.headersDistinct).map(([name, values]) => [
      name,
      name === keyHeader ? "<key>" : (values ?? []).join(", ")
    ])
  )

/** Reads a request, without its index; undefined when the server has no such route. */
const readRequest = (incoming: http.IncomingMessage, text: string): Omit<FakeRequest, "index"> | undefined => {
  const path = (incoming.url ?? "").replace(/(?<=[?&]key=)[^&]*/, "<key>")
  const { method, model, version } = route.exec(path)?.groups ?? {}
  if (incoming.method !== "POST" || !isMethod(method) || model === undefined) return undefined
  return {
    method,
    version: version === "v1" ? "v1" : "v1beta",
    model: decodeURIComponent(model),
    path,
    headers: headersOf(incoming),
    body: Option.getOrElse(parse(text), () => text)
  }
}

const settle = (send: (done: () => void) => void): Effect.Effect<void> =>
  Effect.callback((resume) => send(() => resume(Effect.void)))

const perform = (outgoing: http.ServerResponse): ((step: Step) => Effect.Effect<void>) =>
  Step.$match({
    Head: ({ headers, status }) =>
      Effect.sync(() => {
        outgoing.writeHead(status, { ...headers, connection: "close" })
        outgoing.flushHeaders()
      }),
    Write: ({ text }) => settle((done) => outgoing.write(text, done)),
    Wait: ({ until }) => until,
    Drop: () => Effect.sync(() => outgoing.socket?.destroy()),
    Reset: () => Effect.sync(() => outgoing.socket?.resetAndDestroy())
  })

const play = Effect.fnUntraced(function* (answer: Answer, outgoing: http.ServerResponse) {
  // One socket per request, so that its closing means that this request has ended.
  outgoing.setHeader("connection", "close")
  outgoing.setHeader("content-type", "application/json")
  yield* Effect.forEach(answer, perform(outgoing), { discard: true })
  yield* settle((done) => outgoing.end(done))
})

const listening = (server: http.Server): Effect.Effect<string> =>
  Effect.callback((resume) => {
    server.once("error", (error) => resume(Effect.die(error)))
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      resume(
        address === null || typeof address === "string"
          ? Effect.die(new Error("the server has no port"))
          : Effect.succeed(`http://127.0.0.1:${address.port}`)
      )
    })
  })

/** Values by index. Each can be awaited before it is set. */
type Slots<A> = Map<number, Deferred.Deferred<A>>

const slot = <A>(slots: Slots<A>, index: number): Deferred.Deferred<A> => {
  const value = slots.get(index) ?? Deferred.makeUnsafe<A>()
  slots.set(index, value)
  return value
}

/** Options of the server. */
export interface Options {
  /** The only accepted key; any other gets `keyInvalid`. Absent: every key is accepted. */
  readonly key?: string
  /** The answer to a request about a model. Default: `noModel`. */
  readonly describe?: (name: string) => Answer
}

/** A server's script and its record. */
interface Server extends Options {
  readonly script: Script
  readonly clock: Clock.Clock
  readonly requests: Array<FakeRequest>
  readonly lookups: Array<string>
  readonly sightings: Array<ServerEvent>
  readonly received: Slots<FakeRequest>
  readonly closed: Slots<boolean>
}

/** Records a request, and when its socket closes. */
const record = (
  server: Server,
  request: Omit<FakeRequest, "index">,
  socket: Socket,
  outgoing: http.ServerResponse
): FakeRequest => {
  const { clock, requests, sightings } = server
  const index = requests.length
  const recorded = { index, ...request }
  requests.push(recorded)
  sightings.push(Sighting.Received({ index, at: clock.currentTimeMillisUnsafe() }))
  const close = () => {
    const complete = outgoing.writableFinished
    sightings.push(Sighting.Closed({ index, complete, at: clock.currentTimeMillisUnsafe() }))
    Deferred.doneUnsafe(slot(server.closed, index), Effect.succeed(complete))
  }
  if (socket.destroyed) close()
  else socket.once("close", close)
  Deferred.doneUnsafe(slot(server.received, index), Effect.succeed(recorded))
  return recorded
}

/** The answer to a request, which is recorded unless the server has no such route. */
const answerTo = (server: Server, incoming: http.IncomingMessage, text: string, outgoing: http.ServerResponse) => {
  const { describe = noModel, key, lookups, script } = server
  const accepted = key === undefined || incoming.headers[keyHeader] === key
  const encodedName = incoming.method === "GET" ? modelRoute.exec(incoming.url ?? "")?.groups?.["model"] : undefined
  if (encodedName !== undefined) {
    const name = decodeURIComponent(encodedName)
    lookups.push(name)
    return accepted ? describe(name) : keyInvalid
  }
  const request = readRequest(incoming, text)
  if (request === undefined) return failure(404, `${incoming.url} is not here`)
  const recorded = record(server, request, incoming.socket, outgoing)
  return accepted ? script(recorded) : keyInvalid
}

/** Answers a request, so that a script that throws does not look like a server that stalls. */
const handle = (server: Server, incoming: http.IncomingMessage, outgoing: http.ServerResponse) =>
  bodyText(incoming).pipe(
    Effect.flatMap((text) => Effect.suspend(() => play(answerTo(server, incoming, text, outgoing), outgoing))),
    Effect.catchDefect((defect) =>
      outgoing.headersSent ? perform(outgoing)(drop) : play(failure(500, `the script threw: ${defect}`), outgoing)
    )
  )

/**
 * Starts a server at a free port of the loopback interface. It answers `generateContent`, `streamGenerateContent` and `countTokens`
 * under `/v1` and `/v1beta` with the script, GET of a model with `describe`, and everything else with 404, which is not recorded. When
 * the scope closes, all sockets close.
 */
export const make = Effect.fnUntraced(function* (
  script: Script,
  options: Options = {}
): Effect.fn.Return<FakeGemini, never, Scope.Scope> {
  const state: Server = {
    ...options,
    script,
    clock: yield* Clock.Clock,
    requests: [],
    lookups: [],
    sightings: [],
    received: new Map(),
    closed: new Map()
  }
  const fork = yield* FiberSet.makeRuntime()
  const server = yield* Effect.acquireRelease(
    Effect.sync(() =>
      http.createServer((incoming, outgoing) => {
        const fiber = fork(handle(state, incoming, outgoing))
        incoming.socket.once("close", () => fiber.interruptUnsafe())
      })
    ),
    (made) =>
      settle((done) => {
        made.close(() => done())
        made.closeAllConnections()
      })
  )
  return {
    url: yield* listening(server),
    requests: Effect.sync(() => [...state.requests]),
    lookups: Effect.sync(() => [...state.lookups]),
    sightings: Effect.sync(() => [...state.sightings]),
    received: (index) => Deferred.await(slot(state.received, index)),
    closed: (index) => Deferred.await(slot(state.closed, index))
  }
})
