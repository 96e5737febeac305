import { Result } from "effect"
import type { AgentName } from "../transcripts/AgentFolders.ts"
import { settingsProblemText, withoutBranch, withValue } from "./SettingsText.ts"

/** How to register this program's MCP server with each client. */

/** A client whose settings are known. */
export const clients = ["claude", "codex", "gemini", "opencode", "cursor", "vscode"] as const
export type McpClient = (typeof clients)[number]

/** The name of the server in a client's settings. */
const serverName = "palimpsest"

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
const serverArguments = (client: McpClient): ReadonlyArray<string> => {
  const agent = agents[client]
  return agent === undefined ? ["mcp"] : ["mcp", "--agent", agent]
}

/**
 * Returns the command line that registers the server with a client: the client's own command, or one of this program.
 */
export const setupLine = (client: McpClient, command: string): string => {
  const line = [command, ...serverArguments(client)].join(" ")
  switch (client) {
    case "claude":
      return `claude mcp add ${serverName} -- ${line}`
    case "codex":
      return `codex mcp add ${serverName} -- ${line}`
    case "gemini":
      return `gemini mcp add ${serverName} ${line}`
    default:
      return `palimpsest mcp --setup ${client} --write`
  }
}

/** Returns the path in a JSON document, and the value there, that a client expects. */
const entryOf = (client: McpClient, command: string): readonly [path: ReadonlyArray<string>, value: unknown] => {
  const args = serverArguments(client)
  switch (client) {
    case "opencode":
      return [["mcp", serverName], { type: "local", command: [command, ...args], enabled: true }]
    case "vscode":
      return [["servers", serverName], { type: "stdio", command, args }]
    default:
      return [["mcpServers", serverName], { command, args }]
  }
}

/** The settings with our server, or why they were left alone. */
export type SetupResult =
  | { readonly _tag: "Written"; readonly text: string }
  | { readonly _tag: "Unchanged" }
  | { readonly _tag: "Refused"; readonly reason: string }

/** Adds the server to a JSON document and keeps everything else, including comments. */
const addToJson = (text: string, client: McpClient, command: string): SetupResult => {
  const [path, value] = entryOf(client, command)
  const next = withValue(text, path, value)
  if (Result.isFailure(next)) return { _tag: "Refused", reason: settingsProblemText(next.failure) }
  return next.success === text ? { _tag: "Unchanged" } : { _tag: "Written", text: next.success }
}

/** Adds the server's table at the end of a TOML document. */
const addToToml = (text: string, client: McpClient, command: string): SetupResult => {
  if (new RegExp(`^\\s*\\[\\s*mcp_servers\\s*\\.\\s*"?${serverName}"?\\s*\\]`, "m").test(text))
    return { _tag: "Unchanged" }
  if (/^\s*mcp_servers\s*=/m.test(text))
    return { _tag: "Refused", reason: "it sets mcp_servers in one line; add the server by hand" }
  const table = [
    `[mcp_servers.${serverName}]`,
    `command = ${JSON.stringify(command)}`,
    `args = [${serverArguments(client)
      .map((each) => JSON.stringify(each))
      .join(", ")}]`
  ].join("\n")
  const before = text.trim() === "" ? "" : `${text.replace(/\s*$/, "")}\n\n`
  return { _tag: "Written", text: `${before}${table}\n` }
}

/** Adds the server to the text of a client's settings, which is empty when there is no file. */
export const withServer = (text: string, client: McpClient, command: string): SetupResult =>
  files[client].format === "json" ? addToJson(text, client, command) : addToToml(text, client, command)

const ownTable = new RegExp(
  `(?:^|\\n)[^\\S\\n]*\\[\\s*mcp_servers\\s*\\.\\s*"?${serverName}"?\\s*\\][^\\n]*(?:\\n(?![^\\S\\n]*\\[)[^\\n]*)*`
)

/** Removes the server from the text of a client's settings. */
export const withoutServer = (text: string, client: McpClient): SetupResult => {
  if (files[client].format === "toml") {
    const next = text.replace(ownTable, "").replace(/\n*$/, "\n").replace(/^\n+/, "")
    return ownTable.test(text) ? { _tag: "Written", text: next } : { _tag: "Unchanged" }
  }
  const next = withoutBranch(text, entryOf(client, "")[0])
  if (Result.isFailure(next)) return { _tag: "Refused", reason: settingsProblemText(next.failure) }
  return next.success === text ? { _tag: "Unchanged" } : { _tag: "Written", text: next.success }
}
