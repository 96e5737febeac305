/** The `glob` tool: finds files by name. */

import { Clock, Effect, type FileSystem, Option, type Path, Schema } from "effect"
import { quotedPath } from "../../../domain/text/WorkspacePath.ts"
import { textDisplay } from "../../../domain/tools/ToolResult.ts"
import { pathMatcher } from "../../../domain/workspace/PathGlob.ts"
import type { Workspace } from "../../workspace/Workspace.ts"
import { make, pathArgument, type Tool, ToolFailure } from "../Tool.ts"
import {
  choiceOf,
  type FileReader,
  fileReader,
  filesBelow,
  GlobPattern,
  withFolderName
} from "./FolderToolArguments.ts"

const Parameters = Schema.Struct({
  pattern: GlobPattern.annotate({ description: "The glob pattern, for example **/*.ts or src/{a,b}/*.md" }),
  dir_path: Schema.optionalKey(Schema.String).annotate({ description: "The folder to search. Default: the workspace" }),
  case_sensitive: Schema.optionalKey(Schema.Boolean).annotate({ description: "Whether case matters. Default: false" }),
  respect_git_ignore: Schema.optionalKey(Schema.Boolean).annotate({
    description: "Whether .gitignore applies. Usually true"
  }),
  respect_gemini_ignore: Schema.optionalKey(Schema.Boolean).annotate({
    description: "Whether the workspace's own ignore files apply. Usually true"
  })
})
type Parameters = typeof Parameters.Type

interface Match {
  readonly place: string
  readonly modified: number
}

/** Files changed within this time come first. */
const recentMillis = 24 * 60 * 60 * 1_000

/** Recently changed files first, the newest at the top; the others by name. */
const byFreshness =
  (now: number) =>
  (one: Match, other: Match): number => {
    const isFresh = now - one.modified < recentMillis
    const isOtherFresh = now - other.modified < recentMillis
    if (isFresh !== isOtherFresh) return isFresh ? -1 : 1
    if (isFresh && one.modified !== other.modified) return other.modified - one.modified
    return one.place < other.place ? -1 : 1
  }

const maxConcurrentStats = 16

const infoOf = ({ fs }: FileReader, place: string) => Effect.map(Effect.option(fs.stat(place)), Option.getOrUndefined)

const matchOf = (reader: FileReader, place: string) =>
  Effect.map(infoOf(reader, place), (info): ReadonlyArray<Match> =>
    info?.type === "File" ? [{ place, modified: Option.getOrElse(info.mtime, () => new Date(0)).getTime() }] : []
  )

/** The folders to search: the one that a call names, or those of the workspace. */
const foldersOf = Effect.fnUntraced(function* (reader: FileReader, { dir_path, pattern }: Parameters) {
  const { workspace } = reader
  if (pattern.split(/[\\/]/).includes("..")) {
    return yield* new ToolFailure({
      message: `the pattern ${pattern} leads upwards; name a folder with dir_path instead`,
      type: "invalid_tool_params"
    })
  }
  if (dir_path === undefined) return workspace.folders
  const folder = yield* pathArgument(workspace, dir_path, "read")
  if ((yield* infoOf(reader, folder))?.type === "Directory") return [folder]
  return yield* new ToolFailure({ message: `there is no folder ${workspace.shown(folder)}`, type: "file_not_found" })
})

/** The files of a folder that match, and how many were ignored. */
const filesIn = Effect.fnUntraced(function* (reader: FileReader, folder: string, args: Parameters) {
  const { limits, path, platform, workspace } = reader
  const { case_sensitive = false, pattern } = args
  const prefix = folder.endsWith("/") ? folder : `${folder}/`
  const relative = pattern.startsWith(prefix) ? pattern.slice(prefix.length) : pattern
  const matches = pathMatcher(relative, case_sensitive)
  const { files, ignored } = yield* Effect.provideContext(filesBelow(folder, choiceOf(args, limits), matches), platform)
  // A file name may look like a pattern: `app/[id]/page.tsx`.
  const literal = yield* Effect.option(workspace.path(path.join(folder, relative), "read"))
  return { files: [...files, ...Option.toArray(literal)], ignored }
})

const run = Effect.fn("Glob.run")(function* (reader: FileReader, args: Parameters) {
  const { pattern } = args
  const folders = yield* foldersOf(reader, args)
  const searched = yield* Effect.forEach(folders, (folder) => filesIn(reader, folder, args))
  const found = new Set(searched.flatMap(({ files }) => files))
  const ignored = searched.reduce((sum, each) => sum + each.ignored, 0)
  const now = yield* Clock.currentTimeMillis
  const matches = (yield* Effect.forEach(found, (place) => matchOf(reader, place), { concurrency: maxConcurrentStats }))
    .flat()
    .sort(byFreshness(now))
  const shownFolders = folders.join(", ")
  if (matches.length === 0) {
    const note = ignored === 0 ? "" : ` (${ignored} ignored)`
    return {
      value: `No files found matching pattern "${pattern}" within ${shownFolders}${note}`,
      display: textDisplay("no files")
    }
  }
  return {
    value: `Found ${matches.length} file(s) matching "${pattern}" within ${shownFolders}, sorted by modification time (newest first):\n${matches.map(({ place }) => quotedPath(place)).join("\n")}`,
    display: textDisplay(`${matches.length} ${matches.length === 1 ? "file" : "files"}`)
  }
})

/** The `glob` tool: the files whose paths match a pattern, recently changed ones first. */
export const glob: Effect.Effect<Tool, never, FileSystem.FileSystem | Path.Path | Workspace> = Effect.gen(function* () {
  const reader = yield* fileReader
  return make({
    name: "glob",
    description:
      "Finds files whose paths match a glob pattern and names them absolutely: what changed within a day first, newest at the top, the others by name.",
    parameters: Parameters,
    result: Schema.String,
    kind: "read",
    timeout: "1 minute",
    adaptArguments: withFolderName,
    title: ({ dir_path, pattern }) => (dir_path === undefined ? pattern : `${pattern} in ${dir_path}`),
    run: (args) => run(reader, args)
  })
})
