/** Telemetry records of a run: numbers and names, never the words of users, models or tools unless that is enabled. */

import { Schema } from "effect"
import type { ChatEvent } from "../chat/ChatEvent.ts"
import { summarizerRole } from "../compression/Compression.ts"
import type { HookEvent } from "../hooks/Hook.ts"
import type { Usage } from "../tokens/Tokens.ts"

/** One telemetry record. */
export const TelemetryRecord = Schema.Struct({
  name: Schema.String,
  /** Milliseconds since 1970. */
  at: Schema.Finite,
  /** The session's id; null if the session is not stored. */
  session: Schema.NullOr(Schema.String),
  attributes: Schema.Record(Schema.String, Schema.Unknown)
})
export type TelemetryRecord = typeof TelemetryRecord.Type

/** A record without its time and session. */
export type TelemetryEntry = Pick<TelemetryRecord, "name" | "attributes">

/** A safe name. A longer one, or one with other characters, may be text of a user. */
const namePattern = /^(?:(?:tunedM|m)odels\/)?[\w.:-]{1,64}$/

/** The name recorded in place of an unsafe one. */
const unknownName = "unknown"

/** The name of a tool, a model or a state, or `unknown` if it may be text of a user. */
export const safeName = (name: string): string => (namePattern.test(name) ? name : unknownName)

const entry = (name: string, attributes: TelemetryRecord["attributes"] = {}): TelemetryEntry => ({
  name,
  attributes
})

const usageAttributes = ({ answer, cached, prompt, thoughts }: Usage): TelemetryRecord["attributes"] => ({
  prompt_tokens: prompt,
  answer_tokens: answer,
  thought_tokens: thoughts,
  cached_tokens: cached
})

/**
 * The record of an event. Undefined: none. Compressions are recorded by `compressionEntry`. `prompts`: whether texts of users, models and tools may
 * be recorded. `tool`: the tool that ran for a call; if undefined, no such tool exists, and the name in the call is text of the model. Durations are
 * milliseconds.
 */
export const eventEntry = (event: ChatEvent, prompts: boolean, tool?: string): TelemetryEntry | undefined => {
  const nameOf = prompts ? (name: string) => name : safeName
  switch (event._tag) {
    case "ModelInfo":
      return entry("request", { model: nameOf(event.model), limit: event.limit })
    case "Finished":
      return entry("turn", {
        reason: nameOf(event.reason),
        tokens: event.tokens,
        limit: event.limit,
        ...(event.usage === null
          ? {}
          : {
              ...usageAttributes(event.usage)
            })
      })
    case "Retry":
      return entry("retry", { attempt: event.attempt, reason: event.reason, delay: event.delay })
    case "ToolCallResponse":
      return entry("tool_call", {
        tool: nameOf(tool ?? (prompts ? event.name : "")),
        status: event.status,
        duration: event.duration
      })
    case "SnapshotPreparation":
      return entry("snapshot_preparation", { state: event.state })
    case "ToolOutputMasked":
      return entry("tool_output_masked", {
        parts: event.parts,
        tokens_before: event.before,
        tokens_after: event.after
      })
    case "LoopDetected":
      return entry("loop_detected", { kind: event.kind, halted: event.halted })
    case "LimitReached":
      return entry("limit_reached", { limit: event.limit })
    case "HookStopped":
      return entry("hook_stopped", { refused: event.refused })
    case "ContextWindowWillOverflow":
      return entry("context_overflow", {
        estimated: event.estimated,
        remaining: event.remaining,
        limit: event.limit
      })
    case "InvalidStream":
      return entry("invalid_answer", { fault: event.fault })
    case "Error":
      return entry("error", { reason: event.reason })
    case "UserCancelled":
      return entry("cancelled")
    case "Content":
      return prompts ? entry("content", { text: event.text }) : undefined
    case "ToolCallRequest":
      return prompts ? entry("tool_request", { tool: event.call.name, args: event.call.args ?? {} }) : undefined
    default:
      return undefined
  }
}

/** Collects the names of existing tools: a tool that starts, or that needs approval, exists. Mutable. */
export class ToolNameTracker {
  private readonly names = new Set<string>()
  private readonly byCall = new Map<string, string>()

  /** The tool that an event is about. Undefined: none, or a name that is not known to be a tool. */
  of(event: ChatEvent): string | undefined {
    switch (event._tag) {
      case "ToolCallStarted":
      case "ToolCallConfirmation":
        this.names.add(event.name)
        this.byCall.set(event.id, event.name)
        return event.name
      case "ToolCallResponse": {
        const called = this.byCall.get(event.id)
        this.byCall.delete(event.id)
        return called ?? (this.names.has(event.name) ? event.name : undefined)
      }
      default:
        return undefined
    }
  }
}

/** The record of a compression with any outcome. Undefined if there was nothing to compress. */
export const compressionEntry = ({
  after,
  before,
  promptId,
  status,
  trigger
}: Extract<HookEvent, { _tag: "PostCompress" }>): TelemetryEntry | undefined =>
  status === "NOOP"
    ? undefined
    : entry("chat_compression", {
        tokens_before: before,
        tokens_after: after,
        status,
        trigger,
        ...(promptId === undefined ? {} : { prompt_id: safeName(promptId) })
      })

/** The records of the model calls of a compression, in order, each with its usage. */
export const summaryCallEntries = ({
  calls = []
}: Extract<HookEvent, { _tag: "PostCompress" }>): ReadonlyArray<TelemetryEntry> =>
  calls.map(({ model, promptId, purpose, usage }) =>
    entry("summary_call", {
      prompt_id: safeName(promptId),
      role: summarizerRole,
      purpose,
      model: safeName(model),
      ...(usage === null ? {} : usageAttributes(usage))
    })
  )

/** The record of a user's message. Used only if prompts may be recorded. */
export const promptEntry = (text: string): TelemetryEntry => entry("prompt", { text })

/** The latest records, oldest first, and their summary. */
export interface RecentActivity {
  readonly records: ReadonlyArray<TelemetryRecord>
  /** The number of held records by name. */
  readonly kinds: Readonly<Record<string, number>>
  /** Milliseconds since 1970; null: no records. */
  readonly range: { readonly from: number; readonly to: number } | null
}

/** Holds the latest records: the newest replaces the oldest. Mutable. */
export class ActivityBuffer {
  private readonly records: Array<TelemetryRecord> = []
  private readonly capacity: number

  constructor(capacity: number) {
    this.capacity = Math.max(1, Math.floor(capacity) || 1)
  }

  /** Adds a record. */
  push(record: TelemetryRecord): void {
    this.records.push(record)
    if (this.records.length > this.capacity) this.records.shift()
  }

  /** A copy of the records held now. */
  view(): RecentActivity {
    const records = [...this.records]
    const kinds: Record<string, number> = {}
    for (const { name } of records) kinds[name] = (kinds[name] ?? 0) + 1
    const from = records[0]?.at
    const to = records.at(-1)?.at
    return { records, kinds, range: from === undefined || to === undefined ? null : { from, to } }
  }
}
