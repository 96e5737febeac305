import { shortLine } from "../text/OneLine.ts"
import { type Offer, type PromptInputs, has, lines } from "./PromptInputs.ts"

/** Agents and skills that the model can request by name. */

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
    "Work can be handed to an agent: each is a tool of its name. It works in a window of its own and only its result comes into yours, so the many files and long outputs of its way cost you nothing.",
    "",
    "- Hand over what is large and can be told in full: a search through unknown code, the same change in many files, commands with endless output. What takes you two or three calls, do yourself.",
    "- An agent sees nothing of this conversation. Write the whole task: the goal, the paths, what must not be touched, what you know already, and what the result has to say.",
    "- Agents that only read may run side by side. Never let two change the same files at once.",
    "- A result is a report, not a proof: check what you build on.",
    has(inputs, "run_agents")
      ? "- `run_agents` gives several tasks in one call: side by side, or as a chain in which each task gets the answer to the one before."
      : undefined,
    has(inputs, "sessions_spawn")
      ? "- `sessions_spawn` starts one that works beside you while you go on; its result arrives as a message."
      : undefined,
    "",
    listed(inputs.agents)
  )

/** When to activate which skill. */
export const agentSkills = (inputs: PromptInputs): string =>
  lines(
    "A skill is a set of instructions for one kind of work, kept in a folder and read when it is needed. Before such work call `activate_skill` with its name, then follow what it says as the user's guidance for that work; open the other files of its folder only as it asks for them. Activate none for work it is not made for.",
    "",
    listed(inputs.skills)
  )
