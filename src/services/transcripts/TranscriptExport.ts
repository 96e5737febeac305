/** Writes conversations to files, in any agent's format, whole or not at all. */

import { Effect, FileSystem, Layer, Path, type PlatformError, Ref, Schema, type Scope } from "effect"
import type { Hash } from "../../domain/content/Handle.ts"
import { entries, view } from "../../domain/conversation/Conversation.ts"
import { projectMessages, sentJson } from "../../domain/conversation/Projection.ts"
import { encodeLine, spillableParts } from "../../domain/session/LogFormat.ts"
import {
  emptySession,
  type Session,
  type SessionEvent,
  minSpillBytes,
  type Spilled,
  applyEvent
} from "../../domain/session/Session.ts"
import { encode, joinBytes } from "../../domain/text/Bytes.ts"
import { diskErrorText, diskErrorReason, isNotFound } from "../../domain/text/DiskErrors.ts"
import * as Work from "../../domain/text/SlicedWork.ts"
import { quotedPath } from "../../domain/text/WorkspacePath.ts"
import { writeClaude } from "../../domain/transcripts/claude/ClaudeWriter.ts"
import { writeCodex } from "../../domain/transcripts/codex/CodexWriter.ts"
import { writeGemini, writeGeminiDocument } from "../../domain/transcripts/gemini/GeminiWriter.ts"
import { writeOpencode } from "../../domain/transcripts/opencode/OpencodeWriter.ts"
import { writePi } from "../../domain/transcripts/pi/PiWriter.ts"
import { sessionToTranscript } from "../../domain/transcripts/SessionToTranscript.ts"
import type { FormatName, Writer, Written } from "../../domain/transcripts/Transcript.ts"
import * as AtomicFile from "../platform/AtomicFile.ts"
import * as StaleFiles from "../platform/StaleFiles.ts"
import { BlobFolder, blobFolderOf, TempStore, type TempStoreError } from "../session/TempStore.ts"
import { TokenCounter } from "../tokens/TokenCounter.ts"
import { withKeptRecords } from "./KeptRecords.ts"

/** A file could not be written. No part of it was written, and an existing file is unchanged. */
export class ExportError extends Schema.TaggedError<ExportError>()("ExportError", {
  path: Schema.String,
  message: Schema.String
}) {}

/** A session log in the blob folder of a file whose own format cannot hold all of it. */
export interface SidecarLog {
  readonly path: string
  /** The hash of the bytes of the file that it belongs to. */
  readonly of: string
}

/**
 * Returns the logs in the blob folder of a file. There is more than one only when a write was interrupted. When none belongs
 * to the present file, the file was changed after it was written.
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

/** Characters of log lines made between two points where the fiber can be interrupted. */
const slice = 1_000_000

const reason = (error: PlatformError.PlatformError | TempStoreError): string =>
  error._tag === "TempStoreError" ? error.message : diskErrorReason(error)

/** Removes new blobs and folders again, unless the file that refers to them was written. */
const staged = Effect.fnUntraced(function* (
  folder: string,
  written: Ref.Ref<boolean>
): Effect.fn.Return<void, never, FileSystem.FileSystem | Path.Path | Scope.Scope> {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  yield* StaleFiles.sweep(folder)
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
 * Writes bytes under a temporary name, readable by the owner only, and syncs them. Returns an effect that renames the file.
 * Every call that changes the disk runs to its end or is not begun: an interrupted one would continue in the background.
 */
const prepared = Effect.fnUntraced(function* (path: string, chunks: ReadonlyArray<Uint8Array>) {
  const fs = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  yield* StaleFiles.sweep(paths.dirname(path))
  const temporary = yield* Effect.acquireRelease(AtomicFile.claim(path, 0o600), AtomicFile.discard)
  const fill = Effect.gen(function* () {
    const file = yield* Effect.uninterruptible(fs.open(temporary, { flag: "r+" }))
    for (const chunk of chunks) yield* Effect.uninterruptible(file.writeAll(chunk))
    yield* file.sync
  })
  yield* Effect.scoped(fill)
  return { rename: Effect.uninterruptible(fs.rename(temporary, path)) }
})

/**
 * Fails when a file cannot have this name: a folder, a device, a pipe, a link or a read-only file has it, or its parent folder
 * does not exist. Writes nothing. Call it before work that takes long or costs money.
 */
export const checkPlace = Effect.fn("Export.checkPlace")(function* (
  path: string
): Effect.fn.Return<void, ExportError, FileSystem.FileSystem | Path.Path> {
  const fs = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const shown = quotedPath(path)
  const at = (why: string) => new ExportError({ path, message: `${shown} cannot be written: ${why}` })
  if (path === "-") return yield* at(`it stands for standard input; name a file (./- for one of this name)`)
  const there = yield* Effect.option(fs.stat(path))
  if (there._tag === "Some") {
    const { mode, type } = there.value
    if (type === "Directory") return yield* at("it is a folder; name a file in it")
    // The file is put in place by renaming: that would remove a device, a pipe or a link.
    if (type !== "File") return yield* at("it is not a regular file")
    if ((mode & 0o222) === 0) return yield* at("it is read-only")
  }
  const target = yield* Effect.option(fs.readLink(path))
  if (target._tag === "Some") {
    return yield* at(`it is a link to ${quotedPath(target.value)}; name the file itself`)
  }
  const folder = paths.dirname(paths.resolve(path))
  yield* Effect.mapError(fs.readDirectory(folder), (error) =>
    at(isNotFound(error) ? `the folder ${quotedPath(folder)} does not exist; make it first` : diskErrorText(error))
  )
})

/** Large parts that are written side by side, and how many of them wait for one another. */
const blobConcurrency = 8
const blobsAtOnce = 4 * blobConcurrency

/** Collects lines as bytes, in chunks. */
const lineChunks = () => {
  const chunks: Array<Uint8Array> = []
  let held: Array<string> = []
  let size = 0
  const flush = () => {
    chunks.push(encode(held.join("")))
    held = []
    size = 0
  }
  return {
    /** Adds a line. Returns whether it completes a chunk. */
    add: (line: string): boolean => {
      held.push(line, "\n")
      size += line.length
      const isFull = size > slice
      if (isFull) flush()
      return isFull
    },
    end: (): ReadonlyArray<Uint8Array> => {
      flush()
      return chunks
    }
  }
}

/** Encodes lines as bytes. */
const encodedLines = Effect.fnUntraced(function* (lines: ReadonlyArray<string>) {
  const chunks = lineChunks()
  for (const line of lines) if (chunks.add(line)) yield* Effect.yieldNow
  return chunks.end()
})

/** Returns the lines of a log. Its large parts go to the provided store. */
const logChunks = Effect.fnUntraced(function* (
  events: ReadonlyArray<SessionEvent>
): Effect.fn.Return<ReadonlyArray<Uint8Array>, TempStoreError, TempStore> {
  const store = yield* TempStore
  const chunks = lineChunks()
  /** Events whose large parts are not written yet, and these parts. */
  let waiting: Array<{ readonly event: SessionEvent; readonly spilled: Map<string, Spilled> }> = []
  let large: Array<Effect.Effect<void, TempStoreError>> = []
  const write = Effect.fnUntraced(function* () {
    yield* Effect.all(large, { concurrency: blobConcurrency, discard: true })
    for (const { event, spilled } of waiting) {
      // The parts are written side by side, and end in any order.
      const inOrder = new Map([...spilled].sort(([one], [other]) => (one < other ? -1 : 1)))
      if (chunks.add(encodeLine(event, inOrder))) yield* Effect.yieldNow
    }
    waiting = []
    large = []
  })
  for (const event of events) {
    const spilled = new Map<string, Spilled>()
    for (const { form, key, text } of spillableParts(event, minSpillBytes)) {
      const bytes = encode(text)
      large.push(Effect.map(store.put(bytes), (hash) => void spilled.set(key, { hash, size: bytes.length, form })))
    }
    waiting.push({ event, spilled })
    if (large.length === 0 || large.length >= blobsAtOnce) yield* write()
  }
  yield* write()
  return chunks.end()
})

/** Writes the conversation as a history for the Gemini API: the messages that would be sent from now on. */
const contents = ({ conversation }: Session): Written => {
  const shown = new Set(view(conversation).map(({ entry }) => entry.id))
  const left = entries(conversation).filter(({ id }) => !shown.has(id)).length
  return {
    lines: [sentJson(projectMessages(conversation))],
    unheld: left === 0 ? {} : { "message before a compaction": left }
  }
}

/** A format that a file can be written in. opencode's cannot hold all that its own database does; only what an agent sees. */
export type WritableFormat = FormatName | "opencode"

const writers: Readonly<Record<Exclude<WritableFormat, "palimpsest" | "contents">, (path: string) => Writer>> = {
  claude: () => writeClaude,
  codex: () => writeCodex,
  gemini: (path) => (path.endsWith(".json") ? writeGeminiDocument : writeGemini),
  opencode: () => writeOpencode,
  pi: () => writePi
}

const inWords = Effect.fnUntraced(function* (
  path: string,
  format: Exclude<WritableFormat, "palimpsest">,
  session: Session
): Effect.fn.Return<Written> {
  if (format === "contents") return contents(session)
  const transcript = yield* Work.run(sessionToTranscript(session))
  return yield* Work.run(writers[format](path)(transcript))
})

/** The lines of a conversation in another format, without a file: large outputs are in the lines. */
export const lines = Effect.fn("Export.lines")(function* (
  format: FormatName,
  events: ReadonlyArray<SessionEvent>
): Effect.fn.Return<ReadonlyArray<string>> {
  if (format === "palimpsest") return yield* Work.run(Work.eachItem(events, (event) => encodeLine(event, new Map())))
  return (yield* inWords("", format, events.reduce(applyEvent, emptySession))).lines
})

/** Options of `write`. */
export interface WriteOptions {
  /** What another format holds, when that is not all of it. */
  readonly held?: Session | undefined
  /** The text of the file of the same format that is replaced: what stands in it beside its conversation is kept. */
  readonly replaced?: string | undefined
}

/**
 * Writes a conversation to a file and its blobs beside it, and returns the content that the format cannot hold, counted by
 * kind. The write is atomic: an interruption or a full disk leaves the previous file. Only our own log holds everything, so
 * beside any other format the log is stored in the blob folder, and handles keep working.
 */
export const write = Effect.fn("Export.write")(
  function* (
    path: string,
    format: WritableFormat,
    events: ReadonlyArray<SessionEvent>,
    { held, replaced }: WriteOptions = {}
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
    // Either the file has its new name and the blobs it refers to stay, or neither.
    const commit = ({ rename }: { readonly rename: Effect.Effect<void, PlatformError.PlatformError> }) =>
      Effect.uninterruptible(Effect.andThen(rename, Ref.set(written, true)))
    const log = yield* Effect.provide(logChunks(events), blobs)
    if (format === "palimpsest") {
      yield* commit(yield* prepared(path, log))
      return {}
    }
    const older = yield* sidecarLogs(path)
    yield* Effect.uninterruptible(fs.makeDirectory(folder, { recursive: true, mode: 0o700 }))
    const { lines, unheld } = yield* inWords(path, format, held ?? events.reduce(applyEvent, emptySession))
    const body = yield* encodedLines(
      replaced === undefined
        ? lines
        : yield* withKeptRecords(replaced, lines, format).pipe(
            Effect.provide(Layer.mergeAll(blobs, TokenCounter.layerEstimate))
          )
    )
    const of = yield* Effect.provide(nameOf(body), blobs)
    const sidecar = `${folder}/${of}.jsonl`
    yield* (yield* prepared(sidecar, log)).rename
    yield* commit(yield* prepared(path, body))
    yield* Effect.forEach(older, (one) => (one.of === of ? Effect.void : Effect.ignore(fs.remove(one.path))))
    return unheld
  },
  (effect, path) => Effect.scoped(effect).pipe(Effect.mapError((error) => unwritten(path, error)))
)

const unwritten = (path: string, error: ExportError | PlatformError.PlatformError | TempStoreError): ExportError =>
  error._tag === "ExportError"
    ? error
    : new ExportError({ path, message: `${quotedPath(path)} cannot be written: ${reason(error)}` })

/** Returns the hash of a file's bytes, under which its log is stored beside it. */
const nameOf = (chunks: ReadonlyArray<Uint8Array>): Effect.Effect<Hash, never, TempStore> =>
  TempStore.use((store) => store.hash(joinBytes(chunks)))

/** Writes a text file atomically. */
export const writeText = Effect.fn("Export.writeText")(
  (path: string, text: string) =>
    Effect.andThen(
      checkPlace(path),
      Effect.scoped(Effect.flatMap(prepared(path, [encode(text)]), ({ rename }) => rename))
    ),
  (effect, path) => Effect.mapError(effect, (error) => unwritten(path, error))
)
