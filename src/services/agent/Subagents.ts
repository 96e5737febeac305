/** The agents that an agent may start: one tool each, with the agent's name. */

import { Context, Effect, Exit, Schema, Scope } from "effect"
import {
  type AgentDefinition,
  type LocalAgent,
  localDefaults,
  remotePlace,
  selectTools
} from "../../domain/agent/AgentDefinition.ts"
import { mainAgent } from "../../domain/agent/AgentPlace.ts"
import { type AgentResult } from "../../domain/agent/AgentResult.ts"
import { textDisplay } from "../../domain/tools/ToolResult.ts"
import type { RecallSource } from "../tools/builtin/Recall.ts"
import * as Tool from "../tools/Tool.ts"
import type { KnownAgent } from "./AgentDefinitions.ts"
import {
  AgentBounds,
  AgentDepth,
  AgentFailure,
  type AgentLimits,
  type AgentRunner,
  type ExternalRunner,
  leavingQuestion,
  type OfferedAgent,
  type Task
} from "./AgentRunner.ts"
import * as AgentSlots from "./AgentSlots.ts"
import { outcomes } from "./ChildMessages.ts"
import * as LocalAgentRunner from "./LocalAgentRunner.ts"
import { type AgentTool, type ParentAgent, recentSources, type Runtime } from "./LocalAgentStart.ts"
import * as RunAgents from "./RunAgents.ts"

/** Which agents are offered, and what runs them. */
export interface SubagentsOptions extends ParentAgent {
  readonly agents: ReadonlyArray<KnownAgent>
  /** The runner of agents that do not run in this process. An agent for which it returns undefined is not offered. */
  readonly elsewhere?: ((agent: KnownAgent) => ExternalRunner | undefined) | undefined
  /** Names of opt-in agents to offer. */
  readonly include?: ReadonlyArray<string> | undefined
  /** Offers the tool `run_agents` with these limits. Absent: there is no such tool. */
  readonly batch?: RunAgents.BatchLimits | undefined
  /** The depth of the agent to which they are offered. Absent: 0. */
  readonly depth?: number | undefined
  /** Counts the running agents. Absent: those of this call of `make` are counted, and no others. */
  readonly slots?: AgentSlots.AgentSlots | undefined
}

/** The agents that can be started, as tools and by name. */
export interface Subagents {
  /** The agents that are offered to a model. */
  readonly offered: ReadonlyArray<OfferedAgent>
  /** One tool per offered agent, in the same order. */
  readonly tools: ReadonlyArray<AgentTool>
  /** The tool `run_agents`, which gives several tasks in one call. Undefined: not offered. */
  readonly batch: Tool.Tool | undefined
  /** The runner for an agent's name or the name of its tool. Undefined: no such agent can be started. */
  readonly runner: (name: string) => AgentRunner | undefined
  /** The runner for an agent in the place of the main agent: it has its depth, and is not counted again. Undefined: none can be started. */
  readonly inPlace: (definition: LocalAgent) => AgentRunner | undefined
  /** The conversations of the agents started last, for the parent's `recall`. */
  readonly sources: Effect.Effect<ReadonlyArray<RecallSource>>
}

const isolationNote = `It works in its own conversation and does not see this one: the task must contain everything that it needs. Only its result is returned.`

/**
 * The kind of an agent's tool. An agent that only reads runs beside calls that read. One that may change things, itself or through an agent it starts,
 * runs beside other agents only; the tools that change something ask for approval themselves.
 */
const kindOf = (
  { definition, own }: KnownAgent,
  { tools }: Pick<ParentAgent, "tools">,
  agents: ReadonlyArray<KnownAgent>
): Extract<Tool.ToolKind, "read" | "execute"> =>
  definition.kind === "local" &&
  definition.runner === "inside" &&
  Object.keys(definition.mcpServers).length === 0 &&
  own?.reads !== false &&
  !agents.some((agent) => definition.tools?.includes(nameOf(agent)) === true) &&
  selectTools(definition.tools, tools).every(({ kind }) => kind === "read")
    ? "read"
    : "execute"

const inputsOf = (definition: AgentDefinition) =>
  definition.kind === "local" ? definition.inputs : localDefaults.inputs

/** The prompt of an agent, from the arguments of its tool. */
const promptOf = (inputs: Readonly<Record<string, unknown>>): string => {
  const query = inputs["query"]
  if (typeof query === "string") return query
  const [only, ...others] = Object.values(inputs)
  return typeof only === "string" && others.length === 0 ? only : JSON.stringify(inputs)
}

/** The text the parent's model reads. It starts with how the agent ended, so that no text can fake another end. */
const report = (name: string, { note, reason, text, turns, work }: AgentResult): string => {
  const ended = `The agent ${name} ${outcomes[reason]} after ${turns} ${turns === 1 ? "turn" : "turns"}.`
  const all = work === undefined ? undefined : `Its whole work: ${work}.`
  return `${[ended, note, all].filter((line) => line !== undefined).join(" ")}\n\n${text}`
}

/** Returns the name of an agent's tool: the agent's own name, unless the API rejects its first character or length. */
const toolName = (name: string): string => (/^[a-z_]/.test(name) ? name : `agent_${name}`).slice(0, 64)

const nameOf = ({ definition }: KnownAgent): string => toolName(definition.name)

/** Tools that an agent may have in addition to those it inherits. No agent may have their names. */
const reserved = ["complete_task", "recall", "write_todos", "ask_user", "activate_skill", "run_agents"]

const toolOf = ({ agent, description, name: ofTool, place, runner }: Startable, kind: Tool.ToolKind): AgentTool => {
  const { definition } = agent
  const { name } = definition
  const tool = Tool.make({
    name: ofTool,
    description: `${description} ${isolationNote}`,
    parameters: Schema.Struct(inputsOf(definition)),
    result: Schema.String,
    kind,
    // The agent's own limits end it.
    timeout: "Infinity",
    title: (inputs) => promptOf(inputs),
    // The user sees each message that leaves this machine.
    question: (inputs) =>
      Effect.succeed(leavingQuestion([{ place, text: promptOf(inputs) }], `tasks for the agent ${name}`)),
    run: (inputs, { activity, progress, waiting }) =>
      Effect.gen(function* () {
        const task: Task = {
          prompt: promptOf(inputs),
          inputs,
          activity: (what) => activity(name, what),
          progress,
          waiting
        }
        const { result } = yield* runner.start(task)
        const ended = yield* result
        // Work that was not submitted is not a result, whether the agent recovered or not.
        if (ended.reason !== "GOAL") {
          return yield* new Tool.ToolFailure({ message: report(name, ended), type: ended.reason })
        }
        return { value: report(name, ended), display: textDisplay(`${name} is done`) }
      }).pipe(
        Effect.scoped,
        Effect.catchTag("AgentFailure", ({ message }) => new Tool.ToolFailure({ message, type: "agent_failure" }))
      )
  })
  return { ...tool, isAgent: true }
}

/**
 * Makes the agents that `options` names. `AgentBounds` limits how deep they may start others and how many may run at once; a start beyond a limit
 * fails with a message that says so.
 */
export const make = Effect.fn("Subagents.make")(function* (
  options: SubagentsOptions
): Effect.fn.Return<Subagents, never, Runtime> {
  const { agents, warnings } = distinctAgents(options)
  yield* Effect.forEach(warnings, (warning) => Effect.logWarning(warning), { discard: true })
  const host: Host = {
    options,
    agents,
    // The scope of this function is left out: an agent lives in the scope of its caller.
    context: Context.omit(Scope.Scope)(yield* Effect.context<Runtime>()),
    bounds: yield* AgentBounds,
    slots: options.slots ?? AgentSlots.inMemory()
  }
  const depth = (options.depth ?? 0) + 1
  const sources = yield* recentSources
  const parent: ParentAgent = { ...options, onConversation: sources.add }
  const startable = startableBy(host, parent, depth)
  const offered = offeredOf(host, startable, depth)
  return {
    offered,
    tools: toolsOf(host, parent, offered),
    batch: batchOf(host, parent, offered),
    runner: (name) => startable.find((one) => one.name === name || one.agent.definition.name === name)?.runner,
    inPlace: (definition) =>
      inside(host, { definition, source: "user", file: undefined }, definition, parent, depth - 1),
    sources: sources.all
  }
})

/** The services and limits that starting an agent needs, at any depth. */
interface Host {
  readonly options: SubagentsOptions
  /** The agents that have a name of their own. */
  readonly agents: ReadonlyArray<KnownAgent>
  readonly context: Context.Context<Runtime>
  readonly bounds: AgentLimits
  readonly slots: AgentSlots.AgentSlots
}

/** An agent that one parent can start. */
interface Startable extends OfferedAgent {
  readonly agent: KnownAgent
}

/** Returns the agents whose tool names are unique, and a warning about each other agent. */
const distinctAgents = ({ agents, tools }: Pick<SubagentsOptions, "agents" | "tools">) => {
  const usedNames = new Set([mainAgent, ...reserved, ...tools.flatMap(({ aliases, name }) => [name, ...aliases])])
  const byName = new Map<string, KnownAgent>()
  const warnings: Array<string> = []
  for (const agent of agents) {
    const { definition, file = "it is built in" } = agent
    const name = nameOf(agent)
    const other = byName.get(name)
    if (other === undefined && !usedNames.has(name)) {
      byName.set(name, agent)
      continue
    }
    const has =
      other !== undefined ? `the agent ${other.definition.name}` : name === mainAgent ? "the main agent" : "a tool"
    warnings.push(`the agent ${definition.name} is ignored (${file}): ${has} has the name ${name}; give it another`)
  }
  return { agents: [...byName.values()], warnings }
}

/** The agents that a parent can start at a depth. Their runners fail beyond a limit. */
const startableBy = (host: Host, parent: ParentAgent, depth: number): ReadonlyArray<Startable> => {
  const own = AgentSlots.inMemory()
  return host.agents.flatMap((agent) => {
    const { definition } = agent
    const runner =
      definition.kind === "local" && definition.runner === "inside"
        ? inside(host, agent, definition, parent, depth)
        : outside(host, agent, parent)
    if (runner === undefined) return []
    const { description = "A remote agent." } = definition
    const start = (task: Task) => startBounded(host, own, runner, depth, task)
    return [{ agent, name: nameOf(agent), description, place: remotePlace(definition), runner: { start } }]
  })
}

/** The agents that a model is offered at a depth. None beyond the limit. */
const offeredOf = (
  { bounds, options }: Host,
  startable: ReadonlyArray<Startable>,
  depth: number
): ReadonlyArray<Startable> =>
  depth > bounds.depth
    ? []
    : startable.filter(
        ({ agent: { definition, isOptIn = false } }) => !isOptIn || options.include?.includes(definition.name) === true
      )

const toolsOf = ({ agents }: Host, parent: ParentAgent, offered: ReadonlyArray<Startable>): ReadonlyArray<AgentTool> =>
  offered.map((one) => toolOf(one, kindOf(one.agent, parent, agents)))

/** The tool that gives tasks to several of the agents that are offered. */
const batchOf = (
  { agents, options: { batch: limits } }: Host,
  parent: ParentAgent,
  offered: ReadonlyArray<Startable>
): Tool.Tool | undefined =>
  limits === undefined || offered.length === 0
    ? undefined
    : RunAgents.make({
        agents: offered,
        limits,
        canFork: parent.fork !== undefined,
        kind: offered.every(({ agent }) => kindOf(agent, parent, agents) === "read") ? "read" : "execute",
        report
      })

const withoutCopy = ({ note, ...result }: AgentResult): AgentResult => {
  const why = "It started with its task only: an agent outside this process gets no copy of the conversation."
  return { ...result, note: note === undefined ? why : `${why} ${note}` }
}

/**
 * Runs an agent outside this process, with no more than its parent has. Such an agent cannot start with a copy of a conversation, and its
 * result says so.
 */
const outside = (host: Host, agent: KnownAgent, parent: ParentAgent): AgentRunner | undefined => {
  const runner = host.options.elsewhere?.(agent)
  if (runner === undefined) return undefined
  const { definition } = agent
  const patterns = definition.kind === "local" ? definition.tools : undefined
  const tools = [...selectTools(patterns, parent.tools), ...agentsIn(host, patterns)].map(({ name }) => name)
  return {
    start: Effect.fnUntraced(function* (task) {
      const { model } = yield* parent.settings
      const running = yield* runner.start(task, { tools, model })
      return task.context === "fork" ? { ...running, result: Effect.map(running.result, withoutCopy) } : running
    })
  }
}

/** The agents that a definition names among its tools. */
const agentsIn = ({ agents }: Host, patterns: ReadonlyArray<string> = []): ReadonlyArray<{ readonly name: string }> =>
  agents.map((agent) => ({ name: nameOf(agent) })).filter(({ name }) => patterns.includes(name))

/** The tools with which an agent of this process starts agents at a depth. */
const nestedTools = (host: Host, parent: ParentAgent, depth: number): ReadonlyArray<AgentTool> =>
  toolsOf(host, parent, offeredOf(host, startableBy(host, parent, depth), depth))

/** Runs an agent in this process at this depth. */
const inside = (
  host: Host,
  agent: KnownAgent,
  definition: LocalAgent,
  parent: ParentAgent,
  depth: number
): AgentRunner => ({
  start: (task) =>
    LocalAgentRunner.start(agent, definition, parent, (child) => nestedTools(host, child, depth + 1), task).pipe(
      Effect.provideContext(host.context),
      Effect.provideService(AgentDepth, depth)
    )
})

/** Starts an agent, unless a limit on depth or number is reached. */
const startBounded = Effect.fn("Subagents.start")(function* (
  host: Host,
  own: AgentSlots.AgentSlots,
  { start }: AgentRunner,
  depth: number,
  task: Task
) {
  const { depth: maxDepth } = host.bounds
  if (depth > maxDepth) {
    return yield* new AgentFailure({
      message: `agents may be nested at most ${maxDepth} levels deep, and this one would be deeper; do this part of the work yourself`
    })
  }
  const counted = yield* Scope.fork(yield* Effect.scope)
  const leave = Scope.close(counted, Exit.void)
  const running = yield* count(host, own).pipe(
    Scope.provide(counted),
    Effect.andThen(start(task)),
    Effect.onError(() => leave)
  )
  // The scope may stay open long after the agent ended, because the agent can still receive messages.
  yield* Effect.forkScoped(Effect.ensuring(Effect.exit(running.result), leave), {
    startImmediately: true
  })
  return running
})

/** Counts an agent among those that run, until the scope closes. Fails when no more may run. `own`: those of its parent. */
const count = Effect.fnUntraced(function* ({ bounds, slots }: Host, own: AgentSlots.AgentSlots) {
  for (const [places, most, which] of [
    [slots, bounds.running, "agents"],
    [own, bounds.children, "agents that you started"]
  ] as const) {
    if (yield* places.take(most)) continue
    return yield* new AgentFailure({
      message: `${most} ${which} are already running, which is the maximum; wait until one ends, or do this yourself`
    })
  }
})
