import { Effect, type FileSystem, type Path, Ref } from "effect"
import { text } from "../../domain/content/Content.ts"
import { memoryText } from "../../domain/memory/MemoryText.ts"
import { repeatedRules } from "../../domain/memory/RepeatedRules.ts"
import { sandboxOf } from "../../domain/prompt/EnvironmentMessage.ts"
import { isModern, type Offer } from "../../domain/prompt/PromptInputs.ts"
import { type SettingsFile, withDefaults } from "../../domain/settings/Settings.ts"
import type { Attachment } from "../chat/AppendMessages.ts"
import type { Chat } from "../chat/Chat.ts"
import { HookSystem } from "../hooks/HookSystem.ts"
import type { Memory } from "../memory/Memory.ts"
import { Environment } from "../platform/Environment.ts"
import * as EnvironmentMessage from "../prompt/EnvironmentMessage.ts"
import * as SystemPrompt from "../prompt/SystemPrompt.ts"
import type { Approval } from "../tools/Approval.ts"
import type { Plans } from "../tools/Plans.ts"
import { type IdeUpdates, makeUpdates, IdeContext } from "../workspace/IdeContext.ts"
import { Workspace } from "../workspace/Workspace.ts"

/** The context of an agent outside the conversation: its system prompt, memory and environment. */

/** What an agent's context is made from. */
export interface AgentContextOptions {
  readonly chat: Chat["Service"]
  readonly settings: SettingsFile
  readonly approval: Approval["Service"]
  readonly workspace: Workspace["Service"]
  readonly isTrusted: boolean
  readonly interactive: boolean
  readonly memory: Memory["Service"]
  /** Undefined: the editor is not reported. */
  readonly ide: IdeContext["Service"] | undefined
  /** Undefined: there is no plan mode. */
  readonly plans: Plans["Service"] | undefined
  readonly agents: ReadonlyArray<Offer>
  readonly skills: ReadonlyArray<Offer>
  readonly tools: ReadonlyArray<string>
  /** The platform as Node names it. */
  readonly platform: string
  /** The folder of outputs that were too long, if tools may read there. */
  readonly outputs: string | undefined
}

/** The context of an agent, kept up to date. */
export interface AgentContext {
  readonly memory: Memory["Service"]
  /** The current system prompt. */
  readonly prompt: Effect.Effect<SystemPrompt.BuiltPrompt, SystemPrompt.SystemPromptError>
  /** The environment message as it would be now. Undefined for a prompt of size `none`. */
  readonly environment: Effect.Effect<string | undefined>
  /**
   * Updates the conversation's system prompt where something in it changed; what did not change stays byte for byte, so that
   * the provider's cache holds. The environment message is rebuilt for another plan, and by the conversation itself after a
   * compression. While the conversation is busy, nothing happens. Returns notices, one line each: variables without meaning.
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
  readonly plan: string | undefined
}

/** Makes the context. Nothing is read before it is used. */
export const make = Effect.fn("AgentContext.make")(function* (
  options: AgentContextOptions
): Effect.fn.Return<AgentContext, never, Environment | FileSystem.FileSystem | HookSystem | Path.Path> {
  const { approval, chat, ide, memory, plans, workspace } = options
  const platform = yield* Effect.context<Environment | FileSystem.FileSystem | Path.Path>()
  const { variables } = yield* Environment
  const hooks = yield* HookSystem
  const { environment: environmentSettings, prompt: promptSettings, repeatRules } = withDefaults(options.settings)
  const ideUpdates: IdeUpdates | undefined =
    ide === undefined ? undefined : yield* Effect.provideService(makeUpdates, IdeContext, ide)
  const isGit = yield* Effect.cached(EnvironmentMessage.isGit(workspace.root))
  const made = yield* Ref.make<Built>({ instruction: undefined, plan: undefined })

  const approvedPlan = plans === undefined ? Effect.undefined : plans.approved

  const prompt = Effect.gen(function* () {
    const mode = yield* approval.mode
    const { model } = yield* chat.settings
    return yield* SystemPrompt.build({
      size: promptSettings.size,
      model,
      interactive: options.interactive,
      mode,
      agents: options.agents,
      skills: options.skills,
      tools: options.tools,
      hasHooks: hooks.has("BeforeAgent") || hooks.has("SessionStart") || hooks.has("AfterTool"),
      isGit: yield* isGit,
      planFile: mode === "plan" ? plans?.file : yield* approvedPlan,
      toggles: promptSettings.sections,
      memory: memoryText(yield* memory.load),
      folder: workspace.root,
      isTrusted: options.isTrusted
    })
  }).pipe(Effect.provideContext(platform))

  const environment = Effect.gen(function* () {
    if (promptSettings.size === "none") return undefined
    return yield* EnvironmentMessage.make({
      platform: options.platform,
      sandbox: sandboxOf((yield* variables)["SANDBOX"]),
      outputs: options.outputs,
      approvedPlan,
      ide: ideUpdates?.full,
      tree: environmentSettings.tree,
      items: environmentSettings.items
    })
  }).pipe(Effect.provideService(Workspace, workspace), Effect.provideContext(platform))

  /** The inputs of the system prompt that may change during a conversation. */
  const key = Effect.gen(function* () {
    const { model } = yield* chat.settings
    return JSON.stringify([isModern({ model }), yield* approval.mode, yield* memory.version, yield* approvedPlan])
  })

  /** A compression may take away what tools and the editor reported, so both are read again. */
  const refreshEnvironment = Effect.andThen(memory.refresh, environment)

  /** Runs after `refreshEnvironment`, which reads memory again. */
  const afterCompression = Effect.map(memory.load, ({ blocks }) => repeatedRules(blocks, repeatRules))

  const refresh = Effect.gen(function* () {
    const before = yield* Ref.get(made)
    const instruction = yield* key
    if (before.instruction === instruction) return []
    const plan = yield* approvedPlan
    const built = yield* prompt
    // An approved plan is named in both, so both change together.
    const isStale = before.instruction === undefined || before.plan !== plan
    yield* chat
      .configure({
        systemInstruction: built.text === "" ? undefined : built.text,
        refreshEnvironment,
        ...(repeatRules.headings.length === 0 ? {} : { afterCompression }),
        ...(isStale ? { environment: yield* environment } : {})
      })
      .pipe(
        Effect.andThen(Ref.set(made, { instruction, plan })),
        // The next turn tries again.
        Effect.catchTags({ ChatBusy: () => Effect.void, SessionStoreError: () => Effect.void })
      )
    // The notices are the same each time, so return them once.
    return before.instruction === undefined ? built.notices : []
  })

  return {
    memory,
    prompt,
    environment,
    refresh,
    editorUpdates: Effect.gen(function* () {
      const update = ideUpdates === undefined ? undefined : yield* ideUpdates.next
      const problem = ide === undefined ? undefined : yield* ide.problem
      return update === undefined
        ? { attached: [], markSent: Effect.void, problem }
        : { attached: [{ parts: [text(update.text)] }], markSent: update.told, problem }
    })
  }
})
