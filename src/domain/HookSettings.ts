import { Predicate, Result, Schema } from "effect"
import { firstUnits } from "./Bytes.ts"
import { HookEvent, type HookEventName } from "./Hook.ts"
import { quoted } from "./WorkspacePath.ts"

/** Which commands the settings want run for which event (spec 8), and how that is read: what is wrong is told and left out. */

/** One command of the settings. */
export const HookCommand = Schema.Struct({
  type: Schema.Literal("command"),
  /** What the shell runs; the event is written to its standard input as JSON. */
  command: Schema.NonEmptyString,
  /** What it is called where it is told of, and by which it is switched off. */
  name: Schema.optionalKey(Schema.String),
  description: Schema.optionalKey(Schema.String),
  /** Milliseconds that it may take. */
  timeout: Schema.optionalKey(Schema.Finite.check(Schema.isGreaterThan(0))),
  /** Variables that it gets beside those of the program. */
  env: Schema.optionalKey(Schema.Record(Schema.String, Schema.String))
})

/** Commands of one event, and for which of its occurrences they are meant. */
export const HookGroup = Schema.Struct({
  /** A regular expression on the tool's name, or the exact trigger, source, reason or kind; absent: all. */
  matcher: Schema.optionalKey(Schema.String),
  /** Whether all commands of the event run one after the other, each seeing what the one before changed. */
  sequential: Schema.optionalKey(Schema.Boolean),
  hooks: Schema.Array(HookCommand)
})

/** The settings key `hooks`: groups of commands by event. Whatever stands there is taken; `hooksOf` tells what is wrong. */
export const HooksSettings = Schema.Record(Schema.String, Schema.Union([Schema.Array(HookGroup), Schema.Unknown]))
export type HooksSettings = typeof HooksSettings.Type

/** The settings key `hooksConfig`: what holds for all hooks; of a folder's settings, what holds for its own. */
export const HooksConfigSettings = Schema.Struct({
  /** Whether commands are run at all; absent: yes. */
  enabled: Schema.optionalKey(Schema.Boolean),
  /** Names of hooks that are switched off; one without a name is named by its command. */
  disabled: Schema.optionalKey(Schema.Array(Schema.String)),
  /** Milliseconds that a hook may take that says nothing else (spec 8: 60,000). */
  timeout: Schema.optionalKey(Schema.Finite.check(Schema.isGreaterThan(0)))
})
export type HooksConfigSettings = typeof HooksConfigSettings.Type

/** Milliseconds that a hook may take where nothing else is set (spec 8). */
export const hookTimeout = 60_000

/** Where a hook was written down. */
export type HookSource = "workspace" | "home" | "system" | "extension"

/** Whose hooks run first: the smaller (spec 8; 0 is left to those within the program). */
export const sourcePriority: Readonly<Record<HookSource, number>> = { workspace: 1, home: 2, system: 3, extension: 4 }

/** One command, with the event and the occurrences it is meant for. */
export interface CommandHook {
  readonly source: HookSource
  readonly event: HookEventName
  readonly matcher: string | undefined
  readonly sequential: boolean
  readonly command: string
  readonly name: string | undefined
  readonly description: string | undefined
  /** Milliseconds. */
  readonly timeout: number | undefined
  readonly env: Readonly<Record<string, string>>
}

/** What one level of settings says about hooks. */
export interface ReadHooks {
  readonly hooks: ReadonlyArray<CommandHook>
  /** One line each: what was left out, and where it stands. */
  readonly warnings: ReadonlyArray<string>
}

/** What a hook is called: its name, or its command. */
export const hookName = ({ command, name }: Pick<CommandHook, "command" | "name">): string => name ?? command

/** What a matcher means, however it is written: empty for all. */
const matcherOf = (matcher = ""): string => (matcher.trim() === "*" ? "" : matcher.trim())

/** By what two hooks are the same, whoever wrote them and whatever they are called: when something runs, and what. */
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

/** Keys that older settings of Gemini CLI have beside the events; they belong into `hooksConfig`. */
const configKeys = ["enabled", "disabled", "notifications"]

/** What is wrong with a command that does not decode. */
const wrongIn = (value: unknown): string => {
  if (!Predicate.isObject(value)) return "is no object"
  if (value["type"] !== "command") {
    const type = value["type"]
    return typeof type === "string"
      ? `has the unknown type ${quoted(type)}; it can be "command"`
      : `has no type; it can be "command"`
  }
  if (typeof value["command"] !== "string" || value["command"].trim() === "") return "has no command"
  return "is no hook"
}

/** A command without the optional fields that are wrong, and which those were. */
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

/** Reads the hooks of one level of settings: what is wrong is left out, with a warning, and costs nothing else. */
export const hooksOf = (settings: HooksSettings, source: HookSource): ReadHooks => {
  const hooks: Array<CommandHook> = []
  const warnings: Array<string> = []
  for (const [event, groups] of Object.entries(settings)) {
    if (!isEventName(event)) {
      warnings.push(
        configKeys.includes(event)
          ? `hooks.${event} is no event; it belongs into hooksConfig`
          : `hooks has no event ${quoted(event)}; the events are ${Object.keys(HookEvent.cases).join(", ")}`
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
      // Without its matcher it would run for what it was never meant for.
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
          warnings.push(`${here} was left out: it ${wrongIn(value)}`)
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

/** Those that are not switched off by name, or none. */
export const enabledHooks = (
  hooks: ReadonlyArray<CommandHook>,
  { disabled = [], enabled = true }: HooksConfigSettings
): ReadonlyArray<CommandHook> => (enabled ? hooks.filter((hook) => !disabled.includes(hookName(hook))) : [])

/**
 * Each hook once (spec 8). The first of those that are the same stays, but a folder's gives way to the person's: it must not
 * put its own time limit or order in the place of theirs.
 */
export const uniqueHooks = (hooks: ReadonlyArray<CommandHook>): ReadonlyArray<CommandHook> => {
  const own = new Set(hooks.filter(({ source }) => source !== "workspace").map(hookKey))
  const known = new Set<string>()
  return hooks.filter((hook) => {
    const key = hookKey(hook)
    if (known.has(key) || (hook.source === "workspace" && own.has(key))) return false
    known.add(key)
    return true
  })
}

/** Characters that a person is shown of a command, and of what stands beside it. */
const mostCommand = 200
const mostBeside = 60

/** A text in quotes on one line. Of more than that it is told how much it is, so that nothing hides behind a long beginning. */
const shown = (text: string, most: number): string => {
  const whole = text.trim().replace(/[^\S\n]+/g, " ")
  const part = whole.length > most ? `${firstUnits(whole, most)}…` : whole
  const spelled = quoted(part)
  return `${spelled === part ? JSON.stringify(part) : spelled}${part === whole ? "" : ` (of ${whole.length} characters)`}`
}

/** A hook as a person is shown it before it runs: when it does, what it is called, and what is run. */
export const hookText = ({ command, env, event, matcher, name }: CommandHook): string => {
  const tools = matcherOf(matcher)
  const variables = Object.entries(env).map(([variable, value]) => `${variable}=${value}`)
  return [
    event,
    tools === "" ? "" : ` on ${shown(tools, mostBeside)}`,
    ": ",
    name === undefined ? "" : `${shown(name, mostBeside)} runs `,
    shown(command, mostCommand),
    variables.length === 0 ? "" : ` with ${shown(variables.join(" "), mostBeside)}`
  ].join("")
}

/** Hooks that one line has room for. */
const mostListed = 20

/** One line about hooks of the workspace that are new; undefined where none is. */
export const newHooksWarning = (hooks: ReadonlyArray<CommandHook>): string | undefined => {
  if (hooks.length === 0) return undefined
  const more = hooks.length - mostListed
  const listed = [...hooks.slice(0, mostListed).map(hookText), ...(more > 0 ? [`and ${more} more`] : [])].join(", ")
  return hooks.length === 1
    ? `This folder brings a new hook, a command that runs by itself: ${listed}`
    : `This folder brings ${hooks.length} new hooks, commands that run by themselves: ${listed}`
}
