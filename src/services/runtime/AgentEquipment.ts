/** Makes the tools, skills and subagents of an agent, as its folder and the settings allow. */

import { Effect, type FileSystem, Path, type Scope } from "effect"
import type { HttpClient } from "effect/http/HttpClient"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import { unusableFileText } from "../../domain/agent/UnusableFile.ts"
import { hooksOf } from "../../domain/hooks/HookSettings.ts"
import { memoryText } from "../../domain/memory/MemoryText.ts"
import type { Offer } from "../../domain/prompt/PromptInputs.ts"
import { type SettingsFile, withDefaults } from "../../domain/settings/Settings.ts"
import type { McpServersSettings } from "../../domain/tools/McpServer.ts"
import { commandReason, fileWords, memoryReason } from "../../domain/tools/SteeringFiles.ts"
import type { KnownAgent, KnownAgents } from "../agent/AgentDefinitions.ts"
import * as AgentMessages from "../agent/AgentMessages.ts"
import * as AgentMessageTools from "../agent/AgentMessageTools.ts"
import type { Profile } from "../agent/AgentRun.ts"
import { AgentBounds, type ExternalRunner } from "../agent/AgentRunner.ts"
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
import type { AgentHost, RuntimeServices } from "./AgentHost.ts"
import type { AgentHandlers, AgentParts, HostSession } from "./AgentParts.ts"
import { outputGuards } from "./AgentProfile.ts"
import { builtinTools } from "./BuiltinTools.ts"
import { recorderOf } from "./FileRewind.ts"
import { message, type Notify } from "./RuntimeNotice.ts"
import { RuntimePlatform } from "./RuntimePlatform.ts"

/** The agent without its MCP servers, if it comes from the workspace: only the user may start those. */
const withoutServers = (agent: KnownAgent): KnownAgent =>
  agent.source === "project" && agent.definition.kind === "local" && Object.keys(agent.definition.mcpServers).length > 0
    ? { ...agent, definition: { ...agent.definition, mcpServers: {} } }
    : agent

/** Whether an agent of the workspace would get one of the user's keys: the author of the folder chose where it goes. */
const takesKey = ({ definition, source }: KnownAgent): boolean =>
  source === "project" && definition.kind === "remote" && definition.auth !== undefined

const isOffered =
  ({ agents = {} }: SettingsFile) =>
  ({ definition: { name } }: KnownAgent): boolean =>
    agents[name] !== false

/** Returns an agent of a file with the runner of the settings, where its definition names none. Built-in agents run inside. */
export const withRunner =
  (runner: "inside" | "process") =>
  (agent: KnownAgent): KnownAgent =>
    runner === "inside" || agent.file === undefined || agent.definition.kind !== "local"
      ? agent
      : { ...agent, definition: { ...agent.definition, runner } }

/** The agents that are offered in a folder, and the runners of those outside this process. */
const availableAgents = Effect.fnUntraced(function* (
  root: string,
  isRootTrusted: boolean,
  settings: SettingsFile,
  notify: Notify
) {
  const platform = yield* RuntimePlatform
  const { all } = yield* platform.agents(root, isRootTrusted)
  const { agents: found, problems } = yield* all
  const offered = found.filter(isOffered(settings))
  const refused = offered.flatMap((agent) => {
    const { definition, file } = agent
    const where = `in your own agents only, not in ${file ?? "this folder"}`
    if (takesKey(agent)) return [`the agent ${definition.name} is sent a key ${where}; it is ignored`]
    if (withoutServers(agent) === agent) return []
    return [`the agent ${definition.name} starts MCP servers ${where}; it goes without`]
  })
  const lines = [...problems.map(unusableFileText), ...refused]
  yield* Effect.forEach(lines, (line) => notify(message(line)), { discard: true })
  const { subagents } = withDefaults(settings)
  const agents = offered
    .filter((agent) => !takesKey(agent))
    .map(withoutServers)
    .map(withRunner(subagents.runner))
  const definitions: KnownAgents = { agents, problems }
  const runners = new Map<string, ExternalRunner>()
  for (const agent of definitions.agents) {
    const runner = yield* platform.externalRunner(agent)
    if (runner !== undefined) runners.set(agent.definition.name, runner)
  }
  return { definitions, runners }
})

/** Agent definitions, and the runners of those that run outside this process, by name. */
type AvailableAgents = Effect.Success<ReturnType<typeof availableAgents>>

const noServers: McpOffer = { tools: [], problems: [] }

/** Starts the MCP servers. Their dependencies are loaded only if there are servers. */
const startServers = Effect.fnUntraced(function* (servers: McpServersSettings) {
  if (Object.keys(servers).length === 0) return noServers
  const { version } = yield* RuntimePlatform
  const { start } = yield* Effect.promise(() => import("../tools/McpServers.ts"))
  return yield* start(servers, { version })
})

/** The tools and the inbox of agents that run in the background, and report between two turns. */
const backgroundAgents = Effect.fnUntraced(function* ({ offered: agents }: Subagents.Subagents, canFork: boolean) {
  const mailbox = yield* Mailbox.make
  const messages = yield* AgentMessages.make({ agents, mailbox, canFork })
  return { tools: AgentMessageTools.tools(messages, mailbox), inbox: mailbox.deliver, reminder: messages.alive }
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
  agents: {
    offered: [],
    tools: [],
    batch: undefined,
    runner: () => undefined,
    inPlace: () => undefined,
    sources: Effect.succeed([])
  },
  definitions: { agents: [], problems: [] },
  tools: [],
  skills: [],
  background: {}
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

const reportAll = (notify: Notify, texts: ReadonlyArray<string>) =>
  Effect.forEach(texts, (text) => notify(message(text)), { discard: true })

/** Files whose change would steer the agent: memory files, and files that commands of the settings name. */
const steeringFiles = ({ memory, session: { files, settings }, workspace }: AgentParts, path: Path.Path) =>
  Effect.map(memory.load, ({ blocks }) => [
    ...blocks.flatMap(({ file, imports }) => [file, ...imports]).map((place) => [place, memoryReason] as const),
    ...commandsOf(settings, files)
      .flatMap(fileWords)
      .map((word) => [path.resolve(workspace.root, word), commandReason] as const)
  ])

/** The built-in tools and those of the MCP servers. Each loads the memory files of the folders that it touches. */
const workspaceTools = Effect.fnUntraced(function* (
  options: AgentParts,
  commands: BackgroundCommands.BackgroundCommandList,
  serverTools: ReadonlyArray<Tool>
) {
  const { isTrusted, memory, session, workspace } = options
  const steering = steeringFiles(options, yield* Path.Path)
  const own = yield* builtinTools(session.settings, isTrusted, steering).pipe(
    Effect.provideService(BackgroundCommands.BackgroundCommands, commands),
    Effect.provideService(FileRecorder, recorderOf(session.chat, "tool")),
    Effect.provideService(Workspace, workspace)
  )
  return yield* onTouch([...own, ...serverTools]).pipe(
    Effect.provideService(Memory, memory),
    Effect.provideService(Workspace, workspace)
  )
})

type SubagentServices =
  | ChildProcessSpawner
  | Environment
  | FileSystem.FileSystem
  | RuntimePlatform
  | HttpClient
  | Model
  | Path.Path
  | TokenCounter

/** The agents to which this one can delegate, with these tools at most. */
const makeSubagents = Effect.fnUntraced(function* (
  { approval, memory, nesting, session: { chat, id, session, settings }, workspace }: AgentParts,
  tools: ReadonlyArray<Tool>,
  { definitions, runners }: AvailableAgents
) {
  const hooks = yield* HookSystem
  const store = yield* SessionStore
  const context = yield* Effect.context<SubagentServices>()
  const { prompt: promptSettings, subagents: limits } = withDefaults(settings)
  const { forkTokens, parallel, tasks } = limits
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
  return yield* Subagents.make({
    tools,
    depth: nesting.place.depth,
    slots: nesting.slots,
    ...(tasks === 0 ? {} : { batch: { tasks, parallel } }),
    ...(forkTokens === 0 ? {} : { fork: { chat, session, maxTokens: forkTokens } }),
    settings: chat.settings,
    ...(id === undefined ? {} : { sessions: store, session: id }),
    mcp: (servers) => Effect.provideContext(startServers(servers), context),
    guards: Effect.map(Effect.provideContext(outputGuards(settings), context), (guards) => ({ ...guards, hooks })),
    ...(limits.prompt === "own" ? { memory: Effect.map(memory.load, memoryText) } : {}),
    ...(limits.prompt === "minimal" ? { rules } : {}),
    agents: definitions.agents,
    elsewhere: ({ definition: { name } }) => runners.get(name),
    include: Object.entries(settings.agents ?? {}).flatMap(([name, isIncluded]) => (isIncluded ? [name] : []))
  }).pipe(Effect.provideService(Approval, approval))
})

const planTools = ({ approval, plans, workspace }: AgentParts) =>
  plans === undefined
    ? Effect.succeed([])
    : Effect.all([enterPlanMode, exitPlanMode]).pipe(
        Effect.provideService(Approval, approval),
        Effect.provideService(Plans, plans),
        Effect.provideService(Workspace, workspace)
      )

/** Makes the tools, and finds the skills and agents. What it starts ends with the scope. */
export const make = Effect.fn("AgentEquipment.make")(function* (
  options: AgentParts
): Effect.fn.Return<AgentEquipment, never, RuntimeServices | Scope.Scope> {
  const { handlers, isTrusted, memory, session, workspace } = options
  const { answer, notify } = handlers
  const { chat, settings } = session
  const platform = yield* RuntimePlatform
  const skills = yield* platform.skills(workspace.root, isTrusted)
  const { problems: unusable, skills: offeredSkills } = yield* skills.all
  yield* reportAll(notify, unusable.map(unusableFileText))
  const { problems, tools: serverTools } = yield* startServers(settings.mcpServers ?? {})
  yield* reportAll(notify, problems)
  const commands = yield* BackgroundCommands.make
  const tools = yield* workspaceTools(options, commands, serverTools)
  const prompt = answer === undefined ? undefined : userPrompt(answer)
  const available = yield* availableAgents(workspace.root, isTrusted, settings, notify)
  const { bounds } = options.nesting
  const subagents = yield* makeSubagents(options, tools, available).pipe(Effect.provideService(AgentBounds, bounds))
  const canFork = withDefaults(settings).subagents.forkTokens > 0
  const background =
    settings.backgroundAgents === true && subagents.tools.length > 0
      ? yield* Effect.provideService(backgroundAgents(subagents, canFork), AgentBounds, bounds)
      : undefined
  return {
    commands: commands.all,
    agents: subagents,
    definitions: available.definitions,
    skills: offeredSkills.map(({ description, name }) => ({ name, description })),
    background: { inbox: background?.inbox, reminder: background?.reminder },
    tools: [
      ...tools,
      yield* Effect.provideService(saveMemory({ ask: prompt?.ask }), Memory, memory),
      writeTodos,
      ...(yield* planTools(options)),
      recall(chat, subagents.sources),
      ...(prompt === undefined ? [] : [yield* Effect.provideService(askUser, UserPrompt, prompt)]),
      ...(offeredSkills.length === 0 ? [] : [yield* Effect.provideService(activateSkill, Skills, skills)]),
      ...subagents.tools,
      ...(subagents.batch === undefined ? [] : [subagents.batch]),
      ...(background?.tools ?? [])
    ]
  }
})
