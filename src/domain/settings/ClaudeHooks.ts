import { Predicate, Result } from "effect"
import type { SetupResult } from "./McpClients.ts"
import { jsonOf, settingsProblemText, withoutValue, withValue } from "./SettingsText.ts"

/** Our hooks in the settings of Claude Code. */

/** The file with the settings of a folder, below it. */
export const claudeSettings = ".claude/settings.json"

/** The command of our hooks. */
export const hookCommand = "palimpsest hook"

const isOurs = (group: unknown): boolean =>
  Predicate.hasProperty(group, "hooks") &&
  Array.isArray(group.hooks) &&
  group.hooks.some((hook: unknown) => Predicate.hasProperty(hook, "command") && hook.command === hookCommand)

const own = { type: "command", command: hookCommand }

/** Before a compaction, a focus for the summary; after it, what the summary lost. */
const groups: ReadonlyArray<readonly [event: string, group: unknown]> = [
  ["PreCompact", { hooks: [own] }],
  ["SessionStart", { matcher: "compact", hooks: [own] }]
]

const groupsIn = (json: Readonly<Record<string, unknown>>, event: string): ReadonlyArray<unknown> => {
  const hooks = json["hooks"]
  const list = Predicate.hasProperty(hooks, event) ? hooks[event] : undefined
  return Array.isArray(list) ? list : []
}

/** Changes each event's list of hooks; a list that is empty afterwards goes. */
const changed = (
  text: string,
  change: (groups: ReadonlyArray<unknown>, own: unknown) => ReadonlyArray<unknown>
): SetupResult => {
  let next = text
  for (const [event, group] of groups) {
    const read = jsonOf(next.trim() === "" ? "{}" : next)
    if (Result.isFailure(read)) return { _tag: "Refused", reason: settingsProblemText(read.failure) }
    const before = groupsIn(read.success, event)
    const after = change(before, group)
    if (after.length === before.length) continue
    const edited = after.length === 0 ? withoutValue(next, ["hooks", event]) : withValue(next, ["hooks", event], after)
    if (Result.isFailure(edited)) return { _tag: "Refused", reason: settingsProblemText(edited.failure) }
    next = edited.success
  }
  return next === text ? { _tag: "Unchanged" } : { _tag: "Written", text: next }
}

/** Adds our hooks to the settings and keeps all else. */
export const withHooks = (text: string): SetupResult =>
  changed(text, (before, group) => (before.some(isOurs) ? before : [...before, group]))

/** Removes our hooks from the settings. */
export const withoutHooks = (text: string): SetupResult =>
  changed(text, (before) => before.filter((one) => !isOurs(one)))
