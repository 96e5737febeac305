import { Context, Effect, Fiber, FileSystem, Option, Path, PlatformError, Scope, Stream } from "effect"
import { ChildProcess } from "effect/process"
import { childEnvironment } from "../../../domain/text/ChildEnvironment.ts"
import { isWithin } from "../../../domain/text/WorkspacePath.ts"
import { cutLine, decodeFile, linesOf } from "../../../domain/workspace/FileText.ts"
import { Environment } from "../../platform/Environment.ts"
import { LineMatcher, type MatchedLine } from "../../platform/LineMatcher.ts"
import { read } from "../../platform/RegularFile.ts"
import { ownRules, rulesOf, vendoredFolders } from "../../workspace/IgnoreRules.ts"
import { Workspace } from "../../workspace/Workspace.ts"
import {
  concurrentFiles,
  type FileMatches,
  ignoreFilter,
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

/** The notice that ripgrep prints after the name of a file in which it found a NUL byte after some matches. */
const binaryNotice =
  /: (?:WARNING: stopped searching binary file after match|[Bb]inary file matches) \(found "\\0" byte around offset \d+\)\n/

/** Beyond this many matches the search stops collecting, lists the files with matches, and searches those in batches. */
const maxRipgrepMatches = 2_000
/** Files searched by one ripgrep process when they are given by name. */
const maxFilesPerRun = 200

/** Longest line of output that is collected, name included. */
const maxOutputLineBytes = 1_024 * 1_024

/** The content of one piece of the output. */
interface RipgrepOutput {
  readonly matches: ReadonlyArray<{ readonly name: string } & MatchedLine>
  readonly notices: ReadonlyArray<RipgrepNotice>
}

/** A notice about a binary file. A file name may look the same: then `all` is the name of a file. */
interface RipgrepNotice {
  readonly all: string
  readonly binary: string
}

/** Reads `name NUL number:line`, with notices before the name, piece by piece. Undefined: the output has another form. */
const lineReader = () => {
  let rest = ""
  const noticesIn = (text: string): { readonly notices: ReadonlyArray<RipgrepNotice>; readonly name: string } => {
    const notices: Array<RipgrepNotice> = []
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
    add: (piece: string): RipgrepOutput | undefined => {
      const text = rest + piece
      const matches: Array<{ readonly name: string } & MatchedLine> = []
      const notices: Array<RipgrepNotice> = []
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
      return rest.length > maxOutputLineBytes ? undefined : { matches, notices }
    },
    end: (): RipgrepOutput | undefined => {
      const { name, notices } = noticesIn(rest)
      return name === "" ? { matches: [], notices } : undefined
    }
  }
}

interface RipgrepRun {
  readonly files: Map<string, Array<MatchedLine>>
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

/** Runs ripgrep. Undefined: it failed, or its output is ambiguous. */
const run = Effect.fnUntraced(function* (args: ReadonlyArray<string>, cwd: string, maxMatches: number) {
  const workspace = yield* Workspace
  const fs = workspace.files(yield* FileSystem.FileSystem)
  const path = yield* Path.Path
  const handle = yield* ripgrep([...plainLines, ...args], cwd, "pipe")
  const files = new Map<string, Array<MatchedLine>>()
  const notices: Array<RipgrepNotice> = []
  const { add, end } = lineReader()
  let count = 0
  let isRead = true
  const take = (output: RipgrepOutput | undefined) => {
    if (output === undefined) {
      isRead = false
      return
    }
    for (const { name, number, text } of output.matches) {
      const place = path.resolve(cwd, name)
      const lines = files.get(place)
      if (lines === undefined) files.set(place, [{ number, text }])
      else lines.push({ number, text })
    }
    count += output.matches.length
    notices.push(...output.notices)
  }
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
    Stream.takeWhile(() => isRead && count <= maxMatches),
    Stream.runForEach((piece) => Effect.sync(() => take(add(piece))))
  )
  if (count <= maxMatches && isRead) {
    // Its exit code is 2 also where some file could not be read.
    const code = yield* handle.exitCode
    if (code > 1 && (code > 2 || (yield* Fiber.join(complaint)))) return undefined
    take(end())
  }
  if (!isRead) return undefined
  const isThere = (name: string) => Effect.orElseSucceed(fs.exists(path.resolve(cwd, name)), () => false)
  // A file name may look like a notice, and a notice like a name. When they cannot be told apart, the search starts over without ripgrep.
  const isClear = yield* Effect.forEach(
    notices,
    ({ all, binary }) =>
      Effect.gen(function* () {
        if (yield* isThere(all)) return false
        return files.has(path.resolve(cwd, binary)) || (yield* isThere(binary))
      }),
    { concurrency: concurrentChecks }
  )
  if (isClear.includes(false)) return undefined
  for (const { binary } of notices) files.delete(path.resolve(cwd, binary))
  return { files, hasTooMany: count > maxMatches }
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

/** Searches a folder or file with ripgrep. Undefined: it is not installed, or cannot do this search exactly; use the other engine. */
export const searchWithRipgrep = Effect.fnUntraced(function* (
  search: Search
): Effect.fn.Return<ReadonlyArray<FileMatches> | undefined, never, Needs> {
  const path = yield* Path.Path
  const { folders } = yield* Workspace
  const { choice, include, isFile, pattern, perFile, target, total } = search
  if (pattern.rust === undefined) return undefined
  const base = folders.find((folder) => isWithin(folder, target, path.sep)) ?? (isFile ? path.dirname(target) : target)
  const own = yield* ownRules()
  if (choice?.own === true) {
    // In ripgrep git's rules override ours, so it misses files that ours include again; and it resolves the patterns of all ignore files
    // from one folder.
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
    ...["**/.git", ...(choice?.vendored === true ? vendoredFolders : [])].map((name) => `--glob=!${name}`),
    ...(include === undefined ? [] : [`--glob=${include}`]),
    `--regexp=${pattern.rust}`
  ]
  const rules = choice === undefined || isFile ? undefined : yield* rulesOf(target, choice)
  const isOurs = ignoreFilter(rules)
  const wanted = (place: string) => {
    const relative = path.relative(target, place).replaceAll(path.sep, "/")
    return isFile || search.isWanted(relative) ? isOurs(relative) : Effect.succeed(false)
  }
  const sorted = (ran: RipgrepRun): Array<FileMatches> =>
    [...ran.files].map(([place, lines]) => ({ place, lines })).sort((one, other) => (one.place < other.place ? -1 : 1))
  const where = `./${path.relative(base, target)}`

  const work = Effect.gen(function* () {
    const first = yield* run([...args, "--", where], base, maxRipgrepMatches)
    if (first === undefined) return undefined
    if (!first.hasTooMany) return yield* Effect.filter(sorted(first), ({ place: file }) => wanted(file))
    // Too many to collect: only the first files are searched.
    const all = yield* Effect.filter((yield* listFileNames([...args, "--", where], base)).sort(), wanted)
    const found: Array<FileMatches> = []
    let count = 0
    // Small batches, so that the search stops soon after `total`.
    const together = Math.max(1, Math.min(maxFilesPerRun, Math.floor(maxRipgrepMatches / perFile)))
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
  // Not installed, or killed: the other engine finds the same.
  const ran = yield* work.pipe(Effect.catchTag("PlatformError", () => Effect.undefined))
  return ran === undefined ? undefined : yield* Effect.scoped(confirmed(search, ran))
})

/**
 * Returns the matches of ripgrep that the files themselves confirm. Ripgrep walks folders by path, so a folder replaced by a link may
 * lead it out of the workspace. Its output is only a hint: a line counts only if a file of the workspace contains it. Files in which
 * some line differs are searched again.
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
    const isConfirmed = lines.every(({ number, text }) => {
      const line = all[number - 1]
      return line !== undefined && cutLine(line) === text
    })
    return { place, lines: isConfirmed ? lines : yield* searchOne(place, yield* matcher, perFile) }
  })
  return yield* takeMatches(
    total,
    Stream.fromIterable(ran).pipe(Stream.mapEffect(confirm, { concurrency: concurrentFiles }))
  )
})
