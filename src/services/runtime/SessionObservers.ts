/** Attaches hooks and telemetry to a session. */

import { Cause, Effect, Exit, Path, Predicate, type Scope } from "effect"
import { hookMessage } from "../../domain/hooks/HookContext.ts"
import { hookProblemText, newHooksWarning } from "../../domain/hooks/HookSettings.ts"
import { type SettingsFile, withDefaults } from "../../domain/settings/Settings.ts"
import {
  dotted,
  keyOf,
  mergeSettings,
  parseValue,
  settingVariables,
  withValue
} from "../../domain/settings/SettingsKey.ts"
import * as CommandHooks from "../hooks/CommandHooks.ts"
import * as Hooked from "../hooks/Hooked.ts"
import { HookSystem } from "../hooks/HookSystem.ts"
import { Environment } from "../platform/Environment.ts"
import { locateLogs } from "../session/SessionFiles.ts"
import { Telemetry } from "../telemetry/Telemetry.ts"
import { message, type Notify } from "./RuntimeNotice.ts"
import { RuntimePlatform } from "./RuntimePlatform.ts"
import type { OpenSession } from "./SessionOpening.ts"

/** The `hooksConfig` that variables set: those of the user alone, because no folder's `.env` may set these. */
const hooksConfigOf = (variables: Readonly<Record<string, string>>): SettingsFile => {
  let config: unknown = {}
  for (const { name, path } of settingVariables) {
    const text = path[0] === "hooksConfig" ? variables[name]?.trim() : undefined
    const key = keyOf(dotted(path))
    const value = text === undefined || text === "" || !("accepts" in key) ? undefined : parseValue(key, text)
    if (value !== undefined) config = withValue(config, path, value.value)
  }
  return Predicate.isObject(config) ? config : {}
}

/** The time limit of the hooks at the end of a session. After a signal the program itself ends soon. */
const endHooksTimeout = { normal: "10 seconds", interrupted: "1500 millis" } as const
/** How long a command may take to end after the signal. Both together are less than the program waits after a signal. */
const grace = "3 seconds"

/** Whether the settings have any hooks. */
export const hasHooks = ({ files }: Pick<OpenSession, "files">): boolean =>
  [files.home, files.workspace].some(({ hooks = {} }) => Object.keys(hooks).length > 0)

/** Adds the hooks of the settings: the user's, and those of the workspace when it is trusted. */
export const addHooks = Effect.fn("SessionObservers.addHooks")(function* (
  { files, id, settings }: Pick<OpenSession, "files" | "settings"> & Partial<Pick<OpenSession, "id">>,
  notify: Notify,
  isTrusted: Effect.Effect<boolean>
) {
  if (!hasHooks({ files })) return
  const hooks = yield* HookSystem
  const { home, knownHooks } = yield* RuntimePlatform
  const locate = yield* locateLogs
  const path = yield* Path.Path
  const cwd = path.resolve(".")
  const { passEnvironment } = withDefaults(settings)
  const environment = yield* Environment
  const set = hooksConfigOf({ ...environment.beneath?.variables, ...(yield* environment.variables) })
  const { hooksConfig } = mergeSettings({ hooksConfig: files.home.hooksConfig ?? {} }, set)
  const levels = { home: { hooks: files.home.hooks, hooksConfig }, workspace: files.workspace }
  const made = yield* CommandHooks.fromSettings(levels, {
    cwd,
    isTrusted,
    passed: passEnvironment,
    // A conversation that is not stored has no file; its path is empty then, as in Gemini CLI.
    ...(id === undefined ? {} : { transcript: (session: string) => locate(session) ?? "" }),
    plans: path.join(home, "plans"),
    grace
  })
  const news = newHooksWarning(yield* knownHooks(cwd, made.definitions))
  const lines = [...made.problems.map(hookProblemText), ...(news === undefined ? [] : [news])]
  for (const line of lines) yield* notify(message(line))
  yield* hooks.add(made.hooks)
})

/** The telemetry of a session, as the settings have it. */
export const telemetry = Effect.fn("SessionObservers.telemetry")(function* ({
  settings
}: Pick<OpenSession, "settings">): Effect.fn.Return<
  Telemetry["Service"],
  never,
  RuntimePlatform | HookSystem | Scope.Scope
> {
  const { sink } = yield* RuntimePlatform
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

/** A session as hooks see it. */
export interface ObservedSession {
  /** What hooks add before the first message. */
  readonly opening: string | undefined
  /** Sets the reason that hooks get when it ends. Unset, it is `exit`. */
  readonly leave: (reason: "clear" | "exit") => Effect.Effect<void>
}

/** A session without observers: a preview. */
export const unobserved: ObservedSession = { opening: undefined, leave: () => Effect.void }

/** Runs the hooks at the start of a session, and those at its end when the scope closes. */
export const session = Effect.fn("SessionObservers.session")(function* (
  id: string | undefined,
  source: "clear" | "resume" | "startup",
  notify: Notify
): Effect.fn.Return<ObservedSession, never, HookSystem | Path.Path | Scope.Scope> {
  const hooks = yield* HookSystem
  const path = yield* Path.Path
  let endReason: "clear" | "exit" = "exit"
  const hooked = Hooked.make(hooks, { session: id, cwd: path.resolve(".") }, (event) =>
    event._tag === "Notice" ? notify(message(event.message)) : Effect.void
  )
  yield* Effect.addFinalizer((exit) =>
    hooked
      .fire({ _tag: "SessionEnd", reason: endReason })
      .pipe(
        Effect.interruptible,
        Effect.timeoutOption(
          Exit.isFailure(exit) && Cause.hasInterrupts(exit.cause) ? endHooksTimeout.interrupted : endHooksTimeout.normal
        )
      )
  )
  const { context } = yield* hooked.fire({ _tag: "SessionStart", source })
  return {
    opening: context === undefined ? undefined : hookMessage(context),
    leave: (reason) =>
      Effect.sync(() => {
        endReason = reason
      })
  }
})
