import { Config, Effect, FileSystem, Layer, Option, Schema } from "effect"
import { fromJson } from "../domain/JsonText.ts"
import { decode } from "../domain/Bytes.ts"
import { isNotFound } from "../domain/DiskTrouble.ts"
import { quoted } from "../domain/WorkspacePath.ts"
import { Experiments } from "../services/Experiments.ts"
import { read } from "../services/RegularFile.ts"

/** No experiments are that long. */
const mostBytes = 1_048_576

const Numbers = fromJson(Schema.Record(Schema.String, Schema.Finite))

/**
 * Experiments as numbers by name in one JSON object: the file that GEMINI_EXP names (spec 15), else this one. It is read
 * once, at the first use. A missing file means that there are none; one that cannot be used too, with one warning: what is
 * no regular file is not opened, and what is more than 1 MiB is not read.
 */
export const layer = (file: string): Layer.Layer<never, never, FileSystem.FileSystem> =>
  Layer.effect(
    Experiments,
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const other = yield* Effect.orElseSucceed(Config.option(Config.NonEmptyString("GEMINI_EXP")), Option.none<string>)
      const place = Option.getOrElse(other, () => file)
      const none: Readonly<Record<string, number>> = {}
      const numbers = yield* Effect.cached(
        fs.realPath(place).pipe(
          Effect.flatMap((real) => read(real, quoted(place), mostBytes)),
          Effect.map(decode),
          Effect.flatMap(({ text, valid }) => Schema.decodeEffect(Numbers)(valid ? text : "")),
          Effect.provideService(FileSystem.FileSystem, fs),
          Effect.catchIf(
            (error) => error._tag === "PlatformError" && isNotFound(error),
            () => Effect.succeed(none)
          ),
          Effect.catch(() =>
            Effect.as(
              Effect.logWarning(`${quoted(place)} is left out; expected a JSON object of numbers by name`),
              none
            )
          )
        )
      )
      return {
        number: Effect.fn("Experiments.number")(function* (name) {
          const known = yield* numbers
          return Object.hasOwn(known, name) ? known[name] : undefined
        })
      }
    })
  )
