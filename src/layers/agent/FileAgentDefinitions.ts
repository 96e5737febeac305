import { Effect, FileSystem, Layer, Path, type PlatformError, Result } from "effect"
import { homedir } from "node:os"
import { isIgnored, parseDefinitions } from "../../domain/agent/AgentDefinition.ts"
import type { UnusableFile } from "../../domain/agent/UnusableFile.ts"
import { diskErrorText, isNotFound } from "../../domain/text/DiskErrors.ts"
import {
  AgentDefinitions,
  type AgentSource,
  byName,
  type KnownAgent,
  type KnownAgents
} from "../../services/agent/AgentDefinitions.ts"
import * as NoFollow from "../platform/NoFollow.ts"

/** Reads agent definitions from folders of the user and of the workspace. */

/** A folder that may hold definitions, one `.md` file each. */
interface AgentFolder {
  readonly folder: string
  readonly source: Exclude<AgentSource, "built-in">
}

/**
 * The folders of definitions, highest precedence last (built-ins, project, user): `.gemini/agents` and `.palimpsest/agents` of the workspace, the
 * same in the user's home folder, and `agents` in the home folder of this program.
 */
export const folders = (home: string, workspace = ".", user = homedir()) =>
  Effect.map(Path.Path, (path) => {
    const both = (base: string) => [
      path.resolve(base, ".gemini", "agents"),
      path.resolve(base, ".palimpsest", "agents")
    ]
    const own = [...both(user), path.resolve(home, "agents")]
    return [
      // If the workspace is the home folder, both are the same folders, and they belong to the user.
      ...both(workspace)
        .filter((folder) => !own.includes(folder))
        .map((folder): AgentFolder => ({ folder, source: "project" })),
      ...own.map((folder): AgentFolder => ({ folder, source: "user" }))
    ]
  })

/** The maximum size of a file. Larger ones, such as a device or a log in its place, are not read. */
const maxFileBytes = 1024 * 1024

/** Agents that one folder may offer: every model request carries a tool for each. */
const maxAgents = 100

interface Read {
  readonly agents: ReadonlyArray<KnownAgent>
  readonly problems: ReadonlyArray<UnusableFile>
}

const nothing: Read = { agents: [], problems: [] }
const problem = (file: string, reason: UnusableFile["reason"]): Read => ({ agents: [], problems: [{ file, reason }] })

const readFolder = Effect.fnUntraced(function* (
  { folder, source }: AgentFolder,
  isTrusted: (folder: string) => Effect.Effect<boolean>
) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const { files: withoutLinks } = yield* NoFollow.make
  const safe = withoutLinks(fs)
  const elsewhere = (file: string, real: string) => problem(file, { _tag: "Untrusted", folder: real })
  const unreadable = (file: string, error: PlatformError.PlatformError) =>
    problem(file, { _tag: "Unreadable", detail: diskErrorText(error) })
  const place = yield* Effect.orElseSucceed(fs.realPath(folder), () => undefined)
  if (source === "project" && place !== undefined && !(yield* isTrusted(place))) return [elsewhere(folder, place)]
  const names = yield* fs.readDirectory(folder).pipe(
    Effect.catchIf(isNotFound, () => Effect.succeed([])),
    Effect.result
  )
  if (Result.isFailure(names)) return [unreadable(folder, names.failure)]
  const files = names.success.filter((name) => name.endsWith(".md") && !isIgnored(name)).sort()
  const read = yield* Effect.forEach(
    files.slice(0, maxAgents),
    (name) => {
      const file = path.join(folder, name)
      return Effect.gen(function* () {
        const real = yield* fs.realPath(file)
        const lies = path.dirname(real)
        if (source === "user") return yield* readFile(file, source)
        if (lies !== place && !(yield* isTrusted(lies))) return elsewhere(file, lies)
        // Read the same file that was checked.
        return yield* Effect.provideService(readFile(file, source, real), FileSystem.FileSystem, safe)
      }).pipe(Effect.catch((error) => Effect.succeed(unreadable(file, error))))
    },
    { concurrency: 8 }
  )
  const agents = read.flatMap((each) => each.agents)
  const kept: Read = { agents: agents.slice(0, maxAgents), problems: read.flatMap(({ problems }) => problems) }
  return files.length <= maxAgents && agents.length <= maxAgents
    ? [kept]
    : [kept, problem(folder, { _tag: "TooManyAgents", maxAgents })]
})

const readFile = Effect.fnUntraced(function* (
  file: string,
  source: AgentSource,
  /** The real path behind links. */
  place = file
) {
  const fs = yield* FileSystem.FileSystem
  const { size, type } = yield* fs.stat(place)
  // Reading a pipe would never end.
  if (type === "Directory") return nothing
  if (type !== "File") return problem(file, { _tag: "NoFile" })
  if (size > maxFileBytes) return problem(file, { _tag: "TooLarge" })
  const read = parseDefinitions(yield* fs.readFileString(place))
  if (Result.isFailure(read)) return problem(file, { _tag: "InvalidAgent", problem: read.failure })
  const definitions = read.success.filter(({ name }) => !isIgnored(name))
  return { agents: definitions.map((definition) => ({ definition, source, file })), problems: [] }
})

/**
 * Provides the built-in agents and those of these folders, in this order; of two with the same name the later wins. Files are read once, on first
 * use; an invalid file is reported and does not affect the others. A file of the workspace counts only if the folder of its real path is trusted,
 * because a link may lead elsewhere.
 */
export const layer = (
  builtIn: ReadonlyArray<KnownAgent>,
  places: ReadonlyArray<AgentFolder>,
  isTrusted: (folder: string) => Effect.Effect<boolean>
) =>
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
