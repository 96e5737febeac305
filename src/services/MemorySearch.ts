import { ByteSize, Effect, FileSystem, Option, Path, Schema } from "effect"
import { fromJson } from "../domain/JsonText.ts"
import { diskTrouble } from "../domain/DiskTrouble.ts"
import type { MemorySource } from "../domain/MemoryText.ts"
import { quoted } from "../domain/WorkspacePath.ts"
import { type FolderRules, type IgnoreChoice, rulesOf } from "./IgnoreRules.ts"
import type { Workspace } from "./Workspace.ts"

/** Where memory files may lie (spec 7.1). Nothing is opened but what says so: rules and the descriptions of extensions. */

/** A place where a memory file may be. */
export interface Candidate {
  readonly source: MemorySource
  /** Absolute. */
  readonly place: string
  /** Its imports have to lie in one of these, and so has it itself where it is a link. */
  readonly within: ReadonlyArray<string>
  /** Whether it is told when there is none. */
  readonly isExpected: boolean
}

/** Names of memory files, and how far they are looked for. */
export interface SearchOptions {
  readonly fileNames: ReadonlyArray<string>
  /** A folder that holds one of these is the root of a project. */
  readonly boundaries: ReadonlyArray<string>
  readonly maxDirs: number
  readonly ignore: IgnoreChoice
  /** The person's home folder, links followed: it is no project, even where it is kept in git. */
  readonly home: string
  /** Folders with memory that is global; looking upward ends there. Links followed. */
  readonly globals: ReadonlyArray<string>
}

/** Folders whose files are other people's, whatever rules say. */
const neverEntered = new Set(["node_modules", ".git"])

/** Folders that are read at the same time (spec 7.1). */
const batch = 15
/** Entries of a folder that are looked at between two pauses. */
const slice = 2_000

const isThere = (place: string) =>
  Effect.flatMap(FileSystem.FileSystem, (fs) => Effect.orElseSucceed(fs.exists(place), () => false))

/** The root of the project that a folder lies in: the nearest one with a boundary; undefined: there is none. */
export const projectRoot = Effect.fn("MemorySearch.projectRoot")(function* (
  folder: string,
  { boundaries, home }: SearchOptions
): Effect.fn.Return<string | undefined, never, FileSystem.FileSystem | Path.Path> {
  const path = yield* Path.Path
  for (let here = folder; here !== home; here = path.dirname(here)) {
    for (const name of boundaries) if (yield* isThere(path.join(here, name))) return here
    if (path.dirname(here) === here) return undefined
  }
  return undefined
})

/** Folders from the outermost in which memory counts down to this one (spec 7.1, step 2b). */
export const upward = Effect.fn("MemorySearch.upward")(function* (
  folder: string,
  options: SearchOptions
): Effect.fn.Return<ReadonlyArray<string>, never, FileSystem.FileSystem | Path.Path> {
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

/** The first names in order, of any number of them. Nothing is sorted at once that would take long. */
const firstNames = Effect.fnUntraced(function* (names: ReadonlyArray<string>, most: number) {
  let kept: ReadonlyArray<string> = []
  for (let from = 0; from < names.length; from += slice) {
    kept = [...kept, ...names.slice(from, from + slice)].toSorted().slice(0, most)
    if (from > 0) yield* Effect.yieldNow
  }
  return kept
})

interface Open {
  readonly place: string
  /** The root of the project that the folder above lies in. */
  readonly project: string | undefined
  readonly rules: (holds: ReadonlySet<string>) => Effect.Effect<FolderRules>
}

/** A memory file, and what its imports have to lie in: the root of its project, else the folder that was searched. */
export interface FoundFile {
  readonly place: string
  readonly root: string
}

/** What a folder holds: memory files, in the order of their names, and folders to go on with, at most so many. */
const inFolder = Effect.fnUntraced(function* (
  { place, project: above, rules: rulesHere }: Open,
  { boundaries, fileNames }: SearchOptions,
  most: number
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
    if (i % slice === slice - 1) yield* Effect.yieldNow
    if (type !== "Directory" || neverEntered.has(name)) continue
    yield* rules.pause
    if (!rules.ignores(name, true)) folders.push(name)
  }
  return {
    files: fileNames
      .filter((name) => holds.has(name) && !rules.ignores(name, false))
      .map((name): FoundFile => ({ place: path.join(place, name), root: project ?? place })),
    folders: (yield* firstNames(folders, most)).map((name): Open => ({
      place: path.join(place, name),
      project,
      rules: (held) => rules.enter(name, held)
    }))
  }
})

/** Memory files below a folder and in it, one level after the other, in at most so many folders as are allowed. */
export const downward = Effect.fn("MemorySearch.downward")(function* (
  folder: string,
  options: SearchOptions
): Effect.fn.Return<ReadonlyArray<FoundFile>, never, FileSystem.FileSystem | Path.Path | Workspace> {
  const { ignore, maxDirs } = options
  const top = yield* rulesOf(folder, ignore)
  const found: Array<FoundFile> = []
  const open: Array<Open> = [
    // Without a mark of a project the folder is one: what lies in it may import what else lies in it.
    { place: folder, project: (yield* projectRoot(folder, options)) ?? folder, rules: () => Effect.succeed(top) }
  ]
  let read = 0
  while (read < open.length && read < maxDirs) {
    const next = open.slice(read, Math.min(read + batch, maxDirs))
    read += next.length
    const left = maxDirs - open.length
    const inside = yield* Effect.forEach(next, (one) => inFolder(one, options, left), { concurrency: batch })
    for (const { files, folders } of inside) {
      found.push(...files)
      // What is beyond the limit is never read.
      open.push(...folders.slice(0, Math.max(0, maxDirs - open.length)))
    }
  }
  return found
})

/** Folders from a root down to a place in it, as far as memory is looked for on the way: not in what is left out. */
export const between = Effect.fn("MemorySearch.between")(function* (
  root: string,
  /** A folder in it. */
  folder: string,
  { ignore }: SearchOptions
): Effect.fn.Return<ReadonlyArray<string>, never, FileSystem.FileSystem | Path.Path | Workspace> {
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

/** What describes an extension. */
const manifest = "gemini-extension.json"
const mostManifest = ByteSize.mebibytes(1)

/** Memory files of the extensions in a folder, by the names of the extensions, and what is wrong with them. */
export const extensionFiles = Effect.fn("MemorySearch.extensionFiles")(function* (
  folder: string,
  { fileNames }: SearchOptions
): Effect.fn.Return<
  { readonly candidates: ReadonlyArray<Candidate>; readonly problems: ReadonlyArray<string> },
  never,
  FileSystem.FileSystem | Path.Path
> {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const names = yield* fs.readDirectory(folder).pipe(Effect.orElseSucceed((): ReadonlyArray<string> => []))
  const candidates: Array<Candidate> = []
  const problems: Array<string> = []
  for (const name of names.toSorted()) {
    const file = path.join(folder, name, manifest)
    const read = Effect.gen(function* () {
      const { size, type } = yield* fs.stat(file)
      if (type !== "File" || ByteSize.isGreaterThan(size, mostManifest)) return "expected a file of at most 1 MiB"
      return yield* decodeExtension(yield* fs.readFileString(file))
    })
    const described = yield* read.pipe(
      Effect.catchTag("SchemaError", ({ message }) => Effect.succeed(message.split("\n")[0] ?? "it is no description")),
      Effect.catchIf(
        ({ reason }) => reason._tag === "NotFound" || reason._tag === "BadResource",
        () => Effect.undefined
      ),
      Effect.catch((error) => Effect.succeed(diskTrouble(error)))
    )
    if (described === undefined) continue
    if (typeof described === "string") {
      problems.push(`${quoted(file)}: ${quoted(described)}`)
      continue
    }
    const { contextFileName } = described
    const wanted = contextFileName === undefined ? fileNames : [contextFileName].flat()
    const home = yield* Effect.orElseSucceed(fs.realPath(path.join(folder, name)), () => path.join(folder, name))
    for (const each of wanted) {
      candidates.push({
        source: "extension",
        place: path.resolve(home, each),
        within: [home],
        isExpected: contextFileName !== undefined
      })
    }
  }
  return { candidates, problems }
})

/** Who owns a folder or file, where the system tells. */
export const ownerOf = (place: string) =>
  Effect.flatMap(FileSystem.FileSystem, (fs) =>
    Effect.orElseSucceed(
      Effect.map(fs.stat(place), ({ uid }) => Option.getOrUndefined(uid)),
      () => undefined
    )
  )
