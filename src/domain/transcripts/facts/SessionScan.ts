/**
 * Reads what lists and accounts need from the records of a session file, one by one, without making a conversation of them.
 *
 * The facts of Claude Code have a file of their own.
 */

import { Schema } from "effect"
import { isJson, type Json } from "../../text/JsonObject.ts"
import { Usage } from "../../tokens/Tokens.ts"
import type { AgentName } from "../AgentFolders.ts"
import { decodeCodex, endsCopies, folderIn, recordedSpeaker } from "../codex/Record.ts"
import { isEnvironment, leadingJunkNote } from "../gemini/GeminiMessage.ts"
import { decodeGemini } from "../gemini/Record.ts"
import { passOver, textAt } from "../JsonRecord.ts"
import { decodeOpencode, decodePart } from "../opencode/Record.ts"
import { decodePi, type PiRecord } from "../pi/Record.ts"
import { marksOf, readMarks } from "../RecordMarks.ts"
import { scanClaude } from "./ClaudeFacts.ts"
import {
  addChange,
  addProgramText,
  addPrompt,
  addRequest,
  describe,
  noteTime,
  noteValue,
  partsOf,
  type ScanState
} from "./ScanState.ts"

const scanCodex = (state: ScanState, json: Json): void => {
  const record = decodeCodex(json)
  const { facts, last } = state
  noteTime(state, record.at)
  // Those requests were paid in the session that it comes from.
  if (endsCopies(last, record)) for (const request of state.requests) request.isCopied = true
  switch (record._tag) {
    case "Session":
      describe(state, { ...record, parent: facts.parent ?? record.parent })
      return noteValue(state, "instructions", record.instructions, "instructions")
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

const scanGemini = (state: ScanState, json: Json): void => {
  const record = decodeGemini(json)
  noteTime(state, record.at)
  switch (record._tag) {
    case "Session":
      describe(state, record)
      if (record.messages !== undefined) addChange(state, "compaction")
      return
    case "Rewound":
      return addChange(state, "rewind")
    case "Message": {
      if (record.role === "user") {
        // Gemini CLI leaves commands out of the conversation.
        const parts = partsOf(record.content)
        const isLeftOut = marksOf(json).parts === undefined && leadingJunkNote(parts) !== undefined
        if (!isLeftOut && !isEnvironment(parts)) addPrompt(state, record.content, readMarks(json))
        return
      }
      const { at, id = String(at ?? 0), model, usage } = record
      return addRequest(state, { id, at, model, usage })
    }
    default:
      return passOver<"Note" | "Broken" | "Other">(record)
  }
}

/** Counts the requests of Pi for a summary or within a tool. */
const scanAside = (
  state: ScanState,
  {
    _tag: thread,
    at,
    id = String(at ?? 0),
    usage
  }: Extract<PiRecord, { readonly _tag: "Compacted" | "Summary" | "Result" }>
): void => addRequest(state, { id: `${thread} ${id}`, at, model: state.facts.model, usage, thread })

const scanPi = (state: ScanState, json: Json): void => {
  const record = decodePi(json)
  const { facts, last } = state
  noteTime(state, record.at)
  switch (record._tag) {
    case "Session":
      describe(state, { id: record.id, folder: record.folder })
      facts.model ??= record.model
      last.level = record.level ?? "off"
      return
    case "Titled":
      return describe(state, { title: record.title })
    case "Compacted":
      scanAside(state, record)
      return addChange(state, "compaction")
    case "Summary":
      scanAside(state, record)
      return addChange(state, record.of === "branch" ? "rewind" : "compaction")
    case "Result":
      return scanAside(state, record)
    case "LevelChanged":
      return noteValue(state, "level", record.level, "thinking")
    case "Message": {
      if (record.by === "user") return void addPrompt(state, record.content, readMarks(json))
      if (record.by === "program") return addProgramText(state, record.content)
      if (record.by !== "model") return
      const { at, beganAt = at ?? 0, isFree, model, usage } = record
      const id = record.id ?? `${facts.session ?? ""} ${beganAt}`
      return addRequest(state, { id, at, model, usage: isFree && usage !== undefined ? { ...usage, cost: 0 } : usage })
    }
    default:
      return passOver<"ModelChanged" | "Command" | "Broken" | "Other">(record)
  }
}

const isUsage = Schema.is(Usage)
const ownUsage = (value: unknown): Usage | undefined => (isUsage(value) ? value : undefined)

const scanOwnEntry = (state: ScanState, entry: unknown): void => {
  if (!isJson(entry) || !isJson(entry.content)) return
  const at = typeof entry.at === "number" ? entry.at : undefined
  noteTime(state, at)
  if (entry.content.role === "user" && entry.author === undefined) addPrompt(state, entry.content.parts)
  const usage = ownUsage(entry.usage)
  const { facts, last } = state
  // What was imported was paid in the session that it comes from, and what a recording answered was paid when it was made.
  if (usage === undefined || entry.origin !== undefined || usage.cost === 0) return
  const model = textAt(entry, "model") ?? last.model
  addRequest(state, { id: `${facts.session ?? ""} ${textAt(entry, "id") ?? ""}`, at, model, usage })
}

const scanOwn = (state: ScanState, record: Json): void => {
  const { facts, last } = state
  if (record._tag === "Started") {
    const [id, folder, parent] = [textAt(record, "session"), textAt(record, "cwd"), textAt(record, "parent")]
    describe(state, { id, folder, parent })
    const model = textAt(record, "model")
    if (model !== undefined) last.model = facts.model = model
  }
  const at = typeof record.at === "number" ? record.at : undefined
  noteTime(state, at)
  if (record._tag === "ModelSwitched") last.model = textAt(record, "model") ?? "unknown"
  if (record._tag === "Compressed" || record._tag === "Masked" || record._tag === "Undone")
    addChange(state, "compaction")
  if (record._tag === "Branched") addChange(state, "rewind")
  scanOwnEntry(state, record.entry)
  scanOwnEntry(state, record.message)
  scanOwnEntry(state, record.answer)
  for (const [index, call] of (Array.isArray(record.calls) ? record.calls : []).entries()) {
    const usage = isJson(call) ? ownUsage(call.usage) : undefined
    if (usage === undefined) continue
    const id = `${facts.session ?? ""} ${String(record._tag)} ${at ?? 0} ${index}`
    addRequest(state, { id, at, model: textAt(call, "model"), usage, thread: "compression" })
  }
}

/** Notes the first prompt among the parts of a message. */
const scanOpencodePart = (state: ScanState, message: string, data: Json): void => {
  const asking = `asking ${message}`
  const part = state.last[asking] === undefined ? undefined : decodePart(data)
  if (part?._tag !== "Said" || part.by !== "user" || part.isIgnored) return
  if (addPrompt(state, [part.piece.part])) delete state.last[asking]
}

const scanOpencode = (state: ScanState, json: Json): void => {
  const record = decodeOpencode(json)
  const { last } = state
  switch (record._tag) {
    case "Session":
      return describe(state, record)
    case "Message":
      noteTime(state, record.at)
      if (record.role === "assistant") return addRequest(state, record)
      if (record.role !== "user") return
      // What it says stands with it, or in rows that follow.
      last[`asking ${record.id}`] = record.id
      for (const part of record.parts) scanOpencodePart(state, record.id, part)
      return
    case "Part":
      return scanOpencodePart(state, record.message, record.data)
    default:
      return passOver<"Broken" | "Other">(record)
  }
}

const scans: Readonly<Record<AgentName, (state: ScanState, record: Json) => void>> = {
  claude: scanClaude,
  codex: scanCodex,
  gemini: scanGemini,
  pi: scanPi,
  palimpsest: scanOwn,
  opencode: scanOpencode
}

/** Adds a record of a session file to a scan. Records that it does not know change nothing. */
export const scanRecord = (state: ScanState, agent: AgentName, record: unknown): void => {
  if (isJson(record)) scans[agent](state, record)
}
