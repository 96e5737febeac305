import { hookEdits, hookFile, isHooked } from "./CompactionHookSettings.ts"
import type { FileEdit } from "./InstalledFile.ts"
import { type McpClient, type SetupFile, clients, setupFile } from "./McpClients.ts"
import { serverEdit } from "./McpClientSettings.ts"
import { type OwnCommand, bareCommand, hookLine } from "./OwnCommand.ts"

/** The files of each agent that `install` changes, and how. */

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
    ...(agent !== "pi" && isHooked(agent)
      ? [{ ...hookFile(agent), edits: hookEdits(agent, hookLine(command, separator)) }]
      : []),
    ...(isPlugged(agent)
      ? [{ base: "folder" as const, path: files[agent], edits: [pluginEdit(plugins[agent], command)] }]
      : [])
  ])
