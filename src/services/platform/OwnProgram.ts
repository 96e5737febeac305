/** Finds out how another program can start this one. */

import { Effect, FileSystem, Path } from "effect"
import { absoluteParts, joinedParts } from "../../domain/platform/SearchPath.ts"
import { bareCommand, type OwnCommand, programName } from "../../domain/settings/OwnCommand.ts"
import { findProgram } from "./ProgramLookup.ts"

/** How this process was started. */
export interface ProcessStart {
  /** The absolute path of Node. */
  readonly node: string
  /** The file of the program. */
  readonly file: string
  /** The PATH. */
  readonly searchPath: string
}

/** How another program starts this one. */
export interface OwnProgram {
  readonly command: OwnCommand
  /** Whether the program's file is in a cache of npx or the like, from which it may disappear. */
  readonly isCached: boolean
}

/** npm adds these to the PATH of what it runs: no other program has them in its own. */
const isOfPackage = (part: string): boolean => /[\\/]node_modules[\\/]\.bin[\\/]?$/.test(part)

/** Folders into which npx, pnpm, yarn and Bun put a program for one run. */
const cached = /[\\/](?:_npx|dlx|dlx-[^\\/]*|bunx-[^\\/]*|xfs-[^\\/]*)[\\/]/

/** The command for this program: its name where the PATH leads to this very file, else absolute paths. */
export const ownProgram = Effect.fn("OwnProgram.ownProgram")(function* ({
  file,
  node,
  searchPath
}: ProcessStart): Effect.fn.Return<OwnProgram, never, FileSystem.FileSystem | Path.Path> {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const real = (place: string) => Effect.orElseSucceed(fs.realPath(place), () => path.resolve(place))
  const own = yield* real(file)
  const parts = absoluteParts(searchPath, path.sep).filter((part) => !isOfPackage(part))
  const found = yield* findProgram(programName, { path: joinedParts(parts, path.sep), excludedFolders: [] })
  const isOnPath = found !== undefined && (yield* real(found)) === own
  return { command: isOnPath ? bareCommand : [node, own], isCached: !isOnPath && cached.test(own) }
})
