/** Makes tools of what the MCP servers in the settings offer. */

import { Duration, Effect, Option, Schema, type Scope } from "effect"
import type * as McpSchema from "effect/ai/McpSchema"
import { fromJson } from "../../domain/text/JsonText.ts"
import { shortLine } from "../../domain/text/OneLine.ts"
import { serverGrant } from "../../domain/tools/Approval.ts"
import { maxDetailChars } from "../../domain/tools/McpError.ts"
import {
  fromServer,
  mcpAnswer,
  mcpDescription,
  type McpServersSettings,
  mcpToolName
} from "../../domain/tools/McpServer.ts"
import { type Connected, type McpOptions, type Needs, type StartedServer, startServer } from "./McpConnection.ts"
import { type Call, type Tool, ToolFailure } from "./Tool.ts"

/** The tools of all servers in the settings. */
export interface McpOffer {
  /** In the order of the settings, then of each server's own list. */
  readonly tools: ReadonlyArray<Tool>
  /** What is left out, in lines: a server that could not be started or reached, and tools that are too many or cannot be read. All others work. */
  readonly problems: ReadonlyArray<string>
}

/** Default time limit of a call, as in Gemini CLI. */
const callTimeout = Duration.minutes(10)
/** Maximum number of tools per server; more are left out, because every request declares each tool to the model. */
const maxToolsPerServer = 128
/** Maximum length of a tool's parameter schema. A tool with a longer one is left out, for the same reason. */
const maxSchemaChars = 32_768
const titleWidth = 160

/**
 * Starts or reaches all servers in parallel and lists their tools. A server that fails is reported as a problem, not as a failure.
 * Each keeps its process or connection until the scope closes. If it ends earlier, calls of its tools say so.
 */
export const start = Effect.fn("McpServers.start")(function* (
  servers: McpServersSettings,
  options: McpOptions
): Effect.fn.Return<McpOffer, never, Needs | Scope.Scope> {
  const scope = yield* Effect.scope
  const tools: Array<Tool> = []
  const problems: Array<string> = []
  const started = yield* Effect.forEach(
    Object.entries(servers),
    ([server, settings]) =>
      Effect.map(Effect.result(startServer(scope, settings, options)), (result) => ({ server, settings, result })),
    { concurrency: "unbounded" }
  )
  // In the order of the settings, so that each tool has the same name in each session.
  for (const { result, server, settings } of started) {
    if (result._tag === "Failure") {
      problems.push(`The MCP server ${server} is ignored: ${result.failure}`)
      continue
    }
    const timeout = settings.timeout === undefined ? callTimeout : Duration.millis(settings.timeout)
    const offer = offerOf(server, result.success, timeout, new Set(tools.map(({ name }) => name)))
    tools.push(...offer.tools)
    problems.push(...offer.problems)
  }
  return { tools, problems }
})

/** The tools of one server, under names that are not taken. */
const offerOf = (
  server: string,
  { connected, tools: listed }: StartedServer,
  timeout: Duration.Duration,
  takenNames: Set<string>
): McpOffer => {
  const usable = listed
    .filter((tool) => JSON.stringify(tool.inputSchema).length <= maxSchemaChars)
    .slice(0, maxToolsPerServer)
  const left = listed.length - usable.length
  const tools = usable.map((tool) => {
    const name = mcpToolName(server, tool.name, takenNames)
    takenNames.add(name)
    return toolOf(server, name, tool, connected, timeout)
  })
  const problems: Array<string> = []
  if (left > 0) {
    problems.push(
      `The MCP server ${server} offers ${listed.length} tools; ${left} are ignored, beyond ${maxToolsPerServer} or described at too great a length`
    )
  }
  if (connected.unreadable.size > 0) {
    const names = shortLine([...connected.unreadable].join(", "), maxDetailChars)
    problems.push(
      `The MCP server ${server} describes tools in a form that cannot be read, and they are ignored: ${names}`
    )
  }
  return { tools, problems }
}

/** The arguments of a call: an object, or its JSON text. */
const argumentsOf = Schema.decodeUnknownOption(
  Schema.Union([Schema.Record(Schema.String, Schema.Unknown), fromJson(Schema.Record(Schema.String, Schema.Unknown))])
)

const toolOf = (
  server: string,
  name: string,
  described: McpSchema.Tool,
  connected: Connected,
  timeout: Duration.Duration
): Tool => ({
  name,
  aliases: [],
  description: mcpDescription(server, described.name, described.description),
  parameters: described.inputSchema,
  // `readOnlyHint` is the server's own claim. It only makes the tool available, with a question, in plan mode.
  kind: described.annotations?.readOnlyHint === true ? "fetch" : "execute",
  isNeverMasked: false,
  timeout,
  call: (args) =>
    Option.match(argumentsOf(args ?? {}), {
      onNone: () =>
        new ToolFailure({
          message: `${name} was called wrongly: expected an object of arguments`,
          type: "invalid_tool_params"
        }),
      onSome: (args) => Effect.succeed(callOf(server, name, described, connected, args))
    })
})

const callOf = (
  server: string,
  name: string,
  described: McpSchema.Tool,
  { client, why }: Connected,
  args: Readonly<Record<string, unknown>>
): Call => ({
  title: shortLine(`${name} ${JSON.stringify(args)}`, titleWidth),
  // A server's claims about its own tools are not trusted: each call asks.
  question: Effect.succeed({
    detail: `${described.name} of the MCP server ${server}\n${JSON.stringify(args, null, 2)}`,
    grants: [serverGrant(server)],
    covers: `all tools of the MCP server ${server}`
  }),
  run: client.callTool({ tool: described, arguments: args }).pipe(
    Effect.catch((error) =>
      Effect.flatMap(why(error), (fault) => toolFailure(`The MCP server ${server} failed: ${fault}`))
    ),
    Effect.flatMap((result) => {
      const { media, text } = mcpAnswer(result)
      if (result.isError === true) {
        return toolFailure(fromServer(server, text === "" ? "the tool failed without a reason" : text))
      }
      return Effect.succeed({ value: text === "" ? "" : fromServer(server, text), media })
    })
  )
})

const toolFailure = (message: string): ToolFailure => new ToolFailure({ message, type: "mcp_tool_error" })
