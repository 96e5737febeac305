import { Context } from "effect"

/** Where the logs of sessions lie, for what copies them whole, in or out. The blobs of a log lie beside it (`blobFolderOf`). */
export class SessionFiles extends Context.Service<
  SessionFiles,
  {
    /** The folder of all logs. */
    readonly folder: string
    /** The log of a session, whether it is there or not. */
    readonly of: (id: string) => string
  }
>()("palimpsest/services/SessionFiles") {}
