/** Finds memory files. Opens nothing but ignore rules and extension manifests. */

import { ByteSize, Effect, FileSystem, Option, Path, Schema } from "effect"
import type { MemoryProblem } from "../../domain/memory/MemoryProblem.ts"
import type { MemorySource } from "../../domain/memory/MemoryText.ts"
import { diskErrorText, isMissingPath } from "../../domain/text/DiskErrors.ts"
import { fromJson } from "../../domain/text/JsonText.ts"
import { quotedPath } from "../../domain/text/WorkspacePath.ts"
import { type FolderRules, type IgnoreChoice, rulesOf } from "../workspace/IgnoreRules.ts"

/** A path where a memory file may be. */
export interface Candidate {
  readonly source: MemorySource
  /** Absolute path. */
  readonly place: string
  /** Folders that must contain its imports, and the file itself when it is a link. */
  readonly allowedFolders: ReadonlyArray<string>
  /** Whether a missing file is reported. */
  readonly isExpected: boolean
}

/** Names of memory files, and how far to search. */
export interface SearchOptions {
  readonly fileNames: ReadonlyArray<string>
  /** A folder that contains one of these is a project root. */
  readonly boundaries: ReadonlyArray<string>
  readonly maxDirs: number
  readonly ignore: IgnoreChoice
  /** The user's home folder, links resolved. It is not a project, even when it is a Git repository. */
  readonly home: string
  /** Folders of global memory; the upward search ends there. Links resolved. */
  readonly globals: ReadonlyArray<string>
}

/** Folders never searched, whatever the ignore rules say. */
const neverEntered = new Set(["node_modules", ".git"])

/** Folders read concurrently. */
const readConcurrency = 15
/** Entries of a folder examined between two yields. */
const checksPerYield = 2_000

const exists = (place: string) =>
  Effect.flatMap(FileSystem.FileSystem, (fs) => Effect.orElseSucceed(fs.exists(place), () => false))

/** The project root of a folder: the nearest folder above with a boundary marker; undefined when there is none. */
export const projectRoot = Effect.fn("MemorySearch.projectRoot")(function* (
  folder: string,
  { boundaries, home }: SearchOptions
) {
  const path = yield* Path.Path
  for (let here = folder; here !== home; here = path.dirname(here)) {
    for (const name of boundaries) if (yield* exists(path.join(here, name))) return here
    if (path.dirname(here) === here) return undefined
  }
  return undefined
})

/** The folders above a folder whose memory applies to it, outermost first, including itself. */
export const upward = Effect.fn("MemorySearch.upward")(function* (folder: string, options: SearchOptions) {
  const path = yield* Path.Path
  if (options.boundaries.length === 0) return [folder]
  const last = path.dirname((yield* projectRoot(folder, options)) ?? options.home)
  const folders: Array<string> = []
  for (let here = folder; !options.globals.includes(here); here = path.dirname(here)) {
    folders.unshift(here)
    if (here === last || path.dirname(here) === here) break
  }
  return folders
})

/** The first names in order, of any number. Nothing is sorted at once that would take long. */
const firstNames = Effect.fnUntraced(function* (names: ReadonlyArray<string>, maxCount: number) {
  let kept: ReadonlyArray<string> = []
  for (let from = 0; from < names.length; from += checksPerYield) {
    kept = [...kept, ...names.slice(from, from + checksPerYield)].toSorted().slice(0, maxCount)
    if (from > 0) yield* Effect.yieldNow
  }
  return kept
})

interface Open {
  readonly place: string
  /** The project root of the folder above. */
  readonly project: string | undefined
  readonly rules: (holds: ReadonlySet<string>) => Effect.Effect<FolderRules>
}

/** A memory file, and the folder that must contain its imports: its project root, else the folder searched. */
interface MemoryFile {
  readonly place: string
  readonly root: string
}

/** Reads a folder: its memory files in order of their names, and a limited number of subfolders to continue with. */
const inFolder = Effect.fnUntraced(function* (
  { place, project: above, rules: rulesHere }: Open,
  { boundaries, fileNames }: SearchOptions,
  maxFolders: number
) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const entries = yield* fs
    .readDirectoryEntries(place)
    .pipe(Effect.orElseSucceed((): ReadonlyArray<FileSystem.DirectoryEntry> => []))
  const holds = new Set(entries.map(({ name }) => name))
  const project = boundaries.some((name) => holds.has(name)) ? place : above
  const rules = yield* rulesHere(holds)
  const folders: Array<string> = []
  for (const [i, { name, type }] of entries.entries()) {
    if (i % checksPerYield === checksPerYield - 1) yield* Effect.yieldNow
    if (type !== "Directory" || neverEntered.has(name)) continue
    yield* rules.pause
    if (!rules.ignores(name, true)) folders.push(name)
  }
  return {
    files: fileNames
      .filter((name) => holds.has(name) && !rules.ignores(name, false))
      .map((name): MemoryFile => ({ place: path.join(place, name), root: project ?? place })),
    folders: (yield* firstNames(folders, maxFolders)).map((name): Open => ({
      place: path.join(place, name),
      project,
      rules: (held) => rules.enter(name, held)
    }))
  }
})

/** Memory files in a folder and below it, breadth first, up to the limit of folders. */
export const downward = Effect.fn("MemorySearch.downward")(function* (folder: string, options: SearchOptions) {
  const { ignore, maxDirs } = options
  const top = yield* rulesOf(folder, ignore)
  const memoryFiles: Array<MemoryFile> = []
  const open: Array<Open> = [
    // Without a boundary marker the folder is the project: its files may import one another.
    { place: folder, project: (yield* projectRoot(folder, options)) ?? folder, rules: () => Effect.succeed(top) }
  ]
  let read = 0
  while (read < open.length && read < maxDirs) {
    const next = open.slice(read, Math.min(read + readConcurrency, maxDirs))
    read += next.length
    const left = maxDirs - open.length
    const inside = yield* Effect.forEach(next, (one) => inFolder(one, options, left), { concurrency: readConcurrency })
    for (const { files, folders } of inside) {
      for (const each of files) memoryFiles.push(each)
      // Folders beyond the limit are never read.
      for (const each of folders.slice(0, Math.max(0, maxDirs - open.length))) open.push(each)
    }
  }
  return memoryFiles
})

/** The folders from a root down to a path in it, up to the first ignored one. */
export const between = Effect.fn("MemorySearch.between")(function* (
  root: string,
  /** A folder below the root. */
  folder: string,
  { ignore }: SearchOptions
) {
  const path = yield* Path.Path
  let rules = yield* rulesOf(root, ignore)
  const folders = [root]
  let here = root
  for (const name of path.relative(root, folder).split(path.sep)) {
    if (name === "") break
    if (neverEntered.has(name) || rules.ignores(name, true)) break
    here = path.join(here, name)
    folders.push(here)
    rules = yield* rules.enter(name)
  }
  return folders
})

const Extension = fromJson(
  Schema.Struct({
    contextFileName: Schema.optional(Schema.Union([Schema.NonEmptyString, Schema.Array(Schema.NonEmptyString)]))
  })
)
const decodeExtension = Schema.decodeUnknownEffect(Extension)

const failed = (why: string) => ({ why })

/** The manifest of an extension. */
const manifest = "gemini-extension.json"
const maxManifestSize = ByteSize.mebibytes(1)

/** Memory files of the extensions in a folder, by extension name, and their problems. */
export const extensionFiles = Effect.fn("MemorySearch.extensionFiles")(function* (
  folder: string,
  { fileNames }: SearchOptions
) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const names = yield* fs.readDirectory(folder).pipe(Effect.orElseSucceed((): ReadonlyArray<string> => []))
  const candidates: Array<Candidate> = []
  const problems: Array<MemoryProblem> = []
  for (const name of names.toSorted()) {
    const file = path.join(folder, name, manifest)
    const read = Effect.gen(function* () {
      const { size, type } = yield* fs.stat(file)
      if (type !== "File" || ByteSize.isGreaterThan(size, maxManifestSize))
        return failed("expected a file of at most 1 MiB")
      return yield* decodeExtension(yield* fs.readFileString(file))
    })
    const described = yield* read.pipe(
      Effect.catchTag("SchemaError", ({ message }) =>
        Effect.succeed(failed(quotedPath(message.split("\n", 1).join())))
      ),
      Effect.catchIf(isMissingPath, () => Effect.undefined),
      Effect.catch((error) => Effect.succeed(failed(diskErrorText(error))))
    )
    if (described === undefined) continue
    if ("why" in described) {
      problems.push({ text: `${quotedPath(file)}: ${described.why}` })
      continue
    }
    const { contextFileName } = described
    const contextNames = contextFileName === undefined ? fileNames : [contextFileName].flat()
    const home = yield* Effect.orElseSucceed(fs.realPath(path.join(folder, name)), () => path.join(folder, name))
    for (const each of contextNames) {
      candidates.push({
        source: "extension",
        place: path.resolve(home, each),
        allowedFolders: [home],
        isExpected: contextFileName !== undefined
      })
    }
  }
  return { candidates, problems }
})

/** The owner of a file or folder, where the system has owners. */
export const ownerOf = (place: string) =>
  Effect.flatMap(FileSystem.FileSystem, (fs) =>
    Effect.orElseSucceed(
      Effect.map(fs.stat(place), ({ uid }) => Option.getOrUndefined(uid)),
      () => undefined
    )
  )
