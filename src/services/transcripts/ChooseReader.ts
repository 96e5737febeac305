/** Detects the format of a file from its first bytes, and chooses the reader for it. */

import { Context, Effect } from "effect"
import { lineBreaks } from "../../domain/text/Bytes.ts"
import { sizeText } from "../../domain/text/NumberText.ts"
import { claudeReader } from "../../domain/transcripts/claude/ClaudeReader.ts"
import { codexReader } from "../../domain/transcripts/codex/CodexReader.ts"
import {
  packedProblem,
  detectFormat,
  isGeminiDocument,
  isOpencodeRows
} from "../../domain/transcripts/facts/DetectFormat.ts"
import { readContents } from "../../domain/transcripts/gemini/ContentsReader.ts"
import { geminiReader, readGeminiDocument } from "../../domain/transcripts/gemini/GeminiReader.ts"
import { opencodeReader, readOpencodeDocument } from "../../domain/transcripts/opencode/OpencodeReader.ts"
import { piReader } from "../../domain/transcripts/pi/PiReader.ts"
import { isRecordList } from "../../domain/transcripts/RecordList.ts"
import type { LineReader, SourceFormat } from "../../domain/transcripts/Transcript.ts"
import { lineText } from "./LineSplitter.ts"
import type { LoadOptions } from "./LoadedTranscript.ts"
import { sessionLogLines } from "./SessionLogLines.ts"
import { transcriptError } from "./TranscriptError.ts"
import {
  lineTooLong,
  listedRecords,
  maxLineBytes,
  readDocument,
  readLines,
  type TranscriptReader,
  transcriptLines
} from "./TranscriptReader.ts"

/** Bytes of memory that this program may use; undefined: no limit. A file that needs more is refused. */
export const MemoryLimit = Context.Reference<number | undefined>(
  "palimpsest/services/transcripts/ChooseReader/MemoryLimit",
  {
    defaultValue: () => undefined
  }
)

/** Memory above which `warn` is called, in bytes. */
const warnMemoryBytes = 500_000_000
/**
 * Memory that reading takes, measured on logs of long and of short messages: the minimum in bytes, and the bytes per byte of
 * the file and per line.
 */
const memoryCost = { least: 100_000_000, byte: 1.3, line: 1_700 }
/** Bytes at the beginning of a file in which lines are counted. */
const sampleBytes = 1024 * 1024

const readable = "palimpsest, contents, gemini, pi, claude, codex or opencode"

/** Returns the reader of a format; `head` is the beginning of the file. */
const readerOf = (
  path: string,
  format: SourceFormat,
  head: string,
  { lenient = false, shortens = false }: LoadOptions
): TranscriptReader => {
  const lines =
    (reader: LineReader): TranscriptReader =>
    (chunks) => {
      const records = isRecordList(head) ? listedRecords(path, chunks) : chunks
      return readLines(path, format, transcriptLines(path, reader), lenient, records)
    }
  const document =
    (read: Parameters<typeof readDocument>[3]): TranscriptReader =>
    (chunks) =>
      readDocument(path, format, lenient, read, chunks)
  switch (format) {
    case "contents":
      return document(readContents)
    case "gemini":
      return isGeminiDocument(head) ? document(readGeminiDocument) : lines(geminiReader())
    case "claude":
      return lines(claudeReader(lenient))
    case "codex":
      return lines(codexReader())
    case "pi":
      return lines(piReader(lenient))
    case "opencode":
      return isOpencodeRows(head) ? lines(opencodeReader()) : document(readOpencodeDocument)
    case "palimpsest":
      return (chunks) => readLines(path, format, sessionLogLines(path, lenient, shortens), lenient, chunks)
  }
}

const startsAs = (bytes: Uint8Array, text: string): boolean =>
  bytes.length > text.length && [...text].every((char, index) => bytes[index] === char.charCodeAt(0))

/** Returns the reader for a file that begins with these bytes, if its format can be read and its size fits into memory. */
export const chooseReader = (path: string, head: Uint8Array, options: LoadOptions, size: number | undefined) => {
  if (startsAs(head, "SQLite format 3")) {
    return Effect.fail(transcriptError(path, 0, "is a database; name one session of it", "UnknownSession"))
  }
  const packed = packedProblem(head)
  if (packed !== undefined) return Effect.fail(transcriptError(path, 0, packed))
  // A crash can leave zeros where a record was being written.
  const isText = head.includes(0) && detectFormat(lineText(head, 1)) !== undefined
  if (head.includes(0) && !(isText && options.lenient === true)) {
    const problem = isText ? "holds zero bytes, as a crash leaves them" : `is binary; expected UTF-8 text (${readable})`
    return Effect.fail(transcriptError(path, 0, problem, isText ? "BrokenLine" : undefined))
  }
  // A file that goes on this long without a line break can only be a document: an array of contents.
  if (head.length > maxLineBytes && head[0] !== 0x5b && options.from === undefined) {
    return Effect.fail(transcriptError(path, 1, lineTooLong))
  }
  const text = lineText(head, 1)
  if (text.trim() === "")
    return Effect.fail(transcriptError(path, 0, `is empty; expected a conversation (${readable})`))
  const format = options.from ?? detectFormat(text)
  return format === undefined
    ? Effect.fail(transcriptError(path, 0, `unknown format; expected ${readable}`, "UnknownFormat"))
    : Effect.as(checkMemory(path, format, head, options, size), readerOf(path, format, text, options))
}

/** Warns before a large file is read, and refuses one that would exceed the memory limit. */
const checkMemory = Effect.fnUntraced(function* (
  path: string,
  format: SourceFormat,
  head: Uint8Array,
  { shortens = false, warn }: LoadOptions,
  bytes: number | undefined
) {
  if (bytes === undefined || (shortens && format === "palimpsest")) return
  const sample = head.subarray(0, sampleBytes)
  const lines = (bytes / sample.length) * lineBreaks(sample)
  const memory = memoryCost.least + memoryCost.byte * bytes + memoryCost.line * lines
  const limit = yield* MemoryLimit
  if (limit !== undefined && memory > limit) {
    return yield* transcriptError(
      path,
      0,
      `a file of ${sizeText(bytes)} takes about ${sizeText(memory)} of memory, more than the ${sizeText(limit)} that this program may use`,
      "TooLarge",
      memory
    )
  }
  if (warn !== undefined && memory > warnMemoryBytes) yield* warn({ bytes, memory })
})
