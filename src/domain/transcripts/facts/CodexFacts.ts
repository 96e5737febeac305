import type { Json } from "../../text/JsonObject.ts"
import { endsCopies } from "../codex/Copies.ts"
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
  describe(state, { ...record, parent: state.facts.parent ?? record.parent })
  noteValue(state, "instructions", record.instructions, "instructions")
}

/** Notes what a record of Codex says of its session. */
export const scanCodex = (state: ScanState, json: Json): void => {
  const record = decodeCodex(json)
  const { facts, last } = state
  noteTime(state, record.at)
  // Those requests were paid in the session that it comes from.
  if (endsCopies(last, record)) for (const request of state.requests) request.isCopied = true
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
