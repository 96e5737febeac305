/** The `search_file_content` tool: searches the lines of files. */

import { Effect, Fiber, FileSystem, Option, Path, Schema, Stream } from "effect"
import { ChildProcess } from "effect/process"
import { childEnvironment } from "../../../domain/text/ChildEnvironment.ts"
import { isWithin } from "../../../domain/text/WorkspacePath.ts"
import { searchPattern } from "../../../domain/tools/SearchPattern.ts"
import { textDisplay } from "../../../domain/tools/ToolResult.ts"
import { cutLine, decodeFile, linesOf } from "../../../domain/workspace/FileText.ts"
import { pathMatcher } from "../../../domain/workspace/PathGlob.ts"
import { Environment } from "../../platform/Environment.ts"
import * as Patterns from "../../platform/Patterns.ts"
import { makeProgramFinder } from "../../platform/ProgramLookup.ts"
import { inspect, read } from "../../platform/RegularFile.ts"
import { FileLimits } from "../../workspace/FileLimits.ts"
import { type IgnoreChoice, ownRules, rulesOf, vendoredFolders } from "../../workspace/IgnoreRules.ts"
import { Workspace } from "../../workspace/Workspace.ts"
import { fileReadFailure, make, pathArgument, type Tool, ToolFailure } from "../Tool.ts"
import { choiceOf, GlobPattern, withoutNulls } from "./FolderToolArguments.ts"
import {
  type FileMatches,
  filesByWalk,
  ignoreFilter,
  type MatchedLine,
  type Needs,
  type Search,
  searchLines
} from "./LineSearch.ts"

// Lists the files in which ripgrep finds a pattern, so that a search reads only these. Ripgrep walks folders by path, so a folder
// replaced by a link may lead it out of the workspace: its list is only a hint, and the lines come from files of the workspace.

type ProgramFinder = Effect.Success<ReturnType<typeof makeProgramFinder>>

const ripgrep = Effect.fnUntraced(function* (program: string, args: ReadonlyArray<string>, cwd: string) {
  const environment = yield* Environment
  return yield* ChildProcess.make(program, args, {
    cwd,
    env: childEnvironment(yield* environment.variables),
    extendEnv: false,
    stdin: "ignore",
    forceKillAfter: "1 second"
  })
})

/** The files that ripgrep lists, absolute. Undefined: it failed. */
const listFiles = Effect.fnUntraced(function* (program: string, args: ReadonlyArray<string>, cwd: string) {
  const path = yield* Path.Path
  const handle = yield* ripgrep(program, args, cwd)
  // With --no-messages it is silent about unreadable files; anything it prints here is about the pattern.
  const complaint = yield* Effect.forkScoped(
    Stream.runFold(
      Stream.decodeText(handle.stderr),
      () => false,
      (before, text) => before || text !== ""
    )
  )
  const text = yield* Stream.mkString(Stream.decodeText(handle.stdout))
  const code = yield* handle.exitCode
  // Its exit code is 2 also where some file could not be read.
  if (code > 1 && (code > 2 || (yield* Fiber.join(complaint)))) return undefined
  return text
    .split("\0")
    .filter((name) => name !== "")
    .map((name) => path.resolve(cwd, name))
}, Effect.scoped)

/** Whether a glob means the same to ripgrep: it names files, and no folders. */
const isPlainGlob = (pattern: string): boolean => /^[\w.*{},-]+$/.test(pattern) && !pattern.includes("**")

/** The arguments of a search, without what is searched. */
const argumentsOf = (
  { choice, include, pattern: { isCaseSensitive } }: Search,
  rust: string,
  ownRuleFiles: ReadonlyArray<string>
): ReadonlyArray<string> => [
  "--files-with-matches",
  "--null",
  "--no-config",
  "--hidden",
  "--no-mmap",
  "--no-messages",
  isCaseSensitive ? "--case-sensitive" : "--ignore-case",
  "--no-ignore-dot",
  "--no-ignore-global",
  ...(choice?.git === true ? [] : ["--no-ignore-vcs", "--no-ignore-exclude"]),
  ...(choice?.own === true ? ownRuleFiles.map((file) => `--ignore-file=${file}`) : []),
  ...["**/.git", ...(choice?.vendored === true ? vendoredFolders : [])].map((name) => `--glob=!${name}`),
  ...(include === undefined ? [] : [`--glob=${include}`]),
  `--regexp=${rust}`
]

/** The files of a search that ripgrep finds. Undefined: it is not installed, or cannot do this search exactly; walk through the folder. */
const filesByRipgrep = Effect.fnUntraced(function* (search: Search, find: ProgramFinder) {
  const path = yield* Path.Path
  const { folders } = yield* Workspace
  const { choice, isFile, target } = search
  const { rust } = search.pattern
  if (rust === undefined) return undefined
  const base = folders.find((folder) => isWithin(folder, target, path.sep)) ?? (isFile ? path.dirname(target) : target)
  const own = yield* ownRules()
  if (choice?.own === true) {
    // In ripgrep git's rules override ours, so it misses files that ours include again; and it resolves the patterns of all ignore files
    // from one folder.
    if (own.hasNegated || own.files.some((file) => path.dirname(file) !== base)) return undefined
  }
  const args = [...argumentsOf(search, rust, own.files), "--", `./${path.relative(base, target)}`]
  const program = yield* find("rg")
  if (program === undefined) return undefined
  // Removed meanwhile, or killed.
  const listed = yield* Effect.catchTag(listFiles(program, args, base), "PlatformError", () => Effect.undefined)
  if (listed === undefined) return undefined
  const isOurs = ignoreFilter(choice === undefined || isFile ? undefined : yield* rulesOf(target, choice))
  return yield* Effect.filter(listed, (place) => {
    const relative = path.relative(target, place).replaceAll(path.sep, "/")
    return isFile || search.includes(relative) ? isOurs(relative) : Effect.succeed(false)
  })
})

const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))
const Around = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 200 }))

const Parameters = Schema.Struct({
  pattern: Schema.NonEmptyString.annotate({ description: "The regular expression to match lines with" }),
  dir_path: Schema.optionalKey(Schema.String).annotate({
    description: "The folder or file to search. Default: the workspace"
  }),
  include_pattern: Schema.optionalKey(GlobPattern).annotate({
    description: "Search only files that match this glob pattern: *.ts, src/**"
  }),
  exclude_pattern: Schema.optionalKey(Schema.NonEmptyString).annotate({
    description: "A regular expression; lines that match it are left out"
  }),
  names_only: Schema.optionalKey(Schema.Boolean).annotate({ description: "Return only the names of the files" }),
  max_matches_per_file: Schema.optionalKey(Count).annotate({ description: "Maximum number of lines per file" }),
  total_max_matches: Schema.optionalKey(Count).annotate({
    description: "Maximum number of lines in all. Default: 100"
  }),
  case_sensitive: Schema.optionalKey(Schema.Boolean).annotate({
    description: "Whether case matters. Default: false"
  }),
  fixed_strings: Schema.optionalKey(Schema.Boolean).annotate({
    description: "Whether the pattern is plain text rather than a regular expression"
  }),
  context: Schema.optionalKey(Around).annotate({ description: "Lines to show around each match" }),
  after: Schema.optionalKey(Around).annotate({ description: "Lines to show after each match" }),
  before: Schema.optionalKey(Around).annotate({ description: "Lines to show before each match" }),
  no_ignore: Schema.optionalKey(Schema.Boolean).annotate({
    description: "Whether to search files that ignore rules exclude"
  })
})
type Parameters = typeof Parameters.Type

/** Arguments under the names that older versions of Gemini CLI used. */
const adaptArguments = ({
  dir_path,
  include,
  include_pattern,
  path,
  ...rest
}: Readonly<Record<string, unknown>>): unknown =>
  withoutNulls({ ...rest, dir_path: dir_path ?? path, include_pattern: include_pattern ?? include })

const defaultMaxMatches = 100
/** A search that takes longer is given up. */
const searchTimeout = "30 seconds"

const failure = (type: string, message: string) => new ToolFailure({ message, type })

const compile = (argument: string, source: string, isCaseSensitive: boolean) =>
  Effect.mapError(Patterns.compile(source, { ignoresCase: !isCaseSensitive }), ({ message }) =>
    failure("invalid_tool_params", `${argument} is not a regular expression that can be used: ${message}`)
  )

/** What lines have to match, without those that `exclude_pattern` leaves out. */
const wantedOf = Effect.fnUntraced(function* ({
  case_sensitive: isCaseSensitive = false,
  exclude_pattern: exclude,
  fixed_strings: isFixed = false,
  pattern: typed
}: Parameters) {
  const included = searchPattern(typed, { isCaseSensitive, isFixed })
  const pattern = yield* compile("pattern", included.source, included.isCaseSensitive)
  if (exclude === undefined) return { lines: { pattern, excluded: undefined }, pattern: included }
  const left = searchPattern(exclude, { isCaseSensitive, isFixed: false })
  const excluded = yield* compile("exclude_pattern", left.source, left.isCaseSensitive)
  return { lines: { pattern, excluded }, pattern: included }
})

/** The folders of the workspace, without those that lie in another of them: that one's search covers both. */
const outermost = (folders: ReadonlyArray<string>, separator: string): ReadonlyArray<string> =>
  folders.filter((folder) => !folders.some((other) => other !== folder && isWithin(other, folder, separator)))

/** The files with matches in one folder or file. */
const searchTarget = Effect.fnUntraced(function* (
  args: Parameters,
  wanted: Pick<Search, "lines" | "pattern">,
  target: string,
  defaultChoice: IgnoreChoice,
  find: ProgramFinder
) {
  const workspace = yield* Workspace
  const fs = workspace.files(yield* FileSystem.FileSystem)
  const info = yield* fs.stat(target).pipe(Effect.option)
  if (Option.isNone(info)) {
    return yield* failure("file_not_found", `there is no file or folder ${workspace.shown(target)}`)
  }
  const isFile = info.value.type !== "Directory"
  if (isFile) {
    yield* inspect(target, workspace.shown(target)).pipe(
      Effect.provideService(FileSystem.FileSystem, fs),
      Effect.mapError(fileReadFailure)
    )
  }
  const { include_pattern: include, total_max_matches: total = defaultMaxMatches } = args
  const search: Search = {
    ...wanted,
    target,
    isFile,
    choice: args.no_ignore === true ? undefined : defaultChoice,
    includes: include === undefined ? () => true : pathMatcher(include.includes("/") ? include : `**/${include}`, true),
    include: include !== undefined && isPlainGlob(include) ? include : undefined,
    perFile: args.max_matches_per_file ?? total + 1,
    total
  }
  return yield* searchLines(search, (yield* filesByRipgrep(search, find)) ?? (yield* filesByWalk(search)))
})

/** The first `total` matches, or the first `total` files with matches. */
const firstMatches = (files: ReadonlyArray<FileMatches>, total: number, namesOnly: boolean) => {
  const shown: Array<FileMatches> = []
  let count = 0
  let isCut = false
  for (const { lines, place } of files) {
    const room = total - count
    isCut = isCut || lines.length > room
    if (room <= 0) break
    const kept = lines.slice(0, namesOnly ? 1 : room)
    count += kept.length
    shown.push({ place, lines: kept })
  }
  return { shown, count, isCut }
}

/** Matches of a file with the lines around them. */
const withContext = (
  all: ReadonlyArray<string>,
  lines: ReadonlyArray<MatchedLine>,
  before: number,
  after: number
): ReadonlyArray<string> => {
  const matched = new Set(lines.map(({ number }) => number))
  const shown = new Set<number>()
  for (const { number } of lines) {
    for (let i = Math.max(1, number - before); i <= Math.min(all.length, number + after); i += 1) shown.add(i)
  }
  return [...shown]
    .sort((one, other) => one - other)
    .map((number) => {
      const text = cutLine(all[number - 1] ?? "")
      return matched.has(number) ? `L${number}: ${text}` : `L${number}- ${text}`
    })
}

const linesToShow = Effect.fnUntraced(function* ({ lines, place }: FileMatches, before: number, after: number) {
  const plain = lines.map(({ number, text }) => `L${number}: ${cutLine(text)}`)
  if (before === 0 && after === 0) return plain
  const workspace = yield* Workspace
  const fs = workspace.files(yield* FileSystem.FileSystem)
  const bytes = yield* read(place, place).pipe(Effect.provideService(FileSystem.FileSystem, fs), Effect.option)
  return Option.isSome(bytes) ? withContext(linesOf(decodeFile(bytes.value)), lines, before, after) : plain
})

/** The answer: matches with their files and line numbers, or the names of the files. */
const answerOf = Effect.fnUntraced(function* (
  args: Parameters,
  targets: ReadonlyArray<string>,
  files: ReadonlyArray<FileMatches>
) {
  const workspace = yield* Workspace
  const {
    context = 0,
    include_pattern: include,
    names_only = false,
    total_max_matches: total = defaultMaxMatches
  } = args
  const { count, isCut, shown } = firstMatches(files, total, names_only)
  const [target = workspace.root] = targets
  const where =
    targets.length === 1 ? `in path "${workspace.shown(target)}"` : `in the ${targets.length} folders of the workspace`
  const filter = include === undefined ? "" : ` (filter: "${include}")`
  const head = `for pattern "${args.pattern}" ${where}${filter}`
  if (count === 0) return { value: `No matches found ${head}.`, display: textDisplay("no matches") }
  const limited = isCut ? ` (only the first ${total} are shown)` : ""
  if (names_only) {
    return {
      value: `Found ${count} file(s) with matches ${head}${limited}:\n${shown.map(({ place }) => workspace.shown(place)).join("\n")}`,
      display: textDisplay(`${count} ${count === 1 ? "file" : "files"}`)
    }
  }
  const blocks = yield* Effect.forEach(shown, (file) =>
    Effect.map(
      linesToShow(file, args.before ?? context, args.after ?? context),
      (lines) => `File: ${workspace.shown(file.place)}\n${lines.join("\n")}\n---\n`
    )
  )
  return {
    value: `Found ${count} match(es) ${head}${limited}:\n---\n${blocks.join("")}`.trimEnd(),
    display: textDisplay(`${count} ${count === 1 ? "match" : "matches"}${isCut ? " (more were found)" : ""}`)
  }
})

/**
 * The `search_file_content` tool: the lines that match a pattern, with their files and numbers.
 *
 * Where ripgrep is installed and understands the pattern, it lists the files to search, else all files are searched, with the same results.
 */
export const searchFiles: Effect.Effect<Tool, never, Needs> = Effect.gen(function* () {
  const platform = yield* Effect.context<Needs>()
  const path = yield* Path.Path
  const workspace = yield* Workspace
  const defaultChoice = choiceOf(undefined, yield* FileLimits)
  const find = yield* makeProgramFinder(workspace.folders)
  return make({
    name: "search_file_content",
    aliases: ["grep_search"],
    description:
      "Searches the contents of files for a regular expression, line by line. Returns the matching lines with their files and line numbers. Binary files and files that ignore rules exclude are not searched.",
    parameters: Parameters,
    result: Schema.String,
    kind: "read",
    // Longer than `searchTimeout`, whose message says more.
    timeout: "40 seconds",
    adaptArguments,
    title: ({ dir_path, pattern }) => (dir_path === undefined ? pattern : `${pattern} in ${dir_path}`),
    run: Effect.fn("SearchFiles.run")(function* (args) {
      const wanted = yield* wantedOf(args)
      const targets =
        args.dir_path === undefined
          ? outermost(workspace.folders, path.sep)
          : [yield* pathArgument(workspace, args.dir_path, "read")]
      const files = yield* Effect.forEach(targets, (target) =>
        searchTarget(args, wanted, target, defaultChoice, find)
      ).pipe(
        Effect.provideContext(platform),
        Effect.catchTag("BadPattern", ({ message }) => failure("grep_execution_error", `pattern: ${message}`)),
        Effect.timeoutOrElse({
          duration: searchTimeout,
          orElse: () =>
            failure(
              "grep_execution_error",
              `the search took more than ${searchTimeout}; search a smaller folder or with a simpler pattern`
            )
        })
      )
      return yield* Effect.provideContext(answerOf(args, targets, files.flat()), platform)
    })
  })
})
