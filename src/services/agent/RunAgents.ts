/** The tool `run_agents`, which gives several tasks to agents in one call, in parallel or as a chain, as in Pi. */

import { Effect, Ref, Schema } from "effect"
import { type AgentResult } from "../../domain/agent/AgentResult.ts"
import { firstUnits } from "../../domain/text/Bytes.ts"
import { textDisplay } from "../../domain/tools/ToolResult.ts"
import * as Tool from "../tools/Tool.ts"
import { AgentContextMode, leavingQuestion, type OfferedAgent } from "./AgentRunner.ts"
import { firstLine } from "./ChildMessages.ts"

/** Stands in a task of a chain for the answer to the task before. */
const previousPlaceholder = "{previous}"

/** A task of a chain, with the answer to the task before in place of the placeholder. */
export const chainedTask = (task: string, previous: string): string =>
  task.replaceAll(previousPlaceholder, () => previous)

/** Characters of all results together: below the length at which a tool result is shortened. */
const maxResultChars = 36_000

/** The results, numbered in the order of the tasks. Each gets an equal share of the room. */
export const numberedResults = (results: ReadonlyArray<string>): string => {
  const room = Math.floor(maxResultChars / Math.max(1, results.length))
  return results.map((result, index) => `${index + 1}. ${bounded(result, room)}`).join("\n\n")
}

const bounded = (text: string, room: number): string => {
  const shown = firstUnits(text, room)
  return shown.length === text.length ? text : `${shown}\n(${text.length - shown.length} more characters)`
}

/** The maximum number of tasks in one call, and how many of them run at the same time. */
export interface BatchLimits {
  readonly tasks: number
  readonly parallel: number
}

/** The options of the tool. */
interface RunAgentsOptions {
  readonly agents: ReadonlyArray<OfferedAgent>
  readonly limits: BatchLimits
  /** Whether an agent may begin with a copy of the conversation. */
  readonly canFork: boolean
  /** `read`: all agents only read, so calls can run in parallel with others. */
  readonly kind: Extract<Tool.ToolKind, "read" | "execute">
  /** How a result is reported to the model. */
  readonly report: (name: string, result: AgentResult) => string
}

/** The context that a task asks for. */
export const contextParameter = Schema.optionalKey(AgentContextMode).annotate({
  description:
    "isolated: the agent starts with the task only (default). fork: it starts with a copy of this conversation"
})

const Assignment = Schema.Struct({
  agent: Schema.String.annotate({ description: "The name of the agent's tool" }),
  task: Schema.NonEmptyString.annotate({ description: "The task, with everything needed to do it" }),
  context: contextParameter
})
type Assignment = typeof Assignment.Type

/** How one task ended. */
interface TaskEnd {
  readonly isDone: boolean
  /** For the parent's model. */
  readonly report: string
  /** The agent's result. */
  readonly answer: string
}

const failed = (report: string): TaskEnd => ({ isDone: false, report, answer: "" })

const parametersOf = ({ canFork, limits: { tasks } }: RunAgentsOptions) => {
  const { context: _context, ...without } = Assignment.fields
  // Without an agent that can fork, the parameter is left out.
  const item: Schema.Codec<Assignment> = canFork ? Assignment : Schema.Struct(without)
  const list = (description: string) =>
    Schema.optionalKey(Schema.Array(item).check(Schema.isMinLength(1), Schema.isMaxLength(tasks))).annotate({
      description
    })
  return Schema.Struct({
    tasks: list("Tasks that do not depend on each other's results; they run in parallel"),
    chain: list(
      `Tasks that run one after the other; ${previousPlaceholder} in a task is replaced by the answer to the previous task. The first failure ends the chain`
    )
  }).check(
    Schema.makeFilter(
      ({ chain, tasks: parallel }) => (chain === undefined) !== (parallel === undefined) || "give either tasks or chain"
    )
  )
}

/** Makes the tool. */
export const make = (options: RunAgentsOptions): Tool.Tool => {
  const { agents, kind, limits } = options
  const listOf = ({ chain = [], tasks = [] }: { readonly [K in "chain" | "tasks"]?: ReadonlyArray<Assignment> }) =>
    tasks.length === 0 ? chain : tasks
  return Tool.make({
    name: "run_agents",
    description: `Gives up to ${limits.tasks} tasks to agents in one call: tasks run in parallel, at most ${limits.parallel} at a time; a chain runs them one after the other. Returns all results, in order.`,
    parameters: parametersOf(options),
    result: Schema.String,
    kind,
    // The agents have limits of their own.
    timeout: "Infinity",
    title: (params) => `${params.chain === undefined ? "" : "chain: "}${listOf(params).map(titleOf).join(", ")}`,
    question: (params) => Effect.succeed(questionAbout(listOf(params), agents)),
    run: Effect.fnUntraced(function* (params, context) {
      const list = listOf(params)
      const ends = yield* params.chain === undefined
        ? inParallel(options, list, context)
        : inChain(options, list, context)
      const done = ends.filter(({ isDone }) => isDone).length
      const isChainBroken = params.chain !== undefined && done < list.length
      const heading = isChainBroken
        ? `The chain stopped at task ${ends.length} of ${list.length}.`
        : `${done} of ${list.length} tasks reached their goal.`
      const message = `${heading}\n\n${numberedResults(ends.map(({ report }) => report))}`
      if (done === 0 || isChainBroken) return yield* new Tool.ToolFailure({ message, type: "agent_failure" })
      return { value: message, display: textDisplay(heading) }
    })
  })
}

const titleOf = ({ agent, task }: Assignment): string => `${agent}: ${firstLine(task)}`

/** Asks the user about each task that leaves this machine. */
const questionAbout = (list: ReadonlyArray<Assignment>, agents: ReadonlyArray<OfferedAgent>) => {
  const lines = list.map(({ agent, task }) => {
    const place = agents.find(({ name }) => name === agent)?.place
    return { agent, place, text: `${agent}: ${task}` }
  })
  const leaving = new Set(lines.flatMap(({ agent, place }) => (place === undefined ? [] : [agent])))
  return leavingQuestion(lines, `tasks for the agents ${[...leaving].join(", ")}`)
}

/** Runs one task. A failure is a result like any other, because the other tasks continue. */
const runTask = (
  { agents, report }: RunAgentsOptions,
  { agent, context, task }: Assignment,
  label: string,
  { activity, waiting }: Tool.CallContext
) => {
  const runner = agents.find(({ name }) => name === agent.trim())?.runner
  if (runner === undefined) {
    const names = agents.map(({ name }) => name).join(", ")
    return Effect.succeed(failed(`${agent} failed: there is no such agent; the agents are ${names}`))
  }
  return runner.start({ prompt: task, context, activity: (what) => activity(label, what), waiting }).pipe(
    Effect.flatMap(({ result }) => result),
    Effect.match({
      onSuccess: (result): TaskEnd => ({
        isDone: result.reason === "GOAL",
        report: report(agent, result),
        answer: result.text
      }),
      onFailure: ({ message }) => failed(`${agent} failed: ${message}`)
    }),
    Effect.scoped
  )
}

const inParallel = Effect.fnUntraced(function* (
  options: RunAgentsOptions,
  list: ReadonlyArray<Assignment>,
  context: Tool.CallContext
) {
  const ended = yield* Ref.make(0)
  return yield* Effect.forEach(
    list,
    (one, index) =>
      Effect.tap(runTask(options, one, labelOf(one, index, list), context), () =>
        Effect.flatMap(
          Ref.updateAndGet(ended, (count) => count + 1),
          (count) => context.progress(`${count} of ${list.length} tasks have ended`)
        )
      ),
    { concurrency: options.limits.parallel }
  )
})

const inChain = Effect.fnUntraced(function* (
  options: RunAgentsOptions,
  list: ReadonlyArray<Assignment>,
  context: Tool.CallContext
) {
  const ends: Array<TaskEnd> = []
  let previous = ""
  for (const [index, one] of list.entries()) {
    const task = chainedTask(one.task, previous)
    const end = yield* runTask(options, { ...one, task }, labelOf(one, index, list), context)
    ends.push(end)
    if (!end.isDone) break
    previous = end.answer
  }
  return ends
})

/** The agent's name where its activity is shown, with the number of its task if it has several. */
const labelOf = ({ agent }: Assignment, index: number, list: ReadonlyArray<Assignment>): string =>
  list.filter((other) => other.agent === agent).length > 1 ? `${agent} ${index + 1}` : agent
