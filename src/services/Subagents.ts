import { Context, Effect, Ref, Schema, Scope } from "effect"
import { type AgentDefinition, localDefaults, placeOf, selected } from "../domain/AgentDefinition.ts"
import { words } from "../domain/ToolResult.ts"
import type { KnownAgent } from "./AgentDefinitions.ts"
import { AgentBounds, AgentFailure, type AgentResult, type AgentRunner, type Task } from "./AgentRunner.ts"
import * as LocalAgentRunner from "./LocalAgentRunner.ts"
import * as Tool from "./Tool.ts"
import type { RecallSource } from "./tools/Recall.ts"

/** Agents that an agent starts: one tool each, by its name (spec 9). */

/** Which agents are offered, and what runs them. */
export interface SubagentsOptions extends LocalAgentRunner.Parent {
  readonly agents: ReadonlyArray<KnownAgent>
  /** What runs agents that do not run in this process; where it gives undefined, the agent is not offered. */
  readonly elsewhere?: ((agent: KnownAgent) => AgentRunner | undefined) | undefined
  /** Names of those that are offered only where somebody asks for them. */
  readonly include?: ReadonlyArray<string> | undefined
}

/** The agents that can be started, as tools and by themselves. */
export interface Subagents {
  /** One a name, in the order of the agents. */
  readonly tools: ReadonlyArray<LocalAgentRunner.AgentTool>
  /** Starts the agent of this name, its own or that of its tool; undefined: there is none that could be started. */
  readonly runner: (name: string) => AgentRunner | undefined
  /** The conversations of the agents that were started last: for the parent's `recall`. */
  readonly sources: Effect.Effect<ReadonlyArray<RecallSource>>
}

const alike = `It works in a conversation of its own and sees nothing of this one: the task has to hold all that matters. Only its result comes back.`

const isRemote = ({ definition }: KnownAgent) => definition.kind === "remote"

/**
 * An agent that only reads runs beside others. One that may change things, itself or by an agent that it starts, runs alone;
 * what is changed is asked by the tools that change it.
 */
const kindOf = (
  { definition, own }: KnownAgent,
  { tools }: Pick<LocalAgentRunner.Parent, "tools">,
  agents: ReadonlyArray<KnownAgent>
): Extract<Tool.ToolKind, "read" | "execute"> =>
  definition.kind === "local" &&
  definition.runner === "inside" &&
  Object.keys(definition.mcpServers).length === 0 &&
  own?.reads !== false &&
  !agents.some((agent) => definition.tools?.includes(nameOf(agent)) === true) &&
  selected(definition.tools, tools).every(({ kind }) => kind === "read")
    ? "read"
    : "execute"

const inputsOf = (definition: AgentDefinition) =>
  definition.kind === "local" ? definition.inputs : localDefaults.inputs

/** What an agent is asked, of what its tool was called with. */
const promptOf = (inputs: Readonly<Record<string, unknown>>): string => {
  const query = inputs["query"]
  if (typeof query === "string") return query
  const [only, ...others] = Object.values(inputs)
  return typeof only === "string" && others.length === 0 ? only : JSON.stringify(inputs)
}

/** What the parent's model reads: how it ended first, so that no text can pretend another end. */
const report = (name: string, { note, reason, text, turns, work }: AgentResult): string => {
  const ended = `The agent ${name} ended with ${reason} after ${turns} ${turns === 1 ? "turn" : "turns"}.`
  const all = work === undefined ? undefined : `All it did: ${work}.`
  return `${[ended, note, all].filter((line) => line !== undefined).join(" ")}\n\n${text}`
}

/** The name of an agent's tool: its own, unless the API takes none that begins so, or none of that length. */
export const toolName = (name: string): string => (/^[a-z_]/.test(name) ? name : `agent_${name}`).slice(0, 64)

const nameOf = ({ definition }: KnownAgent): string => toolName(definition.name)

/** Tools that an agent may have beside those it is given here: no agent takes their place. */
const reserved = ["complete_task", "recall", "write_todos", "ask_user", "activate_skill"]

const toolOf = (known: KnownAgent, runner: AgentRunner, kind: Tool.ToolKind): LocalAgentRunner.AgentTool => {
  const { definition } = known
  const { description = "An agent that runs elsewhere.", name } = definition
  const tool = Tool.make({
    name: toolName(name),
    description: `${description} ${alike}`,
    parameters: Schema.Struct(inputsOf(definition)),
    result: Schema.String,
    kind,
    // Its own limits end it.
    timeout: "Infinity",
    title: (inputs) => promptOf(inputs),
    // What leaves this machine is shown each time (spec 9).
    question: isRemote(known)
      ? (inputs) =>
          Effect.succeed({
            detail: `${promptOf(inputs)}\n(goes to ${placeOf(definition)})`,
            grants: [],
            covers: `tasks for the agent ${name}`
          })
      : undefined,
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
        // Recovered or not, what is no result is none (users' pain 15).
        if (ended.reason !== "GOAL") {
          return yield* new Tool.ToolFailure({ message: report(name, ended), type: ended.reason })
        }
        return { value: report(name, ended), display: words(`${name} is done`) }
      }).pipe(
        Effect.scoped,
        Effect.catchTag("AgentFailure", ({ message }) => new Tool.ToolFailure({ message, type: "agent_failure" }))
      )
  })
  return { ...tool, isAgent: true }
}

/**
 * The agents that `options` name. How deep they may start others, and how many may be at work at once, `AgentBounds` says;
 * one too many is told so to whoever wants it.
 */
export const make = Effect.fn("Subagents.make")(function* (
  options: SubagentsOptions
): Effect.fn.Return<Subagents, never, LocalAgentRunner.Runtime> {
  // Without the scope in which they are offered: an agent lives in that of who starts it.
  const context = Context.omit(Scope.Scope)(yield* Effect.context<LocalAgentRunner.Runtime>())
  const { children, depth: most } = yield* AgentBounds
  const atWork = yield* Ref.make<ReadonlySet<object>>(new Set())
  const sources = yield* Ref.make<ReadonlyArray<RecallSource>>([])
  const parent: LocalAgentRunner.Parent = {
    ...options,
    began: (source) => Ref.update(sources, (before) => [source, ...before].slice(0, LocalAgentRunner.mostSources))
  }
  const { elsewhere, include = [], tools } = options
  const taken = new Set([...reserved, ...tools.flatMap(({ aliases, name }) => [name, ...aliases])])
  const known = new Map<string, KnownAgent>()
  for (const agent of options.agents) {
    const { definition, file = "it is built in" } = agent
    const name = nameOf(agent)
    const other = known.get(name)
    if (other === undefined && !taken.has(name)) {
      known.set(name, agent)
      continue
    }
    const has = other === undefined ? "a tool" : `the agent ${other.definition.name}`
    yield* Effect.logWarning(
      `the agent ${definition.name} is left out (${file}): ${has} has the name ${name}; give it another`
    )
  }
  const agents = [...known.values()]

  /** A place among those at work, and how it is given back: with the scope, if not before. Undefined: there is none. */
  const place = Effect.gen(function* () {
    const mine = {}
    const leave = Ref.update(atWork, (all) => new Set([...all].filter((one) => one !== mine)))
    const hasRoom = yield* Effect.acquireRelease(
      Ref.modify(atWork, (all) => (all.size < children ? [true, new Set([...all, mine])] : [false, all])),
      () => leave
    )
    return hasRoom ? leave : undefined
  })

  const bounded = ({ start }: AgentRunner, depth: number): AgentRunner => ({
    start: Effect.fn("Subagents.start")(function* (task) {
      if (depth > most) {
        return yield* new AgentFailure({
          message: `agents may start agents ${most} deep at most, and this would be one deeper; do this part of the work yourself`
        })
      }
      const leave = yield* place
      if (leave === undefined) {
        return yield* new AgentFailure({
          message: `${children} agents are at work already, which is the most; wait until one has ended, or do this yourself`
        })
      }
      const running = yield* start(task)
      // Its scope may stay open for long after it has ended: it can be talked to.
      yield* Effect.forkScoped(Effect.interruptible(Effect.ensuring(Effect.exit(running.result), leave)), {
        startImmediately: true
      })
      return running
    })
  })

  const runnerOf = (agent: KnownAgent, parent: LocalAgentRunner.Parent, depth: number): AgentRunner | undefined => {
    const { definition } = agent
    const runner =
      definition.kind === "local" && definition.runner === "inside"
        ? LocalAgentRunner.make(context, agent, definition, parent, (child) => toolsOf(child, depth + 1))
        : elsewhere?.(agent)
    return runner === undefined ? undefined : bounded(runner, depth)
  }

  const toolsOf = (parent: LocalAgentRunner.Parent, depth: number): ReadonlyArray<LocalAgentRunner.AgentTool> =>
    agents
      .filter(({ definition, isOptIn = false }) => !isOptIn || include.includes(definition.name))
      .flatMap((agent) => {
        const runner = runnerOf(agent, parent, depth)
        return runner === undefined ? [] : [toolOf(agent, runner, kindOf(agent, parent, agents))]
      })

  return {
    tools: toolsOf(parent, 1),
    runner: (name) => {
      const agent = agents.find((one) => one.definition.name === name || nameOf(one) === name)
      return agent === undefined ? undefined : runnerOf(agent, parent, 1)
    },
    sources: Ref.get(sources)
  }
})
