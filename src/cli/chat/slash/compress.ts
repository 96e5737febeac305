import { Effect, Ref } from "effect"
import { gatherEvidence } from "../../../domain/compression/evidence/Evidence.ts"
import { offeredThreshold } from "../../../domain/compression/HandCompressions.ts"
import { chosenFocus, focusChoices } from "../../../domain/compression/handover/FocusQuestion.ts"
import { entries } from "../../../domain/conversation/Conversation.ts"
import { printableLine } from "../../../domain/text/InvisibleCharacters.ts"
import * as Work from "../../../domain/text/SlicedWork.ts"
import { pricesWith } from "../../../domain/tokens/Prices.ts"
import { definitions } from "../../output/Columns.ts"
import { outcomeSentence } from "../../output/OutcomeText.ts"
import { sentence } from "../../output/Output.ts"
import { type ChatSession, nextPosition, say, tableColumns } from "./ChatSession.ts"
import type { SlashCommand } from "./SlashCommand.ts"

/** The slash command `/compress`: compresses the conversation, whatever its size. */

/** Lists what the conversation is about, or returns the focus for the numbers that the user chose from that list. */
const askedFocus = Effect.fnUntraced(function* (session: ChatSession, numbers: string) {
  const { conversation, started } = yield* session.chat.whole
  const own = entries(conversation).filter(({ author }) => author !== "environment")
  const choices = focusChoices(yield* Work.run(gatherEvidence(own, { cwd: started?.cwd })))
  const focus = chosenFocus(choices, numbers)
  if (focus !== undefined) return focus
  if (choices.length === 0) {
    yield* say(session, "There is nothing to choose from yet. /compress compresses.")
    return undefined
  }
  yield* say(session, numbers === "" ? "This conversation is about:" : "That is not on the list:")
  const rows = choices.map((choice, index) => [`${index + 1}`, printableLine(choice)] as const)
  yield* session.terminal.write(`${definitions(rows, yield* tableColumns(session))}\n`)
  yield* say(
    session,
    "Name what the snapshot keeps above all, and with a minus which files and items may go, for example: /compress ? 1 3 -2. Your messages stay."
  )
  return undefined
})

/** Offers a threshold once where the user compresses by hand again and again at about the same size. */
const offerThreshold = Effect.fnUntraced(function* (session: ChatSession, share: number, threshold: number) {
  const { handShares } = session
  const shares = yield* Ref.get(handShares)
  if (shares === undefined) return
  const all = [...shares, share]
  const offered = offeredThreshold(all, threshold)
  yield* Ref.set(handShares, offered === undefined ? all : undefined)
  if (offered === undefined) return
  yield* say(
    session,
    `You compressed at about this size several times. To do this automatically: palimpsest config set compressionThreshold ${offered}`
  )
})

/** The command `/compress [focus]`. `/compress ?` asks what it keeps above all. */
export const compress: SlashCommand = {
  name: "compress",
  aliases: ["compact", "summarize"],
  usage: "[focus|?]",
  help: "Compress the conversation now; what leaves the window stays recallable",
  run: Effect.fnUntraced(function* (session, typed) {
    const { chat, compressedAt, terminal } = session
    const focus = typed.startsWith("?") ? yield* askedFocus(session, typed.slice(1).trim()) : typed
    if (focus === undefined) return
    // A second call would pay a model for the same result.
    if (focus === "" && (yield* Ref.get(compressedAt)) === (yield* nextPosition(session))) {
      return yield* say(session, "Nothing to compress: no new messages since the last compression.")
    }
    const { limit, threshold, tokens } = yield* chat.usage
    const outcome = yield* terminal.during("compressing", (cancel) =>
      chat.compress({ cancel, onNotice: (line) => say(session, sentence(line)), ...(focus === "" ? {} : { focus }) })
    )
    if (outcome._tag === "Compressed" || outcome._tag === "ContentTruncated") {
      yield* Ref.set(compressedAt, yield* nextPosition(session))
    }
    const prices = pricesWith((yield* chat.settings).models)
    yield* say(session, outcomeSentence(outcome, limit, prices, (yield* chat.usage).scale))
    if (outcome._tag === "Compressed") yield* offerThreshold(session, tokens / limit, threshold)
  })
}
