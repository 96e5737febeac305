import { Effect, Queue } from "effect"
import type http from "node:http"
import { listening } from "./loopback.ts"

/** A server on the loopback interface that answers with what a test says, for clients of any provider. */

export interface ProviderRequest {
  readonly path: string
  readonly headers: http.IncomingHttpHeaders
  readonly body: Readonly<Record<string, unknown>>
}

/** An answer: what is written, in order. `stall` waits forever, and `drop` closes the connection. */
export interface ProviderAnswer {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly writes: Iterable<string>
}

/** Events as each provider writes them. */
export const events = (...list: ReadonlyArray<unknown>): ProviderAnswer => ({
  headers: { "content-type": "text/event-stream" },
  writes: list.map((event) =>
    event === "stall" || event === "drop"
      ? event
      : `data: ${typeof event === "string" ? event : JSON.stringify(event)}\n\n`
  )
})

/** An event whose type is its name. */
export interface NamedEvent {
  readonly type: string
  readonly [key: string]: unknown
}

/** Named events, as Anthropic and the Responses API write them. */
export const namedEvents = (...list: ReadonlyArray<NamedEvent | "stall" | "drop">): ProviderAnswer => ({
  headers: { "content-type": "text/event-stream" },
  writes: list.map((event) =>
    typeof event === "string" ? event : `event: ${event.type}\r\ndata: ${JSON.stringify(event)}\r\n\r\n`
  )
})

export const json = (value: unknown, status = 200, headers: Readonly<Record<string, string>> = {}): ProviderAnswer => ({
  status,
  headers: { "content-type": "application/json", ...headers },
  writes: [typeof value === "string" ? value : JSON.stringify(value)]
})

export type ProviderScript = (request: ProviderRequest, index: number) => ProviderAnswer

const write = async (response: http.ServerResponse, text: string) => {
  if (response.write(text)) return
  await new Promise<void>((resolve) => {
    const done = () => {
      response.off("drain", done).off("close", done)
      resolve()
    }
    response.on("drain", done).on("close", done)
  })
}

/** A running server, until its scope closes. */
export const make = Effect.fnUntraced(function* (script: ProviderScript) {
  const requests: Array<ProviderRequest> = []
  const received = yield* Queue.unbounded<number>()
  const closed = yield* Queue.unbounded<number>()
  const url = yield* listening((request, response) => {
    let body = ""
    request.setEncoding("utf8")
    request.on("data", (piece: string) => {
      body += piece
    })
    request.on("end", () => {
      const index = requests.length
      const seen = { path: request.url ?? "", headers: request.headers, body: JSON.parse(body) }
      requests.push(seen)
      Queue.offerUnsafe(received, index)
      request.socket.once("close", () => Queue.offerUnsafe(closed, index))
      const { headers = {}, status = 200, writes } = script(seen, index)
      response.writeHead(status, { ...headers })
      void (async () => {
        for (const text of writes) {
          if (response.destroyed || text === "stall") return
          if (text === "drop") {
            response.destroy()
            return
          }
          await write(response, text)
        }
        response.end()
      })()
    })
  })
  return {
    url,
    requests,
    received: Queue.take(received),
    closed: Queue.take(closed)
  }
})
export type ProviderServer = Effect.Success<ReturnType<typeof make>>
