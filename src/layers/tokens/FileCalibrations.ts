import { Effect, FileSystem, Layer, Path, Schema } from "effect"
import { diskErrorText, isNotFound } from "../../domain/text/DiskErrors.ts"
import { fromJson } from "../../domain/text/JsonText.ts"
import type { Calibration } from "../../domain/tokens/Calibration.ts"
import * as AtomicFile from "../../services/platform/AtomicFile.ts"
import * as FileLock from "../../services/platform/FileLock.ts"
import * as StaleFiles from "../../services/platform/StaleFiles.ts"
import {
  Calibrations,
  usableCalibrations,
  noCalibrations,
  make,
  StoredCalibrations
} from "../../services/tokens/Calibrations.ts"
import * as ThisProcess from "../platform/ThisProcess.ts"

const StoredJson = fromJson(StoredCalibrations)
/** An observation, as a change of a calibration. */
type Learn = (before: Calibration) => Calibration

/** Most observations of one model that a killed process loses. */
const maxUnsaved = 64

/** The version field, to distinguish a newer file from a damaged one. */
const Versioned = fromJson(Schema.Struct({ version: Schema.Natural }))

/**
 * Stores calibrations in one JSON file (mode 0600, its folder 0700). It is read when the layer is built and replaced as a whole: a reader sees the
 * old file or the new one. It is written after the first observation of a model, then whenever as many are new as are stored (at most
 * `maxUnsaved`), and when the layer closes.
 *
 * *Details*: programs that run at the same time each add their own observations to the current content of the file, but read those of the others only
 * at their next start. A damaged file, or one of a newer version, is renamed (`.damaged`, `.newer`) with one warning. A file that cannot be read or
 * written causes one warning too. The layer never fails.
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
        const newer = versioned._tag === "Some" && versioned.value.version > noCalibrations.version
        const aside = `${file}.${newer ? "newer" : "damaged"}`
        const why = newer ? "was written by a newer version" : "is damaged"
        yield* fs.rename(file, aside)
        yield* warnOnce(`${file} ${why}; it was set aside as ${aside}, and token counts are learned anew`)
        return noCalibrations
      })

      const read = Effect.gen(function* () {
        const json = yield* fs.readFileString(file)
        const stored = yield* Effect.option(Schema.decodeEffect(StoredJson)(json))
        return stored._tag === "Some" ? usableCalibrations(stored.value) : yield* setAside(json)
      }).pipe(
        Effect.catchIf(isNotFound, () => Effect.succeed(noCalibrations)),
        Effect.catch((error) =>
          // If the home is not a folder, there is nothing to lose; other code that needs it reports the problem.
          Effect.flatMap(
            Effect.orElseSucceed(fs.stat(path.dirname(file)), () => undefined),
            (folder) =>
              Effect.as(
                folder?.type === "Directory"
                  ? warnOnce(`${file} cannot be used (${diskErrorText(error)}); token counts are learned anew`)
                  : Effect.void,
                noCalibrations
              )
          )
        )
      )

      /**
       * The calibrations now in the file, which others may have changed; none if it is missing or damaged. A file that cannot be read is not written
       * either.
       */
      const storedNow = fs.readFileString(file).pipe(
        Effect.flatMap(Schema.decodeEffect(StoredJson)),
        Effect.map((stored) => usableCalibrations(stored).models),
        Effect.catchTag("SchemaError", () => Effect.succeed<StoredCalibrations["models"]>({})),
        Effect.catchIf(isNotFound, () => Effect.succeed<StoredCalibrations["models"]>({}))
      )

      const own = new Map<string, Calibration>()
      /** The observations of each model that are not in the file yet. */
      const unsaved = new Map<string, ReadonlyArray<Learn>>()

      /** Adds the observations that are not saved yet to the file. */
      const flush = Effect.suspend(() => {
        const added = [...unsaved]
        if (added.length === 0) return Effect.void
        unsaved.clear()
        const write = Effect.gen(function* () {
          const stored = yield* storedNow
          const models: Record<string, Calibration> = { ...Object.fromEntries(own), ...stored }
          for (const [model, learned] of added) {
            // A model that is in no file yet is here as it was learned.
            const before = stored[model]
            if (before !== undefined) models[model] = learned.reduce((calibration, learn) => learn(calibration), before)
          }
          const json = yield* Effect.orDie(Schema.encodeEffect(StoredJson)({ ...noCalibrations, models }))
          yield* AtomicFile.writePrivate(file, json)
          yield* StaleFiles.sweepLock(FileLock.lockFileOf(path, file))
        })
        return FileLock.withLock({ file, lock: FileLock.lockFileOf(path, file) }, write).pipe(
          Effect.provideContext(context),
          ThisProcess.provide,
          Effect.catch((error) => {
            const why = error._tag === "FileLocked" ? error.message : diskErrorText(error)
            return warnOnce(`${file} cannot be written (${why}); what is learned of token counts is not kept`)
          })
        )
      })

      /** Writes the file when the unsaved observations are as many as the saved ones, so that a long conversation writes it a few times. */
      const save = (model: string, learned: Calibration, learn: Learn) =>
        Effect.suspend(() => {
          own.set(model, learned)
          const pending = [...(unsaved.get(model) ?? []), learn]
          unsaved.set(model, pending)
          const saved = learned.observations - pending.length
          return pending.length >= Math.min(saved, maxUnsaved) ? flush : Effect.void
        })
      yield* Effect.addFinalizer(() => flush)

      return yield* make(yield* read, save)
    })
  )
