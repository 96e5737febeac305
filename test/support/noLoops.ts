import { Effect } from "effect"
import type { LoopDetector } from "../../src/services/agent/LoopDetector.ts"

/** A detector that never reports a loop. */
export const noLoops: LoopDetector = {
  reset: Effect.void,
  call: () => Effect.undefined,
  result: () => Effect.void,
  content: () => Effect.undefined,
  again: Effect.void,
  turn: () => Effect.undefined
}
