import { Effect } from "effect"
import { printableLine } from "../../domain/text/InvisibleCharacters.ts"
import type { ApprovalMode } from "../../domain/tools/Approval.ts"
import type { AgentHost } from "../../services/runtime/AgentHost.ts"
import type { Tool } from "../../services/tools/Tool.ts"

/** The rows in which the chat lists the tools and agents of its model. */

/** Whether a tool asks before it runs, as far as this is known before a call. */
const approvalText = (mode: ApprovalMode, { kind }: Tool): string => {
  if (kind === "read" || mode === "all" || (mode === "edits" && kind === "edit")) return ""
  return mode === "plan" && kind !== "fetch" ? " Waits for the plan." : " Asks first."
}

const firstSentence = (text: string): string => printableLine(text).split(/(?<=\.)\s/)[0] ?? ""

/** The tools without the agents: name, description and whether each asks first. */
export const toolRows = ({
  agents,
  approval,
  tools
}: AgentHost): Effect.Effect<ReadonlyArray<readonly [string, string]>> =>
  Effect.map(approval.shownMode, (mode) =>
    tools
      .filter(({ name }) => !agents.tools.some((agent) => agent.name === name))
      .map((tool) => [tool.name, `${firstSentence(tool.description)}${approvalText(mode, tool)}`] as const)
  )

/** The agents that the model can delegate to: name and description. */
export const agentRows = ({ agents }: AgentHost): ReadonlyArray<readonly [string, string]> =>
  agents.tools.map(({ description, name }) => [name, firstSentence(description)] as const)
