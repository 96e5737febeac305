import { Context, type Effect, type FileSystem, type PlatformError, type Scope } from "effect"
import type { ToolFailure } from "./Tool.ts"

/**
 * The folders that tools may touch: the workspace and those added to it, and for reading also where stored outputs lie. Every
 * path is judged after its links are followed.
 */
export class Workspace extends Context.Service<
  Workspace,
  {
    /** Absolute, links followed. Relative paths are meant from here. */
    readonly root: string
    /** `root` first, then the folders that were added. Absolute, links followed. */
    readonly folders: ReadonlyArray<string>
    /**
     * The absolute path that a tool may use for this; a failure that says why not: outside all folders, through a link that
     * leads out, no such parent. For `write` the file need not exist; for `read` it need not either: who reads it finds out.
     */
    readonly path: (given: string, purpose: "read" | "write") => Effect.Effect<string, ToolFailure>
    /**
     * The file system for paths that `path` gave, and those below them: it follows no link. A folder that becomes one after it
     * was judged, however fast, is an error: nothing beyond is read, listed, made or changed.
     */
    readonly files: (fs: FileSystem.FileSystem) => FileSystem.FileSystem
    /** A path by which a process is started in this folder and no other, until the scope closes. */
    readonly held: (folder: string) => Effect.Effect<string, PlatformError.PlatformError, Scope.Scope>
    /** Whether a place is the program's own, such as the file of a plan: what is made there is the person's alone. Absent: none is. */
    readonly isOwn?: ((absolute: string) => Effect.Effect<boolean>) | undefined
    /** A path as it is shown: from the root where it lies below it. */
    readonly shown: (absolute: string) => string
  }
>()("palimpsest/services/Workspace") {}
