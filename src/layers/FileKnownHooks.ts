import { Effect, FileSystem, type Path, Schema } from "effect"
import { type CommandHook, hookKey, newHooksWarning, newProjectHooks } from "../domain/HookSettings.ts"
import * as WholeFile from "../services/WholeFile.ts"

/** By folder, the keys of the hooks that it brought. */
const Stored = Schema.fromJsonString(Schema.Record(Schema.String, Schema.Array(Schema.String)))
const decode = Schema.decodeEffect(Stored)
const encode = Schema.encodeEffect(Stored)

/**
 * Notes the hooks that a folder brings, and gives a line about those that it did not bring before: a folder that was trusted
 * once may bring new commands later (spec 8). What cannot be read counts as never noted; what cannot be written is told again.
 */
export const note = Effect.fn("FileKnownHooks.note")(function* (
  file: string,
  folder: string,
  hooks: ReadonlyArray<CommandHook>
): Effect.fn.Return<string | undefined, never, FileSystem.FileSystem | Path.Path> {
  const own = hooks.filter(({ source }) => source === "workspace")
  if (own.length === 0) return undefined
  const fs = yield* FileSystem.FileSystem
  const known = yield* fs.readFileString(file).pipe(
    Effect.flatMap(decode),
    Effect.orElseSucceed((): typeof Stored.Type => ({}))
  )
  const fresh = newProjectHooks(own, Object.hasOwn(known, folder) ? (known[folder] ?? []) : [])
  if (fresh.length === 0) return undefined
  yield* encode({ ...known, [folder]: own.map(hookKey) }).pipe(
    Effect.flatMap((json) => WholeFile.writePrivate(file, json)),
    Effect.ignore
  )
  return newHooksWarning(fresh)
})
