/** Plans, asks about, writes and records changes of files, for the tools that edit. */

import { Context, Effect, FileSystem, Path, type PlatformError, Schema, Semaphore } from "effect"
import { decode, encode } from "../../../domain/text/Bytes.ts"
import { diskErrorText, isNotFound } from "../../../domain/text/DiskErrors.ts"
import { innermostFolder, isWithin } from "../../../domain/text/WorkspacePath.ts"
import { editGrant, fileGrant, grantIn } from "../../../domain/tools/Approval.ts"
import { type FileDiff, fileDiff } from "../../../domain/tools/FileDiff.ts"
import {
  hooksFolder,
  hooksReason,
  isPackageFile,
  packageReason,
  type SteeringOptions,
  steeringReason
} from "../../../domain/tools/SteeringFiles.ts"
import { type ToolResult, textDisplay } from "../../../domain/tools/ToolResult.ts"
import * as AtomicFile from "../../platform/AtomicFile.ts"
import { read } from "../../platform/RegularFile.ts"
import * as StaleFiles from "../../platform/StaleFiles.ts"
import { fileReadFailure, pathArgument, ToolFailure } from "../Tool.ts"
import { type FileReader, fileReader } from "./FolderToolArguments.ts"

/** The answer to the model, as Gemini CLI has it. */
export const FileChangeResult = Schema.Struct({ fileDiff: Schema.String, fileName: Schema.String })
export type FileChangeResult = typeof FileChangeResult.Type

/** A file as it was when it was read. */
export interface FileState {
  /** The path as the model gave it. */
  readonly requested: string
  /** Absolute, links followed. */
  readonly path: string
  /** The path as shown to the user. */
  readonly shown: string
  /** Undefined: the file does not exist. */
  readonly text: string | undefined
  readonly bytes: Uint8Array | undefined
  readonly mode: number
}

/** A file that is about to be changed. */
export interface FileRecord {
  /** Absolute, links followed. */
  readonly path: string
  /** Undefined: there is no file. */
  readonly before: { readonly bytes: Uint8Array; readonly mode: number } | undefined
  /** Undefined: the file is removed. */
  readonly after: Uint8Array | undefined
}

/** Keeps what a file holds before a change, and returns the effect that records the change once it is made. Default: nothing is kept. */
export const FileRecorder = Context.Reference<(record: FileRecord) => Effect.Effect<Effect.Effect<void>>>(
  "palimpsest/services/tools/FileChange/FileRecorder",
  { defaultValue: () => () => Effect.succeed(Effect.void) }
)

/** A planned change of a file. */
interface Change {
  readonly current: FileState
  readonly after: string
  readonly diff: FileDiff
}

/** Longer paths may be cut in a title, so the question repeats them. */
const maxTitlePathChars = 100

/** Which edits ask even where edits may run without asking. */
export interface Steering extends SteeringOptions {
  /** More files that run code or steer programs here, absolute, each with the reason; evaluated at each edit. Default: none. */
  readonly moreFiles?: Effect.Effect<ReadonlyArray<readonly [place: string, why: string]>> | undefined
}

/** The edits that ask. Default: those that SteeringFiles.ts lists. */
export const SteeringSettings = Context.Reference<Steering>("palimpsest/services/tools/FileChange/SteeringSettings", {
  defaultValue: () => ({ memoryNames: [], buildFiles: false })
})

/** Lets one agent write at a time, so that no other edit comes between the last check and the rename. */
export const Gate = Context.Reference<Semaphore.Semaphore>("palimpsest/services/tools/FileChange/Gate", {
  defaultValue: () => Semaphore.makeUnsafe(1)
})

const failureType = (trouble: string, { reason }: PlatformError.PlatformError): string => {
  if (reason._tag === "PermissionDenied") return "permission_denied"
  return trouble.includes("no space") ? "no_space_left" : "file_write_failure"
}

/** A workspace, and the edits in it that ask. */
interface EditedWorkspace extends FileReader {
  readonly steering: Steering
  readonly gate: Semaphore.Semaphore
  readonly record: (record: FileRecord) => Effect.Effect<Effect.Effect<void>>
}

const look = Effect.fn("FileChange.look")(function* ({ fs, workspace }: EditedWorkspace, requested: string) {
  const place = yield* pathArgument(workspace, requested, "write")
  const shown = workspace.shown(place)
  const info = yield* fs.stat(place).pipe(
    Effect.catchIf(isNotFound, () => Effect.undefined),
    Effect.mapError(
      (error) =>
        new ToolFailure({ message: `${shown} cannot be read: ${diskErrorText(error)}`, type: "read_content_failure" })
    )
  )
  if (info === undefined) return { requested, path: place, shown, text: undefined, bytes: undefined, mode: 0 }
  const bytes = yield* read(place, shown).pipe(
    Effect.provideService(FileSystem.FileSystem, fs),
    Effect.mapError(fileReadFailure)
  )
  return { requested, path: place, shown, text: decode(bytes).text, bytes, mode: info.mode & 0o7777 }
})

const replace = ({ fs, path }: EditedWorkspace, { after, current }: Change, mode: number | undefined) =>
  AtomicFile.write(current.path, encode(after), mode).pipe(
    Effect.andThen(StaleFiles.sweep(path.dirname(current.path))),
    Effect.provideService(FileSystem.FileSystem, fs),
    Effect.provideService(Path.Path, path)
  )

/** The whole change as the user sees it, with the path where the title does not show it in full. */
const detailOf = ({ path, workspace }: EditedWorkspace, { after, diff: { diff }, current }: Change): string => {
  const { requested, path: place, shown, text = "" } = current
  if (diff === "") return `${shown} is created, empty`
  const isPlain = path.resolve(workspace.root, requested) === place && requested.length <= maxTitlePathChars
  const where = isPlain ? "" : `The file is ${shown}:\n`
  // A diff only says that binary files differ.
  const isBinary = text.includes("\0") || after.includes("\0")
  return isBinary ? `${shown} is binary, or will be. Its complete new content:\n${after}` : `${where}${diff}`
}

const resultOf = (
  path: Path.Path,
  { after, diff: { added, diff, removed }, current }: Change
): ToolResult<FileChangeResult> => ({
  value: { fileDiff: diff, fileName: path.basename(current.path) },
  display:
    diff === ""
      ? textDisplay(after === current.text ? `${current.shown} already has this content` : `${current.shown} is empty`)
      : { _tag: "Diff", file: current.shown, diff, added, removed }
})

/**
 * Returns why this edit asks even where edits may run without asking. Checks both the real path and the given name, because a link may
 * stand for either.
 */
const reasonOf = Effect.fnUntraced(function* (
  { fs, path, steering, workspace: { folders, root } }: EditedWorkspace,
  { after, current }: Change
) {
  const places = [current.path, path.resolve(root, current.requested)]
  const names = places.map((place) => place.toLowerCase())
  const match = (yield* steering.moreFiles ?? Effect.succeed([])).find(([place]) => names.includes(place.toLowerCase()))
  if (match !== undefined) return match[1]
  for (const folder of folders) {
    // In worktrees `.git` is a file that names another folder; the default names cover those.
    const config = yield* Effect.orElseSucceed(fs.readFileString(path.join(folder, ".git", "config")), () => "")
    const hooks = hooksFolder(config)
    if (hooks === undefined) continue
    const held = path.resolve(folder, hooks).toLowerCase()
    if (names.some((name) => isWithin(held, name, path.sep))) return hooksReason
  }
  for (const place of places) {
    const reason = steeringReason(place, innermostFolder(folders, place, path.sep), steering)
    if (reason !== undefined) return reason
  }
  return places.some(isPackageFile) ? packageReason(current.text, after) : undefined
})

const questionOf = Effect.fnUntraced(function* (edited: EditedWorkspace, change: Change) {
  const { path: place, shown, text } = change.current
  if (change.after === text) return undefined
  const because = yield* reasonOf(edited, change)
  const question = { detail: detailOf(edited, change), touches: [place] }
  if (because === undefined) {
    const { folders, root } = edited.workspace
    const folder = innermostFolder(folders, place, edited.path.sep)
    return {
      ...question,
      grants: [grantIn(editGrant, folder)],
      covers: `edits of files in ${folder === root ? "this folder" : edited.workspace.shown(folder)}`
    }
  }
  return {
    ...question,
    because,
    grants: [fileGrant(place)],
    covers: `edits of ${shown}`,
    otherwise: "leave this file unchanged, and say in your answer what to change in it"
  }
})

/** Writes the file of a change; creates it, and its folders, where it does not exist. */
const writeFile = Effect.fnUntraced(function* (edited: EditedWorkspace, change: Change) {
  const { fs, path, workspace } = edited
  const { current } = change
  if (current.text !== undefined) {
    // A rename would also replace a read-only file.
    yield* fs.access(current.path, { writable: true })
    return yield* replace(edited, change, current.mode)
  }
  // A plan is private, as everything in the program's home folder is.
  const isPrivate = yield* workspace.isOwn?.(current.path) ?? Effect.succeed(false)
  yield* fs.makeDirectory(path.dirname(current.path), { recursive: true, ...(isPrivate ? { mode: 0o700 } : {}) })
  return yield* replace(edited, change, isPrivate ? 0o600 : undefined)
})

/** Writes the file of a change, and records it so that a rewind can put it back. Files of the program's own are not recorded. */
const recorded = Effect.fnUntraced(function* (edited: EditedWorkspace, change: Change) {
  const { bytes, mode, path: place } = change.current
  const isOwn = yield* edited.workspace.isOwn?.(place) ?? Effect.succeed(false)
  if (isOwn) return yield* writeFile(edited, change)
  const before = bytes === undefined ? undefined : { bytes, mode }
  const done = yield* edited.record({ path: place, before, after: encode(change.after) })
  yield* Effect.uninterruptible(Effect.andThen(writeFile(edited, change), done))
})

const write = Effect.fn("FileChange.write")(
  function* (edited: EditedWorkspace, change: Change) {
    const { after, current } = change
    const now = yield* look(edited, current.requested)
    if (now.path !== current.path || now.text !== current.text) {
      return yield* new ToolFailure({
        message: `${current.shown} was changed by another program meanwhile, so it was not written; read it again`,
        type: "file_changed"
      })
    }
    if (after !== current.text) {
      yield* Effect.mapError(recorded(edited, change), (error) => {
        const trouble = diskErrorText(error)
        const message = `${current.shown} was not written: ${trouble}`
        return new ToolFailure({ message, type: failureType(trouble, error) })
      })
    }
    return resultOf(edited.path, change)
  },
  (work, { gate }) => gate.withPermit(work)
)

const changeOf = Effect.fnUntraced(function* (
  edited: EditedWorkspace,
  requested: string,
  textAfter: (current: FileState) => Effect.Effect<string, ToolFailure>
) {
  const current = yield* look(edited, requested)
  const after = yield* textAfter(current)
  return {
    current,
    after,
    diff: fileDiff(edited.path.basename(current.path), current.text ?? "", after)
  } satisfies Change
})

/**
 * Makes the function that prepares a change of one file of this workspace to the text that `after` returns. The file is read once; a
 * failure says why it cannot be changed as text. The change is written completely or not at all, with missing folders, and not when the
 * file changed since it was read.
 */
export const fileChanges = Effect.gen(function* () {
  const edited: EditedWorkspace = {
    ...(yield* fileReader),
    steering: yield* SteeringSettings,
    gate: yield* Gate,
    record: yield* FileRecorder
  }
  return (requested: string, after: (current: FileState) => Effect.Effect<string, ToolFailure>) =>
    Effect.map(Effect.cached(changeOf(edited, requested, after)), (change) => ({
      question: Effect.flatMap(change, (made) => questionOf(edited, made)),
      run: Effect.flatMap(change, (made) => write(edited, made))
    }))
})
