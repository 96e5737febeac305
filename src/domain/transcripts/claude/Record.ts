/**
 * Decodes a record of Claude Code, but for the blocks of a message and what is attached. The conversation, the facts of a session and
 * what is new in a version are folds over it.
 */

import { isJson, type Json, jsonAt, jsonsAt } from "../../text/JsonObject.ts"
import { usageOf } from "../../wire/AnswerUsage.ts"
import { usage as anthropicUsage } from "../../wire/anthropic/Answer.ts"
import { kindAt, kindsIn, textAt, timeAt, withCost } from "../JsonRecord.ts"
import { clearedResult } from "../Transcript.ts"
import { shownAttachments } from "./Attachments.ts"

/** The model of lines that no model wrote. */
export const synthetic = "<synthetic>"

/** Records that this program knows and does not read. */
export const ignoredKinds = kindsIn({
  "": `agent-color agent-name agent-setting ai-title atis-latch attribution-snapshot bridge-session cost-state custom-title
    file-history-delta file-history-snapshot frame-link marble-origami-commit marble-origami-reset marble-origami-snapshot mode
    permission-mode pr-link api-request api-request-blob api-request-resumed api-request-shape artifact-autoreact-ledger
    artifact-comment-monitor continued-in data-flow-incomplete data-flow-records derived-from dev-mods ended-by-model
    fork-context-ref history-suppression host-row hybrid-organization isolation-latch memory-mode observer-ref relocated
    repl-mode resume-head-vouch session-owner tools-used progress queue-operation saved_hook_context speculation-accept summary
    tag task-summary teleported-from worktree-state`,
  "system: ": `agents_killed api_error api_metrics away_summary bridge_status compact_boundary file_attachments_missing informational
    local_command memory_saved microcompact_boundary model_consent_fallback model_fallback model_refusal_fallback
    model_refusal_no_fallback permission_retry rewind_stand_in command_input file_snapshot scheduled_task_fire snapshot_baseline
    stop_hook_summary thinking turn_duration`,
  "attachment: ": `agent_listing_delta agent_mention already_read_file async_hook_response at_mention_reference coordinator_context
    deferred_tools_record dir_sync_notice inlined_image_paths peer_mention prompt_as_file skill_mention thread_state
    unknown_command_fallback withheld_memory workflow_keyword_request auto_mode auto_mode_exit budget_usd command_permissions
    compact_file_reference compaction_reminder context_efficiency date_change deferred_tools_delta dynamic_skill
    edited_image_file hook_cancelled hook_error_during_execution hook_non_blocking_error hook_permission_decision hook_success
    hook_system_message max_turns_reached mcp_instructions_delta opened_file_in_ide output_style output_token_usage
    pdf_reference plan_mode plan_mode_exit plan_mode_reentry prompt_snapshot read_truncation_notice skill_listing
    structured_output task_reminder task_status team_context todo_reminder token_usage ultrathink_effort advisor_stripped
    async_hook_response_batch batching_reminder batching_reminder_sent model environment date session_context
    remote_session_change credential_org elapsed_time_reminder goal_status hook_deferred_tool message_pdf_reads
    output_limit_note progress_reminder_sent project_doc_reads projects_thread_ask prompt_render_point secondary_reminder
    secondary_reminder_sent session_cron_carry silent_turn_reminder teammate_shutdown_batch thinking_drop thinking_stripped
    tool_host_result_lines tool_offer_record tool_results_cut total_tokens_reminder ultra_effort_enter ultra_effort_exit
    verify_plan_reminder whole_texts_withdrawn`
})

/** Returns the name of a record's kind. */
const kindName = (record: Json): string => {
  const type = kindAt(record)
  const subtype = isJson(record.attachment) ? textAt(record.attachment, "type") : textAt(record, "subtype")
  return (type === "system" || type === "attachment") && subtype !== undefined ? `${type}: ${subtype}` : type
}

/** Whether a record says that no human wrote it; undefined when it does not say. */
const isProgram = (record: Json): boolean | undefined => {
  const kind = textAt(jsonAt(record, "origin"), "kind")
  if (kind !== undefined) return kind !== "human" && kind !== "user"
  return record.promptSource === "system" ? true : undefined
}

/** Whose message it is: said in the conversation, put there by a program, the summary of a compaction, or an error that is shown as one. */
const messageKind = (record: Json) =>
  record.isApiErrorMessage === true
    ? "api error"
    : record.isCompactSummary === true
      ? "summary"
      : record.isMeta === true || isProgram(record) === true
        ? "program"
        : "message"
/** Whose message it is. */
export type MessageKind = ReturnType<typeof messageKind>

const messageOf = (record: Json) => {
  const { message } = record
  if (!isJson(message)) return { _tag: "Broken" } as const
  const role = record.type === "assistant" ? "model" : "user"
  const kind = messageKind(record)
  const model = textAt(message, "model")
  const usage = isJson(message.usage) ? message.usage : undefined
  return {
    _tag: "Message",
    role,
    kind,
    /** A text, or a list of blocks. */
    content: message.content,
    /** The id that all lines of one API message share. */
    messageId: role === "model" ? textAt(message, "id") : undefined,
    model,
    usage: withCost(usageOf(anthropicUsage, usage), record.costUSD),
    /** Whether it is an answer of a provider, with a usage. */
    isCounted: role === "model" && usage !== undefined && model !== synthetic && kind !== "api error",
    request: textAt(record, "requestId")
  } as const
}

/** Messages that a compaction kept, by their uuids. They keep their old parents, and what follows hangs on the last one. */
const keptSegment = (metadata: Json) => {
  const segment = jsonAt(metadata, "preservedSegment")
  const messages = jsonAt(metadata, "preservedMessages")
  const listed = [messages.allUuids, messages.uuids].flatMap((list): ReadonlyArray<unknown> =>
    Array.isArray(list) ? list : []
  )
  const uuids = [...new Set(listed.filter((uuid) => typeof uuid === "string"))]
  const head = textAt(segment, "headUuid") ?? uuids[0]
  const tail = textAt(segment, "tailUuid") ?? uuids.at(-1)
  // What the first one follows: the summary, or the boundary when the summary stands after them.
  const anchor = textAt(segment, "anchorUuid") ?? textAt(messages, "anchorUuid")
  return head === undefined || tail === undefined ? undefined : { head, tail, anchor, uuids }
}

/** The content of a compact boundary. */
const boundaryOf = (metadata: Json) =>
  ({
    trigger: metadata.trigger === "manual" ? "manual" : "auto",
    tokens: typeof metadata.preTokens === "number" ? metadata.preTokens : undefined,
    kept: keptSegment(metadata)
  }) as const
/** The content of a compact boundary. */
export type Boundary = ReturnType<typeof boundaryOf>

/** What the model is shown, or told of its tools, beside a message; any other record that has no reader. */
const attachedOrOther = ({ attachment, type }: Json) =>
  type === "attachment" && isJson(attachment)
    ? ({ _tag: "Attached", name: textAt(attachment, "type") ?? "", attachment } as const)
    : ({ _tag: "Other" } as const)

/** A message that was sent while the agent worked, stored with the next request. */
const sentBy = (record: Json) => {
  const { commandMode, prompt, ...rest } = jsonAt(record, "attachment")
  const said = commandMode === undefined ? undefined : commandMode === "task-notification"
  return { _tag: "Sent", prompt, isProgram: isProgram(rest) ?? said } as const
}

const titledBy = (record: Json) => {
  const title = textAt(record, "customTitle") ?? textAt(record, "aiTitle") ?? textAt(record, "summary") ?? ""
  return { _tag: "Titled", title } as const
}

/** An answer to a subagent, in the record of the call that started it. Most of these records only tell that a hook or a command runs. */
const relayedBy = (record: Json) => {
  const answer = jsonAt(record, "data").message
  return isJson(answer) && answer.type === "assistant"
    ? ({ _tag: "Relayed", answer, call: textAt(record, "parentToolUseID") } as const)
    : ({ _tag: "Other" } as const)
}

/** Where the session goes on. Explicit: the user went back there, which no message says before the next prompt (Claude Code since 2.1). */
const pinnedBy = (record: Json) =>
  ({ _tag: "Pinned", leaf: textAt(record, "leafUuid"), isExplicit: record.explicit === true }) as const

/** Texts that the model saw in place of results that were too large together. Their records hold the whole results. */
const replacedBy = (record: Json) =>
  ({
    _tag: "Replaced",
    shown: jsonsAt(record, "replacements").flatMap((one) => {
      const [call, text] = [textAt(one, "toolUseId"), textAt(one, "replacement")]
      return one.kind === "tool-result" && call !== undefined && text !== undefined ? [[call, text] as const] : []
    })
  }) as const

/** Results of which the model saw no more than this since (Claude Code 2.0 and 2.1). */
const clearedBy = (record: Json) => {
  const { compactedToolIds: ids } = jsonAt(record, "microcompactMetadata")
  const calls: ReadonlyArray<unknown> = Array.isArray(ids) ? ids : []
  const shown = calls.flatMap((call) => (typeof call === "string" ? [[call, clearedResult] as const] : []))
  return { _tag: "Replaced", shown } as const
}

/** How each kind of record is read. */
const readers = {
  user: messageOf,
  assistant: messageOf,
  /** A message enters the queue, or leaves it. */
  "queue-operation": ({ content, operation }: Json) => ({ _tag: "Queued", operation, content }) as const,
  summary: titledBy,
  "ai-title": titledBy,
  "custom-title": titledBy,
  progress: relayedBy,
  "last-prompt": pinnedBy,
  "content-replacement": replacedBy,
  "system: microcompact_boundary": clearedBy,
  "system: compact_boundary": (record: Json) =>
    ({ _tag: "Compacted", boundary: boundaryOf(jsonAt(record, "compactMetadata")) }) as const,
  "attachment: queued_command": sentBy
}

type Body = ReturnType<(typeof readers)[keyof typeof readers] | typeof attachedOrOther>
const readerOf = new Map<string, (record: Json) => Body>(Object.entries(readers))

/** The kinds of records that are read. */
export const readKinds: ReadonlyArray<string> = [
  ...readerOf.keys(),
  ...shownAttachments.map((kind) => `attachment: ${kind}`)
]

/** Decodes a record. The blocks of a message stay as they are: few folds read them. */
export const decodeClaude = (record: Json) => {
  const kind = kindName(record)
  return {
    ...(readerOf.get(kind) ?? attachedOrOther)(record),
    recordKind: kind,
    uuid: textAt(record, "uuid"),
    /** The uuid that the records after it name, where the message was stored anew under another one (seen in Claude Code 2.1.332). */
    sentAs: textAt(record, "sentAsUuid"),
    /** null at a root, undefined when the record does not contain it. */
    parent: record.parentUuid === null ? null : textAt(record, "parentUuid"),
    logicalParent: textAt(record, "logicalParentUuid"),
    /** Whether it belongs to a subagent. */
    isSidechain: record.isSidechain === true,
    /** The subagent. */
    agent: textAt(record, "agentId"),
    at: timeAt(record),
    /** Whether it names the record of another session of which it is a copy. */
    isForked: isJson(record.forkedFrom),
    session: textAt(record, "sessionId"),
    folder: textAt(record, "cwd"),
    version: textAt(record, "version")
  }
}

/** A record of Claude Code. */
export type ClaudeRecord = ReturnType<typeof decodeClaude>

/** What is known of a file so far. It is plain data, so that a scan can continue when the file has grown. */
export interface CopiesState {
  /** When a file began whose first record queues a prompt. */
  began?: string
}

/**
 * Reads the next record, and tells whether it is a copy. `/branch` names the origin of each; `--fork-session` does not, and repeats them
 * after the prompt of the fork, which is later (Claude Code 2.1).
 */
export const isCopied = (state: CopiesState, { _tag, at, isForked }: ClaudeRecord): boolean => {
  if (at !== undefined) state.began ??= _tag === "Queued" ? String(at) : ""
  return isForked || (at !== undefined && at < Number(state.began))
}
