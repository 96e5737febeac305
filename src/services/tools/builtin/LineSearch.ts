/** Searches files line by line. */

import { Effect, FileSystem, type Path, Stream } from "effect"
import type { ChildProcessSpawner } from "effect/process"
import { lineEnd } from "../../../domain/text/Lines.ts"
import { type Pattern, PatternMatcher } from "../../../domain/text/Pattern.ts"
import type { SlicedWork } from "../../../domain/text/SlicedWork.ts"
import type { SearchPattern } from "../../../domain/tools/SearchPattern.ts"
import { decodeFile, encodingOf } from "../../../domain/workspace/FileText.ts"
import type { Environment } from "../../platform/Environment.ts"
import * as Patterns from "../../platform/Patterns.ts"
import type { FolderRules, IgnoreChoice } from "../../workspace/IgnoreRules.ts"
import { Workspace } from "../../workspace/Workspace.ts"
import { filesBelow } from "./FolderToolArguments.ts"

/** A line that matches. */
export interface MatchedLine {
  /** From 1. */
  readonly number: number
  /** The line, or the first few thousand characters of a longer one. */
  readonly text: string
}

/** The lines that a search is for. */
interface WantedLines {
  readonly pattern: Pattern
  /** Lines that match it are left out. */
  readonly excluded: Pattern | undefined
}

/** The matches of one file. */
export interface FileMatches {
  /** Absolute. */
  readonly place: string
  readonly lines: ReadonlyArray<MatchedLine>
}

/** What to search for, and where. */
export interface Search {
  readonly lines: WantedLines
  /** The pattern of the lines, for ripgrep. */
  readonly pattern: SearchPattern
  /** A folder, or one file. */
  readonly target: string
  readonly isFile: boolean
  readonly choice: IgnoreChoice | undefined
  /** Whether to search a file, by its path from the target. */
  readonly includes: (relative: string) => boolean
  /** `isWanted` as a glob for ripgrep. Absent where ripgrep might read the pattern differently. */
  readonly include: string | undefined
  /** Maximum matches per file. */
  readonly perFile: number
  /** Maximum matches in all; a search may return a few more. */
  readonly total: number
}

/** The services that a search uses. */
export type Needs =
  | FileSystem.FileSystem
  | Path.Path
  | Workspace
  | Environment
  | ChildProcessSpawner.ChildProcessSpawner

/** Tells whether the ignore rules leave a file in. Reads the rules of each folder once. */
export const ignoreFilter = (rules: FolderRules | undefined) => {
  const rulesByFolder = new Map<string, FolderRules | undefined>([["", rules]])
  /** The rules in a folder. Undefined: the folder itself is ignored. */
  const rulesIn = (folder: string): Effect.Effect<FolderRules | undefined> =>
    Effect.suspend(() => {
      if (rulesByFolder.has(folder)) return Effect.succeed(rulesByFolder.get(folder))
      const cut = folder.lastIndexOf("/")
      const name = folder.slice(cut + 1)
      return rulesIn(cut < 0 ? "" : folder.slice(0, cut)).pipe(
        Effect.flatMap((above) =>
          above === undefined || above.ignores(name, true)
            ? Effect.undefined
            : Effect.andThen(above.pause, above.enter(name))
        ),
        Effect.tap((found) => Effect.sync(() => rulesByFolder.set(folder, found)))
      )
    })
  return (relative: string): Effect.Effect<boolean> => {
    if (rules === undefined) return Effect.succeed(true)
    const cut = relative.lastIndexOf("/")
    return Effect.flatMap(rulesIn(cut < 0 ? "" : relative.slice(0, cut)), (found) =>
      found === undefined
        ? Effect.succeed(false)
        : Effect.as(found.pause, !found.ignores(relative.slice(cut + 1), false))
    )
  }
}

/** Characters of a line that are passed on. */
const maxLineChars = 4_096

/** The matching lines of a text, at most `maxMatches`; not those in which `without` matches. */
function* matchingLines(
  text: string,
  matcher: PatternMatcher,
  without: PatternMatcher | undefined,
  maxMatches: number
): SlicedWork<ReadonlyArray<MatchedLine>> {
  const matches: Array<MatchedLine> = []
  for (let at = 0, number = 1; at < text.length && matches.length < maxMatches; number += 1) {
    const line = yield* matcher.line(text, at)
    if (line === undefined) break
    number += line.breaks
    const end = yield* lineEnd(text, line.from)
    if (without === undefined || (yield* without.line(text, line.start, end)) === undefined) {
      matches.push({ number, text: text.slice(line.start, Math.min(end, line.start + maxLineChars)) })
    }
    at = end + 1
  }
  return matches
}

/** Bytes read at a time: most files have fewer, and a buffer of this size is made for each. */
const chunkBytes = 65_536
/** Characters of a line that are matched. */
const maxMatchedChars = 1_048_576
/** Files searched at the same time. */
const concurrentFiles = 8

/** Searches one file, chunk by chunk. A file that has a NUL byte, or cannot be read, has no matches. */
export const searchOne = Effect.fnUntraced(
  function* (place: string, { excluded, pattern }: WantedLines, maxMatches: number) {
    const workspace = yield* Workspace
    const file = yield* workspace.files(yield* FileSystem.FileSystem).open(place, { flag: "r" })
    const matcher = new PatternMatcher(pattern)
    const without = excluded === undefined ? undefined : new PatternMatcher(excluded)
    const matches: Array<MatchedLine> = []
    let before = 0
    const take = Effect.fnUntraced(function* (text: string) {
      const lines = yield* Patterns.run(
        matchingLines(text.replace(/\r(?=\n|$)/g, ""), matcher, without, maxMatches - matches.length)
      )
      for (const { number, text: line } of lines) matches.push({ number: before + number, text: line })
      for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) before += 1
    })

    const buffer = new Uint8Array(chunkBytes)
    let decoder: InstanceType<typeof TextDecoder> | undefined
    // UTF-32 is rare, so such a file is read whole.
    const whole: Array<number> = []
    let rest = ""
    while (matches.length < maxMatches) {
      const bytes = buffer.subarray(0, yield* file.read(buffer))
      if (bytes.length === 0) break
      const encoding = decoder?.encoding ?? (whole.length > 0 ? "utf-32" : (encodingOf(bytes)?.encoding ?? "utf-8"))
      if (encoding.startsWith("utf-32")) {
        for (const byte of bytes) whole.push(byte)
        continue
      }
      if (encoding === "utf-8" && bytes.includes(0)) return []
      decoder ??= new TextDecoder(encoding)
      const text = decoder.decode(bytes, { stream: true })
      const end = text.lastIndexOf("\n") + 1
      if (end > 0) {
        yield* take(rest + text.slice(0, end))
        rest = ""
      }
      // What a very long line has behind its matched beginning is not joined.
      if (rest.length < maxMatchedChars) rest = (rest + text.slice(end)).slice(0, maxMatchedChars)
    }
    rest = whole.length > 0 ? decodeFile(Uint8Array.from(whole)) : rest + (decoder?.decode() ?? "")
    if (rest !== "" && matches.length < maxMatches) yield* take(rest)
    return matches
  },
  Effect.scoped,
  Effect.catchTag("PlatformError", () => Effect.succeed([]))
)

/** The files of a search, found by walking through its folder. */
export const filesByWalk = ({ choice, includes, isFile, target }: Search) =>
  isFile
    ? Effect.succeed([target])
    : Effect.map(
        filesBelow(target, choice ?? { git: false, own: false, vendored: false }, includes),
        ({ files }) => files
      )

/** Searches files in the order of their paths, up to the first one with which there are more than `total` lines. */
export const searchLines = Effect.fnUntraced(function* (
  { lines: wanted, perFile, total }: Search,
  places: ReadonlyArray<string>
) {
  let count = 0
  return yield* Stream.fromIterable(places.toSorted()).pipe(
    Stream.mapEffect((place) => Effect.map(searchOne(place, wanted, perFile), (lines) => ({ place, lines })), {
      concurrency: concurrentFiles
    }),
    Stream.filter(({ lines }) => lines.length > 0),
    Stream.takeUntil(({ lines }) => {
      count += lines.length
      return count > total
    }),
    Stream.runCollect
  )
})
