import { Effect, type Layer, Schema } from "effect"
import { Command, Flag } from "effect/cli"
import { clients, clientSetup } from "../../domain/gateway/ClientSetup.ts"
import { type Provider, providers } from "../../domain/gateway/Dialect.ts"
import { defaultThreshold } from "../../domain/gateway/GatewayLimits.ts"
import { GatewayServer } from "../../services/gateway/GatewayServer.ts"
import { GatewayStoreError } from "../../services/gateway/GatewayStore.ts"
import { isListenError } from "../../services/platform/ListenError.ts"
import { shutdown } from "../../services/platform/Shutdown.ts"
import { type GatewaySetup, gatewaySetup } from "../input/GatewaySetup.ts"
import * as Input from "../input/Input.ts"
import * as ListenAddress from "../input/ListenAddress.ts"
import { userSettings } from "../input/UserSettings.ts"
import { badInput, type ExitError, failed } from "../output/ExitError.ts"
import * as Output from "../output/Output.ts"
import * as GatewayPage from "../page/GatewayPage.ts"
import type { ServedPage } from "../page/ServedPage.ts"

/** What the command gives to the gateway that it starts. */
export interface GatewayCommandOptions extends GatewaySetup {
  readonly host: string
  readonly port: number
  readonly drainSeconds: number
  readonly page: ServedPage
}

/** The output of `--json`, once the gateway takes requests. */
const Started = Schema.Struct({ url: Schema.String })

const defaultPort = 4141
const defaultDrainSeconds = 120

const isStoreError = Schema.is(GatewayStoreError)

const isProvider = (name: string): name is Provider => providers.some((provider) => provider === name)

/** Reads `anthropic=http://…`. */
const upstreamOf = Effect.fnUntraced(function* (
  given: string
): Effect.fn.Return<readonly [Provider, string], ExitError> {
  const [, name = "", address = ""] = /^(\w+)=(https?:\/\/\S+)$/.exec(given) ?? []
  if (isProvider(name) && URL.canParse(address)) return [name, address]
  return yield* badInput(
    `--upstream ${given}: expected ${providers.join("=…, ")}=… with an address that begins with http`
  )
})

/** The command `palimpsest gateway`. `start` makes the gateway; it is a parameter so that this file does not import its layers. */
export const gateway = <E extends { readonly message: string }, R>(
  start: (options: GatewayCommandOptions) => Layer.Layer<GatewayServer, E, R>
) =>
  Command.make(
    "gateway",
    {
      host: ListenAddress.host(),
      port: ListenAddress.port(defaultPort),
      upstream: Flag.String("upstream").pipe(
        Flag.withMetavar("name=url"),
        Flag.withDescription(
          "Where requests of a provider go: anthropic, gemini or openai; may be given several times"
        ),
        Flag.between(0, 3)
      ),
      window: Input.optional(Input.size("window"), "The window of every model (default: that of each model)"),
      threshold: Input.optional(
        Input.share("threshold"),
        `Share of the window from which conversations are compressed (default ${defaultThreshold})`
      ),
      snapshots: Input.optional(
        Flag.Literals("snapshots", ["code", "model"]),
        "Who writes snapshots: code (default), or the client's model in the background, with the client's key"
      ),
      noRecall: Input.flag("no-recall", "Do not declare the tool by which models read back what left"),
      showRecalls: Input.flag("show-recalls", "Show in answers that the model read something back"),
      print: Input.optional(Flag.Literals("print", clients), "Print how a client is pointed at the gateway, and end"),
      json: Input.json
    },
    Effect.fn("cli.gateway")(function* (input) {
      const { host, port, print, threshold, window } = input
      yield* ListenAddress.checkPort(port)
      if (print !== undefined) return yield* Output.text(clientSetup(print, ListenAddress.urlOf(host, port)))
      if (window !== undefined && window < 4_096) {
        return yield* badInput(`--window ${window}: expected at least 4096 tokens`)
      }
      if (threshold !== undefined && !(threshold >= 0.1 && threshold <= 1)) {
        return yield* badInput(`--threshold ${threshold}: expected 0.1 to 1`)
      }
      const { gateway: settings } = yield* userSettings
      const given = Object.fromEntries(yield* Effect.forEach(input.upstream, upstreamOf))
      const drainSeconds = settings.drainSeconds ?? defaultDrainSeconds
      shutdown.graceMillis = drainSeconds * 1_000
      const setup = gatewaySetup(settings)
      const options: GatewayCommandOptions = {
        ...setup,
        ...(window === undefined ? {} : { window }),
        ...(threshold === undefined ? {} : { threshold }),
        ...(input.snapshots === undefined ? {} : { snapshots: input.snapshots }),
        ...(input.noRecall ? { recall: false } : {}),
        ...(input.showRecalls ? { showRecalls: true } : {}),
        host,
        port,
        upstreams: { ...setup.upstreams, ...given },
        drainSeconds,
        page: yield* GatewayPage.render
      }
      return yield* Effect.gen(function* () {
        const server = yield* GatewayServer
        const url = ListenAddress.urlOf(host, server.port)
        if (input.json) yield* Output.json(Started, { url })
        yield* Output.notice(
          `listening at ${url}; "palimpsest gateway --print claude" says how clients use it (Ctrl+C stops)`
        )
        if (!ListenAddress.isLoopback(host))
          yield* Output.notice("other machines may reach this address; they need keys of their own")
        return yield* Effect.never
      }).pipe(
        Effect.provide(start(options)),
        Effect.catchIf(isListenError, (error) => ListenAddress.listenFailure(error)),
        Effect.catchIf(isStoreError, (error) => failed(error.message))
      )
    })
  ).pipe(
    Command.withExamples([
      { command: "palimpsest gateway", description: "Listen on this machine, in front of the real providers" },
      { command: "palimpsest gateway --print claude", description: "Say how Claude Code uses it" },
      {
        command: "palimpsest gateway --window 100000 --upstream openai=http://127.0.0.1:8000",
        description: "Keep requests below 100,000 tokens, and send those for OpenAI to another server"
      }
    ])
  )
