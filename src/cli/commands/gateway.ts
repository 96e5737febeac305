/** The `gateway` command: reads its options, starts the gateway, and says where it listens. */

import { Effect, type Layer } from "effect"
import { Command, Flag } from "effect/cli"
import { clients, clientSetup } from "../../domain/gateway/ClientSetup.ts"
import { defaultThreshold } from "../../domain/gateway/GatewayLimits.ts"
import { type Provider, providers } from "../../domain/gateway/Route.ts"
import { GatewayServer } from "../../services/gateway/GatewayServer.ts"
import { isListenError } from "../../services/platform/ListenError.ts"
import { type GatewaySetup, gatewaySetup } from "../flags/GatewaySetup.ts"
import * as ListenAddress from "../flags/ListenAddress.ts"
import * as Input from "../flags/SharedFlags.ts"
import { userSettings } from "../flags/UserSettings.ts"
import { badInput } from "../output/ExitError.ts"
import * as Output from "../output/Output.ts"
import type { ServedPage } from "../page/Document.ts"
import * as GatewayPage from "../page/GatewayPage.ts"

/** Options of the gateway that the command starts. */
export interface GatewayCommandOptions extends GatewaySetup {
  readonly host: string
  readonly port: number
  readonly drainSeconds: number
  readonly page: ServedPage
  readonly metricsTokens: ListenAddress.ServerTokens["tokens"]
}

const defaultPort = 4141
const defaultDrainSeconds = 120

const isProvider = (name: string): name is Provider => providers.some((provider) => provider === name)

/** Reads `anthropic=http://…`. */
const upstreamOf = Effect.fnUntraced(function* (upstream: string) {
  const [, name = "", address = ""] = /^(\w+)=(https?:\/\/\S+)$/.exec(upstream) ?? []
  if (isProvider(name) && URL.canParse(address)) return [name, address]
  return yield* badInput(
    `--upstream ${upstream}: expected ${providers.join("=…, ")}=… with an address that begins with http`
  )
})

const flags = {
  host: ListenAddress.host(),
  port: ListenAddress.port(defaultPort),
  upstream: Flag.String("upstream").pipe(
    Flag.withMetavar("name=url"),
    Flag.withDescription("Send the requests of a provider to this address: anthropic, gemini or openai; repeatable"),
    Flag.between(0, 3)
  ),
  window: Input.size("window", "Context window of every model (default: each model's own)"),
  threshold: Input.share("threshold", `Compress when this part of the window is used (default ${defaultThreshold})`),
  snapshots: Input.choice(
    "snapshots",
    ["code", "model"],
    "Write snapshots without a model (code, the default), or with the client's model and key, in the background (model)"
  ),
  noRecall: Input.flag("no-recall", "Do not declare the tool with which models recall what left the window"),
  showRecalls: Input.flag("show-recalls", "Show the model's recalls in its answers"),
  print: Input.choice("print", clients, "Print how to point a client at the gateway, and exit"),
  json: Input.json
}
type Flags = Command.Command.Config.Infer<typeof flags>

/** Rejects limits that no gateway can keep. */
const checked = Effect.fnUntraced(function* ({ port, threshold, window }: Flags) {
  yield* ListenAddress.checkPort(port)
  if (window !== undefined && window < 4_096) {
    return yield* badInput(`--window ${window}: expected at least 4096 tokens`)
  }
  if (threshold !== undefined && !(threshold >= 0.1 && threshold <= 1)) {
    return yield* badInput(`--threshold ${threshold}: expected 0.1 to 1`)
  }
})

/** Reads the options from the flags and the settings. `made` is the token that was made for this start; null with tokens of the settings. */
const readOptions = Effect.fnUntraced(function* (input: Flags) {
  const { host, port, threshold, window } = input
  const settings = yield* userSettings
  const upstreams = Object.fromEntries(yield* Effect.forEach(input.upstream, upstreamOf))
  const setup = gatewaySetup(settings)
  const { made, tokens } = yield* ListenAddress.serverTokens(settings.serve.tokens)
  const options: GatewayCommandOptions = {
    ...setup,
    ...(window === undefined ? {} : { window }),
    ...(threshold === undefined ? {} : { threshold }),
    ...(input.snapshots === undefined ? {} : { snapshots: input.snapshots }),
    ...(input.noRecall ? { recall: false } : {}),
    ...(input.showRecalls ? { showRecalls: true } : {}),
    host,
    port,
    upstreams: { ...setup.upstreams, ...upstreams },
    drainSeconds: settings.gateway.drainSeconds ?? defaultDrainSeconds,
    page: yield* GatewayPage.render,
    metricsTokens: tokens
  }
  return { options, made }
})

/** Says where the gateway listens. */
const tellStarted = Effect.fnUntraced(function* ({ host, json }: Flags, port: number, made: string | null) {
  const url = ListenAddress.urlOf(host, port)
  if (json) yield* Output.json(ListenAddress.Started, { url, token: made })
  yield* Output.notice(
    `listening on ${url}; "palimpsest gateway${port === defaultPort ? "" : ` --port ${port}`} --print claude" prints how to point a client at it (Ctrl+C stops)`
  )
  if (made !== null) yield* Output.notice(`open ${url}/#token=${made} in a browser to see what it does`)
  if (!ListenAddress.isLoopback(host))
    yield* Output.notice("other machines can reach this address; each client needs its own key")
})

/** The command `palimpsest gateway`. `start` makes the gateway; it is a parameter so that this file does not import its layers. */
export const gateway = <E extends { readonly message: string }, R>(
  start: (options: GatewayCommandOptions) => Layer.Layer<GatewayServer, E, R>
) =>
  Command.make(
    "gateway",
    flags,
    Effect.fn("cli.gateway")(function* (input) {
      const { host, port, print } = input
      if (print !== undefined) {
        yield* ListenAddress.checkPort(port)
        return yield* Output.unwrapped(clientSetup(print, ListenAddress.urlOf(host, port)))
      }
      yield* checked(input)
      const { made, options } = yield* readOptions(input)
      return yield* Effect.gen(function* () {
        const server = yield* GatewayServer
        yield* tellStarted(input, server.port, made)
        return yield* ListenAddress.untilStopped(options.drainSeconds)
      }).pipe(
        Effect.provide(start(options)),
        Effect.catchIf(isListenError, (error) => ListenAddress.listenFailure(error))
      )
    })
  ).pipe(
    Input.withExamples({
      "palimpsest gateway": "Listen on this machine, in front of the real providers",
      "palimpsest gateway --print claude": "Print how to point Claude Code at it",
      "palimpsest gateway --window 100000 --upstream openai=http://127.0.0.1:8000":
        "Keep requests below 100,000 tokens, and send those for OpenAI to another server"
    })
  )
