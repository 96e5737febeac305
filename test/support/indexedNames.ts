import { isIndex } from "../../src/domain/compression/handover/NameIndex.ts"
import type { Snapshot } from "../../src/domain/compression/Snapshot.ts"

/** Returns the names in the list of a snapshot. */
export const indexedNames = ({ key_knowledge }: Snapshot): ReadonlyArray<string> =>
  key_knowledge.filter(isIndex).flatMap(({ text }) => text.split(/\s+/).slice(2))
