/** The address at which a command's server listens, and the tokens that it accepts. */

import { Effect, Redacted, Schema, type Stdio } from "effect"
import { Flag } from "effect/cli"
import { localTenant, type TokenSetting } from "../../domain/serve/ServeSettings.ts"
import type { ListenError } from "../../services/platform/ListenError.ts"
import { shutdown } from "../../services/platform/Shutdown.ts"
import { hashOf, newToken } from "../../services/serve/ApiTokens.ts"
import { Settings } from "../../services/settings/Settings.ts"
import { badInput, type ExitError, failed } from "../output/ExitError.ts"
import * as Output from "../output/Output.ts"
import * as Input from "./SharedFlags.ts"
import { userSettings } from "./UserSettings.ts"

/** The flag `--port`. */
export const port = (standard: number): Flag.Flag<number> =>
  Input.withDefault(Flag.Int("port"), standard, `Port to listen on (default ${standard}); 0: any free port`)

/** The flag `--host`. `more` names a condition for addresses other than loopback. */
export const host = (more = ""): Flag.Flag<string> =>
  Input.withDefault(
    Flag.String("host").pipe(Flag.withMetavar("host")),
    "127.0.0.1",
    `Address to listen on (default 127.0.0.1)${more}`
  )

/** Fails for a number that is not a port. */
export const checkPort = (port: number): Effect.Effect<void, ExitError> =>
  port < 0 || port > 65_535 ? badInput(`--port ${port}: expected 0 to 65535`) : Effect.void

/** Says why a server cannot listen, and which flag helps. */
export const listenFailure = ({ code, message }: ListenError, portFlag = "--port"): ExitError => {
  switch (code) {
    case "EADDRINUSE":
      return failed(`${message}; choose another with ${portFlag}`)
    case "EACCES":
      return failed(`${message}; choose one above 1023 with ${portFlag}`)
    default:
      return failed(`${message}; choose another with --host`)
  }
}

/** Whether only programs of this machine reach a host. */
export const isLoopback = (host: string): boolean =>
  host === "localhost" || host === "::1" || /^127(?:\.\d{1,3}){3}$/.test(host)

/** The address of a server as clients write it. */
export const urlOf = (host: string, port: number): string => `http://${host.includes(":") ? `[${host}]` : host}:${port}`

/**
 * Waits until the user stops a server, and says what happens then: running requests get `drainSeconds` to end. A server goes on when its
 * terminal is closed.
 */
export const untilStopped = (
  drainSeconds: number,
  notify: (message: string) => Effect.Effect<void, never, Stdio.Stdio> = Output.notice
) =>
  Effect.suspend(() => {
    shutdown.graceMillis = drainSeconds * 1_000
    shutdown.ignoresHangup = true
    const message = `stopping; running requests get ${drainSeconds} s to end (a second Ctrl+C ends them now)`
    return Effect.onInterrupt(Effect.never, () => notify(message))
  })

/** The output of `--json`, once a server takes requests. */
export const Started = Schema.Struct({
  url: Schema.String,
  /** The token that was made for this run; null when the settings have tokens. */
  token: Schema.NullOr(Schema.String)
})

/** The tokens that a server accepts. */
export interface ServerTokens {
  /** Reads them: those of the settings at this moment, and the one that was made. */
  readonly tokens: Effect.Effect<ReadonlyArray<TokenSetting>, { readonly message: string }>
  /** The token that was made for this run; null when the settings had tokens at the start. */
  readonly made: string | null
}

/** Returns the tokens of the settings. Where they have none, makes one of the local tenant for this run. */
export const serverTokens = Effect.fnUntraced(function* (configured: ReadonlyArray<TokenSetting> = []) {
  const settings = yield* Settings
  const read = userSettings.pipe(
    Effect.map(({ serve }) => serve.tokens ?? []),
    Effect.provideService(Settings, settings)
  )
  if (configured.length > 0) return { tokens: read, made: null }
  const token = yield* newToken
  const own = { tenant: localTenant, hash: hashOf(token) }
  return { tokens: Effect.map(read, (tokens) => [...tokens, own]), made: Redacted.value(token) }
})
