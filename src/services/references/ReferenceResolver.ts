/** Resolves `@` references to files of the workspace. */

import { Clock, Effect, FileSystem, Option, Path, Result, Stream } from "effect"
import { plural } from "../../domain/text/NumberText.ts"
import { isWithin, quotedPath } from "../../domain/text/WorkspacePath.ts"
import { type PathReading, readings } from "../../domain/workspace/AtReference.ts"
import { defaultExcludes, isPattern } from "../../domain/workspace/ManyFiles.ts"
import { globProblem, pathMatcher } from "../../domain/workspace/PathGlob.ts"
import { inspect } from "../platform/RegularFile.ts"
import { type FolderRules, isIgnored, ownRules, rulesOf, walk } from "../workspace/IgnoreRules.ts"
import { Workspace } from "../workspace/Workspace.ts"

/** Most files searched by name for one message, and the time limit in milliseconds. */
const maxSearchedFiles = 20_000
const searchTimeoutMillis = 5_000
/** Shorter names are only found exactly: nearly every path contains any two letters. */
const minNameChars = 3
/** Names compared between two yields. */
const namesPerYield = 50

/** Several files named at once, by a folder or a pattern. */
export interface Group {
  readonly shown: string
  /** What was not included, and why. */
  readonly remarks: ReadonlyArray<string>
  /** Whether everything was searched. */
  readonly isWhole: boolean
}

/** What a reference refers to. */
export type ResolvedReference =
  | { readonly _tag: "Files"; readonly places: ReadonlyArray<string>; readonly group: Group | undefined }
  | { readonly _tag: "Skipped"; readonly why: string }
  | { readonly _tag: "Missing" }

const skippedFor = (why: string): ResolvedReference => ({ _tag: "Skipped", why })

/** Whether a text contains a letter or a digit. */
export const hasLetters = (text: string): boolean => /[\p{L}\p{N}]/u.test(text)

/** How well a file matches a searched name; smaller is better. Undefined: no match. */
const fit = (file: string, names: ReadonlyArray<string>): ReadonlyArray<number | string> | undefined => {
  const lower = file.toLowerCase()
  for (const [rank, name] of names.entries()) {
    const at = lower.lastIndexOf(name)
    // Like the pattern `**/*name*`: no further folder may start after the name.
    if (at < 0 || lower.includes("/", at + name.length)) continue
    const isFromStart = at === 0 || lower.charAt(at - 1) === "/"
    const isWhole = isFromStart && at + name.length === lower.length
    const isButEnding = isFromStart && lower.charAt(at + name.length) === "."
    if (name.length < minNameChars && !isWhole) continue
    return [rank, isWhole ? 0 : isButEnding ? 1 : isFromStart ? 2 : 3, file.split("/").length, file.length, file]
  }
  return undefined
}

const isBetter = (one: ReadonlyArray<number | string>, other: ReadonlyArray<number | string>): boolean => {
  const at = one.findIndex((value, i) => value !== other[i])
  const [value, against] = [one[at], other[at]]
  return value !== undefined && against !== undefined && value < against
}

/** The folders of a pattern before its first wildcard, and the rest. */
const splitPattern = (pattern: string): { readonly folder: string; readonly rest: string } => {
  const names = pattern.split("/")
  const at = names.findIndex(isPattern)
  return {
    folder: names.slice(0, at).join("/") || (pattern.startsWith("/") ? "/" : "."),
    rest: names.slice(at).join("/")
  }
}

/** Whether a file matches a name it was searched by. */
export const fitsName = (shown: string, name: string): boolean =>
  fit(shown, [name.toLowerCase().replace(/^\.\/+/, "")]) !== undefined

/** Which ignore rules apply. */
interface ResolverOptions {
  readonly git: boolean
  readonly own: boolean
}

/** What resolving the references of one message shares: the workspace, its rules, and the limits of the search. */
interface Resolver extends ResolverOptions {
  readonly workspace: Workspace["Service"]
  readonly fs: FileSystem.FileSystem
  readonly path: Path.Path
  /** Time in milliseconds at which searching stops. */
  readonly until: number
  readonly rules: Map<string, FolderRules>
  /** Files examined so far. */
  examined: number
}

type Needs = FileSystem.FileSystem | Path.Path | Workspace

/** Makes the resolver of one message. */
export const make = Effect.fnUntraced(function* ({
  git,
  own
}: ResolverOptions): Effect.fn.Return<Resolver, never, Needs> {
  const workspace = yield* Workspace
  const fs = workspace.files(yield* FileSystem.FileSystem)
  const until = (yield* Clock.currentTimeMillis) + searchTimeoutMillis
  return { git, own, workspace, fs, path: yield* Path.Path, until, rules: new Map(), examined: 0 }
})

const rulesIn = Effect.fnUntraced(function* (resolver: Resolver, folder: string, choice: "all" | "git" | "own") {
  const key = `${choice} ${folder}`
  const cachedRules = resolver.rules.get(key)
  if (cachedRules !== undefined) return cachedRules
  const rules = yield* rulesOf(folder, {
    git: resolver.git && choice !== "own",
    own: resolver.own && choice !== "git",
    vendored: false
  })
  resolver.rules.set(key, rules)
  return rules
})

/** Which rules ignore a path; undefined when none do. */
const ignoredBy = Effect.fnUntraced(function* (resolver: Resolver, place: string, isFolder: boolean) {
  const { path, workspace } = resolver
  const folder = workspace.folders.find((each) => isWithin(each, place, path.sep))
  const relative = folder === undefined ? "" : path.relative(folder, place).replaceAll(path.sep, "/")
  if (folder === undefined || relative === "") return undefined
  if (relative.split("/").includes(".git")) return "it is in .git"
  if (!(yield* isIgnored(yield* rulesIn(resolver, folder, "all"), relative, isFolder))) return undefined
  const byGit = yield* isIgnored(yield* rulesIn(resolver, folder, "git"), relative, isFolder)
  const byOwn = yield* isIgnored(yield* rulesIn(resolver, folder, "own"), relative, isFolder)
  const { files } = yield* ownRules()
  const names = byOwn || !byGit ? new Set(files.map((file) => path.basename(file))) : []
  return `ignored by ${[...(byGit ? ["git"] : []), ...names].join(" and ")}`
})

const excludes = defaultExcludes.map((each) => pathMatcher(each, false))

/** The wanted files below a folder. Stops at the search limits. */
const filesBelow = Effect.fnUntraced(function* (
  resolver: Resolver,
  folder: string,
  matches: (relative: string) => boolean
) {
  const { git, own, until } = resolver
  const files: Array<string> = []
  let ignored = 0
  let excluded = 0
  let isWhole = true
  const left = until - (yield* Clock.currentTimeMillis)
  const ended = yield* walk(folder, { git, own, vendored: true }).pipe(
    Stream.runForEachWhile(
      Effect.fnUntraced(function* (walked) {
        ignored += walked.ignored
        for (const file of walked.files) {
          if (resolver.examined >= maxSearchedFiles) {
            isWhole = false
            return false
          }
          resolver.examined += 1
          if (resolver.examined % namesPerYield === 0) yield* Effect.yieldNow
          if (!matches(file)) continue
          if (excludes.some((isExcluded) => isExcluded(file))) excluded += 1
          else files.push(file)
        }
        return true
      })
    ),
    Effect.timeoutOption(Math.max(0, left))
  )
  return { files: files.sort(), ignored, excluded, isWhole: isWhole && Option.isSome(ended) }
})

const typeOf = ({ fs }: Resolver, place: string) =>
  fs.stat(place).pipe(
    Effect.map(({ type }) => type),
    Effect.orElseSucceed(() => undefined)
  )

/** How far the search went, when it was incomplete. */
const bound = ({ examined }: Resolver, isWhole: boolean) =>
  isWhole ? [] : [`only the first ${plural(examined, "file was", "files were")} searched`]

const inBrackets = (remarks: ReadonlyArray<string>) => (remarks.length === 0 ? "" : ` (${remarks.join("; ")})`)

/** A refusal without the path that precedes it anyway. */
const refused = ({ message }: { readonly message: string }, reference: string): ResolvedReference => {
  const name = quotedPath(reference)
  const isNamed = message.startsWith(name)
  return skippedFor(isNamed ? message.slice(name.length).replace(/^:? /, "") : message)
}

/** What an existing path refers to; Missing when nothing is there. */
const resolvePath = Effect.fnUntraced(function* (
  resolver: Resolver,
  folder: string,
  { path: typedPath, rest }: PathReading
): Effect.fn.Return<ResolvedReference, never, Needs> {
  const { fs, path, workspace } = resolver
  const requested = path.resolve(folder, typedPath)
  const target = typedPath.startsWith("~") ? typedPath : requested
  const checked = yield* Effect.result(workspace.path(target, "read"))
  if (Result.isFailure(checked)) return refused(checked.failure, target)
  const place = checked.success
  const type = yield* typeOf(resolver, place)
  // Of a word with punctuation, such as `src:main`, only a file is cut out.
  if (type === undefined || (type === "Directory" && hasLetters(rest))) return { _tag: "Missing" }
  const isFolder = type === "Directory"
  const why =
    (yield* ignoredBy(resolver, place, isFolder)) ??
    (requested === place ? undefined : yield* ignoredBy(resolver, requested, isFolder))
  if (why !== undefined) return skippedFor(why)
  if (type === "Directory") {
    const { excluded, files, ignored, isWhole } = yield* filesBelow(resolver, place, () => true)
    const remarks = [
      ...(ignored > 0 ? [`${plural(ignored, "entry is", "entries are")} ignored`] : []),
      ...(excluded > 0
        ? [`${plural(excluded, "file is", "files are")} excluded by default: keys, archives, build output`]
        : [])
    ]
    if (files.length === 0) {
      return skippedFor(`no files in it${inBrackets([...remarks, ...bound(resolver, isWhole)])}`)
    }
    const shown = place === workspace.root ? "./" : `${workspace.shown(place)}/`
    const places = files.map((file) => path.join(place, file))
    return { _tag: "Files", places, group: { shown, remarks, isWhole } }
  }
  if (type !== "File") {
    const checked = yield* Effect.result(
      inspect(place, typedPath).pipe(Effect.provideService(FileSystem.FileSystem, fs))
    )
    return Result.isFailure(checked) ? refused(checked.failure, typedPath) : skippedFor("not a regular file")
  }
  if (path.basename(place).toLowerCase() === ".env") return skippedFor("it may contain keys")
  return { _tag: "Files", places: [place], group: undefined }
})

/** The files of all workspace folders that match a pattern. */
const resolvePattern = Effect.fnUntraced(function* (
  resolver: Resolver,
  pattern: string
): Effect.fn.Return<ResolvedReference, never, Needs> {
  const { path, workspace } = resolver
  const { folder, rest } = splitPattern(pattern)
  const problem = globProblem(rest)
  if (problem !== undefined) return skippedFor(problem)
  const matches = pathMatcher(rest, false)
  const places = new Set<string>()
  let refusal: ResolvedReference | undefined
  let left = 0
  let isWhole = true
  for (const each of workspace.folders) {
    const requested = path.resolve(each, folder)
    const checked = yield* Effect.result(workspace.path(requested, "read"))
    if (Result.isFailure(checked)) {
      refusal = refused(checked.failure, requested)
      continue
    }
    const why = yield* ignoredBy(resolver, checked.success, true)
    if (why !== undefined) {
      refusal = skippedFor(why)
      continue
    }
    if ((yield* typeOf(resolver, checked.success)) !== "Directory") continue
    const below = yield* filesBelow(resolver, checked.success, matches)
    isWhole &&= below.isWhole
    left += below.ignored + below.excluded
    for (const file of below.files) places.add(path.join(checked.success, file))
  }
  if (places.size > 0) {
    const group = { shown: quotedPath(pattern), remarks: bound(resolver, isWhole), isWhole }
    return { _tag: "Files", places: [...places], group }
  }
  const remarks = left === 0 ? [] : [`${plural(left, "entry is", "entries are")} left out`]
  return refusal ?? skippedFor(`no file matches${inBrackets([...remarks, ...bound(resolver, isWhole)])}`)
})

/** What a reference means as an exact path or a pattern. */
export const resolve = Effect.fnUntraced(function* (
  resolver: Resolver,
  typedPath: string
): Effect.fn.Return<ResolvedReference, never, Needs> {
  let first: ResolvedReference | undefined
  for (const reading of readings(typedPath)) {
    // A file name may look like a pattern: `app/[id]/page.tsx`.
    for (const folder of resolver.workspace.folders) {
      const resolved = yield* resolvePath(resolver, folder, reading)
      if (resolved._tag === "Files") return resolved
      if (resolved._tag === "Skipped") first ??= resolved
    }
    if (!isPattern(reading.path)) continue
    const matched = yield* resolvePattern(resolver, reading.path)
    if (matched._tag === "Files") return matched
    first ??= matched
  }
  return first ?? { _tag: "Missing" }
})

/** Searches the best matches for paths that do not exist, in one walk. */
export const search = Effect.fnUntraced(function* (
  resolver: Resolver,
  missing: ReadonlyArray<string>
): Effect.fn.Return<{ readonly places: ReadonlyMap<string, string>; readonly remark: string }, never, Needs> {
  const { path, workspace } = resolver
  const searched = missing.flatMap((typedPath) => {
    const names = readings(typedPath).map((reading) => reading.path.toLowerCase().replace(/^\.\/+/, ""))
    return names.some((name) => name.startsWith("/") || name.split("/").includes(".."))
      ? []
      : [{ given: typedPath, names }]
  })
  const places = new Map<string, string>()
  const fits = new Map<string, ReadonlyArray<number | string>>()
  let isWhole = true
  if (searched.length === 0) return { places, remark: "" }
  for (const folder of workspace.folders) {
    const below = yield* filesBelow(resolver, folder, (file) => searched.some(({ names }) => fit(file, names)))
    isWhole &&= below.isWhole
    for (const { given: typedPath, names } of searched) {
      for (const file of below.files) {
        const here = fit(file, names)
        const best = fits.get(typedPath)
        if (here === undefined || (best !== undefined && !isBetter(here, best))) continue
        fits.set(typedPath, here)
        places.set(typedPath, path.join(folder, file))
      }
    }
  }
  return { places, remark: inBrackets(bound(resolver, isWhole)) }
})
