import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { connect, type AddressInfo, type Socket } from "node:net"
import { gunzipSync, zstdDecompressSync } from "node:zlib"

/**
 * One local server that answers as the APIs of Anthropic, OpenAI and Google do, with one short streamed text, and keeps
 * every request. It is also the proxy that programs are given, so that none reaches anything beyond it.
 */

/** A JSON object of unknown fields. */
export type Json = Readonly<Record<string, unknown>>

/** Narrows a value to a JSON object. */
export const isJson = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** A request to a model. */
export interface ModelRequest {
  readonly path: string
  readonly body: Json
}

/** A running server. */
export interface FakeProviders {
  /** Its address, without a slash at the end. */
  readonly url: string
  /** Requests to models since the last call of `taken`, in order. */
  readonly taken: () => ReadonlyArray<ModelRequest>
  /** Hosts that a program tried to reach and could not, since the last call. */
  readonly refused: () => ReadonlyArray<string>
  readonly close: () => Promise<void>
}

/** What every model answers. */
export const answer = "Understood."

const event = (value: Json, name?: string): string =>
  `${name === undefined ? "" : `event: ${name}\n`}data: ${JSON.stringify(value)}\n\n`

const named = (value: Json & { readonly type: string }): string => event(value, value.type)

const stream = (response: ServerResponse, events: ReadonlyArray<string>): void => {
  response.writeHead(200, { "content-type": "text/event-stream" })
  response.end(events.join(""))
}

const json = (response: ServerResponse, value: unknown, status = 200): void => {
  response.writeHead(status, { "content-type": "application/json" })
  response.end(JSON.stringify(value))
}

const anthropic = (response: ServerResponse, { model, stream: isStreamed }: Json): void => {
  const about = { id: "msg_fake", type: "message", role: "assistant", model, stop_sequence: null }
  const usage = { input_tokens: 10, output_tokens: 2 }
  if (isStreamed !== true)
    return json(response, { ...about, content: [{ type: "text", text: answer }], stop_reason: "end_turn", usage })
  stream(response, [
    named({ type: "message_start", message: { ...about, content: [], stop_reason: null, usage } }),
    named({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } }),
    named({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: answer } }),
    named({ type: "content_block_stop", index: 0 }),
    named({ type: "message_delta", delta: { stop_reason: "end_turn", stop_sequence: null }, usage }),
    named({ type: "message_stop" })
  ])
}

const openai = (response: ServerResponse): void => {
  const item = {
    id: "msg_fake",
    type: "message",
    role: "assistant",
    status: "completed",
    content: [{ type: "output_text", text: answer, annotations: [] }]
  }
  const usage = {
    input_tokens: 10,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: 2,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: 12
  }
  stream(response, [
    named({ type: "response.created", response: { id: "resp_fake", status: "in_progress", output: [] } }),
    named({ type: "response.output_item.done", output_index: 0, item }),
    named({ type: "response.completed", response: { id: "resp_fake", status: "completed", output: [item], usage } })
  ])
}

const google = (response: ServerResponse, isStreamed: boolean): void => {
  const value = {
    candidates: [{ content: { role: "model", parts: [{ text: answer }] }, finishReason: "STOP", index: 0 }],
    usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 2, totalTokenCount: 12 }
  }
  if (isStreamed) stream(response, [event(value)])
  else json(response, value)
}

const bodyOf = (request: IncomingMessage, bytes: Buffer): Json => {
  const { "content-encoding": encoding } = request.headers
  const plain = encoding === "gzip" ? gunzipSync(bytes) : encoding === "zstd" ? zstdDecompressSync(bytes) : bytes
  const value: unknown = plain.length === 0 ? {} : JSON.parse(plain.toString("utf8"))
  return isJson(value) ? value : {}
}

/** Starts a server on a free port of the loopback interface. */
export const startFakeProviders = async (): Promise<FakeProviders> => {
  let requests: Array<ModelRequest> = []
  let hosts: Array<string> = []
  const sockets = new Set<Socket>()

  const reply = (request: IncomingMessage, response: ServerResponse, bytes: Buffer): void => {
    const target = request.url ?? "/"
    if (!target.startsWith("/") && !target.startsWith(url)) {
      hosts.push(target)
      return json(response, { error: { message: "not reachable" } }, 502)
    }
    const { pathname: path } = new URL(target, url)
    if (request.method !== "POST") return json(response, path.endsWith("/models") ? { data: [], models: [] } : {}, 404)
    const body = bodyOf(request, bytes)
    if (path.endsWith("count_tokens")) return json(response, { input_tokens: 10 })
    if (path.endsWith(":countTokens")) return json(response, { totalTokens: 10 })
    const isModel = /\/(messages|responses)$|:(streamG|g)enerateContent$/.test(path)
    if (!isModel) return json(response, { error: { message: "no such place" } }, 404)
    requests.push({ path, body })
    if (path.endsWith("/messages")) return anthropic(response, body)
    if (path.endsWith("/responses")) return openai(response)
    google(response, path.endsWith(":streamGenerateContent"))
  }

  const server = createServer((request, response) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => reply(request, response, Buffer.concat(chunks)))
  })
  server.on("connection", (socket) => {
    sockets.add(socket)
    socket.on("close", () => sockets.delete(socket))
  })
  server.on("connect", (request, socket, head) => {
    const host = request.url ?? ""
    socket.on("error", () => socket.destroy())
    if (`http://${host}` !== url) {
      hosts.push(host)
      socket.end("HTTP/1.1 502 Bad Gateway\r\n\r\n")
      return
    }
    const own = connect(port, "127.0.0.1", () => {
      socket.write("HTTP/1.1 200 Connection Established\r\n\r\n")
      own.write(head)
      own.pipe(socket)
      socket.pipe(own)
    })
    own.on("error", () => socket.destroy())
    socket.on("error", () => own.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const isPlace = (address: AddressInfo | string | null): address is AddressInfo =>
    typeof address === "object" && address !== null
  const address = server.address()
  const port = isPlace(address) ? address.port : 0
  const url = `http://127.0.0.1:${port}`
  return {
    url,
    taken: () => {
      const all = requests
      requests = []
      return all
    },
    refused: () => {
      const all = hosts
      hosts = []
      return all
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        for (const socket of sockets) socket.destroy()
      })
  }
}
