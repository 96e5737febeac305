/** Completes paths and `@path` mentions in the editor of the chat. */

import { Effect, FileSystem, Path } from "effect"
import { fuzzyRank } from "../../domain/text/FuzzyMatch.ts"
import { unescaped, formatReference } from "../../domain/workspace/AtReference.ts"

/** Maximum number of candidates; more would not help on a screen. */
const maxCandidates = 200

/**
 * Returns the files and folders that `fragment` may begin, relative to the folder `from`. Folders end in a slash. Names that
 * begin with a dot are included only when the fragment's name does. A folder that cannot be read has no candidates.
 */
export const completePath = Effect.fn("PathCompletion.completePath")(function* (fragment: string, from: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const slash = fragment.lastIndexOf("/") + 1
  const folder = fragment.slice(0, slash)
  const start = fragment.slice(slash)
  const directory = path.resolve(from, folder === "" ? "." : folder)
  const names = yield* Effect.orElseSucceed(fs.readDirectory(directory), () => [])
  const candidates = yield* Effect.forEach(
    names
      .filter((name) => name.startsWith(start) && name.startsWith(".") === start.startsWith("."))
      .sort()
      .slice(0, maxCandidates),
    (name) =>
      fs.stat(path.join(directory, name)).pipe(
        Effect.map((info) => `${folder}${name}${info.type === "Directory" ? "/" : ""}`),
        Effect.orElseSucceed(() => `${folder}${name}`)
      ),
    { concurrency: 16 }
  )
  return { candidates, replaced: fragment }
})

/** Maximum number of candidates that match a fragment fuzzily, by its letters in order. */
const maxFuzzyCandidates = 20

/** Returns the paths that contain the letters of a fragment in order, best match first. */
const fuzzyPaths = (fragment: string, all: ReadonlyArray<string>): ReadonlyArray<string> =>
  all
    .flatMap((path) => {
      const rank = fuzzyRank(fragment, path)
      return rank === undefined ? [] : [{ path, rank }]
    })
    .sort((one, other) => one.rank - other.rank)
    .slice(0, maxFuzzyCandidates)
    .map(({ path }) => path)

/**
 * Completes the path of an `@path` that ends at the cursor. Returns no candidates for any other word. Of the paths that `all`
 * lists, those with the letters of the fragment follow the ones that begin with it.
 */
export const completeMention = Effect.fn("PathCompletion.completeMention")(function* (
  line: string,
  from: string,
  all: Effect.Effect<ReadonlyArray<string>> = Effect.succeed([])
) {
  const fragment = /(?:^|[\s↵])@("[^"↵]*|(?:\\[^↵]|[^\s↵"\\])*\\?)$/.exec(line)?.[1]
  if (fragment === undefined) return { candidates: [], replaced: "" }
  const isQuoted = fragment.startsWith('"')
  const prefix = isQuoted ? fragment.slice(1) : unescaped(fragment)
  const beginning = yield* completePath(prefix, from)
  const others = prefix === "" ? [] : fuzzyPaths(prefix, yield* all)
  const candidates = [...new Set([...beginning.candidates, ...others])]
  // The quote of a folder stays open, because its files come next.
  const quoted = candidates.flatMap((path) => {
    const reference = formatReference(path)
    if (reference === undefined) return []
    const name = isQuoted && reference === `@${path}` ? `"${path}"` : reference.slice(1)
    return [path.endsWith("/") && name.startsWith('"') ? name.slice(0, -1) : name]
  })
  return { candidates: quoted, replaced: fragment }
})
