/** Masks old tool results before a request, where that gains enough tokens. */

import { Effect } from "effect"
import { withOutput } from "../../../domain/content/Content.ts"
import { responseText } from "../../../domain/content/MediaBlocks.ts"
import { defaultMasking, findMaskable, ResultTokens, unmaskedTools } from "../../../domain/conversation/Masking.ts"
import { mask } from "../../../domain/conversation/ToolOutputShortening.ts"
import * as Work from "../../../domain/text/SlicedWork.ts"
import { TokenCounter } from "../../tokens/TokenCounter.ts"
import type { Assembled, AssembleRequest, StrategySession } from "./StrategyRunner.ts"

/** The end of a command's output shows how the command ended, so it is kept. */
const shellTool = "run_shell_command"

/** The state of masking between requests. All numbers are estimated tokens. */
interface MaskingState {
  readonly results: ResultTokens
  /** Tokens of results when masking gained too little, and the total from which it is tried again. */
  skipped: { readonly total: number; readonly next: number }
}

/** Masks old tool results, so that only their beginning and end are shown, if that gains enough. */
const maskOutputs = Effect.fnUntraced(function* (
  masking: MaskingState,
  { conversation, masking: limits = {}, scale, unmaskedTools: own }: AssembleRequest
) {
  if (limits === false) return undefined
  const inModelTokens = { ...defaultMasking, ...limits }
  const [least, protect] = [inModelTokens.least / scale, inModelTokens.protect / scale]
  const total = yield* Work.run(masking.results.follow(conversation.view))
  // Masking is worth trying again once the missing amount has been added.
  if (total < masking.skipped.total) masking.skipped = { total: 0, next: 0 }
  if (total < protect + least || total < masking.skipped.next) return undefined
  const skip = (gain: number) => {
    masking.skipped = { total, next: total + least - gain }
    return undefined
  }
  const old = yield* Work.run(findMaskable(conversation.view, protect, new Set([...unmaskedTools, ...own])))
  if (old.gain < least) return skip(old.gain)
  const counter = yield* TokenCounter
  const shorten: Array<Assembled["shorten"][number]> = []
  let gain = 0
  for (const { entry, handle, index, part, tokens } of old.found) {
    const output = responseText(part)
    const replacement = withOutput(part, mask(output, handle, part.functionResponse?.name === shellTool))
    const [now = tokens] = yield* counter.count([replacement])
    if (now >= tokens) continue
    shorten.push({ entry, part: index, replacement })
    gain += tokens - now
  }
  return gain < least ? skip(gain) : { shorten }
})

/** The session of a strategy that masks old tool results as Gemini CLI does. */
export const masking = (): Effect.Effect<StrategySession, never, TokenCounter> =>
  Effect.map(TokenCounter, (counter) => {
    const state: MaskingState = { results: new ResultTokens(), skipped: { total: 0, next: 0 } }
    return {
      assemble: (request) => Effect.provideService(maskOutputs(state, request), TokenCounter, counter)
    }
  })
