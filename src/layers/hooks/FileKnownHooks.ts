/** Remembers which hooks each folder brought, so that the user is told of new and changed ones. */

import { Effect, FileSystem, Path, Schema } from "effect"
import { type CommandHook, hookKey } from "../../domain/hooks/HookSettings.ts"
import { isNotFound } from "../../domain/text/DiskErrors.ts"
import { fromJson } from "../../domain/text/JsonText.ts"
import * as AtomicFile from "../../services/platform/AtomicFile.ts"
import * as FileLock from "../../services/platform/FileLock.ts"
import * as StaleFiles from "../../services/platform/StaleFiles.ts"
import * as Sha256 from "../../services/session/Sha256.ts"
import * as ThisProcess from "../platform/ThisProcess.ts"

/** Known hooks by folder. Stored as hashes: commands and their variables may be private. */
const Stored = fromJson(Schema.Record(Schema.String, Schema.Array(Schema.String)))
const decode = Schema.decodeEffect(Stored)
const encode = Schema.encodeEffect(Stored)

/**
 * Records the hooks a folder brings and returns the new ones: a folder trusted once may later add commands
 * or change known ones.
 *
 * An unreadable record counts as empty; a record that cannot be written leads to the same hooks again.
 */
export const noteHooks = Effect.fn("FileKnownHooks.noteHooks")(function* (
  file: string,
  folder: string,
  hooks: ReadonlyArray<CommandHook>
) {
  const own = hooks
    .filter(({ source }) => source === "workspace")
    .map((hook) => ({ hook, key: Sha256.hashSync(hookKey(hook)) }))
  if (own.length === 0) return []
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const read = fs.readFileString(file).pipe(
    Effect.flatMap(decode),
    Effect.catchIf(
      (error) => error._tag === "SchemaError" || isNotFound(error),
      () => Effect.succeed<typeof Stored.Type>({})
    )
  )
  const freshAmong = (stored: typeof Stored.Type) => {
    const knownKeys = new Set<string>(Object.hasOwn(stored, folder) ? stored[folder] : [])
    return own.filter(({ key }) => !knownKeys.has(key))
  }
  const fresh = freshAmong(yield* Effect.orElseSucceed(read, () => ({})))
  if (fresh.length === 0) return []
  const keep = Effect.gen(function* () {
    const stored = yield* read
    const json = yield* encode({ ...stored, [folder]: own.map(({ key }) => key) })
    yield* AtomicFile.writePrivate(file, json)
    yield* StaleFiles.sweepLock(FileLock.lockFileOf(path, file))
  })
  yield* FileLock.withLock({ file, lock: FileLock.lockFileOf(path, file) }, keep).pipe(
    ThisProcess.provide,
    Effect.ignore
  )
  return fresh.map(({ hook }) => hook)
})
