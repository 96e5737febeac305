/** The slash commands `/tools`, `/agents` and `/mcp`: list what the model can use. */

import { Effect } from "effect"
import { printableLine } from "../../../domain/text/InvisibleCharacters.ts"
import type { ApprovalMode } from "../../../domain/tools/Approval.ts"
import { mcpSource } from "../../../domain/tools/McpServer.ts"
import type { AgentHost } from "../../../services/runtime/AgentHost.ts"
import type { Tool } from "../../../services/tools/Tool.ts"
import { definitions } from "../../output/Columns.ts"
import { plural } from "../../output/Output.ts"
import { type ChatSession, say, type SlashCommand, tableColumns } from "./ChatSession.ts"

/** Whether a tool asks before it runs, as far as this is known before a call. */
const approvalText = (mode: ApprovalMode, { kind }: Tool): string => {
  if (kind === "read" || mode === "all" || (mode === "edits" && kind === "edit")) return ""
  return mode === "plan" && kind !== "fetch" ? " Waits for the plan." : " Asks first."
}

const firstSentence = (text: string): string => printableLine(text).split(/(?<=\.)\s/)[0] ?? ""

/** The tools without the agents: name, description and whether each asks first. */
const toolRows = ({ agents, approval, tools }: AgentHost): Effect.Effect<ReadonlyArray<readonly [string, string]>> =>
  Effect.map(approval.shownMode, (mode) =>
    tools
      .filter(({ name }) => !agents.tools.some((agent) => agent.name === name))
      .map((tool) => [tool.name, `${firstSentence(tool.description)}${approvalText(mode, tool)}`] as const)
  )

/** The agents that the model can delegate to: name and description. */
const agentRows = ({ agents }: AgentHost): ReadonlyArray<readonly [string, string]> =>
  agents.tools.map(({ description, name }) => [name, firstSentence(description)] as const)

/** Writes a table of names and descriptions, or a line when there are none. */
export const writeRows = Effect.fnUntraced(function* (
  session: ChatSession,
  rows: ReadonlyArray<readonly [string, string]>,
  none: string
) {
  if (rows.length === 0) return yield* say(session, none)
  yield* session.terminal.write(`${definitions(rows, yield* tableColumns(session))}\n`)
})

/** `/tools`: lists the tools of the model, and which of them ask first. */
export const tools: SlashCommand = {
  name: "tools",
  help: "List the model's tools, and which of them ask first",
  run: (session) =>
    Effect.flatMap(toolRows(session.agent), (rows) => writeRows(session, rows, "No tools are available in this chat."))
}

/** `/agents`: lists the agents that the model can delegate to. */
export const agents: SlashCommand = {
  name: "agents",
  help: "List the agents the model can delegate to",
  run: (session) => writeRows(session, agentRows(session.agent), "No agents are available in this chat.")
}

/** `/mcp`: lists the MCP servers whose tools the model has. */
export const mcp: SlashCommand = {
  name: "mcp",
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
