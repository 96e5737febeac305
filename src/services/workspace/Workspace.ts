/** The contract of the workspace: which paths tools may use. */

import { Context, type Effect, type FileSystem, type PlatformError, Schema, type Scope } from "effect"

/** A path that may not be used. The message names the path and the reason, in one sentence that the caller can act on. */
export class WorkspaceError extends Schema.TaggedError<WorkspaceError>()("WorkspaceError", {
  message: Schema.String,
  /** Whether the path is malformed, or leads outside the folders that may be used. */
  reason: Schema.Literals(["InvalidPath", "OutsideWorkspace"])
}) {}

/**
 * The folders that tools may use: the workspace, added folders, and for reading also stored outputs. Paths are checked
 * after resolving links.
 */
export class Workspace extends Context.Service<
  Workspace,
  {
    /** Absolute, links resolved. Relative paths start here. */
    readonly root: string
    /** `root` first, then added folders. Absolute, links resolved. */
    readonly folders: ReadonlyArray<string>
    /**
     * The absolute path that a tool may use, or why not: outside all folders, through a link that leads out, or without
     * a parent folder. The file itself need not exist; a reader finds out.
     */
    readonly path: (requested: string, purpose: "read" | "write") => Effect.Effect<string, WorkspaceError>
    /**
     * A file system for paths returned by `path` and those below. It follows no links: when a folder is replaced by a
     * link after the check, however fast, operations fail instead of reaching beyond it.
     */
    readonly files: (fs: FileSystem.FileSystem) => FileSystem.FileSystem
    /** A path for starting a process in exactly this folder, valid until the scope closes. */
    readonly held: (folder: string) => Effect.Effect<string, PlatformError.PlatformError, Scope.Scope>
    /**
     * Whether a path belongs to the program, such as a plan file; it is created private to the user. Absent: none does.
     */
    readonly isOwn?: ((absolute: string) => Effect.Effect<boolean>) | undefined
    /** A path as shown: relative to the root where it is below it. */
    readonly shown: (absolute: string) => string
  }
>()("palimpsest/services/workspace/Workspace") {}
