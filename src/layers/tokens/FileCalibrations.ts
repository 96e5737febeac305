/** Keeps what was learned about each model's token counts in a file. */

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

/** The file, and what this process learned. */
interface State {
  readonly file: string
  readonly fs: FileSystem.FileSystem
  readonly path: Path.Path
  /** The calibrations of this process. */
  readonly own: Map<string, Calibration>
  /** The observations of each model that are not in the file yet. */
  readonly unsaved: Map<string, ReadonlyArray<Learn>>
  hasWarned: boolean
}

const warnOnce = (state: State, message: string) =>
  Effect.suspend(() => {
    if (state.hasWarned) return Effect.void
    state.hasWarned = true
    return Effect.logWarning(message)
  })

const setAside = Effect.fnUntraced(function* (state: State, json: string) {
  const { file, fs } = state
  const versioned = yield* Effect.option(Schema.decodeEffect(Versioned)(json))
  const isNewer = versioned._tag === "Some" && versioned.value.version > noCalibrations.version
  const aside = `${file}.${isNewer ? "newer" : "damaged"}`
  const why = isNewer ? "was written by a newer version" : "is damaged"
  yield* fs.rename(file, aside)
  yield* warnOnce(state, `${file} ${why}; it was set aside as ${aside}, and token counts are learned anew`)
  return noCalibrations
})

/** Warns of a file that cannot be read, if its folder exists. Without one there is nothing to lose. */
const warnUnreadable = Effect.fnUntraced(function* (state: State, error: Parameters<typeof diskErrorText>[0]) {
  const { file, fs, path } = state
  const folder = yield* Effect.option(fs.stat(path.dirname(file)))
  if (folder._tag === "None" || folder.value.type !== "Directory") return
  yield* warnOnce(state, `${file} cannot be used (${diskErrorText(error)}); token counts are learned anew`)
})

const read = (state: State) =>
  Effect.gen(function* () {
    const json = yield* state.fs.readFileString(state.file)
    const stored = yield* Effect.option(Schema.decodeEffect(StoredJson)(json))
    return stored._tag === "Some" ? usableCalibrations(stored.value) : yield* setAside(state, json)
  }).pipe(
    Effect.catchIf(isNotFound, () => Effect.succeed(noCalibrations)),
    Effect.catch((error) => Effect.as(warnUnreadable(state, error), noCalibrations))
  )

/**
 * The calibrations now in the file, which others may have changed; none if it is missing or damaged. A file that cannot be read is not written
 * either.
 */
const storedNow = ({ file, fs }: State) =>
  fs.readFileString(file).pipe(
    Effect.flatMap(Schema.decodeEffect(StoredJson)),
    Effect.map((stored) => usableCalibrations(stored).models),
    Effect.catchTag("SchemaError", () => Effect.succeed<StoredCalibrations["models"]>({})),
    Effect.catchIf(isNotFound, () => Effect.succeed<StoredCalibrations["models"]>({}))
  )

const write = Effect.fnUntraced(function* (
  state: State,
  added: ReadonlyArray<readonly [string, ReadonlyArray<Learn>]>
) {
  const { file, own, path } = state
  const stored = yield* storedNow(state)
  const models: Record<string, Calibration> = { ...Object.fromEntries(own), ...stored }
  for (const [model, observations] of added) {
    // A model that is not in the file yet is stored as this process learned it.
    const before = stored[model]
    if (before !== undefined) models[model] = observations.reduce((calibration, learn) => learn(calibration), before)
  }
  const json = yield* Effect.orDie(Schema.encodeEffect(StoredJson)({ ...noCalibrations, models }))
  yield* AtomicFile.writePrivate(file, json)
  yield* StaleFiles.sweepLock(FileLock.lockFileOf(path, file))
})

/** Adds the observations that are not saved yet to the file. */
const flush = (state: State) =>
  Effect.suspend(() => {
    const { file, path, unsaved } = state
    const added = [...unsaved]
    if (added.length === 0) return Effect.void
    unsaved.clear()
    return FileLock.withLock({ file, lock: FileLock.lockFileOf(path, file) }, write(state, added)).pipe(
      ThisProcess.provide,
      Effect.catch((error) => {
        const why = FileLock.lockErrorText(error)
        return warnOnce(state, `${file} cannot be written (${why}); what is learned of token counts is not kept`)
      })
    )
  })

/** Writes the file when the unsaved observations are as many as the saved ones, so that a long conversation writes it a few times. */
const save = (state: State, model: string, learned: Calibration, learn: Learn) =>
  Effect.suspend(() => {
    const { own, unsaved } = state
    own.set(model, learned)
    const pending = [...(unsaved.get(model) ?? []), learn]
    unsaved.set(model, pending)
    const saved = learned.observations - pending.length
    return pending.length >= Math.min(saved, maxUnsaved) ? flush(state) : Effect.void
  })

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
      const context = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
      const state: State = {
        file,
        fs: yield* FileSystem.FileSystem,
        path: yield* Path.Path,
        own: new Map(),
        unsaved: new Map(),
        hasWarned: false
      }
      yield* Effect.addFinalizer(() => Effect.provideContext(flush(state), context))
      return yield* make(yield* read(state), (model, learned, learn) =>
        Effect.provideContext(save(state, model, learned, learn), context)
      )
    })
  )
