/** The runner of the strategy `openclaw`: summaries in stages, an audit, and facts that code adds below them. */

import { Effect } from "effect"
import { fileLists, withoutFileLists } from "../../../domain/compression/FileLists.ts"
import { serialized } from "../../../domain/compression/SerializedConversation.ts"
import { asModelWrote } from "../../../domain/compression/Snapshot.ts"
import {
  audit,
  completed,
  identifierMessages,
  identifiersOf,
  shortfallText
} from "../../../domain/compression/strategies/openclaw/Audit.ts"
import {
  type LargeImage,
  largeImageNote,
  largeImages
} from "../../../domain/compression/strategies/openclaw/LargeImages.ts"
import {
  auditRetries,
  historyShare,
  openclaw as strategy,
  openclawPlan,
  openRequestChars,
  requestMillis,
  safetyMargin,
  serialization
} from "../../../domain/compression/strategies/openclaw/OpenClaw.ts"
import {
  chunkPrompt,
  mergePrompt,
  message,
  partsText,
  prefixPrompt,
  system
} from "../../../domain/compression/strategies/openclaw/Prompts.ts"
import { cacheMillis, pruning } from "../../../domain/compression/strategies/openclaw/Prune.ts"
import {
  beyondShare,
  chunksOf,
  chunkTokens,
  type Group,
  groupsOf,
  halves,
  isOversized,
  needsStages,
  oversizedNote
} from "../../../domain/compression/strategies/openclaw/Stages.ts"
import {
  boundedFileLists,
  newestTurns,
  recentTurnsText,
  toolFailuresText,
  withSuffixes
} from "../../../domain/compression/strategies/openclaw/Suffix.ts"
import { cutIn, movable } from "../../../domain/compression/SummaryPlan.ts"
import { plainText, text, user } from "../../../domain/content/Content.ts"
import { type Entry, isFromUser } from "../../../domain/conversation/Conversation.ts"
import { firstUnits } from "../../../domain/text/Bytes.ts"
import * as Work from "../../../domain/text/SlicedWork.ts"
import { askInOrder, chainOf, type ModelChain } from "../summary/ModelChain.ts"
import { type AskRequest, type Summarizer, SummarizerError, type SummaryRequest } from "../summary/Summarizer.ts"
import { unverified } from "../summary/WrittenSnapshot.ts"
import type { CompressRequest } from "./CompressRequest.ts"
import { ImageReducer, type Reducer } from "./ImageReducer.ts"
import type { AssembleRequest, ShownPart, StrategyRunner, StrategySession } from "./StrategyRunner.ts"
import { askOf, previousSummary, summaryRunner } from "./SummaryRunner.ts"

/** The state that the functions of one compaction share. */
interface Writing {
  readonly request: CompressRequest
  readonly summaryRequest: SummaryRequest
  readonly window: number
  readonly chain: ModelChain
}

type Asked<A> = Effect.Effect<A, SummarizerError, Summarizer>

const noAnswer = new SummarizerError({
  reason: "TimeoutError",
  message: `the summarizing model did not answer within ${requestMillis / 1_000} s`,
  cause: "timeout",
  calls: []
})

/** Asks for one record. Each request has its own time limit. */
const ask = (
  { chain, summaryRequest: { family, promptId } }: Writing,
  purpose: AskRequest["purpose"],
  body: string
): Asked<string> =>
  Effect.gen(function* () {
    const askModel = yield* askOf
    const contents = [user(text(body))]
    const maxOutputTokens = openclawPlan.maxSummaryTokens
    const answer = yield* askInOrder(
      chain,
      (request) =>
        Effect.timeoutOrElse(askModel(request), { duration: requestMillis, orElse: () => Effect.fail(noAnswer) }),
      { purpose, family, promptId, system, contents, maxOutputTokens }
    )
    return answer.trim()
  })

const textOf = ({ summaryRequest }: Writing, groups: ReadonlyArray<Group>, window: number): Effect.Effect<string> =>
  Effect.gen(function* () {
    const texts: Array<string> = []
    for (const group of groups) {
      texts.push(
        isOversized(group, window) ? oversizedNote(group) : yield* Work.run(serialized(group.entries, serialization))
      )
    }
    return texts.filter((each) => each !== "").join("\n\n")
  }).pipe(Effect.annotateSpans("entries", summaryRequest.entries.length))

/**
 * Makes the record of consecutive chunks, each from the record so far. If a later chunk fails, the record says what
 * it covers.
 */
const rolling = Effect.fnUntraced(function* (
  writing: Writing,
  groups: ReadonlyArray<Group>,
  { again, earlier }: { readonly again?: string | undefined; readonly earlier: string | undefined }
) {
  const { summaryRequest, window } = writing
  const chunks = chunksOf(groups, chunkTokens(groups, window))
  let record = earlier
  for (const [index, chunk] of chunks.entries()) {
    const body = message(yield* textOf(writing, chunk, window), chunkPrompt, {
      earlier: record,
      focus: summaryRequest.focus,
      again: index === chunks.length - 1 ? again : undefined
    })
    const answered = yield* Effect.result(ask(writing, chunks.length === 1 ? "generate" : "stage", body))
    if (answered._tag === "Failure") {
      if (index === 0) return yield* answered.failure
      return `${record ?? ""}\n\n[This record covers ${index} of ${chunks.length} parts of the conversation]`
    }
    record = answered.success
  }
  return record ?? ""
})

/** Makes the record of a range: in one request, or in two parts and a merge. */
const staged = Effect.fnUntraced(function* (
  writing: Writing,
  groups: ReadonlyArray<Group>,
  options: { readonly again?: string | undefined; readonly earlier: string | undefined }
) {
  if (!needsStages(groups, chunkTokens(groups, writing.window))) return yield* rolling(writing, groups, options)
  const parts = yield* Effect.forEach(halves(groups), (part, index) =>
    rolling(writing, part, { earlier: index === 0 ? options.earlier : undefined })
  )
  return yield* ask(
    writing,
    "merge",
    message(partsText(parts), mergePrompt, { focus: writing.summaryRequest.focus, again: options.again })
  )
})

/** Completes a record with what its audit found missing: the model is asked again, then code adds the rest. */
const audited = Effect.fnUntraced(function* (
  messages: ReadonlyArray<Entry>,
  write: (again: string | undefined) => Asked<string>
) {
  const ask = firstUnits(plainText(messages.findLast(isFromUser)?.content ?? user()), openRequestChars)
  const identifiers = identifiersOf(
    yield* Effect.forEach(messages.slice(-identifierMessages), (entry) => Work.run(serialized([entry], serialization)))
  )
  let record = yield* write(undefined)
  for (let attempt = 0; attempt < auditRetries; attempt += 1) {
    const lacking = record === "" ? undefined : audit(record, { ask, identifiers })
    if (lacking === undefined) return { record, degraded: null }
    const second = yield* Effect.result(write(shortfallText(lacking)))
    if (second._tag === "Success" && second.success !== "") record = second.success
  }
  const lacking = audit(record, { ask, identifiers })
  return lacking === undefined
    ? { record, degraded: null }
    : {
        record: completed(record, lacking, ask),
        degraded: { reason: "audit", message: `code completed the summary: ${shortfallText(lacking)}` }
      }
})

/** Writes the summary of what leaves the window with a model. */
const write = Effect.fnUntraced(function* (request: CompressRequest, summaryRequest: SummaryRequest) {
  const { conversation, policy } = request
  const writing: Writing = { request, summaryRequest, window: policy.limit, chain: chainOf(policy.model) }
  const messages = summaryRequest.entries.filter(({ author }) => author !== "summary")
  const items = movable(conversation)
  const { at, turn } = cutIn(openclawPlan, items, policy)
  const inPrefix = new Set(items.slice(turn, at).map(({ entry }) => entry.id))
  const whole = messages.filter(({ id }) => !inPrefix.has(id))
  const prefix = messages.filter(({ id }) => inPrefix.has(id))
  const shown = newestTurns(whole)
  const older = whole.filter(({ id }) => !shown.has(id))
  const recent = older.length === 0 ? [] : whole.filter(({ id }) => shown.has(id))
  const summarised = groupsOf(older.length === 0 ? whole : older)
  const made = Effect.gen(function* () {
    const [oldest, rest] = beyondShare(summarised, (policy.limit * historyShare) / safetyMargin)
    const first = previousSummary(summaryRequest.entries)
    const earlier = oldest.length === 0 ? first : yield* rolling(writing, oldest, { earlier: first })
    const { degraded, record } =
      rest.length === 0
        ? { record: earlier ?? "", degraded: null }
        : yield* audited(messages, (again) => staged(writing, rest, { earlier, again }))
    const beginning =
      prefix.length === 0
        ? ""
        : yield* ask(
            writing,
            "prefix",
            message(yield* textOf(writing, groupsOf(prefix), policy.limit), prefixPrompt, {
              focus: summaryRequest.focus
            })
          )
    return { beginning, degraded, record }
  })
  const { beginning, degraded, record } = yield* made
  if (record === "" && beginning === "") return unverified("", writing.chain.calls)
  const summary = withSuffixes(withoutFileLists(record), [
    beginning === "" ? "" : `## Turn in progress, its beginning\n${beginning}`,
    recentTurnsText(recent),
    toolFailuresText(messages),
    boundedFileLists(fileLists(summaryRequest.entries))
  ])
  const clean = asModelWrote(summary, summaryRequest.userWords)
  return { ...unverified(`<summary>\n${clean}\n</summary>`, writing.chain.calls), degraded }
})

/** Returns the replacements for images that are too large. An image without a handle yet gets no note. */
const reducing = ({ reduce }: Reducer, images: ReadonlyArray<LargeImage>) =>
  Effect.map(
    Effect.forEach(images, (large) => {
      const { entry, handle, image, part, target } = large
      return Effect.map(reduce(image, target.width, target.height), (made): ReadonlyArray<ShownPart> =>
        made !== undefined
          ? [{ entry, part, replacement: { inlineData: { ...made } } }]
          : handle === undefined
            ? []
            : [{ entry, part, replacement: largeImageNote(large) }]
      )
    }),
    (all) => all.flat()
  )

/** Opens a session that prunes each request. Its state between requests is in the conversation. */
const open = (): Effect.Effect<StrategySession> =>
  Effect.map(ImageReducer, (reducer) => ({
    ingest: (items) => reducing(reducer, largeImages(items)),
    assemble: Effect.fnUntraced(function* ({ at, conversation, policy, scale, window }: AssembleRequest) {
      const items = movable(conversation)
      const turns = policy?.turnLimit
      const pruned = yield* Work.run(
        pruning(items, { window: window / scale, at, cacheMillis: cacheMillis.short, turns })
      )
      const gone = new Set(pruned.shorten.map(({ entry, part }) => `${entry}:${part}`))
      const large = largeImages(items).filter(({ entry, part }) => !gone.has(`${entry}:${part}`))
      const reduced = yield* reducing(reducer, large)
      return { dropThrough: pruned.dropThrough, shorten: [...pruned.shorten, ...reduced] }
    })
  }))

/** The runner of the strategy `openclaw`. */
export const openclaw: StrategyRunner = { ...summaryRunner(strategy, openclawPlan, write), open }
