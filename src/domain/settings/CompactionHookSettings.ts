import { Predicate, Result } from "effect"
import type { McpClient, SetupFile } from "./McpClients.ts"
import type { SetupResult } from "./McpClientSettings.ts"
import { jsonOf, settingsProblemText, withoutBranch, withValue } from "./SettingsText.ts"

/** Installs this program's hooks in the settings of agents that have hooks around a compaction. */

/** An agent with such hooks. */
export type HookedAgent = Extract<McpClient, "claude" | "codex" | "gemini">

/** The command of the hooks. */
export const hookCommand = "palimpsest hook"

const own = { type: "command", command: hookCommand }

type Groups = ReadonlyArray<readonly [event: string, group: unknown]>

/** The event after a compaction: reports what the summary lost. Claude Code and Codex use the same name for it. */
const afterCompaction: Groups[number] = ["SessionStart", { matcher: "compact", hooks: [own] }]

/** The settings file of each agent, and the hooks to add to it. */
const hooked: Readonly<Record<HookedAgent, { readonly file: SetupFile; readonly groups: Groups }>> = {
  claude: {
    file: { base: "folder", path: ".claude/settings.json", format: "json" },
    // Claude Code passes the output of a hook before a compaction to the summarizing model.
    groups: [["PreCompact", { hooks: [own] }], afterCompaction]
  },
  codex: { file: { base: "codex", path: "hooks.json", format: "json" }, groups: [afterCompaction] },
  // Gemini CLI has no event after a compaction. The next prompt is the first point at which a hook can add text.
  gemini: {
    file: { base: "folder", path: ".gemini/settings.json", format: "json" },
    groups: [["BeforeAgent", { hooks: [{ ...own, name: "palimpsest" }] }]]
  }
}

/** Whether an agent has hooks around a compaction. */
export const isHooked = (client: McpClient): client is HookedAgent => client in hooked

/** The file in which an agent keeps its hooks. */
export const hookFile = (agent: HookedAgent): SetupFile => hooked[agent].file

const isOurs = (group: unknown): boolean =>
  Predicate.hasProperty(group, "hooks") &&
  Array.isArray(group.hooks) &&
  group.hooks.some((hook: unknown) => Predicate.hasProperty(hook, "command") && hook.command === hookCommand)

const groupsIn = (json: Readonly<Record<string, unknown>>, event: string): ReadonlyArray<unknown> => {
  const hooks = json["hooks"]
  const list = Predicate.hasProperty(hooks, event) ? hooks[event] : undefined
  return Array.isArray(list) ? list : []
}

/** Changes the list of hooks of each event, and removes lists that become empty. */
const changed = (
  text: string,
  agent: HookedAgent,
  change: (groups: ReadonlyArray<unknown>, own: unknown) => ReadonlyArray<unknown>
): SetupResult => {
  let next = text
  for (const [event, group] of hooked[agent].groups) {
    const read = jsonOf(next.trim() === "" ? "{}" : next)
    if (Result.isFailure(read)) return { _tag: "Refused", reason: settingsProblemText(read.failure) }
    const before = groupsIn(read.success, event)
    const after = change(before, group)
    if (after.length === before.length) continue
    const edited = after.length === 0 ? withoutBranch(next, ["hooks", event]) : withValue(next, ["hooks", event], after)
    if (Result.isFailure(edited)) return { _tag: "Refused", reason: settingsProblemText(edited.failure) }
    next = edited.success
  }
  return next === text ? { _tag: "Unchanged" } : { _tag: "Written", text: next }
}

/** Adds the hooks to an agent's settings and keeps everything else. */
export const withHooks = (text: string, agent: HookedAgent): SetupResult =>
  changed(text, agent, (before, group) => (before.some(isOurs) ? before : [...before, group]))

/** Removes the hooks from an agent's settings. */
export const withoutHooks = (text: string, agent: HookedAgent): SetupResult =>
  changed(text, agent, (before) => before.filter((one) => !isOurs(one)))
