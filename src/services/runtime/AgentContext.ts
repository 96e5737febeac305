/** The context of an agent outside the conversation: its system prompt, memory and environment. */

import { Clock, type Context, Effect, type FileSystem, type Path, Ref } from "effect"
import { text } from "../../domain/content/Content.ts"
import { memoryText } from "../../domain/memory/MemoryText.ts"
import { repeatedRules } from "../../domain/memory/RepeatedRules.ts"
import { day, sandboxOf } from "../../domain/prompt/EnvironmentMessage.ts"
import { isModern, type Offer } from "../../domain/prompt/PromptInputs.ts"
import { withDefaults } from "../../domain/settings/Settings.ts"
import type { Subagents } from "../agent/Subagents.ts"
import type { Attachment } from "../chat/AppendMessages.ts"
import { HookSystem } from "../hooks/HookSystem.ts"
import type { Memory } from "../memory/Memory.ts"
import { Environment } from "../platform/Environment.ts"
import * as EnvironmentMessage from "../prompt/EnvironmentMessage.ts"
import * as SystemPrompt from "../prompt/SystemPrompt.ts"
import type { SessionFiles } from "../session/SessionFiles.ts"
import type { Tool } from "../tools/Tool.ts"
import { type IdeUpdates, makeUpdates, IdeContext } from "../workspace/IdeContext.ts"
import { Workspace } from "../workspace/Workspace.ts"
import { type AgentParts, isInteractive, outputsOf } from "./AgentParts.ts"
import { RuntimePlatform } from "./RuntimePlatform.ts"

/** The context of an agent, kept up to date. */
export interface AgentContext {
  readonly memory: Memory["Service"]
  /** The current system prompt. */
  readonly prompt: Effect.Effect<SystemPrompt.BuiltPrompt, SystemPrompt.SystemPromptError>
  /** The environment message as it would be now. Undefined for a prompt of size `none`. */
  readonly environment: Effect.Effect<string | undefined>
  /**
   * Updates the conversation's system prompt where something in it changed; what did not change stays byte for byte, so that
   * the provider's cache holds. The environment message is rebuilt for another plan and another day, and by the conversation
   * itself after a compression. While the conversation is busy, nothing happens. Returns notices, one line each: variables without meaning.
   */
  readonly refresh: Effect.Effect<ReadonlyArray<string>, SystemPrompt.SystemPromptError>
  /** What changed in the editor since the model last got it. */
  readonly editorUpdates: Effect.Effect<EditorUpdates>
}

/** What changed in the editor. */
export interface EditorUpdates {
  readonly attached: ReadonlyArray<Attachment>
  /** Marks the updates as sent. Until then the same updates are returned again. */
  readonly markSent: Effect.Effect<void>
  /** A problem with the editor's state, reported once. */
  readonly problem: string | undefined
}

/** The inputs of the current system prompt, and the plan that the environment message names. */
interface Built {
  readonly instruction: string | undefined
  readonly own: string | undefined
  readonly plan: string | undefined
  readonly day: string | undefined
}

type Platform = Environment | FileSystem.FileSystem | Path.Path | RuntimePlatform | SessionFiles

/** What the context is made with, and what the conversation has of it. */
interface State {
  readonly parts: AgentParts
  readonly equipment: {
    readonly agents: Pick<Subagents, "tools">
    readonly skills: ReadonlyArray<Offer>
    readonly tools: ReadonlyArray<Tool>
  }
  /** Undefined: the editor is not reported. */
  readonly ide: IdeContext["Service"] | undefined
  readonly platform: Context.Context<Platform>
  readonly defaulted: ReturnType<typeof withDefaults>
  readonly hooks: HookSystem["Service"]
  readonly ideUpdates: IdeUpdates | undefined
  readonly isGit: Effect.Effect<boolean>
  readonly built: Ref.Ref<Built>
}

const approvedPlan = ({ parts: { plans } }: State) => (plans === undefined ? Effect.undefined : plans.approved)

const ownInstruction = ({ parts: { options } }: State) => options.instruction ?? Effect.undefined

const buildPrompt = Effect.fnUntraced(function* (
  state: State
): Effect.fn.Return<SystemPrompt.BuiltPrompt, SystemPrompt.SystemPromptError> {
  const own = yield* ownInstruction(state)
  if (own !== undefined) return { text: own, sections: [{ key: "systemMd", text: own }], notices: [] }
  const { defaulted, equipment, hooks, parts } = state
  const { agents, skills, tools } = equipment
  const { approval, handlers, isTrusted, memory, plans, session, workspace } = parts
  const mode = yield* approval.mode
  const { model } = yield* session.chat.settings
  return yield* SystemPrompt.build({
    size: defaulted.prompt.size,
    model,
    interactive: isInteractive(handlers),
    mode,
    agents: agents.tools.map(({ description, name }) => ({ name, description })),
    skills,
    tools: tools.map(({ name }) => name),
    hasHooks: hooks.has("BeforeAgent") || hooks.has("SessionStart") || hooks.has("AfterTool"),
    isGit: yield* state.isGit,
    planFile: mode === "plan" ? plans?.file : yield* approvedPlan(state),
    toggles: defaulted.prompt.sections,
    memory: memoryText(yield* memory.load),
    folder: workspace.root,
    isTrusted
  }).pipe(Effect.provideContext(state.platform))
})

const environmentOf = (state: State): AgentContext["environment"] =>
  Effect.gen(function* () {
    const { defaulted, equipment, ideUpdates, parts } = state
    const { environment, prompt } = defaulted
    const { tools } = equipment
    if (prompt.size === "none") return undefined
    // Without tools, where the server works says nothing to a model with an instruction of its own.
    if (tools.length === 0 && (yield* ownInstruction(state)) !== undefined) return undefined
    const { platform } = yield* RuntimePlatform
    const { variables } = yield* Environment
    return yield* EnvironmentMessage.make({
      platform,
      sandbox: sandboxOf((yield* variables)["SANDBOX"]),
      outputs: tools.some(({ name }) => name === "read_file") ? yield* outputsOf(parts.session.id) : undefined,
      approvedPlan: approvedPlan(state),
      ide: ideUpdates?.full,
      tree: environment.tree,
      items: environment.items
    })
  }).pipe(Effect.provideService(Workspace, state.parts.workspace), Effect.provideContext(state.platform))

/** The inputs of the system prompt that may change during a conversation. */
const promptInputs = Effect.fnUntraced(function* (state: State) {
  const { approval, memory, session } = state.parts
  const { model } = yield* session.chat.settings
  const own = yield* ownInstruction(state)
  return JSON.stringify([
    isModern({ model }),
    yield* approval.mode,
    yield* memory.version,
    yield* approvedPlan(state),
    ...(own === undefined ? [] : [own])
  ])
})

const refresh = Effect.fnUntraced(function* (state: State) {
  const { built, defaulted, parts } = state
  const { memory, session } = parts
  const before = yield* Ref.get(built)
  const instruction = yield* promptInputs(state)
  const today = day(yield* Clock.currentTimeMillis, undefined)
  if (before.instruction === instruction && before.day === today) return []
  const plan = yield* approvedPlan(state)
  const prompt = yield* buildPrompt(state)
  const environment = environmentOf(state)
  // An approved plan is named in both, so both change together.
  const own = yield* ownInstruction(state)
  const isStale = before.instruction === undefined || before.plan !== plan || before.day !== today || before.own !== own
  yield* session.chat
    .configure({
      systemInstruction: prompt.text === "" ? undefined : prompt.text,
      // A compression may remove what tools and the editor reported, so both are read again.
      refreshEnvironment: Effect.andThen(memory.refresh, environment),
      // Runs after `refreshEnvironment`, which reads memory again.
      ...(defaulted.repeatRules.headings.length === 0
        ? {}
        : { afterCompression: Effect.map(memory.load, ({ blocks }) => repeatedRules(blocks, defaulted.repeatRules)) }),
      ...(isStale ? { environment: yield* environment } : {})
    })
    .pipe(
      Effect.andThen(Ref.set(built, { instruction, own, plan, day: today })),
      // The next turn tries again.
      Effect.catchTags({ ChatBusy: () => Effect.void, InvalidOption: Effect.die, SessionStoreError: () => Effect.void })
    )
  // The notices are the same each time, so return them once.
  return before.instruction === undefined ? prompt.notices : []
})

const editorUpdates = Effect.fnUntraced(function* ({ ide, ideUpdates }: State) {
  const update = ideUpdates === undefined ? undefined : yield* ideUpdates.next
  const problem = ide === undefined ? undefined : yield* ide.problem
  return update === undefined
    ? { attached: [], markSent: Effect.void, problem }
    : { attached: [{ parts: [text(update.text)] }], markSent: update.markSent, problem }
})

/** Makes the context. Nothing is read before it is used. */
export const make = Effect.fn("AgentContext.make")(function* (
  parts: AgentParts,
  equipment: State["equipment"]
): Effect.fn.Return<AgentContext, never, Platform | HookSystem> {
  const { memory, session, workspace } = parts
  const runtime = yield* RuntimePlatform
  const platform = yield* Effect.context<Platform>()
  const defaulted = withDefaults(session.settings)
  const ide = defaulted.ide.enabled ? yield* runtime.ide(workspace.root, defaulted.ide) : undefined
  const state: State = {
    parts,
    equipment,
    ide,
    platform,
    defaulted,
    hooks: yield* HookSystem,
    ideUpdates: ide === undefined ? undefined : yield* Effect.provideService(makeUpdates, IdeContext, ide),
    isGit: yield* Effect.cached(Effect.provideContext(EnvironmentMessage.isGit(workspace.root), platform)),
    built: yield* Ref.make<Built>({ instruction: undefined, own: undefined, plan: undefined, day: undefined })
  }
  return {
    memory,
    prompt: buildPrompt(state),
    environment: environmentOf(state),
    refresh: refresh(state),
    editorUpdates: editorUpdates(state)
  }
})
