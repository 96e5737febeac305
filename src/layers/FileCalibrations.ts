import { Effect, FileSystem, Layer, Path, Schema } from "effect"
import type { Calibration } from "../domain/Calibration.ts"
import { fromJson } from "../domain/JsonText.ts"
import { diskTrouble, isNotFound } from "../domain/DiskTrouble.ts"
import { Calibrations, current, empty, make, Stored } from "../services/Calibrations.ts"
import * as FileLock from "../services/FileLock.ts"
import * as Leftovers from "../services/Leftovers.ts"
import * as WholeFile from "../services/WholeFile.ts"
import * as ThisProcess from "./ThisProcess.ts"

const StoredJson = fromJson(Stored)
/** Enough of a file to tell a newer one from a damaged one. */
const Versioned = fromJson(Schema.Struct({ version: Schema.Natural }))

/**
 * Calibrations in one JSON file (mode 0600, its folder 0700), read when the layer is built and replaced as a whole after each
 * observation: a reader sees the old file or the new one. Of programs that learn at once each adds what it observed to what the
 * file says then, and goes on by itself: what others learn it knows at its next start. A damaged file, or one of a newer version, is set aside beside it (`.damaged`, `.newer`) with one warning; a file that cannot be read or
 * written costs one warning too. The layer never fails.
 */
export const layer = (file: string): Layer.Layer<Calibrations, never, FileSystem.FileSystem | Path.Path> =>
  Layer.effect(
    Calibrations,
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const context = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
      let warned = false

      const warnOnce = (message: string) =>
        Effect.suspend(() => {
          if (warned) return Effect.void
          warned = true
          return Effect.logWarning(message)
        })

      const setAside = Effect.fnUntraced(function* (json: string) {
        const versioned = yield* Effect.option(Schema.decodeEffect(Versioned)(json))
        const newer = versioned._tag === "Some" && versioned.value.version > empty.version
        const aside = `${file}.${newer ? "newer" : "damaged"}`
        const why = newer ? "was written by a newer version" : "is damaged"
        yield* fs.rename(file, aside)
        yield* warnOnce(`${file} ${why}; it was set aside as ${aside}, and token counts are learned anew`)
        return empty
      })

      const read = Effect.gen(function* () {
        const json = yield* fs.readFileString(file)
        const stored = yield* Effect.option(Schema.decodeEffect(StoredJson)(json))
        return stored._tag === "Some" ? current(stored.value) : yield* setAside(json)
      }).pipe(
        Effect.catchIf(isNotFound, () => Effect.succeed(empty)),
        Effect.catch((error) =>
          // Where the home is no folder there is nothing to lose; whoever needs it says so.
          Effect.flatMap(
            Effect.orElseSucceed(fs.stat(path.dirname(file)), () => undefined),
            (folder) =>
              Effect.as(
                folder?.type === "Directory"
                  ? warnOnce(`${file} cannot be used (${diskTrouble(error)}); token counts are learned anew`)
                  : Effect.void,
                empty
              )
          )
        )
      )

      /** What others know by now; nothing where the file is gone or damaged. One that cannot be read is not written either. */
      const known = fs.readFileString(file).pipe(
        Effect.flatMap(Schema.decodeEffect(StoredJson)),
        Effect.map((stored) => current(stored).models),
        Effect.catchTag("SchemaError", () => Effect.succeed<Stored["models"]>({})),
        Effect.catchIf(isNotFound, () => Effect.succeed<Stored["models"]>({}))
      )

      const own = new Map<string, Calibration>()
      const save = Effect.fnUntraced(function* (
        model: string,
        learned: Calibration,
        learn: (before: Calibration) => Calibration
      ) {
        own.set(model, learned)
        const write = Effect.gen(function* () {
          const models = { ...Object.fromEntries(own), ...(yield* known) }
          const before = models[model]
          const stored = {
            ...empty,
            models: { ...models, [model]: before === undefined || before === learned ? learned : learn(before) }
          }
          const json = yield* Effect.orDie(Schema.encodeEffect(StoredJson)(stored))
          yield* WholeFile.writePrivate(file, json)
          yield* Leftovers.sweepLock(FileLock.besides(path, file))
        })
        yield* FileLock.locked({ file, lock: FileLock.besides(path, file) }, write).pipe(
          Effect.provideContext(context),
          ThisProcess.provide,
          Effect.catch((error) => {
            const why = error._tag === "FileLocked" ? error.message : diskTrouble(error)
            return warnOnce(`${file} cannot be written (${why}); what is learned of token counts is not kept`)
          })
        )
      })

      return yield* make(yield* read, save)
    })
  )
