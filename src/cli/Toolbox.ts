import { Context, Effect, Layer, Path, type Scope, Stream } from "effect"
import type { HttpClient } from "effect/http/HttpClient"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import { placeOf } from "../domain/AgentDefinition.ts"
import type { Answer } from "../domain/Approval.ts"
import { printable } from "../domain/Inspection.ts"
import type { McpServersSettings } from "../domain/McpServer.ts"
import type { SettingsFile } from "../domain/Settings.ts"
import * as Agent from "../services/Agent.ts"
import type { KnownAgent, KnownAgents } from "../services/AgentDefinitions.ts"
import type { AgentRunner } from "../services/AgentRunner.ts"
import * as AgentMessages from "../services/AgentMessages.ts"
import { Approval } from "../services/Approval.ts"
import * as EditCorrector from "../services/EditCorrector.ts"
import type { Environment } from "../services/Environment.ts"
import * as LoopDetector from "../services/LoopDetector.ts"
import * as Mailbox from "../services/Mailbox.ts"
import type { McpOffer } from "../services/McpServers.ts"
import type { Model } from "../services/Model.ts"
import { summarize } from "../services/OutputSummary.ts"
import { Person } from "../services/Person.ts"
import { AllowPrivate } from "../services/PublicNetwork.ts"
import { Router } from "../services/Router.ts"
import { SessionFiles } from "../services/SessionFiles.ts"
import { SessionStore } from "../services/SessionStore.ts"
import { Settings } from "../services/Settings.ts"
import { Skills } from "../services/Skills.ts"
import * as Subagents from "../services/Subagents.ts"
import { blobFolderOf } from "../services/TempStore.ts"
import type { TokenCounter } from "../services/TokenCounter.ts"
import { type Tool, ToolFailure } from "../services/Tool.ts"
import { activateSkill } from "../services/tools/ActivateSkill.ts"
import { askUser } from "../services/tools/AskUser.ts"
import { glob } from "../services/tools/Glob.ts"
import { listDirectory } from "../services/tools/ListDirectory.ts"
import { readFile } from "../services/tools/ReadFile.ts"
import { readManyFiles } from "../services/tools/ReadManyFiles.ts"
import { recall } from "../services/tools/Recall.ts"
import { replace } from "../services/tools/Replace.ts"
import { searchFiles } from "../services/tools/SearchFiles.ts"
import { shell, ShellSettings } from "../services/tools/Shell.ts"
import { webFetch } from "../services/tools/WebFetch.ts"
import { webSearch } from "../services/tools/WebSearch.ts"
import { writeFile } from "../services/tools/WriteFile.ts"
import { writeTodos } from "../services/tools/WriteTodos.ts"
import { Workspace } from "../services/Workspace.ts"
import { badInput, type ExitError, failed } from "./ExitError.ts"
import { Ground, mainAgent, type People, type Runtime, type Wanted, type Worker } from "./Worker.ts"
import type { Opened } from "./OpenChat.ts"

/** An agent with its tools, made of flags and settings. Loaded only by commands in which one works: it is half of the program. */

/** Spec 9. */
const usualTurns = 100
/** What a router picks from where nobody says otherwise (seed 002). */
const usualModels = { flash: "gemini-2.5-flash", pro: "gemini-2.5-pro" }
/** Tokens of a summarised output where its setting names none (spec 5.3). */
const usualBudget = 2_000

const no: Answer = { _tag: "No", words: "" }

/** The tools for files, commands and pages, those that only look first. */
const ownTools = Effect.fnUntraced(function* ({ allowPrivateNetwork, editCorrection, passEnvironment }: SettingsFile) {
  const usual = yield* ShellSettings
  return yield* Effect.all([
    readFile,
    readManyFiles,
    listDirectory,
    glob,
    searchFiles,
    writeFile,
    editCorrection === true ? Effect.provide(replace, EditCorrector.layer()) : replace,
    Effect.provideService(shell, ShellSettings, { ...usual, passed: passEnvironment ?? usual.passed }),
    Effect.provideService(webFetch, AllowPrivate, allowPrivateNetwork ?? false),
    webSearch()
  ])
})

const noServers: McpOffer = { tools: [], problems: [] }

const mcpOf = Effect.fnUntraced(function* (servers: McpServersSettings) {
  if (Object.keys(servers).length === 0) return noServers
  const { version } = yield* Ground
  const { McpServers } = yield* Effect.promise(() => import("../services/McpServers.ts"))
  return yield* McpServers.start(servers, { version })
})

/** What watches over an agent and shortens what it reads, as the settings say; each agent has its own. */
const beside = ({ loopDetection, summarizeToolOutput }: SettingsFile) =>
  Effect.gen(function* () {
    const context = yield* Effect.context<Model | TokenCounter>()
    const loops = yield* LoopDetector.make({ enabled: loopDetection ?? true })
    if (summarizeToolOutput === undefined) return { loops }
    return {
      loops,
      summarize: (tool: string, output: string, intent: string) => {
        const asked = summarizeToolOutput[tool]
        if (asked === undefined) return Effect.undefined
        return Effect.provideContext(
          summarize({ tool, text: output, intent, budget: asked.tokenBudget ?? usualBudget }),
          context
        )
      }
    }
  })

const routeOf = Effect.fnUntraced(function* ({ chat, settings: { router } }: Pick<Opened, "chat" | "settings">) {
  if (router === undefined || router === false) return {}
  const built = yield* Layer.build(Router.layerClassifier(router === true ? usualModels : router))
  const { pick } = Context.get(built, Router)
  return {
    route: (request: Parameters<NonNullable<Agent.Profile["route"]>>[0]) => pick({ history: chat.contents, request })
  }
})

const workspaceOf = Effect.fnUntraced(function* (
  id: string | undefined,
  added: ReadonlyArray<string>
): Effect.fn.Return<Workspace["Service"], ExitError, Ground | Path.Path | SessionFiles> {
  const { workspace } = yield* Ground
  const path = yield* Path.Path
  const { of } = yield* SessionFiles
  const readable = id === undefined ? [] : [blobFolderOf(of(id))]
  return yield* workspace({ root: path.resolve("."), added, readable }).pipe(
    Effect.mapError(({ message }) => badInput(printable(message)))
  )
})

/** An agent of the workspace starts no server: that is for the person to say, as in the settings. */
const withoutServers = (agent: KnownAgent): KnownAgent =>
  agent.source === "project" && agent.definition.kind === "local" && Object.keys(agent.definition.mcpServers).length > 0
    ? { ...agent, definition: { ...agent.definition, mcpServers: {} } }
    : agent

/** An agent of the workspace that would be sent a key of the person's: whoever wrote the folder chose where to. */
const wantsKey = ({ definition, source }: KnownAgent): boolean =>
  source === "project" && definition.kind === "remote" && definition.auth !== undefined

const isOffered =
  ({ agents = {} }: SettingsFile) =>
  ({ definition: { name } }: KnownAgent): boolean =>
    agents[name] !== false

/** The agents that are offered here, and what runs those that run elsewhere. */
const agentsAt = Effect.fnUntraced(function* (root: string, settings: SettingsFile, tell: People["tell"]) {
  const ground = yield* Ground
  const definitions = yield* ground.agents(root)
  const { agents, problems } = yield* definitions.all
  const offered = agents.filter(isOffered(settings))
  const unheeded = offered.flatMap((agent) => {
    const { definition, file } = agent
    const where = `in your own agents only, not in ${file ?? "this folder"}`
    if (wantsKey(agent)) return [`the agent ${definition.name} is sent a key ${where}; it was left out`]
    if (withoutServers(agent) === agent) return []
    return [`the agent ${definition.name} starts MCP servers ${where}; it goes without`]
  })
  const told = [...problems.map(({ message }) => message), ...unheeded]
  yield* Effect.forEach(told, (line) => tell(printable(line)), { discard: true })
  const known: KnownAgents = { agents: offered.filter((agent) => !wantsKey(agent)).map(withoutServers), problems }
  const runners = new Map<string, AgentRunner>()
  for (const agent of known.agents) {
    const runner = yield* ground.elsewhere(agent)
    if (runner !== undefined) runners.set(agent.definition.name, runner)
  }
  return { known, runners }
})

/** Agents that work beside the conversation, and what they have to say between two turns of it. */
const messagesOf = Effect.fnUntraced(function* (
  { runner, tools }: Subagents.Subagents,
  places: ReadonlyMap<string, string>
): Effect.fn.Return<Pick<Agent.Profile, "inbox" | "reminder" | "tools">, never, Scope.Scope> {
  const mailbox = yield* Mailbox.make
  const agents = tools.flatMap(({ description, name }) => {
    const found = runner(name)
    if (found === undefined) return []
    // What leaves this machine is shown each time (spec 9).
    const place = places.get(name)
    const question = (detail: string) => ({
      detail: `${detail}\n(goes to ${place})`,
      grants: [],
      covers: `messages to the agent ${name}`
    })
    return [{ name, description, runner: found, ...(place === undefined ? {} : { question }) }]
  })
  const children = yield* AgentMessages.makeChildren({ agents, mailbox })
  return {
    tools: AgentMessages.tools(children, mailbox),
    inbox: (use) => mailbox.deliver((letters) => use(letters.map(({ text }) => text))),
    reminder: children.alive
  }
})

const nothing: Pick<Worker, "agents" | "known"> = {
  agents: { tools: [], runner: () => undefined, sources: Effect.succeed([]) },
  known: { agents: [], problems: [] }
}

const worker = (
  profile: Agent.Profile,
  approval: Approval["Service"],
  others: Pick<Worker, "agents" | "known">
): Worker => ({
  ...others,
  approval,
  tools: profile.tools,
  run: (message, options) => Stream.provideService(Agent.run(profile, message, options), Approval, approval)
})

/** The person who answers in this way; once they have left, there is no answer. */
const personWho = (answer: NonNullable<People["answer"]>): Person["Service"] => ({
  ask: (question) =>
    Effect.catchTag(
      answer(question),
      "Closed",
      () => new ToolFailure({ message: "the person left without an answer", type: "nobody_there" })
    )
})

/** Puts an agent to a conversation. What it has started ends with the scope. */
export const make = Effect.fn("Toolbox.make")(function* (
  { chat, id, settings }: Pick<Opened, "chat" | "id" | "settings">,
  wanted: Wanted,
  { answer, ask, tell }: People
): Effect.fn.Return<Worker, ExitError, Runtime | Scope.Scope> {
  const { allow } = yield* Settings
  const approval = yield* Approval.make({
    mode: wanted.approve ?? settings.approve ?? "none",
    granted: settings.allowed ?? [],
    // Also where nobody can be asked it is told what they would have been asked.
    ask: ask ?? (() => Effect.succeed(no)),
    keep: (grants) =>
      Effect.catch(allow(grants), ({ message }) => tell(`It is allowed for this session only: ${message}`))
  })
  const limits = { turns: settings.maxTurns ?? usualTurns }
  const besides = { ...(yield* beside(settings)), ...(yield* routeOf({ chat, settings })) }
  if (wanted.tools === false) {
    return worker({ name: mainAgent, chat, tools: [], limits, ...besides }, approval, nothing)
  }

  const workspace = yield* workspaceOf(id, wanted.addDir ?? [])
  const ground = yield* Ground
  const skills = yield* ground.skills(workspace.root)
  const { notices, skills: found } = yield* skills.all
  yield* Effect.forEach(notices, (notice) => tell(printable(notice)), { discard: true })
  const { problems, tools: ofServers } = yield* mcpOf(settings.mcpServers ?? {})
  yield* Effect.forEach(problems, ({ message }) => tell(printable(message)), { discard: true })
  const own = yield* Effect.provideService(ownTools(settings), Workspace, workspace)
  const tools: ReadonlyArray<Tool> = [...own, ...ofServers]
  const { known, runners } = yield* agentsAt(workspace.root, settings, tell)
  const store = yield* SessionStore
  const context = yield* Effect.context<
    ChildProcessSpawner | Environment | Ground | HttpClient | Model | TokenCounter
  >()
  const subagents = yield* Subagents.make({
    tools,
    settings: chat.settings,
    ...(id === undefined ? {} : { sessions: store, session: id }),
    mcp: (named) => Effect.provideContext(mcpOf(named), context),
    beside: Effect.provideContext(beside(settings), context),
    agents: known.agents,
    elsewhere: ({ definition: { name } }) => runners.get(name),
    include: Object.entries(settings.agents ?? {}).flatMap(([name, isWanted]) => (isWanted ? [name] : []))
  }).pipe(Effect.provideService(Approval, approval))

  const places = new Map(
    known.agents.flatMap(({ definition }) => {
      const place = placeOf(definition)
      return place === undefined ? [] : [[Subagents.toolName(definition.name), place] as const]
    })
  )
  const messages = settings.backgroundAgents === true ? yield* messagesOf(subagents, places) : undefined
  const all = [
    ...tools,
    writeTodos,
    recall(chat, subagents.sources),
    ...(answer === undefined ? [] : [yield* Effect.provideService(askUser, Person, personWho(answer))]),
    ...(found.length === 0 ? [] : [yield* Effect.provideService(activateSkill, Skills, skills)]),
    ...subagents.tools,
    ...(messages?.tools ?? [])
  ]
  const profile: Agent.Profile = { ...messages, name: mainAgent, chat, tools: all, limits, ...besides }
  // What is said of the window before the first message counts the tools, too.
  yield* Effect.mapError(Agent.equip(profile), ({ message }) => failed(printable(message)))
  return worker(profile, approval, { agents: subagents, known })
})
