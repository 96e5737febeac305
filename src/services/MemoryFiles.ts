import { ByteSize, Effect, FileSystem, Option, Path, type PlatformError, Predicate } from "effect"
import { diskTrouble, isNotThere } from "../domain/DiskTrouble.ts"
import { isBinary } from "../domain/FileKind.ts"
import { decodeFile } from "../domain/FileText.ts"
import {
  findImports,
  flatBlock,
  importedText,
  isAddress,
  isPath,
  notImported,
  standsAs
} from "../domain/MemoryImports.ts"
import * as Work from "../domain/Work.ts"
import { isWithin, quoted } from "../domain/WorkspacePath.ts"
import { kinds } from "./RegularFile.ts"
import { Workspace } from "./Workspace.ts"

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

/** A memory file, and what counts for its imports. */
export interface Origin extends Seen {
  /** Absolute, as it was found. */
  readonly place: string
  /** What it imports has to lie in one of these. */
  readonly within: ReadonlyArray<string>
  /** Whether files of a folder may be imported; absent: nobody is asked, as for the person's own files. */
  readonly isTrusted?: ((folder: string) => Effect.Effect<boolean>) | undefined
}

/** What is wrong in a file. */
export interface Problem {
  readonly line: string
  /** Where files import one another: all of them, absolute, links followed. */
  readonly circle?: ReadonlyArray<string>
}

/** A memory file with all its imports. */
export interface Resolved {
  readonly text: string
  /** Whose text it brings along. Absolute, links followed. */
  readonly imports: ReadonlyArray<string>
  readonly problems: ReadonlyArray<Problem>
}

/** One line for each problem; files that import one another are told once, not for each way on which one comes to them. */
export const linesOf = (problems: ReadonlyArray<Problem>): ReadonlyArray<string> => {
  const lines = new Set<string>()
  const told = new Set<string>()
  for (const { circle = [], line } of problems) {
    if (circle.some((file) => told.has(file))) continue
    for (const file of circle) told.add(file)
    lines.add(line)
  }
  return [...lines]
}

/** Reads memory files; what it has read it does not read again. */
export interface MemoryFiles {
  /** Says of a folder that there is no link on the way to it, so that nobody has to look. */
  readonly isReal: (folder: string) => void
  /** What a place is, without opening it. It has to lie in one of these folders, which are absolute with links followed. */
  readonly look: (place: string, within: ReadonlyArray<string>) => Effect.Effect<Looked>
  /** What a file says, imports and all. A failure says why it cannot be read. */
  readonly resolve: (
    file: Origin,
    /** Files that have blocks of their own, by their keys, and how these are shown: no other one brings them along. */
    own: ReadonlyMap<string, string>
  ) => Effect.Effect<Resolved, string>
  /**
   * Whether a file says all that another one says: it is the same from the beginning, and so is what they import. An import that
   * brings the other one nothing is nothing that it says.
   */
  readonly covers: (one: Origin, other: Origin) => Effect.Effect<boolean>
}

const mebibytes = (bytes: number): string => `${(bytes / 1_048_576).toFixed(1)} MiB`
const tooLarge = (bytes: number) => `it has ${mebibytes(bytes)}, and memory files of more than 1 MiB are not read`

/** The device and number of a file, or its path where the system tells no number. */
const keyOf = (info: FileSystem.File.Info, real: string): string =>
  Option.match(info.ino, { onNone: () => real, onSome: (ino) => `${info.dev}:${ino}` })

const isCircleOfLinks = ({ reason }: PlatformError.PlatformError): boolean =>
  "cause" in reason && Predicate.hasProperty(reason.cause, "code") && reason.cause.code === "ELOOP"

/** Why an import brings nothing. */
interface Failure {
  readonly why: string
  /** There is nothing of that name. */
  readonly isAbsent?: boolean
  readonly circle?: ReadonlyArray<string>
}

/** What an import brings. */
interface Imported {
  readonly place: string
  readonly real: string
  readonly key: string
  readonly text: string
}

/** Whether a text begins with all of another one, which ends where a line ends. */
const beginsWith = (text: string, other: string): boolean => {
  const [whole, part] = [text.trim(), other.trim()]
  return whole.startsWith(part) && /^[ \t\r]*(?:\n|$)/.test(whole.slice(part.length))
}

/** A reader of memory files. It keeps what it read: a new one sees files as they are then. */
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
          isNotThere(error)
            ? { _tag: "Nothing", isFolder: false }
            : { _tag: "Refused", why: isCircleOfLinks(error) ? "it is a circle of links" : diskTrouble(error) }
      })
    )

  const read = ({ real, size }: Seen): Effect.Effect<string, string> =>
    safe.readFile(real).pipe(
      Effect.mapError(diskTrouble),
      Effect.flatMap((bytes) => {
        // It may have become another one between the look and the reading.
        if (bytes.length !== size) return Effect.fail("it changed while it was read")
        return isBinary(bytes) ? Effect.fail("it is binary, and memory is text") : Effect.succeed(decodeFile(bytes))
      })
    )

  /** What is worked out once for each key, however many ask at the same time. */
  const once = <A, E>() => {
    const known = new Map<string, Effect.Effect<A, E>>()
    return (key: string, work: Effect.Effect<A, E>): Effect.Effect<A, E> =>
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
  const texts = once<string, string>()
  const textOf = (file: Seen) => texts(file.real, read(file))

  const imported = once<Imported, Failure>()
  /** What lies at a place that is imported. */
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

  /** What an import means that stands in a file; a failure says why nothing. */
  const find = (given: string, from: string, origin: Origin): Effect.Effect<Imported, Failure> => {
    if (isAddress(given)) return Effect.fail({ why: "only files can be imported, no addresses" })
    if (given.includes("\0")) return Effect.fail({ why: "it is no path" })
    const place = path.resolve(path.dirname(from), given)
    // Where names alone lead out, nobody is told what there is.
    return origin.within.some((folder) => isWithin(folder, place, path.sep))
      ? importedFrom(place, origin)
      : Effect.fail({ why: `it leads out of ${origin.within.map(shown).join(" and ")}` })
  }

  /** Whether a failure is none because nobody meant a file: `@scope/package`. */
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
      complain(place, `@${quoted(given)} was not imported: ${why}`, circle)

    /** What an import brings, and the name of its block where it has one of its own; a failure says why nothing. */
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
      // A file that says nothing has no block.
      if (block !== undefined && file.text.trim() !== "") return { file, block }
      if (size + file.text.length > mostBytes) {
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
              pieces.push(notImported(quoted(given), brought.failure.why))
            }
            continue
          }
          const { block, file } = brought.success
          if (block !== undefined) {
            pieces.push(standsAs(quoted(given), block))
            continue
          }
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
      const wanted = yield* Work.run(findImports(whole.text))
      for (const [i, { path: given }] of (yield* Work.run(findImports(part.text))).entries()) {
        // What follows in the whole may make code of it.
        if (wanted[i]?.path !== given) return false
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
