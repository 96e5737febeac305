import { Cause, Effect, Exit, type FileSystem, Path, Predicate, type Scope } from "effect"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import { printable } from "../domain/Inspection.ts"
import { type SettingsFile, withDefaults } from "../domain/Settings.ts"
import {
  dotted,
  keyOf,
  mergeSettings,
  valueOf,
  variables as settingVariables,
  withValue
} from "../domain/SettingsKey.ts"
import * as CommandHooks from "../services/CommandHooks.ts"
import { Environment } from "../services/Environment.ts"
import * as Hooked from "../services/Hooked.ts"
import { HookSystem } from "../services/HookSystem.ts"
import { SessionFiles } from "../services/SessionFiles.ts"
import * as SessionHooks from "../services/SessionHooks.ts"
import { Telemetry } from "../services/Telemetry.ts"
import type { Opened } from "./OpenChat.ts"
import { Ground, type People } from "./Worker.ts"

/** Who is told of what happens in a session of the command line: the hooks of the settings, and telemetry. */

/** What variables say of all hooks: the person's own, as no folder's `.env` may set these. */
const fromVariables = (variables: Readonly<Record<string, string>>): SettingsFile => {
  let said: unknown = {}
  for (const { name, path } of settingVariables) {
    const text = path[0] === "hooksConfig" ? variables[name]?.trim() : undefined
    const key = keyOf(dotted(path))
    const found = text === undefined || text === "" || !("accepts" in key) ? undefined : valueOf(key, text)
    if (found !== undefined) said = withValue(said, path, found.value)
  }
  return Predicate.isObject(said) ? said : {}
}

/** How long hooks may take to hear that a session ends; after a signal the program itself ends soon. */
const lastWords = { usual: "10 seconds", hurried: "1500 millis" } as const
/** Together with that less than the program waits for its end after a signal. */
const grace = "3 seconds"

/** Whether the settings hang any command on what happens. */
export const hasHooks = ({ files }: Pick<Opened, "files">): boolean =>
  [files.home, files.workspace].some(({ hooks = {} }) => Object.keys(hooks).length > 0)

/** Adds the commands that the settings hang on what happens: those of the person, and of a folder that is trusted. */
export const addHooks = Effect.fn("Watching.addHooks")(function* (
  { files, id, settings }: Pick<Opened, "files" | "settings"> & Partial<Pick<Opened, "id">>,
  tell: People["tell"],
  isTrusted: Effect.Effect<boolean>
): Effect.fn.Return<
  void,
  never,
  | ChildProcessSpawner
  | Environment
  | FileSystem.FileSystem
  | Ground
  | HookSystem
  | Path.Path
  | Scope.Scope
  | SessionFiles
> {
  if (!hasHooks({ files })) return
  const hooks = yield* HookSystem
  const { home, knownHooks } = yield* Ground
  const { of } = yield* SessionFiles
  const path = yield* Path.Path
  const cwd = path.resolve(".")
  const { passEnvironment } = withDefaults(settings)
  const environment = yield* Environment
  const set = fromVariables({ ...environment.beneath?.variables, ...(yield* environment.variables) })
  const { hooksConfig } = mergeSettings({ hooksConfig: files.home.hooksConfig ?? {} }, set)
  const levels = { home: { hooks: files.home.hooks, hooksConfig }, workspace: files.workspace }
  const made = yield* CommandHooks.fromSettings(levels, {
    cwd,
    isTrusted,
    passed: passEnvironment,
    // Where the conversation is not kept there is no file; its path is empty then, as in Gemini CLI.
    ...(id === undefined ? {} : { transcript: of }),
    plans: path.join(home, "plans"),
    grace
  })
  const news = yield* knownHooks(cwd, made.definitions)
  for (const line of [...made.warnings, ...(news === undefined ? [] : [news])]) yield* tell(printable(line))
  yield* hooks.add(made.hooks)
})

/** What happens in a session is told as the settings say. */
export const telemetry = Effect.fn("Watching.telemetry")(function* ({
  settings
}: Pick<Opened, "settings">): Effect.fn.Return<Telemetry["Service"], never, Ground | HookSystem | Scope.Scope> {
  const { sink } = yield* Ground
  const { buffer, enabled, endpoint, file, prompts } = withDefaults(settings).telemetry
  const made = Telemetry.make({
    sinks: enabled ? [yield* sink(file ?? "telemetry.jsonl")] : [],
    buffer,
    prompts,
    logs: enabled && endpoint !== undefined
  })
  yield* made.compressions
  return made
})

/** How a session began, and how it is told that it ends. */
export interface Session {
  /** What hooks add to the conversation that begins. */
  readonly opening: string | undefined
  /** Says why it ends; unsaid, it is the end of the program. */
  readonly leave: (reason: "clear" | "exit") => Effect.Effect<void>
}

/** Of a session that is only looked at nobody is told. */
export const untold: Session = { opening: undefined, leave: () => Effect.void }

/** Tells hooks that a session begins, and at the end of the scope that it ends. */
export const session = Effect.fn("Watching.session")(function* (
  id: string | undefined,
  source: "clear" | "resume" | "startup",
  tell: People["tell"]
): Effect.fn.Return<Session, never, HookSystem | Path.Path | Scope.Scope> {
  const hooks = yield* HookSystem
  const path = yield* Path.Path
  let why: "clear" | "exit" = "exit"
  const hooked = Hooked.make(hooks, { session: id, cwd: path.resolve(".") }, (event) =>
    event._tag === "Notice" ? tell(printable(event.message)) : Effect.void
  )
  yield* Effect.addFinalizer((exit) =>
    SessionHooks.end(hooked, why).pipe(
      Effect.interruptible,
      Effect.timeoutOption(
        Exit.isFailure(exit) && Cause.hasInterrupts(exit.cause) ? lastWords.hurried : lastWords.usual
      )
    )
  )
  return {
    opening: yield* SessionHooks.start(hooked, source),
    leave: (reason) =>
      Effect.sync(() => {
        why = reason
      })
  }
})
