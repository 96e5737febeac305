import { Config, Effect, FileSystem, Layer, Option, Schema } from "effect"
import { isNotFound } from "../domain/DiskTrouble.ts"
import { Experiments } from "../services/Experiments.ts"

const Numbers = Schema.fromJsonString(Schema.Record(Schema.String, Schema.Finite))

/**
 * Experiments as numbers by name in one JSON object: the file that GEMINI_EXP names (spec 15), else this one. It is read
 * once, at the first use. A missing file means that there are none; one that cannot be used too, with one warning.
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
        fs.readFileString(place).pipe(
          Effect.flatMap(Schema.decodeEffect(Numbers)),
          Effect.catchIf(
            (error) => error._tag === "PlatformError" && isNotFound(error),
            () => Effect.succeed(none)
          ),
          Effect.catch(() =>
            Effect.as(Effect.logWarning(`${place} is left out; expected a JSON object of numbers by name`), none)
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
