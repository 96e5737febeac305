/**
 * The program: its commands, how failures are printed, and how the process ends.
 *
 * One file: all that touches the process itself is here: its arguments, its streams, signals and its exit status.
 */

import { Cause, Config, Console, Effect, Exit, Layer, Logger, References, Runtime, Stdio } from "effect"
import { CliError, CliOutput, Command, TerminalCapabilities } from "effect/cli"
import { visibleBlock, printableLine } from "../domain/text/InvisibleCharacters.ts"
import { closestName } from "../domain/text/SpellingSuggestion.ts"
import { columnsWithin, wrapLines } from "../domain/text/Wrap.ts"
import * as NodePlatform from "../layers/platform/NodePlatform.ts"
import * as ThisProcess from "../layers/platform/ThisProcess.ts"
import { runningGroups } from "../services/platform/ChildOutput.ts"
import { shutdown } from "../services/platform/Shutdown.ts"
import type { ServeMcp } from "../services/transcripts/McpHttp.ts"
import { formatFlags, withCommand } from "./flags/BareArguments.ts"
import type { ChatOptions } from "./flags/ChatFlags.ts"
import { ExitError } from "./output/ExitError.ts"
import { helpText, maxHelpColumns } from "./output/HelpText.ts"
import * as Output from "./output/Output.ts"
import { version } from "./output/Version.ts"

/** Says what is wrong with a command line, and what may have been meant. */
const problemText = (error: CliError.CliError, isAlone: boolean): string => {
  switch (error._tag) {
    case "UnknownSubcommand": {
      const { parent = [], subcommand, suggestions } = error
      const isFirst = parent.length <= 1
      const nearest = closestName(subcommand, suggestions, Math.max(1, Math.floor(subcommand.length / 3)))
      const advice = nearest !== undefined ? `; did you mean ${nearest}?` : isFirst && isAlone ? questionAdvice : ""
      return `there is no command ${isFirst ? "" : `${parent.slice(1).join(" ")} `}${wordText(subcommand)}${advice}`
    }
    case "UnrecognizedOption": {
      const { command = [], option, suggestions } = error
      const where = command.slice(1).join(" ")
      if (where === "ask" && formatFlags.has(option)) return `${option}: expected text, json or stream-json`
      // Of one letter, nothing is spelled alike: -o would be told that it means --to.
      const [nearest] = option.startsWith("--") ? suggestions : []
      return `${where === "" ? "there is" : `${where} has`} no flag ${option}${nearest === undefined ? "" : `; did you mean ${nearest}?`}`
    }
    case "MissingArgument":
      return `the argument <${error.argument}> is missing`
    case "MissingOption":
      return `the flag --${error.option} is missing`
    case "UnexpectedArgument":
      return `unexpected ${error.arguments.length === 1 ? "argument" : "arguments"} ${error.arguments.map(wordText).join(" ")}`
    case "InvalidValue": {
      const { expected, kind, option, value } = error
      const name = kind === "argument" ? `<${option}>` : `--${option}`
      // Effect says of what kind a missing value is, in one word: "number", or the placeholder in the help.
      if (value === "" && /^\S+$/.test(expected)) return `${name} needs a value`
      if (expected === "at most 1 value")
        return `${name} is given ${value.replace("occurrences", "times")}; give it once`
      return `${name}${value === "" ? "" : ` ${value}`}: expected ${expectedText(expected)}`
    }
    default:
      return error.message
  }
}

/** A word of the command line in a message. An empty one is shown as it is written in a shell. */
const wordText = (word: string): string => (word === "" ? "''" : word)

/** What a flag takes, in our words: Effect writes choices with bars, and sometimes in quotes. */
const expectedText = (expected: string): string => {
  const text = expected.replace(/^Expected:? /, "")
  if (text === "a string representing a finite number") return "a number"
  return text.includes(" | ")
    ? text
        .replaceAll('"', "")
        .replaceAll(" | ", ", ")
        .replace(/, ([^,]*)$/, " or $1")
    : text
}

const questionAdvice = '; to ask a question: palimpsest -p "why does the build fail?"'

/**
 * Prints help pages in our own layout, and a one-line error for an invalid command line. The help page is printed only on
 * request.
 */
const presenter: CliOutput.Presenter = {
  present: (event) => {
    switch (event._tag) {
      case "Help":
        return Effect.gen(function* () {
          const { canColor } = yield* TerminalCapabilities.TerminalCapabilities
          const { stdout = maxHelpColumns } = yield* Output.TerminalColumns
          yield* Console.log(helpText(event.helpDoc, canColor ? Output.coloured : Output.plain, stdout))
        })
      case "InvalidInvocation":
        return Effect.map(Output.TerminalColumns, ({ stderr }) => {
          const isAlone = event.errors.length === 1
          // `palimpsest --approve edits hello` is `chat` with a word too many.
          const isAsked = isAlone && event.commandPath[1] === "chat" && event.errors[0]?._tag === "UnexpectedArgument"
          const problems =
            event.errors.map((error) => problemText(error, isAlone)).join("; ") + (isAsked ? questionAdvice : "")
          const text = `palimpsest: ${printableLine(problems)}\nTry "${event.commandPath.join(" ")} --help".\n`
          process.stderr.write(stderr === undefined ? text : wrapLines(text, stderr, Output.columnsOf))
        })
      case "Version":
        return CliOutput.defaultPresenter.present(event)
    }
  }
}

const isConfigError = (error: unknown): error is Config.ConfigError => error instanceof Config.ConfigError

/** Names the variable and the value it expects. */
const configProblem = ({ message }: Config.ConfigError): string => {
  const [, expected = "", name = ""] = /\(?([^(]*?)\s*at \["(\w+)"\]/.exec(message.replace(/\s+/g, " ")) ?? []
  return name === "" ? message : `${name} must be ${expected.replace(/^Expected\s*/, "")}`
}

/** Prints an error in one line. A defect is reported as a bug. */
const report = <E>(cause: Cause.Cause<E>) => {
  if (Cause.hasInterruptsOnly(cause)) return Effect.void
  const error = Cause.squash(cause)
  if (CliError.isCliError(error) && error._tag === "ShowHelp") return Effect.void
  // The message was printed already.
  if (error instanceof ExitError && error.message === "") return Effect.void
  if (isConfigError(error)) return Output.notice(configProblem(error))
  const message = error instanceof Error && error.message !== "" ? error.message : String(error)
  if (Cause.hasDies(cause)) {
    return Output.notice(
      `internal error: ${message} (this is a bug in palimpsest ${version}; run again with --log-level debug and report the output)`
    )
  }
  return Output.notice(message)
}

/**
 * Prints a warning in one line, as any other notice. Other levels are printed in full, with time and place, for the user who
 * enabled them.
 */
const logger = Output.logger((options, words, isNotice) => {
  if (isNotice) process.stderr.write(`palimpsest: ${printableLine(words)}\n`)
  else if (!process.stderr.isTTY) Logger.defaultLogger.log(options)
  // The message can contain text from outside.
  else process.stderr.write(`${visibleBlock(Logger.formatLogFmt.log(options))}\n`)
})

/** Logs a defect in full. Runs within the command, where `--log-level` applies. */
const diagnostics = Layer.effectDiscard(
  Effect.addFinalizer((exit) =>
    Exit.isFailure(exit) && Cause.hasDies(exit.cause) ? Effect.logDebug(exit.cause) : Effect.void
  )
)

/** Without a subcommand, starts a chat in an interactive terminal and shows the help page otherwise. */
const start = Effect.gen(function* () {
  const { stdinIsTerminal, stdoutIsTerminal } = yield* Stdio.Stdio
  if (!((yield* stdinIsTerminal) && (yield* stdoutIsTerminal)))
    return yield* new CliError.ShowHelp({ commandPath: ["palimpsest"], errors: [] })
  return yield* converse({})
})

/** An effect from a module that is loaded when the effect runs. */
const lazily = <A, E, R>(load: () => Promise<Effect.Effect<A, E, R>>) => Effect.flatten(Effect.promise(load))

/** A layer from a module that is loaded when the layer is built. */
const lazyLayer = <A, E, R>(load: () => Promise<Layer.Layer<A, E, R>>) => Layer.unwrap(Effect.promise(load))

const converse = (options: ChatOptions) => lazily(async () => (await import("./chatCommand.ts")).converse(options))

const live = lazyLayer(async () => (await import("../layers/assembly/Live.ts")).layer)

const host = async () => (await import("../layers/platform/InstallHost.ts")).host

const environment = async () => (await import("../layers/platform/ProcessEnvironment.ts")).layer

/** A command that is loaded when it is needed, with its description in the list of commands. It brings the layers that it needs. */
const ownCommand = <Name extends string, Input, E, R>(
  description: string,
  load: () => Promise<Command.Command<Name, Input, {}, E, R>>
) => ({
  stub: (name: string) => Command.make(name).pipe(Command.withDescription(description)),
  load: async () => Command.withDescription(await load(), description)
})

/** A command that gets the layers of the whole program. */
const command = <Name extends string, Input, E, R>(
  description: string,
  load: () => Promise<Command.Command<Name, Input, {}, E, R>>
) => ownCommand(description, async () => Command.provide(await load(), live))

/** A command over the sessions of every agent on this machine. */
const sessionsCommand = <Name extends string, Input, E, R>(
  description: string,
  load: () => Promise<Command.Command<Name, Input, {}, E, R>>
) =>
  command(description, async () => {
    const { layer } = await import("../layers/assembly/LiveAgentSessions.ts")
    return Command.provide(await load(), layer)
  })

/** The commands, each in a part of the bundle that is loaded only when the command line contains the command's name. */
const commands = {
  compress: command("Compress a conversation; what leaves it stays recallable", async () =>
    (await import("./commands/compress.ts")).compress(lazyLayer(async () => (await import("./agentCommands.ts")).tools))
  ),
  inspect: command("Show where the tokens of a conversation go", async () =>
    Command.provide((await import("./commands/inspect.ts")).inspect, await environment())
  ),
  find: sessionsCommand(
    "Find sessions of every agent on this machine, and search their contents",
    async () => (await import("./commands/find.ts")).find
  ),
  cost: sessionsCommand(
    "Show what sessions cost, and where prompt caches broke",
    async () => (await import("./commands/cost.ts")).cost
  ),
  mcp: ownCommand("Serve sessions to other agents over MCP, for exact recall", async () => {
    const { mcp } = await import("./commands/mcp.ts")
    const serve: ServeMcp = (...given) =>
      lazily(async () => (await import("../layers/serve/McpHttpServing.ts")).serveMcp(...given))
    return mcp(await host(), serve, (scope) =>
      lazily(async () => (await import("../layers/assembly/LiveSessionAnswers.ts")).open(scope))
    )
  }),
  secrets: sessionsCommand(
    "Find keys, passwords and personal data in sessions, without showing them",
    async () => (await import("./commands/secrets.ts")).secrets
  ),
  export: sessionsCommand(
    "Export a session of any agent to a file; --redact leaves out its secrets",
    async () => (await import("./commands/export.ts")).exported
  ),
  install: command("Connect another agent: add an MCP server, and hooks or a plugin where it supports them", async () =>
    (await import("./commands/install.ts")).install(await host())
  ),
  uninstall: command("Remove what install added", async () =>
    (await import("./commands/install.ts")).uninstall(await host())
  ),
  hook: command("Answer a compaction hook of another agent", async () => {
    const { sessions } = await import("../layers/assembly/LiveAgentSessions.ts")
    return Command.provide((await import("./commands/hook.ts")).hook, sessions)
  }),
  rescue: sessionsCommand(
    "Repair or shorten a session so that its agent can open it again",
    async () => (await import("./commands/carry.ts")).rescue
  ),
  resume: sessionsCommand(
    "Continue a session in another agent, and print the command that opens it",
    async () => (await import("./commands/carry.ts")).resume
  ),
  recall: command(
    "Print the exact bytes behind a handle, or search what left the window",
    async () => (await import("./commands/recall.ts")).recall
  ),
  replay: command("Replay a recorded conversation in another window, without a model", async () => {
    const blobs = await import("../layers/testing/MemoryTempStore.ts")
    const stored = await import("../layers/testing/MemorySessionStore.ts")
    const { replay } = await import("./commands/replay.ts")
    return Command.provide(replay, Layer.provideMerge(stored.layer, blobs.layer))
  }),
  eval: command(
    "Measure how much a compression keeps of what the agent needed later",
    async () => (await import("./commands/eval.ts")).evaluate
  ),
  ask: command(
    "Ask once and print the answer; saved only with --session or --resume",
    async () => (await import("./agentCommands.ts")).ask
  ),
  chat: ownCommand("Chat with a model in the terminal", async () => (await import("./chatCommand.ts")).chat),
  agents: command("List, show and run agents", async () => (await import("./agentCommands.ts")).agents),
  memory: command(
    "Manage memory: the files that every conversation starts with",
    async () => (await import("./agentCommands.ts")).memory
  ),
  prompt: command(
    "Print the system prompt that this folder sends; token counts go to stderr",
    async () => (await import("./agentCommands.ts")).prompt
  ),
  serve: command("Serve sessions over HTTP: an API with event streams, and a web page", async () => {
    const { serve } = await import("./commands/serve.ts")
    return serve(
      (options) => lazyLayer(async () => (await import("../layers/assembly/LiveServe.ts")).layer(options)),
      lazily(async () => (await import("../layers/assembly/LiveServe.ts")).hasSqlite)
    )
  }),
  gateway: command("Run a proxy that keeps any client within its window by compressing its requests", async () => {
    const { gateway } = await import("./commands/gateway.ts")
    return gateway((options) =>
      lazyLayer(async () => (await import("../layers/assembly/LiveGateway.ts")).layer(options))
    )
  }),
  config: command("Manage settings", async () => (await import("./commands/config.ts")).config),
  trust: command(
    "Trust a folder: load its settings, memory, hooks, agents and skills",
    async () => (await import("./commands/trust.ts")).trust
  ),
  sessions: command("Manage saved sessions", async () => {
    const { sessions } = await import("./commands/sessions.ts")
    return Command.provide(
      sessions((resume) => converse({ resume })),
      await environment()
    )
  })
}

/** The commands as the help groups them. */
const groups: Readonly<Record<string, ReadonlyArray<keyof typeof commands>>> = {
  "TALK TO A MODEL": ["chat", "ask", "sessions", "agents", "memory", "prompt"],
  "SESSIONS OF ANY AGENT": ["find", "cost", "inspect", "compress", "recall", "rescue", "resume", "export", "secrets"],
  "OTHER AGENTS AND PROGRAMS": ["install", "uninstall", "mcp", "hook", "gateway", "serve"],
  "COMPARE STRATEGIES": ["replay", "eval"],
  SETTINGS: ["config", "trust"]
}

/** The program. Commands that the arguments do not name have only their name and description. */
const program = Effect.fnUntraced(function* (args: ReadonlyArray<string>) {
  const isWhole = args.some((argument) => argument.startsWith("--completions"))
  const loaded = yield* Effect.promise(() =>
    Promise.all(
      Object.entries(commands).map(
        async ([name, { load, stub }]) => [name, isWhole || args.includes(name) ? await load() : stub(name)] as const
      )
    )
  )
  const subcommands = Object.entries(groups).map(([group, names]) => ({
    group,
    commands: names.flatMap((name) => loaded.flatMap(([each, command]) => (each === name ? [command] : [])))
  }))
  return Command.make("palimpsest", {}, () => start).pipe(
    Command.withDescription("Compress agent conversations; what leaves the context window stays recallable"),
    Command.withSubcommands(subcommands),
    Command.withExamples([
      { command: "palimpsest", description: "Chat, on a terminal" },
      { command: `palimpsest -p "Why does the build fail?"`, description: "Ask once: short for ask" },
      { command: "palimpsest -c", description: "Continue the newest conversation: short for chat --continue" },
      { command: "palimpsest --approve edits", description: "All flags of chat and ask work without a command" }
    ]),
    Command.provide(diagnostics)
  )
})

/** The columns in which texts are wrapped; undefined without a terminal. */
const columnsOf = ({ columns, isTTY }: Pick<typeof process.stdout, "columns" | "isTTY">): number | undefined =>
  isTTY ? columnsWithin(columns) : undefined

const platform = Layer.mergeAll(
  NodePlatform.layer,
  ThisProcess.layer,
  Layer.succeed(References.LogToStderr, true),
  Layer.sync(Output.TerminalColumns, () => ({
    stdout: columnsOf(process.stdout),
    stderr: columnsOf(process.stderr)
  })),
  Logger.layer([logger])
)

const run = Effect.gen(function* () {
  const { args } = yield* Stdio.Stdio
  const words = withCommand(yield* args, (name) => Object.hasOwn(commands, name))
  return yield* Command.runWith(yield* program(words), { version })(words)
}).pipe(Effect.tapCause(report), Effect.provide(Layer.merge(platform, CliOutput.layerPresenter(presenter))))

const signals = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const

/** Signals closer together than this are one key press, received both from the terminal and from npm. */
const echoMillis = 300
/** Finalizers that take longer are abandoned. */
const finalizerMillis = 5_000

const statusOf = <A, E>(exit: Exit.Exit<A, E>): number => {
  if (Exit.isSuccess(exit)) return 0
  if (Cause.hasInterruptsOnly(exit.cause)) return signals.SIGINT
  const error = Cause.squash(exit.cause)
  if (CliError.isCliError(error)) return error._tag === "ShowHelp" && error.errors.length === 0 ? 0 : 2
  if (isConfigError(error)) return 2
  return Runtime.getErrorExitCode(error)
}

/** Exits at once and kills the commands and hooks that still run, since no finalizer will. */
const exitNow = (status: number): never => {
  for (const leader of runningGroups) {
    try {
      process.kill(-leader, "SIGKILL")
    } catch {
      // The process has already exited.
    }
  }
  process.exit(status)
}

const runMain = Runtime.makeRunMain(({ fiber, teardown }) => {
  let received: { readonly status: number; readonly at: number } | undefined
  const onSignal = (status: number) => () => {
    if (status === signals.SIGHUP && shutdown.ignoresHangup) return
    const at = performance.now()
    if (received !== undefined) {
      // A terminal that is closed hangs up twice: its shell does, and the system when the shell ends.
      if (at - received.at > echoMillis && status !== signals.SIGHUP) exitNow(received.status)
      return
    }
    received = { status, at }
    setTimeout(() => exitNow(status), finalizerMillis + shutdown.graceMillis).unref()
    fiber.interruptUnsafe(fiber.id)
  }
  for (const [signal, status] of Object.entries(signals)) process.on(signal, onSignal(status))
  // Writes report a closed pipe themselves; a late error event must not crash the process.
  process.stdout.on("error", () => {})
  process.stderr.on("error", () => {})
  fiber.addObserver((exit) => {
    teardown(exit, (status) => {
      const code = received !== undefined && Exit.isFailure(exit) ? received.status : status
      // Waits until the output is flushed.
      process.stdout.write("", () => process.stderr.write("", () => process.exit(code)))
    })
  })
})

/** Runs the program with the arguments of this process. */
export const main = (): void =>
  runMain(run, { disableErrorReporting: true, teardown: (exit, onExit) => onExit(statusOf(exit)) })

/** The names of the commands. */
export const commandNames = Object.keys(commands)

/** The estimator's table. The build saves it. */
export const tokenTable = async () => {
  const { encoded, fileName } = await import("../layers/tokens/TokenTable.ts")
  return { fileName, bytes: encoded() }
}

/** The help page of every command, with colours, by the words that choose it. The build saves them. */
export const helpPages = Effect.fnUntraced(
  function* () {
    const pages: Record<string, string> = {}
    const show = Command.runWith(yield* program(["--completions"]), { version })
    const rest: Array<ReadonlyArray<string>> = [[]]
    for (let words = rest.pop(); words !== undefined; words = rest.pop()) {
      const chosen = words
      const saving: CliOutput.Presenter = {
        present: (event) =>
          Effect.sync(() => {
            if (event._tag !== "Help") return
            pages[chosen.join(" ")] = helpText(event.helpDoc, Output.coloured, maxHelpColumns)
            const below = (event.helpDoc.subcommands ?? []).flatMap(({ commands }) => commands)
            rest.push(...below.map(({ name }) => [...chosen, name]))
          })
      }
      yield* Effect.provide(show([...chosen, "--help"]), CliOutput.layerPresenter(saving))
    }
    return pages
  },
  Effect.provide(platform),
  Effect.runPromise
)
