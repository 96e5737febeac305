import { Schema } from "effect"
import type { Outcome } from "../../../domain/compression/Compression.ts"
import type { Policy } from "../../../domain/compression/strategies/Policy.ts"
import type { Handle } from "../../../domain/content/Handle.ts"
import type { Conversation, Pin } from "../../../domain/conversation/Conversation.ts"
import type { FailureMemory } from "../../../domain/conversation/FailureMemory.ts"
import type { HookOutcome } from "../../../domain/hooks/Hook.ts"
import type { HandleIndex } from "../../session/EntryBuilder.ts"

/** The input of a compression. */
export interface CompressRequest {
  readonly conversation: Conversation
  readonly policy: Policy
  /** Compress regardless of the threshold and of earlier failures. */
  readonly forced: boolean
  readonly memory: FailureMemory
  /** The user's pins, wherever they are in the log. */
  readonly pins?: ReadonlyArray<Pin> | undefined
  /** The handles that the session has assigned. */
  readonly held: HandleIndex
  /** The handles of the ranges that left before, newest first, for a caller that keeps no session: the snapshot names them. */
  readonly earlierRanges?: ReadonlyArray<Handle> | undefined
  readonly cwd?: string | undefined
  /** The id of its model calls in telemetry. Absent: `compress`. */
  readonly promptId?: string | undefined
  /** The model of the conversation. */
  readonly family?: string | undefined
  /**
   * The hooks' decision on PreCompress, when it was fired before: a veto (`stopped`, `blocked`), and in `specific` a `focus`
   * for a policy that has none and the `snapshot` to use. Absent: the workflow fires it. See `Strategy.heedsHooks`.
   */
  readonly hookDecision?: HookOutcome | undefined
  /** The next request would not fit otherwise, so no hook can veto the compression. */
  readonly mustFit?: boolean | undefined
}

/** The outcome of a compression. */
export interface CompressionResult {
  readonly outcome: Outcome
  /** The handle that recalls everything it dropped. Absent: nothing. */
  readonly dropped?: Handle | undefined
  /** The summarizing models that gave nothing usable. Absent: none. */
  readonly unusable?: ReadonlyArray<string> | undefined
}

/** The plan was made for another state of the conversation or with other settings. A new plan is needed. */
export class PlanRefused extends Schema.TaggedError<PlanRefused>()("PlanRefused", {
  planned: Schema.Natural,
  current: Schema.Natural
}) {
  override get message() {
    return this.planned === this.current
      ? "the plan was made with other settings; make a new plan, or use the same settings"
      : `the plan was made for version ${this.planned} of the conversation, which is at version ${this.current}; make a new plan`
  }
}
