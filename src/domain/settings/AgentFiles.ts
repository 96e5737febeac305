/** The files of each agent that `install` changes, and how: its MCP servers, its hooks around a compaction, a plugin. */

import { Predicate, Result } from "effect"
import { edited, type EditResult, type FileEdit, isJsonRest, jsonEdit, jsonObject, refused } from "./InstalledFile.ts"
import { clients, type McpClient, type SetupFile, setupFile } from "./McpClients.ts"
import { serverEdit } from "./McpClientSettings.ts"
import { bareCommand, hookLine, isOwnHookLine, type OwnCommand } from "./OwnCommand.ts"
import { withExisting, withItem, withoutEntry } from "./SettingsEdits.ts"

/** An agent with such hooks. */
type HookedAgent = Extract<McpClient, "claude" | "codex" | "gemini">

type Fields = Readonly<Record<string, unknown>>

/** A hook: the event, and the fields of its group and of the hook besides the command. */
interface EventHook {
  readonly event: string
  readonly group?: Fields
  readonly hook?: Fields
}

/** The event after a compaction: reports what the summary lost. Claude Code and Codex use the same name for it. */
const afterCompaction: EventHook = { event: "SessionStart", group: { matcher: "compact" } }

/** The settings file of each agent, and the hooks to add to it. */
const hooked: Readonly<Record<HookedAgent, { readonly file: SetupFile; readonly hooks: ReadonlyArray<EventHook> }>> = {
  claude: {
    file: { base: "folder", path: ".claude/settings.json", format: "json" },
    // Claude Code passes the output of a hook before a compaction to the summarizing model.
    hooks: [{ event: "PreCompact" }, afterCompaction]
  },
  codex: { file: { base: "codex", path: "hooks.json", format: "json" }, hooks: [afterCompaction] },
  // Gemini CLI has no event after a compaction. The next prompt is the first point at which a hook can add text.
  gemini: {
    file: { base: "folder", path: ".gemini/settings.json", format: "json" },
    hooks: [{ event: "BeforeAgent", hook: { name: "palimpsest" } }]
  }
}

/** Whether an agent has hooks around a compaction. */
const isHooked = (agent: InstallAgent): agent is HookedAgent => agent in hooked

/** A hook of ours in a list of groups. */
interface OwnHook {
  readonly group: number
  readonly index: number
  /** Whether its group has other hooks. */
  readonly isShared: boolean
  readonly line: string
}

const ownHooks = (groups: ReadonlyArray<unknown>, line: string): ReadonlyArray<OwnHook> =>
  groups.flatMap((one, group) => {
    const hooks: ReadonlyArray<unknown> =
      Predicate.hasProperty(one, "hooks") && Array.isArray(one.hooks) ? one.hooks : []
    return hooks.flatMap((hook, index) => {
      const command = Predicate.hasProperty(hook, "command") ? hook.command : undefined
      return Predicate.isString(command) && isOwnHookLine(command, line)
        ? [{ group, index, isShared: hooks.length > 1, line: command }]
        : []
    })
  })

/** The result of an edit that continues in a text that was written before. */
const written = (text: string, result: EditResult): EditResult =>
  result._tag === "Unchanged" ? { _tag: "Written", text } : result

const editOf = ({ event, group, hook }: EventHook, line: string): FileEdit => {
  const path = ["hooks", event]
  const placeOf = (own: OwnHook) => [...path, String(own.group), "hooks", String(own.index)]
  /** Our hooks in a text; the failure is the result of the edit. */
  const look = (text: string): Result.Result<ReadonlyArray<OwnHook>, EditResult> =>
    Result.flatMap(jsonObject(text), (json) => {
      const events = json["hooks"]
      if (events !== undefined && !Predicate.isObject(events)) return Result.fail(refused("hooks is not an object"))
      const groups = events?.[event]
      if (groups !== undefined && !Array.isArray(groups)) return Result.fail(refused(`hooks.${event} is not a list`))
      return Result.succeed(ownHooks(groups ?? [], line))
    })
  const add = (text: string): EditResult =>
    edited(look(text), (own) => {
      if (own.length === 0) {
        return jsonEdit(withItem(text, path, { ...group, hooks: [{ type: "command", command: line, ...hook }] }))
      }
      const stale = own.find((one) => one.line !== line)
      if (stale === undefined) return { _tag: "Unchanged" }
      const next = jsonEdit(withExisting(text, [...placeOf(stale), "command"], line))
      return next._tag === "Written" ? written(next.text, add(next.text)) : next
    })
  const remove = (text: string, removable: ReadonlyArray<string>): EditResult =>
    edited(look(text), ([own]) => {
      if (own === undefined) return { _tag: "Unchanged" }
      const place = own.isShared ? placeOf(own) : [...path, String(own.group)]
      const next = jsonEdit(withoutEntry(text, place, removable))
      return next._tag === "Written" ? written(next.text, remove(next.text, removable)) : next
    })
  return { isRest: isJsonRest, isWholeFile: false, containers: ["hooks", `hooks.${event}`], add, remove }
}

/** The hooks in an agent's settings, one edit each. `line`: the shell line that they run. */
export const hookEdits = (agent: HookedAgent, line: string): ReadonlyArray<FileEdit> =>
  hooked[agent].hooks.map((hook) => editOf(hook, line))

/** An agent that loads a plugin of this program. */
export type PluginAgent = "pi" | "opencode"

/** The path of each plugin below the working folder. */
const files: Readonly<Record<PluginAgent, string>> = {
  pi: ".pi/extensions/palimpsest.js",
  opencode: ".opencode/plugins/palimpsest.js"
}

/** Whether an agent loads a plugin of this program. */
const isPlugged = (agent: string): agent is PluginAgent => agent in files

/** The line of a plugin with the words that start this program. */
const commandLine = /^const command = .*$/m

const started = (plugin: string, command: OwnCommand): string =>
  plugin.replace(commandLine, () => `const command = [${command.map((word) => JSON.stringify(word)).join(", ")}]`)

/** Our plugin, which starts the program by `command`. A file that differs in anything else is the user's own. */
const pluginEdit = (plugin: string, command: OwnCommand): FileEdit => {
  const ours = started(plugin, command)
  const isOurs = (text: string): boolean => started(text, bareCommand) === started(plugin, bareCommand)
  return {
    isRest: (rest, text) => rest === "" || rest === text,
    isWholeFile: true,
    containers: [],
    add: (text) => {
      if (text === ours) return { _tag: "Unchanged" }
      if (text !== "" && !isOurs(text)) return { _tag: "Foreign", what: "another plugin" }
      return { _tag: "Written", text: ours }
    },
    remove: (text) => {
      if (text === "") return { _tag: "Unchanged" }
      return isOurs(text) ? { _tag: "Written", text: "" } : { _tag: "Foreign", what: "another plugin" }
    }
  }
}

/** An agent that this program can be added to. */
export type InstallAgent = McpClient | "pi"

/** All of them. */
export const installAgents: ReadonlyArray<InstallAgent> = [...clients, "pi"]

/** A file of an agent's, and the edits that add this program to it. */
export interface AgentFile extends Pick<SetupFile, "base" | "path"> {
  readonly edits: ReadonlyArray<FileEdit>
}

/** What is written into the files of agents. */
interface OwnParts {
  readonly command: OwnCommand
  /** The separator of the system's paths. */
  readonly separator: string
  /** The text of our plugin for an agent. */
  readonly plugins: Readonly<Record<PluginAgent, string>>
}

/** The file with a client's MCP servers. */
export const serverFile = (client: McpClient, command: OwnCommand): AgentFile => ({
  ...setupFile(client),
  edits: [serverEdit(client, command)]
})

/** Several entries for one file as one. */
const merged = (files: ReadonlyArray<AgentFile>): ReadonlyArray<AgentFile> =>
  [...new Set(files.map(({ path }) => path))].flatMap((path) => {
    const [first, ...others] = files.filter((file) => file.path === path)
    return first === undefined ? [] : [{ ...first, edits: [first, ...others].flatMap(({ edits }) => edits) }]
  })

/** The files that an agent's installation changes. */
export const agentFiles = (agent: InstallAgent, { command, plugins, separator }: OwnParts): ReadonlyArray<AgentFile> =>
  merged([
    ...(agent === "pi" ? [] : [serverFile(agent, command)]),
    ...(isHooked(agent) ? [{ ...hooked[agent].file, edits: hookEdits(agent, hookLine(command, separator)) }] : []),
    ...(isPlugged(agent)
      ? [{ base: "folder" as const, path: files[agent], edits: [pluginEdit(plugins[agent], command)] }]
      : [])
  ])
