/**
 * Makes a folder with those above it. Node's own `recursive` never ends where the system says "not found" of a folder whose parent
 * is there, as it does below `/proc`: here each folder is tried twice at most.
 */

import { Effect, type FileSystem } from "effect"
import { mkdirSync, statSync } from "node:fs"
import { dirname } from "node:path"
import { isNotFound } from "../../domain/text/DiskErrors.ts"

/** `makeDirectory` of a file system, whose `recursive` ends. */
export const makingFolders = (fs: FileSystem.FileSystem): FileSystem.FileSystem["makeDirectory"] => {
  const make: FileSystem.FileSystem["makeDirectory"] = (place, options) => {
    const once = Effect.catch(fs.makeDirectory(place, { ...options, recursive: false }), (error) =>
      isNotFound(error)
        ? Effect.fail(error)
        : Effect.flatMap(
            Effect.catch(fs.stat(place), () => Effect.fail(error)),
            ({ type }) => (type === "Directory" ? Effect.void : Effect.fail(error))
          )
    )
    return Effect.catchIf(once, isNotFound, (error) => {
      const parent = dirname(place)
      return parent === place ? Effect.fail(error) : Effect.andThen(make(parent, options), once)
    })
  }
  return (place, options) => (options?.recursive === true ? make(place, options) : fs.makeDirectory(place, options))
}

const isMissing = (error: unknown): boolean =>
  typeof error === "object" && error !== null && "code" in error && error.code === "ENOENT"

/** The same without an effect, for what opens files at once. Throws errors of Node. */
export const makeFoldersSync = (place: string, mode: number): void => {
  const once = () => {
    try {
      mkdirSync(place, { mode })
    } catch (error) {
      if (isMissing(error) || statSync(place, { throwIfNoEntry: false })?.isDirectory() !== true) throw error
    }
  }
  try {
    once()
  } catch (error) {
    const parent = dirname(place)
    if (!isMissing(error) || parent === place) throw error
    makeFoldersSync(parent, mode)
    once()
  }
}
