import { Effect, FileSystem, Path, type PlatformError, type Scope } from "effect"
import { defaults, type Settings } from "../../domain/settings/Settings.ts"
import { isWithin, quotedPath, shownFrom } from "../../domain/text/WorkspacePath.ts"
import * as MemoryFiles from "../../services/memory/MemoryFiles.ts"
import * as MemorySearch from "../../services/memory/MemorySearch.ts"
import { Workspace, WorkspaceError } from "../../services/workspace/Workspace.ts"
import * as NoFollow from "../platform/NoFollow.ts"

/** The context that all operations on memory files share, with the folders of memory. */

/** The folders of memory. All are absolute and need not exist. */
export interface FileMemoryOptions {
  /** The folder of this program; global facts are written there. */
  readonly home: string
  /** The user's Gemini CLI folder, `~/.gemini`. */
  readonly geminiHome: string
  /** Folders that contain extensions. */
  readonly extensions: ReadonlyArray<string>
  /** The working folder. */
  readonly root: string
  /** Folders added to the workspace. */
  readonly includeDirectories?: ReadonlyArray<string> | undefined
  /** Whether the memory of added folders is loaded. It applies in any case once a tool touches them. */
  readonly loadFromIncludeDirectories?: boolean | undefined
  /** Whether files of a folder may instruct an agent. Asked on every load and touch. */
  readonly isTrusted: (folder: string) => Effect.Effect<boolean>
  /** What to search for and how far; absent fields have their defaults. The names are those of project files. */
  readonly memory?: Partial<Settings["memory"]> | undefined
  /**
   * Names of the user's own memory files and those of extensions. Default: those of the settings. No folder may choose
   * them, or it could have any file of the user sent or changed.
   */
  readonly ownFileNames?: ReadonlyArray<string> | undefined
}

/** The shared context of operations on memory files. */
export interface MemoryContext {
  readonly options: FileMemoryOptions
  readonly choices: Settings["memory"]
  readonly ownFileNames: ReadonlyArray<string>
  /** The folder of locks. It is in the home folder, so that no lock appears among a project's files or in a clone. */
  readonly locks: string
  readonly fs: FileSystem.FileSystem
  readonly path: Path.Path
  /** Limits a file system to regular files that are where they were checked to be. */
  readonly files: (fs: FileSystem.FileSystem) => FileSystem.FileSystem
  /** A path to exactly this folder, valid until the scope closes. */
  readonly held: (folder: string) => Effect.Effect<string, PlatformError.PlatformError, Scope.Scope>
  /** The locations at the last load; undefined before the first. */
  places: MemoryPlaces | undefined
}

/** The current locations, links resolved. */
export interface MemoryPlaces {
  readonly root: string
  readonly added: ReadonlyArray<string>
  /** Folders of global memory. */
  readonly globals: ReadonlyArray<string>
  /** The user's home folder. */
  readonly home: string
}

/** Makes the shared context of memory operations. */
export const make = Effect.fnUntraced(function* (options: FileMemoryOptions) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const { files, folder: held } = yield* NoFollow.make
  return {
    options,
    choices: { ...defaults.memory, ...options.memory },
    ownFileNames: options.ownFileNames ?? defaults.memory.fileNames,
    locks: path.join(options.home, "locks"),
    fs,
    path,
    files,
    held,
    places: undefined
  }
})

/** A path with links resolved; as given when it does not exist. */
export const realPath = ({ fs, path }: MemoryContext, place: string): Effect.Effect<string> =>
  Effect.orElseSucceed(fs.realPath(place), () => path.resolve(place))

/** The locations at this moment: folders may have been created meanwhile. */
export const currentPlaces = Effect.fnUntraced(function* (memory: MemoryContext) {
  const { options, path } = memory
  const root = yield* realPath(memory, options.root)
  const added = yield* Effect.forEach(options.includeDirectories ?? [], (folder) => realPath(memory, folder))
  const geminiHome = yield* realPath(memory, options.geminiHome)
  const globals = [...new Set([geminiHome, yield* realPath(memory, options.home)])]
  return { root, added, globals, home: path.dirname(geminiHome) }
})

/** The options of a search for project memory. */
export const searchOptions = (
  { choices }: MemoryContext,
  { globals, home }: MemoryPlaces
): MemorySearch.SearchOptions => ({
  fileNames: choices.fileNames,
  boundaries: choices.boundaries,
  maxDirs: choices.maxDirs,
  ignore: { git: choices.respectGitIgnore, own: choices.respectGeminiIgnore, vendored: true },
  home,
  globals
})

/** A path as the user would write it: from the workspace; else, like the workspace itself, from the home folder. */
export const shownPath =
  ({ path }: MemoryContext, { home, root }: MemoryPlaces) =>
  (place: string): string => {
    const fromRoot = shownFrom(root, place, path.sep)
    if (fromRoot !== place && root !== place) return quotedPath(fromRoot)
    const fromHome = shownFrom(home, place, path.sep)
    return quotedPath(fromHome === place || fromHome === "." ? place : `~/${fromHome}`)
  }

/** Runs a search in this workspace. */
export const inWorkspace = <A>(
  { files, fs, held, path }: MemoryContext,
  { added, root }: MemoryPlaces,
  work: Effect.Effect<A, never, FileSystem.FileSystem | Path.Path | Workspace>
) =>
  work.pipe(
    Effect.provideService(Workspace, {
      root,
      folders: [root, ...added],
      shown: (place) => place,
      files,
      held,
      path: () =>
        Effect.fail(
          new WorkspaceError({ message: "memory is not found by paths of tools", reason: "OutsideWorkspace" })
        )
    }),
    Effect.provideService(FileSystem.FileSystem, fs),
    Effect.provideService(Path.Path, path)
  )

/** A reader of memory files as they are now. */
export const readerOf = (memory: MemoryContext, places: MemoryPlaces): Effect.Effect<MemoryFiles.MemoryFiles> =>
  inWorkspace(
    memory,
    places,
    MemoryFiles.make({
      format: memory.choices.importFormat,
      depth: memory.choices.importDepth,
      shown: shownPath(memory, places)
    })
  )

/** Asks whether folders are trusted, once for each. */
export type TrustCheck = (folder: string) => Effect.Effect<boolean>

const cachedByFolder = <A>(ask: (folder: string) => Effect.Effect<A>): ((folder: string) => Effect.Effect<A>) => {
  const answers = new Map<string, A>()
  return Effect.fnUntraced(function* (folder: string) {
    const answer = answers.get(folder) ?? (yield* ask(folder))
    answers.set(folder, answer)
    return answer
  })
}

/** Makes a trust check that asks once for each folder. */
export const trustCheck = ({ options }: MemoryContext): TrustCheck => cachedByFolder(options.isTrusted)

/** Finds the project root of folders, else the folder itself; once for each. */
export const projectRoots = (
  memory: MemoryContext,
  places: MemoryPlaces
): ((folder: string) => Effect.Effect<string>) =>
  cachedByFolder((folder) =>
    Effect.map(
      inWorkspace(memory, places, MemorySearch.projectRoot(folder, searchOptions(memory, places))),
      (root) => root ?? folder
    )
  )

/** The innermost trusted folder of the workspace that contains a path. */
export const trustedRoot = Effect.fnUntraced(function* (
  { path }: MemoryContext,
  { added, home, root }: MemoryPlaces,
  place: string,
  isTrusted: TrustCheck
) {
  const around = [root, ...added].filter((folder) => folder !== home && isWithin(folder, place, path.sep))
  for (const folder of around.toSorted((a, b) => b.length - a.length)) {
    if (yield* isTrusted(folder)) return folder
  }
  return undefined
})
