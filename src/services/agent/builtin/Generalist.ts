import { Schema } from "effect"
import { localDefaults } from "../../../domain/agent/AgentDefinition.ts"
import type { KnownAgent } from "../AgentDefinitions.ts"

/** An agent for any task, with all tools, so that its many steps do not fill the conversation. 20 turns, 10 minutes. */
export const generalist: KnownAgent = {
  source: "built-in",
  file: undefined,
  definition: {
    ...localDefaults,
    kind: "local",
    name: "generalist",
    displayName: "Generalist",
    description:
      "Carries out a task of many steps with all tools: the same change in many files, commands with long output, a search that needs many attempts. What it reads and prints stays out of this conversation.",
    prompt: `You carry out one task for another agent, with the same tools as that agent.

- Explore first: read before you change, and follow the existing conventions.
- Do everything that the task says, and nothing that it does not need.
- After a change, verify it: run its checks, or read it again. When a step fails, find out why before you try again.
- In the result, say what you did, which files you changed, how you verified the changes, and what is left to do. Leave out how you got there.`,
    query: `\${request}`,
    maxTurns: 20,
    inputs: {
      request: Schema.NonEmptyString.annotate({
        description: "The task, with everything needed to do it, and what the result should contain"
      })
    }
  }
}
