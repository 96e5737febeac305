import { Predicate, Result, Schema } from "effect"
import { firstUnits } from "../text/Bytes.ts"
import { quotedPath } from "../text/WorkspacePath.ts"
import { HookEvent, type HookEventName } from "./Hook.ts"

/** Reads command hooks from settings. Invalid entries are left out, each with a warning. */

/** One hook command in settings. */
export const HookCommand = Schema.Struct({
  type: Schema.Literal("command"),
  /** The shell command. It receives the event as JSON on standard input. */
  command: Schema.NonEmptyString,
  /** The name shown to the user, also used to disable the hook. */
  name: Schema.optionalKey(Schema.String),
  description: Schema.optionalKey(Schema.String),
  /** Time limit in milliseconds. */
  timeout: Schema.optionalKey(Schema.Finite.check(Schema.isGreaterThan(0))),
  /** Additional environment variables. */
  env: Schema.optionalKey(Schema.Record(Schema.String, Schema.String))
})

/** Commands for one event, with a matcher. */
export const HookGroup = Schema.Struct({
  /**
   * A regular expression on the tool name, or the exact trigger, source, reason or kind. Absent: matches everything.
   */
  matcher: Schema.optionalKey(Schema.String),
  /** Whether all commands of the event run in sequence, each seeing the changes of the one before. */
  sequential: Schema.optionalKey(Schema.Boolean),
  hooks: Schema.Array(HookCommand)
})

/** The setting `hooks`: groups of commands by event. The schema accepts anything; `hooksOf` reports what is wrong. */
export const HooksSettings = Schema.Record(Schema.String, Schema.Union([Schema.Array(HookGroup), Schema.Unknown]))
export type HooksSettings = typeof HooksSettings.Type

/** The setting `hooksConfig`: options for all hooks. In a folder's settings it applies to that folder's hooks only. */
export const HooksConfigSettings = Schema.Struct({
  /** Whether commands run at all. Default: true. */
  enabled: Schema.optionalKey(Schema.Boolean),
  /** Names of disabled hooks. A hook without a name is named by its command. */
  disabled: Schema.optionalKey(Schema.Array(Schema.String)),
  /** Default time limit in milliseconds (60,000). */
  timeout: Schema.optionalKey(Schema.Finite.check(Schema.isGreaterThan(0)))
})
export type HooksConfigSettings = typeof HooksConfigSettings.Type

/** Default time limit of a hook in milliseconds. */
export const defaultHookTimeoutMillis = 60_000

/** Where a hook is configured. */
export type HookSource = "workspace" | "home" | "system" | "extension"

/** Hooks with a smaller number run first. 0 is reserved for in-process hooks. */
export const sourcePriority: Readonly<Record<HookSource, number>> = { workspace: 1, home: 2, system: 3, extension: 4 }

/** One command hook with its event and matcher. */
export interface CommandHook {
  readonly source: HookSource
  readonly event: HookEventName
  readonly matcher: string | undefined
  readonly sequential: boolean
  readonly command: string
  readonly name: string | undefined
  readonly description: string | undefined
  /** Time limit in milliseconds. */
  readonly timeout: number | undefined
  readonly env: Readonly<Record<string, string>>
}

/** The hooks of one level of settings. */
export interface ReadHooks {
  readonly hooks: ReadonlyArray<CommandHook>
  /** What was left out and where it is, one line each. */
  readonly warnings: ReadonlyArray<string>
}

/** The display name of a hook: its name, else its command. */
export const hookName = ({ command, name }: Pick<CommandHook, "command" | "name">): string => name ?? command

/** A normalized matcher; empty matches everything. */
const matcherOf = (matcher = ""): string => (matcher.trim() === "*" ? "" : matcher.trim())

/** Identifies a hook by when it runs and what it runs. Name and origin do not count. */
export const hookKey = ({
  command,
  env,
  event,
  matcher
}: Pick<CommandHook, "command" | "env" | "event" | "matcher">): string =>
  JSON.stringify([
    event,
    matcherOf(matcher),
    command,
    Object.entries(env).toSorted(([one], [other]) => (one < other ? -1 : 1))
  ])

const isEventName = (name: string): name is HookEventName => Object.hasOwn(HookEvent.cases, name)
const isList: (value: unknown) => value is ReadonlyArray<unknown> = Array.isArray
const decodeCommand = Schema.decodeUnknownResult(HookCommand)

/** Keys that older Gemini CLI settings keep beside the events; they belong in `hooksConfig`. */
const configKeys = ["enabled", "disabled", "notifications"]

/** What is wrong with a command that does not decode. */
const hookProblem = (value: unknown): string => {
  if (!Predicate.isObject(value)) return "is no object"
  if (value["type"] !== "command") {
    const type = value["type"]
    return typeof type === "string"
      ? `has the unknown type ${quotedPath(type)}; it can be "command"`
      : `has no type; it can be "command"`
  }
  if (typeof value["command"] !== "string" || value["command"].trim() === "") return "has no command"
  return "is no hook"
}

/** The command without its invalid optional fields, and the names of those fields. */
const mended = (
  value: Readonly<Record<string, unknown>>
): readonly [Readonly<Record<string, unknown>>, ReadonlyArray<string>] => {
  const { command, type, ...rest } = value
  const wrong = Object.keys(rest).filter(
    (key) =>
      Object.hasOwn(HookCommand.fields, key) &&
      Result.isFailure(decodeCommand({ command: "x", type: "command", [key]: rest[key] }))
  )
  const kept = Object.entries(rest).filter(([key]) => !wrong.includes(key))
  return [{ command, type, ...Object.fromEntries(kept) }, wrong]
}

/**
 * Reads the hooks of one level of settings. Invalid entries are left out with a warning and do not affect the others.
 */
export const hooksOf = (settings: HooksSettings, source: HookSource): ReadHooks => {
  const hooks: Array<CommandHook> = []
  const warnings: Array<string> = []
  for (const [event, groups] of Object.entries(settings)) {
    if (!isEventName(event)) {
      warnings.push(
        configKeys.includes(event)
          ? `hooks.${event} is no event; it belongs into hooksConfig`
          : `hooks has no event ${quotedPath(event)}; the events are ${Object.keys(HookEvent.cases).join(", ")}`
      )
      continue
    }
    if (!isList(groups)) {
      warnings.push(`hooks.${event} was left out: it is no list`)
      continue
    }
    for (const [at, group] of groups.entries()) {
      const where = `hooks.${event}[${at}]`
      if (!Predicate.isObject(group)) {
        warnings.push(`${where} was left out: it is no object`)
        continue
      }
      const { hooks: commands, matcher, sequential } = group
      if (!isList(commands)) {
        warnings.push(`${where}.hooks was left out: it is no list`)
        continue
      }
      // Without its matcher the hook would run for events it was not meant for.
      if (matcher !== undefined && typeof matcher !== "string") {
        warnings.push(`${where} was left out: its matcher is no text`)
        continue
      }
      if (sequential !== undefined && typeof sequential !== "boolean") {
        warnings.push(`${where}.sequential was left out: it is neither true nor false`)
      }
      for (const [index, value] of commands.entries()) {
        const here = `${where}.hooks[${index}]`
        const [kept, wrong] = Predicate.isObject(value) ? mended(value) : [value, []]
        const decoded = decodeCommand(kept)
        if (Result.isFailure(decoded) || decoded.success.command.trim() === "") {
          warnings.push(`${here} was left out: it ${hookProblem(value)}`)
          continue
        }
        for (const key of wrong) warnings.push(`${here}.${key} was left out: its value is of the wrong kind`)
        const { command, description, env = {}, name, timeout } = decoded.success
        hooks.push({
          source,
          event,
          matcher,
          sequential: sequential === true,
          command,
          name: name?.trim() === "" ? undefined : name,
          description,
          timeout,
          env
        })
      }
    }
  }
  return { hooks, warnings }
}

/** The hooks that are not disabled. */
export const enabledHooks = (
  hooks: ReadonlyArray<CommandHook>,
  { disabled = [], enabled = true }: HooksConfigSettings
): ReadonlyArray<CommandHook> => (enabled ? hooks.filter((hook) => !disabled.includes(hookName(hook))) : [])

/**
 * Removes duplicate hooks and keeps the first. A folder's hook gives way to the same hook of the user, so that a folder
 * cannot change its time limit or order.
 */
export const uniqueHooks = (hooks: ReadonlyArray<CommandHook>): ReadonlyArray<CommandHook> => {
  const own = new Set(hooks.filter(({ source }) => source !== "workspace").map(hookKey))
  const seenKeys = new Set<string>()
  return hooks.filter((hook) => {
    const key = hookKey(hook)
    if (seenKeys.has(key) || (hook.source === "workspace" && own.has(key))) return false
    seenKeys.add(key)
    return true
  })
}

/** Longest command and longest detail shown to the user, in characters. */
const maxCommandChars = 200
const maxDetailChars = 60

/**
 * A quoted one-line text. A longer text is cut and its length is shown, so that nothing hides behind a long beginning.
 */
const shown = (text: string, maxChars: number): string => {
  const whole = text.trim().replace(/[^\S\n]+/g, " ")
  const part = whole.length > maxChars ? `${firstUnits(whole, maxChars)}…` : whole
  const spelled = quotedPath(part)
  return `${spelled === part ? JSON.stringify(part) : spelled}${part === whole ? "" : ` (of ${whole.length} characters)`}`
}

/** Describes a hook to the user before it runs: when it runs, its name and its command. */
export const hookText = ({ command, env, event, matcher, name }: CommandHook): string => {
  const tools = matcherOf(matcher)
  const variables = Object.entries(env).map(([variable, value]) => `${variable}=${value}`)
  return [
    event,
    tools === "" ? "" : ` on ${shown(tools, maxDetailChars)}`,
    ": ",
    name === undefined ? "" : `${shown(name, maxDetailChars)} runs `,
    shown(command, maxCommandChars),
    variables.length === 0 ? "" : ` with ${shown(variables.join(" "), maxDetailChars)}`
  ].join("")
}

/** Most hooks listed in one warning. */
const maxListed = 20

/** A warning about new hooks of the workspace; undefined when there are none. */
export const newHooksWarning = (hooks: ReadonlyArray<CommandHook>): string | undefined => {
  if (hooks.length === 0) return undefined
  const more = hooks.length - maxListed
  const listed = [...hooks.slice(0, maxListed).map(hookText), ...(more > 0 ? [`and ${more} more`] : [])].join(", ")
  return hooks.length === 1
    ? `This folder brings a new hook, a command that runs by itself: ${listed}`
    : `This folder brings ${hooks.length} new hooks, commands that run by themselves: ${listed}`
}
