import { titleOf } from "../../session/SessionHead.ts"
import { type ClaudeRecord, decodeClaude } from "../claude/Record.ts"
import type { Json } from "../JsonRecord.ts"
import { isBareCommand } from "../PromptTitle.ts"
import {
  type CacheChange,
  addChange,
  noteValue,
  noUsage,
  addPrompt,
  addRequest,
  noteTime,
  type ScanState
} from "./ScanState.ts"

/** The facts of a session of Claude Code. */

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
    at: record.at ?? state.facts.updatedAt ?? 0,
    model: record.model ?? "unknown",
    usage: record.usage ?? noUsage,
    ...(thread === undefined ? {} : { thread })
  })
}

const separator = "\u0000"

/** Follows the messages that wait while the agent works. One that is removed was sent; one that is dequeued has a record that follows. */
const scanQueue = (
  state: ScanState,
  { content, operation }: Extract<ClaudeRecord, { readonly _tag: "Queued" }>
): void => {
  const { last } = state
  const words = typeof content === "string" ? content.trim() : undefined
  const waiting = last.queue === undefined ? [] : last.queue.split(separator)
  if (operation === "enqueue") waiting.push(words ?? "")
  else if (operation === "popAll") waiting.length = 0
  else {
    const named = words === undefined ? 0 : waiting.indexOf(words)
    const [sent] = named < 0 ? [] : waiting.splice(named, 1)
    if (operation === "remove" && sent !== undefined && !isBareCommand(sent) && addPrompt(state, sent))
      last[`sent ${sent}`] = sent
  }
  if (waiting.length === 0) delete last.queue
  else last.queue = waiting.join(separator)
}

/** Whether a message was counted when it left the queue. */
const isFromQueue = ({ last }: ScanState, content: unknown): boolean =>
  typeof content === "string" && last[`sent ${content.trim()}`] !== undefined

const scan = (state: ScanState, record: ClaudeRecord): void => {
  const { facts, last } = state
  noteTime(state, record.at)
  facts.folder ??= record.folder
  if (record._tag === "Titled") {
    const title = titleOf(record.title)
    if (title !== "") facts.title = title
    return
  }
  facts.session ??= record.session
  const thread = threadOf(state, record)
  if (thread === undefined) {
    noteValue(state, "version", record.version, "version")
    noteValue(state, "cwd", record.folder, "folder")
  }
  if (record._tag === "Compacted") addChange(state, "compaction", thread)
  if (record._tag === "Attached") {
    const change = Object.hasOwn(attachmentChanges, record.name) ? attachmentChanges[record.name] : undefined
    if (change !== undefined) addChange(state, change, thread)
  }
  if (record._tag === "Queued") scanQueue(state, record)
  if (record._tag === "Sent" && record.isProgram !== true && thread === undefined && !isFromQueue(state, record.prompt))
    addPrompt(state, record.prompt)
  if (record._tag === "Message" && record.role === "user" && thread === undefined) {
    const isPrompt = record.kind === "message" && addPrompt(state, record.content)
    if (isPrompt && last.uuid !== undefined && typeof record.parent === "string" && record.parent !== last.uuid) {
      addChange(state, "rewind")
    }
  }
  if (record.uuid !== undefined && thread === undefined) last.uuid = record.uuid
  scanAnswer(state, record, thread)
  // What a subagent was answered; newer versions also write a file of its own.
  if (record._tag === "Relayed") scanAnswer(state, decodeClaude(record.answer), record.call ?? "subagent")
}

/** Adds a record of Claude Code to a scan. */
export const scanClaude = (state: ScanState, record: Json): void => scan(state, decodeClaude(record))
