import { Context } from "effect"

/**
 * Provides the paths of session logs, for imports and exports that copy them whole. Blobs are beside their log
 * (`blobFolderOf`).
 */
export class SessionFiles extends Context.Service<
  SessionFiles,
  {
    /** The folder of all logs. */
    readonly folder: string
    /** The path of a session's log, whether it exists or not. */
    readonly of: (id: string) => string
  }
>()("palimpsest/services/session/SessionFiles") {}
