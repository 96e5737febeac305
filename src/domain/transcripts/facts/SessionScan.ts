import { titleOf } from "../../session/SessionHead.ts"
import type { Usage } from "../../tokens/Tokens.ts"
import type { AgentName } from "../AgentFolders.ts"
import { instant, isJson, type Json, textAt, timeAt } from "../JsonRecord.ts"
import { opencodeUsage, piUsage } from "../RecordUsage.ts"
import { scanClaude } from "./ClaudeFacts.ts"
import { scanCodex } from "./CodexFacts.ts"
import {
  addChange,
  countOrZero,
  noteValue,
  noUsage,
  addPrompt,
  addRequest,
  noteTime,
  type ScanState,
  wordsOf
} from "./ScanState.ts"

/**
 * Reads what lists and accounts need from the records of a session file, one by one, without making a conversation of them.
 *
 * The facts of Claude Code and of Codex are in files of their own. The texts that a search looks through are read here, too.
 */

const scanGemini = (state: ScanState, record: Json): void => {
  const { facts } = state
  if (isJson(record.$set)) {
    if (Array.isArray(record.$set.messages)) addChange(state, "compaction")
    const summary = textAt(record.$set, "summary")
    if (summary !== undefined) facts.title = titleOf(summary)
    return
  }
  if ("$rewindTo" in record) return addChange(state, "rewind")
  if (typeof record.sessionId === "string") {
    facts.session ??= record.sessionId
    const started = textAt(record, "startTime")
    noteTime(state, started === undefined ? undefined : timeAt({ timestamp: started }))
    const summary = textAt(record, "summary")
    if (summary !== undefined) facts.title = titleOf(summary)
    const { directories } = record
    if (Array.isArray(directories) && typeof directories[0] === "string") facts.folder ??= directories[0]
    return
  }
  const at = timeAt(record)
  noteTime(state, at)
  if (record.type === "user" || record.role === "user") addPrompt(state, wordsOf(record.content ?? record.parts))
  const { tokens } = record
  if (record.type !== "gemini" || !isJson(tokens)) return
  const usage = {
    prompt: countOrZero(tokens.input),
    answer: countOrZero(tokens.output),
    thoughts: countOrZero(tokens.thoughts),
    cached: countOrZero(tokens.cached)
  }
  addRequest(state, {
    id: textAt(record, "id") ?? String(at),
    at: at ?? 0,
    model: textAt(record, "model") ?? "unknown",
    usage
  })
}

const scanPi = (state: ScanState, record: Json): void => {
  const { facts, last } = state
  const at = timeAt(record)
  noteTime(state, at)
  const { message, type } = record
  if (type === "session") {
    facts.session ??= textAt(record, "id")
    facts.folder ??= textAt(record, "cwd")
    const model = textAt(record, "modelId")
    if (model !== undefined) facts.model ??= model
    last.level = textAt(record, "thinkingLevel") ?? "off"
  } else if (type === "session_info") facts.title = titleOf(textAt(record, "name") ?? "") || facts.title
  else if (type === "compaction") addChange(state, "compaction")
  else if (type === "branch_summary") addChange(state, "rewind")
  else if (type === "thinking_level_change") noteValue(state, "level", record.thinkingLevel, "thinking")
  else if (type === "message" && isJson(message)) {
    if (message.role === "user") addPrompt(state, wordsOf(message.content))
    const { usage } = message
    if (message.role !== "assistant" || !isJson(usage)) return
    addRequest(state, {
      id: textAt(record, "id") ?? `${facts.session ?? ""} ${String(message.timestamp ?? at)}`,
      at: at ?? 0,
      model: textAt(message, "model") ?? "unknown",
      // Answers that were carried to Pi cost 0: they were paid where they were given.
      usage: { ...(isJson(usage.cost) && usage.cost.total === 0 ? { cost: 0 } : {}), ...(piUsage(usage) ?? noUsage) }
    })
  }
}

const ownUsage = (value: unknown): Usage | undefined =>
  isJson(value) && typeof value.prompt === "number"
    ? {
        prompt: countOrZero(value.prompt),
        answer: countOrZero(value.answer),
        thoughts: countOrZero(value.thoughts),
        cached: countOrZero(value.cached),
        ...(typeof value.cacheWrite === "number" ? { cacheWrite: countOrZero(value.cacheWrite) } : {}),
        ...(typeof value.cacheWriteHour === "number" ? { cacheWriteHour: countOrZero(value.cacheWriteHour) } : {}),
        ...(typeof value.cost === "number" ? { cost: value.cost } : {})
      }
    : undefined

const scanOwnEntry = (state: ScanState, entry: unknown): void => {
  if (!isJson(entry) || !isJson(entry.content)) return
  const at = typeof entry.at === "number" ? entry.at : undefined
  noteTime(state, at)
  if (entry.content.role === "user" && entry.author === undefined) addPrompt(state, wordsOf(entry.content.parts))
  const usage = ownUsage(entry.usage)
  const { facts, last } = state
  // What was imported was paid in the session that it comes from, and what a recording answered was paid when it was made.
  if (usage === undefined || entry.origin !== undefined || usage.cost === 0) return
  const model = textAt(entry, "model") ?? last.model ?? "unknown"
  const time = at ?? facts.updatedAt ?? 0
  addRequest(state, { id: `${facts.session ?? ""} ${textAt(entry, "id") ?? ""}`, at: time, model, usage })
}

const scanOwn = (state: ScanState, record: Json): void => {
  const { facts, last } = state
  if (record._tag === "Started") {
    facts.session ??= textAt(record, "session")
    facts.folder ??= textAt(record, "cwd")
    const parent = textAt(record, "parent")
    if (parent !== undefined) facts.parent = parent
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
    const model = textAt(call, "model") ?? "unknown"
    addRequest(state, { id, at: at ?? facts.updatedAt ?? 0, model, usage, thread: "compression" })
  }
}

/** A row of opencode's database for an element of a document that `opencode export` writes. */
const opencodeRow = (record: Json): Json => {
  const { info } = record
  if (!isJson(info)) return record
  const time = isJson(info.time) ? info.time : {}
  return "role" in info
    ? { kind: "message", id: info.id, time_created: time.created, data: info }
    : { ...info, kind: "session", parent_id: info.parentID }
}

/** Adds a row of opencode's database, or an element of its export, to a scan. */
const scanOpencode = (state: ScanState, element: Json): void => {
  const { facts } = state
  const record = opencodeRow(element)
  if (record.kind === "session") {
    facts.session ??= textAt(record, "id")
    facts.folder ??= textAt(record, "directory")
    facts.title = titleOf(textAt(record, "title") ?? "") || facts.title
    const parent = textAt(record, "parent_id")
    if (parent !== undefined) facts.parent = parent
    return
  }
  const { data } = record
  const at = instant(record.time_created)
  noteTime(state, at)
  if (!isJson(data) || record.kind !== "message") return
  if (data.role === "user") facts.prompts += 1
  if (data.role !== "assistant") return
  addRequest(state, {
    id: textAt(record, "id") ?? String(at),
    at: at ?? 0,
    model: textAt(data, "modelID") ?? "unknown",
    usage: opencodeUsage(data) ?? noUsage
  })
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

/** Keys whose values are names, times, bytes or repetitions of what stands elsewhere in the record. */
const notSearched = new Set(
  (
    "uuid parentUuid logicalParentUuid sessionId session_id session parentId promptId requestId messageId messageID leafUuid id call_id callId callID " +
    "tool_use_id toolCallId toolUseID parentToolUseID timestamp at time_created time_updated type role kind version userType gitBranch cwd model " +
    "signature thoughtSignature encrypted_content usage toolUseResult snapshot stop_reason entrypoint slug agentId handles tokens _tag spilled " +
    "textSignature thinkingSignature checkpoint projectHash mimeType media_type hookInfos resultDisplay turn_id"
  ).split(" ")
)

const isData = (text: string): boolean => text.length > 2_000 && /^[A-Za-z0-9+/=_-]{2000}/.test(text)

/** Keys below which a tool's own names begin. */
const free = new Set(["input", "args", "arguments", "response", "output"])

const collect = (value: unknown, texts: Array<string>, depth: number, isFree = false): void => {
  if (typeof value === "string") {
    if (value.length > 1 && !isData(value)) texts.push(value)
  } else if (Array.isArray(value)) {
    if (depth > 0) for (const item of value) collect(item, texts, depth - 1, isFree)
  } else if (isJson(value) && depth > 0) {
    for (const key of Object.keys(value)) {
      if (isFree || !notSearched.has(key)) collect(value[key], texts, depth - 1, isFree || free.has(key))
    }
  }
}

const maxTextDepth = 40

/** Returns the texts of a record that a search looks through: what was said, called and answered, in order. */
export const searchedTexts = (record: unknown): ReadonlyArray<string> => {
  const texts: Array<string> = []
  if (!isJson(record)) return texts
  // Reports of hooks and running commands repeat what the messages hold.
  if (record.type === "progress") {
    const { data } = record
    if (isJson(data) && isJson(data.message)) collect(data.message, texts, maxTextDepth)
    return texts
  }
  if (record.type === "file-history-snapshot") return texts
  collect(record, texts, maxTextDepth)
  return texts
}

/** Returns who said what a record holds, in the words of its agent: a role, a kind of record. */
export const speakerOf = (record: unknown): string => {
  if (!isJson(record)) return "record"
  const { data } = record
  const payload = isJson(data) && isJson(data.message) ? (data.message.message ?? data.message) : data
  const inner = [record.message, record.payload, record.entry, record.answer, payload, record].filter(isJson)
  for (const one of inner) {
    const content = isJson(one.content) ? one.content : one
    const role = textAt(content, "role")
    if (role !== undefined) {
      const [first] = Array.isArray(one.content) ? one.content : Array.isArray(content.parts) ? content.parts : []
      const isResult =
        isJson(first) && (first.type === "tool_result" || "functionResponse" in first || first.type === "toolResult")
      return isResult || role === "toolResult" ? "tool" : role === "assistant" ? "model" : role
    }
  }
  for (const one of inner) {
    const type = textAt(one, "type") ?? textAt(one, "_tag")
    if (type === undefined || type === "response_item") continue
    return type === "function_call_output" || type === "tool"
      ? "tool"
      : type === "function_call" || type === "gemini"
        ? "model"
        : type
  }
  return "record"
}
