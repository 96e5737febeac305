import { Context, Effect, Layer } from "effect"
import { hash } from "node:crypto"
import http from "node:http"
import * as zlib from "node:zlib"
import { limitsOfKeys } from "../../src/domain/gateway/GatewayAccess.ts"
import type { GatewaySettings } from "../../src/domain/gateway/GatewaySettings.ts"
import { estimateText } from "../../src/domain/tokens/Tokens.ts"
import { type Dialect, dialects } from "../../src/domain/wire/Dialect.ts"
import * as GatewayHttp from "../../src/layers/gateway/GatewayHttp.ts"
import { Upstream } from "../../src/layers/gateway/Upstream.ts"
import * as MemoryTempStore from "../../src/layers/testing/MemoryTempStore.ts"
import { Compression } from "../../src/services/compression/Compression.ts"
import { Gateway } from "../../src/services/gateway/Gateway.ts"
import type { GatewayOptions } from "../../src/services/gateway/GatewayPlan.ts"
import { GatewayServer } from "../../src/services/gateway/GatewayServer.ts"
import * as SnapshotWriter from "../../src/services/gateway/SnapshotWriter.ts"
import { HookSystem } from "../../src/services/hooks/HookSystem.ts"
import { ApiTokens } from "../../src/services/serve/ApiTokens.ts"
import { TenantLimiter } from "../../src/services/serve/TenantLimiter.ts"
import { TokenCounter } from "../../src/services/tokens/TokenCounter.ts"
import { type Answer, type Block, codecs, type Json } from "./GatewayDialects.ts"
import { listening } from "./loopback.ts"
import * as MemoryGatewayStore from "./MemoryGatewayStore.ts"
import { connector, fetchFrom, isInMemory, requestOptions, serve } from "./memoryNet.ts"

/**
 * A gateway between a client that keeps its history and a strict provider whose model looks for what it is asked: over sockets, or with the
 * same bytes in memory.
 */

/** A request as a provider got it. */
export interface ProviderRequest {
  readonly dialect: Dialect
  readonly url: string
  readonly headers: http.IncomingHttpHeaders
  readonly rawHeaders: ReadonlyArray<string>
  readonly text: string
}

/** What a provider does in place of answering. */
export interface Fault {
  readonly status?: number
  readonly body?: string
  /** Closes the connection after this many events. */
  readonly breakAfter?: number
  /** Writes the whole answer itself. */
  readonly write?: (response: http.ServerResponse) => void
}

/** Decides what the model says, from the whole text of the request. */
export type FakeModel = (request: ProviderRequest, index: number) => ReadonlyArray<Block> | Fault

const dialectOf = (url: string): Dialect | undefined =>
  dialects.find((dialect) =>
    [true, false].some((isStream) => codecs[dialect].path(isStream).split(":")[0] === url.split(/[:?]/)[0])
  )

const decoders: Readonly<Record<string, (body: Buffer) => Buffer>> = {
  gzip: zlib.gunzipSync,
  deflate: zlib.inflateSync,
  br: zlib.brotliDecompressSync,
  ...("zstdDecompressSync" in zlib ? { zstd: zlib.zstdDecompressSync } : {})
}

const readBody = (message: http.IncomingMessage) =>
  new Promise<string>((resolve) => {
    const pieces: Array<Buffer> = []
    message.on("data", (piece: Buffer) => void pieces.push(piece))
    message.on("end", () => {
      const decode = decoders[message.headers["content-encoding"] ?? ""]
      const body = Buffer.concat(pieces)
      resolve((decode?.(body) ?? body).toString("utf8"))
    })
  })

const isFault = (said: ReadonlyArray<Block> | Fault): said is Fault => !Array.isArray(said)

/** A provider of all dialects, on loopback or in memory. It answers 400 to what a real one would refuse. */
export const makeProvider = Effect.fnUntraced(function* (model: FakeModel, open: typeof listening = listening) {
  const requests: Array<ProviderRequest> = []
  const counted: Array<Answer["counts"]> = []
  const address = yield* open((request, response) => {
    void readBody(request).then((text) => {
      const url = request.url ?? ""
      const dialect = dialectOf(url)
      if (dialect === undefined) {
        response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ path: url, text }))
        return
      }
      const codec = codecs[dialect]
      const seen = { dialect, url, headers: request.headers, rawHeaders: request.rawHeaders, text }
      const problems = codec.problems(JSON.parse(text))
      requests.push(seen)
      if (problems.length > 0) {
        response
          .writeHead(400, { "content-type": "application/json" })
          .end(JSON.stringify({ error: { message: problems.join("; ") } }))
        return
      }
      const blocks = model(seen, requests.length - 1)
      const fault = isFault(blocks) ? blocks : {}
      if (fault.write !== undefined) {
        fault.write(response)
        return
      }
      if (fault.status !== undefined) {
        response
          .writeHead(fault.status, { "content-type": "application/json", "retry-after": "1" })
          .end(fault.body ?? "{}")
        return
      }
      const answer: Answer = {
        number: requests.length,
        blocks: isFault(blocks) ? [{ kind: "text", text: "broken off" }] : blocks,
        counts: { input: estimateText(text), output: 7 }
      }
      counted.push(answer.counts)
      if (JSON.parse(text).stream === true || url.includes("stream")) {
        response.writeHead(200, { "content-type": "text/event-stream" })
        for (const [at, event] of codec.events(answer).entries()) {
          if (at === fault.breakAfter) {
            response.destroy()
            return
          }
          response.write(event)
        }
        response.end()
      } else response.writeHead(200, { "content-type": "application/json" }).end(codec.json(answer))
    })
  })
  return { url: address, requests, counted }
})

const compression = Compression.layer.pipe(
  Layer.provideMerge(Layer.mergeAll(SnapshotWriter.layer, TokenCounter.layerEstimate, MemoryTempStore.layer)),
  Layer.provide(HookSystem.layer)
)

/** The decisions of a gateway, over what is held in memory. */
export const gatewayLayer = (options: GatewayOptions, held: Map<string, string> = new Map()) =>
  Gateway.layer(options).pipe(Layer.provide(compression), Layer.provide(MemoryGatewayStore.layer(held)))

const maxHeldBytes = 100_000_000

/** The token for the metrics of these gateways. */
export const metricsToken = {
  text: "metrics",
  setting: { tenant: "local", hash: `sha256:${hash("sha256", "metrics", "hex")}` }
} as const

/** A gateway until its scope closes: in memory before a provider in memory, else on loopback. */
export const makeGateway = Effect.fnUntraced(function* (
  provider: string,
  options: Partial<GatewayOptions & GatewayHttp.GatewayHttpOptions> = {},
  held: Map<string, string> = new Map(),
  { tenants, ...budgets }: GatewaySettings["budgets"] & Pick<GatewaySettings, "tenants"> = {}
) {
  const all = { threshold: 0.75, tenants, ...options }
  const configured: GatewayHttp.GatewayHttpOptions = {
    host: "127.0.0.1",
    port: 0,
    maxBodyBytes: 8_000_000,
    silentSeconds: 600,
    clientSeconds: 30,
    drainSeconds: 5,
    page: { html: "<p>page</p>", policy: "default-src 'none'" },
    upstreams: { anthropic: provider, gemini: provider, openai: provider },
    ...all
  }
  const services = yield* Layer.build(
    Layer.mergeAll(
      gatewayLayer(all, held),
      isInMemory(provider) ? Upstream.layer(maxHeldBytes, connector) : Upstream.layer(maxHeldBytes),
      ApiTokens.layer(Effect.succeed([metricsToken.setting])),
      TenantLimiter.layer(limitsOfKeys({ budgets, ...(tenants === undefined ? {} : { tenants }) }))
    )
  )
  const url = isInMemory(provider)
    ? Effect.flatMap(GatewayHttp.makeServer(configured), serve)
    : Effect.map(
        Layer.build(GatewayHttp.layer(configured)),
        (built) => `http://127.0.0.1:${Context.get(built, GatewayServer).port}`
      )
  return { url: yield* Effect.provideContext(url, services), held }
})

/** A client that keeps its whole history, and its answers as they were. */
export const makeClient = (dialect: Dialect, url: string, isStream: boolean, key = "secret-key") => {
  const codec = codecs[dialect]
  const history: Array<Json> = []
  const request = (messages: ReadonlyArray<Json>, signal: AbortSignal | null = null) =>
    fetchFrom(`${url}${codec.path(isStream)}`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
      body: JSON.stringify(codec.body(messages, isStream)),
      signal
    })
  const ask = async (): Promise<Answer> => {
    const response = await request(history)
    const text = await response.text()
    if (response.status !== 200) throw new Error(`${response.status} ${text}`)
    const answer = isStream ? codec.readEvents(text) : codec.readJson(text)
    history.push(...codec.assistant(answer.blocks))
    return answer
  }
  return {
    history,
    /** Says something that is not part of the history, and returns the answer as it comes. */
    send: (text: string, signal: AbortSignal) => request([...history, ...codec.user(text)], signal),
    /** Says something, answers the calls of the model, and returns all its words, and the counts of each answer. */
    say: async (text: string, result: (path: string) => string) => {
      history.push(...codec.user(text))
      const counts: Array<Answer["counts"]> = []
      let words = ""
      for (;;) {
        const answer = await ask()
        counts.push(answer.counts)
        words += answer.blocks.map((block) => (block.kind === "text" ? block.text : "")).join("")
        const calls = answer.blocks.flatMap((block) => (block.kind === "call" ? [block] : []))
        if (calls.length === 0) return { words, counts }
        history.push(
          ...codec.results(
            calls.map(({ args, id, name }) => ({ id, name, text: result((args as { path: string }).path) }))
          )
        )
      }
    }
  }
}

/** A model that says the same each time. */
export const noted: FakeModel = () => [{ kind: "text", text: "Noted." }]

/** A text of some 750 tokens that no other turn has. */
export const filler = (turn: number): string =>
  Array.from(
    { length: 45 },
    (_, at) => `Line ${at} of turn ${turn} tells of part ${(turn * 61 + at * 17) % 997}.`
  ).join("\n")

/** Sends exact bytes, and returns the exact answer. */
export const raw = (url: string, headers: ReadonlyArray<string>, body: string, method = "POST") =>
  Effect.callback<{ readonly status: number; readonly headers: ReadonlyArray<string>; readonly body: string }, Error>(
    (resume) => {
      const request = http.request(
        url,
        { ...requestOptions(url), method, headers: ["Host", new URL(url).host, ...headers] },
        (response) => {
          let text = ""
          response.setEncoding("utf8")
          response.on("data", (piece: string) => {
            text += piece
          })
          response.on("end", () =>
            resume(Effect.succeed({ status: response.statusCode ?? 0, headers: response.rawHeaders, body: text }))
          )
          response.on("error", (error) => resume(Effect.fail(error)))
        }
      )
      request.on("error", (error) => resume(Effect.fail(error)))
      request.end(body)
      return Effect.sync(() => void request.destroy())
    }
  )

/** A client whose history is above the threshold of a small window, and compressed. */
export const compressedClient = Effect.fnUntraced(function* (
  dialect: Dialect,
  url: string,
  isStream = true,
  key?: string
) {
  const client = makeClient(dialect, url, isStream, key)
  for (let turn = 1; turn <= 6; turn += 1) yield* Effect.promise(() => client.say(`${turn}: ${filler(turn)}`, () => ""))
  return client
})

/** A window that six turns fill. */
export const small = { window: 4_096 }
