/** The `read_many_files` tool: reads several files at once. */

import { Effect, FileSystem, Glob, Option, type Path, Result, Schema } from "effect"
import type { Part } from "../../../domain/content/Content.ts"
import { leadsOut, quotedPath } from "../../../domain/text/WorkspacePath.ts"
import { textDisplay, type ToolResult } from "../../../domain/tools/ToolResult.ts"
import { kindOf } from "../../../domain/workspace/FileKind.ts"
import {
  asksFor,
  defaultExcludes,
  isPattern,
  maxFiles,
  maxTotalBytes,
  type Skipped,
  skipReason,
  summary
} from "../../../domain/workspace/ManyFiles.ts"
import { pathMatcher } from "../../../domain/workspace/PathGlob.ts"
import { read as readRegular } from "../../platform/RegularFile.ts"
import { isIgnored, rulesOf } from "../../workspace/IgnoreRules.ts"
import type { Workspace } from "../../workspace/Workspace.ts"
import { make, pathArgument, type Tool } from "../Tool.ts"
import {
  choiceOf,
  type FileReader,
  fileReader,
  filesBelow,
  filterOptions,
  GlobPatterns,
  withoutNulls
} from "./FolderToolArguments.ts"
import { fileResult } from "./ReadFile.ts"

const Parameters = Schema.Struct({
  include: GlobPatterns.check(Schema.isMinLength(1)).annotate({
    description: "Files, folders or glob patterns, from the root of the workspace: README.md, src, **/*.ts"
  }),
  exclude: Schema.optionalKey(GlobPatterns).annotate({ description: "Glob patterns of files to leave out" }),
  recursive: Schema.optionalKey(Schema.Boolean).annotate({ description: "Has no effect: ** decides" }),
  useDefaultExcludes: Schema.optionalKey(Schema.Boolean).annotate({
    description: "Whether to leave out node_modules, archives and the like. Default: true"
  }),
  file_filtering_options: filterOptions
})
type Parameters = typeof Parameters.Type

/** Accepts the older name `paths`, and one pattern in place of a list. */
const older = ({ include, paths, ...rest }: Readonly<Record<string, unknown>>): unknown => {
  const patterns = include ?? paths
  return withoutNulls({ ...rest, include: typeof patterns === "string" ? [patterns] : patterns })
}

/** What an entry of `include` stands for in a folder: a pattern, or a file with its path from there. Undefined: nothing. */
const lookUp = Effect.fnUntraced(function* ({ fs, path, workspace }: FileReader, folder: string, each: string) {
  const place = yield* Effect.option(workspace.path(path.resolve(folder, each), "read"))
  const info = Option.isSome(place) ? yield* Effect.option(fs.stat(place.value)) : Option.none()
  if (Option.isNone(place) || Option.isNone(info)) {
    return isPattern(each) ? { pattern: path.isAbsolute(each) ? path.relative(folder, each) : each } : undefined
  }
  const relative = path.relative(folder, place.value).replaceAll(path.sep, "/")
  if (info.value.type !== "Directory") return { file: place.value, relative }
  return { pattern: relative === "" ? "**" : `${Glob.escape(relative)}/**` }
})

/** Whether a path matches one of these patterns. */
const anyMatcher = (patterns: ReadonlyArray<string>) => {
  const matchers = patterns.map((each) => pathMatcher(each, false))
  return (relative: string) => matchers.some((matches) => matches(relative))
}

/** The files to read in one folder of the workspace, absolute. */
const filesIn = Effect.fnUntraced(
  function* (
    reader: FileReader,
    folder: string,
    { exclude = [], file_filtering_options, include, useDefaultExcludes = true }: Parameters
  ) {
    const choice = choiceOf(file_filtering_options, reader.limits)
    const isExcluded = anyMatcher([...exclude, ...(useDefaultExcludes ? defaultExcludes : [])])
    const found = new Set<string>()
    const patterns: Array<string> = []
    for (const each of include) {
      const one = yield* lookUp(reader, folder, each)
      if (one === undefined) continue
      if (one.pattern !== undefined) patterns.push(one.pattern)
      else if (leadsOut(one.relative)) found.add(one.file)
      else if (!isExcluded(one.relative) && !(yield* isIgnored(yield* rulesOf(folder, choice), one.relative))) {
        found.add(one.file)
      }
    }
    if (patterns.length === 0) return found
    const isWanted = anyMatcher(patterns)
    const { files } = yield* filesBelow(folder, choice, (file) => isWanted(file) && !isExcluded(file))
    return new Set([...found, ...files])
  },
  (work, { platform }) => Effect.provideContext(work, platform)
)

/** What was read so far. */
interface ReadFiles {
  bytes: number
  readonly parts: Array<string>
  readonly media: Array<Part>
  readonly names: Array<string>
  readonly skipped: Array<Skipped>
}

/** Adds a file to what was read. Returns why it was skipped. */
const readFile = Effect.fnUntraced(function* (
  { fs, limits, path }: FileReader,
  { include }: Parameters,
  into: ReadFiles,
  file: string,
  shown: string
) {
  if (into.bytes >= maxTotalBytes) return "20 MiB had been read"
  const read = yield* Effect.result(
    Effect.provideService(readRegular(file, shown, limits.bytes), FileSystem.FileSystem, fs)
  )
  if (Result.isFailure(read)) return read.failure.message
  const bytes = read.success
  const ending = path.extname(file)
  const kind = kindOf(ending, bytes)
  const why = skipReason(
    kind,
    include.some((each) => asksFor(each, path.basename(file), ending))
  )
  if (why !== undefined) return why
  const { media = [], value } = yield* fileResult(kind, bytes, shown, { file_path: file }, limits)
  into.bytes += bytes.length
  into.parts.push(`--- ${quotedPath(file)} ---\n\n${value}\n\n`)
  into.media.push(...media)
  into.names.push(shown)
  return undefined
})

/** The answer to a call. `beyond`: how many more files match. */
const answerOf = (
  { include }: Parameters,
  { media, names, parts, skipped }: ReadFiles,
  beyond: number
): ToolResult<string> => {
  if (names.length === 0 && skipped.length === 0) {
    return { value: `No files matching ${include.join(", ")} were found.`, display: textDisplay("no files") }
  }
  const more = beyond === 0 ? [] : [`(${beyond} more files match; only the first ${maxFiles} are read: ask for fewer)`]
  const left = [...skipped.map(({ file, why }) => `(skipped ${file}: ${why})`), ...more]
  return {
    value: [`${parts.join("")}--- End of content ---`, ...left].join("\n"),
    media: media.length === 0 ? undefined : media,
    display: textDisplay([summary(names, skipped), ...more].join("\n"))
  }
}

const run = Effect.fn("ReadManyFiles.run")(function* (reader: FileReader, args: Parameters) {
  const { workspace } = reader
  // A path outside the workspace is refused, not silently left out.
  for (const each of args.include) if (!isPattern(each)) yield* pathArgument(workspace, each, "read")
  const found = yield* Effect.forEach(workspace.folders, (folder) => filesIn(reader, folder, args))
  const all = [...new Set(found.flatMap((each) => [...each]))].sort()
  const into: ReadFiles = { bytes: 0, parts: [], media: [], names: [], skipped: [] }
  for (const file of all.slice(0, maxFiles)) {
    const shown = workspace.shown(file)
    const why = yield* readFile(reader, args, into, file, shown)
    if (why !== undefined) into.skipped.push({ file: shown, why })
  }
  return answerOf(args, into, Math.max(0, all.length - maxFiles))
})

/** The `read_many_files` tool: all files that match patterns, one after the other. */
export const readManyFiles: Effect.Effect<Tool, never, FileSystem.FileSystem | Path.Path | Workspace> = Effect.gen(
  function* () {
    const reader = yield* fileReader
    return make({
      name: "read_many_files",
      description:
        "Shows many files at once, each under its path: those that are named, that lie in a named folder, or that match a glob pattern. Images, PDFs, sound and film are left out unless a pattern names them.",
      parameters: Parameters,
      result: Schema.String,
      kind: "read",
      timeout: "2 minutes",
      adaptArguments: older,
      title: ({ include }) => include.join(" "),
      run: (args) => run(reader, args)
    })
  }
)
