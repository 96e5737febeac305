import { Config, Effect, FileSystem, Layer, Option, Schema } from "effect"
import { fromJson } from "../domain/JsonText.ts"
import { decode } from "../domain/Bytes.ts"
import { isNotFound } from "../domain/DiskTrouble.ts"
import { quoted } from "../domain/WorkspacePath.ts"
import { experimentKeys, Experiments } from "../services/Experiments.ts"
import { read } from "../services/RegularFile.ts"

/** No experiments are that long. */
const mostBytes = 1_048_576

const Numbers = Schema.Record(Schema.String, Schema.Finite)

/** What Gemini CLI gets from its server, and reads from the file that GEMINI_EXP names: flags by number. */
const Flags = Schema.Struct({
  flags: Schema.optionalKey(
    Schema.Array(
      Schema.Struct({ flagId: Schema.optionalKey(Schema.Int), floatValue: Schema.optionalKey(Schema.Finite) })
    )
  ),
  experimentIds: Schema.optionalKey(Schema.Array(Schema.Unknown))
})

/** Whether an object is in Gemini CLI's format: one of plain numbers has neither of its keys. */
const isOfFlags = (value: object): boolean => "flags" in value || "experimentIds" in value

const decodeFlags = Schema.decodeUnknownEffect(Flags)
const decodeNumbers = Schema.decodeUnknownEffect(Numbers)

/** The numbers of a file, by name or by number. */
const numbersOf = Effect.fnUntraced(function* (text: string) {
  const value = yield* Schema.decodeEffect(fromJson(Schema.Unknown))(text)
  if (typeof value !== "object" || value === null || !isOfFlags(value)) return yield* decodeNumbers(value)
  const { flags = [] } = yield* decodeFlags(value)
  return Object.fromEntries(
    flags.flatMap(({ flagId, floatValue }) =>
      flagId === undefined || floatValue === undefined ? [] : [[String(flagId), floatValue]]
    )
  )
})

/**
 * Experiments from the file that GEMINI_EXP names, else from this one: a JSON object of numbers by name or by Gemini CLI's
 * number (`{"CONTEXT_COMPRESSION_THRESHOLD": 0.3}`, `{"45740197": 0.3}`), or in the format that Gemini CLI itself reads
 * (`{"flags": [{"flagId": 45740197, "floatValue": 0.3}]}`). It is read once, at the first use. A missing file means that there
 * are none; one that cannot be used too, with one warning: what is no regular file is not opened, and what is more than
 * 1 MiB is not read.
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
          Effect.flatMap(({ text, valid }) => numbersOf(valid ? text : "")),
          Effect.provideService(FileSystem.FileSystem, fs),
          Effect.catchIf(
            (error) => error._tag === "PlatformError" && isNotFound(error),
            () => Effect.succeed(none)
          ),
          Effect.catch(() =>
            Effect.as(
              Effect.logWarning(`${quoted(place)} is left out; expected a JSON object of numbers by name, or of flags`),
              none
            )
          )
        )
      )
      return {
        number: Effect.fn("Experiments.number")(function* (name) {
          const known = yield* numbers
          const key = [name, ...(experimentKeys.get(name) ?? [])].find((one) => Object.hasOwn(known, one))
          return key === undefined ? undefined : known[key]
        })
      }
    })
  )
