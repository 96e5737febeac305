/** Keeps what an agent recorded beside a conversation when the conversation in its file is replaced. */

import { Effect, Stream } from "effect"
import { encode } from "../../domain/text/Bytes.ts"
import { isJson, type Json } from "../../domain/text/JsonObject.ts"
import { arraySlices, sliceAt } from "../../domain/text/JsonSource.ts"
import { parsedOrUndefined } from "../../domain/text/JsonText.ts"
import { isGeminiDocument } from "../../domain/transcripts/facts/DetectFormat.ts"
import { isRecordList, recordsByLine } from "../../domain/transcripts/RecordList.ts"
import type { SourceFormat } from "../../domain/transcripts/Transcript.ts"
import { draftsOf } from "../../domain/transcripts/Transcript.ts"
import { chooseReader } from "./ChooseReader.ts"
import type { ReadTranscript } from "./LoadedTranscript.ts"

const readText = (text: string, format: SourceFormat) =>
  Effect.flatMap(chooseReader("the text", encode(text), { from: format, lenient: true }, undefined), (reader) =>
    reader(Stream.make(encode(text)))
  )

/** What a transcript says, without where it stands in its file. */
const stepsOf = ({ transcript }: ReadTranscript): string =>
  JSON.stringify(transcript?.steps.map((step) => draftsOf(step).map(({ author, content }) => [author, content])))

/** How a file holds its records. */
interface RecordForm {
  /** Returns the records of a text that can stand beside the conversation. `said`: the lines that messages begin on. */
  readonly split: (text: string, said: ReadonlySet<number | undefined>) => ReadonlyArray<string>
  /** Returns a text with one record alone. */
  readonly alone: (record: string) => string
  /** Returns the written text with the kept records before its own. */
  readonly join: (kept: ReadonlyArray<string>, written: string) => string
}

const lines: RecordForm = {
  split: (text, said) =>
    (isRecordList(text) ? recordsByLine(text) : text)
      .split("\n")
      .filter((line, index) => !said.has(index + 1) && line.trim() !== ""),
  alone: (line) => `${line}\n`,
  join: (kept, written) => {
    const end = written.indexOf("\n") + 1
    return `${written.slice(0, end)}${kept.map((line) => `${line}\n`).join("")}${written.slice(end)}`
  }
}

/** An entry of Pi below the root of the tree, where no message has it on its path. Before version 2, entries have no id. */
const withPlace = (line: string, index: number): string => {
  const entry = parsedOrUndefined(line)
  return isJson(entry) && entry.id === undefined
    ? JSON.stringify({ ...entry, id: `kept${index.toString(16).padStart(4, "0")}`, parentId: null })
    : line
}

/** A session of Pi: its reader takes entries below a header only. */
const entries = (header: string): RecordForm => ({
  split: (text, said) => lines.split(text, said).slice(1),
  alone: (line) => `${header}\n${line}\n`,
  join: (kept, written) => lines.join(kept.map(withPlace), written)
})

const messagesOf = (text: string): string => sliceAt(text, ["messages"]) ?? ""

/** A session of Gemini CLI that is one document. */
const document: RecordForm = {
  split: (text) => arraySlices(messagesOf(text)),
  alone: (message) => `{"sessionId":"","messages":[${message.replaceAll(/[\r\n]+/g, " ")}]}`,
  join: (kept, written) => {
    const own = `"messages":${messagesOf(written)}`
    return written.replace(own, () => `"messages":[${[...kept, ...arraySlices(messagesOf(written))].join(",")}]`)
  }
}

/** Returns the form of both texts; undefined for a document without records beside its messages, and for two forms. */
const formOf = (original: string, written: string, format: SourceFormat): RecordForm | undefined => {
  if (format === "gemini" && isGeminiDocument(original)) return isGeminiDocument(written) ? document : undefined
  if (!written.includes("\n")) return undefined
  const [header = ""] = format === "pi" ? lines.split(original, new Set()) : []
  return header === "" ? lines : entries(header)
}

/** Where an agent's first record describes the session. */
const describing: Partial<Readonly<Record<SourceFormat, string>>> = { gemini: "{", pi: "{", codex: '"payload":{' }
/** Keys that say where the records are, which all stand in the written file. */
const placing = new Set(["messages", "history_base", "palimpsest"])

const objectIn = (record: unknown, opening: string): Json => {
  const value = isJson(record) && opening !== "{" ? record.payload : record
  return isJson(value) ? value : {}
}

/** Returns the first written record with what the original one says of the session besides, such as a title or instructions. */
const withDescription = (original: string, written: string, format: SourceFormat): string => {
  const opening = describing[format]
  if (opening === undefined) return written
  const [line = ""] = lines.split(original, new Set())
  const [said, made] = [parsedOrUndefined(line) ?? parsedOrUndefined(original), parsedOrUndefined(written)]
  const [before, own] = [objectIn(said, opening), objectIn(made, opening)]
  // A damaged session can begin with another record.
  const isSame =
    isJson(said) && isJson(made) && said.type === made.type && Object.keys(before).some((key) => key in own)
  if (!isSame) return written
  const more = Object.entries(before).filter(([key]) => !(key in own) && !placing.has(key))
  const start = written.indexOf(opening) + opening.length
  const text = more.map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)},`).join("")
  const hash = (of: Json) => `"projectHash":${JSON.stringify(of.projectHash)}`
  const whole = `${written.slice(0, start)}${text}${written.slice(start)}`
  return typeof before.projectHash === "string" ? whole.replace(hash(own), () => hash(before)) : whole
}

/** Whether a record of Gemini CLI says something of the session besides its latest time. */
const isDescription = (record: string): boolean => {
  const changes = parsedOrUndefined(record)
  const keys = isJson(changes) && isJson(changes.$set) ? Object.keys(changes.$set) : []
  return !keys.includes("messages") && keys.some((key) => key !== "lastUpdated")
}

/**
 * Returns the written lines with the records of the original that are not part of the conversation, after its first record, or before the
 * messages of a document: those of the kinds that the written ones have none of. The first record keeps what it said of the session. The conversation stays what it is.
 */
export const withKeptRecords = Effect.fn("Transcripts.withKeptRecords")(function* (
  original: string,
  written: ReadonlyArray<string>,
  format: SourceFormat
) {
  const text = written.join("\n")
  const form = formOf(original, text, format)
  const read = yield* Effect.option(Effect.all([readText(original, format), readText(text, format)]))
  if (form === undefined || read._tag === "None") return written
  const [before, after] = read.value
  const said = new Set(before.transcript?.steps.flatMap(draftsOf).map(({ origin }) => origin?.line))
  const kept: Array<string> = []
  for (const record of form.split(original, said)) {
    const alone = yield* Effect.option(readText(form.alone(record), format))
    if (alone._tag === "None" || (alone.value.transcript?.steps.length ?? 1) > 0) continue
    const kinds = Object.keys(alone.value.skipped)
    const isNew = kinds.length > 0 && kinds.every((kind) => after.skipped[kind] === undefined)
    if (isNew || isDescription(record)) kept.push(record)
  }
  const [first = "", ...others] = written
  const described = [withDescription(original, first, format), ...others].join("\n")
  const whole = kept.length === 0 ? described : form.join(kept, described)
  const again = yield* Effect.option(readText(whole, format))
  return again._tag === "Some" && stepsOf(again.value) === stepsOf(after) ? whole.split("\n") : written
})
