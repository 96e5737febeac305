import { Effect, type FileSystem, type Path, Ref } from "effect"
import { text } from "../domain/Content.ts"
import { memoryText } from "../domain/MemoryText.ts"
import { sandboxOf } from "../domain/EnvironmentMessage.ts"
import { isModern, type Offer } from "../domain/prompt/PromptInputs.ts"
import { type SettingsFile, withDefaults } from "../domain/Settings.ts"
import type { Approval } from "../services/Approval.ts"
import type { Attachment, Chat } from "../services/Chat.ts"
import { Environment } from "../services/Environment.ts"
import { HookSystem } from "../services/HookSystem.ts"
import { type IdeNews, makeNews, IdeContext } from "../services/IdeContext.ts"
import type { Memory } from "../services/Memory.ts"
import type { Plans } from "../services/Plans.ts"
import * as Surroundings from "../services/Surroundings.ts"
import * as SystemPrompt from "../services/SystemPrompt.ts"
import { Workspace } from "../services/Workspace.ts"

/** What an agent of the command line knows beside the conversation: its instruction, what is remembered, where it works. */

/** What that is made of. */
export interface KnowledgeOptions {
  readonly chat: Chat["Service"]
  readonly settings: SettingsFile
  readonly approval: Approval["Service"]
  readonly workspace: Workspace["Service"]
  readonly isTrusted: boolean
  readonly interactive: boolean
  readonly memory: Memory["Service"]
  /** Undefined: nothing is told of an editor. */
  readonly ide: IdeContext["Service"] | undefined
  /** Undefined: no plans are made. */
  readonly plans: Plans["Service"] | undefined
  readonly agents: ReadonlyArray<Offer>
  readonly skills: ReadonlyArray<Offer>
  readonly tools: ReadonlyArray<string>
  /** As Node names it. */
  readonly platform: string
  /** Where outputs that were too long are kept, if tools may read there. */
  readonly outputs: string | undefined
}

/** What an agent knows, kept up to date. */
export interface Knowledge {
  readonly memory: Memory["Service"]
  /** The instruction as it is now. */
  readonly prompt: Effect.Effect<SystemPrompt.Built, SystemPrompt.SystemPromptError>
  /** The environment message as it would be now; undefined: a prompt of size none goes without. */
  readonly environment: Effect.Effect<string | undefined>
  /**
   * Gives the conversation the instruction anew where something in it changed: what did not stays byte for byte. The
   * environment message is made anew for another plan, and by the conversation itself after a compression. While that is busy
   * nothing happens. What a person should hear of it, one line each: variables that mean nothing here.
   */
  readonly refresh: Effect.Effect<ReadonlyArray<string>, SystemPrompt.SystemPromptError>
  /** What the editor has to say that the model was not told. */
  readonly news: Effect.Effect<News>
}

/** What is new in the editor. */
export interface News {
  readonly attached: ReadonlyArray<Attachment>
  /** To be run once the model was told. */
  readonly told: Effect.Effect<void>
  /** What is wrong with what the editor says; told once. */
  readonly problem: string | undefined
}

/** What the instruction was made for, and the plan that the environment message names. */
interface Made {
  readonly instruction: string | undefined
  readonly plan: string | undefined
}

/** Puts it together. Nothing is read before it is asked for. */
export const make = Effect.fn("Knowledge.make")(function* (
  options: KnowledgeOptions
): Effect.fn.Return<Knowledge, never, Environment | FileSystem.FileSystem | HookSystem | Path.Path> {
  const { approval, chat, ide, memory, plans, workspace } = options
  const platform = yield* Effect.context<Environment | FileSystem.FileSystem | Path.Path>()
  const { variables } = yield* Environment
  const hooks = yield* HookSystem
  const { environment: around, prompt: wanted } = withDefaults(options.settings)
  const news: IdeNews | undefined =
    ide === undefined ? undefined : yield* Effect.provideService(makeNews, IdeContext, ide)
  const isGit = yield* Effect.cached(Surroundings.isGit(workspace.root))
  const made = yield* Ref.make<Made>({ instruction: undefined, plan: undefined })

  const approvedPlan = plans === undefined ? Effect.undefined : plans.approved

  const prompt = Effect.gen(function* () {
    const mode = yield* approval.mode
    const { model } = yield* chat.settings
    return yield* SystemPrompt.build({
      size: wanted.size,
      model,
      interactive: options.interactive,
      mode,
      agents: options.agents,
      skills: options.skills,
      tools: options.tools,
      hasHooks: hooks.has("BeforeAgent") || hooks.has("SessionStart") || hooks.has("AfterTool"),
      isGit: yield* isGit,
      planFile: mode === "plan" ? plans?.file : yield* approvedPlan,
      toggles: wanted.sections,
      memory: memoryText(yield* memory.load),
      folder: workspace.root,
      isTrusted: options.isTrusted
    })
  }).pipe(Effect.provideContext(platform))

  const environment = Effect.gen(function* () {
    if (wanted.size === "none") return undefined
    return yield* Surroundings.make({
      platform: options.platform,
      sandbox: sandboxOf((yield* variables)["SANDBOX"]),
      outputs: options.outputs,
      approvedPlan,
      ide: news?.full,
      tree: around.tree,
      items: around.items
    })
  }).pipe(Effect.provideService(Workspace, workspace), Effect.provideContext(platform))

  /** What the instruction depends on that may change while one talks. */
  const key = Effect.gen(function* () {
    const { model } = yield* chat.settings
    return JSON.stringify([isModern({ model }), yield* approval.mode, yield* memory.version, yield* approvedPlan])
  })

  /** What tools were told of folders may have left with the rest, and so may what the editor said. */
  const renew = Effect.andThen(memory.refresh, environment)

  const refresh = Effect.gen(function* () {
    const before = yield* Ref.get(made)
    const instruction = yield* key
    if (before.instruction === instruction) return []
    const plan = yield* approvedPlan
    const built = yield* prompt
    // An approved plan is named there too, so that one of the two is never older than the other.
    const isStale = before.instruction === undefined || before.plan !== plan
    yield* chat
      .configure({
        systemInstruction: built.text === "" ? undefined : built.text,
        renew,
        ...(isStale ? { environment: yield* environment } : {})
      })
      .pipe(
        Effect.andThen(Ref.set(made, { instruction, plan })),
        // Whatever is at work there: the next turn looks again.
        Effect.catchTags({ ChatBusy: () => Effect.void, SessionStoreError: () => Effect.void })
      )
    // They are the same each time.
    return before.instruction === undefined ? built.notices : []
  })

  return {
    memory,
    prompt,
    environment,
    refresh,
    news: Effect.gen(function* () {
      const one = news === undefined ? undefined : yield* news.next
      const problem = ide === undefined ? undefined : yield* ide.problem
      return one === undefined
        ? { attached: [], told: Effect.void, problem }
        : { attached: [{ parts: [text(one.text)] }], told: one.told, problem }
    })
  }
})
