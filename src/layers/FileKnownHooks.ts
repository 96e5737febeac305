import { Effect, FileSystem, Path, Schema } from "effect"
import { pid } from "node:process"
import { type CommandHook, hookKey, newHooksWarning, newProjectHooks } from "../domain/HookSettings.ts"

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
  const path = yield* Path.Path
  const known = yield* fs.readFileString(file).pipe(
    Effect.flatMap(decode),
    Effect.orElseSucceed((): typeof Stored.Type => ({}))
  )
  const fresh = newProjectHooks(own, Object.hasOwn(known, folder) ? (known[folder] ?? []) : [])
  if (fresh.length === 0) return undefined
  const temporary = path.join(path.dirname(file), `.${path.basename(file)}.${pid}.tmp`)
  yield* encode({ ...known, [folder]: own.map(hookKey) }).pipe(
    Effect.tap(() => fs.makeDirectory(path.dirname(file), { recursive: true, mode: 0o700 })),
    Effect.tap(() => fs.remove(temporary, { force: true })),
    Effect.flatMap((json) => fs.writeFileString(temporary, json, { flag: "wx", mode: 0o600 })),
    Effect.andThen(fs.rename(temporary, file)),
    Effect.onError(() => Effect.ignore(fs.remove(temporary, { force: true }))),
    Effect.ignore,
    Effect.uninterruptible
  )
  return newHooksWarning(fresh)
})
