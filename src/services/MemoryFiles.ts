import { ByteSize, Effect, FileSystem, Option, Path, type PlatformError } from "effect"
import { diskTrouble, isNotThere } from "../domain/DiskTrouble.ts"
import { isBinary } from "../domain/FileKind.ts"
import { decodeFile } from "../domain/FileText.ts"
import { findImports, flatBlock, importedText, isAddress, notImported } from "../domain/MemoryImports.ts"
import * as Work from "../domain/Work.ts"
import { isWithin, quoted } from "../domain/WorkspacePath.ts"
import { kinds } from "./RegularFile.ts"

/** Memory files as they are read: each once, with what they import in them (spec 7.4). */

/** A larger file is no memory: nobody wrote it to be read in every request. With all imports a file may be as large. */
export const mostBytes = 1_048_576

/** Files that are read at the same time (spec 7.1). */
export const atOnce = 20

/** How files are read. */
export interface MemoryFilesOptions {
  readonly format: "tree" | "flat"
  /** Imports in imports, at most, in the tree format. */
  readonly depth: number
  /** A path as a person is shown it. */
  readonly shown: (place: string) => string
}

/** A file that may be read. */
export interface Seen {
  /** Absolute, links followed. */
  readonly real: string
  readonly size: number
  /** The same for all names of a file. */
  readonly key: string
}

/** What a place holds. */
export type Looked =
  | ({ readonly _tag: "File" } & Seen)
  /** There is none, or a folder has that name. */
  | { readonly _tag: "Nothing"; readonly isFolder: boolean }
  | { readonly _tag: "Refused"; readonly why: string }

/** A memory file with all its imports. */
export interface Resolved {
  readonly text: string
  /** Absolute, links followed. */
  readonly imports: ReadonlyArray<string>
}

/** Reads memory files; what it has read it does not read again. */
export interface MemoryFiles {
  /** Says of a folder that there is no link on the way to it, so that nobody has to look. */
  readonly isReal: (folder: string) => void
  /** What a place is, without opening it. It has to lie in one of these folders, which are absolute with links followed. */
  readonly look: (place: string, within: ReadonlyArray<string>) => Effect.Effect<Looked>
  /** What a file says, imports and all. A failure says why it cannot be read. */
  readonly resolve: (
    file: Seen & {
      readonly place: string
    },
    within: ReadonlyArray<string>,
    /** Whether files of a folder may be imported; absent: nobody is asked, as for the person's own files. */
    isTrusted?: (folder: string) => Effect.Effect<boolean>
  ) => Effect.Effect<Resolved, string>
  /** What was found wrong in the files so far, one line each. */
  readonly problems: ReadonlySet<string>
}

const mebibytes = (bytes: number): string => `${(bytes / 1_048_576).toFixed(1)} MiB`
const tooLarge = (bytes: number) => `it has ${mebibytes(bytes)}, and memory files of more than 1 MiB are not read`

/** The device and number of a file, or its path where the system tells no number. */
const keyOf = (info: FileSystem.File.Info, real: string): string =>
  Option.match(info.ino, { onNone: () => real, onSome: (ino) => `${info.dev}:${ino}` })

/** A reader of memory files. It keeps what it read: a new one sees files as they are then. */
export const make = Effect.fnUntraced(function* ({
  depth: deepest,
  format,
  shown
}: MemoryFilesOptions): Effect.fn.Return<MemoryFiles, never, FileSystem.FileSystem | Path.Path> {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const problems = new Set<string>()

  const realFolders = new Map<string, string>()

  /** What is at a place on the way to which there is no link. */
  const at = (here: string) =>
    Effect.flatMap(fs.lstat(here), (info) =>
      info.type === "SymbolicLink"
        ? Effect.flatMap(fs.realPath(here), (real) => Effect.map(fs.stat(real), (target) => ({ real, info: target })))
        : Effect.succeed({ real: here, info })
    )

  /** Where a place really is, and what is there. Each folder on the way is looked at once. */
  const follow: (
    place: string
  ) => Effect.Effect<{ readonly real: string; readonly info: FileSystem.File.Info }, PlatformError.PlatformError> = (
    place
  ) => {
    const above = path.dirname(place)
    const known = above === place || path.dirname(above) === above ? above : realFolders.get(above)
    const name = path.basename(place)
    if (known !== undefined) return at(path.join(known, name))
    return Effect.flatMap(follow(above), ({ real }) => {
      realFolders.set(above, real)
      return at(path.join(real, name))
    })
  }

  const judged = (real: string, info: FileSystem.File.Info, within: ReadonlyArray<string>): Looked => {
    if (!within.some((folder) => isWithin(folder, real, path.sep))) {
      return { _tag: "Refused", why: `it leads out of ${within.map(shown).join(" and ")}` }
    }
    if (info.type === "Directory") return { _tag: "Nothing", isFolder: true }
    if (info.type !== "File") {
      return { _tag: "Refused", why: `it is ${kinds[info.type]}, and only regular files are read` }
    }
    const size = ByteSize.toNumberUnsafe(info.size)
    if (size > mostBytes) return { _tag: "Refused", why: tooLarge(size) }
    return { _tag: "File", real, size, key: keyOf(info, real) }
  }

  const look = (place: string, within: ReadonlyArray<string>): Effect.Effect<Looked> =>
    Effect.suspend(() => follow(place)).pipe(
      Effect.match({
        onSuccess: ({ info, real }) => judged(real, info, within),
        onFailure: (error): Looked =>
          isNotThere(error) ? { _tag: "Nothing", isFolder: false } : { _tag: "Refused", why: diskTrouble(error) }
      })
    )

  const read = ({ real, size }: Seen): Effect.Effect<string, string> =>
    fs.readFile(real).pipe(
      Effect.mapError(diskTrouble),
      Effect.flatMap((bytes) => {
        // It may have become another one between the look and the reading.
        if (bytes.length !== size) return Effect.fail("it changed while it was read")
        return isBinary(bytes) ? Effect.fail("it is binary, and memory is text") : Effect.succeed(decodeFile(bytes))
      })
    )

  /** What is worked out once for each key, however many ask at the same time. */
  const once = <A>() => {
    const known = new Map<string, Effect.Effect<A, string>>()
    return (key: string, work: Effect.Effect<A, string>): Effect.Effect<A, string> =>
      Effect.suspend(() => {
        const before = known.get(key)
        if (before !== undefined) return before
        return Effect.flatMap(Effect.cached(work), (first) => {
          const made = known.get(key) ?? first
          known.set(key, made)
          return made
        })
      })
  }
  const texts = once<string>()
  const textOf = (file: Seen) => texts(file.real, read(file))

  const imported = once<{ readonly real: string; readonly text: string }>()
  /** What lies at a place that is imported. */
  const importedFrom = (
    place: string,
    within: ReadonlyArray<string>,
    isTrusted?: (folder: string) => Effect.Effect<boolean>
  ) =>
    imported(
      [place, ...within, isTrusted === undefined ? "own" : "asked"].join("\0"),
      Effect.gen(function* () {
        const looked = yield* look(place, within)
        if (looked._tag === "Refused") return yield* Effect.fail(looked.why)
        if (looked._tag === "Nothing") {
          return yield* Effect.fail(looked.isFolder ? "it is a folder" : "there is no such file")
        }
        if (isTrusted !== undefined && !(yield* isTrusted(path.dirname(looked.real)))) {
          return yield* Effect.fail("its folder is not trusted")
        }
        return { real: looked.real, text: yield* textOf(looked) }
      })
    )

  const resolve = Effect.fnUntraced(function* (
    root: Seen & { readonly place: string },
    within: ReadonlyArray<string>,
    isTrusted?: (folder: string) => Effect.Effect<boolean>
  ): Effect.fn.Return<Resolved, string> {
    const imports = new Set<string>()
    let size = 0
    const complain = (place: string, line: string) => Effect.sync(() => problems.add(`${shown(place)}: ${line}`))

    interface Imported {
      readonly place: string
      readonly real: string
      readonly text: string
    }

    /** What an import brings; a failure says why nothing. */
    const bring = Effect.fnUntraced(function* (
      given: string,
      from: string,
      chain: ReadonlyArray<string>
    ): Effect.fn.Return<Imported, string> {
      if (isAddress(given)) return yield* Effect.fail("only files can be imported, no addresses")
      if (given.includes("\0")) return yield* Effect.fail("it is no path")
      const place = path.resolve(path.dirname(from), given)
      // Where names alone lead out, nobody is told what there is.
      if (!within.some((folder) => isWithin(folder, place, path.sep))) {
        return yield* Effect.fail(`it leads out of ${within.map(shown).join(" and ")}`)
      }
      const { real, text } = yield* importedFrom(place, within, isTrusted)
      if (chain.includes(real)) return yield* Effect.fail("it is being imported already, so it imports itself")
      if (size + text.length > mostBytes) {
        return yield* Effect.fail(`${shown(root.place)} with its imports would have more than 1 MiB`)
      }
      return { place, real, text }
    })

    const tree: (file: Imported, chain: ReadonlyArray<string>, depth: number) => Effect.Effect<string> =
      Effect.fnUntraced(function* ({ place, text }, chain, depth) {
        const tokens = yield* Work.run(findImports(text))
        if (tokens.length === 0) return text
        if (depth >= deepest) {
          yield* complain(place, `what it imports was left out: more than ${deepest} files import one another`)
          return text
        }
        const pieces: Array<string> = []
        let from = 0
        for (const { end, path: given, start } of tokens) {
          pieces.push(text.slice(from, start))
          from = end
          const brought = yield* Effect.result(bring(given, place, chain))
          if (brought._tag === "Failure") {
            yield* complain(place, `@${quoted(given)} was not imported: ${brought.failure}`)
            pieces.push(notImported(quoted(given), brought.failure))
            continue
          }
          const file = brought.success
          imports.add(file.real)
          // The frame counts too: empty files that import one another may not grow without end either.
          size += file.text.length + 2 * given.length + 60
          pieces.push(importedText(quoted(given), yield* tree(file, [...chain, file.real], depth + 1)))
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
          // The seeds' order (spec 7.4).
          for (const { path: given } of tokens.toReversed()) {
            const brought = yield* Effect.result(bring(given, file.place, chain))
            if (brought._tag === "Failure") {
              yield* complain(file.place, `@${quoted(given)} was not imported: ${brought.failure}`)
            } else if (!imports.has(brought.success.real)) {
              imports.add(brought.success.real)
              yield* visit(brought.success, [...chain, brought.success.real])
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
    return { text: whole, imports: [...imports] }
  })

  return { isReal: (folder) => void realFolders.set(folder, folder), look, resolve, problems }
})
