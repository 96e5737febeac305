import { Effect, FileSystem, Glob, Option, Path, Result, Schema, Stream } from "effect"
import type { Part } from "../../../domain/content/Content.ts"
import { quotedPath } from "../../../domain/text/WorkspacePath.ts"
import { textDisplay } from "../../../domain/tools/ToolResult.ts"
import { kindOf } from "../../../domain/workspace/FileKind.ts"
import { read } from "../../platform/RegularFile.ts"
import { FileLimits } from "../../workspace/FileLimits.ts"
import { isIgnored, rulesOf, walk } from "../../workspace/IgnoreRules.ts"
import { Workspace } from "../../workspace/Workspace.ts"
import { make, pathArgument, type Tool } from "../Tool.ts"
import { choiceOf, filterOptions, withoutNulls } from "./FolderToolArguments.ts"
import { pathMatcher } from "./Glob.ts"
import { fileResult } from "./ReadFile.ts"

const Patterns = Schema.Array(Schema.NonEmptyString)

const parameters = Schema.Struct({
  include: Patterns.check(Schema.isMinLength(1)).annotate({
    description: "Files, folders or glob patterns, from the root of the workspace: README.md, src, **/*.ts"
  }),
  exclude: Schema.optionalKey(Patterns).annotate({ description: "Glob patterns of files to leave out" }),
  recursive: Schema.optionalKey(Schema.Boolean).annotate({ description: "Has no effect: ** decides" }),
  useDefaultExcludes: Schema.optionalKey(Schema.Boolean).annotate({
    description: "Whether to leave out node_modules, archives and the like. Default: true"
  }),
  file_filtering_options: filterOptions
})

/** Accepts the older name `paths`, and one pattern in place of a list. */
const older = ({ include, paths, ...rest }: Readonly<Record<string, unknown>>): unknown => {
  const wanted = include ?? paths
  return withoutNulls({ ...rest, include: typeof wanted === "string" ? [wanted] : wanted })
}

/** Files and folders that are left out by default. */
export const defaultExcludes = [
  ..."node_modules .git bower_components .svn .hg .vscode .idea dist build coverage __pycache__"
    .split(" ")
    .map((folder) => `**/${folder}/**`),
  "**/*.{zip,tar,gz,bz2,xz,7z,rar,jar,war,exe,dll,so,dylib,class,o,a,bin,dat,wasm,pyc,pyo}",
  "**/*.{doc,docx,xls,xlsx,ppt,pptx,odt,ods,odp}",
  "**/.DS_Store",
  "**/.env"
]

/** Maximum bytes read by one call, so that a pattern that matches everything ends. */
export const maxTotalBytes = 20 * 1_024 * 1_024

/** Maximum number of files read by one call: even small files take time. */
export const maxFiles = 2_000

/** Whether a path looks like a glob pattern. A file may still have that name. */
export const isPattern = (text: string): boolean => /[*?[\]{}]/.test(text)

/** Whether a pattern names such files explicitly, by extension or by name. */
export const asksFor = (pattern: string, base: string, ending: string): boolean => {
  const lower = pattern.toLowerCase()
  const name = ending === "" ? base : base.slice(0, -ending.length)
  return (ending !== "" && lower.includes(ending.toLowerCase())) || lower.includes(name.toLowerCase())
}

/** A file that was not read, and why. */
export interface Skipped {
  readonly file: string
  readonly why: string
}

const maxNamedFiles = { read: 10, skipped: 5 }

/** A few lines for the user on which files were read and which were not. */
export const summary = (read: ReadonlyArray<string>, skipped: ReadonlyArray<Skipped>): string => {
  const more = (all: number, named: number) => (all > named ? [`… and ${all - named} more`] : [])
  return [
    `${read.length} ${read.length === 1 ? "file" : "files"} read`,
    ...read.slice(0, maxNamedFiles.read),
    ...more(read.length, maxNamedFiles.read),
    ...(skipped.length === 0 ? [] : [`${skipped.length} skipped`]),
    ...skipped.slice(0, maxNamedFiles.skipped).map(({ file, why }) => `${file}: ${why}`),
    ...more(skipped.length, maxNamedFiles.skipped)
  ].join("\n")
}

/** The `read_many_files` tool: reads all files that match, one after the other. */
export const readManyFiles: Effect.Effect<Tool, never, FileSystem.FileSystem | Path.Path | Workspace> = Effect.gen(
  function* () {
    const platform = yield* Effect.context<FileSystem.FileSystem | Path.Path | Workspace>()
    const path = yield* Path.Path
    const workspace = yield* Workspace
    const fs = workspace.files(yield* FileSystem.FileSystem)
    const limits = yield* FileLimits

    const typeOf = (place: string) =>
      fs.stat(place).pipe(
        Effect.map(({ type }) => type),
        Effect.orElseSucceed(() => undefined)
      )

    /** The files to read in one folder of the workspace, absolute. */
    const filesIn = Effect.fnUntraced(function* (
      folder: string,
      { exclude = [], file_filtering_options, include, useDefaultExcludes = true }: typeof parameters.Type
    ) {
      const choice = choiceOf(file_filtering_options, limits)
      const excluded = [...exclude, ...(useDefaultExcludes ? defaultExcludes : [])].map((each) =>
        pathMatcher(each, false)
      )
      const found = new Set<string>()
      const patterns: Array<string> = []
      for (const each of include) {
        const place = yield* workspace.path(path.resolve(folder, each), "read").pipe(Effect.option)
        const type = Option.isSome(place) ? yield* typeOf(place.value) : undefined
        const relative = Option.isSome(place) ? path.relative(folder, place.value).replaceAll(path.sep, "/") : each
        if (type === "Directory") patterns.push(relative === "" ? "**" : `${Glob.escape(relative)}/**`)
        else if (type === undefined && isPattern(each))
          patterns.push(path.isAbsolute(each) ? path.relative(folder, each) : each)
        else if (Option.isSome(place) && type !== undefined) {
          if (relative.startsWith("..")) found.add(place.value)
          else if (!excluded.some((isExcluded) => isExcluded(relative))) {
            const rules = yield* rulesOf(folder, choice).pipe(Effect.provideContext(platform))
            if (!(yield* isIgnored(rules, relative))) found.add(place.value)
          }
        }
      }
      if (patterns.length === 0) return found
      const wanted = patterns.map((each) => pathMatcher(each, false))
      yield* walk(folder, choice).pipe(
        Stream.runForEach(({ files }) =>
          Effect.sync(() => {
            for (const file of files) {
              if (wanted.some((isWanted) => isWanted(file)) && !excluded.some((isExcluded) => isExcluded(file))) {
                found.add(path.join(folder, file))
              }
            }
          })
        ),
        Effect.provideContext(platform)
      )
      return found
    })

    return make({
      name: "read_many_files",
      description:
        "Shows many files at once, each under its path: those that are named, that lie in a named folder, or that match a glob pattern. Images, PDFs, sound and film are left out unless a pattern names them.",
      parameters,
      result: Schema.String,
      kind: "read",
      timeout: "2 minutes",
      adaptArguments: older,
      title: ({ include }) => include.join(" "),
      run: Effect.fn("ReadManyFiles.run")(function* (wanted) {
        // A path outside the workspace is refused, not silently left out.
        for (const each of wanted.include) if (!isPattern(each)) yield* pathArgument(workspace, each, "read")
        const found = yield* Effect.forEach(workspace.folders, (folder) => filesIn(folder, wanted))
        const all = [...new Set(found.flatMap((each) => [...each]))].sort()
        const files = all.slice(0, maxFiles)
        const beyond = all.length - files.length
        const parts: Array<string> = []
        const media: Array<Part> = []
        const names: Array<string> = []
        const skipped: Array<Skipped> = []
        let total = 0
        for (const file of files) {
          const shown = workspace.shown(file)
          const ending = path.extname(file)
          if (total >= maxTotalBytes) {
            skipped.push({ file: shown, why: "20 MiB had been read" })
            continue
          }
          const bytes = yield* Effect.result(
            read(file, shown, limits.bytes).pipe(Effect.provideService(FileSystem.FileSystem, fs))
          )
          if (Result.isFailure(bytes)) {
            skipped.push({ file: shown, why: bytes.failure.message })
            continue
          }
          const kind = kindOf(ending, bytes.success)
          const isAskedFor = wanted.include.some((each) => asksFor(each, path.basename(file), ending))
          if (kind._tag === "Binary" || (kind._tag === "Media" && !isAskedFor)) {
            skipped.push({
              file: shown,
              why: kind._tag === "Binary" ? "binary" : `${kind.what}, not asked for by name`
            })
            continue
          }
          const result = yield* fileResult(kind, bytes.success, shown, { file_path: file }, limits)
          total += bytes.success.length
          parts.push(`--- ${quotedPath(file)} ---\n\n${result.value}\n\n`)
          media.push(...(result.media ?? []))
          names.push(shown)
        }
        if (names.length === 0 && skipped.length === 0) {
          return {
            value: `No files matching ${wanted.include.join(", ")} were found.`,
            display: textDisplay("no files")
          }
        }
        const more =
          beyond === 0 ? [] : [`(${beyond} more files match; only the first ${maxFiles} are read: ask for fewer)`]
        const left = [...skipped.map(({ file, why }) => `(skipped ${file}: ${why})`), ...more]
        return {
          value: [`${parts.join("")}--- End of content ---`, ...left].join("\n"),
          media: media.length === 0 ? undefined : media,
          display: textDisplay([summary(names, skipped), ...more].join("\n"))
        }
      })
    })
  }
)
