/** The `mcp` command: serves the sessions of agents to MCP clients, on standard streams or over HTTP. */

import {
  Cause,
  Config,
  Effect,
  Exit,
  Fiber,
  FileSystem,
  Layer,
  Option,
  Path,
  Redacted,
  Result,
  Stdio,
  Stream
} from "effect"
import { McpProtocol, McpServer } from "effect/ai"
import { Command, Flag } from "effect/cli"
import { clients } from "../../domain/settings/McpClients.ts"
import { printableLine } from "../../domain/text/InvisibleCharacters.ts"
import { parseJson } from "../../domain/text/JsonText.ts"
import { newToken } from "../../services/serve/ApiTokens.ts"
import type { McpHttpOptions, ServeMcp } from "../../services/transcripts/McpHttp.ts"
import type { SessionAnswers, SessionScope } from "../../services/transcripts/SessionAnswers.ts"
import * as SessionMcpTools from "../../services/transcripts/SessionMcpTools.ts"
import { listenFailure } from "../flags/ListenAddress.ts"
import * as SessionFlags from "../flags/SessionFlags.ts"
import * as Input from "../flags/SharedFlags.ts"
import { badInput } from "../output/ExitError.ts"
import * as Output from "../output/Output.ts"
import { version } from "../output/Version.ts"
import type { InstallHost } from "./install.ts"

const protocols = [
  McpProtocol.v2026_07_28,
  McpProtocol.v2025_11_25,
  McpProtocol.v2025_06_18,
  McpProtocol.v2025_03_26,
  McpProtocol.v2024_11_05
] as const

/** The program as a client starts it. */
const program = "palimpsest"

/** Serves over HTTP, and prints how to connect a client. */
const overHttp = Effect.fnUntraced(function* (
  serve: ServeMcp,
  port: number,
  about: Omit<McpHttpOptions, "port" | "token">,
  registrations: Parameters<ServeMcp>[1]
) {
  const own = yield* Effect.orElseSucceed(Config.option(Config.Redacted(tokenVariable)), () => Option.none())
  const token = Option.isSome(own) ? own.value : yield* newToken
  const shown = Option.isSome(own) ? `$${tokenVariable}` : Redacted.value(token)
  const context = yield* Effect.context<Stdio.Stdio>()
  const started = (url: string) =>
    Output.unwrapped(
      `${url}\nclaude mcp add --transport http ${program} ${url} --header "Authorization: Bearer ${shown}"`
    ).pipe(
      Effect.andThen(Output.notice(`listening (Ctrl+C stops); ${tokenVariable} keeps a token between starts`)),
      Effect.provideContext(context),
      Effect.ignore
    )
  return yield* Effect.mapError(serve({ ...about, port, token }, registrations, started), (error) =>
    listenFailure(error, "--http")
  )
})

/** Answers that are made when the first question comes: until then, nothing is loaded that reads sessions. */
const answersWhenAsked = Effect.fnUntraced(function* (opening: Effect.Effect<SessionAnswers>) {
  const opened = yield* Effect.cached(opening)
  return {
    list: Effect.flatMap(opened, ({ list }) => list),
    recall: (...asked) => Effect.flatMap(opened, ({ recall }) => recall(...asked)),
    search: (...asked) => Effect.flatMap(opened, ({ search }) => search(...asked)),
    changes: (...asked) => Effect.flatMap(opened, ({ changes }) => changes(...asked)),
    snapshot: (...asked) => Effect.flatMap(opened, ({ snapshot }) => snapshot(...asked))
  } satisfies SessionAnswers as SessionAnswers
})

const parseError = `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}`

/** Standard input without the lines that are no JSON, which are answered with the error that JSON-RPC has for them. */
const jsonLines = Layer.effect(
  Stdio.Stdio,
  Effect.map(Stdio.Stdio, (stdio) => ({
    ...stdio,
    stdin: stdio.stdin.pipe(
      Stream.decodeText,
      Stream.splitLines,
      Stream.filter((line) => line.trim() !== ""),
      Stream.filterEffect((line) =>
        Result.isSuccess(parseJson(line))
          ? Effect.succeed(true)
          : Effect.as(Stream.run(Stream.make(`${parseError}\n`), stdio.stdout()), false)
      ),
      Stream.map((line) => `${line}\n`),
      Stream.encodeText
    )
  }))
)

/** The environment variable with the token of the HTTP server. */
const tokenVariable = "PALIMPSEST_MCP_TOKEN"

const flags = {
  session: Input.optionalArgument("session", "Session file to serve (default: the folder's session that changed last)"),
  agent: SessionFlags.flags.agent,
  folder: Input.text("folder", "folder", "Folder whose sessions are served (default: the working folder)"),
  others: Input.flag("others", "Serve the folder's other sessions too"),
  secrets: Input.flag("with-secrets", "Keep secrets in answers"),
  http: Input.optional(
    Flag.Int("http").pipe(Flag.withMetavar("port")),
    "Serve over HTTP to programs on this machine, at this port (0: any free port), with a token"
  ),
  setup: Input.optional(
    Flag.Literals("setup", clients).pipe(Flag.withMetavar("client")),
    "Print the line that adds the server to a client"
  ),
  write: Input.flag("write", "With --setup: write it to the client's settings")
}
type Flags = Command.Command.Config.Infer<typeof flags>

/** Returns the session file that is named, as a path; undefined where none is. */
const namedFile = Effect.fnUntraced(function* (session: string | undefined) {
  if (session === undefined) return undefined
  const path = yield* Path.Path
  const file = path.resolve(session)
  const exists = FileSystem.FileSystem.use((fs) => fs.exists(file))
  if (yield* Effect.orElseSucceed(exists, () => false)) return file
  return yield* badInput(`${printableLine(session)}: no such file; "palimpsest find" lists the sessions`)
})

/** Serves on standard input and output until the client closes it. */
const overStdio = Effect.fnUntraced(function* (
  about: Omit<McpHttpOptions, "port" | "token">,
  registrations: Parameters<ServeMcp>[1]
) {
  const stdio = yield* Stdio.Stdio
  if (yield* stdio.stdinIsTerminal) {
    yield* Output.notice(
      'serving MCP on standard input and output: another agent starts this command. "palimpsest install claude" or "palimpsest mcp --setup CLIENT" connects one; Ctrl+D or Ctrl+C ends this'
    )
  }
  const server = Layer.provide(McpServer.layerStdio({ ...about, registrations }), jsonLines)
  // The server interrupts its own fiber when the client closes standard input: that is a normal end.
  const running = yield* Effect.forkChild(Layer.launch(server))
  const exit = yield* Fiber.await(running)
  if (Exit.isFailure(exit) && !Cause.hasInterruptsOnly(exit.cause))
    return yield* Effect.failCause(exit.cause).pipe(Effect.orDie)
})

/** Rejects flags that say nothing together. */
const checked = Effect.fnUntraced(function* ({ http, setup, write }: Flags) {
  if (write && setup === undefined) return yield* badInput("--write needs --setup CLIENT")
  if (http !== undefined && (http < 0 || http > 65_535)) {
    return yield* badInput(`--http ${http}: expected a port, 0 to 65535`)
  }
})

/** The command `palimpsest mcp`. `host`: what it writes into settings. `serve`: serves over HTTP. `open`: reads the sessions. */
export const mcp = <R>(
  host: InstallHost,
  serve: ServeMcp,
  open: (scope: SessionScope) => Effect.Effect<SessionAnswers, never, R>
) =>
  Command.make(
    "mcp",
    flags,
    Effect.fn("cli.mcp")(function* (input) {
      const path = yield* Path.Path
      const folder = path.resolve(input.folder ?? ".")
      if (input.setup !== undefined) {
        const { setup, writeServer } = yield* Effect.promise(() => import("./install.ts"))
        return yield* input.write ? writeServer(input.setup, folder, host) : setup(input.setup, host)
      }
      yield* checked(input)
      const file = yield* namedFile(input.session)
      const scope = { file, agents: input.agent, folder, others: input.others, showsSecrets: input.secrets }
      const context = yield* Effect.context<R>()
      const answers = yield* answersWhenAsked(Effect.provideContext(open(scope), context))
      const about = { name: program, version, instructions: SessionMcpTools.instructions, protocols }
      const registrations = SessionMcpTools.layer(answers, input.others)
      return yield* input.http === undefined
        ? overStdio(about, registrations)
        : overHttp(serve, input.http, about, registrations)
    }, Effect.scoped)
  ).pipe(
    Input.withExamples({
      "palimpsest mcp --setup claude": "Print the command that adds it to Claude Code",
      "palimpsest mcp --setup codex --write": "Add it to Codex's settings",
      "palimpsest mcp --http 4402": "Serve over HTTP to programs on this machine, with a token",
      "palimpsest mcp --others": "Serve all sessions of this folder over standard input and output"
    })
  )
