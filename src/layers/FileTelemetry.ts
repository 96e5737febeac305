import { Effect, FileSystem, Path, Schema } from "effect"
import { fromJson } from "../domain/JsonText.ts"
import { diskTrouble } from "../domain/DiskTrouble.ts"
import { TelemetryRecord } from "../domain/Telemetry.ts"
import type { Sink } from "../services/Telemetry.ts"

const encode = Schema.encodeEffect(fromJson(Schema.toCodecJson(TelemetryRecord)))

/** A file of this program's own is written and read by the person alone. */
const own = { folder: 0o700, file: 0o600 }

/**
 * Writes records to the end of a file, one line of JSON each. The file and its folder are made when the first one comes. A
 * link in its place is not followed: what is recorded would be added to another file of the person's.
 */
export const make = (file: string): Effect.Effect<Sink, never, FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const failed = (why: string) => ({ message: `${file} ${why}` })
    // Writing to a pipe that nobody reads would never end.
    const ready = yield* Effect.cached(
      fs.makeDirectory(path.dirname(file), { recursive: true, mode: own.folder }).pipe(
        Effect.andThen(fs.lstat(file)),
        Effect.map(({ type }) => type),
        Effect.catchIf(
          ({ reason }) => reason._tag === "NotFound",
          () => Effect.succeed("File" as const)
        ),
        Effect.mapError((error) => failed(`cannot be written: ${diskTrouble(error)}`)),
        Effect.filterOrFail(
          (type) => type === "File",
          (type) => failed(type === "SymbolicLink" ? "is a link; name the file itself" : "is no file")
        )
      )
    )
    return (record) =>
      Effect.andThen(
        ready,
        Effect.flatMap(Effect.orDie(encode(record)), (line) =>
          fs.writeFileString(file, `${line}\n`, { flag: "a", mode: own.file })
        ).pipe(Effect.mapError((error) => failed(`cannot be written: ${diskTrouble(error)}`)))
      )
  })
