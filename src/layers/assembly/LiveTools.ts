/** Live layers that tools and agents use: folders, browser, programs, network and remote agents. */

import { Context, Effect, type FileSystem, Layer, type Path } from "effect"
import * as SecureRandom from "effect/crypto/SecureRandom"
import type { Dns } from "effect/net"
import { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import { homedir } from "node:os"
import path from "node:path"
import { platform } from "node:process"
import { type LocalAgent, localDefaults, type RemoteAgent } from "../../domain/agent/AgentDefinition.ts"
import type { CommandHook } from "../../domain/hooks/HookSettings.ts"
import type { Settings as SettingsOf } from "../../domain/settings/Settings.ts"
import { AgentDefinitions, type AgentSource, type KnownAgent } from "../../services/agent/AgentDefinitions.ts"
import type { ExternalRunner } from "../../services/agent/AgentRunner.ts"
import { browserAgent } from "../../services/agent/builtin/BrowserAgent.ts"
import { cliHelp } from "../../services/agent/builtin/CliHelp.ts"
import { codebaseInvestigator } from "../../services/agent/builtin/CodebaseInvestigator.ts"
import { generalist } from "../../services/agent/builtin/Generalist.ts"
import { Environment } from "../../services/platform/Environment.ts"
import { UntrustedFolders } from "../../services/platform/ProgramLookup.ts"
import { AllowPrivate, publicAddresses } from "../../services/platform/PublicNetwork.ts"
import { type MemoryPlaces, RuntimePlatform } from "../../services/runtime/RuntimePlatform.ts"
import { Settings } from "../../services/settings/Settings.ts"
import { Browser, BrowserFailure } from "../../services/tools/Browser.ts"
import { Skills } from "../../services/tools/Skills.ts"
import { IdeContext } from "../../services/workspace/IdeContext.ts"
import { Trust } from "../../services/workspace/Trust.ts"
import { Workspace } from "../../services/workspace/Workspace.ts"
import { folders } from "../agent/DefinitionFolders.ts"
import * as FileAgentDefinitions from "../agent/FileAgentDefinitions.ts"
import * as FileAgentSlots from "../agent/FileAgentSlots.ts"
import * as FileKnownHooks from "../hooks/FileKnownHooks.ts"
import * as FileMemory from "../memory/FileMemory.ts"
import { geminiFolder, homeFolder } from "../platform/HomeFolder.ts"
import * as ProcessEnvironment from "../platform/ProcessEnvironment.ts"
import * as Watchdog from "../platform/Watchdog.ts"
import * as FileTelemetry from "../telemetry/FileTelemetry.ts"
import * as FileSkills from "../tools/FileSkills.ts"
import * as TreeSitterGrammar from "../tools/TreeSitterGrammar.ts"
import * as FileIdeContext from "../workspace/FileIdeContext.ts"
import * as FileWorkspace from "../workspace/FileWorkspace.ts"

type Files = FileSystem.FileSystem | Path.Path

const builtIn: ReadonlyArray<KnownAgent> = [codebaseInvestigator, generalist, cliHelp]

/** Returns where the pages of a browser may connect, according to the settings. */
const browserTargets = (allowPrivate: boolean, context: Context.Context<Dns.Dns>) => (url: URL) =>
  publicAddresses(url).pipe(
    Effect.map((addresses) => addresses.map(String)),
    Effect.mapError(({ message }) => new BrowserFailure({ message })),
    Effect.provideService(AllowPrivate, allowPrivate),
    Effect.provideContext(context)
  )

/** Whether the settings allow private networks. Errors in the settings are reported where they are first read. */
const privateAllowed = Effect.flatMap(Settings, ({ read }) =>
  Effect.match(read, {
    onFailure: () => false,
    onSuccess: ({ settings }) => settings.allowPrivateNetwork ?? false
  })
)

const built = <S, A, E>(key: Context.Key<S, A>, layer: Layer.Layer<S, E, Files>) =>
  Effect.scoped(Effect.map(Layer.build(Layer.fresh(layer)), Context.get(key)))

/** Returns whether a folder is trusted. A folder without an answer is not, and no folder is while the answers cannot be read. */
const trusts = Effect.map(
  Trust,
  ({ of }) =>
    (folder: string) =>
      Effect.match(of(folder), { onFailure: () => false, onSuccess: (standing) => standing === "trusted" })
)

/** The folders of agents or skills that count: those of the workspace only if it is trusted. */
const definitionFolders = Effect.fnUntraced(function* (kind: "agents" | "skills", root: string, isTrusted: boolean) {
  const user = homedir()
  return yield* folders(kind, { home: yield* homeFolder, user, workspace: isTrusted ? root : user })
})

const agentsOf = Effect.fnUntraced(function* (root: string, isTrusted: boolean) {
  const allowPrivate = yield* privateAllowed
  const context = yield* Effect.context<Files>()
  // Loaded with the first page: most conversations open none.
  const browser = Browser.of({
    open: (targets) =>
      Effect.promise(() => import("../tools/ChromiumBrowser.ts")).pipe(
        Effect.flatMap(({ layer }) => built(Browser, layer)),
        Effect.flatMap(({ open }) => open(targets)),
        Effect.provideContext(context)
      )
  })
  const pages = browserAgent(browser, browserTargets(allowPrivate, yield* Effect.context<Dns.Dns>()))
  const places = yield* definitionFolders("agents", root, isTrusted)
  return yield* built(AgentDefinitions, FileAgentDefinitions.layer([...builtIn, pages], places, yield* trusts))
})

/**
 * Runs an agent in its own process, which is this program and takes its keys from the environment. Undefined: the agent has parts that cannot
 * be passed on to a process, which no file can define.
 */
const inProcess = Effect.fnUntraced(function* (definition: LocalAgent, own: KnownAgent["own"]) {
  if (own !== undefined || definition.output !== undefined || definition.inputs !== localDefaults.inputs) {
    return undefined
  }
  const { variables } = yield* Environment
  const context = yield* Effect.context<ChildProcessSpawner | Files>()
  return {
    start: Effect.fnUntraced(function* (task, share) {
      const { make } = yield* Effect.promise(() => import("../agent/ProcessAgent.ts"))
      const { start } = yield* Effect.provideContext(make({ definition, env: yield* variables }), context)
      return yield* start(task, share)
    })
  }
})

/**
 * Runs an agent over A2A. An agent of the workspace is reached only on the public internet, unless the settings allow more: the author
 * of the folder chose its address. An agent of the user may be anywhere.
 */
const remotely = Effect.fnUntraced(function* (definition: RemoteAgent, source: AgentSource) {
  const context = yield* Effect.context<Dns.Dns>()
  const allowPrivate = yield* privateAllowed
  const checkAddress = (url: URL) =>
    publicAddresses(url).pipe(Effect.provideService(AllowPrivate, allowPrivate), Effect.provideContext(context))
  const { make } = yield* Effect.promise(() => import("../agent/A2aAgent.ts"))
  return yield* make({ ...definition, checkAddress: source === "project" ? checkAddress : undefined }).pipe(
    Effect.provide(SecureRandom.layerWebCrypto)
  )
})

type Needed = ChildProcessSpawner | Dns.Dns | Environment | Files | Settings | Trust

const memoryOf = Effect.fnUntraced(function* ({ added, own, root, settings }: MemoryPlaces) {
  const home = yield* homeFolder
  return yield* FileMemory.make({
    home,
    geminiHome: geminiFolder,
    extensions: [path.join(home, "extensions"), path.join(geminiFolder, "extensions")],
    root,
    includeDirectories: added,
    loadFromIncludeDirectories: settings.loadMemoryFromIncludeDirectories,
    isTrusted: yield* trusts,
    memory: settings.memory,
    ownFileNames: own.memory.fileNames
  })
})

/** The workspace, skills, agents, memory and editor of a folder, read from files. */
export const makePlatform = Effect.gen(function* () {
  const context = yield* Effect.context<Needed>()
  const home = yield* homeFolder
  const here = <A, E>(work: Effect.Effect<A, E, Needed>) => Effect.provideContext(work, context)
  return {
    platform,
    home,
    memory: (places: MemoryPlaces) => here(memoryOf(places)),
    ide: (root: string, { file, openFiles, selection }: SettingsOf["ide"]) =>
      here(
        built(
          IdeContext,
          FileIdeContext.layer({
            file: path.resolve(home, file ?? "ide.json"),
            root,
            limits: { openFiles, selection }
          })
        )
      ),
    workspace: (folders: FileWorkspace.FileWorkspaceOptions) => here(built(Workspace, FileWorkspace.layer(folders))),
    sink: (file: string) => here(FileTelemetry.make(path.resolve(home, file))),
    knownHooks: (folder: string, hooks: ReadonlyArray<CommandHook>) =>
      here(FileKnownHooks.noteHooks(path.join(home, "known-hooks.json"), folder, hooks)),
    skills: (root: string, isTrusted: boolean) =>
      here(
        Effect.gen(function* () {
          const places = yield* definitionFolders("skills", root, isTrusted)
          return yield* built(Skills, FileSkills.layer(places, yield* trusts))
        })
      ),
    agents: (root: string, isTrusted: boolean) => here(agentsOf(root, isTrusted)),
    slots: (name: string | undefined) => here(FileAgentSlots.make(home, name)),
    externalRunner: ({
      definition,
      own,
      source
    }: KnownAgent): Effect.Effect<ExternalRunner | undefined, never, ChildProcessSpawner> => {
      if (definition.kind === "remote") return here(remotely(definition, source))
      if (definition.runner === "inside") return Effect.undefined
      // The caller's spawner passes on the place of the agent.
      return ChildProcessSpawner.use((spawner) =>
        here(Effect.provideService(inProcess(definition, own), ChildProcessSpawner, spawner))
      )
    }
  }
})

/** The machine on which an agent is assembled. `version` is this program's version, which MCP servers receive. */
export const runtimePlatform = (version: string) =>
  Layer.effect(
    RuntimePlatform,
    Effect.map(makePlatform, (platform) => ({ ...platform, version }))
  )

/** Excludes programs in folders that the user does not trust. */
const untrusted = Layer.effect(
  UntrustedFolders,
  Effect.map(Trust, ({ list }) =>
    Effect.match(list, {
      onFailure: () => [],
      onSuccess: (entries) => entries.flatMap(({ answer, folder }) => (answer === "untrusted" ? [folder] : []))
    })
  )
)

/** The services of this machine that tools use. */
export const layer = Layer.mergeAll(
  ProcessEnvironment.layerWithFiles,
  TreeSitterGrammar.layer,
  Watchdog.layer,
  untrusted
)
