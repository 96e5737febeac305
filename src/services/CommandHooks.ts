import { DateTime, Duration, Effect, Exit, FileSystem, type Path, type PlatformError, type Scope, Stream } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import { firstUnits } from "../domain/Bytes.ts"
import { childEnvironment } from "../domain/ChildEnvironment.ts"
import { answerOf, type HookAnswer } from "../domain/HookAnswer.ts"
import type { HookEvent } from "../domain/Hook.ts"
import { hookInput } from "../domain/HookInput.ts"
import {
  type CommandHook,
  enabledHooks,
  hookName,
  type HooksConfigSettings,
  hooksOf,
  type HooksSettings,
  hookTimeout,
  sourcePriority,
  uniqueHooks
} from "../domain/HookSettings.ts"
import type { Kept } from "../domain/HeadAndTail.ts"
import { withAbsolutePath } from "../domain/SearchPath.ts"
import { quoted } from "../domain/WorkspacePath.ts"
import { drained, noOutput, signalOf, takeOutput } from "./ChildOutput.ts"
import { Environment } from "./Environment.ts"
import type { Hook, HookPlace } from "./HookSystem.ts"
import { finder } from "./Programs.ts"

/** Commands of the settings as hooks, in the protocol of spec 8: the event as JSON on stdin, the answer on stdout. */

/** Where commands run, and what they are told and given. */
export interface CommandHooksOptions {
  /** The folder that commands work in where an event tells no other. */
  readonly cwd: string
  /** Whether the workspace's hooks may run; asked again before each of them runs. */
  readonly isTrusted: Effect.Effect<boolean>
  /** Variables that commands are given although they look like keys. */
  readonly passed: ReadonlyArray<string>
  /** The file of a session, by its id. Absent: commands are told none. */
  readonly transcript?: ((session: string) => string) | undefined
  /** The folder of plans. */
  readonly plans?: string | undefined
  /** Milliseconds that a command may take that says nothing else (spec 8: 60,000). */
  readonly timeout?: number | undefined
  /** How long processes may take to end by themselves before they are killed (spec 8: 5 s). */
  readonly grace?: Duration.Input | undefined
}

/** What commands are started with. */
type Needs = ChildProcessSpawner.ChildProcessSpawner | Environment | FileSystem.FileSystem | Path.Path

/** Bytes kept of what a command prints, of either stream. */
const outputBytes = 1024 * 1024

/** The most characters that a command is named by. */
const nameLength = 80

/**
 * The shell becomes the command, so that its number is that of the group. `--norc`: bash takes a socket for its input, as Node
 * makes them, for a connection from elsewhere, and would read the person's .bashrc first.
 */
const script = `if [ -n "$2" ]; then exec "$2" --norc -c "$1" bash; else exec /bin/sh -c "$1"; fi`

const decoder = new TextDecoder()

/** What was printed; of more than is kept, the beginning. */
const textOf = ({ dropped, head, tail }: Kept): string => {
  if (dropped > 0 || tail.length === 0) return decoder.decode(head)
  const all = new Uint8Array(head.length + tail.length)
  all.set(head)
  all.set(tail, head.length)
  return decoder.decode(all)
}

/** What a hook is called: its name, or the beginning of its command. */
const shownName = (definition: CommandHook): string => {
  const [line = ""] = hookName(definition).trim().split("\n")
  return quoted(line.length > nameLength ? `${firstUnits(line, nameLength - 1)}…` : line)
}

const notStarted = (why: string): string => `it could not be started: ${quoted(why)}`

const failureOf = ({ reason }: PlatformError.PlatformError): string =>
  notStarted(reason._tag === "BadArgument" ? (reason.description ?? reason.message) : reason.message)

/** A folder with its links followed, as programs are kept from being looked for there. */
const realFolder = (folder: string): Effect.Effect<string, never, FileSystem.FileSystem> =>
  FileSystem.FileSystem.use((fs) => Effect.orElseSucceed(fs.realPath(folder), () => folder))

/** Hooks that run commands, each in a process group of its own that ends with the work on the event. */
export const make = Effect.fn("CommandHooks.make")(function* (
  definitions: ReadonlyArray<CommandHook>,
  options: CommandHooksOptions
): Effect.fn.Return<ReadonlyArray<Hook>, never, Needs> {
  const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
  const find = yield* finder([yield* realFolder(options.cwd)])
  const environment = yield* Environment

  const started = Effect.fnUntraced(function* (
    { command, env }: CommandHook,
    event: HookEvent,
    { cwd = options.cwd, session = "" }: HookPlace
  ): Effect.fn.Return<ChildProcessSpawner.ChildProcessHandle, string, Scope.Scope> {
    const own = {
      GEMINI_PROJECT_DIR: cwd,
      CLAUDE_PROJECT_DIR: cwd,
      GEMINI_CWD: cwd,
      GEMINI_SESSION_ID: session,
      ...(options.plans === undefined ? {} : { GEMINI_PLANS_DIR: options.plans })
    }
    const timestamp = DateTime.formatIso(yield* DateTime.now)
    const transcript = session === "" ? "" : (options.transcript?.(session) ?? "")
    const input = yield* Effect.try({
      try: () => new TextEncoder().encode(JSON.stringify(hookInput(event, { cwd, session, timestamp, transcript }))),
      catch: () => "what happened cannot be written as JSON"
    })
    // The command stays as it is written: the shell knows the variables, and what it expands is never taken for a command.
    const given = childEnvironment(yield* environment.variables, options.passed)
    // In relative parts of PATH lie programs of the folder.
    const variables = (yield* options.isTrusted) ? given : withAbsolutePath(given)
    const handed = ChildProcess.make("/bin/sh", ["-c", script, "sh", command, (yield* find("bash")) ?? ""], {
      cwd,
      env: { ...variables, ...own, ...env },
      // Who does not read it is not told of a broken pipe: effect's spawner drops that.
      stdin: Stream.make(input),
      detached: true,
      forceKillAfter: options.grace ?? "5 seconds"
    })
    return yield* spawner.spawn(handed).pipe(
      Effect.mapError(failureOf),
      Effect.catchDefect((defect) => Effect.fail(notStarted(defect instanceof Error ? defect.message : String(defect))))
    )
  })

  const answered = Effect.fnUntraced(function* (
    definition: CommandHook,
    event: HookEvent,
    place: HookPlace
  ): Effect.fn.Return<HookAnswer, string, Scope.Scope> {
    if (definition.source === "workspace" && !(yield* options.isTrusted)) {
      return yield* Effect.fail("it was not run: its folder is not trusted")
    }
    const handle = yield* started(definition, event, place)
    const output = yield* noOutput(outputBytes)
    yield* takeOutput(handle, output, yield* Effect.scope)
    const exit = yield* Effect.exit(handle.exitCode)
    yield* drained(output)
    if (!Exit.isSuccess(exit)) return yield* Effect.fail(`it was ended by ${signalOf(exit) ?? "a signal"}`)
    // What it left running on purpose goes on, as it would after any command.
    if (exit.value === 0) yield* Effect.ignore(handle.unref)
    const [out, err] = [output.out.kept(), output.err.kept()]
    return answerOf({
      stdout: textOf(out),
      stderr: textOf(err),
      code: exit.value,
      isCut: out.dropped > 0 || err.dropped > 0
    })
  })

  return definitions.map((definition) => ({
    name: shownName(definition),
    event: definition.event,
    matcher: definition.matcher,
    sequential: definition.sequential,
    priority: sourcePriority[definition.source],
    timeout: Duration.millis(definition.timeout ?? options.timeout ?? hookTimeout),
    run: (event, place) => Effect.scoped(answered(definition, event, place))
  }))
})

/** What one place of settings says of hooks. */
export interface HookLevel {
  readonly hooks?: HooksSettings | undefined
  readonly hooksConfig?: HooksConfigSettings | undefined
}

/** The hooks of all places, ready to be added, and what was wrong with what the settings say. */
export interface SettingsHooks {
  readonly hooks: ReadonlyArray<Hook>
  readonly definitions: ReadonlyArray<CommandHook>
  /** One line each. */
  readonly warnings: ReadonlyArray<string>
}

/**
 * The commands of the folder's settings, then those of the person's (spec 8), without those that are switched off. What the
 * person's configuration says holds for all of them; what the folder's says, for its own only. The folder's are to be given
 * only where it is trusted.
 */
export const fromSettings = Effect.fn("CommandHooks.fromSettings")(function* (
  { home, workspace }: { readonly home: HookLevel; readonly workspace: HookLevel },
  options: CommandHooksOptions
): Effect.fn.Return<SettingsHooks, never, Needs> {
  const { hooksConfig: ours = {} } = home
  const { hooksConfig: theirs = {} } = workspace
  const there = hooksOf(workspace.hooks ?? {}, "workspace")
  const own = hooksOf(home.hooks ?? {}, "home")
  const within = enabledHooks(there.hooks, theirs).map((hook) => ({ ...hook, timeout: hook.timeout ?? theirs.timeout }))
  const definitions = uniqueHooks(enabledHooks([...within, ...own.hooks], ours))
  const hooks = yield* make(definitions, { ...options, timeout: ours.timeout ?? options.timeout })
  return { hooks, definitions, warnings: [...there.warnings, ...own.warnings] }
})
