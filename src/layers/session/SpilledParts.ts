/** Large parts of events, which a log keeps as blobs: how every store writes them, and reads them back. */

import { Effect } from "effect"
import { type DecodedLine, restoreSpilled, spillableParts } from "../../domain/session/LogFormat.ts"
import type { ReadLine } from "../../domain/session/LogReader.ts"
import { minSpillBytes, type SessionEvent, type Spilled } from "../../domain/session/Session.ts"
import * as Bytes from "../../domain/text/Bytes.ts"
import { corruptLine, lineError, SessionStoreError, sessionUnavailable } from "../../services/session/SessionStore.ts"
import type { TempStore, TempStoreError } from "../../services/session/TempStore.ts"
import { failureOf } from "./SessionStoreErrors.ts"

/** Stores the large parts of an event in the blob store, side by side. */
export const spillParts = Effect.fnUntraced(function* (
  blobs: TempStore["Service"],
  event: SessionEvent
): Effect.fn.Return<ReadonlyMap<string, Spilled>, SessionStoreError> {
  const parts = spillableParts(event, minSpillBytes)
  if (parts.length === 0) return new Map()
  const spilled = yield* Effect.forEach(
    parts,
    Effect.fnUntraced(function* ({
      form,
      key,
      text
    }): Effect.fn.Return<ReadonlyArray<readonly [string, Spilled]>, SessionStoreError> {
      const bytes = Bytes.encode(text)
      // Escaped bytes that happen to form valid UTF-8 would be read back as a character.
      if (!text.isWellFormed() && Bytes.decode(bytes).text !== text) return []
      const hash = yield* blobs
        .put(bytes)
        .pipe(
          Effect.mapError((error) =>
            error.reason._tag === "BlobUnavailable" && error.reason.cause instanceof SessionStoreError
              ? error.reason.cause
              : sessionUnavailable("append", `${failureOf("append")}: ${error.message}`, error)
          )
        )
      return [[key, { hash, size: bytes.length, form }]]
    }),
    { concurrency: 4 }
  )
  return new Map(spilled.flat())
})

/** Turns a blob error into a store error. A lost blob makes its line unreadable; a failing disk may work again later. */
const blobError = (id: string, line: number, error: TempStoreError): SessionStoreError =>
  error.reason._tag === "BlobMissing" || error.reason._tag === "BlobDamaged"
    ? corruptLine(id, line, error.message)
    : sessionUnavailable("open", error.message, error)

/** Returns the event of a line, with the texts that the blob store holds. */
export const fetchEvent = Effect.fnUntraced(function* (
  { blobs, id }: { readonly blobs: TempStore["Service"]; readonly id: string },
  line: DecodedLine & Pick<ReadLine, "number">
) {
  if (line.spilled.size === 0) return line.event
  const texts = yield* Effect.forEach(line.spilled, ([key, { hash }]) =>
    Effect.map(blobs.get(hash), (bytes) => [key, Bytes.decode(bytes).text] as const)
  ).pipe(Effect.mapError((error) => blobError(id, line.number, error)))
  const event = restoreSpilled(line, new Map(texts))
  return event._tag === "Failure" ? yield* lineError(id, line.number, event.failure) : event.success
})
