/** The connection to one MCP server, from its start to the reason for its end. */

import {
  Clock,
  Deferred,
  Duration,
  Effect,
  Exit,
  FileSystem,
  type Path,
  Predicate,
  Redacted,
  Scope,
  Stream
} from "effect"
import * as McpClient from "effect/ai/McpClient"
import type { McpClientError } from "effect/ai/McpClientError"
import * as McpProtocol from "effect/ai/McpProtocol"
import type * as McpSchema from "effect/ai/McpSchema"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as ChildProcess from "effect/process/ChildProcess"
import * as ChildProcessSpawner from "effect/process/ChildProcessSpawner"
import { withAbsolutePath } from "../../domain/platform/SearchPath.ts"
import { childEnvironment } from "../../domain/text/ChildEnvironment.ts"
import { isTooDeep, maxDepth } from "../../domain/text/JsonText.ts"
import { usableBlocks, usableTools } from "../../domain/tools/McpEntries.ts"
import { mayBeNewer, mcpErrorText } from "../../domain/tools/McpError.ts"
import { MessageLines, ServerWords } from "../../domain/tools/McpOutput.ts"
import { filledIn, type McpAddress, type McpProgram, type McpServerSettings } from "../../domain/tools/McpServer.ts"
import { Environment } from "../platform/Environment.ts"
import { makeProgramFinder } from "../platform/ProgramLookup.ts"

/** The services that starting and reaching servers needs. */
export type Needs =
  | ChildProcessSpawner.ChildProcessSpawner
  | Environment
  | FileSystem.FileSystem
  | HttpClient.HttpClient
  | Path.Path

/** Options for starting servers. A server receives no key from the environment except those that its settings name. */
export interface McpOptions {
  /** The version that servers are given for this client. */
  readonly version: string
  /** Time limit until a server has listed its tools. Absent: 10 seconds. */
  readonly startTimeout?: Duration.Input | undefined
}

const defaultStartTimeout = Duration.seconds(10)
/** Time between asking a server to end and killing it. */
const killAfter = Duration.seconds(2)
/** Time to wait for the last output of a server that ended. */
const outputWait = Duration.seconds(1)

/** Older protocol versions with the same handshake, lists and calls. */
const olderProtocols: ReadonlySet<unknown> = new Set(["2024-11-05", "2025-03-26", "2025-06-18"])

/** A server with an established connection. */
export interface Connected {
  readonly client: McpClient.McpClient
  /** Says why a call failed, for example because the server can no longer be reached, with its last words. */
  readonly why: (error: McpClientError) => Effect.Effect<string>
  /** The names of the tools that it lists in a form that cannot be read. */
  readonly unreadable: ReadonlySet<string>
}

/** A server that answered, with its list of tools. */
export interface StartedServer {
  readonly connected: Connected
  readonly tools: ReadonlyArray<McpSchema.Tool>
}

/** Starts or reaches one server and lists its tools. Fails with the reason in one line, and releases its resources then. */
export const startServer = Effect.fnUntraced(function* (
  parent: Scope.Scope,
  settings: McpServerSettings,
  options: McpOptions
) {
  const scope = yield* Scope.fork(parent)
  const words = new ServerWords()
  const patience = Duration.fromInputUnsafe(options.startTimeout ?? defaultStartTimeout)
  return yield* Effect.gen(function* () {
    const connected = yield* "command" in settings
      ? startProgram(settings, options, words)
      : reachAddress(settings, options)
    const tools = yield* connected.client.listTools().pipe(explained(connected.why))
    return { connected, tools }
  }).pipe(
    Scope.provide(scope),
    Effect.timeoutOrElse({
      duration: patience,
      orElse: () => Effect.fail(`it did not answer within ${Duration.format(patience)}${words.lastWords}`)
    }),
    Effect.onError((cause) => Scope.close(scope, Exit.failCause(cause)))
  )
})

/** Fails with the reason for an error. */
const explained =
  (why: Connected["why"]) =>
  <A, R>(work: Effect.Effect<A, McpClientError, R>): Effect.Effect<A, string, R> =>
    Effect.catch(work, (error) => Effect.flatMap(why(error), Effect.fail))

type Message = Parameters<McpClient.Transport["request"]>[0]
type Response = Effect.Success<ReturnType<McpClient.Transport["request"]>>

/** Makes a connection whose answers are read in another way. */
const reading = (
  transport: McpClient.Transport,
  read: (message: Message, response: Response) => Response
): McpClient.Transport => ({
  ...transport,
  request: (message, tool) => Effect.map(transport.request(message, tool), (response) => read(message, response))
})

/** Makes a connection with the default protocol to a server that may answer with an older one. */
const acceptingOlderProtocols = (transport: McpClient.Transport, negotiated: (version: string) => void) =>
  reading(transport, ({ method }, response) => {
    if (method !== "initialize" || "error" in response || !Predicate.isObject(response.result)) return response
    const version = response.result["protocolVersion"]
    if (typeof version !== "string" || !olderProtocols.has(version)) return response
    negotiated(version)
    return { ...response, result: { ...response.result, protocolVersion: transport.protocol.protocolVersion } }
  })

/** The JSON-RPC code for an error that the caller did not cause. */
const internalError = -32_603

/**
 * Performs the handshake over a connection. Rejects answers nested deeper than later code can handle; one entry that cannot be read costs no
 * other. The caller limits the time.
 */
const client = ({ version }: McpOptions, transport: McpClient.Transport, unreadable: Set<string>) =>
  Effect.provideService(
    McpClient.make({ name: "palimpsest", version }),
    McpClient.Transport,
    reading(transport, ({ id, method }, response) => {
      if (isTooDeep(response)) {
        const message = `the answer is nested deeper than ${maxDepth} levels`
        return { jsonrpc: "2.0", id, error: { code: internalError, message } }
      }
      if ("error" in response) return response
      if (method === "tools/call") return { ...response, result: usableBlocks(response.result) }
      if (method !== "tools/list") return response
      const list = usableTools(response.result)
      for (const name of list.unreadable) unreadable.add(name)
      return { ...response, result: list.result }
    })
  )

/** Replaces the variables in values. Fails when one is not set. */
const filled = Effect.fnUntraced(function* (
  values: Readonly<Record<string, string>>,
  variables: Readonly<Record<string, string | undefined>>
) {
  const { missing, values: all } = filledIn(values, variables)
  if (missing.length === 0) return all
  const names = missing.map((name) => `$${name}`).join(", ")
  return yield* Effect.fail(`its settings name ${names}, not set in the environment`)
})

/** A server's process. Mutable. */
interface ServerProcess {
  readonly command: string
  readonly words: ServerWords
  /** Completes when it has printed its last words. */
  readonly silent: Deferred.Deferred<void>
  /** Undefined: it was not started. */
  handle: ChildProcessSpawner.ChildProcessHandle | undefined
}

/** The reason for an error of a server's process, with its last words if it ended. */
const whyProcess = Effect.fnUntraced(function* (
  { command, handle, silent, words }: ServerProcess,
  error: McpClientError
) {
  const hasEnded = error.reason._tag === "TransportError" && handle !== undefined
  if (hasEnded) yield* Deferred.await(silent).pipe(Effect.timeoutOption(outputWait))
  return `${mcpErrorText(error, command)}${hasEnded ? words.lastWords : ""}`
})

/** A spawner that keeps what it starts as this process, and passes only messages on. */
const watched = (
  spawner: ChildProcessSpawner.ChildProcessSpawner["Service"],
  process: ServerProcess
): ChildProcessSpawner.ChildProcessSpawner["Service"] =>
  ChildProcessSpawner.make((command) =>
    Effect.map(spawner.spawn(command), (handle) => {
      const { silent, words } = process
      process.handle = handle
      return ChildProcessSpawner.makeHandle({
        ...handle,
        stdout: messagesOnly(handle.stdout, words),
        stderr: handle.stderr.pipe(
          Stream.tap((chunk) => Effect.sync(() => words.add(chunk))),
          Stream.ensuring(Deferred.succeed(silent, undefined))
        )
      })
    })
  )

const messagesOnly = <E>(stdout: Stream.Stream<Uint8Array, E>, words: ServerWords): Stream.Stream<Uint8Array, E> =>
  Stream.suspend(() => {
    const lines = new MessageLines(words)
    return stdout.pipe(
      Stream.mapEffect((chunk) => Effect.map(Clock.currentTimeMillis, (now) => lines.add(chunk, now))),
      Stream.flatMap((messages) => Stream.fromIterable(messages))
    )
  })

const startProgram = Effect.fnUntraced(function* (
  { args = [], command, cwd, env = {} }: McpProgram,
  options: McpOptions,
  words: ServerWords
) {
  const variables = yield* (yield* Environment).variables
  const own = yield* filled(env, variables)
  const fs = yield* FileSystem.FileSystem
  const workspace = yield* Effect.orElseSucceed(fs.realPath("."), () => ".")
  const program = yield* (yield* makeProgramFinder([workspace]))(command)
  if (program === undefined) {
    return yield* Effect.fail(
      `${command} cannot be started, there is no such program in an absolute part of PATH outside this folder; give its whole path`
    )
  }
  const process: ServerProcess = { command, words, silent: yield* Deferred.make<void>(), handle: undefined }
  const why = (error: McpClientError) => whyProcess(process, error)
  const serverVariables = Object.fromEntries(Object.entries(own).map(([name, value]) => [name, Redacted.make(value)]))
  const transport = yield* McpClient.stdio({
    command: ChildProcess.make(program, args, {
      // Programs that the server starts by name must not come from the folder in which it runs.
      env: { ...withAbsolutePath(childEnvironment(variables)), ...serverVariables },
      cwd
    }),
    protocol: McpProtocol.v2025_11_25
  }).pipe(
    Effect.updateService(ChildProcessSpawner.ChildProcessSpawner, (spawner) => watched(spawner, process)),
    explained(why)
  )
  // Runs before the connection's own finalizer, which would wait for seconds. The whole group is asked to end, then killed.
  yield* Effect.addFinalizer(() =>
    process.handle === undefined ? Effect.void : Effect.ignore(process.handle.kill({ forceKillAfter: killAfter }))
  )
  const unreadable = new Set<string>()
  const connected = yield* client(
    options,
    acceptingOlderProtocols(transport, () => {}),
    unreadable
  ).pipe(
    Effect.catchIf(mayBeNewer, () => client(options, { ...transport, protocol: McpProtocol.v2026_07_28 }, unreadable)),
    explained(why)
  )
  return { client: connected, why, unreadable }
})

const reachAddress = Effect.fnUntraced(function* ({ headers = {}, url }: McpAddress, options: McpOptions) {
  const own = yield* filled(headers, yield* (yield* Environment).variables)
  // The parts before the host and after the path may contain a key.
  const place = url.replace(/[?#].*$/s, "").replace(/\/\/[^/]*@/, "//")
  const why = (error: McpClientError) => Effect.succeed(mcpErrorText(error, place))
  const unreadable = new Set<string>()
  const negotiated: { version: string | undefined } = { version: undefined }
  const over = (protocol: McpProtocol.ProtocolAdapter<McpClient.ProtocolVersion>) =>
    McpClient.http({ url, headers: own, protocol }).pipe(
      Effect.updateService(HttpClient.HttpClient, (http) => withVersion(http, negotiated)),
      Effect.flatMap((transport) =>
        client(
          options,
          acceptingOlderProtocols(transport, (older) => (negotiated.version = older)),
          unreadable
        )
      )
    )
  const connected = yield* over(McpProtocol.v2025_11_25).pipe(
    Effect.catchIf(mayBeNewer, () => over(McpProtocol.v2026_07_28)),
    explained(why)
  )
  return { client: connected, why, unreadable }
})

/** Names the negotiated version in each request. */
const withVersion = (http: HttpClient.HttpClient, negotiated: { readonly version: string | undefined }) =>
  HttpClient.mapRequest(
    http,
    (request) =>
      negotiated.version === undefined
        ? request
        : HttpClientRequest.setHeader(request, "mcp-protocol-version", negotiated.version)
    // Other services do not receive our trace headers.
  ).pipe(HttpClient.transform(Effect.provideService(HttpClient.TracerPropagationEnabled, false)))
