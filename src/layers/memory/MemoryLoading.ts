/** Finds memory files, decides which of them count, and reads them. */

import { Effect } from "effect"
import { boundedMemory, type MemoryBounds } from "../../domain/memory/MemoryBounds.ts"
import { distinctProblems, type MemoryProblem } from "../../domain/memory/MemoryProblem.ts"
import { type LoadedMemory, type MemorySource, touchedMemoryText } from "../../domain/memory/MemoryText.ts"
import { isWithin } from "../../domain/text/WorkspacePath.ts"
import * as MemoryFiles from "../../services/memory/MemoryFiles.ts"
import * as MemorySearch from "../../services/memory/MemorySearch.ts"
import * as ResolveImports from "../../services/memory/ResolveImports.ts"
import {
  currentPlaces,
  inWorkspace,
  locate,
  type LocatedMemory,
  type MemoryContext,
  type MemoryPlaces,
  readerOf,
  realPath,
  trustedRoot
} from "./MemoryContext.ts"

/** The state of memory between two loads. */
export interface MemoryState {
  /** Undefined when it has to be read again. */
  readonly loaded: LoadedMemory | undefined
  /** The result of the last load. */
  readonly last: LoadedMemory | undefined
  readonly version: number
  /** Keys of files that were loaded, returned or reported. */
  readonly known: ReadonlySet<string>
  /** Files with blocks of their own: their shown names by key. */
  readonly own: ReadonlyMap<string, string>
  /** Files returned for touched folders. */
  readonly touched: ReadonlyArray<MemorySearch.Candidate>
  /** Folders that were touched since the last load: their files are in. */
  readonly visited: ReadonlySet<string>
  /** The folders of memory at the last load. Undefined before the first. */
  readonly places: MemoryPlaces | undefined
}

/** The state before the first load. */
export const emptyState: MemoryState = {
  loaded: undefined,
  last: undefined,
  version: 0,
  known: new Set(),
  own: new Map(),
  touched: [],
  visited: new Set(),
  places: undefined
}

/** A memory file that counts. */
interface FoundFile extends MemoryFiles.Origin {
  readonly source: MemorySource
  readonly candidate: MemorySearch.Candidate
}

type Report = (place: string, why: string) => void

/** Whether the model would receive the same memory. */
const isSame = (one: LoadedMemory, other: LoadedMemory): boolean =>
  one.blocks.length === other.blocks.length &&
  one.blocks.every(({ shown, source, text }, i) => {
    const there = other.blocks[i]
    return there?.shown === shown && there.source === source && there.text === text
  })

const projectCandidate = (place: string, root: string): MemorySearch.Candidate => ({
  source: "project",
  place,
  allowedFolders: [root],
  isExpected: false
})

/** Collects problems. */
const collector = (shown: (place: string) => string) => {
  const problems: Array<MemoryProblem> = []
  const report: Report = (place, why) => void problems.push({ text: `${shown(place)}: ${why}` })
  return { problems, report }
}

/** The memory files of folders, by all names. */
const candidatesIn = ({ choices, path, projectRoot }: LocatedMemory, folders: ReadonlyArray<string>) =>
  Effect.map(
    Effect.forEach(folders, (folder) =>
      Effect.map(projectRoot(folder), (root) =>
        choices.fileNames.map((name) => projectCandidate(path.join(folder, name), root))
      )
    ),
    (all) => all.flat()
  )

const globalCandidates = (memory: LocatedMemory) => {
  const { globals, ownFileNames, path } = memory
  return Effect.forEach(
    globals.flatMap((folder) => ownFileNames.map((name) => ({ folder, place: path.join(folder, name) }))),
    ({ folder, place }) =>
      // A user who links to a file elsewhere means that file, with the imports beside it.
      Effect.map(realPath(memory, place), (file) => ({
        source: "global" as const,
        place,
        allowedFolders: [...new Set([folder, path.dirname(file)])],
        isExpected: false
      }))
  )
}

/** The candidates above, in and below a folder. `owner` owns the folder, and must own the files above it. */
const projectCandidates = Effect.fnUntraced(function* (memory: LocatedMemory, folder: string) {
  const { choices, home, isTrusted, search } = memory
  if (folder === home || !(yield* isTrusted(folder))) return []
  const above = yield* MemorySearch.upward(folder, search)
  const below = choices.downward ? yield* MemorySearch.downward(folder, search) : []
  const own = yield* candidatesIn(memory, above)
  const owner = yield* MemorySearch.ownerOf(folder)
  return [
    ...own.map((candidate) => ({ candidate, owner })),
    ...below.map(({ place, root }) => ({ candidate: projectCandidate(place, root), owner: undefined }))
  ]
})

/** Returns the trusted project candidates, and reports other files that the user may expect. */
const trustedCandidates = Effect.fnUntraced(function* (memory: LocatedMemory, folder: string, report: Report) {
  const { fs, isTrusted, path, projectRoot, shown } = memory
  const accepted: Array<MemorySearch.Candidate> = []
  const untrusted: Array<string> = []
  for (const { candidate, owner } of yield* projectCandidates(memory, folder)) {
    const place = path.dirname(candidate.place)
    const isInside = isWithin(folder, place, path.sep)
    if (!(yield* isTrusted(place))) {
      // Reported above the folder, in the same project. What is below was refused by the user.
      const isAbove = !isInside && isWithin(yield* projectRoot(folder), place, path.sep)
      if (isAbove && (yield* Effect.orElseSucceed(fs.exists(candidate.place), () => false))) {
        untrusted.push(candidate.place)
      }
      continue
    }
    if (owner !== undefined && !isInside) {
      // Above the trusted folder, in /tmp for example, anyone may have left a file.
      const other = yield* MemorySearch.ownerOf(candidate.place)
      if (other !== undefined && other !== owner && other !== 0) {
        report(candidate.place, `its owner is not the owner of ${shown(folder)}, so it was left out`)
        continue
      }
    }
    accepted.push(candidate)
  }
  return { accepted, untrusted }
})

/** Looks up candidates. A file counts at the first path where it is found. */
const lookUp = Effect.fnUntraced(function* (
  { choices, isTrusted, path }: LocatedMemory,
  candidates: ReadonlyArray<MemorySearch.Candidate>,
  files: MemoryFiles.MemoryFiles,
  knownKeys: Set<string>,
  report: Report
) {
  const results = yield* Effect.forEach(
    candidates,
    (candidate) =>
      Effect.map(MemoryFiles.look(files, candidate.place, candidate.allowedFolders), (result) => ({
        candidate,
        result
      })),
    { concurrency: MemoryFiles.readConcurrency }
  )
  const foundFiles: Array<FoundFile> = []
  const served = new Set<string>()
  for (const { candidate, result } of results) {
    const { allowedFolders, place, source } = candidate
    // With `firstFound` the other names of a folder do not count.
    if (choices.firstFound && served.has(path.dirname(place))) continue
    const isElsewhere = result._tag === "File" && source === "project" && !(yield* isTrusted(path.dirname(result.real)))
    if (result._tag === "File" && !isElsewhere && source !== "extension") served.add(path.dirname(place))
    if (result._tag === "File" && !isElsewhere && !knownKeys.has(result.key)) {
      knownKeys.add(result.key)
      const trust = source === "project" ? isTrusted : undefined
      foundFiles.push({ ...result, candidate, source, place, allowedFolders, isTrusted: trust })
    }
    const why =
      result._tag === "Refused" ? result.why : isElsewhere ? "it leads into a folder that is not trusted" : undefined
    if (why !== undefined && !knownKeys.has(place)) {
      knownKeys.add(place)
      report(place, why)
    }
    if (result._tag === "Nothing" && candidate.isExpected) report(place, MemoryFiles.noFile)
  }
  return foundFiles
})

/**
 * Global files whose whole content is in another global file, with that file. An import from another home leaves the
 * same text in both, and facts may since have been added to one. Of equal files the first stays.
 */
const coveredFiles = Effect.fnUntraced(function* (
  foundFiles: ReadonlyArray<FoundFile>,
  files: MemoryFiles.MemoryFiles
) {
  const globals = foundFiles.filter(({ source }) => source === "global")
  const covered = new Map<FoundFile, FoundFile>()
  for (const file of globals.toReversed()) {
    for (const other of globals) {
      if (other === file || covered.has(other) || !(yield* ResolveImports.covers(files, other, file))) continue
      covered.set(file, other)
      break
    }
  }
  return covered
})

/** Reads files into blocks. Each file has its own block, whichever others import it. */
const readBlocks = Effect.fnUntraced(function* (
  foundFiles: ReadonlyArray<FoundFile>,
  before: ReadonlyMap<string, string>,
  files: MemoryFiles.MemoryFiles,
  bounds: MemoryBounds
) {
  const { shown } = files
  const covered = yield* coveredFiles(foundFiles, files)
  const own = new Map(before)
  for (const file of foundFiles) {
    let block = file
    for (let other = covered.get(block); other !== undefined; other = covered.get(block)) block = other
    own.set(file.key, shown(block.place))
  }
  const resolved = yield* Effect.forEach(
    foundFiles.filter((file) => !covered.has(file)),
    (file) => {
      const { place, source } = file
      const name = shown(place)
      return Effect.match(ResolveImports.resolve(files, file, own), {
        onSuccess: ({ imports, problems, text }) => ({
          blocks: text.trim() === "" ? [] : [{ source, file: place, shown: name, text, imports }],
          problems
        }),
        onFailure: (why) => ({ blocks: [], problems: [{ text: `${name}: ${why}` }] })
      })
    },
    { concurrency: MemoryFiles.readConcurrency }
  )
  const bounded = boundedMemory(
    resolved.flatMap((each) => each.blocks),
    bounds
  )
  return { blocks: bounded.blocks, own, problems: [...resolved.flatMap((each) => each.problems), ...bounded.problems] }
})

/** Loads all memory. See `layer` in FileMemory.ts for which files count. */
export const loadAll = Effect.fnUntraced(function* (context: MemoryContext, before: MemoryState) {
  const places = yield* currentPlaces(context)
  const memory = locate(context, places)
  return yield* inWorkspace(loadFrom(memory, places, before), memory)
})

const loadFrom = Effect.fnUntraced(function* (memory: LocatedMemory, places: MemoryPlaces, before: MemoryState) {
  const { added, isTrusted, options, ownFileNames, path, root, search, shown } = memory
  const files = yield* readerOf(memory)
  const { problems, report } = collector(shown)
  const knownKeys = new Set<string>()

  const extensions = yield* Effect.forEach(options.extensions, (folder) =>
    MemorySearch.extensionFiles(folder, { ...search, fileNames: ownFileNames })
  )
  problems.push(...extensions.flatMap((each) => each.problems))
  const project: Array<MemorySearch.Candidate> = []
  const untrusted = new Set<string>()
  for (const folder of new Set([...(options.loadFromIncludeDirectories === true ? added : []), root])) {
    const candidates = yield* trustedCandidates(memory, folder, report)
    project.push(...candidates.accepted)
    for (const place of candidates.untrusted) untrusted.add(shown(place))
  }
  for (const candidate of before.touched) {
    if ((yield* trustedRoot(memory, candidate.place)) === undefined) continue
    if (yield* isTrusted(path.dirname(candidate.place))) project.push(candidate)
  }
  const candidates = [
    ...(yield* globalCandidates(memory)),
    ...extensions.flatMap((each) => each.candidates),
    ...project
  ]
  const foundFiles = yield* lookUp(memory, candidates, files, knownKeys, report)
  const { blocks, own, problems: fileProblems } = yield* readBlocks(foundFiles, new Map(), files, memory.choices)
  const loaded: LoadedMemory = {
    blocks,
    problems: distinctProblems([...problems, ...fileProblems]),
    untrusted: [...untrusted]
  }
  const isChanged = before.last !== undefined && !isSame(before.last, loaded)
  const state: MemoryState = {
    loaded,
    last: loaded,
    version: before.version + (isChanged ? 1 : 0),
    known: knownKeys,
    own,
    touched: before.touched,
    visited: new Set(),
    places
  }
  return { loaded, state }
})

/** The folder of a path that may not exist, links resolved. */
const folderOf = Effect.fnUntraced(function* ({ fs, path }: MemoryContext, place: string) {
  for (let here = path.resolve(place); ; here = path.dirname(here)) {
    const realFolder = yield* Effect.orElseSucceed(
      Effect.flatMap(fs.realPath(here), (file) => Effect.map(fs.stat(file), ({ type }) => ({ file, type }))),
      () => undefined
    )
    if (realFolder !== undefined)
      return realFolder.type === "Directory" ? realFolder.file : path.dirname(realFolder.file)
    if (path.dirname(here) === here) return here
  }
})

/**
 * Loads the memory of the folders on the way to a touched path, as far as it is new. Nothing outside trusted folders, and in
 * a folder that was visited since the last load.
 */
export const loadTouched = Effect.fnUntraced(function* (context: MemoryContext, before: MemoryState, place: string) {
  const folder = yield* folderOf(context, place)
  if (before.visited.has(folder)) return { state: before, text: undefined, problems: [] }
  const memory = locate(context, before.places ?? (yield* currentPlaces(context)))
  const state = { ...before, visited: new Set([...before.visited, folder]) }
  const root = yield* trustedRoot(memory, folder)
  if (root === undefined) return { state, text: undefined, problems: [] }
  return yield* inWorkspace(loadBetween(memory, root, folder, state), memory)
})

/** Loads the new memory of the folders from a root down to a folder. */
const loadBetween = Effect.fnUntraced(function* (
  memory: LocatedMemory,
  root: string,
  folder: string,
  before: MemoryState
) {
  const folders = yield* Effect.filter(yield* MemorySearch.between(root, folder, memory.search), memory.isTrusted)
  const knownKeys = new Set(before.known)
  const { problems, report } = collector(memory.shown)
  const files = yield* readerOf(memory)
  const candidates = yield* candidatesIn(memory, folders)
  // A file whose text is part of loaded memory is not new.
  const imported = new Set(before.loaded?.blocks.flatMap(({ imports }) => imports))
  const newFiles = (yield* lookUp(memory, candidates, files, knownKeys, report)).filter(
    ({ real }) => !imported.has(real)
  )
  const { blocks, own, problems: fileProblems } = yield* readBlocks(newFiles, before.own, files, memory.choices)
  const touched = [...before.touched, ...newFiles.map(({ candidate }) => candidate)]
  return {
    state: { ...before, known: knownKeys, own, touched },
    text: blocks.length === 0 ? undefined : touchedMemoryText(blocks),
    problems: distinctProblems([...problems, ...fileProblems])
  }
})
