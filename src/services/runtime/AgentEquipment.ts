import { Effect, type FileSystem, Path, type Scope } from "effect"
import type { HttpClient } from "effect/http/HttpClient"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import { remotePlace } from "../../domain/agent/AgentDefinition.ts"
import { unusableFileText } from "../../domain/agent/UnusableFile.ts"
import { agentDefaultsOf } from "../../domain/compression/strategies/Strategies.ts"
import { hooksOf } from "../../domain/hooks/HookSettings.ts"
import { memoryText } from "../../domain/memory/MemoryText.ts"
import type { Offer } from "../../domain/prompt/PromptInputs.ts"
import { type SettingsFile, withDefaults } from "../../domain/settings/Settings.ts"
import { mcpProblemText } from "../../domain/tools/McpError.ts"
import type { McpServersSettings } from "../../domain/tools/McpServer.ts"
import { commandReason, fileWords, memoryReason } from "../../domain/tools/SteeringFiles.ts"
import * as AgentMessages from "../agent/AgentMessages.ts"
import * as AgentMessageTools from "../agent/AgentMessageTools.ts"
import type { Profile } from "../agent/AgentRun.ts"
import { AgentBounds, type AgentLimits } from "../agent/AgentRunner.ts"
import * as Mailbox from "../agent/Mailbox.ts"
import * as Subagents from "../agent/Subagents.ts"
import { HookSystem } from "../hooks/HookSystem.ts"
import { Memory } from "../memory/Memory.ts"
import { onTouch } from "../memory/MemoryOnTouch.ts"
import type { Model } from "../model/Model.ts"
import type { Environment } from "../platform/Environment.ts"
import * as EnvironmentMessage from "../prompt/EnvironmentMessage.ts"
import * as SystemPrompt from "../prompt/SystemPrompt.ts"
import { SessionStore } from "../session/SessionStore.ts"
import type { TokenCounter } from "../tokens/TokenCounter.ts"
import { Approval } from "../tools/Approval.ts"
import { activateSkill } from "../tools/builtin/ActivateSkill.ts"
import { askUser } from "../tools/builtin/AskUser.ts"
import * as BackgroundCommands from "../tools/builtin/BackgroundCommands.ts"
import { FileRecorder } from "../tools/builtin/FileChange.ts"
import { enterPlanMode, exitPlanMode } from "../tools/builtin/PlanMode.ts"
import { recall } from "../tools/builtin/Recall.ts"
import { saveMemory } from "../tools/builtin/SaveMemory.ts"
import { writeTodos } from "../tools/builtin/WriteTodos.ts"
import type { McpOffer } from "../tools/McpServers.ts"
import { Plans } from "../tools/Plans.ts"
import { Skills } from "../tools/Skills.ts"
import { type Tool, ToolFailure } from "../tools/Tool.ts"
import { UserPrompt } from "../tools/UserPrompt.ts"
import { Workspace } from "../workspace/Workspace.ts"
import type { AgentHandlers, AgentHost, HostSession, RuntimeServices } from "./AgentHost.ts"
import { outputGuards } from "./AgentProfile.ts"
import { availableAgents } from "./AvailableAgents.ts"
import { builtinTools } from "./BuiltinTools.ts"
import { recorderOf } from "./FileRewind.ts"
import { message } from "./RuntimeNotice.ts"
import { RuntimePlatform } from "./RuntimePlatform.ts"

const noServers: McpOffer = { tools: [], problems: [] }

/** Starts the MCP servers. Their dependencies are loaded only if there are servers. */
const startServers = Effect.fnUntraced(function* (servers: McpServersSettings) {
  if (Object.keys(servers).length === 0) return noServers
  const { version } = yield* RuntimePlatform
  const { McpServers } = yield* Effect.promise(() => import("../tools/McpServers.ts"))
  return yield* McpServers.start(servers, { version })
})

/** The tools and the inbox of agents that run in the background, and report between two turns. */
const backgroundAgents = Effect.fnUntraced(function* (
  { runner, tools }: Subagents.Subagents,
  places: ReadonlyMap<string, string>,
  canFork: boolean
): Effect.fn.Return<Pick<Profile, "inbox" | "reminder" | "tools">, never, Scope.Scope> {
  const mailbox = yield* Mailbox.make
  const agents = tools.flatMap(({ description, name }) => {
    const agentRunner = runner(name)
    if (agentRunner === undefined) return []
    // The user sees each message that leaves this machine.
    const place = places.get(name)
    const question = (detail: string) => ({
      detail: `${detail}\n(goes to ${place})`,
      grants: [],
      covers: `messages to the agent ${name}`
    })
    return [{ name, description, runner: agentRunner, ...(place === undefined ? {} : { question }) }]
  })
  const children = yield* AgentMessages.makeChildren({ agents, mailbox, canFork })
  return {
    tools: AgentMessageTools.tools(children, mailbox),
    inbox: (use) => mailbox.deliver((letters) => use(letters.map(({ text }) => text))),
    reminder: children.alive
  }
})

/** Asks the user through the handler. If the user has left, the model receives a failure. */
const userPrompt = (answer: NonNullable<AgentHandlers["answer"]>): UserPrompt["Service"] => ({
  ask: (question) =>
    Effect.catchTag(
      answer(question),
      "Closed",
      () => new ToolFailure({ message: "the user closed the question without an answer", type: "nobody_there" })
    )
})

/** The tools of an agent, and the agents to which it can delegate. */
export interface AgentEquipment extends Pick<AgentHost, "agents" | "definitions"> {
  readonly tools: ReadonlyArray<Tool>
  readonly skills: ReadonlyArray<Offer>
  readonly background: Pick<Profile, "inbox" | "reminder">
  /** The commands that were started in the background. */
  readonly commands: AgentHost["commands"]
}

/** The equipment of an agent without tools. */
export const noEquipment: AgentEquipment = {
  commands: Effect.succeed([]),
  agents: { tools: [], batch: undefined, runner: () => undefined, sources: Effect.succeed([]) },
  definitions: { agents: [], problems: [] },
  tools: [],
  skills: [],
  background: {}
}

/** Where an agent works and what it is made from. */
export interface EquipmentOptions {
  readonly session: HostSession
  readonly handlers: AgentHandlers
  readonly approval: Approval["Service"]
  readonly workspace: Workspace["Service"]
  readonly memory: Memory["Service"]
  readonly plans: Plans["Service"] | undefined
  readonly isTrusted: boolean
}

/** Command lines that the settings run without a tool call of the model. */
const commandsOf = (
  { mcpServers = {} }: SettingsFile,
  { home, workspace }: HostSession["files"]
): ReadonlyArray<string> => [
  ...[home, workspace].flatMap(({ hooks = {} }) => hooksOf(hooks, "home").hooks.map(({ command }) => command)),
  ...Object.values(mcpServers).flatMap((server) =>
    "command" in server ? [server.command, ...(server.args ?? [])] : []
  )
]

/** Makes the tools, and finds the skills and agents. What it starts ends with the scope. */
export const make = Effect.fn("AgentEquipment.make")(function* ({
  approval,
  handlers: { answer, notify },
  isTrusted: isRootTrusted,
  memory,
  plans,
  session: { chat, files, id, session, settings },
  workspace
}: EquipmentOptions): Effect.fn.Return<AgentEquipment, never, RuntimeServices | Scope.Scope> {
  const platform = yield* RuntimePlatform
  const path = yield* Path.Path
  const skills = yield* platform.skills(workspace.root, isRootTrusted)
  const { problems: unusable, skills: offeredSkills } = yield* skills.all
  yield* Effect.forEach(unusable, (problem) => notify(message(unusableFileText(problem))), { discard: true })
  const { problems, tools: serverTools } = yield* startServers(settings.mcpServers ?? {})
  yield* Effect.forEach(problems, (problem) => notify(message(mcpProblemText(problem))), { discard: true })
  const commands = commandsOf(settings, files)
  const steering = Effect.map(memory.load, ({ blocks }) => [
    ...blocks.flatMap(({ file, imports }) => [file, ...imports]).map((place) => [place, memoryReason] as const),
    ...commands
      .flatMap(fileWords)
      .map((word): readonly [string, string] => [path.resolve(workspace.root, word), commandReason])
  ])
  const commandList = yield* BackgroundCommands.make
  const own = yield* builtinTools(settings, isRootTrusted, steering).pipe(
    Effect.provideService(Workspace, workspace),
    Effect.provideService(BackgroundCommands.BackgroundCommands, commandList),
    Effect.provideService(FileRecorder, recorderOf(chat, "tool"))
  )
  const touching = yield* onTouch([...own, ...serverTools]).pipe(
    Effect.provideService(Memory, memory),
    Effect.provideService(Workspace, workspace)
  )
  const prompt = answer === undefined ? undefined : userPrompt(answer)
  const remember = yield* Effect.provideService(saveMemory({ ask: prompt?.ask }), Memory, memory)
  const { definitions, runners } = yield* availableAgents(workspace.root, isRootTrusted, settings, notify)
  const store = yield* SessionStore
  const hooks = yield* HookSystem
  const context = yield* Effect.context<
    | ChildProcessSpawner
    | Environment
    | FileSystem.FileSystem
    | RuntimePlatform
    | HttpClient
    | Model
    | Path.Path
    | TokenCounter
  >()
  const { prompt: promptSettings, strategy, subagents: limits } = withDefaults(settings)
  const { children, depth, forkTokens, parallel, running, tasks } = limits
  const isLimited = settings.subagents !== undefined || agentDefaultsOf(strategy).subagents !== undefined
  // What a program provides holds where the settings say nothing.
  const bounds: AgentLimits = isLimited ? { children, depth, running } : yield* AgentBounds
  const isGit = yield* Effect.cached(EnvironmentMessage.isGit(workspace.root))
  const rules = (model: string, names: ReadonlyArray<string>) =>
    Effect.gen(function* () {
      return yield* SystemPrompt.agentRules({
        model,
        mode: yield* approval.mode,
        tools: names,
        hasHooks: hooks.has("AfterTool"),
        isGit: yield* isGit,
        toggles: promptSettings.sections
      })
    }).pipe(Effect.provideContext(context))
  const subagents = yield* Subagents.make({
    tools: touching,
    ...(tasks === 0 ? {} : { batch: { tasks, parallel } }),
    ...(forkTokens === 0 ? {} : { fork: { chat, session, maxTokens: forkTokens } }),
    settings: chat.settings,
    ...(id === undefined ? {} : { sessions: store, session: id }),
    mcp: (named) => Effect.provideContext(startServers(named), context),
    guards: Effect.map(Effect.provideContext(outputGuards(settings), context), (made) => ({ ...made, hooks })),
    ...(limits.prompt === "own" ? { memory: Effect.map(memory.load, memoryText) } : {}),
    ...(limits.prompt === "minimal" ? { rules } : {}),
    agents: definitions.agents,
    elsewhere: ({ definition: { name } }) => runners.get(name),
    include: Object.entries(settings.agents ?? {}).flatMap(([name, isWanted]) => (isWanted ? [name] : []))
  }).pipe(Effect.provideService(Approval, approval), Effect.provideService(AgentBounds, bounds))

  const places = new Map(
    definitions.agents.flatMap(({ definition }) => {
      const place = remotePlace(definition)
      return place === undefined ? [] : [[Subagents.toolName(definition.name), place] as const]
    })
  )
  const messages =
    settings.backgroundAgents === true
      ? yield* Effect.provideService(backgroundAgents(subagents, places, forkTokens > 0), AgentBounds, bounds)
      : undefined
  const planning =
    plans === undefined
      ? []
      : yield* Effect.all([enterPlanMode, exitPlanMode]).pipe(
          Effect.provideService(Approval, approval),
          Effect.provideService(Plans, plans),
          Effect.provideService(Workspace, workspace)
        )
  return {
    commands: commandList.all,
    agents: subagents,
    definitions,
    skills: offeredSkills.map(({ description, name }) => ({ name, description })),
    background: { inbox: messages?.inbox, reminder: messages?.reminder },
    tools: [
      ...touching,
      remember,
      writeTodos,
      ...planning,
      recall(chat, subagents.sources),
      ...(prompt === undefined ? [] : [yield* Effect.provideService(askUser, UserPrompt, prompt)]),
      ...(offeredSkills.length === 0 ? [] : [yield* Effect.provideService(activateSkill, Skills, skills)]),
      ...subagents.tools,
      ...(subagents.batch === undefined ? [] : [subagents.batch]),
      ...(messages?.tools ?? [])
    ]
  }
})
