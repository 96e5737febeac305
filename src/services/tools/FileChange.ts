import { Context, Effect, FileSystem, Path, type PlatformError, Schema, Semaphore } from "effect"
import { editGrant, fileGrant } from "../../domain/Approval.ts"
import { decode, encode } from "../../domain/Bytes.ts"
import { diskTrouble, isNotFound } from "../../domain/DiskTrouble.ts"
import { type FileDiff, fileDiff } from "../../domain/FileDiff.ts"
import {
  hooksFolder,
  hooksReason,
  isPackageFile,
  packageReason,
  type SteeringOptions,
  steeringReason
} from "../../domain/SteeringFiles.ts"
import { type ToolResult, words } from "../../domain/ToolResult.ts"
import { isWithin } from "../../domain/WorkspacePath.ts"
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
  readonly question: (change: Change) => Effect.Effect<Question | undefined>
  /**
   * Writes what was worked out, whole or not at all, its folders too. Where the file is no longer what it was then, nothing is
   * written.
   */
  readonly write: (change: Change) => Effect.Effect<ToolResult<Changed>, ToolFailure>
}

/** Paths that a title may cut (Tool.ts). */
const longestTitle = 100

/** Which edits are asked for whatever edits may run. */
export interface Steering extends SteeringOptions {
  /** Files that run or steer here whatever they are called: absolute, and why; asked for with each edit. Absent: none. */
  readonly named?: Effect.Effect<ReadonlyArray<readonly [place: string, why: string]>> | undefined
}

/** Which edits are asked for where nothing is set: what SteeringFiles.ts lists. */
export const SteeringSettings = Context.Reference<Steering>("palimpsest/services/tools/FileChange/SteeringSettings", {
  defaultValue: () => ({ memoryNames: [], buildFiles: false })
})

/** How often a temporary file is tried to be removed: its folder may stand under another name for a moment. */
const removals = 20

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
    const path = yield* Path.Path
    const workspace = yield* Workspace
    const fs = workspace.files(yield* FileSystem.FileSystem)
    const context = Context.make(FileSystem.FileSystem, fs).pipe(Context.add(Path.Path, path))
    const gate = yield* Gate
    const steering = yield* SteeringSettings

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
            yield* WholeFile.fill(file, encode(after), mode)
            yield* fs.rename(file, seen.path)
            yield* Leftovers.sweep(path.dirname(file))
            // Interrupted, the write would go on behind our back.
          }).pipe(Effect.uninterruptible),
        (file, exit) =>
          exit._tag === "Success"
            ? Effect.void
            : Effect.ignore(Effect.retry(fs.remove(file, { force: true }), { times: removals - 1 }))
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

    const folderOf = (place: string): string =>
      workspace.folders
        .filter((folder) => isWithin(folder, place, path.sep))
        .reduce((longest, folder) => (folder.length > longest.length ? folder : longest), "")

    /**
     * Why this edit is asked for whatever edits may run. Judged by where it leads and by how it is named: a link between the two
     * may stand for either.
     */
    const reasonOf = Effect.fnUntraced(function* ({ after, seen }: Change): Effect.fn.Return<string | undefined> {
      const places = [seen.path, path.resolve(workspace.root, seen.given)]
      const names = new Set(places.map((place) => place.toLowerCase()))
      const named = (yield* steering.named ?? Effect.succeed([])).find(([place]) => names.has(place.toLowerCase()))
      if (named !== undefined) return named[1]
      for (const folder of workspace.folders) {
        // A file instead of the folder, in worktrees, says where that is; the usual names do for them.
        const config = yield* Effect.orElseSucceed(fs.readFileString(path.join(folder, ".git", "config")), () => "")
        const hooks = hooksFolder(config)
        if (hooks === undefined) continue
        const held = path.resolve(folder, hooks).toLowerCase()
        if ([...names].some((name) => isWithin(held, name, path.sep))) return hooksReason
      }
      for (const place of places) {
        const reason = steeringReason(place, folderOf(place), steering)
        if (reason !== undefined) return reason
      }
      return places.some(isPackageFile) ? packageReason(seen.text, after) : undefined
    })

    const questionOf = Effect.fnUntraced(function* (change: Change): Effect.fn.Return<Question> {
      const { path: place, shown } = change.seen
      const because = yield* reasonOf(change)
      const asked = { detail: detailOf(change), touches: [place] }
      if (because === undefined) return { ...asked, grants: [editGrant], covers: "edits of files" }
      return {
        ...asked,
        because,
        grants: [fileGrant(place)],
        covers: `edits of ${shown}`,
        otherwise: "leave this file as it is, and say in your answer what should be changed in it"
      }
    })

    return {
      look,
      plan: (seen, after) => ({ seen, after, diff: fileDiff(path.basename(seen.path), seen.text ?? "", after) }),
      question: (change) => (change.after === change.seen.text ? Effect.undefined : questionOf(change)),
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
