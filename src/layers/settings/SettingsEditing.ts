import { Effect, type FileSystem, Path, Result } from "effect"
import type { SettingsProblem } from "../../domain/settings/SettingsText.ts"
import { quotedPath } from "../../domain/text/WorkspacePath.ts"
import * as AtomicFile from "../../services/platform/AtomicFile.ts"
import * as FileLock from "../../services/platform/FileLock.ts"
import * as StaleFiles from "../../services/platform/StaleFiles.ts"
import * as Sha256 from "../../services/session/Sha256.ts"
import { SettingsError, type SettingsPlace } from "../../services/settings/Settings.ts"
import * as ThisProcess from "../platform/ThisProcess.ts"
import { diskError, invalid, invalidSettings, realPath, settingsFile, textOf } from "./SettingsSources.ts"

/** Changes settings files. */

/** The settings file of a place. */
export const fileOf = (path: Path.Path, home: string, place: SettingsPlace): string =>
  place === "home" ? settingsFile(path, home) : path.resolve(".palimpsest", "settings.json")

/** A working folder's lock is in the home folder, so that none appears among its files or in a clone. */
const lockFileOf = (path: Path.Path, home: string, place: SettingsPlace): string => {
  const file = fileOf(path, home, place)
  return place === "home" ? FileLock.lockFileOf(path, file) : path.join(home, "locks", `.${Sha256.hashSync(file)}.lock`)
}

/** The real path of a file to write. A working folder's file must not lead out of the folder. */
const writablePath = Effect.fnUntraced(function* (
  place: SettingsPlace,
  named: string
): Effect.fn.Return<string, SettingsError, FileSystem.FileSystem | Path.Path> {
  const path = yield* Path.Path
  // A user who links to the file finds the change at its target.
  const file = (yield* realPath(named)) ?? named
  if (place === "workspace") {
    const root = (yield* realPath(path.resolve("."))) ?? path.resolve(".")
    const target = (yield* realPath(named)) ?? (yield* realPath(path.dirname(named))) ?? root
    const relative = path.relative(root, target)
    if (relative.startsWith("..") || path.isAbsolute(relative)) {
      return yield* invalid(named, undefined, `it leads to ${quotedPath(target)}, out of the folder; change it there`)
    }
  }
  return file
})

/** Edits the text of a settings file under its lock and replaces it atomically. Undefined when the text stays the same. */
export const editFile = Effect.fnUntraced(function* (
  home: string,
  place: SettingsPlace,
  edit: (text: string) => Result.Result<string, SettingsProblem>
): Effect.fn.Return<string | undefined, SettingsError, FileSystem.FileSystem | Path.Path> {
  const path = yield* Path.Path
  const named = fileOf(path, home, place)
  const lock = lockFileOf(path, home, place)
  const changed = Effect.gen(function* () {
    const text = (yield* textOf(named)) ?? ""
    const next = edit(text)
    if (Result.isFailure(next)) return yield* invalidSettings(named, next.failure)
    if (next.success === text) return undefined
    const file = yield* writablePath(place, named)
    yield* Effect.mapError(AtomicFile.rewritePrivate(file, next.success), diskError(file, "written"))
    yield* StaleFiles.sweep(path.dirname(file))
    yield* StaleFiles.sweepLock(lock)
    return named
  })
  return yield* FileLock.withLock({ file: named, lock }, changed).pipe(
    Effect.mapError((error) =>
      error._tag === "PlatformError"
        ? diskError(named, "written")(error)
        : error._tag === "FileLocked"
          ? new SettingsError({ file: named, key: undefined, isInput: false, message: error.message })
          : error
    ),
    ThisProcess.provide
  )
})
