import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Layer, Redacted } from "effect"
import * as HttpServer from "effect/http/HttpServer"
import { realpathSync } from "node:fs"
import * as ReferencePage from "../../src/cli/page/ReferencePage.ts"
import { accessOf } from "../../src/domain/model/ModelRoute.ts"
import type { ServeSettings } from "../../src/domain/serve/ServeSettings.ts"
import * as LiveRuntime from "../../src/layers/assembly/LiveRuntime.ts"
import * as LiveServe from "../../src/layers/assembly/LiveServe.ts"
import * as ScriptedModel from "../../src/layers/testing/ScriptedModel.ts"
import { Model } from "../../src/services/model/Model.ts"
import { hashOf } from "../../src/services/serve/ApiTokens.ts"
import { newFolder } from "./paths.ts"

/** A server in this process, with a scripted model and two tenants. */

export const tokens = { local: "token-of-the-user", acme: "token-of-acme", zeta: "token-of-zeta" } as const

// Each of the servers of a file that run at the same time listens to the one standard input.
process.stdin.setMaxListeners(0)

/** A folder of its own for what a server stores. */
export const newHome = () => realpathSync(newFolder("serve-"))

export interface ServerOptions {
  readonly home: string
  readonly settings?: ServeSettings
  readonly answers?: ScriptedModel.Answers
  readonly store?: LiveServe.ServeStore
  readonly gateway?: LiveServe.LiveServeOptions["gateway"]
  /** Tenants whose tokens are revoked. */
  readonly revoked?: ReadonlySet<string>
}

/** A scripted model that is asked like Google's: it has no models of other providers. */
const scripted = (answers: ScriptedModel.Answers) =>
  Layer.effect(
    Model,
    Effect.map(Model, (model) => ({
      ...model,
      access: accessOf(new Set(["google"]))
    }))
  ).pipe(Layer.provide(ScriptedModel.layer(answers)))

/** Starts a server; it ends with the scope. Returns its address and a function that asks it as a tenant. */
export const startServer = Effect.fnUntraced(function* ({
  answers = () => "an answer",
  gateway,
  home,
  revoked = new Set(),
  settings = {},
  store = { _tag: "Files" }
}: ServerOptions) {
  const hashed = Object.entries(tokens).map(([tenant, token]) => ({ tenant, hash: hashOf(Redacted.make(token)) }))
  const context = yield* Layer.buildWithMemoMap(
    LiveServe.layer({
      host: "127.0.0.1",
      port: 0,
      settings,
      store,
      gateway,
      tokens: Effect.sync(() => hashed.filter(({ tenant }) => !revoked.has(tenant))),
      version: "0",
      page: { html: "<p>page</p>", policy: "default-src 'none'" },
      reference: ReferencePage.render
    }).pipe(
      Layer.provideMerge(LiveRuntime.layer({ home, folder: home, model: Layer.fresh(scripted(answers)) })),
      Layer.provideMerge(NodeServices.layer)
    ),
    yield* Layer.makeMemoMap,
    yield* Effect.scope
  ).pipe(Effect.orDie)
  const { address } = yield* HttpServer.HttpServer.pipe(Effect.provideContext(context))
  const url = "port" in address ? `http://127.0.0.1:${address.port}` : ""
  const ask = (
    method: string,
    place: string,
    { body, headers = {}, signal, token = tokens.acme }: AskOptions = {}
  ): Promise<Response> =>
    fetch(`${url}${place}`, {
      method,
      headers: {
        ...(token === "" ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers
      },
      ...(signal === undefined ? {} : { signal }),
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) })
    })
  return { url, ask, context }
})

export type Server = Effect.Success<ReturnType<typeof startServer>>

/** Runs requests against a server, which ends with them. */
export const serving = <A>(options: ServerOptions, use: (server: Server) => Promise<A>) =>
  Effect.scoped(Effect.flatMap(startServer(options), (server) => Effect.promise(() => use(server))))

interface AskOptions {
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  readonly token?: string
  readonly signal?: AbortSignal
}

/** The events of a stream: their ids and data. */
export const eventsOf = (text: string) =>
  text
    .split("\n\n")
    .filter((block) => block.includes("data:"))
    .map((block) => {
      const field = (name: string) =>
        block
          .split("\n")
          .find((line) => line.startsWith(`${name}: `))
          ?.slice(name.length + 2)
      const data: {
        readonly message: string | null
        readonly event: { readonly _tag: string; readonly text?: string }
      } = JSON.parse(field("data") ?? "null")
      return { id: field("id"), ...data }
    })

/** A stream that is read until an event comes; the rest stays to be read. */
export const reading = (response: Response) => {
  const decoder = new TextDecoder()
  const bytes = response.body?.[Symbol.asyncIterator]()
  let text = ""
  const events = () => eventsOf(text)
  const until = async (tag: string, count = 1) => {
    for (;;) {
      const found = events().filter(({ event }) => event._tag === tag)
      if (found.length >= count) return found
      const next = await bytes?.next()
      if (next === undefined || next.done === true) throw new Error(`no ${tag} in: ${text}`)
      text += decoder.decode(next.value, { stream: true })
    }
  }
  return { events, until }
}
