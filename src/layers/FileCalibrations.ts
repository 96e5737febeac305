import { Effect, FileSystem, Layer, Path, Schema } from "effect"
import { pid } from "node:process"
import { fromJson } from "../domain/JsonText.ts"
import { diskTrouble, isNotFound } from "../domain/DiskTrouble.ts"
import { Calibrations, current, empty, make, Stored } from "../services/Calibrations.ts"

const StoredJson = fromJson(Stored)
/** Enough of a file to tell a newer one from a damaged one. */
const Versioned = fromJson(Schema.Struct({ version: Schema.Natural }))

/** A finalizer must not wait for a disk that hangs. */
const finalizerDeadline = "5 seconds"

/**
 * Calibrations in one JSON file (mode 0600, its folder 0700), read when the layer is built and replaced as a whole after each
 * observation: a reader sees the old file or the new one. Of two programs that learn at once the later one's knowledge
 * stays. A damaged file, or one of a newer version, is set aside beside it (`.damaged`, `.newer`) with one warning; a file that cannot be read or
 * written costs one warning too. The layer never fails.
 */
export const layer = (file: string): Layer.Layer<Calibrations, never, FileSystem.FileSystem | Path.Path> =>
  Layer.effect(
    Calibrations,
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const temporary = path.join(path.dirname(file), `.${path.basename(file)}.${pid}.tmp`)
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

      const write = Effect.fnUntraced(function* (json: string) {
        yield* fs.makeDirectory(path.dirname(file), { recursive: true, mode: 0o700 })
        // What a crashed program with our number left behind may have another mode.
        yield* fs.remove(temporary, { force: true })
        yield* fs.writeFileString(temporary, json, { flag: "wx", mode: 0o600 })
        yield* fs.rename(temporary, file)
      })

      const save = Effect.fnUntraced(function* (stored: Stored) {
        const json = yield* Effect.orDie(Schema.encodeEffect(StoredJson)(stored))
        yield* write(json).pipe(
          Effect.catch((error) =>
            warnOnce(
              `${file} cannot be written (${diskTrouble(error)}); what is learned of token counts is not kept`
            ).pipe(
              Effect.andThen(fs.remove(temporary, { force: true })),
              Effect.timeoutOption(finalizerDeadline),
              Effect.ignore
            )
          )
        )
      })

      return yield* make(yield* read, save)
    })
  )
