import { Effect, FileSystem, Path, Schema } from "effect"
import { isNotFound } from "../domain/DiskTrouble.ts"
import { fromJson } from "../domain/JsonText.ts"
import { type CommandHook, hookKey, newHooksWarning } from "../domain/HookSettings.ts"
import * as FileLock from "../services/FileLock.ts"
import * as Leftovers from "../services/Leftovers.ts"
import * as WholeFile from "../services/WholeFile.ts"
import * as Sha256 from "./Sha256.ts"
import * as ThisProcess from "./ThisProcess.ts"

/** By folder, what is known of the hooks that it brought: hashes, as commands and their variables may hold what is private. */
const Stored = fromJson(Schema.Record(Schema.String, Schema.Array(Schema.String)))
const decode = Schema.decodeEffect(Stored)
const encode = Schema.encodeEffect(Stored)

/**
 * Notes the hooks that a folder brings, and gives a line about those that it did not bring before: a folder that was trusted
 * once may bring new commands later, or run known ones elsewhere or otherwise (spec 8). What cannot be read counts as never noted; what cannot be written is told again.
 */
export const note = Effect.fn("FileKnownHooks.note")(function* (
  file: string,
  folder: string,
  hooks: ReadonlyArray<CommandHook>
): Effect.fn.Return<string | undefined, never, FileSystem.FileSystem | Path.Path> {
  const own = hooks
    .filter(({ source }) => source === "workspace")
    .map((hook) => ({ hook, key: Sha256.hashSync(hookKey(hook)) }))
  if (own.length === 0) return undefined
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const read = fs.readFileString(file).pipe(
    Effect.flatMap(decode),
    Effect.catchIf(
      (error) => error._tag === "SchemaError" || isNotFound(error),
      () => Effect.succeed<typeof Stored.Type>({})
    )
  )
  const freshAmong = (known: typeof Stored.Type) => {
    const seen = new Set<string>(Object.hasOwn(known, folder) ? known[folder] : [])
    return own.filter(({ key }) => !seen.has(key))
  }
  const fresh = freshAmong(yield* Effect.orElseSucceed(read, () => ({})))
  if (fresh.length === 0) return undefined
  const keep = Effect.gen(function* () {
    const known = yield* read
    const json = yield* encode({ ...known, [folder]: own.map(({ key }) => key) })
    yield* WholeFile.writePrivate(file, json)
    yield* Leftovers.sweepLock(FileLock.besides(path, file))
  })
  yield* FileLock.locked({ file, lock: FileLock.besides(path, file) }, keep).pipe(ThisProcess.provide, Effect.ignore)
  return newHooksWarning(fresh.map(({ hook }) => hook))
})
