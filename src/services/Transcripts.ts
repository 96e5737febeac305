import { Context, Effect, FileSystem, Layer, Path, type PlatformError, Result, Schema, Stdio, Stream } from "effect"
import { type JsonProblem, maxDepth, maxLogDepth, parseJson } from "../domain/JsonText.ts"
import { decode, encode } from "../domain/Bytes.ts"
import {
  compressed,
  type Conversation,
  type Draft,
  type Entry,
  type EntryId,
  entryId,
  entryTokens,
  type Patch,
  sequenceOf,
  view,
  viewTokens
} from "../domain/Conversation.ts"
import { type Hash } from "../domain/Handle.ts"
import { type DecodedLine, decodeLine, entriesOf, filled, type LineProblem } from "../domain/LogFormat.ts"
import { emptySession, logVersion, type Session, type SessionEvent, type Spilled, step } from "../domain/Session.ts"
import { Survey } from "../domain/Survey.ts"
import { estimatorVersion, TokenCount } from "../domain/Tokens.ts"
import { claudeReader } from "../domain/transcripts/Claude.ts"
import { readContents, Skipped } from "../domain/transcripts/Contents.ts"
import { codexReader } from "../domain/transcripts/Codex.ts"
import { classify, detect, isGeminiDocument } from "../domain/transcripts/Detect.ts"
import { geminiReader, readGeminiDocument } from "../domain/transcripts/Gemini.ts"
import { piReader } from "../domain/transcripts/Pi.ts"
import {
  type FormatName,
  isProblem,
  type LineReader,
  type Problem,
  type Step,
  type Transcript
} from "../domain/transcripts/Transcript.ts"
import { sidecarLogs } from "./Export.ts"
import * as Work from "../domain/Work.ts"
import { HandleIndex, makeEntry } from "./Intake.ts"
import { blobFolderOf, TempStore } from "./TempStore.ts"
import type { TokenCounter, TokenCountError } from "./TokenCounter.ts"

/** A conversation could not be read. `message` says where and what was expected, in one line. */
export class TranscriptError extends Schema.TaggedError<TranscriptError>()("TranscriptError", {
  path: Schema.String,
  /** From 1; 0 when it is about the whole file. */
  line: Schema.Natural,
  message: Schema.String
}) {}

/** A conversation that was read from a file. */
export interface Loaded {
  readonly format: FormatName
  /** The conversation as events of ours, `Started` first; `session` is their fold. */
  readonly events: ReadonlyArray<SessionEvent>
  readonly session: Session
  /** Records that are no part of the conversation, by kind. */
  readonly skipped: Readonly<Record<string, number>>
  /** The number of the last line when it broke off in the middle and was left out. */
  readonly torn: number | undefined
  readonly bytes: number
  /** What a file of another agent said; undefined for a log of our own. */
  readonly transcript: Transcript | undefined
  /** The log that travels beside a file of contents, when the file is not what it was written as. */
  readonly sidecar: Session | undefined
  /**
   * What was found in a log that was too long to be held, where the caller asked for that: `events` are none then, and
   * `session` is how it began and which model it asks.
   */
  readonly survey: Survey | undefined
}

/** What reading a conversation will take, as far as its size tells. */
export interface Need {
  /** Of the file. */
  readonly bytes: number
  /** Bytes of memory. */
  readonly memory: number
}

/** How a file is to be read. */
export interface LoadOptions {
  /** The format, when it is not to be detected. */
  readonly from?: FormatName
  /** Lines that cannot be read are skipped and counted. */
  readonly lenient?: boolean
  /** A log of ours that is too long to be held is surveyed in place of being held. */
  readonly surveys?: boolean
  /** Runs before a conversation is read that takes much memory. */
  readonly warn?: (need: Need) => Effect.Effect<void>
}

/** Bytes of memory that this program may use; undefined: nobody knows. Reading what needs more is refused. */
export const MemoryLimit = Context.Reference<number | undefined>("palimpsest/services/Transcripts/MemoryLimit", {
  defaultValue: () => undefined
})

/** Memory from which on a reader says what it needs. */
const muchMemory = 500_000_000
/** Bytes of memory that events of a log take that may be surveyed, before they are no longer held; and what one takes. */
const heldBytes = 64_000_000
const eventCost = { byte: 2, least: 1_700 }
/** What reading takes, measured on logs of long and of short messages: at least, per byte of the file and per line. */
const cost = { least: 100_000_000, byte: 1.3, line: 1_700 }

type Requirements = FileSystem.FileSystem | Path.Path | Stdio.Stdio | TokenCounter | TempStore

const chunkBytes = 1024 * 1024
/** Bytes read between two chances for an interruption. */
const sliceBytes = 256 * 1024
/** Bytes from which the format is told. */
const headBytes = 64 * 1024
const mebibyte = 1024 * 1024
const lineLimit = 128 * mebibyte
/** A JSON document is one text, and texts cannot be much longer. */
const documentLimit = 256 * mebibyte

// --- what is said when something is wrong -----------------------------------------------------------------------------

const nameOf = (path: string): string => (path === "-" ? "standard input" : path)

/** One line without control characters. */
const clean = (text: string): string =>
  // oxlint-disable-next-line no-control-regex -- control characters are what has to go
  text.replace(/[\s\u0000-\u001f\u007f]+/g, " ").trim()

const oneLine = (text: string): string => {
  const line = clean(text)
  return line.length > 300 ? `${line.slice(0, 300)}…` : line
}

const wrong = (path: string, line: number, message: string): TranscriptError =>
  new TranscriptError({
    path,
    line,
    message: `${clean(nameOf(path))}${line > 0 ? `, line ${line}` : ""}: ${oneLine(message)}`
  })

const unreadable = (path: string, error: PlatformError.PlatformError): TranscriptError => {
  const { reason } = error
  switch (reason._tag) {
    case "NotFound":
      return wrong(path, 0, "there is no such file")
    case "PermissionDenied":
      return wrong(path, 0, "you are not allowed to read this file")
    default:
      return wrong(path, 0, `cannot be read (${reason.description ?? reason._tag})`)
  }
}

const readable = "palimpsest, contents, gemini, pi, claude or codex"
const hint = "; use --lenient to skip broken lines"

/** Parses a record or a document. */
const parse = (text: string, format: FormatName): Result.Result<unknown, JsonProblem> =>
  Result.mapError(parseJson(text, format === "palimpsest" ? maxLogDepth : maxDepth), ({ _tag, message }) => ({
    _tag,
    message: _tag === "TooDeep" ? message : `not JSON (${oneLine(message)})`
  }))

// --- bytes to lines ---------------------------------------------------------------------------------------------------

const joined = (pieces: ReadonlyArray<Uint8Array>, size: number): Uint8Array => {
  const [only] = pieces
  if (pieces.length === 1 && only !== undefined) return only
  const whole = new Uint8Array(size)
  let at = 0
  for (const piece of pieces) {
    whole.set(piece, at)
    at += piece.length
  }
  return whole
}

/** Cuts bytes into lines. A line that spans chunks is copied once, when it is complete. */
class Splitter {
  private pieces: Array<Uint8Array> = []
  /** Bytes of the line that is not complete yet. */
  pending = 0

  /** The lines that are complete with this chunk, without their line breaks. */
  push(chunk: Uint8Array): Array<Uint8Array> {
    const lines: Array<Uint8Array> = []
    let from = 0
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      this.keep(chunk.subarray(from, end))
      lines.push(this.rest())
      from = end + 1
    }
    this.keep(chunk.subarray(from))
    return lines
  }

  /** What is left without a line break at its end. */
  rest(): Uint8Array {
    const line = joined(this.pieces, this.pending)
    this.pieces = []
    this.pending = 0
    return line
  }

  private keep(piece: Uint8Array): void {
    if (piece.length === 0) return
    this.pieces.push(piece)
    this.pending += piece.length
  }
}

const lineText = (bytes: Uint8Array, number: number): string => {
  const end = bytes.at(-1) === 13 ? bytes.length - 1 : bytes.length
  const { text } = decode(bytes.subarray(0, end))
  return number === 1 && text.startsWith("\uFEFF") ? text.slice(1) : text
}

// --- other agents' conversations as ours --------------------------------------------------------------------------------

/** The patch of a compaction: what it inserted in place of everything before the first message that was kept. */
const patchOf = (
  conversation: Conversation,
  messages: ReadonlyMap<EntryId, number>,
  keptFrom: number | undefined,
  insert: ReadonlyArray<Entry>
): Patch => {
  const shown = view(conversation).filter((item) => item.entry.author !== "environment")
  const kept = keptFrom === undefined ? -1 : shown.findIndex((item) => (messages.get(item.entry.id) ?? -1) >= keptFrom)
  const dropped = kept < 0 ? shown : shown.slice(0, kept)
  const from = dropped[0]?.entry.id
  const to = dropped.at(-1)?.entry.id
  return {
    ...(from === undefined || to === undefined ? {} : { drop: { from, to } }),
    insert,
    shorten: []
  }
}

const compaction = (
  conversation: Conversation,
  messages: ReadonlyMap<EntryId, number>,
  { keptFrom, trigger }: Extract<Step, { readonly _tag: "Compaction" }>,
  insert: ReadonlyArray<Entry>,
  at: number
): SessionEvent => {
  const patch = patchOf(conversation, messages, keptFrom, insert)
  return {
    _tag: "Compressed",
    at,
    status: "COMPRESSED",
    strategy: "imported",
    trigger,
    before: TokenCount.make(viewTokens(conversation)),
    after: TokenCount.make(viewTokens(compressed(conversation, patch))),
    patch
  }
}

const base32 = "abcdefghijklmnopqrstuvwxyz234567"

/** A UUIDv7 that is always the same for the same time and bytes: reading a file twice gives the same session (law 7). */
const sessionId = (at: number, hash: Hash): string => {
  const time = Math.max(0, Math.floor(at)).toString(16).padStart(12, "0").slice(-12)
  const random = Array.from(hash, (char) => (base32.indexOf(char) % 16).toString(16)).join("")
  return `${time.slice(0, 8)}-${time.slice(8)}-7${random.slice(0, 3)}-8${random.slice(3, 6)}-${random.slice(6, 18)}`
}

const draftsOf = (one: Step): ReadonlyArray<Draft> => (one._tag === "Message" ? [one.draft] : one.insert)

const startedOf = Effect.fnUntraced(function* (
  transcript: Transcript,
  events: ReadonlyArray<SessionEvent>
): Effect.fn.Return<Extract<SessionEvent, { readonly _tag: "Started" }>, never, TempStore> {
  const store = yield* TempStore
  const first = transcript.steps.flatMap(draftsOf).find((draft) => draft.at !== undefined)?.at ?? 0
  const handles = events.flatMap((event) => entriesOf(event).flatMap((entry) => entry.handles))
  const hash = yield* store.hash(encode([transcript.format, transcript.session ?? "", ...handles].join("\n")))
  return {
    _tag: "Started",
    version: logVersion,
    session: sessionId(first, hash),
    at: first,
    estimator: estimatorVersion,
    ...(transcript.model === undefined ? {} : { model: transcript.model }),
    ...(transcript.cwd === undefined ? {} : { cwd: transcript.cwd }),
    importedFrom: {
      format: transcript.format,
      ...(transcript.session === undefined ? {} : { session: transcript.session })
    }
  }
})

/** Tokens made into entries between two chances for an interruption. */
const importSlice = 50_000

/** The events of a transcript and what they fold to. */
const imported = Effect.fnUntraced(function* (
  transcript: Transcript
): Effect.fn.Return<
  { readonly events: ReadonlyArray<SessionEvent>; readonly session: Session },
  TokenCountError,
  TokenCounter | TempStore
> {
  const held = new HandleIndex()
  const events: Array<SessionEvent> = []
  const messages = new Map<EntryId, number>()
  let session = emptySession
  let at = 0
  let done = 0
  for (const one of transcript.steps) {
    const made: Array<Entry> = []
    for (const draft of draftsOf(one)) {
      at = draft.at ?? at
      const entry = yield* makeEntry(draft, entryId(session.conversation.next + made.length), held)
      made.push(entry)
      done += entryTokens(entry) + entry.tokens.length
      if (done > importSlice) {
        done = 0
        yield* Effect.yieldNow
      }
    }
    const added: ReadonlyArray<SessionEvent> =
      one._tag === "Compaction"
        ? [compaction(session.conversation, messages, one, made, at)]
        : made.map((entry): SessionEvent => ({ _tag: "Appended", entry }))
    if (one._tag === "Message") for (const entry of made) messages.set(entry.id, messages.size)
    for (const event of added) {
      session = step(session, event)
      events.push(event)
    }
  }
  const started = yield* startedOf(transcript, events)
  return { events: [started, ...events], session: { ...session, started } }
})

/**
 * Another agent's conversation as events of ours: `Started`, an `Appended` a message, a `Compressed` a compaction. The
 * same transcript always gives the same events, session id included.
 */
export const importTranscript = Effect.fn("Transcripts.importTranscript")(function* (
  transcript: Transcript
): Effect.fn.Return<ReadonlyArray<SessionEvent>, TokenCountError, TokenCounter | TempStore> {
  const { events } = yield* imported(transcript)
  return events
})

// --- readers ----------------------------------------------------------------------------------------------------------

/** What takes a file's bytes, chunk by chunk, and gives what they say. */
interface Reader {
  readonly push: (chunk: Uint8Array) => Effect.Effect<void, TranscriptError, Requirements>
  readonly end: Effect.Effect<Omit<Loaded, "bytes" | "sidecar">, TranscriptError, Requirements>
}

/** What takes the JSON values of a file's lines. A Problem may be skipped when the person said so, an error may not. */
interface Lines {
  readonly line: (
    value: unknown,
    text: string,
    number: number
  ) => Effect.Effect<Problem | undefined, TranscriptError, Requirements>
  readonly end: Effect.Effect<
    Pick<Loaded, "events" | "session" | "skipped" | "survey" | "transcript">,
    TranscriptError,
    Requirements
  >
}

const finish = Effect.fnUntraced(function* (
  path: string,
  read: Transcript | Problem
): Effect.fn.Return<
  Pick<Loaded, "events" | "session" | "skipped" | "survey" | "transcript">,
  TranscriptError,
  TokenCounter | TempStore
> {
  if (isProblem(read)) return yield* wrong(path, read.line, read.message)
  const { events, session } = yield* imported(read).pipe(
    Effect.mapError((error) => wrong(path, 0, `its tokens could not be counted (${error.message})`))
  )
  return { events, session, skipped: read.skipped, survey: undefined, transcript: read }
})

const foreignLines = (path: string, reader: LineReader): Lines => ({
  line: (value, text, number) => Effect.sync(() => reader.line(value, text, number)),
  end: Effect.flatMap(
    Effect.suspend(() => Work.run(reader.end())),
    (read) => finish(path, read)
  )
})

const lineProblem = (problem: LineProblem): string => {
  switch (problem._tag) {
    case "NewerVersion":
      return `written by a newer version (log format ${problem.version}); update palimpsest to read it`
    case "UnknownEvent":
      return `an event of an unknown kind: ${problem.event}`
    case "Malformed":
      return problem.message
  }
}

/** As much of what was read before as the next event is checked against. */
interface Before {
  readonly started: Session["started"]
  /** The number of the next entry. */
  readonly next: number
  /** Where these entries stand in the view; others may be among them. */
  readonly places: (ids: ReadonlyArray<EntryId>) => ReadonlyMap<EntryId, number>
}

const beforeIn = ({ conversation, started }: Session): Before => ({
  started,
  next: conversation.next,
  places: () => new Map(view(conversation).map((item, index) => [item.entry.id, index]))
})

/** Why an event cannot come next, if it cannot. `gaps`: entries may be missing, because lines were skipped. */
const misfit = (before: Before, event: SessionEvent, gaps: boolean): string | undefined => {
  if (before.started === undefined) {
    return event._tag === "Started" ? undefined : `expected the event Started first, got ${event._tag}`
  }
  if (event._tag === "Started") return "a second event Started; expected one, at the beginning"
  let next = before.next
  for (const entry of entriesOf(event)) {
    const sequence = sequenceOf(entry.id)
    if (gaps ? sequence < next : sequence !== next)
      return `entry ${entry.id} is out of order; expected ${entryId(next)}`
    const { parts } = entry.content
    if (entry.tokens.length !== parts.length || entry.handles.length !== parts.length) {
      return `entry ${entry.id}: expected a token count and a handle for each of its ${parts.length} parts`
    }
    next = sequence + 1
  }
  if (event._tag !== "Compressed") return undefined
  const { drop, shorten } = event.patch
  const named = [...(drop === undefined ? [] : [drop.from, drop.to]), ...shorten.map((one) => one.entry)]
  const places = before.places(named)
  const missing = named.find((id) => !places.has(id))
  if (missing !== undefined) return `the compression refers to ${missing}, which is not in view`
  return drop !== undefined && (places.get(drop.from) ?? 0) > (places.get(drop.to) ?? 0)
    ? `the compression drops from ${drop.from} to ${drop.to}, which come in the other order`
    : undefined
}

/** The folders that may hold the blobs of a log. */
const blobFolders = (path: string, paths: Path.Path): ReadonlyArray<string> => {
  const { dir, name } = paths.parse(path)
  // A log that travels beside a file of another format lies among its blobs.
  return [...new Set([blobFolderOf(path), paths.join(dir, `${name}.blobs`), ...(dir.endsWith(".blobs") ? [dir] : [])])]
}

const readBlob = Effect.fnUntraced(function* (
  path: string,
  number: number,
  note: Spilled
): Effect.fn.Return<string, TranscriptError, FileSystem.FileSystem | Path.Path | TempStore> {
  const fs = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const store = yield* TempStore
  if (path === "-") {
    return yield* wrong(
      path,
      number,
      `the stored part ${note.hash} is not in the log; read the file by its name, with its folder of blobs beside it`
    )
  }
  const folders = blobFolders(path, paths)
  for (const folder of folders) {
    const bytes = yield* Effect.result(fs.readFile(paths.join(folder, note.hash)))
    if (Result.isFailure(bytes)) {
      if (bytes.failure.reason._tag === "NotFound") continue
      return yield* wrong(path, number, unreadable(paths.join(folder, note.hash), bytes.failure).message)
    }
    if (bytes.success.length !== note.size || (yield* store.hash(bytes.success)) !== note.hash) {
      return yield* wrong(path, number, `the stored part ${paths.join(folder, note.hash)} is not what was put there`)
    }
    return decode(bytes.success).text
  }
  return yield* wrong(path, number, `the stored part ${note.hash} is missing; expected it in ${folders.join(" or ")}`)
})

const fetchSpilled = Effect.fnUntraced(function* (path: string, number: number, line: DecodedLine) {
  const texts = new Map<string, string>()
  for (const [key, note] of line.spilled) texts.set(key, yield* readBlob(path, number, note))
  return texts
})

const logLines = (path: string, lenient: boolean, surveys: boolean): Lines => {
  const skipped = new Skipped()
  const survey = surveys ? new Survey() : undefined
  /** Undefined: too much to be held. */
  let held: { readonly events: Array<SessionEvent>; session: Session } | undefined = {
    events: [],
    session: emptySession
  }
  let started: Session["started"]
  let bytes = 0
  const before = (): Before =>
    held === undefined && survey !== undefined ? survey : beforeIn(held?.session ?? emptySession)
  return {
    line: Effect.fnUntraced(function* (value, text, number) {
      const decoded = decodeLine(value, started?.version)
      if (Result.isFailure(decoded)) {
        const problem = { line: number, message: lineProblem(decoded.failure) }
        return decoded.failure._tag === "NewerVersion" ? yield* wrong(path, number, problem.message) : problem
      }
      if (decoded.success === undefined) {
        skipped.add("ignorable event")
        return undefined
      }
      const texts = yield* fetchSpilled(path, number, decoded.success)
      const event = filled(decoded.success, texts)
      if (Result.isFailure(event)) return yield* wrong(path, number, event.failure)
      const message = misfit(before(), event.success, lenient)
      if (message !== undefined) return { line: number, message }
      if (event.success._tag === "Started") started = event.success
      if (held !== undefined) {
        held.session = step(held.session, event.success)
        held.events.push(event.success)
      }
      if (survey !== undefined) {
        const size = text.length + [...texts.values()].reduce((total, { length }) => total + length, 0)
        bytes += eventCost.least + eventCost.byte * size
        survey.add(event.success, size)
        if (bytes > heldBytes) held = undefined
      }
      return undefined
    }),
    end: Effect.suspend(() => {
      if (started === undefined) {
        return Effect.fail(wrong(path, 0, "expected the event Started, which opens every palimpsest log"))
      }
      const of = held ?? { events: [], session: { ...emptySession, started, model: survey?.model } }
      return Effect.succeed({
        ...of,
        skipped: skipped.counts,
        transcript: undefined,
        survey: held === undefined ? survey : undefined
      })
    })
  }
}

/** Reads a file of lines. */
const linesReader = (path: string, format: FormatName, lines: Lines, lenient: boolean): Reader => {
  const splitter = new Splitter()
  const skipped = new Skipped()
  let number = 0
  let values = 0
  let torn: { readonly line: number; readonly message: string } | undefined

  /** Skips a line that is wrong, or gives up. */
  const refuse = (message: string, kind = "broken line"): Effect.Effect<void, TranscriptError> => {
    if (!lenient) return Effect.fail(wrong(path, number, message + hint))
    skipped.add(kind)
    return Effect.void
  }

  const accept = Effect.fnUntraced(function* (bytes: Uint8Array, complete: boolean) {
    number += 1
    if (bytes.length > lineLimit) return yield* wrong(path, number, tooLong)
    const text = lineText(bytes, number)
    if (text.trim() === "") return
    const value = parse(text, format)
    if (Result.isFailure(value)) {
      const { _tag, message } = value.failure
      // A line that broke off is not JSON; one that is too deep is whole.
      if (complete || _tag === "TooDeep") return yield* refuse(message)
      torn = { line: number, message }
      return
    }
    values += 1
    const found = classify(value.success)
    if (found !== undefined && found !== format) {
      return yield* refuse(`a line of the format ${found} in a file of the format ${format}`, `${found} line`)
    }
    const problem = yield* lines.line(value.success, text, number)
    if (problem !== undefined) return yield* refuse(problem.message)
  })

  return {
    push: Effect.fnUntraced(function* (chunk) {
      let done = 0
      for (const line of splitter.push(chunk)) {
        yield* accept(line, true)
        done += line.length
        if (done > sliceBytes) {
          done = 0
          yield* Effect.yieldNow
        }
      }
      if (splitter.pending > lineLimit) return yield* wrong(path, number + 1, tooLong)
    }),
    end: Effect.gen(function* () {
      if (splitter.pending > 0) yield* accept(splitter.rest(), false)
      // Half a record and nothing else is no conversation.
      if (torn !== undefined && values === 0) return yield* wrong(path, torn.line, torn.message)
      const read = yield* lines.end
      return { ...read, format, skipped: { ...read.skipped, ...skipped.counts }, torn: torn?.line }
    })
  }
}

const tooLong = `the line is longer than ${lineLimit / mebibyte} MiB`

/** Reads a file that is one JSON document. */
const documentReader = (
  path: string,
  format: FormatName,
  read: (value: unknown, text: string) => Work.Work<Transcript | Problem>
): Reader => {
  const chunks: Array<Uint8Array> = []
  let size = 0
  return {
    push: (chunk) => {
      chunks.push(chunk)
      size += chunk.length
      return size > documentLimit
        ? Effect.fail(wrong(path, 0, `the document is longer than ${documentLimit / mebibyte} MiB`))
        : Effect.void
    },
    end: Effect.gen(function* () {
      const text = lineText(joined(chunks, size), 1)
      yield* Effect.yieldNow
      const value = parse(text, format)
      if (Result.isFailure(value)) return yield* wrong(path, 0, value.failure.message)
      yield* Effect.yieldNow
      const found = classify(value.success)
      if (found !== undefined && found !== format) {
        return yield* wrong(path, 0, `a document of the format ${found}; expected the format ${format}`)
      }
      return { ...(yield* finish(path, yield* Work.run(read(value.success, text)))), format, torn: undefined }
    })
  }
}

/** The reader of a format; `head` is how the file begins. */
const readerOf = (
  path: string,
  format: FormatName,
  head: string,
  { lenient = false, surveys = false }: LoadOptions
): Reader => {
  const lines = (reader: LineReader) => linesReader(path, format, foreignLines(path, reader), lenient)
  switch (format) {
    case "contents":
      return documentReader(path, format, readContents)
    case "gemini":
      return isGeminiDocument(head) ? documentReader(path, format, readGeminiDocument) : lines(geminiReader())
    case "claude":
      return lines(claudeReader())
    case "codex":
      return lines(codexReader())
    case "pi":
      return lines(piReader())
    case "palimpsest":
      return linesReader(path, format, logLines(path, lenient, surveys), lenient)
  }
}

/** The reader for a file that begins with these bytes. */
const choose = (
  path: string,
  head: Uint8Array,
  options: LoadOptions,
  size: number | undefined
): Effect.Effect<Reader, TranscriptError> => {
  if (head.includes(0)) return Effect.fail(wrong(path, 0, `is binary; expected text in UTF-8 (${readable})`))
  if (head[0] === 0x1f && head[1] === 0x8b) {
    return Effect.fail(wrong(path, 0, "is compressed with gzip; unpack it first"))
  }
  // So long without a line break it can only be a document: an array of contents.
  if (head.length > lineLimit && head[0] !== 0x5b && options.from === undefined) {
    return Effect.fail(wrong(path, 1, tooLong))
  }
  const text = lineText(head, 1)
  if (text.trim() === "") return Effect.fail(wrong(path, 0, `is empty; expected a conversation (${readable})`))
  const format = options.from ?? detect(text)
  return format === undefined
    ? Effect.fail(wrong(path, 0, `its format is not known; expected ${readable}, or say --from FORMAT`))
    : Effect.as(checkMemory(path, format, head, options, size), readerOf(path, format, text, options))
}

/** An amount of bytes as a person says it. */
export const sizeText = (bytes: number): string =>
  bytes < 1e9 ? `${Math.ceil(bytes / 1e6)} MB` : `${(bytes / 1e9).toFixed(1)} GB`

/** Says what reading a large file takes before it is read, and refuses what would end the program half-way. */
const checkMemory = Effect.fnUntraced(function* (
  path: string,
  format: FormatName,
  head: Uint8Array,
  { surveys = false, warn }: LoadOptions,
  bytes: number | undefined
): Effect.fn.Return<void, TranscriptError> {
  if (bytes === undefined || (surveys && format === "palimpsest")) return
  const sample = head.subarray(0, mebibyte)
  const lines = (bytes / sample.length) * sample.reduce((count, byte) => (byte === 10 ? count + 1 : count), 0)
  const memory = cost.least + cost.byte * bytes + cost.line * lines
  const limit = yield* MemoryLimit
  if (limit !== undefined && memory > limit) {
    return yield* wrong(
      path,
      0,
      `a file of ${sizeText(bytes)} takes about ${sizeText(memory)} of memory, more than the ${sizeText(limit)} that this program may use; to read it all the same set NODE_OPTIONS=--max-old-space-size=${Math.ceil(memory / 1e6)}`
    )
  }
  if (warn !== undefined && memory > muchMemory) yield* warn({ bytes, memory })
})

// --- files ------------------------------------------------------------------------------------------------------------

const kinds: Readonly<Record<string, string>> = {
  Directory: "is a directory",
  FIFO: "is a pipe",
  Socket: "is a socket",
  CharacterDevice: "is a device",
  BlockDevice: "is a device"
}

/** The bytes of a regular file, or of standard input. Whatever else has this name is not even opened: a pipe would hang. */
const bytesOf = Effect.fnUntraced(function* (path: string): Effect.fn.Return<
  {
    readonly bytes: Stream.Stream<Uint8Array, TranscriptError>
    /** How many there are, of a file. */
    readonly known: number | undefined
  },
  TranscriptError,
  FileSystem.FileSystem | Stdio.Stdio
> {
  const fs = yield* FileSystem.FileSystem
  const stdio = yield* Stdio.Stdio
  const fail = (error: PlatformError.PlatformError) => unreadable(path, error)
  if (path === "-") return { bytes: Stream.mapError(stdio.stdin, fail), known: undefined }
  const { size, type } = yield* Effect.mapError(fs.stat(path), fail)
  if (type !== "File") {
    const advice = type === "Directory" ? "" : "; use - to read standard input"
    return yield* wrong(path, 0, `${kinds[type] ?? "is no regular file"}; expected a file${advice}`)
  }
  return { bytes: Stream.mapError(fs.stream(path, { chunkSize: chunkBytes }), fail), known: Number(size) }
})

/**
 * Reads a conversation from a file, or from standard input (`-`), in any of the formats; writes nothing. Bytes are taken
 * a chunk at a time and the reading can be interrupted between any two. Fails with a `TranscriptError` and nothing else.
 */
export const load = Effect.fn("Transcripts.load")(function* (
  path: string,
  options: LoadOptions = {}
): Effect.fn.Return<Loaded, TranscriptError, Requirements> {
  const { bytes, known } = yield* bytesOf(path)
  const head: Array<Uint8Array> = []
  let size = 0
  let hasLine = false
  let reader: Reader | undefined
  /** Once the head is there, the reader is chosen and gets it. */
  const begin = Effect.fnUntraced(function* () {
    const whole = joined(head, size)
    const chosen = yield* choose(path, whole, options, known)
    reader = chosen
    yield* chosen.push(whole)
    return chosen
  })
  yield* Stream.runForEach(
    bytes,
    Effect.fnUntraced(function* (chunk: Uint8Array) {
      size += chunk.length
      if (reader === undefined) {
        head.push(chunk)
        hasLine = hasLine || chunk.includes(10)
        // The format is told by whole records, and the first may be long.
        if (size >= headBytes && (hasLine || size > lineLimit)) yield* begin()
      } else yield* reader.push(chunk)
      yield* Effect.yieldNow
    })
  )
  const chosen = reader ?? (yield* begin())
  const loaded: Loaded = { ...(yield* chosen.end), bytes: size, sidecar: undefined }
  return loaded.format === "palimpsest" || path === "-" ? loaded : yield* withSidecar(path, loaded)
})

/**
 * A file that we wrote in another format has its log beside it. While the file is what was written, the log is read in its
 * place, so that what left the window earlier stays recallable and can be undone.
 */
const withSidecar = Effect.fnUntraced(function* (
  path: string,
  loaded: Loaded
): Effect.fn.Return<Loaded, TranscriptError, Requirements> {
  const logs = yield* sidecarLogs(path)
  const newest = logs.at(-1)
  if (newest === undefined) return loaded
  const fs = yield* FileSystem.FileSystem
  const store = yield* TempStore
  const hash = yield* Effect.flatMap(
    Effect.mapError(fs.readFile(path), (error) => unreadable(path, error)),
    store.hash
  )
  const own = logs.find((log) => log.of === hash)
  const { events, session } = yield* load((own ?? newest).path, { from: "palimpsest" })
  return own === undefined ? { ...loaded, sidecar: session } : { ...loaded, events, session }
})

/** Reading conversations as a service, for callers that do not want to know what it needs. */
export class Transcripts extends Context.Service<
  Transcripts,
  {
    /** See `load`. */
    readonly load: (path: string, options?: LoadOptions) => Effect.Effect<Loaded, TranscriptError>
  }
>()("palimpsest/services/Transcripts") {
  /** Reads with what is provided when the layer is made. */
  static readonly layer: Layer.Layer<Transcripts, never, Requirements> = Layer.effect(
    Transcripts,
    Effect.gen(function* () {
      const context = yield* Effect.context<Requirements>()
      return { load: (path, options) => Effect.provideContext(load(path, options), context) }
    })
  )
}
