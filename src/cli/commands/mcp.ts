import { Cause, Effect, Exit, Fiber, FileSystem, Layer, Option, Path } from "effect"
import { McpProtocol, McpServer } from "effect/ai"
import { Argument, Command, Flag } from "effect/cli"
import { clients, setupLine } from "../../domain/settings/McpClients.ts"
import { printableLine } from "../../domain/text/InvisibleCharacters.ts"
import { makeSessionAnswers } from "../../services/transcripts/SessionAnswers.ts"
import * as SessionMcpTools from "../../services/transcripts/SessionMcpTools.ts"
import * as Input from "../input/Input.ts"
import * as SessionFlags from "../input/SessionFlags.ts"
import { badInput } from "../output/ExitError.ts"
import * as Output from "../output/Output.ts"
import { version } from "../output/Version.ts"

const protocols = [
  McpProtocol.v2026_07_28,
  McpProtocol.v2025_11_25,
  McpProtocol.v2025_06_18,
  McpProtocol.v2025_03_26,
  McpProtocol.v2024_11_05
] as const

/** The program as a client starts it. */
const program = "palimpsest"

/** The command `palimpsest mcp`. `home`: the user's home folder. */
export const mcp = (home: string) =>
  Command.make(
    "mcp",
    {
      session: Argument.String("session").pipe(
        Argument.withDescription("Session file to serve (default: the folder's session that changed last)"),
        Argument.optional,
        Argument.map(Option.getOrUndefined)
      ),
      agent: SessionFlags.flags.agent,
      folder: Input.optional(
        Flag.String("folder").pipe(Flag.withMetavar("folder")),
        "Folder whose sessions are served (default: the working folder)"
      ),
      others: Input.flag("others", "Serve the folder's other sessions too"),
      secrets: Input.flag("with-secrets", "Keep secrets in answers"),
      setup: Input.optional(
        Flag.Literals("setup", clients).pipe(Flag.withMetavar("client")),
        "Print the line that adds the server to a client"
      ),
      write: Input.flag("write", "With --setup: write it to the client's settings")
    },
    Effect.fn("cli.mcp")(function* (input) {
      const path = yield* Path.Path
      const folder = path.resolve(input.folder ?? ".")
      if (input.setup !== undefined) {
        if (!input.write) return yield* Output.text(setupLine(input.setup, program))
        const { writeServer } = yield* Effect.promise(() => import("./install.ts"))
        return yield* writeServer(input.setup, folder, home)
      }
      if (input.write) return yield* badInput("--write needs --setup CLIENT")
      const file = input.session === undefined ? undefined : path.resolve(input.session)
      if (
        file !== undefined &&
        !(yield* Effect.orElseSucceed(
          FileSystem.FileSystem.use((fs) => fs.exists(file)),
          () => false
        ))
      ) {
        return yield* badInput(
          `${printableLine(input.session ?? "")}: no such file; "palimpsest find" lists the sessions`
        )
      }
      const answers = yield* makeSessionAnswers({
        file,
        agents: input.agent,
        folder,
        others: input.others,
        showsSecrets: input.secrets
      })
      const server = McpServer.layerStdio({
        name: program,
        version,
        instructions: SessionMcpTools.instructions,
        protocols,
        registrations: SessionMcpTools.layer(answers, input.others)
      })
      // The server interrupts its own fiber when the client closes standard input: that is the end, and no failure.
      const running = yield* Effect.forkChild(Layer.launch(server))
      const exit = yield* Fiber.await(running)
      if (Exit.isFailure(exit) && !Cause.hasInterruptsOnly(exit.cause))
        return yield* Effect.failCause(exit.cause).pipe(Effect.orDie)
    })
  ).pipe(
    Command.withExamples([
      { command: "palimpsest mcp --setup claude", description: "Print how Claude Code is told to use it" },
      { command: "palimpsest mcp --setup codex --write", description: "Add it to Codex's settings" },
      {
        command: "palimpsest mcp --others",
        description: "Serve all sessions of this folder over standard input and output"
      }
    ])
  )
