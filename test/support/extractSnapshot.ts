import { type GatherOptions, gatherEvidence } from "../../src/domain/compression/evidence/Evidence.ts"
import type { ExtractOptions } from "../../src/domain/compression/handover/Budget.ts"
import { composeSnapshot, type ExtractedSnapshot } from "../../src/domain/compression/handover/Extractive.ts"
import type { Entry } from "../../src/domain/conversation/Conversation.ts"
import type { SlicedWork } from "../../src/domain/text/SlicedWork.ts"

/** Writes the snapshot of some entries by code. */
export function* extractSnapshot(
  entries: ReadonlyArray<Entry>,
  options: ExtractOptions & GatherOptions
): SlicedWork<ExtractedSnapshot> {
  return yield* composeSnapshot(yield* gatherEvidence(entries, options), options)
}
