import { Context, Effect } from "effect"

/** Provides the paths of session logs, where sessions are files. Blobs are beside their log (`blobFolderOf`). */
export class SessionFiles extends Context.Service<
  SessionFiles,
  {
    /** The folder of all logs. */
    readonly folder: string
    /** The path of a session's log, whether it exists or not. */
    readonly of: (id: string) => string
  }
>()("palimpsest/services/session/SessionFiles") {}

/** Whether the session store keeps sessions as these files. The settings may name a database instead. */
export const StoresFiles = Context.Reference<Effect.Effect<boolean>>("palimpsest/services/session/StoresFiles", {
  defaultValue: () => Effect.succeed(true)
})

/** Returns a function that finds the path of a stored session's log. It finds none when the store is a database. */
export const locateLogs = Effect.gen(function* () {
  const { of } = yield* SessionFiles
  return (yield* yield* StoresFiles) ? of : () => undefined
})
