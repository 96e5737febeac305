import { Schema } from "effect"
import type { ChatEvent } from "./ChatEvent.ts"
import { summarizerRole } from "./Compression.ts"
import type { HookEvent } from "./Hook.ts"
import type { Usage } from "./Tokens.ts"

/** What is told of a run to who watches over many: numbers and names, no words of anybody's (spec 12; seed 003, Telemetry). */

/** One thing that happened. */
export const TelemetryRecord = Schema.Struct({
  name: Schema.String,
  /** Milliseconds since 1970. */
  at: Schema.Finite,
  /** The session's id; null where nothing is kept. */
  session: Schema.NullOr(Schema.String),
  attributes: Schema.Record(Schema.String, Schema.Unknown)
})
export type TelemetryRecord = typeof TelemetryRecord.Type

/** A record without its time and place. */
export type Told = Pick<TelemetryRecord, "name" | "attributes">

/** A name as it is told: what is longer or has other letters may be somebody's words. */
const name = /^(?:(?:tunedM|m)odels\/)?[\w.:-]{1,64}$/

/** What stands where something has no name that may be told. */
export const unknownName = "unknown"

/** A name of a tool, of a model or of a state, where it is one. */
export const nameTold = (given: string): string => (name.test(given) ? given : unknownName)

const told = (name: string, attributes: TelemetryRecord["attributes"] = {}): Told => ({ name, attributes })

const usageTold = ({ answer, cached, prompt, thoughts }: Usage): TelemetryRecord["attributes"] => ({
  prompt_tokens: prompt,
  answer_tokens: answer,
  thought_tokens: thoughts,
  cached_tokens: cached
})

/**
 * What is told of an event; undefined: nothing. Compressions are told by `compressionTold`, which hears of all of them. `prompts`:
 * whether what people, models and tools said may be told too. `tool`: the tool that a call was answered by; undefined: nobody
 * knows of one, and the name that it was called by is the model's own word. Durations are milliseconds.
 */
export const eventTold = (event: ChatEvent, prompts: boolean, tool?: string): Told | undefined => {
  const named = prompts ? (given: string) => given : nameTold
  switch (event._tag) {
    case "ModelInfo":
      return told("request", { model: named(event.model), limit: event.limit })
    case "Finished":
      return told("turn", {
        reason: named(event.reason),
        tokens: event.tokens,
        limit: event.limit,
        ...(event.usage === null
          ? {}
          : {
              ...usageTold(event.usage)
            })
      })
    case "Retry":
      return told("retry", { attempt: event.attempt, reason: event.reason, delay: event.delay })
    case "ToolCallResponse":
      return told("tool_call", {
        tool: named(tool ?? (prompts ? event.name : "")),
        status: event.status,
        duration: event.duration
      })
    case "ToolOutputMasked":
      return told("tool_output_masked", {
        parts: event.parts,
        tokens_before: event.before,
        tokens_after: event.after
      })
    case "LoopDetected":
      return told("loop_detected", { kind: event.kind, halted: event.halted })
    case "LimitReached":
      return told("limit_reached", { limit: event.limit })
    case "HookStopped":
      return told("hook_stopped", { refused: event.refused })
    case "ContextWindowWillOverflow":
      return told("context_overflow", {
        estimated: event.estimated,
        remaining: event.remaining,
        limit: event.limit
      })
    case "InvalidStream":
      return told("invalid_answer", { fault: event.fault })
    case "Error":
      return told("error", { reason: event.reason })
    case "UserCancelled":
      return told("cancelled")
    case "Content":
      return prompts ? told("content", { text: event.text }) : undefined
    case "ToolCallRequest":
      return prompts ? told("tool_request", { tool: event.call.name, args: event.call.args ?? {} }) : undefined
    default:
      return undefined
  }
}

/** The tools that there are, as calls show them: one that starts, or that a person is asked about, is there. Mutable. */
export class ToolsSeen {
  private readonly names = new Set<string>()
  private readonly byCall = new Map<string, string>()

  /** The tool that an event is about; undefined: none, or a name that nothing here answers to as far as is known. */
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

/** What is told of a compression that ended, however it did (spec 3.1 step 15); one that had nothing to do is none. */
export const compressionTold = ({
  after,
  before,
  promptId,
  status,
  trigger
}: Extract<HookEvent, { _tag: "PostCompress" }>): Told | undefined =>
  status === "NOOP"
    ? undefined
    : told("chat_compression", {
        tokens_before: before,
        tokens_after: after,
        status,
        trigger,
        ...(promptId === undefined ? {} : { prompt_id: nameTold(promptId) })
      })

/** What is told of the calls of a model that a compression made, in their order; of each what it cost. */
export const summaryCallsTold = ({ calls = [] }: Extract<HookEvent, { _tag: "PostCompress" }>): ReadonlyArray<Told> =>
  calls.map(({ model, promptId, purpose, usage }) =>
    told("summary_call", {
      prompt_id: nameTold(promptId),
      role: summarizerRole,
      purpose,
      model: nameTold(model),
      ...(usage === null ? {} : usageTold(usage))
    })
  )

/** What a person's message is told as, where prompts may be told. */
export const promptTold = (text: string): Told => told("prompt", { text })

/** The last things that happened, oldest first, and what they come to (seed 002: activity monitor). */
export interface Activities {
  readonly records: ReadonlyArray<TelemetryRecord>
  /** By name, of those that are held. */
  readonly kinds: Readonly<Record<string, number>>
  /** Milliseconds since 1970; null: there are none. */
  readonly range: { readonly from: number; readonly to: number } | null
}

/** A buffer of so many records: the oldest gives way to the newest (seed 002: 100). Mutable. */
export class ActivityBuffer {
  private readonly held: Array<TelemetryRecord> = []
  /** Where the oldest stands once the buffer is full. */
  private first = 0
  private readonly most: number

  constructor(most: number) {
    this.most = Math.max(1, Math.floor(most))
  }

  /** Takes in one more; in constant time. */
  push(record: TelemetryRecord): void {
    if (this.held.length < this.most) {
      this.held.push(record)
      return
    }
    this.held[this.first] = record
    this.first = (this.first + 1) % this.most
  }

  /** What is held now; a value of its own. */
  view(): Activities {
    const records = [...this.held.slice(this.first), ...this.held.slice(0, this.first)]
    const kinds: Record<string, number> = {}
    for (const { name } of records) kinds[name] = (kinds[name] ?? 0) + 1
    const from = records[0]?.at
    const to = records.at(-1)?.at
    return { records, kinds, range: from === undefined || to === undefined ? null : { from, to } }
  }
}
