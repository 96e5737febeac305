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
   * Files in the folders of the workspace that were written after a moment (milliseconds since 1970) and that no tool is known to
   * have changed since the target: shell commands and other programs did. Ignored files are not looked at, removed ones cannot be
   * seen, and after two seconds the search ends with what it has found.
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

/** Makes the rewinding of files in a workspace. */
export const make = Effect.fnUntraced(function* (
  chat: Pick<Chat["Service"], "blobs" | "keepFile" | "whole">,
  workspace: Workspace["Service"]
): Effect.fn.Return<FileRewind, never, FileSystem.FileSystem | Path.Path> {
  const path = yield* Path.Path
  const disk = yield* FileSystem.FileSystem
  const fs = workspace.files(disk)
  const gate = yield* Gate
  const record = recorderOf(chat, "rewind")
  const provided = <A, E>(work: Effect.Effect<A, E, FileSystem.FileSystem | Path.Path>): Effect.Effect<A, E> =>
    work.pipe(Effect.provideService(FileSystem.FileSystem, fs), Effect.provideService(Path.Path, path))

  /** What the file holds now; undefined: there is none. Fails for whatever no tool could have left there. */
  const current = Effect.fnUntraced(function* (place: string) {
    const real = yield* workspace.path(place, "write")
    if (real !== place) return yield* Effect.fail({ message: "a link stands in its way" })
    const info = yield* fs.stat(place).pipe(
      Effect.catchIf(isNotFound, () => Effect.undefined),
      Effect.mapError(onDisk)
    )
    if (info === undefined) return undefined
    return { bytes: yield* provided(read(place, workspace.shown(place))), mode: info.mode & 0o7777 }
  })

  const look = Effect.fnUntraced(function* (file: ChangedFile) {
    const shown = workspace.shown(file.path)
    return yield* current(file.path).pipe(
      Effect.flatMap((now) => (now === undefined ? Effect.succeed(null) : chat.blobs.hash(now.bytes))),
      Effect.match({
        onSuccess: (hash): RewindFile => ({ file, shown, state: fileState(file, hash) }),
        onFailure: ({ message }): RewindFile => ({ file, shown, state: "lost", problem: message })
      })
    )
  })

  const put = Effect.fnUntraced(function* ({ path: place, target }: ChangedFile) {
    const before = yield* current(place)
    if (target === null) {
      const done = yield* record({ path: place, before, after: undefined })
      yield* Effect.uninterruptible(Effect.andThen(Effect.mapError(fs.remove(place, { force: true }), onDisk), done))
      return "removed" as const
    }
    const bytes = yield* chat.blobs.get(target.hash)
    const done = yield* record({ path: place, before, after: bytes })
    const written = Effect.andThen(
      fs.makeDirectory(path.dirname(place), { recursive: true }),
      provided(AtomicFile.write(place, bytes, target.mode))
    )
    yield* Effect.uninterruptible(Effect.andThen(Effect.mapError(written, onDisk), done))
    return "restored" as const
  })

  const restoreOne = Effect.fnUntraced(function* ({ file }: RewindFile, overwrites: boolean) {
    // The file may have changed since the survey.
    const { problem, shown, state } = yield* look(file)
    if (state === "same") return undefined
    if (state === "lost") {
      const why = problem ?? "its earlier version is not kept"
      return { shown, outcome: "failed", problem: why } satisfies RewoundFile
    }
    if (state === "changed" && !overwrites) return { shown, outcome: "left" } satisfies RewoundFile
    return yield* Effect.match(put(file), {
      onSuccess: (outcome): RewoundFile => ({ shown, outcome }),
      onFailure: ({ message }): RewoundFile => ({ shown, outcome: "failed", problem: message })
    })
  })

  const unrecorded = Effect.fn("FileRewind.unrecorded")(function* (target: RewindTarget, since: number) {
    const { changes } = yield* chat.whole
    const known = new Set(changedSince(PersistentList.toArray(changes), target).map(({ path: place }) => place))
    const found: Array<string> = []
    const look = Effect.fnUntraced(function* (place: string) {
      const info = yield* Effect.option(fs.stat(place))
      const written = Option.flatMap(info, ({ mtime }) => mtime)
      if (Option.isSome(written) && written.value.getTime() > since) found.push(workspace.shown(place))
    })
    yield* Effect.forEach(workspace.folders, (folder) =>
      Stream.runForEach(walk(folder, searched), ({ files }) =>
        Effect.forEach(
          files.map((name) => path.join(folder, name)).filter((place) => !known.has(place)),
          look
        )
      )
    ).pipe(
      Effect.timeoutOption(searchTimeout),
      Effect.provideService(Workspace, workspace),
      Effect.provideService(FileSystem.FileSystem, disk),
      Effect.provideService(Path.Path, path)
    )
    return found.toSorted()
  })

  return {
    unrecorded,
    survey: Effect.fn("FileRewind.survey")(function* (target) {
      const { changes } = yield* chat.whole
      const files = yield* Effect.forEach(changedSince(PersistentList.toArray(changes), target), look)
      return files.filter(({ state }) => state !== "same")
    }),
    restore: Effect.fn("FileRewind.restore")(function* (files, overwrites) {
      const done = yield* Effect.forEach(files, (file) => gate.withPermit(restoreOne(file, overwrites)))
      return done.filter((one) => one !== undefined)
    })
  }
})
