import { Effect } from "effect"
import { doubted } from "../domain/Doubt.ts"
import { gather } from "../domain/Evidence.ts"
import { completed, fit } from "../domain/Extractive.ts"
import { isSnapshot, parse, type Snapshot, trusted } from "../domain/Snapshot.ts"
import * as Work from "../domain/Work.ts"
import type { Summary, SummaryRequest } from "./Summarizer.ts"

/**
 * A snapshot that somebody else wrote, a model or a hook, as far as it can be believed: stripped of words the user never wrote
 * and of exact facts nobody said, and completed by code with what it left out.
 */
export const believed = Effect.fn("WrittenSnapshot.believed")(function* (
  snapshot: Snapshot,
  request: SummaryRequest
): Effect.fn.Return<Pick<Summary, "text" | "audit" | "doubts" | "degraded">> {
  const evidence = yield* Work.run(gather(request.entries, request.said))
  // Of an answer without measure only the beginning of each section is looked at.
  const bounded = fit(snapshot, request.budget * 4)
  const { doubts, snapshot: clean } = yield* Work.run(doubted(trusted(bounded, request.said), request.entries))
  const { audit, text } = yield* Work.run(completed(clean, evidence, request))
  return { text, audit, doubts, degraded: null }
})

/** Characters of a snapshot that a hook may give. */
const longest = 1_000_000

/** The summary that a hook gave in a model's place, or why it is none. */
export const given = Effect.fn("WrittenSnapshot.given")(function* (
  text: string,
  request: SummaryRequest
): Effect.fn.Return<Summary | string> {
  if (text.length > longest) return `a hook's snapshot has ${text.length} characters, more than ${longest}`
  const snapshot = parse(text)
  if (!isSnapshot(snapshot)) return `a hook gave a snapshot that cannot be used (${snapshot})`
  return { ...(yield* believed(snapshot, request)), by: "hook", calls: [] }
})
