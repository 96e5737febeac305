/**
 * Decodes a record of a Codex CLI rollout: `{timestamp, type, payload}`. Files of 2025 hold the session's record and the response
 * items without this wrapper, one a line. The conversation and the facts of a session are folds over these records.
 */

import { isJson, type Json, jsonAt } from "../../text/JsonObject.ts"
import type { Usage } from "../../tokens/Tokens.ts"
import { natural, kindAt, kindsIn, textAt, timeAt } from "../JsonRecord.ts"
import { broken } from "../Problem.ts"

/** Records that this program knows and does not read. */
export const ignoredKinds = kindsIn({
  "": `turn_context session_meta world_state inter_agent_communication_metadata dynamic_tools_updated realtime_item`,
  "response_item: ": `reasoning-without-text compaction compaction_summary context_compaction compaction_trigger additional_tools ghost_snapshot
    other configuration_update`,
  "event_msg: ": `agent_message agent_message_content_delta agent_reasoning agent_reasoning_raw_content agent_reasoning_section_break
    apply_patch_approval_request background_event collab_agent_interaction_begin collab_agent_interaction_end
    collab_agent_spawn_begin collab_agent_spawn_end collab_close_begin collab_close_end collab_resume_begin collab_resume_end
    collab_waiting_begin collab_waiting_end context_compacted deprecation_notice dynamic_tool_call_request
    dynamic_tool_call_response elicitation_request entered_review_mode error exec_approval_request exec_command_begin
    exec_command_end exec_command_output_delta exited_review_mode guardian_assessment hook_completed hook_started
    image_generation_begin image_generation_end item_completed item_started mcp_startup_complete mcp_startup_update
    mcp_tool_call_begin mcp_tool_call_end model_reroute patch_apply_begin patch_apply_end patch_apply_updated plan_delta
    plan_update raw_response_item request_permissions request_user_input session_configured shutdown_complete stream_error
    sub_agent_activity task_complete task_started terminal_interaction thread_goal_updated thread_name_updated
    thread_settings_applied token_count turn_aborted turn_complete turn_diff turn_started undo_completed undo_started
    user_message view_image_tool_call warning web_search_begin web_search_end auth_recovery_completed auth_recovery_started
    elicitation_abandoned environment_connected environment_disconnected model_verification raw_response_completed
    realtime_conversation_closed realtime_conversation_list_voices_response realtime_conversation_realtime
    realtime_conversation_sdp realtime_conversation_started reasoning_content_delta reasoning_raw_content_delta
    thread_queue_changed turn_moderation_metadata`
})

const other = (kind: string) => ({ _tag: "Other", kind }) as const

const folderAt = (record: Json): string | undefined => {
  const path = textAt(record, "cwd")
  return path === "" ? undefined : path
}

/** Returns the folder that the environment names in a text: files of 2025 have it nowhere else. */
export const folderIn = (text: string): string | undefined => {
  const [, element, line] = /<cwd>([^<\n]+)<\/cwd>|^Current working directory: (.+)$/m.exec(text) ?? []
  return element ?? line
}

/** The records before a file's own: the first `bytes` bytes of the file whose name ends with `rollout`, and what that file goes on from. */
export interface HistoryBase {
  readonly rollout: string
  readonly bytes: number
}

/** Reads where a fork or a session that went back goes on. It repeats no record of that file (Codex since 0.149). */
const baseOf = (base: Json): HistoryBase | undefined => {
  const rollout = textAt(base, "thread_id")
  const bytes = natural(base.end_byte_offset)
  return rollout === undefined || bytes === undefined ? undefined : { rollout, bytes }
}

const sessionOf = (meta: Json, name = "payload.") => {
  if (typeof meta.id !== "string") return broken(`${name}id`, "expected a text, the id of the session")
  const spawn = jsonAt(jsonAt(jsonAt(meta, "source"), "subagent"), "thread_spawn")
  return {
    _tag: "Session",
    id: meta.id,
    folder: folderAt(meta),
    version: textAt(meta, "cli_version"),
    /** The session whose agent started this one. */
    parent: textAt(spawn, "parent_thread_id"),
    /** The session whose records this file repeats before its own. */
    forkedFrom: textAt(meta, "forked_from_id"),
    base: baseOf(jsonAt(meta, "history_base")),
    instructions: meta.base_instructions ?? meta.instructions
  } as const
}

/** The usage of a request; undefined when there was none. */
const usageOf = (counts: Json): Usage | undefined => {
  const prompt = natural(counts.input_tokens)
  const output = natural(counts.output_tokens)
  if (prompt === undefined || output === undefined || prompt + output === 0) return undefined
  const thoughts = Math.min(output, natural(counts.reasoning_output_tokens) ?? 0)
  const cacheWrite = natural(counts.cache_write_input_tokens)
  return {
    prompt,
    answer: output - thoughts,
    thoughts,
    cached: natural(counts.cached_input_tokens) ?? 0,
    ...(cacheWrite === undefined ? {} : { cacheWrite })
  }
}

/** The user took back their last turns. */
const rolledBackBy = ({ num_turns: count }: Json) => {
  const turns = natural(count)
  return turns === undefined
    ? broken("payload.num_turns", "expected a number of turns in a thread_rolled_back event")
    : ({ _tag: "RolledBack", turns } as const)
}

const countedBy = ({ info }: Json) => {
  const counts = isJson(info) ? info.last_token_usage : undefined
  if (!isJson(info) || !isJson(counts)) return other("event_msg: token_count")
  const usage = usageOf(counts)
  return {
    _tag: "Counted",
    usage,
    /** The tokens in the window after the request. */
    tokens: natural(counts.total_tokens) ?? (usage === undefined ? undefined : usage.prompt + usage.answer),
    /** The session's totals as JSON text. Codex repeats them to report rate limits. */
    totals: JSON.stringify(info.total_token_usage ?? counts)
  } as const
}

/** The usage of one response, also of a summary. Codex since 0.149 writes it before the counts of the event. */
const usedBy = ({ response_id: response, thread_token_usage: totals, turn_id: turn, usage }: Json) =>
  ({
    _tag: "Used",
    /** A local server can give every response the same id. */
    id: JSON.stringify([response, turn, totals]),
    usage: isJson(usage) ? usageOf(usage) : undefined
  }) as const

const eventOf = (payload: Json) => {
  const kind = kindAt(payload)
  return kind === "thread_rolled_back"
    ? rolledBackBy(payload)
    : kind === "token_count"
      ? countedBy(payload)
      : other(`event_msg: ${kind}`)
}

/** A message that one agent sent to another, as the item that the model was shown. */
export const agentMessage = ({ author, content, encrypted_content: encrypted, id, recipient }: Json): Json => ({
  type: "agent_message",
  ...(id === undefined ? {} : { id }),
  author,
  recipient,
  content: [
    encrypted === undefined || encrypted === null
      ? { type: "input_text", text: content }
      : { type: "encrypted_content", encrypted_content: encrypted }
  ]
})

/** A response item, with the path to it in the record. */
const itemIn = (item: Json, root: ReadonlyArray<string> = ["payload"]) => ({ _tag: "Item", item, root }) as const

/** Returns who wrote a message, where Codex records it for each block (since 0.149); undefined for blocks of several. */
export const recordedSpeaker = (item: Json): "user" | "program" | undefined => {
  const { content_item_metadata: blocks } = jsonAt(item, "internal_chat_message_metadata_passthrough")
  if (!Array.isArray(blocks) || blocks.length === 0) return undefined
  const speakers = new Set(
    blocks.map((block: unknown) => {
      const provenance = isJson(block) ? block.provenance : undefined
      return isJson(provenance) && typeof provenance.type === "string" ? provenance.type === "user" : undefined
    })
  )
  const [isUser] = speakers
  return speakers.size > 1 || isUser === undefined ? undefined : isUser ? "user" : "program"
}

/** What a turn was started with. */
const turnOf = (payload: Json) =>
  ({
    _tag: "Turn",
    turn: textAt(payload, "turn_id"),
    folder: folderAt(payload),
    model: textAt(payload, "model"),
    effort: payload.effort,
    policies: [payload.approval_policy, payload.sandbox_policy]
  }) as const

/** How the payload of each kind of record is read. */
const readers = {
  session_meta: (payload: Json) => sessionOf(payload),
  turn_context: turnOf,
  response_item: (payload: Json) => itemIn(payload),
  event_msg: eventOf,
  token_usage_record: usedBy,
  compacted: (payload: Json) => ({ _tag: "Compacted", payload }) as const,
  inter_agent_communication: (payload: Json) => itemIn(agentMessage(payload))
}

type Body = ReturnType<(typeof readers)[keyof typeof readers]>
const readerOf = new Map<string, (payload: Json) => Body>(Object.entries(readers))

/** The kinds of records that are read, besides response items. */
export const readKinds: ReadonlyArray<string> = [
  ...[...readerOf.keys()].filter((kind) => kind !== "response_item" && kind !== "event_msg"),
  "event_msg: token_count",
  "event_msg: thread_rolled_back"
]

const bodyOf = (record: Json): Body => {
  const { payload, type } = record
  if (typeof record.record_type === "string") return other(`record_type: ${record.record_type}`)
  if (typeof type !== "string") {
    const isSession = type === undefined && typeof record.id === "string"
    return isSession ? sessionOf(record, "") : broken("type", "expected a text, the kind of the record")
  }
  const read = readerOf.get(type)
  if (read === undefined) return "payload" in record ? other(type) : itemIn(record, [])
  return isJson(payload) ? read(payload) : broken("payload", `expected an object in a ${type} record`)
}

/** Decodes a record. Response items stay as they are: few folds read them. */
export const decodeCodex = (record: Json) => ({ at: timeAt(record), ...bodyOf(record) })

/** A record of Codex. */
export type CodexRecord = ReturnType<typeof decodeCodex>

// --- copies in a fork: before 0.149, it repeats the records of the session that it comes from ---------------------------

/** What is known of a file so far. It is plain data, so that a scan can continue when the file has grown. */
export interface CopiesState {
  /** The session of the file, and the one whose records are read: it, or one that the file repeats. */
  session?: string
  family?: string
  /** When the file began, and the latest time in it. */
  began?: string
  latest?: string
  copies?: string
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

const isFirstOwn = (state: CopiesState, record: CodexRecord): boolean => {
  const { at } = record
  if (state.copies === "ended" || at === undefined) return false
  if (state.began === undefined) {
    if (record._tag !== "Session") return false
    // The file can be younger than the first turn.
    state.began = String(Math.min(at, timeIn(record.id) ?? at))
    state.latest = String(at)
    return false
  }
  const turn = record._tag === "Turn" ? timeIn(record.turn) : undefined
  const isOwnSession = record._tag === "Session" && record.id === state.session
  const pause = state.family === state.session ? pauseMillis.unnamed : pauseMillis.named
  const hasPaused = state.copies === undefined && at - Number(state.latest) >= pause
  if (turn !== undefined) state.copies = turn < Number(state.began) ? "of turns" : "ended"
  else if (isOwnSession || hasPaused) state.copies = "ended"
  state.latest = String(Math.max(Number(state.latest), at))
  return state.copies === "ended"
}

/**
 * Reads the next record, and tells whether those before it are copies that it ends. Copies have the time of the fork or their own, which is
 * earlier, and their turns began before it. The first own record is the session's, once more, a turn of its own, or comes after a pause.
 * Of a file without copies, only what stands before its first turn is taken for one.
 */
export const endsCopies = (state: CopiesState, record: CodexRecord): boolean => {
  const isEnd = isFirstOwn(state, record)
  if (record._tag === "Session") {
    // A fork repeats the records of the session that it comes from, and those of that session's own origin.
    if (state.session !== record.id) state.family = record.forkedFrom ?? record.id
    state.session ??= record.id
  }
  return isEnd
}
