import { ByteSize, Effect, FileSystem, Option, Path, type PlatformError, Predicate } from "effect"
import {
  findImports,
  flatBlock,
  importedText,
  isAddress,
  isPath,
  skippedImport,
  importedBlock
} from "../../domain/memory/MemoryImports.ts"
import { diskErrorText, isMissingPath } from "../../domain/text/DiskErrors.ts"
import * as Work from "../../domain/text/SlicedWork.ts"
import { isWithin, quotedPath } from "../../domain/text/WorkspacePath.ts"
import { isBinary } from "../../domain/workspace/FileKind.ts"
import { decodeFile } from "../../domain/workspace/FileText.ts"
import { fileKindNames } from "../platform/RegularFile.ts"
import { Workspace } from "../workspace/Workspace.ts"

/**
 * Reads memory files, each once, and inserts their imports.
 *
 * One file: looking up, reading and importing share the same caches and limits.
 */

/** Largest memory file, alone and with all imports: memory is part of every request. */
export const maxFileBytes = 1_048_576

/** Files read concurrently. */
export const readConcurrency = 20

/** How files are read. */
export interface MemoryFilesOptions {
  readonly format: "tree" | "flat"
  /** Deepest chain of imports in the tree format. */
  readonly depth: number
  /** Renders a path for the user. */
  readonly shown: (place: string) => string
}

/** A file that may be read. */
export interface FileVersion {
  /** Absolute, links resolved. */
  readonly real: string
  readonly size: number
  /** Identifies the file under all its names. */
  readonly key: string
}

/** What a path refers to. */
export type LookupResult =
  | ({ readonly _tag: "File" } & FileVersion)
  /** No file there, or a folder of that name. */
  | { readonly _tag: "Nothing"; readonly isFolder: boolean }
  | { readonly _tag: "Refused"; readonly why: string }

/** A memory file, and the limits on its imports. */
export interface Origin extends FileVersion {
  /** Absolute path as it was found. */
  readonly place: string
  /** Folders that its imports must be in. */
  readonly within: ReadonlyArray<string>
  /** Whether files of a folder may be imported. Absent: all may, as for the user's own files. */
  readonly isTrusted?: ((folder: string) => Effect.Effect<boolean>) | undefined
}

/** A problem in a file. */
export interface Problem {
  readonly line: string
  /** For circular imports: all files involved, absolute with links resolved. */
  readonly circle?: ReadonlyArray<string>
}

/** A memory file with its imports. */
export interface Resolved {
  readonly text: string
  /** Files whose text is included. Absolute, links resolved. */
  readonly imports: ReadonlyArray<string>
  readonly problems: ReadonlyArray<Problem>
}

/** One line per problem. A circle of imports is reported once, not for every way into it. */
export const linesOf = (problems: ReadonlyArray<Problem>): ReadonlyArray<string> => {
  const lines = new Set<string>()
  const reported = new Set<string>()
  for (const { circle = [], line } of problems) {
    if (circle.some((file) => reported.has(file))) continue
    for (const file of circle) reported.add(file)
    lines.add(line)
  }
  return [...lines]
}

/** Reads memory files; each file is read once. */
export interface MemoryFiles {
  /** Declares that no link leads to this folder, so that it is not checked. */
  readonly isReal: (folder: string) => void
  /** Looks up a path without opening it. It must be in one of these folders (absolute, links resolved). */
  readonly look: (place: string, within: ReadonlyArray<string>) => Effect.Effect<LookupResult>
  /** Reads a file with its imports. Fails with the reason. */
  readonly resolve: (
    file: Origin,
    /** Files with their own blocks, by key, with their shown names: other files do not include them. */
    own: ReadonlyMap<string, string>
  ) => Effect.Effect<Resolved, string>
  /**
   * Whether one file contains everything of another: the same text from the beginning, and the same imports. Failed
   * imports of the other file do not count.
   */
  readonly covers: (one: Origin, other: Origin) => Effect.Effect<boolean>
}

const mebibytes = (bytes: number): string => `${(bytes / 1_048_576).toFixed(1)} MiB`
const tooLarge = (bytes: number) => `it has ${mebibytes(bytes)}, and memory files of more than 1 MiB are not read`

/** Device and inode of a file, or its path where the system has no inodes. */
const keyOf = (info: FileSystem.File.Info, real: string): string =>
  Option.match(info.ino, { onNone: () => real, onSome: (ino) => `${info.dev}:${ino}` })

const isCircleOfLinks = ({ reason }: PlatformError.PlatformError): boolean =>
  "cause" in reason && Predicate.hasProperty(reason.cause, "code") && reason.cause.code === "ELOOP"

/** Why an import failed. */
interface Failure {
  readonly why: string
  /** No file of that name exists. */
  readonly isAbsent?: boolean
  readonly circle?: ReadonlyArray<string>
}

/** An imported file. */
interface Imported {
  readonly place: string
  readonly real: string
  readonly key: string
  readonly text: string
}

/** Whether a text begins with another that ends at the end of a line. */
const beginsWith = (text: string, other: string): boolean => {
  const [whole, part] = [text.trim(), other.trim()]
  return whole.startsWith(part) && /^[ \t\r]*(?:\n|$)/.test(whole.slice(part.length))
}

/** Creates a reader of memory files. It caches what it read; a new reader sees the files as they are then. */
export const make = Effect.fnUntraced(function* ({
  depth: deepest,
  format,
  shown
}: MemoryFilesOptions): Effect.fn.Return<MemoryFiles, never, FileSystem.FileSystem | Path.Path | Workspace> {
  const fs = yield* FileSystem.FileSystem
  const { files } = yield* Workspace
  const safe = files(fs)
  const path = yield* Path.Path

  const realFolders = new Map<string, string>()

  /** The file at a path whose folder contains no links. */
  const at = (here: string) =>
    Effect.flatMap(fs.lstat(here), (info) =>
      info.type === "SymbolicLink"
        ? Effect.flatMap(fs.realPath(here), (real) => Effect.map(fs.stat(real), (target) => ({ real, info: target })))
        : Effect.succeed({ real: here, info })
    )

  /** Resolves a path and its file. Each folder on the way is resolved once. */
  const follow: (
    place: string
  ) => Effect.Effect<{ readonly real: string; readonly info: FileSystem.File.Info }, PlatformError.PlatformError> = (
    place
  ) => {
    const above = path.dirname(place)
    const realAbove = above === place || path.dirname(above) === above ? above : realFolders.get(above)
    const name = path.basename(place)
    if (realAbove !== undefined) return at(path.join(realAbove, name))
    return Effect.flatMap(follow(above), ({ real }) => {
      realFolders.set(above, real)
      return at(path.join(real, name))
    })
  }

  const judged = (real: string, info: FileSystem.File.Info, within: ReadonlyArray<string>): LookupResult => {
    if (!within.some((folder) => isWithin(folder, real, path.sep))) {
      return { _tag: "Refused", why: `it leads out of ${within.map(shown).join(" and ")}` }
    }
    if (info.type === "Directory") return { _tag: "Nothing", isFolder: true }
    if (info.type !== "File") {
      return { _tag: "Refused", why: `it is ${fileKindNames[info.type]}, and only regular files are read` }
    }
    const size = ByteSize.toNumberUnsafe(info.size)
    if (size > maxFileBytes) return { _tag: "Refused", why: tooLarge(size) }
    return { _tag: "File", real, size, key: keyOf(info, real) }
  }

  const look = (place: string, within: ReadonlyArray<string>): Effect.Effect<LookupResult> =>
    Effect.suspend(() => follow(place)).pipe(
      Effect.match({
        onSuccess: ({ info, real }) => judged(real, info, within),
        onFailure: (error): LookupResult =>
          isMissingPath(error)
            ? { _tag: "Nothing", isFolder: false }
            : { _tag: "Refused", why: isCircleOfLinks(error) ? "it is a circle of links" : diskErrorText(error) }
      })
    )

  const read = ({ real, size }: FileVersion): Effect.Effect<string, string> =>
    safe.readFile(real).pipe(
      Effect.mapError(diskErrorText),
      Effect.flatMap((bytes) => {
        // The file may have been replaced between lookup and reading.
        if (bytes.length !== size) return Effect.fail("it changed while it was read")
        return isBinary(bytes) ? Effect.fail("it is binary, and memory is text") : Effect.succeed(decodeFile(bytes))
      })
    )

  /** Computes a value once per key, also for concurrent callers. */
  const once = <A, E>() => {
    const results = new Map<string, Effect.Effect<A, E>>()
    return (key: string, work: Effect.Effect<A, E>): Effect.Effect<A, E> =>
      Effect.suspend(() => {
        const before = results.get(key)
        if (before !== undefined) return before
        return Effect.flatMap(Effect.cached(work), (first) => {
          const made = results.get(key) ?? first
          results.set(key, made)
          return made
        })
      })
  }
  const texts = once<string, string>()
  const textOf = (file: FileVersion) => texts(file.real, read(file))

  const imported = once<Imported, Failure>()
  /** The file at an imported path. */
  const importedFrom = (place: string, { isTrusted, within }: Origin) =>
    imported(
      [place, ...within, isTrusted === undefined ? "own" : "asked"].join("\0"),
      Effect.gen(function* () {
        const looked = yield* look(place, within)
        if (looked._tag === "Refused") return yield* Effect.fail({ why: looked.why })
        if (looked._tag === "Nothing") {
          return yield* Effect.fail(
            looked.isFolder ? { why: "it is a folder" } : { why: "there is no such file", isAbsent: true }
          )
        }
        if (isTrusted !== undefined && !(yield* isTrusted(path.dirname(looked.real)))) {
          return yield* Effect.fail({ why: "its folder is not trusted" })
        }
        const text = yield* Effect.mapError(textOf(looked), (why) => ({ why }))
        return { place, real: looked.real, key: looked.key, text }
      })
    )

  /** The file that an import refers to, or why it fails. */
  const find = (given: string, from: string, origin: Origin): Effect.Effect<Imported, Failure> => {
    if (isAddress(given)) return Effect.fail({ why: "only files can be imported, no addresses" })
    if (given.includes("\0")) return Effect.fail({ why: "it is no path" })
    const place = path.resolve(path.dirname(from), given)
    // Where the name alone leads out, existence is not revealed.
    return origin.within.some((folder) => isWithin(folder, place, path.sep))
      ? importedFrom(place, origin)
      : Effect.fail({ why: `it leads out of ${origin.within.map(shown).join(" and ")}` })
  }

  /** Whether a failed import is not an import at all, such as `@scope/package`. */
  const isUnmeant = (given: string, { isAbsent }: Failure) => isAbsent === true && !isPath(given)

  const resolve = Effect.fnUntraced(function* (
    root: Origin,
    own: ReadonlyMap<string, string>
  ): Effect.fn.Return<Resolved, string> {
    const imports = new Set<string>()
    const problems = new Map<string, Problem>()
    let size = 0
    const complain = (place: string, why: string, circle?: ReadonlyArray<string>) => {
      const line = `${shown(place)}: ${why}`
      problems.set(line, { line, ...(circle === undefined ? {} : { circle }) })
    }
    const complainOf = (place: string, given: string, { circle, why }: Failure) =>
      complain(place, `@${quotedPath(given)} was not imported: ${why}`, circle)

    /** The imported file, and the name of its block when it has its own; else why it fails. */
    const bring = Effect.fnUntraced(function* (
      given: string,
      from: string,
      chain: ReadonlyArray<string>
    ): Effect.fn.Return<{ readonly file: Imported; readonly block: string | undefined }, Failure> {
      const file = yield* find(given, from, root)
      const before = chain.indexOf(file.real)
      if (before >= 0) {
        return yield* Effect.fail({
          why: "it is being imported already, so it imports itself",
          circle: chain.slice(before)
        })
      }
      const block = own.get(file.key)
      // An empty file has no block.
      if (block !== undefined && file.text.trim() !== "") return { file, block }
      if (size + file.text.length > maxFileBytes) {
        return yield* Effect.fail({ why: `${shown(root.place)} with its imports would have more than 1 MiB` })
      }
      return { file, block: undefined }
    })

    const isMeant = (given: string, from: string) =>
      isPath(given)
        ? Effect.succeed(true)
        : Effect.match(find(given, from, root), { onSuccess: () => true, onFailure: (why) => !isUnmeant(given, why) })

    const tree: (file: Imported, chain: ReadonlyArray<string>, depth: number) => Effect.Effect<string> =
      Effect.fnUntraced(function* ({ place, text }, chain, depth) {
        const tokens = yield* Work.run(findImports(text))
        if (tokens.length === 0) return text
        if (depth >= deepest) {
          for (const { path: given } of tokens) {
            if (!(yield* isMeant(given, place))) continue
            complain(place, `what it imports was left out: more than ${deepest} files import one another`)
            break
          }
          return text
        }
        const pieces: Array<string> = []
        let from = 0
        for (const { end, path: given, start } of tokens) {
          pieces.push(text.slice(from, start))
          from = end
          const brought = yield* Effect.result(bring(given, place, chain))
          if (brought._tag === "Failure") {
            if (isUnmeant(given, brought.failure)) {
              pieces.push(text.slice(start, end))
            } else {
              complainOf(place, given, brought.failure)
              pieces.push(skippedImport(quotedPath(given), brought.failure.why))
            }
            continue
          }
          const { block, file } = brought.success
          if (block !== undefined) {
            pieces.push(importedBlock(quotedPath(given), block))
            continue
          }
          imports.add(file.real)
          // The frame counts too: empty files that import one another must not grow without end.
          size += file.text.length + 2 * given.length + 60
          pieces.push(importedText(quotedPath(given), yield* tree(file, [...chain, file.real], depth + 1)))
        }
        pieces.push(text.slice(from))
        return pieces.join("")
      })

    const flat = Effect.fnUntraced(function* (first: Imported) {
      const blocks: Array<string> = []
      const visit: (file: Imported, chain: ReadonlyArray<string>) => Effect.Effect<void> = Effect.fnUntraced(
        function* (file, chain) {
          size += file.text.length
          blocks.push(flatBlock(shown(file.place), file.text))
          const tokens = yield* Work.run(findImports(file.text))
          // Gemini CLI's order (March 2026).
          for (const { path: given } of tokens.toReversed()) {
            const brought = yield* Effect.result(bring(given, file.place, chain))
            if (brought._tag === "Failure") {
              if (!isUnmeant(given, brought.failure)) complainOf(file.place, given, brought.failure)
              continue
            }
            const { block, file: next } = brought.success
            if (block === undefined && !imports.has(next.real)) {
              imports.add(next.real)
              yield* visit(next, [...chain, next.real])
            }
          }
        }
      )
      yield* visit(first, [first.real])
      return blocks.length === 1 ? first.text : blocks.join("\n\n")
    })

    const text = yield* textOf(root)
    const first = { ...root, text }
    const whole = yield* format === "flat" ? flat(first) : tree(first, [root.real], 0)
    return { text: whole, imports: [...imports], problems: [...problems.values()] }
  })

  const covers = Effect.fnUntraced(function* (one: Origin, other: Origin) {
    const both = yield* Effect.option(Effect.all([textOf(one), textOf(other)]))
    if (Option.isNone(both)) return false
    const [text, otherText] = both.value
    const open: Array<readonly [Imported, Imported]> = [
      [
        { ...one, text },
        { ...other, text: otherText }
      ]
    ]
    const seen = new Set<string>()
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      const [whole, part] = next
      const pair = `${whole.real}\0${part.real}`
      if (seen.has(pair)) continue
      seen.add(pair)
      if (!beginsWith(whole.text, part.text)) return false
      const tokensOfWhole = yield* Work.run(findImports(whole.text))
      for (const [i, { path: given }] of (yield* Work.run(findImports(part.text))).entries()) {
        // What follows in the longer text may turn this into code.
        if (tokensOfWhole[i]?.path !== given) return false
        const brought = yield* Effect.option(find(given, part.place, other))
        if (Option.isNone(brought)) continue
        const held = yield* Effect.option(find(given, whole.place, one))
        if (Option.isNone(held)) return false
        open.push([held.value, brought.value])
      }
    }
    return true
  })

  return { isReal: (folder) => void realFolders.set(folder, folder), look, resolve, covers }
})
