import { Effect, Schema } from "effect"
import { localDefaults } from "../../../domain/agent/AgentDefinition.ts"
import * as Tool from "../../tools/Tool.ts"
import type { KnownAgent } from "../AgentDefinitions.ts"
import { manual } from "./Manual.ts"

const topics = Object.keys(manual)
const list = topics.map((topic) => `${topic}: ${manual[topic]?.about ?? ""}`).join("\n")

/** Reads a page of the bundled manual. */
export const getInternalDocs = Tool.make({
  name: "get_internal_docs",
  description: "Reads the manual of palimpsest. Without a topic, lists the topics.",
  parameters: Schema.Struct({
    topic: Schema.optionalKey(Schema.String).annotate({ description: "One of the topics of the list" })
  }),
  result: Schema.String,
  kind: "read",
  title: ({ topic = "" }) => topic,
  run: ({ topic }) => {
    if (topic === undefined) return Effect.succeed({ value: list })
    const page = Object.hasOwn(manual, topic) ? manual[topic] : undefined
    return page === undefined
      ? Effect.fail(new Tool.ToolFailure({ message: `there is no topic ${topic}; there are: ${topics.join(", ")}` }))
      : Effect.succeed({ value: page.text })
  }
})

/** The agent's result: an answer and its sources. */
const Answer = Schema.Struct({
  answer: Schema.String.annotate({ description: "The answer, with the commands to type" }),
  sources: Schema.Array(Schema.String).annotate({ description: "The topics of the manual that the answer comes from" })
})

/** The agent that answers questions about this program from its manual. */
export const cliHelp: KnownAgent = {
  source: "built-in",
  file: undefined,
  own: { reads: true, open: Effect.succeed([getInternalDocs]) },
  definition: {
    ...localDefaults,
    kind: "local",
    name: "cli_help",
    displayName: "Help",
    description:
      "Answers questions about palimpsest itself: its commands and flags, settings, sessions, compression, agents. Use it whenever the user asks how to do something with this program.",
    prompt: `You answer questions about palimpsest, a command-line agent and a set of tools for long conversations. Your only source is its manual, which you read with get_internal_docs: first the list of topics, then the topics that may contain the answer.

Give the command or the setting to use, exactly as the manual writes it, with an example where it helps. If the manual does not answer the question, say so, and name what comes closest.`,
    query: `\${question}`,
    tools: [],
    temperature: 0.1,
    maxTurns: 10,
    timeoutMinutes: 3,
    inputs: {
      question: Schema.NonEmptyString.annotate({ description: "The question, as the user asked it" })
    },
    output: { name: "report", description: "The answer and its sources", schema: Answer }
  }
}
