/** Stores the plan of a conversation in plan mode, and its approved version. */

import { Context, Effect, FileSystem, Path } from "effect"
import { diskErrorText } from "../../domain/text/DiskErrors.ts"
import { quotedPath } from "../../domain/text/WorkspacePath.ts"
import * as AtomicFile from "../platform/AtomicFile.ts"
import { ToolFailure } from "./Tool.ts"

/** The plan of one conversation: the file in which it is written, and a copy of each approved version. */
export class Plans extends Context.Service<
  Plans,
  {
    /** The file of the plan, the one file that may be changed in plan mode. Absolute, links followed. */
    readonly file: string
    /** The folder of approved plans, which tools only read. Absolute, links followed. */
    readonly kept: string
    /** The path of the last approved plan; undefined when there is none. It survives restarts and compression. */
    readonly approved: Effect.Effect<string | undefined>
    /** Stores a text as the approved plan, completely or not at all, and returns its path. */
    readonly approve: (text: string) => Effect.Effect<string, ToolFailure>
  }
>()("palimpsest/services/tools/Plans") {
  /** Makes the service for a session, by its id. `folder` is that of all plans and need not exist; nothing is created before there is something to store. */
  static readonly make = Effect.fn("Plans.make")(function* ({
    folder,
    session
  }: {
    readonly folder: string
    readonly session: string
  }): Effect.fn.Return<Plans["Service"], never, FileSystem.FileSystem | Path.Path> {
    const context = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path

    /** Follows links as far as the path exists. */
    const real: (place: string) => Effect.Effect<string> = (place) =>
      Effect.catch(fs.realPath(place), () => {
        const parent = path.dirname(place)
        return parent === place
          ? Effect.succeed(place)
          : Effect.map(real(parent), (above) => path.join(above, path.basename(place)))
      })
    const place = yield* real(path.resolve(folder))
    const name = session.replace(/[^\w.-]/g, "_")
    const file = path.join(place, `${name}.md`)
    const kept = path.join(place, `${name}.approved.md`)

    return {
      file,
      kept,
      approved: fs.stat(kept).pipe(
        Effect.map(({ type }) => (type === "File" ? kept : undefined)),
        Effect.orElseSucceed(() => undefined)
      ),
      approve: Effect.fn("Plans.approve")(function* (text) {
        yield* AtomicFile.writePrivate(kept, text).pipe(
          Effect.provideContext(context),
          Effect.mapError(
            (error) =>
              new ToolFailure({
                message: `the approved plan was not stored in ${quotedPath(kept)}: ${diskErrorText(error)}`,
                type: "file_write_failure"
              })
          )
        )
        return kept
      })
    }
  })
}
