/** Opens paths that were already checked: the file system that the implementations share. */

import { Effect, FileSystem, Option, type Path, PlatformError, type Scope, Stream } from "effect"

/** Opens paths that were already checked: absolute, with links followed. */
export interface NoFollow {
  /** Returns the same file system for checked paths. A link in any part of the path is an error and is not followed. */
  readonly files: (fs: FileSystem.FileSystem) => FileSystem.FileSystem
  /** Returns a path that leads to exactly this folder until the scope closes. *When to use*: to start a process in it. */
  readonly folder: (place: string) => Effect.Effect<string, PlatformError.PlatformError, Scope.Scope>
}

/** An operation of a file system. */
export type Fallible<A, R = never> = Effect.Effect<A, PlatformError.PlatformError, R>

/** How a file is opened. */
export type OpenOptions = NonNullable<Parameters<FileSystem.FileSystem["open"]>[1]>

/** An error of a file system. */
export const failure = (tag: PlatformError.SystemErrorTag, method: string, place: string, cause: unknown) =>
  PlatformError.systemError({ _tag: tag, module: "FileSystem", method, pathOrDescriptor: place, cause })

const tags: Readonly<Record<string, PlatformError.SystemErrorTag>> = {
  ENOENT: "NotFound",
  EACCES: "PermissionDenied",
  EPERM: "PermissionDenied",
  EEXIST: "AlreadyExists",
  ENOTDIR: "BadResource",
  EISDIR: "BadResource"
}

/** An error of Node as one of a file system. */
export const failed = (method: string, place: string, cause: NodeJS.ErrnoException) =>
  failure(tags[cause.code ?? ""] ?? "Unknown", method, place, cause)

/** A link was found where none may be. */
export const linked = (method: string, place: string) =>
  failure("Unknown", method, place, new Error("it was replaced by a link, or a folder above it was; try again"))

/** An operation that is not available for checked paths, as those on links and temporary files are. */
export const unoffered = (method: string) => () =>
  Effect.fail(
    PlatformError.badArgument({
      module: "FileSystem",
      method,
      description: "not supported for paths that must not follow links"
    })
  )

/** How an implementation reaches checked paths. */
export interface PathAccess {
  readonly path: Path.Path
  /**
   * Runs an operation on an existing path: any, a folder, or a regular file. By descriptors the kind is checked, so that no pipe blocks and no device
   * starts to work; by checks of the path (macOS, Windows) it is not.
   */
  readonly on: <A, R>(
    method: string,
    place: string,
    work: (held: string) => Fallible<A, R>,
    kind?: "folder" | "file"
  ) => Fallible<A, R>
  /** Runs an operation on a name in its folder. */
  readonly below: <A, R>(method: string, place: string, work: (held: string) => Fallible<A, R>) => Fallible<A, R>
  /** Opens a regular file. What is opened is what was checked. */
  readonly open: (
    fs: FileSystem.FileSystem,
    place: string,
    options: OpenOptions
  ) => Fallible<FileSystem.File, Scope.Scope>
  /** The state of a path, on which no link was followed. */
  readonly info: (fs: FileSystem.FileSystem, method: string, place: string) => Fallible<FileSystem.File.Info>
}

/** The same file system for checked paths. It has no operations on links and temporary files, and none that walk through folders. */
export const checkedFiles = (access: PathAccess, fs: FileSystem.FileSystem): FileSystem.FileSystem => {
  const { below, on, path } = access
  const makeFolder = (place: string, mode: number | undefined) =>
    below("makeDirectory", place, (held) => fs.makeDirectory(held, mode === undefined ? {} : { mode }))
  /** Makes a folder and its missing parents one after the other, and checks those that already existed. */
  const makeFolders = (place: string, mode: number | undefined): Fallible<void> =>
    makeFolder(place, mode).pipe(
      Effect.catchIf(
        ({ reason }) => reason._tag === "NotFound" && path.dirname(place) !== place,
        () => Effect.andThen(makeFolders(path.dirname(place), mode), makeFolder(place, mode))
      ),
      Effect.catchIf(
        ({ reason }) => reason._tag === "AlreadyExists",
        () => on("makeDirectory", place, () => Effect.void, "folder")
      )
    )
  return FileSystem.make({
    chown: unoffered("chown"),
    copy: unoffered("copy"),
    copyFile: unoffered("copyFile"),
    link: unoffered("link"),
    makeTempDirectory: unoffered("makeTempDirectory"),
    makeTempDirectoryScoped: unoffered("makeTempDirectoryScoped"),
    makeTempFile: unoffered("makeTempFile"),
    makeTempFileScoped: unoffered("makeTempFileScoped"),
    readLink: unoffered("readLink"),
    symlink: unoffered("symlink"),
    truncate: unoffered("truncate"),
    utimes: unoffered("utimes"),
    watch: () => Stream.fromEffect(unoffered("watch")()),
    writeFile: unoffered("writeFile"),
    access: (place, options) => on("access", place, (held) => fs.access(held, options)),
    chmod: (place, mode) => on("chmod", place, (held) => Effect.uninterruptible(fs.chmod(held, mode))),
    makeDirectory: (place, { mode, recursive = false } = {}) =>
      recursive ? makeFolders(place, mode) : makeFolder(place, mode),
    open: (place, options = {}) => access.open(fs, place, options),
    readDirectory: (place, options) =>
      options?.recursive === true
        ? unoffered("readDirectory")()
        : on("readDirectory", place, (held) => fs.readDirectory(held), "folder"),
    readDirectoryEntries: (place) =>
      on("readDirectoryEntries", place, (held) => fs.readDirectoryEntries(held), "folder"),
    readFile: (place) => on("readFile", place, (held) => fs.readFile(held), "file"),
    realPath: (place) => on("realPath", place, () => Effect.succeed(place)),
    remove: (place, options) =>
      options?.recursive === true ? unoffered("remove")() : below("remove", place, (held) => fs.remove(held, options)),
    rename: (from, to) => below("rename", from, (source) => below("rename", to, (target) => fs.rename(source, target))),
    lstat: (place) => access.info(fs, "lstat", place),
    stat: (place) => access.info(fs, "stat", place)
  })
}

/** Returns whether two checks saw the same file. */
export const isSame = (one: FileSystem.File.Info, other: FileSystem.File.Info): boolean =>
  one.dev === other.dev && Option.getOrUndefined(one.ino) === Option.getOrUndefined(other.ino)
