/** Applies ignore rules to folders, and walks folders with them. */

import { Effect, FileSystem, Option, Path, Stream } from "effect"
import { run, runSync } from "../../domain/text/SlicedWork.ts"
import { type IgnoreRule, ignoreRules, maxRules, verdict } from "../../domain/workspace/IgnoreFile.ts"
import { Workspace } from "./Workspace.ts"

/** Which rules apply. */
export interface IgnoreChoice {
  /** `.gitignore` at all levels and `.git/info/exclude`, in a Git repository. */
  readonly git: boolean
  /** `.geminiignore` and `.palimpsestignore` at the workspace root. */
  readonly own: boolean
  /** `vendoredFolders`, which are rarely wanted. Other rules may include them again. */
  readonly vendored: boolean
}

/** Folders of third-party code and version control. */
export const vendoredFolders = ["node_modules", "bower_components", ".svn", ".hg"]
const vendoredRules = runSync(ignoreRules(vendoredFolders.map((name) => `${name}/`).join("\n")))

/** The rules of one file, and the path from its folder to the current one: `src/lib/` or empty. */
interface Source {
  readonly rules: ReadonlyArray<IgnoreRule>
  readonly below: string
}

/** The rules in effect in one folder. */
export interface FolderRules {
  /** Whether an entry of this folder is ignored. The contents of an ignored folder are not examined. */
  readonly ignores: (name: string, isFolder: boolean) => boolean
  /** Yields to other fibers after much work. Run it between entries. */
  readonly pause: Effect.Effect<void>
  /** The rules of a subfolder. Pass the names it contains, if known, to avoid looking for missing rule files. */
  readonly enter: (name: string, holds?: ReadonlySet<string>) => Effect.Effect<FolderRules>
}

/** The rule files at the root; later ones decide. */
const ownNames = [".geminiignore", ".palimpsestignore"]

/** Larger rule files are not read. */
const maxFileBytes = 1_048_576
/** Entries times rules between two yields: a millisecond or two, up to 40 with the slowest rules. */
const checksPerYield = 2_500

/** Reads a rule file. A missing or unreadable file has no rules. */
const readRules = Effect.fnUntraced(function* (file: string) {
  const fs = yield* FileSystem.FileSystem
  const read = Effect.gen(function* () {
    const info = yield* fs.stat(file)
    if (info.type !== "File" || info.size > BigInt(maxFileBytes)) return []
    const rules = yield* run(ignoreRules(yield* fs.readFileString(file)))
    if (rules.length === maxRules) yield* Effect.logDebug(`only the first ${maxRules} rules of ${file} count`)
    return rules
  })
  return yield* read.pipe(Effect.orElseSucceed((): ReadonlyArray<IgnoreRule> => []))
})

/** What rules are read with, and how much was checked since the last yield. */
interface RuleReader {
  readonly fs: FileSystem.FileSystem
  readonly path: Path.Path
  /** The folders of the workspace. */
  readonly folders: ReadonlyArray<string>
  readonly choice: IgnoreChoice
  checks: number
}

/** The rule files that hold in a folder, in ascending precedence. */
interface FolderSources {
  readonly folder: string
  /** Undefined outside of repositories. */
  readonly git: ReadonlyArray<Source> | undefined
  readonly own: ReadonlyArray<Source>
}

const deeper = (sources: ReadonlyArray<Source>, name: string): ReadonlyArray<Source> =>
  sources.map(({ below, rules }) => ({ rules, below: `${below}${name}/` }))

const sourceOf = (rules: ReadonlyArray<IgnoreRule>): ReadonlyArray<Source> =>
  rules.length === 0 ? [] : [{ rules, below: "" }]

const sourcesIn = Effect.fnUntraced(function* (
  { choice, folders, fs, path }: RuleReader,
  folder: string,
  above: FolderSources | undefined,
  holds?: ReadonlySet<string>
) {
  const mayHold = (name: string) => holds === undefined || holds.has(name)
  const read = (...names: ReadonlyArray<string>) =>
    Effect.map(Effect.provideService(readRules(path.join(folder, ...names)), FileSystem.FileSystem, fs), sourceOf)
  const name = path.basename(folder)
  let git = above?.git === undefined ? undefined : deeper(above.git, name)
  if (choice.git) {
    // A nested repository has its own rules.
    const isRepository =
      mayHold(".git") && (yield* Effect.orElseSucceed(fs.exists(path.join(folder, ".git")), () => false))
    if (isRepository) git = yield* read(".git", "info", "exclude")
    if (git !== undefined && mayHold(".gitignore")) git = [...git, ...(yield* read(".gitignore"))]
  }
  let own = above === undefined ? [] : deeper(above.own, name)
  if (choice.own && folders.includes(folder)) {
    for (const file of ownNames) own = [...own, ...(yield* read(file))]
  }
  return { folder, git, own }
})

/** Whether an entry is ignored. The latest source with a rule for it decides. */
const isIgnoredBy = (latestFirst: ReadonlyArray<Source>, name: string, isFolder: boolean): boolean => {
  if (name === ".git") return true
  for (const { below, rules } of latestFirst) {
    const ruling = verdict(rules, `${below}${name}`, isFolder)
    if (ruling !== undefined) return ruling
  }
  return false
}

const rulesIn = (reader: RuleReader, here: FolderSources): FolderRules => {
  const { choice, path } = reader
  const sources = [...sourceOf(choice.vendored ? vendoredRules : []), ...(here.git ?? []), ...here.own]
  const latestFirst = sources.toReversed()
  const checksPerEntry = sources.reduce((sum, { rules }) => sum + rules.length, 1)
  return {
    pause: Effect.suspend(() => {
      if (reader.checks < checksPerYield) return Effect.void
      reader.checks = 0
      return Effect.yieldNow
    }),
    ignores: (name, isFolder) => {
      reader.checks += checksPerEntry
      return isIgnoredBy(latestFirst, name, isFolder)
    },
    enter: (name, holds) =>
      Effect.map(sourcesIn(reader, path.join(here.folder, name), here, holds), (inside) => rulesIn(reader, inside))
  }
}

/** A folder and all above it, from the root of the file system down. */
const pathTo = (path: Path.Path, folder: string): ReadonlyArray<string> => {
  const above = path.dirname(folder)
  return above === folder ? [folder] : [...pathTo(path, above), folder]
}

/**
 * The rules of a workspace folder, including those of the folders above it.
 *
 * Each rule file is read once, when its folder is entered. Later files take precedence: exclude, `.gitignore` from the
 * top down, then the workspace's own. `.git` is always ignored.
 */
export const rulesOf = Effect.fn("IgnoreRules.rulesOf")(function* (folder: string, choice: IgnoreChoice) {
  const { folders } = yield* Workspace
  const path = yield* Path.Path
  const reader: RuleReader = { fs: yield* FileSystem.FileSystem, path, folders, choice, checks: 0 }
  let sources: FolderSources = { folder, git: undefined, own: [] }
  // The rules of a repository apply to all its folders.
  for (const place of pathTo(path, folder)) sources = yield* sourcesIn(reader, place, sources)
  return rulesIn(reader, sources)
})

/** The files with the workspace's own rules, and whether any rule includes something again. */
export const ownRules = Effect.fn("IgnoreRules.ownRules")(function* () {
  const path = yield* Path.Path
  const { folders } = yield* Workspace
  const files: Array<string> = []
  let hasNegated = false
  for (const file of folders.flatMap((folder) => ownNames.map((name) => path.join(folder, name)))) {
    const rules = yield* readRules(file)
    if (rules.length > 0) files.push(file)
    if (rules.some(({ isNegated }) => isNegated)) hasNegated = true
  }
  return { files, hasNegated }
})

/** Whether a path below a folder is ignored, by itself or through a folder above it. */
export const isIgnored = Effect.fn("IgnoreRules.isIgnored")(function* (
  rules: FolderRules,
  /** Relative to the folder of the rules, with forward slashes. */
  relative: string,
  isFolder = false
) {
  const names = relative.split("/")
  let here = rules
  for (const [i, name] of names.entries()) {
    const isLast = i === names.length - 1
    if (here.ignores(name, isFolder || !isLast)) return true
    yield* here.pause
    if (!isLast) here = yield* here.enter(name)
  }
  return false
})

/** Folders read concurrently. */
const readConcurrency = 16

/** The files found in one folder, relative to the start of the walk, with forward slashes. */
interface WalkedFolder {
  readonly files: ReadonlyArray<string>
  /** Number of ignored files and folders in it. */
  readonly ignored: number
}

/**
 * The regular files below a folder that are not ignored, folder by folder, in no particular order. Links are not
 * followed, and an unreadable folder has no files.
 */
export const walk = (folder: string, choice: IgnoreChoice) =>
  Stream.unwrap(
    Effect.gen(function* () {
      const path = yield* Path.Path
      const { files: safe } = yield* Workspace
      const fs = safe(yield* FileSystem.FileSystem)
      const top = yield* rulesOf(folder, choice)
      interface Open {
        readonly before: string
        readonly rules: (holds: ReadonlySet<string>) => Effect.Effect<FolderRules>
      }
      const readOne = Effect.fnUntraced(function* (open: Open) {
        const { before } = open
        const entries = yield* fs
          .readDirectoryEntries(path.join(folder, before))
          .pipe(Effect.orElseSucceed((): ReadonlyArray<FileSystem.DirectoryEntry> => []))
        const rules = yield* open.rules(new Set(entries.map(({ name }) => name)))
        const files: Array<string> = []
        const folders: Array<Open> = []
        let ignored = 0
        for (const { name, type } of entries) {
          if (type !== "File" && type !== "Directory") continue
          yield* rules.pause
          if (rules.ignores(name, type === "Directory")) ignored += 1
          else if (type === "File") files.push(`${before}${name}`)
          else folders.push({ before: `${before}${name}/`, rules: (holds) => rules.enter(name, holds) })
        }
        return { found: { files, ignored }, folders }
      })
      return Stream.paginate<ReadonlyArray<Open>, WalkedFolder>(
        [{ before: "", rules: () => Effect.succeed(top) }],
        (open) =>
          Effect.map(
            Effect.forEach(open.slice(0, readConcurrency), readOne, { concurrency: readConcurrency }),
            (read) => {
              // Depth first, so that few folders stay open.
              const next = [...read.flatMap(({ folders }) => folders), ...open.slice(readConcurrency)]
              return [read.map(({ found }) => found), next.length === 0 ? Option.none() : Option.some(next)] as const
            }
          )
      )
    })
  )
