// Not from the package itself: that one brings HTTP along, and with it a slower bundle.
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Cause, Config, Effect, Exit, Layer, Logger, Option, Path, References, Runtime } from "effect"
import { CliError, CliOutput, Command, TerminalCapabilities } from "effect/cli"
import { printable } from "../domain/Inspection.ts"
import { withDefaults } from "../domain/Settings.ts"
import { visibleBlock } from "../domain/Visible.ts"
import { leaders } from "../services/ChildOutput.ts"
import { Memory } from "../services/Memory.ts"
import { Settings } from "../services/Settings.ts"
import { mark } from "../services/Telemetry.ts"
import * as Live from "../layers/Live.ts"
import { homeFolder } from "../layers/HomeFolder.ts"
import * as MemorySessionStore from "../layers/MemorySessionStore.ts"
import * as MemoryTempStore from "../layers/MemoryTempStore.ts"
import * as NodeTerminal from "../layers/NodeTerminal.ts"
import * as ThisProcess from "../layers/ThisProcess.ts"
import { Ground } from "./Worker.ts"
import { agents } from "./commands/agents.ts"
import { config } from "./commands/config.ts"
import { memory } from "./commands/memory.ts"
import { promptCommand } from "./commands/prompt.ts"
import { trust } from "./commands/trust.ts"
import { ask } from "./commands/ask.ts"
import { chat, converse } from "./commands/chat.ts"
import { inspect } from "./commands/inspect.ts"
import { compress } from "./commands/compress.ts"
import { evaluate } from "./commands/eval.ts"
import { recall } from "./commands/recall.ts"
import { replay } from "./commands/replay.ts"
import { sessions } from "./commands/sessions.ts"
import { ExitError } from "./ExitError.ts"
import * as OpenChat from "./OpenChat.ts"
import { assemble } from "./Prompting.ts"
import * as Output from "./Output.ts"
import { leftAlone } from "./Trusting.ts"

/** Put in by scripts/build.mjs. */
declare const PALIMPSEST_VERSION: string | undefined
const version = typeof PALIMPSEST_VERSION === "string" ? PALIMPSEST_VERSION : "0.0.0-source"

/** One line for what is wrong with the command line, and where to read on; the help itself only when it is asked for. */
const presenter: CliOutput.Presenter = {
  present: (event) =>
    event._tag === "InvalidInvocation"
      ? Effect.sync(() => {
          const problems = event.errors.map((error) => error.message).join("; ")
          process.stderr.write(`palimpsest: ${printable(problems)}\nTry "${event.commandPath.join(" ")} --help".\n`)
        })
      : CliOutput.defaultPresenter.present(event)
}

const isConfigError = (error: unknown): error is Config.ConfigError => error instanceof Config.ConfigError

/** Which variable, and what was expected of it. */
const configProblem = ({ message }: Config.ConfigError): string => {
  const [, expected = "", name = ""] = /\(?([^(]*?)\s*at \["(\w+)"\]/.exec(message.replace(/\s+/g, " ")) ?? []
  return name === "" ? message : `${name} has to be ${expected.replace(/^Expected\s*/, "")}`
}

/** Tells what went wrong in one line; a bug says that it is one. */
const report = <E>(cause: Cause.Cause<E>) => {
  if (Cause.hasInterruptsOnly(cause)) return Effect.void
  const error = Cause.squash(cause)
  if (CliError.isCliError(error) && error._tag === "ShowHelp") return Effect.void
  // All that there is to say has been said.
  if (error instanceof ExitError && error.message === "") return Effect.void
  if (isConfigError(error)) return Output.notice(configProblem(error))
  const message = error instanceof Error && error.message !== "" ? error.message : String(error)
  if (Cause.hasDies(cause)) {
    return Output.notice(
      `internal error: ${message} (this is a bug in palimpsest ${version}; run it again with --log-level debug and report what it says)`
    )
  }
  return Output.notice(message)
}

const plainLogger = Logger.make(({ message }) => {
  const words = (Array.isArray(message) ? message : [message]).map(String).join(" ")
  process.stderr.write(`palimpsest: ${printable(words)}\n`)
})

/** A warning is for a person: one line, as any other notice. All else is for who asked for it, with where and when. */
const logger = Logger.make((options) => {
  // That is for a collector.
  if (options.fiber.getRef(References.CurrentLogAnnotations)[mark] === true) return
  if (options.logLevel === "Warn" && options.cause.reasons.length === 0) plainLogger.log(options)
  else if (!process.stderr.isTTY) Logger.defaultLogger.log(options)
  // What it says may be of anybody.
  else process.stderr.write(`${visibleBlock(Logger.formatLogFmt.log(options))}\n`)
})

/** The whole of a defect, for who asked for it: inside a command, where `--log-level` holds. */
const diagnostics = Layer.effectDiscard(
  Effect.addFinalizer((exit) =>
    Exit.isFailure(exit) && Cause.hasDies(exit.cause) ? Effect.logDebug(exit.cause) : Effect.void
  )
)

const terminal = Layer.unwrap(Effect.map(homeFolder, (home) => NodeTerminal.layer(`${home}/history`)))

/** What tools stand on: loaded only where an agent works. */
const tools = Layer.unwrap(
  Effect.map(
    Effect.promise(() => Promise.all([import("../layers/LiveTools.ts"), import("../layers/LiveNetwork.ts")])),
    ([live, network]) =>
      Layer.provideMerge(
        Layer.effect(
          Ground,
          Effect.map(live.ground, (ground) => ({ ...ground, version }))
        ),
        Layer.merge(live.layer, network.layer)
      )
  )
)

/** Spans, metrics and logs go to a collector where the settings name one. What is wrong with those is told by who needs them. */
const exporting = Layer.unwrap(
  Effect.gen(function* () {
    const { read } = yield* Settings
    const found = yield* Effect.option(read)
    if (Option.isNone(found)) return Layer.empty
    const { enabled, endpoint, prompts } = withDefaults(found.value.settings).telemetry
    if (!enabled || endpoint === undefined) return Layer.empty
    const { layer } = yield* Effect.promise(() => import("../layers/Otlp.ts"))
    return layer({ endpoint, version, prompts })
  })
)

/** An agent, and all that works for it. */
const working = Layer.merge(tools, exporting)

/** What is remembered in the working folder. */
const remembering = Layer.effect(
  Memory,
  Effect.gen(function* () {
    const { memory: of } = yield* Ground
    const path = yield* Path.Path
    const { files, settings } = yield* OpenChat.readSettings
    const all = withDefaults(settings)
    const own = withDefaults(files.home)
    const root = path.resolve(".")
    const untaken = yield* leftAlone(root)
    if (untaken !== undefined) yield* Output.notice(untaken)
    return yield* of({ root, added: all.includeDirectories, settings: all, own })
  })
)

/** A chat, and all that works in it. */
const chatting = Layer.merge(terminal, working)

/** Without a subcommand a person at a terminal begins a chat; anybody else is told what there is. */
const start = Effect.gen(function* () {
  const { canPrompt } = yield* TerminalCapabilities.TerminalCapabilities
  return yield* canPrompt
    ? Effect.provide(converse({}), chatting)
    : Effect.fail(new CliError.ShowHelp({ commandPath: ["palimpsest"], errors: [] }))
})

const program = Command.make("palimpsest", {}, () => start).pipe(
  Command.withDescription("Conversations of any length: what leaves the window stays recallable"),
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
    promptCommand(assemble).pipe(Command.provide(tools)),
    config,
    trust,
    sessions((resume) => Effect.provide(converse({ resume }), chatting))
  ]),
  Command.provide(Layer.mergeAll(Live.layer, diagnostics)),
  Command.run({ version }),
  Effect.tapCause(report),
  Effect.provide(
    Layer.mergeAll(
      NodeServices.layer,
      ThisProcess.layer,
      Layer.succeed(References.LogToStderr, true),
      Logger.layer([logger]),
      CliOutput.layerPresenter(presenter)
    )
  )
)

const signals = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const

/** Signals closer together are one key press that reached us twice: through the terminal and through npm. */
const echoMillis = 300
/** Finalizers that take longer are not waited for. */
const finalizerMillis = 5_000

const statusOf = <A, E>(exit: Exit.Exit<A, E>): number => {
  if (Exit.isSuccess(exit)) return 0
  if (Cause.hasInterruptsOnly(exit.cause)) return signals.SIGINT
  const error = Cause.squash(exit.cause)
  if (CliError.isCliError(error)) return error._tag === "ShowHelp" && error.errors.length === 0 ? 0 : 2
  if (isConfigError(error)) return 2
  return Runtime.getErrorExitCode(error)
}

/** Ends at once, and with it what commands and hooks still run: nobody is left to do that. */
const exitNow = (status: number): never => {
  for (const leader of leaders) {
    try {
      process.kill(-leader, "SIGKILL")
    } catch {
      // It has ended by itself.
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
  // A reader that has gone is told where we write; late news of it must not become a stack trace.
  process.stdout.on("error", () => {})
  process.stderr.on("error", () => {})
  fiber.addObserver((exit) => {
    teardown(exit, (status) => {
      const code = received !== undefined && Exit.isFailure(exit) ? received.status : status
      // What was written is on its way before the process ends.
      process.stdout.write("", () => process.stderr.write("", () => process.exit(code)))
    })
  })
})

runMain(program, { disableErrorReporting: true, teardown: (exit, onExit) => onExit(statusOf(exit)) })
