import { Context, Duration, Effect, type FileSystem, Layer, Path, Ref, type Scope } from "effect"
import type { HttpClient } from "effect/http/HttpClient"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import { placeOf } from "../domain/AgentDefinition.ts"
import type { Answer } from "../domain/Approval.ts"
import { hooksOf } from "../domain/HookSettings.ts"
import { printable } from "../domain/Inspection.ts"
import type { McpServersSettings } from "../domain/McpServer.ts"
import { plainText } from "../domain/Content.ts"
import { memoryText } from "../domain/MemoryText.ts"
import type { Offer } from "../domain/prompt/PromptInputs.ts"
import { correctionOf, loopsOf, routerOf, type SettingsFile, withDefaults } from "../domain/Settings.ts"
import { commandReason, fileWords, memoryReason } from "../domain/SteeringFiles.ts"
import * as Agent from "../services/Agent.ts"
import type { KnownAgent, KnownAgents } from "../services/AgentDefinitions.ts"
import type { AgentRunner } from "../services/AgentRunner.ts"
import * as AgentMessages from "../services/AgentMessages.ts"
import { Approval, type Asked } from "../services/Approval.ts"
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
import { Settings as SettingsService } from "../services/Settings.ts"
import { Skills } from "../services/Skills.ts"
import * as Subagents from "../services/Subagents.ts"
import { blobFolderOf } from "../services/TempStore.ts"
import type { TokenCounter } from "../services/TokenCounter.ts"
import { type Tool, ToolFailure } from "../services/Tool.ts"
import { FileLimits } from "../services/FileLimits.ts"
import { HookSystem } from "../services/HookSystem.ts"
import { Memory } from "../services/Memory.ts"
import { onTouch } from "../services/MemoryOnTouch.ts"
import { Plans } from "../services/Plans.ts"
import { saveMemory } from "../services/tools/SaveMemory.ts"
import { enterPlanMode, exitPlanMode } from "../services/tools/PlanMode.ts"
import { activateSkill } from "../services/tools/ActivateSkill.ts"
import { askUser } from "../services/tools/AskUser.ts"
import { type Steering, SteeringSettings } from "../services/tools/FileChange.ts"
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
import * as Knowledge from "./Knowledge.ts"
import type { Opened } from "./OpenChat.ts"
import { isTrusted, leftAlone } from "./Trusting.ts"
import * as Sending from "./Sending.ts"
import * as Watching from "./Watching.ts"

/** An agent with its tools, made of flags and settings. Loaded only by commands in which one works: it is half of the program. */

/** Tokens of a summarised output where its setting names none (spec 5.3). */
const usualBudget = 2_000

const no: Answer = { _tag: "No", words: "" }

/** The tools for files, commands and pages, those that only look first. */
const ownTools = Effect.fnUntraced(function* (settings: SettingsFile, isTrusted: boolean, named: Steering["named"]) {
  const { allowPrivateNetwork, askForBuildFiles, files, memory, passEnvironment, shellIdle } = withDefaults(settings)
  const usual = yield* ShellSettings
  const correction = correctionOf(settings.editCorrection)
  const inactivity = shellIdle === 0 ? Duration.infinity : Duration.seconds(shellIdle)
  return yield* Effect.all([
    readFile,
    readManyFiles,
    listDirectory,
    glob,
    searchFiles,
    writeFile,
    correction === undefined ? replace : Effect.provide(replace, EditCorrector.layer({}, correction.cache)),
    Effect.provideService(shell, ShellSettings, {
      ...usual,
      inactivity,
      passed: passEnvironment,
      relativePath: isTrusted
    }),
    Effect.provideService(webFetch, AllowPrivate, allowPrivateNetwork),
    webSearch()
  ]).pipe(
    Effect.provideService(FileLimits, files),
    Effect.provideService(SteeringSettings, { memoryNames: memory.fileNames, buildFiles: askForBuildFiles, named })
  )
})

/** What is opened, as far as an agent needs to know. */
type Session = Pick<Opened, "chat" | "files" | "id" | "isNew" | "session" | "settings">

const noServers: McpOffer = { tools: [], problems: [] }

const mcpOf = Effect.fnUntraced(function* (servers: McpServersSettings) {
  if (Object.keys(servers).length === 0) return noServers
  const { version } = yield* Ground
  const { McpServers } = yield* Effect.promise(() => import("../services/McpServers.ts"))
  return yield* McpServers.start(servers, { version })
})

/** What watches over an agent and shortens what it reads, as the settings say; each agent has its own. */
const beside = ({ loopDetection, redactSecrets, summarizeToolOutput }: SettingsFile) =>
  Effect.gen(function* () {
    const context = yield* Effect.context<Model | TokenCounter>()
    const loops = yield* LoopDetector.make(LoopDetector.fromNumbers(loopsOf(loopDetection)))
    if (summarizeToolOutput === undefined) return { loops }
    return {
      loops,
      summarize: (tool: string, output: string, intent: string) => {
        const asked = summarizeToolOutput[tool]
        if (asked === undefined) return Effect.undefined
        return Effect.provideContext(
          summarize({ tool, text: output, intent, budget: asked.tokenBudget ?? usualBudget, redactSecrets }),
          context
        )
      }
    }
  })

const routeOf = Effect.fnUntraced(function* ({ chat, settings: { router } }: Pick<Opened, "chat" | "settings">) {
  const models = routerOf(router)
  if (models === undefined) return {}
  const built = yield* Layer.build(Router.layerClassifier(models))
  const { pick } = Context.get(built, Router)
  return {
    route: (request: Parameters<NonNullable<Agent.Profile["route"]>>[0]) => pick({ history: chat.contents, request })
  }
})

/** Folders that are added to the working folder. */
interface Added {
  /** By the settings, wherever one works: those that are not there are told and left out. */
  readonly set: ReadonlyArray<string>
  /** On the command line: these have to be there. */
  readonly named: ReadonlyArray<string>
}

const workspaceOf = Effect.fnUntraced(function* (
  id: string | undefined,
  { named, set }: Added,
  plans: Plans["Service"] | undefined,
  tell: People["tell"]
): Effect.fn.Return<Workspace["Service"], ExitError, Ground | Path.Path | SessionFiles> {
  const { workspace } = yield* Ground
  const path = yield* Path.Path
  const { of } = yield* SessionFiles
  const readable = [...(id === undefined ? [] : [blobFolderOf(of(id))]), ...(plans === undefined ? [] : [plans.kept])]
  const writable = plans === undefined ? [] : [plans.file]
  const root = path.resolve(".")
  const there = yield* Effect.filter(set, (folder) =>
    Effect.matchEffect(workspace({ root, added: [folder], readable: [], writable: [] }), {
      onFailure: ({ message }) => Effect.as(tell(printable(`includeDirectories: ${message}; it was left out`)), false),
      onSuccess: () => Effect.succeed(true)
    })
  )
  return yield* workspace({ root, added: [...there, ...named], readable, writable }).pipe(
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
const agentsAt = Effect.fnUntraced(function* (
  root: string,
  isRootTrusted: boolean,
  settings: SettingsFile,
  tell: People["tell"]
) {
  const ground = yield* Ground
  const definitions = yield* ground.agents(root, isRootTrusted)
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

/** The person who answers in this way; once they have left, there is no answer. */
const personWho = (answer: NonNullable<People["answer"]>): Person["Service"] => ({
  ask: (question) =>
    Effect.catchTag(
      answer(question),
      "Closed",
      () => new ToolFailure({ message: "the person left without an answer", type: "nobody_there" })
    )
})

/** What an agent works with: its tools, and those it can give work to. */
interface Equipment extends Pick<Worker, "agents" | "known"> {
  readonly tools: ReadonlyArray<Tool>
  readonly skills: ReadonlyArray<Offer>
  readonly beside: Pick<Agent.Profile, "inbox" | "reminder">
}

const bare: Equipment = {
  agents: { tools: [], runner: () => undefined, sources: Effect.succeed([]) },
  known: { agents: [], problems: [] },
  tools: [],
  skills: [],
  beside: {}
}

/** Where an agent works and what it is made of. */
interface Setting {
  readonly opened: Session
  readonly people: People
  readonly approval: Approval["Service"]
  readonly workspace: Workspace["Service"]
  readonly memory: Memory["Service"]
  readonly plans: Plans["Service"] | undefined
  readonly isTrusted: boolean
}

/** Command lines that the settings have run by themselves. */
const commandsOf = (
  { mcpServers = {} }: SettingsFile,
  { home, workspace }: Session["files"]
): ReadonlyArray<string> => [
  ...[home, workspace].flatMap(({ hooks = {} }) => hooksOf(hooks, "home").hooks.map(({ command }) => command)),
  ...Object.values(mcpServers).flatMap((server) =>
    "command" in server ? [server.command, ...(server.args ?? [])] : []
  )
]

/** The tools, skills and agents there are. */
const equipment = Effect.fnUntraced(function* ({
  approval,
  isTrusted: isRootTrusted,
  memory,
  opened: { chat, files, id, settings },
  people: { answer, tell },
  plans,
  workspace
}: Setting): Effect.fn.Return<Equipment, never, Runtime | Scope.Scope> {
  const ground = yield* Ground
  const path = yield* Path.Path
  const skills = yield* ground.skills(workspace.root, isRootTrusted)
  const { notices, skills: found } = yield* skills.all
  yield* Effect.forEach(notices, (notice) => tell(printable(notice)), { discard: true })
  const { problems, tools: ofServers } = yield* mcpOf(settings.mcpServers ?? {})
  yield* Effect.forEach(problems, ({ message }) => tell(printable(message)), { discard: true })
  const commands = commandsOf(settings, files)
  const steering = Effect.map(memory.load, ({ blocks }) => [
    ...blocks.flatMap(({ file, imports }) => [file, ...imports]).map((place) => [place, memoryReason] as const),
    ...commands
      .flatMap(fileWords)
      .map((word): readonly [string, string] => [path.resolve(workspace.root, word), commandReason])
  ])
  const own = yield* Effect.provideService(ownTools(settings, isRootTrusted, steering), Workspace, workspace)
  const touching = yield* onTouch([...own, ...ofServers]).pipe(
    Effect.provideService(Memory, memory),
    Effect.provideService(Workspace, workspace)
  )
  const person = answer === undefined ? undefined : personWho(answer)
  const remember = yield* Effect.provideService(saveMemory({ ask: person?.ask }), Memory, memory)
  const { known, runners } = yield* agentsAt(workspace.root, isRootTrusted, settings, tell)
  const store = yield* SessionStore
  const hooks = yield* HookSystem
  const context = yield* Effect.context<
    ChildProcessSpawner | Environment | FileSystem.FileSystem | Ground | HttpClient | Model | Path.Path | TokenCounter
  >()
  const subagents = yield* Subagents.make({
    tools: touching,
    settings: chat.settings,
    ...(id === undefined ? {} : { sessions: store, session: id }),
    mcp: (named) => Effect.provideContext(mcpOf(named), context),
    beside: Effect.map(Effect.provideContext(beside(settings), context), (made) => ({ ...made, hooks })),
    memory: Effect.map(memory.load, memoryText),
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
  const planning =
    plans === undefined
      ? []
      : yield* Effect.all([enterPlanMode, exitPlanMode]).pipe(
          Effect.provideService(Approval, approval),
          Effect.provideService(Plans, plans),
          Effect.provideService(Workspace, workspace)
        )
  return {
    agents: subagents,
    known,
    skills: found.map(({ description, name }) => ({ name, description })),
    beside: { inbox: messages?.inbox, reminder: messages?.reminder },
    tools: [
      ...touching,
      remember,
      writeTodos,
      ...planning,
      recall(chat, subagents.sources),
      ...(person === undefined ? [] : [yield* Effect.provideService(askUser, Person, person)]),
      ...(found.length === 0 ? [] : [yield* Effect.provideService(activateSkill, Skills, skills)]),
      ...subagents.tools,
      ...(messages?.tools ?? [])
    ]
  }
})

/** The answer where nobody can be asked. That a file is asked for though edits may run nobody would guess. */
const unasked =
  (tell: People["tell"]) =>
  ({ because, title }: Asked): Effect.Effect<Answer> =>
    Effect.as(
      because === undefined
        ? Effect.void
        : tell(printable(`${title} has to be asked for, because ${because}; --approve all runs it unasked`)),
      no
    )

const approvalFor = Effect.fnUntraced(function* (
  settings: SettingsFile,
  { approve }: Wanted,
  { ask, tell }: People,
  planFile: string | undefined
) {
  const { allow } = yield* SettingsService
  return yield* Approval.make({
    mode: approve ?? settings.approve ?? "none",
    granted: settings.allowed ?? [],
    planFile,
    // Also where nobody can be asked it is told what they would have been asked.
    ask: ask ?? unasked(tell),
    keep: (grants) =>
      Effect.catch(allow(grants), ({ message }) => tell(`It is allowed for this session only: ${message}`))
  })
})

/** Problems of memory files that are told when a conversation is opened. */
const mostProblems = 5

/** Puts an agent to a conversation. What it has started ends with the scope. */
export const make = Effect.fn("Toolbox.make")(function* (
  opened: Session,
  wanted: Wanted,
  people: People
): Effect.fn.Return<Worker, ExitError, Runtime | Scope.Scope> {
  const { chat, files, id, settings } = opened
  const { tell } = people
  const path = yield* Path.Path
  const ground = yield* Ground
  const all = withDefaults(settings)
  const plans =
    id === undefined ? undefined : yield* Plans.make({ folder: path.join(ground.home, "plans"), session: id })
  const workspace = yield* workspaceOf(id, { set: all.includeDirectories, named: wanted.addDir ?? [] }, plans, tell)
  const { root } = workspace
  const trusted = yield* isTrusted
  const isRootTrusted = yield* trusted(root)
  const untaken = isRootTrusted ? undefined : yield* leftAlone(root)
  if (untaken !== undefined) yield* tell(printable(untaken))
  const approval = yield* approvalFor(settings, wanted, people, plans?.file)
  const added = workspace.folders.filter((folder) => folder !== root)
  const memory = yield* ground.memory({ root, added, settings: all, own: withDefaults(files.home) })
  yield* Watching.addHooks(opened, tell, trusted(root))
  const telemetry = yield* Watching.telemetry(opened)
  const source = wanted.isCleared === true ? "clear" : opened.isNew ? "startup" : "resume"
  const session = wanted.isLook === true ? Watching.untold : yield* Watching.session(opened.session, source, tell)

  const setting: Setting = { opened, people, approval, workspace, memory, plans, isTrusted: isRootTrusted }
  const {
    agents,
    beside: besideTools,
    known,
    skills,
    tools
  } = wanted.tools === false ? bare : yield* equipment(setting)
  const knowledge = yield* Knowledge.make({
    chat,
    settings,
    approval,
    workspace,
    isTrusted: isRootTrusted,
    interactive: people.ask !== undefined,
    memory,
    ide: all.ide.enabled ? yield* ground.ide(root, all.ide) : undefined,
    plans,
    agents: agents.tools.map(({ description, name }) => ({ name, description })),
    skills,
    tools: tools.map(({ name }) => name),
    platform: ground.platform,
    outputs: id === undefined ? undefined : blobFolderOf((yield* SessionFiles).of(id))
  })
  const hooks = yield* HookSystem
  const clearing = yield* Ref.make<{ readonly next: string | undefined } | undefined>(undefined)
  const profile: Agent.Profile = {
    name: mainAgent,
    chat,
    tools,
    limits: { turns: all.maxTurns },
    hooks,
    ...(people.canBeginAnew === true ? { onClear: (next) => Ref.set(clearing, { next }) } : {}),
    ...(yield* beside(settings)),
    ...(yield* routeOf({ chat, settings })),
    ...besideTools,
    // Between two turns: a plan that was approved, a fact that was remembered, a compression.
    inbox: (use) => Effect.andThen(Effect.ignore(knowledge.refresh), besideTools.inbox?.(use) ?? Effect.void)
  }
  const { problems } = yield* memory.load
  const others = problems.length - mostProblems
  for (const line of problems.slice(0, mostProblems)) yield* tell(printable(line))
  if (others > 0) yield* tell(`${others} more memory files have problems; palimpsest memory refresh lists them`)
  const notices = yield* Effect.mapError(knowledge.refresh, ({ message }) => badInput(printable(message)))
  yield* Effect.forEach(notices, (line) => tell(printable(line)), { discard: true })
  // What is said of the window before the first message counts the tools, too.
  yield* Effect.mapError(Agent.equip(profile), ({ message }) => failed(printable(message)))

  const run = yield* Sending.make({
    profile,
    approval,
    knowledge,
    files: {
      chat,
      workspace,
      files: all.files,
      search: people.ask !== undefined,
      agents: agents.tools.map(({ name }) => name),
      shorten: people.shorten
    },
    opening: session.opening
  })
  return {
    agents,
    known,
    approval,
    tools,
    knowledge,
    recent: telemetry.recent,
    clearing: Ref.getAndSet(clearing, undefined),
    leave: session.leave,
    run: (message, options) => {
      const words = typeof message === "string" ? message : plainText({ role: "user", parts: message })
      return telemetry.watch(id, words, run(message, options))
    }
  }
})
