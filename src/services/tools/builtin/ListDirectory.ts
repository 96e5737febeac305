/** The `list_directory` tool: lists one folder. */

import { ByteSize, Effect, type FileSystem, Option, type Path, type PlatformError, Schema } from "effect"
import { diskErrorText } from "../../../domain/text/DiskErrors.ts"
import { quotedPath } from "../../../domain/text/WorkspacePath.ts"
import { textDisplay, type ToolResult } from "../../../domain/tools/ToolResult.ts"
import { pathMatcher } from "../../../domain/workspace/PathGlob.ts"
import { rulesOf } from "../../workspace/IgnoreRules.ts"
import type { Workspace } from "../../workspace/Workspace.ts"
import { make, pathArgument, type Tool, ToolFailure } from "../Tool.ts"
import {
  choiceOf,
  ExcludePatterns,
  fileReader,
  filterOptions,
  matchingFiles,
  withFolderName
} from "./FolderToolArguments.ts"

const parameters = Schema.Struct({
  dir_path: Schema.String.annotate({ description: "The folder, absolute or relative to the root of the workspace" }),
  ignore: Schema.optionalKey(ExcludePatterns).annotate({
    description: "Glob patterns of names to leave out, for example *.log"
  }),
  file_filtering_options: filterOptions
})

interface Entry {
  readonly name: string
  readonly isFolder: boolean
  /** The text behind the name. */
  readonly note: string
}

const byName = (one: Entry, other: Entry): number =>
  one.isFolder === other.isFolder ? (one.name < other.name ? -1 : 1) : one.isFolder ? -1 : 1

const concurrentStats = 16

const failureOf = (error: PlatformError.PlatformError, shown: string): ToolFailure => {
  switch (error.reason._tag) {
    case "NotFound":
      return new ToolFailure({ message: `there is no folder ${shown}`, type: "file_not_found" })
    case "BadResource":
      return new ToolFailure({
        message: `${shown} is not a folder; read_file reads a file`,
        type: "path_is_not_a_directory"
      })
    default:
      return new ToolFailure({
        message: `${shown} could not be listed: ${diskErrorText(error)}`,
        type: "ls_execution_error"
      })
  }
}

const listingOf = (folder: string, entries: ReadonlyArray<Entry>, ignored: number): ToolResult<string> => {
  const lines = entries.map(({ isFolder, name, note }) =>
    isFolder ? `[DIR] ${quotedPath(name)}` : `${quotedPath(name)} (${note})`
  )
  const omitted = ignored === 0 ? "" : `(${ignored} ignored)`
  return {
    value: `Directory listing for ${quotedPath(folder)}:\n${lines.join("\n")}${omitted === "" ? "" : `\n\n${omitted}`}`,
    display: textDisplay(`${lines.length} ${lines.length === 1 ? "entry" : "entries"} ${omitted}`.trimEnd())
  }
}

/** The `list_directory` tool: folders first, files with their sizes. */
export const listDirectory: Effect.Effect<Tool, never, FileSystem.FileSystem | Path.Path | Workspace> = Effect.gen(
  function* () {
    const { fs, limits, path, platform, workspace } = yield* fileReader

    /** A link is listed as its target; one that is broken or leads out of the workspace is marked as such. */
    const entryOf = Effect.fnUntraced(function* (folder: string, { name, type }: FileSystem.DirectoryEntry) {
      const here = path.join(folder, name)
      const place =
        type === "SymbolicLink" ? yield* workspace.path(here, "read").pipe(Effect.option) : Option.some(here)
      if (Option.isNone(place)) return { name, isFolder: false, note: "a link that leads out of the workspace" }
      const info = yield* fs.stat(place.value).pipe(Effect.option)
      if (Option.isNone(info))
        return { name, isFolder: false, note: type === "SymbolicLink" ? "a broken link" : "unreadable" }
      const isFolder = info.value.type === "Directory"
      const size = ByteSize.toNumberUnsafe(info.value.size)
      return { name, isFolder, note: info.value.type === "File" ? `${size} bytes` : "not a regular file" }
    })

    return make({
      name: "list_directory",
      description: "Lists one folder: folders first, files with their sizes. Ignored files are only counted.",
      parameters,
      result: Schema.String,
      kind: "read",
      adaptArguments: withFolderName,
      title: ({ dir_path }) => dir_path,
      run: Effect.fn("ListDirectory.run")(function* ({ dir_path, file_filtering_options, ignore = [] }) {
        const folder = yield* pathArgument(workspace, dir_path, "read")
        const shown = workspace.shown(folder)
        const entries = yield* fs.readDirectoryEntries(folder).pipe(Effect.mapError((error) => failureOf(error, shown)))
        if (entries.length === 0)
          return { value: `Directory ${quotedPath(folder)} is empty.`, display: textDisplay("empty") }
        const rules = yield* rulesOf(folder, { ...choiceOf(file_filtering_options, limits), vendored: false }).pipe(
          Effect.provideContext(platform)
        )
        const globs = ignore.map((pattern) => pathMatcher(pattern, true))
        const names = entries.map(({ name }) => name)
        const visible = new Set(yield* matchingFiles(names, (name) => !globs.some((matches) => matches(name))))
        const found = yield* Effect.forEach(
          entries.filter(({ name }) => visible.has(name)),
          (entry) => entryOf(folder, entry),
          { concurrency: concurrentStats }
        )
        const kept = yield* Effect.filter(found, ({ isFolder, name }) =>
          Effect.as(rules.pause, !rules.ignores(name, isFolder))
        )
        return listingOf(folder, kept.sort(byName), found.length - kept.length)
      })
    })
  }
)
