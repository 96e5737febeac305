import { Result, Schema } from "effect"
import type { Checkpoint } from "./Checkpoint.ts"
import { outputText, Part, payload, withOutput } from "./Content.ts"
import type { Entry, EntryId } from "./Conversation.ts"
import { maxLogDepth, parseJson } from "./JsonText.ts"
import { logVersion, SessionEvent, Spilled } from "./Session.ts"

/**
 * The log as lines: one event, one line of JSON. A part whose bytes lie in the blob store leaves an empty part behind and
 * a note of where they are (`spilled`); an event that replaced the view may carry a `checkpoint`.
 */

/** By `entry:part`: where the bytes of a part lie. */
export type SpilledParts = ReadonlyMap<string, Spilled>

/** The key of a part in `SpilledParts`. */
export const spillKey = (entry: EntryId, part: number): string => `${entry}:${part}`

const nowhere: SpilledParts = new Map()

const SpillNotes = Schema.Record(Schema.String, Spilled)
const encodeEvent = Schema.encodeSync(SessionEvent)
const decodeEvent = Schema.decodeUnknownResult(SessionEvent)
const decodeNotes = Schema.decodeUnknownResult(SpillNotes)

const hollow = (part: Part, form: Spilled["form"]): Part => (form === "json" ? {} : withOutput(part, ""))

const hollowEntry = (entry: Entry, spilled: SpilledParts): Entry => {
  // The exact text of a part that is stored as JSON is the blob itself: it is not written twice.
  const source = Object.entries(entry.source ?? {}).filter(
    ([part]) => spilled.get(spillKey(entry.id, Number(part)))?.form !== "json"
  )
  const { source: _source, ...rest } = entry
  const parts = entry.content.parts.map((part, index) => {
    const note = spilled.get(spillKey(entry.id, index))
    return note === undefined ? part : hollow(part, note.form)
  })
  return {
    ...rest,
    content: { ...entry.content, parts },
    ...(source.length > 0 ? { source: Object.fromEntries(source) } : {})
  }
}

/** The entries that an event brings along. */
export const entriesOf = (event: SessionEvent): ReadonlyArray<Entry> => {
  switch (event._tag) {
    case "Appended":
      return [event.entry]
    case "Answered":
      return [event.message, ...(event.attached ?? []), event.answer]
    case "Compressed":
      return event.patch.insert
    default:
      return []
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
    default:
      return event
  }
}

/** What a line with a checkpoint holds word for word, and no text inside a JSON string can (its quotes would be escaped). */
export const checkpointMark = ',"checkpoint":{"ranges":['

/** One line, without its line break. */
export const encodeLine = (
  event: SessionEvent,
  spilled: SpilledParts = nowhere,
  checkpoint?: Checkpoint | undefined
): string =>
  JSON.stringify({
    ...encodeEvent(spilled.size === 0 ? event : mapEntries(event, (entry) => hollowEntry(entry, spilled))),
    ...(spilled.size === 0 ? {} : { spilled: Object.fromEntries(spilled) }),
    ...(checkpoint === undefined ? {} : { checkpoint })
  })

/** A line that was read: its event, with empty parts where bytes still have to be fetched. */
export interface DecodedLine {
  readonly event: SessionEvent
  readonly spilled: SpilledParts
  /** As it stands there; see `decodeCheckpoint`. */
  readonly checkpoint?: unknown
}

/** Why a line cannot be used. */
export type LineProblem =
  | { readonly _tag: "NewerVersion"; readonly version: number }
  | { readonly _tag: "UnknownEvent"; readonly event: string }
  | { readonly _tag: "Malformed"; readonly message: string }

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null

const known = new Set<string>(SessionEvent.members.map((member) => member.fields._tag.schema.literal))

type Check = (value: unknown) => boolean

const isString: Check = (value) => typeof value === "string"
const isObject = (value: unknown): value is Record<string, unknown> => isRecord(value) && !Array.isArray(value)
const isCount: Check = (value) => typeof value === "number" && value >= 0 && Number.isSafeInteger(value)
const isArrayOf =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(check)
const isMatch =
  (pattern: RegExp): Check =>
  (value) =>
    typeof value === "string" && pattern.test(value)

/** Of the keys that are known, every one holds what it has to; of others, nothing is said. */
const isOpen =
  (checks: ReadonlyMap<string, Check>): Check =>
  (value) => {
    if (!isObject(value)) return false
    for (const key in value) if (checks.get(key)?.(value[key]) === false) return false
    return true
  }

const callChecks = isOpen(new Map([["id", isString]]))
const isPlainPart = isOpen(
  new Map<string, Check>([
    ["text", isString],
    ["thought", (value) => typeof value === "boolean"],
    ["thoughtSignature", isString],
    ["functionCall", (value) => isObject(value) && isString(value.name) && callChecks(value)],
    [
      "functionResponse",
      isOpen(
        new Map([
          ["id", isString],
          ["name", isString]
        ])
      )
    ],
    [
      "inlineData",
      isOpen(
        new Map([
          ["mimeType", isString],
          ["data", isString]
        ])
      )
    ],
    [
      "fileData",
      isOpen(
        new Map([
          ["mimeType", isString],
          ["fileUri", isString]
        ])
      )
    ]
  ])
)

const isPlainParts = isArrayOf(isPlainPart)

const usageKeys = ["prompt", "answer", "thoughts", "cached"]
const isUsage: Check = (value) => {
  if (!isObject(value) || !usageKeys.every((key) => isCount(value[key]))) return false
  for (const key in value) if (!usageKeys.includes(key) && (key !== "cacheWrite" || !isCount(value[key]))) return false
  return true
}

/** What a key of an entry may hold. An entry with a key that is not here takes the longer way. */
const entryChecks = new Map<string, Check>([
  ["id", isMatch(/^e[1-9]\d*$/)],
  [
    "content",
    (value) => isObject(value) && (value.role === "user" || value.role === "model") && isPlainParts(value.parts)
  ],
  ["at", Number.isFinite],
  ["usage", (value) => isUsage(value)],
  ["author", (value) => value === "program" || value === "summary" || value === "environment"],
  ["model", isString],
  ["tokens", isArrayOf(isCount)],
  ["handles", isArrayOf(isMatch(/^h_[a-z2-7]{10,52}$/))]
])

const isPlainEntry = (value: unknown): value is Entry => {
  if (!isObject(value)) return false
  if (value.id === undefined || value.content === undefined || value.tokens === undefined) return false
  if (value.handles === undefined) return false
  for (const key in value) if (entryChecks.get(key)?.(value[key]) !== true) return false
  return true
}

/** Nearly every line of a long log is a message or a turn; for those, looking is enough. What the schema would say stays the same. */
const plainly = (value: Readonly<Record<string, unknown>>): SessionEvent | undefined => {
  const { answer, attached, entry, message } = value
  if (value._tag === "Appended") return isPlainEntry(entry) ? { _tag: "Appended", entry } : undefined
  if (value._tag !== "Answered" || attached !== undefined) return undefined
  return isPlainEntry(message) && isPlainEntry(answer) ? { _tag: "Answered", message, answer } : undefined
}

/**
 * Brings an event of an older version into today's shape, one version a step: `upcasters[0]` takes version 1 to 2.
 * There is only version 1 so far.
 */
const upcasters: ReadonlyArray<(event: Record<string, unknown>) => Record<string, unknown>> = []

/**
 * One line of a log of `version`, as JSON value. `undefined`: an event of a kind we do not know that says of itself that
 * it may be left out.
 */
export const decodeLine = (
  value: unknown,
  version: number = logVersion
): Result.Result<DecodedLine | undefined, LineProblem> => {
  if (!isRecord(value) || typeof value._tag !== "string") {
    return Result.fail({ _tag: "Malformed", message: "expected an event: an object with a _tag" })
  }
  if (value._tag === "Started" && typeof value.version === "number" && value.version > logVersion) {
    return Result.fail({ _tag: "NewerVersion", version: value.version })
  }
  if (!known.has(value._tag)) {
    return value.ignorable === true
      ? Result.succeed(undefined)
      : Result.fail({ _tag: "UnknownEvent", event: value._tag })
  }
  const current =
    version === logVersion
      ? value
      : upcasters.slice(Math.max(0, version - 1)).reduce((event, upcast) => upcast(event), value)
  const plain = plainly(current)
  const event = plain === undefined ? decodeEvent(current) : Result.succeed(plain)
  if (event._tag === "Failure") return Result.fail({ _tag: "Malformed", message: event.failure.message })
  const checkpoint = current.checkpoint === undefined ? {} : { checkpoint: current.checkpoint }
  if (current.spilled === undefined) return Result.succeed({ event: event.success, spilled: nowhere, ...checkpoint })
  const notes = decodeNotes(current.spilled)
  return notes._tag === "Failure"
    ? Result.fail({ _tag: "Malformed", message: notes.failure.message })
    : Result.succeed({ event: event.success, spilled: new Map(Object.entries(notes.success)), ...checkpoint })
}

const isPart = Schema.is(Part)

const filledPart = (part: Part, note: Spilled, text: string): Result.Result<Part, string> => {
  if (note.form === "text")
    return Result.succeed(outputText(part) === undefined ? { ...part, text } : withOutput(part, text))
  const value = parseJson(text, maxLogDepth)
  if (Result.isSuccess(value) && isPart(value.success)) return Result.succeed(value.success)
  const isDeep = Result.isFailure(value) && value.failure._tag === "TooDeep"
  return Result.fail(`blob ${note.hash} is ${isDeep ? value.failure.message : "not the JSON it was"}`)
}

/** The event with the bytes of its spilled parts back in place. `texts` holds them by `entry:part`. */
export const filled = (line: DecodedLine, texts: ReadonlyMap<string, string>): Result.Result<SessionEvent, string> => {
  let problem: string | undefined
  const event = mapEntries(line.event, (entry) => {
    const source: Record<string, string> = { ...entry.source }
    const parts = entry.content.parts.map((part, index) => {
      const key = spillKey(entry.id, index)
      const note = line.spilled.get(key)
      const text = texts.get(key)
      if (note === undefined || text === undefined) return part
      const result = filledPart(part, note, text)
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

/** The payloads of an event's parts that are large enough to be stored apart (bytes counted as UTF-8). */
export const spillable = (
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
