import { Context, Effect, type FileSystem, Layer, type Path } from "effect"
import * as SecureRandom from "effect/crypto/SecureRandom"
import type { Dns } from "effect/net"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import { homedir } from "node:os"
import type { LocalAgent } from "../domain/AgentDefinition.ts"
import { AgentDefinitions, type KnownAgent } from "../services/AgentDefinitions.ts"
import type { AgentRunner } from "../services/AgentRunner.ts"
import { browserAgent } from "../services/agents/BrowserAgent.ts"
import { cliHelp } from "../services/agents/CliHelp.ts"
import { codebaseInvestigator } from "../services/agents/CodebaseInvestigator.ts"
import { generalist } from "../services/agents/Generalist.ts"
import { Browser, BrowserFailure } from "../services/Browser.ts"
import { Environment } from "../services/Environment.ts"
import { AllowPrivate, targets } from "../services/PublicNetwork.ts"
import { Settings } from "../services/Settings.ts"
import { Skills } from "../services/Skills.ts"
import { Workspace } from "../services/Workspace.ts"
import * as A2aAgent from "./A2aAgent.ts"
import * as ChromiumBrowser from "./ChromiumBrowser.ts"
import * as FileAgentDefinitions from "./FileAgentDefinitions.ts"
import * as FileSkills from "./FileSkills.ts"
import * as FileWorkspace from "./FileWorkspace.ts"
import { homeFolder } from "./HomeFolder.ts"
import * as ProcessAgent from "./ProcessAgent.ts"
import * as ProcessEnvironment from "./ProcessEnvironment.ts"
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

const built = <S, A, E>(key: Context.Key<S, A>, layer: Layer.Layer<S, E, Files>): Effect.Effect<A, E, Files> =>
  Effect.scoped(Effect.map(Layer.build(layer), Context.get(key)))

const agentsOf = Effect.fnUntraced(function* (
  root: string
): Effect.fn.Return<AgentDefinitions["Service"], never, Dns.Dns | Files | Settings> {
  const { read } = yield* Settings
  // What is wrong with the settings is told where they are read first.
  const allowPrivate = yield* Effect.match(read, {
    onFailure: () => false,
    onSuccess: ({ settings }) => settings.allowPrivateNetwork ?? false
  })
  const browser = yield* built(Browser, ChromiumBrowser.layer)
  const pages = browserAgent(browser, browserTargets(allowPrivate, yield* Effect.context<Dns.Dns>()))
  const places = yield* FileAgentDefinitions.folders(yield* homeFolder, root)
  return yield* built(AgentDefinitions, FileAgentDefinitions.layer([...builtIn, pages], places))
})

/** An agent in a process of its own is this program: it takes its own keys from the environment. */
const inProcess = Effect.fnUntraced(function* ({
  prompt
}: LocalAgent): Effect.fn.Return<AgentRunner, never, ChildProcessSpawner | Environment> {
  const { variables } = yield* Environment
  const { start } = yield* ProcessAgent.make({ env: yield* variables })
  return { start: (task) => start({ ...task, prompt: `${prompt}\n\n${task.prompt}` }) }
})

/** The folders, skills and agents there are, as the commands ask for them. */
export const ground = Effect.gen(function* () {
  const context = yield* Effect.context<ChildProcessSpawner | Dns.Dns | Environment | Files | Settings>()
  const here = <A, E>(work: Effect.Effect<A, E, ChildProcessSpawner | Dns.Dns | Environment | Files | Settings>) =>
    Effect.provideContext(work, context)
  return {
    workspace: (folders: FileWorkspace.FileWorkspaceOptions) => here(built(Workspace, FileWorkspace.layer(folders))),
    skills: (root: string) =>
      here(Effect.flatMap(FileSkills.folders(root, homedir()), (places) => built(Skills, FileSkills.layer(places)))),
    agents: (root: string) => here(agentsOf(root)),
    elsewhere: ({ definition }: KnownAgent): Effect.Effect<AgentRunner | undefined> =>
      definition.kind === "remote"
        ? Effect.provide(A2aAgent.make(definition), SecureRandom.layerWebCrypto)
        : definition.runner === "process"
          ? here(inProcess(definition))
          : Effect.undefined
  }
})

/** The services of this machine that tools use. */
export const layer = Layer.mergeAll(ProcessEnvironment.layer, WorkerLineMatcher.layer)
