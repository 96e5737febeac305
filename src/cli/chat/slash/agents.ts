import { agentRows } from "../../output/ToolList.ts"
import type { SlashCommand } from "./SlashCommand.ts"
import { writeRows } from "./tools.ts"

/** `/agents`: lists the agents that the model can delegate to. */
export const agents: SlashCommand = {
  name: "agents",
  usage: "",
  help: "List the agents the model can delegate to",
  run: (session) => writeRows(session, agentRows(session.agent), "No agents are available in this chat.")
}
