import { Context, Effect, FileSystem, Path, type PlatformError, Schema, Semaphore } from "effect"
import { editGrant } from "../../domain/Approval.ts"
import { decode, encode } from "../../domain/Bytes.ts"
import { diskTrouble, isNotFound } from "../../domain/DiskTrouble.ts"
import { type FileDiff, fileDiff } from "../../domain/FileDiff.ts"
import { type ToolResult, words } from "../../domain/ToolResult.ts"
import { read } from "../RegularFile.ts"
import { type Question, ToolFailure } from "../Tool.ts"
import * as Leftovers from "../Leftovers.ts"
import * as WholeFile from "../WholeFile.ts"
import { Workspace } from "../Workspace.ts"

/** What the model is told of a change (seed 004's appendix). */
export const Changed = Schema.Struct({ fileDiff: Schema.String, fileName: Schema.String })
export type Changed = typeof Changed.Type

/** A file as it was when it was looked at. */
export interface Seen {
  /** As the model names it. */
  readonly given: string
  /** Absolute, links followed. */
  readonly path: string
  /** As a person is shown it. */
  readonly shown: string
  /** Undefined: there is no such file. */
  readonly text: string | undefined
  readonly mode: number
}

/** What a file will be, worked out from what it was. */
export interface Change {
  readonly seen: Seen
  readonly after: string
  readonly diff: FileDiff
}

/** Looks at files of the workspace and changes them. */
export interface FileChanges {
  /** The file as it is now; a failure says why it can be no text to change. */
  readonly look: (given: string) => Effect.Effect<Seen, ToolFailure>
  /** What it would take to make a file hold this text. Nothing is written. */
  readonly plan: (seen: Seen, after: string) => Change
  /** What a person is asked before it is written; undefined where nothing changes. */
  readonly question: (change: Change) => Question | undefined
  /**
   * Writes what was worked out, whole or not at all, its folders too. Where the file is no longer what it was then, nothing is
   * written.
   */
  readonly write: (change: Change) => Effect.Effect<ToolResult<Changed>, ToolFailure>
}

/** Paths that a title may cut (Tool.ts). */
const longestTitle = 100

/**
 * Whether a file says which programs run: the hooks and settings of git, and the agents, skills and settings of this program.
 * Who lets files be edited did not mean these: each edit of them is asked for.
 */
const startsPrograms = (place: string): boolean => /(?:^|[\\/])\.(?:git|palimpsest|gemini)(?:[\\/]|$)/i.test(place)

/** One file is written at a time, whichever agent writes it: between the last look and the rename nobody else's edit comes. */
const Gate = Context.Reference<Semaphore.Semaphore>("palimpsest/services/tools/FileChange/Gate", {
  defaultValue: () => Semaphore.makeUnsafe(1)
})

const failureType = (trouble: string, { reason }: PlatformError.PlatformError): string => {
  if (reason._tag === "PermissionDenied") return "permission_denied"
  return trouble.includes("no space") ? "no_space_left" : "file_write_failure"
}

/** Changes of files in this workspace. */
export const fileChanges: Effect.Effect<FileChanges, never, FileSystem.FileSystem | Path.Path | Workspace> = Effect.gen(
  function* () {
    const context = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const workspace = yield* Workspace
    const gate = yield* Gate

    const look = Effect.fn("FileChange.look")(function* (given: string): Effect.fn.Return<Seen, ToolFailure> {
      const place = yield* workspace.path(given, "write")
      const shown = workspace.shown(place)
      const info = yield* fs.stat(place).pipe(
        Effect.catchIf(isNotFound, () => Effect.undefined),
        Effect.mapError(
          (error) =>
            new ToolFailure({ message: `${shown} cannot be read: ${diskTrouble(error)}`, type: "read_content_failure" })
        )
      )
      if (info === undefined) return { given, path: place, shown, text: undefined, mode: 0 }
      const bytes = yield* Effect.provideService(read(place, shown), FileSystem.FileSystem, fs)
      return { given, path: place, shown, text: decode(bytes).text, mode: info.mode & 0o7777 }
    })

    const changed = ({ shown }: Seen) =>
      new ToolFailure({
        message: `${shown} was changed by somebody else meanwhile, so it was not written; read it again`,
        type: "file_changed"
      })

    const isOwn = (place: string) => workspace.isOwn?.(place) ?? Effect.succeed(false)

    const replace = ({ after, seen }: Change, mode: number | undefined) =>
      Effect.acquireUseRelease(
        // What replaces a private file is private from the beginning; a new one gets what the system gives.
        WholeFile.claim(seen.path, mode === undefined ? undefined : 0o600),
        (file) =>
          Effect.gen(function* () {
            // A folder on the way may have become a link that leads out. One that becomes one later lacks this file.
            if ((yield* fs.realPath(file)) !== file) return yield* changed(seen)
            yield* WholeFile.fill(file, encode(after), mode)
            yield* fs.rename(file, seen.path)
            yield* Leftovers.sweep(path.dirname(file))
            // Interrupted, the write would go on behind our back.
          }).pipe(Effect.uninterruptible),
        (file, exit) => (exit._tag === "Success" ? Effect.void : Effect.ignore(fs.remove(file, { force: true })))
      ).pipe(Effect.provideContext(context))

    /** What a person is asked to allow: all of it, and the place that is meant where its name alone does not say so. */
    const detailOf = ({ after, diff: { diff }, seen }: Change): string => {
      const { given, path: place, shown, text = "" } = seen
      if (diff === "") return `${shown} is made, empty`
      const isPlain = path.resolve(workspace.root, given) === place && given.length <= longestTitle
      const where = isPlain ? "" : `The file is ${shown}:\n`
      // A diff says of binary files that they differ, and no more.
      const isBinary = text.includes("\0") || after.includes("\0")
      return isBinary ? `${shown} is binary, or will be. All that it will hold:\n${after}` : `${where}${diff}`
    }

    const resultOf = ({ diff: { added, diff, removed }, seen }: Change): ToolResult<Changed> => ({
      value: { fileDiff: diff, fileName: path.basename(seen.path) },
      display:
        diff === "" ? words(`${seen.shown} reads so already`) : { _tag: "Diff", file: seen.shown, diff, added, removed }
    })

    return {
      look,
      plan: (seen, after) => ({ seen, after, diff: fileDiff(path.basename(seen.path), seen.text ?? "", after) }),
      question: (change) =>
        change.after === change.seen.text
          ? undefined
          : {
              detail: detailOf(change),
              touches: [change.seen.path],
              ...(startsPrograms(change.seen.path)
                ? { grants: [], covers: "this edit" }
                : { grants: [editGrant], covers: "edits of files" })
            },
      write: Effect.fn("FileChange.write")(function* (change): Effect.fn.Return<ToolResult<Changed>, ToolFailure> {
        const { after, seen } = change
        const now = yield* look(seen.given)
        if (now.path !== seen.path || now.text !== seen.text) {
          return yield* changed(seen)
        }
        if (after === seen.text) return resultOf(change)
        const writing = Effect.gen(function* () {
          if (seen.text === undefined) {
            const folder = path.dirname(seen.path)
            if (!(yield* isOwn(seen.path))) {
              yield* fs.makeDirectory(folder, { recursive: true })
              return yield* replace(change, undefined)
            }
            // A plan is kept as all else of the program's home is: nobody else reads it.
            yield* fs.makeDirectory(folder, { recursive: true, mode: 0o700 })
            return yield* replace(change, 0o600)
          }
          // A rename would also replace what may not be written.
          yield* fs.access(seen.path, { writable: true })
          yield* replace(change, seen.mode)
        })
        yield* writing.pipe(
          Effect.mapError((error) => {
            if (error instanceof ToolFailure) return error
            const trouble = diskTrouble(error)
            return new ToolFailure({
              message: `${seen.shown} was not written: ${trouble}`,
              type: failureType(trouble, error)
            })
          })
        )
        return resultOf(change)
      }, gate.withPermit)
    }
  }
)
