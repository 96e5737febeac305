import { Context, Effect, Fiber, Path, PlatformError, Stream } from "effect"
import { ChildProcess } from "effect/process"
import { childEnvironment } from "../../../domain/text/ChildEnvironment.ts"
import { isWithin } from "../../../domain/text/WorkspacePath.ts"
import { Environment } from "../../platform/Environment.ts"
import { ownRules, rulesOf, vendoredFolders } from "../../workspace/IgnoreRules.ts"
import { Workspace } from "../../workspace/Workspace.ts"
import { ignoreFilter, type Needs, type Search } from "./LineSearch.ts"

/**
 * Lists the files in which ripgrep finds a pattern, so that a search reads only these. Ripgrep walks folders by path, so a folder
 * replaced by a link may lead it out of the workspace: its list is only a hint, and the lines come from files of the workspace.
 */

/** The path of ripgrep. Undefined: it is not installed in any folder that programs may come from. */
export const Ripgrep = Context.Reference<Effect.Effect<string | undefined>>(
  "palimpsest/services/tools/builtin/RipgrepSearch/Ripgrep",
  {
    defaultValue: () => Effect.undefined
  }
)

const ripgrep = Effect.fnUntraced(function* (args: ReadonlyArray<string>, cwd: string) {
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
    forceKillAfter: "1 second"
  })
})

/** The files that ripgrep lists, absolute. Undefined: it failed. */
const listFiles = Effect.fnUntraced(function* (args: ReadonlyArray<string>, cwd: string) {
  const path = yield* Path.Path
  const handle = yield* ripgrep(args, cwd)
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
export const isPlainGlob = (pattern: string): boolean => /^[\w.*{},-]+$/.test(pattern) && !pattern.includes("**")

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
  "--crlf",
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
export const filesByRipgrep = Effect.fnUntraced(function* (
  search: Search
): Effect.fn.Return<ReadonlyArray<string> | undefined, never, Needs> {
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
  // Not installed, or killed.
  const listed = yield* Effect.catchTag(listFiles(args, base), "PlatformError", () => Effect.undefined)
  if (listed === undefined) return undefined
  const isOurs = ignoreFilter(choice === undefined || isFile ? undefined : yield* rulesOf(target, choice))
  return yield* Effect.filter(listed, (place) => {
    const relative = path.relative(target, place).replaceAll(path.sep, "/")
    return isFile || search.includes(relative) ? isOurs(relative) : Effect.succeed(false)
  })
})
