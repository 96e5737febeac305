import { Effect, FileSystem, Path } from "effect"
import { unescaped, written } from "../../domain/AtReference.ts"
import type { Completion } from "../../services/ChatTerminal.ts"

/** More names than this on a screen help nobody. */
const mostCandidates = 200

/**
 * Files and folders that `fragment` may be the beginning of, seen from the folder `from`; folders end in a slash. Names that
 * begin with a dot only where the fragment's own does. What cannot be read has none.
 */
export const paths = Effect.fn("PathCompletion.paths")(function* (
  fragment: string,
  from: string
): Effect.fn.Return<Completion, never, FileSystem.FileSystem | Path.Path> {
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
      .slice(0, mostCandidates),
    (name) =>
      fs.stat(path.join(directory, name)).pipe(
        Effect.map((info) => `${folder}${name}${info.type === "Directory" ? "/" : ""}`),
        Effect.orElseSucceed(() => `${folder}${name}`)
      ),
    { concurrency: 16 }
  )
  return { candidates, replaced: fragment }
})

/** Completes the path of an `@path` left of the cursor: the word that ends there. None where that is no such word. */
export const mentions = Effect.fn("PathCompletion.mentions")(function* (
  line: string,
  from: string
): Effect.fn.Return<Completion, never, FileSystem.FileSystem | Path.Path> {
  const fragment = /(?:^|[\s↵])@("[^"↵]*|(?:\\[^↵]|[^\s↵"\\])*\\?)$/.exec(line)?.[1]
  if (fragment === undefined) return { candidates: [], replaced: "" }
  const isQuoted = fragment.startsWith('"')
  const { candidates } = yield* paths(isQuoted ? fragment.slice(1) : unescaped(fragment), from)
  // A folder's quotes stay open: its files come next.
  const named = candidates.flatMap((path) => {
    const reference = written(path)
    if (reference === undefined) return []
    const name = isQuoted && reference === `@${path}` ? `"${path}"` : reference.slice(1)
    return [path.endsWith("/") && name.startsWith('"') ? name.slice(0, -1) : name]
  })
  return { candidates: named, replaced: fragment }
})
