/**
 * Verifies a snapshot from a model, a hook or another program's summarizer. Secrets, words that the user never wrote and
 * exact facts that do not occur in the conversation are removed, and code adds what the snapshot omitted.
 */

import { Effect, Result } from "effect"
import type { AuditResult, Degraded, UnsupportedFacts, SummaryCall } from "../../../domain/compression/Compression.ts"
import { checkFacts } from "../../../domain/compression/FactCheck.ts"
import { composeSnapshot, fitToBudget } from "../../../domain/compression/handover/Extractive.ts"
import {
  isSnapshot,
  parseSnapshot,
  plainSnapshot,
  type Snapshot,
  attributeWords,
  unusableText
} from "../../../domain/compression/Snapshot.ts"
import { redacting, distinctiveSecrets } from "../../../domain/text/Redaction.ts"
import * as Work from "../../../domain/text/SlicedWork.ts"
import {
  auditOfOwnSummary,
  evidenceOf,
  extractiveSummary,
  type Summary,
  SummarizerError,
  type SummaryRequest
} from "./Summarizer.ts"

/** A snapshot that may enter the conversation, its author, and the result of its verification. */
export interface VerifiedSnapshot {
  /** The rendered snapshot; empty when nothing usable came back. */
  readonly text: string
  readonly audit: AuditResult
  readonly by: "model" | "extractive" | "hook"
  readonly degraded: Degraded | null
  readonly calls: ReadonlyArray<SummaryCall>
  readonly doubts: UnsupportedFacts
  /** The models that gave nothing usable. Absent: none. */
  readonly unusable?: ReadonlyArray<string> | undefined
}

const nothing: Pick<VerifiedSnapshot, "audit" | "doubts"> = {
  audit: { anchors: 0, inSnapshot: 0, inTail: 0, restored: 0 },
  doubts: { removed: [], unknown: [] }
}

/** Makes the result for a text that a model wrote in a form of its own, which is not checked against the conversation. */
export const unverified = (text: string, calls: ReadonlyArray<SummaryCall>): VerifiedSnapshot => ({
  ...nothing,
  text,
  by: "model",
  degraded: null,
  calls
})

/** Checks a snapshot against the conversation. */
const checked = Effect.fn("WrittenSnapshot.checked")(function* (
  snapshot: Snapshot,
  request: SummaryRequest
): Effect.fn.Return<Pick<VerifiedSnapshot, "text" | "audit" | "doubts">> {
  const evidence = yield* evidenceOf(request)
  // In an oversized answer, only the beginning of each section is checked.
  const bounded = fitToBudget(snapshot, request.budget * 4)
  const { doubts, snapshot: clean } = yield* Work.run(
    checkFacts(attributeWords(bounded, request.userWords), request.entries)
  )
  const { audit, text } = yield* Work.run(composeSnapshot(evidence, request, clean))
  return { text, audit, doubts }
})

function* safe(text: string, { secrets = [] }: SummaryRequest): Work.SlicedWork<string> {
  return (yield* redacting(text, distinctiveSecrets(secrets))).text
}

/** Maximum characters read from another author's snapshot. */
const maxSnapshotChars = 1_000_000

/** Verifies a summarizer's result. An unreadable result is a failure, or code writes the snapshot if the request allows it. */
export const verifySnapshot = Effect.fn("WrittenSnapshot.verifySnapshot")(function* (
  summary: Summary,
  request: SummaryRequest
): Effect.fn.Return<VerifiedSnapshot, SummarizerError> {
  const { calls = [], degraded = null, text } = summary
  const audit = auditOfOwnSummary(summary, request)
  if (audit !== undefined) return { ...nothing, text, audit, by: "extractive", degraded, calls }
  if (text.trim() === "") return { ...nothing, text: "", by: "model", degraded, calls }
  const clean = text.length > maxSnapshotChars ? "" : yield* Work.run(safe(text, request))
  const read = text.length > maxSnapshotChars ? `it has ${text.length} characters` : parseSnapshot(clean)
  const snapshot = read === "no snapshot" ? plainSnapshot(clean) : read
  if (typeof snapshot !== "string") {
    return { ...(yield* checked(snapshot, request)), by: "model", degraded, calls }
  }
  const problem = {
    reason: "InvalidOutputError",
    message: `the summarizer wrote ${unusableText(snapshot)}`
  }
  if (!request.fallback) return yield* new SummarizerError({ ...problem, cause: snapshot, calls })
  return yield* verifySnapshot(yield* extractiveSummary(request, { degraded: problem, calls }), request)
})

/** Verifies the snapshot that a hook supplied. */
export const snapshotFromHook = Effect.fn("WrittenSnapshot.snapshotFromHook")(function* (
  text: string,
  request: SummaryRequest
): Effect.fn.Return<Result.Result<VerifiedSnapshot, Degraded>> {
  const unusable = (text: string) => Result.fail<Degraded>({ reason: "InvalidOutputError", message: text })
  if (text.length > maxSnapshotChars)
    return unusable(`a hook's snapshot has ${text.length} characters, more than ${maxSnapshotChars}`)
  const snapshot = parseSnapshot(yield* Work.run(safe(text, request)))
  if (!isSnapshot(snapshot)) return unusable(`a hook gave a snapshot that cannot be used (${snapshot})`)
  return Result.succeed<VerifiedSnapshot>({
    ...(yield* checked(snapshot, request)),
    by: "hook",
    degraded: null,
    calls: []
  })
})
