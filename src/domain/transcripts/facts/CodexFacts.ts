import { absurd } from "effect"
import { type CodexRecord, decodeCodex, folderIn, recordedSpeaker } from "../codex/Record.ts"
import type { Json } from "../JsonRecord.ts"
import { addChange, noteValue, noUsage, addPrompt, addRequest, noteTime, type ScanState } from "./ScanState.ts"

/** The facts of a session of Codex. */

const scanSession = (state: ScanState, record: Extract<CodexRecord, { readonly _tag: "Session" }>): void => {
  const { facts, last } = state
  // A fork repeats the records of the session that it comes from, and those of that session's own origin.
  if (facts.session !== record.id) last.family = record.forkedFrom ?? record.id
  facts.session ??= record.id
  facts.folder ??= record.folder
  if (record.parent !== undefined) facts.parent ??= record.parent
  noteValue(state, "instructions", record.instructions, "instructions")
}

const scan = (state: ScanState, record: CodexRecord): void => {
  const { facts, last } = state
  noteTime(state, record.at)
  switch (record._tag) {
    case "Session":
      return scanSession(state, record)
    case "Turn":
      facts.folder ??= record.folder
      last.model = record.model ?? last.model ?? "unknown"
      facts.model ??= last.model
      noteValue(state, "effort", record.effort, "thinking")
      noteValue(state, "policy", record.policies, "settings")
      return noteValue(state, "cwd", record.folder, "folder")
    case "Item":
      if (record.item.type !== "message" || record.item.role !== "user") return
      facts.folder ??= folderIn(JSON.stringify(record.item.content) ?? "")
      if (recordedSpeaker(record.item) !== "program") addPrompt(state, record.item.content)
      return
    case "Compacted":
      return addChange(state, "compaction")
    case "RolledBack":
      return addChange(state, "rewind")
    case "Used": {
      const { response: id, usage } = record
      if (id === undefined || usage === undefined) return
      last.hasRecords = "yes"
      return addRequest(state, { id, at: record.at ?? 0, model: last.model ?? "unknown", usage })
    }
    case "Counted":
      // Where each response has a record of its usage, the totals say nothing more.
      if (record.totals === last.totals || last.hasRecords !== undefined) return
      last.totals = record.totals
      // A fork has the counts of its origin at another time: the totals are the same.
      return addRequest(state, {
        id: `${last.family ?? facts.session ?? ""} ${record.totals}`,
        at: record.at ?? 0,
        model: last.model ?? "unknown",
        usage: record.usage ?? noUsage
      })
    case "Broken":
    case "Other":
      return
    default:
      return absurd(record)
  }
}

/** Adds a record of Codex to a scan. */
export const scanCodex = (state: ScanState, record: Json): void => scan(state, decodeCodex(record))
