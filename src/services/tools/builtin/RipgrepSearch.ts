import { Context, Effect, Fiber, FileSystem, Option, Path, PlatformError, Stream } from "effect"
import { ChildProcess } from "effect/process"
import { childEnvironment } from "../../../domain/text/ChildEnvironment.ts"
import { isWithin } from "../../../domain/text/WorkspacePath.ts"
import { cutLine, decodeFile, linesOf } from "../../../domain/workspace/FileText.ts"
import { addOutput, endOutput, noOutput, type RipgrepNotice } from "../../../domain/workspace/RipgrepOutput.ts"
import { Environment } from "../../platform/Environment.ts"
import type { BadPattern } from "../../platform/Patterns.ts"
import { read } from "../../platform/RegularFile.ts"
import { ownRules, rulesOf, vendoredFolders } from "../../workspace/IgnoreRules.ts"
import { Workspace } from "../../workspace/Workspace.ts"
import {
  concurrentFiles,
  type FileMatches,
  ignoreFilter,
  type MatchedLine,
  type Needs,
  type Search,
  searchOne,
  takeMatches
} from "./LineSearch.ts"

/** Searches files with ripgrep, and passes on only what the files themselves confirm. */

/**
 * Bytes of a line beyond which ripgrep prints only its beginning. Such a line has more characters than a result shows (a character
 * takes at most three bytes), so the note that replaces the rest is cut off as well.
 */
const maxColumns = 8_192

/** Beyond this many matches the search stops collecting, lists the files with matches, and searches those in batches. */
const maxRipgrepMatches = 2_000
/** Files searched by one ripgrep process when their names are arguments. */
const maxFilesPerRun = 200

interface RipgrepRun {
  /** By absolute path. */
  readonly files: Map<string, ReadonlyArray<MatchedLine>>
  /** Whether the process was stopped because of too many matches. */
  readonly hasTooMany: boolean
}

/** The path of ripgrep. Undefined: it is not installed in any folder that programs may come from. */
export const Ripgrep = Context.Reference<Effect.Effect<string | undefined>>(
  "palimpsest/services/tools/builtin/RipgrepSearch/Ripgrep",
  {
    defaultValue: () => Effect.undefined
  }
)

const ripgrep = Effect.fnUntraced(function* (
  args: ReadonlyArray<string>,
  cwd: string,
  stderr: "ignore" | "pipe" = "ignore"
) {
  const environment = yield* Environment
  const rg = yield* yield* Ripgrep
  if (rg === undefined) {
    return yield* PlatformError.systemError({ _tag: "NotFound", module: "ChildProcess", method: "spawn" })
  }
  return yield* ChildProcess.make(rg, args, {
    cwd,
    env: childEnvironment(yield* environment.variables),
    extendEnv: false,
    stdin: "ignore",
    stderr,
    forceKillAfter: "1 second"
  })
})

/** Plain output: as JSON, ripgrep lists every single match, a hundred bytes for each letter of a long line. */
const plainLines = [
  "--color=never",
  "--no-heading",
  "--with-filename",
  "--line-number",
  "--null",
  `--max-columns=${maxColumns}`,
  "--max-columns-preview"
]

/** Existence checks that run at the same time. */
const concurrentChecks = 8

/** Whether a notice is certainly no file name: a name may look like a notice, and a notice like a name. */
const isClear = Effect.fnUntraced(function* (
  { all, binary }: RipgrepNotice,
  hasMatches: boolean,
  exists: (name: string) => Effect.Effect<boolean>
) {
  if (yield* exists(all)) return false
  return hasMatches || (yield* exists(binary))
})

/** Runs ripgrep. Undefined: it failed, or its output is ambiguous. */
const run = Effect.fnUntraced(function* (args: ReadonlyArray<string>, cwd: string, maxMatches: number) {
  const workspace = yield* Workspace
  const fs = workspace.files(yield* FileSystem.FileSystem)
  const path = yield* Path.Path
  const handle = yield* ripgrep([...plainLines, ...args], cwd, "pipe")
  const output = noOutput()
  // With --no-messages it is silent about unreadable files; anything it prints here is about the pattern.
  const complaint = yield* Effect.forkScoped(
    Stream.runFold(
      Stream.decodeText(handle.stderr),
      () => false,
      (before, text) => before || text !== ""
    )
  )
  yield* handle.stdout.pipe(
    Stream.decodeText,
    Stream.takeWhile(() => !output.isAmbiguous && output.count <= maxMatches),
    Stream.runForEach((piece) => Effect.sync(() => addOutput(output, piece)))
  )
  const hasTooMany = output.count > maxMatches
  if (!hasTooMany && !output.isAmbiguous) {
    // Its exit code is 2 also where some file could not be read.
    const code = yield* handle.exitCode
    if (code > 1 && (code > 2 || (yield* Fiber.join(complaint)))) return undefined
    endOutput(output)
  }
  if (output.isAmbiguous) return undefined
  const files = new Map<string, ReadonlyArray<MatchedLine>>()
  for (const [name, lines] of output.files) files.set(path.resolve(cwd, name), lines)
  const exists = (name: string) => Effect.orElseSucceed(fs.exists(path.resolve(cwd, name)), () => false)
  const areClear = yield* Effect.forEach(
    output.notices,
    (notice) => isClear(notice, files.has(path.resolve(cwd, notice.binary)), exists),
    { concurrency: concurrentChecks }
  )
  // The search starts over without ripgrep.
  if (areClear.includes(false)) return undefined
  for (const { binary } of output.notices) files.delete(path.resolve(cwd, binary))
  return { files, hasTooMany } satisfies RipgrepRun
}, Effect.scoped)

const listFileNames = Effect.fnUntraced(function* (args: ReadonlyArray<string>, cwd: string) {
  const path = yield* Path.Path
  const handle = yield* ripgrep(["--files-with-matches", "--null", ...args], cwd)
  const text = yield* Stream.mkString(Stream.decodeText(handle.stdout))
  return text
    .split("\0")
    .filter((name) => name !== "")
    .map((name) => path.resolve(cwd, name))
}, Effect.scoped)

/** Whether a glob means the same to ripgrep: it names files, and no folders. */
export const isPlainGlob = (pattern: string): boolean => /^[\w.*{},-]+$/.test(pattern) && !pattern.includes("**")

/** The arguments of a search, without what is searched. */
const argumentsOf = (
  { choice, include, perFile }: Search,
  { isCaseSensitive, rust }: { readonly isCaseSensitive: boolean; readonly rust: string },
  ownRuleFiles: ReadonlyArray<string>
): ReadonlyArray<string> => [
  "--no-config",
  "--hidden",
  "--no-mmap",
  "--no-messages",
  "--crlf",
  isCaseSensitive ? "--case-sensitive" : "--ignore-case",
  `--max-count=${perFile}`,
  "--no-ignore-dot",
  "--no-ignore-global",
  ...(choice?.git === true ? [] : ["--no-ignore-vcs", "--no-ignore-exclude"]),
  ...(choice?.own === true ? ownRuleFiles.map((file) => `--ignore-file=${file}`) : []),
  ...["**/.git", ...(choice?.vendored === true ? vendoredFolders : [])].map((name) => `--glob=!${name}`),
  ...(include === undefined ? [] : [`--glob=${include}`]),
  `--regexp=${rust}`
]

const byPlace = ({ files }: RipgrepRun): ReadonlyArray<FileMatches> =>
  [...files].map(([place, lines]) => ({ place, lines })).sort((one, other) => (one.place < other.place ? -1 : 1))

/** Collects the matches of files for which `isWanted` holds. Undefined: ripgrep failed, or its output is ambiguous. */
const collect = Effect.fnUntraced(function* (
  { perFile, total }: Search,
  args: ReadonlyArray<string>,
  base: string,
  where: string,
  isWanted: (place: string) => Effect.Effect<boolean>
) {
  const first = yield* run([...args, "--", where], base, maxRipgrepMatches)
  if (first === undefined) return undefined
  if (!first.hasTooMany) return yield* Effect.filter(byPlace(first), ({ place }) => isWanted(place))
  // Too many to collect: only the first files are searched.
  const all = yield* Effect.filter((yield* listFileNames([...args, "--", where], base)).sort(), isWanted)
  const found: Array<FileMatches> = []
  let count = 0
  // Small batches, so that the search stops soon after `total`.
  const together = Math.max(1, Math.min(maxFilesPerRun, Math.floor(maxRipgrepMatches / perFile)))
  for (let i = 0; i < all.length && count <= total; i += together) {
    const part = yield* run([...args, "--", ...all.slice(i, i + together)], base, Number.POSITIVE_INFINITY)
    if (part === undefined) return undefined
    for (const each of byPlace(part)) {
      found.push(each)
      count += each.lines.length
    }
  }
  return found
})

/** Searches a folder or file with ripgrep. Undefined: it is not installed, or cannot do this search exactly; use the other engine. */
export const searchWithRipgrep = Effect.fnUntraced(function* (
  search: Search
): Effect.fn.Return<ReadonlyArray<FileMatches> | undefined, BadPattern, Needs> {
  const path = yield* Path.Path
  const { folders } = yield* Workspace
  const { choice, isFile, pattern, target } = search
  if (pattern?.rust === undefined) return undefined
  const base = folders.find((folder) => isWithin(folder, target, path.sep)) ?? (isFile ? path.dirname(target) : target)
  const own = yield* ownRules()
  if (choice?.own === true) {
    // In ripgrep git's rules override ours, so it misses files that ours include again; and it resolves the patterns of all ignore files
    // from one folder.
    if (own.hasNegated || own.files.some((file) => path.dirname(file) !== base)) return undefined
  }
  const isOurs = ignoreFilter(choice === undefined || isFile ? undefined : yield* rulesOf(target, choice))
  const isWanted = (place: string) => {
    const relative = path.relative(target, place).replaceAll(path.sep, "/")
    return isFile || search.includes(relative) ? isOurs(relative) : Effect.succeed(false)
  }
  const args = argumentsOf(search, { ...pattern, rust: pattern.rust }, own.files)
  const ran = yield* collect(search, args, base, `./${path.relative(base, target)}`, isWanted).pipe(
    // Not installed, or killed: the other engine finds the same.
    Effect.catchTag("PlatformError", () => Effect.undefined)
  )
  return ran === undefined ? undefined : yield* confirmed(search, ran)
})

/**
 * Returns the matches of ripgrep that the files themselves confirm. Ripgrep walks folders by path, so a folder replaced by a link may
 * lead it out of the workspace. Its output is only a hint: a line counts only if a file of the workspace contains it. Files in which
 * some line differs are searched again.
 */
const confirmed = Effect.fnUntraced(function* (search: Search, ran: ReadonlyArray<FileMatches>) {
  const workspace = yield* Workspace
  const fs = workspace.files(yield* FileSystem.FileSystem)
  const { lines: wanted, perFile, total } = search
  const confirm = Effect.fnUntraced(function* ({ lines, place }: FileMatches) {
    const bytes = yield* Effect.option(Effect.provideService(read(place, place), FileSystem.FileSystem, fs))
    const all = Option.isSome(bytes) ? linesOf(decodeFile(bytes.value)) : []
    const isConfirmed = lines.every(({ number, text }) => {
      const line = all[number - 1]
      return line !== undefined && cutLine(line) === text
    })
    return { place, lines: isConfirmed ? lines : yield* searchOne(place, wanted, perFile) }
  })
  return yield* takeMatches(
    total,
    Stream.fromIterable(ran).pipe(Stream.mapEffect(confirm, { concurrency: concurrentFiles }))
  )
})
