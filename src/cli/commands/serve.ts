import { Effect, type Layer, Redacted, Schema } from "effect"
import { Command, Flag } from "effect/cli"
import * as HttpServer from "effect/http/HttpServer"
import { isTenantName, localTenant, type ServeSettings, type TokenSetting } from "../../domain/serve/ServeSettings.ts"
import { withDefaults } from "../../domain/settings/Settings.ts"
import { ApprovalMode } from "../../domain/tools/Approval.ts"
import { shutdown } from "../../services/platform/Shutdown.ts"
import { hashOf, newToken } from "../../services/serve/ApiTokens.ts"
import { Settings } from "../../services/settings/Settings.ts"
import * as Input from "../input/Input.ts"
import { badInput, failed } from "../output/ExitError.ts"
import * as Output from "../output/Output.ts"
import { version } from "../output/Version.ts"
import * as ServePage from "../page/ServePage.ts"

/** What the command gives to the server that it starts. */
export interface ServeOptions {
  readonly host: string
  readonly port: number
  readonly settings: ServeSettings
  readonly tokens: ReadonlyArray<TokenSetting>
  readonly version: string
  readonly page: { readonly html: string; readonly policy: string }
  readonly model?: string | undefined
}

/** The output of `--json`, once the server takes requests. */
const Started = Schema.Struct({
  url: Schema.String,
  /** The token that was made for this run; null when the settings have tokens. */
  token: Schema.NullOr(Schema.String)
})

const isLoopback = (host: string): boolean =>
  host === "localhost" || host === "::1" || /^127(?:\.\d{1,3}){3}$/.test(host)

const defaultDrainSeconds = 20

const effective = Settings.use(({ read }) => read).pipe(
  Effect.map(({ settings }) => withDefaults(settings).serve),
  Effect.mapError((error) => badInput(error.message))
)

/** Prints a new token, and what the settings keep of it. */
const printToken = Effect.fnUntraced(function* (tenant: string) {
  if (!isTenantName(tenant)) {
    return yield* badInput(`--new-token ${tenant}: a tenant's name has 1 to 32 small letters, digits and hyphens`)
  }
  const token = yield* newToken
  const line = JSON.stringify({ tenant, hash: yield* hashOf(token) })
  yield* Output.text(Redacted.value(token))
  yield* Output.notice(`this token is shown only now; add its hash to "serve": {"tokens": [${line}]} in settings.json`)
})

/**
 * The command `palimpsest serve`. `start` makes the server; it is a parameter so that this file does not import the server's
 * layers.
 */
export const serve = <E extends { readonly message: string }, R>(
  start: (options: ServeOptions) => Layer.Layer<HttpServer.HttpServer, E, R>
) =>
  Command.make(
    "serve",
    {
      host: Flag.String("host").pipe(
        Flag.withDescription(
          "Address to listen at (default 127.0.0.1); others than loopback need tokens in the settings"
        ),
        Flag.withDefault("127.0.0.1")
      ),
      port: Flag.Int("port").pipe(
        Flag.withDescription("Port to listen at (default 4400); 0: a free one"),
        Flag.withDefault(4400)
      ),
      model: Input.optional(Flag.String("model"), "Model of new sessions"),
      tools: Flag.Boolean("tools").pipe(
        Flag.withDescription("Let the agents use tools in their folder, as the setting serve.tools does"),
        Flag.withDefault(false)
      ),
      approve: Input.optional(
        Flag.Literals("approve", ApprovalMode.literals),
        "Calls that run: none (no changes), edits, or all; the others are denied"
      ),
      newToken: Input.optional(
        Flag.String("new-token").pipe(Flag.withMetavar("tenant")),
        "Print a new API token for this tenant, with its hash for the settings, and end"
      ),
      json: Input.json
    },
    Effect.fn("cli.serve")(function* (input) {
      if (input.newToken !== undefined) return yield* printToken(input.newToken)
      if (input.port < 0 || input.port > 65_535) return yield* badInput(`--port ${input.port}: expected 0 to 65535`)
      const own = yield* effective
      const configured = own.tokens ?? []
      if (configured.length === 0 && !isLoopback(input.host)) {
        return yield* badInput(
          `--host ${input.host}: other machines may reach this address, and the settings have no tokens; make one with "palimpsest serve --new-token ${localTenant}"`
        )
      }
      const made = configured.length === 0 ? yield* newToken : undefined
      const tokens =
        made === undefined ? configured : [{ tenant: localTenant, hash: yield* hashOf(made) } satisfies TokenSetting]
      const settings: ServeSettings = {
        ...own,
        ...(input.tools ? { tools: true } : {}),
        ...(input.approve === undefined ? {} : { approve: input.approve })
      }
      shutdown.graceMillis = (settings.drainSeconds ?? defaultDrainSeconds) * 1_000
      const { host, model, port } = input
      const options = { host, port, model, settings, tokens, version, page: yield* ServePage.render }
      yield* Effect.gen(function* () {
        const { address } = yield* HttpServer.HttpServer
        const listening = "port" in address ? address.port : port
        const url = `http://${host.includes(":") ? `[${host}]` : host}:${listening}`
        const token = made === undefined ? null : Redacted.value(made)
        if (input.json) yield* Output.json(Started, { url, token })
        yield* Output.notice(
          token === null ? `listening at ${url}` : `listening; open ${url}/#token=${token} in a browser (Ctrl+C stops)`
        )
        if (settings.tools === true && settings.approve === "all") {
          yield* Output.notice("every tenant's agents run any command as this user, without asking")
        }
        return yield* Effect.never
      }).pipe(
        Effect.provide(start(options)),
        Effect.catchIf(isListenError, (error) => failed(error.message))
      )
    })
  ).pipe(
    Command.withExamples([
      { command: "palimpsest serve", description: "Serve this machine, with a token made at the start" },
      { command: "palimpsest serve --new-token acme", description: "Make a token for a tenant" },
      {
        command: "palimpsest serve --host 0.0.0.0 --port 8080",
        description: "Serve other machines; tokens are in the settings"
      }
    ])
  )

const isListenError = (error: unknown): error is { readonly message: string } =>
  typeof error === "object" && error !== null && "_tag" in error && error._tag === "ListenError"
