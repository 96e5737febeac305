/** Rewinds the files of a workspace: finds what changed since a message, and restores it. */

import { Effect, FileSystem, Option, Path, type PlatformError, Stream } from "effect"
import {
  type ChangedFile,
  changedSince,
  type FileChanged,
  type FileState,
  fileState,
  type RewindTarget
} from "../../domain/session/ChangedFiles.ts"
import { diskErrorText, isNotFound } from "../../domain/text/DiskErrors.ts"
import * as PersistentList from "../../domain/text/PersistentList.ts"
import type { Chat } from "../chat/Chat.ts"
import * as AtomicFile from "../platform/AtomicFile.ts"
import { read } from "../platform/RegularFile.ts"
import type { SessionStoreError } from "../session/SessionStore.ts"
import { type FileRecord, Gate } from "../tools/builtin/FileChange.ts"
import { type IgnoreChoice, walk } from "../workspace/IgnoreRules.ts"
import { Workspace } from "../workspace/Workspace.ts"

/** A file that changed since an earlier message, and what a rewind can do about it. */
export interface RewindFile {
  readonly file: ChangedFile
  /** The path as shown to the user. */
  readonly shown: string
  readonly state: FileState
  /** Why the file cannot be read; its state is `lost` then. */
  readonly problem?: string | undefined
}

/** A file after a rewind. */
export interface RewoundFile {
  readonly shown: string
  /** `left`: others changed it, so it stays as it is. `failed`: see `problem`. */
  readonly outcome: "restored" | "removed" | "left" | "failed"
  readonly problem?: string | undefined
}

/** Puts files back as they were at an earlier message. */
export interface FileRewind {
  /** The files that tools changed since then and that are not as they were. */
  readonly survey: (target: RewindTarget) => Effect.Effect<ReadonlyArray<RewindFile>, SessionStoreError>
  /**
   * Files in the folders of the workspace that were written after a moment (milliseconds since 1970), and by no tool since the
   * target: shell commands and other programs did that. Ignored files are skipped, removed ones cannot be seen, and after two
   * seconds the search ends with the files it has.
   */
  readonly unrecorded: (target: RewindTarget, since: number) => Effect.Effect<ReadonlyArray<string>, SessionStoreError>
  /**
   * Puts the files back: restores contents, removes what was created. Files that others changed since are left as they are, or
   * overwritten. What is overwritten or removed is kept as an earlier version, so that a rewind can be taken back.
   */
  readonly restore: (files: ReadonlyArray<RewindFile>, overwrites: boolean) => Effect.Effect<ReadonlyArray<RewoundFile>>
}

/** Records changes of files in a session. What cannot be recorded is only logged: the change itself goes on. */
export const recorderOf =
  (chat: Pick<Chat["Service"], "keepFile">, by: FileChanged["by"]) =>
  (record: FileRecord): Effect.Effect<Effect.Effect<void>> =>
    Effect.map(chat.keepFile({ ...record, by }), (done) => Effect.ignore(done, { log: "Warn" }))

/** Time limit of the search for files that others wrote. */
const searchTimeout = "2 seconds"
const searched: IgnoreChoice = { git: true, own: true, vendored: true }

const onDisk = (error: PlatformError.PlatformError) => ({ message: diskErrorText(error) })

/** A conversation and the files that it changed. */
interface Rewind {
  readonly chat: Pick<Chat["Service"], "blobs" | "keepFile" | "whole">
  readonly workspace: Workspace["Service"]
  /** The whole disk. */
  readonly disk: FileSystem.FileSystem
  /** The files of the workspace. */
  readonly fs: FileSystem.FileSystem
  readonly path: Path.Path
}

const withDisk =
  (fs: FileSystem.FileSystem, path: Path.Path) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    effect.pipe(Effect.provideService(FileSystem.FileSystem, fs), Effect.provideService(Path.Path, path))

/** The current content of a file; undefined when there is none. Fails for anything that a tool could not have written. */
const current = Effect.fnUntraced(function* ({ fs, path, workspace }: Rewind, file: string) {
  const real = yield* workspace.path(file, "write")
  if (real !== file) return yield* Effect.fail({ message: "a link stands in its way" })
  const info = yield* fs.stat(file).pipe(
    Effect.catchIf(isNotFound, () => Effect.undefined),
    Effect.mapError(onDisk)
  )
  if (info === undefined) return undefined
  const bytes = yield* withDisk(fs, path)(read(file, workspace.shown(file)))
  return { bytes, mode: info.mode & 0o7777 }
})

const surveyFile = (rewind: Rewind, file: ChangedFile): Effect.Effect<RewindFile> => {
  const shown = rewind.workspace.shown(file.path)
  return current(rewind, file.path).pipe(
    Effect.flatMap((now) => (now === undefined ? Effect.succeed(null) : rewind.chat.blobs.hash(now.bytes))),
    Effect.match({
      onSuccess: (hash): RewindFile => ({ file, shown, state: fileState(file, hash) }),
      onFailure: ({ message }): RewindFile => ({ file, shown, state: "lost", problem: message })
    })
  )
}

const changedFiles = (chat: Rewind["chat"], target: RewindTarget) =>
  Effect.map(chat.whole, ({ changes }) => changedSince(PersistentList.toArray(changes), target))

const survey = Effect.fnUntraced(function* (rewind: Rewind, target: RewindTarget) {
  const files = yield* Effect.forEach(yield* changedFiles(rewind.chat, target), (file) => surveyFile(rewind, file))
  return files.filter(({ state }) => state !== "same")
})

const putBack = Effect.fnUntraced(function* (rewind: Rewind, { path: file, target }: ChangedFile) {
  const { chat, fs, path } = rewind
  const record = recorderOf(chat, "rewind")
  const before = yield* current(rewind, file)
  if (target === null) {
    const recorded = yield* record({ path: file, before, after: undefined })
    yield* Effect.uninterruptible(Effect.andThen(Effect.mapError(fs.remove(file, { force: true }), onDisk), recorded))
    return "removed" as const
  }
  const bytes = yield* chat.blobs.get(target.hash)
  const recorded = yield* record({ path: file, before, after: bytes })
  const write = Effect.andThen(
    fs.makeDirectory(path.dirname(file), { recursive: true }),
    withDisk(fs, path)(AtomicFile.write(file, bytes, target.mode))
  )
  yield* Effect.uninterruptible(Effect.andThen(Effect.mapError(write, onDisk), recorded))
  return "restored" as const
})

const restoreFile = Effect.fnUntraced(function* (
  rewind: Rewind,
  { file }: RewindFile,
  overwrites: boolean
): Effect.fn.Return<RewoundFile | undefined> {
  // The file may have changed since the survey.
  const { problem, shown, state } = yield* surveyFile(rewind, file)
  if (state === "same") return undefined
  if (state === "lost") return { shown, outcome: "failed", problem: problem ?? "its earlier version is not kept" }
  if (state === "changed" && !overwrites) return { shown, outcome: "left" }
  return yield* Effect.match(putBack(rewind, file), {
    onSuccess: (outcome): RewoundFile => ({ shown, outcome }),
    onFailure: ({ message }): RewoundFile => ({ shown, outcome: "failed", problem: message })
  })
})

const unrecorded = Effect.fnUntraced(function* (rewind: Rewind, target: RewindTarget, since: number) {
  const { chat, disk, fs, path, workspace } = rewind
  const recorded = new Set((yield* changedFiles(chat, target)).map((file) => file.path))
  const written: Array<string> = []
  const look = Effect.fnUntraced(function* (file: string) {
    const info = yield* Effect.option(fs.stat(file))
    const time = Option.flatMap(info, ({ mtime }) => mtime)
    if (Option.isSome(time) && time.value.getTime() > since) written.push(workspace.shown(file))
  })
  const lookIn = (folder: string) =>
    Stream.runForEach(walk(folder, searched), ({ files }) =>
      Effect.forEach(
        files.map((name) => path.join(folder, name)).filter((file) => !recorded.has(file)),
        look
      )
    )
  yield* Effect.forEach(workspace.folders, lookIn).pipe(
    Effect.timeoutOption(searchTimeout),
    Effect.provideService(Workspace, workspace),
    withDisk(disk, path)
  )
  return written.toSorted()
})

/** Makes the rewinding of files in a workspace. */
export const make = Effect.fnUntraced(function* (
  chat: Rewind["chat"],
  workspace: Workspace["Service"]
): Effect.fn.Return<FileRewind, never, FileSystem.FileSystem | Path.Path> {
  const disk = yield* FileSystem.FileSystem
  const rewind: Rewind = { chat, workspace, disk, fs: workspace.files(disk), path: yield* Path.Path }
  const gate = yield* Gate
  return {
    unrecorded: Effect.fn("FileRewind.unrecorded")((target, since) => unrecorded(rewind, target, since)),
    survey: Effect.fn("FileRewind.survey")((target) => survey(rewind, target)),
    restore: Effect.fn("FileRewind.restore")(function* (files, overwrites) {
      const done = yield* Effect.forEach(files, (file) => gate.withPermit(restoreFile(rewind, file, overwrites)))
      return done.filter((one) => one !== undefined)
    })
  }
})
