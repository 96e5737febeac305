import { Effect, FileSystem, Layer, Option, Path, Ref, Schema } from "effect"
import { fromJson } from "../domain/JsonText.ts"
import { decode } from "../domain/Bytes.ts"
import { IdeFile, type IdeLimits, type IdeState, normalise } from "../domain/IdeContext.ts"
import { quoted, shownFrom } from "../domain/WorkspacePath.ts"
import { IdeContext } from "../services/IdeContext.ts"
import { look, read } from "../services/RegularFile.ts"
import { ToolFailure } from "../services/Tool.ts"

/** Where the editor writes, and how it is shown. */
export interface FileIdeContextOptions {
  /** Absolute. It need not exist: then there is no editor. */
  readonly file: string
  /** The workspace, absolute with links followed: paths below it are given from there. */
  readonly root: string
  readonly limits?: IdeLimits | undefined
}

/** No editor has that much open. */
const mostBytes = 1_048_576

const decodeFile = Schema.decodeUnknownEffect(fromJson(IdeFile))

/** What was read last. */
interface Last {
  /** The file as it was then; undefined: there was none. */
  readonly stamp: string | undefined
  readonly state: IdeState | undefined
  readonly problem: string | undefined
}

/**
 * An editor that writes what it has open into a file, whole, whenever that changes (best beside it and then renamed over it),
 * and removes the file when it closes. The file is JSON in the shape of Gemini CLI's companion:
 *
 * `{"workspaceState": {"openFiles": [{"path": "/work/a.ts", "timestamp": 1767225600000, "isActive": true, "cursor": {"line": 3,
 * "character": 1}, "selectedText": "const"}], "isTrusted": true}}`
 *
 * `path` is absolute and `timestamp` says when the file was looked at last, in milliseconds; all else in a file may be
 * missing. The one with the latest timestamp is the active one if it says so; line and character count from 1. The file is
 * looked at when somebody asks, and read when it changed; it has at most 1 MiB.
 */
export const layer = ({
  file,
  limits,
  root
}: FileIdeContextOptions): Layer.Layer<IdeContext, never, FileSystem.FileSystem | Path.Path> =>
  Layer.effect(
    IdeContext,
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const last = yield* Ref.make<Last>({ stamp: undefined, state: undefined, problem: undefined })
      /** What is to be told, and what was. */
      const told = yield* Ref.make<string | undefined>(undefined)
      const shown = quoted(file)

      const shownIn = (state: IdeState): IdeState => ({
        ...state,
        openFiles: state.openFiles.map((open) => ({ ...open, path: shownFrom(root, open.path, path.sep) }))
      })

      const stateOf = Effect.fnUntraced(function* (place: string) {
        const { text } = decode(yield* read(place, shown))
        const { workspaceState = {} } = yield* Effect.mapError(
          decodeFile(text),
          () =>
            new ToolFailure({ message: `${shown} is not what an editor should write there (JSON with workspaceState)` })
        )
        const { openFiles = [], ...rest } = workspaceState
        return shownIn(normalise({ ...rest, openFiles }, limits))
      })

      const now = Effect.gen(function* () {
        const before = yield* Ref.get(last)
        const place = yield* Effect.orElseSucceed(fs.realPath(file), () => file)
        const seen = yield* look(place, shown)
        const times = [Option.getOrUndefined(seen.ino), Option.getOrUndefined(seen.mtime)?.getTime()]
        const stamp = [seen.size, seen.dev, ...times].join(" ")
        if (stamp === before.stamp) return before
        if (seen.size > BigInt(mostBytes)) {
          return { ...before, stamp, problem: `${shown} has more than 1 MiB; what the editor said before holds on` }
        }
        return yield* stateOf(place).pipe(
          Effect.map((state): Last => ({ stamp, state, problem: undefined })),
          Effect.catch(({ message }) =>
            Effect.succeed({ ...before, stamp, problem: `${message}; what it said before holds on` })
          )
        )
      }).pipe(
        Effect.catch(({ message, type }) =>
          Effect.map(Ref.get(last), (before): Last =>
            type === "file_not_found"
              ? { stamp: undefined, state: undefined, problem: undefined }
              : {
                  ...before,
                  stamp: undefined,
                  problem:
                    type === "target_is_directory"
                      ? `${shown} is a folder, where an editor would write a file`
                      : message
                }
          )
        ),
        Effect.tap((next) => Ref.set(last, next)),
        Effect.provideService(FileSystem.FileSystem, fs)
      )

      return {
        state: Effect.map(now, ({ state }) => state),
        problem: Effect.gen(function* () {
          const { problem } = yield* Ref.get(last)
          return (yield* Ref.getAndSet(told, problem)) === problem ? undefined : problem
        })
      }
    })
  )
