/** Reads command hooks from settings. Invalid entries are left out, each with a warning. */

import { Predicate, Result, Schema } from "effect"
import { firstUnits } from "../text/Bytes.ts"
import { checkedPattern } from "../text/PatternSyntax.ts"
import { quotedPath } from "../text/WorkspacePath.ts"
import { HookEvent, type HookEventName } from "./Hook.ts"

/** One hook command in settings. */
const HookCommand = Schema.Struct({
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
const HookGroup = Schema.Struct({
  /**
   * A regular expression on the tool name (RE2's syntax), or the exact trigger, source, reason or kind. Absent: matches everything.
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

/** Something in the setting `hooks` that is not used: what is wrong, in words, and with which part of it. */
export interface HookProblem {
  /** Such as `hooks.BeforeTool[0].hooks[0]`. Undefined: `fault` names it. */
  readonly path: string | undefined
  readonly fault: string
}

/** A problem in words, in one line. */
export const hookProblemText = ({ fault, path }: HookProblem): string =>
  path === undefined ? fault : `${path} is ignored: ${fault}`

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

const noObject = "it is not an object"
const noList = "it is not a list"

/** What is wrong with a command that does not decode. */
const commandFault = (value: unknown): string => {
  if (!Predicate.isObject(value)) return noObject
  const { command, type } = value
  if (type !== "command") {
    return `it has ${typeof type === "string" ? `the unknown type ${quotedPath(type)}` : "no type"}; it can be "command"`
  }
  return typeof command !== "string" || command.trim() === "" ? "it has no command" : "it is not a hook"
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

/** Notes what is wrong with a part, which gives no hooks. */
type LeaveOut = (path: string, fault: string) => ReadonlyArray<never>

/** A hook without what its place in the settings says of it. */
type OwnHook = Pick<CommandHook, "command" | "description" | "env" | "name" | "timeout">

const commandHook = (value: unknown, where: string, leaveOut: LeaveOut): ReadonlyArray<OwnHook> => {
  const [kept, wrong] = Predicate.isObject(value) ? mended(value) : [value, []]
  const decoded = decodeCommand(kept)
  if (Result.isFailure(decoded) || decoded.success.command.trim() === "") return leaveOut(where, commandFault(value))
  for (const key of wrong) leaveOut(`${where}.${key}`, "its value is of the wrong kind")
  const { command, description, env = {}, name, timeout } = decoded.success
  return [{ command, name: name?.trim() === "" ? undefined : name, description, timeout, env }]
}

const groupHooks = (
  group: unknown,
  where: string,
  leaveOut: LeaveOut
): ReadonlyArray<Omit<CommandHook, "event" | "source">> => {
  if (!Predicate.isObject(group)) return leaveOut(where, noObject)
  const { hooks: commands, matcher, sequential } = group
  if (!isList(commands)) return leaveOut(`${where}.hooks`, noList)
  // Without its matcher the hook would run for events it was not meant for.
  if (matcher !== undefined && typeof matcher !== "string") return leaveOut(where, "its matcher is not a string")
  const checked = checkedPattern(matcher ?? "")
  if (Result.isFailure(checked)) return leaveOut(where, `its matcher cannot be used: ${checked.failure}`)
  if (sequential !== undefined && typeof sequential !== "boolean") {
    leaveOut(`${where}.sequential`, "it is neither true nor false")
  }
  return commands
    .flatMap((value, index) => commandHook(value, `${where}.hooks[${index}]`, leaveOut))
    .map((hook) => ({ matcher, sequential: sequential === true, ...hook }))
}

/**
 * Reads the hooks of one level of settings. Invalid entries are left out with a problem and do not affect the others.
 */
export const hooksOf = (settings: HooksSettings, source: HookSource) => {
  const hooks: Array<CommandHook> = []
  const problems: Array<HookProblem> = []
  const leaveOut: LeaveOut = (path, fault) => {
    problems.push({ path, fault })
    return []
  }
  for (const [event, groups] of Object.entries(settings)) {
    if (!isEventName(event)) {
      const events = Object.keys(HookEvent.cases).join(", ")
      const fault = configKeys.includes(event)
        ? `hooks.${event} is not an event; it belongs in hooksConfig`
        : `hooks has no event ${quotedPath(event)}; the events are ${events}`
      problems.push({ path: undefined, fault })
    } else if (!isList(groups)) leaveOut(`hooks.${event}`, noList)
    else {
      for (const [at, group] of groups.entries()) {
        for (const hook of groupHooks(group, `hooks.${event}[${at}]`, leaveOut)) hooks.push({ source, event, ...hook })
      }
    }
  }
  return { hooks, problems }
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
    ? `This folder has a new hook, a command that runs automatically: ${listed}`
    : `This folder has ${hooks.length} new hooks, commands that run automatically: ${listed}`
}
