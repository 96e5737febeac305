/** Reads what the user has open in the editor from a file that the editor writes. */

import { Effect, FileSystem, Layer, Option, Path, Ref, Schema } from "effect"
import { decode } from "../../domain/text/Bytes.ts"
import { fromJson } from "../../domain/text/JsonText.ts"
import { quotedPath, shownFrom } from "../../domain/text/WorkspacePath.ts"
import { IdeFile, type IdeLimits, type IdeState, normalise } from "../../domain/workspace/IdeContext.ts"
import { inspect, read } from "../../services/platform/RegularFile.ts"
import { IdeContext } from "../../services/workspace/IdeContext.ts"

/** Where the editor writes its state. */
interface FileIdeContextOptions {
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

const noEditor: Last = { stamp: undefined, state: undefined, problem: undefined }

/** The file of an editor, and what was read from it. */
interface State {
  readonly options: FileIdeContextOptions
  /** The file as messages name it. */
  readonly shown: string
  readonly fs: FileSystem.FileSystem
  readonly path: Path.Path
  readonly last: Ref.Ref<Last>
}

const readState = Effect.fnUntraced(function* ({ options: { limits, root }, path, shown }: State, place: string) {
  const { text } = decode(yield* read(place, shown))
  const { workspaceState = {} } = yield* Effect.mapError(decodeFile(text), () => ({
    message: `${shown} is not valid (expected JSON with workspaceState)`
  }))
  const { openFiles = [], ...rest } = workspaceState
  const state = normalise({ ...rest, openFiles }, limits)
  return {
    ...state,
    openFiles: state.openFiles.map((open) => ({ ...open, path: shownFrom(root, open.path, path.sep) }))
  } satisfies IdeState
})

/** Reads the file if it changed since `before`. A file that is no state keeps the state before it. */
const readChanged = Effect.fnUntraced(function* (state: State, before: Last) {
  const { fs, options, shown } = state
  const place = yield* Effect.orElseSucceed(fs.realPath(options.file), () => options.file)
  const info = yield* inspect(place, shown)
  const times = [Option.getOrUndefined(info.ino), Option.getOrUndefined(info.mtime)?.getTime()]
  const stamp = [info.size, info.dev, ...times].join(" ")
  if (stamp === before.stamp) return before
  if (info.size > BigInt(maxFileBytes)) {
    return { ...before, stamp, problem: `${shown} has more than 1 MiB; the previous state is used` }
  }
  return yield* readState(state, place).pipe(
    Effect.map((next): Last => ({ stamp, state: next, problem: undefined })),
    Effect.catch(({ message }) =>
      Effect.succeed({ ...before, stamp, problem: `${message}; the previous state is used` })
    )
  )
})

const current = Effect.fnUntraced(function* (state: State) {
  const { fs, last, shown } = state
  const before = yield* Ref.get(last)
  const next = yield* readChanged(state, before).pipe(
    Effect.catch(({ message, type }) => {
      const problem = type === "target_is_directory" ? `${shown} is a folder; expected a file` : message
      return Effect.succeed<Last>(type === "file_not_found" ? noEditor : { ...before, stamp: undefined, problem })
    }),
    Effect.provideService(FileSystem.FileSystem, fs)
  )
  yield* Ref.set(last, next)
  return next.state
})

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
export const layer = (options: FileIdeContextOptions) =>
  Layer.effect(
    IdeContext,
    Effect.gen(function* () {
      const last = yield* Ref.make(noEditor)
      const reported = yield* Ref.make<string | undefined>(undefined)
      const state: State = {
        options,
        shown: quotedPath(options.file),
        fs: yield* FileSystem.FileSystem,
        path: yield* Path.Path,
        last
      }
      return {
        state: current(state),
        problem: Effect.gen(function* () {
          const { problem } = yield* Ref.get(last)
          return (yield* Ref.getAndSet(reported, problem)) === problem ? undefined : problem
        })
      }
    })
  )
