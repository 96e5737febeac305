/** The layer of what `Runtime` needs of this machine, for programs that assemble an agent. */

import { type Config, ConfigProvider, Effect, type FileSystem, Layer, Path } from "effect"
import type { Model } from "../../services/model/Model.ts"
import type { EnvFiles } from "../../services/platform/Environment.ts"
import type { RuntimeServices } from "../../services/runtime/AgentHost.ts"
import { own } from "../../services/runtime/OwnLayers.ts"
import type { ChatServices } from "../../services/runtime/SessionOpening.ts"
import type { Transcripts } from "../../services/transcripts/Transcripts.ts"
import * as Live from "./Live.ts"
import * as LiveModels from "./LiveModels.ts"
import { nodeServices } from "./LiveNode.ts"
import * as LiveTools from "./LiveTools.ts"

/** Options of the machine on which an agent is assembled. */
export interface LiveRuntimeOptions<E, R> {
  /** The folder that the agent works in, absolute. Absent: the working directory of the process. */
  readonly folder?: string | undefined
  /** Where sessions, settings, memory and trust are stored, absolute. Absent: the home folder of the command line. */
  readonly home?: string | undefined
  /** Absent: the models of every provider, by their names (`LiveModels`); Google's with the key in `GEMINI_API_KEY`. */
  readonly model?: Layer.Layer<Model, E, R> | undefined
  /** Your program's version; MCP servers get it. */
  readonly version?: string | undefined
}

const network = Layer.unwrap(
  Effect.map(
    Effect.promise(() => import("./LiveNetwork.ts")),
    ({ layer }) => layer
  )
)

/** The path service with paths relative to a folder, as if the process worked there. */
const pathsIn = (folder: string) =>
  Layer.effect(
    Path.Path,
    Effect.map(Path.Path, (path) => ({ ...path, resolve: (...parts) => path.resolve(folder, ...parts) }))
  ).pipe(Layer.provide(nodeServices))

/** The configuration of the program, with another home folder. */
const configWith = (home: string) =>
  Layer.effect(
    ConfigProvider.ConfigProvider,
    Effect.map(ConfigProvider.ConfigProvider, (program) =>
      ConfigProvider.orElse(ConfigProvider.fromUnknown({ PALIMPSEST_HOME: home }), program)
    )
  )

/**
 * Everything that `AgentRuntime` needs, on this machine: files, processes, network, stored sessions.
 *
 * *When to use*: below `Runtime.layer` or `Runtime.make` in a program of your own. Several agents of one program share one such
 * layer when they work in the same folder.
 *
 * *Details*: it needs `@effect/platform-node`, and `@google/genai` unless you pass a model.
 */
export const layer = <E = never, R = never>(
  options: LiveRuntimeOptions<E, R> = {}
): Layer.Layer<
  ChatServices | EnvFiles | FileSystem.FileSystem | Path.Path | RuntimeServices | Transcripts,
  E | Config.ConfigError,
  R
> =>
  own((supplied) => {
    const { folder, home, model, version = "0.0.0" } = options
    const platform = folder === undefined ? nodeServices : Layer.merge(nodeServices, pathsIn(folder))
    const models: Layer.Layer<Model, E | Config.ConfigError, R> =
      model === undefined ? LiveModels.layer : supplied(model)
    return LiveTools.runtimePlatform(version).pipe(
      Layer.provideMerge(Layer.merge(LiveTools.layer, network)),
      Layer.provideMerge(Live.layerWithModel(models)),
      Layer.provideMerge(platform),
      // Not merged: a runtime within the program has its own home.
      Layer.provide(home === undefined ? Layer.empty : configWith(home))
    )
  })
