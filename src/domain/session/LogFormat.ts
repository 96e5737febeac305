/**
 * The lines of a session log: one event a line, as JSON. A part whose bytes are in the blob store leaves an empty part in its line
 * and a note of where the bytes are (`spilled`). An event that replaced the view may carry a `checkpoint`.
 */

import { Result, Schema } from "effect"
import { isPart, outputText, type Part, payload, withOutput } from "../content/Content.ts"
import type { Entry, EntryId } from "../conversation/Conversation.ts"
import { maxLogDepth, parseJson } from "../text/JsonText.ts"
import type { Checkpoint } from "./Checkpoint.ts"
import { decodeCommonEvent } from "./FastEventDecoding.ts"
import { logVersion, SessionEvent, Spilled, entriesOf } from "./Session.ts"

/** Where the bytes of parts are, by `entry:part`. */
export type SpilledParts = ReadonlyMap<string, Spilled>

/** The key of a part in `SpilledParts`. */
export const spillKey = (entry: EntryId, part: number): string => `${entry}:${part}`

const noneSpilled: SpilledParts = new Map()

const SpillNotes = Schema.Record(Schema.String, Spilled)
const encodeUncommonEvent = Schema.encodeSync(SessionEvent)
/** Messages and turns are JSON as they are. */
const encodeEvent = (event: SessionEvent): object => decodeCommonEvent(event) ?? encodeUncommonEvent(event)
const decodeEvent = Schema.decodeUnknownResult(SessionEvent)
const decodeNotes = Schema.decodeUnknownResult(SpillNotes)

const withoutPayload = (part: Part, form: Spilled["form"]): Part => (form === "json" ? {} : withOutput(part, ""))

const withoutSpilled = (entry: Entry, spilled: SpilledParts): Entry => {
  // The exact text of a part that is stored as JSON is the blob itself and is not written twice.
  const source = Object.entries(entry.source ?? {}).filter(
    ([part]) => spilled.get(spillKey(entry.id, Number(part)))?.form !== "json"
  )
  const { source: _source, ...rest } = entry
  const parts = entry.content.parts.map((part, index) => {
    const note = spilled.get(spillKey(entry.id, index))
    return note === undefined ? part : withoutPayload(part, note.form)
  })
  return {
    ...rest,
    content: { ...entry.content, parts },
    ...(source.length > 0 ? { source: Object.fromEntries(source) } : {})
  }
}

const mapEntries = (event: SessionEvent, f: (entry: Entry) => Entry): SessionEvent => {
  switch (event._tag) {
    case "Appended":
      return { ...event, entry: f(event.entry) }
    case "Answered":
      return {
        ...event,
        message: f(event.message),
        ...(event.attached === undefined ? {} : { attached: event.attached.map(f) }),
        answer: f(event.answer)
      }
    case "Compressed":
      return { ...event, patch: { ...event.patch, insert: event.patch.insert.map(f) } }
    case "Branched":
      return event.summary === undefined ? event : { ...event, summary: f(event.summary) }
    default:
      return event
  }
}

/** A text that every line with a checkpoint contains and no other can: within a JSON string its quotes would be escaped. */
export const checkpointMark = ',"checkpoint":{"ranges":['

/** Encodes an event as a line, without its line break. */
export const encodeLine = (
  event: SessionEvent,
  spilled: SpilledParts = noneSpilled,
  checkpoint?: Checkpoint | undefined
): string =>
  JSON.stringify({
    ...encodeEvent(spilled.size === 0 ? event : mapEntries(event, (entry) => withoutSpilled(entry, spilled))),
    ...(spilled.size === 0 ? {} : { spilled: Object.fromEntries(spilled) }),
    ...(checkpoint === undefined ? {} : { checkpoint })
  })

/** A decoded line: its event, with empty parts where bytes still have to be fetched. */
export interface DecodedLine {
  readonly event: SessionEvent
  readonly spilled: SpilledParts
  /** Undecoded; see `decodeCheckpoint`. */
  readonly checkpoint?: unknown
}

/** Why a line cannot be used. */
export type LineProblem =
  | { readonly _tag: "NewerVersion"; readonly version: number }
  | { readonly _tag: "UnknownEvent"; readonly event: string }
  | { readonly _tag: "Malformed"; readonly message: string }

/** A problem in words, without its line. */
export const lineProblemText = (problem: LineProblem): string => {
  switch (problem._tag) {
    case "NewerVersion":
      return `written by a newer version (log format ${problem.version}); update palimpsest to read it`
    case "UnknownEvent":
      return `unknown event: ${problem.event}`
    case "Malformed":
      return problem.message
  }
}

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null

const knownEvents = new Set<string>(SessionEvent.members.map((member) => member.fields._tag.schema.literal))

/**
 * Decodes the JSON value of one line of a log. Undefined stands for an event of an unknown kind that is marked as `ignorable`.
 * So far there is one version of the format.
 */
export const decodeLine = (value: unknown): Result.Result<DecodedLine | undefined, LineProblem> => {
  if (!isRecord(value) || typeof value._tag !== "string") {
    return Result.fail({ _tag: "Malformed", message: "expected an event: an object with a _tag" })
  }
  if (value._tag === "Started" && typeof value.version === "number" && value.version > logVersion) {
    return Result.fail({ _tag: "NewerVersion", version: value.version })
  }
  if (!knownEvents.has(value._tag)) {
    return value.ignorable === true
      ? Result.succeed(undefined)
      : Result.fail({ _tag: "UnknownEvent", event: value._tag })
  }
  const common = decodeCommonEvent(value)
  const event = common === undefined ? decodeEvent(value) : Result.succeed(common)
  if (event._tag === "Failure") return Result.fail({ _tag: "Malformed", message: event.failure.message })
  const checkpoint = value.checkpoint === undefined ? {} : { checkpoint: value.checkpoint }
  if (value.spilled === undefined) return Result.succeed({ event: event.success, spilled: noneSpilled, ...checkpoint })
  const notes = decodeNotes(value.spilled)
  return notes._tag === "Failure"
    ? Result.fail({ _tag: "Malformed", message: notes.failure.message })
    : Result.succeed({ event: event.success, spilled: new Map(Object.entries(notes.success)), ...checkpoint })
}

const restorePart = (part: Part, note: Spilled, text: string): Result.Result<Part, LineProblem> => {
  if (note.form === "text")
    return Result.succeed(outputText(part) === undefined ? { ...part, text } : withOutput(part, text))
  const value = parseJson(text, maxLogDepth)
  if (Result.isSuccess(value) && isPart(value.success)) return Result.succeed(value.success)
  const isDeep = Result.isFailure(value) && value.failure._tag === "TooDeep"
  const what = isDeep ? value.failure.message : "not the JSON it was"
  return Result.fail({ _tag: "Malformed", message: `blob ${note.hash} is ${what}` })
}

/** Puts the bytes of spilled parts back into an event. `texts` holds them by `entry:part`. */
export const restoreSpilled = (
  line: DecodedLine,
  texts: ReadonlyMap<string, string>
): Result.Result<SessionEvent, LineProblem> => {
  let problem: LineProblem | undefined
  const event = mapEntries(line.event, (entry) => {
    const source: Record<string, string> = { ...entry.source }
    const parts = entry.content.parts.map((part, index) => {
      const key = spillKey(entry.id, index)
      const note = line.spilled.get(key)
      const text = texts.get(key)
      if (note === undefined || text === undefined) return part
      const result = restorePart(part, note, text)
      if (result._tag === "Failure") {
        problem = result.failure
        return part
      }
      if (note.form === "json" && JSON.stringify(result.success) !== text) source[String(index)] = text
      return result.success
    })
    return {
      ...entry,
      content: { ...entry.content, parts },
      ...(Object.keys(source).length > 0 ? { source } : {})
    }
  })
  return problem === undefined ? Result.succeed(event) : Result.fail(problem)
}

/** The payloads of an event's parts that have at least `bytes` bytes in UTF-8 and are stored as blobs. */
export const spillableParts = (
  event: SessionEvent,
  bytes: number
): ReadonlyArray<{ readonly key: string; readonly form: Spilled["form"]; readonly text: string }> =>
  entriesOf(event).flatMap((entry) =>
    entry.content.parts.flatMap((part, index) => {
      const { form, text } = payload(part, entry.source?.[String(index)])
      // A UTF-16 unit is at most three bytes: short texts need no measuring.
      if (text.length * 3 < bytes || (text.length < bytes && new TextEncoder().encode(text).length < bytes)) return []
      return [{ key: spillKey(entry.id, index), form, text }]
    })
  )
