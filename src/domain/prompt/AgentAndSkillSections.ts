import { shortLine } from "../text/OneLine.ts"
import { type Offer, type PromptInputs, has, lines } from "./PromptInputs.ts"

/** Sections of the system prompt that list the agents and skills which the model can request by name. */

/** Longest description in characters; the full text is in the tool declaration. */
const maxDescriptionChars = 200
const maxNameChars = 100
/** Most agents or skills listed: a folder full of them would fill every request. */
const maxListed = 100

const listed = (offers: ReadonlyArray<Offer>): string =>
  lines(
    ...offers
      .slice(0, maxListed)
      .map(
        ({ description, name }) => `- ${shortLine(name, maxNameChars)}: ${shortLine(description, maxDescriptionChars)}`
      ),
    offers.length > maxListed ? `- … and ${offers.length - maxListed} more` : undefined
  )

/** When to delegate, and to which agent. */
export const agentContexts = (inputs: PromptInputs): string =>
  lines(
    "You can delegate work to agents. Each agent is a tool with the agent's name. It works in its own context window, and only its result enters yours: the files it reads and the long outputs it sees cost you nothing.",
    "",
    "- Delegate large tasks that you can describe completely: a search through unknown code, the same change in many files, commands with very long output. Do yourself what takes only two or three calls.",
    "- An agent does not see this conversation. Write the complete task: the goal, the paths, what must not be changed, what you already know, and what the result must contain.",
    "- Agents that only read may run in parallel. Never let two agents change the same files at the same time.",
    "- A result is a report, not a proof: verify whatever you build on.",
    has(inputs, "run_agents")
      ? "- `run_agents` starts several tasks in one call: in parallel, or as a chain in which each task receives the answer to the previous one."
      : undefined,
    has(inputs, "sessions_spawn")
      ? "- `sessions_spawn` starts an agent in the background while you continue; its result arrives as a message."
      : undefined,
    "",
    listed(inputs.agents)
  )

/** When to activate which skill. */
export const agentSkills = (inputs: PromptInputs): string =>
  lines(
    "A skill is a set of instructions for one kind of work, kept in a folder and read when needed. Before you start such work, call `activate_skill` with the skill's name, then follow its instructions as the user's guidance for that work. Open the other files in its folder only when it tells you to. Do not activate a skill for other kinds of work.",
    "",
    listed(inputs.skills)
  )
