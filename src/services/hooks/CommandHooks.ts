/** Runs hook commands from settings with Gemini CLI's protocol: the event as JSON on stdin, the answer on stdout. */

import { DateTime, Duration, Effect, Exit, FileSystem, type Path, type PlatformError, Stream } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import type { HookEvent } from "../../domain/hooks/Hook.ts"
import { answerOf } from "../../domain/hooks/HookAnswer.ts"
import { hookInput, hookVariables } from "../../domain/hooks/HookInput.ts"
import {
  type CommandHook,
  enabledHooks,
  hookName,
  type HooksConfigSettings,
  hooksOf,
  type HooksSettings,
  defaultHookTimeoutMillis,
  sourcePriority,
  uniqueHooks
} from "../../domain/hooks/HookSettings.ts"
import { withAbsolutePath } from "../../domain/platform/SearchPath.ts"
import { firstUnits, joinBytes } from "../../domain/text/Bytes.ts"
import { childEnvironment } from "../../domain/text/ChildEnvironment.ts"
import { errorText } from "../../domain/text/ErrorText.ts"
import type { KeptOutput } from "../../domain/text/HeadAndTail.ts"
import { quotedPath } from "../../domain/text/WorkspacePath.ts"
import { awaitOutput, emptyOutput, signalOf, captureOutput } from "../platform/ChildOutput.ts"
import { Environment } from "../platform/Environment.ts"
import { makeProgramFinder } from "../platform/ProgramLookup.ts"
import type { Hook, HookPlace } from "./HookSystem.ts"

/** Where hook commands run and what they receive. */
export interface CommandHooksOptions {
  /** The working folder where an event has none. */
  readonly cwd: string
  /** Whether the workspace's hooks may run; checked before each of them. */
  readonly isTrusted: Effect.Effect<boolean>
  /** Variables passed to commands although they look like keys. */
  readonly passed: ReadonlyArray<string>
  /** The path of a session file by id. Absent: commands receive none. */
  readonly transcript?: ((session: string) => string) | undefined
  /** The folder of plans. */
  readonly plans?: string | undefined
  /** Default time limit in milliseconds (60,000). */
  readonly timeout?: number | undefined
  /** How long processes may take to exit before they are killed (5 s). */
  readonly grace?: Duration.Input | undefined
}

/** What running a command requires. */
type Needs = ChildProcessSpawner.ChildProcessSpawner | Environment | FileSystem.FileSystem | Path.Path

/** Bytes kept of each output stream. */
const maxOutputBytes = 1024 * 1024

/** Longest command name shown, in characters. */
const maxNameChars = 80

/**
 * The shell replaces itself with the command, so that its process id is that of the group. `--norc`: bash takes a
 * socket as input, which Node creates, for a remote connection and would read the user's .bashrc first.
 */
const script = `if [ -n "$2" ]; then exec "$2" --norc -c "$1" bash; else exec /bin/sh -c "$1"; fi`

const decoder = new TextDecoder()

/** The captured output; of a longer one, its beginning. */
const textOf = ({ dropped, head, tail }: KeptOutput): string =>
  decoder.decode(dropped > 0 ? head : joinBytes([head, tail]))

/** A hook's name, or the beginning of its command. */
const shownName = (definition: CommandHook): string => {
  const [line = ""] = hookName(definition).trim().split("\n")
  return quotedPath(line.length > maxNameChars ? `${firstUnits(line, maxNameChars - 1)}…` : line)
}

const notStarted = (why: string): string => `it could not be started: ${quotedPath(why)}`

const failureOf = ({ reason }: PlatformError.PlatformError): string =>
  notStarted(reason._tag === "BadArgument" ? (reason.description ?? reason.message) : reason.message)

/** A folder with links resolved, so that programs are not looked up in it. */
const realFolder = (folder: string) =>
  FileSystem.FileSystem.use((fs) => Effect.orElseSucceed(fs.realPath(folder), () => folder))

/** The services and options for running a hook's command. */
interface CommandHost {
  readonly options: CommandHooksOptions
  readonly spawner: ChildProcessSpawner.ChildProcessSpawner["Service"]
  readonly environment: Environment["Service"]
  /** Finds a program outside the working folder. */
  readonly find: (name: string) => Effect.Effect<string | undefined>
}

/** Creates hooks that run commands, each in its own process group that ends with the event. */
export const make = Effect.fn("CommandHooks.make")(function* (
  definitions: ReadonlyArray<CommandHook>,
  options: CommandHooksOptions
): Effect.fn.Return<ReadonlyArray<Hook>, never, Needs> {
  const host: CommandHost = {
    options,
    spawner: yield* ChildProcessSpawner.ChildProcessSpawner,
    environment: yield* Environment,
    find: yield* makeProgramFinder([yield* realFolder(options.cwd)])
  }
  return definitions.map((definition) => ({
    name: shownName(definition),
    event: definition.event,
    matcher: definition.matcher,
    sequential: definition.sequential,
    priority: sourcePriority[definition.source],
    timeout: Duration.millis(definition.timeout ?? options.timeout ?? defaultHookTimeoutMillis),
    run: (event, place) => Effect.scoped(runCommand(host, definition, event, place))
  }))
})

/** Runs a hook's command for one event and reads its answer. */
const runCommand = Effect.fnUntraced(function* (
  host: CommandHost,
  definition: CommandHook,
  event: HookEvent,
  place: HookPlace
) {
  if (definition.source === "workspace" && !(yield* host.options.isTrusted)) {
    return yield* Effect.fail("it was not run: its folder is not trusted")
  }
  const handle = yield* startCommand(host, definition, event, place)
  const output = yield* emptyOutput(maxOutputBytes)
  yield* captureOutput(handle, output, yield* Effect.scope)
  const exit = yield* Effect.exit(handle.exitCode)
  yield* awaitOutput(output)
  if (!Exit.isSuccess(exit)) return yield* Effect.fail(`it was ended by ${signalOf(exit) ?? "a signal"}`)
  // Processes that it left running on purpose continue until the program ends, as after any command.
  if (exit.value === 0) yield* Effect.ignore(handle.unref)
  const [out, err] = [output.out.kept(), output.err.kept()]
  return answerOf({
    stdout: textOf(out),
    stderr: textOf(err),
    code: exit.value,
    isCut: out.dropped > 0 || err.dropped > 0
  })
})

const startCommand = Effect.fnUntraced(function* (
  { environment, find, options, spawner }: CommandHost,
  { command, env }: CommandHook,
  event: HookEvent,
  { cwd = options.cwd, session = "" }: HookPlace
) {
  const timestamp = DateTime.formatIso(yield* DateTime.now)
  const transcript = session === "" ? "" : (options.transcript?.(session) ?? "")
  const input = yield* Effect.try({
    try: () => new TextEncoder().encode(JSON.stringify(hookInput(event, { cwd, session, timestamp, transcript }))),
    catch: () => "the event cannot be written as JSON"
  })
  // The command stays as written: the shell expands variables, and an expansion is never parsed as a command.
  const childVariables = childEnvironment(yield* environment.variables, options.passed)
  // Relative entries of PATH contain programs of the folder.
  const variables = (yield* options.isTrusted) ? childVariables : withAbsolutePath(childVariables)
  const handed = ChildProcess.make("/bin/sh", ["-c", script, "sh", command, (yield* find("bash")) ?? ""], {
    cwd,
    env: { ...variables, ...hookVariables({ cwd, session, plans: options.plans }), ...env },
    // A command that does not read stdin gets no broken-pipe error: Effect's spawner drops it.
    stdin: Stream.make(input),
    detached: true,
    forceKillAfter: options.grace ?? "5 seconds"
  })
  return yield* spawner.spawn(handed).pipe(
    Effect.mapError(failureOf),
    Effect.catchDefect((defect) => Effect.fail(notStarted(errorText(defect))))
  )
})

/** The hooks of one settings level. */
interface HookLevel {
  readonly hooks?: HooksSettings | undefined
  readonly hooksConfig?: HooksConfigSettings | undefined
}

/**
 * The enabled command hooks of the folder's settings, then those of the user's. The user's `hooksConfig` applies to all
 * of them, the folder's to its own only. Pass the folder's settings only when the folder is trusted.
 */
export const fromSettings = Effect.fn("CommandHooks.fromSettings")(function* (
  { home, workspace }: { readonly home: HookLevel; readonly workspace: HookLevel },
  options: CommandHooksOptions
) {
  const { hooksConfig: ours = {} } = home
  const { hooksConfig: theirs = {} } = workspace
  const there = hooksOf(workspace.hooks ?? {}, "workspace")
  const own = hooksOf(home.hooks ?? {}, "home")
  const folderHooks = enabledHooks(there.hooks, theirs).map((hook) => ({
    ...hook,
    timeout: hook.timeout ?? theirs.timeout
  }))
  const definitions = uniqueHooks(enabledHooks([...folderHooks, ...own.hooks], ours))
  const hooks = yield* make(definitions, { ...options, timeout: ours.timeout ?? options.timeout })
  return { hooks, definitions, problems: [...there.problems, ...own.problems] }
})
