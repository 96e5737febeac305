import { Effect, Layer, Stream } from "effect"
import { encode } from "../../domain/text/Bytes.ts"
import { SessionDatabase } from "../../services/transcripts/SessionDatabase.ts"
import { transcriptError } from "../../services/transcripts/TranscriptError.ts"
import { forEachRow, type Place, placeIn } from "./OpencodeDatabase.ts"

const rowsOf = Effect.fnUntraced(function* (path: string, place: Place) {
  const rows: Array<Uint8Array> = []
  yield* forEachRow(place, (row) => rows.push(encode(`${JSON.stringify(row)}\n`)))
  return rows.length > 0
    ? rows
    : yield* transcriptError(path, 0, `${place.file} holds no session ${place.id}`, "UnknownSession")
})

/** Reads sessions of opencode's database as rows, one a line. */
export const layer: Layer.Layer<never> = Layer.succeed(SessionDatabase, (path) => {
  const place = placeIn(path)
  return place === undefined ? undefined : Stream.unwrap(Effect.map(rowsOf(path, place), Stream.fromArray))
})
