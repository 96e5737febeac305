import { Effect, Layer, Stream } from "effect"
import { encode } from "../../domain/text/Bytes.ts"
import { SessionDatabase } from "../../services/transcripts/SessionDatabase.ts"
import { transcriptError } from "../../services/transcripts/TranscriptError.ts"
import * as ForeignDatabase from "./ForeignDatabase.ts"
import { forEachRow, type Place, placeIn } from "./OpencodeDatabase.ts"

const rowsOf = Effect.fnUntraced(function* (path: string, { file, id }: Place) {
  const database = yield* ForeignDatabase.open(file)
  const rows: Array<Uint8Array> = []
  yield* forEachRow(database, id, (row) => rows.push(encode(`${JSON.stringify(row)}\n`)))
  return rows.length > 0 ? rows : yield* transcriptError(path, 0, `${file} holds no session ${id}`, "UnknownSession")
}, Effect.scoped)

/** Reads sessions of opencode's database as rows, one a line. */
export const layer: Layer.Layer<never> = Layer.succeed(SessionDatabase, (path) => {
  const place = placeIn(path)
  return place === undefined ? undefined : Stream.unwrap(Effect.map(rowsOf(path, place), Stream.fromArray))
})
