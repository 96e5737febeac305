import { printableLine } from "../../../domain/text/InvisibleCharacters.ts"
import { mcpSource } from "../../../domain/tools/McpServer.ts"
import { plural } from "../../output/Output.ts"
import type { SlashCommand } from "./SlashCommand.ts"
import { writeRows } from "./tools.ts"

/** `/mcp`: lists the MCP servers whose tools the model has. */
export const mcp: SlashCommand = {
  name: "mcp",
  usage: "",
  help: "List the MCP servers and their tools",
  run: (session) => {
    const servers = new Map<string, Array<string>>()
    for (const { description } of session.agent.tools) {
      const source = mcpSource(description)
      if (source !== undefined) servers.set(source.server, [...(servers.get(source.server) ?? []), source.tool])
    }
    const rows = [...servers].map(
      ([server, tools]) =>
        [printableLine(server), `${plural(tools.length, "tool")}: ${tools.map(printableLine).join(", ")}`] as const
    )
    return writeRows(
      session,
      rows,
      `No MCP server is connected. To add one, leave the chat and run: palimpsest config set mcpServers.NAME '{"command": "PROGRAM", "args": []}'`
    )
  }
}
