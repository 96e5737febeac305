/** What the tools for files and folders share: the reader of the workspace's files, and schemas of arguments. */

import { type Context, Effect, FileSystem, Path, Schema, Stream } from "effect"
import { globProblem } from "../../../domain/workspace/PathGlob.ts"
import { FileLimits, type FileSettings } from "../../workspace/FileLimits.ts"
import { type IgnoreChoice, walk } from "../../workspace/IgnoreRules.ts"
import { Workspace } from "../../workspace/Workspace.ts"

/** A workspace, and what its files are read with. */
export interface FileReader {
  /** The checked file system of the workspace. */
  readonly fs: FileSystem.FileSystem
  readonly limits: FileSettings
  readonly path: Path.Path
  /** What the functions that walk through folders need. */
  readonly platform: Context.Context<FileSystem.FileSystem | Path.Path | Workspace>
  readonly workspace: Workspace["Service"]
}

/** The reader of the workspace's files. */
export const fileReader = Effect.gen(function* () {
  const workspace = yield* Workspace
  return {
    fs: workspace.files(yield* FileSystem.FileSystem),
    limits: yield* FileLimits,
    path: yield* Path.Path,
    platform: yield* Effect.context<FileSystem.FileSystem | Path.Path | Workspace>(),
    workspace
  } satisfies FileReader
})

const isBounded = Schema.makeFilter(globProblem)
const maxPatterns = Schema.isMaxLength(100)

/** A glob pattern whose size is bounded. */
export const GlobPattern = Schema.NonEmptyString.check(isBounded)

/** The glob patterns of one call. */
export const GlobPatterns = Schema.Array(GlobPattern).check(maxPatterns)

/** Patterns that may be empty: those of names to leave out. */
export const ExcludePatterns = Schema.Array(Schema.String.check(isBounded)).check(maxPatterns)

/** Files matched at once. */
const filesPerTurn = 64

/** Returns the files that match, in turns between which others run. */
export const matchingFiles = Effect.fnUntraced(function* (
  files: ReadonlyArray<string>,
  matches: (file: string) => boolean
) {
  const found: Array<string> = []
  for (let at = 0; at < files.length; at += filesPerTurn) {
    if (at > 0) yield* Effect.yieldNow
    for (const each of files.slice(at, at + filesPerTurn).filter(matches)) found.push(each)
  }
  return found
})

/** The files below a folder that match, absolute, and how many are ignored. */
export const filesBelow = Effect.fnUntraced(function* (
  folder: string,
  choice: IgnoreChoice,
  matches: (relative: string) => boolean
) {
  const path = yield* Path.Path
  const files: Array<string> = []
  let ignored = 0
  yield* Stream.runForEach(walk(folder, choice), (walked) =>
    Effect.map(matchingFiles(walked.files, matches), (found) => {
      ignored += walked.ignored
      for (const file of found) files.push(path.join(folder, file))
    })
  )
  return { files, ignored }
})

/** Whether ignore rules apply. Default: as the settings say. */
export const filterOptions = Schema.optionalKey(
  Schema.Struct({
    respect_git_ignore: Schema.optionalKey(Schema.Boolean),
    respect_gemini_ignore: Schema.optionalKey(Schema.Boolean)
  })
).annotate({
  description: "Whether Git's ignore rules and the workspace's own exclude files. Default: both"
})

/** The ignore rules of a call: its arguments, else the settings. */
export const choiceOf = (
  args:
    | {
        readonly respect_git_ignore?: boolean | undefined
        readonly respect_gemini_ignore?: boolean | undefined
      }
    | undefined,
  defaults: Pick<FileSettings, "respectGeminiIgnore" | "respectGitIgnore">
): IgnoreChoice => ({
  git: args?.respect_git_ignore ?? defaults.respectGitIgnore,
  own: args?.respect_gemini_ignore ?? defaults.respectGeminiIgnore,
  vendored: true
})

/** Arguments without those that are null: models send null for an absent argument. */
export const withoutNulls = (args: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> =>
  Object.fromEntries(Object.entries(args).filter(([, value]) => value !== null && value !== undefined))

/** Arguments under the name `dir_path`, with the older name `path` accepted. */
export const withFolderName = ({ dir_path, path, ...rest }: Readonly<Record<string, unknown>>): unknown =>
  withoutNulls({ ...rest, dir_path: dir_path ?? path })
