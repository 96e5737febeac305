/** The facts of a session of Claude Code. */

import type { Json } from "../../text/JsonObject.ts"
import { takeFrom } from "../claude/Queue.ts"
import { type ClaudeRecord, decodeClaude, isCopied } from "../claude/Record.ts"
import { passOver } from "../JsonRecord.ts"
import { isBareCommand } from "../PromptTitle.ts"
import { type Marks, readMarks } from "../RecordMarks.ts"
import {
  type CacheChange,
  addChange,
  noteValue,
  addProgramText,
  addPrompt,
  addRequest,
  describe,
  noteTime,
  type ScanState
} from "./ScanState.ts"

/** Attachments that change the tools or instructions. */
const attachmentChanges: Readonly<Record<string, CacheChange>> = {
  deferred_tools_delta: "tools",
  mcp_instructions_delta: "instructions",
  agent_listing_delta: "tools",
  skill_listing: "tools"
}

/** Returns the conversation of a record of a subagent in its parent's file. */
const threadOf = ({ last }: ScanState, { agent, isSidechain, parent, uuid = "" }: ClaudeRecord): string | undefined => {
  if (!isSidechain) return undefined
  const thread = agent ?? (typeof parent === "string" ? (last[`side ${parent}`] ?? uuid) : uuid)
  last[`side ${uuid}`] = thread
  return thread
}

const scanAnswer = (state: ScanState, record: ClaudeRecord, thread: string | undefined): void => {
  if (record._tag !== "Message" || !record.isCounted) return
  addRequest(state, {
    id: `${record.messageId ?? record.uuid ?? ""} ${record.request ?? ""}`.trim(),
    at: record.at,
    model: record.model,
    usage: record.usage,
    thread
  })
}

const separator = "\u0000"

/** Follows the messages that wait while the agent works. One that is removed was sent; one that is dequeued has a record that follows. */
const scanQueue = (state: ScanState, record: Extract<ClaudeRecord, { readonly _tag: "Queued" }>): void => {
  const { last } = state
  const { content, operation } = record
  const waiting = last.queue === undefined ? [] : last.queue.split(separator).map((words) => ({ words }))
  const isNew = operation === "enqueue"
  if (isNew) waiting.push({ words: typeof content === "string" ? content.trim() : "" })
  const words = isNew
    ? undefined
    : (takeFrom(waiting, record)?.words ?? (typeof content === "string" ? content.trim() : undefined))
  if (operation === "remove" && words !== undefined && !isBareCommand(words) && addPrompt(state, words)) {
    const times = `sent ${words}`
    last[times] = String(1 + Number(last[times] ?? 0))
  }
  if (waiting.length === 0) delete last.queue
  else last.queue = waiting.map(({ words }) => words).join(separator)
}

/** Whether a message was counted when it left the queue. Each is remembered until its own record comes. */
const isFromQueue = ({ last }: ScanState, content: unknown): boolean => {
  const times = typeof content === "string" ? `sent ${content.trim()}` : ""
  const left = Number(last[times] ?? 0) - 1
  if (left > 0) last[times] = String(left)
  else delete last[times]
  return left >= 0
}

const scanMessage = (
  state: ScanState,
  record: Extract<ClaudeRecord, { readonly _tag: "Message" }>,
  thread: string | undefined,
  marks: Marks
): void => {
  scanAnswer(state, record, thread)
  if (record.role !== "user" || thread !== undefined) return
  const { last } = state
  // A session that goes on after an update can repeat its history, with the times that it had. Messages of one time are no repetition.
  const said = `said ${record.at} ${(JSON.stringify(record.content) ?? "").slice(0, 80)}`
  if (last[said] !== undefined && (record.at ?? Infinity) < (state.facts.updatedAt ?? 0)) return
  if (record.kind === "program") addProgramText(state, record.content)
  const isPrompt = record.kind === "message" && addPrompt(state, record.content, marks)
  if (isPrompt) last[said] = "once"
  const isBehind = last.uuid !== undefined && typeof record.parent === "string" && record.parent !== last.uuid
  if (isPrompt && isBehind) addChange(state, "rewind")
}

const scanBody = (
  state: ScanState,
  record: Exclude<ClaudeRecord, { readonly _tag: "Titled" }>,
  thread: string | undefined,
  marks: Marks
): void => {
  switch (record._tag) {
    case "Message":
      return scanMessage(state, record, thread, marks)
    case "Compacted":
      return addChange(state, "compaction", thread)
    case "Attached": {
      const change = Object.hasOwn(attachmentChanges, record.name) ? attachmentChanges[record.name] : undefined
      return change === undefined ? undefined : addChange(state, change, thread)
    }
    case "Queued":
      return scanQueue(state, record)
    case "Sent":
      if (record.isProgram !== true && thread === undefined && !isFromQueue(state, record.prompt))
        addPrompt(state, record.prompt)
      return
    case "Relayed":
      // What a subagent was answered; newer versions also write a file of its own.
      return scanAnswer(state, decodeClaude(record.answer), record.call ?? "subagent")
    default:
      return passOver<"Pinned" | "Replaced" | "Broken" | "Other">(record)
  }
}

/** Adds a record of Claude Code to a scan. */
export const scanClaude = (state: ScanState, json: Json): void => {
  const record = decodeClaude(json)
  const { folder, session: id } = record
  noteTime(state, record.at)
  if (record._tag === "Titled") return describe(state, { folder, title: record.title })
  describe(state, { folder, id })
  const thread = threadOf(state, record)
  if (thread === undefined) {
    noteValue(state, "version", record.version, "version")
    noteValue(state, "cwd", folder, "folder")
  }
  const known = state.requests.length
  scanBody(state, record, thread, readMarks(json))
  // Those were paid in the session that it comes from.
  if (isCopied(state.last, record)) for (const request of state.requests.slice(known)) request.isCopied = true
  if (record.uuid !== undefined && thread === undefined) state.last.uuid = record.uuid
}
