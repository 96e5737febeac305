/** A telemetry sink that writes to a file. */

import { Effect, FileSystem, Path, Schema } from "effect"
import { TelemetryRecord } from "../../domain/telemetry/Telemetry.ts"
import { diskErrorText } from "../../domain/text/DiskErrors.ts"
import { fromJson } from "../../domain/text/JsonText.ts"
import type { Sink } from "../../services/telemetry/Telemetry.ts"

const encode = Schema.encodeEffect(fromJson(Schema.toCodecJson(TelemetryRecord)))

/** Modes of this program's own files: only the user reads and writes them. */
const own = { folder: 0o700, file: 0o600 }

/**
 * Appends records to a file, one line of JSON each. The file and its folder are created with the first record. A link in its place is not followed,
 * because records would be appended to another file of the user.
 */
export const make = (file: string): Effect.Effect<Sink, never, FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const failed = (why: string) => ({ message: `${file} ${why}` })
    // Writing to a pipe without a reader would never end.
    const ready = yield* Effect.cached(
      fs.makeDirectory(path.dirname(file), { recursive: true, mode: own.folder }).pipe(
        Effect.andThen(fs.lstat(file)),
        Effect.map(({ type }) => type),
        Effect.catchIf(
          ({ reason }) => reason._tag === "NotFound",
          () => Effect.succeed("File" as const)
        ),
        Effect.mapError((error) => failed(`cannot be written: ${diskErrorText(error)}`)),
        Effect.filterOrFail(
          (type) => type === "File",
          (type) => failed(type === "SymbolicLink" ? "is a link; name the file itself" : "is not a file")
        )
      )
    )
    return (record) =>
      Effect.andThen(
        ready,
        Effect.flatMap(Effect.orDie(encode(record)), (line) =>
          fs.writeFileString(file, `${line}\n`, { flag: "a", mode: own.file })
        ).pipe(Effect.mapError((error) => failed(`cannot be written: ${diskErrorText(error)}`)))
      )
  })
