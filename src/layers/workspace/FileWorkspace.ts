/** Checks the paths that tools use against the folders of the workspace, through all links. */

import { Effect, FileSystem, Layer, Path, type PlatformError, Schema } from "effect"
import { diskErrorText } from "../../domain/text/DiskErrors.ts"
import { isWithin, quotedPath, shownFrom, pathProblem } from "../../domain/text/WorkspacePath.ts"
import { Workspace, WorkspaceError } from "../../services/workspace/Workspace.ts"
import * as NoFollow from "../platform/NoFollow.ts"

/** Which folders tools may use. */
export interface FileWorkspaceOptions {
  readonly root: string
  /** Additional folders to read and write. */
  readonly added?: ReadonlyArray<string> | undefined
  /** Paths that are only read, such as stored outputs. They need not exist yet. */
  readonly readable?: ReadonlyArray<string> | undefined
  /** Paths of the program that are also written, such as the plan file. They need not exist yet. */
  readonly writable?: ReadonlyArray<string> | undefined
}

/** A workspace folder is missing or not a folder. */
export class WorkspaceUnavailable extends Schema.TaggedError<WorkspaceUnavailable>()("WorkspaceUnavailable", {
  folder: Schema.String,
  why: Schema.String
}) {
  override get message() {
    return `the workspace cannot have the folder ${this.folder}: ${this.why}`
  }
}

/** Most links followed in a row, as in Linux. */
const maxLinks = 40

/** What paths are resolved with. */
interface Disk {
  readonly fs: FileSystem.FileSystem
  readonly path: Path.Path
}

/** Where a path leads, through all links. It need not exist. */
const realPath: (disk: Disk, place: string, links?: number) => Effect.Effect<string, PlatformError.PlatformError> =
  Effect.fnUntraced(function* (disk, place, links = 0) {
    const { fs, path } = disk
    return yield* fs.realPath(place).pipe(
      Effect.catchIf(
        (error) => error.reason._tag === "NotFound" && path.dirname(place) !== place && links < maxLinks,
        () => missingPath(disk, place, links)
      )
    )
  })

/** The location of a missing path: below its folder, or where the link of that name leads. */
const missingPath = Effect.fnUntraced(function* (disk: Disk, place: string, links: number) {
  const { fs, path } = disk
  const parent = yield* realPath(disk, path.dirname(place), links)
  const here = path.join(parent, path.basename(place))
  const target = yield* fs.readLink(here).pipe(Effect.orElseSucceed(() => undefined))
  return target === undefined ? here : yield* realPath(disk, path.resolve(parent, target), links + 1)
})

const existingFolder = Effect.fnUntraced(function* ({ fs, path }: Disk, folder: string) {
  const unavailable = (why: string) => new WorkspaceUnavailable({ folder, why })
  const onError = Effect.mapError((error: PlatformError.PlatformError) => unavailable(diskErrorText(error)))
  const place = yield* onError(fs.realPath(path.resolve(folder)))
  const { type } = yield* onError(fs.stat(place))
  return type === "Directory" ? place : yield* unavailable("it is not a folder")
})

/** Whether a place lies in one of these. They are resolved on use: the store creates its folder with the first output. */
const isIn = (disk: Disk, places: ReadonlyArray<string>, place: string) =>
  Effect.map(
    Effect.forEach(places, (each) => Effect.option(realPath(disk, disk.path.resolve(each)))),
    (real) => real.some((each) => each._tag === "Some" && isWithin(each.value, place, disk.path.sep))
  )

const refused = (message: string) => new WorkspaceError({ message, reason: "OutsideWorkspace" })

const allowedPath = Effect.fnUntraced(function* (
  disk: Disk,
  folders: readonly [root: string, ...added: ReadonlyArray<string>],
  { readable = [], writable = [] }: FileWorkspaceOptions,
  ...[name, purpose]: Parameters<Workspace["Service"]["path"]>
) {
  const { path } = disk
  const problem = pathProblem(name)
  if (problem !== undefined) return yield* new WorkspaceError({ message: problem, reason: "InvalidPath" })
  const shown = quotedPath(name)
  const absolute = path.resolve(folders[0], name)
  const place = yield* realPath(disk, absolute).pipe(
    Effect.mapError((error) => refused(`${shown} leads nowhere: ${quotedPath(diskErrorText(error))}`))
  )
  if (folders.some((each) => isWithin(each, place, path.sep))) return place
  if (yield* isIn(disk, writable, place)) return place
  if (yield* isIn(disk, readable, place)) {
    return purpose === "read" ? place : yield* refused(`${shown} is in a folder that is read-only`)
  }
  const allowed = folders.join(", ")
  return yield* refused(
    folders.some((each) => isWithin(each, absolute, path.sep))
      ? `${shown} leads out of the workspace through a link; only files in ${allowed} may be used`
      : `${shown} is outside the workspace; only files in ${allowed} may be used`
  )
})

/**
 * A workspace on the file system. A path is checked where it really leads: the deepest existing part is resolved
 * through all links, including a link whose target does not exist yet.
 */
export const layer = (
  options: FileWorkspaceOptions
): Layer.Layer<Workspace, WorkspaceUnavailable, FileSystem.FileSystem | Path.Path> =>
  Layer.effect(
    Workspace,
    Effect.gen(function* () {
      const disk: Disk = { fs: yield* FileSystem.FileSystem, path: yield* Path.Path }
      const { files, folder: held } = yield* NoFollow.make
      const root = yield* existingFolder(disk, options.root)
      const added = yield* Effect.forEach(options.added ?? [], (folder) => existingFolder(disk, folder))
      const folders = [root, ...new Set(added.filter((folder) => folder !== root))] as const
      return {
        root,
        folders,
        shown: (absolute) => quotedPath(shownFrom(root, absolute, disk.path.sep)),
        files,
        held,
        isOwn: (place) => isIn(disk, options.writable ?? [], place),
        path: Effect.fn("Workspace.path")((name, purpose) => allowedPath(disk, folders, options, name, purpose))
      }
    })
  )
