/**
 * One exchange with a provider of any dialect: sends a JSON body, receives JSON or server-sent events, within bounds of bytes, parts and time. A
 * socket closes when its caller is interrupted.
 */

import { Duration, Effect, Result, Scope, Stream } from "effect"
import * as Sse from "effect/encoding/Sse"
import { parseJson, wellFormedJson } from "../../domain/text/JsonText.ts"
import { maxAnswerParts } from "../../domain/wire/AnswerReader.ts"
import { faultOf, type ProviderFault } from "../../domain/wire/ProviderFault.ts"
import { endMark, isEndMark, isKeptOpen } from "../../domain/wire/SseEvents.ts"
import { AnswerTooLargeError, InvalidRequestError, type ModelError, TimeoutError } from "../../services/model/Model.ts"
import type { ProviderRequest, Reply } from "./HttpSend.ts"
import { keyOf, type Provider } from "./Provider.ts"
import { failed, hideKey, unusable, reasonOfConnection, reasonOfStatus, retryAfter } from "./ProviderErrors.ts"

/** Bytes of an answer, images included. An endless answer is ended there. */
export const maxAnswerBytes = 32 * 1024 * 1024
/** Bytes of the body of an error, of which a few hundred characters are shown. */
const maxErrorBytes = 1024 * 1024

/** Fails with a `TimeoutError` after this time. */
export const failAfter = (duration: Duration.Input) =>
  Effect.timeoutOrElse({
    duration,
    orElse: () => Effect.fail(failed(new TimeoutError({ seconds: Duration.toSeconds(duration) })))
  })

const tooLarge = (unit: "bytes" | "parts", limit: number) => failed(new AnswerTooLargeError({ unit, limit }))

/** The next bytes of an answer; undefined at its end. */
const nextBytes = ({ baseUrl }: Provider, { next }: Reply) =>
  Effect.mapError(next, (error) => failed(reasonOfConnection(error, true, baseUrl.host)))

/**
 * The values of JSON in the data of an event. Some relays leave out the blank line between events, or send lines of JSON or a list in place of
 * events.
 */
const valuesIn = (data: string): ReadonlyArray<string> => {
  if (!/\n|^\s*\[\s*\{/.test(data)) return [data]
  const value = Result.getOrUndefined(parseJson(data))
  if (Array.isArray(value)) return value.map((each) => JSON.stringify(each))
  return value === undefined ? data.split("\n") : [data]
}

/** The text of a whole body. */
export const textOf = Effect.fnUntraced(function* (provider: Provider, reply: Reply, maxBytes: number) {
  const decoder = new TextDecoder()
  let text = ""
  let size = 0
  for (;;) {
    const bytes = yield* nextBytes(provider, reply)
    if (bytes === undefined) return text + decoder.decode()
    size += bytes.length
    if (size > maxBytes) return yield* tooLarge("bytes", maxBytes)
    text += decoder.decode(bytes, { stream: true })
  }
})

/** An answer with the status of an error. */
export interface Refusal {
  readonly status: number
  readonly fault: ProviderFault
}

/**
 * Sends a request. Fails if the answer has the status of an error, and notes it with `refused`; follows no redirection, because the key is for this
 * server alone.
 */
export const exchanged = Effect.fnUntraced(function* (
  provider: Provider,
  request: ProviderRequest,
  refused?: (refusal: Refusal) => void
) {
  const { baseUrl, names } = provider
  const reply = yield* provider
    .send(request)
    .pipe(Effect.mapError((error) => failed(reasonOfConnection(error, false, baseUrl.host))))
  const { header, status } = reply
  if (status >= 200 && status < 300) {
    if (header("content-type")?.startsWith("text/html") !== true) return reply
    const detail = `${baseUrl.host} answers with a web page, where its API was expected; check ${names.baseUrl}`
    return yield* failed(new InvalidRequestError({ detail }))
  }
  const fault = yield* textOf(provider, reply, maxErrorBytes).pipe(
    Effect.map((text) => faultOf(hideKey(provider)(text))),
    // The status alone is enough where the body cannot be read.
    Effect.orElseSucceed((): ProviderFault => ({ message: `HTTP ${status}, and its body cannot be read`, kind: "" }))
  )
  refused?.({ status, fault })
  return yield* failed(reasonOfStatus(status, fault, retryAfter(header), names))
})

/** The bytes of a JSON body. */
const bytesOf = (body: unknown): ReadonlyArray<Uint8Array> => [Buffer.from(wellFormedJson(JSON.stringify(body)))]

/** Sends bytes of JSON to a path of the API. */
const open = Effect.fnUntraced(function* (provider: Provider, path: string, body: ReadonlyArray<Uint8Array>) {
  const key = yield* keyOf(provider)
  const headers = { "content-type": "application/json", ...provider.headers(key) }
  const url = new URL(path, provider.baseUrl)
  // Such as Azure's `api-version`.
  for (const [name, value] of provider.baseUrl.searchParams) url.searchParams.set(name, value)
  return yield* exchanged(provider, { url, method: "POST", headers, body })
})

/** Asks for JSON. */
export const call = (provider: Provider, path: string, body: unknown): Effect.Effect<unknown, ModelError> =>
  Effect.gen(function* () {
    const reply = yield* open(provider, path, bytesOf(body))
    const text = yield* textOf(provider, reply, maxAnswerBytes)
    return yield* Effect.fromResult(Result.mapError(parseJson(text), () => unusable("it is not JSON")))
  }).pipe(Effect.scoped, failAfter(provider.timeouts.countTokens))

/** Returns the data of the next event of an answer; undefined at its end. */
const eventsIn = (provider: Provider, reply: Reply): Effect.Effect<string | undefined, ModelError> => {
  const arrived: Array<string> = []
  const decoder = new TextDecoder()
  const parser = Sse.makeParser((event) => void (event._tag === "Event" && arrived.push(...valuesIn(event.data))), {
    maxEventSize: maxAnswerBytes
  })
  let [size, count] = [0, 0]
  let isOver = false
  let isBegun = false
  let whole: string | undefined
  return Effect.gen(function* () {
    while (arrived.length === 0 && !isOver) {
      // Whatever comes, such as a comment, tells that the server is there.
      const bytes = yield* failAfter(provider.timeouts.chunk)(nextBytes(provider, reply))
      isOver = bytes === undefined
      size += bytes?.length ?? 0
      if (size > maxAnswerBytes) return yield* tooLarge("bytes", maxAnswerBytes)
      const text = isOver ? decoder.decode() : decoder.decode(bytes, { stream: true })
      // Some servers answer with one body in place of events, above all with an error.
      if (!isBegun && /^\s*[{[]/.test(text)) whole = ""
      isBegun ||= text.trim() !== ""
      if (whole !== undefined) whole += text
      // Some servers leave out the blank line after the last event.
      else parser.feed(isOver ? `${text}\n\n` : text)
      if (isOver && whole !== undefined) arrived.push(...valuesIn(whole))
    }
    if (arrived.length > 0) count += 1
    return count > maxAnswerParts ? yield* tooLarge("parts", maxAnswerParts) : arrived.shift()
  })
}

const isBytes = (body: object): body is ReadonlyArray<Uint8Array> => Array.isArray(body)

/** Asks for server-sent events, each with JSON, or `endMark` where the server marks their end. `body` is a value, or its bytes. The socket closes with the stream's scope. */
export const events = (
  provider: Provider,
  path: string,
  body: ReadonlyArray<Uint8Array> | Readonly<Record<string, unknown>>
): Stream.Stream<unknown, ModelError> =>
  Effect.map(Effect.scope, (scope) => {
    const start = open(provider, path, isBytes(body) ? body : bytesOf(body)).pipe(
      failAfter(provider.timeouts.chunk),
      Effect.map((reply) => eventsIn(provider, reply)),
      Scope.provide(scope)
    )
    const next = Effect.fnUntraced(function* (opening: typeof start) {
      const read = yield* opening
      const data = yield* read
      if (data === undefined) return undefined
      if (isKeptOpen(data)) return [{}, Effect.succeed(read)] as const
      if (isEndMark(data)) return [endMark, Effect.succeed(Effect.undefined)] as const
      const event = parseJson(data)
      if (Result.isSuccess(event)) return [event.success, Effect.succeed(read)] as const
      const { _tag, message } = event.failure
      // What begins like one may have the model's words.
      const said = data.trimStart().startsWith("{") ? "" : ` (${hideKey(provider)(data)})`
      return yield* unusable(_tag === "TooDeep" ? message : `it contains an event that is not JSON${said}`)
    })
    return Stream.unfold(start, next)
  }).pipe(Stream.unwrap)
