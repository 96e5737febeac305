/** Reads the bytes of a file as they arrive: a file of records, one a line, or one JSON document. */

import { Effect, Result, Stream } from "effect"
import { encode, joinBytes } from "../../domain/text/Bytes.ts"
import { mendedJson } from "../../domain/text/CutJson.ts"
import { type JsonProblem, maxDepth, maxLogDepth, parseJson } from "../../domain/text/JsonText.ts"
import { shortLine } from "../../domain/text/OneLine.ts"
import { run, type SlicedWork } from "../../domain/text/SlicedWork.ts"
import { formatOfRecord } from "../../domain/transcripts/facts/DetectFormat.ts"
import { isProblem, type Problem, problemText } from "../../domain/transcripts/Problem.ts"
import { recordsByLine } from "../../domain/transcripts/RecordList.ts"
import { Skipped } from "../../domain/transcripts/Skipped.ts"
import type { SourceFormat, LineReader, Transcript } from "../../domain/transcripts/Transcript.ts"
import type { TempStore } from "../session/TempStore.ts"
import type { TokenCounter } from "../tokens/TokenCounter.ts"
import { importWithSession } from "./ImportTranscript.ts"
import { LineSplitter, lineText } from "./LineSplitter.ts"
import type { ReadRequirements, ReadTranscript } from "./LoadedTranscript.ts"
import { maxDetailChars, transcriptError, type TranscriptError } from "./TranscriptError.ts"

const mebibyte = 1024 * 1024
/** Maximum length of a line in bytes. */
export const maxLineBytes = 128 * mebibyte
/** Maximum length of a document in bytes: a document is one string, and strings cannot be much longer. */
const maxDocumentBytes = 256 * mebibyte
/** Bytes read between two points where the fiber can be interrupted. */
const sliceBytes = 256 * 1024

/** The bytes of a file, chunk by chunk. */
type Chunks = Stream.Stream<Uint8Array, TranscriptError, ReadRequirements>

/** Takes the bytes of a file, and gives what they hold. */
export type TranscriptReader = (chunks: Chunks) => Effect.Effect<ReadTranscript, TranscriptError, ReadRequirements>

/** What the records of a file hold. */
export type ReadRecords = Omit<ReadTranscript, "format" | "torn">

/** Takes the JSON values of a file's lines. A line with a problem may be skipped; an error ends the reading. */
export interface RecordLines {
  /** Takes the value and the text of the line with this number, from 1. Returns the problem that makes it unusable. */
  readonly line: (
    value: unknown,
    text: string,
    number: number
  ) => Effect.Effect<Problem | undefined, TranscriptError, ReadRequirements>
  /** Returns the result after the last line. */
  readonly end: Effect.Effect<ReadRecords, TranscriptError, ReadRequirements>
}

/** Parses a record or a document. */
const parse = (text: string, format: SourceFormat): Result.Result<unknown, JsonProblem> =>
  Result.mapError(parseJson(text, format === "palimpsest" ? maxLogDepth : maxDepth), ({ _tag, message }) => ({
    _tag,
    message: _tag === "TooDeep" ? message : `not JSON (${shortLine(message, maxDetailChars)})`
  }))

/** The events of what a reader gave. */
const finish = Effect.fnUntraced(function* (
  path: string,
  read: Transcript | Problem,
  kind: TranscriptError["kind"]
): Effect.fn.Return<ReadRecords, TranscriptError, TokenCounter | TempStore> {
  if (isProblem(read)) return yield* transcriptError(path, read.line, problemText(read), kind)
  const { events, session } = yield* importWithSession(read).pipe(
    Effect.mapError((error) => transcriptError(path, 0, `the tokens could not be counted (${error.message})`))
  )
  return { events, session, skipped: read.skipped, long: undefined, transcript: read }
})

const isEmpty = ({ events, transcript }: ReadRecords): boolean => (transcript?.steps ?? events).length === 0

const unknownFormat = (path: string, format: SourceFormat): TranscriptError =>
  transcriptError(path, 0, `unknown format; none of its records is a message of the format ${format}`, "UnknownFormat")

/** Takes the lines of another agent's file. */
export const transcriptLines = (path: string, reader: LineReader): RecordLines => ({
  line: (value, text, number) => Effect.sync(() => reader.line(value, text, number)),
  end: Effect.flatMap(
    Effect.suspend(() => run(reader.end())),
    (read) => finish(path, read, "BrokenLine")
  )
})

/** Reads a file of records, one a line. */
export const readLines = Effect.fnUntraced(function* (
  path: string,
  format: SourceFormat,
  lines: RecordLines,
  lenient: boolean,
  chunks: Chunks
) {
  const splitter = new LineSplitter()
  const skipped = new Skipped()
  let number = 0
  let values = 0
  /** Skips a broken line when reading leniently, else fails. */
  const refuse = (message: string, kind = "broken line"): Effect.Effect<undefined, TranscriptError> => {
    if (!lenient) return Effect.fail(transcriptError(path, number, message, "BrokenLine"))
    skipped.add(kind)
    return Effect.undefined
  }

  /** Takes a line. Returns why it is not a whole record. */
  const accept = Effect.fnUntraced(function* (bytes: Uint8Array) {
    number += 1
    if (bytes.length > maxLineBytes) return yield* transcriptError(path, number, lineTooLong)
    const text = lineText(bytes, number)
    if (text.trim() === "") return undefined
    const value = parse(text, format)
    if (Result.isFailure(value)) return value.failure
    values += 1
    const found = formatOfRecord(value.success)
    if (found !== undefined && found !== format) {
      return yield* refuse(`a line of the format ${found} in a file of the format ${format}`, `${found} line`)
    }
    const problem = yield* lines.line(value.success, text, number)
    return problem === undefined ? undefined : yield* refuse(problemText(problem))
  })

  const take = Effect.fnUntraced(function* (chunk: Uint8Array) {
    let done = 0
    for (const line of splitter.push(chunk)) {
      const broken = yield* accept(line)
      if (broken !== undefined) yield* refuse(broken.message)
      done += line.length
      if (done > sliceBytes) {
        done = 0
        yield* Effect.yieldNow
      }
    }
    if (splitter.pending > maxLineBytes) return yield* transcriptError(path, number + 1, lineTooLong)
  })

  yield* Stream.runForEach(chunks, take)
  const broken = splitter.pending > 0 ? yield* accept(splitter.rest()) : undefined
  // An incomplete line is not JSON; one that is nested too deep is complete.
  const torn = broken?._tag === "TooDeep" ? yield* refuse(broken.message) : broken
  // An incomplete record alone is not a conversation.
  if (torn !== undefined && values === 0) return yield* transcriptError(path, number, torn.message)
  const read = yield* lines.end
  if (isEmpty(read) && Object.keys(skipped.counts).length > 0) return yield* unknownFormat(path, format)
  return { ...read, format, skipped: { ...read.skipped, ...skipped.counts }, torn: torn && number }
})

/** The message about a line that is too long. */
export const lineTooLong = `the line is longer than ${maxLineBytes / mebibyte} MiB`

/** Returns the text of a document. */
const wholeText = Effect.fnUntraced(function* (path: string, chunks: Chunks) {
  const held: Array<Uint8Array> = []
  let size = 0
  yield* Stream.runForEach(chunks, (chunk) => {
    held.push(chunk)
    size += chunk.length
    return size > maxDocumentBytes
      ? Effect.fail(transcriptError(path, 0, `the document is longer than ${maxDocumentBytes / mebibyte} MiB`))
      : Effect.void
  })
  return lineText(joinBytes(held), 1)
})

/** Returns the bytes of a file whose records stand in a list, or over several lines, with one record a line. */
export const listedRecords = (path: string, chunks: Chunks): Chunks =>
  Stream.fromEffect(Effect.map(wholeText(path, chunks), (text) => encode(recordsByLine(text))))

/** Reads a file that is one JSON document. A lenient reader leaves out what stands behind its last whole message, where its end is missing. */
export const readDocument = Effect.fnUntraced(function* (
  path: string,
  format: SourceFormat,
  lenient: boolean,
  read: (value: unknown, text: string) => SlicedWork<Transcript | Problem>,
  chunks: Chunks
) {
  const given = yield* wholeText(path, chunks)
  yield* Effect.yieldNow
  const first = parse(given, format)
  const mended = Result.isFailure(first) ? mendedJson(given) : undefined
  const isMended = lenient && mended !== undefined
  const text = isMended ? mended : given
  const value = isMended ? parse(text, format) : first
  if (Result.isFailure(value)) {
    return yield* transcriptError(path, 0, value.failure.message, mended === undefined ? "Unusable" : "BrokenLine")
  }
  yield* Effect.yieldNow
  const found = formatOfRecord(value.success)
  if (found !== undefined && found !== format) {
    return yield* transcriptError(path, 0, `a document of the format ${found}; expected the format ${format}`)
  }
  const records = yield* finish(path, yield* run(read(value.success, text)), "Unusable")
  const skipped = isMended ? { ...records.skipped, "incomplete end": 1 } : records.skipped
  return { ...records, skipped, format, torn: undefined }
})
