/** The `serve` command: reads its options, starts the HTTP server, and says where it listens; makes new tokens. */

import { Config, Effect, identity, type Layer, Logger, Redacted, Schema, type Stdio } from "effect"
import { Command, Flag } from "effect/cli"
import * as HttpServer from "effect/http/HttpServer"
import { reachOf } from "../../domain/model/ModelRoute.ts"
import {
  drainSecondsOf,
  isTenantName,
  localTenant,
  ServedGateway,
  type ServeSettings
} from "../../domain/serve/ServeSettings.ts"
import { ApprovalMode } from "../../domain/tools/Approval.ts"
import { configuredProviders } from "../../services/model/ModelKeys.ts"
import { isListenError } from "../../services/platform/ListenError.ts"
import { hashOf, newToken } from "../../services/serve/ApiTokens.ts"
import { type GatewaySetup, gatewaySetup, type ProviderKeys, providerKeys } from "../flags/GatewaySetup.ts"
import * as ListenAddress from "../flags/ListenAddress.ts"
import * as Input from "../flags/SharedFlags.ts"
import { userSettings } from "../flags/UserSettings.ts"
import { badInput, type ExitError } from "../output/ExitError.ts"
import * as Output from "../output/Output.ts"
import { version } from "../output/Version.ts"
import * as ReferencePage from "../page/ReferencePage.ts"
import * as ServePage from "../page/ServePage.ts"

const logger = Output.logger((options, words) => {
  const { annotations, cause, level, timestamp } = Logger.formatStructured.log(options)
  process.stderr.write(`${JSON.stringify({ time: timestamp, level, message: words, ...annotations, cause })}\n`)
})

/** Writes the log as JSON. */
const layer = Logger.layer([logger])

/** Options of the server that the command starts. */
export interface ServeOptions {
  readonly host: string
  readonly port: number
  readonly settings: ServeSettings
  readonly tokens: ListenAddress.ServerTokens["tokens"]
  readonly version: string
  /** Whether the log gets a line for each request. */
  readonly logRequests: boolean
  readonly page: { readonly html: string; readonly policy: string }
  readonly reference: typeof ReferencePage.render
  readonly model?: string | undefined
  readonly store: ServeStore
  readonly gateway?: (GatewaySetup & { readonly ownKeys: boolean; readonly providerKeys: ProviderKeys }) | undefined
}

/** An address that other processes reach. */
interface Address {
  readonly host: string
  readonly port: number
}

/** Where the server keeps its sessions, and the role of this process. */
type ServeStore =
  | { readonly _tag: "Files" }
  | { readonly _tag: "Sqlite"; readonly file?: string | undefined }
  | { readonly _tag: "Postgres"; readonly url: Redacted.Redacted; readonly runner: Address | undefined }

const addressOf = (text: string): Address | undefined => {
  const [, host = "", port = ""] = /^(.+):(\d{1,5})$/.exec(text) ?? []
  return host === "" || Number(port) > 65_535 ? undefined : { host, port: Number(port) }
}

const defaultRunner = "127.0.0.1:4401"

/** Reads the flags for the session store and the role of this process. */
const storeOf = Effect.fnUntraced(function* (
  flag: string | undefined,
  hasSqlite: Effect.Effect<boolean>,
  role: { readonly runner: boolean; readonly front: boolean; readonly address: string | undefined }
): Effect.fn.Return<ServeStore, ExitError, Stdio.Stdio> {
  const store = flag ?? ((yield* hasSqlite) ? "sqlite" : "files")
  if (flag === undefined && store === "files") {
    yield* Output.notice(
      "this Node has no SQLite (Node 22.16 and newer have it), so sessions are stored as files: a crash can cut an answer short"
    )
  }
  const isShared = /^postgres(?:ql)?:\/\//.test(store)
  if (!isShared && (role.runner || role.front || role.address !== undefined)) {
    return yield* badInput("--runner, --front and --address need --store postgres://…, which several servers share")
  }
  if (store === "files") return { _tag: "Files" }
  const file = /^sqlite:(.+)$/s.exec(store)?.[1]
  if (store === "sqlite" || file !== undefined) return { _tag: "Sqlite", file }
  if (!isShared) return yield* badInput("--store: expected files, sqlite, sqlite:FILE or postgres://USER@HOST/DATABASE")
  if (role.runner && role.front) return yield* badInput("give --runner or --front; without them the process is both")
  const runner = addressOf(role.address ?? defaultRunner)
  if (runner === undefined) return yield* badInput("--address: expected a host and a port, such as 10.0.0.5:4401")
  return { _tag: "Postgres", url: Redacted.make(store), runner: role.front ? undefined : runner }
})

/** The forms of the log. */
const logFormats = ["text", "json"] as const

/** The output of `--new-token` with `--json`. */
const NewToken = Schema.Struct({ token: Schema.String, tenant: Schema.String, hash: Schema.String })

/** Prints a new token, and its hash for the settings. */
const printToken = Effect.fnUntraced(function* (tenant: string, isJson: boolean) {
  if (!isTenantName(tenant)) {
    return yield* badInput(`--new-token ${tenant}: a tenant's name has 1 to 32 small letters, digits and hyphens`)
  }
  const token = yield* newToken
  const hash = hashOf(token)
  const line = JSON.stringify({ tenant, hash })
  if (isJson) return yield* Output.json(NewToken, { token: Redacted.value(token), tenant, hash })
  yield* Output.text(Redacted.value(token))
  yield* Output.notice(`this token is shown only now; add its hash to "serve": {"tokens": [${line}]} in settings.json`)
})

const flags = {
  host: ListenAddress.host("; any other than loopback needs tokens in the settings"),
  port: ListenAddress.port(4400),
  model: Input.text("model", "name", "Model of new sessions"),
  store: Input.optional(
    Flag.String("store").pipe(
      Flag.withMetavar("store"),
      Flag.withFallbackConfig(Config.NonEmptyString("PALIMPSEST_STORE"))
    ),
    "Where to store sessions: sqlite (default where Node has it), sqlite:FILE, files, or postgres://… for several servers; also PALIMPSEST_STORE"
  ),
  runner: Input.flag("runner", "Only run sessions; another process serves the API"),
  front: Input.flag("front", "Only serve the API; other processes run the sessions"),
  address: Input.text(
    "address",
    "host:port",
    `Address at which other servers reach this runner (default ${defaultRunner})`
  ),
  tools: Input.flag("tools", "Let the agents use tools in their folder, as the setting serve.tools does"),
  approve: Input.choice(
    "approve",
    ApprovalMode.literals,
    "Tool calls to allow: none (no changes), edits, or all; deny the others"
  ),
  gateway: Input.choice(
    "gateway",
    ServedGateway.literals,
    "Serve the gateway under /gateway: for this server's tokens, or also for clients with their own keys"
  ),
  newToken: Input.text(
    "new-token",
    "tenant",
    "Print a new API token for this tenant, with its hash for the settings, and exit"
  ),
  logFormat: Input.withDefault(
    Flag.Literals("log-format", logFormats),
    "text",
    "Write the log as text (default), or as JSON with one line a request"
  ),
  json: Input.json
}
type Flags = Command.Command.Config.Infer<typeof flags>

/** Returns the options of the server, and the token that was made for this run. */
const optionsOf = Effect.fnUntraced(function* (flags: Flags, hasSqlite: Effect.Effect<boolean>) {
  const { approve, host, logFormat, model, port, runner, tools } = flags
  yield* ListenAddress.checkPort(port)
  const reached = model === undefined ? undefined : reachOf(model, yield* configuredProviders)
  if (reached?._tag === "NoModel") return yield* badInput(reached.text)
  const user = yield* userSettings
  const own = user.serve
  const configured = own.tokens ?? []
  const store = yield* storeOf(flags.store, hasSqlite, flags)
  if (configured.length === 0 && !ListenAddress.isLoopback(host)) {
    return yield* badInput(
      `--host ${host}: other machines may reach this address, and the settings have no tokens; make one with "palimpsest serve --new-token ${localTenant}"`
    )
  }
  const { made, tokens } = yield* ListenAddress.serverTokens(configured)
  const served = runner ? undefined : (flags.gateway ?? own.gateway)
  const options: ServeOptions = {
    host,
    port,
    model,
    settings: { ...own, ...(tools ? { tools } : {}), ...(approve === undefined ? {} : { approve }) },
    store,
    gateway:
      served === undefined
        ? undefined
        : { ...gatewaySetup(user), ownKeys: served === "keys", providerKeys: yield* providerKeys },
    tokens: runner ? Effect.succeed([]) : tokens,
    version,
    logRequests: logFormat === "json",
    page: yield* ServePage.render,
    reference: ReferencePage.render
  }
  return { made, options }
})

/** Says where the server listens, and what whoever started it has to know. */
const announce = Effect.fnUntraced(function* (
  { json, runner }: Flags,
  { gateway, host, logRequests, port, settings }: ServeOptions,
  made: string | null,
  notify: (message: string) => Effect.Effect<void, never, Stdio.Stdio>
) {
  const { address } = yield* HttpServer.HttpServer
  const url = ListenAddress.urlOf(host, "port" in address ? address.port : port)
  if (json) yield* Output.json(ListenAddress.Started, { url, token: made })
  yield* notify(
    // The log is no place for a token.
    made === null || runner || logRequests
      ? `listening on ${url}`
      : `listening; open ${url}/#token=${made} in a browser (Ctrl+C stops)`
  )
  if (runner) yield* notify("this process runs sessions; it answers /health and /ready only")
  if (gateway !== undefined) {
    yield* notify(
      `the gateway is at ${url}/gateway; "palimpsest gateway --print claude" prints how to point a client at it`
    )
  }
  if (settings.tools === true && settings.approve === "all") {
    yield* notify("every tenant's agents run any command as this user, without asking")
  }
})

/**
 * The command `palimpsest serve`. `start` makes the server; it is a parameter so that this file does not import the server's
 * layers. `hasSqlite`: whether this Node has the database that sessions are in by default.
 */
export const serve = <E extends { readonly message: string }, R>(
  start: (options: ServeOptions) => Layer.Layer<HttpServer.HttpServer, E, R>,
  hasSqlite: Effect.Effect<boolean>
) =>
  Command.make(
    "serve",
    flags,
    Effect.fn("cli.serve")(function* (flags) {
      if (flags.newToken !== undefined) return yield* printToken(flags.newToken, flags.json)
      const { made, options } = yield* optionsOf(flags, hasSqlite)
      const notify = options.logRequests ? Effect.logInfo : Output.notice
      return yield* announce(flags, options, made, notify).pipe(
        Effect.andThen(ListenAddress.untilStopped(drainSecondsOf(options.settings), notify)),
        Effect.provide(start(options)),
        Effect.catchIf(isListenError, (error) => ListenAddress.listenFailure(error)),
        options.logRequests ? Effect.provide(layer) : identity
      )
    })
  ).pipe(
    Input.withExamples({
      "palimpsest serve": "Serve this machine, with a token made at the start",
      "palimpsest serve --new-token acme": "Make a token for a tenant",
      "palimpsest serve --host 0.0.0.0 --port 8080": "Serve other machines; tokens are in the settings"
    })
  )
