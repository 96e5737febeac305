/** Provides `GatewayStore` from the files of a folder. */

import { Clock, Effect, FileSystem, Layer, Option, Path } from "effect"
import { pid } from "node:process"
import { GatewayStore, GatewayStoreError } from "../../services/gateway/GatewayStore.ts"

const ending = ".json"

/** Makes names of temporary files distinct within this process. */
let written = 0

const dayMillis = 86_400_000

/** Removes the files of a folder that are older than this. */
export const removeOld = Effect.fnUntraced(function* (folder: string, oldest: number) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  for (const name of yield* Effect.orElseSucceed(fs.readDirectory(folder, { recursive: true }), () => [])) {
    const file = path.join(folder, name)
    // A file that another process removes meanwhile is gone, as it should be.
    yield* Effect.ignore(
      Effect.flatMap(fs.stat(file), ({ mtime, type }) =>
        type === "File" && Option.getOrElse(mtime, () => new Date()).getTime() < oldest ? fs.remove(file) : Effect.void
      )
    )
  }
})

/**
 * Files in a folder: `<owner>/<kind>/<name>.json`. A text is renamed into place, so that no reader sees a part of it. Nothing is synced to
 * the disk: after a crash of the machine, a lost text costs one more compression. A text that was neither written nor read
 * for `keepDays` is removed at the start.
 */
export const layer = (
  folder: string,
  keepDays: number
): Layer.Layer<GatewayStore, never, FileSystem.FileSystem | Path.Path> =>
  Layer.effect(
    GatewayStore,
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const failed = (operation: string) => (cause: { readonly message: string }) =>
        new GatewayStoreError({ message: `cannot ${operation} in ${folder}: ${cause.message}`, cause })
      const folderOf = (owner: string, kind: string) => path.join(folder, owner, kind)
      const made = new Set<string>()
      const makeFolder = Effect.fnUntraced(function* (place: string) {
        if (made.has(place)) return
        yield* fs.makeDirectory(place, { recursive: true, mode: 0o700 })
        made.add(place)
      })
      const oldest = (yield* Clock.currentTimeMillis) - keepDays * dayMillis
      yield* Effect.forkScoped(Effect.ignore(removeOld(folder, oldest)))
      return {
        names: (owner, kind) =>
          fs.readDirectory(folderOf(owner, kind)).pipe(
            Effect.catchIf(
              ({ reason }) => reason._tag === "NotFound",
              () => Effect.succeed<Array<string>>([])
            ),
            Effect.map((files) =>
              files.filter((file) => file.endsWith(ending)).map((file) => file.slice(0, -ending.length))
            ),
            Effect.mapError(failed("read"))
          ),
        get: (owner, kind, name) => {
          const file = path.join(folderOf(owner, kind), `${name}${ending}`)
          const touch = Effect.flatMap(Clock.currentTimeMillis, (now) => fs.utimes(file, new Date(now), new Date(now)))
          return Effect.tap(fs.readFileString(file), () => Effect.ignore(touch)).pipe(
            Effect.catchIf(
              ({ reason }) => reason._tag === "NotFound",
              () => Effect.undefined
            ),
            Effect.mapError(failed("read"))
          )
        },
        put: Effect.fnUntraced(
          function* (owner, kind, name, text) {
            const place = folderOf(owner, kind)
            written += 1
            const fresh = path.join(place, `.${pid}-${written}`)
            yield* makeFolder(place)
            yield* fs.writeFileString(fresh, text, { mode: 0o600 })
            yield* fs.rename(fresh, path.join(place, `${name}${ending}`))
          },
          Effect.mapError(failed("write"))
        )
      }
    })
  )
