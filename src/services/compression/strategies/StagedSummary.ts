/**
 * The model's summary in the strategy `gemini`. The model gets the unchanged messages if they fit its window,
 * otherwise the messages with shortened outputs. If those do not fit either, their parts are summarised separately
 * and the summaries are joined.
 */

import { Effect } from "effect"
import type { SummaryCall } from "../../../domain/compression/Compression.ts"
import { contextLength } from "../../../domain/compression/Compression.ts"
import { firstCall, secondCall } from "../../../domain/compression/strategies/gemini/Calls.ts"
import type { Answers } from "../../../domain/compression/strategies/gemini/Conclusion.ts"
import { anchorOf } from "../../../domain/compression/strategies/gemini/Decision.ts"
import type { SnapshotSource } from "../../../domain/compression/strategies/gemini/Prompts.ts"
import { halving, shortening } from "../../../domain/compression/strategies/gemini/Stages.ts"
import { type Content, text, user } from "../../../domain/content/Content.ts"
import * as Work from "../../../domain/text/SlicedWork.ts"
import { SummarizerError } from "../summary/Summarizer.ts"

/** The input of a staged summary. */
export interface StagedRequest {
  /** Asks the summarizing model once, and returns its answer. */
  readonly ask: (
    purpose: SummaryCall["purpose"],
    contents: ReadonlyArray<Content>
  ) => Effect.Effect<string, SummarizerError>
  /** Every call that was made. `ask` adds to it. */
  readonly calls: ReadonlyArray<SummaryCall>
  /** Removes what models must not see. */
  readonly clean: (contents: ReadonlyArray<Content>) => Effect.Effect<ReadonlyArray<Content>>
  /** The messages to summarise, clean: the first version that fits is used. */
  readonly versions: ReadonlyArray<ReadonlyArray<Content>>
}

/** Returns undefined for messages that do not fit the model's window. */
const ifItFits = <A>(effect: Effect.Effect<A, SummarizerError>) =>
  Effect.catchIf(
    effect,
    ({ reason }) => reason === contextLength,
    () => Effect.succeed(undefined)
  )

/** Asks for the summary and its check. Fails if the window is too small for the shortest part of the messages. */
export const stagedSummary = Effect.fn("StagedSummary.stagedSummary")(function* ({
  ask,
  calls,
  clean,
  versions
}: StagedRequest): Effect.fn.Return<Answers, SummarizerError> {
  const generated = (anchor: SnapshotSource, summarized: ReadonlyArray<Content>) =>
    ifItFits(ask("generate", firstCall({ anchor, summarized }, "").contents))

  const bothAnswers = Effect.fnUntraced(function* (anchor: SnapshotSource, summarized: ReadonlyArray<Content>) {
    const summary = yield* generated(anchor, summarized)
    if (summary === undefined) return undefined
    const check = yield* clean(secondCall({ summarized: [] }, "", summary).contents)
    // A check that does not fit is skipped, and the first answer is used.
    const verified = yield* ifItFits(ask("verify", [...summarized, ...check]))
    return { summary, verified: verified ?? "" }
  })

  const tooLong = Effect.suspend(() => {
    const message = "the window of the summarizing model is too small for any part of the conversation"
    return Effect.fail(new SummarizerError({ reason: contextLength, message, cause: message, calls: [...calls] }))
  })
  /** Returns the summaries of parts that fit, in order, for messages that do not fit as a whole. */
  const ofParts = Effect.fnUntraced(function* (
    contents: ReadonlyArray<Content>
  ): Effect.fn.Return<ReadonlyArray<string>, SummarizerError> {
    const halves = yield* Work.run(halving(contents))
    const smaller = halves === undefined ? yield* Work.run(shortening(contents)) : undefined
    if (halves === undefined && smaller === undefined) return yield* tooLong
    const summaries: Array<string> = []
    for (const part of halves ?? [smaller ?? []]) {
      const whole = yield* generated(anchorOf(part), part)
      summaries.push(...(whole === undefined ? yield* ofParts(part) : [whole]))
    }
    return summaries
  })

  for (const version of versions) {
    const answers = yield* bothAnswers(anchorOf(version), version)
    if (answers !== undefined) return answers
  }
  let rest = versions.at(-1) ?? []
  for (;;) {
    const summaries = yield* ofParts(rest)
    // Fails, because a part without a summary would be lost without notice.
    if (summaries.some((summary) => summary.trim() === "")) return { summary: "", verified: "" }
    const stages = yield* clean(summaries.map((summary) => user(text(summary))))
    const answers = yield* bothAnswers("stages", stages)
    if (answers !== undefined) return answers
    // If each summary fills the window, only their ends can be joined.
    const next = stages.length < rest.length ? stages : yield* Work.run(shortening(stages))
    if (next === undefined) return yield* tooLong
    rest = next
  }
})
