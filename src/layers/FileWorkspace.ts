import { Effect, FileSystem, Layer, Path, type PlatformError, Schema } from "effect"
import { diskTrouble } from "../domain/DiskTrouble.ts"
import { isWithin, quoted, shownFrom, unusable } from "../domain/WorkspacePath.ts"
import { ToolFailure } from "../services/Tool.ts"
import { Workspace } from "../services/Workspace.ts"
import * as NoFollow from "./NoFollow.ts"

/** Which folders tools may touch. */
export interface FileWorkspaceOptions {
  readonly root: string
  /** More folders to read and write in. */
  readonly added?: ReadonlyArray<string> | undefined
  /** Places that are only read: where stored outputs lie. They need not exist yet. */
  readonly readable?: ReadonlyArray<string> | undefined
  /** Places of the program's own that are also written, such as the plan's file. They need not exist yet. */
  readonly writable?: ReadonlyArray<string> | undefined
}

/** A folder of the workspace is not there or is no folder. */
export class WorkspaceUnavailable extends Schema.TaggedError<WorkspaceUnavailable>()("WorkspaceUnavailable", {
  folder: Schema.String,
  why: Schema.String
}) {
  override get message() {
    return `${this.folder} cannot be a folder of the workspace: ${this.why}`
  }
}

/** More links than this in a row lead nowhere (as the system counts them). */
const mostLinks = 40

/**
 * The workspace on a file system. A path is judged by where it really leads: the deepest part of it that exists is followed
 * through all links, also through one whose target is not there yet.
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
              (error) => error.reason._tag === "NotFound" && path.dirname(place) !== place && links < mostLinks,
              () => beyond(place, links)
            )
          )
        })
      /** Where a place is that does not exist: below its folder, or where the link leads that bears its name. */
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
          .pipe(Effect.mapError((error) => unavailable(diskTrouble(error))))
        const { type } = yield* fs.stat(place).pipe(Effect.mapError((error) => unavailable(diskTrouble(error))))
        return type === "Directory" ? place : yield* unavailable("it is no folder")
      })

      const top = yield* folder(root)
      const folders = [...new Set([top, ...(yield* Effect.forEach(added, folder))])]
      const shown = (absolute: string) => quoted(shownFrom(top, absolute, path.sep))
      // Asked for late: the store makes its folder with the first output that it keeps.
      const isIn = (places: ReadonlyArray<string>, place: string) =>
        Effect.map(
          Effect.forEach(places, (each) => real(path.resolve(each), 0).pipe(Effect.option)),
          (found) => found.some((each) => each._tag === "Some" && isWithin(each.value, place, path.sep))
        )
      const refused = (message: string) => new ToolFailure({ message, type: "path_not_in_workspace" })

      return {
        root: top,
        folders,
        shown,
        files,
        held,
        isOwn: (place) => isIn(writable, place),
        path: Effect.fn("Workspace.path")(function* (given, purpose) {
          const wrong = unusable(given)
          if (wrong !== undefined) return yield* new ToolFailure({ message: wrong, type: "invalid_tool_params" })
          const named = quoted(given)
          const asked = path.resolve(top, given)
          const place = yield* real(asked, 0).pipe(
            Effect.mapError((error) => refused(`${named} leads nowhere: ${quoted(diskTrouble(error))}`))
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
