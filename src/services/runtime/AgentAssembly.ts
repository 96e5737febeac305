/** Assembles an agent from an open session. `Runtime.host` loads this module, and with it all tools, when it is needed. */

import { Effect, type FileSystem, Path, Ref, type Scope } from "effect"
import { mainAgent, placeVariable } from "../../domain/agent/AgentPlace.ts"
import { plainText } from "../../domain/content/Content.ts"
import { type SettingsFile, withDefaults } from "../../domain/settings/Settings.ts"
import { type Answer, type ApprovalMode, grantText, narrowerMode } from "../../domain/tools/Approval.ts"
import * as Agent from "../agent/Agent.ts"
import type { Profile } from "../agent/AgentRun.ts"
import * as MemoryFlush from "../agent/MemoryFlush.ts"
import { HookSystem } from "../hooks/HookSystem.ts"
import type { Memory } from "../memory/Memory.ts"
import type { SessionFiles } from "../session/SessionFiles.ts"
import { SessionStore } from "../session/SessionStore.ts"
import { Settings } from "../settings/Settings.ts"
import { Approval, type ApprovalQuestion } from "../tools/Approval.ts"
import { Plans } from "../tools/Plans.ts"
import type { Tool } from "../tools/Tool.ts"
import * as FolderTree from "../workspace/FolderTree.ts"
import { Workspace } from "../workspace/Workspace.ts"
import * as AgentContext from "./AgentContext.ts"
import * as AgentEquipment from "./AgentEquipment.ts"
import { type AgentHost, type RuntimeServices } from "./AgentHost.ts"
import * as AgentNesting from "./AgentNesting.ts"
import {
  type AgentHandlers,
  type AgentParts,
  type HostOptions,
  type HostSession,
  isInteractive,
  outputsOf
} from "./AgentParts.ts"
import { modelRoute, outputGuards } from "./AgentProfile.ts"
import * as FileRewind from "./FileRewind.ts"
import { isTrusted, untrustedNotice } from "./FolderTrust.ts"
import * as MessageSender from "./MessageSender.ts"
import { type HostError, WorkspaceFolderError } from "./RuntimeError.ts"
import { message, type Notify, type RuntimeNotice } from "./RuntimeNotice.ts"
import { RuntimePlatform } from "./RuntimePlatform.ts"
import * as SessionObservers from "./SessionObservers.ts"

/** Folders beside the working folder. */
interface AddedFolders {
  /** From the settings, which hold in every folder: one that does not exist is reported and left out. */
  readonly configured: ReadonlyArray<string>
  /** From the caller: each has to exist. */
  readonly requested: ReadonlyArray<string>
}

/** Most files and folders listed for completions, and the time after which they are listed again. */
const maxListedPaths = 5_000
const pathsTtl = "10 seconds"

/** Opens the workspace. Tools may also read stored outputs and plans, and write the plan. */
const openWorkspace = Effect.fnUntraced(function* (
  id: string | undefined,
  { configured, requested }: AddedFolders,
  plans: Plans["Service"] | undefined,
  notify: Notify
): Effect.fn.Return<Workspace["Service"], WorkspaceFolderError, RuntimePlatform | Path.Path | SessionFiles> {
  const { home, workspace } = yield* RuntimePlatform
  const path = yield* Path.Path
  const outputs = yield* outputsOf(id)
  // Images that were pasted into the chat lie there.
  const pasted = path.join(home, "pasted")
  const readable = [pasted, ...(outputs === undefined ? [] : [outputs]), ...(plans === undefined ? [] : [plans.kept])]
  const writable = plans === undefined ? [] : [plans.file]
  const root = path.resolve(".")
  const existing = yield* Effect.filter(configured, (folder) =>
    Effect.matchEffect(workspace({ root, added: [folder], readable: [], writable: [] }), {
      onFailure: (error) => Effect.as(notify(message(`includeDirectories: ${error.message}; it is ignored`)), false),
      onSuccess: () => Effect.succeed(true)
    })
  )
  return yield* workspace({ root, added: [...existing, ...requested], readable, writable }).pipe(
    Effect.mapError((error) => new WorkspaceFolderError({ message: error.message }))
  )
})

/**
 * Denies a call that no user can approve. Reports a call that the approval mode seems to allow but that needs approval for another reason, because
 * the user would not expect that.
 */
const deny =
  (notify: Notify) =>
  ({ because, title }: ApprovalQuestion): Effect.Effect<Answer> =>
    Effect.as(because === undefined ? Effect.void : notify({ _tag: "ApprovalUnavailable", title, because }), {
      _tag: "No",
      words: ""
    })

/** The approvals of this agent: which calls run without approval, and who approves the rest. No mode is wider than that of the agent above. */
const makeApproval = Effect.fnUntraced(function* (
  settings: SettingsFile,
  { approve, isAgentProcess }: HostOptions,
  { ask, notify }: AgentHandlers,
  widest: ApprovalMode,
  planFile: string | undefined
) {
  const { allow, disallow } = yield* Settings
  const path = yield* Path.Path
  const mode = isAgentProcess === true ? widest : (approve ?? settings.approve ?? "none")
  if (narrowerMode(mode, widest) !== mode) {
    yield* notify(
      message(
        `approve is ${widest} and not ${mode}: the agent that started this one had ${widest}; unset ${placeVariable} to start one of your own`
      )
    )
  }
  return yield* Approval.make({
    mode,
    widest,
    granted: settings.allowed ?? [],
    planFile,
    ask: ask ?? deny(notify),
    folder: path.resolve("."),
    keep: (grants) =>
      Effect.matchEffect(allow(grants), {
        onSuccess: (file) =>
          notify(
            message(`Always allowed: ${grants.map(grantText).join("; ")}. Stored in ${file}; /approvals takes it back.`)
          ),
        onFailure: (error) => notify(message(`Allowed for this session only: ${error.message}`))
      }),
    forget: (grant) =>
      Effect.catch(disallow([grant]), (error) =>
        notify(message(`It asks again in this session only: ${error.message}`))
      )
  })
})

/** Problems of memory files that are reported one by one. */
const maxNamedProblems = 5

/** Reports what is wrong with memory files: the first few one by one, then how many more there are. */
const reportMemoryProblems = Effect.fnUntraced(function* (memory: Memory["Service"], notify: Notify) {
  const { problems, untrusted } = yield* memory.load
  const notices = [
    ...untrusted.map((file): RuntimeNotice => ({ _tag: "UntrustedMemory", file })),
    ...problems.map(message)
  ]
  const more = notices.length - maxNamedProblems
  for (const notice of notices.slice(0, maxNamedProblems)) yield* notify(notice)
  if (more > 0) yield* notify({ _tag: "MoreMemoryProblems", count: more })
})

/** Saves facts before compressions. A session that is not stored has no log. */
const memoryFlush = Effect.fnUntraced(function* (
  { chat, id }: HostSession,
  tools: ReadonlyArray<Tool>,
  hooks: HookSystem["Service"]
) {
  const store = yield* SessionStore
  const logBytes =
    id === undefined
      ? Effect.succeed(0)
      : Effect.match(store.summary(id), { onSuccess: ({ bytes }) => bytes, onFailure: () => 0 })
  return yield* MemoryFlush.make({ name: mainAgent, chat, tools, memoryTool: "save_memory", logBytes, hooks })
})

/** The message that starts the new conversation a hook asked for. Undefined: no hook did. */
type Clearing = { readonly next: string | undefined } | undefined

/** How the loop runs this agent. */
const profileOf = Effect.fnUntraced(function* (
  session: HostSession,
  { canRestart }: AgentHandlers,
  { background, tools }: AgentEquipment.AgentEquipment,
  context: AgentContext.AgentContext,
  clearing: Ref.Ref<Clearing>
) {
  const { chat, settings } = session
  const { maxTurns, memoryFlush: flushesMemory } = withDefaults(settings)
  const hooks = yield* HookSystem
  return {
    name: mainAgent,
    chat,
    tools,
    limits: { turns: maxTurns },
    hooks,
    ...(canRestart === true ? { onClear: (next) => Ref.set(clearing, { next }) } : {}),
    ...(yield* outputGuards(settings)),
    ...(yield* modelRoute({ chat, settings })),
    ...background,
    ...(flushesMemory && tools.length > 0 ? { beforeTurn: yield* memoryFlush(session, tools, hooks) } : {}),
    // Between two turns a plan may be approved, a fact remembered, the conversation compressed.
    inbox: (use) => Effect.andThen(Effect.ignore(context.refresh), background.inbox?.(use) ?? Effect.void)
  } satisfies Profile
})

/** Files and folders for completions, read again when they are older than `pathsTtl`. */
const listedPaths = Effect.fnUntraced(function* (workspace: Workspace["Service"]) {
  const context = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
  return yield* FolderTree.paths(workspace.root, { items: maxListedPaths }).pipe(
    Effect.provideService(Workspace, workspace),
    Effect.provideContext(context),
    Effect.cachedWithTTL(pathsTtl)
  )
})

/** Assembles an agent for an open session. What it starts ends with the scope. */
export const make = Effect.fn("AgentAssembly.make")(function* (
  session: HostSession,
  options: HostOptions,
  handlers: AgentHandlers
): Effect.fn.Return<AgentHost, HostError, RuntimeServices | Scope.Scope> {
  const { id, settings } = session
  const path = yield* Path.Path
  const { home } = yield* RuntimePlatform
  const nesting = yield* AgentNesting.enter(settings, options)
  const plans = id === undefined ? undefined : yield* Plans.make({ folder: path.join(home, "plans"), session: id })
  const approval = yield* makeApproval(settings, options, handlers, nesting.place.approve, plans?.file)
  return yield* openFolder(session, options, plans, handlers.notify).pipe(
    Effect.flatMap((folder) => assemble({ session, options, handlers, approval, nesting, plans, ...folder })),
    AgentNesting.passOn(nesting.place, approval.mode)
  )
})

/** Opens the folder in which an agent works, and its memory. */
const openFolder = Effect.fnUntraced(function* (
  { files, id, settings }: HostSession,
  { addDir = [] }: HostOptions,
  plans: Plans["Service"] | undefined,
  notify: Notify
) {
  const platform = yield* RuntimePlatform
  const all = withDefaults(settings)
  const workspace = yield* openWorkspace(id, { configured: all.includeDirectories, requested: addDir }, plans, notify)
  const { root } = workspace
  const isRootTrusted = yield* (yield* isTrusted)(root)
  const untrusted = isRootTrusted ? undefined : yield* untrustedNotice(root)
  if (untrusted !== undefined) yield* notify(untrusted)
  const added = workspace.folders.filter((folder) => folder !== root)
  const memory = yield* platform.memory({ root, added, settings: all, own: withDefaults(files.home) })
  return { workspace, isTrusted: isRootTrusted, memory }
})

/** Starts what watches the session: its hooks and telemetry. */
const observe = Effect.fnUntraced(function* (session: HostSession, options: HostOptions, notify: Notify, root: string) {
  yield* SessionObservers.addHooks(session, notify, (yield* isTrusted)(root))
  const telemetry = yield* SessionObservers.telemetry(session)
  if (options.isPreview === true || options.isAgentProcess === true) {
    return { telemetry, ...SessionObservers.unobserved }
  }
  const source = options.isCleared === true ? "clear" : session.isNew ? "startup" : "resume"
  return { telemetry, ...(yield* SessionObservers.session(session.session, source, notify)) }
})

const assemble = Effect.fnUntraced(function* (
  parts: AgentParts
): Effect.fn.Return<AgentHost, HostError, RuntimeServices | Scope.Scope> {
  const { approval, handlers, memory, options, session, workspace } = parts
  const { chat, id, settings } = session
  const { confirmShortening, notify } = handlers
  const { leave, opening, telemetry } = yield* observe(session, options, notify, workspace.root)
  const equipment = options.tools === false ? AgentEquipment.noEquipment : yield* AgentEquipment.make(parts)
  const { agents, commands, definitions, tools } = equipment
  const context = yield* AgentContext.make(parts, equipment)

  const clearing = yield* Ref.make<Clearing>(undefined)
  const profile = yield* profileOf(session, handlers, equipment, context, clearing)
  yield* reportMemoryProblems(memory, notify)
  const notices = yield* context.refresh
  yield* Effect.forEach(notices, (line) => notify(message(line)), { discard: true })
  // The window's fill before the first message counts the tools, too.
  yield* Agent.equip(profile)

  const references = {
    chat,
    workspace,
    files: withDefaults(settings).files,
    search: isInteractive(handlers),
    agents: agents.tools.map(({ name }) => name),
    confirmShortening
  }
  const run = yield* MessageSender.make({ profile, approval, context, references, opening })
  return {
    agents,
    definitions,
    approval,
    tools,
    paths: yield* listedPaths(workspace),
    context,
    commands,
    rewind: yield* FileRewind.make(chat, workspace),
    recent: telemetry.recent,
    clearing: Ref.getAndSet(clearing, undefined),
    leave,
    run: (sent, sendOptions) => {
      const text = typeof sent === "string" ? sent : plainText({ role: "user", parts: sent })
      return telemetry.watch(id, text, run(sent, sendOptions))
    }
  }
})
