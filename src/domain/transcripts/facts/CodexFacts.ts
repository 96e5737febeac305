import type { Json } from "../../text/JsonObject.ts"
import { type CodexRecord, decodeCodex, folderIn, recordedSpeaker } from "../codex/Record.ts"
import { passOver } from "../JsonRecord.ts"
import { readMarks } from "../RecordMarks.ts"
import {
  addChange,
  addPrompt,
  addRequest,
  describe,
  noteTime,
  noteValue,
  partsOf,
  type ScanState
} from "./ScanState.ts"

/** The facts of a session of Codex. */

const scanCodexSession = (state: ScanState, record: Extract<CodexRecord, { readonly _tag: "Session" }>): void => {
  const { facts, last } = state
  // A fork repeats the records of the session that it comes from, and those of that session's own origin.
  if (facts.session !== record.id) last.family = record.forkedFrom ?? record.id
  describe(state, { ...record, parent: facts.parent ?? record.parent })
  noteValue(state, "instructions", record.instructions, "instructions")
}

/**
 * Pauses that end the copies where no turn tells when it began: copies are written at once. No model answers within the shorter one, which
 * decides where nothing names an origin.
 */
const pauseMillis = { named: 1_000, unnamed: 200 }

/** The beginning of 2020: Codex is younger. */
const earliest = Date.UTC(2020, 0)

/** Returns the time in an id of version 7, in milliseconds since 1970. */
const timeIn = (id = ""): number | undefined => {
  const time = /^[\da-f]{8}-[\da-f]{4}-7/i.test(id) ? Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16) : 0
  return time < earliest ? undefined : time
}

/**
 * Notes where the records end that a fork repeats before its own (Codex before 0.149): those requests were paid in the session that it
 * comes from. Copies have the time of the fork or their own, which is earlier, and their turns began before it. The first own
 * record is the session's, once more, a turn of its own, or comes after a pause.
 */
const noteCopies = ({ facts, last, requests }: ScanState, record: CodexRecord): void => {
  const { at } = record
  if (last.copies === "ended" || at === undefined) return
  if (last.began === undefined) {
    if (record._tag !== "Session") return
    // The file can be younger than the first turn.
    last.began = String(Math.min(at, timeIn(record.id) ?? at))
    last.latest = String(at)
    return
  }
  const turn = record._tag === "Turn" ? timeIn(record.turn) : undefined
  const isOwnSession = record._tag === "Session" && record.id === facts.session
  const pause = last.family === facts.session ? pauseMillis.unnamed : pauseMillis.named
  const hasPaused = last.copies === undefined && at - Number(last.latest) >= pause
  if (turn !== undefined) last.copies = turn < Number(last.began) ? "of turns" : "ended"
  else if (isOwnSession || hasPaused) last.copies = "ended"
  last.latest = String(Math.max(Number(last.latest), at))
  if (last.copies === "ended") for (const request of requests) request.isCopied = true
}

/** Notes what a record of Codex says of its session. */
export const scanCodex = (state: ScanState, json: Json): void => {
  const record = decodeCodex(json)
  const { facts, last } = state
  noteTime(state, record.at)
  noteCopies(state, record)
  switch (record._tag) {
    case "Session":
      return scanCodexSession(state, record)
    case "Turn":
      describe(state, { folder: record.folder })
      last.model = record.model ?? last.model ?? "unknown"
      // A file that was compressed in place has the usage from before in front of its first turn.
      if (facts.model === "unknown") for (const request of state.requests) request.model = last.model
      if (facts.model === undefined || facts.model === "unknown") facts.model = last.model
      noteValue(state, "effort", record.effort, "thinking")
      noteValue(state, "policy", record.policies, "settings")
      return noteValue(state, "cwd", record.folder, "folder")
    case "Item":
      if (record.item.type !== "message" || record.item.role !== "user") return
      facts.folder ??= folderIn(
        partsOf(record.item.content)
          .map(({ text = "" }) => text)
          .join("\n")
      )
      if (recordedSpeaker(record.item) !== "program") addPrompt(state, record.item.content, readMarks(json))
      return
    case "Compacted":
      return addChange(state, "compaction")
    case "RolledBack":
      return addChange(state, "rewind")
    case "Used":
      if (record.usage === undefined) return
      last.hasRecords = "yes"
      return addRequest(state, { ...record, model: last.model })
    case "Counted":
      // Where each response has a record of its usage, the totals say nothing more.
      if (record.totals === last.totals || last.hasRecords !== undefined) return
      last.totals = record.totals
      // A fork has the counts of its origin at another time: the totals are the same.
      return addRequest(state, {
        id: `${last.family ?? facts.session ?? ""} ${record.totals}`,
        at: record.at,
        model: last.model,
        usage: record.usage
      })
    default:
      return passOver<"Broken" | "Other">(record)
  }
}
