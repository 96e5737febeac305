import { Clock, Effect, FileSystem, Glob, Option, Path, Schema, Stream } from "effect"
import { quotedPath } from "../../../domain/text/WorkspacePath.ts"
import { textDisplay } from "../../../domain/tools/ToolResult.ts"
import { FileLimits } from "../../workspace/FileLimits.ts"
import { walk } from "../../workspace/IgnoreRules.ts"
import { Workspace } from "../../workspace/Workspace.ts"
import { make, pathArgument, type Tool, ToolFailure } from "../Tool.ts"
import { choiceOf, withoutNulls } from "./FolderToolArguments.ts"

const parameters = Schema.Struct({
  pattern: Schema.NonEmptyString.annotate({ description: "The glob pattern, for example **/*.ts or src/{a,b}/*.md" }),
  dir_path: Schema.optionalKey(Schema.String).annotate({ description: "The folder to search. Default: the workspace" }),
  case_sensitive: Schema.optionalKey(Schema.Boolean).annotate({ description: "Whether case matters. Default: false" }),
  respect_git_ignore: Schema.optionalKey(Schema.Boolean).annotate({
    description: "Whether .gitignore applies. Usually true"
  }),
  respect_gemini_ignore: Schema.optionalKey(Schema.Boolean).annotate({
    description: "Whether the workspace's own ignore files apply. Usually true"
  })
})

const older = ({ dir_path, path, ...rest }: Readonly<Record<string, unknown>>): unknown =>
  withoutNulls({ ...rest, dir_path: dir_path ?? path })

/** Matches a pattern against paths with forward slashes. Hidden files are treated like others. */
export const pathMatcher = (pattern: string, isCaseSensitive: boolean): ((relative: string) => boolean) => {
  const glob = Glob.make(isCaseSensitive ? pattern : pattern.toLowerCase(), { dot: true })
  return (relative) => Glob.match(glob, isCaseSensitive ? relative : relative.toLowerCase())
}

interface Match {
  readonly place: string
  readonly modified: number
}

/** Files changed within this time come first. */
const recent = 24 * 60 * 60 * 1_000

/** Recently changed files first, the newest at the top; the others by name. */
const byFreshness =
  (now: number) =>
  (one: Match, other: Match): number => {
    const isFresh = now - one.modified < recent
    const isOtherFresh = now - other.modified < recent
    if (isFresh && isOtherFresh && one.modified !== other.modified) return other.modified - one.modified
    if (isFresh !== isOtherFresh) return isFresh ? -1 : 1
    return one.place < other.place ? -1 : 1
  }

const concurrentStats = 16

/** The `glob` tool: finds files by name. */
export const glob: Effect.Effect<Tool, never, FileSystem.FileSystem | Path.Path | Workspace> = Effect.gen(function* () {
  const platform = yield* Effect.context<FileSystem.FileSystem | Path.Path | Workspace>()
  const path = yield* Path.Path
  const workspace = yield* Workspace
  const fs = workspace.files(yield* FileSystem.FileSystem)
  const limits = yield* FileLimits

  const matchOf = Effect.fnUntraced(function* (place: string) {
    const info = yield* fs.stat(place).pipe(Effect.option)
    if (Option.isNone(info) || info.value.type !== "File") return []
    return [{ place, modified: Option.getOrElse(info.value.mtime, () => new Date(0)).getTime() }]
  })

  return make({
    name: "glob",
    description:
      "Finds files whose paths match a glob pattern and names them absolutely: what changed within a day first, newest at the top, the others by name.",
    parameters,
    result: Schema.String,
    kind: "read",
    timeout: "1 minute",
    adaptArguments: older,
    title: ({ dir_path, pattern }) => (dir_path === undefined ? pattern : `${pattern} in ${dir_path}`),
    run: Effect.fn("Glob.run")(function* (wanted) {
      const { case_sensitive = false, dir_path, pattern } = wanted
      if (pattern.split(/[\\/]/).includes("..")) {
        return yield* new ToolFailure({
          message: `the pattern ${pattern} leads upwards; name a folder with dir_path instead`,
          type: "invalid_tool_params"
        })
      }
      const folders = dir_path === undefined ? workspace.folders : [yield* pathArgument(workspace, dir_path, "read")]
      const within = folders.join(", ")
      if (dir_path !== undefined) {
        const info = yield* fs.stat(within).pipe(Effect.option)
        if (Option.isNone(info) || info.value.type !== "Directory") {
          return yield* new ToolFailure({
            message: `there is no folder ${workspace.shown(within)}`,
            type: "file_not_found"
          })
        }
      }
      const found = new Set<string>()
      let ignored = 0
      for (const folder of folders) {
        const begin = folder.endsWith("/") ? folder : `${folder}/`
        const relative = pattern.startsWith(begin) ? pattern.slice(begin.length) : pattern
        const matches = pathMatcher(relative, case_sensitive)
        yield* walk(folder, choiceOf(wanted, limits)).pipe(
          Stream.runForEach((each) =>
            Effect.sync(() => {
              ignored += each.ignored
              for (const file of each.files) if (matches(file)) found.add(path.join(folder, file))
            })
          ),
          Effect.provideContext(platform)
        )
        // A file name may look like a pattern: `app/[id]/page.tsx`.
        const literal = yield* workspace.path(path.join(folder, relative), "read").pipe(Effect.option)
        if (Option.isSome(literal)) {
          const info = yield* fs.stat(literal.value).pipe(Effect.option)
          if (Option.isSome(info) && info.value.type === "File") found.add(literal.value)
        }
      }
      const now = yield* Clock.currentTimeMillis
      const matches = (yield* Effect.forEach(found, matchOf, { concurrency: concurrentStats }))
        .flat()
        .sort(byFreshness(now))
      const left = ignored === 0 ? "" : ` (${ignored} ignored)`
      if (matches.length === 0) {
        return {
          value: `No files found matching pattern "${pattern}" within ${within}${left}`,
          display: textDisplay("no files")
        }
      }
      return {
        value: `Found ${matches.length} file(s) matching "${pattern}" within ${within}, sorted by modification time (newest first):\n${matches.map(({ place }) => quotedPath(place)).join("\n")}`,
        display: textDisplay(`${matches.length} ${matches.length === 1 ? "file" : "files"}`)
      }
    })
  })
})
