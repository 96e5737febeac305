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
    return `${this.folder} cannot be a folder of the workspace: ${this.why}`
  }
}

/** Most links followed in a row, as in Linux. */
const maxLinks = 40

/**
 * A workspace on the file system. A path is checked where it really leads: the deepest existing part is resolved
 * through all links, including a link whose target does not exist yet.
 */
export const layer = ({
  added = [],
  readable = [],
  root,
  writable = []
}: FileWorkspaceOptions): Layer.Layer<Workspace, WorkspaceUnavailable, FileSystem.FileSystem | Path.Path> =>
  Layer.effect(
    Workspace,
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const { files, folder: held } = yield* NoFollow.make

      const real: (place: string, links: number) => Effect.Effect<string, PlatformError.PlatformError> =
        Effect.fnUntraced(function* (place, links) {
          return yield* fs.realPath(place).pipe(
            Effect.catchIf(
              (error) => error.reason._tag === "NotFound" && path.dirname(place) !== place && links < maxLinks,
              () => beyond(place, links)
            )
          )
        })
      /** The location of a missing path: below its folder, or where the link of that name leads. */
      const beyond = Effect.fnUntraced(function* (place: string, links: number) {
        const parent = yield* real(path.dirname(place), links)
        const here = path.join(parent, path.basename(place))
        const target = yield* fs.readLink(here).pipe(Effect.orElseSucceed(() => undefined))
        return target === undefined ? here : yield* real(path.resolve(parent, target), links + 1)
      })

      const folder = Effect.fnUntraced(function* (given: string) {
        const unavailable = (why: string) => new WorkspaceUnavailable({ folder: given, why })
        const place = yield* fs
          .realPath(path.resolve(given))
          .pipe(Effect.mapError((error) => unavailable(diskErrorText(error))))
        const { type } = yield* fs.stat(place).pipe(Effect.mapError((error) => unavailable(diskErrorText(error))))
        return type === "Directory" ? place : yield* unavailable("it is not a folder")
      })

      const top = yield* folder(root)
      const folders = [...new Set([top, ...(yield* Effect.forEach(added, folder))])]
      const shown = (absolute: string) => quotedPath(shownFrom(top, absolute, path.sep))
      // Checked on use: the store creates its folder with the first output.
      const isIn = (places: ReadonlyArray<string>, place: string) =>
        Effect.map(
          Effect.forEach(places, (each) => real(path.resolve(each), 0).pipe(Effect.option)),
          (realPlaces) => realPlaces.some((each) => each._tag === "Some" && isWithin(each.value, place, path.sep))
        )
      const refused = (message: string) => new WorkspaceError({ message, reason: "OutsideWorkspace" })

      return {
        root: top,
        folders,
        shown,
        files,
        held,
        isOwn: (place) => isIn(writable, place),
        path: Effect.fn("Workspace.path")(function* (given, purpose) {
          const wrong = pathProblem(given)
          if (wrong !== undefined) return yield* new WorkspaceError({ message: wrong, reason: "InvalidPath" })
          const named = quotedPath(given)
          const asked = path.resolve(top, given)
          const place = yield* real(asked, 0).pipe(
            Effect.mapError((error) => refused(`${named} leads nowhere: ${quotedPath(diskErrorText(error))}`))
          )
          if (folders.some((each) => isWithin(each, place, path.sep))) return place
          if (yield* isIn(writable, place)) return place
          if (yield* isIn(readable, place)) {
            return purpose === "read" ? place : yield* refused(`${named} lies where files may only be read`)
          }
          const allowed = folders.join(", ")
          return yield* refused(
            folders.some((each) => isWithin(each, asked, path.sep))
              ? `${named} leads out of the workspace through a link; only files in ${allowed} may be used`
              : `${named} lies outside the workspace; only files in ${allowed} may be used`
          )
        })
      }
    })
  )
