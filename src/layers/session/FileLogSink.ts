/**
 * Writes the lines of a session to its file, each with one sync. When what a failed write left cannot be removed, it refuses further lines until the
 * session is opened again.
 */

import { Effect, Option, type PlatformError, type Scope } from "effect"
import { encodeLine } from "../../domain/session/LogFormat.ts"
import * as Bytes from "../../domain/text/Bytes.ts"
import { isNotFound } from "../../domain/text/DiskErrors.ts"
import { SessionChanged, sessionError, sessionUnavailable } from "../../services/session/SessionStore.ts"
import type { LogSink } from "./LogWriter.ts"
import { type Blobs, logFile, type SessionFolder, syncFolder } from "./SessionFolder.ts"
import { readWholeLog } from "./SessionLogReader.ts"
import { withSessionErrors } from "./SessionStoreErrors.ts"
import { spillParts } from "./SpilledParts.ts"

/** Opens the log of a session to write to it, until the scope closes. Needs the session's lock. */
export const openSink = Effect.fnUntraced(function* (
  folder: SessionFolder,
  id: string,
  blobs: Blobs
): Effect.fn.Return<LogSink<Uint8Array>, PlatformError.PlatformError, Scope.Scope> {
  const handle = yield* folder.fs.open(logFile(folder, id), { flag: "a", mode: 0o600 })
  // Another file under the same name has another inode.
  const { ino } = yield* handle.stat
  // Whether the name of the blob folder is known to be on disk.
  let hasBlobs = false
  let isBroken = false

  /** Fails with `SessionChanged` when the name of the log does not lead to the opened file, or its size is not the expected one. */
  const compareFile = (position: number) =>
    folder.fs.stat(logFile(folder, id)).pipe(
      Effect.map((info) => ({
        found: Number(info.size),
        isSameFile: Option.getOrUndefined(info.ino) === Option.getOrUndefined(ino)
      })),
      Effect.catchIf(isNotFound, () => Effect.succeed({ found: 0, isSameFile: false })),
      Effect.flatMap(({ found, isSameFile }) =>
        isSameFile && found === position
          ? Effect.void
          : Effect.fail(sessionError(new SessionChanged({ id, expected: position, found })))
      )
    )

  /** Fails with `SessionChanged` when another program replaced or changed the log. */
  const checkUnchanged = (position: number) =>
    Effect.flatMap(handle.stat, ({ nlink, size }) =>
      Number(size) === position && Option.getOrUndefined(nlink) !== 0n ? Effect.void : compareFile(position)
    )

  /** Cuts off what an append wrote before it failed. */
  const rollBack = (position: number) =>
    Effect.suspend(() => handle.truncate(position)).pipe(
      Effect.andThen(handle.sync),
      Effect.catch(() => Effect.sync(() => void (isBroken = true)))
    )

  const nameBlobs = Effect.map(syncFolder(folder), () => void (hasBlobs = true))
  const refused = Effect.fail(
    sessionUnavailable(
      "append",
      `session ${id} could not be written, and the incomplete line could not be removed; open it again`
    )
  )

  return {
    id,
    blobs,
    encode: (event, _position, checkpoint) =>
      spillParts(blobs, event).pipe(
        // The first blob created the blob folder, whose name has to be durable too.
        Effect.tap(({ size }) => (size === 0 || hasBlobs ? Effect.void : nameBlobs)),
        Effect.map((spilled) => Bytes.encode(`${encodeLine(event, spilled, checkpoint)}\n`)),
        withSessionErrors("append", id)
      ),
    write: (line, position) =>
      Effect.suspend(() => (isBroken ? refused : checkUnchanged(position))).pipe(
        Effect.andThen(
          handle.writeAll(line).pipe(
            Effect.andThen(handle.sync),
            Effect.onError(() => rollBack(position))
          )
        ),
        Effect.map(() => position + line.length),
        withSessionErrors("append", id)
      ),
    readWhole: Effect.fnUntraced(
      function* (position) {
        const read = yield* readWholeLog(folder, id, blobs, position)
        if (read.good === position) return read
        return yield* sessionError(new SessionChanged({ id, expected: position, found: read.good + read.torn }))
      },
      withSessionErrors("read", id)
    )
  }
})
