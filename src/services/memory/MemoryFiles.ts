/** Looks up and reads memory files and the files that they import, each once. */

import { ByteSize, Effect, FileSystem, Option, Path, type PlatformError, Predicate } from "effect"
import { isAddress } from "../../domain/memory/MemoryImports.ts"
import { diskErrorText, isMissingPath } from "../../domain/text/DiskErrors.ts"
import { isWithin } from "../../domain/text/WorkspacePath.ts"
import { isBinary } from "../../domain/workspace/FileKind.ts"
import { decodeFile } from "../../domain/workspace/FileText.ts"
import { fileKindNames } from "../platform/RegularFile.ts"
import { Workspace } from "../workspace/Workspace.ts"

/** Largest memory file, alone and with all imports: memory is part of every request. */
export const maxFileBytes = 1_048_576

/** Files read concurrently. */
export const readConcurrency = 20

/** How files are read. */
interface MemoryFilesOptions {
  readonly format: "tree" | "flat"
  /** Deepest chain of imports in the tree format. */
  readonly depth: number
  /** Renders a path for the user. */
  readonly shown: (place: string) => string
}

/** A file that may be read. */
interface FileVersion {
  /** Absolute, links resolved. */
  readonly real: string
  readonly size: number
  /** Identifies the file under all its names. */
  readonly key: string
}

/** What a path refers to. */
type LookupResult =
  | ({ readonly _tag: "File" } & FileVersion)
  /** No file there, or a folder of that name. */
  | { readonly _tag: "Nothing"; readonly isFolder: boolean }
  /** `why` completes the sentence "<file>: …". */
  | { readonly _tag: "Refused"; readonly why: string }

/** A memory file, and the limits on its imports. */
export interface Origin extends FileVersion {
  /** Absolute path as it was found. */
  readonly place: string
  /** Folders that its imports must be in. */
  readonly allowedFolders: ReadonlyArray<string>
  /** Whether files of a folder may be imported. Absent: all may, as for the user's own files. */
  readonly isTrusted?: ((folder: string) => Effect.Effect<boolean>) | undefined
}

/** An imported file. */
export interface Imported {
  readonly place: string
  readonly real: string
  readonly key: string
  readonly text: string
}

/** Results by key. */
type Results<A, E> = Map<string, Effect.Effect<A, E>>

/** A reader of memory files. It caches what it read; a new reader sees the files as they are then. */
export interface MemoryFiles extends MemoryFilesOptions {
  readonly fs: FileSystem.FileSystem
  /** The checked file system of the workspace. */
  readonly safe: FileSystem.FileSystem
  readonly path: Path.Path
  readonly texts: Results<string, string>
  readonly imported: Results<Imported, string>
}

/** Device and inode of a file, or its path where the system has no inodes. */
const keyOf = (info: FileSystem.File.Info, real: string): string =>
  Option.match(info.ino, { onNone: () => real, onSome: (ino) => `${info.dev}:${ino}` })

const isCircleOfLinks = ({ reason }: PlatformError.PlatformError): boolean =>
  "cause" in reason && Predicate.hasProperty(reason.cause, "code") && reason.cause.code === "ELOOP"

/** Computes a value once per key, also for concurrent callers. */
const once = <A, E>(results: Results<A, E>, key: string, work: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.suspend(() => {
    const before = results.get(key)
    if (before !== undefined) return before
    return Effect.flatMap(Effect.cached(work), (first) => {
      const made = results.get(key) ?? first
      results.set(key, made)
      return made
    })
  })

/** The failure to read a file that does not exist. */
export const noFile = "there is no such file"

const leadsOut = ({ shown }: MemoryFiles, allowedFolders: ReadonlyArray<string>): string =>
  `it leads out of ${allowedFolders.map(shown).join(" and ")}`

const refused = (why: string): LookupResult => ({ _tag: "Refused", why })

const isWithinAny = ({ path }: MemoryFiles, allowedFolders: ReadonlyArray<string>, place: string): boolean =>
  allowedFolders.some((folder) => isWithin(folder, place, path.sep))

const lookupResult = (
  files: MemoryFiles,
  real: string,
  info: FileSystem.File.Info,
  allowedFolders: ReadonlyArray<string>
): LookupResult => {
  if (!isWithinAny(files, allowedFolders, real)) return refused(leadsOut(files, allowedFolders))
  if (info.type === "Directory") return { _tag: "Nothing", isFolder: true }
  if (info.type !== "File") return refused(`it is ${fileKindNames[info.type]}, and only regular files are read`)
  const size = ByteSize.toNumberUnsafe(info.size)
  if (size > maxFileBytes) {
    return refused(`it has ${(size / maxFileBytes).toFixed(1)} MiB, and memory files of more than 1 MiB are not read`)
  }
  return { _tag: "File", real, size, key: keyOf(info, real) }
}

const lookupFailure = (error: PlatformError.PlatformError): LookupResult =>
  isMissingPath(error)
    ? { _tag: "Nothing", isFolder: false }
    : refused(isCircleOfLinks(error) ? "its links form a cycle" : diskErrorText(error))

/** Looks up a path without opening it. It must be in one of these folders (absolute, links resolved). */
export const look = (
  files: MemoryFiles,
  place: string,
  allowedFolders: ReadonlyArray<string>
): Effect.Effect<LookupResult> =>
  files.fs.realPath(place).pipe(
    Effect.flatMap((real) =>
      Effect.map(files.fs.stat(real), (info) => lookupResult(files, real, info, allowedFolders))
    ),
    Effect.catch((error) => Effect.succeed(lookupFailure(error)))
  )

const read = ({ safe }: MemoryFiles, { real, size }: FileVersion): Effect.Effect<string, string> =>
  safe.readFile(real).pipe(
    Effect.mapError(diskErrorText),
    Effect.flatMap((bytes) => {
      // The file may have been replaced between lookup and reading.
      if (bytes.length !== size) return Effect.fail("it changed while it was being read")
      return isBinary(bytes) ? Effect.fail("it is binary, and memory is text") : Effect.succeed(decodeFile(bytes))
    })
  )

/** The text of a file, or why it is not read. */
export const textOf = (files: MemoryFiles, file: FileVersion): Effect.Effect<string, string> =>
  once(files.texts, file.real, read(files, file))

const readImported = Effect.fnUntraced(function* (
  files: MemoryFiles,
  place: string,
  { isTrusted, allowedFolders }: Origin
) {
  const looked = yield* look(files, place, allowedFolders)
  if (looked._tag === "Refused") return yield* Effect.fail(looked.why)
  if (looked._tag === "Nothing") return yield* Effect.fail(looked.isFolder ? "it is a folder" : noFile)
  if (isTrusted !== undefined && !(yield* isTrusted(files.path.dirname(looked.real)))) {
    return yield* Effect.fail("its folder is not trusted")
  }
  const text = yield* textOf(files, looked)
  return { place, real: looked.real, key: looked.key, text }
})

/** The file that an import in the file `from` refers to, or why it fails. `origin` sets its limits. */
export const findImport = (
  files: MemoryFiles,
  importPath: string,
  from: string,
  origin: Origin
): Effect.Effect<Imported, string> => {
  const { isTrusted, allowedFolders } = origin
  if (isAddress(importPath)) return Effect.fail("only files can be imported, not addresses")
  if (importPath.includes("\0")) return Effect.fail("it is not a path")
  const place = files.path.resolve(files.path.dirname(from), importPath)
  // Where the name alone leads out, existence is not revealed.
  if (!isWithinAny(files, allowedFolders, place)) return Effect.fail(leadsOut(files, allowedFolders))
  const key = [place, ...allowedFolders, isTrusted === undefined ? "own" : "asked"].join("\0")
  return once(files.imported, key, readImported(files, place, origin))
}

/** Creates a reader of memory files. */
export const make = Effect.fnUntraced(function* (options: MemoryFilesOptions) {
  const fs = yield* FileSystem.FileSystem
  return {
    ...options,
    fs,
    safe: (yield* Workspace).files(fs),
    path: yield* Path.Path,
    texts: new Map(),
    imported: new Map()
  }
})
