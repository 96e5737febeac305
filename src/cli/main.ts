import { Cause, Config, Console, Effect, Exit, Layer, Logger, Option, Path, References, Runtime } from "effect"
import { CliError, CliOutput, Command, TerminalCapabilities } from "effect/cli"
import { withDefaults } from "../domain/settings/Settings.ts"
import { visibleBlock, printableLine } from "../domain/text/InvisibleCharacters.ts"
import * as Live from "../layers/Live.ts"
import { homeFolder } from "../layers/platform/HomeFolder.ts"
import * as NodePlatform from "../layers/platform/NodePlatform.ts"
import * as ThisProcess from "../layers/platform/ThisProcess.ts"
import * as NodeTerminal from "../layers/terminal/NodeTerminal.ts"
import * as MemorySessionStore from "../layers/testing/MemorySessionStore.ts"
import * as MemoryTempStore from "../layers/testing/MemoryTempStore.ts"
import { Memory } from "../services/memory/Memory.ts"
import { runningGroups } from "../services/platform/ChildOutput.ts"
import { untrustedNotice } from "../services/runtime/FolderTrust.ts"
import * as PromptPreview from "../services/runtime/PromptPreview.ts"
import { RuntimePlatform } from "../services/runtime/RuntimePlatform.ts"
import { readSettings } from "../services/runtime/SessionOpening.ts"
import { Settings } from "../services/settings/Settings.ts"
import { telemetryMark } from "../services/telemetry/Telemetry.ts"
import { agents } from "./commands/agents.ts"
import { ask } from "./commands/ask.ts"
import { chat, converse } from "./commands/chat.ts"
import { compress } from "./commands/compress.ts"
import { config } from "./commands/config.ts"
import { evaluate } from "./commands/eval.ts"
import { inspect } from "./commands/inspect.ts"
import { memory } from "./commands/memory.ts"
import { promptCommand } from "./commands/prompt.ts"
import { recall } from "./commands/recall.ts"
import { replay } from "./commands/replay.ts"
import { sessions } from "./commands/sessions.ts"
import { trust } from "./commands/trust.ts"
import { ExitError } from "./output/ExitError.ts"
import { helpText } from "./output/HelpText.ts"
import * as Output from "./output/Output.ts"
import * as RuntimeText from "./output/RuntimeText.ts"

/** Defined by scripts/build.mjs. */
declare const PALIMPSEST_VERSION: string | undefined
const version = typeof PALIMPSEST_VERSION === "string" ? PALIMPSEST_VERSION : "0.0.0-source"

/**
 * Prints help pages in our own layout, and a one-line error for an invalid command line. The help page is printed only on
 * request.
 */
const presenter: CliOutput.Presenter = {
  present: (event) => {
    switch (event._tag) {
      case "Help":
        return Effect.flatMap(TerminalCapabilities.TerminalCapabilities, ({ canColor }) =>
          Console.log(helpText(event.helpDoc, canColor ? Output.coloured : Output.plain))
        )
      case "InvalidInvocation":
        return Effect.sync(() => {
          const problems = event.errors.map((error) => error.message).join("; ")
          process.stderr.write(`palimpsest: ${printableLine(problems)}\nTry "${event.commandPath.join(" ")} --help".\n`)
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

const plainLogger = Logger.make(({ message }) => {
  const words = (Array.isArray(message) ? message : [message]).map(String).join(" ")
  process.stderr.write(`palimpsest: ${printableLine(words)}\n`)
})

/**
 * Prints a warning in one line, as any other notice. Other levels are printed in full, with time and place, for the user who
 * enabled them.
 */
const logger = Logger.make((options) => {
  // Telemetry goes to a collector.
  if (options.fiber.getRef(References.CurrentLogAnnotations)[telemetryMark] === true) return
  if (options.logLevel === "Warn" && options.cause.reasons.length === 0) plainLogger.log(options)
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

const terminal = Layer.unwrap(Effect.map(homeFolder, (home) => NodeTerminal.layer(`${home}/history`)))

/** The services of tools, loaded only when an agent runs. */
const tools = Layer.unwrap(
  Effect.map(
    Effect.promise(() => Promise.all([import("../layers/LiveTools.ts"), import("../layers/LiveNetwork.ts")])),
    ([live, network]) => Layer.provideMerge(live.runtimePlatform(version), Layer.merge(live.layer, network.layer))
  )
)

/**
 * Exports spans, metrics and logs to a collector if the settings name one. Invalid settings are reported by the command that
 * reads them.
 */
const exporting = Layer.unwrap(
  Effect.gen(function* () {
    const { read } = yield* Settings
    const effective = yield* Effect.option(read)
    if (Option.isNone(effective)) return Layer.empty
    const { enabled, endpoint, prompts } = withDefaults(effective.value.settings).telemetry
    if (!enabled || endpoint === undefined) return Layer.empty
    const { layer } = yield* Effect.promise(() => import("../layers/telemetry/Otlp.ts"))
    return layer({ endpoint, version, prompts })
  })
)

/** The services of a command that runs an agent. */
const working = Layer.merge(tools, exporting)

/** The memory of the working folder. */
const remembering = Layer.effect(
  Memory,
  Effect.gen(function* () {
    const { memory: of } = yield* RuntimePlatform
    const path = yield* Path.Path
    const notify = yield* RuntimeText.notify
    const { files, settings } = yield* RuntimeText.orExit(readSettings(notify))
    const all = withDefaults(settings)
    const own = withDefaults(files.home)
    const root = path.resolve(".")
    const untrusted = yield* untrustedNotice(root)
    if (untrusted !== undefined) yield* notify(untrusted)
    return yield* of({ root, added: all.includeDirectories, settings: all, own })
  })
)

const chatting = Layer.merge(terminal, working)

/** Without a subcommand, starts a chat in an interactive terminal and shows the help page otherwise. */
const start = Effect.gen(function* () {
  const { canPrompt } = yield* TerminalCapabilities.TerminalCapabilities
  return yield* canPrompt
    ? Effect.provide(converse({}), chatting)
    : Effect.fail(new CliError.ShowHelp({ commandPath: ["palimpsest"], errors: [] }))
})

const program = Command.make("palimpsest", {}, () => start).pipe(
  Command.withDescription("Compress agent conversations; what leaves the context window stays recallable"),
  Command.withSubcommands([
    compress(tools),
    inspect,
    recall,
    replay.pipe(Command.provide(Layer.provideMerge(MemorySessionStore.layer, MemoryTempStore.layer))),
    evaluate,
    ask.pipe(Command.provide(working)),
    chat.pipe(Command.provide(chatting)),
    agents.pipe(Command.provide(working)),
    memory.pipe(Command.provide(Layer.provideMerge(remembering, tools))),
    promptCommand((flags) =>
      Effect.flatMap(RuntimeText.notify, (notify) => RuntimeText.orExit(PromptPreview.make(flags, notify)))
    ).pipe(Command.provide(tools)),
    config,
    trust,
    sessions((resume) => Effect.provide(converse({ resume }), chatting))
  ]),
  Command.provide(Layer.mergeAll(Live.layer, diagnostics)),
  Command.run({ version }),
  Effect.tapCause(report),
  Effect.provide(
    Layer.mergeAll(
      NodePlatform.layer,
      ThisProcess.layer,
      Layer.succeed(References.LogToStderr, true),
      Logger.layer([logger]),
      CliOutput.layerPresenter(presenter)
    )
  )
)

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
    const at = performance.now()
    if (received !== undefined) {
      if (at - received.at > echoMillis) exitNow(received.status)
      return
    }
    received = { status, at }
    setTimeout(() => exitNow(status), finalizerMillis).unref()
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

runMain(program, { disableErrorReporting: true, teardown: (exit, onExit) => onExit(statusOf(exit)) })
