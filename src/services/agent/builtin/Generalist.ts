import { Schema } from "effect"
import { localDefaults } from "../../../domain/agent/AgentDefinition.ts"
import type { KnownAgent } from "../AgentDefinitions.ts"

/** The agent that does any task with all tools, so that its many steps do not fill the conversation. 20 turns, 10 minutes. */
export const generalist: KnownAgent = {
  source: "built-in",
  file: undefined,
  definition: {
    ...localDefaults,
    kind: "local",
    name: "generalist",
    displayName: "Generalist",
    description:
      "Does a task of many steps with all tools: the same change in many files, commands with long output, a search that has to be tried in many ways. What it reads and prints stays out of this conversation.",
    prompt: `You carry out one task for another agent, with all tools that it has itself.

- Find out first what there is: read before you change, and keep to the way things are done there.
- Do what the task says, all of it, and nothing it does not need.
- After a change, check it: run what checks it, or read it again. When a step fails, find out why before you try again.
- In the result say what you did, which files you changed and how you checked it, and what is left to do. Leave out how you got there.`,
    query: `\${request}`,
    maxTurns: 20,
    inputs: {
      request: Schema.NonEmptyString.annotate({
        description: "The task, with all that has to be known to do it, and what the result should say"
      })
    }
  }
}
