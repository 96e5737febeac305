/** Starts an agent of this process: what it inherits from its parent, its tools and its conversation. */

import { Clock, Effect, type FileSystem, type Path, Ref, type Scope, Semaphore } from "effect"
import * as SecureRandom from "effect/crypto/SecureRandom"
import { type LocalAgent, selectTools } from "../../domain/agent/AgentDefinition.ts"
import { text, user, isCall } from "../../domain/content/Content.ts"
import {
  type Draft,
  entries,
  viewTokens,
  type Conversation,
  itemParts,
  pairing,
  placeKey,
  view
} from "../../domain/conversation/Conversation.ts"
import { rangeText } from "../../domain/conversation/Recall.ts"
import { emptySession, type Started, applyEvent, startedWith } from "../../domain/session/Session.ts"
import type { McpServersSettings } from "../../domain/tools/McpServer.ts"
import { Chat } from "../chat/Chat.ts"
import type { ChatSettings } from "../chat/ChatSettings.ts"
import type { Compression } from "../compression/Compression.ts"
import type { HookSystem } from "../hooks/HookSystem.ts"
import type { Model } from "../model/Model.ts"
import * as ModelWindows from "../model/ModelWindows.ts"
import type { SessionStore } from "../session/SessionStore.ts"
import { select, type TempStore } from "../session/TempStore.ts"
import type { Calibrations } from "../tokens/Calibrations.ts"
import type { TokenCounter } from "../tokens/TokenCounter.ts"
import type { Approval } from "../tools/Approval.ts"
import { recall, type RecallSource } from "../tools/builtin/Recall.ts"
import type { McpOffer } from "../tools/McpServers.ts"
import { onlyTool, type Tool } from "../tools/Tool.ts"
import type { KnownAgent } from "./AgentDefinitions.ts"
import type { Profile } from "./AgentRun.ts"
import { AgentFailure, type Task } from "./AgentRunner.ts"
import * as CompleteTask from "./CompleteTask.ts"
import { RunProgress } from "./LocalAgentProgress.ts"
import { promptsOf, surroundings, workingInstructions } from "./LocalAgentPrompt.ts"

/**
 * The messages of the view, as the model sees them, ready to be appended to another conversation. Calls without a response, such as
 * the one that starts the agent, are left out; so is the environment message, because the agent has its own.
 */
const forkedMessages = (conversation: Conversation): ReadonlyArray<Draft> => {
  const items = view(conversation)
    .filter(({ entry }) => entry.author !== "environment")
    .map((item) => ({ entry: item.entry, role: item.entry.content.role, parts: itemParts(item) }))
  const { responseOf } = pairing(items)
  return items.flatMap(({ entry: { at, author }, parts, role }, item) => {
    const kept = parts.filter((part, index) => !isCall(part) || responseOf.has(placeKey({ item, part: index })))
    if (kept.length === 0) return []
    return [
      {
        content: { role, parts: kept },
        ...(at === undefined ? {} : { at }),
        ...(author === undefined ? {} : { author })
      }
    ]
  })
}

/** The agent that starts others, and what they inherit from it. They do not inherit its conversation. */
export interface ParentAgent {
  /** The tools that they may use. */
  readonly tools: ReadonlyArray<Tool>
  /** The settings of its conversation: model, folder, window, timeouts. */
  readonly settings: Effect.Effect<ChatSettings>
  /** Where their conversations are saved. Undefined: they stay in memory and disappear with the agent. */
  readonly sessions?: SessionStore["Service"] | undefined
  /** The parent's session id, noted in their sessions. */
  readonly session?: string | undefined
  /** Called for each conversation that an agent starts, so that its work can be read by id and handle. */
  readonly onConversation?: ((conversation: RecallSource) => Effect.Effect<void>) | undefined
  /** Connects the MCP servers that a definition names. Absent: such servers are left out, which the agent reports as an activity. */
  readonly mcp?: ((servers: McpServersSettings) => Effect.Effect<McpOffer, never, Scope.Scope>) | undefined
  /** The content of the memory files with its framing; empty if there is none. Absent: agents see no memory. */
  readonly memory?: Effect.Effect<string> | undefined
  /** Rules for an agent with this model and these tools, which it gets after its own prompt. Absent: none. */
  readonly rules?: ((model: string, tools: ReadonlyArray<string>) => Effect.Effect<string>) | undefined
  /** The conversation of which an agent may get a copy. Absent: no agent gets one. */
  readonly fork?: ForkSource | undefined
  /** The loop detector, output summaries and hooks of their conversations. Runs once per conversation. */
  readonly guards?: Effect.Effect<Guards> | undefined
}

/** A conversation of which agents may get a copy, and how large it may be. */
interface ForkSource {
  readonly chat: Pick<Chat["Service"], "conversation" | "recall" | "search" | "usage">
  /** The id of its session, for `recall`. */
  readonly session: string
  /** The most tokens that are copied, as its model counts them. A larger conversation is not copied at all. */
  readonly maxTokens: number
}

/** What watches over the conversation of an agent. */
type Guards = Pick<Profile, "loops" | "summarize" | "hooks">

/** A tool that starts an agent. An agent gets it only if its definition names it, so that agents do not recurse by accident. */
export interface AgentTool extends Tool {
  readonly isAgent: true
}

/** Makes the tools with which an agent starts agents itself, from what those inherit. */
export type NestedAgents = (parent: ParentAgent) => ReadonlyArray<AgentTool>

/** The services that agents of this process need. */
export type Runtime =
  | Approval
  | Calibrations
  | Compression
  | FileSystem.FileSystem
  | HookSystem
  | Model
  | Path.Path
  | TempStore
  | TokenCounter

const failure = (message: string) => new AgentFailure({ message })

/** The agent's whole work under one handle, and each piece of it under its own. */
const sourceOf = (session: string, chat: Chat["Service"], { handles }: RunProgress): RecallSource => ({
  session,
  search: chat.search,
  recall: (handle, selection = {}) => {
    const count = handles.get(handle)
    return count === undefined
      ? chat.recall(handle, selection)
      : Effect.flatMap(chat.whole, ({ conversation }) =>
          select(rangeText(entries(conversation).slice(0, count)), selection)
        )
  }
})

/** The settings of the agent's conversation: the parent's, with the agent's own model, instruction and temperature. */
const settingsFor = (
  { compressionThreshold, model, temperature, topP }: LocalAgent,
  about: ChatSettings,
  instruction: string
): ChatSettings => {
  const {
    afterCompression: _after,
    environment: _environment,
    generation: _generation,
    refreshEnvironment: _renew,
    systemInstruction: _instruction,
    tools: _tools,
    window,
    ...others
  } = about
  const isInherited = model === "inherit" || model === about.model
  const own = isInherited ? about.model : model
  return {
    ...others,
    // No user waits for its compressions.
    prepareAt: 0,
    // Another model has another window.
    ...(isInherited && window !== undefined ? { window } : {}),
    model: own,
    ...(compressionThreshold === undefined
      ? {}
      : {
          threshold: compressionThreshold,
          models: { ...about.models, [own]: { ...about.models?.[own], threshold: compressionThreshold } }
        }),
    systemInstruction: instruction,
    generation: { temperature, topP }
  }
}

/** Rejects a model that the provider does not have. Reports the assumed window of a model that is not in the table. */
const checkModel = Effect.fnUntraced(function* (
  { model, name }: LocalAgent,
  { models }: ChatSettings,
  { activity }: Task
) {
  const standing = yield* ModelWindows.availability(model, models)
  if (standing._tag === "Missing") {
    return yield* failure(`the agent ${name} cannot start: ${standing.text}; its definition names it`)
  }
  if (standing._tag === "Unknown") {
    yield* activity({ _tag: "Failed", message: ModelWindows.unknownModelText(model, standing.window) })
  }
})

/** Begins the agent's own conversation and saves its session if sessions are saved. */
const conversation = Effect.fnUntraced(function* (
  { session: parent, sessions }: ParentAgent,
  id: string,
  at: number,
  settings: ChatSettings
) {
  const started: Started = {
    ...startedWith(settings, id, at),
    ...(parent === undefined ? {} : { parent })
  }
  const log =
    sessions === undefined
      ? { append: () => Effect.void }
      : yield* Effect.mapError(sessions.create(started), ({ message }) => failure(message))
  return yield* Effect.mapError(
    Chat.make({ log, session: applyEvent(emptySession, started), settings }),
    ({ message }) => failure(message)
  )
})

/** The number of agent conversations that `recall` reads: the ones started last. */
const maxRecallSources = 32

/** Holds the conversations of the agents started last. */
export const recentSources = Effect.map(Ref.make<ReadonlyArray<RecallSource>>([]), (sources) => ({
  all: Ref.get(sources),
  add: (source: RecallSource) => Ref.update(sources, (before) => [source, ...before].slice(0, maxRecallSources))
}))

/** Tools every agent has its own instance of: the parent's would read the parent's conversation or end the parent's work. */
const perAgentTools: ReadonlySet<string> = new Set(["recall", CompleteTask.completeTask])

/** The tools of one run: the parent's tools that the definition names, the agent's own tools and `complete_task`. */
const toolsFor = Effect.fnUntraced(function* (
  { own }: KnownAgent,
  definition: LocalAgent,
  parent: ParentAgent,
  nested: NestedAgents,
  { activity }: Task
) {
  const ours = own === undefined ? [] : yield* own.open
  const { mcpServers } = definition
  const hasServers = Object.keys(mcpServers).length > 0
  const offer = hasServers && parent.mcp !== undefined ? yield* parent.mcp(mcpServers) : { tools: [], problems: [] }
  const messages =
    hasServers && parent.mcp === undefined ? ["its MCP servers are ignored: none may be started here"] : offer.problems
  yield* Effect.forEach(messages, (message) => activity({ _tag: "Failed", message }), { discard: true })
  // Tools of a server that only this agent has need not be named.
  const taken = new Set([...ours, ...offer.tools].map(({ name }) => name))
  const shared = selectTools(definition.tools, parent.tools).filter(
    (tool) => !taken.has(tool.name) && !tool.isAgent && !perAgentTools.has(tool.name)
  )
  const tools = [...shared, ...offer.tools, ...ours]
  const agents = nested({ ...parent, tools }).filter(({ name }) => definition.tools?.includes(name) === true)
  return [...tools, ...agents].sort((a, b) => (a.name < b.name ? -1 : 1))
})

/** What an agent starts with that gets no copy of its parent's conversation. `note`: why it gets none. */
const isolated = (note?: string) => ({ messages: [], sources: [], note })

/** The part of the parent's conversation that a task passes on. */
const inheritedBy = Effect.fnUntraced(function* ({ fork }: ParentAgent, { context }: Task) {
  if (context !== "fork") return isolated()
  if (fork === undefined) return isolated("It began with its task alone: nothing is copied here.")
  const { chat, maxTokens, session } = fork
  const conversation = yield* chat.conversation
  const scale = yield* chat.usage.pipe(
    Effect.map((usage) => usage.scale ?? 1),
    Effect.orElseSucceed(() => 1)
  )
  const tokens = viewTokens(conversation) * scale
  if (tokens > maxTokens) {
    return isolated(
      `It began with its task alone: the conversation has about ${Math.round(tokens)} tokens, and at most ${maxTokens} are copied.`
    )
  }
  // Handles in the copy name what only the parent's conversation holds.
  const source: RecallSource = { session, recall: chat.recall, search: chat.search }
  return { messages: forkedMessages(conversation), sources: [source], note: undefined }
})

/** The agent as the parent of its own agents. It and all its ancestors can read their work. */
const asParent = (
  parent: ParentAgent,
  chat: Chat["Service"],
  id: string,
  addNestedWork: (source: RecallSource) => Effect.Effect<void>
): ParentAgent => ({
  ...parent,
  settings: chat.settings,
  session: id,
  ...(parent.fork === undefined ? {} : { fork: { ...parent.fork, chat, session: id } }),
  onConversation: (source) => Effect.andThen(addNestedWork(source), parent.onConversation?.(source) ?? Effect.void)
})

/** Starts the conversation of an agent, with its tools. The agent does not work yet. */
export const begin = Effect.fnUntraced(function* (
  knownAgent: KnownAgent,
  definition: LocalAgent,
  parent: ParentAgent,
  nested: NestedAgents,
  task: Task
) {
  const started = yield* Clock.currentTimeMillis
  const about = yield* parent.settings
  const model = definition.model === "inherit" ? about.model : definition.model
  if (model !== about.model) yield* checkModel(definition, about, task)
  const { message, prompt } = yield* promptsOf(definition, task, model, about.cwd, started)
  const memory = yield* parent.memory ?? Effect.succeed("")
  const instructionWith = (rules: string) =>
    [prompt, rules, workingInstructions, memory].filter((words) => words !== "").join("\n\n")

  const random = yield* SecureRandom.SecureRandom.pipe(Effect.provide(SecureRandom.layerWebCrypto))
  const id = yield* random.uuidV7()
  const chat = yield* conversation(parent, id, started, settingsFor(definition, about, instructionWith("")))
  const progress = new RunProgress()
  if (parent.onConversation !== undefined) yield* parent.onConversation(sourceOf(id, chat, progress))
  const inherited = yield* inheritedBy(parent, task)
  const completion = yield* CompleteTask.make(definition.output)
  const nestedWork = yield* recentSources
  const others = Effect.map(nestedWork.all, (sources) => [...sources, ...inherited.sources])
  const given = yield* toolsFor(knownAgent, definition, asParent(parent, chat, id, nestedWork.add), nested, task)
  const tools = [...given, recall(chat, others), completion.tool]

  const unstartable = ({ message: why }: { readonly message: string }) =>
    failure(`the agent ${definition.name} cannot start: ${why}`)
  const names = tools.map(({ name }) => name)
  const rules = parent.rules === undefined ? undefined : instructionWith(yield* parent.rules(model, names))
  if (rules !== undefined) yield* Effect.mapError(chat.configure({ systemInstruction: rules }), unstartable)
  const guards = parent.guards === undefined ? {} : yield* parent.guards
  const around = user(text(yield* surroundings(about.cwd, started)))
  const first: ReadonlyArray<Draft> = [{ content: around, at: started, author: "environment" }, ...inherited.messages]
  yield* Effect.mapError(chat.append(first), unstartable)
  return {
    id,
    definition,
    task,
    started,
    /** Why it started without the parent's conversation. Undefined: it was not to get it, or got it. */
    note: inherited.note,
    /** The first message, in the words of the definition. */
    message,
    chat,
    isSaved: parent.sessions !== undefined,
    tools,
    /** The same tools, of which only `complete_task` still runs. */
    lastTools: onlyTool(
      tools,
      CompleteTask.completeTask,
      (name) => `${name} does not run any more: call ${CompleteTask.completeTask}`
    ),
    completion,
    guards,
    progress,
    /** Held while the agent works on its task or on a message. */
    working: yield* Semaphore.make(1)
  }
})

/** A started agent: its conversation, its tools, and what became of its task. */
export type StartedAgent = Effect.Success<ReturnType<typeof begin>>
