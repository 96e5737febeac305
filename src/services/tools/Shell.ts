import {
  Clock,
  Context,
  Duration,
  Effect,
  Exit,
  Fiber,
  type FileSystem,
  Option,
  type Path,
  type PlatformError,
  Schema,
  Scope,
  Stream
} from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import { childEnvironment, type Hidden, hiddenOf, withoutHidden } from "../../domain/ChildEnvironment.ts"
import { diskTrouble } from "../../domain/DiskTrouble.ts"
import { headAndTail } from "../../domain/HeadAndTail.ts"
import { endText, outputText } from "../../domain/OutputText.ts"
import { withAbsolutePath } from "../../domain/SearchPath.ts"
import { coversOf, grantsOf, judge } from "../../domain/ShellCommand.ts"
import { type ToolResult, words } from "../../domain/ToolResult.ts"
import { quoted } from "../../domain/WorkspacePath.ts"
import { type ChildOutput, drained, noOutput, signalOf, takeOutput } from "../ChildOutput.ts"
import { Environment } from "../Environment.ts"
import { finder } from "../Programs.ts"
import { look } from "../RegularFile.ts"
import { ShellGrammar } from "../ShellGrammar.ts"
import { type CallContext, makePrepared, type Question, type Tool, ToolFailure } from "../Tool.ts"
import { Workspace } from "../Workspace.ts"

/** How commands are run. */
export interface ShellOptions {
  /** A command that prints nothing for so long is stopped (spec 14: 300 s). */
  readonly inactivity: Duration.Input
  /** How long processes may take to end by themselves before they are killed. */
  readonly grace: Duration.Input
  /** Bytes kept of stdout and of stderr, each (spec 14: 16 MiB). */
  readonly buffer: number
  /** Variables that commands are given although they look like keys. */
  readonly passed: ReadonlyArray<string>
  /**
   * Whether commands find programs in relative parts of PATH, as they do where the person types them: only where they trust
   * the folder, whose programs those are. Absent: in absolute parts alone, which name their folder whatever one works in.
   */
  readonly relativePath?: boolean | undefined
}

/** How commands are run where nothing else is set. */
export const ShellSettings = Context.Reference<ShellOptions>("palimpsest/services/tools/Shell/ShellSettings", {
  defaultValue: () => ({ inactivity: "300 seconds", grace: "2 seconds", buffer: 16 * 1024 * 1024, passed: [] })
})

const Parameters = Schema.Struct({
  command: Schema.String.check(
    Schema.makeFilter((command) => command.trim() !== "" || "a command, not an empty text")
  ).annotate({ description: "What to run, as it would be typed into bash" }),
  description: Schema.optional(Schema.String).annotate({ description: "What it is for, in one short sentence" }),
  dir_path: Schema.optional(Schema.String).annotate({
    description: "The folder to run it in, within the workspace; absent: the workspace itself"
  }),
  is_background: Schema.optional(Schema.Boolean).annotate({
    description: "True for what runs on by itself, such as a server: the call ends as soon as it has started"
  })
})
type Parameters = typeof Parameters.Type

const description = `Runs a command in bash (in sh where there is no bash) and tells what it printed and how it ended. There is nobody to type: its input is empty, so use flags that answer questions beforehand. A command that prints nothing for a long time is stopped together with all it started. Start what runs on by itself, such as a server or a watcher, with is_background, and have it write into a file if its output matters; it ends with this session at the latest. Keys and passwords of the environment are not passed on.`

/**
 * Waits until this program has seen to it that the group ends with it, then gives the command an empty input. Without this, a
 * program that is killed right after it started a command would leave it running.
 */
const gate = `read -r go || exit 0
exec </dev/null`

/** What the gate waits for. */
const go = new TextEncoder().encode("go\n")

/**
 * Runs the command in a shell of its own, then tells over stream 3 how that ended and which processes of its group are left
 * (pid, parent, group, state). It always ends with 0 itself: effect's spawner ends the whole group of a process that does
 * not. `2>/dev/null`, and a subshell: what this shell has to say of a signal is nobody's output.
 */
const script = `${gate}
exec 4>&2 2>/dev/null
(exec "$2" -c "$1" "\${2##*/}" 2>&4 3>&- 4>&-)
code=$?
exec 4>&- >/dev/null
echo "$$ $code" >&3
{ "$3" -A -o pid= -o ppid= -o pgid= -o stat= || "$4" -g "$$"; } >&3
exit 0`

/**
 * What git is told whatever a repository says: it takes no folder for one that merely looks like one, and asks no program which
 * files changed. What a clone, an edit or an archive puts there would run programs.
 */
const gitSettings = [
  ["safe.bareRepository", "explicit"],
  ["core.fsmonitor", "false"]
] as const

/** The environment of a command, in which its words mean what they say: `cd` goes to folders below it and nowhere else. */
const shellEnvironment = ({ CDPATH: _, ...variables }: Record<string, string>): Record<string, string> => {
  const set = Number(variables["GIT_CONFIG_COUNT"] ?? 0)
  const count = Number.isInteger(set) && set >= 0 ? set : 0
  return {
    ...variables,
    GIT_CONFIG_COUNT: String(count + gitSettings.length),
    ...Object.fromEntries(
      gitSettings.flatMap(([key, value], index) => [
        [`GIT_CONFIG_KEY_${count + index}`, key],
        [`GIT_CONFIG_VALUE_${count + index}`, value]
      ])
    )
  }
}

/** For the background: the shell becomes the command, so that its number is that of the group. */
const plain = `${gate}
exec 3>&-
exec "$2" -c "$1" "\${2##*/}"`

/** How the wrapping shell says that a command ended. */
interface Report {
  readonly code: number
  /** Processes of the group that run on. */
  readonly left: ReadonlyArray<number>
}

const reportOf = (text: string): Report | undefined => {
  const [first = "", ...rest] = text.split("\n")
  const [pid, code] = first.split(" ").map(Number)
  if (pid === undefined || code === undefined || !Number.isInteger(code)) return undefined
  const left = rest.flatMap((line) => {
    const [process = "", parent, group, state = ""] = line.trim().split(/\s+/)
    // Where there is no ps, pgrep tells the numbers alone; itself and its shell it does not count.
    if (group === undefined) return process === "" || Number(process) === pid ? [] : [Number(process)]
    const isOurs = Number(group) === pid && Number(process) !== pid && Number(parent) !== pid
    return isOurs && !state.startsWith("Z") ? [Number(process)] : []
  })
  return { code, left }
}

/** Shells tell of a signal as 128 and its number. 129 is left out: git says so of wrong arguments. */
const signals: Readonly<Record<number, string>> = {
  130: "SIGINT",
  131: "SIGQUIT",
  132: "SIGILL",
  134: "SIGABRT",
  135: "SIGBUS",
  136: "SIGFPE",
  137: "SIGKILL",
  139: "SIGSEGV",
  141: "SIGPIPE",
  143: "SIGTERM"
}

/** How a command ended, or where it stands. */
interface State {
  readonly command: string
  readonly folder: string
  readonly error?: string | undefined
  readonly code?: number | undefined
  readonly signal?: string | undefined
  readonly left: ReadonlyArray<number>
  readonly group: number
}

/** How many folders lie above what is in a folder. */
const partsOf = (folder: string): number => folder.split("/").filter((part) => part !== "").length

/** The lines of seed 004's appendix. */
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

/** A command that runs, and what it printed so far. */
interface Running extends ChildOutput {
  readonly handle: ChildProcessSpawner.ChildProcessHandle
  /** What it was not given, and may have found all the same: in `/proc`, in a file. */
  readonly hidden: ReadonlyArray<Hidden>
  /** What the wrapping shell said; undefined: it did not live to say it. */
  report: Effect.Effect<Report | undefined>
}

/** Where a command runs, and as what that is told. */
interface Place {
  readonly cwd: string
  readonly folder: string
}

/** The answer to a call, and whether something of its group runs on. */
interface Ended {
  readonly result: ToolResult<string>
  readonly keeps: boolean
}

/** Bytes of either stream that a person sees of a running command. */
const shownBytes = 16 * 1024
/** Lines that a person sees of one that ended. */
const shownLines = 10

/** How long a command in the background is watched, in case it fails at once. */
const settling = Duration.millis(200)

const lastLines = (text: string): string => text.trimEnd().split("\n").slice(-shownLines).join("\n")

/** The ends of both streams. */
const sofar = ({ err, hidden, out }: Running): string =>
  [out, err]
    .map((output) => withoutHidden(endText(output.end(shownBytes)), hidden))
    .filter((text) => text !== "")
    .join("\n")

/** The whole answer. The output is not needed any more after it. */
const resultOf = (state: State, running: Running): ToolResult<string> => {
  const stdout = withoutHidden(outputText(running.out.kept()), running.hidden)
  const stderr = withoutHidden(outputText(running.err.kept()), running.hidden)
  const how =
    state.error ??
    (state.signal === undefined
      ? state.code === undefined
        ? `runs in the background, process group ${state.group}`
        : `exit code ${state.code}`
      : `ended by ${state.signal}`)
  const display = words([lastLines(stdout), lastLines(stderr), how].filter((text) => text !== "").join("\n"))
  running.out = headAndTail(0)
  running.err = headAndTail(0)
  return { value: labelled(state, stdout, stderr), display }
}

const notStarted = (why: string): ToolFailure =>
  new ToolFailure({ message: `the command could not be started: ${quoted(why)}`, type: "shell_execute_error" })

const failureOf = ({ reason }: PlatformError.PlatformError): ToolFailure =>
  notStarted(reason._tag === "BadArgument" ? (reason.description ?? reason.message) : reason.message)

/** What Node throws at once: the folder is none, the command is longer than the system takes. */
const thrown = (defect: unknown): ToolFailure => {
  const message = defect instanceof Error ? defect.message : String(defect)
  return notStarted(
    message.includes("E2BIG")
      ? "it is too long for the system; write it into a file and run that"
      : message.includes("ENOTDIR")
        ? "dir_path is no folder"
        : message
  )
}

/**
 * The tool that runs commands. Each runs in a process group of its own; whatever way its call ends, nothing of that group is
 * left, save what a command that ended by itself left running and what was started in the background: that is ended when
 * the scope closes in which the tool was made. A process that leaves its group (`setsid`) is not followed.
 */
export const shell: Effect.Effect<
  Tool,
  never,
  ChildProcessSpawner.ChildProcessSpawner | Environment | FileSystem.FileSystem | Path.Path | Scope.Scope | Workspace
> = Effect.gen(function* () {
  const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
  const workspace = yield* Workspace
  const environment = yield* Environment
  const grammar = yield* ShellGrammar
  const files = yield* Effect.context<FileSystem.FileSystem>()
  const { buffer, grace, inactivity, passed, relativePath = false } = yield* ShellSettings
  const find = yield* finder(workspace.folders)
  const limit = Duration.fromInputUnsafe(inactivity)
  const outlasting = yield* Scope.fork(yield* Effect.scope, "parallel")

  const folderOf = (given: string | undefined): Effect.Effect<string, ToolFailure> =>
    given === undefined || given === "" ? Effect.succeed(workspace.root) : workspace.path(given, "write")

  /** What a grant for a command covers; undefined: it is asked for each time. */
  const covered = Effect.fnUntraced(function* (command: string, folder: string) {
    const tree = yield* grammar.parse(command)
    const judged = tree === undefined ? undefined : judge(command, tree)
    if (judged === undefined) return undefined
    // As a shell that was started in a folder without links counts `..`.
    const from = (base: string, place: string) => (place.startsWith("/") ? place : `${base}/${place}`)
    const within = (base: string, place: string) => workspace.path(from(base, place), "write")
    const places = Effect.gen(function* () {
      const here = judged.folder === undefined ? folder : yield* within(folder, judged.folder)
      const commands = yield* Effect.forEach(judged.commands, (command) =>
        command.folder === undefined
          ? Effect.succeed(command)
          : Effect.map(within(here, command.folder), (folder) => ({ ...command, folder }))
      )
      for (const read of judged.reads) {
        const place = yield* workspace.path(from(here, read), "read")
        yield* Effect.provideContext(look(place, place), files)
      }
      for (const place of judged.makes) yield* within(here, place)
      return { here, commands }
    })
    const found = yield* Effect.option(places)
    if (Option.isNone(found)) return undefined
    const { commands, here } = found.value
    const depths = [folder, here, ...commands.flatMap(({ folder }) => folder ?? [])].map(partsOf)
    if (judged.climbs !== undefined && judged.climbs >= Math.min(...depths)) return undefined
    const shown = (place: string) => (place === workspace.root ? "this folder" : workspace.shown(place))
    const placed = { ...judged, commands }
    return { grants: grantsOf(placed, here, workspace.root), covers: coversOf(placed, shown(here), shown) }
  })

  const question = Effect.fnUntraced(function* (
    args: Parameters,
    folder: string
  ): Effect.fn.Return<Question, ToolFailure> {
    const where = folder === workspace.root ? "" : `\n(in ${workspace.shown(folder)})`
    const how = args.is_background === true ? "\n(in the background)" : ""
    const { covers, grants } = (yield* covered(args.command, folder)) ?? { covers: "this command", grants: [] }
    return { detail: `${args.command}${where}${how}`, grants, covers }
  })

  /** Starts a command in a process group of its own, which ends with the scope. What it prints is taken from then on. */
  const begin = Effect.fnUntraced(function* (
    wrapper: string,
    line: string,
    cwd: string,
    scope: Scope.Scope
  ): Effect.fn.Return<Running, ToolFailure> {
    const variables = yield* environment.variables
    const env = childEnvironment(variables, passed)
    // The wrapping shell looks for nothing in the PATH of the command.
    const [bash = "/bin/sh", ps = "", pgrep = ""] = yield* Effect.forEach(["bash", "ps", "pgrep"], find)
    const commandIn = (held: string) =>
      ChildProcess.make("/bin/sh", ["-c", wrapper, "sh", line, bash, ps, pgrep], {
        cwd: held,
        env: shellEnvironment(relativePath ? env : withAbsolutePath(env)),
        stdin: "pipe",
        detached: true,
        additionalFds: { fd3: { type: "output" } },
        forceKillAfter: grace
      })
    const handle = yield* workspace.held(cwd).pipe(
      Effect.mapError((error) =>
        notStarted(error.reason._tag === "BadResource" ? "dir_path is no folder" : diskTrouble(error))
      ),
      Effect.flatMap((held) => Effect.mapError(Scope.provide(spawner.spawn(commandIn(held)), scope), failureOf)),
      Effect.scoped,
      Effect.catchDefect((defect) => Effect.fail(thrown(defect)))
    )
    const running: Running = {
      ...(yield* noOutput(buffer)),
      handle,
      hidden: [...(environment.beneath?.hidden ?? []), ...hiddenOf(variables, passed)].sort(
        (one, other) => other.value.length - one.value.length
      ),
      report: Effect.undefined
    }
    yield* takeOutput(handle, running, scope)
    yield* Effect.forkIn(Effect.ignore(Stream.run(Stream.make(go), handle.stdin)), scope)
    const report = yield* Stream.mkString(Stream.decodeText(handle.getOutputFd(3))).pipe(
      Effect.map(reportOf),
      Effect.orElseSucceed(() => undefined),
      Effect.forkIn(scope)
    )
    running.report = Fiber.join(report)
    return running
  })

  /** Ends when nothing was printed for too long. */
  const idle = (running: Running): Effect.Effect<void> =>
    Effect.gen(function* () {
      for (;;) {
        const left = running.last + Duration.toMillis(limit) - (yield* Clock.currentTimeMillis)
        if (left <= 0) return
        yield* Effect.sleep(left)
      }
    })

  /** Shows what is new, at most once a second (spec 14). */
  const showing = (running: Running, { progress }: CallContext): Effect.Effect<never> =>
    Effect.gen(function* () {
      for (let shown = 0; ;) {
        yield* Effect.sleep("1 second")
        if (running.pieces === shown) continue
        shown = running.pieces
        yield* progress(sofar(running))
      }
    })

  const foreground = Effect.fnUntraced(function* (
    { command }: Parameters,
    { cwd, folder }: Place,
    context: CallContext,
    scope: Scope.Scope
  ): Effect.fn.Return<Ended, ToolFailure> {
    const running = yield* begin(script, command, cwd, scope)
    const state: State = { command, folder, left: [], group: running.handle.pid }
    const end = Effect.gen(function* (): Effect.fn.Return<Ended> {
      const isOver = Effect.as(Effect.exit(running.handle.exitCode), true)
      if (yield* Effect.raceFirst(isOver, Effect.as(idle(running), false))) {
        const exit = yield* Effect.exit(running.handle.exitCode)
        const report = Exit.isSuccess(exit) ? yield* running.report : undefined
        yield* drained(running)
        const signal = report === undefined ? signalOf(exit) : signals[report.code]
        const left = report?.left ?? []
        return { keeps: left.length > 0, result: resultOf({ ...state, left, code: report?.code, signal }, running) }
      }
      const exit = yield* Effect.andThen(
        Effect.ignore(running.handle.kill({ forceKillAfter: grace })),
        Effect.exit(running.handle.exitCode)
      )
      yield* drained(running)
      const error = `it printed nothing for ${Duration.format(limit)} and was stopped; what it printed before is kept`
      return { keeps: false, result: resultOf({ ...state, error, signal: signalOf(exit) }, running) }
    })
    return yield* Effect.raceFirst(end, showing(running, context)).pipe(
      Effect.onInterrupt(() => {
        const { value } = resultOf({ ...state, error: "it was cancelled before it ended" }, running)
        return context.progress(value)
      })
    )
  })

  const background = Effect.fnUntraced(function* (
    { command }: Parameters,
    { cwd, folder }: Place,
    scope: Scope.Scope
  ): Effect.fn.Return<Ended, ToolFailure> {
    const running = yield* begin(plain, command, cwd, scope)
    const { handle } = running
    const state: State = { command, folder, left: [handle.pid], group: handle.pid }
    const exit = yield* Effect.exit(handle.exitCode).pipe(
      Effect.timeoutOrElse({ duration: settling, orElse: () => Effect.undefined })
    )
    if (exit === undefined) return { keeps: true, result: resultOf(state, running) }
    yield* drained(running)
    const code = Exit.isSuccess(exit) ? exit.value : undefined
    // It may have left something running on purpose, as daemons do.
    return { keeps: code === 0, result: resultOf({ ...state, left: [], code, signal: signalOf(exit) }, running) }
  })

  const run = Effect.fnUntraced(function* (
    args: Parameters,
    cwd: string,
    context: CallContext
  ): Effect.fn.Return<ToolResult<string>, ToolFailure> {
    const place: Place = { cwd, folder: cwd === workspace.root ? "(root)" : workspace.shown(cwd) }
    return yield* Effect.uninterruptibleMask((restore) =>
      Effect.gen(function* () {
        const own = yield* Scope.fork(outlasting)
        const work = args.is_background === true ? background(args, place, own) : foreground(args, place, context, own)
        const ended = yield* Effect.exit(restore(work))
        if (!Exit.isSuccess(ended) || !ended.value.keeps) yield* Scope.close(own, Exit.void)
        return (yield* ended).result
      })
    )
  })

  return makePrepared({
    name: "run_shell_command",
    description,
    parameters: Parameters,
    result: Schema.String,
    kind: "execute",
    title: ({ command }) => command,
    // The folder that was asked about is the one that it runs in.
    prepare: (args, context) =>
      folderOf(args.dir_path).pipe(
        Effect.cached,
        Effect.map((folder) => ({
          question: Effect.flatMap(folder, (place) => question(args, place)),
          run: Effect.flatMap(folder, (place) => run(args, place, context))
        }))
      )
  })
})
