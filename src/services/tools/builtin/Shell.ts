/** The `run_shell_command` tool: runs shell commands, in the background too, and asks before it does. */

import { Clock, Duration, Effect, Exit, Option, type PlatformError, Schema, Scope } from "effect"
import { endText, outputText } from "../../../domain/agent/DecodedOutput.ts"
import { redactHidden } from "../../../domain/text/ChildEnvironment.ts"
import { HeadAndTail } from "../../../domain/text/HeadAndTail.ts"
import { shellTool } from "../../../domain/tools/Approval.ts"
import { analyzeCommand, coversOf, grantsOf } from "../../../domain/tools/ShellCommand.ts"
import { type ToolResult, textDisplay } from "../../../domain/tools/ToolResult.ts"
import { awaitOutput, signalOf } from "../../platform/ChildOutput.ts"
import { makeProgramFinder } from "../../platform/ProgramLookup.ts"
import { inspect } from "../../platform/RegularFile.ts"
import { Workspace } from "../../workspace/Workspace.ts"
import { ShellGrammar } from "../ShellGrammar.ts"
import { type CallContext, type Tool, type ToolFailure, makePrepared, pathArgument } from "../Tool.ts"
import { BackgroundCommands } from "./BackgroundCommands.ts"
import {
  FindProgram,
  type RunningCommand,
  type ShellServices,
  ShellSettings,
  backgroundScript,
  foregroundScript,
  signals,
  startCommand
} from "./ShellProcess.ts"

/** The number of folders in a path. */
const depthOf = (folder: string): number => folder.split("/").filter((part) => part !== "").length

/** What a grant for a command covers. Undefined: nothing, so every such command asks. */
const coverage = Effect.fnUntraced(function* (command: string, folder: string) {
  const workspace = yield* Workspace
  const grammar = yield* ShellGrammar
  const tree = yield* grammar.parse(command)
  const analyzed = tree === undefined ? undefined : analyzeCommand(command, tree)
  if (analyzed === undefined) return undefined
  // Counts `..` as a shell does that was started in a folder without links.
  const from = (base: string, place: string) => (place.startsWith("/") ? place : `${base}/${place}`)
  const writable = (base: string, place: string) => workspace.path(from(base, place), "write")
  const places = Effect.gen(function* () {
    const here = analyzed.folder === undefined ? folder : yield* writable(folder, analyzed.folder)
    const commands = yield* Effect.forEach(analyzed.commands, (command) =>
      command.folder === undefined
        ? Effect.succeed(command)
        : Effect.map(writable(here, command.folder), (folder) => ({ ...command, folder }))
    )
    for (const read of analyzed.reads) {
      const place = yield* workspace.path(from(here, read), "read")
      yield* inspect(place, place)
    }
    for (const place of analyzed.makes) yield* writable(here, place)
    return { here, commands }
  })
  const resolved = yield* Effect.option(places)
  if (Option.isNone(resolved)) return undefined
  const { commands, here } = resolved.value
  const depths = [folder, here, ...commands.flatMap(({ folder }) => folder ?? [])].map(depthOf)
  if (analyzed.climbs !== undefined && analyzed.climbs >= Math.min(...depths)) return undefined
  const shown = (place: string) => (place === workspace.root ? "this folder" : workspace.shown(place))
  const analysis = { ...analyzed, commands }
  return { grants: grantsOf(analysis, here, workspace.root), covers: coversOf(analysis, shown(here), shown) }
})

/** The question before a command runs in a folder: the command as it will run, and what a grant would cover. */
const commandQuestion = Effect.fnUntraced(function* (command: string, folder: string, isBackground: boolean) {
  const workspace = yield* Workspace
  const where = folder === workspace.root ? "" : `\n(in ${workspace.shown(folder)})`
  const how = isBackground ? "\n(in the background)" : ""
  const { covers, grants } = (yield* coverage(command, folder)) ?? { covers: "this command", grants: [] }
  return { detail: `${command}${where}${how}`, grants, covers, edits: { argument: "command", text: command } }
})

const Parameters = Schema.Struct({
  command: Schema.String.check(
    Schema.makeFilter((command) => command.trim() !== "" || "a command, not an empty text")
  ).annotate({ description: "The command, as typed into bash" }),
  description: Schema.optional(Schema.String).annotate({
    description: "What the command is for, in one short sentence"
  }),
  dir_path: Schema.optional(Schema.String).annotate({
    description: "The folder of the workspace to run it in. Default: the workspace itself"
  }),
  is_background: Schema.optional(Schema.Boolean).annotate({
    description: "True for a command that keeps running, such as a server: the call returns as soon as it has started"
  })
})
type Parameters = typeof Parameters.Type

const description = `Runs a command in bash (in sh where bash is not installed) and returns its output and how it ended. Its input is empty, so use flags that answer questions beforehand. A command that prints nothing for a long time is stopped together with everything it started. Start servers, watchers and other commands that keep running with is_background, and redirect their output to a file if you need it; they end with this session at the latest. Secrets in the environment are not passed on.`

/** How a command ended, or that it is running. */
interface State {
  readonly command: string
  readonly folder: string
  readonly error?: string | undefined
  readonly code?: number | undefined
  readonly signal?: string | undefined
  readonly left: ReadonlyArray<number>
  readonly group: number
}

/** The answer to the model, in the form of Gemini CLI. */
const labelled = (state: State, stdout: string, stderr: string): string =>
  [
    `Command: ${state.command}`,
    `Directory: ${state.folder}`,
    `Stdout: ${stdout === "" ? "(empty)" : stdout}`,
    `Stderr: ${stderr === "" ? "(empty)" : stderr}`,
    `Error: ${state.error ?? "(none)"}`,
    `Exit Code: ${state.code ?? "(none)"}`,
    `Signal: ${state.signal ?? "(none)"}`,
    `Background PIDs: ${state.left.length === 0 ? "(none)" : state.left.join(", ")}`,
    `Process Group PGID: ${state.group}`
  ].join("\n")

/** Where a command runs, and how that is shown. */
interface WorkingFolder {
  readonly cwd: string
  readonly folder: string
}

/** The answer to a call, and whether processes of its group keep running. */
interface CallEnd {
  readonly result: ToolResult<string>
  readonly isRunning: boolean
}

/** Bytes of each stream shown of a running command. */
const shownBytes = 16 * 1024
/** Lines of each stream shown of a command that ended. */
const shownLines = 10

/** How long to wait for a background command that fails at once. */
const backgroundCheck = Duration.millis(200)

const lastLines = (text: string): string => text.trimEnd().split("\n").slice(-shownLines).join("\n")

/** The ends of both streams, for the user. */
const latestOutput = ({ err, hidden, out }: RunningCommand): string =>
  [out, err]
    .map((output) => redactHidden(endText(output.end(shownBytes)), hidden))
    .filter((text) => text !== "")
    .join("\n")

/** The answer of a call. Releases the captured output, and keeps `keptBytes` of what follows. */
const resultOf = (state: State, running: RunningCommand, keptBytes = 0): ToolResult<string> => {
  const stdout = redactHidden(outputText(running.out.kept()), running.hidden)
  const stderr = redactHidden(outputText(running.err.kept()), running.hidden)
  const how =
    state.error ??
    (state.signal === undefined
      ? state.code === undefined
        ? `runs in the background, process group ${state.group}`
        : `exit code ${state.code}`
      : `ended by ${state.signal}`)
  const display = textDisplay([lastLines(stdout), lastLines(stderr), how].filter((text) => text !== "").join("\n"))
  running.out = new HeadAndTail(keptBytes)
  running.err = new HeadAndTail(keptBytes)
  return { value: labelled(state, stdout, stderr), display }
}

/** Ends when the command has printed nothing for `limit`. */
const untilIdle = (running: RunningCommand, limit: Duration.Duration): Effect.Effect<void> =>
  Effect.gen(function* () {
    for (;;) {
      const left = running.last + Duration.toMillis(limit) - (yield* Clock.currentTimeMillis)
      if (left <= 0) return
      yield* Effect.sleep(left)
    }
  })

/** Shows new output, at most once a second. */
const showOutput = (running: RunningCommand, { progress }: CallContext): Effect.Effect<never> =>
  Effect.gen(function* () {
    for (let shown = 0; ;) {
      yield* Effect.sleep("1 second")
      if (running.pieces === shown) continue
      shown = running.pieces
      yield* progress(latestOutput(running))
    }
  })

/** Runs a command until it ends, is idle for too long, or is cancelled. */
const foreground = Effect.fnUntraced(function* (
  { command }: Parameters,
  { cwd, folder }: WorkingFolder,
  context: CallContext,
  scope: Scope.Scope
) {
  const running = yield* startCommand(foregroundScript, command, cwd, scope)
  const { grace, inactivity } = yield* ShellSettings
  const limit = Duration.fromInputUnsafe(inactivity)
  const state: State = { command, folder, left: [], group: running.handle.pid }
  const end = Effect.gen(function* (): Effect.fn.Return<CallEnd> {
    const isOver = Effect.as(Effect.exit(running.handle.exitCode), true)
    if (yield* Effect.raceFirst(isOver, Effect.as(untilIdle(running, limit), false))) {
      const exit = yield* Effect.exit(running.handle.exitCode)
      const report = Exit.isSuccess(exit) ? yield* running.report : undefined
      yield* awaitOutput(running)
      const signal = report === undefined ? signalOf(exit) : signals[report.code]
      const left = report?.left ?? []
      return { isRunning: left.length > 0, result: resultOf({ ...state, left, code: report?.code, signal }, running) }
    }
    const exit = yield* Effect.andThen(
      Effect.ignore(running.handle.kill({ forceKillAfter: grace })),
      Effect.exit(running.handle.exitCode)
    )
    yield* awaitOutput(running)
    const error = `it printed nothing for ${Duration.format(limit)} and was stopped; what it printed before is kept`
    return { isRunning: false, result: resultOf({ ...state, error, signal: signalOf(exit) }, running) }
  })
  return yield* Effect.raceFirst(end, showOutput(running, context)).pipe(
    Effect.onInterrupt(() => {
      const { value } = resultOf({ ...state, error: "it was cancelled before it ended" }, running)
      return context.progress(value)
    })
  )
})

/** How a command in the background ended. */
const endOf = (exit: Exit.Exit<number, PlatformError.PlatformError>): string =>
  Exit.isSuccess(exit) ? `exit code ${exit.value}` : `ended by ${signalOf(exit) ?? "a signal"}`

/** Starts a command and returns while it runs, unless it ends at once. */
const background = Effect.fnUntraced(function* (
  { command }: Parameters,
  { cwd, folder }: WorkingFolder,
  scope: Scope.Closeable
) {
  const running = yield* startCommand(backgroundScript, command, cwd, scope)
  const { handle } = running
  const state: State = { command, folder, left: [handle.pid], group: handle.pid }
  const exit = yield* Effect.exit(handle.exitCode).pipe(
    Effect.timeoutOrElse({ duration: backgroundCheck, orElse: () => Effect.undefined })
  )
  if (exit === undefined) {
    const result = resultOf(state, running, shownBytes)
    const commands = yield* BackgroundCommands
    yield* commands.add({
      id: handle.pid,
      command,
      startedAt: yield* Clock.currentTimeMillis,
      ended: handle.isRunning.pipe(
        Effect.flatMap((isRunning) => (isRunning ? Effect.undefined : Effect.map(Effect.exit(handle.exitCode), endOf))),
        Effect.orElseSucceed(() => "ended")
      ),
      output: Effect.sync(() => latestOutput(running)),
      stop: Scope.close(scope, Exit.void)
    })
    return { isRunning: true, result }
  }
  yield* awaitOutput(running)
  const code = Exit.isSuccess(exit) ? exit.value : undefined
  // It may have left something running on purpose, as daemons do.
  return { isRunning: code === 0, result: resultOf({ ...state, left: [], code, signal: signalOf(exit) }, running) }
})

/** Carries out a call. However it ends, its processes are ended, unless they are meant to outlast it. */
const run = Effect.fnUntraced(function* (args: Parameters, cwd: string, context: CallContext, outlasting: Scope.Scope) {
  const workspace = yield* Workspace
  const place: WorkingFolder = { cwd, folder: cwd === workspace.root ? "(root)" : workspace.shown(cwd) }
  return yield* Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const own = yield* Scope.fork(outlasting)
      const work = args.is_background === true ? background(args, place, own) : foreground(args, place, context, own)
      const ended = yield* Effect.exit(restore(work))
      if (!Exit.isSuccess(ended) || !ended.value.isRunning) yield* Scope.close(own, Exit.void)
      return (yield* ended).result
    })
  )
})

/**
 * The `run_shell_command` tool.
 *
 * Each command runs in its own process group. However its call ends, no process of that group remains, except what a command that
 * ended by itself left running and what was started in the background: those end when the scope closes in which the tool was made. A
 * process that leaves its group (`setsid`) is not followed.
 */
export const shell: Effect.Effect<Tool, never, ShellServices | Scope.Scope> = Effect.gen(function* () {
  const services = yield* Effect.context<ShellServices>()
  const workspace = yield* Workspace
  const find = yield* makeProgramFinder(workspace.folders)
  const outlasting = yield* Scope.fork(yield* Effect.scope, "parallel")
  const provided = <A, E>(work: Effect.Effect<A, E, ShellServices>): Effect.Effect<A, E> =>
    work.pipe(Effect.provideService(FindProgram, find), Effect.provideContext(services))
  const folderOf = (name: string | undefined): Effect.Effect<string, ToolFailure> =>
    name === undefined || name === "" ? Effect.succeed(workspace.root) : pathArgument(workspace, name, "write")
  return makePrepared({
    name: shellTool,
    description,
    parameters: Parameters,
    result: Schema.String,
    kind: "execute",
    title: ({ command }) => command,
    // The question and the run share the folder: the command runs in the folder that the user saw.
    prepare: (args, context) =>
      folderOf(args.dir_path).pipe(
        Effect.cached,
        Effect.map((folder) => ({
          question: Effect.flatMap(folder, (place) =>
            provided(commandQuestion(args.command, place, args.is_background === true))
          ),
          run: Effect.flatMap(folder, (place) => provided(run(args, place, context, outlasting)))
        }))
      )
  })
})
