import { Result } from "effect"
import { type McpClient, serverArguments, serverName, setupFile } from "./McpClients.ts"
import { settingsProblemText, withoutBranch, withValue } from "./SettingsText.ts"

/** Adds this program's MCP server to a client's settings, and removes it. */

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
  setupFile(client).format === "json" ? addToJson(text, client, command) : addToToml(text, client, command)

const ownTable = new RegExp(
  `(?:^|\\n)[^\\S\\n]*\\[\\s*mcp_servers\\s*\\.\\s*"?${serverName}"?\\s*\\][^\\n]*(?:\\n(?![^\\S\\n]*\\[)[^\\n]*)*`
)

/** Removes the server from the text of a client's settings. */
export const withoutServer = (text: string, client: McpClient): SetupResult => {
  if (setupFile(client).format === "toml") {
    const next = text.replace(ownTable, "").replace(/\n*$/, "\n").replace(/^\n+/, "")
    return ownTable.test(text) ? { _tag: "Written", text: next } : { _tag: "Unchanged" }
  }
  const next = withoutBranch(text, entryOf(client, "")[0])
  if (Result.isFailure(next)) return { _tag: "Refused", reason: settingsProblemText(next.failure) }
  return next.success === text ? { _tag: "Unchanged" } : { _tag: "Written", text: next.success }
}
