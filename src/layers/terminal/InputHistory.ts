/** The messages that a user typed on a terminal, kept in a file from run to run. */

import { Effect, FileSystem, Option, Path, type PlatformError, Schema } from "effect"
import { isNotFound } from "../../domain/text/DiskErrors.ts"
import { fromJson } from "../../domain/text/JsonText.ts"
import * as AtomicFile from "../../services/platform/AtomicFile.ts"
import * as FileLock from "../../services/platform/FileLock.ts"
import * as ThisProcess from "../platform/ThisProcess.ts"

/** Number of messages kept from run to run. */
const historyBound = 1_000
/**
 * The file is rewritten only when it exceeds the bound by this many messages. Each rewrite can lose a line that another chat
 * adds at the same time.
 */
const historySlack = 250
/** A longer message is kept only in the chat in which it was typed. */
const historyLength = 100_000

const Line = fromJson(Schema.String)
const decodeLine = Schema.decodeUnknownOption(Line)

/** Messages of earlier chats and of this one. */
export interface InputHistory {
  /** Newest first. */
  readonly entries: Array<string>
  /** Adds a message to `entries` at once and returns the effect that stores it. */
  readonly add: (message: string) => Effect.Effect<void>
}

/**
 * Reads the history file: one JSON string per line, oldest first, so that messages keep their line breaks. Two chats can append
 * to the file at the same time; neither shortens it while the other one appends. A damaged line is skipped. A file that cannot
 * be used causes one warning.
 */
export const open = Effect.fnUntraced(function* (file: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  let usable = true
  const orWarn = <A, R>(
    work: Effect.Effect<A, FileLock.FileLocked | PlatformError.PlatformError, R>
  ): Effect.Effect<Option.Option<A>, never, R> =>
    Effect.catch(Effect.asSome(work), (error) => {
      usable = false
      const why = FileLock.lockErrorText(error)
      return Effect.as(Effect.logWarning(`${file} cannot be used (${why}); messages are not kept`), Option.none())
    })

  const alone = <A, E, R>(work: Effect.Effect<A, E, R>) =>
    FileLock.withLock({ file, lock: FileLock.lockFileOf(path, file) }, work).pipe(
      Effect.provideService(FileSystem.FileSystem, fs),
      Effect.provideService(Path.Path, path),
      ThisProcess.provide
    )
  const read = Effect.map(
    Effect.catchIf(fs.readFileString(file), isNotFound, () => Effect.succeed("")),
    (text) => text.split("\n")
  )
  const keptOf = (lines: ReadonlyArray<string>) =>
    lines.flatMap((line) => Option.toArray(decodeLine(line))).slice(-historyBound)
  const isLong = (lines: ReadonlyArray<string>) => lines.length > historyBound + historySlack
  const shorten = Effect.gen(function* () {
    const lines = yield* read
    if (!isLong(lines)) return
    const shorter = keptOf(lines).map((message) => `${JSON.stringify(message)}\n`)
    yield* AtomicFile.writePrivate(file, shorter.join(""))
  })

  const lines = Option.getOrElse(yield* orWarn(read), (): Array<string> => [])
  const kept = keptOf(lines)
  if (isLong(lines)) yield* orWarn(alone(shorten))

  const entries = kept.reverse()
  const store = (message: string) =>
    alone(fs.writeFileString(file, `${JSON.stringify(message)}\n`, { flag: "a", mode: 0o600 })).pipe(
      orWarn,
      Effect.asVoid
    )
  const add = (message: string) => {
    // As in shells, a message that begins with a space is not stored.
    if (message.startsWith(" ") || message === entries[0]) return Effect.void
    entries.unshift(message)
    entries.length = Math.min(entries.length, historyBound)
    return usable && message.length <= historyLength ? store(message) : Effect.void
  }
  return { entries, add } satisfies InputHistory
})
