/** Starts shell commands in process groups of their own, and reports how they ended. */

import {
  Context,
  type Duration,
  Effect,
  Fiber,
  type FileSystem,
  type Path,
  type PlatformError,
  Scope,
  Stream
} from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import { withAbsolutePath } from "../../../domain/platform/SearchPath.ts"
import { childEnvironment, type HiddenValue, hiddenValues } from "../../../domain/text/ChildEnvironment.ts"
import { diskErrorText } from "../../../domain/text/DiskErrors.ts"
import { errorText } from "../../../domain/text/ErrorText.ts"
import { quotedPath } from "../../../domain/text/WorkspacePath.ts"
import { captureOutput, type ChildOutput, emptyOutput } from "../../platform/ChildOutput.ts"
import { Environment } from "../../platform/Environment.ts"
import { Workspace } from "../../workspace/Workspace.ts"
import { ToolFailure } from "../Tool.ts"

/** How commands are run. */
interface ShellOptions {
  /** A command that prints nothing for this time is stopped. Default: 300 seconds. */
  readonly inactivity: Duration.Input
  /** Time for processes to end before they are killed. Default: 2 seconds. */
  readonly grace: Duration.Input
  /** Bytes kept of each of stdout and stderr. Default: 16 MiB. */
  readonly bufferBytes: number
  /** Variables to pass on although they look like secrets. */
  readonly passedVariables: ReadonlyArray<string>
  /**
   * Whether relative parts of PATH count, as they do in the user's own shell. Only for a trusted folder: the programs found there
   * are the folder's. Default: only absolute parts count.
   */
  readonly relativePath?: boolean | undefined
}

/** Settings of the shell tool. */
export const ShellSettings = Context.Reference<ShellOptions>(
  "palimpsest/services/tools/builtin/ShellProcess/ShellSettings",
  {
    defaultValue: () => ({
      inactivity: "300 seconds",
      grace: "2 seconds",
      bufferBytes: 16 * 1024 * 1024,
      passedVariables: []
    })
  }
)

/**
 * Waits until this program has registered the group to end with it, then gives the command an empty input. Without this, a
 * program that is killed right after it started a command would leave the command running.
 */
const startGate = `read -r go || exit 0
exec </dev/null`

/** The input that opens the gate. */
const goSignal = new TextEncoder().encode("go\n")

/**
 * Runs the command in a subshell, then reports on descriptor 3 how it ended and which processes of its group are left (pid, parent,
 * group, state). Its own exit code is always 0, because Effect's spawner kills the whole group of a process with another one.
 * The subshell and `2>/dev/null` keep what this shell prints about signals out of the command's output.
 */
export const foregroundScript = `${startGate}
exec 4>&2 2>/dev/null
(exec "$2" -c "$1" "\${2##*/}" 2>&4 3>&- 4>&-)
code=$?
exec 4>&- >/dev/null
echo "$$ $code" >&3
{ "$3" -A -o pid= -o ppid= -o pgid= -o stat= || "$4" -g "$$"; } >&3
exit 0`

/**
 * Settings of git that no repository can override: git does not use a folder that only looks like a bare repository, and runs no
 * program to learn which files changed. A clone, an edit or an archive could otherwise place settings that run programs.
 */
const gitSettings = [
  ["safe.bareRepository", "explicit"],
  ["core.fsmonitor", "false"]
] as const

/** The environment of a command. Without CDPATH, so that `cd` goes only to folders below the current one. */
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

/** For the background: the shell becomes the command, so that the process id is that of the group. */
export const backgroundScript = `${startGate}
exec 3>&-
exec "$2" -c "$1" "\${2##*/}"`

/** How the wrapping shell reports that a command ended. */
interface Report {
  readonly code: number
  /** Processes of the group that are still running. */
  readonly left: ReadonlyArray<number>
}

const reportOf = (text: string): Report | undefined => {
  const [first = "", ...rest] = text.split("\n")
  const [pid, code] = first.split(" ").map(Number)
  if (pid === undefined || code === undefined || !Number.isInteger(code)) return undefined
  const left = rest.flatMap((line) => {
    const [process = "", parent, group, state = ""] = line.trim().split(/\s+/)
    // Without ps, pgrep lists only process ids, leaving out itself and its shell.
    if (group === undefined) return process === "" || Number(process) === pid ? [] : [Number(process)]
    const isOurs = Number(group) === pid && Number(process) !== pid && Number(parent) !== pid
    return isOurs && !state.startsWith("Z") ? [Number(process)] : []
  })
  return { code, left }
}

/** Shells report a signal as 128 plus its number. 129 is left out: git uses it for wrong arguments. */
export const signals: Readonly<Record<number, string>> = {
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

/** A running command and its output so far. */
export interface RunningCommand extends ChildOutput {
  readonly handle: ChildProcessSpawner.ChildProcessHandle
  /** Values of variables that the command did not receive but may have found, for example in `/proc` or in a file. */
  readonly hidden: ReadonlyArray<HiddenValue>
  /** The report of the wrapping shell. Undefined: it was killed before it could write one. */
  report: Effect.Effect<Report | undefined>
}

const notStarted = (why: string): ToolFailure =>
  new ToolFailure({ message: `the command could not be started: ${quotedPath(why)}`, type: "shell_execute_error" })

const failureOf = ({ reason }: PlatformError.PlatformError): ToolFailure =>
  notStarted(reason._tag === "BadArgument" ? (reason.description ?? reason.message) : reason.message)

/** Errors that Node throws directly: the folder is none, or the command is longer than the system accepts. */
const thrown = (defect: unknown): ToolFailure => {
  const message = errorText(defect)
  return notStarted(
    message.includes("E2BIG")
      ? "it is too long for the system; write it into a file and run that"
      : message.includes("ENOTDIR")
        ? "dir_path is not a folder"
        : message
  )
}

/** Finds bash and ps by name; a tool looks for each once. Undefined: not installed in any folder that programs may come from. */
export const FindProgram = Context.Reference<(name: string) => Effect.Effect<string | undefined>>(
  "palimpsest/services/tools/builtin/ShellProcess/FindProgram",
  { defaultValue: () => () => Effect.undefined }
)

/** The services that running a command uses. */
export type ShellServices =
  | ChildProcessSpawner.ChildProcessSpawner
  | Environment
  | FileSystem.FileSystem
  | Path.Path
  | Workspace

/** Starts a command in a process group of its own, which ends with the scope, and captures its output from then on. */
export const startCommand = Effect.fnUntraced(function* (
  wrapper: string,
  line: string,
  cwd: string,
  scope: Scope.Scope
) {
  const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
  const workspace = yield* Workspace
  const environment = yield* Environment
  const { bufferBytes, grace, passedVariables, relativePath = false } = yield* ShellSettings
  const find = yield* FindProgram
  const variables = yield* environment.variables
  const env = childEnvironment(variables, passedVariables)
  // The wrapping shell looks for no program in the PATH of the command.
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
      notStarted(error.reason._tag === "BadResource" ? "dir_path is not a folder" : diskErrorText(error))
    ),
    Effect.flatMap((held) => Effect.mapError(Scope.provide(spawner.spawn(commandIn(held)), scope), failureOf)),
    Effect.scoped,
    Effect.catchDefect((defect) => Effect.fail(thrown(defect)))
  )
  const running: RunningCommand = {
    ...(yield* emptyOutput(bufferBytes)),
    handle,
    hidden: [...(environment.beneath?.hidden ?? []), ...hiddenValues(variables, passedVariables)].sort(
      (one, other) => other.value.length - one.value.length
    ),
    report: Effect.undefined
  }
  yield* captureOutput(handle, running, scope)
  yield* Effect.forkIn(Effect.ignore(Stream.run(Stream.make(goSignal), handle.stdin)), scope)
  const report = yield* Stream.mkString(Stream.decodeText(handle.getOutputFd(3))).pipe(
    Effect.map(reportOf),
    Effect.orElseSucceed(() => undefined),
    Effect.forkIn(scope)
  )
  running.report = Fiber.join(report)
  return running
})
