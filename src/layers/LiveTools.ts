import { Context, Effect, type FileSystem, Layer, Option, type Path } from "effect"
import * as SecureRandom from "effect/crypto/SecureRandom"
import type { Dns } from "effect/net"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import { homedir } from "node:os"
import path from "node:path"
import { platform } from "node:process"
import type { LocalAgent, RemoteAgent } from "../domain/AgentDefinition.ts"
import type { CommandHook } from "../domain/HookSettings.ts"
import type { Settings as SettingsOf } from "../domain/Settings.ts"
import { AgentDefinitions, type AgentSource, type KnownAgent } from "../services/AgentDefinitions.ts"
import type { AgentRunner } from "../services/AgentRunner.ts"
import { Approval } from "../services/Approval.ts"
import { browserAgent } from "../services/agents/BrowserAgent.ts"
import { cliHelp } from "../services/agents/CliHelp.ts"
import { codebaseInvestigator } from "../services/agents/CodebaseInvestigator.ts"
import { generalist } from "../services/agents/Generalist.ts"
import { Browser, BrowserFailure } from "../services/Browser.ts"
import { Environment } from "../services/Environment.ts"
import { IdeContext } from "../services/IdeContext.ts"
import { UntrustedFolders } from "../services/Programs.ts"
import { AllowPrivate, targets } from "../services/PublicNetwork.ts"
import { Settings } from "../services/Settings.ts"
import { Skills } from "../services/Skills.ts"
import { Trust } from "../services/Trust.ts"
import { Workspace } from "../services/Workspace.ts"
import * as FileAgentDefinitions from "./FileAgentDefinitions.ts"
import * as FileIdeContext from "./FileIdeContext.ts"
import * as FileKnownHooks from "./FileKnownHooks.ts"
import * as FileMemory from "./FileMemory.ts"
import * as FileSkills from "./FileSkills.ts"
import * as FileTelemetry from "./FileTelemetry.ts"
import * as FileWorkspace from "./FileWorkspace.ts"
import { geminiFolder, homeFolder } from "./HomeFolder.ts"
import * as ProcessEnvironment from "./ProcessEnvironment.ts"
import * as TreeSitterGrammar from "./TreeSitterGrammar.ts"
import * as Watchdog from "./Watchdog.ts"
import * as WorkerLineMatcher from "./WorkerLineMatcher.ts"

/** What tools and agents stand on: folders, a browser and programs of this machine, its network, and agents elsewhere. */

type Files = FileSystem.FileSystem | Path.Path

const builtIn: ReadonlyArray<KnownAgent> = [codebaseInvestigator, generalist, cliHelp]

/** Where the pages of a browser may connect to, as the settings say. */
const browserTargets = (allowPrivate: boolean, context: Context.Context<Dns.Dns>) => (url: URL) =>
  targets(url).pipe(
    Effect.map((addresses) => addresses.map(String)),
    Effect.mapError(({ message }) => new BrowserFailure({ message })),
    Effect.provideService(AllowPrivate, allowPrivate),
    Effect.provideContext(context)
  )

/** Whether the settings allow private networks. What is wrong with them is told where they are read first. */
const privateAllowed = Effect.flatMap(Settings, ({ read }) =>
  Effect.match(read, {
    onFailure: () => false,
    onSuccess: ({ settings }) => settings.allowPrivateNetwork ?? false
  })
)

const built = <S, A, E>(key: Context.Key<S, A>, layer: Layer.Layer<S, E, Files>): Effect.Effect<A, E, Files> =>
  Effect.scoped(Effect.map(Layer.build(layer), Context.get(key)))

/** Whether a folder is trusted: what nobody was asked about is not, and neither is anything while that cannot be read. */
const trusts = Effect.map(
  Trust,
  ({ of }) =>
    (folder: string) =>
      Effect.match(of(folder), { onFailure: () => false, onSuccess: (standing) => standing === "trusted" })
)

const agentsOf = Effect.fnUntraced(function* (
  root: string,
  isTrusted: boolean
): Effect.fn.Return<AgentDefinitions["Service"], never, Dns.Dns | Files | Settings | Trust> {
  const allowPrivate = yield* privateAllowed
  const context = yield* Effect.context<Files>()
  // Loaded when a page is wanted: most conversations want none.
  const browser = Browser.of({
    open: (targets) =>
      Effect.promise(() => import("./ChromiumBrowser.ts")).pipe(
        Effect.flatMap(({ layer }) => built(Browser, layer)),
        Effect.flatMap(({ open }) => open(targets)),
        Effect.provideContext(context)
      )
  })
  const pages = browserAgent(browser, browserTargets(allowPrivate, yield* Effect.context<Dns.Dns>()))
  const places = yield* FileAgentDefinitions.folders(yield* homeFolder, root)
  const heeded = places.filter(({ source }) => isTrusted || source !== "project")
  return yield* built(AgentDefinitions, FileAgentDefinitions.layer([...builtIn, pages], heeded, yield* trusts))
})

/**
 * An agent in a process of its own is this program: it takes its own keys from the environment, and runs unasked what may run
 * unasked here when it is started.
 */
const inProcess = Effect.fnUntraced(function* ({
  prompt
}: LocalAgent): Effect.fn.Return<AgentRunner, never, ChildProcessSpawner | Environment | Files> {
  const { variables } = yield* Environment
  const env = yield* variables
  const context = yield* Effect.context<ChildProcessSpawner | Files>()
  return {
    start: Effect.fnUntraced(function* (task) {
      const approval = yield* Effect.serviceOption(Approval)
      const approve = Option.isSome(approval) ? yield* approval.value.mode : "none"
      const { make } = yield* Effect.promise(() => import("./ProcessAgent.ts"))
      const { start } = yield* Effect.provideContext(make({ env, approve }), context)
      return yield* start({ ...task, prompt: `${prompt}\n\n${task.prompt}` })
    })
  }
})

/**
 * An agent over A2A. One of the workspace is spoken to on the public internet only, unless the settings say otherwise: whoever
 * wrote the folder chose its address. The person's own may be anywhere.
 */
const remotely = Effect.fnUntraced(function* (
  definition: RemoteAgent,
  source: AgentSource
): Effect.fn.Return<AgentRunner, never, Dns.Dns | Settings> {
  const context = yield* Effect.context<Dns.Dns>()
  const allowPrivate = yield* privateAllowed
  const reach = (url: URL) =>
    targets(url).pipe(Effect.provideService(AllowPrivate, allowPrivate), Effect.provideContext(context))
  const { make } = yield* Effect.promise(() => import("./A2aAgent.ts"))
  return yield* make({ ...definition, reach: source === "project" ? reach : undefined }).pipe(
    Effect.provide(SecureRandom.layerWebCrypto)
  )
})

type Needed = ChildProcessSpawner | Dns.Dns | Environment | Files | Settings | Trust

/** Where memory is looked for, and how. */
interface MemoryPlaces {
  readonly root: string
  readonly added: ReadonlyArray<string>
  readonly settings: Pick<SettingsOf, "loadMemoryFromIncludeDirectories" | "memory">
  /** What the home folder's file says, and nobody else. */
  readonly own: Pick<SettingsOf, "memory">
}

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

/** The folders, skills, agents and memory there are, as the commands ask for them. */
export const ground = Effect.gen(function* () {
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
      here(FileKnownHooks.note(path.join(home, "known-hooks.json"), folder, hooks)),
    skills: (root: string, isTrusted: boolean) =>
      here(
        Effect.gen(function* () {
          const places = yield* FileSkills.folders(isTrusted ? root : homedir(), homedir())
          const own = { folder: path.join(home, "skills"), isOwn: true }
          return yield* built(Skills, FileSkills.layer([own, ...places], yield* trusts))
        })
      ),
    agents: (root: string, isTrusted: boolean) => here(agentsOf(root, isTrusted)),
    elsewhere: ({ definition, source }: KnownAgent): Effect.Effect<AgentRunner | undefined> =>
      definition.kind === "remote"
        ? here(remotely(definition, source))
        : definition.runner === "process"
          ? here(inProcess(definition))
          : Effect.undefined
  }
})

/** No program is taken from a folder that a person does not trust. */
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
  WorkerLineMatcher.layer,
  Watchdog.layer,
  untrusted
)
