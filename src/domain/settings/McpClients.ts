/** How to register this program's MCP server with each client. */

import { shellLine } from "../text/ShellWord.ts"
import type { AgentName } from "../transcripts/AgentFolders.ts"
import type { OwnCommand } from "./OwnCommand.ts"

/** A client whose settings are known. */
export const clients = ["claude", "codex", "gemini", "opencode", "cursor", "vscode"] as const
export type McpClient = (typeof clients)[number]

/** The name of the server in a client's settings. */
export const serverName = "palimpsest"

/** The place of a client's settings: below the working folder, or below Codex's own folder. */
export interface SetupFile {
  readonly base: "folder" | "codex"
  readonly path: string
  readonly format: "json" | "toml"
}

const files: Readonly<Record<McpClient, SetupFile>> = {
  claude: { base: "folder", path: ".mcp.json", format: "json" },
  codex: { base: "codex", path: "config.toml", format: "toml" },
  gemini: { base: "folder", path: ".gemini/settings.json", format: "json" },
  opencode: { base: "folder", path: "opencode.json", format: "json" },
  cursor: { base: "folder", path: ".cursor/mcp.json", format: "json" },
  vscode: { base: "folder", path: ".vscode/mcp.json", format: "json" }
}

/** Returns the file in which a client keeps its servers. */
export const setupFile = (client: McpClient): SetupFile => files[client]

const agents: Readonly<Partial<Record<McpClient, AgentName>>> = {
  claude: "claude",
  codex: "codex",
  gemini: "gemini",
  opencode: "opencode"
}

/** The arguments with which a client starts the server. A client without sessions of its own reads those of all agents. */
export const serverArguments = (client: McpClient): ReadonlyArray<string> => {
  const agent = agents[client]
  return agent === undefined ? ["mcp"] : ["mcp", "--agent", agent]
}

/**
 * Returns the command line that registers the server with a client: the client's own command, or one of this program. `separator` is
 * that of the system's paths.
 */
export const setupLine = (client: McpClient, command: OwnCommand, separator: string): string => {
  const line = shellLine([...command, ...serverArguments(client)], separator)
  switch (client) {
    case "claude":
      return `claude mcp add ${serverName} -- ${line}`
    case "codex":
      return `codex mcp add ${serverName} -- ${line}`
    case "gemini":
      return `gemini mcp add ${serverName} ${line}`
    default:
      return shellLine([...command, "mcp", "--setup", client, "--write"], separator)
  }
}
