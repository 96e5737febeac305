import { Effect, FileSystem, Layer, Path, type PlatformError, Result } from "effect"
import { homedir } from "node:os"
import { isIgnored, parseDefinitions } from "../domain/AgentDefinition.ts"
import { diskTrouble, isNotFound } from "../domain/DiskTrouble.ts"
import {
  AgentDefinitions,
  type AgentProblem,
  type AgentSource,
  byName,
  type KnownAgent,
  type KnownAgents
} from "../services/AgentDefinitions.ts"
import * as NoFollow from "./NoFollow.ts"

/** A folder that may hold definitions, one `.md` file each. */
export interface AgentFolder {
  readonly folder: string
  readonly source: Exclude<AgentSource, "built-in">
}

/**
 * Where definitions lie, the one that counts most last (spec 9: built-ins, project, user): `.gemini/agents` and
 * `.palimpsest/agents` of the workspace, the same in the person's home, and `agents` in the home of this program.
 */
export const folders = (
  home: string,
  workspace = ".",
  user = homedir()
): Effect.Effect<ReadonlyArray<AgentFolder>, never, Path.Path> =>
  Effect.map(Path.Path, (path) => {
    const both = (base: string) => [
      path.resolve(base, ".gemini", "agents"),
      path.resolve(base, ".palimpsest", "agents")
    ]
    const own = [...both(user), path.resolve(home, "agents")]
    return [
      // In the home folder itself both are the same: they are the person's then.
      ...both(workspace)
        .filter((folder) => !own.includes(folder))
        .map((folder): AgentFolder => ({ folder, source: "project" })),
      ...own.map((folder): AgentFolder => ({ folder, source: "user" }))
    ]
  })

/** No definition is that long; a device or a log in its place is not read to its end. */
const mostBytes = 1024 * 1024

/** Agents that one folder may offer: every request of a model carries a tool for each. */
const mostAgents = 100

interface Read {
  readonly agents: ReadonlyArray<KnownAgent>
  readonly problems: ReadonlyArray<AgentProblem>
}

const nothing: Read = { agents: [], problems: [] }
const problem = (file: string, why: string): Read => ({ agents: [], problems: [{ file, message: `${file}: ${why}` }] })

const readFolder = Effect.fnUntraced(function* (
  { folder, source }: AgentFolder,
  isTrusted: (folder: string) => Effect.Effect<boolean>
): Effect.fn.Return<ReadonlyArray<Read>, never, FileSystem.FileSystem | Path.Path> {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const { files: withoutLinks } = yield* NoFollow.make
  const safe = withoutLinks(fs)
  const elsewhere = (file: string, real: string) =>
    problem(file, `it lies in ${real}, which is not trusted; it was left out`)
  const place = yield* Effect.orElseSucceed(fs.realPath(folder), () => undefined)
  if (source === "project" && place !== undefined && !(yield* isTrusted(place))) return [elsewhere(folder, place)]
  const names = yield* fs.readDirectory(folder).pipe(
    Effect.catchIf(isNotFound, () => Effect.succeed([])),
    Effect.catch((error) => Effect.succeed(diskTrouble(error)))
  )
  if (typeof names === "string") return [problem(folder, `cannot be read: ${names}`)]
  const files = names.filter((name) => name.endsWith(".md") && !isIgnored(name)).sort()
  const read = yield* Effect.forEach(
    files.slice(0, mostAgents),
    (name) => {
      const file = path.join(folder, name)
      return Effect.gen(function* () {
        const real = yield* fs.realPath(file)
        const lies = path.dirname(real)
        if (source === "user") return yield* readFile(file, source)
        if (lies !== place && !(yield* isTrusted(lies))) return elsewhere(file, lies)
        // What was asked about is what is read.
        return yield* Effect.provideService(readFile(file, source, real), FileSystem.FileSystem, safe)
      }).pipe(Effect.catch((error) => Effect.succeed(problem(file, `cannot be read: ${diskTrouble(error)}`))))
    },
    { concurrency: 8 }
  )
  const agents = read.flatMap((each) => each.agents)
  const kept: Read = { agents: agents.slice(0, mostAgents), problems: read.flatMap(({ problems }) => problems) }
  return files.length <= mostAgents && agents.length <= mostAgents
    ? [kept]
    : [kept, problem(folder, `expected at most ${mostAgents} agents; the rest is left out`)]
})

const readFile = Effect.fnUntraced(function* (
  file: string,
  source: AgentSource,
  /** Where it really lies. */
  place = file
): Effect.fn.Return<Read, PlatformError.PlatformError, FileSystem.FileSystem> {
  const fs = yield* FileSystem.FileSystem
  const { size, type } = yield* fs.stat(place)
  // Reading a pipe would never end.
  if (type === "Directory") return nothing
  if (type !== "File") return problem(file, "expected a file with the definition of an agent")
  if (size > mostBytes) return problem(file, "expected a definition of at most 1 MiB")
  const read = parseDefinitions(yield* fs.readFileString(place))
  if (Result.isFailure(read)) return problem(file, read.failure)
  const definitions = read.success.filter(({ name }) => !isIgnored(name))
  return { agents: definitions.map((definition) => ({ definition, source, file })), problems: [] }
})

/**
 * The built-in agents and those of these folders, in this order: of two with the same name the later counts. Files are read
 * once, when somebody asks; a broken one is a problem of its own and stops no other. One of the workspace counts only if the
 * folder that it really lies in is trusted: a link may lead to another.
 */
export const layer = (
  builtIn: ReadonlyArray<KnownAgent>,
  places: ReadonlyArray<AgentFolder>,
  isTrusted: (folder: string) => Effect.Effect<boolean>
): Layer.Layer<AgentDefinitions, never, FileSystem.FileSystem | Path.Path> =>
  Layer.effect(
    AgentDefinitions,
    Effect.gen(function* () {
      const context = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
      const all = yield* Effect.forEach(places, (place) => readFolder(place, isTrusted)).pipe(
        Effect.map((read): KnownAgents => {
          const files = read.flat()
          return {
            agents: byName([...builtIn, ...files.flatMap(({ agents }) => agents)]),
            problems: files.flatMap(({ problems }) => problems)
          }
        }),
        Effect.provideContext(context),
        Effect.withSpan("AgentDefinitions.all"),
        Effect.cached
      )
      return { all }
    })
  )
