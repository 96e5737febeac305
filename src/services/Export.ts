import { diskTrouble, diskWords, isNotFound } from "../domain/DiskTrouble.ts"
import { Effect, FileSystem, Path, type PlatformError, Ref, Schema, type Scope } from "effect"
import { encode } from "../domain/Bytes.ts"
import { entries, view } from "../domain/Conversation.ts"
import type { Hash } from "../domain/Handle.ts"
import { encodeLine, spillable } from "../domain/LogFormat.ts"
import { project, sentJson } from "../domain/Projection.ts"
import { emptySession, type Session, type SessionEvent, spillBytes, type Spilled, step } from "../domain/Session.ts"
import { writeClaude } from "../domain/transcripts/ClaudeWriter.ts"
import { writeCodex } from "../domain/transcripts/CodexWriter.ts"
import { fromSession } from "../domain/transcripts/FromSession.ts"
import { writeGemini, writeGeminiDocument } from "../domain/transcripts/GeminiWriter.ts"
import { writePi } from "../domain/transcripts/PiWriter.ts"
import type { FormatName, Writer, Written } from "../domain/transcripts/Transcript.ts"
import * as Work from "../domain/Work.ts"
import { quoted } from "../domain/WorkspacePath.ts"
import * as Leftovers from "./Leftovers.ts"
import { freshTemporaryName } from "./Processes.ts"
import { BlobFolder, blobFolderOf, TempStore, type TempStoreError } from "./TempStore.ts"

/** A file could not be written. Nothing of it is there; what was there before still is. */
export class ExportError extends Schema.TaggedError<ExportError>()("ExportError", {
  path: Schema.String,
  message: Schema.String
}) {}

/** A log that lies in the blob folder of a file whose own format has no room for all of it. */
export interface SidecarLog {
  readonly path: string
  /** The name of the bytes of the file that it belongs to. */
  readonly of: string
}

/**
 * The logs that lie in the blob folder of a file. There is more than one only when a write was cut short; when none belongs
 * to the file as it is, somebody has changed the file since.
 */
export const sidecarLogs = Effect.fnUntraced(function* (
  path: string
): Effect.fn.Return<ReadonlyArray<SidecarLog>, never, FileSystem.FileSystem | Path.Path> {
  const fs = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const folder = blobFolderOf(path)
  const names = yield* Effect.orElseSucceed(fs.readDirectory(folder), (): Array<string> => [])
  return names.flatMap((name) => {
    const of = /^([a-z2-7]{52})\.jsonl$/.exec(name)?.[1]
    return of === undefined ? [] : [{ path: paths.join(folder, name), of }]
  })
})

type Requirements = FileSystem.FileSystem | Path.Path | BlobFolder

/** Characters of log lines that are made between two chances for an interruption. */
const slice = 1_000_000

const reason = (error: PlatformError.PlatformError | TempStoreError): string =>
  error._tag === "TempStoreError" ? error.message : diskWords(error)

/** Blobs and folders that were not there before go again, unless what refers to them has been written. */
const staged = Effect.fnUntraced(function* (
  folder: string,
  written: Ref.Ref<boolean>
): Effect.fn.Return<void, never, FileSystem.FileSystem | Path.Path | Scope.Scope> {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  yield* Leftovers.sweep(folder)
  const before = new Set(yield* Effect.orElseSucceed(fs.readDirectory(folder), (): Array<string> => []))
  const existed = yield* Effect.orElseSucceed(fs.exists(folder), () => false)
  const clear = existed
    ? fs
        .readDirectory(folder)
        .pipe(
          Effect.flatMap(
            Effect.forEach((name) => (before.has(name) ? Effect.void : fs.remove(path.join(folder, name))))
          )
        )
    : fs.remove(folder, { recursive: true })
  yield* Effect.addFinalizer(() =>
    Effect.flatMap(Ref.get(written), (keep) => (keep ? Effect.void : Effect.ignore(clear)))
  )
})

/**
 * Writes bytes under a temporary name, readable by the owner only, and syncs them; what comes back gives them their name.
 * Every call that changes the disk is carried out or not begun: an interrupted one would happen behind our back.
 */
const prepared = Effect.fnUntraced(function* (
  path: string,
  chunks: ReadonlyArray<Uint8Array>
): Effect.fn.Return<
  { readonly rename: Effect.Effect<void, PlatformError.PlatformError> },
  PlatformError.PlatformError,
  FileSystem.FileSystem | Path.Path | Scope.Scope
> {
  const fs = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const folder = paths.dirname(path)
  yield* Leftovers.sweep(folder)
  const temporary = paths.join(folder, yield* freshTemporaryName)
  yield* Effect.addFinalizer(() => Effect.ignore(fs.remove(temporary, { force: true })))
  yield* Effect.scoped(
    Effect.gen(function* () {
      const file = yield* Effect.uninterruptible(fs.open(temporary, { flag: "wx", mode: 0o600 }))
      for (const chunk of chunks) yield* Effect.uninterruptible(file.writeAll(chunk))
      yield* file.sync
    })
  )
  return { rename: fs.rename(temporary, path) }
})

/** The commit: the file has its new name and what it refers to stays, or neither. */
const commit = (
  { rename }: { readonly rename: Effect.Effect<void, PlatformError.PlatformError> },
  written: Ref.Ref<boolean>
): Effect.Effect<void, PlatformError.PlatformError> =>
  Effect.uninterruptible(Effect.andThen(rename, Ref.set(written, true)))

/**
 * Fails when a file cannot have this name: a folder has it, or the folder that it would lie in does not exist. Nothing is
 * written; call it before work that takes long or costs money.
 */
export const checkPlace = Effect.fn("Export.checkPlace")(function* (
  path: string
): Effect.fn.Return<void, ExportError, FileSystem.FileSystem | Path.Path> {
  const fs = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const shown = quoted(path)
  const at = (why: string) => new ExportError({ path, message: `${shown} cannot be written: ${why}` })
  const there = yield* Effect.option(fs.stat(path))
  if (there._tag === "Some" && there.value.type === "Directory") {
    return yield* at("it is a folder; name a file in it")
  }
  const folder = paths.dirname(paths.resolve(path))
  yield* Effect.mapError(fs.readDirectory(folder), (error) =>
    at(isNotFound(error) ? `the folder ${quoted(folder)} does not exist; make it first` : diskTrouble(error))
  )
})

/** The lines of a log, its large parts put into the store that is provided. */
const logChunks = Effect.fnUntraced(function* (
  events: ReadonlyArray<SessionEvent>
): Effect.fn.Return<ReadonlyArray<Uint8Array>, TempStoreError, TempStore> {
  const store = yield* TempStore
  const chunks: Array<Uint8Array> = []
  let lines: Array<string> = []
  let size = 0
  const flush = () => {
    chunks.push(encode(lines.join("")))
    lines = []
    size = 0
  }
  for (const event of events) {
    const spilled = new Map<string, Spilled>()
    for (const { form, key, text } of spillable(event, spillBytes)) {
      const bytes = encode(text)
      spilled.set(key, { hash: yield* store.put(bytes), size: bytes.length, form })
    }
    const line = `${encodeLine(event, spilled)}\n`
    lines.push(line)
    size += line.length
    if (size > slice) {
      flush()
      yield* Effect.yieldNow
    }
  }
  flush()
  return chunks
})

/** The conversation as a history for the Gemini API: what would be sent from now on. */
const contents = ({ conversation }: Session): Written => {
  const shown = new Set(view(conversation).map(({ entry }) => entry.id))
  const left = entries(conversation).filter(({ id }) => !shown.has(id)).length
  return {
    lines: [sentJson(project(conversation))],
    unheld: left === 0 ? {} : { "message before a compaction": left }
  }
}

const writers: Readonly<Record<Exclude<FormatName, "palimpsest" | "contents">, (path: string) => Writer>> = {
  claude: () => writeClaude,
  codex: () => writeCodex,
  gemini: (path) => (path.endsWith(".json") ? writeGeminiDocument : writeGemini),
  pi: () => writePi
}

const inWords = Effect.fnUntraced(function* (
  path: string,
  format: Exclude<FormatName, "palimpsest">,
  session: Session
): Effect.fn.Return<Written> {
  if (format === "contents") return contents(session)
  const transcript = yield* Work.run(fromSession(session))
  return yield* Work.run(writers[format](path)(transcript))
})

/** Lines as bytes, in pieces. */
const lineChunks = Effect.fnUntraced(function* (
  lines: ReadonlyArray<string>
): Effect.fn.Return<ReadonlyArray<Uint8Array>> {
  const chunks: Array<Uint8Array> = []
  let held: Array<string> = []
  let size = 0
  for (const line of lines) {
    held.push(line, "\n")
    size += line.length
    if (size > slice) {
      chunks.push(encode(held.join("")))
      held = []
      size = 0
      yield* Effect.yieldNow
    }
  }
  chunks.push(encode(held.join("")))
  return chunks
})

/**
 * Writes a conversation to a file and its blobs beside it, and says what the format has no place for, by kind. Old or
 * new, never between: an interruption or a full disk leaves what was there. Only a log of our own holds everything, so
 * beside any other format the log travels in the blob folder, and handles keep working.
 */
export const write = Effect.fn("Export.write")(
  function* (
    path: string,
    format: FormatName,
    events: ReadonlyArray<SessionEvent>
  ): Effect.fn.Return<
    Written["unheld"],
    ExportError | PlatformError.PlatformError | TempStoreError,
    Requirements | Scope.Scope
  > {
    const fs = yield* FileSystem.FileSystem
    const folders = yield* BlobFolder
    const folder = blobFolderOf(path)
    const blobs = folders.at(folder)
    yield* checkPlace(path)
    const written = yield* Ref.make(false)
    yield* staged(folder, written)
    const log = yield* Effect.provide(logChunks(events), blobs)
    if (format === "palimpsest") {
      yield* commit(yield* prepared(path, log), written)
      return {}
    }
    const older = yield* sidecarLogs(path)
    yield* Effect.uninterruptible(fs.makeDirectory(folder, { recursive: true, mode: 0o700 }))
    const { lines, unheld } = yield* inWords(path, format, events.reduce(step, emptySession))
    const body = yield* lineChunks(lines)
    const of = yield* Effect.provide(nameOf(body), blobs)
    const sidecar = `${folder}/${of}.jsonl`
    yield* Effect.uninterruptible((yield* prepared(sidecar, log)).rename)
    yield* commit(yield* prepared(path, body), written)
    yield* Effect.forEach(older, (one) => (one.of === of ? Effect.void : Effect.ignore(fs.remove(one.path))))
    return unheld
  },
  (effect, path) => Effect.scoped(effect).pipe(Effect.mapError((error) => unwritten(path, error)))
)

const unwritten = (path: string, error: ExportError | PlatformError.PlatformError | TempStoreError): ExportError =>
  error._tag === "ExportError"
    ? error
    : new ExportError({ path, message: `${quoted(path)} cannot be written: ${reason(error)}` })

/** The name of a file's bytes, under which its log lies beside it. */
const nameOf = (chunks: ReadonlyArray<Uint8Array>): Effect.Effect<Hash, never, TempStore> => {
  const whole = new Uint8Array(chunks.reduce((size, chunk) => size + chunk.length, 0))
  let at = 0
  for (const chunk of chunks) {
    whole.set(chunk, at)
    at += chunk.length
  }
  return TempStore.use((store) => store.hash(whole))
}

/** Writes a text file: all of it, or nothing. */
export const writeText = Effect.fn("Export.writeText")(
  (path: string, text: string) =>
    Effect.andThen(
      checkPlace(path),
      Effect.scoped(Effect.flatMap(prepared(path, [encode(text)]), ({ rename }) => Effect.uninterruptible(rename)))
    ),
  (effect, path) => Effect.mapError(effect, (error) => unwritten(path, error))
)
