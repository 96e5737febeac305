/** What all operations on memory files share: their options, their folders, and what is asked about folders. */

import { Effect, FileSystem, Path, type PlatformError, type Scope } from "effect"
import { defaults, type Settings } from "../../domain/settings/Settings.ts"
import { isWithin, quotedPath, shownFrom } from "../../domain/text/WorkspacePath.ts"
import * as MemoryFiles from "../../services/memory/MemoryFiles.ts"
import * as MemorySearch from "../../services/memory/MemorySearch.ts"
import { Workspace, WorkspaceError } from "../../services/workspace/Workspace.ts"
import * as NoFollow from "../platform/NoFollow.ts"

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

/** What all operations on memory files share. */
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
}

/** The folders of memory, links resolved. */
export interface MemoryPlaces {
  readonly root: string
  readonly added: ReadonlyArray<string>
  /** Folders of global memory. */
  readonly globals: ReadonlyArray<string>
  /** The user's home folder. */
  readonly home: string
}

/** One operation on memory files: where they are, and what it asked about folders so far. */
export interface LocatedMemory extends MemoryContext, MemoryPlaces {
  readonly search: MemorySearch.SearchOptions
  /** A path as the user would write it: from the workspace; else, like the workspace itself, from the home folder. */
  readonly shown: (place: string) => string
  /** Whether a folder is trusted. Asks once for each. */
  readonly isTrusted: (folder: string) => Effect.Effect<boolean>
  /** The project root of a folder, else the folder itself. Looked up once for each. */
  readonly projectRoot: (folder: string) => Effect.Effect<string, never, FileSystem.FileSystem | Path.Path>
}

/** Makes the shared context of memory operations. */
export const make = Effect.fnUntraced(function* (
  options: FileMemoryOptions
): Effect.fn.Return<MemoryContext, never, FileSystem.FileSystem | Path.Path> {
  const path = yield* Path.Path
  const { files, folder: held } = yield* NoFollow.make
  return {
    options,
    choices: { ...defaults.memory, ...options.memory },
    ownFileNames: options.ownFileNames ?? defaults.memory.fileNames,
    locks: path.join(options.home, "locks"),
    fs: yield* FileSystem.FileSystem,
    path,
    files,
    held
  }
})

/** A path with links resolved; as given when it does not exist. */
export const realPath = ({ fs, path }: MemoryContext, place: string): Effect.Effect<string> =>
  Effect.orElseSucceed(fs.realPath(place), () => path.resolve(place))

/** The folders at this moment: some may have been created meanwhile. */
export const currentPlaces = Effect.fnUntraced(function* (context: MemoryContext): Effect.fn.Return<MemoryPlaces> {
  const { options, path } = context
  const root = yield* realPath(context, options.root)
  const added = yield* Effect.forEach(options.includeDirectories ?? [], (folder) => realPath(context, folder))
  const geminiHome = yield* realPath(context, options.geminiHome)
  const globals = [...new Set([geminiHome, yield* realPath(context, options.home)])]
  return { root, added, globals, home: path.dirname(geminiHome) }
})

const oncePerFolder = <A, R>(ask: (folder: string) => Effect.Effect<A, never, R>) => {
  const answers = new Map<string, A>()
  return Effect.fnUntraced(function* (folder: string) {
    const answer = answers.get(folder) ?? (yield* ask(folder))
    answers.set(folder, answer)
    return answer
  })
}

/** Begins an operation on the memory files of these folders. */
export const locate = (context: MemoryContext, places: MemoryPlaces): LocatedMemory => {
  const { choices, options, path } = context
  const { globals, home, root } = places
  const search: MemorySearch.SearchOptions = {
    fileNames: choices.fileNames,
    boundaries: choices.boundaries,
    maxDirs: choices.maxDirs,
    ignore: { git: choices.respectGitIgnore, own: choices.respectGeminiIgnore, vendored: true },
    home,
    globals
  }
  return {
    ...context,
    ...places,
    search,
    shown: (place) => {
      const fromRoot = shownFrom(root, place, path.sep)
      if (fromRoot !== place && root !== place) return quotedPath(fromRoot)
      const fromHome = shownFrom(home, place, path.sep)
      return quotedPath(fromHome === place || fromHome === "." ? place : `~/${fromHome}`)
    },
    isTrusted: oncePerFolder(options.isTrusted),
    projectRoot: oncePerFolder((folder) =>
      Effect.map(MemorySearch.projectRoot(folder, search), (project) => project ?? folder)
    )
  }
}

/** Runs a part of an operation with the workspace in which it looks for files. */
export const inWorkspace = <A>(
  work: Effect.Effect<A, never, FileSystem.FileSystem | Path.Path | Workspace>,
  { added, files, fs, held, path, root }: LocatedMemory
): Effect.Effect<A> =>
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
export const readerOf = ({ choices, shown }: LocatedMemory) =>
  MemoryFiles.make({ format: choices.importFormat, depth: choices.importDepth, shown })

/** The innermost trusted folder of the workspace that contains a path. */
export const trustedRoot = Effect.fnUntraced(function* (
  { added, home, isTrusted, path, root }: LocatedMemory,
  place: string
) {
  const around = [root, ...added].filter((folder) => folder !== home && isWithin(folder, place, path.sep))
  for (const folder of around.toSorted((a, b) => b.length - a.length)) {
    if (yield* isTrusted(folder)) return folder
  }
  return undefined
})
