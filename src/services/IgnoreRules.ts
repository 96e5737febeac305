import { Effect, FileSystem, Option, Path, Stream } from "effect"
import { type IgnoreRule, ignoreRules, mostRules, parseIgnoreFile, verdict } from "../domain/IgnoreFile.ts"
import { run } from "../domain/Work.ts"
import { Workspace } from "./Workspace.ts"

/** Which files are left out when folders are looked through (spec 13), and the looking through. */

/** Which rules count. */
export interface IgnoreChoice {
  /** `.gitignore` at all levels and `.git/info/exclude`, in a git repository. */
  readonly git: boolean
  /** `.geminiignore` and `.palimpsestignore` at the root of the workspace. */
  readonly own: boolean
  /** `usualFolders`: what is hardly ever meant. The other rules may take it in again. */
  readonly usual: boolean
}

/** Folders of other people's files. */
export const usualFolders = ["node_modules", "bower_components", ".svn", ".hg"]
const usualRules = parseIgnoreFile(usualFolders.map((name) => `${name}/`).join("\n"))

/** A file of rules, and the names on the way from its folder to where one looks now: `src/lib/` or nothing. */
interface Source {
  readonly rules: ReadonlyArray<IgnoreRule>
  readonly below: string
}

/** The rules that hold in one folder. */
export interface FolderRules {
  /** Whether an entry of this folder is left out; what lies in a folder that is left out is not looked at. */
  readonly ignores: (name: string, isFolder: boolean) => boolean
  /** Whoever asks of many entries comes here in between: it lets others have their turn when it was much. */
  readonly pause: Effect.Effect<void>
  /** The rules of a folder in it. Whoever knows what it holds says so: then no file is asked for that is not there. */
  readonly enter: (name: string, holds?: ReadonlySet<string>) => Effect.Effect<FolderRules>
}

/** The names of the rules at the root; the later ones decide. */
const ownNames = [".geminiignore", ".palimpsestignore"]

/** Rules longer than this are not read: nobody wrote them. */
const mostBytes = 1_048_576
/** Entries times rules between two pauses: a millisecond or two, with the worst rules that count some 40. */
const slice = 2_500

/** Reads rules; a file that is not there or cannot be read has none. */
const readRules = Effect.fnUntraced(function* (file: string) {
  const fs = yield* FileSystem.FileSystem
  const read = Effect.gen(function* () {
    const info = yield* fs.stat(file)
    if (info.type !== "File" || info.size > BigInt(mostBytes)) return []
    const rules = yield* run(ignoreRules(yield* fs.readFileString(file)))
    if (rules.length === mostRules) yield* Effect.logDebug(`only the first ${mostRules} rules of ${file} count`)
    return rules
  })
  return yield* read.pipe(Effect.orElseSucceed((): ReadonlyArray<IgnoreRule> => []))
})

/**
 * The rules of a folder of the workspace, those of the folders above it included. They are read once, as they are now, each
 * file when its folder is entered. Later files decide over earlier ones: exclude, `.gitignore` from the top down, then the
 * workspace's own. `.git` is always left out.
 */
export const rulesOf = Effect.fn("IgnoreRules.rulesOf")(function* (
  folder: string,
  choice: IgnoreChoice
): Effect.fn.Return<FolderRules, never, FileSystem.FileSystem | Path.Path | Workspace> {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const { folders } = yield* Workspace
  const has = (file: string) => fs.exists(file).pipe(Effect.orElseSucceed(() => false))
  const from = (file: string) => Effect.provideService(readRules(file), FileSystem.FileSystem, fs)

  interface State {
    readonly place: string
    /** In ascending rank; undefined: no repository around. */
    readonly git: ReadonlyArray<Source> | undefined
    readonly own: ReadonlyArray<Source>
  }

  const deeper = (sources: ReadonlyArray<Source>, name: string): ReadonlyArray<Source> =>
    sources.map(({ below, rules }) => ({ rules, below: `${below}${name}/` }))
  const some = (rules: ReadonlyArray<IgnoreRule>): ReadonlyArray<Source> =>
    rules.length === 0 ? [] : [{ rules, below: "" }]

  const stateIn = Effect.fnUntraced(function* (
    place: string,
    above: State | undefined,
    holds?: ReadonlySet<string>
  ): Effect.fn.Return<State> {
    const mayHold = (name: string) => holds === undefined || holds.has(name)
    const name = path.basename(place)
    let git = above?.git === undefined ? undefined : deeper(above.git, name)
    if (choice.git) {
      // A repository in a repository has rules of its own.
      if (mayHold(".git") && (yield* has(path.join(place, ".git"))))
        git = some(yield* from(path.join(place, ".git", "info", "exclude")))
      if (git !== undefined && mayHold(".gitignore"))
        git = [...git, ...some(yield* from(path.join(place, ".gitignore")))]
    }
    let own = above === undefined ? [] : deeper(above.own, name)
    if (choice.own && folders.includes(place)) {
      for (const file of ownNames) own = [...own, ...some(yield* from(path.join(place, file)))]
    }
    return { place, git, own }
  })

  let asked = 0
  const pause = Effect.suspend(() => {
    if (asked < slice) return Effect.void
    asked = 0
    return Effect.yieldNow
  })

  const rulesIn = (state: State): FolderRules => {
    const sources = [...some(choice.usual ? usualRules : []), ...(state.git ?? []), ...state.own]
    const count = sources.reduce((sum, { rules }) => sum + rules.length, 1)
    return {
      pause,
      ignores: (name, isFolder) => {
        asked += count
        if (name === ".git") return true
        for (let i = sources.length - 1; i >= 0; i -= 1) {
          const source = sources[i]
          const said = source === undefined ? undefined : verdict(source.rules, `${source.below}${name}`, isFolder)
          if (said !== undefined) return said
        }
        return false
      },
      enter: (name, holds) => Effect.map(stateIn(path.join(state.place, name), state, holds), rulesIn)
    }
  }

  // From the top of the disk down: rules of a repository hold in all its folders.
  const way: Array<string> = []
  for (let place = folder; ; place = path.dirname(place)) {
    way.unshift(place)
    if (path.dirname(place) === place) break
  }
  let state: State | undefined
  for (const place of way) state = yield* stateIn(place, state)
  return rulesIn(state ?? { place: folder, git: undefined, own: [] })
})

/** The files of the workspace's own rules, and whether some of them take something in again. */
export const ownRules = Effect.fn("IgnoreRules.ownRules")(function* (): Effect.fn.Return<
  { readonly files: ReadonlyArray<string>; readonly hasNegated: boolean },
  never,
  FileSystem.FileSystem | Path.Path | Workspace
> {
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

/** Whether a place below a folder, a file unless it is said to be a folder, is left out by its rules, itself or through one above it. */
export const isIgnored = Effect.fn("IgnoreRules.isIgnored")(function* (
  rules: FolderRules,
  /** From the folder of the rules, with forward slashes. */
  relative: string,
  isFolder = false
): Effect.fn.Return<boolean> {
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

/** Folders that are read at the same time. */
const atOnce = 16

/** Files of one folder that are found together, from where the walk began, with forward slashes. */
export interface Found {
  readonly files: ReadonlyArray<string>
  /** Files and folders here that the rules leave out. */
  readonly ignored: number
}

/**
 * The regular files below a folder that its rules do not leave out, folder by folder, in no order that is told. Links are not
 * followed, and a folder that cannot be read has no files.
 */
export const walk = (
  folder: string,
  choice: IgnoreChoice
): Stream.Stream<Found, never, FileSystem.FileSystem | Path.Path | Workspace> =>
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
      return Stream.paginate<ReadonlyArray<Open>, Found>([{ before: "", rules: () => Effect.succeed(top) }], (open) =>
        Effect.map(Effect.forEach(open.slice(0, atOnce), readOne, { concurrency: atOnce }), (read) => {
          // Deep before wide, so that what is open stays small.
          const next = [...read.flatMap(({ folders }) => folders), ...open.slice(atOnce)]
          return [read.map(({ found }) => found), next.length === 0 ? Option.none() : Option.some(next)] as const
        })
      )
    })
  )
