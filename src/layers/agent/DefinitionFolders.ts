/** Reads the folders of the user and of the workspace that hold definitions of agents or skills. */

import { ByteSize, Effect, FileSystem, Path, PlatformError } from "effect"
import type { UnusableFile } from "../../domain/agent/UnusableFile.ts"
import { diskErrorText, isNotFound } from "../../domain/text/DiskErrors.ts"
import * as NoFollow from "../platform/NoFollow.ts"

/** A folder that may hold definitions. */
export interface DefinitionFolder {
  readonly folder: string
  /** Whether the folder is the user's own and needs no trust. */
  readonly isOwn: boolean
}

/**
 * The folders of agents or skills, highest precedence last: in `.gemini` and `.palimpsest` of the workspace, the same in the user's home folder, and in
 * the home folder of this program. The user's come after those of the workspace, so a foreign folder cannot replace what is the user's.
 */
export const folders = (
  kind: "agents" | "skills",
  { home, user, workspace }: { readonly home: string; readonly user: string; readonly workspace: string }
) =>
  Effect.map(Path.Path, (path) => {
    const both = (base: string) => [path.resolve(base, ".gemini", kind), path.resolve(base, ".palimpsest", kind)]
    const own = [...both(user), path.resolve(home, kind)]
    // If the workspace is the home folder, both are the same folders, and they belong to the user.
    const shared = both(workspace).filter((folder) => !own.includes(folder))
    return [shared, own].flatMap((all) => all.map((folder): DefinitionFolder => ({ folder, isOwn: all === own })))
  })

/** The maximum size of a file. Larger ones, such as a device or a log in its place, are not read. */
const maxFileBytes = ByteSize.mebibytes(1)

/** Says that a file cannot be used, unless the error already does. */
export const unusable =
  (file: string) =>
  (error: PlatformError.PlatformError | UnusableFile): UnusableFile =>
    error instanceof PlatformError.PlatformError ? { file, reason: `cannot be read: ${diskErrorText(error)}` } : error

/** Makes a reader of such folders. Of the workspace only what lies in trusted folders counts, because a link may lead elsewhere. */
export const reader = Effect.fnUntraced(function* (isTrusted: (folder: string) => Effect.Effect<boolean>) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const safe = (yield* NoFollow.make).files(fs)
  const fail = (file: string, reason: string) => Effect.fail<UnusableFile>({ file, reason })
  const checkTrust = Effect.fnUntraced(function* (file: string, folder: string) {
    if (!(yield* isTrusted(folder))) return yield* fail(file, `it is in ${folder}, which is not trusted; it is ignored`)
  })
  return {
    /** The names in a folder, sorted. */
    namesIn: Effect.fnUntraced(function* ({ folder, isOwn }: DefinitionFolder) {
      const real = isOwn ? undefined : yield* Effect.orElseSucceed(fs.realPath(folder), () => undefined)
      if (real !== undefined) yield* checkTrust(folder, real)
      const names = yield* fs.readDirectory(folder).pipe(
        Effect.catchIf(isNotFound, () => Effect.succeed([])),
        Effect.mapError(unusable(folder))
      )
      return names.toSorted()
    }),
    /** The text of a file. Undefined: a folder has this name. */
    textOf: Effect.fnUntraced(function* (file: string, isOwn: boolean) {
      const real = isOwn ? file : yield* fs.realPath(file)
      const places = isOwn ? [] : [yield* fs.realPath(path.dirname(file)), path.dirname(real)]
      for (const place of new Set(places)) yield* checkTrust(file, place)
      // Reads exactly the file whose trust was checked.
      const opened = isOwn ? fs : safe
      const { size, type } = yield* opened.stat(real)
      if (type === "Directory") return undefined
      // Reading a pipe would never end.
      if (type !== "File") return yield* fail(file, "expected a file")
      if (ByteSize.isGreaterThan(size, maxFileBytes)) return yield* fail(file, "expected at most 1 MiB")
      return yield* opened.readFileString(real)
    })
  }
})
/** Reads the names in such folders, and the texts of their files. */
export type DefinitionReader = Effect.Success<ReturnType<typeof reader>>
