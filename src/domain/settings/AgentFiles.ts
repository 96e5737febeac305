import { hookEdits, hookFile, isHooked } from "./CompactionHookSettings.ts"
import type { FileEdit } from "./InstalledFile.ts"
import { clients, type McpClient, setupFile, type SetupFile } from "./McpClients.ts"
import { serverEdit } from "./McpClientSettings.ts"
import { hookLine, type OwnCommand } from "./OwnCommand.ts"
import { isPlugged, type PluginAgent, pluginEdit, pluginFile } from "./PluginFile.ts"

/** The files of each agent that `install` changes, and how. */

/** An agent that this program can be added to. */
export type InstallAgent = McpClient | "pi"

/** All of them. */
export const installAgents: ReadonlyArray<InstallAgent> = [...clients, "pi"]

/** A file of an agent's, and the edits that add this program to it. */
export interface AgentFile extends Pick<SetupFile, "base" | "path"> {
  readonly edits: ReadonlyArray<FileEdit>
}

/** What is written into the files of agents. */
export interface OwnParts {
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
      ? [{ base: "folder" as const, path: pluginFile(agent), edits: [pluginEdit(plugins[agent], command)] }]
      : [])
  ])
