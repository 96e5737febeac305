import { Effect } from "effect"
import type { Degraded, Doubts, SummaryCall } from "../domain/Compression.ts"
import { doubted } from "../domain/Doubt.ts"
import { gather } from "../domain/Evidence.ts"
import { type Audit, completed, fit } from "../domain/Extractive.ts"
import { redacting, tellingOf, withoutValues } from "../domain/Redaction.ts"
import { isSnapshot, parse, plainSnapshot, type Snapshot, trusted } from "../domain/Snapshot.ts"
import * as Work from "../domain/Work.ts"
import { auditByCode, extractive, type Summary, SummarizerError, type SummaryRequest } from "./Summarizer.ts"

/**
 * A snapshot that somebody else wrote (a model, a hook, a summarizer of another program), as far as it can be believed:
 * stripped of secrets, of words the user never wrote and of exact facts nobody said, and completed by code with what it
 * left out.
 */

/** A snapshot that may enter the conversation, who wrote it, and what is known about it. */
export interface Verified {
  /** The rendered snapshot; empty when nothing usable came back. */
  readonly text: string
  readonly audit: Audit
  readonly by: "model" | "extractive" | "hook"
  readonly degraded: Degraded | null
  readonly calls: ReadonlyArray<SummaryCall>
  readonly doubts: Doubts
}

const nothing: Pick<Verified, "audit" | "doubts"> = {
  audit: { anchors: 0, inSnapshot: 0, inTail: 0, restored: 0 },
  doubts: { removed: [], unknown: [] }
}

/** What of a snapshot stands up to the conversation. */
const checked = Effect.fn("WrittenSnapshot.checked")(function* (
  snapshot: Snapshot,
  request: SummaryRequest
): Effect.fn.Return<Pick<Verified, "text" | "audit" | "doubts">> {
  const evidence = yield* Work.run(gather(request.entries, request.said, request.secrets))
  // Of an answer without measure only the beginning of each section is looked at.
  const bounded = fit(snapshot, request.budget * 4)
  const { doubts, snapshot: clean } = yield* Work.run(doubted(trusted(bounded, request.said), request.entries))
  const { audit, text } = yield* Work.run(completed(clean, evidence, request))
  return { text, audit, doubts }
})

function* safe(text: string, { secrets = [] }: SummaryRequest): Work.Work<string> {
  return yield* withoutValues((yield* redacting(text)).text, tellingOf(secrets))
}

/** Characters that are read of what somebody else wrote. */
const maxLength = 1_000_000

/** What a summarizer gave, verified. What cannot be read is a failure, or code writes in its place where it may. */
export const verified = Effect.fn("WrittenSnapshot.verified")(function* (
  summary: Summary,
  request: SummaryRequest
): Effect.fn.Return<Verified, SummarizerError> {
  const { calls = [], degraded = null, text } = summary
  const audit = auditByCode(summary, request)
  if (audit !== undefined) return { ...nothing, text, audit, by: "extractive", degraded, calls }
  if (text.trim() === "") return { ...nothing, text: "", by: "model", degraded, calls }
  const clean = text.length > maxLength ? "" : yield* Work.run(safe(text, request))
  const read = text.length > maxLength ? `it has ${text.length} characters` : parse(clean)
  const snapshot = read === "no snapshot" ? plainSnapshot(clean) : read
  if (typeof snapshot !== "string") {
    return { ...(yield* checked(snapshot, request)), by: "model", degraded, calls }
  }
  const problem = {
    reason: "InvalidOutputError",
    message: `the summarizer returned no usable snapshot (${snapshot})`
  }
  if (!request.fallback) return yield* new SummarizerError({ ...problem, cause: snapshot, calls })
  return yield* verified(yield* extractive(request, { degraded: problem, calls }), request)
})

/** The summary that a hook gave in a model's place, or why it is none. */
export const given = Effect.fn("WrittenSnapshot.given")(function* (
  text: string,
  request: SummaryRequest
): Effect.fn.Return<Verified | string> {
  if (text.length > maxLength) return `a hook's snapshot has ${text.length} characters, more than ${maxLength}`
  const snapshot = parse(yield* Work.run(safe(text, request)))
  if (!isSnapshot(snapshot)) return `a hook gave a snapshot that cannot be used (${snapshot})`
  return { ...(yield* checked(snapshot, request)), by: "hook", degraded: null, calls: [] }
})
