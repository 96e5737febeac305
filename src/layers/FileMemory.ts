import { Effect, FileSystem, Layer, Path, Ref, type Scope, Semaphore } from "effect"
import { decode, encode } from "../domain/Bytes.ts"
import { diskTrouble, isNotFound } from "../domain/DiskTrouble.ts"
import { fileDiff } from "../domain/FileDiff.ts"
import { isBinary } from "../domain/FileKind.ts"
import { encodingOf } from "../domain/FileText.ts"
import { importTokens } from "../domain/MemoryImports.ts"
import {
  factLine,
  hasFact,
  type Loaded,
  longestFact,
  type MemoryBlock,
  type MemoryScope,
  type MemorySource,
  touchedText,
  withFact
} from "../domain/MemoryText.ts"
import { defaults, type Settings } from "../domain/Settings.ts"
import { isWithin, quoted, shownFrom } from "../domain/WorkspacePath.ts"
import { Memory, type MemoryChange, MemoryError, type Saved } from "../services/Memory.ts"
import * as FileLock from "../services/FileLock.ts"
import * as Leftovers from "../services/Leftovers.ts"
import * as MemoryFiles from "../services/MemoryFiles.ts"
import * as MemorySearch from "../services/MemorySearch.ts"
import * as RegularFile from "../services/RegularFile.ts"
import { ToolFailure } from "../services/Tool.ts"
import * as WholeFile from "../services/WholeFile.ts"
import { Workspace } from "../services/Workspace.ts"
import * as NoFollow from "./NoFollow.ts"
import * as Sha256 from "./Sha256.ts"
import * as ThisProcess from "./ThisProcess.ts"

/** Where memory is. All folders are absolute; they need not exist. */
export interface FileMemoryOptions {
  /** The folder of this program: facts of the person are written there. */
  readonly home: string
  /** The person's folder of Gemini CLI, `~/.gemini`. */
  readonly geminiHome: string
  /** Folders that hold extensions. */
  readonly extensions: ReadonlyArray<string>
  /** The folder that is worked in. */
  readonly root: string
  /** Folders that were added to the workspace. */
  readonly includeDirectories?: ReadonlyArray<string> | undefined
  /** Whether the memory of these is loaded, too. What tools touch in them counts in any case. */
  readonly loadFromIncludeDirectories?: boolean | undefined
  /** Whether files of a folder may say what an agent does. Asked whenever memory is loaded or touched. */
  readonly isTrusted: (folder: string) => Effect.Effect<boolean>
  /** What is looked for, and how far; what is absent is as it usually is. Its names are those of files in projects. */
  readonly memory?: Partial<Settings["memory"]> | undefined
  /**
   * What the person's own files and those of extensions are called: no folder may choose that, or it would have any file of
   * theirs sent or written to. Absent: as they usually are.
   */
  readonly ownFileNames?: ReadonlyArray<string> | undefined
}

interface State {
  /** Undefined: to be read. */
  readonly loaded: Loaded | undefined
  /** What it was when it was read last. */
  readonly last: Loaded | undefined
  readonly version: number
  /** Keys of files that were loaded, told or found wanting. */
  readonly known: ReadonlySet<string>
  /** Files that have blocks, by their keys, and how these are shown. */
  readonly own: ReadonlyMap<string, string>
  /** What was told when it was touched. */
  readonly touched: ReadonlyArray<MemorySearch.Candidate>
}

/** A file that was found. */
interface Found extends MemoryFiles.Origin {
  readonly source: MemorySource
  readonly candidate: MemorySearch.Candidate
}

/** Whether a model is told the same. */
const isSame = (one: Loaded, other: Loaded): boolean =>
  one.blocks.length === other.blocks.length &&
  one.blocks.every(({ shown, source, text }, i) => {
    const there = other.blocks[i]
    return there?.shown === shown && there.source === source && there.text === text
  })

/**
 * Memory in files (spec 7). Nothing is read before somebody asks.
 *
 * Of projects a file counts only if the folder that it really lies in is trusted, by its own answer or that of the nearest
 * folder above it which has one; so does what it imports. Spec 7.1 looks upward to the parent of the project: here what lies
 * above the folder that was trusted is taken only where that is trusted too, for anybody may have put it there.
 */
export const layer = (options: FileMemoryOptions): Layer.Layer<Memory, never, FileSystem.FileSystem | Path.Path> =>
  Layer.effect(Memory, make(options))

/** `layer`, as a value. */
export const make = Effect.fnUntraced(function* (
  options: FileMemoryOptions
): Effect.fn.Return<Memory["Service"], never, FileSystem.FileSystem | Path.Path> {
  const context = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const { files, folder: held } = yield* NoFollow.make
  /** Whatever a project holds is opened where it was judged to lie; the person's own files may lie behind links. */
  const safe = { project: files(fs), global: fs }
  const choices = { ...defaults.memory, ...options.memory }
  const locks = path.join(options.home, "locks")
  const ownFileNames = options.ownFileNames ?? defaults.memory.fileNames
  const real = (place: string) => Effect.orElseSucceed(fs.realPath(place), () => path.resolve(place))

  /** Where things are now: folders may have been made meanwhile. */
  const places = Effect.gen(function* () {
    const root = yield* real(options.root)
    const added = yield* Effect.forEach(options.includeDirectories ?? [], real)
    const geminiHome = yield* real(options.geminiHome)
    const globals = [...new Set([geminiHome, yield* real(options.home)])]
    return { root, added, globals, home: path.dirname(geminiHome) }
  })
  type Places = Effect.Success<typeof places>

  const searchOf = ({ globals, home }: Places): MemorySearch.SearchOptions => ({
    fileNames: choices.fileNames,
    boundaries: choices.boundaries,
    maxDirs: choices.maxDirs,
    ignore: { git: choices.respectGitIgnore, own: choices.respectGeminiIgnore, usual: true },
    home,
    globals
  })

  /** As a person writes it: from the workspace, else, as the workspace itself, from the home folder. */
  const shownOf =
    ({ home, root }: Places) =>
    (place: string) => {
      const fromRoot = shownFrom(root, place, path.sep)
      if (fromRoot !== place && root !== place) return quoted(fromRoot)
      const fromHome = shownFrom(home, place, path.sep)
      return quoted(fromHome === place || fromHome === "." ? place : `~/${fromHome}`)
    }

  /** Runs a search in this workspace. */
  const searching = <A>(
    { added, root }: Places,
    work: Effect.Effect<A, never, FileSystem.FileSystem | Path.Path | Workspace>
  ) =>
    work.pipe(
      Effect.provideService(Workspace, {
        root,
        folders: [root, ...added],
        shown: (place) => place,
        files,
        held,
        path: () => Effect.fail(new ToolFailure({ message: "memory is not found by paths of tools" }))
      }),
      Effect.provideService(FileSystem.FileSystem, fs),
      Effect.provideService(Path.Path, path)
    )

  const filesOf = (here: Places) =>
    searching(
      here,
      MemoryFiles.make({ format: choices.importFormat, depth: choices.importDepth, shown: shownOf(here) })
    )

  const candidatesIn = (
    folders: ReadonlyArray<string>,
    within: (folder: string) => Effect.Effect<string>
  ): Effect.Effect<ReadonlyArray<MemorySearch.Candidate>> =>
    Effect.map(
      Effect.forEach(folders, (folder) =>
        Effect.map(within(folder), (root) =>
          choices.fileNames.map((name) => ({
            source: "project" as const,
            place: path.join(folder, name),
            within: [root],
            isExpected: false
          }))
        )
      ),
      (all) => all.flat()
    )

  /** Whether a folder is trusted; each is asked for once. */
  const asking = () => {
    const known = new Map<string, boolean>()
    return Effect.fnUntraced(function* (folder: string) {
      const isTrusted = known.get(folder) ?? (yield* options.isTrusted(folder))
      known.set(folder, isTrusted)
      return isTrusted
    })
  }
  type Asked = ReturnType<typeof asking>

  /** The root of the project that a folder lies in, else the folder; each is looked for once. */
  const roots = (here: Places) => {
    const known = new Map<string, string>()
    return Effect.fnUntraced(function* (folder: string) {
      const found =
        known.get(folder) ?? (yield* searching(here, MemorySearch.projectRoot(folder, searchOf(here)))) ?? folder
      known.set(folder, found)
      return found
    })
  }

  const globalCandidates = Effect.fnUntraced(function* ({ globals }: Places) {
    return yield* Effect.forEach(
      globals.flatMap((folder) => ownFileNames.map((name) => ({ folder, place: path.join(folder, name) }))),
      ({ folder, place }) =>
        // Who keeps such files elsewhere and links to them means what lies there.
        Effect.map(real(place), (file): MemorySearch.Candidate => ({
          source: "global",
          place,
          within: [...new Set([folder, path.dirname(file)])],
          isExpected: false
        }))
    )
  })

  const projectCandidates = Effect.fnUntraced(function* (here: Places, folder: string, isTrusted: Asked) {
    if (folder === here.home || !(yield* isTrusted(folder))) return []
    const search = searchOf(here)
    const above = yield* searching(here, MemorySearch.upward(folder, search))
    const below = choices.downward ? yield* searching(here, MemorySearch.downward(folder, search)) : []
    const own = yield* candidatesIn(above, roots(here))
    const deeper = below.map(({ place, root }): MemorySearch.Candidate => ({
      source: "project",
      place,
      within: [root],
      isExpected: false
    }))
    const owner = yield* searching(here, MemorySearch.ownerOf(folder))
    return [
      ...own.map((candidate) => ({ candidate, owner })),
      ...deeper.map((candidate) => ({ candidate, owner: undefined }))
    ]
  })

  /** Looks at candidates; a file counts at the first place where it is found. */
  const lookAt = Effect.fnUntraced(function* (
    candidates: ReadonlyArray<MemorySearch.Candidate>,
    files: MemoryFiles.MemoryFiles,
    isTrusted: Asked,
    known: Set<string>,
    complain: (place: string, why: string) => void
  ) {
    for (const { place, source } of candidates) if (source !== "extension") files.isReal(path.dirname(place))
    const looked = yield* Effect.forEach(
      candidates,
      (candidate) => Effect.map(files.look(candidate.place, candidate.within), (found) => ({ candidate, found })),
      { concurrency: MemoryFiles.atOnce }
    )
    const found: Array<Found> = []
    for (const { candidate, found: what } of looked) {
      const isElsewhere =
        what._tag === "File" && candidate.source === "project" && !(yield* isTrusted(path.dirname(what.real)))
      if (what._tag === "File" && !isElsewhere && !known.has(what.key)) {
        known.add(what.key)
        const { place, source, within } = candidate
        found.push({
          ...what,
          candidate,
          source,
          place,
          within,
          isTrusted: source === "project" ? isTrusted : undefined
        })
      }
      const why = what._tag === "Refused" ? what.why : isElsewhere ? "it leads into a folder that is not trusted" : ""
      if (why !== "" && !known.has(candidate.place)) {
        known.add(candidate.place)
        complain(candidate.place, why)
      }
      if (what._tag === "Nothing" && candidate.isExpected) complain(candidate.place, "there is no such file")
    }
    return found
  })

  /**
   * Global files that another one says whole, and which one that is: what was taken over from one home lies in both, and facts
   * may have been added to one of them since. Of files that say the same the first stays.
   */
  const twinsIn = Effect.fnUntraced(function* (found: ReadonlyArray<Found>, files: MemoryFiles.MemoryFiles) {
    const globals = found.filter(({ source }) => source === "global")
    const twins = new Map<Found, Found>()
    for (const file of globals.toReversed()) {
      for (const other of globals) {
        if (other === file || twins.has(other) || !(yield* files.covers(other, file))) continue
        twins.set(file, other)
        break
      }
    }
    return twins
  })

  /** What the files say, and what is wrong in them. Each has its own block, whichever others import it. */
  const blocksOf = Effect.fnUntraced(function* (
    found: ReadonlyArray<Found>,
    before: ReadonlyMap<string, string>,
    files: MemoryFiles.MemoryFiles,
    shown: (place: string) => string
  ) {
    const twins = yield* twinsIn(found, files)
    const own = new Map(before)
    for (const file of found) {
      let stands = file
      for (let twin = twins.get(stands); twin !== undefined; twin = twins.get(stands)) stands = twin
      own.set(file.key, shown(stands.place))
    }
    const resolved = yield* Effect.forEach(
      found.filter((file) => !twins.has(file)),
      (file) => {
        const { place, source } = file
        const name = shown(place)
        return Effect.match(files.resolve(file, own), {
          onSuccess: ({ imports, problems, text }) => ({
            blocks: text.trim() === "" ? [] : [{ source, file: place, shown: name, text, imports }],
            problems
          }),
          onFailure: (why) => ({ blocks: [], problems: [{ line: `${name}: ${quoted(why)}` }] })
        })
      },
      { concurrency: MemoryFiles.atOnce }
    )
    const blocks: ReadonlyArray<MemoryBlock> = resolved.flatMap((each) => each.blocks)
    return { blocks, own, problems: MemoryFiles.linesOf(resolved.flatMap((each) => each.problems)) }
  })

  const state = yield* Ref.make<State>({
    loaded: undefined,
    last: undefined,
    version: 0,
    known: new Set(),
    own: new Map(),
    touched: []
  })
  const gate = yield* Semaphore.make(1)

  /** The deepest trusted folder of the workspace that a place lies in. */
  const trustedRoot = Effect.fnUntraced(function* ({ added, home, root }: Places, place: string, isTrusted: Asked) {
    const around = [root, ...added].filter((folder) => folder !== home && isWithin(folder, place, path.sep))
    for (const folder of around.toSorted((a, b) => b.length - a.length)) {
      if (yield* isTrusted(folder)) return folder
    }
    return undefined
  })

  const readAll = Effect.gen(function* () {
    const before = yield* Ref.get(state)
    const here = yield* places
    const shown = shownOf(here)
    const files = yield* filesOf(here)
    const problems = new Set<string>()
    const complain = (place: string, why: string) => void problems.add(`${shown(place)}: ${quoted(why)}`)
    const known = new Set<string>()
    const isTrusted = asking()
    const rootOf = roots(here)

    const extensions = yield* Effect.forEach(options.extensions, (folder) =>
      searching(here, MemorySearch.extensionFiles(folder, { ...searchOf(here), fileNames: ownFileNames }))
    )
    for (const line of extensions.flatMap((each) => each.problems)) problems.add(line)
    const project: Array<MemorySearch.Candidate> = []
    const worked = [...(options.loadFromIncludeDirectories === true ? here.added : []), here.root]
    for (const folder of new Set(worked)) {
      for (const { candidate, owner } of yield* projectCandidates(here, folder, isTrusted)) {
        const place = path.dirname(candidate.place)
        if (!(yield* isTrusted(place))) {
          // Told where one would look for it in vain: above, in the same project. What lies below was refused by the person.
          const isAbove = !isWithin(folder, place, path.sep) && isWithin(yield* rootOf(folder), place, path.sep)
          if (isAbove && (yield* Effect.orElseSucceed(fs.exists(candidate.place), () => false))) {
            complain(
              candidate.place,
              `its folder is not trusted, so it was left out; "palimpsest trust" says that it is`
            )
          }
          continue
        }
        if (owner !== undefined && !isWithin(folder, place, path.sep)) {
          // Above the folder that is trusted, in /tmp for one, anybody may have left a file.
          const other = yield* searching(here, MemorySearch.ownerOf(candidate.place))
          if (other !== undefined && other !== owner && other !== 0) {
            complain(candidate.place, `it belongs to somebody else than ${shown(folder)}, so it was left out`)
            continue
          }
        }
        project.push(candidate)
      }
    }
    for (const candidate of before.touched) {
      if ((yield* trustedRoot(here, candidate.place, isTrusted)) === undefined) continue
      if (yield* isTrusted(path.dirname(candidate.place))) project.push(candidate)
    }
    const candidates = [
      ...(yield* globalCandidates(here)),
      ...extensions.flatMap((each) => each.candidates),
      ...project
    ]
    const found = yield* lookAt(candidates, files, isTrusted, known, complain)
    const { blocks, own, problems: inFiles } = yield* blocksOf(found, new Map(), files, shown)
    const loaded: Loaded = { blocks, problems: [...new Set([...problems, ...inFiles])] }
    yield* Ref.set(state, {
      loaded,
      last: loaded,
      version: before.last === undefined || isSame(before.last, loaded) ? before.version : before.version + 1,
      known,
      own,
      touched: before.touched
    })
    return loaded
  })

  const loadInside = Effect.flatMap(Ref.get(state), ({ loaded }) =>
    loaded === undefined ? readAll : Effect.succeed(loaded)
  )
  const load = gate.withPermit(loadInside).pipe(Effect.withSpan("Memory.load"))
  const stale = Ref.update(state, (now): State => ({ ...now, loaded: undefined }))

  /** The folder of a place that may not exist, links followed. */
  const folderOf = Effect.fnUntraced(function* (place: string) {
    for (let here = path.resolve(place); ; here = path.dirname(here)) {
      const found = yield* Effect.orElseSucceed(
        Effect.flatMap(fs.realPath(here), (file) => Effect.map(fs.stat(file), ({ type }) => ({ file, type }))),
        () => undefined
      )
      if (found !== undefined) return found.type === "Directory" ? found.file : path.dirname(found.file)
      if (path.dirname(here) === here) return here
    }
  })

  const touched = Effect.fn("Memory.touched")(function* (place: string): Effect.fn.Return<string | undefined> {
    if (!choices.onTouch) return undefined
    const imported = new Set((yield* loadInside).blocks.flatMap(({ imports }) => imports))
    const here = yield* places
    const folder = yield* folderOf(place)
    const isTrusted = asking()
    const root = yield* trustedRoot(here, folder, isTrusted)
    if (root === undefined) return undefined
    const folders = yield* Effect.filter(
      yield* searching(here, MemorySearch.between(root, folder, searchOf(here))),
      isTrusted
    )
    const before = yield* Ref.get(state)
    const known = new Set(before.known)
    const shown = shownOf(here)
    const problems = new Set<string>()
    const complain = (where: string, why: string) => void problems.add(`${shown(where)}: ${quoted(why)}`)
    const files = yield* filesOf(here)
    const looked = yield* lookAt(yield* candidatesIn(folders, roots(here)), files, isTrusted, known, complain)
    const found = looked.filter(({ real: file }) => !imported.has(file))
    const { blocks, own, problems: inFiles } = yield* blocksOf(found, before.own, files, shown)
    // Told once, and not to the model: it cannot mend the file.
    for (const problem of new Set([...problems, ...inFiles])) yield* Effect.logWarning(problem)
    yield* Ref.set(state, {
      ...before,
      known,
      own,
      touched: [...before.touched, ...found.map(({ candidate }) => candidate)]
    })
    return blocks.length === 0 ? undefined : touchedText(blocks)
  }, gate.withPermit)

  const wrong = (message: string) => new MemoryError({ message })

  /** The file of a scope: one of the names that is there, else the first name. */
  const target = Effect.fnUntraced(function* (here: Places, scope: MemoryScope): Effect.fn.Return<string, MemoryError> {
    const folder = scope === "project" ? here.root : path.resolve(options.home)
    const names = scope === "project" ? choices.fileNames : ownFileNames
    const first = names[0]
    if (first === undefined) return yield* wrong("memory has no file: the setting memory.fileNames is empty")
    if (scope === "project" && (here.root === here.home || !(yield* options.isTrusted(folder)))) {
      return yield* wrong(
        here.root === here.home
          ? `${shownOf(here)(folder)} is the home folder and no project; remember it as global instead`
          : `${quoted(folder)} is not trusted, so nothing is remembered there; trust it with "palimpsest trust", or remember it as global`
      )
    }
    for (const name of names) {
      const place = path.join(folder, name)
      const type = yield* Effect.orElseSucceed(
        Effect.map(fs.stat(place), (info) => info.type),
        () => undefined
      )
      if (type === "File") return place
    }
    return path.join(folder, first)
  })

  /** A file as it is now, where it really lies. */
  const seen = Effect.fnUntraced(function* (here: Places, place: string, scope: MemoryScope) {
    const shown = shownOf(here)(place)
    const file = yield* fs.realPath(place).pipe(
      Effect.catchIf(isNotFound, () => Effect.undefined),
      Effect.mapError((error) => wrong(`${shown} cannot be used: ${diskTrouble(error)}`))
    )
    if (file === undefined) {
      const isLink = yield* Effect.orElseSucceed(Effect.as(fs.readLink(place), true), () => false)
      return isLink
        ? yield* wrong(`${shown} is a link that leads nowhere; mend or remove it`)
        : { file: place, text: undefined }
    }
    if (scope === "project" && !isWithin(here.root, file, path.sep)) {
      return yield* wrong(`${shown} leads out of the workspace through a link, so it is not written`)
    }
    if (scope === "project" && !(yield* options.isTrusted(path.dirname(file)))) {
      return yield* wrong(`${shown} leads into a folder that is not trusted, so it is not written`)
    }
    const bytes = yield* RegularFile.read(file, shown).pipe(
      Effect.provideService(FileSystem.FileSystem, safe[scope]),
      Effect.mapError(({ message }) => wrong(message))
    )
    const encoding = encodingOf(bytes)?.encoding
    if (isBinary(bytes) || (encoding !== undefined && encoding !== "utf-8")) {
      return yield* wrong(`${shown} is no UTF-8 text, so nothing is added to it`)
    }
    return { file, text: decode(bytes).text }
  })

  /** What adding this line to the file of this place would write. */
  const planned = Effect.fnUntraced(function* (here: Places, place: string, line: string, scope: MemoryScope) {
    const { file, text: before } = yield* seen(here, place, scope)
    const shown = shownOf(here)(file)
    const after = before !== undefined && hasFact(before, line) ? before : withFact(before ?? "", line)
    if (encode(after).length > MemoryFiles.mostBytes) {
      return yield* wrong(`${shown} would have more than 1 MiB and no longer be read; shorten it first`)
    }
    // A backtick in a fact may pair with one elsewhere in the file, and what was code would then be read as imports.
    const imports = (text: string) =>
      importTokens(text)
        .map((token) => token.path)
        .join("\n")
    if (imports(after) !== imports(before ?? "")) {
      return yield* wrong(
        "with this fact the file would import other files than before; say it without @ and backticks"
      )
    }
    const diff = fileDiff(path.basename(file), before ?? "", after)
    return { fact: line, scope, file, shown, before, after, diff } satisfies MemoryChange
  })

  const plan = Effect.fn("Memory.plan")(function* (
    fact: string,
    scope: MemoryScope
  ): Effect.fn.Return<MemoryChange, MemoryError> {
    const line = factLine(fact)
    if (line === undefined) return yield* wrong("there is nothing to remember; say the fact in a sentence")
    if (line.length > longestFact) {
      return yield* wrong(
        `a fact of ${line.length} characters is too long to be part of every request; say it in at most ${longestFact}`
      )
    }
    const here = yield* places
    return yield* planned(here, yield* target(here, scope), line, scope)
  })

  const write = Effect.fnUntraced(function* ({ after, before, file, scope }: MemoryChange) {
    const fs = safe[scope]
    const folder = path.dirname(file)
    if (before === undefined) {
      yield* fs.makeDirectory(folder, { recursive: true, ...(scope === "global" ? { mode: 0o700 } : {}) })
    } else yield* fs.access(file, { writable: true })
    const mode = before === undefined ? undefined : (yield* fs.stat(file)).mode & 0o7777
    yield* WholeFile.write(file, encode(after), mode ?? (scope === "project" ? undefined : 0o600)).pipe(
      Effect.andThen(Leftovers.sweep(folder)),
      Effect.provideService(FileSystem.FileSystem, fs)
    )
    yield* Leftovers.sweep(locks, { lock: (name) => /^\.[0-9a-f]{64}\.lock/.exec(name)?.[0] })
  })

  /**
   * Keeps others from changing a file until the scope closes. The lock lies at home: nobody finds it among their files, and none
   * comes along with a clone. Who cannot write there does without one.
   */
  const alone = (file: string) =>
    FileLock.hold({ file, lock: path.join(locks, `.${Sha256.hashSync(file)}.lock`) }).pipe(
      Effect.catch((error) => (error._tag === "FileLocked" ? Effect.fail(wrong(error.message)) : Effect.void)),
      // Not the layer's whole context: the lock is to go with the scope of the call.
      Effect.provideService(FileSystem.FileSystem, fs),
      Effect.provideService(Path.Path, path),
      ThisProcess.provide
    )

  const save = Effect.fn("Memory.save")(function* (
    change: MemoryChange
  ): Effect.fn.Return<Saved, MemoryError, Scope.Scope> {
    const { fact, file, scope, shown } = change
    yield* alone(file)
    return yield* Effect.gen(function* () {
      const here = yield* places
      if (scope === "project" && !(yield* options.isTrusted(here.root))) {
        return yield* wrong(`${shown} is not written: its folder is no longer trusted`)
      }
      const now = yield* planned(here, file, fact, scope)
      if (now.file !== file) {
        return yield* wrong(`${shown} is another file by now, so it was not written; try again`)
      }
      if (now.after !== now.before) {
        yield* Effect.uninterruptible(Effect.andThen(write(now), stale)).pipe(
          Effect.provideContext(context),
          ThisProcess.provide,
          Effect.mapError((error) => wrong(`${shown} was not written: ${diskTrouble(error)}`))
        )
      }
      return { file, shown, diff: now.diff }
    }).pipe(gate.withPermit)
  }, Effect.scoped)

  return {
    load,
    refresh: gate.withPermit(Effect.andThen(stale, loadInside)).pipe(Effect.withSpan("Memory.refresh")),
    version: gate.withPermit(
      Effect.andThen(
        loadInside,
        Effect.map(Ref.get(state), ({ version }) => version)
      )
    ),
    touched,
    plan,
    save
  }
})
