import type { Content } from "../../src/domain/content/Content.ts"
import { curatedIndexes, type ValidityRule } from "../../src/domain/conversation/Curation.ts"

/** Returns the curated history. */
export const curate = (contents: ReadonlyArray<Content>, rule: ValidityRule = "older"): Array<Content> =>
  curatedIndexes(contents, rule).flatMap((index) => contents[index] ?? [])
