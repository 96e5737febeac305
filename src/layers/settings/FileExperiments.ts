/** Reads experiments, the numbers that Gemini CLI sets remotely, from a file. */

import { Config, Effect, FileSystem, Layer, Option, Schema } from "effect"
import { decode } from "../../domain/text/Bytes.ts"
import { isNotFound } from "../../domain/text/DiskErrors.ts"
import { fromJson } from "../../domain/text/JsonText.ts"
import { quotedPath } from "../../domain/text/WorkspacePath.ts"
import { read } from "../../services/platform/RegularFile.ts"
import { experimentKeys, Experiments } from "../../services/settings/Experiments.ts"

/** Largest file of experiments. */
const maxFileBytes = 1_048_576

const Numbers = Schema.Record(Schema.String, Schema.Finite)

/** The format that Gemini CLI receives from its server and reads from `GEMINI_EXP`: flags by number. */
const Flags = Schema.Struct({
  flags: Schema.optionalKey(
    Schema.Array(
      Schema.Struct({ flagId: Schema.optionalKey(Schema.Int), floatValue: Schema.optionalKey(Schema.Finite) })
    )
  ),
  experimentIds: Schema.optionalKey(Schema.Array(Schema.Unknown))
})

/** Whether an object is in Gemini CLI's format. A plain object of numbers has neither key. */
const isOfFlags = (value: object): boolean => "flags" in value || "experimentIds" in value

const decodeFlags = Schema.decodeUnknownEffect(Flags)
const decodeNumbers = Schema.decodeUnknownEffect(Numbers)

/** The numbers of a file, by name or by flag number. */
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
 * Reads experiments from the file that `GEMINI_EXP` names, else from this one, once, at the first use.
 *
 * The file is a JSON object of numbers by name or by Gemini CLI's flag number (`{"CONTEXT_COMPRESSION_THRESHOLD":
 * 0.3}`, `{"45740197": 0.3}`), or in Gemini CLI's own format (`{"flags": [{"flagId": 45740197, "floatValue": 0.3}]}`).
 * A missing file means no experiments. An unusable file does too, with one warning: it must be a regular file of at
 * most 1 MiB.
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
          Effect.flatMap((real) => read(real, quotedPath(place), maxFileBytes)),
          Effect.map(decode),
          Effect.flatMap(({ text, valid }) => numbersOf(valid ? text : "")),
          Effect.provideService(FileSystem.FileSystem, fs),
          Effect.catchIf(
            (error) => error._tag === "PlatformError" && isNotFound(error),
            () => Effect.succeed(none)
          ),
          Effect.catch(() =>
            Effect.as(
              Effect.logWarning(
                `${quotedPath(place)} is ignored; expected a JSON object of numbers by name, or of flags`
              ),
              none
            )
          )
        )
      )
      return {
        number: Effect.fn("Experiments.number")(function* (name) {
          const experiments = yield* numbers
          const key = [name, ...(experimentKeys.get(name) ?? [])].find((one) => Object.hasOwn(experiments, one))
          return key === undefined ? undefined : experiments[key]
        })
      }
    })
  )
