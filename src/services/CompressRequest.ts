import type { Outcome, Policy, SummaryCall } from "../domain/Compression.ts"
import type { Conversation } from "../domain/Conversation.ts"
import type { HookOutcome } from "../domain/Hook.ts"
import { type FailureMemory, isTried, type Tried } from "../domain/FailureMemory.ts"
import type { Handle } from "../domain/Handle.ts"
import { redacting, type Secret, withoutValues } from "../domain/Redaction.ts"
import type { Pin } from "../domain/Session.ts"
import type { Work } from "../domain/Work.ts"
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
  /** What telemetry knows its calls of a model by; absent: `compress`. */
  readonly promptId?: string | undefined
  /** The model the conversation is held with. */
  readonly family?: string | undefined
  /**
   * What hooks said to PreCompress, where they were told of it already: a veto (`stopped`, `blocked`), and in `specific` a
   * `focus` where the person gave none and the `snapshot` to use. Absent: they are told. Strategy `gemini` does not heed it.
   */
  readonly advice?: HookOutcome | undefined
  /** What is to be sent would not fit otherwise (law 3): no hook can veto it. */
  readonly mustFit?: boolean | undefined
}

/** What a compression came to, and the handle under which all that it dropped can be recalled. */
export interface Ended {
  readonly outcome: Outcome
  readonly dropped: Handle | undefined
}

/** Whether a model was paid for this range before, in vain, and no person asks for it again (law 4). */
export const isPaidInVain = ({ forced, memory, mustFit = false, policy }: CompressRequest, range: Tried): boolean =>
  policy.summarizer === "model" && (!forced || mustFit) && isTried(memory, range)

/** The calls of a model, without secrets in what it answered: an outcome is kept and printed. */
export function* callsWithout(
  calls: ReadonlyArray<SummaryCall>,
  secrets: ReadonlyArray<Secret>
): Work<ReadonlyArray<SummaryCall>> {
  const clean: Array<SummaryCall> = []
  for (const call of calls) {
    const { text } = yield* redacting(call.answer)
    clean.push({ ...call, answer: yield* withoutValues(text, secrets) })
  }
  return clean
}
