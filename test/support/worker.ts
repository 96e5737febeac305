import * as NodeServices from "@effect/platform-node/NodeServices"
import { ConfigProvider, Effect, FileSystem, Layer, Path, type Scope, Stream } from "effect"
import * as AgentTools from "../../src/cli/AgentTools.ts"
import * as OpenChat from "../../src/cli/OpenChat.ts"
import { Ground, type People, type Wanted } from "../../src/cli/Worker.ts"
import type { ChatEvent } from "../../src/domain/ChatEvent.ts"
import * as FakeGemini from "../../src/layers/FakeGemini.ts"
import * as Live from "../../src/layers/Live.ts"
import * as LiveNetwork from "../../src/layers/LiveNetwork.ts"
import * as LiveTools from "../../src/layers/LiveTools.ts"
import { ChatDefaults } from "../../src/services/ChatSettings.ts"

/** The agent of the command line, put together in this process as the program does it. */

/** What lies where, and what the model answers. */
export interface Scene {
  readonly script: FakeGemini.Script
  readonly settings?: object
  /** Files below the working folder, which is trusted. */
  readonly work?: Readonly<Record<string, string>>
  readonly wanted?: Wanted
  readonly people?: People
  /** The id of the session; absent: nothing is kept. */
  readonly session?: string
}

/** Files of the folders that a scene plays in. */
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

/** Paths as a process sees them that works in this folder: a thread cannot change its own. */
const pathsIn = (cwd: string) =>
  Layer.effect(
    Path.Path,
    Effect.map(Path.Path, (path) => ({ ...path, resolve: (...parts) => path.resolve(cwd, ...parts) }))
  ).pipe(Layer.provide(NodeServices.layer))

/** An agent that works until the scope closes, and the server it asks. Snapshots are written by code. */
export const working = Effect.fnUntraced(function* (scene: Scene): Effect.fn.Return<
  {
    readonly fake: FakeGemini.FakeGemini
    readonly home: string
    readonly cwd: string
    readonly opened: OpenChat.Opened
    readonly worker: Effect.Success<ReturnType<typeof AgentTools.make>>
    /** What a message comes to. */
    readonly said: (message: string) => Effect.Effect<ReadonlyArray<ChatEvent>>
    readonly told: ReadonlyArray<string>
  },
  never,
  Scope.Scope
> {
  const { cwd, home } = yield* Effect.orDie(furnish(scene))
  const fake = yield* FakeGemini.make(scene.script)
  const platform = Layer.merge(NodeServices.layer, pathsIn(cwd))
  const ground = Layer.effect(
    Ground,
    Effect.map(LiveTools.ground, (made) => ({ ...made, version: "0" }))
  )
  const variables = {
    GEMINI_API_KEY: "AIza-not-a-real-key",
    GOOGLE_GEMINI_BASE_URL: fake.url,
    PALIMPSEST_HOME: home
  }
  const services = yield* Layer.build(
    ground.pipe(
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
  const people: People = scene.people ?? { tell: (line) => Effect.sync(() => void told.push(line)) }
  return yield* Effect.gen(function* () {
    const opened = yield* scene.session === undefined ? OpenChat.passing({}) : OpenChat.open({ session: scene.session })
    const worker = yield* AgentTools.make(opened, scene.wanted ?? {}, people)
    const said = (message: string) =>
      worker.run(message).pipe(
        Stream.runCollect,
        Effect.map((events) => [...events]),
        Effect.orDie
      )
    return { fake, home, cwd, opened, worker, said, told }
  }).pipe(Effect.provideContext(services), Effect.orDie)
})
