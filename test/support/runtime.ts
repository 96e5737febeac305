import * as NodeServices from "@effect/platform-node/NodeServices"
import { ConfigProvider, Effect, FileSystem, Layer, Path, type Scope, Stream } from "effect"
import type { ChatEvent } from "../../src/domain/chat/ChatEvent.ts"
import * as Live from "../../src/layers/assembly/Live.ts"
import * as LiveNetwork from "../../src/layers/assembly/LiveNetwork.ts"
import * as LiveTools from "../../src/layers/assembly/LiveTools.ts"
import * as FakeGemini from "../../src/layers/testing/FakeGemini.ts"
import { ChatDefaults } from "../../src/services/chat/ChatSettings.ts"
import type { AgentHost } from "../../src/services/runtime/AgentHost.ts"
import type { AgentHandlers, HostOptions } from "../../src/services/runtime/AgentParts.ts"
import * as Runtime from "../../src/services/runtime/Runtime.ts"
import { noticeText, type RuntimeNotice } from "../../src/services/runtime/RuntimeNotice.ts"
import type { OpenSession } from "../../src/services/runtime/SessionOpening.ts"

/** The assembled agent, in this process, as the program uses it. */

/** The files of a test, and the model's answers. */
export interface Scene {
  readonly script: FakeGemini.Script
  readonly settings?: object
  /** Files below the working folder, which is trusted. */
  readonly work?: Readonly<Record<string, string>>
  readonly options?: HostOptions
  readonly handlers?: AgentHandlers
  /** The id of the session; absent: nothing is stored. */
  readonly session?: string
}

/** Creates the folders and files of a scene. */
const furnish = Effect.fnUntraced(function* ({ settings = {}, work = {} }: Scene) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const root = yield* fs.realPath(yield* fs.makeTempDirectoryScoped())
  const home = path.join(root, "home")
  const cwd = path.join(root, "work")
  const files = {
    [path.join(home, "settings.json")]: JSON.stringify(settings),
    [path.join(home, "trusted-folders.json")]: JSON.stringify({ version: 1, folders: { [cwd]: "trusted" } }),
    ...Object.fromEntries(Object.entries(work).map(([name, content]) => [path.join(cwd, name), content]))
  }
  yield* fs.makeDirectory(cwd, { recursive: true })
  for (const [file, content] of Object.entries(files)) {
    yield* fs.makeDirectory(path.dirname(file), { recursive: true })
    yield* fs.writeFileString(file, content)
  }
  return { home, cwd }
}, Effect.provide(NodeServices.layer))

/** Resolves paths as a process in this folder would: a thread cannot change its own working folder. */
const pathsIn = (cwd: string) =>
  Layer.effect(
    Path.Path,
    Effect.map(Path.Path, (path) => ({ ...path, resolve: (...parts) => path.resolve(cwd, ...parts) }))
  ).pipe(Layer.provide(NodeServices.layer))

/** An agent that works until the scope closes, and the server that answers it. Snapshots are written by code. */
export const working = Effect.fnUntraced(function* (scene: Scene): Effect.fn.Return<
  {
    readonly fake: FakeGemini.FakeGemini
    readonly home: string
    readonly cwd: string
    readonly opened: OpenSession
    readonly worker: AgentHost
    /** The text of the answer to a message. */
    readonly said: (message: string) => Effect.Effect<ReadonlyArray<ChatEvent>>
    readonly told: ReadonlyArray<string>
  },
  never,
  Scope.Scope
> {
  const { cwd, home } = yield* Effect.orDie(furnish(scene))
  const fake = yield* FakeGemini.make(scene.script)
  const platform = Layer.merge(NodeServices.layer, pathsIn(cwd))
  const variables = {
    GEMINI_API_KEY: "AIza-not-a-real-key",
    GOOGLE_GEMINI_BASE_URL: fake.url,
    PALIMPSEST_HOME: home
  }
  const services = yield* Layer.build(
    LiveTools.runtimePlatform("0").pipe(
      Layer.provideMerge(Layer.merge(LiveTools.layer, LiveNetwork.layer)),
      Layer.provideMerge(Live.layer),
      Layer.provideMerge(platform),
      Layer.provideMerge(ConfigProvider.layer(ConfigProvider.fromUnknown(variables))),
      Layer.provideMerge(
        Layer.succeed(ChatDefaults, { model: "gemini-2.5-flash", policy: { summarizer: "extractive" as const } })
      )
    )
  ).pipe(Effect.orDie)
  const told: Array<string> = []
  const handlers = scene.handlers ?? {
    notify: (notice: RuntimeNotice) => Effect.sync(() => void told.push(noticeText(notice)))
  }
  return yield* Effect.gen(function* () {
    const session = scene.session === undefined ? undefined : ({ _tag: "Named", name: scene.session } as const)
    const agent = yield* Runtime.make({ ...scene.options, session, handlers })
    const said = (message: string) =>
      agent.send(message).pipe(
        Stream.runCollect,
        Effect.map((events) => [...events]),
        Effect.orDie
      )
    return { fake, home, cwd, opened: agent, worker: agent.host, said, told }
  }).pipe(Effect.provideContext(services), Effect.orDie)
})
