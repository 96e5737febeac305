/** The tools by which an agent starts other agents and exchanges messages with them. */

import { Duration, Effect, Schema } from "effect"
import { textDisplay } from "../../domain/tools/ToolResult.ts"
import { make as makeTool, type Tool } from "../tools/Tool.ts"
import { type AgentMessages, ChildState, failed } from "./AgentMessages.ts"
import type { AgentContextMode } from "./AgentRunner.ts"
import { firstLine } from "./ChildMessages.ts"
import type { Mailbox } from "./Mailbox.ts"
import { contextParameter } from "./RunAgents.ts"

const sessionParameter = Schema.String.annotate({ description: "The session id returned by sessions_spawn" })

const spawnParameters = {
  agent: Schema.String.annotate({ description: "The name of the agent" }),
  task: Schema.String.annotate({ description: "The task, with everything needed to do it" })
}

interface Spawn {
  readonly agent: string
  readonly task: string
  readonly context?: AgentContextMode
}

/** Without an agent that can fork, the parameter is left out. */
const spawnSchema = (canFork: boolean): Schema.Codec<Spawn> =>
  canFork ? Schema.Struct({ ...spawnParameters, context: contextParameter }) : Schema.Struct(spawnParameters)

const spawnTool = (children: AgentMessages): Tool =>
  makeTool({
    name: "sessions_spawn",
    description: `Starts an agent in the background and returns its session id at once. Its result arrives as a message when it is done: continue with other work, or wait for it with sessions_yield. ${children.canFork ? `Unless its context is fork, it` : "It"} does not see this conversation, so put everything it needs into the task. Agents:\n${children.agents
      .map(({ description, name }) => `- ${name}: ${description}`)
      .join("\n")}`,
    parameters: spawnSchema(children.canFork),
    result: Schema.Struct({ session: Schema.String, status: Schema.Literal("accepted") }),
    kind: "execute",
    title: ({ agent, task }) => `${agent}: ${firstLine(task)}`,
    question: ({ agent, task }) => children.question(agent, task),
    run: ({ agent, context, task }) =>
      Effect.map(children.spawn(agent, task, context), (session) => ({
        value: { session, status: "accepted" as const },
        display: textDisplay(`${session} is running`)
      }))
  })

const sendTool = (children: AgentMessages): Tool =>
  makeTool({
    name: "sessions_send",
    description:
      "Sends a message to an agent that you started, while it works or after it has ended, and waits for its reply. With timeout_seconds 0 it does not wait: the reply arrives as a message. Send REPLY_SKIP to end an exchange.",
    parameters: Schema.Struct({
      session: sessionParameter,
      message: Schema.String.annotate({ description: "The message to send" }),
      timeout_seconds: Schema.optionalKey(
        Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 3_600 }))
      ).annotate({
        description: "How long to wait for the reply (default 30); 0 does not wait"
      })
    }),
    result: Schema.String,
    kind: "execute",
    // The tool bounds its waiting time itself.
    timeout: "Infinity",
    title: ({ message, session }) => `${session}: ${firstLine(message)}`,
    question: ({ message, session }) => children.question(session, message),
    run: ({ message, session, timeout_seconds = 30 }, context) =>
      Effect.map(children.send(session, message, Duration.seconds(timeout_seconds), context), (value) => ({ value }))
  })

const listTool = (children: AgentMessages): Tool =>
  makeTool({
    name: "sessions_list",
    description: "Lists the agents that you started, with the task and the status of each.",
    parameters: Schema.Struct({}),
    result: Schema.Struct({ sessions: Schema.Array(ChildState) }),
    kind: "read",
    run: () => Effect.map(children.list, (sessions) => ({ value: { sessions } }))
  })

const historyTool = (children: AgentMessages): Tool =>
  makeTool({
    name: "sessions_history",
    description:
      "Shows the messages to and from an agent that you started, and its actions. Long entries are shortened, and secrets are removed.",
    parameters: Schema.Struct({ session: sessionParameter }),
    result: Schema.String,
    kind: "read",
    title: ({ session }) => session,
    run: ({ session }) => Effect.map(children.history(session), (value) => ({ value }))
  })

const yieldTool = (children: AgentMessages, mailbox: Mailbox): Tool =>
  makeTool({
    name: "sessions_yield",
    description: "Waits until an agent that you started reports. Use it when you have nothing else to do.",
    parameters: Schema.Struct({}),
    result: Schema.String,
    kind: "read",
    timeout: "Infinity",
    run: Effect.fnUntraced(function* () {
      // Waiting messages are delivered before the next turn, so there is nothing to wait for.
      if (yield* mailbox.hasMail) return { value: "A message has already arrived." }
      if (!(yield* children.isBusy))
        return yield* failed("no agent is running, so none will report; continue on your own")
      yield* Effect.raceFirst(mailbox.arrival, children.quiet)
      if (yield* mailbox.hasMail) return { value: "An agent has reported." }
      return {
        value: "No agent is running any more, and none has a message for you; sessions_list shows how they ended."
      }
    })
  })

/** The tools of an agent with these children and this mailbox. */
export const tools = (children: AgentMessages, mailbox: Mailbox): ReadonlyArray<Tool> => [
  spawnTool(children),
  sendTool(children),
  listTool(children),
  historyTool(children),
  yieldTool(children, mailbox)
]
