import { Clock, Effect, Ref } from "effect"
import { withOutput } from "../../domain/content/Content.ts"
import { type Patch, viewTokens } from "../../domain/conversation/Conversation.ts"
import { defaultMasking, findMaskable, unmaskedTools } from "../../domain/conversation/Masking.ts"
import { resultText } from "../../domain/conversation/ToolOutputBound.ts"
import { mask } from "../../domain/conversation/ToolOutputShortening.ts"
import * as Work from "../../domain/text/SlicedWork.ts"
import { TokenCount } from "../../domain/tokens/Tokens.ts"
import { TokenCounter } from "../tokens/TokenCounter.ts"
import type { ChatState, Emit } from "./ChatState.ts"
import { commit } from "./Commit.ts"
import { requestSize } from "./RequestSize.ts"

/** The end of a command's output says how the command ended. */
const shellTool = "run_shell_command"

/**
 * Masks old tool results, so that only their beginning and end are shown, where that gains enough. It decides before it
 * writes anything, and commits one event for all results.
 */
export const maskOutputs = Effect.fnUntraced(function* (chat: ChatState, emit: Emit) {
  const { masking: limits = {}, unmaskedTools: ownUnmasked = [] } = yield* Ref.get(chat.settings)
  if (limits === false) return
  const { least, protect } = { ...defaultMasking, ...limits }
  const { conversation } = yield* Ref.get(chat.session)
  const { masking } = chat
  const total = yield* Work.run(masking.results.follow(conversation.view))
  // It pays again once as much has been added as was missing.
  if (total < masking.skipped.total) masking.skipped = { total: 0, next: 0 }
  if (total < protect + least || total < masking.skipped.next) return
  const skip = (gain: number) => {
    masking.skipped = { total, next: total + least - gain }
  }
  const old = yield* Work.run(findMaskable(conversation.view, protect, new Set([...unmaskedTools, ...ownUnmasked])))
  if (old.gain < least) return skip(old.gain)
  const counter = yield* TokenCounter
  const shorten: Array<Patch["shorten"][number]> = []
  let gain = 0
  for (const { entry, handle, index, part, tokens } of old.found) {
    const output = resultText(part) ?? ""
    const replacement = withOutput(part, mask(output, handle, part.functionResponse?.name === shellTool))
    const [now = tokens] = yield* counter.count([replacement])
    if (now >= tokens) continue
    shorten.push({ entry, part: index, replacement, tokens: TokenCount.make(now) })
    gain += tokens - now
  }
  if (gain < least) return skip(gain)
  const { scale = 1 } = yield* requestSize(chat, false)
  yield* commit(chat, { _tag: "Masked", at: yield* Clock.currentTimeMillis, shorten })
  yield* emit({
    _tag: "ToolOutputMasked",
    parts: shorten.length,
    before: TokenCount.make(Math.round(viewTokens(conversation) * scale)),
    after: TokenCount.make(Math.round(viewTokens((yield* Ref.get(chat.session)).conversation) * scale))
  })
})
