import {
  Clock,
  Context,
  Deferred,
  Duration,
  Effect,
  Exit,
  FileSystem,
  Layer,
  Option,
  type Path,
  Predicate,
  Redacted,
  Schema,
  Scope,
  Stream
} from "effect"
import * as McpClient from "effect/ai/McpClient"
import type { McpClientError, TransportError } from "effect/ai/McpClientError"
import * as McpProtocol from "effect/ai/McpProtocol"
import type * as McpSchema from "effect/ai/McpSchema"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as ChildProcess from "effect/process/ChildProcess"
import * as ChildProcessSpawner from "effect/process/ChildProcessSpawner"
import { withAbsolutePath } from "../../domain/platform/SearchPath.ts"
import { childEnvironment } from "../../domain/text/ChildEnvironment.ts"
import { fromJson, isTooDeep, maxDepth, parsedOrUndefined } from "../../domain/text/JsonText.ts"
import { redact } from "../../domain/text/Redaction.ts"
import { serverGrant } from "../../domain/tools/Approval.ts"
import {
  filledIn,
  fromServer,
  type McpAddress,
  mcpAnswer,
  mcpDescription,
  type McpProgram,
  type McpServerSettings,
  type McpServersSettings,
  mcpToolName
} from "../../domain/tools/McpServer.ts"
import { Environment } from "../platform/Environment.ts"
import { makeProgramFinder } from "../platform/ProgramLookup.ts"
import { type Call, type Tool, ToolFailure } from "./Tool.ts"

/** One file: the life of a connection to a server, from its start through its tools to the words for its end. */

/** A server that could not be started or reached, or a tool that cannot be used. All others work. */
export interface McpProblem {
  readonly server: string
  /** What is wrong, and what the user can do about it if anything, on one line. */
  readonly message: string
}

/** The tools of all servers in the settings. */
export interface McpOffer {
  /** In the order of the settings, then of each server's own list. */
  readonly tools: ReadonlyArray<Tool>
  readonly problems: ReadonlyArray<McpProblem>
}

/** The services that starting and reaching servers needs. */
type Needs =
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
/** Default time limit of a call, as in Gemini CLI. */
const callTimeout = Duration.minutes(10)
/** Time between asking a server to end and killing it. */
const killAfter = Duration.seconds(2)
/** Time to wait for the last output of a server that ended. */
const outputWait = Duration.seconds(1)
/** Maximum number of tools per server; more are left out, because every request declares each tool to the model. */
const maxToolsPerServer = 128
/** Maximum length of a tool's parameter schema. A tool with a longer one is left out, for the same reason. */
const maxSchemaChars = 32_768
const titleWidth = 160

/** Older protocol versions with the same handshake, lists and calls. */
const olderProtocols: ReadonlySet<unknown> = new Set(["2024-11-05", "2025-03-26", "2025-06-18"])

const sentence = (text: string, most = 300): string => {
  // oxlint-disable-next-line no-control-regex
  const line = text.replace(/[\u0000-\u001f\u007f-\u009f\s]+/g, " ").trim()
  return line.length > most ? `${line.slice(0, most - 1)}…` : line
}

const isProgram = (settings: McpServerSettings): settings is McpProgram => "command" in settings

/** Output of a server's process other than messages, for the line that says why it ended. */
class ServerOutput {
  private tail = ""
  private readonly decoder = new TextDecoder()
  readonly ended = Deferred.makeUnsafe<void>()

  add(bytes: Uint8Array): void {
    this.tail = (this.tail + this.decoder.decode(bytes, { stream: true })).slice(-4_096)
  }

  /** The text that follows the error message: the first line that names an error, else the last line. */
  get lastWords(): string {
    const lines = this.tail.split("\n").filter((line) => line.trim() !== "")
    const line = lines.find((one) => /error/i.test(one)) ?? lines[lines.length - 1]
    return line === undefined ? "" : `; it said: ${sentence(redact(line), 200)}`
  }
}

const newline = 10
/** Longer lines are passed on in pieces; the reader refuses messages of that size. */
const maxLineBytes = 16 * 1024 * 1024

/**
 * Maximum number of server requests answered per second. A server that sends requests without reading the answers would fill the
 * memory.
 */
const maxServerRequestsPerSecond = 100
/** Maximum length of a message that is treated as a server's request; requests are short. */
const maxRequestChars = 65_536

/** Returns whether a line is a request of the server. */
const isServerRequest = (line: string): boolean => {
  if (line.length > maxRequestChars || !line.includes('"method"')) return false
  const message = parsedOrUndefined(line)
  return Predicate.isObject(message) && "method" in message && "id" in message
}

const joined = (pieces: ReadonlyArray<Uint8Array>): Uint8Array => {
  const [first] = pieces
  if (pieces.length === 1 && first !== undefined) return first
  const whole = new Uint8Array(pieces.reduce((size, piece) => size + piece.length, 0))
  let at = 0
  for (const piece of pieces) {
    whole.set(piece, at)
    at += piece.length
  }
  return whole
}

/**
 * Passes on the lines of a server's output that are messages. Programs also print greetings and logs there, and other clients
 * tolerate that; those lines are kept as the server's last words. Only a limited number of requests is passed on.
 */
const messagesOnly = <E>(stdout: Stream.Stream<Uint8Array, E>, words: ServerOutput): Stream.Stream<Uint8Array, E> =>
  Stream.suspend(() => {
    const decoder = new TextDecoder()
    let pieces: Array<Uint8Array> = []
    let size = 0
    let isLong = false
    let second = 0
    let asked = 0
    const line = (now: number): ReadonlyArray<Uint8Array> => {
      const whole = joined(pieces)
      pieces = []
      size = 0
      if (isLong) return [whole]
      const text = decoder.decode(whole)
      if (!text.includes('"jsonrpc"')) {
        words.add(whole)
        return []
      }
      if (!isServerRequest(text)) return [whole]
      asked = second === Math.floor(now / 1_000) ? asked + 1 : 1
      second = Math.floor(now / 1_000)
      return asked > maxServerRequestsPerSecond ? [] : [whole]
    }
    const linesOf = (chunk: Uint8Array, now: number): ReadonlyArray<Uint8Array> => {
      const lines: Array<Uint8Array> = []
      for (let from = 0; from < chunk.length;) {
        const end = chunk.indexOf(newline, from)
        const piece = chunk.subarray(from, end < 0 ? chunk.length : end + 1)
        from += piece.length
        pieces.push(piece)
        size += piece.length
        if (size > maxLineBytes) isLong = true
        if (end >= 0 || isLong) lines.push(...line(now))
        if (end >= 0) isLong = false
      }
      return lines
    }
    return stdout.pipe(
      Stream.mapEffect((chunk) => Effect.map(Clock.currentTimeMillis, (now) => linesOf(chunk, now))),
      Stream.flatMap((lines) => Stream.fromIterable(lines))
    )
  })

/** Makes a connection with the default protocol to a server that may answer with an older one. */
const acceptingOlderProtocols = (
  transport: McpClient.Transport,
  negotiated: (version: string) => void
): McpClient.Transport => ({
  ...transport,
  request: (message, tool) =>
    Effect.map(transport.request(message, tool), (response) => {
      if (message.method !== "initialize" || "error" in response || !Predicate.isObject(response.result))
        return response
      const version = response.result["protocolVersion"]
      if (typeof version !== "string" || !olderProtocols.has(version)) return response
      negotiated(version)
      return { ...response, result: { ...response.result, protocolVersion: transport.protocol.protocolVersion } }
    })
})

/** Returns whether a server may know only the newest protocol, which has no handshake. */
const mayBeNewer = ({ reason }: McpClientError): boolean =>
  reason._tag === "HttpError"
    ? reason.status === 400 || reason.status === 404 || reason.status === 405
    : reason._tag === "ProtocolError" && reason.code !== undefined

/** Makes a connection that rejects answers nested deeper than later code can handle. */
const rejectingDeepAnswers = (transport: McpClient.Transport): McpClient.Transport => ({
  ...transport,
  request: (message, tool) =>
    Effect.map(transport.request(message, tool), (response) =>
      isTooDeep(response)
        ? {
            jsonrpc: "2.0",
            id: message.id,
            error: { code: internalError, message: `the answer is nested deeper than ${maxDepth} levels` }
          }
        : response
    )
})
/** The JSON-RPC code for an error that the caller did not cause. */
const internalError = -32_603

/** Performs the handshake over a connection. The caller limits the time. */
const client = ({ version }: McpOptions, transport: McpClient.Transport) =>
  Effect.provideService(
    McpClient.make({ name: "palimpsest", version }),
    McpClient.Transport,
    rejectingDeepAnswers(transport)
  )

/** Describes variables that the settings name and that are not set; undefined when all are set. */
const unset = (missing: ReadonlyArray<string>): string | undefined =>
  missing.length === 0
    ? undefined
    : `its settings name ${missing.map((name) => `$${name}`).join(", ")}, not set in the environment`

/** A server with an established connection. */
interface Connected {
  readonly client: McpClient.McpClient
  /** Explains in words why a call failed, for example because the server can no longer be reached. */
  readonly why: (error: McpClientError) => Effect.Effect<string>
}

const startProgram = Effect.fnUntraced(function* (
  { args = [], command, cwd, env = {} }: McpProgram,
  options: McpOptions,
  words: ServerOutput
): Effect.fn.Return<Connected, string, Exclude<Needs, HttpClient.HttpClient> | Scope.Scope> {
  const { variables } = yield* Environment
  const all = yield* variables
  const filled = filledIn(env, all)
  const missing = unset(filled.missing)
  if (missing !== undefined) return yield* Effect.fail(missing)
  const fs = yield* FileSystem.FileSystem
  const workspace = yield* Effect.orElseSucceed(fs.realPath("."), () => ".")
  const program = yield* (yield* makeProgramFinder([workspace]))(command)
  if (program === undefined) {
    return yield* Effect.fail(
      `${command} cannot be started, there is no such program in an absolute part of PATH outside this folder; give its whole path`
    )
  }
  const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
  let process: ChildProcessSpawner.ChildProcessHandle | undefined
  const why = Effect.fnUntraced(function* (error: McpClientError) {
    if (error.reason._tag !== "TransportError" || process === undefined) return errorText(error, command)
    yield* Deferred.await(words.ended).pipe(Effect.timeoutOption(outputWait))
    return errorText(error, command) + words.lastWords
  })
  const watched = ChildProcessSpawner.make((started) =>
    Effect.map(spawner.spawn(started), (handle) => {
      process = handle
      return ChildProcessSpawner.makeHandle({
        ...handle,
        stdout: messagesOnly(handle.stdout, words),
        stderr: handle.stderr.pipe(
          Stream.tap((chunk) => Effect.sync(() => words.add(chunk))),
          Stream.ensuring(Deferred.succeed(words.ended, undefined))
        )
      })
    })
  )
  const named = Object.fromEntries(Object.entries(filled.values).map(([name, value]) => [name, Redacted.make(value)]))
  const transport = yield* McpClient.stdio({
    command: ChildProcess.make(program, args, {
      // Programs that the server starts by name must not come from the folder in which it runs.
      env: { ...withAbsolutePath(childEnvironment(all)), ...named },
      cwd
    }),
    protocol: McpProtocol.v2025_11_25
  }).pipe(
    Effect.provideService(ChildProcessSpawner.ChildProcessSpawner, watched),
    Effect.catch((error) => Effect.flatMap(why(error), Effect.fail))
  )
  // Runs before the connection's own finalizer, which would wait for seconds. The whole group is asked to end, then killed.
  yield* Effect.addFinalizer(() =>
    process === undefined ? Effect.void : Effect.ignore(process.kill({ forceKillAfter: killAfter }))
  )
  const connected = yield* client(
    options,
    acceptingOlderProtocols(transport, () => {})
  ).pipe(
    Effect.catchIf(mayBeNewer, () => client(options, { ...transport, protocol: McpProtocol.v2026_07_28 })),
    Effect.catch((error) => Effect.flatMap(why(error), Effect.fail))
  )
  return { client: connected, why }
})

const reachAddress = Effect.fnUntraced(function* (
  { headers = {}, url }: McpAddress,
  options: McpOptions
): Effect.fn.Return<Connected, string, Environment | HttpClient.HttpClient | Scope.Scope> {
  const { variables } = yield* Environment
  const filled = filledIn(headers, yield* variables)
  const missing = unset(filled.missing)
  if (missing !== undefined) return yield* Effect.fail(missing)
  // The parts before the host and after the path may contain a key.
  const place = url.replace(/[?#].*$/s, "").replace(/\/\/[^/]*@/, "//")
  const why = (error: McpClientError) => Effect.succeed(errorText(error, place))
  let version: string | undefined
  const http = HttpClient.mapRequest(
    yield* HttpClient.HttpClient,
    (request) =>
      version === undefined ? request : HttpClientRequest.setHeader(request, "mcp-protocol-version", version)
    // Other services do not receive our trace headers.
  ).pipe(HttpClient.transform(Effect.provideService(HttpClient.TracerPropagationEnabled, false)))
  const over = (protocol: McpProtocol.ProtocolAdapter<McpClient.ProtocolVersion>) =>
    McpClient.http({ url, headers: filled.values, protocol }).pipe(
      Effect.provideService(HttpClient.HttpClient, http),
      Effect.flatMap((transport) =>
        client(
          options,
          acceptingOlderProtocols(transport, (older) => (version = older))
        )
      )
    )
  const connected = yield* over(McpProtocol.v2025_11_25).pipe(
    Effect.catchIf(mayBeNewer, () => over(McpProtocol.v2026_07_28)),
    Effect.catch((error) => Effect.flatMap(why(error), Effect.fail))
  )
  return { client: connected, why }
})

/** Describes an error for the user and the model. `where` is the program or the address. */
const errorText = ({ reason }: McpClientError, where: string): string => {
  switch (reason._tag) {
    case "TransportError":
      return transportErrorText(reason, where)
    case "HttpError":
      return reason.status === 401 || reason.status === 403
        ? `it refused with HTTP ${reason.status}; see the headers in its settings`
        : `it answered with HTTP ${reason.status}${reason.description === undefined ? "" : `: ${sentence(reason.description)}`}`
    case "ProtocolError":
      return reason.code === undefined
        ? `it does not speak MCP as expected (${sentence(reason.message)})`
        : `it answered with an error: ${sentence(reason.message)}`
    case "TimeoutError":
      return "it did not answer in time"
    case "LimitError":
      return `it sent more than can be taken (${sentence(reason.message)})`
    case "ClosedError":
      return "the connection to it is closed"
    case "UnsupportedError":
      return `it does not speak MCP as expected (${sentence(reason.message)})`
    default:
      return sentence(reason.message)
  }
}

const transportErrorText = ({ cause, description = "" }: TransportError, where: string): string => {
  if (description.startsWith("Cannot spawn")) {
    const detail = cause instanceof Error ? `: ${sentence(cause.message, 200)}` : ""
    return /NotFound|ENOENT/.test(detail)
      ? `${where} cannot be started, there is no such program or folder`
      : `${where} cannot be started${detail}`
  }
  const exited = /exited(?: \((-?\d+)\))?/.exec(description)
  if (exited !== null) {
    return exited[1] === undefined ? "its process ended" : `its process ended with status ${exited[1]}`
  }
  if (/closed stdout|stdin failed|stdout failed/.test(description)) return "its process ended or closed its output"
  return `${where} cannot be reached`
}

/** The arguments of a call: an object, or its JSON text. */
const argumentsOf = Schema.decodeUnknownOption(
  Schema.Union([Schema.Record(Schema.String, Schema.Unknown), fromJson(Schema.Record(Schema.String, Schema.Unknown))])
)

const toolOf = (
  server: string,
  name: string,
  described: McpSchema.Tool,
  { client, why }: Connected,
  timeout: Duration.Duration
): Tool => {
  const fail = (message: string) => new ToolFailure({ message, type: "mcp_tool_error" })
  const call = (args: Readonly<Record<string, unknown>>): Call => ({
    title: sentence(`${name} ${JSON.stringify(args)}`, titleWidth),
    // A server's claims about its own tools are not trusted: each call asks.
    question: Effect.succeed({
      detail: `${described.name} of the MCP server ${server}\n${JSON.stringify(args, null, 2)}`,
      grants: [serverGrant(server)],
      covers: `all tools of the MCP server ${server}`
    }),
    run: client.callTool({ tool: described, arguments: args }).pipe(
      Effect.catch((error) => Effect.flatMap(why(error), (words) => fail(`The MCP server ${server} failed: ${words}`))),
      Effect.flatMap((result) => {
        const { media, text } = mcpAnswer(result)
        if (result.isError === true) {
          return fail(fromServer(server, text === "" ? "the tool failed and did not say why" : text))
        }
        return Effect.succeed({ value: text === "" ? "" : fromServer(server, text), media })
      })
    )
  })
  return {
    name,
    aliases: [],
    description: mcpDescription(server, described.name, described.description),
    parameters: described.inputSchema,
    // `readOnlyHint` is the server's own claim. It only makes the tool available, with a question, in plan mode.
    kind: described.annotations?.readOnlyHint === true ? "fetch" : "execute",
    isNeverMasked: false,
    timeout,
    call: (given) =>
      Option.match(argumentsOf(given ?? {}), {
        onNone: () =>
          new ToolFailure({
            message: `${name} was called wrongly: expected an object of arguments`,
            type: "invalid_tool_params"
          }),
        onSome: (args) => Effect.succeed(call(args))
      })
  }
}

/** A server that answered, with its list of tools. */
interface StartedServer {
  readonly connected: Connected
  readonly tools: ReadonlyArray<McpSchema.Tool>
}

/** Starts or reaches one server and lists its tools. On failure its resources are released at once. */
const startServer = Effect.fnUntraced(function* (
  parent: Scope.Scope,
  settings: McpServerSettings,
  options: McpOptions,
  patience: Duration.Duration
): Effect.fn.Return<StartedServer, string, Needs> {
  const scope = yield* Scope.fork(parent)
  const words = new ServerOutput()
  return yield* Effect.gen(function* () {
    const connected = yield* isProgram(settings)
      ? startProgram(settings, options, words)
      : reachAddress(settings, options)
    const tools = yield* connected.client
      .listTools()
      .pipe(Effect.catch((error) => Effect.flatMap(connected.why(error), Effect.fail)))
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

/** Tools of the MCP servers that the settings name. */
export class McpServers extends Context.Service<McpServers, McpOffer>()("palimpsest/services/tools/McpServers") {
  /**
   * Starts or reaches all servers in parallel and lists their tools. A server that fails is reported as a problem, not as a failure.
   * Each keeps its process or connection until the scope closes. If it ends earlier, calls of its tools say so.
   */
  static readonly start = Effect.fn("McpServers.start")(function* (
    servers: McpServersSettings,
    options: McpOptions
  ): Effect.fn.Return<McpOffer, never, Needs | Scope.Scope> {
    const scope = yield* Effect.scope
    const patience = Duration.fromInputUnsafe(options.startTimeout ?? defaultStartTimeout)
    const started = yield* Effect.forEach(
      Object.entries(servers),
      ([name, settings]) =>
        Effect.map(Effect.result(startServer(scope, settings, options, patience)), (result) => ({
          name,
          settings,
          result
        })),
      { concurrency: "unbounded" }
    )
    const names = new Set<string>()
    const tools: Array<Tool> = []
    const problems: Array<McpProblem> = []
    for (const { name: server, result, settings } of started) {
      if (result._tag === "Failure") {
        problems.push({ server, message: `The MCP server ${server} is left out: ${result.failure}` })
        continue
      }
      const { connected, tools: listed } = result.success
      const timeout = settings.timeout === undefined ? callTimeout : Duration.millis(settings.timeout)
      const usable = listed.filter((tool) => JSON.stringify(tool.inputSchema).length <= maxSchemaChars)
      const left = listed.length - Math.min(usable.length, maxToolsPerServer)
      if (left > 0) {
        problems.push({
          server,
          message: `The MCP server ${server} offers ${listed.length} tools; ${left} are left out, beyond ${maxToolsPerServer} or described at too great a length`
        })
      }
      for (const tool of usable.slice(0, maxToolsPerServer)) {
        const name = mcpToolName(server, tool.name, names)
        names.add(name)
        tools.push(toolOf(server, name, tool, connected, timeout))
      }
    }
    return { tools, problems }
  })

  /** `start` as a layer. */
  static readonly layer = (servers: McpServersSettings, options: McpOptions) =>
    Layer.effect(McpServers, McpServers.start(servers, options))
}
