import { Context, Effect, Fiber, FileSystem, Option, Path, PlatformError, Schema, Scope, Stream } from "effect"
import { ChildProcess, type ChildProcessSpawner } from "effect/process"
import { childEnvironment } from "../../domain/ChildEnvironment.ts"
import { cutLine, decodeFile, encodingOf, linesOf } from "../../domain/FileText.ts"
import { parseSearch, type SearchPattern, without } from "../../domain/SearchPattern.ts"
import { words } from "../../domain/ToolResult.ts"
import { isWithin } from "../../domain/WorkspacePath.ts"
import { Environment } from "../Environment.ts"
import { FileLimits } from "../FileLimits.ts"
import { type FolderRules, type IgnoreChoice, ownRules, rulesOf, usualFolders, walk } from "../IgnoreRules.ts"
import { LineMatcher, type MatchedLine, type Matcher } from "../LineMatcher.ts"
import { finder } from "../Programs.ts"
import { look, read } from "../RegularFile.ts"
import { make, type Tool, ToolFailure } from "../Tool.ts"
import { Workspace } from "../Workspace.ts"
import { choiceOf, withoutNulls } from "./Filtering.ts"
import { pathMatcher } from "./Glob.ts"

const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))
const Around = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 200 }))

const parameters = Schema.Struct({
  pattern: Schema.NonEmptyString.annotate({ description: "A regular expression that lines are matched with" }),
  dir_path: Schema.optionalKey(Schema.String).annotate({
    description: "The folder or file to search; absent: the workspace"
  }),
  include_pattern: Schema.optionalKey(Schema.NonEmptyString).annotate({
    description: "Only files that match this glob pattern: *.ts, src/**"
  }),
  exclude_pattern: Schema.optionalKey(Schema.NonEmptyString).annotate({
    description: "A regular expression; lines that match it are left out"
  }),
  names_only: Schema.optionalKey(Schema.Boolean).annotate({ description: "Only the names of the files" }),
  max_matches_per_file: Schema.optionalKey(Count).annotate({ description: "At most so many lines of a file" }),
  total_max_matches: Schema.optionalKey(Count).annotate({ description: "At most so many lines in all; 100" }),
  case_sensitive: Schema.optionalKey(Schema.Boolean).annotate({ description: "Whether case counts; it does not" }),
  fixed_strings: Schema.optionalKey(Schema.Boolean).annotate({
    description: "Whether the pattern is plain text and no regular expression"
  }),
  context: Schema.optionalKey(Around).annotate({ description: "Lines to show around each match" }),
  after: Schema.optionalKey(Around).annotate({ description: "Lines to show after each match" }),
  before: Schema.optionalKey(Around).annotate({ description: "Lines to show before each match" }),
  no_ignore: Schema.optionalKey(Schema.Boolean).annotate({
    description: "Whether files that ignore rules leave out are searched too"
  })
})

const older = ({ dir_path, include, include_pattern, path, ...rest }: Readonly<Record<string, unknown>>): unknown =>
  withoutNulls({ ...rest, dir_path: dir_path ?? path, include_pattern: include_pattern ?? include })

/** The matches of one file. */
interface FileMatches {
  /** Absolute. */
  readonly place: string
  readonly lines: ReadonlyArray<MatchedLine>
}

/** What is searched for, and where. */
interface Search {
  readonly pattern: SearchPattern
  /** A folder, or one file. */
  readonly target: string
  readonly isFile: boolean
  readonly choice: IgnoreChoice | undefined
  /** Whether a file is wanted, by its path from the target. */
  readonly isWanted: (relative: string) => boolean
  /** The same for ripgrep, where it surely says no more than `isWanted`. */
  readonly include: string | undefined
  /** Matches that are looked for: in a file, and in all. */
  readonly perFile: number
  readonly total: number
}

type Needs =
  | FileSystem.FileSystem
  | Path.Path
  | Workspace
  | LineMatcher
  | Environment
  | ChildProcessSpawner.ChildProcessSpawner

// --- ripgrep --------------------------------------------------------------------------------------------------------------------

/**
 * Bytes of a line beyond which ripgrep shows its beginning only. Lines that long have more characters than are shown of any
 * (at most three bytes make one), so what it writes in place of the rest is cut off with it.
 */
const widest = 8_192

/** What it says of a file in which it found a NUL byte after some matches, with the file's name before it. */
const binaryNotice =
  /: (?:WARNING: stopped searching binary file after match|[Bb]inary file matches) \(found "\\0" byte around offset \d+\)\n/

/** More matches than this are not collected: the files that have any are asked for by name instead. */
const flood = 2_000
/** Files that are searched in one go when they are known by name. */
const mostTogether = 200

/** Characters of a line of its output beyond which it is given up, a name included: collecting it would take for ever. */
const longestLine = 1_024 * 1_024

/** What was read of the output. */
interface Said {
  readonly matches: ReadonlyArray<{ readonly name: string } & MatchedLine>
  readonly notices: ReadonlyArray<Notice>
}

/** What stands before a NUL: notices, each in a line of its own, then a name. A name may look the same. */
interface Notice {
  readonly all: string
  readonly binary: string
}

/** Reads `name NUL number:line` piece by piece; undefined: it is nothing of the kind. */
const lineReader = () => {
  let rest = ""
  const noticesIn = (text: string): { readonly notices: ReadonlyArray<Notice>; readonly name: string } => {
    const notices: Array<Notice> = []
    let name = text
    while (name.includes("\n")) {
      const found = binaryNotice.exec(name)
      if (found === null) break
      notices.push({ all: name, binary: name.slice(0, found.index) })
      name = name.slice(found.index + found[0].length)
    }
    return { notices, name }
  }
  return {
    add: (piece: string): Said | undefined => {
      const text = rest + piece
      const matches: Array<{ readonly name: string } & MatchedLine> = []
      const notices: Array<Notice> = []
      let at = 0
      for (;;) {
        const nul = text.indexOf("\0", at)
        const end = nul < 0 ? -1 : text.indexOf("\n", nul)
        if (end < 0) break
        const colon = text.indexOf(":", nul)
        const number = Number(text.slice(nul + 1, colon))
        if (colon < 0 || colon > end || !Number.isInteger(number) || number < 1) return undefined
        const before = noticesIn(text.slice(at, nul))
        notices.push(...before.notices)
        matches.push({
          name: before.name,
          number,
          text: cutLine(text.slice(colon + 1, text[end - 1] === "\r" ? end - 1 : end))
        })
        at = end + 1
      }
      rest = text.slice(at)
      return rest.length > longestLine ? undefined : { matches, notices }
    },
    end: (): Said | undefined => {
      const { name, notices } = noticesIn(rest)
      return name === "" ? { matches: [], notices } : undefined
    }
  }
}

/** What ripgrep found; undefined: it is not there, or does not understand the pattern. */
interface Ran {
  readonly files: Map<string, Array<MatchedLine>>
  readonly isFlood: boolean
}

/** Where ripgrep is, as the tool found it; undefined: it is not installed where programs are taken from. */
const Ripgrep = Context.Reference<Effect.Effect<string | undefined>>("palimpsest/services/tools/SearchFiles/Ripgrep", {
  defaultValue: () => Effect.undefined
})

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

/** Lines as they are: as JSON it would tell every single match, a hundred bytes for each letter of a long line. */
const plainLines = [
  "--color=never",
  "--no-heading",
  "--with-filename",
  "--line-number",
  "--null",
  `--max-columns=${widest}`,
  "--max-columns-preview"
]

/** Files that are asked for at the same time whether they are there. */
const atOnceAsked = 8

const run = Effect.fnUntraced(function* (args: ReadonlyArray<string>, cwd: string, most: number) {
  const workspace = yield* Workspace
  const fs = workspace.files(yield* FileSystem.FileSystem)
  const path = yield* Path.Path
  const handle = yield* ripgrep([...plainLines, ...args], cwd, "pipe")
  const files = new Map<string, Array<MatchedLine>>()
  const notices: Array<Notice> = []
  const { add, end } = lineReader()
  let count = 0
  let isRead = true
  const take = (said: Said | undefined) => {
    if (said === undefined) {
      isRead = false
      return
    }
    for (const { name, number, text } of said.matches) {
      const place = path.resolve(cwd, name)
      const known = files.get(place)
      if (known === undefined) files.set(place, [{ number, text }])
      else known.push({ number, text })
    }
    count += said.matches.length
    notices.push(...said.notices)
  }
  // Files that cannot be read it says nothing of; all else is an error in the pattern.
  const complaint = yield* Effect.forkScoped(
    Stream.runFold(
      Stream.decodeText(handle.stderr),
      () => false,
      (before, text) => before || text !== ""
    )
  )
  yield* handle.stdout.pipe(
    Stream.decodeText,
    Stream.takeWhile(() => isRead && count <= most),
    Stream.runForEach((piece) => Effect.sync(() => take(add(piece))))
  )
  if (count <= most && isRead) {
    // It ends with 2 where some file could not be read, too.
    const code = yield* handle.exitCode
    if (code > 1 && (code > 2 || (yield* Fiber.join(complaint)))) return undefined
    take(end())
  }
  if (!isRead) return undefined
  const isThere = (name: string) => Effect.orElseSucceed(fs.exists(path.resolve(cwd, name)), () => false)
  // Where a name looks like a notice, or a notice like a name, nobody can tell which it is.
  const isClear = yield* Effect.forEach(
    notices,
    ({ all, binary }) =>
      Effect.gen(function* () {
        if (yield* isThere(all)) return false
        return files.has(path.resolve(cwd, binary)) || (yield* isThere(binary))
      }),
    { concurrency: atOnceAsked }
  )
  if (isClear.includes(false)) return undefined
  for (const { binary } of notices) files.delete(path.resolve(cwd, binary))
  return { files, isFlood: count > most }
}, Effect.scoped)

/** The files that have any match, by name. */
const names = Effect.fnUntraced(function* (args: ReadonlyArray<string>, cwd: string) {
  const path = yield* Path.Path
  const handle = yield* ripgrep(["--files-with-matches", "--null", ...args], cwd)
  const text = yield* Stream.mkString(Stream.decodeText(handle.stdout))
  return text
    .split("\0")
    .filter((name) => name !== "")
    .map((name) => path.resolve(cwd, name))
}, Effect.scoped)

/** A pattern without anything that globs of ripgrep take otherwise: of names alone. */
const isPlainGlob = (pattern: string): boolean => /^[\w.*{},-]+$/.test(pattern) && !pattern.includes("**")

const byRipgrep = Effect.fnUntraced(function* (
  search: Search
): Effect.fn.Return<ReadonlyArray<FileMatches> | undefined, never, Needs> {
  const path = yield* Path.Path
  const { folders } = yield* Workspace
  const { choice, include, isFile, pattern, perFile, target, total } = search
  if (pattern.rust === undefined) return undefined
  const base = folders.find((folder) => isWithin(folder, target, path.sep)) ?? (isFile ? path.dirname(target) : target)
  const own = yield* ownRules()
  if (choice?.own === true) {
    // Its rules of git decide over all others: what ours take in again it would not see. And it knows one folder only
    // from which the lines of such files are meant.
    if (own.hasNegated || own.files.some((file) => path.dirname(file) !== base)) return undefined
  }
  const args = [
    "--no-config",
    "--hidden",
    "--no-mmap",
    "--no-messages",
    "--crlf",
    ...(pattern.isCaseSensitive ? ["--case-sensitive"] : ["--ignore-case"]),
    `--max-count=${perFile}`,
    "--no-ignore-dot",
    "--no-ignore-global",
    ...(choice?.git === true ? [] : ["--no-ignore-vcs", "--no-ignore-exclude"]),
    ...(choice?.own === true ? own.files.map((file) => `--ignore-file=${file}`) : []),
    ...["**/.git", ...(choice?.usual === true ? usualFolders : [])].map((name) => `--glob=!${name}`),
    ...(include === undefined ? [] : [`--glob=${include}`]),
    `--regexp=${pattern.rust}`
  ]
  const rules = choice === undefined || isFile ? undefined : yield* rulesOf(target, choice)
  const isOurs = keeper(rules)
  const wanted = (place: string) => {
    const relative = path.relative(target, place).replaceAll(path.sep, "/")
    return isFile || search.isWanted(relative) ? isOurs(relative) : Effect.succeed(false)
  }
  const sorted = (ran: Ran): Array<FileMatches> =>
    [...ran.files].map(([place, lines]) => ({ place, lines })).sort((one, other) => (one.place < other.place ? -1 : 1))
  const where = `./${path.relative(base, target)}`

  const work = Effect.gen(function* () {
    const first = yield* run([...args, "--", where], base, flood)
    if (first === undefined) return undefined
    if (!first.isFlood) return yield* Effect.filter(sorted(first), ({ place: file }) => wanted(file))
    // So many that only the first files are worth a look.
    const all = yield* Effect.filter((yield* names([...args, "--", where], base)).sort(), wanted)
    const found: Array<FileMatches> = []
    let count = 0
    // So few that not much more is found than is wanted.
    const together = Math.max(1, Math.min(mostTogether, Math.floor(flood / perFile)))
    for (let i = 0; i < all.length && count <= total; i += together) {
      const part = yield* run([...args, "--", ...all.slice(i, i + together)], base, Number.POSITIVE_INFINITY)
      if (part === undefined) return undefined
      for (const each of sorted(part)) {
        found.push(each)
        count += each.lines.length
      }
    }
    return found
  })
  // It is not there, or went away: the other way finds the same.
  const ran = yield* work.pipe(Effect.catchTag("PlatformError", () => Effect.undefined))
  return ran === undefined ? undefined : yield* Effect.scoped(confirmed(search, ran))
})

/**
 * What ripgrep said of files, as they say it themselves. It walks by itself, by paths, so a folder that became a link may have led
 * it out: what it tells is a hint where to look, and only lines that a file of the workspace has are passed on. Files in which
 * some line differs are searched once more.
 */
const confirmed = Effect.fnUntraced(function* (search: Search, ran: ReadonlyArray<FileMatches>) {
  const workspace = yield* Workspace
  const fs = workspace.files(yield* FileSystem.FileSystem)
  const matchers = yield* LineMatcher
  const scope = yield* Effect.scope
  const { pattern, perFile, total } = search
  const matcher = yield* Effect.cached(Scope.provide(matchers.make(pattern.source, pattern.flags), scope))
  const confirm = Effect.fnUntraced(function* ({ lines, place }: FileMatches) {
    const bytes = yield* Effect.option(Effect.provideService(read(place, place), FileSystem.FileSystem, fs))
    const all = Option.isSome(bytes) ? linesOf(decodeFile(bytes.value)) : []
    const isSaid = lines.every(({ number, text }) => {
      const line = all[number - 1]
      return line !== undefined && cutLine(line) === text
    })
    return { place, lines: isSaid ? lines : yield* searchOne(place, yield* matcher, perFile) }
  })
  return yield* upTo(total, Stream.fromIterable(ran).pipe(Stream.mapEffect(confirm, { concurrency: atOnce })))
})

/** The files with matches, until there are more lines than are wanted. */
const upTo = <E, R>(total: number, files: Stream.Stream<FileMatches, E, R>) =>
  Stream.suspend(() => {
    let count = 0
    return files.pipe(
      Stream.filter(({ lines }) => lines.length > 0),
      Stream.takeUntil(({ lines }) => {
        count += lines.length
        return count > total
      })
    )
  }).pipe(Stream.runCollect)

/** Whether a file is one that the rules leave in; the rules of each folder are read once. */
const keeper = (rules: FolderRules | undefined) => {
  const known = new Map<string, FolderRules | undefined>([["", rules]])
  /** The rules in a folder; undefined: it is left out itself. */
  const rulesIn = (folder: string): Effect.Effect<FolderRules | undefined> =>
    Effect.suspend(() => {
      if (known.has(folder)) return Effect.succeed(known.get(folder))
      const cut = folder.lastIndexOf("/")
      const name = folder.slice(cut + 1)
      return rulesIn(cut < 0 ? "" : folder.slice(0, cut)).pipe(
        Effect.flatMap((above) =>
          above === undefined || above.ignores(name, true)
            ? Effect.undefined
            : Effect.andThen(above.pause, above.enter(name))
        ),
        Effect.tap((found) => Effect.sync(() => known.set(folder, found)))
      )
    })
  return (relative: string): Effect.Effect<boolean> => {
    if (rules === undefined) return Effect.succeed(true)
    const cut = relative.lastIndexOf("/")
    return Effect.flatMap(rulesIn(cut < 0 ? "" : relative.slice(0, cut)), (found) =>
      found === undefined
        ? Effect.succeed(false)
        : Effect.as(found.pause, !found.ignores(relative.slice(cut + 1), false))
    )
  }
}

// --- without ripgrep ------------------------------------------------------------------------------------------------------------

/** Bytes that are read, and characters that are matched, in one go. */
const pieceSize = 1_048_576
/** Files that are searched at the same time. */
const atOnce = 8

/** The matches of one file, piece by piece. A file that has a NUL byte, or cannot be read, has none. */
const searchOne = Effect.fnUntraced(function* (place: string, matcher: Matcher, most: number) {
  const workspace = yield* Workspace
  const fs = workspace.files(yield* FileSystem.FileSystem)
  const found: Array<MatchedLine> = []
  let decoder: InstanceType<typeof TextDecoder> | undefined
  let whole: Array<Uint8Array> | undefined
  let rest = ""
  let before = 0
  let isBinary = false

  const take = Effect.fnUntraced(function* (text: string) {
    if (found.length < most) {
      const lines = yield* matcher.lines(text, most - found.length)
      for (const { number, text: line } of lines) found.push({ number: before + number, text: line })
    }
    let at = text.indexOf("\n")
    while (at >= 0) {
      before += 1
      at = text.indexOf("\n", at + 1)
    }
  })

  yield* fs.stream(place, { chunkSize: pieceSize }).pipe(
    Stream.takeUntil(() => isBinary || found.length >= most),
    Stream.runForEach((bytes) =>
      Effect.gen(function* () {
        if (decoder === undefined && whole === undefined) {
          const mark = encodingOf(bytes)?.encoding ?? "utf-8"
          // Rare enough to be read as a whole.
          if (mark.startsWith("utf-32")) whole = []
          else decoder = new TextDecoder(mark)
        }
        if (whole !== undefined) {
          whole.push(bytes.slice())
          return
        }
        if (decoder?.encoding === "utf-8" && bytes.includes(0)) {
          isBinary = true
          return
        }
        const text = rest + (decoder?.decode(bytes, { stream: true }) ?? "")
        const end = text.lastIndexOf("\n")
        if (end >= 0) yield* take(text.slice(0, end + 1))
        // Of a line without an end no more is kept than is matched.
        rest = text.slice(end + 1).slice(0, pieceSize)
      })
    ),
    Effect.ignore
  )
  if (isBinary) return []
  if (whole !== undefined) rest = decodeFile(new Uint8Array(whole.flatMap((each) => [...each])))
  else rest += decoder?.decode() ?? ""
  if (rest !== "") yield* take(rest)
  return found
})

const byHand = Effect.fnUntraced(function* (
  search: Search
): Effect.fn.Return<ReadonlyArray<FileMatches>, never, Needs | Scope.Scope> {
  const path = yield* Path.Path
  const { choice, isFile, isWanted, pattern, perFile, target, total } = search
  const files: Array<string> = []
  if (isFile) files.push(target)
  else {
    yield* walk(target, choice ?? { git: false, own: false, usual: false }).pipe(
      Stream.runForEach((found) =>
        Effect.sync(() => {
          for (const file of found.files) if (isWanted(file)) files.push(path.join(target, file))
        })
      )
    )
  }
  files.sort()
  const matchers = yield* LineMatcher
  const matcher = yield* matchers.make(pattern.source, pattern.flags)
  const searched = Stream.fromIterable(files).pipe(
    Stream.mapEffect((place) => Effect.map(searchOne(place, matcher, perFile), (lines) => ({ place, lines })), {
      concurrency: atOnce
    })
  )
  return yield* upTo(total, searched)
})

// --- the tool -------------------------------------------------------------------------------------------------------------------

const usualTotal = 100
/** Searches are given up after so long (spec 14). */
const patience = "30 seconds"

const failure = (type: string, message: string) => new ToolFailure({ message, type })

/** Lines of a file with those around them; groups that do not touch are parted. */
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

/** Searches the lines of files: by ripgrep where it is installed, else by itself, with the same results (spec 14). */
export const searchFiles: Effect.Effect<Tool, never, Needs> = Effect.gen(function* () {
  const platform = yield* Effect.context<Needs>()
  const path = yield* Path.Path
  const workspace = yield* Workspace
  const fs = workspace.files(yield* FileSystem.FileSystem)
  const usual = choiceOf(undefined, yield* FileLimits)
  const find = yield* finder(workspace.folders)

  /** The files with matches in one folder of the workspace, or what is searched instead of it. */
  const searchIn = Effect.fnUntraced(function* (
    search: Search
  ): Effect.fn.Return<ReadonlyArray<FileMatches>, never, Needs> {
    return (yield* byRipgrep(search)) ?? (yield* Effect.scoped(byHand(search)))
  })

  const contextOf = Effect.fnUntraced(function* ({ lines, place }: FileMatches, before: number, after: number) {
    const plain = lines.map(({ number, text }) => `L${number}: ${cutLine(text)}`)
    if (before === 0 && after === 0) return plain
    const bytes = yield* read(place, place).pipe(Effect.provideService(FileSystem.FileSystem, fs), Effect.option)
    return Option.isSome(bytes) ? withContext(linesOf(decodeFile(bytes.value)), lines, before, after) : plain
  })

  return make({
    name: "search_file_content",
    aliases: ["grep_search"],
    description:
      "Searches the contents of files for a regular expression, line by line, and shows the lines that match with their files and numbers. Binary files, and files that ignore rules leave out, are not searched.",
    parameters,
    result: Schema.String,
    kind: "read",
    // It says so itself, a little earlier.
    timeout: "40 seconds",
    older,
    title: ({ dir_path, pattern }) => (dir_path === undefined ? pattern : `${pattern} in ${dir_path}`),
    run: Effect.fn("SearchFiles.run")(function* (wanted) {
      const { case_sensitive = false, context = 0, fixed_strings = false, names_only = false } = wanted
      const total = wanted.total_max_matches ?? usualTotal
      const options = { isCaseSensitive: case_sensitive, isFixed: fixed_strings }
      const included = parseSearch(wanted.pattern, options)
      if (typeof included === "string") {
        return yield* failure("invalid_tool_params", `the pattern is no regular expression: ${included}`)
      }
      const excluded =
        wanted.exclude_pattern === undefined
          ? undefined
          : parseSearch(wanted.exclude_pattern, { isCaseSensitive: case_sensitive, isFixed: false })
      if (typeof excluded === "string") {
        return yield* failure("invalid_tool_params", `exclude_pattern is no regular expression: ${excluded}`)
      }
      const pattern = excluded === undefined ? included : without(included, excluded)
      if (typeof pattern === "string") {
        return yield* failure("invalid_tool_params", `pattern and exclude_pattern do not go together: ${pattern}`)
      }
      // What lies in another folder of the workspace is searched with it.
      const apart = workspace.folders.filter(
        (folder) => !workspace.folders.some((other) => other !== folder && isWithin(other, folder, path.sep))
      )
      const targets = wanted.dir_path === undefined ? apart : [yield* workspace.path(wanted.dir_path, "read")]
      const include = wanted.include_pattern
      const isWanted =
        include === undefined ? () => true : pathMatcher(include.includes("/") ? include : `**/${include}`, true)

      const work = Effect.gen(function* () {
        const found: Array<FileMatches> = []
        for (const target of targets) {
          const info = yield* fs.stat(target).pipe(Effect.option)
          if (Option.isNone(info)) {
            return yield* failure("file_not_found", `there is no file or folder ${workspace.shown(target)}`)
          }
          const isFile = info.value.type !== "Directory"
          if (isFile) {
            yield* Effect.provideService(look(target, workspace.shown(target)), FileSystem.FileSystem, fs)
          }
          found.push(
            ...(yield* searchIn({
              pattern,
              target,
              isFile,
              choice: wanted.no_ignore === true ? undefined : usual,
              isWanted,
              include: include !== undefined && isPlainGlob(include) ? include : undefined,
              perFile: wanted.max_matches_per_file ?? total + 1,
              total
            }))
          )
        }
        return found
      })

      const found = yield* work.pipe(
        Effect.provideContext(platform),
        Effect.provideService(Ripgrep, find("rg")),
        Effect.timeoutOrElse({
          duration: patience,
          orElse: () =>
            failure(
              "grep_execution_error",
              `the search took more than ${patience}; search a smaller folder or with a simpler pattern`
            )
        })
      )

      const shownFiles: Array<FileMatches> = []
      let count = 0
      let isCut = false
      for (const { lines, place } of found) {
        const room = total - count
        isCut = isCut || lines.length > room
        if (room <= 0) break
        const kept = lines.slice(0, names_only ? 1 : room)
        count += kept.length
        shownFiles.push({ place, lines: kept })
      }

      const [target = workspace.root] = targets
      const where =
        targets.length === 1
          ? `in path "${workspace.shown(target)}"`
          : `in the ${targets.length} folders of the workspace`
      const filter = include === undefined ? "" : ` (filter: "${include}")`
      const head = `for pattern "${wanted.pattern}" ${where}${filter}`
      if (count === 0) return { value: `No matches found ${head}.`, display: words("no matches") }
      const limited = isCut ? ` (only the first ${total} are shown)` : ""
      if (names_only) {
        return {
          value: `Found ${count} file(s) with matches ${head}${limited}:\n${shownFiles.map(({ place }) => workspace.shown(place)).join("\n")}`,
          display: words(`${count} ${count === 1 ? "file" : "files"}`)
        }
      }
      const blocks = yield* Effect.forEach(shownFiles, (file) =>
        Effect.map(
          contextOf(file, wanted.before ?? context, wanted.after ?? context),
          (lines) => `File: ${workspace.shown(file.place)}\n${lines.join("\n")}\n---\n`
        )
      )
      return {
        value: `Found ${count} match(es) ${head}${limited}:\n---\n${blocks.join("")}`.trimEnd(),
        display: words(`${count} ${count === 1 ? "match" : "matches"}${isCut ? " (more were found)" : ""}`)
      }
    })
  })
})
