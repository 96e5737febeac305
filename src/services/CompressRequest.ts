import type { Outcome, Policy } from "../domain/Compression.ts"
import type { Conversation } from "../domain/Conversation.ts"
import type { FailureMemory } from "../domain/FailureMemory.ts"
import type { Handle } from "../domain/Handle.ts"
import type { Pin } from "../domain/Session.ts"
import type { HandleIndex } from "./Intake.ts"

/** What a compression is asked for. */
export interface CompressRequest {
  readonly conversation: Conversation
  readonly policy: Policy
  /** A person asked for it: no threshold, no failure memory. */
  readonly forced: boolean
  readonly memory: FailureMemory
  /** What the person pinned, wherever it stands in the log. */
  readonly pins?: ReadonlyArray<Pin> | undefined
  /** Handles the session has given out. */
  readonly held: HandleIndex
  readonly cwd?: string | undefined
  /** The model the conversation is held with. */
  readonly family?: string | undefined
}

/** What a compression came to, and the handle under which all that it dropped can be recalled. */
export interface Ended {
  readonly outcome: Outcome
  readonly dropped: Handle | undefined
}
