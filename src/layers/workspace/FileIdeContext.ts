import { Effect, FileSystem, Layer, Option, Path, Ref, Schema } from "effect"
import { decode } from "../../domain/text/Bytes.ts"
import { fromJson } from "../../domain/text/JsonText.ts"
import { quotedPath, shownFrom } from "../../domain/text/WorkspacePath.ts"
import { IdeFile, type IdeLimits, type IdeState, normalise } from "../../domain/workspace/IdeContext.ts"
import { inspect, read } from "../../services/platform/RegularFile.ts"
import { IdeContext } from "../../services/workspace/IdeContext.ts"

/** Where the editor writes its state. */
export interface FileIdeContextOptions {
  /** Absolute path. A missing file means that no editor is connected. */
  readonly file: string
  /** The workspace, absolute with links resolved; paths below it are shown relative to it. */
  readonly root: string
  readonly limits?: IdeLimits | undefined
}

/** Largest state file. */
const maxFileBytes = 1_048_576

const decodeFile = Schema.decodeUnknownEffect(fromJson(IdeFile))

/** The state read last. */
interface Last {
  /** Identifies the file's version; undefined when there was no file. */
  readonly stamp: string | undefined
  readonly state: IdeState | undefined
  readonly problem: string | undefined
}

/**
 * An editor that writes its open files into a JSON file.
 *
 * The editor replaces the whole file at each change (best by renaming a temporary file) and removes it on exit. The
 * format is that of Gemini CLI's companion:
 *
 * `{"workspaceState": {"openFiles": [{"path": "/work/a.ts", "timestamp": 1767225600000, "isActive": true, "cursor":
 * {"line": 3, "character": 1}, "selectedText": "const"}], "isTrusted": true}}`
 *
 * `path` is absolute and `timestamp` is when the file was last active, in milliseconds; all other fields are optional.
 * The file with the latest timestamp is the active one if it says so. Line and character count from 1. The file is
 * checked on demand and read when it changed; it may have at most 1 MiB.
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
      /** The current problem, and the one already reported. */
      const reported = yield* Ref.make<string | undefined>(undefined)
      const shown = quotedPath(file)

      const shownIn = (state: IdeState): IdeState => ({
        ...state,
        openFiles: state.openFiles.map((open) => ({ ...open, path: shownFrom(root, open.path, path.sep) }))
      })

      const stateOf = Effect.fnUntraced(function* (place: string) {
        const { text } = decode(yield* read(place, shown))
        const { workspaceState = {} } = yield* Effect.mapError(decodeFile(text), () => ({
          message: `${shown} is not what an editor should write there (JSON with workspaceState)`
        }))
        const { openFiles = [], ...rest } = workspaceState
        return shownIn(normalise({ ...rest, openFiles }, limits))
      })

      const now = Effect.gen(function* () {
        const before = yield* Ref.get(last)
        const place = yield* Effect.orElseSucceed(fs.realPath(file), () => file)
        const seen = yield* inspect(place, shown)
        const times = [Option.getOrUndefined(seen.ino), Option.getOrUndefined(seen.mtime)?.getTime()]
        const stamp = [seen.size, seen.dev, ...times].join(" ")
        if (stamp === before.stamp) return before
        if (seen.size > BigInt(maxFileBytes)) {
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
          return (yield* Ref.getAndSet(reported, problem)) === problem ? undefined : problem
        })
      }
    })
  )
