import { Effect, type FileSystem, Option, type Path, PlatformError, type Scope, Stream } from "effect"

/** Opens paths that were already checked. The implementations share this file. */

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

/** The operations that no file system for checked paths has. */
export const unofferedMethods = {
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
  writeFile: unoffered("writeFile")
}

/** Creates a folder and its missing parents one after the other, and checks those that already existed. */
export const makeFolders = (
  path: Path.Path,
  place: string,
  makeOne: (place: string) => Fallible<void>,
  check: (place: string) => Fallible<void>
): Fallible<void> =>
  makeOne(place).pipe(
    Effect.catchIf(
      ({ reason }) => reason._tag === "NotFound" && path.dirname(place) !== place,
      () => Effect.andThen(makeFolders(path, path.dirname(place), makeOne, check), makeOne(place))
    ),
    Effect.catchIf(
      ({ reason }) => reason._tag === "AlreadyExists",
      () => check(place)
    )
  )

/** Returns whether two checks saw the same file. */
export const isSame = (one: FileSystem.File.Info, other: FileSystem.File.Info): boolean =>
  one.dev === other.dev && Option.getOrUndefined(one.ino) === Option.getOrUndefined(other.ino)
