import { Context, Effect, FileSystem, Path } from "effect"
import { diskTrouble } from "../domain/DiskTrouble.ts"
import { quoted } from "../domain/WorkspacePath.ts"
import { ToolFailure } from "./Tool.ts"
import * as WholeFile from "./WholeFile.ts"

/** Where plans lie, and whose this one is. */
export interface PlansOptions {
  /** The folder of all plans: `plans` in the program's home. It need not exist yet. */
  readonly folder: string
  /** The session's id. */
  readonly session: string
}

/** The plan of one conversation: a file that is written while it is made, and a copy of what the person approved. */
export class Plans extends Context.Service<
  Plans,
  {
    /** Where the plan is written: the one file that may be changed meanwhile. Absolute, links followed. */
    readonly file: string
    /** Where it is kept as it was approved; tools only read there. Absolute, links followed. */
    readonly kept: string
    /** The plan that was approved last, as a path; undefined: none was. Outlives the program, and any compression. */
    readonly approved: Effect.Effect<string | undefined>
    /** Keeps this text as the approved plan, whole or not at all; its path is the answer. */
    readonly approve: (text: string) => Effect.Effect<string, ToolFailure>
  }
>()("palimpsest/services/Plans") {
  /** The plan of this session. Nothing is made before there is something to keep. */
  static readonly make = Effect.fn("Plans.make")(function* ({
    folder,
    session
  }: PlansOptions): Effect.fn.Return<Plans["Service"], never, FileSystem.FileSystem | Path.Path> {
    const context = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path

    /** Links followed as far as there is something. */
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
      approve: Effect.fn("Plans.approve")(function* (text): Effect.fn.Return<string, ToolFailure> {
        yield* WholeFile.writePrivate(kept, text).pipe(
          Effect.provideContext(context),
          Effect.mapError(
            (error) =>
              new ToolFailure({
                message: `the approved plan was not kept in ${quoted(kept)}: ${diskTrouble(error)}`,
                type: "file_write_failure"
              })
          )
        )
        return kept
      })
    }
  })
}
