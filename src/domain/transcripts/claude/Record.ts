import type { Usage } from "../../tokens/Tokens.ts"
import { usageOf } from "../../wire/AnswerUsage.ts"
import { usage as anthropicUsage } from "../../wire/anthropic/Answer.ts"
import { isJson, type Json, kindAt, textAt, timeAt } from "../JsonRecord.ts"
import { withCost } from "../RecordUsage.ts"

/**
 * Decodes a record of Claude Code, but for the blocks of a message and what is attached. The conversation, the facts of a session and
 * what is new in a version are folds over it.
 */

/** What all records have, where it stands in them. */
interface Envelope {
  readonly uuid: string | undefined
  /** null at a root, undefined when the record does not contain it. */
  readonly parent: string | null | undefined
  readonly logicalParent: string | undefined
  /** Whether it belongs to a subagent. */
  readonly isSidechain: boolean
  /** The subagent. */
  readonly agent: string | undefined
  readonly at: number | undefined
  readonly session: string | undefined
  readonly folder: string | undefined
  readonly version: string | undefined
}

/** Whose message it is: said in the conversation, put there by a program, the summary of a compaction, or an error that is shown as one. */
export type MessageKind = "message" | "program" | "summary" | "api error"

interface Message {
  readonly _tag: "Message"
  readonly role: "user" | "model"
  readonly kind: MessageKind
  /** A text, or a list of blocks. */
  readonly content: unknown
  /** The id that all lines of one API message share. */
  readonly messageId: string | undefined
  readonly model: string | undefined
  readonly usage: Usage | undefined
  /** Whether it is an answer of a provider, with a usage. */
  readonly isCounted: boolean
  readonly request: string | undefined
}

/** Messages that a compaction kept, by their uuids. They keep their old parents, and what follows hangs on the last one. */
export interface KeptSegment {
  readonly head: string
  readonly tail: string
  /** What the first one follows: the summary, or the boundary when the summary stands after them. */
  readonly anchor: string | undefined
  readonly uuids: ReadonlyArray<string>
}

/** The content of a compact boundary. */
export interface Boundary {
  readonly trigger: "manual" | "auto"
  readonly tokens: number | undefined
  readonly kept: KeptSegment | undefined
}

type Body =
  | Message
  /** A message without a message. */
  | { readonly _tag: "Broken" }
  /** A message that was sent while the agent worked, stored with the next request. */
  | { readonly _tag: "Sent"; readonly prompt: unknown; readonly isProgram: boolean | undefined }
  /** What the model is shown, or told of its tools, beside a message. */
  | { readonly _tag: "Attached"; readonly kind: string; readonly attachment: Json }
  /** A message enters the queue, or leaves it. */
  | { readonly _tag: "Queued"; readonly operation: unknown; readonly content: unknown }
  | { readonly _tag: "Compacted"; readonly boundary: Boundary }
  | { readonly _tag: "Titled"; readonly title: string }
  /** An answer to a subagent, in the record of the call that started it. */
  | { readonly _tag: "Relayed"; readonly record: ClaudeRecord; readonly call: string | undefined }
  | { readonly _tag: "Other" }

/** A record of Claude Code. */
export type ClaudeRecord = Envelope & Body

/** The model of lines that no model wrote. */
export const synthetic = "<synthetic>"

/** Records that this program knows and does not read. */
export const ignoredKinds: ReadonlySet<string> = new Set(
  `agent-color agent-name agent-setting ai-title atis-latch attribution-snapshot bridge-session cost-state custom-title
  file-history-delta file-history-snapshot frame-link last-prompt marble-origami-commit marble-origami-snapshot mode permission-mode
  pr-link progress queue-operation saved_hook_context speculation-accept summary tag task-summary worktree-state content-replacement
  system: agents_killed system: api_error system: api_metrics system: away_summary system: bridge_status system: compact_boundary
  system: informational system: local_command system: memory_saved system: microcompact_boundary system: permission_retry
  system: scheduled_task_fire system: snapshot_baseline system: stop_hook_summary system: thinking system: turn_duration
  attachment: agent_listing_delta attachment: agent_mention attachment: already_read_file attachment: async_hook_response
  attachment: auto_mode attachment: auto_mode_exit attachment: budget_usd attachment: command_permissions
  attachment: compact_file_reference attachment: compaction_reminder attachment: context_efficiency attachment: date_change
  attachment: deferred_tools_delta attachment: dynamic_skill attachment: edited_image_file attachment: hook_cancelled
  attachment: hook_error_during_execution attachment: hook_non_blocking_error attachment: hook_permission_decision
  attachment: hook_success attachment: hook_system_message attachment: max_turns_reached attachment: mcp_instructions_delta
  attachment: opened_file_in_ide attachment: output_style attachment: output_token_usage attachment: pdf_reference
  attachment: plan_mode attachment: plan_mode_exit attachment: plan_mode_reentry attachment: prompt_snapshot
  attachment: read_truncation_notice attachment: skill_listing attachment: structured_output attachment: task_reminder
  attachment: task_status attachment: team_context attachment: todo_reminder attachment: token_usage attachment: ultrathink_effort
  attachment: verify_plan_reminder`
    .replace(/: /g, ":")
    .split(/\s+/)
    .map((kind) => kind.replace(":", ": "))
)

/** Returns the name of a record's kind. */
export const kindName = (record: Json): string => {
  const type = kindAt(record)
  const subtype = isJson(record.attachment) ? textAt(record.attachment, "type") : textAt(record, "subtype")
  return (type === "system" || type === "attachment") && subtype !== undefined ? `${type}: ${subtype}` : type
}

/** Whether a record says that no human wrote it; undefined when it does not say. */
const isProgram = ({ origin }: Json): boolean | undefined => {
  const kind = isJson(origin) ? textAt(origin, "kind") : undefined
  return kind === undefined ? undefined : kind !== "human" && kind !== "user"
}

const kindOf = (record: Json): MessageKind =>
  record.isApiErrorMessage === true
    ? "api error"
    : record.isCompactSummary === true
      ? "summary"
      : record.isMeta === true || isProgram(record) === true
        ? "program"
        : "message"

const messageOf = (record: Json, message: Json): Message => {
  const role = record.type === "assistant" ? "model" : "user"
  const kind = kindOf(record)
  const model = textAt(message, "model")
  const usage = isJson(message.usage) ? message.usage : undefined
  return {
    _tag: "Message",
    role,
    kind,
    content: message.content,
    messageId: role === "model" ? textAt(message, "id") : undefined,
    model,
    usage: withCost(usageOf(anthropicUsage, usage), record.costUSD),
    isCounted: role === "model" && usage !== undefined && model !== synthetic && kind !== "api error",
    request: textAt(record, "requestId")
  }
}

const keptSegment = (metadata: Json): KeptSegment | undefined => {
  const segment = isJson(metadata.preservedSegment) ? metadata.preservedSegment : {}
  const messages = isJson(metadata.preservedMessages) ? metadata.preservedMessages : {}
  const uuids = [messages.uuids, messages.allUuids]
    .flatMap((list): ReadonlyArray<unknown> => (Array.isArray(list) ? list : []))
    .filter((uuid) => typeof uuid === "string")
  const head = textAt(segment, "headUuid") ?? uuids[0]
  const tail = textAt(segment, "tailUuid") ?? uuids.at(-1)
  const anchor = textAt(segment, "anchorUuid") ?? textAt(messages, "anchorUuid")
  return head === undefined || tail === undefined ? undefined : { head, tail, anchor, uuids }
}

const boundaryOf = (metadata: Json): Boundary => ({
  trigger: metadata.trigger === "manual" ? "manual" : "auto",
  tokens: typeof metadata.preTokens === "number" ? metadata.preTokens : undefined,
  kept: keptSegment(metadata)
})

const attachmentOf = (attachment: Json): Body => {
  const kind = textAt(attachment, "type") ?? ""
  if (kind !== "queued_command") return { _tag: "Attached", kind, attachment }
  const { commandMode, prompt } = attachment
  const said = commandMode === undefined ? undefined : commandMode === "task-notification"
  return { _tag: "Sent", prompt, isProgram: isProgram(attachment) ?? said }
}

const other: Body = { _tag: "Other" }

const bodyOf = (record: Json): Body => {
  switch (record.type) {
    case "user":
    case "assistant":
      return isJson(record.message) ? messageOf(record, record.message) : { _tag: "Broken" }
    case "attachment":
      return isJson(record.attachment) ? attachmentOf(record.attachment) : other
    case "queue-operation":
      return { _tag: "Queued", operation: record.operation, content: record.content }
    case "summary":
    case "ai-title":
    case "custom-title": {
      const title = textAt(record, "customTitle") ?? textAt(record, "aiTitle") ?? textAt(record, "summary") ?? ""
      return { _tag: "Titled", title }
    }
    case "progress": {
      const relayed = isJson(record.data) ? record.data.message : undefined
      // Most of these records only tell that a hook or a command runs.
      if (!isJson(relayed) || relayed.type !== "assistant") return other
      return { _tag: "Relayed", record: decodeClaude(relayed), call: textAt(record, "parentToolUseID") }
    }
    case "system":
      if (record.subtype !== "compact_boundary") return other
      return {
        _tag: "Compacted",
        boundary: boundaryOf(isJson(record.compactMetadata) ? record.compactMetadata : {})
      }
    default:
      return other
  }
}
/** Decodes a record. The blocks of a message stay as they are: few folds read them. */
export const decodeClaude = (record: Json): ClaudeRecord => ({
  uuid: textAt(record, "uuid"),
  parent: record.parentUuid === null ? null : textAt(record, "parentUuid"),
  logicalParent: textAt(record, "logicalParentUuid"),
  isSidechain: record.isSidechain === true,
  agent: textAt(record, "agentId"),
  at: timeAt(record),
  session: textAt(record, "sessionId"),
  folder: textAt(record, "cwd"),
  version: textAt(record, "version"),
  ...bodyOf(record)
})
