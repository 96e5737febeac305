import { Effect } from "effect"
import { encode } from "../../domain/text/Bytes.ts"
import type { SourceFormat } from "../../domain/transcripts/Transcript.ts"
import { draftsOf } from "../../domain/transcripts/Transcript.ts"
import { chooseReader } from "./ChooseReader.ts"
import type { ReadRequirements, ReadTranscript } from "./LoadedTranscript.ts"
import type { TranscriptError } from "./TranscriptError.ts"

/** Keeps what an agent recorded beside a conversation when the conversation in its file is replaced. */

const readText = (
  text: string,
  format: SourceFormat
): Effect.Effect<ReadTranscript, TranscriptError, ReadRequirements> =>
  Effect.flatMap(chooseReader("the text", encode(text), { from: format, lenient: true }, undefined), (reader) =>
    Effect.andThen(reader.push(encode(text)), reader.end)
  )

/** What a transcript says, without where it stands in its file. */
const stepsOf = ({ transcript }: ReadTranscript): string =>
  JSON.stringify(transcript?.steps.map((step) => draftsOf(step).map(({ author, content }) => [author, content])))

const textOf = (lines: ReadonlyArray<string>): string => lines.map((line) => `${line}\n`).join("")

/** Whether a text has a record a line. */
const isLines = (text: string): boolean => !/^\s*(?:\[|\{\s*\n)/.test(text)

/**
 * Returns the written lines with the records of the original that are not part of the conversation, after its first record: those
 * of the kinds that the written ones have none of. The conversation stays what it is.
 */
export const withKeptRecords = Effect.fn("Transcripts.withKeptRecords")(function* (
  original: string,
  written: ReadonlyArray<string>,
  format: SourceFormat
): Effect.fn.Return<ReadonlyArray<string>, never, ReadRequirements> {
  const [first] = written
  const read = yield* Effect.option(Effect.all([readText(original, format), readText(textOf(written), format)]))
  if (first === undefined || written.length === 1 || !isLines(original) || read._tag === "None") return written
  const [before, after] = read.value
  const said = new Set(before.transcript?.steps.flatMap(draftsOf).map(({ origin }) => origin?.line))
  const kept: Array<string> = []
  for (const [index, line] of original.split("\n").entries()) {
    if (said.has(index + 1) || line.trim() === "") continue
    const alone = yield* Effect.option(readText(`${line}\n`, format))
    if (alone._tag === "None" || (alone.value.transcript?.steps.length ?? 1) > 0) continue
    const kinds = Object.keys(alone.value.skipped)
    if (kinds.length > 0 && kinds.every((kind) => after.skipped[kind] === undefined)) kept.push(line)
  }
  if (kept.length === 0) return written
  const whole = [first, ...kept, ...written.slice(1)]
  const again = yield* Effect.option(readText(textOf(whole), format))
  return again._tag === "Some" && stepsOf(again.value) === stepsOf(after) ? whole : written
})
