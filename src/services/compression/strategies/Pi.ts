/** The runner of the strategy `pi`: one summary of what leaves, and another of the beginning of a split turn. */

import { Effect } from "effect"
import { fileLists, fileListText, withoutFileLists } from "../../../domain/compression/FileLists.ts"
import { serialized } from "../../../domain/compression/SerializedConversation.ts"
import { asModelWrote } from "../../../domain/compression/Snapshot.ts"
import { maxResultChars, pi as strategy, piPlan, summaryTokens } from "../../../domain/compression/strategies/pi/Pi.ts"
import {
  firstPrompt,
  message,
  noHistory,
  prefixPrompt,
  system,
  updatePrompt,
  withPrefix
} from "../../../domain/compression/strategies/pi/Prompts.ts"
import { cutIn, movable } from "../../../domain/compression/SummaryPlan.ts"
import { text, user } from "../../../domain/content/Content.ts"
import * as Work from "../../../domain/text/SlicedWork.ts"
import { askInOrder, chainOf } from "../summary/ModelChain.ts"
import type { SummaryRequest } from "../summary/Summarizer.ts"
import { unverified } from "../summary/WrittenSnapshot.ts"
import type { CompressRequest } from "./CompressRequest.ts"
import type { StrategyRunner } from "./StrategyRunner.ts"
import { askOf, previousSummary, summaryRunner } from "./SummaryRunner.ts"

const serialization = { maxResultChars, thoughts: true, media: false }

/** Summarises these entries with a model. The beginning of a split turn is summarised separately. */
const write = Effect.fnUntraced(function* ({ conversation, policy }: CompressRequest, wanted: SummaryRequest) {
  const ask = yield* askOf
  const messages = wanted.entries.filter(({ author }) => author !== "summary")
  const items = movable(conversation)
  const { at, turn } = cutIn(piPlan, items, policy)
  const inPrefix = new Set(items.slice(turn, at).map(({ entry }) => entry.id))
  const history = messages.filter(({ id }) => !inPrefix.has(id))
  const prefix = messages.filter(({ id }) => inPrefix.has(id))
  const previous = previousSummary(wanted.entries)
  const chain = chainOf(policy.model)
  const common = { family: wanted.family, promptId: wanted.promptId, system }
  // Both are written before the first is asked for, so that the calls have an order.
  const historyText = yield* Work.run(serialized(history, serialization))
  const prefixText = yield* Work.run(serialized(prefix, serialization))
  const historyCall = Effect.gen(function* () {
    if (history.length === 0) return undefined
    const body = message(historyText, previous === undefined ? firstPrompt : updatePrompt, {
      focus: wanted.focus,
      previous
    })
    const contents = [user(text(body))]
    const request = { ...common, purpose: "generate" as const, contents, maxOutputTokens: summaryTokens.history }
    return yield* askInOrder(chain, ask, request)
  })
  const prefixCall = Effect.gen(function* () {
    if (prefix.length === 0) return undefined
    const contents = [user(text(message(prefixText, prefixPrompt)))]
    const request = { ...common, purpose: "prefix" as const, contents, maxOutputTokens: summaryTokens.prefix }
    return yield* askInOrder(chain, ask, request)
  })
  const [ofHistory, ofPrefix] = yield* Effect.all([historyCall, prefixCall], { concurrency: 2 })
  // Pi drops the earlier summary when only the beginning of a turn leaves.
  const main = ofHistory?.trim() ?? previous ?? noHistory
  const beginning = ofPrefix?.trim() ?? ""
  const isEmpty = main === "" || (ofPrefix !== undefined && beginning === "")
  if (isEmpty) return unverified("", chain.calls)
  const body = beginning === "" ? main : withPrefix(main, beginning)
  const files = fileListText(fileLists(wanted.entries))
  const whole = asModelWrote(`${withoutFileLists(body)}${files === "" ? "" : `\n\n${files}`}`, wanted.userWords)
  return unverified(`<summary>\n${whole}\n</summary>`, chain.calls)
})

/** The runner of the strategy `pi`. */
export const pi: StrategyRunner = summaryRunner(strategy, piPlan, write)
