/** Reads agent definitions from folders of the user and of the workspace. */

import { Effect, type FileSystem, Layer, Path } from "effect"
import { isIgnored, parseDefinitions } from "../../domain/agent/AgentDefinition.ts"
import {
  AgentDefinitions,
  type AgentSource,
  byName,
  type KnownAgent,
  type KnownAgents
} from "../../services/agent/AgentDefinitions.ts"
import { type DefinitionFolder, type DefinitionReader, reader, unusable } from "./DefinitionFolders.ts"

/** Agents that one folder may offer: every model request carries a tool for each. */
const maxAgents = 100

const nothing: KnownAgents = { agents: [], problems: [] }

const merged = (all: ReadonlyArray<KnownAgents>): KnownAgents => ({
  agents: all.flatMap(({ agents }) => agents),
  problems: all.flatMap(({ problems }) => problems)
})

const readFolder = Effect.fnUntraced(
  function* ({ namesIn, textOf }: DefinitionReader, { folder, isOwn }: DefinitionFolder) {
    const path = yield* Path.Path
    const source: AgentSource = isOwn ? "user" : "project"
    const files = (yield* namesIn({ folder, isOwn })).filter((name) => name.endsWith(".md") && !isIgnored(name))
    const readFile = Effect.fnUntraced(
      function* (file: string) {
        const text = yield* textOf(file, isOwn)
        if (text === undefined) return nothing
        const definitions = yield* Effect.mapError(Effect.fromResult(parseDefinitions(text)), (reason) => ({
          file,
          reason
        }))
        const offered = definitions.filter(({ name }) => !isIgnored(name))
        return { agents: offered.map((definition) => ({ definition, source, file })), problems: [] }
      },
      (work, file) => Effect.catch(work, (error) => Effect.succeed({ agents: [], problems: [unusable(file)(error)] }))
    )
    const { agents, problems } = merged(
      yield* Effect.forEach(
        files.slice(0, maxAgents).map((name) => path.join(folder, name)),
        readFile,
        { concurrency: 8 }
      )
    )
    const isCut = files.length > maxAgents || agents.length > maxAgents
    const cut = { file: folder, reason: `expected at most ${maxAgents} agents; the rest is ignored` }
    return { agents: agents.slice(0, maxAgents), problems: isCut ? [...problems, cut] : problems }
  },
  Effect.catch((problem) => Effect.succeed({ agents: [], problems: [problem] }))
)

/**
 * Provides the built-in agents and those of these folders, in this order; of two with the same name the later wins. Files are read once, on first
 * use; an invalid file is reported and does not affect the others. A file of the workspace counts only if the folder of its real path is trusted,
 * because a link may lead elsewhere.
 */
export const layer = (
  builtIn: ReadonlyArray<KnownAgent>,
  places: ReadonlyArray<DefinitionFolder>,
  isTrusted: (folder: string) => Effect.Effect<boolean>
) =>
  Layer.effect(
    AgentDefinitions,
    Effect.gen(function* () {
      const context = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
      const all = yield* Effect.flatMap(reader(isTrusted), (read) =>
        Effect.forEach(places, (place) => readFolder(read, place))
      ).pipe(
        Effect.map((read): KnownAgents => {
          const { agents, problems } = merged(read)
          return { agents: byName([...builtIn, ...agents]), problems }
        }),
        Effect.provideContext(context),
        Effect.withSpan("AgentDefinitions.all"),
        Effect.cached
      )
      return { all }
    })
  )
