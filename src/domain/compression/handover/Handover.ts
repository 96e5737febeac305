import type { Entry } from "../../conversation/Conversation.ts"
import type { SlicedWork } from "../../text/SlicedWork.ts"
import { gatherEvidence } from "../evidence/Evidence.ts"
import { composeSnapshot } from "./Extractive.ts"

/** Writes the handover of messages without a model. `kept`: texts that stand beside it and need no repetition. */
export function* handoverOf(
  messages: ReadonlyArray<Entry>,
  options: { readonly budget: number; readonly kept?: ReadonlyArray<string>; readonly cwd: string | undefined }
): SlicedWork<string> {
  const { budget, cwd, kept = [] } = options
  const evidence = yield* gatherEvidence(messages, { cwd })
  const { text } = yield* composeSnapshot(evidence, { budget, kept, cwd })
  return text
}
